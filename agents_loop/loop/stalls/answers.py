"""Signals of stuck answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from agents_loop.errors import ConfigurationError
from agents_loop.loop.stalls.facts import IterationFacts, add_up, comes_closer
from agents_loop.loop.stalls.signal import StallSignal, check_fraction
from agents_loop.loop.stalls.similarity import Similarity, word_similarity


class SameAnswerSignal(StallSignal):
    """The agent gives the same answer again and again, but for case and white space. Answers without text don't count.

    Args:
        repeats: How many answers in a row are the same.
    """

    name: ClassVar[str] = "same_answer"

    def __init__(self, repeats: int = 3) -> None:
        super().__init__(repeats)

    def is_alike(self, iterations: Sequence[IterationFacts]) -> bool:
        """Whether all answers are the same."""
        last = iterations[-1]
        if last.beginning != iterations[-2].beginning or last.is_blank:
            return False
        return all(last.says_the_same_as(each) for each in iterations[:-1])

    @property
    def observation(self) -> str:
        """What has been seen."""
        return f"the last {self.repeats} answers are the same"


class NearSameAnswerSignal(StallSignal):
    """The agent gives nearly the same answer again and again: a few words change, and it comes no closer.

    Every pair of the answers must be alike, the first and the last too, so that steady small steps are none; and the
    latest may have at most five words that an earlier one has not, so that a sentence that was added is none either.
    Nor are repairs of a long text, word by word, each after other feedback: there the changes add up.

    Args:
        repeats: How many answers in a row are nearly the same.
        similarity: From which likeness on two answers are, from 0 to 1.
        measure: Says how alike two lists of words are; by default `rapidfuzz` where it is installed (the extra
            `stalls`), else `difflib`.

    Raises:
        ConfigurationError: `similarity` is not above 0 and up to 1.
    """

    name: ClassVar[str] = "near_same_answer"

    def __init__(self, repeats: int = 3, *, similarity: float = 0.95, measure: Similarity = word_similarity) -> None:
        super().__init__(repeats)
        self.similarity = check_fraction("similarity", similarity)
        if not callable(measure):
            raise TypeError(f"measure must be callable, not {measure!r}")
        self.measure = measure

    def is_alike(self, iterations: Sequence[IterationFacts]) -> bool:
        """Whether all answers are nearly the same."""
        last, before = iterations[-1], iterations[-2]
        if last.says_something_new(before) or last.is_blank or comes_closer(iterations):
            return False
        places = range(len(iterations) - 1, 0, -1)
        are_near = all(self._is_near(iterations[a], iterations[b]) for a in places for b in range(a - 1, -1, -1))
        return are_near and not add_up(iterations)

    def _is_near(self, later: IterationFacts, earlier: IterationFacts) -> bool:
        if later.says_something_new(earlier):
            return False
        shared = min(len(later.words), len(earlier.words))
        if 2 * shared < self.similarity * (len(later.words) + len(earlier.words)):  # no measure can reach it
            return False
        return self.measure(later.words, earlier.words) >= self.similarity

    @property
    def observation(self) -> str:
        """What has been seen."""
        return f"the last {self.repeats} answers are nearly the same"


class AlternatingAnswersSignal(StallSignal):
    """The answer goes round among the same few: A, B, A, B, but for case and white space, and it comes no closer.

    Each answer of the later half of those that it looks at stands in the earlier half too, and they are not all the
    same. So with 6 it sees a round of two answers or of three. Each must come back word for word, which an answer
    that gets better does not. One of them may be empty.

    Args:
        repeats: How many answers it looks at; a round of n answers takes 2 n.

    Raises:
        ConfigurationError: `repeats` is less than 4, or odd.
    """

    name: ClassVar[str] = "alternating_answers"

    def __init__(self, repeats: int = 6) -> None:
        super().__init__(repeats)
        if repeats < 4 or repeats % 2:  # noqa: PLR2004 - two rounds of two answers
            raise ConfigurationError(f"repeats must be even and at least 4, not {repeats}: it looks at two halves")

    def is_alike(self, iterations: Sequence[IterationFacts]) -> bool:
        """Whether the later half of the answers is among the earlier half."""
        half = len(iterations) // 2
        earlier, beginning = iterations[:half], iterations[-1].beginning
        for other in earlier:
            if other.beginning == beginning:
                break
        else:
            return False
        later = iterations[half:]
        for each in reversed(later):
            if (each.is_blank and not each.is_empty) or not any(each.says_the_same_as(other) for other in earlier):
                return False
        return not comes_closer(iterations) and not all(later[0].says_the_same_as(each) for each in later[1:])

    @property
    def observation(self) -> str:
        """What has been seen."""
        return f"the last {self.repeats} answers are the same few in turn"


class EmptyAnswersSignal(StallSignal):
    """The agent gives no answer again and again: no text, image, file, tool call or tool result.

    Args:
        repeats: How many answers in a row are empty.
    """

    name: ClassVar[str] = "empty_answers"

    def __init__(self, repeats: int = 2) -> None:
        super().__init__(repeats)

    def is_alike(self, iterations: Sequence[IterationFacts]) -> bool:
        """Whether all answers are empty."""
        if not iterations[-1].is_blank:
            return False
        return all(each.is_empty for each in iterations)

    @property
    def observation(self) -> str:
        """What has been seen."""
        return f"the last {self.repeats} answers are empty"


class SameToolCallsSignal(StallSignal):
    """The agent makes the same tool calls with the same results again and again, and its answers say nothing new.

    Calls alone don't count: a tool that is polled gives other results while something happens. Nor do they where the
    answers differ, since an agent may read the same sources for each draft, where small repairs add up, or where it
    comes closer.

    Args:
        repeats: In how many iterations in a row.
    """

    name: ClassVar[str] = "same_tool_calls"

    def __init__(self, repeats: int = 3) -> None:
        super().__init__(repeats)

    def is_alike(self, iterations: Sequence[IterationFacts]) -> bool:
        """Whether all calls and results are the same, and the answers say nothing new."""
        last = iterations[-1]
        if not last.tool_calls or comes_closer(iterations):
            return False
        earlier = iterations[:-1]
        are_same = all(last.tool_calls == each.tool_calls and not last.says_something_new(each) for each in earlier)
        return are_same and not add_up(iterations)

    @property
    def observation(self) -> str:
        """What has been seen."""
        return f"the last {self.repeats} iterations made the same tool calls with the same results"
