"""A model file, loaded by llama.cpp into this process and served on loopback. The one file that knows xllamacpp."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import importlib
import importlib.util
import os
import re
import secrets
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias

from agents_loop.errors import AgentsLoopError, ConfigurationError, MissingExtraError

DEFAULT_CONTEXT_SIZE = 8192
_PROMPT_CACHE_MIB = 1024
_BATCH_TOKENS = 128
"""A request is stopped between batches of its prompt; bigger ones are not faster on a CPU."""
_SILENT, _VERBOSE = -1, 3
_CLOSE_TIMEOUT_S = 5.0
_POLL_S = 1.5
"""llama.cpp looks for a caller that went away after a second without news; to ask it more often is such news."""
_BUSY = re.compile(r"^llamacpp:requests_(processing|deferred) [^0]", re.MULTILINE)


class ModelLoadError(ConfigurationError):
    """A file is not a model that can be loaded here."""


class ModelBusyError(AgentsLoopError):
    """A server can't be closed while it answers."""


_Request: TypeAlias = tuple[asyncio.AbstractEventLoop, "asyncio.Task[Any] | None"]


class _RunningServer(Protocol):
    """What is used of xllamacpp's server.

    It stops, and frees its memory, when its last reference goes; with a request under way, that would never end.
    """

    listening_address: str

    def handle_metrics(self) -> str: ...


class LocalModelServer:
    """A model file, served to this process over the chat completions API.

    One request is answered at a time and the others wait in order, so an answer with a seed doesn't depend on what
    else is asked, and each has the whole context; the state of earlier prompts is kept, so a worker and a judge that
    take turns each continue where they were. A request whose caller goes away is stopped, also while it waits.
    xllamacpp does not let other threads run while it loads a file (seconds for each gigabyte): `start` it where that
    is no matter.

    Args:
        path: A GGUF file.
        context_size: The room for a prompt and its answer, in tokens.
        name: What the model is called in answers; the file's name when there is none.
        verbose: Whether llama.cpp writes its log to stderr.

    Raises:
        MissingExtraError: The extra `local` is not installed.
        ModelLoadError: The file is not GGUF.
        ConfigurationError: The context has no room.
    """

    _shared: ClassVar[dict[tuple[Path, int], LocalModelServer]] = {}
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
        self._running: _RunningServer | None = None
        self._lock = threading.Lock()
        self._requests: set[_Request] = set()

    @classmethod
    def shared(
        cls, path: str | Path, *, context_size: int = DEFAULT_CONTEXT_SIZE, name: str | None = None
    ) -> LocalModelServer:
        """The one server of this process for a file and a context size; it keeps the name it was first given."""
        key = (Path(path).expanduser().resolve(), context_size)
        with cls._shared_lock:
            server = cls._shared.get(key)
            if server is None:
                server = cls._shared[key] = cls(key[0], context_size=context_size, name=name)
            return server

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
                self._running = _load(self)
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


def _load(server: LocalModelServer) -> _RunningServer:
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read once, when llama.cpp is loaded: waiting must not spin
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(server.path)
    params.model_alias = {server.name}
    params.n_ctx = server.context_size
    params.n_parallel = 1
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _threads()
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_batch = params.n_ubatch = _BATCH_TOKENS
    params.api_keys = [server.api_key]
    params.ui = params.endpoint_slots = False
    params.verbosity = _VERBOSE if server.verbose else _SILENT
    params.endpoint_metrics = True
    try:
        running: _RunningServer = xllamacpp.Server(params)
    except (RuntimeError, ValueError) as error:
        raise ModelLoadError(
            f"{str(server.path)!r} can't be loaded: the file is cut off or damaged, of a kind that this llama.cpp "
            "doesn't know, or too big for the memory. LocalModelServer(path, verbose=True).start() tells more"
        ) from error
    running.handle_metrics()  # answered by its main loop: taking the server down before that has begun would hang
    return running


def _becomes_idle(running: _RunningServer) -> bool:
    deadline = time.monotonic() + _CLOSE_TIMEOUT_S
    while _BUSY.search(running.handle_metrics()):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _threads() -> int:
    """All cores but one: with all of them, a machine that does anything else too falls to a tenth of the speed."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, cores - 1)


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


_alive: dict[LocalModelServer, int] = {}
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
