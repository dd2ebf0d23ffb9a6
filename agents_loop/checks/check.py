"""A check: an evaluator that code decides by the answer's text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from inspect import isawaitable, signature
from typing import Any, ClassVar, NamedTuple, ParamSpec, TypeAlias

from agents_loop.errors import ConfigurationError
from agents_loop.flags import check_flags
from agents_loop.loop.answer import answer_text
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.loop.regressions import regressed
from agents_loop.messages import JsonValue
from agents_loop.templates import fill

Finding: TypeAlias = bool | str | None
"""`True` or `None`: nothing is wrong; `False`: the check fails; a str: it fails, and that is what is wrong."""

Examine: TypeAlias = Callable[[str], Finding | Awaitable[Finding]]
_Parameters = ParamSpec("_Parameters")


class MadeBy(NamedTuple):
    """The function that made a check, by its name, and what it was given: so that the check can be written down."""

    function: str
    arguments: Mapping[str, Any]


class Check(LoopEvaluator):
    """Asks for no more if the answer passes a check, and otherwise goes on with what is wrong.

    Usable alone, in a `PanelLoopEvaluator`, and as evidence of an `EvidenceLoopEvaluator`. Made by `check` and by the
    functions for common checks. If an earlier answer of the run passed it, the feedback says so. An exception of the
    check is no verdict: it ends the run, and has a note that names the check.

    Args:
        name: What the check is called in feedback, evidence and records.
        examine: Takes the answer's text and gives a `Finding`, or an awaitable of one.
        required: Whether an `EvidenceLoopEvaluator` may call nothing done while this fails. Alone it has no effect.
        feedback_message_template: A template in which `{check}` and `{problem}` are replaced. `None`: the default.

    Raises:
        TypeError: `name` is no str, `examine` is not callable, or `required` is no bool.
        ConfigurationError: `name` is blank.
    """

    CHECK_PLACEHOLDER: ClassVar[str] = "{check}"
    PROBLEM_PLACEHOLDER: ClassVar[str] = "{problem}"
    DEFAULT_FEEDBACK_MESSAGE_TEMPLATE: ClassVar[str] = (
        f'Your answer fails the check "{CHECK_PLACEHOLDER}": {PROBLEM_PLACEHOLDER}'
    )

    def __init__(
        self, name: str, examine: Examine, *, required: bool = True, feedback_message_template: str | None = None
    ) -> None:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        if not name.strip():
            raise ConfigurationError("name must not be blank: feedback names the check by it")
        if not callable(examine):
            raise TypeError(f"examine must be callable, not {type(examine).__name__}")
        template = feedback_message_template
        if template is not None and not isinstance(template, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"feedback_message_template must be a str or None, not {type(template).__name__}")
        self.name = name
        self.required = required
        check_flags(self, "required")
        self.made_by: MadeBy | None = None
        self._examine = examine
        self._template = self.DEFAULT_FEEDBACK_MESSAGE_TEMPLATE if template is None else template

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Check the text of the latest answer.

        Raises:
            ConfigurationError: The check gave a blank str.
            TypeError: It gave something that is no `Finding`.
        """
        try:
            problem = _problem(await self.finding(answer_text(context.last_response), context))
        except Exception as error:
            error.add_note(f"raised in the check {self.name!r}")
            raise
        details: dict[str, JsonValue] = {"check": self.name, "passed": problem is None, "problem": problem}
        met, unmet = ((self.name,), ()) if problem is None else ((), (self.name,))
        has_regressed = bool(regressed(context, self, f"check {self.name}", met=met, unmet=unmet))
        if problem is None:
            return LoopEvaluation.stop(details=details)
        if has_regressed:
            details["regressed"] = True
            problem = f"{problem} (an earlier answer passed this)"
        values = {self.CHECK_PLACEHOLDER: self.name, self.PROBLEM_PLACEHOLDER: problem}
        return LoopEvaluation.continue_(fill(self._template, values), details=details)

    async def finding(self, text: str, context: LoopContext) -> Finding:
        """What is wrong with an answer's text; a check that goes by more than the text has its own way."""
        del context
        given = self._examine(text)
        return await given if isawaitable(given) else given


def _problem(finding: Finding) -> str | None:
    if finding is None or finding is True:
        return None
    if finding is False:
        return "it is not met"
    if not isinstance(finding, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            "a check must give True or None (nothing is wrong), False, or a str that says what is wrong, "
            f"not {type(finding).__name__}: {finding!r}"
        )
    if not finding.strip():
        raise ConfigurationError("a check gave a blank str, which is unclear: give True if nothing is wrong")
    return finding


def check_maker(make: Callable[_Parameters, Check]) -> Callable[_Parameters, Check]:
    """Let the checks that a function makes know what they were made of (`Check.made_by`)."""
    parameters = signature(make)

    @wraps(make)
    def made(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Check:
        check = make(*args, **kwargs)
        check.made_by = MadeBy(make.__name__, parameters.bind(*args, **kwargs).arguments)
        return check

    return made


@check_maker
def check(name: str, examine: Examine, *, required: bool = True, feedback_message_template: str | None = None) -> Check:
    """A function of the answer's text as an evaluator: `check("names a price", lambda text: "EUR" in text)`.

    The function gives `True` or `None` if nothing is wrong, `False`, or a str that says what is wrong; it may be
    async. It gets the text of the answer alone, as a judge sees it: what the agent wrote after its last tool call.
    Where more is needed, a `DelegateLoopEvaluator` is given the whole context. Mind that to that one `True` means go
    on.

    Args:
        name: What the check is called in feedback, evidence and records.
        examine: The function.
        required: Whether an `EvidenceLoopEvaluator` may call nothing done while this fails.
        feedback_message_template: A template in which `{check}` and `{problem}` are replaced. `None`: the default.

    Raises:
        TypeError: `name` is no str, or `examine` is not callable.
        ConfigurationError: `name` is blank.
    """
    return Check(name, examine, required=required, feedback_message_template=feedback_message_template)
