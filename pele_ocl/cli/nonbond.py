"""`pele-ocl nonbond`: Lennard-Jones, Coulomb and GB energy with gradient over a pair list."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Literal

import click
import numpy as np
from click.core import ParameterSource

from ..common.inputfile import read_file
from ..formats import require_table_suffix, write_table
from ..gb_models.solvent_model import SolventModel
from ..jobs.facts import gradient_facts, numbers_in
from ..jobs.reading import molecule_of
from ..nonbond import VARIANTS, NonbondResult
from ..nonbond.spec import DEFAULT_CUTOFF, GB_OF_BONDED, NonbondEvaluation, NonbondSpec
from ..pairs import require_pairs_suffix, writing_pairs
from ..trajectories.recording import require_record_suffix
from .cluster import cluster_options
from .command import INPUT, OUTPUT, EachOnce
from .frames import FrameOptions, FrameWork, report_frames, trajectory_options
from .json_lines import exit_for_models, failing_as_record, say_record
from .options import (
    VACUUM,
    ReadAtoms,
    model_options,
    models_option,
    report_options,
    require_lennard_jones,
    run_options,
    strict_option,
    structure_options,
)
from .physics import Facts, lines_of
from .plan_options import cutoff_option, no_gradient_option, results_option
from .progress import ProgressLine
from .report import (
    choice_line,
    counted,
    duration,
    ending,
    energy_lines,
    headline,
    label_columns,
    model_line,
    origin,
)
from .several import Several, only_one, structures_argument
from .tables import UNIT, Model, model_columns, model_lines
from .terminal import say

_WRITE_PAIRS = "--write-pairs is for one structure, as each has a list of its own"
VARIANT_HELP = "How the gradient is added up: " + "; ".join(f"{name}, {v.summary}" for name, v in VARIANTS.items())


@click.command(cls=EachOnce)
@structures_argument
@results_option("energies and gradient, or energies of every model")
@models_option
@trajectory_options
@cluster_options
@cutoff_option(f"{DEFAULT_CUTOFF:g} by default")
@click.option("--no-cutoff", is_flag=True, help="Take all pairs.")
@click.option(
    "--split-cutoffs",
    is_flag=True,
    help="Use the distances of PELE's short list: 10 A, or 15 A between charged groups.",
)
@click.option("--pairs", "pairs_file", type=INPUT, metavar="FILE", help="Pair list to use: .h5, .npz or text.")
@click.option(
    "--write-pairs", type=OUTPUT, metavar="FILE", help="Write the pair list that was used: .h5, .npz or text."
)
@click.option(
    "--solvent",
    type=click.Choice(["gb", VACUUM]),
    default="gb",
    show_default=True,
    help="Compute the GB pair term, or leave it out; vacuum is --gb none.",
)
@click.option(
    "--one-four", type=click.Choice(["exclude", "scale"]), default="exclude", show_default=True,
    help="Leave 1-4 pairs out, as PELE does, or scale them as the force field says.",
)  # fmt: skip
@click.option(
    "--internal-dielectric", type=click.Choice(["uniform", "vdgbnp"]), default="uniform", show_default=True,
    help="Take one solute dielectric, or PELE's, which varies by residue.",
)  # fmt: skip
@no_gradient_option
@click.option(
    "--variant", type=click.Choice(["auto", *VARIANTS]), default="auto", show_default=True, help=VARIANT_HELP + "."
)
@run_options
@structure_options
@model_options
@strict_option
@report_options
def nonbond(
    path: Path | tuple[Path, ...], output: Path | None, models: str, trajectory: FrameOptions, cutoff: float | None,
    no_cutoff: bool, split_cutoffs: bool, pairs_file: Path | None, write_pairs: Path | None,
    one_four: Literal["exclude", "scale"], internal_dielectric: str, no_gradient: bool, variant: str, precision: str,
    device: str | None, read_atoms: ReadAtoms, constants: SolventModel, strict: bool, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Compute Lennard-Jones, Coulomb and GB energy of the molecule in IN over a pair list, and the gradient.

    IN is a .pdb or .cif file, or an AMBER topology with -c, also with .gz; a .pqr file has no Lennard-Jones parameters.
    Born radii are computed as by `pele-ocl solvent` and held fixed, as PELE holds them. Energies in kcal/mol, gradient
    in kcal/mol/Angstrom. Atoms one or two bonds apart are left out, from a list in a file, too. Its 1-4 pairs are atoms
    three bonds apart and pairs that it marks. Each of several models has its own pairs within the cutoff.
    """
    _require_one(cutoff, no_cutoff, split_cutoffs, pairs_file)
    several = Several.of(path, output, trajectory, as_json, {_WRITE_PAIRS: write_pairs})
    _require_fitting(internal_dielectric, write_pairs, models, trajectory)
    spec = NonbondSpec(
        reading=read_atoms, models="all" if models == "all" else "one",
        pairs=pairs_file or ("all" if no_cutoff else "split" if split_cutoffs else "cutoff"), cutoff=cutoff,
        solvent="vacuum" if constants.gb_model.vacuum else "gb", one_four=one_four,
        variable_dielectric=internal_dielectric == "vdgbnp",
        gradient=not (no_gradient or trajectory.paths), variant=variant, precision=precision, device=device,
        model=constants, strict=strict,
    )  # fmt: skip
    if several is not None:
        several.report(spec, "Nonbonded")
        return
    path = only_one(path)
    if output is not None:
        (require_record_suffix if trajectory.paths else require_table_suffix)(output)
    if write_pairs is not None:
        require_pairs_suffix(write_pairs)
    require_lennard_jones(path)
    if trajectory.paths:
        report_frames(partial(frame_work, spec, path), path, trajectory, output, as_json)
        return
    with failing_as_record(path, as_json), ProgressLine("Nonbonded") as progress:
        found = spec.evaluate(read_file(path), progress)
    facts = spec.settings_of(found.molecule.atoms)
    pairs, labels = found.pairs, found.molecule.atoms.labels
    with nullcontext() if write_pairs is None or pairs is None else writing_pairs(write_pairs, pairs, labels):
        if output is not None:
            save(output, found, {**facts, **numbers_in(spec.facts_of_molecule(found.first))})
    if as_json:
        say_record(found.molecule.source, spec.as_json(found))
    else:
        say(text_of(found, facts, verbose))
    exit_for_models(found.failed, found.molecule.numbers)


def _require_one(cutoff: float | None, no_cutoff: bool, split_cutoffs: bool, pairs_file: Path | None) -> None:
    """Raise where more than one pair list is asked for."""
    if sum([cutoff is not None, no_cutoff, split_cutoffs, pairs_file is not None]) > 1:
        raise click.UsageError("choose one of --cutoff, --no-cutoff, --split-cutoffs and --pairs")


def _require_fitting(internal_dielectric: str, write_pairs: Path | None, models: str, trajectory: FrameOptions) -> None:
    """Raise for options that leave no room for each other."""
    source = click.get_current_context().get_parameter_source("solute_dielectric")
    if internal_dielectric == "vdgbnp" and source is not ParameterSource.DEFAULT:
        raise click.UsageError("--internal-dielectric vdgbnp takes the place of --solute-dielectric; leave one out")
    if write_pairs is not None and models == "all":
        raise click.UsageError("--write-pairs is for one model, as each has a list of its own; leave out --models all")
    trajectory.require_alone(models_all=models == "all", write_pairs=write_pairs)


def text_of(computed: NonbondEvaluation, facts: Facts, verbose: bool) -> str:
    """Make the table for people."""
    molecule, result, seconds = computed.molecule, computed.first, computed.seconds
    lines = [headline(molecule.source, molecule.atoms)]
    lines += [*lines_of(facts), *_pairs_lines(facts)]
    lines += (
        model_lines(_energies(computed))
        if molecule.numbers
        else [counted(result.n_pairs, "pair"), "", *_energy_lines(result)]
    )
    lines += ["", ending(result, seconds["kernel"])]
    if verbose:
        steps = ", ".join(f"{name} {duration(value)}" for name, value in seconds.items())
        lines += [
            "",
            model_line(facts),
            f"Times: {steps}",
            f"Kernel: cl/{VARIANTS[result.variant].file}, {VARIANTS[result.variant].summary}",
            choice_line(result.device),
        ]
    return "\n".join(lines)


def _pairs_lines(facts: Facts) -> list[str]:
    """Say what pairs bonds exclude, and what the total lacks."""
    four = "left out" if facts["one_four"] == "exclude" else "scaled"
    names = {"bonded": "bonded terms", "gb_self": "GB self energy", "nonpolar": "nonpolar term"}
    lacks = ", ".join(names[name] for name in facts["total_lacks"] if name in names)
    lines = [f"Exclusions    atoms one or two bonds apart; 1-4 pairs are {four}", f"Total lacks   {lacks}"]
    up_to = "three" if facts["one_four"] == "exclude" else "two"
    of_bonded = f"GB lacks      pairs up to {up_to} bonds apart, which whole energies have"
    return [*lines, of_bonded] if GB_OF_BONDED in facts["total_lacks"] else lines


def save(output: Path, computed: NonbondEvaluation, facts: Facts) -> None:
    """Write the gradient of every atom, or the energies of every model, and how they were made."""
    molecule, result = computed.molecule, computed.first
    attributes: dict[str, object] = {
        **origin(molecule, molecule.atoms, result),
        "exact": result.exact,
        **{f"seconds_{name}": value for name, value in computed.seconds.items()},
        **facts,
    }
    if molecule.numbers:
        columns, units = model_columns(_energies(computed))
        columns["n_pairs"] = np.array([0 if of is None else of.n_pairs for of in computed.results])
    else:
        columns, units = label_columns(result.atoms), {"gradient": f"{UNIT}/angstrom"}
        if result.gradient is not None:
            columns["gradient"] = result.gradient
        attributes["n_pairs"] = result.n_pairs
        attributes |= {f"energy_{name}": value for name, value in result.energy.items()}
    write_table(output, columns, units, attributes)


def _energies(computed: NonbondEvaluation) -> list[Model]:
    """Give the terms and the total of each model, or why it failed."""
    return [(number, of if isinstance(of, str) else of.energy) for number, of in computed.rows()]


def _energy_lines(result: NonbondResult) -> Iterator[str]:
    """Give the energies, and the gradient in figures if there is one."""
    yield from energy_lines(result.energy)
    facts = gradient_facts(result.gradient)
    if facts is not None:
        longest = f"at most {facts['max']:,.3f} an atom, net {facts['net']:.2g} {UNIT}/A"
        yield f"Gradient      norm {facts['norm']:,.3f}, {longest}"


def frame_work(spec: NonbondSpec, path: Path) -> FrameWork:
    """Make the work on frames: over one list for all of them, or over the pairs within reach in each."""
    molecule = molecule_of(read_file(path), spec.reading, spec.models)
    plan = spec.plan(molecule.atoms, spec.pairs_of(molecule.atoms))
    facts = spec.facts_of_molecule(plan)
    if isinstance(spec.pairs, Path) or spec.pairs == "all":
        of = {"pairs": "of a file" if isinstance(spec.pairs, Path) else "all"}
        return FrameWork("Nonbonded", molecule.source, plan, facts, of, chosen=molecule.chosen, strict=spec.strict)
    words = {
        "cutoff": spec.cutoff, "no_cutoff": False, "split_cutoffs": spec.pairs == "split", "one_four": spec.one_four,
    }  # fmt: skip
    return FrameWork("Nonbonded", molecule.source, plan, facts, words, chosen=molecule.chosen, strict=spec.strict)
