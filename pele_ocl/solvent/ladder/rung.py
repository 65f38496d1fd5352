"""Buffers that all rungs of the ladder compute with, and the interface of a rung."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...atoms import Atoms, Floats
from ...common.variant import Progress
from ...gb_models.solvent_model import SolventModel
from ...tiles.necks import NeckTables
from ...tiles.tables import packed_reaches

if TYPE_CHECKING:
    from ...opencl.launch import BoundLaunch
    from ...opencl.memory import Buffer
    from ...opencl.queue import Queue
    from ...opencl.signature import Arguments

ITEMS = 64  # of a group where the group does not matter


@dataclass(frozen=True, eq=False)
class Molecule:
    """Buffers of a molecule's atoms in their order.

    atoms4 : (n, 4) x, y, z from the molecule's middle, scaled radius, A; also on the host, where positions change
    rho, radii : (n,) offset and intrinsic radius, A
    psi, born : (n,) what a rung has to fill: argument of the radius function, Born radius, A
    terms : TERM_ARGUMENTS of cl/solvent/ladder/term.clh
    constants : RADIUS_CONSTANTS of cl/physics/gb_radius.clh
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
        """A molecule on a device, at the atoms' own positions."""
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
        """Ordered pairs, the cost of every rung."""
        return float(self.n) ** 2

    def move(self, queue: Queue, positions: Floats) -> None:
        """Bring positions (n, 3), A, to the device."""
        middle = (positions.min(axis=0) + positions.max(axis=0)) / 2
        self.host_atoms[:, :3] = positions - middle  # which saves float32 digits
        queue.write(self.atoms, self.host_atoms.astype(queue.dtype))

    def radii_step(self, queue: Queue, sums: Buffer, n_parts: int = 1) -> BoundLaunch:
        """Make the launch that ends most rungs: from (n_parts, n) parts of the Born integrals to psi and Born radii."""
        return queue.bind(
            "solvent/ladder/radii.cl", "born_radii", (self.n, 1), (ITEMS, 1),
            dict(n_parts=n_parts, sums=sums, rho=self.rho, **self.constants, **self.radii_arguments),
            **self.macros,
        )  # fmt: skip

    @property
    def radii_arguments(self) -> Arguments:
        """Arguments of every kernel that fills Born radii."""
        return dict(n_atoms=self.n, radii=self.radii, psi=self.psi, born=self.born)


class Rung(ABC):
    """One way to compute the Born radii of a molecule.

    launches : made when the rung is, of kernels that are its own
    """

    launches: Sequence[BoundLaunch]

    def __init__(self, queue: Queue, molecule: Molecule) -> None:
        self.molecule = molecule

    def compute(self, queue: Queue, tell: Progress | None = None) -> None:
        """Fill psi and born of the molecule. tell : called with the share done"""
        queue.launch_bound(self.launches, 1, tell)
