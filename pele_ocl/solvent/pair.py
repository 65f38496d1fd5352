"""Born radii with one work-group per atom, for small molecules on GPUs; atoms in the given order, without tiles.

The rungs of pele_ocl.ladder use the same buffers.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..common.variant import Progress
from ..gb_models.solvent_model import SolventModel
from ..plan.conformations import Encoding
from ..tiles import Tiles
from ..tiles.tables import NeckTables, packed_reaches
from .layout import SolventLayout
from .passes import SolventPasses

if TYPE_CHECKING:
    from ..opencl.binding import BoundLaunch, Launch
    from ..opencl.kernel import Arguments
    from ..opencl.memory import Buffer
    from ..opencl.queue import Event, Queue

GROUP = 256  # work-items per atom in `pair`, as in the thesis


@dataclass(frozen=True, eq=False)
class Molecule:
    """Buffers of a molecule's atoms in the given order.

    atoms4 : (n, 4) x, y, z relative to the molecule's centre, and scaled radius, A; also on the host, for new positions
    rho, radii : (n,) offset and intrinsic radius, A
    psi, born : (n,) results: argument of the radius function, Born radius, A
    terms : Spheres of cl/solvent/term.clh
    constants : RADIUS_PARAMETER of cl/physics/gb_radius.clh
    macros : build definitions of kernels that compute Born integrals or radii
    """

    n: int
    host_atoms: Floats
    atoms: Buffer
    rho: Buffer
    radii: Buffer
    psi: Buffer
    born: Buffer
    terms: Arguments
    constants: Arguments
    macros: dict[str, int]

    @classmethod
    def of(cls, queue: Queue, atoms: Atoms, model: SolventModel) -> Molecule:
        """Create the buffers of a molecule, at the positions of the atoms."""
        n, spheres = len(atoms), model.spheres(atoms)
        constants, necks = spheres.constants, spheres.necks
        host_atoms = np.column_stack([np.empty((n, 3)), spheres.scaled])
        positions, rho, each = queue.empty(4 * n), queue.upload(spheres.rho), np.arange(n)
        tables = None if necks is None else NeckTables.of(queue, necks, each, np.ones(n, bool), width=1)
        molecule = cls(
            n, host_atoms, positions, rho, queue.upload(spheres.radii), queue.empty(n), queue.empty(n),
            dict(
                reaches=packed_reaches(queue, spheres, model), atoms=positions, rho=rho,
                **(tables.arguments if tables else {}),
            ),
            dict(
                radius_constants=(
                    queue.vector4(*model.radius_constants) if constants is None else queue.upload(constants)
                )
            ),
            model.radius_definitions | model.integral_definitions,
        )  # fmt: skip
        molecule.move(queue, atoms.positions)
        return molecule

    @property
    def pairs(self) -> float:
        return float(self.n) ** 2

    def move(self, queue: Queue, positions: Floats) -> None:
        """Write positions (n, 3) A to the device."""
        middle = (positions.min(axis=0) + positions.max(axis=0)) / 2
        self.host_atoms[:, :3] = positions - middle  # for precision in float32
        queue.write(self.atoms, self.host_atoms.astype(queue.dtype))

    @property
    def radii_arguments(self) -> Arguments:
        return dict(n_atoms=self.n, radii=self.radii, psi=self.psi, born=self.born)


class PlainRadii(ABC):
    """A method of computing the Born radii of a molecule. launches : of its kernels"""

    launches: Sequence[BoundLaunch]

    def __init__(self, queue: Queue, molecule: Molecule) -> None:
        self.molecule = molecule

    def compute(self, queue: Queue, tell: Progress | None = None) -> None:
        """Compute psi and born of the molecule. tell : called with the fraction done"""
        queue.launch_bound(self.launches, 1, tell)


class Pair(PlainRadii):
    """One work-group per atom, whose work-items divide the other atoms."""

    def __init__(self, queue: Queue, molecule: Molecule) -> None:
        super().__init__(queue, molecule)
        m, file, kernel = molecule, "solvent/pair.cl", "born_sums_pair"
        _, group = queue.group_kernel(file, kernel, local_reals=1, most=queue.device.ladder_group or GROUP, **m.macros)
        self.launches = [
            queue.bind(
                file, kernel, (m.n * group, 1), (group, 1), dict(**m.constants, **m.terms, **m.radii_arguments),
                cost=m.pairs, GROUP=group, **m.macros,
            )
        ]  # fmt: skip


class PlainPasses(SolventPasses):
    """Passes for one conformation at a time; radii of a Molecule are computed by `radii` and copied to the tiles."""

    def __init__(
        self, radii: type[PlainRadii], queue: Queue, atoms: Atoms, tiles: Tiles, layout: SolventLayout,
        model: SolventModel, encoding: Encoding, accuracy: float, energies: bool,
    ) -> None:  # fmt: skip
        super().__init__(queue, atoms, tiles, layout, model, encoding, accuracy, energies)
        self.molecule = Molecule.of(queue, atoms, model)
        self.radii = radii(queue, self.molecule)

    def make(self, most: int) -> None:
        super().make(1)
        self.most_at_once = 1

    def start(
        self, queue: Queue, positions: NDArray[Any], results: NDArray[Any], tell: Progress | None = None
    ) -> Sequence[Event]:
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
        self.radii.compute(queue, tell)

    def _born_seconds(self, queue: Queue) -> float:
        return queue.elapsed(queue.step("born"))
