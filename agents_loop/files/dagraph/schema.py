"""What a dagraph file may say here: a graph of nodes that are agents, or loops of a generator and an evaluator."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import AfterValidator, Discriminator, Field, Tag

from agents_loop.files.dagraph.error_names import EVERY_ERROR, check_error_name
from agents_loop.files.fields import Closed, Count, InputSpec, Text

DEFAULT_MAX_ITERATIONS = 3
"""What a node without `max_iterations` gets: dagraph's own default is not published; its example says 3."""
MAX_ATTEMPTS = 20


class Budget(Closed):
    """What may be spent."""

    max_tokens: Count | None = None
    """Input and output tokens, of all calls together."""
    max_usd: Annotated[float, Field(gt=0)] | None = None
    """US dollars, of all calls together."""


class Retry(Closed):
    """When a node that failed is run again."""

    max_attempts: Annotated[int, Field(ge=1, le=MAX_ATTEMPTS)] = 1
    """How often it is run at most."""
    backoff_seconds: Annotated[float, Field(ge=0, le=3600)] = 0
    """How long is waited before each further attempt."""
    retry_on: list[Annotated[Text, AfterValidator(check_error_name)]] = Field(default_factory=lambda: [EVERY_ERROR])
    """Names of exceptions, or of those that they derive from; `*`: any."""


class Part(Closed):
    """What a model is asked: by an agent, a generator or an evaluator."""

    model: Text
    prompt: Text
    """A Jinja2 template."""
    max_output_tokens: Count | None = None
    timeout_seconds: Annotated[float, Field(gt=0)] | None = None
    """How long one call may take."""
    fallback_chain: list[Text] = Field(default_factory=list[Text])
    """Who is asked where the model is down, in order."""

    @property
    def all_models(self) -> list[str]:
        """The model, and those that stand in for it."""
        return [self.model, *self.fallback_chain]


class Node(Closed):
    """What all nodes have."""

    id: Text
    depends_on: list[Text] = Field(default_factory=list[Text])
    """The nodes that are to be over before it runs; its prompts may hold their outputs, and those of nodes before."""
    when: Text | None = None
    """A Jinja2 expression; where it is falsy the node is skipped."""
    retry: Retry = Retry()
    budget: Budget = Budget()


class AgentNode(Node, Part):
    """A model that is asked once."""

    type: Literal["agent"]

    @property
    def parts(self) -> dict[str, Part]:
        """What it asks of models, by the key under which that stands; the node itself has none."""
        return {"": self}


class EvaluatorLoopNode(Node):
    """A generator, and an evaluator that sends it back until it approves."""

    type: Literal["evaluator_loop"]
    max_iterations: Count = DEFAULT_MAX_ITERATIONS
    generator: Part
    evaluator: Part

    @property
    def parts(self) -> dict[str, Part]:
        """What it asks of models, by the key under which that stands."""
        return {"generator": self.generator, "evaluator": self.evaluator}


def _form(node: object) -> str:
    """Which kind of node is meant, also where its type is missing or wrong."""
    fields = cast("dict[str, Any]", node) if isinstance(node, dict) else {}
    is_loop = fields.get("type") == "evaluator_loop" or "generator" in fields or "evaluator" in fields
    return "<agent>" if fields.get("type") == "agent" or not is_loop else "<evaluator_loop>"


AnyNode: TypeAlias = Annotated[
    Annotated[AgentNode, Tag("<agent>")] | Annotated[EvaluatorLoopNode, Tag("<evaluator_loop>")], Discriminator(_form)
]


class Document(Closed):
    """A whole file."""

    name: Text
    description: str | None = None
    budget: Budget = Budget()
    inputs: dict[str, InputSpec] | None = None
    """`None`: the file declares none, so that any may be given."""
    nodes: Annotated[list[AnyNode], Field(min_length=1)]
    outputs: dict[str, Text] = Field(default_factory=dict[str, Text])
    """The node whose output is written to a file, by the file's path."""
