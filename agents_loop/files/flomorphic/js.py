"""The JavaScript engine: quickjs-ng. This file alone knows it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from agents_loop.errors import AgentsLoopError, ConfigurationError, MissingExtraError
from agents_loop.files.flomorphic.js_harness import HARNESS
from agents_loop.files.flomorphic.json_text import TooLongError, json_text
from agents_loop.messages import JsonValue
from agents_loop.numeric import is_int, is_number

DEFAULT_TIME_LIMIT_S: Final = 5.0
"""FloMorphic's own limit for a request."""
DEFAULT_MEMORY_LIMIT: Final = 64 << 20
DEFAULT_OUTPUT_CHARS: Final = 2_000_000
STACK_BYTES: Final = 256 << 10
"""Less than the smallest stack that a thread of Python's has."""
MOST_DEPTH: Final = 100
MOST_PATHS: Final = 100
"""How many paths one script may ask for: it is run again for each one that is computed anew."""


class JsError(AgentsLoopError):
    """A script threw, gave something that can't be kept, or went over a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsLimits:
    """What a script may use in one visit of its node, the runs for its paths together.

    Raises:
        TypeError: A limit is no number.
        ConfigurationError: It is not more than 0, or infinite.
    """

    time_s: float = DEFAULT_TIME_LIMIT_S
    """Seconds of the processor, which the whole process uses: a busy process reaches them sooner."""
    memory_bytes: int = DEFAULT_MEMORY_LIMIT
    """All that the engine allocates, its own 1 MB included."""
    output_chars: int = DEFAULT_OUTPUT_CHARS
    """Of the output as JSON text, and of what is logged."""

    def __post_init__(self) -> None:
        for name in ("time_s", "memory_bytes", "output_chars"):
            given = getattr(self, name)
            if not (is_number(given) if name == "time_s" else is_int(given)):
                raise TypeError(f"{name} must be a {'number' if name == 'time_s' else 'whole number'}, not {given!r}")
            if not 0 < given < math.inf:
                raise ConfigurationError(f"{name} must be more than 0 and finite, not {given!r}")


@dataclass(frozen=True, slots=True)
class JsOutcome:
    """What a script gave."""

    output: JsonValue
    logs: list[str] = field(default_factory=list[str])


def require_engine() -> Any:
    """The engine's module.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import quickjs  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError("agents_loop.files.flomorphic", "flomorphic") from error
    return quickjs


def run_script(
    code: str, given: str, get: Callable[[str], tuple[JsonValue] | None], limits: JsLimits, *, has_input: bool
) -> JsOutcome:
    """Run a script as a sloppy-mode program, in an engine of its own. It blocks: call it in a thread.

    Args:
        code: The script; the value of its last expression is the output.
        given: What `input` is, as JSON text.
        get: Gives the value of a path, in a tuple; `None` where there is none. It may raise `JsError`.
        limits: What it may use.
        has_input: Whether there is an `input` at all; else it is `undefined`.

    Raises:
        JsError: It threw, or gave something that can't be kept, or went over a limit.
    """
    known: dict[str, str | None] = {}
    room = limits.memory_bytes  # more than that the engine can't hold
    started = time.process_time()  # as the engine counts it
    while True:
        left_s = limits.time_s - (time.process_time() - started)
        if left_s <= 0:
            raise JsError(_too_long(limits))
        said = _once(code, given if has_input else None, known, limits, left_s)
        wanted = [path for path in said["wanted"] if path not in known]
        if not wanted:
            break
        if len(known) + len(wanted) > MOST_PATHS:
            raise JsError(f"it asks _get for more than {MOST_PATHS} paths")
        for path in wanted:
            found = get(path)
            if time.process_time() - started > limits.time_s:
                raise JsError(_too_long(limits))
            known[path] = None if found is None else _held(found[0], room, limits)
            room -= len(known[path] or "")
    if "error" in said:
        error = " ".join(said["error"].split())
        raise JsError("it threw null, or its memory ran out" if error == "null" else error)
    return JsOutcome(said["output"], said["logs"])


def syntax_error_in(code: str) -> str | None:
    """What is wrong with a script as such; nothing of it is run."""
    said = _once(f"throw null;\n{code}", None, {}, JsLimits(), 1.0)
    error = cast("str", said.get("error", ""))
    return error.removeprefix("SyntaxError: ") if error.startswith("SyntaxError") else None


def _once(
    code: str, given: str | None, known: Mapping[str, str | None], limits: JsLimits, left_s: float
) -> dict[str, Any]:
    quickjs = require_engine()
    context = quickjs.Context()
    context.set_max_stack_size(STACK_BYTES)
    context.set_memory_limit(limits.memory_bytes)
    context.set_time_limit(left_s)
    arguments = {
        "code": code,
        "input": given,
        "known": json.dumps(known),
        "mostChars": limits.output_chars,
        "mostDepth": MOST_DEPTH,
    }
    said, broken = "", None
    try:
        said = cast("str", context.eval(f"{HARNESS}({json.dumps(arguments)})"))
    except quickjs.JSException as error:
        broken = _limit_behind(str(error), limits)
    del context  # the engine must go in the thread that made it, and an exception would keep it alive
    if broken is not None:
        raise JsError(broken)
    return cast("dict[str, Any]", json.loads(said))


def _limit_behind(said: str, limits: JsLimits) -> str:
    """Which limit ended the script: what it throws itself is caught within the engine."""
    first = said.partition("\n")[0]
    if "interrupted" in first:
        return _too_long(limits)
    if "stack" in first:
        return "it calls itself too deep"
    return _too_much(limits)


def _too_much(limits: JsLimits) -> str:
    return f"it needs more than {limits.memory_bytes / (1 << 20):g} MB"


def _too_long(limits: JsLimits) -> str:
    return f"it took more than {limits.time_s:g} s"


def _held(value: JsonValue, room: int, limits: JsLimits) -> str:
    try:
        return json_text(value, room)
    except TooLongError as error:
        raise JsError(_too_much(limits)) from error
