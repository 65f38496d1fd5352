"""Assign SMIRNOFF force fields of the Open Force Field Initiative by the OpenFF Toolkit, if it is installed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from typing import TYPE_CHECKING, Any

from ..atoms import Atoms
from ..common.errors import InputError, ParameterError
from ..common.extras import extra
from ..forcefield.openmm.system import from_openmm
from ..formats.amber.writing import prmtop_text
from .settings import REPLACED

if TYPE_CHECKING:
    from .parametrisers import Molecule

KEEPS = True
CHARGES: Mapping[str, str] = {"gas": "Gasteiger's charges", "bcc": "AM1-BCC charges"}
_METHODS = {"gas": "gasteiger", "bcc": "am1bcc"}
_NAME = re.compile(r"(openff|smirnoff)[\w.-]*|.*\.offxml", re.IGNORECASE)
_RADII = "mbondi2"


def knows(forcefield: str) -> bool:
    """Return whether a force field is the name of an OpenFF force field."""
    return _NAME.fullmatch(forcefield) is not None


def check(forcefield: str, charges: str) -> None:
    """Raise InputError for charges that the toolkit does not support."""
    if charges not in CHARGES and charges not in REPLACED:
        raise InputError(f"{forcefield} supports the charges {' and '.join(CHARGES)}, not {charges!r}")


def version() -> str:
    """Return the version of the toolkit. Raises InputError if it is not installed."""
    _toolkit()
    try:
        return f"openff-toolkit {installed('openff-toolkit')}"
    except PackageNotFoundError:
        return "openff-toolkit"


def topology_of(ligand: Molecule, forcefield: str, charges: str, limit: float | None = None) -> bytes:
    """Compute the topology of a ligand; the toolkit does not support a time limit."""
    toolkit = _toolkit()
    try:
        molecule = toolkit.Molecule.from_rdkit(ligand.molecule, allow_undefined_stereo=True)
        molecule.assign_partial_charges(_METHODS[charges])
        field = toolkit.ForceField(forcefield if forcefield.endswith(".offxml") else f"{forcefield}.offxml")
        system = field.create_openmm_system(molecule.to_topology(), charge_from_molecules=[molecule])
    except Exception as error:  # the toolkit raises many unrelated classes
        why = " ".join(str(error).split())[:300]
        raise ParameterError(f"{ligand.source}: {forcefield} cannot assign parameters: {why}") from error
    atoms = from_openmm(_openmm_topology(ligand), system, ligand.positions / 10, _RADII)
    return prmtop_text(atoms, forcefield).encode()


def atoms_of(ligand: Molecule, forcefield: str) -> Atoms:
    """Raise NotImplementedError, since results are cached as topologies."""
    raise NotImplementedError


def told(forcefield: str, charges: str, topology: bytes) -> tuple[str, str]:
    """Return display names of force field and charges."""
    return forcefield, CHARGES.get(charges, "")


def _toolkit() -> Any:
    from importlib import import_module

    try:
        return import_module("openff.toolkit")
    except ImportError:
        raise InputError(
            "the force fields of OpenFF need its toolkit, which is not on PyPI: conda install -c conda-forge "
            "openff-toolkit; or choose 'gaff2'"
        ) from None


def _openmm_topology(ligand: Molecule) -> Any:
    """Return an OpenMM Topology with the ligand's atoms and bonds."""
    app: Any = extra("openmm.app", "a force field of OpenFF")
    topology = app.Topology()
    residue = topology.addResidue(ligand.residue_name, topology.addChain())
    labels = ligand.labels
    atoms = [
        topology.addAtom(str(name), app.Element.getBySymbol(str(of)), residue)
        for name, of in zip(labels.names, labels.elements, strict=True)
    ]
    for i, j in ligand.bonds.tolist():
        topology.addBond(atoms[i], atoms[j])
    return topology
