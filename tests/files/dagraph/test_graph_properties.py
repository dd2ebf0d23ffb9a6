from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from random import Random
from typing import Any

from graphs import Cast, agent, graph, nodes
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_loop import LoopResult, StopReason
from agents_loop.files import RunFolder

OVER = {"done", "resumed", "skipped"}


def any_graph(random: Random) -> str:
    """Up to six nodes that depend on earlier ones, some of them loops, conditional, or tried again."""
    lines: list[str] = []
    for number in range(random.randint(1, 6)):
        needs = [f"n{other}" for other in range(number) if random.random() < 0.4]
        more = [f"depends_on: [{', '.join(needs)}]"]
        more += [random.choice(["when: 'false'", "when: '1'"])] if random.random() < 0.3 else []
        more += ["retry: {max_attempts: 2}"] if random.random() < 0.5 else []
        prompt = " ".join(["p", *[f"{{{{ {name} }}}}" for name in needs]])
        line = agent(f"n{number}", *more, prompt=prompt)
        if random.random() < 0.5:
            parts = (
                f"generator: {{model: m, prompt: {prompt!r}}}, evaluator: {{model: e, prompt: '{{{{ candidate }}}}'}}"
            )
            line = line.replace("type: agent, ", "type: evaluator_loop, max_iterations: 2, ")
            line = line.replace(f"model: m, prompt: {prompt!r}", parts)
        lines.append(line)
    return graph(*lines)


def any_cast(random: Random) -> Cast:
    """Models that take their time, and fail now and then."""

    async def write(messages: Any, options: Any) -> str:
        for _ in range(random.randint(0, 3)):
            await asyncio.sleep(0)
        if random.random() < 0.15:
            raise RuntimeError("down")
        return "text"

    async def judge(messages: Any, options: Any) -> str:
        await asyncio.sleep(0)
        return json.dumps({"approved": random.random() < 0.5, "feedback": "f"})

    return Cast(m=write, e=judge)


async def outcome(cast: Cast, path: Path, folder: RunFolder) -> LoopResult:
    try:
        return await cast.build(path, run_folder=folder).run()
    except RuntimeError as error:
        result = LoopResult.of(error)
        assert result is not None
        return result


@given(seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_any_graph_ends_and_can_be_resumed_until_it_is_over(seed: int):
    """Whatever fails, in whatever order: nothing keeps running, what is done stays done, and the end fits the nodes."""
    random = Random(seed)
    cast = any_cast(random)

    async def attempts(path: Path, folder: RunFolder) -> None:
        before: set[str] = set()
        for _ in range(6):
            result = await outcome(cast, path, folder)
            assert asyncio.all_tasks() == {asyncio.current_task()}
            over = {name for name, node in nodes(result).items() if node["status"] in OVER}
            assert before <= over
            before = over
            failed = {name for name, node in nodes(result).items() if node["status"] == "failed"}
            assert bool(failed) is (result.stop_reason == StopReason.FAILED)
            if not failed:
                assert over == set(nodes(result))
                assert result.stop_reason in (StopReason.SATISFIED, StopReason.MAX_ITERATIONS)
                calls = cast.calls
                again = await outcome(cast, path, folder)
                assert (again.output, again.stop_reason, cast.calls) == (result.output, result.stop_reason, calls)
                return

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "g.yaml"
        path.write_text(any_graph(random), "utf-8")
        asyncio.run(attempts(path, RunFolder(Path(name) / "runs", "one")))
