"""`pele-ocl sample` and `pele-ocl convert` as a user meets them."""

from __future__ import annotations

import csv
import json
import os

import h5py
import numpy as np
import pytest
from maps_helpers import VMD_DX
from test_cli import HEXAPEPTIDE, error_of, run

import pele_ocl
from pele_ocl import Grid, Map, read_map, sample, write_map
from pele_ocl.formats import read_structure
from pele_ocl.units import potential_factor

ATOMS = read_structure(HEXAPEPTIDE)


@pytest.fixture(scope="module")
def map_() -> Map:
    """A potential that is linear along each axis around the hexapeptide."""
    grid = Grid(ATOMS.positions.min(axis=0) - 1.25, (0.5, 0.75, 1.0), (60, 40, 30))
    assert (grid.last > ATOMS.positions.max(axis=0)).all()
    x, y, z = grid.axes()
    return Map(grid, (3 * x - 2 * y[:, None] + z[:, None, None]).astype(np.float32), "kcal/mol/e", "A slope")


@pytest.fixture
def map_file(map_, tmp_path):
    write_map(tmp_path / "map.dx", map_)
    return tmp_path / "map.dx"


EXACT = ATOMS.positions @ (3, -2, 1)

# sample


def test_values_at_atoms_are_a_table(map_file):
    lines = run("sample", map_file, HEXAPEPTIDE).stdout.splitlines()
    assert lines[0].split() == ["atom", "x", "A", "y", "A", "z", "A", "kcal/mol/e"]
    label, *numbers = lines[1].split()
    assert label == ATOMS.labels.atom(0)
    np.testing.assert_allclose([float(n) for n in numbers], [*ATOMS.positions[0], EXACT[0]], atol=2e-3)
    assert lines[-1].startswith(f"{len(EXACT)} points: {EXACT.min():.2f}"[:-1])
    assert lines[-1].endswith("kcal/mol/e")


def test_values_as_json(map_file):
    found = json.loads(run("sample", map_file, HEXAPEPTIDE, "--json").stdout)
    assert (found["n_points"], found["unit"]) == (len(EXACT), "kcal/mol/e")
    np.testing.assert_allclose(found["values"], EXACT, atol=1e-4)
    np.testing.assert_allclose(found["positions"], ATOMS.positions)


@pytest.mark.parametrize("suffix", [".csv", ".json", ".h5"])
def test_values_in_a_file(map_file, tmp_path, suffix):
    out = tmp_path / f"values{suffix}"
    text = run("sample", map_file, HEXAPEPTIDE, "-o", out).stdout
    assert text.count("\n") == 1
    if suffix == ".csv":
        rows = csv.DictReader(line for line in out.read_text().splitlines() if not line.startswith("#"))
        values = [float(row["value [kcal/mol/e]"]) for row in rows]
    elif suffix == ".json":
        table = json.loads(out.read_text())
        assert table["columns"]["atom_name"] == ATOMS.labels.names.tolist()
        assert table["input"] == str(map_file)
        values = table["columns"]["value"]
    else:
        with h5py.File(out) as file:
            assert file["value"].attrs["unit"] == "kcal/mol/e"
            values = file["value"][()]
    np.testing.assert_allclose(values, EXACT, atol=1e-4)


def test_points_of_other_files(map_file, tmp_path):
    np.save(tmp_path / "p.npy", ATOMS.positions)
    np.savetxt(tmp_path / "p.txt", ATOMS.positions)
    atoms = pele_ocl.read(HEXAPEPTIDE)
    names, residues = atoms.labels.names, atoms.labels.residue_index
    rows = (
        f"ATOM {k} {names[k]} X {residues[k]} {x:.3f} {y:.3f} {z:.3f} 0 1\n"
        for k, (x, y, z) in enumerate(atoms.positions.tolist())
    )
    (tmp_path / "p.pqr").write_text("".join(rows))
    for name in ("p.npy", "p.txt", "p.pqr"):
        found = json.loads(run("sample", map_file, tmp_path / name, "--json").stdout)
        np.testing.assert_allclose(found["values"], EXACT, atol=1e-3)
    assert run("sample", map_file, tmp_path / "p.txt").stdout.splitlines()[1].split()[0] == "1"


def test_points_outside(map_file, tmp_path):
    (tmp_path / "p.csv").write_text(f"x,y,z\n1000,0,0\n{','.join(map(str, ATOMS.positions[0]))}\n")
    message = error_of("sample", map_file, tmp_path / "p.csv", "-o", tmp_path / "out.csv")
    assert message.startswith(
        f"{tmp_path / 'p.csv'}: 1 position is outside the map, number 1 at (1000.000, 0.000, 0.000)"
    )
    assert message.endswith("--outside nan continues without them")
    assert not (tmp_path / "out.csv").exists()
    found = json.loads(run("sample", map_file, tmp_path / "p.csv", "--outside", "nan", "--json").stdout)
    assert found["values"][0] is None
    assert found["values"][1] == pytest.approx(EXACT[0], abs=1e-4)
    assert (
        "2 points, 1 of them outside the map: " in run("sample", map_file, tmp_path / "p.csv", "--outside=nan").stdout
    )
    (tmp_path / "p.csv").write_text("1000,0,0\n")
    assert "1 point, 1 of them outside the map\n" in run("sample", map_file, tmp_path / "p.csv", "--outside=nan").stdout


def test_what_sample_refuses(map_file, tmp_path):
    assert "map.xplor: unknown suffix '.xplor'; maps end in .dx, " in error_of("sample", "map.xplor", HEXAPEPTIDE)
    assert "unknown suffix '.xyz'; points end in .pdb, .ent, .cif, " in error_of("sample", map_file, "points.xyz")
    assert "unknown suffix '.txt'; tables end in .h5, " in error_of("sample", map_file, HEXAPEPTIDE, "-o", "out.txt")
    points = tmp_path / "p.csv"
    points.write_text("0,0,0\n")
    assert "the same file as the input" in error_of("sample", map_file, points, "-o", points)


# convert


@pytest.mark.parametrize("suffix", [".dx", ".dx.gz", ".cube", ".mrc", ".ccp4", ".h5"])
def test_conversion_and_back(map_, map_file, tmp_path, suffix):
    text = run("convert", map_file, tmp_path / f"b{suffix}").stdout
    assert "Points        60 x 40 x 30, 0.5, 0.75, 1 A apart" in text
    found = read_map(tmp_path / f"b{suffix}")
    assert found.unit == ("hartree/e" if suffix == ".cube" else "kcal/mol/e")
    assert found.title == "A slope"
    run("convert", tmp_path / f"b{suffix}", tmp_path / "c.dx", "--unit", "kcal/mol/e")
    back = read_map(tmp_path / "c.dx")
    scale = np.abs(map_.values).max()
    np.testing.assert_allclose(back.values, map_.values, rtol=0, atol=1e-5 * scale)
    np.testing.assert_allclose(back.grid.origin, map_.grid.origin, atol=1e-5)
    assert (back.unit, back.title) == ("kcal/mol/e", "A slope")


def test_conversion_of_units(map_, map_file, tmp_path):
    report = json.loads(run("convert", map_file, tmp_path / "b.cube", "--unit", "mV", "--json").stdout)
    assert (report["unit"], report["shape"]) == ("mV", [60, 40, 30])
    assert report["max"] == pytest.approx(map_.values.max() * potential_factor("mV"), rel=1e-6)
    found = read_map(tmp_path / "b.cube")
    assert found.unit == "mV"
    np.testing.assert_allclose(found.values, map_.values * potential_factor("mV"), rtol=1e-5, atol=1e-2)
    run("convert", map_file, tmp_path / "b.h5", "--unit", "kT/e", "--temperature", 310)
    found = read_map(tmp_path / "b.h5")
    assert (found.unit, found.temperature) == ("kT/e", 310)
    assert json.loads(run("sample", tmp_path / "b.h5", HEXAPEPTIDE, "--json").stdout)["temperature"] == 310
    assert " kT/e at 310 K\n" in run("convert", tmp_path / "b.h5", tmp_path / "c.dx").stdout
    assert sample(found, ATOMS.positions[:1])[0] == pytest.approx(EXACT[0] * potential_factor("kT/e", 310), rel=1e-4)
    assert json.loads(run("convert", tmp_path / "b.h5", tmp_path / "c.cube", "--json").stdout)["unit"] == "hartree/e"


def test_units_that_a_file_does_not_say(tmp_path):
    source = tmp_path / "vmd.dx"
    source.write_text(VMD_DX)
    assert "(no unit in the file)" in run("convert", source, tmp_path / "b.cube").stdout
    np.testing.assert_array_equal(read_map(tmp_path / "b.cube").values, read_map(source).values)
    assert error_of("convert", source, tmp_path / "b.dx", "--unit", "V") == (
        f"{source}: does not state its unit; give it as --from-unit"
    )
    assert error_of("convert", source, tmp_path / "b.dx", "--from-unit", "kT/e", "--unit", "V") == (
        "the temperature of the unit kT/e is not known; give it in K, such as 298.15"
    )
    assert not (tmp_path / "b.dx").exists()
    run("convert", source, tmp_path / "b.dx", "--from-unit", "kT/e", "--unit", "mV", "--temperature", 300)
    np.testing.assert_allclose(read_map(tmp_path / "b.dx").values.max(), 6 * 25.852, rtol=1e-5)
    assert "states that its unit is mV, not V; leave out --from-unit" in error_of(
        "convert", tmp_path / "b.dx", tmp_path / "c.dx", "--from-unit", "V"
    )


def test_temperature_of_the_unit(map_file, tmp_path):
    warm, warmer = tmp_path / "300.h5", tmp_path / "310.h5"
    run("convert", map_file, warm, "--unit", "kT/e", "--temperature", 300)
    assert " kT/e at 310 K\n" in run("convert", warm, warmer, "--temperature", 310).stdout
    assert read_map(warmer).temperature == 310
    np.testing.assert_allclose(read_map(warmer).values, read_map(warm).values * 300 / 310, rtol=1e-6)
    assert error_of("convert", map_file, tmp_path / "b.dx", "--temperature", 310) == (
        f"{map_file}: --temperature belongs to the unit kT/e; leave it out, or give --unit kT/e"
    )
    assert error_of("convert", warm, tmp_path / "b.dx", "--unit", "mV", "--temperature", 310) == (
        f"{warm}: states that its unit is kT/e at 300 K; leave out --temperature"
    )
    assert "must be positive, in K; not -1" in error_of("convert", warm, tmp_path / "b.dx", "--temperature", -1)
    assert not (tmp_path / "b.dx").exists()
    source = tmp_path / "vmd.dx"
    source.write_text(VMD_DX)
    run("convert", source, tmp_path / "b.dx", "--from-unit", "kT/e", "--temperature", 298)
    assert read_map(tmp_path / "b.dx").temperature == 298
    np.testing.assert_array_equal(read_map(tmp_path / "b.dx").values, read_map(source).values)


def test_all_maps_of_a_file_are_kept(map_, tmp_path):
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    field = Map(map_.grid, -map_.values, "kcal/mol/e/A", "field_x")
    count = Map(map_.grid, np.full_like(map_.values, 3), "", "models")
    write_map(source, map_, extra={"max": Map(map_.grid, 2 * map_.values, "kcal/mol/e"), "field_x": field, "n": count})
    done = run("convert", source, target, "--unit", "kT/e", "--temperature", 300)
    assert done.stderr == ""
    factor = potential_factor("kT/e", 300)
    with h5py.File(target) as file:
        assert sorted(file) == ["field_x", "max", "n", "potential"]
        for name, unit, values in (
            ("potential", "kT/e", factor * map_.values), ("max", "kT/e", 2 * factor * map_.values),
            ("field_x", "kT/e/A", -factor * map_.values), ("n", "", count.values),
        ):  # fmt: skip
            np.testing.assert_allclose(file[name], values, rtol=1e-6, err_msg=name)
            assert file[name].attrs["unit"] == unit
    done = run("convert", source, tmp_path / "b.mrc")
    assert (
        done.stderr == f"Note: {tmp_path / 'b.mrc'}: contains one map; use .h5 to write field_x, max, n of {source}\n"
    )
    assert read_map(tmp_path / "b.mrc").unit == "kcal/mol/e"


def test_conversion_with_a_picture(map_file, tmp_path):
    run("convert", map_file, tmp_path / "b.mrc", "--png", tmp_path / "b.png")
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


def test_what_convert_refuses(map_file, tmp_path):
    before = map_file.read_bytes()
    assert "the same file as the input" in error_of("convert", map_file, map_file)
    os.link(map_file, tmp_path / "link.dx")
    assert "the same file as the input" in error_of("convert", map_file, tmp_path / "link.dx")
    assert map_file.read_bytes() == before
    assert "unknown suffix '.phi'; maps end in" in error_of("convert", map_file, tmp_path / "b.phi")
    assert "pictures end in .png" in error_of("convert", map_file, tmp_path / "b.dx", "--png", "b.jpg")
    assert "create it first" in error_of("convert", map_file, tmp_path / "none" / "b.dx")
    assert "create it first" in error_of("convert", map_file, tmp_path / "b.dx", "--png", tmp_path / "none" / "b.png")
    assert sorted(os.listdir(tmp_path)) == ["link.dx", "map.dx"]
