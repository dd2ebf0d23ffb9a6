"""Why a model gave no proper answer: one table for what the SDKs raise and for how replies end. It loads no SDK.

Exceptions are known by the names of their classes and of the packages these come from, by HTTP status and by the
provider's error code; so the table holds for an SDK that is not installed. `tests/test_failures.py` walks all exception
classes of the SDKs that are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, Final, cast

from agents_loop.messages import UsageDetails
from agents_loop.numeric import is_int


class FailureCause(StrEnum):
    """Why a model gave no proper answer."""

    REFUSAL = "refusal"
    """The model refused."""
    CONTENT_FILTER = "content_filter"
    """The provider's filter stopped the prompt or the answer."""
    LENGTH = "length"
    """The answer was cut off by a token limit."""
    RATE_LIMIT = "rate_limit"
    """Too many requests at the moment (429)."""
    QUOTA = "quota"
    """What the account may use is used up; waiting does not help."""
    AUTH = "auth"
    """The key or the login is not accepted (401, 403)."""
    TIMEOUT = "timeout"
    """No answer came in time."""
    NETWORK = "network"
    """The connection could not be made, or broke."""
    SERVER = "server"
    """The server failed (5xx, or an error inside a stream)."""
    UNREADABLE = "unreadable"
    """What came is not what was asked for."""
    CONTEXT_OVERFLOW = "context_overflow"
    """The prompt is longer than the model's context."""
    OTHER = "other"
    """The request was rejected (400, 404, 422), or anything else."""


TRANSIENT_CAUSES: Final = frozenset(
    {FailureCause.RATE_LIMIT, FailureCause.TIMEOUT, FailureCause.NETWORK, FailureCause.SERVER}
)
"""Causes that may have passed by the next attempt, here or at another server."""

_C = FailureCause
_HTTP: dict[str, FailureCause] = {
    "TimeoutException": _C.TIMEOUT,
    "NetworkError": _C.NETWORK,
    "ProtocolError": _C.NETWORK,
    "ProxyError": _C.NETWORK,
    "TransportError": _C.NETWORK,
    "ConnectionNotAvailable": _C.NETWORK,
    "LocalProtocolError": _C.OTHER,
    "UnsupportedProtocol": _C.OTHER,
    "DecodingError": _C.UNREADABLE,
}
_BY_CLASS: dict[str, dict[str, FailureCause]] = {
    "builtins": {"TimeoutError": _C.TIMEOUT, "ConnectionError": _C.NETWORK},
    "socket": {"gaierror": _C.NETWORK},
    "ssl": {"SSLError": _C.NETWORK},
    "json": {"JSONDecodeError": _C.UNREADABLE},
    "httpx": _HTTP,
    "httpx2": _HTTP,
    "httpcore": _HTTP,
    "httpcore2": _HTTP,
    "openai": {
        "APITimeoutError": _C.TIMEOUT,
        "APIConnectionError": _C.NETWORK,
        "WebSocketConnectionClosedError": _C.NETWORK,
        "APIResponseValidationError": _C.UNREADABLE,
        "AgentOutputParseError": _C.UNREADABLE,
        "LengthFinishReasonError": _C.LENGTH,
        "ContentFilterFinishReasonError": _C.CONTENT_FILTER,
        "InternalServerError": _C.SERVER,
        "SubjectTokenProviderError": _C.AUTH,
        "_TransientTokenExchangeError": _C.AUTH,
    },
    "semantic_kernel": {
        "ServiceContentFilterException": _C.CONTENT_FILTER,
        "ServiceInvalidAuthError": _C.AUTH,
        "ServiceInvalidResponseError": _C.UNREADABLE,
    },
    "agent_framework": {
        "AgentContentFilterException": _C.CONTENT_FILTER,
        "ChatClientContentFilterException": _C.CONTENT_FILTER,
        "IntegrationContentFilterException": _C.CONTENT_FILTER,
        "AgentInvalidAuthException": _C.AUTH,
        "ChatClientInvalidAuthException": _C.AUTH,
        "IntegrationInvalidAuthException": _C.AUTH,
        "AgentInvalidResponseException": _C.UNREADABLE,
        "ChatClientInvalidResponseException": _C.UNREADABLE,
        "IntegrationInvalidResponseException": _C.UNREADABLE,
    },
    "azure": {
        "ClientAuthenticationError": _C.AUTH,
        "ServiceRequestTimeoutError": _C.TIMEOUT,
        "ServiceResponseTimeoutError": _C.TIMEOUT,
        "ServiceRequestError": _C.NETWORK,
        "ServiceResponseError": _C.NETWORK,
        "IncompleteReadError": _C.NETWORK,
        "DecodeError": _C.UNREADABLE,
        "DeserializationError": _C.UNREADABLE,
        "BadResponse": _C.UNREADABLE,
    },
}
"""By the package and the name of a class, or of one that it derives from; the nearest one counts."""

_BY_CODE: dict[str, FailureCause] = {
    "insufficient_quota": _C.QUOTA,
    "billing_hard_limit_reached": _C.QUOTA,
    "billing_not_active": _C.QUOTA,
    "content_filter": _C.CONTENT_FILTER,
    "ResponsibleAIPolicyViolation": _C.CONTENT_FILTER,
    "content_policy_violation": _C.CONTENT_FILTER,
    "context_length_exceeded": _C.CONTEXT_OVERFLOW,
    "exceed_context_size_error": _C.CONTEXT_OVERFLOW,
    "string_above_max_length": _C.CONTEXT_OVERFLOW,
    "rate_limit_exceeded": _C.RATE_LIMIT,
    "server_error": _C.SERVER,
    "overloaded_error": _C.SERVER,
    "invalid_api_key": _C.AUTH,
}
"""By what a provider calls it, in `code` or `type`: OpenAI's names, Azure's, and one of llama.cpp (`exceed_...`)."""

_BY_STATUS: dict[int, FailureCause] = {
    401: _C.AUTH,
    402: _C.QUOTA,
    403: _C.AUTH,
    408: _C.TIMEOUT,
    409: _C.SERVER,
    413: _C.CONTEXT_OVERFLOW,
    429: _C.RATE_LIMIT,
    504: _C.TIMEOUT,
}
"""By HTTP status; 409 is a lock that was not got in time (the SDKs try it again, as they do 408, 429 and 5xx)."""
_LAST_OF_THE_CALLER = 499

_OVERFLOW = ("context length", "context window", "context size", "prompt is too long", "maximum context")
"""What servers without a code say of a prompt that is too long."""

_BY_FINISH_REASON: dict[str | None, FailureCause] = {
    "length": _C.LENGTH,
    "content_filter": _C.CONTENT_FILTER,
    "refusal": _C.REFUSAL,
}


def cause_of(error: BaseException) -> FailureCause:
    """Why a call failed: of the exception, or of the nearest one behind it (`raise ... from`) that tells.

    It is total: what nothing is known of is `OTHER`.
    """
    for raised in _chain(error):
        cause = _own_cause(raised)
        if cause is not None:
            return cause
    return _C.OTHER


def cause_of_finish(finish_reason: str | None) -> FailureCause | None:
    """Why an answer is not a whole one; `None` for one that is."""
    return _BY_FINISH_REASON.get(finish_reason)


def retry_after_s(error: BaseException) -> float | None:
    """How long the server asks to wait: `retry-after-ms`, or `Retry-After` as seconds or a date; `None` without any."""
    for raised in _chain(error):
        headers: Any = getattr(getattr(raised, "response", None), "headers", None)
        if headers is not None:
            return _wait_of(headers)
    return None


def usage_of_error(error: BaseException) -> UsageDetails | None:
    """What a call used that ended in an exception, where the exception holds the reply (`LengthFinishReasonError`)."""
    for raised in _chain(error):
        usage: Any = getattr(getattr(raised, "completion", None), "usage", None)
        if usage is not None:
            return UsageDetails(_count(usage, "prompt"), _count(usage, "completion"), _count(usage, "total"))
    return None


def _count(usage: Any, name: str) -> int | None:
    count: object = getattr(usage, f"{name}_tokens", None)
    return count if isinstance(count, int) else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__


def _own_cause(error: BaseException) -> FailureCause | None:
    body = _body_of(error)
    inner: object = body.get("innererror")
    if isinstance(inner, dict):
        named = _named(cast("dict[str, Any]", inner).get("code"))
        if named is not None:
            return named
    for said in (getattr(error, "code", None), getattr(error, "type", None), body.get("code"), body.get("type")):
        named = _named(said)
        if named is not None:
            return named
    status = _status_of(error, body)
    by_class = _of_class(error)
    if status is not None and by_class in (None, _C.SERVER):
        return _of_status(status, error)
    if by_class is None and _is_plain_api_error(error):
        return _C.SERVER if isinstance(getattr(error, "body", None), dict | None) else _C.UNREADABLE
    return by_class


def _named(said: object) -> FailureCause | None:
    return _BY_CODE.get(said) if isinstance(said, str) else None


def _body_of(error: BaseException) -> Mapping[str, Any]:
    body: object = getattr(error, "body", None)
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}


def _of_class(error: BaseException) -> FailureCause | None:
    for kind in type(error).__mro__:
        named = _BY_CLASS.get(kind.__module__.partition(".")[0])
        if named is not None and kind.__name__ in named:
            return named[kind.__name__]
    return _C(said) if (said := _cause_it_names(error)) in list(_C) else None


def _cause_it_names(error: BaseException) -> object:
    """The cause that an error of this library names itself (`JudgeFailedError`, `NoCandidateError`)."""
    return getattr(error, "cause", None) if type(error).__module__.startswith("agents_loop.") else None


def _status_of(error: BaseException, body: Mapping[str, Any]) -> int | None:
    """The HTTP status, also that of an error that came as an event inside a stream."""
    response: object = getattr(error, "response", None)
    for said in (getattr(error, "status_code", None), getattr(response, "status_code", None), body.get("code")):
        if is_int(said):
            return said
        if isinstance(said, str) and said.isdecimal():
            return int(said)
    return None


def _of_status(status: int, error: BaseException) -> FailureCause:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status > _LAST_OF_THE_CALLER:
        return _C.SERVER
    said = str(error).lower()
    return _C.CONTEXT_OVERFLOW if any(words in said for words in _OVERFLOW) else _C.OTHER


def _is_plain_api_error(error: BaseException) -> bool:
    """What the OpenAI SDK raises for an error event inside a stream, and our client for a reply without an answer."""
    kind = type(error)
    return kind.__name__ == "APIError" and kind.__module__.partition(".")[0] == "openai"


def _wait_of(headers: Any) -> float | None:
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name)) / unit
        except (TypeError, ValueError):
            continue
        return seconds if 0 <= seconds < float("inf") else None
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after")).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
