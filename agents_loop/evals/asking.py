"""One question of an evaluation: the loop is run, and its drafts are graded."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse
from agents_loop.clients.recorded import RecordedChatClient
from agents_loop.errors import AgentsLoopError, BudgetExceededError
from agents_loop.evals.caching import CallCache, answerer
from agents_loop.evals.grading import Grade, citation_coverage, grade
from agents_loop.evals.options import EvalOptions
from agents_loop.evals.questions import Question
from agents_loop.evals.record import (
    CallSum,
    QuestionRecord,
    QuestionStatus,
    first_draft_sum,
    stored_iterations,
    sum_of,
)
from agents_loop.evals.spending import BudgetedChatClient, EvalBudget, Tally
from agents_loop.files.inputs import InputValue
from agents_loop.files.loop_file import LoopFile
from agents_loop.judging.reading import clean_text
from agents_loop.loop.result import LoopResult, StopReason
from agents_loop.messages import ChatMessage, UsageDetails, sum_usage
from agents_loop.metering.ledger import Ledger
from agents_loop.metering.prices import PriceList

_FAILURE = Grade(passed=False, by="failure", reason="the run failed")


@dataclass(frozen=True, slots=True)
class Asked:
    """What all questions of an evaluation share."""

    loop_file: LoopFile
    inputs: Mapping[str, InputValue]
    client_for: Callable[[str], ChatClient]
    """Gives each model's client; the same one each time."""
    grader: str
    budget: EvalBudget
    cache: CallCache | None
    prices: PriceList
    options: EvalOptions
    clock: Callable[[], float] = time.monotonic

    def inputs_of(self, question: Question) -> dict[str, InputValue]:
        """What a question gives the file, over what all of them do."""
        return {**self.inputs, **question.inputs, self.options.question_input: question.question}


class QuestionRun:
    """One question.

    Args:
        asked: What it shares with the others.
        question: The question.
    """

    def __init__(self, asked: Asked, question: Question) -> None:
        self._asked = asked
        self._question = question
        self._tally = Tally()
        self._graded: list[ChatResponse] = []
        self._clients: dict[str, ChatClient] = {}

    @property
    def is_unheard(self) -> bool:
        """Whether models were asked, and none was shown the question."""
        return self._tally.was_asked and not self._tally.was_shown

    async def record(self) -> QuestionRecord:
        """Run the loop and grade its answer. What the run raises is in the record."""
        started = self._asked.clock()
        result, error = await self._result()
        text = "" if result is None else clean_text(result.output)
        iterations = stored_iterations(result)
        draft = clean_text(str(iterations[0]["output"])) if iterations else None
        status: QuestionStatus = "done" if error is None else "failed"
        loop_grade: Grade | None = None
        draft_grade: Grade | None = None
        try:
            if self._tally.was_refused:
                status = "unfinished"
            else:
                loop_grade = _FAILURE if error is not None else await self._grade(text)
                is_same = draft == text and error is None
                draft_grade = loop_grade if is_same else _FAILURE if draft is None else await self._grade(draft)
        except BudgetExceededError as spent:
            status, error, loop_grade, draft_grade = "unfinished", spent, None, None
        ledger = Ledger() if result is None else result.ledger
        wanted = self._question.must_cite
        return QuestionRecord(
            id=self._question.id,
            kind=self._question.kind,
            question_sha256=digest_of(self._question),
            status=status,
            error=None if error is None else clean_text(f"{type(error).__name__}: {error}"),
            stop_reason=None if result is None else result.stop_reason.value,
            stop_detail=None if result is None or result.stop_detail is None else clean_text(result.stop_detail),
            output=text,
            first_draft=draft,
            iterations=iterations,
            grade=loop_grade,
            first_draft_grade=draft_grade,
            citation_coverage=citation_coverage(wanted, text),
            first_draft_citation_coverage=citation_coverage(wanted, draft or ""),
            usage=sum_of(ledger),
            first_draft_usage=first_draft_sum(result),
            grading_usage=self._grading_usage(),
            calls_made=self._tally.calls,
            duration_s=self._asked.clock() - started,
        )

    async def _result(self) -> tuple[LoopResult | None, Exception | None]:
        asked = self._asked
        try:
            built = asked.loop_file.build(asked.inputs_of(self._question), self._client, asked.options.settings)
            async with built.agent.events(built.message) as events:
                async for _ in events:
                    pass
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a question that fails does not end the evaluation
            return LoopResult.of(error), error
        result = events.result
        if result is None or result.stop_reason not in (StopReason.FAILED, StopReason.EVALUATOR_FAILED):
            return result, None
        return result, AgentsLoopError(result.stop_detail or f"the run ended as {result.stop_reason.value}")

    async def _grade(self, text: str) -> Grade:
        options = ChatOptions(max_output_tokens=self._asked.options.grader_max_output_tokens)
        return await grade(self._question, text, _Noted(self._client(self._asked.grader), self._graded), options)

    def _client(self, name: str) -> ChatClient:
        """A model's client, one for this question: its nth call of a kind is looked up as the nth."""
        if name not in self._clients:
            asked, inner = self._asked, self._asked.client_for(name)
            client = BudgetedChatClient(inner, name, asked.budget, self._tally)
            who = answerer(inner, name)
            kept = client if asked.cache is None else RecordedChatClient(client, asked.cache.of(who), who)
            self._clients[name] = _Heard(kept, self._question.question, self._tally)
        return self._clients[name]

    def _grading_usage(self) -> CallSum:
        usage = sum_usage([response.usage for response in self._graded])
        if not self._graded:
            return CallSum(calls=0, tokens_in=0, tokens_out=0, cost_usd=0.0)
        costs = [self._cost_usd(response) for response in self._graded]
        known = [cost for cost in costs if cost is not None]
        return CallSum(
            calls=len(self._graded),
            tokens_in=None if usage is None else usage.input_token_count,
            tokens_out=None if usage is None else usage.output_token_count,
            cost_usd=sum(known) if len(known) == len(costs) else None,
        )

    def _cost_usd(self, response: ChatResponse) -> float | None:
        cost_of = self._asked.prices.cost_of((response.model_id, self._asked.grader))
        return None if cost_of is None else cost_of(response.usage or UsageDetails())


class _Noted(ChatClient):
    """Notes what a grader answered."""

    def __init__(self, inner: ChatClient, noted: list[ChatResponse]) -> None:
        self._inner = inner
        self._noted = noted

    async def get_response(self, messages: list[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:  # pyright: ignore[reportIncompatibleMethodOverride]
        response = await self._inner.get_response(messages, options)
        self._noted.append(response)
        return response


class _Heard(ChatClient):
    """Notes whether a model was shown the question, however it is written there."""

    def __init__(self, inner: ChatClient, question: str, tally: Tally) -> None:
        self._inner = inner
        self._letters = _letters(question)
        self._tally = tally
        said: object = getattr(inner, "model_id", None)
        self.model_id = said if isinstance(said, str) else None

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        tally = self._tally
        tally.was_asked = True
        tally.was_shown = tally.was_shown or any(self._letters in _letters(message.text) for message in messages)
        return await self._inner.get_response(messages, options)


def _letters(text: str) -> str:
    """A text without what JSON, templates and Markdown may add to it."""
    return "".join([letter for letter in text.casefold() if letter.isalnum()])


def digest_of(*questions: Question) -> str:
    """The SHA-256 of all that is said of questions."""
    text = json.dumps([question.model_dump() for question in questions])
    return hashlib.sha256(text.encode()).hexdigest()
