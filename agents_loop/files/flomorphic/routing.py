"""Where a run goes on after a node that decides: by the functions that its model called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from agents_loop.chat_client import ChatResponse
from agents_loop.failures import cause_of_finish
from agents_loop.files.flomorphic.conversation import arguments_of, arguments_text, calls_in
from agents_loop.files.flomorphic.graph import EXCEPTION_PORT, FlowGraph, FlowNode
from agents_loop.judging.strict_json import key_given_twice
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.no_verdict import NO_VERDICT
from agents_loop.messages import FunctionCallContent, JsonValue

ExceptionCode: TypeAlias = Literal["no_function_selected", "unbound_function", "unclear_arguments", "provider_error"]
"""Why a node with functions chose no port."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The ports that fire."""

    ports: Sequence[str]
    calls: Sequence[FunctionCallContent] = ()
    code: ExceptionCode | None = None
    detail: str = ""

    def missing_at(self, node: FlowNode) -> str | None:
        """Why there is no verdict, if there is none: the node was not even asked, or it chose no port."""
        if not self.ports:
            return f"{node.ref}: there was nothing to decide on: {node.scope.text} leads to nothing"
        return None if self.code is None else f"{node.ref}: {self.code}: {self.detail}"

    def evaluation(self, graph: FlowGraph, node: FlowNode) -> LoopEvaluation:
        """What the loop's records say of it: that the run goes on, where a port leads back; no verdict is no pass."""
        if self.code is not None:
            note = f"{self.code}: {self.detail}"
            said = LoopEvaluation.continue_(note=note, details={NO_VERDICT: self.code, "ports": list(self.ports)})
        else:
            details: JsonValue = {"calls": [{"name": c.name, "arguments": arguments_of(c)} for c in self.calls]}
            if graph.leads_back(node.ref, self.ports):
                said = LoopEvaluation.continue_(self._question(), details=details)
            else:
                said = LoopEvaluation.stop(details=details)
        said.evaluator = node.ref
        return said

    def _question(self) -> str | None:
        for call in self.calls:
            arguments = arguments_of(call)
            question: Any = cast("dict[str, Any]", arguments).get("question") if isinstance(arguments, dict) else None
            if isinstance(question, str) and question.strip():
                return question
        return None


def choice_of(node: FlowNode, response: ChatResponse) -> Choice:
    """What a reply chooses. A reply that ended early chooses nothing, whatever it had called by then."""
    calls = calls_in(response.messages)
    cause = cause_of_finish(response.finish_reason)
    if cause is not None:
        return failed("provider_error", f"the reply ended early: {cause}", calls)
    if not calls:
        return failed("no_function_selected", "the model called no function")
    known = {function.name for function in node.functions}
    unknown = [call.name for call in calls if call.name not in known]
    if unknown:
        return failed("unbound_function", f"the model called {unknown[0]!r:.60}, which it was not offered", calls)
    for call in calls:
        if wrong := key_given_twice(arguments_text(call)):
            return failed("unclear_arguments", f"the arguments of {call.name!r:.60}: {wrong}", calls)
    return Choice(list(dict.fromkeys([call.name for call in calls])), calls)


def failed(code: ExceptionCode, detail: str, calls: Sequence[FunctionCallContent] = ()) -> Choice:
    """That nothing was chosen: the port for that fires."""
    return Choice([EXCEPTION_PORT], calls, code, detail)
