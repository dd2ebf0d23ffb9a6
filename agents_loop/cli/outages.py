"""Why a model did not answer, and what to do. The causes are those of `agents_loop.failures`."""

from __future__ import annotations

import os
from typing import Any, cast
from urllib.parse import urlsplit

from agents_loop.cli.text import one_line, redact
from agents_loop.failures import FailureCause, cause_of

_LONGEST = 1000
_LONGEST_OF_AZURE = 120
_QUESTION = " Is the address right?"
"""What our own client's message ends with; the hint answers it."""
_SETTINGS = {"openai": "OPENAI_BASE_URL", "azure": "AZURE_OPENAI_ENDPOINT"}
_KEYS = {
    "openai": "check OPENAI_API_KEY, and OPENAI_BASE_URL if the key is another server's",
    "azure": "check AZURE_OPENAI_API_KEY (or `az login`) and AZURE_OPENAI_ENDPOINT",
}
_NAMES = {
    "openai": "name one that the server has with --model '{model}=openai:NAME', or check OPENAI_BASE_URL",
    "azure": "name a deployment with --model '{model}=azure:DEPLOYMENT', or check AZURE_OPENAI_ENDPOINT",
}
_LATER = "the server failed: try again later"
_BROKEN = "the connection broke: try again"
_REJECTED = "the server rejects the request: check the prompts and the model's settings in the file"
_TOO_LONG = "the prompt is too long for the model: shorten it, or name a model with a longer context"
_BY_CAUSE = {
    FailureCause.RATE_LIMIT: "the rate limit or the quota is used up: try again later",
    FailureCause.QUOTA: "the account's quota is used up: check its plan and billing",
    FailureCause.TIMEOUT: _LATER,
    FailureCause.SERVER: _LATER,
    FailureCause.CONTEXT_OVERFLOW: _TOO_LONG,
}
"""What to do about an answer with a status; a cause that is not here is a rejection."""


def explain_outage(error: BaseException, model: str | None, backend: str | None) -> str | None:
    """The line for an error on the way to a model's server; `None` for another error.

    Args:
        error: What was raised.
        model: The model of the latest call, by its name in the file.
        backend: The kind of backend that answers for it.
    """
    who = f"the model {model!r} ({backend})" if model else "the model"
    said = redact(f"{type(error).__name__}: {error}")
    match type(error).__module__.partition(".")[0]:
        case "openai":
            return f"{who} did not answer: {_of_openai(error, model or '', backend or '')}"
        case "azure":
            return f"{one_line(said, _LONGEST_OF_AZURE)} -- log in with `az login`, or set AZURE_OPENAI_API_KEY"
        case "httpx" | "httpcore":
            return f"{who} did not answer: {one_line(said, _LONGEST)} -- {_BROKEN}"
        case "json" if model:
            return f"{who} did not answer: the reply is not JSON -- {_wrong_address(backend or '')}"
        case _:
            return None


def _of_openai(error: BaseException, model: str, backend: str) -> str:
    status = cast("int | None", getattr(error, "status_code", None))
    body: object = getattr(error, "body", None)
    told = _message(body)
    said = str(told or error).removeprefix(f"Error code: {status}").removeprefix(" - ").removesuffix(_QUESTION)
    said = one_line(redact(said), _LONGEST).rstrip(".")
    what = ": ".join([part for part in ("" if status is None else f"HTTP {status}", said) if part])
    cause = cause_of(error)
    hint = _hint_without_status(cause, backend) if status is None else _hint(cause, status, model, backend)
    return f"{what} -- {hint}"


def _message(body: object) -> object:
    return cast("dict[str, Any]", body).get("message") if isinstance(body, dict) else None


def _hint_without_status(cause: FailureCause, backend: str) -> str:
    match cause:
        case FailureCause.NETWORK | FailureCause.TIMEOUT:
            return f"check {_SETTINGS[backend]} and the network" if backend in _SETTINGS else _BROKEN
        case FailureCause.UNREADABLE:
            return _wrong_address(backend)
        case _:
            return _BY_CAUSE.get(cause, _LATER)


def _hint(cause: FailureCause, status: int, model: str, backend: str) -> str:
    """By cause; of what is none, two statuses tell what to look at."""
    match status:
        case _ if cause == FailureCause.AUTH:
            return _KEYS.get(backend, _REJECTED)
        case 404:
            return _NAMES.get(backend, _REJECTED).replace("{model}", model)
        case 405:
            return _wrong_address(backend)
        case _:
            return _BY_CAUSE.get(cause, _REJECTED)


def _wrong_address(backend: str) -> str:
    """What to do about a server that speaks another language; its address is shown without query and password."""
    if backend not in _SETTINGS:
        return _LATER
    setting = _SETTINGS[backend]
    address = urlsplit(os.environ.get(setting, "").strip())
    host = address.netloc.rpartition("@")[2]
    server = f"the model's server, {redact(f'{address.scheme}://{host}{address.path}')}," if host else "its server"
    return f"the address of {server} is probably wrong: check {setting}"
