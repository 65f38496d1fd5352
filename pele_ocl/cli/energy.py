"""`pele-ocl energy`: the whole implicit-solvent energy of a structure, with its full gradient."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from ..atoms import Floats
from ..energy import TERMS, VARIANTS, Energy, EnergyBatch, EnergyResult
from ..formats import check_target, read_conformations, write_table
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
from .tables import table

VARIANT_HELP = "How pairs are summed: " + "; ".join(f"{name}, {v.summary}" for name, v in VARIANTS.items())

HEADS = *(term.replace("_", " ") for term in TERMS), "total"


@click.command(cls=EachOnce)
@click.argument("path", metavar="IN", type=PATH)
@click.option(
    "-o", "--output", type=PATH, metavar="OUT",
    help="Write energies and gradient of every atom, or of every model: .h5, .csv or .json.",
)  # fmt: skip
@click.option("--no-gradient", is_flag=True, help="Energies alone.")
@click.option("--fixed-radii", is_flag=True, help="Gradient at Born radii that stay as they are, as PELE has it.")
@click.option("--cutoff", type=float, help="Distance at which pairs end, Angstrom; all pairs by default.")
@click.option(
    "--one-four", type=click.Choice(["scale", "exclude"]), default="scale", show_default=True,
    help="Scale 1-4 pairs as the force field says, or leave them out.",
)  # fmt: skip
@click.option(
    "--models", type=click.Choice(["one", "all"]), default="one", show_default=True,
    help="All models of a PDB file as conformations of one molecule.",
)  # fmt: skip
@click.option(
    "--variant", type=click.Choice(["auto", *VARIANTS]), default="auto", show_default=True, help=VARIANT_HELP + "."
)
@run_options
@structure_options
@model_options
@click.option("--per-residue", is_flag=True, help="Report the energies of every residue too.")
@report_options
def energy(
    path: Path, output: Path | None, no_gradient: bool, fixed_radii: bool, cutoff: float | None,
    one_four: Literal["scale", "exclude"], models: str, variant: str, precision: str, device: str | None,
    read_atoms: ReadAtoms, constants: SolventModel, per_residue: bool, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Lennard-Jones, Coulomb, GB and nonpolar energy of the molecule in IN, and the full gradient.

    IN is a .pdb or .cif file, also with .gz; a .pqr file has no Lennard-Jones parameters. Born radii follow the atoms
    in the gradient. Energies in kcal/mol, gradient in kcal/mol/Angstrom. Atoms one or two bonds apart have no
    Lennard-Jones and Coulomb energy; the GB energy takes all pairs.
    """
    if models == "all" and per_residue:
        raise click.UsageError("--per-residue is for one model; leave out --models all")
    if no_gradient and fixed_radii:
        raise click.UsageError("--fixed-radii is about the gradient; choose one of --no-gradient and --fixed-radii")
    if output is not None:
        check_target(output, [path])
    require_lennard_jones(path)
    found = read_conformations(path) if models == "all" else None
    # The first of all models is asked for by its number, so that no note says that the others were not read.
    atoms = read_atoms(path) if found is None else read_atoms(path, found[0][0])
    plan = Energy(
        atoms, gradient=not no_gradient, fixed_radii=fixed_radii, one_four=one_four, cutoff=cutoff,
        per_atom=models == "one" and (per_residue or output is not None), precision=precision, variant=variant,
        device=device, model=constants,
    )  # fmt: skip
    if found is not None:
        numbers, conformations = found
        with ProgressLine("Energy") as progress:
            batch = plan.evaluate_batch(conformations, progress, profile=True)
        if output is not None:
            _save_models(output, path, batch, numbers, constants)
        click.echo(
            json.dumps(_models_as_json(batch, numbers), allow_nan=False)
            if as_json
            else _models_as_text(path, batch, numbers)
        )
        return
    result = plan.evaluate(profile=True)
    if output is not None:
        _save(output, path, result, constants)
    click.echo(
        json.dumps(_as_json(result, per_residue), allow_nan=False)
        if as_json
        else _as_text(path, result, per_residue, verbose)
    )


def _norms(gradient: Floats | None) -> dict[str, float] | None:
    if gradient is None:
        return None
    return {
        "norm": float(np.linalg.norm(gradient)),
        "max": float(np.linalg.norm(gradient, axis=1).max()),
        "net": float(np.linalg.norm(gradient.sum(axis=0))),
    }


def _facts(result: EnergyResult | EnergyBatch) -> dict[str, Any]:
    return {
        "n_atoms": len(result.atoms),
        "device": result.device,
        "variant": result.variant,
        "precision": result.precision,
    }


def _residues(result: EnergyResult) -> list[tuple[str, list[float]]]:
    """Each residue's name with its terms and their sum."""
    by_residue = result.per_residue()
    rows = np.column_stack([by_residue.values, by_residue.total]).tolist()
    return list(zip(map(str, by_residue.residues), rows, strict=True))


def _as_json(result: EnergyResult, per_residue: bool) -> dict[str, Any]:
    radii = result.born_radii
    report = {
        **_facts(result),
        "born_radius": {"min": float(radii.min()), "max": float(radii.max()), "mean": float(radii.mean())},
        "energy": result.energy,
        "gradient": _norms(result.gradient),
        "seconds": dict(result.seconds),
    }
    if per_residue:
        names = *TERMS, "total"
        report["residues"] = [
            {"residue": name, **dict(zip(names, values, strict=True))} for name, values in _residues(result)
        ]
    return report


def _ending(result: EnergyResult | EnergyBatch) -> str:
    seconds = result.seconds
    return (
        f"{result.variant}, {result.precision}, on {result.device}: kernels {duration(seconds['kernel'])}, "
        f"in all {duration(seconds['total'])}"
    )


def _as_text(path: Path, result: EnergyResult, per_residue: bool, verbose: bool) -> str:
    norms = _norms(result.gradient)
    lines = [headline(path, result.atoms), "", *energy_lines(result.energy)]
    if norms is not None:
        longest = f"at most {norms['max']:,.3f} an atom, net {norms['net']:.2g} kcal/mol/A"
        lines.append(f"Gradient      norm {norms['norm']:,.3f}, {longest}")
    lines += ["", _ending(result)]
    if verbose:
        model = ", ".join(f"{name} {value:g}" for name, value in asdict(result.model).items())
        variant = VARIANTS[result.variant]
        kernel = f"Kernel: cl/{variant.file}, {variant.summary}"
        lines += ["", f"Solvent model: {model}", kernel, choice_line(result.device)]
    if per_residue:
        rows = [(name, *(f"{value:.3f}" for value in values)) for name, values in _residues(result)]
        lines += ["", "Energy of residues, kcal/mol", table(("residue", *HEADS), rows, "<>>>>>>")]
    return "\n".join(lines)


def _models_as_json(batch: EnergyBatch, numbers: list[int]) -> dict[str, Any]:
    rows = zip(numbers, batch.energies.tolist(), batch.total.tolist(), strict=True)
    return {
        **_facts(batch),
        "models": [
            {"model": number, **dict(zip(TERMS, energies, strict=True)), "total": total}
            for number, energies, total in rows
        ],
        "seconds": dict(batch.seconds),
    }


def _models_as_text(path: Path, batch: EnergyBatch, numbers: list[int]) -> str:
    values = np.column_stack([batch.energies, batch.total]).tolist()
    rows = [(str(number), *(f"{v:.3f}" for v in row)) for number, row in zip(numbers, values, strict=True)]
    count = counted(len(numbers), "model")
    energies = ["Energy of models, kcal/mol", table(("model", *HEADS), rows, ">" * 7)]
    return "\n".join([headline(path, batch.atoms), count, "", *energies, "", _ending(batch)])


def _attributes(source: Path, result: EnergyResult | EnergyBatch, constants: SolventModel) -> Mapping[str, object]:
    return {
        **origin(source, result.atoms, result.device, result.variant, result.precision),
        **{f"seconds_{name}": value for name, value in result.seconds.items()},
        **asdict(constants),
    }


def _save(output: Path, source: Path, result: EnergyResult, constants: SolventModel) -> None:
    """Every atom's energies, Born radius and gradient, and how they were made."""
    assert result.per_atom is not None
    columns = label_columns(result.atoms) | {"born_radii": result.born_radii}
    columns |= result.per_atom.columns()
    if result.gradient is not None:
        columns["gradient"] = result.gradient
    units = dict.fromkeys(result.energy, "kcal/mol") | {"born_radii": "angstrom", "gradient": "kcal/mol/angstrom"}
    attributes = {
        **_attributes(source, result, constants),
        **{f"energy_{name}": value for name, value in result.energy.items()},
    }
    write_table(output, columns, units, attributes, [source])


def _save_models(output: Path, source: Path, batch: EnergyBatch, numbers: list[int], constants: SolventModel) -> None:
    """A row for every model: its energies, and in HDF5 its Born radii and gradient as further dimensions."""
    columns: dict[str, Any] = {"model": np.array(numbers), **dict(zip(TERMS, batch.energies.T, strict=True))}
    columns["total"] = batch.total
    units = dict.fromkeys((*TERMS, "total"), "kcal/mol")
    if output.suffix.lower() == ".h5":
        columns["born_radii"] = batch.born_radii
        units["born_radii"] = "angstrom"
        if batch.gradients is not None:
            columns["gradient"] = batch.gradients
            units["gradient"] = "kcal/mol/angstrom"
    write_table(output, columns, units, _attributes(source, batch, constants), [source])
