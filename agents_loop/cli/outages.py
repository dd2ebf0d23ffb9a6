"""Why a model did not answer, and what to do: the errors of the SDKs, known by their names so that none is loaded."""

from __future__ import annotations

import os
from typing import Any, cast
from urllib.parse import urlsplit

from agents_loop.cli.text import one_line, redact

_LONGEST = 1000
_LONGEST_OF_AZURE = 120
_LAST_OF_THE_CALLER = 499
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
_BY_STATUS = {
    408: _LATER,
    409: _LATER,
    429: "the rate limit or the quota is used up: try again later",
}


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
    hint = _hint_without_status(error, body, backend) if status is None else _hint(status, model, backend)
    return f"{what} -- {hint}"


def _message(body: object) -> object:
    return cast("dict[str, Any]", body).get("message") if isinstance(body, dict) else None


def _hint_without_status(error: BaseException, body: object, backend: str) -> str:
    if type(error).__name__ in ("APIConnectionError", "APITimeoutError"):
        return f"check {_SETTINGS[backend]} and the network" if backend in _SETTINGS else _BROKEN
    return _LATER if body is None or isinstance(body, dict) else _wrong_address(backend)


def _hint(status: int, model: str, backend: str) -> str:
    if status > _LAST_OF_THE_CALLER:
        return _LATER
    match status:
        case 401 | 403:
            return _KEYS.get(backend, _REJECTED)
        case 404:
            return _NAMES.get(backend, _REJECTED).replace("{model}", model)
        case 405:
            return _wrong_address(backend)
        case _:
            return _BY_STATUS.get(status, _REJECTED)


def _wrong_address(backend: str) -> str:
    """What to do about a server that speaks another language; its address is shown without query and password."""
    if backend not in _SETTINGS:
        return _LATER
    setting = _SETTINGS[backend]
    address = urlsplit(os.environ.get(setting, "").strip())
    host = address.netloc.rpartition("@")[2]
    server = f"the model's server, {redact(f'{address.scheme}://{host}{address.path}')}," if host else "its server"
    return f"the address of {server} is probably wrong: check {setting}"
