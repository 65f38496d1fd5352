"""Time of placing an ion, compared with the time of one more atom in a map."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from pele_ocl.atoms import Atoms
from pele_ocl.bench.bounds import MAP, bounded
from pele_ocl.bench.potmap import map_error
from pele_ocl.grid import Grid
from pele_ocl.ions import IonsResult, place_ions
from pele_ocl.opencl.device import Device
from pele_ocl.potmap import potmap
from pele_ocl.reference.potmap import potmap as definition
from pele_ocl.units import COULOMB_KCAL_A


@dataclass(frozen=True)
class Timing:
    """One row of the table; seconds are kernel times.

    map_seconds : of the molecule's map; atom_seconds : per atom of it
    exclusion_seconds : of excluding points near atoms, once
    ions_seconds : of all ions; ion_seconds : per ion; ratio : of an ion to an atom
    map_error : of the molecule's map, by norm; ions_error : largest error of the potentials at the ions over the
        largest potential; both against the float64 reference
    bounds, exact : as in bounds.Timing
    """

    system: str
    n_atoms: int
    shape: tuple[int, int, int]
    n_ions: int
    precision: str
    device: str
    map_seconds: float
    atom_seconds: float
    exclusion_seconds: float
    ions_seconds: float
    ion_seconds: float
    ratio: float
    map_error: float
    ions_error: float
    bounds: dict[str, float] = field(default_factory=dict)
    exact: bool = True


def grid_for(atoms: Atoms, points: int | None) -> Grid:
    """Return a grid of `points` per edge, 0.5 A apart, centred on the molecule; by default 10 A around it."""
    if points is None:
        return Grid.around(atoms)
    middle = (atoms.positions.min(axis=0) + atoms.positions.max(axis=0)) / 2
    return Grid(np.round(2 * middle) / 2 - points // 2 * 0.5 + 0.01, 0.5, (points, points, points))


def measure(
    name: str, atoms: Atoms, grid: Grid, n_pairs: int, precisions: list[str], device: Device, runs: int
) -> Iterator[Timing]:
    """Place pairs of sodium and chloride in the map of a molecule; the fastest of some runs after a first one.

    The runs of map and ions alternate, so that other programs affect both equally.
    """
    for precision in precisions:
        maps, exclusions, ions = list[float](), list[float](), list[float]()
        for _ in range(runs + 1):
            molecule = potmap(atoms, grid, precision=precision, device=device, min_distance=0)
            result = place_ions(
                atoms, {"NA": n_pairs, "CL": n_pairs}, map=molecule.map, precision=precision, device=device
            )
            maps.append(molecule.seconds["kernel"])
            exclusions.append(result.seconds["exclusion"])
            ions.append(result.seconds["ions"])
        map_seconds, ions_seconds = min(maps[1:]), min(ions[1:])
        atom, ion = map_seconds / len(atoms), ions_seconds / (2 * n_pairs)
        yield Timing(
            name, len(atoms), grid.shape, 2 * n_pairs, precision, str(device), map_seconds, atom,
            min(exclusions[1:]), ions_seconds, ion, ion / atom, map_error(atoms, grid, molecule.map.values),
            _ions_error(result), bounded(map_error=MAP[precision], ions_error=MAP[precision]),
        )  # fmt: skip


def _ions_error(result: IonsResult) -> float:
    """Return the largest error of the potentials at the ions, relative to the largest potential."""
    exact = np.array([definition(result.atoms, Grid(at, 1, (1, 1, 1)))[0, 0, 0] for at in result.positions])
    for k in range(1, len(result)):
        distances = np.linalg.norm(result.positions[:k] - result.positions[k], axis=1)
        exact[k] += COULOMB_KCAL_A * float((result.charges[:k] / distances).sum())
    return float(np.abs(result.potentials - exact).max() / np.abs(exact).max())
