"""Draw docs/figures/necks.svg: two carbons with the space between them, and their Born integral with and without it.

python docs/theory/necks.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pele_ocl.gb_models import GB_MODELS
from pele_ocl.gb_models.necks import REACH, STEP, tables
from pele_ocl.reference.solvent import hct_term

FIGURE = Path(__file__).resolve().parents[1] / "figures" / "necks.svg"
RADIUS, PROBE = 1.7, 1.4  # A, of carbon and of water
APART = 4.2  # A, of the two in the drawing
INK, BLUE, RED, GREY = "#333333", "#2a6fb0", "#c4472b", "#999999"


def drawing() -> str:
    """Draw the picture as SVG."""
    parts = [*_atoms(160, 150, 34.0), *_curves(400, 40, 340, 220)]
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 310" font-family="sans-serif" font-size="13">'
    return "\n".join([head, '<rect width="780" height="310" fill="white"/>', *parts, "</svg>", ""])


def _text(x: float, y: float, words: str, colour: str = INK, anchor: str = "middle", size: str = "") -> str:
    font = f'font-size="{size}" ' if size else ""
    return f'<text {font}x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}">{words}</text>'


def _atoms(x: float, y: float, unit: float) -> list[str]:
    """Two atoms, the water that touches both from above and below, and the neck between the four."""
    half, reach = APART / 2, RADIUS + PROBE
    height = np.sqrt(reach**2 - half**2)
    touch = RADIUS / reach
    xs, ys = half * (1 - touch) * unit, height * touch * unit
    r, probe = RADIUS * unit, PROBE * unit
    neck = (
        f"M {x - xs:.1f} {y - ys:.1f} A {probe:.1f} {probe:.1f} 0 0 0 {x + xs:.1f} {y - ys:.1f} "
        f"A {r:.1f} {r:.1f} 0 0 0 {x + xs:.1f} {y + ys:.1f} A {probe:.1f} {probe:.1f} 0 0 0 {x - xs:.1f} {y + ys:.1f} "
        f"A {r:.1f} {r:.1f} 0 0 0 {x - xs:.1f} {y - ys:.1f} Z"
    )
    circles = [
        f'<circle cx="{x + side * half * unit:.1f}" cy="{y:.1f}" r="{r:.1f}" fill="#e4e4e4" stroke="{INK}"/>'
        for side in (-1, 1)
    ]
    waters = [
        f'<circle cx="{x:.1f}" cy="{y + side * height * unit:.1f}" r="{probe:.1f}" fill="#dcebf7" stroke="{BLUE}"/>'
        for side in (-1, 1)
    ]
    return [
        *waters, *circles, f'<path d="{neck}" fill="{RED}" fill-opacity="0.35" stroke="{RED}"/>',
        _text(x - half * unit, y + 5, "C"), _text(x + half * unit, y + 5, "C"), 
        _text(x, y + 4, "neck", RED, size="11"),
        _text(x, y - height * unit + 5, "water", BLUE), _text(x, y + height * unit + 5, "water", BLUE),
    ]  # fmt: skip


def _curves(x: float, y: float, width: float, height: float) -> list[str]:
    """Draw a carbon's Born integral in GBn2 from another one, by distance: the sphere's part, and with the neck's."""
    model = GB_MODELS["gbn2"]
    assert model.elements is not None
    r = np.linspace(1.5, 11.0, 400)
    rho = RADIUS - model.offset
    sphere = hct_term(r, np.array(rho), np.array(rho * model.elements.scales["C"])) / 2
    distances, sizes = tables()
    step = round((RADIUS - 1.0) / STEP)
    far = r - distances[step, step]
    neck = np.where(r < 2 * RADIUS + REACH, model.neck_scale * sizes[step, step] / (1 + far**2 + 0.3 * far**6), 0)
    most = 0.06

    def path(values: np.ndarray, colour: str) -> str:
        shown = values <= most
        points = [
            f"{x + (a - r[0]) / (r[-1] - r[0]) * width:.1f},{y + height * (1 - b / most):.1f}"
            for a, b in zip(r[shown], values[shown], strict=True)
        ]
        return f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="2"/>'

    def at(distance: float) -> float:
        return x + (distance - r[0]) / (r[-1] - r[0]) * width

    marks = [
        *(_text(at(tick), y + height + 18, f"{tick}") for tick in (2, 4, 6, 8, 10)),
        *(
            _text(x - 6, y + height * (1 - tick / most) + 4, f"{tick:g}", anchor="end")
            for tick in (0, 0.02, 0.04, 0.06)
        ),
    ]
    return [
        f'<path d="M {x} {y} V {y + height} H {x + width}" fill="none" stroke="{GREY}"/>', *marks,
        path(sphere, BLUE), path(neck, GREY), path(sphere + neck, RED),
        _text(x + width / 2, y + height + 40, "distance of the two carbons, A"),
        _text(x + 6, y - 12, "Born integral of the one from the other, 1/A", anchor="start"),
        _text(at(5.6), y + 60, "sphere and neck", RED, "start"), _text(at(5.6), y + 80, "sphere alone", BLUE, "start"),
        _text(at(5.6), y + 100, "neck alone", GREY, "start"),
    ]  # fmt: skip


if __name__ == "__main__":
    FIGURE.write_text(drawing())
