"""Python objects that a file names. To import their modules is to run them."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from agents_loop.errors import ConfigurationError


def import_object(reference: str, folder: Path) -> Any:
    """The object of a reference, `module:name`. Modules beside the file are found too.

    Raises:
        ConfigurationError: The module can't be imported, or has no such name.
    """
    module, _, name = reference.partition(":")
    try:
        with _findable(folder):
            found: Any = import_module(module)
    except (Exception, SystemExit) as error:  # a module may raise anything while it is imported
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigurationError(f"{reference!r} can't be imported: {said}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise ConfigurationError(f"{reference!r} can't be imported: {module!r} has no {name!r}")
        found = getattr(found, part)
    return found


@contextmanager
def _findable(folder: Path) -> Generator[None, None, None]:
    """Let modules of a folder be found, after all others: none of theirs stands in for a library's."""
    entry = str(folder.resolve())
    sys.path.append(entry)
    try:
        yield
    finally:
        if entry in sys.path:
            sys.path.reverse()
            sys.path.remove(entry)
            sys.path.reverse()
