"""`pele-ocl view`: a molecule in pictures, as an offline page and as PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..atoms import Atoms
from ..common.errors import InputError
from ..common.inputfile import InputFile, read_file
from ..formats import read_map, require_map_suffix
from ..formats.maps.pictures import require_png
from ..grid import Grid
from ..jobs.facts import notes_of
from ..pb import PBIon, PBModel
from ..potential_model import PotentialModel
from ..potmap import potmap
from ..view import (
    FOR_SURFACE,
    FOR_SURFACE_END,
    PB_SURFACE_END,
    Painted,
    about_file,
    about_model,
    about_pb,
    painted,
    read_residue_values,
    require_page,
)
from ..view.about import POISSON_BOLTZMANN
from .command import INPUT, OUTPUT, EachOnce
from .convert import with_unit
from .json_lines import failing_as_record, say_record
from .options import (
    ReadAtoms,
    debug_option,
    device_option,
    from_units_option,
    given_options,
    json_option,
    range_option,
    structure_options,
)
from .physics import Facts, medium_facts, medium_lines, pb_facts
from .progress import ProgressLine
from .report import counted
from .terminal import one_line, say

METHODS = ("pb", "screened")  # of the potential that is computed
ROOM = 298.15  # K, of the screened potential
_PADDING, _FINEST = 10.0, 0.5  # A, of the map that is computed
_MOST_POINTS, _COARSER = {"pb": 5_000_000, "screened": 16_000_000}, 1.25
_PICTURE = ".png"


@click.command(cls=EachOnce)
@click.argument("path", metavar="IN", type=INPUT)
@click.option(
    "-o", "--output", "outputs", type=OUTPUT, metavar="OUT", multiple=True, required=True,
    help="Write a page, .html, or a picture, .png. Can be given several times.",
)  # fmt: skip
@click.option(
    "--map",
    "map_path",
    type=INPUT,
    metavar="MAP",
    help="Map to show, from any program; by default the potential is computed.",
)
@from_units_option("MAP")
@click.option(
    "--residue-values", "values_path", type=INPUT, metavar="FILE",
    help="Colour residues instead of a potential: a decomposition of `binding`, .csv, or lines residue,value.",
)  # fmt: skip
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default=METHODS[0],
    show_default=True,
    help="Potential that is computed: by the Poisson-Boltzmann equation, or the screened Coulomb potential.",
)
@range_option("5 with pb, 2 with screened, else ")
@device_option()
@structure_options
@json_option()
@debug_option
def view(
    path: Path, outputs: tuple[Path, ...], map_path: Path | None, from_units: str | None, values_path: Path | None,
    method: str, end: float | None, device: str | None, read_atoms: ReadAtoms, as_json: bool,
) -> None:  # fmt: skip
    """Show the molecule in IN as a page or a picture: its surface coloured by a potential or by residues.

    A page is one file that opens in any browser without a network. It has slices through the map and names of atoms
    under the mouse. Pages need plotly, pictures matplotlib. Without --map and --residue-values the potential is
    computed as `potmap --for-surface` does. With them the atoms need no force field.
    """
    if map_path is not None and values_path is not None:
        raise click.UsageError("choose one of --map and --residue-values")
    if from_units is not None and map_path is None:
        raise click.UsageError("--from-units is about --map")
    if given_options("method") and (map_path or values_path):
        raise click.UsageError("--method is about a potential that is computed; leave it out")
    for output in outputs:
        if output.suffix.lower() == _PICTURE:
            require_png(output)
        else:
            require_page(output)
    if map_path is not None:
        require_map_suffix(map_path)
    facts: dict[str, Any] = {}  # of a potential that is computed
    with failing_as_record(path, as_json):
        source = read_file(path)
        if map_path is not None:
            shown = _of_map(source, read_file(map_path), from_units, end, read_atoms)
        elif values_path is not None:
            shown = _of_residues(source, read_file(values_path), end, read_atoms)
        else:
            shown, facts = _computed(source, method, end, device, read_atoms)
    inputs = [each for each in (path, map_path, values_path) if each is not None]
    for output in outputs:
        if output.suffix.lower() == _PICTURE:
            shown.save_picture(output, inputs)
        else:
            shown.save_page(output, inputs)
    if as_json:
        say_record(source, {**_as_json(shown), **({"settings": facts} if facts else {})})
    else:
        say(_as_text(shown, facts, outputs))


def _of_map(
    source: InputFile, map_source: InputFile, from_units: str | None, end: float | None, read_atoms: ReadAtoms
) -> Painted:
    """Paint the molecule in the colours of a map that was read."""
    map_ = with_unit(map_source.path, read_map(map_source), from_units)
    name, atoms = one_line(map_source.path.name), read_atoms.unparameterised(source)
    try:
        return painted(
            atoms, map_, end=end, title=f"{one_line(source.path.name)}: {name}",
            about=about_file(name, map_.title),
        )  # fmt: skip
    except InputError as error:
        raise InputError(f"{map_source}: {error}") from None


def _of_residues(source: InputFile, values_source: InputFile, end: float | None, read_atoms: ReadAtoms) -> Painted:
    """Paint the molecule in the colours of its residues."""
    found, name = read_residue_values(values_source), one_line(values_source.path.name)
    atoms = read_atoms.unparameterised(source)
    try:
        return painted(
            atoms, residue_values=found.values, unit=found.unit, end=end,
            title=f"{one_line(source.path.name)}: {name}",
            about=f"Each residue has the colour of its value in {name}: {found.title}.",
        )  # fmt: skip
    except InputError as error:
        raise InputError(f"{values_source}: {error}") from None


def _computed(
    source: InputFile, method: str, end: float | None, device: str | None, read_atoms: ReadAtoms
) -> tuple[Painted, dict[str, Any]]:
    """Paint the molecule in the colours of the potential of its charges, and give what that depends on."""
    atoms = read_atoms(source)
    spacing = _FINEST
    while len(grid := Grid.around(atoms, _PADDING, spacing)) > _MOST_POINTS[method]:
        spacing *= _COARSER
    if method == "pb":
        return _of_pb(source, atoms, grid, end, device)
    dielectric, strength = (float(FOR_SURFACE[name]) for name in ("dielectric", "ionic_strength"))
    result = potmap(
        atoms, grid, method="auto", device=device, dielectric=dielectric, ionic_strength=strength, temperature=ROOM,
        unit=str(FOR_SURFACE["units"]),
    )  # fmt: skip
    assert isinstance(result.model, PotentialModel)
    shown = painted(
        atoms, result.map, end=end or FOR_SURFACE_END, title=f"{one_line(source.path.name)}: {result.model.name}",
        about=about_model(result.model),
    )  # fmt: skip
    return shown, medium_facts(atoms, {"dielectric": dielectric, "ionic_strength": strength, "temperature": ROOM})


def _of_pb(
    source: InputFile, atoms: Atoms, grid: Grid, end: float | None, device: str | None
) -> tuple[Painted, dict[str, Any]]:
    """Paint the molecule in the colours of its Poisson-Boltzmann potential."""
    strength = float(FOR_SURFACE["ionic_strength"])
    model = PBModel(ions=(PBIon(1, strength), PBIon(-1, strength)))
    with ProgressLine("Poisson-Boltzmann") as progress:
        result = potmap(atoms, grid, method="pb", pb=model, unit="kT/e", device=device, progress=progress)
    shown = painted(
        atoms, result.map, end=end or PB_SURFACE_END, title=f"{one_line(source.path.name)}: {POISSON_BOLTZMANN}",
        about=about_pb(model, float(grid.spacing.max()), atoms.gb_radii_set),
    )  # fmt: skip
    return shown, pb_facts(atoms, model)


def _as_json(shown: Painted) -> dict[str, object]:
    colouring, known = shown.colouring, shown.colouring.known
    return {
        "n_atoms": len(shown.atoms),
        "area": shown.surface.area,
        "probe": shown.surface.probe,
        "surface_spacing": shown.surface.spacing,
        "n_triangles": len(shown.surface.faces),
        "quantity": colouring.quantity,
        "outside": colouring.outside,
        "unit": colouring.unit,
        "range": colouring.end,
        "min": float(known.min()),
        "max": float(known.max()),
        "share_without_value": colouring.missing,
        "share_beyond_range": colouring.beyond,
        **notes_of(shown.atoms),
    }


def _as_text(shown: Painted, facts: Facts, outputs: tuple[Path, ...]) -> str:
    surface, colouring, known = shown.surface, shown.colouring, shown.colouring.known
    place = f", {colouring.outside:g} A outside the surface" if colouring.outside else ""
    lines = [
        f"{one_line(shown.title)}, {counted(len(shown.atoms), 'atom')}",
        *(medium_lines(facts) if facts else []),
        "",
        f"Surface       {surface.area:,.0f} A^2, {len(surface.faces):,} triangles, probe {surface.probe:.3g} A",
        f"Values        {known.min():.4g} to {known.max():.4g} {one_line(colouring.unit)}".rstrip(),
        f"Of            {colouring.quantity}{place}",
        f"Colours       {-colouring.end:g} to {colouring.end:g}; {colouring.beyond:.1%} of the surface is beyond them",
        *([f"Grey          {colouring.missing:.1%} of the surface has no value"] if colouring.missing else []),
        *(f"Written       {one_line(str(output))}" for output in outputs),
    ]
    return "\n".join(lines)
