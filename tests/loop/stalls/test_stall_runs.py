from __future__ import annotations

import json
import random
from typing import Any

from fakes import WAYS, RecordingAgent, ScriptedEvaluator, Way

from agents_loop import (
    AgentSession,
    AnotherAgentStep,
    AskPersonStep,
    FreshContextStep,
    LoopAgent,
    LoopAgentOptions,
    LoopEvaluation,
    LoopResult,
    NudgeStep,
    StallPolicy,
    StopReason,
    StopStep,
    accept_answer,
)

ENDS = {StopReason.SATISFIED, StopReason.MAX_ITERATIONS, StopReason.STALLED, StopReason.PENDING_INPUT}


def drawn_word(draw: random.Random) -> LoopEvaluation:
    if draw.random() < 0.05:
        return LoopEvaluation.stop()
    if draw.random() < 0.1:
        return LoopEvaluation.ask("How?", draw.choice([None, "more"]))
    return draw.choice(
        [
            LoopEvaluation.continue_("more", score=draw.choice([None, 0.5, 0.6])),
            LoopEvaluation.continue_(draw.choice(["a", "b"])),
            LoopEvaluation.continue_with_messages("look"),
            LoopEvaluation.continue_(),
        ]
    )


def drawn_loop(seed: int) -> tuple[LoopAgent, RecordingAgent, RecordingAgent]:
    """A loop, its agent, and the one that may take over."""
    draw = random.Random(seed)
    texts = [draw.choice(["same", "same", f"draft {number}", "", "x y z"]) for number in range(40)]
    agent = RecordingAgent(answer=lambda call, number: texts[number % 40])
    other = RecordingAgent(answer=lambda call, number: texts[7 * number % 40])
    steps: list[Any] = [NudgeStep(), FreshContextStep(), AnotherAgentStep(other), AskPersonStep()]
    ladder = [*draw.choices(steps, k=draw.randint(0, 4)), draw.choice([StopStep(), AskPersonStep()])]
    options = LoopAgentOptions(
        max_iterations=draw.choice([5, 30, 1000]),
        stall=StallPolicy(ladder=ladder),
        fresh_context_per_iteration=draw.random() < 0.3,
        return_best=draw.random() < 0.5,
        evaluate_final_iteration=draw.random() < 0.5,
    )
    words = [drawn_word(draw) for _ in range(40)]
    return LoopAgent(agent, ScriptedEvaluator(words), options), agent, other


async def told(seed: int, way: Way) -> list[Any]:
    """What a drawn loop does, to its end, with a person who answers from another process."""
    draw = random.Random(-seed)
    loop, agent, other = drawn_loop(seed)
    session = AgentSession() if seed % 2 else None
    message: Any = "the request"
    facts: list[Any] = []
    for _ in range(6):
        response = await way(loop, message, session=session)
        result = LoopResult.of(response)
        assert result is not None
        assert result.stop_reason in ENDS
        assert len(result.iterations) <= 60
        assert result.best is not None
        stalls = [record.stall for record in result.iterations]
        facts.append((result.stop_reason, result.stop_detail, result.output, response.text, stalls, result.best.number))
        if result.stop_reason != StopReason.PENDING_INPUT:
            break
        assert result.session is not None
        stored = json.dumps(await agent.serialize_session(result.session))
        session = await agent.deserialize_session(json.loads(stored))
        message = accept_answer() if draw.random() < 0.2 else "an answer"
    return [facts, agent.inputs, other.inputs]


async def test_drawn_loops_end_and_run_equals_stream():
    """Law 8: 300 drawn loops with stalls, ladders, questions and pauses end, and do the same run or streamed."""
    for seed in range(300):
        assert await told(seed, WAYS[0]) == await told(seed, WAYS[1]), seed
