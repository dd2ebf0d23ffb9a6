"""Who answers for a model's name: the SPECs of `--backend` and `--model`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, TypeAlias, assert_never, cast, get_args

from agents_loop.chat_client import ChatClient
from agents_loop.cli.scripted import Script
from agents_loop.cli.text import as_utf8
from agents_loop.clients.recorded import RecordedChatClient
from agents_loop.clients.recordings import Recordings
from agents_loop.errors import ConfigurationError
from agents_loop.files.named_client import NamedChatClient
from agents_loop.metering.prices import ModelPrice, PriceList, Prices

Kind: TypeAlias = Literal["openai", "azure", "local", "scripted"]

_FORMS = "openai[:MODEL], azure[:DEPLOYMENT], local[:NAME or /path.gguf], scripted:FILE"
FREE = ModelPrice(input_usd_per_million=0, output_usd_per_million=0)
"""What a model costs that nobody is paid for."""
_WITH_A_PATH = ("local", "scripted")
"""Their argument may be a path, whose bytes are the file system's."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A backend, as it is written on the command line: `kind` or `kind:argument`."""

    kind: Kind
    argument: str | None = None

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Read one.

        Raises:
            ConfigurationError: It is none.
        """
        kind, colon, argument = text.partition(":")
        if kind not in get_args(Kind):
            raise ConfigurationError(f"{text!r} is no backend; there are: {_FORMS}")
        if not argument and (colon or kind == "scripted"):
            raise ConfigurationError(f"{text!r}: a name or a file must follow the colon: {_FORMS}")
        if kind not in _WITH_A_PATH:
            argument = as_utf8(argument, f"the backend {text!r}")
        return cls(cast("Kind", kind), argument or None)


@dataclass(frozen=True, slots=True)
class Route:
    """Which model names go to a backend of their own."""

    pattern: str
    spec: Spec

    @classmethod
    def parse(cls, text: str) -> Route:
        """Read `NAME=SPEC`, where the name may be a glob.

        Raises:
            ConfigurationError: It is none.
        """
        pattern, _, spec = text.partition("=")
        if not pattern or not spec:
            raise ConfigurationError(f"--model {text!r} must be NAME=SPEC, such as 'claude-*=openai:gpt-5-mini'")
        return cls(as_utf8(pattern, f"--model {text!r}"), Spec.parse(spec))

    def matches(self, model: str) -> bool:
        """Whether a model's name is the pattern, or one of the glob's."""
        return model == self.pattern or fnmatchcase(model, self.pattern)


def spec_for(model: str, routes: Sequence[Route]) -> Spec | None:
    """The backend of a model's name: an exact name comes before a glob, then the order given counts."""
    matching = [route for route in routes if route.matches(model)]
    exact = [route for route in matching if route.pattern == model]
    return next((route.spec for route in [*exact, *matching]), None)


class Backends:
    """Gives the client of each model name.

    Args:
        default: The SPEC of `--backend`, if there is one; otherwise the environment decides, and a notice says how.
        routes: The `NAME=SPEC`s of `--model`.
        on_notice: Hears which backend was chosen.
        local_client: Makes the client of a local model.
        prices: The caller's.
        record: Where each call is written with its reply, if anywhere.
        replay: The recorded calls that answer in place of any backend, if there are any.

    Raises:
        ConfigurationError: A SPEC can't be read, or the scripted file that it names; or the recorded calls can't.
    """

    def __init__(
        self,
        default: str | None,
        routes: Sequence[str],
        *,
        on_notice: Callable[[str], None],
        local_client: Callable[[str | None], ChatClient],
        prices: Prices,
        record: Path | None = None,
        replay: Path | None = None,
    ) -> None:
        if record is not None and replay is not None:
            raise ConfigurationError("--record and --replay exclude each other: what is replayed is recorded already")
        self._record = record
        self._recordings = None if replay is None else Recordings.load(replay)
        self._is_replay = replay is not None
        self._default = None if default is None else Spec.parse(default)
        self._routes = [Route.parse(route) for route in routes]
        self._on_notice = on_notice
        self._local_client = local_client
        self._given_prices = prices
        self.prices = dict(prices)
        """The caller's, and those of models that nobody is paid for: the local ones, and scripted ones whose names are
        not those of models with a price."""
        self._clients: dict[str, tuple[Spec | None, NamedChatClient]] = {}
        self._scripts: dict[Path, Script] = {}
        for spec in [self._default, *[route.spec for route in self._routes]]:
            if spec is not None and spec.kind == "scripted" and not self._is_replay:
                self._script(spec)

    def client_for(self, model: str) -> ChatClient:
        """The client of a model's name.

        Raises:
            ConfigurationError: A key, an address, a model or an extra is missing.
        """
        spec = None if self._is_replay else self._spec_for(model)
        client = NamedChatClient(self._recorded(None if spec is None else self._make(spec, model), model), model)
        self._clients[model] = (spec, client)
        known = PriceList(self.prices)
        if spec is not None and spec.kind == "local" and known.given_for((model,)) is None:
            self.prices |= {model: FREE, client.model_id: FREE}
        elif (spec is None or spec.kind == "scripted") and known.cost_of((model,)) is None:
            self.prices[model] = FREE
        return client

    def kind_of(self, model: str | None) -> str | None:
        """The kind of backend that answers for a model's name."""
        spec = self._clients[model][0] if model in self._clients else None
        return None if spec is None else spec.kind

    def name_of_failure(self, error: BaseException) -> str | None:
        """The model's name whose call raised the error, or what it comes from."""
        raised = {id(client.failure): name for name, (_, client) in self._clients.items() if client.failure is not None}
        seen: set[int] = set()
        current: BaseException | None = error
        while current is not None and id(current) not in seen:
            if id(current) in raised:
                return raised[id(current)]
            seen.add(id(current))
            current = current.__cause__ or current.__context__
        return None

    def notices(self) -> list[str]:
        """What was asked for on the command line, and is without effect. Every client was made by then."""
        of_models = [f"notice: --model {name!r} matches no model of the file" for name in self._unused_routes()]
        of_prices = [f"notice: --price {name!r} matches no model of the file" for name in self._unused_prices()]
        return of_models + of_prices

    def _unused_routes(self) -> list[str]:
        return [route.pattern for route in self._routes if not any(map(route.matches, self._clients))]

    def _unused_prices(self) -> list[str]:
        models = [(name, client.model_id) for name, (_, client) in self._clients.items()]
        alone = {name: PriceList({name: price}) for name, price in self._given_prices.items()}
        return [name for name, prices in alone.items() if not any(map(prices.given_for, models))]

    async def aclose(self) -> None:
        """Close the clients' connections."""
        for _, client in self._clients.values():
            close = cast("Any", getattr(client.inner, "aclose", None))
            if close is not None:
                await close()

    def _recorded(self, client: ChatClient | None, model: str) -> ChatClient:
        """The client, whose calls are written down if that is asked for; without one the recorded calls answer."""
        if self._recordings is None and self._record is not None:  # not earlier: it replaces what was there
            self._recordings = Recordings.begin(self._record, self._on_notice)
        if self._recordings is not None:
            return RecordedChatClient(client, self._recordings, model)
        assert client is not None  # noqa: S101 - without one there are recorded calls
        return client

    def _spec_for(self, model: str) -> Spec:
        found = spec_for(model, self._routes)
        if found is not None:
            return found
        if self._default is None:
            self._default, why = _from_environment()
            self._on_notice(f"backend: {self._default.kind} ({why}); --backend chooses another")
        return self._default

    def _make(self, spec: Spec, model: str) -> ChatClient:
        match spec.kind:
            case "openai":
                from agents_loop.clients.openai import OpenAIChatClient  # noqa: PLC0415 - an extra

                return OpenAIChatClient(spec.argument or model)
            case "azure":
                from agents_loop.clients.azure_openai import AzureOpenAIChatClient  # noqa: PLC0415 - an extra

                return AzureOpenAIChatClient(spec.argument or model)
            case "local":
                return self._local_client(spec.argument)
            case "scripted":
                return self._script(spec).client_for(model)
            case _:
                assert_never(spec.kind)

    def _script(self, spec: Spec) -> Script:
        path = Path(spec.argument or "")
        if path not in self._scripts:
            self._scripts[path] = Script(path)
        return self._scripts[path]


def _from_environment() -> tuple[Spec, str]:
    if os.environ.get("OPENAI_API_KEY", "").strip():
        return Spec("openai"), "OPENAI_API_KEY is set"
    if os.environ.get("AZURE_OPENAI_ENDPOINT", "").strip():
        return Spec("azure"), "AZURE_OPENAI_ENDPOINT is set"
    return Spec("local"), "neither OPENAI_API_KEY nor AZURE_OPENAI_ENDPOINT is set"
