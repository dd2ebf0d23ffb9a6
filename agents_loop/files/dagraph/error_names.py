"""The names of exceptions that `retry_on` may hold. What they stand for need not be installed."""

from __future__ import annotations

import builtins
import difflib
import re
from typing import Final

from agents_loop import errors

EVERY_ERROR: Final = "*"

_WITH_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_NEVER: Final = frozenset({"ApprovalPending", "BudgetExceededError"})
"""dagraph never tries these again, and neither does this library."""

OF_PYTHON: Final = frozenset(
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning)
)
OF_THIS_LIBRARY: Final = frozenset(
    {name for name, kind in vars(errors).items() if getattr(kind, "__module__", None) == errors.__name__}
    | {
        "CallTimeoutError",
        "ModelBusyError",
        "ModelLoadError",
        "NoCandidateError",
        "PromptError",
        "ScriptExhaustedError",
    }
    | {"UnknownCallError"}
)
OF_SDKS: Final = {
    "openai": (
        *("OpenAIError", "APIError", "APIStatusError", "APIConnectionError", "APITimeoutError"),
        *("APIResponseValidationError", "BadRequestError", "AuthenticationError", "PermissionDeniedError"),
        *("NotFoundError", "ConflictError", "UnprocessableEntityError", "RateLimitError", "InternalServerError"),
        *("LengthFinishReasonError", "ContentFilterFinishReasonError"),
    ),
    "httpx": (
        *("HTTPError", "HTTPStatusError", "RequestError", "TransportError", "TooManyRedirects", "DecodingError"),
        *("TimeoutException", "ConnectTimeout", "ReadTimeout", "WriteTimeout", "PoolTimeout"),
        *("NetworkError", "ConnectError", "ReadError", "WriteError", "CloseError"),
        *("ProtocolError", "LocalProtocolError", "RemoteProtocolError", "ProxyError", "UnsupportedProtocol"),
    ),
    "azure.core.exceptions": (
        *("AzureError", "ServiceRequestError", "ServiceRequestTimeoutError", "ServiceResponseError"),
        *("ServiceResponseTimeoutError", "HttpResponseError", "ClientAuthenticationError"),
    ),
    "json": ("JSONDecodeError",),
}
"""By the module that has them: what the SDKs of models raise."""

KNOWN: Final = OF_PYTHON.union(OF_THIS_LIBRARY, *OF_SDKS.values()) - _NEVER


def check_error_name(name: str) -> str:
    """The name, if `retry_on` may hold it. With its module it may be that of any exception, such as one of your own.

    Raises:
        ValueError: It may not: no exception that a model's call raises is called so.
    """
    if name == EVERY_ERROR or name in KNOWN or _WITH_MODULE.fullmatch(name):
        return name
    if name in _NEVER:
        raise ValueError(f"{name} is never tried again: take it out")
    close = difflib.get_close_matches(name, sorted(KNOWN), n=1)
    hint = f"did you mean {close[0]!r}?" if close else "known are '*', Python's and those of the models' SDKs"
    raise ValueError(f"unknown exception {name!r}; {hint} (one of your own stands with its module: 'shop.DownError')")


def is_named(error: Exception, names: list[str]) -> bool:
    """Whether one of these names is that of an exception, or of a class that it derives from."""
    kinds = type(error).__mro__
    called = {kind.__name__ for kind in kinds} | {f"{kind.__module__}.{kind.__qualname__}" for kind in kinds}
    return EVERY_ERROR in names or not called.isdisjoint(names)
