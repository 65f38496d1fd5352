"""Screens: molecules refined and scored in one receptor, ranked, compared with measured values."""

from __future__ import annotations

import base64
import json
import re
import sys
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from test_cli import HEXAPEPTIDE, on_the_chosen_device, run

import pele_ocl
from pele_ocl import Binding, FormatError, InputError, Screener, SolventModel, read, screen
from pele_ocl.formats import read_conformations
from pele_ocl.ligand import antechamber
from pele_ocl.screen.correlations import correlations
from pele_ocl.screen.molecules import entries_of
from pele_ocl.screen.page import _drawing
from pele_ocl.screen.reference import KT, Reference
from pele_ocl.screen.screener import SCORING

__all__ = ["on_the_chosen_device"]

TRIALANINE = HEXAPEPTIDE.parent / "trialanine.pdb"
FEW = {"max_iterations": 12, "moving_radius": 4.0}
try:
    pytest.importorskip("rdkit")
    antechamber.program("antechamber")
    HAS_PROGRAMS = True
except (InputError, pytest.skip.Exception):
    HAS_PROGRAMS = False
needs_programs = pytest.mark.skipif(not HAS_PROGRAMS, reason="RDKit or AmberTools' programs are not here")


@pytest.fixture(scope="module")
def receptor():
    return read(HEXAPEPTIDE)


@pytest.fixture(scope="module")
def peptides(receptor):
    """Trialanine at three places beside the receptor, in another each a little."""
    atoms, out = read(TRIALANINE), np.array([0.0, 0.0, 1.0])
    top = receptor.positions[:, 2].max() - atoms.positions[:, 2].min()
    return [atoms.moved(atoms.positions + out * (top + apart)) for apart in (1.5, 1.9, 2.3)]


@pytest.fixture
def places(peptides, tmp_path):
    """The same as files, and one that is no peptide."""
    folder = tmp_path / "in"
    folder.mkdir()
    for k, atoms in enumerate(peptides, 1):
        pele_ocl.write_conformations(folder / f"pose_{k}.pdb", atoms, atoms.positions[None])
    (folder / "pose_10.pdb").write_text(
        "HETATM    1  C1  XYZ A   1       0.000   0.000   0.000  1.00  0.00           C\n"
    )
    return folder


def text_of(path: Path) -> str:
    """The lines of a table, less those that name the command."""
    lines = path.read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith(("# command", "# parameters", "# software")))


# Scores


def test_score_is_the_binding_energy_of_the_refined_complex(receptor, peptides):
    screener = Screener(receptor, **FEW)
    first, second, _ = screener.screen(peptides)
    for one in (first, second):
        plan = Binding(one.atoms, np.arange(len(receptor), len(one.atoms)), model=SCORING)
        assert one.binding == pytest.approx(plan.evaluate().total, abs=2e-3)
        assert len(one.ligand) == len(peptides[0])
    assert first.strain > 0
    assert first.binding != second.binding


def test_binding_with_the_options_of_both_helps_is_the_score(peptides, tmp_path):
    """Of the same atoms, and of the file that the screen wrote, whose positions have three digits."""
    helps = [" ".join(run(command, "--help").stdout.split()).replace("- ", "-") for command in ("screen", "binding")]
    assert all("--gb gbn2 --solute-dielectric 2" in text for text in helps)
    pele_ocl.write_conformations(tmp_path / "pose.pdb", peptides[0], peptides[0].positions[None])
    found = screen(HEXAPEPTIDE, tmp_path / "pose.pdb", output=tmp_path / "out", **FEW)
    whole = found.complex(0)
    ligand = np.arange(len(whole) - len(peptides[0]), len(whole))
    score = pele_ocl.binding(whole, ligand, gb="gbn2", solute_dielectric=2).total
    assert score == pytest.approx(found.score[0], abs=2e-3)
    words = ("--ligand", f"index {ligand[0]} to {ligand[-1]}", "--gb", "gbn2", "--solute-dielectric", 2, "--json")
    record = json.loads(run("binding", tmp_path / "out" / "complexes" / "pose.pdb", *words).stdout)
    assert record["delta"]["total"]["mean"] == pytest.approx(found.score[0], abs=0.05)
    assert pele_ocl.binding(whole, ligand).total != pytest.approx(score, abs=1)


def test_the_printed_table_shows_a_score_once(receptor, peptides):
    plain, strained = (screen(receptor, peptides[:2], add_strain=add, **FEW) for add in (False, True))
    heads = [str(found.table()).splitlines()[1] for found in (plain, strained)]
    assert heads[0].split("  ")[0] == "molecule"
    assert "score [kcal/mol]" in heads[0]
    assert "binding" not in heads[0]
    assert "binding [kcal/mol]" in heads[1]
    assert plain.table()["binding"].tolist() == plain.table()["score"].tolist()
    assert "\nScore         binding energy by MM/GBSA of the minimized structure\n" in plain.text()
    assert "of the minimized structure plus the ligand's strain\n" in strained.text()


def test_rows_that_stay_on_a_device_reach_the_same_minima(receptor, peptides):
    """The way of GPUs, and that of CPUs, which leave out what frozen atoms give each other."""
    clashing = peptides[0].moved(peptides[0].positions - np.array([0.0, 0.0, 1.2]))
    given = [clashing, *peptides[:2], replace(peptides[0], lj_epsilon=None)]
    found = []
    for is_resident in (False, True):
        screener = Screener(receptor, moving_radius=4.0, tolerance=0.05)
        screener._is_resident = is_resident
        found.append(screener.screen(given))
    for one, other in zip(found[0][:3], found[1][:3], strict=True):
        assert one.converged
        assert other.converged
        assert other.binding == pytest.approx(one.binding, abs=0.3)
        still, also = (
            np.isclose(of.atoms.positions[: len(receptor)], receptor.positions, atol=1e-6, rtol=0).all(axis=1)
            for of in (one, other)
        )
        assert still.any()
        assert np.array_equal(still, also)
    assert isinstance(found[0][3], InputError)
    assert isinstance(found[1][3], InputError)


def test_a_complex_depends_on_itself_alone(receptor, peptides):
    screener = Screener(receptor, **FEW)
    together = screener.screen(peptides)
    (alone,) = screener.screen(peptides[1:2])
    assert alone.binding == together[1].binding
    assert np.array_equal(alone.atoms.positions, together[1].atoms.positions)


def test_residues_far_away_and_ions_stay(receptor, peptides):
    (one,) = Screener(receptor, max_iterations=5, moving_radius=0.5).screen(peptides[:1])
    n = len(receptor)
    assert np.array_equal(one.atoms.positions[:n], receptor.positions)
    assert one.moved > 0


def test_permittivity_inside_is_of_the_score_alone(receptor, peptides):
    plain, inner = (screen(receptor, peptides[:1], inside=inside, **FEW) for inside in (1, 2))
    assert np.array_equal(plain.ligand(0), inner.ligand(0))
    first, second = (found.records[0]["terms"] for found in (plain, inner))
    assert second["coulomb"] == pytest.approx(first["coulomb"] / 2, abs=1e-3)
    assert second["lennard_jones"] == pytest.approx(first["lennard_jones"], abs=1e-3)
    assert inner.score[0] == screen(receptor, peptides[:1], **FEW).score[0]  # the default
    with pytest.raises(InputError, match="are the same option"):
        screen(receptor, peptides[:1], inside=1, solute_dielectric=2)


def test_strain_is_added_where_it_is_asked_for(receptor, peptides):
    plain, strained = (screen(receptor, peptides[:1], add_strain=add, **FEW) for add in (False, True))
    assert strained.score[0] == pytest.approx(plain.score[0] + plain.strain[0])
    assert strained.binding[0] == plain.binding[0]


@needs_programs
def test_poses_of_a_molecule_have_a_consensus_with_docking(receptor, tmp_path, monkeypatch):
    """Of all of its poses that did not fail, by a property of any name; other molecules have none."""
    monkeypatch.setenv("PELE_OCL_LIGANDS", str(tmp_path / "kept"))
    first, last = (of + "$$$$\n" for of in sdf_of(receptor, {"a": "CCO", "b": "CO"}).split("$$$$\n")[:2])
    poses = [first.replace("\n4\n", f"\n{score}\n").replace("pIC50", "vina") for score in (-6, -5, -3)]
    lines = poses[1].splitlines(keepends=True)  # another pose: all atoms of the block 0.3 A higher
    n = int(lines[3][:3])
    lines[4 : 4 + n] = [f"{of[:20]}{float(of[20:30]) + 0.3:10.4f}{of[30:]}" for of in lines[4 : 4 + n]]
    path = tmp_path / "docked.sdf"
    path.write_text(poses[0] + "".join(lines) + last + last.replace("\nb\n", "\nc\n"))
    found = screen(HEXAPEPTIDE, path, docking_score="vina", output=tmp_path / "out", **FEW)
    energy = found.binding[:2] + found.strain[:2]
    sign = np.sign(energy[0] - energy[1])
    assert energy[0] != energy[1]
    assert found.consensus[:2] == pytest.approx([sign - 1.5, 1.5 - sign])
    assert np.isnan(found.consensus[2:]).all()
    assert found.to_json()["molecules"][0]["consensus"] == found.consensus[0]
    assert "consensus" in str(found.table())
    assert "docking score" in str(found.table())
    assert "consensus" in (tmp_path / "out" / "screen.csv").read_text()
    other = screen(HEXAPEPTIDE, path, **FEW)
    assert np.isnan(other.consensus).all()
    assert "consensus" not in str(other.table())
    assert other.score.tolist() == found.score.tolist()


def test_mean_over_frames_of_dynamics(receptor, peptides):
    found = screen(receptor, peptides[:1], frames=3, **FEW)
    assert found.records[0]["binding_error"] > 0
    assert "mean of 3 frames" in found.text()


def test_poisson_boltzmann(receptor, peptides):
    found = screen(receptor, peptides[:1], pb=True, **FEW)
    assert "pb" in found.records[0]["terms"]
    assert "MM/PBSA" in found.text()


def test_a_molecule_far_away_and_one_without_elements_are_rows(receptor, peptides):
    far = peptides[0].moved(peptides[0].positions + 100)
    found = screen(receptor, [far, replace(peptides[0], labels=None), peptides[1]], **FEW)
    assert "from the receptor" in found.errors[0]
    assert set(found.errors) == {0, 1}
    assert found.ranks.tolist() == [0, 0, 1]
    assert found.binding[2] == screen(receptor, peptides[1:2], **FEW).binding[0]


def test_errors_can_be_raised(receptor, peptides):
    far = peptides[0].moved(peptides[0].positions + 100)
    with pytest.raises(InputError, match="from the receptor"):
        screen(receptor, [far], errors="raise", **FEW)


def test_water_is_left_out_and_told(receptor, peptides):
    labels = receptor.labels
    names = labels.residue_names.copy()
    names[labels.residue_index == labels.residue_index[0]] = "HOH"
    found = screen(replace(receptor, labels=replace(labels, residue_names=names)), peptides[:1], **FEW)
    assert any("1 water molecule of" in note for note in found.facts["notes"])


def test_water_of_a_file_is_told_by_the_command(receptor, places, tmp_path):
    for name in ("pose_2.pdb", "pose_3.pdb", "pose_10.pdb"):
        (places / name).unlink()
    water = "".join(
        f"HETATM 900{k}  O   HOH W   {k}      {40 + 5 * k:.3f}  40.000  40.000  1.00  0.00           O\n"
        for k in (1, 2)
    )
    path = tmp_path / "wet.pdb"
    path.write_text(HEXAPEPTIDE.read_text().replace("END", water + "END"))
    done = run("screen", path, places, "-o", tmp_path / "out", "--max-iterations", "2")
    assert done.stderr.count("2 water molecules of the receptor were left out") == 1


def test_help_and_parameters_tell_the_solvent_of_the_score(places, tmp_path):
    help_of = " ".join(run("screen", "--help-all").stdout.split())
    assert "[default: gbn2]" in help_of
    assert "molecule. [default: 2.0]" in help_of
    for k, (words, expected) in enumerate(
        [((), ("gbn2", 2.0)), (("--inside", "4"), ("gbn2", 4.0)), (("--like", "amber"), ("obc2", 1.0))]
    ):
        out = tmp_path / str(k)
        run("screen", HEXAPEPTIDE, places / "pose_1.pdb", "-o", out, "--max-iterations", "1", *words)
        (line,) = [of for of in (out / "screen.csv").read_text().splitlines() if "parameters" in of.partition("{")[0]]
        told = json.loads("{" + line.partition("{")[2].rstrip('"').replace('""', '"'))
        assert (told["gb"], told["solute_dielectric"]) == expected


def with_a_residue(receptor, molecule, name="LIG"):
    """A receptor with a copy of a molecule, as one residue that is no peptide."""
    labels, n = molecule.labels, len(molecule)
    one = replace(
        labels, residue_names=np.full(n, name), residue_numbers=np.full(n, 99), residue_index=np.zeros(n, np.int64),
        names=np.array([f"X{k}" for k in range(n)]), chains=np.full(n, "L"),
    )  # fmt: skip
    return receptor + replace(molecule, labels=one)


def test_a_receptor_that_holds_a_ligand_where_poses_lie_is_refused(receptor, peptides):
    """Before anything is computed for the first pose, and as a row for another one; a cofactor elsewhere stays."""
    first = peptides[0]
    away = first.moved(first.positions + np.array([0.0, 0.0, 8.0]))
    occupied = with_a_residue(receptor, first)
    with pytest.raises(InputError, match=r"the receptor still has the residue L:LIG99 .*`without='LIG'`") as caught:
        screen(occupied, [first])
    assert caught.value.code == "occupied"
    with pytest.raises(InputError, match="L:LIG99"):
        screen(occupied, [first.moved(first.positions + 0.4)])
    part = with_a_residue(receptor, peptides[0][:14])  # a smaller one, in the place of a part of the pose
    with pytest.raises(InputError, match="L:LIG99"):
        screen(part, [first])
    found = screen(with_a_residue(receptor, away), [first, away], max_iterations=2)
    assert list(found.errors) == [1]
    assert "L:LIG99" in found.errors[1]
    assert "L:LIG99" in found.to_json()["molecules"][1]["error"]


@needs_programs
def test_cofactors_belong_to_the_receptor(receptor, places, tmp_path, monkeypatch):
    from rdkit import Chem

    monkeypatch.setenv("PELE_OCL_LIGANDS", str(tmp_path / "kept"))
    cofactor = pele_ocl.Ligand.from_smiles("CCO", residue_name="COF")
    away = cofactor.moved(cofactor.positions - cofactor.positions.mean(axis=0) + receptor.positions.min(axis=0) - 4)
    whole = receptor + away.parametrize()
    pele_ocl.write_conformations(tmp_path / "whole.pdb", whole, whole.positions[None])
    Chem.MolToMolFile(away.molecule, str(tmp_path / "cofactor.sdf"))
    pose = places / "pose_1.pdb"
    words = ("--ligand-file", tmp_path / "cofactor.sdf", "--max-iterations", "2")
    done = run("screen", tmp_path / "whole.pdb", pose, "-o", tmp_path / "out", "--json", *words)
    assert json.loads(done.stdout)["n_atoms"] == len(whole)
    found = screen(tmp_path / "whole.pdb", pose, cofactors=[away.molecule], max_iterations=2)
    printed = json.loads(done.stdout)["molecules"][0]
    assert found.score[0] == pytest.approx(printed["score"], abs=1e-6)
    with pytest.raises(InputError, match="cofactors"):
        screen(receptor, pose, cofactors=[away])


@needs_programs
def test_mols_of_rdkit_are_molecules(receptor, tmp_path, monkeypatch):
    monkeypatch.setenv("PELE_OCL_LIGANDS", str(tmp_path / "kept"))
    from rdkit import Chem

    (tmp_path / "a.sdf").write_text(sdf_of(receptor, {"ethanol": "CCO"}))
    (mol,) = Chem.SDMolSupplier(str(tmp_path / "a.sdf"), removeHs=False)
    found = screen(receptor, [mol, Chem.MolFromSmiles("CO")], max_iterations=2)
    assert found.names == ["ethanol", "ligand_2"]
    assert "no positions" in found.errors[1]
    assert found.score[0] == screen(receptor, tmp_path / "a.sdf", max_iterations=2).score[0]
    assert len(read(HEXAPEPTIDE, ligands=[mol])) == len(receptor) + 9


# Files, resuming, workers


def test_command_and_function_give_the_same(places, tmp_path):
    options = {"max_iterations": 12, "moving_radius": 4.0}
    words = ("screen", HEXAPEPTIDE, places, "--max-iterations", "12", "--moving-radius", "4", "--residues", "1")
    done = run(*words, "-o", tmp_path / "c", "--json", code=1)
    found = screen(HEXAPEPTIDE, places, output=tmp_path / "p", residues=1, **options)
    printed = json.loads(done.stdout)
    printed.pop("seconds")
    assert printed == json.loads(json.dumps(found.to_json()))
    assert text_of(tmp_path / "c" / "screen.csv") == text_of(tmp_path / "p" / "screen.csv")
    assert found.names == ["pose_1", "pose_2", "pose_3", "pose_10"]  # numbers in their order
    assert "hydrogen" in found.errors[3]
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == [
        "complexes", "index.html", "residues.csv", "screen.csv", "screen.jsonl",
    ]  # fmt: skip
    assert found.residues()["residue"][0].startswith(("R:", "L:"))
    text = run(*words, "-o", tmp_path / "c", "--resume", code=1)
    assert "3 molecules of 4 scored" in text.stdout
    assert next(line for line in text.stdout.splitlines() if line.startswith("molecule ")).endswith("reason")
    assert "pose_10.pdb" in text.stderr
    written = read_conformations(tmp_path / "p" / "complexes" / "pose_1.pdb")[1]
    assert np.allclose(written[0], found.complex(0).positions, atol=2e-3)
    with pytest.raises(FormatError, match="already contains a screen"):
        screen(HEXAPEPTIDE, places, output=tmp_path / "p", **options)


def test_resumed_workers_and_shards_give_the_same_files(places, tmp_path):
    options = {"max_iterations": 6, "moving_radius": 3.0}
    whole = screen(HEXAPEPTIDE, places, output=tmp_path / "whole", **options)
    values = tmp_path / "values.csv"
    values.write_text("name,dG (kcal/mol)\npose_2,-5\npose_3,-4\n")
    for number in (1, 2):
        part = screen(HEXAPEPTIDE, places, output=tmp_path / "parts", shard=f"{number}/2", reference=values, **options)
    assert part.names == ["pose_3", "pose_10"]
    assert part.measured[0] == -4
    assert part.to_json()["molecules"][1]["title"] == "pose_10"
    assert len(part.complex(0)) == len(whole.complex(0))
    assert not (tmp_path / "parts" / "screen.csv").exists()
    parts = screen(HEXAPEPTIDE, places, output=tmp_path / "parts", resume=True, **options)
    assert parts.to_json()["molecules"] == whole.to_json()["molecules"]
    journal = tmp_path / "whole" / "screen.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:2]) + lines[2][:50])
    kept = (tmp_path / "whole" / "complexes" / "pose_1.pdb").stat().st_mtime_ns
    again = screen(HEXAPEPTIDE, places, output=tmp_path / "whole", resume=True, **options)
    assert (tmp_path / "whole" / "complexes" / "pose_1.pdb").stat().st_mtime_ns == kept
    assert again.to_json()["molecules"] == whole.to_json()["molecules"]
    assert text_of(tmp_path / "whole" / "screen.csv") == text_of(tmp_path / "parts" / "screen.csv")


def test_an_earlier_screen_is_replaced_if_asked(places, tmp_path):
    out, options = tmp_path / "out", {"max_iterations": 2, "moving_radius": 3.0}
    screen(HEXAPEPTIDE, places, output=out, residues=1, **options)
    before = {path.name for path in (out / "complexes").iterdir()}
    own = out / "complexes" / "pose_1.pdb"
    with pytest.raises(FormatError, match="belongs to the input"):
        screen(HEXAPEPTIDE, own.parent, output=out, overwrite=True, **options)
    assert {path.name for path in own.parent.iterdir()} == before
    native = out / "ligands.sdf"  # named like a file of a screen
    atoms = "".join(f"{x:10.4f}    0.0000    0.0000 {name}   0  0\n" for x, name in ((0.0, "C"), (1.4, "O")))
    native.write_text(f"methanol\n\n\n  2  1  0  0  0  0  0  0  0  0999 V2000\n{atoms}  1  2  1  0\nM  END\n$$$$\n")
    with pytest.raises(FormatError, match="the same file as the input"):
        screen(HEXAPEPTIDE, places, output=out, overwrite=True, native=native, **options)
    assert native.exists()
    assert own.exists()
    backup = out / "screen.backup_of_friday.jsonl"
    backup.write_bytes((out / "screen.jsonl").read_bytes())
    (out / "complexes" / "pose_10.pdb").write_text("of the user")  # the run wrote none, since its molecule failed
    one = next(path for path in places.iterdir() if path.name == "pose_2.pdb")
    screen(HEXAPEPTIDE, one, output=out, overwrite=True, **options)
    assert {path.name for path in own.parent.iterdir()} == {"pose_2.pdb", "pose_10.pdb"}
    assert backup.exists()
    assert not (out / "residues.csv").exists()
    with pytest.raises(InputError, match="replaces a complete run"):
        screen(HEXAPEPTIDE, one, output=out, overwrite=True, shard="1/1", **options)
    with pytest.raises(InputError, match="`overwrite` replaces files of an earlier run; give `output`"):
        screen(HEXAPEPTIDE, one, overwrite=True, **options)


def test_an_earlier_screen_is_kept_until_workers_are_connected(places, tmp_path):
    pytest.importorskip("distributed")
    out, options = tmp_path / "out", {"max_iterations": 2, "moving_radius": 3.0}
    screen(HEXAPEPTIDE, places, output=out, **options)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=r"none\.json"):
        screen(HEXAPEPTIDE, places, output=out, overwrite=True, scheduler=str(tmp_path / "none.json"), **options)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    screen(HEXAPEPTIDE, next(places.iterdir()), output=out, overwrite=True, workers=1, **options)
    assert not before.keys() <= {*out.rglob("*")}


def test_workers_give_the_same(places, tmp_path):
    pytest.importorskip("distributed")
    pytest.importorskip("cryptography")
    options = {"max_iterations": 6, "moving_radius": 3.0}
    whole = screen(HEXAPEPTIDE, places, output=tmp_path / "whole", **options)
    shared = screen(HEXAPEPTIDE, places, output=tmp_path / "shared", workers=2, **options)
    assert shared.to_json()["molecules"] == whole.to_json()["molecules"]


# Molecules


def sdf_of(receptor, molecules: dict[str, str]) -> str:
    """SDF text of molecules by name, beside the receptor, each with a measured value."""
    from rdkit import Chem

    blocks = []
    for k, (name, smiles) in enumerate(molecules.items()):
        ligand = pele_ocl.Ligand.from_smiles(smiles, name)
        up = receptor.positions[:, 2].max() - ligand.positions[:, 2].min() + 1.8
        middle = receptor.positions.mean(axis=0) - ligand.positions.mean(axis=0)
        moved = ligand.moved(ligand.positions + np.array([middle[0], middle[1], up])).molecule
        moved.SetProp("_Name", name.rstrip("'"))
        blocks.append(f"{Chem.MolToMolBlock(moved)}>  <pIC50>\n{4 + k}\n\n$$$$\n")
    return "".join(blocks)


@needs_programs
def test_molecules_of_an_sdf_file(receptor, tmp_path, monkeypatch):
    """A hostile one is a row, equal names get files of their own, and names mean nothing to a shell."""
    from rdkit import Chem

    monkeypatch.setenv("PELE_OCL_LIGANDS", str(tmp_path / "kept"))
    names = {"ethanol": "CCO", "$(touch x);../<b>": "CC(N)=O", "ethanol'": "CCO", "methanol": "CO"}
    radical = (
        "radical\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n    0.0000    0.0000    0.0000 C   0  0\nM  END\n$$$$\n"
    )
    path = tmp_path / "molecules.sdf"
    path.write_text(sdf_of(receptor, names) + radical)
    found = screen(HEXAPEPTIDE, path, output=tmp_path / "out", reference=path, native=path, **FEW)
    assert found.names == ["ethanol", "touch_x_.._b", "ethanol_2", "methanol", "radical"]
    assert list(found.errors) == [4]
    assert "radical" in (last := str(found.table()).strip().splitlines()[-1])
    assert found.errors[4][:40] in last
    assert found.titles[1] == "$(touch x);../<b>"
    assert found.binding[0] == found.binding[2]
    assert found.table()["input_pIC50"].tolist()[0] in (4, 5, 6, 7)
    assert found.measured[3] == pytest.approx(-KT * np.log(10) * 7)
    assert found.column("rmsd_before")[:4] == pytest.approx(0, abs=1e-4)
    assert found.column("rmsd_after")[0] > 0
    names_of_files = {path.name for path in (tmp_path / "out" / "complexes").iterdir()}
    assert names_of_files == {f"{name}.pdb" for name in found.names[:4]}
    read_back = [mol for mol in Chem.SDMolSupplier(str(tmp_path / "out" / "ligands.sdf"), removeHs=False) if mol]
    given = next(iter(Chem.SDMolSupplier(str(path), removeHs=False)))
    best = next(mol for mol in read_back if mol.GetProp("_Name") == "ethanol")
    assert [atom.GetSymbol() for atom in best.GetAtoms()] == [atom.GetSymbol() for atom in given.GetAtoms()]
    assert float(best.GetProp("score")) == pytest.approx(found.score[0], rel=1e-4)
    page = (tmp_path / "out" / "index.html").read_text()
    assert "<b>" not in page.replace("<body>", "")
    assert "http-equiv" in page
    assert "function moleculeView" in page
    scenes = json.loads(page.partition('type="application/json">')[2].partition("</script>")[0])["scenes"]
    assert scenes
    for scene in scenes.values():
        assert len(base64.b64decode(scene["positions"])) == 6 * len(scene["elements"])  # 16 bits, three axes
        assert scene["ligand"]
    assert "(max-width: 600px)" in page.partition('make("details")')[0].rpartition("<script>")[2]  # folded on phones
    assert "\\u003csvg" in page  # a drawing


@needs_programs
def test_parameters_that_are_there_need_no_programs(tmp_path, monkeypatch):
    """A topology with a restart file beside it gives what the SDF file gives."""
    from pele_ocl.ligand import cache

    monkeypatch.setenv("PELE_OCL_LIGANDS", str(tmp_path / "kept"))
    path, receptor = tmp_path / "molecule.sdf", read(HEXAPEPTIDE, radii="mbondi2")  # as topologies have them
    path.write_text(sdf_of(receptor, {"acetamide": "CC(N)=O"}))
    first = screen(receptor, path, ligand_charges="gas", **FEW)
    ligand = pele_ocl.Ligand.read(path).in_canonical_order()
    kept = cache.entry(ligand.smiles, "gaff2", "gas", antechamber.version())
    (tmp_path / "acetamide.prmtop").write_bytes(kept.read_bytes())
    rows = ["".join(f"{x:12.7f}" for x in part) for part in np.split(ligand.positions.ravel(), range(6, 27, 6))]
    (tmp_path / "acetamide.rst7").write_text("\n".join(["", f"{len(ligand):6d}", *rows, ""]))
    second = screen(receptor, tmp_path / "acetamide.prmtop", **FEW)
    assert second.binding[0] == pytest.approx(first.binding[0], abs=0.05)
    unchosen = screen(HEXAPEPTIDE, tmp_path / "acetamide.prmtop", **FEW)
    complex_ = unchosen.complex(0)
    plan = Binding(complex_, np.arange(len(receptor), len(complex_)), model=SCORING)
    assert unchosen.binding[0] == pytest.approx(plan.evaluate().total, abs=2e-3)


def test_topologies_without_positions_and_empty_folders(tmp_path):
    (tmp_path / "lost.prmtop").write_text("%VERSION\n")
    (entry,) = entries_of([tmp_path])
    assert "positions" in str(entry.given)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match="contains no molecule"):
        entries_of([tmp_path / "empty"])
    with pytest.raises(FormatError):
        entries_of([tmp_path / "absent.sdf"])


# References


def test_values_of_csv_files(tmp_path):
    path = tmp_path / "values.csv"
    path.write_text("name,IC50 (nM)\na,1000\nb,>10\nc,1\n")
    found = Reference.read(path)
    assert found.unit == "kcal/mol"
    assert found.values["a"] == pytest.approx(KT * np.log(1e-6))
    assert found.values["c"] < found.values["a"]
    assert found.left_out == ("b",)
    path.write_text("compound;mass;pKi\na;300;6\n")
    assert Reference.read(path).values["a"] == pytest.approx(-KT * np.log(10) * 6)
    path.write_text("compound,activity\na,3\n")
    assert Reference.read(path).values == {"a": 3.0}
    with pytest.raises(FormatError, match="has no 'Ki'"):
        Reference.read(path, "Ki")


def test_values_of_entries_by_name(tmp_path):
    path = tmp_path / "values.json"
    path.write_text(json.dumps({"a": {"measurement": {"value": 2, "unit": "uM", "type": "ki"}}, "b": 1}))
    with pytest.raises(FormatError, match="units"):
        Reference.read(path)
    path.write_text(json.dumps({"a": {"measurement": {"value": 2, "unit": "uM", "type": "ki"}}}))
    assert Reference.read(path).values["a"] == pytest.approx(KT * np.log(2e-6))


def test_values_of_other_names_are_told(receptor, peptides, tmp_path):
    path = tmp_path / "values.csv"
    path.write_text("name,value\nsomeone,1\nligand_2,2\n")
    found = screen(receptor, peptides[:2], reference=path, max_iterations=1)
    (told,) = [of for of in found.heard if "no value" in of]
    assert "1 of 2 molecules has no value" in told
    assert found.table().text() in found.text()  # a row is a line, however long
    assert "'ligand_1'" in told
    assert "'someone'" in told
    assert found.correlation_lines() == ["Correlations with values.csv: value, of 1 molecule: at least 4 are required"]


def test_charges_are_seen_in_drawings_of_large_molecules():
    """The sign of a carboxylate, a bar, is wider than 2 pixels."""
    chem = pytest.importorskip("rdkit.Chem")
    large = "[O-]C(=O)CCc1ccc(cc1)NC(=O)c1ccc(cc1)CN1CCN(CC1)C(=O)c1ccc(cc1)CC[NH3+]"
    svg = _drawing(SimpleNamespace(molecule=chem.MolFromSmiles(large)))
    glyphs = re.findall(r"<path class='atom-0' d='(.*?)'", svg, re.DOTALL)
    assert len(glyphs) == 2  # O and its sign
    corners = np.array(re.findall(r"[ML] *([\d.]+)[ ,]([\d.]+)", glyphs[1]), float)
    assert np.ptp(corners[:, 0]) > 2


def test_short_help_names_what_a_screen_needs():
    text = run("screen", "--help").stdout
    assert all(f"  --{word} " in text for word in ("reference", "residues", "resume", "inside"))


def test_correlations_beside_scipy():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(3)
    x = rng.integers(8, size=30).astype(float)  # with ties
    y = x + rng.normal(scale=2, size=30)
    found = correlations(x, np.where(np.arange(30) == 4, np.nan, y))
    good = np.arange(30) != 4
    assert found["spearman"].value == pytest.approx(stats.spearmanr(x[good], y[good])[0])
    assert found["pearson"].value == pytest.approx(stats.pearsonr(x[good], y[good])[0])
    assert found["kendall"].value == pytest.approx(stats.kendalltau(x[good], y[good])[0])
    for of in found.values():
        assert of.low < of.value < of.high
        assert 0 < of.error < 0.3
    chosen = np.random.Generator(np.random.Philox(44)).integers(29, size=(2000, 29))[:200]
    samples = [stats.spearmanr(x[good][of], y[good][of])[0] for of in chosen]
    assert found["spearman"].error == pytest.approx(np.std(samples), rel=0.25)


def test_poses_of_one_molecule_count_once(receptor, peptides, tmp_path):
    names = ["a", "a", "b"]
    found = screen(receptor, peptides, **FEW)
    for entry, name in zip(found.spec.entries, names, strict=True):
        object.__setattr__(entry, "title", name)
    path = tmp_path / "values.csv"
    path.write_text("name,dG (kcal/mol)\na,-5\nb,-3\n")
    known = replace(found, reference=Reference.read(path))
    assert "of 2 molecules" in known.text()
    assert known.correlations["score"] == {}


def test_models_radii_and_unknown_words(receptor, peptides):
    other = screen(receptor, peptides[:1], model=SolventModel(gb="hct"), **FEW)
    same = screen(receptor, peptides[:1], gb="hct", inside=1, **FEW)
    assert other.binding[0] == same.binding[0]
    vacuum = screen(receptor, peptides[:1], gb="none", **FEW)
    assert "gb_pair" not in vacuum.records[0]["terms"]
    with pytest.raises(TypeError):
        screen(receptor, peptides[:1], insides=2)
    with pytest.raises(InputError):
        screen(receptor, [])
    with pytest.raises(InputError):
        screen(receptor, peptides[:1], inside=0, **FEW)


@needs_programs
def test_good_molecules_do_not_notice_hostile_ones(tmp_path, monkeypatch):
    """One hostile molecule of each kind, radicals to damaged files, among five; the benchmark has 500 among ten."""
    place = Path(__file__).parent / "benchmarks" / "hostile_ligands.py"
    spec = spec_from_file_location("hostile_ligands", place)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "GOOD", module.GOOD[::2])
    module.check(tmp_path / "hostile", module.cases(len(module.KINDS)))
