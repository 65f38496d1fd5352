"""Options of `pele-ocl binding`, gathered into what the command wants of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

import click

from ...binding.decomposition_files import require_decomposition_suffix
from ...binding.poisson_boltzmann import PBSolvent
from ...common.errors import InputError
from ...formats.maps.pictures import require_png
from ...pb_model import SURFACES as PB_SURFACES
from ..cluster import ClusterOptions
from ..command import INPUT, OUTPUT
from ..frames import FrameOptions
from ..options import Command, given_options, ligand_option

DEFAULT_IDECOMP = 2
OF_AMBER = ("amber", "mmpbsa.py", "sander", "gmx")  # constants whose users know the terms by AMBER's names


@dataclass(frozen=True)
class BindingOptions:
    """Options about the parts of a complex, where their positions come from, and what is reported.

    ligands, receptor : selections; strip : a selection of atoms in neither, or "none"
    receptor_trajectory, ligand_trajectory, receptor_structure, ligand_structure : of parts with frames of their own
    poses : file of the ligand's positions
    idecomp : of the decomposition, None for none; decomposition, pictures : files of it
    entropy : True for entropies; alanine : the sites of a scan; compare : a report of another run
    pb : PBSolvent of MM/PBSA, None for Generalized Born
    """

    ligands: tuple[str, ...]
    receptor: str | None
    strip: str | None
    receptor_trajectory: tuple[Path, ...]
    ligand_trajectory: tuple[Path, ...]
    receptor_structure: Path | None
    ligand_structure: Path | None
    poses: Path | None
    idecomp: int | None
    decomposition: Path | None
    bars: Path | None
    heat_map: Path | None
    running_mean: Path | None
    coloured: Path | None
    entropy: bool
    alanine: str | None
    compare: Path | None
    pb: PBSolvent | None

    @property
    def is_separate(self) -> bool:
        """True if the parts have trajectories of their own."""
        return bool(self.receptor_trajectory or self.ligand_trajectory)

    @property
    def scheme(self) -> int | None:
        """Scheme of the decomposition, by --idecomp or by the files of one."""
        of_pairs = 4 if self.heat_map is not None else DEFAULT_IDECOMP
        files = (self.decomposition, self.bars, self.heat_map, self.coloured)
        return self.idecomp if self.idecomp is not None or not any(files) else of_pairs

    @property
    def files(self) -> tuple[Path, ...]:
        """Files of a decomposition, and pictures."""
        named = (self.decomposition, self.bars, self.heat_map, self.running_mean, self.coloured)
        return tuple(path for path in named if path is not None)

    def check(self, trajectory: FrameOptions, output: Path | None, cluster: ClusterOptions) -> None:
        """Raise for options that do not go together, and for files that could not be written."""
        if self.receptor is not None and self.strip is not None:
            raise click.UsageError("choose one of --receptor and --strip; a receptor that is named has all its atoms")
        if len(self.ligands) > 1 and (output is not None or self.files):
            raise click.UsageError("files are of one ligand; give one --ligand, or take --json for several")
        if trajectory.paths and len(self.ligands) > 1:
            cluster.refuse("several ligands are done one after the other; give one --ligand")
        if self.is_separate:
            if not trajectory.paths:
                raise click.UsageError("separate trajectories of the parts need that of the complex, too: -t FILE")
            cluster.refuse("separate trajectories of the parts are read in one process")
            if trajectory.resume:
                raise click.UsageError("separate trajectories of the parts are read in one go; leave out --resume")
            given = {
                "--idecomp": self.scheme,
                "--entropy": self.entropy or None,
                "--alanine": self.alanine,
                "--running-mean": self.running_mean,
            }
            for name, value in given.items():
                if value is not None:
                    raise click.UsageError(f"{name} needs receptor and ligand from the frames of the complex")
        for part in ("receptor", "ligand"):
            if getattr(self, f"{part}_structure") is not None and not getattr(self, f"{part}_trajectory"):
                raise click.UsageError(f"--{part}-structure is for its own trajectory; give --{part}-trajectory, too")
        if self.poses is not None and trajectory.paths:
            raise click.UsageError("choose one of --poses and -t")
        if self.poses is not None and self.alanine is not None:
            raise click.UsageError("choose one of --poses and --alanine; a scan is of IN, or of frames by -t")
        if self.poses is not None:
            of_frames = {
                "--entropy": self.entropy, "--running-mean": self.running_mean, "--compare": self.compare,
                "--idecomp": self.scheme,
            }  # fmt: skip
            for name, value in of_frames.items():
                if value:
                    raise click.UsageError(f"{name} is about means over frames; different poses have none")
        if self.heat_map is not None and self.scheme in (1, 2):
            raise InputError(f"a heat map is of pairs of residues; --idecomp {self.scheme} has none, 3 and 4 have")
        if self.decomposition is not None:
            require_decomposition_suffix(self.decomposition)
        for picture in (self.bars, self.heat_map, self.running_mean):
            if picture is not None:
                require_png(picture)


def binding_options(command: Command) -> Command:
    """Options about the parts and about what is reported; the command gets `wanted`, Wanted."""

    @wraps(command)
    def gathered(*, ligand: tuple[str, ...], idecomp: str | None, **others: object) -> object:
        names = [name for name in BindingOptions.__dataclass_fields__ if name not in ("ligands", "idecomp", "pb")]
        given = {name: others.pop(name) for name in names} | {"idecomp": None if idecomp is None else int(idecomp)}
        given["pb"] = _pb_solvent(**{name: others.pop(name) for name in ("pb", *_OF_PB)})  # type: ignore[arg-type]
        return command(wanted=BindingOptions(ligand, **given), **others)  # type: ignore[arg-type]

    decorated: Command = gathered
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def _pb_solvent(pb: bool, nonlinear: bool, pb_surface: str, spacing: float, padding: float) -> PBSolvent | None:
    """Make the solvent of --pb. Raises UsageError for options about it without --pb, and for --gb beside it."""
    given = given_options("gb" if pb else "pb", *(() if pb else _OF_PB))
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise click.UsageError(f"--pb takes the place of {names}" if pb else f"{names} needs --pb")
    return PBSolvent("nonlinear" if nonlinear else "linear", pb_surface, 2.0, spacing, padding) if pb else None


_OF_PB = ("nonlinear", "pb_surface", "spacing", "padding")
_OPTIONS: tuple[Callable[[Command], Command], ...] = (
    ligand_option(multiple=True, more=" Several ligands are reported one by one."),
    click.option(
        "--receptor", metavar="EXPR",
        help="Atoms of the receptor; by default all except ligands, water and stripped atoms.",
    ),
    click.option(
        "--strip", metavar="EXPR|none",
        help="Atoms to leave out besides water, or none. By default the counter-ions that --like's program "
        "strips: mmpbsa.py and sander from structures with water, gmx from any.",
    ),
    click.option(
        "--receptor-trajectory", type=INPUT, multiple=True, metavar="FILE",
        help="Frames of the receptor alone; may be given several times.",
    ),
    click.option("--ligand-trajectory", type=INPUT, multiple=True, metavar="FILE", help="Frames of the ligand alone."),
    click.option(
        "--receptor-structure", type=INPUT, metavar="FILE",
        help="Structure or topology of the receptor's frames; by default the receptor's atoms of IN.",
    ),
    click.option("--ligand-structure", type=INPUT, metavar="FILE", help=
        "Structure or topology of the ligand's frames; by default the ligand's atoms of IN."),
    click.option(
        "--poses", type=INPUT, metavar="FILE",
        help="Poses of the ligand: molecules of an SDF or mol2 file, or models of a .pdb or .cif file. Atoms may have "
        "any order. Poses are numbered from 1, in files as pose beside frame, which counts from 0.",
    ),
    click.option(
        "--idecomp", type=click.Choice(["1", "2", "3", "4"]),
        help="Decomposition as in AMBER: 1, 2 by residue, 3, 4 by pairs of residues; 1-4 pairs are internal with 1 and "
        "3. Without it files of a decomposition take 2, a heat map 4.",
    ),
    click.option(
        "--decomposition", type=OUTPUT, metavar="FILE", help=
            "Write the decomposition: .csv in the layout of gmx_MMPBSA, or .h5."
    ),
    click.option("--bars", type=OUTPUT, metavar="PNG", help="Draw the residues with the largest shares."),
    click.option("--heat-map", type=OUTPUT, metavar="PNG", help=
        "Draw the shares of pairs of residues, receptor by ligand."),
    click.option("--running-mean", type=OUTPUT, metavar="PNG", help="Draw the mean up to each frame."),
    click.option(
        "--coloured", type=OUTPUT, metavar="PDB", help=
            "Write the complex with each residue's share as its B factor."
    ),
    click.option("--entropy", is_flag=True, help="Report interaction entropy and C2, at --temperature."),
    click.option(
        "--alanine", metavar="EXPR",
        help="Alanine scan of the residues that a selection names; interface: all within 5 A of the other part. Mutant "
        "less wild type, as in gmx_MMPBSA; MMPBSA.py prints the reverse sign.",
    ),
    click.option(
        "--pb", is_flag=True,
        help="MM/PBSA: solve the Poisson-Boltzmann equation in place of Generalized Born, on nodes of the "
        "complex's grid for all three systems. The nonpolar term is then lcpo by default.",
    ),
    click.option(
        "--spacing", type=float, default=PBSolvent.spacing, show_default=True, help="With --pb: of the grid, Angstrom."
    ),
    click.option(
        "--padding", type=float, default=PBSolvent.padding, show_default=True,
        help="With --pb: from the complex to the border of the grid, Angstrom.",
    ),
    click.option("--nonlinear", is_flag=True, help="With --pb: solve the nonlinear equation."),
    click.option(
        "--pb-surface", type=click.Choice(list(PB_SURFACES)), default=PBSolvent.surface, show_default=True,
        help="With --pb: border of solute and solvent, as --surface of pele-ocl pb.",
    ),
    click.option(
        "--compare", type=INPUT, metavar="JSON", help="Report the difference from what another run printed with --json."
    ),
)  # fmt: skip
