"""Draw docs/figures/msm-levels.svg: 1/r as a near part and one for each lattice, and the way through the lattices.

python docs/theory/msm_figure.py

The curves are those of pele_ocl/potmap/msm/splitting.py, with the text books' cutoff and order.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pele_ocl.atoms import Floats
from pele_ocl.potmap.msm.splitting import Splitting

FIGURE = Path(__file__).parents[1] / "figures" / "msm-levels.svg"
SPLITTING = Splitting(order=2, cutoff=12.0)
FARTHEST, HIGHEST = 60.0, 0.24  # of the curves, A and 1/A
INK, GREY = "#333333", "#999999"
COLOURS = ("#c4472b", "#2a6fb0", "#3f8f5f", "#8a5fa8")
NAMES = ("near part", "lattice h", "lattice 2h", "lattice 4h, the last one")
STEP, EDGE = 13.0, 26.0  # pixels of 2h in the drawing of the lattices, and of half their width


def drawing() -> str:
    """Draw the picture as SVG."""
    parts = [*_curves(60, 40, 300, 250), *_way(420, 30)]
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 350" font-family="sans-serif" font-size="13">'
    return "\n".join([head, '<rect width="900" height="350" fill="white"/>', *parts, "</svg>", ""])


def _text(x: float, y: float, words: str, colour: str = INK, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}">{words}</text>'


def _parts(r: Floats) -> list[Floats]:
    """Return the parts of 1/r, in the order of NAMES."""
    near = np.where(r < SPLITTING.cutoff, 1 / r - SPLITTING.coarsest(r), 0)
    return [near, SPLITTING.between(r), SPLITTING.between(r / 2) / 2, SPLITTING.coarsest(r / 4) / 4]


def _curves(x: float, y: float, width: float, height: float) -> list[str]:
    """Draw the parts of 1/r by the distance, and their sum."""
    r = np.linspace(1.0, FARTHEST, 500)

    def path(values: Floats, colour: str, dashes: str = "") -> str:
        shown = values <= HIGHEST
        points = " ".join(
            f"{x + width * a / FARTHEST:.1f},{y + height * (1 - b / HIGHEST):.1f}"
            for a, b in zip(r[shown], values[shown], strict=True)
        )
        return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>'

    ticks = [_text(x + width * at / FARTHEST, y + height + 18, f"{at}") for at in (0, 12, 24, 36, 48, 60)]
    names = [
        _text(x + width, y + 24 + 20 * k, name, colour, "end")
        for k, (name, colour) in enumerate(zip((*NAMES, "1/r"), (*COLOURS, INK), strict=True))
    ]
    return [
        f'<path d="M {x} {y} V {y + height} H {x + width}" fill="none" stroke="{GREY}"/>', *ticks, *names,
        path(1 / r, INK, ' stroke-dasharray="3 4"'),
        *(path(part, colour) for part, colour in zip(_parts(r), COLOURS, strict=True)),
        _text(x + width / 2, y + height + 40, "distance, A"),
        _text(x - 40, y - 14, "potential of a unit charge, 1/A", anchor="start"),
    ]  # fmt: skip


def _way(x: float, y: float) -> list[str]:
    """Charges on the left go down the lattices, potentials on the right come up."""
    left, right, down = x + 70, x + 370, 82
    rows = [
        "atoms", "points of the map", COLOURS[0], "near part",
        "charges on h", "potentials on h", COLOURS[1], "lattice cutoff",
        "charges on 2h", "potentials on 2h", COLOURS[2], "lattice cutoff",
        "charges on 4h", "potentials on 4h", COLOURS[3], "all with all",
    ]  # fmt: skip
    parts = []
    for k in range(4):
        charges, potentials, colour, across = rows[4 * k : 4 * k + 4]
        at = y + 20 + down * k
        step = STEP * 2.0 ** (k - 2)  # those of the map are twice as fine as the first lattice
        parts += _dots(left, at, _at_random() if k == 0 else _regular(step), colour)
        parts += _dots(right, at, _regular(step), colour)
        parts += [_text(left, at + 34, charges), _text(right, at + 34, potentials)]
        parts += [_arrow(left + 55, at, right - 55, at, colour), _text((left + right) / 2, at - 6, across, colour)]
    steps = (("anterpolation", "interpolation"), ("restriction", "prolongation"), ("restriction", "prolongation"))
    for k, (here, there) in enumerate(steps):
        top = y + 20 + down * k
        parts += [
            _arrow(left, top + 39, left, top + 61, INK), _text(left + 8, top + 55, here, INK, "start"),
            _arrow(right, top + 61, right, top + 39, INK), _text(right - 8, top + 55, there, INK, "end"),
        ]  # fmt: skip
    return parts


def _at_random() -> Floats:
    """Places (n, 2) of atoms, in pixels from the middle."""
    return np.random.default_rng(4).uniform(-EDGE, EDGE, (16, 2))


def _regular(step: float) -> Floats:
    """Places (n, 2) of points so many pixels apart."""
    axis = np.arange(-EDGE, EDGE + 1, step)
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def _dots(x: float, y: float, places: Floats, colour: str) -> Iterator[str]:
    """Dots in a plane that is seen from aslant."""
    for across, deep in places:
        yield f'<circle cx="{x + across + deep / 2:.1f}" cy="{y - deep / 2:.1f}" r="1.2" fill="{colour}"/>'


def _arrow(x: float, y: float, to_x: float, to_y: float, colour: str) -> str:
    """A line with a head at its end."""
    along = np.array([to_x - x, to_y - y]) / np.hypot(to_x - x, to_y - y)
    sides = [np.array([to_x, to_y]) - 7 * along + side * 4 * np.array([-along[1], along[0]]) for side in (-1, 1)]
    head = " ".join(f"{a:.1f},{b:.1f}" for a, b in (sides[0], (to_x, to_y), sides[1]))
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}"/>'
        f'<polygon points="{head}" fill="{colour}"/>'
    )


if __name__ == "__main__":
    FIGURE.write_text(drawing())
