"""Contributions of residues and of pairs of residues to binding energies, and their files."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Residue
from ..common.errors import FormatError
from ..common.writing import replacing
from ..energy.result import BONDED_TERMS
from ..formats import guarded
from ..formats.hdf5 import text_array, text_type, write_attributes, writing_hdf5

GROUPS = ("internal", "van_der_waals", "electrostatic", "polar", "nonpolar")
IN_RESIDUES = ("complex", "parts", "delta")  # contributions of a residue
SPLITS = ("total", "sidechain", "backbone")  # subsets of a residue's atoms

_GROUP_OF = {
    **dict.fromkeys(BONDED_TERMS, "internal"),
    "lennard_jones": "van_der_waals", "coulomb": "electrostatic", "gb_pair": "polar", "gb_self": "polar", "pb": "polar",
    "nonpolar": "nonpolar",
}  # fmt: skip
_OF_ONE_FOUR = {"lennard_jones_14": "van_der_waals", "coulomb_14": "electrostatic"}


def grouping(names: Sequence[str], idecomp: int) -> Floats:
    """Return a matrix (n_terms, n_groups) with 1 where a term belongs to a group of GROUPS.

    idecomp : as in sander; 1-4 pairs are internal with 1 and 3, van der Waals and electrostatic with 2 and 4
    """
    one_four = dict.fromkeys(_OF_ONE_FOUR, "internal") if idecomp in (1, 3) else _OF_ONE_FOUR
    groups = [{**_GROUP_OF, **one_four}[name] for name in names]
    return np.array([[group == of for of in GROUPS] for group in groups], np.float64)


class Moments:
    """Running mean and standard deviation of arrays over frames."""

    def __init__(self) -> None:
        self.n = 0
        self._first = self._sum = self._squares = np.zeros(0)

    def add(self, values: Floats) -> None:
        """Add values (m, ...). The first value is subtracted from all, to avoid cancellation in sums of squares."""
        if not self.n:
            self._first = values[0].copy()
            self._sum, self._squares = np.zeros_like(self._first), np.zeros_like(self._first)
        for frame in values - self._first:
            self._sum += frame
            self._squares += frame * frame
        self.n += len(values)

    @property
    def mean(self) -> Floats:
        """Mean of all frames, (...)."""
        mean: Floats = self._first + self._sum / self.n
        return mean

    @property
    def sd(self) -> Floats:
        """Population standard deviation, (...)."""
        sd: Floats = np.sqrt(np.maximum(0, self._squares / self.n - (self._sum / self.n) ** 2))
        return sd


@dataclass(frozen=True, eq=False)
class Shares:
    """Mean energy contributions and their population standard deviations over the frames, kcal/mol.

    mean, sd : (n_residues, n_groups), or (n_residues, n_residues, n_groups) for pairs, ordered as GROUPS
    sd_total : standard deviation of the sum of all groups, (n_residues,), or (n_residues, n_residues) for pairs
    """

    mean: Floats
    sd: Floats
    sd_total: Floats

    @property
    def total(self) -> Floats:
        """Mean of the sum of all groups, (n_residues,) or (n_residues, n_residues)."""
        total: Floats = self.mean.sum(axis=-1)
        return total


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Contributions of residues and of their pairs to the energies of a complex, its parts and their difference.

    residues : residues, in the order of the atoms; is_ligand : mask (n_residues,) of the ligand's residues
    per_residue : Shares for "complex", "parts" (each residue in its own part) and "delta"
    pairs : the same for pairs of residues, symmetric, with half of each energy in either triangle; None if not
        requested
    n_frames : number of frames used; idecomp : 1 to 4, as in sander
    splits : pairs for "sidechain" and "backbone" of the first residue with all of the second; empty if not requested
    """

    residues: tuple[Residue, ...]
    is_ligand: NDArray[np.bool_]
    per_residue: Mapping[str, Shares]
    pairs: Mapping[str, Shares] | None
    n_frames: int
    idecomp: int
    splits: Mapping[str, Mapping[str, Shares]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Names of the residues in gmx_MMPBSA's format, such as R:A:LEU:4."""
        return [
            f"{'L' if own else 'R'}:{r.chain}:{r.name}:{r.number}{r.insertion_code}"
            for own, r in zip(self.is_ligand.tolist(), self.residues, strict=True)
        ]

    def strongest(self, n: int = 10) -> list[int]:
        """Return the indices of the residues with the largest absolute mean contribution to the difference."""
        order = np.argsort(-np.abs(self.per_residue["delta"].total), kind="stable")
        return [int(k) for k in order[:n]]


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
    """Return the suffix of a decomposition file. Raises FormatError unless it is one of SUFFIXES."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise FormatError(f"{path}: unknown suffix {suffix!r}; decompositions end in {', '.join(SUFFIXES)}")
    return suffix


def write_decomposition(
    path: str | PathLike[str], decomposition: Decomposition, attributes: Mapping[str, object] | None = None
) -> None:
    """Write a decomposition as CSV or HDF5, by suffix.

    The CSV file has the sections of gmx_MMPBSA (Complex, Receptor, Ligand, DELTAS), with mean, population standard
    deviation and naive standard error of each group. The HDF5 file has the arrays of Decomposition.
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
    """Yield the title, the system and the residues of each section."""
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
