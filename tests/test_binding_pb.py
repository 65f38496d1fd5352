"""MM/PBSA: against single Poisson-Boltzmann runs, in Python, on the command line and by an mmpbsa.in."""

from __future__ import annotations

import json
import pickle
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from binding_helpers import LIGAND, N, complex_atoms, frames, write_complex
from click.testing import CliRunner
from mmpbsa_helpers import call, parts, rows_of, write_files

import pele_ocl
from pele_ocl import Binding, Energy, Grid, InputError, PBSolvent, PeleError, PoissonBoltzmann, SolventModel
from pele_ocl.binding.naming import amber_terms
from pele_ocl.binding.plan import grid_errors
from pele_ocl.binding.poisson_boltzmann import PBEnergy, default_model
from pele_ocl.binding.separate import separate_energies
from pele_ocl.cli import main
from pele_ocl.opencl import get_device
from pele_ocl.pb import PBIon, PBMaps, PBModel
from pele_ocl.pb.levels import Batch
from pele_ocl.pb.reaction import require_room
from pele_ocl.pb_model import PBProblem, PBSolute, grid_around, grid_within
from pele_ocl.trajectories import Trajectory

COARSE = PBSolvent(spacing=2.0)
SALTY = SolventModel(surface="lcpo", ionic_strength=0.1, solute_dielectric=2.0, solvent_dielectric=80.0)
PB = "a run\n&general\n  startframe=1, endframe=2,\n/\n&pb\n  istrng=0.1, indi=2, inp=1, radiopt=0, scale=0.5,\n/\n"


@pytest.fixture(scope="module")
def plan() -> Binding:
    return Binding(complex_atoms(), LIGAND, model=SALTY, pb=COARSE, idecomp=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("mmpbsa"))


def test_three_single_runs_on_the_grid_of_the_complex(plan: Binding) -> None:
    atoms, x = complex_atoms(), frames(2)
    found = plan.evaluate_batch(x)
    model = PBModel(2.0, 80.0, [PBIon(1, 0.1), PBIon(-1, 0.1)])
    grid = PoissonBoltzmann(atoms.moved(x[1]), model, spacing=2.0).grids[0]
    energies = {}
    for part, chosen in {"complex": slice(None), "receptor": slice(N), "ligand": slice(N, None)}.items():
        run = PoissonBoltzmann(atoms[chosen].moved(x[1][chosen]), model, grids=grid)
        energies[part] = run.solve(grid_error=False).energy
        assert getattr(found, part).pb[1] == energies[part]
        gas = Energy(atoms[chosen], model=replace(SALTY, gb="none", surface="none"), gradient=False)
        alone = gas.evaluate(x[1][chosen]).terms
        for term in alone.names:
            assert getattr(getattr(found, part), term)[1] == pytest.approx(getattr(alone, term), rel=1e-6, abs=1e-4)
    delta = energies["complex"] - energies["receptor"] - energies["ligand"]
    assert found.delta.pb[1] == pytest.approx(delta, abs=1e-9)
    assert found.delta.nonpolar[1] < 0
    assert "gb_pair" not in found.names


def test_radii_of_pdb2pqr_are_those_of_the_equation_alone() -> None:
    """GB has no scales for them, and no other term depends on radii."""
    atoms = complex_atoms()
    named = replace(
        atoms, gb_radii=np.where(atoms.gb_radii > 1.5, 2.0, 1.2), gb_scales=None, gb_radii_set="pdb2pqr-parse"
    )
    with pytest.raises(InputError, match="the radii pdb2pqr-parse are for Poisson-Boltzmann"):
        Binding(named, LIGAND)
    own, other = (Binding(of, LIGAND, model=SALTY, pb=COARSE).evaluate().complex for of in (atoms, named))
    for name in other.names:
        assert (getattr(own, name) == getattr(other, name)) == (name not in ("pb", "total")), name
    alone = PBEnergy(replace(atoms, gb_radii=named.gb_radii), COARSE, model=SALTY)
    assert alone.evaluate_batch(atoms.positions[None]).terms.pb[0] == other.pb


@pytest.mark.skipif(not get_device().has_float64, reason="rows are solved at once on devices with float64")
def test_three_systems_of_two_frames_in_one_set_of_launches(plan: Binding, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, counts, own = plan.evaluate_batch(frames(2)), list[int](), Batch
    monkeypatch.setattr("pele_ocl.pb.plan.rows_at_once", lambda device, n_nodes: 4)
    monkeypatch.setattr("pele_ocl.pb.plan.Batch", lambda rows, *others: counts.append(len(rows)) or own(rows, *others))
    together = plan.evaluate_batch(frames(2))
    assert counts == [3, 3]
    for name, terms in alone.systems().items():
        assert np.array_equal(terms.pb, together.systems()[name].pb)


def test_a_small_part_has_its_own_part_of_the_grid() -> None:
    rng, padding = np.random.default_rng(3), 5.0
    whole = PBSolute(rng.uniform(-14, 16, (60, 3)), np.zeros(60), rng.uniform(1, 2, 60))
    grid = grid_around(whole, 0.5, padding)
    few = np.argsort(whole.positions[:, 0])[:4]
    part = PBSolute(whole.positions[few] * [1, 0.2, 0.2], np.zeros(4), whole.radii[few])
    own = grid_within(grid, part, padding, 1.4)
    first = (own.origin - grid.origin) / grid.spacing
    assert len(own) < 0.75 * len(grid)
    assert np.array_equal(own.spacing, grid.spacing)
    assert np.allclose(first, 2 * np.round(first / 2), atol=1e-9)  # a node of the grid with twice the spacing
    assert all((n - 1) % 8 == 0 for n in own.shape)
    reach = part.radii[:, None] + padding
    assert (own.origin <= part.positions - reach + 1e-9).all()
    assert (own.last >= part.positions + reach - 1e-9).all()
    assert (own.origin >= grid.origin - 1e-9).all()
    assert (own.last <= grid.last + 1e-9).all()
    assert grid_within(grid, whole, padding, 1.4) is grid


def test_a_part_of_a_grid_has_room_for_a_probe_whatever_the_padding() -> None:
    """A padding of 1.5 A is less than a probe and a step."""
    ligand, radii = np.random.default_rng(0).uniform(-3, 3, (12, 3)), np.full(12, 1.6)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = np.vstack([ligand + rng.uniform(-8, 8, 3), rng.uniform(-12, 12, (40, 3))])
        whole, part = PBSolute(x, np.zeros(52), np.full(52, 1.6)), PBSolute(x[:12], np.ones(12), radii)
        grid = grid_around(whole, 0.5, 1.5)
        own = grid_within(grid, part, 1.5, 1.4)
        assert len(own) < 0.75 * len(grid)
        for solute, of in ((whole, grid), (part, own)):
            require_room(PBProblem(solute, PBModel(), (of,), PBMaps()))


@pytest.mark.parametrize("rows", [1, 4])
def test_a_frame_without_a_solution_is_named_or_recorded(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second complex has a potential of 4.52 kT/e where ions can be, the others have 4.22 and their parts less."""
    x = np.array([complex_atoms().positions] * 3)
    x[1, :, 0] *= 0.5
    plan = Binding(complex_atoms(), LIGAND, model=SALTY, pb=replace(COARSE, equation="nonlinear"))
    expected = plan.evaluate_batch(x[:1])
    monkeypatch.setattr("pele_ocl.pb.energies.LARGEST_EXPONENT", 4.37)
    monkeypatch.setattr("pele_ocl.pb.plan.rows_at_once", lambda device, n_nodes: rows)
    found = plan.evaluate_batch(x, errors="record")
    assert found.errors == {1: found.errors[1]}
    assert "complex: the potential is 5 kT/e where ions of charge 1 are allowed" in found.errors[1]
    assert np.array_equal(found.delta.pb, [expected.delta.pb[0], np.nan, expected.delta.pb[0]], equal_nan=True)
    if rows == 1:
        with pytest.raises(PeleError, match=r"^conformation 2 of 3, complex: the potential is 5 kT/e"):
            plan.evaluate_batch(x)


def test_the_grid_of_a_part_hardly_counts() -> None:
    """A ligand far from the receptor's other end, on the complex's grid and on its own part of it."""
    x = complex_atoms().positions.copy()
    x[N:, 0] += 20
    atoms = complex_atoms().moved(x)
    plan = Binding(atoms, LIGAND, model=SALTY, pb=PBSolvent(spacing=1.0, padding=8))
    grids = plan.systems.grids(plan.systems.positions(atoms.positions[None]))
    assert len(grids["ligand"][0]) < len(grids["complex"][0])
    on_own = plan.evaluate().ligand.pb
    on_whole = plan.plans["ligand"].evaluate_batch(atoms.positions[None, N:], grids=grids["complex"]).terms.pb[0]
    assert on_own != on_whole
    assert on_own == pytest.approx(on_whole, abs=0.02)


def test_shares_of_residues_add_up(plan: Binding) -> None:
    found = plan.evaluate_batch(frames(2))
    shares = found.decomposition.per_residue["delta"]
    assert shares.total.sum() == pytest.approx(found.total.mean(), abs=1e-2)
    polar = shares.mean[:, 3].sum()
    assert polar == pytest.approx(found.delta.pb.mean(), rel=1e-9)


def test_what_twice_the_spacing_changes(plan: Binding) -> None:
    x = complex_atoms()
    grid = PoissonBoltzmann(x, COARSE.with_constants(SALTY), spacing=2.0).grids[0]
    energies = []
    for spacing, points in ((2.0, grid.shape), (4.0, [(n - 1) // 2 + 1 for n in grid.shape])):
        run = PoissonBoltzmann(x, COARSE.with_constants(SALTY), grids=Grid(grid.origin, spacing, points))
        energies.append(run.solve(grid_error=False).energy)
    errors = grid_errors(plan)
    assert errors["complex"] == pytest.approx(abs(energies[0] - energies[1]), rel=1e-6)
    assert 0 < errors["delta"] < errors["complex"]
    with pytest.raises(InputError, match="Generalized Born uses no grid"):
        grid_errors(Binding(x, LIGAND))


def test_what_a_plan_is_made_of_goes_through_a_pickle(plan: Binding) -> None:
    again = pickle.loads(pickle.dumps(plan))
    assert (again.pb, again.model, again.names) == (plan.pb, plan.model, plan.names)


def test_separate_trajectories(plan: Binding, tmp_path: Path) -> None:
    trajectory = write_complex(tmp_path, 1)[2]
    whole = {name: plan.plans[name].atoms for name in ("complex", "receptor", "ligand")}
    chosen = {"complex": None, "receptor": np.arange(N), "ligand": np.arange(N, 2 * N)}
    over = {name: Trajectory(trajectory, complex_atoms(), None, of) for name, of in chosen.items()}
    found = separate_energies(plan, over, whole).systems["ligand"]
    own = PoissonBoltzmann(whole["ligand"].moved(frames(1)[0][N:]), COARSE.with_constants(SALTY), spacing=2.0)
    assert found.terms.pb[0] == pytest.approx(own.solve(grid_error=False).energy, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"pb": 5}, "expected a PBSolvent"),
        ({"pb": COARSE, "model": SolventModel(gb="none")}, "leave out gb='none'"),
        ({"pb": COARSE, "model": SolventModel(surface="ace")}, "'ace' needs Born radii; use lcpo or none"),
        ({"pb": COARSE, "idecomp": 3}, "cannot be decomposed by pairs"),
        (
            {"pb": replace(COARSE, equation="nonlinear"), "idecomp": 1},
            "cannot be decomposed with the nonlinear equation",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Binding(complex_atoms(), LIGAND, **options)


@pytest.mark.parametrize(
    ("options", "tension"), [({}, 0.0072), ({"surface_tension": 0.0054}, 0.0054), ({"surface_tension": 0.01}, 0.01)]
)
def test_a_nonpolar_term_that_nobody_chose_is_that_of_areas(options: dict[str, float], tension: float) -> None:
    """Also of a model that was copied, pickled or made of another one."""
    model = SolventModel(**options)
    for same in (model, replace(model, ionic_strength=0.1), pickle.loads(pickle.dumps(model)), deepcopy(model)):
        found = default_model(same)
        assert (found.surface, found.surface_tension) == ("lcpo", tension)
    with pytest.raises(InputError, match="'ace' needs Born radii"):
        default_model(replace(model, surface="ace"))


def test_the_command_refuses_ace_beside_poisson_boltzmann(tmp_path: Path) -> None:
    topology, coordinates, _ = write_complex(tmp_path, 1)
    words = ["binding", topology, "-c", coordinates, "--ligand", LIGAND, "--pb", "--surface", "ace"]
    run = CliRunner().invoke(main, [str(word) for word in words])
    assert (run.exit_code, run.output.count("\n")) == (1, 1)
    assert "the surface 'ace' needs Born radii; use lcpo or none with Poisson-Boltzmann" in run.output


def test_the_command_goes_on_where_it_stopped_and_says_its_solvent(tmp_path: Path) -> None:
    topology, coordinates, trajectory = write_complex(tmp_path, 2)
    words = ["binding", topology, "-c", coordinates, "--ligand", LIGAND, "--pb", "--spacing", "2", "-t", trajectory]
    record = tmp_path / "o.jsonl"
    run = CliRunner().invoke(main, [str(word) for word in [*words, "-o", record, "--json"]])
    assert run.exit_code == 0, run.output
    report = json.loads(run.stdout)
    assert (report["settings"]["gb"], report["settings"]["pb"]["spacing"]) == (None, 2.0)
    assert set(report["grid_errors"]) == {"complex", "receptor", "ligand", "delta"}
    assert report["amber"]["delta"]["EPB"]["mean"] == report["delta"]["pb"]["mean"]
    whole = record.read_text()
    record.write_text("".join(whole.splitlines(keepends=True)[:-1]))
    again = CliRunner().invoke(main, [str(word) for word in [*words, "-o", record, "--resume"]])
    assert again.exit_code == 0, again.output
    assert record.read_text() == whole
    assert "Poisson-Boltzmann (linear)" in again.stdout
    assert "Twice the spacing changes the Poisson-Boltzmann energy" in again.stdout
    other = CliRunner().invoke(main, [str(word) for word in [*words[:-3], "3", *words[-2:], "-o", record, "--resume"]])
    assert other.exit_code == 1
    assert "pb.spacing" in other.output


@pytest.mark.parametrize(("words", "sentence"), [(["--spacing", "1"], "needs --pb"), (["--pb", "--gb", "hct"], "--gb")])
def test_options_that_play_no_part_are_refused(tmp_path: Path, words: list[str], sentence: str) -> None:
    topology, coordinates, _ = write_complex(tmp_path, 1)
    every = ["binding", str(topology), "-c", str(coordinates), "--ligand", LIGAND, *words]
    done = CliRunner().invoke(main, every)
    assert done.exit_code == 2
    assert sentence in done.output


def test_an_mmpbsa_in_with_pb(folder: Path) -> None:
    done = call(folder, PB, *parts(folder))
    assert done.exit_code == 0, done.output
    told = "the potential of the salt's ions, which pbsa omits"
    assert told in done.output
    text = (folder / "o.dat").read_text()
    assert "POISSON BOLTZMANN:" in text
    assert "GENERALIZED BORN" not in text
    model = SolventModel.like(
        "mmpbsa.py", solute_dielectric=2.0, solvent_dielectric=80.0, ionic_strength=0.1, surface_tension=0.005
    )
    own = Binding(complex_atoms(), LIGAND, model=model, pb=COARSE, precision="float64").evaluate_batch(frames(2))
    rows = rows_of(text)
    for name, terms in own.systems().items():
        for term in ("EPB", "ENPOLAR", "EEL"):
            assert rows[name, term][0] == pytest.approx(amber_terms(terms)[term].mean(), abs=6e-4), (name, term)
    for sentence in ("cavity_surften=0.005", "ends 10 A from the complex", "LCPO areas"):
        assert sentence in text


def test_both_methods_with_shares_of_residues(folder: Path) -> None:
    given = PB + "&gb\n igb=5\n/\n&decomp\n idecomp=1, print_res='1-2', csv_format=1\n/\n"
    done = call(folder, given, *parts(folder), "--json", "-eo", str(folder / "e.csv"))
    assert done.exit_code == 0, done.output
    text, shares = (folder / "o.dat").read_text(), (folder / "d.dat").read_text()
    assert text.index("GENERALIZED BORN:") < text.index("POISSON BOLTZMANN:")
    assert "Generalized Born solvent" in shares
    assert "Poisson Boltzmann solvent" in shares
    assert "POISSON BOLTZMANN:" in (folder / "e.csv").read_text()
    runs = json.loads(done.stdout)["runs"]
    assert [run["method"] for run in runs] == ["gb", "pb"]
    assert "EPB" in runs[1]["energy"]
    assert "EGB" not in runs[1]["energy"]


def test_no_nonpolar_term_with_inp_0_and_defaults_of_mmpbsa(folder: Path) -> None:
    done = call(folder, PB.replace("inp=1, radiopt=0", "radiopt=0"), *parts(folder))
    assert "inp=1 (surface areas) is used instead of MMPBSA.py's default" in done.output
    done = call(folder, PB.replace("inp=1, radiopt=0", "inp=0"), *parts(folder))  # radiopt is 1 there
    assert done.exit_code == 1
    assert "MET1:N has the type T6, without a radius of Tan and Luo; use the topology's radii" in done.output
    done = call(folder, PB.replace("inp=1,", "inp=0,").replace("istrng=0.1, ", ""), *parts(folder))
    assert done.exit_code == 0, done.output
    assert "potential of the salt's ions" not in done.output
    assert ("complex", "ENPOLAR") not in rows_of((folder / "o.dat").read_text())


def test_the_surface_has_the_name_that_pb_has(tmp_path: Path) -> None:
    """Also by its former name, in both doors."""
    topology, coordinates, _ = write_complex(tmp_path, 1)
    options = {"coordinates": coordinates, "ligand": LIGAND, "pb": True, "spacing": 2.0}
    found = pele_ocl.binding(topology, **options, dielectric_surface="mol")
    with pytest.warns(DeprecationWarning, match="pb_surface is now dielectric_surface"):
        assert pele_ocl.binding(topology, **options, pb_surface="mol").total == found.total
    assert pele_ocl.binding(topology, **options).total != found.total
    for name in ("--dielectric-surface", "--pb-surface"):
        words = ["binding", topology, "-c", coordinates, "--ligand", LIGAND, "--pb", "--spacing", 2, name, "mol"]
        run = CliRunner().invoke(main, [*map(str, words), "--json"])
        assert json.loads(run.stdout)["delta"]["total"]["mean"] == found.total
    assert "surface mol, " in found.text()
