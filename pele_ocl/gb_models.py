"""Generalized Born models: how the Born radii of atoms follow from their Born integrals.

A model is an entry of GB_MODELS and a header cl/physics/radius_<function>.clh with its radius function and slope, which
cl/physics/gb_radius.clh includes. docs/extend/gb-model.md adds one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .atoms import Floats


@dataclass(frozen=True)
class GBModel:
    """A Generalized Born model over HCT integrals.

    name : by which users choose it
    source : the paper that defines it
    function : the macro of cl/physics/gb_radius.clh that selects its radius function
    offset : A, taken off each radius; of a model's own, a user may set another
    alpha, beta, gamma : coefficients of the radius function, likewise; 0 where it has none
    """

    name: str
    source: str
    function: str
    offset: float = 0.09
    alpha: float = 0.0
    beta: float = 0.0
    gamma: float = 0.0

    @property
    def definitions(self) -> dict[str, int]:
        """The build definitions of all kernels that compute Born radii."""
        return {self.function: 1}

    def spheres(self, radii: Floats, scales: Floats, offset: float) -> tuple[Floats, Floats]:
        """Offset radii and scaled radii of the HCT integral, (n,) A, from intrinsic radii (A) and overlap scales."""
        rho = radii - offset
        return rho, scales * rho


GB_MODELS = {
    model.name: model
    for model in (
        GBModel("hct", "Hawkins, Cramer and Truhlar, J. Phys. Chem. 100, 19824 (1996)", "GB_RADIUS_HCT"),
        GBModel(
            "obc1", "Onufriev, Bashford and Case, Proteins 55, 383 (2004), set I", "GB_RADIUS_OBC",
            alpha=0.8, beta=0.0, gamma=2.909125,
        ),
        GBModel(
            "obc2", "Onufriev, Bashford and Case, Proteins 55, 383 (2004), set II", "GB_RADIUS_OBC",
            alpha=1.0, beta=0.8, gamma=4.85,
        ),
    )
}  # fmt: skip

# The sets of radii that models were made with, by which AMBER's users choose them; the neck models with no other.
AMBER_RADII = {"hct": "mbondi", "obc1": "mbondi2", "obc2": "mbondi2", "gbn": "bondi", "gbn2": "mbondi3"}
_NECK_MODELS = ("gbn", "gbn2")


def default_radii(gb: str | None, like: str | None = None) -> str | None:
    """The set of GB radii for structures that bring none; None for that of the force field's table.

    gb : name of the model, None where there is none; like : program whose constants are wanted, as in SolventModel.like
    """
    if like == "pele":
        return "pele"
    return AMBER_RADII.get(gb or "") if like == "amber" or gb in _NECK_MODELS else None


def radii_note(gb: str, radii: str) -> str:
    """A sentence where a model was not made for a set of radii, else "".

    radii : name of the set, alone or within the longer one that tleap writes
    """
    made_for = AMBER_RADII.get(gb)
    named = re.findall(r"\b(m?bondi[23]?|openmm-obc|pele)\b", radii)
    if gb not in _NECK_MODELS or named[-1:] == [made_for]:
        return ""
    return f"the GB model {gb} was made with the radii {made_for}, not with {radii or 'those of no named set'}"
