"""Checks: evaluators that code decides."""

import re

import pytest
from pydantic import BaseModel

from agents_loop import (
    AgentResponse,
    AgentSession,
    ChatClientAgent,
    ChatMessage,
    Check,
    ConfigurationError,
    FunctionCallContent,
    FunctionResultContent,
    LoopAgent,
    LoopAgentOptions,
    LoopContext,
    LoopResult,
    MissingExtraError,
    check,
    json_check,
    length_check,
    pydantic_check,
    regex_check,
)
from agents_loop.checks import json_schema
from agents_loop.testing import ScriptedChatClient


async def judged(evaluator, answer):
    messages = answer if isinstance(answer, list) else [ChatMessage("assistant", answer)]
    agent = ChatClientAgent(ScriptedChatClient([]))
    return await evaluator.evaluate(LoopContext(agent, AgentSession(), "do it", AgentResponse(messages)))


async def problem(evaluator, answer):
    """What is wrong with an answer, or `None`."""
    word = await judged(evaluator, answer)
    assert word.decision == ("stop" if word.details["problem"] is None else "continue")
    return word.details["problem"]


# --- the wrapper


@pytest.mark.parametrize("finding", [True, None])
async def test_what_passes(finding):
    """Check: `True` and `None` say that nothing is wrong."""
    word = await judged(check("fine", lambda text: finding), "x")
    assert (word.decision, word.feedback) == ("stop", None)
    assert word.details == {"check": "fine", "passed": True, "problem": None}


async def test_what_fails():
    """Check: `False` and a str fail; the str, verbatim, is what the agent hears."""
    word = await judged(check("short", lambda text: "too {check} long {problem}"), "x")
    assert word.feedback == 'Your answer fails the check "short": too {check} long {problem}'
    assert word.details == {"check": "short", "passed": False, "problem": "too {check} long {problem}"}
    assert (await judged(check("short", lambda text: False), "x")).feedback.endswith('"short": it is not met')


async def test_an_own_template():
    """Check: a template's placeholders are literal, and filled in one pass."""
    evaluator = check("{problem}", lambda text: "{check}", feedback_message_template="<{check}|{problem}|{0}>")
    assert (await judged(evaluator, "x")).feedback == "<{problem}|{check}|{0}>"


async def test_it_may_be_async():
    """Check: an awaitable is awaited."""

    async def examine(text):
        return text == "x"

    assert await problem(check("x", examine), "x") is None
    assert await problem(check("x", examine), "y") == "it is not met"


@pytest.mark.parametrize("finding", [0, 1, [], {}, object(), re.match("x", "x")])
async def test_nothing_unclear_is_a_finding(finding):
    """V4: never truthiness: what is no finding is an error that names the check."""
    with pytest.raises(TypeError, match="must give True or None") as caught:
        await judged(check("odd", lambda text: finding), "x")
    assert caught.value.__notes__ == ["raised in the check 'odd'"]


async def test_a_blank_finding_is_unclear():
    """Check: a blank str could mean either."""
    with pytest.raises(ConfigurationError, match="blank"):
        await judged(check("odd", lambda text: " "), "x")


async def test_an_exception_is_no_verdict():
    """F1: a check that raises ends the run with that very exception, and the agent's work is kept."""
    error = RuntimeError("broken")

    def examine(text):
        raise error

    loop = LoopAgent(ChatClientAgent(ScriptedChatClient(["draft"])), check("odd", examine))
    with pytest.raises(RuntimeError) as caught:
        await loop.run("do it")
    assert caught.value is error
    assert LoopResult.of(error).output == "draft"


async def test_only_the_answer_is_examined():
    """C3: the checked text is the final message, not what was said before a tool call, nor the tool's result."""
    seen = []
    response = [
        ChatMessage("assistant", ["before", FunctionCallContent("1", "look", {})]),
        ChatMessage("tool", [FunctionResultContent("1", "result")]),
        ChatMessage("assistant", "after"),
    ]
    await judged(check("look", seen.append), response)
    assert seen == ["after"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [((None, len), TypeError), ((" ", len), ConfigurationError), (("x", None), TypeError), (("x", "y"), TypeError)],
)
def test_wrong_use(arguments, error):
    """Check: wrong use is found before anything ran."""
    with pytest.raises(error):
        check(*arguments)


async def test_a_loop_with_checks_alone():
    """Check: each is an evaluator of its own."""
    agent = ChatClientAgent(ScriptedChatClient(["a b c d", "a b", "a EUR 5"]))
    loop = LoopAgent(agent, [length_check("words", at_most=3), regex_check(r"EUR \d+")])
    result = LoopResult.of(await loop.run("do it"))
    assert (result.stop_reason, result.output) == ("satisfied", "a EUR 5")
    assert [record.input[-1].text for record in result.iterations[1:]] == [
        'Your answer fails the check "at most 3 words": it has 4 words, and at most 3 are asked for',
        'Your answer fails the check "EUR \\d+ is found": nothing in it matches the pattern "EUR \\d+"',
    ]


# --- length


@pytest.mark.parametrize(
    ("unit", "limits", "answer", "wrong"),
    [
        ("words", {"at_most": 2}, "one two", None),
        ("words", {"at_most": 2}, "one two three", "it has 3 words, and at most 2 are asked for"),
        ("words", {"at_least": 2}, "one", "it has 1 word, and at least 2 are asked for"),
        ("words", {"at_least": 1}, "", "it has 0 words, and at least 1 is asked for"),
        ("characters", {"at_least": 2, "at_most": 3}, " abcd\n", "it has 4 characters, and 2 to 3 are asked for"),
        ("characters", {"at_most": 3}, " abc\n", None),
        ("sentences", {"at_least": 2, "at_most": 2}, "One. Two.", None),
        ("sentences", {"at_least": 2, "at_most": 2}, "One.", "it has 1 sentence, and exactly 2 are asked for"),
        ("lines", {"at_most": 1}, "a\n\nb", "it has 2 lines, and at most 1 is asked for"),
        ("items", {"at_least": 3}, "- a\n- b\n- c", None),
        ("items", {"at_most": 0}, "- a", "it has 1 item, and at most 0 are asked for"),
    ],
)
async def test_length(unit, limits, answer, wrong):
    """Length: both limits are inclusive, and the agent hears both numbers."""
    assert await problem(length_check(unit, **limits), answer) == wrong


def test_names_of_lengths():
    """Length: a check is called by its limits."""
    assert length_check("words", at_most=50).name == "at most 50 words"
    assert length_check("items", at_least=1).name == "at least 1 item"
    assert length_check("lines", at_least=0, at_most=2).name == "0 to 2 lines"
    assert length_check("words", at_most=50, name="brief", required=False).name == "brief"


@pytest.mark.parametrize(
    ("unit", "limits", "error"),
    [
        ("words", {}, ConfigurationError),
        ("pages", {"at_most": 1}, ConfigurationError),
        ("words", {"at_most": -1}, ConfigurationError),
        ("words", {"at_least": 3, "at_most": 2}, ConfigurationError),
        ("words", {"at_most": "3"}, TypeError),
        ("words", {"at_least": True}, TypeError),
    ],
)
def test_limits_are_checked(unit, limits, error):
    """Length: a limit that can't be met or read is found before anything ran."""
    with pytest.raises(error):
        length_check(unit, **limits)


# --- regular expressions


@pytest.mark.parametrize(
    ("pattern", "must_be", "answer", "wrong"),
    [
        ("b+", "found", "abbc", None),
        ("b+", "found", "ac", 'nothing in it matches the pattern "b+"'),
        ("b+", "absent", "ac", None),
        ("b+", "absent", "abbc", 'it must not hold "bb"'),
        ("b+", "whole", " bb\n", None),
        ("b+", "whole", "bbc", 'as a whole it does not match the pattern "b+"'),
        (re.compile("B+", re.IGNORECASE), "found", "abc", None),
    ],
)
async def test_regex(pattern, must_be, answer, wrong):
    """Regular expression: found, absent, or the whole of the text."""
    assert await problem(regex_check(pattern, must_be=must_be), answer) == wrong


@pytest.mark.parametrize(
    ("pattern", "options", "error"),
    [
        ("(", {}, ConfigurationError),
        (None, {}, TypeError),
        (re.compile(b"x"), {}, TypeError),
        ("x", {"must_be": "here"}, ConfigurationError),
    ],
)
def test_patterns_are_checked(pattern, options, error):
    """Regular expression: one that is none is found before anything ran."""
    with pytest.raises(error):
        regex_check(pattern, **options)


# --- JSON

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "integer"}}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("answer", ['{"a": 1}', "[]", "null", '```json\n{"a": 1}\n```', "Here:\n```\n3\n```\nDone."])
async def test_valid_json(answer):
    """V1: JSON, bare or in the answer's only code block."""
    assert await problem(json_check(), answer) is None


@pytest.mark.parametrize("answer", ["", "{'a': 1}", 'It is {"a": 1}', '{"a": 1, "a": 2}', "NaN"])
async def test_invalid_json(answer):
    """Check: what is wrong with the JSON is what the agent hears."""
    assert (await problem(json_check(), answer)).startswith("it is not valid JSON: ")


async def test_bare_json():
    """V2: `bare` lets no fence pass."""
    assert await problem(json_check(bare=True), '```json\n{"a": 1}\n```') is not None
    assert await problem(json_check(bare=True), ' {"a": "```"}\n') is None


async def test_json_of_a_schema():
    """JSON schema: each problem with its place."""
    evaluator = json_check(SCHEMA)
    assert await problem(evaluator, '{"name": "Ada", "tags": [1]}') is None
    assert await problem(evaluator, "[]") == "$: [] is not of type 'object'"
    assert await problem(evaluator, '{"tags": ["x"]}') == (
        "\n- $: 'name' is a required property\n- $.tags[0]: 'x' is not of type 'integer'"
    )


async def test_formats_are_checked():
    """JSON schema: a format that the library knows is checked."""
    assert await problem(json_check({"format": "date"}), '"2024-02-30"') is not None
    assert await problem(json_check({"format": "date"}), '"2024-02-29"') is None


async def test_many_and_long_problems_are_cut():
    """JSON schema: what a validator quotes does not flood the agent."""
    items = ["x" * 5000] * 50
    wrong = await problem(json_check({"items": {"type": "integer"}}), str(items).replace("'", '"'))
    assert len(wrong) < 3600
    assert wrong.endswith("\n- and 40 more")


async def test_a_reference_elsewhere_is_not_fetched():
    """JSON schema: no network; what can't be resolved is an error, not a verdict."""
    with pytest.raises(Exception, match=r"127\.0\.0\.1"):
        await judged(json_check({"$ref": "http://127.0.0.1:9/schema.json"}), "1")


def test_a_schema_that_is_none():
    """JSON schema: found before anything ran."""
    with pytest.raises(ConfigurationError, match=r"at \$\.type"):
        json_check({"type": "strnig"})


def test_without_the_library(monkeypatch):
    """Errors: a missing extra says what to install; validity needs none."""

    def nothing(name):
        raise ImportError(name)

    monkeypatch.setattr(json_schema, "import_module", nothing)
    with pytest.raises(MissingExtraError, match=r"agents-loop\[jsonschema\]"):
        json_check(SCHEMA)
    assert isinstance(json_check(), Check)


class Line(BaseModel):
    what: str
    price: float


async def test_pydantic():
    """Pydantic: what the model does not accept, each with its place, without the value."""
    evaluator = pydantic_check(list[Line])
    assert await problem(evaluator, '```json\n[{"what": "x", "price": "3.5"}]\n```') is None
    assert await problem(evaluator, '[{"price": "dear"}]') == (
        "\n- $[0].what: Field required\n"
        "- $[0].price: Input should be a valid number, unable to parse string as a number"
    )
    assert await problem(pydantic_check(Line, strict=True), '{"what": "x", "price": "3.5"}') == (
        "$.price: Input should be a valid number"
    )
    assert await problem(evaluator, "none") is not None


def test_pydantic_names():
    """Pydantic: a check is called by its model."""
    assert pydantic_check(Line).name == "valid JSON of Line"
    assert pydantic_check(list[Line]).name == "valid JSON of the type"
    with pytest.raises(TypeError, match="model"):
        pydantic_check(None)


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_check_that_was_passed_before_is_named_as_a_regression(*, streaming):
    """B3: what passed and fails now is named to the agent, and recorded; what never passed is not."""
    drafts = ["tea", "milk", "cups", "tea, milk and cups"]
    checks = [check("tea", lambda text: "tea" in text), check("milk", lambda text: "milk" in text)]
    loop = LoopAgent(ChatClientAgent(ScriptedChatClient(drafts)), checks, LoopAgentOptions(evaluation_mode="all"))
    result = LoopResult.of(await (loop.run_streaming("go").final_response() if streaming else loop.run("go")))
    tea, milk = [f'Your answer fails the check "{name}": it is not met' for name in ("tea", "milk")]
    before = " (an earlier answer passed this)"
    heard = [record.input[-1].text for record in result.iterations[1:]]
    assert heard == [milk, tea + before, f"{tea}{before}\n\n{milk}{before}"]
    assert [word.details.get("regressed") for word in result.iterations[2].evaluations] == [True, True]

    again = LoopResult.of(await LoopAgent(ChatClientAgent(ScriptedChatClient(["cups", *drafts])), checks).run("go"))
    assert again.iterations[1].input[-1].text == 'Your answer fails the check "tea": it is not met'
