"""Which names `retry_on` may hold."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest
from graphs import Cast, agent, graph, nodes, run

from agents_loop.files import LoopFileError, load_loop_file
from agents_loop.files.dagraph import error_names

Write = Callable[[str], Path]


def problems(path: Path) -> list[str]:
    with pytest.raises(LoopFileError) as caught:
        load_loop_file(path)
    return [line.removeprefix(str(path)) for line in caught.value.lines]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("[TimeotError]", "[0]: unknown exception 'TimeotError'; did you mean 'TimeoutError'? ("),
        (
            "['*', weekdays]",
            "[1]: unknown exception 'weekdays'; known are '*', Python's and those of the models' SDKs (",
        ),
        ("[BudgetExceededError]", "[0]: BudgetExceededError is never tried again: take it out"),
        ("[ApprovalPending]", "[0]: ApprovalPending is never tried again: take it out"),
        ("[KeyboardInterrupt]", "[0]: unknown exception 'KeyboardInterrupt'; "),
        ("[DeprecationWarning]", "[0]: unknown exception 'DeprecationWarning'; "),
        ("[Exception()]", "[0]: unknown exception 'Exception()'; did you mean 'Exception'? ("),
        ("[429]", "[0]: must be a string (put it in quotes if it looks like something else), not 429"),
        ("TimeoutError", ": must be a list, not 'TimeoutError'"),
    ],
)
def test_a_name_that_means_nothing_is_a_problem_with_its_place(write: Write, names: str, said: str):
    """`retry_on`: a word that is no exception's name would never be tried again, so the file is refused."""
    (found,) = problems(write(graph(agent("a", f"retry: {{max_attempts: 2, retry_on: {names}}}"))))

    line, column, place = found.split(":", 4)[1:4]
    assert (line, int(column) > 60) == ("3", True)
    assert place.startswith(" nodes[0].retry.retry_on")
    assert said in found


def test_every_wrong_name_is_told(write: Write):
    """All problems of a file are told at once."""
    text = graph(agent("a", "retry: {retry_on: [One, Two]}"), agent("b", "fallback_chain: [m]", "max_output_tokens: 0"))

    assert [line.split(": ")[1] for line in problems(write(text))] == [
        "nodes[0].retry.retry_on[0]",
        "nodes[0].retry.retry_on[1]",
        "nodes[1].fallback_chain[0]",
        "nodes[1].max_output_tokens",
    ]


@pytest.mark.parametrize("module", error_names.OF_SDKS)
def test_the_names_of_sdks_are_theirs(module: str):
    """Each name that is known as an SDK's is that of an exception of the installed one."""
    found = importlib.import_module(module)

    assert all(issubclass(getattr(found, name), Exception) for name in error_names.OF_SDKS[module])


class ShopDownError(Exception):
    pass


@pytest.mark.parametrize(
    ("name", "attempts"), [(f"{__name__}.ShopDownError", 2), ("builtins.Exception", 2), ("other.ShopDownError", 1)]
)
async def test_an_exception_of_one_s_own_stands_with_its_module(write: Write, name: str, attempts: int):
    """`retry_on`: any exception can be meant, by its module and name; nothing is imported for that."""
    text = graph(agent("a", f"retry: {{max_attempts: 2, retry_on: [{name}]}}"))
    built = Cast(m=[ShopDownError("x"), "there"]).build(write(text))

    if attempts == 1:
        with pytest.raises(ShopDownError):
            await run(built)
    else:
        result, _ = await run(built)
        assert nodes(result)["a"]["attempts"] == attempts


@pytest.mark.parametrize(
    ("chain", "said"),
    [
        ("[m]", "[0]: 'm' was asked by then (it is the model itself): take it out; `retry` asks again"),
        ("[k, m]", "[1]: 'm' was asked by then (it is the model itself): take it out; `retry` asks again"),
        ("[k, l, k]", "[2]: 'k' was asked by then (it is fallback_chain[0]): take it out; `retry` asks again"),
    ],
)
@pytest.mark.parametrize("part", ["", "generator", "evaluator"])
def test_a_chain_names_each_model_once(write: Write, part: str, chain: str, said: str):
    """`fallback_chain`: a model that is down is no help to itself."""
    more = f"model: m, prompt: p, fallback_chain: {chain}"
    parts = {each: more if each == part else "model: m, prompt: p" for each in ("generator", "evaluator")}
    loop = (
        f"- {{id: a, type: evaluator_loop, generator: {{{parts['generator']}}}, evaluator: {{{parts['evaluator']}}}}}\n"
    )

    (found,) = problems(write(graph(loop if part else f"- {{id: a, type: agent, {more}}}\n")))

    assert found.endswith(f"nodes[0].{part}{'.' if part else ''}fallback_chain{said}")
    assert found.startswith(":3:")
