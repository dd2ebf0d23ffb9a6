"""Law 23: nothing unclear is a pass."""

import json
import random
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_loop.judging.reading import read_reply

CASES = [json.loads(line) for line in (Path(__file__).parent / "verdicts.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_known_replies_are_read_as_agreed(case):
    """Law 23: each known reply has one right outcome, and its gap is what the judge said."""
    reading = read_reply(case["reply"])
    assert reading.answered == (case["outcome"] == "stop")
    if "gap" in case:
        assert case["gap"] in reading.gap
    if "nogap" in case:
        assert case["nogap"] not in reading.gap


@pytest.mark.parametrize(
    ("reply", "answered", "readable", "gap"),
    [
        ("\ufeff" + '{"answered": true}', True, True, "<unknown>"),
        ('{"an_swered": true}', True, True, "<unknown>"),
        ('{"answered": " TRUE "}', True, True, "<unknown>"),
        ('{"answered": 1}', False, False, "<unknown>"),
        ('{"answered": [true]}', False, False, "<unknown>"),
        ('{"answered": true, "ANSWERED": true}', False, False, "<unknown>"),
        ('{"answered": true, "gapAnalysis": "", "gap_analysis": "no map"}', False, False, "no map"),
        ('{"answered": true, "score": NaN}', False, False, '{"answered": true, "score": NaN}'),
        ('{"answered": true} trailing', False, False, '{"answered": true} trailing'),
        ('{"verdict": {"answered": true}}', False, False, "<unknown>"),
        ('{"answered": false, "reasoning": "no dates"}', False, True, "no dates"),
        ('{"answered": false, "gapAnalysis": ["no dates", "no map"]}', False, True, "- no dates\n- no map"),
        ('{"answered": false}\nVERDICT: DONE', False, True, '{"answered": false}'),
        ('{"answered": true}\nVERDICT: DONE', False, True, '{"answered": true}'),
        ('{"answered": false, "gapAn\nVERDICT: DONE', False, True, '{"answered": false, "gapAn'),
        ('Like {"name": "x"} it is whole.\nVERDICT: DONE', True, True, 'Like {"name": "x"} it is whole.'),
        ("- VERDICT: DONE", True, True, "<unknown>"),
        ("1. **VERDICT : done**.", True, True, "<unknown>"),
        ("`VERDICT: DONE`!", True, True, "<unknown>"),
        ("VERDICT: DONE?", False, True, "<unknown>"),
        ('"VERDICT: DONE"', False, True, "<unknown>"),
        ("# VERDICT: DONE", False, True, "<unknown>"),
        ("VERDICT: DONE, almost", False, True, ", almost"),
        ("VERDICT: UNDONE", False, False, "VERDICT: UNDONE"),
        ("**VERDICT:** MORE\nVERDICT: DONE", False, True, "<unknown>"),
        ("VERDICT\uff1a MORE\nVERDICT: DONE", False, True, "VERDICT\uff1a MORE"),
        ("VER\u200bDICT: MORE\nVERDICT: DONE", False, True, "VER\u200bDICT: MORE"),
        ("a line\u2028VERDICT: DONE", False, True, "a line"),
        ("VERDICT: DONE\r\nThat is all.\r\n", True, True, "That is all."),
        ("```VERDICT: DONE```", True, True, "<unknown>"),
        ('```json {"answered": true}```', True, True, "<unknown>"),
        ('~~~\n{"answered": true}\n~~~', True, True, "<unknown>"),
        ('```\n{"answered": true}\n```\n```\nx\n```', False, False, '```\n{"answered": true}\n```\n```\nx\n```'),
        ('<think>a</think><thinking>b</thinking>{"answered": true}', True, True, "<unknown>"),
        ('<THINK>a<think>b</think>c</THINK>{"answered": true}', True, True, "<unknown>"),
        ('<think>a</thinking>{"answered": true}', False, False, "<unknown>"),
        ('{"answered": false, "gapAnalysis": "remove the <think> tag"}', False, True, "remove the <think> tag"),
        ('a</think>{"answered": false}</think>{"answered": true}', True, True, "<unknown>"),
        ('{"answered": false, "gapAnalysis": "a closing </think> tag"}', False, True, "a closing </think> tag"),
        ('{"answered": true, "gapAnalysis": "", "note": "<think>"}', False, False, "<unknown>"),
        ('{"gapAnalysis": "no totals row"}\nVERDICT: DONE', False, True, "no totals row"),
        ("{'answered': False}\nVERDICT: DONE", False, True, "{'answered': False}"),
        ("{" * 1001 + "\nVERDICT: DONE", False, True, "{{{"),
        ('{"answered": false, "gapAnalysis": "", "missing": "no dates"}', False, True, "no dates"),
        ('{"answered": false, "gapAnalysis": {"dates": "none", "n": 3}}', False, True, "- dates: none"),
        ('Here: {"gapAnalysis": "no map"}', False, False, "no map"),
        ('```json title="v.json"\n{"answered": true}\n```', True, True, "<unknown>"),
        ('```json {.line}\n{"answered": true}\n````', True, True, "<unknown>"),
        ('```{"answered": true}\n```', True, True, "<unknown>"),
        ("**VERDICT:** **DONE**", False, True, "<unknown>"),
        ("VERD\u0130CT: DONE", False, True, "<unknown>"),
        ("VERD\u0131CT: DONE", False, True, "<unknown>"),
        ("That is my verdict. More could be said.\nVERDICT: DONE", True, True, "More could be said."),
        ("   \n\t ", False, False, "<unknown>"),
        ('{"gapAnalysis": "bad \\ud800 half", "answered": false}', False, True, "bad ? half"),
    ],
)
def test_each_corner_of_the_rule(reply, answered, readable, gap):
    """Law 23: what is removed, what is an object, what is a marker line, and what is left as the gap."""
    reading = read_reply(reply)
    assert (reading.answered, reading.readable) == (answered, readable)
    assert gap in reading.gap


HOSTILE = [
    "{" * 200_000,
    '{"a":' * 50_000,
    '{"answered":' * 20_000,
    "[" * 200_000,
    "<think>" * 20_000,
    "</think>" * 20_000,
    "`" * 100_000,
    '"' * 100_000,
    "verdict" * 20_000,
    "verdict: " * 20_000,
    "VERDICT: DONE" + " " * 100_000 + "x",
    "VERDICT:" + " " * 100_000 + "x",
    "* " * 50_000 + "x",
    "```\n" * 20_000,
    "- " + " " * 100_000 + "x",
    "```" + " " * 100_000 + "x```",
    "verdict" + "<b>" * 30_000 + "x",
    "verdict: " + "<" * 50_000,
    "verdict:" + "*" * 50_000,
    '{"' * 50_000,
]


@pytest.mark.parametrize("reply", HOSTILE, ids=[reply[:14].strip() for reply in HOSTILE])
def test_a_hostile_reply_is_read_in_no_time_and_is_no_pass(reply):
    """Law 23: depth and length crash nothing."""
    assert not read_reply(reply).answered


@pytest.mark.parametrize(
    "more",
    [
        'VERDICT: "MORE"',
        "VERDICT: \u201cMORE\u201d",
        "VERDICT: [MORE]",
        "VERDICT: (MORE)",
        "VERDICT: ~~MORE~~",
        "VERDICT: <b>MORE</b>",
        "VERDICT\\: MORE",
        "VERDICT:\n> MORE",
        "VERDICT - MORE",
        "VERDICT = MORE",
        "**VERDICT:** `MORE`",
        "VERDICT: \u041c\u041eRE",
        "V\u200bERDICT\uff1a MORE",
        "<b>VERDICT</b>: MORE",
    ],
)
def test_more_in_any_dress_is_no_pass(more):
    """Law 23: `VERDICT: MORE` anywhere, quoted, marked up or in look-alike letters, keeps the loop going."""
    assert not read_reply(f"{more}\nVERDICT: DONE").answered
    assert not read_reply(f"VERDICT: DONE\n{more}").answered


# --- replies built from pieces whose right reading is known by construction

WORDS = [
    "the",
    "table",
    "lacks",
    "units",
    "done",
    "more",
    "verdict",
    "true",
    "answered",
    "owner:",
    "risk,",
    "{x}",
    '"ok"',
]


class Builder:
    """Builds replies, and knows of each whether it passes."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def prose(self):
        return " ".join(self.rng.choices(WORDS, k=self.rng.randint(1, 8)))

    def key(self, name):
        cased = "".join([self.rng.choice([c.lower(), c.upper()]) for c in name])
        cut = self.rng.randint(0, len(name))
        return self.rng.choice([name, cased, cased[:cut] + "_" + cased[cut:]])

    def value(self):
        """A value of `answered`, and whether it is true."""
        clear = [True, "true", " True", "TRUE\n"]
        unclear = [False, None, 0, 1, "false", "yes", "partially", "", "truee", [True], {"answered": True}, 1.0]
        return (self.rng.choice(clear), True) if self.rng.random() < 0.5 else (self.rng.choice(unclear), False)

    def object(self):
        value, passes = self.value()
        pairs = [(self.key("answered"), value)]
        gap = self.rng.choice(["", self.prose(), "VERDICT: MORE", "VERDICT: DONE", '{"answered": false}'])
        pairs.append((self.key("gapAnalysis"), gap))
        if self.rng.random() < 0.3:
            pairs.append((self.rng.choice(["score", "notes"]), self.rng.choice([0.5, ["a"], {"answered": False}])))
        fault = self.rng.random()
        if fault < 0.1:
            pairs = pairs[1:]
            passes = False
        elif fault < 0.2:
            pairs.append((self.key("answered"), self.value()[0]))
            passes = False
        self.rng.shuffle(pairs)
        text = "{" + ", ".join([f"{json.dumps(key)}: {json.dumps(item)}" for key, item in pairs]) + "}"
        damage = self.rng.random()
        if damage < 0.1:
            return text[: self.rng.randint(1, len(text) - 1)], False
        if damage < 0.15:
            return f"[{text}]", False
        if damage < 0.25:
            return self.rng.choice([f"{self.prose()}\n{text}", f"{text}\n{self.prose()}", f"{text}\n{text}"]), False
        return text, passes

    def marker(self, word):
        verdict = self.rng.choice(["VERDICT", "verdict", "Verdict"])
        word = self.rng.choice([word, word.lower(), word.title()])
        return f"{verdict}{self.rng.choice([':', ': ', ' : ', ':  '])}{word}"

    def marked(self):
        done = self.marker("DONE")
        clear = self.rng.choice(
            [done, f"**{done}**", f"- {done}", f"`{done}`", f"{done}.", f"2) {done}!", f"  {done} "]
        )
        unclear = self.rng.choice([f'"{done}"', f"> {done}", f"{done}?", f"not {done}", f"{done} yet", f"({done})"])
        lines = [self.prose() for _ in range(self.rng.randint(0, 4))]
        where = self.rng.choice(["first", "last", "middle", "unclear", "none"])
        if where == "first":
            lines.insert(0, clear)
        elif where == "last":
            lines.append(clear)
        elif where == "middle":
            lines = [self.prose(), clear, self.prose()]
        elif where == "unclear":
            lines.append(unclear)
        passes = where in ("first", "last")
        if self.rng.random() < 0.3:
            lines.insert(self.rng.randint(0, len(lines)), f'I wrote "{self.marker("MORE")}" here')
            passes = False
        if self.rng.random() < 0.2:
            lines.insert(len(lines) // 2, 'so {"answered": ' + self.rng.choice(["true", "false"]) + "}")
            passes = False
        return self.rng.choice(["\n", "\r\n", "\n\n"]).join(lines), passes

    def reply(self):
        text, passes = self.object() if self.rng.random() < 0.5 else self.marked()
        if self.rng.random() < 0.25 and "```" not in text:
            text = f"```{self.rng.choice(['', 'json', 'text'])}\n{text}\n```"
        thinking = self.rng.random()
        inside = self.rng.choice([self.prose(), '{"answered": true}', "VERDICT: MORE", "VERDICT: DONE\n", "```"])
        name = self.rng.choice(["think", "thinking", "Think"])
        if thinking < 0.15:
            text = f"<{name}>{inside}</{name}>\n{text}"
        elif thinking < 0.25:
            text = f"{inside}</{name}>{text}"
        elif thinking < 0.3:
            text, passes = f"<{name}>{inside}\n{text}", False
        text = self.rng.choice(["", "\n", "  "]) + text + self.rng.choice(["", "\n", " \n\n"])
        return ("\ufeff" if self.rng.random() < 0.1 else "") + text, passes


def test_a_hundred_thousand_built_replies_pass_only_where_the_law_lets_them():
    """Law 23: of replies whose reading is known by construction, exactly those of (a) and (b) pass: none falsely."""
    builder = Builder(23)
    passed, seen = 0, set()
    for _ in range(100_000):
        reply, passes = builder.reply()
        reading = read_reply(reply)
        assert reading.answered == passes, reply
        assert reading.gap.strip(), reply
        passed += passes
        seen.add(reply)
    assert 10_000 < passed < 90_000
    assert len(seen) > 90_000


@settings(max_examples=500)
@given(st.text(alphabet=st.sampled_from(string.printable + "\ufeff\u2028\u200b\ud800"), max_size=200))
def test_arbitrary_text_crashes_nothing(reply):
    """Law 23: any text has a reading, and its gap can be written as UTF-8."""
    reading = read_reply(reply)
    assert reading.gap.encode()
    assert reading.answered in (True, False)
