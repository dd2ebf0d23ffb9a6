"""What a run of a loop file would use at most, found without a model: `project`."""

from agents_loop.files.projection.projecting import project
from agents_loop.files.projection.result import ProjectedCall, Projection
from agents_loop.files.projection.tokens import estimated_tokens

__all__ = ["ProjectedCall", "Projection", "estimated_tokens", "project"]
