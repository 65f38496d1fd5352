"""A molecule recorded for a device: what its structures share there, and what each has of its own."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from ...common.threads import by_rows
from ...plan.evaluator import Failures
from ...plan.pipeline import Pipeline
from .. import Energy, EnergyBatch
from ..passes import EnergyPasses
from .launching import key_of
from .scales import ScaledParameters

if TYPE_CHECKING:
    from ...opencl.binding import Launch
    from ...opencl.recording import ArgumentRow, BufferPiece, RecordedLaunch, Region


class System:
    """Molecule whose structures share launches with other molecules.

    energy : its plan; passes : the launches of an evaluation, recorded
    """

    def __init__(self, energy: Energy, *, is_alone: bool = False, is_scaled: bool = False) -> None:
        """is_alone : if it has one structure, and there are no other molecules; is_scaled : if rows scale parameters

        Raises InputError where parameters cannot be scaled.
        """
        from ...opencl.recording import Recorder

        self.recorder = Recorder(energy.device, energy.precision, is_shared=not is_alone)
        self.recorder.owns_parameters = is_scaled
        self._pieces: dict[str, BufferPiece] = {}  # by name, as they were asked for
        self.energy, self.pipeline = energy, energy._prepared(self.recorder, 1)
        passes = self.pipeline.passes
        assert isinstance(passes, EnergyPasses)
        self.passes = passes
        self.scaled = ScaledParameters(passes, self.recorder) if is_scaled else None

    @cached_property
    def launches(self) -> list[RecordedLaunch]:
        """Give all launches, each once, in an order that is the same for molecules with the same key."""
        found, options = [*self.passes.launches], self.passes.options
        if options.gradient and not options.chain:  # radii may stay as they are
            apart = self.passes.apart_at_radii
            found += [*apart[0], *apart[1]]
        return self.recorder.recorded(found)

    @cached_property
    def at_radii(self) -> list[Launch]:
        """Launches of an evaluation at the Born radii of the one before; none if gradients do not hold radii."""
        holds = self.energy.holds_radii and self.passes.contents.has_gb
        return self.passes.apart_at_radii[1] if holds else []

    @cached_property
    def rows(self) -> list[ArgumentRow]:
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

    def piece(self, name: str) -> BufferPiece:
        """Give where a structure keeps a buffer of the passes."""
        if name not in self._pieces:
            self._pieces[name] = self.recorder.piece(self.passes.buffers[name])
        return self._pieces[name]

    @cached_property
    def origin(self) -> Floats:
        """(3,) A from which positions on the device are counted."""
        nowhere = np.zeros((1, 3 * len(self.energy.atoms)), self.passes.encoding.dtype)
        origin: Floats = self.pipeline.decode(nowhere)[0, 0]
        return origin

    def encoded(
        self, positions: Floats, out: NDArray[Any] | None = None
    ) -> tuple[NDArray[Any], Floats, dict[int, str]]:
        """Encode positions (m, n, 3) A of structures, as `encoded` does."""
        return encoded(self.pipeline, positions, out)

    def energies(self, results: NDArray[Any], positions: Sequence[Floats] | Floats) -> EnergyBatch:
        """Give the energies in results (m, n_results) of positions (m, n, 3) A; errors are recorded."""
        return self.energy._batch_of(self.pipeline, results, np.asarray(positions))


def encoded(
    pipeline: Pipeline, positions: Floats, out: NDArray[Any] | None = None
) -> tuple[NDArray[Any], Floats, dict[int, str]]:
    """Encode positions (m, n, 3) A of structures as passes take them.

    out : (m, 3 n) to be filled

    Returns them, (m, 3 n); how far each is from where it is computed, (m, 3) A; and why some cannot be, by their
    numbers, which are encoded as the molecule itself.
    """
    encoding = pipeline.passes.encoding
    failures, start = Failures(len(positions), record=True), np.asarray(positions, np.float64)
    found = np.empty((len(start), start[0].size), encoding.dtype) if out is None else out
    if encoding.is_fixed:
        for k in range(len(start)):
            pipeline.encode(start, slice(k, k + 1), found[k : k + 1], failures)
    else:
        by_rows(len(found), found.shape[1], lambda rows: pipeline.encode(start, rows, found[rows], failures))
    offsets = np.nan_to_num(start[:, 0] - pipeline.decode(found[:, :3])[:, 0])
    offsets[np.abs(offsets).max(axis=1) <= encoding.step] = 0
    offsets[list(failures.reasons)] = 0
    return found, offsets, failures.in_order
