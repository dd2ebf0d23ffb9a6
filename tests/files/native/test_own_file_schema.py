"""The JSON Schemas of loop files say of a file what the library says of its form."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from agents_loop.files import load_loop_file, loop_file_schema
from agents_loop.files.native.starter import starter_text

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "samples").rglob("*.yaml"))


def format_of(path: Path) -> str:
    return "loop" if "loop" in yaml.safe_load(path.read_text("utf-8")) else "dagraph"


@pytest.mark.parametrize("format_", ["loop", "dagraph"])
def test_it_is_a_schema(format_: str):
    """Each schema is a valid JSON Schema of the dialect that it names."""
    schema = loop_file_schema(format_)
    validator = jsonschema.validators.validator_for(schema)
    assert validator is jsonschema.Draft202012Validator
    validator.check_schema(schema)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_samples_are_of_it(path: Path):
    """Each sample is of its format's schema, and of that one alone."""
    document = yaml.safe_load(path.read_text("utf-8"))
    of = {name for name in ("loop", "dagraph") if _is_valid(document, name)}
    assert of == {format_of(path)}
    assert load_loop_file(path).name


def _is_valid(document: object, format_: str) -> bool:
    return jsonschema.Draft202012Validator(loop_file_schema(format_)).is_valid(document)


def test_the_starter_is_of_it():
    """The starter is of the schema that its first line names."""
    assert _is_valid(yaml.safe_load(starter_text("n")), "loop")


@pytest.mark.parametrize("name", ["yes", "null", "007", "1_0", "0x1F", "2020-01-01"])
def test_the_starter_keeps_its_name(name: str, tmp_path: Path):
    """A starter can be loaded whatever it is called: a name that YAML takes for no text is put in quotes."""
    path = tmp_path / "starter.yaml"
    path.write_text(starter_text(name), encoding="utf-8")
    assert load_loop_file(path).name == name


@pytest.mark.parametrize(
    "changed",
    [
        {"evaluators": []},
        {"evaluators": [{"type": "ai_juge", "model": "j"}]},
        {"evaluators": [{"type": "ai_judge"}]},
        {"evaluators": [{"type": "ai_judge", "model": "j", "criterea": []}]},
        {"evaluators": [{"type": "panel", "members": [{"type": "length"}]}]},
        {"evaluators": ["ai_judge"]},
        {"agent": {"model": "w"}},
        {"agent": {"model": "w", "request": "r", "prompt": "p"}},
        {"options": {"max_iteration": 3}},
        {"budget": {"max_usd": 3}},
        {"stall": {"ladder": ["nudg"]}},
        {"stall": "maybe"},
        {"other": 1},
    ],
    ids=str,
)
def test_an_editor_marks_what_is_wrong(changed: dict[str, object]):
    """What the library refuses for its form is refused by the schema too."""
    loop = {"agent": {"model": "w", "request": "r"}, "evaluators": ["json"]}
    assert _is_valid({"name": "n", "loop": loop}, "loop")
    assert not _is_valid({"name": "n", "loop": {**loop, **changed}}, "loop")


def test_an_editor_can_explain_it():
    """Keys have descriptions, in the words of the classes that they stand for."""
    definitions = loop_file_schema()["$defs"]
    assert "second model" in definitions["AiJudge"]["description"] or definitions["AiJudge"]["description"]
    assert definitions["AiJudge"]["properties"]["criteria"]["description"].startswith("What a response must meet")
    assert definitions["Length"]["properties"]["unit"]["description"].startswith("What is counted")
    assert definitions["LoopSpec"]["properties"]["stall"]["description"].startswith("When the run counts as stuck")


def test_the_form_of_the_schema(snapshot):
    """The definitions and their keys are schema, as the format is."""
    definitions = loop_file_schema()["$defs"]
    keys = {name: sorted(each.get("properties", {})) for name, each in definitions.items()}
    required = {name: sorted(each.get("required", [])) for name, each in definitions.items()}
    assert {name: {"keys": keys[name], "required": required[name]} for name in sorted(definitions)} == snapshot
