"""A molecule made ready for a device, to be evaluated in as many conformations as one likes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..atoms import Atoms, Floats, require_atoms
from ..errors import InputError
from ..solvent.checks import check_radii, check_span
from ..solvent_model import SolventModel
from ..tiles import Tiles
from ..tuning import Choice, remembered
from ..variant import PRECISIONS, Progress
from .layout import Layout
from .passes import Options
from .pipeline import CHUNK_ATOMS, Found, Pipeline
from .result import EnergyBatch, EnergyResult
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

        self.atoms, self.precision, self.model = atoms, precision, SolventModel.or_default(model)
        _check(atoms, self.model, one_four, cutoff, per_atom, precision, variant)
        self.device = get_device(device)
        self.device.require_precision(precision)
        choice = remembered("energy", self.device, precision, len(atoms), without=("squares",) if per_atom else ())
        automatic = choice.variant or choose_variant(self.device.kind, per_atom)
        self.variant = automatic if variant == "auto" else variant
        self.options = Options(gradient, gradient and not fixed_radii, per_atom, cutoff, one_four)
        self.layout, self._tiles = self._laid_out(choice)
        self._fixed = Fixed.of(precision, float(np.ptp(atoms.positions, axis=0).max()))
        self._pipeline: Pipeline | None = None

    def _laid_out(self, choice: Choice) -> tuple[Layout, Tiles]:
        """The layout of the variant, as it was measured to be best, and the atoms in its tiles."""
        width, units = self.device.vector_width(self.precision), self.device.compute_units
        layout = Layout.of(self.variant, self.device.kind, width, len(self.atoms), units)
        layout = choice.applied(self.variant, layout)
        return layout, Tiles.of(self.atoms.positions, layout.tile)

    def __repr__(self) -> str:
        return f"Energy({len(self.atoms):,} atoms, {self.variant}, {self.precision}, on {self.device})"

    def evaluate(self, positions: Floats | None = None, *, profile: bool = False) -> EnergyResult:
        """Energy and gradient at `positions` (n, 3) A, by default the atoms' own.

        profile : True to have the kernels' time taken, which makes launches slower

        Raises InputError for positions that do not fit, and for energies that overflow. In float32 a molecule may
        become twice as long as it was and 128 A more; float64 has no such bound.
        """
        start = time.perf_counter()
        atoms = self.atoms if positions is None else self.atoms.moved(positions)
        found, kernel_seconds = self._compute(atoms.positions[None], profile, None)
        return EnergyResult(
            atoms=atoms,
            model=self.model,
            energies=found.energies[0],
            gradient=None if found.gradients is None else found.gradients[0],
            born_radii=found.born_radii[0],
            per_atom=None if found.per_atom is None else found.per_atom[0],
            device=str(self.device),
            variant=self.variant,
            precision=self.precision,
            seconds=kernel_seconds | {"total": time.perf_counter() - start},
        )

    def repeat(self, count: int) -> None:
        """Evaluate what was evaluated last so many times more, with positions and results left on the device.

        For timing: what a step costs a program that moves nothing to and fro. Of a batch it takes one conformation, and
        the atoms' own positions where nothing was evaluated yet.
        """
        if not (isinstance(count, int) and count > 0):
            raise InputError(f"count is {count!r}; a whole number from 1 on is needed")
        if self._pipeline is None:
            self.evaluate()
        assert self._pipeline is not None
        with self.device.lock:
            self._pipeline.repeat(count)

    def evaluate_batch(
        self, conformations: Floats, progress: Progress | None = None, *, profile: bool = False
    ) -> EnergyBatch:
        """Energies and gradients of many conformations (m, n, 3) A, computed together; the same bits as one by one.

        progress : called with the share of the conformations done, 0 to 1

        profile and what is raised as in `evaluate`; an error says which conformation it is about.
        """
        start = time.perf_counter()
        try:
            conformations = np.asarray(conformations)
            if conformations.dtype != np.float32:  # which is converted on the way
                conformations = np.asarray(conformations, np.float64)
        except (TypeError, ValueError):
            raise InputError("conformations are no array of numbers, or not all of one shape") from None
        n = len(self.atoms)
        if conformations.ndim != 3 or conformations.shape[1:] != (n, 3) or not len(conformations):
            raise InputError(f"positions have shape {conformations.shape}; (m, {n}, 3) is needed, m at least 1")
        found, kernel_seconds = self._compute(conformations, profile, progress)
        return EnergyBatch(
            atoms=self.atoms,
            model=self.model,
            energies=found.energies,
            gradients=found.gradients,
            born_radii=found.born_radii,
            per_atom=found.per_atom,
            device=str(self.device),
            variant=self.variant,
            precision=self.precision,
            seconds=kernel_seconds | {"total": time.perf_counter() - start},
        )

    def _compute(
        self, conformations: Floats, profile: bool, progress: Progress | None
    ) -> tuple[Found, dict[str, float]]:
        """What is found for all conformations, and the kernels' seconds where they are wanted."""
        with self.device.lock:
            found, seconds = self._ready(len(conformations)).compute(conformations, profile, progress or _untold)
        return found, {"kernel": seconds} if profile else {}

    def _ready(self, m: int) -> Pipeline:
        """The pipeline, with buffers for m conformations or for as many as are computed at a time."""
        from ..opencl.kernels import Run

        m = min(m, max(1, CHUNK_ATOMS // len(self.atoms)))
        if self._pipeline is None or self._pipeline.batch < min(m, self._pipeline.passes.most_at_once):
            self._pipeline = None  # and what it holds on the device, before more is asked for
            run = Run(self.device, self.precision)
            passes = VARIANTS[self.variant].run(
                run, self.atoms, self._tiles, self.layout, self.options, self.model, self._fixed, m
            )
            run.finish()  # evaluations may go to another queue
            self._pipeline = Pipeline(self.atoms, self._fixed, passes)
        return self._pipeline


def _untold(share: float) -> None:
    """Of progress that nobody asked for."""


def _check(
    atoms: Atoms, model: SolventModel, one_four: str, cutoff: float | None, per_atom: bool, precision: str, variant: str
) -> None:
    require_atoms(atoms)
    if variant != "auto" and variant not in VARIANTS:
        raise InputError(f"there is no variant {variant!r}; choose auto, {', '.join(VARIANTS)}")
    if variant == "squares" and per_atom:
        raise InputError("squares does not tell the energies of atoms apart; choose variant rows or blocks")
    if precision not in PRECISIONS:
        raise InputError(f"there is no precision {precision!r}; choose {' or '.join(PRECISIONS)}")
    if one_four not in ("scale", "exclude"):
        raise InputError(f"one_four is {one_four!r}; choose 'scale' or 'exclude'")
    if cutoff is not None and not (isinstance(cutoff, int | float | np.number) and 0 < cutoff < np.inf):
        raise InputError(f"cutoff is {cutoff!r}; a positive number of Angstrom is needed")
    atoms.require(("charges", "lj_sigma", "lj_epsilon", "gb_radii", "gb_scales"), "the energy")
    check_radii(atoms, model)
    check_span(atoms.positions)
    atoms.require_apart()
