from __future__ import annotations

import json

import pytest

from agents_loop.cli.explaining import explain
from agents_loop.cli.outages import explain_outage


def raised_by(library: str, name: str, message: str, **fields: object) -> Exception:
    """An error of an SDK's, as far as it is looked at: where its class stands, what it is called, and its fields."""
    error = type(name, (Exception,), {"__module__": f"{library}.errors"})(message)
    vars(error).update(fields)
    return error


@pytest.mark.parametrize(
    ("error", "backend", "said"),
    [
        (
            raised_by("azure", "ClientAuthenticationError", "no token"),
            "azure",
            "ClientAuthenticationError: no token -- log in with `az login`, or set AZURE_OPENAI_API_KEY",
        ),
        (
            raised_by("httpx", "RemoteProtocolError", "peer left"),
            "openai",
            "the model 'm' (openai) did not answer: RemoteProtocolError: peer left -- the connection broke: try again",
        ),
        (
            raised_by("openai", "APIConnectionError", "Connection error."),
            "local",
            "the model 'm' (local) did not answer: Connection error -- the connection broke: try again",
        ),
        (
            raised_by("openai", "APIError", "overloaded", body={"message": "overloaded"}),
            "openai",
            "the model 'm' (openai) did not answer: overloaded -- the server failed: try again later",
        ),
        (
            raised_by("openai", "NotFoundError", "no {such} model", status_code=404),
            "azure",
            (
                "the model 'm' (azure) did not answer: HTTP 404: no {such} model -- "
                "name a deployment with --model 'm=azure:DEPLOYMENT', or check AZURE_OPENAI_ENDPOINT"
            ),
        ),
        (
            json.JSONDecodeError("Expecting value", "<", 0),
            "openai",
            (
                "the model 'm' (openai) did not answer: the reply is not JSON -- "
                "the address of its server is probably wrong: check OPENAI_BASE_URL"
            ),
        ),
        (
            json.JSONDecodeError("Expecting value", "<", 0),
            "local",
            "the model 'm' (local) did not answer: the reply is not JSON -- the server failed: try again later",
        ),
    ],
    ids=["azure", "httpx", "connection", "in a stream", "404", "not JSON", "not JSON of this machine"],
)
def test_an_outage_says_who_did_not_answer_and_what_to_do(error: Exception, backend: str, said: str):
    """Every error on the way to a model's server is one line, and ends with what to do."""
    assert explain_outage(error, "m", backend) == said


def test_another_error_is_no_outage():
    """What is not known is called by its name, and the line says how to see more."""
    error = RuntimeError("odd")

    assert explain_outage(error, "m", "openai") is None
    assert explain(error, model="m", backend="openai") == "RuntimeError: odd -- --debug shows where it was raised"
    assert explain(error) == "RuntimeError: odd"
