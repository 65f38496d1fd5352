"""A molecule recorded for a device: what its structures share there, and what each has of its own."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..energy import Energy, EnergyBatch
from ..energy.passes import EnergyPasses
from ..plan.evaluator import Failures
from .launching import key_of

if TYPE_CHECKING:
    from ..opencl.recording import Piece, RecordedLaunch, Region, Row


class System:
    """Molecule whose structures share launches with other molecules.

    energy : its plan; passes : the launches of an evaluation, recorded
    """

    def __init__(self, energy: Energy) -> None:
        from ..opencl.recording import Recorder

        self.recorder = Recorder(energy.device, energy.precision, profile=False)
        self.energy, self.pipeline = energy, energy._prepared(self.recorder, 1)
        passes = self.pipeline.passes
        assert isinstance(passes, EnergyPasses)
        self.passes = passes

    @cached_property
    def launches(self) -> list[RecordedLaunch]:
        """Give all launches, each once, in an order that is the same for molecules with the same key."""
        return cast("list[RecordedLaunch]", list(dict.fromkeys(self.passes.launches)))

    @cached_property
    def rows(self) -> list[Row]:
        """Give the arguments of all launches."""
        _ = self.shared, self.own  # which lay out the arrays
        return [launch.row(self.recorder.slot) for launch in self.launches]

    @cached_property
    def key(self) -> Hashable:
        """Give a key that is equal for molecules that can share all launches."""
        return key_of(self.launches)

    @property
    def shared(self) -> Region:
        """Bytes that its structures share."""
        _ = self.launches
        return self.recorder.shared

    @property
    def own(self) -> Region:
        """Bytes of each structure."""
        _ = self.launches
        return self.recorder.own

    def piece(self, name: str) -> Piece:
        """Give where a structure keeps a buffer of the passes."""
        return cast("Piece", self.passes.buffers[name])

    def encoded(self, positions: Floats) -> tuple[NDArray[Any], Floats, dict[int, str]]:
        """Encode positions (m, n, 3) A of structures as (m, 3 n), and give how far (m, 3) A they are from where they
        are computed; and why some cannot be, by their numbers, which stand where the molecule itself does.
        """
        failures, start = Failures(len(positions), record=True), np.asarray(positions, np.float64)
        encoded = np.empty((len(start), start[0].size), self.passes.encoding.dtype)
        step = 1 if self.passes.encoding.is_fixed else len(start)
        for k in range(0, len(start), step):
            self.pipeline.encode(start, slice(k, k + step), encoded[k : k + step], failures)
        aside = np.nan_to_num(start[:, 0] - self.pipeline.decode(encoded)[:, 0])
        aside[np.abs(aside).max(axis=1) <= self.passes.encoding.step] = 0
        aside[list(failures.reasons)] = 0
        return encoded, aside, failures.in_order

    def energies(self, results: NDArray[Any], positions: Sequence[Floats] | Floats) -> EnergyBatch:
        """Give the energies that results (m, n_results) of positions (m, n, 3) A stand for; errors are recorded."""
        return self.energy._batch_of(self.pipeline, results, np.asarray(positions))
