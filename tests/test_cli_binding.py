"""`pele-ocl binding` as a user meets it."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from amber_helpers import ROOT, content, netcdf, rendered
from binding_helpers import LIGAND, N, complex_atoms, frames, write_complex
from test_cli import error_of, on_the_chosen_device, run
from trajectory_helpers import write_trajectory

import pele_ocl
from pele_ocl import Binding, InputError, SolventModel, read
from pele_ocl.binding.alanine import alanine_scan
from pele_ocl.binding.naming import amber_terms

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

DOUBLE = ("--precision", "float64", "--like", "mmpbsa.py")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_complex(tmp_path_factory.mktemp("complex"))


@pytest.fixture(scope="module")
def library():
    return Binding(complex_atoms(), LIGAND, like="mmpbsa.py", precision="float64").evaluate_batch(frames())


def over(files, *arguments, ligand=LIGAND):
    return run("binding", files[0], "-t", files[2], "--ligand", ligand, *DOUBLE, *arguments)


def test_json_has_what_the_library_finds(files, library):
    report = json.loads(over(files, "--json", "--entropy", "--idecomp", 4, "--alanine", "resname LYS").stdout)
    for system in ("complex", "receptor", "ligand", "delta"):
        terms = library.statistics()[system]
        assert list(report[system]) == list(terms)
        for term, of in terms.items():
            # the restart of the topology has seven decimals, of which nothing depends but the tiles
            assert report[system][term]["mean"] == pytest.approx(of.mean, abs=1e-8)
            assert {"sd", "sd_sample", "sem", "sem_blocked", "inefficiency"} <= set(report[system][term])
    amber = report["amber"]["delta"]
    parts = sum(amber[name]["mean"] for name in ("VDWAALS", "EEL", "EGB", "ESURF"))
    assert amber["TOTAL"]["mean"] == pytest.approx(parts, abs=1e-8)
    assert [row["frame"] for row in report["frames"]] == list(range(6))
    assert [row["energy"]["total"] for row in report["frames"]] == pytest.approx(library.total.tolist(), abs=1e-8)
    total = report["delta"]["total"]["mean"]
    assert sum(row["total"] for row in report["residues"]) == pytest.approx(total, abs=1e-8)
    both = [row["total"] * (1 if row["residues"][0] == row["residues"][1] else 2) for row in report["pairs"]]
    assert sum(both) == pytest.approx(total, abs=1e-4)
    assert report["entropy"]["n"] == 6
    assert [len(site["changes"]) for site in report["alanine"]] == [6, 6]
    assert report["settings"]["solvent_dielectric"] == 78.3
    assert report["settings"]["ligand"] == LIGAND


def test_text_is_for_reading(files, library):
    text = over(files, "--idecomp", 2).stdout
    assert "receptor 96 atoms, ligand 96: index 96:191" in text
    row = next(line.split() for line in text.splitlines() if line.startswith("TOTAL"))
    assert float(row[4]) == pytest.approx(library.total.mean(), abs=6e-4)
    assert "Strongest residues of 12" in text
    own = run("binding", files[0], "-c", files[1], "--ligand", LIGAND).stdout
    assert "gb pair" in own
    assert "SEM" not in own  # of one structure there is none


def test_files(files, tmp_path, library):
    pytest.importorskip("matplotlib")
    names = {"--residue-plot": "b.png", "--heat-map": "h.png", "--running-mean": "r.png", "--bfactor-pdb": "c.pdb"}
    options = [word for option, name in names.items() for word in (option, tmp_path / name)]
    over(files, "-o", tmp_path / "e.csv", "--decomposition", tmp_path / "d.csv", *options)
    assert all((tmp_path / name).stat().st_size > 1000 for name in names.values())
    lines = [line for line in (tmp_path / "e.csv").read_text().splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    assert [float(row["delta_TOTAL [kcal/mol]"]) for row in rows] == pytest.approx(library.total.tolist(), abs=1e-8)
    assert (tmp_path / "d.csv").read_text().startswith("idecomp = 4")


def test_columns_have_amber_s_names_where_the_constants_are_amber_s(files, tmp_path, library):
    out = tmp_path / "e.csv"
    report = json.loads(over(files, "-o", out, "--json").stdout)
    whole = out.read_bytes()
    (row, *_) = csv.DictReader(line for line in whole.decode().splitlines() if not line.startswith("#"))
    amber = amber_terms(library.delta)
    for name in ("BOND", "DIHED", "VDWAALS", "EEL", "1-4 EEL", "EGB", "ESURF", "GGAS", "GSOLV", "TOTAL"):
        assert float(row[f"delta_{name} [kcal/mol]"]) == pytest.approx(amber[name][0], abs=1e-8)
    assert "delta_gb_self [kcal/mol]" in row  # of which EGB is a sum
    assert "delta_coulomb [kcal/mol]" not in row
    out.write_bytes(b"".join(whole.splitlines(keepends=True)[:-2]))
    resumed = json.loads(over(files, "-o", out, "--json", "--resume").stdout)
    assert out.read_bytes() == whole
    assert resumed["frames"] == report["frames"]
    run("binding", files[0], "-c", files[1], "--ligand", LIGAND, "-o", out)
    assert "delta_coulomb [kcal/mol]" in out.read_text()


def test_all_models_are_scanned(files):
    plan = Binding(complex_atoms(), LIGAND, like="mmpbsa.py")
    both = alanine_scan(plan, frames(2), "resid 2")
    first = alanine_scan(plan, frames(1), "resid 2")
    assert both.changes.shape == (1, 2)
    assert both.changes[0, 0] == pytest.approx(first.changes[0, 0])
    assert both.frames.tolist() == [0, 1]


def test_two_runs_are_compared(files, tmp_path):
    (tmp_path / "one.json").write_text(over(files, "--json").stdout)
    report = json.loads(over(files, "--json", "--frames", "3:", "--compare", tmp_path / "one.json").stdout)
    one = json.loads((tmp_path / "one.json").read_text())["delta"]["total"]
    other = report["delta"]["total"]
    difference = report["compare"]["total"]
    assert difference["difference"] == pytest.approx(other["mean"] - one["mean"])
    assert difference["error"] == pytest.approx(np.hypot(other["sem"], one["sem_blocked"]))
    of_one = json.loads(over(files, "--json", "--frames", "3", "--compare", tmp_path / "one.json").stdout)
    assert of_one["compare"]["total"]["p_value"] is not None  # of the other run's error
    (tmp_path / "no.json").write_text("{}")
    assert "is not a JSON report of" in error_of("binding", files[0], "-c", files[1], "--ligand", LIGAND, "--compare",
                                         tmp_path / "no.json")  # fmt: skip


def test_three_trajectories(files, library):
    own = files[2].with_name("part.nc")
    own.write_bytes(netcdf(frames()[:, :N]))
    report = json.loads(over(files, "--json", "--receptor-trajectory", own).stdout)
    assert report["delta"]["total"]["mean"] == pytest.approx(library.total.mean(), abs=1e-8)
    assert "frames" not in report
    assert report["delta"]["total"]["sd"] > report["complex"]["total"]["sd"]


def test_poses_of_an_sdf_file(files, tmp_path):
    atoms, poses = complex_atoms(), frames(3)[:, N:]
    elements = atoms.labels.elements[N:]
    (tmp_path / "poses.sdf").write_text("".join(molecule(x, elements) for x in poses))
    options = ("-c", files[1], "--ligand", LIGAND, *DOUBLE, "--poses", tmp_path / "poses.sdf")
    report = json.loads(run("binding", files[0], *options, "--json").stdout)
    held = np.repeat(read(files[0], coordinates=files[1]).positions[np.newaxis], 3, axis=0)
    held[:, N:] = np.round(poses.astype(float), 4)
    found = Binding(atoms, LIGAND, like="mmpbsa.py", precision="float64").evaluate_batch(held)
    assert [row["energy"]["total"] for row in report["frames"]] == pytest.approx(found.total.tolist(), abs=1e-6)
    text = run("binding", files[0], *options).stdout
    assert "Binding energy of each pose" in text
    assert "SEM" not in text  # different poses have no mean
    assert "delta" not in report
    assert "energy" not in report
    (tmp_path / "poses.sdf").write_text(molecule(poses[0][::-1], elements[::-1]))
    other = json.loads(run("binding", files[0], *options, "--json").stdout)["frames"][0]
    assert other["energy"]["total"] == pytest.approx(found.total[0], abs=1e-6)
    bad = molecule(poses[0][:5], elements[:5]), molecule(poses[1], elements)
    (tmp_path / "poses.sdf").write_text("".join(bad))
    out = tmp_path / "poses.csv"
    done = run("binding", files[0], *options, "--json", "-o", out, code=1)
    report = json.loads(done.stdout)
    assert (report["n_frames"], report["n_failed"]) == (2, 1)
    assert "its poses have 5 atoms, the ligand 96" in report["frames"][0]["error"]
    assert report["frames"][1]["energy"]["total"] == pytest.approx(found.total[1], abs=1e-6)
    rows = list(csv.DictReader(line for line in out.read_text().splitlines() if not line.startswith("#")))
    assert [bool(row["error"]) for row in rows] == [True, False]
    assert [(row["frame"], row["pose"]) for row in rows] == [("0", "1"), ("1", "2")]
    assert (report["frames"][1]["frame"], report["frames"][1]["pose"]) == (1, 2)
    shown = run("binding", files[0], *options, code=1).stdout
    assert "from 1 in the order of the file" in shown
    heads, *rows = shown.split("file; 1 of 2 failed\n")[1].splitlines()[:3]
    assert heads.split()[:2] == ["pose", "title"]
    assert [row.split()[:2] for row in rows] == [["2", "pose"], ["1", "pose"]]
    assert "pose 1 (pose) failed: molecule 1: " in done.stderr
    (tmp_path / "poses.sdf").write_text("nothing\n")
    assert "is not a molecule of an SDF file" in error_of("binding", files[0], *options)


def molecule(x, elements):
    rows = "".join(f"{a:10.4f}{b:10.4f}{c:10.4f} {e:<3} 0  0\n" for (a, b, c), e in zip(x, elements, strict=True))
    return f"pose\n  by hand\n\n{len(x):3d}  0  0  0  0  0  0  0  0  0999 V2000\n{rows}M  END\n$$$$\n"


def test_several_ligands_each_without_the_others(files):
    atoms = complex_atoms()
    sizes = [int((atoms.labels.residue_index == k).sum()) for k in (11, 8)]
    ligands = ("resid 12", "resid 9")
    given = [word for ligand in ligands for word in ("--ligand", ligand)]
    reports = json.loads(run("binding", files[0], "-c", files[1], *given, "--json", *DOUBLE).stdout)["ligands"]
    assert [report["settings"]["ligand"] for report in reports] == list(ligands)
    assert [report["n_ligand"] for report in reports] == sizes
    assert {report["n_receptor"] for report in reports} == {2 * N - sum(sizes)}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--ligand", "resname XXX"), "selects no atoms"),
        (("--ligand", LIGAND, "--idecomp", 1, "--heat-map", "h.png"), "needs pairs of residues"),
        (("--ligand", LIGAND, "--decomposition", "d.txt"), "decompositions end in"),
        (("--ligand", LIGAND, "--alanine", "resname GLY"), "no selected residue can be"),
    ],
)
def test_mistakes_are_sentences(files, options, reason, monkeypatch):
    monkeypatch.chdir(files[0].parent)
    assert reason in error_of("binding", files[0], "-c", files[1], *options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--receptor-trajectory", "frames.nc"), "also need that of the complex"),
        (("--receptor-structure", "complex.rst7"), "is for a separate trajectory"),
        (("--poses", "frames.nc", "-t", "frames.nc"), "choose one of --poses and --trajectory"),
        (("-t", "frames.nc", "--ligand-trajectory", "frames.nc", "--entropy"), "--entropy needs receptor and ligand"),
        (("--ligand", "index 3", "-o", "out.csv"), "files can contain one ligand"),
        (("--ligand", "index 3", "--running-mean", "m.png"), "files can contain one ligand"),
        (("--ligand", "index 3", "-t", "frames.nc", "--workers", 2), "--workers distributes several structures"),
        (("-t", "frames.nc", "--ligand-trajectory", "frames.nc", "--workers", 2), "are read in one process"),
        (("-t", "frames.nc", "--ligand-trajectory", "frames.nc", "--running-mean", "m.png"), "--running-mean needs"),
        (("--poses", "frames.nc", "--alanine", "interface"), "choose one of --poses and --alanine"),
        (("--poses", "frames.nc", "--entropy"), "--entropy applies to means over frames"),
        (("--poses", "frames.nc", "--bars", "b.png"), "--idecomp applies to means over frames"),
        (("complex.rst7", "--bars", "b.png"), "and pictures need a single structure"),
    ],
)
def test_options_that_do_not_go_together(files, options, reason, monkeypatch):
    monkeypatch.chdir(files[0].parent)
    assert reason in run("binding", files[0], "-c", files[1], "--ligand", LIGAND, *options, code=2).stderr


def test_a_frame_that_fails_is_told(files, tmp_path):
    x = frames(3).astype(float)
    x[1, N:] += x[1, 0] - x[1, 100]  # whole, as a frame with torn bonds fails by another reason
    (tmp_path / "bad.nc").write_bytes(netcdf(x))
    done = run("binding", files[0], "-t", tmp_path / "bad.nc", "--ligand", LIGAND, *DOUBLE, "--json", code=1)
    report = json.loads(done.stdout)
    assert "frame 1 failed: complex: " in done.stderr
    assert (report["n_frames"], report["n_failed"], report["delta"]["total"]["n"]) == (3, 1, 2)
    assert "same position" in report["frames"][1]["error"]


def test_clashes_are_told(files, tmp_path):
    x = frames(3).astype(float)
    x[1, N:] += x[1, 4] - x[1, 100] + [0.2, 0.1, 0.0]
    (tmp_path / "clash.nc").write_bytes(netcdf(x))
    words = ("binding", files[0], "-t", tmp_path / "clash.nc", "--ligand", LIGAND, "--json")
    done = run(*words)
    sentence = "atoms overlap in 1 frame, with very large energies"
    assert f"Note: {sentence}; they were computed in float64\n" in done.stderr
    assert json.loads(done.stdout)["notes"][1:] == [f"{sentence}; they were computed in float64"]  # behind SEM blocks
    assert json.loads(run(*words, "--precision", "float64").stdout)["notes"][1:] == [sentence]
    assert json.loads(run(*words, "--frames", "2").stdout)["notes"] == []


HEXAPEPTIDE = ROOT / "data" / "structures" / "hexapeptide.pdb"
IONS = (("NA", "NA", "NA"), ("CL", "CL", "CL"), ("K", "K", "K"), ("ZN", "ZN", "ZN"))


def salted(path, with_water):
    """Put four ions around the hexapeptide, and perhaps a water."""
    lines = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith("ATOM")]
    others = [(name, name, element) for name, _, element in IONS]
    others += [("O", "HOH", "O"), ("H1", "HOH", "H"), ("H2", "HOH", "H")] if with_water else []
    places = [(15.0, 0, 0), (-15.0, 0, 0), (0, 15.0, 0), (0, -15.0, 0), (0, 0, 20.0)]
    places += [(0.96, 0, 20.0), (-0.24, 0.93, 20.0)]
    for k, ((name, residue, element), (x, y, z)) in enumerate(zip(others, places, strict=False)):
        number = 101 + min(k, 4)
        lines.append(
            f"HETATM{200 + k:5d} {name:^4s} {residue:>3s} B{number:4d}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00"
            f"          {element:>2s}"
        )
    path.write_text("\n".join([*lines, "END", ""]))
    return path


def parts_of(path, *options, ligand="resid 3"):
    done = run("binding", path, "--ligand", ligand, "--json", "--gb", "obc2", "--surface", "ace", *options)
    report = json.loads(done.stdout)
    return report["left_out"], report["n_receptor"] + report["n_ligand"], report["notes"], done.stderr


def test_ions_are_stripped_as_the_programs_strip_them(tmp_path):
    """MMPBSA.py's strip_mask is of solvated topologies; gmx_MMPBSA takes no ions at all. Neither strips zinc."""
    wet, dry = salted(tmp_path / "wet.pdb", True), salted(tmp_path / "dry.pdb", False)
    ions, water = {"NA": 1, "CL": 1, "K": 1}, {"HOH": 1}
    for like in ("mmpbsa.py", "sander", "gmx"):
        left_out, n, notes, shown = parts_of(wet, "--like", like)
        assert (left_out, n) == ({**ions, **water}, 97)
        name = "gmx_MMPBSA" if like == "gmx" else "MMPBSA.py"
        sentence = f"3 atoms (1 NA, 1 CL, 1 K) are left out, as {name} does; "
        assert any(own.startswith(sentence) for own in notes)
        assert f"Note: {sentence}" in shown
    assert parts_of(dry, "--like", "gmx")[:2] == (ions, 97)
    left_out, n, notes, _ = parts_of(dry, "--like", "mmpbsa.py")
    assert (left_out, n) == ({}, 100)
    assert any(
        "3 atoms (1 NA, 1 CL, 1 K) are kept, because MMPBSA.py strips topologies with water alone" in of for of in notes
    )
    for like in ("amber", "openmm", "pele"):
        assert parts_of(wet, "--like", like)[:2] == (water, 100)


def test_what_is_stripped_is_a_choice(tmp_path):
    wet = salted(tmp_path / "wet.pdb", True)
    words = ("--like", "mmpbsa.py")
    assert parts_of(wet, *words, "--strip", "none")[:2] == ({"HOH": 1}, 100)
    assert parts_of(wet, *words, "--strip", "resname ZN CL")[:2] == ({"CL": 1, "ZN": 1, "HOH": 1}, 98)
    left_out, n, notes, shown = parts_of(wet, *words, "--receptor", "chain A and not resid 3 or resname NA")
    assert (left_out, n) == ({"CL": 1, "K": 1, "ZN": 1, "HOH": 1}, 97)
    sentence = "6 atoms (1 CL, 1 K, 1 ZN, 1 HOH) are in neither receptor nor ligand, and left out"
    assert sentence in notes
    assert f"Note: {sentence}" in shown
    assert any("ions that may belong to the structure (1 ZN)" in of for of in notes)
    assert parts_of(wet, *words, ligand="resname NA")[:2] == ({"CL": 1, "K": 1, "HOH": 1}, 98)  # a ligand stays
    shown = run("binding", wet, "--ligand", "resid 3", "--receptor", "chain A", "--strip", "none", code=2).stderr
    assert "choose one of --receptor and --strip" in shown


def test_residues_that_cannot_become_alanine_are_named(files):
    done = over(files, "--alanine", "resid 1:6", "--frames", "0", "--json")
    report = json.loads(done.stdout)
    sites = {site["residue"] for site in report["alanine"]}
    assert [of["reason"] for of in report["alanine_left_out"]] == ["has no side chain"]
    for left_out in report["alanine_left_out"]:
        assert left_out["residue"] not in sites
        assert f"{left_out['residue']} {left_out['reason']}" in done.stderr
        assert any(left_out["reason"] in note for note in report["notes"])


def test_several_ligands_are_stripped_of_ions_each(tmp_path):
    wet = salted(tmp_path / "wet.pdb", True)
    ligands = ("--ligand", "resid 3", "--ligand", "resid 5")
    words = ("--like", "gmx", "--surface", "none", "--json")
    reports = json.loads(run("binding", wet, *ligands, *words).stdout)["ligands"]
    for report, other in zip(reports, reversed(reports), strict=True):
        assert report["n_receptor"] + report["n_ligand"] + other["n_ligand"] == 97
        assert {"NA", "CL", "K", "HOH"} < set(report["left_out"])


def test_plans_strip_as_the_program_whose_name_they_get(tmp_path):
    atoms = read(salted(tmp_path / "wet.pdb", True))
    model = SolventModel.like("gmx", surface="none")
    assert len(Binding(atoms[atoms.selected("not resname ZN")], "resid 3", like="gmx").atoms) == 96
    assert len(Binding(atoms, "resid 3", model=model, strip_like="gmx").atoms) == 97
    assert len(Binding(atoms, "resid 3", model=model, strip_like="gmx", strip="none").atoms) == 100
    assert len(Binding(atoms, "resid 3", model=model, strip=[96]).atoms) == 99
    with pytest.raises(InputError, match="choose one of receptor and strip"):
        Binding(atoms, "resid 3", "resid 4", strip="none")


@pytest.mark.parametrize("suffix", [".nc", ".mdcrd"])
def test_three_trajectories_with_topologies_of_their_own(files, tmp_path, suffix):
    """MMPBSA.py has them by -cp, -rp, -lp, -y, -yr and -yl, of different numbers of frames."""
    whole, x = tmp_path / f"c{suffix}", frames(4)
    part, other = tmp_path / f"r{suffix}", tmp_path / f"l{suffix}"
    for path, positions in ((whole, x), (part, x[:3, :N] + 0.5), (other, x[1:, N:])):
        write_trajectory(path, positions)
    (tmp_path / "part.parm7").write_text(rendered(content()))
    words = ("binding", files[0], "-t", whole, "--ligand", LIGAND, *DOUBLE)
    parts = ("--receptor-trajectory", part, "--receptor-structure", tmp_path / "part.parm7")
    parts += ("--ligand-trajectory", other, "--ligand-structure", tmp_path / "part.parm7")
    report = json.loads(run(*words, *parts, "--json", "-o", tmp_path / "out.csv").stdout)
    found = Binding(complex_atoms(), LIGAND, like="mmpbsa.py", precision="float64").evaluate_batch(x)
    means = {"complex": found.complex.total, "receptor": found.receptor.total[:3], "ligand": found.ligand.total[1:]}
    digits = 2e-3 if suffix == ".nc" else 1.0  # .mdcrd has three decimals, by which strained bonds change
    for name, of in means.items():
        assert report[name]["total"]["mean"] == pytest.approx(of.mean(), abs=digits)
        assert report["amber"][name]["TOTAL"]["mean"] == pytest.approx(report[name]["total"]["mean"])
    expected = means["complex"].mean() - means["receptor"].mean() - means["ligand"].mean()
    assert report["amber"]["delta"]["TOTAL"]["mean"] == pytest.approx(expected, abs=2 * digits)
    assert report["n_frames"] == 4
    assert {name: of["n_frames"] for name, of in report["trajectories"].items()} == {
        "complex": 4,
        "receptor": 3,
        "ligand": 3,
    }
    lines = [line for line in (tmp_path / "out.csv").read_text().splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    assert [(row["system"], row["frame"]) for row in rows] == [
        *(("complex", str(k)) for k in range(4)),
        *((name, str(k)) for name in ("receptor", "ligand") for k in range(3)),
    ]
    totals = [float(row["TOTAL [kcal/mol]"]) for row in rows]
    assert totals == pytest.approx(np.concatenate(list(means.values())).tolist(), abs=4 * digits)
    text = run(*words, *parts).stdout
    assert "EGB" in text
    without = json.loads(run(*words, *parts[:2], *parts[4:6], "--json").stdout)  # of IN's atoms
    assert without["delta"]["total"]["mean"] == pytest.approx(expected, abs=3 * digits)


def test_frames_of_the_complex_may_have_other_atoms_where_parts_have_their_own(files, tmp_path):
    """Frames of the complex in an .mdcrd file, and of the receptor, have some atoms of the structure."""
    write_trajectory(tmp_path / "c.mdcrd", frames(2))
    write_trajectory(tmp_path / "l.nc", frames(2)[:, N:])
    words = ("binding", files[0], "-t", tmp_path / "c.mdcrd", "--ligand-trajectory", tmp_path / "l.nc")
    ligand = ("--select", "not resid 2", "--ligand", "resid 7:12", "--json", *DOUBLE)
    report = json.loads(run(*words, *ligand).stdout)
    assert report["n_receptor"] < N


def test_a_frame_of_a_part_that_fails_is_told(files, tmp_path):
    x = frames(3)[:, :N].astype(float)
    x[1, 0] = x[1, 50]
    write_trajectory(tmp_path / "r.nc", x)
    done = run(
        "binding", files[0], "-t", files[2], "--receptor-trajectory", tmp_path / "r.nc", "--ligand", LIGAND, *DOUBLE,
        "--json", code=1,
    )  # fmt: skip
    assert "Error: receptor: frame 1 failed: " in done.stderr
    report = json.loads(done.stdout)
    assert report["n_failed"] == 1
    assert [of["n_failed"] for of in report["trajectories"].values()] == [0, 1, 0]


# The function, which the command calls


def timeless(report):
    """A report without times, which differ from run to run."""
    if isinstance(report, dict):
        return {name: timeless(of) for name, of in report.items() if name != "seconds"}
    return [timeless(of) for of in report] if isinstance(report, list) else report


def rows_in(path):
    """Lines of a table, without the head that says how it was made."""
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


OPTIONS = {"like": "mmpbsa.py", "precision": "float64"}


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (("--entropy", "--idecomp", 2), {"entropy": True, "idecomp": 2}),
        (("--alanine", "resname LYS", "--frames", ":2"), {"alanine": "resname LYS", "frames": ":2"}),
        (("--receptor-trajectory", "part.nc"), {"receptor_trajectory": "part.nc"}),
    ],
)
def test_the_function_gives_what_the_command_prints_and_writes(files, tmp_path, monkeypatch, words, options):
    monkeypatch.chdir(files[0].parent)
    (files[0].parent / "part.nc").write_bytes(netcdf(frames()[:, :N]))
    report = json.loads(over(files, *words, "--json", "-o", tmp_path / "a.csv").stdout)
    result = pele_ocl.binding(files[0], LIGAND, trajectory=files[2], **OPTIONS, **options)
    assert timeless(result.to_json()) == timeless(report)
    result.save(tmp_path / "b.csv")
    assert rows_in(tmp_path / "a.csv") == rows_in(tmp_path / "b.csv")
    assert result.total == report["delta"]["total"]["mean"]
    assert "BindingResult: receptor of 96 atoms" in repr(result)
    assert "<table>" in result._repr_html_()
    assert result.table()["delta"][-1] == pytest.approx(result.total)


def test_several_ligands_and_poses_in_python(files, tmp_path):
    reading = pele_ocl.jobs.Reading(coordinates=str(files[1]))
    words = ("binding", files[0], "-c", files[1], *DOUBLE)
    ligands = ["resid 12", "resid 9"]
    each = pele_ocl.binding(files[0], ligands, reading=reading, **OPTIONS)
    report = json.loads(run(*words, "--ligand", ligands[0], "--ligand", ligands[1], "--json").stdout)
    assert timeless(each.to_json()) == timeless(report)
    assert [of.n_frames for of in each] == [1, 1]
    elements, poses = complex_atoms().labels.elements[N:], frames(2)[:, N:]
    (tmp_path / "poses.sdf").write_text("".join(molecule(x, elements) for x in poses))
    result = pele_ocl.binding(files[0], LIGAND, poses=tmp_path / "poses.sdf", reading=reading, **OPTIONS)
    report = json.loads(run(*words, "--ligand", LIGAND, "--poses", tmp_path / "poses.sdf", "--json").stdout)
    assert timeless(result.to_json()) == timeless(report)
    assert result.total.shape == (2,)
    assert len(result.table()) == 2


def test_atoms_have_the_binding_energy_of_their_file(files):
    atoms = complex_atoms()
    result = pele_ocl.binding(atoms, LIGAND, **OPTIONS)
    assert result.total == pytest.approx(float(Binding(atoms, LIGAND, **OPTIONS).evaluate().total), abs=1e-9)
    over_frames = pele_ocl.binding(atoms, LIGAND, trajectory=files[2], **OPTIONS)
    assert over_frames.n_frames == 6
    with pytest.raises(InputError, match="`spacing` needs `pb`"):
        pele_ocl.binding(atoms, LIGAND, spacing=1.0)
    with pytest.raises(InputError, match="choose one of `receptor` and `strip`"):
        pele_ocl.binding(atoms, LIGAND, "resid 1", strip="none")


def test_former_names_of_options_still_work(files, tmp_path):
    pytest.importorskip("matplotlib")
    over(files, "--bars", tmp_path / "old.png", "--frames", ":1")
    assert (tmp_path / "old.png").read_bytes().startswith(b"\x89PNG")
    assert "--bars" not in run("binding", "--help-all").stdout


def test_examples_in_docstrings():
    import doctest

    runner, finder = doctest.DocTestRunner(), doctest.DocTestFinder()
    for test in finder.find(pele_ocl.binding._function, "binding", globs={}):
        runner.run(test)
    assert (runner.failures, runner.tries > 3) == (0, True)


def test_an_empty_column_of_errors_is_explained(files):
    sentence = "SEM blocks (sem_blocked) is empty, because block averages need 4 frames or more"
    few = over(files, "--frames", "0:3")
    assert few.stderr.count(sentence) == 1
    report = json.loads(over(files, "--frames", "0:3", "--json").stdout)
    assert report["delta"]["total"]["sem_blocked"] is None
    assert report["notes"].count(sentence) == 1
    for frames_of in ("0:1", "0:4"):
        assert sentence not in over(files, "--frames", frames_of).stderr
    found = pele_ocl.binding(files[0], trajectory=files[2], ligand=LIGAND, frames="0:3")
    assert str(found.table()).splitlines()[-1] == sentence
    assert found.table().to_json()["notes"] == [sentence]
