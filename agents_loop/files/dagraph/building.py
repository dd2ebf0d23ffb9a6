"""From a node of a file to a `LoopAgent` that runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents_loop.chat_client import ChatClient, ChatOptions
from agents_loop.clients.fallback import FallbackChatClient
from agents_loop.evaluators.delegate import DelegateLoopEvaluator
from agents_loop.files.dagraph.node_prompts import NodePrompts
from agents_loop.files.dagraph.schema import AgentNode, Budget, Document, EvaluatorLoopNode, Part
from agents_loop.files.given_limits import spending_limits, time_limits
from agents_loop.files.named_client import NamedChatClient, prices_of
from agents_loop.files.problems import path_text
from agents_loop.files.prompted.evaluator import PromptedEvaluator
from agents_loop.files.prompted.generator import PromptedGenerator
from agents_loop.files.run_settings import Limits, RunSettings
from agents_loop.files.timed_client import TimedChatClient
from agents_loop.loop.agent import LoopAgent
from agents_loop.loop.options import LoopAgentOptions
from agents_loop.messages import ChatMessage, ChatRole
from agents_loop.metering.budget import LoopBudget
from agents_loop.metering.prices import Prices


@dataclass(frozen=True, slots=True)
class NodeBuilder:
    """Makes the loops of a file's nodes.

    Args:
        document: What the file says.
        clients: The models', by their names in the file.
        settings: What stands in for what the file says.
    """

    document: Document
    clients: Mapping[str, NamedChatClient]
    settings: RunSettings

    @property
    def prices(self) -> Prices:
        """The prices, those by a name in the file also by that of the model that it stands for."""
        return prices_of(self.clients, self.settings.prices)

    def run_budgets(self) -> list[LoopBudget]:
        """What the whole run may spend: as the file says, but for the limits that others stand in for, and those."""
        left = _limits(self.document.budget).without(self.settings.limits)
        return [*self._budgets("budget", left), *spending_limits(self.settings, counts_cached_input=False)]

    def run_deadline(self) -> list[LoopBudget]:
        """How long the whole run may take, if that is bounded."""
        return list(time_limits(self.settings))

    def node_budgets(self, index: int) -> list[LoopBudget]:
        """What a node may spend, unless other limits stand in for the file's."""
        limits = _limits(self.document.nodes[index].budget).without(self.settings.limits)
        return self._budgets(f"nodes[{index}].budget", limits)

    def models_of(self, node: AgentNode | EvaluatorLoopNode) -> list[tuple[ChatClient, ChatOptions]]:
        """Who may be asked in a node, and how."""
        return [(self.clients[name], _options(part)) for part in node.parts.values() for name in part.all_models]

    def loop(
        self,
        node: AgentNode | EvaluatorLoopNode,
        prompts: NodePrompts,
        values: Mapping[str, Any],
        budgets: Sequence[LoopBudget],
    ) -> tuple[LoopAgent, ChatMessage]:
        """The loop of a node, and its first prompt. One serves one run.

        Args:
            node: The node.
            prompts: Its templates.
            values: The inputs, and the outputs of the nodes upstream.
            budgets: What it may spend.

        Raises:
            PromptError: The first prompt can't be rendered.
        """
        message = ChatMessage(ChatRole.USER, prompts.first_prompt(values))
        if isinstance(node, AgentNode):
            agent = self._prompted(node, "", prompts, values)
            options = LoopAgentOptions(
                max_iterations=1, evaluate_final_iteration=True, budget=budgets, prices=self.prices
            )
            return LoopAgent(agent, DelegateLoopEvaluator(_accept), options), message
        cap = self.settings.max_iterations
        options = LoopAgentOptions(
            max_iterations=node.max_iterations if cap is None else cap,
            evaluate_final_iteration=True,
            budget=budgets,
            prices=self.prices,
            return_best=self.settings.return_best,
        )
        evaluator = PromptedEvaluator(
            self._client(node, "evaluator"), prompts.parts["evaluator"], values, options=_options(node.evaluator)
        )
        return LoopAgent(self._prompted(node, "generator", prompts, values), evaluator, options), message

    def _prompted(
        self, node: AgentNode | EvaluatorLoopNode, key: str, prompts: NodePrompts, values: Mapping[str, Any]
    ) -> PromptedGenerator:
        part = node.parts[key]
        return PromptedGenerator(
            self._client(node, key), prompts.parts[key], values, options=_options(part), name=node.id, part=key
        )

    def _client(self, node: AgentNode | EvaluatorLoopNode, key: str) -> ChatClient:
        part = node.parts[key]
        asked: list[ChatClient] = [self.clients[name] for name in part.all_models]
        if part.timeout_seconds is not None:
            index = next(index for index, each in enumerate(self.document.nodes) if each is node)
            place = path_text(("nodes", index, *([key] if key else []), "timeout_seconds"))
            seconds = part.timeout_seconds
            named = zip(asked, part.all_models, strict=True)
            asked = [TimedChatClient(client, seconds, name, place) for client, name in named]
        return asked[0] if len(asked) == 1 else FallbackChatClient(*asked)

    def _budgets(self, place: str, limits: Limits) -> list[LoopBudget]:
        if limits == Limits():
            return []
        return [
            LoopBudget(
                max_tokens=limits.max_tokens,
                max_cost_usd=limits.max_cost_usd,
                counts_cached_input=False,
                name=place,
                on_estimate=self.settings.on_notice,
            )
        ]


def models_of(document: Document) -> list[str]:
    """The names of a file's models, each once."""
    parts = [part for node in document.nodes for part in node.parts.values()]
    return list(dict.fromkeys([name for part in parts for name in part.all_models]))


def _limits(budget: Budget) -> Limits:
    return Limits(budget.max_tokens, budget.max_usd)


def _options(part: Part) -> ChatOptions:
    return ChatOptions(max_output_tokens=part.max_output_tokens)


def _accept(_: object) -> bool:
    """An agent's answer is not judged."""
    return False
