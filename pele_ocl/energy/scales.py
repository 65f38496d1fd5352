"""Scaling of charges, Lennard-Jones wells and torsions, separately for each row of a molecule."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..common.errors import InputError
from ..opencl.interface import BondedKind
from .bonded import BondedTerms
from .bonded.kernels import CONSTANTS
from .passes import EnergyPasses
from .terms import DielectricCorrections, LennardJonesCorrections

if TYPE_CHECKING:
    from ..opencl.recording import BufferPiece, Recorder

CORRECTIONS = LennardJonesCorrections, DielectricCorrections
KINDS = "charges", "lennard_jones", "torsions"
SCALES = "scales"  # buffer with the scales of a row, not used by kernels


class ScaledParameters:
    """Parameters of a molecule that rows scale, and the buffers that hold them.

    Each atom has a factor for each kind. Charges are multiplied by their factors, well depths of pairs by the geometric
    mean of both atoms' factors, torsions by that of their first and last atoms. The same applies to 1-4 pairs.
    """

    def __init__(self, passes: EnergyPasses[Any], recorder: Recorder) -> None:
        """Raises InputError for molecules with pair corrections, which cannot be scaled."""
        if passes.of_surface is not None or any(isinstance(of, CORRECTIONS) for of in passes.contents.term_kernels):
            raise InputError(
                "rows cannot scale parameters if pairs have special ones: NBFIX, VDGBNP or surface integrals"
            )
        self._passes, self._recorder = passes, recorder
        buffers: dict[str, Any] = passes.buffers
        buffers["sphere charges"], buffers["pair wells"] = passes.spheres.charges, passes.tables.epsilons
        buffers["atom parameters"] = passes.tables.parameters
        buffers[SCALES] = recorder.upload_each(np.ones((len(KINDS), len(passes.atoms))), np.float64)

    def of(self, scales: Floats) -> Mapping[str, NDArray[Any]]:
        """Return the scaled contents of buffers. scales : (n_rows, n_kinds, n_atoms)"""
        m, tiles = len(scales), self._passes.tiles
        by_slot = np.stack([[tiles.by_slot(np.ascontiguousarray(of)) for of in row] for row in scales])
        charges, wells = by_slot[:, 0], np.sqrt(by_slot[:, 1])
        atoms = np.repeat(self._first("atom parameters").reshape(1, 6, -1), m, axis=0)
        atoms[:, 2] *= charges
        atoms[:, 4] *= wells
        found = {
            SCALES: scales, "sphere charges": self._first("sphere charges") * charges,
            "pair wells": self._first("pair wells") * wells, "atom parameters": atoms,
        }  # fmt: skip
        if CONSTANTS in self._passes.buffers:
            found[CONSTANTS] = self._bonded(scales)
        return {name: values.reshape(m, -1).astype(self._piece(name).dtype) for name, values in found.items()}

    def _bonded(self, scales: Floats) -> Floats:
        """Scaled parameters of bonded tasks, (n_rows, k, 4)."""
        (rows, firsts, ends), pairs = self._torsions, self._pairs
        factors = np.ones((len(scales), *self._first(CONSTANTS).reshape(-1, 4).shape))
        of_torsions = np.sqrt(scales[:, 2, firsts] * scales[:, 2, ends])
        factors[:, rows, 1:] = of_torsions[:, :, None]
        at, i, j = pairs
        factors[:, at, 0] = scales[:, 0, i] * scales[:, 0, j]
        factors[:, at, 2] = np.sqrt(scales[:, 1, i] * scales[:, 1, j])
        found: Floats = self._first(CONSTANTS).reshape(-1, 4) * factors
        return found

    @cached_property
    def _kernels(self) -> BondedTerms:
        return next(of for of in self._passes.contents.grouped if isinstance(of, BondedTerms))

    @cached_property
    def _torsions(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Parameter rows of the cosines of proper torsions, and the first and last atom of each."""
        tasks, names = self._kernels.tasks, self._kernels.names
        row = names.index("torsion") if "torsion" in names else -1
        those = np.flatnonzero((tasks.kinds == BondedKind.TWIST) & (tasks.rows[:, 0] == row))
        counts = tasks.counts[those]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = np.repeat(tasks.first[those], counts) + within
        ends = (np.repeat(tasks.members[those, k], counts).astype(np.int64) for k in (0, 3))
        return rows, *ends

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Parameter rows of 1-4 pairs, and both atoms of each."""
        tasks = self._kernels.tasks
        those = np.flatnonzero(tasks.kinds == BondedKind.MEET)
        return tasks.first[those], *(tasks.members[those, k].astype(np.int64) for k in (0, 1))

    def _piece(self, name: str) -> BufferPiece:
        return self._recorder.piece(self._passes.buffers[name])

    def _first(self, name: str) -> Floats:
        """Unscaled parameters in a buffer."""
        values = self._piece(name).values
        assert values is not None
        found: Floats = values.astype(np.float64)
        return found
