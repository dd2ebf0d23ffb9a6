"""Numbers in sentences."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number of things: `1 call`, `2,000 calls`.

    Args:
        number: How many.
        noun: What one is called.
        plural: What more are called; the noun with an s when there is none.
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
