"""What is wrong with a loop file, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agents_loop.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong."""

    line: int | None
    """Counted from 1; `None` where the file as a whole is meant."""
    column: int | None
    place: str
    """The path inside the file, such as `nodes[0].max_iterations`; empty for the whole file."""
    message: str

    def text(self, source: str) -> str:
        """One line that says what, and where in the file."""
        at = source if self.line is None else f"{source}:{self.line}:{self.column}"
        return f"{at}: {self.place}: {self.message}" if self.place else f"{at}: {self.message}"


class LoopFileError(ConfigurationError):
    """A loop file is not valid. The message has one line for each problem.

    Args:
        source: The file's name, as the caller gave it.
        problems: All that was found, in the order of the file.
    """

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0)))
        super().__init__("\n".join(self.lines))

    @property
    def lines(self) -> tuple[str, ...]:
        """The problems, one line each."""
        return tuple(problem.text(self.source) for problem in self.problems)

    def __reduce__(self) -> tuple[type[LoopFileError], tuple[str, tuple[Problem, ...]]]:
        return type(self), (self.source, self.problems)


def path_text(path: Iterable[str | int]) -> str:
    """A path as people write it: `nodes[0].generator.model`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")
