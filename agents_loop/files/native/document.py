"""What a file of our own format may say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from pydantic import ConfigDict, Field, create_model

from agents_loop.files.fields import Closed, InputSpec, Text
from agents_loop.files.native.agents import CHAT_AGENT, PYTHON_AGENT
from agents_loop.files.native.evaluators import EVALUATORS
from agents_loop.files.native.kinds import Form, forms, is_of, plain
from agents_loop.files.native.parts import Part
from agents_loop.files.native.prompted import PROMPTED_AGENT
from agents_loop.files.native.shared import BUDGETS, IN_TESTS, PRICES
from agents_loop.files.native.stalls import STALL
from agents_loop.loop.options import LoopAgentOptions

_BESIDE: Final = "it stands beside the options, under `loop`"

OPTIONS = Part(
    LoopAgentOptions,
    kinds={"resume_budget": BUDGETS, "prices": PRICES},
    left_out={
        "budget": _BESIDE,
        "stall": _BESIDE,
        "session_created_callback": "it is a callback of a Python program",
        "new_id": IN_TESTS,
        "clock": IN_TESTS,
    },
)

_DESCRIBED = ConfigDict(use_attribute_docstrings=True)
_REQUEST: Any = (Text, Field(description="What the agent is asked: a template with the inputs."))
ChatAgentSpec: type[Closed] = create_model("ChatAgent", __base__=CHAT_AGENT.model, request=_REQUEST)
PythonAgentSpec: type[Closed] = create_model("PythonAgent", __base__=PYTHON_AGENT.model, request=_REQUEST)
PromptedAgentSpec = PROMPTED_AGENT.model


def _says(key: str, spec: type[Closed]) -> Callable[[Any], bool]:
    def says(value: Any) -> bool:
        return isinstance(value, spec) or (isinstance(value, dict) and key in value)

    return says


AGENT: Any = forms(
    Form("prompted", _says("prompt", PromptedAgentSpec), is_of(), PROMPTED_AGENT.kind),
    Form("python", _says("object", PythonAgentSpec), is_of(), plain(PythonAgentSpec)),
    Form("chat", is_of(object), is_of(), plain(ChatAgentSpec)),
).annotation
"""What pydantic checks an agent by."""
AGENT_PARTS: Mapping[type[Closed], Part] = {
    PromptedAgentSpec: PROMPTED_AGENT,
    PythonAgentSpec: PYTHON_AGENT,
    ChatAgentSpec: CHAT_AGENT,
}
"""Who makes the agent, by what the file says of it."""

if TYPE_CHECKING:
    AgentValue: TypeAlias = Any
    EvaluatorValue: TypeAlias = Any
    OptionsValue: TypeAlias = Any
    BudgetsValue: TypeAlias = Any
    StallValue: TypeAlias = Any
else:
    AgentValue = AGENT
    EvaluatorValue = EVALUATORS.annotation
    OptionsValue = OPTIONS.model
    BudgetsValue = BUDGETS.annotation
    StallValue = STALL.annotation


class LoopSpec(Closed):
    """The loop: an agent, the evaluators that send it back, and how it runs."""

    model_config = _DESCRIBED

    agent: AgentValue
    """A chat agent (`model`, `request`), one that is a prompt (`model`, `prompt`), or one of your own (`object`)."""
    evaluators: Annotated[list[EvaluatorValue], Field(min_length=1)]
    """In order; the loop ends when all of them ask for no more."""
    options: OptionsValue = Field(default_factory=OPTIONS.model)
    """How the loop runs."""
    budget: BudgetsValue | None = None
    """What the run may spend; of several all hold."""
    stall: StallValue = True
    """When the run counts as stuck, and what follows; without a word it is on, with the usual signals and steps."""


class NativeDocument(Closed):
    """A loop as a file."""

    model_config = _DESCRIBED

    name: Text
    """What the loop is called."""
    description: str | None = None
    """For people."""
    inputs: dict[str, InputSpec] | None = None
    """What the templates of the file are given; without it, any input may be given, as text."""
    loop: LoopSpec
    """The loop itself."""
