"""What a model at an endpoint turned out to understand, learnt from what it rejected."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from agents_loop.failures import FailureCause, cause_of

if TYPE_CHECKING:
    from agents_loop.clients.chat_completions.sdk import APIError

MaxTokensParameter: TypeAlias = Literal["max_completion_tokens", "max_tokens"]
"""What `max_output_tokens` is called on the wire: OpenAI's newer name, or the one compatible servers know."""

_MAX_TOKENS_PARAMETERS: tuple[MaxTokensParameter, ...] = ("max_completion_tokens", "max_tokens")
_REJECTIONS = {400, 404, 422, 501}
_STRUCTURED_OUTPUT = (
    "response_format",
    "response format",
    "response_schema",
    "json_schema",
    "json schema",
    "json_object",
    "json mode",
    "structured output",
    "structured_output",
    "guided_json",
    "guided decoding",
    "grammar",
)
_MESSAGE_ORDER = ("system message", "system role", "alternate")
"""What a prompt template says that takes no system message at the end, where the schema stands."""
_UNKNOWN_PARAMETER = (
    "unsupported",
    "not support",
    "unrecognized",
    "unknown",
    "unexpected",
    "not permitted",
    "not allowed",
    "not available",
    "extra_forbidden",
)


@dataclass(slots=True)
class Dialect:
    """What not to send again. It is kept for one client and one model.

    What was rejected is collected in sets, so that calls under way at once can't unlearn from each other, and a
    call that tries again always sends something it has not sent before.
    """

    max_tokens_first: MaxTokensParameter = "max_completion_tokens"
    rejected_formats: set[str] = field(default_factory=set[str])
    """Types of `response_format`: `json_schema`, `json_object`."""
    rejected_max_tokens: set[str] = field(default_factory=set[str])
    stream_options: bool = True
    logprobs: bool = True

    @property
    def max_tokens_parameter(self) -> MaxTokensParameter:
        """The parameter that holds `max_output_tokens`."""
        first = self.max_tokens_first
        if first not in self.rejected_max_tokens:
            return first
        return "max_tokens" if first == "max_completion_tokens" else "max_completion_tokens"

    def learn(self, error: APIError, request: dict[str, Any]) -> bool:
        """Whether the error rejects a part of the request that can be put in another way.

        Only an error that names the part counts. Anything else is the caller's to hear.
        """
        if _status(error) not in _REJECTIONS or is_content_filter(error):
            return False
        complaint = _complaint(error)
        return (
            self._learn_stream_options(complaint, request)
            or self._learn_logprobs(complaint, request)
            or self._learn_max_tokens(complaint, request)
            or self._learn_format(complaint, request)
        )

    def _learn_stream_options(self, complaint: str, request: dict[str, Any]) -> bool:
        if "stream_options" not in request or not _names(complaint, "stream_options", "include_usage"):
            return False
        self.stream_options = False
        return True

    def _learn_logprobs(self, complaint: str, request: dict[str, Any]) -> bool:
        if "logprobs" not in request or not _names(complaint, "logprobs", "log probabilities"):
            return False
        self.logprobs = False
        return True

    def _learn_max_tokens(self, complaint: str, request: dict[str, Any]) -> bool:
        for name in _MAX_TOKENS_PARAMETERS:
            if name in request and _names(complaint, name) and _names(complaint, *_UNKNOWN_PARAMETER):
                self.rejected_max_tokens.add(name)
                return len(self.rejected_max_tokens) < len(_MAX_TOKENS_PARAMETERS)
        return False

    def _learn_format(self, complaint: str, request: dict[str, Any]) -> bool:
        sent = request.get("response_format")
        if sent is None or _names(complaint, "invalid schema"):  # then the schema is at fault, not the endpoint
            return False
        instructed = sent["type"] == "json_object" and request["messages"][-1]["role"] == "system"
        if not _names(complaint, *_STRUCTURED_OUTPUT, *(_MESSAGE_ORDER if instructed else ())):
            return False
        self.rejected_formats.add(sent["type"])
        return True


def is_content_filter(error: APIError) -> bool:
    """Whether a provider's filter stopped the prompt or the answer."""
    return cause_of(error) == FailureCause.CONTENT_FILTER


def provider_message(error: APIError) -> str:
    """What the provider said, without the rest of the body."""
    message = _mapping(error.body).get("message")
    return message if isinstance(message, str) and message else error.message


def _status(error: APIError) -> int | None:
    """The HTTP status, also of an error that came as an event inside a stream."""
    status = getattr(error, "status_code", None) or error.code
    try:
        return int(status) if status is not None else None
    except ValueError:
        return None


def _complaint(error: APIError) -> str:
    """The error's own words, in lower case; not what it may echo of the request."""
    body = _mapping(error.body)
    if not body:
        return f"{error.message} {error.body}".lower()
    said: list[object] = [error.param, error.code, error.type, body.get("message")]
    details = body.get("detail")
    said += cast("list[object]", details) if isinstance(details, list) else [details]
    return " ".join(_words(part) for part in said if part is not None).lower()


def _words(part: object) -> str:
    """One detail of a validation error: where, what and which rule; its `input` may be the whole request."""
    detail = _mapping(part)
    return f"{detail.get('loc')} {detail.get('msg')} {detail.get('type')}" if detail else str(part)


def _mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _names(complaint: str, *words: str) -> bool:
    return any(word in complaint for word in words)
