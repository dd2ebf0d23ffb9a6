"""What templates make of answers that nobody has given yet, where a run is projected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(slots=True)
class ProjectedValues:
    """The projection that is under way.

    A template may need more of an answer than that it is a text: JSON, say, or four lines. What stands for it in a
    projection is not so, and what a real one will be is not known: the projection goes on.
    """

    mark: str
    """By what a text is known that stands for an answer."""
    prompts: dict[str, str] = field(default_factory=dict[str, str])
    """Templates that could not be rendered, and why."""
    conditions: dict[str, str] = field(default_factory=dict[str, str])
    """Conditions that could not be worked out, and why."""

    def among(self, mentioned: Iterable[str], values: Mapping[str, Any]) -> list[str]:
        """The texts that stand for answers, of those that a template mentions."""
        texts = [values.get(name) for name in sorted(mentioned)]
        return [text for text in texts if isinstance(text, str) and self.mark in text]


PROJECTED_VALUES: Final[ContextVar[ProjectedValues | None]] = ContextVar("agents_loop_projected_values", default=None)
"""Set while a run is projected."""


def projected_prompt(source: str, mentioned: Iterable[str], values: Mapping[str, Any], why: str) -> str | None:
    """What stands for a prompt that can't be rendered: its template, and the answers that it mentions, as they are.

    Args:
        source: The template.
        mentioned: The variables that it mentions.
        values: Their values.
        why: Why it can't be rendered.

    Returns:
        The text, or `None` where no projected answer is the cause.
    """
    projected = PROJECTED_VALUES.get()
    answers = [] if projected is None else projected.among(mentioned, values)
    if projected is None or not answers:
        return None
    projected.prompts.setdefault(source, why)
    return "\n".join([source, *answers])


def is_taken_as_true(source: str, mentioned: Iterable[str], values: Mapping[str, Any], why: str) -> bool:
    """Whether a condition that can't be worked out holds all the same, so that what hangs on it is projected."""
    projected = PROJECTED_VALUES.get()
    if projected is None or not projected.among(mentioned, values):
        return False
    projected.conditions.setdefault(source, why)
    return True
