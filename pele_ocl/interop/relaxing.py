"""Relaxation of added atoms: correction of bond lengths to hydrogens, and energy minimization."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms.close_pairs import close_pairs
from ..common.errors import InputError
from ..common.extras import extra
from .building import name as _name
from .building import positions_nm, quantity

if TYPE_CHECKING:
    from openmm import Platform, System
    from openmm.app import Topology
    from openmm.app.topology import Atom, Residue
    from pdbfixer import PDBFixer

Key = tuple[str, str, str, str]
_STEPS = 200  # maximum iterations of the minimizer
# Bond lengths to hydrogen in force fields, A. They are shorter in X-ray structures, which show the electron density.
_LENGTH_A = {"C": 1.09, "N": 1.01, "O": 0.96, "S": 1.34}
_OFF = 0.05  # relative tolerance of bond lengths
_GAP_NM = 0.4  # minimum distance of linking atoms at a gap
_POLAR_NM, _POLAR_DEPTH = 0.04, 0.1925  # sigma and epsilon of polar hydrogens in CHARMM36, nm and kJ/mol
# OpenMM's names of bonded terms, and their numbers of atoms.
_BONDED = {"HarmonicBond": ("Bond", 2), "HarmonicAngle": ("Angle", 3), "PeriodicTorsion": ("Torsion", 4)}
# Sigma of heavy atoms and of hydrogens, and epsilon, in residues without parameters, nm and kJ/mol.
_SPHERE_NM, _HYDROGEN_NM, _DEPTH = 0.3, 0.2, 0.4


def cpu() -> Platform:
    """Return OpenMM's CPU platform."""
    return extra("openmm", "preparing a structure").Platform.getPlatformByName("CPU")


def atom_keys(topology: Topology) -> set[Key]:
    """Return the keys of all atoms."""
    return {atom_key(atom) for atom in topology.atoms()}


def atom_key(atom: Atom) -> Key:
    """Return chain, residue number, insertion code and name, which identify an atom."""
    return atom.residue.chain.id, atom.residue.id, atom.residue.insertionCode, atom.name


def stretch(fixer: PDBFixer, there: set[Key]) -> int:
    """Correct bond lengths to hydrogens. Returns the number of corrected hydrogens that were in the file."""
    positions, n_moved = positions_nm(fixer), 0
    for bond in fixer.topology.bonds():
        light, heavy = sorted(bond, key=lambda atom: atom.element is None or atom.element.symbol != "H")
        if light.element is None or heavy.element is None or light.element.symbol != "H":
            continue
        along, usual = positions[light.index] - positions[heavy.index], _LENGTH_A.get(heavy.element.symbol, 0.0) / 10
        length = float(np.linalg.norm(along))
        if usual and length and abs(length - usual) > _OFF * usual:
            positions[light.index] = positions[heavy.index] + along * (usual / length)
            n_moved += atom_key(light) in there
    fixer.positions = quantity(positions.tolist())
    return n_moved


def relax(fixer: PDBFixer, there: set[Key], tell: Callable[[float], None]) -> list[str]:
    """Minimize the energy of added atoms. Returns the residues without parameters, which are not moved."""
    openmm, app = extra("openmm", "preparing a structure"), extra("openmm.app", "preparing a structure")
    field = app.ForceField("amber14-all.xml", "amber14/tip3p.xml")
    strangers = field.getUnmatchedResidues(fixer.topology)
    templates = {residue: f"sphere-{k}" for k, residue in enumerate(strangers)}
    if strangers:
        field.loadFile(io.StringIO(_spheres(templates)))
    system = field.createSystem(
        fixer.topology, nonbondedMethod=app.CutoffNonPeriodic, rigidWater=False, residueTemplates=templates
    )
    still = set(strangers)
    for atom in fixer.topology.atoms():
        if atom_key(atom) in there or atom.residue in still:
            system.setParticleMass(atom.index, 0)

    class Reporter(openmm.MinimizationReporter):  # type: ignore[misc,name-defined]
        """Reports the completed fraction of the iterations."""

        def report(self, iteration: int, *_: object) -> bool:
            tell(min(iteration / _STEPS, 1.0))
            return False

    def minimum() -> Any:
        context = openmm.Context(system, openmm.VerletIntegrator(0.001), cpu())
        context.setPositions(fixer.positions)
        try:
            openmm.LocalEnergyMinimizer.minimize(context, maxIterations=_STEPS, reporter=Reporter())
        except openmm.OpenMMException:  # positions became NaN
            return None
        return context.getState(getPositions=True).getPositions()

    _release_gaps(fixer, system)
    found = minimum()
    if found is None or _has_fallen(fixer, there, found):
        _give_sizes(system)
        found = minimum()
    if found is None:
        raise InputError("added atoms overlap with others, and no energy minimum was found")
    fixer.positions = found
    return [_name(residue) for residue in strangers]


def _release_gaps(fixer: PDBFixer, system: System) -> None:
    """Remove forces between distant residues that were bonded only because they are consecutive."""
    positions = positions_nm(fixer)
    gaps = {
        frozenset((one.index, other.index))
        for one, other in fixer.topology.bonds()
        if one.residue is not other.residue and np.linalg.norm(positions[one.index] - positions[other.index]) > _GAP_NM
    }
    if not gaps:
        return
    for force in system.getForces():
        kind = next((kind for kind in _BONDED if type(force).__name__ == f"{kind}Force"), None)
        if kind is None:
            continue
        name, n_atoms = _BONDED[kind]
        get, put = getattr(force, f"get{name}Parameters"), getattr(force, f"set{name}Parameters")
        for k in range(getattr(force, f"getNum{name}s")()):
            *of, strength = get(k)
            if any(gap <= set(of[:n_atoms]) for gap in gaps):
                put(k, *of, 0 * strength)


def _has_fallen(fixer: PDBFixer, there: set[Key], places: Any) -> bool:
    """Return whether an added hydrogen is within 1 A of an atom that is not bonded to it."""
    atoms = list(fixer.topology.atoms())
    bonds = {frozenset((one.index, other.index)) for one, other in fixer.topology.bonds()}
    unit = extra("openmm.unit", "preparing a structure")
    positions = np.array(places.value_in_unit(unit.angstrom), np.float64)
    near = (pair for pair in close_pairs(positions, 1.0).tolist() if frozenset(pair) not in bonds)
    return any(
        atoms[k].element is not None and atoms[k].element.symbol == "H" and atom_key(atoms[k]) not in there
        for pair in near
        for k in pair
    )


def _give_sizes(system: System) -> None:
    """Assign Lennard-Jones parameters of CHARMM36 to hydrogens without any, which could collapse onto oxygens."""
    for force in system.getForces():
        if type(force).__name__ == "NonbondedForce":
            for k in range(force.getNumParticles()):
                charge, _, depth = force.getParticleParameters(k)
                if not depth._value:
                    force.setParticleParameters(k, charge, _POLAR_NM, _POLAR_DEPTH)


def _spheres(templates: Mapping[Residue, str]) -> str:
    """Return OpenMM XML that defines unknown residues as uncharged spheres. templates : names of the templates"""
    elements = {atom.element for residue in templates for atom in residue.atoms()}
    if None in elements:
        residue, atom = next((of, atom) for of in templates for atom in of.atoms() if atom.element is None)
        raise InputError(
            f"atom {atom.name} of {_name(residue)} has no known element; add it to the file, or replace "
            f"{residue.name} by a standard residue with `replace`"
        )
    types, sizes, residues = list[str](), list[str](), list[str]()
    for element in sorted(elements, key=lambda element: element.symbol):
        name = f"sphere-{element.symbol}"
        size = _HYDROGEN_NM if element.symbol == "H" else _SPHERE_NM
        types.append(f'<Type name="{name}" class="{name}" element="{element.symbol}" mass="1"/>')
        sizes.append(f'<Atom type="{name}" sigma="{size}" epsilon="{_DEPTH}"/>')
    for residue, name in templates.items():
        atoms = {atom: f"{k}" for k, atom in enumerate(residue.atoms())}
        lines = [f'<Atom name="{k}" type="sphere-{a.element.symbol}" charge="0"/>' for a, k in atoms.items()]
        lines += [f'<Bond atomName1="{atoms[a]}" atomName2="{atoms[b]}"/>' for a, b in residue.internal_bonds()]
        ends = [atom for bond in residue.external_bonds() for atom in bond if atom in atoms]
        lines += [f'<ExternalBond atomName="{atoms[atom]}"/>' for atom in ends]
        residues.append(f'<Residue name="{name}">{"".join(lines)}</Residue>')
    return (
        f"<ForceField><AtomTypes>{''.join(types)}</AtomTypes><Residues>{''.join(residues)}</Residues>"
        '<NonbondedForce coulomb14scale="0.8333333333333334" lj14scale="0.5"><UseAttributeFromResidue name="charge"/>'
        f"{''.join(sizes)}</NonbondedForce></ForceField>"
    )
