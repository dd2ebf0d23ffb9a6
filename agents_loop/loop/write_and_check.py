"""Write and check: a loop whose cap counts revisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from agents_loop.adapting import AgentLike
from agents_loop.errors import ConfigurationError
from agents_loop.loop.agent import LoopAgent
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.numeric import is_int

DEFAULT_MAX_REVISIONS: Final = 2
"""That of the published example of the technique (gradientascent, "Write and check"): if the same fault is there a
third time, the criterion is the problem rather than the draft."""


def write_and_check(
    writer: AgentLike,
    checks: LoopEvaluator | Sequence[LoopEvaluator],
    *,
    max_revisions: int = DEFAULT_MAX_REVISIONS,
    options: LoopAgentOptions | None = None,
) -> LoopAgent:
    """A loop that drafts, checks, and revises until the check passes or the cap on revisions is reached.

    `max_revisions` R stands for `max_iterations` R + 1 with `evaluate_final_iteration`: each draft is checked, the
    last one too. With one checker a run takes 2 calls at best and 2 + 2R at worst. At the cap the last draft is
    returned all the same, and the `LoopResult` says so: its stop reason is `max_iterations`, and its stop detail that
    the answer does not pass its check.

    Args:
        writer: The agent that drafts and revises: an `AIAgent`, or whatever `as_agent` makes one of.
        checks: One evaluator, or several in order.
        max_revisions: How often the writer revises at most; 0 is a draft and a check.
        options: How the loop runs besides.

    Raises:
        TypeError: `max_revisions` is not an int; the writer or a check is `None` or of another type.
        ConfigurationError: `max_revisions` is below 0; the options have a `max_iterations`; there is no check.
    """
    if not is_int(max_revisions):
        raise TypeError(f"max_revisions must be an int, not {max_revisions!r}")
    if max_revisions < 0:
        raise ConfigurationError(f"max_revisions must be 0 or more, not {max_revisions}")
    given = LoopAgentOptions() if options is None else options
    if given.max_iterations is not None:
        raise ConfigurationError("options must have no max_iterations: max_revisions is the cap")
    return LoopAgent(writer, checks, replace(given, max_iterations=max_revisions + 1, evaluate_final_iteration=True))
