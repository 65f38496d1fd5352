"""Default GB radii, which a SolventModel may replace by the set of its GB model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..common.errors import ParameterError, PeleError
from .labels import Floats, Ints, Labels
from .radii import RADII_SETS, radii_set

RadiiAndScales = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class DefaultRadii:
    """Default GB radii of atoms, if neither the file nor the user chose any, and the alternative sets.

    name : name of the default set
    labels, bonds : labels and bonds of the molecule as read, from which the other sets are computed
    tables : radii (n,) A and scale factors (n,) of sets that are not computed from elements and bonds, by name, or an
        error message if a set is not available
    indices : (k,) indices of these atoms in the molecule as read, None for all atoms in order
    notes : notes that apply only to the default set
    """

    name: str
    labels: Labels
    bonds: Ints
    tables: Mapping[str, RadiiAndScales | str] = field(default_factory=dict)
    indices: NDArray[np.intp] | None = None
    notes: tuple[str, ...] = ()
    _sets: dict[str, RadiiAndScales] = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_sets": {}}

    @property
    def lacking(self) -> str:
        """Why the default set is not available; "" if it is."""
        table = self.tables.get(self.name)
        return table if isinstance(table, str) else ""

    def of_atoms(self, indices: NDArray[np.intp]) -> DefaultRadii:
        """Return the default radii of other atoms, such as a subset or a mutant; indices : (k,) into these atoms"""
        return replace(self, indices=indices if self.indices is None else self.indices[indices])

    def joined(self, other: DefaultRadii, labels: Labels, bonds: Ints) -> DefaultRadii:
        """Return the default radii of two joined molecules. labels, bonds : of the joined molecule"""
        tables: dict[str, RadiiAndScales | str] = {}
        for name in RADII_SETS:
            try:
                pairs = zip(self.of_set(name), other.of_set(name), strict=True)
                tables[name] = tuple(np.concatenate(pair) for pair in pairs)  # type: ignore[assignment]
            except PeleError as error:
                tables[name] = str(error)
        return DefaultRadii(self.name, labels, bonds, tables, notes=(*self.notes, *other.notes))

    def of_set(self, name: str) -> RadiiAndScales:
        """Return the radii (k,) A and scale factors (k,) of a set.

        Raises ParameterError for a set without radii for these atoms, InputError for an unknown set.
        """
        if name not in self._sets:
            table = self.tables.get(name)
            if isinstance(table, str):
                raise ParameterError(table)
            radii, scales = table or radii_set(name, self.labels, self.bonds)
            which = slice(None) if self.indices is None else self.indices
            self._sets[name] = radii[which], scales[which]
        return self._sets[name]

    def has(self, name: str, radii: Floats | None, scales: Floats | None) -> bool:
        """Return whether radii (k,) A and scale factors (k,) are those of the named set, not values of the user."""
        if radii is None:
            return bool(self.lacking)
        if name not in RADII_SETS or isinstance(self.tables.get(name), str):
            return False
        own_radii, own_scales = self.of_set(name)
        return np.array_equal(radii, own_radii) and scales is not None and np.array_equal(scales, own_scales)
