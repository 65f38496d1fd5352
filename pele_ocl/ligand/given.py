"""Read user-supplied parameters of a molecule from an OpenMM XML file, an AMBER topology or a PELE template.

Atoms are matched by elements and bonds, so that they may have any order and names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms, Labels, Structure
from ..atoms.graphs import Graph, Indices, Matching, difference
from ..common.errors import InputError, ParameterError, PeleError
from ..forcefield import ForceField
from ..forcefield.templates import read_template
from ..formats.structures import is_topology, read_topology

if TYPE_CHECKING:
    from .parametrisers import Molecule

KEEPS = False
CHARGES: Mapping[str, str] = {}
_SUFFIXES = (".xml", ".prmtop", ".parm7", ".top")


def knows(forcefield: str) -> bool:
    """Return whether a force field is the path of a parameter file."""
    return forcefield.lower().endswith(_SUFFIXES) or (Path(forcefield).is_file() and not forcefield.endswith(".offxml"))


def check(forcefield: str, charges: str) -> None:
    """Raise InputError if the file is missing."""
    if not Path(forcefield).is_file():
        raise InputError(f"{forcefield}: no such file; give the file with the molecule's parameters")


def version() -> str:
    """Return "", since nothing is cached."""
    return ""


def topology_of(ligand: Molecule, forcefield: str, charges: str, limit: float | None = None) -> bytes:
    """Raise NotImplementedError, since the file is read each time."""
    raise NotImplementedError


def told(forcefield: str, charges: str, topology: bytes) -> tuple[str, str]:
    """Return display names of force field and charges."""
    return forcefield, "its charges"


def atoms_of(ligand: Molecule, forcefield: str) -> Atoms:
    """Return atoms with the parameters of the file. Raises ParameterError if it describes another molecule."""
    path = Path(forcefield)
    if path.suffix.lower() == ".xml":
        return _by_field(ligand, ForceField.load(forcefield), ligand.labels)
    if is_topology(path):
        found = read_topology(path).parameters
        assert found.labels is not None
        order = _order(ligand, Graph.of(found.labels.elements.tolist(), found.bond_pairs), forcefield)
        return found[order].moved(ligand.positions)
    template = read_template(path)
    order = _order(ligand, Graph.of(template.elements, template.bonds), forcefield)
    name = template.name.removesuffix("Z") or template.name
    own = ligand.labels
    labels = replace(
        own, names=np.array([template.names[k] for k in order]), residue_names=np.full(len(own), name)
    )  # fmt: skip
    return _by_field(ligand, ForceField.load(templates=[path], guess_radii=True), labels)


def _by_field(ligand: Molecule, field: ForceField, labels: Labels) -> Atoms:
    n, zero = len(labels), np.zeros(1, np.int32)
    structure = Structure(ligand.positions, labels, zero, np.ones(1, np.bool_), np.zeros(n, np.int32), ligand.source)
    try:
        return field.assign(structure)
    except PeleError as error:
        raise ParameterError(f"{ligand.source}: {field.name} has no parameters for it: {error}") from error


def _order(ligand: Molecule, theirs: Graph, source: str) -> Indices:
    """Return the file's atom for each atom of the ligand. Raises ParameterError if they do not match."""
    ours = Graph.of(ligand.elements, ligand.bonds)
    found = Matching(ours, theirs).best()
    if found is None:
        names = {k: str(name) for k, name in enumerate(ligand.labels.names)}
        raise ParameterError(
            f"{source}: contains the parameters of a molecule other than {ligand.source}: "
            f"{difference(ours, theirs, names)}"
        )
    return found
