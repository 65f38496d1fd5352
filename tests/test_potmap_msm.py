"""Maps by multilevel summation: splitting, interpolants, the steps on lattices, accuracy, and what is refused."""

import gc
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import load_system, random_atoms
from maps_helpers import odd_grid_on, relative

from pele_ocl import Atoms, Grid, InputError, potmap
from pele_ocl.opencl import Device, Queue, get_device
from pele_ocl.potential_model import PotentialModel
from pele_ocl.potmap import MapOptions, MapProblem
from pele_ocl.potmap.computing import memory_bytes
from pele_ocl.potmap.mesh.geometry import MeshGeometry
from pele_ocl.potmap.msm import Lattices, plan
from pele_ocl.potmap.msm.lattices import LatticeLayout
from pele_ocl.potmap.msm.levels import LatticeLevel, Stencil, levels_from
from pele_ocl.potmap.msm.splitting import Interpolant, Splitting

ACCURACY = 1e-3  # of most tests, so that few kernels are built


@pytest.fixture(scope="module")
def ubiquitin():
    return load_system("ubiquitin").atoms


@pytest.fixture(scope="module")
def odd_grid(ubiquitin):
    return odd_grid_on(ubiquitin)


@pytest.fixture(scope="module")
def exact(ubiquitin, odd_grid):
    """Direct sums in float64 with the field."""
    return potmap(ubiquitin, odd_grid, field=True, precision="float64")


def test_interpolants_are_those_of_the_text_books():
    t = np.linspace(0, 0.999, 7)
    cubic, quintic = Interpolant(4), Interpolant(6)
    assert cubic.value(t) == pytest.approx((1 - t) * (1 + t - 1.5 * t**2))
    assert cubic.value(1 + t) == pytest.approx(-t * (1 - t) ** 2 / 2)
    assert quintic.value(-t) == pytest.approx((1 - t**2) * (2 - t) * (0.5 + t / 4 - 5 * t**2 / 12))
    assert quintic.value(1 + t) == pytest.approx(
        -t * (1 - t) * (2 - t) * (1 / 6 + 3 * (1 + t) / 8 - 5 * (1 + t) ** 2 / 24)
    )
    assert quintic.value(2 + t) == pytest.approx(-(1 + t) * -t * (1 - t) ** 2 * (2 - t) / 24)
    assert cubic.shares == pytest.approx([-1 / 16, 9 / 16, 9 / 16, -1 / 16, 1])


@pytest.mark.parametrize("nodes", [4, 6, 8, 10])
def test_interpolants_hold_polynomials_and_have_one_slope(nodes):
    interpolant, x = Interpolant(nodes), np.array([-0.5, -0.123, 0.31, 0.5])
    weights, slopes = interpolant.at(x)
    places = np.arange(nodes) - (nodes // 2 - 1) - 0.5
    for power in range(nodes - 1):
        assert weights @ places**power == pytest.approx(x**power, abs=1e-9)
    before, after = slopes[3], slopes[0]  # of the nodes from the point on the left, and of the same ones a step on
    assert before[1:] == pytest.approx(after[:-1], abs=1e-9)
    assert (before[0], after[-1]) == pytest.approx((0, 0), abs=1e-9)


@pytest.mark.parametrize("order", [2, 3, 5])
def test_parts_add_up_to_the_potential(order):
    splitting, r, levels = Splitting(order, 6.0), np.linspace(0.5, 90, 400), 4
    outer, inner = (np.polynomial.Polynomial(each)(2 * r**2 / 36 - 1) for each in splitting.near)
    near = np.where(r < 6, outer / r - inner, 0)
    between = sum(splitting.between(r / 2**k) / 2**k for k in range(levels - 1))
    assert near + between + splitting.coarsest(r / 8) / 8 == pytest.approx(1 / r, rel=1e-12)
    assert not splitting.between(np.array([12.0, 30.0])).any()
    assert abs(near[r < 6][-1]) < 1e-3 / 6  # no step at the cutoff


def test_coarser_lattices_hold_all_that_finer_points_reach():
    for low, shape in (((-7, 0, 3), (40, 9, 30)), ((5, -6, -1), (23, 24, 25))):
        levels = levels_from(LatticeLevel(np.array(low), np.array(shape)), 6, 500)
        assert len(levels) >= 3
        for fine, coarse in pairwise(levels):
            for end, outermost in ((fine.low, coarse.low), (fine.low + fine.shape - 1, coarse.low + coarse.shape - 1)):
                reached = np.stack([(end + side * (5 - (end + 1) % 2)) // 2 for side in (-1, 1)])
                assert ((reached >= coarse.low) & (reached < coarse.low + coarse.shape)).all()
                assert (np.abs(reached - outermost).min(axis=0) <= 1).all()


@pytest.mark.parametrize("preset", plan.PRESETS)
def test_planes_of_long_lattices_fit_into_local_memory(preset):
    """Last lattices of a long and thin map are short enough, in float64, too."""
    device = SimpleNamespace(kind="GPU")
    splitting, spacing = Splitting(preset.order, 12.0), 12.0 / preset.ratio
    between = Stencil.of(splitting.between, spacing, np.full(3, splitting.reach(spacing)))
    for shape in ((45, 20, 20), (60, 12, 12), (400, 15, 30), (90, 40, 14)):
        last = levels_from(LatticeLevel(np.zeros(3, np.int64), np.array(shape)), preset.nodes, between.n_terms)[-1]
        layout = LatticeLayout.of(SimpleNamespace(device=device), max(*(last.shape - 1), *between.reach))
        assert 8 * layout.room <= 48 << 10


@pytest.mark.parametrize("spacing", [4 / 6, 8 / 6, 1.1, 0.1])
def test_points_that_stand_on_nodes_have_all_nodes_around_them(spacing):
    """Rounding takes such a point to either side."""
    for step in (0.5, spacing):
        axis = step * np.arange(-128.0, 129.0)
        atoms = Atoms(positions=np.stack([axis] * 3, axis=1), charges=np.ones(len(axis)))
        problem = MapProblem.of(atoms, Grid((0, 0, 0), 1.0, (1, 1, 1)), PotentialModel(), 1.0, False, "float64")
        geometry = MeshGeometry.of(problem.box, spacing, 10)
        first = geometry.placed(problem.positions)[0]
        assert (first >= 0).all()
        assert (first + 10 <= geometry.shape).all()


@pytest.fixture(params=["float32", "float64"])
def lattices(request, device):
    """Lattices of an oblong molecule on a device, with three levels and a run."""
    atoms = random_atoms(60)
    atoms = Atoms(positions=atoms.positions * (4.0, 1.0, 1.5), charges=atoms.charges)
    queue = Queue(get_device(device), request.param)
    problem = MapProblem.of(atoms, Grid.around(atoms, 1.0, 2.0), PotentialModel(), 1.0, False, request.param, ACCURACY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "CUTOFFS", (4.0,))
        found = Lattices(queue, problem)
    assert len(found.levels) >= 3
    return queue, found


def test_a_charge_on_a_lattice_makes_its_potential_everywhere(lattices):
    """The potential at the nodes is that of NumPy's dense sums, level by level, of charges at random."""
    queue, found = lattices
    splitting = Splitting(plan.preset_for(ACCURACY).order, 4.0)
    interpolant, spacing = Interpolant(found.window.nodes), found.geometry.spacing
    charges = np.random.default_rng(3).normal(size=found.levels[0].shape[::-1])
    by_level = [charges]
    for fine, coarse in pairwise(found.levels):
        by_level.append(_along_all(by_level[-1], _shares(interpolant, fine, coarse)))
    expected = None
    for k in reversed(range(len(found.levels))):
        last = k == len(found.levels) - 1
        here = _dense(by_level[k], spacing, splitting.coarsest if last else splitting.between) / 2**k
        if expected is not None:
            here += _along_all(expected, [each.T for each in _shares(interpolant, *found.levels[k : k + 2])])
        expected = here
    potentials = queue.download(found.potential_of(queue, queue.upload(charges)), charges.size).reshape(charges.shape)
    assert relative(potentials, expected) < (1e-6 if queue.precision == "float32" else 1e-14)
    again = queue.download(found.potential_of(queue, queue.upload(charges)), charges.size).reshape(charges.shape)
    assert np.array_equal(again, potentials)


def _shares(interpolant, fine, coarse):
    """Return for z, y and x (coarse, fine) shares of coarse points in fine ones."""
    places = [
        np.subtract.outer(2 * (low + np.arange(n)), first + np.arange(m)) / 2
        for low, n, first, m in zip(coarse.low, coarse.shape, fine.low, fine.shape, strict=True)
    ]
    return [interpolant.value(each.ravel()).reshape(each.shape) for each in places[::-1]]


def _along_all(values, matrices):
    return np.einsum("zyx,az,by,cx->abc", values, *matrices, optimize=True)


def _dense(charges, spacing, potential):
    """Sums over all charges of a lattice."""
    shape = np.array(charges.shape)
    r2 = sum(
        along.reshape([-1 if axis == d else 1 for axis in range(3)]) ** 2.0
        for d, along in enumerate(np.arange(1 - n, n) for n in shape)
    )
    size = 3 * shape
    spectrum = np.fft.rfftn(potential(spacing * np.sqrt(r2)), size, (0, 1, 2)) * np.fft.rfftn(charges, size, (0, 1, 2))
    return np.fft.irfftn(spectrum, size, (0, 1, 2))[tuple(slice(n - 1, 2 * n - 1) for n in shape)]


@pytest.mark.parametrize(
    "accuracy",
    [ACCURACY, *(pytest.param(each.accuracy, marks=pytest.mark.slow) for each in plan.PRESETS)],
)
def test_accuracies_hold(ubiquitin, odd_grid, exact, accuracy, precision, device):
    options = dict(method="msm", accuracy=accuracy, precision=precision, field=True, device=device)
    result = potmap(ubiquitin, odd_grid, **options)
    assert (result.method, result.variant, result.accuracy) == ("msm", "msm", accuracy)  # no finer lattice was needed
    error = relative(result.map.values, exact.map.values)
    assert accuracy / 100 < error <= accuracy
    assert result.error.norm == pytest.approx(error, rel=0.25)
    assert relative(result.field, exact.field) < 3 * accuracy
    again = potmap(ubiquitin, odd_grid, **options)
    assert np.array_equal(again.map.values, result.map.values)


def test_same_bits_however_it_is_cut(ubiquitin, odd_grid, device, monkeypatch):
    options = dict(method="msm", accuracy=ACCURACY, field=True)
    whole = potmap(ubiquitin, odd_grid, device=device, **options)
    shared = potmap(ubiquitin, odd_grid, device=[device, device], **options)
    assert relative(shared.map.values, whole.map.values) < 1e-7
    monkeypatch.setattr("pele_ocl.potmap.slabs.MOST_POINTS", 25 * 33 * 5)
    assert np.array_equal(potmap(ubiquitin, odd_grid, device=device, **options).map.values, whole.map.values)


@pytest.mark.parametrize("grid", ["around", "fine"])
def test_memory_is_told_beforehand(ubiquitin, odd_grid, grid, device):
    grid = odd_grid if grid == "around" else Grid(ubiquitin.positions.mean(axis=0), 0.05, (150, 150, 3))
    chosen, options = get_device(device), dict(method="msm", accuracy=ACCURACY, field=True, device=device)
    gc.collect()
    chosen.spare_buffers.clear()  # may be larger than needed
    before = chosen.buffers.now
    told = memory_bytes(ubiquitin, grid, MapOptions(**options))
    chosen.buffers.start()
    potmap(ubiquitin, grid, **options)
    assert told / 2 < chosen.buffers.most - before < told


def test_memory_of_a_gpu_is_told_beforehand(ubiquitin, odd_grid, device, monkeypatch):
    """Atoms are counted in more parts there, and the device computes the sums that measure the error."""
    monkeypatch.setattr(Device, "kind", "GPU")
    test_memory_is_told_beforehand(ubiquitin, odd_grid, "around", device)


def test_random_charges_of_any_net_charge():
    for seed, charge in enumerate((-100.0, 0.0, 100.0)):
        atoms = random_atoms(500, seed)
        charges = atoms.charges - atoms.charges.mean() + charge / 500
        atoms = Atoms(positions=atoms.positions, charges=charges)
        grid = Grid.around(atoms, 3.0, 1.7)
        expected = potmap(atoms, grid, precision="float64").map.values
        result = potmap(atoms, grid, method="msm", accuracy=ACCURACY, field=True)
        assert relative(result.map.values, expected) < ACCURACY


def test_finer_lattices_follow_where_an_accuracy_is_missed(ubiquitin, odd_grid, exact, monkeypatch):
    found = plan.preset_for(ACCURACY)
    monkeypatch.setattr(plan, "PRESETS", (replace(found, ratio=3.0), replace(found, accuracy=ACCURACY / 10)))
    result = potmap(ubiquitin, odd_grid, method="msm", accuracy=ACCURACY, field=True)
    assert result.accuracy == ACCURACY / 10
    assert result.error.norm == pytest.approx(relative(result.map.values, exact.map.values), rel=0.25)


@pytest.mark.slow
def test_far_from_a_neutral_molecule_the_error_says_what_is_left(ubiquitin):
    grid = Grid(ubiquitin.positions.mean(axis=0) + 60, 1.5, (9, 8, 7))
    result = potmap(ubiquitin, grid, method="msm", accuracy=1e-4)
    expected = potmap(ubiquitin, grid, precision="float64").map.values
    assert result.accuracy < 1e-4
    assert result.error.norm == pytest.approx(relative(result.map.values, expected), rel=0.5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(kappa=0.1), "msm has no salt; choose the method mesh or direct"),
        (dict(distance_dependent=True), "no distance-dependent dielectric; choose the method direct"),
        (dict(min_distance=1.0), "no minimum distance"),
        (dict(accuracy=1e-6), "for the method msm in float32 it can be 1e-05 to 0.1"),
    ],
)
def test_what_is_refused(ubiquitin, odd_grid, options, words):
    with pytest.raises(InputError, match=words):
        potmap(ubiquitin, odd_grid, method="msm", **options)


def test_lattices_that_are_too_large_are_refused(ubiquitin):
    grid = Grid(ubiquitin.positions.mean(axis=0) + np.array([1e9, 0, 1e9]), 1.0, (5, 4, 3))
    with pytest.raises(InputError, match="msm has not enough nodes for all atoms and points of this map"):
        potmap(ubiquitin, grid, method="msm")


def test_atoms_without_charge(odd_grid):
    none = Atoms(positions=np.eye(3), charges=np.zeros(3))
    assert not potmap(none, odd_grid, method="msm").map.values.any()
