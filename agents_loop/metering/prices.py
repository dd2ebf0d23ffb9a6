"""What tokens cost: prices that the caller gives and, for models that these don't name, those of `genai-prices`.

`genai-prices` is the extra `prices`. It is imported when a price is first asked for, and only its own data is read: no
network is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias, cast

from agents_loop.errors import ConfigurationError, MissingExtraError
from agents_loop.messages import UsageDetails
from agents_loop.numeric import is_number

_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrice:
    """What a model's tokens cost, in US dollars for a million.

    Raises:
        TypeError: A price is no number.
        ConfigurationError: A price is negative or no finite number.
    """

    input_usd_per_million: float
    output_usd_per_million: float
    """Reasoning is output."""
    cached_input_usd_per_million: float | None = None
    """For input that the provider read from its cache; `None`: as other input."""

    def __post_init__(self) -> None:
        for name in ("input_usd_per_million", "output_usd_per_million", "cached_input_usd_per_million"):
            price: object = getattr(self, name)
            if price is None and name == "cached_input_usd_per_million":
                continue
            if not is_number(price):
                raise TypeError(f"{name} must be a number, not {price!r}")
            if not 0 <= price <= sys.float_info.max:  # a larger int is no float
                raise ConfigurationError(f"{name} must be at least 0, not {price!r:.40}, and a finite number")

    def cost_usd(self, usage: UsageDetails) -> float | None:
        """What a call cost; `None` if its input or its output was not reported."""
        if usage.input_token_count is None or usage.output_token_count is None:
            return None
        asked, answered = (
            usage.input_token_count,
            whole_output(usage, usage.input_token_count, usage.output_token_count),
        )
        cached = min(usage.cached_input_token_count or 0, asked)
        for_cached = self.cached_input_usd_per_million
        return (
            (asked - cached) * self.input_usd_per_million
            + cached * (self.input_usd_per_million if for_cached is None else for_cached)
            + answered * self.output_usd_per_million
        ) / _MILLION


def whole_output(usage: UsageDetails, asked: int, answered: int) -> int:
    """The output that is paid for: some providers count reasoning in the total alone, and not as output.

    Args:
        usage: As it was reported.
        asked: Its input.
        answered: Its output.
    """
    total = usage.total_token_count
    return answered if total is None or total <= asked + answered else total - asked


Prices: TypeAlias = Mapping[str, ModelPrice]
"""By the model's name, or a glob such as `gpt-5*`. An exact name comes first, then the first glob that fits. `*` is the
price of what does not say its model, too."""

_Cost: TypeAlias = Callable[[UsageDetails], float | None]


class PriceList:
    """Finds prices. Each model is looked up once.

    Args:
        given: The caller's prices; they win.
    """

    __slots__ = ("_found", "given")

    def __init__(self, given: Prices | None = None) -> None:
        self.given: Prices = {} if given is None else given
        self._found: dict[tuple[str | None, ...], _Cost | None] = {}

    def cost_of(self, models: tuple[str | None, ...]) -> _Cost | None:
        """What a model's calls cost, by its usage; `None` for a model whose price is not known.

        Args:
            models: Its names, the best known first: what the reply says, what was asked for.
        """
        if models not in self._found:
            self._found[models] = self._find(models)
        return self._found[models]

    def given_for(self, models: tuple[str | None, ...]) -> ModelPrice | None:
        """The caller's price."""
        names = [name for name in models if name]
        for name in names:
            if name in self.given:
                return self.given[name]
        for name in names or [""]:
            for pattern, price in self.given.items():
                if fnmatchcase(name, pattern):
                    return price
        return None

    def _find(self, models: tuple[str | None, ...]) -> _Cost | None:
        given = self.given_for(models)
        if given is not None:
            return given.cost_usd
        return next((cost for name in models if name and (cost := _listed(name)) is not None), None)


def require_list() -> None:
    """See that `genai-prices` is installed.

    Raises:
        MissingExtraError: It is not.
    """
    if _library() is None:
        raise MissingExtraError("The price of a model that `prices` does not name", "prices")


def checked_prices(given: object) -> None:
    """See that the caller's prices are prices.

    Raises:
        TypeError: They are not a mapping of names to `ModelPrice`.
    """
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise TypeError(f"prices must map names of models to ModelPrice, not {given!r}")
    for name, price in cast("Mapping[Any, Any]", given).items():
        if not isinstance(name, str) or not isinstance(price, ModelPrice):
            raise TypeError(f"prices must map names of models to ModelPrice, not {name!r} to {price!r}")


def _library() -> Any:
    try:
        import genai_prices  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        return None
    return genai_prices


def _listed(name: str) -> _Cost | None:
    """The price that `genai-prices` lists, of `model` or of `provider/model`."""
    library = _library()
    if library is None:
        return None
    provider, slash, model = name.partition("/")
    for asked in [{"model_ref": name}, *([{"model_ref": model, "provider_id": provider}] if slash else [])]:
        try:
            found = library.calc_price(library.Usage(input_tokens=1, output_tokens=1), **asked)
        except (LookupError, ValueError):
            continue
        return _linear(found.model_price) or _calculated(library, asked)
    return None


def _linear(listed: Any) -> _Cost | None:
    """A plain price for each token; `None` where the price depends on how many there are."""
    prices = [listed.input_mtok, listed.output_mtok, listed.cache_read_mtok]
    if any(price is not None and not hasattr(price, "quantize") for price in prices) or None in prices[:2]:
        return None
    cached = None if prices[2] is None else float(prices[2])
    price = ModelPrice(
        input_usd_per_million=float(prices[0]),
        output_usd_per_million=float(prices[1]),
        cached_input_usd_per_million=cached,
    )
    return price.cost_usd


def _calculated(library: Any, asked: Mapping[str, str]) -> _Cost:
    def cost_usd(usage: UsageDetails) -> float | None:
        if usage.input_token_count is None or usage.output_token_count is None:
            return None
        sent, received = usage.input_token_count, whole_output(usage, usage.input_token_count, usage.output_token_count)
        cached = min(usage.cached_input_token_count or 0, sent)
        used = library.Usage(input_tokens=sent, cache_read_tokens=cached, output_tokens=received)
        return float(library.calc_price(used, **asked).total_price)

    return cost_usd
