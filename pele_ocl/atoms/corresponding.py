"""Matching of the atoms in two files of one molecule by their labels.

All readers of a second file for a molecule (coordinates, frames, references) use `correspondence`. Atoms are matched by
name whenever both files have names, never by their order alone.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ..common.errors import InputError
from ..common.notes import Note
from .chemistry import AMINO_ACIDS, is_nucleotide, is_polymer, is_water, tidy_element
from .labels import Labels
from .names import SPELLINGS, canonical_capitals, capitals, differences, digit_last, residue_names

_ATOMS, _CHAINS = "expected the same atoms", "give chains the same names in both"


@dataclass(frozen=True, eq=False)
class Correspondence:
    """Mapping of the atoms of a reference to the given atoms.

    order : (n,) index of the given atom for each atom of the reference; `positions[order]` has the order of the
        reference
    notes : notes on a different atom order and on different residue numbers
    """

    order: NDArray[np.intp]
    notes: tuple[str, ...] = ()

    @property
    def is_identity(self) -> bool:
        """True if the given atoms are in the order of the reference."""
        return bool((self.order == np.arange(len(self.order))).all())


def correspondence(
    reference: Labels | None, given: Labels | None, source: str, reference_source: str = "the structure",
    n_atoms: tuple[int, int] | None = None, advice: str = _ATOMS, among: bool = False,
) -> Correspondence:  # fmt: skip
    """Match given atoms to those of a reference by chain, residue and atom names.

    Residue and atom names of all supported programs are recognized (`residue_names`, `canonical`). If chains or residue
    numbers differ or are missing, residues are matched by number or in order. If one side has no names, atoms are
    matched in order and their elements are compared.

    reference, given : Labels; None if there are no names
    source, reference_source : files or objects that contain the given labels and the reference, for messages
    n_atoms : numbers of reference and given atoms, needed if one side has no labels
    advice : end of the error message about atoms that differ, with what to do
    among : True to allow additional given atoms; `counterparts` then does the matching

    Raises InputError that names the first difference, if an atom has no counterpart or an ambiguous one, or if elements
    differ.
    """
    sides = _Sides(source, reference_source, reference, given, advice)
    both_named = all(of is not None and _has_names(of) for of in (reference, given))
    if among and both_named and reference is not None and given is not None and len(given) > len(reference):
        order = counterparts(reference, given, source)
        if (order < 0).any():
            raise InputError(f"{source}: lacks {sides.mine(int((order < 0).argmax()))} of {reference_source}; {advice}")
        _require_elements(reference, given, order, sides)
        return Correspondence(order)
    if reference is None or given is None or not _has_names(reference) or not _has_names(given):
        n, n_given = n_atoms or tuple(0 if of is None else len(of) for of in (reference, given))
        if n != n_given:
            raise _other_atoms(f"{source}: has {n_given:,} atoms, {reference_source} {n:,}", advice)
        found = Correspondence(np.arange(n, dtype=np.intp))
    elif _are_in_order(reference, given):
        found = Correspondence(np.arange(len(reference), dtype=np.intp))
    else:
        found = _by_names(reference, given, sides)
    if reference is not None and given is not None:
        _require_elements(reference, given, found.order, sides)
    return found


OTHER_ATOMS = "other_atoms"  # code of errors about atoms that differ from a reference


def _other_atoms(what: str, advice: str) -> InputError:
    """Create the error about atoms that differ. Callers with better advice can use `what` alone."""
    return InputError(f"{what}; {advice}", code=OTHER_ATOMS, what=what)


def counterparts(reference: Labels, given: Labels, source: str) -> NDArray[np.intp]:
    """Find the given atom for each atom of a reference, (n,) indices, -1 for atoms without a counterpart.

    Both sides may have additional atoms and residues. Residues are matched by chain and number, or by number alone if
    the sides share no chain identifier. Ligands that occur once on each side are also matched by name.

    source : file or object with the given labels, for messages

    Raises InputError if several given residues match the same residue of the reference.
    """
    with_codes = all((labels.insertion_codes != "").any() for labels in (reference, given))
    mine, theirs = _residues(reference, with_codes), _residues(given, with_codes)
    found = np.full(len(reference), -1, np.intp)
    for i, j in _shared_residues(mine, theirs, source, given):
        places = np.array(_shared_places(mine[i], theirs[j]), np.intp)
        found[mine[i].atoms] = np.where(places < 0, -1, np.array(theirs[j].atoms, np.intp)[places])
    return found


def _shared_residues(mine: Residues, theirs: Residues, source: str, given: Labels) -> Pairs:
    """Match the residues that both sides have."""
    chains, others = ({of.chain for of in side} - {""} for side in (mine, theirs))
    key: Key = (lambda of: of.key) if chains & others else (lambda of: of.number)
    found, left = Pairs(), list[int]()
    known = defaultdict[Hashable, list[int]](list)
    for j, of in enumerate(theirs):
        known[key(of)].append(j)
    for i, of in enumerate(mine):
        same = [j for j in known[key(of)] if _same_kind(of.name, theirs[j].name, len(of.atoms))]
        if len(same) > 1:
            raise InputError(
                f"{source}: has several residues like {given.residue(theirs[same[0]].atoms[0])}, so it is ambiguous "
                "which is compared; give the copies different chains or numbers"
            )
        if same:
            found.append((i, same[0]))
        else:
            left.append(i)
    taken = {j for _, j in found}
    free = [j for j in range(len(theirs)) if j not in taken]
    for i in left:
        name = mine[i].name
        if not (is_polymer(name) or is_water(name)):
            alike = [j for j in free if theirs[j].name == name]
            if len(alike) == 1 and sum(mine[k].name == name for k in left) == 1:
                found.append((i, alike[0]))
    return found


def _shared_places(mine: _Residue, theirs: _Residue) -> tuple[int, ...]:
    """Return the index in `theirs` of each atom in `mine`, -1 for atoms without a counterpart."""
    fit = _fit(mine, theirs)
    if fit is not None:
        return fit
    own, other = _plain(mine.names), _plain(theirs.names)
    keys, others = _with_shared_names(canonical_capitals(mine.names), own, canonical_capitals(theirs.names), other)
    sites, there = (Counter(key.partition("#")[0] for key in of if "#" in key) for of in (keys, others))
    places = {key: k for k, key in enumerate(others)} | {name: k for k, name in enumerate(other)}
    odd = {site for site in sites if sites[site] != there[site]}  # hydrogens are ambiguous
    return tuple(
        places.get(name, -1 if key.partition("#")[0] in odd else places.get(key, -1))
        for name, key in zip(own, keys, strict=True)
    )


@dataclass(frozen=True)
class _Sides:
    """Labels of both sides, for messages about their atoms."""

    source: str
    reference_source: str
    reference: Labels | None
    given: Labels | None
    advice: str

    def mine(self, i: int) -> str:
        """Describe atom i of the reference."""
        assert self.reference is not None
        return f"atom {i} ({self.reference.atom(i)})"

    def theirs(self, j: int) -> str:
        """Describe given atom j."""
        assert self.given is not None
        return f"atom {j} ({self.given.atom(j)})"

    def differ(self, i: int, j: int, advice: str = "") -> NoReturn:
        counts, theirs, mine = self._counts(), self.theirs(j), self.mine(i)
        each = f"has {theirs} where {self.reference_source} has {mine}"
        what = f"{counts}, and {theirs} for its {mine}" if counts else each
        raise _other_atoms(f"{self.source}: {what}", advice or self.advice)

    def lack(self, i: int) -> NoReturn:
        counts = self._counts()
        what = (
            f"{counts}, and lacks its {self.mine(i)}" if counts else f"lacks {self.mine(i)} of {self.reference_source}"
        )
        raise _other_atoms(f"{self.source}: {what}", self.advice)

    def exceed(self, j: int) -> NoReturn:
        counts = self._counts()
        what = (
            f"{counts} without {self.theirs(j)}" if counts else f"has {self.theirs(j)}, not in {self.reference_source}"
        )
        raise _other_atoms(f"{self.source}: {what}", self.advice)

    def _counts(self) -> str:
        """Describe the numbers of atoms if they differ."""
        assert self.reference is not None
        assert self.given is not None
        n, n_given = len(self.reference), len(self.given)
        return "" if n == n_given else f"has {n_given:,} atoms where {self.reference_source} has {n:,}"


@dataclass
class _Residue:
    """A residue with the indices of its atoms, which may not be contiguous in the file (`is_scattered`)."""

    chain: str
    number: tuple[int, str]
    name: str
    atoms: list[int]
    names: tuple[str, ...]
    is_scattered: bool = False

    @property
    def key(self) -> tuple[str, tuple[int, str]]:
        return self.chain, self.number


Residues = Sequence[_Residue]
Pairs = list[tuple[int, int]]  # indices of matching residues, in the reference and in the given labels
Key = Callable[[_Residue], Hashable]


def _by_names(reference: Labels, given: Labels, sides: _Sides) -> Correspondence:
    # MDTraj and ASE do not support insertion codes.
    with_codes = all((labels.insertion_codes != "").any() for labels in (reference, given))
    mine, theirs = _residues(reference, with_codes), _residues(given, with_codes)
    pairs = _pairs(mine, theirs, sides)
    _refuse_copies(theirs, pairs, sides)
    order = np.empty(len(reference), np.intp)
    for i, j in pairs:
        order[mine[i].atoms] = np.array(theirs[j].atoms, np.intp)[list(_fit(mine[i], theirs[j]) or ())]
    return Correspondence(order, (*_order_notes(order, sides), *_name_notes(mine, theirs, pairs, sides)))


def _pairs(mine: Residues, theirs: Residues, sides: _Sides) -> Pairs:
    """Match residues by chain and number, by one of the two, or in order."""
    by_key = _by(mine, theirs, lambda residue: residue.key)
    if _all_fit(mine, theirs, by_key):
        return by_key
    if {of.chain for of in mine} == {of.chain for of in theirs}:
        by_chain = _by_chain(mine, theirs)
        return by_chain if _all_fit(mine, theirs, by_chain) else _refuse(mine, theirs, sides)
    by_number, in_order = _by(mine, theirs, lambda residue: residue.number), _in_order(mine, theirs)
    is_unique = len({of.number for of in mine}) == len(mine)
    fitting = [
        pairs
        for pairs in (in_order, by_number if is_unique else [])
        if _all_fit(mine, theirs, pairs) and _other_chain(mine, theirs, pairs) is None
    ]
    if not fitting:
        stray = _other_chain(mine, theirs, in_order)
        if stray is not None and _all_fit(mine, theirs, in_order):
            sides.differ(mine[stray[0]].atoms[0], theirs[stray[1]].atoms[0], _CHAINS)
        _refuse(mine, theirs, sides)
    if fitting[0] != fitting[-1] and not any(of.chain for of in theirs):
        return fitting[-1]  # without chains, residue numbers are unique in the file
    if fitting[0] != fitting[-1]:
        i, j = next(pair for pair in sorted(fitting[-1]) if pair not in set(fitting[0]))
        k = dict(fitting[0])[i]
        raise InputError(
            f"{sides.source}: {sides.theirs(theirs[j].atoms[0])} has the number of {sides.mine(mine[i].atoms[0])} of "
            f"{sides.reference_source}, and {sides.theirs(theirs[k].atoms[0])} its place in the order of residues; "
            f"{_CHAINS}"
        )
    return fitting[0]


def _by(mine: Residues, theirs: Residues, key: Key) -> Pairs:
    """Pair residues with equal keys; residues with the same key are paired in order."""
    places = defaultdict[Hashable, list[int]](list)
    for j, residue in reversed(list(enumerate(theirs))):
        places[key(residue)].append(j)
    return [(i, places[key(residue)].pop()) for i, residue in enumerate(mine) if places.get(key(residue))]


def _in_order(mine: Residues, theirs: Residues) -> Pairs:
    """Pair residues in order, unless atoms are shuffled: residues not contiguous and their numbers not ascending.

    A file with all hydrogens at the end still has its residues in order.
    """
    for side in (mine, theirs):
        falls = any(a.chain == b.chain and a.number > b.number for a, b in pairwise(side))
        if falls and any(of.is_scattered for of in side):
            return []
    return list(zip(range(len(mine)), range(len(theirs)), strict=False))


def _by_chain(mine: Residues, theirs: Residues) -> Pairs:
    """Pair residues within chains of the same name, by number if possible, otherwise in order."""
    found: Pairs = []
    places, others = _chains(mine), _chains(theirs)
    for chain in places:
        own, other = [mine[i] for i in places[chain]], [theirs[j] for j in others[chain]]
        pairs = _by(own, other, lambda residue: residue.number)
        if not _all_fit(own, other, pairs):
            pairs = _in_order(own, other)
        found += [(places[chain][i], others[chain][j]) for i, j in pairs]
    return found


def _chains(residues: Residues) -> defaultdict[str, list[int]]:
    """Return the indices of the residues of each chain."""
    found = defaultdict[str, list[int]](list)
    for i, residue in enumerate(residues):
        found[residue.chain].append(i)
    return found


def _all_fit(mine: Residues, theirs: Residues, pairs: Pairs) -> bool:
    """Return whether all residues are paired and have the same atoms."""
    return len(pairs) == len(mine) == len(theirs) and all(_fit(mine[i], theirs[j]) is not None for i, j in pairs)


def _other_chain(mine: Residues, theirs: Residues, pairs: Pairs) -> tuple[int, int] | None:
    """Find the first pair in a chain whose name exists on both sides, but for different residues.

    Ligands and waters may have a separate chain on one side.
    """
    each = [(mine[i].chain, theirs[j].chain) for i, j in pairs if not is_water(mine[i].name)]
    own, other = (Counter(column) for column in zip(*each, strict=True)) if each else (Counter[str](), Counter[str]())
    kept = Counter(chain for chain, given in each if chain == given)
    stray = {chain for chain in own.keys() & other.keys() - {""} if 2 * kept[chain] < min(own[chain], other[chain])}
    differ = ((i, j) for i, j in pairs if mine[i].chain != theirs[j].chain)
    return next(((i, j) for i, j in differ if stray & {mine[i].chain, theirs[j].chain}), None)


def _refuse_copies(theirs: Residues, pairs: Pairs, sides: _Sides) -> None:
    """Raise InputError if several residues share a chain and number and the order of residues differs."""
    if all(i == j for i, j in pairs) and not any(of.is_scattered for of in theirs):
        return
    counts = Counter(of.key for of in theirs)
    copied = next((of for of in theirs if counts[of.key] > 1), None)
    if copied is not None:
        raise InputError(
            f"{sides.source}: several residues have the name and number of {sides.theirs(copied.atoms[0])}, and its "
            f"order is not that of {sides.reference_source}, so they cannot be distinguished; give the copies "
            "different "
            "chain identifiers in both"
        )


def _refuse(mine: Residues, theirs: Residues, sides: _Sides) -> NoReturn:
    """Raise InputError about the first atom that differs, using the pairing in which most residues match."""
    ways: list[Pairs] = [
        _by(mine, theirs, lambda residue: residue.key), _in_order(mine, theirs),
        _by(mine, theirs, lambda residue: residue.number), _by_chain(mine, theirs),
    ]  # fmt: skip
    best = max(ways, key=lambda pairs: (sum(_fit(mine[i], theirs[j]) is not None for i, j in pairs), len(pairs)))
    partner = dict(best)
    for i, residue in enumerate(mine):
        if i not in partner:
            sides.lack(residue.atoms[0])
        if _fit(residue, theirs[partner[i]]) is None:
            _refuse_residue(residue, theirs[partner[i]], sides)
    taken = set(partner.values())
    surplus = next((of for j, of in enumerate(theirs) if j not in taken), None)
    if surplus is not None:
        sides.exceed(surplus.atoms[0])
    i, j = next((pair for pair in best if mine[pair[0]].key != theirs[pair[1]].key), best[0])
    sides.differ(mine[i].atoms[0], theirs[j].atoms[0], _CHAINS)


def _refuse_residue(mine: _Residue, theirs: _Residue, sides: _Sides) -> NoReturn:
    """Raise InputError about the first atom that one of two residues lacks."""
    if not _same_kind(mine.name, theirs.name, max(len(mine.atoms), len(theirs.atoms))):
        sides.differ(mine.atoms[0], theirs.atoms[0])
    names, others = differences(mine.names, theirs.names)
    lacking = mine.atoms[mine.names.index(names[0])] if names else None
    more = theirs.atoms[theirs.names.index(others[0])] if others else None
    if lacking is not None and more is not None:
        sides.differ(lacking, more)
    if lacking is not None:
        sides.lack(lacking)
    if more is not None:
        sides.exceed(more)
    sides.differ(mine.atoms[0], theirs.atoms[0], "atoms of one name in a residue need one order, or different names")


def _order_notes(order: NDArray[np.intp], sides: _Sides) -> tuple[str, ...]:
    moved = np.flatnonzero(order != np.arange(len(order)))
    if not len(moved):
        return ()
    i = int(moved[0])
    return (
        Note(
            f"{sides.source}: {len(moved):,} atoms are in another order than in {sides.reference_source}, the first is "
            f"{sides.theirs(int(order[i]))}, there {sides.mine(i)}; they were matched by name",
            code="order",
        ),
    )


def _name_notes(mine: Residues, theirs: Residues, pairs: Pairs, sides: _Sides) -> tuple[str, ...]:
    """Return a note if both sides have chains and matched residues have different numbers."""
    differ = ((i, j) for i, j in pairs if mine[i].number != theirs[j].number)
    other = next(((i, j) for i, j in differ if mine[i].chain and theirs[j].chain), None)
    if other is None:
        return ()
    i, j = other
    return (
        Note(
            f"{sides.source}: residue numbers differ from {sides.reference_source}, the first are those of "
            f"{sides.theirs(theirs[j].atoms[0])}, there {sides.mine(mine[i].atoms[0])}; residues were matched in order",
            code="numbers",
        ),
    )


def _has_names(labels: Labels) -> bool:
    """Return whether atom names are informative, unlike those of an XYZ file, which are only elements."""
    if not (labels.names != "").any():
        return False
    return bool(
        (labels.residue_names != "").any() or (np.char.upper(labels.names) != np.char.upper(labels.elements)).any()
    )


def _require_elements(reference: Labels, given: Labels, order: NDArray[np.intp], sides: _Sides) -> None:
    """Raise InputError for the first atom with known, different elements."""
    own, other = reference.elements, given.elements[order]
    for i in np.flatnonzero(own != other).tolist():
        mine, theirs = tidy_element(str(own[i])), tidy_element(str(other[i]))
        if (
            mine != theirs
            and not {mine, theirs} & {"", "X"}
            and not _is_guess(str(given.names[order[i]]), mine, theirs)
        ):
            raise InputError(
                f"{sides.source}: {sides.theirs(int(order[i]))} is {theirs}, {sides.mine(i)} of "
                f"{sides.reference_source} {mine}; expected the same elements"
            )


def _is_guess(name: str, element: str, other: str) -> bool:
    """Return whether an atom name fits either element, such as `CL1` in a file without elements."""
    letters = re.sub("[^A-Z]", "", name.upper())
    return letters.startswith(element.upper()) and letters.startswith(other.upper())


def _are_in_order(reference: Labels, given: Labels) -> bool:
    """Return whether all labels are equal in order; a topology without chains may have other residue numbers.

    This avoids the full matching for large systems.
    """
    first = reference.residue_starts
    if len(reference) != len(given) or not np.array_equal(first, given.residue_starts):
        return False
    same = {
        name: np.array_equal(getattr(reference, name)[first], getattr(given, name)[first])
        for name in ("residue_names", "residue_numbers", "insertion_codes", "chains")
    }
    if not same.pop("residue_names") or not np.array_equal(reference.names, given.names):
        return False
    numbers, others = reference.residue_numbers[first], given.residue_numbers[first]
    is_one_chain = not (reference.chains != "").any()
    return all(same.values()) or (is_one_chain and not np.array_equal(np.sort(numbers), np.sort(others)))


def _residues(labels: Labels, with_codes: bool) -> list[_Residue]:
    """Return the residues in the order of their first atoms. Scattered parts with distinct atom names are merged.

    with_codes : True to compare insertion codes
    """
    found, last = list[_Residue](), dict[tuple[Hashable, str], _Residue]()
    names, starts = labels.names.tolist(), labels.residue_starts.tolist()
    for of, start, end in zip(labels.residues, starts, [*starts[1:], len(labels)], strict=True):
        number = (of.number, of.insertion_code if with_codes else "")
        residue = _Residue(of.chain, number, of.name, list(range(start, end)), tuple(names[start:end]))
        known = last.get((residue.key, of.name))
        if known is not None and not set(known.names) & set(residue.names):
            known.atoms += residue.atoms
            known.names += residue.names
            known.is_scattered = True
        else:
            last[residue.key, of.name] = residue
            found.append(residue)
    return found


def _fit(mine: _Residue, theirs: _Residue) -> tuple[int, ...] | None:
    return _places(mine.name, mine.names, theirs.name, theirs.names)


@lru_cache(maxsize=4096)
def _places(name: str, atoms: tuple[str, ...], other: str, others: tuple[str, ...]) -> tuple[int, ...] | None:
    """Return the index in one residue of each atom of another; None if their atoms differ.

    name, other : names of the residues; atoms, others : names of their atoms
    """
    if len(atoms) != len(others) or not _same_kind(name, other, len(atoms)):
        return None
    for spelling in _spellings(name, atoms, other, others):
        mine, theirs = _with_shared_names(spelling(atoms), _plain(atoms), spelling(others), _plain(others))
        if mine == theirs:
            return tuple(range(len(atoms)))
        places = {name: k for k, name in enumerate(theirs)}
        if len(places) == len(theirs) and places.keys() == set(mine):
            return tuple(places[name] for name in mine)
    return None


def _with_shared_names(
    mine: Sequence[str], own: Sequence[str], theirs: Sequence[str], other: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Match hydrogens on the same heavy atom by name where possible, and renumber the others: HB2 = HB2, HB3 = HB1.

    mine, theirs : canonical names, such as `B#0` and `B#1` for hydrogens on CB; own, other : names in the files
    """
    shared = {(key.partition("#")[0], name) for key, name in zip(mine, own, strict=True)}
    shared &= {(key.partition("#")[0], name) for key, name in zip(theirs, other, strict=True)}
    return _renumbered(mine, own, shared), _renumbered(theirs, other, shared)


def _renumbered(keys: Sequence[str], names: Sequence[str], shared: set[tuple[str, str]]) -> list[str]:
    found, ranks = list(keys), Counter[str]()
    for k in sorted(range(len(keys)), key=lambda k: keys[k]):
        site, is_numbered, _ = keys[k].partition("#")
        if is_numbered and (site, names[k]) in shared:
            found[k] = f"{site}={names[k]}"
        elif is_numbered:
            found[k] = f"{site}#{ranks[site]}"
            ranks[site] += 1
    return found


def _same_kind(name: str, other: str, n_atoms: int) -> bool:
    """Return False if two residue names are known to be different residues. For unknown names, the atoms decide."""
    if not name or not other or set(residue_names(name)) & set(residue_names(other)):
        return True
    if n_atoms == 1:
        return _letters(name) == _letters(other)
    return not (_is_standard(name) and _is_standard(other))


@lru_cache(maxsize=4096)
def _is_standard(name: str) -> bool:
    return bool(AMINO_ACIDS & set(residue_names(name))) or is_nucleotide(name) or is_water(name)


def _letters(name: str) -> str:
    return re.sub("[^A-Z]", "", name.upper())


def _spellings(
    name: str, atoms: Sequence[str], other: str, others: Sequence[str]
) -> Iterable[Callable[[Sequence[str]], tuple[str, ...]]]:
    """Return spellings for comparing atom names of two residues. Ions match by any of their names: NA, Na+, SOD."""
    if len(atoms) > 1:
        return (*SPELLINGS, _plain, _sites if is_water(name) else _cut)
    if is_water(name):
        return (_sites,)
    return SPELLINGS if _is_ion(name, atoms[0]) and _is_ion(other, others[0]) else (tuple, _plain)


def _is_ion(residue: str, atom: str) -> bool:
    return not is_polymer(residue) and _letters(atom) in map(_letters, residue_names(residue))


def _plain(names: Sequence[str]) -> tuple[str, ...]:
    """Return names in capitals, with hydrogen numbers last and * replaced by '."""
    return tuple(digit_last(capitals(name)).replace("*", "'") for name in names)


def _cut(names: Sequence[str]) -> tuple[str, ...]:
    """Truncate names to the four columns of a PDB file."""
    return tuple(name[:4] for name in _plain(names))


def _sites(names: Sequence[str]) -> tuple[str, ...]:
    """Name atoms and virtual sites of a water by element, numbered in the order of their names."""
    letters = [letter if (letter := (_letters(name) or "X")[0]) in "OH" else "M" for name in names]
    ranks = {name: rank for rank, name in enumerate(sorted(names))}
    pairs = list(zip(letters, (ranks[name] for name in names), strict=True))
    return tuple(f"{letter}{sorted(rank for of, rank in pairs if of == letter).index(own)}" for letter, own in pairs)
