"""Parameters of PELE's SGB solvents: four figures of the templates, and 1/eps inside by residue and atom.

Dielectric constants: Zhu et al., J. Chem. Theory Comput. 3, 2108 (2007), as PELE's manual lists them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..atoms import Floats, Ints
from .templates import Template

_RING = ("CG", "ND1", "HD1", "CD2", "HD2", "CE1", "HE1", "NE2", "HE2")
# 1/eps by residue; atoms that are not named have 1.
_INVERSE_DIELECTRICS: dict[str, tuple[float, tuple[str, ...]]] = {
    "LYS": (1 / 4, ("NZ", "HZ1", "HZ2", "HZ3")),
    "ARG": (1 / 2, ("CZ", "NE", "HE", "NH1", "NH2", "HH11", "HH12", "HH21", "HH22")),
    "HIS": (1 / 2, _RING),
    "HID": (1 / 2, _RING),
    "HIE": (1 / 2, _RING),
    "HIP": (1 / 3, _RING),
    "ASP": (1 / 4, ("CG", "OD1", "OD2")),
    "GLU": (1 / 3, ("CD", "OE1", "OE2")),
}
_START = (1 / 4, ("N", "H1", "H2", "H3"))  # of a chain, whose nitrogen is charged


def sgb_parameters(used: Sequence[Template], index: Ints) -> Floats | None:
    """Figures of Atoms.sgb, (n, 5), of the atoms of all used templates at these indices (n,); NaN for those without.

    None where no template has any.

    Sources: the templates; PELE's manual, energy function, for 1/eps.
    """
    if all(t.sgb is None for t in used):
        return None
    figures = [np.full((len(t), 4), np.nan) if t.sgb is None else t.sgb for t in used]
    inverse = [value for t in used for value in _inverse_dielectrics(t)]
    return np.column_stack([np.concatenate(figures), inverse])[index]


def _inverse_dielectrics(template: Template) -> list[float]:
    """1/eps of each atom of a template."""
    base = template.name[:3]
    value, names = _INVERSE_DIELECTRICS.get(base, (1.0, ()))
    at_start = template.name[3:] in ("B", "Z") and "CA" in template.names and "H2" in template.names
    return [
        _START[0] if at_start and name in _START[1] else value if name in names else 1.0 for name in template.names
    ]
