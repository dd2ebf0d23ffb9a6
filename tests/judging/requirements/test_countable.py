"""What code decides of a request."""

from __future__ import annotations

import pytest

from agents_loop.judging.requirements.countable import countable_demands


def faults(request_text, answer):
    """What code finds wrong with an answer."""
    return {one.demand: fault for one in countable_demands(request_text) if (fault := one.fault(answer)) is not None}


TABLE = "| Fruit | Season |\n|---|---|\n| Apple | autumn |"


@pytest.mark.parametrize(
    ("request_text", "right", "wrong"),
    [
        ("Explain tides in no more than 5 words.", "The Moon pulls the sea.", "The Moon pulls at all the seas."),
        ("Explain tides, under 5 words.", "The Moon pulls it.", "The Moon pulls the sea."),
        ("Explain tides in exactly two sentences.", "The Moon pulls. Seas rise.", "The Moon pulls."),
        ("A story opening of exactly two sentences.", "It rained. Who knocked?", "It rained."),
        ("Use at least 4 words.", "one two three four", "one two three"),
        ("Use more than three words.", "one two three four", "one two three"),
        ("Write a two-line poem.", "Snow\nfalls", "Snow"),
        ("Write a two-line poem with a title.", "Winter\n\nSnow\nfalls", "Winter\n\nSnow\nfalls\nin\nMay"),
        ("Give tips as a numbered list.", "1. Rest\n2. Read", "- Rest\n- Read"),
        ("Write the tips as bullets.", "- Rest", "Rest"),
        ("Give exactly three items as bullets.", "- a\n- b\n- c", "- a\n- b\n- c\n- d"),
        ("Write a shopping list with three items.", "- a\n- b\n- c\n- d", "- a\n- b"),
        ("List three planets.", "1. Mars\n2. Venus\n3. Earth", "1. Mars\n2. Venus"),
        ("Make a Markdown table of fruits.", TABLE, "Apple: autumn"),
        ("Make a table with the columns Fruit and Season.", TABLE, "| Fruit |\n|---|\n| Apple |"),
        ("Return JSON with the keys id and name (a string).", '{"id": 1, "name": "x"}', '{"id": 1}'),
        ("Output nothing but the JSON.", '{"id": 1}', 'Here it is: {"id": 1}'),
        ("A poem that contains the word lantern.", "Lanterns glow.", "Lamps glow."),
        ("Do not use the word very.", "It is good.", "It is very good."),
        ("Give tips. None of them may mention phones or screens.", "Sleep.", "Put the phone away."),
        ("A story that ends with a question.", "Who was there?", "Nobody was there."),
        ("Mention order number 4471.", "My order 4471 is late.", "My order is late."),
        ("Create a branch called fix-login.", "git switch -c fix-login", "git switch -c login"),
        ("Write parse_date(text).", "def parse_date(text): ...", "def parse(text): ..."),
        ("The function raises ValueError for text.", "raise ValueError", "raise TypeError"),
    ],
)
def test_both_directions(request_text, right, wrong):
    """A demand that code can decide holds for an answer that obeys, and names what is wrong with one that doesn't."""
    assert countable_demands(request_text)
    assert faults(request_text, right) == {}
    assert faults(request_text, wrong)


@pytest.mark.parametrize(
    ("request_text", "answer"),
    [
        ("Write a slogan of at most six words and state the opening hours.", "Fresh bread daily. Open from 6 to 2."),
        ("Explain each name in one sentence.", "A: short. B: fast. C: new."),
        ("Suggest names, with two words per name.", "Road Mate, Quick Spin, Long Way"),
        ("Summarise: 'It has exactly 3 sentences. Use the word cat. List five planets.'", "A short text."),
        ("Write about 100 words on snow.", "Snow falls."),
        ("Give at most five items as bullets.", "- a\n- b"),
        ("Write a JavaScript function for GitHub that sorts names.", "const sorted = names.toSorted()"),
        ("Write 3 paragraphs on cats.", "One.\n\n- a\n- b\n\nThree."),
        ("Name two causes and three remedies.", "Causes: a, b. Remedies: c, d, e."),
        ("Explain what a numbered page is.", "A page with a number."),
        ("Return a JSON object as an example of the keys that answer, then explain both keys.", "{}"),
        ("Compare them by price in a table with a note.", "Prices differ."),
        ("Don't use the words very and really.", "It is good."),
        ("A poem whose lines rhyme; the number of lines is free.", "Snow / so"),
    ],
)
def test_what_is_not_plain_is_left_to_the_model(request_text, answer):
    """A wording whose reach is unclear finds no fault: of a part, about, quoted, at most, a name that is no code."""
    assert faults(request_text, answer) == {}


def test_a_demand_is_there_once():
    """What a request says twice is one demand."""
    demands = [one.demand for one in countable_demands("Use a numbered list. Yes, a numbered list.")]
    assert demands == ["numbered list"]


@pytest.mark.parametrize(
    "text", ["", " ", "\ud800", "'" * 20_000, "at most " * 3_000, "JSON keys " * 3_000, "\n" * 20_000]
)
def test_odd_texts(text):
    """No text breaks the reading, as a request or as an answer."""
    countable_demands(text)
    faults(
        "Exactly 3 sentences. A two-line poem as bullets, a numbered list, nothing but JSON with keys a and b.", text
    )
