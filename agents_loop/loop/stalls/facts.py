"""What stall signals look at: an iteration, as what can be compared. Each fact is found once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from agents_loop.agent import AgentResponse
from agents_loop.loop.answer import answer_messages, answer_text, plain_answer
from agents_loop.loop.best import is_preferred, score_of
from agents_loop.loop.criteria import failing_criteria
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.result import IterationRecord
from agents_loop.messages import (
    Content,
    DataContent,
    FunctionCallContent,
    FunctionResultContent,
    JsonValue,
    UriContent,
)

MOST_NEW_WORDS: Final = 5
"""Answers that differ in more words than these say something else. A sentence that was added has more; a synonym, a
number or a reordering has not."""

_FIRST_WORDS: Final = 4
_SAMPLES: Final = 6
_SAMPLE_CHARS: Final = 24
"""Texts of which no sample agrees differ in more words than count as few: they need not be taken to pieces."""

_ToolCalls: TypeAlias = list[tuple[str, JsonValue]]
_NO_CALLS: Final[_ToolCalls] = []


class IterationFacts:
    """One iteration whose answer was judged and not accepted.

    Args:
        record: The iteration.
    """

    __slots__ = (
        "_distinct",
        "_words",
        "beginning",
        "failing_criteria",
        "feedback",
        "record",
        "score",
        "text",
        "tool_calls",
    )

    def __init__(self, record: IterationRecord) -> None:
        response, evaluations = record.response, record.evaluations
        plain = plain_answer(response)
        self.record = record
        self.text = (answer_text(response) if plain is None else plain).casefold()
        """The answer's text, in lower case."""
        self.beginning = self.text.split(None, _FIRST_WORDS)[:_FIRST_WORDS]
        """The first words of the answer's text: most answers differ in them already."""
        self.tool_calls = _tool_calls(response) if plain is None else _NO_CALLS
        """The agent's calls in order, and their results."""
        self.feedback = _feedback_of(evaluations)
        """The evaluators' feedback, in lower case; empty where there was none."""
        self.score = score_of(evaluations)
        """The answer's score, if it has one."""
        self.failing_criteria = failing_criteria(evaluations)
        """The criteria that the answer does not meet, and the checks, each with what it found."""
        self._words: list[str] | None = None
        self._distinct: frozenset[str] | None = None

    @property
    def is_blank(self) -> bool:
        """Whether the answer has no text."""
        return not self.text or self.text.isspace()

    @property
    def is_empty(self) -> bool:
        """Whether it is no answer: no text, and no image, file, tool call or tool result in its place."""
        return self.is_blank and self.record.bad_response == "empty"

    @property
    def words(self) -> list[str]:
        """The words of the answer's text: neither case nor white space counts."""
        if self._words is None:
            self._words = self.text.split()
        return self._words

    @property
    def distinct_words(self) -> frozenset[str]:
        """Each word of the answer once."""
        if self._distinct is None:
            self._distinct = frozenset(self.words)
        return self._distinct

    @property
    def files(self) -> list[Content]:
        """The answer's images and files."""
        messages = answer_messages(self.record.response)
        return [part for each in messages for part in each.contents if isinstance(part, DataContent | UriContent)]

    def says_the_same_as(self, other: IterationFacts) -> bool:
        """Whether both answers are the same, but for case and white space."""
        if self.text != other.text:
            if self.beginning != other.beginning:
                return False
            if self.words != other.words:
                return False
        return self.files == other.files

    def says_something_new(self, other: IterationFacts) -> bool:
        """Whether this answer has more than a few words, or files, that the other has not."""
        text, others = self.text, other.text
        step = len(text) // _SAMPLES
        if step >= _SAMPLE_CHARS:
            for start in range(0, step * _SAMPLES, step):
                if text[start : start + _SAMPLE_CHARS] in others:
                    break
            else:
                return True
        return len(self.distinct_words - other.distinct_words) > MOST_NEW_WORDS or self.files != other.files

    def words_that_differ(self, other: IterationFacts) -> int:
        """How many words one of both answers has more often than the other, wherever they stand."""
        words, others = Counter(self.words), Counter(other.words)
        return (words - others).total() + (others - words).total()


def _tool_calls(response: AgentResponse) -> _ToolCalls:
    calls: _ToolCalls = []
    for message in response.messages:
        for part in message.contents:
            if isinstance(part, FunctionCallContent):
                calls.append((part.name, part.arguments))
            elif isinstance(part, FunctionResultContent):
                calls.append(("", part.result))
    return calls


def _feedback_of(evaluations: Sequence[LoopEvaluation]) -> str:
    if len(evaluations) == 1:
        return (evaluations[0].feedback or "").strip().casefold()
    return "\n".join([each.feedback.strip() for each in evaluations if each.feedback is not None]).casefold()


def comes_closer(iterations: Sequence[IterationFacts]) -> bool:
    """Whether the last of them has a higher score than the first, or is better by what is known beside scores."""
    first, last = iterations[0], iterations[-1]
    if first.score is not None and last.score is not None and last.score > first.score:
        return True
    return is_better_beside_scores(iterations)


def is_better_beside_scores(iterations: Sequence[IterationFacts]) -> bool:
    """Whether fewer criteria fail in the last of them than in the first, or one after the first is a new best.

    It must fail in some: where none are recorded none fail. The best is that of comparisons, which decide where there
    are some.
    """
    if 0 < len(iterations[-1].failing_criteria) < len(iterations[0].failing_criteria):
        return True
    return any(is_preferred(each.record.evaluations) for each in iterations[1:])


def add_up(iterations: Sequence[IterationFacts]) -> bool:
    """Whether the answers are small repairs of one text: each was told something else, and each change stays.

    Where one place changes to and fro, the last answer is as far from the first as from the one before it.
    """
    told = {each.feedback for each in iterations}
    if len(told) < len(iterations) or "" in told:
        return False
    most = max(later.words_that_differ(earlier) for earlier, later in pairwise(iterations))
    return iterations[-1].words_that_differ(iterations[0]) > most
