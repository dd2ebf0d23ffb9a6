from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from limerick import DATA

from agents_loop.files import LoopFileError, PromptError, load_loop_file
from agents_loop.files.prompts import PromptTemplate

Changed = Callable[..., Path]
Write = Callable[[str], Path]

_MINIMAL = """\
name: n
nodes:
- id: a
  type: evaluator_loop
  generator: {model: m, prompt: p}
  evaluator: {model: m, prompt: "{{ candidate }}"}
"""


def problems(path: Path) -> list[str]:
    with pytest.raises(LoopFileError) as caught:
        load_loop_file(path)
    assert pickle.loads(pickle.dumps(caught.value)).lines == caught.value.lines  # noqa: S301 - our own
    return [line.removeprefix(str(path)) for line in caught.value.lines]


def test_only_name_and_nodes_are_required(write: Write):
    """The smallest file is valid; without `max_iterations` there are 3."""
    loop_file = load_loop_file(write(_MINIMAL))

    assert loop_file.node.max_iterations == 3


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("max_iterations: 3 ", "max_iterations: 0 ", ":12:21: nodes[0].max_iterations: must be at least 1, not 0"),
        (
            "max_iterations: 3 ",
            "max_iterations: three ",
            ":12:21: nodes[0].max_iterations: must be an integer, not 'three'",
        ),
        (
            "max_iterations: 3 ",
            "max_iterations: true ",
            ":12:21: nodes[0].max_iterations: must be an integer, not true",
        ),
        ("max_iterations: 3 ", 'max_iterations: "3" ', ":12:21: nodes[0].max_iterations: must be an integer, not '3'"),
        ("max_iterations: 3 ", "max_iterations: 3.0 ", ":12:21: nodes[0].max_iterations: must be an integer, not 3.0"),
        ("max_iterations: 3 ", "max_iterations: ", ":12:20: nodes[0].max_iterations: must be an integer, not nothing"),
        (
            "max_iterations: 3 ",
            "max_iteration: 3 ",
            ":12:5: nodes[0].max_iteration: unknown key 'max_iteration'; did you mean 'max_iterations'?",
        ),
        (
            "model: poet-small-1",
            "modle: poet-small-1",
            ":15:7: nodes[0].generator.modle: unknown key 'modle'; did you mean 'model'?",
        ),
        (
            "model: poet-small-1",
            "model: 4",
            ":15:14: nodes[0].generator.model: must be a string (put it in quotes if it looks like something else), not 4",
        ),
        ("model: poet-small-1", "model: ' '", ":15:14: nodes[0].generator.model: must not be blank"),
        ("max_tokens: 20000", "max_tokens: 0", ":6:15: budget.max_tokens: must be at least 1, not 0"),
        ("max_usd: 1.50", "max_usd: .nan", ":7:12: budget.max_usd: '.nan' is not a finite number"),
        ("max_usd: 1.50", "max_usd: -1", ":7:12: budget.max_usd: must be more than 0, not -1"),
        (
            "type: evaluator_loop",
            "type: evaluator-loop",
            ":11:11: nodes[0].type: must be 'agent' or 'evaluator_loop', not 'evaluator-loop'",
        ),
        (
            "type: evaluator_loop",
            "type: bash",
            ":11:11: nodes[0].type: nodes of type 'bash' are not supported, only 'agent' and 'evaluator_loop'",
        ),
        (
            "type: evaluator_loop",
            "type: agent",
            ":14:5: nodes[0].generator: unknown key 'generator'; known here: model, prompt, max_output_tokens",
        ),
        ("    type: evaluator_loop\n", "", ":10:5: nodes[0].type: is missing"),
        (
            "type: evaluator_loop",
            "type: [agent]",
            ":11:11: nodes[0].type: must be 'agent' or 'evaluator_loop', not a list",
        ),
        (
            "id: limerick",
            "id: limerick\n    depends_on: [lymerick]",
            ":11:18: nodes[0].depends_on[0]: unknown node 'lymerick'",
        ),
        (
            "id: limerick",
            "id: limerick\n    depends_on: [limerick]",
            ":11:18: nodes[0].depends_on[0]: a node can't depend on itself",
        ),
        (
            "id: limerick",
            "id: limerick\n    depends_on: limerick",
            ":11:17: nodes[0].depends_on: must be a list, not 'limerick'",
        ),
        (
            "id: limerick",
            'id: limerick\n    when: "{{ place }}"',
            ":11:11: nodes[0].when: must be an expression without braces around it",
        ),
        (
            "id: limerick",
            "id: limerick\n    when: place =",
            ":11:11: nodes[0].when: not a valid expression: chunk after expression",
        ),
        (
            "id: limerick",
            "id: limerick\n    when: candidate",
            ":11:11: nodes[0].when: 'candidate' is not a variable of the condition; it has none",
        ),
        (
            "id: limerick",
            "id: limerick\n    when: true",
            ":11:11: nodes[0].when: must be a string (put it in quotes if it looks like something else), not true",
        ),
        (
            "id: limerick",
            "id: limerick\n    retry: {max_attempts: 21}",
            ":11:27: nodes[0].retry.max_attempts: must be at most 20, not 21",
        ),
        (
            "id: limerick",
            "id: limerick\n    retry: {max_attempts: 0, backoff: 1}",
            ":11:27: nodes[0].retry.max_attempts: must be at least 1, not 0",
        ),
        (
            "id: limerick",
            "id: limerick\n    retry: {backoff: 1}",
            ":11:13: nodes[0].retry.backoff: unknown key 'backoff'; did you mean 'backoff_seconds'?",
        ),
        (
            "model: poet-small-1",
            "model: m\n      temperature: 1",
            ":16:7: nodes[0].generator.temperature: not supported: take it out",
        ),
        (
            "model: poet-small-1",
            "model: m\n      fallback_chain: m2",
            ":16:23: nodes[0].generator.fallback_chain: must be a list, not 'm2'",
        ),
        (
            "model: poet-small-1",
            "model: m\n      timeout_seconds: 0",
            ":16:24: nodes[0].generator.timeout_seconds: must be more than 0, not 0",
        ),
        (
            "\nnodes:",
            "\noutputs: {a.txt: limerik}\nnodes:",
            ":9:18: outputs.a.txt: unknown node 'limerik'; did you mean",
        ),
        (
            "\nnodes:",
            "\noutputs: {/a.txt: limerick}\nnodes:",
            ":9:11: outputs./a.txt: an output's path must be relative",
        ),
        ("\nnodes:", "\noutputs: {'C:a': limerick}\nnodes:", ":9:11: outputs.C:a: an output's path must be relative"),
        (
            "\nnodes:",
            "\noutputs: {x/../../a: limerick}\nnodes:",
            ":9:11: outputs.x/../../a: an output's path must not hold `..`",
        ),
        (
            "\nnodes:",
            "\noutputs: {'x\\..\\a': limerick}\nnodes:",
            ":9:11: outputs.x\\..\\a: an output's path must not hold `..`",
        ),
        ("\nnodes:", "\noutputs: {x/: limerick}\nnodes:", ":9:11: outputs.x/: is no path of a file"),
        ("\nnodes:", "\noutputs: {'': limerick}\nnodes:", ":9:11: outputs.: is no path of a file"),
        (
            "\nnodes:",
            "\noutputs: {a: limerick, ./a: limerick}\nnodes:",
            ":9:24: outputs../a: is the same file as 'a'",
        ),
        ("\nnodes:", "\nhooks: {on_dag_start: x}\nnodes:", ":9:1: hooks: not supported: take it out"),
        (
            "\nnodes:",
            "\nwaves: 3\nnodes:",
            ":9:1: waves: unknown key 'waves'; known here: name, description, budget, inputs, nodes, outputs",
        ),
        ("name: limerick_with_critic", "title: x", ":2:1: name: is missing"),
        ("name: limerick_with_critic", "name: x\nname: y", ":3:1: name: the key is given twice; first in line 2"),
        (
            "name: limerick_with_critic",
            "name: !!python/object:os.system x",
            ":2:7: name: the tag 'tag:yaml.org,2002:python/object:os.system' can't be used here",
        ),
        (
            "\nnodes:",
            "\ninputs: {a: {type: text}}\nnodes:",
            ":9:20: inputs.a.type: must be 'string', 'integer', 'number' or 'boolean', not 'text'",
        ),
        (
            "\nnodes:",
            "\ninputs: {place: {}, iteration: {}}\nnodes:",
            ":9:21: inputs.iteration: 'iteration' is a variable of the loop itself",
        ),
        (
            "\nnodes:",
            "\ninputs: {place: {type: integer, default: x}}\nnodes:",
            ":9:42: inputs.place.default: must be of type integer, not 'x'",
        ),
        (
            "\nnodes:",
            "\ninputs: {place: {default: x, required: true}}\nnodes:",
            ":9:40: inputs.place.required: an input with a default is not required",
        ),
        (
            "\nnodes:",
            "\ninputs: {other: {}}\nnodes:",
            ":19:1: nodes[0].generator.prompt: 'place' is neither a declared input nor a variable of the loop",
        ),
        (
            "{{ previous_output }}",
            "{{ candidate }}",
            ":21:1: nodes[0].generator.prompt: 'candidate' is not a variable of the generator's prompt",
        ),
        ("{{ previous_output }}", "{{ previous_output }", ":21:1: nodes[0].generator.prompt: not a valid template: "),
        ("{% endif %}", "", ":23:1: nodes[0].generator.prompt: not a valid template: "),
        (
            "Reply with",
            "{% include 'x' %}",
            ":32:1: nodes[0].evaluator.prompt: not a valid template: 'include' can't be used",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(changed: Changed, old: str, new: str, said: str):
    """Every kind of mistake is one line: the file, the line and column, the path, the value, what to do."""
    found = problems(changed((old, new)))

    assert any(line.startswith(said) for line in found), found


def test_every_problem_is_found_at_once(changed: Changed):
    """A file with three mistakes has three lines, in the order of the file."""
    path = changed(
        ("max_tokens: 20000", "max_tokens: x"),
        ("max_iterations: 3 ", "max_iterations: 0 "),
        ("evaluator:\n", "judge:\n"),
    )

    found = problems(path)

    assert [line.split(": ")[1] for line in found] == [
        "budget.max_tokens",
        "nodes[0].evaluator",
        "nodes[0].max_iterations",
        "nodes[0].judge",
    ]


def test_what_says_nothing_is_no_problem(changed: Changed):
    """An empty `depends_on` asks for nothing that is not supported."""
    path = changed(("id: limerick", "id: limerick\n    depends_on: []\n    when:"), ("\nnodes:", "\nhooks: {}\nnodes:"))

    assert load_loop_file(path).waves == [["limerick"]]


def test_another_kind_of_node_is_one_problem(write: Write):
    """The keys of a node that is not supported are not complained about; what is wrong elsewhere is."""
    path = write("name: n\nnodes:\n- {id: b, type: map, over: x, prompt: p}\n- {id: c, type: agent, promt: p}\n")

    assert problems(path) == [
        ":3:17: nodes[0].type: nodes of type 'map' are not supported, only 'agent' and 'evaluator_loop'",
        ":4:3: nodes[1].model: is missing",
        ":4:3: nodes[1].prompt: is missing",
        ":4:24: nodes[1].promt: unknown key 'promt'; did you mean 'prompt'?",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ": the file must be a mapping with `name` and `nodes`"),
        ("- a\n- b\n", ": the file must be a mapping"),
        ("just text", ": the file must be a mapping"),
        ("name: [\n", ":2:1: not valid YAML: "),
        ("name: x\n\tnodes: y\n", ":2:1: not valid YAML: "),
        ("name: x\n---\nname: y\n", ":2:1: not valid YAML: expected a single document"),
        ("name: *x\n", ":1:7: not valid YAML: found undefined alias 'x'"),
        ("name: \x00", ": not valid YAML: "),
        ("a: " + "[" * 1500, ": not valid YAML: "),
        ("a: " + "[" * 40 + "]" * 40, "nested more than 32 deep"),
        ("name: n\nnodes: []\n", ":2:8: nodes: needs a node"),
        ("name: n\nnodes: x\n", ":2:8: nodes: must be a list, not 'x'"),
        ("name: n\nnodes:\n- x\n", ":3:3: nodes[0]: must be a mapping, not 'x'"),
        ("name: n\nnodes: &a [*a]\n", "nested more than 32 deep"),
        ("<<: {a: 1}\nname: n\n", ":1:1: merge keys (`<<`) can't be used here"),
        ("? [a]\n: b\n", ":1:3: a key that is not a text can't be used here"),
        ("name: 0o9\nx: 0b\n", ": "),
        ("name: !!int\n", ":1:7: name: '' can't be read"),
    ],
)
def test_what_is_no_loop_file_is_one_line(write: Write, text: str, said: str):
    """Unreadable YAML, and YAML that is something else: one line, never a traceback."""
    found = problems(write(text))

    assert said in found[0]
    assert all("\n" not in line for line in found)


_PIECES = [
    "name",
    "nodes",
    ": ",
    "\n",
    "  ",
    "- ",
    "{",
    "}",
    "[",
    "]",
    "&a ",
    "*a",
    "!!int ",
    "'",
    '"',
    "|",
    "x",
    "1",
    "\t",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=30).map("".join) | st.text(max_size=40))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_is_more_than_an_error(tmp_path: Path, text: str):
    """Whatever stands in a file, reading it gives a loop or a `LoopFileError` of single lines."""
    path = tmp_path / "any.yaml"
    path.write_bytes(text.encode("utf-8", "replace"))

    with pytest.raises(LoopFileError) as caught:
        load_loop_file(path)

    assert caught.value.lines
    assert all("\n" not in line for line in caught.value.lines)


@given(
    st.lists(
        st.sampled_from(
            [
                "{{ ",
                " }}",
                "{% if ",
                " %}",
                "{% endif %}",
                "{% for x in ",
                "{% endfor %}",
                "candidate",
                "'a'",
                " * ",
                "9",
                " | ",
                "join",
                "(",
                ")",
                "[",
                "]",
                ".",
                "\n",
                "{#",
                "#}",
            ]
        ),
        max_size=14,
    ).map("".join)
)
@settings(deadline=None)
def test_no_prompt_is_more_than_an_error(source: str):
    """Whatever a template is, it is rendered, or is a `PromptError` of one line."""
    said = ""
    try:
        PromptTemplate(source).render({"candidate": "x"})
    except PromptError as error:
        said = str(error)

    assert "\n" not in said


def test_aliases_can_not_fill_the_memory(write: Write):
    """Nested aliases are followed up to a limit."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]

    assert "more than 5000 values" in problems(write("\n".join(lines)))[0]


def test_a_file_that_can_not_be_read_is_one_line(tmp_path: Path):
    """Missing, a folder, not UTF-8, too big: one line each."""
    (tmp_path / "latin.yaml").write_bytes("name: x\ndescription: caf\xe9\n".encode("latin-1"))
    (tmp_path / "big.yaml").write_bytes(b"#" * (1 << 21))

    assert problems(tmp_path / "missing.yaml") == [": the file can't be read: No such file or directory"]
    assert problems(tmp_path) == [": the file can't be read: it is a folder, not a file"]
    assert problems(tmp_path / "latin.yaml") == [":2:1: the file is not UTF-8 (byte 0xe9): save it as UTF-8"]
    assert problems(tmp_path / "big.yaml") == [": the file is bigger than 512 KiB"]


def test_a_byte_order_mark_and_windows_line_breaks_are_no_problem(tmp_path: Path):
    """Files from any editor are read, and their lines are counted alike."""
    path = tmp_path / "w.yaml"
    text = (DATA / "limerick.yaml").read_text(encoding="utf-8")
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())

    assert load_loop_file(path).name == "limerick_with_critic"


def test_dates_and_the_like_are_texts(write: Write):
    """What YAML would make a date of stays what was written."""
    assert load_loop_file(write(_MINIMAL.replace("name: n", "name: 2024-01-31"))).name == "2024-01-31"


def test_a_count_is_bounded(changed: Callable[..., Path]):
    """A number of tokens or iterations that is no such number is told with its place, before any run."""
    path = changed(("max_iterations: 3", f"max_iterations: {'9' * 400}"))
    with pytest.raises(LoopFileError, match=r"max_iterations: must be at most 1000000000000, not "):
        load_loop_file(path)
