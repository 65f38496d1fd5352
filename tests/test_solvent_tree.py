"""Tree of boxes: accuracy over all atoms, shapes, models, layouts, and the error that is measured with it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import load_system, random_atoms
from gb_helpers import with_mbondi3
from tolerance import BORN_RADIUS

from pele_ocl import Atoms, InputError, Nonbond, Solvent, SolventModel, pairs_within, solvent
from pele_ocl.bench.systems import ball_of_atoms, load
from pele_ocl.cli import main
from pele_ocl.common.installation import shipped
from pele_ocl.jobs.texts import accuracy_lines
from pele_ocl.ladder import SOLVENT as VARIANTS
from pele_ocl.ladder import SolventLadder
from pele_ocl.opencl import Device, get_device
from pele_ocl.opencl.interface import MOMENTS
from pele_ocl.plan.tuning import Choice, trying
from pele_ocl.reference.solvent import RADIUS_FUNCTIONS
from pele_ocl.solvent import RadiusError, choose_variant
from pele_ocl.solvent.error import SAMPLE, RadiusCheck, SampledRadii, sample_of
from pele_ocl.solvent.layout import SolventLayout
from pele_ocl.solvent.sharing import shared_passes
from pele_ocl.solvent.tree_sums import TreeShape, TreeSums

HEXAPEPTIDE = shipped("data") / "structures" / "hexapeptide.pdb"
ACCURACIES = (1e-4, 1e-5, 1e-6)


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def line(n):
    return shaped(np.column_stack([2.0 * np.arange(n), np.zeros((n, 2))]))


def plane(edge):
    x, y = np.divmod(np.arange(edge**2), edge)
    return shaped(2.0 * np.column_stack([x, y, np.zeros(edge**2)]))


def clusters(n):
    """Two balls 10,000 A apart, and a stray atom farther out."""
    ball = ball_of_atoms(n).positions
    return shaped(np.concatenate([ball, ball[:, ::-1] + [1e4, 0, 0], [[0, -2e4, 0]]]), shake=0)


def shaped(positions, shake=0.3):
    n = len(positions)
    ball, rng = ball_of_atoms(n), np.random.default_rng(2)
    return replace(ball, positions=positions + rng.uniform(-shake, shake, (n, 3)))


SHAPES = {
    "src3": lambda: load_system("src3").atoms,
    "ball": lambda: ball_of_atoms(3000),
    "line": lambda: line(2000),
    "plane": lambda: plane(50),
    "clusters": lambda: clusters(1000),
}


def exact_radii(atoms, device, model=None):
    return Solvent(atoms, variant="tiled", precision="float64", device=device, model=model).evaluate().born_radii


def worst(values, expected):
    return np.abs(values / expected - 1).max()


@pytest.mark.parametrize("shape", SHAPES)
def test_every_atom_keeps_to_the_accuracy(device, shape):
    """Accuracy is kept in float64; in float32 the rounding of the sums adds to it."""
    atoms = SHAPES[shape]()
    exact = exact_radii(atoms, device)
    for accuracy in ACCURACIES:
        result = solvent(atoms, variant="tree", precision="float64", device=device, accuracy=accuracy)
        assert worst(result.born_radii, exact) <= accuracy
        assert result.error.largest <= accuracy
    single = solvent(atoms, variant="tree", precision="float32", device=device, accuracy=1e-6)
    assert worst(single.born_radii, exact) < 1e-5


def test_what_moments_leave_out_dies_as_the_ninth_power(device):
    """Eight atoms in a box act on eight points in all directions; a wrong fourth moment dies as the eighth."""
    rng = np.random.default_rng(3)
    box, points = rng.uniform(-2, 2, (8, 3)), 2 * (-1.0) ** np.indices((2, 2, 2)).reshape(3, -1).T
    ways = rng.normal(size=(60, 1, 3))
    ways /= np.linalg.norm(ways, axis=2, keepdims=True)
    scales = np.repeat([0.8, 1e-6], 8)  # points give nothing to each other
    atoms = replace(shaped(np.concatenate([box, points + np.array([60, 0, 0])]), shake=0), gb_scales=scales)
    with trying("solvent", Choice.of("tree", **asdict(SolventLayout(4, 2, 8, (1, 1), 16, blocks=True)))):
        tree = Solvent(atoms, variant="tree", precision="float64", device=device, accuracy=1e-4)
    exact = Solvent(atoms, variant="tiled", precision="float64", device=device)
    errors = []
    for distance in (60, 240):
        conformations = np.concatenate([np.tile(box, (60, 1, 1)), points + distance * ways], axis=1)
        found, expected = (plan.evaluate_batch(conformations).psi[:, 8:] for plan in (tree, exact))
        errors.append(np.sqrt(((found - expected) ** 2).mean()))
    assert errors[0] / errors[1] == pytest.approx(4.0**9, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["ruvab", "cct12", "ball"])
def test_every_atom_of_large_structures_keeps_to_the_accuracy(device, system):
    atoms = ball_of_atoms(100_000) if system == "ball" else load_system(system).atoms
    exact = exact_radii(atoms, device)
    for accuracy in ACCURACIES:
        plan = Solvent(atoms, variant="tree", precision="float64", device=device, accuracy=accuracy)
        assert worst(plan.evaluate().born_radii, exact) <= accuracy


def test_energy_with_radii_of_the_tree(device, precision):
    atoms = load_system("src3").atoms
    exact, tree = (solvent(atoms, variant=v, precision=precision, device=device) for v in ("tiled", "tree"))
    assert tree.total == pytest.approx(exact.total, rel=1e-6)
    assert tree.accuracy == 1e-5
    assert exact.accuracy is exact.error is None


def with_sulphur(atoms):
    """Make every third carbon a sulphur, which takes away from its box in GBn2."""
    elements = atoms.labels.elements.copy()
    elements[np.flatnonzero(elements == "C")[::3]] = "S"
    return replace(atoms, labels=replace(atoms.labels, elements=elements))


# Each on one device build; tests of all variants have the other precision.
MODELS = {
    "hct": ("float32", SolventModel(gb="hct")),
    "gbn2": ("float32", SolventModel(gb="gbn2")),
    "gbn within 20 A": ("float64", SolventModel(gb="gbn", born_cutoff=20.0)),
    "within 12 A": ("float64", SolventModel(born_cutoff=12.0)),
    "within 60 A": ("float64", SolventModel(born_cutoff=60.0)),
}


@pytest.mark.parametrize("case", MODELS.values(), ids=MODELS)
def test_models(device, case):
    """Necks and limits meet atoms one by one; radii below 0 (GBn2) lie in boxes like others."""
    precision, model = case
    atoms = with_mbondi3(load("src3" if model.gb == "obc2" else "ubiquitin"))
    if model.gb == "gbn2":
        atoms = with_sulphur(atoms)
    exact = exact_radii(atoms, device, model)
    result = solvent(atoms, variant="tree", precision=precision, device=device, model=model)
    assert worst(result.born_radii, exact) < 1e-5
    assert result.error.largest < 1e-5
    first = SampledRadii(atoms, 99, model, device).at(atoms.positions, np.arange(99))
    np.testing.assert_allclose(first, exact[:99], rtol=BORN_RADIUS["float64"])


GROUPS = SolventLayout(1, 1, 32, (32, 1), 16)
LAYOUTS = {
    "vectors": ("float64", SolventModel(), SolventLayout(4, 4, 32, (1, 1), 16, blocks=True, walks=1)),
    "groups": ("float64", SolventModel(), replace(GROUPS, walks=64)),
    "groups of three tiles, gbn2": (
        "float32",
        SolventModel(gb="gbn2", born_cutoff=25.0),
        replace(GROUPS, own=3, walks=2),
    ),
}


@pytest.mark.parametrize("case", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts(device, case, monkeypatch):
    """Layouts of GPUs run on CPUs, too; in one launch and in slabs, alone and in a batch, with equal bits."""
    monkeypatch.setattr("pele_ocl.opencl.queue.SLAB_SECONDS", 1e-7)
    monkeypatch.setattr("pele_ocl.opencl.queue.FIRST_SLAB_PAIRS", 1e5)
    precision, model, layout = case
    atoms = with_mbondi3(load("ubiquitin"))
    with trying("solvent", Choice.of("tree", **asdict(layout))):
        plan = Solvent(atoms, variant="tree", precision=precision, device=device, model=model)
    born, shares = plan.evaluate().born_radii, []
    assert worst(born, exact_radii(atoms, device, model)) < 1e-5
    np.testing.assert_array_equal(plan.evaluate(progress=shares.append).born_radii, born)
    assert len(shares) > 3
    turned = atoms.positions @ np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]]) + 70
    batch = plan.evaluate_batch(np.stack([turned, atoms.positions]))
    np.testing.assert_array_equal(batch.born_radii[1], born)
    assert worst(batch.born_radii[0], born) < 2e-5
    assert batch.error.n_atoms == batch[1].error.n_atoms == len(atoms)


def test_memory_is_linear():
    """Bytes an atom beyond what `tiled` takes, in float32 on a GPU."""
    for n in (30_000, 100_000, 1_000_000):
        layout, slots = SolventLayout.of("GPU", 1, n), n * 1.05
        boxes = slots / 4
        assert 4 * (layout.walks * slots + boxes * (8 + 4 * MOMENTS)) < 400 * n


@pytest.mark.parametrize(("n_slots", "walks", "trunks"), [(64, 1, 1), (4_000, 7, 4), (100_000, 1, 13), (10**8, 1, 48)])
def test_trunks_are_few_and_no_larger_than_they_must_be(n_slots, walks, trunks):
    tree = TreeSums(SimpleNamespace(n_slots=n_slots), SolventModel(), TreeShape(1, True, walks), 1e-5)
    assert tree.counts[-1] == trunks
    assert tree.n_parts == min(walks, trunks)


# The error that is measured


def test_the_sample_has_the_largest_radii(device):
    atoms = load_system("src3").atoms
    exact = exact_radii(atoms, device)
    sample = sample_of(exact)
    assert len(set(sample)) == SAMPLE
    assert set(np.argsort(exact)[-SAMPLE // 2 :]) <= set(sample)
    np.testing.assert_array_equal(sample_of(exact), sample)
    sampled = SampledRadii(atoms, SAMPLE, SolventModel(), device)
    for positions in (atoms.positions + 3, atoms.positions):  # where they were before leaves no trace
        radii = sampled.at(positions, sample)
    np.testing.assert_allclose(radii, exact[sample], rtol=1e-12)


@pytest.mark.parametrize("gb", ["obc1", "obc2", "hct"])
def test_sensitivities_are_slopes_of_the_radii(gb):
    """Half of the sample is of the atoms whose radii change most with their integrals, by finite differences."""
    model, rng = SolventModel(gb=gb), np.random.default_rng(3)
    atoms = replace(random_atoms(300), gb_radii=rng.uniform(1, 2, 300))
    spheres = model.spheres(atoms)
    integrals = rng.uniform(0.1, 0.9, 300) / spheres.rho if gb == "hct" else rng.uniform(0, 2.0, 300) / spheres.rho
    radius = RADIUS_FUNCTIONS[model.gb_model.function]
    born, more = (radius(spheres.rho * each, spheres, model) for each in (integrals, integrals + 1e-6))
    slopes = (more - born) / born / 1e-6
    found = RadiusCheck(atoms, model, get_device(None)).sensitivities(born)
    psi = integrals * spheres.rho
    polynomial = 1.0 if gb == "hct" else model.alpha - 2 * model.beta * psi + 3 * model.gamma * psi**2
    factor = 1.0 if gb == "hct" else polynomial * spheres.rho / spheres.radii
    np.testing.assert_allclose(found * factor, slopes, rtol=1e-3, atol=1e-8)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_error_is_not_understated_where_radii_are_as_large_as_they_can_be(device, precision):
    """In a dense ball most radii are at the upper bound of OBC, where they hardly change with an integral's error."""
    rng = np.random.default_rng(7)
    directions = rng.normal(size=(4000, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    positions = directions * 21.2 * rng.uniform(0, 1, (4000, 1)) ** (1 / 3)
    atoms = Atoms(positions=positions, charges=np.zeros(4000), gb_radii=np.full(4000, 1.5),
                  gb_scales=rng.uniform(0.1, 2.0, 4000))  # fmt: skip
    result = solvent(atoms, variant="tree", device=device, accuracy=1e-4, precision=precision)
    assert np.abs(result.born_radii / exact_radii(atoms, device) - 1).max() < 3 * result.error.largest


def test_the_error_is_that_of_the_sample(device):
    atoms = load_system("src3").atoms
    exact = exact_radii(atoms, device)
    result = solvent(atoms, variant="tree", device=device, accuracy=1e-4)
    apart = np.abs(result.born_radii / exact - 1)
    sample = sample_of(RadiusCheck(atoms, SolventModel(), get_device(device)).sensitivities(result.born_radii))
    assert result.error.largest == pytest.approx(apart[sample].max(), rel=1e-6)
    assert result.error.rms == pytest.approx(np.sqrt((apart[sample] ** 2).mean()), rel=1e-6)
    assert apart.max() < 3 * result.error.largest
    assert "512 of 4,427 atoms were compared" in result.error.about
    assert result.seconds["total"] > result.seconds["error"] > 0
    few = solvent(random_atoms(40), variant="tree", device=device).error
    assert few.about == "all atoms were compared"


def test_no_error_without_float64(device, monkeypatch):
    monkeypatch.setattr(Device, "has_float64", False)
    assert solvent(random_atoms(40), variant="tree", device=device).error is None


def test_a_batch_of_bad_conformations_has_no_error(device):
    atoms = random_atoms(40)
    bad = atoms.positions.copy()
    bad[1] = bad[0]
    plan = Solvent(atoms, variant="tree", device=device)
    assert plan.evaluate_batch(bad[None], errors="record").error is None
    assert plan.evaluate_batch(np.stack([bad, atoms.positions]), errors="record").error is not None


# Choice


def test_auto_takes_the_tree_for_large_molecules(device, monkeypatch):
    for kind in ("GPU", "CPU"):
        assert choose_variant(kind, 100_000, 1e-5) == "tree"
        assert choose_variant(kind, 100_000) == "tiled"
        assert choose_variant(kind, 10_000, 1e-4) == "tiled"
        assert choose_variant(kind, 40_000, 1e-6) == "tiled"
    monkeypatch.setattr("pele_ocl.solvent.variants.LEAST_FOR_TREE", {"CPU": 50, "GPU": 50})
    atoms = random_atoms(120)
    assert Solvent(atoms, device=device).variant == "tree"
    assert Solvent(atoms, device=device, precision="float64").variant != "tree"
    assert Solvent(atoms, device=device, precision="float64", accuracy=1e-5).variant == "tree"
    nonbond = Nonbond(atoms, pairs_within(atoms, 9.0), device=device)
    nonbond.evaluate()
    assert nonbond._solvent.variant != "tree"


@pytest.mark.parametrize("accuracy", [0, 1e-7, 1e-3, np.nan, "good"])
def test_accuracies_that_cannot_be_had(accuracy):
    with pytest.raises(InputError, match=r"expected a number from 1e-06 to 0\.0001"):
        solvent(random_atoms(9), accuracy=accuracy)


@pytest.mark.parametrize("variant", [name for name, of in VARIANTS.items() if not of.approximates])
def test_an_accuracy_is_refused_where_nothing_is_left_out(variant):
    sentence = f"the variant {variant} does not have an accuracy option; choose the variant tree or auto"
    with pytest.raises(InputError, match=sentence):
        SolventLadder(random_atoms(9), variant=variant, accuracy=1e-5)
    words = ("solvent", HEXAPEPTIDE, "--variant", variant, "--accuracy", 1e-5)
    assert sentence in run(*words, code=1).stderr


def test_a_lone_atom_and_its_sample(device):
    atoms = Atoms(positions=[[1e5, 0, -3]], charges=[2.0], gb_radii=[1.7], gb_scales=[0.8])
    assert solvent(atoms, variant="tree", device=device, precision="float64").error.largest < 1e-14


def test_the_command_says_what_was_measured(tmp_path):
    out = tmp_path / "radii.json"
    text = run("solvent", HEXAPEPTIDE, "--variant", "tree", "--accuracy", 1e-4, "-o", out).stdout
    assert "Born radii by tree to 1e-04; measured " in text
    assert "all atoms were compared" in text
    assert "more than requested" not in text
    written = json.loads(out.read_text())
    assert written["accuracy"] == 1e-4
    assert 0 < written["error_rms"] <= written["error_largest"] < 1e-4
    report = json.loads(run("solvent", HEXAPEPTIDE, "--variant", "tree", "--json").stdout)
    assert report["accuracy"] == 1e-5
    assert report["measured_error"]["n_sample"] == report["n_atoms"]
    assert "accuracy" not in json.loads(run("solvent", HEXAPEPTIDE, "--json").stdout)
    assert "a number from 1e-06" in run("solvent", HEXAPEPTIDE, "--accuracy", 1, code=1).stderr


def test_the_command_says_where_float32_misses_the_accuracy():
    """Two accuracies are asked for, one above the measured error and one below."""
    error = RadiusError(largest=3e-6, rms=1e-6, n_sample=1, n_atoms=2)
    for accuracy, is_missed in ((1e-5, False), (1e-6, True)):
        lines = accuracy_lines(SimpleNamespace(accuracy=accuracy, error=error), "tree")
        assert ("more than requested: `precision='float64'` has" in lines[1]) is is_missed


# Several devices


def test_several_devices_share_the_targets(device):
    """Here one twice, which shares as two do: the same bits, alone, in batches and with a surface."""
    atoms = with_mbondi3(load("ubiquitin"))
    both = np.stack([atoms.positions, atoms.positions + 0.1])
    shares = []
    for model in (SolventModel(), SolventModel(surface="lcpo")):
        one, two = (Solvent(atoms, variant="tree", device=each, model=model) for each in (device, [device, device]))
        alone, together = one.evaluate_batch(both), two.evaluate_batch(both, profile=True)
        np.testing.assert_array_equal(together.born_radii, alone.born_radii)
        np.testing.assert_array_equal(together.energies, alone.energies)
        np.testing.assert_array_equal(together.per_atom.columns()["gb_pair"], alone.per_atom.columns()["gb_pair"])
        assert together.device == f"{device} + {device}"
        assert together.seconds["kernel"] > 0
        np.testing.assert_array_equal(two.evaluate(progress=shares.append).psi, one.evaluate().psi)
    assert shares[-1] == 1
    assert shares == sorted(shares[: len(shares) // 2]) * 2
    with pytest.raises(InputError, match="cannot be repeated"):
        two.repeat(1)


def test_groups_of_several_devices(device):
    _, model, layout = LAYOUTS["groups of three tiles, gbn2"]
    atoms = with_mbondi3(load("ubiquitin"))
    with trying("solvent", Choice.of("tree", **asdict(layout))):
        radii = [solvent(atoms, variant="tree", device=d, model=model).born_radii for d in (device, [device] * 3)]
    np.testing.assert_array_equal(*radii)


def test_no_device_is_left_out_of_the_sharing(device):
    """Passes of a variant for one device, which share nothing, are refused in place of dropped."""
    tree, tiled = (
        Solvent(random_atoms(40), variant=name, device=device)._prepare(1).passes for name in ("tree", "tiled")
    )
    assert shared_passes([tiled]) is tiled
    with pytest.raises(InputError, match="cannot share a variant for a single device"):
        shared_passes([tree, tiled])


def test_devices_that_cannot_share(device, monkeypatch):
    atoms = random_atoms(40)
    assert Solvent(atoms, device=[device, device]).variant == "tree"
    with pytest.raises(InputError, match="the list of devices is empty"):
        Solvent(atoms, device=[])
    with pytest.raises(InputError, match="runs on one device"):
        Solvent(atoms, variant="tiled", device=[device, device])
    other = Device(device.index, device.handle)
    monkeypatch.setattr(Device, "kind", property(lambda self: "GPU" if self is other else "CPU"))
    with pytest.raises(InputError, match="must be of the same kind"):
        Solvent(atoms, device=[device, other])
