"""Draw docs/figures/tree-boxes.svg: the boxes that one tile meets, in a round sheet of atoms.

python docs/theory/tree_figure.py

The test is that of cl/solvent/tree.clh, at accuracy 1e-5.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pele_ocl import SolventModel
from pele_ocl.atoms import Floats
from pele_ocl.opencl.interface import LEAF
from pele_ocl.solvent.accuracy import DEFAULT, far_radii, tolerance
from pele_ocl.tiles import Tiles

FIGURE = Path(__file__).parents[1] / "figures" / "tree-boxes.svg"
RADIUS, SPACING = 110.0, 2.0  # of the sheet, A
RHO, SCALED = 1.5, 1.2  # of each atom, A
OPENING = 0.7
SCALE = 3.2  # pixels of an A
NEAR, SERIES, FAR = "near", "series", "far"
STYLES = {
    NEAR: ("#c0392b", 0.55, "atoms one by one"),
    SERIES: ("#e9b44c", 0.55, "atoms by the series"),
    FAR: ("#2f6f9f", 0.12, "moments of the box"),
}


def sheet() -> Floats:
    """Atoms of a round sheet, (n, 3) A."""
    axis = np.arange(-RADIUS, RADIUS + SPACING, SPACING)
    x, y = (grid.ravel() for grid in np.meshgrid(axis, axis))
    inside = np.hypot(x, y) < RADIUS
    shaken = np.random.default_rng(1).uniform(-0.4, 0.4, (inside.sum(), 2))
    return np.column_stack([np.column_stack([x, y])[inside] + shaken, np.zeros(inside.sum())])


def met(tiles: Tiles, positions: Floats, own: int) -> Iterator[tuple[str, Floats]]:
    """Yield what the tile `own` takes of each box that it meets, and the atoms of that box, (k, 3)."""
    mine = positions[tiles.order[own * tiles.size : (own + 1) * tiles.size]]
    lowest, highest = mine.min(axis=0), mine.max(axis=0)
    level, n_leaves = 0, tiles.n_slots // LEAF
    while n_leaves >> level:
        level += 1
    waiting = [(level, 0)]
    while waiting:
        level, k = waiting.pop()
        first = k * (LEAF << level)
        slots = np.arange(first, min(first + (LEAF << level), tiles.n_slots))
        atoms = positions[tiles.order[slots[tiles.used[slots]]]]
        if not len(atoms):
            continue
        middle = atoms.mean(axis=0)
        apart = np.linalg.norm(atoms - middle, axis=1)
        gap = np.linalg.norm(np.maximum(np.maximum(lowest - middle, middle - highest), 0))
        reach = apart.max()
        least = max(reach / OPENING, reach + max(far_radii(DEFAULT) * SCALED, RHO + SCALED))
        left_out = SCALED**3 / 3 * (apart**5).sum()
        if gap > least and left_out < tolerance(DEFAULT, SolventModel()) * gap**9:
            yield FAR, atoms
        elif level:
            waiting += [(level - 1, 2 * k), (level - 1, 2 * k + 1)]
        else:
            yield SERIES if gap > least else NEAR, atoms


def drawn() -> str:
    """Draw the picture as SVG."""
    positions = sheet()
    tiles = Tiles.nested(positions, 32, LEAF)
    own = int(np.linalg.norm(tiles.origins - [20, -15, 0], axis=1).argmin())
    edge, parts, counts = round(SCALE * (2 * RADIUS + 4)), [], dict.fromkeys(STYLES, 0)
    for kind, atoms in sorted(met(tiles, positions, own), key=lambda pair: list(STYLES)[::-1].index(pair[0])):
        counts[kind] += 1
        parts.append(_box(atoms, *STYLES[kind][:2]))
    mine = positions[tiles.order[own * tiles.size : (own + 1) * tiles.size]]
    parts.append(_box(mine, "#111111", 0.0, 2.5))
    for k, (kind, (colour, opacity, text)) in enumerate(STYLES.items()):
        y = edge + 16 + 20 * k
        parts.append(
            f'<rect x="10" y="{y - 10}" width="14" height="12" fill="{colour}" fill-opacity="{opacity}" '
            f'stroke="{colour}"/><text x="32" y="{y}">{text}: {counts[kind]} boxes</text>'
        )
    size = f'width="{edge:.0f}" height="{edge + 72:.0f}" viewBox="0 0 {edge:.0f} {edge + 72:.0f}"'
    style = 'font-family="sans-serif" font-size="13"'
    body = "\n".join(parts)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>'
    return f'{head}\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'


def _box(atoms: Floats, colour: str, opacity: float, line: float = 0.8) -> str:
    (x, y), (right, top) = (SCALE * (corner + RADIUS + 2) for corner in (atoms.min(axis=0)[:2], atoms.max(axis=0)[:2]))
    return (
        f'<rect x="{x - 1:.1f}" y="{y - 1:.1f}" width="{right - x + 2:.1f}" height="{top - y + 2:.1f}" fill="{colour}" '
        f'fill-opacity="{opacity}" stroke="{colour}" stroke-width="{line}"/>'
    )


if __name__ == "__main__":
    FIGURE.write_text(drawn())
