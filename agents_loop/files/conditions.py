"""A condition in a file: a Jinja2 expression, in the sandbox of the prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agents_loop.errors import MissingExtraError
from agents_loop.files.projected_values import is_taken_as_true
from agents_loop.files.prompts import PromptError, required_variables
from agents_loop.files.sandbox import make_environment
from agents_loop.files.sandbox_limits import limited_work

try:
    from jinja2 import TemplateError, nodes
    from jinja2.exceptions import SecurityError
    from jinja2.meta import find_undeclared_variables
    from jinja2.parser import Parser
except ImportError as error:
    raise MissingExtraError("agents_loop.files", "cli") from error


class Condition:
    """A Jinja2 expression that is true or not.

    Args:
        source: The expression, without braces around it.
        located: Puts the place in a file before a message.

    Raises:
        PromptError: It is no expression.
    """

    def __init__(self, source: str, *, located: Callable[[str], str] | None = None) -> None:
        self.source = source
        self._located = located
        if source.lstrip().startswith(("{{", "{%")):
            raise PromptError("must be an expression without braces around it, such as: topic == 'tea'")
        try:
            expression = Parser(_ENVIRONMENT, source, state="variable").parse_expression()
            tree = nodes.Template([nodes.Output([expression], lineno=1)], lineno=1)
            tree.set_environment(_ENVIRONMENT)
            self._evaluate = _ENVIRONMENT.compile_expression(source, undefined_to_none=False)
        except TemplateError as error:
            raise PromptError(f"not a valid expression: {error.message}") from error
        except (SyntaxError, RecursionError, MemoryError) as error:  # of Python, to which it is compiled
            raise PromptError("not a valid expression: it is nested too deep") from error
        self.variables = frozenset(required_variables(tree))
        """What must be given."""
        self.mentioned = frozenset(find_undeclared_variables(tree))

    def is_true(self, values: Mapping[str, Any]) -> bool:
        """Whether it holds.

        Raises:
            PromptError: A value is missing, or the expression can't be worked out.
        """
        try:
            with limited_work():
                return bool(self._evaluate(dict(values)))
        except Exception as error:  # an expression runs the methods of values, which may raise anything
            said = str(error) if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"
            said = f"can't be worked out: {' '.join(said.split())}"
            raised = PromptError(said, None, self._located and self._located(said))
            is_forbidden = isinstance(error, SecurityError)
            if not is_forbidden and is_taken_as_true(self.source, self.mentioned, values, str(raised)):
                return True
            raise raised from error


_ENVIRONMENT = make_environment()
