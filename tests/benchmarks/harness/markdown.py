"""Markdown tables with aligned columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def table(cells: Sequence[Sequence[str]], texts: Collection[int] = (0,)) -> list[str]:
    """Return the lines of a table; cells : header, then rows; texts : columns without numbers, aligned left"""
    widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]

    def line(row: Sequence[str]) -> str:
        parts = [
            cell.ljust(width) if k in texts else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return f"| {' | '.join(parts)} |"

    rule = ["-" * width if k in texts else "-" * (width - 1) + ":" for k, width in enumerate(widths)]
    return [line(cells[0]), line(rule), *map(line, cells[1:])]
