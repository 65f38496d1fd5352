"""PELE's atom selections: the union of atoms, links (residues) and chains, each without its omitted atoms."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Labels
from ...atoms.chemistry import aligned_name, is_polymer
from ...common.errors import InputError
from ...common.textfiles import quoted

Bools = NDArray[np.bool_]
Given = Mapping[str, object] | str

ALL: Given = {"chains": "all"}
LIGANDS, NO_LIGANDS = "ligands", "everythingButLigands"


def selected(atoms: Atoms | Labels, given: object, words: str) -> Bools:
    """Return a mask (n,) of the selected atoms.

    given : selection as in the control file; words : its name in messages

    Raises InputError for an invalid selection, and for a name that no atom has.
    """
    labels = atoms if isinstance(atoms, Labels) else atoms.labels
    if labels is None:
        raise InputError(f"{words}: the structure has no names of atoms to select by")
    if given == "empty":
        return np.zeros(len(labels), bool)
    if not isinstance(given, Mapping):
        raise InputError(f"{words} is {quoted(given)}; expected a selection of atoms, links or chains")
    omitted = given.get("omit", {})
    found = np.zeros(len(labels), bool)
    for level, marks in _LEVELS.items():
        mask = _of_level(labels, given.get(level), marks, f"{words}.{level}", True)
        if isinstance(omitted, Mapping):
            mask &= ~_of_level(labels, omitted.get(level), marks, f"{words}.omit.{level}", False)
        found |= mask
    unknown = set(given) - {*_LEVELS, "omit"}
    if unknown:
        raise InputError(f"{words}: {quoted(sorted(unknown)[0])} is not one of {', '.join(_LEVELS)}, omit")
    return found


def atom_of(atoms: Atoms | Labels, identity: object, words: str) -> int:
    """Return the index of the atom named by e.g. `A:16:_CA_`. Raises InputError unless there is exactly one."""
    chosen = np.flatnonzero(selected(atoms, {"atoms": {"ids": [identity]}}, words))
    if len(chosen) != 1:
        raise InputError(f"{words}: {quoted(identity)} names {len(chosen)} atoms; expected one")
    return int(chosen[0])


Marks = Mapping[str, Callable[[Labels, str], Bools]]


def _of_level(labels: Labels, given: object, marks: Marks, words: str, must_be: bool) -> Bools:
    """Return the mask selected by atoms, links or chains. must_be : whether each name must match an atom"""
    found = np.zeros(len(labels), bool)
    if given is None:
        return found
    if isinstance(given, str):
        return _whole(labels, given, words)
    if not isinstance(given, Mapping) or set(given) - set(marks):
        raise InputError(f"{words} is {quoted(given)}; expected {' or '.join(marks)}")
    for kind, names in given.items():
        for name in names if isinstance(names, list) else [names]:
            if not isinstance(name, str):
                raise InputError(f"{words}.{kind} contains {quoted(name)}; expected texts")
            mask = marks[kind](labels, name)
            if must_be and kind != "names" and not mask.any():
                raise InputError(f"{words}: no atom of the structure is in {quoted(name)}")
            found |= mask
    return found


def _whole(labels: Labels, word: str, words: str) -> Bools:
    """Return the mask selected by a keyword for whole chains."""
    if word == "all":
        return np.ones(len(labels), bool)
    if word in (LIGANDS, NO_LIGANDS):
        is_ligand = ligand_chains(labels)
        return is_ligand if word == LIGANDS else ~is_ligand
    raise InputError(f"{words} is {quoted(word)}; expected all, {LIGANDS} or {NO_LIGANDS}")


def ligand_chains(labels: Labels) -> Bools:
    """Return a mask (n,) of the atoms of chains without amino acids and nucleotides."""
    polymer = {name: is_polymer(name) for name in set(labels.residue_names.tolist())}
    is_polymer_atom = np.array([polymer[name] for name in labels.residue_names.tolist()], bool)
    with_polymers = np.unique(labels.chains[is_polymer_atom])
    return ~np.isin(labels.chains, with_polymers)


def _names(labels: Labels, name: str) -> Bools:
    """Return a mask of atoms with a name, either four PDB columns with `_` for blanks, or without blanks."""
    bare = name.strip("_")
    mask: Bools = labels.names == bare
    if len(name) != 4 or not mask.any():
        return mask
    wanted = name.replace("_", " ")
    elements = labels.elements[mask].tolist()
    mask[mask] = [aligned_name(bare, element) == wanted for element in elements]
    # In files with another alignment of names no atom matches; then compare names without blanks.
    return mask if mask.any() else labels.names == bare


def _elements(labels: Labels, name: str) -> Bools:
    mask: Bools = np.char.upper(labels.elements) == name.strip("_ ").upper()
    return mask


def _chains(labels: Labels, name: str) -> Bools:
    mask: Bools = labels.chains == ("" if name == "_" else name)
    return mask


def _links(labels: Labels, identity: str) -> Bools:
    """Return the mask of a residue, such as `A:16` or `A:184A`."""
    chain, _, number = identity.strip().partition(":")
    numbers = np.char.add(labels.residue_numbers.astype(str), labels.insertion_codes)
    mask: Bools = _chains(labels, chain) & (numbers == number.strip())
    return mask


def _ranges(labels: Labels, given: str) -> Bools:
    """Return the mask of a range of residues in file order, such as `A:1 A:4`."""
    ends = given.split()
    found = np.zeros(len(labels), bool)
    if len(ends) == 2:
        first, last = (np.flatnonzero(_links(labels, end)) for end in ends)
        if len(first) and len(last):
            found[first[0] : last[-1] + 1] = True
    return found


def _residue_names(labels: Labels, name: str) -> Bools:
    mask: Bools = labels.residue_names == name.strip("_ ")
    return mask


def _ids(labels: Labels, identity: str) -> Bools:
    """Return the mask of an atom, such as `A:16:_CA_`."""
    link, _, name = identity.rpartition(":")
    mask = _links(labels, link)
    return mask & _names(labels, name)


_LEVELS: dict[str, Marks] = {
    "atoms": {"ids": _ids, "names": _names, "elements": _elements},
    "links": {"ids": _links, "names": _residue_names, "ranges": _ranges},
    "chains": {"names": _chains},
}
