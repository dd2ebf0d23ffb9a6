from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

pytest.importorskip("semantic_kernel")

from kernel_fakes import ScriptedService, chat_agent
from semantic_kernel.agents import ChatCompletionAgent, SequentialOrchestration

from agents_loop import (
    AIJudgeLoopEvaluator,
    AIJudgeLoopEvaluatorOptions,
    ChatClientAgent,
    ChatMessage,
    DelegateLoopEvaluator,
    FunctionCallContent,
    LoopAgent,
    LoopAgentOptions,
    LoopResult,
    tool,
)
from agents_loop.integrations.semantic_kernel import (
    SemanticKernelAgent,
    SemanticKernelChatClient,
    approval_message,
    approval_requests,
    as_semantic_kernel_agent,
)
from agents_loop.testing import ScriptedChatClient

PAGE = Path(__file__).parents[3] / "docs" / "semantic-kernel.md"
VERDICTS = ['{"gapAnalysis": "no cost", "answered": false}', '{"gapAnalysis": "", "answered": true}']


@tool(approval_required=True)
async def order(item: str) -> str:
    """Order one piece of an item."""
    return f"ordered one {item}"


async def test_the_pages_python_runs(capsys):
    """Docs: the page's Python is executed, its fences in order."""
    names = {
        kind.__name__: kind
        for kind in (
            AIJudgeLoopEvaluator,
            AIJudgeLoopEvaluatorOptions,
            ChatCompletionAgent,
            LoopAgent,
            LoopAgentOptions,
            LoopResult,
            SemanticKernelAgent,
            SemanticKernelChatClient,
            SequentialOrchestration,
            approval_message,
            approval_requests,
            as_semantic_kernel_agent,
        )
    }
    names["service"] = ScriptedService("plan", VERDICTS[0], "plan, cost", VERDICTS[1], "Closed.", VERDICTS[1])
    names["translator"] = chat_agent(name="translator")
    model = ScriptedChatClient(
        [ChatMessage("assistant", [FunctionCallContent("c", "order", {"item": "pen"})]), "A pen is on its way."]
    )
    is_done = DelegateLoopEvaluator(lambda context: None)
    names["buyer"] = as_semantic_kernel_agent(LoopAgent(ChatClientAgent(model, tools=[order]), is_done), name="buyer")
    fences = re.findall(r"^~~~python\n(.*?)^~~~$", PAGE.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert len(fences) == 4
    for fence in fences:
        code = compile(fence, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        running = eval(code, names)  # noqa: S307 - it is our own page
        if running is not None:
            await running
    assert names["response"].text.endswith("plan, cost")
    said = re.findall(r"^~~~text\n(.*?)^~~~$", PAGE.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert capsys.readouterr().out == "satisfied 1\n" + "".join(said)
