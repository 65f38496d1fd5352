"""`pele-ocl solvent`: Born radii and implicit-solvent energy of a structure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import click
import numpy as np

from ..common.inputfile import read_file
from ..formats import require_table_suffix, write_table
from ..jobs.evaluation import Evaluation
from ..jobs.facts import names_of_residues, numbers_in, radii_facts
from ..jobs.reading import molecule_of
from ..solvent import VARIANTS, SolventModel, SolventResult
from ..solvent.spec import SolventSpec, energy_of
from ..trajectories.recording import require_record_suffix
from .cluster import cluster_options
from .command import EachOnce
from .frames import FrameOptions, FrameWork, report_frames, trajectory_options
from .json_lines import exit_for_models, failing_as_record, say_record
from .options import (
    ReadAtoms,
    device_list,
    model_options,
    models_option,
    report_options,
    run_options,
    strict_option,
    structure_options,
    surface_options,
)
from .physics import physics_lines
from .plan_options import accuracy_attributes, accuracy_lines, accuracy_option, per_residue_option, results_option
from .progress import ProgressLine
from .report import (
    area_lines,
    choice_line,
    duration,
    ending,
    energy_lines,
    headline,
    label_columns,
    model_line,
    origin,
    settings,
)
from .several import Several, only_one, structures_argument
from .tables import UNIT, model_columns, model_lines, residue_table
from .terminal import say

_PER_RESIDUE = "--per-residue of several structures is told by --json; add it"
VARIANT_HELP = "How the Born radii are computed: " + "; ".join(f"{name}, {v.summary}" for name, v in VARIANTS.items())


@click.command(cls=EachOnce)
@structures_argument
@results_option("radii and energies of every atom, or energies of every model")
@click.option("--no-energy", is_flag=True, help="Compute Born radii only; with a tree this takes far less time.")
@models_option
@trajectory_options
@cluster_options
@click.option(
    "--variant", type=click.Choice(["auto", *VARIANTS]), default="auto", show_default=True, help=VARIANT_HELP + "."
)
@accuracy_option
@run_options
@structure_options
@model_options
@surface_options
@strict_option
@per_residue_option()
@report_options
def solvent(
    path: Path | tuple[Path, ...], output: Path | None, no_energy: bool, models: str, trajectory: FrameOptions,
    variant: str, accuracy: float | None, precision: str, device: str | None, read_atoms: ReadAtoms,
    constants: SolventModel, per_residue: bool, strict: bool, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Compute Born radii and implicit-solvent energy of the molecule in IN.

    IN is a .pdb, .cif or .pqr file or an AMBER topology with -c, also with .gz. A bare PDB file with all hydrogens gets
    Amber99SB parameters; --templates, --obc and --pele-data bring PELE's. Radii in Angstrom, energies in kcal/mol.
    Several devices, --device 0,1, share the work of the variant tree.
    """
    if no_energy and per_residue:
        raise click.UsageError("--per-residue is about energies; choose one of --no-energy and --per-residue")
    several = Several.of(path, output, trajectory, as_json, {_PER_RESIDUE: per_residue and not as_json})
    devices = device_list(device)
    spec = SolventSpec(
        reading=read_atoms, models="all" if models == "all" else "one", energy=not no_energy, variant=variant,
        accuracy=accuracy, precision=precision, device=tuple(devices) if isinstance(devices, list) else devices,
        model=constants, per_residue=per_residue, strict=strict,
    )  # fmt: skip
    if several is not None:
        several.report(spec, "Solvent")
        return
    path = only_one(path)
    trajectory.require_alone(no_energy=no_energy, models_all=models == "all", per_residue=per_residue)
    if output is not None:
        (require_record_suffix if trajectory.paths else require_table_suffix)(output)
    if trajectory.paths:
        report_frames(partial(_frame_work, spec, path), path, trajectory, output, as_json)
        return
    with failing_as_record(path, as_json), ProgressLine("Solvent") as progress:
        found = spec.evaluate(read_file(path), progress)
    if output is not None:
        _save(output, found, numbers_in(spec.facts_of_molecule(found.first)))
    if as_json:
        say_record(found.molecule.source, spec.as_json(found))
    else:
        say(_as_text(found, per_residue, verbose))
    exit_for_models(found.failed, found.molecule.numbers)


def _frame_work(spec: SolventSpec, path: Path) -> FrameWork:
    """Make the work on frames."""
    molecule = molecule_of(read_file(path), spec.reading, spec.models)
    plan = spec.plan(molecule.atoms)
    facts = spec.facts_of_molecule(plan)
    return FrameWork("Solvent", molecule.source, plan, facts, chosen=molecule.chosen, strict=spec.strict)


def _as_text(found: Evaluation[SolventResult], per_residue: bool, verbose: bool) -> str:
    molecule, result = found.molecule, found.first
    lines = [headline(molecule.source, molecule.atoms), *physics_lines(result.model, molecule.atoms)]
    energy = energy_of(result)
    if molecule.numbers:
        about = [] if energy else ["Born radii of models, A"]
        figures = [
            (number, of if isinstance(of, str) else energy_of(of) or radii_facts(of.born_radii))
            for number, of in found.rows()
        ]
        lines += model_lines(figures, *about)
    else:
        radii = radii_facts(result.born_radii)
        lines += ["", f"Born radii    {radii['min']:.3f} to {radii['max']:.3f} A, mean {radii['mean']:.3f} A"]
        lines += [*energy_lines(energy), *area_lines(result.model, energy)] if energy else []
    lines += [*accuracy_lines(result, result.variant), "", ending(result, result.seconds["kernel"])]
    if verbose:
        lines += ["", *_details(result)]
    if per_residue:
        numbers: Sequence[int | None] = molecule.numbers or [None]
        residues = [
            (number, of.per_residue().columns())
            for number, of in zip(numbers, found.results, strict=True)
            if of is not None
        ]
        lines += ["", residue_table(names_of_residues(molecule.atoms), residues)]
    return "\n".join(lines)


def _radii(result: SolventResult) -> dict[str, float]:
    """Name the least, largest and mean Born radius as columns."""
    return {f"born_radius_{name}": value for name, value in radii_facts(result.born_radii).items()}


def _details(result: SolventResult) -> list[str]:
    return [
        model_line(settings(result.model, result.atoms)),
        f"Kernel time: Born radii {duration(result.seconds['born'])}, energy {duration(result.seconds['energy'])}",
        f"Kernel: cl/{VARIANTS[result.variant].file}, {VARIANTS[result.variant].summary}",
        choice_line(result.device),
    ]


def _save(output: Path, found: Evaluation[SolventResult], numbers: Mapping[str, float]) -> None:
    """Write every atom's radius and energies, or every model's energies, and how they were made.

    numbers : of the molecule
    Without energies models have the least, largest and mean radius, and in HDF5 all radii as a further dimension.
    """
    molecule, result = found.molecule, found.first
    energy = energy_of(result)
    attributes = {
        **origin(molecule, molecule.atoms, result),
        "kernel_seconds": result.seconds["kernel"],
        **settings(result.model, result.atoms),
        **accuracy_attributes(result),
        **numbers,
    }
    if molecule.numbers and energy:
        columns, units = model_columns(
            [(number, of if isinstance(of, str) else of.energy) for number, of in found.rows()]
        )
    elif molecule.numbers:
        columns, units = model_columns(
            [(number, of if isinstance(of, str) else _radii(of)) for number, of in found.rows()], "angstrom"
        )
        if output.suffix.lower() == ".h5":
            none = np.full(len(molecule.atoms), np.nan)
            columns["born_radii"] = np.array([none if of is None else of.born_radii for of in found.results])
            units["born_radii"] = "angstrom"
    else:
        columns = label_columns(result.atoms) | {"born_radii": result.born_radii, "psi": result.psi}
        columns |= {} if result.per_atom is None else result.per_atom.columns()
        units = {"born_radii": "angstrom", "psi": "1"} | dict.fromkeys(energy, UNIT)
        attributes |= {f"energy_{name}": value for name, value in energy.items()}
    write_table(output, columns, units, attributes)
