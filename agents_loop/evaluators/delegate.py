"""An evaluator that is a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeAlias

from agents_loop.errors import ConfigurationError
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator

Word: TypeAlias = LoopEvaluation | bool | str | None
"""A `LoopEvaluation`; `True`: go on; a str: go on with that feedback; `False` or `None`: stop."""


class DelegateLoopEvaluator(LoopEvaluator):
    """Lets a function judge.

    Args:
        evaluate: Takes the context and gives a `Word`, or an awaitable of one.

    Raises:
        TypeError: `evaluate` is not callable.
    """

    def __init__(self, evaluate: Callable[[LoopContext], Word | Awaitable[Word]]) -> None:
        if not callable(evaluate):
            raise TypeError(f"evaluate must be callable, not {type(evaluate).__name__}")
        self.function = evaluate

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Ask the function.

        Raises:
            ConfigurationError: It gave a blank str.
            TypeError: It gave something that is no `Word`.
        """
        given = self.function(context)
        word = await given if isawaitable(given) else given
        if isinstance(word, LoopEvaluation):
            return word
        if word is None or word is False:
            return LoopEvaluation.stop()
        if word is True:
            return LoopEvaluation.continue_()
        if not isinstance(word, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                "evaluate must give a LoopEvaluation, True (go on), a str (go on with that feedback), "
                f"False or None (stop), not {type(word).__name__}: {word!r}"
            )
        if not word.strip():
            raise ConfigurationError(
                "evaluate gave a blank str, which is unclear: give True to go on without feedback, or False to stop"
            )
        return LoopEvaluation.continue_(word)
