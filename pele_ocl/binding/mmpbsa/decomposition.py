"""FINAL_DECOMP_MMPBSA.dat and decompositions per frame, in the formats of MMPBSA.py and gmx_MMPBSA."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Floats
from ..decomposition import SPLITS
from .namelists import Decomp
from .work import METHODS, PairShares, Results

HEADS = ("Internal", "van der Waals", "Electrostatic", "Polar Solvation", "Non-Polar Solv.", "TOTAL")


class ResidueNames:
    """Names of the complex's residues in tables, and their numbers in the parts."""

    def __init__(self, atoms: Atoms, is_ligand: NDArray[np.bool_] | None, of_gromacs: bool) -> None:
        labels = atoms.labels
        assert labels is not None
        starts = labels.residue_starts
        self.names = labels.residue_names[starts].tolist()
        self.side = np.zeros(len(starts), bool) if is_ligand is None else is_ligand[starts]
        self.own = np.zeros(len(starts), int)
        for side in (False, True):
            self.own[self.side == side] = np.arange(1, int((self.side == side).sum()) + 1)
        self._labels, self._of_gromacs = labels, of_gromacs

    def of(self, residue: int, system: str) -> str:
        """Return the name of a residue, with its number in the system."""
        if self._of_gromacs:
            found = self._labels.residues[residue]
            return (
                f"{'L' if self.side[residue] else 'R'}:{found.chain}:{found.name}:{found.number}{found.insertion_code}"
            )
        number = residue + 1 if system in ("complex", "delta") else int(self.own[residue])
        return f"{self.names[residue]:>3s}{number:4d}"

    def location(self, residue: int) -> str:
        return f"{'L' if self.side[residue] else 'R'} {self.names[residue]:>3s}{self.own[residue]:4d}"

    def in_complex(self, residues: NDArray[np.intp], system: str, is_single: bool) -> list[int]:
        """Convert residue indices of a system to those of the complex."""
        if system == "complex" or is_single:
            return [int(r) for r in residues]
        places = np.flatnonzero(self.side == (system == "ligand"))
        return [int(places[r]) for r in residues]


_STATISTICS = ("Avg.", "Std. Dev.", "Std. Err. of Mean")
_TITLES = {"total": "Total", "sidechain": "Sidechain", "backbone": "Backbone"}
_SCHEMES = {
    1: "Per-residue decomp adding 1-4 interactions to Internal.",
    2: "Per-residue decomp adding 1-4 interactions to EEL and VDW.",
    3: "Pairwise decomp adding 1-4 interactions to Internal.",
    4: "Pairwise decomp adding 1-4 interactions to EEL and VDW.",
}


def decomposition_text(
    run: Results, decomp: Decomp, atoms: Atoms, is_ligand: NDArray[np.bool_] | None, of_gromacs: bool, first_line: str
) -> str:  # fmt: skip
    """Return the content of FINAL_DECOMP_MMPBSA.dat, as text or CSV."""
    solvent = METHODS[run.method].title()
    out = [f"|{first_line}\n", f"idecomp = {decomp.idecomp}: {_SCHEMES[decomp.idecomp]}\n",
           f"Energy Decomposition Analysis (All units kcal/mol): {solvent} solvent\n\n"]  # fmt: skip
    tables = _Tables(run, ResidueNames(atoms, is_ligand, of_gromacs))
    for system in tables.systems(decomp):
        out.append("DELTAS:\n" if system == "delta" else f"{system.capitalize()}:\n")
        for split in _splits(decomp):
            out += _section(tables.means(system, split), tables.names, system, split, decomp)
    return "".join(out)


def frame_shares_csv(
    run: Results, decomp: Decomp, atoms: Atoms, is_ligand: NDArray[np.bool_] | None, of_gromacs: bool
) -> str:  # fmt: skip
    """Return the decomposition of each frame as CSV, as written by MMPBSA.py with -deo.

    Differences are omitted for separate trajectories, since their frames are unrelated.
    """
    out = io.StringIO()
    out.write(f"{METHODS[run.method].title()} Decomposition Energies\n")
    table = csv.writer(out, lineterminator="\n")
    tables = _Tables(run, ResidueNames(atoms, is_ligand, of_gromacs))
    names = tables.names
    first = ["Resid 1", "Resid 2"] if decomp.idecomp > 2 else ["Residue"]
    for system in tables.systems(decomp, everything=True):
        if system == "delta" and not run.is_single:
            continue
        out.write("\nDELTAS:\n" if system == "delta" else f"\n{system.capitalize()}:\n")
        has_location = system == "delta" and decomp.idecomp < 3
        for split in _splits(decomp):
            out.write(f"\n{'DELTA ' if system == 'delta' else ''}{_TITLES[split]} Energy Decomposition:\n")
            table.writerow(["Frame #", *first, *(["Location"] if has_location else []), *HEADS])
            residues, values, frames = tables.by_frame(system, split)
            cells = [[*(names.of(r, system) for r in row), *([names.location(row[0])] if has_location else [])]
                     for row in residues]  # fmt: skip
            for number, of_frame in zip(frames.tolist(), values, strict=True):
                rows = zip(cells, of_frame.tolist(), strict=True)
                table.writerows([number, *cell, *row] for cell, row in rows)
    return out.getvalue()


def _splits(decomp: Decomp) -> tuple[str, ...]:
    return SPLITS if decomp.verbose in (1, 3) else SPLITS[:1]


_Residues = tuple[int, ...]  # one residue or a pair, by index in the complex
_Row = tuple[_Residues, Floats, Floats]  # means and deviations (n_groups + 1,)


@dataclass(frozen=True)
class _Rows:
    rows: list[_Row]
    n: int


@dataclass(frozen=True)
class _Tables:
    """Contributions of a run by system and split; "delta" is the difference."""

    run: Results
    names: ResidueNames

    def systems(self, decomp: Decomp, everything: bool = False) -> list[str]:
        """Return the systems to print, the difference last."""
        assert self.run.shares is not None
        parts = [*self.run.shares] if decomp.verbose > 1 or everything or not self.run.has_parts else []
        return [*parts, *(["delta"] if self.run.has_parts else [])]

    def means(self, system: str, split: str) -> _Rows:
        """Return the means and standard deviations of a table's rows."""
        if system == "delta" and not self.run.is_single:
            return self._of_separate(split)
        pairs = self._pairs(system)
        if pairs is not None:
            shares = pairs.means.pairs if split == "total" else pairs.means.splits[split]
            assert shares is not None
            of = shares[self._kind(system)]
            rows: list[_Row] = [
                (row, np.append(of.mean[place], of.total[place]), np.append(of.sd[place], of.sd_total[place]))
                for row, place in self._pairs_of(system)
            ]
            return _Rows(rows, pairs.means.n_frames)
        residues, values, _ = self.by_frame(system, split)
        rows = [(row, values[:, k].mean(axis=0), values[:, k].std(axis=0)) for k, row in enumerate(residues)]
        return _Rows(rows, len(values))

    def by_frame(self, system: str, split: str) -> tuple[list[_Residues], Floats, NDArray[np.int64]]:
        """Return the residues (or pairs), values (m, n_rows, n_groups + 1) and frame numbers of a table."""
        run = self.run
        assert run.shares is not None
        assert run.frames is not None
        frames = run.frames["complex" if system == "delta" else system]
        pairs = self._pairs(system)
        if pairs is not None:
            of = pairs.by_frame[split]
            values = of["complex"] - of["parts"] if system == "delta" else of[self._kind(system)]
            own = run.shares["complex" if system == "delta" else system].residues
            kept = run.shares["complex"].residues if run.is_single else own  # residues with stored pairs
            places = np.searchsorted(kept, own)
            chosen = values[:, places][:, :, places]
            rows = [row for row, _ in self._pairs_of(system)]
            return rows, _with_total(chosen.reshape(len(chosen), len(rows), -1)), frames
        whole = run.shares["complex" if system == "delta" else system]
        numbers = self.names.in_complex(whole.residues, system, run.is_single)
        values = _with_total(whole.of[split])
        if system == "delta":
            for part in ("receptor", "ligand"):
                shares = run.shares[part]
                values[:, np.searchsorted(whole.residues, shares.residues)] -= _with_total(shares.of[split])
        is_pair = run.pairs is not None  # pair of a system's only residue with itself
        return [(r, r) if is_pair else (r,) for r in numbers], values, frames

    def _pairs(self, system: str) -> PairShares | None:
        return None if self.run.pairs is None else self.run.pairs.get("single" if self.run.is_single else system)

    def _kind(self, system: str) -> str:
        """Return the key of a system's contributions in a Decomposition."""
        if system == "delta" or not self.run.is_single:
            return system if system == "delta" else "complex"
        return "complex" if system == "complex" else "parts"

    def _pairs_of(self, system: str) -> list[tuple[_Residues, tuple[int, int]]]:
        """Return the pairs of a system's printed residues, and their indices in its matrix."""
        assert self.run.shares is not None
        own = self.run.shares["complex" if system == "delta" else system].residues
        each = [*zip(self.names.in_complex(own, system, self.run.is_single), own.tolist(), strict=True)]
        return [((a, b), (i, j)) for a, i in each for b, j in each]

    def _of_separate(self, split: str) -> _Rows:
        """Return the differences of separate trajectories: subtract means, add variances."""
        everything = self.means("complex", split)
        parts = {row[0]: row for system in ("receptor", "ligand") for row in self.means(system, split).rows}
        changed = list[_Row]()
        for residues, mean, sd in everything.rows:
            _, less, other = parts.get(residues, (residues, np.zeros_like(mean), np.zeros_like(sd)))
            changed.append((residues, mean - less, np.hypot(sd, other)))
        return _Rows(changed, everything.n)


def _with_total(values: Floats) -> Floats:
    return np.concatenate([values, values.sum(axis=-1, keepdims=True)], axis=-1)


def _section(found: _Rows, names: ResidueNames, system: str, split: str, decomp: Decomp) -> Iterator[str]:
    yield f"{_TITLES[split]} Energy Decomposition:\n"
    of_pairs, has_location = decomp.idecomp > 2, system == "delta" and decomp.idecomp < 3
    first = ["Resid 1", "Resid 2"] if of_pairs else ["Residue", "Location"] if has_location else ["Residue"]
    root = sqrt(found.n)
    cells = [[*(names.of(r, system) for r in residues), *([names.location(residues[0])] if has_location else [])]
             for residues, _, _ in found.rows]  # fmt: skip
    if decomp.csv:
        out = io.StringIO()
        table = csv.writer(out, lineterminator="\n")
        table.writerow([*first, *(cell for head in HEADS for cell in (head, "", ""))])
        table.writerow([*("" for _ in first), *(_STATISTICS * len(HEADS))])
        for cell, (_, mean, sd) in zip(cells, found.rows, strict=True):
            table.writerow(
                [*cell, *(x for m, s in zip(mean.tolist(), sd.tolist(), strict=True) for x in (m, s, s / root))]
            )
        yield out.getvalue() + "\n"
        return
    head = " | ".join([*(f"{word:<7}" if k == 0 else f" {word}" for k, word in enumerate(first)),
                       *(f"{word:^19}" for word in HEADS)])  # fmt: skip
    yield f"{head}\n{'-' * len(head)}\n"
    for cell, (_, mean, sd) in zip(cells, found.rows, strict=True):
        numbers = [f"{m:8.3f} +/- {s:6.3f}" for m, s in zip(mean.tolist(), sd.tolist(), strict=True)]
        yield " | ".join([*cell, *numbers]) + "\n"
    yield "\n"
