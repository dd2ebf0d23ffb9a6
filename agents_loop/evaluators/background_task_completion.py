"""An evaluator that looks at the agent's background tasks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from agents_loop.context_providers.background_agents import BackgroundAgentsProvider
from agents_loop.errors import ConfigurationError, ServiceNotFoundError
from agents_loop.loop.context import LoopContext
from agents_loop.loop.evaluation import LoopEvaluation
from agents_loop.loop.evaluator import LoopEvaluator
from agents_loop.templates import fill


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundTaskCompletionLoopEvaluatorOptions:
    """What the agent hears while tasks are running, and how soon.

    Raises:
        ConfigurationError: `wait_timeout_s` is negative or not finite.
    """

    feedback_message_template: str | None = None
    """A template in which `{incomplete_tasks}` and `{incomplete_task_count}` are replaced. `None`: the default one."""
    wait_timeout_s: float = 60.0
    """How long running tasks get to end before the agent is run again, in seconds. 0: it is run again at once."""

    def __post_init__(self) -> None:
        if not 0 <= self.wait_timeout_s < math.inf:
            raise ConfigurationError(f"wait_timeout_s must be 0 or a positive number, not {self.wait_timeout_s!r}")


class BackgroundTaskCompletionLoopEvaluator(LoopEvaluator):
    """Goes on while the agent's `BackgroundAgentsProvider` has tasks that are running.

    The statuses are refreshed first; tasks that are completed, failed or lost don't count. If some are running, the
    agent is to be run again, for its last answer can't have known their results. So that the loop does not spin
    meanwhile, the evaluator first waits until all of them have ended, but no longer than `wait_timeout_s`: a task that
    hangs costs one iteration in that time, and has failed when the provider's `task_timeout_s` is over. (With both
    defaults, ten iterations are that long.) The feedback lists the tasks that were running before the wait.

    Args:
        options: What the agent hears, and how soon.
    """

    INCOMPLETE_TASKS_PLACEHOLDER: ClassVar[str] = "{incomplete_tasks}"
    INCOMPLETE_TASK_COUNT_PLACEHOLDER: ClassVar[str] = "{incomplete_task_count}"
    DEFAULT_FEEDBACK_MESSAGE_TEMPLATE: ClassVar[str] = (
        f"Background tasks were still running when you answered ({INCOMPLETE_TASK_COUNT_PLACEHOLDER}):\n\n"
        f"{INCOMPLETE_TASKS_PLACEHOLDER}\n\n"
        "See what has become of them, wait for those that are not finished, and take their results into your answer."
    )

    def __init__(self, options: BackgroundTaskCompletionLoopEvaluatorOptions | None = None) -> None:
        self.options = options or BackgroundTaskCompletionLoopEvaluatorOptions()
        template = self.options.feedback_message_template
        self._template = self.DEFAULT_FEEDBACK_MESSAGE_TEMPLATE if template is None else template

    async def evaluate(self, context: LoopContext) -> LoopEvaluation:
        """Look at the tasks, and wait for those that are running.

        Raises:
            ServiceNotFoundError: The agent has no `BackgroundAgentsProvider`.
        """
        provider = context.agent.get_service(BackgroundAgentsProvider)
        if provider is None:
            raise ServiceNotFoundError(
                "BackgroundTaskCompletionLoopEvaluator needs a BackgroundAgentsProvider, and the agent has none: "
                "pass one in the agent's context_providers"
            )
        running = provider.get_running(context.session)
        if not running:
            return LoopEvaluation.stop()
        if self.options.wait_timeout_s:
            ids = [task.id for task in running]
            await provider.wait(context.session, ids, timeout_s=self.options.wait_timeout_s)
        values = {
            self.INCOMPLETE_TASKS_PLACEHOLDER: "\n".join(
                [f"- #{task.id} ({task.agent}): {task.description}" for task in running]
            ),
            self.INCOMPLETE_TASK_COUNT_PLACEHOLDER: str(len(running)),
        }
        return LoopEvaluation.continue_(fill(self._template, values))
