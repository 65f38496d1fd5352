"""Accuracy of float32 for pairs much closer than atoms come: docs/theory/energy.md and nonbond.md, "Close pairs"."""

from __future__ import annotations

import numpy as np
import pytest
from tolerance import COORDINATE, FLOAT32_PARTS

from pele_ocl import Atoms, Energy
from pele_ocl.nonbond import Nonbond
from pele_ocl.pairs import PairList
from pele_ocl.units import COULOMB_KCAL_A

SIGMA, EPSILON = 3.0, 0.1


def molecule_with_a_close_pair(r: float, reach: float, rng: np.random.Generator) -> Atoms:
    """Atoms 0 and 1 at distance r in the middle of twelve others, which reach so far."""
    along, middle = rng.normal(size=3), rng.uniform(-0.3, 0.3, 3) * reach
    others = rng.uniform(0.5, 1, (12, 3)) * reach * rng.choice([-1, 1], (12, 1))
    n = 14
    return Atoms(
        positions=np.vstack([middle, middle + r * along / np.linalg.norm(along), others]),
        charges=rng.normal(0, 0.3, n),
        lj_sigma=np.full(n, SIGMA),
        lj_epsilon=np.full(n, EPSILON),
        gb_radii=np.full(n, 1.7),
        gb_scales=np.full(n, 0.8),
    )


def parts_of_the_pair(atoms: Atoms, r: float) -> tuple[float, float]:
    """Sizes of what is added up in the pair's energy and in its gradient."""
    b = 4 * EPSILON * (SIGMA / r) ** 6
    a, coulomb = b * (SIGMA / r) ** 6, COULOMB_KCAL_A * abs(atoms.charges[0] * atoms.charges[1]) / r
    return a + b + 2 * coulomb, (12 * a + 6 * b + 2 * coulomb) / r


@pytest.mark.parametrize("r", [0.01, 0.03, 0.1, 0.3, 1.0, 3.0])
def test_the_error_is_that_of_the_coordinates(r, device):
    device.require_precision("float64")
    rng = np.random.default_rng(int(1000 * r))
    for reach in (3.0, 10.0, 30.0):
        atoms = molecule_with_a_close_pair(r, reach, rng)
        energy_parts, gradient_parts = parts_of_the_pair(atoms, r)
        first, second = np.triu_indices(len(atoms), 1)
        closest = np.linalg.norm(atoms.positions[first] - atoms.positions[second], axis=1)[1:].min()  # of the others
        for quantity in ("energy", "nonbond"):
            if quantity == "energy":
                plans = [Energy(atoms, precision=precision, device=device) for precision in ("float32", "float64")]
                found, exact = (plan.evaluate() for plan in plans)
            else:
                pairs = PairList(len(atoms), np.array([0]), np.array([1]))
                found, exact = (
                    Nonbond(atoms, pairs, precision=precision, device=device, solvent="vacuum").evaluate()
                    for precision in ("float32", "float64")
                )
            others = abs(exact.total) if quantity == "energy" else 0.0
            bound, bound_of_others = (FLOAT32_PARTS + 13 * COORDINATE[quantity](reach) / each for each in (r, closest))
            assert abs(found.total - exact.total) <= bound * energy_parts + bound_of_others * others
            worst = np.linalg.norm(found.gradient[:2] - exact.gradient[:2], axis=1).max()
            assert worst <= bound * gradient_parts + FLOAT32_PARTS * np.linalg.norm(exact.gradient), (quantity, reach)
