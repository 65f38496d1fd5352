"""Pages and pictures of molecules with surfaces coloured by a potential, another map, or residue values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms import Atoms
from ..common import arguments
from ..common.errors import InputError, KeywordError
from ..common.inputfile import InputFile, read_file
from ..common.modules import make_callable, takes, takes_structures
from ..common.notes import heard_notes, one_line, with_notes
from ..common.variant import Progress
from ..formats import read_map, require_map_suffix
from ..formats.maps.pictures import require_png
from ..grid import Grid, Map, require_map
from ..jobs.facts import notes_of
from ..jobs.given import Given, given_molecule, reading_of
from ..jobs.provenance import record_head
from ..jobs.texts import counted, medium_lines
from ..mapmath import with_unit
from ..painting import (
    FOR_SURFACE,
    FOR_SURFACE_END,
    LEAST_END,
    MOST_END,
    PB_SURFACE_END,
    SURFACE_UNIT,
    Painted,
    about_file,
    about_map,
    draw_surface,
    painted,
    read_residue_values,
    require_page,
    write_page,
)
from ..painting.about import POISSON_BOLTZMANN
from ..potmap import PotmapResult, potmap
from ..reading import Reading
from ..report import Column, Framed, Report

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..jobs.words import ReadingOptions
    from ..opencl.device import Device
    from ..pb import PBResult

__all__ = ["METHODS", "View", "draw_surface", "view", "write_page"]

METHODS = ("pb", "screened")  # methods for the potential
ROOM = 298.15  # K, temperature of the screened potential
_PADDING, _FINEST = 10.0, 0.5  # A, padding and smallest spacing of a computed map
_MOST_POINTS, _COARSER = {"pb": 5_000_000, "screened": 16_000_000}, 1.25
_PICTURE = ".png"
Path_ = str | PathLike[str]


@dataclass(frozen=True, eq=False)
class View(Framed):
    """A molecule with a coloured surface.

    shown : Painted, the data of a page or a picture
    source : the structure file, None for Atoms; inputs : all input files
    settings : settings of a computed potential, empty without one
    result : PotmapResult of a computed potential, or None; heard : notes reported during the computation

    >>> page = pele_ocl.view("data/structures/trialanine.pdb", method="screened")
    >>> page.facts()["unit"]
    'kT/e at 298.15 K'
    >>> page.save("page.html")  # needs plotly
    """

    shown: Painted
    source: InputFile | None = None
    inputs: tuple[Path, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    result: PotmapResult | None = None
    heard: tuple[str, ...] = field(default=(), repr=False)

    @property
    def atoms(self) -> Atoms:
        """The molecule."""
        return self.shown.atoms

    @property
    def map(self) -> Map | None:
        """The map used to colour the surface, None for residue values."""
        return self.shown.map_

    def __repr__(self) -> str:
        of, known = self.shown.colouring, self.shown.colouring.known
        unit = f" {one_line(of.unit)}" if of.unit else ""
        strength = self.settings.get("ionic_strength")
        salt = "" if strength is None else f", {strength:g} mol/L salt" if strength else ", no salt"
        return (
            f"View({len(self.atoms):,} atoms, surface {self.shown.surface.area:,.0f} A^2, {of.quantity} "
            f"{known.min():.4g} to {known.max():.4g}{unit}, colours to {of.end:g}{salt})"
        )

    def _repr_html_(self) -> str:
        """Return the page for a notebook, or a picture if plotly is not installed."""
        try:
            return self.shown.framed_page()
        except InputError:
            return self.shown.framed_picture()

    def table(self) -> Report:
        """Return a table with the vertices of the surface and their values."""
        surface, of = self.shown.surface, self.shown.colouring
        columns = {
            **{axis: Column(surface.vertices[:, k], "A") for k, axis in enumerate("xyz")},
            "value": Column(np.asarray(of.values), of.unit, ".4g"),
        }
        return Report(one_line(self.shown.title), columns, self.facts())

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return a text report with the surface, its values and their colours."""
        surface, of = self.shown.surface, self.shown.colouring
        place = f", {of.outside:g} A outside the surface" if of.outside else ""
        lines = [
            f"{one_line(self.shown.title)}, {counted(len(self.atoms), 'atom')}",
            *(medium_lines(self.settings) if self.settings else []),
            "",
            f"Surface       {surface.area:,.0f} A^2, {len(surface.faces):,} triangles, probe {surface.probe:.3g} A",
            f"Values        {of.known.min():.4g} to {of.known.max():.4g} {one_line(of.unit)}".rstrip(),
            f"Quantity      {of.quantity}{place}",
            f"Colours       {-of.end:g} to {of.end:g}; {of.beyond:.1%} of the surface is beyond this range",
            *([f"Grey          {of.missing:.1%} of the surface has no value"] if of.missing else []),
        ]
        return "\n".join(lines)

    def facts(self) -> dict[str, Any]:
        """Return a summary of the area and the values of the surface."""
        shown, colouring, known = self.shown, self.shown.colouring, self.shown.colouring.known
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
        }

    def to_json(self) -> dict[str, Any]:
        """Return the JSON record of the surface, without timings."""
        record = {**record_head(self.source), **self.facts(), **notes_of(self.atoms)}
        return with_notes({**record, **({"settings": dict(self.settings)} if self.settings else {})}, self.heard)

    def save(self, path: Path_, *, inputs: Iterable[Path_] = ()) -> None:
        """Write a page, .html, or a picture, .png. inputs : files that must not be overwritten

        Raises InputError if plotly or matplotlib is not installed, and FormatError for another suffix.
        """
        every = [*self.inputs, *arguments.file_paths("inputs", inputs)]
        if arguments.file_path(path).suffix.lower() == _PICTURE:
            self.shown.save_picture(path, every)
        else:
            self.shown.save_page(path, every)


@arguments.checked
@takes("reading")
@takes_structures("atoms")
def view(
    what: Atoms | Path_,
    output: Path_ | Sequence[Path_] = (),
    *,
    map: Map | PotmapResult | PBResult | Path_ | None = None,
    from_unit: str | None = None,
    residue_values: Mapping[str, float] | Path_ | None = None,
    unit: str = "",
    method: str | None = None,
    ionic_strength: float | None = None,
    color_max: float | None = None,
    device: Device | int | str | None = None,
    progress: Progress | None = None,
    reading: Reading | None = None,
    **read: Unpack[ReadingOptions],
) -> View:
    """Create a page or a picture of a molecule, with its surface coloured by a potential, another map or residues.

    A page is a single file that opens in any browser, also offline. It shows slices through the map, and atom names
    under the mouse pointer. Pages need plotly, pictures need matplotlib. Notebooks display the result.

    what : Atoms, or the path of a structure. No force field is needed with `map` or `residue_values`
    output : files to write, .html or .png
    map : a Map, a result with a map, or a map file from any program. By default, the potential is computed in kT/e.
        from_unit : unit of a map file that does not contain one
    residue_values : alternatively, values by residue name, such as `A:LEU4`, in `unit`; or a CSV file with a
        decomposition from `binding`, or lines residue,value
    method : "pb" for the Poisson-Boltzmann potential, the default, or "screened" for the screened Coulomb potential
    ionic_strength : of a 1:1 salt in the computed potential, mol/L; 0.15 by default, unlike `pb` and `potmap`, whose
        default is 0
    color_max : the colours span -color_max to color_max; by default 5 for pb, 2 for screened, otherwise a round number
        that fits the values
    device, progress : as in `potmap`
    reading, read : options for reading files: a jobs.Reading, or its keywords `select`, `forcefield`, `model`,
        `coordinates`, `parameters`, `radii`

    Returns a View. Raises InputError for options that cannot be combined, for a map that does not cover the surface and
    for residues without a value, FormatError for files that cannot be written, and the errors of `potmap`.

        >>> import pele_ocl
        >>> atoms = pele_ocl.Atoms(positions=[[0, 0, 0], [3, 0, 0]], charges=[1.0, -1.0], gb_radii=[1.5, 1.5])
        >>> pele_ocl.view(atoms, method="screened").facts()["unit"]
        'kT/e at 298.15 K'
    """
    if map is not None and residue_values is not None:
        raise KeywordError("choose one of `map` and `residue_values`")
    shown_map: Any = getattr(map, "map", map)  # map of a result
    if from_unit is not None and (shown_map is None or isinstance(shown_map, Map)):
        raise KeywordError("`from_unit` applies to the file of `map`")
    for name, value in (("method", method), ("ionic_strength", ionic_strength)):
        if value is not None and not (shown_map is residue_values is None):
            raise KeywordError(f"`{name}` applies to computed potentials; leave it out")
    if method is not None:
        arguments.choice("method", method, METHODS)
    if color_max is not None:
        arguments.number("color_max", color_max, "a positive number, 1e-9 to 1e12", least=LEAST_END, most=MOST_END)
    outputs = (output,) if isinstance(output, str | PathLike) else arguments.file_paths("output", output)
    for path in outputs:
        if arguments.file_path(path, "output").suffix.lower() == _PICTURE:
            require_png(path)
        else:
            require_page(path)
    if shown_map is not None and not isinstance(shown_map, Map):
        require_map_suffix(arguments.file_path(shown_map, "map"))
    reads = reading_of(reading, read)
    if isinstance(what, Atoms) and read:
        given_molecule(what, reading, read)  # raises the error
    with heard_notes() as heard:
        if shown_map is not None:
            shown, inputs = _of_map(_unparameterised(what, reads), shown_map, from_unit, color_max)
            given, result = _unread(what), None
        elif residue_values is not None:
            shown, inputs = _of_residues(_unparameterised(what, reads), residue_values, unit, color_max)
            given, result = _unread(what), None
        else:
            molecule = given_molecule(what, reads)
            salt = FOR_SURFACE["ionic_strength"] if ionic_strength is None else ionic_strength
            shown, result = _computed(molecule, method or METHODS[0], salt, color_max, device, progress)
            given, inputs = molecule.source, []
    settings = {} if result is None else _settings(result)
    every = [*([] if given is None else [given.path]), *inputs]
    found = View(shown, given, tuple(every), settings, result, tuple(heard))
    for path in outputs:
        found.save(path)
    return found


def _unread(what: Atoms | Path_) -> InputFile | None:
    return None if isinstance(what, Atoms) else read_file(what)


def _unparameterised(what: Atoms | Path_, reads: Reading) -> Given:
    """Return the given Atoms, or read a file without parameters."""
    if isinstance(what, Atoms):
        return Given(what)
    source = read_file(what)
    return Given(reads.unparameterised(source), source)


def _titled(given: Given, name: str) -> str:
    return name if given.source is None else f"{one_line(given.source.path.name)}: {name}"


def _of_map(given: Given, map_: Map | Path_, from_unit: str | None, end: float | None) -> tuple[Painted, list[Path]]:
    """Colour the molecule by a map."""
    if isinstance(map_, Map):
        require_map(map_)
        name = map_.title or "map"
        about = f"The surface is coloured by {name}."
        return painted(given.atoms, map_, end=end, title=_titled(given, name), about=about), []
    source = read_file(map_)
    values, name = with_unit(source.path, read_map(source), from_unit), one_line(source.path.name)
    try:
        about = about_file(name, values.title)
        return painted(given.atoms, values, end=end, title=_titled(given, name), about=about), [source.path]
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _of_residues(
    given: Given, values: Mapping[str, float] | Path_, unit: str, end: float | None
) -> tuple[Painted, list[Path]]:
    """Colour the molecule by residue values."""
    if isinstance(values, Mapping):
        title = _titled(given, "values of residues")
        return painted(given.atoms, residue_values=values, unit=unit, end=end, title=title), []
    source = read_file(arguments.file_path(values, "residue_values"))
    found, name = read_residue_values(source), one_line(source.path.name)
    try:
        shown = painted(
            given.atoms, residue_values=found.values, unit=found.unit, end=end, title=_titled(given, name),
            about=f"Each residue is coloured by its value in {name}: {found.title}.",
        )  # fmt: skip
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    return shown, [source.path]


def _computed(
    given: Given, method: str, salt: float, end: float | None, device: Device | int | str | None,
    progress: Progress | None,
) -> tuple[Painted, PotmapResult]:  # fmt: skip
    """Colour the molecule by the computed potential of its charges."""
    atoms, spacing = given.atoms, _FINEST
    while len(grid := Grid.around(atoms, _PADDING, spacing)) > _MOST_POINTS[method]:
        spacing *= _COARSER
    if method == METHODS[0]:
        result = potmap(
            atoms, grid, method="pb", ionic_strength=salt, unit=SURFACE_UNIT, device=device, progress=progress,
        )  # fmt: skip
        name, usual = POISSON_BOLTZMANN, PB_SURFACE_END
    else:
        result = potmap(
            atoms, grid, method="auto", device=device, dielectric=FOR_SURFACE["dielectric"],
            ionic_strength=salt, temperature=ROOM, unit=SURFACE_UNIT, progress=progress,
        )  # fmt: skip
        name, usual = str(getattr(result.model, "name", "")), FOR_SURFACE_END
    assert result.model is not None
    about = about_map(result.model, result.map, atoms)
    shown = painted(atoms, result.map, end=usual if end is None else end, title=_titled(given, name), about=about)
    return shown, result


def _settings(result: PotmapResult) -> dict[str, Any]:
    return dict(result.settings)


make_callable(__name__)
