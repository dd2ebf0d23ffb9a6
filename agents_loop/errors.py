"""The errors of this library.

    AgentsLoopError
    ├── ConfigurationError (ValueError)      wrong use, found before anything ran
    │   └── MissingExtraError (ImportError)  an optional dependency is not installed
    ├── ServiceNotFoundError (LookupError)   an evaluator needs what the agent does not offer
    ├── SessionStateError (ValueError)       a session can't be written, or read back
    ├── StreamClosedError                    a stream was closed before its end, so it has no final response
    ├── BudgetExceededError                  a limit on spending was reached; the run ends as `budget_exceeded`
    ├── EvaluatorFailedError                 an evaluator gives up; the run ends as `evaluator_failed`
    └── JudgeFailedError                     a judge's reply was cut off, refused, filtered or unreadable: no verdict

Exceptions of an inner agent, a chat client or an evaluator are never wrapped: they reach the caller as they
were raised, with the run's `LoopResult` attached (`LoopResult.of(error)`).
"""

from __future__ import annotations


class AgentsLoopError(Exception):
    """The root of every error that this library raises of its own."""


class ConfigurationError(AgentsLoopError, ValueError):
    """Wrong use that was found before anything ran."""


class MissingExtraError(ConfigurationError, ImportError):
    """An optional dependency is missing; the message holds the command that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        self.what = what
        self.extra = extra
        super().__init__(f"{what} needs an optional dependency. Run: pip install 'agents-loop[{extra}]'")

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (self.what, self.extra)


class ServiceNotFoundError(AgentsLoopError, LookupError):
    """An evaluator needs a service that the agent does not offer."""


class SessionStateError(AgentsLoopError, ValueError):
    """A session holds something that is not a JSON value, or a stored state is not a session's."""


class StreamClosedError(AgentsLoopError):
    """A stream was closed before its end, so it has no final response."""


class BudgetExceededError(AgentsLoopError):
    """A limit on spending was reached, so the next call was not made."""


class EvaluatorFailedError(AgentsLoopError):
    """An evaluator gives up: the loop ends as `evaluator_failed` and returns its result, instead of raising this."""


class JudgeFailedError(AgentsLoopError):
    """The judge gave no verdict: its reply was cut off, refused, filtered or unreadable.

    Args:
        cause: `"length"`, `"refusal"`, `"content_filter"` or `"unreadable"`.
        detail: What the provider said about it.
    """

    def __init__(self, cause: str, detail: str = "") -> None:
        self.cause = cause
        self.detail = detail
        super().__init__(f"the judge gave no verdict ({cause})" + (f": {detail}" if detail else ""))

    def __reduce__(self) -> tuple[type[JudgeFailedError], tuple[str, str]]:
        return type(self), (self.cause, self.detail)
