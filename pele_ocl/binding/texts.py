"""Text output of binding energies: tables of terms, poses, residues and sites."""

from __future__ import annotations

from collections.abc import Mapping

from ..atoms import Floats
from ..common.notes import one_line
from ..jobs.texts import counted
from ..report import text_table
from .alanine import AlanineScan
from .decomposition import GROUPS, Decomposition
from .energies import DELTA, PARTS, BindingEnergies
from .statistics import Difference, Entropy, Spread

STRONGEST = 10  # number of residues in the table
MOST_POSES = 60  # number of poses in the table


def pose_lines(energies: BindingEnergies, columns: Mapping[str, Floats]) -> list[str]:
    """Return a table of poses sorted by binding energy; failed poses have an error message. columns : by term"""
    assert energies.rmsd is not None
    order = sorted(range(len(energies)), key=lambda k: (k in energies.errors, energies.total[k], k))
    totals = [name for name in columns if name.lower() == "total"]
    names = [*totals, *(name for name in columns if name not in totals)]
    title = ["title"] if any(energies.titles) else []
    rows = [
        (str(k + 1), *([one_line(energies.titles[k])] if title else []),
         *("" if k in energies.errors else _number(float(columns[name][k])) for name in names),
         "" if k in energies.errors else f"{energies.rmsd[k]:.2f}", one_line(energies.errors.get(k, "")))
        for k in order[:MOST_POSES]
    ]  # fmt: skip
    heads = ("pose", *title, *(name.replace("_", " ") for name in names), "rmsd A", "")
    more = [f"and {len(order) - MOST_POSES:,} more; files list all"] if len(order) > MOST_POSES else []
    failed = f"; {len(energies.errors):,} of {len(order):,} failed" if energies.errors else ""
    told = f"Binding energy of each pose, kcal/mol, numbered from 1 in the order of the file{failed}"
    align = ">" + "<" * len(title) + ">" * (len(names) + 1) + "<"
    return [told, text_table(heads, rows, align), *more]


def energy_lines(statistics: Mapping[str, Mapping[str, Spread]], n: int) -> list[str]:
    """Return a table of all terms: means for all systems, and standard deviations of the difference."""
    scatter = ("sd", "sem", "sem_blocked") if n > 1 else ()
    heads = ("", *PARTS, DELTA, *(name.upper().replace("_BLOCKED", " blocks") for name in scatter))
    rows = []
    for term, of in statistics[DELTA].items():
        means = (statistics[name][term].mean for name in PARTS)
        numbers = [*means, of.mean, *(getattr(of, name) for name in scatter)]
        rows.append((term.replace("_", " "), *map(_number, numbers)))
    return [
        "Binding energy, kcal/mol" + (f": means of {n:,} frames" if n > 1 else ""),
        text_table(heads, rows, "<" + ">" * (len(heads) - 1)),
    ]


def independence(total: Spread, n: int, n_failed: int) -> str:
    """Describe the number of frames, and how many of them are independent."""
    failed = f"; {counted(n_failed, 'frame')} failed" if n_failed else ""
    return (
        f"SD of the population (of the sample {total.sd_sample:,.3f}); {counted(n, 'frame')} count as "
        f"{total.n / total.inefficiency:,.0f} independent ones{failed}"
    )


def comparison_lines(comparison: Mapping[str, Difference]) -> list[str]:
    """Return a table of the differences from another run."""
    rows = [
        (name.replace("_", " "), f"{of.difference:,.3f}", f"{of.error:,.3f}", _chance(of.p_value))
        for name, of in comparison.items()
    ]
    return ["Difference from the other run, kcal/mol", text_table(("", "difference", "error", "p"), rows, "<>>>")]


def entropy_lines(entropy: Entropy, mean: float) -> list[str]:
    """Return a table of both entropies, and the binding energy including each."""
    heads = ("", "-T dS", "error", "with the energy")
    rows = [
        (name, f"{value:,.3f}", f"{error:,.3f}", f"{mean + value:,.3f}")
        for name, value, error in (
            ("interaction entropy", entropy.interaction, entropy.interaction_error),
            ("C2", entropy.c2, entropy.c2_error),
        )
    ]
    return [
        f"Entropy at {entropy.temperature:g} K, kcal/mol, of all frames; SD of the interaction energy "
        f"{entropy.sigma:,.2f}",
        text_table(heads, rows, "<>>>"),
        "For comparison with gmx_MMPBSA only, which averages the running interaction entropy over the last quarter of",
        f"the frames: {entropy.last_quarter:,.3f}; otherwise use the values in the table",
    ]


def residue_lines(of: Decomposition) -> str:
    """Return a table of the strongest residues by group."""
    shares, names = of.per_residue[DELTA], of.names
    has_spread = of.n_frames > 1
    rows = [
        (
            names[k], *(f"{x:,.3f}" for x in shares.mean[k]), f"{shares.total[k]:,.3f}",
            *([f"{shares.sd_total[k]:,.3f}"] if has_spread else []),
        )
        for k in of.strongest(STRONGEST)
    ]  # fmt: skip
    heads = ("residue", *(group.replace("_", " ") for group in GROUPS), "total", *(["SD"] if has_spread else []))
    told = f"Strongest residues of {len(names):,}, kcal/mol (idecomp {of.idecomp})"
    return told + "\n" + text_table(heads, rows, "<" + ">" * (len(heads) - 1))


def alanine_lines(scan: AlanineScan) -> str:
    """Return a table of the change of the binding energy at each site."""
    scatter = ("sd", "sem_blocked") if scan.changes.shape[1] > 1 else ()
    rows = [
        (str(residue), *(_number(getattr(of, name)) for name in ("mean", *scatter)))
        for residue, of in zip(scan.residues, scan.statistics(), strict=True)
    ]
    heads = ("to alanine", "change", *(("SD", "SEM blocks") if scatter else ()))
    told = "Alanine scan: change of the binding energy, mutant minus wild type (MMPBSA.py: the reverse), kcal/mol"
    return told + "\n" + text_table(heads, rows, "<" + ">" * (len(heads) - 1))


def _chance(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def _number(value: float) -> str:
    """Format a number with three decimals, without -0.000; "" for NaN."""
    return "" if value != value else f"{round(value, 3) + 0.0:,.3f}"
