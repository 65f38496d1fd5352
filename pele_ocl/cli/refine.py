"""`pele-ocl refine`: poses of a ligand relaxed in a receptor that answers, and ranked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..common.errors import FormatError
from ..explore.poses import ranks_of
from ..explore.refine_spec import REFINED, RefineSpec
from ..formats import read_conformations, write_table
from ..gb_models.solvent_model import SolventModel
from ..jobs import Journal, Record
from ..jobs.running import run_with
from ..view.poses import Column, save_poses_page
from .clock import elapsed
from .cluster import ClusterOptions, cluster_options_of, place_options
from .command import INPUT, EachOnce
from .json_lines import exit_for_failed, failing_as_record, say_record
from .minimize.report import column
from .minimize.targets import TARGET, expanded
from .options import (
    ReadAtoms,
    ligand_option,
    model_options,
    report_options,
    resume_option,
    run_options,
    strict_option,
    structure_options,
)
from .physics import lines_of
from .progress import ProgressLine
from .report import call_facts, counted, duration, headline
from .tables import UNIT, table
from .terminal import note, one_line, say

JOURNAL, TABLE, PAGE = "refine.jsonl", "refine.csv", "index.html"
_SHOWN = 60  # poses in the table


@click.command(cls=EachOnce)
@click.argument("path", metavar="COMPLEX", type=INPUT)
@click.argument("poses", metavar="[POSES]...", type=INPUT, nargs=-1, callback=expanded)
@ligand_option()
@click.option(
    "-o", "--output", type=TARGET, metavar="DIR", required=True,
    help="Write each refined complex, a table and a journal to this folder.",
)  # fmt: skip
@click.option(
    "--native",
    type=INPUT,
    metavar="FILE",
    help="Pose of the ligand to measure rmsd to, as POSES are; hydrogens may be missing.",
)
@click.option(
    "--near", type=click.FloatRange(min=0), default=8.0, show_default=True,
    help="Residues that move: with an atom so close to the ligand, Angstrom.",
)  # fmt: skip
@click.option(
    "--side-chains", type=click.FloatRange(min=0), default=6.0, show_default=True,
    help="Predict side chains so close to a ligand that clashes, Angstrom; 0 for none.",
)  # fmt: skip
@click.option(
    "--hold", type=click.FloatRange(min=0), default=1.0, show_default=True,
    help="Force constant that holds the ligand's heavy atoms and the backbone, kcal/mol/A^2.",
)  # fmt: skip
@click.option(
    "--free", type=click.FloatRange(min=0), default=1.0, show_default=True,
    help="How far atoms that are held may go before they are, Angstrom.",
)  # fmt: skip
@click.option(
    "--tolerance", type=click.FloatRange(min=0, min_open=True), default=0.2, show_default=True,
    help="Rms gradient at which a pose is done, kcal/mol/A.",
)  # fmt: skip
@click.option(
    "--max-iterations", type=click.IntRange(min=1), default=500, show_default=True,
    help="Largest number of steps of each of the two rounds.",
)  # fmt: skip
@resume_option("poses")
@place_options
@run_options
@structure_options
@model_options
@strict_option
@report_options
def refine(
    path: Path, poses: tuple[Path, ...], ligand: str, output: Path, native: Path | None, near: float,
    side_chains: float, hold: float, free: float, tolerance: float, max_iterations: int, resume: bool, precision: str,
    device: str | None, read_atoms: ReadAtoms, constants: SolventModel, strict: bool, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Relax poses of a ligand, and the receptor near them, and rank them.

    COMPLEX is the receptor with the ligand. POSES are molecules of SDF or mol2 files, or models of .pdb or .cif files:
    of the ligand alone with atoms in any order, or whole complexes. Without POSES the pose of COMPLEX is refined. Side
    chains near the ligand are predicted, then residues near it and the ligand are minimised. The table has clashes,
    strain and binding energy before and after. Poses are ranked by their score, the sum of binding energy and strain.
    A pose that fails does not stop the others: its row has the reason, and the exit code is 1.
    """
    if output.exists() and not output.is_dir():
        raise FormatError(f"{output}: is no folder; name one for the refined complexes")
    cluster = cluster_options_of(click.get_current_context())
    if not resume and (output / JOURNAL).exists():
        raise FormatError(f"{output}: holds poses that were refined before; go on by --resume, or name another folder")
    options = {
        "near": near, "side_chains": side_chains, "hold": hold, "free": free, "tolerance": tolerance,
        "max_iterations": max_iterations, "model": constants, "precision": precision, "device": device,
    }  # fmt: skip
    spec = RefineSpec(
        path=path, ligand=ligand, output=str(output), poses=poses, reading=read_atoms, options=options, native=native,
        strict=strict,
    )  # fmt: skip
    with failing_as_record(path, as_json):
        records = _records(spec, output, resume, cluster, device)
        facts = spec.facts_of_complex()
    rows = [record.to_dict() for record in records]
    scores = [None if record.failed else row["after"]["score"] for record, row in zip(records, rows, strict=True)]
    ranks = ranks_of(np.array(scores, np.float64))
    for row, rank in zip(rows, ranks.tolist(), strict=True):
        row["rank"] = rank
    _save(output / TABLE, rows, facts)
    _draw(spec, output / PAGE, rows)
    for sentence in facts["notes"]:
        note(f"Note: {sentence}")
    limited = [row for row in rows if row.get("converged") is False]
    if limited:
        note(
            f"Note: the minimization of {counted(len(limited), 'pose')} of {len(rows):,} stopped before the gradient "
            "fell below the tolerance"
        )
    if as_json:
        n_failed = sum("error" in row for row in rows)
        entries = [{"pose": row["structure"], **_less(row, "structure", "sha256", "schema")} for row in rows]
        say_record(spec.source, {**facts, "n_poses": len(rows), "n_failed": n_failed, "poses": entries})
    else:
        say(_as_text(spec, rows, facts, output))
    failed = {k: row["error"] for k, row in enumerate(rows, 1) if "error" in row}
    exit_for_failed("pose", failed, len(failed), len(rows))


def _less(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def _records(spec: RefineSpec, output: Path, resume: bool, cluster: ClusterOptions, device: str | None) -> list[Record]:
    """Refine the poses, tell how far they are, and give their records."""
    items = spec.items()
    journal = Journal(output / JOURNAL, spec.settings(), kind=REFINED, waits=True)
    with ProgressLine("Refining") as progress:
        records = run_with(spec, items, journal, resume, cluster.place(device))
        return list(progress.counting(records, items))


def _as_text(spec: RefineSpec, rows: Sequence[dict[str, Any]], facts: dict[str, Any], output: Path) -> str:
    """A table of the poses by rank."""
    has_native = any("rmsd_after" in row for row in rows)
    heads = (
        "rank", "pose", "clashes", "after", "strain", "after", "binding", "after", "score", "moved A",
        *(("rmsd", "after") if has_native else ()), "side chains",
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
        headline(spec.source, spec.refiner.atoms), *lines_of(facts["settings"]),
        f"Ligand        {one_line(spec.ligand)}, {counted(len(spec.refiner.ligand), 'atom')}", "",
        f"Before and after; energies, {UNIT}", *lines, *more, "", ending,
        f"{facts['variant']}, {facts['precision']}, on {facts['device']}: in all {duration(elapsed())}",
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
    """Write an energy, kcal/mol."""
    return "-" if value is None else f"{value:,.1f}" if abs(value) < 1e6 else f"{value:.1e}"


def _draw(spec: RefineSpec, path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write the page of the poses that are done, from the files of their complexes."""
    good = [k for k, row in enumerate(rows) if "error" not in row]
    if not good:
        return
    poses = np.stack([read_conformations(spec.target(k))[1][0] for k in good])
    columns = {
        "score": Column("score, kcal/mol", [rows[k]["after"]["score"] for k in good]),
        "binding": Column("binding energy, kcal/mol", [rows[k]["after"]["binding"] for k in good]),
        "total": Column("energy of the complex, kcal/mol", [rows[k]["after"]["total"] for k in good]),
        "strain": Column("strain of the ligand, kcal/mol", [rows[k]["after"]["strain"] for k in good]),
        "clashes": Column("clashes before", [rows[k]["before"]["clashes"] for k in good]),
        "moved": Column("moved, \u00c5", [rows[k]["moved"] for k in good]),
    }
    if spec.native is not None:
        columns = {"rmsd": Column("rmsd to the native pose, \u00c5", [rows[k]["rmsd_after"] for k in good]), **columns}
    settings = lines_of(spec.facts_of_complex()["settings"])
    save_poses_page(
        path, spec.refiner.atoms, spec.refiner.ligand, poses, [rows[k]["structure"] for k in good], columns,
        ("moved" if spec.native is None else "rmsd", "score"),
        title=f"Poses of {spec.ligand} in {spec.path.name}",
        facts=f"{counted(len(good), 'pose')} refined; {settings[-1].split(maxsplit=1)[1]}",
        about="Click a pose, or its row. Drag turns the molecule, the wheel scales it. The score is binding energy and"
        " strain of the minimised pose, and no free energy.",
    )  # fmt: skip


def _save(path: Path, rows: Sequence[dict[str, Any]], facts: dict[str, Any]) -> None:
    """A row for every pose, or why there is none."""
    names = ("clashes", "closest", "total", "binding", "strain", "score")
    numbers = {
        f"{name}_{when}": [row.get(when, {}).get(name) for row in rows]
        for name in names
        for when in ("before", "after")
    }
    others = ("rank", "moved", "rmsd_before", "rmsd_after", "side_chains", "iterations", "converged")
    numbers |= {name: [row.get(name) for row in rows] for name in others if any(name in row for row in rows)}
    columns = {
        "pose": np.array([row["structure"] for row in rows]),
        **{name: column(values) for name, values in numbers.items()},
        "error": np.array([row.get("error", "") for row in rows]),
    }
    energies = {name: UNIT for name in numbers if name.split("_")[0] in ("total", "binding", "strain", "score")}
    lengths = {name: "angstrom" for name in ("moved", "rmsd_before", "rmsd_after") if name in numbers}
    write_table(path, columns, energies | lengths, {**call_facts(), **facts["settings"]})
