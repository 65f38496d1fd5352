"""`pele-ocl energy`: the whole implicit-solvent energy of a structure, with its full gradient."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal

import click

from ..common.inputfile import read_file
from ..energy import VARIANTS, EnergyBatch, EnergyResult, summary
from ..energy.spec import EnergyEvaluation, EnergySpec
from ..formats import require_table_suffix, write_table
from ..gb_models.solvent_model import SolventModel
from ..jobs.facts import gradient_facts, names_of_residues, numbers_in
from ..jobs.reading import MoleculeRead, molecule_of
from ..trajectories.recording import require_record_suffix
from .cluster import cluster_options
from .command import EachOnce
from .frames import FrameOptions, FrameWork, report_frames, trajectory_options
from .json_lines import exit_for_models, failing_as_record, say_record
from .options import (
    ReadAtoms,
    given_options,
    model_options,
    models_option,
    report_options,
    require_lennard_jones,
    run_options,
    strict_option,
    structure_options,
    surface_options,
)
from .physics import Facts, lines_of
from .plan_options import (
    accuracy_attributes,
    accuracy_lines,
    accuracy_option,
    born_option,
    listed,
    no_gradient_option,
    pair_options,
    per_residue_option,
    require_near,
    results_option,
    variant_option,
)
from .progress import ProgressLine
from .report import (
    area_lines,
    choice_line,
    ending,
    energy_lines,
    headline,
    label_columns,
    model_line,
    origin,
)
from .several import Several, only_one, structures_argument
from .tables import UNIT, Model, model_columns, model_lines, residue_table
from .terminal import say

_PER_RESIDUE = "--per-residue of several structures is told by --json; add it"


@click.command(cls=EachOnce)
@structures_argument
@results_option("energies and gradient of every atom, or of every model")
@no_gradient_option
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
@per_residue_option(", for frames their means")
@report_options
def energy(
    path: Path | tuple[Path, ...], output: Path | None, no_gradient: bool, fixed_radii: bool, cutoff: float | None,
    one_four: Literal["scale", "exclude"], terms: str | None, models: str, trajectory: FrameOptions, variant: str,
    born: str, accuracy: float | None, precision: str, device: str | None, read_atoms: ReadAtoms,
    constants: SolventModel, per_residue: bool, strict: bool, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Compute the energy of the molecule in IN, term by term, and its full gradient.

    IN is a .pdb or .cif file, or an AMBER topology with -c, also with .gz; a .pqr file has no Lennard-Jones
    parameters. Born radii follow the atoms in the gradient. Energies in kcal/mol, gradient in kcal/mol/Angstrom. Atoms
    one or two bonds apart have no Lennard-Jones and Coulomb energy; the GB energy takes all pairs.
    """
    if no_gradient and fixed_radii:
        raise click.UsageError("--fixed-radii is about the gradient; choose one of --no-gradient and --fixed-radii")
    require_near(cutoff)
    several = Several.of(path, output, trajectory, as_json, {_PER_RESIDUE: per_residue and not as_json})
    named = listed(terms)
    spec = EnergySpec(
        reading=read_atoms, models="all" if models == "all" else "one", gradient=not no_gradient,
        fixed_radii=fixed_radii or (constants.gb_model.holds_radii and not no_gradient), one_four=one_four,
        cutoff=cutoff, terms=None if named is None else tuple(named),
        precision=precision, variant=variant, born=born, accuracy=accuracy, device=device, model=constants,
        per_residue=per_residue, strict=strict, mentioned=given_options("surface", "gb"),
    )  # fmt: skip
    if several is not None:
        several.report(spec, "Energy")
        return
    path = only_one(path)
    trajectory.require_alone(models_all=models == "all", fixed_radii=fixed_radii)
    if trajectory.resume and per_residue:
        raise click.UsageError("--per-residue is the mean over the frames of one run; leave out --resume")
    if output is not None:
        (require_record_suffix if trajectory.paths else require_table_suffix)(output)
    require_lennard_jones(path)
    if trajectory.paths:
        report_frames(partial(_frame_work, spec, path), path, trajectory, output, as_json)
        return
    with failing_as_record(path, as_json), ProgressLine("Energy") as progress:
        found = spec.evaluate(read_file(path), progress, output is not None)
    facts = spec.settings_of(found.molecule.atoms)
    if output is not None:
        told = {**facts, **numbers_in(spec.facts_of_molecule(found.first))}
        (_save if found.batch is None else _save_models)(output, found, told)
    if as_json:
        say_record(found.molecule.source, spec.as_json(found))
    elif found.batch is None:
        say(_as_text(found, facts, per_residue, verbose))
    else:
        say(_models_as_text(found, facts, per_residue))
    exit_for_models(found.failed, found.molecule.numbers)


def _frame_work(spec: EnergySpec, path: Path) -> FrameWork:
    """Make the work on frames."""
    molecule = molecule_of(read_file(path), spec.reading, spec.models)
    plan = spec.plan(molecule.atoms, False, spec.per_residue)
    residues = names_of_residues(plan.atoms) if spec.per_residue else ()
    return FrameWork(
        "Energy",
        molecule.source,
        plan,
        spec.facts_of_molecule(plan),
        chosen=molecule.chosen,
        residues=residues,
        strict=spec.strict,
    )


def _headline(molecule: MoleculeRead, result: EnergyResult | EnergyBatch) -> str:
    """Describe the molecule, and what the energy is of."""
    return f"{headline(molecule.source, result.atoms)}; {summary(result.terms.names, result.atoms, result.model)}"


def _as_text(found: EnergyEvaluation, facts: Facts, per_residue: bool, verbose: bool) -> str:
    molecule, result = found.molecule, found.first
    lengths = gradient_facts(result.gradient)
    lines = [
        _headline(molecule, result),
        *lines_of(facts, result.terms.names),
        "",
        *energy_lines(result.energy),
        *area_lines(result.model, result.energy),
    ]
    if lengths is not None:
        longest = f"at most {lengths['max']:,.3f} an atom, net {lengths['net']:.2g} kcal/mol/A"
        held = ", Born radii and surface held" if result.model.gb_model.holds_radii else ""
        lines.append(f"Gradient      norm {lengths['norm']:,.3f}, {longest}{held}")
    lines += [*accuracy_lines(result, result.born), "", ending(result, result.seconds["kernel"])]
    if verbose:
        variant = VARIANTS[result.variant]
        kernel = f"Kernel: cl/{variant.file}, {variant.summary}"
        lines += ["", model_line(facts), kernel, choice_line(result.device)]
    if per_residue:
        lines += ["", residue_table(names_of_residues(result.atoms), [(None, result.per_residue().columns())])]
    return "\n".join(lines)


def _energies(found: EnergyEvaluation) -> list[Model]:
    """Give the terms and the total of each model, or why it failed."""
    return [(number, of if isinstance(of, str) else of.energy) for number, of in found.rows()]


def _models_as_text(found: EnergyEvaluation, facts: Facts, per_residue: bool) -> str:
    batch = found.batch
    assert batch is not None
    lines = [_headline(found.molecule, batch), *lines_of(facts, batch.terms.names)]
    lines += model_lines(_energies(found))
    lines += [*accuracy_lines(batch, batch.born), "", ending(batch, batch.seconds["kernel"])]
    if per_residue:
        residues = [(number, of.per_residue().columns()) for number, of in found.rows() if not isinstance(of, str)]
        lines += ["", residue_table(names_of_residues(batch.atoms), residues)]
    return "\n".join(lines)


def _attributes(molecule: MoleculeRead, result: EnergyResult | EnergyBatch, facts: Facts) -> Mapping[str, object]:
    return {
        **origin(molecule, result.atoms, result),
        **{f"seconds_{name}": value for name, value in result.seconds.items()},
        **facts,
        "born": result.born,
        **accuracy_attributes(result),
    }


def _save(output: Path, found: EnergyEvaluation, facts: Facts) -> None:
    """Write every atom's energies, Born radius and gradient, and how they were made."""
    result = found.first
    assert result.per_atom is not None
    columns = label_columns(result.atoms) | result.per_atom.columns()
    if not result.model.gb_model.vacuum:
        columns["born_radii"] = result.born_radii
    if result.gradient is not None:
        columns["gradient"] = result.gradient
    units = dict.fromkeys(result.energy, UNIT) | {"born_radii": "angstrom", "gradient": f"{UNIT}/angstrom"}
    energies = {f"energy_{name}": value for name, value in result.energy.items()}
    write_table(output, columns, units, {**_attributes(found.molecule, result, facts), **energies})


def _save_models(output: Path, found: EnergyEvaluation, facts: Facts) -> None:
    """Write a row for every model: its energies, and in HDF5 its Born radii and gradient as further dimensions."""
    batch = found.batch
    assert batch is not None
    columns, units = model_columns(_energies(found))
    if output.suffix.lower() == ".h5":
        if not batch.model.gb_model.vacuum:
            columns["born_radii"] = batch.born_radii
            units["born_radii"] = "angstrom"
        if batch.gradients is not None:
            columns["gradient"] = batch.gradients
            units["gradient"] = f"{UNIT}/angstrom"
    write_table(output, columns, units, _attributes(found.molecule, batch, facts))
