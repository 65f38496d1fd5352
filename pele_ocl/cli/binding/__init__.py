"""`pele-ocl binding`: the energy of a complex less those of its receptor and its ligand, over many frames."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from ...atoms import Atoms
from ...binding import Binding, BindingEnergies
from ...binding.amber import interaction
from ...binding.comparing import compare, read_report
from ...binding.entropy import entropy_of
from ...binding.parts import Chosen, Parts
from ...binding.pictures import draw_pairs, draw_residues, draw_running_mean, write_coloured
from ...binding.scan import AlanineScan, alanine_scan
from ...binding.separate import SeparateEnergies
from ...binding.tables import write_decomposition
from ...energy import VARIANTS
from ...solvent_model import SolventModel
from ..cluster import asked_of, cluster_options
from ..command import OUTPUT, EachOnce
from ..contract import Checks, strict_option
from ..frames import FrameOptions, trajectory_options
from ..mmpbsa import MMPBSA, mmpbsa
from ..molecule import Molecule, models_option, read_molecule
from ..options import (
    ReadAtoms,
    model_options,
    report_options,
    require_lennard_jones,
    run_options,
    structure_options,
    surface_options,
)
from ..pele_run import PELE, pele_run
from ..progress import ProgressLine
from ..report import counted, provenance
from ..structures.several import each_structure, structures_argument
from ..terminal import note, say, say_json, with_notes
from .frames import check_output, conformations_for, energies_for, separate_for
from .options import Wanted, binding_options
from .report import Findings, as_json, notes_of
from .text import as_text

__all__ = ["binding"]


class ComplexOrRun(EachOnce):
    """With --pele or --mmpbsa it is another command: of a PELE run, or with the files of MMPBSA.py."""

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
@click.option("--cutoff", type=float, help="Leave out pairs beyond this distance, Angstrom; by default none.")
@click.option(
    "--one-four", type=click.Choice(["scale", "exclude"]), default="scale", show_default=True,
    help="Scale 1-4 pairs as the force field says, or leave them out.",
)  # fmt: skip
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
@each_structure
def binding(
    path: Path, output: Path | None, wanted: Wanted, cutoff: float | None, one_four: Literal["scale", "exclude"],
    models: str, over: FrameOptions, variant: str, precision: str, device: str | None, read_atoms: ReadAtoms,
    constants: SolventModel, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Compute the binding energy of the complex in IN: its energy less those of receptor and ligand.

    Each has Born radii of its own: MM/GBSA over the frames of a trajectory (-t), over poses, or of one structure;
    docs/binding.md. The parts share the positions of the complex, unless they have trajectories of their own. Energies
    in kcal/mol.
    """
    over.require_alone(models_all=models == "all", poses=wanted.poses is not None)
    wanted.check(over, output, asked_of(click.get_current_context()))
    check_output(output, over, wanted)
    require_lennard_jones(path)
    molecule = read_molecule(path, read_atoms, models)
    checks = Checks(molecule.source)
    torn = dict[int, str]()
    if molecule.conformations is not None:
        torn = checks.models(molecule)
    elif not over.paths:
        checks.structure(molecule)
    reports, texts, failed = [], [], 0
    for ligand in wanted.ligands:
        plan = Binding(
            molecule.atoms, ligand, wanted.receptor, model=constants, one_four=one_four, cutoff=cutoff,
            idecomp=wanted.scheme, precision=precision, variant=variant, device=device,
            strip=_strip(wanted, ligand, molecule.atoms), strip_like=click.get_current_context().params["like"],
        )  # fmt: skip
        for sentence in plan.notes:
            note(f"Note: {sentence}")
        found = _found(plan, molecule, over, wanted, output, read_atoms, ligand, torn)
        _judge(found, checks, bool(over.paths))
        for sentence in notes_of(found):
            note(f"Note: {sentence}")
        _write(found, molecule, wanted)
        failed += _told_failures(found)
        reports.append(with_notes(_as_json(found) | {"findings": checks.as_json()}))
        texts.append(as_text(molecule.source, found))
    if as_json:
        say_json(reports[0] if len(reports) == 1 else {"ligands": reports})
    else:
        say("\n\n".join(texts))
    if failed:
        click.get_current_context().exit(1)


def _judge(found: Findings, checks: Checks, is_mean: bool) -> None:
    """Look at the energy of the complex, and note down how many frames were imaged."""
    if isinstance(found.energies, BindingEnergies) and len(found.energies.errors) == len(found.energies):
        return
    means = {term: of.mean for term, of in found.energies.statistics()["complex"].items()}
    checks.energy(found.binding.atoms, means, is_mean=is_mean or found.n_frames > 1)
    checks.findings += found.imaged()


_as_json = as_json  # a parameter of the command has this name


def _told_failures(found: Findings) -> int:
    """How many frames failed, of which the first is told on stderr."""
    if isinstance(found.energies, SeparateEnergies):
        return _told_of_systems(found.energies)
    errors = found.energies.errors
    for place, reason in list(errors.items())[:1]:
        numbers = found.energies.frames
        frame = place if numbers is None else int(numbers[place])
        note(f"Error: {counted(len(errors), 'frame')} failed, the first of them {frame}: {reason}")
    return len(errors)


def _told_of_systems(energies: SeparateEnergies) -> int:
    """How many frames of all three failed, of which the first of each is told on stderr."""
    for name, of in energies.systems.items():
        for frame, reason in list(of.errors.items())[:1]:
            failed = counted(len(of.errors), "frame")
            note(f"Error: {name}: {failed} failed, the first of them {frame}: {reason}")
    return sum(len(of.errors) for of in energies.systems.values())


def _strip(wanted: Wanted, ligand: str, atoms: Atoms) -> Chosen | None:
    """The atoms that are in no part beside water; of one of several ligands the others, too."""
    if wanted.receptor is not None or len(wanted.ligands) == 1:
        return wanted.strip
    like = click.get_current_context().params["like"]
    first, *others = [other for other in wanted.ligands if other != ligand] or [ligand]
    mask = atoms.selected(" or ".join(f"({other})" for other in (first, *others)))
    parts = Parts.of(atoms, ligand, None, wanted.strip, like)
    mask[np.setdiff1d(np.arange(len(atoms)), parts.complex)] = True
    return mask


def _found(
    plan: Binding, molecule: Molecule, over: FrameOptions, wanted: Wanted, output: Path | None, read_atoms: ReadAtoms,
    ligand: str, torn: Mapping[int, str],
) -> Findings:  # fmt: skip
    """All that the options ask for of one ligand. torn : why models fail, by their place"""
    like = click.get_current_context().params.get("like")
    if wanted.is_separate:
        separate = separate_for(plan, molecule, over, wanted, read_atoms, output)
        return _compared(Findings(plan, separate, ligand, wanted.receptor, like), wanted)
    energies = energies_for(plan, molecule, over, wanted, output, torn)
    entropy = entropy_of(interaction(energies.delta), plan.model.temperature) if wanted.entropy else None
    if entropy is not None and entropy.warning:
        note(f"Warning: {entropy.warning}")
    scan = None if wanted.alanine is None else _scan(plan, molecule, over, wanted.alanine)
    return _compared(Findings(plan, energies, ligand, wanted.receptor, like, entropy, scan), wanted)


def _compared(found: Findings, wanted: Wanted) -> Findings:
    if wanted.compare is None:
        return found
    own = {term: of.as_json() for term, of in found.energies.statistics()["delta"].items()}
    values = {**vars(found), "comparison": compare(own, read_report(wanted.compare))}
    return Findings(**values)


def _scan(plan: Binding, molecule: Molecule, over: FrameOptions, sites: str) -> AlanineScan:
    """The alanine scan of all frames or models."""
    with ProgressLine("Alanine scan") as progress:
        wanted = None if sites.strip() == "interface" else sites
        return alanine_scan(plan, conformations_for(plan, molecule, over), wanted, progress)


def _write(found: Findings, molecule: Molecule, wanted: Wanted) -> None:
    """The files of the decomposition, and the pictures."""
    of = found.decomposition
    if of is not None:
        if wanted.decomposition is not None:
            write_decomposition(wanted.decomposition, of, provenance(molecule.source))
        if wanted.bars is not None:
            draw_residues(wanted.bars, of)
        if wanted.heat_map is not None:
            draw_pairs(wanted.heat_map, of)
        if wanted.coloured is not None:
            write_coloured(wanted.coloured, found.binding.atoms, of)
    if wanted.running_mean is not None and isinstance(found.energies, BindingEnergies):
        draw_running_mean(wanted.running_mean, found.energies.total)
