"""What a loop file may say: a dagraph file with one `evaluator_loop` node."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

DEFAULT_MAX_ITERATIONS = 3
"""What a node without `max_iterations` gets: dagraph's own default is not published; its example says 3."""

InputType: TypeAlias = Literal["string", "integer", "number", "boolean"]


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value


Text = Annotated[str, AfterValidator(_not_blank)]
Count = Annotated[int, Field(ge=1)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class Budget(_Closed):
    """What may be spent."""

    max_tokens: Count | None = None
    """Input and output tokens, of all calls together."""
    max_usd: Annotated[float, Field(gt=0)] | None = None
    """US dollars, of all calls together."""


class InputSpec(_Closed):
    """An input that the file declares."""

    type: InputType = "string"
    required: bool | None = None
    """`None`: required, unless there is a default."""
    default: Any = None
    description: str | None = None

    @property
    def is_required(self) -> bool:
        """Whether a run needs a value for it."""
        return self.default is None if self.required is None else self.required


class Part(_Closed):
    """The generator, or the evaluator."""

    model: Text
    prompt: Text
    """A Jinja2 template."""
    max_output_tokens: Count | None = None


class EvaluatorLoopNode(_Closed):
    """A generator, and an evaluator that sends it back until it approves."""

    id: Text
    type: Literal["evaluator_loop"]
    max_iterations: Count = DEFAULT_MAX_ITERATIONS
    budget: Budget = Budget()
    generator: Part
    evaluator: Part


class Document(_Closed):
    """A whole file."""

    name: Text
    description: str | None = None
    budget: Budget = Budget()
    inputs: dict[str, InputSpec] | None = None
    """`None`: the file declares none, so that any may be given."""
    nodes: Annotated[list[EvaluatorLoopNode], Field(min_length=1)]
