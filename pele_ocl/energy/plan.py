"""A molecule made ready for a device, to be evaluated in as many conformations as one likes."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..atoms import Atoms, Floats
from ..errors import InputError
from ..solvent.checks import LARGEST_SPAN, check_radii, check_span
from ..solvent_model import SolventModel
from ..tiles import Tiles
from ..tuning import Choice, remembered
from ..variant import PRECISIONS, Progress
from .layout import Layout
from .passes import Options, Passes
from .result import TERMS, EnergyBatch, EnergyResult
from .tables import Fixed
from .variants import VARIANTS, choose_variant

if TYPE_CHECKING:
    from ..opencl.device import Device


class Energy:
    """Energy and gradient of one molecule, prepared once; parameters as in `energy`."""

    def __init__(
        self,
        atoms: Atoms,
        *,
        gradient: bool = True,
        fixed_radii: bool = False,
        one_four: Literal["scale", "exclude"] = "scale",
        cutoff: float | None = None,
        per_atom: bool = False,
        precision: str = "float32",
        variant: str = "auto",
        device: Device | int | str | None = None,
        model: SolventModel | None = None,
    ) -> None:
        # OpenCL is loaded when it is first needed: reading files and the command's help do without.
        from ..opencl.device import get_device

        self.atoms, self.precision, self.model = atoms, precision, model or SolventModel()
        _check(atoms, self.model, one_four, cutoff, per_atom, precision, variant)
        self.device = get_device(device)
        self.device.require_precision(precision)
        choice = remembered("energy", self.device, precision, len(atoms), without=("squares",) if per_atom else ())
        automatic = choice.variant or choose_variant(self.device.kind, per_atom)
        self.variant = automatic if variant == "auto" else variant
        self.options = Options(gradient, gradient and not fixed_radii, per_atom, cutoff, one_four)
        self.layout, self._tiles = self._laid_out(choice)
        self._fixed = Fixed.of(precision, float(np.ptp(atoms.positions, axis=0).max()))
        self._passes: Passes | None = None

    def _laid_out(self, choice: Choice) -> tuple[Layout, Tiles]:
        """The layout of the variant, as it was measured to be best, and the atoms in its tiles."""
        width, units = self.device.vector_width(self.precision), self.device.compute_units
        layout = Layout.of(self.variant, self.device.kind, width, len(self.atoms), units)
        layout = choice.applied(self.variant, layout)
        return layout, Tiles.of(self.atoms.positions, layout.tile)

    def __repr__(self) -> str:
        return f"Energy({len(self.atoms):,} atoms, {self.variant}, {self.precision}, on {self.device})"

    def evaluate(self, positions: Floats | None = None) -> EnergyResult:
        """Energy and gradient at `positions` (n, 3) A, by default the atoms' own.

        Raises InputError for positions that do not fit, and for energies that overflow.
        """
        given = self.atoms.positions if positions is None else np.asarray(positions, np.float64)
        if given.shape != (len(self.atoms), 3):
            raise InputError(f"positions have shape {given.shape}; ({len(self.atoms)}, 3) is needed")
        batch = self.evaluate_batch(given[None])
        atoms = self.atoms if positions is None else replace(self.atoms, positions=given)
        return EnergyResult(
            atoms=atoms,
            model=self.model,
            energies=batch.energies[0],
            gradient=None if batch.gradients is None else batch.gradients[0],
            born_radii=batch.born_radii[0],
            per_atom=None if batch.per_atom is None else batch.per_atom[0],
            device=batch.device,
            variant=batch.variant,
            precision=batch.precision,
            seconds=batch.seconds,
        )

    def evaluate_batch(self, conformations: Floats, progress: Progress | None = None) -> EnergyBatch:
        """Energies and gradients of many conformations (m, n, 3) A, computed together; the same bits as one by one.

        progress : called with the share of the conformations done, 0 to 1

        Raises InputError as `evaluate`.
        """
        start = time.perf_counter()
        conformations = np.asarray(conformations, np.float64)
        middles = self._middles(conformations)
        with self.device.lock:
            (energies, gradients, radii, per_atom), kernel_seconds = self._evaluate(conformations, middles, progress)
        self._check_finite(conformations, energies, gradients, radii)
        return EnergyBatch(
            atoms=self.atoms,
            model=self.model,
            energies=energies,
            gradients=gradients,
            born_radii=radii,
            per_atom=per_atom,
            device=str(self.device),
            variant=self.variant,
            precision=self.precision,
            seconds={"kernel": kernel_seconds, "total": time.perf_counter() - start},
        )

    def _evaluate(
        self, conformations: Floats, middles: Floats, progress: Progress | None
    ) -> tuple[tuple[Floats, Floats | None, Floats, Floats | None], float]:
        """Energies, gradients, Born radii and energies by atom of all conformations, and the kernels' seconds."""
        from ..opencl.kernels import Run

        m, n = conformations.shape[:2]
        passes = self._ready(m)
        energies, radii = np.empty((m, passes.n_energies, len(TERMS))), np.empty((m, n))
        gradients = np.empty((m, n, 3)) if self.options.gradient else None
        seconds = 0.0
        for first in range(0, m, passes.batch):
            part = slice(first, min(first + passes.batch, m))
            run = Run(self.device, self.precision)
            positions = self._fixed.encode(conformations[part], middles[part])
            energies[part], radii[part], slopes = passes.evaluate(run, positions)
            if gradients is not None:
                gradients[part] = slopes
            seconds += run.elapsed_seconds
            if progress is not None:
                progress(part.stop / m)
        return (energies.sum(axis=1), gradients, radii, energies if self.options.per_atom else None), seconds

    def _ready(self, m: int) -> Passes:
        """The passes, with buffers for m conformations or for as many as are computed at a time."""
        from ..opencl.kernels import Run

        if self._passes is None or self._passes.batch < min(m, self._passes.most_at_once):
            self._passes = None  # and what it holds on the device, before more is asked for
            run = Run(self.device, self.precision)
            self._passes = VARIANTS[self.variant].run(
                run, self.atoms, self._tiles, self.layout, self.options, self.model, self._fixed, m
            )
        return self._passes

    def _middles(self, conformations: Floats) -> Floats:
        """The middle of each conformation, (m, 1, 3) A, once the positions are found to be good."""
        n = len(self.atoms)
        if conformations.ndim != 3 or conformations.shape[1:] != (n, 3) or not len(conformations):
            raise InputError(f"positions have shape {conformations.shape}; (m, {n}, 3) is needed, m at least 1")
        columns = np.ascontiguousarray(conformations.transpose(0, 2, 1))  # ten times faster to look through
        lowest, highest = columns.min(axis=2), columns.max(axis=2)
        if not (np.isfinite(lowest).all() and np.isfinite(highest).all()):
            raise InputError("positions hold numbers that are not finite")
        spans = (highest - lowest).max(axis=1)
        k = int(np.argmax(spans))
        if spans[k] / 2 > self._fixed.reach:
            which = _which(k, len(conformations))
            raise InputError(
                f"{which}the positions span {spans[k]:,.0f} A, far more than the molecule's own; make the Energy of "
                "atoms that span as much, or use float64"
            )
        if spans[k] > LARGEST_SPAN:
            check_span(conformations[k])
        middles: Floats = ((lowest + highest) / 2)[:, None]
        return middles

    def _check_finite(self, conformations: Floats, energies: Floats, gradients: Floats | None, radii: Floats) -> None:
        """Raise InputError for what overflowed or never had a value, with the atoms that are the cause."""
        good = np.isfinite(energies).all(axis=1) & (np.isfinite(radii) & (radii > 0)).all(axis=1)
        if gradients is not None:
            good &= np.isfinite(gradients).all(axis=(1, 2))
        if good.all():
            return
        k = int(np.argmin(good))
        which = _which(k, len(conformations))
        atoms = replace(self.atoms, positions=conformations[k])
        try:
            atoms.require_apart()
        except InputError as error:
            raise InputError(f"{which}{error}") from None
        bad = ~(np.isfinite(radii[k]) & (radii[k] > 0))
        if gradients is not None:
            bad |= ~np.isfinite(gradients[k]).all(axis=1)
        where = f"of {atoms.describe(int(np.argmax(bad)))} " if bad.any() else ""
        precise = "" if self.precision == "float64" else ", or use float64"
        raise InputError(
            f"{which}the energy {where}is too large for {self.precision}; check for atoms on top of each other, radii "
            f"and charges{precise}"
        )


def _which(k: int, m: int) -> str:
    """How a message about one of m conformations begins."""
    return "" if m == 1 else f"conformation {k + 1} of {m}: "


def _check(
    atoms: Atoms, model: SolventModel, one_four: str, cutoff: float | None, per_atom: bool, precision: str, variant: str
) -> None:
    if variant != "auto" and variant not in VARIANTS:
        raise InputError(f"there is no variant {variant!r}; choose auto, {', '.join(VARIANTS)}")
    if variant == "squares" and per_atom:
        raise InputError("squares does not tell the energies of atoms apart; choose variant rows or blocks")
    if precision not in PRECISIONS:
        raise InputError(f"there is no precision {precision!r}; choose {' or '.join(PRECISIONS)}")
    if one_four not in ("scale", "exclude"):
        raise InputError(f"one_four is {one_four!r}; choose 'scale' or 'exclude'")
    if cutoff is not None and not 0 < cutoff < np.inf:
        raise InputError(f"cutoff is {cutoff}; a positive number of Angstrom is needed")
    atoms.require(("charges", "lj_sigma", "lj_epsilon", "gb_radii", "gb_scales"), "the energy")
    check_radii(atoms, model)
    check_span(atoms.positions)
    atoms.require_apart()
