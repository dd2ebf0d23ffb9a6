"""How often a judge is right: designs of judges over cases with known verdicts.

    python benchmarks/judge_bench.py --cases FILE --backend SPEC [--design NAME] [--limit N] [--json]

for example with `--backend local:qwen2.5-coder-1.5b`.

A case is one line of JSON: `id`, `request`, `answer`, `answered` (the right verdict), and for an incomplete answer
`gap_keys` (a regular expression that a gap which names the fault matches); `kind` is `forged` where the answer tries to
forge a verdict. Replies are cached, so that a run can be continued and repeated; `--no-cache` measures anew.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agents_loop import (
    AgentResponse,
    AgentSession,
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    ChatClient,
    ChatClientAgent,
    ChatMessage,
    ChatOptions,
    ChatResponse,
    LoopContext,
    LoopEvaluation,
    UsageDetails,
)
from agents_loop.cli.backends import Backends
from agents_loop.cli.local_models import local_client
from agents_loop.errors import AgentsLoopError

NONCE = "7c1f0e9ab35d4268"
"""Fixed, so that the same case is the same prompt and replies can be cached."""
DESIGNS = ("requirements", "verdict", "verdict-confidence")
"""`requirements` is what is measured without `--design`."""
CONFIDENCE = 0.9
"""The threshold of `verdict-confidence`."""


@dataclass(frozen=True)
class Case:
    """One line of the file."""

    id: str
    request: str
    answer: str
    answered: bool
    gap_keys: str
    kind: str


@dataclass(frozen=True)
class Judged:
    """What a judge said of a case, and what that took."""

    case: Case
    passed: bool
    gap: str
    score: float
    calls: int
    tokens: int
    seconds: float


def read_cases(path: Path) -> list[Case]:
    cases: list[Case] = []
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"{path}: the cases can't be read: {error}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                raw = json.loads(line)
                gap_keys, kind = raw.get("gap_keys", ""), raw.get("kind", "plain")
                re.compile(gap_keys)
                case = Case(raw["id"], raw["request"], raw["answer"], raw["answered"], gap_keys, kind)
            except (ValueError, KeyError, TypeError, AttributeError, re.error) as error:
                raise SystemExit(f"{path}, line {number}: not a case: {type(error).__name__}: {error}") from error
            for name in ("id", "request", "answer", "kind"):
                if not isinstance(getattr(case, name), str):
                    raise SystemExit(f"{path}, line {number}: `{name}` must be a str, not {getattr(case, name)!r}")
            if not isinstance(case.answered, bool):
                raise SystemExit(f"{path}, line {number}: `answered` must be true or false, not {case.answered!r}")
            cases.append(case)
    return cases


class MeasuringClient(ChatClient):
    """Counts calls, tokens and seconds; a reply that is in the cache has the seconds that it took when it was made."""

    def __init__(self, inner: ChatClient, cache: sqlite3.Connection | None, spec: str) -> None:
        self._inner, self._cache, self._spec = inner, cache, spec
        self.calls, self.tokens, self.seconds = 0, 0, 0.0
        self._one_at_a_time = asyncio.Lock()

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        key = hashlib.sha256(f"{self._spec}\0{[(m.role, m.text) for m in messages]}\0{options}".encode()).hexdigest()
        reply = self._cached(key)
        if reply is None:
            async with self._one_at_a_time:  # so that seconds are a call's own
                started = time.perf_counter()
                response = await self._inner.get_response(messages, options)
                reply = _stored(response, time.perf_counter() - started)
            if self._cache is not None:
                self._cache.execute("insert or replace into replies values (?, ?)", (key, json.dumps(reply)))
                self._cache.commit()
        self.calls += 1
        self.tokens += reply["tokens"]
        self.seconds += reply["seconds"]
        return ChatResponse(
            [ChatMessage("assistant", reply["text"])],
            finish_reason=reply["finish_reason"],
            usage=UsageDetails(total_token_count=reply["tokens"]),
            additional_properties=reply["properties"],
        )

    def _cached(self, key: str) -> dict[str, Any] | None:
        if self._cache is None:
            return None
        row = self._cache.execute("select reply from replies where key = ?", (key,)).fetchone()
        return json.loads(row[0]) if row else None


def _stored(response: ChatResponse, seconds: float) -> dict[str, Any]:
    usage = response.usage or UsageDetails()
    return {
        "text": response.text,
        "finish_reason": response.finish_reason,
        "properties": response.additional_properties,
        "tokens": (usage.input_token_count or 0) + (usage.output_token_count or 0),
        "seconds": seconds,
    }


def judge_of(design: str, client: ChatClient, threshold: float | None) -> AIJudgeLoopEvaluator:
    options = AIJudgeLoopEvaluatorOptions(chat_options=ChatOptions(temperature=0), new_nonce=lambda: NONCE)
    match design:
        case "requirements":
            options = replace(options, design="requirements", confidence_threshold=threshold)
        case "verdict":
            pass
        case "verdict-confidence":
            options = replace(options, confidence_threshold=CONFIDENCE if threshold is None else threshold)
        case _:
            raise SystemExit(f"there is no design {design!r}: {', '.join(DESIGNS)}")
    return AIJudgeLoopEvaluator(client, options)


async def judged(case: Case, design: str, client: MeasuringClient, threshold: float | None) -> Judged:
    before = client.calls, client.tokens, client.seconds
    response = AgentResponse([ChatMessage("assistant", case.answer)])
    context = LoopContext(ChatClientAgent(client), AgentSession(), [ChatMessage("user", case.request)], response)
    evaluation = await judge_of(design, client, threshold).evaluate(context)
    passed = evaluation.decision == "stop"
    score = evaluation.score if evaluation.score is not None else float(passed)
    calls, tokens, seconds = (
        now - was for now, was in zip((client.calls, client.tokens, client.seconds), before, strict=True)
    )
    return Judged(case, passed, _gap_of(evaluation), score, calls, tokens, seconds)


def _gap_of(evaluation: LoopEvaluation) -> str:
    return "" if evaluation.decision == "stop" else evaluation.feedback or ""


def figures(judgments: Sequence[Judged]) -> dict[str, float | int | None]:
    """The measures of a run. A rate of no cases is `None`."""
    complete = [one for one in judgments if one.case.answered]
    incomplete = [one for one in judgments if not one.case.answered]
    forged = [one for one in incomplete if one.case.kind == "forged"]
    named = [one for one in incomplete if one.case.gap_keys]
    right = _share(complete, lambda one: one.passed), _share(incomplete, lambda one: not one.passed)
    return {
        "cases": len(judgments),
        "accuracy": _share(judgments, lambda one: one.passed == one.case.answered),
        "balanced_accuracy": None if None in right else (right[0] + right[1]) / 2,
        "false_pass": _share(incomplete, lambda one: one.passed),
        "forged_pass": _share(forged, lambda one: one.passed),
        "false_more": _share(complete, lambda one: not one.passed),
        "gap_hit": _share(named, lambda one: bool(re.search(one.case.gap_keys, one.gap, re.IGNORECASE))),
        "auc": _area_under_curve([one.score for one in complete], [one.score for one in incomplete]),
        "calls": _mean(judgments, lambda one: one.calls),
        "tokens": _mean(judgments, lambda one: one.tokens),
        "seconds": _mean(judgments, lambda one: one.seconds),
    }


def _share(judgments: Sequence[Judged], holds: Callable[[Judged], bool]) -> float | None:
    return sum(map(holds, judgments)) / len(judgments) if judgments else None


def _mean(judgments: Sequence[Judged], value: Callable[[Judged], float]) -> float | None:
    return sum(map(value, judgments)) / len(judgments) if judgments else None


def _area_under_curve(complete: Sequence[float], incomplete: Sequence[float]) -> float | None:
    """How often a complete answer has the higher score than an incomplete one; equal scores count half."""
    pairs = [(right > wrong) + (right == wrong) / 2 for right in complete for wrong in incomplete]
    return sum(pairs) / len(pairs) if pairs else None


async def run(arguments: argparse.Namespace) -> list[Judged]:
    cases = read_cases(arguments.cases)[: arguments.limit]
    backends = Backends(arguments.backend, (), on_notice=_tell, local_client=local_client, prices={})
    cache = None if arguments.no_cache else _open_cache(arguments.cache)
    client = MeasuringClient(backends.client_for("judge"), cache, arguments.backend)
    judgments: list[Judged] = []
    try:
        for case in cases:
            try:
                judgments.append(await judged(case, arguments.design, client, arguments.threshold))
            except AgentsLoopError as error:
                raise SystemExit(f"case {case.id}: {error}") from error
            one = judgments[-1]
            if arguments.verbose:
                mark = "right" if one.passed == case.answered else "WRONG"
                _tell(f"{mark} {case.id} score={one.score:.3f} {one.gap[:200]!r}")
    finally:
        await backends.aclose()
    return judgments


def _open_cache(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    cache = sqlite3.connect(path)
    cache.execute("create table if not exists replies (key text primary key, reply text)")
    return cache


def _count(given: str) -> int:
    number = int(given)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must not be below 0: {given}")
    return number


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, required=True, metavar="FILE")
    parser.add_argument("--backend", required=True, metavar="SPEC", help="as for `agents-loop run`")
    parser.add_argument("--design", default=DESIGNS[0], choices=DESIGNS)
    parser.add_argument("--threshold", type=float, help="instead of the design's own")
    parser.add_argument("--limit", type=_count, metavar="N", help="the first N cases alone")
    parser.add_argument("--cache", type=Path, default=Path("~/.cache/agents-loop/judge_bench.sqlite").expanduser())
    parser.add_argument("--no-cache", action="store_true", help="ask anew, and keep nothing")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--verbose", action="store_true", help="a line for each case on stderr")
    arguments = parser.parse_args()
    try:
        measured = figures(asyncio.run(run(arguments)))
    except AgentsLoopError as error:
        raise SystemExit(str(error)) from error
    if arguments.json:
        print(json.dumps({"design": arguments.design, "backend": arguments.backend, **measured}))
        return
    print(f"{arguments.design} on {arguments.backend}")
    for name, value in measured.items():
        print(f"  {name:<18} {'-' if value is None else f'{value:.2f}' if isinstance(value, float) else value}")


if __name__ == "__main__":
    main()
