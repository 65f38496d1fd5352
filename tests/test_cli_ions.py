"""`pele-ocl ions` and `python tests/benchmarks/table.py ions` as a user meets them."""

from __future__ import annotations

import json

import gemmi
import numpy as np
import pytest
from conftest import DEVICES
from test_cli import HEXAPEPTIDE, STRUCTURES, error_of, on_the_chosen_device, run, run_table

from pele_ocl import place_ions, read, read_map

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

UBIQUITIN = STRUCTURES / "ubiquitin.pdb"
COARSE = ("--spacing", 1)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.pdb"


def report(out, *arguments, path=HEXAPEPTIDE) -> dict:
    return json.loads(run("ions", path, "-o", out, *COARSE, "--json", *arguments).stdout)


def test_summary_is_for_reading(out):
    text = run("ions", HEXAPEPTIDE, "-o", out, *COARSE, "--add", "NA:3", "--add", "CL:auto", "--neutralize").stdout
    lines = text.splitlines()
    assert lines[0] == "hexapeptide.pdb: 96 atoms, 6 residues, net charge -1.000 e"
    assert lines[1:3] == ["Force field   amber99sb", "Medium        dielectric 1, no salt; all charges"]
    assert lines[3] == "5 ions: 3 NA, 2 CL; net charge including them +0.000 e"
    assert lines[5].split() == ["ion", "x", "y", "z", "A", "kcal/mol/e", "kcal/mol"]
    assert [line.split()[1] for line in lines[6:11]] == ["NA", "CL", "NA", "CL", "NA"]
    assert "Energy of the ions -" in text
    assert f"blocked, float32, on {DEVICES[0]}: map " in text
    assert "Grid:" not in text
    assert "Grid: 33 x 34 x 39 points" in run("ions", HEXAPEPTIDE, "-o", out, *COARSE, "--add", "NA:3", "-v").stdout


def test_json_holds_what_the_function_gives(out):
    found = report(out, "--add", "NA:3", "--add", "CL:2", "--precision", "float64", "--padding", 8)
    expected = place_ions(
        read(HEXAPEPTIDE), {"NA": 3, "CL": 2}, spacing=1, padding=8, precision="float64", device=DEVICES[0]
    )
    names = "schema structure sha256 "
    names += "n_atoms composition n_ions counts net_charge free_volume shape origin spacing device variant precision"
    assert list(found) == [*names.split(), "energy", "ions", "seconds", "settings", "notes", "note_codes"]
    assert found["counts"] == {"NA": 3, "CL": 2}
    assert found["shape"] == list(expected.grid.shape)
    assert found["energy"]["total"] == pytest.approx(expected.energy)
    assert [ion["ion"] for ion in found["ions"]] == ["NA", "CL", "NA", "CL", "NA"]
    assert [ion["position"] for ion in found["ions"]] == expected.positions.tolist()
    assert [ion["potential"] for ion in found["ions"]] == pytest.approx(expected.potentials)
    assert [ion["energy"] for ion in found["ions"]] == pytest.approx(expected.energies)
    assert list(found["seconds"]) == ["map", "exclusion", "ions", "total"]


def test_the_file_holds_molecule_and_ions(out):
    found = report(out, "--concentration", 0.15, path=UBIQUITIN)
    structure = gemmi.read_structure(str(out))
    protein, ions = structure[0]
    assert len(protein) == 76
    np.testing.assert_allclose([r[0].pos.tolist() for r in ions], [i["position"] for i in found["ions"]], atol=5e-4)
    assert [r.name for r in ions] == [i["ion"] for i in found["ions"]]
    kept = [line for line in out.read_text().splitlines() if not line.startswith("HETATM")]
    assert kept == UBIQUITIN.read_text().splitlines()
    assert read(out).charges.sum() == pytest.approx(0, abs=1e-3)
    concentration = found["counts"]["NA"] / 0.602214 * 1000 / found["free_volume"]
    assert concentration == pytest.approx(0.15, abs=0.5 / 0.602214 * 1000 / found["free_volume"])


def test_neutralize_alone_chooses_sodium_or_chloride(out):
    assert report(out, "--neutralize")["counts"] == {"NA": 1}
    assert read(out).charges.sum() == pytest.approx(0, abs=1e-6)


def test_the_map_with_the_ions(out, tmp_path):
    chart = tmp_path / "map.dx"
    report(out, "--add", "MG:2", "--map", chart, "--dielectric", 4, "--precision", "float64")
    expected = place_ions(
        read(HEXAPEPTIDE), {"MG": 2}, spacing=1, dielectric=4, precision="float64", device=DEVICES[0], keep_map=True
    )
    written = read_map(chart)
    np.testing.assert_allclose(written.values, expected.map.values, rtol=1e-5, atol=1e-4)
    assert written.unit == "kcal/mol/e"


def test_mmcif_comes_out_as_pdb(out, tmp_path):
    source = tmp_path / "in.cif"
    gemmi.read_structure(str(HEXAPEPTIDE)).make_mmcif_document().write_file(str(source))
    assert report(out, "--add", "NA:1", path=source)["n_atoms"] == 96
    assert len(read(out)) == 97


def test_ions_of_the_file_stay_and_are_told(out, tmp_path):
    assert "already" not in run("ions", HEXAPEPTIDE, "-o", out, *COARSE, "--add", "NA:2", "--add", "CL:1").stderr
    more = tmp_path / "more.pdb"
    done = run("ions", out, "-o", more, *COARSE, "--add", "CL:1")
    assert f"Note: {out} already contains ions (2 NA, 1 CL); they are treated as part of the molecule" in done.stderr
    assert done.stdout.startswith("out.pdb: 99 atoms, 6 amino acids, 3 ions (2 NA, 1 CL), net charge +0.000 e\n")
    assert "\n1 ion: 1 CL;" in done.stdout
    assert len(read(more)) == 100


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--add", "NA:0"), "no ion was placed: all counts are 0"),
        (("--add", "CL:auto", "--neutralize"), "no requested ion brings the net charge of -1.000 e closer to"),
        (("--add", "CL:auto", "--concentration", 1e-5), "1e-05 mol/L in the free volume of "),
    ],
)
def test_no_ion_is_said(out, arguments, words):
    done = run("ions", HEXAPEPTIDE, "-o", out, *COARSE, *arguments)
    assert done.stderr.startswith("Note: no ion was placed: ")
    assert words in done.stderr
    assert "\n0 ions; net charge including them -1.000 e\n" in done.stdout
    assert len(read(out)) == 96


def test_a_map_of_the_salted_molecule(out, tmp_path):
    """Ions stand on multiples of the spacing; the map's points stand beside them."""
    done = run("ions", HEXAPEPTIDE, "-o", out, "--add", "NA:3")
    assert "\n3 ions: 3 NA;" in done.stdout
    for spacing in (0.5, 0.25, 1):
        run("potmap", out, "--spacing", spacing, "--padding", 1, "-o", tmp_path / "map.mrc")
        beside = read_map(tmp_path / "map.mrc").grid.origin / spacing % 1
        np.testing.assert_allclose(beside, 0.5 if spacing < 1 else beside[0])
    again = run("ions", out, "-o", tmp_path / "again.pdb", "--add", "CL:1")
    assert "\n1 ion: 1 CL;" in again.stdout
    assert len(read(tmp_path / "again.pdb")) == 100


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--add", "NA"], "'NA' is not NAME:COUNT or NAME:auto"),
        (["--add", "NA:-1"], "'NA:-1' is not NAME:COUNT"),
        (["--add", "NA:1", "--ion", "NA:2"], "NA is given twice"),
        ([], "specify the ions: --add, or --neutralize, or --concentration 0.15"),
        (["--neutralize", "--concentration", "0.1"], "choose one of --neutralize and --concentration"),
    ],
)
def test_usage_errors(out, arguments, words):
    result = run("ions", HEXAPEPTIDE, "-o", out, *arguments, code=2)
    assert words in result.stderr
    assert not out.exists()


def test_errors_leave_nothing_behind(out, tmp_path):
    assert "unknown ion 'XX'" in error_of("ions", HEXAPEPTIDE, "-o", out, "--add", "XX:1")
    assert "NA:auto needs a rule" in error_of("ions", HEXAPEPTIDE, "-o", out, "--add", "NA:auto")
    assert "there was room for " in error_of("ions", HEXAPEPTIDE, "-o", out, *COARSE, "--add", "NA:100")
    assert list(tmp_path.iterdir()) == []


def test_outputs_are_checked_first(tmp_path):
    ion = ("--add", "NA:1")
    assert "unknown suffix '.cif'" in error_of("ions", "no.pdb", "-o", tmp_path / "out.cif", *ion)
    assert "the folder" in error_of("ions", "no.pdb", "-o", tmp_path / "no" / "out.pdb", *ion)
    assert "same file as the input" in error_of("ions", HEXAPEPTIDE, "-o", HEXAPEPTIDE, *ion)
    assert "unknown suffix '.xyz'" in error_of(
        "ions", "no.pdb", "-o", tmp_path / "o.pdb", "--map-output", "m.xyz", *ion
    )
    assert "no such file" in error_of("ions", tmp_path / "no.pdb", "-o", tmp_path / "out.pdb", *ion)
    assert list(tmp_path.iterdir()) == []


def test_bench_prints_a_row_for_each_precision():
    command = ("ions", "--system", "hexapeptide", "--ions", 4, "--runs", 1)
    lines = run_table(*command).stdout.splitlines()
    assert lines[0].startswith("hexapeptide: 96 atoms, 64 x 66 x 75 points, 4 ions, on ")
    assert [line.split()[0] for line in lines[1:]] == ["precision", "float32", "float64"]
    found = json.loads(run_table(*command, "--points", 40, "--precision", "float32", "--json").stdout)
    assert found["shape"] == [40, 40, 40]
    assert found["ratio"] == pytest.approx(found["ions_seconds"] / 4 / (found["map_seconds"] / 96))
