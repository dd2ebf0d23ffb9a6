"""Laws 25 and P1: one table tells why a model gave no proper answer, and it is total."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import socket
import ssl
import sys
import time
import warnings
from email.utils import formatdate
from types import SimpleNamespace

import pytest

from agents_loop import JudgeFailedError, UsageDetails
from agents_loop.failures import (
    TRANSIENT_CAUSES,
    FailureCause,
    cause_of,
    cause_of_finish,
    retry_after_s,
    usage_of_error,
)

C = FailureCause

INTENDED = {
    "openai": {
        "APIConnectionError": C.NETWORK,
        "APIError": C.SERVER,
        "APIResponseValidationError": C.UNREADABLE,
        "APITimeoutError": C.TIMEOUT,
        "AgentOutputParseError": C.UNREADABLE,
        "AuthenticationError": C.AUTH,
        "ConflictError": C.SERVER,
        "ContentFilterFinishReasonError": C.CONTENT_FILTER,
        "InternalServerError": C.SERVER,
        "LengthFinishReasonError": C.LENGTH,
        "OAuthError": C.AUTH,
        "PermissionDeniedError": C.AUTH,
        "RateLimitError": C.RATE_LIMIT,
        "SubjectTokenProviderError": C.AUTH,
        "WebSocketConnectionClosedError": C.NETWORK,
        "_TransientTokenExchangeError": C.AUTH,
    },
    "semantic_kernel": {
        "ContentFilterAIException": C.CONTENT_FILTER,
        "ServiceContentFilterException": C.CONTENT_FILTER,
        "ServiceInvalidAuthError": C.AUTH,
        "ServiceInvalidResponseError": C.UNREADABLE,
    },
    "agent_framework": {
        "AgentContentFilterException": C.CONTENT_FILTER,
        "AgentInvalidAuthException": C.AUTH,
        "AgentInvalidResponseException": C.UNREADABLE,
        "ChatClientContentFilterException": C.CONTENT_FILTER,
        "ChatClientInvalidAuthException": C.AUTH,
        "ChatClientInvalidResponseException": C.UNREADABLE,
        "IntegrationContentFilterException": C.CONTENT_FILTER,
        "IntegrationInvalidAuthException": C.AUTH,
        "IntegrationInvalidResponseException": C.UNREADABLE,
        "_SearchTimeout": C.OTHER,
    },
    "azure.core": {
        "BadResponse": C.UNREADABLE,
        "ClientAuthenticationError": C.AUTH,
        "DecodeError": C.UNREADABLE,
        "DeserializationError": C.UNREADABLE,
        "IncompleteReadError": C.NETWORK,
        "ServiceRequestError": C.NETWORK,
        "ServiceRequestTimeoutError": C.TIMEOUT,
        "ServiceResponseError": C.NETWORK,
        "ServiceResponseTimeoutError": C.TIMEOUT,
    },
    "azure.identity": {"AuthenticationRequiredError": C.AUTH, "CredentialUnavailableError": C.AUTH},
    "httpx": {
        "CloseError": C.NETWORK,
        "ConnectError": C.NETWORK,
        "ConnectTimeout": C.TIMEOUT,
        "DecodingError": C.UNREADABLE,
        "NetworkError": C.NETWORK,
        "PoolTimeout": C.TIMEOUT,
        "ProtocolError": C.NETWORK,
        "ProxyError": C.NETWORK,
        "ReadError": C.NETWORK,
        "ReadTimeout": C.TIMEOUT,
        "RemoteProtocolError": C.NETWORK,
        "TimeoutException": C.TIMEOUT,
        "TransportError": C.NETWORK,
        "WriteError": C.NETWORK,
        "WriteTimeout": C.TIMEOUT,
    },
}
"""Every class that tells a cause. All others are `OTHER`, and none of them speaks of a failed call by its name."""

NAMES_OF_FAILED_CALLS = (
    "timeout", "connect", "ratelimit", "quota", "auth", "filter", "length", "unavailable", "overload", "server",
)  # fmt: skip
NOT_OF_CALLS = {
    "openai": {
        "MutuallyExclusiveAuthError",  # wrong arguments, before any call
    },
    "semantic_kernel": {
        "FilterException",  # Semantic Kernel's own filters of functions
        "FilterManagementException",
        "MemoryConnectorConnectionException",  # a vector store's
        "MemoryConnectorException",
        "MemoryConnectorInitializationError",
        "MemoryConnectorResourceNotFound",
    },
    "agent_framework": {
        "GraphConnectivityError",  # a workflow's graph
    },
    "azure.core": set(),
    "azure.identity": set(),
    "httpx": set(),
}


def exceptions_of(package: str) -> list[type[BaseException]]:
    """All exception classes that the installed package defines, in all of its modules that can be imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = importlib.import_module(package)
        for module in pkgutil.walk_packages(root.__path__, f"{package}.", onerror=lambda name: None):
            if "__main__" not in module.name:
                try:
                    importlib.import_module(module.name)
                except Exception:  # noqa: BLE001, S112 - a part whose own dependency is not installed
                    continue
    found = {
        value
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").split(".")[: package.count(".") + 1] == package.split(".")
        for value in list(vars(module).values())
        if inspect.isclass(value) and issubclass(value, BaseException) and value.__module__.startswith(package)
    }
    return sorted(found, key=lambda kind: (kind.__module__, kind.__qualname__))


@pytest.mark.parametrize("package", INTENDED)
def test_the_table_is_total(package: str):
    """Law 25: every exception class of an SDK has the intended cause; a new one of a failed call would be noticed."""
    found = exceptions_of(package)
    assert found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        causes = {kind.__name__: cause_of(kind.__new__(kind)) for kind in found}
    intended = INTENDED[package]
    assert intended.keys() <= causes.keys()
    for name, cause in causes.items():
        assert cause == intended.get(name, C.OTHER), name
        if name not in intended and name not in NOT_OF_CALLS[package]:
            assert not any(word in name.lower() for word in NAMES_OF_FAILED_CALLS), name


def test_every_other_error_is_other():
    """Law 25: the table is total: what nothing is known of is a cause too."""
    assert {cause_of(error) for error in (ValueError("x"), KeyError(), RuntimeError(), OSError())} == {C.OTHER}


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (TimeoutError(), C.TIMEOUT),
        (ConnectionResetError(), C.NETWORK),
        (socket.gaierror(), C.NETWORK),
        (ssl.SSLError(), C.NETWORK),
        (json.JSONDecodeError("x", "<", 0), C.UNREADABLE),
        (JudgeFailedError("length"), C.LENGTH),
    ],
)
def test_errors_of_python_and_of_ours(error: Exception, cause: FailureCause):
    """Law 25: what Python raises about a connection has a cause too, and ours name theirs."""
    assert cause_of(error) == cause


def status_error(status: int, body: dict | None = None, headers: dict[str, str] | None = None) -> Exception:
    """As the SDK raises it."""
    openai = importlib.import_module("openai")
    client = openai.AsyncOpenAI(api_key="k")
    http = importlib.import_module(type(client.base_url).__module__.partition(".")[0])
    request = http.Request("POST", "http://localhost/v1")
    response = http.Response(status, headers=headers, json={"error": body or {}}, request=request)
    return client._make_status_error_from_response(response)


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (400, {}, C.OTHER),
        (400, {"code": "content_filter"}, C.CONTENT_FILTER),
        (400, {"code": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}, C.CONTENT_FILTER),
        (400, {"code": "context_length_exceeded"}, C.CONTEXT_OVERFLOW),
        (400, {"type": "exceed_context_size_error", "message": "too big"}, C.CONTEXT_OVERFLOW),
        (400, {"message": "This model's maximum context length is 8 tokens."}, C.CONTEXT_OVERFLOW),
        (401, {}, C.AUTH),
        (402, {}, C.QUOTA),
        (403, {}, C.AUTH),
        (404, {}, C.OTHER),
        (408, {}, C.TIMEOUT),
        (409, {}, C.SERVER),
        (413, {}, C.CONTEXT_OVERFLOW),
        (422, {}, C.OTHER),
        (429, {"message": "slow down"}, C.RATE_LIMIT),
        (429, {"code": "rate_limit_exceeded"}, C.RATE_LIMIT),
        (429, {"code": "insufficient_quota"}, C.QUOTA),
        (429, {"type": "insufficient_quota"}, C.QUOTA),
        (500, {}, C.SERVER),
        (503, {}, C.SERVER),
        (504, {}, C.TIMEOUT),
        (529, {}, C.SERVER),
    ],
)
def test_statuses_and_codes(status: int, body: dict, cause: FailureCause):
    """P8: a used-up quota is told from an overload, and a prompt that is too long from a rejected one."""
    assert cause_of(status_error(status, body)) == cause


def test_the_cause_stands_behind_a_wrapper():
    """Law 25: what Semantic Kernel wraps is found through the cause chain, also one that turns in a circle."""
    exceptions = importlib.import_module("semantic_kernel.exceptions")
    wrapper = exceptions.ServiceResponseException("failed", ValueError())
    wrapper.__cause__ = status_error(429, {"code": "insufficient_quota"}, {"retry-after": "7"})
    assert cause_of(wrapper) == C.QUOTA
    assert retry_after_s(wrapper) == 7
    wrapper.__cause__ = ValueError()
    wrapper.__cause__.__cause__ = wrapper
    assert cause_of(wrapper) == C.OTHER


def test_what_was_handled_meanwhile_is_no_cause():
    """Law 25: a fault of ours in handling an outage is not an outage."""
    error = KeyError("x")
    error.__context__ = ConnectionError()
    assert cause_of(error) == C.OTHER


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "9", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0),
    ],
)
def test_the_wait_that_a_server_asks_for(headers: dict[str, str], expected: float | None):
    """P8: `Retry-After` is read in all its forms, and what can't be read is none."""
    assert retry_after_s(status_error(429, headers=headers)) == expected


def test_a_date_to_wait_for():
    """P8: `Retry-After` may be a date."""
    wait = retry_after_s(status_error(429, headers={"retry-after": formatdate(time.time() + 100, usegmt=True)}))
    assert 90 < wait <= 100


def test_what_a_cut_off_reply_used():
    """P1: the usage of a reply that an exception holds is not lost."""
    openai = importlib.import_module("openai")
    usage = SimpleNamespace(prompt_tokens=7, completion_tokens=3, total_tokens=10)
    assert usage_of_error(openai.LengthFinishReasonError(completion=SimpleNamespace(usage=usage))) == UsageDetails(
        7, 3, 10
    )
    assert usage_of_error(openai.ContentFilterFinishReasonError()) is None


def test_finish_reasons():
    """Law 25: how a reply ended is a cause as well."""
    causes = {
        reason: cause_of_finish(reason) for reason in ("stop", None, "odd", "length", "content_filter", "refusal")
    }
    assert causes == {
        "stop": None,
        None: None,
        "odd": None,
        "length": C.LENGTH,
        "content_filter": C.CONTENT_FILTER,
        "refusal": C.REFUSAL,
    }


def test_what_may_pass():
    """F1: only these are tried again, or at another server."""
    assert {C.RATE_LIMIT, C.TIMEOUT, C.NETWORK, C.SERVER} == TRANSIENT_CAUSES
