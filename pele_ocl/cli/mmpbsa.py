"""`pele-ocl mmpbsa`: runs defined by input files and options of MMPBSA.py or gmx_MMPBSA."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..binding.mmpbsa import mmpbsa as run_of
from .command import INPUT, OUTPUT, EachOnce, Option, command_option
from .options import place_options, report_options, run_options, words_of
from .progress import ProgressLine
from .showing import show

_ALONE = "; omit -rp, -lp and -cg to compute only the complex"
_ON = "; --resume with -O continues from intermediate files"
_REFUSED = {
    "-make-mdins": ": mdin files are not used",
    "-use-mdins": ": use the options of &gb instead of mdin files",
    "-rewrite-output": _ON,
    "--rewrite-output": _ON,
    "--clean": "; --resume alone makes intermediate files, and keep_files=0 removes them",
    "-xvvfile": ": 3D-RISM is not available",
    "-s": _ALONE,
    "--stability": _ALONE,
}  # fmt: skip


class _Several(Option):
    """Option that accepts all values up to the next option, as in MMPBSA.py."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        super().add_to_parser(parser, ctx)
        own = {**parser._short_opt, **parser._long_opt}[self.opts[0]]
        first = own.process

        def process(value: Any, state: Any) -> None:
            if value.startswith("-"):
                raise click.BadOptionUsage(self.opts[0], f"Option {self.opts[0]!r} requires an argument.", ctx)
            first(value, state)
            while state.rargs and not state.rargs[0].startswith("-"):
                first(state.rargs.pop(0), state)

        own.process = process


def _file(
    option: str, name: str, text: str, *, several: bool = False, **more: Any
) -> Callable[..., Callable[..., object]]:
    cls = _Several if several else Option
    return command_option(option, name, type=INPUT, metavar="FILE", multiple=several, help=text, cls=cls, **more)


def _refuse(context: click.Context, option: click.Parameter, given: bool) -> None:
    """Raise UsageError for an option of MMPBSA.py that is not supported."""
    if given and not context.resilient_parsing:
        raise click.UsageError(f"{option.opts[0]} is not supported{_REFUSED[option.opts[0]]}")


def _refused(command: Callable[..., object]) -> Callable[..., object]:
    """Add hidden options that raise an error."""
    for name in _REFUSED:
        command = click.option(
            name, f"refused_{name.strip('-').replace('-', '_')}_{len(name)}", is_flag=True, is_eager=True, hidden=True,
            expose_value=False, callback=_refuse,
        )(command)  # fmt: skip
    return command


@click.command(cls=EachOnce)
@click.option("-i", "input_file", type=INPUT, metavar="FILE", required=True, help="The input file, mmpbsa.in.")
@command_option("-O", "overwrite", is_flag=True, help="Overwrite existing files.", essential=True)
@_file(
    "-cp", "complex_topology", "Topology of the complex: AMBER's, or GROMACS' of all atoms with -cg.", essential=True
)
@_file(
    "-rp",
    "receptor_topology",
    "Topology of the receptor; without -rp and -lp only the complex is computed.",
    essential=True,
)
@_file("-lp", "ligand_topology", "Topology of the ligand.", essential=True)
@_file("-sp", "solvated_complex", "Solvated topology of the complex, to which the frames of -y belong.", essential=True)
@_file("-srp", "solvated_receptor", "Solvated topology of the receptor, for -yr.")
@_file("-slp", "solvated_ligand", "Solvated topology of the ligand, for -yl.")
@_file("-y", "trajectory", "Frames of the complex; several files may follow.", several=True, essential=True)
@_file("-yr", "receptor_trajectory", "Frames of the receptor alone; several files may follow.", several=True)
@_file("-yl", "ligand_trajectory", "Frames of the ligand alone; several files may follow.", several=True)
@_file("-mc", "mutant_complex", "Topology of the complex with a residue mutated to ALA.")
@_file("-mr", "mutant_receptor", "Topology of the mutated receptor, if the residue is part of it.")
@_file("-ml", "mutant_ligand", "Topology of the mutated ligand, if the residue is part of it.")
@_file(
    "-cs",
    "structure",
    "gmx_MMPBSA's structure of the frames; without -cr, a .pdb also provides chains and residue numbers.",
)
@_file("-ci", "index", "gmx_MMPBSA's index file.")
@click.option("-cg", "groups", type=int, nargs=2, metavar="R L", help="Numbers of receptor and ligand in -ci, from 0.")
@click.option("-cm", "masks", nargs=2, metavar="R L", help="Masks of receptor and ligand, as in amber_MMPBSA.")
@_file("-ct", "gromacs_trajectory", "Frames of all atoms of -cp.", several=True)
@_file("-cr", "reference", "Structure of receptor and ligand with chains and residue numbers.")
@_file("-rs", "receptor_structure", "gmx_MMPBSA's structure of the receptor; accepted and ignored.")
@_file("-ri", "receptor_index", "Index file of the atoms of -rp, with -rg.")
@click.option("-rg", "receptor_group", type=int, metavar="R", help="Number of the receptor in -ri, from 0.")
@_file(
    "-rt",
    "receptor_frames",
    "Frames of the receptor alone, with all atoms of -rp, or only those of the receptor.",
    several=True,
)
@_file("-ls", "ligand_structure", "gmx_MMPBSA's structure of the ligand; accepted and ignored.")
@_file(
    "-lm", "ligand_molecule", "gmx_MMPBSA's .mol2 of the ligand; accepted and ignored, since -cp has its parameters."
)
@_file("-li", "ligand_index", "Index file of the atoms of -lp, with -lg.")
@click.option("-lg", "ligand_group", type=int, metavar="L", help="Number of the ligand in -li, from 0.")
@_file(
    "-lt",
    "ligand_frames",
    "Frames of the ligand alone, with all atoms of -lp, or only those of the ligand.",
    several=True,
)
@command_option(
    "-o", "output", type=OUTPUT, metavar="FILE", default="FINAL_RESULTS_MMPBSA.dat", show_default=True,
    help="The tables.", essential=True,
)  # fmt: skip
@click.option(
    "-do", "decomposition", type=OUTPUT, metavar="FILE", default="FINAL_DECOMP_MMPBSA.dat", show_default=True,
    help="The decomposition, if the input has &decomp.",
)  # fmt: skip
@click.option("-eo", "frames_output", type=OUTPUT, metavar="FILE", help="The energies of each frame, as CSV.")
@click.option("-deo", "frame_shares", type=OUTPUT, metavar="FILE", help="The decomposition of each frame, as CSV.")
@click.option(
    "-prefix", "prefix", metavar="TEXT", default="_MMPBSA_", show_default=True,
    help="Prefix of the intermediate files of --resume.",
)  # fmt: skip
@click.option("-sys_name", "system_name", metavar="TEXT", help="Accepted and ignored.")
@click.option("-nogui", "no_gui", is_flag=True, help="Accepted; there is no graphical interface.")
@command_option(
    "--resume", is_flag=True,
    help="Write the energies of frames to TEXTcomplex.h5 and similar files as they are computed; continue from these "
    "files.",
    heading="Output",
)  # fmt: skip
@place_options
@run_options
@_refused
@report_options
@words_of
def mmpbsa(
    gromacs_trajectory: tuple[Path, ...], receptor_frames: tuple[Path, ...], ligand_frames: tuple[Path, ...],
    receptor_structure: Path | None, ligand_structure: Path | None, ligand_molecule: Path | None,
    system_name: str | None, no_gui: bool, as_json: bool, verbose: bool, words: dict[str, Any], **given: Any,
) -> None:  # fmt: skip
    """Run an mmpbsa.in of MMPBSA.py or gmx_MMPBSA with the options of these programs.

    Computes MM/GBSA (&gb) and MM/PBSA (&pb), with &general, &decomp and &alanine_scanning; other namelists are ignored,
    with a note. FINAL_RESULTS_MMPBSA.dat and FINAL_DECOMP_MMPBSA.dat have the layouts of these programs. See
    docs/coming-from-amber.md.
    """
    parts = {"receptor_trajectory": receptor_frames, "ligand_trajectory": ligand_frames}
    if any(parts.values()) and given["groups"] is None:
        raise click.UsageError("-rt and -lt require -cg; with AMBER's files use -yr and -yl")
    if given["groups"] is not None and any(given[name] for name in parts):
        raise click.UsageError("-yr and -yl require AMBER's files; with -cg use -rt and -lt")
    given |= {name: paths for name, paths in parts.items() if paths}
    trajectory = words.pop("trajectory", ())
    if gromacs_trajectory and trajectory:
        raise click.UsageError("use either -y or -ct; both are frames of the complex")
    given["trajectory"] = gromacs_trajectory or trajectory
    with ProgressLine("Energy of frames") as progress:
        result = run_of(**given, **words, progress=progress)
    show(result, as_json, verbose)
