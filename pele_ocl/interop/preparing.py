"""Preparation of PDB structures for force fields with PDBFixer."""

from __future__ import annotations

import io
import random
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace as replaced
from itertools import pairwise
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Floats, Structure
from ..atoms.chemistry import is_nucleotide, is_polymer, is_water
from ..common import arguments
from ..common.errors import FormatError, InputError, PeleError
from ..common.extras import extra
from ..common.inputfile import InputFile, read_file
from ..common.modules import takes_structures
from ..common.notes import note
from ..common.writing import replacing
from ..forcefield import ForceField
from ..forcefield.bonding import POLYMER_BOND_A
from ..forcefield.matching import unmatched_residues
from ..forcefield.openmm.topologies import gaps
from ..formats import read_structure, structure_suffix
from ..formats.assembly import ANOTHER_MODEL
from ..formats.registry import HeldFile
from .building import LINKS, SEED, Gap, Tell, build_atoms, build_loops, delete, key_of, positions_nm, tidy_bonds
from .building import name as _name
from .chosen_atoms import chosen_text, passed_ters, require_backbones, with_short_names
from .pka import NEUTRAL, SOURCES, USUAL, asks_propka, forms_at
from .preparation import Preparation, require_pdb
from .relaxing import Key, atom_key, atom_keys, cpu, relax, stretch
from .replacing import Replaced, Standard, examine, rename_ring, sentences

if TYPE_CHECKING:
    from openmm.app import Topology
    from openmm.app.topology import Atom, Residue
    from pdbfixer import PDBFixer

# Protonation states by the hydrogens that distinguish them, without the standard forms.
_TELLING: dict[str, tuple[set[str], dict[tuple[str, ...], str]]] = {
    "HIS": ({"HD1", "HE2"}, {("HD1", "HE2"): "HIP", ("HD1",): "HID", ("HE2",): "HIE", (): "HIN"}),
    "ASP": ({"HD1", "HD2"}, {("HD1",): "ASH", ("HD2",): "ASH"}),
    "GLU": ({"HE1", "HE2"}, {("HE1",): "GLH", ("HE2",): "GLH"}),
    "LYS": ({"HZ1", "HZ2", "HZ3"}, {("HZ1", "HZ2"): "LYN", ("HZ2", "HZ3"): "LYN", ("HZ1", "HZ3"): "LYN"}),
    "CYS": ({"HG"}, {(): "CYX"}),
}
# AMBER's names of glycosylated residues. PDBFixer would replace NLN, a different residue in the PDB, by leucine.
_CARRIERS = {"NLN": "ASN", "OLS": "SER", "OLT": "THR"}
_PHOSPHATE = {"P", "OP1", "OP2", "OP3", "O1P", "O2P", "O3P", "HOP2", "HOP3"}
_ORGANIC = frozenset("CNOPS")
_READ = (".pdb", ".ent", ".cif", ".mmcif", ".pdbx")  # formats that may contain sequences
_NAME = 3  # maximum length of residue names in PDB files


@arguments.checked
@takes_structures("structure")
def prepare(
    path: str | PathLike[str],
    output: str | PathLike[str] | None = None,
    ph: float = 7.0,
    keep_water: bool = False,
    keep_hetero: bool = False,
    loops: bool = True,
    loop_seconds: float = 60.0,
    replace: Mapping[str, str] | None = None,
    progress: Tell | None = None,
    pka: str = "auto",
) -> Preparation:
    """Prepare a structure for force fields by adding all missing atoms. Requires the extra `openmm`, with PDBFixer.

    The first model and the alternate locations with the highest occupancy are kept, and nonstandard residues are
    replaced by standard ones. Missing heavy atoms and missing residues within chains are built, chain ends are
    completed, disulphide bonds are formed, and hydrogens are added. Heavy atoms in the file are not moved; bond lengths
    of existing hydrogens are corrected. Chain identifiers and residue numbers are kept. 5' phosphates are removed,
    because force fields have no parameters for them.

    path : a .pdb or .cif file, optionally with .gz, or an object of another library (docs/libraries.md)
    output : the .pdb file to write; the result can also be written with `save`
    ph : pH that determines the protonation of side chains; chain ends are always charged
    keep_water : True to keep water
    keep_hetero : True to keep ligands and ions unchanged
    loops : True to build missing residues within chains, False to leave gaps
    loop_seconds : time limit for building the residues of a gap
    replace : additional replacements of residues by standard ones: `{"BP5": "TYR"}`
    progress : called with the name of each step and the completed fraction, 0 to 1
    pka : "usual" for the pKa values of residues in water, "propka" for those predicted by PROPKA (extra `ph`), or
        "auto" to use PROPKA if it is installed

    Returns a Preparation with all changes, whose `read` returns the Atoms. Raises InputError if PDBFixer is not
    installed, for a pH outside of 0 to 14, and for replacements that are not possible. Raises FormatError for files
    that cannot be read or written.

    >>> pele_ocl.read("data/structures/trialanine.pdb").select("not element H").save("heavy.pdb")
    >>> made = pele_ocl.prepare("heavy.pdb", "ready.pdb")  # doctest: +SKIP
    >>> made.hydrogens_added  # doctest: +SKIP
    17

    >>> made = pele_ocl.prepare("1abc.pdb", "protein.pdb")  # needs pdbfixer
    >>> made.n_atoms, made.hydrogens_added
    (96, 46)
    >>> made.read()
    Atoms(96 atoms, 6 residues, 96 bonds, net charge -1.000 e)
    """
    arguments.file_path(path)
    ph = arguments.number("ph", ph, "a pH of 0 to 14", least=0, most=14)
    arguments.choice("pka", pka, SOURCES)
    arguments.flag("keep_water", keep_water)
    arguments.flag("keep_hetero", keep_hetero)
    arguments.flag("loops", loops)
    loop_seconds = arguments.number("loop_seconds", loop_seconds, "seconds above 0", above=0)
    if output is not None:
        require_pdb(output)
    pdbfixer = extra("pdbfixer", "preparing a structure")
    with_propka = asks_propka(pka)
    source = read_file(path)
    if not isinstance(source, HeldFile) and structure_suffix(source) not in _READ:
        raise FormatError(f"{source}: `prepare` reads PDB and mmCIF files; give a .pdb or .cif file")
    structure = read_structure(source)
    notes = tuple(note.removesuffix(ANOTHER_MODEL) for note in structure.notes)
    require_backbones(source, structure)
    notes += tuple(passed_ters(source, structure))
    structure, removed = (structure, {}) if keep_hetero else _without_long_names(structure)
    structure, renamed = with_short_names(structure)
    with _seeded(), _one_thread(), _target(output, source) as temporary:
        fixer = pdbfixer.PDBFixer(pdbfile=io.StringIO(chosen_text(source, structure)), platform=cpu())
        work = _Work(fixer, notes, progress or (lambda step, share: None))
        try:
            work.choose(keep_water, keep_hetero, dict(replace or {}))
            work.require_atoms(source)
            work.removed |= removed
            work.renamed = renamed
            work.build(loop_seconds if loops else 0.0)
            work.add_hydrogens(ph, with_propka)
            temporary.write_text(_as_pdb(fixer), encoding="latin-1")
        except InputError as error:
            told = str(error)
            raise InputError(told if told.startswith(str(source)) else f"{source}: {told}") from None
        except PeleError:
            raise
        except (ValueError, KeyError, IndexError) as error:
            raise InputError(f"{source}: PDBFixer cannot prepare it: {error}") from error
        changes = work.changes(temporary)
        written = None if output is None else str(output)
        for each in changes.notes:
            note(f"{each.head}{source}: {each}", heard=each.kind != "warning")  # which the record has as `warnings`
        return replaced(changes, source=source, output=written, ph=ph, pdb=temporary.read_text(encoding="latin-1"))


@contextmanager
def _target(output: str | PathLike[str] | None, source: InputFile) -> Iterator[Path]:
    """Context manager with a temporary file, which becomes the output or is deleted."""
    if output is not None:
        with replacing(output, [source]) as temporary:
            yield temporary
        return
    with TemporaryDirectory() as folder:
        yield Path(folder) / "prepared.pdb"


@contextmanager
def _seeded() -> Iterator[None]:
    """Context manager with a fixed random seed. The previous random state is restored."""
    state = random.getstate()
    random.seed(SEED)
    try:
        yield
    finally:
        random.setstate(state)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Context manager that uses one thread in OpenMM's CPU platform, for reproducible sums of forces."""
    platform, name = cpu(), "Threads"
    before = platform.getPropertyDefaultValue(name)
    platform.setPropertyDefaultValue(name, "1")
    try:
        yield
    finally:
        platform.setPropertyDefaultValue(name, before)


class _Work:
    """Steps of a preparation, with records of the changes."""

    def __init__(self, fixer: PDBFixer, notes: tuple[str, ...], tell: Tell) -> None:
        self.fixer, self.notes, self.tell = fixer, notes, tell
        self.warnings, self.renamed = list[str](), dict[str, str]()
        self.pka, self.pkas = USUAL, dict[str, float]()

    def choose(self, keep_water: bool, keep_hetero: bool, replace: Mapping[str, str]) -> None:
        """Replace nonstandard residues, and remove unwanted ones."""
        fixer = self.fixer
        self.tell("reading", 0.01)
        fixer.findMissingResidues()
        self.gaps, self.missing = _missing_residues(fixer)
        fixer.findNonstandardResidues()
        fixer.nonstandardResidues = self._accepted(_replacements(fixer, replace), replace)
        self.replaced = {_name(residue): standard for residue, standard in fixer.nonstandardResidues}
        fixer.replaceNonstandardResidues()
        linked = _bond_strangers(fixer)
        self.removed, cut = _remove(fixer, keep_water, keep_hetero, linked)
        for kind, others in cut.items():
            self.warnings.append(
                f"{_few(others)} {'were' if len(others) > 1 else 'was'} bonded to {kind}, which was removed; "
                "hydrogens replace the bonds"
            )
        _bond_rings(fixer)
        self.phosphates = _remove_phosphates(fixer)
        self.strange = _remove_unbonded_hydrogens(fixer)

    def _accepted(
        self, wanted: list[tuple[Residue, str]], replace: Mapping[str, str]
    ) -> list[tuple[Residue, str]]:  # fmt: skip
        """Return the possible replacements. Adds a warning about each residue that cannot be replaced.

        Raises InputError if a rejected replacement was requested by name.
        """
        positions, app = 10 * positions_nm(self.fixer), extra("openmm.app", "preparing a structure")
        neighbours = {
            residue: pair for chain in self.fixer.topology.chains() for residue, pair in _beside(list(chain.residues()))
        }
        accepted: list[tuple[Residue, str]] = []
        found = list[Replaced]()
        for residue, standard in wanted:
            of = examine(residue, _standard(self.fixer, standard), positions, *neighbours[residue])
            if isinstance(of, str):
                sentence = f"{_name(residue)} cannot be replaced by {standard}: {of}"
                if residue.name in replace:
                    raise InputError(f"{sentence}; choose another residue, or leave it out")
                self.warnings.append(f"{sentence}; it is not changed")
                continue
            if of.renamed:
                rename_ring(residue, {symbol: app.Element.getBySymbol(symbol) for symbol in ("C", "N", "O")})
            found.append(of)
            accepted.append((residue, standard))
        self.warnings += sentences(found)
        self.charge_changes = {of.residue: of.change for of in found if of.change}
        return accepted

    def require_atoms(self, source: object) -> None:
        """Raise InputError if no atoms are left."""
        if not self.fixer.topology.getNumAtoms():
            what = ", ".join(f"{n:,} {name}" for name, n in self.removed.items())
            raise InputError(
                f"{source}: contains no protein and no nucleic acid, but {what}; keep these with "
                "`keep_hetero=True` or `keep_water=True`"
            )

    def build(self, seconds: float) -> None:
        """Build missing residues and atoms. seconds : time limit per gap, 0 to build no residues"""
        fixer = self.fixer
        self.there = atom_keys(fixer.topology)
        self.added, self.not_built = build_loops(
            fixer, self.gaps, seconds, lambda step, share: self.tell(step, 0.02 + 0.38 * share)
        )
        self.missing |= {name: names for name, (names, _) in self.not_built.items()}
        fixer.findMissingAtoms()
        closed = {last for _, last in _rings(fixer)} | {
            atom.residue for atom, _ in _cross_links(fixer) if atom.name == "C"
        }
        fixer.missingTerminals = {of: ends for of, ends in fixer.missingTerminals.items() if of not in closed}
        self.atoms = {_name(residue): [atom.name for atom in names] for residue, names in fixer.missingAtoms.items()}
        for residue, ends in fixer.missingTerminals.items():
            self.atoms.setdefault(_name(residue), []).extend(ends)
        self.tell("building missing atoms", 0.4)
        build_atoms(fixer, lambda share: self.tell("building missing atoms", 0.4 + 0.15 * share))

    def add_hydrogens(self, ph: float, with_propka: bool) -> None:
        """Add hydrogens, and minimize the energy of all added atoms."""
        fixer = self.fixer
        self.tell("adding hydrogens", 0.55)
        tidy_bonds(fixer)
        forms = None
        if with_propka:
            forms = forms_at(ph, fixer.topology, 10 * positions_nm(fixer), _as_pdb(fixer))
            self.pka, self.pkas = forms.source, forms.pkas
            self.warnings += forms.warnings
        before, held = fixer.topology.getNumAtoms(), atom_keys(fixer.topology)
        modeller = extra("openmm.app", "preparing a structure").Modeller(fixer.topology, fixer.positions)
        # PROPKA determines the forms. All else, such as tautomers, is chosen by OpenMM at neutral pH.
        variants = {} if forms is None else {"variants": forms.variants}
        modeller.addHydrogens(pH=ph if forms is None else NEUTRAL, platform=cpu(), **variants)
        fixer.topology, fixer.positions = modeller.topology, modeller.positions
        gone = len(held - atom_keys(fixer.topology))  # hydrogens in the file that the chosen forms do not have
        self.warnings += _remove_surplus_hydrogens(fixer, self.there)
        self.hydrogens = fixer.topology.getNumAtoms() - before + gone
        self.strange += gone
        self.moved = stretch(fixer, self.there)
        self.strangers = relax(fixer, self.there, lambda share: self.tell("relaxing built atoms", 0.7 + 0.3 * share))

    def _tell_gaps(self, written: Structure) -> None:
        """Add warnings about remaining gaps, except those with known missing residues."""
        labels = written.labels
        for i, j, apart in gaps(written):
            if labels.residue(i) not in self.missing:
                self.warnings.append(
                    f"{labels.residue(i)} and {labels.residue(j)} are consecutive in the file but {apart:.1f} A "
                    "apart: the gap in the chain is not built, because the file has no sequence of the missing "
                    "residues; use a file with SEQRES records, as in the Protein Data Bank"
                )

    def changes(self, ready: Path) -> Preparation:
        """Return all changes. ready : the written file"""
        residues = list(self.fixer.topology.residues())
        written = read_structure(ready)
        self._tell_gaps(written)
        residues_written = written.labels.residues
        without = [residues_written[k] for k in unmatched_residues(written, ForceField.load().templates)]
        for kind in dict.fromkeys(residue.name for residue in without):
            here = [str(residue) for residue in without if residue.name == kind]
            self.warnings.append(
                f"{_few(here)}: the built-in force field has no parameters for {kind} with these atoms, so "
                "`energy` refuses it; give its parameters (for a small molecule its SMILES, `ligand_template`, or its "
                "SDF file, `ligands`), leave it out or, within a chain, replace it by a standard residue with "
                "`replace`"
            )
        return Preparation(
            alternates=self.notes,
            removed=self.removed,
            renamed=self.renamed,
            replaced=self.replaced,
            charge_changes=self.charge_changes,
            phosphates_removed=self.phosphates,
            residues_added=self.added,
            residues_missing=self.missing,
            not_built={name: reason for name, (_, reason) in self.not_built.items()},
            atoms_added=self.atoms,
            disulphides=_disulphides(self.fixer.topology),
            protonation={_name(residue): form for residue in residues if (form := _form(residue))},
            pka=self.pka,
            pkas=self.pkas,
            hydrogens_removed=self.strange,
            hydrogens_added=self.hydrogens,
            hydrogens_moved=self.moved,
            left_alone=[_name(residue) for residue in residues if _is_unknown(self.fixer, residue)],
            not_relaxed=self.strangers,
            relaxed=not self.strangers,
            without_parameters=[str(residue) for residue in without],
            warnings=self.warnings,
            n_atoms=self.fixer.topology.getNumAtoms(),
        )


def _few(names: list[str]) -> str:
    """List the first three names and the number of the others."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def _without_long_names(structure: Structure) -> tuple[Structure, dict[str, int]]:
    """Remove ligands whose names do not fit into a PDB file. Also returns their numbers by name."""
    names = structure.labels.residue_names
    long = np.array([len(name) > _NAME and not is_polymer(name) for name in names.tolist()], np.bool_)
    if not long.any() or long.all():
        return structure, {}
    starts = structure.labels.residue_starts
    return structure.of_residues(~long), dict(Counter(names[starts][long[starts]].tolist()))


def _missing_residues(fixer: PDBFixer) -> tuple[list[Gap], dict[str, list[str]]]:
    """Return the gaps within chains, and the missing residues at chain ends by the adjacent residue."""
    chains = list(fixer.topology.chains())
    gaps, missing = list[Gap](), dict[str, list[str]]()
    for (chain, place), names in fixer.missingResidues.items():
        residues = list(chains[chain].residues())
        if 0 < place < len(residues):
            gaps.append(Gap(key_of(residues[place - 1]), key_of(residues[place]), list(names)))
        else:
            missing[_name(residues[min(place, len(residues) - 1)])] = list(names)
    fixer.missingResidues = {}
    return gaps, missing


def _replacements(fixer: PDBFixer, replace: Mapping[str, str]) -> list[tuple[Residue, str]]:
    """List the replacements suggested by PDBFixer and those requested by name."""
    for name, standard in replace.items():
        if standard not in fixer.templates:
            raise InputError(
                f"{standard} cannot replace {name}: choose a standard amino acid or nucleotide, such as TYR"
            )
        if not any(residue.name == name for residue in fixer.topology.residues()):
            raise InputError(f"no residue is named {name}, which {standard} is to replace")
    # MODRES records also list glycosylated standard residues, whose replacement would remove hydrogens.
    found = {residue: standard for residue, standard in fixer.nonstandardResidues if residue.name != standard}
    found |= {
        residue: _CARRIERS[residue.name] for residue in fixer.topology.residues() if _carries_sugar(fixer, residue)
    }
    found |= {residue: replace[residue.name] for residue in fixer.topology.residues() if residue.name in replace}
    return sorted(found.items(), key=lambda pair: pair[0].index)


def _beside(residues: list[Residue]) -> Iterator[tuple[Residue, tuple[Residue | None, Residue | None]]]:
    """Yield each residue of a chain with the previous and the next one."""
    for before, residue, after in zip([None, *residues], residues, [*residues[1:], None], strict=False):
        yield residue, (before, after)


def _standard(fixer: PDBFixer, name: str) -> Standard:
    """Return the heavy atoms and bonds in PDBFixer's template of a residue."""
    topology = fixer.templates[name].topology
    heavy = frozenset(atom.name for atom in topology.atoms() if atom.element.symbol != "H")
    bonds = tuple((a.name, b.name) for a, b in topology.bonds() if {a.name, b.name} <= heavy)
    return Standard(name, heavy, bonds)


def _carries_sugar(fixer: PDBFixer, residue: Residue) -> bool:
    """Return whether a residue is AMBER's glycosylated form of a standard residue, by name and heavy atoms."""
    standard = fixer.templates.get(_CARRIERS.get(residue.name, ""))
    if standard is None:
        return False
    needed = {atom.name for atom in standard.topology.atoms() if atom.element.symbol != "H"} - {"OXT"}
    return needed <= {atom.name for atom in residue.atoms()}


def _bond_strangers(fixer: PDBFixer) -> set[Residue]:
    """Find nonstandard residues within chains, and add bonds to their neighbours."""
    positions = positions_nm(fixer)
    linked: set[Residue] = set()
    there = {frozenset(bond) for bond in fixer.topology.bonds()}
    for chain in fixer.topology.chains():
        residues = list(chain.residues())
        for one, other in pairwise(residues):
            strangers = {residue for residue in (one, other) if not _is_chain(residue)}
            bond = _chain_bond(one, other, positions) if strangers else None
            if bond is not None and len(strangers) < 2 + any(residue in linked for residue in strangers):
                linked |= strangers
                if frozenset(bond) not in there:
                    fixer.topology.addBond(*bond)
    return linked


def _bond_rings(fixer: PDBFixer) -> None:
    """Add the bond between the last and first residue of cyclic chains."""
    positions = positions_nm(fixer)
    there = {frozenset(bond) for bond in fixer.topology.bonds()}
    for chain in fixer.topology.chains():
        residues = list(chain.residues())
        bond = _chain_bond(residues[-1], residues[0], positions) if len(residues) > 2 else None
        if bond is not None and frozenset(bond) not in there:
            fixer.topology.addBond(*bond)


def _rings(fixer: PDBFixer) -> set[tuple[Residue, Residue]]:
    """Return the first and last residue of each cyclic chain."""
    ends = {
        (residues[0], residues[-1]) for chain in fixer.topology.chains() if len(residues := list(chain.residues())) > 2
    }
    links = {
        frozenset((one.residue, other.residue))
        for one, other in fixer.topology.bonds()
        if {one.name, other.name} == {"C", "N"}
    }
    return {pair for pair in ends if frozenset(pair) in links}


def _chain_bond(one: Residue, other: Residue, positions: Floats) -> tuple[Atom, Atom] | None:
    """Return the atoms that link a residue to the next one; None if they are too far apart."""
    tails, heads = ({atom.name: atom for atom in residue.atoms()} for residue in (one, other))
    for tail, head in LINKS:
        if tail in tails and head in heads:
            bond = tails[tail], heads[head]
            if np.linalg.norm(np.subtract(*positions[[atom.index for atom in bond]])) < POLYMER_BOND_A / 10:
                return bond
    return None


def _remove(
    fixer: PDBFixer, keep_water: bool, keep_hetero: bool, linked: set[Residue]
) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Remove unwanted residues. Returns their numbers by name, and the residues they were bonded to.

    linked : nonstandard residues within chains
    """
    unwanted = {
        residue: None
        for residue in fixer.topology.residues()
        if not (keep_water if is_water(residue.name) else keep_hetero or _is_chain(residue) or residue in linked)
    }
    cut = _bonded_across(fixer, unwanted)
    delete(fixer, list(unwanted))
    return dict(Counter(residue.name for residue in unwanted)), cut


def _bonded_across(fixer: PDBFixer, unwanted: Mapping[Residue, None]) -> dict[str, list[str]]:
    """Return the residues bonded to unwanted ones, by the names of the latter. Bonds are found by distance.

    Bonds to metals are ignored.
    """
    organic = [a for a in fixer.topology.atoms() if a.element is not None and a.element.symbol in _ORGANIC]
    inside = [a for a in organic if a.residue in unwanted and not is_water(a.residue.name)]
    outside = [a for a in organic if a.residue not in unwanted and not is_water(a.residue.name)]
    if not inside or not outside:
        return {}
    positions = positions_nm(fixer)
    others = positions[[atom.index for atom in outside]]
    cut: dict[str, list[str]] = {}
    for atom in inside:
        away = np.linalg.norm(others - positions[atom.index], axis=1)
        found = np.flatnonzero(away < POLYMER_BOND_A / 10).tolist()
        names = cut.setdefault(atom.residue.name, []) if found else []
        names += [name for name in dict.fromkeys(_name(outside[k].residue) for k in found) if name not in names]
    return cut


def _remove_phosphates(fixer: PDBFixer) -> list[str]:
    """Remove 5' phosphates. Returns the affected residues."""
    firsts = [next(chain.residues(), None) for chain in fixer.topology.chains()]
    phosphates = {
        residue: [atom for atom in residue.atoms() if atom.name in _PHOSPHATE]
        for residue in firsts
        if residue is not None and is_nucleotide(residue.name) and residue.name in fixer.templates
    }
    delete(fixer, [atom for atoms in phosphates.values() for atom in atoms])
    return [_name(residue) for residue, atoms in phosphates.items() if atoms]


def _is_chain(residue: Residue) -> bool:
    """Return whether a residue is part of a protein or a nucleic acid."""
    names = {atom.name for atom in residue.atoms()}
    return is_polymer(residue.name) and bool(names & {"CA", "CH3", "C1'", "N"})


def _remove_unbonded_hydrogens(fixer: PDBFixer) -> int:
    """Remove hydrogens with unknown names, so that they are added again with standard names."""
    bonded = {atom for bond in fixer.topology.bonds() for atom in bond}
    strange = [
        atom
        for atom in fixer.topology.atoms()
        if atom.element is not None
        and atom.element.symbol in "HD"
        and atom not in bonded
        and _knows(fixer, atom.residue)
    ]
    delete(fixer, strange)
    return len(strange)


def _remove_surplus_hydrogens(fixer: PDBFixer, there: Collection[Key]) -> list[str]:
    """Remove hydrogens replaced by ring closures, cross-links or bonds to ligands. Returns messages about the last two.

    there : atoms in the file, which are kept if possible
    """
    firsts, told = {first for first, _ in _rings(fixer)}, list[str]()
    surplus = {a for a in fixer.topology.atoms() if a.residue in firsts and a.name in ("H2", "H3")}
    bonded: dict[Atom, list[Atom]] = defaultdict(list)
    for one, other in fixer.topology.bonds():
        bonded[one].append(other)
        bonded[other].append(one)
    for atom, ligands in _ligand_bonds(fixer):
        hydrogens = [h for h in bonded[atom] if h.element is not None and h.element.symbol == "H"]
        surplus |= set(sorted(hydrogens, key=lambda h: (atom_key(h) in there, h.index))[: len(ligands)])
        if hydrogens:
            names = ", ".join(_name(ligand.residue) for ligand in ligands)
            told.append(f"{_name(atom.residue)} has a bond from {atom.name} to {names} instead of a hydrogen")
    for atom, other in _cross_links(fixer):
        hydrogens = [h for h in bonded[atom] if h.element is not None and h.element.symbol == "H"]
        is_nitrogen = atom.element.symbol == "N"  # a linked nitrogen has three bonds and no charge
        spare = max(0, len(bonded[atom]) - 3) if is_nitrogen else min(1, len(hydrogens))
        surplus |= set(sorted(hydrogens, key=lambda h: (atom_key(h) in there, -h.index))[:spare])
        if atom.index < other.index:
            told.append(f"{_name(atom.residue)} is linked from {atom.name} to {other.name} of {_name(other.residue)}")
    delete(fixer, [atom for atom in fixer.topology.atoms() if atom in surplus])
    return told


def _cross_links(fixer: PDBFixer) -> list[tuple[Atom, Atom]]:
    """Return cross-links between standard residues, in both directions, without disulphides.

    An example is the isopeptide bond between the last glycine of ubiquitin and a lysine of another one.
    """
    ends = {frozenset(pair) for pair in _rings(fixer)}
    found: list[tuple[Atom, Atom]] = []
    for one, other in fixer.topology.bonds():
        apart = abs(one.residue.index - other.residue.index) > 1 or one.residue.chain is not other.residue.chain
        chained = (one.name, other.name) in LINKS or (other.name, one.name) in LINKS
        in_a_chain = chained and (not apart or frozenset((one.residue, other.residue)) in ends)
        if one.residue is other.residue or in_a_chain or one.name == other.name == "SG":
            continue
        if all(atom.residue.name in fixer.templates and atom.element is not None for atom in (one, other)):
            found += [(one, other), (other, one)]
    return found


def _ligand_bonds(fixer: PDBFixer) -> list[tuple[Atom, list[Atom]]]:
    """Return the atoms of standard residues bonded to ligands, with the atoms of these, except links of the chain."""
    organic = [a for a in fixer.topology.atoms() if a.element is not None and a.element.symbol in _ORGANIC]
    own = [a for a in organic if a.residue.name in fixer.templates]
    ligands = [a for a in organic if not _knows(fixer, a.residue)]
    positions = positions_nm(fixer)
    found: list[tuple[Atom, list[Atom]]] = []
    places = positions[[a.index for a in ligands]]
    for atom in own if ligands else ():
        near = np.flatnonzero(np.linalg.norm(places - positions[atom.index], axis=1) < POLYMER_BOND_A / 10)
        others = [ligands[k] for k in near.tolist()]
        others = [other for other in others if not {(atom.name, other.name), (other.name, atom.name)} & set(LINKS)]
        found += [(atom, others)] if others else []
    return found


def _form(residue: Residue) -> str:
    """Return HID, HIE, HIP, ASH, GLH, LYN or CYX; "" for the standard form."""
    telling, forms = _TELLING.get(residue.name, (set[str](), dict[tuple[str, ...], str]()))
    return forms.get(tuple(sorted(telling & {atom.name for atom in residue.atoms()})), "")


def _disulphides(topology: Topology) -> list[tuple[str, str]]:
    pairs = [sorted((a, b), key=lambda atom: atom.index) for a, b in topology.bonds() if a.name == b.name == "SG"]
    return [(_name(a.residue), _name(b.residue)) for a, b in pairs]


def _knows(fixer: PDBFixer, residue: Residue) -> bool:
    return residue.name in fixer.templates or is_water(residue.name)


def _is_unknown(fixer: PDBFixer, residue: Residue) -> bool:
    """Return whether a residue with several atoms has no hydrogen definitions."""
    return not _knows(fixer, residue) and len(list(residue.atoms())) > 1


def _as_pdb(fixer: PDBFixer) -> str:
    """Return PDB text with the original chain identifiers and residue numbers."""
    text = io.StringIO()
    extra("openmm.app", "preparing a structure").PDBFile.writeFile(fixer.topology, fixer.positions, text, keepIds=True)
    return re.sub(r"^REMARK.*\n", "", text.getvalue(), count=1)
