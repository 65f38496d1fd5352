"""Pair lists from positions and bonds: within a cutoff, within PELE's split cutoffs, and all pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Ints, require_atoms
from ..atoms.bond_paths import exclusions
from ..common import arguments
from ..common.arguments import checked
from ..common.errors import InputError
from ..common.modules import takes_structures
from .nonbonded import has_scaled_pairs
from .pairlist import AllPairs, Codes, PairList, pair_codes, pairs_of, require_pairs, unchecked

OneFour = Literal["exclude", "scale"]

# vesin uses cells. With very many of them vesin 0.6.2 crashes the process (5,000 atoms, a cutoff of 0.1 A and one atom
# 1e7 A away: floating point exception) or rejects the cutoff, so a sweep is used in these cases.
_MOST_CELLS = 1000
_SWEEP_BLOCK = 4_000_000


@checked
@takes_structures("atoms")
def pairs_within(atoms: Atoms, cutoff: float, one_four: OneFour = "exclude") -> PairList:
    """List pairs of atoms closer than a cutoff, except pairs separated by one or two bonds.

    atoms : with positions and bonds
    cutoff : A, > 0; pairs at exactly this distance are excluded
    one_four : "exclude" leaves out pairs separated by three bonds, as in PELE; "scale" lists and flags them

    Returns pairs i < j, sorted. The search takes about 50 bytes of host memory per pair: 5 GB for 100 million pairs.
    For all pairs of a molecule use all_pairs, which needs almost no memory.

    Raises InputError for a cutoff that is not positive and finite.

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> pairs = pele_ocl.pairs_within(atoms, 8.0)
    >>> len(pairs), bool((pairs.first < pairs.second).all())
    (297, True)
    """
    require_atoms(atoms)
    codes = codes_within(atoms.positions, require_cutoff("cutoff", cutoff))
    return bonded_left_out(atoms, codes, one_four, partial(pairs_within, cutoff=cutoff, one_four=one_four))


@checked
@takes_structures("atoms")
def all_pairs(atoms: Atoms, one_four: OneFour = "exclude") -> AllPairs:
    """List all pairs of atoms, except pairs separated by one or two bonds; `one_four` as in pairs_within.

    >>> pele_ocl.all_pairs(pele_ocl.read("data/structures/trialanine.pdb"))
    AllPairs(365 pairs of 33 atoms)
    """
    excluded, scaled = _excluded(atoms, one_four)
    return AllPairs(len(atoms), excluded, scaled)


def without_bonded(pairs: PairList, atoms: Atoms, one_four: OneFour = "exclude") -> PairList:
    """Remove pairs separated by one or two bonds from a list; the others are unchanged.

    pairs : the list; values given for pairs are kept, and those of 1-4 pairs are assumed to be unscaled
    atoms : with bonds
    one_four : "exclude" removes pairs separated by three bonds, "scale" flags them; also applies to pairs that are
        already flagged

    Raises InputError if the list is for other atoms.

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> listed = pele_ocl.PairList(len(atoms), [0, 0], [1, 20])
    >>> len(pele_ocl.without_bonded(listed, atoms))  # atoms 0 and 1 are bonded
    1
    """
    require_pairs(pairs)
    require_atoms(atoms)
    if pairs.n_atoms != len(atoms):
        raise InputError(f"the pair list is for {pairs.n_atoms} atoms; there are {len(atoms)}")
    excluded, scaled = _excluded(atoms, one_four)
    codes = pair_codes(pairs.first, pairs.second)
    kept, flags = ~_are_among(codes, excluded), _are_among(codes, scaled)
    if pairs.one_four is not None:
        flags |= pairs.one_four
    if one_four == "exclude":
        kept &= ~flags
    arrays = (pairs.first, pairs.second, flags if one_four == "scale" else None, pairs.sigma2, pairs.charge_products)
    return unchecked(len(atoms), *(None if array is None else array[kept] for array in arrays))


def require_cutoff(name: str, cutoff: float) -> float:
    """Return the cutoff. Raises InputError unless it is positive and finite."""
    return arguments.number(name, cutoff, "a positive, finite distance in A", above=0)


def bonded_left_out(
    atoms: Atoms, codes: Codes, one_four: OneFour, rule: Callable[[Atoms], PairList] | None = None
) -> PairList:
    """Create a list from sorted, unique codes, without pairs excluded by bonds. rule : of the PairList"""
    excluded, scaled = _excluded(atoms, one_four)
    kept = np.ones(len(codes), np.bool_)
    kept[_indices_of(codes, excluded)] = False
    codes = codes[kept]
    flags = None
    if one_four == "scale":
        flags = np.zeros(len(codes), np.bool_)
        flags[_indices_of(codes, scaled)] = True
    return unchecked(len(atoms), *pairs_of(codes), flags, rule=rule)


def codes_within(positions: Floats, cutoff: float) -> Codes:
    """Sorted codes of all pairs of positions (n, 3) closer than the cutoff, A."""
    if len(positions) < 2:
        return np.empty(0, np.int64)
    extent = float(np.ptp(positions, axis=0).max())
    cutoff = min(cutoff, 2 * extent + 1)  # larger than any distance
    codes = _sweep(positions, cutoff) if cutoff < max(extent, 1) / _MOST_CELLS else _cells(positions, cutoff)
    codes.sort()
    return codes


def _cells(positions: Floats, cutoff: float) -> Codes:
    from vesin import NeighborList  # imports torch if it is installed, which takes seconds

    search = NeighborList(cutoff=cutoff, full_list=False)
    (found,) = search.compute(points=positions, box=np.zeros((3, 3)), periodic=False, quantities="P", copy=False)
    return pair_codes(found[:, 0], found[:, 1])


def _sweep(positions: Floats, cutoff: float) -> Codes:
    """Pairs within the cutoff by a sweep along the longest edge; for few atoms far apart."""
    axis = int(np.argmax(np.ptp(positions, axis=0)))
    order = np.argsort(positions[:, axis], kind="stable")
    along = positions[order, axis]
    counts = np.searchsorted(along, along + cutoff, side="right") - np.arange(len(order)) - 1
    counts = np.maximum(counts, 0)
    blocks = np.cumsum(counts) // _SWEEP_BLOCK
    codes = []
    for block in np.split(np.arange(len(order)), np.flatnonzero(np.diff(blocks)) + 1):
        start, after = _expanded(block, counts[block])
        i, j = order[start], order[after]
        close = np.linalg.norm(positions[i] - positions[j], axis=1) < cutoff
        codes.append(pair_codes(i[close], j[close]))
    return np.concatenate(codes)


def _expanded(block: NDArray[np.intp], counts: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pair each number k of the block with k + 1 to k + count."""
    start = np.repeat(block, counts)
    return start, start + 1 + np.arange(len(start)) - np.repeat(np.cumsum(counts) - counts, counts)


def _excluded(atoms: Atoms, one_four: OneFour) -> tuple[Ints, Ints]:
    """Return pairs to exclude and pairs to scale, (k, 2) each."""
    arguments.choice("one_four", one_four, get_args(OneFour))
    require_atoms(atoms)
    if atoms.bonded is not None:
        if one_four == "scale" and not has_scaled_pairs(atoms):
            raise InputError(
                "the 1-4 pairs of these atoms have special parameters instead of scaled ones; "
                "exclude them, or use `energy`"
            )
        bonded, far = atoms.bonded.excluded, atoms.bonded.one_four.atoms
    else:
        bonded, far = exclusions(atoms.bonds, len(atoms))
    return (bonded, far) if one_four == "scale" else (np.concatenate([bonded, far]), far[:0])


def _are_among(codes: Codes, pairs: Ints) -> NDArray[np.bool_]:
    """Return whether each code (p,), in any order, is one of the pairs (k, 2)."""
    wanted = np.sort(pair_codes(pairs[:, 0], pairs[:, 1]))
    indices = np.minimum(np.searchsorted(wanted, codes), max(len(wanted) - 1, 0))
    found: NDArray[np.bool_] = wanted[indices] == codes if len(wanted) else np.zeros(len(codes), np.bool_)
    return found


def _indices_of(codes: Codes, pairs: Ints) -> NDArray[np.intp]:
    """Indices of pairs (k, 2) in sorted codes; missing pairs are skipped."""
    wanted = pair_codes(pairs[:, 0], pairs[:, 1])
    indices = np.searchsorted(codes, wanted)
    there = indices < len(codes)
    there[there] = codes[indices[there]] == wanted[there]
    found: NDArray[np.intp] = indices[there]
    return found


# Residues of a force field have integral charges up to rounding, except at the ends of nucleic acids.
_CHARGED_E = 0.1


@dataclass(frozen=True)
class SplitCutoffs:
    """Cutoffs, A, for two groups: both neutral, one charged, both charged."""

    neutral: float
    mixed: float
    charged: float

    def __post_init__(self) -> None:
        for f in fields(self):
            require_cutoff(f"the {f.name} cutoff", getattr(self, f.name))


# Defaults of PELE's NB_GEN_MSCALE (PELE++ manual).
SHORT_CUTOFFS = SplitCutoffs(10.0, 10.0, 15.0)
LONG_CUTOFFS = SplitCutoffs(15.0, 20.0, 30.0)


def pairs_split(atoms: Atoms, cutoffs: SplitCutoffs = SHORT_CUTOFFS, one_four: OneFour = "exclude") -> PairList:
    """List pairs of atoms whose residues are within PELE's cutoffs for neutral and charged groups.

    atoms : with positions, charges, bonds and labels
    cutoffs : SHORT_CUTOFFS, LONG_CUTOFFS or others
    one_four : as in pairs_within

    The six distances are from PELE's manual; the rest is inferred from related programs. Groups are residues; a group
    with at least 0.1 e is charged. All pairs of two groups are listed if any two of their atoms are closer than the
    cutoff, since splitting a neutral group would create charges. All pairs within a residue are listed. It is not
    documented what PELE evaluates for pairs that are only in the long list.

    Returns pairs i < j, sorted; takes about 90 bytes of host memory per pair. Raises InputError for atoms without
    labels.

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> len(pele_ocl.pairs_split(atoms)) <= len(pele_ocl.all_pairs(atoms))
    True
    """
    require_atoms(atoms)
    arguments.instance("cutoffs", cutoffs, SplitCutoffs, "SplitCutoffs(neutral, mixed, charged)")
    if atoms.labels is None:
        raise InputError("split cutoffs need the residues of the atoms; read them from a structure file with residues")
    groups = np.unique(atoms.labels.residue_index, return_inverse=True)[1].reshape(-1)
    charged = np.abs(np.bincount(groups, atoms.charges)) >= _CHARGED_E
    own = np.arange(len(charged))
    found = [pair_codes(own, own), *_near_groups(atoms, groups, charged[groups], cutoffs)]
    codes = _atom_pairs(np.unique(np.concatenate(found)), groups)
    codes.sort()
    return bonded_left_out(atoms, codes, one_four, partial(pairs_split, cutoffs=cutoffs, one_four=one_four))


def _near_groups(
    atoms: Atoms, groups: NDArray[np.intp], charged: NDArray[np.bool_], cutoffs: SplitCutoffs
) -> Iterator[Codes]:
    """Yield codes of pairs of groups within each cutoff. charged : (n,) by atom"""
    everyone = np.ones(len(atoms), np.bool_)
    searches = ((~charged, cutoffs.neutral), (charged, cutoffs.charged), (everyone, cutoffs.mixed))
    for members, cutoff in searches:
        chosen = np.flatnonzero(members)
        i, j = (chosen[k] for k in pairs_of(codes_within(atoms.positions[chosen], cutoff)))
        if members is everyone:
            unlike = charged[i] != charged[j]
            i, j = i[unlike], j[unlike]
        yield np.unique(pair_codes(groups[i], groups[j]))


def _atom_pairs(group_pairs: Codes, groups: NDArray[np.intp]) -> Codes:
    """Codes of all pairs of atoms in pairs of groups; within a group each pair once."""
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    starts = np.cumsum(sizes) - sizes
    a, b = pairs_of(group_pairs)
    counts = sizes[a] * sizes[b]
    pair = np.repeat(np.arange(len(a)), counts)
    within = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
    row, column = np.divmod(within, sizes[b][pair])
    once = (a != b)[pair] | (row < column)
    pair, row, column = pair[once], row[once], column[once]
    return pair_codes(order[starts[a][pair] + row], order[starts[b][pair] + column])
