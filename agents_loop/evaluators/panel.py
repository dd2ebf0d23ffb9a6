"""An evaluator that lets several vote."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from agents_loop.chat_client import ChatClient, ChatOptions
from agents_loop.errors import BudgetExceededError, ConfigurationError
from agents_loop.judging.voting import (
    OnTie,
    Vote,
    mean_score,
    median_score,
    passes_by_weight,
    reaches,
)
from agents_loop.loop.asking import ask, ask_all
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.loop.joining import joined_wish
from agents_loop.loop.no_verdict import NO_VERDICT, is_without_verdict
from agents_loop.loop.result import evaluation_to_json
from agents_loop.messages import JsonValue
from agents_loop.numeric import is_number

_VOTES = ("majority", "unanimous", "weighted", "mean", "median")
_SCORE_VOTES = ("mean", "median")

OnMemberFailure: TypeAlias = Literal["raise", "continue", "abstain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelLoopEvaluatorOptions:
    """How a panel's word is made of its members'.

    Raises:
        ConfigurationError: A choice is unknown; `threshold` is not from 0 to 1; a weight is not a number above 0, or
            weights don't fit the vote; or `on_failure` is `continue` and the vote one of scores.
    """

    vote: Vote = "majority"
    """`majority`: more ask for no more than want to go on. `unanimous`: none wants to go on. `weighted`: as the
    majority, by `weights`. `mean`, `median`: of the scores, which must reach `threshold`; a member that gives no score
    counts as 1 if it stops, and as 0 if it goes on or aborts."""
    threshold: float = 0.5
    """The lowest mean or median that is enough, from 0 to 1."""
    weights: Sequence[float] | None = None
    """One for each member, in order, tier by tier: needed for `weighted`, possible for `mean`."""
    on_tie: OnTie = "continue"
    """What a tie of `majority` or `weighted` comes to: nothing unclear is a pass, unless you say so."""
    on_failure: OnMemberFailure = "raise"
    """What a member counts as that raises. `raise`: its exception ends the asking; `continue`: it votes to go on;
    `abstain`: it has no vote, and if all of a tier raise, so does the panel. A spent budget is always raised.

    A judge whose own policy goes on without a verdict does not raise: it votes to go on, or abstains with `abstain`
    and in votes of scores, for a failure is no score. A tier in which nobody has a vote goes on."""
    on_abort: Literal["any", "majority"] = "any"
    """Whose abort ends the run: any member's, or that of more than half of the tier, by weight if there are weights.
    An abort that is not enough votes to go on."""

    def __post_init__(self) -> None:
        choices = {
            "vote": _VOTES,
            "on_tie": ("continue", "stop"),
            "on_failure": ("raise", "continue", "abstain"),
            "on_abort": ("any", "majority"),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise ConfigurationError(f"{name} must be one of {', '.join(known)}, not {getattr(self, name)!r}")
        if not is_number(self.threshold) or not 0 <= self.threshold <= 1:
            raise ConfigurationError(f"threshold must be a number from 0 to 1, not {self.threshold!r}")
        if self.on_failure == "continue" and self.vote in _SCORE_VOTES:
            raise ConfigurationError(f"on_failure must be 'raise' or 'abstain' for {self.vote}: a failure is no score")
        self._check_weights()

    def _check_weights(self) -> None:
        if self.weights is None:
            if self.vote == "weighted":
                raise ConfigurationError("weights must be given for the vote 'weighted'")
            return
        if self.vote not in ("weighted", "mean"):
            raise ConfigurationError(f"weights are for the votes 'weighted' and 'mean', not for {self.vote!r}")
        for weight in self.weights:
            if not is_number(weight) or not 0 < weight < math.inf:
                raise ConfigurationError(f"weights must be numbers above 0, not {weight!r}")


class PanelLoopEvaluator(LoopEvaluator):
    """Asks several evaluators at once, and lets them vote.

    Members in tiers are asked tier by tier: a tier that does not pass ends the asking, so that cheap members can save
    the calls of dear ones. The panel asks for no more if every tier passes. When it goes on, the agent hears the
    feedback of those members of the last tier asked that want to go on, each text once. What the members' calls use
    is counted in the iteration.

    When the asking ends early, by an exception or a cancellation, the members that are still at work are cancelled and
    awaited; the exception is raised as it is.

    Its score is the mean or the median that was voted on; in other votes the mean of the scores in the last tier
    asked, if a member gave one.

    Args:
        members: The evaluators, or tiers of them, cheap ones first: `[[length, schema], [judge, other_judge]]`.
        options: How their words are counted.

    Raises:
        TypeError: A member is no `LoopEvaluator`.
        ConfigurationError: There is no member, a tier is empty, or there are not as many weights as members.
    """

    def __init__(
        self,
        members: Sequence[LoopEvaluator | Sequence[LoopEvaluator]],
        options: PanelLoopEvaluatorOptions | None = None,
    ) -> None:
        self.options = options or PanelLoopEvaluatorOptions()
        tiers = _tiers(members)
        weights = self.options.weights
        count = sum(len(tier) for tier in tiers)
        if weights is not None and len(weights) != count:
            raise ConfigurationError(f"weights must be as many as members: {len(weights)} for {count}")
        left = iter(weights if weights is not None else [1.0] * count)
        self._tiers = [[(member, next(left)) for member in tier] for tier in tiers]

    @property
    def tiers(self) -> list[list[LoopEvaluator]]:
        """The members, tier by tier."""
        return [[member for member, _ in tier] for tier in self._tiers]

    def model_calls(self) -> Sequence[tuple[ChatClient, ChatOptions | None]]:
        """All members'."""
        return [call for tier in self._tiers for member, _ in tier for call in member.model_calls()]

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Ask the members, tier by tier."""
        asked: list[list[JsonValue]] = []
        voters: list[_Ballot] = []
        word = LoopEvaluation.stop()
        for tier in self._tiers:
            ballots = await self._ask(tier, context)
            asked.append([ballot.to_json() for ballot in ballots])
            voters = [ballot for ballot in ballots if self._has_vote(ballot)]
            word = self._counted(voters)
            if word.decision != "stop":
                break
        details: dict[str, JsonValue] = {"vote": self.options.vote, "tiers": asked}
        if word.decision == "continue" and _only_for_want_of_verdicts(voters):
            details[NO_VERDICT] = "members"
        return replace(word, details=details)

    async def _ask(self, tier: Sequence[tuple[LoopEvaluator, float]], context: LoopContext) -> list[_Ballot]:
        ballots = [_Ballot(member, weight, self.options.on_failure) for member, weight in tier]
        error = await ask_all(ballots, context, [])
        if error is None and all(ballot.failure is not None for ballot in ballots) and self._abstains:
            error = ballots[0].failure
        if error is not None:
            raise error
        return ballots

    def _has_vote(self, ballot: _Ballot) -> bool:
        if ballot.failure is not None:
            return not self._abstains
        return not is_without_verdict(ballot.word) or not (self._abstains or self.options.vote in _SCORE_VOTES)

    @property
    def _abstains(self) -> bool:
        return self.options.on_failure == "abstain"

    def _counted(self, ballots: Sequence[_Ballot]) -> LoopEvaluation:
        """What the votes of one tier come to."""
        if not ballots:
            return LoopEvaluation.continue_(note="no member gave a verdict")
        options = self.options
        words = [ballot.word for ballot in ballots]
        weights = [ballot.weight for ballot in ballots]
        aborts = [word for word in words if word.decision == "abort"]
        if aborts and self._is_aborted(words, weights):
            return LoopEvaluation.abort(str(aborts[0].reason))
        votes = [word.decision == "stop" for word in words]
        score = _score(words, weights, options.vote)
        if options.vote == "unanimous":
            passes = all(votes)
        elif options.vote in _SCORE_VOTES:
            passes = reaches(cast("float", score), options.threshold)
        else:
            passes = passes_by_weight(votes, weights, options.on_tie)
        return LoopEvaluation.stop(score=score) if passes else joined_wish(words, score=score)

    def _is_aborted(self, words: Sequence[LoopEvaluation], weights: Sequence[float]) -> bool:
        if self.options.on_abort == "any":
            return True
        return passes_by_weight([word.decision == "abort" for word in words], weights, "continue")


class _Ballot(LoopEvaluator):
    """A member's vote in one evaluation: asked as an evaluator, so that all are asked at once."""

    def __init__(self, member: LoopEvaluator, weight: float, on_failure: OnMemberFailure) -> None:
        self.weight = weight
        self.word = LoopEvaluation.continue_()
        self.failure: Exception | None = None
        self._member = member
        self._on_failure = on_failure

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        try:
            self.word = await ask(self._member, context)
        except BudgetExceededError:
            raise
        except Exception as error:
            if self._on_failure == "raise":
                raise
            self.failure = error
        return LoopEvaluation.stop()

    def to_json(self) -> dict[str, JsonValue]:
        if self.failure is None:
            return evaluation_to_json(self.word)
        failure = f"{type(self.failure).__name__}: {self.failure}"
        return {"evaluator": type(self._member).__name__, "failure": failure, "counts_as": self._on_failure}


def _only_for_want_of_verdicts(voters: Sequence[_Ballot]) -> bool:
    """Whether a panel goes on though nobody who gave a verdict asks for it."""
    wishes = [voter for voter in voters if voter.word.decision != "stop"]
    if not wishes:
        return not voters
    return all(wish.failure is not None or is_without_verdict(wish.word) for wish in wishes)


def _score(words: Sequence[LoopEvaluation], weights: Sequence[float], vote: Vote) -> float | None:
    if vote in _SCORE_VOTES:
        scores = [_score_of(word) for word in words]
        return median_score(scores) if vote == "median" else mean_score(scores, weights)
    given = [(word.score, weight) for word, weight in zip(words, weights, strict=True) if word.score is not None]
    return mean_score([score for score, _ in given], [weight for _, weight in given]) if given else None


def _score_of(word: LoopEvaluation) -> float:
    if word.score is not None:
        return word.score
    return 1.0 if word.decision == "stop" else 0.0


def _tiers(members: Iterable[LoopEvaluator | Sequence[LoopEvaluator]]) -> list[list[LoopEvaluator]]:
    """The members by tier; all are one tier where none stands in a sequence."""
    if members is None or isinstance(members, LoopEvaluator):  # pyright: ignore[reportUnnecessaryComparison]
        raise TypeError(f"members must be a sequence of evaluators, not {type(members).__name__}")
    given = list(members)
    if all(isinstance(member, LoopEvaluator) for member in given):
        tiers = [cast("list[LoopEvaluator]", given)]
    else:
        tiers = [[each] if isinstance(each, LoopEvaluator) else _listed(each) for each in given]
    if not all(tiers):
        raise ConfigurationError("members must not be empty, and neither must a tier: nobody would have a vote")
    return tiers


def _listed(tier: Any) -> list[LoopEvaluator]:
    if not isinstance(tier, Sequence) or isinstance(tier, str):
        raise TypeError(f"members must hold evaluators, or tiers of them, not {type(tier).__name__}")
    for member in cast("Sequence[object]", tier):
        if not isinstance(member, LoopEvaluator):
            raise TypeError(f"members must hold evaluators, or tiers of them, not {type(member).__name__}")
    return list(cast("Sequence[LoopEvaluator]", tier))
