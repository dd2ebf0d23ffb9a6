"""The life of a model server inside this process: started once, shared, and stopped without a hang or a crash."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import importlib.util
import os
import re
import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeAlias

from agents_loop.errors import AgentsLoopError, ConfigurationError, MissingExtraError

DEFAULT_CONTEXT_SIZE = 8192
_CLOSE_TIMEOUT_S = 5.0
_POLL_S = 1.5
"""llama.cpp looks for a caller that went away after a second without news; to ask it more often is such news."""
_BUSY = re.compile(r"^llamacpp:requests_(processing|deferred) [^0]", re.MULTILINE)


class ModelLoadError(ConfigurationError):
    """A file is not a model that can be loaded here."""


class ModelBusyError(AgentsLoopError):
    """A server can't be closed while it answers."""


_Request: TypeAlias = tuple[asyncio.AbstractEventLoop, "asyncio.Task[Any] | None"]


class RunningServer(Protocol):
    """What is used of llama.cpp's server, as xllamacpp wraps it.

    It stops, and frees its memory, when its last reference goes; with a request under way, that would never end.
    """

    listening_address: str

    def handle_metrics(self) -> str:
        """Its counters, as its main loop sees them."""
        ...


class EmbeddedServer(ABC):
    """The life of a server for one model file in this process: shared, started late, never left hanging.

    A subclass says how the file is loaded. Arguments and errors: see `LocalModelServer`.
    """

    _shared: ClassVar[dict[tuple[Path, int], EmbeddedServer]] = {}
    _shared_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(
        self,
        path: str | Path,
        *,
        context_size: int = DEFAULT_CONTEXT_SIZE,
        name: str | None = None,
        verbose: bool = False,
    ) -> None:
        if context_size < 1:
            raise ConfigurationError(f"context_size must be at least 1 token, not {context_size!r}")
        require_extra()
        self.path = Path(path).expanduser().resolve()
        _require_gguf(self.path)
        self.name = name or self.path.name
        self.context_size = context_size
        self.verbose = verbose
        self.api_key = secrets.token_urlsafe(24)
        self._running: RunningServer | None = None
        self._lock = threading.Lock()
        self._requests: set[_Request] = set()

    @classmethod
    def shared(cls, path: str | Path, *, context_size: int = DEFAULT_CONTEXT_SIZE, name: str | None = None) -> Self:
        """The one server of this process for a file and a context size; it keeps the name it was first given."""
        key = (Path(path).expanduser().resolve(), context_size)
        with cls._shared_lock:
            server = cls._shared.get(key)
            if not isinstance(server, cls):
                server = cls._shared[key] = cls(key[0], context_size=context_size, name=name)
            return server

    @abstractmethod
    def load(self) -> RunningServer:
        """Load the file and serve it on loopback, for whoever has `api_key`. It blocks."""

    @property
    def base_url(self) -> str:
        """The address for clients, up to `/v1`; the model is loaded first if it is not."""
        return self.start()

    @property
    def is_running(self) -> bool:
        """Whether the model is loaded."""
        return self._running is not None

    def start(self) -> str:
        """Load the model, unless it is loaded, and give the server's address. It blocks.

        Raises:
            ModelLoadError: llama.cpp can't load the file, or this is the forked child of a process with a model loaded.
        """
        _require_own_threads()
        with self._lock:
            if self._running is None:
                self._running = self.load()
                _alive[self] = os.getpid()
            return f"{self._running.listening_address}/v1"

    @contextmanager
    def request(self) -> Generator[None, None, None]:
        """Tell the server of a request while it is under way, so that it can be cut off as the process ends."""
        request = (asyncio.get_running_loop(), asyncio.current_task())
        self._requests.add(request)
        try:
            yield
        finally:
            self._requests.discard(request)

    def cut_off(self) -> None:
        """Cancel the tasks that wait for an answer; they may be of any thread."""
        for loop, task in list(self._requests):
            with suppress(RuntimeError):  # that loop has ended, and its connections with it
                loop.call_soon_threadsafe(task.cancel if task else loop.stop)

    def close(self) -> None:
        """Stop serving and free the memory; the next `start` loads anew. It blocks for a moment.

        Raises:
            ModelBusyError: A request is still under way after 5 seconds: cancel it, or close its stream, first.
        """
        with self._lock:
            if self._running is None:
                return
            if not _becomes_idle(self._running):
                raise ModelBusyError(f"a request to {self.name!r} is under way. Cancel it, then close the server")
            self._running = None
            _alive.pop(self, None)


def _becomes_idle(running: RunningServer) -> bool:
    deadline = time.monotonic() + _CLOSE_TIMEOUT_S
    while _BUSY.search(running.handle_metrics()):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def require_extra() -> None:
    """Raise a `MissingExtraError` unless the extra `local` is installed; nothing is imported."""
    for module in ("xllamacpp", "openai"):
        if importlib.util.find_spec(module) is None:
            raise MissingExtraError("LocalChatClient", "local")


def _require_gguf(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ModelLoadError(f"the model file can't be read: {error}") from error
    if magic != b"GGUF":
        raise ModelLoadError(f"{str(path)!r} is not a GGUF file: it begins with {magic!r}")


_alive: dict[EmbeddedServer, int] = {}
"""The servers that run, and the process that started each."""


_process_ends = threading.Event()


def _require_own_threads() -> None:
    if _process_ends.is_set():
        raise ModelLoadError("this process is ending: no model is loaded or asked any more")
    if any(pid != os.getpid() for pid in _alive.values()):
        raise ModelLoadError(
            "this process was forked from one that had a model loaded, whose threads stayed behind. "
            "Load models after forking, or start processes with 'spawn'"
        )


@atexit.register
def _close_all() -> None:
    """Take the servers down while the interpreter is whole; later, their threads would outlive what they use."""
    _process_ends.set()
    for server, pid in list(_alive.items()):
        if pid == os.getpid():
            server.cut_off()
            try:
                server.close()
            except ModelBusyError:  # a foreign client in a daemon thread still asks: what is left alone can't hang
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))
