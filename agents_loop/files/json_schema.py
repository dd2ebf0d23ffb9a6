"""JSON Schemas of the formats, for editors and other programs."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from agents_loop.files.dagraph.schema import Document
from agents_loop.files.native.document import NativeDocument

LoopFormat: TypeAlias = Literal["loop", "dagraph"]

_MODELS = {"loop": NativeDocument, "dagraph": Document}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def loop_file_schema(format_: LoopFormat = "loop") -> dict[str, Any]:
    """The JSON Schema of a format of loop files.

    It says what stands where. What only the whole can tell (templates, options that don't go together) is checked by
    `agents-loop validate`.

    Args:
        format_: `loop`: our own; `dagraph`: that format, as far as it is supported.
    """
    return {"$schema": _DIALECT, **_MODELS[format_].model_json_schema(by_alias=True)}
