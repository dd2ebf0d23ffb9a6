"""What the visits of a flow amount to as a run: iterations, evaluations, and the result."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agents_loop.agent import AgentResponse
from agents_loop.files.flomorphic.options import FlowOptions
from agents_loop.loop.answer import answer_text
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.result import IterationRecord, LoopResult, MeteredCalls, StopReason
from agents_loop.messages import ChatMessage, JsonValue, UsageDetails, sum_usage
from agents_loop.metering.meter import RunMeter

_GIVES_LAST = StopReason.SATISFIED


class FlowRecords:
    """The iterations of one run: one for each visit of a node that answers.

    A node that decides adds its evaluation to the latest iteration on its way; where there is none it is an iteration
    of its own, whose answer is its call.

    Args:
        options: How the flow is run.
        meter: The run's.
    """

    def __init__(self, options: FlowOptions, meter: RunMeter) -> None:
        self._options = options
        self._meter = meter
        self._records: dict[int, IterationRecord] = {}
        self._answers: set[int] = set()
        self.begun = 0
        """How many iterations have begun."""

    def begin(self) -> int:
        """The number of the iteration that begins."""
        self.begun += 1
        return self.begun

    def answered(
        self,
        number: int,
        sent: Sequence[ChatMessage],
        on_behalf_of: Sequence[ChatMessage],
        response: AgentResponse,
        seconds: float,
        *,
        is_answer: bool = True,
    ) -> None:
        """A node has answered."""
        self._records[number] = IterationRecord(
            number, tuple(sent), response, (), self._usage_of(number), seconds, tuple(on_behalf_of)
        )
        if is_answer:
            self._answers.add(number)

    def decided(self, number: int, evaluation: LoopEvaluation, seconds: float) -> None:
        """A node has decided."""
        record = self._records[number]
        record.evaluations = (*record.evaluations, evaluation)
        record.usage = self._usage_of(number)
        record.duration_s += seconds

    def _usage_of(self, number: int) -> UsageDetails | None:
        usages = [call[5] for call in self._meter.calls if call[1] == number and call[5] is not None]
        return sum_usage(usages)

    @property
    def listed(self) -> list[IterationRecord]:
        """Those that are complete, in order."""
        return [self._records[number] for number in sorted(self._records)]

    def result(
        self, run_id: str, reason: StopReason, detail: str | None, started_at: float, report: dict[str, JsonValue]
    ) -> LoopResult:
        """How the run went. The output is the last answer, or where there is none the context."""
        result = LoopResult(
            run_id,
            reason,
            detail,
            tuple(self.listed),
            "",
            None,
            self._meter.used_since(0),
            self._options.loop.clock() - started_at,
            calls=MeteredCalls(self._meter),
            report=report,
        )
        answers = [record for record in result.iterations if record.number in self._answers]
        if answers:
            best = result.best if self._options.loop.return_best and reason != _GIVES_LAST else None
            result.returned = best if best in answers else answers[-1]
            result.output = answer_text(result.returned.response)
        else:
            result.output = json.dumps(report["context"], ensure_ascii=False)
        return result
