"""The four failure modes of write and check, as tests of a file's judge: real loops, scripted models."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest

from agents_loop import ChatResponse, ConfigurationError, JudgeFailedError, ModelPrice, StopReason, UsageDetails
from agents_loop.files import RunSettings, load_loop_file
from agents_loop.judge_check import CasesError, JudgeCase, JudgeCheck, JudgeCheckOptions, load_cases
from agents_loop.testing import ScriptedChatClient

LIMERICK = Path(__file__).parents[1] / "files" / "data" / "limerick.yaml"
FREE = {"*": ModelPrice(input_usd_per_million=0, output_usd_per_million=0)}
GOOD, POOR, TYPO = "A limerick about Delft.", "A shopping list.", "A limrick about Delft."


def verdict(approved, feedback="no", **more):
    return json.dumps({"approved": approved, "feedback": feedback, **more})


def case(kind, draft=GOOD, identity=None, **more):
    return JudgeCase(id=identity or f"{kind}-{draft}", kind=kind, draft=draft, **more)


class Models:
    """A poet and a critic, each a function of what it is sent."""

    def __init__(self, critic, poet=lambda prompt: GOOD):
        self.critic = ScriptedChatClient(lambda messages, options: critic(messages[-1].text))
        self.poet = ScriptedChatClient(lambda messages, options: poet(messages[-1].text))

    def client_for(self, name):
        return self.critic if name.startswith("critic") else self.poet

    @property
    def calls(self):
        return len(self.poet.calls), len(self.critic.calls)


def fair(prompt):
    return verdict(GOOD in prompt, "it is none")


async def checked(cases, models, settings=None, **options):
    check = JudgeCheck(
        load_loop_file(LIMERICK),
        cases,
        models.client_for,
        inputs={"place": "Delft"},
        settings=replace(settings or RunSettings(), prices=FREE),
        options=JudgeCheckOptions(**options),
    )
    return await check.run()


def result_of(report, name):
    (found,) = [check for check in report.checks if check.name == name]
    return found


# --- the same draft, several times


async def test_a_judge_with_a_fixed_criterion_agrees_with_itself():
    """Same draft twice: the file's own judge is asked each time, and the agent's model never."""
    models = Models(fair)
    report = await checked([case("repeat", GOOD, passes=True), case("repeat", POOR, passes=False)], models, repeats=3)
    agreement = result_of(report, "agreement")
    assert (agreement.status, agreement.figures["agreement_rate"], agreement.figures["right_rate"]) == ("passed", 1, 1)
    assert models.calls == (0, 6)
    assert (report.passed, report.total.calls) == (True, 6)
    assert [POOR in call.messages[-1].text for call in models.critic.calls] == [False] * 3 + [True] * 3


async def test_a_judge_that_wavers_is_found_out():
    """Same draft twice: verdicts that change fail the check; the judge's words are kept as they were."""
    turns = itertools.cycle([verdict(True, "fine"), verdict(False, "not {so} fine")])
    report = await checked([case("repeat"), case("repeat", POOR)], Models(lambda prompt: next(turns)))
    agreement = result_of(report, "agreement")
    assert (agreement.status, agreement.figures["agreement_rate"]) == ("failed", 0)
    assert not report.passed
    said = [verdict["said"] for verdict in report.cases[0]["verdicts"]]
    assert said == ["PromptedEvaluator: stop: fine", "PromptedEvaluator: continue: not {so} fine"]


async def test_agreement_is_counted_by_pairs():
    """Same draft twice: of three verdicts two may agree; how many must is an option."""
    for least, status in ((0.33, "passed"), (0.34, "failed")):
        turns = itertools.cycle([verdict(True), verdict(True), verdict(False)])
        report = await checked(
            [case("repeat")], Models(lambda prompt, turns=turns: next(turns)), repeats=3, min_agreement=least
        )
        agreement = result_of(report, "agreement")
        assert (agreement.status, agreement.figures["agreement_rate"]) == (status, 0.3333)


async def test_no_verdict_agrees_with_nothing():
    """Same draft twice: two judgments without a verdict are no agreement; they are counted apart."""
    refused = JudgeFailedError("refusal", "I won't")
    report = await checked([case("repeat")], Models(lambda prompt: refused))
    agreement = result_of(report, "agreement")
    assert (agreement.status, agreement.figures["without_verdict"]) == ("failed", 2)
    assert [verdict["passes"] for verdict in report.cases[0]["verdicts"]] == [None, None]


# --- blind spots


@pytest.mark.parametrize(
    ("critic", "rate"), [(fair, 0.5), (lambda prompt: verdict(True), 1), (lambda prompt: verdict(False), 0)]
)
async def test_blind_spots_are_measured(critic, rate):
    """Blind spots: how many wrong drafts pass is a known gap, which is told, and fails nothing."""
    report = await checked(
        [case("blind_spot", f"{GOOD} It lies in Peru."), case("blind_spot", POOR, passes=False)], Models(critic)
    )
    blind = result_of(report, "blind_spots")
    assert (blind.status, blind.figures["pass_rate"]) == ("noted", rate)
    assert report.passed


# --- a judge that never passes


async def test_a_judge_that_never_passes_without_a_model():
    """Never passes: with a draft no model is called; the run ends at the file's cap, with an answer, and says so."""
    models = Models(fair)
    report = await checked([case("never_passes", POOR)], models)
    never = result_of(report, "never_passes")
    assert (never.status, never.figures["stop_reason"], never.figures["iterations"]) == ("passed", "max_iterations", 3)
    assert (
        never.figures["stop_detail"] == "3 of 3 iterations: after 2 revisions the answer still does not pass its check"
    )
    assert never.figures["recorded"] is True
    assert (models.calls, report.total.calls) == ((0, 0), 0)


async def test_a_judge_that_never_passes_against_the_files_agent():
    """Never passes: without a draft the file's own agent writes, and revises to the cap."""
    models = Models(fair)
    report = await checked([JudgeCase(id="never", kind="never_passes")], models)
    assert result_of(report, "never_passes").status == "passed"
    assert models.calls == (3, 0)
    assert "The check has found a fault." in models.poet.calls[2].messages[-1].text


async def test_a_judge_that_never_passes_is_always_looked_at():
    """Never passes: without a case of the kind it is the first draft."""
    report = await checked([case("repeat", POOR)], Models(fair))
    assert report.cases[-1]["kind"] == "never_passes"
    assert [draft["text"] for draft in report.cases[-1]["drafts"]] == [POOR] * 3


async def test_an_empty_answer_at_the_cap_is_a_failure(monkeypatch):
    """Never passes: a run that ends without an answer, or does not say why, is not well."""
    monkeypatch.setattr("agents_loop.loop.ending._capped", lambda run: (StopReason.MAX_ITERATIONS, None))
    report = await checked([case("never_passes")], Models(fair))
    never = result_of(report, "never_passes")
    assert (never.status, never.detail) == (
        "failed",
        "0 of 1 run ended with an answer and said so: max_iterations, without a detail",
    )
    assert not report.passed


# --- trivial and serious faults


async def test_a_small_fault_takes_fewer_revisions():
    """Trivial and serious: the file's loop goes on from the draft, and revisions are counted."""

    def critic(prompt):
        return verdict(GOOD in prompt or TYPO in prompt, "it is none")

    models = Models(critic)
    report = await checked([case("trivial", TYPO), case("serious", POOR)], models)
    both = result_of(report, "trivial_and_serious")
    assert both.status == "passed"
    assert both.figures == {
        "trivial": {"cases": 1, "not_judged": 0, "mean_revisions": 0, "cap_hit_rate": 0},
        "serious": {"cases": 1, "not_judged": 0, "mean_revisions": 1, "cap_hit_rate": 0},
    }
    assert models.calls == (1, 3)
    revised = models.poet.calls[0].messages[-1].text
    assert POOR in revised
    assert "it is none" in revised


async def test_a_criterion_that_is_too_literal():
    """Trivial and serious: where a typo burns the cap as a real fault does, the criterion may be too literal."""
    models = Models(lambda prompt: verdict(False), lambda prompt: "another try")
    report = await checked([case("trivial", TYPO), case("serious", POOR)], models)
    both = result_of(report, "trivial_and_serious")
    assert both.status == "failed"
    assert both.detail == "trivial faults take 2.00 revisions, serious ones 2.00: the criterion may be too literal"
    assert both.figures["serious"]["cap_hit_rate"] == 1


async def test_a_judge_that_lets_all_pass():
    """Trivial and serious: where nothing is revised at all, the judge is too lenient, and that is said."""
    report = await checked([case("trivial", TYPO), case("serious", POOR)], Models(lambda prompt: verdict(True)))
    assert result_of(report, "trivial_and_serious").detail.endswith("the judge lets serious faults pass")


async def test_a_judge_that_fails_while_a_draft_is_revised():
    """Trivial and serious: a judge that gives no verdict ends that run, and not the check."""
    replies = iter([verdict(False), JudgeFailedError("refusal", "I won't"), verdict(False), verdict(True)])
    report = await checked([case("trivial", TYPO), case("serious", POOR)], Models(lambda prompt: next(replies)))
    assert [each["stop_reason"] for each in report.cases[:2]] == ["evaluator_failed", "satisfied"]
    assert report.total.calls == 6
    found = result_of(report, "trivial_and_serious")
    assert (found.status, found.detail) == ("failed", "no trivial draft was judged to its end: evaluator_failed")


async def test_runs_that_were_not_judged_to_their_end_count_no_revisions():
    """Trivial and serious: where a judge fails on a draft, few revisions are no praise; the others are compared."""

    def judge(prompt: str) -> object:
        if GOOD in prompt:
            return verdict(True)
        return verdict(False) if POOR in prompt else JudgeFailedError("refusal", "I won't")

    cases = [
        case("trivial", GOOD, identity="a"),
        case("trivial", "In Peru.", identity="b"),
        case("serious", POOR, identity="c"),
    ]
    found = result_of(await checked(cases, Models(judge)), "trivial_and_serious")
    assert found.status == "passed"
    assert found.detail.endswith("without 1 draft not judged to the end")
    assert found.figures["trivial"] == {"cases": 2, "not_judged": 1, "mean_revisions": 0, "cap_hit_rate": 0}


async def test_a_budget_of_the_file_itself(tmp_path):
    """Failures: where the file's own budget ends a run, that is not the end of the check."""
    path = tmp_path / "limerick.yaml"
    path.write_text(LIMERICK.read_text().replace("max_tokens: 20000", "max_tokens: 10"))
    models = Models(fair)
    inputs, settings = {"place": "Delft"}, RunSettings(prices=FREE)
    check = JudgeCheck(
        load_loop_file(path), [case("serious", POOR)], models.client_for, inputs=inputs, settings=settings
    )
    report = await check.run()
    assert report.cases[0]["stop_reason"] == "budget_exceeded"
    assert report.ended_early is None


async def test_a_draft_is_in_the_conversation_of_any_agent(tmp_path):
    """Trivial and serious: the agent hears of its draft as if it had written it."""
    models = Models(lambda prompt: verdict("limerick" in prompt and "Peru" not in prompt), lambda prompt: f"No: {GOOD}")
    report = await checked([case("serious", "In Peru.")], models)
    assert "In Peru." in models.poet.calls[0].messages[-1].text
    assert [draft["text"] for draft in report.cases[0]["drafts"]] == ["In Peru.", f"No: {GOOD}"]


async def test_checks_without_a_case():
    """Cases: a check for which there is no case is skipped, and fails nothing."""
    report = await checked([case("trivial", TYPO)], Models(fair))
    assert [check.status for check in report.checks] == ["skipped", "skipped", "passed", "skipped"]
    assert report.passed


# --- limits, failures, wrong use


async def test_a_budget_is_of_the_whole():
    """Budget: the limit is that of all runs together; what was seen until then is reported as partial."""
    usage = UsageDetails(90, 10)
    models = Models(lambda prompt: ChatResponse(verdict(True), usage=usage))
    settings = RunSettings(max_tokens=450)
    report = await checked([case("repeat", f"{GOOD} {number}") for number in range(20)], models, settings)
    assert report.ended_early is not None
    assert (report.passed, report.to_json()["partial"]) == (False, True)
    assert 2 <= report.total.calls <= 5
    assert report.total.usage.input_token_count == 90 * report.total.calls


async def test_a_deadline_is_of_the_whole():
    """Budget: time is one for all runs."""
    report = await checked([case("repeat")], Models(fair), RunSettings(deadline_s=1e-9))
    assert report.ended_early is not None
    assert report.total.calls == 0


async def test_a_failing_client_is_raised_and_the_rest_is_kept():
    """Failures: what a client raises ends the check; what was seen before is in the report."""
    replies = iter([verdict(True), verdict(True), ConnectionError("down")])
    check = JudgeCheck(
        load_loop_file(LIMERICK),
        [case("repeat"), case("repeat", POOR)],
        Models(lambda prompt: next(replies)).client_for,
        inputs={"place": "Delft"},
        settings=RunSettings(prices=FREE),
    )
    with pytest.raises(ConnectionError):
        await check.run()
    assert result_of(check.report, "agreement").figures["cases"] == 1
    assert (check.report.passed, check.report.ended_early) == (False, "it has not run to its end")


async def test_progress_is_told():
    """Progress: a line for each case."""
    told = []
    await checked([case("repeat", identity="a"), case("serious", POOR, "b")], Models(fair), on_progress=told.append)
    assert told == [
        "a (repeat): passes, passes",
        "b (serious): satisfied after 1 revision",
        "a (repeat): with a check that never passes: max_iterations after 2 revisions",
    ]


def test_inputs_that_a_case_lacks():
    """Wrong use: a case whose inputs the file does not take is named, before any call."""
    models = Models(fair)
    with pytest.raises(ConfigurationError, match=r"'repeat-.*place"):
        JudgeCheck(load_loop_file(LIMERICK), [case("repeat")], models.client_for)
    JudgeCheck(load_loop_file(LIMERICK), [case("repeat", inputs={"place": "Gouda"})], models.client_for)
    assert models.calls == (0, 0)


def test_options_are_checked():
    """Design: what is wrong is named when it is made."""
    for wrong in ({"repeats": 1}, {"min_agreement": 1.1}):
        with pytest.raises(ConfigurationError):
            JudgeCheckOptions(**wrong)
    for wrong in ({"repeats": "2"}, {"repeats": True}, {"min_agreement": None}, {"on_progress": 3}):
        with pytest.raises(TypeError):
            JudgeCheckOptions(**wrong)
    with pytest.raises(ConfigurationError, match="draft is missing"):
        JudgeCheck(load_loop_file(LIMERICK), [JudgeCase(id="a", kind="repeat")], Models(fair).client_for)
    with pytest.raises(ConfigurationError, match="cases"):
        JudgeCheck(load_loop_file(LIMERICK), [], Models(fair).client_for)


GRAPH = """
name: two
nodes:
  - {id: a, type: agent, model: m, prompt: "Say a."}
  - {id: b, type: agent, model: m, prompt: "Say {{ a }}.", depends_on: [a]}
"""


def test_a_file_without_evaluators(tmp_path):
    """Wrong use: a file that is not one loop with evaluators has no judge to check."""
    path = tmp_path / "graph.yaml"
    path.write_text(GRAPH)
    with pytest.raises(ConfigurationError, match="not one loop of an agent and evaluators"):
        JudgeCheck(load_loop_file(path), [case("repeat")], Models(fair).client_for)


# --- cases as a file


def test_cases_are_read(tmp_path):
    """Cases: one JSON object a line; blank lines are left out."""
    path = tmp_path / "cases.jsonl"
    lines = [
        {"id": "a", "kind": "repeat", "draft": "x", "inputs": {"n": 3, "is": True, "s": "t"}, "passes": True},
        {"id": "b", "kind": "never_passes"},
    ]
    path.write_text("\ufeff\n" + "\n\n".join(json.dumps(line) for line in lines) + "\n", encoding="utf-8")
    first, second = load_cases(path)
    assert (first.id, first.kind, first.draft, first.passes) == ("a", "repeat", "x", True)
    assert first.inputs == {"n": 3, "is": True, "s": "t"}
    assert (second.draft, second.passes) == (None, None)


def test_every_problem_is_told(tmp_path):
    """Cases: all that is wrong is told at once, each with its line."""
    path = tmp_path / "cases.jsonl"
    good = '{"id": "a", "kind": "repeat", "draft": "x"}'
    lines = [
        good,
        "{",
        "[1]",
        '{"id": "b", "kind": "repeat"}',
        '{"id": "c", "kind": "often", "draft": "x"}',
        '{"id": "d", "kind": "repeat", "draft": " "}',
        '{"id": "e", "kind": "repeat", "draft": "x", "colour": 1}',
        '{"kind": "repeat", "draft": "x"}',
        '{"id": "f", "kind": "blind_spot", "draft": "x", "passes": true}',
        '{"id": "g", "kind": "repeat", "draft": "x", "passes": "yes"}',
        '{"id": "h", "kind": "repeat", "draft": "x", "inputs": {"a": [1]}}',
        good,
        "[" * 100_000,
    ]
    path.write_text("\n".join(lines))
    with pytest.raises(CasesError) as raised:
        load_cases(path)
    told = [line.removeprefix(f"{path}:") for line in raised.value.lines]
    assert [line.partition(":")[0] for line in told] == [str(number) for number in range(2, 14)]
    assert told[2] == "4:1: draft: is missing: a case of the kind 'repeat' is about one"
    assert "kind: Input should be 'repeat', 'blind_spot'" in told[3]
    assert told[4] == "6:1: draft: must not be blank"
    assert "colour: is unknown; known here: id, kind, inputs, draft, passes" in told[5]
    assert told[6] == "8:1: id: is missing"
    assert "passes: must be false" in told[7]
    assert told[9] == "11:1: inputs.a: must be a string, a number, or true or false"
    assert told[10] == "12:1: id: 'a' is the id of line 1 too"


@pytest.mark.parametrize("content", [None, b"", b"\n \n", b"\xff\xfe"])
def test_no_cases(tmp_path, content):
    """Cases: a file that is not there, is empty, or is not UTF-8 is one clear line."""
    path = tmp_path / "cases.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CasesError) as raised:
        load_cases(path)
    assert len(raised.value.lines) == 1


async def test_the_report_as_json():
    """Schema: the fields of a report, of each kind of case, and of each check."""
    kinds = [
        case("repeat"),
        case("blind_spot", POOR),
        case("trivial", TYPO),
        case("serious", POOR),
        case("never_passes"),
    ]
    fields = (await checked(kinds, Models(fair))).to_json()
    assert list(fields) == [
        "name",
        "passed",
        "partial",
        "ended_early",
        "checks",
        "cases",
        "model_calls",
        "usage",
        "cost_usd",
    ]
    assert [list(check) for check in fields["checks"]] == [
        ["name", "status", "detail", "cases", "agreement_rate", "without_verdict", "right_rate"],
        ["name", "status", "detail", "cases", "pass_rate", "without_verdict"],
        ["name", "status", "detail", "runs", "ended", "stop_reason", "stop_detail", "iterations", "recorded"],
        ["name", "status", "detail", "trivial", "serious"],
    ]
    judged = ["id", "kind", "should_pass", "verdicts"]
    revised = ["id", "kind", "revisions", "stop_reason", "stop_detail", "drafts"]
    assert [list(each) for each in fields["cases"]] == [judged, judged, revised, revised, [*revised, "recorded"]]
