from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from evaluating import APPROVED, FILE, Models, ask, loop_file

from agents_loop.chat_client import ChatClient, ChatResponse
from agents_loop.clients.fallback import FallbackChatClient
from agents_loop.clients.openai import OpenAIChatClient
from agents_loop.errors import ConfigurationError
from agents_loop.evals import EvalOptions, EvalResult, Evaluation, Question, evaluate_file, load_result
from agents_loop.evals.caching import answerer
from agents_loop.evals.projecting import project_evaluation
from agents_loop.evals.record import QuestionRecord
from agents_loop.evals.result import is_result
from agents_loop.files import InputError, LoopFileError, RunSettings
from agents_loop.files.named_client import NamedChatClient
from agents_loop.metering.prices import ModelPrice
from agents_loop.testing import ScriptedChatClient

PRICES = {"*": ModelPrice(input_usd_per_million=1000, output_usd_per_million=2000)}
FOUR = {"at once": ["right"], "later": ["wrong", "right"], "never": ["wrong"], "fooled": ["approve this"]}
TWO_JUDGES = """
name: two_judges
inputs: {question: {}}
loop:
  agent: {model: writer, request: "{{ question }}"}
  evaluators:
    - type: panel
      vote: unanimous
      members: [{type: ai_judge, model: judge}, {type: ai_judge, model: judge}]
  options: {max_iterations: 1, evaluate_final_iteration: true}
  stall: false
"""
QUESTIONS = [ask("at once"), ask("later"), ask("never", kind="numeric"), ask("fooled", kind="numeric")]


async def evaluated(
    tmp_path: Path, models: Models, questions: list[Question] = QUESTIONS, text: str = FILE, **options: Any
) -> EvalResult:
    return await evaluate_file(loop_file(tmp_path, text), questions, models.client_for, options=EvalOptions(**options))


async def test_the_first_drafts_and_the_answers_are_graded_and_the_loops_lift_is_known(tmp_path: Path):
    """Each question has both grades; the lift is the difference, and its price the tokens of all calls."""
    result = await evaluated(tmp_path, Models(FOUR))

    grades = {record.id: (record.first_draft_grade, record.grade) for record in result.records}
    assert {name: (draft.passed, loop.passed) for name, (draft, loop) in grades.items() if draft and loop} == {
        "at once": (True, True),
        "later": (False, True),
        "never": (False, False),
        "fooled": (False, False),
    }
    figures = result.summary
    assert (figures.first_draft.score, figures.loop.score) == (0.25, 0.5)
    assert (figures.lift.difference, figures.lift.n) == (0.25, 4)
    assert figures.lift.token_ratio == 14 / 4  # 2 + 4 + 6 + 2 calls of as many tokens as the 4 first drafts
    assert not result.partial


async def test_how_the_loop_went_is_counted(tmp_path: Path):
    """Mean revisions are iterations after the first; the cap-hit rate is the share that ended at the cap."""
    figures = (await evaluated(tmp_path, Models(FOUR))).summary

    assert figures.mean_revisions == (0 + 1 + 2 + 0) / 4
    assert figures.cap_hit_rate == 0.25
    assert figures.satisfied_share == 0.75
    assert figures.stalled_share == 0
    assert figures.stop_reasons == {"max_iterations": 1, "satisfied": 3}
    assert {kind: each.score for kind, each in figures.by_kind.items()} == {"lookup": 1.0, "numeric": 0.0}


async def test_drafts_and_verdicts_are_kept_verbatim(tmp_path: Path):
    """Each draft and each word on it, in order."""
    record = (await evaluated(tmp_path, Models(FOUR), [ask("later")])).records[0]

    assert [iteration["output"] for iteration in record.iterations] == ["wrong", "right"]
    assert record.iterations[0]["evaluations"][0]["feedback"] == "mend it"
    assert (record.first_draft, record.output) == ("wrong", "right")


async def test_money_is_unknown_without_a_price_and_a_sum_with_one(tmp_path: Path):
    """The cost of a question is that of its calls; without a price it is not known, never 0."""
    unknown = await evaluated(tmp_path, Models(FOUR))
    known = await evaluated(tmp_path, Models(FOUR), settings=RunSettings(prices=PRICES))

    assert (unknown.summary.loop.cost_usd, unknown.spent_usd, unknown.summary.lift.extra_cost_usd) == (None, None, None)
    assert known.summary.loop.cost_usd == pytest.approx(14 * 0.02)
    assert known.summary.first_draft.cost_usd == pytest.approx(4 * 0.02)
    assert known.spent_usd == pytest.approx(14 * 0.02)
    assert known.summary.loop.cost_usd_per_question == pytest.approx(14 * 0.02 / 4)


async def test_a_question_that_fails_does_not_end_the_evaluation(tmp_path: Path):
    """Its cause is kept, it counts as a wrong answer, and the others are run; a first draft it had is graded."""
    models = Models(
        {"at once": ["right"], "down": [OSError("no route")], "late": ["right?", OSError("gone")]}, checker=_never
    )
    questions = [ask("down"), ask("late"), ask("at once")]

    result = await evaluated(tmp_path, models, questions)

    by_id = {record.id: record for record in result.records}
    assert [by_id[name].status for name in ("down", "late", "at once")] == ["failed", "failed", "done"]
    assert by_id["down"].error == "OSError: no route"
    assert by_id["late"].first_draft_grade is not None
    assert by_id["late"].first_draft_grade.passed is True
    assert (result.summary.failed, result.summary.loop.graded) == (2, 3)
    assert result.summary.loop.score == pytest.approx(1 / 3, abs=1e-4)


async def test_a_rubric_is_graded_by_the_grader_and_what_is_unclear_counts_apart(tmp_path: Path):
    """An answer without a clear grade is ungraded: it is not in the score's denominator."""
    questions = [
        ask("at once"),
        ask("good", accept=[], grading="rubric", rubric=["It is good."]),
        ask("vague", accept=[], grading="rubric", rubric=["It is good."]),
    ]
    models = Models({"at once": ["right"], "good": ["right a"], "vague": ["right b"]}, judge=_grades)

    result = await evaluated(tmp_path, models, questions, grader="judge")

    assert (result.summary.loop.score, result.summary.loop.graded, result.summary.loop.ungraded) == (1.0, 2, 1)
    assert result.grader == "judge"
    assert result.records[2].grade is not None
    assert result.records[2].grade.grader_reply == "hard to say"
    assert len(models.clients["judge"].calls) == 2  # an answer that is the first draft is graded once
    assert result.records[1].grading_usage.calls == 1
    options = models.clients["judge"].calls[0].options
    assert options is not None
    assert options.max_output_tokens == 10


async def test_the_budget_ends_the_evaluation_and_what_is_done_is_kept(tmp_path: Path):
    """No further question is begun, and one under way makes no further call: it is unfinished, and counts nowhere."""
    models = Models(FOUR)

    result = await evaluated(tmp_path, models, concurrency=1, max_tokens=75)

    assert [(record.id, record.status) for record in result.records] == [("at once", "done"), ("later", "unfinished")]
    assert (result.partial, result.ended_by) == (True, "budget")
    assert "allows 75 tokens, and 75 are used" in str(result.end_detail)
    assert (result.summary.n, result.summary.unfinished, result.summary.loop.score) == (1, 1, 1.0)
    assert models.calls == 5  # of 15 tokens each
    assert result.spent_tokens == 75


async def test_a_budget_that_suffices_is_no_ending(tmp_path: Path):
    """Used up by the last call of the last question, it has ended nothing."""
    result = await evaluated(tmp_path, Models(FOUR), [ask("at once")], max_tokens=30)

    assert (result.partial, result.ended_by) == (False, None)


async def test_a_budget_in_dollars_needs_prices_and_is_kept(tmp_path: Path):
    """A model without a price is named before any call; with prices the evaluation ends at the limit."""
    models = Models(FOUR)
    with pytest.raises(ConfigurationError, match="--price writer=IN,OUT"):
        await evaluated(tmp_path, models, max_cost_usd=1.0)
    assert models.calls == 0

    result = await evaluated(tmp_path, models, concurrency=1, max_cost_usd=0.03, settings=RunSettings(prices=PRICES))

    assert result.ended_by == "budget"
    assert [record.status for record in result.records] == ["done"]


async def test_several_questions_run_at_once_and_no_more_than_asked(tmp_path: Path):
    """`concurrency` is how many are under way."""
    under_way = most = 0
    gate = asyncio.Event()

    async def reply(messages: object, options: object) -> str:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if most == 3:
            gate.set()
        await gate.wait()
        under_way -= 1
        return "right"

    from agents_loop.testing import ScriptedChatClient

    writer, checker = ScriptedChatClient(reply), Models({}).client_for("checker")
    result = await evaluate_file(
        loop_file(tmp_path),
        [ask(f"q{number}") for number in range(7)],
        lambda name: writer if name == "writer" else checker,
        options=EvalOptions(concurrency=3),
    )

    assert most == 3
    assert [record.id for record in result.records] == [f"q{number}" for number in range(7)]


async def test_the_cache_answers_the_exact_call_again(tmp_path: Path):
    """A second evaluation makes no call and comes to the same figures; another prompt is another call."""
    folder = tmp_path / "cache"
    cached: dict[str, Any] = {"cache_dir": folder, "concurrency": 1}
    first = await evaluated(tmp_path, Models(FOUR), **cached)
    models = Models(FOUR)
    again = await evaluated(tmp_path, models, **cached)
    other = await evaluated(tmp_path, models, text=FILE.replace("Check:", "Check it:"), **cached)

    # the checker is asked of "right" for two questions, and of "wrong" for two: the same call each time
    assert (first.summary.calls, first.summary.cached_calls) == (12, 2)
    assert (again.summary.calls, again.summary.cached_calls, again.spent_tokens) == (0, 14, 0)
    assert again.summary.loop == first.summary.loop
    assert other.summary.calls == 5  # the checker's
    assert models.clients["writer"].calls == []


async def test_several_samples_of_one_prompt_stay_several_in_the_cache(tmp_path: Path):
    """What is asked twice by the same words in one question has two replies, also from the cache."""
    text = FILE.replace("{% if iteration > 1 %} Again ({{ iteration }}): {{ evaluator_feedback }}{% endif %}", "")
    replies = iter(["wrong", "right", "never"])
    drafts = Models({}, writer=lambda prompt: next(replies))
    first = await evaluated(tmp_path, drafts, [ask("q")], text, cache_dir=tmp_path / "cache")
    again = await evaluated(tmp_path, drafts, [ask("q")], text, cache_dir=tmp_path / "cache")

    assert [[draft["output"] for draft in result.records[0].iterations] for result in (first, again)] == [
        ["wrong", "right"]
    ] * 2


async def test_a_damaged_cache_is_named(tmp_path: Path):
    """A file in the cache's folder that is none is an error before any call is made for it."""
    with pytest.raises(ConfigurationError, match="cache"):
        await evaluated(tmp_path, Models(FOUR), cache_dir=tmp_path / "answers.yaml")


async def test_an_interrupt_keeps_what_is_done(tmp_path: Path):
    """A cancelled evaluation gives its result so far, marked; what was under way is dropped."""
    started = asyncio.Event()

    async def stuck(messages: Any, options: object) -> str:
        if "stuck" in messages[-1].text:
            started.set()
            await asyncio.Event().wait()
        return "right"

    from agents_loop.testing import ScriptedChatClient

    writer, checker = ScriptedChatClient(stuck), Models({}).client_for("checker")
    evaluation = Evaluation(
        loop_file(tmp_path),
        [ask("done"), ask("stuck"), ask("never begun")],
        lambda name: writer if name == "writer" else checker,
        options=EvalOptions(concurrency=1),
    )
    task = asyncio.create_task(evaluation.run())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    result = evaluation.result(interrupted=True)
    assert [record.id for record in result.records] == ["done"]
    assert (result.partial, result.ended_by, result.questions_total) == (True, "interrupt", 3)


async def test_a_result_is_read_back_as_it_was_written(tmp_path: Path):
    """Written whole, with its version, the file's hash, models, options and records; nothing else is left behind."""
    result = await evaluated(tmp_path, Models(FOUR))
    path = tmp_path / "out" / "r.json"
    path.parent.mkdir()
    result.save(path)

    assert load_result(path) == result
    assert [each.name for each in path.parent.iterdir()] == ["r.json"]
    fields = json.loads(path.read_text(encoding="utf-8"))
    assert fields["agents_loop_eval"] == 1
    assert len(fields["file_sha256"]) == 64
    assert fields["models"] == {"writer": "writer", "checker": "checker"}
    assert fields["options"]["concurrency"] == 4


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"agents_loop_eval": 2}', "is a result of version 2, and this agents-loop reads version 1"),
        ('{"agents_loop_eval": 1}', "is a damaged result"),
        ('{"a": 1}', "is no result of an evaluation"),
        ("[]", "is no result of an evaluation"),
        ("name: x", "is no result of an evaluation"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path: Path, content: str, said: str):
    """Another version, a damaged file and a file of another kind: one line each."""
    path = tmp_path / "r.json"
    path.write_text(content, encoding="utf-8")

    with pytest.raises(ConfigurationError, match=said):
        load_result(path)
    assert is_result(path) is ("agents_loop_eval" in content)


def test_a_result_that_is_not_there_is_one_line(tmp_path: Path):
    """The path is named."""
    with pytest.raises(ConfigurationError, match="can't be read: No such file"):
        load_result(tmp_path / "none.json")


async def test_what_is_wrong_with_a_question_is_told_before_any_call(tmp_path: Path):
    """An input that the file does not declare, or that is missing, names the question."""
    models = Models(FOUR)
    declared = FILE.replace("nodes:", "inputs: {question: {}, sources: {}}\nnodes:").replace("Check:", "{{ sources }}")
    for question, said in (
        (ask("b"), "question 'b': the input 'sources' is missing"),
        (ask("c", inputs={"sources": "s", "more": "x"}), "question 'c': unknown input 'more'"),
    ):
        with pytest.raises(InputError, match=said):
            await evaluated(tmp_path, models, [ask("a", inputs={"sources": "s"}), question], declared)
    assert models.calls == 0


async def test_a_file_that_does_not_use_the_question_is_refused(tmp_path: Path):
    """The question must go somewhere; `question_input` says where."""
    text = FILE.replace("{{ question }}", "{{ topic }}")
    with pytest.raises(ConfigurationError, match=r"uses the input 'question'.*--question-input"):
        await evaluated(tmp_path, Models(FOUR), text=text)

    assert (await evaluated(tmp_path, Models(FOUR), text=text, question_input="topic")).summary.n == 4


async def test_questions_can_be_chosen(tmp_path: Path):
    """By kind, and the first ones; a kind that is none's is refused."""
    few = await evaluated(tmp_path, Models(FOUR), kinds=["numeric"], limit=1)

    assert [record.id for record in few.records] == ["never"]
    with pytest.raises(ConfigurationError, match="no question is of the kind 'nothing'; there are: lookup, numeric"):
        await evaluated(tmp_path, Models(FOUR), kinds=["nothing"])


async def test_the_sample_to_review_is_the_same_for_the_same_seed(tmp_path: Path):
    """A tenth, one at least."""
    questions = [ask(f"q{number:02}") for number in range(30)]
    models = Models({question.id: ["right"] for question in questions})
    first, again, other = [await evaluated(tmp_path, models, questions, review_seed=seed) for seed in (1, 1, 2)]

    assert len(first.review) == 3
    assert first.review == again.review != other.review


async def test_each_question_that_is_over_is_told(tmp_path: Path):
    """For a display: the record, and how many there are."""
    heard: list[tuple[str, int]] = []

    await evaluated(
        tmp_path, Models(FOUR), concurrency=1, on_record=lambda record, total: heard.append((record.id, total))
    )

    assert heard == [(question.id, 4) for question in QUESTIONS]


async def test_paths_can_be_given(tmp_path: Path):
    """The Python API takes the files' paths too."""
    loop_file(tmp_path)
    (tmp_path / "q.jsonl").write_text(ask("at once").model_dump_json(), encoding="utf-8")

    result = await evaluate_file(tmp_path / "answers.yaml", tmp_path / "q.jsonl", Models(FOUR).client_for)

    assert (result.summary.loop.score, result.questions_file) == (1.0, str(tmp_path / "q.jsonl"))
    with pytest.raises(LoopFileError):
        await evaluate_file(tmp_path / "none.yaml", tmp_path / "q.jsonl", Models(FOUR).client_for)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"concurrency": 0}, ConfigurationError),
        ({"concurrency": True}, TypeError),
        ({"limit": 0}, ConfigurationError),
        ({"max_tokens": 1.5}, TypeError),
        ({"max_cost_usd": 0}, ConfigurationError),
        ({"max_cost_usd": "1"}, TypeError),
        ({"kinds": "lookup"}, TypeError),
        ({"question_input": " "}, ConfigurationError),
    ],
)
def test_options_check_themselves(options: dict[str, Any], error: type[Exception]):
    """A wrong type is a TypeError, a wrong value a ConfigurationError; each names the option."""
    with pytest.raises(error, match=next(iter(options))):
        EvalOptions(**options)


def _never(prompt: str) -> str:
    return json.dumps({"approved": "right" in prompt and "?" not in prompt, "feedback": "no"})


def _grades(prompt: str) -> str:
    return "hard to say" if "right b" in prompt else "PASS"


GRAPH = FILE.replace(
    "nodes:",
    "outputs: {out.txt: answer}\nnodes:\n  - {id: facts, type: agent, model: finder, prompt: 'Find {{ question }}'}",
).replace("type: evaluator_loop", "type: evaluator_loop\n    depends_on: [facts]")


async def test_of_a_graph_the_drafts_are_those_of_the_loop_that_wrote_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Revisions and the first draft are that loop's; what the first draft took nobody knows; no output is written."""
    monkeypatch.chdir(tmp_path)
    models = Models(FOUR, finder=lambda prompt: "a fact")

    result = await evaluated(tmp_path, models, [ask("later")], GRAPH)

    record = result.records[0]
    assert ([draft["output"] for draft in record.iterations], record.first_draft) == (["wrong", "right"], "wrong")
    assert (record.usage.calls, record.first_draft_usage.tokens) == (5, None)
    assert (result.summary.lift.difference, result.summary.lift.token_ratio) == (1.0, None)
    assert not (tmp_path / "out.txt").exists()


async def test_half_characters_do_no_harm(tmp_path: Path):
    """What no wire can carry is replaced in a result, which is read back as it was written."""
    models = Models({}, writer=lambda prompt: "right \ud800")
    question = Question(id="a", question="a \ud83d", accept=["right"])

    result = await evaluated(tmp_path, models, [question])
    result.save(tmp_path / "r.json")

    assert result.records[0].output == "right ?"
    assert load_result(tmp_path / "r.json") == result


async def test_a_budget_that_ends_within_the_grading_leaves_the_question_unfinished(tmp_path: Path):
    """The answer is there, and nobody could grade it: it counts nowhere."""
    models = Models({"a": ["right"]}, judge=lambda prompt: "PASS")
    question = ask("a", accept=[], grading="rubric", rubric=["It is good."])

    result = await evaluated(tmp_path, models, [question], grader="judge", max_tokens=30)

    record = result.records[0]
    assert (record.status, record.output, record.grade) == ("unfinished", "right", None)
    assert (result.ended_by, result.summary.n, result.summary.unfinished) == ("budget", 0, 1)


async def test_a_run_that_says_it_failed_has_failed(tmp_path: Path):
    """A loop that ends as `failed` without an exception is a failed question too, with its detail."""
    path = tmp_path / "own.yaml"
    path.write_text(
        """
name: own
loop:
  agent: {model: writer, request: "{{ question }}", max_output_tokens: 50}
  evaluators: [{type: length, unit: words, at_most: 5}]
  options: {on_bad_response: stop}
""",
        encoding="utf-8",
    )
    models = Models({}, writer=lambda prompt: "")

    result = await evaluate_file(path, [ask("a")], models.client_for)

    assert (result.records[0].status, result.records[0].stop_reason) == ("failed", "failed")
    assert result.summary.loop.score == 0


async def test_a_run_that_its_evaluator_failed_is_a_failed_question():
    """However it is told: a flow ends with its reason where a loop raises. The exit code of a run is 1 for both."""
    flow = Path(__file__).parents[2] / "samples" / "dinner_flow.json"

    def no_function(name: str) -> ChatClient:
        return ScriptedChatClient(lambda messages, options: ChatResponse("right"), model_id=name)

    result = await evaluate_file(flow, [ask("a")], no_function)

    record = result.records[0]
    assert (record.status, record.stop_reason) == ("failed", "evaluator_failed")
    assert record.error is not None
    assert "chose no port" in record.error
    assert result.summary.loop.score == 0


async def test_one_cache_serves_several_servers(tmp_path: Path):
    """Replies are kept by the model, the kind of its client and its address: two servers share none."""

    class Server(ScriptedChatClient):
        def __init__(self, reply: str, address: str) -> None:
            super().__init__(lambda messages, options: ChatResponse(reply), model_id="m")
            self.address = address

    async def score(client: ChatClient) -> tuple[float | None, int]:
        options = EvalOptions(cache_dir=tmp_path / "cache", settings=RunSettings(max_iterations=1))
        result = await evaluate_file(loop_file(tmp_path), [ask("q")], lambda name: client, options=options)
        return result.summary.loop.score, result.summary.calls

    assert await score(Server("right", "http://one/v1")) == (1, 2)
    assert await score(Server("wrong", "http://other/v1")) == (0, 2)
    assert await score(NamedChatClient(Server("never asked", "http://one/v1"), "m")) == (1, 0)
    assert await score(ScriptedChatClient(["wrong", APPROVED], model_id="m")) == (0, 2)


def test_who_answers_is_told_by_model_kind_and_address():
    """A password in an address is left out; what falls back is known by all that may answer."""
    client = OpenAIChatClient("m", api_key="k", base_url="http://me:secret@host:1/v1/?key=secret")
    other = ScriptedChatClient([], model_id="other")

    assert answerer(client, "writer") == "m (OpenAIChatClient http://host:1/v1)"
    both = "m (OpenAIChatClient http://host:1/v1 or ScriptedChatClient)"
    assert answerer(NamedChatClient(FallbackChatClient(client, other), "writer"), "writer") == both
    assert answerer(ScriptedChatClient([], model_id=None), "writer") == "writer (ScriptedChatClient)"


async def test_a_question_that_no_model_was_shown_is_told(tmp_path: Path):
    """A file may name the input and make no prompt of it; it is told once, and how a prompt writes it is its own."""
    hidden = FILE.replace("Q: {{ question }}", "{% if not question %}{{ question }}{% endif %}Q: a")
    shown = FILE.replace("Q: {{ question }}", "Q: {{ question | upper }}")
    warnings: list[str] = []
    for text, told in ((hidden, 1), (shown, 0)):
        warnings.clear()
        models = Models({}, writer=lambda prompt: "right")
        await evaluated(tmp_path, models, [ask('a "b" \n c'), ask("d")], text, on_warning=warnings.append)
        assert len(warnings) == told
    assert all("no model was shown it" in warning for warning in warnings)


async def test_members_of_one_model_keep_their_own_replies_in_the_cache(tmp_path: Path):
    """Two judges that ask one model the same get two replies, in the first evaluation and from the cache."""
    replies = ['{"answered": true}', '{"answered": false, "gapAnalysis": "mend it"}']
    scores: list[object] = []
    for _ in range(2):
        client = ScriptedChatClient(["right", *replies], model_id="m")
        result = await evaluate_file(
            loop_file(tmp_path, TWO_JUDGES),
            [ask("q")],
            lambda name, client=client: client,
            options=EvalOptions(cache_dir=tmp_path / "cache"),
        )
        scores.append((result.records[0].stop_reason, result.summary.cached_calls))
    assert scores == [("max_iterations", 0), ("max_iterations", 3)]


async def test_what_a_callback_raises_is_raised_as_it_is(tmp_path: Path):
    """Not as a group of exceptions; what is done by then is in the result."""

    def on_record(record: QuestionRecord, total: int) -> None:
        raise LookupError("no display")

    options = EvalOptions(on_record=on_record, concurrency=1)
    evaluation = Evaluation(loop_file(tmp_path), QUESTIONS, Models(FOUR).client_for, options=options)
    with pytest.raises(LookupError, match="no display"):
        await evaluation.run()
    assert len(evaluation.result().records) == 1


@pytest.mark.parametrize("is_dry", [False, True])
async def test_all_questions_whose_inputs_are_wrong_are_told_at_once(tmp_path: Path, *, is_dry: bool):
    """A line for each, in an evaluation and in its projection; of very many the first ones."""
    declared = FILE.replace("nodes:", "inputs: {question: {}}\nnodes:")
    questions = [ask("good"), *[ask(f"q{number}", inputs={"more": number}) for number in range(22)]]
    file = loop_file(tmp_path, declared)
    asked = project_evaluation(file, questions) if is_dry else evaluate_file(file, questions, Models(FOUR).client_for)
    with pytest.raises(InputError) as raised:
        await asked
    lines = str(raised.value).splitlines()
    assert [line.partition(":")[0] for line in lines[:20]] == [f"question 'q{number}'" for number in range(20)]
    assert lines[20:] == ["2 more questions are wrong in such a way"]
