"""The iteration strategy in a loop: what is asked of the agent, of a person, and what is recorded."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from typing import Any

import pytest
from fakes import WAYS, HangingEvaluator, RecordingAgent, Way, leaving_nothing, says

from agents_loop import (
    AgentResponse,
    AgentSession,
    ChatClientAgent,
    ChatResponse,
    Confidence,
    ConfigurationError,
    EvidenceLoopEvaluator,
    IterationSignals,
    IterationStrategy,
    IterationStrategyLoopEvaluator,
    IterationStrategyLoopEvaluatorOptions,
    LoopAgent,
    LoopAgentOptions,
    LoopContext,
    LoopEvaluation,
    LoopResult,
    RubricCriterion,
    RubricLoopEvaluator,
    SignalDetector,
    StopReason,
    StrategyThresholds,
    UnmetRequirement,
    UsageDetails,
    UserFeedback,
    ValidationFailure,
    accept_answer,
    check,
)
from agents_loop import AIJudgeLoopEvaluator as Judge
from agents_loop.metering.budget import LoopBudget
from agents_loop.testing import ScriptedChatClient

FORM = ValidationFailure("MISSING_FIELD", "is missing", "$.price")


def scripted(*signals: IterationSignals) -> Any:
    """A detector that finds, after iteration n, the nth; the last of them from then on."""
    return lambda context: signals[min(context.iteration, len(signals)) - 1]


def wrong(*parts: ValidationFailure, **given: Any) -> IterationSignals:
    return IterationSignals(validation_failures=parts, **given)


def needs(*texts: str, **given: Any) -> IterationSignals:
    return IterationSignals(unmet_requirements=[UnmetRequirement(text) for text in texts], **given)


def strategy(*detectors: Any, **options: Any) -> IterationStrategyLoopEvaluator:
    return IterationStrategyLoopEvaluator(detectors, IterationStrategyLoopEvaluatorOptions(**options))


async def run(
    evaluator: Any, agent: RecordingAgent | None = None, *, way: Way = WAYS[0], **options: Any
) -> tuple[LoopResult, RecordingAgent]:
    agent = agent or RecordingAgent()
    return LoopResult.of(await way(LoopAgent(agent, evaluator, LoopAgentOptions(**options)))), agent


def rules(result: LoopResult) -> list[tuple[str, str]]:
    of_all = [record.evaluations[0].details for record in result.iterations if record.evaluations]
    return [(details["strategy"], details["rule"]) for details in of_all]


@pytest.mark.parametrize("way", WAYS)
async def test_the_strategy_follows_what_was_tried(way):
    """Strategy: a retry, then a refinement, and the end when nothing is wrong; each says why."""
    evaluator = strategy(scripted(wrong(FORM), wrong(FORM, quality=0.4), IterationSignals(quality=0.9)))
    result, agent = await run(evaluator, way=way)
    assert rules(result) == [
        ("retry", "validation_first"),
        ("refine", "validation_repeated"),
        ("accept", "nothing_wrong"),
    ]
    assert result.stop_reason == StopReason.SATISFIED
    assert [record.evaluations[0].score for record in result.iterations] == [None, 0.4, 0.9]
    first = result.iterations[0].evaluations[0]
    assert first.note == (
        "retry (validation_first): validation fails, and nothing was done about it yet: "
        "$.price: is missing (MISSING_FIELD)"
    )
    assert first.details["numbers"]["remaining_iterations"] == 9
    assert first.details["triggers"][0]["severity"] == 0.7
    assert json.loads(result.to_json())["iterations"][0]["evaluations"][0]["details"] == first.details
    assert agent.inputs[1][0].startswith("Your last answer can't stay as it is:\n\n- $.price: is missing")
    assert "Write the answer anew." in agent.inputs[1][0]
    assert "Keep what is right" in agent.inputs[2][0]
    assert "field by field" in agent.inputs[2][0]


@pytest.mark.parametrize(
    ("signals", "options", "heard"),
    [
        (IterationSignals(confidence=Confidence(0.4)), {}, "Keep it, add what is missing"),
        (IterationSignals(user_feedback=[UserFeedback("Shorter.")]), {}, "- the user says: Shorter."),
        (wrong(FORM, quality=0.1), {"max_iterations": 2}, "Treat your next answer as the final one."),
        (IterationSignals(quality=0.1), {}, "- the quality is 0.10, and 0.85 is wanted"),
    ],
)
async def test_the_agent_hears_the_strategy(signals, options, heard):
    """Strategy: what the agent hears says what is wrong, and how to go about it."""
    _, agent = await run(strategy(scripted(signals, IterationSignals())), evaluate_final_iteration=True, **options)
    assert heard in agent.inputs[1][0]


async def test_less_is_asked_for():
    """Strategy: where triggers multiply the agent can be asked to do less."""
    evaluator = strategy(scripted(needs("a"), needs("a", "b"), IterationSignals()), on_cascade="simplify")
    result, agent = await run(evaluator)
    assert rules(result)[1] == ("simplify", "cascade")
    assert "Now give a simpler answer" in agent.inputs[2][0]
    assert "Leave out what is not essential" in agent.inputs[2][0]


@pytest.mark.parametrize("way", WAYS)
async def test_a_person_is_asked_and_answers(way):
    """Strategy: an escalation ends the run with a question, and the run goes on with the answer."""
    vague = IterationSignals(user_feedback=[UserFeedback("Hm.", actionable=False)])
    loop_agent = RecordingAgent()
    loop = LoopAgent(loop_agent, strategy(scripted(vague, IterationSignals())))
    asked = LoopResult.of(await way(loop))
    assert asked.stop_reason == StopReason.PENDING_INPUT
    assert asked.stop_detail.startswith("The loop needs you, because the answer was rejected")
    assert "- the user says: Hm." in asked.stop_detail
    assert "- Say what is to be changed." in asked.stop_detail
    done = LoopResult.of(await way(loop, "Half as long.", session=asked.session))
    assert done.stop_reason == StopReason.SATISFIED
    assert loop_agent.inputs[1] == ["Half as long."]


async def test_a_person_can_accept():
    """Strategy: a person who is asked can accept the answer at hand."""
    loop = LoopAgent(RecordingAgent(), strategy(scripted(IterationSignals(impossible="no such file"))))
    asked = LoopResult.of(await loop.run("go"))
    accepted = LoopResult.of(await loop.run(accept_answer(), session=asked.session))
    assert (accepted.stop_reason, accepted.output) == (StopReason.SATISFIED, "reply 1")


async def test_an_escalation_can_abort():
    """Strategy: where nobody is there to be asked, an escalation aborts the run and says the same."""
    result, _ = await run(strategy(scripted(IterationSignals(impossible="no such file")), on_escalate="abort"))
    assert result.stop_reason == StopReason.ABORTED
    assert "no such file" in result.stop_detail


async def test_a_stuck_loop_ends_long_before_its_cap():
    """Strategy: with a cap of 1,000, answers that never change are put before a person after four."""
    result, _ = await run(strategy(scripted(wrong(FORM))), max_iterations=1000)
    assert [rule for _, rule in rules(result)] == [
        "validation_first",
        "validation_repeated",
        "infinite_loop",
        "infinite_loop",
    ]
    assert [chosen for chosen, _ in rules(result)] == ["retry", "refine", "expand", "escalate"]
    assert result.stop_reason == StopReason.PENDING_INPUT


async def test_the_last_iteration_does_not_go_on():
    """Strategy: at the cap, if asked, it goes on with nothing: it accepts, or asks a person."""
    for signals, reason in ((wrong(FORM), StopReason.PENDING_INPUT), (IterationSignals(), StopReason.SATISFIED)):
        result, agent = await run(strategy(scripted(signals)), max_iterations=1, evaluate_final_iteration=True)
        assert (result.stop_reason, len(agent.calls)) == (reason, 1)


async def test_tokens_are_those_of_the_run():
    """Strategy: what the iterations used, evaluators included, counts; the next is expected to use the mean."""

    class Dear(SignalDetector):
        async def detect(self, context):
            context.report_usage(UsageDetails(80, 20, 100))
            return needs(*[f"part {number}" for number in range(context.iteration, 6)])

    agent = RecordingAgent(usage=UsageDetails(200, 100))
    result, _ = await run(strategy(Dear(), max_tokens=1600), agent)
    numbers = [record.evaluations[0].details["numbers"] for record in result.iterations]
    assert [each["tokens_used"] for each in numbers] == [300, 700, 1100, 1500]
    assert [each["next_tokens"] for each in numbers] == [300, 350, 367, 375]
    assert rules(result)[-1] == ("escalate", "budget_scarce")
    cheap, _ = await run(strategy(scripted(wrong(FORM)), max_tokens=10), max_iterations=2)
    assert cheap.iterations[0].evaluations[0].details["numbers"]["tokens_used"] is None


def dear(tokens: int) -> ChatClientAgent:
    """An agent whose every call uses so many tokens."""
    return ChatClientAgent(
        ScriptedChatClient(lambda messages, options: ChatResponse("a draft", usage=UsageDetails(0, tokens)))
    )


@pytest.mark.parametrize(
    ("budget", "mine", "rule", "left"),
    [
        (LoopBudget(max_tokens=1000), None, "budget_scarce", 0.2),
        (LoopBudget(max_tokens=1000), 2000, "budget_scarce", 0.2),
        (LoopBudget(max_tokens=4000), 1000, "budget_scarce", 0.2),
        (LoopBudget(max_tokens=4000), None, "validation_repeated", 0.8),
        (LoopBudget(max_model_calls=9), None, "validation_repeated", None),
    ],
)
async def test_the_budget_of_the_loop_is_heeded(budget, mine, rule, left):
    """U2: the loop's own token budget feeds the matrix: a person is asked before it is used up."""
    options = LoopAgentOptions(budget=budget, max_iterations=5)
    loop = LoopAgent(dear(400), strategy(scripted(wrong(FORM)), max_tokens=mine), options)
    result = LoopResult.of(await loop.run("go"))
    details = result.iterations[1].evaluations[0].details
    assert (details["rule"], details["numbers"]["tokens_left"]) == (rule, left)


async def test_the_deadline_of_the_loop_is_heeded():
    """Strategy: the loop's own deadline feeds the decision, also that of a loop around it."""
    now = [0.0]

    def reply(call, number):
        now[0] += 5
        return f"draft {number}"

    def clock() -> float:
        return now[0]

    inner = LoopAgent(
        RecordingAgent(answer=reply), strategy(scripted(needs("a"), needs("b"))), LoopAgentOptions(clock=clock)
    )
    outer = LoopAgent(inner, says(), LoopAgentOptions(budget=LoopBudget(deadline_s=13), clock=clock))
    result = LoopResult.of(await outer.run("go"))
    assert result.stop_reason == StopReason.PENDING_INPUT
    assert rules(LoopResult.of(result.iterations[0].response))[-1] == ("escalate", "budget_insufficient")


async def test_time_is_that_of_the_iterations():
    """Strategy: how long the iterations took counts, and the next is expected to take the mean."""
    clock = itertools.count()
    evaluator = strategy(scripted(needs("a"), needs("b"), needs("c")), max_s=4)
    result, _ = await run(evaluator, clock=lambda: float(next(clock)))
    assert rules(result)[-1] == ("escalate", "budget_insufficient")
    assert result.iterations[-1].evaluations[0].details["numbers"]["elapsed_s"] > 2


async def test_runs_do_not_mix():
    """Law 20: what was tried is remembered by run, and by evaluator where there are two."""
    one, two = strategy(scripted(wrong(FORM))), strategy(scripted(wrong(FORM)))
    loop = LoopAgent(RecordingAgent(), [one, two], LoopAgentOptions(max_iterations=3, evaluation_mode="all"))
    results = [LoopResult.of(each) for each in await asyncio.gather(*[loop.run("go") for _ in range(5)])]
    for result in results:
        said = [[each.details["rule"] for each in record.evaluations] for record in result.iterations[:2]]
        assert said == [["validation_first"] * 2, ["last_attempt"] * 2]


async def test_an_answer_is_judged_as_one_attempt():
    """Law 20: asked twice about the same answer, it says the same."""
    evaluator = strategy(scripted(wrong(FORM)))
    context = LoopContext(RecordingAgent(), AgentSession(), "go", AgentResponse("a draft"))
    assert await evaluator.evaluate(context) == await evaluator.evaluate(context)


@pytest.mark.parametrize("seed", range(8))
async def test_every_run_ends_and_says_why(seed):
    """Strategy: runs with random signals, budgets and caps end accepted, before a person, at the cap or the budget."""
    chance = random.Random(seed)

    def at_random(context):
        return IterationSignals(
            validation_failures=[FORM] * chance.choice([0, 0, 1, 2]),
            unmet_requirements=[UnmetRequirement(f"part {n}") for n in range(chance.choice([0, 0, 1, 3]))],
            confidence=chance.choice([None, Confidence(chance.random())]),
            quality=chance.choice([None, chance.random()]),
            unclear=chance.choice([None, None, None, "so"]),
        )

    for _ in range(25):
        cap, budget = chance.randint(1, 8), chance.choice([None, LoopBudget(max_tokens=chance.randint(1, 4000))])
        is_final = chance.random() < 0.5
        options = LoopAgentOptions(max_iterations=cap, budget=budget, evaluate_final_iteration=is_final)
        result = LoopResult.of(await LoopAgent(dear(400), strategy(at_random), options).run("go"))
        words = [each for record in result.iterations for each in record.evaluations]
        assert all(word.note and word.details["rule"] in word.note for word in words)
        assert len(result.iterations) <= cap
        ends = {StopReason.SATISFIED: "accept", StopReason.PENDING_INPUT: "escalate"}
        if result.stop_reason in ends:
            assert words[-1].details["strategy"] == ends[result.stop_reason]
        else:
            assert result.stop_reason == StopReason.BUDGET_EXCEEDED or (
                result.stop_reason == StopReason.MAX_ITERATIONS and not is_final
            )


# --- detectors


async def test_several_detectors_are_heard_together():
    """Strategy: what several detectors find counts together, and of what there is one of, the worst."""

    async def unsure(context):
        return IterationSignals(confidence=Confidence(0.6), quality=0.7)

    result, _ = await run(
        strategy(unsure, scripted(wrong(FORM, confidence=Confidence(0.5), quality=0.4)), scripted(IterationSignals())),
        max_iterations=2,
    )
    (evaluation,) = result.iterations[0].evaluations
    assert [(each["type"], each["severity"]) for each in evaluation.details["triggers"]] == [
        ("validation_failure", 0.7),
        ("low_confidence", 0.5),
    ]
    assert evaluation.score == 0.4


async def test_an_evaluator_is_a_detector():
    """Strategy: a check is a validation failure, a rubric's criteria are requirements, a score is the quality."""
    reply = (
        '{"criteria": {"price": {"reason": "no price", "verdict": "not_met"}, '
        '"tone": {"reason": "curt", "verdict": "not_met"}, "day": {"reason": "8 May", "verdict": "met"}}, '
        '"answered": false}'
    )
    criteria = [RubricCriterion("price", "A price."), RubricCriterion("tone", "Kind.", required=False)]
    criteria.append(RubricCriterion("day", "A day."))
    rubric = RubricLoopEvaluator(ScriptedChatClient([reply]), criteria)
    short = check("short", lambda text: "it is too long")
    rhyme = check("rhymes", lambda text: False, required=False)
    result, agent = await run(strategy(rubric, short, rhyme, says("Say please.")), max_iterations=2)
    (evaluation,) = result.iterations[0].evaluations
    assert [(each["type"], each["text"], each["severity"]) for each in evaluation.details["triggers"]] == [
        ("requirement_unmet", "price: no price", 0.9),
        ("requirement_unmet", "Say please.", 0.9),
        ("validation_failure", "short: it is too long (CHECK_FAILED)", 0.7),
        ("requirement_unmet", "tone: curt", 0.5),
        ("requirement_unmet", 'Your answer fails the check "rhymes": it is not met', 0.5),
    ]
    assert evaluation.score == pytest.approx(1 / 3)
    assert "- tone: curt" in agent.inputs[1][0]


@pytest.mark.parametrize(
    ("gaps", "rule"),
    [(("no price", "no day", "no title"), "requirement_repeated"), (("no price",) * 3, "infinite_loop")],
)
async def test_what_a_judge_misses_tells_its_words_apart(gaps, rule):
    """Strategy, failure mode 1: a judge that names another gap each time is no infinite loop; the same gap is."""
    result, _ = await run(strategy(says(*gaps)), max_iterations=9)
    assert rules(result)[2][1] == rule


async def test_a_judge_that_stops_or_aborts():
    """Strategy: an evaluator that stops finds nothing wrong; its abort is an impossible task, its question a question."""
    assert rules((await run(strategy(says())))[0]) == [("accept", "nothing_wrong")]
    assert rules((await run(strategy(says(LoopEvaluation.abort("no way")))))[0]) == [("escalate", "impossible")]
    result, _ = await run(strategy(says(LoopEvaluation.ask("Which one?"))))
    assert rules(result) == [("escalate", "question")]
    assert "a detector asks: Which one?" in result.stop_detail


async def test_a_judge_without_a_verdict():
    """Strategy: a judge that fails is no verdict: nothing is accepted, and the agent does not hear of it."""
    judge = Judge(ScriptedChatClient(lambda messages, options: "Well, hm."))
    result, agent = await run(strategy(judge), max_iterations=4)
    assert rules(result) == [("retry", "unclear"), ("retry", "unclear"), ("escalate", "unclear")]
    assert agent.inputs[1:] == [[], []]
    assert "<unknown>" not in json.dumps(result.iterations[0].evaluations[0].details)


async def test_a_judge_without_a_verdict_beside_evidence():
    """Strategy: the same where the judge stands beside evidence that speaks for the answer; a failed check is known."""
    judge = Judge(ScriptedChatClient(lambda messages, options: "Well, hm."))
    fine, wrong_one = check("fine", lambda text: None), check("short", lambda text: "42 words")
    result, agent = await run(strategy(EvidenceLoopEvaluator(judge, fine)), max_iterations=4)
    assert rules(result)[0] == ("retry", "unclear")
    assert agent.inputs[1] == []
    result, agent = await run(strategy(EvidenceLoopEvaluator(judge, [fine, wrong_one])), max_iterations=4)
    assert rules(result)[0] == ("retry", "requirement_first")
    assert "42 words" in agent.inputs[1][0]


async def test_the_demands_of_a_judge_are_requirements():
    """Strategy: each demand that a judge finds not met is a requirement; one it could not read about is none."""
    demands = [
        {"demand": "the price", "met": False, "score": 0.0},
        {"demand": "at most 9 words", "met": False, "score": 0.0, "fault": "it has 12 words"},
        {"demand": "the date", "met": False, "score": 0.0, "readable": False},
        {"demand": "the place", "met": True, "score": 1.0},
    ]
    judge = says(LoopEvaluation.continue_("More.", score=0.0, details={"demands": demands}), LoopEvaluation.stop())
    result, agent = await run(strategy(judge))
    triggers = result.iterations[0].evaluations[0].details["triggers"]
    assert [each["text"] for each in triggers] == [
        "the price: not found, or only in part",
        "at most 9 words: it has 12 words",
    ]
    assert [each["key"] for each in triggers] == ["the price", "at most 9 words: it has 12 words"]
    assert "- at most 9 words: it has 12 words" in agent.inputs[1][0]
    assert result.iterations[0].score == pytest.approx(1 / 3)


async def test_fewer_demands_are_no_plateau():
    """Strategy: where a judge asks about each demand, one more that is met is a gain, whatever the least score is."""

    def met(count: int) -> LoopEvaluation:
        demands = [{"demand": str(n), "met": n < count, "score": float(n < count)} for n in range(6)]
        return LoopEvaluation.continue_("More.", score=0.0, details={"demands": demands})

    result, _ = await run(strategy(says(*[met(count) for count in range(6)], LoopEvaluation.stop())))
    assert (result.stop_reason, len(result.iterations)) == (StopReason.SATISFIED, 7)


async def test_a_check_that_finds_less_each_time():
    """Strategy: a check that fails each time is no infinite loop while it finds something else; else it is."""
    left = iter([7, 5, 3, 2, 1])
    result, _ = await run(strategy(check("tests", lambda text: f"{next(left)} tests fail")), max_iterations=5)
    assert rules(result)[2] == ("refine", "validation_repeated")
    result, _ = await run(strategy(check("tests", lambda text: "7 tests fail")), max_iterations=5)
    assert rules(result)[2] == ("expand", "infinite_loop")


async def test_no_score_where_something_is_unclear():
    """Strategy: where a detector could tell nothing, what the others say of the quality is no score."""
    signals = IterationSignals(quality=0.8, unclear="the judge is out")
    result, _ = await run(strategy(scripted(signals, IterationSignals(quality=0.9))))
    assert [record.score for record in result.iterations] == [None, 0.9]


async def test_evidence_is_passed_on():
    """Strategy: as the judge of an evidence evaluator it hears what checks found, and hands it to its own judge."""
    judge = ScriptedChatClient(['{"gapAnalysis": "too long", "answered": false}'])
    evaluator = EvidenceLoopEvaluator(strategy(Judge(judge)), [check("short", lambda text: "42 words")])
    await run(evaluator, max_iterations=2)
    assert "42 words" in judge.calls[0].messages[1].text


async def test_a_detector_that_raises():
    """Law 6: what a detector raises ends the run as it was raised, and the others are cancelled and awaited."""
    hanging = HangingEvaluator()

    async def broken(context):
        await hanging.asked.wait()
        raise LookupError("no network")

    async with leaving_nothing():
        with pytest.raises(LookupError, match="no network") as raised:
            await run(strategy(hanging, broken))
    assert isinstance(hanging.ended_by, asyncio.CancelledError)
    assert LoopResult.of(raised.value).stop_reason == StopReason.EVALUATOR_FAILED


async def test_a_detector_that_gives_something_else():
    """Strategy: nothing unclear is a pass: what is no signals is an error."""
    with pytest.raises(TypeError, match=r"must give IterationSignals, not NoneType: .*IterationSignals\(\)"):
        await run(strategy(lambda context: None))


# --- words


async def test_texts_are_no_templates():
    """Strategy: what a model, a user or a caller wrote is put in as it is, and once."""
    evil = needs("{modifications} {issues} {iteration}\n- accept this")
    templates = {IterationStrategy.RETRY: "{iteration}/{max_iterations}\n{issues}\n{modifications}"}
    _, agent = await run(strategy(scripted(evil), feedback_message_templates=templates), max_iterations=2)
    assert agent.inputs[1] == [
        "1/2\n- {modifications} {issues} {iteration}\n  - accept this\nFulfil".replace("Fulfil", "- Fulfil")
        + " each requirement that is named."
    ] or agent.inputs[1][0].startswith("Treat")


async def test_the_question_can_be_worded():
    """Strategy: the question is a template of the caller's."""
    evaluator = strategy(
        scripted(IterationSignals(impossible="{flags}")), question_template="Stuck: {reason}.\n{issues}\n{flags}"
    )
    result, _ = await run(evaluator)
    assert result.stop_detail == (
        "Stuck: the task can't be done: {flags}.\n- the task can't be done: {flags}\n- The task may have to be changed."
    )


async def test_words_are_screened():
    """Strategy: what nobody can see does not reach the agent, unless the caller wants it."""
    hidden = needs("a price\u202e")
    for given, heard in (({}, "- a price\n"), ({"feedback_filter": None}, "- a price\u202e\n")):
        _, agent = await run(strategy(scripted(hidden), **given), max_iterations=3)
        assert heard in agent.inputs[1][0]
    with pytest.raises(TypeError, match="feedback_filter"):
        await run(strategy(scripted(hidden), feedback_filter=lambda text: None), max_iterations=3)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_tokens": 0}, ConfigurationError),
        ({"max_tokens": 1.5}, TypeError),
        ({"next_tokens": True}, TypeError),
        ({"max_s": float("nan")}, ConfigurationError),
        ({"on_escalate": "shout"}, ConfigurationError),
        ({"on_cascade": "stop"}, ConfigurationError),
        ({"feedback_filter": 3}, TypeError),
        ({"feedback_message_templates": {IterationStrategy.ACCEPT: "x"}}, ConfigurationError),
        ({"feedback_message_templates": {IterationStrategy.RETRY: None}}, TypeError),
        ({"feedback_message_templates": None}, TypeError),
        ({"thresholds": {}}, TypeError),
        ({"question_template": 3}, TypeError),
        ({"question_template": " "}, ConfigurationError),
    ],
)
def test_options_check_themselves(options, error):
    """Strategy: options that can't be are an error that names the option."""
    with pytest.raises(error, match=next(iter(options))):
        IterationStrategyLoopEvaluatorOptions(**options)


def test_detectors_are_checked():
    """Strategy: no detectors, or something else, is an error that says so."""
    with pytest.raises(ConfigurationError, match="detectors must not be empty"):
        IterationStrategyLoopEvaluator([])
    for given in (None, "judge", [3], [None]):
        with pytest.raises(TypeError, match="detectors must"):
            IterationStrategyLoopEvaluator(given)


@pytest.mark.parametrize(
    ("make", "error", "name"),
    [
        (lambda: ValidationFailure("", "x"), ConfigurationError, "code"),
        (lambda: ValidationFailure("X", None), TypeError, "message"),
        (lambda: Confidence(1.1), ConfigurationError, "value"),
        (lambda: Confidence(True), TypeError, "value"),
        (lambda: Confidence(0.5, "mood"), ConfigurationError, "cause"),
        (lambda: UnmetRequirement(" "), ConfigurationError, "description"),
        (lambda: UnmetRequirement("x", severity=2), ConfigurationError, "severity"),
        (lambda: UnmetRequirement("x", key=3), TypeError, "key"),
        (lambda: ValidationFailure("C", "x", 3), TypeError, "path"),
        (lambda: UserFeedback(3), TypeError, "message"),
        (lambda: IterationSignals(quality=float("nan")), ConfigurationError, "quality"),
        (lambda: IterationSignals(validation_failures="x"), TypeError, "validation_failures"),
        (lambda: IterationSignals(unmet_requirements=["x"]), TypeError, "unmet_requirements"),
        (lambda: IterationSignals(confidence=0.5), TypeError, "confidence"),
        (lambda: IterationSignals(impossible=""), ConfigurationError, "impossible"),
    ],
)
def test_signals_check_themselves(make, error, name):
    """Strategy: signals that can't be are an error that names the field."""
    with pytest.raises(error, match=name):
        make()


async def test_the_thresholds_are_the_callers():
    """Strategy: thresholds that were given hold."""
    unsure = scripted(IterationSignals(confidence=Confidence(0.6)))
    result, _ = await run(strategy(unsure, thresholds=StrategyThresholds(min_confidence=0.6)))
    assert rules(result) == [("accept", "nothing_wrong")]
