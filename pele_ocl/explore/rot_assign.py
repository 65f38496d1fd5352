"""PELE's ligand rotamer files, `LIG.rot.assign`, as written by peleffy."""

from __future__ import annotations

from os import PathLike

import numpy as np

from ..atoms import Atoms, Ints
from ..atoms.torsions import Flexible, Graph, SideChain, Torsion
from ..common.errors import FormatError
from ..common.textfiles import lines, whole

# Angle steps of PELE's dihedral libraries, degrees; other values are replaced by the next smaller step.
RESOLUTIONS = 360 / np.array([2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 72])


def read_rot_assign(path: str | PathLike[str], atoms: Atoms, ligand: Ints) -> Flexible:
    """Read the rotatable bonds of a ligand.

    ligand : (m,) indices of its atoms

    Raises FormatError for a line that cannot be read, and for atoms that are not in the ligand or not bonded.
    """
    graph, labels = Graph(atoms), atoms.labels
    assert labels is not None
    named = {str(labels.names[k]): k for k in ligand.tolist()}
    groups: list[list[Torsion]] = [[]]
    for number, line in enumerate(lines(path, "rotamer file"), 1):
        words, where = line.replace("&", " ").split(), f"{path}, line {number}"
        if not words or words[:2] == ["rot", "assign"]:
            continue
        if words == ["newgrp"]:
            groups.append([])
        elif words[0] == "sidelib" and len(words) == 4:
            groups[-1].append(_torsion(where, words[1:], graph, named, set(ligand.tolist())))
        else:
            raise FormatError(f"{where}: {line.strip()!r} is neither `sidelib NAME ATOM ATOM &` nor `newgrp &`")
    return Flexible(ligand, tuple(SideChain(tuple(group)) for group in groups if group))


def _torsion(where: str, words: list[str], graph: Graph, named: dict[str, int], own: set[int]) -> Torsion:
    """Parse the torsion of a line. Raises FormatError."""
    library, *names = words
    digits = library.upper().removeprefix("FREE").removeprefix("FRE").strip("_")
    if not library.upper().startswith("FRE") or (whole(digits) or 0) < 5:
        raise FormatError(f"{where}: {library} is not a library such as FREE30, of 5 degrees or more")
    names = [name.strip("_") for name in names]
    if missing := [name for name in names if name not in named]:
        raise FormatError(f"{where}: the ligand has no atom {missing[0]}")
    b, c = (named[name] for name in names)
    if c not in graph.neighbours[b]:
        raise FormatError(f"{where}: the atoms {names[0]} and {names[1]} are not bonded")
    moved = graph.beyond(b, c, own)
    if not moved:
        raise FormatError(f"{where}: a rotation about {names[0]}-{names[1]} does not move only atoms of the ligand")
    resolution = RESOLUTIONS[RESOLUTIONS <= int(digits)].max()
    return Torsion((b, c), np.array(moved, np.int32), float(resolution))
