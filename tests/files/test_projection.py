from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from agents_loop.chat_client import ChatOptions, JsonSchemaFormat
from agents_loop.errors import ConfigurationError
from agents_loop.files import RunSettings, load_loop_file
from agents_loop.files.projection import Projection, estimated_tokens, project
from agents_loop.files.projection.client import CallCounter, ProjectingChatClient
from agents_loop.files.prompts import PromptError
from agents_loop.judging.rubric import CriterionVerdict
from agents_loop.judging.verdict import VERDICT_FORMAT
from agents_loop.messages import ChatMessage, ChatRole, DataContent, FunctionCallContent
from agents_loop.metering.prices import ModelPrice
from agents_loop.tools import FunctionTool

FILE = """
name: note
budget: {max_tokens: 100000}
nodes:
  - id: note
    type: evaluator_loop
    max_iterations: 3
    generator: {model: writer, max_output_tokens: 400, prompt: "Write on {{ topic }}.{% if iteration > 1 %} You wrote {{ previous_output }}{% endif %}"}
    evaluator: {model: critic, max_output_tokens: 200, prompt: "Judge: {{ candidate }}"}
"""
PRICES = {"writer": ModelPrice(input_usd_per_million=1, output_usd_per_million=10)}


def path_of(tmp_path: Path, text: str = FILE) -> Path:
    path = tmp_path / "note.yaml"
    path.write_text(text, encoding="utf-8")
    return path


async def projected(tmp_path: Path, text: str = FILE, **settings: Any) -> Projection:
    return await project(load_loop_file(path_of(tmp_path, text)), {"topic": "tides"}, RunSettings(**settings))


async def test_the_cap_is_assumed_to_be_hit(tmp_path: Path):
    """Each iteration has its call to the generator and its call to the evaluator, up to the cap; output is what each call allows."""
    found = await projected(tmp_path)

    assert [(call.who, call.iteration, call.model) for call in found.calls] == [
        (who, number, model) for number in (1, 2, 3) for who, model in (("agent", "writer"), ("evaluator", "critic"))
    ]
    assert found.tokens_out == 3 * (400 + 200)
    assert found.ended == "max_iterations"


async def test_prompts_are_rendered_and_counted_at_their_longest(tmp_path: Path):
    """A later prompt holds an earlier answer, which is as long as its call allows."""
    found = await projected(tmp_path)

    first, judged, second = found.calls[:3]
    assert first.tokens_in == estimated_tokens("Write on tides.")
    assert 400 <= judged.tokens_in <= 420
    assert 400 <= second.tokens_in <= 420


async def test_an_unknown_price_is_never_zero(tmp_path: Path):
    """What a model costs that has no price is unknown, and so is the total; the notes name the model."""
    found = await projected(tmp_path, prices=PRICES)

    assert [call.cost_usd is None for call in found.calls] == [False, True] * 3
    assert found.calls[0].cost_usd == pytest.approx((found.calls[0].tokens_in + 4000) / 1_000_000)
    assert found.cost_usd is None
    assert any("'critic'" in note and "'writer'" not in note for note in found.notes)


async def test_output_without_a_limit_is_unknown(tmp_path: Path):
    """A call without `max_output_tokens` has no output that could be known, and no cost."""
    found = await projected(tmp_path, FILE.replace("max_output_tokens: 400, ", ""), prices=PRICES)

    assert found.calls[0].tokens_out is None
    assert found.calls[0].cost_usd is None
    assert found.tokens_out is None
    assert any("'writer': max_output_tokens is not set" in note for note in found.notes)


async def test_a_budget_does_not_shorten_the_projection_but_is_named(tmp_path: Path):
    """The projection goes to the cap; where a budget of the file would end the run sooner, a note says so."""
    found = await projected(tmp_path, FILE.replace("100000", "1500"))

    assert len(found.calls) == 6
    assert any("the budget would end it after" in note for note in found.notes)


async def test_a_money_budget_needs_no_price(tmp_path: Path):
    """A budget in dollars whose prices nobody knows is no obstacle to a projection."""
    found = await projected(tmp_path, FILE.replace("max_tokens: 100000", "max_usd: 1.5"))

    assert len(found.calls) == 6
    assert found.cost_usd is None


async def test_the_cap_can_be_set(tmp_path: Path):
    """`max_iterations` stands in for the file's."""
    assert len((await projected(tmp_path, max_iterations=1)).calls) == 2


async def test_wrong_use_is_found_as_in_a_run(tmp_path: Path):
    """An input that is missing is an error here too."""
    with pytest.raises(ConfigurationError, match="'topic' is missing"):
        await project(load_loop_file(path_of(tmp_path)), {})


async def test_what_a_judge_is_asked_for_says_no():
    """A reply in a form is of that form, and everything in it denies."""
    counter = CallCounter()
    client = ProjectingChatClient("judge", counter)

    class Pick(BaseModel):
        verdict: CriterionVerdict
        missing: list[str]
        score: float
        nested: dict[str, int] | None

    verdict = await client.get_response([ChatMessage(ChatRole.USER, "?")], ChatOptions(response_format=VERDICT_FORMAT))
    picked = await client.get_response([ChatMessage(ChatRole.USER, "?")], ChatOptions(response_format=Pick))
    wild = JsonSchemaFormat("wild", {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}})
    endless = await client.get_response([], ChatOptions(response_format=wild))

    assert '"answered": false' in verdict.text
    read = Pick.model_validate_json(picked.text)
    assert (read.verdict, len(read.missing), read.score) == (CriterionVerdict.NOT_MET, 1, 0)
    assert endless.text == "{}"


async def test_the_first_function_is_called_and_no_code_is():
    """What a model may choose among is chosen: the first. A tool with code behind it is described, and never run."""
    counter = CallCounter()
    client = ProjectingChatClient("m", counter)
    choice = {"name": "continue", "parameters": {"type": "object", "properties": {"question": {}, "why": {}}}}

    def fatal(path: str) -> None:
        """Must not run."""
        raise AssertionError(path)

    routed = await client.get_response([], ChatOptions(tools=[choice, {"name": "answered"}]))
    plain = await client.get_response([], ChatOptions(tools=[FunctionTool(fatal)]))

    call = routed.messages[0].contents[0]
    assert isinstance(call, FunctionCallContent)
    assert (call.name, call.arguments) == ("continue", {"question": "projected"})
    assert plain.text.startswith("[projection")
    assert counter.calls[1].tokens_in > 0
    assert counter.offers_functions
    assert counter.offers_tools


async def test_files_in_messages_are_said_not_to_be_counted():
    """An image counts nothing, and a note says so."""
    counter = CallCounter()

    await ProjectingChatClient("m", counter).get_response(
        [ChatMessage(ChatRole.USER, [DataContent(b"x" * 9000, "image/png")])]
    )

    assert counter.sends_files
    assert counter.calls[0].tokens_in == 0


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("word " * 8, 10), ("a b c d", 4), ("x" * 400, 100), ("   ", 1)]
)
def test_tokens_are_words_or_a_quarter_of_the_characters(text: str, tokens: int):
    """The estimate is the larger of the number of words and a quarter of the characters."""
    assert estimated_tokens(text) == tokens


GRAPH = """
name: note
nodes:
  - {id: facts, type: agent, model: writer, max_output_tokens: 50, prompt: "Facts, as JSON."}
  - id: piece
    type: evaluator_loop
    depends_on: [facts]
    when: (facts | fromjson).ok
    max_iterations: 2
    generator: {model: writer, max_output_tokens: 50, prompt: "Of {{ (facts | fromjson).title }}."}
    evaluator: {model: critic, max_output_tokens: 50, prompt: "Line 3: {{ candidate.split('|')[2] }}"}
"""


async def test_what_only_real_answers_can_fill_in_is_counted_as_it_stands(tmp_path: Path):
    """A template or condition that a projected answer is not fit for does not end the projection: the notes name each."""
    found = await projected(tmp_path, GRAPH)

    assert [(call.node, call.who) for call in found.calls] == [
        ("facts", "agent"),
        *[("piece", who) for _ in range(2) for who in ("agent", "evaluator")],
    ]
    assert all(call.tokens_in > 50 for call in found.calls[1:])
    said = [note.partition(":")[2] for note in found.notes if "with a projected answer" in note]
    assert len(said) == 3
    for place in ("nodes[1].generator.prompt", "nodes[1].evaluator.prompt", "nodes[1].when"):
        assert [note for note in said if place in note], place


@pytest.mark.parametrize("prompt", ["{{ facts.__class__ }}", "{{ [topic][3] }}"])
async def test_what_no_answer_can_fill_in_ends_a_projection(tmp_path: Path, prompt: str):
    """A template that fails whatever a model answers is an error, as it is in a run."""
    with pytest.raises(PromptError, match="can't be rendered"):
        await projected(tmp_path, GRAPH.replace("Of {{ (facts | fromjson).title }}.", prompt))
