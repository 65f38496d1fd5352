"""Virtual sites: massless particles, such as lone pairs, whose positions are defined by other atoms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..common.errors import InputError
from ..common.readonly import ReadOnlyArrays, read_only
from .labels import Floats, Ints

MOST_PARENTS = 4
N_WEIGHTS = 13  # per site: origin, x and y (3 each, for the parents after the first), cross, and local (3)


@dataclass(frozen=True)
class SiteRule:
    """Definition of one virtual site, general enough for OpenMM's virtual sites.

    The site is at sum_k origin[k] p_k + cross X x Y + local[0] u + local[1] (w x u) + local[2] w, where p_k are the
    positions of the parents, X = sum_k x[k] p_k, Y = sum_k y[k] p_k, u = X/|X|, and w is X x Y divided by its length.

    site : index of the site; parents : up to four atoms, none if the definition is unknown
    origin, x, y : weights of the parents; they sum to 1 for origin, and to 0 for x and y
    cross : 1/A; local : A
    """

    site: int
    parents: Sequence[int] = ()
    origin: Sequence[float] = ()
    x: Sequence[float] = ()
    y: Sequence[float] = ()
    cross: float = 0.0
    local: Sequence[float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class VirtualSites(ReadOnlyArrays):
    """Virtual sites of a molecule with their definitions.

    atoms : (k,) indices of the sites
    parents : (k, 4) parent atoms of each site, padded with the first; -1 if the definition is unknown
    weights : (k, 13) origin, x and y of the parents after the first (3 each), cross (1/A), local (3) A; see `SiteRule`
    """

    atoms: Ints
    parents: Ints
    weights: Floats

    def __post_init__(self) -> None:
        for name, dtype in (("atoms", np.int32), ("parents", np.int32), ("weights", np.float64)):
            object.__setattr__(self, name, read_only(getattr(self, name), dtype))
        if self.parents.shape != (len(self), MOST_PARENTS) or self.weights.shape != (len(self), N_WEIGHTS):
            raise InputError(f"expected parents (k, {MOST_PARENTS}) and weights (k, {N_WEIGHTS}) of k virtual sites")
        known = self.parents[:, 0] >= 0
        if np.isin(self.parents[known], self.atoms).any():
            raise InputError("a virtual site is placed by another virtual site, which is not supported")

    @classmethod
    def of(cls, rules: Sequence[SiteRule]) -> VirtualSites | None:
        """Make VirtualSites from their definitions; None if there are none.

        Raises InputError for too many parents and for weights that are not invariant under translation.
        """
        if not rules:
            return None
        parents = np.full((len(rules), MOST_PARENTS), -1)
        weights = np.zeros((len(rules), N_WEIGHTS))
        for k, rule in enumerate(rules):
            if not rule.parents:
                continue
            sums = [*(float(sum(of)) for of in (rule.origin, rule.x, rule.y))]
            if len(rule.parents) > MOST_PARENTS or np.abs(np.subtract(sums, (1, 0, 0))).max() > 1e-5:
                raise InputError(f"virtual site {rule.site} has weights or parents that are not supported")
            parents[k] = rule.parents[0]
            parents[k, : len(rule.parents)] = rule.parents
            for j, of in enumerate((rule.origin, rule.x, rule.y)):
                weights[k, 3 * j : 3 * j + max(0, len(of) - 1)] = of[1:]
            weights[k, 9], weights[k, 10:] = rule.cross, rule.local
        return cls(np.array([rule.site for rule in rules]), parents, weights)

    def __len__(self) -> int:
        return len(self.atoms)

    @property
    def unknown(self) -> Ints:
        """Indices of the sites without a definition."""
        return self.atoms[self.parents[:, 0] < 0]

    def mask(self, n: int) -> NDArray[np.bool_]:
        """Return a mask (n,) of the sites among n atoms."""
        found = np.zeros(n, np.bool_)
        found[self.atoms] = True
        return found

    def are_held(self, held: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask (k,) of the sites that cannot move if the atoms `held` (n,) are fixed."""
        stay: NDArray[np.bool_] = np.where(self.parents[:, 0] >= 0, held[self.parents].all(axis=1), held[self.atoms])
        return stay

    def placed(self, positions: Floats, moving: NDArray[np.bool_] | None = None) -> Floats:
        """Return a copy of positions (..., n, 3) A with the positions of the sites recomputed.

        moving : (n,) mask of the atoms that moved; only sites with a parent among them are recomputed
        """
        found = np.array(positions, np.float64)
        chosen = self.parents[:, 0] >= 0
        if moving is not None:
            chosen &= moving[self.parents].any(axis=1)
        if not chosen.any():
            return found
        parents, weights = self.parents[chosen], self.weights[chosen]
        first = found[..., parents[:, 0], :]
        apart = found[..., parents[:, 1:], :] - first[..., np.newaxis, :]
        origin, x, y = ((weights[:, 3 * k : 3 * k + 3, np.newaxis] * apart).sum(axis=-2) for k in range(3))
        z = np.cross(x, y)
        u, w = _units(x), _units(z)
        local = weights[:, 10:, np.newaxis]
        found[..., self.atoms[chosen], :] = (
            first + origin + weights[:, 9, np.newaxis] * z
            + local[:, 0] * u + local[:, 1] * np.cross(w, u) + local[:, 2] * w
        )  # fmt: skip
        return found

    def of_atoms(self, places: Ints) -> VirtualSites | None:
        """Return the sites among the kept atoms. places : (n,) new index of each atom, -1 for removed ones

        Sites that lose a parent lose their definition.
        """
        kept = places[self.atoms] >= 0
        if not kept.any():
            return None
        parents = np.where(self.parents[kept] >= 0, places[self.parents[kept]], -1)
        parents[(parents < 0).any(axis=1)] = -1
        return replace(self, atoms=places[self.atoms[kept]], parents=parents, weights=self.weights[kept])

    @property
    def groups(self) -> tuple[Ints, Ints]:
        """Order of the sites (k,) by groups that share parents, and the start of each group (g + 1,)."""
        group = np.arange(len(self))
        owner: dict[int, int] = {}

        def root(k: int) -> int:
            while group[k] != k:
                k = int(group[k])
            return k

        for k, parents in enumerate(self.parents.tolist()):
            for parent in set(parents):
                group[root(k)] = root(owner.setdefault(parent, k))
        roots = np.array([root(k) for k in range(len(self))])
        order = np.argsort(roots, kind="stable")
        _, starts = np.unique(roots[order], return_index=True)
        return order.astype(np.int32), np.append(starts, len(self)).astype(np.int32)


def _units(vectors: Floats) -> Floats:
    """Normalize vectors (..., 3). Zero vectors are unchanged."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    units: Floats = vectors / np.where(lengths > 0, lengths, 1)
    return units
