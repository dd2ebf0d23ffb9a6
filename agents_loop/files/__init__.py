"""Loops as files: what a file may say, reading it, and building the loop that it describes.

It needs the extra `cli` (Jinja2 and PyYAML); importing it without raises `MissingExtraError`. What only files of our
own need is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agents_loop.files.flomorphic.errors import FlowNodeError
from agents_loop.files.flomorphic.js import JsLimits
from agents_loop.files.inputs import InputError
from agents_loop.files.loop_file import BuiltLoop, LoopFile, RunEvents, RunsLoop
from agents_loop.files.opening import load_loop_file
from agents_loop.files.problems import LoopFileError, Problem
from agents_loop.files.prompts import PromptError
from agents_loop.files.run_folder import RunFolder, RunFolderError
from agents_loop.files.run_settings import RunSettings

if TYPE_CHECKING:
    from agents_loop.files.json_schema import loop_file_schema
    from agents_loop.files.native.converting import ConvertedFile, convert_loop_file
    from agents_loop.files.native.dumping import dump_loop_file
    from agents_loop.files.native.writing import CannotWriteError

_HOMES = {
    "loop_file_schema": "json_schema",
    "ConvertedFile": "native.converting",
    "convert_loop_file": "native.converting",
    "dump_loop_file": "native.dumping",
    "CannotWriteError": "native.writing",
}

__all__ = [
    "BuiltLoop",
    "CannotWriteError",
    "ConvertedFile",
    "FlowNodeError",
    "InputError",
    "JsLimits",
    "LoopFile",
    "LoopFileError",
    "Problem",
    "PromptError",
    "RunEvents",
    "RunFolder",
    "RunFolderError",
    "RunSettings",
    "RunsLoop",
    "convert_loop_file",
    "dump_loop_file",
    "load_loop_file",
    "loop_file_schema",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
