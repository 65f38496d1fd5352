"""Ten tasks as users of OpenMM, MDAnalysis and MDTraj write them first: three lines or fewer, the command's numbers."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DEVICES
from test_cli import run
from test_docs import _ten_tasks

import pele_ocl
from pele_ocl import Atoms, PeleError

# Each task by three people, with the number that they look at, and the command with the place of it in its JSON.
TASKS: dict[str, tuple[tuple[str, ...], str, Any]] = {
    "read and prepare a PDB file": (
        (
            'pele_ocl.prepare("1abc.pdb", "protein.pdb")\natoms = pele_ocl.read("protein.pdb")\nfound = len(atoms)',
            'found = len(pele_ocl.prepare(Path("1abc.pdb"), ph=7.0).read())',
            'made = pele_ocl.prepare("1abc.pdb")\nmade.save("a.pdb")\nfound = made.n_atoms',
        ),
        "prepare 1abc.pdb -o protein.pdb --json", lambda told: told["n_atoms"],
    ),
    "energy by term": (
        (
            'found = pele_ocl.energy("complex.pdb").energy["coulomb"]',
            'atoms = pele_ocl.read("complex.pdb")\nresult = pele_ocl.Energy(atoms).evaluate()\nfound = result.coulomb',
            'table = pele_ocl.energy(Path("complex.pdb")).table()\n'
            'found = dict(zip(table["term"], table["energy"]))["coulomb"]',
        ),
        "energy complex.pdb --json", lambda told: told["energy"]["coulomb"],
    ),
    "minimise": (
        (
            'found = pele_ocl.minimize("complex.pdb", output="relaxed.pdb", max_iterations=3).total',
            'atoms = pele_ocl.read("complex.pdb")\nfound = pele_ocl.minimize(atoms, max_iterations=3).energy["total"]',
            'found = pele_ocl.Minimizer(pele_ocl.read("complex.pdb"), max_iterations=3).minimize().energies.sum()',
        ),
        "minimize complex.pdb -o relaxed.pdb --max-iterations 3 --json", lambda told: told["energy_after"]["total"],
    ),
    "binding over a trajectory": (
        (
            'found = pele_ocl.binding("complex.pdb", "chain L", trajectory="run0/complex-00000.nc").total',
            'u = MDAnalysis.Universe("complex.pdb", "run0/complex-00000.nc")\n'
            'found = pele_ocl.binding("complex.pdb", ligand="segid L", trajectory=u).total',
            't = mdtraj.load("run0/complex-00000.nc", top="complex.pdb")\n'
            'found = pele_ocl.binding(pele_ocl.read("complex.pdb"), ligand="chain L", trajectory=t).total',
        ),
        "binding complex.pdb -t run0/complex-00000.nc --ligand 'chain L' --json",
        lambda told: told["delta"]["total"]["mean"],
    ),
    "Poisson-Boltzmann with a map": (
        (
            'result = pele_ocl.pb("complex.pdb", output="pb.dx", spacing=1.5)\nfound = result.energy',
            'result = pele_ocl.pb(pele_ocl.read("complex.pdb"), spacing=1.5)\nresult.map.save("p.dx")\n'
            'found = result.energy',
            'result = pele_ocl.pb("complex.pdb", spacing=1.5)\nresult.save("p.dx")\nfound = result.energy',
        ),
        "pb complex.pdb -o pb.dx --spacing 1.5 --json", lambda told: told["energy"]["total"],
    ),
    "simulate 16 replicas and load them in MDTraj": (
        (
            'r = pele_ocl.simulate("complex.pdb", "run1", replicas=16, steps=4, report_every=2, minimize=0)\n'
            'found = mdtraj.load(r.trajectories, top=r.topology).n_frames',
            'r = pele_ocl.simulate("complex.pdb", "run2", replicas=16, time="8fs", report_every=2, minimize=0)\n'
            'found = sum(mdtraj.load(str(path), top="complex.pdb").n_frames for path in r.trajectories)',
            'r = pele_ocl.simulate(pele_ocl.read("complex.pdb"), output="run3", replicas=16, steps=4, report_every=2,\n'
            '                      temperature=300, trajectory_format="dcd", minimize=0)\n'
            'found = len(mdtraj.load(r.trajectories, top=r.topology))',
        ),
        "simulate complex.pdb -o run4 --replicas 16 --steps 4 --report-every 2 --minimize 0 --json",
        lambda told: sum(of["frame"] + 1 for of in told["replicas"]),
    ),
    "explore a control file": (
        (
            'found = pele_ocl.explore("pele.conf", explorers=2, output="e1").states()["energy"].min()',
            'result = pele_ocl.explore(Path("pele.conf"), explorers=2, output=Path("e2"))\n'
            'found = min(float(line.split()[3]) for path in result.reports for line in open(path).readlines()[1:])',
            'table = pele_ocl.explore("pele.conf", explorers=2, output="e3").states()\nfound = min(table["energy"])',
        ),
        "explore pele.conf -n 2 -o e4 --json", None,
    ),
    "refine poses": (
        (
            'found = pele_ocl.refine("complex.pdb", "poses.pdb", ligand="chain L", max_iterations=3).score[0]',
            'batch = pele_ocl.refine("complex.pdb", ["poses.pdb"], ligand="chain L", max_iterations=3, output="f1")\n'
            'found = batch.table()["score_after"][0]',
            'atoms = pele_ocl.read("complex.pdb")\n'
            'found = min(pele_ocl.refine(atoms, Path("poses.pdb"), ligand="chain L", max_iterations=3).score)',
        ),
        "refine complex.pdb poses.pdb --ligand 'chain L' --max-iterations 3 -o f2 --json",
        lambda told: told["poses"][0]["after"]["score"],
    ),
    "a surface page": (
        (
            'found = pele_ocl.view("complex.pdb", "page.html", method="screened").to_json()["max"]',
            'page = pele_ocl.view(pele_ocl.read("complex.pdb"), method="screened")\npage.save("page.html")\n'
            'found = page.to_json()["max"]',
            'page = pele_ocl.view("complex.pdb", output=Path("page.html"), method="screened")\n'
            'found = page.facts()["max"]',
        ),
        "view complex.pdb -o page.html --method screened --json", lambda told: told["max"],
    ),
    "a map for PyMOL": (
        (
            'found = pele_ocl.potmap("complex.pdb", output="map.dx", spacing=2).map.values.max()',
            'result = pele_ocl.potmap("complex.pdb", spacing=2)\nresult.map.save("map.dx")\n'
            'found = np.asarray(result.map).max()',
            'result = pele_ocl.potmap(pele_ocl.read("complex.pdb"), spacing=2)\nresult.save("map.ccp4")\n'
            'found = result.table()["max"][0]',
        ),
        "potmap complex.pdb -o map.dx --spacing 2 --json", lambda told: told["max"],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of the tasks, and a short trajectory of the complex."""
    made = tmp_path_factory.mktemp("tasks")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        _ten_tasks()
        pele_ocl.simulate("complex.pdb", "run0", steps=20, report_every=10, minimize=0)
    return made


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    """The files in a folder of the test's own."""
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PELE_OCL_DEVICE", str(DEVICES[0].index))
    return tmp_path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_three_lines_with_the_numbers_of_its_command(task, here):
    names = {"pele_ocl": pele_ocl, "np": np, "Path": Path}
    if "MDTraj" in task or "trajectory" in task:
        names |= {name: pytest.importorskip(name) for name in ("mdtraj", "MDAnalysis")}
    if "prepare" in task:
        pytest.importorskip("pdbfixer")
    ways, command, number = TASKS[task]
    found = []
    for way in ways:
        assert len(way.splitlines()) <= 3
        own = dict(names)
        exec(way, own)
        found.append(float(own["found"]))
    told = json.loads(run(*shlex.split(command)).stdout)
    wanted = found[0] if number is None else float(number(told))
    if number is None:
        reports = [line.split() for path in sorted(here.glob("e4/report_*")) for line in path.read_text().splitlines()]
        wanted = min(float(row[3]) for row in reports if row[0].isdigit())
    # Frames that MDTraj has read are float32; text files of the complex's map round to six digits.
    assert found == pytest.approx([wanted] * 3, rel=1e-4 if "trajectory" in task else 1e-9)


# First guesses that are no words of ours: what is said names the word that is.
GUESSES = [
    ('binding("complex.pdb", "run.nc", ligand="chain L")', "as in trajectory='run.nc'"),
    ('prepare("1abc.pdb", pH=7.4)', "'ph'"),
    ('load("complex.pdb")', "'read'"),
    ('energy("complex.pdb", implicit_solvent="obc2")', "'gb'"),
    ('energy("complex.pdb", salt=0.15)', "'ionic_strength'"),
    ('energy("complex.pdb", nonbonded_cutoff=12)', "'cutoff'"),
    ('energy("complex.pdb", platform="CPU")', "'device'"),
    ('energy("complex.pdb", selection="protein")', "'select'"),
    ('energy(structure="complex.pdb")', "takes 'atoms' first"),
    ('energy(topology="complex.pdb", trajectory="run0/complex-00000.nc")', "takes 'atoms' first"),
    ('energy("top.parm7", "run.nc")', "trajectory='run.nc'"),
    ('energy("top.parm7", "first.rst7")', "coordinates='first.rst7'"),
    ('energy("complex.pdb").forces', "'gradient'"),
    ('energy("complex.pdb").potential_energy', "'total'"),
    ('energy("complex.pdb").to_pandas()', "'to_dataframe'"),
    ('energy("complex.pdb").to_dict()', "'to_json'"),
    ('Energy(pele_ocl.read("complex.pdb")).run()', "'evaluate'"),
    ('minimize("complex.pdb", maxIterations=10)', "'max_iterations'"),
    ('minimize("complex.pdb", n_steps=10)', "'max_iterations'"),
    ('minimize("complex.pdb", restraints="backbone")', "'restrain'"),
    ('Minimizer(pele_ocl.read("complex.pdb")).run()', "'minimize'"),
    ('binding("complex.pdb", "chain L", traj="run0/complex-00000.nc")', "'trajectory'"),
    ('binding("complex.pdb", "chain L", trajectory="run0/complex-00000.nc", stride=2)', "'frames'"),
    ('binding("complex.pdb", "chain L").dG', "'total'"),
    ('pb("complex.pdb", "map.dx", output="b.dx")', "`output`"),
    ('pb("complex.pdb", grid_spacing=1)', "'spacing'"),
    ('pb("complex.pdb", spacing=1, pdie=2)', "'solute_dielectric'"),
    ('pb("complex.pdb", spacing=2).solvation_energy', "'solvation'"),
    ('minimize("complex.pdb", "run0/complex-00000.nc")', "trajectory='run0/complex-00000.nc'"),
    ('potmap("complex.pdb", pymol=True)', "'scene'"),
    ('simulate("complex.pdb", "r", n_replicas=2, steps=2)', "'replicas'"),
    ('simulate("complex.pdb", "r", n_steps=2)', "'steps'"),
    ('simulate("complex.pdb", "r", steps=2, dt=2)', "'timestep'"),
    ('simulate("complex.pdb", "r", steps=2, reportInterval=2)', "'report_every'"),
    ('simulate("complex.pdb", "r", steps=2, trajectory="dcd")', "'trajectory_format'"),
    ('Simulation(pele_ocl.read("complex.pdb")).step(2)', "'run'"),
    ('explore("pele.conf", "e", n=2)', "'explorers'"),
    ('explore("pele.conf", "e", replicas=2)', "'explorers'"),
    ('simulate("complex.pdb", "r", explorers=2, steps=2)', "'replicas'"),
    ('refine("complex.pdb", "poses.pdb", "chain L")', "ligand='chain L'"),
    ('refine("complex.pdb", "poses.pdb", ligand="chain L", max_iterations=1).scores', "'score'"),
    ('view("complex.pdb", html="page.html")', "'output'"),
    ('view("complex.pdb", potential="map.dx")', "'map'"),
    ('read("complex.pdb").select_atoms("chain L")', "'select'"),
    ('read("complex.pdb").write("c.pdb")', "'save'"),
]


@pytest.mark.parametrize(("guess", "word"), GUESSES, ids=[guess for guess, _ in GUESSES])
def test_a_first_guess_is_told_the_right_word(guess, word, here):
    with pytest.raises((TypeError, AttributeError, PeleError)) as caught:
        eval(f"pele_ocl.{guess}", {"pele_ocl": pele_ocl})
    assert word in str(caught.value)


def test_the_output_is_second_everywhere(here):
    """Of the functions that write; where another value is second, a path in its place is the output."""
    few = {"max_iterations": 1}
    for name, words, output in (
        ("energy", {}, "e.csv"), ("solvent", {}, "s.json"), ("minimize", few, "m.pdb"), ("relax", few, "r.pdb"),
        ("potmap", {"spacing": 2}, "map.dx"), ("pb", {"spacing": 2}, "pb.dx"), ("view", {}, "page.html"),
        ("explore", {"steps": 0}, "e"), ("simulate", {"steps": 2, "report_every": 1, "minimize": 0}, "r"),
    ):  # fmt: skip
        what = "pele.conf" if name == "explore" else "complex.pdb"
        for given in (output, Path(f"second-{output}")):
            getattr(pele_ocl, name)(what, given, **words)
            assert Path(given).exists()
    pele_ocl.potmap("complex.pdb", ["a.dx", "b.cube"], spacing=2)
    assert Path("a.dx").exists()
    assert Path("b.cube").exists()


def test_objects_of_other_libraries_are_told_how_they_come_in(here):
    mdanalysis, app = pytest.importorskip("MDAnalysis"), pytest.importorskip("openmm.app")
    unit = pytest.importorskip("openmm.unit")
    for call, word in (
        (lambda: pele_ocl.Energy(mdanalysis.Universe("complex.pdb")), "pele_ocl.read reads it as Atoms"),
        (lambda: pele_ocl.read(app.PDBFile("complex.pdb").topology), "from_openmm"),
    ):
        with pytest.raises(PeleError, match=word):
            call()
    with_unit = pele_ocl.energy("complex.pdb", ionic_strength=0.1, temperature=310 * unit.kelvin)
    assert with_unit.total == pele_ocl.energy("complex.pdb", ionic_strength=0.1, temperature=310).total


def test_frames_in_memory_are_a_trajectory_everywhere(here):
    """As those of a file, of a path and of Atoms; the text of messages and records names them by what they are."""
    atoms, positions = pele_ocl.read("complex.pdb"), None
    for name in ("energy", "solvent", "nonbond"):
        function = getattr(pele_ocl, name)
        of_file = function("complex.pdb", trajectory="run0/*.nc")
        positions = pele_ocl.read_conformations("run0/complex-00000.nc")[1] if positions is None else positions
        for what in ("complex.pdb", atoms):
            found = function(what, trajectory=np.asarray(positions, np.float32), frames="0:3")
            np.testing.assert_allclose(found.total, of_file.total, rtol=1e-5)
            assert len(found.to_json()["frames"]) == 3
            found.save("f.csv")
            assert Path("f.csv").read_text().count("\n") > 2
    with pytest.raises(PeleError, match="expected a list of paths"):
        pele_ocl.energy("complex.pdb", trajectory=3)


def test_atoms_and_maps_write_themselves(here):
    atoms = pele_ocl.read("complex.pdb")
    for name in ("a.pdb", "a.cif", "a.pqr"):
        atoms.save(name)
        assert isinstance(pele_ocl.read(name), Atoms)
    map_ = pele_ocl.potmap(atoms, spacing=3).map
    map_.save("m.dx")
    np.testing.assert_allclose(pele_ocl.read_map("m.dx").values, map_.values, rtol=1e-5)
    page = pele_ocl.view(atoms, map=pele_ocl.potmap(atoms, spacing=2))
    assert page.to_json()["unit"] == "kcal/mol/e"


def test_a_control_file_stands_for_a_structure_and_its_settings(here):
    """As for commands: in place of the structure, or as `pele_conf`; keywords win over it."""
    told = json.loads(run("energy", "pele.conf", "--json").stdout)
    for found in (
        pele_ocl.energy("pele.conf"), pele_ocl.energy(Path("complex.pdb"), pele_conf="pele.conf"),
        pele_ocl.energy(pele_ocl.read("complex.pdb"), like="pele", gb="obc2", ionic_strength=0.25),
    ):  # fmt: skip
        assert found.total == pytest.approx(told["energy"]["total"], rel=1e-6)
    assert pele_ocl.energy("pele.conf").to_json()["settings"] == told["settings"]
    vacuum = json.loads(run("energy", "pele.conf", "--gb", "none", "--json").stdout)
    assert pele_ocl.energy("pele.conf", gb="none").total == vacuum["energy"]["total"]
    assert pele_ocl.minimize("pele.conf", max_iterations=1).energy_before.total == pytest.approx(found.total, rel=1e-6)
    model = pele_ocl.SolventModel()
    assert pele_ocl.energy("pele.conf", model=model).total == pele_ocl.energy("complex.pdb", model=model).total
    assert pele_ocl.potmap("pele.conf", spacing=3).map.values.shape
    Path("none.conf").write_text(Path("pele.conf").read_text().replace("complex.pdb", "gone.pdb"))
    with pytest.raises(PeleError, match=r"gone\.pdb does not exist; give one: its path, and this file as `pele_conf`"):
        pele_ocl.energy("none.conf")
