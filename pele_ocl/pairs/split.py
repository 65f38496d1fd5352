"""PELE's split cutoffs: charged residues see each other farther than neutral ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, require_atoms
from ..common import arguments
from ..common.errors import InputError
from .pairlist import Codes, PairList, pair_codes, pairs_of
from .search import OneFour, bonded_left_out, codes_within, require_cutoff

# Residues of a force field have whole charges, to the digits of their templates, except at the ends of nucleic acids.
_CHARGED_E = 0.1


@dataclass(frozen=True)
class SplitCutoffs:
    """Distances (A) within which two groups are listed: both neutral, one charged, both charged."""

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
    """Pairs of atoms whose residues are within PELE's cutoffs for neutral and charged groups.

    atoms : with positions, charges, bonds and labels
    cutoffs : SHORT_CUTOFFS, LONG_CUTOFFS or others
    one_four : as in pairs_within

    PELE's manual gives the six distances; the rest is inferred from related programs. Groups are residues, and a group
    is charged from 0.1 e on. All pairs of two groups are listed if any two of their atoms are closer than the cutoff.
    Splitting a neutral group would create charges. All pairs within a residue are listed. What PELE evaluates for pairs
    only in the long list is not public.

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
    """Codes of groups that are near enough, one set for each cutoff; charged : (n,) by atom."""
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
    """Codes of all pairs of atoms of pairs of groups; of one with itself, each pair once."""
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
