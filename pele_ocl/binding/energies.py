"""Energies of a complex and its parts, for one or many frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..common.errors import InputError
from ..report import Column, Framed, Report
from ..results import Terms
from .decomposition import Decomposition
from .statistics import Spread, spread_of

PARTS = ("complex", "receptor", "ligand")
DELTA = "delta"
SYSTEMS = (*PARTS, DELTA)
LARGEST = 1e6  # kcal/mol, up to which float32 resolves 0.1
LARGEST_LJ = 2e4  # kcal/mol, lower limit for Lennard-Jones energies, as steep pairs have larger errors in float32
CLOSE = 0.1  # A, distance below which an atom without Lennard-Jones parameters overlaps with another one
_STEEP = ("lennard_jones", "lennard_jones_14")


@dataclass(frozen=True, eq=False, repr=False)
class BindingEnergies(Framed):
    """Energies of a complex, of its parts, and the difference: complex minus receptor minus ligand.

    complex, receptor, ligand, delta : Terms (..., n_terms), kcal/mol, with shape () for one frame and (m,) for several;
        0 for terms that a part lacks, NaN for failed frames
    frames : (m,) numbers of the frames, None without a trajectory
    errors : error messages of failed frames, by index from 0
    seconds : times by step, if measured
    decomposition : Decomposition over all frames; None if not requested
    n_imaged : number of frames in this run that were imaged
    rmsd : for poses, (m,) rmsd of the ligand's heavy atoms from those of the complex, A, with optimal assignment of
        equivalent atoms for ligands of up to 1,000 atoms; None for frames
    titles : for poses of an SDF or mol2 file, (m,) titles of the molecules
    notes : messages of the Trajectory about the frames

    >>> energies = pele_ocl.Binding(pele_ocl.read("data/structures/trialanine.pdb"), "resid 3").evaluate()
    >>> round(float(energies.complex.total - energies.receptor.total - energies.ligand.total - energies.delta.total), 6)
    0.0
    """

    complex: Terms
    receptor: Terms
    ligand: Terms
    delta: Terms
    frames: NDArray[np.int64] | None = None
    errors: Mapping[int, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    decomposition: Decomposition | None = None
    n_imaged: int = 0
    rmsd: Floats | None = None
    titles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, systems: Mapping[str, Terms], frames: NDArray[np.int64] | None = None,
        errors: Mapping[int, str] | None = None, seconds: Mapping[str, float] | None = None,
    ) -> BindingEnergies:  # fmt: skip
        """Build the energies from Terms by name of SYSTEMS."""
        whole, receptor, ligand, delta = (systems[name] for name in SYSTEMS)
        return cls(whole, receptor, ligand, delta, frames, errors or {}, seconds or {})

    def __len__(self) -> int:
        return len(self.delta)

    def __getitem__(self, i: int) -> BindingEnergies:
        """Return the energies of one frame, by index."""
        systems = {name: getattr(self, name)[i] for name in SYSTEMS}
        return BindingEnergies.of(systems, errors={0: self.errors[i]} if i in self.errors else None)

    def __repr__(self) -> str:
        total = self.total
        if total.ndim == 0:
            return f"BindingEnergies(total {float(total):.3f} kcal/mol)"
        good = total[~np.isnan(total)]
        mean = f"{good.mean():.3f}" if len(good) else "nan"
        return f"BindingEnergies({len(self):,} frames, {len(self.errors):,} failed, mean total {mean} kcal/mol)"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the terms, in order."""
        return self.delta.names

    @property
    def total(self) -> Floats:
        """Binding energy, (...,) kcal/mol."""
        return self.delta.total

    def table(self) -> Report:
        """Return a table with a row for each frame: terms of the difference, their total, and errors."""
        n = np.size(self.total)
        columns: dict[str, Any] = {"frame": np.arange(n) if self.frames is None else self.frames}
        columns |= {name: Column(np.atleast_1d(of), "kcal/mol") for name, of in self.delta.columns().items()}
        if self.rmsd is not None:
            columns["rmsd"] = Column(self.rmsd, "angstrom")
        if self.errors:
            columns["error"] = np.array([self.errors.get(k, "") for k in range(n)])
        return Report("Binding energies", columns)

    def systems(self) -> dict[str, Terms]:
        """Terms of "complex", "receptor", "ligand" and "delta"."""
        return {name: getattr(self, name) for name in SYSTEMS}

    def statistics(self) -> dict[str, dict[str, Spread]]:
        """Return by system the Spread of each term and of the "total" over all frames that did not fail.

        Raises InputError if no frame has energies.
        """
        if np.isnan(self.total).all():
            raise InputError("no frame has energies, so a mean cannot be computed")
        return {
            name: {term: spread_of(np.atleast_1d(values)) for term, values in terms.columns().items()}
            for name, terms in self.systems().items()
        }


def aligned(terms: Terms, names: Sequence[str]) -> Floats:
    """Return the values of a part's terms in the order of `names`, (..., n_terms); 0 for terms that it lacks."""
    if terms.names == names:
        return terms.values
    found = np.zeros((*terms.values.shape[:-1], len(names)))
    found[..., [names.index(name) for name in terms.names]] = terms.values
    return found


def joined_energies(pieces: Sequence[BindingEnergies]) -> BindingEnergies:
    """Concatenate the energies of consecutive pieces of a trajectory."""
    first, errors, n = pieces[0], dict[int, str](), 0
    for piece in pieces:
        errors |= {n + k: why for k, why in piece.errors.items()}
        n += len(piece)
    systems = {
        name: Terms(first.names, np.concatenate([getattr(piece, name).values for piece in pieces])) for name in SYSTEMS
    }
    return BindingEnergies.of(systems, errors=errors)


TOO_LARGE = (
    "atoms overlap: the energies are too large for differences in float32, and the device has no "
    "float64; remove the clash, or use another device"
)


def is_close(atoms: Atoms, conformations: Floats) -> NDArray[np.bool_]:
    """Return a mask (m,) of conformations (m, n, 3) A with an atom without Lennard-Jones terms on top of another one.

    Such a clash is not visible in the energies, but reduces the precision of float32, by up to 0.02 kcal/mol at 0.1 A.
    """
    found = np.zeros(len(conformations), bool)
    if atoms.lj_epsilon is None or atoms.lj_sigma is None:
        return found
    bare = np.flatnonzero((atoms.lj_epsilon == 0) | (atoms.lj_sigma == 0))
    if len(bare) and len(atoms) > 1:
        for k, positions in enumerate(conformations):
            found[k] = _has_close(np.asarray(positions, np.float64), bare)
    return found


@np.errstate(invalid="ignore")
def _has_close(positions: Floats, bare: NDArray[np.intp]) -> bool:
    """Return whether any of the atoms `bare` is closer than CLOSE to another atom, by a sweep along x."""
    order = np.argsort(positions[:, 0], kind="stable")
    along = positions[order, 0]
    first, end = (np.searchsorted(along, positions[bare, 0] + by) for by in (-CLOSE, CLOSE))
    counts = end - first
    starts = np.repeat(first - np.cumsum(counts) + counts, counts)
    others = order[starts + np.arange(len(starts))]
    owners = np.repeat(bare, counts)
    apart = positions[others] - positions[owners]
    return bool((((apart * apart).sum(axis=1) < CLOSE**2) & (others != owners)).any())


def needs_float64(terms: Terms, atoms: Atoms, conformations: Floats) -> NDArray[np.bool_]:
    """Return a mask (m,) of conformations (m, n, 3) A that need float64 for differences within 0.5 kcal/mol.

    This criterion is used for all binding energies: single and separate trajectories, poses, and MMPBSA.py input files.

    terms : (m, n_terms) computed in float32
    """
    return is_large(terms) | is_close(atoms, conformations)


def is_large(terms: Terms) -> NDArray[np.bool_]:
    """Return a mask (m,) of energies so large that their differences in float32 have errors above 0.2 kcal/mol."""
    large: NDArray[np.bool_] = np.asarray((np.abs(terms.values) > LARGEST).any(axis=-1))
    for name in _STEEP:
        if name in terms.names:
            large |= getattr(terms, name) > LARGEST_LJ
    return large
