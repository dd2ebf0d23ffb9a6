"""How sure a model was of a word, from the log probabilities that its client gives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from agents_loop.chat_client import ChatOptions, ChatResponse

_ALTERNATIVES: Final = 20
"""How many alternatives of a token are asked for: the most that OpenAI's API gives."""
_LEAST_MASS: Final = 0.05
"""Of less than this the two words are not what the model was about to say, and their ratio means nothing."""


def with_logprobs(options: ChatOptions) -> ChatOptions:
    """The options, asking for the alternatives of each token; a client that has none gives none."""
    return replace(options, top_logprobs=_ALTERNATIVES)


def probability(response: ChatResponse, yes: Iterable[str], no: Iterable[str], *, after: str = "") -> float | None:
    """How probable one word was against another, at the place where either was written; from 0 to 1.

    The probabilities of all spellings are added up and set against each other, so that it does not matter how the rest
    is spread.

    Args:
        response: The reply.
        yes: The spellings of the one, in lower case.
        no: Those of the other.
        after: What stands before it in the reply, without spaces; the last such place counts. Without it, the first
            token of the reply that has a letter is looked at.

    Returns:
        `None` where the client gave no log probabilities, or neither word is likely there.
    """
    given = (response.additional_properties or {}).get("logprobs")
    tokens = cast("list[Any]", given) if isinstance(given, list) else []
    place = _place(tokens, after)
    if place is None:
        return None
    said = tuple(yes), tuple(no)
    mass = [0.0, 0.0]
    for spelling, logprob in _alternatives(tokens[place]):
        for side in (0, 1):
            if _clean(spelling) in said[side]:
                mass[side] += math.exp(logprob)
    total = sum(mass)
    return mass[0] / total if total >= _LEAST_MASS else None


def _place(tokens: list[Any], after: str) -> int | None:
    found, before = None, ""
    for number, token in enumerate(tokens):
        text = str(_of(token, "token") or "")
        if _clean(text) and before.endswith(after):
            found = number
            if not after:
                break
        before += "".join(text.split())
    return found


def _alternatives(token: Any) -> Iterable[tuple[str, float]]:
    listed = _of(token, "top_logprobs")
    for one in listed if isinstance(listed, list) and listed else [token]:  # pyright: ignore[reportUnknownVariableType]
        spelling, logprob = _of(one, "token"), _of(one, "logprob")
        if isinstance(spelling, str) and isinstance(logprob, int | float) and logprob <= 0:
            yield spelling, float(logprob)


def _of(token: Any, name: str) -> object:
    return cast("Mapping[str, object]", token).get(name) if isinstance(token, Mapping) else None


def _clean(token: str) -> str:
    return token.strip(" \t\r\n\"'*_`.,:;").lower()
