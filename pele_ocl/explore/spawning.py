"""Spawning: explorers of an epoch preferably start in the least populated clusters of earlier epochs.

This follows AdaptivePELE (Lecina, Gilabert and Guallar, Sci. Rep. 7, 8466, 2017). States are assigned by leader
clustering, with smaller thresholds where the ligand is buried. Explorers are distributed in inverse proportion to the
population of a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Floats, Ints
from ..common.arguments import choice, number, whole_number
from ..common.errors import InputError

CONTACT = 8.0  # A, contact distance between an alpha carbon and a ligand atom
BEST = 5  # number of clusters in which a fraction epsilon of the explorers starts


@dataclass(eq=False)
class Cluster:
    """States whose ligand poses are within a threshold rmsd of the first one, the leader.

    leader : (k, 3) positions of its ligand, A; threshold : A
    ratio : number of alpha carbons near the leader, per heavy atom of the ligand
    size : number of states; metric, state : the lowest metric, and the positions of its state, (n, 3) A
    """

    leader: Floats
    threshold: float
    ratio: float
    size: int
    metric: float
    state: Floats

    @property
    def density(self) -> float:
        """Desired population with continuous density: 8 for a buried ligand, 0.3 without contacts."""
        return 8.0 if self.ratio > 1 else 64.0 / (6.0 - 4.0 * self.ratio) ** 3


class Clusters:
    """Clusters of the states of explorers, by the positions of the ligand's heavy atoms.

    ligand : (k,) heavy atoms of the ligand; alpha : (m,) alpha carbons of the receptor; indices, or masks of all atoms
    symmetric : (s, k) equivalent permutations of the ligand's atoms, None for only one
    thresholds : thresholds of clusters with a contact ratio above each of `ratios`, and of those below all, A
    density : desired populations of clusters: "constant", or "continuous", which is larger for buried ligands
    """

    def __init__(
        self, ligand: ArrayLike, alpha: ArrayLike, *, symmetric: ArrayLike | None = None,
        thresholds: ArrayLike = (2.0, 3.0, 4.0, 5.0), ratios: ArrayLike = (1.0, 0.75, 0.5),
        density: Literal["continuous", "constant"] = "continuous",
    ) -> None:  # fmt: skip
        """Raises InputError for another density, without ligand atoms, and unless there is one more threshold than
        ratios.
        """
        choice("density", density, ("continuous", "constant"))
        self._density = density
        self._ligand, self._alpha = _indices("ligand", ligand), _indices("alpha", alpha)
        if not len(self._ligand):
            raise InputError("ligand has no atom; expected its heavy atoms")
        self._orders = np.arange(len(self._ligand))[np.newaxis] if symmetric is None else np.asarray(symmetric)
        self._thresholds, self._ratios = np.asarray(thresholds, np.float64), np.asarray(ratios, np.float64)
        if len(self._thresholds) != len(self._ratios) + 1:
            raise InputError(f"{len(self._ratios)} ratios need {len(self._ratios) + 1} thresholds")
        self.found: list[Cluster] = []

    def __len__(self) -> int:
        return len(self.found)

    def add(self, state: Floats, metric: float) -> Cluster:
        """Add a state, positions (n, 3) A, to the nearest cluster within its threshold, or to a new one.

        metric : value to minimize, e.g. a binding energy

        Raises InputError for a state or a metric that is not finite.
        """
        lowest = number("metric", metric, "a finite number")
        if not np.isfinite(state).all():
            raise InputError("a state has positions that are not finite; leave it out")
        own = state[self._ligand]
        leaders = np.array([cluster.leader for cluster in self.found]).reshape(-1, *own.shape)
        distances = rmsds(own, leaders, self._orders)
        within = np.flatnonzero(distances < [cluster.threshold for cluster in self.found])
        if not within.size:
            ratio = self._contacts(state) / len(own)
            threshold = self._thresholds[int((ratio <= self._ratios).sum())]
            self.found.append(Cluster(own.copy(), float(threshold), ratio, 1, lowest, state.copy()))
            return self.found[-1]
        cluster = self.found[int(within[distances[within].argmin()])]
        cluster.size += 1
        if lowest < cluster.metric:
            cluster.metric, cluster.state = lowest, state.copy()
        return cluster

    def spawn(self, explorers: int, epsilon: float = 0.0) -> list[Cluster]:
        """Choose the initial cluster of each explorer of the next epoch, (explorers,).

        epsilon : fraction of the explorers that start in the clusters with the lowest metrics; the others are
            distributed in inverse proportion to cluster size

        Raises InputError if there are no clusters yet.
        """
        n = whole_number("explorers", explorers, least=1)
        if not self.found:
            raise InputError("no state was added; add states before spawning explorers")
        greedy = int(number("epsilon", epsilon, "a share from 0 to 1", least=0, most=1) * n)
        chosen = np.zeros(len(self.found), np.int64)
        if greedy:
            metrics = np.array([cluster.metric for cluster in self.found])
            best = np.argsort(metrics, kind="stable")[:BEST]
            chosen[best] += shares(metrics[best].max() - metrics[best], greedy)
        if n > greedy:
            is_constant = self._density == "constant"
            weights = np.array([(1.0 if is_constant else cluster.density) / cluster.size for cluster in self.found])
            least = np.argsort(-weights, kind="stable")[: n - greedy]
            chosen[least] += shares(weights[least], n - greedy)
        return [self.found[k] for k in np.repeat(np.arange(len(chosen)), chosen)]

    def _contacts(self, state: Floats) -> int:
        """Count the alpha carbons in contact with any ligand atom."""
        apart = state[self._alpha, np.newaxis] - state[self._ligand]
        return int(((apart**2).sum(axis=2) <= CONTACT**2).any(axis=1).sum())


def _indices(name: str, chosen: ArrayLike) -> NDArray[np.int64]:
    """Convert a mask or indices to indices. Raises InputError for anything else."""
    found = np.asarray(chosen)
    if found.dtype == bool and found.ndim == 1:
        return np.flatnonzero(found).astype(np.int64)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise InputError(f"{name} is an array of shape {found.shape}; expected indices of atoms, or a mask")
    return found.astype(np.int64)


def rmsd(own: Floats, other: Floats, orders: NDArray[np.integer]) -> float:
    """Return the minimum rmsd of points (k, 3) from others over permutations (s, k) of the points, A."""
    return float(rmsds(own, other[np.newaxis], orders)[0])


def rmsds(own: Floats, others: Floats, orders: NDArray[np.integer]) -> Floats:
    """Return the minimum rmsd (m,) A of points (k, 3) from each of others (m, k, 3), as in `rmsd`."""
    squares = ((own[orders] - others[:, np.newaxis]) ** 2).sum(axis=3).mean(axis=2)
    found: Floats = np.sqrt(squares.min(axis=1, initial=np.inf))
    return found


def shares(weights: Floats, n: int) -> Ints:
    """Divide n in proportion to weights (m,) by the largest remainder method; equally if all weights are 0."""
    total = weights.sum()
    exact = n * (weights / total if total > 0 else np.full(len(weights), 1 / len(weights)))
    found: Ints = np.floor(exact).astype(np.int64)
    rest = np.argsort(found - exact, kind="stable")[: n - int(found.sum())]
    found[rest] += 1
    return found
