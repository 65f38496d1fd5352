"""`pele-ocl energy` as a user meets it, its timing table, and PDB files with several models."""

from __future__ import annotations

import csv
import gzip
import hashlib
import importlib.util
import json

import h5py
import numpy as np
import pytest
from conftest import DEVICES, load_system
from test_cli import (
    HEXAPEPTIDE,
    STRUCTURES,
    assert_numbers_stand_under_heads,
    error_of,
    on_the_chosen_device,
    run,
    run_table,
)
from tolerance import ENERGY, GRADIENT

from pele_ocl import FormatError, InputError, read, read_conformations
from pele_ocl.energy import TERMS, VARIANTS, Energy, energy

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

DOUBLE = ("--precision", "float64")
NONBONDED = ("--terms", ",".join(TERMS))  # of what the references are
OPENMM = ("--solvent-dielectric", 78.5, *NONBONDED)


@pytest.fixture(scope="module")
def atoms():
    return read(HEXAPEPTIDE)


def report(*arguments: object, path=HEXAPEPTIDE) -> dict:
    return json.loads(run("energy", path, *DOUBLE, "--json", *arguments).stdout)


@pytest.fixture
def models(tmp_path):
    """Three models, each moved and one bent, with a remark between them."""
    atom_lines = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith(("ATOM", "HETATM"))]
    text = "REMARK three conformations\n"
    for number, shift in ((2, 0.0), (3, 1.5), (7, -20.25)):
        text += f"MODEL     {number:4d}\n"
        for k, line in enumerate(atom_lines):
            x = float(line[30:38]) + shift + (0.05 if number == 7 and k == 10 else 0)
            text += f"{line[:30]}{x:8.3f}{line[38:]}\n"
        text += "ENDMDL\n"
    path = tmp_path / "models.pdb"
    path.write_text(text + "END\n")
    return path


# Output


def test_summary_is_for_reading():
    text = run("energy", HEXAPEPTIDE, *OPENMM).stdout
    assert "hexapeptide.pdb: 96 atoms, 6 residues, net charge -1.000 e" in text
    values = {
        "lennard jones": "-18.598", "lennard jones 14": "14.994", "coulomb": "-474.37", "coulomb 14": "499.004",
        "gb pair": "563.", "gb self": "-923.", "nonpolar": "7.398",
        "total": "-331.424",
    }  # fmt: skip
    for name, value in values.items():
        assert any(line.startswith(f"  {name}") and value in line for line in text.splitlines()), name
    assert "Gradient      norm " in text
    assert "maximum per atom " in text
    assert f"float32, on {DEVICES[0]}: kernels " in text


def test_json_is_one_object():
    found = report(*OPENMM)
    names = "schema structure sha256 "
    names += "n_atoms composition device variant precision born contents settings born_radius energy gradient seconds"
    names += " findings notes note_codes"
    assert list(found) == names.split()
    assert list(found["energy"]) == [*TERMS, "total"]
    energies = load_system("hexapeptide").energies
    expected = energies["openmm_nb_with14_kcal"] + energies["openmm_gb_78.5sa_kcal"]
    assert found["energy"]["total"] == pytest.approx(expected, rel=ENERGY["float64"])
    assert found["gradient"]["net"] < 1e-9 * found["gradient"]["norm"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_can_be_chosen(variant, atoms):
    found = report("--variant", variant)
    assert found["variant"] == variant
    assert found["energy"]["total"] == pytest.approx(
        energy(atoms, precision="float64", device=DEVICES[0]).total, rel=ENERGY["float64"]
    )


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("--cutoff", 9), {"cutoff": 9}),
        (("--one-four", "exclude"), {"one_four": "exclude"}),
        (("--fixed-radii",), {"fixed_radii": True}),
    ],
)
def test_options_reach_the_function(arguments, options, atoms):
    expected = energy(atoms, precision="float64", device=DEVICES[0], **options)
    found = report(*arguments)
    assert found["energy"] == pytest.approx(expected.energy, rel=ENERGY["float64"])
    assert found["gradient"]["norm"] == pytest.approx(np.linalg.norm(expected.gradient), rel=GRADIENT["float64"])
    assert found["gradient"]["norm"] != pytest.approx(report()["gradient"]["norm"], rel=1e-6)


def test_terms_are_chosen_by_name(atoms):
    found = report("--terms", "coulomb, coulomb_14")
    whole = energy(atoms, precision="float64", device=DEVICES[0]).energy
    assert found["contents"] == "coulomb, coulomb_14"
    assert report()["contents"] == "all terms"
    assert report("--terms", "bond,coulomb")["energy"].keys() == {"bond", "coulomb", "total"}
    assert found["energy"]["total"] == pytest.approx(whole["coulomb"] + whole["coulomb_14"], rel=ENERGY["float64"])
    refused = error_of("energy", HEXAPEPTIDE, "--terms", "cmap,coulomb")
    assert "unknown term 'cmap'; the terms of these atoms are bond, angle, torsion, improper, " in refused


def test_groups_of_terms_and_options_that_play_no_part():
    done = run("energy", HEXAPEPTIDE, "--no-gradient", "--terms", "bonded, lennard jones", "--surface", "lcpo")
    assert done.stderr.endswith("Note: --surface has no effect, as none of its terms is among --terms\n")
    assert [line.split("  ")[1] for line in done.stdout.splitlines() if line.startswith("  ")] == [
        "bond", "angle", "torsion", "improper", "lennard jones", "total",
    ]  # fmt: skip
    assert "GB model" not in done.stdout
    plan = Energy(read(HEXAPEPTIDE), only_terms=["gb", "nonbonded"])
    assert plan.names == ("lennard_jones", "lennard_jones_14", "coulomb", "coulomb_14", "gb_pair", "gb_self")
    with pytest.raises(InputError, match="use only_terms for terms of the force field"):
        Energy(plan.atoms, terms=["bond"])


def test_energies_alone(tmp_path):
    out = tmp_path / "out.h5"
    found = report("--no-gradient", "-o", out)
    assert found["gradient"] is None
    assert "Gradient" not in run("energy", HEXAPEPTIDE, "--no-gradient").stdout
    with h5py.File(out) as file:
        assert "gradient" not in file


def test_energies_per_residue_add_up():
    found = report("--per-residue")
    assert [r["residue"] for r in found["residues"]] == ["A:MET1", "A:LYS2", "A:GLU3", "A:PHE4", "A:GLY5", "A:ASP6"]
    for name, total in found["energy"].items():
        assert sum(r[name] for r in found["residues"]) == pytest.approx(total, rel=1e-9)
    assert_numbers_stand_under_heads(run("energy", HEXAPEPTIDE, "--per-residue").stdout, "residue", "A:ASP6")


def test_verbose_says_more():
    text = run("energy", HEXAPEPTIDE, "-v").stdout
    for part in ("Solvent model: forcefield amber99sb, solute_dielectric 1,", "Kernel: cl/energy/"):
        assert part in text


# Files


def test_hdf5_says_how_it_was_made(tmp_path):
    out = tmp_path / "out.h5"
    found = report("-o", out, *OPENMM)
    arrays = load_system("hexapeptide").arrays
    expected = -arrays["force_nb_with14"] - arrays["force_gb_78.5_sa"]
    with h5py.File(out) as file:
        assert np.linalg.norm(file["gradient"][:] - expected) < GRADIENT["float64"] * np.linalg.norm(expected)
        assert file["gradient"].attrs["unit"] == "kcal/mol/angstrom"
        np.testing.assert_allclose(file["born_radii"][:], arrays["born_radius"], rtol=1e-10)
        for name, value in found["energy"].items():
            assert file.attrs[f"energy_{name}"] == value
            assert file[name][:].sum() == pytest.approx(value, rel=1e-9)
        assert file.attrs["input_sha256"] == hashlib.sha256(HEXAPEPTIDE.read_bytes()).hexdigest()
        assert file.attrs["solvent_dielectric"] == 78.5


def test_csv_has_a_row_for_every_atom(tmp_path):
    out = tmp_path / "out.csv"
    found = report("-o", out)
    rows = list(csv.DictReader(line for line in out.read_text().splitlines() if not line.startswith("#")))
    assert len(rows) == 96
    total = sum(float(row["total [kcal/mol]"]) for row in rows)
    assert total == pytest.approx(found["energy"]["total"], rel=1e-9)


# Several models


def test_one_model_is_no_models(tmp_path):
    path = tmp_path / "one.pdb"
    path.write_text(HEXAPEPTIDE.read_text())
    assert "\n1 model\n" in run("energy", path, "--models", "all").stdout


def test_models_are_conformations(models, atoms):
    numbers, conformations = read_conformations(models)
    assert numbers == [2, 3, 7]
    assert conformations.shape == (3, 96, 3)
    np.testing.assert_allclose(conformations[0], atoms.positions, atol=1e-9)
    np.testing.assert_allclose(conformations[1] - conformations[0], np.tile([1.5, 0, 0], (96, 1)), atol=1e-9)
    for k, number in enumerate(numbers):
        np.testing.assert_array_equal(conformations[k], read(models, model=number).positions)


def test_all_models_at_once(models, tmp_path):
    out = tmp_path / "out.h5"
    found = report("--models", "all", "-o", out, path=models)
    assert [row["model"] for row in found["models"]] == [2, 3, 7]
    single = [report("--model", number, path=models)["energy"]["total"] for number in (2, 3, 7)]
    assert [row["energy"]["total"] for row in found["models"]] == pytest.approx(single, rel=1e-12)
    assert single[2] != pytest.approx(single[0], rel=1e-6)
    with h5py.File(out) as file:
        assert file["gradient"].shape == (3, 96, 3)
        assert file["born_radii"].shape == (3, 96)
        np.testing.assert_array_equal(file["model"][:], [2, 3, 7])
    done = run("energy", models, "--models", "all", "-o", tmp_path / "out.csv")
    assert done.stderr == ""
    table = done.stdout
    assert "3 models" in table
    assert_numbers_stand_under_heads(table, "model ", "    7")
    rows = [line for line in (tmp_path / "out.csv").read_text().splitlines() if not line.startswith("#")]
    assert len(rows) == 4
    assert "gradient" not in rows[0]


def test_one_model_or_all_of_them(models):
    assert "contains several models; model 2, the first, was read" in run("energy", models).stderr
    refused = run("energy", models, "--models", "all", "--model", 3, code=2)
    assert "choose one of --model and --models" in refused.stderr


def test_alternate_locations_are_as_in_the_first_model(tmp_path):
    lines = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith("ATOM")]
    copies = [lines[0], f"{lines[1][:16]}A{lines[1][17:54]}  0.70{lines[1][60:]}", *lines[2:]]
    copies.insert(2, f"{lines[1][:16]}B{lines[1][17:30]}{float(lines[1][30:38]) + 0.2:8.3f}{lines[1][38:54]}  0.30")
    path = tmp_path / "models.pdb.gz"
    body = "\n".join(copies)
    with gzip.open(path, "wt") as file:
        file.write(f"MODEL 1\n{body}\nENDMDL\nMODEL 2\n{body}\nENDMDL\n")
    numbers, conformations = read_conformations(path)
    assert numbers == [1, 2]
    np.testing.assert_array_equal(conformations[0], conformations[1])
    assert conformations.shape == (2, 96, 3)


def test_models_of_other_atoms_are_refused(models):
    text = models.read_text()
    lines = text.splitlines(keepends=True)
    models.write_text("".join(lines[:-3] + lines[-2:]))
    with pytest.raises(FormatError, match=r"model 7 has 95 atoms, model 2 96; expected conformations of one molecule"):
        read_conformations(models)
    changed = text.replace(
        "ENDMDL\nMODEL        3\nATOM      1  N   MET", "ENDMDL\nMODEL        3\nATOM      1  N   ALA"
    )
    assert changed != text
    models.write_text(changed)
    with pytest.raises(
        FormatError, match=r"models.pdb:101: 'N   ALA A   1' is in the position of model 2's 'N   MET A   1'"
    ):
        read_conformations(models)


def test_other_formats_have_their_models_one_by_one(tmp_path):
    with pytest.raises(FormatError, match="all models can only be read together from PDB and mmCIF files"):
        read_conformations(tmp_path / "structure.pqr")
    empty = tmp_path / "empty.pdb"
    empty.write_text("REMARK nothing\nEND\n")
    with pytest.raises(FormatError, match="contains no ATOM or HETATM records"):
        read_conformations(empty)


# Errors


def test_errors_are_sentences(tmp_path):
    assert "cutoff is -1; expected a positive number" in error_of("energy", HEXAPEPTIDE, "--cutoff", -1)
    assert "does not exist" in error_of("energy", HEXAPEPTIDE, "-o", tmp_path / "no" / "out.h5")
    pqr = tmp_path / "two.pqr"
    pqr.write_text("ATOM 1 N ALA 1 0 0 0 0.1 1.5\nATOM 2 C ALA 1 3 0 0 -0.1 1.5\n")
    assert error_of("energy", pqr) == f"{pqr}: a .pqr file has no Lennard-Jones parameters; give a .pdb or .cif file"
    run("energy", HEXAPEPTIDE, "--no-gradient", "--fixed-radii", code=2)


@pytest.mark.parametrize("command", [run, run_table])
def test_help(command):
    text = command("energy", "--help-all").stdout
    for word in ("Usage:", "--variant", "--precision", "--device"):
        assert word in text


# Timing


def test_bench_has_honest_rows():
    command = "energy", "--system", "hexapeptide", "--runs", 3, "--conformations", 4, "--no-peers"
    every = [word for variant in VARIANTS for word in ("--variant", variant)]
    rows = [json.loads(line) for line in run_table(*command, "--json", *every).stdout.splitlines()]
    precisions = 2 if DEVICES[0].has_float64 else 1
    assert len(rows) == precisions * len(VARIANTS) * 2
    for row in rows:
        assert row["seconds"] > 0
        assert row["energy_error"] < ENERGY[row["precision"]]
        assert row["gradient_error"] < GRADIENT[row["precision"]]
        assert row["speedup"] is None
    assert {row["conformations"] for row in rows} == {1, 4}
    text = run_table("energy", "--system", "hexapeptide", "--runs", 3, "--no-peers").stdout
    assert text.startswith(f"Energy and full gradient on {DEVICES[0]}\nOpenMM's CPU platform was left out: no speed-up")
    kind = "GPU" if DEVICES[0].kind == "GPU" else "CPU"
    assert all((f" {name} " in text) == (variant.made_for == kind) for name, variant in VARIANTS.items())


@pytest.mark.skipif(importlib.util.find_spec("openmm") is None, reason="OpenMM is not installed")
def test_bench_times_openmm_beside_us():
    command = "energy", "--system", "hexapeptide", "--runs", 3, "--precision", "float32", "--json"
    rows = {row["code"]: row for row in map(json.loads, run_table(*command).stdout.splitlines())}
    peer = rows["OpenMM CPU"]
    assert peer["speedup"] == 1
    assert peer["energy_error"] < 1e-4
    assert peer["gradient_error"] < 1e-4
    assert rows["blocks"]["speedup"] == pytest.approx(peer["seconds"] / rows["blocks"]["seconds"])


def test_structures_of_the_package_have_an_energy():
    assert json.loads(run("energy", STRUCTURES / "ubiquitin.pdb", "--json").stdout)["n_atoms"] == 1231
