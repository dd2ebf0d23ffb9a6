"""JSON schemas for structured output, in the dialect that strict mode accepts."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import cast

from pydantic import BaseModel

from agents_loop.chat_client import JsonSchemaFormat
from agents_loop.messages import JsonValue

Schema = dict[str, JsonValue]

_LISTS_OF_SCHEMAS = ("anyOf", "allOf", "prefixItems")
_MAPS_OF_SCHEMAS = ("properties", "$defs")


@lru_cache(maxsize=128)
def model_format(model: type[BaseModel]) -> JsonSchemaFormat:
    """The format that asks for a pydantic model.

    Strict mode wants each object closed and each key required, knows neither `default` nor `oneOf`, and no key
    beside a `$ref`. A model with a part that can't be said so (a dict with free keys, `Any`) is sent without
    `strict`: the schema then guides the reply and does not bind it.
    """
    schema = strict_schema(model.model_json_schema())
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", model.__name__)[:64]
    return JsonSchemaFormat(name, schema, strict=not _is_open(schema))


def strict_schema(schema: Schema) -> Schema:
    """A copy as strict mode wants it, as far as that can be had without changing what the schema admits."""
    root = schema.get("$ref")
    if isinstance(root, str) and root.startswith("#/$defs/"):  # strict mode wants an object at the root
        definitions = cast("dict[str, Schema]", schema["$defs"])
        schema = {**definitions[root.removeprefix("#/$defs/")], "$defs": definitions}
    return _strict(schema)


def _strict(schema: Schema) -> Schema:
    strict: Schema = {}
    for key, value in schema.items():
        if key in {"default", "discriminator"}:
            continue
        if key in _MAPS_OF_SCHEMAS:
            strict[key] = {name: _strict(part) for name, part in value.items()}
        elif key in _LISTS_OF_SCHEMAS or key == "oneOf":
            strict["anyOf" if key == "oneOf" else key] = [_strict(part) for part in value]
        elif isinstance(value, dict) and key in {"items", "additionalProperties"}:
            strict[key] = _strict(cast("Schema", value))
        else:
            strict[key] = value
    if "properties" in strict:
        strict["required"] = list(strict["properties"])
        strict["additionalProperties"] = False
    if "$ref" in strict and len(strict) > 1:
        strict["anyOf"] = [{"$ref": strict.pop("$ref")}]
    return strict


def _is_open(schema: Schema) -> bool:
    """Whether a part of the schema admits what strict mode can't describe."""
    if not schema.keys() & {"type", "$ref", "anyOf", "allOf", "enum", "const"}:
        return True
    if schema.get("type") == "object" and "properties" not in schema:
        return True
    if schema.get("type") == "array" and "items" not in schema:
        return True
    parts = [part for key in _MAPS_OF_SCHEMAS for part in schema.get(key, {}).values()]
    parts += [part for key in _LISTS_OF_SCHEMAS for part in schema.get(key, [])]
    parts += [schema["items"]] if isinstance(schema.get("items"), dict) else []
    return any(_is_open(part) for part in parts)
