"""`pele-ocl binding`: binding energies of a complex over many frames."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import click

from ..binding import PBSolvent
from ..binding import binding as binding_of
from ..pb_model import SURFACES as PB_SURFACES
from .call import Call
from .command import OUTPUT, EachOnce, command_option
from .groups import keywords, option, options
from .options import (
    cluster_options,
    cutoff_option,
    ligand_option,
    models_option,
    one_four_option,
    report_options,
    run_options,
    solvent_flags,
    strict_option,
    structure_flags,
    structures_argument,
    surface_options,
    trajectory_flags,
    variant_option,
    words_of,
)
from .showing import computed, show

_OF_PB = "With --pb: "


@dataclass(frozen=True)
class Parts:
    """Options for the parts of a complex and their positions."""

    heading: ClassVar[str] = "Parts of the complex"

    receptor: str | None = option(
        "Atoms of the receptor; by default all except ligands, water and stripped atoms.", metavar="EXPR",
        essential=True,
    )  # fmt: skip
    strip: str | None = option(
        "Atoms to remove in addition to water, or none. By default the counter-ions that --like's program "
        "removes: mmpbsa.py and sander from structures with water, gmx from any.", metavar="EXPR|none",
    )  # fmt: skip
    receptor_trajectory: tuple[Path, ...] = option(
        "Frames of the receptor alone. Can be given several times.", metavar="FILE"
    )
    ligand_trajectory: tuple[Path, ...] = option("Frames of the ligand alone.", metavar="FILE")
    receptor_structure: Path | None = option(
        "Structure or topology of the receptor's frames; by default the receptor's atoms of IN.", metavar="FILE"
    )
    ligand_structure: Path | None = option(
        "Structure or topology of the ligand's frames; by default the ligand's atoms of IN.", metavar="FILE"
    )
    poses: Path | None = option(
        "Poses of the ligand: molecules of an SDF or mol2 file, or models of a .pdb or .cif file. Atoms may have "
        "any order. Poses are numbered from 1; files also contain the frame, counted from 0.", metavar="FILE",
        essential=True,
    )  # fmt: skip


@dataclass(frozen=True)
class Analysis:
    """Options for further analyses."""

    heading: ClassVar[str] = "Analysis"

    idecomp: int | None = option(
        "Decomposition as in AMBER: 1, 2 by residue, 3, 4 by pairs of residues; 1-4 pairs are internal with 1 and "
        "3. By default, decomposition files use 2 and heat maps 4.", type=click.IntRange(1, 4), essential=True,
    )  # fmt: skip
    entropy: bool = option("Report interaction entropy and C2, at --temperature.")
    alanine: str | None = option(
        "Alanine scan of the residues that a selection names; interface: all within 5 A of the other part. Mutant "
        "minus wild type, as in gmx_MMPBSA; MMPBSA.py prints the opposite sign.", metavar="EXPR", essential=True,
    )  # fmt: skip
    compare: Path | None = option(
        "Report the difference from the result of another run, printed with --json.", metavar="JSON"
    )


@dataclass(frozen=True)
class Files:
    """Options for decomposition files and plots."""

    heading: ClassVar[str] = "Analysis"

    decomposition: Path | None = option(
        "Write the decomposition: .csv in the layout of gmx_MMPBSA, or .h5.", type=OUTPUT, metavar="FILE"
    )
    residue_plot: Path | None = option(
        "Draw the residues with the largest contributions.", type=OUTPUT, metavar="PNG", former=("--bars",)
    )
    heat_map: Path | None = option(
        "Draw the contributions of pairs of residues, receptor by ligand.", type=OUTPUT, metavar="PNG"
    )
    running_mean: Path | None = option("Draw the mean of all frames up to each frame.", type=OUTPUT, metavar="PNG")
    bfactor_pdb: Path | None = option(
        "Write the complex with each residue's contribution as its B factor.", type=OUTPUT, metavar="PDB",
        former=("--coloured",),
    )  # fmt: skip


@dataclass(frozen=True)
class Poisson:
    """Options of MM/PBSA."""

    pb: bool = option(
        "MM/PBSA: solve the Poisson-Boltzmann equation instead of Generalized Born, using the complex's "
        "grid for all three systems. The nonpolar term is then lcpo by default.", essential=True,
    )  # fmt: skip
    spacing: float | None = option(f"{_OF_PB}grid spacing, Angstrom; by default {PBSolvent.spacing:g}.", essential=True)
    padding: float | None = option(
        f"{_OF_PB}distance from the complex to the boundary of the grid, Angstrom; by default {PBSolvent.padding:g}.",
        essential=True,
    )
    nonlinear: bool = option(f"{_OF_PB}solve the nonlinear equation.", essential=True)
    dielectric_surface: str | None = option(
        f"{_OF_PB}boundary between solute and solvent; by default {PBSolvent.surface}.", choices=PB_SURFACES,
        former=("--pb-surface",),
    )  # fmt: skip


_FORMER = click.Command("binding", params=[click.Option([f"--{name}"], multiple=True) for name in ("pele", "mmpbsa")])


class Former(EachOnce):
    """Command that accepts the deprecated --pele FOLDER and --mmpbsa FILE, now `rescore` and `mmpbsa`."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        within = click.Context(_FORMER, ignore_unknown_options=True, resilient_parsing=True)
        given, left, _ = _FORMER.make_parser(within).parse_args(list(args))
        if not any(given.get(name) for name in ("pele", "mmpbsa")):
            return super().make_context(info_name, args, parent, **extra)
        from .mmpbsa import mmpbsa  # lazy import
        from .rescore import rescore

        for name, command, head in (("pele", rescore, []), ("mmpbsa", mmpbsa, ["-i"])):
            if given.get(name):
                if len(given[name]) > 1:
                    raise click.UsageError(f"--{name} is given twice; give it once")
                if parent is not None:
                    parent.invoked_subcommand = command.name  # determines the option names in errors
                return command.make_context(command.name, [*head, *given[name], *left], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=Former)
@structures_argument
@command_option(
    "-o", "--output", type=OUTPUT, metavar="OUT",
    help="Write the energies of every frame: .h5, .csv or .jsonl for a trajectory, written as they are computed; else "
    ".h5, .csv, .json.",
    essential=True,
)  # fmt: skip
@ligand_option(multiple=True, more=" Several ligands are reported separately.")
@options(Parts, Analysis, Files, Poisson)
@cutoff_option("by default none")
@one_four_option
@models_option
@trajectory_flags
@cluster_options
@variant_option("How pairs are summed, as in `energy`", listed=False)
@run_options
@structure_flags
@solvent_flags
@surface_options
@strict_option
@report_options
@words_of
def binding(
    path: Path | tuple[Path, ...], parts: Parts, analysis: Analysis, files: Files, poisson: Poisson, as_json: bool,
    verbose: bool, words: dict[str, Any], call: Call, **given: Any,
) -> None:  # fmt: skip
    """Compute the binding energy of the complex in IN: its energy minus the energies of receptor and ligand.

    Each has its own Born radii. Computes MM/GBSA for the frames of a trajectory (-t), for poses, or for one structure,
    or MM/PBSA with --pb; see docs/binding.md. The parts have the positions of the complex, unless they have separate
    trajectories. Energies in kcal/mol. The solvent is OBC2 with a solute dielectric of 1 by default; the scores of
    `screen` need --gb gbn2 --solute-dielectric 2. For runs of MMPBSA.py use `pele-ocl mmpbsa`, for runs of PELE
    `pele-ocl rescore`.
    """
    asked = [keywords(group) for group in (parts, analysis, files, poisson)]
    result = computed(
        binding_of, path, "Binding energy", call, as_json, **{name: of for each in asked for name, of in each.items()},
        **given, **words,
    )  # fmt: skip
    show(result, as_json, verbose, call)
    if getattr(result, "n_failed", 0):
        raise click.exceptions.Exit(1)
