"""FINAL_RESULTS_MMPBSA.dat, its CSV of frames, and FINAL_DECOMP_MMPBSA.dat in the layouts of the programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Floats
from ...errors import printable
from ..decomposition import Decomposition
from ..energies import PARTS
from .namelists import Decomp
from .runs import SPLITS, Results, Shares

_RULE = "-" * 79
_SUMS = {"GGAS": "G gas", "GSOLV": "G solv"}
_BONDED = ("BOND", "ANGLE", "UB", "DIHED", "CMAP", "1-4 VDW", "1-4 EEL")
_OF_SUM = {"GSOLV": ("EGB", "ESURF")}
_HEADS = ("Internal", "van der Waals", "Electrostatic", "Polar Solvation", "Non-Polar Solv.", "TOTAL")
_STATISTICS = ("Avg.", "Std. Dev.", "Std. Err. of Mean")
_TITLES = {"total": "Total", "sidechain": "Sidechain", "backbone": "Backbone"}
_SCHEMES = {
    1: "Per-residue decomp adding 1-4 interactions to Internal.",
    2: "Per-residue decomp adding 1-4 interactions to EEL and VDW.",
    3: "Pairwise decomp adding 1-4 interactions to Internal.",
    4: "Pairwise decomp adding 1-4 interactions to EEL and VDW.",
}
Moments = tuple[Floats, Floats]  # means and population standard deviations


@dataclass(frozen=True)
class Heading:
    """Lines above the tables, without the bar that they begin with."""

    lines: tuple[str, ...]

    def text(self) -> str:
        shown = (printable(line.expandtabs()).replace("\n", "\\n") for line in self.lines)
        return "".join(f"|{line}\n" for line in shown)


def results_text(heading: Heading, runs: Sequence[Results], verbose: int, of_gromacs: bool) -> str:
    """FINAL_RESULTS_MMPBSA.dat: the tables of the wild type and of mutants, and what a scan changes."""
    out = [heading.text(), f"{_RULE}\n{_RULE}\n"]
    for run in runs:
        out.append(f"{run.label} MUTANT:\nGENERALIZED BORN:\n\n" if run.label else "\nGENERALIZED BORN:\n\n")
        out += (_gromacs_tables if of_gromacs else _amber_tables)(run, verbose)
        out.append(f"{_RULE}\n{_RULE}\n")
    wild = next((run for run in runs if not run.label), None)
    for run in runs:
        if run.label and wild is not None and "receptor" in run.energies:
            mean, sd = _change(wild, run)
            change = f"DELTA DELTA G binding = {mean:9.4f}  +/- {sd:9.4f}"
            out.append(f"\nRESULT OF ALANINE SCANNING: ({run.label}) {change}\n")
            out.append(f"{_RULE}\n{_RULE}\n")
    return "".join(out)


def _change(wild: Results, mutant: Results) -> tuple[float, float]:
    """Wild type less mutant, as MMPBSA.py prints it, and its standard deviation."""
    if wild.is_single:
        change = wild.delta()["TOTAL"] - mutant.delta()["TOTAL"]
        return float(change.mean()), float(change.std())
    (a, sa), (b, sb) = (difference(run)["TOTAL"] for run in (wild, mutant))
    return a - b, sqrt(sa**2 + sb**2)


def difference(run: Results) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of each term of the difference; of separate trajectories by sums of squares."""
    if run.is_single:
        return {name: (float(of.mean()), float(of.std())) for name, of in run.delta().items()}
    found = {}
    for name in run.energies["complex"]:
        whole, *parts = (run.energies[system][name] for system in PARTS)
        mean = float(whole.mean() - sum(of.mean() for of in parts))
        found[name] = mean, sqrt(sum(float(of.var()) for of in (whole, *parts)))
    return found


def _n(run: Results) -> int:
    return min(len(of["TOTAL"]) for of in run.energies.values())


def _shown(run: Results, verbose: int, of_gromacs: bool) -> Mapping[str, Mapping[str, Floats]]:
    """The terms that are printed: without bonded ones where they cancel, but at verbose 2."""
    if of_gromacs or verbose > 1 or not run.is_single:
        return run.energies
    found = dict[str, dict[str, Floats]]()
    for name, of in run.energies.items():
        gas = of["VDWAALS"] + of["EEL"]
        kept = {term: values for term, values in of.items() if term not in _BONDED}
        found[name] = {**kept, "GGAS": gas, "TOTAL": gas + of["GSOLV"]}
    return found


def _amber_tables(run: Results, verbose: int) -> Iterator[str]:
    shown = Results(_shown(run, verbose, False), run.is_single, None, None)
    has_parts = "receptor" in shown.energies
    for name, of in shown.energies.items() if verbose or not has_parts else ():
        yield f"{name.capitalize()}:\n"
        yield _amber_table({term: (float(x.mean()), float(x.std())) for term, x in of.items()}, len(of["TOTAL"]), "")
        yield "\n\n"
    if has_parts:
        yield "Differences (Complex - Receptor - Ligand):\n"
        yield _amber_table(difference(shown), _n(shown), "DELTA ")
        yield "\n\n"


def _amber_table(rows: Mapping[str, tuple[float, float]], n: int, prefix: str) -> str:
    lines = [f"Energy Component            Average              Std. Dev.   Std. Err. of Mean\n{_RULE}\n"]
    for term, (mean, sd) in rows.items():
        name = f"{prefix}{_SUMS.get(term, term)}" if term in (*_SUMS, "TOTAL") else term
        before = "\n" if term in ("GGAS", "TOTAL") else ""
        lines.append(f"{before}{name:<14} {mean:20.4f} {sd:21.4f} {sd / sqrt(n):19.4f}\n")
    return "".join(lines)


def _gromacs_tables(run: Results, verbose: int) -> Iterator[str]:
    has_parts = "receptor" in run.energies
    rows = {name: {t: (float(x.mean()), float(x.std())) for t, x in of.items()} for name, of in run.energies.items()}
    propagated = {name: _propagated({t: sd for t, (_, sd) in of.items()}) for name, of in rows.items()}
    for name, of in rows.items() if verbose or not has_parts else ():
        yield f"{name.capitalize()}:\n"
        yield _gromacs_table(of, propagated[name], len(run.energies[name]["TOTAL"]), "")
        yield "\n\n"
    if has_parts:
        apart = {
            term: abs(rows["complex"][term][1] - rows["receptor"][term][1] - rows["ligand"][term][1])
            if run.is_single
            else sqrt(sum(rows[name][term][1] ** 2 for name in PARTS))
            for term in rows["complex"]
        }
        within = {term: 0.0 if run.is_single and term in _BONDED else sd for term, sd in apart.items()}
        sums = {term: sd for term, sd in _propagated(within).items() if term in ("GGAS", "GSOLV", "TOTAL")}
        yield "Delta (Complex - Receptor - Ligand):\n"
        yield _gromacs_table(difference(run), {**apart, **sums}, _n(run), "Δ")


def _propagated(sds: Mapping[str, float]) -> dict[str, float]:
    """Standard deviations where those of sums are the roots of the sums of squares."""
    single = {term: sd for term, sd in sds.items() if term not in ("GGAS", "GSOLV", "TOTAL")}
    gas = sqrt(sum(sd**2 for term, sd in single.items() if term not in _OF_SUM["GSOLV"]))
    solvent = sqrt(sum(sd**2 for term, sd in single.items() if term in _OF_SUM["GSOLV"]))
    return {**single, "GGAS": gas, "GSOLV": solvent, "TOTAL": sqrt(gas**2 + solvent**2)}


def _gromacs_table(rows: Mapping[str, tuple[float, float]], apart: Mapping[str, float], n: int, prefix: str) -> str:
    lines = [f"Energy Component       Average     SD(Prop.)         SD   SEM(Prop.)        SEM\n{_RULE}\n"]
    for term, (mean, sd) in rows.items():
        before = "\n" if term in ("GGAS", "TOTAL") else ""
        own, root = apart[term], sqrt(n)
        lines.append(
            f"{before}{prefix + term:<14}{mean:16.2f}{own:14.2f}{sd:11.2f}{own / root:13.2f}{sd / root:11.2f}\n"
        )
    return "".join(lines)


def frames_csv(runs: Sequence[Results], verbose: int, of_gromacs: bool) -> str:
    """The energies of each frame as CSV: what MMPBSA.py writes with -eo."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    for run in runs:
        table.writerow([f"{run.label} MUTANT" if run.label else "GENERALIZED BORN:"])
        shown = Results(_shown(run, verbose, of_gromacs), run.is_single, None, None)
        systems: dict[str, Mapping[str, Floats]] = {name.capitalize(): of for name, of in shown.energies.items()}
        if run.is_single and "receptor" in run.energies:
            systems["DELTA"] = shown.delta()
        for name, of in systems.items():
            prefix = "DELTA " if name == "DELTA" else ""
            table.writerow([f"{name} Energy Terms"])
            table.writerow(["Frame #", *(f"{prefix}{_SUMS[t]}" if t in _SUMS else f"{prefix if t == 'TOTAL' else ''}{t}"
                                         for t in of)])  # fmt: skip
            table.writerows([k, *row] for k, row in enumerate(np.stack([*of.values()], axis=1).tolist()))
            table.writerow([])
    return out.getvalue()


# Decompositions


def decomposition_text(
    run: Results, decomp: Decomp, atoms: Atoms, is_ligand: NDArray[np.bool_] | None, of_gromacs: bool, first_line: str
) -> str:  # fmt: skip
    """FINAL_DECOMP_MMPBSA.dat, as text or as CSV."""
    assert run.shares is not None
    out = [f"|{first_line}\n", f"idecomp = {decomp.idecomp}: {_SCHEMES[decomp.idecomp]}\n",
           "Energy Decomposition Analysis (All units kcal/mol): Generalized Born solvent\n\n"]  # fmt: skip
    names = _Names(atoms, is_ligand, of_gromacs)
    is_complex_only = is_ligand is None
    systems = [*run.shares] if decomp.verbose > 1 or is_complex_only else []
    splits = SPLITS if decomp.verbose in (1, 3) and decomp.idecomp < 3 else SPLITS[:1]
    for system in systems:
        out.append(f"{system.capitalize()}:\n")
        for split in splits:
            out += _section(_of_system(run, system, split, names), names, system, split, decomp)
    if not is_complex_only:
        out.append("DELTAS:\n")
        for split in splits:
            out += _section(_of_delta(run, split, names), names, "delta", split, decomp)
    return "".join(out)


class _Names:
    """The residues of the complex as the tables name them, and where each stands in its part."""

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
        """A residue of the complex, by its number in the system."""
        if self._of_gromacs:
            found = self._labels.residues[residue]
            return (
                f"{'L' if self.side[residue] else 'R'}:{found.chain}:{found.name}:{found.number}{found.insertion_code}"
            )
        number = residue + 1 if system in ("complex", "delta") else int(self.own[residue])
        return f"{self.names[residue]:>3s}{number:4d}"

    def location(self, residue: int) -> str:
        return f"{'L' if self.side[residue] else 'R'} {self.names[residue]:>3s}{self.own[residue]:4d}"

    def in_complex(self, shares: Shares, system: str, is_single: bool) -> list[int]:
        """The numbers in the complex of a system's residues."""
        if system == "complex" or is_single:
            return [int(r) for r in shares.residues]
        places = np.flatnonzero(self.side == (system == "ligand"))
        return [int(places[r]) for r in shares.residues]


_Row = tuple[tuple[int, ...], Floats, Floats]  # residues of the complex, means and deviations (n_groups + 1,)


@dataclass(frozen=True)
class _Rows:
    rows: list[_Row]
    n: int


def _with_total(values: Floats) -> Floats:
    return np.concatenate([values, values.sum(axis=-1, keepdims=True)], axis=-1)


def _of_system(run: Results, system: str, split: str, names: _Names) -> _Rows:
    assert run.shares is not None
    shares = run.shares[system]
    residues = names.in_complex(shares, system, run.is_single)
    if run.pairs is not None:
        of = run.pairs["single" if run.is_single else system]
        kind = "complex" if system == "complex" or not run.is_single else "parts"
        places = shares.residues.tolist()
        return _Rows(_pair_rows(of, kind, [*zip(residues, places, strict=True)]), of.n_frames)
    values = _with_total(shares.of[split])
    rows: list[_Row] = [((r,), values[:, k].mean(axis=0), values[:, k].std(axis=0)) for k, r in enumerate(residues)]
    return _Rows(rows, len(values))


def _pair_rows(of: Decomposition, kind: str, places: list[tuple[int, int]]) -> list[_Row]:
    assert of.pairs is not None
    shares = of.pairs[kind]
    return [
        ((a, b), np.append(shares.mean[i, j], shares.total[i, j]), np.append(shares.sd[i, j], shares.sd_total[i, j]))
        for a, i in places for b, j in places
    ]  # fmt: skip


def _of_delta(run: Results, split: str, names: _Names) -> _Rows:
    assert run.shares is not None
    whole = run.shares["complex"]
    if run.is_single and run.pairs is not None:
        of = run.pairs["single"]
        places = [(int(r), int(r)) for r in whole.residues]
        return _Rows(_pair_rows(of, "delta", places), of.n_frames)
    if run.is_single:
        values = _with_total(whole.of[split])
        for system in ("receptor", "ligand"):
            part = run.shares[system]
            values[:, np.searchsorted(whole.residues, part.residues)] -= _with_total(part.of[split])
        rows: list[_Row] = [
            ((int(r),), values[:, k].mean(axis=0), values[:, k].std(axis=0)) for k, r in enumerate(whole.residues)
        ]
        return _Rows(rows, len(values))
    everything = _of_system(run, "complex", split, names)
    others = {row[0]: row for system in ("receptor", "ligand") for row in _of_system(run, system, split, names).rows}
    changed = list[_Row]()
    for residues, mean, sd in everything.rows:
        _, less, other = others.get(residues, (residues, np.zeros_like(mean), np.zeros_like(sd)))
        changed.append((residues, mean - less, np.hypot(sd, other)))
    return _Rows(changed, everything.n)


def _section(found: _Rows, names: _Names, system: str, split: str, decomp: Decomp) -> Iterator[str]:
    yield f"{_TITLES[split]} Energy Decomposition:\n"
    of_pairs, has_location = decomp.idecomp > 2, system == "delta" and decomp.idecomp < 3
    first = ["Resid 1", "Resid 2"] if of_pairs else ["Residue", "Location"] if has_location else ["Residue"]
    root = sqrt(found.n)
    cells = [[*(names.of(r, system) for r in residues), *([names.location(residues[0])] if has_location else [])]
             for residues, _, _ in found.rows]  # fmt: skip
    if decomp.csv:
        out = io.StringIO()
        table = csv.writer(out, lineterminator="\n")
        table.writerow([*first, *(cell for head in _HEADS for cell in (head, "", ""))])
        table.writerow([*("" for _ in first), *(_STATISTICS * len(_HEADS))])
        for cell, (_, mean, sd) in zip(cells, found.rows, strict=True):
            table.writerow(
                [*cell, *(x for m, s in zip(mean.tolist(), sd.tolist(), strict=True) for x in (m, s, s / root))]
            )
        yield out.getvalue() + "\n"
        return
    head = " | ".join([*(f"{word:<7}" if k == 0 else f" {word}" for k, word in enumerate(first)),
                       *(f"{word:^19}" for word in _HEADS)])  # fmt: skip
    yield f"{head}\n{'-' * len(head)}\n"
    for cell, (_, mean, sd) in zip(cells, found.rows, strict=True):
        numbers = [f"{m:8.3f} +/- {s:6.3f}" for m, s in zip(mean.tolist(), sd.tolist(), strict=True)]
        yield " | ".join([*cell, *numbers]) + "\n"
    yield "\n"
