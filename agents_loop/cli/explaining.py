"""An error in one line: what happened, and what to do."""

from __future__ import annotations

import traceback
from typing import Any, cast

from agents_loop.cli.text import one_line, printable, redact
from agents_loop.errors import AgentsLoopError
from agents_loop.files import LoopFileError

_LONGEST = 1000
_LONGEST_OF_AZURE = 120
_KEYS = {
    "openai": "check OPENAI_API_KEY, and OPENAI_BASE_URL if the key is another server's",
    "azure": "check AZURE_OPENAI_API_KEY (or `az login`) and AZURE_OPENAI_ENDPOINT",
}
_ADDRESSES = {
    "openai": "check OPENAI_BASE_URL and the network",
    "azure": "check AZURE_OPENAI_ENDPOINT and the network",
}
_NAMES = {
    "openai": "name one that the server has with --model '{model}=openai:NAME', or check OPENAI_BASE_URL",
    "azure": "name a deployment with --model '{model}=azure:DEPLOYMENT', or check AZURE_OPENAI_ENDPOINT",
}


def explain(error: BaseException, *, model: str | None = None, backend: str | None = None) -> str:
    """What happened and what to do, in one line and without secrets.

    Args:
        error: What was raised.
        model: The model of the latest call, by its name in the file.
        backend: The kind of backend that answers for it.
    """
    if isinstance(error, AgentsLoopError):
        return one_line(redact(str(error)), _LONGEST)
    provider = type(error).__module__.partition(".")[0]
    if provider == "openai":
        return _of_openai(error, model, backend)
    said = redact(f"{type(error).__name__}: {error}")
    if provider == "azure":
        return f"{one_line(said, _LONGEST_OF_AZURE)} -- log in with `az login`, or set AZURE_OPENAI_API_KEY"
    return one_line(said, _LONGEST)


def explain_each(error: BaseException) -> list[str]:
    """One line for each problem of a file, and for another error one."""
    if isinstance(error, LoopFileError):
        return [one_line(redact(line), _LONGEST) for line in error.lines]
    return [explain(error)]


def debug_text(error: BaseException) -> str:
    """The whole traceback, without secrets."""
    return printable(redact("".join(traceback.format_exception(error))))


def _of_openai(error: BaseException, model: str | None, backend: str | None) -> str:
    status = cast("int | None", getattr(error, "status_code", None))
    body = cast("Any", getattr(error, "body", None))
    told = cast("dict[str, Any]", body).get("message") if isinstance(body, dict) else None
    said = one_line(redact(str(told or error)), _LONGEST).rstrip(".")
    what = f"HTTP {status}: {said}" if status is not None else said
    who = f"the model {model!r} ({backend})" if model else "the model"
    hint = _hint(status, type(error).__name__, backend or "").format(model=model)
    return f"{who} did not answer: {what}" + (f" -- {hint}" if hint else "")


def _hint(status: int | None, kind: str, backend: str) -> str:
    match status:
        case 401 | 403:
            return _KEYS.get(backend, "")
        case 404:
            return _NAMES.get(backend, "")
        case 429:
            return "the rate limit or the quota is used up: try again later"
        case None if kind in ("APIConnectionError", "APITimeoutError"):
            return _ADDRESSES.get(backend, "")
        case _:
            return ""
