"""Re-invoke an agent until its evaluators stop asking for more.

The public names are loaded when they are first used: importing this package loads nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents_loop.adapting import as_agent, as_chat_client
    from agents_loop.agent import (
        AgentResponse,
        AgentResponseStream,
        AgentResponseUpdate,
        AgentRunOptions,
        AgentSession,
        AIAgent,
        DelegatingAIAgent,
    )
    from agents_loop.candidates.agent import CandidateAgent
    from agents_loop.candidates.loops import CandidateRuns, run_candidates
    from agents_loop.chat_client import (
        ChatClient,
        ChatOptions,
        ChatResponse,
        ChatResponseUpdate,
        FinishReason,
        JsonSchemaFormat,
    )
    from agents_loop.chat_client_agent import ChatClientAgent
    from agents_loop.checks.check import Check, check
    from agents_loop.checks.citations import citation_check
    from agents_loop.checks.command import command_check
    from agents_loop.checks.json_answer import json_check
    from agents_loop.checks.length import length_check
    from agents_loop.checks.pydantic_model import pydantic_check
    from agents_loop.checks.regex import regex_check
    from agents_loop.clients.azure_openai import AzureOpenAIChatClient
    from agents_loop.clients.fallback import FallbackChatClient
    from agents_loop.clients.local import LocalChatClient
    from agents_loop.clients.openai import OpenAIChatClient
    from agents_loop.clients.recorded import RecordedChatClient
    from agents_loop.clients.recordings import Recordings, UnknownCallError
    from agents_loop.context_providers.agent_mode import AgentModeProvider
    from agents_loop.context_providers.background_agents import BackgroundAgentsProvider
    from agents_loop.context_providers.background_task import BackgroundTask
    from agents_loop.context_providers.provider import ContextProvider, FinishedRun, ProvidedContext, ProviderContext
    from agents_loop.context_providers.todo import TodoItem, TodoProvider
    from agents_loop.errors import (
        AgentsLoopError,
        BudgetExceededError,
        ConfigurationError,
        EvaluatorFailedError,
        JudgeFailedError,
        MissingExtraError,
        ServiceNotFoundError,
        SessionStateError,
        StreamClosedError,
    )
    from agents_loop.evaluators.ai_judge import AIJudgeLoopEvaluator, AIJudgeLoopEvaluatorOptions
    from agents_loop.evaluators.background_task_completion import (
        BackgroundTaskCompletionLoopEvaluator,
        BackgroundTaskCompletionLoopEvaluatorOptions,
    )
    from agents_loop.evaluators.completion_marker import (
        CompletionMarkerLoopEvaluator,
        CompletionMarkerLoopEvaluatorOptions,
    )
    from agents_loop.evaluators.delegate import DelegateLoopEvaluator
    from agents_loop.evaluators.evidence import EvidenceLoopEvaluator, EvidenceLoopEvaluatorOptions
    from agents_loop.evaluators.function_call import FunctionCallLoopEvaluator, FunctionCallLoopEvaluatorOptions
    from agents_loop.evaluators.iteration_strategy import (
        IterationStrategyLoopEvaluator,
        IterationStrategyLoopEvaluatorOptions,
    )
    from agents_loop.evaluators.panel import PanelLoopEvaluator, PanelLoopEvaluatorOptions
    from agents_loop.evaluators.pass_token import PassTokenLoopEvaluator, PassTokenLoopEvaluatorOptions
    from agents_loop.evaluators.preference import PreferenceLoopEvaluator
    from agents_loop.evaluators.rubric import RubricLoopEvaluator, RubricLoopEvaluatorOptions
    from agents_loop.evaluators.todo_completion import TodoCompletionLoopEvaluator, TodoCompletionLoopEvaluatorOptions
    from agents_loop.failures import FailureCause
    from agents_loop.judging.feedback import screen_feedback
    from agents_loop.judging.function_calls import JudgeFunction
    from agents_loop.judging.pairwise import PairwiseJudge, PairwiseJudgeOptions
    from agents_loop.judging.policy import JudgeFailurePolicy
    from agents_loop.judging.rubric import RubricCriterion
    from agents_loop.judging.verdict import JudgeVerdict
    from agents_loop.loop.agent import LoopAgent, LoopEvents
    from agents_loop.loop.context import LoopContext
    from agents_loop.loop.evaluation import LoopEvaluation
    from agents_loop.loop.evaluator import LoopEvaluator
    from agents_loop.loop.events import (
        AgentResponded,
        AgentUpdated,
        EvaluatorDecided,
        IterationStarted,
        LoopEvent,
        LoopStarted,
        LoopStopped,
        NodeChanged,
        NodeEvent,
        StallNoticed,
    )
    from agents_loop.loop.options import LoopAgentOptions
    from agents_loop.loop.questions import accept_answer
    from agents_loop.loop.result import IterationRecord, LoopResult, StopReason
    from agents_loop.loop.stalls.answers import (
        AlternatingAnswersSignal,
        EmptyAnswersSignal,
        NearSameAnswerSignal,
        SameAnswerSignal,
        SameToolCallsSignal,
    )
    from agents_loop.loop.stalls.facts import IterationFacts
    from agents_loop.loop.stalls.ladder import (
        AnotherAgentStep,
        AskPersonStep,
        FreshContextStep,
        NudgeStep,
        StopStep,
    )
    from agents_loop.loop.stalls.policy import StallPolicy
    from agents_loop.loop.stalls.signal import StallSignal
    from agents_loop.loop.stalls.verdicts import (
        FallingScoreSignal,
        FlatScoreSignal,
        SameFailingCriteriaSignal,
        SameFeedbackSignal,
    )
    from agents_loop.loop.write_and_check import write_and_check
    from agents_loop.messages import (
        ChatMessage,
        ChatRole,
        DataContent,
        ErrorContent,
        FunctionCallContent,
        FunctionResultContent,
        TextContent,
        TextReasoningContent,
        ToolApprovalRequestContent,
        ToolApprovalResponseContent,
        UriContent,
        UsageContent,
        UsageDetails,
    )
    from agents_loop.metering.budget import LoopBudget
    from agents_loop.metering.ledger import Ledger, LedgerEntry, LedgerSum
    from agents_loop.metering.prices import ModelPrice
    from agents_loop.strategy.detectors import SignalDetector
    from agents_loop.strategy.history import IterationStrategy
    from agents_loop.strategy.review import ReviewSignalDetector, ReviewSignalDetectorOptions
    from agents_loop.strategy.signals import (
        Confidence,
        HallucinationFinding,
        HallucinationReport,
        IterationSignals,
        UnmetRequirement,
        UserFeedback,
        ValidationFailure,
    )
    from agents_loop.strategy.thresholds import StrategyThresholds
    from agents_loop.tools import FunctionTool, ToolContext, tool

__version__ = "0.1.0"

_HOMES = {
    "adapting": ("as_agent", "as_chat_client"),
    "agent": (
        "AIAgent",
        "AgentResponse",
        "AgentResponseStream",
        "AgentResponseUpdate",
        "AgentRunOptions",
        "AgentSession",
        "DelegatingAIAgent",
    ),
    "candidates.agent": ("CandidateAgent",),
    "candidates.loops": ("CandidateRuns", "run_candidates"),
    "chat_client": (
        "ChatClient",
        "ChatOptions",
        "ChatResponse",
        "ChatResponseUpdate",
        "FinishReason",
        "JsonSchemaFormat",
    ),
    "chat_client_agent": ("ChatClientAgent",),
    "checks.check": ("Check", "check"),
    "checks.citations": ("citation_check",),
    "checks.command": ("command_check",),
    "checks.json_answer": ("json_check",),
    "checks.length": ("length_check",),
    "checks.pydantic_model": ("pydantic_check",),
    "checks.regex": ("regex_check",),
    "clients.azure_openai": ("AzureOpenAIChatClient",),
    "clients.fallback": ("FallbackChatClient",),
    "clients.recorded": ("RecordedChatClient",),
    "clients.recordings": ("Recordings", "UnknownCallError"),
    "clients.local": ("LocalChatClient",),
    "clients.openai": ("OpenAIChatClient",),
    "context_providers.agent_mode": ("AgentModeProvider",),
    "context_providers.background_agents": ("BackgroundAgentsProvider",),
    "context_providers.background_task": ("BackgroundTask",),
    "context_providers.provider": ("ContextProvider", "FinishedRun", "ProvidedContext", "ProviderContext"),
    "context_providers.todo": ("TodoItem", "TodoProvider"),
    "errors": (
        "AgentsLoopError",
        "BudgetExceededError",
        "ConfigurationError",
        "EvaluatorFailedError",
        "JudgeFailedError",
        "MissingExtraError",
        "ServiceNotFoundError",
        "SessionStateError",
        "StreamClosedError",
    ),
    "evaluators.ai_judge": ("AIJudgeLoopEvaluator", "AIJudgeLoopEvaluatorOptions"),
    "evaluators.background_task_completion": (
        "BackgroundTaskCompletionLoopEvaluator",
        "BackgroundTaskCompletionLoopEvaluatorOptions",
    ),
    "evaluators.completion_marker": ("CompletionMarkerLoopEvaluator", "CompletionMarkerLoopEvaluatorOptions"),
    "evaluators.delegate": ("DelegateLoopEvaluator",),
    "evaluators.evidence": ("EvidenceLoopEvaluator", "EvidenceLoopEvaluatorOptions"),
    "evaluators.function_call": ("FunctionCallLoopEvaluator", "FunctionCallLoopEvaluatorOptions"),
    "evaluators.iteration_strategy": (
        "IterationStrategyLoopEvaluator",
        "IterationStrategyLoopEvaluatorOptions",
    ),
    "evaluators.panel": ("PanelLoopEvaluator", "PanelLoopEvaluatorOptions"),
    "evaluators.pass_token": ("PassTokenLoopEvaluator", "PassTokenLoopEvaluatorOptions"),
    "evaluators.preference": ("PreferenceLoopEvaluator",),
    "evaluators.rubric": ("RubricLoopEvaluator", "RubricLoopEvaluatorOptions"),
    "evaluators.todo_completion": ("TodoCompletionLoopEvaluator", "TodoCompletionLoopEvaluatorOptions"),
    "failures": ("FailureCause",),
    "judging.feedback": ("screen_feedback",),
    "judging.function_calls": ("JudgeFunction",),
    "judging.pairwise": ("PairwiseJudge", "PairwiseJudgeOptions"),
    "judging.policy": ("JudgeFailurePolicy",),
    "judging.rubric": ("RubricCriterion",),
    "judging.verdict": ("JudgeVerdict",),
    "loop.agent": ("LoopAgent", "LoopEvents"),
    "loop.context": ("LoopContext",),
    "loop.evaluation": ("LoopEvaluation",),
    "loop.evaluator": ("LoopEvaluator",),
    "loop.events": (
        "AgentResponded",
        "AgentUpdated",
        "EvaluatorDecided",
        "IterationStarted",
        "LoopEvent",
        "LoopStarted",
        "LoopStopped",
        "NodeChanged",
        "NodeEvent",
        "StallNoticed",
    ),
    "loop.options": ("LoopAgentOptions",),
    "loop.questions": ("accept_answer",),
    "loop.result": ("IterationRecord", "LoopResult", "StopReason"),
    "loop.stalls.answers": (
        "AlternatingAnswersSignal",
        "EmptyAnswersSignal",
        "NearSameAnswerSignal",
        "SameAnswerSignal",
        "SameToolCallsSignal",
    ),
    "loop.stalls.facts": ("IterationFacts",),
    "loop.stalls.ladder": (
        "AnotherAgentStep",
        "AskPersonStep",
        "FreshContextStep",
        "NudgeStep",
        "StopStep",
    ),
    "loop.stalls.policy": ("StallPolicy",),
    "loop.stalls.signal": ("StallSignal",),
    "loop.stalls.verdicts": (
        "FallingScoreSignal",
        "FlatScoreSignal",
        "SameFailingCriteriaSignal",
        "SameFeedbackSignal",
    ),
    "loop.write_and_check": ("write_and_check",),
    "messages": (
        "ChatMessage",
        "ChatRole",
        "DataContent",
        "ErrorContent",
        "FunctionCallContent",
        "FunctionResultContent",
        "TextContent",
        "TextReasoningContent",
        "ToolApprovalRequestContent",
        "ToolApprovalResponseContent",
        "UriContent",
        "UsageContent",
        "UsageDetails",
    ),
    "metering.budget": ("LoopBudget",),
    "metering.ledger": ("Ledger", "LedgerEntry", "LedgerSum"),
    "metering.prices": ("ModelPrice",),
    "strategy.detectors": ("SignalDetector",),
    "strategy.history": ("IterationStrategy",),
    "strategy.review": ("ReviewSignalDetector", "ReviewSignalDetectorOptions"),
    "strategy.signals": (
        "Confidence",
        "HallucinationFinding",
        "HallucinationReport",
        "IterationSignals",
        "UnmetRequirement",
        "UserFeedback",
        "ValidationFailure",
    ),
    "strategy.thresholds": ("StrategyThresholds",),
    "tools": ("FunctionTool", "ToolContext", "tool"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "AIAgent",
    "AIJudgeLoopEvaluator",
    "AIJudgeLoopEvaluatorOptions",
    "AgentModeProvider",
    "AgentResponded",
    "AgentResponse",
    "AgentResponseStream",
    "AgentResponseUpdate",
    "AgentRunOptions",
    "AgentSession",
    "AgentUpdated",
    "AgentsLoopError",
    "AlternatingAnswersSignal",
    "AnotherAgentStep",
    "AskPersonStep",
    "AzureOpenAIChatClient",
    "BackgroundAgentsProvider",
    "BackgroundTask",
    "BackgroundTaskCompletionLoopEvaluator",
    "BackgroundTaskCompletionLoopEvaluatorOptions",
    "BudgetExceededError",
    "CandidateAgent",
    "CandidateRuns",
    "ChatClient",
    "ChatClientAgent",
    "ChatMessage",
    "ChatOptions",
    "ChatResponse",
    "ChatResponseUpdate",
    "ChatRole",
    "Check",
    "CompletionMarkerLoopEvaluator",
    "CompletionMarkerLoopEvaluatorOptions",
    "Confidence",
    "ConfigurationError",
    "ContextProvider",
    "DataContent",
    "DelegateLoopEvaluator",
    "DelegatingAIAgent",
    "EmptyAnswersSignal",
    "ErrorContent",
    "EvaluatorDecided",
    "EvaluatorFailedError",
    "EvidenceLoopEvaluator",
    "EvidenceLoopEvaluatorOptions",
    "FailureCause",
    "FallbackChatClient",
    "FallingScoreSignal",
    "FinishReason",
    "FinishedRun",
    "FlatScoreSignal",
    "FreshContextStep",
    "FunctionCallContent",
    "FunctionCallLoopEvaluator",
    "FunctionCallLoopEvaluatorOptions",
    "FunctionResultContent",
    "FunctionTool",
    "HallucinationFinding",
    "HallucinationReport",
    "IterationFacts",
    "IterationRecord",
    "IterationSignals",
    "IterationStarted",
    "IterationStrategy",
    "IterationStrategyLoopEvaluator",
    "IterationStrategyLoopEvaluatorOptions",
    "JsonSchemaFormat",
    "JudgeFailedError",
    "JudgeFailurePolicy",
    "JudgeFunction",
    "JudgeVerdict",
    "Ledger",
    "LedgerEntry",
    "LedgerSum",
    "LocalChatClient",
    "LoopAgent",
    "LoopAgentOptions",
    "LoopBudget",
    "LoopContext",
    "LoopEvaluation",
    "LoopEvaluator",
    "LoopEvent",
    "LoopEvents",
    "LoopResult",
    "LoopStarted",
    "LoopStopped",
    "MissingExtraError",
    "ModelPrice",
    "NearSameAnswerSignal",
    "NodeChanged",
    "NodeEvent",
    "NudgeStep",
    "OpenAIChatClient",
    "PairwiseJudge",
    "PairwiseJudgeOptions",
    "PanelLoopEvaluator",
    "PanelLoopEvaluatorOptions",
    "PassTokenLoopEvaluator",
    "PassTokenLoopEvaluatorOptions",
    "PreferenceLoopEvaluator",
    "ProvidedContext",
    "ProviderContext",
    "RecordedChatClient",
    "Recordings",
    "ReviewSignalDetector",
    "ReviewSignalDetectorOptions",
    "RubricCriterion",
    "RubricLoopEvaluator",
    "RubricLoopEvaluatorOptions",
    "SameAnswerSignal",
    "SameFailingCriteriaSignal",
    "SameFeedbackSignal",
    "SameToolCallsSignal",
    "ServiceNotFoundError",
    "SessionStateError",
    "SignalDetector",
    "StallNoticed",
    "StallPolicy",
    "StallSignal",
    "StopReason",
    "StopStep",
    "StrategyThresholds",
    "StreamClosedError",
    "TextContent",
    "TextReasoningContent",
    "TodoCompletionLoopEvaluator",
    "TodoCompletionLoopEvaluatorOptions",
    "TodoItem",
    "TodoProvider",
    "ToolApprovalRequestContent",
    "ToolApprovalResponseContent",
    "ToolContext",
    "UnknownCallError",
    "UnmetRequirement",
    "UriContent",
    "UsageContent",
    "UsageDetails",
    "UserFeedback",
    "ValidationFailure",
    "__version__",
    "accept_answer",
    "as_agent",
    "as_chat_client",
    "check",
    "citation_check",
    "command_check",
    "json_check",
    "length_check",
    "pydantic_check",
    "regex_check",
    "run_candidates",
    "screen_feedback",
    "tool",
    "write_and_check",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
