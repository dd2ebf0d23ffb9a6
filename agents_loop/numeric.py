"""The numbers of options and replies: a bool is none, though Python would take it for 0 or 1."""

from __future__ import annotations

from typing import TypeGuard

from agents_loop.errors import ConfigurationError


def is_int(given: object) -> TypeGuard[int]:
    """Whether it is a whole number, and no bool."""
    return isinstance(given, int) and not isinstance(given, bool)


def is_number(given: object) -> TypeGuard[int | float]:
    """Whether it is a number, and no bool; NaN and the infinities are numbers too."""
    return isinstance(given, int | float) and not isinstance(given, bool)


def check_count(name: str, given: object, *, least: int = 1, why: str = "") -> None:
    """Check an option that counts something.

    Args:
        name: The option.
        given: What was given for it.
        least: The smallest count that makes sense.
        why: Why it is the smallest, to end the message with.

    Raises:
        TypeError: It is not an int.
        ConfigurationError: It is less than `least`.
    """
    if not is_int(given):
        raise TypeError(f"{name} must be an int, not {given!r}")
    if given < least:
        raise ConfigurationError(f"{name} must be at least {least}, not {given}{why and f': {why}'}")
