"""`pele-ocl binding`: energy of a complex less the energies of its receptor and its ligand, over many frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import click
import numpy as np

from ...atoms import Atoms
from ...binding import Binding, BindingEnergies
from ...binding.amber import interaction
from ...binding.comparing import compare, read_binding_report
from ...binding.decomposition_files import write_decomposition
from ...binding.entropy import entropy_of
from ...binding.grid_errors import grid_errors
from ...binding.parts import Chosen, Parts
from ...binding.pictures import draw_pairs, draw_residues, draw_running_mean, write_coloured
from ...binding.scan import AlanineScan, alanine_scan
from ...binding.separate import SeparateEnergies
from ...common.inputfile import InputFile, read_file
from ...energy import VARIANTS
from ...formats import brings_parameters
from ...gb_models.solvent_model import SolventModel
from ...jobs.checks import Checks as JobChecks
from ...jobs.reading import MoleculeRead, molecule_of
from ...jobs.records import Kind
from ...jobs.spec import StructurePath, StructureSpec
from ..cluster import cluster_options, cluster_options_of
from ..command import OUTPUT, EachOnce
from ..frames import FrameOptions, OpenedFrames, trajectory_options
from ..json_lines import failing_as_record, say_record
from ..mmpbsa import MMPBSA, mmpbsa
from ..options import (
    ReadAtoms,
    model_options,
    models_option,
    report_options,
    require_lennard_jones,
    run_options,
    strict_option,
    structure_options,
    surface_options,
)
from ..pele_run import PELE, pele_run
from ..plan_options import cutoff_option, one_four_option
from ..progress import ProgressLine
from ..report import counted, provenance
from ..several import Several, only_one, structures_argument
from ..terminal import note, say
from .frames import SoluteFrame, check_output, conformations_for, energies_for, is_stripped, opened_frames, separate_for
from .options import BindingOptions, binding_options
from .report import BindingReport, as_json, notes_about
from .text import as_text

__all__ = ["binding"]

_FILES = "a decomposition or a picture is of one structure; give one, or leave out its file"


class ComplexOrRun(EachOnce):
    """Command that is another one with --pele or --mmpbsa: of a PELE run, or with the files of MMPBSA.py."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if any(word.partition("=")[0] == PELE for word in args):
            return pele_run.make_context(info_name, args, parent, **extra)
        if any(word.partition("=")[0] == MMPBSA for word in args):
            return mmpbsa.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=ComplexOrRun)
@structures_argument
@click.option(
    "-o", "--output", type=OUTPUT, metavar="OUT",
    help="Write the energies of every frame: .h5, .csv or .jsonl of a trajectory, as they come; else .h5, .csv, .json.",
)  # fmt: skip
@click.option(
    PELE, metavar="FOLDER", expose_value=False,
    help="Compute the poses of a PELE run instead of IN. Help: binding --pele FOLDER --help.",
)  # fmt: skip
@click.option(
    MMPBSA, metavar="FILE", expose_value=False,
    help="In place of IN a run of MMPBSA.py or gmx_MMPBSA by its mmpbsa.in: binding --mmpbsa FILE --help.",
)  # fmt: skip
@binding_options
@cutoff_option("by default none")
@one_four_option
@models_option
@trajectory_options
@cluster_options
@click.option(
    "--variant",
    type=click.Choice(["auto", *VARIANTS]),
    default="auto",
    show_default=True,
    help="How pairs are summed, as in `energy`.",
)
@run_options
@structure_options
@model_options
@surface_options
@strict_option
@report_options
def binding(
    path: Path | tuple[Path, ...], output: Path | None, wanted: BindingOptions, cutoff: float | None,
    one_four: Literal["scale", "exclude"],
    models: str, trajectory: FrameOptions, variant: str, precision: str, device: str | None, read_atoms: ReadAtoms,
    constants: SolventModel, strict: bool, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Compute the binding energy of the complex in IN: its energy less the energies of receptor and ligand.

    Each has Born radii of its own: MM/GBSA over the frames of a trajectory (-t), over poses, or of one structure;
    docs/binding.md. --pb is MM/PBSA. The parts share the positions of the complex, unless they have trajectories of
    their own. Energies in kcal/mol.
    """
    several = Several.of(path, output, trajectory, as_json, {_FILES: wanted.files})
    wanted.check(trajectory, output, cluster_options_of(click.get_current_context()))
    check_output(output, trajectory, wanted)
    like = click.get_current_context().params["like"]
    if trajectory.paths:
        read_atoms = replace(read_atoms, trajectory=SoluteFrame(trajectory, wanted.strip, like))
    spec = BindingSpec(
        reading=read_atoms, wanted=wanted, cutoff=cutoff, one_four=one_four, models=models,
        trajectory=trajectory if several is None else replace(trajectory, resume=False), variant=variant,
        precision=precision, device=device, model=constants, like=like, strict=strict,
    )  # fmt: skip
    if several is not None:
        replace(trajectory, resume=False).require_alone(models_all=models == "all", poses=wanted.poses is not None)
        several.report(spec, "Binding energy")
        return
    trajectory.require_alone(models_all=models == "all", poses=wanted.poses is not None)
    path = only_one(path)
    with failing_as_record(path, as_json):
        source = read_file(path)
        ligands = spec.found(source, output)
    if as_json:
        say_record(source, spec.as_json(ligands))
    else:
        say("\n\n".join(as_text(source, found) for found, _ in ligands))
    if any(found.n_failed for found, _ in ligands):
        click.get_current_context().exit(1)


@dataclass(frozen=True, eq=False)
class BindingSpec(StructureSpec):
    """Binding energies of complexes, as the command's options say.

    like : of --like; strict : whether findings that are noted otherwise are refused
    """

    reading: ReadAtoms
    wanted: BindingOptions
    cutoff: float | None
    one_four: Literal["scale", "exclude"]
    models: str
    trajectory: FrameOptions
    variant: str
    precision: str
    device: str | None
    model: SolventModel
    like: str | None
    strict: bool

    def found(
        self, source: InputFile, output: Path | None = None
    ) -> list[tuple[BindingReport, list[dict[str, object]]]]:
        """All that was found of each ligand, and the findings up to it; files are written, and notes are told."""
        require_lennard_jones(source)
        molecule = molecule_of(source, self.reading, self.models)
        checks = JobChecks(source, self.strict, heard=False)
        if not self.trajectory.paths:
            molecule = checks.structure(molecule)
        ligands = []
        for ligand in self.wanted.ligands:
            plan, frames_of = self.planned(molecule, ligand)
            for sentence in plan.notes:
                note(f"Note: {sentence}")
            found = self._found(plan, frames_of, output, ligand)
            checks.told(plan.findings)
            _judge(found, checks, bool(self.trajectory.paths))
            for sentence in notes_about(found):
                note(f"Note: {sentence}")
            _write(found, molecule, self.wanted)
            _tell_failures(found)
            ligands.append((found, checks.as_json()))
        return ligands

    def compute(self, item: StructurePath) -> dict[str, object]:
        """Compute the binding energies of a file, as JSON has them."""
        return self.as_json(self.found(read_file(item)))

    def as_json(self, ligands: Sequence[tuple[BindingReport, list[dict[str, object]]]]) -> dict[str, object]:
        """Give the result of a record: of one ligand, or of several under `ligands`."""
        reports = [_with_notes(_as_json(found), found) | {"findings": findings} for found, findings in ligands]
        return reports[0] if len(reports) == 1 else {"ligands": reports}

    def planned(self, molecule: MoleculeRead, ligand: str) -> tuple[Binding, MoleculeRead]:
        """Make the plan of one ligand, and the molecule of its frames: for stripped frames the complex alone."""
        strip = _strip(self.wanted, ligand, molecule.atoms, self.like)
        plan = self._plan(molecule.atoms, ligand, self.wanted.receptor, strip)
        if not self.trajectory.paths or self.wanted.is_separate or not is_stripped(plan, molecule, self.trajectory):
            return plan, molecule
        chosen = molecule.taken.part(plan.parts.complex)
        own = self._plan(plan.atoms, plan.parts.ligand, plan.parts.receptor, None)
        own.parts = replace(own.parts, left_out=plan.parts.left_out)
        own.notes = (*plan.notes, "the frames have the atoms of receptor and ligand alone")
        return own, replace(molecule, atoms=plan.atoms, chosen=chosen)

    def _plan(self, atoms: Atoms, ligand: Chosen, receptor: Chosen | None, strip: Chosen | None) -> Binding:
        return Binding(
            atoms, ligand, receptor, model=self.model, one_four=self.one_four, cutoff=self.cutoff,
            idecomp=self.wanted.scheme, precision=self.precision, variant=self.variant, device=self.device,
            strip=strip, strip_like=self.like, pb=self.wanted.pb,
        )  # fmt: skip

    def _found(self, plan: Binding, molecule: MoleculeRead, output: Path | None, ligand: str) -> BindingReport:
        """Compute all that the options ask for of one ligand."""
        wanted, trajectory = self.wanted, self.trajectory
        if wanted.is_separate:
            separate = separate_for(plan, molecule, trajectory, wanted, self.reading, output, self.like)
            return _compared(BindingReport(plan, separate, ligand, wanted.receptor, self.like), wanted)
        energies = energies_for(
            plan, molecule, trajectory, wanted, output, self.like,
            partial(_opened_elsewhere, self, molecule.source.path, ligand),
        )  # fmt: skip
        entropy = entropy_of(interaction(energies.delta), plan.model.temperature) if wanted.entropy else None
        if entropy is not None and entropy.warning:
            note(f"Warning: {entropy.warning}")
        scan = None if wanted.alanine is None else _scan(plan, molecule, trajectory, wanted.alanine, self.reading)
        several = bool(trajectory.paths) or wanted.poses is not None
        kind: Kind | None = "model" if molecule.numbers else "frame" if several else None
        errors = None if plan.pb is None else grid_errors(plan, energies[0] if kind is None else None)
        return _compared(
            BindingReport(
                plan, energies, ligand, wanted.receptor, self.like, entropy, scan, kind=kind, grid_errors=errors
            ),
            wanted,
        )


def _opened_elsewhere(spec: BindingSpec, path: Path, ligand: str) -> OpenedFrames:
    """Open the frames of one ligand's complex, in another process."""
    plan, molecule = spec.planned(molecule_of(read_file(path), spec.reading, spec.models), ligand)
    return opened_frames(plan, molecule, spec.trajectory, spec.like)


def _judge(found: BindingReport, checks: JobChecks, is_mean: bool) -> None:
    """Look at the energy of the complex, and note down how many frames were imaged."""
    if isinstance(found.energies, BindingEnergies) and len(found.energies.errors) == len(found.energies):
        return
    if found.poses is not None:
        best = int(np.nanargmin(found.poses.total))
        energy = {term: float(values[best]) for term, values in found.poses.complex.columns().items()}
        checks.energy(found.binding.atoms, energy, is_mean=True)
        return
    means = {term: of.mean for term, of in found.energies.statistics()["complex"].items()}
    checks.energy(found.binding.atoms, means, is_mean=is_mean or found.n_frames > 1)
    checks.findings += found.imaged()


def _with_notes(report: dict[str, object], found: BindingReport) -> dict[str, object]:
    """Put the notes about its structure before the notes that a report has."""
    kept = list(found.binding.given.notes)
    own = [sentence for sentence in cast(list[str], report.get("notes", [])) if sentence not in kept]
    return {**report, "notes": [*kept, *own]}


_as_json = as_json  # a parameter of the command has this name


def _tell_failures(found: BindingReport) -> None:
    """Tell how many frames failed, and the first of them; of all three if the parts have frames of their own."""
    if isinstance(found.energies, SeparateEnergies):
        _tell_of_systems(found.energies)
        return
    errors = found.energies.errors
    for place, reason in list(errors.items())[:1]:
        numbers = found.energies.frames
        is_pose = found.poses is not None
        frame = place + 1 if is_pose else place if numbers is None else int(numbers[place])
        kind = "pose" if is_pose else found.kind or "frame"
        note(f"Error: {counted(len(errors), kind)} failed, the first of them {frame}: {reason}")


def _tell_of_systems(energies: SeparateEnergies) -> None:
    """Tell how many frames of each failed, and the first of them."""
    for name, of in energies.systems.items():
        for frame, reason in list(of.errors.items())[:1]:
            failed = counted(len(of.errors), "frame")
            note(f"Error: {name}: {failed} failed, the first of them {frame}: {reason}")


def _strip(wanted: BindingOptions, ligand: str, atoms: Atoms, like: str | None) -> Chosen | None:
    """Find the atoms that are in no part beside water; of one of several ligands the others, too."""
    if wanted.receptor is not None or len(wanted.ligands) == 1:
        return wanted.strip
    first, *others = [other for other in wanted.ligands if other != ligand] or [ligand]
    mask = atoms.selected(" or ".join(f"({other})" for other in (first, *others)))
    parts = Parts.of(atoms, ligand, None, wanted.strip, like)
    mask[np.setdiff1d(np.arange(len(atoms)), parts.complex)] = True
    return mask


def _compared(found: BindingReport, wanted: BindingOptions) -> BindingReport:
    if wanted.compare is None:
        return found
    own = {term: of.as_json() for term, of in found.energies.statistics()["delta"].items()}
    values = {**vars(found), "comparison": compare(own, read_binding_report(wanted.compare))}
    return BindingReport(**values)


def _scan(
    plan: Binding, molecule: MoleculeRead, trajectory: FrameOptions, sites: str, reading: ReadAtoms
) -> AlanineScan:  # fmt: skip
    """Scan all frames or models by alanine of the force field of files that bring no parameters."""
    with ProgressLine("Alanine scan") as progress:
        wanted = None if sites.strip() == "interface" else sites
        forcefield = None if brings_parameters(molecule.source.path) else reading.loaded_forcefield
        conformations = conformations_for(plan, molecule, trajectory)
        return alanine_scan(plan, conformations, wanted, progress, forcefield=forcefield)


def _write(found: BindingReport, molecule: MoleculeRead, wanted: BindingOptions) -> None:
    """Write the files of the decomposition, and the pictures."""
    of = found.decomposition
    if of is not None:
        if wanted.decomposition is not None:
            write_decomposition(wanted.decomposition, of, provenance(molecule))
        if wanted.bars is not None:
            draw_residues(wanted.bars, of)
        if wanted.heat_map is not None:
            draw_pairs(wanted.heat_map, of)
        if wanted.coloured is not None:
            write_coloured(wanted.coloured, found.binding.atoms, of)
    if wanted.running_mean is not None and isinstance(found.energies, BindingEnergies):
        draw_running_mean(wanted.running_mean, found.energies.total)
