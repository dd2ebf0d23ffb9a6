"""A judge that can't be fooled about what code knows: a rubric, checks, and the word of both.

    python samples/evidence_loop.py

It runs offline, with scripted models: the writer forgets things, and the judge is lenient. Put `OpenAIChatClient()`,
say, in the place of both. Counting is left to code, which is cheap and right; only what is left is asked of the judge.
"""

import asyncio

from agents_loop import (
    ChatClient,
    ChatClientAgent,
    EvidenceLoopEvaluator,
    LoopAgent,
    LoopResult,
    RubricCriterion,
    RubricLoopEvaluator,
    length_check,
    regex_check,
)
from agents_loop.testing import ScriptedChatClient

REQUEST = "Announce our spring concert, in at most twelve words, with the price."
RUBRIC = [
    RubricCriterion("when", "It says when the concert is.", weight=2),
    RubricCriterion("tone", "It sounds inviting.", required=False),
]
DRAFTS = [
    "We are very happy to announce to you that our concert is on 8 May.",
    "Our spring concert: do come, it is EUR 5!",
    "Our spring concert, on 8 May: do come, it is EUR 5!",
]
VERDICTS = [("met", "not_met"), ("not_met", "met"), ("met", "met")]


def graded(when: str, tone: str) -> str:
    parts = f'"when": {{"reason": "the day", "verdict": "{when}"}}, "tone": {{"reason": "style", "verdict": "{tone}"}}'
    return f'{{"criteria": {{{parts}}}, "answered": {"true" if when == "met" else "false"}}}'


async def main(writer: ChatClient, judge: ChatClient) -> None:
    checks = [length_check("words", at_most=12), regex_check(r"EUR \d+", name="names the price")]
    evaluator = EvidenceLoopEvaluator(RubricLoopEvaluator(judge, RUBRIC), checks)
    result = LoopResult.of(await LoopAgent(ChatClientAgent(writer), evaluator).run(REQUEST))
    for record in result.iterations:
        print(f"--- draft {record.number}: {record.response.text}")
        for word in record.evaluations:
            for each in word.details["checks"]:
                print(f"{'passed' if each['passed'] else 'FAILED'}: {each['check']}")
            print(f">>> {word.decision}, the rubric says {word.details['judge']['score']:.2f}\n{word.feedback or ''}")
    print(f"=== {result.stop_reason} after {len(result.iterations)}")


if __name__ == "__main__":
    asyncio.run(main(ScriptedChatClient(DRAFTS), ScriptedChatClient([graded(*verdict) for verdict in VERDICTS])))
