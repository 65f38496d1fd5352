"""Metrics of explorers against NumPy, by formulas of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from explore_run_helpers import settings, write_complex, write_run
from test_cli import on_the_chosen_device

import pele_ocl
from pele_ocl import Binding, Energy, SolventModel, write_conformations
from pele_ocl.common.errors import FormatError, InputError
from pele_ocl.explore.control import read_simulation
from pele_ocl.explore.control.building import MetricMaker
from pele_ocl.explore.control.simulation import MetricBlock
from pele_ocl.explore.metrics import PROBE, BindingEnergy, Rmsd, Sasa, States, sasa_radii
from pele_ocl.explore.sensors import Sensor, Sensors

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

MODEL = SolventModel.like("pele", gb="obc2", ionic_strength=0.25)


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return write_complex(tmp_path_factory.mktemp("complex") / "complex.pdb")


@pytest.fixture(scope="module")
def molecule(file):
    return pele_ocl.read(file)


@pytest.fixture(scope="module")
def states(molecule) -> States:
    """Three states: the complex, one with its ligand away, and one that is shaken."""
    positions = np.stack([molecule.positions] * 3)
    positions[1, molecule.labels.chains == "L"] += [3.0, 0.5, 0.0]
    positions[2] += np.random.default_rng(1).normal(scale=0.05, size=molecule.positions.shape)
    return States(positions, np.array([1, 2, 3]), np.array([1, 1, 1]), seed=7)


@pytest.fixture
def make(file, molecule):
    """Make a metric of a type with settings."""

    def made(kind, **given):
        maker = MetricMaker(file.with_name("pele.conf"), molecule, MODEL, "float64")
        return maker.make(MetricBlock(kind, "", True, "metrics[0]", given))

    return made


LIGAND = {"chains": {"names": ["L"]}}


def test_binding_energy(make, molecule, states):
    chosen = molecule.labels.chains == "L"
    plan = Binding(molecule, chosen, ~chosen, model=MODEL, precision="float64")
    without = BindingEnergy(molecule, chosen, MODEL, "float64", has_cutoffs=False).evaluate(states)
    assert without == pytest.approx(plan.evaluate_batch(states.positions).total, abs=1e-6)
    found = make("bindingEnergy", boundPartSelection=LIGAND).evaluate(states)
    assert found == pytest.approx(without, abs=1.0)
    assert (np.abs(found - without) > 1e-4).any()  # groups beyond 15 A


def test_internal_energy(make, molecule, states):
    chosen = molecule.labels.chains == "L"
    part = Energy(molecule[chosen], gradient=False, model=MODEL, precision="float64")
    expected = [float(part.evaluate(positions[chosen]).terms.total) for positions in states.positions]
    assert make("internalEnergy", atomSetSelection=LIGAND).evaluate(states) == pytest.approx(expected, abs=1e-6)


def test_rmsd_of_the_ligand(make, file, molecule, states):
    metric = make("rmsd", Native={"path": "complex.pdb"}, selection=LIGAND, doSuperposition=False)
    heavy = (molecule.labels.chains == "L") & (molecule.labels.elements != "H")
    away = states.positions[:, heavy] - molecule.positions[heavy]
    found = metric.evaluate(states)
    assert found == pytest.approx(np.sqrt((away**2).sum(axis=2).mean(axis=1)), abs=1e-9)
    assert found[:2] == pytest.approx([0, np.sqrt(9.25)], abs=1e-3)
    light = make("rmsd", Native={"path": "complex.pdb"}, selection=LIGAND, doSuperposition=False, includeHydrogens=True)
    assert light.evaluate(states)[2] != found[2]


def test_rmsd_after_superposition(make, molecule, states):
    """A turned and moved copy is 0 A away; with atoms of the protein superposed, the ligand keeps its distance."""
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    moved = States(states.positions @ turn + [5.0, -3.0, 1.0], states.explorers, states.steps, 7)
    native = {"path": "complex.pdb"}
    assert make("rmsd", Native=native).evaluate(moved)[0] == pytest.approx(0, abs=1e-3)
    by_protein = {"chains": {"names": ["A"]}}
    found = make("rmsd", Native=native, selection=LIGAND, superpositionSelection=by_protein).evaluate(moved)
    assert found[:2] == pytest.approx([0, np.sqrt(9.25)], abs=2e-3)


def test_rmsd_needs_atoms_that_both_have(file, molecule, tmp_path):
    none, all_ = np.zeros(len(molecule), bool), np.ones(len(molecule), bool)
    with pytest.raises(InputError, match="has none of the atoms to compare"):
        Rmsd(molecule, file, none)
    with pytest.raises(InputError, match="has 0 of the atoms that are superposed"):
        Rmsd(molecule, file, all_, none)


def test_rmsd_needs_atoms_of_one_name(file, molecule, tmp_path):
    """A second copy of the ligand with the same chain and number would be taken in its place."""
    ligand = molecule.labels.chains == "L"
    lines = file.read_text().splitlines()
    copy = [f"{line[:30]}{float(line[30:38]) + 30:8.3f}{line[38:]}" for line in lines if line[21:22] == "L"]
    native = tmp_path / "native.pdb"
    native.write_text("\n".join([*[line for line in lines if line != "END"], "TER", *copy, "END", ""]))
    with pytest.raises(InputError, match=r"native.pdb has 2 atoms called L:\w+:\w+, so it is ambiguous"):
        Rmsd(molecule, native, ligand)
    Rmsd(molecule, native, ~ligand)
    labels = replace(molecule.labels, chains=np.full(len(molecule), "A"))
    numbers = np.where(ligand, molecule.labels.residue_numbers[0], labels.residue_numbers)
    twice = replace(molecule, labels=replace(labels, residue_numbers=numbers, residue_names=np.full(len(labels), "X")))
    with pytest.raises(InputError, match=r"the complex has \d+ atoms called"):
        Rmsd(twice, file, np.ones(len(molecule), bool))


def test_sasa_is_a_share(make, molecule, states):
    """Against points of another set, by all pairs."""
    found = make("sasa", selection=LIGAND).evaluate(states)
    chosen = np.flatnonzero(molecule.labels.chains == "L")
    radii = sasa_radii(molecule) + PROBE
    points = np.random.default_rng(3).normal(size=(1500, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)

    def area(positions, among):
        total = 0.0
        for i in chosen:
            others = among[among != i]
            squares = ((positions[i] + radii[i] * points)[:, None] - positions[others]) ** 2
            total += radii[i] ** 2 * (squares.sum(axis=2) > radii[others] ** 2).all(axis=1).mean()
        return total

    every = np.arange(len(molecule))
    expected = [area(positions, every) / area(positions, chosen) for positions in states.positions[:2]]
    assert found[:2] == pytest.approx(expected, abs=0.02)
    assert 0 < found[0] < found[1] <= 1
    alone = States(
        np.where(molecule.labels.chains[:, None] == "L", states.positions + 50, states.positions), *vars_of(states)
    )
    assert Sasa(molecule, molecule.labels.chains == "L").evaluate(alone).tolist() == [1, 1, 1]


def vars_of(states: States) -> tuple:
    return states.explorers, states.steps, states.seed


def test_radii_of_sasa(molecule):
    """PELE's column 6 where atoms have it; else half the distance of the Lennard-Jones minimum."""
    from dataclasses import replace

    figures = np.full((len(molecule), 4), np.nan)
    figures[0] = [1.92, 1.7, 0.1, -5.0]
    radii = sasa_radii(replace(molecule, sgb=figures))
    assert radii[0] == 1.7
    assert radii[1:] == pytest.approx(2 ** (1 / 6) * molecule.lj_sigma[1:] / 2)


def test_distances(make, molecule, states):
    first, second = molecule.labels.chains == "L", molecule.labels.names == "CA"
    centers = [np.average(states.positions[:, mask], axis=1, weights=molecule.masses[mask]) for mask in (first, second)]
    groups = {"selection_group_1": LIGAND, "selection_group_2": {"atoms": {"names": ["_CA_"]}}}
    assert make("com_distance", **groups).evaluate(states) == pytest.approx(
        np.linalg.norm(centers[0] - centers[1], axis=1)
    )
    to_point = make("distanceToPoint", point=[1, 2, 3], atoms=LIGAND)
    assert to_point.evaluate(states) == pytest.approx(np.linalg.norm(centers[0] - [1, 2, 3], axis=1))
    with pytest.raises(FormatError, match="not a list of three numbers"):
        make("distanceToPoint", point=[1, 2], atoms=LIGAND)


def test_angles(make, molecule, states):
    ids = ["A:1:_N__", "A:1:_CA_", "A:1:_C__", "A:2:_N__"]
    groups = {f"selection_group_{k}": {"atoms": {"ids": [name]}} for k, name in enumerate(ids[:3], 1)}
    places = [int(np.flatnonzero((molecule.labels.names == n) & (molecule.labels.residue_numbers == r))[0])
              for n, r in (("N", 1), ("CA", 1), ("C", 1), ("N", 2))]  # fmt: skip
    a, b, c, d = states.positions[:, places].transpose(1, 0, 2)
    cosine = ((a - b) * (c - b)).sum(1) / np.linalg.norm(a - b, axis=1) / np.linalg.norm(c - b, axis=1)
    assert make("atomsAngle", **groups).evaluate(states) == pytest.approx(np.degrees(np.arccos(cosine)))
    m, n = np.cross(b - a, c - b), np.cross(c - b, d - c)
    size = np.degrees(np.arccos((m * n).sum(1) / np.linalg.norm(m, axis=1) / np.linalg.norm(n, axis=1)))
    sign = np.sign(((d - c) * m).sum(1))
    found = make("atomsDihedral", selection_group_1={"atoms": {"ids": ids}}).evaluate(states)
    assert found == pytest.approx(sign * size)
    with pytest.raises(InputError, match="selects 9 atoms; expected one"):
        make("atomsAngle", **{**groups, "selection_group_2": {"atoms": {"names": ["_CA_"]}}}).evaluate(states)


def test_random_numbers_are_the_explorer_s(make, file, molecule, states):
    maker = MetricMaker(file, molecule, MODEL)
    first, second = (maker.make(MetricBlock("random", "r", True, "metrics[0]")) for _ in range(2))
    drawn = first.evaluate(states)
    assert ((drawn > 0) & (drawn < 1)).all()
    assert len({*drawn, *second.evaluate(states)}) == 6
    alone = States(states.positions[1:2], states.explorers[1:2], states.steps[1:2], 7)
    assert first.evaluate(alone).tolist() == [drawn[1]]
    many = States(np.zeros((4000, 1, 3)), np.arange(4000), np.full(4000, 3), 1)
    assert abs(first.evaluate(many).mean() - 0.5) < 0.02


def test_trackers_and_columns(tmp_path, molecule, states):
    metrics = [
        {"variable": "currentStep"},
        {"variable": "currentEnergy"},
        {
            "type": "com_distance",
            "tag": "hidden",
            "logIt": False,
            "selection_group_1": LIGAND,
            "selection_group_2": LIGAND,
        },
        {"type": "random", "tag": "rand"},
        {"variable": "stepsSinceLastAccepted"},
    ]
    control = write_run(tmp_path, settings(task_metrics=metrics, task_parametersChanges=None))
    maker = MetricMaker(control, molecule, MODEL)
    blocks = read_simulation(control).tasks[0].metrics
    sensors = Sensors([Sensor(block, maker.make(block)) for block in blocks], np.array([-1.0, -2.0, -3.0]))
    sensors.measure([0, 1, 2], states)
    sensors.draw(states)
    assert sensors.columns == ["currentStep", "stepsSinceLastAccepted"]
    sensors.count([0, 1], np.array([True, False, False]), np.array([-5.0, -2.0, -3.0]))
    assert [sensors.row(k, 1) for k in range(3)] == [[2.0, 0.0], [2.0, 1.0], [2.0, 0.0]]
    values = sensors.of(0, 2)
    assert (values["hidden"], values["currentEnergy"], values["numberOfAcceptedPeleSteps"]) == (0.0, -5.0, 1.0)
    assert 0 < values["rand"] < 1


@pytest.mark.parametrize("kind", ["order", "spelling", "chains", "numbers", "fewer", "alone"])
def test_native_structures_of_other_programs(kind, file, molecule, states, tmp_path):
    """Atoms are the same by correspondence: in any order and spelling, and where either side has more."""
    labels, order = molecule.labels, np.arange(len(molecule))
    ligand = labels.chains == "L"
    native = molecule
    if kind == "order":
        native = molecule[order[::-1]]
    elif kind == "spelling":  # of PDB version 2, with hydrogens whose number comes first
        names = [f"{name[-1]}{name[:-1]}" if name[0] == "H" and name[-1].isdigit() else name for name in labels.names]
        native = replace(molecule, labels=replace(labels, names=np.array(names)))
    elif kind == "chains":
        chains = np.where(ligand, "X", np.where(labels.chains == "A", "R", labels.chains))
        native = replace(molecule, labels=replace(labels, chains=chains))
    elif kind == "numbers":
        native = replace(molecule, labels=replace(labels, residue_numbers=labels.residue_numbers + 100))
    elif kind == "fewer":  # a crystal's, with the ligand in another chain
        chains = np.where(ligand, "X", labels.chains)
        native = replace(molecule, labels=replace(labels, chains=chains))[labels.elements != "H"]
    elif kind == "alone":
        native = molecule[ligand]
    path = tmp_path / "native.pdb"
    write_conformations(path, native)
    found, expected = (Rmsd(molecule, where, ligand) for where in (path, file))
    assert found.n_compared == expected.n_compared == found.n_chosen
    assert found.evaluate(states) == pytest.approx(expected.evaluate(states), abs=2e-3)
