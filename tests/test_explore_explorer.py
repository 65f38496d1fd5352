"""Explorers: steps that depend on nothing but seed, number and state; Metropolis' rule, boxes, regions, failures."""

from __future__ import annotations

import pickle
from typing import ClassVar

import numpy as np
import pytest
from explore_helpers import small_complex

import pele_ocl
from pele_ocl import InputError, PositionalRestraint, list_devices
from pele_ocl.explore import Explorer, Minimization, Move, Perturbation, Region, Settings, Sphere
from pele_ocl.explore.walk import BOLTZMANN, is_accepted

ATOMS, LIGAND = small_complex()
RECEPTOR = np.setdiff1d(np.arange(len(ATOMS)), LIGAND)
QUICK = dict(tolerance=0.5, max_iterations=8, rounds=1)


def explorer(device, explorers=1, moves=None, settings=None, **options) -> Explorer:
    own = {"trials": 3, "steric_trials": 40, "translation_range": 0.6, "rotation_scaling": 0.05, "temperature": 2000.0}
    return Explorer(
        ATOMS, LIGAND, [Perturbation(), Minimization(**QUICK)] if moves is None else moves,
        explorers=explorers, seed=4, settings=Settings(**{**own, **(settings or {})}), device=device, **options,
    )  # fmt: skip


def steps_of(of: Explorer, steps: int) -> dict[tuple[int, int], tuple[bool, float]]:
    """Tell of each explorer and step if it was accepted, and where the energy is."""
    return {(step.explorer, step.step): (step.accepted, step.energy) for step in of.run(steps)}


def test_steps_are_the_same_in_any_company_and_order(device):
    together = steps_of(explorer(device, [5, 0, 3, 2]), 3)
    other_way = steps_of(explorer(device, [3, 5]), 3)
    alone = steps_of(explorer(device, [3]), 3)
    assert alone == {key: together[key] for key in alone}
    assert other_way == {key: together[key] for key in other_way}
    accepted = [step[0] for step in together.values()]
    assert any(accepted)
    assert not all(accepted)
    assert len({energy for _, energy in together.values()}) > 4


@pytest.mark.slow
def test_twenty_steps_are_the_same_on_all_runtimes():
    """In float64, on every device of the machine that has it."""
    devices = [of for of in list_devices() if of.kind != "simulator" and of.has_float64]
    if len(devices) < 2:
        pytest.skip("one runtime alone is installed")
    found = [steps_of(explorer(of, 2, precision="float64"), 20) for of in devices]
    for other in found[1:]:
        assert [step[0] for step in other.values()] == [step[0] for step in found[0].values()]


def test_a_pickle_goes_on_as_the_explorers_would(device):
    first = explorer(device, [1, 4])
    steps_of(first, 2)
    again = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(again.energies, first.energies)
    expected = steps_of(first, 2)
    assert steps_of(again, 2) == expected
    assert {step for _, step in expected} == {3, 4}


def test_the_rule_of_metropolis():
    rng = np.random.default_rng(0)
    for rise, temperature in ((0.5, 300.0), (2.0, 1000.0)):
        share = np.mean([is_accepted(rise, temperature, drawn) for drawn in rng.uniform(size=20_000)])
        assert share == pytest.approx(np.exp(-rise / (BOLTZMANN * temperature)), abs=0.012)
    assert is_accepted(-0.1, 0, 0.999)
    assert not is_accepted(0.1, 0, 0.001)
    assert not is_accepted(np.nan, 1000, 0.001)
    assert not is_accepted(1e9, 1000, 1e-9)


def test_differences_of_energies_are_those_of_float64(device):
    """A kcal/mol in some thousands: the energies of a protein of 1,231 atoms before and after a small move."""
    from pele_ocl.common.installation import shipped

    atoms = pele_ocl.read(shipped("data") / "structures" / "ubiquitin.pdb")
    ensemble = pele_ocl.Ensemble(atoms, 2, device=device)
    ensemble.positions[1] = atoms.positions + np.random.default_rng(0).normal(0, 0.002, atoms.positions.shape)
    rise = np.diff(ensemble.evaluate().energies)
    wide = pele_ocl.Energy(atoms, precision="float64", gradient=False, device=device)
    exact = wide.evaluate_batch(ensemble.positions[:]).total
    assert abs(exact[0]) > 2000
    assert rise == pytest.approx(np.diff(exact), abs=2e-3)


class Push(Move):
    """Push the ligand by so much along x; explorers with odd numbers meet a receptor atom."""

    name: ClassVar[str] = "push"
    needs_near: ClassVar[bool] = False

    def __init__(self, by: float, fails: tuple[int, ...] = (), meets: tuple[int, ...] = ()) -> None:
        self.by, self.fails, self.meets = by, fails, meets

    def apply(self, walk, rows):
        for row in rows:
            x = walk.ensemble.positions[row]
            if row in self.fails:
                walk.failures[row] = "it was meant to fail"
            if row in self.meets:
                x[LIGAND[0]] = x[RECEPTOR[0]]
            x[LIGAND, 0] += self.by if row not in self.meets else 0
            walk.ensemble.positions[row] = x


def test_failures_are_records_and_others_go_on(device):
    of = explorer(device, 4, [Push(0.01, fails=(1,), meets=(2,))])
    start = of.energies
    steps = of.step()
    assert [step.accepted for step in steps] == [True, False, False, True]
    assert steps[1].reason == "it was meant to fail"
    assert np.isnan(steps[1].proposed)
    assert "are at the same position" in steps[2].reason
    assert [step.energy for step in steps[1:3]] == start[1:3].tolist()
    np.testing.assert_array_equal(steps[1].positions, ATOMS.positions)
    assert [step.step for step in of.step()] == [2] * 4


class Lose(Move):
    """Put the first row nowhere."""

    name: ClassVar[str] = "lose"

    def apply(self, walk, rows):
        walk.ensemble.positions[rows[0]] = np.full(ATOMS.positions.shape, np.nan)


def test_a_row_that_is_lost_says_so_and_no_other(device):
    still = Minimization(Region(omit=np.ones(len(ATOMS), bool)), **QUICK)
    lost, frozen = explorer(device, 2, [Lose(), still], settings={"near_only": False}).step()
    assert "finite" in lost.reason
    assert frozen.reason.startswith("all atoms are frozen")
    np.testing.assert_array_equal(lost.positions, ATOMS.positions)


def test_nothing_leaves_the_box(device):
    x = ATOMS.positions[LIGAND]
    masses = ATOMS.masses[LIGAND]
    center = masses @ x / masses.sum()
    steps = explorer(device, 2, [Push(0.8)], box=Sphere(center, 0.5)).step()
    assert [step.reason for step in steps] == ["the ligand left the box"] * 2
    of = explorer(device, 2, [Perturbation()], box=Sphere(center, 0.5), temperature=1e6)
    accepted = [step for step in of.run(4) if step.accepted]
    assert accepted
    for step in accepted:
        assert np.linalg.norm(masses @ step.positions[LIGAND] / masses.sum() - center) <= 0.5


def test_rows_without_a_move_stay(device):
    of = explorer(device, 1, [Perturbation()], box=Sphere((900, 0, 0), 1))
    (step,) = of.step()
    assert (step.accepted, step.reason, step.made) == (False, "no move was performed", ())


def test_only_the_region_moves_and_restraints_hold(device):
    held = RECEPTOR[:5]
    of = explorer(
        device, 1, [Push(0.05), Minimization(Region(omit=LIGAND[:1]), **QUICK)],
        settings={"minimization_radius": 6.0, "temperature": 1e6}, removes_bulk=False,
        terms=[PositionalRestraint(1e4, atoms=held)],
    )  # fmt: skip
    (step,) = of.step()
    assert step.made == ("push", "minimization")
    index, x = ATOMS.labels.residue_index, ATOMS.positions
    pushed = x.copy()
    pushed[LIGAND, 0] += 0.05
    near = (np.linalg.norm(pushed[:, None] - pushed[None, LIGAND], axis=2) <= 6).any(axis=1)
    free = np.isin(index, index[near])
    free[LIGAND[0]] = False
    assert 0 < (~free[RECEPTOR]).sum() < len(RECEPTOR)
    shift = np.linalg.norm(step.positions - pushed, axis=1)
    assert shift[~free].max() < 1e-9
    assert (shift[free] > 1e-4).mean() > 0.9
    assert np.linalg.norm((step.positions - x)[held], axis=1).max() < 0.02


def test_the_centre_is_held_while_the_step_lasts_and_not_counted(device):
    energies = []
    for constant in (0.0, 500.0):
        of = explorer(device, 1, settings={"com_constant": constant, "temperature": 1e6})
        (step,) = of.step()
        whole = pele_ocl.Energy(ATOMS.moved(step.positions), device=device).evaluate().total
        assert step.energy == pytest.approx(whole, abs=1e-3)
        energies.append(step.energy)
        assert float(of.walk.ensemble.force_constants("ligand_center")[0][0]) == 0
    assert energies[0] != energies[1]


def test_frequencies_and_distance_decide_what_is_due(device):
    of = explorer(device, 2, settings={"minimization_frequency": 2})
    of.walk.settings[0].proximity_distance = 20.0
    of.walk.settings[1].proximity_distance = 0.1
    made = {(step.explorer, step.step): step.made for step in of.run(2)}
    assert made == {(0, 1): ("perturbation",), (1, 1): ("perturbation",), (1, 2): ("perturbation",),
                    (0, 2): ("perturbation", "minimization")}  # fmt: skip
    of.walk.settings[1].near_only = False
    of.walk.settings[0].minimization_frequency = 0
    assert [step.made for step in of.run(1)] == [("perturbation",)] * 2
    assert of.step()[1].made == ("perturbation", "minimization")


class Turn(Move):
    """Turn the whole complex about z."""

    name: ClassVar[str] = "turn"

    def apply(self, walk, rows):
        c, s = np.cos(0.1), np.sin(0.1)
        for row in rows:
            walk.ensemble.positions[row] = walk.ensemble.positions[row] @ [[c, s, 0], [-s, c, 0], [0, 0, 1]] + 0.3


class TurnLigand(Move):
    """Move the ligand away."""

    name: ClassVar[str] = "turn_ligand"

    def apply(self, walk, rows):
        for row in rows:
            x = walk.ensemble.positions[row]
            x[walk.ligand] += 0.5
            walk.ensemble.positions[row] = x


def test_complexes_are_moved_back(device):
    stays = explorer(device, 1, [Turn()], temperature=1e6)
    (step,) = stays.step()
    np.testing.assert_allclose(step.positions, ATOMS.positions, atol=1e-9)
    drifts = explorer(device, 1, [Turn()], temperature=1e6, removes_bulk=False)
    assert np.abs(drifts.step()[0].positions - ATOMS.positions).max() > 0.5


def test_complexes_are_moved_back_to_where_each_began(device):
    """A peptide that is the ligand has alpha carbons, too; they count for nothing."""
    positions = np.stack([ATOMS.positions, ATOMS.positions + 7.0])
    positions[1, LIGAND] += (4.0, 0.0, 0.0)
    of = explorer(device, 2, [Turn()], temperature=1e6, positions=positions)
    for step, start in zip(of.step(), positions, strict=True):
        np.testing.assert_allclose(step.positions, start, atol=1e-9)
    ligand = explorer(device, 1, [TurnLigand()], temperature=1e6, settings={"com_constant": 0.0})
    np.testing.assert_allclose(ligand.step()[0].positions[RECEPTOR], ATOMS.positions[RECEPTOR], atol=1e-9)


def test_stages_and_watchers(device):
    seen = []
    of = explorer(device, 1, stage_energies=True, watch=lambda walk, name, rows: seen.append((name, list(rows))))
    (step,) = of.step()
    assert list(step.stages) == ["perturbation", "minimization"]
    assert step.stages["minimization"] == pytest.approx(step.proposed, abs=1e-3)
    assert step.stages["perturbation"] != step.stages["minimization"]
    assert seen == [("perturbation", [0]), ("minimization", [0])]


def test_explorers_begin_where_they_are_told(device):
    positions = np.stack([ATOMS.positions, ATOMS.positions])
    positions[1, LIGAND, 0] += 1
    of = explorer(device, 2, positions=positions)
    expected = pele_ocl.Ensemble(ATOMS, 2, device=device)
    expected.positions[:] = positions
    assert of.energies == pytest.approx(expected.evaluate().energies, abs=1e-6)
    positions[1, LIGAND[0]] = positions[1, RECEPTOR[0]]
    with pytest.raises(InputError, match="explorer 1 cannot start"):
        explorer(device, 2, positions=positions)


def test_a_step_that_is_interrupted_is_undone(device, monkeypatch):
    """Explorers are where they were accepted last, and their steps to come are those of explorers never stopped."""
    stopped, unbroken = (explorer(device, 2, settings={"steering_update_frequency": 2}) for _ in range(2))
    ensemble = stopped.walk.ensemble
    steps_of(stopped, 1)
    before, energies = ensemble.positions[[0, 1]], stopped.energies

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(ensemble), "minimize", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stopped.step()
    np.testing.assert_array_equal(ensemble.positions[[0, 1]], before)
    np.testing.assert_array_equal(ensemble.positions[[0, 1]], ensemble.positions[stopped.walk.kept([0, 1])])
    np.testing.assert_array_equal(stopped.energies, energies)
    steps_of(unbroken, 1)
    assert steps_of(stopped, 2) == steps_of(unbroken, 2)
