"""`pele-ocl nonbond`: Lennard-Jones, Coulomb and GB energy with gradient over a pair list."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
from click.core import ParameterSource

from ..atoms import Atoms
from ..formats import check_target, same_file, write_table
from ..nonbond import VARIANTS, NonbondResult
from ..nonbond import nonbond as compute
from ..pairs import (
    Pairs,
    all_pairs,
    check_pairs_target,
    exclusions,
    internal_dielectrics,
    pairs_split,
    pairs_within,
    read_pairs,
    without_bonded,
    writing_pairs,
)
from ..solvent_model import SolventModel
from .command import EachOnce
from .options import (
    PATH,
    ReadAtoms,
    model_options,
    report_options,
    require_lennard_jones,
    run_options,
    structure_options,
)
from .progress import ProgressLine
from .report import choice_line, counted, duration, energy_lines, headline, label_columns, origin

DEFAULT_CUTOFF = 12.0
VARIANT_HELP = "How the gradient is added up: " + "; ".join(f"{name}, {v.summary}" for name, v in VARIANTS.items())


@click.command(cls=EachOnce)
@click.argument("path", metavar="IN", type=PATH)
@click.option("-o", "--output", type=PATH, metavar="OUT", help="Write energies and gradient: .h5, .csv or .json.")
@click.option("--cutoff", type=float, help=f"Pairs up to this distance, Angstrom; {DEFAULT_CUTOFF:g} by default.")
@click.option("--no-cutoff", is_flag=True, help="All pairs.")
@click.option("--split-cutoffs", is_flag=True, help="PELE's short list: 10 A, 15 A between charged groups.")
@click.option("--pairs", "pairs_file", type=PATH, metavar="FILE", help="Pair list to use: .h5, .npz or text.")
@click.option("--write-pairs", type=PATH, metavar="FILE", help="Write the pair list that was used: .h5, .npz or text.")
@click.option(
    "--solvent",
    type=click.Choice(["gb", "vacuum"]),
    default="gb",
    show_default=True,
    help="With or without the GB pair term.",
)
@click.option(
    "--one-four", type=click.Choice(["exclude", "scale"]), default="exclude", show_default=True,
    help="Leave 1-4 pairs out, as PELE does, or scale them as the force field says.",
)  # fmt: skip
@click.option(
    "--internal-dielectric", type=click.Choice(["uniform", "vdgbnp"]), default="uniform", show_default=True,
    help="One solute dielectric, or PELE's variable one, by residue, in its place.",
)  # fmt: skip
@click.option("--no-gradient", is_flag=True, help="Energies alone.")
@click.option(
    "--variant", type=click.Choice(["auto", *VARIANTS]), default="auto", show_default=True, help=VARIANT_HELP + "."
)
@run_options
@structure_options
@model_options
@report_options
def nonbond(
    path: Path, output: Path | None, cutoff: float | None, no_cutoff: bool, split_cutoffs: bool,
    pairs_file: Path | None, write_pairs: Path | None, solvent: Literal["gb", "vacuum"],
    one_four: Literal["exclude", "scale"], internal_dielectric: str, no_gradient: bool, variant: str, precision: str,
    device: str | None, read_atoms: ReadAtoms, constants: SolventModel, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Lennard-Jones, Coulomb and GB energy of the pairs of a list for the molecule in IN, and the gradient.

    IN is a .pdb or .cif file, also with .gz; a .pqr file has no Lennard-Jones parameters.
    Born radii are those of `pele-ocl solvent`, held fixed, as PELE holds them. Energies in kcal/mol, gradient in
    kcal/mol/Angstrom. Atoms one or two bonds apart are left out, from a list in a file, too; its 1-4 pairs are those
    three bonds apart and those it marks.
    """
    chosen = [cutoff is not None, no_cutoff, split_cutoffs, pairs_file is not None]
    if sum(chosen) > 1:
        raise click.UsageError("choose one of --cutoff, --no-cutoff, --split-cutoffs and --pairs")
    source = click.get_current_context().get_parameter_source("solute_dielectric")
    if internal_dielectric == "vdgbnp" and source is not ParameterSource.DEFAULT:
        raise click.UsageError("--internal-dielectric vdgbnp takes the place of --solute-dielectric; leave one out")
    _check_targets(output, write_pairs, [path] if pairs_file is None else [path, pairs_file])
    require_lennard_jones(path)
    atoms = read_atoms(path)
    start = time.perf_counter()
    pairs = _pairs(atoms, cutoff, no_cutoff, split_cutoffs, pairs_file, one_four)
    pair_seconds = time.perf_counter() - start
    if not len(pairs):
        whole = no_cutoff or split_cutoffs
        why = _why_none(None if whole else cutoff or DEFAULT_CUTOFF, pairs_file)
        click.echo(f"Note: there is no pair to compute, all energies are 0: {why}", err=True)
    inside = internal_dielectrics(atoms) if internal_dielectric == "vdgbnp" else None
    with ProgressLine("Nonbonded") as progress:
        result = compute(
            atoms, pairs, solvent=solvent, gradient=not no_gradient, variant=variant, precision=precision,
            device=device, model=constants, internal_dielectrics=inside, progress=progress,
        )  # fmt: skip
    if not result.exact:
        click.echo(f"Warning: {result.variant} loses updates to races by design; do not trust its gradient", err=True)
    seconds = {"pairs": pair_seconds} | dict(result.seconds)
    seconds["total"] += pair_seconds
    with nullcontext() if write_pairs is None else writing_pairs(write_pairs, pairs):
        if output is not None:
            _save(output, path, result, seconds, constants)
    click.echo(
        json.dumps(_as_json(result, seconds), allow_nan=False) if as_json else _as_text(path, result, seconds, verbose)
    )


def _check_targets(output: Path | None, write_pairs: Path | None, inputs: list[Path]) -> None:
    """Refuse what could not be written, or would be written over, before any work is done."""
    if output is not None and write_pairs is not None and same_file(output, write_pairs):
        raise click.UsageError("-o and --write-pairs name the same file; give one of them another name")
    if output is not None:
        check_target(output, inputs)
    if write_pairs is not None:
        check_pairs_target(write_pairs, inputs)


def _pairs(
    atoms: Atoms, cutoff: float | None, no_cutoff: bool, split_cutoffs: bool, pairs_file: Path | None,
    one_four: Literal["exclude", "scale"],
) -> Pairs:  # fmt: skip
    """The list that the options ask for."""
    if pairs_file is not None:
        return _listed(atoms, pairs_file, one_four)
    if no_cutoff:
        return all_pairs(atoms, one_four)
    if split_cutoffs:
        return pairs_split(atoms, one_four=one_four)
    return pairs_within(atoms, DEFAULT_CUTOFF if cutoff is None else cutoff, one_four)


def _why_none(cutoff: float | None, pairs_file: Path | None) -> str:
    """What left no pair."""
    if pairs_file is not None:
        return f"{pairs_file} lists none that bonds do not exclude"
    within = "" if cutoff is None else f" within {cutoff:g} A of each other"
    return f"bonds exclude every pair of atoms{within}"


def _listed(atoms: Atoms, pairs_file: Path, one_four: Literal["exclude", "scale"]) -> Pairs:
    """The list in a file, less what the bonds exclude, which a note tells."""
    listed = read_pairs(pairs_file, len(atoms), labels=atoms.labels)
    pairs = without_bonded(listed, atoms, one_four)
    left_out = len(listed) - len(pairs)
    if left_out:
        up_to = "two" if one_four == "scale" else "three"
        keep = "" if one_four == "scale" else "; --one-four scale keeps those three bonds apart"
        click.echo(
            f"Note: {pairs_file}: left out {counted(left_out, 'pair')} of atoms up to {up_to} bonds apart{keep}",
            err=True,
        )
    if pairs.one_four is not None and not pairs.one_four.any() and len(exclusions(atoms.bonds, len(atoms))[1]):
        click.echo(
            f"Note: {pairs_file}: holds none of the molecule's 1-4 pairs, so that --one-four scale adds nothing; write "
            "the list with --one-four scale", err=True,
        )  # fmt: skip
    return pairs


def _gradient_facts(result: NonbondResult) -> dict[str, float] | None:
    if result.gradient is None:
        return None
    lengths = np.linalg.norm(result.gradient, axis=1)
    return {
        "norm": float(np.linalg.norm(result.gradient)),
        "max": float(lengths.max(initial=0.0)),
        "net": result.net_force,
    }


def _as_json(result: NonbondResult, seconds: dict[str, float]) -> dict[str, Any]:
    return {
        "n_atoms": len(result.atoms),
        "n_pairs": result.n_pairs,
        "device": result.device,
        "variant": result.variant,
        "precision": result.precision,
        "energy": result.energy,
        "gradient": _gradient_facts(result),
        "seconds": seconds,
    }


def _as_text(path: Path, result: NonbondResult, seconds: dict[str, float], verbose: bool) -> str:
    facts = _gradient_facts(result)
    gradient = (
        ""
        if facts is None
        else f"norm {facts['norm']:,.3f}, at most {facts['max']:,.3f} an atom, net {facts['net']:.2g}"
    )
    lines = [
        headline(path, result.atoms),
        counted(result.n_pairs, "pair"),
        "",
        *energy_lines(result.energy),
        *([f"Gradient      {gradient} kcal/mol/A"] if gradient else []),
        "",
        f"{result.variant}, {result.precision}, on {result.device}: kernels {duration(seconds['kernel'])}, "
        f"in all {duration(seconds['total'])}",
    ]
    if verbose:
        steps = ", ".join(f"{name} {duration(value)}" for name, value in seconds.items())
        lines += [
            "",
            f"Times: {steps}",
            f"Kernel: cl/{VARIANTS[result.variant].file}, {VARIANTS[result.variant].summary}",
            choice_line(result.device),
        ]
    return "\n".join(lines)


def _save(
    output: Path, source: Path, result: NonbondResult, seconds: dict[str, float], constants: SolventModel
) -> None:
    """The gradient of every atom, the energies, and how they were made."""
    columns = label_columns(result.atoms)
    if result.gradient is not None:
        columns["gradient"] = result.gradient
    attributes = {
        **origin(source, result.atoms, result.device, result.variant, result.precision),
        "n_pairs": result.n_pairs,
        "exact": result.exact,
        **{f"seconds_{name}": value for name, value in seconds.items()},
        **{f"energy_{name}": value for name, value in result.energy.items()},
        **asdict(constants),
    }
    write_table(output, columns, {"gradient": "kcal/mol/angstrom"}, attributes, [source])
