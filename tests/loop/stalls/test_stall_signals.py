from __future__ import annotations

import builtins
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from agents_loop import (
    AgentResponse,
    ChatMessage,
    ConfigurationError,
    DataContent,
    FunctionCallContent,
    FunctionResultContent,
    IterationRecord,
    LoopEvaluation,
)
from agents_loop.loop.stalls import similarity
from agents_loop.loop.stalls.answers import (
    AlternatingAnswersSignal,
    EmptyAnswersSignal,
    NearSameAnswerSignal,
    SameAnswerSignal,
    SameToolCallsSignal,
)
from agents_loop.loop.stalls.facts import IterationFacts
from agents_loop.loop.stalls.policy import StallPolicy, default_signals
from agents_loop.loop.stalls.signal import StallSignal
from agents_loop.loop.stalls.similarity import difflib_similarity, word_similarity
from agents_loop.loop.stalls.verdicts import (
    FallingScoreSignal,
    FlatScoreSignal,
    SameFailingCriteriaSignal,
    SameFeedbackSignal,
)
from agents_loop.loop.stalls.watch import StallWatch

LONG = "The report says who did what and when, names the cost of each part, and lists the risks with an owner each. "


def iteration(
    answer: Any = "an answer",
    *,
    feedback: str | None = None,
    score: float | None = None,
    criteria: dict[str, bool] | None = None,
) -> IterationFacts:
    response = answer if isinstance(answer, AgentResponse) else AgentResponse([ChatMessage("assistant", answer)])
    verdicts = [{"id": name, "verdict": "met" if met else "not_met"} for name, met in (criteria or {}).items()]
    details: Any = None if criteria is None else {"criteria": verdicts}
    said = LoopEvaluation.continue_(feedback, score=score, details=details)
    return IterationFacts(IterationRecord(1, (), response, (said,), None, 0.0))


def by(make: Callable[[Any], IterationFacts], *values: Any) -> list[IterationFacts]:
    return [make(value) for value in values]


def scored(*scores: float | None) -> list[IterationFacts]:
    return [iteration(f"draft {n}", score=score) for n, score in enumerate(scores)]


def called(arguments: Any, result: Any, text: str = "", score: float | None = None) -> IterationFacts:
    messages = [
        ChatMessage("assistant", [FunctionCallContent("c", "status", arguments)]),
        ChatMessage("tool", [FunctionResultContent("c", result)]),
        ChatMessage("assistant", text),
    ]
    return iteration(AgentResponse(messages), score=score)


def told(text: str | None, score: float | None = None) -> IterationFacts:
    return iteration("draft", feedback=text, score=score)


def image(data: bytes) -> IterationFacts:
    return iteration(["Here it is.", DataContent(data, "image/png")])


def failing(met: bool, score: float | None = 0.5, answer: str = "x") -> IterationFacts:
    return iteration(answer, criteria={"a": True, "b": met}, score=score)


def long_text(*changes: str) -> list[IterationFacts]:
    return [iteration(LONG.replace("cost", change) * 2) for change in changes]


CASES: list[tuple[StallSignal, list[IterationFacts], list[IterationFacts]]] = [
    (SameAnswerSignal(), by(iteration, "A  draft.", "a draft.\n", "A draft."), by(iteration, "a", "a", "b")),
    (SameAnswerSignal(), by(iteration, "b", "a", "a", "a"), by(iteration, "a", "a")),
    (SameAnswerSignal(2), by(iteration, "a", "a"), by(iteration, "", "")),
    (SameAnswerSignal(2), [image(b"1"), image(b"1")], [image(b"1"), image(b"2")]),
    (NearSameAnswerSignal(), long_text("cost", "price", "expense"), by(iteration, "a b c", "d e f", "g h i")),
    (
        NearSameAnswerSignal(),
        long_text("cost", "price", "cost"),
        by(iteration, LONG, LONG + "It also says what comes next and why.", LONG + "It says what comes next, and how."),
    ),
    (
        NearSameAnswerSignal(2),
        long_text("cost", "price"),
        [iteration(LONG * 2, score=0.2), iteration((LONG * 2).replace("cost", "price"), score=0.3)],
    ),
    (NearSameAnswerSignal(2), by(iteration, LONG, LONG), by(iteration, "", "")),
    (AlternatingAnswersSignal(4), by(iteration, "A", "b", "a ", "B"), by(iteration, "a", "b", "a", "c")),
    (AlternatingAnswersSignal(4), by(iteration, "x", "a", "b", "b", "a"), by(iteration, "a", "a", "b", "b")),
    (AlternatingAnswersSignal(), by(iteration, *"ababab"), by(iteration, *"abab")),
    (AlternatingAnswersSignal(), by(iteration, *"abcabc"), by(iteration, *"abcabd")),
    (AlternatingAnswersSignal(), by(iteration, *"abcbab"), by(iteration, *"abcdef")),
    (AlternatingAnswersSignal(4), by(iteration, "", "a", "", "a"), [called({}, n) for n in "abab"]),
    (AlternatingAnswersSignal(4), by(iteration, *"abab"), by(iteration, *"aaaa")),
    (
        AlternatingAnswersSignal(4),
        [iteration(text, score=0.5) for text in "abab"],
        [iteration(text, score=score) for text, score in zip("abab", (0.1, 0.2, 0.3, 0.4), strict=True)],
    ),
    (EmptyAnswersSignal(), by(iteration, "draft", "", " \n"), by(iteration, "", "draft")),
    (EmptyAnswersSignal(), by(iteration, "", ""), [image(b"1"), image(b"1")]),
    (SameToolCallsSignal(), [called({"id": 1}, "busy")] * 3, [called({"id": 1}, f"{n} %") for n in range(3)]),
    (SameToolCallsSignal(), [called(None, "busy", f"still busy {n}") for n in range(3)], [called(None, "busy")] * 2),
    (
        SameToolCallsSignal(),
        [called({"id": 1}, "busy", "wait")] * 3,
        [called({"id": n}, "busy") for n in range(3)],
    ),
    (
        SameToolCallsSignal(2),
        [called(None, "sources")] * 2,
        [called(None, "sources", LONG), called(None, "sources", "Something else was written of what they say.")],
    ),
    (
        SameToolCallsSignal(2),
        [called(None, "x", score=0.5)] * 2,
        [called(None, "x", score=0.5), called(None, "x", score=0.6)],
    ),
    (SameToolCallsSignal(2), [called(None, "x")] * 2, by(iteration, "a", "a")),
    (SameFeedbackSignal(3), by(told, "Add a cost", " add a cost\n", "ADD A COST"), by(told, "a", "a", "b")),
    (SameFeedbackSignal(2), by(told, "more", "more"), by(told, None, None)),
    (SameFeedbackSignal(2), [told("more", 0.5), told("more", 0.5)], [told("more", 0.5), told("more", 0.6)]),
    (SameFeedbackSignal(), by(told, *["more"] * 5), by(told, *["more"] * 4)),
    (SameFailingCriteriaSignal(), [failing(met=False)] * 3, [failing(met=True)] * 3),
    (
        SameFailingCriteriaSignal(2),
        [failing(met=False, answer="a"), failing(met=False, answer="b")],
        [failing(met=False, score=0.5), failing(met=False, score=0.6)],
    ),
    (
        SameFailingCriteriaSignal(2),
        [failing(met=False, score=None)] * 2,
        [iteration(criteria={"a": False, "b": True}), iteration(criteria={"a": True, "b": False})],
    ),
    (SameFailingCriteriaSignal(2), [failing(met=False)] * 2, by(iteration, "a", "a")),
    (FlatScoreSignal(), scored(0.65, 0.67, 0.66), scored(0.58, 0.68, 0.75)),
    (FlatScoreSignal(), scored(0.5, 0.5, 0.5), scored(0.50, 0.51, 0.52)),
    (FlatScoreSignal(), scored(0.1, 0.6, 0.6, 0.59), scored(0.5, None, 0.5)),
    (FlatScoreSignal(), scored(0.0, 0.0, 0.0), scored(0.5, 0.5)),
    (FallingScoreSignal(), scored(0.9, 0.8, 0.7), scored(0.9, 0.8, 0.85)),
    (FallingScoreSignal(), scored(0.5, 0.52, 0.5, 0.47), scored(0.90, 0.89, 0.88)),
    (FallingScoreSignal(), scored(0.3, 0.28, 0.25), scored(0.9, None, 0.7)),
]


def is_true(signal: StallSignal, history: Sequence[IterationFacts]) -> bool:
    """Whether a policy with this signal alone stops after the last of these iterations."""
    watch = StallWatch(StallPolicy(signals=[signal]))
    return [watch.after(facts.record) is not None for facts in history][-1]


@pytest.mark.parametrize(("signal", "stuck", "moving"), CASES, ids=lambda each: getattr(each, "name", ""))
def test_both_directions(signal: StallSignal, stuck: Sequence[IterationFacts], moving: Sequence[IterationFacts]):
    """A signal is true of what is stuck, and not of what still moves."""
    assert is_true(signal, stuck)
    assert not is_true(signal, moving)
    assert signal.observation


def test_the_names_are_schema():
    """Names of signals stand in `stop_detail`, events and records: each has one of its own."""
    assert sorted(signal.name for signal in default_signals()) == [
        "alternating_answers",
        "empty_answers",
        "falling_score",
        "flat_score",
        "near_same_answer",
        "same_answer",
        "same_failing_criteria",
        "same_feedback",
        "same_tool_calls",
    ]


def improving(draw: random.Random) -> list[IterationFacts]:
    """A history that gets better: by growing, by small repairs, or by drafts of its own; with what a judge might say."""
    words = ["risk", "owner", "cost", "date", "plan", "scope", "team", "test", "step", "goal", "fact", "source"]
    kind = draw.choice(["grows", "repairs", "rewrites"])
    text = " ".join(draw.choices(words, k=draw.randint(5, 300)))
    score, step = draw.uniform(0, 0.2), draw.choice([0.002, 0.02, 0.06])
    is_scored = kind == "repairs" or draw.random() < 0.7
    history: list[IterationFacts] = []
    for number in range(draw.randint(3, 12)):
        sentence = " ".join(f"{draw.choice(words)}{number}{n}" for n in range(draw.randint(6, 12)))
        if kind == "grows":
            text = f"{text} {sentence}."
        elif kind == "repairs":
            parts = text.split()
            parts[draw.randrange(len(parts))] = f"better{number}"
            text = " ".join(parts)
        else:
            text = sentence
        score += step * draw.uniform(0.5, 1)
        feedback = "more" if is_scored and draw.random() < 0.5 else f"number {number} is missing"
        messages = [ChatMessage("assistant", text)]
        if draw.random() < 0.3:
            call = FunctionCallContent("c", "read", {"path": "a"})
            messages[:0] = [ChatMessage("assistant", [call]), ChatMessage("tool", [FunctionResultContent("c", "b")])]
        criteria = {str(n): n <= number for n in range(8)} if draw.random() < 0.5 else None
        history.append(
            iteration(AgentResponse(messages), feedback=feedback, score=score if is_scored else None, criteria=criteria)
        )
    return history


def test_no_false_alarm_on_200_improving_histories():
    """Of 200 histories that improve, no signal is true of any, at no iteration."""
    draw = random.Random(2)
    alarms: list[str] = []
    for _ in range(200):
        watch = StallWatch(StallPolicy())
        for facts in improving(draw):
            stall = watch.after(facts.record)
            if stall is not None:
                alarms.append(stall.signal.name)
    assert alarms == []


def checked(answer: str, *problems: str | None) -> IterationFacts:
    """An iteration whose checks found this; `None` where one passed."""
    results = [{"check": str(n), "passed": problem is None, "problem": problem} for n, problem in enumerate(problems)]
    said = LoopEvaluation.continue_("\n".join(filter(None, problems)), details={"checks": results, "judge": None})
    return IterationFacts(IterationRecord(1, (), AgentResponse([ChatMessage("assistant", answer)]), (said,), None, 0.0))


def test_a_check_that_finds_less_each_time_is_no_stall():
    """A check that fails each time, with fewer failures, is progress; with the same one it is a stall, in other words."""
    watch, stuck = StallWatch(StallPolicy()), StallWatch(StallPolicy())
    noticed: list[str] = []
    for number in range(6):
        draft = " ".join(f"word{number}{n}" for n in range(30))
        assert watch.after(checked(draft, f"{20 - 3 * number} tests of 20 fail", "a line is long").record) is None
        stall = stuck.after(checked(draft, "7 tests of 20 fail", None).record)
        noticed += [] if stall is None else [stall.signal.name]
    assert noticed[0] == "same_failing_criteria"


def test_a_comparison_outweighs_scores():
    """Where comparisons prefer each new answer, a flat score, or the same criteria that fail, are no stall."""
    criteria = [{"id": "a", "verdict": "not_met"}]
    for preferred, expected in (("new", None), ("neither", "same_failing_criteria")):
        watch = StallWatch(StallPolicy())
        compared = LoopEvaluation.stop(details={"preference": {"preferred": preferred}})
        rated = LoopEvaluation.continue_("more", score=0.6, details={"criteria": criteria})
        noticed = [
            watch.after(
                IterationRecord(
                    n, (), AgentResponse([ChatMessage("assistant", f"draft {n}")]), (compared, rated), None, 0.0
                )
            )
            for n in range(1, 7)
        ]
        assert (None if noticed[2] is None else noticed[2].signal.name) == expected
        assert any(noticed) == (expected is not None)


def test_no_false_alarm_on_200_drafts_that_look_back():
    """Nor is one true where an agent goes back to its last draft once, and on from there."""
    draw = random.Random(4)
    for _ in range(200):
        watch, drafts = StallWatch(StallPolicy()), [facts.record for facts in improving(draw)]
        place = draw.randrange(1, len(drafts))
        history = [*drafts[:place], drafts[place - 1], *drafts[place:]]
        for record in history:
            stall = watch.after(record)
            assert stall is None or stall.signal.name != "alternating_answers"


def test_no_false_alarm_without_scores():
    """Answers that grow by a sentence or say something new, with feedback of their own, are no stall without scores."""
    draw = random.Random(3)
    for _ in range(200):
        text, watch = LONG * draw.randint(1, 30), StallWatch(StallPolicy())
        for number in range(10):
            text += " ".join(f"word{number}{n}" for n in range(draw.randint(6, 12))) + ". "
            facts = iteration(text, feedback=f"part {number} is missing")
            assert watch.after(facts.record) is None


@pytest.mark.parametrize("reads", [False, True])
def test_repairs_of_a_long_text_are_no_stall(*, reads: bool):
    """One word mended at a time, as the feedback says, is no stall without scores; one place that wavers is."""
    watch, wavering, text = StallWatch(StallPolicy()), StallWatch(StallPolicy()), LONG * 20
    noticed: list[str | None] = []
    for number in range(8):
        text = text.replace("report", f"report{number}x", 1).replace(" an ", " and ", 1)
        for each, answer in ((watch, text), (wavering, LONG * 20 + f"Try {number}.")):
            messages = [ChatMessage("assistant", answer)]
            if reads:
                messages[:0] = called(None, "sources").record.response.messages
            stall = each.after(iteration(AgentResponse(messages), feedback=f"place {number} is wrong").record)
            noticed.append(None if stall is None else stall.signal.name)
    assert set(noticed[::2]) == {None}
    assert noticed[5] == ("same_tool_calls" if reads else "near_same_answer")


def test_a_steady_drift_is_not_near_the_same():
    """Answers of which each is near the one before are no stall where the last is far from the first."""
    words = [f"word{n}" for n in range(60)]
    drifting = []
    for step in range(5):
        words[3 * step : 3 * step + 3] = [f"new{step}{n}" for n in range(3)]
        drifting.append(iteration(" ".join(words)))
    assert is_true(NearSameAnswerSignal(2, similarity=0.9), drifting)
    assert not is_true(NearSameAnswerSignal(4, similarity=0.9), drifting)


def test_an_answer_that_shrank_is_not_near_the_same():
    """An answer that lost a good part of its words says nothing new, and is not nearly the same."""
    assert not is_true(NearSameAnswerSignal(2), [iteration("a b c d e f g h i j"), iteration("a b c d e f")])


def test_feedback_of_several_evaluators_is_compared_as_a_whole():
    """The feedback of an iteration is that of all its evaluators."""
    response = AgentResponse("x")
    said = [LoopEvaluation.continue_("One."), LoopEvaluation.continue_(), LoopEvaluation.continue_("Two.")]
    facts = IterationFacts(IterationRecord(1, (), response, tuple(said), None, 0.0))
    assert facts.feedback == "one.\ntwo."


def test_a_signal_says_what_it_is():
    """A signal in an error or in a log is readable."""
    assert repr(SameAnswerSignal(4)) == "SameAnswerSignal(4)"


@pytest.mark.parametrize("measure", [word_similarity, difflib_similarity], ids=["word", "difflib"])
@pytest.mark.parametrize(
    ("first", "second", "least", "most"),
    [
        ("a b c d", "a b c d", 1.0, 1.0),
        ("a b c d", "e f g h", 0.0, 0.0),
        ("a b c d", "a b x d", 0.75, 0.75),
        ("a " * 300, "a " * 299 + "b", 0.99, 1.0),
    ],
)
def test_similarity(measure: Any, first: str, second: str, least: float, most: float):
    """Similarity is twice the words in common, of all words."""
    assert least <= measure(first.split(), second.split()) <= most


def test_without_rapidfuzz(monkeypatch: pytest.MonkeyPatch):
    """Where `rapidfuzz` is not installed the standard library measures."""
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("rapidfuzz"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    similarity._best.cache_clear()
    try:
        assert similarity._best() is difflib_similarity
    finally:
        similarity._best.cache_clear()


def test_a_text_built_to_be_slow():
    """Long texts of one word are compared without the order of words, so that no answer can hold the loop up."""
    first, second = ["a"] * 20_000 + ["b"] * 20_000, ["a", "b"] * 20_000
    assert difflib_similarity(first, second) == 1.0


@pytest.mark.parametrize(
    ("make", "error", "word"),
    [
        (lambda: SameAnswerSignal(1), ConfigurationError, "repeats"),
        (lambda: SameAnswerSignal("3"), TypeError, "repeats"),
        (lambda: AlternatingAnswersSignal(5), ConfigurationError, "even"),
        (lambda: AlternatingAnswersSignal(2), ConfigurationError, "4"),
        (lambda: NearSameAnswerSignal(similarity=1.5), ConfigurationError, "similarity"),
        (lambda: NearSameAnswerSignal(measure=3), TypeError, "measure"),
        (lambda: FlatScoreSignal(deviation=0), ConfigurationError, "deviation"),
        (lambda: FallingScoreSignal(fall=True), ConfigurationError, "fall"),
    ],
)
def test_wrong_thresholds(make: Any, error: type[Exception], word: str):
    """A threshold that is none is an error that names it."""
    with pytest.raises(error, match=word):
        make()
