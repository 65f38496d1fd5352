"""docs/extend/driver.md: both drivers as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_minimize import PEPTIDE

from pele_ocl import Atoms, Ensemble, minimize

PAGE = (Path(__file__).parent.parent / "docs" / "extend" / "driver.md").read_text()


@pytest.fixture(scope="module")
def start() -> Atoms:
    return minimize(PEPTIDE, tolerance=0.5).atoms


@pytest.fixture
def driver(tmp_path: Path):
    """Write the kernel of a driver to a file, and give its class and that file."""

    def made(name: str) -> tuple[Any, Path]:
        section = PAGE[PAGE.index(f"`{name}.cl`") :]
        kernel, code = (re.search(rf"```{kind}\n(.*?)```", section, re.DOTALL)[1] for kind in ("c", "python"))
        assert max(kernel.count("\n"), code.count("\n")) < 100
        file, names = tmp_path / f"{name}.cl", dict[str, Any]()
        file.write_text(kernel)
        exec(compile(code, f"{name}.py", "exec"), names)
        return names[name.capitalize()], file

    return made


def test_dynamics_keep_the_energy_and_rows_have_no_company(device, driver, start):
    verlet, file = driver("verlet")
    ensemble = Ensemble([start, start, start[:30]], device=device)
    ensemble.frozen[1] = [0]
    dynamics = verlet(ensemble, file, temperature=100.0)
    dynamics.step()
    first = dynamics.energies()
    dynamics.step(200)
    kinetic = dynamics.energies() - ensemble.energies
    assert (kinetic > 2).all()
    np.testing.assert_allclose(dynamics.energies(), first, atol=0.2)
    moved = [np.abs(ensemble.positions[k] - start.positions).max(axis=1) for k in range(2)]
    assert min(moved[0].max(), moved[1].max()) > 0.1
    assert moved[1][0] < 1e-12
    alone = Ensemble(start, device=device)
    other = verlet(alone, file, temperature=100.0)
    same = verlet(Ensemble([start, start, start[:30]], device=device), file, temperature=100.0)
    other.velocities.write(same.velocities.read(0))
    other.step(201)
    np.testing.assert_array_equal(alone.positions[0], ensemble.positions[0])


def test_walks_accept_by_the_energy_and_are_the_same_in_any_company(device, driver, start):
    metropolis, file = driver("metropolis")
    walks = metropolis(Ensemble(start, 3, device=device), file, seed=7)
    walks.step(60)
    count, current = walks.count.read().ravel(), walks.current.read().ravel()
    assert (count > 5).all()
    assert (count < 60).all()
    assert len(set(current.tolist())) == 3
    np.testing.assert_allclose(walks.ensemble.evaluate().energies, current, atol=1e-6)
    alone = metropolis(Ensemble(start, device=device), file, seed=7)
    alone.step(60)
    np.testing.assert_array_equal(alone.ensemble.positions[0], walks.ensemble.positions[0])
    assert alone.count.read().ravel()[0] == count[0]
    cold = metropolis(Ensemble(start, device=device), file, temperature=1e-3, seed=1)
    before = cold.current.read().item()
    cold.step(40)
    assert cold.current.read().item() <= before


def test_swaps_are_accepted_by_the_energy(device, start):
    """Like atoms always change places; unlike ones, into each other's bonds, never."""
    (code,) = re.findall(r"```python\n(import numpy as np\n\n\ndef swap\(.*?)```", PAGE, re.DOTALL)
    names = dict[str, Any]()
    exec(compile(code, "swap.py", "exec"), names)
    ensemble = Ensemble(start, copies=3, device=device)
    first, hydrogens = ensemble.evaluate().energies, methyl_hydrogens(start)
    energies, accepted = names["swap"](ensemble, hydrogens[:1], hydrogens[1:], 4)
    np.testing.assert_allclose(accepted, 1.0)
    np.testing.assert_allclose(energies, first, atol=0.5)
    np.testing.assert_allclose(ensemble.evaluate().energies, energies, atol=1e-6)
    there = ensemble.positions[:]
    _, accepted = names["swap"](ensemble, [0], [len(start) - 1], 2)
    np.testing.assert_array_equal(accepted, 0)
    np.testing.assert_allclose(ensemble.positions[:], there, atol=1e-6)


def methyl_hydrogens(atoms: Atoms) -> list[int]:
    """Find three hydrogens of one carbon."""
    bonds = atoms.bonded.bonds.atoms.tolist()
    for carbon in range(len(atoms)):
        others = [i + j - carbon for i, j in bonds if carbon in (i, j)]
        found = [k for k in others if atoms.labels.elements[k] == "H"]
        if len(found) == 3 and atoms.labels.elements[carbon] == "C":
            return found
    raise AssertionError


def test_basin_hopping_keeps_minima_and_goes_down(device, start):
    (code,) = re.findall(r"```python\n(import numpy as np\n\n\ndef hop\(.*?)```", PAGE, re.DOTALL)
    names = dict[str, Any]()
    exec(compile(code, "hopping.py", "exec"), names)
    part = start[:30]
    ensemble = Ensemble(part, copies=4, device=device)
    first = minimize(part, device=device).energy_after.total
    lowest = names["hop"](ensemble, 2, kt=1e-6)
    assert lowest.shape == (2,)
    assert (lowest <= first + 0.01).all()
    np.testing.assert_array_equal(ensemble.evaluate([2, 3]).energies[[2, 3]], lowest)
