from __future__ import annotations

from pathlib import Path

import pytest
from commanding import LIMERICK, Command, verdict
from fault_server import Completion, Failure, FaultServer, usage

CANARY = "sk-canary-0123456789abcdef"
RUN = ("run", LIMERICK, "-i", "place=Delft", "--backend", "openai")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, server: FaultServer) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)


def test_the_files_model_names_reach_the_server(command: Command, server: FaultServer):
    """With `openai` the file's model name is the model that is asked, or the one that the SPEC names."""
    server.add(Completion(content="d1", usage=usage(10, 2)), Completion(content=verdict(True), usage=usage(20, 3)))

    ran = command(*RUN, "--model", "critic-*=openai:better-critic", "--json")

    assert (ran.code, ran.json["output"]) == (0, "d1")
    assert [body["model"] for body in server.bodies] == ["poet-small-1", "better-critic"]
    assert [len(body["messages"]) for body in server.bodies] == [1, 1]
    assert server.bodies[0]["max_tokens"] == 200
    assert "temperature" not in server.bodies[0]
    assert ran.json["usage"]["input_token_count"] == 30


def test_a_wrong_key_is_1_and_one_line_without_the_key(command: Command, server: FaultServer, tmp_path: Path):
    """A rejected key is one line that says what to check, and no output shows the key, even if the server does."""
    server.default = Failure(401, f"Incorrect API key provided: {CANARY}.", code="invalid_api_key")
    trace = tmp_path / "t.jsonl"

    ran = command(*RUN, "--json", "--trace", str(trace))

    assert ran.code == 1
    assert ran.json["stop_reason"] == "failed"
    (line,) = ran.error_lines
    assert line.startswith("error: the model 'poet-small-1' (openai) did not answer: HTTP 401: Incorrect API key")
    assert line.endswith(" -- check OPENAI_API_KEY, and OPENAI_BASE_URL if the key is another server's")
    debugged = command(*RUN, "--debug")
    assert "Traceback" in debugged.err
    for text in (ran.out, ran.err, trace.read_text(), debugged.out, debugged.err):
        assert CANARY not in text


def test_no_server_is_1_and_one_line(command: Command, monkeypatch: pytest.MonkeyPatch):
    """Nothing listens at the address: one line that says what to check."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")

    ran = command(*RUN, "-q")

    assert (ran.code, ran.out) == (1, "")
    assert len(ran.err.splitlines()) == 1
    assert "check OPENAI_BASE_URL and the network" in ran.err


def test_an_unknown_model_is_1_and_says_how_to_name_another(command: Command, server: FaultServer):
    """A server that does not know the file's model: the line says how to send another."""
    server.default = Failure(404, "The model `poet-small-1` does not exist", code="model_not_found")

    ran = command(*RUN, "-q")

    assert ran.code == 1
    assert "--model 'poet-small-1=openai:NAME'" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_an_evaluator_that_is_down_does_not_lose_the_draft(command: Command, server: FaultServer):
    """An outage is no verdict: the run fails, and the draft is printed."""
    server.add(Completion(content="d1"), Failure(400, "no such thing"))

    ran = command(*RUN, "--json", "-q")

    assert (ran.code, ran.json["stop_reason"], ran.json["output"]) == (1, "evaluator_failed", "d1")
    assert "the model 'critic-large-1' (openai) did not answer: HTTP 400: no such thing" in ran.err


def test_a_refusal_is_1_and_says_so(command: Command, server: FaultServer):
    """A refusal is not an answer, and is not judged."""
    server.add(Completion(refusal="I can't rhyme.", content=None))

    ran = command(*RUN, "-q")

    assert (ran.code, ran.out, len(server.requests)) == (1, "", 1)
    assert ran.err == "error: the generator gave no candidate (refusal): I can't rhyme.\n"
