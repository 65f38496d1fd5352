"""Terms of AMBER topologies: Lennard-Jones, bonds, angles, torsions, 1-4 pairs, exclusions, CMAP and CHARMM terms.

Each bonded term is listed as the indices of its atoms and of a set of parameters. Lennard-Jones parameters are computed
from the A and B coefficients of pairs of types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...atoms import (
    Angles,
    Bonded,
    Bonds,
    CMaps,
    Floats,
    HarmonicImpropers,
    Impropers,
    Ints,
    OneFourPairs,
    Torsions,
    UndonePairs,
    UreyBradley,
)
from ...atoms.bonded import names_twice
from ...atoms.combining import Combining, rule_of
from ...common.errors import FormatError
from .sections import Integers, SectionCounts, Sections


@dataclass(frozen=True, eq=False)
class PairTypes:
    """Lennard-Jones parameters of pairs of types.

    types : (n,) type of each atom, from 0
    sigma, epsilon : (t, t) A and kcal/mol; 0 for pairs without Lennard-Jones energy
    """

    types: Integers
    sigma: Floats
    epsilon: Floats


def read_types(sections: Sections, counts: SectionCounts) -> Integers:
    """Read the type of each atom, (n,) from 0. Raises FormatError for types out of range."""
    types = sections.whole_numbers("ATOM_TYPE_INDEX", counts.atoms)
    wrong = (types < 1) | (types > counts.types)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise FormatError(f"{sections.at('ATOM_TYPE_INDEX', k)}: type {types[k]}; the types are 1 to {counts.types}")
    return types - 1


def read_pair_types(sections: Sections, counts: SectionCounts, types: Integers, kind: str = "") -> PairTypes:
    """Read sigma and epsilon for all pairs of types in use.

    kind : "" for normal pairs, "14_" for the 1-4 pairs of CHARMM topologies

    Raises FormatError for coefficients that are not a Lennard-Jones energy, and for 10-12 terms.
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


def _indices(sections: Sections, counts: SectionCounts, used: NDArray[np.bool_]) -> Integers:
    """Read the index of the A and B coefficients of each pair of types, (t, t) from 1.

    It is negative for 10-12 terms, whose coefficients must be 0.
    """
    flat = sections.whole_numbers("NONBONDED_PARM_INDEX", counts.types**2)
    most = counts.types * (counts.types + 1) // 2
    wrong = (flat > most) | (flat < -counts.hbond_types)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise FormatError(f"{sections.at('NONBONDED_PARM_INDEX', k)}: {flat[k]} is not a number of a pair of types")
    index = flat.reshape(counts.types, counts.types)
    for name in ("HBOND_ACOEF", "HBOND_BCOEF"):
        for i, j in np.argwhere((index < 0) & used[:, None] & used[None, :]).tolist():
            k = -int(index[i, j]) - 1
            if sections.numbers(name, counts.hbond_types)[k]:
                raise FormatError(
                    f"{sections.at(name, k)}: types {i + 1} and {j + 1} have a 10-12 term, which is not supported"
                )
    return index


def _refuse_values(sections: Sections, index: Integers, *columns: tuple[str, Floats]) -> None:
    """Raise FormatError if A or B is negative, or only one of them is 0."""
    (_, a), (_, b) = columns
    for name, values in columns:
        wrong = (values < 0) | ((values == 0) & (a + b > 0))
        wrong &= np.isin(np.arange(1, len(values) + 1), index)
        if wrong.any():
            k = int(np.argmax(wrong))
            raise FormatError(
                f"{sections.at(name, k)}: A {a[k]:g} and B {b[k]:g}; expected both 0, or both positive, for a "
                "Lennard-Jones energy"
            )


def read_undone(sections: Sections, counts: SectionCounts, types: Integers) -> UndonePairs | None:
    """Find the pairs of atoms with a 12-6-4 term, by type; None if there are none."""
    if "LENNARD_JONES_CCOEF" not in sections:
        return None
    values = sections.numbers("LENNARD_JONES_CCOEF", counts.types * (counts.types + 1) // 2)
    index = sections.whole_numbers("NONBONDED_PARM_INDEX", counts.types**2).reshape(counts.types, counts.types)
    table = (index > 0) & (values[np.maximum(index, 1) - 1] != 0)
    line = sections.section("LENNARD_JONES_CCOEF").line
    what = f"have a 12-6-4 term ({sections.file}:{line}), which is not computed"
    found = UndonePairs(types.astype(np.int32), table, what)
    return None if found.first() is None else found


def combining_rule(pairs: PairTypes) -> tuple[Combining, NDArray[np.intp]]:
    """Find the combining rule, and the pairs (k, 2) of types that do not follow it (NBFIX)."""
    used = np.unique(pairs.types)
    rule, astray = rule_of(pairs.sigma[np.ix_(used, used)], pairs.epsilon[np.ix_(used, used)])
    return rule, used[astray]


@dataclass(frozen=True, eq=False)
class AmberTerms:
    """m terms of a topology.

    atoms : (m, k) atom indices, from 0
    negative : (m, k) True for atoms with a minus sign in the file, which only torsions may have
    types : (m,) index of the set of parameters, from 0
    """

    atoms: Ints
    negative: NDArray[np.bool_]
    types: Integers


def read_topology_terms(
    sections: Sections, counts: SectionCounts, tables: Sequence[tuple[str, int]], n_members: int, n_types: int,
    *, numbered: bool = False,
) -> AmberTerms:  # fmt: skip
    """Read and concatenate the terms of several sections.

    tables : name and number of terms of each section
    n_members, n_types : atoms per term, and number of parameter sets
    numbered : True if atoms are numbered from 1, as in CHARMM sections; otherwise the file contains 3 times the index

    Raises FormatError, with the line, for atoms and parameters out of range, and for a repeated atom in a term.
    """
    found = [_read_table(sections, counts.atoms, *table, n_members, n_types, numbered) for table in tables]
    return AmberTerms(*(np.concatenate([getattr(t, name) for t in found]) for name in ("atoms", "negative", "types")))


def _read_table(
    sections: Sections, n_atoms: int, name: str, count: int, n_members: int, n_types: int, numbered: bool
) -> AmberTerms:
    rows = sections.whole_numbers(name, count * (n_members + 1)).reshape(count, n_members + 1)
    pointers, types = rows[:, :-1], rows[:, -1]
    size = np.abs(pointers)
    atoms = size - 1 if numbered else size // 3
    negative = pointers < 0
    stray = (atoms < 0) | (atoms >= n_atoms) | (~np.bool_(numbered) & (size % 3 != 0))
    stray |= negative & (np.arange(n_members) < (2 if n_members == 4 and not numbered else n_members))
    for wrong, fault in (
        (stray, f"an atom that does not exist; there are {n_atoms:,}"),
        ((types < 1) | (types > n_types), f"parameters that do not exist; there are {n_types:,} sets"),
        (names_twice(atoms), "an atom twice"),
    ):
        if wrong.any():
            k = int(np.argmax(wrong)) // (wrong.size // len(wrong))
            raise FormatError(f"{sections.at(name, k * (n_members + 1))}: term {k + 1} names {fault}")
    return AmberTerms(atoms.astype(np.int32), negative, types - 1)


def read_parameters(sections: Sections, names: Sequence[str], n_types: int, terms: AmberTerms) -> Floats:
    """Read the parameters of each term, (m, p). names : the section of each parameter, with n_types values"""
    sets = [sections.numbers(name, n_types) for name in names]
    return np.column_stack([values[terms.types] for values in sets])


_LARGEST_MAP = 1000  # points per side


def read_urey_bradley(sections: Sections, counts: SectionCounts) -> UreyBradley:
    """Read the Urey-Bradley terms, if any."""
    if "CHARMM_UREY_BRADLEY_COUNT" not in sections:
        return UreyBradley()
    n_terms, n_types = _numbers_of(sections, "CHARMM_UREY_BRADLEY_COUNT", 2)
    terms = read_topology_terms(sections, counts, [("CHARMM_UREY_BRADLEY", n_terms)], 2, n_types, numbered=True)
    names = ("CHARMM_UREY_BRADLEY_FORCE_CONSTANT", "CHARMM_UREY_BRADLEY_EQUIL_VALUE")
    return UreyBradley(terms.atoms, read_parameters(sections, names, n_types, terms))


def read_harmonic_impropers(sections: Sections, counts: SectionCounts) -> HarmonicImpropers:
    """Read the harmonic impropers of CHARMM, if any.

    Angles are in radians, except in files of old ParmEd versions, which are recognized by values beyond 2 pi.
    """
    if "CHARMM_NUM_IMPROPERS" not in sections:
        return HarmonicImpropers()
    (n_terms,) = _numbers_of(sections, "CHARMM_NUM_IMPROPERS", 1)
    (n_types,) = _numbers_of(sections, "CHARMM_NUM_IMPR_TYPES", 1)
    terms = read_topology_terms(sections, counts, [("CHARMM_IMPROPERS", n_terms)], 4, n_types, numbered=True)
    names = ("CHARMM_IMPROPER_FORCE_CONSTANT", "CHARMM_IMPROPER_PHASE")
    parameters = read_parameters(sections, names, n_types, terms)
    if (np.abs(parameters[:, 1]) > 2 * np.pi).any():
        parameters[:, 1] = np.radians(parameters[:, 1])
    return HarmonicImpropers(terms.atoms, parameters)


def read_cmaps(sections: Sections, counts: SectionCounts) -> tuple[CMaps, tuple[Floats, ...]]:
    """Read the CMAP terms and maps of ff19SB or CHARMM, if any."""
    prefix = next((prefix for prefix in ("", "CHARMM_") if f"{prefix}CMAP_COUNT" in sections), None)
    if prefix is None:
        return CMaps(), ()
    n_terms, n_maps = _numbers_of(sections, f"{prefix}CMAP_COUNT", 2)
    sizes = sections.whole_numbers(f"{prefix}CMAP_RESOLUTION", n_maps)
    wrong = (sizes < 2) | (sizes > _LARGEST_MAP) | (sizes % 2 != 0)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise FormatError(
            f"{sections.at(f'{prefix}CMAP_RESOLUTION', k)}: map {k + 1} has {sizes[k]} points along each axis; "
            f"expected an even number, 2 to {_LARGEST_MAP}"
        )
    maps = tuple(_map(sections, f"{prefix}CMAP_PARAMETER_{k:02d}", size) for k, size in enumerate(sizes.tolist(), 1))
    terms = read_topology_terms(sections, counts, [(f"{prefix}CMAP_INDEX", n_terms)], 5, n_maps, numbered=True)
    atoms = terms.atoms[:, [0, 1, 2, 3, 1, 2, 3, 4]]  # two torsions sharing three atoms
    return CMaps(atoms, terms.types[:, None].astype(np.float64)), maps


def _map(sections: Sections, name: str, size: int) -> Floats:
    """Read a map and shift it to begin at 0; in the file it begins at -180 degrees."""
    return np.roll(sections.numbers(name, size**2).reshape(size, size), (-size // 2, -size // 2), (0, 1))


def _numbers_of(sections: Sections, name: str, count: int) -> list[int]:
    """Read non-negative counts from a section."""
    values = sections.whole_numbers(name, count)
    if values.min() < 0:
        raise FormatError(f"{sections.at(name, int(np.argmin(values)))}: {values.min()} entries are impossible")
    return [int(value) for value in values]


_NEARLY = 1e-3  # rad
_HYDROGEN = ("_INC_HYDROGEN", "_WITHOUT_HYDROGEN")


def read_bonded(
    sections: Sections, counts: SectionCounts, charges: Floats, pairs: PairTypes
) -> tuple[Bonded, tuple[str, ...]]:
    """Read all bonded terms, 1-4 pairs and exclusions, with notes about them.

    charges : (n,) e
    pairs : unscaled Lennard-Jones parameters for 1-4 pairs

    Raises FormatError, with section and line, for inconsistent data.
    """
    bonds = _terms(sections, counts, "BONDS", counts.bonds, 2, counts.bond_types)
    angles = _terms(sections, counts, "ANGLES", counts.angles, 3, counts.angle_types)
    torsions = _terms(sections, counts, "DIHEDRALS", counts.torsions, 4, counts.torsion_types)
    names = ("DIHEDRAL_FORCE_CONSTANT", "DIHEDRAL_PERIODICITY", "DIHEDRAL_PHASE")
    _refuse_periods(sections, counts)
    parameters = read_parameters(sections, names, counts.torsion_types, torsions)
    turned = int((parameters[:, 1] < 0).sum())  # in force-field files it means that more terms of the torsion follow
    parameters[:, 1] = np.abs(parameters[:, 1])
    parameters[:, 2] = _whole_turns(parameters[:, 2])
    improper = torsions.negative[:, 3]
    one_four, notes = _one_four(sections, counts, torsions, charges, pairs)
    cmaps, maps = read_cmaps(sections, counts)
    bonded = Bonded(
        bonds=Bonds(
            bonds.atoms,
            read_parameters(sections, ("BOND_FORCE_CONSTANT", "BOND_EQUIL_VALUE"), counts.bond_types, bonds),
        ),
        angles=Angles(
            angles.atoms,
            read_parameters(sections, ("ANGLE_FORCE_CONSTANT", "ANGLE_EQUIL_VALUE"), counts.angle_types, angles),
        ),
        torsions=Torsions(torsions.atoms[~improper], parameters[~improper]),
        impropers=Impropers(torsions.atoms[improper], parameters[improper]),
        harmonic_impropers=read_harmonic_impropers(sections, counts),
        urey_bradley=read_urey_bradley(sections, counts),
        cmaps=cmaps,
        maps=maps,
        one_four=one_four,
        excluded=_excluded(sections, counts),
    )
    if turned:
        notes += (f"{sections.file}: {turned:,} torsions have a negative periodicity; the sign is ignored",)
    return bonded, notes


def _terms(
    sections: Sections, counts: SectionCounts, name: str, numbers: tuple[int, int], n_members: int, n_types: int
) -> AmberTerms:
    tables = [(name + end, number) for end, number in zip(_HYDROGEN, numbers, strict=True)]
    return read_topology_terms(sections, counts, tables, n_members, n_types)


def _whole_turns(phases: Floats) -> Floats:
    """Round phases near 0 and pi to exact values, as sander does, because LEaP writes pi as 3.141594."""
    halves = np.round(phases / np.pi)
    return np.where(np.abs(phases - halves * np.pi) < _NEARLY, halves % 2 * np.pi, phases)


def _refuse_periods(sections: Sections, counts: SectionCounts) -> None:
    periods = sections.numbers("DIHEDRAL_PERIODICITY", counts.torsion_types)
    wrong = (periods != np.round(periods)) | (np.abs(periods) > 1000)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise FormatError(
            f"{sections.at('DIHEDRAL_PERIODICITY', k)}: torsion type {k + 1} has {periods[k]:g} periods; expected a "
            "whole number"
        )


def _one_four(
    sections: Sections, counts: SectionCounts, torsions: AmberTerms, charges: Floats, pairs: PairTypes
) -> tuple[OneFourPairs, tuple[str, ...]]:
    """Collect the distinct 1-4 pairs with scaled parameters.

    The ends of a torsion are a 1-4 pair unless its third or fourth atom is negative. A scale factor of 0 means no
    energy.
    """
    named = np.flatnonzero(~torsions.negative[:, 2:].any(axis=1))
    one, other = torsions.atoms[named][:, [0, 3]].astype(np.int64).T
    ends = np.column_stack([np.minimum(one, other), np.maximum(one, other)])
    first = np.sort(np.unique(ends[:, 0] * counts.atoms + ends[:, 1], return_index=True)[1])
    again = len(named) - len(first)
    note = f"{sections.file}: {again:,} torsions repeat the 1-4 pair of another torsion; each pair is used once"
    ends, types = ends[first], torsions.types[named[first]]
    coulomb = _inverse_scales(sections, counts, "SCEE_SCALE_FACTOR", 1.2)[types]
    lennard_jones = _inverse_scales(sections, counts, "SCNB_SCALE_FACTOR", 2.0)[types]
    i, j = ends.T
    t, u = pairs.types[i], pairs.types[j]
    parameters = [charges[i] * charges[j] * coulomb, pairs.sigma[t, u], pairs.epsilon[t, u] * lennard_jones]
    return OneFourPairs(ends.astype(np.int32), np.column_stack(parameters)), (note,) * (again > 0)


def _inverse_scales(sections: Sections, counts: SectionCounts, name: str, default: float) -> Floats:
    """Return 1 / scale factor for each torsion type; 0 for a factor of 0."""
    if name not in sections:
        is_charmm = "LENNARD_JONES_14_ACOEF" in sections
        return np.full(counts.torsion_types, 1.0 if is_charmm else 1 / default)
    scales = sections.numbers(name, counts.torsion_types)
    if (scales < 0).any():
        k = int(np.argmax(scales < 0))
        raise FormatError(f"{sections.at(name, k)}: the factor {scales[k]:g} of torsion type {k + 1} is negative")
    inverse: Floats = np.divide(1, scales, out=np.zeros_like(scales), where=scales > 0)
    return inverse


def _excluded(sections: Sections, counts: SectionCounts) -> Ints:
    """Read the excluded pairs, (k, 2). An atom without exclusions has a 0 in the list."""
    numbers = sections.whole_numbers("NUMBER_EXCLUDED_ATOMS", counts.atoms)
    others = sections.whole_numbers("EXCLUDED_ATOMS_LIST", counts.excluded) - 1
    if numbers.min() < 0 or numbers.sum() != counts.excluded:
        raise FormatError(
            f"{sections.at('NUMBER_EXCLUDED_ATOMS', int(np.argmin(numbers)))}: the sum is {numbers.sum():,}; by "
            f"POINTERS {counts.excluded:,} pairs are excluded"
        )
    own = np.repeat(np.arange(counts.atoms), numbers)
    wrong = (others < -1) | (others >= counts.atoms) | (others == own)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise FormatError(
            f"{sections.at('EXCLUDED_ATOMS_LIST', k)}: atom {own[k] + 1} excludes atom {others[k] + 1}; expected "
            f"another atom of 1 to {counts.atoms}"
        )
    pairs = np.column_stack([own, others])[others >= 0]
    return pairs.astype(np.int32)
