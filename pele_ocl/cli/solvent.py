"""`pele-ocl solvent`: Born radii and implicit-solvent energy of a structure."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ..atoms import Atoms
from ..formats import check_target, write_table
from ..solvent import VARIANTS, SolventModel, SolventResult
from ..solvent import solvent as compute
from .command import EachOnce
from .options import PATH, ReadAtoms, model_options, report_options, run_options, structure_options
from .progress import ProgressLine
from .report import choice_line, duration, energy_lines, headline, label_columns, origin
from .tables import table

VARIANT_HELP = "How the Born radii are computed: " + "; ".join(f"{name}, {v.summary}" for name, v in VARIANTS.items())


@click.command(cls=EachOnce)
@click.argument("path", metavar="IN", type=PATH)
@click.option(
    "-o", "--output", type=PATH, metavar="OUT", help="Write radii and energies of every atom: .h5, .csv or .json."
)
@click.option(
    "--variant", type=click.Choice(["auto", *VARIANTS]), default="auto", show_default=True, help=VARIANT_HELP + "."
)
@run_options
@structure_options
@model_options
@click.option("--per-residue", is_flag=True, help="Report the energies of every residue too.")
@report_options
def solvent(
    path: Path, output: Path | None, variant: str, precision: str, device: str | None, read_atoms: ReadAtoms,
    constants: SolventModel, per_residue: bool, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Born radii and implicit-solvent energy of the molecule in IN, a .pdb, .cif or .pqr file, also with .gz.

    OBC Generalized Born with the ACE surface term, radii in Angstrom, energies in kcal/mol. A bare PDB file with all
    hydrogens gets Amber99SB parameters; --templates, --obc and --pele-data bring PELE's.
    """
    if output is not None:
        check_target(output, [path])
    atoms = read_atoms(path)
    with ProgressLine("Solvent") as progress:
        result = compute(atoms, variant=variant, precision=precision, device=device, model=constants, progress=progress)
    if output is not None:
        _save(output, path, result)
    if as_json:
        click.echo(json.dumps(_as_json(result, per_residue), allow_nan=False))
    else:
        click.echo(_as_text(path, result, per_residue, verbose))


def _as_json(result: SolventResult, per_residue: bool) -> dict[str, Any]:
    report: dict[str, Any] = {
        "n_atoms": len(result.atoms),
        "device": result.device,
        "variant": result.variant,
        "precision": result.precision,
        "born_radius": _spread(result),
        "energy": result.energy,
        "seconds": {"kernel": result.seconds["kernel"], "total": result.seconds["total"]},
    }
    if per_residue:
        terms = result.per_residue()
        names = ("gb_self", "gb_pair", "nonpolar", "total")
        columns = [getattr(terms, name).tolist() for name in names]
        report["residues"] = [
            {"residue": residue, **dict(zip(names, values, strict=True))}
            for residue, *values in zip(_residues(result.atoms), *columns, strict=True)
        ]
    return report


def _spread(result: SolventResult) -> dict[str, float]:
    radii = result.born_radii
    return {"min": float(radii.min()), "max": float(radii.max()), "mean": float(radii.mean())}


def _residues(atoms: Atoms) -> list[str]:
    assert atoms.labels is not None
    return [atoms.labels.residue(int(i)) for i in atoms.labels.residue_starts]


def _as_text(path: Path, result: SolventResult, per_residue: bool, verbose: bool) -> str:
    spread = _spread(result)
    lines = [
        headline(path, result.atoms),
        "",
        f"Born radii    {spread['min']:.3f} to {spread['max']:.3f} A, mean {spread['mean']:.3f} A",
        *energy_lines(result.energy),
        "",
        f"{result.variant}, {result.precision}, on {result.device}: "
        f"kernels {duration(result.seconds['kernel'])}, in all {duration(result.seconds['total'])}",
    ]
    if verbose:
        lines += ["", *_details(result)]
    if per_residue:
        lines += ["", _residue_table(result)]
    return "\n".join(lines)


def _details(result: SolventResult) -> list[str]:
    model = {name: value for name, value in asdict(result.model).items()}
    return [
        "Solvent model: " + ", ".join(f"{name} {value:g}" for name, value in model.items()),
        f"Kernel time: Born radii {duration(result.seconds['born'])}, energy {duration(result.seconds['energy'])}",
        f"Kernel: cl/{VARIANTS[result.variant].file}, {VARIANTS[result.variant].summary}",
        choice_line(result.device),
    ]


def _residue_table(result: SolventResult) -> str:
    terms = result.per_residue()
    columns = terms.gb_self, terms.gb_pair, terms.nonpolar, terms.total
    rows = [
        (residue, *(f"{value:.3f}" for value in values))
        for residue, *values in zip(_residues(result.atoms), *columns, strict=True)
    ]
    heads = "residue", "gb self", "gb pair", "nonpolar", "total"
    return "Energy of residues, kcal/mol\n" + table(heads, rows, "<>>>>")


def _save(output: Path, source: Path, result: SolventResult) -> None:
    """Every atom's radius and energies, and how they were made."""
    terms = result.per_atom
    columns = label_columns(result.atoms) | {
        "born_radii": result.born_radii,
        "psi": result.psi,
        "gb_self": terms.gb_self,
        "gb_pair": terms.gb_pair,
        "nonpolar": terms.nonpolar,
        "total": terms.total,
    }
    units = {"born_radii": "angstrom", "psi": "1"} | dict.fromkeys(result.energy, "kcal/mol")
    attributes = {
        **origin(source, result.atoms, result.device, result.variant, result.precision),
        "kernel_seconds": result.seconds["kernel"],
        **{f"energy_{name}": value for name, value in result.energy.items()},
        **asdict(result.model),
    }
    write_table(output, columns, units, attributes, [source])
