from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from flow_files import DINNER, START, edge, flow_file, flow_text, js, llm, run

from agents_loop import MissingExtraError
from agents_loop.files import LoopFileError, load_loop_file
from agents_loop.files.flomorphic.file import FloMorphicFile, is_flomorphic, load_flomorphic
from agents_loop.files.flomorphic.paths import _environment, read_path
from agents_loop.testing import ScriptedChatClient

ONE = flow_text([js("a", "1")], title="One")


def problems(text: str) -> list[str]:
    with pytest.raises(LoopFileError) as caught:
        load_flomorphic("flow.json", text)
    return list(caught.value.lines)


def nodes_and(*nodes: Any, edges: list[Any] | None = None) -> str:
    return json.dumps({"nodes": [START, *nodes], "edges": edges or []})


@pytest.mark.parametrize(
    "text",
    [
        ONE,
        f"\n  {ONE}  \n",
        f"Here is the flow you asked for [v2]:\n\n```json\n{ONE}\n```\nEnjoy!",
        f"```\n{ONE}\n```",
        f"Here is [the flow]: {ONE} I hope it helps.",
        f'Its context is {{}} at first, then {{"a": [1]}}; see [1] and [{{"page": 2}}]:\n{ONE}',
        json.dumps(json.loads(ONE), indent="\t"),
        "\ufeff" + ONE,
    ],
    ids=["bare", "spaces", "fence", "plain fence", "prose", "prose with more", "tabs", "mark"],
)
def test_json_is_found_wherever_it_stands(tmp_path: Path, text: str):
    """An export is read bare, in a fence or between prose."""
    path = tmp_path / "flow"
    path.write_text(text, encoding="utf-8")
    loop_file = load_loop_file(path)

    assert isinstance(loop_file, FloMorphicFile)
    assert loop_file.name == "One"
    assert list(loop_file.graph.nodes) == ["start", "a"]


def test_a_bare_list_is_that_of_the_nodes():
    """A bare array is the nodes of a flow without edges."""
    loop_file = load_flomorphic("x", json.dumps([START, js("a", "1")]))

    assert list(loop_file.graph.nodes) == ["start", "a"]
    assert loop_file.name == "Untitled flow"


def test_a_node_without_a_ref_is_numbered():
    """A missing ref is node and its number."""
    anonymous = {"kind": "js", "data": {"logic_rule": "1"}}

    assert list(load_flomorphic("x", nodes_and(js("a", "1"), anonymous)).graph.nodes) == ["start", "a", "node3"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "nodes: the file needs a list `nodes`"),
        ('{"nodes": {}}', "nodes: the file needs a list `nodes`"),
        ("[1, 2]", "there is no JSON object in the file"),
        ("nothing here", "there is no JSON object in the file"),
        (nodes_and(js("a", "1"), js("a", "2")), "'a' is the ref of another node too"),
        (nodes_and({"ref": "a", "kind": "http"}), "'http' is not supported; there are: startNode, js, llm"),
        (nodes_and({"ref": "a"}), "nodes[1].kind: is missing"),
        (nodes_and(7), "nodes[1]: a node must be an object"),
        (json.dumps({"nodes": [js("a", "1")]}), "a start node is required"),
        (nodes_and(js("a", "  ")), "nodes[1].data.logic_rule: the script is empty"),
        (nodes_and({"ref": "a", "kind": "js"}), "the script is empty"),
        (nodes_and(js("a", "let x = {{$.y}}")), "`{{` is for texts"),
        (nodes_and(js("a", "let a = ;")), "not valid JavaScript"),
        (nodes_and(js("a", "1", scope="a.b")), "nodes[1].scope: 'a.b' is no path"),
        (nodes_and(js("a", "1", scope="$..a..b")), "more than one `..` can't be used"),
        (nodes_and(js("a", "1", key=5)), "nodes[1].key: must be a text"),
        (nodes_and(llm("a") | {"data": {"functions": [{"title": "x"}]}}), "a function needs a `name`"),
        (nodes_and(llm("a", "p", "go", "go")), "'go' is given twice"),
        (nodes_and(llm("a", "".join(f"{{{{$.a{n}}}}}" for n in range(201)))), "more than 200 different paths"),
        (nodes_and(js("a", "1", data=[1])), "nodes[1].data: must be an object"),
        (nodes_and(llm("a") | {"data": {"functions": {}}}), "nodes[1].data.functions: must be a list"),
        (nodes_and(llm("a") | {"data": {"functions": [1]}}), "a function must be an object"),
        (nodes_and(llm("a") | {"data": {"body": {"messages": ["x"]}}}), "a message must be an object"),
        (nodes_and(llm("a") | {"data": {"body": {"messages": [{"role": 1}]}}}), "messages[0].role: must be a text"),
        (nodes_and({"ref": 5, "kind": "js"}), "nodes[1].ref: must be a text"),
        (nodes_and(edges=[5]), "edges[0]: an edge must be an object"),
        ('{"nodes": [{"kind": "startNode"}], "edges": {}}', "edges: must be a list"),
        (nodes_and(llm("a", "p", "_exception")), "'_exception' is the port for what is no choice"),
        (nodes_and(llm("a", "p", "go on")), "must be 1 to 64 of a-z"),
        (
            nodes_and(llm("a") | {"data": {"body": {"messages": [{"content": [1]}]}}}),
            "messages[0].content: must be a text",
        ),
        (nodes_and(llm("a") | {"data": {"body": {"clear_history": "yes"}}}), "must be true or false"),
        (nodes_and(edges=[{"from": "start", "to": "nowhere"}]), "edges[0].to: there is no node 'nowhere'"),
        (nodes_and(edges=[{"from": "gone", "to": "start"}]), "edges[0].from: there is no node 'gone'"),
        (
            nodes_and(llm("a", "p", "go"), edges=[edge(("a", "start"))]),
            "`port` is missing: the node 'a' has the ports go, _exception",
        ),
        (
            nodes_and(llm("a", "p", "go"), edges=[edge(("a", "start", "stay"))]),
            "the node 'a' has no port 'stay'; it has go, _exception",
        ),
        ('{"nodes": [], "nodes": []}', "nodes: the key is given twice; first in line 1"),
        ('{"nodes": [tru]}', "not valid JSON: a value is expected here"),
        ("[" * 100, "nested more than 60 deep"),
        (json.dumps({"nodes": [1] * 60_000}), "the file has more than 50000 values"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str):
    """Each thing that is wrong with an export is one line."""
    assert any(said in line for line in problems(text)), problems(text)


def test_everything_is_found_at_once_and_where():
    """All problems are told at once, each with its line and column."""
    text = """{
  "nodes": [
    {"ref": "start", "kind": "startNode"},
    {"ref": "a", "kind": "loop"},
    {"ref": "b", "kind": "js", "data": {"logic_rule": ""}}
  ],
  "edges": [
    {"from": "start", "to": "c"},
    {"from": "start", "to": "a"}
  ]
}"""
    assert problems(text) == [
        "flow.json:4:26: nodes[1].kind: 'loop' is not supported; there are: startNode, js, llm",
        "flow.json:5:55: nodes[2].data.logic_rule: the script is empty",
        "flow.json:8:29: edges[0].to: there is no node 'c'",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ONE.replace('"title"', '"flomorphic": {"version": 2}, "title"'), "2 is newer than what is known (1)"),
        ('{"title": 5, "nodes": [{"kind": "startNode"}]}', "title: it must be a text, not 5"),
        (nodes_and(js("a", "1")), "no edge leads to 'a': it never runs"),
        (nodes_and({"ref": "s2", "kind": "startNode"}), "there are 2 start nodes; the run begins at 'start'"),
        (nodes_and(js("a", "let x = 1\nreturn x")), "a script has no `return`"),
        (nodes_and(js("a", "typeof ctx.value")), "there is no `ctx` here"),
        (
            nodes_and(js("a", "1"), js("b", "1"), edges=[edge(("a", "b")) | {"port": "x"}]),
            "has no ports: it is ignored",
        ),
        (nodes_and(llm("a", "p", "go") | {"data": {"functions": [{"name": "go"}]}}), "'go' has no description"),
        (nodes_and(llm("a", "{{$.a[}} {{$.fine}}")), "so it stays as it stands"),
        (
            nodes_and(
                js("a", "1"),
                js("b", "1"),
                js("c", "1"),
                edges=[edge(("start", "a")), edge(("start", "b")), edge(("a", "c")), edge(("b", "c"))],
            ),
            "2 edges lead to 'c': it runs once for each",
        ),
        (
            nodes_and(js("a", "1"), edges=[edge(("start", "a")), edge(("start", "a"))]),
            "the same edge is given before: 'a' runs once for each",
        ),
        (
            nodes_and(
                llm("a") | {"data": {"body": {"messages": [{"content": "1"}, {"role": "user", "content": "2"}]}}}
            ),
            "a second user message is not kept",
        ),
        (
            nodes_and(llm("a") | {"data": {"body": {"messages": [{"role": "assistant", "content": "1"}]}}}),
            "a message of the role 'assistant' is not kept",
        ),
    ],
)
def test_what_may_not_be_meant_is_a_warning(text: str, said: str):
    """What can be run all the same is a warning, which `validate` shows."""
    lines = load_flomorphic("flow.json", text).describe()

    assert [line for line in lines if line.startswith("  warning: flow.json:") and said in line], lines


def test_a_loop_is_no_second_run():
    """An edge that closes a loop does not make its node run twice."""
    assert load_loop_file(DINNER).graph.warnings == []  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    "code",
    [
        "let x = 1\nreturn x",
        "let x = 1\nreturn x;\n",
        "let x = 1\nreturn {\n a: x\n}.a;",
        "let x = 1; return x",
        "  let x = 1\n  return x",
        "let x = 1\nreturn x // the answer",
        "let x = 1\nreturn x; // or return 2",
        "let s = 'http://x'\nreturn s.length - 'http://'.length",
        "_log('a')\nreturn (1)",
        "let f = () => {\nreturn 1\n}\nreturn f()",
        "let n = [3, 1]\nreturn n[0], n[1]",
    ],
)
async def test_a_return_at_the_end_is_its_expression(code: str):
    """A script that ends with a `return` gives what stands behind it."""
    result = await run(flow_file([js("a", code, key="x")]), ScriptedChatClient([]))
    assert result.report["context"] == {"x": 1}


@pytest.mark.parametrize(
    "code", ["(() => {\nreturn 1\n})()", "let f = function () {\nreturn 1\n}, y = f()\ny", "let t = `1\nreturn 2`\n1"]
)
async def test_a_return_within_a_function_is_left_alone(code: str):
    """A `return` of a function, and the word in a text, are what they are, and nothing is said of them."""
    loop_file = flow_file([js("a", code, key="x")])
    result = await run(loop_file, ScriptedChatClient([]))

    assert (result.report["context"], list(loop_file.graph.warnings)) == ({"x": 1}, [])


@pytest.mark.parametrize(
    "code",
    [
        "for (const x of [1, 2]) return x",
        "for (const x of [1, 2])\nreturn x",
        "if (0) return 3\nreturn 4",
        "if (1) return 3",
        "if (0) 1; else return 2",
        "return 1\n2",
        "return\n1",
        "return",
        "let = = 3; return 1",
    ],
)
def test_a_return_that_decides_is_an_error(code: str):
    """A `return` without which a script would do something else is no JavaScript, as the engine says."""
    with pytest.raises(LoopFileError, match="not valid JavaScript"):
        flow_file([js("a", code)])


def test_the_number_of_nodes_is_bounded():
    """A file of more nodes than a run would ever visit is refused before its scripts are read."""
    with pytest.raises(LoopFileError, match="more than 1,000 nodes"):
        flow_file([js(f"n{number}", "(") for number in range(1_000)])


def test_short_forms_of_messages():
    """`data.system` and `data.prompt` are messages; the system message comes first."""
    node = {"ref": "a", "kind": "llm", "data": {"prompt": "do", "system": "be"}}
    messages = flow_file([node]).graph.nodes["a"].messages

    assert [(message.role, message.content) for message in messages] == [("system", "be"), ("user", "do")]


@pytest.mark.parametrize("written", ["fn-1", "go", "GO", "Go There", "go there"])
def test_a_port_is_named_by_id_name_or_title(written: str):
    """An edge's port is a function's id, else its name, else its title in any case."""
    node = llm("a", "p", "go", "stay")
    node["data"]["functions"][0] |= {"id": "fn-1", "title": "Go there"}

    assert flow_file([node], ("start", "a"), ("a", "start", written)).graph.edges[1].port == "go"


@pytest.mark.parametrize("key", ["nodes", "loop"])
def test_a_loop_file_may_speak_of_flows(key: str):
    """A loop file in YAML is none of FloMorphic, also where a prompt in it shows an export."""
    assert not is_flomorphic(f"name: x\n{key}:\n  prompt: |\n    Write one like {ONE}\n")
    assert is_flomorphic(f"The {key}:\n\n{key}: [1]\n{ONE}")


def test_a_flow_is_told_from_other_formats():
    """JSON with a header or with nodes of a kind is an export; other files are not."""
    assert is_flomorphic(ONE)
    assert is_flomorphic('{"flomorphic": {}}')
    assert is_flomorphic('{"nodes": [{"kind": "js"')
    assert not is_flomorphic("name: x\nnodes:\n  - id: a\n    prompt: 'reply {\"kind\": 1}'\n")
    assert not is_flomorphic('{"name": "x", "nodes": [{"id": "a", "type": "agent"}]}')


def test_models_are_the_settings_profiles():
    """A model's name is the settings profile of its node, or `default`."""
    assert flow_file([llm("a", settings="p"), llm("b"), llm("c", settings="p")]).models == ["p", "default"]


@pytest.mark.parametrize("module", ["quickjs", "jsonpath"])
def test_without_the_extra_the_command_that_installs_it_is_named(module: str, monkeypatch: pytest.MonkeyPatch):
    """Without the engine or the path library an export can't be read, and the error says what to install."""
    monkeypatch.setitem(sys.modules, module, None)
    _environment.cache_clear()
    read_path.cache_clear()
    try:
        with pytest.raises(MissingExtraError, match=r"agents-loop\[flomorphic\]"):
            load_flomorphic("flow.json", ONE)
    finally:
        monkeypatch.undo()
        _environment.cache_clear()
        read_path.cache_clear()
