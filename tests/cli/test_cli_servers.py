from __future__ import annotations

from pathlib import Path

import pytest
from commanding import LIMERICK, Command, process, verdict
from fault_server import Completion, Failure, FaultServer, Raw, Reply, Silence, usage

CANARY = "sk-canary-0123456789abcdef"
RUN = ("run", LIMERICK, "-i", "place=Delft", "--price", "*=1,2", "--backend", "openai")


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


@pytest.mark.parametrize(
    "prices",
    [("--price", "asked-1=1,2"), ("--price", "poet-*=1,2", "--price", "critic-*=1,2")],
    ids=["asked", "in the file"],
)
def test_a_model_in_place_of_the_files_is_priced_by_either_name(
    command: Command, server: FaultServer, prices: tuple[str, ...]
):
    """`--max-cost`: a price counts under the name that the SPEC asks for, and under that in the file."""
    server.add(Completion(content="d1", usage=usage(10, 2)), Completion(content=verdict(True), usage=usage(20, 3)))

    ran = command("run", LIMERICK, "-i", "place=Delft", "--max-cost", "1", *prices, "--backend", "openai:asked-1", "-q")

    assert (ran.code, ran.out, ran.err) == (0, "d1\n", "")


def test_a_listed_model_in_place_of_the_files_needs_no_price(command: Command, server: FaultServer):
    """`--max-cost`: what the list knows is enough, whatever the file calls the model."""
    pytest.importorskip("genai_prices")
    server.add(Completion(content="d1", usage=usage(10, 2)), Completion(content=verdict(True), usage=usage(20, 3)))

    ran = command("run", LIMERICK, "-i", "place=Delft", "--max-cost", "1", "--backend", "openai:gpt-5-mini", "-q")

    assert (ran.code, ran.out, ran.err) == (0, "d1\n", "")


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


def test_a_call_that_the_file_s_time_cuts_is_1_and_says_where(command: Command, server: FaultServer, tmp_path: Path):
    """`timeout_seconds` of a server that is silent: one line with the field and the remedy; the ledger says `timeout`."""
    server.default = Silence()
    path = tmp_path / "slow.yaml"
    path.write_text(
        "name: slow\nnodes:\n- {id: a, type: agent, model: m, prompt: p, timeout_seconds: 0.05}\n", encoding="utf-8"
    )

    ran = command("run", str(path), "--backend", "openai", "--json", "-q")

    assert ran.code == 1
    (line,) = ran.error_lines
    assert line == (
        "error: node 'a': nodes[0].timeout_seconds: the model 'm' did not answer within 0.05 s: "
        "allow more, or add another model to fallback_chain"
    )
    assert [call["outcome"] for call in ran.json["ledger"]] == ["timeout"]


def test_a_refusal_is_1_and_says_so(command: Command, server: FaultServer):
    """A refusal is not an answer, and is not judged."""
    server.add(Completion(refusal="I can't rhyme.", content=None))

    ran = command(*RUN, "-q")

    assert (ran.code, ran.out, len(server.requests)) == (1, "", 1)
    assert ran.err == "error: the generator gave no candidate (refusal): I can't rhyme.\n"


def test_a_refusal_without_a_word_says_what_to_do(command: Command, server: FaultServer):
    """Where the provider gives no reason the line says what can be changed: the generator's, or the evaluator's."""
    server.add(Completion(content="d1"), Completion(content=None, finish_reason="content_filter"))

    ran = command(*RUN, "-q")

    assert (ran.code, ran.out) == (1, "d1\n")
    assert ran.err.startswith("error: the judge gave no verdict (content_filter): ")


@pytest.mark.parametrize(
    "reply",
    [
        Raw(b"<html>Welcome</html>"),
        Raw(b"<html>Welcome</html>", "text/html"),
        Raw(b""),
        Raw(b'{"hello": "world"}'),
        Failure(405, "Method Not Allowed"),
    ],
)
def test_a_server_that_is_no_models_is_named(
    command: Command, server: FaultServer, monkeypatch: pytest.MonkeyPatch, reply: Reply
):
    """What is no answer of a model is 1 and one line: the server's address, without its password, and what to check."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url.replace("://", "://user:pass-word@"))
    server.default = reply

    ran = command(*RUN, "-q")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: the model 'poet-small-1' (openai) did not answer: ")
    address = f"the address of the model's server, {server.base_url}, is probably wrong: check OPENAI_BASE_URL"
    assert ran.err.endswith(f" -- {address}\n")
    assert len(ran.err.splitlines()) == 1
    assert "pass-word" not in ran.err
    assert "JSONDecodeError" not in ran.err


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Raw(b"bad gateway", "text/html", 502), "HTTP 502 -- the server failed: try again later"),
        (Failure(500, "boom."), "HTTP 500: boom -- the server failed: try again later"),
        (Failure(429, "slow"), "HTTP 429: slow -- the rate limit or the quota is used up: try again later"),
        (
            Failure(400, "no such thing"),
            "HTTP 400: no such thing -- the server rejects the request: check the prompts and the model's settings in the file",
        ),
    ],
)
def test_a_server_that_fails_is_1_and_says_what_to_do(
    command: Command, server: FaultServer, monkeypatch: pytest.MonkeyPatch, reply: Reply, said: str
):
    """Every error of a server is one line: its status, its words if it has any, and what to do."""
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0)
    server.default = reply

    ran = command(*RUN, "-q")

    assert (ran.code, ran.err) == (1, f"error: the model 'poet-small-1' (openai) did not answer: {said}\n")


def test_arguments_reach_the_model_in_any_locale(server: FaultServer):
    """UTF-8 on the command line is UTF-8 to the model, also in a locale that knows ASCII alone."""
    server.add(Completion(content="é"), Completion(content=verdict(True)))
    ascii_alone = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment = {**ascii_alone, "OPENAI_API_KEY": CANARY, "OPENAI_BASE_URL": server.base_url}

    ran = process(
        "run", LIMERICK, "-i", "place=Orléans", "--price", "*=1,2", "--backend", "openai:modèle", env=environment
    )

    assert (ran.returncode, ran.stdout) == (0, "é\n".encode())
    assert server.bodies[0]["model"] == "modèle"
    assert "Orléans" in server.bodies[0]["messages"][0]["content"]
