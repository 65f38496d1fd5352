"""How structures of one molecule are minimized: where they begin, what is held, when they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..atoms.close_pairs import close_pair
from ..common.arguments import flag
from ..common.errors import InputError
from ..energy import Energy
from .bond_lengths import BondLengths
from .constraints import BondConstraints, check_rigid
from .options import Stopping, method_of, rounds_of

if TYPE_CHECKING:
    from .method import Method

LEAST_APART = 1e-4  # A; the forces of closer atoms have no direction, and rounding would choose one
NONE_MOVES = "all atoms are frozen; leave some free to move"


class Protocol:
    """Method, bounds and rounds for one molecule, and what is held; it needs no device.

    atoms : the molecule; free : (n,) True for atoms that move if a structure has no others
    constraints : BondConstraints, None without
    method, stopping, rounds : the method, the bounds and the rounds as they were chosen
    """

    def __init__(
        self, energy: Energy, *, method: str | type[Method] = "lbfgs", constraints: str | None = None,
        bond_repair: bool = True, rounds: int = 1, **bounds: Any,
    ) -> None:  # fmt: skip
        """energy : the plan that computes energies and gradients; bounds : of Stopping; others as of Minimizer

        Raises InputError if no atom moves, and for bonds that cannot be held.
        """
        self.atoms = atoms = energy.atoms
        self.method, self.rounds = method_of(method, constraints), rounds_of(rounds)
        self.stopping = Stopping.of(bounds)
        self.free = ~energy.frozen & ~atoms.is_site
        if not self.free.any():
            raise InputError(NONE_MOVES)
        self.constraints = None if constraints is None else BondConstraints.of(atoms, self.free, constraints)
        if self.stopping.max_iterations:
            check_rigid(atoms, self.free, self.constraints)
        # Nothing is moved where there are to be no steps, or where no energy depends on bonds.
        has_bonds = "bond" in energy.names
        keeps_bonds = not flag("bond_repair", bond_repair) or self.stopping.max_iterations == 0 or not has_bonds
        self._lengths = None if keeps_bonds else BondLengths.of(atoms)

    def starts(self, given: Floats, free: Sequence[NDArray[np.bool_]]) -> tuple[Floats, dict[int, InputError]]:
        """Find where structures given at positions (m, n, 3) A begin, and why some cannot, by their numbers from 0.

        free : of each, (n,) atoms that move
        """
        starts, errors = np.array(given, np.float64), dict[int, InputError]()
        for k, (positions, moves) in enumerate(zip(given, free, strict=True)):
            try:
                self._check_start(positions, moves)
                starts[k] = self._placed(positions, moves)
            except InputError as error:
                errors[k] = error
        return starts, errors

    def _check_start(self, positions: Floats, free: NDArray[np.bool_]) -> None:
        """Raise InputError for positions (n, 3) A that no molecule has, with two atoms at one place, or if none moves.

        free : (n,) atoms that move
        """
        if not np.isfinite(positions).all() or close_pair(positions, LEAST_APART) is not None:
            self.atoms.moved(positions).require_apart(LEAST_APART)
        if not free.any():
            raise InputError(NONE_MOVES)

    def _placed(self, positions: Floats, free: NDArray[np.bool_]) -> Floats:
        """Give positions (n, 3) A as they begin: bonds of shaken ones near their lengths, held ones at them.

        free : (n,) atoms that move. Raises InputError if a bond is held between one that moves and one that does not.
        """
        restored = positions if self._lengths is None else self._lengths.restored(positions, free)
        constraints, sites = self._constraints_of(free), self.atoms.virtual_sites
        held = restored if constraints is None else constraints.placed(restored[np.newaxis])[0]
        return held if sites is None else sites.placed(held, free)

    def _constraints_of(self, free: NDArray[np.bool_]) -> BondConstraints | None:
        """Give the constraints of a structure with atoms `free` (n,) that move; None without any.

        Raises InputError as `_placed` does.
        """
        if self.constraints is None or np.array_equal(free, self.free):
            return self.constraints
        return self.constraints.within(self.atoms, free)

    def n_restored(self, given: Floats) -> int:
        """Count the bonds of a structure given at positions (n, 3) A that are restored before the first step."""
        return 0 if self._lengths is None else self._lengths.n_restored(given)

    def along(self, gradient: Floats, positions: Floats, free: NDArray[np.bool_]) -> Floats:
        """Give the part of a gradient (n, 3) along which atoms `free` (n,) may move at positions (n, 3) A."""
        found: Floats = np.where(free[:, None], gradient, 0.0)
        constraints = self._constraints_of(free)
        return found if constraints is None else constraints.tangent(positions[np.newaxis], found[np.newaxis])[0]


def computable(conformations: Floats, atoms: Atoms) -> Floats:
    """Conformations with the atoms' own positions in place of numbers that are not finite."""
    return np.where(np.isfinite(conformations), conformations, atoms.positions)
