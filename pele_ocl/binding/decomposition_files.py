"""Files of decompositions: CSV in the layout of gmx_MMPBSA, and HDF5."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path

import numpy as np

from ..atoms import Floats
from ..common.errors import FormatError
from ..common.writing import replacing
from ..formats import guarded
from ..formats.hdf5 import text_array, text_type, write_attributes, writing_hdf5
from .decomposition import GROUPS, IN_RESIDUES, Decomposition, Shares

SUFFIXES = (".csv", ".h5")
_HEADS = ("Internal", "van der Waals", "Electrostatic", "Polar Solvation", "Non-Polar Solv.", "TOTAL")
_SCHEMES = {
    1: "Per-residue decomp adding 1-4 interactions to Internal.",
    2: "Per-residue decomp adding 1-4 EEL to EEL and 1-4 VDW to VDW.",
    3: "Pairwise decomp adding 1-4 interactions to Internal.",
    4: "Pairwise decomp adding 1-4 EEL to EEL and 1-4 VDW to VDW.",
}
_Row = list[str | float]


def require_decomposition_suffix(path: str | PathLike[str]) -> str:
    """Return the suffix of a file of a decomposition; raise FormatError unless it is one of SUFFIXES."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise FormatError(f"{path}: unknown suffix {suffix!r}; decompositions end in {', '.join(SUFFIXES)}")
    return suffix


def write_decomposition(
    path: str | PathLike[str], decomposition: Decomposition, attributes: Mapping[str, object] | None = None
) -> None:
    """Write a decomposition; the suffix says whether as CSV or HDF5.

    CSV has the sections of gmx_MMPBSA's (Complex, Receptor, Ligand, DELTAS), mean, population standard deviation and
    naive standard error of each group; HDF5 the arrays of Decomposition, (n_residues, n_groups) and so on.
    """
    suffix = require_decomposition_suffix(path)
    write: Callable[[Path, Decomposition, Mapping[str, object]], None] = _write_csv if suffix == ".csv" else _write_hdf5
    with replacing(path) as temporary:
        write(temporary, decomposition, attributes or {})


def _write_csv(path: Path, of: Decomposition, attributes: Mapping[str, object]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([f"idecomp = {of.idecomp}: {_SCHEMES[of.idecomp]}"])
        out.writerow(["Energy Decomposition Analysis (All units kcal/mol): Generalized Born solvent"])
        for head, kind, chosen in _sections(of):
            out.writerows([[], [f"{head}:"], ["Total Energy Decomposition:"]])
            first = ["Residue"] if of.pairs is None else ["Resid 1", "Resid 2"]
            out.writerow([*first, *(cell for name in _HEADS for cell in (name, "", ""))])
            out.writerow([*("" for _ in first), *(("Avg.", "Std. Dev.", "Std. Err. of Mean") * len(_HEADS))])
            out.writerows(_rows(of, kind, chosen))


def _sections(of: Decomposition) -> Iterator[tuple[str, str, list[int]]]:
    """Yield the head of each section, the system of its energies, and its residues."""
    everyone = list(range(len(of.residues)))
    yield "Complex", "complex", everyone
    yield "Receptor", "parts", [k for k in everyone if not of.is_ligand[k]]
    yield "Ligand", "parts", [k for k in everyone if of.is_ligand[k]]
    yield "DELTAS", "delta", everyone


def _rows(of: Decomposition, kind: str, chosen: list[int]) -> Iterator[_Row]:
    names = list(map(guarded, of.names))
    if of.pairs is None:
        for k in chosen:
            yield [names[k], *_cells(of.per_residue[kind], (k,), of.n_frames)]
        return
    for i in chosen:
        for j in chosen:
            yield [names[i], names[j], *_cells(of.pairs[kind], (i, j), of.n_frames)]


def _cells(shares: Shares, place: tuple[int, ...], n_frames: int) -> _Row:
    means = [*shares.mean[place].tolist(), float(shares.total[place]) if n_frames else 0.0]
    deviations = [*shares.sd[place].tolist(), float(shares.sd_total[place])]
    root = float(np.sqrt(n_frames))
    return [round(x, 6) for mean, sd in zip(means, deviations, strict=True) for x in (mean, sd, sd / root)]


def _write_hdf5(path: Path, of: Decomposition, attributes: Mapping[str, object]) -> None:
    with writing_hdf5(path) as file:
        file.create_dataset("residues", data=text_array(np.array(of.names)), dtype=text_type())
        file.create_dataset("groups", data=text_array(np.array(GROUPS)), dtype=text_type())
        file["is_ligand"] = of.is_ligand
        for name in IN_RESIDUES:
            _add(file.create_group(f"residues_{name}"), of.per_residue[name])
            if of.pairs is not None:
                _add(file.create_group(f"pairs_{name}"), of.pairs[name])
        write_attributes(file, {**attributes, "n_frames": of.n_frames, "idecomp": of.idecomp})


def _add(group: Mapping[str, object], shares: Shares) -> None:
    arrays: dict[str, Floats] = {"mean": shares.mean, "sd": shares.sd, "sd_total": shares.sd_total}
    for name, values in arrays.items():
        group[name] = values  # type: ignore[index]
        group[name].attrs["unit"] = "kcal/mol"  # type: ignore[attr-defined]
