"""Report of `pele-ocl binding` as text."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...binding import Binding, BindingEnergies
from ...binding.amber import amber_terms
from ...binding.decomposition import GROUPS, Decomposition
from ...binding.energies import DELTA, PARTS
from ...binding.entropy import Entropy
from ...binding.scan import AlanineScan
from ...binding.statistics import Spread
from ...common.inputfile import InputFile
from ...results import Terms
from ..clock import elapsed
from ..physics import lines_of, physics_lines
from ..report import counted, duration, headline, settings
from ..tables import table
from ..terminal import one_line
from .options import OF_AMBER
from .report import BindingReport, amber_statistics

STRONGEST = 10  # residues that are told
MOST_POSES = 60  # in the table


def as_text(source: InputFile, found: BindingReport) -> str:
    """Make the whole report."""
    binding, energies = found.binding, found.energies
    if found.poses is not None:
        return _of_poses(source, found, found.poses)
    own = energies.statistics()
    amber = amber_statistics(energies) if found.like in OF_AMBER else None
    statistics = own if amber is None else amber
    total = own[DELTA]["total"]
    lines = _head(source, found)
    lines += energy_lines(statistics, total.n)
    if found.grid_errors is not None:
        of = found.grid_errors
        lines += [f"Twice the spacing changes the Poisson-Boltzmann energy of the complex by {of['complex']:,.3f}, the "
                  f"difference by {of[DELTA]:,.3f} kcal/mol (first positions)"]  # fmt: skip
    lines += [finding.text for finding in found.imaged()]
    if isinstance(energies, BindingEnergies) and len(energies) > 1:
        lines += ["", _independence(total, len(energies), len(energies.errors))]
    if found.entropy is not None:
        lines += ["", *entropy_lines(found.entropy, total.mean)]
    if found.decomposition is not None:
        lines += ["", residue_lines(found.decomposition)]
    if found.scan is not None:
        lines += ["", alanine_lines(found.scan)]
    if found.comparison is not None:
        rows = [
            (name.replace("_", " "), f"{of.difference:,.3f}", f"{of.error:,.3f}", _chance(of.p_value))
            for name, of in found.comparison.items()
        ]
        heads = ("", "difference", "error", "p")
        lines += ["", "Difference from the other run, kcal/mol", table(heads, rows, "<>>>")]
    return "\n".join([*lines, "", _how(binding)])


def _head(source: InputFile, found: BindingReport) -> list[str]:
    """Say what was computed, and by which physics."""
    parts = found.binding.parts
    sizes = f"receptor {len(parts.receptor):,} atoms, ligand {len(parts.ligand):,}: {found.ligand}"
    return [headline(source, found.binding.atoms), sizes, *_physics(found), ""]


def _how(binding: Binding) -> str:
    return f"{binding.variant}, {binding.precision}, on {binding.device}: in all {duration(elapsed())}"


def _of_poses(source: InputFile, found: BindingReport, energies: BindingEnergies) -> str:
    """Make the report of poses: a table by binding energy, the terms that differ among systems, and reasons."""
    assert energies.rmsd is not None
    terms = energies.delta if found.like not in OF_AMBER else Terms.of(amber_terms(energies.delta))
    columns = {name: values for name, values in terms.columns().items() if np.nanmax(np.abs(values), initial=0) > 5e-4}
    order = sorted(range(len(energies)), key=lambda k: (k in energies.errors, energies.total[k], k))
    totals = [name for name in columns if name.lower() == "total"]
    names = [*totals, *(name for name in columns if name not in totals)]
    rows = [
        (str(k + 1), *("" if k in energies.errors else _number(float(columns[name][k])) for name in names),
         "" if k in energies.errors else f"{energies.rmsd[k]:.2f}", one_line(energies.errors.get(k, "")))
        for k in order[:MOST_POSES]
    ]  # fmt: skip
    heads = ("pose", *(name.replace("_", " ") for name in names), "rmsd A", "")
    more = [f"and {len(order) - MOST_POSES:,} more, which a file has"] if len(order) > MOST_POSES else []
    failed = f"; {len(energies.errors):,} of {len(order):,} failed" if energies.errors else ""
    told = f"Energy of binding of each pose, kcal/mol, from 1 in the order of the file{failed}"
    lines = [told, table(heads, rows, ">" * (len(heads) - 1) + "<"), *more]
    return "\n".join([*_head(source, found), *lines, "", _how(found.binding)])


def _physics(found: BindingReport) -> list[str]:
    """Say the force field and the solvent."""
    binding = found.binding
    if binding.pb is None:
        return physics_lines(binding.model, binding.atoms, binding.names, binding.options.cutoff)
    facts = {**settings(binding.model, binding.atoms), "cutoff": binding.options.cutoff, "pb": binding.pb}
    return lines_of(facts, binding.names)


def energy_lines(statistics: Mapping[str, Mapping[str, Spread]], n: int) -> list[str]:
    """A table of all terms: means of all systems, and of the difference how they scatter."""
    scatter = ("sd", "sem", "sem_blocked") if n > 1 else ()
    heads = ("", *PARTS, DELTA, *(name.upper().replace("_BLOCKED", " blocks") for name in scatter))
    rows = []
    for term, of in statistics[DELTA].items():
        means = (statistics[name][term].mean for name in PARTS)
        numbers = [*means, of.mean, *(getattr(of, name) for name in scatter)]
        rows.append((term.replace("_", " "), *map(_number, numbers)))
    return [
        "Energy of binding, kcal/mol" + (f": means of {n:,} frames" if n > 1 else ""),
        table(heads, rows, "<" + ">" * (len(heads) - 1)),
    ]


def _independence(total: Spread, n: int, n_failed: int) -> str:
    failed = f"; {counted(n_failed, 'frame')} failed" if n_failed else ""
    return (
        f"SD of the population (of the sample {total.sd_sample:,.3f}); {counted(n, 'frame')} count as "
        f"{total.n / total.inefficiency:,.0f} independent ones{failed}"
    )


def entropy_lines(entropy: Entropy, mean: float) -> list[str]:
    """Both entropies, and what they make of the binding energy."""
    heads = ("", "-T dS", "error", "with the energy")
    rows = [
        (name, f"{value:,.3f}", f"{error:,.3f}", f"{mean + value:,.3f}")
        for name, value, error in (
            ("interaction entropy", entropy.interaction, entropy.interaction_error),
            ("C2", entropy.c2, entropy.c2_error),
        )
    ]
    lines = [
        f"Entropy at {entropy.temperature:g} K, kcal/mol; interaction energy scatters by {entropy.sigma:,.2f}; the",
        f"interaction entropy is {entropy.last_quarter:,.3f} on average over the last quarter of the frames",
        table(heads, rows, "<>>>"),
    ]
    return lines


def residue_lines(of: Decomposition) -> str:
    """Make a table of the strongest residues by group."""
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
    return told + "\n" + table(heads, rows, "<" + ">" * (len(heads) - 1))


def alanine_lines(scan: AlanineScan) -> str:
    """Make a table of the change of the binding energy at each site."""
    scatter = ("sd", "sem_blocked") if scan.changes.shape[1] > 1 else ()
    rows = [
        (str(residue), *(_number(getattr(of, name)) for name in ("mean", *scatter)))
        for residue, of in zip(scan.residues, scan.statistics(), strict=True)
    ]
    heads = ("to alanine", "change", *(("SD", "SEM blocks") if scatter else ()))
    told = "Alanine scan: change of the binding energy, mutant less wild type (MMPBSA.py: the reverse), kcal/mol"
    return told + "\n" + table(heads, rows, "<" + ">" * (len(heads) - 1))


def _chance(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def _number(value: float) -> str:
    """Three digits, never -0.000; nothing for NaN."""
    return "" if value != value else f"{round(value, 3) + 0.0:,.3f}"
