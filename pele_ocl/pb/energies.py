"""Energies of a potential on a grid, kT; see docs/theory/poisson-boltzmann.md, section 6."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..grid import Grid
from ..pb_model import SMALL, PBModel, PBProblem
from .border import interpolated
from .charges import NodeCharges
from .equation import LARGEST_EXPONENT, StoppedError

if TYPE_CHECKING:
    from .equation import Equation

GROUP_OF_IONS, GROUPS_OF_IONS = 256, 1024  # work-group size and maximum number of groups for sums over nodes


def energy_terms(
    problem: PBProblem, grid: Grid, potential: Floats, charges: NodeCharges, edges: Floats | None,
    accesses: Floats | None, outside: Grid | None = None,
) -> Floats:  # fmt: skip
    """Compute charges times potential, field energy and ion energy, (3,) kT; without edges only the first is not 0.

    potential : (nz, ny, nx) kT/e
    edges : (3, nz, ny, nx) coefficients; accesses : (nz, ny, nx) accessibility for ions
    outside : grid whose interior is excluded
    """
    solute, model = problem.solute, problem.model
    counts = np.ones(potential.shape)
    on = ((solute.positions >= grid.origin) & (solute.positions <= grid.last)).all(axis=1)
    if outside is not None:
        low, high, half = outside.origin, outside.last, grid.spacing / 2
        within = [(axis > low[a] - half[a]) & (axis < high[a] + half[a]) for a, axis in enumerate(grid.axes())]
        counts[np.ix_(*within[::-1])] = 0  # exclude nodes whose cells touch the box
        on &= ~((solute.positions > low - 1e-12) & (solute.positions < high + 1e-12)).all(axis=1)
    if problem.has_charges_of_nodes:
        z, y, x = charges.nodes[:, 2], charges.nodes[:, 1], charges.nodes[:, 0]
        charged = float((counts[z, y, x] * potential[z, y, x] * charges.charges).sum())
    else:
        charged = float((solute.charges[on] * interpolated(potential, grid, solute.positions[on])).sum())
    if edges is None or accesses is None:
        return np.array([charged, 0, 0])
    strain = 0.0
    lower = (slice(0, -1),) * 3  # without edges in the three upper faces, as in APBS
    for axis in range(3):
        upper = tuple(slice(1, None) if k == 2 - axis else slice(0, -1) for k in range(3))
        squares = (potential[lower] - potential[upper]) ** 2
        strain += float((edges[axis][lower] * 0.5 * (counts[lower] + counts[upper]) * squares).sum())
    strain *= 0.5 / model.charge_factor
    of_ions = pressure if model.is_nonlinear else linear_pressure
    return np.array([charged, strain, of_ions(model, grid, potential, counts * accesses)])


def pressure(model: PBModel, grid: Grid, potential: Floats, accesses: Floats) -> float:
    """Return the osmotic term of the ions, kT. Raises StoppedError if the potential is too large."""
    reached, total = accesses > SMALL, 0.0  # exponentials may overflow elsewhere
    for ion in model.ions:
        exponents = -ion.charge * potential[reached]
        if exponents.size and not exponents.max() <= LARGEST_EXPONENT:
            raise StoppedError(
                f"the potential is {abs(exponents.max() / ion.charge):.0f} kT/e where ions of charge {ion.charge:g} "
                "are allowed, which is impossible in the nonlinear equation; check charges, radii and "
                "dielectric constants"
            )
        factor = 0.5 * model.screening / model.ionic_strength * ion.concentration
        total += float((accesses[reached] * factor * np.expm1(exponents)).sum())
    return total * float(np.prod(grid.spacing)) / model.charge_factor


def linear_pressure(model: PBModel, grid: Grid, potential: Floats, accesses: Floats) -> float:
    """Return the ion term of the linear equation, as in APBS's `calcenergy comps`, kT."""
    volume = float(np.prod(grid.spacing))
    return 0.5 * model.screening * float((accesses * potential**2).sum()) * volume / model.charge_factor


def ions_of_reaction(equation: Equation, grid: Grid, number: int = 0) -> float:
    """Compute the ion energy on the device, kT.

    This is minus half of the ion charges times the potential, minus the osmotic term.

    number : of the row. Returns NaN if the potential is too large.
    """
    model, launching, queue = equation.model, equation.launching, equation.launching.queue
    group = 1 if launching.is_cpu else min(GROUP_OF_IONS, queue.device.largest_group)
    size, first = equation.colours.size, equation.colours.of_row(number).first
    chunk = -(-size // GROUPS_OF_IONS // group) * group + group
    n_groups = -(-size // chunk)
    sums = queue.empty(n_groups, launching.wide)
    ions = np.array([(ion.charge, ion.concentration) for ion in model.ions])
    coded = int(equation.coefficients.is_coded)
    launching.prepare(
        "pb/ions.cl", "sum_ions", (n_groups * group,), (group,),
        {"GROUP": group, "CODED": coded, "LARGEST_EXPONENT": LARGEST_EXPONENT},
        first=first, n=size, chunk=chunk, n_ions=len(ions), ions=queue.send(ions, launching.wide),
        accesses=equation.coefficients.accesses, potential=equation.potential, sums=sums,
    )()  # fmt: skip
    total = float(queue.download(sums, n_groups, launching.wide).astype(np.float64).sum())
    return 0.5 * model.screening / model.ionic_strength * total * float(np.prod(grid.spacing)) / model.charge_factor


def total_energy(terms: NDArray[np.floating], model: PBModel) -> float:
    """Return the total of the energy terms, kT."""
    return float(terms[0] - terms[1] - terms[2]) if model.is_nonlinear else float(0.5 * terms[0])
