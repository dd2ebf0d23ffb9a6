"""Write and check: a draft, a second prompt that checks its citations, and a revision by its verdict, at most twice.

    python samples/write_and_check.py              # scripted: no key, no model
    python samples/write_and_check.py --local      # the model on this machine (extra `local`)
    python samples/write_and_check.py --local --code "How long is the warranty of the Sluice?"

The sources are looked up in `samples/corpus` by keywords (extra `samples`). With `--code` plain code compares the
citations with the sources, without a second prompt: where it can, it is cheaper, and always right.
"""

import argparse
import asyncio

from corpus_search import Search, load_sections

from agents_loop import (
    ChatClient,
    ChatClientAgent,
    ChatOptions,
    LocalChatClient,
    LoopResult,
    PassTokenLoopEvaluator,
    PassTokenLoopEvaluatorOptions,
    citation_check,
    write_and_check,
)
from agents_loop.testing import ScriptedChatClient

QUESTION = "How often should I wipe the tray of the Marl 40?"
INSTRUCTIONS = """\
You answer questions about Quillfen devices from the given sources alone. Name each source that you use by its name in \
brackets, and end with a line "Sources:" that lists these names. If the sources don't tell, say so, and cite nothing."""
REPLIES = [
    "Once every 4 weeks.\nSources: sluice-manual#4",  # a section of the corpus, but not one that was found
    "MISSING: sluice-manual#4",
    "Every 4 weeks by the manual, every 2 weeks by the later letter.\nSources: marl-manual#4, service-letter#1",
    "ALL CITATIONS SUPPORTED",
]


async def main(model: ChatClient, question: str = QUESTION, *, by_code: bool = False) -> LoopResult:
    sources = Search(load_sections()).find(question)
    print("found:", ", ".join(section.citation for section in sources) or "nothing")
    passages = [(section.citation, section.text) for section in sources]
    check = PassTokenLoopEvaluator(model, PassTokenLoopEvaluatorOptions(sources=passages))
    if by_code:
        check = citation_check([citation for citation, _ in passages], abstains="(don't|do not) (tell|say|mention)")
    writer = ChatClientAgent(model, instructions=INSTRUCTIONS, options=ChatOptions(max_output_tokens=400))
    shown = "\n\n".join(f"[{citation}] {text}" for citation, text in passages)
    loop = write_and_check(writer, check, max_revisions=2)
    result = LoopResult.of(await loop.run(f"Sources:\n\n{shown}\n\nQuestion: {question}"))
    for record in result.iterations:
        print(f"--- draft {record.number}\n{record.response.text}\n>>> {record.evaluations[0].feedback or 'passed'}")
    print(f"=== {result.stop_reason}, {len(result.ledger)} calls. {result.stop_detail or ''}".rstrip())
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument("--local", nargs="?", const="qwen2.5-coder-1.5b", metavar="MODEL")
    parser.add_argument("--code", action="store_true")
    given = parser.parse_args()
    client = LocalChatClient(given.local) if given.local else ScriptedChatClient(REPLIES)
    asyncio.run(main(client, given.question, by_code=given.code))
