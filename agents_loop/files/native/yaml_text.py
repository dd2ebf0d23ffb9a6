"""Plain values as YAML that people can read."""

from __future__ import annotations

import re
from typing import Any, cast

from agents_loop.errors import MissingExtraError

try:
    import yaml
except ImportError as error:
    raise MissingExtraError("agents_loop.files", "cli") from error

_WIDE = 110
_OTHER_BREAKS = re.compile("[\\r\\x85\\u2028\\u2029\\ufeff]")
"""What YAML takes for line breaks, or for the mark of a file's beginning: written as it is it would not come back."""


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, lists within their key, and nothing by an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT001, FBT002 - PyYAML's
        del indentless
        super().increase_indent(flow, False)  # noqa: FBT003 - PyYAML's


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _OTHER_BREAKS.search(text) else "|" if "\n" in text else None
    represent = cast("Any", dumper).represent_scalar
    return represent("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def yaml_text(value: Any) -> str:
    """A mapping as YAML, in its order."""
    return cast("Any", yaml).dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDE)
