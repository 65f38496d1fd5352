"""Generalized Born models: how Born radii are computed from Born integrals.

A model is an entry of GB_MODELS and a header cl/physics/radius_<function>.clh with its radius function and the
derivative. cl/physics/gb_radius.clh includes the header. docs/extend/gb-model.md has an example.
"""

from __future__ import annotations

from .elements import GBN, GBN2, GBN2_NUCLEIC
from .model import GBModel, Spheres
from .necks import Necks

__all__ = [
    "GB_MODELS",
    "GBModel",
    "Necks",
    "Spheres",
    "model_name",
    "models_listed",
]


GB_MODELS = {
    model.name: model
    for model in (
        GBModel(
            "none", "no solvent: the dielectric constant of the solute everywhere", "GB_RADIUS_HCT", is_unbounded=True,
            vacuum=True, igb=6,
        ),
        GBModel(
            "hct", "Hawkins, Cramer and Truhlar, J. Phys. Chem. 100, 19824 (1996)", "GB_RADIUS_HCT", is_unbounded=True,
            igb=1, radii_set="mbondi",
        ),
        GBModel(
            "obc1", "Onufriev, Bashford and Case, Proteins 55, 383 (2004), set I", "GB_RADIUS_OBC",
            alpha=0.8, beta=0.0, gamma=2.909125, igb=2, radii_set="mbondi2",
        ),
        GBModel(
            "obc2", "Onufriev, Bashford and Case, Proteins 55, 383 (2004), set II", "GB_RADIUS_OBC",
            alpha=1.0, beta=0.8, gamma=4.85, igb=5, radii_set="mbondi2",
        ),
        GBModel(
            "gbn", "Mongan et al., J. Chem. Theory Comput. 3, 156 (2007)", "GB_RADIUS_OBC",
            alpha=1.09511284, beta=1.90792938, gamma=2.50798245, neck_scale=0.361825, elements=GBN, igb=7,
            radii_set="bondi",
        ),
        GBModel(
            "gbn2", "Nguyen, Roe and Simmerling, J. Chem. Theory Comput. 9, 2020 (2013)", "GB_RADIUS_OBC",
            offset=0.195141, alpha=None, beta=None, gamma=None, neck_scale=0.826836, elements=GBN2,
            nucleic=GBN2_NUCLEIC, igb=8, radii_set="mbondi3",
        ),
        GBModel(
            "sgbnp", "Ghosh, Rapp and Friesner, J. Phys. Chem. B 102, 10983 (1998), as in PELE", "GB_RADIUS_SURFACE",
            offset=0.0, of_surface=True,
        ),
        GBModel(
            "vdgbnp", "Zhu et al., J. Chem. Theory Comput. 3, 2108 (2007), as in PELE", "GB_RADIUS_SURFACE",
            offset=0.0, of_surface=True, own_dielectrics=True,
        ),
    )
}  # fmt: skip


def model_name(gb: object) -> object:
    """Return the name of a model given as AMBER's number: "gbn2" for 8, "8" or "igb=8". Other values are unchanged.

    AMBER's number for no solvent, 6, is not converted: "none" changes which other options are allowed.
    """
    number = str(gb).removeprefix("igb=")
    known = {str(of.igb): name for name, of in GB_MODELS.items() if of.igb is not None and not of.vacuum}
    return known.get(number, gb)


def models_listed() -> str:
    """Return the names of all models with their AMBER igb numbers, for error messages."""
    return ", ".join(name if of.igb is None else f"{name} (igb={of.igb})" for name, of in GB_MODELS.items())
