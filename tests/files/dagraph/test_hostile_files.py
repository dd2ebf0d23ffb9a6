from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graphs import Cast, agent, graph, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents_loop.files import InputError, LoopFileError, PromptError, load_loop_file
from agents_loop.files.conditions import Condition
from agents_loop.files.prompts import PromptTemplate

Write = Callable[[str], Path]

ESCAPES = [
    "x.__class__.__mro__",
    "x | attr('__class__')",
    "x['__class__']",
    "'{0.__class__}'.format(x)",
    "'{0.__class__.__init__.__globals__}'.format_map({'0': x})",
    "''.__class__.__base__.__subclasses__()",
    "self.__init__.__globals__",
    "cycler.__init__.__globals__.os",
    "range.__self__",
    "x | map(attribute='__class__') | join",
    "x.format.__self__.__class__",
]
FLOODS = [
    "'x' * 100000000",
    "2 ** 10000000",
    "'%0999999999d' % 1",
    "'{:999999999}'.format(1)",
    "range(100000000) | list",
    "(x * 1000000) + (x * 9999999)",
    "x | center(999999999)",
]


@pytest.mark.parametrize("where", ["prompt", "when"])
@pytest.mark.parametrize("expression", [*ESCAPES, *FLOODS])
async def test_a_template_can_not_leave_its_sandbox(write: Write, expression: str, where: str):
    """Nothing private of Python, and nothing that fills the memory: an error of one line, and no call is made."""
    more = {"prompt": f"prompt: {quoted('{{ ' + expression + ' }}')}", "when": f"prompt: p, when: {quoted(expression)}"}
    nodes = f"- {{id: a, type: agent, model: m, {more[where]}}}\n- {{id: b, type: agent, model: n, prompt: p}}\n"
    cast = Cast(m=[], n=["fine"])
    path, values = write(f"name: n\nnodes:\n{nodes}"), {"x": "text"}

    with pytest.raises((LoopFileError, PromptError, InputError)) as caught:
        await run(cast.build(path, values))

    assert "\n" not in str(caught.value)
    assert len(cast.clients["m"].calls) == 0


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x]\nb: &b [*a, *a]\n" + "".join(f"c{n}: &c{n} [*b, *b, *b, *b, *b, *b, *b]\n" for n in range(9)),
        "name: n\nnodes: &n\n- {id: a, type: agent, model: m, prompt: p, depends_on: *n}\n",
        "name: n\nnodes:\n- &n {id: a, type: agent, model: m, prompt: p, retry: *n}\n",
        "name: n\nnodes: [" + ", ".join("{id: a" + str(n) + "}" for n in range(6000)) + "]\n",
        "name: n\nnodes: !!python/object/apply:os.system ['true']\n",
        "name: n\nnodes: {id: a}\n",
        "name: n\nnodes: [[{id: a}]]\n",
        "name: " + "[" * 10_000,
        "name: n\noutputs: [a]\nnodes:\n- {id: a, type: agent, model: m, prompt: p}\n",
        "name: n\noutputs: {a: {b: c}}\nnodes:\n- {id: a, type: agent, model: m, prompt: p}\n",
        "name: n\nnodes:\n- {id: {}, type: {}, depends_on: {}, when: [], retry: [], budget: []}\n",
    ],
)
def test_a_hostile_file_is_lines_and_no_harm(write: Write, text: str):
    """Bombs, recursion, tags and wrong shapes: lines with what is wrong, at once."""
    with pytest.raises(LoopFileError) as caught:
        load_loop_file(write(text))

    assert all("\n" not in line for line in caught.value.lines)
    assert len(caught.value.lines) < 100 or "nodes[0]" in caught.value.lines[0]


@pytest.mark.parametrize(
    "step",
    [
        "{% set n.x = n.x ~ n.x %}",
        "{% set n.x %}{{ n.x }}{{ n.x }}{% endset %}",
        "{% set n.x = n.x | replace('a', 'aaaaaaaaaa') %}",
        "{% set n.x = n.x.replace('a', 'aaaaaaaaaa') %}",
        "{% set n.x = [n.x, n.x] | join %}",
        "{% set n.x = '%s%s' | format(n.x, n.x) %}",
        "{% set n.x = '{}{}'.format(n.x, n.x) %}",
        "{% set n.x = n.x | indent(1000000, true) %}",
        "{% set n.x = [n.x, n.x] %}{% if loop.last %}{{ n.x }}{% endif %}",
        "{% set n.x = [n.x, n.x] %}{% if loop.last %}{{ n | string | length }}{% endif %}",
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
    ],
)
def test_what_grows_step_by_step_has_an_end(step: str):
    """A template that doubles a value again and again, or loops without an end, is an error and fills no memory."""
    template = PromptTemplate(
        "{% set n = namespace(x='aaaaaaaaaa') %}{% for i in range(100) %}" + step + "{% endfor %}"
    )

    with pytest.raises(PromptError, match=r"too big|does too much"):
        template.render({})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "{% for a in [1, 2, 3] %}{{ loop.index }}/{{ loop.length }}{{ ',' if not loop.last }}{% endfor %}",
            "1/3,2/3,3/3",
        ),
        ("{% for x in [[1, [2]]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}", "12"),
        ("{% for x in [] %}{% else %}none{% endfor %}{{ 'a' ~ 1 }}{{ ['a', 'b'] | join(d='+') }}", "nonea1a+b"),
        ("{{ '%d of %d' | format(5, 9000000) }}{{ 9000000 is divisibleby 2 }}", "5 of 9000000True"),
    ],
)
def test_limits_change_nothing_of_what_is_small(source: str, expected: str):
    """Loops, tests, filters and operators give what they give in Jinja2."""
    assert PromptTemplate(source).render({}) == expected


async def test_a_huge_value_is_an_error_before_any_call(write: Write):
    """A prompt has an end, also where an input has none."""
    cast = Cast(m=[])

    with pytest.raises(LoopFileError, match="the prompt becomes longer than"):
        cast.build(write(graph(agent("a", prompt="{{ x }}"), agent("b"))), {"x": "y" * 10_000_001})


async def test_a_huge_output_is_an_error_of_the_next_node(write: Write):
    """What a model wrote fills no prompt without an end either; nested JSON is no crash."""
    for output, prompt in (("y" * 10_000_001, "{{ a }}"), ("[" * 100_000, "{{ a | fromjson }}")):
        cast = Cast(m=[output], n=[])
        lines = [agent("a"), agent("b", "depends_on: [a]", model="n", prompt=prompt)]

        with pytest.raises(PromptError):
            await run(cast.build(write(graph(*lines))))


def test_a_long_chain_is_no_recursion(write: Write):
    """Hundreds of nodes, each after the other, are read and put in order."""
    lines = [agent(f"n{n}", *([f"depends_on: [n{n - 1}]"] if n else [])) for n in range(500)]

    assert len(load_loop_file(write(graph(*lines))).waves) == 500


@given(source=st.text(alphabet="ab(){}[]'\"|.=<>+-*/%~ \n_&^!,:1é", max_size=40))
@settings(max_examples=300, deadline=None)
def test_whatever_a_condition_is_it_is_true_or_an_error(source: str):
    """Any text is a condition that can be asked, or a `PromptError` of one line."""
    values: dict[str, Any] = {"a": "text", "b": 2}
    said = ""
    try:
        Condition(source).is_true(values)
    except PromptError as error:
        said = str(error)
    assert "\n" not in said


@given(
    ids=st.lists(st.sampled_from("abcde"), min_size=1, max_size=5),
    edges=st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=8),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_graph_is_it_has_an_order_or_problems(write: Write, ids: list[str], edges: list[tuple[str, str]]):
    """Any ids and dependencies: waves in which each node comes after what it depends on, or lines of problems."""
    needs = {name: [after for before, after in edges if before == name] for name in ids}
    lines = [agent(name, f"depends_on: [{', '.join(needs[name])}]") for name in ids]
    try:
        waves = load_loop_file(write(graph(*lines))).waves
    except LoopFileError:
        return
    place = {name: number for number, wave in enumerate(waves) for name in wave}
    assert sorted(place) == sorted(ids)
    assert all(place[other] < place[name] for name in ids for other in needs[name])


@pytest.mark.parametrize(
    "more", ['when: "x.__class__", prompt: p', 'when: "x == \'text\'", prompt: "{{ x.__class__ }}"']
)
def test_what_needs_no_node_is_tried_before_any_call(write: Write, more: str):
    """A condition that only inputs decide, and the prompt that it lets through, are errors of the file, before the run."""
    nodes = f"- {{id: a, type: agent, model: m, {more}}}\n- {{id: b, type: agent, model: m, prompt: p}}\n"

    with pytest.raises(LoopFileError, match="unsafe"):
        Cast(m=[]).build(write(f"name: n\nnodes:\n{nodes}"), {"x": "text"})


def test_a_tag_is_an_error_wherever_it_stands(write: Write):
    """A list or a mapping with a tag is not silently read as one without, as no text with a tag is."""
    text = "name: n\nbudget: !money {max_tokens: 5}\nnodes: !graph\n- {id: a, type: agent, model: m, prompt: !ask p}\n"

    with pytest.raises(LoopFileError) as caught:
        load_loop_file(write(text))

    assert [tag in line for tag, line in zip(("!money", "!graph", "!ask"), caught.value.lines, strict=True)] == [
        True
    ] * 3
