"""Text that can be encoded."""

from __future__ import annotations


def well_formed(text: str) -> str:
    """The text as a request can carry it: half of a surrogate pair, which is no character, becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
