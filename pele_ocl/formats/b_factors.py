"""Occupancies and B-factors of structure files, which are copied to output files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import gemmi
import numpy as np

from ..atoms import Floats, Labels
from ..common.errors import FormatError
from ..common.inputfile import InputFile
from .registry import is_structure, structure_format

Place = tuple[str, int, str]  # chain, residue number, insertion code
Values = dict[str, tuple[float, float]]  # occupancy and B-factor by atom name
_NO_MARK = "\0"  # altloc in gemmi of atoms without an alternate location


def read_b_factors(source: InputFile, labels: Labels) -> Floats | None:
    """Read the occupancies and B-factors (n, 2) of atoms by their labels; None if the format does not support them.

    Atoms that are not in the file, such as added hydrogens, get the values of the first atom of their residue, or 1 and
    0 if the residue is not in the file. Residues with the same chain, number and insertion code are matched in order.
    """
    first_model = structure_format(source.path).first_model if is_structure(source.path) else None
    if first_model is None:
        return None
    known = _known(source, first_model)
    found = np.empty((len(labels), 2))
    names, starts = labels.names.tolist(), labels.residue_starts
    places = (of[starts].tolist() for of in (labels.chains, labels.residue_numbers, labels.insertion_codes))
    seen = Counter[Place]()
    for start, end, *residue in zip(starts.tolist(), [*starts[1:].tolist(), len(labels)], *places, strict=True):
        place: Place = (residue[0], residue[1], residue[2])
        copies = known.get(place, [{}])
        own = copies[min(seen[place], len(copies) - 1)]
        seen[place] += 1
        there = [own.get(name) for name in names[start:end]]
        first = next((values for values in there if values is not None), (1.0, 0.0))
        found[start:end] = [values or first for values in there]
    return found


def _known(source: InputFile, first_model: Callable[[InputFile], gemmi.Structure]) -> dict[Place, list[Values]]:
    """Read the values of the first model by residue. Residues with the same identifiers are kept separate, in order.

    The alternate location with the highest occupancy is used.
    """
    try:
        structure = first_model(source)
    except (ValueError, RuntimeError) as error:
        raise FormatError(f"{source}: its B-factors cannot be read: {error}") from None
    residues: dict[Place, list[dict[tuple[str, str], gemmi.Atom]]] = {}  # by name and altloc
    for chain in structure[0] if len(structure) else ():
        for residue in chain:
            place = chain.name, int(residue.seqid.num or 0), residue.seqid.icode.strip()
            copies = residues.setdefault(place, [{}])
            for atom in residue:  # gemmi merges such residues of two chains with the same identifier
                if (atom.name, atom.altloc) in copies[-1]:
                    copies.append({})
                copies[-1][atom.name, atom.altloc] = atom
    found: dict[Place, list[Values]] = {}
    for place, copies in residues.items():
        for own in copies:
            values: Values = {}
            for atom in _one_location(list(own.values())):
                values.setdefault(atom.name, (atom.occ, atom.b_iso))
            found.setdefault(place, []).append(values)
    return found


def _one_location(atoms: Sequence[gemmi.Atom]) -> Sequence[gemmi.Atom]:
    """Choose the atoms of a residue without an alternate location or with the best occupied one, as in assembly.py."""
    sums: dict[str, float] = {}
    for atom in atoms:
        sums[atom.altloc] = sums.get(atom.altloc, 0.0) + atom.occ
    marks = [mark for mark in sums if mark != _NO_MARK]
    if len(marks) < 2:
        return atoms
    best = max(marks, key=lambda mark: round(sums[mark], 6))
    return [atom for atom in atoms if atom.altloc in (_NO_MARK, best)]
