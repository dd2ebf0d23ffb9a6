"""Switches of options: what is not a bool is refused by name, before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agents_loop import (
    AIJudgeLoopEvaluatorOptions,
    LoopAgentOptions,
    LoopBudget,
    RubricCriterion,
    check,
)
from agents_loop.strategy.signals import (
    Confidence,
    HallucinationReport,
    UnmetRequirement,
    UserFeedback,
    ValidationFailure,
)

FLAGS: list[tuple[str, Callable[..., Any]]] = [
    ("fresh_context_per_iteration", LoopAgentOptions),
    ("exclude_on_behalf_of_messages", LoopAgentOptions),
    ("non_streaming_returns_last_response_only", LoopAgentOptions),
    ("evaluate_final_iteration", LoopAgentOptions),
    ("return_best", LoopAgentOptions),
    ("ask_again_on_contradiction", AIJudgeLoopEvaluatorOptions),
    ("counts_cached_input", lambda **flag: LoopBudget(max_tokens=1, **flag)),
    ("keeps_back_verdict", lambda **flag: LoopBudget(max_tokens=1, **flag)),
    ("required", lambda **flag: RubricCriterion("a", "A.", **flag)),
    ("required", lambda **flag: check("a", bool, **flag)),
    ("critical", lambda **flag: ValidationFailure("code", "message", **flag)),
    ("source_material_available", lambda **flag: Confidence(0.5, **flag)),
    ("systemic", lambda **flag: HallucinationReport((), **flag)),
    ("required", lambda **flag: UnmetRequirement("a", **flag)),
    ("fixable", lambda **flag: UnmetRequirement("a", **flag)),
    ("rejected", lambda **flag: UserFeedback("no", **flag)),
    ("actionable", lambda **flag: UserFeedback("no", **flag)),
]


@pytest.mark.parametrize(("name", "make"), FLAGS, ids=[name for name, _ in FLAGS])
@pytest.mark.parametrize("given", ["yes", "", 1, None])
def test_a_switch_is_a_bool(name: str, make: Callable[..., Any], given: Any):
    """Options: "no" is not taken for yes; the error names the switch."""
    with pytest.raises(TypeError, match=f"^{name} must be a bool"):
        make(**{name: given})
    for value in (True, False):
        make(**{name: value})
