"""The sections of `samples/corpus`, and a keyword search in them: what the write-and-check sample looks up.

A section is a heading `## N. Title` and what stands below it; it is cited as `file#N`. The search is BM25, by `bm25s`
(the extra `samples`).
"""

import re
from pathlib import Path
from typing import NamedTuple

import bm25s

CORPUS = Path(__file__).parent / "corpus"
MOST_FOUND = 4


class Section(NamedTuple):
    """A passage that can be cited."""

    citation: str
    text: str
    """The section's title and what it says."""
    document: str
    """The title of the file, which is searched too."""


def load_sections(folder: Path = CORPUS) -> list[Section]:
    """The sections in the order of their files."""
    sections: list[Section] = []
    for path in sorted(folder.glob("*.md")):
        head, *parts = re.split(r"^## (?=\d+\. )", path.read_text("utf-8"), flags=re.MULTILINE)
        document = head.partition("\n")[0].removeprefix("# ")
        for part in parts:
            number, _, rest = part.partition(". ")
            title, _, text = rest.partition("\n")
            sections.append(Section(f"{path.stem}#{number}", " ".join(f"{title}. {text}".split()), document))
    return sections


class Search:
    """A keyword search in sections."""

    def __init__(self, sections: list[Section]) -> None:
        self._sections = sections
        self._index = bm25s.BM25(k1=1.5, b=0.75)
        self._index.index(_words([f"{section.document} {section.text}" for section in sections]), show_progress=False)

    def find(self, question: str, most: int = MOST_FOUND) -> list[Section]:
        """The sections that share words with the question, the best first."""
        k = min(most, len(self._sections))
        places, scores = self._index.retrieve(_words([question]), k=k, show_progress=False)
        return [self._sections[place] for place, score in zip(places[0], scores[0], strict=True) if score > 0]


def _words(texts: list[str]) -> bm25s.tokenization.Tokenized:
    return bm25s.tokenize(texts, stopwords="en", show_progress=False)
