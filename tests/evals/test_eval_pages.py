from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from evaluating import Models, ask, loop_file

import agents_loop.evals
from agents_loop.evals import evaluate_file
from agents_loop.files.projection import project

DOCS = Path(__file__).parents[2] / "docs"
ONCE = (
    "records[].first_draft_grade.",
    "records[].first_draft_usage.",
    "records[].grading_usage.",
    "summary.first_draft.",
)
"""What the table describes once, by its twin."""
FREE = ("options.", "models.", "backends.", "summary.stop_reasons.", "summary.by_kind.", "records[].iterations[]")
"""What has keys of its own."""


def table(page: str, heading: str) -> set[str]:
    text = (DOCS / page).read_text("utf-8")
    body = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert body
    return set(re.findall(r"^\| `([^`]+)` \|", body[1], flags=re.MULTILINE))


def paths(value: Any, path: str = "") -> set[str]:
    found = {path} if path else set[str]()
    if isinstance(value, dict):
        for name, inner in value.items():
            found |= paths(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for inner in value:
            found |= {each for each in paths(inner, f"{path}[]") if each != f"{path}[]"}
    return found


async def test_the_table_of_an_evaluations_fields_is_whole(tmp_path: Path):
    """Docs: each field that a result has, and no other."""
    models = Models({"a": ["wrong", "right"]})
    result = await evaluate_file(loop_file(tmp_path), [ask("a", must_cite=["m#1"])], models.client_for)

    found = {path for path in paths(json.loads(result.to_json())) if not path.startswith((*ONCE, *FREE))}

    assert table("schema.md", "Result of an evaluation") == found


async def test_the_table_of_a_projections_fields_is_whole(tmp_path: Path):
    """Docs: each field that a projection has, and no other."""
    found = await project(loop_file(tmp_path), {"question": "a"})

    assert table("schema.md", "Projection") == paths(found.to_json())


def test_the_table_of_keys_of_a_question_is_whole():
    """Docs: each key that a question may have, and no other."""
    assert table("evaluating.md", "Questions") == set(agents_loop.evals.Question.model_fields)


def test_every_public_name_of_evaluations_is_in_the_reference():
    """Docs: the API page has each, and nothing that does not exist."""
    text = (DOCS / "api.md").read_text("utf-8")
    named = re.findall(r"^::: agents_loop\.evals\.(\w+)$", text, flags=re.MULTILINE)
    assert sorted(named) == sorted(agents_loop.evals.__all__)
