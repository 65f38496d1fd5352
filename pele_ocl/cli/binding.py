"""`pele-ocl binding`: energy of a complex less the energies of its receptor and its ligand, over many frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from ..binding import Binding, BindingEnergies, BindingResult, PBSolvent, Spread, binding_spec
from ..binding import binding as binding_of
from ..binding.alanine import AlanineScan
from ..binding.decomposition import GROUPS, Decomposition
from ..binding.energies import DELTA, PARTS
from ..binding.statistics import Entropy
from ..energy import VARIANTS
from ..gb_models.solvent_model import SolventModel
from ..pb_model import SURFACES as PB_SURFACES
from .clock import elapsed
from .cluster import cluster_given, cluster_options
from .command import OUTPUT, EachOnce
from .frames import FrameOptions, trajectory_options
from .groups import keywords, option, options
from .json_lines import failing_as_record, say_result
from .mmpbsa import mmpbsa
from .options import (
    ReadAtoms,
    given_options,
    ligand_option,
    like_given,
    model_options,
    models_option,
    report_options,
    run_options,
    strict_option,
    structure_options,
    surface_options,
)
from .physics import lines_of, physics_lines
from .plan_options import cutoff_option, one_four_option
from .progress import ProgressLine
from .report import call_facts, counted, duration, headline, settings
from .rescore import rescore
from .several import Several, only_one, structures_argument
from .tables import table
from .terminal import one_line, say

_FILES = "a decomposition or a picture is of one structure; give one, or leave out its file"
_OF_PB = "With --pb: "


@dataclass(frozen=True)
class Parts:
    """Parts of a complex, and where their positions come from."""

    receptor: str | None = option(
        "Atoms of the receptor; by default all except ligands, water and stripped atoms.", metavar="EXPR"
    )
    strip: str | None = option(
        "Atoms to leave out besides water, or none. By default the counter-ions that --like's program "
        "strips: mmpbsa.py and sander from structures with water, gmx from any.", metavar="EXPR|none",
    )  # fmt: skip
    receptor_trajectory: tuple[Path, ...] = option(
        "Frames of the receptor alone; may be given several times.", metavar="FILE"
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
        "any order.", metavar="FILE",
    )  # fmt: skip


@dataclass(frozen=True)
class Analysis:
    """Reports beside the energies."""

    idecomp: int | None = option(
        "Decomposition as in AMBER: 1, 2 by residue, 3, 4 by pairs of residues; 1-4 pairs are internal with 1 and "
        "3. Without it files of a decomposition take 2, a heat map 4.", type=click.IntRange(1, 4),
    )  # fmt: skip
    entropy: bool = option("Report interaction entropy and C2, at --temperature.")
    alanine: str | None = option(
        "Alanine scan of the residues that a selection names; interface: all within 5 A of the other part. Mutant "
        "less wild type, as in gmx_MMPBSA; MMPBSA.py prints the reverse sign.", metavar="EXPR",
    )  # fmt: skip
    compare: Path | None = option("Report the difference from what another run printed with --json.", metavar="JSON")


@dataclass(frozen=True)
class Files:
    """Files of a decomposition, and pictures."""

    decomposition: Path | None = option(
        "Write the decomposition: .csv in the layout of gmx_MMPBSA, or .h5.", type=OUTPUT, metavar="FILE"
    )
    residue_plot: Path | None = option(
        "Draw the residues with the largest shares.", type=OUTPUT, metavar="PNG", former=("--bars",)
    )
    heat_map: Path | None = option(
        "Draw the shares of pairs of residues, receptor by ligand.", type=OUTPUT, metavar="PNG"
    )
    running_mean: Path | None = option("Draw the mean up to each frame.", type=OUTPUT, metavar="PNG")
    bfactor_pdb: Path | None = option(
        "Write the complex with each residue's share as its B factor.", type=OUTPUT, metavar="PDB",
        former=("--coloured",),
    )  # fmt: skip


@dataclass(frozen=True)
class Poisson:
    """MM/PBSA."""

    pb: bool = option(
        "MM/PBSA: solve the Poisson-Boltzmann equation in place of Generalized Born, on nodes of the "
        "complex's grid for all three systems. The nonpolar term is then lcpo by default."
    )
    spacing: float | None = option(f"{_OF_PB}of the grid, Angstrom; by default {PBSolvent.spacing:g}.")
    padding: float | None = option(
        f"{_OF_PB}from the complex to the border of the grid, Angstrom; by default {PBSolvent.padding:g}."
    )
    nonlinear: bool = option(f"{_OF_PB}solve the nonlinear equation.")
    pb_surface: str | None = option(
        f"{_OF_PB}border of solute and solvent; by default {PBSolvent.surface}.", choices=PB_SURFACES
    )


_FORMER = click.Command("binding", params=[click.Option([f"--{name}"], multiple=True) for name in ("pele", "mmpbsa")])


class Former(EachOnce):
    """Command that still takes --pele FOLDER and --mmpbsa FILE, which are `rescore` and `mmpbsa` now."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        within = click.Context(_FORMER, ignore_unknown_options=True, resilient_parsing=True)
        given, left, _ = _FORMER.make_parser(within).parse_args(list(args))
        for name, command, head in (("pele", rescore, []), ("mmpbsa", mmpbsa, ["-i"])):
            if given.get(name):
                if len(given[name]) > 1:
                    raise click.UsageError(f"--{name} is given twice; give it once")
                if parent is not None:
                    parent.invoked_subcommand = command.name  # by whose options errors are worded
                return command.make_context(command.name, [*head, *given[name], *left], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=Former)
@structures_argument
@click.option(
    "-o", "--output", type=OUTPUT, metavar="OUT",
    help="Write the energies of every frame: .h5, .csv or .jsonl of a trajectory, as they come; else .h5, .csv, .json.",
)  # fmt: skip
@ligand_option(multiple=True, more=" Several ligands are reported one by one.")
@options(Parts, Analysis, Files, Poisson)
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
    path: Path | tuple[Path, ...], output: Path | None, ligand: tuple[str, ...], parts: Parts, analysis: Analysis,
    files: Files, poisson: Poisson, cutoff: float | None, one_four: Literal["scale", "exclude"],
    models: Literal["one", "all"], trajectory: FrameOptions, variant: str, precision: str, device: str | None,
    read_atoms: ReadAtoms, constants: SolventModel, strict: bool, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Compute the binding energy of the complex in IN: its energy less the energies of receptor and ligand.

    Each has Born radii of its own: MM/GBSA over the frames of a trajectory (-t), over poses, or of one structure;
    docs/binding.md. --pb is MM/PBSA. The parts share the positions of the complex, unless they have trajectories of
    their own. Energies in kcal/mol. A run of MMPBSA.py is `pele-ocl mmpbsa`, one of PELE `pele-ocl rescore`.
    """
    several = Several.of(path, output, trajectory, as_json, {_FILES: any(keywords(files).values())})
    if poisson.pb and given_options("gb"):
        raise click.UsageError("--pb takes the place of --gb")
    asked: dict[str, Any] = {
        **keywords(parts), **keywords(analysis), **keywords(poisson), "cutoff": cutoff, "one_four": one_four,
        "models": models, "trajectory": trajectory.paths, "frames": trajectory.words, "select": trajectory.select,
        "topology": trajectory.topology, "image": trajectory.image, "variant": variant, "precision": precision,
        "device": device, "model": constants, "like": like_given(), "reading": read_atoms, "strict": strict,
    }  # fmt: skip
    if several is not None:
        several.report(binding_spec(ligand, **asked), "Binding energy")
        return
    path = only_one(path)
    with failing_as_record(path, as_json), ProgressLine("Binding energy") as progress:
        result = binding_of(
            path, ligand, **asked, **keywords(files), output=output, resume=trajectory.resume,
            **keywords(cluster_given()), attributes=call_facts(), progress=progress,
        )  # fmt: skip
    results = [result] if isinstance(result, BindingResult) else [*result]
    if as_json:
        say_result(result)
    else:
        say("\n\n".join(map(as_text, results)))
    if any(of.n_failed for of in results):
        raise click.exceptions.Exit(1)


STRONGEST = 10  # residues that are told
MOST_POSES = 60  # in the table


def as_text(found: BindingResult) -> str:
    """Make the whole report."""
    binding, energies = found.binding, found.energies
    if found.poses is not None:
        return _of_poses(found, found.poses)
    total = energies.statistics()[DELTA]["total"]
    lines = _head(found)
    lines += energy_lines(found.statistics, total.n)
    if found.grid_errors is not None:
        of = found.grid_errors
        lines += [f"Twice the spacing changes the Poisson-Boltzmann energy of the complex by {of['complex']:,.3f}, the "
                  f"difference by {of[DELTA]:,.3f} kcal/mol (first positions)"]  # fmt: skip
    lines += [finding.text for finding in found.imaged()]
    if isinstance(energies, BindingEnergies) and len(energies) > 1:
        lines += ["", _independence(total, len(energies), len(energies.errors))]
    if found.entropy is not None:
        lines += ["", *entropy_lines(found.entropy, total.mean)]
    if found.decomposition is not None:
        lines += ["", residue_lines(found.decomposition)]
    if found.scan is not None:
        lines += ["", alanine_lines(found.scan)]
    if found.comparison is not None:
        rows = [
            (name.replace("_", " "), f"{of.difference:,.3f}", f"{of.error:,.3f}", _chance(of.p_value))
            for name, of in found.comparison.items()
        ]
        heads = ("", "difference", "error", "p")
        lines += ["", "Difference from the other run, kcal/mol", table(heads, rows, "<>>>")]
    return "\n".join([*lines, "", _how(binding)])


def _head(found: BindingResult) -> list[str]:
    """Say what was computed, and by which physics."""
    parts = found.binding.parts
    sizes = f"receptor {len(parts.receptor):,} atoms, ligand {len(parts.ligand):,}: {found.ligand}"
    return [headline(found.molecule.source, found.binding.atoms), sizes, *_physics(found), ""]


def _how(binding: Binding) -> str:
    return f"{binding.variant}, {binding.precision}, on {binding.device}: in all {duration(elapsed())}"


def _of_poses(found: BindingResult, energies: BindingEnergies) -> str:
    """Make the report of poses: a table by binding energy, the terms that differ among systems, and reasons."""
    assert energies.rmsd is not None
    columns = found.differing_terms()
    order = sorted(range(len(energies)), key=lambda k: (k in energies.errors, energies.total[k], k))
    totals = [name for name in columns if name.lower() == "total"]
    names = [*totals, *(name for name in columns if name not in totals)]
    rows = [
        (str(k), *("" if k in energies.errors else _number(float(columns[name][k])) for name in names),
         "" if k in energies.errors else f"{energies.rmsd[k]:.2f}", one_line(energies.errors.get(k, "")))
        for k in order[:MOST_POSES]
    ]  # fmt: skip
    heads = ("pose", *(name.replace("_", " ") for name in names), "rmsd A", "")
    more = [f"and {len(order) - MOST_POSES:,} more, which a file has"] if len(order) > MOST_POSES else []
    failed = f"; {len(energies.errors):,} of {len(order):,} failed" if energies.errors else ""
    told = f"Energy of binding of each pose, kcal/mol, from 0 in the order of the file{failed}"
    lines = [told, table(heads, rows, ">" * (len(heads) - 1) + "<"), *more]
    return "\n".join([*_head(found), *lines, "", _how(found.binding)])


def _physics(found: BindingResult) -> list[str]:
    """Say the force field and the solvent."""
    binding = found.binding
    if binding.pb is None:
        return physics_lines(binding.model, binding.atoms, binding.names, binding.options.cutoff)
    facts = {**settings(binding.model, binding.atoms), "cutoff": binding.options.cutoff, "pb": binding.pb}
    return lines_of(facts, binding.names)


def energy_lines(statistics: Mapping[str, Mapping[str, Spread]], n: int) -> list[str]:
    """A table of all terms: means of all systems, and of the difference how they scatter."""
    scatter = ("sd", "sem", "sem_blocked") if n > 1 else ()
    heads = ("", *PARTS, DELTA, *(name.upper().replace("_BLOCKED", " blocks") for name in scatter))
    rows = []
    for term, of in statistics[DELTA].items():
        means = (statistics[name][term].mean for name in PARTS)
        numbers = [*means, of.mean, *(getattr(of, name) for name in scatter)]
        rows.append((term.replace("_", " "), *map(_number, numbers)))
    return [
        "Energy of binding, kcal/mol" + (f": means of {n:,} frames" if n > 1 else ""),
        table(heads, rows, "<" + ">" * (len(heads) - 1)),
    ]


def _independence(total: Spread, n: int, n_failed: int) -> str:
    failed = f"; {counted(n_failed, 'frame')} failed" if n_failed else ""
    return (
        f"SD of the population (of the sample {total.sd_sample:,.3f}); {counted(n, 'frame')} count as "
        f"{total.n / total.inefficiency:,.0f} independent ones{failed}"
    )


def entropy_lines(entropy: Entropy, mean: float) -> list[str]:
    """Both entropies, and what they make of the binding energy."""
    heads = ("", "-T dS", "error", "with the energy")
    rows = [
        (name, f"{value:,.3f}", f"{error:,.3f}", f"{mean + value:,.3f}")
        for name, value, error in (
            ("interaction entropy", entropy.interaction, entropy.interaction_error),
            ("C2", entropy.c2, entropy.c2_error),
        )
    ]
    lines = [
        f"Entropy at {entropy.temperature:g} K, kcal/mol; interaction energy scatters by {entropy.sigma:,.2f}; the",
        f"interaction entropy is {entropy.last_quarter:,.3f} on average over the last quarter of the frames",
        table(heads, rows, "<>>>"),
    ]
    return lines


def residue_lines(of: Decomposition) -> str:
    """Make a table of the strongest residues by group."""
    shares, names = of.per_residue[DELTA], of.names
    has_spread = of.n_frames > 1
    rows = [
        (
            names[k], *(f"{x:,.3f}" for x in shares.mean[k]), f"{shares.total[k]:,.3f}",
            *([f"{shares.sd_total[k]:,.3f}"] if has_spread else []),
        )
        for k in of.strongest(STRONGEST)
    ]  # fmt: skip
    heads = ("residue", *(group.replace("_", " ") for group in GROUPS), "total", *(["SD"] if has_spread else []))
    told = f"Strongest residues of {len(names):,}, kcal/mol (idecomp {of.idecomp})"
    return told + "\n" + table(heads, rows, "<" + ">" * (len(heads) - 1))


def alanine_lines(scan: AlanineScan) -> str:
    """Make a table of the change of the binding energy at each site."""
    scatter = ("sd", "sem_blocked") if scan.changes.shape[1] > 1 else ()
    rows = [
        (str(residue), *(_number(getattr(of, name)) for name in ("mean", *scatter)))
        for residue, of in zip(scan.residues, scan.statistics(), strict=True)
    ]
    heads = ("to alanine", "change", *(("SD", "SEM blocks") if scatter else ()))
    told = "Alanine scan: change of the binding energy, mutant less wild type (MMPBSA.py: the reverse), kcal/mol"
    return told + "\n" + table(heads, rows, "<" + ">" * (len(heads) - 1))


def _chance(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def _number(value: float) -> str:
    """Three digits, never -0.000; nothing for NaN."""
    return "" if value != value else f"{round(value, 3) + 0.0:,.3f}"
