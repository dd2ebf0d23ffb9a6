"""What ends a flow's run."""

from __future__ import annotations

from agents_loop.errors import AgentsLoopError


class FlowNodeError(AgentsLoopError):
    """A node of a flow failed: its script, or what it wants to read or write. The context is as it was before it.

    Args:
        ref: The node.
        detail: What happened.
    """

    def __init__(self, ref: str, detail: str) -> None:
        self.ref = ref
        self.detail = detail
        super().__init__(f"the node {ref!r} failed: {detail}")

    def __reduce__(self) -> tuple[type[FlowNodeError], tuple[str, str]]:
        return type(self), (self.ref, self.detail)
