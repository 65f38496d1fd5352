"""Potential maps on the devices: analytic values, the reference, invariants, cutting into pieces, errors."""

import gc
import threading
import time
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from conftest import DEVICES, load_system, random_atoms, require
from maps_helpers import relative
from tolerance import MAP

from pele_ocl import Atoms, DeviceError, Grid, InputError, list_devices, potmap
from pele_ocl.ladder import POTMAP as VARIANTS
from pele_ocl.opencl import Device, Queue, get_device
from pele_ocl.opencl.memory import ResultMemory
from pele_ocl.potential_model import PotentialModel
from pele_ocl.potmap import COMBINATIONS, MapProblem, choose_variant, plan, slabs, sorting
from pele_ocl.potmap import VARIANTS as ENGINE
from pele_ocl.potmap.bins import BinGrid, Bins
from pele_ocl.potmap.blocking import Blocking
from pele_ocl.potmap.computing import estimate_seconds, middle_part, potmap_models
from pele_ocl.potmap.problem import RUN
from pele_ocl.potmap.slabs import MapSlab, RemainingSlabs, Scratch
from pele_ocl.potmap.variants import blocked
from pele_ocl.reference import potmap as reference
from pele_ocl.units import COULOMB_KCAL_A, POTENTIAL_UNITS, potential_factor

DIRECT = [name for name, variant in VARIANTS.items() if variant.method == "direct"]
EXACT = [*DIRECT, "cutoff"]  # test_potmap_mesh.py has the other one
SAME_BITS = [name for name in EXACT if name != "scatter"]  # atomic additions come in any order
SHAPES = [(1, 1, 1), (17, 3, 5), (33, 65, 129)]
MODELS = [
    PotentialModel(dielectric=80.0),
    PotentialModel(dielectric=4.0, distance_dependent=True),
    PotentialModel(kappa=0.12),
    PotentialModel(min_distance=1.5),
    PotentialModel(3.0, True, 0.1, 1.0),
]
CACHE = {}


def options_of(model):
    """Return the arguments of potmap that make this model."""
    options = {name: getattr(model, name) for name in ("dielectric", "distance_dependent", "kappa", "min_distance")}
    return (
        options if model.cutoff is None else options | dict(method="cutoff", cutoff=model.cutoff, smooth=model.smooth)
    )


def method_of(variant):
    return VARIANTS[variant].method


def expected_map(key, atoms, grid, model=None):
    """Return the reference, computed once for all devices and variants."""
    if key not in CACHE:
        CACHE[key] = reference.potmap(atoms, grid, model)
    return CACHE[key]


def offset_grid(atoms, shape, spacing=0.7):
    """Make a grid about the middle of the atoms, off all atoms; some lie outside a small one."""
    middle = (atoms.positions.min(axis=0) + atoms.positions.max(axis=0)) / 2
    return Grid(middle - 0.5 * spacing * np.array(shape) + 0.013, spacing, shape)


@pytest.fixture(scope="module", params=DIRECT)
def direct(request):
    return request.param


# Analytic


@pytest.mark.parametrize("variant", EXACT)
def test_one_charge(device, precision, variant):
    atoms = Atoms(positions=[[1e5, 0, -3]], charges=[-0.5])
    grid = Grid((1e5 - 2, -1, -2), (1, 0.5, 0.25), (5, 4, 3))
    result = potmap(
        atoms, grid, variant=variant, method=method_of(variant), precision=precision, device=device, dielectric=2
    )
    x, y, z = grid.axes()
    r = np.sqrt((x - 1e5) ** 2 + y[:, None] ** 2 + (z + 3)[:, None, None] ** 2)
    assert relative(result.map.values, -0.25 * COULOMB_KCAL_A / r) < MAP[precision]
    assert result.map.values.dtype == precision
    assert (result.n_atoms, result.variant, result.unit) == (1, variant, "kcal/mol/e")
    assert result.evals_per_second == pytest.approx(60 / result.seconds["kernel"])


@pytest.mark.parametrize("unit", POTENTIAL_UNITS)
def test_units(device, unit):
    atoms, grid = random_atoms(5), Grid((0.1, 0, 0), 1, (3, 3, 3))
    own = potmap(atoms, grid, device=device)
    other = potmap(atoms, grid, device=device, unit=unit, temperature=310)
    assert (other.map.unit, other.map.temperature) == (unit, 310 if unit == "kT/e" else None)
    assert relative(other.map.values, own.map.values.astype(float) * potential_factor(unit, 310)) < MAP["float32"]


def test_salt_screens_by_debye_and_hueckel(device):
    atoms, grid = random_atoms(5), Grid((0.1, 0, 0), 1, (3, 3, 3))
    salt = potmap(atoms, grid, device=device, dielectric=80, ionic_strength=0.15, temperature=298.15)
    model = PotentialModel(dielectric=80, kappa=0.126115)  # 7.93 A in water
    assert relative(salt.map.values, reference.potmap(atoms, grid, model)) < 1e-5


# Reference


@pytest.mark.parametrize("shape", SHAPES)
def test_direct_variants_are_the_reference(device, precision, direct, shape):
    atoms = random_atoms(97, density=0.01)
    grid = offset_grid(atoms, shape, 0.31)
    result = potmap(atoms, grid, variant=direct, precision=precision, device=device)
    assert relative(result.map.values, expected_map(shape, atoms, grid)) < MAP[precision]


@pytest.mark.parametrize("n_atoms", [RUN - 1, RUN, RUN + 1, 4001])
def test_numbers_of_atoms(device, precision, direct, n_atoms):
    atoms = random_atoms(n_atoms)
    grid = offset_grid(atoms, (13, 11, 9))
    result = potmap(atoms, grid, variant=direct, precision=precision, device=device)
    assert relative(result.map.values, expected_map(n_atoms, atoms, grid)) < MAP[precision]


@pytest.mark.parametrize("name", ["hexapeptide", "ubiquitin"])
def test_molecules(device, precision, direct, name):
    atoms = load_system(name).atoms
    grid = Grid.around(atoms, 5, 2.3)
    result = potmap(atoms, grid, variant=direct, precision=precision, device=device)
    assert relative(result.map.values, expected_map(name, atoms, grid)) < MAP[precision]


def test_a_hundred_thousand_atoms(device, direct):
    atoms = random_atoms(100_000)
    grid = offset_grid(atoms, (7, 9, 11), 5.3)
    result = potmap(atoms, grid, variant=direct, device=device)
    assert relative(result.map.values, expected_map("100,000", atoms, grid)) < MAP["float32"]


# What the model says stands in the same lines in either precision: the last one has all of it.
@pytest.mark.parametrize(("model", "precision"), [*product(MODELS, ["float32"]), (MODELS[-1], "float64")], ids=str)
def test_the_law_reaches_the_kernels(device, precision, direct, model):
    require(device, precision)
    atoms = random_atoms(150)
    grid = offset_grid(atoms, (19, 6, 7))
    result = potmap(atoms, grid, variant=direct, precision=precision, device=device, **options_of(model))
    assert relative(result.map.values, expected_map(model, atoms, grid, model)) < MAP[precision]


SMOOTH = PotentialModel(cutoff=7, smooth=True)


@pytest.mark.parametrize(
    ("model", "precision"),
    [*product([PotentialModel(), *MODELS, SMOOTH], ["float32"]), (MODELS[-1], "float64"), (SMOOTH, "float64")],
    ids=str,
)
@pytest.mark.parametrize("variant", [name for name in EXACT if VARIANTS[name].has_field])
def test_field(device, precision, variant, model):
    require(device, precision)
    if (variant == "cutoff") != (model.cutoff is not None):
        model = replace(model, cutoff=9.0 if variant == "cutoff" else None, smooth=False)
    atoms = random_atoms(150)
    grid = offset_grid(atoms, (19, 6, 7))
    options = dict(variant=variant, precision=precision, device=device, **options_of(model))
    result = potmap(atoms, grid, field=True, **options)
    field = reference.field(atoms, grid, model)
    assert relative(result.field, field) < MAP[precision]
    assert relative(result.field_strength, np.linalg.norm(field, axis=0)) < MAP[precision]
    assert relative(result.map.values, reference.potmap(atoms, grid, model)) < MAP[precision]


def test_no_field_unless_asked_for(device):
    atoms = random_atoms(150)
    assert potmap(atoms, offset_grid(atoms, (19, 6, 7)), device=device).field is None


@pytest.mark.parametrize(
    "layout",
    [
        Blocking(1, (8, 4), (8, 8, 2), 6, 4), Blocking(1, (16, 4), (8, 8, 1), 16),
        Blocking(1, (4, 4), (32, 4, 1), 3), Blocking(4, (1, 1), (1, 1, 1)),
        Blocking(2, (3, 5), (1, 1, 1), 0, 2), Blocking(1, (1, 1), (16, 2, 1), 1),
    ],
    ids=str,
)  # fmt: skip
def test_layouts_give_the_same_map(device, layout):
    atoms = random_atoms(300)
    grid = offset_grid(atoms, (33, 17, 9))
    task = MapProblem.of(atoms, grid, PotentialModel(), COULOMB_KCAL_A, False, "float32")
    queue = Queue(device, "float32")
    steps = blocked(queue, task, layout)
    slab = MapSlab.on(queue, task, 0, 9, steps.pad)
    steps.add(queue, slab, 0, len(atoms))
    values = np.empty((1, *grid.shape[::-1]), np.float32)
    slab.download(queue, values)
    assert relative(values[0], expected_map("layouts", atoms, grid)) < MAP["float32"]


def test_only_the_map_is_cleared_in_a_larger_buffer(device, monkeypatch):
    atoms, queue, cleared, own = random_atoms(100), Queue(device, "float32"), list[int](), Queue.clear
    device.spare_buffers.leave("map", {"map": queue.empty(1 << 20)}, 1 << 30)
    run = plan.Potmap(atoms, offset_grid(atoms, (9, 8, 7)), method="direct", device=device)
    expected = run.evaluate().map.values.copy()

    def clear(queue, buffer, first=0, size=None):
        cleared.append(size or buffer.size)
        own(queue, buffer, first, size)

    monkeypatch.setattr(Queue, "clear", clear)
    assert np.array_equal(run.evaluate().map.values, expected)
    assert 9 * 8 * 7 * 4 <= max(cleared) < 1 << 20


def test_sums_of_squares_keep_their_memory(device):
    """Also after the slab, while another map uses the memory of earlier ones."""
    atoms = random_atoms(100)
    grid = offset_grid(atoms, (9, 8, 7))
    task = MapProblem.of(atoms, grid, PotentialModel(), COULOMB_KCAL_A, False, "float32")
    queue = Queue(device, "float32")
    steps = blocked(queue, task)

    def started():
        slab = MapSlab.on(queue, task, 0, 7, steps.pad, Scratch.kept(device, "test"))
        steps.add(queue, slab, 0, len(atoms))
        return slab.squares(queue)

    expected, totals = started()(), started()
    gc.collect()
    Scratch.kept(device, "test").zeros(queue, "squares", 1)
    assert expected.all()
    assert np.array_equal(totals(), expected)


@pytest.mark.parametrize("kind", ["CPU", "GPU"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("bare", [True, False])
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_layouts_for_devices(kind, precision, bare, width):
    layout = Blocking.of(kind, "NVIDIA", width, precision, bare, (103, 107, 115))
    assert layout.width == (width if kind == "CPU" else 1)
    assert layout.padded((103, 107, 115)) < 1.35 * 103 * 107 * 115
    assert np.prod(layout.group) in (1, 64, 128, 256)
    assert layout.soft < np.prod(layout.points)
    assert layout.soft == 0 or (bare and precision == "float32" and kind == "GPU")


def test_layouts_fit_the_map():
    h200 = ("GPU", "NVIDIA", 1, "float32", True)
    assert Blocking.of(*h200, (256, 256, 256)) == Blocking(1, (16, 4), (8, 8, 1), 16)
    assert Blocking.of(*h200, (96, 96, 96)) == Blocking(1, (8, 4), (4, 8, 2), 8)
    assert Blocking.of(*h200, (16, 64, 64)).pad == (16, 8, 8)
    amd = ("GPU", "AMD", 1, "float32", True)
    assert Blocking.of(*amd, (64, 8, 8)) == Blocking(1, (4, 2), (8, 8, 2), 0, 4)
    assert Blocking.of(*amd, (128, 128, 64)) == Blocking(1, (8, 4), (8, 8, 2), 0, 4)
    wheel, intel = ("CPU", "POCL", 8, "float32", True), ("CPU", "INTEL", 16, "float32", True)
    assert [Blocking.of(*wheel, (nx, 9, 9)).points[0] for nx in (8, 12, 17, 64, 131)] == [1, 2, 4, 8, 4]
    assert [Blocking.of(*intel, (nx, 9, 9)).points[0] for nx in (8, 17, 33, 64)] == [1, 2, 1, 4]


# Digits


def test_far_from_the_origin(device, precision, direct):
    atoms = random_atoms(120)
    grid = offset_grid(atoms, (9, 8, 7))
    there = replace(atoms, positions=atoms.positions + 1e5)
    shifted = Grid(grid.origin + 1e5, grid.spacing, grid.shape)
    result = potmap(there, shifted, variant=direct, precision=precision, device=device)
    assert relative(result.map.values, reference.potmap(there, shifted)) < MAP[precision]


@pytest.mark.parametrize("variant", EXACT)
@pytest.mark.parametrize("field", [False, True])
def test_points_next_to_atoms_in_a_wide_map(device, variant, field):
    """A float32 coordinate of 400 A is off by 1.5e-5 A, a hundredth of these points' distance."""
    if field and not VARIANTS[variant].has_field:
        pytest.skip(f"{variant} computes no field")
    atoms = random_atoms(400, density=4e-6)
    grid = Grid(atoms.positions.min(axis=0) + 0.0008, 13.1, (33, 35, 34))
    nearest = grid.position(np.round(grid.index(atoms.positions)))
    directions = np.random.default_rng(0).normal(size=nearest.shape)
    atoms = replace(atoms, positions=nearest + 0.0015 * directions / np.linalg.norm(directions, axis=1)[:, None])
    result = potmap(atoms, grid, variant=variant, method=method_of(variant), device=device, field=field)
    model = PotentialModel(cutoff=12.0 if variant == "cutoff" else None)
    assert relative(result.map.values, expected_map(("near", model), atoms, grid, model)) < MAP["float32"]
    if field:
        assert relative(result.field, reference.field(atoms, grid, model)) < MAP["float32"]


@pytest.mark.parametrize("shape", [(21, 13, 37), (32, 16, 8)])
@pytest.mark.parametrize("field", [False, True])
def test_the_hosts_steps_for_a_gpu_give_the_same_bits(device, shape, field, monkeypatch):
    """The kernels are the same here, but the memory of the map is made while they run."""
    atoms = random_atoms(300)
    options = dict(variant="gather", field=field, device=device)
    before = potmap(atoms, offset_grid(atoms, shape), **options)
    monkeypatch.setattr(Device, "kind", "GPU")
    after = potmap(atoms, offset_grid(atoms, shape), **options)
    np.testing.assert_array_equal(after.map.values, before.map.values)
    assert not field or np.array_equal(after.field, before.field)


# Cutoff


@pytest.mark.parametrize("cutoff", [3, 7.3, 12, 30])
@pytest.mark.parametrize("smooth", [False, True], ids=["plain", "smooth"])
@pytest.mark.parametrize("spacing", [0.4, (1.1, 0.3, 5.0)], ids=["fine", "uneven"])
def test_cutoff_is_a_truncated_sum(device, precision, cutoff, smooth, spacing):
    """Atoms in and around the grid, a third of them in a cluster that overflows its bins, and empty regions."""
    rng = np.random.default_rng(5)
    positions = rng.uniform(-20, 45, (600, 3))
    positions[:200] = rng.normal(9, 1, (200, 3))
    positions[:, 0][positions[:, 0] > 30] += 40
    atoms = Atoms(positions=positions, charges=rng.normal(0, 0.4, 600))
    grid = Grid((4.31, 7.22, 5.3), spacing, (37, 12, 10))
    model = PotentialModel(cutoff=cutoff, smooth=smooth)
    result = potmap(atoms, grid, precision=precision, device=device, **options_of(model))
    expected = expected_map((model, str(spacing)), atoms, grid, model)
    assert result.variant == "cutoff"
    # Atoms that rounding may put to either side of the cutoff count or not.
    if str(spacing) not in CACHE:
        CACHE[str(spacing)] = np.sqrt(squared_distances(atoms, grid))
    unsure = np.abs(CACHE[str(spacing)] / cutoff - 1) < (2e-6 if precision == "float32" else 1e-14)
    doubt = COULOMB_KCAL_A / cutoff * (unsure @ np.abs(atoms.charges)).reshape(expected.shape)
    error = np.maximum(np.abs(result.map.values - expected) - doubt, 0)
    assert np.linalg.norm(error) < MAP[precision] * np.linalg.norm(expected)


def squared_distances(atoms, grid):
    """(points, atoms)"""
    x, y, z = grid.axes()
    points = np.stack(np.meshgrid(z, y, x, indexing="ij")[::-1], axis=-1).reshape(-1, 3)
    return ((points[:, None] - atoms.positions) ** 2).sum(axis=-1)


@pytest.mark.parametrize("cutoff", [200.0, 1e12])
def test_a_cutoff_beyond_all_atoms_is_the_direct_sum(device, precision, cutoff):
    atoms, grid = random_atoms(300), Grid((-3.1, 20.2, 1.7), 2.0, (9, 2, 5))
    found = potmap(atoms, grid, method="cutoff", cutoff=cutoff, precision=precision, device=device)
    assert relative(found.map.values, reference.potmap(atoms, grid)) < MAP[precision]


def test_no_atom_within_the_cutoff(device, precision):
    atoms = Atoms(positions=[[100.0, 0, 0]], charges=[1.0])
    result = potmap(atoms, Grid((0, 0, 0), 1, (4, 5, 6)), method="cutoff", precision=precision, device=device)
    assert (result.map.values == 0).all()


def test_cutoff_on_a_coarse_grid(device, precision):
    """Bins as small as usual would be a hundred million."""
    atoms = random_atoms(300)
    grid = Grid((0.5, 0.7, 0.9), 300.0, (3, 2, 4))
    result = potmap(atoms, grid, method="cutoff", precision=precision, device=device)
    assert relative(result.map.values, reference.potmap(atoms, grid, PotentialModel(cutoff=12))) < MAP[precision]


def test_a_bin_that_holds_everything(device, precision):
    rng = np.random.default_rng(6)
    atoms = Atoms(positions=rng.uniform(0.5, 3.5, (1500, 3)), charges=rng.normal(0, 0.4, 1500))
    grid = Grid((-4.1, -3.9, -4.3), 1.0, (9, 9, 9))
    result = potmap(atoms, grid, method="cutoff", cutoff=6, precision=precision, device=device)
    assert relative(result.map.values, reference.potmap(atoms, grid, PotentialModel(cutoff=6))) < MAP[precision]


@pytest.mark.parametrize("kind", ["", "GPU"])
def test_atoms_are_sorted_into_bins_as_numpy_sorts_them(device, precision, kind, monkeypatch):
    """In as many parts as a GPU or the device itself has, with bins outside the map's left out."""
    if kind:
        monkeypatch.setattr(Device, "kind", kind)
    monkeypatch.setattr(sorting, "LEAST_PART", 16)
    atoms = random_atoms(700)
    atoms = atoms.moved(1.5 * atoms.positions)
    grid, model = Grid(atoms.positions.mean(axis=0) - 4.1, 1.0, (9, 8, 7)), PotentialModel(cutoff=5.0)
    problem = MapProblem.of(atoms, grid, model, 1.0, False, precision)
    queue, bins = Queue(get_device(device), precision), BinGrid.of(problem, (8, 1, 4))
    found = Bins.of(queue, sorting.DeviceAtoms(queue, problem), bins)
    places = np.floor((problem.positions - bins.corner) / bins.edge).astype(int)
    inside = np.flatnonzero(((places >= 0) & (places < bins.shape)).all(axis=1))
    assert 50 < len(inside) < 700
    keys = np.ravel_multi_index(places[inside].T[::-1], bins.shape[::-1])
    assert np.bincount(keys).max() > 3  # atoms of a bin, of one part and of several
    order, n_bins = inside[np.argsort(keys, kind="stable")], int(np.prod(bins.shape))
    starts = np.append(0, np.cumsum(np.bincount(keys, minlength=n_bins)))
    np.testing.assert_array_equal(queue.download(found.starts, n_bins + 1, np.int32), starts)
    np.testing.assert_array_equal(queue.download(found.atoms, 4 * len(order)).reshape(-1, 4), problem.atoms4[order])


def test_coordinates_are_rounded_on_a_device_as_numpy_rounds_them(device, monkeypatch):
    """A device without float64 gets them rounded."""
    atoms = random_atoms(300)
    grid = Grid(atoms.positions.mean(axis=0) - 4.1, 0.9, (9, 8, 7))
    found = potmap(atoms, grid, method="cutoff", cutoff=6.0, device=device).map.values
    monkeypatch.setattr(Device, "has_float64", False)
    assert np.array_equal(potmap(atoms, grid, method="cutoff", cutoff=6.0, device=device).map.values, found)


@pytest.mark.parametrize("method", ["direct", "cutoff", "mesh", "msm"])
def test_a_map_has_the_memory_of_the_one_before(device, method, monkeypatch):
    """After one of another size, whose values stay in it."""
    few, many = random_atoms(200), random_atoms(400)
    small, large = (Grid(many.positions.mean(axis=0) - 4.1, 0.9, shape) for shape in ((9, 8, 7), (10, 9, 8)))
    options = dict(method=method, accuracy=1e-2) if method in ("mesh", "msm") else dict(method=method)
    first = potmap(few, small, device=device, **options).map.values.copy()
    potmap(many, large, device=device, **options)
    for _ in range(2):
        assert np.array_equal(potmap(few, small, device=device, **options).map.values, first)
    monkeypatch.setattr(Queue, "empty", lambda *_: pytest.fail("a buffer is made"))
    gc.collect()
    before = device.buffers.now
    assert np.array_equal(potmap(few, small, device=device, **options).map.values, first)
    assert device.buffers.now <= before


def test_few_atoms_have_large_bins_and_far_points_none(device):
    """Two molecules in opposite corners of a box, most of which is far from both."""
    atoms = random_atoms(40)
    positions = np.concatenate([atoms.positions, atoms.positions[:3] + 90])
    atoms = Atoms(positions=positions, charges=np.resize(atoms.charges, 43))
    for reach, edge in ((12.0, 6.0), (6.0, 4.0)):
        grid, model = Grid(positions.min(axis=0) - 2.03, 3.1, (33, 35, 34)), PotentialModel(cutoff=reach)
        problem = MapProblem.of(atoms, grid, model, 1.0, False, "float32")
        assert BinGrid.of(problem, (8, 1, 4)).edge == edge
        result = potmap(atoms, grid, method="cutoff", cutoff=reach, device=device)
        assert relative(result.map.values, reference.potmap(atoms, grid, model)) < MAP["float32"]


# Pieces


@pytest.mark.parametrize("variant", SAME_BITS)
def test_pieces_give_the_same_bits(device, precision, variant, monkeypatch):
    atoms = random_atoms(700)
    grid = offset_grid(atoms, (21, 13, 37))
    options = dict(variant=variant, method=method_of(variant), precision=precision, device=device)
    whole = potmap(atoms, grid, **options).map.values
    monkeypatch.setattr(slabs, "MOST_POINTS", 5000)
    monkeypatch.setattr(plan, "LAUNCH_SECONDS", 0)
    monkeypatch.setattr(plan, "first_evals", lambda device: 1e5)
    monkeypatch.setattr(slabs, "AT_ONCE", 700)
    shares = []
    pieces = potmap(atoms, grid, progress=shares.append, **options).map.values
    assert len(shares) > 2
    np.testing.assert_array_equal(whole, pieces)


@pytest.mark.parametrize("variant", SAME_BITS)
def test_same_bits_every_time(device, precision, variant):
    atoms = random_atoms(500)
    grid = offset_grid(atoms, (21, 13, 17))
    options = dict(variant=variant, method=method_of(variant), precision=precision, device=device)
    first, *others = (potmap(atoms, grid, **options).map.values for _ in range(3))
    for other in others:
        np.testing.assert_array_equal(first, other)


def test_several_devices_share_the_slabs(monkeypatch):
    devices = [device for device in list_devices() if device.kind != "simulator"]
    monkeypatch.setattr(plan, "LAUNCH_SECONDS", 0)
    monkeypatch.setattr(plan, "first_evals", lambda device: 1e5)
    atoms = random_atoms(700)
    grid = offset_grid(atoms, (21, 13, 67))
    shares = []
    result = potmap(atoms, grid, device=devices + devices[:1], progress=shares.append)
    assert relative(result.map.values, reference.potmap(atoms, grid)) < MAP["float32"]
    assert result.device == " + ".join(map(str, devices + devices[:1]))
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)


def test_like_devices_get_equal_shares_and_quick_ones_help_the_others():
    atoms = random_atoms(3)
    task = MapProblem.of(atoms, offset_grid(atoms, (2, 2, 64)), PotentialModel(), 1.0, False, "float32")
    work = slabs.RemainingSlabs(task, None, ResultMemory(), workers=4)
    assert [work.take(worker, 100) for worker in range(4)] == [(0, 16), (16, 32), (32, 48), (48, 64)]
    work = slabs.RemainingSlabs(task, None, ResultMemory(), workers=2)
    taken = [work.take(0, 32), work.take(1, 4), work.take(0, 100)]
    assert taken == [(0, 32), (32, 36), (50, 64)]
    while (slices := work.take(1, 5)) is not None:
        taken.append(slices)
    assert sorted(z for slices in taken for z in range(*slices)) == list(range(64))


def test_launches_of_a_share_are_equal():
    atoms = random_atoms(3)
    task = MapProblem.of(atoms, offset_grid(atoms, (2, 2, 128)), PotentialModel(), 1.0, False, "float32")
    work = slabs.RemainingSlabs(task, None, ResultMemory())
    assert [work.take(0, 92, 4), work.take(0, 92, 4), work.take(0, 92, 4)] == [(0, 64), (64, 128), None]
    work = slabs.RemainingSlabs(task, None, ResultMemory())
    assert [work.take(0, 48, 8) for _ in range(3)] == [(0, 48), (48, 88), (88, 128)]


def test_a_device_that_fails_stops_the_others(device, monkeypatch):
    monkeypatch.setattr(plan, "LAUNCH_SECONDS", 0)
    monkeypatch.setattr(plan, "first_evals", lambda device: 1e5)
    atoms, taken = random_atoms(700), []
    compute = plan.DeviceMap.compute

    def failing(part, work, worker):
        taken.append(work)
        if len(taken) == 2:
            raise DeviceError("it burns")
        return compute(part, work, worker)

    monkeypatch.setattr(plan.DeviceMap, "compute", failing)
    with pytest.raises(DeviceError, match="it burns"):
        potmap(atoms, offset_grid(atoms, (21, 13, 67)), device=[device, device])
    assert taken[0].stopped


def test_a_slab_that_does_not_fit(device, monkeypatch):
    monkeypatch.setattr(type(device), "held_bytes", 0)  # what other tests keep, or give back meanwhile
    monkeypatch.setattr(type(device), "memory", 100_000)
    atoms = random_atoms(50)
    assert potmap(atoms, offset_grid(atoms, (30, 20, 50)), device=device)
    with pytest.raises(DeviceError, match="choose a larger device"):
        potmap(atoms, offset_grid(atoms, (300, 200, 3)), device=device)


def test_slices_of_more_points_than_kernels_count(device, monkeypatch):
    atoms, grid = random_atoms(5), Grid((0.1, 0.2, 0.3), 0.3, (50, 40, 3))
    needed = 4 * blocked_padding(device, atoms, grid)
    monkeypatch.setattr(slabs, "MOST_VALUES", needed)
    potmap(atoms, grid, field=True, device=device)
    monkeypatch.setattr(slabs, "MOST_VALUES", needed - 1)
    with pytest.raises(InputError, match="slices of 50 x 40 points are too large; choose a larger spacing"):
        potmap(atoms, grid, field=True, device=device)


def blocked_padding(device, atoms, grid):
    """Points of the whole map as `blocked` pads it for the field."""
    task = MapProblem.of(atoms, grid, PotentialModel(), 1.0, True, "float32")
    queue = Queue(device, "float32")
    return MapSlab.on(queue, task, 0, grid.shape[2], blocked(queue, task).pad).n_points


@pytest.mark.parametrize("several", [False, True])
def test_an_interrupt_ends_the_work(device, several, monkeypatch):
    monkeypatch.setattr(plan, "LAUNCH_SECONDS", 0)
    monkeypatch.setattr(plan, "first_evals", lambda device: 1e5)
    atoms = random_atoms(700)
    grid = offset_grid(atoms, (21, 13, 67))
    shares = []

    def interrupt(share):
        shares.append(share)
        if share > 0.2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        potmap(atoms, grid, device=[device] * (2 if several else 1), progress=interrupt)
    assert shares[-1] < 0.9
    assert threading.active_count() < 10
    assert potmap(atoms, grid, device=device)


# Models


def test_statistics_over_models(device, precision):
    models = [random_atoms(40, seed) for seed in range(4)]
    grid = Grid((3.03, 1, 2), 0.8, (5, 6, 7))
    summed = potmap_models(iter(models), grid, device=device, precision=precision, unit="mV")
    each = np.stack([reference.potmap(atoms, grid) for atoms in models]) * potential_factor("mV")
    expected = dict(
        zip(COMBINATIONS, (each.mean(axis=0), each.min(axis=0), each.max(axis=0), each.std(axis=0)), strict=True)
    )
    assert (summed.n_models, summed.n_atoms) == (4, 40)
    for name, values in expected.items():
        assert summed.maps[name].unit == "mV"
        assert summed.maps[name].values.dtype == precision
        assert relative(summed.maps[name].values, values) < MAP[precision]
    with pytest.raises(InputError, match="no models are given"):
        potmap_models([], grid)
    with pytest.raises(InputError, match="the field cannot be averaged over models"):
        potmap_models(models, grid, field=True)


# Estimates


def test_parts_from_the_middle():
    grid = Grid((0, 0, 0), 1, (10, 20, 30))
    assert middle_part(grid, 1e9).shape == grid.shape
    assert middle_part(grid, 4000).shape == (10, 20, 20)
    assert middle_part(grid, 800).shape == (10, 5, 16)
    assert middle_part(grid, 0).shape == (10, 1, 16)
    np.testing.assert_array_equal(middle_part(grid, 4000).origin, (0, 0, 5))


def test_an_estimate(device):
    atoms = random_atoms(2000)
    grid = offset_grid(atoms, (64, 64, 64))
    took = potmap(atoms, grid, device=device).seconds["kernel"]
    assert took / 20 < estimate_seconds(atoms, grid, device=device) < 20 * took


# Errors


def test_atoms_without_charge(device, precision, direct):
    atoms = Atoms(positions=[[0, 0, 0], [1, 1, 1]], charges=[0.0, 0.0])
    result = potmap(atoms, Grid((0, 0, 0), 1, (2, 2, 2)), variant=direct, precision=precision, device=device)
    assert (result.map.values == 0).all()


@pytest.mark.parametrize("variant", EXACT)
def test_a_point_on_an_atom(device, precision, variant):
    atoms = Atoms(positions=[[9.0, 9, 9], [1.00002, 2.0, 3.0]], charges=[1.0, -1.0])
    grid = Grid((0, 0, 0), (0.5, 1, 1), (9, 9, 9))
    options = dict(variant=variant, method=method_of(variant), precision=precision, device=device)
    with pytest.raises(InputError) as error:
        potmap(atoms, grid, **options)
    assert str(error.value) == (
        "grid point (2, 2, 3) at 1, 2, 3 A is at the position of atom 1, where the potential is infinite; choose "
        "another spacing or origin, or a minimum distance, such as `min_distance=1`"
    )
    clamped = potmap(atoms, grid, min_distance=0.5, **options).map.values
    cutoff = 12.0 if variant == "cutoff" else None
    expected = reference.potmap(atoms, grid, PotentialModel(min_distance=0.5, cutoff=cutoff))
    assert np.isfinite(clamped).all()
    assert relative(clamped, expected) < MAP[precision]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "fast"}, "the method direct has no variant 'fast'; choose auto, sequential, "),
        ({"variant": "cutoff"}, "the method direct has no variant 'cutoff'"),
        ({"method": "cutoff", "variant": "blocked"}, "the method cutoff has no variant 'blocked'; choose auto, cutoff"),
        ({"method": "ewald"}, "unknown method 'ewald'; choose direct, cutoff, msm, mesh, pb, auto"),
        ({"variant": "shared", "field": True}, "the variant shared computes no field; choose gather, blocked"),
        ({"precision": "float16"}, "unknown precision 'float16'; choose float32 or float64"),
        ({"unit": "volts"}, "unknown unit 'volts' of a potential"),
        ({"dielectric": 0}, "the dielectric is 0; it must be positive"),
        ({"temperature": 0, "ionic_strength": 0.1}, "the temperature must be positive, in K; not 0"),
        ({"kappa": -0.1}, "kappa is -0.1; expected a finite number of at least 0"),
        ({"dielectric": -1}, "the dielectric is -1; it must be positive"),
        ({"ionic_strength": -1}, "ionic_strength is -1; expected a number in mol/L, 0 to 20"),
        ({"device": []}, "the list of devices is empty"),
        ({"smooth": True}, '`cutoff` and `smooth` need `method="cutoff"`'),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(InputError) as error:
        potmap(random_atoms(3), Grid((0.1, 0, 0), 1, (2, 2, 2)), **{"device": DEVICES[0], **options})
    assert message in str(error.value)


def test_a_field_is_refused_if_the_variant_that_auto_takes_computes_none(monkeypatch):
    monkeypatch.setitem(ENGINE, "blocked", replace(ENGINE["blocked"], has_field=False))
    with pytest.raises(InputError, match="the variant blocked computes no field; choose another method, or leave"):
        potmap(random_atoms(3), Grid((0.1, 0, 0), 1, (2, 2, 2)), device=DEVICES[0], field=True)


def test_no_atoms():
    with pytest.raises(InputError, match="a potential map needs at least one atom; it has none"):
        potmap(Atoms(positions=np.empty((0, 3)), charges=[]), Grid((0, 0, 0), 1, (2, 2, 2)))


def test_auto():
    assert (choose_variant("direct"), choose_variant("cutoff")) == ("blocked", "cutoff")


def test_a_device_that_fails_stops_one_that_is_waited_for_first(monkeypatch):
    """The error is raised without computing the rest of the map."""
    failed = threading.Event()

    def compute(part: plan.DeviceMap, work: RemainingSlabs, number: int) -> float:
        if number == 1:
            failed.set()
            raise ZeroDivisionError
        assert failed.wait(60)
        end = time.monotonic() + 60
        while not work.stopped and time.monotonic() < end:
            time.sleep(0.01)
        stopped.append(work.take(number, 1) is None)
        return 0.0

    stopped = list[bool]()
    monkeypatch.setattr(plan.DeviceMap, "compute", compute)
    atoms, grid = random_atoms(20), Grid([-9.0, -9.0, -9.0], 2.0, (10, 10, 10))
    with pytest.raises(ZeroDivisionError):
        potmap(atoms, grid, device=[DEVICES[0], DEVICES[0]], method="direct", min_distance=0.1)
    assert stopped == [True]
