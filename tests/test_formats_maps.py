"""Map files: what is written is read, whatever the format."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
from maps_helpers import RTOL, SHAPES, SUFFIXES, assert_same, some_map

from pele_ocl.common.errors import FormatError, InputError
from pele_ocl.formats import read_map, require_map_suffix, write_map
from pele_ocl.grid import Grid, Map
from pele_ocl.units import POTENTIAL_UNITS, potential_factor


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read(tmp_path, suffix, shape, dtype):
    wanted = some_map(shape, seed=sum(shape), dtype=dtype)
    write_map(tmp_path / f"map{suffix}", wanted)
    assert_same(read_map(tmp_path / f"map{suffix}"), wanted, suffix)
    assert os.listdir(tmp_path) == [f"map{suffix}"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_random_maps_come_back(tmp_path, suffix):
    rng = np.random.default_rng(6)
    for seed in range(30):
        shape = tuple(rng.integers(1, 12, 3).tolist())
        grid = Grid(rng.uniform(-300, 300, 3), rng.uniform(0.05, 3, 3), shape)
        wanted = Map(grid, some_map(shape, seed).values, "V" if ".cub" not in suffix else "hartree/e", f"map {seed}")
        write_map(tmp_path / f"map{suffix}", wanted)
        assert_same(read_map(tmp_path / f"map{suffix}"), wanted, suffix)


@pytest.mark.parametrize("unit", [*POTENTIAL_UNITS, "", "e/A^3"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_file_says_its_unit(tmp_path, suffix, unit):
    wanted = some_map(unit=unit, title="", temperature=310.15 if unit == "kT/e" else None)
    write_map(tmp_path / f"map{suffix}", wanted, unit=unit if unit in POTENTIAL_UNITS else None)
    found = read_map(tmp_path / f"map{suffix}")
    assert (found.unit, found.temperature) == (unit, wanted.temperature)
    np.testing.assert_allclose(found.values, wanted.values, rtol=RTOL[suffix])


@pytest.mark.parametrize("unit", POTENTIAL_UNITS)
def test_cube_files_are_in_hartree(tmp_path, unit):
    wanted = some_map(unit=unit, dtype=np.float64, temperature=300.0)
    write_map(tmp_path / "map.cube", wanted)
    found = read_map(tmp_path / "map.cube")
    assert found.unit == "hartree/e"
    factor = potential_factor("hartree/e") / potential_factor(unit, 300)
    np.testing.assert_allclose(found.values, wanted.values * factor, rtol=RTOL[".cube"])


def test_a_title_is_never_taken_for_a_unit(tmp_path):
    for suffix in SUFFIXES:
        write_map(tmp_path / f"map{suffix}", some_map(title='unit: V\n "of" all', unit="mV"), unit="mV")
        found = read_map(tmp_path / f"map{suffix}")
        assert found.unit == "mV"
        assert "V" in found.title


def test_long_titles(tmp_path):
    title = " ".join(f"word{k}" for k in range(40))
    kept = {".mrc": 80, ".ccp4": 80, ".map": 80, ".cube": 200, ".cub": 200}
    for suffix in SUFFIXES:
        write_map(tmp_path / f"map{suffix}", some_map(title=title))
        assert read_map(tmp_path / f"map{suffix}").title == title[: kept.get(suffix)].strip()


def test_conversion_of_units_and_back():
    wanted = some_map(unit="kT/e", temperature=300.0, dtype=np.float64)
    warmer = wanted.in_unit("kT/e", 310)
    np.testing.assert_allclose(warmer.values, wanted.values * 300 / 310, rtol=1e-12)
    assert (warmer.unit, warmer.temperature) == ("kT/e", 310)
    back = warmer.in_unit("mV").in_unit("kT/e", 300)
    np.testing.assert_allclose(back.values, wanted.values, rtol=1e-12)
    assert wanted.in_unit("kT/e") is wanted
    assert wanted.full_unit == "kT/e at 300 K"
    unknown = some_map(unit="kT/e")
    np.testing.assert_allclose(unknown.in_unit("V", 300).values, some_map().values * 0.02585199, rtol=1e-6)
    assert unknown.full_unit == "kT/e"
    with pytest.raises(InputError, match="the temperature of the unit kT/e is not known; give it"):
        unknown.in_unit("V")
    with pytest.raises(InputError, match="the temperature must be positive, in K; not 0"):
        some_map(unit="V").in_unit("kT/e", 0)
    with pytest.raises(InputError, match="unknown unit '' of a potential"):
        some_map(unit="").in_unit("V")


def test_attributes_are_recorded(tmp_path):
    import h5py
    import mrcfile

    parameters = {"padding": 10, "unset": None}
    attributes = {"software": "pele-ocl", "dielectric": 4.0, "parameters": parameters, "long": "x " * 99}
    for suffix in (".dx", ".mrc", ".h5"):
        write_map(tmp_path / f"map{suffix}", some_map(), attributes=attributes)
        assert_same(read_map(tmp_path / f"map{suffix}"), some_map(), suffix)
    comments = [line for line in (tmp_path / "map.dx").read_text().splitlines() if line.startswith("#")]
    assert "# dielectric: 4.0" in comments
    assert "# parameters.padding: 10" in comments
    assert max(map(len, comments)) <= 80
    with mrcfile.open(tmp_path / "map.mrc") as file:
        assert [label.rstrip() for label in file.get_labels()[2:5]] == [
            "software: pele-ocl",
            "dielectric: 4.0",
            "parameters.padding: 10",
        ]
    with h5py.File(tmp_path / "map.h5") as file:
        assert file.attrs["dielectric"] == 4
        assert file.attrs["parameters.padding"] == 10


def test_hdf5_holds_several_maps(tmp_path):
    import h5py

    field = some_map(seed=5, unit="kcal/mol/e/A")
    write_map(tmp_path / "map.h5", some_map(), extra={"field_x": field})
    assert_same(read_map(tmp_path / "map.h5"), some_map(), ".h5")
    with h5py.File(tmp_path / "map.h5") as file:
        np.testing.assert_array_equal(file["field_x"], field.values)
        assert file["field_x"].attrs["unit"] == "kcal/mol/e/A"
        np.testing.assert_array_equal(file["field_x"].attrs["origin"], field.grid.origin)
    with pytest.raises(FormatError, match=r"map.dx: .dx files contain one map; for several use .h5"):
        write_map(tmp_path / "map.dx", some_map(), extra={"field_x": field})


def test_files_are_the_same_whenever_they_are_written(tmp_path):
    for suffix in SUFFIXES:
        for name in ("a", "b"):
            write_map(tmp_path / f"{name}{suffix}", some_map())
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.slow
def test_large_dx_files_take_seconds(tmp_path):
    values = np.random.default_rng(0).normal(0, 20, (256, 256, 256)).astype(np.float32)
    wanted = Map(Grid((0, 0, 0), 0.5, values.shape), values, "kcal/mol/e")
    start = time.perf_counter()
    write_map(tmp_path / "map.dx", wanted)
    assert time.perf_counter() - start < 20
    np.testing.assert_allclose(read_map(tmp_path / "map.dx").values, values, rtol=RTOL[".dx"])
    assert time.perf_counter() - start < 40


def test_suffixes():
    assert require_map_suffix("Folder.dx/MAP.DX.GZ") == ".dx.gz"
    assert require_map_suffix("a.b.Map") == ".map"
    with pytest.raises(FormatError, match=r"unknown suffix '\.gz'"):
        require_map_suffix("map.mrc.gz")
