from __future__ import annotations

from pathlib import Path

from agents_loop.files import load_loop_file
from agents_loop.files.projection import Projection, project

OWN = """
name: own
loop:
  agent: {model: writer, request: "{{ topic }}", max_output_tokens: 100}
  evaluators:
%s
  options: {max_iterations: 2, evaluate_final_iteration: true}
"""
JUDGE = "{type: ai_judge, model: judge, chat_options: {max_output_tokens: 50}}"


async def projected(tmp_path: Path, *evaluators: str) -> Projection:
    path = tmp_path / "own.yaml"
    path.write_text(OWN % "\n".join(f"    - {evaluator}" for evaluator in evaluators), encoding="utf-8")
    return await project(load_loop_file(path), {"topic": "tides"})


def models(found: Projection) -> list[str]:
    return [call.model for call in found.calls]


async def test_a_check_before_a_judge_does_not_hide_its_calls(tmp_path: Path):
    """Evaluators in order are projected as if each were reached: a strict check saves no call of a projection."""
    found = await projected(tmp_path, "{type: length, unit: words, at_most: 3}", JUDGE)

    assert models(found) == ["writer", "judge"] * 2
    assert found.ended == "max_iterations"
    assert any("checks by code" in note for note in found.notes)
    assert any("a judge may be asked more than once" in note for note in found.notes)


async def test_checks_alone_are_assumed_to_fail(tmp_path: Path):
    """Whatever they would say of the projected answer, the cap is assumed to be hit."""
    found = await projected(tmp_path, "{type: length, unit: words, at_most: 3000}")

    assert models(found) == ["writer", "writer"]
    assert found.ended == "max_iterations"


async def test_no_command_is_run(tmp_path: Path):
    """A check that runs a command is left out, also within an evidence evaluator and a panel."""
    trace = tmp_path / "it-ran"
    command = f"{{type: command, name: touching, command: [touch, {trace}]}}"
    found = await projected(tmp_path, command, f"{{type: evidence, judge: {JUDGE}, checks: [{command}]}}")

    assert models(found) == ["writer", "judge"] * 2
    assert not trace.exists()


async def test_all_members_of_a_panel_are_asked(tmp_path: Path):
    """A panel's later tiers too."""
    other = JUDGE.replace("model: judge", "model: other")
    found = await projected(tmp_path, f"{{type: panel, members: [[{JUDGE}], [{other}]]}}")

    assert sorted(models(found)) == ["judge", "judge", "other", "other", "writer", "writer"]


async def test_a_judge_that_cannot_read_a_projected_reply_does_not_end_it(tmp_path: Path):
    """However often a verdict is missing, and whatever is asked in which words, the cap is assumed to be hit."""
    for judge in (
        JUDGE.replace("ai_judge", "ai_judge, design: requirements"),
        JUDGE.replace("chat_options", "verdict_fields: [reasoning, score, impossible], chat_options"),
        "{type: pass_token, model: judge}",
        "{type: function_call, model: judge}",
    ):
        path = tmp_path / "own.yaml"
        path.write_text((OWN % f"    - {judge}").replace("max_iterations: 2", "max_iterations: 9"), encoding="utf-8")

        found = await project(load_loop_file(path), {"topic": "tides"})

        assert models(found).count("writer") == 9
        assert models(found).count("judge") >= 9
        assert found.ended == "max_iterations"


async def test_a_comparison_of_answers_is_projected(tmp_path: Path):
    """Each answer but the first is compared with the best before it; that a judge may be asked again is said."""
    found = await projected(tmp_path, "{type: preference, model: judge}", "{type: length, unit: words, at_most: 3}")

    assert models(found) == ["writer", "writer", "judge"]
    assert any("more than once" in note for note in found.notes)
