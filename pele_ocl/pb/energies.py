"""Energies of a potential on a grid, kT: docs/theory/poisson-boltzmann.md, section 6."""

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

GROUP_OF_IONS, GROUPS_OF_IONS = 256, 1024  # work-items of a group, and groups at most, that sum over nodes


def energy_terms(
    problem: PBProblem, grid: Grid, potential: Floats, charges: NodeCharges, edges: Floats | None,
    accesses: Floats | None, outside: Grid | None = None,
) -> Floats:  # fmt: skip
    """Charges in the potential, the field's energy and the ions' energy, (3,) kT; without edges the last two are 0.

    potential : (nz, ny, nx) kT/e
    edges : (3, nz, ny, nx) coefficients; accesses : (nz, ny, nx) of ions
    outside : only what lies outside this grid counts
    """
    solute, model = problem.solute, problem.model
    counts = np.ones(potential.shape)
    on = ((solute.positions >= grid.origin) & (solute.positions <= grid.last)).all(axis=1)
    if outside is not None:
        low, high, half = outside.origin, outside.last, grid.spacing / 2
        within = [(axis > low[a] - half[a]) & (axis < high[a] + half[a]) for a, axis in enumerate(grid.axes())]
        counts[np.ix_(*within[::-1])] = 0  # a node counts within where its cell touches the box
        on &= ~((solute.positions > low - 1e-12) & (solute.positions < high + 1e-12)).all(axis=1)
    if problem.has_charges_of_nodes:
        z, y, x = charges.nodes[:, 2], charges.nodes[:, 1], charges.nodes[:, 0]
        charged = float((counts[z, y, x] * potential[z, y, x] * charges.charges).sum())
    else:
        charged = float((solute.charges[on] * interpolated(potential, grid, solute.positions[on])).sum())
    if edges is None or accesses is None:
        return np.array([charged, 0, 0])
    strain = 0.0
    lower = (slice(0, -1),) * 3  # edges in the three upper faces do not count, as in APBS
    for axis in range(3):
        upper = tuple(slice(1, None) if k == 2 - axis else slice(0, -1) for k in range(3))
        squares = (potential[lower] - potential[upper]) ** 2
        strain += float((edges[axis][lower] * 0.5 * (counts[lower] + counts[upper]) * squares).sum())
    strain *= 0.5 / model.charge_factor
    of_ions = pressure if model.is_nonlinear else linear_pressure
    return np.array([charged, strain, of_ions(model, grid, potential, counts * accesses)])


def pressure(model: PBModel, grid: Grid, potential: Floats, accesses: Floats) -> float:
    """Osmotic term of the ions, kT. Raises StoppedError for a potential that no ions could have."""
    reached, total = accesses > SMALL, 0.0  # elsewhere exponentials may overflow
    for ion in model.ions:
        exponents = -ion.charge * potential[reached]
        if exponents.size and not exponents.max() <= LARGEST_EXPONENT:
            raise StoppedError(
                f"the potential is {abs(exponents.max() / ion.charge):.0f} kT/e where ions of charge {ion.charge:g} "
                "can be, which the nonlinear equation cannot have; check charges, radii and dielectric constants"
            )
        factor = 0.5 * model.screening / model.ionic_strength * ion.concentration
        total += float((accesses[reached] * factor * np.expm1(exponents)).sum())
    return total * float(np.prod(grid.spacing)) / model.charge_factor


def linear_pressure(model: PBModel, grid: Grid, potential: Floats, accesses: Floats) -> float:
    """Ions' term of the linear equation, as in APBS's `calcenergy comps`, kT."""
    volume = float(np.prod(grid.spacing))
    return 0.5 * model.screening * float((accesses * potential**2).sum()) * volume / model.charge_factor


def ions_of_reaction(equation: Equation, grid: Grid, number: int = 0) -> float:
    """Sum the ions' energy on the device, kT: minus half of their charge times the potential, less their pressure.

    number : of the row. NaN for a potential that no ions could have.
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
    """Energy of its terms, kT."""
    return float(terms[0] - terms[1] - terms[2]) if model.is_nonlinear else float(0.5 * terms[0])
