"""Conversion of an OpenMM System to Atoms. Each force is converted, ignored with a note, or rejected."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ...atoms import Atoms, Floats, Ints, Labels, Residue
from ...common.arguments import instance, numbers
from ...common.errors import InputError
from ...common.extras import extra
from . import bonded_forces, gb_forces, nonbonded_forces
from .bonded_forces import bonded_tables, wrapping_notes
from .forces import A_PER_NM, Forces
from .gb_forces import gb_parameters
from .nonbonded_forces import nonbonded_parameters
from .sites import rigid_pairs_of, sites_of

if TYPE_CHECKING:
    from openmm import System
    from openmm.app import Topology

_READ = (*bonded_forces.READ, *nonbonded_forces.READ, *gb_forces.READ)
_PASSED_OVER = {
    "CMMotionRemover": "",
    "MonteCarloBarostat": "",
    "AndersenThermostat": "",
    "LCPOForce": "the System's LCPO surface term is not read; the solvent model defines the surface term",
}


def from_openmm(topology: Topology, system: System, positions: ArrayLike, radii: str | None = None) -> Atoms:
    """Convert an OpenMM System to Atoms with all parameters. Requires the extra `openmm`.

    topology, system : Topology and System, for example from `ForceField.createSystem`
    positions : (n, 3) as a Quantity, or numbers in nm
    radii : name of a set for `Atoms.with_radii`; by default the radii of the GB force, or mbondi2 if there is none

    Supported forces are harmonic bonds, angles and impropers, periodic and Ryckaert-Bellemans torsions, CMAP,
    NonbondedForce with its exceptions, the custom Lennard-Jones forces that openmm.app creates for CHARMM (with NBFIX)
    and GROMACS, and GBSAOBCForce and the GB forces of openmm.app. Only radii and scale factors are read from a GB
    force; its model and dielectric constants are in `notes`, and can be selected with SolventModel.like("openmm",
    gb="gbn2", solvent_dielectric=78.3). The periodic box and cutoffs are ignored, with a note. Raises InputError for
    other forces, and if the masses in the System do not match the elements in the topology.

    >>> from openmm import app
    >>> pdb = app.PDBFile("data/structures/trialanine.pdb")
    >>> field = app.ForceField("amber14-all.xml", "implicit/obc2.xml")
    >>> pele_ocl.from_openmm(pdb.topology, field.createSystem(pdb.topology), pdb.positions)
    Atoms(33 atoms, 3 residues, 32 bonds, net charge +0.000 e)
    """
    library = extra("openmm", "an OpenMM System")
    instance("system", system, library.System, "an OpenMM System")
    instance("topology", topology, extra("openmm.app", "an OpenMM System").Topology, "a Topology of openmm.app")
    atoms = atoms_of_system(topology, system, positions, radii)
    _require_masses(system, atoms)
    if any(type(force).__name__ in gb_forces.READ for force in system.getForces()):
        return atoms
    vacuum = "the System has no Generalized Born force; `gb='none'` computes its energy without a solvent"
    return replace(atoms, notes=(*atoms.notes, vacuum))


def atoms_of_system(
    topology: Topology, system: System, positions: ArrayLike, radii: str | None = None, residues: Residues | None = None
) -> Atoms:
    """Convert an OpenMM System like `from_openmm`, without checking masses.

    residues : residues of the atoms, if the Topology does not have those of the file
    """
    n = system.getNumParticles()
    if topology.getNumAtoms() != n:
        raise InputError(
            f"the topology has {topology.getNumAtoms():,} atoms and the System {n:,}; give those of one system"
        )
    forces = _forces(system)
    bonds = topology_bonds(topology)
    if not len(bonds):  # a topology without bonds
        bonds = forces.pairs("HarmonicBondForce", "getNumBonds", "getBondParameters")
    labels = labels_of_topology(topology, residues)
    nonbonded = nonbonded_parameters(forces, n)
    bonded = bonded_tables(forces, bonds, nonbonded.one_four, nonbonded.excluded, nonbonded.lj_pairs)
    gb = gb_parameters(forces, topology, labels, bonds, nonbonded.charges, radii)
    return Atoms(
        positions=in_angstrom(positions, n),
        charges=nonbonded.charges,
        lj_sigma=nonbonded.sigma,
        lj_epsilon=nonbonded.epsilon,
        gb_radii=gb.radii,
        gb_scales=gb.scales,
        labels=labels,
        bonds=bonds,
        combining=nonbonded.combining,
        bonded=bonded,
        gb_radii_set=gb.name,
        default_radii=gb.default,
        virtual_sites=sites_of(system),
        rigid_pairs=rigid_pairs_of(system, forces.pairs("HarmonicBondForce", "getNumBonds", "getBondParameters")),
        notes=(*_notes(system, forces, bonds), *wrapping_notes(forces), *nonbonded.notes, *gb.notes),
    )


_OTHER_MASS = 0.5  # Da, above the differences between tables for an atom and its hydrogens
_HEAVY = 5.0  # Da, above repartitioned masses of hydrogens
_CANCELS = 0.05  # remaining fraction of the differences if masses are in another order


def _require_masses(system: System, atoms: Atoms) -> None:
    """Raise InputError if the masses in the System are those of the elements in another order.

    Masses may be repartitioned to hydrogens, 0, or arbitrary. If only the order differs, the differences cancel.
    """
    labels, bonds = atoms.labels, atoms.bonds
    assert labels is not None
    unit = extra("openmm", "an OpenMM System").unit
    masses = np.array([system.getParticleMass(i).value_in_unit(unit.dalton) for i in range(len(labels))])
    weights = np.array([_weight(symbol) for symbol in labels.elements.tolist()])
    known = (masses > 0) & (weights > 0)
    masses, weights = np.where(known, masses, 0.0), np.where(known, weights, 0.0)
    is_hydrogen = np.isin(labels.elements, ("H", "D"))
    group, ends = np.arange(len(labels)), np.concatenate([bonds, bonds[:, ::-1]])
    ends = ends[is_hydrogen[ends[:, 0]] & ~is_hydrogen[ends[:, 1]]]
    group[ends[:, 0]] = ends[:, 1]  # group hydrogens with their bonded atom
    differences = np.bincount(group, masses - weights, len(labels))
    far = np.abs(differences) > _OTHER_MASS
    if abs(differences[far].sum()) > _CANCELS * np.abs(differences[far]).sum():
        far[:] = False
    wrong = far | (is_hydrogen & (masses > _HEAVY) & (np.abs(differences[group]) <= _OTHER_MASS))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InputError(
            f"atom {i} ({labels.atom(i)}) of the topology is {labels.elements[i]}, but the mass of the particle of "
            f"the System is {masses[i]:.4g} Da; give the topology from which the System was created, with its atoms "
            "in the same order"
        )


@lru_cache(maxsize=256)
def _weight(symbol: str) -> float:
    """Return the mass of an element, Da; 0 if it is unknown."""
    import gemmi

    element = gemmi.Element(symbol)
    return float(element.weight) if element.atomic_number else 0.0


def in_angstrom(positions: ArrayLike, n: int) -> Floats:
    """Convert an OpenMM Quantity, or numbers in nm, to positions (n, 3) A."""
    unit = extra("openmm", "an OpenMM System").unit
    in_nm = getattr(positions, "value_in_unit", None)
    rows = numbers("positions", positions if in_nm is None else in_nm(unit.nanometer))
    found = A_PER_NM * rows.reshape(-1, 3)
    if len(found) != n:
        raise InputError(f"there are positions of {len(found):,} atoms for a System of {n:,}; give those of all atoms")
    return found


@dataclass(frozen=True)
class Residues:
    """Residues of atoms.

    index : (n,) index of the residue of each atom; each : the residues, in the order of the atoms
    """

    index: Sequence[int]
    each: Sequence[Residue]


def labels_of_topology(topology: Topology, residues: Residues | None = None) -> Labels:
    """Return the Labels of an OpenMM Topology. Residues without a number are numbered from 1.

    residues : replaces the residues of the Topology
    """
    found = list(topology.residues())
    atoms = [atom for residue in found for atom in residue.atoms()]
    if [atom.index for atom in atoms] != list(range(len(atoms))):
        atoms = list(topology.atoms())
    if residues is None:
        order = {residue: k for k, residue in enumerate(found)}
        residues = Residues(
            [order[atom.residue] for atom in atoms],
            [
                Residue(str(of.chain.id or "").strip(), of.name, *numbered(of.id, of.insertionCode, k + 1))
                for k, of in enumerate(found)
            ],
        )
    rows = [residues.each[k] for k in residues.index]
    return Labels(
        names=np.array([atom.name for atom in atoms], np.str_),
        elements=np.array([atom.element.symbol if atom.element is not None else "X" for atom in atoms], np.str_),
        residue_names=np.array([of.name for of in rows], np.str_),
        residue_numbers=np.array([of.number for of in rows], np.int32),
        insertion_codes=np.array([of.insertion_code for of in rows], np.str_),
        chains=np.array([of.chain for of in rows], np.str_),
        residue_index=np.array(residues.index, np.int32),
    )


def topology_bonds(topology: Topology) -> Ints:
    """Return the bonds of an OpenMM Topology, (m, 2), i < j and sorted."""
    pairs = np.array([sorted((a.index, b.index)) for a, b in topology.bonds()], np.int32).reshape(-1, 2)
    return np.unique(pairs, axis=0).astype(np.int32)


_NUMBER = re.compile(r"(-?\d{1,9})([A-Za-z]?)")


def numbered(text: object, insertion_code: object, otherwise: int) -> tuple[int, str]:
    """Split a residue identifier such as `52` or `52A` into the number and the insertion code.

    insertion_code : insertion code if it is stored separately; otherwise : number if the text contains none
    """
    found = _NUMBER.fullmatch(str(text).strip())
    code = str(insertion_code or "").strip()
    return (otherwise, code) if found is None else (int(found[1]), code or found[2])


def _forces(system: System) -> Forces:
    """Group the forces by class. Raises InputError for unsupported forces."""
    found = defaultdict(list)
    for force in system.getForces():
        name = type(force).__name__
        if name not in _READ and name not in _PASSED_OVER:
            raise InputError(
                f"the System has a {name}{_called(force, name)}, which is not supported; remove "
                "that force from the System, or create one with a fixed-charge force field"
            )
        found[name].append(force)
    return Forces(dict(found))


def _called(force: object, kind: str) -> str:
    name = getattr(force, "getName", str)()
    return f" ({name})" if name not in ("", kind) else ""


def _notes(system: System, forces: Forces, bonds: Ints) -> Iterator[str]:
    for name, sentence in _PASSED_OVER.items():
        if sentence and forces.of(name):
            yield sentence
    if system.usesPeriodicBoundaryConditions():
        yield "the System is periodic; its box and cutoffs are not used: each pair is computed once"
    sites = sum(system.isVirtualSite(i) for i in range(system.getNumParticles()))
    if sites:
        yield (
            f"{sites:,} particles are virtual sites; energies use the given positions; functions that move atoms "
            "recompute them"
        )
    held_fast = {tuple(sorted(system.getConstraintParameters(k)[:2])) for k in range(system.getNumConstraints())}
    constrained = held_fast & set(map(tuple, bonds.tolist()))
    if not constrained:
        return
    held = forces.pairs("HarmonicBondForce", "getNumBonds", "getBondParameters")
    lost = len(constrained - set(map(tuple, held.tolist())))
    if lost:
        yield (
            f"{lost:,} bonds are constrained in the System and have no bond energy; to "
            "include it, create the System with constraints=None and rigidWater=False"
        )
