"""A file of our own format says all that Python can, but for what is named here with a reason."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import agents_loop
from agents_loop import LoopAgentOptions, LoopBudget, LoopEvaluator, StallPolicy, StallSignal
from agents_loop.checks.check import Check
from agents_loop.files.native.agents import CHAT_AGENT, HELPER, PROVIDERS, PYTHON_AGENT
from agents_loop.files.native.document import OPTIONS
from agents_loop.files.native.evaluators import DETECTORS, EVALUATORS
from agents_loop.files.native.parameters import parameters_of
from agents_loop.files.native.parts import Part
from agents_loop.files.native.prompted import PROMPTED_AGENT
from agents_loop.files.native.shared import BUDGET, CHAT_OPTIONS, FAILURE_POLICY
from agents_loop.files.native.stalls import POLICY, SIGNALS, STEPS

NO_TYPE_OF_ITS_OWN = {
    "Check": "its makers have types: length, regex and the like",
    "DelegateLoopEvaluator": "the type is `python`",
    "PreferenceLoopEvaluator": "the type is `preference`, whose keys are those of its judge",
    "LoopEvaluator": "it is abstract",
}
MAKERS = {name: value for name in agents_loop.__all__ if callable(value := getattr(agents_loop, name))}
TABLES = (EVALUATORS, DETECTORS, PROVIDERS, SIGNALS, STEPS)
PARTS: list[Part] = [
    *[part for table in TABLES for part in table.parts.values()],
    *[CHAT_AGENT, HELPER, PYTHON_AGENT, PROMPTED_AGENT, OPTIONS, BUDGET, CHAT_OPTIONS, FAILURE_POLICY, POLICY],
]


def is_a(value: Any, kind: type) -> bool:
    return isinstance(value, type) and issubclass(value, kind)


@pytest.mark.parametrize("name", [name for name, value in MAKERS.items() if is_a(value, LoopEvaluator)])
def test_every_evaluator_has_a_type(name: str):
    """Each public evaluator is a type of the format, or stands in a list with the reason why it is none."""
    made = {part.make for part in EVALUATORS.parts.values()}
    assert (MAKERS[name] in made) != (name in NO_TYPE_OF_ITS_OWN)


@pytest.mark.parametrize("name", [name for name in MAKERS if name == "check" or name.endswith("_check")])
def test_every_check_has_a_type(name: str):
    """Each public function that makes a check is a type, called as it is; `write_and_check` makes a loop."""
    made = {part.make for part in EVALUATORS.parts.values()}
    assert (MAKERS[name] in made) != (name == "write_and_check")


@pytest.mark.parametrize("name", [name for name, value in MAKERS.items() if is_a(value, StallSignal)])
def test_every_stall_signal_has_a_type(name: str):
    """Each signal is a type, by its name."""
    signal = MAKERS[name]
    assert signal is StallSignal or SIGNALS.parts[signal.name].make is signal


def test_every_step_has_a_type():
    """Each step of a ladder is a type; another agent is the same one with another model."""
    names = [value.name for name, value in MAKERS.items() if name.endswith("Step")]
    assert sorted(STEPS.parts) == sorted(name.replace("another_agent", "another_model") for name in names)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.type or part.make.__name__)
def test_every_option_is_a_key_or_has_a_reason(part: Part):
    """Each parameter, and each field of the options, is a key, or is left out for a reason."""
    named = {key.parameter.name for key in part.keys.values()}
    of_make = {each.name for each in parameters_of(part.make)} - {"options" if part.options else ""}
    of_options = {each.name for each in fields(part.options)} if part.options else set()
    left_out = {**part.left_out, **part.left_out_of_maker}
    assert of_make | of_options <= named | left_out.keys() | part.supplied.keys()
    assert all(reason.strip() for reason in left_out.values())


def test_the_options_are_whole():
    """What a loop, a budget and a policy can be told stands in the format."""
    for part, kind in ((OPTIONS, LoopAgentOptions), (BUDGET, LoopBudget)):
        assert {key.parameter.name for key in part.keys.values()} | part.left_out.keys() == {
            each.name for each in fields(kind)
        }
    assert list(POLICY.keys) == [each.name for each in fields(StallPolicy)]


def test_every_key_is_described():
    """An editor can say of each option of an evaluator what it means, in the words of its class."""
    for part in EVALUATORS.parts.values():
        if is_dataclass(part.options) and part.type != "prompted":
            undescribed = [name for name, key in part.keys.items() if not key.parameter.description]
            assert set(undescribed) <= {"on_failure"}, part.type


def test_the_keys(snapshot):
    """The keys of the format are schema: a change of one stands in the changelog."""
    tables = {
        table.annotation.__name__: {
            name: {key: str(each.parameter.default)[:60] for key, each in part.keys.items()}
            for name, part in table.parts.items()
        }
        for table in TABLES
    }
    others = {part.make.__name__: list(part.keys) for part in PARTS[-9:]}
    assert {
        **{name: {type_: list(keys) for type_, keys in each.items()} for name, each in tables.items()},
        **others,
    } == (snapshot)


def test_a_check_knows_its_maker():
    """A check that is made by hand has no maker; one of a function's has that, and what it was given."""
    assert Check("n", lambda _: True).made_by is None
    assert agents_loop.length_check("words", at_most=3).made_by == ("length_check", {"unit": "words", "at_most": 3})


def test_every_key_is_in_the_docs():
    """The page of the format has each type and each key, in code marks."""
    page = (Path(__file__).parents[3] / "docs" / "loop-file-format.md").read_text("utf-8")
    said = set(re.findall(r"`([a-z_]+)`", page))
    keys = {key for part in PARTS for key in part.keys}
    keys |= {str(part.type) for table in TABLES for part in table.parts.values()}
    assert keys - {"signals", "ladder"} <= said, "these stand in the example"
