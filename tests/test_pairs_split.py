"""PELE's split cutoffs against a loop over pairs of residues."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from forcefield_helpers import arrays_of, chain, structure_from

from pele_ocl import Atoms, InputError
from pele_ocl.atoms import exclusions
from pele_ocl.pairs import LONG_CUTOFFS, SHORT_CUTOFFS, SplitCutoffs, pairs_split


def of_system(name) -> Atoms:
    arrays = arrays_of(name)
    labels = structure_from(arrays).labels
    return Atoms(arrays["coordinates"], arrays["charge"], bonds=arrays["bonds"], labels=labels)


@cache
def by_loops(name, cutoffs) -> set[tuple[int, int]]:
    """All pairs, bonded or not."""
    atoms = of_system(name)
    groups = atoms.labels.residue_index
    members = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    charged = [abs(atoms.charges[m].sum()) >= 0.1 for m in members]
    pairs = set()
    for a in range(len(members)):
        for b in range(a, len(members)):
            reach = (cutoffs.neutral, cutoffs.mixed, cutoffs.charged)[int(charged[a]) + int(charged[b])]
            apart = atoms.positions[members[a]][:, None] - atoms.positions[members[b]]
            if a == b or np.linalg.norm(apart, axis=2).min() < reach:
                pairs |= {(min(i, j), max(i, j)) for i in members[a].tolist() for j in members[b].tolist() if i != j}
    return pairs


@pytest.mark.parametrize("one_four", ["exclude", "scale"])
@pytest.mark.parametrize("cutoffs", [SHORT_CUTOFFS, LONG_CUTOFFS, SplitCutoffs(3, 5, 2), SplitCutoffs(1, 9, 1)])
@pytest.mark.parametrize("name", ["hexapeptide", "ubiquitin"])
def test_against_loops(name, cutoffs, one_four):
    atoms = of_system(name)
    found = pairs_split(atoms, cutoffs, one_four)
    pairs = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
    near, far = exclusions(atoms.bonds, len(atoms))
    excluded = {tuple(pair) for pair in np.concatenate([near, far] if one_four == "exclude" else [near]).tolist()}
    assert set(pairs) == by_loops(name, cutoffs) - excluded
    assert pairs == sorted(pairs)
    assert (found.one_four is not None) == (one_four == "scale")


@pytest.mark.parametrize(("charges", "expected"), [((0, 0), 0), ((1, 0), 0), ((1, -1), 1), ((0.05, 1), 0)])
def test_two_residues_12_angstrom_apart(charges, expected):
    structure = chain([("NA", "NA"), ("CL", "CL")], step=12.0)
    found = pairs_split(Atoms(structure.positions, charges, labels=structure.labels))
    assert len(found) == expected


def test_the_defaults_are_those_of_the_manual():
    assert SHORT_CUTOFFS == SplitCutoffs(neutral=10, mixed=10, charged=15)
    assert LONG_CUTOFFS == SplitCutoffs(neutral=15, mixed=20, charged=30)


def test_residues_are_needed():
    with pytest.raises(InputError, match="split cutoffs need the residues of the atoms"):
        pairs_split(Atoms(np.zeros((1, 3)), [0.0]))


def test_cutoffs_are_distances():
    with pytest.raises(InputError, match="the mixed cutoff is -1; expected a positive, finite distance in A"):
        SplitCutoffs(10, -1, 15)
