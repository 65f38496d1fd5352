"""Molecular graphs: isomorphisms, stereochemistry and symmetry-corrected RMSD.

Atoms are distinguished by colour refinement (Weisfeiler and Lehman 1968). The initial colour of an atom is its element;
each iteration combines it with the colours of the neighbours, until the number of colours no longer increases. Atoms
that still share a colour are then tried one by one, with another refinement for each trial. Groups of atoms that are
not connected by undetermined atoms are solved separately, so the cost is the sum over the symmetric groups of a
molecule, not the product of their symmetries. Atoms with one bond, such as the hydrogens of a methyl group, are
assigned last.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..common.errors import InputError
from .chemistry import covalent_radius
from .labels import Floats, Ints

Indices = NDArray[np.intp]
_Colours = tuple[int, ...]

MOST_TRIALS = 20_000  # limit on colourings per search; molecules need a few dozen
_BOND = 1.2  # maximum bond length, in units of the sum of the covalent radii
_FLAT = 0.15  # fraction of the volume of a regular tetrahedron below which a centre is flat
_TETRAHEDRON = 16 / (3 * 3**0.5)  # determinant for a regular one with corners at distance 1 from the centre
_MOST_ENDS = 6  # up to this number of equivalent terminal atoms, all permutations are tried
_INVERTS = ("N",)  # inverts if it has a hydrogen or three bonds


@dataclass(frozen=True, eq=False)
class Graph:
    """Atoms and bonds of a molecule.

    elements : (n,) symbols; bonds : (m, 2) pairs of atom indices
    """

    elements: tuple[str, ...]
    bonds: Ints

    @classmethod
    def of(cls, elements: Iterable[str], bonds: ArrayLike) -> Graph:
        """Create a graph. Hydrogen isotopes are treated as hydrogen; duplicate bonds are ignored."""
        pairs = np.sort(np.asarray(bonds, np.int32).reshape(-1, 2), axis=1)
        symbols = tuple("H" if of in ("D", "T") else str(of) for of in elements)
        return cls(symbols, np.unique(pairs, axis=0) if len(pairs) else pairs)

    def __len__(self) -> int:
        return len(self.elements)

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """List of the neighbours of each atom."""
        found: list[list[int]] = [[] for _ in self.elements]
        for i, j in self.bonds.tolist():
            found[i].append(j)
            found[j].append(i)
        return found

    @cached_property
    def is_end(self) -> list[bool]:
        """Whether each atom is terminal: it has one bond, to an atom with several."""
        near = self.neighbours
        return [len(of) == 1 and len(near[of[0]]) > 1 for of in near]

    def is_same(self, other: Graph) -> bool:
        """Return whether both graphs have identical elements and bonds, in the same order."""
        return self.elements == other.elements and np.array_equal(self.bonds, other.bonds)

    def part(self, chosen: Sequence[int] | Indices) -> Graph:
        """Return the subgraph of the chosen atoms, in that order."""
        places = np.full(len(self), -1, np.int32)
        places[np.asarray(chosen, np.intp)] = np.arange(len(chosen))
        bonds = places[self.bonds]
        return Graph.of([self.elements[int(i)] for i in chosen], bonds[(bonds >= 0).all(axis=1)])

    @cached_property
    def centres(self) -> list[int]:
        """Potential stereocentres, as defined in Hands."""
        return [i for i in range(len(self)) if _is_centre(self, i)]

    @cached_property
    def heavy(self) -> Indices:
        """Indices of the heavy atoms."""
        return np.array([i for i, of in enumerate(self.elements) if of != "H"], np.intp)


def bonds_by_distance(elements: Sequence[str], positions: Floats, reach: float = _BOND) -> Ints:
    """Find bonds (m, 2) by distance. Hydrogens are bonded only to the nearest atom.

    reach : maximum bond length, in units of the sum of the covalent radii
    """
    radii = np.array([covalent_radius(of) for of in elements])
    if len(radii) < 2:
        return np.empty((0, 2), np.int32)
    apart = np.linalg.norm(positions[:, None] - positions, axis=2) / (radii[:, None] + radii)
    np.fill_diagonal(apart, np.inf)
    is_bond = apart < reach
    for i in np.flatnonzero(np.array([of == "H" for of in elements])).tolist():
        nearest = int(apart[i].argmin())
        others = np.arange(len(radii)) != nearest
        is_bond[i, others] = is_bond[others, i] = False
    return np.argwhere(np.triu(is_bond, 1)).astype(np.int32)


def stretched_bond(graph: Graph, positions: Floats, most: float) -> tuple[int, int, float] | None:
    """Find the bond with the largest ratio of length to sum of covalent radii, if above `most`. Returns (i, j, A)."""
    if not len(graph.bonds):
        return None
    i, j = graph.bonds.T
    radii = np.array([covalent_radius(of) for of in graph.elements])
    lengths = np.linalg.norm(positions[i] - positions[j], axis=1)
    shares = lengths / (radii[i] + radii[j])
    k = int(shares.argmax())
    return (int(i[k]), int(j[k]), float(lengths[k])) if shares[k] > most else None


# Equality


class Matching:
    """Isomorphisms of two graphs: mappings (n,) from the atoms of the first to those of the second.

    ours, theirs : the first and the second graph
    hands : handedness of both, to exclude mappings that invert a stereocentre
    """

    def __init__(self, ours: Graph, theirs: Graph, hands: tuple[Hands, Hands] | None = None) -> None:
        self.ours, self.theirs, self._hands = ours, theirs, hands
        self._trials, self._is_free = 0, True
        self._refined: dict[tuple[_Colours, _Colours], tuple[_Colours, _Colours] | None] = {}

    def best(self, cost: Floats | None = None) -> Indices | None:
        """Find the isomorphism with the lowest total cost; None if the graphs are not isomorphic.

        cost : (n, n) cost of mapping an atom of the first graph (row) to one of the second (column); default 0

        Raises InputError for graphs whose symmetry is too high for the search; no molecule is known to be affected.
        """
        n = len(self.ours)
        if n != len(self.theirs) or len(self.ours.bonds) != len(self.theirs.bonds):
            return None
        costs = np.zeros((n, n)) if cost is None else np.asarray(cost, np.float64)
        start = self.colours()
        if start is None:
            return None
        self._trials, self._is_free = 0, not costs.any()
        found = self._solve(list(range(n)), *start, costs)
        if found is None:
            return None
        mapping = np.full(n, -1, np.intp)
        for i, j in found[1].items():
            mapping[i] = j
        return mapping

    def colours(self) -> tuple[_Colours, _Colours] | None:
        """Return the colours of both graphs, equal for indistinguishable atoms; None if the graphs differ."""
        ranks = {element: k for k, element in enumerate(sorted({*self.ours.elements, *self.theirs.elements}))}
        one, two = (tuple(ranks[element] for element in of.elements) for of in (self.ours, self.theirs))
        return self._refine(one, two)

    def _refine(self, one: _Colours, two: _Colours) -> tuple[_Colours, _Colours] | None:
        """Refine the colours of both graphs; None if they differ. Results are cached for searches with other costs."""
        key = one, two
        if key not in self._refined:
            self._refined[key] = _refined(self.ours, self.theirs, one, two, self._hands)
        return self._refined[key]

    def _solve(
        self, atoms: list[int], one: _Colours, two: _Colours, cost: Floats
    ) -> tuple[float, dict[int, int]] | None:
        """Map atoms that share no colour with other atoms at the lowest cost. Returns the cost and the mapping."""
        self._trials += 1
        if self._trials > MOST_TRIALS:
            raise InputError(
                f"a molecule of {len(self.ours):,} atoms is too symmetric to be matched; put its atoms in the order "
                "of the ligand's"
            )
        cells = defaultdict[int, list[int]](list)
        for j, colour in enumerate(two):
            cells[colour].append(j)
        inside = [i for i in atoms if not self.ours.is_end[i]]
        fixed = {i: cells[one[i]][0] for i in inside if len(cells[one[i]]) == 1}
        total, mapping = 0.0, dict[int, int]()
        ends_by_parent = dict[int, list[int]]()
        for i in atoms:
            if self.ours.is_end[i]:
                ends_by_parent.setdefault(self.ours.neighbours[i][0], []).append(i)
        for i, j in fixed.items():
            mapping[i] = j
            total += float(cost[i, j])
        for parent, ends in ends_by_parent.items():
            if parent in fixed:  # the others are mapped with the group of their parent
                price, own = self._ends(ends, fixed[parent], one, two, cost)
                total, mapping = total + price, mapping | own
        free = [i for i in inside if i not in fixed]
        for group in self._groups(free, one):
            whole = group + [end for i in group for end in ends_by_parent.get(i, [])]
            best = self._branch(group, whole, one, two, cells, cost)
            if best is None:
                return None
            total, mapping = total + best[0], mapping | best[1]
        return total, mapping

    def _branch(
        self, group: list[int], whole: list[int], one: _Colours, two: _Colours, cells: Mapping[int, list[int]],
        cost: Floats,
    ) -> tuple[float, dict[int, int]] | None:  # fmt: skip
        """Try all candidates for one atom of a group, in order of cost."""
        first = min(group, key=lambda i: (len(cells[one[i]]), i))
        new = max(one) + 1
        best: tuple[float, dict[int, int]] | None = None
        for j in sorted(cells[one[first]], key=lambda j: (float(cost[first, j]), j)):
            refined = self._refine(_with(one, first, new), _with(two, j, new))
            found = None if refined is None else self._solve(whole, *refined, cost)
            if found is not None and (best is None or found[0] < best[0]):
                best = found
            if best is not None and self._is_free:
                break  # all mappings have the same cost
        return best

    def _groups(self, free: list[int], one: _Colours) -> list[list[int]]:
        """Split atoms into groups that are connected neither by bonds nor by colours."""
        leader = {i: i for i in free}

        def top(i: int) -> int:
            while leader[i] != i:
                leader[i] = leader[leader[i]]
                i = leader[i]
            return i

        last = dict[int, int]()
        if self._hands is not None:  # the handedness of an atom couples its neighbours
            for near in (self.ours.neighbours[i] for i in self._hands[0].signs):
                around = [k for k in near if k in leader]
                for i, k in pairwise(around):
                    leader[top(i)] = top(k)
        for i in free:
            for other in (*(k for k in self.ours.neighbours[i] if k in leader), last.setdefault(one[i], i)):
                leader[top(i)] = top(other)
        groups = defaultdict[int, list[int]](list)
        for i in free:
            groups[top(i)].append(i)
        return list(groups.values())

    def _ends(
        self, ends: list[int], where: int, one: _Colours, two: _Colours, cost: Floats
    ) -> tuple[float, dict[int, int]]:  # fmt: skip
        """Map the terminal atoms on an atom to those on its image `where`, separately for each colour."""
        ours, theirs = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
        for i in ends:
            ours[one[i]].append(i)
        for j in self.theirs.neighbours[where]:
            if self.theirs.is_end[j]:
                theirs[two[j]].append(j)
        total, mapping = 0.0, dict[int, int]()
        for colour, own in ours.items():
            there = _cheapest(own, theirs[colour], cost)
            mapping |= dict(zip(own, there, strict=True))
            total += sum(float(cost[i, j]) for i, j in zip(own, there, strict=True))
        return total, mapping


def _with(colours: _Colours, i: int, colour: int) -> _Colours:
    return (*colours[:i], colour, *colours[i + 1 :])


def _cheapest(own: list[int], there: list[int], cost: Floats) -> tuple[int, ...]:
    """Assign atoms of `there` to `own` at the lowest cost: by all permutations if few, otherwise greedily."""
    if len(own) <= _MOST_ENDS:
        return min(permutations(there), key=lambda of: sum(float(cost[i, j]) for i, j in zip(own, of, strict=True)))
    pairs, taken = dict[int, int](), set[int]()
    for _, i, j in sorted((float(cost[i, j]), i, j) for i in own for j in there):
        if i not in pairs and j not in taken:
            pairs[i] = j
            taken.add(j)
    return tuple(pairs[i] for i in own)


def _refined(
    ours: Graph, theirs: Graph, one: _Colours, two: _Colours, hands: tuple[Hands, Hands] | None
) -> tuple[_Colours, _Colours] | None:  # fmt: skip
    """Refine the colours of two graphs together until they are stable; None if the graphs then differ."""
    n_before = 0
    while True:
        if Counter(one) != Counter(two):
            return None
        n = len(set(one))
        if n == n_before or (n == len(one) and hands is None):
            return one, two
        n_before = n
        keys = [
            [(colours[i], *sorted(colours[j] for j in near)) for i, near in enumerate(of.neighbours)]
            for of, colours in ((ours, one), (theirs, two))
        ]
        if hands is not None:
            keys = [
                [(*key, of.seen(i, colours)) for i, key in enumerate(some)]
                for some, of, colours in zip(keys, hands, (one, two), strict=True)
            ]
        ranks = {key: k for k, key in enumerate(sorted({*keys[0], *keys[1]}))}
        one, two = (tuple(ranks[key] for key in of) for of in keys)


# Differences


def difference(ours: Graph, theirs: Graph, name: Mapping[int, str]) -> str:
    """Describe the first difference between two graphs that are not isomorphic.

    name : names of the atoms of `ours`
    """
    counts = Counter(theirs.elements)
    counts.subtract(ours.elements)
    more = [f"{n:,} {of} too many" for of, n in sorted(counts.items()) if n > 0]
    lacks = [f"{-n:,} {of} too few" for of, n in sorted(counts.items()) if n < 0]
    if more or lacks:
        return f"it has {', '.join(lacks + more)}"
    one, two = (tuple(hash(of) for of in graph.elements) for graph in (ours, theirs))
    for _ in range(len(ours) + 1):
        surplus = Counter(one)
        surplus.subtract(two)
        odd = next((i for i, colour in enumerate(one) if surplus[colour] > 0), None)
        if odd is not None:
            around = ", ".join(sorted(ours.elements[j] for j in ours.neighbours[odd])) or "nothing"
            return f"no atom of it has the bonds of {name[odd]}, {ours.elements[odd]} with {around} around it"
        one, two = (
            tuple(hash((colours[i], *sorted(colours[j] for j in near))) for i, near in enumerate(of.neighbours))
            for of, colours in ((ours, one), (theirs, two))
        )
    return "its bonds connect other atoms"


def lacks_hydrogens(ours: Graph, theirs: Graph) -> bool:
    """Return whether `theirs` is `ours` without some of its hydrogens."""
    if len(theirs) >= len(ours) or len(theirs.heavy) != len(ours.heavy):
        return False
    return Matching(ours.part(ours.heavy), theirs.part(theirs.heavy)).best() is not None


# Handedness


@dataclass(frozen=True, eq=False)
class Hands:
    """Handedness of the stereocentres of a molecule in a conformation.

    graph : graph of the molecule
    signs : +1 or -1 for each centre with its neighbours in the order of the graph, 0 if it is flat

    Centres are atoms with four neighbours; S, Se, P and As may also have three. Excluded are atoms with two hydrogens,
    nitrogens that can invert, and S, Se, P and As with several oxygens that may exchange their hydrogens.
    """

    graph: Graph
    signs: Mapping[int, int]

    @classmethod
    def of(cls, graph: Graph, positions: Floats) -> Hands:
        """Determine the handedness from positions (n, 3) A."""
        return cls(graph, {i: _sign(positions, i, graph.neighbours[i]) for i in graph.centres})

    def seen(self, i: int, colours: Sequence[int]) -> int:
        """Return the sign of atom i with its neighbours in order of colour; 0 for other atoms and equal colours."""
        sign = self.signs.get(i, 0)
        around = [colours[j] for j in self.graph.neighbours[i]] if sign else []
        return sign * _parity(around) if len(set(around)) == len(around) else 0


def inverted(ours: Hands, theirs: Hands, mapping: Indices) -> list[int]:
    """Find the centres of `ours` whose handedness is opposite in `theirs`."""
    places = np.argsort(mapping).tolist()  # inverse mapping
    own = list(range(len(places)))
    found = [(i, ours.seen(i, own), theirs.seen(int(mapping[i]), places)) for i in ours.signs]
    return [i for i, one, two in found if one * two < 0]


def with_hands(ours: Graph, theirs: Graph, mapping: Indices, positions: tuple[Floats, Floats]) -> Indices:
    """Swap equivalent terminal atoms, such as the hydrogens of CH2, if this preserves the handedness of their atom.

    positions : (n, 3) A of both molecules
    """
    found = mapping.copy()
    for i, near in enumerate(ours.neighbours):
        ends = [j for j in near if ours.is_end[j]]
        equal = [
            (j, k)
            for j, k in pairwise(sorted(ends, key=lambda j: ours.elements[j]))
            if ours.elements[j] == ours.elements[k]
        ]
        if len(near) == 4 and equal:
            one, two = _sign(positions[0], i, near), _sign(positions[1], int(mapping[i]), found[near].tolist())
            if one * two < 0:
                j, k = equal[0]
                found[[j, k]] = found[[k, j]]
    return found


def turned_bonds(
    ours: Graph, positions: tuple[Floats, Floats], mapping: Indices, double: Iterable[tuple[int, int]],
    colours: Sequence[int],
) -> list[tuple[int, int]]:  # fmt: skip
    """Find double bonds that are cis in one molecule and trans in the other.

    positions : (n, 3) A of both molecules; double : double bonds, as pairs of atoms of `ours`; colours : of these atoms
    """
    found = []
    for p, q in double:
        marks = [_mark(ours, i, other, colours) for i, other in ((p, q), (q, p))]
        if None in marks or _is_in_ring(ours, p, q):
            continue
        a, d = (int(mark) for mark in marks if mark is not None)
        one = _cosine(*(positions[0][i] for i in (a, p, q, d)))
        two = _cosine(*(positions[1][mapping[i]] for i in (a, p, q, d)))
        if one * two < 0 and min(abs(one), abs(two)) > 0.5:
            found.append((p, q))
    return found


def _mark(graph: Graph, i: int, other: int, colours: Sequence[int]) -> int | None:
    """Return the neighbour that defines cis and trans at one end of a double bond; None if there is none."""
    around = sorted((j for j in graph.neighbours[i] if j != other), key=lambda j: colours[j])
    if graph.elements[i] not in ("C", "N") or not 0 < len(around) < 3:
        return None
    if graph.elements[i] == "N" and (len(around) > 1 or graph.elements[around[0]] == "H"):
        return None  # N-H can be on either side
    return None if len({colours[j] for j in around}) < len(around) else around[-1]


def _is_in_ring(graph: Graph, p: int, q: int) -> bool:
    """Return whether the bond between two atoms is part of a ring."""
    seen, edge = {p}, [p]
    while edge:
        edge = [j for i in edge for j in graph.neighbours[i] if j not in seen and {i, j} != {p, q}]
        seen.update(edge)
    return q in seen


def _cosine(a: Floats, b: Floats, c: Floats, d: Floats) -> float:
    """Return the cosine of the torsion angle of four points; 0 if three of them are collinear."""
    axis = c - b
    one, two = np.cross(a - b, axis), np.cross(d - c, axis)
    norm = float(np.linalg.norm(one) * np.linalg.norm(two))
    return float(one @ two) / norm if norm > 0 else 0.0


def _parity(values: Sequence[int]) -> int:
    """Return the parity of the permutation that sorts the values: +1 if even, -1 if odd."""
    swaps = sum(one > other for k, one in enumerate(values) for other in values[k + 1 :])
    return -1 if swaps % 2 else 1


def _is_centre(graph: Graph, i: int) -> bool:
    near, element = graph.neighbours[i], graph.elements[i]
    if len(near) not in ((3, 4) if element in ("S", "Se", "P", "As") else (4,)):
        return False
    hydrogens = [j for j in near if graph.elements[j] == "H"]
    if len(hydrogens) > 1 or (element in _INVERTS and hydrogens):
        return False
    acids = [
        j
        for j in near
        if graph.elements[j] == "O" and all(k == i or graph.elements[k] == "H" for k in graph.neighbours[j])
    ]
    return element not in ("S", "Se", "P", "As") or len(acids) < 2


def _sign(positions: Floats, i: int, near: Sequence[int]) -> int:
    """Return the handedness of the neighbours in the given order; 0 if they are flat."""
    away = positions[list(near)] - positions[i]
    lengths = np.linalg.norm(away, axis=1)
    if not (lengths > 0).all():
        return 0
    away /= lengths[:, None]
    volume = float(np.linalg.det(away[:3] - (away[3] if len(near) > 3 else 0)))
    regular = _TETRAHEDRON if len(near) > 3 else _TETRAHEDRON / 4
    return 0 if abs(volume) < _FLAT * regular else int(np.sign(volume))


# Symmetry-corrected RMSD


class SymmetricRmsd:
    """Symmetry-corrected RMSD of heavy atoms: the minimum over all assignments of equivalent atoms.

    Atoms are equivalent if the elements and bonds of the heavy atoms do not distinguish them, such as the ortho carbons
    of a phenyl group or the oxygens of a carboxylate, protonated or not. The structures are not superposed.
    """

    def __init__(self, graph: Graph) -> None:
        """Initialize with the graph of the whole molecule. Without heavy atoms, the hydrogens are compared."""
        self.atoms: Indices = graph.heavy if len(graph.heavy) else np.arange(len(graph))
        part = graph.part(self.atoms)
        self._matching = Matching(part, part)

    def __call__(self, positions: Floats, reference: Floats) -> Floats:
        """Return the RMSD (m,) A of conformations (m, n, 3) A from the reference (n, 3) A."""
        there = reference[self.atoms]
        squares = [
            ((of[self.atoms][:, None] - there) ** 2).sum(axis=2) if np.isfinite(of).all() else None for of in positions
        ]
        return np.array([np.nan if cost is None else self._least(cost) for cost in squares], np.float64)

    def _least(self, cost: Floats) -> float:
        mapping = self._matching.best(cost)
        assert mapping is not None  # a graph is isomorphic to itself
        return float(np.sqrt(cost[np.arange(len(cost)), mapping].mean()))
