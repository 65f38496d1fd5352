"""Damaged files that were once accepted, or ended in something else than a sentence; found by hand and by fuzzing."""

from __future__ import annotations

import gzip
import io
import os
import struct
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest

from pele_ocl import Grid, InputError, Map, potmap, read, read_map, read_pairs, write_map
from pele_ocl.common.errors import FormatError
from pele_ocl.common.installation import shipped
from pele_ocl.forcefield import read_obc, read_template
from pele_ocl.formats import model_numbers, read_points, read_pqr
from pele_ocl.pairs import PairList, write_pairs

PQR = "ATOM  {k} {name}  ALA A   {n}   {x:8.3f}   2.500  -3.250 -0.4157 1.8240\n"


def refused(read, path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(FormatError) as caught:
        read(path)
    return str(caught.value).removeprefix(f"{path}")


def test_a_hexapeptide_line_without_its_x(tmp_path: Path) -> None:
    lines = (shipped("data") / "structures" / "hexapeptide.pdb").read_text().splitlines(keepends=True)
    at = next(k for k, line in enumerate(lines) if line.startswith("ATOM     36"))
    lines[at] = lines[at][:30] + lines[at][38:]
    assert refused(read, tmp_path / "h.pdb", "".join(lines)).startswith(f":{at + 1}: the columns are not where the PDB")


def test_atom_names_of_pqr_files_may_repeat(tmp_path: Path) -> None:
    path = tmp_path / "m.pqr"
    lines = [PQR.format(k=k, name="H ", n=1, x=1.5 * k) for k in range(5)]
    path.write_text("".join(lines))
    atoms = read(path)
    assert atoms.labels.names.tolist() == ["H"] * 5
    assert np.isfinite(potmap(atoms, Grid((20, 0, 0), 1, (2, 2, 2)), precision="float64").map.values).all()
    assert refused(read, path, "".join([*lines, lines[2]])).startswith(":6: atom A:ALA1:H is already on line 3")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "ATOM    HD3  LYS A   2       1.000   2.000   3.000 0.1 1.2",
            ":1: expected the serial number of the atom after the record name, not 'HD3'",
        ),
        (
            "ATOM HD3 LYS A 2 1.0 2.0 3.0 0.1 1.2",
            ":1: expected the serial number of the atom after the record name, not 'HD3'",
        ),
        (
            "ATOM 1 N\x1b[31m ALA A 2 1.0 2.0 3.0 0.1 1.2",
            ":1: the name 'N\\x1b[31m' contains characters that are not text",
        ),
        ("ATOM 1 N ALA A 2 1.0 2.0 3.0 0.1 " + "9" * 5000 + "x", "' and 4,941 more characters is not a number"),
    ],
)
def test_lines_of_pqr_files(tmp_path: Path, line: str, message: str) -> None:
    assert message in refused(read_pqr, tmp_path / "m.pqr", line + "\n")


@pytest.mark.parametrize("model", ["MODEL        1", "model 1", "Model 1"])
def test_two_models_of_one_number(tmp_path: Path, model: str) -> None:
    atom = "ATOM      1  N   MET A   1      -0.095   0.780   0.955"
    text = "\n".join([model, atom, "endmdl", model, atom, "ENDMDL", ""])
    for name in ("m.pdb", "m.pqr"):
        assert refused(model_numbers, tmp_path / name, text).startswith(":5: a second model 1; the first begins before")
    cif = "data_a\nloop_\n_atom_site.id\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n"
    cif += "_atom_site.pdbx_PDB_model_num\n1 0 0 0 1\n2 1 0 0 01\n"
    assert (
        refused(model_numbers, tmp_path / "m.cif", cif) == ": two models have the same number ('1', '01'); renumber "
        "them"
    )


def test_models_in_lower_case(tmp_path: Path) -> None:
    atom = "atom      1  N   MET A   1      -0.095   0.780   0.955"
    (tmp_path / "m.pdb").write_text("\n".join(["model 3", atom, "endmdl", "model 7", atom, "endmdl", ""]))
    assert model_numbers(tmp_path / "m.pdb") == [3, 7]


def test_a_list_of_pairs_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "pairs.txt"
    write_pairs(path, PairList(445, range(444), range(1, 445)))
    lines = path.read_text().splitlines(keepends=True)
    message = refused(lambda path: read_pairs(path, 445), path, "".join(lines[: 198 + 2]))
    assert message == ": contains 198 pairs where its first line says 444; fetch or copy the file again"
    assert (
        refused(lambda path: read_pairs(path, 3), path, "0 1_0\n")
        == ":1: second is '1_0'; expected the index of an atom"
    )


@pytest.mark.parametrize("flags", [[0.5], [float("nan")], [2], ["x"]])
def test_flags_that_are_neither_true_nor_false(flags: list[object]) -> None:
    with pytest.raises(InputError, match=r"one_four (of pairs\[0\] is|are not an array of numbers)"):
        PairList(2, [0], [1], one_four=flags)
    assert PairList(2, [0], [1], one_four=[1.0]).one_four.tolist() == [True]


def claims_much(path: Path, attribute: bool = False) -> None:
    """A file of 1.5 kB whose dataset has 8 GB that were never written."""
    with h5py.File(path, "w") as file:
        for name in ("first", "second"):
            file.create_dataset(name, (2**30,), np.int64)
        dataset = file.create_dataset("potential", (1024, 1024, 1024), np.float64)
        dataset.attrs.update({"origin": (0, 0, 0), "spacing": 1.0})


def test_hdf5_that_claims_more_than_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "much.h5"
    claims_much(path)
    assert path.stat().st_size < 5000
    sentence = "announces 8,589,934,592 bytes and contains 0; fetch or copy the file again"
    with pytest.raises(FormatError, match=sentence):
        read_map(path)
    with pytest.raises(FormatError, match=sentence):
        read_pairs(path, 9)


def test_a_heap_of_texts_that_leads_in_circles(tmp_path: Path) -> None:
    """libhdf5 would not come back from free space of 0 bytes, nor from an object longer than any memory."""
    path = tmp_path / "map.h5"
    write_map(path, Map(Grid((0, 0, 0), 1, (2, 2, 2)), np.ones((2, 2, 2)), "kT/e", "a title", 300))
    content = path.read_bytes()
    heap = content.index(b"GCOL")
    for head in (
        b"\0\0" + content[heap + 18 : heap + 24] + b"\0" * 8,
        content[heap + 16 : heap + 24] + b"\xf0" + b"\xff" * 7,
    ):
        damaged = content[: heap + 16] + head + content[heap + 32 :]
        assert refused(read_map, path, damaged) == ": cannot be read as HDF5 (a heap of strings is damaged)"


def npy(header: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 3), }\n",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ", 3), }\n",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 3), }\n",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3), }\n",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1, 3), }\n",
        "(" * 5000,
        "-" * 5000,
        "{'descr': [], 'fortran_order': False, 'shape': (1, 3), }\n",
        "",
    ],
)
def test_npy_headers(tmp_path: Path, header: str) -> None:
    content = npy(header) + bytes(24)
    assert refused(read_points, tmp_path / "p.npy", content)[:30].startswith(
        (": cannot be read as .npy (", ": an array")
    )
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("first.npy", content)
    message = refused(lambda path: read_pairs(path, 4), tmp_path / "p.npz", archive.getvalue())
    assert message.startswith((": cannot be read as .npz (", ": has no 'second'"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"SolventParameters": ' + "[" * 100_000, ": the JSON is damaged (brackets are nested too deeply)"),
        (
            '{"SolventParameters": {"A": {"C": {"radius": ' + "9" * 5000 + ', "scale": 0.7}}}}',
            ": the JSON is damaged (",
        ),
        ("ALA N N " + "9" * 5000 + "x 0.7\n", "more characters and scale '0.7' must be numbers"),
    ],
)
def test_obc_tables(tmp_path: Path, text: str, message: str) -> None:
    assert message in refused(read_obc, tmp_path / "obc.txt", text)


def test_titles_and_units_of_maps_are_shown_as_they_can_be(tmp_path: Path) -> None:
    path = tmp_path / "map.dx"
    write_map(path, Map(Grid((0, 0, 0), 1, (2, 2, 2)), np.ones((2, 2, 2)), "V", "TITLE"))
    path.write_text(path.read_text().replace("TITLE", "\x1b[31mred\x07"))
    assert read_map(path).title == "\\x1b[31mred\\x07"
    path = tmp_path / "map.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("potential", data=np.ones((2, 2, 2)))
        dataset.attrs.update({"origin": (0, 0, 0), "spacing": 1.0, "unit": "\x1b]0;x", "title": b"a\x07"})
    found = read_map(path)
    assert (found.unit, found.title) == ("\\x1b]0;x", "a\\x07")


def test_files_whose_names_are_not_utf_8(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    map_ = Map(Grid((0, 0, 0), 1, (2, 2, 2)), np.ones((2, 2, 2)))
    for suffix in (".dx", ".h5", ".mrc", ".cube"):
        write_map(name + suffix, map_)
        np.testing.assert_array_equal(read_map(name + suffix).values, map_.values)
    for suffix in (".h5", ".npz", ".txt"):
        write_pairs(name + suffix, PairList(3, [0], [1]))
        assert len(read_pairs(name + suffix, 3)) == 1


def test_a_bomb_of_gzip_data(tmp_path: Path) -> None:
    """64 kB that unpack to one line of 64 MB; gigabytes are refused as soon."""
    path = tmp_path / "m.pdb.gz"
    message = refused(read, path, gzip.compress(b"A" * 2**26))
    assert message == ":1: a line of more than 16,777,216 characters; the file is damaged"


def test_escape_sequences_in_templates(tmp_path: Path) -> None:
    text = "NAZ 1 0 0 0 0\n 1 0 M Na+ N\x1b[1mA 1 0. 0. 0.\nNBON\n 1 1.8680 0.00277 1.0 0. 0. 0. 0.\nBOND\nEND\n"
    message = refused(read_template, tmp_path / "naz", text)
    assert message == ":2: the name 'N\\x1b[1mA' contains characters that are not text; rename the atom"
