"""`pele-ocl potmap` and `pele-ocl bench potmap` as a user meets them."""

from __future__ import annotations

import json
import re
from importlib import import_module

import h5py
import numpy as np
import pytest
from conftest import DEVICES
from maps_helpers import relative
from test_cli import HEXAPEPTIDE, error_of, on_the_chosen_device, run
from tolerance import MAP

from pele_ocl import Grid, potmap, read, read_map
from pele_ocl.cli.bench.potmap import TIMED
from pele_ocl.cli.progress import ProgressLine
from pele_ocl.formats import model_numbers
from pele_ocl.potential_model import PotentialModel
from pele_ocl.reference import potmap as reference
from pele_ocl.units import POTENTIAL_UNITS, potential_factor

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

DOUBLE = ("--precision", "float64")
SMALL = ("--spacing", 2.1, "--padding", 3)


@pytest.fixture(scope="module")
def atoms():
    return read(HEXAPEPTIDE)


@pytest.fixture(scope="module")
def grid(atoms):
    return Grid.around(atoms, 3, 2.1)


def report(*arguments: object, path=HEXAPEPTIDE) -> dict:
    return json.loads(run("potmap", path, *SMALL, *DOUBLE, "--json", *arguments).stdout)


def two_models(folder, suffix):
    """Two models of the hexapeptide, the second shifted by 0.2 A along x."""
    first = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith(("ATOM", "TER"))]
    second = [
        f"{line[:30]}{float(line[30:38]) + 0.2:8.3f}{line[38:]}" if line.startswith("ATOM") else line for line in first
    ]
    path = folder / f"models{suffix}"
    path.write_text("\n".join(["MODEL        3", *first, "ENDMDL", "MODEL        7", *second, "ENDMDL", "END", ""]))
    return path


# Output


def test_summary_is_for_reading():
    result = run("potmap", HEXAPEPTIDE)
    assert "hexapeptide.pdb: 96 atoms, 6 residues, net charge -1.000 e" in result.stdout
    assert "Points        " in result.stdout
    assert ", 0.5 A apart" in result.stdout
    assert " kcal/mol/e" in result.stdout
    assert f"blocked, float32, on {DEVICES[0]}: kernels " in result.stdout
    assert re.search(r" [\d.]+ [KM]iB, 96 atoms: (about|less than) ", result.stderr)
    assert "Note: the map is not written to a file; -o map.dx writes it" in result.stderr


def test_verbose_says_more():
    text = run("potmap", HEXAPEPTIDE, *SMALL, "-v").stdout
    assert " billion atom evaluations per second" in text
    assert "Kernel: cl/potmap/blocked.cl, two-dimensional blocks of points" in text
    assert "Rate" not in run("potmap", HEXAPEPTIDE, *SMALL).stdout


def test_json_is_one_object(atoms, grid):
    found = report()
    names = "schema structure sha256 "
    names += "shape origin spacing n_atoms composition device method variant precision settings unit min max mean"
    assert list(found) == [*names.split(), "seconds", "evals_per_second", "notes", "note_codes"]
    values = reference.potmap(atoms, grid)
    assert found["shape"] == list(grid.shape)
    assert found["origin"] == grid.origin.tolist()
    assert found["spacing"] == [2.1] * 3
    assert (found["n_atoms"], found["device"], found["variant"]) == (96, str(DEVICES[0]), "blocked")
    assert (found["precision"], found["unit"]) == ("float64", "kcal/mol/e")
    for name in ("min", "max", "mean"):
        assert found[name] == pytest.approx(getattr(values, name)(), rel=1e-10)
    assert set(found["seconds"]) == {"kernel", "total"}
    assert found["evals_per_second"] > 0


@pytest.mark.parametrize(
    ("arguments", "model"),
    [
        (("--dielectric", 4, "--distance-dependent"), PotentialModel(4, True)),
        (("--min-distance", 1.5), PotentialModel(min_distance=1.5)),
        (("--method", "cutoff"), PotentialModel(cutoff=12)),
        (("--method", "cutoff", "--cutoff", 7, "--smooth"), PotentialModel(cutoff=7, smooth=True)),
        (("--variant", "gather"), PotentialModel()),
    ],
    ids=str,
)
def test_options_reach_the_map(atoms, grid, arguments, model):
    values = reference.potmap(atoms, grid, model)
    found = report(*arguments)
    for name in ("min", "max", "mean"):
        assert found[name] == pytest.approx(getattr(values, name)(), rel=1e-10)


@pytest.mark.parametrize("unit", POTENTIAL_UNITS)
def test_units(unit):
    found = report("--unit", unit, "--temperature", 310)
    assert found["unit"] == unit
    assert found["max"] == pytest.approx(report()["max"] * potential_factor(unit, 310), rel=1e-12)


def test_salt():
    salt = report("--dielectric", 80, "--ionic-strength", 0.15)
    assert abs(salt["mean"]) < abs(report("--dielectric", 80)["mean"])


def test_a_grid_of_ones_own():
    found = report()
    own = json.loads(
        run("potmap", HEXAPEPTIDE, "--origin", 20.5, -3, 1, "--shape", 4, 3, 2, "--spacing", 0.25, "--json").stdout
    )
    assert (own["origin"], own["shape"], own["spacing"]) == ([20.5, -3, 1], [4, 3, 2], [0.25] * 3)
    assert own["shape"] != found["shape"]


def test_several_devices():
    index = DEVICES[0].index
    assert report("--device", f"{index}, {index}")["device"] == f"{DEVICES[0]} + {DEVICES[0]}"


# Files


@pytest.mark.parametrize("suffix", [".dx", ".dx.gz", ".mrc", ".h5"])
def test_map_files(atoms, grid, tmp_path, suffix):
    path = tmp_path / f"map{suffix}"
    run("potmap", HEXAPEPTIDE, *SMALL, *DOUBLE, "-o", path, "--unit", "kT/e", "--temperature", 310)
    written = read_map(path)
    np.testing.assert_allclose(written.grid.origin, grid.origin, atol=3e-5)
    expected = reference.potmap(atoms, grid) * potential_factor("kT/e", 310)
    assert relative(written.values, expected) < 1e-6
    assert written.full_unit == "kT/e at 310 K"


def test_several_files_at_once(atoms, grid, tmp_path):
    paths = [tmp_path / name for name in ("map.h5", "map.cube", "map.ccp4")]
    run("potmap", HEXAPEPTIDE, *SMALL, *(part for path in paths for part in ("-o", path)))
    for path in paths:
        written = read_map(path).in_unit("kcal/mol/e")
        assert relative(written.values, reference.potmap(atoms, grid)) < 1e-5
    assert f"{len(atoms):5d}" in paths[1].read_text().splitlines()[2]
    with h5py.File(paths[0]) as file:
        assert file.attrs["variant"] == "blocked"
        assert file.attrs["input"] == str(HEXAPEPTIDE)


@pytest.mark.parametrize(("named", "written"), [((), "hartree/e"), (("--unit", "kcal/mol/e"), "kcal/mol/e")])
def test_a_cube_file_is_in_the_unit_that_was_named(tmp_path, named, written):
    run("potmap", HEXAPEPTIDE, *SMALL, "-o", tmp_path / "map.cube", *named)
    assert read_map(tmp_path / "map.cube").unit == written


def test_the_field_in_a_file(atoms, grid, tmp_path):
    path = tmp_path / "map.h5"
    run("potmap", HEXAPEPTIDE, *SMALL, *DOUBLE, "--field", "-o", path, "-o", tmp_path / "map.dx")
    field = reference.field(atoms, grid)
    with h5py.File(path) as file:
        for k, name in enumerate(("field_x", "field_y", "field_z")):
            assert relative(file[name][()], field[k]) < MAP["float64"]
            assert file[name].attrs["unit"] == "kcal/mol/e/A"
        assert relative(file["field_strength"][()], np.linalg.norm(field, axis=0)) < MAP["float64"]


def test_the_temperature_of_the_fields_unit(tmp_path):
    path = tmp_path / "map.h5"
    run("potmap", HEXAPEPTIDE, *SMALL, "--field", "--unit", "kT/e", "--temperature", 310, "-o", path)
    with h5py.File(path) as file:
        assert {
            (file[name].attrs["unit"], file[name].attrs["temperature"]) for name in ("field_x", "field_strength")
        } == {("kT/e/A", 310)}


def test_a_picture(tmp_path):
    run("potmap", HEXAPEPTIDE, *SMALL, "--png", tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes()[:4] == b"\x89PNG"


def test_a_picture_names_the_file(tmp_path, monkeypatch):
    titles = []
    module = import_module("pele_ocl.potmap.pictures")
    monkeypatch.setattr(module, "draw_slices", lambda path, map_, inputs: titles.append(map_.title))
    run("potmap", HEXAPEPTIDE, *SMALL, "--png", tmp_path / "map.png")
    assert titles == ["hexapeptide.pdb: Coulomb potential of 96 atoms"]


# Models


@pytest.mark.parametrize("suffix", [".pdb", ".ent"])
def test_all_models(tmp_path, suffix):
    path = two_models(tmp_path, suffix)
    assert model_numbers(path) == [3, 7]
    output = tmp_path / "all.h5"
    found = json.loads(
        run("potmap", path, *SMALL, *DOUBLE, "--models", "all", "--combine", "stdev", "--json", "-o", output).stdout
    )
    grid = read_map(output).grid
    each = np.stack([reference.potmap(read(path, model=number), grid) for number in (3, 7)])
    assert found["max"] == pytest.approx(each.std(axis=0).max(), rel=1e-9)
    with h5py.File(output) as file:
        for name, expected in (("avg", each.mean(axis=0)), ("min", each.min(axis=0)), ("max", each.max(axis=0))):
            assert relative(file[name][()], expected) < MAP["float64"]
        assert relative(file["potential"][()], each.std(axis=0)) < MAP["float64"] * 100
    assert "2 models" in run("potmap", path, *SMALL, "--models", "all").stdout
    assert "2 models" not in run("potmap", path, *SMALL, "--models", "one").stdout


def test_numbers_of_models(tmp_path):
    atom = "ATOM      1  N   MET A   1      -0.095   0.780   0.955\n"
    counted, plain, pqr = (tmp_path / name for name in ("counted.pdb", "plain.pdb", "a.pqr"))
    counted.write_text(f"{atom}ENDMDL\n{atom}ENDMDL\n")
    plain.write_text(atom)
    pqr.write_text(f"MODEL 2\n{atom}ENDMDL\nMODEL 5\nENDMDL\nMODEL 6\n{atom}ENDMDL\n")
    assert (model_numbers(counted), model_numbers(plain), model_numbers(pqr)) == ([1, 2], [1], [2, 6])


def test_numbers_of_models_in_mmcif(tmp_path):
    path = tmp_path / "a.cif"
    head = "data_a\nloop_\n_atom_site.id\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n"
    path.write_text(f"{head}_atom_site.pdbx_PDB_model_num\n1 0 0 0 4\n2 1 0 0 4\n3 0 0 0 2\n")
    assert model_numbers(path) == [4, 2]
    path.write_text(f"{head}1 0 0 0\n2 1 0 0\n")
    assert model_numbers(path) == [1]


# Errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--method", "ewald"), "'ewald' is not one of"),
        (("--device", "0,,1"), "--device 0,,1 has no device before or after a comma"),
    ],
)
def test_wrong_usage(arguments, message):
    assert message in run("potmap", HEXAPEPTIDE, *arguments, code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cutoff", 9), "--cutoff and --smooth need --method cutoff"),
        (("--smooth",), "--cutoff and --smooth need --method cutoff"),
        (("--combine", "avg"), "--combine applies only to --models all"),
        (("--origin", 0, 0, 0), "a grid is defined by --padding, or by --origin and --shape together"),
        (
            ("--origin", 0, 0, 0, "--shape", 2, 2, 2, "--padding", 3),
            "a grid is defined by --padding, or by --origin and --shape together",
        ),
        (("--field", "-o", "a.dx"), "the field needs a file with several maps: give --output the suffix"),
        (("--field", "--models", "all", "-o", "a.h5"), "choose one of --field and --models all"),
        (("--models", "all", "--model", 1), "choose one of --model and --models"),
    ],
)
def test_options_that_do_not_go_together(arguments, message):
    assert message in run("potmap", HEXAPEPTIDE, *arguments, code=2).stderr


def test_sentences(tmp_path):
    assert "unknown suffix '.txt'; maps end in .dx" in error_of("potmap", HEXAPEPTIDE, "-o", tmp_path / "a.txt")
    assert "pictures end in .png" in error_of("potmap", HEXAPEPTIDE, "--png", tmp_path / "a.jpg")
    assert "does not exist; create it first" in error_of("potmap", HEXAPEPTIDE, "-o", tmp_path / "no" / "a.dx")
    assert error_of("potmap", HEXAPEPTIDE, "--spacing", -1) == "a grid's spacing must be positive; not -1.0"
    assert "the method direct has no variant 'cutoff'" in error_of("potmap", HEXAPEPTIDE, "--variant", "cutoff")
    touching = error_of("potmap", HEXAPEPTIDE, "--origin", -0.095, 0.78, 0.955, "--shape", 9, 9, 9)
    assert touching.startswith(
        "grid point (0, 0, 0) at -0.095, 0.78, 0.955 A is at the position of atom 0 (A:MET1:N), where the"
    )


def test_an_interrupt_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("pele_ocl.potmap.spec"), "one_map", interrupt)
    run("potmap", HEXAPEPTIDE, *SMALL, "-o", tmp_path / "a.dx", code=130)
    assert list(tmp_path.iterdir()) == []


# Timing tables


BENCH = ("bench", "potmap", "--points", 12, "--atoms", 300, "--runs", 3)


def test_bench_prints_the_ladder():
    lines = run(*BENCH).stdout.splitlines()
    assert lines[0].startswith(f"12 x 12 x 12 points, 300 atoms, on {DEVICES[0]}, sequential on one core")
    rows = [line.split() for line in lines[3:]]
    assert [row[1] for row in rows] == TIMED
    assert next(row for row in rows if row[1] == "shared")[-1] == "36.4"


def test_bench_of_a_single_point():
    rows = run("bench", "potmap", "--points", 1, "--atoms", 1, "--runs", 3, "--variant", "blocked", "--json")
    assert [json.loads(row)["shape"] for row in rows.stdout.splitlines()] == [[1, 1, 1]]


def test_bench_json_has_honest_rows():
    # Those that others are told by, and the fastest: every variant's values are test_potmap.py's.
    names = [option for name in ("sequential", "gather", "blocked") for option in ("--variant", name)]
    for precision in ("float32", "float64"):
        command = (*BENCH, "--system", "hexapeptide", "--json", "--precision", precision)
        rows = [json.loads(line) for line in run(*command, *names).stdout.splitlines()]
        for row in rows:
            assert row["n_atoms"] == 96
            assert row["evals_per_second"] == pytest.approx(96 * np.prod(row["shape"]) / row["seconds"])
            assert row["error"] < 2 * MAP[precision]
        assert (rows[0]["speedup"], rows[0]["over_gather"]) == (1, None)


def test_bench_times_methods_that_keep_an_accuracy():
    assert {"blocked", "msm", "mesh"} < set(TIMED)
    names = ("--variant", "msm", "--variant", "mesh")
    rows = [json.loads(line) for line in run(*BENCH, "--json", *names).stdout.splitlines()]
    assert [row["variant"] for row in rows] == ["msm", "mesh"]
    for row in rows:
        assert 1e-7 < row["error"] < 2e-4
        assert not row["sampled"]


def test_bench_times_a_sample_of_slow_variants(monkeypatch):
    monkeypatch.setattr("pele_ocl.bench.potmap.SAMPLE_SECONDS", 1e-3)
    monkeypatch.setattr("pele_ocl.bench.potmap.FIRST_SAMPLE_EVALS", 1e4)
    command = ("bench", "potmap", "--points", 40, *BENCH[4:], "--variant", "sequential")
    (row,) = run(*command, "--json").stdout.splitlines()
    assert json.loads(row)["sampled"]
    assert "* " in run(*command).stdout


def test_bench_compares_devices_that_share_the_map():
    index = DEVICES[0].index
    options = ("--variant", "gather", "--device", index, "--device", f"{index},{index}")
    one, two = run(*BENCH, *options).stdout.split("\n\n1")
    assert "first" not in one
    assert f"{DEVICES[0]} + {DEVICES[0]}" in two
    assert re.search(r"first\n.*gather.* \d+\.\d\dx\n", two)


def test_bench_takes_a_former_flag():
    done = run(*BENCH, "--no-peers", "--variant", "gather", "--json")
    assert [json.loads(row)["variant"] for row in done.stdout.splitlines()] == ["gather"]
    assert "--no-peers no longer has an effect" in done.stderr
    assert "--no-peers" not in run("bench", "potmap", "--help").stdout


def test_potmap_of_a_file_is_that_of_its_atoms(atoms, grid, tmp_path):
    run("potmap", HEXAPEPTIDE, *SMALL, "-o", tmp_path / "a.h5")
    np.testing.assert_array_equal(read_map(tmp_path / "a.h5").values, potmap(atoms, grid, device=DEVICES[0]).map.values)


@pytest.mark.parametrize("command", [("potmap",), ("bench", "potmap")])
def test_help(command):
    text = run(*command, "--help-all").stdout
    for word in ("Usage:", "--variant", "--precision", "--device"):
        assert word in text


def test_progress_tells_rate_and_time_left(monkeypatch, capsys):
    times = iter([0.0, 1.0, 25.0])
    monkeypatch.setattr("pele_ocl.cli.progress.time.monotonic", lambda: next(times))
    with ProgressLine("Potential map", 6e11, "atom evaluations") as line:
        line(0.1)
        line(0.5)
    assert capsys.readouterr().err == "Potential map:  50 %, 10 billion atom evaluations/s, 30 s left\n"  # 40 % in 24 s


def test_errors_of_map_and_field_are_told(tmp_path):
    """Far beside the molecule: what misses its accuracy is said to, and the field has an error of its own."""
    beside = ("--origin", 60, 60, 60, "--shape", 12, 12, 12, "--spacing", 1)
    asked = ("--method", "msm", "--accuracy", 1e-5, "--field")
    output = ("-o", tmp_path / "map.h5")
    text = run("potmap", HEXAPEPTIDE, *beside, *asked, *output).stdout
    assert re.search(r"^Error +\S+ \+- \S+ of the map's root mean square \(msm for 1e-05\),$", text, re.M)
    assert re.search(r"^Field error +\S+ \+- \S+ of the field's root mean square,$", text, re.M)
    assert text.count("; more than the requested 1e-05") == 1
    found = json.loads(run("potmap", HEXAPEPTIDE, *beside, *asked, *output, "--json").stdout)
    assert found["accuracy"] == 1e-5
    assert found["measured_error"]["norm"] < 1e-5 < found["measured_field_error"]["norm"]
    with h5py.File(tmp_path / "map.h5") as file:
        assert any("field_error_norm" in group.attrs for group in [file, *file.values()])
