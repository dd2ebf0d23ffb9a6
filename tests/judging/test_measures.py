"""What code counts in a text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_loop.judging.measures import (
    CodeBlock,
    code_blocks,
    count_lines,
    count_sentences,
    count_words,
    json_value,
    list_items,
    table_columns,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        (" \n\t ", 0),
        ("one two three", 3),
        ("A well-known fact: it's 3.14, and/or 1,000.", 7),
        ("yes — no", 2),
        ("yes—no", 2),
        ("- boots\n- rain coat\n* map", 4),
        ("1. boots\n2) rain coat\n(3) map\n**4.** rope", 5),
        ("In 2024. they met", 4),
        ("# A title\n\n**Bold words** and `code`.", 6),
        ("| a | b |\n|---|---|\n| 1 | 2 |", 4),
        ("```python\nprint(1)\nx = 2\n```", 3),
        ("日本語 is three", 5),
        ("🎉 ... -- !!! ___ fin", 1),
        ("e.g. this", 2),
        ("a\u00a0b\u2003c\u2028d", 4),
        ("\ufeffone", 1),
    ],
)
def test_words(text, words):
    """Measures: words are counted as a person does, markup aside."""
    assert count_words(text) == words


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", 0),
        ("One. Two! Three? Four", 4),
        ("It costs 3.50 dollars. Version 2.0.1 is out.", 2),
        ("Dr. Smith met Mrs. Jones, e.g. in Paris, i.e. at home.", 1),
        ("See Fig. 3 and No. 5. Then go on.", 2),
        ("He said no. Then he left.", 2),
        ("Pens, paper, etc. are here. Pens, paper, etc. Nothing else.", 3),
        ("J. R. R. Tolkien wrote it. So did I. Then he slept.", 3),
        ("The U.S. Army came. It left the U.S. The end.", 3),
        ("We meet at 5 p.m. on Monday. We meet at 5 p.m. The rest is open.", 3),
        ("On Jan. 5 it snowed. In Jan. It snowed.", 3),
        ('"Really?" he asked. "Yes!" she said.', 2),
        ('He said: "Go." She went.', 2),
        ("Wait... what? Wait... What?", 3),
        ("**Bold.** Then plain. _Italics!_ (In brackets.) Done", 5),
        ("What?! No!!! Yes.", 3),
        ("See https://example.org/a.b?c=d. And node.js is fine.", 2),
        ("Well done. 🎉", 1),
        ("1. Peel. 2. Slice.", 2),
        ("1. Peel them\n2. Slice. Then cook\n- Serve", 4),
        ("# A title. Really.\n\nOne sentence\nover two lines.\n\n**Notes**\n\nAnother one", 2),
        ("Title\n=====\n\nText.", 1),
        ("Text.\n\n---\n\nText.", 2),
        ("Code:\n\n```\nNot. A. Sentence.\n```\n\nThe end.", 2),
        ("| A. | B. |\n|---|---|\n| One. Two. | x |\n\nOne.", 1),
        ("If a > b. If b > c.", 2),
        ("Wait!!!?? No...yes.", 2),
        ("> Quoted. Twice.\n> And so on.", 3),
        ("今日は。元気です\uff01", 2),
        ("Acme Inc. announced it. Acme Inc. The rest failed.", 3),
        ("Is it B? It is plan B. The end.", 3),
    ],
)
def test_sentences(text, sentences):
    """Measures: abbreviations, decimals, initials and quotes end no sentence; headings, tables and code have none."""
    assert count_sentences(text) == sentences


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("no list at all - really", []),
        ("Pack:\n\n- boots\n- rain coat\n\nEnjoy!", ["boots", "rain coat"]),
        ("* a\n+ b\n• c\n1. d\n2) e\n(3) f\na) g", list("abcdefg")),
        ("- a\n\n- b\n\n\n- c", ["a", "b", "c"]),
        ("- a\n  - a1\n  - a2\n- b", ["a\n- a1\n- a2", "b"]),
        (
            "1. first\ngoes on\n2. second\n\n   with a paragraph\n\nThe end.",
            ["first\ngoes on", "second\nwith a paragraph"],
        ),
        ("  - indented\n  - as a whole", ["indented", "as a whole"]),
        ("- a\n---\n* * *\n- b", ["a", "b"]),
        ("**bold** is no item\n-no space\n-5 degrees\n3.5 is a number\n1984. A year", []),
        ("```\n- code\n- more\n```\n- real", ["real"]),
        ("- has code:\n  ```\n  - x\n  ```\n- b", ["has code:\n```\n- x\n```", "b"]),
        ("```markdown\n- a\n- b\n```", ["a", "b"]),
        ("```md\n- a\n```\n- b\n```\n", ["b"]),
        ("```markdown\n", []),
        ("**1.** one\n**2. two**", ["one", "**two**"]),
        ("-\n- b", ["", "b"]),
        ("- a\n# Title\n- b", ["a", "b"]),
        ("- a\r\n- b\r\n", ["a", "b"]),
    ],
)
def test_items(text, items):
    """Measures: the items of the outermost level, with their further lines; not rules, bold text, numbers or code."""
    assert list_items(text) == items


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}),
        ("null", None),
        (' \ufeff"x" '.strip(), "x"),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('Here it is:\n\n```\n{"a": 1}\n```\nEnjoy.', {"a": 1}),
        ('{"a": "```json\\n{}\\n```"}', {"a": "```json\n{}\n```"}),
        ('```json\n"a\u2028b"\n```', "a\u2028b"),
        ('  ~~~~JSON\n  {"a":\n   1}\n  ~~~~', {"a": 1}),
    ],
)
def test_json(text, value):
    """V2: the whole text is read first, fences in strings and all; then its only fence."""
    assert json_value(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{'a': 1}",
        '{"a": 1,}',
        '{"a": NaN}',
        "Infinity",
        '{"a": 1, "a": 2}',
        '{"a": 1} {"b": 2}',
        'It is {"a": 1}.',
        "```json\n{}\n```\n```json\n{}\n```",
        '```json\n{"a": \n',
        "[" * 100_000,
    ],
)
def test_what_is_no_json(text):
    """Measures: nothing unclear is JSON, and what is wrong is said as a ValueError."""
    with pytest.raises(ValueError, match=r"\w"):
        json_value(text)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("| Name | Age |\n| --- | ---: |\n| Ada | 36 |", ["Name", "Age"]),
        ("Name | Age\n:-- | --\nAda | 36", ["Name", "Age"]),
        ("Text before\n\n| A \\| B | |\n|:-:|---|\n", ["A | B", ""]),
        ("| only |\n|---|", ["only"]),
        ("| a | b |\n|---|", None),
        ("a | b\n\nc | d", None),
        ("Title\n-----", None),
        ("```\n| a | b |\n|---|---|\n```", None),
        ("", None),
    ],
)
def test_columns(text, columns):
    """Measures: a table's headings, where its delimiter row has as many cells."""
    assert table_columns(text) == columns


def test_a_blank_heading_between_borders_is_a_column():
    """Measures: a heading may be blank, the border after it is needed."""
    assert table_columns("| | A |\n|---|---|") == ["", "A"]
    assert table_columns("| A | |\n|---|---|") == ["A", ""]


def test_code_blocks():
    """Measures: fences close with as many of the same sign; one that is not closed goes to the end."""
    text = "a `x`\n```Python title=1\nif a:\n    b\n```\n````\n```\n````\n  ~~~\n  c\n d\n  ~~~\n```inline``` no\n```js\nend"
    assert code_blocks(text) == [
        CodeBlock("python", "if a:\n    b"),
        CodeBlock("", "```"),
        CodeBlock("", "c\nd"),
        CodeBlock("js", "end"),
    ]


def test_lines():
    """Measures: blank lines are none."""
    assert count_lines("a\n\n b \n \nc\n") == 3


@given(st.lists(st.text("abc é", min_size=1).filter(str.strip), min_size=1))
def test_joined_by_spaces(texts):
    """Measures: the words of a text are those of its parts."""
    assert count_words(" ".join(texts)) == sum(count_words(text) for text in texts)


@given(st.lists(st.from_regex(r"[A-Z][a-z]{2,8} [a-z]{4,9}", fullmatch=True), min_size=1, max_size=20))
def test_as_many_as_were_written(phrases):
    """Measures: n plain sentences are n sentences, n items n items."""
    assert count_sentences(" ".join(f"{phrase}." for phrase in phrases)) == len(phrases)
    assert list_items("\n".join(f"- {phrase}" for phrase in phrases)) == phrases


@given(st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(), st.lists))
def test_any_json_is_read_back(value):
    """Measures: what `json.dumps` writes is read, bare and fenced."""
    assert json_value(json.dumps(value)) == value
    assert json_value(f"```json\n{json.dumps(value, indent=1)}\n```") == value


@given(st.text(st.sampled_from("ab.!?-*|#`~>1) \n:—_\"'\u2028")) | st.text())
def test_every_text_can_be_measured(text):
    """Measures: no text raises, and nothing is counted below 0."""
    assert min(count_words(text), count_sentences(text), count_lines(text), len(list_items(text))) >= 0
    assert (table_columns(text), code_blocks(text)) is not None
