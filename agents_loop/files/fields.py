"""What the formats of loop files have in common: closed models, and the kinds of their fields."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

InputType: TypeAlias = Literal["string", "integer", "number", "boolean"]


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value


Text = Annotated[str, AfterValidator(_not_blank)]
Count = Annotated[int, Field(ge=1, le=10**12)]
"""A whole number of at least 1. The upper bound is that of the command line: what is more is a slip of the hand."""


class Closed(BaseModel):
    """A mapping without other keys, whose values are of the very types that it says."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class InputSpec(Closed):
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
