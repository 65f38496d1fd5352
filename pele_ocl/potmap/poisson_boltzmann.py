"""Maps from the Poisson-Boltzmann equation, solved on a grid that contains the points of the map.

The grid is larger than the map, because multigrid requires suitable numbers of points. Its boundary values come from an
even larger, coarser grid, because formulas for boundary values are only accurate far from a molecule, especially if it
is long or highly charged.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms, Floats
from ..common import arguments
from ..common.errors import InputError, KeywordError
from ..common.variant import Progress
from ..grid import Grid, Map
from ..pb import PBModel, PoissonBoltzmann
from ..pb_model import PBSolute, grid_beyond, salt_of
from .options import MapOptions, pb_facts
from .result import PotmapResult

if TYPE_CHECKING:
    from ..opencl.device import Device

METHOD = "pb"
SOLVER = "mgcg"
WIDTH = 10.0  # A; minimum distance of atoms from the border, as in pictures of potentials
TOLERANCE = 1e-5  # of the solver, relative norm
# Options that are fields of PBModel, or that do not apply to this method.
_OF_OTHERS = ("distance_dependent", "kappa", "min_distance", "field", "smooth")
_OF_MODEL = ("dielectric", "solute_dielectric", "ionic_strength")


def require_pb(options: MapOptions) -> PBModel:
    """Return the model of a map. Raises InputError for options that do not apply or contradict the model."""
    refused = _OF_OTHERS if options.pb is None else (*_OF_OTHERS, *_OF_MODEL)
    for field in fields(options):
        if field.name in refused and getattr(options, field.name) != field.default:
            raise KeywordError(
                f"the method pb has no option `{field.name}`; its constants are those of pb=PBModel(...), and it "
                "computes no field"
            )
    if options.pb is None:
        inside, outside = options.solute_dielectric, options.dielectric
        return PBModel(
            PBModel.solute_dielectric if inside is None else inside,
            PBModel.solvent_dielectric if outside is None else outside, salt_of(options.ionic_strength),
            options.temperature,
        )  # fmt: skip
    model = arguments.instance("pb", options.pb, PBModel, "a PBModel")
    if options.temperature not in (MapOptions.temperature, model.temperature):
        raise InputError(
            f"the temperature is {options.temperature:g} K, and that of the model {model.temperature:g}; leave out the "
            "former"
        )
    return model


def solving_grid(atoms: Atoms, grid: Grid) -> tuple[Grid, Floats]:
    """Return the grid for the solver, and the indices of the map's first point in it, (3,) along x, y, z."""
    step = grid.spacing
    low = np.ceil((grid.origin - atoms.positions.min(axis=0) + WIDTH) / step - 1e-9).clip(0)
    high = np.ceil((atoms.positions.max(axis=0) + WIDTH - grid.last) / step - 1e-9).clip(0)
    steps = np.array(grid.shape) - 1 + low + high
    multiple = np.where(steps > 32, 16, 8)
    wanted = np.ceil(steps / multiple) * multiple
    low += (wanted - steps) // 2
    return Grid(grid.origin - low * step, step, (wanted + 1).astype(np.int64)), low


def pb_plan(atoms: Atoms, grid: Grid, options: MapOptions) -> tuple[PoissonBoltzmann, Floats]:
    """Return the plan of a map, and the indices of the map's first point. Raises InputError and ParameterError."""
    model, (wide, first) = require_pb(options), solving_grid(atoms, grid)
    beyond = grid_beyond(wide, PBSolute.of(atoms, needs_spheres=False), model.boundary)
    plan = PoissonBoltzmann(
        atoms, model, grids=(beyond, wide), reaction=False, solver=SOLVER, tolerance=TOLERANCE,
        device=_one_device(options),
    )  # fmt: skip
    plan.device.require_precision(options.precision)
    return plan, first


def pb_map(atoms: Atoms, grid: Grid, options: MapOptions, progress: Progress | None) -> PotmapResult:
    """Solve the equation for a map. Raises InputError and ParameterError as `PoissonBoltzmann` does."""
    start = time.perf_counter()
    plan, first = pb_plan(atoms, grid, options)
    solved = plan.solve(grid_error=False, progress=progress)
    assert solved.map is not None
    part = tuple(slice(int(k), int(k) + n) for k, n in zip(first[::-1], grid.shape[::-1], strict=True))
    values = np.ascontiguousarray(solved.map.values[part], options.precision)
    whole = Map.owning(grid, values, "kT/e", solved.map.title, plan.model.temperature)
    found = whole.in_unit(options.unit, plan.model.temperature)
    return PotmapResult(
        map=found if options.unit == "kT/e" else replace(found, temperature=None),
        field=None,
        n_atoms=len(atoms),
        device=solved.device,
        variant=SOLVER,
        precision=options.precision,
        seconds={"kernel": solved.seconds["surface"] + solved.seconds["solver"], "total": time.perf_counter() - start},
        method=METHOD,
        atoms=atoms,
        model=plan.model,
        settings=pb_facts(atoms, plan.model),
    )


def _one_device(options: MapOptions) -> Device | int | str | None:
    """Return the device. Raises InputError if several are given."""
    device = options.device
    if device is None or isinstance(device, str) or not isinstance(device, Sequence):
        return device
    if len(device) != 1:
        raise InputError(f"the method pb uses one device; {len(device)} are given")
    return device[0]
