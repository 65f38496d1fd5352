"""Poses refined: clashes go, poses keep to themselves, tables and files, runs that go on."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from conftest import DEVICES
from rdkit import Chem
from test_cli import error_of, on_the_chosen_device, run
from test_screen import with_a_residue

import pele_ocl
from pele_ocl import Binding, Refiner, RefineSpec
from pele_ocl.binding.poses import evaluate_poses
from pele_ocl.common.errors import FormatError, InputError, ParameterError, PeleError
from pele_ocl.explore.example import write_example
from pele_ocl.explore.poses import CLASH, clashes_of, ranks_of
from pele_ocl.jobs.journal import read_journal

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

STRUCTURES = Path(pele_ocl.__file__).parent.parent / "data" / "structures"
LIGAND = "chain B"
SHIFT = np.array([4.0, 9.0, 3.0])  # A, from where trialanine is in its file to beside hexapeptide


@pytest.fixture(scope="module")
def complex_file(tmp_path_factory) -> Path:
    """Write hexapeptide as chain A and trialanine beside it as chain B."""
    lines = []
    for name, chain, shift in (("hexapeptide", "A", np.zeros(3)), ("trialanine", "B", SHIFT)):
        positions = pele_ocl.read(STRUCTURES / f"{name}.pdb").positions
        centre = positions.mean(axis=0)
        atoms = [line for line in (STRUCTURES / f"{name}.pdb").read_text().splitlines() if line.startswith("ATOM")]
        for line, (x, y, z) in zip(atoms, positions - centre + shift, strict=True):
            lines.append(f"{line[:21]}{chain}{line[22:30]}{x:8.3f}{y:8.3f}{z:8.3f}{line[54:]}")
        lines.append("TER")
    path = tmp_path_factory.mktemp("refine") / "complex.pdb"
    path.write_text("\n".join([*lines, "END", ""]))
    return path


@pytest.fixture(scope="module")
def atoms(complex_file):
    return pele_ocl.read(complex_file)


@pytest.fixture(scope="module")
def refiner(atoms):
    return Refiner(atoms, LIGAND, moving_radius=6.0, max_iterations=60, device=DEVICES[0])  # before a test chooses it


@pytest.fixture(scope="module")
def poses(atoms, refiner):
    """Give the ligand as it is, pushed into the receptor, and turned over beside it."""
    own = atoms.positions[refiner.ligand]
    receptor = atoms.positions[refiner.receptor].mean(axis=0)
    inwards = receptor - own.mean(axis=0)
    turned = 2 * own.mean(axis=0) - own[:, [0, 1, 2]] * [1, 1, -1] - [0, 0, 2 * own.mean(axis=0)[2]]
    return np.stack([own, own + 0.45 * inwards, turned])


@pytest.fixture(scope="module")
def refined(refiner, poses):
    return refiner.refine(poses)


def test_clashes_go_and_poses_stay_near(refined):
    assert refined.before.clashes[1] > 0
    assert (refined.after.clashes == 0).all()
    assert (refined.after.closest >= CLASH).all()
    assert (refined.after.total < refined.before.total).all()
    assert refined.after.binding[1] < min(0, refined.before.binding[1])
    assert (refined.moved < 3.0).all()
    assert (refined.iterations > 0).all()
    assert (refined.after.strain > -1e-3).all()
    assert sorted(refined.ranks) == [1, 2, 3]
    assert ((refined.side_chains > 0) == (refined.before.clashes > 0)).all()


def test_atoms_are_held(atoms, poses, refined):
    held = {"restraint": 100.0, "free_radius": 0.0}
    firmly = Refiner(atoms, LIGAND, moving_radius=6.0, max_iterations=60, **held).refine(poses[:1])
    assert firmly.moved[0] < 0.5 * refined.moved[0]


def test_bare_hydrogens_are_guarded(atoms):
    bare = np.arange(len(atoms)) == np.flatnonzero(atoms.labels.elements == "H")[0]
    guarded = Refiner(replace(atoms, lj_epsilon=np.where(bare, 0.0, atoms.lj_epsilon)), LIGAND)._guarded
    assert (guarded.lj_sigma > 0).all()
    assert (guarded.lj_epsilon > 0).all()
    assert np.array_equal(guarded.lj_epsilon[~bare], atoms.lj_epsilon[~bare])


def test_what_is_far_stays_where_it_is(atoms, refiner, poses, refined):
    for k, start in enumerate(refiner.complexes(poses)):
        moving = refiner.moving(start)
        assert moving[refiner.ligand].all()
        apart = np.linalg.norm(start[:, None] - start[refiner.ligand], axis=2).min(axis=1)
        assert moving[apart <= 6.0].all()
        assert np.abs(refined.positions[k] - start)[~moving].max(initial=0) < 1e-4
        assert np.abs(refined.positions[k] - start)[moving].max() > 0.05


def test_a_pose_depends_on_itself_alone(refiner, poses, refined):
    alone = refiner.refine(poses[1:2])
    reversed_ = refiner.refine(poses[::-1])
    assert np.array_equal(alone.positions[0], refined.positions[1])
    assert np.array_equal(reversed_.positions[::-1], refined.positions)
    assert alone.after.row(0) == refined.after.row(1)


def test_a_pose_that_fails_is_a_record(refiner, poses, refined):
    bad = poses.copy()
    bad[0, 3] = bad[0, 4]
    found = refiner.refine(bad, errors="record")
    assert list(found.errors) == [0]
    assert "same position" in found.errors[0]
    assert np.isnan(found.positions[0]).all()
    assert found.ranks[0] == 0
    assert np.array_equal(found.positions[1:], refined.positions[1:])
    with pytest.raises(InputError, match="pose 0: "):
        refiner.refine(bad)


def test_measures_against_their_definitions(atoms, refiner, refined):
    binding = pele_ocl.Binding(atoms, LIGAND)
    for k, positions in enumerate(refined.positions):
        assert refined.after.binding[k] == pytest.approx(binding.evaluate(positions).delta.total, abs=2e-3)
        ligand = atoms[refiner.ligand].moved(positions[refiner.ligand])
        relaxed = pele_ocl.minimize(ligand, tolerance=0.05, max_iterations=500)
        strain = pele_ocl.energy(ligand).total - relaxed.total
        assert refined.after.strain[k] == pytest.approx(strain, abs=0.05)


def test_clashes_are_of_heavy_atoms_that_no_bonds_join(atoms, refiner):
    moved = atoms.positions.copy()
    oxygen = next(i for i in refiner.ligand if atoms.labels.elements[i] == "O")
    carbon = next(i for i in refiner.receptor if atoms.labels.elements[i] == "C")
    before = clashes_of(atoms, refiner.ligand, refiner.receptor, [moved])[0][0]
    moved[oxygen] = moved[carbon] + [0.74 * (1.52 + 1.70), 0, 0]
    there = clashes_of(atoms, np.array([oxygen]), np.array([carbon]), [moved])
    assert (there[0][0], there[1][0]) == (1, pytest.approx(0.74))
    moved[oxygen] = moved[carbon] + [0.76 * (1.52 + 1.70), 0, 0]
    assert clashes_of(atoms, np.array([oxygen]), np.array([carbon]), [moved])[0][0] == 0
    assert before == 0
    own = refiner.receptor
    parts = own[atoms.labels.residue_numbers[own] == 1], own[atoms.labels.residue_numbers[own] != 1]
    assert clashes_of(atoms, *parts, [atoms.positions])[0][0] == 0  # though C and N are bonded


def test_cofactors_are_no_backbone(atoms):
    names = np.where(atoms.labels.residue_numbers == 2, "COF", atoms.labels.residue_names)
    changed = replace(atoms, labels=replace(atoms.labels, residue_names=names))
    own, other = (Refiner(of, LIGAND, moving_radius=6.0, max_iterations=0)._held for of in (atoms, changed))
    assert own[names == "COF"].sum() >= 3
    assert not other[(names == "COF") & (atoms.labels.chains == "A")].any()
    assert np.array_equal(own[names != "COF"], other[names != "COF"])


def test_another_small_molecule_where_the_ligand_is_is_refused(atoms, refiner, poses):
    """Of a receptor that kept the ligand of its crystal."""
    copy = atoms[refiner.ligand]
    both = with_a_residue(atoms, copy.moved(copy.positions + 0.2))
    ligand = np.asarray(refiner.ligand)
    whole = Refiner(both, ligand, max_iterations=2, moving_radius=1.0, device=DEVICES[0])
    found = whole.refine([poses[0], poses[0] + 60.0], errors="record")
    assert list(found.errors) == [0]
    assert "L:LIG99" in found.errors[0]
    assert "`without='LIG'`" in found.errors[0]
    energies = evaluate_poses(Binding(both, ligand, device=DEVICES[0]), np.stack([poses[0], poses[0] + 60.0]))
    assert energies.errors == {0: found.errors[0]}
    assert np.isfinite(energies.total).tolist() == [False, True]


def test_ranks():
    assert ranks_of(np.array([-1.0, np.nan, -5.0, 2.0])).tolist() == [2, 0, 1, 3]


def test_poses_of_another_shape_are_refused(refiner):
    with pytest.raises(InputError, match=r"poses have shape \(2, 5, 3\)"):
        refiner.refine(np.zeros((2, 5, 3)))
    with pytest.raises(InputError):
        Refiner(refiner.atoms, LIGAND, moving_radius=-1)


def models(atoms, positions) -> str:
    """Write the ligand's atoms at several positions as models of a PDB file."""
    lines = []
    for k, own in enumerate(positions, 1):
        lines.append(f"MODEL {k}")
        for i, (x, y, z) in enumerate(own):
            name, residue, number = (
                of[i] for of in (atoms.labels.names, atoms.labels.residue_names, atoms.labels.residue_numbers)
            )
            shown = name if len(name) == 4 else f" {name:<3s}"
            lines.append(f"ATOM  {i + 1:5d} {shown} {residue:3s} B{number:4d}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00")
        lines.append("ENDMDL")
    return "\n".join([*lines, "END", ""])


@pytest.fixture(scope="module")
def pose_file(atoms, refiner, poses, complex_file) -> Path:
    path = complex_file.with_name("poses.pdb")
    path.write_text(models(atoms[refiner.ligand], poses))
    return path


def refine(*words, code=0):
    return run("refine", *words, "--ligand", LIGAND, "--moving-radius", "6", "--max-iterations", "60", code=code)


def test_the_command_and_its_files(complex_file, pose_file, tmp_path):
    out = tmp_path / "out"
    native = complex_file.with_name("native.pdb")
    native.write_text(pose_file.read_text().split("ENDMDL")[0] + "ENDMDL\nEND\n")
    found = json.loads(refine(complex_file, pose_file, "-o", out, "--native", native, "--json").stdout)
    assert (found["n_poses"], found["n_failed"], found["schema"]) == (3, 0, 2)
    assert [pose["pose"] for pose in found["poses"]] == ["poses_1", "poses_2", "poses_3"]
    assert found["settings"]["ligand"] == LIGAND
    first, pushed = found["poses"][:2]
    assert first["rmsd_before"] == pytest.approx(0, abs=1e-3)
    assert pushed["before"]["clashes"] > 0 == pushed["after"]["clashes"]
    table = (out / "refine.csv").read_text().splitlines()
    by_rank = [pose["pose"] for pose in sorted(found["poses"], key=lambda pose: pose["rank"])]
    assert [line.split(",")[0] for line in table if not line.startswith("#")] == ["pose", *by_rank]
    heads, *rows = [line.split(",") for line in table if not line.startswith("#")]
    counts = [row[heads.index(f"clashes_{when}")] for row in rows for when in ("before", "after")]
    assert all(count.isdecimal() for count in counts)  # whole, as side chains are
    written = pele_ocl.read(out / "poses_2.pdb")
    own = pele_ocl.Binding(written, LIGAND).evaluate().delta.total
    assert own == pytest.approx(pushed["after"]["binding"], abs=0.3)  # of positions of three digits
    page = (out / "index.html").read_text()
    data = json.loads(re.search(r'type="application/json">(.*?)</script>', page, re.DOTALL)[1])
    assert data["columns"]["binding"]["values"] == pytest.approx([pose["after"]["binding"] for pose in found["poses"]])
    assert data["axes"] == ["rmsd", "score"]
    assert data["chosen"] == int(np.argmin(data["columns"]["score"]["values"]))
    scores = [pose["after"]["score"] for pose in found["poses"]]
    assert scores == [pose["after"]["binding"] + pose["after"]["strain"] for pose in found["poses"]]
    assert [pose["rank"] for pose in found["poses"]] == (np.argsort(np.argsort(scores)) + 1).tolist()
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")


def test_an_earlier_run_is_replaced_if_asked(complex_file, pose_file, tmp_path):
    out = tmp_path / "out"
    refine(complex_file, pose_file, "-o", out)
    assert (out / "poses_3.pdb").exists()
    refine(complex_file, "-o", out, "--overwrite")
    assert not (out / "poses_3.pdb").exists()
    assert len(read_journal(out / "refine.jsonl").records) == 1
    written = next(out.glob("*.pdb"))
    with pytest.raises(FormatError, match="the same file as the input"):
        pele_ocl.refine(written, ligand=LIGAND, output=out, overwrite=True, max_iterations=1)
    assert written.exists()
    for more in (
        {"poses": tmp_path / "none.sdf"},
        {"free_radius": 99.0, "restraint": -1},
        {"native": pose_file.with_name("none")},
    ):
        with pytest.raises(PeleError):
            pele_ocl.refine(complex_file, ligand=LIGAND, output=out, overwrite=True, max_iterations=1, **more)
        assert written.exists()  # a run that is refused does not remove an earlier one
    if find_spec("distributed") is not None:  # workers that cannot connect do not remove it either
        nowhere = str(tmp_path / "none.json")
        with pytest.raises(InputError, match=r"none\.json"):
            pele_ocl.refine(complex_file, ligand=LIGAND, output=out, overwrite=True, scheduler=nowhere)
        assert written.exists()
    both = run("refine", complex_file, "--ligand", LIGAND, "-o", out, "--resume", "--overwrite", code=2)
    assert "choose one of --resume and --overwrite" in both.stderr


def test_a_run_goes_on_where_it_ended(complex_file, pose_file, tmp_path):
    out = tmp_path / "out"
    refine(complex_file, pose_file, "-o", out)
    journal, table = out / "refine.jsonl", out / "refine.csv"
    whole, rows = journal.read_text(), numbers_of(table)
    words = ("refine", complex_file, pose_file, "--ligand", LIGAND, "-o", out)
    assert "already contains refined poses; continue it with --resume, replace it with --overwrite" in error_of(*words)
    journal.write_text("".join(whole.splitlines(keepends=True)[:2]))
    (out / "poses_3.pdb").unlink()
    first = (out / "poses_1.pdb").read_text()
    (out / "poses_1.pdb").write_text("changed by somebody else\n")
    table.unlink()
    text = refine(complex_file, pose_file, "-o", out, "--resume").stdout
    assert "3 poses" in text
    assert numbers_of(table) == rows
    assert (out / "poses_3.pdb").exists()
    assert (out / "poses_1.pdb").read_text() == first


def numbers_of(table: Path) -> list[str]:
    return [line for line in table.read_text().splitlines() if not line.startswith("#")]


@pytest.mark.slow
def test_workers_find_the_same(complex_file, pose_file, tmp_path):
    refine(complex_file, pose_file, "-o", tmp_path / "here")
    refine(complex_file, pose_file, "-o", tmp_path / "there", "--workers", "2")
    for k in (1, 2, 3):
        assert (tmp_path / "here" / f"poses_{k}.pdb").read_bytes() == (
            tmp_path / "there" / f"poses_{k}.pdb"
        ).read_bytes()
    assert numbers_of(tmp_path / "here" / "refine.csv") == numbers_of(tmp_path / "there" / "refine.csv")


def test_without_poses_the_complex_is_refined(complex_file, tmp_path):
    text = refine(complex_file, "-o", tmp_path / "own").stdout
    assert "1 pose ->" in text
    assert (tmp_path / "own" / "complex.pdb").exists()


def test_mistakes_are_sentences(complex_file, pose_file, atoms, poses, refiner, tmp_path):
    short = tmp_path / "short.pdb"
    short.write_text(models(atoms[refiner.ligand][:5], poses[:, :5]))
    words = ("refine", complex_file, short, "--ligand", LIGAND, "-o", tmp_path / "out")
    assert "poses have 5 atoms, the ligand" in error_of(*words)
    assert not (tmp_path / "out").exists()
    taken = tmp_path / "taken"
    taken.write_text("")
    assert "is not a folder" in error_of("refine", complex_file, "--ligand", LIGAND, "-o", taken)
    again = tmp_path / "poses.pdb"
    again.write_text(pose_file.read_text())
    assert "No such option" in refine(complex_file, "-o", tmp_path / "out", "--shard", "1/2", code=2).stderr
    assert "two poses have the name poses_1" in error_of(
        "refine", complex_file, pose_file, again, "--ligand", LIGAND, "-o", tmp_path / "out"
    )


def test_a_receptor_alone_is_for_screens(pose_file):
    for call in (pele_ocl.refine, pele_ocl.binding):
        with pytest.raises(InputError, match=r"no residue is named LIG .* Give a receptor and poses to `screen`"):
            call(STRUCTURES / "hexapeptide.pdb", poses=pose_file, ligand="resname LIG")


def test_poses_in_another_order_are_matched_by_names(complex_file, pose_file, tmp_path):
    """Of the ligand alone and of complexes; a name that the ligand does not have is refused."""
    swapped = tmp_path / "swapped.pdb"
    for source, first in ((pose_file, "N"), (complex_file, "CA")):
        lines = [line for line in source.read_text().split("ENDMDL")[0].splitlines() if line.startswith("ATOM")]
        i = next(k for k, line in enumerate(lines) if line[12:16].strip() == first)
        other = next(k for k in range(i + 1, len(lines)) if lines[k][12:16].strip() == "C")
        given = RefineSpec(complex_file, LIGAND, "out", (swapped,))
        swapped.write_text("\n".join([*lines, "END", ""]))
        straight = given.starts[1].positions
        lines[i], lines[other] = lines[other], lines[i]
        swapped.write_text("\n".join([*lines, "END", ""]))
        assert np.array_equal(RefineSpec(complex_file, LIGAND, "out", (swapped,)).starts[1].positions, straight)
    lines[i] = f"{lines[i][:12]} CX {lines[i][16:]}"
    swapped.write_text("\n".join([*lines, "END", ""]))
    message = error_of("refine", complex_file, swapped, "--ligand", LIGAND, "-o", tmp_path / "out")
    assert ":CX)" in message
    assert not (tmp_path / "out").exists()


def test_frames_of_a_trajectory_are_poses(complex_file, atoms, poses, refiner, tmp_path):
    frames = np.stack([atoms.positions] * 2)
    frames[1][refiner.ligand] += 0.5
    for name in ("run.nc", "run.dcd"):
        pele_ocl.write_conformations(tmp_path / name, atoms, frames)
        names, found, _ = RefineSpec(complex_file, LIGAND, "", poses=(tmp_path / name,)).starts
        assert names == ["run_1", "run_2"]
        np.testing.assert_allclose(found.positions, frames, atol=1e-3)
    other = pele_ocl.read(STRUCTURES / "trialanine.pdb")
    pele_ocl.write_conformations(tmp_path / "other.nc", other, other.positions[np.newaxis])
    with pytest.raises(FormatError, match=r"other.nc: .*33 atoms"):
        _ = RefineSpec(complex_file, LIGAND, "", poses=(tmp_path / "other.nc",)).starts
    with pytest.raises(FormatError, match=r"run.nc: poses can be read from .sdf, .mol2, .pdb and .cif files; write"):
        pele_ocl.binding.poses.read_poses(tmp_path / "run.nc", other)


def test_native_poses_may_be_symmetric_without_hydrogens_or_of_exchanged_chains(complex_file, atoms, refiner, tmp_path):
    """The carboxylate turned over, hydrogens left out, and the complex with chain B first: 0 A from where it is."""
    lines = [line for line in complex_file.read_text().splitlines() if line.startswith("ATOM")]
    ligand = [line for line in lines if line[21] == "B"]
    oxt = next(k for k, line in enumerate(ligand) if line[12:16].strip() == "OXT")
    turned = list(ligand)
    last = [k for k, line in enumerate(ligand) if line[22:26] == ligand[-1][22:26]]
    o = next(k for k in last if ligand[k][12:16].strip() == "O")
    turned[o], turned[oxt] = (
        ligand[o][:30] + ligand[oxt][30:54] + ligand[o][54:], ligand[oxt][:30] + ligand[o][30:54] + ligand[oxt][54:],
    )  # fmt: skip
    cases = {
        "turned": turned,
        "bare": [line for line in ligand if not line[12:16].strip().startswith("H")],
        "exchanged": ligand + ["TER"] + [line for line in lines if line[21] == "A"],
    }
    for name, text in cases.items():
        path = tmp_path / f"{name}.pdb"
        path.write_text("\n".join([*text, "END", ""]))
        spec = RefineSpec(complex_file, LIGAND, "out", native=path)
        assert spec.rmsd(refiner.atoms.positions) == pytest.approx(0, abs=1e-3), name
    path.write_text("\n".join([*ligand[:4], "END", ""]))
    with pytest.raises(FormatError, match="heavy atoms, the ligand"):
        RefineSpec(complex_file, LIGAND, "out", native=path).items()


def test_a_file_that_cannot_be_read_is_a_row(complex_file, pose_file, tmp_path):
    bad = tmp_path / "bad.sdf"
    bad.write_text("nothing\n")
    spec = RefineSpec(complex_file, LIGAND, "out", (pose_file, bad))
    names, starts, _ = spec.starts
    assert names == ["poses_1", "poses_2", "poses_3", "nothing"]  # its title, which is all that was read
    assert list(starts.errors) == [3]
    (record,) = spec.records([3], lambda: None)
    assert record.failed
    assert f"{bad}: molecule 1: is not a molecule of an SDF file" in record.error
    assert np.isfinite(starts.positions[:3]).all()


def test_poses_that_fail_end_nothing(complex_file, atoms, refiner, poses, tmp_path):
    bad = poses.copy()
    bad[0, 3] = bad[0, 4]
    path = tmp_path / "bad.pdb"
    path.write_text(models(atoms[refiner.ligand], bad))
    done = refine(complex_file, path, "-o", tmp_path / "out", "--json", code=1)
    found = json.loads(done.stdout)
    assert found["n_failed"] == 1
    assert "same position" in found["poses"][0]["error"]
    assert found["poses"][1]["rank"] in (1, 2)


def test_tables_show_what_ranks_and_no_empty_column(complex_file, pose_file, tmp_path):
    said = refine(complex_file, "-o", tmp_path / "out").stdout
    head = next(line for line in said.splitlines() if line.startswith("rank"))
    assert "clashes  clashes after  strain  strain after  binding  binding after  score" in head
    found = pele_ocl.refine(complex_file, ligand=LIGAND, max_iterations=2)
    assert found.best == 0
    assert "error" not in found.table().columns
    with pytest.raises(AttributeError, match="has no attribute 'energies'"):
        _ = found.energies


@pytest.mark.parametrize("suffix", [".sdf", ".mol2"])
def test_poses_of_a_ligand_that_has_no_template_bring_its_parameters_and_names(suffix, tmp_path):
    """Files of `explore --example`; their molecules come back as an SDF file, each in the order of its own atoms."""
    example = write_example(tmp_path / "example").parent
    molecule = Chem.MolFromMolFile(str(example / "ligand.sdf"), removeHs=False)
    poses = tmp_path / f"poses{suffix}"
    if suffix == ".sdf":
        turned = Chem.RenumberAtoms(molecule, list(range(20))[::-1])
        with Chem.SDWriter(str(poses)) as writer:
            for title, each in (("lig A", molecule), ("lig A", turned), ("", molecule)):
                each.SetProp("_Name", title)
                writer.write(each)
    else:
        poses.write_text(mol2_of(molecule, "lig A"))
    words = {"ligand": "resname LIG", "max_iterations": 2, "moving_radius": 1.0, "side_chains": 0.0}
    found = pele_ocl.refine(example / "complex.pdb", poses, **words, output=tmp_path / "out")
    assert found.names == ["lig_A", "lig_A_2", "poses_3"][: len(found)]
    assert any(f"has the parameters of {poses}" in note for note in found.heard)
    table = found.table()
    assert table["rank"].tolist() == list(range(1, len(found) + 1))
    assert table["score_after"].tolist() == sorted(found.score.tolist())
    if suffix == ".sdf":
        written = list(Chem.SDMolSupplier(str(tmp_path / "out" / "ligands.sdf"), removeHs=False))
        assert [each.GetProp("_Name") for each in written] == table["pose"].tolist()
        ligand = found.spec.refiner.ligand
        for each in written:
            k = found.names.index(each.GetProp("_Name"))
            assert each.GetDoubleProp("score") == pytest.approx(found.score[k], abs=1e-4)
            expected = sorted(found.positions[k][ligand].tolist())
            assert np.allclose(sorted(each.GetConformer().GetPositions().tolist()), expected, atol=1e-3)
            assert each.GetAtomWithIdx(0).GetSymbol() == ("H" if k == 1 else "C")
    binding = pele_ocl.binding(example / "complex.pdb", ligand="resname LIG", poses=poses)
    assert len(binding.energies) == len(found)


def test_poses_bring_parameters_to_objects_and_are_molecules(tmp_path):
    """A universe of the complex, with a file of poses or Mols of RDKit, in any order of their atoms."""
    mda = pytest.importorskip("MDAnalysis")
    example = write_example(tmp_path / "example").parent
    path, poses = example / "complex.pdb", example / "ligand.sdf"
    words = {"ligand": "resname LIG", "max_iterations": 1, "moving_radius": 1.0, "side_chains": 0.0}
    wanted = pele_ocl.refine(path, poses, **words)
    molecule = Chem.MolFromMolFile(str(poses), removeHs=False)
    turned = Chem.RenumberAtoms(molecule, list(range(20))[::-1])
    universe = mda.Universe(str(path))
    for what, given in ((universe, poses), (universe, [molecule, turned]), (path, turned)):
        found = pele_ocl.refine(what, given, **words)
        assert found.score == pytest.approx(wanted.score[0], abs=1e-3)
    bare = Chem.RemoveHs(molecule)
    for given, sentence in (
        ([molecule, bare], "pose 2: hydrogens are missing"),
        ([molecule, poses], "poses are of several kinds"),
    ):
        with pytest.raises(PeleError, match=sentence):
            pele_ocl.refine(path, given, **words)


def test_of_two_residues_without_templates_the_one_that_is_no_pose_is_named(tmp_path):
    example = write_example(tmp_path / "example").parent
    lines = (example / "complex.pdb").read_text().splitlines()
    other = "HETATM  998  {} XYZ M   2      40.000  40.000  {}.000  1.00  0.00           {}"
    end = next(k for k, line in enumerate(lines) if line.startswith(("END", "CONECT")))
    lines[end:end] = [other.format(name, z, name[0]) for name, z in (("C1 ", 40), ("O1 ", 41))]
    (tmp_path / "two.pdb").write_text("\n".join([*lines, ""]))
    with pytest.raises(ParameterError, match="no template for the residue XYZ"):
        pele_ocl.refine(tmp_path / "two.pdb", example / "ligand.sdf", ligand="resname LIG")


def mol2_of(molecule: Chem.Mol, title: str) -> str:
    """Write a molecule as mol2 with bond orders and the elements as types."""
    rows = zip(molecule.GetAtoms(), molecule.GetConformer().GetPositions().tolist(), strict=True)
    atoms = [
        f"{k} {atom.GetSymbol()}{k} {x:.4f} {y:.4f} {z:.4f} {atom.GetSymbol()} 1 LIG 0.0"
        for k, (atom, (x, y, z)) in enumerate(rows, 1)
    ]
    kinds = ["ar" if of.GetIsAromatic() else int(of.GetBondTypeAsDouble()) for of in molecule.GetBonds()]
    bonds = [
        f"{k + 1} {of.GetBeginAtomIdx() + 1} {of.GetEndAtomIdx() + 1} {kinds[k]}"
        for k, of in enumerate(molecule.GetBonds())
    ]
    head = ["@<TRIPOS>MOLECULE", title, f"{len(atoms)} {len(bonds)}", "SMALL", "USER_CHARGES"]
    return "\n".join([*head, "@<TRIPOS>ATOM", *atoms, "@<TRIPOS>BOND", *bonds, ""])


def test_a_folder_with_the_name_of_a_file_is_refused(tmp_path):
    for name in ("refined.sdf", "refined.pdb", "run.nc", "refine.csv"):
        with pytest.raises(FormatError, match=f"{name}: expected a folder for the refined complexes"):
            pele_ocl.refine("gone.pdb", ligand="chain B", output=tmp_path / name)
    with pytest.raises(FormatError, match=r"the files of the run; give it without \.dcd"):
        pele_ocl.simulate(STRUCTURES / "trialanine.pdb", tmp_path / "run.dcd", steps=1)
    assert not list(tmp_path.iterdir())
