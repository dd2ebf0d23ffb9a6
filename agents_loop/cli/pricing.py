"""By what models are priced that are not called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agents_loop.cli.backends import FREE, Route, Spec, spec_for
from agents_loop.files import LoopFile
from agents_loop.metering.prices import ModelPrice, PriceList


class Pricing:
    """Prices by the model that the options name, or by the file's name.

    Args:
        loop_file: The file.
        backend: The SPEC of `--backend`.
        models: The `NAME=SPEC`s of `--model`.
        prices: Those of `--price`.

    Raises:
        ConfigurationError: A SPEC is none.
    """

    def __init__(
        self, loop_file: LoopFile, backend: str | None, models: Sequence[str], prices: Mapping[str, ModelPrice]
    ) -> None:
        self.prices = dict(prices)
        """The given ones, and those of local models, for which nobody is paid."""
        self.model_ids: dict[str, str] = {}
        """What stands for a name of the file."""
        routes = [Route.parse(route) for route in models]
        default = None if backend is None else Spec.parse(backend)
        for name in loop_file.models:
            self._add(name, spec_for(name, routes) or default)

    def _add(self, name: str, spec: Spec | None) -> None:
        if spec is None:
            return
        if spec.kind in ("openai", "azure"):
            self.model_ids[name] = spec.argument or name
        elif PriceList(self.prices).given_for((name,)) is None and spec.kind == "local":
            self.prices[name] = FREE
