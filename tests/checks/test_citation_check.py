"""The citation check: a comparison of two sets, without a model."""

import re

import pytest
from fakes import RecordingAgent
from hypothesis import given
from hypothesis import strategies as st

from agents_loop import (
    AgentResponse,
    AgentSession,
    AIJudgeLoopEvaluator,
    ConfigurationError,
    EvidenceLoopEvaluator,
    LoopAgent,
    LoopContext,
    LoopResult,
    citation_check,
)
from agents_loop.checks.citations import find_citations, normalized_citation
from agents_loop.testing import ScriptedJudge

ALLOWED = ["kettle#1", "docs/Toaster.md section 2"]


def context(answer, request="the request"):
    return LoopContext(RecordingAgent(), AgentSession(), request, AgentResponse(answer))


async def problem(answer, allowed=ALLOWED, **options):
    word = await citation_check(allowed, **options).evaluate(context(answer))
    assert word.decision == ("stop" if word.details["problem"] is None else "continue")
    return word.details["problem"]


@pytest.mark.parametrize(
    "citation",
    [
        "manual#3",
        "MANUAL#3",
        "docs/manual.md#3",
        "docs\\manual.md §3",
        "manual.md, section 3",
        "Manual section 3",
        "_manual#3_",
    ],
)
def test_citations_are_normalised(citation):
    """Citations: compared without case, folder and `.md`; `section 3` and `§3` are `#3`."""
    assert normalized_citation(citation).rstrip("_") == "manual#3"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(see [kettle#1], **toaster#2**, and kettle#1.)", ("kettle#1", "toaster#2")),
        ("by `docs/kettle.md#1` and _kettle#3_", ("kettle#1", "kettle#3")),
        ("by kettle.md section 1 and the kettle.md § 2", ("kettle#1", "kettle#2")),
        ("as the toaster, section 4, says; see section 3 of the manual, and page §9", ("toaster#4",)),
        ("#3 and kettle# and kettle#1b and kettle", ()),
        ("\u00fcber-kocher#12", ("\u00fcber-kocher#12",)),
    ],
)
def test_what_a_citation_is(text, found):
    """Citations: `name#3`; the words only after a file's name, or a source's."""
    assert find_citations(text, names=["toaster"]) == found


@pytest.mark.parametrize(
    "text",
    [
        "toaster#1, #6",
        "toaster#1 and #6",
        "toaster#1#6",
        "toaster#1-6",
        "toaster#1\u20136",
        "toaster §1, and §6",
        "toaster §§1, 6",
        "toaster.md sections 1 and 6",
        "toaster sections 1, or 6",
        "toaster.md section 1 (see toaster.md, §6)",
        "toaster#1 and toaster #6",
        "toaster (section 1), toaster: section 6",
    ],
)
async def test_no_further_number_is_overlooked(text):
    """Citations: a number that follows a source's is one of the same source, and a stray one is no pass."""
    assert find_citations(text, names=["toaster"]) == ("toaster#1", "toaster#6")
    assert "it cites toaster#6" in await problem(text, ["toaster#1"])


@pytest.mark.parametrize(
    "text",
    [
        "by toaster#1, 6 litres",
        "by toaster section 1, 6 litres",
        "toaster#1 - 6 litres",
        "toaster#1 and issue #6",
        "toaster#1 to 6",
        "toaster#1\n\n# 6. Parts",
    ],
)
def test_other_numbers_are_no_citations(text):
    """Citations: a plain number after a citation is the text's own."""
    assert find_citations(text, names=["toaster"]) == ("toaster#1",)


async def test_what_passes():
    """Citation check: each citation is one of the sources."""
    assert await problem("1.2 litres (Kettle.md#1), as toaster#2 says.") is None


async def test_what_is_no_source():
    """Citation check: the agent hears which citations are none, and which sources there are."""
    assert await problem("So says kettle#6, and kettle#1, and lamp#1.") == (
        "it cites kettle#6, lamp#1, not among the sources that were given. The sources are: kettle#1, toaster#2"
    )


async def test_at_least_one():
    """Citation check: by default an answer must cite something; how much is an option."""
    assert (await problem("1.2 litres.")).startswith("it cites nothing, and must cite a source at least. ")
    assert (await problem("kettle#1", at_least=2)).startswith("it cites kettle#1, and must cite 2 sources at least. ")
    assert await problem("1.2 litres.", at_least=0) is None


async def test_an_answer_that_abstains():
    """Citation check: who says that the sources don't tell needs no citation; what is cited must be there all the same."""
    options = {"abstains": "do not say|don't say", "sources_line": True}
    assert await problem("The sources DO NOT say.", **options) is None
    assert "lamp#1" in await problem("They don't say, but for\nSources: lamp#1", **options)


async def test_a_line_of_sources():
    """Citation check: on request all that is cited must stand in the line of sources, or below it."""
    options = {"sources_line": True}
    assert await problem("1.2 litres [kettle#1].\n**Sources:** kettle#1", **options) is None
    assert await problem("1.2 litres.\n\nSources:\n- kettle#1\n- toaster#2", **options) is None
    assert 'no line that begins with "Sources:"' in await problem("1.2 litres, kettle#1. My sources: it.", **options)
    said = await problem("1.2 litres, kettle#1.\nSources: toaster#2", **options)
    assert said.startswith("it cites kettle#1 without naming it in the line of sources. ")


@pytest.mark.parametrize("is_async", [False, True])
async def test_sources_that_were_looked_up(is_async):
    """Citation check: a callable of the context gives the sources of this request, sync or async."""

    def found(given):
        return [given.initial_messages[0].text]

    async def awaited(given):
        return found(given)

    check = citation_check(awaited if is_async else found)
    for request, decision in (("kettle#1", "stop"), ("lamp#1", "continue")):
        assert (await check.evaluate(context("kettle#1", request))).decision == decision


async def test_sources_that_stand_in_the_request():
    """Citation check: with `"request"` what the caller's messages name may be cited, and nothing else."""
    check = citation_check("request")
    asked = "[kettle#1] It holds 1.2 litres.\n\n[docs/kettle.md#2] Descale it.\n\nQuestion: how much?"
    assert (await check.evaluate(context("1.2 (Kettle#1, kettle#2)", asked))).decision == "stop"
    said = (await check.evaluate(context("kettle#3", asked))).details["problem"]
    assert said.endswith("The sources are: kettle#1, kettle#2")


async def test_no_sources():
    """Citation check: where nothing was found, each citation is one too many."""
    assert (await problem("kettle#1", lambda given: [])).endswith("that were given. There are no sources")


async def test_a_pattern_of_ones_own():
    """Citation check: a pattern's group is the citation, or all of it."""
    assert await problem("as in [Smith 2020]", ["smith 2020"], pattern=r"\[(.+?)\]") is None
    assert "doe99" in await problem("@doe99", ["@smith20"], pattern=re.compile(r"@\w+"))


async def test_in_a_loop():
    """Citation check: the agent hears what is wrong, and the loop ends with the draft that cites what is there."""
    loop = LoopAgent(RecordingAgent("So says kettle#6.", "So says kettle#1."), citation_check(ALLOWED))
    result = LoopResult.of(await loop.run("How much?"))
    assert (result.stop_reason, result.output) == ("satisfied", "So says kettle#1.")
    assert 'fails the check "cites its sources": it cites kettle#6' in result.iterations[1].input[-1].text


async def test_as_evidence():
    """Evidence: a judge that says done is overruled by a citation that is none."""
    both = EvidenceLoopEvaluator(AIJudgeLoopEvaluator(ScriptedJudge([True])), [citation_check(ALLOWED)])
    assert (await both.evaluate(context("kettle#6"))).decision == "continue"


@given(st.lists(st.sampled_from(["kettle#1", "toaster#2", "kettle#6", "and", "(", ")", ".", "\n"])).map(" ".join))
async def test_the_twin_is_exact(answer):
    """Write and check: the verdict is the comparison of two sets, the same each time."""
    cited = set(answer.split()) & {"kettle#1", "toaster#2", "kettle#6"}
    passes = bool(cited) and "kettle#6" not in cited
    assert [(await problem(answer)) is None for _ in range(2)] == [passes, passes]


@pytest.mark.parametrize(
    "text", ["a" * 300_000, "a-." * 100_000, "a " * 100_000, "\n" * 300_000, " ," * 100_000, "sources" * 50_000]
)
async def test_a_long_answer_is_read_at_once(text):
    """Citation check: no text makes the pattern backtrack without end: else this test would not end."""
    assert await problem(text, sources_line=True) is not None


async def test_many_citations():
    """Citation check: of very many citations the first are named."""
    said = await problem(" ".join(f"lamp#{number}" for number in range(50)))
    assert "lamp#19 and 30 more, not among" in said


@pytest.mark.parametrize(
    ("given", "options", "error"),
    [
        (None, {}, TypeError),
        ("kettle#1", {}, TypeError),
        ([1], {}, TypeError),
        (ALLOWED, {"pattern": 3}, TypeError),
        (ALLOWED, {"pattern": re.compile(b"x")}, TypeError),
        (ALLOWED, {"pattern": "("}, ConfigurationError),
        (ALLOWED, {"abstains": "("}, ConfigurationError),
        (ALLOWED, {"at_least": -1}, ConfigurationError),
        (ALLOWED, {"at_least": True}, TypeError),
        (ALLOWED, {"name": " "}, ConfigurationError),
    ],
)
def test_wrong_use(given, options, error):
    """Design: what is wrong is named when the check is made."""
    with pytest.raises(error):
        citation_check(given, **options)


async def test_a_callable_that_gives_something_else():
    """Citation check: that is an error, with the check's name, and no verdict."""
    with pytest.raises(TypeError, match="allowed must") as raised:
        await problem("x", lambda given: "kettle#1")
    assert raised.value.__notes__ == ["raised in the check 'cites its sources'"]
