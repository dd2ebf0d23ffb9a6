"""A judge that decides by calling a function."""

import asyncio

import pytest
from fakes import RecordingAgent
from fault_server import Completion, FaultServer
from openai import AsyncOpenAI

from agents_loop import (
    AgentResponse,
    AgentSession,
    ChatMessage,
    ChatOptions,
    ChatResponse,
    ConfigurationError,
    FinishReason,
    FunctionCallContent,
    FunctionCallLoopEvaluator,
    FunctionCallLoopEvaluatorOptions,
    JsonSchemaFormat,
    JudgeFailedError,
    JudgeFailurePolicy,
    JudgeFunction,
    LoopAgent,
    LoopContext,
    LoopResult,
    StopReason,
    TextContent,
    UsageDetails,
    tool,
)
from agents_loop.clients.openai import OpenAIChatClient
from agents_loop.loop.no_verdict import is_without_verdict
from agents_loop.testing import ScriptedChatClient

FALLBACK = FunctionCallLoopEvaluatorOptions().fallback_question


def context(answer="A draft.", request="Which bike shall I buy?", **more):
    return LoopContext(RecordingAgent(), AgentSession(), request, AgentResponse(answer), **more)


def call(name="answered", arguments=None, *, text=None):
    contents = [] if text is None else [TextContent(text)]
    return ChatMessage("assistant", [*contents, FunctionCallContent("c1", name, arguments)])


def both(*names):
    return ChatMessage("assistant", [FunctionCallContent(name, name, {"question": "Why?"}) for name in names])


def judge(*replies, **options):
    client = ScriptedChatClient(replies)
    return FunctionCallLoopEvaluator(client, FunctionCallLoopEvaluatorOptions(**options)), client


def test_the_default_prompts(snapshot):
    """Function call: the instructions, the fenced message and the functions, as they are sent."""
    evaluator, _ = judge(criteria=["It names a price."], new_nonce=lambda: "NONCE")
    assert [(message.role, message.text) for message in evaluator.build_messages(context())] == snapshot
    assert evaluator.model_calls()[0][1].tools == snapshot


async def test_continue_asks_its_question():
    """`continue(question)` goes on, and the agent hears the question, and nothing else."""
    evaluator, client = judge(call("continue", {"question": " What does it cost? "}))
    word = await evaluator.evaluate(context())

    assert (word.decision, word.feedback) == ("continue", "What does it cost?")
    assert word.details == {
        "function": "continue",
        "arguments": {"question": " What does it cost? "},
        "readable": True,
    }
    assert [message.role for message in client.calls[0].messages] == ["system", "user"]
    assert [each["function"]["name"] for each in client.calls[0].options.tools] == ["continue", "answered"]


@pytest.mark.parametrize("arguments", [{"summary": "all there"}, {}, None, "", '{"summary": "all there"}'])
async def test_answered_is_the_only_pass(arguments):
    """`answered(summary)` asks for no more; the summary may be missing."""
    evaluator, _ = judge(call("answered", arguments))
    word = await evaluator.evaluate(context())

    assert word.decision == "stop"
    assert word.details["function"] == "answered"


@pytest.mark.parametrize("arguments", [{}, None, "", {"question": "  "}, {"question": 7}, {"other": "x"}])
async def test_no_question_is_the_fallback(arguments):
    """A `continue` without a question sends the fallback question: no iteration is spent on nothing."""
    evaluator, _ = judge(call("continue", arguments), call("continue", arguments))
    assert (await evaluator.evaluate(context())).feedback == FALLBACK

    evaluator, _ = judge(call("continue", arguments), fallback_question="And?")
    assert (await evaluator.evaluate(context())).feedback == "And?"


@pytest.mark.parametrize(
    ("reply", "why", "heard"),
    [
        ("It is all there.", "no function was called", "It is all there."),
        ("", "no function was called", None),
        ("VERDICT: DONE", "no function was called", "VERDICT: DONE"),
        (call("Answered"), "'Answered' was called, which was not offered", None),
        (call("approve", {}, text="fine"), "'approve' was called, which was not offered", "fine"),
        (both("answered", "approve"), "'approve' was called, which was not offered", None),
        (call("answered", '{"summary": "x'), "the arguments of 'answered' are no JSON object", None),
        (
            call("answered", '{"summary": "a", "summary": "b"}'),
            "the arguments of 'answered': the key 'summary' is given twice",
            None,
        ),
        (call("answered", "[1]"), "the arguments of 'answered' are no JSON object", None),
        ("<think>I call answered.</think>\nIt is short.", "no function was called", "It is short."),
        ("<think>I call answered.", "no function was called", None),
        (ChatMessage("tool", call("answered").contents), "no function was called", None),
        (call("answered", '{"summary": NaN}'), "the arguments of 'answered' are no JSON object", None),
        (call("answered", {"summary": float("inf")}), "the arguments of 'answered' are no JSON object", None),
        (call("answered", '{"a": ' * 70 + "1" + "}" * 70), "the arguments of 'answered' are no JSON object", None),
        (call("continue", "what is it?"), "the arguments of 'continue' are no JSON object", None),
    ],
)
async def test_what_is_unclear_is_no_pass(reply, why, heard):
    """Nothing unclear is a pass: no call, an unknown function and arguments that are none are unreadable."""
    evaluator, _ = judge(reply)
    word = await evaluator.evaluate(context())

    assert (word.decision, word.feedback) == ("continue", heard)
    assert word.note == f"the judge gave no verdict: {why}"
    assert is_without_verdict(word)


@pytest.mark.parametrize("names", [("answered", "continue"), ("continue", "answered")])
async def test_both_calls_go_on(names):
    """Where both functions are called, the run goes on."""
    evaluator, _ = judge(both(*names))
    assert (await evaluator.evaluate(context())).decision == "continue"


async def test_unreadable_replies_are_counted():
    """The policy counts unreadable replies, and raises at its limit."""
    evaluator, _ = judge("hm", "hm", on_failure=JudgeFailurePolicy(unreadable_limit=2))
    seen = context()
    assert (await evaluator.evaluate(seen)).decision == "continue"
    with pytest.raises(JudgeFailedError, match="unreadable"):
        await evaluator.evaluate(seen)


@pytest.mark.parametrize("reason", [FinishReason.LENGTH, FinishReason.REFUSAL, FinishReason.CONTENT_FILTER])
async def test_a_reply_that_ended_early_is_no_pass(reason):
    """A reply that was cut off, refused or filtered is a failure, whatever it had called by then."""
    evaluator, _ = judge(
        ChatResponse(call("answered"), finish_reason=reason), on_failure=JudgeFailurePolicy(length="raise")
    )
    with pytest.raises(JudgeFailedError, match=str(reason)):
        await evaluator.evaluate(context())


async def test_names_and_wording_are_free():
    """The functions' names, descriptions and arguments, the instructions and the feedback are the caller's."""
    evaluator, client = judge(
        call("weiter", {"frage": "Warum?"}),
        call("fertig", {}),
        continue_function=JudgeFunction("weiter", "Es fehlt etwas.", "frage"),
        answered_function=JudgeFunction("fertig", "Alles da.", "grund"),
        instructions="Rufe {continue} oder {answered}. Runde {iteration}.{criteria}",
        criteria=["kurz"],
        feedback_message_template="Die Frage: {question} ({iteration}/{max_iterations})",
    )
    word = await evaluator.evaluate(context(iteration=2, max_iterations=5))
    assert word.feedback == "Die Frage: Warum? (2/5)"
    system, user = client.calls[0].messages
    assert system.text.startswith("Rufe weiter oder fertig. Runde 2.")
    assert "- kurz" in system.text
    assert "weiter or fertig" in user.text
    assert (await evaluator.evaluate(context())).decision == "stop"


async def test_a_question_is_no_template():
    """What the judge asks is data: placeholders in it stay, and what nobody sees is removed."""
    evaluator, _ = judge(call("continue", {"question": "{question} {iteration} \u202e{criteria}"}))
    assert (await evaluator.evaluate(context())).feedback == "{question} {iteration} {criteria}"

    evaluator, _ = judge(call("continue", {"question": "\u200b\u2060"}))
    assert (await evaluator.evaluate(context())).feedback == FALLBACK


async def test_what_was_said_can_be_shown():
    """The judge sees the answer alone, or on request all that was said; always fenced."""
    evaluator, _ = judge(new_nonce=lambda: "NONCE")
    assert "<latest_response_NONCE>\nA draft.\n</latest_response_NONCE>" in evaluator.build_messages(context())[1].text


async def test_an_answer_that_is_too_long_is_cut_for_the_judge():
    """Where the prompt does not fit, the answer is cut and the judge asked again, as with every judge."""

    class TooLongError(Exception):
        code = "context_length_exceeded"

    evaluator, client = judge(TooLongError(), call("answered"))
    word = await evaluator.evaluate(context(f"BEGIN {'word ' * 4_000} END"))

    assert word.decision == "stop"
    shown = [each.messages[1].text for each in client.calls]
    assert len(shown[1]) < len(shown[0]) / 2
    assert all("BEGIN" in text and "END" in text for text in shown)


async def test_the_conversation_can_be_shown():
    """With `judge_sees="conversation"` the judge sees what was said in the run before."""
    agent = RecordingAgent()
    evaluator, client = judge(call("continue", {"question": "Why so?"}), call("answered"), judge_sees="conversation")
    await LoopAgent(agent, evaluator).run("Which?")

    assert "Why so?" in client.calls[1].messages[1].text
    assert "Why so?" not in client.calls[0].messages[1].text


async def test_a_loop_is_led_by_questions():
    """In a loop the question is the next input, and the run ends with `answered`; the judge's calls are metered."""
    agent = RecordingAgent()
    replies = [call("continue", {"question": "Why?"}), call("answered", {"summary": "ok"})]
    evaluator, _ = judge(*[ChatResponse(reply, usage=UsageDetails(10, 5)) for reply in replies])
    result = LoopResult.of(await LoopAgent(agent, evaluator).run("Which?"))

    assert result.stop_reason == StopReason.SATISFIED
    assert [[message.text for message in record.input] for record in result.iterations] == [["Which?"], ["Why?"]]
    assert [entry.usage.input_token_count for entry in result.ledger if entry.role == "evaluator"] == [10, 10]


def completion(name, arguments):
    function = {"name": name, "arguments": arguments}
    wire = {"id": "c1", "type": "function", "function": function}
    return Completion(content=None, tool_calls=(wire,), finish_reason="tool_calls")


async def test_on_the_wire(server: FaultServer):
    """Over the real SDK: the functions are sent as tools, and a call in the reply is the verdict."""
    server.add(
        completion("continue", '{"question": "What does it cost?"}'),
        completion("answered", "{}"),
        completion("answered", '{"summary": '),
        Completion(content="All is there."),
    )
    async with AsyncOpenAI(base_url=server.base_url, api_key="k") as sdk:
        evaluator = FunctionCallLoopEvaluator(OpenAIChatClient("judge", openai_client=sdk))
        words = [await evaluator.evaluate(context()) for _ in range(4)]

    assert [word.decision for word in words] == ["continue", "stop", "continue", "continue"]
    assert [word.feedback for word in words] == ["What does it cost?", None, None, "All is there."]
    assert [is_without_verdict(word) for word in words] == [False, False, True, True]
    tools = server.bodies[0]["tools"]
    assert [each["function"]["name"] for each in tools] == ["continue", "answered"]
    assert tools[0]["function"]["parameters"]["required"] == ["question"]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"continue_function": None}, TypeError, "continue_function"),
        ({"answered_function": "done"}, TypeError, "answered_function"),
        ({"answered_function": JudgeFunction("continue", "x", "y")}, ConfigurationError, "two names"),
        ({"fallback_question": " "}, ConfigurationError, "fallback_question"),
        ({"fallback_question": None}, TypeError, "fallback_question"),
        ({"criteria": "short"}, TypeError, "criteria"),
        ({"criteria": [1]}, TypeError, "criteria"),
        ({"chat_options": ChatOptions(tools=[tool(lambda: "x", name="t")])}, ConfigurationError, "tools"),
        (
            {"chat_options": ChatOptions(response_format=JsonSchemaFormat("x", {}))},
            ConfigurationError,
            "response_format",
        ),
        ({"judge_sees": "all"}, ConfigurationError, "judge_sees"),
        ({"instructions": 7}, TypeError, "instructions"),
    ],
)
def test_options_are_checked(options, error, said):
    """Wrong options are refused at once."""
    with pytest.raises(error, match=said):
        FunctionCallLoopEvaluatorOptions(**options)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        (("go on", "x", "y"), ConfigurationError),
        (("go", " ", "y"), ConfigurationError),
        (("go", "x", ""), ConfigurationError),
        ((None, "x", "y"), TypeError),
    ],
)
def test_functions_are_checked(fields, error):
    """A function needs names that can be sent, and a description."""
    with pytest.raises(error):
        JudgeFunction(*fields)


def test_a_judge_is_needed():
    """None for the client is a TypeError that names it."""
    with pytest.raises(TypeError, match="judge_client"):
        FunctionCallLoopEvaluator(None)


async def test_one_judge_serves_many_runs():
    """The evaluator keeps nothing between calls."""
    evaluator = FunctionCallLoopEvaluator(
        ScriptedChatClient(lambda messages, options: call("continue", {"question": messages[1].text[-1:]}))
    )
    words = await asyncio.gather(*[evaluator.evaluate(context(str(number))) for number in range(5)])
    assert [word.decision for word in words] == ["continue"] * 5
