"""Prompt templates: literal placeholders, filled in one pass."""

from __future__ import annotations

import re
from collections.abc import Mapping


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace every placeholder of `values` (its keys, taken literally) in one pass.

    What is put in is never looked at again, so a value that holds a placeholder stays as it is.
    """
    if len(values) == 1:
        ((placeholder, value),) = values.items()
        return template.replace(placeholder, value)
    pattern = "|".join(re.escape(placeholder) for placeholder in sorted(values, key=len, reverse=True))
    return re.sub(pattern, lambda found: values[found.group()], template)
