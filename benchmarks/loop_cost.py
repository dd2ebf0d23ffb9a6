"""What the loop itself costs, as a ratio to a bare asyncio loop that does the same work in the same process.

    python benchmarks/loop_cost.py [--json]

The work: a worker's answer of about 200 characters, a judge's verdict as JSON, feedback to the worker, again and again.
Both sides use clients that answer at once, so what is measured is CPU time: the least of several rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

from agents_loop import (
    AIJudgeLoopEvaluator,
    ChatClient,
    ChatClientAgent,
    ChatMessage,
    ChatResponse,
    LoopAgent,
    LoopAgentOptions,
    LoopBudget,
    StallPolicy,
    UsageDetails,
)

ANSWER = ("The release went out on Tuesday after the last fix was merged. " * 4)[:200]
VERDICT = '{"gapAnalysis": "the cost estimate is missing", "answered": false}'
REQUEST = "Write a status report with a risk list, an owner for each risk, and a cost estimate."
ROUNDS = 40


# --- the bare loop


@dataclass
class Message:
    role: str
    text: str


@dataclass
class Reply:
    messages: list[Message]


@dataclass
class Verdict:
    answered: bool
    gap: str


class BareClient:
    def __init__(self, text):
        self.text = text

    async def ask(self, messages):
        return Reply([Message("assistant", self.text)])


async def bare_judgment(judge, answer):
    question = f"Request:\n{REQUEST}\n\nAnswer:\n{answer}\n\nIs it complete?"
    reply = await judge.ask([Message("system", "You judge."), Message("user", question)])
    read = json.loads(reply.messages[-1].text)
    return Verdict(read["answered"], read["gapAnalysis"])


async def bare_loop(iterations):
    """What one writes by hand: no stop reasons, no fences, no sessions, no events, no checks."""
    worker, judge = BareClient(ANSWER), BareClient(VERDICT)
    system = Message("system", "You write reports.")
    history = [Message("user", REQUEST)]
    for number in range(1, iterations + 1):
        reply = await worker.ask([system, *history])
        history += reply.messages
        if number == iterations:
            break
        verdict = await bare_judgment(judge, reply.messages[-1].text)
        if verdict.answered:
            break
        history.append(Message("user", f"Something is missing: {verdict.gap}"))
    return history


# --- ours


class Worker(ChatClient):
    """Answers at once, or after a delay."""

    def __init__(self, text: str, delay_s: float = 0) -> None:
        self.text = text
        self.delay_s = delay_s

    async def get_response(self, messages, options=None):
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        return ChatResponse([ChatMessage("assistant", self.text)])


def our_loop(iterations: int, delay_s: float = 0) -> LoopAgent:
    agent = ChatClientAgent(Worker(ANSWER, delay_s), instructions="You write reports.")
    judge = AIJudgeLoopEvaluator(Worker(VERDICT, delay_s))
    return LoopAgent(agent, judge, LoopAgentOptions(max_iterations=iterations))


class Drafts(Worker):
    """Answers with a text of its own each time, as an agent does whose drafts get better."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__("")
        self.texts = texts
        self.asked = 0

    async def get_response(self, messages, options=None):
        self.asked += 1
        message = ChatMessage("assistant", self.texts[self.asked % len(self.texts)])
        return ChatResponse([message], usage=UsageDetails(100, 50))


def drafting_loop(**options: Any) -> LoopAgent:
    """A loop whose drafts and gaps differ, so that no signal of a stall is true of it."""
    drafts = [" ".join(f"word{(7 * draft + 13 * n) % 401}" for n in range(30)) for draft in range(50)]
    gaps = [json.dumps({"gapAnalysis": f"part {draft} has no cost estimate", "answered": False}) for draft in range(50)]
    agent = ChatClientAgent(Drafts(drafts), instructions="You write reports.")
    return LoopAgent(agent, AIJudgeLoopEvaluator(Drafts(gaps)), LoopAgentOptions(max_iterations=100, **options))


# --- measuring


async def cpu_us_per_iteration(runs, iterations):
    """The least of several rounds, for each of the runs; they take turns, so that a slow machine is slow for all."""
    repeats = max(1, 1000 // iterations)
    best = [float("inf")] * len(runs)
    for _ in range(ROUNDS):
        for index, run in enumerate(runs):
            started = time.process_time()
            for _ in range(repeats):
                await run()
            best[index] = min(best[index], (time.process_time() - started) / (repeats * iterations) * 1e6)
    return best


async def many_at_once(loops: int, iterations: int, delay_s: float) -> float:
    """Wall seconds of many loops at once; the ideal is the time that one of them sleeps."""
    loop = our_loop(iterations, delay_s)
    started = time.perf_counter()
    await asyncio.gather(*[loop.run(REQUEST) for _ in range(loops)])
    return time.perf_counter() - started


def import_seconds(code: str) -> float:
    script = f"import time; t = time.perf_counter(); {code}; print(time.perf_counter() - t)"
    rounds = [float(subprocess.check_output([sys.executable, "-c", script])) for _ in range(9)]
    return statistics.median(rounds)


BASE_IMPORT = "import asyncio, pydantic\nclass Model(pydantic.BaseModel):\n    answered: bool\n    gap: str = ''\n"
USUAL_IMPORT = "from agents_loop import AIJudgeLoopEvaluator, ChatClientAgent, LoopAgent"


async def measure() -> dict[str, float]:
    figures: dict[str, float] = {}
    for iterations in (10, 100, 1000):
        loop = our_loop(iterations)
        runs = (lambda n=iterations: bare_loop(n), lambda loop=loop: loop.run(REQUEST))
        bare, ours = await cpu_us_per_iteration(runs, iterations)
        figures |= {
            f"bare_us_{iterations}": bare,
            f"ours_us_{iterations}": ours,
            f"ratio_{iterations}": ours / bare,
        }
    guards = {"stall": StallPolicy(), "budget": LoopBudget(max_tokens=10**12)}
    loops = [drafting_loop(), drafting_loop(stall=guards["stall"]), drafting_loop(**guards)]
    plain, watched, guarded = await cpu_us_per_iteration([lambda loop=loop: loop.run(REQUEST) for loop in loops], 100)
    figures |= {"stall_over_none_100": watched / plain, "stall_and_budget_over_none_100": guarded / plain}
    figures["growth_1000_over_10"] = figures["ours_us_1000"] / figures["ours_us_10"]
    # Ten iterations are ten agent calls and nine judge calls of 10 ms.
    figures["200_loops_s"] = min([await many_at_once(200, 10, 0.01) for _ in range(5)])
    figures["200_loops_over_ideal"] = figures["200_loops_s"] / (19 * 0.01)
    base = import_seconds(f"exec({BASE_IMPORT!r})")
    figures |= {
        "import_base_s": base,
        "import_ours_over_base": import_seconds(f"exec({BASE_IMPORT + 'import agents_loop'!r})") / base,
        "import_alone_over_base": import_seconds("import agents_loop") / base,
        "import_usual_names_over_base": import_seconds(f"exec({USUAL_IMPORT!r})") / base,
    }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")
    figures = asyncio.run(measure())
    if parser.parse_args().json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:32}{value:10.3f}")


if __name__ == "__main__":
    main()
