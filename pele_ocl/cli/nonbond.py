"""`pele-ocl nonbond`: Lennard-Jones, Coulomb and GB energy with gradient over a pair list."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
from click.core import ParameterSource

from ..atoms import Atoms
from ..formats import require_table_suffix, write_table
from ..nonbond import VARIANTS, Nonbond, NonbondResult
from ..pairs import (
    Pairs,
    all_pairs,
    exclusions,
    internal_dielectrics,
    pairs_split,
    pairs_within,
    read_pairs,
    require_pairs_suffix,
    without_bonded,
    writing_pairs,
)
from ..solvent import Solvent, choose_variant
from ..solvent_model import SolventModel
from ..trajectories.listing import listing_anew
from ..trajectories.recording import require_record_suffix
from .clock import elapsed
from .command import INPUT, OUTPUT, EachOnce
from .energies import UNIT, model_columns, model_lines, models_as_json
from .frames import FrameOptions, FrameWork, report_frames, trajectory_options
from .molecule import Molecule, models_option, read_molecule
from .options import (
    ReadAtoms,
    model_options,
    report_options,
    require_lennard_jones,
    run_options,
    structure_options,
)
from .progress import ProgressLine
from .report import (
    choice_line,
    composition_as_json,
    counted,
    duration,
    ending,
    energy_lines,
    headline,
    label_columns,
    model_line,
    origin,
    radii_line,
    settings,
)
from .structures.several import each_structure, structures_argument
from .terminal import note, say, say_json

DEFAULT_CUTOFF = 12.0
VARIANT_HELP = "How the gradient is added up: " + "; ".join(f"{name}, {v.summary}" for name, v in VARIANTS.items())


@dataclass(frozen=True, eq=False)
class Computed:
    """The results of all models, the pair list of the last one, and the seconds of each step."""

    results: Sequence[NonbondResult]
    pairs: Pairs
    seconds: Mapping[str, float]

    @property
    def energies(self) -> list[dict[str, float]]:
        """The terms and the total of each model."""
        return [result.energy for result in self.results]


@click.command(cls=EachOnce)
@structures_argument
@click.option(
    "-o", "--output", type=OUTPUT, metavar="OUT",
    help="Write energies and gradient, or energies of every model: .h5, .csv or .json; or energies of every frame of a "
    "trajectory, as they come: .h5, .csv or .jsonl.",
)  # fmt: skip
@models_option
@trajectory_options
@click.option("--cutoff", type=float, help=f"Pairs up to this distance, Angstrom; {DEFAULT_CUTOFF:g} by default.")
@click.option("--no-cutoff", is_flag=True, help="All pairs.")
@click.option("--split-cutoffs", is_flag=True, help="PELE's short list: 10 A, 15 A between charged groups.")
@click.option("--pairs", "pairs_file", type=INPUT, metavar="FILE", help="Pair list to use: .h5, .npz or text.")
@click.option(
    "--write-pairs", type=OUTPUT, metavar="FILE", help="Write the pair list that was used: .h5, .npz or text."
)
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
@each_structure
def nonbond(
    path: Path, output: Path | None, models: str, over: FrameOptions, cutoff: float | None, no_cutoff: bool,
    split_cutoffs: bool, pairs_file: Path | None, write_pairs: Path | None, solvent: Literal["gb", "vacuum"],
    one_four: Literal["exclude", "scale"], internal_dielectric: str, no_gradient: bool, variant: str, precision: str,
    device: str | None, read_atoms: ReadAtoms, constants: SolventModel, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Lennard-Jones, Coulomb and GB energy of the pairs of a list for the molecule in IN, and the gradient.

    IN is a .pdb or .cif file, or an AMBER topology with -c, also with .gz; a .pqr file has no Lennard-Jones
    parameters. Born radii are those of `pele-ocl solvent`, held fixed, as PELE holds them. Energies in kcal/mol,
    gradient in kcal/mol/Angstrom. Atoms one or two bonds apart are left out, from a list in a file, too; its 1-4 pairs
    are those three bonds apart and those it marks. Of several models each has the pairs within the cutoff in itself.
    """
    chosen = [cutoff is not None, no_cutoff, split_cutoffs, pairs_file is not None]
    if sum(chosen) > 1:
        raise click.UsageError("choose one of --cutoff, --no-cutoff, --split-cutoffs and --pairs")
    source = click.get_current_context().get_parameter_source("solute_dielectric")
    if internal_dielectric == "vdgbnp" and source is not ParameterSource.DEFAULT:
        raise click.UsageError("--internal-dielectric vdgbnp takes the place of --solute-dielectric; leave one out")
    if write_pairs is not None and models == "all":
        raise click.UsageError("--write-pairs is for one model, as each has a list of its own; leave out --models all")
    over.require_alone(models_all=models == "all", write_pairs=write_pairs)
    if output is not None:
        (require_record_suffix if over.paths else require_table_suffix)(output)
    if write_pairs is not None:
        require_pairs_suffix(write_pairs)
    require_lennard_jones(path)
    molecule = read_molecule(path, read_atoms, models)
    atoms = molecule.atoms
    inside = internal_dielectrics(atoms) if internal_dielectric == "vdgbnp" else None
    listed = None if pairs_file is None else _listed(atoms, pairs_file, one_four)
    list_of = partial(_pairs, cutoff=cutoff, no_cutoff=no_cutoff, split_cutoffs=split_cutoffs, one_four=one_four)
    plan_of = partial(
        Nonbond, solvent=solvent, gradient=not (no_gradient or over.paths), variant=variant, precision=precision,
        device=device, model=constants, internal_dielectrics=inside,
    )  # fmt: skip
    if over.paths:
        report_frames(_frame_work(molecule, list_of, listed, plan_of, no_cutoff), over, output, as_json)
        return
    with ProgressLine("Nonbonded") as progress:
        if molecule.conformations is None or listed is not None or no_cutoff:
            computed = _computed_together(molecule, list_of if listed is None else lambda _: listed, plan_of, progress)
        else:
            computed = _computed_one_by_one(molecule, list_of, plan_of, progress)
    result = computed.results[0]
    if not any(of.n_pairs for of in computed.results):
        whole = no_cutoff or split_cutoffs
        why = _why_none(None if whole else cutoff or DEFAULT_CUTOFF, pairs_file)
        note(f"Note: there is no pair to compute, all energies are 0: {why}")
    if not result.exact:
        note(f"Warning: {result.variant} loses updates to races by design; do not trust its gradient")
    with nullcontext() if write_pairs is None else writing_pairs(write_pairs, computed.pairs):
        if output is not None:
            _save(output, molecule, computed, constants)
    if as_json:
        say_json(_as_json(molecule, computed, constants))
    else:
        say(_as_text(molecule, computed, constants, solvent == "gb", verbose))


def _computed_together(
    molecule: Molecule, list_of: Callable[[Atoms], Pairs], plan_of: Callable[..., Nonbond], progress: ProgressLine
) -> Computed:
    """The one model, or all models over one list."""
    start = time.perf_counter()
    pairs = list_of(molecule.atoms)
    seconds = {"pairs": time.perf_counter() - start}
    plan = plan_of(molecule.atoms, pairs)
    results = (
        [plan.evaluate(profile=True, progress=progress)]
        if molecule.conformations is None
        else list(plan.evaluate_batch(molecule.conformations, progress, profile=True))
    )
    return Computed(results, pairs, seconds | dict(results[0].seconds))


def _computed_one_by_one(
    molecule: Molecule, list_of: Callable[[Atoms], Pairs], plan_of: Callable[..., Nonbond], progress: ProgressLine
) -> Computed:
    """Each model over the pairs within reach in itself; the Born radii of all come from one batch."""
    assert molecule.conformations is not None
    results: list[NonbondResult] = []
    seconds: dict[str, float] = {}
    radii = None
    for k, model in enumerate(molecule.models()):
        start = time.perf_counter()
        pairs = list_of(model)
        taken = time.perf_counter() - start
        plan = plan_of(model, pairs)
        if plan.gb and radii is None:
            exact = choose_variant(plan.device.kind, len(plan.atoms))
            solvent = Solvent(
                molecule.atoms, variant=exact, precision=plan.precision, device=plan.device, model=plan.model
            )
            radii = solvent.evaluate_batch(molecule.conformations).born_radii
        results.append(plan.evaluate(born_radii=None if radii is None else radii[k], profile=True))
        for name, value in {"pairs": taken, **results[-1].seconds}.items():
            seconds[name] = seconds.get(name, 0.0) + value
        progress((k + 1) / len(molecule.numbers))
    return Computed(results, pairs, seconds)


def _frame_work(
    molecule: Molecule, list_of: Callable[[Atoms], Pairs], listed: Pairs | None, plan_of: Callable[..., Nonbond],
    no_cutoff: bool,
) -> FrameWork:  # fmt: skip
    """The work on frames: over one list for all of them, or over the pairs within reach in each."""
    plan = plan_of(molecule.atoms, list_of(molecule.atoms) if listed is None else listed)
    if listed is not None or no_cutoff:
        of = {"pairs": "of a file" if listed is not None else "all"}
        return FrameWork("Nonbonded", molecule.source, plan, of, chosen=molecule.chosen)
    words = list_of.keywords if isinstance(list_of, partial) else {}
    return FrameWork("Nonbonded", molecule.source, plan, words, listing_anew(plan, list_of, plan_of), molecule.chosen)


def _pairs(
    atoms: Atoms, cutoff: float | None, no_cutoff: bool, split_cutoffs: bool, one_four: Literal["exclude", "scale"]
) -> Pairs:
    """The list that the options ask for."""
    if no_cutoff:
        return all_pairs(atoms, one_four)
    if split_cutoffs:
        return pairs_split(atoms, one_four=one_four)
    return pairs_within(atoms, DEFAULT_CUTOFF if cutoff is None else cutoff, one_four)


def _why_none(cutoff: float | None, pairs_file: Path | None) -> str:
    """The reason why there is no pair."""
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
        note(f"Note: {pairs_file}: left out {counted(left_out, 'pair')} of atoms up to {up_to} bonds apart{keep}")
    if pairs.one_four is not None and not pairs.one_four.any() and len(exclusions(atoms.bonds, len(atoms))[1]):
        note(
            f"Note: {pairs_file}: holds none of the molecule's 1-4 pairs, so that --one-four scale adds nothing; write "
            "the list with --one-four scale"
        )
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


def _as_json(molecule: Molecule, computed: Computed, constants: SolventModel) -> dict[str, Any]:
    result = computed.results[0]
    facts = {
        "n_atoms": len(result.atoms),
        "composition": composition_as_json(result.atoms),
        "n_pairs": result.n_pairs,
        "device": result.device,
        "variant": result.variant,
        "precision": result.precision,
        "settings": settings(constants, molecule.atoms),
    }
    seconds = {**computed.seconds, "total": elapsed()}
    if molecule.numbers:
        models = models_as_json(molecule.numbers, computed.energies)
        for model, of in zip(models, computed.results, strict=True):
            model |= {"n_pairs": of.n_pairs, "gradient": _gradient_facts(of)}
        del facts["n_pairs"]
        return {**facts, "models": models, "seconds": seconds}
    return {**facts, "energy": result.energy, "gradient": _gradient_facts(result), "seconds": seconds}


def _as_text(molecule: Molecule, computed: Computed, constants: SolventModel, has_gb: bool, verbose: bool) -> str:
    result, seconds = computed.results[0], computed.seconds
    lines = [headline(molecule.source, molecule.atoms)]
    model = [radii_line(constants, molecule.atoms)] if has_gb else []
    lines += (
        [*model, *model_lines(molecule.numbers, computed.energies)]
        if molecule.numbers
        else [counted(result.n_pairs, "pair"), *model, "", *_energy_lines(result)]
    )
    lines += ["", ending(result, seconds["kernel"])]
    if verbose:
        steps = ", ".join(f"{name} {duration(value)}" for name, value in seconds.items())
        lines += [
            "",
            model_line(constants, molecule.atoms),
            f"Times: {steps}",
            f"Kernel: cl/{VARIANTS[result.variant].file}, {VARIANTS[result.variant].summary}",
            choice_line(result.device),
        ]
    return "\n".join(lines)


def _energy_lines(result: NonbondResult) -> Iterator[str]:
    """The energies, and the gradient in figures if there is one."""
    yield from energy_lines(result.energy)
    facts = _gradient_facts(result)
    if facts is not None:
        longest = f"at most {facts['max']:,.3f} an atom, net {facts['net']:.2g} {UNIT}/A"
        yield f"Gradient      norm {facts['norm']:,.3f}, {longest}"


def _save(output: Path, molecule: Molecule, computed: Computed, constants: SolventModel) -> None:
    """The gradient of every atom, or the energies of every model, and how they were made."""
    result = computed.results[0]
    attributes: dict[str, object] = {
        **origin(molecule.source, molecule.atoms, result),
        "exact": result.exact,
        **{f"seconds_{name}": value for name, value in computed.seconds.items()},
        **settings(constants, molecule.atoms),
    }
    if molecule.numbers:
        columns, units = model_columns(molecule.numbers, computed.energies)
        columns["n_pairs"] = np.array([of.n_pairs for of in computed.results])
    else:
        columns, units = label_columns(result.atoms), {"gradient": f"{UNIT}/angstrom"}
        if result.gradient is not None:
            columns["gradient"] = result.gradient
        attributes["n_pairs"] = result.n_pairs
        attributes |= {f"energy_{name}": value for name, value in result.energy.items()}
    write_table(output, columns, units, attributes)
