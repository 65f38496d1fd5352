"""Element-dependent parameters of GB models: HCT scale factors and coefficients of the radius function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..atoms.chemistry import tidy_element
from ..atoms.selection.kinds import residue_kinds
from ..common.errors import InputError, ParameterError

Coefficients = tuple[float, float, float]


@dataclass(frozen=True)
class Elements:
    """Parameters of a GB model by element symbol.

    scales : HCT scale factors; other_scale : scale factor of all other elements
    coefficients : alpha, beta, gamma; other_coefficients : those of all other elements
    """

    scales: Mapping[str, float]
    other_scale: float = 0.5
    coefficients: Mapping[str, Coefficients] = field(default_factory=dict)
    other_coefficients: Coefficients = (1.0, 0.8, 4.851)  # as in AMBER and OpenMM; OBC has a gamma of 4.85

    @property
    def has_negative(self) -> bool:
        """True if any scale is negative."""
        return min(self.scales.values()) < 0

    def scales_of(self, symbols: list[str]) -> Floats:
        """Return the HCT scale factors for element symbols, (n,)."""
        return np.array([self.scales.get(symbol, self.other_scale) for symbol in symbols], np.float64)

    def coefficients_of(self, symbols: list[str]) -> Floats:
        """Return alpha, beta and gamma for element symbols, (n, 3)."""
        found = [self.coefficients.get(symbol, self.other_coefficients) for symbol in symbols]
        return np.array(found, np.float64).reshape(-1, 3)


GBN = Elements({"H": 1.09085413633, "C": 0.484353823306, "N": 0.700147318409, "O": 1.06557401132, "S": 0.602256336067})
_GBN2_OXYGEN = (0.867814, 0.876635, 0.387882)
GBN2 = Elements(
    {"H": 1.425952, "C": 1.058554, "N": 0.733599, "O": 1.061039, "S": -0.703469},
    coefficients={
        "H": (0.788440, 0.798699, 0.437334),
        "C": (0.733756, 0.506378, 0.205844),
        "N": (0.503364, 0.316828, 0.192915),
        "O": _GBN2_OXYGEN,
        "S": _GBN2_OXYGEN,
    },
)
_NUCLEIC_OXYGEN = (0.606344, 0.463006, 0.142262)
GBN2_NUCLEIC = Elements(
    {"H": 1.696538, "C": 1.268902, "N": 1.4259728, "O": 0.1840098, "P": 1.5450597, "S": 0.05},
    coefficients={
        "H": (0.537050, 0.362861, 0.116704),
        "C": (0.331670, 0.196842, 0.093422),
        "N": (0.686311, 0.463189, 0.138722),
        "O": _NUCLEIC_OXYGEN,
        "S": _NUCLEIC_OXYGEN,
        "P": (0.418365, 0.290054, 0.1064245),
    },
)


def symbols_of(atoms: Atoms, model: str) -> list[str]:
    """Return the element symbols of atoms, (n,), with H for deuterium. model : name of the GB model, for messages

    Raises InputError for atoms without labels, ParameterError for an atom of unknown element.
    """
    if atoms.labels is None:
        raise InputError(
            f"{model} has parameters by element and residue, but these atoms have no labels; read them from a "
            "file with names, or give Atoms(labels=...)"
        )
    unknown = atoms.labels.elements == "X"
    if unknown.any():
        i = int(np.argmax(unknown))
        raise ParameterError(
            f"the element of {atoms.describe(i)} is not known, but {model} has parameters by element; add the element "
            "to the file"
        )
    given = atoms.labels.elements.tolist()
    tidy = {symbol: tidy_element(symbol) for symbol in set(given)}
    return [tidy[symbol] for symbol in given]


def is_nucleic(atoms: Atoms) -> NDArray[np.bool_]:
    """Return a mask of the atoms in nucleotides, (n,), by `residue_kinds`; the atoms must have labels."""
    assert atoms.labels is not None
    starts = atoms.labels.residue_starts
    return np.repeat(residue_kinds(atoms.labels) == "nucleic", np.diff(starts, append=len(atoms)))
