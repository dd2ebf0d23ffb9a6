"""What an evaluation really spends: calls that are made, not those that its cache answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse
from agents_loop.errors import BudgetExceededError, ConfigurationError
from agents_loop.messages import ChatMessage, UsageDetails
from agents_loop.metering.prices import PriceList
from agents_loop.metering.spending import estimated_usage, tokens_of


@dataclass(slots=True)
class Spent:
    """What has been spent so far."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    """`None` as soon as the cost of one call is not known."""

    def add(self, tokens: int, cost_usd: float | None) -> None:
        """Count a call."""
        self.calls += 1
        self.tokens += tokens
        self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd


@dataclass(slots=True)
class EvalBudget:
    """The budget of a whole evaluation. It may be gone over by the calls in flight, no more.

    Args:
        max_tokens: Input and output tokens at most.
        max_cost_usd: US dollars at most.
        prices: What models cost.
    """

    max_tokens: int | None
    max_cost_usd: float | None
    prices: PriceList
    spent: Spent = field(default_factory=Spent)

    def why_exhausted(self) -> str | None:
        """What is used up; `None`: nothing."""
        if self.max_tokens is not None and self.spent.tokens >= self.max_tokens:
            return f"the budget allows {self.max_tokens:,} tokens, and {self.spent.tokens:,} are used"
        cost_usd = self.spent.cost_usd or 0.0
        if self.max_cost_usd is not None and cost_usd >= self.max_cost_usd:
            return f"the budget allows ${self.max_cost_usd:,.12g}, and ${cost_usd:.6f} is spent"
        return None

    def require_price(self, models: tuple[str | None, ...]) -> None:
        """See that a model's price is known, where money is limited.

        Raises:
            ConfigurationError: It is not.
        """
        if self.max_cost_usd is not None and self.prices.cost_of(models) is None:
            name = next((name for name in models if name), "?")
            said = f"a budget in dollars needs the price of every model, and that of {name!r} is not known"
            raise ConfigurationError(f"{said}: give it as --price {name}=IN,OUT")


@dataclass(slots=True)
class Tally:
    """What one question has spent of the budget, and whom it has reached."""

    calls: int = 0
    was_refused: bool = False
    """Whether a call was not made for want of budget."""
    was_asked: bool = False
    """Whether a model was asked anything, or the cache in its place."""
    was_shown: bool = False
    """Whether one was shown the question."""


class BudgetedChatClient(ChatClient):
    """Passes calls on while the evaluation's budget lasts.

    Args:
        inner: The client that is called.
        name: The model's name in the file.
        budget: The evaluation's.
        tally: The question's.
    """

    def __init__(self, inner: ChatClient, name: str, budget: EvalBudget, tally: Tally) -> None:
        self._inner = inner
        said: object = getattr(inner, "model_id", None)
        self.model_id = said if isinstance(said, str) and said else name
        self._name = name
        self._budget = budget
        self._tally = tally

    async def get_response(self, messages: Sequence[ChatMessage], options: ChatOptions | None = None) -> ChatResponse:
        """Ask the client.

        Raises:
            BudgetExceededError: The budget is used up.
        """
        why = self._budget.why_exhausted()
        if why is not None:
            self._tally.was_refused = True
            raise BudgetExceededError(f"{why}: the next call was not made")
        self._tally.calls += 1
        response = await self._inner.get_response(messages, options)
        usage = response.usage
        if usage is None or tokens_of(usage) is None:
            usage = estimated_usage(
                usage, *[sum(len(said.text) for said in side) for side in (messages, response.messages)]
            )
        tokens = tokens_of(usage)
        cost_of = self._budget.prices.cost_of((response.model_id, self.model_id, self._name))
        self._budget.spent.add(tokens[0] if tokens else 0, None if cost_of is None else cost_of(_divided(usage)))
        return response


def _divided(usage: UsageDetails) -> UsageDetails:
    """The usage itself or, where only the sum was reported, all of it as output, which is the dearer."""
    if usage.input_token_count is not None and usage.output_token_count is not None:
        return usage
    return UsageDetails(0, usage.total_token_count or 0)
