"""Conversion of a structure file to PDB text for PDBFixer: the atoms chosen by the reader, and the sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, pairwise

import numpy as np

from ..atoms import Structure
from ..atoms.chemistry import is_polymer
from ..common.errors import InputError
from ..common.inputfile import InputFile
from ..common.textfiles import lines
from ..forcefield.bonding import POLYMER_BOND_A
from ..formats.mmcif import sequence_records
from ..formats.pdb import is_atom_line
from ..formats.pdb_writing import atom_lines
from ..formats.registry import HeldFile, structure_format
from .building import LINKS

_NAME = 3  # maximum length of residue names in PDB files
_FREE_NAMES = ("LIG", "INH", "DRG", *(f"{k:02d}" for k in range(1, 100)))  # names reserved for users in the PDB
_BACKBONES = ({"N", "CA", "C"}, {"C1'", "C3'", "O3'"})
_TRACES = {"CA", "P", "C1'"}  # atoms present even in a trace model


def chosen_text(source: InputFile, structure: Structure) -> str:
    """Return PDB text with the atoms of a structure: one model, without alternate locations.

    For PDB files the original lines are kept, except atoms that were not chosen and TER records between bonded
    residues. For mmCIF files the atoms are rewritten, after SEQRES and MODRES records with author chain identifiers. A
    TER record separates a chain from ligands, ions and waters with the same identifier, so that terminal residues are
    recognized.

    Raises FormatError for names in an mmCIF file that do not fit into a PDB file.
    """
    ends = _ends(structure)
    if structure_format(source).has_pdb_records:
        passed = set(chain.from_iterable(range(*lines) for lines in _joints(structure).values()))
        places = dict(zip(structure.lines.tolist(), structure.positions.tolist(), strict=True))
        return "".join(_chosen(lines(source, "PDB"), places, passed, {int(structure.lines[i]) for i in ends}))
    atoms = atom_lines(structure.labels, structure.positions, str(source))
    parted = (f"TER\n{line}" if i in ends else line for i, line in enumerate(atoms))
    sequences = [] if isinstance(source, HeldFile) else sequence_records(source)
    return "".join([*sequences, *parted, "END\n"])


def passed_ters(source: InputFile, structure: Structure) -> list[str]:
    """Return notes about ignored TER records between bonded residues."""
    if not structure_format(source).has_pdb_records:
        return []
    residues, joints = structure.labels.residues, _joints(structure)
    ters = (
        {number for number, line in enumerate(lines(source, "PDB"), 1) if line.startswith("TER")} if joints else set()
    )
    parted = [k for k, (first, last) in joints.items() if ters & set(range(first, last))]
    return [f"{residues[k]} and {residues[k + 1]} are bonded; the TER record between them was ignored" for k in parted]


def require_backbones(source: InputFile, structure: Structure) -> None:
    """Raise InputError if most residues lack backbone atoms, which cannot be built."""
    labels = structure.labels
    ends = [*labels.residue_starts.tolist(), len(labels)]
    lacking, n = list[int](), 0
    for k, (start, end) in enumerate(pairwise(ends)):
        own = {name.replace("*", "'") for name in labels.names[start:end].tolist()}
        if own & _TRACES and (is_polymer(str(labels.residue_names[start])) or not structure.hetero[k]):
            n += 1
            lacking += [] if any(backbone <= own for backbone in _BACKBONES) else [k]
    if lacking and 2 * len(lacking) > n:
        first = labels.residues[lacking[0]]
        raise InputError(
            f"{source}: {len(lacking):,} of {n:,} residues, {first} first, have incomplete backbones, which cannot be "
            "built; use a model with complete backbones"
        )


def with_short_names(structure: Structure) -> tuple[Structure, dict[str, str]]:
    """Rename residues whose names do not fit into a PDB file. Also returns the new names by the old ones.

    Raises InputError if there are not enough names reserved for users.
    """
    labels = structure.labels
    names = labels.residue_names
    long = [name for name in dict.fromkeys(names.tolist()) if len(name) > _NAME]
    free = [name for name in _FREE_NAMES if name not in set(names.tolist())]
    if len(long) > len(free):
        raise InputError(f"{structure.source}: {len(long)} residues have names longer than 3 letters; keep fewer")
    renamed = dict(zip(long, free, strict=False))
    if not renamed:
        return structure, {}
    new = np.array([renamed.get(name, name) for name in names.tolist()])
    return replace(structure, labels=replace(labels, residue_names=new)), renamed


def _ends(structure: Structure) -> set[int]:
    """Return the first atoms of residues at boundaries between a chain and ligands with the same identifier."""
    labels = structure.labels
    starts = [*labels.residue_starts.tolist(), len(labels)]
    names = [set(labels.names[a:b].tolist()) for a, b in pairwise(starts)]
    links = [any(backbone <= own for backbone in _BACKBONES) for own in names]
    is_chain = [has or is_polymer(of.name) for has, of in zip(links, labels.residues, strict=True)]
    joints = _joints(structure)
    return {
        starts[k + 1]
        for k in range(len(is_chain) - 1)
        if is_chain[k] != is_chain[k + 1]
        and labels.residues[k].chain == labels.residues[k + 1].chain
        and k not in joints
    }


def _joints(structure: Structure) -> dict[int, tuple[int, int]]:
    """Find bonded residues in different segments. Returns the lines between their atoms, by index of the first."""
    names, positions = structure.labels.names.tolist(), structure.positions
    starts = [*structure.labels.residue_starts.tolist(), len(names)]
    there = [dict(zip(names[a:b], range(a, b), strict=True)) for a, b in pairwise(starts)]
    found = {}
    for k in np.flatnonzero(np.diff(structure.segments)).tolist():
        ends = [(there[k][a], there[k + 1][b]) for a, b in LINKS if a in there[k] and b in there[k + 1]]
        if any(np.linalg.norm(positions[i] - positions[j]) < POLYMER_BOND_A for i, j in ends):
            found[k] = int(structure.lines[starts[k + 1] - 1]), int(structure.lines[starts[k + 1]])
    return found


def _chosen(
    text: Iterable[str], places: Mapping[int, list[float]], passed: set[int], ends: set[int]
) -> Iterator[str]:  # fmt: skip
    """Yield the lines of a PDB file with only the chosen atoms, without alternate location indicators.

    places : positions of the chosen atoms by line, A; passed : lines in which TER records are omitted; ends : lines
        that are preceded by a TER record
    """
    is_ended = False
    for number, line in enumerate(text, 1):
        if is_atom_line(line) or line.startswith(("ATOM", "HETATM")):
            if number in places:
                if number in ends and not is_ended:
                    yield "TER\n"
                is_ended = False
                place = "".join(f"{x:8.3f}" for x in places[number])
                yield f"{line[:16]} {line[17:30]}{place}{line[54:]}"
        elif line.startswith("TER") and number in passed:
            continue
        elif line.startswith("TER"):
            is_ended = True
            yield line
        elif not line.startswith(("ANISOU", "MODEL", "ENDMDL", "SIGATM", "SIGUIJ", "END\n", "END ")):
            yield line
