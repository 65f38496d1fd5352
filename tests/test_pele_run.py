"""Runs of PELE: reports and trajectories found and read, poses computed again, reports with our columns."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from forcefield_helpers import ROOT, SAMPLES, needs_samples
from test_cli import error_of, on_the_chosen_device, run
from trajectory_helpers import moving, write_trajectory

import pele_ocl
from pele_ocl.binding import Binding
from pele_ocl.binding.pele import AtomGroups, PoseEvaluator
from pele_ocl.common.errors import FormatError
from pele_ocl.forcefield import ForceField, read_control
from pele_ocl.pairs import nonbonded_pairs
from pele_ocl.rescore import find_run, read_report, spec
from pele_ocl.rescore.result import Agreement

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

HEXAPEPTIDE = ROOT / "data" / "structures" / "hexapeptide.pdb"
HEADS = "#Task    Step    numberOfAcceptedPeleSteps    currentEnergy    Binding Energy    sasaLig    \n"
CONTROL = """{ "Initialization" : { "ForceField" : "AMBER99sb", "allowMissingTerminals" : true,
   "Solvent" : { "ionicStrength" : 0.250, "solventType" : "OBC", "useDebyeLength" : true } },
   "commands" : [ { "selectionToPerturb" : { "chains" : { "names" : [ "L", "M" ] } } } ] }"""
LIGAND = "resid 3"


def pdb_models(positions: np.ndarray) -> str:
    lines = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith("ATOM")]
    models = (
        "".join(f"{a[:30]}{x:8.3f}{y:8.3f}{z:8.3f}{a[54:]}\n" for a, (x, y, z) in zip(lines, there, strict=True))
        for there in positions
    )
    return "".join(f"MODEL {k}\n{text}ENDMDL\n" for k, text in enumerate(models, 1))


@pytest.fixture
def folder(tmp_path) -> Path:
    """Write three walkers in two epochs, one with an .xtc trajectory, and two poses each."""
    place = tmp_path / "run"
    positions = moving(pele_ocl.read(HEXAPEPTIDE).positions, 6).astype(np.float64).round(3)
    for k, name in enumerate(("0/report_2", "0/report_10", "1/report_1")):
        report = place / name
        report.parent.mkdir(parents=True, exist_ok=True)
        rows = [f"1    {row}    {row}    {-100 - k - row}    {row - k}    12.5    \n" for row in (0, 1)]
        report.write_text(HEADS + "".join(rows))
        target = report.with_name(report.name.replace("report", "trajectory") + (".xtc" if k == 1 else ".pdb"))
        if k == 1:
            write_trajectory(target, positions[2:4])
        else:
            target.write_text(pdb_models(positions[2 * k : 2 * k + 2]))
    (place / "pele.conf").write_text(CONTROL)
    return place


def binding(folder: Path, *more: object, code: int = 0) -> dict:
    words = ("rescore", folder, "--ligand", LIGAND, "--precision", "float64", *more)
    return json.loads(run(*words, "--json", code=code).stdout)


def exchanged(text: str, models: slice) -> str:
    """A trajectory with the lines of C and O of the first residue exchanged in some of its models."""
    parts = text.split("ENDMDL\n")
    for k in range(len(parts) - 1)[models]:
        lines = parts[k].splitlines(keepends=True)
        first, second = (next(k for k, line in enumerate(lines) if line[12:16] == f" {name}  ") for name in "CO")
        lines[first], lines[second] = lines[second], lines[first]
        parts[k] = "".join(lines)
    return "ENDMDL\n".join(parts)


def test_atoms_of_trajectories_are_found_by_name(folder):
    """Lines in another order give the same energies, and models of several orders a sentence."""
    path = folder / "1" / "trajectory_1.pdb"
    text, wanted = path.read_text(), binding(folder)["poses"]
    path.write_text(exchanged(text, slice(None)))
    assert binding(folder)["poses"] == wanted
    path.write_text(exchanged(text, slice(1, None)))
    poses = binding(folder, code=1)["poses"]
    assert poses[:4] == [{**pose, "rank": new["rank"]} for pose, new in zip(wanted, poses[:4], strict=False)]
    assert "is in the position of model 1's" in poses[4]["error"]


def test_a_run_is_found_in_its_folders(folder):
    found = find_run(folder)
    assert [walker.name for walker in found.walkers] == ["0/report_2", "0/report_10", "1/report_1"]
    assert [walker.trajectory.suffix for walker in found.walkers] == [".pdb", ".xtc", ".pdb"]
    assert found.control == folder / "pele.conf"
    assert read_control(found.control).ligand == "chain L M"
    (folder / "0" / "trajectory_10.xtc").unlink()
    with pytest.raises(FormatError, match=r"report_10: has no trajectory_10\.pdb or \.xtc next to it"):
        find_run(folder)
    shutil.rmtree(folder / "0")
    shutil.rmtree(folder / "1")
    with pytest.raises(FormatError, match="contains no report of PELE"):
        find_run(folder)


def test_poses_stand_beside_pele_s_own(folder, tmp_path):
    table = tmp_path / "poses.csv"
    found = binding(folder, "--reports", tmp_path / "new", "--plot", tmp_path / "p.png", "-o", table)
    atoms = pele_ocl.read(HEXAPEPTIDE, ForceField.load("AMBER99sb", "pele"))  # GB radii of pele.conf's solvent
    positions = moving(atoms.positions, 6).astype(np.float64).round(3)
    model = pele_ocl.SolventModel.like("pele", ionic_strength=0.25)
    plan = Binding(atoms, LIGAND, model=model, precision="float64")
    expected = plan.evaluate_batch(positions)
    poses = found["poses"]
    exact = [pose for pose in poses if pose["report"] != "0/report_10"]  # .xtc has 0.01 A
    assert [pose["binding"] for pose in exact] == pytest.approx(expected.total[[0, 1, 4, 5]].tolist(), abs=1e-6)
    assert [pose["total"] for pose in exact] == pytest.approx(expected.complex.total[[0, 1, 4, 5]], abs=1e-6)
    assert [pose["pele_binding"] for pose in poses] == [0, 1, -1, 0, -2, -1]
    order = np.argsort([pose["binding"] for pose in poses])
    assert [poses[k]["rank"] for k in order] == [1, 2, 3, 4, 5, 6]
    theirs, ours = (np.array([pose[name] for pose in poses]) for name in ("pele_binding", "binding"))
    agreement = found["agreement"]["binding energy"]
    assert agreement["correlation"] == pytest.approx(np.corrcoef(theirs, ours)[0, 1])
    assert agreement["offset"] == pytest.approx((ours - theirs).mean())
    new = read_report(tmp_path / "new" / "0" / "report_10")
    assert new.names == (*HEADS.split("    ")[:-1], "oclTotalEnergy", "oclBindingEnergy")
    assert [row[:6] for row in new.rows] == [
        ("1", "0", "0", "-101", "-1", "12.5"),
        ("1", "1", "1", "-102", "0", "12.5"),
    ]
    assert new.numbers("oclBindingEnergy") == pytest.approx([pose["binding"] for pose in poses[2:4]], rel=1e-8)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert table.read_text().count("\n0/report_") == 4
    text = run("rescore", folder, "--ligand", LIGAND).stdout
    assert "3 reports, 6 poses" in text
    assert "Binding energy  correlation" in text


def test_the_function_gives_what_the_command_prints_and_writes(folder, tmp_path):
    report = binding(folder, "-o", tmp_path / "a.csv")
    result = pele_ocl.rescore(folder, ligand=LIGAND, precision="float64")
    found = result.to_json()
    del report["seconds"]
    assert found == report
    result.save(tmp_path / "b.csv")
    tables = (
        [line for line in (tmp_path / name).read_text().splitlines() if line[0] != "#"] for name in ("a.csv", "b.csv")
    )
    assert len(set(map(tuple, tables))) == 1
    assert result.poses.best(1) == [report["poses"].index(next(of for of in report["poses"] if of["rank"] == 1))]
    assert "6 poses" in repr(result)
    assert "total 2.00 s" not in result.text()  # the total time is only known to the command
    assert "total 2.00 s" in result.text(total=2.0)
    assert "binding energy" in result.table().title.lower()
    (heads,) = (line for line in result.text().splitlines() if line.startswith("rank  "))
    assert heads.split() == ["rank", "report", "row", "binding", "PELE", "total", "PELE"]
    former = json.loads(run("binding", "--pele", folder, "--ligand", LIGAND, "--precision=float64", "--json").stdout)
    assert former["poses"] == report["poses"]


def test_water_is_in_the_receptor(folder):
    """PELE's binding energy divides a complex into the ligand and the rest."""
    positions = pele_ocl.read(HEXAPEPTIDE).positions[np.newaxis].astype(np.float64).round(3)
    places = positions[0, 0] + np.array([[-4.0, 0.0, 0.0], [-4.6, 0.757, 0.0], [-4.6, -0.757, 0.0]])
    water = "".join(
        f"HETATM  9{k:02d}  {name:<3s} HOH W   1    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00           {name[0]}\n"
        for k, (name, (x, y, z)) in enumerate(zip(("O", "H1", "H2"), places, strict=True))
    )
    trajectory = folder / "0" / "trajectory_2.pdb"
    trajectory.write_text(pdb_models(positions).replace("ENDMDL", water + "ENDMDL"))
    for name in ("0/report_10", "1/report_1"):
        (folder / name).unlink()
    (pose,) = binding(folder)["poses"]
    atoms = pele_ocl.read(trajectory, ForceField.load("AMBER99sb", "pele"))
    plan = pele_ocl.Energy(atoms, model=pele_ocl.SolventModel.like("pele", ionic_strength=0.25), precision="float64")
    assert pose["total"] == pytest.approx(plan.evaluate().energy["total"], abs=1e-6)


def test_a_clash_does_not_rank_first(folder):
    """Poses with energies of 1e9 kcal/mol could have any binding energy in float32, the default."""
    positions = moving(pele_ocl.read(HEXAPEPTIDE).positions, 2).astype(np.float64).round(3)
    positions[1, 4] = positions[1, 60] + [0.2, -0.1, 0.1]
    (folder / "0" / "trajectory_2.pdb").write_text(pdb_models(positions))
    words = ("rescore", folder, "--ligand", LIGAND, "--json")
    single, double = (json.loads(run(*words, "--precision", precision).stdout) for precision in ("float32", "float64"))
    for name in ("total", "binding"):
        ours, exact = ([pose[name] for pose in found["poses"]] for found in (single, double))
        assert ours == pytest.approx(exact, abs=0.5)
    assert double["poses"][1]["total"] > 1e6
    assert single["notes"] == ["atoms overlap in 1 pose, with very large energies"]


def test_a_walker_that_cannot_be_read_is_one_row(folder):
    (folder / "1" / "trajectory_1.pdb").write_text("ATOM garbage\n")
    (folder / "0" / "report_2").write_text(HEADS + "1    0    0    -1    -2    3\n")
    found = binding(folder, code=1)
    assert (found["n_poses"], found["n_failed"]) == (4, 1)
    assert found["poses"][-1]["error"].startswith(str(folder / "1" / "trajectory_1.pdb"))
    note = run("rescore", folder, "--ligand", LIGAND, code=1).stderr
    assert "report_2 has 1 rows, its trajectory 2 models; the first 1 are used" in note


def test_runs_go_on_and_shards_merge(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["pele-ocl", "binding"])
    table, part = tmp_path / "poses.csv", tmp_path / "poses.csv.part"
    words = ("-o", table, "--reports", tmp_path / "new")
    whole = binding(folder, *words)["poses"]
    alone = table.read_bytes()
    assert not part.exists()
    read, seen = spec.read_report, []

    def ends(path):
        seen.append(path)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return read(path)

    monkeypatch.setattr(spec, "read_report", ends)
    run("rescore", folder, "--ligand", LIGAND, "--precision", "float64", *words, "--json", code=130)
    assert part.read_bytes().count(b"\n") == 3
    table.unlink()
    assert binding(folder, *words, "--resume")["poses"] == whole
    assert (len(seen), table.read_bytes(), part.exists()) == (4, alone, False)
    assert len(read_report(tmp_path / "new" / "0" / "report_2")) == 2
    table.unlink()
    for k in (1, 2):
        binding(folder, *words, "--shard", f"{k}/2")
    shards = [tmp_path / f"poses.{k}of2.csv.part" for k in (2, 1)]
    assert "shards are missing" in error_of("merge", shards[0], "-o", table)
    merged = json.loads(run("merge", *shards, "-o", table, "--json").stdout)
    assert merged["poses"] == whole
    assert table.read_bytes() == alone
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("Task Step\n1 2\n", "is not a report of PELE"),
        (HEADS + "1    0    0    -1\n", ":2: has 4 values, the first line 6 names"),
        (HEADS + "1    0    0    x    1    2\n", "the column currentEnergy contains something other than numbers"),
    ],
)
def test_damaged_reports(text, message, tmp_path):
    path = tmp_path / "report_1"
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        read_report(path).numbers("currentEnergy")
    assert message in str(caught.value)


def test_reports_of_older_builds(folder):
    """Columns had other names before revision 12377; AdaptivePELE's tests have such reports."""
    for walker in find_run(folder).walkers:
        text = walker.report.read_text()
        walker.report.write_text(
            text.replace("numberOfAcceptedPeleSteps", "AcceptedSteps").replace("currentEnergy", "Energy")
        )
    found = binding(folder)
    assert [pose["pele_total"] for pose in found["poses"]] == [-100, -101, -101, -102, -102, -103]
    assert [pose["pele_binding"] for pose in found["poses"]] == [0, 1, -1, 0, -2, -1]
    assert found["agreement"]["total energy"]["n"] == 6


def test_the_control_file_beside_a_report_comes_first(folder, tmp_path):
    """AdaptivePELE's runs have PELE's own in each epoch, and one of AdaptivePELE's above."""
    (folder / "pele.conf").rename(folder / "0" / "originalControlFile_2.conf")
    (folder / "originalControlFile.conf").write_text('{ "spawning" : {} }')
    shutil.copy(folder / "0" / "originalControlFile_2.conf", folder / "1" / "originalControlFile_1.conf")
    found = find_run(folder)
    assert found.control == folder / "0" / "originalControlFile_2.conf"
    assert binding(folder)["settings"]["ionic_strength"] == 0.25
    (folder / "pele.conf").write_text(CONTROL.replace("0.250", "0.100"))
    assert binding(folder)["settings"]["ionic_strength"] == 0.25
    given = binding(folder, "--pele-conf", folder / "pele.conf")
    assert given["settings"]["ionic_strength"] == 0.1
    (folder / "1" / "originalControlFile_1.conf").write_text(CONTROL.replace("0.250", "0.100"))
    assert "originalControlFile_1.conf: its ionic strength differs from" in error_of("rescore", folder)
    words = ("--pele-conf", folder / "pele.conf", "--json")
    perturbed = run("rescore", folder, *words, code=1).stderr  # by which the ligand is named, too
    assert "chain L M" in perturbed


def test_data_of_the_run_s_folder_serve_its_epochs(folder):
    (folder / "pele.conf").rename(folder / "0" / "originalControlFile_2.conf")
    shutil.copytree(ROOT / "data" / "amber99sb", folder / "Data" / "Templates" / "AMBER99sb")
    assert find_run(folder).data == (folder / "Data",)
    (folder / "0" / "DataLocal").mkdir()
    assert find_run(folder).data == (folder / "Data", folder / "0" / "DataLocal")


def test_a_plot_that_cannot_be_drawn_fails_first(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(spec, "read_report", lambda path: pytest.fail("a pose was computed"))
    words = ("rescore", folder, "--ligand", LIGAND, "--plot")
    assert "pictures end in .png or .svg" in error_of(*words, tmp_path / "p.pdf")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pictures need matplotlib" in error_of(*words, tmp_path / "p.png")


def test_names_of_two_words_between_single_blanks(tmp_path):
    path = tmp_path / "report_1"
    path.write_text("#Task Step currentEnergy Binding Energy sasaLig\n1 0 -5 -2 0.5\n")
    assert read_report(path).names == ("#Task", "Step", "currentEnergy", "Binding Energy", "sasaLig")


def far_pairs(atoms):
    """Pairs of atoms whose groups are beyond their cutoff, written out."""
    groups = AtomGroups.of(atoms)
    members = [np.flatnonzero(groups.index == g) for g in range(len(groups))]
    centroids = np.array([atoms.positions[own].mean(axis=0) for own in members])
    charges = np.array([atoms.charges[own].sum() for own in members])
    far = []
    for a, own in enumerate(members):
        for b in range(a):
            cutoff = (15, 20, 30)[int(abs(charges[a]) > 0.5) + int(abs(charges[b]) > 0.5)]
            if np.linalg.norm(centroids[a] - centroids[b]) > cutoff:
                far += [(i, j) for i in own for j in members[b]]
    assert 0 < len(far) < len(atoms) ** 2 / 2
    return np.array(far).T


def left_out(atoms, model, radii):
    """Lennard-Jones, Coulomb and GB energy of these pairs, written out."""
    i, j = far_pairs(atoms)
    r = np.linalg.norm(atoms.positions[i] - atoms.positions[j], axis=1)
    born = radii[i] * radii[j]
    f = np.sqrt(r**2 + born * np.exp(-(r**2) / (4 * born)))
    charges = model.coulomb_constant * atoms.charges[i] * atoms.charges[j]
    s6 = ((atoms.lj_sigma[i] + atoms.lj_sigma[j]) / 2 / r) ** 6
    lennard_jones = 4 * np.sqrt(atoms.lj_epsilon[i] * atoms.lj_epsilon[j]) * (s6**2 - s6)
    return (lennard_jones + charges / r - charges / f * (1 - np.exp(-model.kappa * f) / 80)).sum()


@pytest.mark.parametrize(("precision", "within"), [("float64", 1e-8), ("float32", 2e-3)])
def test_what_is_left_out_are_all_nonbonded_energies_of_far_groups(precision, within):
    atoms = pele_ocl.read(ROOT / "data" / "structures" / "ubiquitin.pdb")
    model = pele_ocl.SolventModel.like("pele", ionic_strength=0.25)
    plan = Binding(atoms, "resid 70:76", model=model, precision=precision)
    poses = np.stack([atoms.positions, atoms.positions[:, ::-1] + 5.0])
    cut, whole = (PoseEvaluator(plan, has_cutoffs).evaluate(poses) for has_cutoffs in (True, False))
    born = {name: part.evaluate().born_radii for name, part in plan.plans.items()}
    expected = {name: left_out(part.atoms, model, born[name]) for name, part in plan.plans.items() if name != "ligand"}
    assert whole.total - cut.total == pytest.approx([expected["complex"]] * 2, abs=within)
    of_binding = expected["complex"] - expected["receptor"]  # the ligand is too small to have far groups
    assert whole.binding - cut.binding == pytest.approx([of_binding] * 2, abs=2 * within)


def test_bonded_atoms_of_far_groups_lose_no_energy_that_they_never_had():
    """Pairs 1-2 and 1-3 of a residue that two bonds cross have GB alone, however far its groups' centres are."""
    atoms = pele_ocl.read(HEXAPEPTIDE)
    stretched = atoms.moved(atoms.positions * 8.0)
    model = pele_ocl.SolventModel(gb="none")
    plan = Binding(stretched, LIGAND, model=model, precision="float64")
    cut, whole = (PoseEvaluator(plan, c).evaluate(stretched.positions[np.newaxis]) for c in (True, False))
    excluded = {tuple(sorted(pair)) for pair in nonbonded_pairs(atoms).excluded.tolist()}
    i, j = np.array([pair for pair in far_pairs(stretched).T.tolist() if tuple(sorted(pair)) not in excluded]).T
    assert len(i) < far_pairs(stretched).shape[1]
    r = np.linalg.norm(stretched.positions[i] - stretched.positions[j], axis=1)
    s6 = ((atoms.lj_sigma[i] + atoms.lj_sigma[j]) / 2 / r) ** 6
    expected = 4 * np.sqrt(atoms.lj_epsilon[i] * atoms.lj_epsilon[j]) * (s6**2 - s6)
    expected += model.coulomb_constant * atoms.charges[i] * atoms.charges[j] / r
    assert whole.total[0] - cut.total[0] == pytest.approx(expected.sum(), abs=1e-8)


def test_agreement_of_columns():
    theirs = np.array([1.0, 2.0, np.nan, 4.0])
    found = Agreement.of(theirs, 2 * theirs + 1)
    assert (found.n, found.correlation) == (3, pytest.approx(1))
    assert found.offset == pytest.approx(np.mean([2, 3, 5]))
    assert np.isnan(Agreement.of(theirs, np.ones(4)).correlation)


def test_mistakes_are_sentences(folder):
    assert "no such folder" in error_of("rescore", folder / "nowhere")
    words = ("rescore", folder, "--ligand", LIGAND, "--reports")
    assert "is not a folder" in error_of(*words, folder / "pele.conf")
    conf = folder / "pele.conf"
    conf.write_text(conf.read_text().replace("selectionToPerturb", "nothing"))
    assert "has no chains in selectionToPerturb; give the ligand as --ligand" in error_of("rescore", folder)
    (folder / "second.conf").write_text(CONTROL)
    (folder / "pele.conf").rename(folder / "first.conf")
    assert "contains 2 files .conf; expected one with the name pele.conf" in error_of("rescore", folder)


@needs_samples
def test_pele_s_own_rows(tmp_path):
    """PELE's first row, without cutoffs and with its groups'; docs/pele.md."""
    hetero = tmp_path / "DataLocal" / "Templates" / "OPLS2005" / "HeteroAtoms"
    hetero.mkdir(parents=True)
    shutil.copytree(SAMPLES / "OPLS2005", tmp_path / "Data" / "Templates" / "OPLS2005")
    shutil.copy(SAMPLES / "3ptb" / "aenz", hetero)
    for place, name in (("Data", "peleffy/solventParamsHCTOBC.txt"), ("DataLocal", "3ptb/aenz_obc_rows.txt")):
        (tmp_path / place / "OBC").mkdir()
        shutil.copy(SAMPLES / name, tmp_path / place / "OBC")
    for name in ("pele.conf", "report_1", "trajectory_1.pdb"):
        shutil.copy(SAMPLES / "3ptb" / name, tmp_path)
    words = ("rescore", tmp_path, "--precision", "float64", "--json")
    found = json.loads(run(*words).stdout)
    settings = found["settings"]
    assert (settings["ligand"], settings["group_cutoffs"], found["n_poses"]) == ("chain L", True, 6)
    first = found["poses"][0]
    assert (first["pele_total"], first["pele_binding"]) == (-528.63, 0.0147165)
    assert first["binding"] == pytest.approx(0.0147165, abs=0.00005)
    assert first["total"] == pytest.approx(-528.630, abs=0.002)
    assert found["agreement"]["binding energy"]["correlation"] > 0.97
    assert json.loads(run(*words, "--no-group-cutoffs").stdout)["poses"][0]["binding"] == pytest.approx(
        0.0147165, abs=0.005
    )
