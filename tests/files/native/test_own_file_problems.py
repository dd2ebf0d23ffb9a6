"""What is wrong with a file of our own format is said at once, with its place, before any call."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from agents_loop import ConfigurationError
from agents_loop.files import InputError, LoopFileError, RunSettings, load_loop_file
from agents_loop.testing import ScriptedChatClient

Write = Callable[[str], Path]
HEAD = """name: notice
inputs:
  words: {type: integer, default: 5}
loop:
  agent: {model: writer, request: "Write {{ words }} words."}
"""


def problems(path: Path) -> list[str]:
    with pytest.raises(LoopFileError) as caught:
        load_loop_file(path)
    return [line.removeprefix(str(path)) for line in caught.value.lines]


def evaluator(said: str) -> str:
    return f"{HEAD}  evaluators:\n    - {said}\n"


def test_all_of_it_at_once(write: Write):
    """Unknown keys, unknown types and wrong values are named together, each with its line, column and a near name."""
    found = problems(
        write(
            "name: n\n"
            "loop:\n"
            "  agent:\n"
            "    model: writer\n"
            "    request: Write.\n"
            "    temprature: 0.3\n"
            "    context_providers: [tod]\n"
            "  evaluators:\n"
            "    - type: ai_juge\n"
            "      model: judge\n"
            "    - {type: ai_judge, model: judge, criterea: []}\n"
            "    - {model: x}\n"
            "    - {type: panel, members: [[{type: length, unit: word}]]}\n"
            "  budget: {max_tokens: many}\n"
            "  stall: {ladder: [nudge, {type: flat}]}\n"
        )
    )
    assert found[:3] == [
        ":6:5: loop.agent.temprature: unknown key 'temprature'; did you mean 'temperature'?",
        ":7:25: loop.agent.context_providers[0]: unknown type 'tod'; did you mean 'todo'?",
        ":9:13: loop.evaluators[0].type: unknown type 'ai_juge'; did you mean 'ai_judge'?",
    ]
    assert found[3] == ":11:38: loop.evaluators[1].criterea: unknown key 'criterea'; did you mean 'criteria'?"
    assert found[4].startswith(":12:7: loop.evaluators[2]: must be a mapping with a `type`, one of ai_judge, ")
    assert found[5:] == [
        (
            ":13:53: loop.evaluators[3].members[0][0].unit: must be 'words', 'characters', 'sentences', 'lines' or "
            "'items', not 'word'"
        ),
        ":14:24: loop.budget.max_tokens: must be an integer, not 'many'",
        (
            ":15:34: loop.stall.ladder[1].type: unknown type 'flat'; known here: nudge, fresh_context, another_model, "
            "ask_person, stop"
        ),
    ]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("{type: ai_judge, model: j, samples: 0}", ".samples: samples must be at least 1, not 0"),
        (
            "{type: ai_judge, model: j, design: requirements, samples: 2}",
            ": verdict_fields, samples, escalate_to and ask_again_on_contradiction are for the design 'verdict' alone",
        ),
        ("{type: regex, pattern: '('}", ".pattern: pattern '(' is no regular expression: "),
        ("{type: length, unit: words}", ": at_least or at_most must be given: without a limit nothing is checked"),
        ("{type: completion_marker, marker: ' '}", ".marker: completion_marker must not be blank"),
        ("{type: rubric, model: j, criteria: []}", ".criteria: criteria must not be empty"),
        ("{type: rubric, model: j, criteria: [{id: a b, text: t}]}", ".criteria[0].id: id must be 1 to 64 letters"),
        ("{type: panel, members: [json], vote: weighted}", ": weights must be given for the vote 'weighted'"),
        (
            "{type: ai_judge, model: j, on_failure: {error: next_judge}}",
            ".on_failure.error: error is 'next_judge': give next_judges too",
        ),
        ("{type: json, schema: {type: 3}}", ".schema: schema is no JSON schema, at $.type"),
        ("{type: iteration_strategy, detectors: [], max_s: 0}", ".max_s: max_s must be above 0, not 0"),
        ("{type: prompted, model: j, prompt: '{{ words'}", ".prompt: not a valid template: "),
        ("{type: prompted, model: j, prompt: '{{ word }}'}", ".prompt: unknown variable 'word'; did you mean 'words'?"),
        (
            "{type: prompted, model: j, prompt: '{{ previous_output }}'}",
            ".prompt: 'previous_output' is no variable of this template; it has: candidate, iteration",
        ),
        (
            "{type: ai_judge, model: j, criteria: ['{{ iteration }}']}",
            ".criteria[0]: 'iteration' is no variable of this template; it is rendered once, before the run",
        ),
        ("{type: ai_judge, model: j, criteria: ['{% include \"x\" %}']}", "can't be used: a prompt can't read other"),
        ("{type: python, object: os.system}", ".object: must name a Python object as 'module:name'"),
    ],
)
def test_an_option_that_is_none_is_a_problem_at_its_place(write: Write, said: str, problem: str):
    """What the options' own classes refuse is a problem of the file, at the key that they name; nothing is called."""
    found = problems(write(evaluator(said)))

    assert any(f": loop.evaluators[0]{problem}" in line or problem in line for line in found), found
    assert all("Traceback" not in line for line in found)


def test_several_parts_that_can_not_be_built(write: Write):
    """What can't be built is told of all parts at once: the agent, evaluators, options, budget and stalls."""
    found = problems(
        write(
            "name: n\n"
            "loop:\n"
            "  agent: {model: w, request: '{% if %}', max_tool_rounds: 0}\n"
            "  evaluators:\n"
            "    - {type: regex, pattern: '('}\n"
            "    - {type: length, unit: words}\n"
            "  options: {max_iterations: 0}\n"
            "  budget: {}\n"
            "  stall: {signals: [{type: same_answer, repeats: 1}], ladder: [nudge]}\n"
        )
    )
    assert [line.split(": ")[1] for line in found] == [
        "loop.agent.request",
        "loop.agent.max_tool_rounds",
        "loop.evaluators[0].pattern",
        "loop.evaluators[1].at_least",
        "loop.options.max_iterations",
        "loop.budget",
        "loop.stall.signals[0].repeats",
    ]


def test_what_can_not_be_built_beside_what_is_not_valid(write: Write):
    """A wrong key in one part hides no problem of another one."""
    found = problems(
        write(
            "name: n\n"
            "loop:\n"
            "  agent: {model: w, request: '{{ candidate }}'}\n"
            "  evaluators: [{type: regex, pattern: '('}, {type: jsn}]\n"
            "  options: {max_iterations: 0}\n"
            "  budget: {max_tokens: 0}\n"
            "  stall: {signals: [{type: same_answer, repeats: 1}]}\n"
        )
    )
    assert [line.split(": ")[1] for line in found] == [
        "loop.agent.request",
        "loop.evaluators[0].pattern",
        "loop.evaluators[1].type",
        "loop.options.max_iterations",
        "loop.budget.max_tokens",
        "loop.stall.signals[0].repeats",
    ]


def test_the_line_within_a_template(write: Write):
    """A problem of a template is told with the line of the file in which it stands."""
    text = "name: n\nloop:\n  agent:\n    model: w\n    prompt: |\n      Write.\n      {{ candidate }}\n  evaluators: [json]\n"
    found = problems(write(text))
    assert found == [
        (
            ":7:1: loop.agent.prompt: 'candidate' is no variable of this template; it has: evaluator_feedback, "
            "iteration, previous_output"
        ),
    ]


def test_another_model_needs_a_model(write: Write):
    """An agent of one's own names no model, so that another one can't take its place."""
    text = (
        "name: n\nloop:\n  agent: {object: 'm:a', request: x}\n  evaluators: [json]\n"
        "  stall: {ladder: [{type: another_model, model: big}, stop]}\n"
    )
    assert problems(write(text))[0].endswith("`another_model` needs an agent that names its model")


def test_python_objects_are_not_imported_unasked(write: Write, tmp_path: Path):
    """Without leave nothing is imported: validating is fine and says so, building names each object."""
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')\n")
    path = write(evaluator("{type: python, object: 'trap:judge'}"))
    loop_file = load_loop_file(path)
    assert loop_file.describe()[-1] == "  needs --allow-imports: trap:judge"
    with pytest.raises(LoopFileError, match=r"loop\.evaluators\[0\]\.object: 'trap:judge' is a Python object: --allow"):
        loop_file.build({}, lambda _: ScriptedChatClient([]))


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("raise SystemExit('imported')", "'mine_{0}:judge' can't be imported: SystemExit: imported"),
        ("import no_such_module", "can't be imported: ModuleNotFoundError: No module named 'no_such_module'"),
        ("x = 1", "can't be imported: 'mine_{0}' has no 'judge'"),
        ("judge = 7", "object must be a LoopEvaluator or a function, not 7"),
        ("class judge: pass", "object must be a LoopEvaluator or a function, not <class"),
    ],
)
def test_what_can_not_be_imported(write: Write, tmp_path: Path, request: pytest.FixtureRequest, module: str, said: str):
    """A module that fails, a name that is not there, and an object that is no evaluator: one line, with its place."""
    number = str(abs(hash(request.node.name)))
    (tmp_path / f"mine_{number}.py").write_text(f"{module}\n")
    loop_file = load_loop_file(write(evaluator(f"{{type: python, object: 'mine_{number}:judge'}}")))
    with pytest.raises(LoopFileError) as caught:
        loop_file.build({}, lambda _: ScriptedChatClient([]), RunSettings(allow_imports=True))
    assert len(caught.value.lines) == 1
    assert said.format(number) in caught.value.lines[0]
    assert "loop.evaluators[0].object" in caught.value.lines[0]


def test_an_input_is_missing(write: Write):
    """An input that a template uses must be given; a file without declarations says so when it is built."""
    text = "name: n\nloop:\n  agent: {model: w, request: 'Write {{ x }}.'}\n  evaluators: [json]\n"
    loop_file = load_loop_file(write(text))
    with pytest.raises(InputError, match=r"the input 'x' is missing: .* -i x="):
        loop_file.build({}, lambda _: ScriptedChatClient([]))
    assert loop_file.build({"x": "a"}, lambda _: ScriptedChatClient([])).message.text == "Write a."
    assert loop_file.unused_inputs({"x": "a", "y": "b"}) == ["y"]


def test_what_an_input_makes_invalid(write: Write):
    """An option that only an input's value makes invalid is a problem at its place too, when the loop is built."""
    loop_file = load_loop_file(
        write(evaluator("{type: rubric, model: j, criteria: [{id: a, text: '{{ \"\" if words == 5 else words }}'}]}"))
    )
    with pytest.raises(ConfigurationError, match=r"loop\.evaluators\[0\]\.criteria\[0\]\.text: text must not be blank"):
        loop_file.build({}, lambda _: ScriptedChatClient([]))


@pytest.mark.parametrize(
    ("agent", "place"),
    [
        ("{model: w, request: '{{ 1 // (x | int) }}'}", "loop.agent.request"),
        ("{model: w, prompt: '{{ 1 // (x | int) }}'}", "loop.agent.prompt"),
    ],
)
def test_what_can_not_be_rendered(write: Write, agent: str, place: str):
    """A template that an input's value makes fail is a problem at its place, before any call."""
    loop_file = load_loop_file(write(f"name: n\nloop:\n  agent: {agent}\n  evaluators: [json]\n"))
    client = ScriptedChatClient([])
    with pytest.raises(LoopFileError, match=rf":3:\d+: {place}: can't be rendered: ZeroDivisionError"):
        loop_file.build({"x": "0"}, lambda _: client)
    assert client.calls == []


def test_a_pattern_with_flags(write: Write):
    """A pattern may have flags; one that is none is a problem at its place."""
    good = "{type: regex, pattern: {regex: 'A.B', flags: is}}"
    assert load_loop_file(write(evaluator(good))).models == ["writer"]
    found = problems(write(evaluator("{type: regex, pattern: {regex: '(', flags: i}}")))
    assert "loop.evaluators[0].pattern.regex: '(' is no regular expression" in found[0]
    found = problems(write(evaluator("{type: regex, pattern: {regex: '(', flags: q}}")))
    assert "loop.evaluators[0].pattern.flags" in found[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: n\nloop: 3\n", "loop: must be a mapping, not 3"),
        ("name: n\nloop: {}\n", "loop.agent: is missing"),
        ("loop: {agent: {model: m, request: r}, evaluators: []}\n", "loop.evaluators: must not be empty"),
        ("name: n\nloop: {agent: {model: m}, evaluators: [json]}\n", "loop.agent.request: is missing"),
        (
            "name: n\nloop: {agent: {model: [], request: r}, evaluators: [json]}\n",
            "loop.agent.model: must not be empty",
        ),
        ("name: n\nnodes: []\nloop: {agent: {model: m, request: r}, evaluators: [json]}\n", "unknown key 'nodes'"),
        ("name: n\nloop: {agent: {model: m, request: r}, evaluators: [json], stall: 5}\n", "loop.stall"),
        (
            "name: n\ninputs: {iteration: {}}\nloop: {agent: {model: m, request: r}, evaluators: [json]}\n",
            "of the loop",
        ),
    ],
)
def test_what_is_missing_or_of_a_wrong_kind(write: Write, text: str, said: str):
    """What a file must have, and of which kind it must be."""
    found = problems(write(text))
    assert any(said in line for line in found), found


def agent(said: str) -> str:
    return f"name: n\nloop:\n  agent: {{model: w, request: r, {said}}}\n  evaluators: [json]\n"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("temperature: '0.3'", "temperature: must be a number, not '0.3'"),
        ("temperature: true", "temperature: must be a number, not true"),
        ("temperature: -1", "temperature: must be at least 0, not -1"),
        ("temperature: .nan", "temperature: '.nan' is not a finite number"),
        ("top_p: 2", "top_p: must be at most 1, not 2"),
        ("max_output_tokens: 0", "max_output_tokens: must be at least 1, not 0"),
        ("max_output_tokens: 1.0", "max_output_tokens: must be an integer, not 1.0"),
        ("top_logprobs: -1", "top_logprobs: must be at least 0, not -1"),
        ("seed: true", "seed: must be an integer, not true"),
        ("seed: 9223372036854775808", "seed: must be a whole number that 64 bits hold"),
        ("max_tool_rounds: 0", "max_tool_rounds: max_tool_rounds must be at least 1, not 0"),
        ("max_tool_rounds: true", "max_tool_rounds: must be an integer, not true"),
        ("model: [w, v, w]", "model[2]: 'w' was asked by then (it is the 1. of the list): take it out"),
        ("response_format: {name: a, schema: {}, strict: 1}", "response_format.strict: must be true or false, not 1"),
        (
            "context_providers: [{type: agent_mode, model_may_change: 1}]",
            "context_providers[0].model_may_change: must be true or false, not 1",
        ),
        (
            "context_providers: [{type: agent_mode, modes: {a: b}, default_mode: c}]",
            "context_providers[0].default_mode: default_mode: there is no mode 'c'; there are: 'a'",
        ),
        (
            "context_providers: [{type: background_agents, agents: {}, task_timeout_s: '3'}]",
            "context_providers[0].task_timeout_s: must be a number, not '3'",
        ),
    ],
)
def test_a_wrong_value_of_a_single_option_is_told_at_its_key(write: Write, said: str, problem: str):
    """Options of the agent, its client and its providers: a value of a wrong type, or that no model takes."""
    text = agent(said)
    if said.startswith("model:"):
        text = text.replace("model: w, ", "", 1)

    (found,) = problems(write(text))

    assert found.startswith(":3:")
    assert "loop.agent." in found
    assert problem in found


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("{type: length, unit: words, at_most: '6'}", "at_most: must be an integer, not '6'"),
        ("{type: length, unit: words, at_most: 6, required: 1}", "required: must be true or false, not 1"),
        ("{type: command, name: n, command: 'pytest -q'}", "command: must be a list, not 'pytest -q'"),
        ("{type: command, name: n, command: [x], timeout_s: 0}", "timeout_s: timeout_s must be above 0, not 0.0"),
        ("{type: command, name: n, command: [x], timeout_s: true}", "timeout_s: must be a number, not true"),
        (
            "{type: command, name: n, command: [x], max_output_characters: 0}",
            "max_output_characters: max_output_characters must be at least 1, not 0",
        ),
        (
            "{type: command, name: n, command: [x], answer_file: ../x}",
            "answer_file: answer_file must lie in the new directory, with a relative path, not '../x'",
        ),
        (
            "{type: ai_judge, model: j, on_failure: {next_judges: [k, k]}}",
            "on_failure.next_judges[1]: 'k' was asked by then (it is the 1. of the list): take it out",
        ),
        ("{type: ai_judge, model: j, samples: true}", "samples: must be an integer, not true"),
        (
            "{type: function_call, model: j, continue_function: {name: f, description: ' ', argument: a}}",
            "continue_function.description: description of 'f' must not be blank: the judge goes by it",
        ),
    ],
)
def test_a_wrong_value_of_a_check_or_a_judge_is_told_at_its_key(write: Write, said: str, problem: str):
    """Options of checks and judges: each at its own key, also where the class refuses it."""
    (found,) = problems(write(evaluator(said)))

    assert found.startswith(":7:")
    assert found.endswith(f"loop.evaluators[0].{problem}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (agent("tools: ['math:pi']"), "loop.agent.tools[0]: a tool must be a FunctionTool, a function"),
        (agent("auto_approve: 'math:pi'"), "loop.agent.auto_approve: auto_approve must be callable, not 3.14"),
        (
            agent("response_format: {object: 'math:pi'}"),
            "loop.agent.response_format.object: object must be a pydantic model, not 3.14",
        ),
        (
            agent("context_providers: [{type: python, object: 'math:pi'}]"),
            "loop.agent.context_providers[0].object: object must be a ContextProvider or a class of one, not 3.14",
        ),
        (
            evaluator("{type: iteration_strategy, detectors: [{type: signals, object: 'math:pi'}]}"),
            "loop.evaluators[0].detectors[0].object: object must be a detector, a class of one or a function, not 3.14",
        ),
        (
            evaluator("{type: pydantic, object: 'os:sep'}"),
            "loop.evaluators[0].object: model must be a type that pydantic can validate, not '/'",
        ),
    ],
)
def test_an_imported_object_of_a_wrong_kind_is_told_where_it_is_named(write: Write, text: str, problem: str):
    """A Python object that is not what the key wants is a problem at that key, before any call."""
    loop_file = load_loop_file(write(text))
    client = ScriptedChatClient([])

    with pytest.raises(LoopFileError) as caught:
        loop_file.build({}, lambda _: client, RunSettings(allow_imports=True))

    (found,) = caught.value.lines
    assert re.search(r"loop\.yaml:\d+:\d+: ", found)
    assert problem in found
    assert client.calls == []
