"""Born radii and solvent energy on the devices: analytic values, the reference, invariants, errors."""

import resource
from dataclasses import asdict

import numpy as np
import pytest
from conftest import load_system, random_atoms
from tolerance import BORN_RADIUS, ENERGY, OPENMM_ENERGY, born_radius_bound

from pele_ocl import Atoms, Energy, InputError, ParameterError, Solvent, SolventModel, solvent
from pele_ocl.common.variant import PRECISIONS
from pele_ocl.ladder import SOLVENT as VARIANTS
from pele_ocl.ladder import SolventLadder
from pele_ocl.opencl import Queue
from pele_ocl.plan.tuning import Choice, trying
from pele_ocl.reference import solvent as reference
from pele_ocl.solvent import choose_variant
from pele_ocl.solvent.layout import SolventLayout
from pele_ocl.tiles import Tiles

MODEL = SolventModel()
CHEAP = ("hexapeptide", "ubiquitin", "src3")


def reference_radii(atoms, model=MODEL):
    return reference.born_radii(atoms.positions, atoms.gb_radii, atoms.gb_scales, model)[1]


def worst(values, expected):
    return np.abs(values / expected - 1).max()


def bound(variant, precision, n_atoms=0):
    """Return the bound of the worst Born radius; `tree` leaves out what its accuracy allows."""
    return born_radius_bound(None, precision, n_atoms, VARIANTS[variant].approximates)


def energy_bound(variant, precision):
    """Return the bound of the energy likewise; radii that are good to 1e-5 leave it good to 1e-6."""
    return max(ENERGY[precision], 1e-6 if VARIANTS[variant].approximates else 0)


def laid_out(layout, atoms, device, precision):
    """A plan of `tiled` with this layout."""
    with trying("solvent", Choice.of("tiled", **asdict(layout))):
        return Solvent(atoms, variant="tiled", device=device, precision=precision)


# Analytic


@pytest.mark.parametrize("variant", VARIANTS)
def test_lone_atom(device, precision, variant):
    atoms = Atoms(positions=[[1e5, 0, -3]], charges=[2.0], gb_radii=[1.7], gb_scales=[0.8])
    result = solvent(atoms, variant=variant, precision=precision, device=device)
    assert result.born_radii[0] == pytest.approx(1.61, rel=BORN_RADIUS[precision] / 10)
    assert result.psi[0] == 0
    assert result.gb_self == pytest.approx(-332.0637133 / 2 * (1 - 1 / 80) * 4 / 1.61, rel=1e-6)
    assert result.gb_pair == 0


# Against the references


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", CHEAP)
def test_born_radii_of_the_shipped_structures(device, precision, variant, name):
    system = load_system(name)
    result = solvent(system.atoms, variant=variant, precision=precision, device=device)
    own = VARIANTS[variant]
    most = born_radius_bound(own.sums, precision, len(system.atoms), own.approximates)
    assert worst(result.born_radii, system.arrays["born_radius"]) < most
    np.testing.assert_allclose(result.psi, system.arrays["psi"], rtol=most)


@pytest.mark.parametrize("name", ["enolase_dimer", "ruvab"])
def test_born_radii_of_large_structures(device, precision, name):
    system = load_system(name)
    result = solvent(system.atoms, variant="tiled", precision=precision, device=device)
    assert worst(result.born_radii, system.arrays["born_radius"]) < BORN_RADIUS[precision]
    assert_energies(system, result, ENERGY[precision])


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ["enolase_dimer", "ruvab"])
def test_born_radii_of_large_structures_by_every_variant(device, variant, name):
    system = load_system(name)
    result = solvent(system.atoms, variant=variant, precision="float64", device=device)
    assert worst(result.born_radii, system.arrays["born_radius"]) < bound(variant, "float64")


@pytest.mark.slow
def test_97118_atoms(device, precision):
    system = load_system("cct12")
    result = solvent(system.atoms, variant="tiled", precision=precision, device=device)
    assert worst(result.born_radii, system.arrays["born_radius"]) < BORN_RADIUS[precision]
    assert_energies(system, result, ENERGY[precision])


def assert_energies(system, result, tolerance):
    gb = result.gb_self + result.gb_pair
    assert gb == pytest.approx(system.energies["own_gb_80_kcal"], rel=tolerance)
    assert result.nonpolar == pytest.approx(system.energies["own_ace_kcal"], rel=tolerance)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dielectric", [78.5, 80])
def test_energies_are_openmms(device, precision, variant, dielectric):
    system = load_system("hexapeptide")
    model = SolventModel(solvent_dielectric=dielectric)
    result = solvent(system.atoms, variant=variant, precision=precision, device=device, model=model)
    tolerance = max(energy_bound(variant, precision), OPENMM_ENERGY)
    gb, gbsa = (system.energies[f"openmm_gb_{dielectric}{part}_kcal"] for part in ("", "sa"))
    assert result.gb_self + result.gb_pair == pytest.approx(gb, rel=tolerance)
    assert result.total == pytest.approx(gbsa, rel=tolerance)


@pytest.mark.parametrize(
    ("name", "dielectric"),
    [("ubiquitin", 78.5), ("ubiquitin", 80), ("src3", 78.5), ("src3", 80), ("enolase_dimer", 78.5), ("ruvab", 80)],
)
def test_energies_of_the_shipped_structures_are_openmms(device, name, dielectric):
    system = load_system(name)
    model = SolventModel(solvent_dielectric=dielectric)
    result = solvent(system.atoms, precision="float64", device=device, model=model)
    gb, gbsa = (system.energies[f"openmm_gb_{dielectric}{part}_kcal"] for part in ("", "sa"))
    assert result.gb_self + result.gb_pair == pytest.approx(gb, rel=OPENMM_ENERGY)
    assert result.total == pytest.approx(gbsa, rel=OPENMM_ENERGY)


@pytest.mark.parametrize("name", ["ubiquitin", "src3"])
def test_energies_of_the_shipped_structures(device, precision, name):
    system = load_system(name)
    assert_energies(system, solvent(system.atoms, precision=precision, device=device), ENERGY[precision])


def test_sparse_structures_keep_their_digits(device, precision):
    """A protein, its copy 50,000 A away, and a stray atom."""
    one = load_system("hexapeptide").atoms
    positions = np.concatenate([one.positions, one.positions + np.array([5e4, 0, 0]), [[0, -9999.0, 0]]])
    radii, scales = (np.append(np.tile(values, 2), values[:1]) for values in (one.gb_radii, one.gb_scales))
    atoms = Atoms(positions=positions, charges=np.append(np.tile(one.charges, 2), 0), gb_radii=radii, gb_scales=scales)
    result = solvent(atoms, variant="tiled", precision=precision, device=device)
    assert worst(result.born_radii, reference_radii(atoms)) < BORN_RADIUS[precision]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n", [2, 31, 32, 33, 63, 64, 65, 257])
def test_awkward_sizes(device, precision, variant, n):
    atoms = random_atoms(n, seed=n)
    result = solvent(atoms, variant=variant, precision=precision, device=device)
    assert worst(result.born_radii, reference_radii(atoms)) < bound(variant, precision)


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("vectors", [1, 2])
@pytest.mark.parametrize("blocks", [False, True])
def test_every_layout_gives_the_same_radii(device, width, vectors, blocks):
    """Each in one of the precisions by turns, so that either has every width, and both kinds of walk."""
    precision = PRECISIONS[(vectors + blocks) % 2] if device.has_float64 else "float32"
    atoms = random_atoms(500)
    layout = SolventLayout(width, vectors, 2 * width * vectors, (1, 1), 5, blocks, row=2 * vectors - 1, shares=vectors)
    result = laid_out(layout, atoms, device, precision).evaluate()
    assert worst(result.born_radii, reference_radii(atoms)) < BORN_RADIUS[precision]
    energies = reference.gb_pair(atoms.positions, atoms.charges, result.born_radii, MODEL)
    scale = np.abs(result.per_atom.gb_self).max()
    np.testing.assert_allclose(result.per_atom.gb_pair, energies, rtol=0, atol=5 * ENERGY[precision] * scale)


@pytest.mark.parametrize("blocks", [False, True])
def test_rows_and_blocks_on_a_protein(device, precision, blocks):
    system = load_system("src3")
    layout = SolventLayout(1, 1, 64, (64, 1), 16) if not blocks else SolventLayout(4, 1, 32, (1, 1), 16, blocks)
    born = laid_out(layout, system.atoms, device, precision).evaluate().born_radii
    assert worst(born, system.arrays["born_radius"]) < BORN_RADIUS[precision]


def crowd(seed=1, n=60):
    """Spheres that overlap, swallow each other and stand exactly at the formula's switches."""
    rng = np.random.default_rng(seed)
    positions = rng.uniform(0, 6, (n, 3))
    radii = np.where(rng.uniform(size=n) < 0.2, rng.uniform(3, 5, n), rng.uniform(0.15, 2, n))
    scales = rng.uniform(0.3, 1.4, n)
    rho = radii - 0.09
    for i in range(0, 12, 2):  # pairs at r = rho + s, |rho - s| and s
        s = scales[i + 1] * rho[i + 1]
        r = [rho[i] + s, abs(rho[i] - s) + 1e-3, s][i // 2 % 3]
        positions[i + 1] = positions[i] + np.array([r, 0, 0])
    return Atoms(positions=positions, charges=rng.normal(size=n), gb_radii=radii, gb_scales=scales)


@pytest.mark.parametrize("variant", VARIANTS)
def test_overlapping_and_engulfed_spheres(device, precision, variant):
    atoms = crowd()
    result = solvent(atoms, variant=variant, precision=precision, device=device)
    assert worst(result.born_radii, reference_radii(atoms)) < bound(variant, precision)


def test_the_crowd_has_every_case():
    atoms = crowd()
    r = np.linalg.norm(atoms.positions[:, None] - atoms.positions, axis=2) + 100 * np.eye(len(atoms))
    rho = (atoms.gb_radii - MODEL.offset)[:, None]
    s = (atoms.gb_scales * (atoms.gb_radii - MODEL.offset))[None]
    for case in (rho < s - r, rho >= r + s, (np.abs(r - s) < rho) & (rho < r + s), r > rho + s):
        assert case.sum() > 10


@pytest.mark.parametrize("variant", VARIANTS)
def test_zero_scale_shields_nothing(device, precision, variant):
    atoms = Atoms(positions=np.eye(3), charges=[1, 0, 0], gb_radii=[1.5] * 3, gb_scales=[0.0] * 3)
    result = solvent(atoms, variant=variant, precision=precision, device=device)
    np.testing.assert_allclose(result.born_radii, 1.41, rtol=1e-6)


def test_options_of_the_model(device, precision):
    atoms = random_atoms(100)
    model = SolventModel(
        solute_dielectric=2, solvent_dielectric=40, ionic_strength=0.5, temperature=310, offset=0.05, alpha=0.8, beta=0,
        gamma=2.909125, surface_tension=0.01, probe_radius=1.2,
    )  # fmt: skip
    result = solvent(atoms, precision=precision, device=device, model=model)
    born = reference_radii(atoms, model)
    np.testing.assert_allclose(result.born_radii, born, rtol=BORN_RADIUS[precision])
    pair = reference.gb_pair(atoms.positions, atoms.charges, born, model)
    np.testing.assert_allclose(
        result.per_atom.gb_pair, pair, rtol=0, atol=5 * ENERGY[precision] * np.abs(result.per_atom.gb_self).max()
    )
    assert result.total == pytest.approx(
        (reference.gb_self(atoms.charges, born, model) + pair + reference.nonpolar(atoms.gb_radii, born, model)).sum(),
        rel=10 * ENERGY[precision],
    )


# Invariants


def test_translation_changes_nothing_even_far_away(device, precision):
    system = load_system("ubiquitin")
    here = system.atoms
    there = Atoms(
        positions=here.positions + np.array([1e5, -1e5, 7.7]),
        charges=here.charges,
        gb_radii=here.gb_radii,
        gb_scales=here.gb_scales,
    )
    result = solvent(there, precision=precision, device=device)
    # 1e5 A cost the float64 input itself five of its digits.
    assert worst(result.born_radii, system.arrays["born_radius"]) < max(BORN_RADIUS[precision], 1e-9)
    assert_energies(system, result, max(ENERGY[precision], 1e-9))


def test_rotation_and_order_change_nothing(device, precision):
    atoms = random_atoms(300)
    order = np.random.default_rng(5).permutation(300)
    rotation, _ = np.linalg.qr(np.random.default_rng(6).normal(size=(3, 3)))
    turned = Atoms(
        positions=(atoms.positions @ rotation)[order],
        charges=atoms.charges[order],
        gb_radii=atoms.gb_radii[order],
        gb_scales=atoms.gb_scales[order],
    )
    first, second = (solvent(a, precision=precision, device=device) for a in (atoms, turned))
    np.testing.assert_allclose(second.born_radii, first.born_radii[order], rtol=BORN_RADIUS[precision])
    assert second.total == pytest.approx(first.total, rel=ENERGY[precision])


@pytest.mark.parametrize("variant", VARIANTS)
def test_same_bits_every_run(device, precision, variant):
    atoms = random_atoms(700)
    first, second = (solvent(atoms, variant=variant, precision=precision, device=device) for _ in range(2))
    np.testing.assert_array_equal(first.born_radii, second.born_radii)
    np.testing.assert_array_equal(first.per_atom.total, second.per_atom.total)


@pytest.mark.parametrize("variant", VARIANTS)
def test_progress_in_slabs_changes_no_bit(device, variant):
    atoms = load_system("ubiquitin").atoms
    shares = []
    quiet = solvent(atoms, variant=variant, device=device)
    watched = solvent(atoms, variant=variant, device=device, progress=shares.append)
    assert shares
    assert all(0 <= share <= 1 for share in shares)
    np.testing.assert_array_equal(quiet.born_radii, watched.born_radii)


def test_slabs_cover_every_row(device, precision, monkeypatch):
    monkeypatch.setattr("pele_ocl.opencl.queue.SLAB_SECONDS", 1e-7)
    monkeypatch.setattr("pele_ocl.opencl.queue.FIRST_SLAB_PAIRS", 1e3)
    atoms = random_atoms(400)
    for variant in VARIANTS:
        shares = []
        result = solvent(atoms, variant=variant, precision=precision, device=device, progress=shares.append)
        assert len(shares) > 3 or variant == "outer"  # whose groups may be as large as the molecule
        assert worst(result.born_radii, reference_radii(atoms)) < bound(variant, precision)


def test_slabs_of_rows_cover_every_row(device, precision, monkeypatch):
    monkeypatch.setattr("pele_ocl.opencl.queue.SLAB_SECONDS", 1e-7)
    monkeypatch.setattr("pele_ocl.opencl.queue.FIRST_SLAB_PAIRS", 1e3)
    atoms, shares = random_atoms(400), []
    layout = SolventLayout(1, 1, 32, (32, 1), 5, row=3)
    born = laid_out(layout, atoms, device, precision).evaluate(progress=shares.append).born_radii
    assert len(shares) > 3
    assert worst(born, reference_radii(atoms)) < BORN_RADIUS[precision]


def test_charges_scale_the_energy_squared(device):
    atoms = random_atoms(200)
    doubled = Atoms(
        positions=atoms.positions, charges=2 * atoms.charges, gb_radii=atoms.gb_radii, gb_scales=atoms.gb_scales
    )
    one, two = (solvent(a, precision="float64", device=device) for a in (atoms, doubled))
    assert two.gb_self == pytest.approx(4 * one.gb_self, rel=1e-12)
    assert two.gb_pair == pytest.approx(4 * one.gb_pair, rel=1e-12)


def test_result_adds_up(device):
    result = solvent(random_atoms(50), device=device)
    assert result.total == pytest.approx(result.per_atom.total.sum(), rel=1e-12)
    assert result.energy["total"] == result.total
    assert result.seconds["total"] > result.seconds["kernel"] > 0


@pytest.mark.slow
def test_a_million_atoms_need_linear_memory(device, precision, monkeypatch):
    """Everything around the kernels, which would take minutes, at full size: what they need is there before."""
    runs, reserve = set(), Queue._reserve
    monkeypatch.setattr(Queue, "_reserve", lambda self, size: runs.add(self) or reserve(self, size))
    monkeypatch.setattr(Queue, "launch_bound", lambda *_: None)
    monkeypatch.setattr(Queue, "start_read", lambda self, array, buffer: array.fill(1))
    monkeypatch.setattr(Queue, "wait", lambda *_: None)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    solvent(random_atoms(1_000_000), variant="tiled", precision=precision, device=device)
    assert max(queue.allocated for queue in runs) < 2**31
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 2**31


# Many conformations


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_plan_gives_what_a_new_one_gives(device, precision, variant):
    """At its own positions, moved ones, its own again and those without being told."""
    atoms = random_atoms(300)
    options = dict(variant=variant, precision=precision, device=device)
    plan = SolventLadder(atoms, **options)
    one_shot = solvent(atoms, **options)
    moved = atoms.positions + np.random.default_rng(3).normal(0, 0.05, (300, 3)) + 40
    there = Atoms(positions=moved, charges=atoms.charges, gb_radii=atoms.gb_radii, gb_scales=atoms.gb_scales)
    for positions in (atoms.positions, moved, atoms.positions, None):
        result = plan.evaluate(positions)
        if positions is moved:
            assert worst(result.born_radii, reference_radii(there)) < bound(variant, precision)
            assert result.total == pytest.approx(solvent(there, **options).total, rel=energy_bound(variant, precision))
            np.testing.assert_array_equal(result.atoms.positions, moved)
        else:
            np.testing.assert_array_equal(result.born_radii, one_shot.born_radii)
            np.testing.assert_array_equal(result.per_atom.total, one_shot.per_atom.total)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_batch_has_the_bits_of_its_members(device, precision, variant):
    """Members lie in the molecule's place, elsewhere, and are given in float32."""
    atoms = random_atoms(90)
    plan, shares = SolventLadder(atoms, variant=variant, precision=precision, device=device), []
    places = np.array([0, 1e4, -40])[:, None, None]
    conformations = (atoms.positions + places + np.random.default_rng(3).normal(0, 0.05, (3, 90, 3))).astype(np.float32)
    batch = plan.evaluate_batch(conformations, shares.append, profile=True)
    assert shares[-1] == 1
    assert batch.seconds["kernel"] == pytest.approx(batch.seconds["born"] + batch.seconds["energy"])
    assert len(batch) == 3
    assert batch.born_radii.shape == batch.psi.shape == batch.per_atom.total.shape == (3, 90)
    for k, positions in enumerate(conformations):
        for result in (plan.evaluate(positions), batch[k]):
            np.testing.assert_array_equal(batch.energies[k], result.energies)
            np.testing.assert_array_equal(batch.born_radii[k], result.born_radii)
            np.testing.assert_array_equal(batch.psi[k], result.psi)
            np.testing.assert_array_equal(batch.per_atom.values[k], result.per_atom.values)
            np.testing.assert_array_equal(result.atoms.positions, positions.astype(np.float64))
        there = Atoms(positions=positions, charges=atoms.charges, gb_radii=atoms.gb_radii, gb_scales=atoms.gb_scales)
        assert worst(batch.born_radii[k], reference_radii(there)) < bound(variant, precision)


@pytest.mark.parametrize("variant", VARIANTS)
def test_bad_members_of_a_batch(device, precision, variant):
    """Atoms at the same place, in one tile or in two, are found wherever they lie."""
    atoms = random_atoms(150)
    plan = SolventLadder(atoms, variant=variant, precision=precision, device=device)
    conformations = np.stack([atoms.positions] * 4)
    conformations[1, 149] = conformations[1, 0]
    conformations[2, 7] = conformations[2, plan._tiles.order[plan._tiles.slots[7] ^ 1]] + 5e-5
    batch, good = plan.evaluate_batch(conformations, errors="record"), plan.evaluate()
    assert list(batch.errors) == [1, 2]
    assert "atom 0 and atom 149 are at the same position" in batch.errors[1]
    assert "are at the same position" in batch.errors[2]
    assert np.isnan(batch.born_radii[1]).all()
    assert np.isnan(batch.per_atom.total[2]).all()
    for k in (0, 3):
        np.testing.assert_array_equal(batch.born_radii[k], good.born_radii)
        np.testing.assert_array_equal(batch.energies[k], good.energies)
    with pytest.raises(InputError, match=r"^conformation 2 of 4: atom 0 and atom 149 are at the same position"):
        plan.evaluate_batch(conformations)


@pytest.mark.parametrize("variant", VARIANTS)
def test_callbacks_may_compute(device, variant, monkeypatch):
    """Callbacks compute with the plan that is at work, between the parts of a long launch."""
    monkeypatch.setattr("pele_ocl.opencl.queue.FIRST_SLAB_PAIRS", 1e3)
    plan = SolventLadder(random_atoms(200), variant=variant, device=device)
    moved, inside = plan.atoms.positions + 0.1 * np.eye(200, 3), []
    expected, there = plan.evaluate(), plan.evaluate(moved)
    result = plan.evaluate(progress=lambda share: inside.append(plan.evaluate(moved)))
    assert inside
    for found, same in [(result, expected), *((other, there) for other in inside)]:
        np.testing.assert_array_equal(found.born_radii, same.born_radii)
        np.testing.assert_array_equal(found.per_atom.values, same.per_atom.values)


def test_times_are_taken_where_they_are_asked_for(device):
    plan = Solvent(random_atoms(50), device=device)
    assert set(plan.evaluate().seconds) == {"total"}
    seconds = plan.evaluate(profile=True).seconds
    assert set(seconds) == {"place", "born", "energy", "kernel", "total"}
    assert seconds["total"] > seconds["kernel"] == pytest.approx(seconds["born"] + seconds["energy"])


def test_a_plan_sorts_its_atoms_once(device, monkeypatch):
    atoms = random_atoms(100)
    plan = Solvent(atoms, variant="tiled", device=device)
    monkeypatch.setattr(Tiles, "of", lambda *_: pytest.fail("sorted again"))
    plan.evaluate(atoms.positions + 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x[1:], r"positions have shape \(9, 3\); expected \(10, 3\)"),
        (lambda x: x * np.nan, "expected a finite number"),
        (lambda x: x * 1e6, "a molecule up to 500,000 A can be computed"),
        (lambda x: x[[0, 1, 2, 3, 4, 5, 6, 7, 8, 2]], "atom 2 and atom 9 are at the same position"),
    ],
)
def test_positions_must_be_good(device, change, message):
    atoms = random_atoms(10)
    with pytest.raises(InputError, match=message):
        Solvent(atoms, device=device).evaluate(change(atoms.positions))


def test_parts_are_added_without_loss(device, precision):
    """Many small parts after a large one, which plain addition in order would lose."""
    queue, n_parts = Queue(device, precision), 1000
    small = np.finfo(precision).eps / 4
    parts = np.full((n_parts, 4), small)
    parts[0] = 1
    for shares in (1, 4):
        results = queue.zeros(5 * 3)
        arguments = dict(
            n_tiles=1, n_atoms=3, n_parts=n_parts, potential=queue.upload(parts), charges=queue.upload([-2, -2, -2, 0]),
            order=queue.upload([0, 2, 1, 1], np.int32), counts=queue.upload([3], np.int32), results=results,
        )  # fmt: skip
        launch = queue.bind(
            "solvent/atoms.cl", "pair_energies", (4, shares), (4, shares), arguments, TILE=4, SHARES=shares,
            ENERGIES=1, **MODEL.radius_definitions,
        )  # fmt: skip
        queue.launch_bound([launch], 1)
        found = queue.download(results, 15).reshape(5, 3)
        expected = 1 + (n_parts - 1) * small
        np.testing.assert_allclose(found[1], expected, rtol=np.finfo(precision).eps)
        assert not found[[0, 2, 3, 4]].any()


# Choice


def test_auto_is_a_variant_for_every_kind_and_size():
    for kind in ("GPU", "CPU", "accelerator", "simulator"):
        for n in (1, 96, 1231, 30211, 10**6):
            assert choose_variant(kind, n) in VARIANTS
    assert choose_variant("CPU", 96) == choose_variant("GPU", 30211) == "tiled"
    assert choose_variant("GPU", 999) == "pair"


# Errors


def test_energies_that_overflow_are_an_error(device):
    atoms = Atoms(positions=np.eye(3), charges=[0, 1e200, 0], gb_radii=[1.5] * 3, gb_scales=[0.8] * 3)
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(InputError, match=r"the energy of atom . is not finite"),
    ):
        solvent(atoms, device=device)


def test_a_molecule_has_a_size():
    atoms = Atoms(positions=[[0, 0, 0], [1e6, 0, 0]], charges=[0, 0], gb_radii=[1.5] * 2, gb_scales=[0.8] * 2)
    with pytest.raises(InputError, match=r"the atoms span 1e\+06 A; a molecule up to 500,000 A can be computed"):
        solvent(atoms)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"gb_radii": [1.5, 0.09]}, ParameterError, "GB radius of atom 1 is 0.09 A, at or below the offset of 0.09 A"),
        ({"positions": np.zeros((2, 3))}, InputError, "atom 0 and atom 1 are at the same position"),
        ({"gb_scales": None}, InputError, "the solvent energy needs gb_scales, which these atoms do not have"),
    ],
)
def test_bad_atoms(changes, error, message):
    values = {"positions": np.eye(3)[:2], "charges": [0, 1], "gb_radii": [1.5, 1.5], "gb_scales": [0.8, 0.8]}
    with pytest.raises(error, match=message):
        solvent(Atoms(**(values | changes)))


def test_no_atoms():
    empty = Atoms(positions=np.empty((0, 3)), charges=[], gb_radii=[], gb_scales=[])
    with pytest.raises(InputError, match="needs at least one atom; it has none"):
        solvent(empty)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "fast"}, "unknown variant 'fast'; choose auto, sequential, inner, outer, pair, tiled, tree"),
        ({"precision": "float16"}, "unknown precision 'float16'; choose float32 or float64"),
    ],
)
def test_unknown_options(options, message):
    with pytest.raises(InputError, match=message):
        solvent(random_atoms(3), **options)


@pytest.mark.parametrize(
    ("name", "value"), [("solvent_dielectric", 0), ("ionic_strength", -1), ("temperature", np.nan), ("offset", -0.1)]
)
def test_bad_model(name, value):
    with pytest.raises(InputError, match=name):
        SolventModel(**{name: value})


def test_residues_need_labels(device):
    with pytest.raises(InputError, match="energies per residue need atoms with labels"):
        solvent(random_atoms(3), device=device).per_residue()


@pytest.mark.parametrize("plan", [Solvent, Energy])
def test_a_negative_born_radius_names_the_sphere_that_covers_the_atom(plan):
    """Own radii are right; the scale of another atom is the cause."""
    atoms = Atoms(
        [[0, 0, 0], [5, 0, 0], [9, 0, 0]], np.zeros(3), lj_sigma=np.ones(3), lj_epsilon=np.zeros(3),
        gb_radii=[1.5, 1.5, 1.5], gb_scales=[0.8, 9.0, 9.0],
    )  # fmt: skip
    with pytest.raises(InputError, match=r"radius of atom 0 is .* those of atom 1, whose scaled sphere of 12.7 A"):
        plan(atoms, model=SolventModel(gb="hct"), precision="float64").evaluate()
