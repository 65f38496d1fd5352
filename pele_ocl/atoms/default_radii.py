"""GB radii that nobody chose: a reader's default, which a GB model may replace by the set that it was made with."""

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
    """The default GB radii of atoms whose file has none and whose reader was told none, and the sets beside them.

    name : of the default set
    labels, bonds : of the molecule as it was read, by which the other sets follow
    tables : radii (n,) A and scales (n,) of sets that do not follow from elements and bonds, by name; or why there are
        none, a sentence
    indices : (k,) the atoms of that molecule whose radii these atoms have, None for all in order
    notes : sentences that hold of the default set alone
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
        """Why there are no radii of the default set, "" if there are."""
        table = self.tables.get(self.name)
        return table if isinstance(table, str) else ""

    def of_atoms(self, indices: NDArray[np.intp]) -> DefaultRadii:
        """Make the radii of other atoms, which have those of these atoms, by index (k,): of a part, or a mutant."""
        return replace(self, indices=indices if self.indices is None else self.indices[indices])

    def joined(self, other: DefaultRadii, labels: Labels, bonds: Ints) -> DefaultRadii:
        """Make the radii of two molecules as one. labels, bonds : of both together"""
        tables: dict[str, RadiiAndScales | str] = {}
        for name in RADII_SETS:
            try:
                pairs = zip(self.of_set(name), other.of_set(name), strict=True)
                tables[name] = tuple(np.concatenate(pair) for pair in pairs)  # type: ignore[assignment]
            except PeleError as error:
                tables[name] = str(error)
        return DefaultRadii(self.name, labels, bonds, tables, notes=(*self.notes, *other.notes))

    def of_set(self, name: str) -> RadiiAndScales:
        """Radii (k,) A and scales (k,) of a set, by name.

        Raises ParameterError for a set that lacks atoms, InputError for a name that is not a set.
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
        """Return whether radii (k,) A and scales (k,) are the set of that name, and not a user's own under the same
        name."""
        if radii is None:
            return bool(self.lacking)
        if name not in RADII_SETS or isinstance(self.tables.get(name), str):
            return False
        own_radii, own_scales = self.of_set(name)
        return np.array_equal(radii, own_radii) and scales is not None and np.array_equal(scales, own_scales)
