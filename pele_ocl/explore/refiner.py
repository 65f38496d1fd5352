"""Refine poses in batches: predict side chains near the ligand, then minimize the ligand and its surroundings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats
from ..atoms.chemistry import is_polymer
from ..atoms.small_molecules import SmallMolecules
from ..binding import Binding
from ..binding.parts import Chosen
from ..common.arguments import callback, choice, former_keywords, number, numbers, positions_of, whole_number
from ..common.errors import InputError, Suggests
from ..common.variant import Progress
from ..energy.terms import PositionalRestraint
from ..ensemble import Ensemble
from ..gb_models.solvent_model import SolventModel
from .poses import Measures, Refined, clashes_of, heavy
from .rotations import side_chains_of
from .side_chains import SideChainPredictor

if TYPE_CHECKING:
    from ..opencl.device import Device

_BATCH_ATOMS = 1 << 19  # maximum number of atoms refined together
BACKBONE = ("N", "CA", "C", "P", "C3'", "C4'")  # restrained atoms of polymers
_HELD = "hold"  # name of the restraint
_TURNED = 0.5  # A; a side chain counts as changed if one of its atoms moved farther
_BARE_SIGMA, _BARE_EPSILON = 1.06908, 0.0157  # A, kcal/mol: AMBER's atom type H
STEEP = 10.0  # kcal/mol/A^2, restraint of the first round, while clashes cause large forces


class Refiner(Suggests):
    """Refines poses of one ligand in one receptor; build it once for many calls.

    The ligand and residues within `moving_radius` of it move; all other atoms are fixed. If the pose clashes, side
    chains close to the ligand are predicted first. A first minimization with strong restraints removes clashes. A
    second one restrains the ligand's heavy atoms and the backbone by `restraint` if they move more than `free_radius`
    from their initial positions. The result of a pose does not depend on other poses.

    atoms : the complex, with a force field; ligand : a selection (docs/selection.md), a mask or indices
    moving_radius : A; side_chains : distance from a clashing ligand within which side chains are predicted, A, 0 for
        none
    restraint : kcal/mol/A^2; free_radius : A
    tolerance : rms gradient at convergence, kcal/mol/A; max_iterations : maximum for each minimization
    model : SolventModel; precision, device : as in `energy`

    Raises InputError for parts without atoms, and the errors of `energy`.

    >>> refiner = pele_ocl.Refiner(pele_ocl.read("data/structures/trialanine.pdb"), "resid 3", max_iterations=2)
    >>> len(refiner.ligand)
    11
    """

    @former_keywords(near="moving_radius", hold="restraint", free="free_radius")
    def __init__(
        self,
        atoms: Atoms,
        ligand: Chosen,
        *,
        moving_radius: float = 8.0,
        side_chains: float = 6.0,
        restraint: float = 1.0,
        free_radius: float = 1.0,
        tolerance: float = 0.2,
        max_iterations: int = 500,
        model: SolventModel | None = None,
        precision: str = "float32",
        device: Device | int | str | None = None,
    ) -> None:
        number("moving_radius", moving_radius, "a number in Angstrom, 0 or more", least=0)
        number("side_chains", side_chains, "a number in Angstrom, 0 or more", least=0)
        number("restraint", restraint, "a number in kcal/mol/A^2, 0 or more", least=0)
        number("free_radius", free_radius, "a number in Angstrom, 0 or more", least=0)
        self.binding = Binding(atoms, ligand, model=model, precision=precision, device=device)
        self.atoms, self.notes = self.binding.atoms, self.binding.notes
        self.ligand, self.receptor = self.binding.parts.ligand, self.binding.parts.receptor
        if self.atoms.labels is None:
            raise InputError("these atoms have no residues; read them from a structure file")
        self.moving_radius, self.side_chains = float(moving_radius), float(side_chains)
        self._limits: dict[str, Any] = {
            "tolerance": tolerance,
            "max_iterations": whole_number("max_iterations", max_iterations),
        }
        self._options: dict[str, Any] = {
            "model": self.binding.model, "precision": precision, "device": device, "errors": "record",
        }  # fmt: skip
        held = np.zeros(len(self.atoms), bool)
        held[heavy(self.atoms, self.ligand)] = True
        labels = self.atoms.labels
        backbone = np.isin(labels.names, BACKBONE) & np.array([is_polymer(name) for name in labels.residue_names])
        held[self.receptor] = backbone[self.receptor]
        self._chains = side_chains_of(self.atoms) if side_chains else []
        self._guarded = guarded(self.atoms)
        self._held, self._hold = held, float(restraint)
        self._restraint = PositionalRestraint(STEEP, atoms=held, flat=float(free_radius), name=_HELD)

    def __repr__(self) -> str:
        counts = f"{len(self.receptor):,} and {len(self.ligand):,} atoms"
        return f"Refiner({counts}, {self.binding.precision}, on {self.binding.device})"

    def refine(
        self,
        poses: ArrayLike | None = None,
        *,
        errors: Literal["raise", "record"] = "raise",
        progress: Progress | None = None,
    ) -> Refined:
        """Refine poses, by default the pose in the complex.

        poses : positions of the ligand in the receptor, (m, n_ligand, 3) A, or of complexes, (m, n, 3) A
        errors : "raise" for an InputError if a pose fails, "record" to return its error message; progress : called
            with the fraction done

        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> refiner = pele_ocl.Refiner(atoms, "resid 3", max_iterations=2)
        >>> refiner.refine([atoms.positions]).after.score.shape
        (1,)
        """
        choice("errors", errors, ("raise", "record"))
        callback("progress", progress)
        complexes = self.complexes(self.atoms.positions[np.newaxis] if poses is None else poses)
        size, found = max(1, _BATCH_ATOMS // len(self.atoms)), list[Refined]()
        for first in range(0, len(complexes), size):
            found.append(self._batch(complexes[first : first + size]))
            if progress is not None:
                progress(min(1.0, (first + size) / len(complexes)))
        refined = _joined(found)
        if errors == "raise" and refined.errors:
            k = min(refined.errors)
            raise InputError(f"pose {k}: {refined.errors[k]}")
        return refined

    def complexes(self, poses: ArrayLike) -> Floats:
        """Return the positions of complexes with these poses, (m, n, 3) A. Raises InputError for another shape."""
        given = numbers("poses", poses)
        n, n_ligand = len(self.atoms), len(self.ligand)
        if given.ndim != 3 or given.shape[1:] not in ((n, 3), (n_ligand, 3)) or not len(given):
            raise InputError(
                f"poses have shape {given.shape}; expected (m, {n_ligand}, 3) or (m, {n}, 3), m at least 1"
            )
        if given.shape[1] == n:
            return given
        whole = np.repeat(self.atoms.positions[np.newaxis], len(given), axis=0)
        whole[:, self.ligand] = given
        return whole

    def moving(self, positions: Floats) -> NDArray[np.bool_]:
        """Return a mask (n,) of the moving atoms: the ligand, and residues with an atom within `moving_radius`."""
        positions = positions_of(positions)
        apart = positions[:, None] - positions[self.ligand]
        close = (np.einsum("ijk,ijk->ij", apart, apart) <= min(self.moving_radius, 1e9) ** 2).any(axis=1)
        assert self.atoms.labels is not None
        residues = self.atoms.labels.residue_index
        mask: NDArray[np.bool_] = np.isin(residues, np.unique(residues[close]))
        mask[self.ligand] = True
        return mask

    def _batch(self, complexes: Floats) -> Refined:
        """Refine complexes (m, n, 3) A together."""
        occupied = self._occupied(complexes)
        before, failed = self._measured(complexes, occupied)
        state = _State.of(complexes, occupied | failed)
        rows = self._rows(self._guarded, state, complexes, STEEP)
        turned = self._turn_side_chains(rows, [k for k in state.good if before.clashes[k] > 0])
        state.minimize(rows, self._limits)
        state.minimize(self._rows(self.atoms, state, complexes, self._hold), self._limits)
        after, failed = self._measured(state.positions, state.failed)
        state.failed |= failed
        state.positions[list(state.failed)] = np.nan
        ours = heavy(self.atoms, self.ligand)
        moved = np.sqrt(((state.positions - complexes)[:, ours] ** 2).sum(axis=2).mean(axis=1))
        errors = dict(sorted(state.failed.items()))
        return Refined(state.positions, before, after, moved, state.iterations, state.converged, turned, errors)

    def _occupied(self, complexes: Floats) -> dict[int, str]:
        """Return error messages for complexes (m, n, 3) A in which another small molecule overlaps the ligand."""
        small, ours, found = SmallMolecules(self.atoms, self.ligand), heavy(self.atoms, self.ligand), dict[int, str]()
        for k, positions in enumerate(complexes):
            try:
                small.require_apart(positions, positions[ours])
            except InputError as error:
                found[k] = str(error)
        return found

    def _rows(self, atoms: Atoms, state: _State, starts: Floats, constant: float) -> Ensemble:
        """Build rows at the positions of a state, restrained to `starts` (m, n, 3) A with a force constant."""
        rows = Ensemble(atoms, copies=len(starts), terms=[self._restraint], **self._options)
        for k in state.good:
            rows.positions[k] = state.positions[k]
            rows.references(_HELD)[k] = starts[k]
            rows.force_constants(_HELD)[k] = np.where(self._held, constant, 0.0)
            rows.frozen[k] = ~self.moving(starts[k])
        return rows

    def _turn_side_chains(self, rows: Ensemble, clashing: list[int]) -> NDArray[np.int64]:
        """Predict side chains near the ligand in clashing rows, nearest first; return how many changed, (m,)."""
        turned = np.zeros(len(rows), np.int64)
        if not self._chains or not clashing:
            return turned
        starts = dict(zip(clashing, rows.positions[clashing], strict=True))
        orders = [self._side_chains_near(starts[k]) for k in clashing]
        predictor = SideChainPredictor(rows, self.atoms, self._chains)
        rows.evaluate(clashing)
        predictor.predict(clashing, orders)
        for k, order in zip(clashing, orders, strict=True):
            away = np.linalg.norm(rows.positions[k] - starts[k], axis=1)
            turned[k] = sum(bool(away[self._chains[of].moved].max() > _TURNED) for of in order)
        return turned

    def _side_chains_near(self, positions: Floats) -> list[int]:
        """Return the indices of side chains with an atom near the ligand, nearest first."""
        ligand = positions[self.ligand]
        apart = [
            float(np.linalg.norm(positions[of.moved][:, None] - ligand, axis=2).min()) for of in self._chains
        ]  # fmt: skip
        own = set(self.ligand.tolist())
        order = np.argsort(apart, kind="stable").tolist()
        return [k for k in order if apart[k] <= self.side_chains and not own & set(self._chains[k].moved.tolist())]

    def _measured(self, complexes: Floats, failed: Mapping[int, str]) -> tuple[Measures, dict[int, str]]:
        """Measure complexes (m, n, 3) A; return the measures, and error messages of failed complexes."""
        good = np.array([k for k in range(len(complexes)) if k not in failed], np.int64)
        values = {of.name: np.full(len(complexes), np.nan) for of in fields(Measures)}
        if not len(good):
            return Measures(**values), {}
        found = self.binding.evaluate_batch(complexes[good], errors="record")
        values["total"][good], values["binding"][good] = found.complex.total, found.delta.total
        counted = clashes_of(self.atoms, self.ligand, self.receptor, complexes[good])
        values["clashes"][good], values["closest"][good] = counted
        values["strain"][good] = self._strain(complexes[good][:, self.ligand])
        return Measures(**values), {int(good[place]): why for place, why in found.errors.items()}

    def _strain(self, ligands: Floats) -> Floats:
        """Compute the strain of ligands (m, n, 3) A: their energy minus that at the nearest minimum, (m,) kcal/mol."""
        rows = Ensemble(self.atoms[self.ligand], copies=len(ligands), **self._options)
        good = [k for k in range(len(ligands)) if np.isfinite(ligands[k]).all()]
        for k in good:
            rows.positions[k] = ligands[k]
        batch = rows.minimize(good, tolerance=0.05, max_iterations=500)
        strain = np.full(len(ligands), np.nan)
        for k, result in zip(good, batch.results, strict=True):
            if result is not None:
                strain[k] = float(result.energy_before.total) - result.total
        return strain


@dataclass(eq=False)
class _State:
    """Poses during refinement: positions (m, n, 3) A, error messages, iterations and convergence (m,)."""

    positions: Floats
    failed: dict[int, str]
    iterations: NDArray[np.int64]
    converged: NDArray[np.bool_]

    @classmethod
    def of(cls, complexes: Floats, failed: Mapping[int, str]) -> _State:
        m = len(complexes)
        return cls(complexes.copy(), dict(failed), np.zeros(m, np.int64), np.zeros(m, bool))

    @property
    def good(self) -> list[int]:
        """Indices of poses that have not failed."""
        return [k for k in range(len(self.positions)) if k not in self.failed]

    def minimize(self, rows: Ensemble, limits: Mapping[str, Any]) -> None:
        """Minimize rows and store their positions."""
        good = self.good
        batch = rows.minimize(good, **limits)
        for place, (k, result) in enumerate(zip(good, batch.results, strict=True)):
            if result is None:
                self.failed[k] = batch.errors[place]
            else:
                self.positions[k] = result.positions
                self.iterations[k] += result.iterations
                self.converged[k] = result.converged


def guarded(atoms: Atoms) -> Atoms:
    """Give atoms without Lennard-Jones parameters those of AMBER's amide hydrogen.

    Hydroxyl hydrogens often have none, so that in a clash they would collapse onto an atom of opposite charge.
    """
    assert atoms.lj_sigma is not None
    assert atoms.lj_epsilon is not None
    bare = (atoms.lj_sigma == 0) | (atoms.lj_epsilon == 0)
    if not bare.any():
        return atoms
    sigma, epsilon = np.where(bare, _BARE_SIGMA, atoms.lj_sigma), np.where(bare, _BARE_EPSILON, atoms.lj_epsilon)
    return replace(atoms, lj_sigma=sigma, lj_epsilon=epsilon)


def _joined(parts: list[Refined]) -> Refined:
    """Concatenate the poses of several batches."""
    starts = np.cumsum([0, *(len(part) for part in parts)]).tolist()
    errors = {start + k: why for start, part in zip(starts, parts, strict=False) for k, why in part.errors.items()}
    positions, moved = (np.concatenate([getattr(part, name) for part in parts]) for name in ("positions", "moved"))
    iterations, side_chains = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("iterations", "side_chains")
    )
    converged = np.concatenate([part.converged for part in parts])
    before, after = (Measures.joined([getattr(part, name) for part in parts]) for name in ("before", "after"))
    return Refined(positions, before, after, moved, iterations, converged, side_chains, errors)
