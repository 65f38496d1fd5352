"""`pele-ocl solvent`: Born radii and implicit-solvent energy of a structure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..atoms import Floats
from ..formats import require_table_suffix, write_table
from ..solvent import VARIANTS, Solvent, SolventModel, SolventResult
from ..trajectories.recording import require_record_suffix
from .clock import elapsed
from .cluster import cluster_options
from .command import OUTPUT, EachOnce
from .contract import Checks, strict_option
from .energies import UNIT, model_columns, model_lines, models_as_json, residue_names, residue_table, residues_as_json
from .frames import FrameOptions, FrameWork, report_frames, trajectory_options
from .molecule import Molecule, models_option, read_molecule
from .options import (
    ReadAtoms,
    device_list,
    model_options,
    report_options,
    run_options,
    structure_options,
    surface_options,
)
from .plan_options.accuracy import accuracy_attributes, accuracy_facts, accuracy_lines, accuracy_option
from .progress import ProgressLine
from .report import (
    area_facts,
    area_lines,
    choice_line,
    composition_as_json,
    duration,
    ending,
    energy_lines,
    headline,
    label_columns,
    model_line,
    origin,
    radii_line,
    settings,
)
from .structures.several import each_structure, structures_argument
from .terminal import say, say_json, with_notes

VARIANT_HELP = "How the Born radii are computed: " + "; ".join(f"{name}, {v.summary}" for name, v in VARIANTS.items())


@click.command(cls=EachOnce)
@structures_argument
@click.option(
    "-o", "--output", type=OUTPUT, metavar="OUT",
    help="Write radii and energies of every atom, or energies of every model: .h5, .csv or .json; or energies of every "
    "frame of a trajectory, as they come: .h5, .csv or .jsonl.",
)  # fmt: skip
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
@click.option("--per-residue", is_flag=True, help="Also report each residue's energies.")
@report_options
@each_structure
def solvent(
    path: Path, output: Path | None, no_energy: bool, models: str, over: FrameOptions, variant: str,
    accuracy: float | None, precision: str, device: str | None, read_atoms: ReadAtoms, constants: SolventModel,
    per_residue: bool, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Compute Born radii and implicit-solvent energy of the molecule in IN.

    IN is a .pdb, .cif or .pqr file or an AMBER topology with -c, also with .gz. A bare PDB file with all hydrogens gets
    Amber99SB parameters; --templates, --obc and --pele-data bring PELE's. Radii in Angstrom, energies in kcal/mol.
    Several devices, --device 0,1, share the work of the variant tree.
    """
    if no_energy and per_residue:
        raise click.UsageError("--per-residue is about energies; choose one of --no-energy and --per-residue")
    over.require_alone(no_energy=no_energy, models_all=models == "all", per_residue=per_residue)
    if output is not None:
        (require_record_suffix if over.paths else require_table_suffix)(output)
    molecule = read_molecule(path, read_atoms, models)
    checks = Checks(molecule.source)
    if not over.paths:
        checks.structure(molecule)
    devices = device_list(device)
    plan_of = partial(
        Solvent, variant=variant, precision=precision, device=devices, model=constants, accuracy=accuracy,
        energy=not no_energy,
    )  # fmt: skip
    if over.paths:
        plan = plan_of(molecule.atoms)
        report_frames(FrameWork("Solvent", molecule.source, plan, chosen=molecule.chosen), over, output, as_json)
        return
    with ProgressLine("Solvent") as progress:
        plan = plan_of(molecule.atoms)
        results = (
            [plan.evaluate(profile=True, progress=progress)]
            if molecule.conformations is None
            else list(plan.evaluate_batch(molecule.conformations, progress, profile=True))
        )
    if output is not None:
        _save(output, molecule, results)
    if as_json:
        say_json(with_notes(_as_json(molecule, results, per_residue) | {"findings": checks.as_json()}))
    else:
        say(_as_text(molecule, results, per_residue, verbose))


def _as_json(molecule: Molecule, results: Sequence[SolventResult], per_residue: bool) -> dict[str, Any]:
    result = results[0]
    facts: dict[str, object] = {
        "n_atoms": len(result.atoms),
        "composition": composition_as_json(result.atoms),
        "device": result.device,
        "variant": result.variant,
        "precision": result.precision,
        "settings": settings(result.model, result.atoms),
        **accuracy_facts(result),
    }
    seconds = {"kernel": result.seconds["kernel"], "total": elapsed()}
    if molecule.numbers:
        models = models_as_json(molecule.numbers, [_energy(of) for of in results])
        for model, of in zip(models, results, strict=True):
            model |= {"born_radius": _spread(of), **_residues_as_json(of, per_residue)}
        return {**facts, "models": models, "seconds": seconds}
    return {
        **facts,
        "born_radius": _spread(result),
        **({"energy": energy, **area_facts(result.model, energy)} if (energy := _energy(result)) else {}),
        "seconds": seconds,
        **_residues_as_json(result, per_residue),
    }


def _residues_as_json(result: SolventResult, wanted: bool) -> dict[str, Any]:
    return {"residues": residues_as_json(residue_names(result.atoms), _by_residue(result))} if wanted else {}


def _by_residue(result: SolventResult) -> dict[str, Floats]:
    return result.per_residue().columns()


def _energy(result: SolventResult) -> dict[str, float]:
    """The terms and the total; nothing where they were not asked for."""
    return result.energy if result.terms.names else {}


def _spread(result: SolventResult) -> dict[str, float]:
    radii = result.born_radii
    return {"min": float(radii.min()), "max": float(radii.max()), "mean": float(radii.mean())}


def _as_text(molecule: Molecule, results: Sequence[SolventResult], per_residue: bool, verbose: bool) -> str:
    result = results[0]
    lines = [headline(molecule.source, molecule.atoms), radii_line(result.model, molecule.atoms)]
    energy = _energy(result)
    if molecule.numbers:
        about = [] if energy else ["Born radii of models, A"]
        lines += model_lines(molecule.numbers, [_energy(of) or _spread(of) for of in results], *about)
    else:
        spread = _spread(result)
        lines += ["", f"Born radii    {spread['min']:.3f} to {spread['max']:.3f} A, mean {spread['mean']:.3f} A"]
        lines += [*energy_lines(energy), *area_lines(result.model, energy)] if energy else []
    lines += [*accuracy_lines(result, result.variant), "", ending(result, result.seconds["kernel"])]
    if verbose:
        lines += ["", *_details(result)]
    if per_residue:
        numbers: Sequence[int | None] = molecule.numbers or [None]
        residues = [(number, _by_residue(of)) for number, of in zip(numbers, results, strict=True)]
        lines += ["", residue_table(residue_names(molecule.atoms), residues)]
    return "\n".join(lines)


def _details(result: SolventResult) -> list[str]:
    return [
        model_line(result.model, result.atoms),
        f"Kernel time: Born radii {duration(result.seconds['born'])}, energy {duration(result.seconds['energy'])}",
        f"Kernel: cl/{VARIANTS[result.variant].file}, {VARIANTS[result.variant].summary}",
        choice_line(result.device),
    ]


def _save(output: Path, molecule: Molecule, results: Sequence[SolventResult]) -> None:
    """Every atom's radius and energies, or every model's energies, and how they were made.

    Without energies models have the least, largest and mean radius, and in HDF5 all radii as a further dimension.
    """
    result, energy = results[0], _energy(results[0])
    attributes = {
        **origin(molecule.source, molecule.atoms, result),
        "kernel_seconds": result.seconds["kernel"],
        **settings(result.model, result.atoms),
        **accuracy_attributes(result),
    }
    if molecule.numbers and energy:
        columns, units = model_columns(molecule.numbers, [of.energy for of in results])
    elif molecule.numbers:
        radii = [{f"born_radius_{name}": value for name, value in _spread(of).items()} for of in results]
        columns, units = model_columns(molecule.numbers, radii, "angstrom")
        if output.suffix.lower() == ".h5":
            columns["born_radii"], units["born_radii"] = np.array([of.born_radii for of in results]), "angstrom"
    else:
        columns = label_columns(result.atoms) | {"born_radii": result.born_radii, "psi": result.psi}
        columns |= {} if result.per_atom is None else result.per_atom.columns()
        units = {"born_radii": "angstrom", "psi": "1"} | dict.fromkeys(energy, UNIT)
        attributes |= {f"energy_{name}": value for name, value in energy.items()}
    write_table(output, columns, units, attributes)
