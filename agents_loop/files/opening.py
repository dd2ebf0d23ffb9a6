"""From a path to a `LoopFile`, of whatever format."""

from __future__ import annotations

from pathlib import Path

from agents_loop.files.dagraph.file import load_dagraph
from agents_loop.files.flomorphic.file import is_flomorphic, load_flomorphic
from agents_loop.files.loop_file import LoopFile
from agents_loop.files.yaml_tree import parse_yaml, read_text


def load_loop_file(path: str | Path) -> LoopFile:
    """Read and check a file. No model is called.

    Raises:
        LoopFileError: It can't be read or is not valid; the error holds every problem, with its place.
    """
    source = str(path)
    text = read_text(Path(path), source)
    if is_flomorphic(text):
        return load_flomorphic(source, text)
    tree = parse_yaml(text, source)
    if "loop" not in tree.data:
        return load_dagraph(source, tree)
    from agents_loop.files.native.file import load_native  # noqa: PLC0415 - it makes models of all evaluators

    return load_native(source, tree)
