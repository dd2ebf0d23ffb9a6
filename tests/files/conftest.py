from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from limerick import DATA


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "loop.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def changed(write: Callable[[str], Path]) -> Callable[..., Path]:
    """The limerick file with some of its text replaced."""

    def changed(*replacements: tuple[str, str]) -> Path:
        text = (DATA / "limerick.yaml").read_text(encoding="utf-8")
        for old, new in replacements:
            assert old in text, old
            text = text.replace(old, new)
        return write(text)

    return changed
