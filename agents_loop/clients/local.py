"""Models that run in this process: no key, no network, no server to set up.

llama.cpp loads a GGUF file and serves it on a loopback port that only this process has the key of; what is said to
it is said by the client that all chat completions servers share. Nothing is loaded before the first request.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, ChatResponseUpdate
from agents_loop.clients.chat_completions import ChatCompletionsClient
from agents_loop.clients.chat_completions.sdk import load_openai
from agents_loop.clients.local_server import (
    DEFAULT_CONTEXT_SIZE,
    EmbeddedServer,
    ModelBusyError,
    ModelLoadError,
    RunningServer,
    require_extra,
)
from agents_loop.clients.model_files import KNOWN_MODELS, default_local_model, locate
from agents_loop.messages import ChatMessage

if TYPE_CHECKING:
    from agents_loop.clients.chat_completions.sdk import Sdk

__all__ = ["LocalChatClient", "LocalModelServer", "ModelBusyError", "ModelLoadError"]

_TIMEOUT_S = 3600.0
_PROMPT_CACHE_MIB = 1024
_BATCH_TOKENS = 128
"""A request is stopped between batches of its prompt; bigger ones are not faster on a CPU."""
_SILENT, _VERBOSE = -1, 3


class LocalModelServer(EmbeddedServer):
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

    def load(self) -> RunningServer:
        """Let llama.cpp load the file and listen."""
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read at the import: threads that wait must not spin
        xllamacpp: Any = importlib.import_module("xllamacpp")
        params = xllamacpp.CommonParams()
        params.model.path = str(self.path)
        params.model_alias = {self.name}
        params.n_ctx = self.context_size
        params.n_parallel = 1
        params.cache_ram_mib = _PROMPT_CACHE_MIB
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _threads()
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.n_batch = params.n_ubatch = _BATCH_TOKENS
        params.api_keys = [self.api_key]
        params.ui = params.endpoint_slots = False
        params.verbosity = _VERBOSE if self.verbose else _SILENT
        params.endpoint_metrics = True
        try:
            running: RunningServer = xllamacpp.Server(params)
        except (RuntimeError, ValueError) as error:
            raise ModelLoadError(
                f"{str(self.path)!r} can't be loaded: the file is cut off or damaged, of a kind that this llama.cpp "
                "doesn't know, or too big for the memory. LocalModelServer(path, verbose=True).start() tells more"
            ) from error
        running.handle_metrics()  # answered by its main loop: taking the server down before that has begun would hang
        return running


class LocalChatClient(ChatClient):
    """A chat client over a model that runs in this process.

    Clients of the same file and context size share one server, which loads at the first request and stays until the
    process ends. What the model can't do is said by the server, as the OpenAI SDK raises it: a prompt longer than the
    context is an `openai.BadRequestError`. A model that a call's options name is not looked at.

    Args:
        model: A known model's name or a path to a GGUF file; without one, `AGENTS_LOOP_MODEL` or the default model.
        options: Defaults, laid under each call's options.
        context_size: The room for a prompt and its answer, in tokens.

    Raises:
        MissingExtraError: The extra `local` is not installed.
        ModelNotFoundError: The model is not on this machine. It is never fetched from here.
        ModelLoadError: The file is not GGUF.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        options: ChatOptions | None = None,
        context_size: int = DEFAULT_CONTEXT_SIZE,
    ) -> None:
        require_extra()
        chosen = str(model or default_local_model())
        name = chosen if chosen in KNOWN_MODELS else None
        self.server = LocalModelServer.shared(locate(chosen), context_size=context_size, name=name)
        self.model_id = self.server.name
        self.address = None if name else str(self.server.path)
        """Where the model's file is; `None`: the name says which it is."""
        self._options = options
        self._connected: tuple[str, ChatCompletionsClient] | None = None

    async def load(self) -> None:
        """Load the model now, rather than with the first request."""
        await self._completions()

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Ask the model, and wait for its whole answer."""
        completions = await self._completions()
        with self.server.request():
            return await completions.get_response(messages, options)

    async def get_streaming_response(
        self, messages: Sequence[ChatMessage], options: ChatOptions | None = None
    ) -> AsyncIterator[ChatResponseUpdate]:
        """Ask the model, and get its answer in pieces. Closing the stream stops the model."""
        completions = await self._completions()
        stream = cast("Any", completions.get_streaming_response(messages, options))
        with self.server.request():
            async with aclosing(stream) as updates:
                async for update in updates:
                    yield update

    async def aclose(self) -> None:
        """Close this client's connections. The server stays for the others; `server.close()` stops it."""
        if self._connected is not None:
            await self._connected[1].aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _completions(self) -> ChatCompletionsClient:
        """The client of the server as it runs now; after a restart it has another address."""
        server = self.server
        url = server.start() if server.is_running else await asyncio.to_thread(server.start)
        if self._connected is None or self._connected[0] != url:
            completions = ChatCompletionsClient(
                lambda: _connect(url, server.api_key),
                self.model_id,
                options=self._options,
                max_tokens_parameter="max_tokens",
            )
            self._connected = (url, completions)
        return self._connected[1]


def _connect(url: str, api_key: str) -> Sdk:
    """An SDK client that goes straight to loopback, past any proxy, and gives the model the time it needs.

    It keeps no connection open between requests: there is nothing to gain, and nothing is left when a loop ends.
    """
    openai: Any = load_openai("LocalChatClient", "local")
    return openai.AsyncOpenAI(
        base_url=url,
        api_key=api_key,
        max_retries=0,
        timeout=_TIMEOUT_S,
        default_headers={"Connection": "close"},
        http_client=openai.DefaultAsyncHttpxClient(trust_env=False),
    )


def _threads() -> int:
    """All cores but one: with all of them, a machine that does anything else too falls to a tenth of the speed."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, cores - 1)
