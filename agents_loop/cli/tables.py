"""Tables in plain text, for standard output: the same in a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agents_loop.cli.text import one_line


def render_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = ()) -> str:
    """Columns as wide as their widest cell.

    Args:
        header: The columns' names.
        rows: The cells.
        right: The columns that stand at the right: numbers.
    """
    cells = [[one_line(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = [
        "  ".join(
            cell.rjust(width) if name in right else cell.ljust(width)
            for cell, width, name in zip(row, widths, header, strict=True)
        ).rstrip()
        for row in cells
    ]
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([lines[0], rule, *lines[1:]])
