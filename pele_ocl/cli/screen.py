"""`pele-ocl screen`: refinement, scoring and ranking of molecules in a receptor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import click

from ..gb_models import GB_MODELS
from ..screen.screener import SCORING
from ..screen.screening import screen as library
from ..screen.screening import solvent_of_score
from .call import Call, CommandProvenance
from .command import INPUT, EachOnce
from .groups import click_options, help_of, keywords, option, options
from .option_groups import GBModelName, SolventGroup
from .options import (
    cluster_options,
    overwrite_option,
    report_options,
    resume_option,
    run_options,
    strict_option,
    structure_flags,
    words_of,
)
from .progress import ProgressLine
from .showing import exit_for_failed, failing_as_record, say_records, timed_record
from .structures import FREE_RADIUS, RESTRAINT, TARGET, files
from .terminal import elapsed, say

_LENGTH = click.FloatRange(min=0)


@dataclass(frozen=True)
class Scoring(SolventGroup):
    """Options of the solvent for scoring, with different defaults than for energies."""

    heading: ClassVar[str] = "Solvent"

    gb: str = option(help_of(SolventGroup, "gb"), default=SCORING.gb, type=GBModelName(list(GB_MODELS)), essential=True)
    solute_dielectric: float = option(
        help_of(SolventGroup, "solute_dielectric"), default=SCORING.solute_dielectric, show_default=True
    )


@dataclass(frozen=True)
class Screening:
    """Options of refinement and scoring."""

    moving_radius: float = option(
        "Minimize residues with an atom within this distance of the ligand, Angstrom.", like=library, type=_LENGTH,
        essential=True,
    )  # fmt: skip
    restraint: float = option(RESTRAINT, like=library, type=_LENGTH)
    free_radius: float = option(FREE_RADIUS, like=library, type=_LENGTH)
    tolerance: float = option(
        "Rms gradient at which a complex is converged, kcal/mol/A.", like=library,
        type=click.FloatRange(min=0, min_open=True), heading="Stopping", essential=True,
    )  # fmt: skip
    max_iterations: int = option(
        "Maximum number of steps of a round.", like=library, type=click.IntRange(min=1), heading="Stopping",
        essential=True,
    )  # fmt: skip
    inside: float | None = option(
        "Relative permittivity of the solute, by default 2; the same as --solute-dielectric.", like=library,
        type=click.FloatRange(min=0, min_open=True), essential=True,
    )  # fmt: skip
    pb: bool = option("Score by the Poisson-Boltzmann equation (MM/PBSA).", like=library, essential=True)
    frames: int = option(
        "Average the score over this number of frames of dynamics at 300 K; 0 uses the minimized "
        "structure.", like=library,
        type=click.IntRange(min=0), essential=True,
    )  # fmt: skip
    add_strain: bool = option("Add the ligand's strain to the score.", like=library)
    docking_score: str = option(
        "Property of an SDF file that is the docking score of a pose, for the consensus.", like=library, metavar="NAME"
    )
    keep_water: bool = option("Keep the receptor's water, which is removed by default.", like=library)
    reference: Path | None = option(
        "Measured values to compare with, by name: .csv, .tsv, .json, .yml, or .sdf with properties.", like=library,
        metavar="FILE", essential=True,
    )  # fmt: skip
    reference_column: str | None = option(
        "Column or property with the measured values; by default one named like an affinity.", like=library,
        metavar="NAME",
    )  # fmt: skip
    native: Path | None = option(
        "Known poses of the molecules to which the rmsd is measured, .sdf or .mol2.",
        like=library,
        metavar="FILE",
        essential=True,
    )
    residues: int = option(
        "Compute the contributions of residues for this number of the best "
        "molecules.", like=library, type=click.IntRange(min=0),
        essential=True,
    )  # fmt: skip


def _scoring(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add options of the solvent for scoring."""
    for each in reversed(click_options(Scoring)):
        command = each(command)
    return command


@click.command(cls=EachOnce)
@click.argument("path", metavar="RECEPTOR", type=INPUT)
@click.argument("ligands", metavar="LIGANDS...", type=INPUT, nargs=-1, required=True, callback=files)
@click.option(
    "-o", "--output", type=TARGET, metavar="DIR", required=True,
    help="Write a table, a page, refined ligands and complexes, and a journal to this folder.",
)  # fmt: skip
@options(Screening)
@resume_option("molecules", essential=True)
@overwrite_option
@cluster_options
@run_options
@structure_flags
@_scoring
@strict_option
@report_options
@words_of
def screen(
    path: Path, ligands: tuple[Path, ...], screening: Screening, output: Path, as_json: bool, verbose: bool,
    words: dict[str, Any], call: Call, **more: Any,
) -> None:  # fmt: skip
    """Refine molecules in a receptor, score each by MM/GBSA, and rank them.

    LIGANDS are files of molecules in the frame of RECEPTOR, as docking programs write them: .sdf, .mol2, .pdbqt or .dlg
    with any number of molecules or poses, AMBER topologies with .rst7 files next to them, peptides as .pdb, or folders
    of such files. Each gets parameters, and is minimized with the residues near it. The score is the energy of the
    minimized complex minus those of receptor and ligand, by default with GBn2 and a solute dielectric of 2; `binding`,
    whose defaults are OBC2 and 1, computes it with --gb gbn2 --solute-dielectric 2. A molecule that fails does not stop
    the others: its row has the reason, and the exit code is 1.
    """
    cofactors = words.pop("ligands", ())
    solvent = solvent_of_score(words, screening.inside)
    call = replace(call, constants={name: of for name, of in solvent.settings.items() if name in call.parameters})
    with failing_as_record(path, as_json), ProgressLine("Screening") as progress:
        found = library(
            path, ligands, cofactors=cofactors, **keywords(screening), **more, **words, output=output, errors="record",
            progress=progress, provenance=CommandProvenance(call),
        )  # fmt: skip
    if as_json:
        record = found.record
        say_records([timed_record(record)])
    else:
        say(found.text(verbose, elapsed()))
    failed = {k + 1: why for k, why in found.errors.items()}
    exit_for_failed("molecule", failed, len(failed), len(found))
