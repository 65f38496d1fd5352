"""`pele-ocl refine`: refinement and ranking of ligand poses in a flexible receptor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..explore.refining import TABLE, RefineBatch
from ..explore.refining import refine as library
from ..jobs.texts import UNIT, counted, duration, headline, lines_of
from ..report import text_table as table
from .call import Call, CommandProvenance
from .command import INPUT, EachOnce, command_option
from .groups import keywords, option, options
from .options import (
    ligand_option,
    overwrite_option,
    place_options,
    report_options,
    resume_option,
    run_options,
    solvent_flags,
    strict_option,
    structure_flags,
    words_of,
)
from .progress import ProgressLine
from .showing import exit_for_failed, failing_as_record, say_records, timed_record
from .structures import FREE_RADIUS, RESTRAINT, TARGET, files
from .terminal import elapsed, one_line, say

_SHOWN = 60  # poses in the table
_LENGTH = click.FloatRange(min=0)


@dataclass(frozen=True)
class Refinement:
    """Options of the refinement."""

    moving_radius: float = option(
        "Move residues with an atom within this distance of the ligand, Angstrom.", like=library, type=_LENGTH,
        former=("--near",), essential=True,
    )  # fmt: skip
    side_chains: float = option(
        "Predict side chains within this distance of a ligand that clashes, Angstrom; 0 for "
        "none.", like=library, type=_LENGTH,
        essential=True,
    )  # fmt: skip
    restraint: float = option(RESTRAINT, like=library, type=_LENGTH, former=("--hold",))
    free_radius: float = option(FREE_RADIUS, like=library, type=_LENGTH, former=("--free",))
    tolerance: float = option(
        "Rms gradient at which a pose is converged, kcal/mol/A.", like=library,
        type=click.FloatRange(min=0, min_open=True), heading="Stopping", essential=True,
    )  # fmt: skip
    max_iterations: int = option(
        "Maximum number of steps of each of the two rounds.", like=library, type=click.IntRange(min=1),
        heading="Stopping", essential=True,
    )  # fmt: skip


@click.command(cls=EachOnce)
@click.argument("path", metavar="COMPLEX", type=INPUT)
@click.argument("poses", metavar="[POSES]...", type=INPUT, nargs=-1, callback=files)
@ligand_option()
@click.option(
    "-o", "--output", type=TARGET, metavar="DIR", required=True,
    help="Write each refined complex, a table and a journal to this folder.",
)  # fmt: skip
@command_option(
    "--native", type=INPUT, metavar="FILE",
    help="Pose of the ligand to which the rmsd is measured, in a format of POSES; hydrogens may be "
    "missing.", essential=True,
)  # fmt: skip
@options(Refinement)
@resume_option("poses")
@overwrite_option
@place_options
@run_options
@structure_flags
@solvent_flags
@strict_option
@report_options
@words_of
def refine(
    path: Path, poses: tuple[Path, ...], refinement: Refinement, output: Path, as_json: bool, verbose: bool,
    words: dict[str, Any], call: Call, **more: Any,
) -> None:  # fmt: skip
    """Relax poses of a ligand, and the receptor near them, and rank them.

    COMPLEX is the receptor with the ligand. POSES are molecules of SDF or mol2 files, or models of .pdb or .cif files:
    of the ligand alone with atoms in any order, or whole complexes, also frames of trajectories. If the force
    field has no parameters for the ligand, they come from its molecule in an SDF or mol2 file of POSES. Without POSES
    the pose of COMPLEX is refined. Side chains near the ligand are predicted, then residues near it and the ligand are
    minimized. The table has clashes, strain and binding energy before and after. Poses are ranked by their score, the
    sum of binding energy and strain. A pose that fails does not stop the others: its row has the reason, and the exit
    code is 1.
    """
    with failing_as_record(path, as_json), ProgressLine("Refining") as progress:
        found = library(
            path, poses, **keywords(refinement), **more, **words, output=output, errors="record",
            progress=progress, provenance=CommandProvenance(call),
        )  # fmt: skip
    if as_json:
        record = found.record
        say_records([timed_record(record)])
    else:
        say(_as_text(found, output))
    failed = {k + 1: why for k, why in found.errors.items()}
    exit_for_failed("pose", failed, len(failed), len(found))


def _as_text(found: RefineBatch, output: Path) -> str:
    """Return a text table of the poses by rank."""
    rows, facts, refiner, source = found.rows, found.facts, found.spec.refiner, found.spec.source
    assert source is not None
    has_native = any("rmsd_after" in row for row in rows)
    heads = (
        "rank", "pose",
        *(head for name in ("clashes", "strain", "binding") for head in (name, f"{name} after")), "score", "moved A",
        *(("rmsd", "rmsd after") if has_native else ()), "side chains",
    )  # fmt: skip
    ordered = sorted(rows, key=lambda row: row["rank"] or len(rows) + 1)
    cells = [_cells(row, has_native) for row in ordered[:_SHOWN]]
    lines = table(heads, cells, "><" + ">" * (len(heads) - 2)).split("\n")
    for k, row in enumerate(ordered[:_SHOWN], 1):
        lines[k] += f"  {one_line(row['error'])}" if "error" in row else ""
    more = [f"and {len(rows) - _SHOWN:,} more in {TABLE}"] if len(rows) > _SHOWN else []
    good = [row for row in rows if "error" not in row]
    clashes = [sum(row[when]["clashes"] > 0 for row in good) for when in ("before", "after")]
    ending = (
        f"{counted(len(good), 'pose')} -> {one_line(str(output))}; with clashes {clashes[0]:,} before, "
        f"{clashes[1]:,} after"
    )
    return "\n".join([
        headline(source, refiner.atoms), *lines_of(facts["settings"]),
        f"Ligand        {one_line(found.spec.ligand)}, {counted(len(refiner.ligand), 'atom')}", "",
        f"Before and after; energies, {UNIT}", *lines, *more, "", ending,
        f"{facts['variant']}, {facts['precision']}, on {facts['device']}: total {duration(elapsed())}",
    ])  # fmt: skip


def _cells(row: dict[str, Any], has_native: bool) -> list[str]:
    n = 10 + 2 * has_native
    if "error" in row:
        return ["", one_line(row["structure"]), *[""] * (n - 1)]
    before, after = row["before"], row["after"]
    rmsds = [f"{row['rmsd_before']:.2f}", f"{row['rmsd_after']:.2f}"] if has_native else []
    pairs = [
        _text(values["binding"]) if name == "binding" else f"{values[name]:.0f}" if name == "clashes"
        else _text(values[name]) for name in ("clashes", "strain", "binding") for values in (before, after)
    ]  # fmt: skip
    return [
        f"{row['rank']}",
        one_line(row["structure"]),
        *pairs,
        _text(after["score"]),
        f"{row['moved']:.2f}",
        *rmsds,
        f"{row['side_chains']}",
    ]


def _text(value: float | None) -> str:
    """Format an energy, kcal/mol."""
    if value is None or abs(value) >= 1e6:
        return "-" if value is None else f"{value:.1e}"
    return f"{value:,.2f}"
