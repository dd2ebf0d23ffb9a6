"""The cache of an evaluation: replies by the exact call, a file for each model."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

from agents_loop.chat_client import ChatClient
from agents_loop.clients.recordings import Recordings
from agents_loop.errors import ConfigurationError

_PLAIN = re.compile(r"[^\w.-]+", re.ASCII)
_LONGEST = 60


class CallCache:
    """Replies in a folder, as `RecordedChatClient` keeps and finds them.

    Args:
        folder: The folder; made when there is none.
        on_warning: Hears that a reply can't be kept.

    Raises:
        ConfigurationError: The folder can't be made.
    """

    def __init__(self, folder: Path, on_warning: Callable[[str], None] | None = None) -> None:
        self._folder = folder
        self._on_warning = on_warning or _hear_nothing
        self._files: dict[str, Recordings] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(f"the cache {str(folder)!r} can't be written: {error.strerror}") from error

    def of(self, model: str) -> Recordings:
        """The replies of a model, by the name that `answerer` gives.

        Raises:
            ConfigurationError: Its file is damaged, or of another kind.
        """
        if model not in self._files:
            path = self._folder / file_name(model)
            self._files[model] = Recordings(path, self._on_warning, leaves_out_torn=True)
        return self._files[model]


def answerer(client: ChatClient, name: str) -> str:
    """Who answers, as the cache tells models apart: the model, the kind of client, and its address if it says one.

    So two servers that call different models by one name share no reply.

    Args:
        client: Who is asked; what wraps another client says so by `inner` (or `clients`).
        name: What the model is called if the client does not say.
    """
    said: object = getattr(client, "model_id", None)
    model = said if isinstance(said, str) and said else name
    return f"{model} ({' or '.join(_kinds(client, frozenset()))})"


def _kinds(client: object, seen: frozenset[int]) -> list[str]:
    """The kind and the address of each client that may answer."""
    inner: object = getattr(client, "inner", None)
    behind: object = (inner,) if inner is not None else getattr(client, "clients", None)
    if isinstance(behind, tuple) and behind and id(client) not in seen:
        clients = cast("tuple[object, ...]", behind)
        return [kind for each in clients for kind in _kinds(each, seen | {id(client)})]
    address: object = getattr(client, "address", None)
    return [f"{type(client).__name__} {address}" if isinstance(address, str) else type(client).__name__]


def file_name(model: str) -> str:
    """A file's name for a model's: readable, and no other model's."""
    mark = hashlib.sha256(model.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_PLAIN.sub('-', model)[:_LONGEST].strip('-.')}-{mark}.jsonl"


def _hear_nothing(text: str) -> None:
    """Nobody wants to know."""
