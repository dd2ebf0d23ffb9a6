"""What a file of our own format says is what happens when it is run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents_loop import (
    AIJudgeLoopEvaluator,
    ChatClientAgent,
    ChatMessage,
    ChatResponse,
    FunctionCallContent,
    LoopAgent,
    LoopResult,
    ModelPrice,
    StallPolicy,
    StopReason,
    UsageDetails,
)
from agents_loop.files import BuiltLoop, RunSettings, load_loop_file
from agents_loop.loop.stalls.ladder import AnotherAgentStep
from agents_loop.testing import Reply, ScriptedChatClient

Write = Callable[[str], Path]
YES = '{"gapAnalysis": "", "answered": true}'
NO = '{"gapAnalysis": "the price", "answered": false}'


class Models:
    """Scripted models by name."""

    def __init__(self, **replies: Sequence[Reply]) -> None:
        self.clients = {name: ScriptedChatClient(given, name=name) for name, given in replies.items()}

    def build(self, path: Path, *, inputs: dict[str, Any] | None = None, **settings: Any) -> BuiltLoop:
        return load_loop_file(path).build(inputs or {}, self.clients.__getitem__, RunSettings(**settings))

    def run(self, path: Path, **given: Any) -> LoopResult:
        return self.build(path, **given).run_sync()

    def sent(self, name: str, call: int = -1) -> list[str]:
        return [message.text for message in self.clients[name].calls[call].messages]


def file(**loop: Any) -> str:
    agent = {"model": "writer", "request": "Write {{ what }}.", **loop.pop("agent", {})}
    evaluators = loop.pop("evaluators", [{"type": "ai_judge", "model": "judge"}])
    inputs = {"what": {"default": "a note"}}
    return yaml.safe_dump({"name": "n", "inputs": inputs, "loop": {"agent": agent, "evaluators": evaluators, **loop}})


def test_a_judge_sends_the_agent_back(write: Write):
    """The agent is asked with its instructions and the request, in one conversation; the judge's gap sends it back."""
    path = write(
        file(
            agent={"instructions": "You write {{ what }}.", "temperature": 0.5, "max_output_tokens": 9, "name": "w"},
            evaluators=[{"type": "ai_judge", "model": "judge", "criteria": ["It is {{ what }}."]}],
        )
    )
    models = Models(writer=["first", "second"], judge=[NO, YES])
    result = models.run(path, inputs={"what": "a poem"})
    assert (result.stop_reason, result.output) == (StopReason.SATISFIED, "second")
    assert models.sent("writer", 0) == ["You write a poem.", "Write a poem."]
    assert models.sent("writer")[1:3] == ["Write a poem.", "first"]
    assert "the price" in models.sent("writer")[3]
    assert "- It is a poem." in models.sent("judge", 0)[0]
    options = models.clients["writer"].calls[0].options
    assert options is not None
    assert (options.temperature, options.max_output_tokens) == (0.5, 9)


def test_the_options_are_the_loops(write: Write):
    """Options, budgets and prices of the file reach the loop; what the caller sets stands in for them."""
    path = write(
        file(
            options={"max_iterations": 7, "fresh_context_per_iteration": True, "prices": {"judge": PRICE}},
            budget=[{"max_tokens": 100, "max_model_calls": 9}, {"max_tokens": 50, "counts_cached_input": False}],
        )
    )
    loop = Models(writer=[], judge=[]).build(path).agent
    assert isinstance(loop, LoopAgent)
    assert (loop.options.max_iterations, loop.options.fresh_context_per_iteration) == (7, True)
    assert [budget.max_tokens for budget in loop.options.budget] == [100, 50]
    assert loop.options.prices["judge"] == ModelPrice(**PRICE)
    changed = Models(writer=[], judge=[]).build(path, max_iterations=2, max_tokens=5, return_best=True).agent
    assert (changed.options.max_iterations, changed.options.return_best) == (2, True)
    limits = [(budget.max_tokens, budget.max_model_calls) for budget in changed.options.budget]
    assert limits == [(None, 9), (5, None)]


PRICE = {"input_usd_per_million": 1, "output_usd_per_million": 2}


def test_a_budget_ends_the_run(write: Write):
    """The file's budget ends the run, with the answer so far."""
    used = UsageDetails(30, 30)
    replies = [ChatResponse("first", usage=used), ChatResponse("second", usage=used)]
    models = Models(writer=replies, judge=[ChatResponse(NO, usage=used), YES])
    result = models.run(write(file(budget={"max_tokens": 100})))
    assert (result.stop_reason, result.output) == (StopReason.BUDGET_EXCEEDED, "first")


def test_stalls_are_looked_for_unless_they_are_off(write: Write):
    """Without a word a stuck loop is nudged and stopped; with `stall: off` it runs to its cap."""
    said = file(evaluators=[{"type": "completion_marker", "marker": "DONE"}], options={"max_iterations": 9})
    models = Models(writer=["same"] * 9, judge=[])
    stuck = models.run(write(said))
    assert (stuck.stop_reason, len(stuck.iterations)) == (StopReason.STALLED, 4)
    for off in ("off", "'off'"):
        path = write(said.replace("loop:", f"loop:\n  stall: {off}"))
        result = Models(writer=["same"] * 9).run(path)
        assert (result.stop_reason, len(result.iterations)) == (StopReason.MAX_ITERATIONS, 9)
    assert load_loop_file(write(said.replace("loop:", "loop:\n  stall: on"))).models == ["writer"]


async def test_the_ladder(write: Write):
    """Each step of the ladder is taken: a nudge, a new session, another model, and then a person is asked."""
    path = write(
        file(
            agent={"instructions": "I"},
            evaluators=[{"type": "completion_marker", "marker": "DONE"}],
            stall={
                "signals": [{"type": "same_answer", "repeats": 2}],
                "ladder": [
                    {"type": "nudge", "template": "Again! {observation}"},
                    "fresh_context",
                    {"type": "another_model", "model": "big"},
                    {"type": "ask_person", "question": "How on with {{ what }}?"},
                ],
            },
        )
    )
    models = Models(writer=["same"] * 4, big=["big", "big", "DONE"])
    built = models.build(path)
    asked = LoopResult.of(await built.agent.run(built.message))
    assert (asked.stop_reason, asked.stop_detail) == (StopReason.PENDING_INPUT, "How on with a note?")
    assert models.sent("writer", 2)[-1] == "Again! the last 2 answers are the same"
    assert models.sent("big", 0)[0] == "I"
    done = LoopResult.of(await built.agent.run("Say DONE.", session=asked.session))
    assert (done.stop_reason, done.output) == (StopReason.SATISFIED, "DONE")


def test_several_models(write: Write):
    """A list of models is asked in turn where one is down."""
    path = write(file(agent={"model": ["down", "writer"]}))
    models = Models(down=[TimeoutError()], writer=["a"], judge=[YES])
    assert models.run(path).output == "a"
    assert load_loop_file(path).models == ["down", "writer", "judge"]


def test_todos(write: Write):
    """A todo list of the file's agent is what its evaluator looks at."""
    path = write(file(agent={"context_providers": ["todo"]}, evaluators=["todo_completion"]))
    add = ChatMessage("assistant", [FunctionCallContent("c", "todo_add", {"items": [{"title": "t"}]})])
    complete = ChatMessage("assistant", [FunctionCallContent("d", "todo_complete", {"ids": [1]})])
    models = Models(writer=[add, "planned", complete, "done"])
    result = models.run(path)
    assert (result.stop_reason, result.output, len(result.iterations)) == (StopReason.SATISFIED, "done", 2)


def test_a_panel_in_tiers(write: Write):
    """Members may stand in tiers, and a panel within evidence within a panel is built as it stands."""
    inner = {"type": "evidence", "judge": {"type": "ai_judge", "model": "judge"}, "checks": [{"type": "json"}]}
    panel = {"type": "panel", "members": [["json"], [inner, {"type": "completion_marker", "marker": "1"}]]}
    models = Models(writer=["no", "[1]"], judge=[YES])
    result = models.run(write(file(evaluators=[panel])))
    assert (result.stop_reason, result.output) == (StopReason.SATISFIED, "[1]")
    assert len(models.clients["judge"].calls) == 1


@pytest.mark.parametrize("streaming", [False, True], ids=["run", "stream"])
async def test_a_prompted_loop(write: Write, streaming: bool):
    """An agent and an evaluator that are a prompt each are rendered in each iteration, as in dagraph."""
    path = write(
        "name: n\n"
        "loop:\n"
        "  agent: {model: w, prompt: '{{ iteration }} {{ x }} {{ previous_output }} {{ evaluator_feedback }}'}\n"
        "  evaluators: [{type: prompted, model: j, prompt: '{{ iteration }} {{ candidate }} {{ x }}'}]\n"
    )
    models = Models(w=["a", "b"], j=['{"approved": false, "feedback": "f"}', '{"approved": true}'])
    built = models.build(path, inputs={"x": "{{ y }}"})
    async with built.agent.events(built.message, streaming=streaming) as events:
        async for _ in events:
            pass
    assert events.result.stop_reason == StopReason.SATISFIED
    assert [models.sent("w", 0), models.sent("w", 1)] == [["1 {{ y }}  "], ["2 {{ y }} a f"]]
    assert [models.sent("j", 0), models.sent("j", 1)] == [["1 a {{ y }}"], ["2 b {{ y }}"]]


def test_what_comes_from_outside_is_no_template(write: Write):
    """An input's value, an answer and a gap are values: what looks like a template in them stays as it is."""
    path = write(file(evaluators=[{"type": "ai_judge", "model": "judge", "criteria": ["It is {{ what }}."]}]))
    gap = NO.replace("the price", "{{ 7 * 7 }}")
    models = Models(writer=["{{ 8 * 8 }}", "b"], judge=[gap, YES])
    models.run(path, inputs={"what": "{{ 6 * 6 }}{% if %}"})
    assert models.sent("writer", 0) == ["Write {{ 6 * 6 }}{% if %}."]
    assert "- It is {{ 6 * 6 }}{% if %}." in models.sent("judge", 0)[0]
    assert "{{ 7 * 7 }}" in models.sent("writer")[-1]
    assert "{{ 8 * 8 }}" in models.sent("judge", 0)[1]


def test_python_objects(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where imports are allowed, agents, tools, providers, evaluators and functions of one's own are used."""
    (tmp_path / "mine_to_run.py").write_text((Path(__file__).parent / "own_tools.py").read_text("utf-8"))
    monkeypatch.delitem(sys.modules, "mine_to_run", raising=False)
    refer = "mine_to_run:{}".format
    path = write(
        file(
            agent={
                "tools": [refer("add"), refer("publish")],
                "context_providers": [{"type": "python", "object": refer("Ruled")}],
                "auto_approve": refer("approves"),
            },
            evaluators=[
                {"type": "python", "object": refer("is_done")},
                {"type": "python", "object": refer("Done")},
                {"type": "check", "name": "plain", "object": refer("is_plain")},
                {"type": "citations", "allowed": {"object": refer("cited")}, "at_least": 0},
                {"type": "pass_token", "model": "judge", "pass_token": "OK", "sources": {"object": refer("sources")}},
                {"type": "ai_judge", "model": "judge", "feedback_filter": refer("shortened")},
                {"type": "iteration_strategy", "detectors": [{"type": "signals", "object": refer("signals")}]},
            ],
        )
    )
    call = ChatMessage("assistant", [FunctionCallContent("c", "publish", {"text": "t"})])
    models = Models(writer=[call, "not yet", "done"], judge=["OK", YES])
    result = models.run(path, allow_imports=True)
    assert (result.stop_reason, result.output) == (StopReason.SATISFIED, "done")
    assert "Be brief." in models.sent("writer", 0)[0]
    assert "A manual." in models.sent("judge", 0)[1]
    own = "name: n\nloop: {agent: {object: 'mine_to_run:agent', request: r}, evaluators: [{type: python, object: "
    result = models.run(write(own + "'mine_to_run:is_done'}]}"), allow_imports=True)
    assert result.output == "done by an agent of my own"
    pydantic = file(evaluators=[{"type": "pydantic", "object": refer("Line")}])
    assert (
        Models(writer=['{"item": 3}', '{"item": "t"}']).run(write(pydantic), allow_imports=True).output
        == '{"item": "t"}'
    )


def test_the_judges_options_are_its_own(write: Write):
    """What the file says of a judge is what its options hold."""
    judge = {
        "type": "ai_judge",
        "model": "judge",
        "escalate_to": "big",
        "verdict_fields": ["score"],
        "feedback_filter": None,
        "chat_options": {"temperature": 0, "response_format": "json_object", "additional_properties": {"a": [1]}},
        "on_failure": {"error": ["retry", "next_judge", "stop"], "next_judges": ["big"], "retries": 1},
    }
    loop = Models(writer=[], judge=[], big=[]).build(write(file(evaluators=[judge]))).agent
    evaluator = loop.evaluators[0]
    assert isinstance(evaluator, AIJudgeLoopEvaluator)
    options = evaluator.options
    assert options.feedback_filter is None
    assert (options.chat_options.temperature, options.chat_options.response_format) == (0, "json_object")
    assert options.on_failure.error == ["retry", "next_judge", "stop"]
    assert options.on_failure.further_judges == (options.escalate_to,)


def test_validate_describes_it(write: Write):
    """The file tells its cap, its evaluators and its models."""
    assert load_loop_file(write(file(options={"max_iterations": 1}))).describe() == [
        "✓ n: a loop of at most 1 iteration",
        "  evaluators: ai_judge",
        "  models: writer, judge",
    ]
    assert load_loop_file(write(file())).waves == [["loop"]]


def test_the_same_agent_with_another_model(write: Write):
    """`another_model` is the agent as it stands, but for its model."""
    path = write(
        file(agent={"instructions": "I"}, stall={"ladder": [{"type": "another_model", "model": "big"}, "stop"]})
    )
    models = Models(writer=[], judge=[], big=[])
    loop = models.build(path).agent
    policy = loop.options.stall
    assert isinstance(policy, StallPolicy)
    step = policy.ladder[0]
    assert isinstance(step, AnotherAgentStep)
    assert isinstance(step.as_agent, ChatClientAgent)
    assert (step.as_agent.instructions, step.as_agent.chat_client.inner) == ("I", models.clients["big"])
