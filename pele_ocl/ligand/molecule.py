"""Ligand: a small molecule with bonds and positions, read from SDF, mol2 or SMILES by RDKit, and checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import gemmi
import numpy as np

from ..atoms import Atoms, Floats, Ints, Labels, Structure, given_default_radii
from ..atoms.chemistry import counted_names, is_polymer, is_water
from ..atoms.graphs import Graph, Indices
from ..common import arguments
from ..common.errors import FormatError, InputError, ParameterError, PeleError
from ..common.extras import extra
from ..common.inputfile import InputFile, read_file
from ..common.notes import Note
from ..common.textfiles import number as number_in
from ..common.textfiles import plain_bytes, quoted
from ..formats.molecules import SdfRecord, sdf_records
from ..formats.structures import model_numbers, read_structure, read_topology
from . import antechamber, cache, docked
from .completion import ADDED, completed, graph_of, match, parents_of, parsed_smiles, template_of
from .mol2 import ATOM_NAME, PARTIAL_CHARGE, mol_of_mol2
from .parametrisers import Parametriser, check_choice, parametriser_of
from .protonation import at_ph
from .settings import CHARGES, HYDROGENS, REPLACED, Hydrogens

if TYPE_CHECKING:
    from rdkit.Chem import Mol

ELEMENTS = ("H", "C", "N", "O", "F", "P", "S", "Cl", "Br", "I")  # elements that GAFF supports
MOLECULES = (".sdf", ".mol", ".mol2", ".smi", ".pdbqt", ".dlg")  # suffixes of molecule files
SUFFIXES = (*MOLECULES, ".pdb", ".ent", ".cif", ".mmcif", ".pdbx")  # also structure files, which need a template
_SYMBOLS = {gemmi.Element(k).name for k in range(1, 119)}
_PURPOSE = "a molecule without parameters"
# Bounds of bond lengths, as factors of the sum of covalent radii; others indicate a drawing or wrong positions.
_SHORTEST, _LONGEST = 0.6, 1.35
_MOST_WRITTEN = 1e6  # A, largest length written in full in messages
MOST_ATOMS = 400  # maximum number of atoms of a ligand; general force fields are not meant for larger molecules
_RADII = "openmm-obc"  # default GB radii, as in the built-in force field
_CHARGES_IN_SDF = "atom.dprop.PartialCharge"  # property name used by RDKit and OpenFF
_RESIDUE = "_pele_ocl_residue"  # property of a molecule that was read from a residue of a structure
_NAME = re.compile(r"[A-Za-z0-9]{1,3}")


@dataclass(frozen=True, eq=False)
class Ligand:
    """A small molecule with all its hydrogens.

    molecule : RDKit Mol with explicit hydrogens and one conformer, in A
    name : name of the molecule in its file, "" for none
    residue_name : up to three letters or digits
    source : name of the file, for messages
    notes : messages about additions and changes
    properties : data of the molecule in the file, by name: fields of an SDF file, `docking_score` of a docked pose

    Atoms are in the order of the file, followed by added hydrogens.

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
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        chem = extra("rdkit.Chem", _PURPOSE)
        arguments.instance("molecule", self.molecule, chem.Mol, "a Mol of RDKit")
        if not _NAME.fullmatch(arguments.text("residue_name", self.residue_name)):
            raise InputError(f"the residue name {self.residue_name!r} is not one to three letters and digits")
        _check(self.molecule, self.source)

    @classmethod
    def read(
        cls, path: str | PathLike[str], number: int = 1, *, hydrogens: Hydrogens = "given", residue_name: str = "",
        template: str | None = None, ph: float | None = None,
    ) -> Ligand:  # fmt: skip
        """Read a molecule from a file.

        path : SDF (.sdf, .mol; V2000, V3000), mol2, SMILES (.smi), poses of Vina and AutoDock-GPU (.pdbqt, .dlg) with
            Meeko's remarks, or a PDB or mmCIF file with a `template`; optionally with .gz
        number : number of the molecule in the file, from 1
        hydrogens : "given" if the file contains all hydrogens; "add" completes valences, with notes, without changing
            formal charges. Poses and residues with a template get the hydrogens of their SMILES
        residue_name : residue name to assign, by default that of the residue in the file, or LIG
        template : SMILES, or code of the PDB's chemical components (`ccd:BEN`), for files without bond orders; in PDB
            and mmCIF files, residues that match the template are read
        ph : protonate by typical pKa values of functional groups, and add hydrogens; formal charges of the file are
            then ignored

        Raises FormatError for a file that cannot be read, and InputError for unsupported molecules: fragments,
        radicals, other elements, and 2D drawings.
        """
        return _numbered(path, number, Ways(hydrogens, residue_name, template, ph))

    @classmethod
    def from_smiles(
        cls, smiles: str, name: str = "", *, residue_name: str = "LIG", ph: float | None = None
    ) -> Ligand:  # fmt: skip
        """Build a molecule from a SMILES, with positions from RDKit's distance geometry (ETKDG) and MMFF94.

        Charges and protonation are those of the SMILES, or determined by `ph` as in `read`. The same SMILES always
        yields the same positions.

        Raises InputError for an invalid SMILES, and for molecules that cannot be embedded.
        """
        chem = extra("rdkit.Chem", "a SMILES")
        text = arguments.text("smiles", smiles).strip()
        molecule = parsed_smiles(text) if text else None
        if molecule is None:
            raise InputError(f"{quoted(smiles)} is not a SMILES that RDKit can read")
        source, notes = f"the SMILES {text}", list[str]()
        if ph is not None:
            molecule, notes = _protonated(molecule, ph, source)
        _check_graph(_within_size(chem.AddHs(molecule), source), source)
        return cls(embedded(molecule, source), name, residue_name or "LIG", source, tuple(notes))

    @classmethod
    def from_template(cls, template: str, source: InputFile | None = None, *, ph: float | None = None) -> Ligand:
        """Build a molecule from a SMILES or a component code of the PDB (`ccd:BEN`), with generated positions.

        source : an mmCIF file that may describe the component; ph : as in `read`

        Raises InputError for an invalid template.
        """
        molecule, notes = template_of(template, source), list[str]()
        named = f"the template {template}"
        if ph is not None:
            molecule, notes = _protonated(molecule, ph, named)
        _check_graph(_within_size(extra("rdkit.Chem", _PURPOSE).AddHs(molecule), named), named)
        return cls(embedded(molecule, named), "", "LIG", named, tuple(notes))

    def __len__(self) -> int:
        return int(self.molecule.GetNumAtoms())

    def __repr__(self) -> str:
        name = f"{self.name}, " if self.name else ""
        return f"Ligand({name}{self.formula}, {len(self)} atoms)"

    @property
    def formula(self) -> str:
        """Molecular formula in Hill order, with the charge."""
        from rdkit.Chem.rdMolDescriptors import CalcMolFormula

        return str(CalcMolFormula(self.molecule))

    @property
    def charge(self) -> int:
        """Sum of the formal charges, e."""
        return sum(atom.GetFormalCharge() for atom in self.molecule.GetAtoms())

    @property
    def elements(self) -> tuple[str, ...]:
        """Element symbol of each atom."""
        return tuple(atom.GetSymbol() for atom in self.molecule.GetAtoms())

    @property
    def bonds(self) -> Ints:
        """Bonded pairs of atom indices, (m, 2)."""
        pairs = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in self.molecule.GetBonds()]
        return np.sort(np.array(pairs, np.int32).reshape(-1, 2), axis=1)

    @property
    def positions(self) -> Floats:
        """Positions, (n, 3) A."""
        found: Floats = np.array(self.molecule.GetConformer().GetPositions(), np.float64)
        return found

    @property
    def smiles(self) -> str:
        """Canonical isomeric SMILES with all hydrogens, independent of the order of atoms."""
        return self._canonical[0]

    @property
    def short_smiles(self) -> str:
        """Canonical isomeric SMILES with implicit hydrogens."""
        from rdkit import Chem

        return str(Chem.MolToSmiles(Chem.RemoveHs(self.molecule)))

    @property
    def canonical_order(self) -> Ints:
        """Atom indices in the order of `smiles`, (n,)."""
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
        """Return the molecule with its atoms in the order of `smiles`."""
        from rdkit import Chem

        return replace(self, molecule=Chem.RenumberAtoms(self.molecule, self.canonical_order.tolist()))

    def moved(self, positions: Floats) -> Ligand:
        """Return a copy with other positions, (n, 3) A; bond lengths are not checked."""
        from rdkit import Chem

        there = arguments.positions_of(positions)
        if there.shape != (len(self), 3):
            raise InputError(f"positions have shape {there.shape}; expected ({len(self)}, 3)")
        copied = Chem.Mol(self.molecule)
        conformer = copied.GetConformer()
        for k, place in enumerate(there.tolist()):
            conformer.SetAtomPosition(k, place)
        made = copy(self)
        object.__setattr__(made, "molecule", copied)
        return made

    @property
    def labels(self) -> Labels:
        """Labels of the atoms, in one residue. Names are those of the file, otherwise element and number (C1, H1)."""
        n = len(self)
        names = [atom.GetProp(ATOM_NAME) if atom.HasProp(ATOM_NAME) else "" for atom in self.molecule.GetAtoms()]
        if self.molecule.HasProp(_RESIDUE):  # its hydrogens have no names
            names = _with_hydrogens_named(names, self.elements)
        if not all(names) or len(set(names)) < n or max(map(len, names)) > 4:
            names = counted_names(self.elements)
        blank = np.full(n, "")
        return Labels(
            names=np.array(names), elements=np.array(self.elements), residue_names=np.full(n, self.residue_name),
            residue_numbers=np.ones(n, np.int32), insertion_codes=blank, chains=blank,
            residue_index=np.zeros(n, np.int32),
        )  # fmt: skip

    def parametrize(self, forcefield: str = "gaff2", charges: str = "mmff", *, limit: float | None = None) -> Atoms:
        """Assign parameters of a general force field, or of a file.

        forcefield : "gaff2" or "gaff", assigned by AmberTools' antechamber, parmchk2 and tleap; an OpenFF force field
            such as "openff-2.2.1", assigned by the OpenFF Toolkit; or a file with the molecule's parameters: OpenMM
            .xml, .prmtop, or a PELE template
        charges : "mmff" for MMFF94 by RDKit, "gas" for Gasteiger, "bcc" for AM1-BCC, "abcg2" for ABCG2 (only with
            gaff2), "file" for those of the molecule's mol2 or SDF file (atom.dprop.PartialCharge). Parameter files
            include charges
        limit : time limit, s, by default none; AM1-BCC for 70 atoms takes ten minutes

        Parameters are cached on disk by molecular graph, force field, charges and program version, so a molecule is
        parametrized only once, for any order and positions of its atoms; other processes wait for the result. AM1-BCC
        and ABCG2 charges are computed for one conformer generated by RDKit.

        Raises InputError if the programs are not installed, ParameterError if parameters cannot be assigned.
        """
        check_choice(forcefield, charges)
        if limit is not None:
            arguments.number("limit", limit, "seconds", above=0)
        by = parametriser_of(forcefield)
        own = self._own_charges(charges) if by.KEEPS else None
        if by.KEEPS:
            computed = "gas" if charges in REPLACED else charges
            atoms, topology = self._kept(by, forcefield, computed, limit)
        else:
            atoms, topology = by.atoms_of(self, forcefield), b""
        words, how = by.told(forcefield, charges, topology)
        if own is not None:
            atoms, how = _recharged(atoms, own), CHARGES[charges]
        total = float(atoms.charges.sum())
        if abs(total - self.charge) > antechamber.LOST:
            raise ParameterError(
                f"{self.source}: the charges of {forcefield} add up to {total:+.3f} e, not {self.charge:+d}"
            )
        notes = (*self.notes, Note(f"{self.source}: parameters of {words} with {how}", code="ligand_parameters"))
        named = replace(atoms, labels=self.labels, notes=notes, forcefield=f"{forcefield}, {how}")
        return given_default_radii(named, _RADII) if by.KEEPS else named

    def _kept(self, by: Parametriser, forcefield: str, charges: str, limit: float | None) -> tuple[Atoms, bytes]:
        """Read parameters from the cache, or compute and cache them; return the atoms and the topology."""
        order = self.canonical_order
        kept = cache.entry(self.smiles, forcefield, charges, by.version())

        def read() -> tuple[Atoms, bytes] | None:
            try:
                topology = kept.read_bytes()
                return _placed(topology, self.positions[order])[np.argsort(order)], topology
            except (OSError, FormatError, InputError):  # missing or damaged
                return None

        found = read()
        if found is not None:
            return found
        with cache.held(kept, self.source, limit):
            found = read()  # another process may have computed it
            if found is None:
                molecule = replace(self, molecule=self._computed_molecule(charges))
                topology = by.topology_of(molecule, forcefield, charges, limit)
                found = _placed(topology, self.positions[order])[np.argsort(order)], topology
                cache.keep(kept, topology)
        return found

    def _own_charges(self, charges: str) -> Floats | None:
        """Return charges that replace those of the force field, (n,) e, or None."""
        if charges not in REPLACED:
            return None
        return self._file_charges() if charges == "file" else self._mmff_charges()

    def _file_charges(self) -> Floats:
        """Return the partial charges in the molecule's file, (n,) e. Raises InputError if it has none."""
        atoms = list(self.molecule.GetAtoms())
        if all(atom.HasProp(PARTIAL_CHARGE) for atom in atoms):
            texts = [atom.GetProp(PARTIAL_CHARGE) for atom in atoms]
        else:
            texts = self.properties.get(_CHARGES_IN_SDF, "").split()
        values = [number_in(text) for text in texts]
        if len(values) != len(atoms) or any(value is None for value in values):
            raise InputError(
                f"{self.source}: its file has no partial charges of all atoms (mol2, or {_CHARGES_IN_SDF} in SDF); "
                "choose other charges"
            )
        found = np.array([value for value in values if value is not None])
        lost = self.charge - float(found.sum())
        if abs(lost) > 10 * antechamber.LOST:
            raise ParameterError(
                f"{self.source}: the charges of its file add up to {found.sum():+.3f} e, not {self.charge:+d}"
            )
        return found + lost / len(found)

    def _mmff_charges(self) -> Floats:
        """Compute MMFF94 charges, which depend only on the graph, (n,) e. Raises ParameterError if this fails."""
        fields: Any = extra("rdkit.Chem.rdForceFieldHelpers", "charges of MMFF94")
        properties = fields.MMFFGetMoleculeProperties(type(self.molecule)(self.molecule))
        if properties is None:
            raise ParameterError(f"{self.source}: MMFF94 has no charges for it; choose charges='gas' or 'bcc'")
        return np.array([properties.GetMMFFPartialCharge(k) for k in range(len(self))])

    def _computed_molecule(self, charges: str) -> Mol:
        """Return the molecule in canonical order.

        For charges that depend on the conformer, it is generated from the graph.
        """
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


def _recharged(atoms: Atoms, charges: Floats) -> Atoms:
    """Replace charges, and the charge products of 1-4 pairs, with the same scaling as before."""
    assert atoms.bonded is not None
    table = atoms.bonded.one_four
    i, j = table.atoms.T.reshape(2, -1)
    figures = table.parameters.copy()
    figures[:, 0] = atoms.one_four[0] * charges[i] * charges[j]
    bonded = replace(atoms.bonded, one_four=replace(table, parameters=figures))
    return replace(atoms, charges=charges, bonded=bonded)


def _with_hydrogens_named(names: list[str], elements: tuple[str, ...]) -> list[str]:
    """Name unnamed hydrogens H1, H2, ..., avoiding existing names."""
    free = (name for k in range(1, 1000) if (name := f"H{k}") not in set(names))
    return [name or (next(free) if element == "H" else "") for name, element in zip(names, elements, strict=True)]


def _placed(topology: bytes, positions: Floats) -> Atoms:
    return read_topology(InputFile(Path("ligand.prmtop"), topology)).with_positions(positions)


@dataclass(frozen=True)
class Ways:
    """Parameters of `Ligand.read`. Raises InputError for invalid values.

    word : the caller's keyword for `hydrogens`, for messages
    """

    hydrogens: Hydrogens = "given"
    residue_name: str = ""
    template: str | None = None
    ph: float | None = None
    word: str = "hydrogens"

    def __post_init__(self) -> None:
        arguments.choice("hydrogens", self.hydrogens, HYDROGENS)
        if self.ph is not None:
            arguments.number("ph", self.ph, "a pH of 0 to 14", least=0, most=14)
        if self.template is not None:
            arguments.text("template", self.template)


@arguments.checked
def _numbered(path: str | PathLike[str], number: int, ways: Ways) -> Ligand:
    arguments.whole_number("number", number, least=1)
    count = 0
    for count, make in enumerate(_records(read_file(path), ways), 1):
        if count == number:
            return make()
    raise FormatError(f"{path}: has no molecule {number:,}; it has {count:,}")


def ligand_beside(
    path: str | PathLike[str], number: int = 1, *, hydrogens: Hydrogens = "given", ph: float | None = None
) -> Ligand:  # fmt: skip
    """Read a molecule as in `Ligand.read`, for functions with the keywords `ligand_hydrogens` and `ligand_ph`."""
    return _numbered(path, number, Ways(hydrogens, ph=ph, word="ligand_hydrogens"))


def number_of_residue(
    path: str | PathLike[str], structure: Structure | None, *, hydrogens: Hydrogens = "given", ph: float | None = None
) -> int | None:  # fmt: skip
    """Return the number, from 1, of the first molecule in a file that matches a residue by elements and bonds, or None.

    A molecule with exactly the residue's hydrogens is preferred. Parameters are as in `Ligand.read`.
    """
    if structure is None:
        return None
    labels, residues = structure.labels, list[tuple[int, list[str], Floats]]()
    for start, end in pairwise([*labels.residue_starts.tolist(), len(labels)]):
        name, own = str(labels.residue_names[start]), np.arange(start, end)
        heavy = own[~np.isin(labels.elements[own], ("H", "D"))]
        if len(heavy) > 1 and not (is_polymer(name) or is_water(name)):
            residues.append((len(own), labels.elements[heavy].tolist(), structure.positions[heavy]))
    nearest = None
    for number, make in enumerate(_records(read_file(path), Ways(hydrogens, ph=ph)), 1):
        try:
            ligand = make()
        except PeleError:
            continue
        whole = Graph.of(ligand.elements, ligand.bonds)
        graph = whole.part(whole.heavy)
        for n, elements, positions in residues:
            if sorted(elements) == sorted(graph.elements) and match(graph, elements, positions)[0] is not None:
                if n == len(ligand):
                    return number
                nearest = nearest or number
    return nearest


def read_ligands(
    path: str | PathLike[str], *, hydrogens: Hydrogens = "given", residue_name: str = "",
    failed: dict[int, str] | None = None, template: str | None = None, ph: float | None = None,
) -> list[Ligand]:  # fmt: skip
    """Read all molecules of a file; parameters as in `Ligand.read`.

    failed : dict to store error messages of unusable molecules, by number from 1; these are omitted from the list. By
        default the first failure raises an error
    """
    ligands = []
    ways = Ways(hydrogens, residue_name, template, ph)
    for number, make in enumerate(_records(read_file(path), ways), 1):
        try:
            ligands.append(make())
        except PeleError as error:
            if failed is None:
                raise
            failed[number] = str(error)
    if not ligands and not failed:
        raise FormatError(f"{path}: contains no molecule")
    return ligands


def is_mol(value: object) -> TypeGuard[Mol]:
    """Return whether a value is an RDKit Mol, without importing RDKit."""
    return type(value).__module__.partition(".")[0] == "rdkit" and hasattr(value, "GetConformers")


def ligand_of_mol(
    molecule: Mol, source: str, *, hydrogens: Hydrogens = "given", ph: float | None = None,
    word: str = "ligand_hydrogens",
) -> Ligand:  # fmt: skip
    """Convert an RDKit Mol to a Ligand, with its name and properties; parameters as in `Ligand.read`.

    source : description of the molecule, for messages; word : the caller's keyword for `hydrogens`, for messages
    """
    chem: Any = extra("rdkit.Chem", _PURPOSE)
    return _of_file(chem.Mol(molecule), source, 1, Ways(hydrogens, ph=ph, word=word))


def count_molecules(path: str | PathLike[str], template: str | None = None) -> int:
    """Count the molecules of a file, including unreadable ones. template : as in `Ligand.read`"""
    return sum(1 for _ in _records(read_file(path), Ways(template=template)))


def embedded(molecule: Mol, source: str) -> Mol:
    """Add hydrogens and generate a conformer. Raises InputError if RDKit fails to embed the molecule."""
    chem: Any = extra("rdkit.Chem", _PURPOSE)
    all_chem: Any = extra("rdkit.Chem.AllChem", _PURPOSE)
    whole: Mol = chem.AddHs(molecule)
    settings = all_chem.ETKDGv3()
    settings.randomSeed = 2016
    with _quiet_rdkit():
        if all_chem.EmbedMolecule(whole, settings) < 0:
            settings.useRandomCoords = True
            if all_chem.EmbedMolecule(whole, settings) < 0:
                raise InputError(f"{source}: RDKit cannot generate positions for it; give a file with positions")
        if all_chem.MMFFHasAllMoleculeParams(whole):
            all_chem.MMFFOptimizeMolecule(whole, maxIters=2000)
    return whole


@dataclass(frozen=True)
class Maker:
    """A molecule in a file that is built on demand: calling it returns the Ligand, or raises an error.

    title : its name in the file, "" for none
    """

    title: str
    make: Callable[[], Ligand]

    def __call__(self) -> Ligand:
        return self.make()


# Line (or description) of a molecule in its file, its title, and the function that builds it.
_Found = tuple[int | str, str, Callable[[Ways], "Mol | Ligand"]]


def is_molecule_file(path: str | PathLike[str]) -> bool:
    """Return whether a path has a suffix that `Ligand.read` supports."""
    return _suffix_of(str(path)) in SUFFIXES


def molecules_among(poses: object) -> list[Any]:
    """Return the molecules among poses, for which parameters can be assigned: files, Ligand and RDKit Mol objects."""
    every = poses if isinstance(poses, list | tuple) else [poses]
    return [
        of
        for of in every
        if is_mol(of) or isinstance(of, Ligand) or (isinstance(of, str | PathLike) and is_molecule_file(of))
    ]


def ligand_makers(
    path: str | PathLike[str], *, hydrogens: Hydrogens = "given", residue_name: str = "", template: str | None = None,
    ph: float | None = None, word: str = "hydrogens",
) -> Iterator[Maker]:  # fmt: skip
    """Yield a Maker for each molecule of a file; parameters as in `Ligand.read`.

    word : the caller's keyword for `hydrogens`, for messages
    """
    return _records(read_file(path), Ways(hydrogens, residue_name, template, ph, word))


def _suffix_of(path: str) -> str:
    return Path(path.removesuffix(".gz").removesuffix(".bz2")).suffix.lower()


def _records(file: InputFile, ways: Ways) -> Iterator[Maker]:
    """Yield a Maker for each molecule of a file."""
    suffix = _suffix_of(str(file))
    if suffix not in SUFFIXES:
        raise FormatError(f"{file}: is not a file of small molecules; these are {', '.join(SUFFIXES)}")
    for place, (line, title, mol) in enumerate(_READERS[suffix](file, ways), 1):
        where = str(file) if line == 1 else f"{file}:{line}" if isinstance(line, int) else f"{file}, {line}"

        def made(mol: Callable[[Ways], Mol | Ligand] = mol, where: str = where, place: int = place) -> Ligand:
            try:
                with _quiet_rdkit():
                    found = mol(ways)
            except FormatError as error:
                raise FormatError(f"{where}: molecule {place:,} cannot be read: {error}") from None
            except InputError as error:  # invalid SMILES or template
                raise InputError(f"{where}: {error}") from None
            except (RuntimeError, ValueError) as error:
                raise _refused(where, error) from None
            if isinstance(found, Ligand):
                return replace(found, source=where)
            return _of_file(found, where, place, ways)

        yield Maker(title, made)


_Reader = Callable[[InputFile, Ways], Iterator[_Found]]


def _of_sdf(file: InputFile, _: Ways) -> Iterator[_Found]:
    """Yield the molecules of an SDF file."""
    for record in sdf_records(file):
        yield record.line, record.lines[0].strip(), partial(_mol_of, record)


def _of_mol2(file: InputFile, _: Ways) -> Iterator[_Found]:
    lines = plain_bytes(file).decode("utf-8", "replace").splitlines()
    starts = [k for k, line in enumerate(lines) if line.startswith("@<TRIPOS>MOLECULE")]
    for a, b in pairwise([*starts, len(lines)]):
        title = lines[a + 1].strip() if a + 1 < b else ""
        yield a + 1, title, partial(_mol_of_mol2, "\n".join([*lines[a:b], ""]))


def _mol_of_mol2(block: str, _: Ways) -> Mol:
    return mol_of_mol2(block)


def _of_smiles(file: InputFile, _: Ways) -> Iterator[_Found]:
    for k, line in enumerate(plain_bytes(file).decode("utf-8", "replace").splitlines(), 1):
        words = line.split(None, 1)
        if words and not line.startswith("#"):
            name = words[1].strip() if len(words) > 1 else ""
            yield k, name, partial(_of_words, words[0], name)


def _of_poses(file: InputFile, _: Ways, is_dlg: bool = False) -> Iterator[_Found]:
    """Yield the poses of a PDBQT or DLG file."""
    for pose in docked.poses(file, is_dlg):
        yield pose.line, pose.name, partial(_of_pose, pose)


def _of_residues(file: InputFile, ways: Ways) -> Iterator[_Found]:
    """Yield the residues of all models of a structure that match a template."""
    if ways.template is None:
        raise InputError(
            f"{file}: has no bond orders; give the molecule's SMILES, or the code of its PDB component, as "
            "`template`, or an SDF file"
        )
    template = template_of(ways.template, file)
    graph, numbers, nearest = graph_of(template), model_numbers(file), dict[str, str]()
    count = 0
    for number in numbers:
        structure = read_structure(file, number)
        labels, starts = structure.labels, structure.labels.residue_starts
        for residue, start in enumerate(starts.tolist()):
            name = str(labels.residue_names[start])
            own = np.flatnonzero(labels.residue_index == labels.residue_index[start])
            heavy = own[labels.elements[own] != "H"]
            if is_water(name) or (is_polymer(name) and len(heavy) != len(graph)) or len(heavy) < 2:
                continue
            order, why = match(graph, labels.elements[heavy].tolist(), structure.positions[heavy])
            if order is None:
                if not is_polymer(name):
                    nearest.setdefault(name, why)
                continue
            count += 1
            text = f"{labels.residues[residue]}" + (f", model {number}" if len(numbers) > 1 else "")
            hydrogens = own[labels.elements[own] == "H"]
            yield text, text, partial(_of_residue, template, structure, heavy, hydrogens, order)
    if not count:
        told = "; ".join(f"{name}: {why}" for name, why in list(nearest.items())[:3])
        raise InputError(f"{file}: no residue matches the molecule of the template" + (f": {told}" if told else ""))


_READERS: dict[str, _Reader] = {
    ".sdf": _of_sdf, ".mol": _of_sdf, ".mol2": _of_mol2, ".smi": _of_smiles, ".pdbqt": _of_poses,
    ".dlg": partial(_of_poses, is_dlg=True),
    **dict.fromkeys((".pdb", ".ent", ".cif", ".mmcif", ".pdbx"), _of_residues),
}  # fmt: skip


def _of_words(smiles: str, name: str, ways: Ways) -> Ligand:
    return Ligand.from_smiles(smiles, name, residue_name=ways.residue_name, ph=ways.ph)


def _of_pose(pose: docked.Pose, ways: Ways) -> Mol:
    """Build the molecule of a docked pose, with the hydrogens of its SMILES."""
    found = pose.molecule(None if ways.template is None else template_of(ways.template))
    found.SetProp("_Name", pose.name)
    if pose.score:
        found.SetProp(docked.SCORE, pose.score)
    return found


def _of_residue(
    template: Mol, structure: Structure, heavy: Indices, hydrogens: Indices, order: Indices, _: Ways
) -> Mol:  # fmt: skip
    """Build the molecule of a residue: bonds and hydrogens of the template, positions and names of the residue."""
    chem: Any = extra("rdkit.Chem", _PURPOSE)
    places, labels = structure.positions[heavy], structure.labels
    back = np.argsort(order)
    parents = [int(back[k]) for k in parents_of(places, structure.positions[hydrogens])]
    whole = completed(template, places[order], list(zip(parents, structure.positions[hydrogens], strict=True)))
    found: Mol = chem.RenumberAtoms(whole, [*back.tolist(), *range(len(order), whole.GetNumAtoms())])
    for atom, name in zip(found.GetAtoms(), labels.names[heavy].tolist(), strict=False):
        atom.SetProp(ATOM_NAME, name)
    found.SetProp("_Name", str(labels.residue_names[heavy[0]]))
    found.SetProp(_RESIDUE, str(labels.residue_names[heavy[0]]))
    return found


def _mol_of(record: SdfRecord, _: Ways) -> Mol:
    """Build an RDKit Mol from elements, charges, bonds and positions of an SDF record. Raises FormatError."""
    molecule = record.molecule()
    chem: Any = extra("rdkit.Chem", "a file of small molecules")
    geometry: Any = extra("rdkit.Geometry", "a file of small molecules")
    kinds = {
        "1": chem.BondType.SINGLE, "2": chem.BondType.DOUBLE, "3": chem.BondType.TRIPLE, "4": chem.BondType.AROMATIC
    }  # fmt: skip
    table, made = chem.GetPeriodicTable(), chem.RWMol()
    for k, symbol in enumerate(molecule.graph.elements):
        if symbol not in _SYMBOLS:
            raise FormatError(f"atom {k + 1} is {quoted(symbol)}, which is not an element")
        atom = chem.Atom(table.GetAtomicNumber(symbol))
        atom.SetFormalCharge(molecule.charges[k])
        atom.SetNumRadicalElectrons(molecule.radicals[k])
        made.AddAtom(atom)
    joined = set[tuple[int, int]]()
    for i, j, kind in molecule.orders:
        pair = min(i, j), max(i, j)
        if kind not in kinds or pair in joined:
            why = "occurs twice" if pair in joined else f"has the type {quoted(kind)}, which is not a bond order"
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
    for name, text in record.data.items():
        if name.strip() and not name.startswith("_"):
            found.SetProp(name, text)
    return found


def _refused(where: str, error: Exception) -> InputError:
    """Build the error for a molecule for which RDKit fails with an unexpected error."""
    return InputError(
        f"{where}: RDKit cannot convert it to a molecule: {_tidy(str(error)).partition(' Violation occurred')[0]}"
    )


def _of_file(molecule: Mol, where: str, number: int, ways: Ways) -> Ligand:
    """Convert the Mol of a record to a Ligand. Raises InputError if RDKit fails."""
    try:
        return _of_record(molecule, where, number, ways)
    except PeleError:
        raise
    except (RuntimeError, ValueError) as error:
        raise _refused(where, error) from None


def _of_record(molecule: Mol, where: str, number: int, ways: Ways) -> Ligand:
    chem: Any = extra("rdkit.Chem", "a file of small molecules")
    with _quiet_rdkit():
        try:
            chem.SanitizeMol(molecule)
        except ValueError as error:
            raise InputError(f"{where}: molecule {number:,} is chemically impossible: {_tidy(str(error))}") from None
        name = molecule.GetProp("_Name").strip() if molecule.HasProp("_Name") else ""
        source = f"{where} ({name})" if name and name not in where else where
        _within_size(molecule, source)
        if not molecule.GetNumConformers() or not np.any(molecule.GetConformer().GetPositions()):
            raise InputError(f"{source}: has no positions; give a file with positions in three dimensions, or SMILES")
        notes: list[str] = []
        if ways.ph is not None:
            _check_lengths(molecule, source)
            molecule, notes = _protonated(molecule, ways.ph, source)
        elif molecule.HasProp(ADDED):
            text = f"{source}: {molecule.GetProp(ADDED)} hydrogens were added according to its SMILES or template"
            notes = [Note(text, code="hydrogens_added")]
        lacking = sum(atom.GetTotalNumHs() for atom in molecule.GetAtoms())
        if lacking and ways.hydrogens == "given" and ways.ph is None:
            raise InputError(
                f"{source}: {lacking:,} hydrogens are missing; give the molecule with all of them and its formal "
                f"charges, or, if these charges are correct, add them (`{ways.word}='add'`)"
            )
        _check_graph(molecule, source)
        _check_lengths(molecule, source)
        if lacking and ways.ph is None:
            molecule = chem.AddHs(molecule, addCoords=True)
            notes.append(
                Note(
                    f"{source}: {lacking:,} hydrogens were added; formal charges are the file's", code="hydrogens_added"
                )
            )
        chem.AssignStereochemistryFrom3D(molecule)
        own = molecule.GetPropsAsDict(False, False)
    residue = ways.residue_name or (molecule.GetProp(_RESIDUE) if molecule.HasProp(_RESIDUE) else "")
    properties = {str(key): str(value) for key, value in own.items() if not str(key).startswith("_")}
    fitting = residue if _NAME.fullmatch(residue) or ways.residue_name else "LIG"
    return Ligand(molecule, name, fitting, source, tuple(notes), properties)


def _protonated(molecule: Mol, ph: float, source: str) -> tuple[Mol, list[str]]:
    """Protonate a molecule by its functional groups; hydrogens are added if it has positions. Raises InputError."""
    chem: Any = extra("rdkit.Chem", _PURPOSE)
    arguments.number("ph", ph, "a pH of 0 to 14", least=0, most=14)
    _check_elements(molecule, source)
    with _quiet_rdkit():
        heavy, groups = at_ph(chem.RemoveAllHs(molecule), ph)
        found = chem.AddHs(heavy, addCoords=True) if heavy.GetNumConformers() else heavy
    charge = sum(atom.GetFormalCharge() for atom in found.GetAtoms())
    told = f", with {', '.join(dict.fromkeys(groups))} charged" if groups else ""
    text = f"{source}: protonated at pH {ph:g} by the typical pKa of its groups: charge {charge:+d}{told}"
    return found, [Note(text, code="protonated")]


def _check(molecule: Mol, source: str) -> None:
    """Raise InputError for molecules that general force fields do not support, and for drawings."""
    if not molecule.GetNumConformers():
        raise InputError(f"{source}: has no positions; embed it: Ligand.from_smiles generates them")
    lacking = sum(atom.GetTotalNumHs() for atom in molecule.GetAtoms())
    if lacking:
        raise InputError(f"{source}: {lacking:,} hydrogens are missing; add them: Chem.AddHs(molecule, addCoords=True)")
    _check_graph(molecule, source)
    _check_lengths(molecule, source)


def _within_size(molecule: Mol, source: str) -> Mol:
    """Return the molecule unchanged. Raises InputError if it has too many atoms."""
    if molecule.GetNumAtoms() > MOST_ATOMS:
        raise InputError(f"{source}: has {molecule.GetNumAtoms():,} atoms; a ligand has {MOST_ATOMS} at most")
    return molecule


def _check_elements(molecule: Mol, source: str) -> None:
    """Raise InputError for unsupported elements."""
    for atom in molecule.GetAtoms():
        if atom.GetSymbol() not in ELEMENTS:
            raise InputError(
                f"{source}: atom {atom.GetIdx() + 1} is {atom.GetSymbol()}, for which GAFF has no parameters; "
                f"its elements are {', '.join(ELEMENTS)}"
            )


def _check_graph(molecule: Mol, source: str) -> None:
    from rdkit import Chem

    _check_elements(molecule, source)
    for atom in molecule.GetAtoms():
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
    """Raise InputError for unphysical bond lengths, as in drawings."""
    from rdkit import Chem

    positions = np.array(molecule.GetConformer().GetPositions())
    if not np.isfinite(positions).all():
        raise InputError(f"{source}: has positions that are not numbers")
    table = Chem.GetPeriodicTable()
    for bond in molecule.GetBonds():
        i, j = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        usual = sum(table.GetRcovalent(molecule.GetAtomWithIdx(k).GetAtomicNum()) for k in (i, j))
        length = float(np.linalg.norm(positions[i] - positions[j]))
        if not _SHORTEST * usual < length < _LONGEST * usual:
            flat = length > 0 and np.ptp(positions, axis=0).min() < 1e-3
            what = (
                "it is a two-dimensional drawing; give three-dimensional positions" if flat else "correct the positions"
            )
            symbols = "-".join(molecule.GetAtomWithIdx(k).GetSymbol() for k in (i, j))
            far = f"{length:.2f}" if length < _MOST_WRITTEN else f"{length:.3g}"
            raise InputError(f"{source}: atoms {i + 1} and {j + 1} ({symbols}) are bonded at {far} A; {what}")


def _tidy(message: str) -> str:
    """Return a message of RDKit on one line."""
    return " ".join(message.split())


@contextmanager
def _quiet_rdkit() -> Iterator[None]:
    """Suppress RDKit's log messages."""
    base: Any = extra("rdkit.rdBase", _PURPOSE)
    block = base.BlockLogs()
    try:
        yield
    finally:
        del block
