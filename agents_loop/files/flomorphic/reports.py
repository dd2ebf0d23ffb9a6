"""What an import has to say: errors, which end it, and warnings, which don't."""

from __future__ import annotations

from agents_loop.files.problems import Problem
from agents_loop.files.yaml_tree import PathIn, YamlTree


class Reports:
    """Collects both, each with its place.

    Args:
        tree: The file.
        source: Its name.
    """

    def __init__(self, tree: YamlTree, source: str) -> None:
        self._tree = tree
        self._source = source
        self.problems: list[Problem] = []
        self.warnings: list[str] = []
        """One line each."""

    def error(self, path: PathIn, message: str) -> None:
        """The file is not valid."""
        self.problems.append(self._tree.problem(path, message))

    def warn(self, path: PathIn, message: str) -> None:
        """The file can be run, but may not do what was meant."""
        self.warnings.append(self._tree.problem(path, message).text(self._source))
