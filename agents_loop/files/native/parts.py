"""Mappings of a file that are objects in Python: their keys are read from what the objects' makers take."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, Union, cast

from pydantic import Discriminator, Field, Tag, create_model
from typing_extensions import TypeAliasType

from agents_loop.errors import ConfigurationError
from agents_loop.files.fields import Closed
from agents_loop.files.native.building import Building
from agents_loop.files.native.kinds import Kind, kind_of
from agents_loop.files.native.parameters import REQUIRED, Parameter, parameters_of
from agents_loop.files.native.writing import Writing

LeftOut: TypeAlias = Mapping[str, str]
"""What can't be said in a file, and why."""

_OPTIONS = "options"


class Key(NamedTuple):
    """One key of a mapping."""

    name: str
    parameter: Parameter
    kind: Kind
    of_options: bool

    @property
    def attribute(self) -> str:
        """What the file's value is called in the model: as the key, unless that is something else there."""
        return f"{self.name}_" if hasattr(Closed, self.name) else self.name


@dataclass(frozen=True)
class Part:
    """A mapping that becomes an object, by calling what makes it."""

    make: Callable[..., Any]
    """The class, or a function. Its parameters, and the fields of its `options`, are the keys."""
    type: str | None = None
    """The value of the key `type`; `None`: there is none, since nothing else can stand there."""
    options: type | None = None
    """The class of the parameter `options`."""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """The keys of parameters that are called otherwise in a file."""
    kinds: Mapping[str, Kind] = field(default_factory=dict[str, Kind])
    """The kinds of parameters and fields whose annotation does not say it."""
    left_out: LeftOut = field(default_factory=dict[str, str])
    """Of the options; where there are none, of the parameters."""
    left_out_of_maker: LeftOut = field(default_factory=dict[str, str])
    """Of the parameters, where there are options too."""
    supplied: Mapping[str, Callable[[Building], Any]] = field(default_factory=dict[str, Callable[[Building], Any]])
    """Parameters that do not come from the file."""
    is_made: Callable[[Any], bool] | None = None
    """Whether an object is one of these; `None`: whether it is of the class."""
    read: Callable[[Any], Mapping[str, Any]] | None = None
    """What an object was made of, by parameter, `options` among them; `None`: its attributes. What it leaves out is as
    it is by default."""

    def __post_init__(self) -> None:
        listed = list(self._listed())
        keys = {key.name: key for key in listed}
        if len(keys) < len(listed):
            raise ConfigurationError(f"{self.make}: two of its keys have one name")
        object.__setattr__(self, "keys", keys)
        given: dict[str, Any] = {} if self.type is None else {"type": (Literal[self.type], ...)}
        given |= {key.attribute: (key.kind.annotation, _field(key)) for key in listed}
        title = "".join(word.capitalize() for word in (self.type or self.make.__name__).split("_"))
        model = create_model(title, __base__=Closed, __doc__=_summary(self.make), __module__=__name__, **given)
        object.__setattr__(self, "model", model)

    keys: Mapping[str, Key] = field(init=False)
    model: type[Closed] = field(init=False)

    @property
    def kind(self) -> Kind:
        """The mapping as a kind of value."""
        return Kind(self.model, self.build, self.write)

    @property
    def needs_nothing(self) -> bool:
        """Whether its type alone says enough."""
        return all(key.parameter.default is not REQUIRED for key in self.keys.values())

    def build(self, building: Building, spec: Closed, instead: Mapping[str, Any] | None = None) -> Any:
        """The object.

        Args:
            building: Where it is built.
            spec: What the file says of it.
            instead: Values of parameters, in place of what the file says.

        Raises:
            LoopFileError: It can't be built; the error holds every problem.
        """
        given = [key for key in self.keys.values() if key.attribute in spec.model_fields_set]
        values = building.each([(key.name, _builder(key, getattr(spec, key.attribute))) for key in given])
        built = {key.parameter.name: value for key, value in zip(given, values, strict=True)}
        key_of = {name: key.name for key in self.keys.values() for name in (key.parameter.name, key.name)}
        arguments = {name: supply(building) for name, supply in self.supplied.items()}
        if self.options is not None:
            of_options = {key.parameter.name for key in given if key.of_options}
            fields = {name: built.pop(name) for name in of_options}
            arguments[_OPTIONS] = building.make(self.options, fields, key_of)
        return building.make(self.make, arguments | built | dict(instead or {}), key_of)

    def write(self, writing: Writing, target: Any) -> dict[str, Any]:
        """What the file says of an object: what is not as it is by default.

        Raises:
            CannotWriteError: Something of it can't stand in a file.
        """
        said: dict[str, Any] = {} if self.type is None else {"type": self.type}
        of_target = self.read(target) if self.read is not None else None
        options = getattr(target, _OPTIONS, None) if of_target is None else of_target.get(_OPTIONS)
        if self.options is not None and options is None:
            options = self.options()
        for key in self.keys.values():
            name = key.parameter.name
            if key.of_options:
                value = getattr(options, name)
            else:
                value = getattr(target, name) if of_target is None else of_target.get(name, key.parameter.default)
            if not _is_default(value, key.parameter.default):
                said[key.name] = key.kind.write(writing.at(key.name), value)
        _require_default(writing, self.options or self.make, options if self.options else target, self.left_out)
        if self.options is not None:
            _require_default(writing, self.make, target, self.left_out_of_maker)
        return said

    def _listed(self) -> Iterator[Key]:
        passed_over = {*self.supplied, *self.left_out}
        if self.options is not None:
            passed_over = {_OPTIONS, *self.supplied, *self.left_out_of_maker}
        for parameter in parameters_of(self.make):
            if parameter.name not in passed_over:
                yield self._key(parameter, of_options=False)
        for parameter in parameters_of(self.options) if self.options is not None else ():
            if parameter.name not in self.left_out:
                yield self._key(parameter, of_options=True)

    def _key(self, parameter: Parameter, *, of_options: bool) -> Key:
        kind = self.kinds.get(parameter.name) or kind_of(parameter.annotation)
        return Key(self.names.get(parameter.name, parameter.name), parameter, kind, of_options)


class Table:
    """Mappings of several types, told by their key `type`; one that needs no more may be written as its type alone.

    Args:
        name: What its JSON schema is called.
        parts: The types.
    """

    def __init__(self, name: str, parts: Sequence[Part]) -> None:
        self.parts = {str(part.type): part for part in parts}
        alone = tuple(name for name, part in self.parts.items() if part.needs_nothing)
        members: list[Any] = [Annotated[part.model, Tag(f"<{name}>")] for name, part in self.parts.items()]
        if alone:
            members.append(Annotated[Literal[alone], Tag("<alone>")])
        annotated = Annotated[Union[tuple(members)], Discriminator(lambda value: _tag(value, alone))]  # noqa: UP007 - made of a list
        self.annotation: Any = TypeAliasType(name, annotated)  # pyright: ignore[reportGeneralTypeIssues] - its name is given

    @property
    def kind(self) -> Kind:
        """A mapping of one of the types as a kind of value."""
        return Kind(self.annotation, self.build, self.write)

    def build(self, building: Building, spec: Any) -> Any:
        """The object."""
        part = self.parts[spec if isinstance(spec, str) else spec.type]
        return part.build(building, part.model.model_validate({"type": part.type}) if isinstance(spec, str) else spec)

    def write(self, writing: Writing, target: Any) -> Any:
        """What the file says of an object.

        Raises:
            CannotWriteError: It is of no type that a file knows.
        """
        for name, part in self.parts.items():
            if _is_made(part, target):
                said = part.write(writing, target)
                return name if said == {"type": name} and part.needs_nothing else said
        raise writing.error(f"{type(target).__name__} can't stand in a file")


def _require_default(writing: Writing, make: Callable[..., Any], target: object, left_out: LeftOut) -> None:
    """That what can't be said in a file is as it is without a word."""
    for parameter in parameters_of(make) if left_out else ():
        why = left_out.get(parameter.name)
        value = getattr(target, parameter.name, parameter.default)
        if why is not None and not _is_default(value, parameter.default):
            raise writing.at(parameter.name).error(f"can't stand in a file: {why}")


def _tag(value: Any, alone: Collection[str]) -> str:
    if isinstance(value, str):
        return "<alone>" if value in alone else f"<{value}>"
    fields = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    said: object = fields.get("type", "") if fields else getattr(cast("object", value), "type", "")
    return f"<{said}>"


def _is_made(part: Part, target: object) -> bool:
    return part.is_made(target) if part.is_made is not None else type(target) is part.make


def _builder(key: Key, value: Any) -> Callable[[Building], Any]:
    return lambda building: key.kind.build(building, value)


def _is_default(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and value == default)


def _field(key: Key) -> Any:
    default, description = key.parameter.default, key.parameter.description
    alias = None if key.attribute == key.name else key.name
    if default is REQUIRED:
        return Field(alias=alias, description=description)
    if default is None or type(default) in (bool, int, float, str):
        return Field(default=default, alias=alias, description=description)
    return Field(default_factory=lambda: None, alias=alias, description=description)


def _summary(make: Callable[..., Any]) -> str:
    return (make.__doc__ or "").strip().partition("\n")[0]
