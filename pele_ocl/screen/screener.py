"""Refine and score complexes of one receptor with many ligands in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..atoms.chemistry import is_polymer
from ..atoms.small_molecules import SmallMolecules
from ..binding import Binding, PBSolvent
from ..binding.energies import aligned, needs_float64
from ..common.arguments import callback, described, instance, number, whole_number
from ..common.errors import InputError, PeleError
from ..common.variant import Progress
from ..dynamics import Simulation
from ..energy import Energy
from ..energy.terms import PositionalRestraint
from ..ensemble import Ensemble
from ..explore.poses import clashes_of, heavy
from ..explore.refiner import BACKBONE, STEEP, guarded
from ..gb_models.solvent_model import SolventModel, choose_radii_of
from ..minimize import MinimizeBatch, MinimizeResult, minimize_many

if TYPE_CHECKING:
    from ..opencl.device import Device

Mask = NDArray[np.bool_]

_HELD = "hold"  # name of the restraint

# Chosen on five public series, before other series were scored (docs/screen.md).
SCORING = SolventModel(gb="gbn2", solute_dielectric=2.0)
REFINING = SolventModel()  # solvent model of minimization, independent of the score
_BATCH_ATOMS = 1 << 19  # maximum number of atoms refined together on a GPU
_BATCH_CPU = 1 << 14  # the same on a CPU, where larger batches are not faster
_FREE: dict[str, Any] = {
    "tolerance": 0.05,
    "max_iterations": 500,
}  # options for minimizing the isolated ligand, the reference of its strain
_BATH, _STEP = 300.0, 2.0  # temperature (K) and time step (fs) of dynamics
_BEGIN, _BETWEEN = 500, 250  # steps before the first frame, and between frames


@dataclass(frozen=True, eq=False)
class Scored:
    """A refined and scored ligand in the receptor.

    atoms : the refined complex, with the ligand's atoms last; n_ligand : number of the ligand's atoms
    terms : terms of the difference complex - receptor - ligand by name, kcal/mol
    binding : sum of the terms; strain : energy of the ligand minus that of its nearest minimum, kcal/mol
    binding_error : standard error of `binding` if it is a mean over frames, else None
    clashes : (2,) numbers of clashes before and after; moved : rms displacement of the ligand's heavy atoms, A
    iterations : number of minimization iterations; converged : whether the minimization converged
    """

    atoms: Atoms
    n_ligand: int
    terms: Mapping[str, float]
    binding: float
    strain: float
    clashes: tuple[int, int]
    moved: float
    iterations: int
    converged: bool
    binding_error: float | None = None

    @property
    def ligand(self) -> Floats:
        """Positions of the ligand's atoms, (n_ligand, 3) A."""
        return self.atoms.positions[len(self.atoms) - self.n_ligand :]


@dataclass(eq=False)
class _Complex:
    """A complex during refinement. start : initial positions (n, 3) A; n_ligand : number of ligand atoms, at the end"""

    atoms: Atoms
    n_ligand: int
    start: Floats = field(init=False)
    iterations: int = 0
    converged: bool = False

    def __post_init__(self) -> None:
        self.start = self.atoms.positions

    @property
    def ligand(self) -> NDArray[np.int64]:
        return np.arange(len(self.atoms) - self.n_ligand, len(self.atoms))

    @property
    def receptor(self) -> NDArray[np.int64]:
        return np.arange(len(self.atoms) - self.n_ligand)


class Screener:
    """Refines and scores ligands in one receptor in batches; the receptor is prepared once.

    The ligand and residues within `moving_radius` of it move; all other atoms, including ions, are fixed. If the ligand
    clashes, a first minimization with strong restraints removes clashes. The second one restrains the ligand's heavy
    atoms and the backbone by `restraint` if they move more than `free_radius` from their initial positions. The score
    is the energy of the complex minus those of receptor and ligand at the same positions (MM/GBSA), for the minimized
    structure or as a mean over frames of dynamics. Minimization and dynamics always use OBC2 with interior permittivity
    1. The result of a complex does not depend on others.

    receptor : Atoms with a force field, without the ligand
    moving_radius : A; restraint : kcal/mol/A^2; free_radius : A
    tolerance : rms gradient at convergence, kcal/mol/A; max_iterations : maximum for each minimization
    model : SolventModel of the score, by default GBn2 with interior permittivity 2, which also scales Coulomb energies
    pb : PBSolvent, to score with the Poisson-Boltzmann equation
    frames : number of frames of dynamics at 300 K to average over, 0 for the minimized structure
    precision, device : as in `energy`

    Raises InputError for a receptor without residues, and the errors of `energy`.
    """

    def __init__(
        self, receptor: Atoms, *, moving_radius: float = 6.0, restraint: float = 1.0, free_radius: float = 1.0,
        tolerance: float = 0.2, max_iterations: int = 500, model: SolventModel | None = None,
        pb: PBSolvent | None = None, frames: int = 0, precision: str = "float32",
        device: Device | int | str | None = None,
    ) -> None:  # fmt: skip
        number("moving_radius", moving_radius, "a number in Angstrom, 0 or more", least=0)
        number("restraint", restraint, "a number in kcal/mol/A^2, 0 to 1e6", least=0, most=1e6)
        number("free_radius", free_radius, "a number in Angstrom, 0 or more", least=0)
        instance("receptor", receptor, Atoms, "Atoms")
        if pb is not None:
            instance("pb", pb, PBSolvent, "a PBSolvent")
        self.model = SCORING if model is None else SolventModel.or_default(model)
        self.receptor = receptor
        if self.receptor.labels is None:
            raise InputError("the receptor has no residues; read it from a structure file")
        self.pb, self.frames = pb, whole_number("frames", frames, least=0)
        self.moving_radius, self.restraint, self.free_radius = moving_radius, float(restraint), float(free_radius)
        self._limits: dict[str, Any] = {
            "tolerance": tolerance,
            "max_iterations": whole_number("max_iterations", max_iterations),
        }
        self._options: dict[str, Any] = {"precision": precision, "device": device}
        self._alone = Energy(self.receptor, model=self.model, gradient=False, **self._options)
        self.device, self.precision = self._alone.device, precision
        self.variant = self._alone.variant
        self._is_resident = self.device.kind != "CPU"

    def __repr__(self) -> str:
        return f"Screener({len(self.receptor):,} atoms, {self.precision}, on {self.device})"

    @property
    def together(self) -> int:
        """Recommended number of ligands per call."""
        atoms = _BATCH_CPU if self.device.kind == "CPU" else _BATCH_ATOMS
        return max(1, atoms // len(self.receptor))

    def screen(
        self, ligands: Sequence[Atoms], progress: Progress | None = None
    ) -> list[Scored | PeleError]:  # fmt: skip
        """Refine and score ligands with parameters, placed in the receptor's frame.

        If a ligand cannot be scored, its error is returned. progress : called with the fraction done
        """
        callback("progress", progress)
        if not isinstance(ligands, Sequence):
            raise InputError(f"ligands are {described(ligands)}; expected a list of Atoms")
        for each in ligands:
            instance("ligands", each, Atoms, "a list of Atoms")
        found: list[Scored | PeleError | None] = [None] * len(ligands)
        for first in range(0, len(ligands), self.together):
            part = range(first, min(first + self.together, len(ligands)))
            for k, one in zip(part, self._screened([ligands[k] for k in part]), strict=True):
                found[k] = one
            if progress is not None:
                progress(part.stop / len(ligands))
        return found  # type: ignore[return-value]

    def score(self, complexes: Sequence[tuple[Atoms, int]]) -> list[Scored | PeleError]:
        """Score complexes without refinement, given as pairs of Atoms and the number of ligand atoms at the end."""
        if not isinstance(complexes, list | tuple) or not all(_is_complex(each) for each in complexes):
            raise InputError("expected complexes as pairs of Atoms and the number of the ligand's atoms")
        found = list[Scored | PeleError]()
        for first in range(0, len(complexes), self.together):
            part = complexes[first : first + self.together]
            found += self._scored([_Complex(atoms, n) for atoms, n in part])
        return found

    def _screened(self, ligands: Sequence[Atoms]) -> list[Scored | PeleError]:
        found: list[Any] = [self._complex(ligand) for ligand in ligands]
        self._refine(found)
        good = [k for k, one in enumerate(found) if isinstance(one, _Complex)]
        if good:
            for k, one in zip(good, self._scored([found[k] for k in good]), strict=True):
                found[k] = one
        return found

    def _complex(self, ligand: Atoms) -> _Complex | PeleError:
        """Combine a ligand with the receptor, or return the error if this is not possible."""
        try:
            atoms = self.receptor + ligand
            if not _near(self.receptor.positions, ligand.positions, _FAR).any():
                apart = _least_distance(self.receptor.positions, ligand.positions)
                raise InputError(
                    f"it is {apart:.0f} A from the receptor; give poses in the receptor's frame, for example "
                    "from docking"
                )
            complex_ = _Complex(atoms, len(ligand))
            self._small.require_apart(atoms.positions, atoms.positions[heavy(atoms, complex_.ligand)])
            return complex_
        except PeleError as error:
            return error

    @cached_property
    def _small(self) -> SmallMolecules:
        return SmallMolecules(self.receptor)

    # Refinement

    def _refine(self, found: list[Any]) -> None:
        """Minimize complexes; failed ones are replaced by their error."""
        good = [k for k, one in enumerate(found) if isinstance(one, _Complex)]
        clashing = [k for k in good if self._clashes(found[k], found[k].start) > 0]
        self._minimize(found, clashing, STEEP, guarded)
        self._minimize(found, [k for k in good if isinstance(found[k], _Complex)], self.restraint, lambda atoms: atoms)

    def _minimize(
        self, found: list[Any], places: Sequence[int], constant: float, changed: Callable[[Atoms], Atoms]
    ) -> None:
        """Minimize some complexes, restrained to their initial positions with a force constant."""
        if not places:
            return
        molecules = choose_radii_of(REFINING, [changed(found[k].atoms) for k in places])
        batch = self._minimized(molecules, [found[k] for k in places], constant)
        for place, (k, result) in enumerate(zip(places, batch.results, strict=True)):
            if result is None:
                found[k] = InputError(batch.errors[place])
                continue
            one = found[k]
            one.atoms = one.atoms.moved(result.positions)
            one.iterations += result.iterations
            one.converged = result.converged

    def _minimized(
        self, molecules: Sequence[Atoms], complexes: Sequence[_Complex], constant: float
    ) -> MinimizeBatch:  # fmt: skip
        """Minimize the molecules of complexes.

        On CPUs, pairs of frozen atoms are skipped, which saves most of the work. On GPUs this is not worthwhile, as its
        preparation takes longer than computing all pairs.
        """
        if not self._is_resident:
            own = {id(of): self._frozen(one, constant) for of, one in zip(molecules, complexes, strict=True)}
            return minimize_many(
                molecules, each=lambda atoms: own[id(atoms)], errors="record", model=REFINING, **self._limits,
                **self._options,
            )  # fmt: skip
        term = PositionalRestraint(constant, flat=self.free_radius, name=_HELD)
        rows = Ensemble(molecules, terms=[term], model=REFINING, errors="record", **self._options)
        failed = rows.errors
        good = [k for k in range(len(rows)) if k not in failed]
        for k in good:
            rows.references(_HELD)[k] = complexes[k].start
            rows.force_constants(_HELD)[k] = np.where(self._held(complexes[k]), constant, 0.0)
            rows.frozen[k] = ~self._moving(complexes[k])
        batch = rows.minimize(good, **self._limits)
        results: list[MinimizeResult | None] = [None] * len(rows)
        for k, result in zip(good, batch.results, strict=True):
            results[k] = result
        return MinimizeBatch(results, failed | {good[place]: why for place, why in batch.errors.items()}, batch.seconds)

    def _frozen(self, one: _Complex, constant: float) -> dict[str, Any]:
        """Return the minimizer options specific to a complex."""
        term = PositionalRestraint(constant, reference=one.start, atoms=self._held(one), flat=self.free_radius)
        return {"terms": [term], "frozen": ~self._moving(one)}

    def _held(self, one: _Complex) -> Mask:
        """Return a mask (n,) of the restrained atoms: the backbone, and heavy atoms of the ligand."""
        held = np.concatenate([self._backbone, np.zeros(one.n_ligand, bool)])
        held[heavy(one.atoms, one.ligand)] = True
        return held

    @cached_property
    def _backbone(self) -> Mask:
        labels = self.receptor.labels
        assert labels is not None
        polymer = np.array([is_polymer(name) for name in labels.residue_names])
        found: Mask = np.isin(labels.names, BACKBONE) & polymer
        return found

    @cached_property
    def _stays(self) -> Mask:
        """Mask of single-atom residues, i.e. ions."""
        labels = self.receptor.labels
        assert labels is not None
        sizes = np.diff(labels.residue_starts, append=len(labels))
        return np.repeat(sizes == 1, sizes)

    def _moving(self, one: _Complex) -> Mask:
        """Return a mask (n,) of the moving atoms: the ligand, and residues with an atom near it."""
        labels = self.receptor.labels
        assert labels is not None
        near = _near(one.start[one.receptor], one.start[one.ligand], self.moving_radius)
        residues = labels.residue_index
        mask: Mask = np.isin(residues, np.unique(residues[near])) & ~self._stays
        return np.concatenate([mask, np.ones(one.n_ligand, bool)])

    def _clashes(self, one: _Complex, positions: Floats) -> int:
        """Count the clashes of ligand and receptor."""
        near = np.flatnonzero(_near(positions[one.receptor], positions[one.ligand], _CLASH_REACH))
        if not len(near):
            return 0
        chosen = np.concatenate([near, one.ligand])
        part = _Bare(one.atoms, chosen)
        ours = np.arange(len(near), len(chosen))
        return int(clashes_of(part, ours, np.arange(len(near)), [positions[chosen]])[0][0])  # type: ignore[arg-type]

    # Scores

    def _scored(self, complexes: Sequence[_Complex]) -> list[Scored | PeleError]:
        for one, atoms in zip(complexes, choose_radii_of(self.model, [of.atoms for of in complexes]), strict=True):
            one.atoms = atoms
        ligands = [one.atoms[one.ligand] for one in complexes]
        alone = minimize_many(ligands, errors="record", model=self.model, **_FREE, **self._options)
        deltas = self._deltas(complexes, [of if of is None else of.energy_before for of in alone.results])
        found = list[Scored | PeleError]()
        for k, (one, delta, free) in enumerate(zip(complexes, deltas, alone.results, strict=True)):
            if isinstance(delta, PeleError) or free is None:
                found.append(delta if isinstance(delta, PeleError) else InputError(f"the ligand: {alone.errors[k]}"))
                continue
            terms, error = delta
            ours = heavy(one.atoms, one.ligand)
            moved = np.sqrt(((one.atoms.positions[ours] - one.start[ours]) ** 2).sum(axis=1).mean())
            clashes = self._clashes(one, one.start), self._clashes(one, one.atoms.positions)
            found.append(Scored(
                one.atoms, one.n_ligand, terms, float(sum(terms.values())),
                float(free.energy_before.total) - free.total, clashes, float(moved), one.iterations, one.converged,
                error,
            ))  # fmt: skip
        return found

    def _deltas(self, complexes: Sequence[_Complex], ligands: Sequence[Any]) -> list[Any]:
        """Return for each complex the terms of the binding energy by name with their error, or why it failed."""
        if self.pb is not None or self.frames:
            return [self._delta_of(one) for one in complexes]
        rows = Ensemble([one.atoms for one in complexes], model=self.model, gradient=False, errors="record",
                        **self._options)  # fmt: skip
        rows.evaluate()
        terms, errors = rows.terms(), rows.errors
        own, failed = self._receptors(complexes, terms.names)
        found = list[Any]()
        for k, (one, ligand) in enumerate(zip(complexes, ligands, strict=True)):
            why = errors.get(k) or failed.get(k)
            if why or ligand is None:
                found.append(InputError(why or "the ligand has no energy"))
                continue
            if needs_float64(terms[k : k + 1], one.atoms, one.atoms.positions[np.newaxis])[0]:
                found.append(self._delta_of(one))
                continue
            values = terms.values[k] - own[k] - aligned(ligand, terms.names)
            found.append((dict(zip(terms.names, values.tolist(), strict=True)), None))
        return found

    def _receptors(self, complexes: Sequence[_Complex], names: tuple[str, ...]) -> tuple[Floats, dict[int, str]]:
        """Return the energies of the complexes' receptors by term, (m, n_terms), and error messages.

        If the ligand's file defines a GB radii set and the receptor's does not, the receptor uses that of the ligand.
        """
        found, failed = np.full((len(complexes), len(names)), np.nan), dict[int, str]()
        groups: dict[bytes, list[int]] = {}
        for k, one in enumerate(complexes):
            radii = one.atoms.gb_radii
            groups.setdefault(b"" if radii is None else radii[one.receptor].tobytes(), []).append(k)
        for own in groups.values():
            first = complexes[own[0]]
            plan = self._alone
            radii, ours = first.atoms.gb_radii, plan.atoms.gb_radii
            if radii is not None and ours is not None and not np.array_equal(radii[first.receptor], ours):
                plan = Energy(first.atoms[first.receptor], model=self.model, gradient=False, **self._options)
            positions = np.stack([complexes[k].atoms.positions[complexes[k].receptor] for k in own])
            batch = plan.evaluate_batch(positions, errors="record")
            found[own] = aligned(batch.terms, names)
            failed |= {own[place]: why for place, why in batch.errors.items()}
        return found, failed

    def binding_of(self, atoms: Atoms, n_ligand: int, **options: Any) -> Binding:
        """Build the Binding of a complex with the ligand's atoms last. options : options of Binding"""
        if not _is_complex((atoms, n_ligand)):
            raise InputError("expected a complex, Atoms and the number of the ligand's atoms among them")
        ligand = np.arange(len(atoms) - n_ligand, len(atoms))
        receptor = np.arange(len(atoms) - n_ligand)
        return Binding(atoms, ligand, receptor, model=self.model, pb=self.pb, **self._options, **options)

    def _delta_of(self, one: _Complex) -> Any:
        """As `_deltas` for a single complex: in float64 if needed, over frames, or with Poisson-Boltzmann."""
        try:
            plan = self.binding_of(one.atoms, one.n_ligand)
            where = self._frames_of(one) if self.frames else one.atoms.positions[np.newaxis]
            energies = plan.evaluate_batch(where)
            totals = energies.delta.total
            error = float(totals.std(ddof=1) / np.sqrt(len(totals))) if len(totals) > 1 else None
            means = energies.delta.values.mean(axis=0).tolist()
            return dict(zip(energies.names, means, strict=True)), error
        except PeleError as problem:
            return problem

    def _frames_of(self, one: _Complex) -> Floats:
        """Run dynamics of the moving atoms of a refined complex; return frames (m, n, 3) A."""
        run = Simulation(
            one.atoms, temperature=_BATH, timestep=_STEP, constraints="hbonds", seed=1, frozen=~self._moving(one),
            model=REFINING, **self._options,
        )  # fmt: skip
        run.run(_BEGIN)
        frames = list[Floats]()
        for _ in range(self.frames):
            run.run(_BETWEEN)
            frames.append(np.asarray(run.positions[0]))
        return np.stack(frames)


_FAR = 8.0  # A, distance from the receptor beyond which a ligand is not bound
_CLASH_REACH = 4.0  # A, distance beyond which no atoms clash


@dataclass(frozen=True, eq=False)
class _Bare:
    """Elements and bonds of some atoms, with the interface that `clashes_of` needs."""

    atoms: Atoms
    chosen: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def labels(self) -> Any:
        labels = self.atoms.labels
        assert labels is not None
        return _Elements(labels.elements[self.chosen])

    @property
    def bonds(self) -> Any:
        return np.empty((0, 2), np.int32)  # ligand and receptor are not bonded


@dataclass(frozen=True, eq=False)
class _Elements:
    elements: NDArray[np.str_]


def _is_complex(given: object) -> bool:
    """Return whether a value is a pair of a complex and the number of its ligand's atoms."""
    if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], Atoms):
        return False
    n = given[1]
    return isinstance(n, int | np.integer) and not isinstance(n, bool) and bool(0 < n < len(given[0]))


def _near(receptor: Floats, ligand: Floats, radius: float) -> Mask:
    """Return a mask (n,) of the receptor atoms within a radius of any ligand atom."""
    low, high = ligand.min(axis=0) - radius, ligand.max(axis=0) + radius
    inside = np.flatnonzero(((receptor >= low) & (receptor <= high)).all(axis=1))
    near = np.zeros(len(receptor), bool)
    apart = receptor[inside][:, None] - ligand
    near[inside] = (np.einsum("ijk,ijk->ij", apart, apart) <= radius**2).any(axis=1)
    return near


def _least_distance(receptor: Floats, ligand: Floats) -> float:
    apart = receptor[:, None] - ligand
    return float(np.sqrt(np.einsum("ijk,ijk->ij", apart, apart).min()))
