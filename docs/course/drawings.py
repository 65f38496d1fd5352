"""Draw docs/figures/cutoff-bins.svg and cutoff-lists.svg of chapter 9: python docs/course/drawings.py"""

from __future__ import annotations

from pathlib import Path

import numpy as np

FIGURES = Path(__file__).resolve().parents[1] / "figures"
CELL, BINS, CUTOFF = 44, 9, 1.9  # pixels of a bin's edge, bins along x and y, the cutoff in edges
POINT = (4.7, 4.35)
INK, PALE, MARK, ATOM = "#8a8a8a", "#8a8a8a33", "#1f6fb4", "#c0392b"


def begun(width: float, height: float) -> list[str]:
    """Begin a drawing; its colours can be seen on light and dark pages."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="sans-serif" font-size="13">'
    ]


def box(x: float, y: float, width: float, height: float, fill: str = "none", stroke: str = INK) -> str:
    """A rectangle."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}" stroke="{stroke}"/>'


def text(x: float, y: float, words: str, anchor: str = "middle", fill: str = INK) -> str:
    """A line of text."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{fill}">{words}</text>'


def near() -> list[tuple[int, int]]:
    """Offsets of bins that may hold an atom within the cutoff, wherever in its bin a point is."""
    reach = int(np.ceil(CUTOFF))
    steps = range(-reach, reach + 1)
    gaps = {(i, j): np.hypot(max(abs(i) - 1, 0), max(abs(j) - 1, 0)) for j in steps for i in steps}
    return [offset for offset, gap in gaps.items() if gap < CUTOFF]


def bins() -> str:
    """A point, its bin, the cutoff's circle, and the bins of the neighbourhood list."""
    side = CELL * BINS
    drawn = begun(side + 2, side + 26)
    own = int(POINT[0]), int(POINT[1])
    for i, j in near():
        drawn.append(box(1 + (own[0] + i) * CELL, 1 + (own[1] + j) * CELL, CELL, CELL, "#1f6fb433", "none"))
    for k in range(BINS + 1):
        drawn.append(f'<path d="M1 {1 + k * CELL}H{side + 1}M{1 + k * CELL} 1V{side + 1}" stroke="{PALE}"/>')
    for x, y in np.random.default_rng(3).uniform(0.05, BINS - 0.05, (90, 2)):
        counts = np.hypot(x - POINT[0], y - POINT[1]) < CUTOFF
        fill = ATOM if counts else "none"
        drawn.append(f'<circle cx="{1 + x * CELL:.1f}" cy="{1 + y * CELL:.1f}" r="4" fill="{fill}" stroke="{ATOM}"/>')
    drawn.append(box(1 + own[0] * CELL, 1 + own[1] * CELL, CELL, CELL, "none", MARK))
    at = 1 + POINT[0] * CELL, 1 + POINT[1] * CELL
    drawn.append(f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{CUTOFF * CELL:.1f}" fill="none" stroke="{MARK}"/>')
    drawn.append(f'<path d="M{at[0] - 5:.1f} {at[1]:.1f}h10m-5 -5v10" stroke="{MARK}" stroke-width="2"/>')
    words = "shaded: bins of the list; filled: atoms within the cutoff of the point"
    return "\n".join([*drawn, text(1 + side / 2, side + 19, words), "</svg>", ""])


def lists() -> str:
    """Atoms bin after bin, and where each bin begins."""
    held = [2, 0, 3, 1, 2]
    wide, left = 46, 96
    begins = np.concatenate([[0], np.cumsum(held)])
    drawn = begun(left + 9 * wide, 150)
    for name, y in (("bin b", 24), ("begins[b]", 74), ("atoms[a]", 128)):
        drawn.append(text(left - 10, y, name, "end"))
    for b, begin in enumerate(begins):
        drawn += [box(left + b * wide, 54, wide, 30), text(left + (b + 0.5) * wide, 74, str(begin))]
        if b < len(held):
            drawn.append(text(left + (b + 0.5) * wide, 24, str(b)))
    colours = ("#1f6fb455", "#e9b44c55", "#c0392b55", "#2e8b5755", "#8e44ad55")
    for b, begin in enumerate(begins[:-1]):
        for a in range(begin, begins[b + 1]):
            drawn += [box(left + a * wide, 108, wide, 30, colours[b]), text(left + (a + 0.5) * wide, 128, str(a))]
        if held[b]:
            x = left + (begin + 0.5) * wide
            drawn.append(f'<path d="M{left + (b + 0.5) * wide:g} 84L{x:g} 108" stroke="{INK}"/>')
    return "\n".join([*drawn, "</svg>", ""])


DRAWINGS = {"cutoff-bins.svg": bins, "cutoff-lists.svg": lists}

if __name__ == "__main__":
    for name, draw in DRAWINGS.items():
        (FIGURES / name).write_text(draw(), encoding="utf-8")
