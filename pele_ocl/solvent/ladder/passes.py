"""Born radii by a rung of the ladder, then the engine's energy passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms
from ...common.variant import Progress
from ...gb_models.solvent_model import SolventModel
from ...plan.conformations import Encoding
from ...tiles import Tiles
from ..layout import SolventLayout
from ..passes import SolventPasses
from .rung import Molecule, Rung

if TYPE_CHECKING:
    from ...opencl.binding import Launch
    from ...opencl.queue import Queue
    from ...opencl.timing import Event


class LadderPasses(SolventPasses):
    """One conformation at a time: the rung fills a Molecule, whose radii are then brought to the tiles."""

    def __init__(
        self, rung: type[Rung], queue: Queue, atoms: Atoms, tiles: Tiles, layout: SolventLayout, model: SolventModel,
        encoding: Encoding, accuracy: float, energies: bool,
    ) -> None:  # fmt: skip
        super().__init__(queue, atoms, tiles, layout, model, encoding, accuracy, energies)
        self.molecule = Molecule.of(queue, atoms, model)
        self.rung = rung(queue, self.molecule)

    def make(self, most: int) -> None:
        super().make(1)
        self.most_at_once = 1

    def start(
        self, queue: Queue, positions: NDArray[Any], results: NDArray[Any], tell: Progress | None = None
    ) -> tuple[Event, Event]:
        self.molecule.move(queue, positions.reshape(-1, 3) * np.float64(self.encoding.step))
        return super().start(queue, positions, results, tell)

    def _sizes(self) -> dict[str, int]:
        return {}

    def _born(self) -> list[Launch]:
        return []

    def _before_energy(self) -> list[Launch]:
        arguments = dict(
            solvent=self.solvent_constants()["solvent"], psi=self.molecule.psi, born=self.molecule.born,
            radii=self.spheres.intrinsic, **self.named("inv_born"),
        )  # fmt: skip
        return [self.of_atoms("radii_given", arguments)]

    def _launch_born(self, queue: Queue, n_conformations: int, tell: Progress | None) -> None:
        self.rung.compute(queue, tell)

    def _born_seconds(self, queue: Queue) -> float:
        return queue.elapsed(queue.step("born"))
