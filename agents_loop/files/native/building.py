"""From what a file says to objects. Whatever is wrong is told with its place, all of it at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from agents_loop.chat_client import ChatClient
from agents_loop.errors import AgentsLoopError
from agents_loop.files.inputs import InputValue
from agents_loop.files.problems import LoopFileError, Problem
from agents_loop.files.prompts import PromptTemplate
from agents_loop.files.yaml_tree import PathIn, YamlTree

Built = TypeVar("Built")


class Materials(ABC):
    """What objects are built of: models, Python objects, and the inputs' values.

    Args:
        source: The file's name, for messages.
        tree: What the file says, and where.
    """

    def __init__(self, source: str, tree: YamlTree) -> None:
        self.source = source
        self.tree = tree

    @property
    @abstractmethod
    def values(self) -> Mapping[str, InputValue]:
        """The inputs' values."""

    @abstractmethod
    def client(self, name: str) -> ChatClient:
        """The client of a model's name."""

    @abstractmethod
    def imported(self, path: PathIn, reference: str, stand_in: object) -> Any:
        """The Python object that a reference at a place names; where nothing is imported, what stands in for it."""

    @abstractmethod
    def template(self, path: PathIn, source: str, variables: frozenset[str]) -> PromptTemplate:
        """A template of the file, with its place.

        Args:
            path: Where it stands.
            source: Its text.
            variables: What it may use besides the inputs.
        """

    @abstractmethod
    def rendered(self, path: PathIn, source: str) -> str:
        """A text of the file, with the inputs' values filled in."""


class Building:
    """A place in the file, and what is built there.

    Args:
        materials: What it is built of.
        path: The place.
    """

    def __init__(self, materials: Materials, path: PathIn = ()) -> None:
        self.materials = materials
        self.path = path

    def at(self, *keys: str | int) -> Building:
        """A place within this one."""
        return Building(self.materials, (*self.path, *keys))

    def error(self, message: str, *, keys: PathIn = ()) -> LoopFileError:
        """An error at this place, or within it."""
        problem = self.materials.tree.problem((*self.path, *keys), message)
        return LoopFileError(self.materials.source, [problem])

    def make(self, make: Callable[..., Built], arguments: Mapping[str, Any], key_of: Mapping[str, str]) -> Built:
        """Make an object.

        Args:
            make: The class, or a function.
            arguments: What it is given, by parameter.
            key_of: The file's key of each parameter: an error whose first word is a parameter is told there.

        Raises:
            LoopFileError: It can't be made of that.
        """
        try:
            return make(**arguments)
        except LoopFileError:
            raise
        except (AgentsLoopError, TypeError, ValueError) as error:
            first = str(error).partition(" ")[0].rstrip(":")
            keys = (key_of[first],) if first in key_of else ()
            raise self.error(" ".join(str(error).split()), keys=keys) from error

    def each(self, tasks: Iterable[tuple[str | int, Callable[[Building], Built]]]) -> list[Built]:
        """Build several things, each at a key of its own.

        Raises:
            LoopFileError: Some can't be built; it holds the problems of all.
        """
        built: list[Built] = []
        problems: list[Problem] = []
        for key, build in tasks:
            try:
                built.append(build(self.at(key)))
            except LoopFileError as error:
                problems += error.problems
        if problems:
            raise LoopFileError(self.materials.source, problems)
        return built
