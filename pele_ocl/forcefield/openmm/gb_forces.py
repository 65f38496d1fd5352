"""Intrinsic radii and HCT scale factors from the Generalized Born force of an OpenMM System, or from a named set."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...atoms import DefaultRadii, Floats, Ints, Labels
from ...atoms.radii import BONDI_SETS, hct_scale, radii_set
from ...common.errors import InputError
from ...common.extras import extra
from .forces import A_PER_NM, Forces, terms

if TYPE_CHECKING:
    from openmm import CustomGBForce, GBSAOBCForce
    from openmm.app import Topology

READ = ("GBSAOBCForce", "CustomGBForce")  # classes of forces that this module reads
DEFAULT_SET = "mbondi2"
_HOME = "openmm.app.internal.customgbforces"  # the only module with radii and scale factors by element
# Part of the Born radius expression of each CustomGBForce in openmm.app, without blanks, and the name of the model.
_MODELS = {
    "1/(1/or-I)": "hct",
    "tanh(0.8*psi+2.909125*psi^3)": "obc1",
    "tanh(psi-0.8*psi^2+4.85*psi^3)": "obc2",
    "tanh(1.09511284*psi": "gbn",
    "tanh(alpha*psi-beta*psi^2+gamma*psi^3)": "gbn2",
}
_WITH_OWN_SCALES = ("gbn", "gbn2")  # with scale factors by element that belong to the model
_OFFSET_NM = re.compile(r"offset=(0\.\d+)")


@dataclass(frozen=True, eq=False)
class GBParameters:
    """GB parameters of a System.

    radii, scales : (n,) A and (n,), None if there are none; name : name of the set
    default : DefaultRadii if the set is a default
    """

    radii: Floats | None
    scales: Floats | None
    name: str
    notes: tuple[str, ...] = ()
    default: DefaultRadii | None = None


def gb_parameters(
    forces: Forces, topology: Topology, labels: Labels, bonds: Ints, charges: Floats, radii: str | None = None
) -> GBParameters:
    """Read the GB parameters of a System.

    charges : (n,) e, which must agree with those of the GB force
    radii : a name in RADII_SETS; by default the radii of the GB force, or mbondi2 if there is none

    Raises InputError for several GB forces, a CustomGBForce that is not one of openmm.app's, and inconsistent charges.
    """
    if radii is not None:
        return GBParameters(*radii_set(radii, labels, bonds), radii)
    found = [*forces.of("GBSAOBCForce"), *forces.of("CustomGBForce")]
    if len(found) > 1:
        raise InputError(f"the System has {len(found)} Generalized Born forces; expected one, or none")
    if not found:
        try:
            default = DefaultRadii(DEFAULT_SET, labels, bonds)
            return GBParameters(*default.of_set(DEFAULT_SET), DEFAULT_SET, default=default)
        except InputError as error:
            return GBParameters(None, None, "", (str(error),))
    force = found[0]
    if type(force).__name__ == "GBSAOBCForce":
        rows = terms(force, "getNumParticles", "getParticleParameters", 3)
        model, own, scales = "obc2", rows[:, 1] * A_PER_NM, rows[:, 2]
    else:
        model, rows, own, scales = _custom(force)
    if np.abs(rows[:, 0] - charges).max(initial=0) > 1e-6:
        raise InputError(
            "the charges of the Generalized Born force and the NonbondedForce differ; use the same charges in both"
        )
    notes = [
        f"the System's Generalized Born model is {model}{_dielectric(force)}; its radii are used, and "
        f"`like='openmm'` with `gb='{model}'` computes its energy"
    ]
    if model in _WITH_OWN_SCALES:
        notes += _unusual(topology, model, rows, scales)
        scales = _element_scales(labels)
    return GBParameters(own, scales, set_of(own, labels, bonds), tuple(notes))


def _dielectric(force: GBSAOBCForce | CustomGBForce) -> str:
    """Return ` with solvent dielectric 78.3`, or "" if the force does not contain it."""
    if hasattr(force, "getSolventDielectric"):
        return f" with solvent dielectric {force.getSolventDielectric():g}"
    for k in range(force.getNumGlobalParameters()):
        if force.getGlobalParameterName(k) == "solventDielectric":
            return f" with solvent dielectric {force.getGlobalParameterDefaultValue(k):g}"
    return ""


def _element_scales(labels: Labels) -> Floats:
    return np.array([hct_scale(symbol) for symbol in labels.elements.tolist()])


def _custom(force: CustomGBForce) -> tuple[str, Floats, Floats, Floats]:
    """Return the model, the raw parameters, the radii (n,) A and the scales (n,) of a CustomGBForce of openmm.app."""
    names = [force.getPerParticleParameterName(p) for p in range(force.getNumPerParticleParameters())]
    values = [force.getComputedValueParameters(k) for k in range(force.getNumComputedValues())]
    born = re.sub(r"\s", "", next((expression for name, expression, _ in values if name == "B"), ""))
    model = next((model for part, model in _MODELS.items() if part in born), None)
    terms_of_energy = [force.getEnergyTermParameters(k)[0] for k in range(force.getNumEnergyTerms())]
    offset = _OFFSET_NM.search(";".join([*(expression for _, expression, _ in values), *terms_of_energy]))
    if model is None or offset is None or names[:3] != ["charge", "or", "sr"]:
        raise InputError(
            f"the System has a CustomGBForce ({force.getName()}) that is not one of openmm.app's (HCT, OBC1, OBC2, "
            "GBn, GBn2); remove it from the System and choose a model here"
        )
    rows = terms(force, "getNumParticles", "getParticleParameters", len(names))
    return model, rows, (rows[:, 1] + float(offset[1])) * A_PER_NM, rows[:, 2] / rows[:, 1]


def _unusual(topology: Topology, model: str, rows: Floats, scales: Floats) -> list[str]:
    """Return a note if scale factors or coefficients differ from the standard ones of the model."""
    standard = getattr(extra(_HOME, "a set of GB radii"), {"gbn": "GBSAGBnForce", "gbn2": "GBSAGBn2Force"}[model])
    try:
        own = np.asarray(standard.getStandardParameters(topology), np.float64)[:, 1:]
    except IndexError:
        return []
    there = np.column_stack([scales, rows[:, 3:6]]) if model == "gbn2" else scales[:, None]
    n = int((np.abs(there - own).max(axis=1) > 1e-6).sum())
    return (
        [f"{n:,} atoms have scales or coefficients other than those of {model} for their elements; {model}'s are used"]
        if n
        else []
    )


def set_of(radii: Floats, labels: Labels, bonds: Ints) -> str:
    """Return `file`, followed by the name of a set if the radii match it."""
    for name in BONDI_SETS if len(bonds) else ():
        if np.allclose(radii_set(name, labels, bonds)[0], radii, rtol=0, atol=1e-6):
            return f"file ({name})"
    return "file"
