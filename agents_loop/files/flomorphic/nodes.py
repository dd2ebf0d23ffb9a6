"""The nodes of an export, one by one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, cast

from agents_loop.files.flomorphic.graph import (
    DEFAULT_SETTINGS,
    EXCEPTION_PORT,
    FlowFunction,
    FlowNode,
    NodeKind,
    SeedMessage,
)
from agents_loop.files.flomorphic.js import syntax_error_in
from agents_loop.files.flomorphic.last_return import without_last_return
from agents_loop.files.flomorphic.paths import JsonPath, PathError, read_path
from agents_loop.files.flomorphic.reports import Reports
from agents_loop.files.flomorphic.templates import as_path, paths_in
from agents_loop.files.yaml_tree import PathIn
from agents_loop.messages import ChatRole, JsonValue

NO_PARAMETERS: Final[dict[str, JsonValue]] = {"type": "object", "properties": {}}
MOST_PATHS: Final = 200
"""In one text: each is looked up when it is filled in."""
_FUNCTION_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CTX: Final = re.compile(r"(?<![\w$.])ctx\.")
_SEEDS: Final = (ChatRole.SYSTEM, ChatRole.USER)


class NodeReader:
    """Reads one node.

    Args:
        reports: Hear what is wrong with it.
        path: Where it stands.
        ref: Its name.
        kind: Its kind.
    """

    def __init__(self, reports: Reports, path: PathIn, ref: str, kind: NodeKind) -> None:
        self._reports = reports
        self._path = path
        self._ref = ref
        self._kind: NodeKind = kind

    def read(self, given: dict[str, Any]) -> FlowNode | None:
        """The node; `None` where it is not valid."""
        errors = len(self._reports.problems)
        title = self._text(given, "title", self._path) or self._ref
        key = self._text(given, "key", self._path)
        scope = self._scope(given)
        data: dict[str, Any] = self._object(given, "data", self._path)
        match self._kind:
            case "startNode":
                node = FlowNode(ref=self._ref, kind=self._kind, title=title, scope=scope)
            case "js":
                code = self._code(data)
                node = FlowNode(ref=self._ref, kind=self._kind, title=title, key=key, scope=scope, code=code)
            case "llm":
                body = self._object(data, "body", (*self._path, "data"))
                clears = body.get("clear_history")
                if clears is not None and not isinstance(clears, bool):
                    self._error(("data", "body", "clear_history"), f"must be true or false, not {clears!r:.40}")
                node = FlowNode(
                    ref=self._ref,
                    kind=self._kind,
                    title=title,
                    key=key,
                    scope=scope,
                    settings_id=self._text(data, "settingsId", (*self._path, "data")) or DEFAULT_SETTINGS,
                    messages=self._messages(data, body),
                    clears_history=clears is True,
                    functions=self._functions(data),
                )
        return node if len(self._reports.problems) == errors else None

    def _error(self, inner: PathIn, message: str) -> None:
        self._reports.error((*self._path, *inner), message)

    def _warn(self, inner: PathIn, message: str) -> None:
        self._reports.warn((*self._path, *inner), message)

    def _text(self, given: dict[str, Any], name: str, path: PathIn) -> str | None:
        value = given.get(name)
        if value is not None and not isinstance(value, str):
            self._reports.error((*path, name), f"must be a text, not {value!r:.40}")
            return None
        return value or None

    def _object(self, given: dict[str, Any], name: str, path: PathIn) -> dict[str, Any]:
        value = given.get(name)
        if value is not None and not isinstance(value, dict):
            self._reports.error((*path, name), f"must be an object, not {value!r:.40}")
            return {}
        return cast("dict[str, Any]", value or {})

    def _list(self, given: dict[str, Any], name: str, path: PathIn) -> list[Any]:
        value = given.get(name)
        if value is not None and not isinstance(value, list):
            self._reports.error((*path, name), f"must be a list, not {value!r:.40}")
            return []
        return cast("list[Any]", value or [])

    def _scope(self, given: dict[str, Any]) -> JsonPath:
        written = self._text(given, "scope", self._path) or "$"
        try:
            return read_path(written)
        except PathError as error:
            self._error(("scope",), str(error))
            return read_path("$")

    def _code(self, data: dict[str, Any]) -> str:
        place = ("data", "logic_rule")
        code = self._text(data, "logic_rule", (*self._path, "data"))
        if code is None or not code.strip():
            if "logic_rule" not in data or isinstance(data["logic_rule"], str):
                self._error(place, "the script is empty")
            return ""
        if "{{" in code:
            self._error(place, "`{{` is for texts: a script reads the context with input and _get")
        if _CTX.search(code):
            self._warn(place, "there is no `ctx` here: a script reads the context with input and _get")
        wrong = syntax_error_in(code)
        if wrong is None:
            return code
        kept = without_last_return(code)
        if kept is None:
            self._error(place, f"not valid JavaScript: {wrong}")
            return code
        self._warn(place, "a script has no `return`: its last expression is the output; the one at its end is dropped")
        return kept

    def _messages(self, data: dict[str, Any], body: dict[str, Any]) -> Sequence[SeedMessage]:
        """The system message and the user message, in this order; one of each at most."""
        found: dict[str, SeedMessage] = {}
        listed = self._list(body, "messages", (*self._path, "data", "body"))
        places: list[tuple[PathIn, Any]] = [(("data", "body", "messages", n), each) for n, each in enumerate(listed)]
        for name, role in (("system", ChatRole.SYSTEM), ("prompt", ChatRole.USER)):
            if data.get(name) is not None:
                places.append((("data", name), {"role": str(role), "content": data[name]}))
        for place, given in places:
            message = self._message(place, given)
            if message is None:
                continue
            if message.role not in _SEEDS:
                self._warn(place, f"a message of the role {message.role!r:.40} is not kept: system and user are")
            elif message.role in found:
                self._warn(place, f"a second {message.role} message is not kept")
            else:
                found[message.role] = message
        return [found[role] for role in _SEEDS if role in found]

    def _message(self, place: PathIn, given: Any) -> SeedMessage | None:
        if not isinstance(given, dict):
            self._error(place, f"a message must be an object, not {given!r:.40}")
            return None
        message = cast("dict[str, Any]", given)
        role, content = message.get("role"), message.get("content")
        if role is not None and not isinstance(role, str):
            self._error((*place, "role"), f"must be a text, not {role!r:.40}")
            return None
        if content is not None and not isinstance(content, str):
            self._error((*place, "content"), f"must be a text, not {content!r:.40}")
            return None
        paths = dict.fromkeys(paths_in(content or ""))
        if len(paths) > MOST_PATHS:
            self._error((*place, "content"), f"more than {MOST_PATHS} different paths in one text")
            paths = {}
        for written in paths:
            try:
                read_path(as_path(written)[0])
            except PathError as error:
                self._warn((*place, "content"), f"{error}, so it stays as it stands")
        return SeedMessage(role=(role or "").strip() or str(ChatRole.USER), content=content or "")

    def _functions(self, data: dict[str, Any]) -> Sequence[FlowFunction]:
        functions: list[FlowFunction] = []
        for index, given in enumerate(self._list(data, "functions", (*self._path, "data"))):
            function = self._function(("data", "functions", index), given)
            if function is None:
                continue
            if any(function.name == other.name for other in functions):
                self._error(("data", "functions", index, "name"), f"{function.name!r} is given twice")
            functions.append(function)
        return functions

    def _function(self, place: PathIn, given: Any) -> FlowFunction | None:
        if not isinstance(given, dict):
            self._error(place, f"a function must be an object, not {given!r:.40}")
            return None
        function = cast("dict[str, Any]", given)
        path = (*self._path, *place)
        name, description = self._text(function, "name", path), self._text(function, "description", path)
        if name is None:
            self._error(place, "a function needs a `name`")
            return None
        if not _FUNCTION_NAME.fullmatch(name):
            self._error((*place, "name"), f"must be 1 to 64 of a-z, A-Z, 0-9, _ and -, not {name!r:.80}")
        if name == EXCEPTION_PORT:
            self._error((*place, "name"), f"{name!r} is the port for what is no choice: call the function otherwise")
        if description is None:
            self._warn(place, f"the function {name!r} has no description: the model has only its name to go by")
        return FlowFunction(
            name=name,
            description=description or "",
            parameters=self._object(function, "parameters", path) or NO_PARAMETERS,
            handle=self._text(function, "id", path),
            title=self._text(function, "title", path) or "",
        )
