"""How a flow is run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from agents_loop.files.flomorphic.js import JsLimits
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.numeric import check_count

DEFAULT_MAX_NODE_VISITS: Final = 500
"""FloMorphic's own."""
DEFAULT_DEADLINE_S: Final = 3600.0
"""FloMorphic's own: an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowOptions:
    """How a flow is run.

    Raises:
        TypeError: `max_node_visits` is no int.
        ConfigurationError: It is less than 1.
    """

    loop: LoopAgentOptions = field(default_factory=LoopAgentOptions)
    """Its cap (visits of nodes that answer; `None`: no other cap than that on all visits), budgets, prices, clock and
    ids, and whether the best answer is given. The other options have nothing to do here."""
    max_node_visits: int = DEFAULT_MAX_NODE_VISITS
    """How many nodes are visited at most, each visit counted: where a flow ends that goes round for ever."""
    js: JsLimits = field(default_factory=JsLimits)
    """What one run of a script may use."""

    def __post_init__(self) -> None:
        check_count("max_node_visits", self.max_node_visits)

    @property
    def max_iterations(self) -> int:
        """How often nodes that answer are visited at most."""
        cap = self.loop.max_iterations
        return self.max_node_visits if cap is None else min(cap, self.max_node_visits)
