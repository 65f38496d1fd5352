"""`pele-ocl ions`: ions placed one by one in the electrostatic potential of a molecule."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from ..atoms import Atoms
from ..common.errors import FormatError
from ..common.inputfile import InputFile, read_file
from ..common.writing import replacing
from ..formats import is_pdb, require_map_suffix, write_map
from ..formats.pdb_writing import Ion, write_pdb_with_ions
from ..ions import SPECIES, IonsResult, Requests, place_ions
from ..jobs.checks import Checks
from ..jobs.facts import notes_of
from ..potmap import VARIANTS
from .clock import elapsed
from .command import INPUT, OUTPUT, EachOnce
from .json_lines import failing_as_record, say_record
from .options import ReadAtoms, report_options, run_options, spacing_options, structure_options
from .physics import Facts, medium_facts, medium_lines
from .progress import ProgressLine
from .report import composition_as_json, counted, duration, headline, origin
from .tables import table
from .terminal import note, say

DEFAULT_IONS: Requests = {"NA": "auto", "CL": "auto"}
FITTING = [name for name, variant in VARIANTS.items() if variant.method == "direct"]


def _requests(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> Requests:
    """NAME:COUNT of every --ion, in their order."""
    requests: dict[str, int | Literal["auto"]] = {}
    for text in given:
        name, _, count = text.partition(":")
        if not name or not re.fullmatch(r"[0-9]{1,9}|auto", count):
            raise click.BadParameter(f"{text!r} is not NAME:COUNT or NAME:auto, as NA:12 is")
        if name in requests:
            raise click.BadParameter(f"{name} is given twice; add the counts up")
        requests[name] = "auto" if count == "auto" else int(count)
    return requests


@click.command(cls=EachOnce)
@click.argument("path", metavar="IN", type=INPUT)
@click.option("-o", "--output", type=OUTPUT, metavar="OUT", required=True, help="Write molecule and ions: .pdb.")
@click.option(
    "--ion", "requests", metavar="NAME:COUNT", multiple=True, callback=_requests,
    help="Number of an ion; NAME:auto for as many as the next two options say. By default NA:auto and CL:auto. "
    f"Names: {', '.join(SPECIES)}.",
)  # fmt: skip
@click.option("--neutralize", is_flag=True, help="Add ions until the net charge is 0.")
@click.option(
    "--concentration",
    type=float,
    metavar="C",
    help="Concentration of salt in the free volume, mol/L; also neutralizes. With a single NAME:auto it is the ion's.",
)
@click.option(
    "--solute-distance",
    type=float,
    default=6.0,
    show_default=True,
    help="Smallest distance of an ion from an atom, Angstrom.",
)
@click.option(
    "--ion-distance", type=float, default=10.0, show_default=True, help="Smallest distance of two ions, Angstrom."
)
@spacing_options
@click.option("--dielectric", type=float, default=1.0, show_default=True, help="Relative permittivity.")
@click.option("--map", "map_file", type=OUTPUT, metavar="MAP", help="Write the potential with all ions: .dx, .mrc, ...")
@click.option(
    "--variant",
    type=click.Choice(["auto", *FITTING]),
    default="auto",
    show_default=True,
    help="How the map is computed, as in `potmap`.",
)
@run_options
@structure_options
@report_options
def ions(
    path: Path, output: Path, requests: Requests, neutralize: bool, concentration: float | None,
    solute_distance: float, ion_distance: float, spacing: float, padding: float, dielectric: float,
    map_file: Path | None, variant: str, precision: str, device: str | None, read_atoms: ReadAtoms, as_json: bool,
    verbose: bool,
) -> None:  # fmt: skip
    """Put ions around the molecule in IN.

    IN is a .pdb, .cif or .pqr file or an AMBER topology with -c, also with .gz. Ions are placed one by one, as cionize
    does. Each goes to its lowest energy in the potential of the molecule and the ions before it. Species take turns in
    the order given. Ions in IN stay, as atoms of the molecule. Energies in kcal/mol.
    """
    if neutralize and concentration is not None:
        raise click.UsageError("choose one of --neutralize and --concentration")
    if not requests and not neutralize and concentration is None:
        raise click.UsageError("say which ions: --ion NA:12, or --neutralize, or --concentration 0.15")
    if not is_pdb(output):
        raise FormatError(f"{output}: unknown suffix {output.suffix!r}; molecules are written as .pdb")
    if map_file is not None:
        require_map_suffix(map_file)
    with failing_as_record(path, as_json):
        source = read_file(path)
        read = read_atoms.one(source)
        atoms = read.atoms
        Checks(source).noted(atoms)
    if there := _ions_of(atoms):
        held = ", ".join(f"{count} {name}" for name, count in there.items())
        what = "they stay as atoms of the molecule, which count for --neutralize and not for --concentration"
        note(f"Note: {path} holds ions already ({held}); {what}")
    with failing_as_record(path, as_json), ProgressLine("Ions") as progress:
        result = place_ions(
            atoms, requests or DEFAULT_IONS, neutralize=neutralize, concentration=concentration, spacing=spacing,
            padding=padding, solute_distance=solute_distance, ion_distance=ion_distance, dielectric=dielectric,
            keep_map=map_file is not None, variant=variant, precision=precision, device=device, progress=progress,
        )  # fmt: skip
    if not len(result):
        note(f"Note: no ion was placed: {_why_none(result, neutralize, concentration)}")
    with replacing(output) as temporary:  # which stays away if the map cannot be written
        write_pdb_with_ions(temporary, source, atoms, _written(result), click.get_current_context().params["model"])
        if map_file is not None and result.map is not None:
            with ProgressLine(f"Writing {map_file}") as progress:
                attributes = origin(read, atoms, result)
                write_map(map_file, result.map, atoms=atoms, attributes=attributes, progress=progress)
    facts = medium_facts(atoms, {"dielectric": dielectric})
    if as_json:
        say_record(source, {**_as_json(result), "settings": facts, **notes_of(atoms)})
    else:
        say(_as_text(source, atoms, result, facts, verbose))


def _ions_of(atoms: Atoms) -> Counter[str]:
    """Count the ions that a structure brings, by name."""
    if atoms.labels is None:
        return Counter()
    alone = np.bincount(atoms.labels.residue_index)[atoms.labels.residue_index] == 1
    return Counter(str(name) for name in atoms.labels.residue_names[alone] if name in SPECIES)


def _why_none(result: IonsResult, neutralize: bool, concentration: float | None) -> str:
    """Say why no ion was placed."""
    if neutralize:
        left = f"no ion that was asked for brings the net charge of {result.net_charge:+.3f} e nearer to 0"
        return f"{left}; --concentration adds a salt"
    if concentration is not None:
        return f"{concentration:g} mol/L in the free volume of {result.free_volume:,.0f} A^3 are less than one ion"
    return "all counts are 0"


def _written(result: IonsResult) -> list[Ion]:
    return [
        Ion(species.name, species.atom, species.element, species.charge, position)
        for species, position in zip(result.species, result.positions, strict=True)
    ]


def _as_json(result: IonsResult) -> dict[str, Any]:
    rows = zip(result.species, result.positions, result.potentials, result.energies, strict=True)
    return {
        "n_atoms": len(result.atoms),
        "composition": composition_as_json(result.atoms),
        "n_ions": len(result),
        "counts": result.counts,
        "net_charge": result.net_charge,
        "free_volume": result.free_volume,
        "shape": list(result.grid.shape),
        "origin": result.grid.origin.tolist(),
        "spacing": result.grid.spacing.tolist(),
        "device": result.device,
        "variant": result.variant,
        "precision": result.precision,
        "energy": {"total": result.energy},
        "ions": [
            {"ion": species.name, "position": position.tolist(), "potential": float(potential), "energy": float(energy)}
            for species, position, potential, energy in rows
        ],
        "seconds": dict(result.seconds),
    }


def _as_text(source: InputFile, atoms: Atoms, result: IonsResult, facts: Facts, verbose: bool) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in result.counts.items())
    placed = counted(len(result), "ion") + (f": {counts}" if counts else "")
    head = [headline(source, atoms), *medium_lines(facts), f"{placed}; net charge with them {result.net_charge:+.3f} e"]
    if not len(result):
        return "\n".join(head)
    rows = [
        (str(k), species.name, *(f"{x:.3f}" for x in position), f"{potential:.3f}", f"{energy:.3f}")
        for k, (species, position, potential, energy) in enumerate(
            zip(result.species, result.positions, result.potentials, result.energies, strict=True), 1
        )
    ]
    seconds = result.seconds
    lines = [
        *head,
        "",
        table(("", "ion", "x", "y", "z A", "kcal/mol/e", "kcal/mol"), rows, "><>>>>>"),
        "",
        f"Energy of the ions {result.energy:,.3f} kcal/mol",
        f"{result.variant}, {result.precision}, on {result.device}: map {duration(seconds['map'])}, "
        f"ions {duration(seconds['exclusion'] + seconds['ions'])}, in all {duration(elapsed())}",
    ]
    if verbose:
        shape, spacing = (" x ".join(f"{n:g}" for n in of) for of in (result.grid.shape, result.grid.spacing))
        lines += ["", f"Grid: {shape} points, {spacing} A apart; {result.free_volume:,.0f} A^3 free at first"]
    return "\n".join(lines)
