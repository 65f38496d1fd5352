"""FINAL_RESULTS_MMPBSA.dat and energies per frame, in the formats of MMPBSA.py and gmx_MMPBSA."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, hypot, sqrt

import numpy as np

from ...atoms import Floats
from ...common.errors import printable
from ..energies import PARTS
from ..naming import OF_BONDS, OF_SOLVENT
from ..statistics import MOST_SIGMA, entropy_of
from .namelists import Entropies
from .work import METHODS, Results

# Gas constants of gmx_MMPBSA, kcal/(mol K).
_OF_INTERACTION, _OF_C2 = 0.001985875, 0.001987


@dataclass(frozen=True)
class InteractionEntropy:
    """-T dS from the interaction entropy, kcal/mol.

    by_frame : (m,) value computed from all frames up to each one; n : number of last frames to average
    sigma : standard deviation of the interaction energy
    """

    by_frame: Floats
    n: int
    sigma: float

    @property
    def mean(self) -> float:
        """Mean of the last n frames."""
        return float(self.by_frame[-self.n :].mean())

    @property
    def sd(self) -> float:
        """Population standard deviation of the last n frames."""
        return float(self.by_frame[-self.n :].std())


@dataclass(frozen=True)
class C2Entropy:
    """-T dS from the second cumulant, kcal/mol, with the standard deviation of bootstrap samples."""

    value: float
    sd: float
    sigma: float

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval, assuming a normal distribution."""
        return self.value - 1.96 * self.sd, self.value + 1.96 * self.sd


def interaction_entropy_of(energies: Floats, wanted: Entropies) -> InteractionEntropy:
    """Compute the interaction entropy of energies (m,) as in gmx_MMPBSA, relative to the running mean."""
    kt = _OF_INTERACTION * wanted.temperature
    means = np.cumsum(energies) / np.arange(1, len(energies) + 1)
    exponents = np.logaddexp.accumulate((energies - means) / kt)
    by_frame = kt * (exponents - np.log(np.arange(1, len(energies) + 1)))
    return InteractionEntropy(by_frame, ceil(len(energies) * wanted.segment / 100), float(energies.std()))


def c2_entropy_of(energies: Floats, wanted: Entropies) -> C2Entropy:
    """Compute the second-cumulant entropy of energies (m,); its error is 0 for a single frame."""
    sigma = float(energies.std())
    sd = entropy_of(energies, wanted.temperature).c2_error if len(energies) > 1 else 0.0
    return C2Entropy(sigma**2 / (2 * _OF_C2 * wanted.temperature), sd, sigma)


def warning_of(sigma: float) -> str:
    """Return a warning if the interaction energy fluctuates too much for a meaningful entropy, else ""."""
    if sigma <= MOST_SIGMA:
        return ""
    return (
        f"the standard deviation of the interaction energy is {sigma:.1f} kcal/mol; beyond {MOST_SIGMA} kcal/mol "
        "entropies do not converge"
    )


_RULE = "-" * 79
SUMS = {"GGAS": "G gas", "GSOLV": "G solv"}


@dataclass(frozen=True)
class Heading:
    """Header lines of the tables, without the leading bar."""

    lines: tuple[str, ...]

    def text(self) -> str:
        shown = (printable(line.expandtabs()).replace("\n", "\\n") for line in self.lines)
        return "".join(f"|{line}\n" for line in shown)


def results_text(
    heading: Heading, runs: Sequence[Results], verbose: int, of_gromacs: bool, entropies: Entropies | None = None
) -> str:  # fmt: skip
    """Return the content of FINAL_RESULTS_MMPBSA.dat: tables of wild type and mutants, entropies, and changes."""
    out = [heading.text(), f"{_RULE}\n{_RULE}\n"]
    for run in runs:
        if entropies is not None:
            out += _entropy_tables(run, entropies)
    for run in runs:
        out.append(f"{run.label} MUTANT:" if run.label else "")
        out.append(f"\n{METHODS[run.method]}:\n\n")
        out += (_gromacs_tables if of_gromacs else _amber_tables)(run, verbose)
        if entropies is not None:
            out += _with_entropy(run, entropies)
        out.append(f"{_RULE}\n{_RULE}\n")
    for run in runs:
        wild = wild_of(run, runs)
        if run.label and wild is not None and run.has_parts:
            mean, sd = scan_change(wild, run)
            if of_gromacs:  # opposite sign
                change = f" ({run.label}):\nΔΔH binding = {-mean:9.2f} +/- {sd:7.2f}\n"
            else:
                change = f": ({run.label}) DELTA DELTA G binding = {mean:9.4f}  +/- {sd:9.4f}\n"
            out.append(f"\nRESULT OF ALANINE SCANNING{change}{_RULE}\n{_RULE}\n")
    return "".join(out)


def wild_of(run: Results, runs: Sequence[Results]) -> Results | None:
    """Return the wild type of a run, computed by the same method, None if there is none."""
    return next((of for of in runs if not of.label and of.method == run.method), None)


def _entropy_tables(run: Results, wanted: Entropies) -> Iterator[str]:
    """Yield the tables of -T dS of a run."""
    gas = run.delta()["GGAS"]
    method = f"{run.method.upper():16s}"
    whose = f"{run.label} Mutant" if run.label else "Normal"
    first = f"{'Energy Method':16s} {'Entropy':>13s} {'σ(Int. Energy)':>13s}"  # noqa: RUF001
    if wanted.interaction:
        of = interaction_entropy_of(gas, wanted)
        yield f"{whose} [ -TΔS ]\nENTROPY RESULTS (INTERACTION ENTROPY):\n"
        yield f"{first} {'Average':>10s} {'SD':>12s} {'SEM':>10s}\n{_RULE}\n"
        yield f"{method} {'IE':>13s} {of.sigma:13.2f} {of.mean:10.2f} {of.sd:12.2f} {of.sd / sqrt(of.n):10.2f}\n\n"
    if wanted.c2:
        c2 = c2_entropy_of(gas, wanted)
        low, high = c2.interval
        yield f"{whose} [ -TΔS ]\nENTROPY RESULTS (C2 ENTROPY):\n"
        yield f"{first} {'C2 Value':>10s} {'SD':>8s} {'C.Inter.(95%)':>14s}\n{_RULE}\n"
        interval = f"{low:.2f}-{high:.2f}"
        yield f"{method} {'C2':>13s} {c2.sigma:13.2f} {c2.value:10.2f} {c2.sd:8.2f} {interval:>14s}\n\n"
    warning = warning_of(float(gas.std()))
    if warning:
        yield f"WARNING: {warning}\n\n"


def _with_entropy(run: Results, wanted: Entropies) -> Iterator[str]:
    """Yield the binding energy of a run with each entropy."""
    gas, total = run.delta()["GGAS"], run.delta()["TOTAL"]
    mean, sd = float(total.mean()), float(total.std())
    if wanted.interaction:
        of = interaction_entropy_of(gas, wanted)
        yield "Using Interaction Entropy Approximation:\n"
        yield f"ΔG binding = {mean + of.mean:9.2f} +/- {hypot(sd, of.sd):7.2f}\n"
    if wanted.c2:
        c2 = c2_entropy_of(gas, wanted)
        yield f"Using C2 Entropy Approximation:\nΔG binding = {mean + c2.value:9.2f} +/- {hypot(sd, c2.sd):7.2f}\n"


def scan_change(wild: Results, mutant: Results) -> tuple[float, float]:
    """Return the change in binding energy, wild type minus mutant as in MMPBSA.py, and its standard deviation."""
    if wild.is_single:
        change = wild.delta()["TOTAL"] - mutant.delta()["TOTAL"]
        return float(change.mean()), float(change.std())
    (a, sa), (b, sb) = (difference(run)["TOTAL"] for run in (wild, mutant))
    return a - b, sqrt(sa**2 + sb**2)


def difference(run: Results) -> dict[str, tuple[float, float]]:
    """Return mean and standard deviation of each term of the difference.

    Variances of separate trajectories are added.
    """
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


def shown_terms(run: Results, verbose: int, of_gromacs: bool) -> Mapping[str, Mapping[str, Floats]]:
    """Return the terms to print: bonded terms are omitted if they cancel, unless verbose is 2."""
    if of_gromacs or verbose > 1 or not run.is_single:
        return run.energies
    found = dict[str, dict[str, Floats]]()
    for name, of in run.energies.items():
        gas = of["VDWAALS"] + of["EEL"]
        kept = {term: values for term, values in of.items() if term not in OF_BONDS}
        found[name] = {**kept, "GGAS": gas, "TOTAL": gas + of["GSOLV"]}
    return found


def _amber_tables(run: Results, verbose: int) -> Iterator[str]:
    shown = Results(shown_terms(run, verbose, False), run.is_single)
    has_parts = run.has_parts
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
        name = f"{prefix}{SUMS.get(term, term)}" if term in (*SUMS, "TOTAL") else term
        before = "\n" if term in ("GGAS", "TOTAL") else ""
        lines.append(f"{before}{name:<14} {mean:20.4f} {sd:21.4f} {sd / sqrt(n):19.4f}\n")
    return "".join(lines)


def _gromacs_tables(run: Results, verbose: int) -> Iterator[str]:
    has_parts = run.has_parts
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
        within = {term: 0.0 if run.is_single and term in OF_BONDS else sd for term, sd in apart.items()}
        sums = {term: sd for term, sd in _propagated(within).items() if term in ("GGAS", "GSOLV", "TOTAL")}
        yield "Delta (Complex - Receptor - Ligand):\n"
        yield _gromacs_table(difference(run), {**apart, **sums}, _n(run), "Δ")


def _propagated(sds: Mapping[str, float]) -> dict[str, float]:
    """Propagate standard deviations to sums of terms, as the root of the sum of squares."""
    single = {term: sd for term, sd in sds.items() if term not in ("GGAS", "GSOLV", "TOTAL")}
    gas = sqrt(sum(sd**2 for term, sd in single.items() if term not in OF_SOLVENT))
    solvent = sqrt(sum(sd**2 for term, sd in single.items() if term in OF_SOLVENT))
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
    """Return the energies of each frame as CSV, as written by MMPBSA.py with -eo."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    for run in runs:
        table.writerow([f"{run.label} MUTANT" if run.label else f"{METHODS[run.method]}:"])
        shown = Results(shown_terms(run, verbose, of_gromacs), run.is_single)
        systems: dict[str, Mapping[str, Floats]] = {name.capitalize(): of for name, of in shown.energies.items()}
        if run.is_single and run.has_parts:
            systems["DELTA"] = shown.delta()
        for name, of in systems.items():
            prefix = "DELTA " if name == "DELTA" else ""
            table.writerow([f"{name} Energy Terms"])
            table.writerow(["Frame #", *(f"{prefix}{SUMS[t]}" if t in SUMS else f"{prefix if t == 'TOTAL' else ''}{t}"
                                         for t in of)])  # fmt: skip
            table.writerows([k, *row] for k, row in enumerate(np.stack([*of.values()], axis=1).tolist()))
            table.writerow([])
    return out.getvalue()
