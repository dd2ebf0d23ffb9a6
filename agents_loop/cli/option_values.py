"""What stands behind the options of the command line, as values."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agents_loop.cli.text import as_utf8
from agents_loop.errors import ConfigurationError
from agents_loop.metering.prices import ModelPrice

_MOST_DIGITS = 12


def parse_inputs(given: Sequence[str]) -> dict[str, str]:
    """The `KEY=VALUE`s of the command line.

    Raises:
        ConfigurationError: One is none, or a key is given twice.
    """
    inputs: dict[str, str] = {}
    for written in given:
        text = as_utf8(written, f"the input {written.partition('=')[0]!r}")
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ConfigurationError(f"-i {text!r} must be KEY=VALUE, such as topic='morning fog'")
        if key in inputs:
            raise ConfigurationError(f"the input {key!r} is given twice")
        inputs[key] = value
    return inputs


def parse_count(option: str, text: str | None) -> int | None:
    """The whole number of an option such as `--max-iterations`.

    Raises:
        ConfigurationError: It is none, or less than 1.
    """
    if text is None:
        return None
    if not text.strip().isdecimal() or len(text) > _MOST_DIGITS or int(text) < 1:
        raise ConfigurationError(f"{option} must be a whole number of at least 1, not {text!r}")
    return int(text)


def parse_seed(option: str, text: str) -> int:
    """The whole number of an option such as `--review-seed`; it may be 0.

    Raises:
        ConfigurationError: It is none.
    """
    if not text.strip().isdecimal() or len(text) > _MOST_DIGITS:
        raise ConfigurationError(f"{option} must be a whole number from 0, not {text!r}")
    return int(text)


def parse_amount(option: str, text: str | None, unit: str) -> float | None:
    """The number of an option such as `--max-cost`.

    Raises:
        ConfigurationError: It is none, or not more than 0.
    """
    if text is None:
        return None
    try:
        amount = float(text)
    except ValueError:
        amount = 0.0
    if not 0 < amount < math.inf:
        raise ConfigurationError(f"{option} must be a number of {unit} above 0, such as 0.5, not {text!r}")
    return amount


def parse_share(option: str, text: str) -> float:
    """The share of an option such as `--min-agreement`.

    Raises:
        ConfigurationError: It is not a number from 0 to 1.
    """
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ConfigurationError(f"{option} must be a number from 0 to 1, such as 0.9, not {text!r}")
    return share


def parse_prices(given: Sequence[str]) -> dict[str, ModelPrice]:
    """The `NAME=IN,OUT`s of the command line.

    Raises:
        ConfigurationError: One is none.
    """
    prices: dict[str, ModelPrice] = {}
    for written in given:
        name, _, amounts = as_utf8(written, "--price").rpartition("=")
        try:
            asked, answered = [float(amount) for amount in amounts.split(",")]
            prices[name] = ModelPrice(input_usd_per_million=asked, output_usd_per_million=answered)
        except ValueError:  # a ConfigurationError is one too
            name = ""
        if not name:
            said = f"--price {written!r} must be NAME=IN,OUT, such as 'gpt-5-mini=0.25,2' (US dollars a million tokens)"
            raise ConfigurationError(said)
    return prices
