"""Maps by the Poisson-Boltzmann equation: `potmap` with the method pb, and its command."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from test_cli import HEXAPEPTIDE, on_the_chosen_device, run

from pele_ocl import Atoms, Grid, InputError, PBIon, PBModel, PoissonBoltzmann, Potmap, potmap, read, read_map
from pele_ocl.pb_model import LIKE_APBS, salt_of
from pele_ocl.potmap.computing import potmap_models
from pele_ocl.sampling import sample
from pele_ocl.units import COULOMB_KCAL_A

__all__ = ["on_the_chosen_device"]

COARSE = ("--method", "pb", "--spacing", 2, "--padding", 3)
SALT = PBModel(ions=(PBIon(1, 0.15), PBIon(-1, 0.15)), **LIKE_APBS)


@pytest.fixture(scope="module")
def atoms():
    return read(HEXAPEPTIDE)


def test_a_map_is_the_part_of_a_solution_that_is_asked_for(atoms):
    grid = Grid.around(atoms, 3, 2.0)
    found = Potmap(atoms, grid, method="pb", pb=SALT, unit="kT/e").evaluate()
    wide = Grid(grid.origin - 10 * grid.spacing, grid.spacing, [49] * 3)
    assert (wide.last > grid.last + 10).all()
    solved = PoissonBoltzmann(atoms, SALT, grids=wide, reaction=False).solve(grid_error=False).map
    nx, ny, nz = grid.shape
    expected = solved.values[10 : 10 + nz, 10 : 10 + ny, 10 : 10 + nx]
    # Borders are at 10 and at 20 A; potentials reach 100 kT/e.
    assert found.map.values == pytest.approx(expected, rel=0.01, abs=0.05)
    assert (found.method, found.variant, found.model, found.unit) == ("pb", "mgcg", SALT, "kT/e")
    assert found.map.values.dtype == np.float32
    assert "Poisson-Boltzmann potential of 96 atoms" in found.map.title


def test_outside_an_ion_the_potential_is_that_in_water():
    ion = Atoms([[0.1, 0.2, -0.1]], [1.0], gb_radii=[2.0])
    grid = Grid([6, 0, 0], 0.5, (5, 1, 1))  # a map far from the ion, and smaller than multigrid takes
    found = potmap(ion, grid, method="pb", precision="float64").map
    distances = np.linalg.norm(grid.origin + np.arange(5)[:, None] * [0.5, 0, 0] - ion.positions, axis=1)
    assert found.values.ravel() == pytest.approx(COULOMB_KCAL_A / 78.54 / distances, rel=0.01)
    assert (found.unit, found.temperature) == ("kcal/mol/e", None)
    volts = potmap(ion, grid, method="pb", unit="V", precision="float64").map
    assert volts.values == pytest.approx(found.values / 23.0605, rel=1e-4)


def test_models_are_summed_up_and_a_plan_is_pickled(atoms):
    grid = Grid.around(atoms, 1, 2.0)
    moved = replace(atoms, positions=atoms.positions + 0.3)
    both = potmap_models([atoms, moved], grid, method="pb")
    plan = pickle.loads(pickle.dumps(Potmap(atoms, grid, method="pb")))
    one, other = plan.evaluate().map.values, plan.evaluate(moved.positions).map.values
    assert both.maps["avg"].values == pytest.approx((one + other) / 2, rel=1e-5, abs=1e-4)
    assert np.abs(one - other).max() > 1


def test_the_command_says_its_model_and_writes_a_scene(tmp_path):
    report = json.loads(
        run(
            "potmap", HEXAPEPTIDE, *COARSE, "--for-surface", "--solute-dielectric", 4, "--json", "--scene", "pymol",
            "-o", tmp_path / "map.dx",
        ).stdout
    )  # fmt: skip
    settings = report["settings"]
    assert (settings["equation"], settings["surface"], settings["ionic_strength"]) == ("linear", "edges", 0.15)
    assert (settings["solute_dielectric"], settings["solvent_dielectric"]) == (4, 78.54)
    assert settings["radii_set"] == "openmm-obc"
    assert (report["method"], report["variant"], report["unit"]) == ("pb", "mgcg", "kT/e")
    assert "evals_per_second" not in report
    written = read_map(tmp_path / "map.dx")
    assert written.values.max() == pytest.approx(report["max"], rel=1e-4)
    script = (tmp_path / "map.pml").read_text()
    assert "# Poisson-Boltzmann potential of hexapeptide.pdb at its surface, -5 (red) to 5 (blue) kT/e" in script
    assert "ramp_new ramp_Poisson_Boltzmann_potential_kT_e" in script


def test_the_text_says_its_model():
    text = run("potmap", HEXAPEPTIDE, *COARSE, "-v").stdout
    assert (
        "Medium        linear Poisson-Boltzmann, dielectrics 2 and 78.54, no salt; surface edges, probe 1.4 A" in text
    )
    assert "mgcg, float32, on " in text


def test_what_the_equation_has_no_use_for_is_refused(atoms):
    grid = Grid.around(atoms, 3, 2.0)
    for name, value in {"min_distance": 1.0, "field": True, "kappa": 0.1}.items():
        with pytest.raises(InputError, match=rf"the method pb has no option `{name}`; its constants are those of pb="):
            potmap(atoms, grid, method="pb", **{name: value})
    with pytest.raises(InputError, match="`pb` belongs to the method pb, not to direct"):
        potmap(atoms, grid, pb=SALT)
    with pytest.raises(InputError, match="pb is 'water'; expected a PBModel"):
        potmap(atoms, grid, method="pb", pb="water")
    with pytest.raises(InputError, match=r"the temperature is 310 K, and that of the model 298\.15"):
        potmap(atoms, grid, method="pb", pb=SALT, temperature=310.0)
    for name, value in {"dielectric": 60.0, "ionic_strength": 0.1}.items():
        with pytest.raises(InputError, match=f"the method pb has no option `{name}`; its constants are those of pb="):
            potmap(atoms, grid, method="pb", pb=SALT, **{name: value})
    with pytest.raises(InputError, match="the method pb uses one device; 2 are given"):
        potmap(atoms, grid, method="pb", device=[0, 0])
    with pytest.raises(InputError, match="the method pb has no variant 'blocked'; choose auto"):
        potmap(atoms, grid, method="pb", variant="blocked")


def test_the_solvent_has_the_dielectric_and_the_temperature(atoms, tmp_path):
    grid = Grid.around(atoms, 3, 2.0)
    given = potmap(atoms, grid, method="pb", dielectric=60.0, ionic_strength=0.1, temperature=310.0, unit="kT/e").map
    model = PBModel(solvent_dielectric=60.0, ions=salt_of(0.1), temperature=310.0)
    by_model = potmap(atoms, grid, method="pb", pb=model, unit="kT/e").map
    np.testing.assert_array_equal(given.values, by_model.values)
    assert given.temperature == by_model.temperature == 310.0
    water = potmap(atoms, grid, method="pb", unit="kT/e").map
    assert np.abs(given.values - water.values).max() > 0.01 * np.abs(water.values).max()


def test_the_command_refuses_it_too(tmp_path):
    minimum = run("potmap", HEXAPEPTIDE, *COARSE, "--min-distance", 1, code=2)
    assert "the method pb has no option --min-distance" in minimum.output
    dielectric = run("potmap", HEXAPEPTIDE, "--solute-dielectric", 4, code=2)
    assert "--solute-dielectric belongs to the method pb" in dielectric.output
    words = ("-t", tmp_path / "frames.dcd", "-o", tmp_path / "map.dx")
    (tmp_path / "frames.dcd").write_bytes(b"")
    frames = run("potmap", HEXAPEPTIDE, *COARSE, *words, code=2)
    assert "--method pb computes maps of structures and models, not of frames" in frames.output


@pytest.mark.parametrize("boundary", ["mdh", "sdh"])
def test_a_map_of_a_long_charged_molecule_does_not_depend_on_the_box(boundary):
    """Two strands of phosphates, 70 A long, held to a box with twice the room, 2 A and more outside the atoms."""
    turns = np.arange(21) * np.pi / 5
    strands = [np.c_[9 * np.cos(turns + at), 9 * np.sin(turns + at), 3.4 * np.arange(21)] for at in (0, 2.2)]
    core = np.c_[np.zeros((21, 2)), 3.4 * np.arange(21)]
    helix = Atoms(np.concatenate([*strands, core]), [-1.0] * 42 + [0.0] * 21, gb_radii=[2.5] * 42 + [6.0] * 21)
    model, grid = PBModel(ions=SALT.ions), Grid.around(helix, 6, 1.5)
    own_model = replace(model, boundary=boundary)
    found = potmap(helix, grid, method="pb", pb=own_model, unit="kT/e", precision="float64").map
    wide = PoissonBoltzmann(helix, model, spacing=1.5, padding=25, reaction=False).solve(grid_error=False)
    points = grid.position(np.argwhere(np.ones(grid.shape)))
    apart = np.sqrt(((points[:, None] - helix.positions) ** 2).sum(axis=-1)) - helix.gb_radii
    points = points[(apart.min(axis=1) > 2) & (apart.min(axis=1) < 4)]
    expected, own = wide.potential_at(points), sample(found, points)
    assert np.sqrt(((own - expected) ** 2).mean() / (expected**2).mean()) < 0.05
