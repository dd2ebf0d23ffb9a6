"""The switches of options: a bool and nothing else, since whatever is not empty would pass for yes."""

from __future__ import annotations


def check_flags(options: object, *names: str) -> None:
    """Check that attributes are a bool each.

    Raises:
        TypeError: One is none; it is named.
    """
    for name in names:
        given: object = getattr(options, name)
        if not isinstance(given, bool):
            raise TypeError(f"{name} must be a bool, not {given!r}")
