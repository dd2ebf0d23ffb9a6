"""A verdict that is given by calling a function: what is offered, and what a reply says."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from agents_loop.chat_client import ChatResponse
from agents_loop.errors import ConfigurationError
from agents_loop.judging.asking import verdict_text
from agents_loop.judging.reading import find_object
from agents_loop.judging.strict_json import key_given_twice, strict_json
from agents_loop.messages import ChatRole, FunctionCallContent, JsonValue

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class JudgeFunction:
    """A function that a judge may call, with one argument: a text.

    Raises:
        TypeError: A field is not a str.
        ConfigurationError: A name can't be sent, or the description is blank.
    """

    name: str
    """What the judge calls it: letters, digits, `_` and `-`."""
    description: str
    """When it is to be called, to the judge."""
    argument: str
    """What its argument is called."""
    argument_description: str = ""
    """What the argument is to say."""
    is_required: bool = False
    """Whether the schema demands the argument."""

    def __post_init__(self) -> None:
        for name in ("name", "description", "argument", "argument_description"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a str, not {getattr(self, name)!r}")
        for name in ("name", "argument"):
            if not _NAME.fullmatch(getattr(self, name)):
                raise ConfigurationError(
                    f"{name} must be 1 to 64 of a-z, A-Z, 0-9, _ and -, not {getattr(self, name)!r}"
                )
        if not self.description.strip():
            raise ConfigurationError(f"description of {self.name!r} must not be blank: the judge goes by it")

    def declared(self) -> dict[str, JsonValue]:
        """The function as a tool that is offered, and never run."""
        argument: dict[str, JsonValue] = {"type": "string"}
        if self.argument_description:
            argument["description"] = self.argument_description
        parameters: dict[str, JsonValue] = {
            "type": "object",
            "properties": {self.argument: argument},
            "required": [self.argument] if self.is_required else [],
        }
        described = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": described}


@dataclass(frozen=True, slots=True)
class FunctionCallReading:
    """What a judge's reply says."""

    called: str | None = None
    """The function that decides; `None` where nothing can be read."""
    text: str = ""
    """Its argument; where nothing can be read, the reply's prose."""
    arguments: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    why: str = ""
    """Why nothing can be read."""

    @property
    def readable(self) -> bool:
        """Whether it says anything."""
        return self.called is not None


def read_calls(response: ChatResponse, goes_on: JudgeFunction, passes: JudgeFunction) -> FunctionCallReading:
    """What a reply's calls decide: where both are called, that the run goes on.

    A reply without a call, with a call of anything else, or with arguments that are no JSON object or hold a key twice
    decides nothing.

    Args:
        response: The reply.
        goes_on: The function that asks for more.
        passes: The function that asks for no more.
    """
    said = [message for message in response.messages if message.role == ChatRole.ASSISTANT]
    contents = [content for message in said for content in message.contents]
    calls = [content for content in contents if isinstance(content, FunctionCallContent)]
    prose = (find_object(verdict_text(response)).rest or "").strip()  # what it only thought is no feedback
    if not calls:
        return FunctionCallReading(text=prose, why="no function was called")
    decided: dict[str, FunctionCallReading] = {}
    for call in calls:
        function = next((each for each in (goes_on, passes) if each.name == call.name), None)
        if function is None:
            return FunctionCallReading(text=prose, why=f"{call.name!r:.80} was called, which was not offered")
        arguments = _arguments_of(call)
        if arguments is None:
            twice = key_given_twice(call.arguments) if isinstance(call.arguments, str) else None
            wrong = f": {twice}" if twice else " are no JSON object"
            return FunctionCallReading(text=prose, why=f"the arguments of {call.name!r}{wrong}")
        decided.setdefault(call.name, FunctionCallReading(call.name, _text(arguments, function), arguments))
    return decided.get(goes_on.name) or decided[passes.name]


def offered(functions: Sequence[JudgeFunction]) -> list[dict[str, JsonValue]]:
    """The functions as tools."""
    return [function.declared() for function in functions]


def _arguments_of(call: FunctionCallContent) -> dict[str, JsonValue] | None:
    given: Any = call.arguments
    try:
        read: Any = strict_json(given.strip() or "{}" if isinstance(given, str) else json.dumps(given))
    except (TypeError, ValueError):
        return None
    if read is None:
        return {}
    return cast("dict[str, JsonValue]", read) if isinstance(read, dict) else None


def _text(arguments: dict[str, JsonValue], function: JudgeFunction) -> str:
    said = arguments.get(function.argument)
    return said.strip() if isinstance(said, str) else ""
