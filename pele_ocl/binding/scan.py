"""Alanine scan: how the binding energy changes where residues become alanine, all sites in one run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Floats, Residue
from ..common.arguments import number
from ..common.errors import InputError
from ..common.variant import Progress
from ..forcefield import ForceField
from ..plan.conformations import as_conformations
from ..trajectories import Trajectory
from ..trajectories.files import Positions
from .alanine import Mutant, alanines_of, reasons_to_stay, to_alanine, unbonded
from .amber import interaction
from .plan import Binding, binding_like, binding_trajectory
from .statistics import Spread, spread_of

INTERFACE = 5.0  # A between atoms of the two parts
_SHOWN = 20  # residues in a sentence


@dataclass(frozen=True, eq=False)
class AlanineScan:
    """Changes of the binding energy, mutant less wild type, frame by frame: MMPBSA.py prints the reverse sign.

    residues : the sites
    changes : (n_sites, m) kcal/mol, NaN where a frame failed; gas_phase : (n_sites, m) their part in the gas phase
    frames : (m,) numbers of the frames
    left_out : residues that were chosen and cannot become alanine, each with the reason; none by default
    """

    residues: tuple[Residue, ...]
    changes: Floats
    gas_phase: Floats
    frames: NDArray[np.int64]
    left_out: tuple[tuple[Residue, str], ...] = ()

    @property
    def notes(self) -> list[str]:
        """Sentences about the residues that were left out."""
        told = [f"{residue} {reason}" for residue, reason in self.left_out]
        more = f", and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
        return [f"not turned into alanine: {', '.join(told[:_SHOWN])}{more}"] if told else []

    def statistics(self) -> list[Spread]:
        """Return the Spread of the changes over the frames, of each site."""
        return [spread_of(of_site) for of_site in self.changes]


def interface_residues(binding: Binding, distance: float = INTERFACE) -> list[int]:
    """Find the residues, by number, with an atom within a distance (A) of the other part, in the structure itself."""
    atoms, parts = binding.atoms, binding.parts
    if atoms.labels is None:
        raise InputError("an alanine scan needs residues, which these atoms lack")
    number("distance", distance, "a positive distance in A", above=0)
    near = np.zeros(len(atoms), bool)
    for own, other in ((parts.receptor, parts.ligand), (parts.ligand, parts.receptor)):
        for i in own.tolist():
            r2 = ((atoms.positions[other] - atoms.positions[i]) ** 2).sum(axis=1)
            near[i] = r2.min() <= distance**2
    found: NDArray[np.intp] = np.flatnonzero(np.logical_or.reduceat(near, atoms.labels.residue_starts))
    return [int(k) for k in found]


def sites_of(binding: Binding, sites: str | Sequence[int] | None) -> tuple[list[int], dict[int, str]]:
    """List the residues to mutate, of a selection, of numbers, or of the interface; and why the others are not.

    Residues of the interface that cannot become alanine are not among the others, as nobody named them.
    """
    labels = binding.atoms.labels
    if labels is None:
        raise InputError("an alanine scan needs residues, which these atoms lack")
    if sites is None:
        wanted = interface_residues(binding)
    elif isinstance(sites, str):
        mask = binding.atoms.selected(sites)
        wanted = np.flatnonzero(np.logical_or.reduceat(mask, labels.residue_starts)).tolist()
    else:
        wanted = list(sites)
    reasons = reasons_to_stay(binding.atoms)
    strange = [k for k in wanted if not 0 <= k < len(reasons)]
    if strange:
        raise InputError(f"sites name residue {strange[0]}; the residues of the complex are 0 to {len(reasons) - 1}")
    chosen = [k for k in wanted if not reasons[k]]
    left_out = {} if sites is None else {k: reasons[k] for k in wanted if reasons[k]}
    if not chosen:
        told = [f"{labels.residues[k]} {reason}" for k, reason in left_out.items()]
        raise InputError(
            f"no residue that is chosen can become alanine{': ' if told else ''}{', '.join(told[:_SHOWN])} (those of "
            "proteins can, but ALA, GLY, PRO and those whose side chains are bonded to others, as half cystines are)"
        )
    return chosen, left_out


def alanine_scan(
    binding: Binding, trajectory: Trajectory | ArrayLike | None = None, sites: str | Sequence[int] | None = None,
    progress: Progress | None = None, *, forcefield: ForceField | None = None,
) -> AlanineScan:  # fmt: skip
    """Scan the frames of a trajectory of the atoms given to `binding`, or the structure alone.

    trajectory : or conformations (m, n, 3) A
    sites : a selection, or numbers of residues of the complex from 0; by default the interface
    forcefield : of the atoms, whose alanine is taken where the complex has none; None where a topology has parameters

    Raises InputError where no site can become alanine, and as Binding does.
    """
    chosen, left_out = sites_of(binding, sites)
    assert binding.atoms.labels is not None
    each = binding.atoms.labels.residues
    residues = tuple(each[k] for k in chosen)
    frames, pieces = _frames(binding, trajectory)
    everyone = Mutant(unbonded(binding.atoms), np.arange(len(binding.atoms)), 0, np.arange(0))
    alanines = None if forcefield is None else alanines_of(forcefield)
    found = list[tuple[Floats, Floats]]()
    # One after the other, as plans of all sites would need as much memory as they are many.
    for k in [None, *chosen]:
        mutant = everyone if k is None else to_alanine(binding.atoms, k, alanines)
        found.append(_energies(binding, mutant, pieces))
        if progress is not None:
            progress(len(found) / (1 + len(chosen)))
    (wild, wild_gas), *mutants = found
    changes = np.stack([total - wild for total, _ in mutants])
    gas_phase = np.stack([gas - wild_gas for _, gas in mutants])
    return AlanineScan(residues, changes, gas_phase, frames, tuple((each[k], why) for k, why in left_out.items()))


def _frames(
    binding: Binding, trajectory: Trajectory | ArrayLike | None
) -> tuple[NDArray[np.int64], Iterable[Positions]]:
    """Return the numbers of the frames (m,), and their positions in pieces."""
    if isinstance(trajectory, Trajectory):
        return np.array(trajectory.frames, np.int64), _Usable(binding_trajectory(binding, trajectory))
    given = binding.given.positions[np.newaxis] if trajectory is None else trajectory
    positions = as_conformations(given, binding.n_atoms)
    return np.arange(len(positions), dtype=np.int64), [positions]


@dataclass(frozen=True)
class _Usable:
    """Positions of frames in pieces, as often as one begins, with NaN in unusable frames."""

    frames: Trajectory

    def __iter__(self) -> Iterator[Positions]:
        return (piece.usable() for piece in self.frames.pieces())


def _energies(binding: Binding, mutant: Mutant, pieces: Iterable[Positions]) -> tuple[Floats, Floats]:
    """Compute the binding energy of a mutant in each frame (m,), and its part in the gas phase."""
    side = np.zeros(len(binding.atoms), bool)
    side[binding.parts.ligand] = True
    plan = binding_like(binding, mutant.atoms, side[mutant.kept], ~side[mutant.kept])
    each = [
        plan.evaluate_batch(mutant.positions(binding.parts.of_complex(piece)), errors="record").delta
        for piece in pieces
    ]
    return np.concatenate([of.total for of in each]), np.concatenate([interaction(of) for of in each])
