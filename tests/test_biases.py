"""Biases on collective variables: their kernels, metadynamics beside a model in NumPy, exchanges, and free energies."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess

import numpy as np
import pytest
from conftest import labels_of_elements, require
from test_minimize import PEPTIDE, VACUUM

from pele_ocl import (
    MBAR,
    OPES,
    Atoms,
    BiasSamples,
    ColvarFiles,
    DatasetFile,
    DistanceVariable,
    Energy,
    Ensemble,
    FormatError,
    GridBias,
    GyrationVariable,
    InputError,
    Metadynamics,
    RMSDVariable,
    SimulatedTempering,
    Simulation,
    SolventModel,
    StateSamples,
    TorsionVariable,
    free_energy,
    rest2,
    simulate,
    umbrella,
)
from pele_ocl.energy.terms.grid_bias import hill, interpolated, interpolated_at
from pele_ocl.opencl import Device
from pele_ocl.units import BOLTZMANN_KCAL

ATOMS = PEPTIDE[:30]
PHI, PSI = TorsionVariable([4, 6, 8, 14]), TorsionVariable([6, 8, 14, 16])
SIZE = GyrationVariable(range(30))
RNG = np.random.default_rng(5)
REFERENCE = ATOMS.positions[:, ::-1] * [1, 1, -1] + RNG.normal(0, 0.5, (30, 3))  # turned, and deformed
BIASES = {
    "torsion": ([PHI], [None]),
    "distance": ([DistanceVariable(3, 25)], [(0.0, 30.0)]),
    "centres": ([DistanceVariable([0, 1, 2], [20, 21])], [(0.0, 30.0)]),
    "gyration": ([SIZE], [(0.0, 12.0)]),
    "rmsd": ([RMSDVariable(range(30), REFERENCE)], [(0.0, 6.0)]),
    "two": ([PHI, PSI], [None, None]),
    "three": ([PHI, RMSDVariable(range(5, 30), REFERENCE), DistanceVariable(0, 20)], [None, (0.0, 9.0), (0.0, 30.0)]),
}


def bias_of(name: str, n: int = 9) -> GridBias:
    variables, bounds = BIASES[name]
    d = len(variables)
    return GridBias(variables, np.random.default_rng(d).normal(0, 1, (*[n] * d, 1 << d)), bounds)


@pytest.mark.parametrize("name", BIASES)
def test_kernels_of_biases_are_their_definition(device, precision, name):
    bias, options = bias_of(name), {"device": device, "precision": precision}
    moved = ATOMS.moved(ATOMS.positions + np.random.default_rng(2).normal(0, 0.1, (30, 3)))
    energies, gradient = bias.energies(moved)
    along = np.random.default_rng(1).normal(size=(30, 3))
    up, down = (bias.energies(moved.moved(moved.positions + h * along))[0].sum() for h in (1e-5, -1e-5))
    assert (up - down) / 2e-5 == pytest.approx((gradient * along).sum(), rel=1e-6)
    bare = Energy(ATOMS, **options).evaluate(moved.positions)
    found = Energy(ATOMS, terms=[bias], **options).evaluate(moved.positions)
    bound = 1e-5 if precision == "float32" else 1e-11
    assert found.bias == pytest.approx(energies.sum(), rel=bound)
    np.testing.assert_allclose(found.gradient - bare.gradient, gradient, atol=3 * bound * np.abs(bare.gradient).max())


def test_groups_of_work_items_share_a_bias(device, monkeypatch, launches_of_gpus):
    """As GPUs have them: a variable is summed up by a group."""
    alone = Ensemble(ATOMS, 2, terms=[bias_of("three")], device=device).evaluate().terms().bias
    monkeypatch.setattr(Device, "kind", "GPU")
    with launches_of_gpus():
        together = Ensemble(ATOMS, 2, terms=[bias_of("three")], variant="blocks", device=device).evaluate().terms().bias
    np.testing.assert_allclose(together, alone, rtol=1e-6)


def test_rows_have_grids_of_their_own(device):
    bias = bias_of("two")
    rows = Ensemble(ATOMS, 2, terms=[bias], device=device).evaluate()
    before = rows.terms().bias
    rows.values("bias", "grid")[1] = 2 * np.asarray(bias.grid)
    np.testing.assert_allclose(rows.evaluate().terms().bias, before * [1, 2], rtol=1e-6)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(rows)).evaluate().terms().bias, before * [1, 2], rtol=1e-6)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", ["two", "gyration"])
def test_metadynamics_adds_the_hills_of_a_model(device, tmp_path, shared, name):
    """Heights, the grid and energies after each hill; the same bits after a checkpoint, between hills and at one."""
    variables, bounds = BIASES[name]
    widths = [0.35, 0.3][: len(variables)] if name == "two" else [0.2]
    term = Metadynamics(variables, widths, 0.5, 5, bias_factor=4.0, bounds=bounds, shared=shared)
    options = dict(terms=[term], timestep=1.0, temperature=[300, 350, 400], seed=2, device=device)
    simulation = Simulation(ATOMS, 3, **options)
    grids = [np.zeros_like(term.first_grid) for _ in range(3)]

    def check(of: Simulation) -> None:
        values, hills = of.variables("metadynamics"), of.hills("metadynamics")
        np.testing.assert_array_equal(hills[:, :-1], values)
        before = np.array([interpolated(grid, term.axes, x)[0] for grid, x in zip(grids, values, strict=True)])
        np.testing.assert_allclose(hills[:, -1], term.heights(before, of.temperatures), rtol=1e-5)
        new = [height * hill(term.axes, x, widths) for height, x in zip(hills[:, -1], values, strict=True)]
        for k, grid in enumerate(grids):
            grid += sum(new) if shared else new[k]
        found = of.ensemble.values("metadynamics", "grid")[:]
        np.testing.assert_allclose(found, grids, rtol=1e-5, atol=1e-6)
        after = [interpolated(grid, term.axes, x)[0] for grid, x in zip(grids, values, strict=True)]
        np.testing.assert_allclose(of.bias_energies("metadynamics"), after, rtol=1e-5)
        np.testing.assert_allclose(of.term_energies.metadynamics, after, rtol=1e-5)

    simulation.run(20, every=5, call=check)
    assert (simulation.bias_energies("metadynamics") > 0.5).all()
    whole = simulation.run(12)
    for steps in (15, 23):
        part = Simulation(ATOMS, 3, **options).run(steps)
        part.save(tmp_path / "part.npz")
        again = Simulation(ATOMS, 3, **options).restore(tmp_path / "part.npz").run(32 - steps)
        np.testing.assert_array_equal(again.positions[:], whole.positions[:])
        grid = whole.ensemble.values("metadynamics", "grid")[:]
        np.testing.assert_array_equal(again.ensemble.values("metadynamics", "grid")[:], grid)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(again)).positions[:], whole.positions[:])
    nodes, surface = whole.metadynamics_surface("metadynamics", 1)
    assert surface.shape == tuple(map(len, nodes))
    assert surface.min() == 0


def bias_of_density(term: OPES, density: np.ndarray, temperature: float) -> np.ndarray:
    """Values and derivatives of the bias of OPES by those of its density."""
    kt, p = BOLTZMANN_KCAL * temperature, density[..., 0]
    share = 1 - (1 / term.bias_factor if term.bias_factor else kt / term.barrier)
    explored = p >= p.max() * np.exp(-term.barrier / kt)
    p = density / p[explored].mean()
    q = p[..., 0] + np.exp(-term.barrier / kt / share)
    found = p / q[..., None]  # of the first derivatives
    if len(term.axes) > 1:
        for both, one, other in ((3, 1, 2), (5, 1, 4), (6, 2, 4))[: 3 if len(term.axes) > 2 else 1]:
            found[..., both] = p[..., both] / q - p[..., one] * p[..., other] / q**2
    if len(term.axes) > 2:
        pairs = sum(p[..., both] * p[..., one] for both, one in ((3, 4), (5, 2), (6, 1)))
        found[..., 7] = p[..., 7] / q - pairs / q**2 + 2 * p[..., 1] * p[..., 2] * p[..., 4] / q**3
    found[..., 0] = np.log(q)
    return share * kt * found


@pytest.mark.parametrize(("name", "shared"), [("gyration", False), ("two", True), ("three", False)])
def test_opes_has_the_bias_of_a_model(device, tmp_path, name, shared):
    """Weights, the density and the bias after each Gaussian; the same bits after a checkpoint."""
    variables, bounds = BIASES[name]
    widths = {"gyration": [0.2], "two": [0.35, 0.3], "three": [0.8, 1.0, 2.0]}[name]
    factor = None if name == "two" else 5.0
    term = OPES(variables, widths, 6.0, 5, factor, bounds, 0.2 if name != "three" else 0.5, shared)
    kelvins = [300.0] * 3 if shared else [300.0, 350.0, 400.0]
    options = dict(terms=[term], timestep=1.0, temperature=kelvins, seed=2, device=device)
    simulation = Simulation(ATOMS, 3, **options)
    assert simulation.bias_energies("opes").tolist() == [-6.0] * 3
    densities = [np.zeros((*(axis.n for axis in term.axes), 1 << len(widths))) for _ in range(3)]
    grids = [term.first_grid.copy() for _ in range(3)]

    def check(of: Simulation) -> None:
        values, hills = of.variables("opes"), of.hills("opes")
        before = np.array([interpolated(grid, term.axes, x)[0] for grid, x in zip(grids, values, strict=True)])
        np.testing.assert_allclose(hills[:, -1], np.exp(before / BOLTZMANN_KCAL / kelvins), rtol=3e-5)
        new = [weight * hill(term.axes, x, widths) for weight, x in zip(hills[:, -1], values, strict=True)]
        for k, density in enumerate(densities):
            density += sum(new) if shared else new[k]
            grids[k] = bias_of_density(term, density, kelvins[k])
        np.testing.assert_allclose(of.ensemble.values("opes", "density")[:], densities, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(of.ensemble.values("opes", "grid")[:], grids, rtol=1e-4, atol=2e-4)
        after = [interpolated(grid, term.axes, x)[0] for grid, x in zip(grids, values, strict=True)]
        np.testing.assert_allclose(of.bias_energies("opes"), after, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(of.term_energies.opes, after, rtol=1e-5, atol=1e-5)

    simulation.run(20, every=5, call=check)
    whole = simulation.run(12)
    for steps in (15, 23) if name == "two" else ():
        part = Simulation(ATOMS, 3, **options).run(steps)
        part.save(tmp_path / "part.npz")
        again = Simulation(ATOMS, 3, **options).restore(tmp_path / "part.npz").run(32 - steps)
        for array in ("density", "grid"):
            values = [of.ensemble.values("opes", array)[:] for of in (again, whole)]
            np.testing.assert_array_equal(*values)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(again)).positions[:], whole.positions[:])
    nodes, surface = whole.metadynamics_surface("opes", 1)
    assert surface.shape == tuple(map(len, nodes))
    assert surface.min() == 0


def test_words_of_opes_are_its_keywords(device, tmp_path):
    words = {
        "phi": {"kind": "TORSION", "atoms": [5, 7, 9, 15]},
        "opes": {"kind": "OPES_METAD", "arg": "phi", "sigma": 0.35, "barrier": 6, "pace": 5, "biasfactor": 8},
    }
    options = dict(timestep=1.0, seed=2, device=device)
    simulate(ATOMS, tmp_path, bias=words, steps=20, minimize=0, report_every=10, trajectory_format="none", **options)
    found = np.loadtxt(tmp_path / "COLVAR.0")[:, 2]
    simulation, energies = Simulation(ATOMS, terms=[OPES(PHI, 0.35, 6.0, 5, 8.0)], **options), [-6.0]
    simulation.run(20, every=10, call=lambda of: energies.append(of.bias_energies("opes")[0]))
    np.testing.assert_allclose(found, energies, atol=2e-6)
    assert found[-1] > -3


@pytest.mark.parametrize("shared", [False, True])
def test_the_bias_of_opes_follows_the_density_and_the_temperature(device, shared):
    """Whatever was written last, in an ensemble before there is a simulation, too; a grid stays as it was written."""
    term = OPES([PHI, PSI], [0.35, 0.3], 6.0, 5, shared=shared)
    options = dict(timestep=1.0, temperature=300.0, seed=2)
    run = Simulation(ATOMS, 2, terms=[term], device=device, model=VACUUM, **options).run(20)
    density = 1 + RNG.random() * run.ensemble.values("opes", "density")[0]

    def check(simulation, kelvin=300.0, rows=slice(None) if shared else [1]):
        wanted = bias_of_density(term, density, kelvin)
        for grid in np.asarray(simulation.ensemble.values("opes", "grid"))[rows]:
            np.testing.assert_allclose(grid, wanted, rtol=1e-4, atol=1e-5)
        places = simulation.variables("opes")[rows]
        np.testing.assert_allclose(
            simulation.bias_energies("opes")[rows], [interpolated(wanted, term.axes, x)[0] for x in places],
            rtol=1e-4, atol=1e-5,
        )  # fmt: skip

    run.ensemble.values("opes", "density")[1] = density
    check(run)
    before = run.potential_energies - run.bias_energies("opes")
    run.temperatures[:] = 400.0
    check(run, 400.0)
    np.testing.assert_allclose(run.potential_energies - run.bias_energies("opes"), before, rtol=1e-5, atol=1e-3)
    run.ensemble.values("opes", "grid")[:] = 0.0
    run.temperatures[:] = 400.0
    assert not run.bias_energies("opes").any()
    run.ensemble.values("opes", "density")[:] = 0.0
    assert run.bias_energies("opes").tolist() == [-6.0] * 2
    rows = Ensemble(ATOMS, 2, terms=[term], device=device, model=VACUUM)
    rows.values("opes", "density")[1] = density
    check(Simulation(rows, **options))
    with pytest.raises(InputError, match="density of opes of row 1: a density is negative"):
        rows.values("opes", "density")[1] = -density


def test_opes_needs_a_barrier_above_the_thermal_energy(device):
    options = dict(timestep=1.0, device=device, model=VACUUM)

    def made(factor=None, **more):
        return Simulation(ATOMS, terms=[OPES(PHI, 0.35, 0.7, 2, factor)], **options, **more)

    sentence = "`barrier` of opes is 0.7 kcal/mol, and k_B T 0.795 kcal/mol at 400 K; OPES needs a barrier above k_B T"
    with pytest.raises(InputError, match=sentence):
        made(temperature=400.0)
    with pytest.raises(InputError, match=sentence):
        made(anneal=[(0, 300), (1, 400)])
    with pytest.raises(InputError, match="`barrier` of opes is 5 kcal/mol, 2,516 k_B T at 1 K; at most"):
        Simulation(ATOMS, terms=[OPES(PHI, 0.35, 5.0, 2)], anneal=[(0, 300), (1, 1)], **options)
    simulation = made(temperature=300.0)
    with pytest.raises(InputError, match=sentence):
        simulation.temperatures[:] = 400.0
    assert simulation.temperatures.tolist() == [300.0]
    assert made(5.0, temperature=400.0).run(2).bias_energies("opes")[0] > -0.7
    with pytest.raises(InputError, match="hills of opes depend on the temperature, which must be above 0 K"):
        made(temperature=0.0)
    with pytest.raises(InputError, match="hills of opes depend on the temperature, which must be above 0 K"):
        made(anneal=[(0, 300), (1, 0)])
    constant = Metadynamics(PHI, 0.35, 0.5, 2, bias_factor=None)
    cold = Simulation(ATOMS, terms=[constant], temperature=0.0, **options).run(2)
    assert cold.bias_energies("metadynamics")[0] == pytest.approx(0.5, rel=1e-4)


def test_hills_are_those_of_openmm(device):
    """The formulas of OpenMM's Metadynamics, for the places that it met: its heights and its grid."""
    openmm = pytest.importorskip("openmm")
    app, unit = pytest.importorskip("openmm.app"), openmm.unit
    system = openmm.System()
    system.addParticle(39.9)
    variable = openmm.CustomExternalForce("x")
    variable.addParticle(0)
    at = app.BiasVariable(variable, -1.0, 1.0, 0.1, False, gridWidth=101)
    meta = app.Metadynamics(system, [at], 300 * unit.kelvin, 4.0, 0.5 * unit.kilocalorie_per_mole, 1)
    integrator = openmm.LangevinMiddleIntegrator(300, 1, 0.002)
    simulation = app.Simulation(
        app.Topology(), system, integrator, openmm.Platform.getPlatform("Reference")
    )  # fmt: skip
    grid = np.zeros((101, 2))
    term = Metadynamics(
        DistanceVariable(0, 1), 1.0, 0.5, 1, bias_factor=4.0, bounds=[(-10.0, 10.0)], spacing=0.2
    )  # A in place of nm
    for place in (0.0, 0.31, -0.2, 0.05, 0.02, 0.0, 0.04):
        simulation.context.setPositions([[place, 0, 0]])
        # as in its method `step`
        bias = simulation.context.getState(energy=True, groups={meta._force.getForceGroup()}).getPotentialEnergy()
        height = meta.height * np.exp(-bias / (unit.MOLAR_GAS_CONSTANT_R * meta._deltaT))
        meta._addGaussian([place], height, simulation.context)
        energy = interpolated(grid, term.axes, [10 * place])[0]
        grid += term.heights(np.array(energy), np.array(300.0)) * hill(term.axes, [10 * place], [1.0])
    np.testing.assert_allclose(grid[:, 0], meta._totalBias / 4.184, atol=1e-5 * 0.5)


@pytest.mark.skipif(not shutil.which("plumed"), reason="needs PLUMED's command")
def test_hills_are_those_of_plumed(device, tmp_path):
    """Heights and the grid of METAD for a trajectory of ours, within the 3.5 widths beyond which PLUMED cuts hills."""
    require(device, "float64")
    widths, kelvin, places, last = [0.8, 0.7], 300.0, [ATOMS.positions], []
    term = Metadynamics([PHI, PSI], widths, 0.5, 5, bias_factor=4.0)
    simulation = Simulation(
        ATOMS, terms=[term], timestep=1.0, temperature=kelvin, seed=2, precision="float64", device=device
    )

    def look(of: Simulation) -> None:
        places.append(of.positions[0])
        last.append(of.hills("metadynamics")[0])

    simulation.run(80, every=5, call=look)
    hills, bins = np.array(last), ",".join(str(axis.n) for axis in term.axes)
    lines = [f"{len(x)}\n0 0 0\n" + "".join("X {:.12f} {:.12f} {:.12f}\n".format(*of) for of in x) for x in places]
    (tmp_path / "places.xyz").write_text("".join(lines))
    (tmp_path / "plumed.dat").write_text(
        "UNITS LENGTH=A ENERGY=kcal/mol\nphi: TORSION ATOMS=5,7,9,15\npsi: TORSION ATOMS=7,9,15,17\n"
        f"METAD ARG=phi,psi SIGMA=0.8,0.7 HEIGHT=0.5 PACE=1 BIASFACTOR=4 TEMP={kelvin} FILE=HILLS FMT=%20.12f "
        f"GRID_MIN=-pi,-pi GRID_MAX=pi,pi GRID_BIN={bins} GRID_WFILE=GRID GRID_WSTRIDE={len(hills)}\n"
    )
    subprocess.run(
        ["plumed", "driver", "--plumed", "plumed.dat", "--ixyz", "places.xyz", "--length-units", "A"], cwd=tmp_path,
        env=os.environ | {"PLUMED_DP2CUTOFF_NOSTRETCH": "1"}, stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    theirs = np.loadtxt(tmp_path / "HILLS")
    np.testing.assert_allclose(theirs[:, 1:3], hills[:, :2], atol=1e-10)
    np.testing.assert_allclose(theirs[:, 5] * 3 / 4, hills[:, 2], atol=1e-5 * 0.5)  # PLUMED writes those of F
    nodes = np.loadtxt(tmp_path / "GRID")
    away = nodes[:, None, :2] - hills[None, :, :2]
    away -= 2 * np.pi * np.round(away / (2 * np.pi))
    near = (((away / widths) ** 2).sum(axis=2) < 12.4).all(axis=1)
    grid = simulation.ensemble.values("metadynamics", "grid")[0][..., 0].T.ravel()
    assert near.sum() > 200
    np.testing.assert_allclose(grid[near], nodes[near, 2], atol=1e-5 * grid.max())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TorsionVariable([0, 1, 2]), "expected four different indices"),
        (lambda: Metadynamics([], 0.3, 1.0, 10), "one to three collective variables"),
        (lambda: Metadynamics(PHI, [0.3, 0.3], 1.0, 10), "expected 1 numbers of 0.0001 or more, one per variable"),
        (lambda: Metadynamics(PHI, 0.3, 1.0, 10, bias_factor=1.0), "bias_factor"),
        (lambda: Metadynamics(SIZE, 0.3, 1.0, 10), "bounds of a GyrationVariable are None"),
        (lambda: Metadynamics(PHI, 0.3, 1.0, 10, bounds=[(0.0, 1.0)]), "a torsion is periodic and has no bounds"),
        (lambda: OPES(PHI, 0.3, 0.0, 10), "barrier is 0; expected a number in kcal/mol above 0"),
        (lambda: OPES([PHI, PSI], 0.3, 5.0, 10), "expected 2 numbers of 0.0001 or more, one per variable"),
        (
            lambda: Simulation(ATOMS, 2, terms=[OPES(PHI, 0.3, 5.0, 10, shared=True)], temperature=[300, 310]),
            "must have one temperature",
        ),
        (
            lambda: Simulation(ATOMS, 2, terms=[OPES(PHI, 0.3, 5, 9, shared=True)]).change_temperatures([300, 310]),
            "must have one temperature",
        ),
        (lambda: GridBias(PHI, np.zeros((9, 3))), r"grid has shape \(9, 3\)"),
        (lambda: Ensemble(ATOMS, terms=[Metadynamics(TorsionVariable([0, 1, 2, 30]), 0.3, 1, 9)]), "of 0 to 29"),
        (lambda: Simulation(ATOMS).variables("m"), "no bias on collective variables is named 'm'; there are: none"),
        (lambda: Simulation(ATOMS, exchange="hamiltonian"), "`exchange=hamiltonian` needs a ladder; also"),
        (lambda: Simulation(ATOMS).run(5, every=2), "give both of `every` and `call`, or none"),
        (lambda: umbrella(ATOMS, PHI, [0.0], 5.0, steps=200, integrator="verlet"), "need the integrator 'langevin'"),
        (lambda: umbrella(ATOMS, PHI, [0.0], 5.0, steps=200, terms=3), "terms are 3; expected a list of them"),
        (lambda: SimulatedTempering([300, 310])(3), "the simulation is 3; expected a Simulation"),
        (lambda: SimulatedTempering([300, 310])(Simulation(ATOMS, integrator="verlet")), "the integrator 'langevin'"),
        (
            lambda: Metadynamics(PHI, 0.3, 1.0, 9).heights([1.0, 2.0], [300.0, -1.0]),
            "temperatures above 0 K",
        ),
        (
            lambda: Simulation(ATOMS, terms=[OPES(PHI, 0.3, 5000.0, 9)]),
            "barrier` of opes is 5000 kcal/mol, 8,387 k_B T",
        ),
        (lambda: Ensemble(ATOMS, terms=[GridBias(DistanceVariable(3, 3), bounds=[(0, 9)])]), "these are the same"),
        (
            lambda: Ensemble(ATOMS, terms=[GridBias(GyrationVariable([3]), bounds=[(0, 9)])]),
            "gyration has 1 atom; expected 2",
        ),
        (
            lambda: Ensemble(ATOMS, terms=[GridBias(GyrationVariable([]), bounds=[(0, 9)])]),
            "has no atoms; expected one or more",
        ),
        (lambda: TorsionVariable(["resid 1 and name N", 1, 2, 3.5]), "expected four indices or selections"),
        (lambda: Ensemble(ATOMS, terms=[GridBias(PHI, name="")]), "the name of a GridBias is ''; expected a text"),
        (lambda: Simulation(ATOMS, 0), "replicas is 0; expected a whole number, 1 or more"),
        (lambda: Simulation(ATOMS, anneal=[[0, np.nan]]), "finite points"),
        (lambda: Simulation(ATOMS).write("none", steps=4, velocities=1), "velocities is 1; expected True or False"),
        (
            lambda: umbrella(ATOMS, PHI, [0.0], 5.0, steps=10),
            "steps are 10, with a sample every 100; choose more steps",
        ),
    ],
)
def test_what_does_not_fit(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_keywords_that_do_not_fit():
    for make, message in (
        (lambda: Simulation(ATOMS, temprature=300), r"Simulation\(\) got an unexpected .*; did you mean 'temperature'"),
        (lambda: rest2(ATOMS, [300, 400], gb="obc2"), r"Simulation\(\) got an unexpected keyword argument 'gb'"),
        (lambda: rest2(ATOMS, [300, 400], temperature=310), "`temperature` cannot be chosen here; leave it out"),
        (lambda: umbrella(ATOMS, PHI, [0.0], 5.0, steps=200, replicas=2), "`replicas` cannot be chosen here"),
        (lambda: umbrella(ATOMS, PHI, [0.0], 5.0, steps=200, anneal=[(0, 300)]), "`anneal` cannot be chosen here"),
    ):
        with pytest.raises((TypeError, InputError), match=message):
            make()


def test_calls_between_steps_change_no_bits(device):
    """Calls come at multiples of `every`, and may write."""
    options = dict(timestep=1.0, seed=3, device=device)
    plain, called, steps = Simulation(ATOMS, 2, **options).run(25), Simulation(ATOMS, 2, **options).run(3), []
    called.run(22, every=10, call=lambda of: steps.append((of.steps, of.positions[0].shape)))
    assert steps == [(10, (30, 3)), (20, (30, 3))]
    np.testing.assert_array_equal(called.positions[:], plain.positions[:])

    def warmer(of: Simulation) -> None:
        of.temperatures[:] += 10

    called.run(20, every=5, call=warmer)
    assert called.temperatures.tolist() == [340.0, 340.0]


def test_what_is_called_in_a_run_makes_no_steps(device, tmp_path):
    simulation = Simulation(ATOMS, 2, timestep=1.0, seed=2, device=device, model=VACUUM).run(5)
    simulation.save(tmp_path / "state.npz")
    forbidden = [
        lambda of: of.run(5),
        lambda of: of.restore(tmp_path / "state.npz"),
        lambda of: of.write(tmp_path / "w", steps=5),
    ]
    for call in forbidden:
        with pytest.raises(InputError, match="a function that is called during a run must not run"):
            simulation.run("10fs", every="5fs", call=call)
    with pytest.raises(InputError, match="during a run"):
        simulation.write(tmp_path / "run", steps=5, watch=forbidden[0])
    with pytest.raises(InputError, match="call is 3; expected a function"):
        simulation.run(10, every=5, call=3)
    with pytest.raises(InputError, match="steps is 'long'; expected a number of steps, or a time with its unit"):
        simulation.run("long")
    assert simulation.steps == 20
    assert simulation.run(5).steps == 25


def test_replicas_without_an_energy_say_why(device):
    simulation = Simulation(ATOMS, 2, terms=[bias_of("torsion")], timestep=1.0, device=device, model=VACUUM)
    simulation.positions[0] = np.zeros((30, 3))
    assert "are at the same position" in simulation.errors[0]
    assert np.isnan(simulation.run(3).potential_energies).tolist() == [True, False]
    with pytest.raises(InputError, match="frozen atoms of row 1"):
        simulation.ensemble.frozen[:] = [[3], [99]]
    assert not np.any(simulation.ensemble.frozen[:])


def test_a_shared_bias_is_written_for_all(device, tmp_path):
    def made(**changed):
        term = Metadynamics(PHI, 0.35, **{"height": 0.5, "pace": 5, "shared": True, **changed})
        return Simulation(ATOMS, 3, terms=[term], timestep=1.0, seed=2, device=device, model=VACUUM)

    simulation = made()
    assert np.isnan(simulation.hills("metadynamics")).all()
    grid = simulation.ensemble.values("metadynamics", "grid")
    with pytest.raises(InputError, match=r"contain a value and its derivatives at each node, .* can only be 0"):
        grid[:] = 3.0
    higher = grid[1] + [3.0, 0.0]
    grid[1] = higher
    np.testing.assert_array_equal(grid[:], [higher] * 3)
    np.testing.assert_allclose(simulation.bias_energies("metadynamics"), 3.0)
    assert (simulation.run(5).bias_energies("metadynamics") > 3.1).all()
    with pytest.raises(InputError, match="grid of metadynamics are shared by all rows of a molecule"):
        grid[:2] = [higher, 2 * higher]
    simulation.save(tmp_path / "state.npz")
    again = made().restore(tmp_path / "state.npz")
    np.testing.assert_array_equal(again.hills("metadynamics"), simulation.hills("metadynamics"))
    made(height=np.float32(0.5), pace=np.int64(5), shared=np.bool_(True)).restore(tmp_path / "state.npz")
    for changed, sentence in (
        ({"height": 0.4}, "height 0.5 of metadynamics, not 0.4"),
        ({"shared": False}, "shared True"),
    ):
        with pytest.raises(InputError, match=sentence):
            made(**changed).restore(tmp_path / "state.npz")


def test_a_replica_that_stopped_has_the_bias_that_others_left(device):
    """Not that of the time when it stopped, and no hills of its own."""
    term = Metadynamics(PHI, 0.35, 0.5, 5, bias_factor=None, shared=True)
    simulation = Simulation(ATOMS, 3, terms=[term], timestep=1.0, seed=2, device=device, model=VACUUM)
    simulation.velocities[1] = np.full((30, 3), 1e5)
    for steps in (7, 8):
        simulation.run(steps)
        assert list(simulation.errors) == [1]
        grid = simulation.ensemble.values("metadynamics", "grid")[0]
        wanted = [interpolated(grid, term.axes, of)[0] for of in simulation.variables("metadynamics")]
        np.testing.assert_allclose(simulation.bias_energies("metadynamics"), wanted, rtol=1e-5)
        np.testing.assert_allclose(simulation.ensemble.evaluate().terms().metadynamics, wanted, rtol=1e-5)
    assert grid[:, 0].max() <= 0.5 * 2 * 3


def test_a_replica_that_stopped_has_no_samples(device, tmp_path):
    """It is left out where that is possible, else it is named."""
    options = dict(terms=[bias_of("torsion")], timestep=1.0, seed=2, device=device, model=VACUUM)
    simulation, samples = Simulation(ATOMS, 3, **options), BiasSamples("bias")
    whole, files = StateSamples(), ColvarFiles(tmp_path)
    tempering = SimulatedTempering([300, 100_000], [0.0, -1e9])

    def call(of):
        samples(of), files(of), tempering(of)

    simulation.run(5, every=5, call=whole)
    simulation.run(5, every=5, call=call)
    simulation.velocities[1] = np.full((30, 3), 1e5)
    simulation.run(10, every=5, call=call)
    assert np.isnan(samples.variables[..., 0]).tolist() == [[False] * 3, [False, True, False], [False, True, False]]
    sums = np.exp(samples.log_weights).reshape(3, 3).sum(axis=0)
    np.testing.assert_allclose(sums, [1, 1 / 3, 1])
    assert [len((tmp_path / f"COLVAR.{k}").read_text().splitlines()) for k in range(3)] == [4, 2, 4]
    assert tempering.visits.sum() == 7
    for call in (whole, lambda of: of.u_kn()):
        with pytest.raises(InputError, match="replica 1 has no energies in the states of others: stopped at step 10"):
            call(simulation)
    assert whole.u_kn.shape == (3, 3)
    ladder = Simulation(ATOMS, 2, temperature=[300, 300], exchange_every=5, exchange="hamiltonian", **options)
    ladder.positions[1] = np.zeros((30, 3))
    with pytest.raises(InputError, match=r"replica 1 has no energy at its positions: .* are at the same position"):
        StateSamples()(ladder)
    with pytest.raises(InputError, match="the simulation is 3; expected a Simulation"):
        StateSamples()(3)
    with pytest.raises(InputError, match="these samples belong to another simulation or to other states"):
        whole(Simulation(ATOMS, 2, **options))


def test_simulated_tempering_begins_on_a_rung(device):
    simulation = Simulation(ATOMS, 2, temperature=310.0, timestep=1.0, device=device, model=VACUUM)
    SimulatedTempering([300, 100_000], [0.0, -1e9])(simulation)
    assert simulation.temperatures.tolist() == [300.0] * 2


def test_samples_without_an_energy_are_named():
    u, states = np.zeros((2, 6)), [0, 0, 0, 1, 1, 1]
    for place, value, sentence in (
        ((1, 4), np.inf, "sample 4 has the reduced energy inf in state 1, which it was drawn from; expected finite"),
        ((0, 0), np.nan, "sample 0 has the reduced energy nan in state 0, which it was drawn from"),
        ((0, 3), np.nan, "sample 3 has the reduced energy nan in state 0; expected finite"),
        ((0, 5), -np.inf, "sample 5 has the reduced energy -inf in state 0; expected finite"),
    ):
        wrong = u.copy()
        wrong[place] = value
        with pytest.raises(InputError, match=sentence):
            MBAR(wrong, states)
    wrong = u.copy()
    wrong[0, 5] = np.inf
    with pytest.raises(InputError, match="no sample has a finite energy in state 2; leave it out"):
        MBAR(np.concatenate([wrong, np.full((1, 6), np.inf)]), states)
    u[0, 5] = np.inf
    mbar, values = MBAR(u, states), np.arange(6.0)
    assert np.isfinite(mbar.f_k).all()
    values[4] = np.nan
    for wrong_values in (values[:5], np.zeros(7)):
        with pytest.raises(InputError, match=r"values have shape \(\d,\); expected \(6,\) or more dimensions"):
            mbar.free_energy(wrong_values, 2, 300.0, blocks=2)
    with pytest.raises(InputError, match="bins must be a number, or rising edges"):
        free_energy(values[:4], [[0.0, np.nan, 4.0]], 300.0, blocks=2)
    for wrong in (
        lambda: mbar.mean(values), lambda: mbar.error(values), lambda: mbar.free_energy(values, 2, 300.0),
        lambda: free_energy(values, 2, 300.0),
    ):  # fmt: skip
        with pytest.raises(InputError, match="sample 4 has the value nan; expected finite numbers; leave it out"):
            wrong()


def test_variables_take_selections(device):
    phi = TorsionVariable(["resid 1 and name C", 12, "resid 2 and name CA", "resid 2 and name C"])
    names = ATOMS.labels.names
    assert names[phi.groups(ATOMS)[0]].tolist() == ["C", names[12], "CA", "C"]
    size, apart = GyrationVariable("not element H"), DistanceVariable("resid 1", [20])
    see = GridBias([phi, size, apart], name="see")  # without an energy
    simulation = Simulation(ATOMS, 2, terms=[see], timestep=1.0, device=device, model=VACUUM).run("5fs")
    wanted = [[of.value(x, ATOMS)[0] for of in (phi, size, apart)] for x in simulation.positions[:]]
    np.testing.assert_allclose(simulation.variables("see"), wanted, rtol=1e-5)
    assert not simulation.bias_energies("see").any()
    for wrong, sentence in (
        (["resid 1", 1, 2, 3], "'resid 1' selects 19 atoms; each selection of a torsion must select one"),
        (["resid 9", 1, 2, 3], "the selection 'resid 9' selects no atoms"),
        (["index 1", 1, 2, 3], "expected four different ones"),
    ):
        with pytest.raises(InputError, match=sentence):
            Ensemble(ATOMS, terms=[GridBias(TorsionVariable(wrong))], device=device)


def test_colvar_files_go_on_after_a_restart(device, tmp_path):
    def made():
        return Simulation(ATOMS, 2, terms=[GridBias(PHI, name="phi")], timestep=1.0, device=device, model=VACUUM)

    for label in ("my phi", "time", ""):
        with pytest.raises(
            InputError, match=f"'{label}' names a column of COLVAR files; expected names without spaces, each"
        ):
            ColvarFiles(tmp_path, {"phi": [label]})(made())
    first = made().run(20, every=5, call=ColvarFiles(tmp_path))
    first.save(tmp_path / "state.npz")
    first.run(10, every=5, call=ColvarFiles(tmp_path))
    whole = (tmp_path / "COLVAR.1").read_text()
    made().restore(tmp_path / "state.npz").run(10, every=5, call=ColvarFiles(tmp_path))
    assert (tmp_path / "COLVAR.1").read_text() == whole
    assert np.loadtxt(tmp_path / "COLVAR.1")[:, 0].tolist() == [0.005, 0.01, 0.015, 0.02, 0.025, 0.03]
    for labels, sentence in (({"phi": ["a", "b"]}, "labels of phi are"), ({"psi": ["a"]}, "is named 'psi'")):
        with pytest.raises(InputError, match=sentence):
            made().run(5, every=5, call=ColvarFiles(tmp_path, labels))
    (tmp_path / "COLVAR.1").write_text("".join([whole.splitlines(True)[0], "#! SET min_phi -pi\n"]))
    with pytest.raises(FormatError, match="has lines without a time"):
        made().run(5, every=5, call=ColvarFiles(tmp_path))
    with pytest.raises(FormatError, match="has fields other"):
        made().run(5, every=5, call=ColvarFiles(tmp_path, {"phi": ["a"]}))
    with pytest.raises(InputError, match="no term acts on collective variables"):
        Simulation(ATOMS, device=device, timestep=1.0, model=VACUUM).run(5, every=5, call=ColvarFiles(tmp_path))


def test_a_bias_at_many_places_is_that_at_each():
    for name in ("two", "three"):
        bias = bias_of(name)
        at = np.random.default_rng(3).uniform(-4, 8, (20, len(bias.axes)))
        wanted = [interpolated(bias.first_grid, bias.axes, of)[0] for of in at]
        np.testing.assert_allclose(interpolated_at(bias.first_grid, bias.axes, at), wanted, rtol=1e-12, atol=1e-12)


def test_samples_under_a_bias_that_cannot_be_weighted(device):
    samples = BiasSamples("bias")
    with pytest.raises(InputError, match="there are no samples yet"):
        _ = samples.log_weights
    options = dict(terms=[bias_of("torsion")], timestep=1.0, device=device, model=VACUUM)
    Simulation(ATOMS, 2, temperature=[300.0, 310.0], **options).run(5, every=5, call=samples)
    with pytest.raises(InputError, match="replicas have several temperatures"):
        _ = samples.log_weights
    ladder = Simulation(ATOMS, 2, temperature=[300.0] * 2, exchange_every=5, exchange="hamiltonian", **options)
    with pytest.raises(InputError, match="replicas exchange their biases; use StateSamples and"):
        ladder.run(5, every=5, call=BiasSamples("bias"))
    later = BiasSamples("bias")
    changed = Simulation(ATOMS, 2, **options).run(5, every=5, call=later)
    changed.temperatures[:] = 310.0
    with pytest.raises(InputError, match="replicas have several temperatures"):
        changed.run(5, every=5, call=later).variables("bias"), later.log_weights
    with pytest.raises(InputError, match="these samples belong to another simulation"):
        Simulation(ATOMS, 2, **options).run(5, every=5, call=samples)


def test_masks_are_booleans_and_torsions_radians(device):
    ones, options = np.ones(30, int), dict(device=device, timestep=1.0, model=VACUUM)
    rows = Ensemble(ATOMS, device=device, model=VACUUM)
    for wrong in (
        lambda: GyrationVariable(ones).groups(ATOMS),
        lambda: rest2(ATOMS, [300, 400], hot=ones, **options),
        lambda: rows.frozen.__setitem__(0, ones),
        lambda: Energy(ATOMS, frozen=ones, device=device),
    ):
        with pytest.raises(InputError, match="are 30 numbers 0 and 1; a mask has booleans"):
            wrong()
    simulation = rest2(ATOMS, [300, 400], hot="resid 2", **options)
    np.testing.assert_array_equal(
        simulation.ensemble.scales["torsions"][1] < 1, [number == 2 for number in ATOMS.labels.residue_numbers]
    )
    with pytest.raises(InputError, match="`hot` contains no atoms"):
        rest2(ATOMS, [300, 400], hot=[], **options)
    with pytest.raises(InputError, match="a torsion's width is 20; expected radians"):
        Metadynamics(PHI, 20.0, 0.3, 10)
    with pytest.raises(InputError, match="a torsion's centre is 60; expected radians"):
        umbrella(ATOMS, PHI, [30.0, 60.0], 10.0, steps=40, sample_every=10, **options)


def test_an_interrupt_neither_loses_nor_doubles_hills(device):
    require(device, "float64")
    term = Metadynamics(PHI, 0.35, 0.5, 2)
    options = dict(terms=[term], timestep=1.0, seed=2, precision="float64", device=device)
    plain = Simulation(ATOMS, 2, **options).run(12)
    for at in range(2, 12, 3):
        simulation = Simulation(ATOMS, 2, **options)
        state, calls = simulation.ensemble.state, [0]
        own = state.queue_up

        def queue_up(launches, own=own, calls=calls, at=at):
            own(launches)
            calls[0] += 1
            if calls[0] == at:
                raise KeyboardInterrupt

        state.queue_up = queue_up
        with pytest.raises(KeyboardInterrupt):
            simulation.run(12)
        del state.queue_up
        simulation.run(12 - simulation.steps)
        np.testing.assert_array_equal(simulation.positions[:], plain.positions[:])


# Two atoms that see each other by a double well of their distance alone, of a known population.
PAIR = Atoms(
    [[0, 0, 0], [3.0, 0, 0]], np.zeros(2), lj_sigma=np.ones(2), lj_epsilon=np.zeros(2),
    labels=labels_of_elements(["C", "O"]),
)  # fmt: skip
R = DistanceVariable(0, 1)
SPAN = 1.5, 6.5
EDGES = np.linspace(2.6, 5.4, 15)


def well(r: np.ndarray, height: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """Energies and slopes of the well, kcal/mol and kcal/mol/A."""
    x = r - 4.0
    return height * (x**2 - 1) ** 2 + 0.3 * x, 4 * height * x * (x**2 - 1) + 0.3


def well_grid(height: float = 1.5) -> np.ndarray:
    nodes = np.linspace(*SPAN, 101)
    energies, slopes = well(nodes, height)
    return np.stack([energies, slopes * (nodes[1] - nodes[0])], axis=1)


WELL = GridBias(R, well_grid(), [SPAN], "well")
OPTIONS = dict(model=VACUUM, timestep=4.0, friction=5.0, seed=1)


def theory(temperature: float = 300.0) -> np.ndarray:
    """Free energies of the bins, kcal/mol, 0 in the lowest."""
    r = np.linspace(EDGES[0], EDGES[-1], 14 * 200 + 1)
    r = (r[1:] + r[:-1]) / 2
    kt = BOLTZMANN_KCAL * temperature
    found = -kt * np.log((r**2 * np.exp(-well(r)[0] / kt)).reshape(14, 200).mean(axis=1))
    return found - found.min()


def close_to_theory(energies: np.ndarray, bound: float, temperature: float = 300.0) -> None:
    """Hold a surface to theory, where that is below 3 kcal/mol; both less their means there."""
    expected = theory(temperature)
    low = expected < 3.0
    away = energies[low] - expected[low]
    assert np.abs(away - away.mean()).max() < bound


def test_surfaces_are_drawn_and_saved(tmp_path):
    pytest.importorskip("matplotlib")
    x = np.random.default_rng(0).normal(0, 1, (2000, 3))
    for d in (1, 2):
        found = free_energy(x[:, :d], 6, 300.0)
        found.draw(tmp_path / f"{d}.png")
        assert (tmp_path / f"{d}.png").read_bytes().startswith(b"\x89PNG")
        found.save(tmp_path / f"{d}.csv")
        assert len((tmp_path / f"{d}.csv").read_text().splitlines()) > len(found.table())
        assert found.to_json()["temperature"] == 300.0
    edges = np.linspace(-2, 2, 5)
    np.testing.assert_array_equal(
        free_energy(x[:, 0], edges, 300.0).energies, free_energy(x[:, 0], [edges], 300.0).energies
    )
    for wrong, sentence in (
        (dict(bins=[[50.0, 60.0]]), "no sample with a weight is within the bins"),
        (dict(bins=4, log_weights=np.full(2000, np.nan)), "log_weights must be numbers"),
        (dict(bins=4, log_weights=np.full(2000, -np.inf)), "no sample has a weight"),
    ):
        with pytest.raises(InputError, match=sentence):
            free_energy(x[:, 0], temperature=300.0, **wrong)
    with pytest.raises(InputError, match="u_n must be numbers, or infinity for samples without weight"):
        MBAR(np.zeros((2, 4)), [0, 1, 0, 1]).mean(np.arange(4.0), np.full(4, np.inf))
    with pytest.raises(InputError, match="a surface of 3 variables cannot be drawn"):
        free_energy(x, 6, 300.0).draw(tmp_path / "3.png")


def test_umbrella_windows_give_the_free_energy_of_a_double_well(device):
    centers = np.linspace(2.8, 5.2, 13)[:, None]
    run = umbrella(
        PAIR, R, centers, 6.0, steps=6000, sample_every=20, equilibrate=500, terms=[WELL],
        device=device, **OPTIONS,
    )  # fmt: skip
    assert run.u_kn.shape == (13, 13 * 300)
    assert centers.flags.writeable
    assert not run.centers.flags.writeable
    assert run.table()["variable_1"].tolist() == run.variables.ravel().tolist()
    surface = run.free_energy([EDGES])
    close_to_theory(surface.energies, 0.25)
    assert (surface.errors[theory() < 3.0] < 0.25).all()
    assert len(surface.table()) == 14
    own = run.simulation.bias_energies("umbrella")
    by_hand = run.u_kn[np.arange(13), np.arange(-13, 0)] * BOLTZMANN_KCAL * 300
    np.testing.assert_allclose(own, by_hand, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shared", [True, False])
def test_metadynamics_gives_the_free_energy_of_a_double_well(device, shared):
    rows, height, pace = (32, 0.02, 50) if shared else (24, 0.15, 25)
    term = Metadynamics(R, 0.15, height, pace, bias_factor=6.0, bounds=[SPAN], shared=shared)
    simulation = Simulation(PAIR, rows, terms=[WELL, term], device=device, **OPTIONS)
    samples = BiasSamples()
    simulation.run(4000).run(4000, every=20, call=samples)
    close_to_theory(samples.free_energy([EDGES]).energies, 0.3)
    found = np.mean(
        [simulation.metadynamics_surface("metadynamics", k)[1] for k in range(1 if shared else rows)], axis=0
    )
    nodes = simulation.metadynamics_surface("metadynamics")[0][0]
    middles = (EDGES[1:] + EDGES[:-1]) / 2
    close_to_theory(np.interp(middles, nodes, found), 0.3)


@pytest.mark.parametrize("shared", [True, False])
def test_opes_gives_the_free_energy_of_a_double_well(device, shared):
    rows, pace = (32, 50) if shared else (24, 25)
    term = OPES(R, 0.15, 4.0, pace, bounds=[SPAN], shared=shared)
    simulation = Simulation(PAIR, rows, terms=[WELL, term], device=device, **OPTIONS).run(8000)
    surfaces = [simulation.metadynamics_surface("opes", k)[1] for k in range(1 if shared else rows)]
    kt = BOLTZMANN_KCAL * 300
    found = -kt * np.log(np.mean([np.exp(-of / kt) for of in surfaces], axis=0))
    nodes = simulation.metadynamics_surface("opes")[0][0]
    close_to_theory(np.interp((EDGES[1:] + EDGES[:-1]) / 2, nodes, found), 0.3)


def test_hamiltonians_are_exchanged_in_balance(device):
    """All begin in the upper well; rungs with lower barriers bring them over, and MBAR puts all rungs together."""
    heights = [1.5, 1.0, 0.5]
    simulation = Simulation(
        PAIR.moved([[0, 0, 0], [5.0, 0, 0]]), 24, temperature=[300.0] * 3, exchange_every=20, exchange="hamiltonian",
        terms=[WELL], device=device, **OPTIONS,
    )  # fmt: skip
    simulation.ensemble.values("well", "grid")[:] = [well_grid(h) for h in heights * 8]
    samples, r = StateSamples(["well"]), []
    simulation.run(2000)

    def look(of: Simulation) -> None:
        r.append(of.variables("well")[of.rungs == 0, 0])

    simulation.run(6000, every=20, call=look)
    simulation.run(400, every=200, call=samples)
    tried, accepted = simulation.exchanges
    assert (accepted > 0.3 * tried).all()
    close_to_theory(free_energy(np.concatenate(r), [EDGES], 300.0).energies, 0.3)
    assert samples.u_kn.shape == (24, 48)
    found = [0.5 * well(samples.variables[:, 0], h)[0] for h in heights]  # kt is 0.596 kcal/mol
    of_rungs = samples.u_kn.reshape(8, 3, 48)[0] * BOLTZMANN_KCAL * 300 * 0.5
    np.testing.assert_allclose(of_rungs, found, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(np.bincount(samples.states), np.full(24, 2))
    by_rung, states = StateSamples(["well"], by_rung=True), samples.u_kn[:, -24:].reshape(8, 3, 8, 3)
    before, ladder = simulation.positions[:], np.arange(8)
    by_rung(simulation)
    of_ladders = states[ladder, :, ladder].transpose(1, 0, 2).reshape(3, 24)
    np.testing.assert_allclose(by_rung.u_kn, of_ladders, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(by_rung.states, simulation.rungs)
    np.testing.assert_array_equal(simulation.positions[:], before)
    with pytest.raises(InputError, match="no rungs"):
        Simulation(PAIR, 2, terms=[WELL], device=device, **OPTIONS).u_kn(by_rung=True)


def test_two_simulations_of_one_ladder_do_not_mix_their_rungs(device):
    rows = Ensemble(ATOMS, 2, terms=[bias_of("torsion")], device=device, model=VACUUM)
    options = dict(temperature=[300.0, 300.0], exchange="hamiltonian", exchange_every=5, timestep=1.0)
    one = Simulation(rows, **options).run(10)
    two = Simulation(rows, **options).run(5)
    for use in (lambda: one.run(5), lambda: one.rungs, lambda: one.states, lambda: one.u_kn()):
        with pytest.raises(InputError, match="another simulation exchanged the data of these rows"):
            use()
    assert sorted(two.run(5).rungs) == [0, 1]


def test_ladders_of_two_dimensions_are_in_balance(device, tmp_path):
    """Temperatures by barriers: each rung has the free energy of its own; a checkpoint goes on with the same bits."""
    kelvins, heights = [300.0, 420.0], [1.5, 1.0, 0.5]

    def begun() -> Simulation:
        simulation = Simulation(
            PAIR.moved([[0, 0, 0], [5.0, 0, 0]]), 24, temperature=np.repeat(kelvins, 3).tolist(), exchange_every=10,
            exchange="hamiltonian", ladder_shape=(2, 3), terms=[WELL], device=device, **OPTIONS,
        )  # fmt: skip
        simulation.ensemble.values("well", "grid")[:] = [well_grid(h) for h in heights * 8]
        return simulation

    simulation, found = begun().run(2000), []
    simulation.save(tmp_path / "early.npz")

    def look(of: Simulation) -> None:
        found.append(of.variables("well")[np.argsort(of.rungs, kind="stable"), 0].reshape(6, 4))

    simulation.run(8000, every=20, call=look)
    tried, accepted = simulation.exchanges
    exist = np.array([[[1] * 3, [0] * 3], [[1, 1, 0]] * 2])  # along temperatures, along barriers
    np.testing.assert_array_equal(tried > 0, exist)
    assert (accepted[exist > 0] > 0.3 * tried[exist > 0]).all()
    assert tried.sum() == 4 * (250 * 3 + 250 * 2 + 250 * 2)  # of 1000 attempts every second one is along temperatures
    places = np.array(found)
    for rung in range(6):
        kelvin = kelvins[rung // 3]
        np.testing.assert_array_equal(np.asarray(simulation.temperatures)[simulation.rungs == rung], kelvin)
        kt, r = BOLTZMANN_KCAL * kelvin, np.linspace(*SPAN, 2001)
        weights = r**2 * np.exp(-well(r, heights[rung % 3])[0] / kt)
        share = weights[r > 4].sum() / weights.sum()
        assert (places[:, rung] > 4).mean() == pytest.approx(share, abs=0.08)
    again = begun().restore(tmp_path / "early.npz").run(60)
    straight = begun().run(2060)
    np.testing.assert_array_equal(again.rungs, straight.rungs)
    np.testing.assert_array_equal(again.positions[:], straight.positions[:])
    np.testing.assert_array_equal(again.exchanges, straight.exchanges)


@pytest.mark.parametrize(
    ("shape", "exchange", "message"),
    [
        (
            (2, 2),
            "hamiltonian",
            r"ladder_shape is \[2, 2\]; expected two numbers whose product is the number of temper",
        ),
        (4, "hamiltonian", "ladder_shape is 4"),
        ((2, 3), "temperature", "also give `exchange=hamiltonian`"),
        ((1, 6), "hamiltonian", "ladder_shape is 1"),
    ],
)
def test_ladders_without_shape_are_refused(device, shape, exchange, message):
    with pytest.raises(InputError, match=message):
        Simulation(
            PAIR, 6, temperature=[300.0] * 6, exchange_every=5, exchange=exchange, ladder_shape=shape, device=device,
            **OPTIONS,
        )  # fmt: skip


def test_simulated_tempering_is_balanced_at_each_temperature(device):
    ladder = np.array([300.0, 400.0, 530.0])
    kt, r = BOLTZMANN_KCAL * ladder[:, None], np.linspace(*SPAN, 4001)
    weights = -np.log((r**2 * np.exp(-well(r)[0] / kt)).sum(axis=1))
    tempering = SimulatedTempering(ladder, weights - weights[0])
    simulation = Simulation(PAIR, 32, temperature=300.0, terms=[WELL], device=device, **OPTIONS)
    found: list[tuple[np.ndarray, np.ndarray]] = []

    def step(of: Simulation) -> None:
        found.append((tempering.rungs_of(of), of.variables("well")[:, 0]))
        tempering(of)

    simulation.run(8000, every=20, call=step)
    rungs, places = np.concatenate([of[0] for of in found[50:]]), np.concatenate([of[1] for of in found[50:]])
    np.testing.assert_allclose(np.bincount(rungs) / len(rungs), 1 / 3, atol=0.05)
    for rung, temperature in enumerate(ladder):
        close_to_theory(free_energy(places[rungs == rung], [EDGES], temperature).energies, 0.3, temperature)
    assert SimulatedTempering(ladder).increment == 1.0


def test_solute_tempering_goes_on_with_the_same_bits(device, tmp_path):
    """Scales go with the rungs; a checkpoint and a pickle have them."""
    options = dict(exchange_every=10, ladders=2, seed=3, timestep=1.0, device=device)
    ladder = [300, 700, 1800]
    whole = rest2(ATOMS, ladder, hot=range(20), **options).run(65)
    lam = 300 / np.array(ladder)[whole.rungs]
    np.testing.assert_allclose(whole.ensemble.scales["torsions"][:][:, 5], lam)
    np.testing.assert_allclose(whole.ensemble.scales["charges"][:][:, 5], np.sqrt(lam))
    assert (whole.ensemble.scales["charges"][:][:, 25] == 1).all()
    assert 0 < whole.exchanges[1].sum() < whole.exchanges[0].sum()
    half = rest2(ATOMS, ladder, hot=range(20), **options).run(40)
    half.save(tmp_path / "half.npz")
    again = rest2(ATOMS, ladder, hot=range(20), **options).restore(tmp_path / "half.npz").run(25)
    for other in (again, pickle.loads(pickle.dumps(half)).run(25)):
        np.testing.assert_array_equal(other.positions[:], whole.positions[:])
        np.testing.assert_array_equal(other.rungs, whole.rungs)
    own = whole.potential_energies / (BOLTZMANN_KCAL * 300)
    np.testing.assert_allclose(whole.u_kn()[whole.states, np.arange(6)], own, rtol=1e-6)
    np.testing.assert_array_equal(whole.potential_energies, again.potential_energies)


def test_mbar_of_harmonic_wells_is_what_theory_has():
    rng, stiff = np.random.default_rng(0), np.array([1.0, 2.0, 8.0])
    centers, n = np.array([0.0, 0.5, 1.0]), 3000
    x = np.concatenate([rng.normal(c, 1 / np.sqrt(k), n) for c, k in zip(centers, stiff, strict=True)])
    found = MBAR(stiff[:, None] / 2 * (x - centers[:, None]) ** 2, np.repeat([0, 1, 2], n))
    np.testing.assert_allclose(found.f_k, 0.5 * np.log(stiff), atol=0.04)
    assert found.mean(x) == pytest.approx(0.0, abs=0.05)
    assert np.exp(found.log_weights()).sum() == pytest.approx(1.0)
    alone = MBAR(np.stack([x**2 / 2, x**2 / 2 + 3.0]), np.zeros(3 * n, int))
    np.testing.assert_allclose(alone.f_k, [0, 3], atol=1e-9)


def test_mbar_follows_constants_of_the_energies():
    """Free energies move with them, however large, with states of few samples and of none."""
    rng, offsets = np.random.default_rng(1), np.array([0.0, -950.0, 1170.0, 5.0])
    centers, stiff, counts = np.array([1.4, 2.0, 4.2, 3.0]), np.array([0.6, 2.0, 2.2, 1.0]), [183, 170, 5, 0]
    states = np.repeat(np.arange(4), counts)
    x = rng.normal(centers[states], 1 / np.sqrt(stiff[states]))
    u = stiff[:, None] / 2 * (x - centers[:, None]) ** 2
    plain, moved = MBAR(u, states), MBAR(u + offsets[:, None], states)
    np.testing.assert_allclose(moved.f_k - offsets, plain.f_k, atol=1e-8)
    np.testing.assert_allclose(moved.overlap, plain.overlap, atol=1e-8)
    blocks = [MBAR(u[:, part], states[part]) for part in (slice(0, 358, 2), slice(1, 358, 2))]
    order = np.r_[0:358:2, 1:358:2]
    wanted = np.std([of.mean(x[part]) for of, part in zip(blocks, (order[:179], order[179:]), strict=True)], ddof=1)
    both = MBAR(u[:, order], states[order])
    assert both.error(x[order], blocks=2) == pytest.approx(wanted / np.sqrt(2), rel=1e-6)


def test_mbar_finds_free_energies_that_differ_by_hundreds():
    """Of 40,000 degrees of freedom at several temperatures, where the mean reduced energies are equal."""
    rng, beta, n = np.random.default_rng(3), 0.993 ** np.arange(8), 20_000
    u = beta[:, None] * rng.gamma(n, 1 / np.repeat(beta, 400))
    np.testing.assert_allclose(MBAR(u, np.repeat(np.arange(8), 400)).f_k, n * np.log(beta), atol=0.7)


def test_states_without_samples_in_common_have_no_difference():
    x = np.concatenate([np.random.default_rng(k).normal(at, 0.1, 50) for k, at in enumerate((0, 0.2, 5, 5.2))])
    found = MBAR(np.stack([50 * (x - at) ** 2 for at in (0, 0.2, 5, 5.2)]), np.repeat(range(4), 50))
    with pytest.raises(InputError, match="states 0, 1 have no samples in common with states 2, 3"):
        _ = found.f_k
    with pytest.raises(InputError, match="no samples in common"):
        found.free_energy(x, 4, 300.0)
    two = MBAR(found.u_kn[:2, :100], found.states[:100])
    np.testing.assert_allclose(two.overlap.sum(axis=1), 1.0)
    assert 0.1 < two.overlap[0, 1] < 0.5
    # a third, wide state connects two, but only in the first block
    rng = np.random.default_rng(1)
    states = np.array([*[0] * 30, *[1] * 30, *[2] * 200, *[0] * 130, *[1] * 130])
    x = rng.normal(np.array([0.0, 5.0, 2.5])[states], np.array([0.1, 0.1, 1.4])[states])
    bridged = MBAR(np.stack([50 * x**2, 50 * (x - 5) ** 2, (x - 2.5) ** 2 / 3.92]), states)
    assert abs(bridged.f_k[1]) < 1.5
    assert np.isnan(bridged.free_energy(x, 4, 300.0, blocks=2).errors).all()


def test_what_was_solved_is_not_written():
    found = MBAR(np.zeros((2, 10)), np.arange(10) % 2)
    with pytest.raises(InputError, match=r"MBAR\.u_kn cannot be written"):
        found.u_kn = np.ones((2, 10))
    with pytest.raises(ValueError, match="read-only"):
        found.u_kn[0] = 1.0
    values = np.arange(10.0)
    assert found.error(values, blocks=5) == pytest.approx(np.std(values.reshape(5, 2).mean(1), ddof=1) / np.sqrt(5))


def test_mbar_is_that_of_pymbar():
    """Free energies, weights and a mean of states that overlap little, of unequal numbers of samples; some of none."""
    pymbar = pytest.importorskip("pymbar")
    rng, centers = np.random.default_rng(1), np.linspace(0, 3, 8)
    n_k = np.array([400, 50, 300, 0, 200, 900, 10, 150])
    states = rng.permutation(np.repeat(np.arange(8), n_k))
    x = rng.normal(centers[states], 0.35)
    u_kn = 0.5 * (x - centers[:, None]) ** 2 / 0.35**2 + np.linspace(-40, 25, 8)[:, None]
    found = MBAR(u_kn, states)
    expected = pymbar.MBAR(u_kn, n_k, solver_protocol="robust", relative_tolerance=1e-12)
    np.testing.assert_allclose(found.f_k, expected.f_k, rtol=0, atol=1e-6)
    np.testing.assert_allclose(np.exp(found.log_weights(u_kn[2])), expected.W_nk[:, 2], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found.mean(x, u_kn[3]), expected.compute_expectations(x)["mu"][3], atol=1e-6)


WORDS = {
    "phi": {"kind": "TORSION", "atoms": [5, 7, 9, 15]},
    "d": {"kind": "DISTANCE", "atoms": ["resid 1", "resid 2"]},
    "hold": {"kind": "RESTRAINT", "arg": "d", "at": [[5.0], [6.0]], "kappa": [10.0]},
    "metad": {"kind": "METAD", "arg": ["phi"], "sigma": [0.35], "height": 0.3, "pace": 10, "biasfactor": 10},
}
FILE = "\n".join(
    f"[{name}]\n" + "\n".join(f"{word} = {value!r}" for word, value in words.items()) for name, words in WORDS.items()
)


def test_a_run_takes_biases_of_a_file(device, tmp_path):
    """Targets by turns, columns of tables, COLVAR files; and the same files after an interrupt."""
    (tmp_path / "bias.toml").write_text(FILE)
    options = dict(
        replicas=3, report_every=10, minimize=0, timestep=1.0, trajectory_format="none", seed=3, device=device
    )  # fmt: skip
    whole = simulate(ATOMS, tmp_path / "whole", steps=40, bias=WORDS, **options)
    simulate(ATOMS, tmp_path / "parts", steps=20, bias=str(tmp_path / "bias.toml"), **options)
    simulate(ATOMS, tmp_path / "parts", steps=40, bias=tmp_path / "bias.toml", resume=True, **options)
    simulate(ATOMS, tmp_path / "shared", steps=40, bias=WORDS, replicas_per_device=2, **options)
    for name in ("COLVAR.0", "COLVAR.2", "energies.csv"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
        assert (tmp_path / "shared" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    head, *lines = (tmp_path / "whole" / "COLVAR.1").read_text().splitlines()
    assert head == "#! FIELDS time d hold.bias phi metad.bias"
    found = np.array([line.split() for line in lines], float)
    np.testing.assert_allclose(found[:, 0], [0, 0.01, 0.02, 0.03, 0.04])
    np.testing.assert_allclose(found[:, 2], 5 * (found[:, 1] - 6.0) ** 2, rtol=1e-4, atol=1e-5)
    assert (np.diff(found[:, 4]) > 0).all()
    table = whole.table()
    np.testing.assert_allclose(table["d"][table["replica"] == 1], found[:, 1], atol=1e-6)
    np.testing.assert_allclose(
        table["hold_kcal_mol"] + table["metad_kcal_mol"], table["restraints_kcal_mol"], atol=1e-5
    )


def test_a_run_prints_variables_without_a_bias(device, tmp_path):
    options = dict(steps=10, report_every=5, minimize=0, timestep=1.0, trajectory_format="none", seed=3, device=device)
    plain = simulate(ATOMS, tmp_path / "plain", **options)
    see = {**WORDS, "see": {"kind": "PRINT", "arg": ["phi", "d"]}}
    printed = simulate(ATOMS, tmp_path / "printed", bias={name: see[name] for name in ("phi", "d", "see")}, **options)
    assert (tmp_path / "printed" / "COLVAR.0").read_text().startswith("#! FIELDS time phi d see.bias\n")
    np.testing.assert_allclose(printed.table()["potential_kcal_mol"], plain.table()["potential_kcal_mol"], atol=1e-4)
    assert not printed.table()["see_kcal_mol"].any()


def test_targets_of_a_run_are_exchanged(device, tmp_path):
    """Replicas keep their atoms and take other windows; rungs say which."""
    words = {"d": WORDS["d"], "hold": {**WORDS["hold"], "at": [[5.0], [5.1], [5.2]]}}
    run = simulate(
        ATOMS, tmp_path / "out", steps=40, replicas=3, temperatures=[300.0] * 3, exchange_every=5,
        exchange="hamiltonian", bias=words, report_every=20, minimize=0, timestep=1.0, trajectory_format="none",
        device=device,
    )  # fmt: skip
    table = run.table()
    targets = 5.0 + 0.1 * np.asarray(table["rung"])
    np.testing.assert_allclose(table["hold_kcal_mol"], 5 * (table["d"] - targets) ** 2, rtol=1e-3, atol=1e-5)
    assert sum(of["accepted"] for of in run.exchanges) > 0
    assert "rungs" not in run.exchanges[0]
    grid = simulate(
        ATOMS, tmp_path / "grid", steps=40, replicas=4, temperatures=[300.0, 300.0, 330.0, 330.0], exchange_every=5,
        exchange="hamiltonian", ladder_shape=(2, 2), bias={**words, "hold": {**words["hold"], "at": [[5.0], [5.1]]}},
        report_every=20, minimize=0, timestep=1.0, trajectory_format="none", device=device,
    )  # fmt: skip
    assert [of["rungs"] for of in grid.exchanges] == [[0, 2], [1, 3], [0, 1], [2, 3]]
    assert [of["temperatures"] for of in grid.exchanges] == [[300, 330]] * 2 + [[300, 300], [330, 330]]
    assert "rungs 0 and 2, 300 and 330 K" in str(grid)
    rows = grid.table()
    np.testing.assert_array_equal(rows["bath_K"], np.where(np.asarray(rows["rung"]) < 2, 300.0, 330.0))
    targets = 5.0 + 0.1 * (np.asarray(rows["rung"]) % 2)
    np.testing.assert_allclose(rows["hold_kcal_mol"], 5 * (rows["d"] - targets) ** 2, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"phi": {"kind": "ANGLE", "atoms": [1, 2, 3]}}, "phi has the kind 'ANGLE'; choose one of TORSION, DISTANCE"),
        ({"phi": {"kind": "TORSION"}}, "phi, TORSION, has no `atoms`"),
        ({"phi": {**WORDS["phi"], "at": 1}}, "phi, TORSION, has no word `at`; there are: atoms"),
        ({"phi": {"kind": "TORSION", "atoms": [0, 2, 3, 4]}}, "variable phi: atoms are 0; expected numbers of 1 to 30"),
        (
            {"phi": {"kind": "TORSION", "atoms": ["resid 99", 2, 3, 4]}},
            "variable phi: the selection 'resid 99' selects no atoms",
        ),
        ({"phi": {"kind": "TORSION", "atoms": [1, 2]}}, "variable phi: TORSION has 4 atoms or groups of them; 2 are"),
        ({"hold": {**WORDS["hold"], "arg": "x"}}, "bias hold: 'x' is not a variable; there are: phi, d"),
        ({"hold": {**WORDS["hold"], "kappa": [-1.0]}}, "bias hold: `kappa` is"),
        ({"hold": {**WORDS["hold"], "at": [1.0, 2.0]}}, "bias hold: `at` has"),
        ({"metad": {**WORDS["metad"], "arg": "d"}}, r"bias metad: bounds of a DistanceVariable are \(nan, nan\)"),
        ({"step": WORDS["phi"]}, "bias: 'step' is not a name of a variable or bias"),
    ],
)
def test_words_of_biases_that_are_wrong(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        simulate(ATOMS, tmp_path / "out", steps=1, bias={**WORDS, **changes})
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_no_toml_is_refused(tmp_path):
    (tmp_path / "bias.toml").write_text("phi = [1")
    with pytest.raises(FormatError, match=r"bias.toml: is not a TOML file: "):
        simulate(ATOMS, tmp_path / "out", steps=1, bias=tmp_path / "bias.toml")


def test_data_sets_have_energies_and_forces_of_molecules_alone(device, tmp_path):
    """Of two molecules, without bias and scales; appended to, also by simulations of others."""
    h5py = pytest.importorskip("h5py")
    file, other = DatasetFile(tmp_path / "a.h5"), PEPTIDE[:41]
    options = dict(timestep=1.0, device=device)
    biased = Simulation([ATOMS, other], [2, 1], terms=[bias_of("two")], scales=True, **options)
    biased.ensemble.scales["charges"][:] = 0.7
    biased.run(10, every=5, call=file)
    with h5py.File(tmp_path / "a.h5") as found:
        assert found["molecule-1/pos"].shape == (4, 30, 3)
        assert found["molecule-2/forces"].shape == (2, 41, 3)
        assert found["molecule-2/types"][:, :3].tolist() == [[7, 1, 1]] * 2
        for name, atoms in (("molecule-1", ATOMS), ("molecule-2", other)):
            batch = Energy(atoms, device=device).evaluate_batch(found[f"{name}/pos"][:])
            np.testing.assert_allclose(found[f"{name}/energy"][:, 0], batch.total, rtol=1e-5)
            scale = np.abs(batch.gradients).max()
            np.testing.assert_allclose(found[f"{name}/forces"], -batch.gradients, atol=1e-5 * scale)
    Simulation(ATOMS, 1, **options).run(5, every=5, call=file)
    with h5py.File(tmp_path / "a.h5") as found:
        assert len(found["molecule-1/energy"]) == 5
    Simulation([PEPTIDE, other], 1, **options).run(5, every=5, call=DatasetFile(tmp_path / "a.h5"))
    with h5py.File(tmp_path / "a.h5") as found:
        sizes = {name: (len(of["pos"]), of["pos"].shape[1]) for name, of in found.items()}
        assert sizes == {"molecule-1": (5, 30), "molecule-2": (3, 41), "molecule-3": (1, len(PEPTIDE))}
        # TorchMD-NET's HDF5 spreads arrays (m,) over all samples, or takes their items for samples
        for of in found.values():
            assert of["energy"].shape == (len(of["pos"]), 1)
            assert of["types"].shape == of["pos"].shape[:2]
    with h5py.File(tmp_path / "a.h5", "r+") as found:  # as after an interrupt between arrays
        found["molecule-1/pos"].resize(6, axis=0)
    last = Simulation(ATOMS, 1, seed=9, **options)
    file(last)
    with h5py.File(tmp_path / "a.h5") as found:
        assert {len(of) for of in found["molecule-1"].values()} == {6}
        np.testing.assert_array_equal(found["molecule-1/pos"][5], last.positions[0])
    with_velocities = Simulation(ATOMS, 2, seed=3, **options)
    with_velocities.run(5, every=5, call=DatasetFile(tmp_path / "v.h5", velocities=True))
    with h5py.File(tmp_path / "v.h5") as found:
        np.testing.assert_array_equal(found["molecule-1/vel"], with_velocities.velocities[:])
        np.testing.assert_array_equal(found["molecule-1/pos"], with_velocities.positions[:])
        assert found["molecule-1/vel"].attrs["units"] == "angstrom/ps"
    with pytest.raises(FormatError, match="has velocities; use the same `velocities`"):
        DatasetFile(tmp_path / "v.h5")(with_velocities)
    (tmp_path / "text.h5").write_text("no")
    with h5py.File(tmp_path / "former.h5", "w") as found:
        found["molecule-1/pos"] = np.zeros((1, 30, 3))
    for wrong, sentence in (
        (lambda: file(Simulation(ATOMS, 1, model=VACUUM, **options)), "has energies for another solvent, cutoff or"),
        (lambda: file(Simulation(ATOMS, 1, cutoff=9.0, **options)), "has energies for another solvent, cutoff or"),
        (lambda: DatasetFile(tmp_path / "text.h5")(last), "is not an HDF5 file; choose another file"),
        (lambda: DatasetFile(tmp_path / "former.h5")(last), "was not written by this version of DatasetFile"),
        (lambda: DatasetFile(tmp_path / "a.csv"), r"the suffix of a data set must be .h5 or .hdf5"),
        (lambda: DatasetFile(tmp_path / "none" / "a.h5"), "none is not a folder; create it first"),
    ):
        with pytest.raises(FormatError, match=sentence):
            wrong()
    last.velocities[0] = np.full((30, 3), 1e5)
    DatasetFile(tmp_path / "b.H5")(last.run(3))
    assert not (tmp_path / "b.H5").exists()


def test_many_walkers_on_one_bias_are_noted(device):
    for height, noted in ((6.0, True), (0.1, False)):
        bias = Metadynamics([PHI], [0.35], height, 20, shared=True)
        simulation = Simulation(ATOMS, 2, terms=[bias], timestep=1.0, device=device, model=VACUUM)
        assert any("choose a lower `height`" in note for note in simulation.notes) == noted


def test_samples_of_states_are_of_one_simulation(device, tmp_path):
    """Others of the same shape are refused: with other temperatures, scales, solvents or restraints; not the same."""
    options = dict(exchange_every=5, timestep=1.0, device=device, model=VACUUM)

    def ladder(*temperatures: float, **more) -> Simulation:
        return rest2(ATOMS, temperatures, **{**options, **more}).run(5)

    simulation, samples = ladder(300, 350, seed=3), StateSamples()
    simulation.run(20, every=5, call=samples)
    simulation.save(tmp_path / "state.npz")
    again = rest2(ATOMS, (300, 350), **options, seed=3).restore(tmp_path / "state.npz")
    again.run(10, every=5, call=samples)
    assert samples.u_kn.shape == (2, 12)
    others = [
        ladder(300, 400, seed=3), ladder(310, 350, seed=3), ladder(300, 350, seed=4),
        ladder(300, 350, seed=3, model=SolventModel()), ladder(300, 350, seed=3, cutoff=9.0),
    ]  # fmt: skip
    for other in others:
        with pytest.raises(InputError, match="belong to another simulation or to other states"):
            samples(other)
    simulation.ensemble.scales["charges"][0] = 0.5
    with pytest.raises(InputError, match="belong to another simulation or to other states"):
        samples(simulation)
    assert samples.u_kn.shape == (2, 12)


def test_samples_of_states_may_be_taken_while_a_bias_grows(device):
    term = Metadynamics(PHI, 0.35, 0.5, 5, bias_factor=None)
    simulation = Simulation(ATOMS, 2, terms=[term], timestep=1.0, device=device, model=VACUUM)
    samples = StateSamples()
    simulation.run(20, every=5, call=samples)
    assert samples.u_kn.shape == (2, 8)


def test_a_surface_says_why_errors_are_empty():
    apart, edges = np.repeat([0.0, 1.0], 50), [np.array([-0.5, 0.5, 1.5])]
    told = free_energy(apart, edges, 300.0, blocks=2).table()
    assert told.notes == ("errors are empty for bins without samples in some block",)
    assert not free_energy(np.tile([0.0, 1.0], 50), edges, 300.0, blocks=2).table().notes
