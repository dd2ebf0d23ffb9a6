"""A check by a pydantic model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agents_loop.checks.check import Check, check_maker
from agents_loop.checks.json_answer import json_check_of
from agents_loop.messages import JsonValue


@check_maker
def pydantic_check(
    model: Any, *, strict: bool = False, bare: bool = False, name: str | None = None, required: bool = True
) -> Check:
    """The answer must be JSON that a pydantic model accepts: `pydantic_check(Invoice)`.

    Args:
        model: A model, or any type pydantic can validate, such as `list[Invoice]`.
        strict: Whether pydantic converts nothing, as `"3"` to 3.
        bare: Whether the JSON must stand alone. By default it may stand in the answer's only code block.
        name: What the check is called. `None`: made of the model's name, where it has one.
        required: Whether an `EvidenceLoopEvaluator` may call nothing done while this fails.

    Raises:
        TypeError: The model is `None`, or nothing that pydantic can validate.
    """
    if model is None:
        raise TypeError("model must not be None")
    try:
        adapter = TypeAdapter[Any](model)
    except Exception as error:  # what pydantic raises of a value that is no type is of many kinds
        raise TypeError(f"model must be a type that pydantic can validate, not {model!r:.80}") from error

    def problems(value: JsonValue) -> Iterable[str]:
        try:
            adapter.validate_json(json.dumps(value), strict=strict)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            return [f"{_path(each['loc'])}: {each['msg']}" for each in found]
        return ()

    shown = model.__name__ if isinstance(model, type) else "the type"
    return json_check_of(name or f"valid JSON of {shown}", problems, bare=bare, required=required)


def _path(location: Iterable[int | str]) -> str:
    """Where in the value, as in `$.items[0].price`."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
