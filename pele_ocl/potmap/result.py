"""Result of `potmap`."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms
from ..common.errors import PeleError
from ..grid import Map
from ..pb_model import PBModel
from ..potential_model import PotentialModel
from .error import MapError


@dataclass(frozen=True, eq=False)
class PotmapResult:
    """Potential at the points of a grid, and how it was computed.

    map : Map, values (nz, ny, nx) in `unit`
    field : (3, nz, ny, nx) along x, y and z, in `unit` per Angstrom; None where it was not asked for
    n_atoms : atoms given
    method : key of MAP_METHODS in pele_ocl/potmap/methods.py, such as "direct"
    error, field_error : MapError of the potential and of the field, of methods that approximate; None of direct sums
    accuracy : of the mesh or the lattices that were taken in the end; 0 without them
    wanted : the accuracy that was asked for, by norm; 0 of methods without one
    atoms : that were given; model : the law of the potential, of pb a PBModel
    seconds : "kernel", of the device that was busy longest, by its own clock; "total", with everything around
    """

    map: Map
    field: NDArray[np.floating] | None
    n_atoms: int
    device: str
    variant: str
    precision: str
    seconds: Mapping[str, float]
    method: str = "direct"
    error: MapError | None = None
    field_error: MapError | None = None
    accuracy: float = 0.0
    wanted: float = 0.0
    atoms: Atoms | None = None
    model: PotentialModel | PBModel | None = None

    def __repr__(self) -> str:
        return f"PotmapResult({self.n_atoms:,} atoms, {self.map!r}, {self.variant})"

    def _repr_html_(self) -> str:
        """Show the page of `write_page` in a notebook; text if it cannot be made."""
        from ..view import about_map, painted

        if self.atoms is None or self.model is None:
            return html.escape(repr(self))
        try:
            about = about_map(self.model, self.map, self.atoms)
            return painted(self.atoms, self.map, title=repr(self), about=about).framed_page()
        except PeleError as error:  # without plotly; without an atom on the grid
            return f"{html.escape(repr(self))}<br>{html.escape(str(error))}"

    @property
    def unit(self) -> str:
        """Unit of the map, of units.POTENTIAL_UNITS."""
        return self.map.unit

    @property
    def field_strength(self) -> NDArray[np.floating] | None:
        """Length of the field, (nz, ny, nx)."""
        if self.field is None:
            return None
        strength: NDArray[np.floating] = np.sqrt(np.einsum("k...,k...->...", self.field, self.field))
        return strength

    @property
    def evals_per_second(self) -> float:
        """Atoms times points, over the kernels' seconds."""
        return self.n_atoms * len(self.map.grid) / max(self.seconds["kernel"], 1e-9)
