"""Energies with Born radii over a tree of boxes: against all pairs, in every variant, with frozen atoms, by command."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import load_system, random_atoms
from test_reference_nonbond import relative
from tolerance import GRADIENT

from pele_ocl import Binding, Energy, InputError, SolventModel
from pele_ocl.cli import main
from pele_ocl.common.installation import shipped
from pele_ocl.common.variant import Machine
from pele_ocl.energy.variants import Born, check_born, chosen_born
from pele_ocl.minimize import Minimizer

HEXAPEPTIDE = shipped("data") / "structures" / "hexapeptide.pdb"
MACHINE = Machine("CPU", "", 2, 8, "float32")


@pytest.fixture(scope="module")
def ubiquitin():
    return load_system("ubiquitin").atoms


def run(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def assert_close(tree, exact):
    """Compare the energy to 1e-6, and the gradient as float32 has it from all pairs."""
    assert tree.total == pytest.approx(exact.total, rel=1e-6)
    assert relative(tree.gradient, exact.gradient) < GRADIENT["float32"]
    assert 1e-9 < np.abs(tree.born_radii / exact.born_radii - 1).max() < 1e-5


@pytest.mark.parametrize("variant", ["blocks", "squares", "rows"])
def test_every_variant_takes_radii_of_the_tree(device, variant, ubiquitin):
    """Squares and rows as GPUs have them run on CPUs, too; a batch has the bits of its members."""
    options = dict(variant=variant, device=device, precision="float32")
    exact = Energy(ubiquitin, born="pairs", **options).evaluate()
    plan = Energy(ubiquitin, born="tree", **options)
    tree = plan.evaluate()
    assert_close(tree, exact)
    assert (tree.born, tree.accuracy) == ("tree", 1e-5)
    assert (exact.born, exact.accuracy, exact.error) == ("pairs", None, None)
    assert tree.error.largest < 1e-5
    assert tree.seconds["total"] > tree.seconds["error"] > 0
    batch = plan.evaluate_batch(np.stack([ubiquitin.positions + 0.1, ubiquitin.positions]))
    np.testing.assert_array_equal(batch[1].gradient, tree.gradient)
    np.testing.assert_array_equal(batch[1].born_radii, tree.born_radii)
    assert batch[1].born == "tree"
    assert batch[0].error == batch.error


def test_the_accuracy_decides(device, ubiquitin):
    errors = [
        Energy(ubiquitin, born="tree", accuracy=a, variant="blocks", device=device, precision="float32")
        .evaluate()
        .error
        for a in (1e-4, 1e-5)
    ]
    assert errors[0].largest > 1.5 * errors[1].largest


@pytest.mark.parametrize("variant", ["blocks", "squares"])
def test_frozen_atoms(device, variant, ubiquitin):
    frozen = np.linalg.norm(ubiquitin.positions - ubiquitin.positions[0], axis=1) > 12
    options = dict(variant=variant, device=device, precision="float32", frozen=frozen)
    exact, tree = (Energy(ubiquitin, born=born, **options).evaluate() for born in ("pairs", "tree"))
    assert_close(tree, exact)
    assert not tree.gradient[frozen].any()


@pytest.mark.slow
@pytest.mark.parametrize("system", ["src3", "ruvab", "cct12"])
def test_large_structures(device, system):
    """Against all pairs in float64: what float32 alone may do to a gradient is not exceeded."""
    atoms = load_system(system).atoms
    exact = Energy(atoms, born="pairs", precision="float64", device=device).evaluate()
    assert_close(Energy(atoms, born="tree", precision="float32", device=device).evaluate(), exact)


# Choice


def test_auto_takes_the_tree_where_it_is_faster():
    assert chosen_born("auto", None, MACHINE, 80_000, 32, suits=True) == Born("tree", 1e-5)
    assert chosen_born("auto", None, MACHINE, 40_000, 32, suits=True) == Born("pairs")
    assert chosen_born("auto", None, MACHINE, 80_000, 32, suits=False) == Born("pairs")
    assert chosen_born("auto", None, MACHINE, 80_000, 4, suits=True) == Born("pairs")
    assert chosen_born("auto", 1e-6, MACHINE, 80_000, 32, suits=True) == Born("pairs")
    assert chosen_born("auto", 1e-6, MACHINE, 140_000, 32, suits=True) == Born("tree", 1e-6)
    double = Machine("GPU", "", 100, 1, "float64")
    assert chosen_born("auto", None, double, 600_000, 32, suits=True) == Born("pairs")
    assert chosen_born("auto", 1e-5, double, 600_000, 32, suits=True) == Born("tree", 1e-5)


def test_what_compares_energies_keeps_all_pairs(device, monkeypatch):
    """A tree's radii have steps, and a difference of energies loses digits."""
    monkeypatch.setattr("pele_ocl.energy.variants.LEAST_FOR_TREE", {"CPU": 50, "GPU": 50})
    atoms = random_atoms(120)
    assert Energy(atoms, device=device).born == "tree"
    assert Energy(atoms, device=device, frozen=[3]).born == "pairs"
    assert Energy(atoms, device=device, model=SolventModel(gb="none")).born == "pairs"
    assert Minimizer(atoms, device=device).energy.born == "pairs"
    binding = Binding(atoms, np.arange(120) < 20, np.arange(120) >= 20, device=device)
    assert {plan.born for plan in binding.plans.values()} == {"pairs"}


def test_ways_that_there_are_not(device):
    atoms = random_atoms(20)
    with pytest.raises(InputError, match="Born radii cannot be computed by 'list'; choose auto, pairs, tree"):
        Energy(atoms, born="list", device=device)
    with pytest.raises(InputError, match="radii from pairs do not have an accuracy option"):
        check_born("pairs", 1e-5)
    with pytest.raises(InputError, match=r"expected a number from 1e-06 to 0\.0001"):
        check_born("auto", 1.0)
    with pytest.raises(InputError, match="needs tiles of 8 atoms or more, not 4"):
        chosen_born("tree", None, MACHINE, 20, 4, suits=True)
    for options in ({"born": "tree"}, {"accuracy": 1e-5}):
        with pytest.raises(InputError, match="no term depends on Born radii"):
            Energy(atoms, **options, model=SolventModel(gb="none"), device=device)


def test_the_command_says_what_was_measured(tmp_path):
    out = tmp_path / "energies.json"
    text = run("energy", HEXAPEPTIDE, "--born", "tree", "--accuracy", 1e-4, "-o", out)
    assert "Born radii by tree to 1e-04; measured " in text
    assert "all atoms were compared" in text
    written = json.loads(out.read_text())
    assert (written["born"], written["accuracy"]) == ("tree", 1e-4)
    assert 0 < written["error_largest"] < 1e-4
    report = json.loads(run("energy", HEXAPEPTIDE, "--born", "tree", "--json"))
    assert report["accuracy"] == 1e-5
    assert report["measured_error"]["n_sample"] == report["n_atoms"]
    plain = json.loads(run("energy", HEXAPEPTIDE, "--json"))
    assert plain["born"] == "pairs"
    assert "accuracy" not in plain
