"""Values on a surface and their colours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..atoms import Atoms, Floats
from ..common.errors import InputError
from ..common.readonly import ReadOnlyArrays
from ..grid import Map
from ..sampling import sample
from .about import quantity_of
from .surface import PROBE, Surface

# ColorBrewer's RdBu with seven colours, whose ends are bright enough for a shaded surface.
RED_TO_BLUE = ("#b2182b", "#ef8a62", "#fddbc7", "#f7f7f7", "#d1e5f0", "#67a9cf", "#2166ac")
LEAST_END, MOST_END = 1e-9, 1e12  # limits of the colour range, to avoid overflow
_PERCENTILE = 97.0  # of magnitudes on the surface, used as default colour range


@dataclass(frozen=True, eq=False)
class Colouring(ReadOnlyArrays):
    """Values on a surface and their colours.

    values : (n_vertices,) NaN for vertices without a value
    end : the colours span -end to end
    unit : unit of the values, "" if unknown
    quantity : name of the values, such as "screened Coulomb potential"
    outside : distance from the surface at which values are taken, A
    colours : from -end to end, evenly spaced, as #rrggbb
    """

    values: Floats
    end: float
    unit: str
    quantity: str
    colours: tuple[str, ...] = RED_TO_BLUE
    outside: float = 0.0

    @property
    def place(self) -> str:
        """Description of the distance at which values are taken; "" on the surface itself."""
        return f"{self.outside:g} Å outside the surface" if self.outside else ""

    @property
    def label(self) -> list[str]:
        """Label of the colour bar, as lines: the quantity, the distance from the surface, and the unit."""
        return [line for line in (self.quantity, self.place, self.unit) if line]

    @property
    def known(self) -> Floats:
        """All values except NaN."""
        known: Floats = self.values[~np.isnan(self.values)]
        return known

    @property
    def missing(self) -> float:
        """Fraction of vertices without a value."""
        return float(np.isnan(self.values).mean())

    @property
    def beyond(self) -> float:
        """Fraction of vertices with values outside the colour range, which have the colour of its end."""
        return float((np.abs(np.nan_to_num(self.values)) > self.end).mean())

    def rgb(self) -> Floats:
        """Return the colours of the vertices, (n_vertices, 3) from 0 to 1; grey without a value."""
        stops = np.array([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in self.colours]) / 255
        place = np.clip((np.nan_to_num(self.values) / self.end + 1) / 2, 0, 1)
        rgb = np.stack([np.interp(place, np.linspace(0, 1, len(stops)), stop) for stop in stops.T], axis=1)
        return np.where(np.isnan(self.values)[:, None], 0.65, rgb)


def by_map(surface: Surface, map_: Map, end: float | None = None) -> Colouring:
    """Colour a surface by map values 1.4 A outside, at the centre of a touching probe.

    There, a potential in a uniform medium ranks positions much like one with the lower permittivity of the molecule.

    end : the colours span -end to end; by default a round number near the 97th percentile of magnitudes

    Raises InputError if the map does not cover any part of the surface.
    """
    values = sample(map_, surface.vertices + PROBE * surface.normals, "nan")
    if np.isnan(values).all():
        raise InputError(
            "the map does not reach the molecule's surface; give the structure for which the map was computed"
        )
    return Colouring(values, end or _round_end(values), map_.full_unit, quantity_of(map_), outside=PROBE)


def by_residues(
    surface: Surface, atoms: Atoms, values: Mapping[str, float], unit: str, end: float | None = None
) -> Colouring:
    """Colour each vertex by the value of the residue with the nearest atom; positive values are red, as for energies.

    values : by residue name, `A:LEU4` or `A:LEU:4`

    Raises InputError for atoms without labels, for a residue not in the molecule, and if no residue at the surface has
    a value.
    """
    if atoms.labels is None:
        raise InputError("residue values need atoms with labels; these have none")
    residues = atoms.labels.residues
    known = {str(residue): k for k, residue in enumerate(residues)}
    known |= {f"{r.chain}:{r.name}:{r.number}{r.insertion_code}": k for k, r in enumerate(residues)}
    stranger = next((name for name in values if name not in known), None)
    if stranger is not None:
        raise InputError(f"the molecule has no residue {stranger}, which has a value")
    counts = Counter(residues)
    copied = next((name for name in values if counts[residues[known[name]]] > 1), None)
    if copied is not None:
        raise InputError(
            f"{counts[residues[known[copied]]]} residues of the molecule are called {copied}, which has a value; give "
            "them different chains or numbers"
        )
    of_residue = np.full(len(residues), np.nan)
    of_residue[[known[name] for name in values]] = list(values.values())
    if np.isnan(of_residue).all():
        raise InputError("no residue has a value")
    of_atom = np.repeat(of_residue, np.diff([*atoms.labels.residue_starts, len(atoms)]))
    at_surface = of_atom[surface.nearest]
    if np.isnan(at_surface).all():
        raise InputError("no residue with a value is at the surface; also give values for other residues")
    return Colouring(at_surface, end or _round_end(of_residue), unit, "residue value", RED_TO_BLUE[::-1])


def _round_end(values: Floats) -> float:
    """Return a round number for the end of the colour range."""
    magnitudes = np.abs(values[~np.isnan(values)])
    end = float(np.percentile(magnitudes, _PERCENTILE)) or float(magnitudes.max()) or 1.0
    return float(f"{min(max(end, LEAST_END), MOST_END):.0e}")
