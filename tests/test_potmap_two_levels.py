"""Maps by meshes of two levels: accuracy, slabs, memory, and when they are taken."""

import gc
from dataclasses import replace

import numpy as np
import pytest
from conftest import load_system
from maps_helpers import relative

from pele_ocl import Atoms, Grid, Potmap, potmap
from pele_ocl.opencl import get_device
from pele_ocl.potential_model import PotentialModel
from pele_ocl.potmap import MapOptions, MapProblem, planned
from pele_ocl.potmap.computing import memory_bytes
from pele_ocl.potmap.mesh import mesh_for
from pele_ocl.potmap.mesh import parameters as mesh_parameters
from pele_ocl.potmap.mesh.geometry import MeshGeometry, SheetGeometry
from pele_ocl.potmap.mesh.parameters import Levels, far_box, sheets_of
from pele_ocl.potmap.mesh.split import Middle, Split

MOST_NODES = "pele_ocl.potmap.mesh.geometry.MOST_NODES"


@pytest.fixture(scope="module")
def ubiquitin():
    return load_system("ubiquitin").atoms


@pytest.fixture(scope="module")
def grid(ubiquitin):
    """Unequal spacings, atoms beyond two of its edges and none at a third."""
    return Grid(ubiquitin.positions.mean(axis=0) - (11.07, 14.2, 19.5), (1.1, 0.9, 1.3), (21, 25, 33))


@pytest.fixture
def levels(monkeypatch):
    """Two levels wherever a mesh is taken, of several sheets."""
    monkeypatch.setattr(mesh_parameters, "levels", lambda problem: [Levels(3.0, 8.0)])
    monkeypatch.setattr(mesh_parameters, "_chosen", {})
    monkeypatch.setattr(MOST_NODES, 110_000)


@pytest.mark.parametrize(
    ("accuracy", "precision", "nodes"),
    [(1e-3, "float64", 45_000), (1e-4, "float32", 110_000), (1e-7, "float64", 350_000)],
)
def test_accuracies_hold(ubiquitin, grid, levels, accuracy, precision, nodes, device, monkeypatch):
    monkeypatch.setattr(MOST_NODES, nodes)
    options = {"precision": precision, "device": device}
    problem = planned(ubiquitin, grid, MapOptions(method="mesh", accuracy=accuracy, **options)).problem
    assert 2 <= sheets_of(problem, Levels(3.0, 8.0)).n_sheets < grid.shape[2]
    result = potmap(ubiquitin, grid, method="mesh", accuracy=accuracy, **options)
    exact = potmap(ubiquitin, grid, precision="float64").map.values
    error = relative(result.map.values, exact)
    assert result.accuracy == accuracy
    assert accuracy / 100 < error <= accuracy
    assert result.error.norm == pytest.approx(error, rel=0.25)


@pytest.mark.parametrize("n_slices", [33, 61])
def test_the_coarse_mesh_has_all_nodes_that_those_of_sheets_take_from(ubiquitin, levels, n_slices):
    """The last sheet has fewer slices than the others."""
    grid = Grid(ubiquitin.positions.mean(axis=0) - (11.07, 14.2, 19.5), (1.1, 0.9, 1.3), (21, 25, n_slices))
    problem = planned(ubiquitin, grid, MapOptions(method="mesh", accuracy=1e-4)).problem
    parameters, sheets = mesh_for(problem), sheets_of(problem, Levels(3.0, 8.0))
    coarse = MeshGeometry.of(far_box(problem, parameters), parameters.far.spacing, parameters.window.nodes)
    assert sheets.n_sheets * sheets.depth > n_slices
    for sheet in range(sheets.n_sheets):
        for axis, nodes in enumerate(sheets.node_axes(sheet)):
            first = coarse.placed(nodes, axis)[0]
            assert first.min() >= 0
            assert first.max() + parameters.window.nodes <= coarse.shape[axis]


def test_field_and_salt(ubiquitin, grid, levels, device, monkeypatch):
    monkeypatch.setattr(MOST_NODES, 250_000)
    options = {"kappa": 0.13, "field": True, "device": device}
    result = potmap(ubiquitin, grid, method="mesh", accuracy=1e-6, **options)
    exact = potmap(ubiquitin, grid, precision="float64", **options)
    assert relative(result.map.values, exact.map.values) < 1e-6
    assert relative(result.field, exact.field) < 1e-6


def test_same_bits_however_it_is_cut(ubiquitin, grid, levels, monkeypatch, device):
    options = dict(method="mesh", accuracy=1e-4, device=device)
    whole = potmap(ubiquitin, grid, **options).map.values
    shared = potmap(ubiquitin, grid, **{**options, "device": [device, device]}).map.values
    monkeypatch.setattr("pele_ocl.potmap.slabs.MOST_POINTS", 21 * 25 * 5)
    assert np.array_equal(potmap(ubiquitin, grid, **options).map.values, whole)
    assert relative(shared, whole) < 1e-7


def test_atoms_that_moved(ubiquitin, grid, levels, device):
    """A plan that is ready takes further frames."""
    ready = Potmap(ubiquitin, grid, method="mesh", accuracy=1e-4, device=device)
    for shift in ((0.0, 0.0, 0.0), (0.3, -0.2, 25.0)):
        moved = ubiquitin.moved(ubiquitin.positions + shift)
        found = ready.evaluate(moved.positions)
        assert relative(found.map.values, potmap(moved, grid, precision="float64").map.values) < 1e-4


def test_a_map_beside_the_molecule(ubiquitin, levels, device):
    """No atom counts for any sheet."""
    grid = Grid(ubiquitin.positions.mean(axis=0) + np.array([45.0, 0, 0]), 1.1, (11, 9, 7))
    exact = potmap(ubiquitin, grid, precision="float64").map.values
    result = potmap(ubiquitin, grid, method="mesh", accuracy=1e-4, device=device)
    assert relative(result.map.values, exact) == pytest.approx(result.error.norm, rel=0.25)
    assert result.error.norm < 1e-4


def test_memory_is_told_beforehand(ubiquitin, grid, levels, precision, device):
    chosen = get_device(device)
    chosen.cached.clear()
    gc.collect()
    chosen.spare_buffers.clear()  # may be larger than needed
    before = chosen.buffers.now
    told = memory_bytes(ubiquitin, grid, MapOptions("mesh", device=device, precision=precision, accuracy=1e-4))
    chosen.buffers.start()
    potmap(ubiquitin, grid, method="mesh", accuracy=1e-4, precision=precision, device=device)
    assert told / 2 < chosen.buffers.most - before < told


def test_middle_part_is_the_difference_of_two_far_parts():
    for kappa in (0.0, 0.2):
        near, far = Split(13.0, 3.0, kappa), Split(13.0, 8.0, kappa)
        k, step = np.linspace(0, near.largest_k, 20_001, retstep=True)
        density = Middle(near, far).spectrum(k**2) * k**2 / (2 * np.pi**2)
        density[[0, -1]] /= 2
        for r in (0.0, 2.0, 5.0, 7.9, 12.0):
            expected = float((near.far(np.array([r])) - far.far(np.array([r])))[0])
            assert (density * np.sinc(k * r / np.pi)).sum() * step == pytest.approx(expected, abs=1e-7)
            assert r < 8 or abs(expected) < 1e-5


def box_of(edge, points, n_atoms):
    """A problem of atoms at random in a box, A, with a map through all of it."""
    grid = Grid([-edge / 2] * 3, edge / points, (points, points, points))
    positions = np.random.default_rng(0).uniform(-edge / 2, edge / 2, (n_atoms, 3))
    atoms = Atoms(positions=positions, charges=np.ones(n_atoms))
    return MapProblem.of(atoms, grid, PotentialModel(), 1.0, False, "float32", 1e-6)


def test_boxes_of_1000_angstrom_have_two_levels():
    problem = box_of(1000.0, 1000, 1_000_000)
    parameters = mesh_for(problem)
    assert parameters.has_sheets
    assert parameters.near.cutoff < min(each.cutoff for each in mesh_parameters.levels(problem) if not each.two)
    assert not mesh_for(box_of(40.0, 20, 100)).has_sheets


def test_where_there_is_little_room_the_sheets_are_thin():
    problem = box_of(300.0, 300, 10)
    thick, thin = (SheetGeometry.of(replace(problem, most_nodes=nodes), 1.0, 8.0, 10) for nodes in (1 << 62, 1 << 23))
    assert thin.depth < thick.depth
    assert np.prod(thin.shape) <= 1 << 22
    assert thin.n_sheets * thin.depth >= 300
    assert SheetGeometry.of(replace(problem, most_nodes=1 << 20), 1.0, 8.0, 10) is None
