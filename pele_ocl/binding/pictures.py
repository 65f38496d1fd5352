"""Plots of binding energies: strongest residues, residue pairs, running mean; and PDB files coloured by residue."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms import Atoms, Floats
from ..common.errors import InputError
from ..common.writing import replacing
from ..formats.maps.pictures import require_png
from ..formats.pdb_writing import atom_lines
from .decomposition import GROUPS, Decomposition
from .statistics import running_mean, spread_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Groups per bar, with colours. Electrostatic and polar energies nearly cancel, so they are shown as a sum.
_BARS = {
    "internal": (("internal",), "#8c8c8c"),
    "van der Waals": (("van_der_waals",), "#d08a2e"),
    "electrostatic and polar": (("electrostatic", "polar"), "#3b6fb6"),
    "nonpolar": (("nonpolar",), "#6aa84f"),
}
_RED, _BLUE = "#c2453d", "#2f6db3"
_MOST_B = 999.0  # maximum that fits into the columns of a PDB file
_DPI = 150
HEAT_MAP = 40  # maximum number of residues in a heat map


def draw_residues(path: str | PathLike[str], decomposition: Decomposition, n: int = 20) -> None:
    """Draw a bar chart of the n residues with the largest contributions to the binding energy, by group (PNG)."""
    require_png(path)
    chosen = decomposition.strongest(n)
    shares, names = decomposition.per_residue["delta"], decomposition.names
    figure, axes = _figure(9.0, 1.3 + 0.27 * len(chosen))
    text = axes.yaxis.label.get_color()  # text colour of the Matplotlib style
    places = np.arange(len(chosen))[::-1]
    for sign in (-1, 1):
        left = np.zeros(len(chosen))
        for label, (groups, colour) in _BARS.items():
            values = shares.mean[chosen][:, [GROUPS.index(group) for group in groups]].sum(axis=1)
            widths = values * (np.sign(values) == sign)
            shown = label if sign < 0 else None
            axes.barh(places, widths, left=left, height=0.75, color=colour, label=shown)
            left += widths
    errors = shares.sd_total[chosen] / np.sqrt(decomposition.n_frames)
    points = {"fmt": "D", "color": text, "markersize": 4, "capsize": 3}
    axes.errorbar(shares.total[chosen], places, xerr=errors, **points, label="total, SEM")
    axes.use_sticky_edges = False  # keep a margin beyond the longest bars
    axes.set_yticks(places, [names[k] for k in chosen], size=8)
    axes.axvline(0, color="0.4", linewidth=0.8)
    axes.set_xlabel("contribution to the binding energy (kcal/mol)", size=9)
    axes.legend(fontsize=7, frameon=False, loc="best")
    _save(figure, path)


def draw_pairs(path: str | PathLike[str], decomposition: Decomposition, n: int = HEAT_MAP) -> None:
    """Draw a heat map of pairs of the strongest residues of receptor and ligand, at most n of each (PNG).

    Raises InputError if pairs were not computed.
    """
    require_png(path)
    if decomposition.pairs is None:
        raise InputError("there are no pairs of residues; a decomposition with idecomp 3 or 4 has them")
    matrix = 2 * decomposition.pairs["delta"].total  # each triangle has half of the pair energies
    size, is_ligand = np.abs(matrix), decomposition.is_ligand
    rows, columns = (
        np.sort(own[np.argsort(-size[own][:, other].sum(axis=1), kind="stable")[:n]])
        for own, other in (
            (np.flatnonzero(~is_ligand), np.flatnonzero(is_ligand)),
            (np.flatnonzero(is_ligand), np.flatnonzero(~is_ligand)),
        )
    )
    shown, names = matrix[np.ix_(rows, columns)], decomposition.names
    figure, axes = _figure(2.8 + 0.2 * len(columns), 1.8 + 0.2 * len(rows))
    end = float(np.abs(shown).max()) or 1.0
    image = axes.imshow(shown, cmap="RdBu_r", vmin=-end, vmax=end, aspect="auto")
    axes.set_yticks(range(len(rows)), [names[k] for k in rows], size=7)
    axes.set_xticks(range(len(columns)), [names[k] for k in columns], size=7, rotation=90)
    figure.colorbar(image, ax=axes, label="energy between two residues (kcal/mol)")
    _save(figure, path)


def draw_running_mean(path: str | PathLike[str], totals: Floats) -> None:
    """Plot the binding energy of each frame, (m,), its running mean, and the block-averaged error (PNG)."""
    require_png(path)
    good = totals[~np.isnan(totals)]
    spread, means = spread_of(good), running_mean(good)
    figure, axes = _figure(7.0, 3.6)
    frames = np.arange(1, len(good) + 1)
    axes.plot(frames, good, color="0.75", linewidth=0.8, label="frames")
    axes.plot(frames, means, color=_BLUE, linewidth=1.8, label="mean up to the frame")
    error = spread.sem_blocked if spread.sem_blocked == spread.sem_blocked else spread.sem
    axes.axhspan(spread.mean - error, spread.mean + error, color=_RED, alpha=0.2, label="mean and its error (blocks)")
    axes.set_xlabel("frame", size=9)
    axes.set_ylabel("binding energy (kcal/mol)", size=9)
    axes.legend(fontsize=8, frameon=False)
    _save(figure, path)


def write_coloured(path: str | PathLike[str], atoms: Atoms, decomposition: Decomposition) -> None:
    """Write a PDB file of the complex with residue contributions to the binding energy as B-factors, kcal/mol."""
    assert atoms.labels is not None
    starts = atoms.labels.residue_starts
    sizes = np.diff(starts, append=len(atoms))
    values = np.repeat(np.clip(decomposition.per_residue["delta"].total, -99.99, _MOST_B), sizes)
    with replacing(path) as temporary, open(temporary, "w", encoding="latin-1") as file:
        coloured = iter(values.tolist())
        for line in atom_lines(atoms.labels, atoms.positions, str(path)):
            is_atom = line.startswith(("ATOM", "HETATM"))
            file.write(f"{line[:60]}{next(coloured):6.2f}{line[66:]}" if is_atom else line)
        file.write("END\n")


def _figure(width: float, height: float) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Figure, path: str | PathLike[str]) -> None:
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=_DPI, metadata={"Software": "pele-ocl"})
