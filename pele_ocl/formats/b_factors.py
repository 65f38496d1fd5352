"""Occupancies and B-factors of a structure file, which are no part of energies but go from file to file."""

from __future__ import annotations

from collections.abc import Sequence

import gemmi
import numpy as np

from ..atoms import Floats, Labels
from ..errors import FormatError
from ..inputfile import InputFile
from ..textfiles import lines
from .mmcif import atom_block
from .pdb import is_atom_line, records
from .registry import structure_suffix

Place = tuple[str, int, str]  # chain, residue number, insertion code
Key = tuple[str, int, str, str]  # the same, and the atom's name
_NO_MARK = "\0"  # gemmi's, of atoms without an alternate location
_MMCIF = (".cif", ".mmcif")
_PDB = (".pdb", ".ent")


def read_b_factors(source: InputFile, labels: Labels) -> Floats | None:
    """Occupancies and B-factors (n, 2) of atoms by their labels; None for a format that has none.

    Atoms that the file lacks, such as added hydrogens, get the values of their residue's first atom there. Without one
    they get 1 and 0.
    """
    suffix = structure_suffix(source.path)
    if suffix not in (*_PDB, *_MMCIF):
        return None
    known = _known(source, suffix in _MMCIF)
    found = np.empty((len(labels), 2))
    names, starts = labels.names.tolist(), labels.residue_starts
    places = (of[starts].tolist() for of in (labels.chains, labels.residue_numbers, labels.insertion_codes))
    for start, end, *residue in zip(starts.tolist(), [*starts[1:].tolist(), len(labels)], *places, strict=True):
        there = [known.get((*residue, name)) for name in names[start:end]]
        first = next((values for values in there if values is not None), (1.0, 0.0))
        found[start:end] = [values or first for values in there]
    return found


def _known(source: InputFile, is_mmcif: bool) -> dict[Key, tuple[float, float]]:
    """Read the values of each atom of the first model; the best occupied of alternate locations counts."""
    try:
        if is_mmcif:
            structure = gemmi.make_structure_from_block(atom_block(source))
        else:
            atoms = (of for of in records(lines(source, "PDB"), source, is_atom_line) if of.kind == "ATOM")
            structure = gemmi.read_pdb_string("".join(of.line for of in atoms if of.ordinal == 0))
    except (ValueError, RuntimeError) as error:
        raise FormatError(f"{source}: its B-factors cannot be read: {error}") from None
    residues: dict[Place, list[gemmi.Atom]] = {}
    for chain in structure[0] if len(structure) else ():
        for residue in chain:
            place = chain.name, int(residue.seqid.num or 0), residue.seqid.icode.strip()
            residues.setdefault(place, []).extend(residue)
    found: dict[Key, tuple[float, float]] = {}
    for place, own in residues.items():
        for atom in _one_location(own):
            found.setdefault((*place, atom.name), (atom.occ, atom.b_iso))
    return found


def _one_location(atoms: Sequence[gemmi.Atom]) -> Sequence[gemmi.Atom]:
    """Choose the atoms of a residue without alternate location or of the best occupied one, as in assembly.py."""
    sums: dict[str, float] = {}
    for atom in atoms:
        sums[atom.altloc] = sums.get(atom.altloc, 0.0) + atom.occ
    marks = [mark for mark in sums if mark != _NO_MARK]
    if len(marks) < 2:
        return atoms
    best = max(marks, key=lambda mark: round(sums[mark], 6))
    return [atom for atom in atoms if atom.altloc in (_NO_MARK, best)]
