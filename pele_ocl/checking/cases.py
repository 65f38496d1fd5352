"""Test cases for kernels: inputs of difficult sizes, exact results, and the results of common mistakes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..potential_model import PotentialModel
from ..reference.nonbond import pair_terms
from ..reference.potmap import potential
from ..reference.solvent import gb_distance, hct_term
from ..units import COULOMB_KCAL_A

SEED = 1
DENSITY = 0.1  # atoms per cubic Angstrom, as in a protein
LARGE = 1009  # atoms
FEW = 37  # atoms that fit in a work-group
MOST_SIMULATED = 257  # atoms that all interact
MANY_PAIRS = 100_003
MANY = 4_000_037  # numbers
FACTOR = 1 - 1 / 78.5


@dataclass(frozen=True)
class Slip:
    """A common mistake. kind : its name in JSON; sentence : description; values : the results it causes"""

    kind: str
    sentence: str
    values: Floats


@dataclass(frozen=True, eq=False)
class Case:
    """Inputs and exact results of one size.

    name : description of the size
    values : numbers, and arrays of float64 or int32, by the names of kernel arguments
    exact : exact results, of the same shape as the output
    scale : sums of absolute values of terms, which errors are relative to, of the same shape as `exact`
    slips : function that yields the results of common mistakes
    added : whether the elements of the output are summed before the comparison
    is_simulated : whether the case is small enough for a simulator
    """

    name: str
    values: Mapping[str, Any]
    exact: Floats
    scale: Floats
    slips: Callable[[], Iterator[Slip]] = field(default=lambda: iter(()))
    added: bool = False
    is_simulated: bool = False

    def size(self, name: str) -> int:
        """Return an integer value."""
        return int(self.values[name])


def _single(values: Floats) -> Floats:
    """Round to float32, so that inputs are equal for both precisions."""
    return values.astype(np.float32).astype(np.float64)


def _sizes(group: int) -> list[int]:
    """Return sizes with which kernels often fail: one, near the group size, primes."""
    return sorted({1, 2, group - 1, group, group + 1, FEW, 101, 257, LARGE} - {0})


def _is_simulated(n: int, group: int) -> bool:
    """Return whether to simulate n atoms: a few, or one more than a group, for which loops over tiles run twice."""
    return n in (FEW, group + 1) and n <= MOST_SIMULATED


def _atoms(n: int, least: float = 1.2) -> Floats:
    """Return positions (n, 3) A of atoms in a cube, at least `least` apart."""
    rng, edge = np.random.default_rng(SEED + n), int(np.ceil(n ** (1 / 3)))
    apart = max(DENSITY ** (-1 / 3), 1.5 * least)
    places = np.stack(np.meshgrid(*3 * [np.arange(edge)], indexing="ij"), axis=-1).reshape(-1, 3)[:n]
    shaken: Floats = apart * places + rng.uniform(0, (apart - least) / 2, (n, 3)) + 0.3
    return _single(rng.permutation(shaken))


def _charges(n: int) -> Floats:
    return _single(np.sqrt(COULOMB_KCAL_A) * np.random.default_rng(SEED).uniform(-0.8, 0.8, n))


def _apart(a: Floats, b: Floats) -> Floats:
    """Return all distances between a and b, (len(a), len(b)) A."""
    distances: Floats = np.linalg.norm(a[:, None] - b[None], axis=2)
    return distances


def of_terms(terms: Floats, word: str, what: str = "sum") -> Iterator[Slip]:
    """Yield mistakes in a sum over terms, (elements, terms). word : name for the object of a term"""
    exact = terms.sum(axis=1)
    yield Slip("sign", f"the sign of the {what} is wrong: it is minus what it should be", -exact)
    yield Slip("factor", f"the {what} is twice what it should be", 2 * exact)
    yield Slip("factor", f"the {what} is half of what it should be", exact / 2)
    if terms.any():
        last = f"the loop ends one {word} too early: the last {word} is left out; the condition is: index < number"
        yield Slip("off-by-one", last, exact - terms[:, -1])
        first = f"the loop starts one {word} too late: {word} 0 is left out; indices start at 0"
        yield Slip("off-by-one", first, exact - terms[:, 0])
        yield Slip("off-by-one", f"the last {word} is counted twice", exact + terms[:, -1])
        yield Slip("not-added", f"only the last {word} is included: = is used instead of +=", terms[:, -1])
        yield Slip("absolute", "signs are lost: every term is added as positive", np.abs(terms).sum(axis=1))


def of_distances(points: Floats, positions: Floats, charges: Floats) -> Iterator[Slip]:
    """Yield mistakes in the distances of points (m, 3) and atoms (n, 3)."""
    d = [points[:, axis, None] - positions[None, :, axis] for axis in range(3)]  # three arrays (m, n)
    squares = [each * each for each in d]

    def potential_of(r: Floats) -> Floats:
        summed: Floats = (charges / r).sum(1)
        return summed

    def with_one(axis: int, square: Floats | float) -> Floats:
        """Return the potential with a different square for one axis."""
        return potential_of(np.sqrt(sum(squares[other] for other in range(3) if other != axis) + square))

    with np.errstate(divide="ignore", invalid="ignore"):
        rounded = "to a whole number: its variable is an int instead of a float"
        yield Slip("formula", f"the distance is rounded {rounded}", potential_of(np.trunc(np.sqrt(sum(squares)))))
        whole = np.sqrt(sum(np.trunc(each) ** 2 for each in d))
        yield Slip("formula", f"a difference of coordinates is rounded {rounded}", potential_of(whole))
        for axis, name in enumerate("xyz"):
            pythagoras = "r^2 = dx^2 + dy^2 + dz^2"
            rule = f"d{name} is the difference of the point's {name} and the atom's {name}"
            yield Slip("formula", f"d{name} is rounded {rounded}", with_one(axis, np.trunc(d[axis]) ** 2))
            yield Slip("formula", f"d{name} is left out of the distance: {pythagoras}", with_one(axis, 0.0))
            yield Slip("formula", f"d{name} is not squared: {pythagoras}", with_one(axis, d[axis]))
            added = (points[:, axis, None] + positions[None, :, axis]) ** 2
            yield Slip("formula", f"coordinates are added: {rule}", with_one(axis, added))
            for other in {0, 1, 2} - {axis}:
                mixed = (points[:, axis, None] - positions[None, :, other]) ** 2
                sentence = f"the point's {name} is compared with the atom's {'xyz'[other]}: {rule}"
                yield Slip("axes", sentence, with_one(axis, mixed))
                mixed = (points[:, other, None] - positions[None, :, axis]) ** 2
                sentence = f"the atom's {name} is compared with the point's {'xyz'[other]}: {rule}"
                yield Slip("axes", sentence, with_one(axis, mixed))
                sentence = f"d{'xyz'[other]} is used instead of d{name}: {pythagoras}"
                yield Slip("axes", sentence, with_one(axis, squares[other]))
                sentence = f"d{name} * d{'xyz'[other]} is used instead of d{name} * d{name}: {pythagoras}"
                yield Slip("axes", sentence, with_one(axis, d[axis] * d[other]))


def of_places(
    corner: Floats, spacing: float, indices: NDArray[np.integer], positions: Floats, charges: Floats
) -> Iterator[Slip]:
    """Yield mistakes in the positions of points. indices : (m, 3) along x, y, z"""

    def potential_at(places: Floats) -> Floats:
        r2 = sum((places[:, axis, None] - positions[None, :, axis]) ** 2 for axis in range(3))
        summed: Floats = (charges / np.sqrt(r2)).sum(1)
        return summed

    right = corner + spacing * indices
    for axes, name in ((0, "x"), (1, "y"), (2, "z"), (slice(None), "a coordinate")):
        rule = "corner.x + corner.w * i" if axes in (0, slice(None)) else f"corner.{name} + corner.w * {'ijk'[axes]}"
        for sentence, values in (
            ("the corner is left out", spacing * indices),
            ("the spacing is left out", corner + indices),
            ("the index of the point is left out", np.broadcast_to(corner, indices.shape)),
            ("half a spacing is added: points are at the corners of cells, not at their centres", right + spacing / 2),
        ):
            places = right.copy()
            places[:, axes] = values[:, axes]
            with np.errstate(divide="ignore", invalid="ignore"):
                yield Slip("formula", f"{sentence}: {name} is {rule}", potential_at(places))
    for axis, other in itertools.permutations(range(3), 2):
        name, rule = "xyz"[axis], f"corner.{'xyz'[axis]} + corner.w * {'ijk'[axis]}"
        for sentence, value in (
            (f"{name} uses the index of the point along {'xyz'[other]}", corner[axis] + spacing * indices[:, other]),
            (f"{name} uses the corner's {'xyz'[other]}", corner[other] + spacing * indices[:, axis]),
        ):
            places = right.copy()
            places[:, axis] = value
            with np.errstate(divide="ignore", invalid="ignore"):
                yield Slip("axes", f"{sentence}: {name} is {rule}", potential_at(places))
    for axis, other in itertools.combinations(range(3), 2):
        places, both = right.copy(), [axis, other]
        places[:, both] = corner[both] + spacing * indices[:, both[::-1]]
        sentence = f"{'xyz'[axis]} and {'xyz'[other]} have exchanged indices: x belongs to i, y to j, z to k"
        with np.errstate(divide="ignore", invalid="ignore"):
            yield Slip("axes", sentence, potential_at(places))


@cache
def sum_cases(group: int) -> Sequence[Case]:
    """Return cases for sums of up to millions of numbers."""

    def case(n: int) -> Case:
        values = _single(np.random.default_rng(SEED + n).uniform(0, 1, n))

        def slips() -> Iterator[Slip]:
            yield from of_terms(values[None], "value")
            whole = values[: n // group * group]
            part = "the last work-group, which is not full, is left out"
            yield Slip("partial-group", part, np.array([whole.sum()]))

        exact = np.array([values.sum()])
        return Case(
            f"{n:,} value{'s' * (n > 1)}", dict(n=n, values=values), exact, exact, slips, True, 1 < n <= group + 1
        )

    return [case(n) for n in [*_sizes(group), MANY]]


@cache
def potmap_cases(group: int) -> Sequence[Case]:
    """Return cases for maps of different shapes, not multiples of a group; one atom; no charges; a long row."""

    def case(shape: tuple[int, int, int], n: int, uncharged: bool = False, simulated: bool = False) -> Case:
        spacing, corner = 0.5, np.array([-0.625, 0.25, -0.75])
        positions = _single(_atoms(n) + 0.07)
        charges = np.zeros(n) if uncharged else _charges(n)
        indices = np.stack(np.meshgrid(*map(np.arange, shape[::-1]), indexing="ij")[::-1], -1).reshape(-1, 3)
        points = corner + spacing * indices
        r2 = ((points[:, None] - positions[None]) ** 2).sum(axis=2)
        terms = charges * potential(r2, PotentialModel())

        def slips() -> Iterator[Slip]:
            yield from of_terms(terms, "atom", "potential")
            yield Slip("formula", "the root is missing: the terms are q / r^2 instead of q / r", (charges / r2).sum(1))
            yield Slip("formula", "the terms are q r instead of q / r", (charges * np.sqrt(r2)).sum(1))
            yield Slip("formula", "charges are left out: the terms are 1 / r", (1 / np.sqrt(r2)).sum(1))
            whole = np.zeros(len(terms))
            for each in terms.T:
                whole = np.trunc(whole + each)
            rounded = "the sum is rounded to a whole number at each step: its variable is an int instead of a float"
            yield Slip("formula", rounded, whole)
            if min(shape) > 1:
                turned = terms.sum(1).reshape(shape[::-1]).transpose().ravel()
                axes = (
                    "the axes of the map are exchanged: the index of a point is (k * ny + j) * nx + i, x varies fastest"
                )
                yield Slip("axes", axes, turned)
            for axis, name in enumerate("xyz"):
                moved = points + spacing * np.eye(3)[axis]
                r = np.linalg.norm(moved[:, None] - positions[None], axis=2)
                off = f"points are off by one along {name}: point 0 is at the corner, not one spacing beyond"
                yield Slip("off-by-one", off, (charges / r).sum(1))
            yield from of_distances(points, positions, charges)
            yield from of_places(corner, spacing, indices, positions, charges)

        size = " x ".join(map(str, shape))
        name = f"{size} points, {n:,} atom{'s' * (n > 1)}{', charges all zero' * uncharged}"
        nx, ny, nz = shape
        values = dict(
            n_atoms=n, nx=nx, ny=ny, nz=nz, corner=np.array([*corner, spacing]), k=range(nz),
            atoms=np.column_stack([positions, charges]),
        )  # fmt: skip
        scale = np.abs(terms).sum(1)
        return Case(name, values, terms.sum(1), scale if not uncharged else np.ones(len(scale)), slips,
                    is_simulated=simulated)  # fmt: skip

    return [
        case((1, 1, 1), 1), case((2, 3, 4), 2), case((17, 5, 3), 13, simulated=True), case((5, 17, 3), 37),
        case((16, 8, 4), group), case((13, 11, 7), group + 1), case((7, 6, 5), 5, uncharged=True),
        case((3, 3, 2), group + 1, simulated=True),  # a loop over tiles of atoms runs twice
        # Several groups along x, even with eight points per item and all items of a group along x.
        case((35, 17, 7), 131), case((max(131, 8 * group + 3), 3, 2), 3),
    ]  # fmt: skip


def timed_map() -> Case:
    """Return a map large enough for timing, without exact values."""
    shape, n, spacing = (64, 64, 32), LARGE, 0.5
    n_points = int(np.prod(shape))
    values = dict(
        n_atoms=n, **dict(zip(("nx", "ny", "nz"), shape, strict=True)), corner=np.array([-0.5, 0.25, -0.75, spacing]),
        k=range(shape[2]), atoms=np.column_stack([_single(_atoms(n) + 0.07), _charges(n)]),
    )  # fmt: skip
    name = f"{' x '.join(map(str, shape))} points, {n:,} atoms"
    return Case(name, values, np.zeros(n_points), np.ones(n_points))


@cache
def born_cases(group: int) -> Sequence[Case]:
    """Return cases for molecules, for touching spheres, and for a sphere within another."""

    def case(n: int, least: float = 1.2, name: str = "") -> Case:
        rng = np.random.default_rng(SEED)
        positions, rho = _atoms(n, least), _single(rng.uniform(1.0, 1.8, n))
        scaled = _single(rho * rng.uniform(0.7, 0.9, n))
        if name:
            positions[1] = positions[0] + np.array([0.25, 0, 0])
            positions, scaled = _single(positions), np.where(np.arange(n) == 1, 2.5, scaled)
        r = _apart(positions, positions)
        own = np.eye(n, dtype=bool)
        terms = np.where(own, 0, hct_term(np.where(own, 1, r), rho[:, None], scaled[None]) / 2)

        def slips() -> Iterator[Slip]:
            yield from of_terms(terms, "atom")
            if n > 1:
                itself = "an atom is paired with itself, at a distance of zero: leave out j = i"
                yield Slip("own-pair", itself, np.where(scaled > rho, np.nan, terms.sum(1)))
                swapped = np.where(own, 0, hct_term(np.where(own, 1, r), scaled[:, None], rho[None]) / 2)
                yield Slip("formula", "rho and s are exchanged: rho belongs to atom i, s to atom j", swapped.sum(1))

        values = dict(n_atoms=n, atoms=np.column_stack([positions, rho]), scaled=scaled)
        title = f"{n:,} atom{'s' * (n > 1)}{name}"
        scale = np.abs(terms).sum(1) + 0.1
        return Case(title, values, terms.sum(1), scale, slips, is_simulated=_is_simulated(n, group))

    *small, large = map(case, _sizes(group))
    return [*small, case(13, name=", one within the sphere of another"), large]


@cache
def solvent_cases(group: int) -> Sequence[Case]:
    """Return cases for molecules, one of them without charges."""

    def case(n: int, uncharged: bool = False) -> Case:
        positions, radii = _atoms(n), _single(np.random.default_rng(SEED).uniform(1.3, 4.0, n))
        charges = np.zeros(n) if uncharged else _charges(n)
        factor = float(np.float32(FACTOR))
        r = _apart(positions, positions)
        products = -factor / 2 * charges[:, None] * charges[None]
        terms = products / gb_distance(r, radii[:, None], radii[None])

        def slips() -> Iterator[Slip]:
            yield from of_terms(terms, "atom", "energy")
            without = np.where(np.eye(n, dtype=bool), 0, terms).sum(1)
            yield Slip("own-pair", "the atom's own term, j = i, is left out; it must be included here", without)
            bare = np.divide(products, r, out=np.zeros_like(r), where=r > 0)
            yield Slip("formula", "the terms are q q / r instead of q q / f", bare.sum(1))
            wrong = products / np.sqrt(r**2 + radii[:, None] * radii[None])
            yield Slip("formula", "the exponential of f is left out", wrong.sum(1))

        values = dict(n_atoms=n, factor=factor, atoms=np.column_stack([positions, charges]), radii=radii)
        name = f"{n:,} atom{'s' * (n > 1)}{', charges all zero' * uncharged}"
        scale = np.ones(n) if uncharged else np.abs(terms).sum(1)
        return Case(name, values, terms.sum(1), scale, slips, is_simulated=_is_simulated(n, group))

    *small, large = map(case, _sizes(group))
    return [*small, case(13, uncharged=True), large]


@dataclass(frozen=True, eq=False)
class _List:
    """Pair list of a case, with energies and gradients.

    pulls : (pairs, 3) gradient on the first atom of each pair, kcal/mol/A
    partner_pulls : (2 pairs, 3) gradient on each atom from each partner, in the order of `partners`
    """

    pairs: NDArray[np.int32]
    energies: Floats
    lennard_jones: Floats
    coulomb: Floats
    pulls: Floats
    partner_pulls: Floats
    values: dict[str, Any]
    name: str


@cache
def _lists(group: int) -> tuple[_List, ...]:
    """Return pair lists of all sizes, one without charges, and one with an excluded pair of coinciding atoms."""
    small = [_list(n, max(2, min(n, 101))) for n in (1, group - 1, group, group + 1, 257) if n > 0]
    odd = _list(101, 37, uncharged=True), _list(101, 37, at_one_place=True)
    return *small, *odd, _list(MANY_PAIRS, LARGE)


def _list(n_pairs: int, n_atoms: int, uncharged: bool = False, at_one_place: bool = False) -> _List:
    rng = np.random.default_rng(SEED + n_pairs)
    n_pairs = min(n_pairs, n_atoms * (n_atoms - 1) // 2 - at_one_place)
    positions, charges = _atoms(n_atoms), np.zeros(n_atoms) if uncharged else _charges(n_atoms)
    if at_one_place:
        positions[1] = positions[0]
    every = np.column_stack(np.triu_indices(n_atoms, 1))
    every = every[1:] if at_one_place else every  # without the pair of atoms 0 and 1
    pairs = np.ascontiguousarray(every[np.sort(rng.permutation(len(every))[:n_pairs])], np.int32)
    sigma, epsilon = _single(rng.uniform(1.0, 1.6, n_atoms)), _single(rng.uniform(0.02, 0.2, n_atoms))
    atoms = Atoms(positions=positions, charges=charges / np.sqrt(COULOMB_KCAL_A), lj_sigma=sigma, lj_epsilon=epsilon)
    (lennard_jones, slopes), (coulomb, more) = pair_terms(atoms, *pairs.T)
    pulls = (slopes + more)[:, None] * (positions[pairs[:, 0]] - positions[pairs[:, 1]])
    both = np.concatenate([pairs, pairs[:, ::-1]])
    order = np.lexsort((both[:, 1], both[:, 0]))
    both, partner_pulls = both[order], np.concatenate([pulls, -pulls])[order]
    starts = np.searchsorted(both[:, 0], np.arange(n_atoms + 1)).astype(np.int32)
    values = dict(
        n_atoms=n_atoms, n_pairs=len(pairs), pairs=pairs, atoms=np.column_stack([positions, charges]), sigma=sigma,
        epsilon=epsilon, starts=starts, partners=np.ascontiguousarray(both[:, 1], np.int32),
    )  # fmt: skip
    name = f"{len(pairs):,} pair{'s' * (len(pairs) > 1)} of {n_atoms} atoms{', charges all zero' * uncharged}"
    name += ", two atoms at the same position, excluded" * at_one_place
    return _List(pairs, lennard_jones + coulomb, lennard_jones, coulomb, pulls, partner_pulls, values, name)


@cache
def pair_cases(group: int) -> Sequence[Case]:
    """Return cases for pair energies."""

    def case(of: _List) -> Case:
        def slips() -> Iterator[Slip]:
            yield Slip("sign", "the sign of the energy is wrong: it is minus what it should be", -of.energies)
            yield Slip("sign", "the sign of the Coulomb energy is wrong", of.lennard_jones - of.coulomb)
            yield Slip("sign", "the sign of the Lennard-Jones energy is wrong", of.coulomb - of.lennard_jones)
            yield Slip("formula", "the Coulomb energy is left out", of.lennard_jones)
            yield Slip("formula", "the Lennard-Jones energy is left out", of.coulomb)
            yield Slip("factor", "the 4 of Lennard-Jones is left out", of.lennard_jones / 4 + of.coulomb)
            yield Slip("factor", "the energy is twice what it should be", 2 * of.energies)
            yield Slip("factor", "the energy is half of what it should be", of.energies / 2)

        scale = np.abs(of.lennard_jones) + np.abs(of.coulomb) + 0.01
        return Case(of.name, of.values, of.energies, scale, slips, is_simulated=len(of.pairs) == group + 1)

    return [case(each) for each in _lists(group)]


@cache
def nonbond_cases(group: int) -> Sequence[Case]:
    """Return cases for gradients of a pair list."""

    def case(of: _List) -> Case:
        n = of.values["n_atoms"]
        first, second = of.pairs.T

        def added(to_first: Floats, to_second: Floats) -> Floats:
            gradient = np.zeros((n, 3))
            np.add.at(gradient, first, to_first)
            np.add.at(gradient, second, to_second)
            return gradient.ravel()

        def slips() -> Iterator[Slip]:
            both = added(of.pulls, -of.pulls)
            yield Slip("sign", "the sign is wrong: these are forces, minus the gradient", -both)
            alike = "both atoms of a pair have the same gradient: that of the second must have the opposite sign"
            yield Slip("sign", alike, added(of.pulls, of.pulls))
            lacks = "the second atom of each pair has no gradient: it must be minus that of the first"
            yield Slip("formula", lacks, added(of.pulls, 0 * of.pulls))
            yield Slip("factor", "the gradient is twice what it should be: is each pair counted twice?", 2 * both)
            yield Slip("factor", "the gradient is half of what it should be", both / 2)
            starts = of.values["starts"]
            atoms = np.flatnonzero(np.diff(starts))  # atoms with partners
            for index, sentence in (
                (
                    starts[1:] - 1,
                    "ends one too early: the last partner is left out; the condition is k < starts[i + 1]",
                ),
                (starts[:-1], "starts one too late: the first partner is left out; it must start with k = starts[i]"),
            ):
                without = both.reshape(n, 3).copy()
                without[atoms] -= of.partner_pulls[index[atoms]]
                yield Slip("off-by-one", f"the loop over an atom's partners {sentence}", without.ravel())

        scale = added(np.abs(of.pulls), np.abs(of.pulls)) + 0.1
        return Case(
            of.name, of.values, added(of.pulls, -of.pulls), scale, slips,
            is_simulated=len(of.pairs) == group + 1,
        )  # fmt: skip

    return [case(each) for each in _lists(group)]
