from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_loop.files import LoopFileError
from agents_loop.files.flomorphic.file import is_flomorphic, load_flomorphic
from agents_loop.files.flomorphic.json_tree import parse_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
KEYS = st.sampled_from(
    ["ref", "kind", "key", "scope", "data", "logic_rule", "body", "messages", "role", "content", "functions", "name"]
)
WORDS = st.sampled_from(["start", "startNode", "js", "llm", "$", "$.a", "1", "", "{{$.a}}", "_exception"])
NODES = st.lists(
    st.recursive(
        WORDS | st.none() | st.booleans() | st.integers(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
        max_leaves=15,
    ),
    max_size=5,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5), st.sampled_from([None, 1, "\t"]), st.booleans())
def test_values_are_those_of_json(value: dict[str, Any], indent: Any, ascii_only: bool):
    """What is read is what the standard library reads, and each value has its place."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    tree = parse_json(text, "x")

    assert tree.data == json.loads(text)
    lines = text.split("\n")
    for path, place in tree.keys.items():
        written = json.dumps(path[-1], ensure_ascii=ascii_only)
        assert lines[place.line - 1].startswith(written, place.column - 1)


@given(st.text() | st.text(alphabet='{}[]",:0123456789.eE-+truefalsn \n`\\u'))
def test_any_text_is_read_or_refused(text: str):
    """Whatever a file holds, it is read or refused with a place, and nothing else is raised."""
    with suppress(LoopFileError):
        load_flomorphic("x", text)
    is_flomorphic(text)


@given(
    NODES,
    st.lists(st.dictionaries(st.sampled_from(["from", "to", "port"]), WORDS | st.integers(), max_size=3), max_size=4),
)
def test_any_flow_is_valid_or_refused(nodes: list[Any], edges: list[Any]):
    """Whatever nodes and edges a flow has, it is valid or refused, and nothing else is raised."""
    with suppress(LoopFileError):
        loop_file = load_flomorphic("x", json.dumps({"nodes": nodes, "edges": edges}))
        assert loop_file.describe()
        assert loop_file.graph.start in loop_file.graph.nodes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1', "x:1:8: not valid JSON: a comma or '}' is expected here"),
        ('{"a" 1}', "x:1:6: not valid JSON: a colon is expected here"),
        ('{"a": 1,}', "x:1:9: not valid JSON: a key in double quotes is expected here"),
        ('{\n "a": [1,\n 2,]}', "x:3:4: not valid JSON: a value is expected here"),
        ('{"a": 01}', "x:1:8: not valid JSON: a comma or '}' is expected here"),
        ('{"a": NaN}', "x:1:7: not valid JSON: a value is expected here"),
        ('{"a": "x\ny"}', "x:1:9: not valid JSON: Invalid control character at"),
        ('{"a": "\\x"}', "x:1:8: not valid JSON: Invalid \\escape"),
        ('{"a": ', "x:1:7: not valid JSON: the text ends where a value is expected"),
        ("{'a': 1}", "x:1:2: not valid JSON: a key in double quotes is expected here"),
    ],
)
def test_what_is_no_json_is_told_with_its_place(text: str, said: str):
    """A file that is no JSON says where, and what is expected there."""
    with pytest.raises(LoopFileError) as caught:
        parse_json(text, "x")
    assert caught.value.lines[0].startswith(said)
