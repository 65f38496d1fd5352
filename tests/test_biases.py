"""Biases on collective variables: their kernels, metadynamics beside a model in NumPy, exchanges, and free energies."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from conftest import require
from test_minimize import PEPTIDE

from pele_ocl import (
    DistanceVariable,
    Energy,
    Ensemble,
    GridBias,
    GyrationVariable,
    InputError,
    Metadynamics,
    RMSDVariable,
    Simulation,
    TorsionVariable,
)
from pele_ocl.energy.terms.grid_bias import hill, interpolated
from pele_ocl.opencl import Device

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


def test_groups_of_work_items_share_a_bias(device, monkeypatch):
    """As GPUs have them: a variable is summed up by a group."""
    alone = Ensemble(ATOMS, 2, terms=[bias_of("three")], device=device).evaluate().terms().bias
    monkeypatch.setattr(Device, "kind", "GPU")
    together = Ensemble(ATOMS, 2, terms=[bias_of("three")], variant="blocks", device=device).evaluate()
    np.testing.assert_allclose(together.terms().bias, alone, rtol=1e-6)


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
    """Heights, the grid and energies after each hill; and the same bits after a checkpoint, between hills and at one."""
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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TorsionVariable([0, 1, 2]), "four different indices are needed"),
        (lambda: Metadynamics([], 0.3, 1.0, 10), "one to three collective variables"),
        (lambda: Metadynamics(PHI, [0.3, 0.3], 1.0, 10), "1 positive numbers are needed, one a variable"),
        (lambda: Metadynamics(PHI, 0.3, 1.0, 10, bias_factor=1.0), "bias_factor"),
        (lambda: Metadynamics(SIZE, 0.3, 1.0, 10), "bounds of a GyrationVariable are None"),
        (lambda: Metadynamics(PHI, 0.3, 1.0, 10, bounds=[(0.0, 1.0)]), "a torsion has its period, and no bounds"),
        (lambda: GridBias(PHI, np.zeros((9, 3))), r"grid has shape \(9, 3\)"),
        (lambda: Ensemble(ATOMS, terms=[Metadynamics(TorsionVariable([0, 1, 2, 30]), 0.3, 1, 9)]), "of 0 to 29"),
        (lambda: Simulation(ATOMS).variables("m"), "no bias on collective variables is named 'm'; there are: none"),
        (lambda: Simulation(ATOMS).run(5, every=2), "give both of `every` and `call`, or none"),
    ],
)
def test_what_does_not_fit(make, message):
    with pytest.raises(InputError, match=message):
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


def test_an_interrupt_neither_loses_nor_doubles_hills(device):
    require(device, "float64")
    term = Metadynamics(PHI, 0.35, 0.5, 2)
    options = dict(terms=[term], timestep=1.0, seed=2, precision="float64", device=device)
    plain = Simulation(ATOMS, 2, **options).run(12)
    for at in range(2, 12, 3):
        simulation = Simulation(ATOMS, 2, **options)
        resident, calls = simulation.ensemble.state.resident, [0]
        own = resident.queue_up

        def queue_up(launches, own=own, calls=calls, at=at):
            own(launches)
            calls[0] += 1
            if calls[0] == at:
                raise KeyboardInterrupt

        resident.queue_up = queue_up
        with pytest.raises(KeyboardInterrupt):
            simulation.run(12)
        del resident.queue_up
        simulation.run(12 - simulation.steps)
        np.testing.assert_array_equal(simulation.positions[:], plain.positions[:])
