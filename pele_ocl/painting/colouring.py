"""Values by which a surface is coloured, and the range of colours."""

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

# Red, white and blue of ColorBrewer's RdBu with seven colours, whose ends are bright enough for a shaded surface.
RED_TO_BLUE = ("#b2182b", "#ef8a62", "#fddbc7", "#f7f7f7", "#d1e5f0", "#67a9cf", "#2166ac")
LEAST_END, MOST_END = 1e-9, 1e12  # of the colours, whose numbers stay numbers then
_PERCENTILE = 97.0  # of the magnitudes on the surface: where the colours end, unless a range is given


@dataclass(frozen=True, eq=False)
class Colouring(ReadOnlyArrays):
    """Values on a surface and their colours.

    values : (n_vertices,) NaN where there is none
    end : the colours span -end to end
    unit : of the values, "" where it is not known
    quantity : what they are, such as "screened Coulomb potential"
    outside : A, how far outside the surface they are taken
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
        """Where the values are taken, in words; "" on the surface itself."""
        return f"{self.outside:g} Å outside the surface" if self.outside else ""

    @property
    def label(self) -> list[str]:
        """Lines next to a colour bar: the quantity, where its values are taken, its unit."""
        return [line for line in (self.quantity, self.place, self.unit) if line]

    @property
    def known(self) -> Floats:
        """Values that there are."""
        known: Floats = self.values[~np.isnan(self.values)]
        return known

    @property
    def missing(self) -> float:
        """Fraction of vertices without a value."""
        return float(np.isnan(self.values).mean())

    @property
    def beyond(self) -> float:
        """Fraction of vertices whose value is beyond the colours: they have the colour of its end."""
        return float((np.abs(np.nan_to_num(self.values)) > self.end).mean())

    def rgb(self) -> Floats:
        """Colours of the vertices, (n_vertices, 3) from 0 to 1; grey where there is no value."""
        stops = np.array([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in self.colours]) / 255
        place = np.clip((np.nan_to_num(self.values) / self.end + 1) / 2, 0, 1)
        rgb = np.stack([np.interp(place, np.linspace(0, 1, len(stops)), stop) for stop in stops.T], axis=1)
        return np.where(np.isnan(self.values)[:, None], 0.65, rgb)


def by_map(surface: Surface, map_: Map, end: float | None = None) -> Colouring:
    """Colour by the map 1.4 A outside the surface, at the middle of a probe that touches it.

    A potential in a uniform medium ranks places there much as one does with the molecule's own permittivity.

    end : of the colours, by default a round number near the 97th percentile of magnitudes

    Raises InputError if the map reaches no part of the surface.
    """
    values = sample(map_, surface.vertices + PROBE * surface.normals, "nan")
    if np.isnan(values).all():
        raise InputError("the map does not reach the molecule's surface; give the structure that the map was made for")
    return Colouring(values, end or _round_end(values), map_.full_unit, quantity_of(map_), outside=PROBE)


def by_residues(
    surface: Surface, atoms: Atoms, values: Mapping[str, float], unit: str, end: float | None = None
) -> Colouring:
    """Values of residues at the vertices that are nearest to their atoms; red above zero, as energies are coloured.

    values : by the residue's name, `A:LEU4` or `A:LEU:4`

    Raises InputError for atoms without labels, a residue that the molecule lacks, and values for no residue at the
    surface.
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
        raise InputError("no residue with a value reaches the surface; give values of others, too")
    return Colouring(at_surface, end or _round_end(of_residue), unit, "residue value", RED_TO_BLUE[::-1])


def _round_end(values: Floats) -> float:
    """Choose the end of the colours: a round number."""
    magnitudes = np.abs(values[~np.isnan(values)])
    end = float(np.percentile(magnitudes, _PERCENTILE)) or float(magnitudes.max()) or 1.0
    return float(f"{min(max(end, LEAST_END), MOST_END):.0e}")
