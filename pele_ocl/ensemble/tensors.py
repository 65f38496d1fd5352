"""Energies and gradients of plans and ensembles for libraries with automatic differentiation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..common.arguments import choice, described
from ..common.errors import InputError
from ..energy import Energy
from ..nonbond import Nonbond
from .ensemble import Ensemble
from .state import RowsLike

Failed = Literal["raise", "nan", "inf"]


@dataclass(frozen=True)
class Tensors:
    """Energies of a plan, or of rows of an ensemble, as functions of positions.

    rows : of an ensemble; () for a plan
    failed : "raise" for an InputError, "nan" for NaN, "inf" for +inf and a gradient of 0
    """

    source: Energy | Nonbond | Ensemble
    rows: tuple[int, ...]
    failed: Failed

    @classmethod
    def of(cls, source: Energy | Nonbond | Ensemble, rows: RowsLike, failed: Failed) -> Tensors:
        """Check the arguments. Raises InputError for rows of a plan, unknown rows and repeated rows."""
        choice("failed", failed, ("raise", "nan", "inf"))
        if not isinstance(source, Energy | Nonbond | Ensemble):
            of = ", such as its `ensemble`" if hasattr(source, "ensemble") else ""
            raise InputError(f"plan is {described(source)}; expected an Energy, a Nonbond or an Ensemble{of}")
        if not isinstance(source, Ensemble):
            if rows is not None:
                raise InputError("rows need an Ensemble; a plan has none")
            return cls(source, (), failed)
        chosen = source.state.chosen(rows).tolist()
        if not chosen or len(set(chosen)) < len(chosen):
            raise InputError(f"rows are {chosen}; expected one or more, each given once")
        return cls(source, tuple(chosen), failed)

    @property
    def has_gradient(self) -> bool:
        """Whether gradients are computed with the energies."""
        if isinstance(self.source, Ensemble):
            return bool(self.source.state.options["gradient"])
        return self.source.options.gradient if isinstance(self.source, Energy) else self.source.gradient

    @property
    def is_joined(self) -> bool:
        """Whether atoms of several rows are concatenated, as for rows of different molecules."""
        return isinstance(self.source, Ensemble) and len({id(atoms) for atoms in self.source.atoms}) > 1

    @property
    def sizes(self) -> list[int]:
        """Number of atoms for each energy of an array."""
        if not isinstance(self.source, Ensemble):
            return [len(self.source.atoms)]
        return [len(self.source.atoms[k]) for k in (self.rows if self.is_joined else self.rows[:1])]

    def energies_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of the energies for a shape of positions. Raises InputError if it does not fit."""
        n = sum(self.sizes)
        if shape[-2:] != (n, 3):
            of = f", the atoms of {len(self.rows):,} rows joined" if self.is_joined else ""
            raise InputError(f"positions have shape {shape}; expected (..., {n}, 3){of}")
        return (*shape[:-2], len(self.rows)) if self.is_joined else shape[:-2]

    @property
    def owners(self) -> NDArray[np.int64] | None:
        """Index of the energy to which each atom belongs, (n,); None if all atoms of an array have one energy."""
        return np.repeat(np.arange(len(self.rows)), self.sizes) if self.is_joined else None

    def require_gradient(self) -> None:
        if not self.has_gradient:
            what = "ensemble" if isinstance(self.source, Ensemble) else "plan"
            raise InputError(f"the {what} computes no gradients; create it with gradient=True")

    def evaluated(self, positions: NDArray[Any]) -> tuple[Floats, Floats | None]:
        """Compute energies (...) or (..., n_rows) and gradients (..., n, 3) at positions (..., n, 3) A.

        Gradients are None if they are not computed.
        """
        shape = self.energies_shape(positions.shape)
        if not positions.size:
            return np.zeros(shape), np.zeros(positions.shape) if self.has_gradient else None
        if isinstance(self.source, Ensemble):
            energies, gradients = self._of_rows(self.source, positions.reshape(-1, *positions.shape[-2:]))
        else:
            energies, gradients = self._of_plan(self.source, positions.reshape(-1, *positions.shape[-2:]))
        return energies.reshape(shape), None if gradients is None else gradients.reshape(positions.shape)

    def _of_plan(self, plan: Energy | Nonbond, positions: NDArray[Any]) -> tuple[Floats, Floats | None]:
        options: dict[str, Any] = {} if self.failed == "raise" else {"errors": "record"}
        batch = plan.evaluate_batch(positions, **options)
        total, gradients = np.array(batch.total), None if batch.gradients is None else np.array(batch.gradients)
        if self.failed == "inf":
            bad = list(batch.errors)
            total[bad] = np.inf
            if gradients is not None:
                gradients[bad] = 0
        return total, gradients

    def _of_rows(self, ensemble: Ensemble, positions: NDArray[Any]) -> tuple[Floats, Floats | None]:
        """Set, evaluate and read rows, in several rounds if there are more arrays than rows."""
        count = 1 if self.is_joined else len(self.rows)  # arrays per round
        energies = np.empty((len(positions), len(self.sizes)))
        gradients = np.empty(positions.shape) if self.has_gradient else None
        splits = np.cumsum(self.sizes)[:-1]
        for begin in range(0, len(positions), count):
            part = positions[begin : begin + count]
            rows = list(self.rows) if self.is_joined else list(self.rows[: len(part)])
            with ensemble.state.lock:
                ensemble.positions[rows] = np.split(part[0], splits) if self.is_joined else part
                ensemble.evaluate(rows)
                found = ensemble.energies_of(rows)
                slopes: Any = None if gradients is None else ensemble.gradients[rows]
                if np.isnan(found).any():
                    found, slopes = self._mended(ensemble, rows, found, slopes)
            energies[begin : begin + count] = found.reshape(-1, len(self.sizes))
            if gradients is not None:
                joined = np.concatenate(list(slopes)) if self.is_joined else slopes
                gradients[begin : begin + count] = np.reshape(joined, part.shape)
        return energies, gradients

    def _mended(self, ensemble: Ensemble, rows: list[int], energies: Floats, gradients: Any) -> tuple[Floats, Any]:
        """Replace the results of failed rows by the requested values. Raises InputError if failures are errors."""
        bad = np.flatnonzero(np.isnan(energies)).tolist()
        if self.failed == "raise":
            k = rows[bad[0]]
            raise InputError(f"row {k}: {ensemble.errors[k]}")
        value, slope = (np.inf, 0.0) if self.failed == "inf" else (np.nan, np.nan)
        energies[bad] = value
        if gradients is not None:
            gradients = list(gradients)
            for place in bad:
                gradients[place] = np.full_like(gradients[place], slope)
        return energies, gradients
