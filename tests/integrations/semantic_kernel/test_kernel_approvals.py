"""A loop that waits for approval, as an agent of Semantic Kernel: what is seen of it, and how it is answered."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("semantic_kernel")

from kernel_fakes import chat_agent
from semantic_kernel.agents import ChatHistoryAgentThread, SequentialOrchestration
from semantic_kernel.agents.runtime import InProcessRuntime
from semantic_kernel.contents import ChatHistory, ChatMessageContent

from agents_loop import (
    ChatClientAgent,
    ChatMessage,
    ConfigurationError,
    DelegateLoopEvaluator,
    FunctionCallContent,
    LoopAgent,
    LoopAgentOptions,
    LoopResult,
    StopReason,
    TextContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    tool,
)
from agents_loop.integrations.semantic_kernel import (
    AgentSessionThread,
    SemanticKernelAgent,
    approval_message,
    approval_requests,
    as_semantic_kernel_agent,
)
from agents_loop.integrations.semantic_kernel.contents import kernel_messages, our_message
from agents_loop.testing import ScriptedChatClient

CALL = FunctionCallContent("c1", "order", {"item": "pen"})
ASKED = ChatMessage("assistant", [CALL])
SENTENCE = 'Waiting for approval of order({"item": "pen"}).'
is_done = DelegateLoopEvaluator(lambda context: "again" if "not yet" in context.last_response.text else None)


class Buyer:
    """A loop over a tool that needs approval, and its agent in Semantic Kernel."""

    def __init__(self, *replies, streams="final", looped=True, **options):
        self.ordered = []

        @tool(approval_required=True)
        async def order(item: str) -> str:
            """Order."""
            self.ordered.append(item)
            return "ordered"

        self.model = ScriptedChatClient(list(replies or (ASKED, "done")))
        inner = ChatClientAgent(self.model, tools=[order])
        self.loop = LoopAgent(inner, is_done, LoopAgentOptions(**options)) if looped else inner
        self.agent = as_semantic_kernel_agent(self.loop, name="buyer", streams=streams)

    def heard(self):
        return [message.text for message in self.model.calls[-1].messages]


async def whole(agent, *args, **given):
    items = [item async for item in agent.invoke_stream(*args, **given)]
    return items[0].thread, sum((item.message for item in items[1:]), items[0].message)


async def once(agent, *args, **given):
    item = await agent.get_response(*args, **given)
    return item.thread, item.message


@pytest.mark.parametrize("ask", [once, whole])
@pytest.mark.parametrize("made", [{}, {"streams": "all"}, {"looped": False}], ids=str)
@pytest.mark.parametrize("make_thread", [lambda: None, ChatHistoryAgentThread])
async def test_a_request_is_seen_and_answered(ask, made, make_thread):
    """Outward: a request is a sentence and stands in the metadata; its answer in the same thread resumes the run."""
    buyer = Buyer(**made)
    thread, message = await ask(buyer.agent, "Buy.", thread=make_thread())
    assert str(message) == SENTENCE
    (request,) = approval_requests(message)
    assert request.tool_call == CALL
    assert json.loads(json.dumps(message.metadata["approval_requests"]))[0]["request_id"] == request.request_id
    assert buyer.ordered == []
    thread, message = await ask(buyer.agent, approval_message(request, approved=True), thread=thread)
    assert (str(message), buyer.ordered, approval_requests(message)) == ("done", ["pen"], [])


@pytest.mark.parametrize("ask", [once, whole])
async def test_a_request_follows_what_the_agent_wrote(ask):
    """Outward: text beside a request is shown, the sentence on a line of its own, and what is not sent is no crash."""
    reply = ChatMessage("assistant", [TextReasoningContent("hm"), TextContent("I will."), CALL])
    _, message = await ask(Buyer(reply).agent, "Buy.")
    assert str(message) == f"I will.\n{SENTENCE}"


async def test_a_rejected_call_does_not_run():
    """Outward: an answer may say no, and may have been stored as JSON in between."""
    buyer = Buyer()
    item = await buyer.agent.get_response("Buy.")
    answer = approval_message(approval_requests(item.message), approved=False)
    assert str(answer) == 'Not approved: order({"item": "pen"}).'
    stored = ChatMessageContent.model_validate_json(answer.model_dump_json())
    item = await buyer.agent.get_response(stored, thread=item.thread)
    assert (str(item.message), buyer.ordered) == ("done", [])


async def test_requests_may_be_answered_one_by_one():
    """Outward: what is left is asked for again, in the same thread."""
    other = FunctionCallContent("c2", "order", {"item": "ink"})
    buyer = Buyer(ChatMessage("assistant", [CALL, other]), "done")
    item = await buyer.agent.get_response("Buy.", thread=ChatHistoryAgentThread())
    first, second = approval_requests(item.message)
    item = await buyer.agent.get_response(approval_message(first, approved=True), thread=item.thread)
    assert approval_requests(item.message) == [second]
    item = await buyer.agent.get_response(approval_message(second, approved=True), thread=item.thread)
    assert (str(item.message), buyer.ordered) == ("done", ["pen", "ink"])


async def test_the_count_goes_on_with_fresh_context():
    """Outward: a run that waits in a session of the loop's own goes on in that session, its iterations counted on."""
    buyer = Buyer("not yet", ASKED, "done", fresh_context_per_iteration=True)
    item = await buyer.agent.get_response("Buy.")
    item = await buyer.agent.get_response(
        approval_message(approval_requests(item.message), approved=True), thread=item.thread
    )
    result = LoopResult.of(item.message.metadata["agents_loop"])
    assert (str(item.message), buyer.ordered) == ("done", ["pen"])
    assert result.iterations[0].number > 1


async def test_a_history_keeps_the_sentences():
    """Outward: a history thread has a sentence for each message; later runs read them, and nothing is answered twice."""
    buyer = Buyer(ASKED, "done", "more")
    thread = ChatHistoryAgentThread()
    item = await buyer.agent.get_response("Buy.", thread=thread)
    answer = approval_message(approval_requests(item.message), approved=True)
    await thread.on_new_message(answer)
    await buyer.agent.get_response(thread=thread)
    await buyer.agent.get_response("And now?", thread=thread)
    said = ["Buy.", SENTENCE, 'Approved: order({"item": "pen"}).', "done", "And now?"]
    assert buyer.heard() == said
    assert [str(message) async for message in thread.get_messages()] == [*said, "more"]
    ChatHistory(messages=[answer, item.message]).serialize()
    with pytest.raises(ConfigurationError, match="waits for none"):
        await buyer.agent.get_response(approval_message(approval_requests(item.message), approved=True), thread=thread)


async def test_without_an_answer_a_new_run_begins():
    """Outward: what is said instead of an answer begins a new run, in the thread as it stands."""
    buyer = Buyer(ASKED, "fine")
    item = await buyer.agent.get_response("Buy.", thread=ChatHistoryAgentThread())
    item = await buyer.agent.get_response("Never mind.", thread=item.thread)
    assert (str(item.message), buyer.heard()) == ("fine", ["Buy.", SENTENCE, "Never mind."])


async def test_a_resumed_run_that_fails_can_be_answered_again():
    """Outward: the run that waits is remembered until it has gone on."""
    buyer = Buyer(ASKED, OSError("gone"), "done")
    item = await buyer.agent.get_response("Buy.", thread=ChatHistoryAgentThread())
    answer = approval_message(approval_requests(item.message), approved=True)
    with pytest.raises(OSError, match="gone"):
        await buyer.agent.get_response(answer, thread=item.thread)
    item = await buyer.agent.get_response(answer, thread=item.thread)
    assert (str(item.message), buyer.ordered) == ("done", ["pen"])


async def test_the_answer_may_come_in_another_process():
    """Outward: a thread made of the stored session resumes the run."""
    buyer = Buyer()
    item = await buyer.agent.get_response("Buy.")
    session = LoopResult.of(item.message.metadata["agents_loop"]).session
    stored = json.dumps(await buyer.loop.serialize_session(session))
    again = AgentSessionThread(buyer.loop, await buyer.loop.deserialize_session(json.loads(stored)))
    answer = approval_message(approval_requests(item.message), approved=True)
    assert str((await buyer.agent.get_response(answer, thread=again)).message) == "done"
    assert buyer.ordered == ["pen"]


async def test_in_a_sequence_the_next_agent_reads_the_sentence():
    """Outward: a request does not break an orchestration; the next agent reads what waits."""
    editor = chat_agent("edited", name="editor")
    runtime = InProcessRuntime()
    runtime.start()
    result = await SequentialOrchestration(members=[Buyer().agent, editor]).invoke(task="Buy.", runtime=runtime)
    value = await result.get(timeout=60)
    await runtime.stop_when_idle()
    assert str(value) == "edited"
    assert editor.service.inputs == [[("assistant", SENTENCE)]]


@pytest.mark.parametrize("streaming", [False, True])
async def test_there_and_back_again(streaming):
    """Outward and inward: a loop around the wrapped loop waits for the same request, and its answer gets through."""
    buyer = Buyer()
    outer = LoopAgent(SemanticKernelAgent(buyer.agent), is_done)

    async def run(*given, **options):
        stream = outer.run_streaming(*given, **options) if streaming else None
        return await (outer.run(*given, **options) if stream is None else stream.final_response())

    response = await run("Buy.")
    result = LoopResult.of(response)
    assert result.stop_reason == StopReason.PENDING_APPROVAL
    (request,) = [c for m in response.messages for c in m.contents if isinstance(c, ToolApprovalRequestContent)]
    answer = ChatMessage("user", [ToolApprovalResponseContent(request.request_id, True, request.tool_call)])
    assert ((await run(answer, session=result.session)).text, buyer.ordered) == ("done", ["pen"])


def test_an_answer_is_a_message_of_its_own():
    """Outward and inward: an answer goes over and back; only a user's message carries one, and in the past it is said."""
    answer = ToolApprovalResponseContent("r", True, CALL)
    first, second = kernel_messages([ChatMessage("user", ["And hurry.", answer])])
    assert our_message(first) == ChatMessage("user", [answer])
    assert str(second) == "And hurry."
    assert our_message(first, is_past=True).text == 'Approved: order({"item": "pen"}).'
    first.role = "assistant"
    assert our_message(first).contents == [TextContent('Approved: order({"item": "pen"}).')]
