"""Maps by a mesh: accuracy, its measure, the transforms, and what is refused."""

import gc
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import load_system, random_atoms
from maps_helpers import odd_grid_on, relative

from pele_ocl import Atoms, Grid, InputError, Potmap, potmap
from pele_ocl.common.threads import MANY
from pele_ocl.opencl import Queue, get_device
from pele_ocl.opencl.queue import IN_TURN, read_without_padding
from pele_ocl.potential_model import PotentialModel
from pele_ocl.potmap import MapOptions, MapProblem
from pele_ocl.potmap.computing import memory_bytes
from pele_ocl.potmap.error import measured
from pele_ocl.potmap.mesh import levels, mesh_for, tighter
from pele_ocl.potmap.mesh.device_mesh import Spreading
from pele_ocl.potmap.mesh.geometry import MeshGeometry, transform_length
from pele_ocl.potmap.mesh.green import _to_distances, _to_lengths
from pele_ocl.potmap.mesh.parameters import PRESETS
from pele_ocl.potmap.mesh.split import Split, Window
from pele_ocl.potmap.mesh.transform import radices, roots
from pele_ocl.potmap.plan import method_for
from pele_ocl.potmap.slabs import Scratch
from pele_ocl.potmap.sorting import DeviceAtoms


@pytest.fixture(scope="module")
def ubiquitin():
    return load_system("ubiquitin").atoms


@pytest.fixture(scope="module")
def odd_grid(ubiquitin):
    return odd_grid_on(ubiquitin)


@pytest.fixture(scope="module")
def salty(ubiquitin, odd_grid):
    """Direct sums in float64 with the field, without salt and with it."""
    return {
        kappa: potmap(ubiquitin, odd_grid, field=True, precision="float64", kappa=kappa)
        for kappa in (0.0, 0.01, 0.13, 0.9)
    }


@pytest.mark.parametrize(
    ("accuracy", "kappa"), [*((preset.accuracy, 0.0) for preset in PRESETS), (1e-5, 0.01), (1e-6, 0.13), (1e-6, 0.9)]
)
def test_accuracies_hold(ubiquitin, odd_grid, salty, accuracy, kappa, device):
    result = potmap(
        ubiquitin, odd_grid, method="mesh", accuracy=accuracy, precision="float64", kappa=kappa, device=device
    )
    assert result.accuracy == accuracy  # no finer mesh was needed
    error = relative(result.map.values, salty[kappa].map.values)
    assert error <= accuracy
    assert error >= accuracy / 100  # the mesh is no finer than it need be, or this test sees nothing
    assert result.error.norm == pytest.approx(error, rel=0.25)


def test_field(ubiquitin, odd_grid, salty, precision, device):
    accuracy, kappa = 1e-6, 0.13
    result = potmap(
        ubiquitin, odd_grid, method="mesh", accuracy=accuracy, precision=precision, kappa=kappa, field=True,
        device=device,
    )  # fmt: skip
    assert relative(result.field, salty[kappa].field) < accuracy
    assert relative(result.map.values, salty[kappa].map.values) < accuracy


def test_same_bits_however_it_is_cut(ubiquitin, odd_grid, precision, monkeypatch):
    options = dict(method="mesh", accuracy=1e-4, precision=precision)
    whole = potmap(ubiquitin, odd_grid, **options).map.values
    monkeypatch.setattr("pele_ocl.potmap.slabs.MOST_POINTS", 25 * 33 * 5)
    assert np.array_equal(potmap(ubiquitin, odd_grid, **options).map.values, whole)


@pytest.mark.parametrize("method", ["mesh", "msm"])
def test_threads_that_sort_change_no_bit(ubiquitin, odd_grid, method, device, monkeypatch):
    alone = potmap(ubiquitin, odd_grid, method=method, device=device)
    monkeypatch.setattr("pele_ocl.common.threads.MANY", 1)
    beside = potmap(ubiquitin, odd_grid, method=method, device=device)
    assert np.array_equal(beside.map.values, alone.map.values)
    assert beside.error == alone.error


def test_devices_share_the_slabs(ubiquitin, odd_grid, device):
    options = dict(method="mesh", accuracy=1e-4)
    alone = potmap(ubiquitin, odd_grid, device=device, **options)
    shared = potmap(ubiquitin, odd_grid, device=[device, device], **options)
    assert relative(shared.map.values, alone.map.values) < 1e-7
    assert shared.error.norm == pytest.approx(alone.error.norm, rel=1e-6)


def test_large_reads_come_in_parts_without_their_padding(device, precision):
    queue = Queue(get_device(device), precision)
    slices = np.random.default_rng(0).normal(size=(3 * IN_TURN + 1, 6, 8)).astype(precision)
    buffer = queue.upload(np.concatenate([np.zeros(5), slices.ravel()]))
    for at_once, n_arrays in ((1, 2), (100, IN_TURN), (10**6, 1)):
        queue.device.staging.clear()
        found = np.empty((len(slices), 5, 6), precision)
        read_without_padding(queue, found, buffer, 5, (6, 8), at_once)
        assert np.array_equal(found, slices[:, :5, :6])
        assert len(queue.device.staging) == n_arrays


def test_a_host_array_is_not_read_into_before_it_is_copied(device, monkeypatch):
    """With few arrays and slow copies, the next reads wait."""
    queue, own, n_arrays = Queue(get_device(device), "float32"), Queue.wait, 2
    slices = np.random.default_rng(0).normal(size=(5 * n_arrays, 6, 8)).astype(np.float32)
    buffer = queue.upload(slices.ravel())

    def wait(queue: Queue, event: object) -> None:
        own(queue, event)
        time.sleep(0.05)

    monkeypatch.setattr(Queue, "wait", wait)
    found = np.empty((len(slices), 5, 6), np.float32)
    read_without_padding(queue, found, buffer, 0, (6, 8), 1)
    np.testing.assert_array_equal(found, slices[:, :5, :6])


def test_large_reads_of_one_precision_after_another(device):
    queue = Queue(get_device(device), "float32")
    queue.device.staging.clear()
    for precision, depth in (("float32", 5), ("float64", 1)):  # 60 bytes are no whole number of doubles
        values = np.arange(3.0 * depth).reshape(depth, 1, 3).astype(precision)
        found = np.empty((depth, 1, 2), precision)
        read_without_padding(queue, found, queue.upload(values, precision), 0, (1, 3), 3 * depth)
        assert np.array_equal(found, values[:, :, :2])
    assert len(queue.device.staging) == 1  # which served both


def test_random_charges_of_any_net_charge():
    for seed, charge in enumerate((-100.0, 0.0, 100.0)):
        atoms = random_atoms(500, seed)
        charges = atoms.charges - atoms.charges.mean() + charge / 500
        atoms = Atoms(positions=atoms.positions, charges=charges)
        grid = Grid.around(atoms, 3.0, 1.7)
        expected = potmap(atoms, grid, precision="float64").map.values
        result = potmap(atoms, grid, method="mesh", accuracy=1e-4)
        assert relative(result.map.values, expected) < 1e-4


def test_far_from_a_neutral_molecule_a_finer_mesh_is_taken(ubiquitin):
    grid = Grid(ubiquitin.positions.mean(axis=0) + 60, 1.5, (9, 8, 7))
    result = potmap(ubiquitin, grid, method="mesh", accuracy=1e-4)
    expected = potmap(ubiquitin, grid, precision="float64").map.values
    assert result.accuracy < 1e-4
    assert relative(result.map.values, expected) < 1e-4


@pytest.fixture
def two_cores(monkeypatch):
    """Direct sums go as fast as on two cores, whatever the device: a GPU makes them sooner than a mesh for long."""
    monkeypatch.setattr("pele_ocl.potmap.plan.evaluations_per_second", lambda device: 1.3e10)


def test_auto_says_what_it_took(ubiquitin, two_cores):
    small, large = (Grid.around(ubiquitin, 5.0, spacing) for spacing in (3.0, 0.4))
    assert potmap(ubiquitin, small, method="auto").method == "direct"
    assert potmap(ubiquitin, large, method="auto").method == "mesh"
    assert potmap(ubiquitin, large, method="auto", min_distance=1.0).method == "direct"


def test_auto_takes_direct_sums_where_a_device_makes_them_soon(ubiquitin, device, monkeypatch):
    grid = Grid.around(ubiquitin, 5.0, 0.4)
    problem = MapProblem.of(ubiquitin, grid, PotentialModel(), 1.0, False, "float32", 1e-4)
    monkeypatch.setattr("pele_ocl.potmap.plan.evaluations_per_second", lambda device: 5e12)
    assert method_for(problem, [get_device(device)]) == "direct"


def test_auto_counts_the_finer_meshes_that_follow_beside_a_molecule(ubiquitin, device, two_cores):
    """The same grid around the molecule, where one mesh does, and beside it, where finer ones are likely to follow."""
    around = Grid.around(ubiquitin, 5.0, 0.55)
    beside = Grid(around.origin + np.array([90.0, 0, 0]), 0.55, around.shape)
    problems = [
        MapProblem.of(ubiquitin, grid, PotentialModel(), 1.0, False, "float32", 1e-4) for grid in (around, beside)
    ]
    assert [method_for(problem, [get_device(device)]) for problem in problems] == ["mesh", "direct"]


def test_points_next_to_atoms_keep_their_digits(ubiquitin, device):
    """float32 holds coordinates of 30 A to 2e-6 A, which 0.002 A from an atom would be 1e-3 of its potential."""
    far = int(np.argmax(np.linalg.norm(ubiquitin.positions - ubiquitin.positions.mean(axis=0), axis=1)))
    grid = Grid(ubiquitin.positions[far] + (0.0012, 0.0013, 0.001) - (0, 0, 60), 3.0, (21, 21, 21))
    near = potmap(ubiquitin, grid, method="mesh", accuracy=1e-5, device=device).map.values[-1, 0, 0]
    exact = potmap(ubiquitin, grid, precision="float64").map.values[-1, 0, 0]
    assert near == pytest.approx(exact, rel=3e-6)


def test_measured_error_of_a_cutoff(ubiquitin, odd_grid, salty):
    result = potmap(ubiquitin, odd_grid, method="cutoff", cutoff=9.0)
    error = relative(result.map.values, salty[0.0].map.values)
    assert result.error.norm == pytest.approx(error, abs=3 * result.error.uncertainty)
    assert result.error.uncertainty < 0.1 * error
    assert potmap(ubiquitin, odd_grid).error is None


def test_a_map_that_is_zero_everywhere_is_all_wrong(ubiquitin):
    """Beyond the cutoff of all atoms: the error is relative to what the potential and the field are, not to nothing."""
    grid = Grid(ubiquitin.positions.max(axis=0) + 20.0, 1.0, (12, 11, 10))
    result = potmap(ubiquitin, grid, method="cutoff", cutoff=10.0, field=True)
    assert not result.map.values.any()
    assert result.error.norm == result.field_error.norm == pytest.approx(1.0, rel=1e-12)
    assert result.error.largest == pytest.approx(np.abs(potmap(ubiquitin, grid).map.values).max(), rel=0.1)


def test_an_error_where_the_exact_values_are_zero_is_infinite():
    zero, wrong = np.zeros((9, 1)), np.full((9, 1), 0.5)
    error = measured(wrong, zero, 0.25)
    assert (error.norm, error.largest, error.as_json()["norm"]) == (np.inf, 0.5, None)
    assert measured(zero, zero, 0.0).norm == 0.0
    assert measured(wrong, wrong, 0.25).norm == 0.0


@pytest.mark.parametrize("method", ["mesh", "msm", "cutoff"])
def test_potential_and_field_have_errors_of_their_own(ubiquitin, method):
    """Around molecules and beside them, with and without net charge, the measured error is the true one."""
    options = {"cutoff": 11.0} if method == "cutoff" else {"accuracy": 2e-3}
    charged = replace(ubiquitin, charges=ubiquitin.charges + 0.01)
    centre, last = ubiquitin.positions.mean(axis=0), ubiquitin.positions.max(axis=0)
    for atoms in (ubiquitin, charged):
        for origin, shape in ((centre - 9.3, (13, 12, 14)), (last + 4.3, (14, 15, 13)), (last + 20.3, (5, 6, 7))):
            grid = Grid(origin, 1.3, shape)
            exact = potmap(atoms, grid, precision="float64", field=True)
            result = potmap(atoms, grid, method=method, field=True, **options)
            for error, found, true in (
                (result.error, result.map.values, exact.map.values),
                (result.field_error, result.field, exact.field),
            ):
                assert error.norm == pytest.approx(relative(found, true), rel=0.15, abs=4 * error.uncertainty)
                if method != "cutoff":
                    assert error.norm <= result.wanted == 2e-3


def test_a_field_that_misses_its_accuracy_gets_a_finer_mesh(ubiquitin):
    """Beside a neutral molecule the field is farther off than the potential."""
    grid = Grid(ubiquitin.positions.max(axis=0) + 20.0, 1.5, (9, 8, 7))
    alone = potmap(ubiquitin, grid, method="mesh", accuracy=1e-3)
    both = potmap(ubiquitin, grid, method="mesh", accuracy=1e-3, field=True)
    exact = potmap(ubiquitin, grid, precision="float64", field=True)
    assert both.accuracy < alone.accuracy
    assert alone.field_error is None
    assert relative(both.field, exact.field) < 1e-3


def test_error_on_the_device_is_that_of_the_host(ubiquitin, odd_grid, monkeypatch, device):
    errors = []
    for few in (0, 1e12):
        monkeypatch.setattr("pele_ocl.potmap.error.FEW_EVALUATIONS", few)
        errors.append(
            potmap(ubiquitin, odd_grid, method="cutoff", cutoff=9.0, precision="float64", field=True, device=device)
        )
    for name in ("error", "field_error"):
        first, second = (getattr(result, name) for result in errors)
        assert first.norm == pytest.approx(second.norm, rel=1e-9)
        assert first.largest == pytest.approx(second.largest, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(method="mesh", distance_dependent=True), "no distance-dependent dielectric"),
        (dict(method="mesh", min_distance=1.0), "no minimum distance"),
        (dict(method="mesh", accuracy=1e-7), "can be 1e-06 to 0.1"),
        (dict(method="mesh", accuracy=float("nan")), "can be 1e-06 to 0.1"),
        (dict(method="direct", accuracy=1e-3), "an accuracy applies to the methods msm, mesh and auto, not to direct"),
        (dict(method="mesh", variant="blocked"), "has no variant"),
    ],
)
def test_what_is_refused(ubiquitin, odd_grid, options, words):
    with pytest.raises(InputError, match=words):
        potmap(ubiquitin, odd_grid, **options)


@pytest.mark.parametrize("away", [1e4, 1e9])
def test_a_mesh_that_is_too_large_is_refused(ubiquitin, away):
    grid = Grid(ubiquitin.positions.mean(axis=0) + np.array([away, 0, away]), 1.0, (5, 4, 3))
    with pytest.raises(InputError, match="mesh has not enough nodes for all atoms and points"):
        potmap(ubiquitin, grid, method="mesh")
    assert potmap(ubiquitin, grid, method="auto").method == "direct"


def test_a_coarser_mesh_is_taken_where_there_is_little_room(ubiquitin, odd_grid):
    problem = MapProblem.of(ubiquitin, odd_grid, PotentialModel(), 1.0, False, "float32", 1e-4)
    parameters = mesh_for(problem)
    split = parameters.near
    length = int(MeshGeometry.of(problem.box, split.spacing, parameters.window.nodes).lengths.max())
    assert mesh_for(replace(problem, longest_line=length)).near.cutoff == split.cutoff
    assert mesh_for(replace(problem, longest_line=length - 1)).near.cutoff > split.cutoff
    assert not levels(replace(problem, most_nodes=100))
    assert tighter(replace(problem, most_nodes=100)) is None


def test_atoms_that_move_little_keep_their_room(ubiquitin, odd_grid):
    problem = MapProblem.of(ubiquitin, odd_grid, PotentialModel(), 1.0, False, "float32", 1e-4).with_margin(3.0)
    near, far = (problem.moved(ubiquitin.moved(ubiquitin.positions + away)) for away in (2.9, 3.1))
    assert near.box is problem.box
    assert (far.box[0] == problem.box[0]).all()
    assert (far.box[1] >= problem.box[1] + 3).all()


def test_memory_is_told_beforehand(ubiquitin, odd_grid, precision, device):
    chosen = get_device(device)
    chosen.cached.clear()
    gc.collect()
    chosen.spare_buffers.clear()  # may be larger than needed
    before = chosen.buffers.now
    told = memory_bytes(ubiquitin, odd_grid, MapOptions("mesh", device=device, precision=precision, accuracy=1e-4))
    chosen.buffers.start()
    potmap(ubiquitin, odd_grid, method="mesh", accuracy=1e-4, precision=precision, device=device)
    assert told / 2 < chosen.buffers.most - before < told


@pytest.mark.parametrize(
    ("spacing", "shape", "salt"), [(0.9, (50, 40, 50), 20.0), (0.05, (300, 300, 3), 0.0)], ids=["salt", "fine"]
)
def test_memory_of_meshes_that_salt_or_a_fine_map_makes_large(ubiquitin, device, spacing, shape, salt):
    few = ubiquitin[:20]
    grid = Grid(few.positions.mean(axis=0) - spacing * np.array(shape) / 2, spacing, shape)
    chosen, options = get_device(device), {"accuracy": 1e-4, "dielectric": 78.54, "ionic_strength": salt}
    chosen.cached.clear()
    gc.collect()
    chosen.spare_buffers.clear()  # may be larger than needed
    before = chosen.buffers.now
    told = memory_bytes(few, grid, MapOptions("mesh", device=device, **options))
    chosen.buffers.start()
    potmap(few, grid, method="mesh", device=device, **options)
    assert told / 2 < chosen.buffers.most - before < told


def test_atoms_without_charge(odd_grid):
    none = Atoms(positions=np.eye(3), charges=np.zeros(3))
    assert not potmap(none, odd_grid, method="mesh").map.values.any()


def test_an_atom_on_a_point_is_found_while_the_device_computes(device):
    """In many atoms, where a thread looks; the plan makes further maps."""
    rng = np.random.default_rng(3)
    atoms = Atoms(positions=rng.uniform(0, 40, (MANY, 3)), charges=rng.normal(0, 0.3, MANY))
    there, grid = atoms.positions.copy(), Grid((10.0, 10.0, 10.0), 2.0, (5, 5, 5))
    there[1234] = 12.0, 14.0, 16.0
    plan = Potmap(atoms, grid, method="mesh", device=device)
    expected = plan.evaluate().map.values.copy()
    with pytest.raises(InputError, match="is at the position of"):
        plan.evaluate(there)
    np.testing.assert_array_equal(plan.evaluate(atoms.positions).map.values, expected)


# Parts


def test_atoms_on_nodes_have_the_weights_of_that_place(device, precision):
    """Also where float32 takes them to the other side of a node, or far from the origin."""
    queue, window = Queue(get_device(device), precision), Window(8, 1.2, 10)
    spacing, scratch = 4 * np.pi / 10, Scratch()
    nodes = np.random.default_rng(2).integers(-400, 400, (500, 3))
    positions = np.asfortranarray((nodes + np.where(nodes % 3 == 0, 0.3, np.where(nodes % 3 == 1, -1e-9, 0))) * spacing)
    numbers = np.arange(1, 501).astype(precision)
    problem = SimpleNamespace(positions=positions, precision=precision, n_atoms=500, rounded=numbers)
    geometry = MeshGeometry.of((positions.min(axis=0), positions.max(axis=0)), spacing, 8)
    charges = Spreading(queue, window, scratch).sorted(queue, geometry, DeviceAtoms(queue, problem))
    first = queue.download(charges.first, 4 * 500, np.int32).reshape(-1, 4)[:, :3]
    weights = queue.download(charges.weights, 500 * 40).reshape(-1, 40)[:, [*range(8, 16), *range(24, 40)]]
    weights = weights.astype(np.float64).reshape(-1, 3, 8)
    atoms = np.rint(weights[:, 2].sum(axis=1)).astype(int) - 1  # the charges' numbers
    assert sorted(atoms) == list(range(500))
    weights[:, 2] /= numbers[atoms, None]
    fractions = positions[atoms] / spacing - (first + geometry.low) - 3.5
    assert np.abs(fractions).max() < 0.5 + 1e-6
    expected = window.at(fractions.ravel())[0].reshape(-1, 3, 8)
    assert np.abs(weights - expected).max() < {"float32": 1e-6, "float64": 1e-12}[precision]


def test_sorted_charges_keep_their_memory(device):
    """Also after the atoms, while another map uses the memory of earlier ones."""
    queue, positions = Queue(get_device(device), "float32"), np.random.default_rng(4).uniform(0, 9, (3, 50)).T
    problem = SimpleNamespace(positions=positions, precision="float32", n_atoms=50, rounded=np.ones(50, np.float32))
    geometry = MeshGeometry.of((positions.min(axis=0), positions.max(axis=0)), 1.2, 8)
    spreading = Spreading(queue, Window(8, 1.2, 10), Scratch.kept(queue.device, "test"))
    charges = spreading.sorted(queue, geometry, DeviceAtoms(queue, problem))
    del spreading
    gc.collect()
    others = [
        Scratch.kept(queue.device, kind)(queue, name, 1)
        for kind, name in (("atoms", "first nodes"), ("atoms", "starts of blocks"), ("test", "narrow"))
    ]
    own = {each.int_ptr for each in (charges.first, charges.starts, charges.weights)}
    assert own.isdisjoint(each.int_ptr for each in others)


def test_split_is_whole():
    r = np.linspace(0.5, 7.9, 40)
    for kappa in (0.0, 0.2):
        split = Split(17.0, 8.0, kappa)
        outer, inner = split.near_polynomials(13)
        s = 2 * (r / 8) ** 2 - 1
        near = np.polynomial.polynomial.polyval(s, outer) / r - np.polynomial.polynomial.polyval(s, inner)
        assert near + split.far(r) == pytest.approx(np.exp(-kappa * r) / r, rel=1e-8)
        beyond = np.array([8.0, 11.0, 30.0])
        assert split.far(beyond) == pytest.approx(np.exp(-kappa * beyond) / beyond, rel=1e-6)


def test_windows_share_out_a_charge():
    window = Window(8, 1.2, 10)
    for t in (-0.5, -0.2, 0.37):
        weights = np.polynomial.polynomial.polyval(t, window.pieces.T)
        assert weights.sum() == pytest.approx(1, abs=2e-4)
        assert weights == pytest.approx(window.weight(t + 0.5 + 3 - np.arange(8)), abs=1e-7)


def test_lengths_of_transforms():
    assert [transform_length(n) for n in (1, 11, 127, 223)] == [2, 12, 128, 224]
    for length in (2, 60, 98, 224, 1024):
        assert np.prod(radices(length)) == length


def test_cosine_sums_are_transforms():
    values = np.random.default_rng(0).normal(size=5)
    line = np.zeros(12)
    line[:5], line[-4:] = values, values[:0:-1]
    assert _to_lengths(5, 12) @ values == pytest.approx(np.fft.rfft(line).real)
    assert (_to_distances(5, 8) @ np.arange(9.0))[0] == pytest.approx(2 * np.arange(9).sum() - 8)


@pytest.mark.parametrize("length", [6, 63 * 2, 240])
def test_transforms_there_and_back(length, precision, device):
    """Convolution along all axes with a table of ones gives the nodes back; with one of cosines it moves them."""
    from pele_ocl.potmap.mesh.transform import Convolution

    shape = np.array([length // 2, 5, 3])
    lengths = np.array([length, 10, 6])
    geometry = MeshGeometry(np.zeros(3), 1.0, shape, lengths, 2)
    nodes = np.random.default_rng(1).normal(size=shape[::-1]).astype(precision)
    queue = Queue(get_device(device), precision)
    convolution = Convolution(queue, geometry)
    table = np.ones(lengths[::-1] // 2 + 1)
    moved = table * 2 * np.cos(2 * np.pi * np.arange(length // 2 + 1) / length)  # a node to either side
    tolerance = 1e-6 if precision == "float32" else 1e-14
    for factor, expected in (
        (table, nodes),
        (moved, np.pad(nodes, ((0, 0), (0, 0), (1, 0)))[..., :-1] + np.pad(nodes, ((0, 0), (0, 0), (0, 1)))[..., 1:]),
    ):
        values = queue.empty(nodes.size)
        queue.write(values, nodes)
        convolution.apply(queue, values, queue.upload(convolution.padded(factor)), Scratch())
        found = queue.download(values, nodes.size).reshape(nodes.shape)
        assert relative(found, expected) < 4 * tolerance


def test_roots():
    assert roots(8)[1] == pytest.approx([0.5**0.5, -(0.5**0.5)])
