"""What a loop file may say: a dagraph file with one `evaluator_loop` node."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agents_loop.files.fields import Closed, Count, InputSpec, Text

DEFAULT_MAX_ITERATIONS = 3
"""What a node without `max_iterations` gets: dagraph's own default is not published; its example says 3."""


class Budget(Closed):
    """What may be spent."""

    max_tokens: Count | None = None
    """Input and output tokens, of all calls together."""
    max_usd: Annotated[float, Field(gt=0)] | None = None
    """US dollars, of all calls together."""


class Part(Closed):
    """The generator, or the evaluator."""

    model: Text
    prompt: Text
    """A Jinja2 template."""
    max_output_tokens: Count | None = None


class EvaluatorLoopNode(Closed):
    """A generator, and an evaluator that sends it back until it approves."""

    id: Text
    type: Literal["evaluator_loop"]
    max_iterations: Count = DEFAULT_MAX_ITERATIONS
    budget: Budget = Budget()
    generator: Part
    evaluator: Part


class Document(Closed):
    """A whole file."""

    name: Text
    description: str | None = None
    budget: Budget = Budget()
    inputs: dict[str, InputSpec] | None = None
    """`None`: the file declares none, so that any may be given."""
    nodes: Annotated[list[EvaluatorLoopNode], Field(min_length=1)]
