"""Kinds of values: how each stands in a file, what it is in Python, and the way from one to the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, cast, get_args, get_origin

from annotated_types import MinLen
from pydantic import AfterValidator, Discriminator, Tag

from agents_loop.chat_client import ChatClient
from agents_loop.clients.fallback import FallbackChatClient
from agents_loop.files.fields import Text
from agents_loop.files.native.building import Building
from agents_loop.files.native.writing import Writing, as_template

_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value."""

    annotation: Any
    """What pydantic checks it by in a file."""
    build: Callable[[Building, Any], Any]
    """From the file's value to Python's."""
    write: Callable[[Writing, Any], Any]
    """And back."""


def _as_it_is(building: Building, value: Any) -> Any:
    del building
    return value


def written(writing: Writing, value: Any) -> Any:
    """A value that is the same in a file.

    Raises:
        CannotWriteError: It is none of these: a text, a number, a list, a mapping and so on.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {str(key): written(writing.at(str(key)), inner) for key, inner in pairs}
    if isinstance(value, set | frozenset):
        value = sorted(cast("Collection[Any]", value))
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [written(writing.at(index), inner) for index, inner in enumerate(cast("Sequence[Any]", value))]
    raise writing.error(f"{value!r} can't stand in a file")


def _checked_size(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise ValueError("must be a whole number that 64 bits hold")
    return value


Whole = Annotated[int, AfterValidator(_checked_size)]
"""A whole number that all who may read it can hold."""


def _written_number(writing: Writing, value: float) -> Any:
    """A number, without the decimals that say nothing."""
    return int(value) if isinstance(value, float) and value.is_integer() else written(writing, value)


def plain(annotation: Any) -> Kind:
    """A value that is the same in a file and in Python."""
    return Kind(annotation, _as_it_is, _written_number if annotation is float else written)


def optional(kind: Kind) -> Kind:
    """A value of a kind, or nothing."""
    return Kind(
        kind.annotation | None if not isinstance(kind.annotation, str) else Union[kind.annotation, None],  # noqa: UP007 - a name
        lambda building, value: None if value is None else kind.build(building, value),
        lambda writing, value: None if value is None else kind.write(writing, value),
    )


def many(kind: Kind) -> Kind:
    """Several values of a kind, in order."""

    def build(building: Building, values: list[Any]) -> list[Any]:
        return building.each(
            (index, lambda inner, value=value: kind.build(inner, value)) for index, value in enumerate(values)
        )

    def write(writing: Writing, values: Sequence[Any]) -> list[Any]:
        return [kind.write(writing.at(index), value) for index, value in enumerate(values)]

    return Kind(list[kind.annotation], build, write)


def mapping(kind: Kind) -> Kind:
    """Values of a kind, each with a name."""

    def build(building: Building, values: dict[str, Any]) -> dict[str, Any]:
        built = building.each(
            (key, lambda inner, value=value: kind.build(inner, value)) for key, value in values.items()
        )
        return dict(zip(values, built, strict=True))

    def write(writing: Writing, values: Mapping[str, Any]) -> dict[str, Any]:
        return {str(key): kind.write(writing.at(key), value) for key, value in values.items()}

    return Kind(dict[str, kind.annotation], build, write)


class Form(NamedTuple):
    """One of several forms that a value may have."""

    tag: str
    is_in_file: Callable[[Any], bool]
    is_in_python: Callable[[Any], bool]
    kind: Kind


def forms(*given: Form) -> Kind:
    """A value that has one of several forms: the first that it is; where it is none, the last says what is wrong."""

    def form_of(value: Any) -> Form:
        return next((form for form in given if form.is_in_file(value)), given[-1])

    def write(writing: Writing, value: Any) -> Any:
        form = next((form for form in given if form.is_in_python(value)), None)
        if form is None:
            raise writing.error(f"{value!r} can't stand in a file")
        return form.kind.write(writing, value)

    tagged: Any = Union[tuple(Annotated[form.kind.annotation, Tag(f"<{form.tag}>")] for form in given)]  # noqa: UP007 - made of a list
    annotation = Annotated[tagged, Discriminator(lambda value: f"<{form_of(value).tag}>")]
    return Kind(annotation, lambda building, value: form_of(value).kind.build(building, value), write)


def is_of(*types: type) -> Callable[[Any], bool]:
    """Whether a value is of one of these types."""
    return lambda value: isinstance(value, types)


def is_not(other: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether something else is not so of a value."""
    return lambda value: not other(value)


is_list = is_of(list, tuple)
"""Whether a value is a list, in a file or in Python."""


def one_or_many(kind: Kind) -> Kind:
    """A value of a kind, or a list of them."""
    is_one = is_not(is_list)
    return forms(Form("one", is_one, is_one, kind), Form("several", is_list, is_list, many(kind)))


def kind_of(annotation: Any) -> Kind:
    """The kind of a Python annotation that needs no more than itself.

    Raises:
        TypeError: It holds what can't stand in a file as it is.
    """
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation is int:
        return plain(Whole)
    if annotation in (str, float, bool, Any, NoneType) or origin is Literal:
        return plain(annotation)
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return plain(Literal[tuple(each.value for each in annotation)])
    if origin in (Union, UnionType):
        return _kind_of_union(inner)
    if origin in (Sequence, Collection, list):
        return many(kind_of(inner[0]))
    if origin in (Mapping, dict):
        kind = mapping(kind_of(inner[1]))
        return Kind(dict[kind_of(inner[0]).annotation, get_args(kind.annotation)[1]], kind.build, kind.write)
    raise TypeError(f"{annotation!r} can't stand in a file as it is: say how, or leave it out")


def _kind_of_union(members: tuple[Any, ...]) -> Kind:
    others = [each for each in members if each is not NoneType]
    literals = [value for each in others if get_origin(each) is Literal for value in get_args(each)]
    kinds = [kind_of(each) for each in others if get_origin(each) is not Literal]
    if literals:
        kinds.insert(0, plain(Literal[tuple(literals)]))
    match kinds:
        case [kind]:
            united = kind
        case [one, several] if get_origin(several.annotation) is list:
            united = one_or_many(one)
        case _:
            raise TypeError(f"{members!r} can't stand in a file as they are: say how, or leave them out")
    return optional(united) if NoneType in members else united


# --- what a file has in place of Python's objects


def _checked_reference(value: str) -> str:
    if not _REFERENCE.fullmatch(value):
        raise ValueError(f"must name a Python object as 'module:name', such as 'my_tools:search', not {value!r}")
    return value


Reference = Annotated[str, AfterValidator(_checked_reference)]
_NAME = Kind(
    Text,
    lambda building, name: building.materials.client(name),
    lambda writing, client: writing.model_name(client),
)


def _require_once(building: Building, names: list[Any]) -> None:
    """A model that is down, or gives no verdict, is no help to itself."""
    for index, name in enumerate(names):
        if name in names[:index]:
            said = f"{name!r} was asked by then (it is the {names.index(name) + 1}. of the list): take it out"
            raise building.error(said, keys=(index,))


def _built_fallback(building: Building, names: list[str]) -> ChatClient:
    _require_once(building, names)
    return FallbackChatClient(*many(_NAME).build(building, names))


def _written_fallback(writing: Writing, client: FallbackChatClient) -> list[str]:
    return many(_NAME).write(writing, client.clients)


_is_fallback = is_of(FallbackChatClient)
MODEL = forms(
    Form("one", is_not(is_list), is_not(_is_fallback), _NAME),
    Form("several", is_list, _is_fallback, Kind(Annotated[list[Text], MinLen(1)], _built_fallback, _written_fallback)),
)
"""The name of a model, for its client; or several, of which the next one is asked where one is down."""


def _built_models(building: Building, listed: list[Any]) -> list[ChatClient]:
    _require_once(building, listed)
    return many(MODEL).build(building, listed)


MODELS = Kind(many(MODEL).annotation, _built_models, many(MODEL).write)
"""Models, each of which is asked where the one before gave nothing."""
TEMPLATE = Kind(
    str,
    lambda building, source: building.materials.rendered(building.path, source),
    lambda writing, text: as_template(written(writing, text)),
)
"""A text, which may hold the inputs: it is rendered once, before the run."""


def _stand_in(*_: object) -> None:
    """Stands in for a Python object, where a file is only checked."""


def imported(stand_in: object = _stand_in) -> Kind:
    """A Python object, by the reference that an import finds it by."""
    return Kind(
        Reference,
        lambda building, reference: building.materials.imported(building.path, reference, stand_in),
        lambda writing, target: writing.reference(target),
    )


IMPORTED = imported()
