"""HTML page of a screen: a plot of any two columns, a sortable table, and the molecules as drawings and in 3D.

The page works offline and needs no external libraries.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..common.errors import printable
from ..common.writing import replacing
from ..ligand import Ligand
from ..painting.packing import data_for_page
from ..view.poses import script_of

_HERE = Path(__file__).parent
_MOST_DRAWN = 1_000  # number of best-ranked molecules with a drawing
_SIZE = 260, 180  # size of a drawing
_LEAST_FONT = 12  # smallest font of a drawing, in which the minus sign of O- can still be seen

Values = Sequence[float | int | None]


def save_page(
    path: Path, names: Sequence[str], titles: Sequence[str], errors: Sequence[str],
    ligands: Sequence[Ligand | None], columns: Mapping[str, tuple[str, Values]], axes: tuple[str, str], *,
    title: str, facts: str = "", lines: Sequence[str] = (), scenes: Mapping[int, object] | None = None,
) -> None:  # fmt: skip
    """Write the page of m molecules, including failed ones.

    names, titles, errors, ligands : one per molecule; columns : labels and numbers by short names, including "rank"
    axes : the two columns that are plotted initially; lines : text about correlations
    scenes : scenes of refined complexes from view.poses, by index of the molecule
    """
    rank = np.array([value or len(names) + 1 for value in columns["rank"][1]], np.float64)
    order = np.argsort(rank, kind="stable").tolist()
    drawn = set(order[:_MOST_DRAWN])
    data = {
        "names": [printable(name) for name in names],
        "titles": [printable(text) for text in titles],
        "errors": [printable(text) for text in errors],
        "columns": {name: {"label": label, "values": [_finite(v) for v in values]}
                    for name, (label, values) in columns.items()},
        "axes": axes,
        "order": order,
        "scenes": {str(k): scene for k, scene in (scenes or {}).items()},
        "drawings": [_drawing(of) if k in drawn and of is not None else "" for k, of in enumerate(ligands)],
    }  # fmt: skip
    parts = {
        "title": html.escape(printable(title)),
        "facts": html.escape(printable(facts)),
        "lines": html.escape("\n".join(printable(line) for line in lines)),
        "data": data_for_page(data),
        "script": script_of(_HERE / "page.js"),
    }
    page = (_HERE / "page.html").read_text(encoding="utf-8")
    pieces = [piece for part in page.split("{{") for piece in part.split("}}", 1)]
    text = "".join(parts[piece] if k % 2 else piece for k, piece in enumerate(pieces))
    with replacing(path, ()) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _finite(value: float | int | None) -> float | int | None:
    return None if value is None or not np.isfinite(value) else value


def _drawing(ligand: Ligand) -> str:
    """Draw a molecule without hydrogens as SVG; "" if RDKit fails."""
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem import rdDepictor
        from rdkit.Chem.Draw import rdMolDraw2D

        block = rdBase.BlockLogs()
        molecule = Chem.RemoveHs(ligand.molecule)
        molecule.RemoveAllConformers()
        rdDepictor.Compute2DCoords(molecule)
        canvas: Any = rdMolDraw2D.MolDraw2DSVG(*_SIZE)
        canvas.drawOptions().clearBackground = False
        canvas.drawOptions().minFontSize = _LEAST_FONT
        rdMolDraw2D.PrepareAndDrawMolecule(canvas, molecule)
        canvas.FinishDrawing()
        del block
        return str(canvas.GetDrawingText())
    except (ImportError, ValueError, RuntimeError):
        return ""
