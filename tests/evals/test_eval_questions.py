from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from agents_loop.evals import Question, QuestionsError, load_questions
from agents_loop.evals.questions import parse_questions

GOOD = {"id": "a", "question": "Why?", "accept": ["because"]}


def lines(*questions: object) -> str:
    return "\n".join(question if isinstance(question, str) else json.dumps(question) for question in questions)


def problems_of(text: str) -> list[str]:
    with pytest.raises(QuestionsError) as caught:
        parse_questions(text, "q.jsonl")
    return list(caught.value.lines)


def test_questions_are_read_in_order_and_blank_lines_are_none(tmp_path: Path):
    """Each line is a question; a byte order mark and blank lines are nothing."""
    path = tmp_path / "q.jsonl"
    path.write_text(
        "\ufeff" + lines(GOOD, "", {**GOOD, "id": "b", "inputs": {"n": 3, "x": True}}) + "\n", encoding="utf-8"
    )

    read = load_questions(path)

    assert [question.id for question in read] == ["a", "b"]
    assert read[1].inputs == {"n": 3, "x": True}
    assert read[0] == Question(id="a", question="Why?", accept=["because"])


def test_every_problem_is_told_at_once_with_its_line():
    """One line each for all that is wrong, with the file, the line and the place."""
    found = problems_of(
        lines(
            GOOD,
            {"id": "a", "question": "Again?", "accept": ["x"]},
            {"id": "b", "question": " ", "accept": ["("], "colour": 1},
            {"id": "c", "question": "?", "accept": "x", "grading": "vague"},
            "no json",
            "[1]",
            {"id": "d", "question": "?", "accept": ["(a"], "reject": ["[b"], "inputs": {"iteration": "1"}},
            {"id": "e", "question": "?"},
            {"id": "f", "question": "?", "grading": "rubric"},
            '{"id": "g", "id": "h", "question": "?", "accept": ["x"]}',
            {"id": "i", "question": "?", "accept": ["x"], "inputs": {"sources": ["a"]}},
        )
    )

    assert [line.partition(": ")[0] for line in found] == [
        f"q.jsonl:{number}:1" for number in (2, 3, 3, 4, 4, 5, 6, 7, 7, 7, 8, 9, 10, 11)
    ]
    said = "\n".join(found)
    assert "'a' is the id of line 1 too" in said
    assert "colour: is unknown; known here: id, question" in said
    assert "question: must not be blank" in said
    assert "accept[0]: '(a' is no regular expression" in said
    assert "inputs.iteration: 'iteration' is a variable of the loop itself" in said
    assert "accept: is missing" in said
    assert "rubric: is missing" in said
    assert "the key 'id' is given twice" in said
    assert "inputs.sources: must be a string, a number, or true or false" in said


def test_an_unanswerable_question_needs_no_pattern():
    """Its abstention is graded; there is nothing that it must hold."""
    assert parse_questions(lines({"id": "a", "kind": "unanswerable", "question": "?"}), "q")[0].accept == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no question in it"),
        ("\n \n", "there is no question in it"),
        ('{"id": "a", "question": "' + "x" * 1_000_001 + '"}', "more than 1,000,000 characters"),
        ("[" * 100_000, "is no JSON object"),
        ('{"id": "a", "question": NaN}', "NaN is no number of JSON"),
    ],
)
def test_hostile_files_are_one_clear_line(text: str, said: str):
    """An empty file, a line without end, brackets without end: one line each."""
    found = problems_of(text)

    assert len(found) == 1
    assert said in found[0]


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path):
    """A file that is not there, and one that is not text, are named."""
    binary = tmp_path / "b.jsonl"
    binary.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(QuestionsError, match="can't be read: No such file"):
        load_questions(tmp_path / "none.jsonl")
    with pytest.raises(QuestionsError, match="can't be read: it is not UTF-8"):
        load_questions(binary)


def test_the_error_can_be_pickled():
    """As every error of ours."""
    with pytest.raises(QuestionsError) as caught:
        parse_questions("", "q.jsonl")

    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes

    assert (type(again), again.lines) == (QuestionsError, caught.value.lines)


def test_the_samples_questions_are_valid():
    """The thirty questions of the sample, of five kinds."""
    read = load_questions(Path(__file__).parents[2] / "samples" / "questions.jsonl")

    assert len(read) == 30
    assert len({question.kind for question in read}) == 5


def test_what_could_never_be_found_or_is_graded_otherwise_than_meant_is_told():
    """A citation without a number or with a blank in its name, and a kind that is nearly `unanswerable`."""
    found = problems_of(
        lines(
            {**GOOD, "must_cite": ["docs/Manual.md section 3", "manual", "my manual#2"]},
            {**GOOD, "id": "b", "kind": "Unanswerable "},
        )
    )

    assert found == [
        "q.jsonl:1:1: must_cite[1]: 'manual' is never found in an answer: write it as name#3",
        "q.jsonl:1:1: must_cite[2]: 'my manual#2' is never found in an answer: write it as name#3",
        "q.jsonl:2:1: kind: must be written as 'unanswerable': it is graded in its own way",
    ]


def test_what_is_no_json_is_told_with_its_column():
    """JSON knows no NaN; a line that breaks off says where; a list and a number are no objects."""
    found = problems_of(lines('{"id": "a", "question": oops}', '{"id": NaN}', "[1]", "12", "null", "[" * 100_000))

    assert found == [
        "q.jsonl:1:25: is no JSON object: Expecting value",
        "q.jsonl:2:1: is no JSON object: NaN is no number of JSON",
        "q.jsonl:3:1: is no JSON object: it is a list",
        "q.jsonl:4:1: is no JSON object: it is a number",
        "q.jsonl:5:1: is no JSON object: it is null",
        "q.jsonl:6:1: is no JSON object: it is nested too deeply",
    ]


def test_an_id_is_told_twice_also_where_its_line_has_other_faults():
    """All that is wrong is told at once."""
    found = problems_of(lines({**GOOD, "question": " "}, {**GOOD, "accept": 1}))

    assert [line.partition(": ")[2] for line in found] == [
        "question: must not be blank",
        "accept: Input should be a valid list",
        "id: 'a' is the id of line 1 too",
    ]


@pytest.mark.parametrize("text", [json.dumps([GOOD], indent=1), json.dumps(GOOD, indent=1)])
def test_json_over_several_lines_is_one_problem(text: str):
    """A list, or an object that other tools wrote over lines, is told once, not line by line."""
    assert problems_of(text) == [
        "q.jsonl:1:1: is one JSON value for all: write one JSON object a line, each a question"
    ]
