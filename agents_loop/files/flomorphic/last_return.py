"""A `return` at the end of a script, where there is no function to return from: FloMorphic's editor takes it away."""

from __future__ import annotations

import re
from typing import Final

from agents_loop.files.flomorphic.js import syntax_error_in

_RETURN: Final = re.compile(r"(?<![\w$.])return(?![\w$])(?=[ \t]*\S)")
_COMMENT_AT_END: Final = re.compile(r"//[^\n]*\Z")
_MOST_TRIED: Final = 3
"""Occurrences of the word, from the last: those behind it may stand in comments."""


def without_last_return(code: str) -> str | None:
    """A script that is no JavaScript because it ends with a `return`, without that; `None` where that is not why.

    What stands before the `return` must be a script of its own, and what stands behind it one expression: only then is
    its value that of the script, whichever way it takes.
    """
    for found in list(_RETURN.finditer(code))[: -_MOST_TRIED - 1 : -1]:
        before, after = code[: found.start()], code[found.end() :]
        if not _is_expression(after) or syntax_error_in(before) is not None:
            continue
        kept = f"{before}void 0,{after}"  # a word, so that the line before it ends
        if syntax_error_in(kept) is None:
            return kept
    return None


def _is_expression(text: str) -> bool:
    bare = text.rstrip().rstrip(";").rstrip()
    without_comment = _COMMENT_AT_END.sub("", text.rstrip()).rstrip().rstrip(";")
    return any(syntax_error_in(f"({each}\n)") is None for each in dict.fromkeys([bare, without_comment]))
