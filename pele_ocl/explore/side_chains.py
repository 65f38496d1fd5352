"""Side-chain prediction by rotamers for batches of explorers (docs/theory/side-chains.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats, Ints, require_atoms
from ..common.arguments import flag, instance, number, whole_number
from ..common.errors import InputError
from ..common.installation import shipped
from ..ensemble import Ensemble
from ..minimize.options import check_options
from ..opencl.interface import MOST_POLAR
from .philox import philox
from .regions import is_close
from .rotamers import RotamerLibrary
from .rotations import RotamerChain, side_chains_of, torsions_at
from .side_chain_tables import SideChainTables
from .walk import BOLTZMANN, Move, Stage, Walk

if TYPE_CHECKING:
    from ..opencl.memory import Buffer

ALIKE = np.deg2rad(30)  # maximum difference of chi angles within a group
OVERLAP, LEAST_OVERLAP = 0.75, 0.70  # factors of half the sum of two sigmas, below which atoms clash
MOST_SWEEPS = 10
_KERNELS = "spread", "screen", "survive", "settled", "met", "choose", "settle"
_MOST_CHI = 4
_N_COLUMNS, _N_MOVER_COLUMNS, _BORN = 9, 8, 3  # layout of `columns` and `movers` in the kernels


@dataclass(frozen=True)
class Prediction:
    """Outcome of the prediction for a row.

    sweeps : number of sweeps over its side chains; clashing : numbers of the side chains whose chosen rotamer still
        clashes with fixed atoms
    """

    sweeps: int = 0
    clashing: tuple[int, ...] = ()


class SideChainPredictor:
    """Predicts side chains in rows of an ensemble.

    ensemble : ensemble with force field and solvent model; atoms : the molecule of its rows
    chains : side chains that may be predicted; library : rotamer library
    temperature : temperature for the weights of groups, K; sweeps : maximum number of sweeps
    overlap, least_overlap : factors of half the sum of two sigmas, below which a candidate clashes with fixed atoms
    """

    def __init__(
        self, ensemble: Ensemble, atoms: Atoms, chains: Sequence[RotamerChain], *,
        library: RotamerLibrary | None = None, temperature: float = 298.0, sweeps: int = MOST_SWEEPS,
        overlap: float = OVERLAP, least_overlap: float = LEAST_OVERLAP,
    ) -> None:  # fmt: skip
        """Raises InputError for options out of range, and for atoms without the parameters that the energy needs."""
        self.ensemble, self.atoms = ensemble, atoms
        self.library = instance("library", library or RotamerLibrary.dunbrack(), RotamerLibrary, "a RotamerLibrary")
        self.kt = BOLTZMANN * number("temperature", temperature, "a temperature in K", above=0)
        self.sweeps = whole_number("sweeps", sweeps, least=1)
        self.overlaps = [
            number(name, value, "a factor from 0 to 2", least=0, most=2)
            for name, value in (("overlap", overlap), ("least_overlap", least_overlap))
        ]
        self.tables = SideChainTables(ensemble, atoms, chains)
        self.chains = self.tables.chains
        self._torsions, self._has_torsion = _measured_torsions(atoms, self.chains)
        path = shipped("cl") / "explore/side_chains.cl"
        self._kernels = {
            name: ensemble.kernel(path, name, self.tables.width, **self.tables.macros) for name in _KERNELS
        }

    def predict(
        self, rows: Sequence[int], orders: Sequence[Sequence[int]], rebuild: bool = False
    ) -> dict[int, Prediction]:
        """Predict side chains of rows, starting at their current positions.

        orders : side chains to predict in each row, by number, in order of prediction
        rebuild : whether side chains are absent until they are placed

        With a GB model the rows must have been evaluated; their Born radii are kept fixed. Rows are independent.
        """
        pairs = [(k, order) for k, order in zip(rows, orders, strict=True) if len(order)]
        done = dict.fromkeys(rows, 0)
        if not pairs:
            return dict.fromkeys(rows, Prediction())
        work = PredictionArrays(self, [k for k, _ in pairs], [list(order) for _, order in pairs])
        work.begin(rebuild)
        active = [k for k, _ in pairs]
        for sweep in range(1, self.sweeps + 1):
            moved = work.sweep(active)
            done |= dict.fromkeys(active, sweep)
            active = [k for k in active if moved[k]]
            if not active:
                break
        work.settle()
        clashing = work.clashing()
        return {k: Prediction(done[k], clashing.get(k, ())) for k in rows}

    def candidates(self, numbers: Sequence[int], positions: Floats) -> list[Floats]:
        """Return the candidate rotations of each side chain relative to its current chi1 to chi4, (k, 4) rad.

        The first rotation is zero. positions : (n, 3) A of the molecule
        """
        own = list(numbers)
        measured = torsions_at(positions, self._torsions[own].reshape(-1, 4)).reshape(-1, 2 + _MOST_CHI)
        measured[~self._has_torsion[own]] = np.nan
        found = []
        for chain, angles in zip((self.chains[k] for k in own), measured, strict=True):
            there = self.library.spread_chi(chain.name, *angles[:2].tolist())
            by = np.zeros((1 + len(there), _MOST_CHI))
            n = min(chain.n_chi, there.shape[1])
            by[1:, :n] = there[:, :n] - angles[2 : 2 + n]
            found.append(np.remainder(by + np.pi, 2 * np.pi) - np.pi)
        return found


class PredictionArrays:
    """Device arrays of a prediction: rows, slots, candidates and side chains."""

    def __init__(self, predictor: SideChainPredictor, rows: list[int], orders: list[list[int]]) -> None:
        self.predictor, self.rows, self.orders = predictor, rows, orders
        self._given: dict[str, dict[str, Any]] = {}  # constant arguments of each kernel
        ensemble, tables = predictor.ensemble, predictor.tables
        queue, n = ensemble.state.queue, len(rows)
        self.n_slots = max(map(len, orders))
        turns, firsts = [], np.zeros((n, self.n_slots + 1), np.int32)
        slots = np.full((n, self.n_slots), -1, np.int32)
        movers = np.zeros((n, self.n_slots + 1), np.int32)
        moves = np.zeros((n, tables.n_columns), np.uint8)
        for place, (order, positions) in enumerate(zip(orders, ensemble.state.read_positions(rows), strict=True)):
            own = predictor.candidates(order, positions)
            turns.append(np.concatenate(own))
            slots[place, : len(order)] = order
            sizes = np.zeros((2, self.n_slots), np.int32)
            sizes[0, : len(order)] = [len(of) for of in own]
            sizes[1, : len(order)] = [-(-len(predictor.chains[k].moved) // tables.width) * tables.width for k in order]
            firsts[place, 1:], movers[place, 1:] = np.cumsum(sizes, axis=1)
            for k in order:
                moves[place, predictor.chains[k].moved] = 1
        self.n_candidates, self.n_movers = max(map(len, turns)), int(movers.max())
        self.most = np.diff(firsts, axis=1).max(axis=0)  # maximum number of candidates of each slot
        by = np.zeros((n, self.n_candidates, _MOST_CHI))
        for place, of in enumerate(turns):
            by[place, : len(of)] = of
        places = np.full(len(ensemble), -1, np.int32)
        places[rows] = np.arange(n)
        at_movers = np.zeros((n, _N_MOVER_COLUMNS, self.n_movers))
        at_movers[:, _BORN] = 1
        self.columns = queue.empty(n * _N_COLUMNS * tables.n_columns)
        self.slots: dict[str, Any] = dict(
            n_slots=self.n_slots, n_candidates=self.n_candidates, n_movers=self.n_movers,
            places=queue.upload(places, np.int32), slots=queue.upload(slots, np.int32),
            firsts=queue.upload(firsts, np.int32), mover_firsts=queue.upload(movers, np.int32), turns=queue.upload(by),
            columns=self.columns,
        )  # fmt: skip
        self.moves = queue.upload(moves, np.uint8)
        whole = n * self.n_candidates

        def reals(size: int) -> Buffer:
            return queue.zeros(size)

        def ints(values: NDArray[np.int32]) -> Buffer:
            buffer = queue.empty(values.size, np.int32)
            queue.write(buffer, values)
            return buffer

        self.clearances, self.fixed, self.least, self.free_energies = (reals(whole) for _ in range(4))
        self.fixed_polar = reals(whole * MOST_POLAR if any(c.polar_steps > 1 for c in predictor.chains) else 1)
        self.alive, self.best, self.grouped = (ints(np.zeros(whole, np.int32)) for _ in range(3))
        self.counts, self.angles = (ints(np.zeros(n * self.n_slots, np.int32)) for _ in range(2))
        self.chosen = ints(np.full(n * self.n_slots, -1, np.int32))
        self.changed = ints(np.zeros(n, np.int32))
        self.movers = queue.empty(at_movers.size)
        queue.write(self.movers, at_movers.astype(queue.dtype))

    def _launch(self, name: str, rows: list[int], items: int, moves: bool = False, **arguments: object) -> None:
        """Launch a kernel with `items` work-items per row."""
        kernel = self.predictor._kernels[name]
        if name not in self._given:
            known = {**self.predictor.tables.buffers, **self.slots}
            self._given[name] = {key: known[key] for key in kernel.parameters if key in known}
        kernel(rows, per=items, moves=moves, **self._given[name], **arguments)

    def begin(self, rebuild: bool) -> None:
        """Screen all candidates, compute the constant energies, and set the initial rotamers."""
        tables, rows = self.predictor.tables, self.rows
        self._launch("spread", rows, tables.n_columns, movable=self.moves)
        kept: dict[str, Any] = dict(alive=self.alive, counts=self.counts)
        factor, least = self.predictor.overlaps
        self._launch(
            "screen", rows, self.n_candidates, least_factor=least, halves=tables.halves, clearances=self.clearances
        )
        self._launch(
            "survive", rows, self.n_slots, factor=factor, least_factor=least, clearances=self.clearances, **kept
        )
        self._launch("settled", rows, self.n_candidates, fixed=self.fixed, fixed_polar=self.fixed_polar, **kept)
        if not rebuild:
            for slot in range(self.n_slots):
                self._choose(slot, rows, begins=1)

    def _choose(self, slot: int, rows: list[int], begins: int) -> None:
        self._launch(
            "choose", rows, 1, slot=slot, kt=self.predictor.kt, width=float(ALIKE), begins=begins, alive=self.alive,
            counts=self.counts, least=self.least, free_energies=self.free_energies, best=self.best,
            grouped=self.grouped, chosen=self.chosen, angles=self.angles, movers=self.movers, changed=self.changed,
        )  # fmt: skip

    def meet(self, slot: int, rows: list[int]) -> None:
        """Compute the energies of a slot's candidates with the current rotamers of the other side chains."""
        self._launch(
            "met", rows, int(self.most[slot]), slot=slot, kt=self.predictor.kt, alive=self.alive, counts=self.counts,
            fixed=self.fixed, fixed_polar=self.fixed_polar, chosen=self.chosen, movers=self.movers, least=self.least,
            free_energies=self.free_energies, best=self.best,
        )  # fmt: skip

    def sweep(self, rows: list[int]) -> dict[int, bool]:
        """Predict each slot once; return for each row whether any side chain moved."""
        queue = self.predictor.ensemble.state.queue
        queue.clear(self.changed)
        for slot in range(self.n_slots):
            self.meet(slot, rows)
            self._choose(slot, rows, begins=0)
        changed = queue.download(self.changed, len(self.rows), np.int32)
        return {k: bool(changed[place]) for place, k in enumerate(self.rows)}

    def clashing(self) -> dict[int, tuple[int, ...]]:
        """Return for each row the numbers of the side chains that still clash with fixed atoms."""
        queue, n, least = self.predictor.ensemble.state.queue, len(self.rows), self.predictor.overlaps[1]
        clearances = queue.download(self.clearances, n * self.n_candidates).reshape(n, -1)
        chosen = queue.download(self.chosen, n * self.n_slots, np.int32).reshape(n, -1)
        return {
            row: tuple(number for number, taken in zip(order, own, strict=False) if clearances[place, taken] < least)
            for place, (row, order, own) in enumerate(zip(self.rows, self.orders, chosen, strict=True))
        }

    def settle(self) -> None:
        """Apply the chosen rotations to the rows' positions."""
        self._launch("settle", self.rows, self.n_slots, moves=True, chosen=self.chosen, angles=self.angles)


def _measured_torsions(atoms: Atoms, chains: Sequence[RotamerChain]) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the atoms of phi, psi and chi1 to chi4 of each side chain, (m, 6, 4), and which of them exist, (m, 6)."""
    torsions, there = np.zeros((len(chains), 2 + _MOST_CHI, 4), np.int32), np.zeros((len(chains), 2 + _MOST_CHI), bool)
    for k, (chain, (phi, psi)) in enumerate(zip(chains, _backbones(atoms, chains), strict=True)):
        for place, torsion in enumerate([phi, psi, *chain.torsions[: chain.n_chi].tolist()]):
            if torsion:
                torsions[k, place], there[k, place] = torsion, True
    return torsions, there


def _backbones(atoms: Atoms, chains: Sequence[RotamerChain]) -> list[tuple[list[int], list[int]]]:
    """Return the atoms of phi and psi of each residue, empty at chain ends."""
    assert atoms.labels is not None
    names, residues = atoms.labels.names.tolist(), atoms.labels.residue_index.tolist()
    bonded: dict[int, list[int]] = {}
    for i, j in atoms.bond_pairs.tolist():
        if residues[i] != residues[j] and {names[i], names[j]} == {"N", "C"}:
            bonded.setdefault(i, []).append(j)
            bonded.setdefault(j, []).append(i)
    found = []
    for chain in chains:
        nitrogen, alpha = (int(i) for i in chain.torsions[0, :2])
        carbon = next(
            (i for i in np.flatnonzero(atoms.labels.residue_index == chain.residue).tolist() if names[i] == "C"), None
        )
        before, after = bonded.get(nitrogen, []), bonded.get(-1 if carbon is None else carbon, [])
        phi = [before[0], nitrogen, alpha, carbon] if before and carbon is not None else []
        psi = [nitrogen, alpha, carbon, after[0]] if after and carbon is not None else []
        found.append((phi, psi))
    return found


class SideChains(Move):
    """Move that predicts the side chains near the ligand.

    select, omit : selections of residues that are always or never predicted
    minimizer : options of a minimization of the rotated atoms after the prediction; None for no minimization
    other parameters : as in SideChainPredictor
    """

    name: ClassVar[str] = "side_chains"

    def __init__(
        self, *, select: str | None = None, omit: str | None = None, minimizer: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        self.select, self.omit, self.options = select, omit, options
        self.minimizer = minimizer
        check_options(minimizer or {})

    def prepare(self, walk: Walk) -> None:
        atoms = walk.atoms
        assert atoms.labels is not None
        residues = atoms.labels.residue_index
        ligand = set(residues[walk.ligand].tolist())
        omitted = set() if self.omit is None else set(residues[atoms.selected(self.omit)].tolist())
        chains = [of for of in side_chains_of(atoms) if of.residue not in ligand | omitted]
        always = set() if self.select is None else set(residues[atoms.selected(self.select)].tolist())
        self._always = np.array([of.residue in always for of in chains], bool)
        self._predictor = SideChainPredictor(walk.ensemble, atoms, chains, **self.options)
        self._residues = np.array([of.residue for of in chains], np.int64)

    def is_due(self, walk: Walk, row: int) -> bool:
        return walk.is_multiple(row, walk.settings[row].side_chain_frequency)

    def apply(self, walk: Walk, rows: Sequence[int]) -> None:
        if self._predictor.tables.has_gb:
            walk.ensemble.evaluate(list(rows))
        draws = walk.random(rows, Stage.SIDE_CHAINS, 0, self._residues)
        orders = []
        for place, (k, positions) in enumerate(zip(rows, walk.ensemble.positions[list(rows)], strict=True)):
            near = self._near(walk, k, positions)
            orders.append(near[np.argsort(draws[place, near, 0], kind="stable")].tolist())
            if not len(near):
                walk.made[k].discard(self.name)
        labels = walk.atoms.labels
        assert labels is not None
        for k, predicted in self._predictor.predict(list(rows), orders).items():
            for chain in predicted.clashing:
                residue = labels.residue(int(labels.residue_starts[self._residues[chain]]))
                walk.note(k, f"the side chain of {residue} clashes in all rotamers")
        if self.minimizer is not None:
            self._minimize(walk, {k: order for k, order in zip(rows, orders, strict=True) if order})

    def _minimize(self, walk: Walk, orders: dict[int, list[int]]) -> None:
        """Minimize the atoms of the predicted side chains. orders : their numbers, by row"""
        assert self.minimizer is not None
        rows, everything, chains = list(orders), np.arange(len(walk.atoms)), self._predictor.chains
        free = [np.concatenate([chains[number].moved for number in order]) for order in orders.values()]
        walk.ensemble.frozen[rows] = [np.setdiff1d(everything, own) for own in free]
        batch = walk.ensemble.minimize(rows, **self.minimizer)
        for place, (row, result) in enumerate(zip(rows, batch.results, strict=True)):
            if result is None:
                walk.failures[row] = batch.errors[place]
            elif not result.converged:
                walk.note(row, f"the minimization of side chains did not converge ({result.stopped_by})")

    def _near(self, walk: Walk, row: int, positions: Floats) -> NDArray[np.int64]:
        """Return the numbers of the side chains near the ligand, and of those that are always predicted."""
        assert walk.atoms.labels is not None
        close = is_close(positions, positions[walk.ligand], walk.settings[row].side_chain_radius)
        is_near = np.zeros(len(walk.atoms.labels.residue_starts), bool)
        is_near[walk.atoms.labels.residue_index[close]] = True
        return np.flatnonzero(is_near[self._residues] | self._always)


def predict_side_chains(
    atoms: Atoms, residues: str | ArrayLike | None = None, *, rebuild: bool = False, seed: int = 0,
    library: RotamerLibrary | None = None, temperature: float = 298.0, sweeps: int = MOST_SWEEPS,
    overlap: float = OVERLAP, least_overlap: float = LEAST_OVERLAP, **options: Any,
) -> Floats:  # fmt: skip
    """Predict side chains by rotamers with all other atoms fixed; return positions (n, 3) A.

    residues : a selection, a mask (n,) or indices of atoms of the residues to predict; None for all
    rebuild : whether to ignore the current side chains, which are then absent until they are placed
    seed : random seed for the order of residues
    library : rotamers, by default RotamerLibrary.dunbrack()
    temperature : temperature for the weights of groups of rotamers, K
    sweeps : maximum number of sweeps; prediction stops earlier if no side chain changes
    overlap, least_overlap : factors of half the sum of two sigmas, below which atoms clash
    options : options of Ensemble, such as `model` and `device`

    GLY, ALA, PRO and disulphide-bonded cysteines have no rotatable side chain. Raises InputError for residues without
    any.
    """
    require_atoms(atoms)
    flag("rebuild", rebuild)
    whole_number("seed", seed, most=(1 << 32) - 1)
    chains = side_chains_of(atoms)
    assert atoms.labels is not None
    if residues is not None:
        mask = atoms.selected(residues) if isinstance(residues, str) else _mask(atoms, residues)
        chosen = set(atoms.labels.residue_index[mask].tolist())
        chains = [of for of in chains if of.residue in chosen]
    if not chains:
        raise InputError("none of the residues has a rotatable side chain; choose others")
    ensemble = Ensemble(atoms, gradient=False, **options)
    predictor = SideChainPredictor(
        ensemble, atoms, chains, library=library, temperature=temperature, sweeps=sweeps, overlap=overlap,
        least_overlap=least_overlap,
    )  # fmt: skip
    if predictor.tables.has_gb:
        ensemble.evaluate()
    draws = philox((seed, 0), (1, Stage.SIDE_CHAINS, 0, np.array([of.residue for of in chains])))[:, 0]
    predictor.predict([0], [np.argsort(draws, kind="stable").tolist()], rebuild)
    found: Floats = ensemble.positions[0]
    return found


def _mask(atoms: Atoms, chosen: ArrayLike) -> Ints:
    """Convert a mask or indices to indices."""
    try:
        found: Ints = np.arange(len(atoms), dtype=np.int32)[np.asarray(chosen)]
    except (IndexError, TypeError, ValueError):
        raise InputError(f"residues is neither a selection, nor a mask of {len(atoms)} atoms, nor atoms") from None
    return found
