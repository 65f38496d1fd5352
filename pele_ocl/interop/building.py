"""Building of missing atoms and residues with PDBFixer, a few at a time, together with nearby residues.

The time of PDBFixer is proportional to the number of built atoms times the number of all others, and it reports no
progress. The missing residues of each gap are built in a separate process, which can be terminated at the time limit:
this module, run with -m.
"""

from __future__ import annotations

import copy
import io
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..atoms import Floats
from ..common.extras import extra
from ..forcefield.bonding import POLYMER_BOND_A
from ..forcefield.matching import DISULPHIDE_A

if TYPE_CHECKING:
    from openmm.app import Topology
    from openmm.app.topology import Atom, Chain, Residue
    from pdbfixer import PDBFixer

SEED = 1  # for reproducible results
Tell = Callable[[str, float], None]
_MARGIN_NM = 1.2  # margin around the ends of a gap and PDBFixer's arc between them
_RESIDUE_NM = 0.3  # length of a residue in this arc
_BATCH, _NEAR_NM = 10, 0.8  # number of residues completed together, and distance of the nearby residues to include
LINKS = (("C", "N"), ("O3'", "P"))  # atoms bonded between consecutive residues
_LINK_NM, _NEIGHBOUR_NM = 0.4, 0.6  # maximum distance of linking atoms, and of the nearest atoms of bonded neighbours


class Gap(NamedTuple):
    """Residues missing between two others of a chain. before, after : chain, number and insertion code of these"""

    before: list[str]
    after: list[str]
    names: list[str]


class Loops(NamedTuple):
    """Missing residues by the preceding residue: built ones, and others with the reason why they were not built."""

    built: dict[str, list[str]]
    not_built: dict[str, tuple[list[str], str]]


class _Atom(NamedTuple):
    name: str
    element: str
    position: list[float]  # nm


class _NewResidue(NamedTuple):
    name: str
    number: str
    atoms: list[_Atom]


def name(residue: Residue) -> str:
    """Return the name of a residue as in Labels, such as `A:LYS12B`."""
    chain = f"{residue.chain.id.strip()}:" if residue.chain.id.strip() else ""
    return f"{chain}{residue.name}{residue.id}{residue.insertionCode.strip()}"


def build_loops(fixer: PDBFixer, gaps: list[Gap], seconds: float, tell: Tell) -> Loops:
    """Build missing residues within chains.

    seconds : time limit per gap; 0 to build none
    tell : called with the name of each step and the completed fraction of the gaps
    """
    built, not_built = dict[str, list[str]](), dict[str, tuple[list[str], str]]()
    for k, gap in enumerate(gaps):
        found = _place(fixer.topology, [gap.before]) or _place(fixer.topology, [gap.after])
        if found is None:
            continue  # the adjacent residues were removed
        residues, place = list(found[0].residues()), found[1]
        where = name(residues[place - 1])
        number = f"{len(gap.names)} residues" if len(gap.names) > 1 else "a residue"
        tell(f"building {number} after {where}", k / len(gaps))
        new: list[_NewResidue] | str = "loops are not built"
        if _place(fixer.topology, [gap.before, gap.after]) is None:
            new = "an adjacent residue was removed"
        elif seconds:
            new = _new_residues(fixer, residues[place - 1], residues[place], gap.names, seconds)
        if isinstance(new, str):
            not_built[where] = gap.names, new
        else:
            built[where] = gap.names
            _rebuild(fixer, (residues[place - 1], residues[place]), new)
    return Loops(built, not_built)


def _new_residues(
    fixer: PDBFixer, before: Residue, after: Residue, names: list[str], seconds: float
) -> list[_NewResidue] | str:
    """Build the residues of a gap. Returns the reason if they cannot be built."""
    text, ends = _nearby(fixer, before, after, len(names)), [key_of(before), key_of(after)]
    request = {"text": text, "ends": ends, "names": names}
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__], input=json.dumps(request), capture_output=True, text=True,
            timeout=seconds, env=os.environ | {"OPENMM_CPU_THREADS": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it took longer than {seconds:g} s"
    if done.returncode:
        return f"PDBFixer cannot build it: {(done.stderr.strip().splitlines() or ['no reason was given'])[-1]}"
    residues = [
        _NewResidue(kind, number, [_Atom(*atom) for atom in atoms]) for kind, number, atoms in json.loads(done.stdout)
    ]
    return residues if _meets(fixer, before, after, residues) else "its ends do not close"


def _nearby(fixer: PDBFixer, before: Residue, after: Residue, n_names: int) -> str:
    """Return the residues that a loop may approach as PDB text."""
    positions = positions_nm(fixer)
    centers = [positions[[atom.index for atom in residue.atoms()]].mean(axis=0) for residue in (before, after)]
    middle, length = (centers[0] + centers[1]) / 2, float(np.linalg.norm(centers[1] - centers[0]))
    radius = max(length, n_names * _RESIDUE_NM - length) / 2 + _MARGIN_NM
    near = np.linalg.norm(positions - middle, axis=1) < radius
    kept = {residue for residue in fixer.topology.residues() if near[[a.index for a in residue.atoms()]].any()}
    part, text = _part(fixer, kept | {before, after}, positions)[0], io.StringIO()
    writer = extra("openmm.app", "preparing a structure").PDBFile
    writer.writeFile(part.topology, part.positions, text, keepIds=True)
    return text.getvalue()


def _part(
    fixer: PDBFixer, kept: set[Residue], positions: Floats, gaps: bool = False
) -> tuple[PDBFixer, dict[Residue, Residue]]:  # fmt: skip
    """Create a fixer with a subset of the residues. Also returns a mapping to its residues.

    gaps : True to start a new chain after a residue that is not bonded to the next one, because PDBFixer would bond
        them
    """
    part = copy.copy(fixer)
    part.topology = extra("openmm.app", "preparing a structure").Topology()
    atoms: dict[Atom, Atom] = {}
    residues: dict[Residue, Residue] = {}
    for chain in fixer.topology.chains():
        inside = [residue for residue in chain.residues() if residue in kept]
        new = part.topology.addChain(chain.id) if inside else None
        for before, residue in zip([None, *inside], inside, strict=False):
            if gaps and before is not None and _apart(before, residue, positions):
                new = part.topology.addChain(chain.id)
            residues[residue] = part.topology.addResidue(residue.name, new, residue.id, residue.insertionCode)
            for atom in residue.atoms():
                atoms[atom] = part.topology.addAtom(atom.name, atom.element, residues[residue])
    for one, other in fixer.topology.bonds():
        if one in atoms and other in atoms:
            part.topology.addBond(atoms[one], atoms[other])
    part.positions = quantity(positions[[atom.index for atom in atoms]].tolist())
    return part, residues


def _apart(before: Residue, after: Residue, positions: Floats) -> bool:
    """Return whether two residues of a chain are too far apart to be bonded, by their linking atoms or by all atoms."""
    if after.index != before.index + 1:
        return True
    one, other = ({atom.name: positions[atom.index] for atom in residue.atoms()} for residue in (before, after))
    links = [float(np.linalg.norm(one[a] - other[b])) for a, b in LINKS if a in one and b in other]
    if links:
        return min(links) > _LINK_NM
    places = np.array(list(one.values()))[:, np.newaxis] - np.array(list(other.values()))
    return float(np.linalg.norm(places, axis=2).min()) > _NEIGHBOUR_NM


def build_atoms(fixer: PDBFixer, tell: Callable[[float], None]) -> None:
    """Build `fixer.missingAtoms` and `fixer.missingTerminals`. tell : called with the completed fraction"""
    positions, all_residues = positions_nm(fixer), list(fixer.topology.residues())
    of_atoms = [atom.residue for atom in fixer.topology.atoms()]
    added = dict[int, list[_Atom]]()
    lacking = sorted({*fixer.missingAtoms, *fixer.missingTerminals}, key=lambda residue: residue.index)
    for start in range(0, len(lacking), _BATCH):
        batch = lacking[start : start + _BATCH]
        here = positions[[atom.index for residue in batch for atom in residue.atoms()]]
        near = {of_atoms[k] for k in _near(positions, here)}
        part, residues = _part(fixer, near, positions, gaps=True)
        part.missingResidues = {}
        part.missingAtoms = {residues[r]: fixer.missingAtoms[r] for r in batch if r in fixer.missingAtoms}
        part.missingTerminals = {residues[r]: fixer.missingTerminals[r] for r in batch if r in fixer.missingTerminals}
        indices = {residue.index: residues[residue].index for residue in batch}
        part.addMissingAtoms(seed=SEED)
        places, built = positions_nm(part).tolist(), list(part.topology.residues())
        for index, there in indices.items():
            names = {atom.name for atom in all_residues[index].atoms()}
            new = [atom for atom in built[there].atoms() if atom.name not in names]
            added[index] = [_Atom(atom.name, atom.element.symbol, places[atom.index]) for atom in new]
        tell(min(start + _BATCH, len(lacking)) / len(lacking))
    _rebuild(fixer, atoms={all_residues[index]: new for index, new in added.items()})


def positions_nm(fixer: PDBFixer) -> Floats:
    """Return the positions of all atoms, (n, 3) nm."""
    unit = extra("openmm.unit", "preparing a structure")
    return np.array(fixer.positions.value_in_unit(unit.nanometer), np.float64).reshape(-1, 3)


def key_of(residue: Residue) -> list[str]:
    """Return chain, number and insertion code, which identify a residue."""
    return [residue.chain.id.strip(), residue.id.strip(), residue.insertionCode.strip()]


def _meets(fixer: PDBFixer, before: Residue, after: Residue, residues: list[_NewResidue]) -> bool:
    """Return whether all consecutive residues are close enough to be bonded."""
    positions = positions_nm(fixer)
    first, last = ({atom.name: positions[atom.index] for atom in residue.atoms()} for residue in (before, after))
    run = [first, *({atom.name: np.array(atom.position) for atom in new.atoms} for new in residues), last]
    return all(
        any(a in one and b in other and np.linalg.norm(one[a] - other[b]) < POLYMER_BOND_A / 10 for a, b in LINKS)
        for one, other in pairwise(run)
    )


def quantity(places: Iterable[Iterable[float]]) -> object:
    """Convert positions in nm to an OpenMM Quantity."""
    vector, unit = extra("openmm", "preparing a structure").Vec3, extra("openmm.unit", "preparing a structure")
    return unit.Quantity([vector(*place) for place in places], unit.nanometer)


def _rebuild(
    fixer: PDBFixer,
    gap: tuple[Residue, Residue] | None = None,
    residues: Iterable[_NewResidue] = (),
    atoms: dict[Residue, list[_Atom]] | None = None,
) -> None:
    """Insert residues between two of a chain, and atoms into residues. The terminal oxygen in the gap is removed."""
    app = extra("openmm.app", "preparing a structure")
    before, after = gap or (None, None)
    old, new = fixer.topology, app.Topology()
    new.setPeriodicBoxVectors(old.getPeriodicBoxVectors())
    given, places = positions_nm(fixer).tolist(), list[list[float]]()
    moved: dict[Atom, Atom] = {}

    def add(residue: Residue, more: Iterable[_Atom]) -> None:
        for atom in more:
            new.addAtom(atom.name, app.Element.getBySymbol(atom.element), residue)
            places.append(atom.position)

    for chain in old.chains():
        new_chain = new.addChain(chain.id)
        for residue in chain.residues():
            for one in residues if residue is after else ():
                add(new.addResidue(one.name, new_chain, one.number), one.atoms)
            twin = new.addResidue(residue.name, new_chain, residue.id, residue.insertionCode)
            for atom in residue.atoms():
                if residue is not before or atom.name != "OXT":
                    moved[atom] = new.addAtom(atom.name, atom.element, twin)
                    places.append(given[atom.index])
            add(twin, (atoms or {}).get(residue, ()))
    fixer.topology, fixer.positions = new, quantity(places)
    new.createStandardBonds()
    new.createDisulfideBonds(fixer.positions)
    there = {frozenset(bond) for bond in new.bonds()}
    for one, other in old.bonds():
        bond = frozenset((moved.get(one), moved.get(other)))
        if None not in bond and bond not in there and {one.residue, other.residue} != {before, after}:
            new.addBond(moved[one], moved[other])


def delete(fixer: PDBFixer, parts: Sequence[object]) -> None:
    """Delete atoms, residues, and bonds given as pairs of atoms."""
    if parts:
        modeller = extra("openmm.app", "preparing a structure").Modeller(fixer.topology, fixer.positions)
        modeller.delete(list(parts))
        fixer.topology, fixer.positions = modeller.topology, modeller.positions


def tidy_bonds(fixer: PDBFixer) -> None:
    """Remove duplicate bonds and wrong disulphides: longer than 2.5 A, or not the shortest of a sulphur atom."""
    positions = positions_nm(fixer)
    counts = Counter(frozenset(bond) for bond in fixer.topology.bonds())
    twice = [bond for bond, n in counts.items() if n > 1]
    pairs = [(one, other) for one, other in map(tuple, counts) if one.name == other.name == "SG"]
    lengths = [float(np.linalg.norm(positions[one.index] - positions[other.index])) for one, other in pairs]
    taken: set[Atom] = set()
    unwanted: list[tuple[Atom, ...]] = []
    for length, pair in sorted(zip(lengths, pairs, strict=True), key=lambda found: found[0]):
        if length > DISULPHIDE_A / 10 or taken & set(pair):
            unwanted.append(pair)
        else:
            taken |= set(pair)
    indices = [sorted(atom.index for atom in bond) for bond in twice if tuple(bond) not in unwanted]
    delete(fixer, [*unwanted, *map(tuple, twice)])
    atoms = list(fixer.topology.atoms())
    for i, j in indices:
        fixer.topology.addBond(atoms[i], atoms[j])


def _built(text: str, ends: list[list[str]], names: list[str]) -> list[_NewResidue]:
    """Build the residues of a gap in a PDB text. ends : keys of the adjacent residues"""
    platform = extra("openmm", "preparing a structure").Platform.getPlatformByName("CPU")
    fixer = extra("pdbfixer", "preparing a structure").PDBFixer(pdbfile=io.StringIO(text), platform=platform)
    found = _place(fixer.topology, ends)
    if found is None:
        raise ValueError("the residues next to the gap are not in one chain")
    chain, place = found
    fixer.missingResidues, fixer.missingAtoms, fixer.missingTerminals = {(chain.index, place): names}, {}, {}
    fixer.addMissingAtoms(seed=SEED)
    positions = positions_nm(fixer).tolist()
    residues = list(list(fixer.topology.chains())[chain.index].residues())[place : place + len(names)]
    return [
        _NewResidue(r.name, r.id, [_Atom(a.name, a.element.symbol, positions[a.index]) for a in r.atoms()])
        for r in residues
    ]


def _near(positions: Floats, centers: Floats) -> list[int]:
    """Return the indices of positions (n, 3) near any of the centers (m, 3), nm."""
    inside = ((positions > centers.min(axis=0) - _NEAR_NM) & (positions < centers.max(axis=0) + _NEAR_NM)).all(axis=1)
    places = np.flatnonzero(inside)
    found = np.zeros(len(places), np.bool_)
    for center in centers:
        found |= ((positions[places] - center) ** 2).sum(axis=1) < _NEAR_NM**2
    near: list[int] = places[found].tolist()
    return near


def _place(topology: Topology, keys: list[list[str]]) -> tuple[Chain, int] | None:
    """Find the chain in which residues with these keys are consecutive, and the index after the first."""
    for chain in topology.chains():
        there = [key_of(residue) for residue in chain.residues()]
        for k in range(len(there)):
            if there[k : k + len(keys)] == keys:
                return chain, k + 1
    return None


if __name__ == "__main__":
    print(json.dumps(_built(**json.load(sys.stdin))))
