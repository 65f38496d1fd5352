"""Pages and pictures of molecular surfaces coloured by maps or residue values, and scenes for molecular viewers."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike

from ..atoms import Atoms, require_atoms
from ..common import arguments
from ..common.errors import InputError
from ..grid import Map, require_map
from .about import about_file, about_map, about_model, about_pb, quantity_of
from .colouring import LEAST_END, MOST_END, Colouring, by_map, by_residues
from .page import framed, page_of, require_page, save_page
from .picture import picture_of, save_picture
from .residue_values import ResidueValues, read_residue_values
from .scenes import PROGRAMS, require_scenes, scene_files, write_scene, write_scenes
from .surface import Surface, molecular_surface

__all__ = [
    "FOR_SURFACE",
    "FOR_SURFACE_END",
    "LEAST_END",
    "MOST_END",
    "PB_SURFACE_END",
    "PROGRAMS",
    "SURFACE_UNIT",
    "Painted",
    "ResidueValues",
    "about_file",
    "about_map",
    "about_model",
    "about_pb",
    "draw_surface",
    "painted",
    "quantity_of",
    "read_residue_values",
    "require_page",
    "require_scenes",
    "scene_files",
    "write_page",
    "write_scene",
    "write_scenes",
]


# Colour range in most published pictures of surfaces with Poisson-Boltzmann potentials, kT/e.
PB_SURFACE_END = 5.0
# Settings of `potmap` for pictures of a screened Coulomb potential. It is several times weaker outside the surface than
# a Poisson-Boltzmann potential and has a smaller colour range.
FOR_SURFACE: Mapping[str, float] = {"dielectric": 78.54, "ionic_strength": 0.15}
SURFACE_UNIT = "kT/e"
FOR_SURFACE_END = 2.0


@dataclass(frozen=True, eq=False)
class Painted:
    """A molecule with a coloured surface, the data of a page or a picture.

    map_ : map shown in slices on the page, or None; title : title of the page; about : description of the values
    """

    atoms: Atoms
    surface: Surface
    colouring: Colouring
    map_: Map | None
    title: str
    about: str

    def page(self) -> str:
        """Return the HTML page."""
        return page_of(self.atoms, self.surface, self.colouring, self.map_, self.title, self.about)

    def framed_page(self) -> str:
        """Return the page in a frame, for notebooks."""
        return framed(self.page())

    def framed_picture(self) -> str:
        """Return an HTML image of the surface from both sides."""
        data = io.BytesIO()
        picture_of(self.atoms, self.surface, self.colouring, self.title, self.about).savefig(data, format="png")
        text = base64.b64encode(data.getvalue()).decode()
        return f'<img alt="{html.escape(self.title)}" src="data:image/png;base64,{text}">'

    def save_page(self, path: str | PathLike[str], inputs: Iterable[str | PathLike[str]] = ()) -> None:
        """Write the HTML page. inputs : files that must not be overwritten"""
        require_page(path)
        save_page(path, self.page(), inputs)

    def save_picture(self, path: str | PathLike[str], inputs: Iterable[str | PathLike[str]] = ()) -> None:
        """Write a PNG picture of the surface from both sides. inputs : files that must not be overwritten"""
        save_picture(path, picture_of(self.atoms, self.surface, self.colouring, self.title, self.about), inputs)


def painted(
    atoms: Atoms, map_: Map | None = None, residue_values: Mapping[str, float] | None = None, *, unit: str = "",
    end: float | None = None, title: str = "", about: str = "",
) -> Painted:  # fmt: skip
    """Colour the surface of a molecule by a map or by residue values; parameters as in write_page."""
    require_atoms(atoms)
    if (map_ is None) == (residue_values is None):
        raise InputError("a surface is coloured by a map or by residue values; give one of them")
    if end is not None:
        arguments.number("end", end, "a positive number, 1e-9 to 1e12", least=LEAST_END, most=MOST_END)
    for name, value in (("title", title), ("about", about), ("unit", unit)):
        arguments.text(name, value)
    if map_ is not None:
        require_map(map_)
        surface = molecular_surface(atoms)
        colouring = by_map(surface, map_, end)
    else:
        assert residue_values is not None
        if not isinstance(residue_values, Mapping):
            given = arguments.described(residue_values)
            raise InputError(f"residue_values is {given}; expected a dictionary")
        for name, number in residue_values.items():
            arguments.number(f"the value of {arguments.text('a residue', name)}", number, "a finite number")
        surface = molecular_surface(atoms)
        colouring = by_residues(surface, atoms, residue_values, unit, end)
    return Painted(atoms, surface, colouring, map_, title or "Molecular surface", about)


def write_page(
    path: str | PathLike[str], atoms: Atoms, map_: Map | None = None,
    residue_values: Mapping[str, float] | None = None, *, unit: str = "", end: float | None = None, title: str = "",
    about: str = "", inputs: Iterable[str | PathLike[str]] = (),
) -> None:  # fmt: skip
    """Write an offline HTML page with the coloured surface of a molecule, slices through the map, and atoms.

    map_ : potential map; the surface is coloured by values 1.4 A outside
    residue_values : alternatively, values by residue name, such as `A:LEU4`; unit : their unit
    end : the colours span -end to end; by default a round number near the 97th percentile of magnitudes
    title, about : text above and below the picture
    inputs : files that must not be overwritten

    Raises InputError if plotly is not installed, the map does not cover the surface, or a residue is missing. Raises
    FormatError for a suffix other than .html or a read-only folder.

    >>> import plotly
    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> values = dict(zip(map(str, atoms.labels.residues), [-1.0, 0.0, 1.0]))
    >>> page = pele_ocl.write_page("page.html", atoms, residue_values=values, unit="kcal/mol")
    """
    require_page(arguments.file_path(path))
    inputs = arguments.file_paths("inputs", inputs)
    painted(atoms, map_, residue_values, unit=unit, end=end, title=title, about=about).save_page(path, inputs)


def draw_surface(
    path: str | PathLike[str], atoms: Atoms, map_: Map | None = None,
    residue_values: Mapping[str, float] | None = None, *, unit: str = "", end: float | None = None, title: str = "",
    about: str = "", inputs: Iterable[str | PathLike[str]] = (),
) -> None:  # fmt: skip
    """Draw the coloured surface of a molecule from the front and the back to a PNG file.

    Parameters and errors are the same as in write_page, with matplotlib instead of plotly and .png instead of .html.

    >>> import matplotlib
    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> values = dict(zip(map(str, atoms.labels.residues), [-1.0, 0.0, 1.0]))
    >>> drawn = pele_ocl.draw_surface("surface.png", atoms, residue_values=values, unit="kcal/mol")
    """
    from ..formats.maps.pictures import require_png

    require_png(arguments.file_path(path))
    inputs = arguments.file_paths("inputs", inputs)
    painted(atoms, map_, residue_values, unit=unit, end=end, title=title, about=about).save_picture(path, inputs)
