"""The command under test, and what it ran into."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMERICK = str(Path(__file__).parents[1] / "files" / "data" / "limerick.yaml")
ROOT = Path(__file__).parents[2]
SETTINGS = (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_API_VERSION",
    "AZURE_OPENAI_ENDPOINT",
    "AZURE_OPENAI_API_KEY",
    "AGENTS_LOOP_MODEL",
    "FORCE_COLOR",
    "PYTHONUTF8",
    "PYTHONIOENCODING",
)


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)

    @property
    def error_lines(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("error: ")]


Command = Callable[..., Ran]


def process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """The command, as a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return subprocess.run(
        [sys.executable, "-m", "agents_loop.cli", *arguments],
        env={**environment, **options.pop("env", {})},
        cwd=ROOT,
        timeout=120,
        check=False,
        **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | options),
    )


def verdict(approved: object, feedback: str = "no", **more: object) -> str:
    return json.dumps({"approved": approved, "feedback": feedback, **more})
