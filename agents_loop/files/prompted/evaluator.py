"""The evaluator of a loop file: one rendered prompt, one call, one JSON object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents_loop.chat_client import ChatClient, ChatOptions, ChatResponse, FinishReason
from agents_loop.errors import JudgeFailedError
from agents_loop.files.prompted.contract import EvaluatorReply, not_approved, read_evaluator_reply
from agents_loop.files.prompts import PromptTemplate
from agents_loop.loop.answer import answer_text
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.messages import ChatMessage, ChatRole, error_text


class PromptedEvaluator(LoopEvaluator):
    """Asks a model whether it approves of a candidate, and goes on with its feedback while it does not.

    The reply is read as `read_evaluator_reply` says. A reply that was cut off is never an approval; its text is the
    feedback, as that of any other malformed reply. A refusal, and what a provider's filter withheld, are no word on
    the candidate: they end the run.

    Args:
        chat_client: The model.
        prompt: The prompt.
        inputs: The inputs' values.
        options: Asked of every call.
    """

    def __init__(
        self,
        chat_client: ChatClient,
        prompt: PromptTemplate,
        inputs: Mapping[str, Any],
        *,
        options: ChatOptions | None = None,
    ) -> None:
        self.chat_client = chat_client
        self.prompt = prompt
        self.inputs = dict(inputs)
        self.options = options

    def model_calls(self) -> Sequence[tuple[ChatClient, ChatOptions | None]]:
        """The model's."""
        return [(self.chat_client, self.options)]

    def build_messages(self, context: LoopContext) -> list[ChatMessage]:
        """What the model is sent. No model is called.

        Raises:
            PromptError: The prompt can't be rendered.
        """
        loop = {"iteration": context.iteration, "candidate": answer_text(context.last_response)}
        return [ChatMessage(ChatRole.USER, self.prompt.render(self.inputs | loop))]

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Ask once.

        Raises:
            PromptError: The prompt can't be rendered.
            JudgeFailedError: The model refused, or a filter withheld its reply.
        """
        response = await self.chat_client.get_response(self.build_messages(context), self.options)
        reply = _read(response)
        if reply.approved:
            return LoopEvaluation.stop(score=reply.score, note=reply.feedback or None, details=reply.details)
        return LoopEvaluation.continue_(reply.feedback, score=reply.score, note=reply.unclear, details=reply.details)


def _read(response: ChatResponse) -> EvaluatorReply:
    reason = response.finish_reason
    if reason in (FinishReason.REFUSAL, FinishReason.CONTENT_FILTER):
        no_reason = "the provider gives no reason: change evaluator.prompt, or name another evaluator.model"
        raise JudgeFailedError(str(reason), error_text(response.messages) or no_reason)
    text = response.text
    if reason == FinishReason.LENGTH:
        return not_approved(text, "the reply was cut off: raise evaluator.max_output_tokens")
    return read_evaluator_reply(text)
