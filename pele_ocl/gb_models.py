"""Generalized Born models: how the Born radii of atoms follow from their Born integrals.

A model is an entry of GB_MODELS and a header cl/physics/radius_<function>.clh with its radius function and slope, which
cl/physics/gb_radius.clh includes. docs/extend/gb-model.md adds one.
"""

from __future__ import annotations

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
