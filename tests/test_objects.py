"""Objects of MDAnalysis, MDTraj, ASE, RDKit, ParmEd and OpenMM in the place of a structure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from amber_helpers import content, hexapeptide, rendered, restart

import pele_ocl
from pele_ocl import FormatError, InputError

TRIALANINE = Path(__file__).parent.parent / "data" / "structures" / "trialanine.pdb"
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def mda():
    return pytest.importorskip("MDAnalysis")


@pytest.fixture(scope="module")
def universe(mda):
    return mda.Universe(str(TRIALANINE))


@pytest.fixture
def of_topology(mda, tmp_path):
    """A universe of a prmtop, and the atoms that our reader makes of the same files."""
    made = content()
    (tmp_path / "x.prmtop").write_text(rendered(made))
    (tmp_path / "x.rst7").write_text(restart(hexapeptide().positions))
    files = tmp_path / "x.prmtop", tmp_path / "x.rst7"
    loaded = mda.Universe(str(files[0]), str(files[1]), topology_format="PRMTOP", format="RESTRT")
    return loaded, pele_ocl.read(files[0], coordinates=files[1])


def _mdtraj():
    return pytest.importorskip("mdtraj").load(str(TRIALANINE))


def _ase():
    pytest.importorskip("ase")
    return pele_ocl.ase.to_ase(pele_ocl.read(TRIALANINE))


def _ase_of_pdb():
    return pytest.importorskip("ase.io").read(str(TRIALANINE))


def _rdkit():
    return pytest.importorskip("rdkit.Chem").MolFromPDBFile(str(TRIALANINE), removeHs=False)


def _parmed():
    pytest.importorskip("openmm")
    return pytest.importorskip("parmed").load_file(str(TRIALANINE))


def _pdb_file():
    return pytest.importorskip("openmm.app").PDBFile(str(TRIALANINE))


def _modeller():
    file = _pdb_file()
    return pytest.importorskip("openmm.app").Modeller(file.topology, file.positions)


def _universe():
    return pytest.importorskip("MDAnalysis").Universe(str(TRIALANINE))


def _group():
    return _universe().select_atoms("protein")


@pytest.mark.parametrize("make", [_universe, _group, _mdtraj, _ase, _ase_of_pdb, _rdkit, _parmed, _pdb_file, _modeller])
def test_an_object_is_a_structure_as_its_file_is(make):
    found, ours = pele_ocl.read(make()), pele_ocl.read(TRIALANINE)
    assert found.positions == pytest.approx(ours.positions, abs=1e-5)
    assert found.charges.tolist() == ours.charges.tolist()
    assert found.lj_sigma.tolist() == ours.lj_sigma.tolist()
    assert found.labels.residue_names.tolist() == ours.labels.residue_names.tolist()
    assert set(found.labels.chains.tolist()) <= {"A", ""}


def test_words_of_reading_are_applied_as_to_a_path(universe):
    for words in (
        {"select": "resid 2:3", "gb": "gbn2"},
        {"forcefield": "amber99sb", "radii": "bondi"},
        {"select": "not element H"},
    ):
        wanted = pele_ocl.energy(TRIALANINE, precision="float64", **words)
        found = pele_ocl.energy(universe, precision="float64", **words)
        assert found.total == pytest.approx(wanted.total, abs=1e-3), words
    with pytest.raises(TypeError, match="did you mean 'forcefield'"):
        pele_ocl.energy(universe, forcefeld="amber14")
    with pytest.raises(InputError, match=r"type Universe is read at its current frame; leave out the number"):
        pele_ocl.energy(universe, model=2)


def test_every_function_takes_a_universe(universe, tmp_path):
    few = {"max_iterations": 1}
    atoms = pele_ocl.read(TRIALANINE)
    assert pele_ocl.solvent(universe).total == pytest.approx(pele_ocl.solvent(atoms).total, abs=1e-3)
    assert len(pele_ocl.minimize([universe, TRIALANINE], **few)) == 2
    assert pele_ocl.binding(universe, "resid 3").table()["term"][-1] == "total"
    assert len(pele_ocl.all_pairs(universe)) == len(pele_ocl.all_pairs(atoms))
    assert len(pele_ocl.refine(universe, ligand="resid 3", **few)) == 1
    assert pele_ocl.relax(universe, output=tmp_path / "relaxed.pdb", **few).is_clean
    assert pele_ocl.read(tmp_path / "relaxed.pdb").labels.chains[0] == "A"
    pele_ocl.minimize(universe, tmp_path / "minimum.pdb", **few)
    assert len(pele_ocl.read(tmp_path / "minimum.pdb")) == len(atoms)


def test_keywords_of_files_are_of_objects_too(universe, tmp_path):
    result = pele_ocl.energy(universe, tmp_path / "energy.json", strict=True, per_residue=True)
    record = result.to_json()
    assert (record["structure"], record["sha256"]) == ("the universe", "")
    assert json.loads((tmp_path / "energy.json").read_text())["input"] == "the universe"
    assert len(record["residues"]) == 3


def test_preparing_an_object(universe):
    pytest.importorskip("pdbfixer")
    heavy = universe.select_atoms("not element H")
    made = pele_ocl.prepare(heavy)
    assert (made.n_atoms, made.hydrogens_added) == (33, 17)


def test_parameters_of_a_universe_are_those_of_its_topology_file(of_topology):
    loaded, ours = of_topology
    atoms = pele_ocl.from_mdanalysis(loaded)
    assert atoms.lj_sigma.tolist() == ours.lj_sigma.tolist()
    assert atoms.gb_radii.tolist() == ours.gb_radii.tolist()
    assert pele_ocl.energy(loaded, precision="float64").total == pytest.approx(
        pele_ocl.energy(ours, precision="float64").total, abs=1e-2
    )
    some = loaded.select_atoms("resid 2")
    assert pele_ocl.from_mdanalysis(some).charges.tolist() == ours.charges[some.indices].tolist()
    loaded.atoms.translate([5.0, 0.0, 0.0])  # the present frame counts
    assert pele_ocl.from_mdanalysis(loaded).positions[:, 0] == pytest.approx(ours.positions[:, 0] + 5.0, abs=1e-3)
    loaded.atoms[0].charge += 0.5  # charges that were set, too
    assert pele_ocl.from_mdanalysis(loaded).charges[0] == pytest.approx(ours.charges[0] + 0.5, abs=1e-6)


def test_made_up_segments_are_no_chains(mda, universe, of_topology, tmp_path):
    assert set(pele_ocl.from_mdanalysis(of_topology[0]).labels.chains.tolist()) == {""}
    two = mda.Merge(universe.atoms)
    two.add_TopologyAttr("segids", ["seg_0_Protein"])
    two.del_TopologyAttr("chainIDs")
    moved = universe.copy()
    moved.atoms.translate([40.0, 0.0, 0.0])
    both = mda.Merge(universe.atoms, moved.atoms)
    both.del_TopologyAttr("chainIDs")
    both.add_TopologyAttr("segids", ["seg_0_Protein", "seg_1_Protein"])
    atoms = pele_ocl.from_mdanalysis(both)
    assert list(dict.fromkeys(atoms.labels.chains.tolist())) == ["A", "B"]
    assert "seg_0_Protein is A, seg_1_Protein is B" in "; ".join(atoms.notes)
    atoms.save(tmp_path / "both.pdb")
    assert set(pele_ocl.from_mdanalysis(two).labels.chains.tolist()) == {""}


def test_an_output_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    from dataclasses import replace

    atoms = pele_ocl.read(TRIALANINE)
    labels = replace(atoms.labels, chains=np.full(len(atoms), "SYSTEM"))
    long = replace(atoms, labels=labels)

    def no_work(*_: object, **__: object) -> None:
        raise AssertionError("work was begun")

    monkeypatch.setattr("pele_ocl.minimize.minimizer.Minimizer.minimize_batch", no_work)
    monkeypatch.setattr("pele_ocl.minimize.running.minimize_all", no_work)
    for output, what in (
        ("x.pdb", long),
        ("none/such/x.pdb", atoms),
        ("x.xyz.zip", atoms),
        ("{name}.pdb", [long, long]),
    ):
        with pytest.raises(FormatError):
            pele_ocl.minimize(what, tmp_path / output)
    assert not list(tmp_path.iterdir())


def test_ligands_are_added_to_a_universe(universe):
    ligand = pele_ocl.read(TRIALANINE)[22:].moved(pele_ocl.read(TRIALANINE).positions[22:] + 30.0)
    assert len(pele_ocl.from_mdanalysis(universe, ligands=[ligand])) == 44
    assert len(pele_ocl.read(universe, ligands=[ligand])) == 44
    assert pele_ocl.solvent(universe, ligands=[ligand]).atoms.charges.shape == (44,)


def test_one_ligand_alone_will_do_and_its_file_has_two_names(tmp_path):
    pytest.importorskip("rdkit")
    ion = pele_ocl.read(TRIALANINE)[22:].moved(pele_ocl.read(TRIALANINE).positions[22:] + 30.0)
    for words in ({"ligands": ion}, {"ligands": [ion]}, {"ligand_file": ion}, {"ligand_files": (ion,)}):
        assert len(pele_ocl.read(TRIALANINE, **words)) == 44
        assert len(pele_ocl.solvent(TRIALANINE, energy=False, **words).atoms) == 44
    with pytest.raises(InputError, match="`ligands` and `ligand_file` are names of the same keyword; give one of them"):
        pele_ocl.energy(TRIALANINE, ligands=ion, ligand_file=ion)
    with pytest.raises(FormatError, match=r"gone.sdf: no such file"):
        pele_ocl.energy(TRIALANINE, ligand_file="gone.sdf")
    with pytest.raises(InputError, match="ligands are 3; expected files, Ligands, Mols of RDKit or Atoms"):
        pele_ocl.energy(TRIALANINE, ligands=3)
    with pytest.raises(TypeError, match="ligand_file"):
        pele_ocl.prepare(TRIALANINE, ligand_file="x.sdf")


def test_frames_and_poses_of_objects(universe):
    energies = pele_ocl.energy(TRIALANINE, trajectory=universe.trajectory)
    assert energies.terms.total[0] == pytest.approx(pele_ocl.energy(TRIALANINE, gradient=False).total, abs=0.01)
    some = universe.select_atoms("resid 2:3")
    wanted = pele_ocl.energy(TRIALANINE, select="resid 2:3").total
    for frames in (universe, universe.trajectory, some):
        found = pele_ocl.energy(some, trajectory=frames)
        assert found.terms.total[0] == pytest.approx(wanted, abs=0.01)
    few = {"ligand": "resid 3", "max_iterations": 1}
    wanted = pele_ocl.refine(TRIALANINE, **few).positions[0]
    for poses in (universe, universe.select_atoms("resid 3")):
        found = pele_ocl.refine(TRIALANINE, poses, **few)
        assert found.positions[0] == pytest.approx(wanted, abs=1e-3)
    with pytest.raises(InputError, match="10 atoms; the complex has 33, its ligand 11"):
        pele_ocl.refine(TRIALANINE, universe.select_atoms("resid 2"), **few)


def test_what_is_no_molecule_is_refused_with_a_way_that_works(universe):
    app = pytest.importorskip("openmm.app")
    with pytest.raises(InputError, match=r"type PDBReader \(give its Universe\)"):
        pele_ocl.energy(universe.trajectory)
    with pytest.raises(InputError, match=r"type Topology \(pele_ocl.from_openmm converts a Topology"):
        pele_ocl.minimize(app.PDBFile(str(TRIALANINE)).topology)
    with pytest.raises(InputError, match="the AtomGroup has no atoms"):
        pele_ocl.energy(universe.select_atoms("resname XXX"))
    with pytest.raises(InputError, match=r"type Universe \(pele_ocl.read reads it as Atoms\)"):
        pele_ocl.Energy(universe)


def test_a_group_is_a_selection(universe, tmp_path):
    """Of the whole universe, and of a group of it, whose atoms count anew; the text is what records have."""
    last, atoms = universe.select_atoms("resid 3"), pele_ocl.read(TRIALANINE)
    wanted = pele_ocl.binding(TRIALANINE, "resid 3", precision="float64")
    for structure in (TRIALANINE, atoms, universe):
        found = pele_ocl.binding(structure, last, precision="float64")
        assert found.table()["delta"][-1] == pytest.approx(wanted.table()["delta"][-1], abs=1e-3)
    some = universe.select_atoms("resid 2:3")
    found = pele_ocl.binding(some, last, receptor=universe.select_atoms("resid 2"), precision="float64")
    wanted = pele_ocl.binding(TRIALANINE, "resid 3", "resid 2", select="resid 2:3", precision="float64")
    assert found.table()["delta"][-1] == pytest.approx(wanted.table()["delta"][-1], abs=1e-3)
    refined = pele_ocl.refine(TRIALANINE, ligand=last, max_iterations=1)
    assert refined.spec.ligand == "index 22:32"
    assert len(pele_ocl.read(TRIALANINE, select=last)) == len(atoms.select(last)) == 11
    assert pele_ocl.solvent(universe, select=last).atoms.charges.shape == (11,)
    both = pele_ocl.binding(universe, [last, universe.select_atoms("resid 1")], receptor="resid 2")
    assert len(both) == 2
    assert not pele_ocl.energy(universe, frozen=last).gradient[22:].any()
    assert len(atoms[last]) == 11
    with pytest.raises(InputError, match="several molecules in memory are given; evaluate them one by one"):
        pele_ocl.energy([atoms, atoms])
    held = pele_ocl.minimize(atoms, freeze=last, max_iterations=2)
    assert (held.positions[22:] == atoms.positions[22:]).all()
    assert (held.positions[:22] != atoms.positions[:22]).any()
    with pytest.raises(InputError, match="ligand has the atom 0 of the universe, which is not in the structure"):
        pele_ocl.binding(some, universe.select_atoms("resid 1"))
    with pytest.raises(InputError, match="of a molecule of 33 atoms, and this one has 21"):
        pele_ocl.minimize(atoms.select("resid 2:3"), freeze=last)
    with pytest.raises(InputError, match=r"`restrain` accepts selections .*PositionalRestraint"):
        pele_ocl.minimize(atoms, restrain=last)


@pytest.mark.parametrize("give", [lambda mask: mask, np.flatnonzero, lambda mask: np.flatnonzero(mask).tolist()])
def test_masks_and_indices_are_selections_where_texts_are(give):
    atoms = pele_ocl.read(TRIALANINE)
    mask = atoms.selected("resid 3")
    chosen = give(mask)
    assert len(pele_ocl.read(TRIALANINE, select=chosen)) == 11
    assert len(pele_ocl.energy(TRIALANINE, select=chosen).atoms) == 11
    assert pele_ocl.refine(TRIALANINE, ligand=chosen, max_iterations=1).spec.ligand == "index 22:32"
    held = pele_ocl.minimize(TRIALANINE, freeze=chosen, max_iterations=1)
    assert (held.positions[22:] == atoms.positions[22:]).all()
    assert (atoms.selected(chosen) == mask).all()


def test_selections_that_choose_nothing_say_so():
    atoms = pele_ocl.read(TRIALANINE)
    for given, sentence in (
        (np.zeros(33, bool), "contains no atom"), ([-1], "has the index -1; indices of atoms count from 0"),
        ([40], "selects no atoms"), (np.ones(5, bool), "of a molecule of 5 atoms, and this one has 33"),
        (3.5, "is 3.5; expected a text of the selection language"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=sentence):
            pele_ocl.minimize(atoms, freeze=given)
        with pytest.raises(InputError, match=sentence):
            pele_ocl.read(TRIALANINE, select=given)


@pytest.mark.parametrize("name", ["energy", "solvent", "nonbond", "minimize", "relax", "binding"])
def test_a_missing_file_is_said_before_any_work(name, tmp_path, monkeypatch):
    """Where failures are to raise; else it is a row among the others."""
    monkeypatch.chdir(tmp_path)
    Path("a.pdb").write_text(TRIALANINE.read_text())
    more = {"nonbond": {"cutoff": 8.0}, "binding": {"ligand": "resid 3"}, "minimize": {"max_iterations": 1}}.get(
        name, {}
    )
    function = getattr(pele_ocl, name)
    output = {"minimize": "out", "relax": "out"}.get(name, "out.csv")
    with pytest.raises(FormatError, match=r"gone.pdb: no such file, and 1 more"):
        function(["a.pdb", "gone.pdb", "other.pdb"], output=output, errors="raise", **more)
    assert [path.name for path in tmp_path.iterdir()] == ["a.pdb"]
    found = function(["a.pdb", "gone.pdb"], errors="record", **more)
    failed = found.errors if hasattr(found, "errors") else {k: r.error for k, r in enumerate(found) if r.failed}
    assert list(failed) == [1]
    assert "gone.pdb: no such file" in failed[1]


def test_errors_of_models_can_be_raised(tmp_path):
    atoms = pele_ocl.read(TRIALANINE)
    there = np.stack([atoms.positions, atoms.positions])
    there[1, 1] = there[1, 0]
    pele_ocl.write_conformations(tmp_path / "two.pdb", atoms, there)
    assert list(pele_ocl.energy(tmp_path / "two.pdb", models="all").errors) == [1]
    with pytest.raises(InputError, match="are at the same position"):
        pele_ocl.energy(tmp_path / "two.pdb", models="all", errors="raise")


def test_a_pattern_is_several_structures_everywhere(tmp_path):
    for name in ("a.pdb", "b.pdb"):
        (tmp_path / name).write_text(TRIALANINE.read_text())
    (tmp_path / "c[1].pdb").write_text(TRIALANINE.read_text())
    assert len(pele_ocl.energy(f"{tmp_path}/[ab].pdb")) == 2
    assert len(pele_ocl.solvent([tmp_path / "*.pdb"])) == 3
    assert len(pele_ocl.solvent([TRIALANINE, TRIALANINE], energy=False)) == 2
    assert len(pele_ocl.nonbond(f"{tmp_path}/?.pdb", cutoff=8.0)) == 2
    assert len(pele_ocl.binding(str(tmp_path / "?.pdb"), "resid 3")) == 2
    assert pele_ocl.energy(tmp_path / "c[1].pdb").total == pele_ocl.energy(TRIALANINE).total
    assert pele_ocl.energy(tmp_path / "a*.pdb").total == pele_ocl.energy(TRIALANINE).total
    with pytest.raises(FormatError, match=r"x\*.pdb: no such file"):
        pele_ocl.energy(tmp_path / "x*.pdb")


def test_results_are_taken_as_the_structures_that_they_made(tmp_path):
    pytest.importorskip("pdbfixer")
    made = pele_ocl.prepare(TRIALANINE)
    relaxed = pele_ocl.minimize(made, tmp_path / "minimum.pdb", max_iterations=5)
    assert pele_ocl.energy(made).total == pytest.approx(relaxed.energy_before.total)
    assert pele_ocl.energy(relaxed).total == pytest.approx(relaxed.total)
    assert pele_ocl.minimize([relaxed, made], max_iterations=0).total[0] == pytest.approx(relaxed.total)
    run = pele_ocl.simulate(relaxed, tmp_path / "run", steps=10, minimize=0, report_every=10)
    assert run.steps == 10


@pytest.mark.parametrize(
    ("xml", "said"), [(None, "gb='none'"), ("implicit/gbn2.xml", "`like='openmm'` with `gb='gbn2'`")]
)
def test_the_solvent_of_a_system_of_openmm_is_named_with_the_words_that_compute_it(xml, said):
    app = pytest.importorskip("openmm.app")
    pdb = app.PDBFile(str(TRIALANINE))
    system = app.ForceField("amber14-all.xml", *([xml] if xml else [])).createSystem(pdb.topology)
    atoms = pele_ocl.from_openmm(pdb.topology, system, pdb.positions)
    assert any(said in note for note in atoms.notes)
    words = {"gb": "none"} if xml is None else {"like": "openmm", "gb": "gbn2"}
    simulation = app.Simulation(pdb.topology, system, openmm_integrator())
    simulation.context.setPositions(pdb.positions)
    energy = simulation.context.getState(getEnergy=True).getPotentialEnergy()._value / 4.184
    assert pele_ocl.energy(simulation, **words).total == pytest.approx(energy, abs=0.01)


def openmm_integrator():
    import openmm

    return openmm.VerletIntegrator(0.001)


def _many(mda, n=3):
    """A universe of n frames that are different by a shift of the last atoms."""
    made = mda.Universe(str(TRIALANINE))
    frames = np.stack([made.atoms.positions] * n)
    frames[1:, 22:] += 0.01
    made.load_new(frames)
    return made


def test_which_frame_of_several_was_read_is_noted(mda):
    many = _many(mda)
    many.trajectory[1]
    for function, words in ((pele_ocl.energy, {}), (pele_ocl.binding, {"ligand": "resid 3"})):
        notes = function(many, **words).to_json()["notes"]
        assert any("the current one, 1, of its 3 frames was read" in each for each in notes), notes
        assert any("`trajectory` uses all frames" in each for each in notes)
        notes = function(many, trajectory=many, **words).to_json()["notes"]
        assert not any("frames was read" in each for each in notes), notes
    assert not any("frames was read" in each for each in pele_ocl.read(_many(mda, 1)).notes)
    assert any("was read" in each for each in pele_ocl.read(many.select_atoms("resid 2:3")).notes)
    held = _mdtraj()
    held = held.slice([0, 0])
    assert any("first of its 2 frames" in each for each in pele_ocl.energy(held).to_json()["notes"])
    assert "frames was read" not in str(pele_ocl.energy(held, trajectory=held).to_json()["notes"])


def test_positions_in_float32_are_those_of_the_file(universe):
    wanted = pele_ocl.read(TRIALANINE).positions
    for held in (universe, _mdtraj(), universe.select_atoms("all")):
        assert (pele_ocl.read(held).positions == wanted).all()
    assert pele_ocl.energy(universe).total == pele_ocl.energy(TRIALANINE).total


def test_positions_of_a_binary_frame_are_those_of_our_reader(mda, tmp_path):
    atoms = pele_ocl.read(TRIALANINE)
    pele_ocl.write_conformations(tmp_path / "x.xtc", atoms, np.round(atoms.positions + 50.0, 2)[np.newaxis])
    loaded = mda.Universe(str(TRIALANINE), str(tmp_path / "x.xtc"))
    frames = pele_ocl.energy(TRIALANINE, trajectory=tmp_path / "x.xtc", precision="float64")
    assert pele_ocl.energy(loaded, precision="float64").total == frames.total[0]


def test_float32_that_no_text_file_had_stays():
    from pele_ocl.formats.assembly import of_float32

    numbers = np.random.default_rng(1).uniform(-50, 50, (20, 3))
    found = numbers.astype(np.float32)
    assert (of_float32(found) == found.astype(np.float64)).all()
    assert (of_float32(numbers) == numbers).all()
    for decimals in (3, 4):
        wanted = np.round(numbers, decimals)
        assert (of_float32(wanted.astype(np.float32)) == wanted).all()
        assert (of_float32((wanted / 10).astype(np.float32), 10.0) == wanted).all()


def test_some_frames_of_a_trajectory_of_mdanalysis(mda):
    many = _many(mda, 5)
    many.trajectory[1]
    every = pele_ocl.energy(many, trajectory=many).total
    assert (pele_ocl.energy(many, trajectory=many.trajectory[::2]).total == every[::2]).all()
    assert (pele_ocl.energy(many, trajectory=many.trajectory[[3, 0]]).total == every[[3, 0]]).all()
    assert many.trajectory.frame == 1
    assert len(pele_ocl.energy(many.select_atoms("resid 2:3"), trajectory=many.trajectory[1:4])) == 3
    assert len(pele_ocl.energy(TRIALANINE, trajectory=many.trajectory[:2])) == 2
    energies = pele_ocl.binding(many, "resid 3", trajectory=many.trajectory[::2]).energies
    assert energies.table()["frame"].tolist() == [0, 1, 2]
    assert energies.table()["total"].tolist() == energies.total.tolist()
    assert energies[1].table()["coulomb"].tolist() == [energies.delta.coulomb[1]]


def test_sentences_about_objects_and_files_in_other_places(universe):
    with pytest.raises(pele_ocl.ParameterError, match=r"universe has no hydrogen atoms.*; pele_ocl.prepare adds"):
        pele_ocl.energy(universe.select_atoms("not element H"))
    with pytest.raises(TypeError, match="did you mean 'ligands'"):
        pele_ocl.simulate(TRIALANINE, ligand="x.sdf")
    for path, word in (("pb.csv", "output"), ("a/lig.sdf", "ligands"), ("run.nc", "trajectory")):
        with pytest.raises(
            TypeError, match=rf"expects the ligand at this position, .*; pass the file as {word}='{path}'"
        ):
            pele_ocl.binding(universe, path, "resid 2")
    long = "/" + "folder/" * 20
    with pytest.raises(TypeError, match=r"trajectory='/folder.*\.\.\..*/run.nc' to read it"):
        pele_ocl.energy(TRIALANINE, f"{long}run.nc")


def test_several_objects_are_several_structures(universe, tmp_path):
    some = universe.select_atoms("resid 2:3")
    wanted = [pele_ocl.energy(of, precision="float64").total for of in (universe, some, TRIALANINE)]
    found = pele_ocl.energy([universe, some, TRIALANINE], tmp_path / "three.csv", precision="float64")
    assert found.total == pytest.approx(wanted, abs=1e-6)
    assert [record.structure for record in found] == ["the universe", "the universe", str(TRIALANINE)]
    assert (tmp_path / "three.csv").read_text().count("\nthe universe,") == 2
    assert len(pele_ocl.solvent([universe, some], errors="raise")) == 2
    assert len(pele_ocl.nonbond([universe], cutoff=8.0)) == 1
    with pytest.raises(InputError, match=r"the universe is in memory; .*need files"):
        pele_ocl.energy([universe, some], tmp_path / "three.csv", workers=2)
