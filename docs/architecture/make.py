"""Draw docs/figures/architecture.svg: the layers of pele_ocl, bottom to top, with arrows from the imports of the code.

An arrow leads from a box to each box that its modules import. Arrows that others imply are left out: who imports
`plan` reaches `opencl` through it.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from textwrap import wrap
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pele_ocl"
FIGURE = ROOT / "docs" / "figures" / "architecture.svg"

# Box: column of its middle, width in columns, its first-level modules, a description. The rest comes from the code.
BOXES: dict[str, tuple[float, float, str, str]] = {
    "command line": (2.5, 1.9, "cli __main__", "commands, options, reports"),
    "public names": (0.5, 0.9, "__init__ objects", "import pele_ocl"),
    "checking": (3, 0.9, "checking kernels bench", "kernels: check, plain, timing"),
    "binding": (0, 0.9, "binding", "complex less its parts"),
    "trajectories": (0, 0.9, "trajectories doors", "frames in pieces, records"),
    "energy": (0, 0.9, "energy", "all terms and the gradient"),
    "ase": (1.6, 0.6, "ase", "calculators of ASE"),
    "torch": (3, 0.9, "jax torch", "energies in a graph"),
    "rescore": (0, 0.9, "rescore screen", "runs of PELE; screens"),
    "explore": (0, 0.9, "explore", "moves; poses ranked"),
    "relax": (0, 0.9, "relax", "predicted models"),
    "ensemble": (2, 0.9, "ensemble", "rows that live on a device"),
    "dynamics": (2, 0.9, "dynamics", "replicas that move in time"),
    "minimize": (0.87, 0.72, "minimize", "structures relaxed"),
    "nonbond": (1, 0.9, "nonbond", "over a pair list"),
    "solvent": (0, 0.9, "solvent", "Born radii, GB energy"),
    "tiles": (0, 0.9, "tiles", "atoms in tiles, their passes"),
    "plan": (0.5, 0.9, "plan", "plan, evaluator, tuning"),
    "ladder": (3.05, 0.75, "ladder", "rungs, and what runs them"),
    "potmap": (3, 0.9, "potmap ions", "maps of the potential; ions"),
    "pb": (1, 0.9, "pb", "Poisson-Boltzmann"),
    "view": (2.3, 0.7, "view", "molecules in pictures"),
    "painting": (2, 0.9, "painting", "surfaces, pages, scenes"),
    "reference": (3, 0.9, "reference", "the definitions, in NumPy"),
    "opencl": (0, 0.9, "opencl", "devices, kernels, launches"),
    "files and jobs": (
        2.35, 1.9,
        "formats forcefield interop ligand mapmath pairs parametrize reading jobs report results", "",
    ),
    "molecules and models": (
        2.15, 2.7,
        "atoms contract grid sampling gb_models potential_model pb_model units", "",
    ),
    "common": (1.5, 3.9, "common", "errors, checks of arguments, text files, small helpers"),
}  # fmt: skip

COLUMN, ROW, HEIGHT, LEFT, TOP = 196, 92, 54, 104, 12
LETTER = 5.6  # mean width


@cache
def imports() -> dict[str, set[str]]:
    """Find the boxes that each box imports."""
    box_of = {module: box for box, (_, _, modules, _) in BOXES.items() for module in modules.split()}
    found: dict[str, set[str]] = {box: set() for box in BOXES}
    paths = sorted(PACKAGE.rglob("*.py"))
    if homeless := sorted({layer(path) for path in paths} - box_of.keys()):  # before any of them is imported
        raise SystemExit(f"pele_ocl/{homeless[0]} is in no box of docs/architecture/make.py; put it in BOXES")
    for path in paths:
        own = box_of[layer(path)]
        found[own] |= {box_of[name] for name in imported_layers(path)} - {own}
    return found


def layer(path: Path) -> str:
    """Return the first-level name of a module."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_layers(path: Path) -> set[str]:
    """Find the first-level names that a module imports."""
    found, depth = set(), len(path.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            names = [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
            exist = {name for name in names if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()}
            found |= exist or {"__init__"}
    return found


def kernel_folders(modules: str) -> list[str]:
    """Find the folders of cl/ whose kernel files the modules name."""
    paths = [path for name in modules.split() if name != "bench" for path in (PACKAGE / name).rglob("*.py")]
    names = {name for path in paths for name in re.findall(r'"(\w+)/[\w/]+\.cl"', path.read_text())}
    return sorted(f"cl/{name}" for name in names)


def levels(graph: dict[str, set[str]]) -> dict[str, int]:
    """Compute the height of each box: one above the highest that it imports. CycleError if boxes import each other."""
    level: dict[str, int] = {}
    for box in TopologicalSorter(graph).static_order():
        level[box] = 1 + max((level[below] for below in graph[box]), default=-1)
    return level


def arrows(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """List the imports that no other import implies."""
    reach: dict[str, set[str]] = {}
    for box in TopologicalSorter(graph).static_order():
        reach[box] = graph[box].union(*(reach[below] for below in graph[box]))
    return [
        (box, below)
        for box in BOXES
        for below in BOXES
        if below in graph[box] and not any(below in reach[other] for other in graph[box])
    ]


def drawing() -> str:
    """Draw the figure as SVG."""
    graph = imports()
    level = levels(graph)
    highest = max(level.values())
    middle = {box: (LEFT + COLUMN * BOXES[box][0], TOP + ROW * (highest - level[box])) for box in BOXES}
    width, height = LEFT + COLUMN * 3.5 + 10, TOP + ROW * highest + HEIGHT + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" width="{width:g}" '
        f'height="{height}" font-family="sans-serif" font-size="11" text-anchor="middle">',
        "<title>Layers of pele_ocl; an arrow leads to what a layer imports</title>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#667"/></marker></defs>',
        f'<rect width="{width:g}" height="{height}" fill="white"/>',
    ]
    for box, below in arrows(graph):
        (x1, y1), (x2, y2) = middle[box], middle[below]
        x1, x2 = _ends(box, below, x1, x2)
        parts.append(
            f'<path class="import" data-from="{box}" data-to="{below}" d="M{x1:g} {y1 + HEIGHT} {x2:g} {y2 - 1}" '
            'stroke="#667" fill="none" marker-end="url(#head)"/>'
        )
    for box, (_, columns, modules, about) in BOXES.items():
        x, y = middle[box]
        wide = COLUMN * columns
        parts.append(
            f'<rect x="{x - wide / 2:g}" y="{y}" width="{wide:g}" height="{HEIGHT}" rx="5" '
            f'fill="{"#e8f0fa" if kernel_folders(modules) else "#f5f5f0"}" stroke="#446"/>'
        )
        folders = ", ".join(kernel_folders(modules))
        lines = [*wrap(about or ", ".join(modules.split()), int(wide / LETTER)), *wrap(folders, int(wide / LETTER))]
        size, spacing = (11, 14) if len(lines) < 3 else (9, 10)
        parts.append(f'<text x="{x:g}" y="{y + 18}" font-size="13" font-weight="bold">{escape(box)}</text>')
        for k, line in enumerate(line for line in lines if line):
            colour = "#25a" if line.startswith("cl/") else "#333"
            parts.append(
                f'<text x="{x:g}" y="{y + 31 + spacing * k}" fill="{colour}" font-size="{size}">{escape(line)}</text>'
            )
    return "\n".join([*parts, "</svg>", ""])


def _ends(box: str, below: str, x1: float, x2: float) -> tuple[float, float]:
    """Place the ends of an arrow: straight down if the boxes lie over each other, else between their sides."""
    half1, half2 = (0.45 * COLUMN * BOXES[name][1] for name in (box, below))
    low, high = max(x1 - half1, x2 - half2), min(x1 + half1, x2 + half2)
    if low <= high:
        return (low + high) / 2, (low + high) / 2
    return (x1 - half1, x2 + half2) if x1 > x2 else (x1 + half1, x2 - half2)


if __name__ == "__main__":
    FIGURE.write_text(drawing())
