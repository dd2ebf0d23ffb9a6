"""The schemas that are sent for pydantic models."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Field

from agents_loop.clients.chat_completions.schema import model_format, strict_schema

Item = TypeVar("Item")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Node(BaseModel):
    value: int
    children: list[Node] = []
    next: Optional[Node] = None  # noqa: UP045 - both spellings of optional


class Whole(BaseModel):
    model_config = ConfigDict(extra="allow")

    gap_analysis: Annotated[str, Field(alias="gapAnalysis")] = ""
    colour: Colour = Colour.RED
    favourite: Colour = Field(default=Colour.BLUE, description="The one they like.")
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    pets: list[Cat] | None = None
    default: str = "a property of that name"
    tree: Node


class Free(BaseModel):
    counts: dict[str, int]


class Anything(BaseModel):
    value: Any


class AnyList(BaseModel):
    values: list  # type: ignore[type-arg]


class Pair(BaseModel):
    pair: tuple[int, str]


class Box(BaseModel, Generic[Item]):
    item: Item


def schemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema within a schema; the values of `properties` and `$defs` are schemas, these maps are not."""
    yield schema
    for key in ("properties", "$defs"):
        for part in schema.get(key, {}).values():
            yield from schemas(part)
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for part in schema.get(key, []):
            yield from schemas(part)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from schemas(schema[key])


@pytest.mark.parametrize("model", [Cat, Node, Whole, Box[int]])
def test_strict(model: type[BaseModel]) -> None:
    """Each object is closed and requires all its keys; no default, no oneOf, and nothing beside a $ref."""
    form = model_format(model)
    assert form.strict
    assert form.schema["type"] == "object"
    for schema in schemas(form.schema):
        assert not schema.keys() & {"default", "oneOf", "discriminator"}
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
        if "$ref" in schema:
            assert schema.keys() == {"$ref"}


def test_what_is_kept() -> None:
    """Aliases, descriptions, choices and properties of any name survive."""
    schema = model_format(Whole).schema
    properties = schema["properties"]
    assert "gapAnalysis" in properties
    assert properties["default"]["type"] == "string"
    assert properties["favourite"] == {"anyOf": [{"$ref": "#/$defs/Colour"}], "description": "The one they like."}
    assert properties["pet"]["anyOf"] == [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]
    assert schema["$defs"]["Colour"]["enum"] == ["red", "blue"]
    assert properties["pets"]["anyOf"][1] == {"type": "null"}


@pytest.mark.parametrize("model", [Free, Anything, AnyList, Pair])
def test_open_parts(model: type[BaseModel]) -> None:
    """What strict mode can't describe is sent without `strict`, and not narrowed."""
    form = model_format(model)
    assert not form.strict
    [part] = form.schema["properties"].values()
    assert part.get("additionalProperties") is not False


def test_name() -> None:
    """A generic model's name is put in the letters a schema's name may have."""
    assert model_format(Box[int]).name == "Box_int_"


def test_the_given_schema_is_not_changed() -> None:
    """Making a schema strict leaves the original alone."""
    given = {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}
    strict_schema(given)
    assert given == {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}
