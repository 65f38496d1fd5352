"""Ligand: a small molecule as a graph with positions, read from SDF, mol2 or SMILES through RDKit, and checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import gemmi
import numpy as np

from ..atoms import Atoms, Floats, Ints, Labels, given_default_radii
from ..atoms.chemistry import counted_names
from ..common import arguments
from ..common.errors import FormatError, InputError, ParameterError, PeleError
from ..common.extras import extra
from ..common.inputfile import InputFile, read_file
from ..common.notes import Note
from ..common.textfiles import plain_bytes, quoted
from ..formats.molecules import SdfRecord, sdf_records
from ..formats.structures import read_topology
from . import antechamber, cache
from .mol2 import mol_of_mol2
from .settings import ATOM_TYPES, CHARGES, HYDROGENS

if TYPE_CHECKING:
    from rdkit.Chem import Mol

ELEMENTS = ("H", "C", "N", "O", "F", "P", "S", "Cl", "Br", "I")  # which GAFF has parameters for
SUFFIXES = (".sdf", ".mol", ".mol2", ".smi")
Hydrogens = Literal["given", "add"]
_SYMBOLS = {gemmi.Element(k).name for k in range(1, 119)}
_PURPOSE = "a molecule without parameters"
# Lengths of bonds as parts of the sum of the covalent radii, outside which positions are a drawing or wrong.
_SHORTEST, _LONGEST = 0.6, 1.35
_RADII = "openmm-obc"  # GB radii where nobody chose, as of the built-in force field
_NAME = re.compile(r"[A-Za-z0-9]{1,3}")


@dataclass(frozen=True, eq=False)
class Ligand:
    """A small molecule with all its hydrogens.

    molecule : Mol of RDKit with explicit hydrogens and one conformer, in A
    name : of the molecule, as its file has it; "" where it has none
    residue_name : three letters or digits, for files that need one
    source : where it was read, for messages
    notes : sentences about what was added or changed

    Atoms have the order of the file; hydrogens that were added come last.

        >>> ligand = pele_ocl.Ligand.from_smiles("CC(=O)Oc1ccccc1C(=O)[O-]")
        >>> ligand
        Ligand(C9H7O4-, 20 atoms)
        >>> ligand.charge
        -1
    """

    molecule: Mol
    name: str = ""
    residue_name: str = "LIG"
    source: str = "the molecule"
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        chem = extra("rdkit.Chem", _PURPOSE)
        arguments.instance("molecule", self.molecule, chem.Mol, "a Mol of RDKit")
        if not _NAME.fullmatch(arguments.text("residue_name", self.residue_name)):
            raise InputError(f"the residue name {self.residue_name!r} is not one to three letters and digits")
        _check(self.molecule, self.source)

    @classmethod
    def read(
        cls, path: str | PathLike[str], number: int = 1, *, hydrogens: Hydrogens = "given", residue_name: str = "LIG"
    ) -> Ligand:
        """Read a molecule of an SDF (V2000, V3000), mol2 or SMILES file.

        path : .sdf, .mol, .mol2 or .smi, also with .gz
        number : of the molecule in the file, from 1
        hydrogens : "given", the file has them all; "add" adds what the valences lack, as notes say. Formal charges stay
            as they are
        residue_name : of the residue that the molecule becomes

        Raises FormatError for a file that cannot be read, and InputError, which names the molecule and the atom, for
        one that no force field of small molecules describes: fragments, radicals, other elements, drawings in two
        dimensions.
        """
        arguments.whole_number("number", number, least=1)
        count = 0
        for count, found in enumerate(_records(read_file(path), hydrogens, residue_name), 1):
            if count == number:
                return found()
        raise FormatError(f"{path}: has no molecule {number:,}; it has {count:,}")

    @classmethod
    def from_smiles(cls, smiles: str, name: str = "", *, residue_name: str = "LIG") -> Ligand:
        """Make a molecule of a SMILES, with positions by RDKit's distance geometry (ETKDG) and MMFF94.

        Charges and protonation are those of the SMILES. The same SMILES always gives the same positions.

        Raises InputError for a text that is no SMILES, and for molecules that cannot be embedded.
        """
        chem = extra("rdkit.Chem", "a SMILES")
        text = arguments.text("smiles", smiles).strip()
        with _quiet_rdkit():
            molecule = chem.MolFromSmiles(text) if text else None
        if molecule is None:
            raise InputError(f"{smiles!r} is no SMILES that RDKit can read")
        source = f"the SMILES {text}"
        _check_graph(chem.AddHs(molecule), source)
        return cls(embedded(molecule, source), name, residue_name, source)

    def __len__(self) -> int:
        return int(self.molecule.GetNumAtoms())

    def __repr__(self) -> str:
        name = f"{self.name}, " if self.name else ""
        return f"Ligand({name}{self.formula}, {len(self)} atoms)"

    @property
    def formula(self) -> str:
        """Sum formula with the charge, in Hill's order."""
        from rdkit.Chem.rdMolDescriptors import CalcMolFormula

        return str(CalcMolFormula(self.molecule))

    @property
    def charge(self) -> int:
        """Sum of the formal charges, e."""
        return sum(atom.GetFormalCharge() for atom in self.molecule.GetAtoms())

    @property
    def elements(self) -> tuple[str, ...]:
        """Symbols of the elements, one an atom."""
        return tuple(atom.GetSymbol() for atom in self.molecule.GetAtoms())

    @property
    def bonds(self) -> Ints:
        """Pairs of atoms, (m, 2), from 0."""
        pairs = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in self.molecule.GetBonds()]
        return np.sort(np.array(pairs, np.int32).reshape(-1, 2), axis=1)

    @property
    def positions(self) -> Floats:
        """Positions, (n, 3) A."""
        found: Floats = np.array(self.molecule.GetConformer().GetPositions(), np.float64)
        return found

    @property
    def smiles(self) -> str:
        """Canonical isomeric SMILES with all hydrogens, equal for the same molecule in any order of its atoms."""
        return self._canonical[0]

    @property
    def canonical_order(self) -> Ints:
        """Atoms in the order of `smiles`, (n,)."""
        return self._canonical[1]

    @cached_property
    def _canonical(self) -> tuple[str, Ints]:
        from rdkit import Chem

        plain = Chem.Mol(self.molecule)
        for atom in plain.GetAtoms():
            atom.SetAtomMapNum(0)
        text = str(Chem.MolToSmiles(plain, allHsExplicit=True))
        return text, np.array(list(plain.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]), np.int32)

    def in_canonical_order(self) -> Ligand:
        """Make the same molecule with its atoms in the order of `smiles`."""
        from rdkit import Chem

        return replace(self, molecule=Chem.RenumberAtoms(self.molecule, self.canonical_order.tolist()))

    def moved(self, positions: Floats) -> Ligand:
        """Copy the molecule with other positions, (n, 3) A."""
        from rdkit import Chem

        there = arguments.positions_of(positions)
        if there.shape != (len(self), 3):
            raise InputError(f"positions have shape {there.shape}; ({len(self)}, 3) is needed")
        copied = Chem.Mol(self.molecule)
        conformer = copied.GetConformer()
        for k, place in enumerate(there.tolist()):
            conformer.SetAtomPosition(k, place)
        return replace(self, molecule=copied)

    @property
    def labels(self) -> Labels:
        """Names of the atoms in one residue: those of a file that names them, else element and number (C1, C2, H1)."""
        n = len(self)
        names = [atom.GetProp("_TriposAtomName") if atom.HasProp("_TriposAtomName") else "" for atom in
                 self.molecule.GetAtoms()]  # fmt: skip
        if not all(names) or len(set(names)) < n or max(map(len, names)) > 4:
            names = counted_names(self.elements)
        blank = np.full(n, "")
        return Labels(
            names=np.array(names), elements=np.array(self.elements), residue_names=np.full(n, self.residue_name),
            residue_numbers=np.ones(n, np.int32), insertion_codes=blank, chains=blank,
            residue_index=np.zeros(n, np.int32),
        )  # fmt: skip

    def parametrize(self, forcefield: str = "gaff2", charges: str = "gas", *, limit: float | None = None) -> Atoms:
        """Give every atom parameters of a general force field by AmberTools' antechamber, parmchk2 and tleap.

        forcefield : "gaff2" or "gaff"
        charges : "gas", Gasteiger's; "bcc", AM1-BCC; "abcg2", ABCG2 (with gaff2 alone)
        limit : seconds after which it is given up, by default none; AM1-BCC of 70 atoms takes ten minutes

        Parameters are kept on disk by graph, force field, charges and the version of the programs, so a molecule is
        computed once, whatever the order and the positions of its atoms. Charges of AM1-BCC and ABCG2 are computed for
        one conformer that RDKit makes of the graph.

        Raises InputError if the programs are not installed, ParameterError if they have no parameters for the molecule.
        """
        arguments.choice("forcefield", forcefield, ATOM_TYPES)
        arguments.choice("charges", charges, CHARGES)
        if charges == "abcg2" and forcefield != "gaff2":
            raise InputError("ABCG2 charges were made for GAFF2; choose forcefield='gaff2', or other charges")
        if limit is not None:
            arguments.number("limit", limit, "seconds", above=0)
        order = self.canonical_order
        kept = cache.entry(self.smiles, forcefield, charges, antechamber.version())
        try:
            topology = kept.read_bytes()
            found = _placed(topology, self.positions[order])
        except (OSError, FormatError, InputError):  # not there, or damaged
            molecule = self._computed_molecule(charges)
            topology = antechamber.topology_of(molecule, self.charge, self.source, forcefield, charges, limit)
            found = _placed(topology, self.positions[order])
            cache.keep(kept, topology)
        atoms = found[np.argsort(order)]
        total = float(atoms.charges.sum())
        if abs(total - self.charge) > antechamber.LOST:
            raise ParameterError(
                f"{self.source}: the charges of {forcefield} add up to {total:+.3f} e, not {self.charge:+d}"
            )
        how = "Gasteiger's charges by RDKit" if antechamber.is_by_rdkit(topology) else CHARGES[charges]
        notes = (
            *self.notes,
            Note(f"{self.source}: parameters of {forcefield.upper()} with {how}", code="ligand_parameters"),
        )
        named = replace(atoms, labels=self.labels, notes=notes, forcefield=f"{forcefield}, {how}")
        return given_default_radii(named, _RADII)

    def _computed_molecule(self, charges: str) -> Mol:
        """Molecule in canonical order, for charges that depend on it with the conformer that follows from its graph."""
        from rdkit import Chem

        own = self.in_canonical_order().molecule
        if charges == "gas":
            return own
        settings: Any = Chem.SmilesParserParams()
        settings.removeHs = False
        graph = Chem.MolFromSmiles(self.smiles, settings)
        if graph is None or graph.GetNumAtoms() != len(self):
            return own
        try:
            return embedded(graph, self.source)
        except InputError:
            return own


def _placed(topology: bytes, positions: Floats) -> Atoms:
    return read_topology(InputFile(Path("ligand.prmtop"), topology)).with_positions(positions)


def read_ligands(
    path: str | PathLike[str], *, hydrogens: Hydrogens = "given", residue_name: str = "LIG",
    failed: dict[int, str] | None = None,
) -> list[Ligand]:  # fmt: skip
    """Read all molecules of an SDF, mol2 or SMILES file; parameters as of `Ligand.read`.

    failed : takes why molecules cannot be used, by number from 1; they are left out of the list then. By default the
        first failure is an error
    """
    ligands = []
    for number, found in enumerate(_records(read_file(path), hydrogens, residue_name), 1):
        try:
            ligands.append(found())
        except PeleError as error:
            if failed is None:
                raise
            failed[number] = str(error)
    if not ligands and not failed:
        raise FormatError(f"{path}: holds no molecule")
    return ligands


def count_molecules(path: str | PathLike[str]) -> int:
    """Count the molecules of an SDF, mol2 or SMILES file, also those that cannot be read."""
    return sum(1 for _ in _records(read_file(path), "given", "LIG"))


def embedded(molecule: Mol, source: str) -> Mol:
    """Add hydrogens and one conformer to a molecule. Raises InputError where distance geometry finds none."""
    chem: Any = extra("rdkit.Chem", _PURPOSE)
    all_chem: Any = extra("rdkit.Chem.AllChem", _PURPOSE)
    whole: Mol = chem.AddHs(molecule)
    settings = all_chem.ETKDGv3()
    settings.randomSeed = 2016
    with _quiet_rdkit():
        if all_chem.EmbedMolecule(whole, settings) < 0:
            settings.useRandomCoords = True
            if all_chem.EmbedMolecule(whole, settings) < 0:
                raise InputError(f"{source}: RDKit finds no positions for it; give a file with positions")
        if all_chem.MMFFHasAllMoleculeParams(whole):
            all_chem.MMFFOptimizeMolecule(whole, maxIters=2000)
    return whole


def _records(file: InputFile, hydrogens: Hydrogens, residue_name: str) -> Iterator[Callable[[], Ligand]]:
    """Yield a function for each molecule of a file, which makes it or says why not."""
    arguments.choice("hydrogens", hydrogens, HYDROGENS)
    suffix = Path(str(file).removesuffix(".gz").removesuffix(".bz2")).suffix.lower()
    if suffix not in SUFFIXES:
        raise FormatError(f"{file}: is no file of small molecules; these are {', '.join(SUFFIXES)}")
    for number, (line, mol) in enumerate(_READERS[suffix](file), 1):
        where = f"{file}:{line}" if line > 1 else str(file)

        def made(mol: Callable[[str], Mol | Ligand] = mol, where: str = where, number: int = number) -> Ligand:
            try:
                with _quiet_rdkit():
                    found = mol(residue_name)
            except FormatError as error:
                raise FormatError(f"{where}: molecule {number:,} cannot be read: {error}") from None
            except InputError as error:  # of a SMILES
                raise InputError(f"{where}: {error}") from None
            if isinstance(found, Ligand):
                return replace(found, source=where)
            return _of_file(found, where, number, hydrogens, residue_name)

        yield made


_Reader = Callable[[InputFile], Iterator[tuple[int, Callable[[str], "Mol | Ligand"]]]]


def _of_sdf(file: InputFile) -> Iterator[tuple[int, Callable[[str], Mol | Ligand]]]:
    """Yield the first line of each molecule of an SDF file, and a function that makes RDKit's Mol of it."""
    for record in sdf_records(file):
        yield record.line, partial(_mol_of, record)


def _of_mol2(file: InputFile) -> Iterator[tuple[int, Callable[[str], Mol | Ligand]]]:
    lines = plain_bytes(file).decode("utf-8", "replace").splitlines()
    starts = [k for k, line in enumerate(lines) if line.startswith("@<TRIPOS>MOLECULE")]
    for a, b in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield a + 1, partial(_mol_of_mol2, "\n".join([*lines[a:b], ""]))


def _mol_of_mol2(block: str, _: str) -> Mol:
    return mol_of_mol2(block)


def _of_smiles(file: InputFile) -> Iterator[tuple[int, Callable[[str], Mol | Ligand]]]:
    for k, line in enumerate(plain_bytes(file).decode("utf-8", "replace").splitlines(), 1):
        words = line.split(None, 1)
        if words and not line.startswith("#"):
            name = words[1].strip() if len(words) > 1 else ""
            yield k, partial(_of_words, words[0], name)


_READERS: dict[str, _Reader] = {".sdf": _of_sdf, ".mol": _of_sdf, ".mol2": _of_mol2, ".smi": _of_smiles}


def _of_words(smiles: str, name: str, residue_name: str) -> Ligand:
    return Ligand.from_smiles(smiles, name, residue_name=residue_name)


def _mol_of(record: SdfRecord, _: str) -> Mol:
    """Make RDKit's Mol of what a file says: elements, charges, bonds and positions. Raises FormatError."""
    molecule = record.molecule()
    chem: Any = extra("rdkit.Chem", "a file of small molecules")
    geometry: Any = extra("rdkit.Geometry", "a file of small molecules")
    kinds = {
        "1": chem.BondType.SINGLE, "2": chem.BondType.DOUBLE, "3": chem.BondType.TRIPLE, "4": chem.BondType.AROMATIC
    }  # fmt: skip
    table, made = chem.GetPeriodicTable(), chem.RWMol()
    for k, symbol in enumerate(molecule.graph.elements):
        if symbol not in _SYMBOLS:
            raise FormatError(f"atom {k + 1} is {quoted(symbol)}, which is no element")
        atom = chem.Atom(table.GetAtomicNumber(symbol))
        atom.SetFormalCharge(molecule.charges[k])
        atom.SetNumRadicalElectrons(molecule.radicals[k])
        made.AddAtom(atom)
    joined = set[tuple[int, int]]()
    for i, j, kind in molecule.orders:
        pair = min(i, j), max(i, j)
        if kind not in kinds or pair in joined:
            why = "is there twice" if pair in joined else f"is of the kind {quoted(kind)}, which is no order of a bond"
            raise FormatError(f"the bond of its atoms {i + 1} and {j + 1} {why}")
        joined.add(pair)
        made.AddBond(i, j, kinds[kind])
        if kind == "4":
            for atom in (made.GetAtomWithIdx(i), made.GetAtomWithIdx(j), made.GetBondBetweenAtoms(i, j)):
                atom.SetIsAromatic(True)
    conformer = chem.Conformer(len(molecule.graph))
    for k, (x, y, z) in enumerate(molecule.positions.tolist()):
        conformer.SetAtomPosition(k, geometry.Point3D(x, y, z))
    conformer.Set3D(True)
    made.AddConformer(conformer)
    found: Mol = made.GetMol()
    found.SetProp("_Name", molecule.name)
    return found


def _of_file(molecule: Mol, where: str, number: int, hydrogens: Hydrogens, residue_name: str) -> Ligand:
    """Make a Ligand of the molecule of a record."""
    chem: Any = extra("rdkit.Chem", "a file of small molecules")
    with _quiet_rdkit():
        try:
            chem.SanitizeMol(molecule)
        except ValueError as error:
            raise InputError(f"{where}: molecule {number:,} is chemically impossible: {_tidy(str(error))}") from None
        name = molecule.GetProp("_Name").strip() if molecule.HasProp("_Name") else ""
        source = f"{where} ({name})" if name else where
        if not molecule.GetNumConformers() or not np.any(molecule.GetConformer().GetPositions()):
            raise InputError(f"{source}: has no positions; give a file with positions in three dimensions, or SMILES")
        notes: tuple[str, ...] = ()
        lacking = sum(atom.GetTotalNumHs() for atom in molecule.GetAtoms())
        if lacking and hydrogens == "given":
            raise InputError(
                f"{source}: lacks {lacking:,} hydrogens; give the molecule with all of them and its formal charges, or "
                "have them added, if these charges are right (`ligand_hydrogens='add'`)"
            )
        if lacking:
            _check_lengths(molecule, source)
            molecule = chem.AddHs(molecule, addCoords=True)
            notes = (
                Note(
                    f"{source}: {lacking:,} hydrogens were added; formal charges are the file's", code="hydrogens_added"
                ),
            )
        _check_graph(molecule, source)
        chem.AssignStereochemistryFrom3D(molecule)
    return Ligand(molecule, name, residue_name, source, notes)


def _check(molecule: Mol, source: str) -> None:
    """Raise InputError for molecules that general force fields do not describe, and for drawings."""
    if not molecule.GetNumConformers():
        raise InputError(f"{source}: has no positions; embed it: Ligand.from_smiles makes some")
    lacking = sum(atom.GetTotalNumHs() for atom in molecule.GetAtoms())
    if lacking:
        raise InputError(f"{source}: lacks {lacking:,} hydrogens; add them: Chem.AddHs(molecule, addCoords=True)")
    _check_graph(molecule, source)
    _check_lengths(molecule, source)


def _check_graph(molecule: Mol, source: str) -> None:
    from rdkit import Chem

    for atom in molecule.GetAtoms():
        if atom.GetSymbol() not in ELEMENTS:
            raise InputError(
                f"{source}: atom {atom.GetIdx() + 1} is {atom.GetSymbol()}, for which GAFF has no parameters; "
                f"its elements are {', '.join(ELEMENTS)}"
            )
        if atom.GetNumRadicalElectrons():
            raise InputError(
                f"{source}: atom {atom.GetIdx() + 1} ({atom.GetSymbol()}) has {atom.GetNumRadicalElectrons()} unpaired "
                "electrons: bonds, hydrogens or a formal charge are missing"
            )
    pieces = Chem.GetMolFrags(molecule)
    if len(pieces) > 1:
        sizes = ", ".join(str(len(piece)) for piece in pieces[:5])
        raise InputError(
            f"{source}: has {len(pieces)} molecules, of {sizes} atoms; give the ligand alone, without its counterions"
        )


def _check_lengths(molecule: Mol, source: str) -> None:
    """Raise InputError where bonds have lengths that no molecule has, as in drawings."""
    from rdkit import Chem

    positions = np.array(molecule.GetConformer().GetPositions())
    if not np.isfinite(positions).all():
        raise InputError(f"{source}: has positions that are no numbers")
    table = Chem.GetPeriodicTable()
    for bond in molecule.GetBonds():
        i, j = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        usual = sum(table.GetRcovalent(molecule.GetAtomWithIdx(k).GetAtomicNum()) for k in (i, j))
        length = float(np.linalg.norm(positions[i] - positions[j]))
        if not _SHORTEST * usual < length < _LONGEST * usual:
            flat = np.ptp(positions, axis=0).min() < 1e-3
            what = "it is a drawing in two dimensions; give positions in three" if flat else "mend the positions"
            symbols = "-".join(molecule.GetAtomWithIdx(k).GetSymbol() for k in (i, j))
            raise InputError(f"{source}: atoms {i + 1} and {j + 1} ({symbols}) are bonded at {length:.2f} A; {what}")


def _tidy(message: str) -> str:
    """RDKit's words on one line."""
    return " ".join(message.split())


@contextmanager
def _quiet_rdkit() -> Iterator[None]:
    """Keep RDKit from printing what it thinks of a molecule."""
    from rdkit import rdBase

    block = rdBase.BlockLogs()
    try:
        yield
    finally:
        del block
