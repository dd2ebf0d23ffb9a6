"""A loop that is written as a file, and built of it again, makes the same calls."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import own_tools
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agents_loop import (
    AgentModeProvider,
    AIAgent,
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    AnotherAgentStep,
    AskPersonStep,
    BackgroundAgentsProvider,
    BackgroundTaskCompletionLoopEvaluator,
    ChatClientAgent,
    ChatOptions,
    CompletionMarkerLoopEvaluator,
    CompletionMarkerLoopEvaluatorOptions,
    DelegateLoopEvaluator,
    EvidenceLoopEvaluator,
    FallbackChatClient,
    FlatScoreSignal,
    FreshContextStep,
    FunctionCallLoopEvaluator,
    IterationStrategyLoopEvaluator,
    IterationStrategyLoopEvaluatorOptions,
    JsonSchemaFormat,
    JudgeFailurePolicy,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    LoopEvaluator,
    LoopResult,
    NearSameAnswerSignal,
    NudgeStep,
    PairwiseJudge,
    PairwiseJudgeOptions,
    PanelLoopEvaluator,
    PanelLoopEvaluatorOptions,
    PassTokenLoopEvaluator,
    PassTokenLoopEvaluatorOptions,
    PreferenceLoopEvaluator,
    ReviewSignalDetector,
    RubricCriterion,
    RubricLoopEvaluator,
    RubricLoopEvaluatorOptions,
    SameAnswerSignal,
    StallPolicy,
    StopStep,
    StrategyThresholds,
    TodoCompletionLoopEvaluator,
    TodoProvider,
    check,
    citation_check,
    command_check,
    json_check,
    length_check,
    pydantic_check,
    regex_check,
)
from agents_loop.files import CannotWriteError, RunSettings, dump_loop_file, load_loop_file
from agents_loop.testing import ScriptedChatClient

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    [
        "{{ x }}",
        "{% if %}",
        "{# c #}",
        "a\nb\n",
        " lead",
        "trail ",
        "\n\n",
        "yes",
        "0o7",
        "1e3",
        "- a",
        "a: b",
        "\r\n{{",
        "~",
        "{{{ %}",
        "a\x85 b",
        "\u2028",
        "\ufeffx",
    ]
)
words = texts.filter(lambda text: bool(text.strip()))


def judged(messages: Any, options: Any) -> str:
    """Says what depends on nothing but the prompt, so that the same loop makes the same calls."""
    said = _plain("".join(message.text for message in messages))
    return f'{{"gapAnalysis": "gap {len(said) % 7}", "answered": {str(len(said) % 5 == 0).lower()}}}'


def wrote(messages: Any, options: Any) -> str:
    return f"draft {len(messages)} of {len(messages[-1].text)}"


def _plain(text: str) -> str:
    return re.sub(r"[0-9a-f]{16}", "NONCE", text)


def models() -> dict[str, ScriptedChatClient]:
    return {name: ScriptedChatClient(wrote if name == "writer" else judged, model_id=name) for name in NAMES}


NAMES = ("writer", "judge", "big")
CLIENTS = models()


def client(name: str) -> Any:
    return st.just(CLIENTS[name])


def options_of(kind: Any, **strategies: Any) -> Any:
    """Options of which each may be left as it is."""
    return st.fixed_dictionaries({}, optional=strategies).map(lambda given: kind(**given))


chat_options = options_of(
    ChatOptions,
    temperature=st.floats(0, 2),
    max_output_tokens=st.integers(1, 99),
    stop_sequences=st.lists(words, max_size=2),
    additional_properties=st.dictionaries(st.sampled_from("ab"), st.integers() | texts),
)
judge_options = options_of(
    AIJudgeLoopEvaluatorOptions,
    instructions=texts.map(lambda text: f"{text}{{criteria}}"),
    criteria=st.lists(texts, max_size=3),
    feedback_message_template=texts,
    feedback_filter=st.none() | st.just(own_tools.shortened),
    confidence_margin=st.floats(0, 1),
    samples=st.integers(1, 2),
    escalate_to=client("big"),
    verdict_fields=st.lists(st.sampled_from(["reasoning", "score"]), max_size=2, unique=True),
    judge_sees=st.sampled_from(["response", "messages", "conversation"]),
    max_answer_chars=st.integers(200, 999),
    chat_options=chat_options,
    on_failure=options_of(
        JudgeFailurePolicy,
        error=st.sampled_from(["raise", ("retry", "stop"), "continue"]),
        next_judges=client("big").map(lambda big: (big,)),
        timeout_s=st.floats(1, 9),
    ),
)
criteria = st.lists(st.sampled_from("abc"), min_size=1, unique=True).flatmap(
    lambda ids: st.tuples(*[st.builds(RubricCriterion, st.just(each), words, weight=st.floats(0.1, 9)) for each in ids])
)
checks = st.one_of(
    st.builds(length_check, st.sampled_from(["words", "lines"]), at_most=st.integers(0, 9)),
    st.builds(
        regex_check, st.sampled_from(["a+", r"\d \{x\}", "{{ x }}"]), must_be=st.sampled_from(["found", "absent"])
    ),
    st.builds(regex_check, st.just(re.compile("(a)b", re.IGNORECASE)), name=words, required=st.booleans()),
    st.builds(json_check, st.none() | st.just({"type": "object"}), bare=st.booleans()),
    st.builds(
        citation_check, st.just(["m#1"]) | st.just("request") | st.just(own_tools.cited), at_least=st.integers(0, 2)
    ),
    st.builds(check, words, st.just(own_tools.is_plain), feedback_message_template=st.none() | texts),
    st.builds(pydantic_check, st.just(own_tools.Line), strict=st.booleans()),
    st.builds(command_check, st.just("tests"), st.just([sys.executable, "-c", ""]), env=st.just({"A": "b"})),
)
judges = st.one_of(
    st.builds(AIJudgeLoopEvaluator, client("judge"), judge_options),
    st.builds(
        RubricLoopEvaluator,
        client("judge"),
        criteria,
        options_of(RubricLoopEvaluatorOptions, score_threshold=st.floats(0, 1)),
    ),
    st.builds(
        PassTokenLoopEvaluator,
        client("judge"),
        options_of(
            PassTokenLoopEvaluatorOptions,
            pass_token=st.just("OK {{ x }}"),
            sources=texts | st.lists(st.tuples(words, texts), max_size=2) | st.just(own_tools.sources),
        ),
    ),
    st.builds(FunctionCallLoopEvaluator, client("judge")),
    st.builds(
        AIJudgeLoopEvaluator, client("judge"), st.builds(AIJudgeLoopEvaluatorOptions, design=st.just("requirements"))
    ),
)
leaves = st.one_of(
    judges,
    checks,
    st.builds(
        CompletionMarkerLoopEvaluator,
        words,
        options_of(CompletionMarkerLoopEvaluatorOptions, feedback_message_template=texts),
    ),
    st.builds(DelegateLoopEvaluator, st.just(own_tools.is_done)),
    st.builds(
        PreferenceLoopEvaluator,
        st.builds(
            PairwiseJudge, client("judge"), options_of(PairwiseJudgeOptions, criteria=st.lists(texts, max_size=2))
        ),
    ),
)
evaluators: Any = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(PanelLoopEvaluator, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            PanelLoopEvaluator,
            st.lists(st.lists(inner, min_size=1, max_size=2), min_size=1, max_size=2),
            options_of(
                PanelLoopEvaluatorOptions, vote=st.sampled_from(["unanimous", "mean"]), threshold=st.floats(0, 1)
            ),
        ),
        st.builds(EvidenceLoopEvaluator, inner, st.lists(checks, min_size=1, max_size=2)),
        st.builds(
            IterationStrategyLoopEvaluator,
            st.lists(
                inner | st.builds(ReviewSignalDetector, client("judge")) | st.just(own_tools.signals),
                min_size=1,
                max_size=2,
            ),
            options_of(
                IterationStrategyLoopEvaluatorOptions,
                thresholds=options_of(StrategyThresholds, min_confidence=st.floats(0, 1)),
                on_escalate=st.sampled_from(["ask", "abort"]),
                feedback_message_templates=st.just({"retry": "again {issues}"}),
            ),
        ),
    ),
    max_leaves=4,
)
agents = st.builds(
    ChatClientAgent,
    client("writer"),
    instructions=st.none() | texts,
    name=st.none() | words,
    options=st.none() | chat_options,
    max_tool_rounds=st.integers(1, 9),
    tools=st.lists(st.sampled_from([own_tools.add, own_tools.publish]), max_size=2, unique=True),
    auto_approve=st.none() | st.just(own_tools.approves),
)
stalls = st.one_of(
    st.none(),
    st.just(StallPolicy()),
    st.builds(
        StallPolicy,
        signals=st.lists(
            st.builds(SameAnswerSignal, st.integers(2, 4))
            | st.builds(FlatScoreSignal, deviation=st.floats(0.01, 1))
            | st.builds(NearSameAnswerSignal, similarity=st.floats(0.1, 1)),
            min_size=1,
            max_size=2,
        ),
        ladder=st.tuples(
            st.builds(NudgeStep, template=st.none() | words) | st.just(FreshContextStep()), st.just(StopStep())
        )
        | st.tuples(st.builds(AskPersonStep, question=st.none() | words)),
    ),
)
budgets = options_of(LoopBudget, max_tokens=st.integers(500, 9999), deadline_s=st.floats(10, 99)).filter(bool)
loop_options = options_of(
    LoopAgentOptions,
    max_iterations=st.integers(1, 3),
    fresh_context_per_iteration=st.booleans(),
    on_behalf_of_author_name=words,
    evaluate_final_iteration=st.booleans(),
    evaluation_mode=st.sampled_from(["first", "all"]),
    on_bad_response=st.sampled_from(["evaluate", "retry", "stop"]),
    return_best=st.booleans(),
    stall=stalls,
    budget=st.integers(500, 9999).map(lambda most: LoopBudget(max_tokens=most, name="b"))
    | st.lists(st.floats(10, 99).map(lambda most: LoopBudget(deadline_s=most)), min_size=1, max_size=2),
)
loops = st.builds(LoopAgent, agents, st.lists(evaluators, min_size=1, max_size=3), loop_options)


def rebuilt(text: str, path: Path, clients: dict[str, ScriptedChatClient]) -> Any:
    path.write_text(text, encoding="utf-8", newline="")
    return load_loop_file(path).build({}, clients.__getitem__, RunSettings(allow_imports=True))


async def calls_of(loop: LoopAgent, request: str, clients: dict[str, ScriptedChatClient]) -> Any:
    """What the run sends to each model, and how it ends; nonces aside."""
    for each in clients.values():
        each.calls.clear()
    try:
        result = LoopResult.of(await loop.run(request))
        ending: Any = (result.stop_reason, result.output)
    except Exception as error:  # noqa: BLE001 - the same error is the same behaviour
        ending = type(error).__name__
    sent = {
        name: sorted(
            _plain(repr(([(message.role, message.text) for message in call.messages], _asked(call.options))))
            for call in each.calls
        )
        for name, each in clients.items()
    }
    return ending, sent


def _asked(options: ChatOptions | None) -> Any:
    if options is None:
        return {}
    fields = {name: getattr(options, name) for name in options.__slots__}
    fields["tools"] = [getattr(each, "name", each) for each in options.tools]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items() if value}


@given(loop=loops, request=words, description=st.none() | texts)
@settings(
    deadline=None, max_examples=60, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
async def test_written_and_built_again_it_does_the_same(
    tmp_path: Path, loop: LoopAgent, request: str, description: str | None
):
    """Round trip: the file's loop makes the same calls and ends alike, and is written as the same file."""
    text = dump_loop_file(loop, name="n", request=request, description=description)
    clients = models()
    built = rebuilt(text, tmp_path / "loop.yaml", clients)
    assert built.message.text == request
    assert dump_loop_file(built.agent, name="n", request=request, description=description) == text
    assert await calls_of(built.agent, request, clients) == await calls_of(loop, request, CLIENTS)


def test_what_adds_to_an_agents_runs(tmp_path: Path):
    """Context providers, their evaluators, several models and another model are written too."""
    agent = ChatClientAgent(
        FallbackChatClient(CLIENTS["writer"], CLIENTS["big"]),
        context_providers=[
            TodoProvider(),
            AgentModeProvider({"go": "Go.", "rest": "Rest."}, default_mode="rest", model_may_change=False),
            BackgroundAgentsProvider(
                {"helper": ChatClientAgent(CLIENTS["big"], description="helps")}, task_timeout_s=5.0
            ),
        ],
    )
    other = ChatClientAgent(CLIENTS["big"], context_providers=agent.context_providers)
    judge = AIJudgeLoopEvaluator(
        CLIENTS["judge"],
        AIJudgeLoopEvaluatorOptions(
            chat_options=ChatOptions(response_format=JsonSchemaFormat("v", {"type": "object"}), model_id="m")
        ),
    )
    loop = LoopAgent(
        agent,
        [judge, TodoCompletionLoopEvaluator(), BackgroundTaskCompletionLoopEvaluator()],
        LoopAgentOptions(stall=StallPolicy(ladder=[AnotherAgentStep(other), StopStep()])),
    )
    text = dump_loop_file(loop, name="n", request="r")
    built = rebuilt(text, tmp_path / "loop.yaml", models())
    assert dump_loop_file(built.agent, name="n", request="r") == text
    assert "context_providers:\n      - todo\n      - type: agent_mode\n" in text
    assert "- type: another_model\n        model: big\n" in text


def test_functions_of_both_sorts_are_detectors(tmp_path: Path):
    """A function that judges and one that gives signals are told apart, though both are functions in a file."""
    detectors = [DelegateLoopEvaluator(own_tools.is_done), own_tools.signals]
    loop = LoopAgent(ChatClientAgent(CLIENTS["writer"]), IterationStrategyLoopEvaluator(detectors))
    text = dump_loop_file(loop, name="n", request="r")
    assert re.findall(r"- type: (\w+)\n +object: own_tools:(\w+)", text) == [
        ("python", "is_done"),
        ("signals", "signals"),
    ]
    built = rebuilt(text, tmp_path / "loop.yaml", models())
    kinds = [type(each).__name__ for each in built.agent.evaluators[0].detectors]
    assert kinds == ["EvaluatorSignalDetector", "FunctionSignalDetector"]


def test_a_prompted_loop_is_written_with_its_inputs(tmp_path: Path):
    """A loop that was built of prompts is written with them, and with the inputs' values as defaults."""
    path = tmp_path / "prompted.yaml"
    path.write_text(
        "name: n\ninputs: {x: {type: integer}, on: {type: boolean, default: true}}\nloop:\n"
        "  agent: {model: writer, prompt: '{{ x }} {{ on }} {{ iteration }}'}\n"
        "  evaluators: [{type: prompted, model: judge, prompt: '{{ candidate }} {{ x }}'}]\n"
    )
    built = load_loop_file(path).build({"x": "3"}, models().__getitem__)
    text = dump_loop_file(built.agent, name="n")
    again = rebuilt(text, path, models())
    assert again.message.text == built.message.text == "3 True 1"
    assert dump_loop_file(again.agent, name="n") == text
    with pytest.raises(ValueError, match="request must be left out"):
        dump_loop_file(built.agent, name="n", request="r")


def local_tool() -> Any:
    def hidden() -> int:
        """Can't be imported."""
        return 1

    return hidden


class Other(LoopEvaluator):
    async def evaluate(self, context: Any) -> Any:
        raise NotImplementedError


def judge_with(**options: Any) -> LoopEvaluator:
    return AIJudgeLoopEvaluator(CLIENTS["judge"], AIJudgeLoopEvaluatorOptions(**options))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"evaluators": Other()}, r"loop\.evaluators\[0\]: Other can't stand in a file"),
        (
            {"evaluators": DelegateLoopEvaluator(lambda _: None)},
            r"evaluators\[0\]\.object: <function .*: define it at the",
        ),
        ({"evaluators": judge_with(new_nonce=lambda: "n")}, r"new_nonce: can't stand in a file: it is for tests"),
        ({"evaluators": judge_with(feedback_filter=str.strip)}, r"feedback_filter: .* can't be imported by a name"),
        (
            {"evaluators": AIJudgeLoopEvaluator(ScriptedChatClient([]))},
            r"evaluators\[0\]\.model: ScriptedChatClient has no name",
        ),
        (
            {"evaluators": PanelLoopEvaluator([[length_check("words", at_most=1)], [Other()]])},
            r"loop\.evaluators\[0\]\.members\[1\]\[0\]: Other can't",
        ),
        (
            {"evaluators": judge_with(chat_options=ChatOptions(additional_properties={"a": object()}))},
            r"chat_options\.additional_properties\.a: <object .* can't stand in a file",
        ),
        ({"evaluators": check("n", lambda _: True)}, r"evaluators\[0\]\.object"),
        (
            {"inner_agent": LoopAgent(ChatClientAgent(CLIENTS["writer"]), Other())},
            r"loop\.agent: LoopAgent can't stand in",
        ),
        (
            {"inner_agent": ChatClientAgent(CLIENTS["writer"], tools=[{"name": "t"}])},
            r"agent\.tools\[0\]: a tool that is a decl",
        ),
        (
            {"inner_agent": ChatClientAgent(CLIENTS["writer"], tools=[local_tool()])},
            r"agent\.tools\[0\]: .*hidden.* can't be imported by a name",
        ),
        (
            {"inner_agent": ChatClientAgent(CLIENTS["writer"], context_providers=[own_tools.Ruled()])},
            r"providers\[0\]: Ruled can't",
        ),
        (
            {"options": LoopAgentOptions(clock=lambda: 0.0)},
            r"loop\.options\.clock: can't stand in a file: it is for tests",
        ),
        (
            {"options": LoopAgentOptions(budget=LoopBudget(max_tokens=1, on_estimate=print))},
            r"loop\.budget\.on_estimate: can't",
        ),
        (
            {"options": LoopAgentOptions(stall=StallPolicy(signals=[NearSameAnswerSignal(measure=lambda a, b: 1.0)]))},
            r"loop\.stall\.signals\[0\]\.measure: can't stand in a file: it is a function",
        ),
        (
            {
                "options": LoopAgentOptions(
                    stall=StallPolicy(
                        ladder=[AnotherAgentStep(ChatClientAgent(CLIENTS["big"], instructions="I")), StopStep()]
                    )
                )
            },
            r"loop\.stall\.ladder\[0\]: another agent can't stand in a file, only the loop's own with another model",
        ),
    ],
)
def test_what_can_not_be_written_is_named(changed: dict[str, Any], said: str):
    """What can't stand in a file is an error that says where it would stand, and why."""
    given: dict[str, Any] = {
        "inner_agent": ChatClientAgent(CLIENTS["writer"]),
        "evaluators": length_check("words", at_most=1),
        "options": None,
        **changed,
    }
    loop = LoopAgent(given["inner_agent"], given["evaluators"], given["options"])
    with pytest.raises(CannotWriteError, match=said):
        dump_loop_file(loop, name="n", request="r")


def test_models_are_named_by_who_writes():
    """A client is called what the caller says, or what it says itself."""
    nameless = ScriptedChatClient([])
    loop = LoopAgent(ChatClientAgent(nameless), AIJudgeLoopEvaluator(CLIENTS["judge"]))
    text = dump_loop_file(loop, name="n", request="r", models={"mine": nameless})
    assert re.findall(r"model: (\w+)", text) == ["mine", "judge"]


@pytest.mark.parametrize("request_", [None, " "])
def test_a_request_is_needed(request_: str | None):
    """What the agent is asked is no part of a loop, so that a file needs it."""
    loop = LoopAgent(ChatClientAgent(CLIENTS["writer"]), length_check("words", at_most=1))
    with pytest.raises(ValueError, match="request must be given"):
        dump_loop_file(loop, name="n", request=request_)


@pytest.mark.parametrize("given_", [None, AIAgent])
def test_what_is_no_loop(given_: Any):
    """What is no loop is named."""
    with pytest.raises(TypeError, match="loop must be a LoopAgent"):
        dump_loop_file(given_, name="n")
