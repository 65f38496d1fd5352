"""Steric screen on the device: find poses of a ligand whose clashes can be relieved by rotating bonds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Ints
from ..atoms.bond_paths import exclusions
from ..atoms.torsions import Flexible
from .rigid import RigidMoves
from .walk import Stage, Walk

if TYPE_CHECKING:
    from ..ensemble import DeviceArray

GROUP, SIDES = 64, 16  # on GPUs: size of work-groups, and number of work-groups per trial
TURN_REACH = 8.0  # A, maximum distance over which a rotated atom of a residue can clash
MOST_GROUPS = 64  # maximum number of groups, stored in a 64-bit mask
MOST_TORSIONS = 64  # maximum number of torsions per side chain, stored in a 64-bit mask
RIGID, NO_TRY = -1, 0x7FFFFFFF

Flags = NDArray[np.bool_]


class Screen:
    """Finds poses of ligands: for each trial the first try without clashes.

    ligand, residues : rotatable bonds of the ligand and of residues
    """

    def __init__(self, walk: Walk, ligand: Flexible, residues: Sequence[Flexible]) -> None:
        self._walk, self._residues = walk, residues
        self._radii = radii_of(walk)
        self._residue = residue_numbers(walk)
        self._turning = np.concatenate([np.zeros(0, np.int32), *(of.moved for of in residues)]).astype(np.int32)
        self._first_turning = np.cumsum([0, *(len(of.moved) for of in residues)])[:-1]
        self._most = self._most_moving = self._trials = 0
        self._items, self._sides = (1, 1) if walk.ensemble.device.kind == "CPU" else (GROUP, SIDES)
        self._tries: dict[int, dict[str, DeviceArray]] = {}  # arrays by number of tries per trial in a launch
        upload, array = walk.upload, walk.ensemble.array
        self._values: dict[str, Any] = {
            "n_ligand": len(walk.ligand), "radii": upload(self._radii), "residues": upload(self._residue, np.int32),
            "is_core": upload(np.isin(walk.ligand, ligand.core), np.int32), "can_turn": bool(ligand.side_chains),
            "bonded": upload(near_along_bonds(walk), np.int32), "turns": bool(ligand.side_chains or residues),
            "before": array("atom", 3, "coordinate"), "places": array("atom", 1, np.int32),
            "n_members": array("row", 1, np.int32), "starts": array("row", MOST_GROUPS + 1, np.int32),
            "group_of": array("row", MOST_GROUPS, np.int32),
            "centers": array("row", 4), "keys": array("row", 4, np.uint32), "chosen": array("row", 1, np.int32),
        }  # fmt: skip
        self._values |= {name: upload(table, np.int32) for name, table in turn_tables([ligand, *residues]).items()}
        kernels = {"gather": "explore/screen.cl", "screen": "explore/screen.cl"}
        kernels |= {"relieve": "explore/relieve.cl", "take_pose": "explore/relieve.cl"}
        self._kernels = {name: walk.kernel(file, name) for name, file in kernels.items()}

    def begin(self, rows: Sequence[int], positions: Floats, reach: Floats) -> None:
        """Gather the receptor atoms that the ligands of rows can approach.

        positions : (n_rows, n, 3) A; reach : (n_rows,) maximum distance of ligand atoms from the ligand's centre, A
        """
        walk = self._walk
        found = [self._members(x, far, row) for row, x, far in zip(rows, positions, reach, strict=True)]
        self._allocate(
            max(len(members) for members, *_ in found), max(int(starts[-1]) for _, _, starts, _ in found),
            max(walk.settings[row].trials for row in rows),
        )  # fmt: skip
        array = self._new_values()
        for row, x, (members, groups, starts, group_of) in zip(rows, positions, found, strict=True):
            n, array["starts"][row] = len(members), starts
            array["members"][row, :n], array["groups"][row, :n], array["n_members"][row] = members, groups, n
            array["group_of"][row, : len(group_of)] = group_of
            center = walk.center(x) - x[members[0]]
            array["centers"][row] = *center, walk.settings[row].overlap_factor
            array["keys"][row] = walk.seed, walk.explorers[row], walk.steps[row], Stage.RELIEF
            array["places"].reshape(len(walk.ensemble), -1)[row, members] = np.arange(n)
        for name, values in array.items():
            self._values[name].write(values)
        self._launch("gather", rows)

    def find(self, moves: Mapping[int, RigidMoves], is_open: Mapping[int, Flags], first: int) -> dict[int, Ints]:
        """Screen the tries of all rows, relieving their clashes where possible.

        moves, is_open : by row, (n_trials, n_tries); tries that are not open are skipped
        first : number of the first try

        Returns the number of the try found so far for each trial, (n_trials,) by row, -1 for none.
        """
        walk, n_tries = self._walk, next(iter(is_open.values())).shape[1]
        shape = len(walk.ensemble), self._trials, n_tries
        given, flags = np.zeros((*shape, 12), walk.ensemble.precision), np.zeros(shape, np.int32)
        for row, drawn in moves.items():
            n = len(drawn.translations)
            given[row, :n, :, :9], given[row, :n, :, 9:] = drawn.rotations.reshape(n, n_tries, 9), drawn.translations
            flags[row, :n] = is_open[row]
        self._values |= self._arrays_of_tries(n_tries)
        self._values["draws"].write(given.reshape(shape[0], -1))
        self._values["open"].write(flags.reshape(shape[0], -1))
        self._launch("screen", list(moves), n_tries=self._trials * n_tries)
        items = self._trials * self._sides * self._items
        self._launch("relieve", list(moves), per=items, n_tries=n_tries, first_try=first)
        found = self._values["found"].read()
        found[found == NO_TRY] = -1
        return {row: found[row, : len(drawn.translations)] for row, drawn in moves.items()}

    def take(self, chosen: Mapping[int, int]) -> None:
        """Set the positions of rows to the poses of trials, or restore them for -1."""
        trials = np.full((len(self._walk.ensemble), 1), -1, np.int32)
        for row, trial in chosen.items():
            trials[row] = trial
        self._values["chosen"].write(trials)
        self._launch("take_pose", list(chosen), moves=True)

    def _launch(
        self, name: str, rows: Sequence[int], per: Literal["atom"] | int = "atom", moves: bool = False, **further: int
    ) -> None:
        kernel = self._kernels[name]
        sizes = {"most": self._most, "most_moving": self._most_moving, "n_trials": self._trials, "n_sides": self._sides}
        values = {**self._values, **further, **sizes}
        own: dict[str, Any] = {name: values[name] for name in kernel.parameters}
        kernel(list(rows), per=per, moves=moves, **own)

    def _members(self, x: Floats, reach: float, row: int) -> tuple[Ints, Ints, Ints, list[int]]:
        """Return the nearby receptor atoms of a row, their groups, the first atom of each group, and the groups."""
        walk = self._walk
        apart = x - walk.center(x)
        distance = np.sqrt(np.einsum("ij,ij->i", apart, apart))
        distance[walk.ligand] = np.inf
        touch = 2 * walk.settings[row].overlap_factor * float(self._radii.max())
        is_near = np.zeros(len(distance), bool)  # by residue index
        is_near[self._residue[distance <= reach + touch + (TURN_REACH if self._residues else 0)]] = True
        near = walk.receptor[is_near[self._residue[walk.receptor]]]
        taken = list[int]()
        if self._residues:
            nearest = np.minimum.reduceat(distance[self._turning], self._first_turning)
            in_reach = np.flatnonzero(nearest <= reach + touch)
            taken = in_reach[np.argsort(nearest[in_reach], kind="stable")][: MOST_GROUPS - 1].tolist()
        group = np.full(len(walk.atoms), RIGID, np.int32)
        group[walk.ligand] = 0
        for bit, k in enumerate(taken, 1):
            group[self._residues[k].moved] = bit
        bits = np.where(group[near] == RIGID, MOST_GROUPS, group[near])
        order = np.argsort(bits, kind="stable")
        members = np.concatenate([walk.ligand, near[order]])
        starts = len(walk.ligand) + np.searchsorted(bits[order], np.arange(MOST_GROUPS + 1)).astype(np.int32)
        starts[0] = 0
        return members, group[members], starts, [0, *(1 + k for k in taken)]

    def _allocate(self, members: int, moving: int, trials: int) -> None:
        """Enlarge the arrays whose size depends on the numbers of nearby atoms, moving atoms and trials, if needed."""
        if members <= self._most and moving <= self._most_moving and trials <= self._trials:
            return
        self._most, self._trials = max(self._most, -(-members // 256) * 256), max(self._trials, trials)
        self._most_moving = max(self._most_moving, -(-moving // 64) * 64)
        array, most, n = self._walk.ensemble.array, self._most, self._trials
        self._tries.clear()
        self._values |= {
            "members": array("row", most, np.int32), "groups": array("row", most, np.int32),
            "local_at": array("row", 3 * most), "poses": array("row", 3 * self._most_moving * n * self._sides),
            "turned": array("row", n * self._sides, np.uint64), "found": array("row", n, np.int32),
        }  # fmt: skip

    def _arrays_of_tries(self, n_tries: int) -> dict[str, DeviceArray]:
        """Return the arrays for `n_tries` tries per trial; they are cached."""
        if n_tries not in self._tries:
            array, n = self._walk.ensemble.array, self._trials * n_tries
            self._tries[n_tries] = {"draws": array("row", 12 * n), "open": array("row", n, np.int32)}
        return self._tries[n_tries]

    def _new_values(self) -> dict[str, NDArray[Any]]:
        """Return initial host arrays for the first try, filled with zeros or the value for none."""
        names = "members", "groups", "n_members", "starts", "group_of", "centers", "keys", "places", "found"
        arrays: dict[str, DeviceArray] = {name: self._values[name] for name in names}
        nothing = {"places": -1, "found": NO_TRY}
        return {name: np.full(of.shape, nothing.get(name, 0), of.dtype) for name, of in arrays.items()}


def radii_of(walk: Walk) -> Floats:
    """Return the steric radii of atoms, half of sigma, (n,) A."""
    return np.asarray(walk.atoms.lj_sigma, np.float64) / 2


def residue_numbers(walk: Walk) -> Ints:
    """Return the residue index of each atom, (n,)."""
    assert walk.atoms.labels is not None
    return walk.atoms.labels.residue_index


def near_along_bonds(walk: Walk) -> Flags:
    """Return a mask (m, m) of the pairs of ligand atoms at most three bonds apart."""
    n = len(walk.atoms)
    close = np.zeros((len(walk.ligand),) * 2, bool)
    place = np.full(n, -1)
    place[walk.ligand] = np.arange(len(walk.ligand))
    for pairs in exclusions(walk.atoms.bond_pairs, n):
        i, j = place[pairs].T
        own = (i >= 0) & (j >= 0)
        close[i[own], j[own]] = close[j[own], i[own]] = True
    return close


def turn_tables(groups: Sequence[Flexible]) -> dict[str, Ints]:
    """Return the rotatable bonds as arrays for cl/explore/relieve.cl: groups, side chains, torsions, atoms."""
    chains = [chain for group in groups for chain in group.side_chains]
    torsions = [torsion for chain in chains for torsion in chain.torsions[:MOST_TORSIONS]]
    return {
        "group_chains": _ends(len(group.side_chains) for group in groups),
        "chain_torsions": _ends(len(chain.torsions[:MOST_TORSIONS]) for chain in chains),
        "chain_most": np.array([chain.most for chain in chains] or [0], np.int32),
        "axes": np.array([torsion.axis for torsion in torsions] or [(0, 0)], np.int32).ravel(),
        "n_values": np.array([torsion.n_values for torsion in torsions] or [1], np.int32),
        "torsion_moved": _ends(len(torsion.moved) for torsion in torsions),
        "moved": np.concatenate([np.zeros(0, np.int32), *(torsion.moved for torsion in torsions), [0]]).astype(
            np.int32
        ),
    }


def _ends(counts: Any) -> Ints:
    return np.cumsum([0, *counts]).astype(np.int32)
