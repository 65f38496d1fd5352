"""Born radii by a rung of the ladder, then the engine's energy passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms
from ...plan.conformations import Encoding
from ...solvent_model import SolventModel
from ...tiles import Tiles
from ...variant import Progress
from ..layout import SolventLayout
from ..passes import SolventPasses
from .rung import Molecule, Rung

if TYPE_CHECKING:
    from ...opencl.launch import KeptLaunch
    from ...opencl.run import Run
    from ...opencl.timing import Event


class LadderPasses(SolventPasses):
    """One conformation at a time: the rung fills a Molecule, whose radii are then brought to the tiles."""

    def __init__(
        self, rung: type[Rung], run: Run, atoms: Atoms, tiles: Tiles, layout: SolventLayout, model: SolventModel,
        encoding: Encoding, most: int, accuracy: float, energies: bool,
    ) -> None:  # fmt: skip
        super().__init__(run, atoms, tiles, layout, model, encoding, 1, accuracy, energies)
        self.most_at_once = 1
        self.rung = rung(run, self.molecule)

    def start(
        self, run: Run, positions: NDArray[Any], results: NDArray[Any], tell: Progress | None = None
    ) -> tuple[Event, Event]:
        self.molecule.move(run, positions.reshape(-1, 3) * np.float64(self.encoding.step))
        return super().start(run, positions, results, tell)

    def _sizes(self) -> dict[str, int]:
        return {}

    def _born(self) -> list[KeptLaunch]:
        self.molecule = Molecule.of(self.run, self.atoms, self.model)
        return []

    def _before_energy(self) -> list[KeptLaunch]:
        m, (_, constants) = self.molecule, self.solvent_constants()
        radii = self.of_atoms(
            "radii_given", constants, m.psi, m.born, self.spheres.intrinsic, outputs=("inverses", "results")
        )  # fmt: skip
        return [radii]

    def _launch_born(self, run: Run, n_conformations: int, tell: Progress | None) -> None:
        self.rung.compute(run, tell)

    def _born_seconds(self, run: Run) -> float:
        return run.elapsed(run.step("born"))
