"""Code finds no fault with good answers to ordinary requests."""

from __future__ import annotations

import re

import pytest

from agents_loop.judging.requirements.claims import without_claims
from agents_loop.judging.requirements.countable import countable_demands
from agents_loop.judging.requirements.evenness import of_each_fault

ORDINARY = [
    (
        "Refactor my 30-line function so that it is shorter: it opens a file and counts words.",
        "```python\ndef count(path):\n    return len(open(path).read().split())\n```",
    ),
    (
        "Explain what this 12-line script does.",
        "It copies files.\nThen it ends.",
    ),
    (
        "Rename the variable old_total to total in this code.",
        "```python\ntotal = 1\n```",
    ),
    (
        "Write a sum in Python without using eval().",
        "```python\nprint(int('1') + 2)\n```",
    ),
    (
        "Replace foo() by bar() in my call.",
        "```python\nbar()\n```",
    ),
    (
        "What does strtok() do?",
        "It splits a string at delimiters, one token at a time.",
    ),
    (
        "Don't end with a question. Write a polite refusal.",
        "Thank you for asking. I am sorry, I can't.",
    ),
    (
        "Turn these bullet points into a paragraph: cheap, fast, safe.",
        "It is cheap, fast and safe.",
    ),
    (
        "Explain loops. No bullet points, please.",
        "A loop repeats.",
    ),
    (
        "Convert this numbered list to prose: 1. Wash. 2. Cut.",
        "First wash it, then cut it.",
    ),
    (
        "Convert this Markdown table to CSV: | a | b |",
        "a,b",
    ),
    (
        "How do JSON keys work?",
        "They are strings in double quotes.",
    ),
    (
        "Write a Python function that reads JSON and returns the keys sorted.",
        "```python\ndef keys(text):\n    return sorted(json.loads(text))\n```",
    ),
    (
        "The API returns only JSON. Explain how to parse it in Python.",
        "Use json.loads on the body.",
    ),
    (
        "Show a table with the columns sorted by price: tea 2, milk 1.",
        "| milk | tea |\n|---|---|\n| 1 | 2 |",
    ),
    (
        "Make a table with three columns showing name, price and stock of my goods.",
        "| Name | Price | Stock |\n|---|---|---|\n| tea | 2 | 3 |",
    ),
    (
        "I have 12 items in my cart. Give 3 ways to save money.",
        "1. Coupons\n2. Bulk\n3. Wait",
    ),
    (
        "I tried these 5 steps and it failed. What else can I try?",
        "- Restart\n- Reinstall",
    ),
    (
        "Name 5 dishes for each of 3 regions.",
        "- North\n  - a\n  - b\n  - c\n  - d\n  - e\n- South\n  - a\n  - b\n  - c\n  - d\n  - e\n- West\n  - a\n  - b\n  - c\n  - d\n  - e",
    ),
    (
        "Write a short blog post about tea. The title must be at most 5 words.",
        "# All about tea\n\nTea is a drink that people have loved for ages.",
    ),
    (
        "Write a mail to Ann about the meeting. The subject line should be under 6 words.",
        "Subject: Meeting on Friday\n\nHi Ann, we meet on Friday at ten in the large room.",
    ),
    (
        "Write an article about bees. Use at most two sentences for the introduction.",
        "Bees matter. They pollinate.\n\nThey live in hives. A hive has a queen. Workers fly out.",
    ),
    (
        "Write about the sea in 100 words.",
        "The sea is wide and blue. The sea is wide and blue. The sea is wide and blue. The sea is wide and blue. The sea is wide and blue. The sea is wide and blue. The sea is wide and blue. The sea is wide and blue. The sea is wide and blue. The sea is wide and blue. The sea is wide and blue. The sea is wide and blue. The sea is wide and blue. The sea is wide and blue. The sea is wide and blue. The sea is wide and blue. It is calm.",
    ),
    (
        "Which element has the atomic number 26?",
        "Iron.",
    ),
    (
        "Explain why the number 13 is unlucky for some.",
        "Thirteen is linked to old tales.",
    ),
    (
        "Give me a random number 10-20.",
        "14",
    ),
    (
        "Avoid the word can in this: You can go.",
        "The candle is lit; you may go.",
    ),
    (
        "Never use the word I. Describe your day.",
        "In the morning there was tea. It is good.",
    ),
    (
        "Do not use the word free. Write an ad for a gym.",
        "Feel the freedom of our gym.",
    ),
    (
        "Use the words correctly in a sentence: there, their.",
        "Their dog is over there.",
    ),
    (
        "Write a paragraph on salt and include the word count.",
        "Salt is a mineral. (4 words)",
    ),
    (
        "Summarize this in one sentence: Please send me a numbered list with at least 50 words and only JSON.",
        "Someone wants a long numbered list as JSON.",
    ),
    (
        "Translate into French: Write exactly three sentences about bullet points.",
        "Écrivez exactement trois phrases sur les puces.",
    ),
    (
        "Fix the bug in this code:\n```python\ndef load_all(x):\n    raise ValueError('no')\n```\nOnly show the changed line.",
        "`raise TypeError('no')`",
    ),
    (
        "Name three cities and describe each in a sentence.",
        "- Rome was founded in 753 and has many ruins.\n- Paris has 2 million people and a tower.\n- Vienna is famous for its music and cakes.",
    ),
    (
        "List three teas with a short description of each.",
        "- Sencha (Japan): fresh and green.\n- Assam (India): strong and malty.\n- Rooibos: red and mild.",
    ),
    (
        "Give three tips and explain each.",
        "- Sleep early: 8 hours help.\n- Drink water: 2 litres.\n- Walk outside: fresh air helps.",
    ),
    (
        "Write a haiku about rain.",
        "Rain on the tin roof\nThe cat sleeps by the window\nTea steams in the cup",
    ),
    (
        "Explain recursion in two sentences.",
        "A function that calls itself is recursive. It needs a base case, e.g. zero.",
    ),
    (
        "Give me a regex for dates and explain each part.",
        "`\\d{4}-\\d{2}`\n\n- `\\d{4}`: the year\n- `-`: a dash\n- `\\d{2}`: the month",
    ),
    (
        "List the planets with their diameters.",
        "- Earth: 12742 km\n- Mars: 6779 km",
    ),
    (
        "Write a SQL query that selects user_id and order_total from orders.",
        "SELECT user_id, order_total FROM orders;",
    ),
    (
        "Recommend a laptop for under 1000 euros in three sentences.",
        "Take the Aspire 5. It costs 650 euros. It is light.",
    ),
    (
        "Give a recipe for pancakes with ingredients and steps.",
        "Ingredients: flour, milk, eggs.\n1. Mix\n2. Fry",
    ),
    (
        "Compare TCP and UDP in a Markdown table with the columns feature, TCP and UDP.",
        "| Feature | TCP | UDP |\n|---|---|---|\n| order | yes | no |",
    ),
    (
        "Return only JSON with the keys name and age for Ann, 30.",
        '{"name": "Ann", "age": 30}',
    ),
    (
        "Write a cover letter for a teacher, no more than 2 sentences in any paragraph.",
        "Dear Sir or Madam, I teach. I love it.\n\nI have ten years of practice. I sing too.\n\nYours, Ann",
    ),
    (
        "Write a two-line greeting for Ann's card.",
        "Happy birthday, Ann!\nAll the best for the year.",
    ),
    (
        "Write a 4-line poem with a title.",
        "Rain\n\nIt falls\non us\nall day\nand night",
    ),
    (
        "Summarize the plot of Hamlet in at most 30 words.",
        "A prince avenges his father, and nearly everybody dies.",
    ),
    (
        "Explain the difference between let and const, with a code example for each.",
        "`let` may change:\n```js\nlet a = 1\n```\n`const` may not:\n```js\nconst b = 2\n```",
    ),
    (
        "Suggest three names for a cat and say why.",
        "1. Milo: short\n2. Luna: soft\n3. Otto: funny",
    ),
    (
        "Plan a day in Rome: morning, noon, evening. For each, one sight with the opening time.",
        "- Morning: Colosseum, 9:00\n- Noon: Pantheon, 9:00\n- Evening: Trevi fountain, always open",
    ),
    (
        "I wrote a 500 word essay. How do I cut it to 200 words?",
        "Cut examples first, then adverbs.",
    ),
    (
        "Explain how list comprehension with a max(3 items) filter works.",
        "It keeps the first few.",
    ),
    (
        "Write a tweet about our sale, no more than 20 words, with two hashtags.",
        "Big sale this weekend: all shoes half price! #sale #shoes",
    ),
    (
        "Describe our refund policy in three bullet points.",
        "- 30 days\n- Receipt needed\n- Money back in a week",
    ),
    (
        "Write a docstring for get_user(id).",
        '"""Return the user with the given id, or None."""',
    ),
    (
        "What's the output of print(len('abc'))?",
        "3",
    ),
    (
        "What is the item(s) limit per order?",
        "Ten per customer.",
    ),
    (
        "Write a story with at least three characters, in about 50 words.",
        "Ann, Bob and Cy went out. They came back.",
    ),
    (
        "Name the capital of each: France, Spain, Italy.",
        "- France: Paris\n- Spain: Madrid\n- Italy: Rome",
    ),
    (
        "Describe three jobs, each in a sentence with its pay.",
        "- A cook earns 2,000 euros.\n- A nurse earns 3,000 euros.\n- A pilot earns well over five thousand euros.",
    ),
    (
        "Explain the CEO(s) role in one paragraph.",
        "The head of the firm leads it.",
    ),
    (
        "Write a function that doesn't raise ValueError for empty text.",
        "```python\ndef f(t):\n    return t or None\n```",
    ),
    (
        "If the mail ends with a question, answer it: 'Can you come?'",
        "Yes, gladly.",
    ),
    (
        "Rewrite this more politely: Send me only JSON with keys a and b.",
        "Could you please send me JSON with these keys?",
    ),
    (
        "Give me 10 items for a packing list and 5 for the car.",
        "Packing:\n- a\n- b\n- c\n- d\n- e\n- f\n- g\n- h\n- i\n- j\n\nCar:\n- k\n- l\n- m\n- n\n- o",
    ),
]


@pytest.mark.parametrize(("request_text", "answer"), ORDINARY)
def test_a_good_answer_has_no_fault(request_text, answer):
    """What a request rules out, works on, asks about or wants of a part is no demand of the whole answer."""
    found = [(one.demand, fault) for one in countable_demands(request_text) if (fault := one.fault(answer))]
    clauses = [request_text, *re.split(r"[.:;]\s|, and ", request_text)]
    assert found == []
    assert {of_each_fault(clause, answer) for clause in clauses} == {None}


@pytest.mark.parametrize(
    ("demand", "answer"),
    [
        (
            "one benefit of each",
            "- Tea: a benefit is calm.\n- Coffee: its benefit is drive.\n- Milk: it makes bones strong.",
        ),
        (
            "how each ingredient is used",
            "- Flour is used as base\n- Eggs are used to bind\n- Salt brings out the taste",
        ),
        ("what each command does", "- `ls`: lists\n- `cd`: changes\n- `pwd` prints where you are"),
    ],
)
def test_each_in_other_words(demand, answer):
    """An item that says the same in other words lacks nothing."""
    assert of_each_fault(demand, answer) is None


@pytest.mark.parametrize(
    ("demand", "answer"),
    [
        ("each with its year", "- Fall of the wall, 1989\n- Moon landing, 1969\n- Founding of Rome"),
        ("explain each name", "- Milo: short and sweet\n- Luna: soft as the moon\n- Otto"),
    ],
)
def test_the_one_that_lacks_it(demand, answer):
    """The one item without what all others have is named."""
    assert "not for each" in of_each_fault(demand, answer)


def test_a_round_length():
    """So many words may be a tenth more or less, where the request does not say exactly."""
    about, strict = countable_demands("Write about the sea in 100 words."), countable_demands("In exactly 100 words.")
    assert [one.fault("sea " * 92) for one in about] == [None]
    assert [one.fault("sea " * 89) for one in about] == ["it has only 89 words: 90 to 110 words wanted"]
    assert [one.fault("sea " * 99) for one in strict] == ["it has only 99 words: 100 words wanted"]


@pytest.mark.parametrize(
    "answer",
    [
        "I gathered requirements from clients. I led the evaluation of offers.",
        "The judge ruled on Monday. We have many satisfied customers.",
        "A refund of the shipping fee is requested.",
        "The criteria are price and speed.",
    ],
)
def test_words_of_business_and_courts_are_no_claims(answer):
    """Requirements, judges and requests are an honest answer's subject as well."""
    assert without_claims(answer, "Write a text.") == answer
