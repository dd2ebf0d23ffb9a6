from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commanding import LIMERICK, ROOT, Command, verdict

Script = Callable[..., str]
HERE = ("-i", "place=Delft")


def used(text: str, tokens: int) -> dict[str, Any]:
    return {"text": text, "usage": {"input_token_count": tokens - 1, "output_token_count": 1}}


def test_a_satisfied_run_is_0_and_stdout_is_the_answer(command: Command, script: Script):
    """0: satisfied. Standard output holds the last answer and a line break, nothing else."""
    ran = command("run", LIMERICK, *HERE, "--backend", script("a\nb", verdict(False), "c\nd", verdict(True, "neat")))

    assert (ran.code, ran.out) == (0, "c\nd\n")
    assert ran.err.splitlines()[-3:] == [
        "iteration 2: c d",
        "iteration 2: PromptedEvaluator: stop: neat",
        "stopped: satisfied after 2 iterations (4 calls)",
    ]


def test_the_sample_runs_with_its_script(command: Command):
    """The scripted sample shows a name turned down, and another accepted."""
    samples = ROOT / "samples"

    ran = command(
        "run",
        str(samples / "product_name.yaml"),
        "-i",
        "product=a cup",
        "--backend",
        f"scripted:{samples / 'scripted_replies.jsonl'}",
    )

    assert (ran.code, ran.out) == (0, "Brewarm\n")
    assert ran.err.splitlines()[-1] == "stopped: satisfied after 2 iterations (4 calls, 353 tokens)"


def test_the_cap_is_3_and_the_last_answer_is_given(command: Command, script: Script):
    """3: ended without being satisfied. The last answer is printed all the same."""
    ran = command(
        "run",
        LIMERICK,
        *HERE,
        "--backend",
        script(*["d1", verdict(False), "d2", verdict(False)]),
        "--max-iterations",
        "2",
        "-q",
    )

    assert (ran.code, ran.out, ran.err) == (3, "d2\n", "")


def test_a_budget_is_4(command: Command, script: Script):
    """4: the budget. The answer so far is printed, and one line says which budget."""
    ran = command(
        "run", LIMERICK, *HERE, "-q", "--backend", script(used("d1", 15_000), used(verdict(False), 5_000), "d2")
    )

    assert (ran.code, ran.out) == (4, "d1\n")
    assert ran.err.startswith("error: budget.max_tokens is 20,000, and the run has used 20,000 tokens in 2 calls: ")
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--max-tokens", "150"),
            "--max-tokens is 150, and the run has used 110 tokens in 2 calls; 50 tokens kept",
        ),
        (("--max-cost", "0.001", "--price", "*=10,0"), "--max-cost allows $0.001, and the run has spent $0.001080"),
        (("--deadline", "1e-9"), "--deadline allows 1e-09 s, and that time is up"),
    ],
)
def test_limits_of_the_command_are_4(command: Command, script: Script, options: tuple[str, ...], said: str):
    """4: tokens, money and time, in place of the file's limits; the draft so far is the output."""
    replies = [used("d1", 60), used(verdict(False), 50), used("d2", 60), used(verdict(True), 50)]

    ran = command("run", LIMERICK, *HERE, "-q", *options, "--backend", script(*replies))

    assert (ran.code, ran.out) == (4, "" if "--deadline" in options else "d1\n")
    assert ran.err.startswith(f"error: {said}")
    assert len(ran.err.splitlines()) == 1


def test_the_commands_limits_replace_the_files(command: Command, script: Script):
    """The file allows 20,000 tokens; more can be allowed, for once."""
    replies = [used("d1", 21_000), used(verdict(True), 50)]
    ran = command("run", LIMERICK, *HERE, "-q", "--max-tokens", "30000", "--backend", script(*replies))
    assert (ran.code, ran.out) == (0, "d1\n")


def test_money_without_a_price_is_2(command: Command, script: Script, monkeypatch: pytest.MonkeyPatch):
    """2: what a real model costs must be known; a scripted reply under no model's name costs nothing."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    ran = command("run", LIMERICK, *HERE, "-q", "--backend", "openai")
    assert (ran.code, ran.out) == (2, "")
    assert "give it as prices={'critic-large-1': ModelPrice(...)} or, on the command line, as --price" in ran.err
    assert command("run", LIMERICK, *HERE, "-q", "--backend", script("d1", verdict(True))).code == 0


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--max-tokens", "0", "--max-tokens must be a whole number of at least 1, not '0'"),
        ("--max-tokens", "few", "--max-tokens must be a whole number of at least 1, not 'few'"),
        ("--max-cost", "-1", "--max-cost must be a number of US dollars above 0, such as 0.5, not '-1'"),
        ("--max-cost", "nan", "--max-cost must be a number of US dollars above 0, such as 0.5, not 'nan'"),
        ("--deadline", "inf", "--deadline must be a number of seconds above 0, such as 0.5, not 'inf'"),
        ("--deadline", "soon", "--deadline must be a number of seconds above 0, such as 0.5, not 'soon'"),
        ("--price", "m", "--price 'm' must be NAME=IN,OUT, such as 'gpt-5-mini=0.25,2'"),
        ("--price", "m=1", "--price 'm=1' must be NAME=IN,OUT"),
        ("--price", "m=-1,2", "--price 'm=-1,2' must be NAME=IN,OUT"),
        ("--price", "=1,2", "--price '=1,2' must be NAME=IN,OUT"),
    ],
)
def test_a_limit_that_cant_be_read_is_2(command: Command, script: Script, option: str, value: str, said: str):
    """E2: a loud error, never "no limit"."""
    ran = command("run", LIMERICK, *HERE, option, value, "--backend", script("d1"))
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_json_holds_the_ledger(command: Command, script: Script):
    """`--json`: each call, with what it cost at the prices of the command line."""
    replies = [used("d1", 101), used(verdict(True), 51)]
    ran = command("run", LIMERICK, *HERE, "--json", "--price", "poet-*=1,2", "--backend", script(*replies))
    calls = [(call["role"], call["model_id"], call["cost_usd"], call["outcome"]) for call in ran.json["ledger"]]
    assert calls == [("agent", "poet-small-1", 0.000102, "ok"), ("evaluator", "critic-large-1", 0.0, "ok")]
    assert ran.err.splitlines()[-1] == "stopped: satisfied after 1 iteration (2 calls, 152 tokens, $0.0001)"


def test_running_out_of_replies_is_1_and_names_the_call(command: Command, script: Script):
    """1: failed. The error names the call and the model; the work so far is printed."""
    ran = command(
        "run", LIMERICK, *HERE, "-q", "--backend", script("d1", verdict(False), "d2", {"text": "x", "model": "other"})
    )

    assert (ran.code, ran.out) == (1, "d2\n")
    assert len(ran.error_lines) == 1
    assert "none is left for call 4, to the model 'critic-large-1'; 1 reply left, for other models" in ran.err


def test_json_is_the_whole_result(command: Command, script: Script):
    """`--json` gives one object with the API's field names, the calls, and the usage of the whole run."""
    replies = [
        used("d1", 100),
        used(verdict(False, "no", score=0.5), 10),
        used("d2", 100),
        used(verdict(True, "yes"), 10),
    ]

    ran = command("run", LIMERICK, *HERE, "--json", "--backend", script(*replies))

    result = ran.json
    assert ran.out.count("\n") == 1
    assert (ran.code, result["stop_reason"], result["stop_detail"], result["output"]) == (0, "satisfied", None, "d2")
    assert result["model_calls"] == 4
    assert result["usage"] == {"input_token_count": 216, "output_token_count": 4}
    first, second = result["iterations"]
    assert (first["number"], first["output"], first["usage"]["input_token_count"]) == (1, "d1", 108)
    assert first["input"] == [{"role": "user", "text": "Write a limerick about Delft.\n\n"}]
    assert second["input"] == [{"role": "user", "text": "no"}]
    evaluation = first["evaluations"][0]
    assert {name: evaluation[name] for name in ("evaluator", "decision", "feedback", "score", "note")} == {
        "evaluator": "PromptedEvaluator",
        "decision": "continue",
        "feedback": "no",
        "score": 0.5,
        "note": None,
    }
    assert second["evaluations"][0]["note"] == "yes"


def test_json_is_there_after_a_failure_too(command: Command, script: Script):
    """A run that failed says so in its JSON, with what was done and every call that was made."""
    ran = command("run", LIMERICK, *HERE, "--json", "-q", "--backend", script(used("d1", 10), used(verdict(False), 10)))

    result = ran.json
    assert (ran.code, result["stop_reason"], result["output"], result["model_calls"]) == (1, "failed", "d1", 3)
    assert result["stop_detail"].startswith("ScriptExhaustedError: ")
    assert result["usage"]["output_token_count"] == 2


def test_an_evaluator_that_fails_is_1(command: Command, script: Script):
    """1 also if the evaluator failed; the candidate that it was asked about is printed."""
    ran = command("run", LIMERICK, *HERE, "--json", "--backend", script("d1"))

    assert (ran.code, ran.json["stop_reason"], ran.json["output"]) == (1, "evaluator_failed", "d1")


def test_a_failure_without_an_exception_is_said_too(command: Command, script: Script):
    """Whatever ends with 1 says why in one line, also where nothing was raised: a judge of a flow that chose nothing."""
    replies = [{"model": "cook", "text": "Soup."}, {"model": "critic", "text": "Well."}]
    ran = command("run", "samples/dinner_flow.json", "-q", "--backend", script(*replies))

    assert (ran.code, ran.out) == (1, "Soup.\n")
    assert ran.err == (
        "error: the node 'critic' chose no port (no_function_selected): the model called no function; it has no edge "
        "from '_exception'\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the input 'place' is missing: the generator's prompt uses it. Give it with -i place=..."),
        (["-i", "place"], "-i 'place' must be KEY=VALUE"),
        (["-i", "=x"], "-i '=x' must be KEY=VALUE"),
        ([*HERE, *HERE], "the input 'place' is given twice"),
        ([*HERE, "--max-iterations", "0"], "--max-iterations must be a whole number of at least 1, not '0'"),
        ([*HERE, "--max-iterations", "three"], "not 'three'"),
        ([*HERE, "--max-iterations", "-1"], "not '-1'"),
        ([*HERE, "--max-iterations", "9" * 5000], "must be a whole number of at least 1"),
        (["-i", "place=\udcff"], "the input 'place' is not UTF-8"),
        ([*HERE, "--backend", "gpt"], "'gpt' is no backend; there are: openai[:MODEL], azure"),
        ([*HERE, "--backend", "scripted"], "a name or a file must follow the colon"),
        (
            [*HERE, "--backend", "scripted:missing.jsonl"],
            "missing.jsonl: the scripted replies can't be read: No such file",
        ),
        ([*HERE, "--model", "poet"], "--model 'poet' must be NAME=SPEC"),
        ([*HERE, "--model", "*=nothing"], "'nothing' is no backend"),
        (
            [*HERE, "--backend", "local"],
            "'qwen2.5-coder-1.5b' is not on this machine. Run: agents-loop models pull qwen2.5",
        ),
        ([*HERE, "--backend", "local:other"], "no model is known as 'other'"),
        ([*HERE, "--backend", "local:/no/such.gguf"], "there is no model file at '/no/such.gguf'"),
        ([*HERE, "--backend", "openai"], "set OPENAI_API_KEY"),
        ([*HERE, "--backend", "azure"], "set AZURE_OPENAI_ENDPOINT"),
        ([*HERE, "--unknown"], "No such option"),
        ([*HERE, "--trace", "/no/such/folder/t.jsonl", "--backend", "local"], "agents-loop models pull"),
    ],
)
def test_wrong_use_is_2_and_one_line(command: Command, arguments: list[str], said: str):
    """2: wrong use, or a missing model, key or extra: one line that says what to do, before any call."""
    ran = command("run", LIMERICK, *arguments, "-q")

    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.startswith("error: ")
    assert len(ran.err.splitlines()) == 1


def test_an_invalid_file_is_2_and_a_line_for_each_problem(command: Command, tmp_path: Path):
    """2: every problem of the file, each on its line with its place."""
    path = tmp_path / "bad.yaml"
    path.write_text(
        "name: x\nnodes:\n- id: a\n  type: evaluator_loop\n  max_iterations: 0\n  generator: {model: m, prompt: p}\n"
    )

    for name in ("run", "validate"):
        ran = command(name, str(path))
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.splitlines() == [
            f"error: {path}:3:3: nodes[0].evaluator: is missing",
            f"error: {path}:5:19: nodes[0].max_iterations: must be at least 1, not 0",
        ]


def test_validate_shows_the_waves(command: Command):
    """A valid file: its name, how many nodes and waves, and each wave. No model is called."""
    ran = command("validate", LIMERICK)

    assert (ran.code, ran.out) == (0, "✓ limerick_with_critic: 1 nodes, 1 wave(s)\n  wave 1: ['limerick']\n")
    assert ran.err == ""


def test_notices_are_said_once_and_not_with_quiet(command: Command, script: Script):
    """What a person should know goes to standard error; with `--quiet` there are only errors."""
    replies = ["d1", verdict(True)]
    arguments = ["run", LIMERICK, *HERE, "-i", "other=1", "--model", "no-such-*=openai"]
    arguments += ["--price", "poet-*=1,2", "--price", "nobody=1,2"]

    loud = command(*arguments, "--backend", script(*replies))
    quiet = command(*arguments, "--backend", script(*replies), "-q")

    assert loud.err.splitlines()[:5] == [
        "notice: no prompt uses the input 'other'",
        "notice: --model 'no-such-*' matches no model of the file",
        "notice: --price 'nobody' matches no model of the file",
        "notice: 'poet-small-1' reports no token usage: estimated as a token for every 4 characters",
        "iteration 1: d1",
    ]
    assert quiet.err == ""


def test_a_model_is_sent_where_it_is_told(command: Command, script: Script):
    """`--model`: an exact name before a glob, then the first that matches; the rest goes to `--backend`."""
    poet = script("from the poet's script", name="poet.jsonl")
    critic = script(verdict(True, "exact"), name="critic.jsonl")
    wrong = script(verdict(True, "glob"), name="wrong.jsonl")

    ran = command(
        "run",
        LIMERICK,
        *HERE,
        "--json",
        "--backend",
        poet,
        "--model",
        f"critic-*={wrong}",
        "--model",
        f"critic-large-1={critic}",
    )

    assert ran.json["output"] == "from the poet's script"
    assert ran.json["iterations"][0]["evaluations"][0]["note"] == "exact"


def test_a_line_for_a_model_serves_only_that_model(command: Command, script: Script):
    """A scripted file is used in order; a line with `model` waits for calls of it."""
    replies = [{"text": verdict(True), "model": "critic-*"}, {"text": "d1", "model": "poet-small-1"}]

    ran = command("run", LIMERICK, *HERE, "--backend", script(*replies))

    assert (ran.code, ran.out) == (0, "d1\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nonsense", "replies.jsonl:2: Invalid JSON"),
        ('{"txt": "x"}', "replies.jsonl:2: txt: "),
        ('{"text": 3}', "replies.jsonl:2: text: "),
        ("{}", "replies.jsonl:2: a reply needs `text` or `tool_calls`"),
        ('{"text": "x", "usage": {"input_token_count": -1}}', "replies.jsonl:2: usage.input_token_count: "),
        ('{"tool_calls": [{"arguments": {}}]}', "replies.jsonl:2: tool_calls.0.name: "),
        ("[]", "replies.jsonl:2: "),
    ],
)
def test_a_bad_line_of_a_script_is_found_before_any_call(command: Command, tmp_path: Path, line: str, said: str):
    """2: file and line, before any call."""
    path = tmp_path / "replies.jsonl"
    path.write_text(f'{{"text": "fine"}}\n{line}\n')

    ran = command("run", LIMERICK, *HERE, "-q", "--backend", f"scripted:{path}")

    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_tool_call_is_no_candidate(command: Command, script: Script):
    """A tool call has no text: nothing to evaluate; the line says so, in words, and what to do."""
    ran = command("run", LIMERICK, *HERE, "--backend", script({"tool_calls": [{"name": "f", "arguments": {"a": 1}}]}))

    assert ran.code == 1
    (line,) = ran.error_lines
    assert line.removeprefix("error: the generator gave no candidate (empty): ") == (
        "the model calls 'f', but a loop file has no tools: "
        "ask for text in generator.prompt, or name another generator.model"
    )


def test_a_reply_without_text_is_named_by_its_finish_reason(command: Command, script: Script):
    """An empty reply: the line has the reason as the provider writes it, and what to do."""
    ran = command("run", LIMERICK, *HERE, "--backend", script(" "))

    assert ran.code == 1
    (line,) = ran.error_lines
    assert line.removeprefix("error: the generator gave no candidate (empty): ") == (
        "the reply has no text (finish_reason 'stop'): "
        "ask for text in generator.prompt, or name another generator.model"
    )


def test_a_budget_of_one_is_said_in_the_singular(command: Command, tmp_path: Path, script: Script):
    """One thing is not called several."""
    path = tmp_path / "tight.yaml"
    path.write_text(Path(LIMERICK).read_text(encoding="utf-8").replace("max_tokens: 20000", "max_tokens: 1"))
    one = {"text": "d1", "usage": {"input_token_count": 0, "output_token_count": 1}}

    ran = command("run", str(path), *HERE, "-q", "--backend", script(one))

    assert ran.err.startswith("error: budget.max_tokens is 1, and the run has used 1 token in 1 call: the next call")


def test_arguments_are_utf_8_whatever_the_locale_says(command: Command, script: Script):
    """Bytes that the locale could not read come as lone surrogates: they are read as the UTF-8 that they are."""
    bytes_of = "\udcc3\udca9"  # é, where the locale knows ASCII alone
    backend = script("d1", verdict(True))

    ran = command("run", LIMERICK, "-i", f"place={bytes_of}", "--json", "--backend", backend)
    route = command(
        "run", LIMERICK, *HERE, "--backend", script("d1", verdict(True)), "--model", f"{bytes_of}={backend}"
    )
    wrong = command("run", LIMERICK, *HERE, "--backend", "openai:\udcff")

    assert (ran.code, ran.json["iterations"][0]["input"][0]["text"]) == (0, "Write a limerick about é.\n\n")
    assert "notice: --model 'é' matches no model of the file" in route.err
    assert (wrong.code, len(wrong.error_lines)) == (2, 1)
    assert "is not UTF-8" in wrong.err


# --- the trace


def test_a_trace_has_a_line_for_each_event(command: Command, script: Script, tmp_path: Path):
    """`--trace`: one JSON object an event, in order, under the events' own names."""
    trace = tmp_path / "t.jsonl"

    command(
        "run",
        LIMERICK,
        *HERE,
        "--trace",
        str(trace),
        "--backend",
        script("d1", verdict(False, "f"), "d2", verdict(True)),
    )

    lines = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    iteration = ["IterationStarted", "AgentResponded", "EvaluatorDecided"]
    assert [line["event"] for line in lines] == ["LoopStarted", *iteration, *iteration, "LoopStopped"]
    assert lines[1]["input"] == lines[0]["messages"]
    assert lines[4]["on_behalf_of"] == [{"role": "user", "text": "f"}]
    assert lines[-1]["result"]["stop_reason"] == "satisfied"
    assert all(isinstance(line["time"], float) for line in lines)


def test_a_trace_that_can_not_be_written_is_2_before_any_call(command: Command, script: Script, tmp_path: Path):
    """2: nothing is spent on a run whose trace would be lost, nor is the loop's own file replaced."""
    copied = tmp_path / "copy.yaml"
    copied.write_bytes(Path(LIMERICK).read_bytes())
    backend = script("d1", verdict(True))

    folder = command("run", LIMERICK, *HERE, "-q", "--trace", str(tmp_path), "--backend", backend)
    own = command("run", str(copied), *HERE, "-q", "--trace", str(copied), "--backend", backend)

    assert (folder.code, folder.out) == (own.code, own.out) == (2, "")
    assert "can't be written: it is a folder, not a file" in folder.err
    assert "is a file of another kind, and would be replaced" in own.err
    assert copied.read_bytes() == Path(LIMERICK).read_bytes()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_disk_that_fails_does_not_lose_the_run(command: Command, script: Script):
    """A trace that can't be completed is said once, and the run goes on."""
    ran = command("run", LIMERICK, *HERE, "--trace", "/dev/full", "--backend", script("d1", verdict(True)))

    assert (ran.code, ran.out) == (0, "d1\n")
    assert ran.err.count("warning: the trace '/dev/full' is not complete: No space left") == 1


# --- the models


def test_models_are_listed_and_unknown_ones_are_not_pulled(command: Command):
    """`models list` says what is here and how to get the rest; an unknown name is wrong use."""
    listed = command("models", "list")
    unknown = command("models", "pull", "gpt-7")

    assert listed.code == 0
    assert "smollm2-135m" in listed.out
    assert "not here: agents-loop models pull smollm2-135m" in listed.out
    assert (unknown.code, unknown.out) == (2, "")
    assert "error: no model is known as 'gpt-7'" in unknown.err


def test_without_a_backend_the_environment_decides(command: Command, monkeypatch: pytest.MonkeyPatch):
    """`openai` if its key is set, else `azure` if its endpoint is set, else `local`; standard error says which."""
    local = command("run", LIMERICK, *HERE)
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "not an address")
    azure = command("run", LIMERICK, *HERE)
    monkeypatch.setenv("OPENAI_API_KEY", "k\x7fey-with-a-bad-character")
    openai = command("run", LIMERICK, *HERE)

    assert local.err.startswith("backend: local (neither OPENAI_API_KEY nor AZURE_OPENAI_ENDPOINT is set)")
    assert azure.err.startswith("backend: azure (AZURE_OPENAI_ENDPOINT is set)")
    assert openai.err.startswith("backend: openai (OPENAI_API_KEY is set)")
    assert (local.code, azure.code, openai.code) == (2, 2, 2)
    assert "with-a-bad" not in openai.err
