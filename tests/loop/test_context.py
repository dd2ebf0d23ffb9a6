"""What an evaluator sees of a run beyond the latest answer."""

from __future__ import annotations

import pytest
from fakes import RecordingAgent, Way, texts

from agents_loop import AgentResponse, AgentSession, DelegateLoopEvaluator, LoopAgent, LoopAgentOptions, LoopContext


def watching(seen: list, until: int) -> DelegateLoopEvaluator:
    """Goes on until that iteration, and notes what it sees of the run."""

    def look(context: LoopContext) -> str | bool:
        records = context.iterations
        seen.append([(record.number, texts(record.input), record.response.text) for record in records])
        assert records[-1].number == context.iteration
        assert records[-1].response is context.last_response
        assert records[-1].evaluations == ()
        assert all(record.evaluations for record in records[:-1])
        return f"more {context.iteration}" if context.iteration < until else False

    return DelegateLoopEvaluator(look)


@pytest.mark.parametrize("fresh", [False, True])
async def test_an_evaluator_sees_all_iterations_so_far(agent: RecordingAgent, invoke: Way, fresh: bool):
    """Context: each completed iteration is there, with its input, run or streamed, the judged one last."""
    seen: list = []
    options = LoopAgentOptions(fresh_context_per_iteration=fresh)
    await invoke(LoopAgent(agent, watching(seen, 3), options))
    assert [[number for number, _, _ in records] for records in seen] == [[1], [1, 2], [1, 2, 3]]
    last = seen[-1]
    assert [answer for _, _, answer in last] == ["reply 1", "reply 2", "reply 3"]
    assert last[0][1] == [("user", "the request")]
    assert last[1][1][-1][1] == ("## Feedback\n\n- more 1" if fresh else "more 1")


async def test_each_of_nested_loops_sees_its_own(agent: RecordingAgent, invoke: Way):
    """Context: an outer evaluator's iterations are runs of the inner loop."""
    inner_seen: list = []
    outer_seen: list = []
    inner = LoopAgent(agent, watching(inner_seen, 2))
    await invoke(LoopAgent(inner, watching(outer_seen, 2)))
    assert [len(records) for records in inner_seen] == [1, 2, 1, 2]
    assert [len(records) for records in outer_seen] == [1, 2]


async def test_the_cap_is_told_and_can_not_be_written(agent: RecordingAgent, invoke: Way):
    """Context: evaluators know how many iterations there can be, and change neither that nor what there was."""
    caps = []

    def look(context: LoopContext) -> bool:
        caps.append(context.max_iterations)
        with pytest.raises(AttributeError):
            context.max_iterations = 99
        with pytest.raises(AttributeError):
            context.iterations = ()
        return True

    await invoke(LoopAgent(agent, DelegateLoopEvaluator(look), LoopAgentOptions(max_iterations=3)))
    assert caps == [3, 3]


def test_a_context_made_by_hand_needs_neither():
    """Context: by hand it has the default cap, and no iterations."""
    context = LoopContext(RecordingAgent(), AgentSession(), "go", AgentResponse("done"))
    assert (context.max_iterations, context.iterations) == (LoopAgent.DEFAULT_MAX_ITERATIONS, ())
