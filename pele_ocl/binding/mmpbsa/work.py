"""Compute the energies and residue contributions of a run's systems for each frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from ...common.errors import InputError
from ...common.variant import Progress
from ...energy import Energy, EnergyBatch
from ...opencl.device import Device
from ...results import Terms
from ...trajectories import Trajectory
from ...trajectories.files import Positions
from ...trajectories.fingerprints import settings_of_frames
from ...trajectories.streaming import Evaluate, FrameResults
from ..alanine import Mutant
from ..decomposing import Decomposer
from ..decomposition import GROUPS, SPLITS, Decomposition, grouping
from ..energies import PARTS, aligned
from ..naming import amber_terms
from ..plan import Binding, binding_settings
from ..poisson_boltzmann import plan_in
from ..systems import precise_batch
from .namelists import Decomp, MmpbsaInput
from .residues import backbone, starts_of
from .systems import Source

METHODS = {"gb": "GENERALIZED BORN", "pb": "POISSON BOLTZMANN"}  # titles in tables
_MOST_BYTES = 1 << 30  # maximum size of the residue pairs stored for all frames


@dataclass(frozen=True, eq=False)
class FrameShares:
    """Contributions of residues to the energy of a system, per frame.

    residues : (k,) residue indices in the system; of : (m, k, n_groups) kcal/mol for each of SPLITS
    """

    residues: NDArray[np.intp]
    of: Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class PairShares:
    """Contributions of pairs of residues: means, and values of each frame if requested.

    by_frame : split -> "complex" and "parts" -> (m, k, k, n_groups) for the printed residues, kcal/mol
    """

    means: Decomposition
    by_frame: Mapping[str, Mapping[str, Floats]]


@dataclass(frozen=True, eq=False)
class Results:
    """Energies of the systems for each frame.

    energies : terms (m,) with AMBER's names, by "complex", "receptor" and "ligand", or only "complex"
    is_single : whether the parts are extracted from the complex's frames; shares : contributions of residues by system,
        if requested
    pairs : contributions of residue pairs: one entry for single trajectories, else one per system with several residues
    frames : numbers of the frames by trajectory, from 1; method : key of METHODS
    """

    energies: Mapping[str, Mapping[str, Floats]]
    is_single: bool
    shares: Mapping[str, FrameShares] | None = None
    pairs: Mapping[str, PairShares] | None = None
    label: str = ""
    n_imaged: int = 0
    frames: Mapping[str, NDArray[np.int64]] | None = None
    method: str = "gb"

    @property
    def has_parts(self) -> bool:
        """True if there are energies of receptor and ligand."""
        return "receptor" in self.energies

    def delta(self) -> Mapping[str, Floats]:
        """Return the difference for each frame, (m,); only for single trajectories."""
        return {
            name: of - self.energies["receptor"][name] - self.energies["ligand"][name]
            for name, of in self.energies["complex"].items()
        }


@dataclass(frozen=True, eq=False)
class TrajectoryWork:
    """Picklable description of the energies of a trajectory, for a complex with its parts or for a single system.

    name : name of the system; source : its frames; is_ligand : mask (n,) if parts are extracted from these frames, else
        None
    mutant : mutant to compute instead of the system, with positions derived from it
    printed : residues (k,) to decompose, None for no decomposition; by_frame : whether pairs are stored per frame
    """

    name: str
    source: Source
    wanted: MmpbsaInput
    device: Device | int | str | None
    precision: str
    is_ligand: NDArray[np.bool_] | None = None
    mutant: Mutant | None = None
    printed: NDArray[np.intp] | None = None
    by_frame: bool = False

    def opened(self) -> OpenedWork:
        """Prepare the plans and open the frames."""
        return OpenedWork(self)


class OpenedWork:
    """A TrajectoryWork prepared for computation in this process.

    frames : Trajectory; settings : everything that affects the results, as texts
    """

    def __init__(self, work: TrajectoryWork) -> None:
        self.work = work
        decomp = None if work.printed is None else work.wanted.decomp
        self._kept = np.arange(len(work.source.atoms)) if work.mutant is None else work.mutant.kept
        anchors = None if work.is_ligand is None else np.flatnonzero(~work.is_ligand)
        self.frames: Trajectory = work.source.trajectory(work.wanted.frames, anchors)
        first = self._placed(self.frames.piece(self.frames.frames[:1]).usable())[0]
        self.frames.close()
        self.atoms = (work.source.atoms if work.mutant is None else work.mutant.atoms).moved(first)
        self._decomp = decomp
        self.plan: Binding | Energy = self._planned(decomp)
        self._decomposed = self._of_pairs()

    def _planned(self, decomp: Decomp | None) -> Binding | Energy:
        work = self.work
        if work.is_ligand is None:
            return self._energy(work.precision)
        side = work.is_ligand[self._kept]
        return Binding(
            self.atoms, side, ~side, model=work.wanted.model, device=work.device, precision=work.precision,
            idecomp=None if decomp is None else decomp.idecomp, pb=work.wanted.pb,
        )  # fmt: skip

    def _energy(self, precision: str) -> Energy:
        wanted = self.work.wanted
        return plan_in(
            wanted.pb, self.atoms, wanted.model, per_atom=self._decomp is not None, precision=precision,
            device=self.work.device,
        )  # fmt: skip

    @cached_property
    def _in_float64(self) -> Energy:
        return self._energy("float64")

    def _of_pairs(self) -> tuple[Binding, Decomposer] | None:
        """The complex and the Decomposer of residue pairs; None if they are not requested."""
        decomp, plan, starts = self._decomp, self.plan, starts_of(self.atoms)
        if decomp is None or decomp.idecomp < 3 or (isinstance(plan, Energy) and len(starts) < 2):
            return None
        if isinstance(plan, Energy):
            last = starts[-1] <= np.arange(len(self.atoms))  # arbitrary parts, as all pairs are needed
            plan = Binding(
                self.atoms, last, ~last, model=self.work.wanted.model, device=self.work.device,
                precision=self.work.precision, idecomp=decomp.idecomp,
            )  # fmt: skip
        assert self.atoms.labels is not None
        is_backbone = backbone(self.atoms.labels) if decomp.verbose in (1, 3) else None
        kept = self.work.printed if self.work.by_frame else None
        if kept is not None:
            n_splits = 1 if is_backbone is None else len(SPLITS)
            size = len(self.frames) * len(kept) ** 2 * len(GROUPS) * 8 * 2 * n_splits
            if size > _MOST_BYTES:
                raise InputError(
                    f"`frame_shares` of pairs would need {size / 2**30:.1f} GiB for {len(self.frames):,} frames of "
                    f"{len(kept):,} residues; give fewer in print_res"
                )
        return plan, Decomposer(plan.plans["complex"], plan.parts, decomp.idecomp, is_backbone, kept)

    @property
    def settings(self) -> dict[str, str]:
        """Everything that affects the results, as texts by name."""
        plan = self.plan
        own = binding_settings(plan) if isinstance(plan, Binding) else plan._settings_of_results()
        more: dict[str, object] = {"system": self.work.name, "mutant": self.work.mutant is not None}
        if self.work.wanted.pb is not None:
            more["pb"] = asdict(self.work.wanted.pb)
        return settings_of_frames(plan, self.frames, {**more, **own, "solvent": asdict(plan.model)})

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the terms."""
        return self.plan.names

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems."""
        return PARTS if isinstance(self.plan, Binding) else (self.work.name,)

    def residues_of(self, system: str) -> NDArray[np.intp]:
        """Indices of the residues to print for a system, (k,)."""
        printed = self.work.printed
        assert printed is not None
        if self.work.is_ligand is None or system == "complex":
            return printed
        side = self.work.is_ligand[starts_of(self.work.source.atoms)]
        own: NDArray[np.intp] = printed[side[printed] == (system == "ligand")]
        return own

    @property
    def evaluate(self) -> Evaluate[FrameResults]:
        """Function that evaluates positions (m, n, 3) A of the system.

        The columns of its result are terms by system; `residues` are contributions by system and split,
        (m, k * n_groups).
        """
        return self._evaluate

    def _evaluate(self, positions: Positions, progress: Progress | None) -> FrameResults:
        placed = self._placed(positions)
        batches = self._batches(placed, progress)
        columns: dict[str, NDArray[np.generic]] = {}
        for name, batch in batches.items():
            values = aligned(batch.terms, self.names)
            columns |= {f"{name}_{term}": values[:, k].copy() for k, term in enumerate(self.names)}
        errors = {k: f"{name}: {why}" for name, batch in batches.items() for k, why in batch.errors.items()}
        shares: dict[str, Floats] = {}
        if self._decomp is not None:
            for name, batch in batches.items():
                for split, of in self._shares(name, batch).items():
                    shares[f"{name}_{split}"] = of.reshape(len(of), -1)
        if self._decomposed is not None and not errors:
            plan, decomposer = self._decomposed
            decomposer.add(batches if plan is self.plan else plan.systems.batches(placed), placed)
        return FrameResults(columns, errors, shares)

    def _batches(self, positions: Floats, progress: Progress | None) -> dict[str, EnergyBatch]:
        """Evaluate each system; energies too large for differences in float32 are recomputed in float64."""
        if isinstance(self.plan, Binding):
            return self.plan.systems.batches(positions, progress, errors="record")
        return {self.work.name: precise_batch(self.plan, positions, progress, lambda: self._in_float64)}

    def _placed(self, positions: Positions) -> Floats:
        mutant = self.work.mutant
        return np.asarray(positions, np.float64) if mutant is None else mutant.positions(positions)

    def _shares(self, system: str, batch: EnergyBatch) -> dict[str, Floats]:
        """Return the contributions of a system's printed residues, (m, k, n_groups), for each of SPLITS."""
        assert batch.per_atom is not None
        assert self._decomp is not None
        assert self.atoms.labels is not None
        plan = self.plan
        groups = grouping(self.names, self._decomp.idecomp)
        values = aligned(batch.per_atom, self.names)
        own = slice(None) if isinstance(plan, Energy) or system == "complex" else getattr(plan.parts, system)
        of_atoms = np.zeros((len(values), len(self.atoms), groups.shape[1]))
        of_atoms[:, own] = values @ groups
        starts, residues = starts_of(self.atoms), self.residues_of(system)
        total = np.add.reduceat(of_atoms, starts, axis=1)[:, residues]
        is_backbone = backbone(self.atoms.labels)[:, np.newaxis]
        of_backbone = np.add.reduceat(of_atoms * is_backbone, starts, axis=1)[:, residues]
        return {"total": total, "sidechain": total - of_backbone, "backbone": of_backbone}

    def pairs(self) -> PairShares | None:
        """Return the contributions of residue pairs in all frames evaluated in this process."""
        if self._decomposed is None:
            return None
        _, decomposer = self._decomposed
        return PairShares(decomposer.result(), decomposer.by_frame() if self.work.by_frame else {})


@dataclass(frozen=True, eq=False)
class ComputedFrames:
    """Results of all frames of a work.

    columns, residues : as in FrameResults, for all frames; frames : numbers of the frames, from 1
    """

    work: OpenedWork
    columns: Mapping[str, NDArray[np.generic]]
    residues: Mapping[str, Floats]
    frames: NDArray[np.int64]
    n_imaged: int

    @classmethod
    def of(cls, work: OpenedWork, parts: Sequence[FrameResults]) -> ComputedFrames:
        """Concatenate the results of consecutive pieces. Raises InputError if a frame failed."""
        numbers, first = np.array(work.frames.frames, np.int64) + 1, 0
        for part in parts:
            for place, reason in sorted(part.errors.items()):
                raise InputError(f"frame {numbers[first + place]}, {reason}")
            first += len(next(iter(part.columns.values())))
        return cls(
            work, {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns},
            {name: np.concatenate([part.residues[name] for part in parts]) for name in parts[0].residues},
            numbers, sum(part.n_imaged for part in parts),
        )  # fmt: skip

    def values(self, system: str) -> Floats:
        """Return the terms of a system, (m, n_terms)."""
        return np.column_stack([self.columns[f"{system}_{term}"] for term in self.work.names]).astype(np.float64)

    def shares(self, system: str) -> FrameShares:
        """Return the contributions of a system's printed residues."""
        residues = self.work.residues_of(system)
        of = {
            split: self.residues[f"{system}_{split}"].reshape(len(self.frames), len(residues), len(GROUPS))
            for split in SPLITS
        }
        return FrameShares(residues, of)


def results_of(computed: Sequence[ComputedFrames], wanted: MmpbsaInput, label: str = "") -> Results:
    """Combine the frames of a run, computed by one work for all systems or by one work per system."""
    is_single = len(computed[0].work.systems) > 1
    everything, offset = computed[0].work.names, wanted.surface_offset
    energies, shares = dict[str, Mapping[str, Floats]](), dict[str, FrameShares]()
    pairs, frames = dict[str, PairShares](), dict[str, NDArray[np.int64]]()
    for of in computed:
        for system in of.work.systems:
            energies[system] = _amber(of.work.names, of.values(system), offset, everything)
            frames[system] = of.frames
            if of.residues:
                shares[system] = of.shares(system)
        found = of.work.pairs()
        if found is not None:
            pairs["single" if is_single else of.work.systems[0]] = found
    n_imaged = sum(of.n_imaged for of in computed)
    method = "gb" if wanted.pb is None else "pb"
    return Results(energies, is_single, shares or None, pairs or None, label, n_imaged, frames, method)


def _amber(
    names: Sequence[str], values: Floats, surface_offset: float, everything: Sequence[str] | None = None
) -> Mapping[str, Floats]:  # fmt: skip
    """Return the terms (m,) by AMBER's names; terms of `everything` that a system lacks are 0."""
    order = tuple(everything or names)
    if strange := set(names) - set(order):
        raise InputError(f"a part has the term {sorted(strange)[0]}, which the complex does not have")
    aligned = np.zeros((len(values), len(order)))
    aligned[:, [order.index(name) for name in names]] = values
    if surface_offset and "nonpolar" in order:
        aligned[:, order.index("nonpolar")] += surface_offset
    return amber_terms(Terms(order, aligned))
