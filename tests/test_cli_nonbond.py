"""`pele-ocl nonbond` and `pele-ocl bench nonbond` as a user meets them."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import json
import sys
from importlib import import_module

import h5py
import numpy as np
import pytest
from conftest import DEVICES, has_native_atomics, load_system
from test_cli import HEXAPEPTIDE, STRUCTURES, error_of, on_the_chosen_device, run
from timing_tables.openmm import OpenMM, pairs_within_cutoff
from tolerance import ENERGY, GRADIENT

import pele_ocl
from pele_ocl import SolventModel, read
from pele_ocl.bench import nonbond as bench_nonbond
from pele_ocl.ladder import NONBOND as VARIANTS
from pele_ocl.nonbond import choose_variant, nonbond
from pele_ocl.pairs import all_pairs, internal_dielectrics, pairs_split, pairs_within, read_pairs
from pele_ocl.pairs import write_pairs as save_pairs

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

DOUBLE = ("--precision", "float64")
AUTO = choose_variant(DEVICES[0].kind, 1)
AVAILABLE = [name for name in VARIANTS if name != "atomic-native" or has_native_atomics(DEVICES[0])]


@pytest.fixture(scope="module")
def atoms():
    return read(HEXAPEPTIDE)


def report(*arguments: object, path=HEXAPEPTIDE) -> dict:
    return json.loads(run("nonbond", path, *DOUBLE, "--json", *arguments).stdout)


def same(found: dict, atoms, pairs, **options) -> None:
    """A command's JSON holds what the function gives."""
    expected = nonbond(atoms, pairs, precision="float64", device=DEVICES[0], **options)
    assert found["n_pairs"] == len(pairs)
    assert found["energy"] == pytest.approx(expected.energy, rel=ENERGY["float64"])
    assert found["gradient"]["norm"] == pytest.approx(np.linalg.norm(expected.gradient), rel=GRADIENT["float64"])


# Output


def test_summary_is_for_reading():
    text = run("nonbond", HEXAPEPTIDE).stdout
    assert "hexapeptide.pdb: 96 atoms, 6 residues, net charge -1.000 e" in text
    assert "3,633 pairs" in text
    values = {"lennard jones": "-18.583", "coulomb": "-453.663", "gb pair": "380.253", "total": "-91.99"}
    for name, value in values.items():
        assert any(line.startswith(f"  {name}") and value in line for line in text.splitlines()), name
    assert "Gradient      norm 28.507, maximum per atom 11.888, net " in text
    assert f"{AUTO}, float32, on {DEVICES[0]}: kernels " in text


def test_verbose_says_more():
    text = run("nonbond", HEXAPEPTIDE, "-v").stdout
    for part in (
        "Times: pairs ",
        ", prepare ",
        ", kernel ",
        ", total ",
        f"Kernel: cl/nonbond/{AUTO}.cl, {VARIANTS[AUTO].summary}",
    ):
        assert part in text
    assert "Times" not in run("nonbond", HEXAPEPTIDE).stdout


def test_json_is_one_object(atoms):
    found = report()
    names = "schema structure sha256 "
    names += "n_atoms composition device variant precision settings n_pairs energy gradient seconds findings notes "
    names += "note_codes"
    assert list(found) == names.split()
    assert list(found["energy"]) == ["lennard_jones", "coulomb", "gb_pair", "total"]
    assert list(found["gradient"]) == ["norm", "max", "net"]
    assert list(found["seconds"]) == ["pairs", "prepare", "kernel", "total"]
    facts = [found[key] for key in ("n_atoms", "device", "variant", "precision")]
    assert facts == [96, str(DEVICES[0]), AUTO, "float64"]
    assert found["energy"]["total"] == pytest.approx(sum(found["energy"].values()) - found["energy"]["total"])
    assert 0 <= found["gradient"]["net"] < 1e-9 * found["gradient"]["norm"]
    assert found["gradient"]["max"] == pytest.approx(11.888, abs=1e-3)
    same(found, atoms, pairs_within(atoms, 12))


@pytest.mark.parametrize("variant", AVAILABLE)
def test_every_variant_can_be_chosen(variant):
    found = report("--variant", variant)
    assert found["variant"] == variant
    assert found["energy"]["total"] == pytest.approx(-91.9936, abs=1e-3)


def test_naive_gets_a_warning():
    warned = run("nonbond", HEXAPEPTIDE, "--variant", "naive", "--json")
    assert warned.stderr == "Warning: naive loses updates because of races, by design; do not use its gradient\n"
    assert json.loads(warned.stdout)["variant"] == "naive"
    assert run("nonbond", HEXAPEPTIDE, "--variant", "naive", "--no-gradient").stderr == ""
    assert run("nonbond", HEXAPEPTIDE, "--variant", "atomic").stderr == ""


def test_energies_alone(tmp_path):
    out = tmp_path / "out.h5"
    found = report("--no-gradient", "-o", out)
    assert found["gradient"] is None
    assert found["energy"] == pytest.approx(report()["energy"], rel=ENERGY["float64"])
    assert "Gradient" not in run("nonbond", HEXAPEPTIDE, "--no-gradient").stdout
    with h5py.File(out) as file:
        assert "gradient" not in file


def test_hdf5_says_how_it_was_made(tmp_path):
    out = tmp_path / "out.h5"
    found = report("-o", out, "--no-cutoff", "--solvent", "vacuum")
    expected = -load_system("hexapeptide").arrays["force_nb_no14"]
    with h5py.File(out) as file:
        gradient = file["gradient"][:]
        assert gradient.shape == (96, 3)
        assert np.linalg.norm(gradient - expected) < GRADIENT["float64"] * np.linalg.norm(expected)
        assert file["gradient"].attrs["unit"] == "kcal/mol/angstrom"
        for name, value in found["energy"].items():
            assert file.attrs[f"energy_{name}"] == value
        assert file.attrs["input_sha256"] == hashlib.sha256(HEXAPEPTIDE.read_bytes()).hexdigest()
        assert file.attrs["n_pairs"] == found["n_pairs"]
        assert (file.attrs["variant"], file.attrs["precision"]) == (AUTO, "float64")
        assert file.attrs["gb"] == "none"
        assert pele_ocl.__version__ in file.attrs["software"]
        assert {"seconds_prepare", "command", "device"} <= set(file.attrs)
        assert [name.decode() for name in file["atom_name"][:2]] == ["N", "H"]


def test_csv_and_json_tables_hold_the_gradient(tmp_path):
    expected = -load_system("hexapeptide").arrays["force_nb_no14"]
    options = ("--no-cutoff", "--solvent", "vacuum")
    report("-o", tmp_path / "out.json", *options)
    columns = json.loads((tmp_path / "out.json").read_text())["columns"]
    np.testing.assert_allclose(columns["gradient"], expected, atol=1e-9)
    report("-o", tmp_path / "out.csv", *options)
    lines = [line for line in (tmp_path / "out.csv").read_text().splitlines() if not line.startswith("#")]
    places = [k for k, name in enumerate(next(csv.reader(lines))) if name.startswith("gradient")]
    values = [[float(row[k]) for k in places] for row in list(csv.reader(lines))[1:]]
    np.testing.assert_allclose(values, expected, atol=1e-9)


def test_vacuum_is_gb_none():
    one, other = (report("--no-cutoff", *option) for option in (("--solvent", "vacuum"), ("--gb", "none")))
    for found in (one, other):
        del found["seconds"]
    assert one == other
    assert list(one["energy"]) == ["lennard_jones", "coulomb", "total"]
    texts = [run("nonbond", HEXAPEPTIDE, *option).stdout for option in (("--solvent", "vacuum"), ("--gb", "none"))]
    one_text, other_text = (text[: text.index(": kernels")] for text in texts)
    assert one_text == other_text
    assert "Solvent       none (vacuum), inside 1; pairs within 12 A" in one_text


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--solvent", "vacuum", "--gb", "obc1"), "--gb"),
        (("--solvent", "vacuum", "--ionic-strength", "0.1", "--born-cutoff", "9"), "--ionic-strength, --born-cutoff"),
        (("--gb", "none", "--solvent-dielectric", "60"), "--solvent-dielectric"),
        (("--gb", "none", "--solvent", "gb"), "--solvent"),
        (("--gb", "none", "--gb-radii", "mbondi3"), "--gb-radii"),
    ],
)
def test_options_of_a_solvent_that_is_left_out_are_refused(options, named):
    word = "--gb none" if options[0] == "--gb" else "--solvent vacuum"
    expected = f"Error: {word} has no solvent; leave out {named}, which would have no effect"
    assert expected in run("nonbond", HEXAPEPTIDE, *options, code=2).stderr


def test_options_that_count_in_vacuum_are_taken():
    said_twice = ("--gb", "none", "--ionic-strength", "0")
    half = report("--solvent", "vacuum", *said_twice, "--solute-dielectric", "2", "--like", "pele")
    whole = report("--gb", "none", "--like", "pele")
    assert half["energy"]["coulomb"] == pytest.approx(whole["energy"]["coulomb"] / 2)


# Pairs


@pytest.mark.parametrize("suffix", [".h5", ".npz", ".txt", ".csv"])
def test_a_list_written_is_the_list_read(tmp_path, atoms, suffix):
    file = tmp_path / f"pairs{suffix}"
    written = report("--cutoff", 7, "--one-four", "scale", "--write-pairs", file)
    wanted, found = pairs_within(atoms, 7, "scale"), read_pairs(file, 96)
    for name in ("first", "second", "one_four"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    again = report("--pairs", file, "--one-four", "scale")
    for key in ("n_pairs", "energy", "gradient"):
        assert again[key] == written[key]


@pytest.mark.parametrize(
    ("one_four", "up_to", "advice"),
    [("exclude", "three", "; --one-four scale keeps pairs three bonds apart"), ("scale", "two", "")],
)
def test_bonds_rule_over_a_list_from_a_file(tmp_path, atoms, one_four, up_to, advice):
    file = tmp_path / "pairs.npz"
    first, second = np.triu_indices(96, 1)
    np.savez(file, first=first, second=second)
    done = run("nonbond", HEXAPEPTIDE, *DOUBLE, "--json", "--pairs", file, "--one-four", one_four)
    left_out = len(first) - len(all_pairs(atoms, one_four))
    assert done.stderr == f"Note: {file}: left out {left_out} pairs of atoms up to {up_to} bonds apart{advice}\n"
    same(json.loads(done.stdout), atoms, all_pairs(atoms, one_four))
    save_pairs(file, all_pairs(atoms))
    note = run("nonbond", HEXAPEPTIDE, "--pairs", file, "--one-four", one_four).stderr
    missing = "contains none of the molecule's 1-4 pairs, so --one-four scale has no effect"
    assert (missing in note) == (one_four == "scale")
    assert "has no atom names, so its order is used" in note


def test_a_list_may_bring_its_own_values(tmp_path, atoms):
    file = tmp_path / "pairs.txt"
    file.write_text("# first second sigma2 charge_products\n0 20 9.0 -0.5\n40 3 8.0 0.25\n")
    found = report("--pairs", file, "--solvent", "vacuum")
    same(found, atoms, read_pairs(file, 96), model=SolventModel(gb="none"))
    assert found["n_pairs"] == 2
    d = np.linalg.norm(atoms.positions[[0, 40]] - atoms.positions[[20, 3]], axis=1)
    assert found["energy"]["coulomb"] == pytest.approx(332.063713 * (-0.5 / d[0] + 0.25 / d[1]), rel=1e-8)


@pytest.mark.parametrize("one_four", ["exclude", "scale"])
def test_lists_by_option(atoms, one_four):
    option = ("--one-four", one_four)
    same(report("--cutoff", 5, *option), atoms, pairs_within(atoms, 5, one_four))
    same(report("--no-cutoff", *option), atoms, all_pairs(atoms, one_four))
    same(report("--split-cutoffs", *option), atoms, pairs_split(atoms, one_four=one_four))
    vacuum = report("--no-cutoff", *option, "--solvent", "vacuum")["energy"]
    key = "with14" if one_four == "scale" else "no14"
    assert vacuum["total"] == pytest.approx(load_system("hexapeptide").energies[f"openmm_nb_{key}_kcal"], rel=1e-11)
    assert "gb_pair" not in vacuum


@pytest.mark.parametrize(
    "options",
    [
        ("--cutoff", 8, "--no-cutoff"),
        ("--cutoff", 8, "--pairs", "pairs.h5"),
        ("--no-cutoff", "--split-cutoffs"),
        ("--split-cutoffs", "--pairs", "pairs.h5"),
    ],
)
def test_one_list_at_a_time(options):
    result = run("nonbond", HEXAPEPTIDE, *options, code=2)
    assert "use only one of --cutoff, --no-cutoff, --split-cutoffs and --pairs" in result.stderr
    assert result.stdout == ""


# Model


def test_options_reach_the_model(atoms):
    found = report("--solvent-dielectric", 40, "--ionic-strength", 0.3, "--solute-dielectric", 2)
    model = pele_ocl.SolventModel(solute_dielectric=2, solvent_dielectric=40, ionic_strength=0.3)
    same(found, atoms, pairs_within(atoms, 12), model=model)
    assert abs(found["energy"]["coulomb"] / report()["energy"]["coulomb"] - 0.5) < 1e-9


def test_variable_dielectric(atoms):
    found = report("--internal-dielectric", "vdgbnp")
    inside = internal_dielectrics(atoms)
    assert len(set(inside.tolist())) > 1
    same(found, atoms, pairs_within(atoms, 12), internal_dielectrics=inside)
    assert abs(found["energy"]["coulomb"] / report()["energy"]["coulomb"] - 1) > 0.05


def test_a_solute_dielectric_beside_the_variable_one_is_a_usage_error():
    for value in (1, 4):  # 1 is the default, but nobody gives it for nothing
        options = ("--internal-dielectric", "vdgbnp", "--solute-dielectric", value)
        stderr = run("nonbond", HEXAPEPTIDE, *options, code=2).stderr
        assert "--internal-dielectric vdgbnp replaces --solute-dielectric; leave one out" in stderr
    report("--internal-dielectric", "uniform", "--solute-dielectric", 4)


# Errors


@pytest.mark.parametrize("cutoff", ["-3", "0", "nan", "inf"])
def test_bad_cutoffs_are_sentences(cutoff):
    sentence = error_of("nonbond", HEXAPEPTIDE, "--cutoff", cutoff)
    assert sentence == f"cutoff is {float(cutoff):g}; expected a positive, finite distance in A"


def test_a_list_of_other_atoms_is_refused(tmp_path):
    save_pairs(tmp_path / "pairs.h5", all_pairs(read(STRUCTURES / "ubiquitin.pdb")))
    sentence = error_of("nonbond", HEXAPEPTIDE, "--pairs", tmp_path / "pairs.h5")
    assert "was written for 1231 atoms, not for these 96" in sentence


def test_bad_pairs_are_named(tmp_path):
    file = tmp_path / "pairs.txt"
    file.write_text("0 1\n5 5\n")
    sentence = error_of("nonbond", HEXAPEPTIDE, "--pairs", file)
    assert sentence.startswith(f"{file}:2: atom 5 (A:MET1:")
    assert "is paired with itself" in sentence


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("-o", "out.xlsx"),
        ("-o", "missing/out.h5"),
        ("--write-pairs", "out.xlsx"),
        ("--write-pairs", "missing/out.h5"),
    ],
)
def test_bad_output_is_refused_before_the_work(tmp_path, option, name, monkeypatch):
    monkeypatch.setattr(sys.modules["pele_ocl.nonbond.spec"], "having", lambda *_: pytest.fail("computed"))
    assert str(tmp_path) in error_of("nonbond", HEXAPEPTIDE, option, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def nothing_computed(monkeypatch):
    monkeypatch.setattr(sys.modules["pele_ocl.nonbond.spec"], "having", lambda *_: pytest.fail("computed"))


@pytest.mark.parametrize("other", ["out.h5", "./out.h5", "link.h5"])
def test_two_outputs_in_one_file_are_a_usage_error(tmp_path, other, nothing_computed):
    (tmp_path / "link.h5").symlink_to(tmp_path / "out.h5")
    out = ("-o", tmp_path / "out.h5", "--write-pairs", f"{tmp_path}/{other}")
    stderr = run("nonbond", HEXAPEPTIDE, *out, code=2).stderr
    assert "-o and --write-pairs name the same file; give one of them a different name" in stderr
    assert not (tmp_path / "out.h5").exists()


@pytest.mark.parametrize("option", ["-o", "--write-pairs"])
def test_inputs_are_not_written_over(tmp_path, option, nothing_computed):
    file = tmp_path / "pairs.h5"
    save_pairs(file, all_pairs(read(HEXAPEPTIDE)))
    before = file.read_bytes()
    sentence = error_of("nonbond", HEXAPEPTIDE, "--pairs", file, option, file)
    assert sentence.endswith("give the output a different name")
    assert file.read_bytes() == before


def test_the_list_is_not_left_behind_without_the_result(tmp_path, monkeypatch):
    def disk_is_full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(import_module("pele_ocl.formats"), "write_table", disk_is_full)
    run("nonbond", HEXAPEPTIDE, "-o", tmp_path / "out.h5", "--write-pairs", tmp_path / "pairs.h5", code=1)
    assert list(tmp_path.iterdir()) == []


def test_parameters_that_a_pqr_lacks_are_named(tmp_path):
    path = tmp_path / "in.pqr"
    path.write_text("ATOM 1 N ALA 1 0.0 0.0 0.0 0.5 1.5\nATOM 2 CA ALA 1 1.5 0.0 0.0 -0.5 1.7\nEND\n")
    sentence = f"{path}: a .pqr file has no Lennard-Jones parameters; give a .pdb or .cif file"
    assert error_of("nonbond", path) == sentence


def test_atomic_native_needs_the_device(monkeypatch):
    monkeypatch.setattr(type(DEVICES[0]), "has_float_atomics", lambda *_: False)
    sentence = error_of("nonbond", HEXAPEPTIDE, "--variant", "atomic-native")
    assert sentence.endswith(
        "has no atomic addition of float32 numbers; choose --variant atomic, which does not need it"
    )


def test_usage_errors_exit_with_2():
    run("nonbond", code=2)
    run("nonbond", HEXAPEPTIDE, "--variant", "fast", code=2)
    run("nonbond", HEXAPEPTIDE, "--solvent", "oil", code=2)


# Bench

BENCH = ("bench", "nonbond", "--system", "hexapeptide", "--runs", 3)


def test_bench_prints_a_row_for_each_variant():
    lines = run(*BENCH).stdout.splitlines()
    assert any(line.startswith("hexapeptide: 96 atoms, 3,633 pairs within 12 A, on ") for line in lines)
    precisions = 2 if DEVICES[0].has_float64 else 1
    for variant in AVAILABLE:  # sorted and shuffled, with and without gradient
        assert sum(f" {variant} " in line for line in lines) == 4 * precisions


def test_bench_json_has_honest_rows():
    rows = [json.loads(line) for line in run(*BENCH, "--json", "--cutoff", 9).stdout.splitlines()]
    assert {row["order"] for row in rows} == {"sorted", "shuffled"}
    assert {row["with_gradient"] for row in rows} == {True, False}
    for row in rows:
        assert row["seconds"] > 0
        assert (row["n_atoms"], row["n_pairs"]) == (96, len(pairs_within(load_system("hexapeptide").atoms, 9)))
        assert row["energy_error"] < (1e-9 if row["precision"] == "float64" else 1e-4)
        assert (row["gradient_error"] is None) == (not row["with_gradient"])
        if row["with_gradient"] and row["variant"] != "naive":
            assert row["gradient_error"] < GRADIENT[row["precision"]]
        if row["variant"] == "sequential":
            assert row["speedup"] == pytest.approx(1)


def test_bench_takes_one_order_and_some_variants():
    command = (*BENCH, "--order", "shuffled", "--variant", "rows", "--precision", "float32", "--json")
    rows = [json.loads(line) for line in run(*command).stdout.splitlines()]
    assert [(row["order"], row["variant"], row["speedup"]) for row in rows] == [("shuffled", "rows", None)] * 2


def test_bench_computes_the_reference_once(monkeypatch):
    calls, definition = [], bench_nonbond.definition
    monkeypatch.setattr(bench_nonbond, "definition", lambda *a, **k: (calls.append(a), definition(*a, **k))[1])
    run(*BENCH, "--variant", "rows")
    assert len(calls) == 1


@pytest.mark.skipif(importlib.util.find_spec("openmm") is None, reason="OpenMM is not installed")
def test_openmm_has_our_pairs():
    atoms = load_system("ubiquitin").atoms
    peer = OpenMM.of(pairs_within_cutoff(atoms, 10.0), atoms.positions, "Reference", "float64")
    ours = nonbond(atoms, pairs_within(atoms, 10.0), solvent="vacuum", precision="float64", device=DEVICES[0])
    error = np.linalg.norm(peer.evaluate()[1] - ours.gradient) / np.linalg.norm(ours.gradient)
    assert error < 1e-11


def test_bench_without_pairs_says_so():
    done = run(*BENCH, "--cutoff", 0.5)
    assert done.stderr == "Note: hexapeptide has no pairs within 0.5 A; choose a larger --cutoff\n"
    assert done.stdout == ""


@pytest.mark.parametrize("command", [("nonbond",), ("bench", "nonbond")])
def test_help(command):
    text = run(*command, "--help-all").stdout
    for word in ("Usage:", "--variant", "--precision", "--device", "--cutoff"):
        assert word in text


# Nothing to compute


def test_no_pair_is_said(tmp_path):
    lone = tmp_path / "in.pdb"
    lone.write_text("HETATM    1 NA    NA A   1       1.000   2.000   3.000  1.00  0.00          NA\nEND\n")
    done = run("nonbond", lone, "--no-cutoff")
    note = "Note: no pairs to compute; all energies are 0: every pair of atoms is excluded because of bonds\n"
    assert done.stderr.endswith(note)
    assert "in.pdb: 1 atom, 1 ion (NA), net charge +1.000 e\n" in done.stdout
    assert "\n0 pairs\n" in done.stdout
    done = run("nonbond", HEXAPEPTIDE, "--cutoff", 0.5)
    assert "0: every pair of atoms within 0.5 A of each other is excluded because of bonds\n" in done.stderr
    empty = tmp_path / "empty.txt"
    empty.write_text("# none\n")
    done = run("nonbond", HEXAPEPTIDE, "--pairs", empty)
    assert f"0: {empty} contains only pairs that are excluded because of bonds\n" in done.stderr
    assert "Note" not in run("nonbond", HEXAPEPTIDE).stderr
