"""Reader of mmCIF files (PDBx/mmCIF dictionary, category atom_site), parsed with gemmi."""

from __future__ import annotations

import re
from functools import partial
from os import PathLike

import gemmi
import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Ints, Strings, Structure
from ..atoms.chemistry import element
from ..common.errors import FormatError
from ..common.inputfile import InputFile, read_file
from ..common.textfiles import lines, quoted
from .assembly import ListedAtoms, fill_readable, first_readable, model_note, structure
from .cells import cif_cell
from .registry import StructureFormat

_COORDINATES = ("Cartn_x", "Cartn_y", "Cartn_z")


def read_mmcif(path: str | PathLike[str], model: int | None = None) -> Structure:
    """Read one model of an mmCIF file.

    Labels are the author's (auth_*), as in publications and PDB files, or label_* if these are missing. The first data
    block with atoms is read. A new label_asym_id starts a new segment, like TER in a PDB file.

    model : pdbx_PDB_model_num; by default the first model in the file

    Raises FormatError for a damaged file, a missing model, and atoms without finite coordinates.
    """
    file = read_file(path)
    source = str(file)
    site = _Site(atom_block(file), source)
    chosen = site.model(model)
    notes = (model_note(source, site.models[0]),) if model is None and not chosen.all() else ()
    return _structure(_records(site)[chosen], source, notes)


def read_mmcif_conformations(file: InputFile, failed: dict[int, str] | None = None) -> tuple[list[int], Floats]:
    """Read all models as conformations: model numbers, and positions (m, n, 3) A; see read_conformations."""
    numbers = mmcif_models(file)
    source = str(file)
    site = _Site(atom_block(file), source)
    records = _records(site)
    names = dict.fromkeys(site.models.tolist())
    models = [records[np.asarray(site.models == name)] for name in names]
    read = partial(_structure, source=source)
    chosen, first = first_readable(models, read, failed)
    of_first = numbers[next(k for k, model in enumerate(models) if model is chosen)]

    def positions_in(place: int) -> Floats:
        number, other = numbers[place], read(models[place])
        if len(other.positions) != len(first.positions):
            raise FormatError(
                f"{source}: model {number} has {len(other.positions):,} atoms, model {of_first} "
                f"{len(first.positions):,}; expected conformations of one molecule"
            )
        for i in np.flatnonzero(_identities(other) != _identities(first))[:1].tolist():
            raise FormatError(
                f"{source}: atom {other.labels.atom(i)} of model {number} is in the position of model {of_first}'s "
                f"{first.labels.atom(i)}; expected conformations of one molecule"
            )
        return other.positions

    conformations = np.empty((len(models), len(first.positions), 3))
    fill_readable(conformations, range(len(models)), positions_in, failed)
    return numbers, conformations


def _identities(model: Structure) -> Strings:
    """Return a text with the residue and name of each atom."""
    labels = model.labels
    which = labels.residue_index
    names = np.array([labels.residue(int(i)) for i in labels.residue_starts], np.str_)
    return np.char.add(np.char.add(names[which], " "), labels.names)


def _records(site: _Site) -> ListedAtoms:
    """Return all atoms in the file."""
    numbers, codes = site.residue_numbers()
    names, residues = site.author("atom_id"), site.author("comp_id")
    symbols = site.strings("type_symbol")
    distinct, inverse = np.unique(np.stack([names, residues, symbols]), axis=1, return_inverse=True)
    pieces = site.pieces()
    return ListedAtoms(
        positions=np.stack([site.numbers(axis, np.nan) for axis in _COORDINATES], axis=1),
        names=names,
        elements=np.array([element(*atom) for atom in distinct.T.tolist()], np.str_)[inverse.ravel()],
        residue_names=residues,
        residue_numbers=numbers,
        insertion_codes=codes,
        chains=site.author("asym_id"),
        altlocs=site.strings("label_alt_id"),
        occupancies=site.numbers("occupancy", 1.0),
        hetero=site.strings("group_PDB") == "HETATM",
        pieces=pieces,
        copies=np.zeros_like(pieces),
        lines=np.zeros(len(names), np.int32),
    )


def _structure(records: ListedAtoms, source: str, notes: tuple[str, ...] = ()) -> Structure:
    """Assemble the Structure of a model. Raises FormatError for coordinates that are not finite."""
    whole = structure(records, source, notes)
    bad = ~np.isfinite(whole.positions).all(axis=1)
    if bad.any():
        atom = whole.labels.atom(int(np.argmax(bad)))
        raise FormatError(f"{source}: atom {atom} has a coordinate that is not a finite number; correct or delete it")
    return whole


def mmcif_models(path: InputFile) -> list[int]:
    """Return the model numbers in an mmCIF file, in order; 1 if it has no numbers.

    Raises FormatError for a damaged file, or invalid or duplicate model numbers.
    """
    names = dict.fromkeys(_Site(atom_block(path), str(path)).models.tolist())
    strange = [name for name in names if name and not re.fullmatch("[0-9]{1,9}", name)]
    if strange:
        raise FormatError(f"{path}: the model number {quoted(strange[0])} is not a number")
    numbers = [int(name or 1) for name in names]
    if len(set(numbers)) < len(numbers):
        raise FormatError(f"{path}: two models have the same number ({', '.join(map(repr, names))}); renumber them")
    return numbers


def sequence_records(path: InputFile) -> list[str]:
    """Return PDB SEQRES and MODRES records for the sequences in an mmCIF file, with author chain identifiers.

    Raises FormatError if the sequences cannot be read.
    """
    try:
        header = gemmi.make_structure_from_block(atom_block(path)).make_pdb_headers()
    except (ValueError, RuntimeError) as error:
        raise FormatError(f"{path}: its sequences cannot be read: {error}") from None
    return [line for line in header.splitlines(keepends=True) if line.startswith(("SEQRES", "MODRES"))]


def atom_block(path: InputFile) -> gemmi.cif.Block:
    """Return the first data block with atoms. Raises FormatError if there is none or the file is not mmCIF."""
    text = "".join(lines(path, "mmCIF"))
    try:
        document = gemmi.cif.read_string(text)
    except (ValueError, RuntimeError) as error:
        place, _, what = re.sub(r"^string:?", "", str(error)).partition(" ")
        line = re.match(r"\d+", place)
        raise FormatError(f"{path}{':' + line[0] if line else ''}: not valid mmCIF: {what.strip()}") from None
    for block in document:
        missing = [axis for axis in _COORDINATES if len(block.find_values(f"_atom_site.{axis}")) == 0]
        if not missing:
            return block
        if len(missing) < len(_COORDINATES):
            raise FormatError(f"{path}: the category atom_site has no column {missing[0]}; all atoms need x, y and z")
    raise FormatError(f"{path}: contains no atoms (no _atom_site category); is it a structure file?")


class _Site:
    """Columns of the category atom_site, with "" for missing values."""

    def __init__(self, block: gemmi.cif.Block, source: str) -> None:
        self._block = block
        self._source = source
        self._length = len(block.find_values("_atom_site.Cartn_x"))
        self.models = self.strings("pdbx_PDB_model_num")

    def strings(self, item: str) -> Strings:
        values = [gemmi.cif.as_string(value) for value in self._block.find_values(f"_atom_site.{item}")]
        return np.array(values or [""] * self._length, np.str_)

    def author(self, item: str) -> Strings:
        given, own = self.strings(f"auth_{item}"), self.strings(f"label_{item}")
        return np.asarray(np.where(given != "", given, own))

    def numbers(self, item: str, absent: float) -> Floats:
        """Return numbers without standard uncertainties; NaN for invalid values."""
        values = [gemmi.cif.as_number(value) for value in self._block.find_values(f"_atom_site.{item}")]
        return np.array(values or [absent] * self._length, np.float64)

    def residue_numbers(self) -> tuple[Ints, Strings]:
        distinct, inverse = np.unique(self.author("seq_id"), return_inverse=True)
        return self._integers(distinct)[inverse], self.strings("pdbx_PDB_ins_code")

    def pieces(self) -> Ints:
        """Return a counter that increases at each change of label_asym_id, (n,)."""
        own = self.strings("label_asym_id")
        return np.cumsum(np.concatenate([[False], own[1:] != own[:-1]]), dtype=np.int32)

    def model(self, number: int | None) -> NDArray[np.bool_]:
        """Return a mask (n,) of the atoms in the requested model."""
        wanted = self.models[0] if number is None else str(number)
        if wanted not in self.models:
            have = ", ".join(dict.fromkeys(self.models.tolist()))
            raise FormatError(f"{self._source}: has no model {number}; it has {have or 'none with a number'}")
        return np.asarray(self.models == wanted)

    def _integers(self, values: Strings) -> Ints:
        for value in values.tolist():
            if value and not re.fullmatch(r"[-+]?\d{1,9}", value):
                raise FormatError(f"{self._source}: residue number {quoted(value)} in auth_seq_id is not a number")
        return np.array([int(value or 0) for value in values.tolist()], np.int32)


def _first_model(file: InputFile) -> gemmi.Structure:
    """Read the first block with atoms through gemmi, for occupancies and B-factors."""
    return gemmi.make_structure_from_block(atom_block(file))


FORMAT = StructureFormat(
    read_mmcif,
    mmcif_models,
    conformations=read_mmcif_conformations,
    cell=cif_cell,
    first_model=_first_model,
    written_as=".cif",
)
