"""`pele-ocl energy`: the whole implicit-solvent energy of a structure, with its full gradient."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
from click.core import ParameterSource

from ..atoms import Floats
from ..energy import VARIANTS, Energy, EnergyBatch, EnergyResult, summary
from ..energy.contents import has_radii
from ..formats import require_table_suffix, write_table
from ..solvent_model import SolventModel
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
    model_options,
    report_options,
    require_lennard_jones,
    run_options,
    structure_options,
    surface_options,
)
from .plan_options import born_option, listed, pair_options, require_near, variant_option
from .plan_options.accuracy import accuracy_attributes, accuracy_facts, accuracy_lines, accuracy_option
from .progress import ProgressLine
from .report import (
    area_facts,
    area_lines,
    choice_line,
    composition_as_json,
    ending,
    energy_lines,
    headline,
    label_columns,
    model_line,
    origin,
    radii_lines,
    settings,
)
from .structures.several import each_structure, structures_argument
from .terminal import note, say, say_json, with_notes

UNUSED = "pele_ocl.unused."  # of click's context, with an option: whether it is still to be told


@click.command(cls=EachOnce)
@structures_argument
@click.option(
    "-o", "--output", type=OUTPUT, metavar="OUT",
    help="Write energies and gradient of every atom, or of every model: .h5, .csv or .json; or energies of every frame "
    "of a trajectory, as they come: .h5, .csv or .jsonl.",
)  # fmt: skip
@click.option("--no-gradient", is_flag=True, help="Compute energies only.")
@pair_options
@models_option
@trajectory_options
@cluster_options
@variant_option
@born_option
@accuracy_option
@run_options
@structure_options
@model_options
@surface_options
@strict_option
@click.option("--per-residue", is_flag=True, help="Also report each residue's energies, for frames their means.")
@report_options
@each_structure
def energy(
    path: Path, output: Path | None, no_gradient: bool, fixed_radii: bool, cutoff: float | None,
    one_four: Literal["scale", "exclude"], terms: str | None, models: str, over: FrameOptions, variant: str,
    born: str, accuracy: float | None, precision: str, device: str | None, read_atoms: ReadAtoms,
    constants: SolventModel, per_residue: bool, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Compute the energy of the molecule in IN, term by term, and its full gradient.

    IN is a .pdb or .cif file, or an AMBER topology with -c, also with .gz; a .pqr file has no Lennard-Jones
    parameters. Born radii follow the atoms in the gradient. Energies in kcal/mol, gradient in kcal/mol/Angstrom. Atoms
    one or two bonds apart have no Lennard-Jones and Coulomb energy; the GB energy takes all pairs.
    """
    if no_gradient and fixed_radii:
        raise click.UsageError("--fixed-radii is about the gradient; choose one of --no-gradient and --fixed-radii")
    require_near(cutoff)
    over.require_alone(models_all=models == "all", fixed_radii=fixed_radii)
    if over.resume and per_residue:
        raise click.UsageError("--per-residue is the mean over the frames of one run; leave out --resume")
    if output is not None:
        (require_record_suffix if over.paths else require_table_suffix)(output)
    require_lennard_jones(path)
    molecule = read_molecule(path, read_atoms, models)
    checks = Checks(molecule.source)
    if not over.paths:
        checks.structure(molecule)
    per_atom = per_residue or (output is not None and not molecule.numbers and not over.paths)
    plan = Energy(
        molecule.atoms, gradient=not (no_gradient or over.paths), fixed_radii=fixed_radii, one_four=one_four,
        cutoff=cutoff, per_atom=per_atom, precision=precision, variant=variant, born=born, accuracy=accuracy,
        device=device, model=constants, only_terms=listed(terms),
    )  # fmt: skip
    if terms is not None:
        _tell_unused(plan)
    if over.paths:
        contents = summary(plan.names, plan.atoms, plan.model)
        residues = residue_names(plan.atoms) if per_residue else ()
        work = FrameWork("Energy", molecule.source, plan, chosen=molecule.chosen, contents=contents, residues=residues)
        report_frames(work, over, output, as_json)
        return
    if molecule.conformations is not None:
        with ProgressLine("Energy") as progress:
            batch = plan.evaluate_batch(molecule.conformations, progress, profile=True)
        for number, of in zip(molecule.numbers, batch, strict=True):
            checks.energy(of.atoms, of.energy, number)
        if output is not None:
            _save_models(output, molecule, batch)
        if as_json:
            say_json(with_notes(_models_as_json(molecule, batch, per_residue) | {"findings": checks.as_json()}))
        else:
            say(_models_as_text(molecule, batch, per_residue))
        return
    result = plan.evaluate(profile=True)
    checks.energy(result.atoms, result.energy)
    if output is not None:
        _save(output, molecule, result)
    if as_json:
        say_json(with_notes(_as_json(result, per_residue) | {"findings": checks.as_json()}))
    else:
        say(_as_text(molecule, result, per_residue, verbose))


def _tell_unused(plan: Energy) -> None:
    """Say that options of the solvent play no part where no term has to do with them; once for several structures."""
    context = click.get_current_context()
    for option, used in (("surface", "nonpolar" in plan.names), ("gb", has_radii(plan.names, plan.model))):
        is_given = context.get_parameter_source(option) not in (None, ParameterSource.DEFAULT)
        if is_given and not used and not plan.model.gb_model.vacuum and context.meta.setdefault(UNUSED + option, True):
            context.meta[UNUSED + option] = False
            note(f"Note: --{option} plays no part, as none of its terms is among --terms")


def _norms(gradient: Floats | None) -> dict[str, float] | None:
    if gradient is None:
        return None
    return {
        "norm": float(np.linalg.norm(gradient)),
        "max": float(np.linalg.norm(gradient, axis=1).max()),
        "net": float(np.linalg.norm(gradient.sum(axis=0))),
    }


def _facts(result: EnergyResult | EnergyBatch) -> dict[str, Any]:
    return {
        "n_atoms": len(result.atoms),
        "composition": composition_as_json(result.atoms),
        "device": result.device,
        "variant": result.variant,
        "precision": result.precision,
        "born": result.born,
        **accuracy_facts(result),
        "contents": summary(result.terms.names, result.atoms, result.model),
        "settings": settings(result.model, result.atoms),
    }


def _headline(molecule: Molecule, result: EnergyResult | EnergyBatch) -> str:
    """The molecule, and what the energy is of."""
    return f"{headline(molecule.source, result.atoms)}; {summary(result.terms.names, result.atoms, result.model)}"


def _as_json(result: EnergyResult, per_residue: bool) -> dict[str, Any]:
    radii = result.born_radii
    spread = {"min": float(radii.min()), "max": float(radii.max()), "mean": float(radii.mean())}
    report = {
        **_facts(result),
        **({"born_radius": spread} if np.isfinite(radii).all() else {}),  # NaN where no term needs them
        "energy": result.energy,
        **area_facts(result.model, result.energy),
        "gradient": _norms(result.gradient),
        "seconds": {**result.seconds, "total": elapsed()},
    }
    if per_residue:
        report["residues"] = residues_as_json(residue_names(result.atoms), result.per_residue().columns())
    return report


def _as_text(molecule: Molecule, result: EnergyResult, per_residue: bool, verbose: bool) -> str:
    norms = _norms(result.gradient)
    lines = [
        _headline(molecule, result),
        *radii_lines(result.model, result.atoms, result.terms.names),
        "",
        *energy_lines(result.energy),
        *area_lines(result.model, result.energy),
    ]
    if norms is not None:
        longest = f"at most {norms['max']:,.3f} an atom, net {norms['net']:.2g} kcal/mol/A"
        lines.append(f"Gradient      norm {norms['norm']:,.3f}, {longest}")
    lines += [*accuracy_lines(result, result.born), "", ending(result, result.seconds["kernel"])]
    if verbose:
        variant = VARIANTS[result.variant]
        kernel = f"Kernel: cl/{variant.file}, {variant.summary}"
        lines += ["", model_line(result.model, result.atoms), kernel, choice_line(result.device)]
    if per_residue:
        lines += ["", residue_table(residue_names(result.atoms), [(None, result.per_residue().columns())])]
    return "\n".join(lines)


def _energies(batch: EnergyBatch) -> list[dict[str, float]]:
    """The terms and the total of each model."""
    return [result.energy for result in batch]


def _models_as_json(molecule: Molecule, batch: EnergyBatch, per_residue: bool) -> dict[str, Any]:
    models = models_as_json(molecule.numbers, _energies(batch))
    if per_residue:
        names = residue_names(batch.atoms)
        for model, result in zip(models, batch, strict=True):
            model["residues"] = residues_as_json(names, result.per_residue().columns())
    return {**_facts(batch), "models": models, "seconds": {**batch.seconds, "total": elapsed()}}


def _models_as_text(molecule: Molecule, batch: EnergyBatch, per_residue: bool) -> str:
    lines = [_headline(molecule, batch), *radii_lines(batch.model, batch.atoms, batch.terms.names)]
    lines += model_lines(molecule.numbers, _energies(batch))
    lines += [*accuracy_lines(batch, batch.born), "", ending(batch, batch.seconds["kernel"])]
    if per_residue:
        terms = [result.per_residue().columns() for result in batch]
        residues = list(zip(molecule.numbers, terms, strict=True))
        lines += ["", residue_table(residue_names(batch.atoms), residues)]
    return "\n".join(lines)


def _attributes(molecule: Molecule, result: EnergyResult | EnergyBatch) -> Mapping[str, object]:
    return {
        **origin(molecule.source, result.atoms, result),
        **{f"seconds_{name}": value for name, value in result.seconds.items()},
        **settings(result.model, result.atoms),
        "born": result.born,
        **accuracy_attributes(result),
    }


def _save(output: Path, molecule: Molecule, result: EnergyResult) -> None:
    """Every atom's energies, Born radius and gradient, and how they were made."""
    assert result.per_atom is not None
    columns = label_columns(result.atoms) | result.per_atom.columns()
    if not result.model.gb_model.vacuum:
        columns["born_radii"] = result.born_radii
    if result.gradient is not None:
        columns["gradient"] = result.gradient
    units = dict.fromkeys(result.energy, UNIT) | {"born_radii": "angstrom", "gradient": f"{UNIT}/angstrom"}
    energies = {f"energy_{name}": value for name, value in result.energy.items()}
    write_table(output, columns, units, {**_attributes(molecule, result), **energies})


def _save_models(output: Path, molecule: Molecule, batch: EnergyBatch) -> None:
    """A row for every model: its energies, and in HDF5 its Born radii and gradient as further dimensions."""
    columns, units = model_columns(molecule.numbers, _energies(batch))
    if output.suffix.lower() == ".h5":
        if not batch.model.gb_model.vacuum:
            columns["born_radii"] = batch.born_radii
            units["born_radii"] = "angstrom"
        if batch.gradients is not None:
            columns["gradient"] = batch.gradients
            units["gradient"] = f"{UNIT}/angstrom"
    write_table(output, columns, units, _attributes(molecule, batch))
