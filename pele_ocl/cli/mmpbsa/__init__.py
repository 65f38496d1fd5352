"""`pele-ocl binding --mmpbsa mmpbsa.in`: a run of MMPBSA.py or gmx_MMPBSA by its own input file and options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ...binding.mmpbsa.files import FrameFiles, Systems, amber_systems, gromacs_systems
from ...binding.mmpbsa.namelists import MmpbsaInput, read_input
from ...common.inputfile import read_file
from ..cluster import cluster_options, cluster_options_of
from ..command import INPUT, OUTPUT, EachOnce
from ..options import report_options, run_options
from ..terminal import note
from .runs import EnergyFiles, computed_runs
from .writing import OutputFiles, headed, say_runs, write_outputs

__all__ = ["MMPBSA", "mmpbsa"]

MMPBSA = "--mmpbsa"
_SEVERAL = ("-y", "-yr", "-yl", "-ct", "-rt", "-lt")  # options that take several files behind one another


_REFUSED = {
    "-i": "the input file is the one that --mmpbsa names; leave out -i",
    "-make-mdins": "-make-mdins is not done here: no program is called that would read them",
    "-use-mdins": "-use-mdins is not done here: options of &gb take the place of mdin files",
    "-rewrite-output": "-rewrite-output is not done here; --resume with -O goes on with intermediate files",
    "--rewrite-output": "--rewrite-output is not done here; --resume with -O goes on with intermediate files",
    "--clean": "--clean is not done here; --resume alone makes intermediate files, and keep_files=0 removes them",
    "-xvvfile": "-xvvfile is of 3D-RISM, which is not done here",
    "-s": "-s is not done here; leave out -rp, -lp and -cg for the energy of the complex alone",
    "--stability": "--stability is not done here; leave out -rp, -lp and -cg for the energy of the complex alone",
}  # fmt: skip


class MmpbsaCommand(EachOnce):
    """Takes several files after -y, as MMPBSA.py does."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if sum(word.partition("=")[0] == MMPBSA for word in args) > 1:
            raise click.UsageError(f"{MMPBSA} is given twice; give it once")
        for word in args:
            if word in _REFUSED:
                raise click.UsageError(_REFUSED[word])
        spread, several = list[str](), ""
        for word in args:
            if word in _SEVERAL:
                several = word
            elif several and not word.startswith("-"):
                spread += [several, word]
                continue
            else:
                several = ""
            if word not in _SEVERAL:
                spread.append(word)
        return super().make_context(info_name, spread, parent, **extra)


def _file(option: str, name: str, text: str, *, several: bool = False) -> Callable[..., Callable[..., object]]:
    return click.option(option, name, type=INPUT, metavar="FILE", multiple=several, help=text)


@click.command(cls=MmpbsaCommand, name="binding")
@click.option(MMPBSA, "source", type=INPUT, metavar="FILE", required=True, help="The input file, mmpbsa.in.")
@click.option("-O", "overwrite", is_flag=True, help="Write over files that are there, as MMPBSA.py asks for.")
@_file("-cp", "complex_topology", "Topology of the complex: AMBER's, or GROMACS' of all atoms with -cg.")
@_file("-rp", "receptor_topology", "Topology of the receptor; with neither -rp nor -lp the complex alone.")
@_file("-lp", "ligand_topology", "Topology of the ligand.")
@_file("-sp", "solvated_complex", "Solvated topology of the complex, which the frames of -y are of.")
@_file("-srp", "solvated_receptor", "Solvated topology of the receptor, for -yr.")
@_file("-slp", "solvated_ligand", "Solvated topology of the ligand, for -yl.")
@_file("-y", "trajectories", "Frames of the complex; several files may follow.", several=True)
@_file("-yr", "receptor_trajectories", "Frames of the receptor alone; several files may follow.", several=True)
@_file("-yl", "ligand_trajectories", "Frames of the ligand alone; several files may follow.", several=True)
@_file("-mc", "mutant_complex", "Topology of the complex with a residue turned into ALA.")
@_file("-mr", "mutant_receptor", "Of the receptor, where the mutated residue is there.")
@_file("-ml", "mutant_ligand", "Of the ligand, where the mutated residue is there.")
@_file(
    "-cs",
    "structure",
    "gmx_MMPBSA's structure of the frames; without -cr chains and residue numbers of a .pdb are its own.",
)
@_file("-ci", "index", "gmx_MMPBSA's index file.")
@click.option("-cg", "groups", type=int, nargs=2, metavar="R L", help="Numbers of receptor and ligand in -ci, from 0.")
@click.option("-cm", "masks", nargs=2, metavar="R L", help="Masks of receptor and ligand, of amber_MMPBSA.")
@_file("-ct", "gromacs_trajectories", "Frames of all atoms of -cp.", several=True)
@_file("-cr", "reference", "Structure of receptor and ligand that has chains and residue numbers.")
@_file("-rs", "receptor_structure", "gmx_MMPBSA's structure of the receptor; not needed here, and not read.")
@_file("-ri", "receptor_index", "Index file of the atoms of -rp, with -rg.")
@click.option("-rg", "receptor_group", type=int, metavar="R", help="Number of the receptor in -ri, from 0.")
@_file("-rt", "receptor_frames", "Frames of the receptor alone: of all atoms of -rp, else its own.", several=True)
@_file("-ls", "ligand_structure", "gmx_MMPBSA's structure of the ligand; not needed here, and not read.")
@_file("-lm", "ligand_molecule", "gmx_MMPBSA's .mol2 of the ligand; not needed beside -cp, and not read.")
@_file("-li", "ligand_index", "Index file of the atoms of -lp, with -lg.")
@click.option("-lg", "ligand_group", type=int, metavar="L", help="Number of the ligand in -li, from 0.")
@_file("-lt", "ligand_frames", "Frames of the ligand alone: of all atoms of -lp, else its own.", several=True)
@click.option(
    "-o", "output", type=OUTPUT, metavar="FILE", default="FINAL_RESULTS_MMPBSA.dat", show_default=True,
    help="The tables.",
)  # fmt: skip
@click.option(
    "-do", "decomposition", type=OUTPUT, metavar="FILE", default="FINAL_DECOMP_MMPBSA.dat", show_default=True,
    help="The decomposition, where &decomp asks for one.",
)  # fmt: skip
@click.option("-eo", "frames_output", type=OUTPUT, metavar="FILE", help="The energies of each frame, as CSV.")
@click.option("-deo", "frame_shares", type=OUTPUT, metavar="FILE", help="The decomposition of each frame, as CSV.")
@click.option(
    "-prefix", "prefix", metavar="TEXT", default="_MMPBSA_", show_default=True,
    help="First letters of the intermediate files of --resume.",
)  # fmt: skip
@click.option("-sys_name", "system_name", metavar="TEXT", help="Accepted; no file has the name.")
@click.option("-nogui", "no_gui", is_flag=True, help="Accepted; there is no window.")
@click.option(
    "--resume", is_flag=True,
    help="Keep the energies of frames in TEXTcomplex.h5 and the like as they come, and go on with these files.",
)  # fmt: skip
@cluster_options
@run_options
@report_options
def mmpbsa(
    source: Path, overwrite: bool, complex_topology: Path | None, receptor_topology: Path | None,
    ligand_topology: Path | None, solvated_complex: Path | None, solvated_receptor: Path | None,
    solvated_ligand: Path | None, trajectories: tuple[Path, ...], receptor_trajectories: tuple[Path, ...],
    ligand_trajectories: tuple[Path, ...], mutant_complex: Path | None, mutant_receptor: Path | None,
    mutant_ligand: Path | None, structure: Path | None, index: Path | None, groups: tuple[int, int] | None,
    masks: tuple[str, str] | None, gromacs_trajectories: tuple[Path, ...], reference: Path | None,
    receptor_structure: Path | None, receptor_index: Path | None, receptor_group: int | None,
    receptor_frames: tuple[Path, ...], ligand_structure: Path | None, ligand_molecule: Path | None,
    ligand_index: Path | None, ligand_group: int | None, ligand_frames: tuple[Path, ...], output: Path,
    decomposition: Path, frames_output: Path | None, frame_shares: Path | None, prefix: str, system_name: str | None,
    no_gui: bool, resume: bool, precision: str, device: str | None, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """A run of MMPBSA.py or gmx_MMPBSA from its mmpbsa.in, with the options of these programs.

    Energies are of MM/GBSA (&gb) and MM/PBSA (&pb), with &general, &decomp and &alanine_scanning; other namelists are
    left out, with a note. FINAL_RESULTS_MMPBSA.dat and FINAL_DECOMP_MMPBSA.dat are written in their layouts.
    docs/coming-from-amber.md
    """
    paths = gromacs_trajectories or trajectories
    if complex_topology is None:
        raise click.UsageError("-cp is missing: the topology of the complex")
    if not paths:
        raise click.UsageError("frames are missing: -y FILE with AMBER's files, -ct FILE with GROMACS'")
    _require_pairs({"-ci": index, "-cg": groups}, {"-ri": receptor_index, "-rg": receptor_group},
                   {"-li": ligand_index, "-lg": ligand_group})  # fmt: skip
    of_groups = {
        "receptor": FrameFiles(receptor_frames, receptor_topology, receptor_index, receptor_group),
        "ligand": FrameFiles(ligand_frames, ligand_topology, ligand_index, ligand_group),
    }
    of_parts = {name: group for name, group in of_groups.items() if group.paths}
    if of_parts and groups is None:
        raise click.UsageError("-rt and -lt go with -cg; with AMBER's files frames of the parts are -yr and -yl")
    if groups is not None and (receptor_trajectories or ligand_trajectories):
        raise click.UsageError("-yr and -yl are of AMBER's files; with -cg frames of the parts are -rt and -lt")
    file = read_file(source)
    wanted = read_input(file, of_gromacs := groups is not None or masks is not None)
    outputs = OutputFiles(output, decomposition if wanted.decomp else None, frames_output, frame_shares)
    outputs.check(overwrite)
    records = EnergyFiles(prefix, resume, wanted.keeps_files)
    _refuse_sharing(wanted, records)
    if masks is not None:
        wanted = replace(wanted, masks=masks)
    if groups is not None and index is not None:
        systems = gromacs_systems(wanted, complex_topology, index, groups, paths, reference, of_parts, structure)
    else:
        systems = amber_systems(
            wanted,
            _given(complex=complex_topology, receptor=receptor_topology, ligand=ligand_topology),
            _given(complex=solvated_complex, receptor=solvated_receptor, ligand=solvated_ligand),
            _given(complex=paths, receptor=receptor_trajectories, ligand=ligand_trajectories),
        )
    wanted = _with_notes(wanted, systems)
    mutants = _given(complex=mutant_complex, receptor=mutant_receptor, ligand=mutant_ligand)
    runs = computed_runs(systems, wanted, mutants, device, precision, records, by_frame=frame_shares is not None)
    notes = [*wanted.notes]
    n_imaged = sum(run.n_imaged for run in runs)
    if n_imaged:
        notes.append(f"{n_imaged:,} frames were imaged: molecules made whole and put beside the receptor")
    for sentence in notes:
        note(f"Note: {sentence}")
    heading = headed(file, wanted, systems, runs, notes, of_gromacs, complex_topology, paths)
    written = write_outputs(outputs, systems, wanted, runs, heading, of_gromacs)
    records.clean()
    say_runs(file, runs, wanted, written, notes, systems.left_out, as_json)


def _given(**named: Any) -> dict[str, Any]:
    """Options that were given, by name."""
    return {name: value for name, value in named.items() if value}


def _require_pairs(*pairs: dict[str, object]) -> None:
    """Raise UsageError for an index file without a group, or a group without one."""
    for pair in pairs:
        if len({value is None for value in pair.values()}) > 1:
            first, second = pair
            raise click.UsageError(f"{first} and {second} go together: an index file and a group of it")


def _refuse_sharing(wanted: MmpbsaInput, records: EnergyFiles) -> None:
    """Raise UsageError for a way through the frames that what is wanted does not have."""
    cluster = cluster_options_of(click.get_current_context())
    if cluster.shard is not None:
        raise click.UsageError("--shard has no tables of its own; --workers and --scheduler share the frames of a run")
    if wanted.decomp is not None and records.resume:
        raise click.UsageError("a decomposition is of all frames of one run; leave out --resume, or &decomp")
    if wanted.decomp is not None and wanted.decomp.idecomp > 2 and cluster.is_remote:
        raise click.UsageError("pairs of residues are summed up in one process; leave out --workers and --scheduler")


def _with_notes(wanted: MmpbsaInput, systems: Systems) -> MmpbsaInput:
    """Input with notes about what these systems are, and without entropies where they have none.

    Raises UsageError for entropies of separate trajectories.
    """
    of_frames = [note for source in systems.sources.values() for note in source.trajectory(wanted.frames).notes]
    notes, side = [*wanted.notes, *systems.notes, *dict.fromkeys(of_frames)], systems.is_ligand
    if side is not None and side.sum() > (~side).sum():
        notes.append(
            f"the ligand has {int(side.sum()):,} atoms, more than the {int((~side).sum()):,} of the receptor; the "
            "difference is the same if the two were meant the other way round"
        )
    if wanted.decomp is not None and wanted.alanine is not None and wanted.alanine.mutant_only:
        raise click.UsageError("mutant_only=1 leaves out the wild type, which &decomp is of; leave out one of the two")
    if wanted.entropies is not None and side is None:
        notes.append("entropies of binding are left out, as there is no receptor and no ligand")
        return replace(wanted, notes=tuple(notes), entropies=None)
    if wanted.entropies is not None and len(systems.sources) > 1:
        raise click.UsageError("interaction_entropy and c2_entropy need receptor and ligand from frames of the complex")
    return replace(wanted, notes=tuple(notes))
