"""Identifiers for runs, messages and responses: unique, and cheap enough for a hot loop."""

from __future__ import annotations

import itertools
import os
import secrets

_prefix = secrets.token_hex(6)
_counter = itertools.count(1)


def new_id() -> str:
    """A string that no other call gives, in this process or another: a random prefix and a counter.

    It is unique, not secret: what must be unguessable is drawn from `secrets` instead.
    """
    return f"{_prefix}-{next(_counter)}"


def _renew_prefix() -> None:
    global _prefix  # noqa: PLW0603 - a forked child must not repeat its parent's ids
    _prefix = secrets.token_hex(6)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_prefix)
