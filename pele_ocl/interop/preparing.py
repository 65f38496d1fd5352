"""A structure of the Protein Data Bank made ready for a force field, with PDBFixer, and a list of all that changed."""

from __future__ import annotations

import io
import random
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from .. import arguments
from ..chemistry import is_polymer, is_water
from ..errors import FormatError, InputError, PeleError
from ..extras import extra
from ..formats import read_structure, replacing
from ..formats.assembly import ANOTHER_MODEL
from ..formats.registry import structure_suffix
from ..inputfile import read_file
from .chosen_atoms import chosen_text
from .preparation import Preparation

if TYPE_CHECKING:
    from openmm import Platform
    from openmm.app import Topology
    from openmm.app.topology import Atom, Residue
    from pdbfixer import PDBFixer

_SEED = 1  # the same file gives the same result
_STEPS = 200  # of the minimiser
Key = tuple[str, str, str, str]
# The forms of residues that have several, by the hydrogens that tell them apart; the usual ones go without saying.
_TELLING: dict[str, tuple[set[str], dict[tuple[str, ...], str]]] = {
    "HIS": ({"HD1", "HE2"}, {("HD1", "HE2"): "HIP", ("HD1",): "HID", ("HE2",): "HIE", (): "HIN"}),
    "ASP": ({"HD1", "HD2"}, {("HD1",): "ASH", ("HD2",): "ASH"}),
    "GLU": ({"HE1", "HE2"}, {("HE1",): "GLH", ("HE2",): "GLH"}),
    "LYS": ({"HZ1", "HZ2", "HZ3"}, {("HZ1", "HZ2"): "LYN", ("HZ2", "HZ3"): "LYN", ("HZ1", "HZ3"): "LYN"}),
    "CYS": ({"HG"}, {(): "CYX"}),
}


def prepare(
    path: str | PathLike[str],
    output: str | PathLike[str],
    ph: float = 7.0,
    keep_water: bool = False,
    keep_hetero: bool = False,
) -> Preparation:
    """Write a structure with all its atoms, ready for a force field; needs the extra `openmm`, with PDBFixer.

    One of several alternate locations and the first model are kept, nonstandard residues become standard ones, missing
    heavy atoms and residues within chains are built, ends of chains completed, disulphides bonded and hydrogens added.
    Atoms that are there stay where they are; chains and numbers are kept.

    path : a .pdb or .cif file, also with .gz
    output : the .pdb file to write
    ph : decides the protonation of residues by their usual pKa
    keep_water, keep_hetero : keep waters; keep ligands and ions, whose atoms are left as they are

    Returns the changes. Raises InputError where PDBFixer is not installed and for a pH outside 0 to 14, FormatError for
    files that cannot be read or written.
    """
    arguments.file_path(path)
    arguments.file_path(output, "output")
    ph = arguments.number("ph", ph, "a pH of 0 to 14", least=0, most=14)
    arguments.flag("keep_water", keep_water)
    arguments.flag("keep_hetero", keep_hetero)
    if structure_suffix(output) != ".pdb" or Path(output).suffix.lower() == ".gz":
        raise FormatError(f"{output}: prepared structures are written as PDB files; give it the suffix .pdb")
    pdbfixer = extra("pdbfixer", "preparing a structure")
    source = read_file(path)
    structure = read_structure(source)
    notes = tuple(note.removesuffix(ANOTHER_MODEL) for note in structure.notes)
    with _seeded(), _one_thread(), replacing(output, [source]) as temporary:
        fixer = pdbfixer.PDBFixer(pdbfile=io.StringIO(chosen_text(source, structure)), platform=_platform())
        try:
            changes = _prepared(fixer, ph, keep_water, keep_hetero, notes)
            text = _as_pdb(fixer)
        except PeleError:
            raise
        except (ValueError, KeyError, IndexError) as error:
            raise InputError(f"{source}: PDBFixer cannot prepare it: {error}") from error
        temporary.write_text(text, encoding="latin-1")
    return changes


@contextmanager
def _seeded() -> Iterator[None]:
    """Random numbers that are the same at every run; those of the caller go on afterwards as if nothing had been."""
    state = random.getstate()
    random.seed(_SEED)
    try:
        yield
    finally:
        random.setstate(state)


@contextmanager
def _one_thread() -> Iterator[None]:
    """OpenMM's CPU platform takes one thread, as several add forces up in another order at every run."""
    platform, name = _platform(), "Threads"
    before = platform.getPropertyDefaultValue(name)
    platform.setPropertyDefaultValue(name, "1")
    try:
        yield
    finally:
        platform.setPropertyDefaultValue(name, before)


def _platform() -> Platform:
    return extra("openmm", "preparing a structure").Platform.getPlatformByName("CPU")


def _prepared(fixer: PDBFixer, ph: float, keep_water: bool, keep_hetero: bool, notes: tuple[str, ...]) -> Preparation:
    """Change the fixer's structure and tell how."""
    fixer.findMissingResidues()
    added, missing = _missing_residues(fixer)
    fixer.findNonstandardResidues()
    replaced = {_name(residue): standard for residue, standard in fixer.nonstandardResidues}
    fixer.replaceNonstandardResidues()
    removed = _remove(fixer, keep_water, keep_hetero)
    strange = _remove_unbonded_hydrogens(fixer)
    fixer.findMissingAtoms()
    atoms = {_name(residue): [atom.name for atom in names] for residue, names in fixer.missingAtoms.items()}
    for residue, ends in fixer.missingTerminals.items():
        atoms.setdefault(_name(residue), []).extend(ends)
    built_on = _keys(fixer.topology)
    fixer.addMissingAtoms(seed=_SEED)
    before = fixer.topology.getNumAtoms()
    _add_hydrogens(fixer, ph)
    relaxed = _relax(fixer, built_on)
    residues = list(fixer.topology.residues())
    return Preparation(
        alternates=notes,
        removed=removed,
        replaced=replaced,
        residues_added=added,
        residues_missing=missing,
        atoms_added=atoms,
        disulphides=_disulphides(fixer.topology),
        protonation={_name(residue): form for residue in residues if (form := _form(residue))},
        hydrogens_removed=strange,
        hydrogens_added=fixer.topology.getNumAtoms() - before,
        left_alone=[_name(residue) for residue in residues if _is_unknown(fixer, residue)],
        relaxed=relaxed,
        n_atoms=fixer.topology.getNumAtoms(),
    )


def _name(residue: Residue) -> str:
    """`A:LYS12B`, as Labels have it."""
    chain = f"{residue.chain.id.strip()}:" if residue.chain.id.strip() else ""
    return f"{chain}{residue.name}{residue.id}{residue.insertionCode.strip()}"


def _missing_residues(fixer: PDBFixer) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Runs of residues to build within chains, by the residue they follow, and those at the ends, which stay out."""
    chains = list(fixer.topology.chains())
    added, missing = dict[str, list[str]](), dict[str, list[str]]()
    for (chain, place), names in list(fixer.missingResidues.items()):
        residues = list(chains[chain].residues())
        if 0 < place < len(residues):
            added[_name(residues[place - 1])] = list(names)
        else:
            missing[_name(residues[min(place, len(residues) - 1)])] = list(names)
            del fixer.missingResidues[chain, place]
    return added, missing


def _remove(fixer: PDBFixer, keep_water: bool, keep_hetero: bool) -> dict[str, int]:
    """Take out what is not to be kept; the numbers of residues by name."""
    unwanted = [
        residue
        for residue in fixer.topology.residues()
        if not (keep_water if is_water(residue.name) else keep_hetero or _is_chain(residue))
    ]
    _delete(fixer, unwanted)
    return dict(Counter(residue.name for residue in unwanted))


def _is_chain(residue: Residue) -> bool:
    """Whether a residue belongs to a protein or a nucleic acid; a free amino acid is a ligand."""
    names = {atom.name for atom in residue.atoms()}
    return is_polymer(residue.name) and bool(names & {"CA", "CH3", "C1'", "N"})


def _remove_unbonded_hydrogens(fixer: PDBFixer) -> int:
    """Take out hydrogens whose names are unknown, so that they are added with the names they should have."""
    bonded = {atom for bond in fixer.topology.bonds() for atom in bond}
    strange = [
        atom
        for atom in fixer.topology.atoms()
        if atom.element is not None
        and atom.element.symbol in "HD"
        and atom not in bonded
        and _knows(fixer, atom.residue)
    ]
    _delete(fixer, strange)
    return len(strange)


def _delete(fixer: PDBFixer, parts: list[object]) -> None:
    if parts:
        modeller = extra("openmm.app", "preparing a structure").Modeller(fixer.topology, fixer.positions)
        modeller.delete(parts)
        _renumber_gaps(fixer, modeller.topology)
        fixer.topology, fixer.positions = modeller.topology, modeller.positions


def _renumber_gaps(fixer: PDBFixer, topology: Topology) -> None:
    """Chains that vanish move those behind them, by whose index PDBFixer remembers missing residues."""
    old = [(chain.id, [residue.id for residue in chain.residues()][:1]) for chain in fixer.topology.chains()]
    new = {
        (chain.id, tuple(residue.id for residue in list(chain.residues())[:1])): chain.index
        for chain in topology.chains()
    }
    moved = {}
    for (chain, place), names in getattr(fixer, "missingResidues", {}).items():
        index = new.get((old[chain][0], tuple(old[chain][1])))
        if index is not None:
            moved[index, place] = names
    fixer.missingResidues = moved


def _add_hydrogens(fixer: PDBFixer, ph: float) -> None:
    """Add them as PDBFixer does, but without looking up ligands in the network."""
    modeller = extra("openmm.app", "preparing a structure").Modeller(fixer.topology, fixer.positions)
    modeller.addHydrogens(pH=ph, platform=_platform())
    fixer.topology, fixer.positions = modeller.topology, modeller.positions


def _keys(topology: Topology) -> set[Key]:
    """Chain, number, insertion code and name of each atom, by which it is known again."""
    return {_key(atom) for atom in topology.atoms()}


def _key(atom: Atom) -> Key:
    return atom.residue.chain.id, atom.residue.id, atom.residue.insertionCode, atom.name


def _relax(fixer: PDBFixer, there: set[Key]) -> bool:
    """Move the atoms that were not there to a minimum; False where the force field lacks a residue."""
    openmm, app = extra("openmm", "preparing a structure"), extra("openmm.app", "preparing a structure")
    field = app.ForceField("amber14-all.xml", "amber14/tip3p.xml")
    try:
        system = field.createSystem(fixer.topology, nonbondedMethod=app.CutoffNonPeriodic, rigidWater=False)
    except ValueError:
        return False
    for atom in fixer.topology.atoms():
        if _key(atom) in there:
            system.setParticleMass(atom.index, 0)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), _platform())
    context.setPositions(fixer.positions)
    openmm.LocalEnergyMinimizer.minimize(context, maxIterations=_STEPS)
    fixer.positions = context.getState(getPositions=True).getPositions()
    return True


def _form(residue: Residue) -> str:
    """HID, HIE, HIP, ASH, GLH, LYN or CYX, "" for the usual form."""
    telling, forms = _TELLING.get(residue.name, (set[str](), dict[tuple[str, ...], str]()))
    return forms.get(tuple(sorted(telling & {atom.name for atom in residue.atoms()})), "")


def _disulphides(topology: Topology) -> list[tuple[str, str]]:
    pairs = [sorted((a, b), key=lambda atom: atom.index) for a, b in topology.bonds() if a.name == b.name == "SG"]
    return [(_name(a.residue), _name(b.residue)) for a, b in pairs]


def _knows(fixer: PDBFixer, residue: Residue) -> bool:
    return residue.name in fixer.templates or is_water(residue.name)


def _is_unknown(fixer: PDBFixer, residue: Residue) -> bool:
    """Whether a residue of several atoms is none of those that hydrogens are known of."""
    return not _knows(fixer, residue) and len(list(residue.atoms())) > 1


def _as_pdb(fixer: PDBFixer) -> str:
    """The lines of a PDB file, with chains and numbers as they were."""
    text = io.StringIO()
    extra("openmm.app", "preparing a structure").PDBFile.writeFile(fixer.topology, fixer.positions, text, keepIds=True)
    return re.sub(r"^REMARK.*\n", "", text.getvalue(), count=1)
