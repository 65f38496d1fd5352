"""Map files: damage, and what cannot be written, become a sentence."""

from __future__ import annotations

import gzip
import os

import h5py
import numpy as np
import pytest
from maps_helpers import CUBE, SUFFIXES, VMD_DX, some_map

import pele_ocl
from pele_ocl.common.errors import FormatError, InputError
from pele_ocl.formats import read_map, write_map
from pele_ocl.grid import Map


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1 2 3\n", "", "map.dx:11: expected value 4 of 6, not 'object'"),
        ("4 5 6\n\nobject \"coulomb potential by VMD\" class field\n", "", "map.dx: ends after 3 of 6 values; fetch"),
        ("4 5", "4 five", "map.dx:10: expected value 5 of 6, not 'five'"),
        ("4 5", "4 1_0", "map.dx:10: expected value 5 of 6, not '1_0'"),
        ("4 5", "4 \u0665", "map.dx:10: expected value 5 of 6, not '.'"),
        ("4 5", "4 nan", r"map.dx: the value at point \(1, 0, 1\) is nan; expected finite numbers"),
        ("4 5", "4 1e999", r"map.dx: the value at point \(1, 0, 1\) is inf; expected finite numbers"),
        ("4 5 6", "4 5 6 7", "map.dx: contains more than the 6 values it announces"),
        ("4 5 6", "4 5 6\n\n7", "map.dx: contains more than the 6 values it announces"),
        ("counts 2 1 3\norigin", f"counts 2 1 {'9' * 5000}\norigin", "map.dx:8: values before a whole grid"),
        ("items 6", "items 7", "map.dx:8: announces 7 values, but 2 x 1 x 3 points are 6"),
        ("counts 2 1 3\norigin", "counts 2 1\norigin", "map.dx:8: values before a whole grid: expected counts, one "
        "origin and"),
        ("counts 2 1 3\norigin", "counts 2 0 3\norigin", "map.dx: a grid's shape must be three whole numbers of at"),
        ("counts 2 1 3\norigin", "counts 9999999 9999999 9999999\norigin", "map.dx: a grid of .* is too large"),
        ("delta 0 0 2\n", "", "map.dx:7: values before a whole grid"),
        ("delta 0 0 2", "delta 0 1 2", "map.dx: the axes do not run along x, y and z; only orthogonal grids can"),
        ("delta 0 0 2", "delta 0 0 -2", "map.dx: a grid's spacing must be positive"),
        ("delta 0 0 2", "delta 0 0 nan", "map.dx: a grid's spacing must be positive"),
        ("delta 0 0 2", "delta 0 0 two", "map.dx:6: delta needs three numbers, not '0 0 two'"),
        ("origin -1.5 2.25 1e1", "origin", "map.dx:3: origin needs three numbers, not ''"),
        ("rank 0", "rank 1 shape 3", "map.dx:8: contains several numbers per point; only maps of one number can"),
        ("data follows", "binary data follows", "map.dx:8: contains values that are not text; write the"),
        ("data follows", "data file x.bin,0", "map.dx:8: contains values that are not text"),
        ("class array", "class something", "map.dx: has no line 'object ... class array ... data follows'; is it"),
        ("# Data", "<html>", "map.dx: contains HTML, not a DX file; was the download an error page?"),
        ("4 5", "4 \0", "map.dx:10: contains NUL bytes: the file is binary or damaged"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_dx(tmp_path, old, new, message):
    assert old in VMD_DX
    (tmp_path / "map.dx").write_text(VMD_DX.replace(old, new), encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        read_map(tmp_path / "map.dx")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    1    1.0", "   -1    1.0", "map.cube:3: contains orbitals, or several values per point; only maps of "
        "one"),
        ("3.000000\n", "3.000000  2\n", "map.cube:3: contains orbitals, or several values per point"),
        ("    1    1.0", "  1.5    1.0", "map.cube:3: begins with 1.5; expected a whole number; is it a cube file"),
        ("    3    0.0", "   -3    0.0", "map.cube: a grid's shape must be three whole numbers of at least 1"),
        ("2.000000\n", "x\n", "map.cube:6: expected 4 numbers, not '3    0.000000    0.000000    x'"),
        ("0.000000    2.000000\n", "1.0  2.0\n", "map.cube: the axes do not run along x, y and z"),
        ("    8    8.0", "    O    8.0", "map.cube:7: expected 5 numbers, not 'O    8.000000 "),
        ("  5.00000E+00", "", "map.cube: ends after 5 of 6 values"),
        ("  6.00000E+00", "  6.00000E+00  7", "map.cube: contains more than the 6 values it announces"),
        ("  6.00000E+00\n", "  6.00000E+00\n1.0\n", "map.cube: contains more than the 6 values it announces"),
        ("  6.00000E+00", "  6.00000-100", "map.cube:9: expected value 6 of 6, not '6.00000-100'"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_cube(tmp_path, old, new, message):
    assert old in CUBE
    (tmp_path / "map.cube").write_text(CUBE.replace(old, new))
    with pytest.raises(FormatError, match=message):
        read_map(tmp_path / "map.cube")


@pytest.mark.parametrize(
    ("word", "bytes_", "message"),
    [
        (1, b"\xff" * 4, r"map.mrc: the header is damaged: \(-1, 3, 2\) values, 0 bytes before them"),
        (1, b"\x05\0\0\0", "map.mrc: ends after 24 of 30 values; fetch or copy the file again"),
        (1, b"\xff\xff\xff\x7f", "map.mrc: ends after 24 of 12,884,901,882 values"),
        (4, b"\x04\0\0\0", "map.mrc: contains numbers of mode 4; modes 0, 1, 2, 6, 12 can be read"),
        (8, b"\0" * 4, r"map.mrc: the header is damaged: MX, MY and MZ are \[0, 3, 2\]"),
        (11, b"\0" * 4, "map.mrc: a grid's spacing must be positive"),
        (14, np.float32(91).tobytes(), "map.mrc: the cell's angles are not 90 degrees; only orthogonal grids can be"),
        (17, b"\x02\0\0\0", r"map.mrc: MAPC, MAPR and MAPS are \[2, 2, 3\]; expected 1, 2 and 3 in some order"),
        (24, b"\x10\0\0\0", "map.mrc: ends after 20 of 24 values"),
        (50, np.float32(np.nan).tobytes(), "map.mrc: a grid's origin must be finite"),
        (53, b"PAM ", "map.mrc: not an MRC or CCP4 map: it has no header of 1024 bytes with the word MAP"),
        (
            257,
            np.float32(np.inf).tobytes(),
            r"map.mrc: the value at point \(0, 0, 0\) is inf; expected finite numbers",
        ),
    ],
)
def test_what_is_wrong_in_mrc(tmp_path, word, bytes_, message):
    write_map(tmp_path / "map.mrc", some_map())
    content = bytearray((tmp_path / "map.mrc").read_bytes())
    content[4 * (word - 1) : 4 * word] = bytes_
    (tmp_path / "map.mrc").write_bytes(content)
    with pytest.raises(FormatError, match=message):
        read_map(tmp_path / "map.mrc")


def test_gzip_data_is_checked_to_its_end(tmp_path):
    path = tmp_path / "map.dx.gz"
    write_map(path, some_map())
    content = bytearray(path.read_bytes())
    path.write_bytes(content[:-4])
    with pytest.raises(FormatError, match=r"map.dx.gz: the gzip data ends too early; fetch or copy the file again"):
        read_map(path)
    content[-8] ^= 1  # of the check sum
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"map.dx.gz: the gzip data is damaged; fetch or copy the file again"):
        read_map(path)


def test_what_is_wrong_in_hdf5(tmp_path):
    import h5py

    path = tmp_path / "map.h5"

    def refused(message, **datasets):
        with h5py.File(path, "w") as file:
            for name, (values, attributes) in datasets.items():
                file.create_dataset(name, data=values).attrs.update(attributes)
        with pytest.raises(FormatError, match=message):
            read_map(path)

    values, good = np.ones((2, 3, 4)), {"origin": (1, 2, 3), "spacing": 0.5}
    refused(r"map.h5: has no dataset 'potential' of three dimensions, \(nz, ny, nx\)", potential=(np.ones(24), good))
    refused("map.h5: has no dataset 'potential'", a=(values, good), b=(values, good))
    refused(
        "map.h5: the dataset /potential has no attribute spacing, in Ang", potential=(values, {"origin": (1, 2, 3)})
    )
    refused("map.h5: the dataset /potential has no attribute origin", potential=(values, good | {"origin": "here"}))
    refused("map.h5: a grid's origin must be three numbers", potential=(values, good | {"origin": (1, 2)}))
    refused("map.h5: a grid's spacing must be positive", potential=(values, good | {"spacing": 0}))
    refused("map.h5: the dataset /potential contains no real numbers", potential=(values * 1j, good))
    refused("map.h5: a grid's shape must be", potential=(np.ones((0, 3, 4)), good))
    refused(r"map.h5: the value at point \(0, 0, 0\) is nan", potential=(values * np.nan, good))
    with h5py.File(path, "w") as file:
        file.create_dataset("only", data=values).attrs.update(good)
    np.testing.assert_array_equal(read_map(path).values, values)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_wrong_in_any(tmp_path, suffix):
    path = tmp_path / f"map{suffix}"
    with pytest.raises(FormatError, match=f"map{suffix}: no such file"):
        read_map(path)
    path.mkdir()
    with pytest.raises(FormatError, match=f"map{suffix}: a folder; give a file in it"):
        read_map(path)
    path.rmdir()
    for content in (
        b"",
        b"\n",
        b"<!DOCTYPE html><html>404</html>\n",
        b"nothing of the kind\n",
        b"\x1f\x8b\x08",
        b"\0" * 2000,
    ):
        path.write_bytes(gzip.compress(content) if suffix == ".dx.gz" and content[:1] != b"\x1f" else content)
        with pytest.raises(FormatError, match=f"map{suffix}:"):
            read_map(path)
    write_map(path, some_map())
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])
    with pytest.raises(FormatError, match=f"map{suffix}:"):
        read_map(path)


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(
        FormatError, match=r"map.txt: unknown suffix '.txt'; maps end in .dx, .dx.gz, .cube, .cub, .mrc"
    ):
        write_map(tmp_path / "map.txt", some_map())
    values = some_map().values.copy()
    values[0, 2, 1] = np.inf
    with pytest.raises(InputError, match=r"map.dx: the map cannot be written: the value at point \(1, 2, 0\) is inf"):
        write_map(tmp_path / "map.dx", Map(some_map().grid, values))
    with pytest.raises(InputError, match=r"1e\+300 is too large for the float32 of MRC files; use another format"):
        write_map(tmp_path / "map.mrc", Map(some_map().grid, np.full((2, 3, 4), 1e300)))
    with pytest.raises(FormatError, match="the same file as the input"):
        write_map(tmp_path / "map.dx", some_map(), inputs=[tmp_path / "map.dx"])
    with pytest.raises(InputError, match="the temperature of the unit kT/e is not known; give it"):
        write_map(tmp_path / "map.cube", some_map(unit="kT/e"))
    with pytest.raises(InputError, match="unknown unit 'furlong' of a potential"):
        write_map(tmp_path / "map.dx", some_map(), unit="furlong")
    assert os.listdir(tmp_path) == []


def test_numbers_in_other_files_are_told(tmp_path):
    grid = {"origin": np.zeros(3), "spacing": np.ones(3)}
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file.create_dataset("potential", data=np.ones((2, 2, 2))).attrs.update(grid)
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file["potential"] = h5py.ExternalLink("other.h5", "/potential")
    with pytest.raises(FormatError, match=r"link.h5: potential is a link to the file other.h5, which is not supported"):
        read_map(tmp_path / "link.h5")
    with h5py.File(tmp_path / "outside.h5", "w") as file:
        outside = [(str(tmp_path / "raw.bin"), 0, 64)]
        file.create_dataset("potential", (2, 2, 2), "f8", external=outside).attrs.update(grid)
    with pytest.raises(FormatError, match=r"outside.h5: the dataset /potential stores its values in another file"):
        read_map(tmp_path / "outside.h5")


def test_gzip_data_that_unpacks_to_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr(pele_ocl.common.inputfile, "_SMALL", 2**16)
    bomb = gzip.compress(b"REMARK\n" * 10**6)
    (tmp_path / "bomb.pdb.gz").write_bytes(bomb)
    (tmp_path / "bomb.pqr").write_bytes(bomb)
    for name in ("bomb.pdb.gz", "bomb.pqr"):
        with pytest.raises(FormatError, match=rf"{name}: the gzip data unpacks to more than 40 times its size"):
            pele_ocl.read(tmp_path / name)
