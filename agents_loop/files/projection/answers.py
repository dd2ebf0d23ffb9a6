"""What stands for a model's answer in a projection: text that passes no contract, of the length that is allowed."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic import BaseModel

from agents_loop.chat_client import JsonSchemaFormat, ResponseFormat
from agents_loop.files.projection.tokens import estimated_tokens

PROJECTED: Final = "[projection: no model was called]"
"""How each answer begins."""
_LONGEST: Final = 20_000
"""Tokens at most of what stands for an answer, so that a file that allows a million does not fill the memory."""
_LETTERS: Final = "bcdfghjklmnpqrstvwxz"
_DENIALS: Final = ("no", "not", "un", "fail", "miss", "neither", "false", "reject")
"""How words begin that say no, among those of which a schema wants one."""
_UNIONS: Final = ("anyOf", "oneOf", "allOf")
_MOST_DEPTH: Final = 12


def projected_text(number: int, tokens: int | None) -> str:
    """The answer of a call: other words in each, so that no two answers look alike.

    Args:
        number: The how manieth call it is.
        tokens: How long it is to be; `None`: nobody knows.
    """
    missing = min(tokens or 0, _LONGEST) - estimated_tokens(PROJECTED)
    draw = random.Random(number)  # noqa: S311 - filler, the same each time
    words = ["".join(draw.choices(_LETTERS, k=3)) for _ in range(missing)]
    return " ".join([PROJECTED, *words])


def projected_json(response_format: ResponseFormat, text: str) -> str:
    """An answer of the form that is asked for, in which everything says no.

    Args:
        response_format: The form, which is not plain text.
        text: What stands in it where text is asked for.
    """
    if isinstance(response_format, JsonSchemaFormat):
        schema = response_format.schema
    elif isinstance(response_format, type) and issubclass(response_format, BaseModel):  # pyright: ignore[reportUnnecessaryIsInstance]
        schema = response_format.model_json_schema()
    else:
        return json.dumps({"projection": text})
    return json.dumps(_Form(schema, text).value(schema))


class _Form:
    """A schema that is filled in. The text stands once in it."""

    def __init__(self, schema: Mapping[str, Any], text: str) -> None:
        self._root = schema
        self._text = text

    def value(self, schema: Mapping[str, Any], depth: int = 0) -> Any:
        if depth > _MOST_DEPTH:
            return None
        schema = self._resolved(schema)
        if "const" in schema or "enum" in schema:
            return schema["const"] if "const" in schema else _denial(schema["enum"])
        union = next((schema[name] for name in _UNIONS if schema.get(name)), None)
        return self._of_type(schema, depth) if union is None else self.value(union[0], depth + 1)

    def _of_type(self, schema: Mapping[str, Any], depth: int) -> Any:
        kind: Any = schema.get("type")
        match cast("list[Any]", kind)[0] if isinstance(kind, list) else kind:
            case "boolean":
                return False
            case "integer" | "number":
                return schema.get("minimum", 0)
            case "string":
                text, self._text = self._text, PROJECTED
                return text
            case "array":
                inner = schema.get("items")
                size = max(1, int(schema.get("minItems", 0)))
                return [self.value(inner, depth + 1) for _ in range(size)] if inner else []
            case "null":
                return None
            case _:
                properties = cast("Mapping[str, Any]", schema.get("properties", {}))
                return {name: self.value(inner, depth + 1) for name, inner in properties.items()}

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        for _ in range(_MOST_DEPTH):
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return schema
            found: Any = self._root
            for part in reference.removeprefix("#/").split("/"):
                found = found.get(part, {})
            schema = found
        return {}


def _denial(values: list[Any]) -> Any:
    denials = [value for value in values if str(value).lower().startswith(_DENIALS)]
    return denials[0] if denials else values[-1]
