"""What each command that runs a file asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents_loop.cli.backends import Backends
from agents_loop.cli.local_models import local_client
from agents_loop.cli.option_values import parse_prices
from agents_loop.cli.pricing import Pricing
from agents_loop.files import LoopFile


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRequest:
    """What the command line asks for, whatever the file is run for."""

    file: Path
    inputs: Sequence[str] = ()
    backend: str | None = None
    models: Sequence[str] = ()
    prices: Sequence[str] = ()
    max_iterations: int | None = None
    max_cost_usd: float | None = None
    return_best: bool = False
    allow_imports: bool = False
    as_json: bool = False
    quiet: bool = False

    def backends(
        self, on_notice: Callable[[str], None], *, record: Path | None = None, replay: Path | None = None
    ) -> Backends:
        """Who answers for the models' names.

        Raises:
            ConfigurationError: What names a backend, a price or a file of replies can't be read.
        """
        return Backends(
            self.backend,
            self.models,
            on_notice=on_notice,
            local_client=local_client,
            prices=parse_prices(self.prices),
            record=record,
            replay=replay,
        )

    def pricing(self, loop_file: LoopFile) -> Pricing:
        """By what the file's models are priced when none is called.

        Raises:
            ConfigurationError: What names a backend or a price can't be read.
        """
        return Pricing(loop_file, self.backend, self.models, parse_prices(self.prices))
