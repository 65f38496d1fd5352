"""What stays the same for all conformations of a molecule, on the device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..atoms import Atoms, Floats
from ..charges import rounded_charges
from ..opencl.shared import READY_TERMS
from ..pairs import exclusions
from ..solvent.tiled import series_coefficients
from ..solvent_model import SolventModel
from ..tiles import ORIGIN_STEP, Tiles
from ..units import COULOMB_KCAL_A
from .masks import Masks

if TYPE_CHECKING:
    from ..opencl.kernels import Run


@dataclass(frozen=True, eq=False)
class Tables:
    """Buffers of the atoms in the order of their places.

    largest_rho : A
    order, counts : which atom stands at each place, and how many atoms a tile has
    parameters : (5, n_places) those of ATOM_ARGUMENTS in cl/energy/terms.clh
    scaled, charges, sigmas, epsilons : (n_places,); unused places have no sphere, no charge and no well
    coefficients, slopes, slope_columns : of the HCT series and of its slope, for single atoms and for vectors
    largest_s : (n_tiles,) largest scaled radius of each tile
    masks : starts, partners and words of Masks
    """

    largest_rho: float
    order: Any
    counts: Any
    parameters: Any
    scaled: Any
    charges: Any
    sigmas: Any
    epsilons: Any
    coefficients: Any
    coefficient_columns: Any
    slopes: Any
    slope_columns: Any
    largest_s: Any
    masks: tuple[Any, ...]

    @property
    def rho(self) -> Any:
        """(n_places,) offset radii, with which the parameters begin."""
        return self.parameters

    @classmethod
    def of(
        cls, run: Run, atoms: Atoms, tiles: Tiles, model: SolventModel, one_four: Literal["scale", "exclude"],
        variant: str, row_tiles: int,
    ) -> Tables:  # fmt: skip
        """The tables of a molecule for the kernels of a variant."""
        assert atoms.gb_radii is not None
        assert atoms.gb_scales is not None
        assert atoms.lj_sigma is not None
        assert atoms.lj_epsilon is not None
        rho = atoms.gb_radii - model.offset
        scaled = atoms.gb_scales * rho

        def by_place(values: Floats, unused: float | None = 0.0) -> Floats:
            placed: Floats = values[tiles.order]
            return placed if unused is None else np.where(tiles.used, placed, unused)

        charges = atoms.charges * math.sqrt(COULOMB_KCAL_A / model.solute_dielectric)
        if run.precision == "float32":
            charges = rounded_charges(charges).astype(np.float64)
        sigma = np.sqrt(atoms.lj_sigma) if atoms.combining == "geometric" else atoms.lj_sigma / 2
        epsilon = np.sqrt(4 * atoms.lj_epsilon)
        pair_parameters = by_place(charges), by_place(sigma, None), by_place(epsilon)
        coefficients = series_coefficients(by_place(scaled))
        slopes = coefficients * (2 * np.arange(1, READY_TERMS + 1)[:, None] + 2)
        column = np.zeros(tiles.n_places)
        return cls(
            float(rho.max()),
            run.upload(tiles.order, np.int32),
            run.upload(tiles.counts, np.int32),
            run.upload(np.stack([by_place(rho, None), by_place(atoms.gb_radii, None), *pair_parameters])),
            run.upload(by_place(scaled)),
            run.upload(pair_parameters[0]),
            run.upload(pair_parameters[1]),
            run.upload(pair_parameters[2]),
            run.upload(np.column_stack([column, coefficients.T])),
            run.upload(coefficients),
            run.upload(np.column_stack([slopes.T, column])),
            run.upload(slopes),
            run.upload(tiles.largest(scaled)),
            _masks(run, atoms, tiles, one_four, variant, row_tiles),
        )


def _masks(
    run: Run, atoms: Atoms, tiles: Tiles, one_four: Literal["scale", "exclude"], variant: str, row_tiles: int
) -> tuple[Any, ...]:
    excluded, scaled = exclusions(atoms.bonds, len(atoms))
    if one_four == "exclude":
        excluded, scaled = np.concatenate([excluded, scaled]), scaled[:0]
    masks = Masks.of(tiles, excluded, scaled, variant, row_tiles)
    words = masks.words.view(np.int32) if run.precision == "float32" else masks.words.astype(np.int64)
    return run.upload(masks.starts, np.int32), run.upload(masks.partners, np.int32), run.upload(words, words.dtype)


@dataclass(frozen=True)
class Fixed:
    """How positions are handed to a device: from their middle, in float32 as fixed-point numbers of 32 bits.

    step : A of one unit; reach : A that a position may have from the middle; origin_step : of tiles' origins, in units
    base : A; a float64 to which it is added is rounded to whole steps, which are then its low bits
    """

    step: float
    reach: float
    origin_step: Any
    base: float

    @classmethod
    def of(cls, precision: str, span: float) -> Fixed:
        """For molecules of about this span, A."""
        if precision == "float64":
            return cls(1.0, math.inf, np.float64(ORIGIN_STEP), 0.0)
        reach = 2.0 ** math.ceil(math.log2(span + 64))
        step = reach / 2**30
        return cls(step, reach, np.int32(max(1, round(ORIGIN_STEP / step))), 1.5 * 2**52 * step)
