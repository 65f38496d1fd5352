"""Result tables, and the promise that nothing half-written stays."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from pele_ocl.common.errors import FormatError
from pele_ocl.common.writing import refuse_overwriting, replacing
from pele_ocl.formats import check_target, write_table

COLUMNS = {
    "atom": np.array(["CA", "O3'", 'Å,"x"']),
    "born_radius": np.array([1.5, 2.0, 1 / 3]),
    "gradient": np.arange(9.0).reshape(3, 3),
    "residue_index": np.arange(3, dtype=np.int32),
}
UNITS = {"born_radius": "A", "gradient": "kcal/mol/A"}
ATTRIBUTES = {
    "program": "pele-ocl",
    "energy": np.float64(-1.25),
    "device": {"name": "PoCL\nx", "units": 4},
    "notes": ("one", "two"),
    "none": None,
    "flag": True,
}


def test_replacing_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with replacing(target) as temporary:
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".txt"
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError, SystemExit])
def test_replacing_keeps_the_old_file_on_any_exception(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")

    def fail() -> None:
        with replacing(target) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_replacing_follows_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.txt").symlink_to(tmp_path / "real" / "a.txt")
    with replacing(tmp_path / "link.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real" / "a.txt").read_text() == "new"


def test_new_file_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("")
    with replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("")
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "other").stat().st_mode


def opened(path: Path | str) -> None:
    with replacing(path):
        pytest.fail("the block must not be entered")


def test_places_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FormatError, match=r"none/a\.txt: the folder .*none does not exist; create it first$"):
        opened(tmp_path / "none" / "a.txt")
    with pytest.raises(FormatError, match=r": not a regular file; give the output a different name$"):
        opened(tmp_path)
    with pytest.raises(FormatError, match=r"^/dev/null: not a regular file"):
        opened("/dev/null")
    there = tmp_path / "there.txt"
    there.write_text("kept")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != there)
    with pytest.raises(
        FormatError, match=r"there\.txt: no permission to write to it; give the output a different name$"
    ):
        opened(there)
    assert there.read_text() == "kept"
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(FormatError, match=r"a\.txt: no permission to write into the folder"):
        opened(tmp_path / "a.txt")


def test_full_disk_is_a_sentence(tmp_path: Path) -> None:
    def fill() -> None:
        with replacing(tmp_path / "a.txt"):
            raise OSError(28, "No space left on device")

    with pytest.raises(FormatError, match=r"a\.txt: cannot be written: No space left on device$"):
        fill()


@pytest.mark.parametrize("error", [None, FileNotFoundError])
def test_no_temporary_name_is_told(tmp_path: Path, error: type[OSError] | None) -> None:
    def fail() -> None:
        with replacing(tmp_path / "a.txt") as temporary:
            raise OSError(f"cannot open {temporary}") if error is None else error(2, "No such file", str(temporary))

    with pytest.raises(FormatError) as caught:
        fail()
    reason = "the file system does not allow it" if error is None else "No such file or directory"
    assert str(caught.value) == f"{tmp_path / 'a.txt'}: cannot be written: {reason}"


def test_hdf5(tmp_path: Path) -> None:
    attributes = {**ATTRIBUTES, "long": "x" * 100_000}
    write_table(tmp_path / "t.h5", COLUMNS, UNITS, attributes)
    with h5py.File(tmp_path / "t.h5") as file:
        assert file["atom"].asstr()[()].tolist() == COLUMNS["atom"].tolist()
        np.testing.assert_array_equal(file["gradient"][()], COLUMNS["gradient"])
        assert file["residue_index"].dtype == np.int32
        assert file["gradient"].attrs["unit"] == "kcal/mol/A"
        assert "unit" not in file["atom"].attrs
        assert file.attrs["device.name"] == "PoCL\nx"
        assert file.attrs["device.units"] == 4
        assert file.attrs["energy"] == -1.25
        assert file.attrs["notes"].tolist() == ["one", "two"]
        assert len(file.attrs["long"]) == 100_000
        assert "none" not in file.attrs


def test_csv(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", COLUMNS, UNITS, ATTRIBUTES)
    lines = (tmp_path / "t.csv").read_text(encoding="utf-8").splitlines()
    comments = [line for line in lines if line.startswith("#")]
    assert comments == [
        "# program: pele-ocl",
        "# energy: -1.25",
        "# device.name: PoCL x",
        "# device.units: 4",
        '# notes: ["one", "two"]',
        "# flag: true",
    ]
    header, *rows = csv.reader(lines[len(comments) :])
    assert header == [
        "atom",
        "born_radius [A]",
        "gradient_x [kcal/mol/A]",
        "gradient_y [kcal/mol/A]",
        "gradient_z [kcal/mol/A]",
        "residue_index",
    ]
    assert rows[2] == ['Å,"x"', repr(1 / 3), "6.0", "7.0", "8.0", "2"]
    assert len(rows) == 3


def test_csv_of_other_widths_and_many_rows(tmp_path: Path) -> None:
    n = 70_000
    write_table(tmp_path / "t.csv", {"pair": np.arange(2 * n).reshape(n, 2)}, {}, {})
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines[0] == "pair_0,pair_1"
    assert lines[-1] == f"{2 * n - 2},{2 * n - 1}"
    assert len(lines) == n + 1


def test_json(tmp_path: Path) -> None:
    columns = {**COLUMNS, "psi": np.array([0.5, np.nan, np.inf])}
    write_table(tmp_path / "t.json", columns, UNITS, ATTRIBUTES)
    content = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert content["columns"]["atom"] == COLUMNS["atom"].tolist()
    assert content["columns"]["gradient"] == COLUMNS["gradient"].tolist()
    assert content["columns"]["psi"] == [0.5, None, None]
    assert content["units"] == UNITS
    assert content["device"] == {"name": "PoCL\nx", "units": 4}
    assert content["energy"] == -1.25
    assert content["none"] is None


@pytest.mark.parametrize("suffix", [".h5", ".csv", ".json"])
def test_empty_tables(tmp_path: Path, suffix: str) -> None:
    write_table(tmp_path / f"t{suffix}", {"atom": np.empty(0, np.str_), "q": np.empty(0)}, {}, {})
    assert (tmp_path / f"t{suffix}").stat().st_size > 0


def test_refused_tables_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"t\.xlsx: unknown suffix '\.xlsx'; tables end in \.h5, \.csv, \.json$"):
        write_table(tmp_path / "t.xlsx", COLUMNS, UNITS, {})
    unequal = {"a": np.zeros(2), "b": np.zeros(3)}
    with pytest.raises(FormatError, match=r"columns of one table have different lengths: \{'a': 2, 'b': 3\}$"):
        write_table(tmp_path / "t.csv", unequal, {}, {})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("link", ["same", "symbolic", "hard", "folder"])
def test_the_input_is_never_overwritten(tmp_path: Path, link: str) -> None:
    source = tmp_path / "in.csv"
    source.write_text("input")
    target = {"same": source, "folder": tmp_path / "deep" / ".." / "in.csv"}.get(link, tmp_path / "out.csv")
    (tmp_path / "deep").mkdir()
    if link == "symbolic":
        target.symlink_to(source)
    if link == "hard":
        target.hardlink_to(source)
    expected = f"{target}: the same file as the input {source}; give the output a different name"
    for refused in (
        lambda: refuse_overwriting(target, source),
        lambda: check_target(target, [source]),
        lambda: write_table(target, COLUMNS, UNITS, ATTRIBUTES, [tmp_path / "other", source]),
    ):
        with pytest.raises(FormatError) as caught:
            refused()
        assert str(caught.value) == expected
    assert source.read_text() == "input"


def test_an_output_that_is_not_there_yet_is_no_input(tmp_path: Path) -> None:
    refuse_overwriting(tmp_path / "out.csv", tmp_path / "in.pdb")
    write_table(tmp_path / "out.csv", COLUMNS, UNITS, ATTRIBUTES, [tmp_path / "in.pdb"])


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("out.txt", "unknown suffix '.txt'; tables end in .h5, .csv, .json"),
        ("absent/out.csv", "absent does not exist; create it first"),
        ("folder.csv", "not a regular file; give the output a different name"),
        ("x" * 300 + ".csv", "the name is too long for the file system; give a shorter one"),
    ],
)
def test_a_target_is_checked_before_any_work(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FormatError) as caught:
        check_target(tmp_path / name)
    assert str(caught.value).endswith(problem)
    assert os.listdir(tmp_path) == ["folder.csv"]
    check_target(tmp_path / "out.csv")
