"""Files of points."""

from __future__ import annotations

import numpy as np
import pytest

from pele_ocl.common.errors import FormatError
from pele_ocl.formats import read_points, write_table

POINTS = np.array([(1, 2.5, -3), (4e1, 5, 6.25)])
TEXTS = {
    "blanks.txt": "1 2.5 -3\n\n 4e1\t5  6.25 # the second\n",
    "commas.dat": "# x, y, z\n1, 2.5, -3\n4e1,5,6.25\n",
    "header.csv": "name,z,y,x\nfirst,-3,2.5,1\n,6.25,5,4e1\n",
    "units.csv": "# by: us\nposition_x [A],position_y [A],position_z [A],v [V]\n1,2.5,-3,7\n4e1,5,6.25,nan\n",
    "more.txt": "1 2.5 -3 99 C\n4e1 5 6.25 99 C\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_text(tmp_path, name):
    (tmp_path / name).write_text(TEXTS[name])
    np.testing.assert_array_equal(read_points(tmp_path / name), POINTS)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_numpy(tmp_path, dtype):
    np.save(tmp_path / "points.npy", POINTS.astype(dtype))
    found = read_points(tmp_path / "points.npy")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, POINTS.astype(dtype))


def test_tables_of_ours(tmp_path):
    write_table(tmp_path / "t.csv", {"atom": np.array(["a", "b"]), "position": POINTS}, {"position": "A"}, {"a": 1})
    np.testing.assert_array_equal(read_points(tmp_path / "t.csv"), POINTS)


def test_a_table_without_rows(tmp_path):
    (tmp_path / "points.csv").write_text("x,y,z\n")
    assert read_points(tmp_path / "points.csv").shape == (0, 3)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.txt", b"1 2 3\n1 2\n", "p.txt:2: expected x, y and z, not '1 2'"),
        ("p.txt", b"1 2 3\n1 2 three\n", "p.txt:2: expected x, y and z, not '1 2 three'"),
        ("p.csv", b"1,2,3\n1,,3\n", "p.csv:2: expected x, y and z, not '1,,3'"),
        ("p.csv", b"x,y,x\n1,2,3\n", "p.csv:1: names no columns x, y and z: x, y, x"),
        ("p.csv", b"x,y,z\nx,y,z\n", "p.csv:2: expected x, y and z"),
        ("p.txt", b"1 2 3\n1 nan 3\n", "p.txt: the coordinates of point 2 are not finite"),
        ("p.txt", b"", "p.txt: the file is empty"),
        ("p.txt", b"<html>\n", "p.txt: contains HTML, not a point file"),
        ("p.npy", b"1 2 3\n", "p.npy: cannot be read as .npy"),
        ("p.npy", b"", "p.npy: cannot be read as .npy"),
        ("p.xyz", b"1 2 3\n", r"p.xyz: unknown suffix '\.xyz'; points end in \.npy, \.txt, \.dat, \.csv"),
    ],
)
def test_what_is_wrong(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match=message):
        read_points(tmp_path / name)


def test_what_is_wrong_with_arrays(tmp_path):
    path = tmp_path / "p.npy"
    for array in (np.ones(3), np.ones((2, 4)), np.ones((2, 3), complex), np.array([["a", "b", "c"]])):
        np.save(path, array)
        with pytest.raises(FormatError, match=r"p.npy: expected an array of numbers of shape \(n, 3\)"):
            read_points(path)
    np.save(path, np.array([[object()] * 3]), allow_pickle=True)
    with pytest.raises(FormatError, match=r"p.npy: cannot be read as \.npy"):
        read_points(path)
    with pytest.raises(FormatError, match=r"none\.npy: no such file"):
        read_points(tmp_path / "none.npy")
