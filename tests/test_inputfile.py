"""Files are read once, and what was read is what is hashed; texts from files are safe to show."""

from __future__ import annotations

import gzip
import hashlib
import os
import pickle
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest

from pele_ocl import (
    Grid,
    Map,
    energy_over,
    read,
    read_map,
    read_pairs,
    trajectory,
    write_conformations,
    write_map,
)
from pele_ocl.atoms.selection import Composition
from pele_ocl.common.errors import FormatError, PeleError, printable
from pele_ocl.common.inputfile import InputFile, npz_arrays, read_file
from pele_ocl.formats import read_points

STRUCTURES = Path(__file__).parent.parent / "data" / "structures"
PEPTIDE = read(STRUCTURES / "hexapeptide.pdb")
TRAJECTORIES = (".dcd", ".nc", ".xtc", ".mdcrd", ".h5", ".trr")


def test_a_file_that_changes_after_it_was_read(tmp_path: Path) -> None:
    path = tmp_path / "molecule.pdb"
    content = (STRUCTURES / "hexapeptide.pdb").read_bytes()
    path.write_bytes(content)
    source = read_file(path)
    path.write_bytes((STRUCTURES / "ubiquitin.pdb").read_bytes())
    atoms = read(source)
    assert len(atoms) == content.count(b"\nATOM ")
    assert source.sha256 == hashlib.sha256(content).hexdigest()
    assert (str(source), os.fspath(source), source.suffix) == (str(path), str(path), ".pdb")
    assert read_file(source) is source


@pytest.mark.parametrize("name", ["none.pdb", "", "a\0b.pdb"])
def test_files_that_are_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match=r"no such file|a folder|not a valid file name"):
        read_file(tmp_path / name)


def test_what_is_shown_on_a_terminal() -> None:
    assert printable("\x1b[31mred\x07 \u202e\udcff é") == "\\x1b[31mred\\x07 \\u202e\\udcff é"
    error = PeleError("bad\x1b]0;title\x07 name\nsecond line")
    assert str(error) == "bad\\x1b]0;title\\x07 name\nsecond line"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_file_name_that_is_not_utf_8(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x1b.pdb")
    Path(path).write_text("REMARK\n")
    with pytest.raises(FormatError, match=r"/\\udcff\\x1b.pdb: contains no ATOM or HETATM records") as caught:
        read(path)
    str(caught.value).encode()


def test_solvent_counts() -> None:
    labels = read(STRUCTURES / "hexapeptide.pdb").labels
    found = Composition.of(labels)
    assert (found.waters, found.ions, found.solvent_sentence(), Composition.of(None)) == (0, {}, "", Composition())


@pytest.mark.parametrize(
    ("molecules", "sentence"),
    [
        (["HOH"], "1 water is part of the solute"),
        (["HOH", "HOH"], "2 waters are part of the solute"),
        (["NA", "LIG", "HOH"], "1 water and 1 ion are part of the solute"),
    ],
)
def test_solvent_sentence(tmp_path: Path, molecules: list[str], sentence: str) -> None:
    atoms = {"HOH": ["O", "H1", "H2"], "NA": ["NA"], "LIG": ["C1", "C2"]}
    named = [(k, molecule, atom) for k, molecule in enumerate(molecules) for atom in atoms[molecule]]
    lines = [f"HETATM 1 {atom} {molecule} {k} {i}.0 0.0 0.0 -0.1 1.5" for i, (k, molecule, atom) in enumerate(named)]
    (tmp_path / "m.pqr").write_text("\n".join(lines))
    found = read(tmp_path / "m.pqr")
    assert np.isfinite(found.positions).all()
    assert Composition.of(found.labels).solvent_sentence() == sentence


def other_kinds(folder: Path) -> list[Path]:
    """A device without an end, a link to it, and a pipe that nobody writes to."""
    os.mkfifo(folder / "pipe.pdb")
    (folder / "link.pdb").symlink_to("/dev/zero")
    return [Path("/dev/zero"), folder / "link.pdb", folder / "pipe.pdb"]


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device here")
def test_what_is_no_regular_file_is_refused(tmp_path):
    """None of these ends, so whoever opens one hangs or fills memory."""
    for path in other_kinds(tmp_path):
        with pytest.raises(FormatError, match="is a device, a pipe or a socket"):
            read_file(path)
    for suffix in (".pdb", ".pqr", ".cif", ".prmtop", ".gro", ".mol2", ".dcd", ".nc", ".xtc", ".mdcrd", ".h5", ".trr"):
        path = tmp_path / f"zero{suffix}"
        path.symlink_to("/dev/zero")
        with pytest.raises(FormatError, match="is a device, a pipe or a socket"):
            trajectory(path, PEPTIDE) if suffix in TRAJECTORIES else read(path)
    for name, reader in (("z.npz", lambda of: read_pairs(of, 9)), ("z.dx", read_map), ("z.csv", read_points)):
        (tmp_path / name).symlink_to("/dev/zero")
        with pytest.raises(FormatError, match="is a device, a pipe or a socket"):
            reader(tmp_path / name)


def test_archives_that_unpack_to_too_much(tmp_path, monkeypatch):
    """A few MB of zeros that unpack to gigabytes: refused before they are unpacked."""
    monkeypatch.setattr("pele_ocl.common.inputfile._SMALL", 2**16)
    zeros = np.zeros(10**6, np.int32)
    np.savez_compressed(tmp_path / "pairs.npz", first=zeros, second=zeros)
    with pytest.raises(FormatError, match=r"the \.npz data unpacks to more than 40 times its size"):
        read_pairs(tmp_path / "pairs.npz", 9)
    with pytest.raises(FormatError, match=r"the \.npz data unpacks to more than 40 times its size"):
        npz_arrays(tmp_path / "pairs.npz")
    with h5py.File(tmp_path / "pairs.h5", "w") as file:
        for name in ("first", "second"):
            file.create_dataset(name, data=zeros, compression="gzip")
    with pytest.raises(FormatError, match="the HDF5 data unpacks to more than 40 times its size"):
        read_pairs(tmp_path / "pairs.h5", 9)
    (tmp_path / "frames.dcd.gz").write_bytes(gzip.compress(bytes(10**6)))
    with pytest.raises(FormatError, match="the compressed data unpacks to more than 40 times its size"):
        trajectory(tmp_path / "frames.dcd.gz", PEPTIDE)


TOO_LONG, FOLDER, NULL = "x" * 300, "folder", "a\0b"
READERS = {
    "structure": (read, ".pdb"), "packed": (read, ".cif.gz"), "topology": (read, ".prmtop"), "map": (read_map, ".dx"),
    "pairs": (lambda path: read_pairs(path, 9), ".npz"), "points": (read_points, ".txt"),
    **{form: (lambda path: trajectory(path, PEPTIDE), form) for form in TRAJECTORIES}, "arrays": (npz_arrays, ".npz"),
}  # fmt: skip
WRITERS = {
    "conformations": (lambda path: write_conformations(path, PEPTIDE), ".pdb"),
    "map": (lambda path: write_map(path, Map(Grid(np.zeros(3), 1.0, (2, 2, 2)), np.zeros((2, 2, 2)))), ".dx"),
    "frames": (lambda path: energy_over(PEPTIDE, PEPTIDE.positions[np.newaxis], output=path), ".csv"),
}  # fmt: skip


@pytest.mark.parametrize("which", [*READERS, *(f"write {name}" for name in WRITERS)])
def test_names_that_are_no_files(tmp_path: Path, which: str) -> None:
    """Each is one sentence, of one wording, whoever opens the file; a missing file is not to be copied again."""
    is_written = which.startswith("write ")
    call, suffix = WRITERS[which.removeprefix("write ")] if is_written else READERS[which]
    (tmp_path / "plain").write_text("")
    (tmp_path / f"{FOLDER}{suffix}").mkdir()
    expected = {
        TOO_LONG: "the name is too long for the file system; give a shorter one", NULL: "not a valid file name",
        FOLDER: "a folder; give a file in it|not a regular file", "plain/x": "no such file|does not exist",
        "none/x": "no such file|does not exist", **({} if is_written else {"none": "no such file"}),
    }  # fmt: skip
    for name, words in expected.items():
        with pytest.raises(FormatError, match=words) as caught:
            call(f"{tmp_path}/{name}{suffix}")
        assert "copy" not in str(caught.value)
        assert "Errno" not in str(caught.value)


def test_arrays_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints of many replicas are larger than any structure, and are never read as a whole."""
    path = tmp_path / "arrays.npz"
    values = np.random.default_rng(1).normal(size=(3, 1000))
    np.savez(path, a=values, b=np.arange(5))
    monkeypatch.setattr("pele_ocl.common.inputfile._MOST_BYTES", 1000)
    for source in (path, InputFile(path, path.read_bytes())):
        found = npz_arrays(source)
        assert list(found) == ["a", "b"]
        assert (found["a"] == values).all()
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(zipfile.BadZipFile):
        npz_arrays(path)


def test_arrays_that_are_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "objects.npz", a=np.array([print], object))
    with pytest.raises(ValueError, match="allow_pickle"):
        npz_arrays(tmp_path / "objects.npz")


def test_maps_may_repeat_more_than_structures(tmp_path, monkeypatch):
    """A map beside a molecule, within no cutoff, is zeros."""
    monkeypatch.setattr("pele_ocl.common.inputfile._SMALL", 2**16)
    zeros = Map(Grid(np.zeros(3), 1.0, (24, 24, 24)), np.zeros((24, 24, 24)), "kT/e")
    write_map(tmp_path / "zeros.dx.gz", zeros)
    size = len(gzip.decompress((tmp_path / "zeros.dx.gz").read_bytes()))
    assert 2**16 < size < 2**18
    assert not read_map(tmp_path / "zeros.dx.gz").values.any()


def test_a_file_that_is_far_too_large(tmp_path):
    """A sparse file of 5 GiB takes no disk; read as a whole it would take memory."""
    with open(tmp_path / "large.pdb", "wb") as file:
        file.truncate(5 << 30)
    with pytest.raises(FormatError, match="has more than 4 GiB"):
        read(tmp_path / "large.pdb")
