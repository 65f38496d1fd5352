"""Conversion of an OpenMM System to Atoms: each force is read, noted and passed over, or refused by its name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ...atoms import Atoms, Floats, Ints, Labels
from ...common.arguments import instance, numbers
from ...common.errors import InputError
from ...common.extras import extra
from .bonded_forces import bonded_tables, wrapping_notes
from .forces import A_PER_NM, Forces
from .gb_forces import gb_parameters
from .nonbonded_forces import nonbonded_parameters
from .sites import rigid_pairs_of, sites_of

if TYPE_CHECKING:
    from openmm import System
    from openmm.app import Topology

_READ = frozenset(
    "HarmonicBondForce HarmonicAngleForce PeriodicTorsionForce RBTorsionForce CMAPTorsionForce CustomTorsionForce "
    "NonbondedForce CustomNonbondedForce CustomBondForce GBSAOBCForce CustomGBForce".split()
)
_PASSED_OVER = {
    "CMMotionRemover": "",
    "MonteCarloBarostat": "",
    "AndersenThermostat": "",
    "LCPOForce": "the System's LCPO surface term is not read; the solvent model says which surface term is computed",
}


def from_openmm(topology: Topology, system: System, positions: ArrayLike, radii: str | None = None) -> Atoms:
    """Make the atoms of an OpenMM System with all its parameters, in its order; needs the extra `openmm`.

    topology, system : of openmm.app and openmm, as `createSystem` made them
    positions : (n, 3), a Quantity, or numbers in nm
    radii : name of a set, as `with_radii` has them; by default the System's GB force's, or mbondi2 without one

    It reads harmonic bonds, angles and impropers, periodic and Ryckaert-Bellemans torsions, CMAP, and the
    NonbondedForce with its exceptions. It also reads Lennard-Jones as openmm.app writes it for CHARMM (with NBFIX) and
    GROMACS, GBSAOBC and openmm.app's own GB forces. A GB force gives radii and scales, not its model and dielectrics.
    `notes` name these, and SolventModel.like("openmm", gb="gbn2", solvent_dielectric=78.3) chooses. Box and cutoffs are
    not used, as a note says. Raises InputError for any other force, by its name.
    """
    library = extra("openmm", "an OpenMM System")
    instance("system", system, library.System, "an OpenMM System")
    instance("topology", topology, extra("openmm.app", "an OpenMM System").Topology, "a Topology of openmm.app")
    n = system.getNumParticles()
    if topology.getNumAtoms() != n:
        raise InputError(f"the topology has {topology.getNumAtoms():,} atoms and the System {n:,}; give those of one")
    forces = _forces(system)
    bonds = topology_bonds(topology)
    if not len(bonds):  # a topology made by hand
        bonds = forces.pairs("HarmonicBondForce", "getNumBonds", "getBondParameters")
    labels = labels_of_topology(topology)
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
        virtual_sites=sites_of(system),
        rigid_pairs=rigid_pairs_of(system, forces.pairs("HarmonicBondForce", "getNumBonds", "getBondParameters")),
        notes=(*_notes(system, forces, bonds), *wrapping_notes(forces), *nonbonded.notes, *gb.notes),
    )


def in_angstrom(positions: ArrayLike, n: int) -> Floats:
    """Positions (n, 3) A of an OpenMM Quantity, or of plain numbers, which OpenMM takes for nm."""
    unit = extra("openmm", "an OpenMM System").unit
    in_nm = getattr(positions, "value_in_unit", None)
    rows = numbers("positions", positions if in_nm is None else in_nm(unit.nanometer))
    found = A_PER_NM * rows.reshape(-1, 3)
    if len(found) != n:
        raise InputError(f"there are positions of {len(found):,} atoms for a System of {n:,}; give those of all atoms")
    return found


def labels_of_topology(topology: Topology) -> Labels:
    """Read the names in an OpenMM Topology; residues without a number are counted from 1."""
    residues = list(topology.residues())
    atoms = [atom for residue in residues for atom in residue.atoms()]
    if [atom.index for atom in atoms] != list(range(len(atoms))):
        atoms = list(topology.atoms())
    numbers = [_number(residue.id, k + 1) for k, residue in enumerate(residues)]
    order = {residue: k for k, residue in enumerate(residues)}
    index = [order[atom.residue] for atom in atoms]
    return Labels(
        names=np.array([atom.name for atom in atoms], np.str_),
        elements=np.array([atom.element.symbol if atom.element is not None else "X" for atom in atoms], np.str_),
        residue_names=np.array([residues[r].name for r in index], np.str_),
        residue_numbers=np.array([numbers[r] for r in index], np.int32),
        insertion_codes=np.array([(residues[r].insertionCode or "").strip() for r in index], np.str_),
        chains=np.array([str(residues[r].chain.id or "").strip() for r in index], np.str_),
        residue_index=np.array(index, np.int32),
    )


def topology_bonds(topology: Topology) -> Ints:
    """(m, 2) bonds of an OpenMM Topology, i < j and sorted."""
    pairs = np.array([sorted((a.index, b.index)) for a, b in topology.bonds()], np.int32).reshape(-1, 2)
    return np.unique(pairs, axis=0).astype(np.int32)


def _number(text: object, otherwise: int) -> int:
    try:
        return int(str(text))
    except ValueError:
        return otherwise


def _forces(system: System) -> Forces:
    """Sort the forces by class; raise InputError for one that is not known."""
    found = defaultdict(list)
    for force in system.getForces():
        name = type(force).__name__
        if name not in _READ and name not in _PASSED_OVER:
            raise InputError(
                f"the System has a {name}{_called(force, name)}, which is not computed here; "
                "remove that force from the System, or make one of a fixed-charge force field"
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
        yield "the System is periodic; its box and cutoffs are not used: all pairs are computed, once"
    sites = sum(system.isVirtualSite(i) for i in range(system.getNumParticles()))
    if sites:
        yield (
            f"{sites:,} particles are virtual sites; energies are of the positions given, and what moves atoms places "
            "them"
        )
    held_fast = {tuple(sorted(system.getConstraintParameters(k)[:2])) for k in range(system.getNumConstraints())}
    constrained = held_fast & set(map(tuple, bonds.tolist()))
    if not constrained:
        return
    held = forces.pairs("HarmonicBondForce", "getNumBonds", "getBondParameters")
    lost = len(constrained - set(map(tuple, held.tolist())))
    if lost:
        yield (
            f"{lost:,} bonds are constrained in the System and have no bond energy; "
            "create it with constraints=None and rigidWater=False to have it"
        )
