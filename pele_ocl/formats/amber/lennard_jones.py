"""Lennard-Jones parameters of an AMBER topology: sigma and epsilon from A and B of pairs of types."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from ...atoms.combining import Combining, rule_of
from ...errors import FormatError
from .counts import Counts
from .fields import Integers
from .sections import Sections


@dataclass(frozen=True, eq=False)
class PairTypes:
    """Parameters of pairs of types.

    types : (n,) type of each atom, from 0
    sigma, epsilon : (t, t) A and kcal/mol; 0 where a pair has no such energy
    """

    types: Integers
    sigma: Floats
    epsilon: Floats


def read_types(sections: Sections, counts: Counts) -> Integers:
    """The type of each atom, (n,) from 0; raises FormatError for types that are not there."""
    types = sections.whole_numbers("ATOM_TYPE_INDEX", counts.atoms)
    wrong = (types < 1) | (types > counts.types)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise FormatError(f"{sections.at('ATOM_TYPE_INDEX', k)}: type {types[k]}; the types are 1 to {counts.types}")
    return types - 1


def read_pair_types(sections: Sections, counts: Counts, types: Integers, kind: str = "") -> PairTypes:
    """Sigma and epsilon of each pair of types that the atoms have.

    kind : "" for all pairs, "14_" for the 1-4 pairs of CHARMM's files

    Raises FormatError for coefficients that are no Lennard-Jones energy, and for 10-12 terms.
    """
    used = np.zeros(counts.types, np.bool_)
    used[types] = True
    index = _indices(sections, counts, used)
    a_name, b_name = f"LENNARD_JONES_{kind}ACOEF", f"LENNARD_JONES_{kind}BCOEF"
    a, b = (sections.numbers(name, counts.types * (counts.types + 1) // 2) for name in (a_name, b_name))
    _refuse_values(sections, index, (a_name, a), (b_name, b))
    a_of, b_of = (np.where(index > 0, values[np.maximum(index, 1) - 1], 0.0) for values in (a, b))
    some = (a_of > 0) & used[:, None] & used[None, :]
    with np.errstate(all="ignore"):
        sigma = np.where(some, (a_of / b_of) ** (1 / 6), 0.0)
        epsilon = np.where(some, b_of * (b_of / a_of) / 4, 0.0)
    if not (np.isfinite(sigma).all() and np.isfinite(epsilon).all()):
        i, j = np.argwhere(~(np.isfinite(sigma) & np.isfinite(epsilon)))[0]
        raise FormatError(f"{sections.at(a_name, index[i, j] - 1)}: A and B of types {i + 1} and {j + 1} overflow")
    return PairTypes(types, sigma, epsilon)


def _indices(sections: Sections, counts: Counts, used: NDArray[np.bool_]) -> Integers:
    """The number of each pair's A and B, (t, t) from 1; negative for a 10-12 term, whose coefficients are 0."""
    flat = sections.whole_numbers("NONBONDED_PARM_INDEX", counts.types**2)
    most = counts.types * (counts.types + 1) // 2
    wrong = (flat > most) | (flat < -counts.hbond_types)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise FormatError(f"{sections.at('NONBONDED_PARM_INDEX', k)}: {flat[k]} is no number of a pair of types")
    index = flat.reshape(counts.types, counts.types)
    for name in ("HBOND_ACOEF", "HBOND_BCOEF"):
        for i, j in np.argwhere((index < 0) & used[:, None] & used[None, :]).tolist():
            k = -int(index[i, j]) - 1
            if sections.numbers(name, counts.hbond_types)[k]:
                raise FormatError(
                    f"{sections.at(name, k)}: types {i + 1} and {j + 1} have a 10-12 term, which is not done"
                )
    return index


def _refuse_values(sections: Sections, index: Integers, *columns: tuple[str, Floats]) -> None:
    """Raise for a negative A or B, and for one that is 0 while the other is not."""
    (_, a), (_, b) = columns
    for name, values in columns:
        wrong = (values < 0) | ((values == 0) & (a + b > 0))
        wrong &= np.isin(np.arange(1, len(values) + 1), index)
        if wrong.any():
            k = int(np.argmax(wrong))
            raise FormatError(
                f"{sections.at(name, k)}: A {a[k]:g} and B {b[k]:g}; both 0, or both positive, are needed for a "
                "Lennard-Jones energy"
            )


def combining_rule(pairs: PairTypes) -> tuple[Combining, NDArray[np.intp]]:
    """The rule by which pairs follow from each type's parameters, and (k, 2) types of those that do not (NBFIX)."""
    used = np.unique(pairs.types)
    rule, astray = rule_of(pairs.sigma[np.ix_(used, used)], pairs.epsilon[np.ix_(used, used)])
    return rule, used[astray]
