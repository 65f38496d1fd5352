"""Ions on the devices: the step-by-step reference, distances, energies, ties, counts, errors."""

from __future__ import annotations

import contextlib
from functools import cache

import gemmi
import numpy as np
import pytest
from conftest import DEVICES, load_system, random_atoms

from pele_ocl import Atoms, Grid, InputError, Map, ParameterError, place_ions, potmap, read
from pele_ocl.bench.systems import load
from pele_ocl.ions import SPECIES, Placement, count_ions
from pele_ocl.ions.counts import salt_ions
from pele_ocl.ions.placement import WorkSplit
from pele_ocl.opencl import Queue
from pele_ocl.reference.ions import allowed_points
from pele_ocl.reference.ions import place_ions as reference
from pele_ocl.reference.potmap import potmap as potential_of
from pele_ocl.units import AVOGADRO_PER_MOL, COULOMB_KCAL_A

# Relative to the largest potential where ions may stand.
TOLERANCE = {"float64": 1e-12, "float32": 1e-6}
SYSTEMS = {"hexapeptide": (1.5, 20), "ubiquitin": (2.0, 40), "src3": (3.5, 60)}  # spacing, ions


@cache
def base_map(name: str) -> tuple[Atoms, Map]:
    """A structure and its potential in NumPy."""
    atoms = load(name)
    around = Grid.around(atoms, 10, SYSTEMS[name][0])
    grid = Grid(around.origin + 0.01, around.spacing, around.shape)  # no point stands on an atom
    return atoms, Map(grid, potential_of(atoms, grid), "kcal/mol/e")


@cache
def ions_of_the_reference(name: str) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Find the free points in a structure's map, and the reference's points, potentials and final map."""
    (atoms, base), n = base_map(name), SYSTEMS[name][1]
    allowed = allowed_points(atoms.positions, base.grid, 6)
    return allowed, reference(base.values, base.grid, allowed, [1.0, -1.0] * (n // 2), 10)


def assert_greedy(result, base, ion_distance=10.0, solute_distance=6.0, tolerance=TOLERANCE["float32"]):
    """Each ion stands where one may, and none of the other points was better by more than rounding."""
    potential, allowed = (
        base.values.astype(np.float64),
        allowed_points(result.atoms.positions, base.grid, solute_distance),
    )
    scale = np.abs(potential[allowed]).max()
    for charge, position, before in zip(result.charges, result.positions, result.potentials, strict=True):
        x, y, z = np.rint(base.grid.index(position)).astype(int)
        assert allowed[z, y, x]
        assert abs(potential[z, y, x] - before) <= tolerance * scale
        assert charge * potential[z, y, x] <= (charge * potential)[allowed].min() + abs(charge) * tolerance * scale
        _, _, potential = reference(potential, base.grid, one_point(base.grid, x, y, z), [charge], 0)
        allowed &= np.linalg.norm(points_of(base.grid) - position, axis=-1) > ion_distance * (1 + 1e-9)
    return potential


def one_point(grid, x, y, z):
    allowed = np.zeros(grid.shape[::-1], bool)
    allowed[z, y, x] = True
    return allowed


def points_of(grid):
    z, y, x = np.meshgrid(*grid.axes()[::-1], indexing="ij")
    return np.stack([x, y, z], axis=-1)


# Against the reference


@pytest.mark.parametrize("name", SYSTEMS)
def test_ions_are_the_references(device, precision, name):
    atoms, base = base_map(name)
    n = SYSTEMS[name][1]
    allowed, (points, before, final) = ions_of_the_reference(name)
    result = place_ions(
        atoms, {"NA": n // 2, "CL": n // 2}, map=base, precision=precision, device=device, keep_map=True
    )
    assert result.free_volume == pytest.approx(allowed.sum() * np.prod(base.grid.spacing))
    assert (result.device, result.precision, result.variant) == (str(device), precision, None)
    scale = np.abs(base.values[allowed]).max()
    if precision == "float64":
        np.testing.assert_array_equal(np.rint(base.grid.index(result.positions)), points)
        assert np.abs(result.potentials - before).max() <= TOLERANCE[precision] * scale
        assert np.linalg.norm(result.map.values - final) <= TOLERANCE[precision] * np.linalg.norm(final)
    replayed = assert_greedy(result, base, tolerance=TOLERANCE[precision])
    assert np.linalg.norm(result.map.values - replayed) <= TOLERANCE[precision] * np.linalg.norm(replayed)
    assert result.map.values.dtype == precision
    assert result.map.unit == "kcal/mol/e"


@pytest.mark.parametrize("shape", [(1, 1, 1), (17, 3, 5), (16, 8, 8), (33, 65, 29)])
@pytest.mark.parametrize("smooth", [True, False], ids=["smooth", "noise"])
def test_any_map_and_any_order_of_charges(device, precision, shape, smooth):
    """Bounds of blocks are tight in smooth maps and of no use in noise; charges of all kinds come in any order."""
    rng = np.random.default_rng(5)
    grid = Grid((3, -20, 1e4), (0.7, 0.5, 0.6), shape)
    cloud = Atoms(positions=grid.origin + rng.uniform(-30, 60, (40, 3)), charges=rng.normal(0, 5, 40))
    potential = potential_of(cloud, grid) if smooth else rng.normal(0, 50, shape[::-1])
    atom = grid.position(np.array(shape) // 2) + 0.01
    charges = rng.choice([-2.0, -1.0, 1.0, 2.0, 3.0], 150).tolist()
    allowed = allowed_points(atom[None], grid, 0.9)
    points, before, _ = reference(potential, grid, allowed, charges, 2.1)
    queue = Queue(device, precision)
    placement = Placement(queue, grid, potential, atom[None], 0.9, 2.1)
    found, potentials = placement.place([COULOMB_KCAL_A * q for q in charges])
    assert placement.n_allowed == allowed.sum()
    if precision == "float64":
        np.testing.assert_array_equal(found, points)
        np.testing.assert_allclose(potentials, before, rtol=0, atol=1e-12 * np.abs(potential).max() * len(charges))
    elif not smooth:  # no two energies are close
        np.testing.assert_array_equal(found[:20], points[:20])


@pytest.mark.parametrize("seed", range(12))
def test_no_block_is_left_alone_that_holds_the_next_ion(device, seed):
    """Fine and coarse grids, ions far apart and close: each time another part of the bounds decides."""
    rng = np.random.default_rng(seed)
    spacing, apart = rng.choice([0.25, 0.5, 1.0]), rng.choice([1.0, 3.0, 6.0])
    shape = rng.integers(10, 60, 3)
    grid = Grid(rng.uniform(-5, 5, 3), spacing, shape)
    around = grid.origin + rng.uniform(-0.5, 1.5, (30, 3)) * shape * spacing
    potential = potential_of(Atoms(positions=around, charges=rng.normal(0, rng.choice([0.1, 1, 5]), 30)), grid)
    charges = [1.0, -1.0] * 40 if seed % 2 else rng.choice([-2.0, -1.0, 1.0, 2.0], 80).tolist()
    atom = grid.position(shape // 2)[None] + 0.013
    points, _, _ = reference(potential, grid, allowed_points(atom, grid, 1), charges, apart)
    if not device.has_float64:
        pytest.skip(f"{device} has no float64")
    queue = Queue(device, "float64")
    found, _ = Placement(queue, grid, potential, atom, 1, apart).place([COULOMB_KCAL_A * q for q in charges])
    np.testing.assert_array_equal(found, points)


def test_putting_the_work_off_changes_no_bit(device, precision):
    """Each ion found the potential that adding all ions before it to the whole map gives."""
    atoms, base = base_map("ubiquitin")
    charges = [COULOMB_KCAL_A * q for q in (1.0, -1.0, 2.0) * 20]
    queue = Queue(device, precision)
    placement = Placement(queue, base.grid, base.values, atoms.positions, 6, 8)
    points, potentials = placement.place(charges)
    for k in range(5, 60, 9):
        before = placement.with_ions(base.values, points[:k], potentials[:k], charges[:k])
        x, y, z = points[k]
        assert before[z, y, x] == before.dtype.type(potentials[k])


@pytest.mark.parametrize(
    "layout", [WorkSplit(1, 8, 128, 256), WorkSplit(1, 8, 32, 64), WorkSplit(2, 8, 4, 1), WorkSplit(4, 4, 1, 1)]
)
def test_any_layout_gives_the_same_ions(device, layout):
    """GPUs' layouts on CPUs, too."""
    atoms, base = base_map("hexapeptide")
    charges = [COULOMB_KCAL_A, -COULOMB_KCAL_A] * 10
    found = []
    for each in (None, layout):
        queue = Queue(device, "float32")
        placement = Placement(queue, base.grid, base.values, atoms.positions, 6, 10, each)
        found.append((placement.n_allowed, *placement.place(charges)))
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[0][1], found[1][1])
    np.testing.assert_allclose(found[0][2], found[1][2], rtol=1e-5)


def test_the_same_bits_every_time(device, precision):
    atoms, base = base_map("ubiquitin")
    runs = [
        place_ions(atoms, {"K": 30, "BR": 30}, map=base, precision=precision, device=device, keep_map=True)
        for _ in range(2)
    ]
    for name in ("positions", "potentials"):
        np.testing.assert_array_equal(getattr(runs[0], name), getattr(runs[1], name))
    np.testing.assert_array_equal(runs[0].map.values, runs[1].map.values)


@pytest.mark.parametrize("name", ["hexapeptide", "ubiquitin"])
def test_the_map_is_computed_where_none_is_given(device, precision, name):
    atoms = load_system(name).atoms
    grid = Grid.around(atoms, 8, 1)
    options = dict(precision=precision, device=device)
    result = place_ions(atoms, {"MG": 3, "CL": 4}, padding=8, spacing=1, dielectric=2, **options)
    base = potmap(atoms, grid, dielectric=2, min_distance=1e-3, **options).map
    same = place_ions(atoms, {"MG": 3, "CL": 4}, map=base, dielectric=2, **options)
    given = place_ions(atoms, {"MG": 3, "CL": 4}, grid=grid, dielectric=2, variant="gather", **options)
    for other in (same, given):
        np.testing.assert_array_equal(result.positions, other.positions)
        np.testing.assert_allclose(result.potentials, other.potentials, rtol=1e-4)
    assert (result.variant, given.variant, result.map) == ("blocked", "gather", None)
    assert result.seconds["map"] > 0


def test_points_on_atoms_do_no_harm(device, precision):
    atoms = random_atoms(30)
    grid = Grid(atoms.positions[3] - 12, 1.0, (30, 30, 30))
    result = place_ions(atoms, {"NA": 2, "CL": 2}, grid=grid, keep_map=True, precision=precision, device=device)
    assert np.isfinite(result.map.values).all()


# What must hold


def test_distances_are_kept(device, precision):
    atoms = load_system("ubiquitin").atoms
    result = place_ions(
        atoms, {"NA": 60, "CL": 60}, solute_distance=4, ion_distance=5, precision=precision, device=device
    )
    apart = np.linalg.norm(result.positions[:, None] - result.positions, axis=2)[np.triu_indices(120, 1)]
    off = np.linalg.norm(result.positions[:, None] - atoms.positions, axis=2)
    assert apart.min() > 5
    assert off.min() > 4 - 1e-5
    assert apart.min() < 6  # the limit was felt
    assert off.min() < 4.5


def test_energies_add_up_to_coulombs_law(device, precision):
    atoms = load_system("ubiquitin").atoms
    result = place_ions(atoms, {"CA": 10, "CL": 20}, precision=precision, device=device)
    np.testing.assert_array_equal(result.energies, result.charges * result.potentials)
    charges = np.concatenate([atoms.charges, result.charges])
    positions = np.concatenate([atoms.positions, result.positions])
    expected = 0.0
    for k in range(len(atoms), len(charges)):
        expected += charges[k] * (charges[:k] / np.linalg.norm(positions[:k] - positions[k], axis=1)).sum()
    assert result.energy == pytest.approx(COULOMB_KCAL_A * expected, rel=10 * TOLERANCE[precision])


def test_of_equal_points_the_first_is_taken(device, precision):
    grid = Grid((-8, -8, -8), 0.5, (33, 33, 33))
    atom = Atoms(positions=[[0, 0, 0]], charges=[1.0])
    nothing = np.zeros(grid.shape[::-1])
    for potential in (nothing, points_of(grid)[..., 0] ** 2, -np.abs(points_of(grid)).max(axis=-1)):
        flat = Map(grid, potential)
        charges = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0]
        points, _, _ = reference(potential, grid, allowed_points(atom.positions, grid, 2), charges, 3)
        result = place_ions(
            atom, {"NA": 3, "CL": 3}, map=flat, solute_distance=2, ion_distance=3, precision=precision, device=device
        )
        np.testing.assert_array_equal(grid.index(result.positions), points)
    first = place_ions(atom, {"NA": 1}, map=Map(grid, nothing), precision=precision, device=device)
    np.testing.assert_array_equal(first.positions, [grid.origin])


def test_species_take_turns():
    atoms, base = base_map("hexapeptide")
    result = place_ions(atoms, {"cl-": 1, "Na+": 3, "I": 2}, map=base, device=DEVICES[0])
    assert [species.name for species in result.species] == ["CL", "NA", "IOD", "NA", "IOD", "NA"]
    assert result.counts == {"CL": 1, "NA": 3, "IOD": 2}
    assert result.net_charge == pytest.approx(-1)
    assert len(place_ions(atoms, {"NA": 0}, map=base, keep_map=True, device=DEVICES[0])) == 0


def test_progress_goes_to_one():
    atoms, base = base_map("hexapeptide")
    shares = []
    place_ions(atoms, {"NA": 32}, map=base, ion_distance=3, device=DEVICES[0], progress=shares.append)
    assert shares == [0.5, 1.0]


# Counts


def whole(counts):
    return {species.name: count for species, count in counts.items()}


@pytest.mark.parametrize(
    ("requests", "charge", "expected"),
    [
        ({"NA": "auto", "CL": "auto"}, -7, {"NA": 7, "CL": 0}),
        ({"CL": "auto", "NA": "auto"}, 4.0002, {"CL": 4, "NA": 0}),
        ({"NA": 12, "CL": "auto"}, -4, {"NA": 12, "CL": 8}),
        ({"MG": "auto", "CL": "auto"}, -7, {"MG": 4, "CL": 1}),
        ({"MG": "auto"}, -7, {"MG": 3}),
        ({"NA": "auto"}, 3, {"NA": 0}),
        ({"AL": "auto", "K": 2}, -8, {"AL": 2, "K": 2}),
    ],
)
def test_neutralize(requests, charge, expected):
    assert whole(count_ions(requests, charge, 1e5, neutralize=True)) == expected


@pytest.mark.parametrize("charge", [-30, -1, 0, 8])
def test_concentration_of_a_salt_is_sltcaps(charge):
    """Closed form of Schmit and others, JCTC 14, 1823 (2018), for ions of one charge."""
    volume = 2e5
    pairs = 0.15 * AVOGADRO_PER_MOL * 1e-27 * volume
    root = np.sqrt(1 + (charge / (2 * pairs)) ** 2)
    cations, anions = salt_ions(charge, pairs, 1, 1)
    assert cations == pytest.approx(pairs * (root - charge / (2 * pairs)))
    assert anions == pytest.approx(pairs * (root + charge / (2 * pairs)))
    counts = whole(count_ions({"NA": "auto", "CL": "auto"}, charge, volume, concentration=0.15))
    assert counts["NA"] - counts["CL"] == -charge
    assert counts["NA"] == pytest.approx(cations, abs=1)


def test_concentration_of_other_salts():
    counts = whole(count_ions({"MG": "auto", "CL": "auto"}, 0, 1e6, concentration=0.1))
    assert counts == {"MG": 60, "CL": 120}
    counts = whole(count_ions({"MG": "auto", "CL": "auto", "NA": 1}, -8, 1e6, concentration=0.1))
    assert 2 * counts["MG"] + 1 - counts["CL"] == 8
    assert counts["MG"] > 60 > counts["CL"] / 2


@pytest.mark.parametrize("name", ["CL", "MG"])
def test_concentration_of_a_single_ion_is_its_own(name):
    volume, others = 1e6, {"NA": 12, "K": 3}
    for order in ({**others, name: "auto"}, {name: "auto", **others}):
        counts = whole(count_ions(order, -8, volume, concentration=0.15))
        assert counts == {**others, name: round(0.15 * AVOGADRO_PER_MOL * 1e-27 * volume)}
        assert list(counts) == list(order)


def test_concentrations_that_are_none():
    with pytest.raises(InputError, match="10 mol/L are more than 1,000,000 ions; choose a lower concentration"):
        count_ions({"NA": "auto", "CL": "auto"}, 0, 1e9, concentration=10.0)
    with pytest.raises(InputError, match=r"the concentration is 1e\+09 mol/L, but the maximum is"):
        count_ions({"NA": "auto", "CL": "auto"}, 0, 1e6, concentration=1e9)


def test_concentration_is_that_of_the_free_volume():
    atoms, base = base_map("ubiquitin")
    result = place_ions(atoms, {"NA": "auto", "CL": "auto"}, map=base, concentration=0.15, device=DEVICES[0])
    assert result.counts["NA"] == round(0.15 * AVOGADRO_PER_MOL * 1e-27 * result.free_volume)
    assert result.net_charge == pytest.approx(0, abs=1e-3)


def test_species_are_the_pdbs_and_the_force_fields(tmp_path):
    """gemmi knows every residue; the ones that Amber has parameters for have its charges."""
    charges = {}
    for species in SPECIES.values():
        assert gemmi.find_tabulated_residue(species.name).found()
        assert gemmi.Element(species.element).atomic_number > 0
        line = f"HETATM    1 {species.atom:4s} {species.name:>3s} A   1       0.000   0.000   0.000  1.00  0.00\n"
        (tmp_path / "ion.pdb").write_text(line)
        with contextlib.suppress(ParameterError):
            charges[species.name] = read(tmp_path / "ion.pdb").charges.sum()
    assert {"LI", "NA", "K", "RB", "CS", "MG", "CA", "ZN", "CL", "BR", "IOD"} <= set(charges)
    assert charges == pytest.approx({name: SPECIES[name].charge for name in charges})


# Errors


def message(**options) -> str:
    atoms, base = base_map("hexapeptide")
    with pytest.raises(InputError) as caught:
        place_ions(atoms, **{"ions": {"NA": 1}, "map": base, "device": DEVICES[0], **options})
    return str(caught.value)


def test_no_room_says_how_many_were_placed(device):
    text = message(ions={"NA": 60, "CL": 60}, device=device)
    n = int(text.split()[4])
    assert text.startswith(f"there was room for {n} of 120 ions: the free volume of ")
    assert 20 < n < 120
    atoms, base = base_map("hexapeptide")
    allowed = allowed_points(atoms.positions, base.grid, 6)
    assert len(reference(base.values, base.grid, allowed, [1.0, -1.0] * 60, 10)[0]) == n
    assert "room for 0 of 1 ion:" in message(solute_distance=100)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(ions={"XX": 1}), "unknown ion 'XX'; choose one of LI, NA, "),
        (dict(ions={"NA": -1}), "-1 is not a number of NA ions"),
        (dict(ions={"NA": 1.5}), "1.5 is not a number of NA ions"),
        (dict(ions={"I": 1, "IOD": 2}), "the ion IOD is given twice"),
        (dict(ions={"NA": "auto"}), "NA:auto needs a rule: neutralize, or a concentration"),
        (dict(neutralize=True), "give a species as auto"),
        (dict(ions={"NA": "auto", "K": "auto"}, neutralize=True), "NA:auto and K:auto cannot be distinguished"),
        (dict(ions={"NA": 1}, concentration=0.1), "give a cation and an anion as auto"),
        (dict(ions={"NA": "auto", "CL": "auto"}, concentration=-1), "must be a positive number of mol/L, not -1"),
        (dict(neutralize=True, concentration=0.1), "choose neutralize or concentration"),
        (dict(solute_distance=-1), "the solute distance must be 0 or more Angstrom, not -1"),
        (dict(ion_distance=float("nan")), "the ion distance must be 0 or more Angstrom, not nan"),
        (dict(dielectric=0), "the dielectric constant must be positive, not 0"),
        (dict(precision="half"), "unknown precision 'half'"),
        (dict(map=None, variant="cutoff"), "has no variant 'cutoff'"),
    ],
)
def test_errors_are_sentences(options, words):
    assert words in message(**options)


def test_maps_must_be_finite_and_in_the_right_unit():
    _, base = base_map("hexapeptide")
    assert "the map is in mV; convert it to kcal/mol/e" in message(map=Map(base.grid, base.values, "mV"))
    broken = base.values.copy()
    broken[1, 2, 3] = np.inf
    assert "not finite" in message(map=Map(base.grid, broken))
