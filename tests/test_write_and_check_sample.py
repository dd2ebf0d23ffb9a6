"""The write-and-check sample, its corpus, and the questions over it."""

from __future__ import annotations

import importlib
import json
import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from agents_loop.checks.citations import find_citations
from agents_loop.files import load_loop_file
from agents_loop.judge_check import JudgeCheck, load_cases
from agents_loop.testing import ScriptedChatClient

SAMPLES = Path(__file__).parents[1] / "samples"
QUESTIONS = [json.loads(line) for line in (SAMPLES / "questions.jsonl").read_text("utf-8").splitlines()]
FIELDS = {"id", "kind", "question", "answer", "accept", "require", "reject", "abstain"}
FIELDS |= {"must_cite", "grading", "rubric", "inputs"}


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SAMPLES)
    return importlib.import_module("write_and_check")


def sources(module: ModuleType, question: str) -> str:
    found = module.Search(module.load_sections()).find(question)
    return "\n\n".join(f"[{section.citation}] {section.text}" for section in found)


async def test_the_sample(module: ModuleType, capsys: pytest.CaptureFixture[str]):
    """Samples: the draft cites a section that was not found, the checker says so, and the revision passes."""
    model = ScriptedChatClient(module.REPLIES)
    result = await module.main(model)
    out = capsys.readouterr().out
    assert out.startswith("found: service-letter#1, marl-manual#4, ")
    assert "\nMISSING: sluice-manual#4\n" in out
    assert out.endswith(">>> passed\n=== satisfied, 4 calls.\n")
    assert (len(model.calls), len(result.iterations)) == (4, 2)
    checked = model.calls[1].messages[1].text
    assert 'name="marl-manual#4">\nCleaning. Pull the plug first.' in checked
    assert "Every 4 weeks" not in checked


async def test_the_sample_at_its_cap(module: ModuleType, capsys: pytest.CaptureFixture[str]):
    """Samples: a draft that never passes is given all the same, after six calls, and that is said."""
    result = await module.main(ScriptedChatClient(module.REPLIES[:2] * 3))
    assert result.output.startswith("Once every 4 weeks.")
    assert capsys.readouterr().out.endswith(
        "=== max_iterations, 6 calls. 3 of 3 iterations: after 2 revisions the answer still does not pass its check\n"
    )


async def test_the_sample_by_code(module: ModuleType, capsys: pytest.CaptureFixture[str]):
    """Samples: plain code finds the same fault without a second prompt."""
    model = ScriptedChatClient([module.REPLIES[0], module.REPLIES[2]])
    await module.main(model, by_code=True)
    assert "it cites sluice-manual#4, not among the sources that were given" in capsys.readouterr().out
    assert len(model.calls) == 2


def test_the_corpus(module: ModuleType):
    """Samples: each section has a name of its own, and few words, for small models read slowly."""
    sections = module.load_sections()
    assert len({section.citation for section in sections}) == len(sections) == 23
    assert all(section.citation == find_citations(section.citation)[0] for section in sections)
    assert max(len(section.text.split()) for section in sections) <= 50


def test_words_that_nothing_shares(module: ModuleType):
    """Samples: what shares no word with the question is not found, nor is anything by words like "the"."""
    search = module.Search(module.load_sections())
    assert search.find("zebra?") == search.find("the of and?") == []


def test_the_questions():
    """Samples: thirty questions, five kinds, each with an id of its own and all fields."""
    assert len({question["id"] for question in QUESTIONS}) == len(QUESTIONS) == 30
    kinds = Counter(question["kind"] for question in QUESTIONS)
    assert kinds == {"lookup": 8, "multi-hop": 6, "numeric": 6, "unanswerable": 5, "conflicting": 5}
    assert all(set(question) == FIELDS for question in QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS, ids=[question["id"] for question in QUESTIONS])
def test_a_question(module: ModuleType, question: dict):
    """Samples: a question holds the sources that the search finds, with all that it must cite; its answer is right."""
    given = question["inputs"]["sources"]
    assert given == sources(module, question["question"])
    assert 2 <= len(given.split("\n\n")) <= 4
    assert set(question["must_cite"]) <= set(find_citations(given))

    def holds(name: str) -> list[bool]:
        return [re.search(pattern, question["answer"], re.IGNORECASE) is not None for pattern in question[name]]

    assert all(holds("require"))
    assert not any(holds("reject"))
    match question["grading"], question["kind"]:
        case "rubric", _:
            assert question["rubric"]
        case "exact", "unanswerable":
            assert any(holds("abstain"))
            assert question["must_cite"] == []
        case "exact", _:
            assert any(holds("accept"))
            assert question["must_cite"]


async def test_the_cases_and_their_file():
    """Samples: the judge of the file is checked over the cases; the writer hears of a draft as if it were its own."""
    cases = load_cases(SAMPLES / "judge_cases.jsonl")
    assert Counter(case.kind for case in cases) == {"repeat": 3, "blind_spot": 2, "trivial": 2, "serious": 2}

    def check(messages, options):
        sources, _, answer = messages[1].text.partition("<latest_response")
        names = {"warranty", "sluice-manual"}
        strays = [each for each in find_citations(answer, names=names) if each not in find_citations(sources)]
        return "\n".join(f"MISSING: {each}" for each in strays) or "ALL CITATIONS SUPPORTED"

    checker = ScriptedChatClient(check)
    writer = ScriptedChatClient(lambda messages, options: "I don't know.")
    loop_file = load_loop_file(SAMPLES / "answers_pass_token.yaml")
    clients = {"writer": writer, "checker": checker}
    report = await JudgeCheck(loop_file, cases, clients.__getitem__).run()
    assert report.passed
    by_name = {each.name: each.figures for each in report.checks}
    assert (by_name["agreement"]["right_rate"], by_name["blind_spots"]["pass_rate"]) == (1, 1)
    assert by_name["trivial_and_serious"]["serious"]["mean_revisions"] == 1
    asked = writer.calls[0].messages
    assert [message.role for message in asked] == ["system", "user", "assistant", "user"]
    assert "fenlight-manual#9" in asked[2].text
    assert "MISSING: fenlight-manual#9" in asked[3].text
