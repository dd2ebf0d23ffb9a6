from __future__ import annotations

import pytest

from agents_loop.files.prompts import PromptError, PromptTemplate


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' * 10**9 }}",
        "{{ 10**9 * 'a' }}",
        "{{ [1] * 10**9 }}",
        "{{ 9 ** 99999 }}",
        "{{ 2 ** 100000 }}",
        "{% for i in range(10**9) %}x{% endfor %}",
        "{% for i in range(99999) %}{% for j in range(99999) %}{{ text }}{% endfor %}{% endfor %}",
        "{% set n = namespace(a='x') %}{% for i in range(60) %}{% set n.a = n.a + n.a %}{% endfor %}",
        "{{ text | center(10**9) }}",
        "{{ text.ljust(10**9) }}",
        "{{ text | indent(10**9) }}",
        "{{ '%999999999d' % 1 }}",
        "{{ '%*d' % (999999999, 1) }}",
        "{{ '%999999999d' | format(1) }}",
        "{{ '{:999999999}'.format(1) }}",
        "{{ ('a' * 9999999).replace('a', 'b' * 9999999) }}",
        "{{ ('a' * 9999999).join(['b'] * 999) }}",
    ],
)
def test_what_would_fill_the_memory_is_refused(source: str):
    """One operation of a template can't build up more than a prompt can hold."""
    with pytest.raises(PromptError, match=r"too big|longer than"):
        PromptTemplate(source).render({"text": "x" * 100})


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__ }}",
        "{{ text.__class__.__mro__ }}",
        "{{ text | attr('__class__') }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ self._TemplateReference__context }}",
        "{{ items.append(1) }}",
        "{{ missing }}",
        "{{ text.missing.more }}",
        "{{ text / 2 }}",
        "{{ 1 / 0 }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    ],
)
def test_what_is_not_allowed_or_fails_is_one_line(source: str):
    """The sandbox, strict variables and errors of values: one clear line, whatever it was."""
    with pytest.raises(PromptError) as caught:
        PromptTemplate(source).render({"text": "x", "items": [1]})

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "source", ["{% include 'x' %}", "{% import 'x' as y %}", "{% from 'x' import y %}", "{% extends 'x' %}"]
)
def test_other_files_are_out_of_reach(source: str):
    """A prompt can't read other files: that is found when it is loaded."""
    with pytest.raises(PromptError, match="can't read other files") as caught:
        PromptTemplate(f"first\n{source}")

    assert caught.value.line == 2


def test_too_much_nesting_is_one_line():
    """What Python can't compile is found when the prompt is loaded."""
    deep = "{% for a in b %}" * 30 + "{% endfor %}" * 30

    with pytest.raises(PromptError, match="nested too deep"):
        PromptTemplate(deep)
    with pytest.raises(PromptError, match="not a valid template"):
        PromptTemplate("{{ " + "(" * 5000 + " }}")


def test_errors_know_their_line():
    """A syntax error, and one that happens later, has the template's line."""
    with pytest.raises(PromptError) as syntax:
        PromptTemplate("one\ntwo {% if %}")
    with pytest.raises(PromptError) as later:
        PromptTemplate("one\n\n{{ nothing }}").render({})

    assert (syntax.value.line, later.value.line) == (2, 3)


def test_a_prompt_is_rendered_as_it_stands():
    """The last line break is kept, nothing is escaped, and what is usual in prompts works."""
    template = PromptTemplate(
        "{% for i in range(2) %}{{ loop.index }}. {{ text | upper }} & <b>\n{% endfor %}{'a': {b}}\n"
    )

    assert template.render({"text": "é"}) == "1. É & <b>\n2. É & <b>\n{'a': {b}}\n"


def test_variables_are_those_that_must_be_given():
    """Names that are set inside, optional ones and Jinja's own are not among them."""
    template = PromptTemplate(
        "{% set a = 1 %}{{ a }}{{ b|default(1) }}{{ range(3)|list }}\n{{ c }}{% if d is defined %}{% endif %}"
    )

    assert template.variables == {"c": 2}
