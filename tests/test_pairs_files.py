"""Files of pairs: round trips, the columns of a text, and what is said of damaged files."""

from __future__ import annotations

from dataclasses import replace

import h5py
import numpy as np
import pytest
from forcefield_helpers import ROOT, chain

import pele_ocl
from pele_ocl import FormatError, InputError
from pele_ocl.pairs import PAIR_SUFFIXES, AllPairs, PairList, read_pairs, write_pairs

FIELDS = ("first", "second", "one_four", "sigma2", "charge_products")
RNG = np.random.default_rng(3)
LISTS = {
    "empty": PairList(4, [], []),
    "one": PairList(4, [3], [1]),
    "flags": PairList(4, [3, 0], [1, 2], one_four=[True, False]),
    "PELE's own": PairList(4, [3, 0], [1, 2], sigma2=[1 / 3, 0], charge_products=[-0.1, 1e-300]),
    "everything": PairList(4, [3, 0], [1, 2], [True, False], [1 / 3, 12.5], [-0.1, 0.7]),
    "sigma2 alone": PairList(4, [3, 0], [1, 2], sigma2=[1 / 3, 12.5]),
    "long": PairList(100_001, np.arange(100_000), np.arange(1, 100_001), sigma2=RNG.random(100_000)).shuffled(),
}


@pytest.fixture
def write(tmp_path):
    """Write text to a file and return its path."""

    def writer(text, name="pairs.txt"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return writer


def assert_same(found, expected):
    assert found.n_atoms == expected.n_atoms
    for name in FIELDS:
        values = getattr(expected, name)
        if values is None:
            assert getattr(found, name) is None
        else:
            np.testing.assert_array_equal(getattr(found, name), values)


@pytest.mark.parametrize("suffix", PAIR_SUFFIXES)
@pytest.mark.parametrize("pairs", LISTS.values(), ids=LISTS)
def test_round_trips(pairs, suffix, tmp_path):
    path = tmp_path / f"pairs{suffix}"
    write_pairs(path, pairs)
    found = read_pairs(path, pairs.n_atoms)
    if len(pairs):
        assert_same(found, pairs)
    assert len(found) == len(pairs)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", PAIR_SUFFIXES)
@pytest.mark.parametrize("one_four", [[], [(0, 3)]], ids=["no flags", "flags"])
def test_all_pairs_are_written_as_they_come(suffix, one_four, tmp_path, monkeypatch):
    monkeypatch.setattr("pele_ocl.pairs.files._CHUNK", 70)
    pairs = AllPairs(20, np.array([(0, 1), (5, 9)]), np.array(one_four, np.int32).reshape(-1, 2))
    path = tmp_path / f"all{suffix}"
    write_pairs(path, pairs)
    (expected,) = pairs.chunks(10**6)
    assert_same(read_pairs(path, 20), expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 1\n2 3\n", PairList(4, [0, 2], [1, 3])),
        ("0,1\r\n2 , 3\r\n", PairList(4, [0, 2], [1, 3])),
        ("\n# a comment\n0 1  # the first\n\n\t2 3", PairList(4, [0, 2], [1, 3])),
        ("0 1 1\n2 3 0\n", PairList(4, [0, 2], [1, 3], [True, False])),
        ("0 1 9.5 -0.25\n2 3 1e1 .5\n", PairList(4, [0, 2], [1, 3], None, [9.5, 10], [-0.25, 0.5])),
        ("0 1 9.5 -0.25 1\n", PairList(4, [0], [1], [True], [9.5], [-0.25])),
        ("second,first\n0,1\n", PairList(4, [1], [0])),
        ("# made by hand\n# first second sigma2\n0 1 4\n", PairList(4, [0], [1], sigma2=[4])),
        ("# nothing\n", PairList(4, [], [])),
    ],
    ids=["plain", "commas", "comments", "flags", "PELE's own", "five", "header", "comment header", "no pairs"],
)
@pytest.mark.parametrize("name", ["pairs.txt", "pairs.csv", "PAIRS.DAT"])
def test_texts(name, text, expected, write):
    assert_same(read_pairs(write(text, name), 4), expected)


def test_atoms_may_count_from_one(write):
    path = write("1 2\n4 3\n")
    assert_same(read_pairs(path, 4, base=1), PairList(4, [0, 3], [1, 2]))
    with pytest.raises(
        FormatError, match=r"pairs.txt:2: the pair of atom 4 and atom 3 has no atom with the index 4; .* 0 to 3"
    ):
        read_pairs(path, 4)
    with pytest.raises(
        FormatError, match=r":1: the pair of atom 0 and atom 1 has no atom with the index 0; the atoms are 1 to"
    ):
        read_pairs(write("0 1"), 4, base=1)
    with pytest.raises(InputError, match="base is 2; the first atom of a file has the index 0 or 1"):
        read_pairs(path, 4, base=2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": the file is empty"),
        ("0 1\n2\n", ":2: has 1 column; expected 2: first, second"),
        ("0 1\n1 2 3\n", ":2: has 3 columns; expected 2: first, second"),
        ("0\n", ":1: has 1 column; expected 2: first, second"),
        ("0 1 2 3 4 5\n", ":1: has 6 columns; expected 2: first, second"),
        ("\n0 1\n1 two\n", ":3: second is 'two'; expected the index of an atom"),
        ("0 1.5\n", ":1: second is '1.5'; expected the index of an atom"),
        (f"0 {10**30}\n", f":1: second is '{10**30}'; expected the index of an atom"),
        ("0 1 2\n", ":1: one_four is '2'; expected 0 or 1"),
        ("0 1 x 1\n", ":1: sigma2 is 'x'; expected a finite number"),
        ("0 1 1 nan\n", ":1: charge_products is 'nan'; expected a finite number"),
        ("# c\n0 1\n\n3 3\n", ":4: atom 3 is paired with itself; remove the pair"),
        ("0 1\n1 4\n", ":2: the pair of atom 1 and atom 4 has no atom with the index 4; the atoms are 0 to 3"),
        ("0 1\n# c\n2 3\n1 0\n", ":4: the pair of atom 1 and atom 0 is the same as pair number 1; remove one"),
        ("first one_four\n0 1\n", ": has no 'second'; a list of pairs needs the indices first and second"),
        ("0 1 -2 1\n", ": sigma2 of pairs[0] is -2; a square cannot be negative"),
        ("<html>", ": contains HTML, not a pair list file"),
    ],
)
def test_wrong_texts(text, message, write):
    path = write(text)
    with pytest.raises(FormatError) as error:
        read_pairs(path, 4)
    assert str(error.value).startswith(f"{path}{message}")


def test_lines_are_right_far_into_a_file(write):
    rows = [f"{i} {i + 1}" for i in range(150_000)]
    rows[140_000] = "5 x"
    with pytest.raises(FormatError, match=r"pairs.txt:140001: second is 'x'"):
        read_pairs(write("\n".join(rows)), 200_000)
    rows[140_000] = "# nothing\n7 7"
    with pytest.raises(FormatError, match=r"pairs.txt:140002: atom 7 is paired with itself"):
        read_pairs(write("\n".join(rows)), 200_000)


def test_messages_name_the_atoms(write):
    labels = chain([("ALA", "N CA"), ("GLY", "N CA")]).labels
    with pytest.raises(FormatError, match=r":1: atom 2 \(A:ALA1:CA\) is paired with itself"):
        read_pairs(write("2 2"), 4, base=1, labels=labels)


@pytest.mark.parametrize("suffix", [".h5", ".npz"])
@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"first": [0]}, "has no 'second'"),
        ({"first": [0], "second": [1, 2]}, "first has 1 atoms and second 2"),
        ({"first": [0.5], "second": [1.0]}, "first contains float64 values; indices are whole numbers"),
        ({"first": [0, 1], "second": [1, 1]}, "pair number 2: atom 1 is paired with itself"),
        ({"first": [0], "second": [1], "sigma2": [1.0, 2.0]}, r"sigma2 has shape \(2,\); expected \(1,\)"),
        ({"first": [0], "second": [1], "sigma2": [b"x"]}, "could not convert"),
        ({"first": [0], "second": [1], "n_atoms": 9}, "was written for 9 atoms, not for these 4; write the list again"),
    ],
)
def test_wrong_arrays(arrays, message, suffix, tmp_path):
    path = tmp_path / f"pairs{suffix}"
    if suffix == ".npz":
        np.savez(path, **arrays)
    else:
        with h5py.File(path, "w") as file:
            for name, values in arrays.items():
                if name == "n_atoms":
                    file.attrs[name] = values
                else:
                    file[name] = values
    with pytest.raises(FormatError, match=f"{path}: .*{message}"):
        read_pairs(path, 4)


@pytest.mark.parametrize(("suffix", "kind"), [(".h5", "HDF5"), (".npz", ".npz")])
@pytest.mark.parametrize("keep", [0, 1, 30, 500, 0.5, 0.9, 0.99])
def test_damaged_arrays(suffix, kind, keep, tmp_path):
    path = tmp_path / f"pairs{suffix}"
    write_pairs(path, LISTS["everything"])
    content = path.read_bytes()
    path.write_bytes(content[: keep if isinstance(keep, int) else int(keep * len(content))])
    with pytest.raises(FormatError, match=f"{path}: cannot be read as {kind}"):
        read_pairs(path, 4)


def test_an_array_of_objects_is_not_loaded(tmp_path):
    path = tmp_path / "pairs.npz"
    np.savez(path, first=np.array([0], object), second=[1])
    with pytest.raises(FormatError, match=r"cannot be read as .npz"):
        read_pairs(path, 4)


@pytest.mark.parametrize("suffix", PAIR_SUFFIXES)
def test_files_that_are_none(suffix, tmp_path):
    with pytest.raises(FormatError, match="no such file"):
        read_pairs(tmp_path / f"none{suffix}", 4)
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(FormatError, match="a folder; give a file in it"):
        read_pairs(tmp_path / f"folder{suffix}", 4)


@pytest.mark.parametrize("name", ["pairs.json", "pairs", "pairs.txt.gz"])
def test_unknown_suffixes(name, tmp_path):
    for use in (lambda path: read_pairs(path, 4), lambda path: write_pairs(path, LISTS["one"])):
        with pytest.raises(FormatError, match=r"unknown suffix .*; lists of pairs end in .h5, .npz, .txt, .dat, .csv"):
            use(tmp_path / name)


@pytest.mark.parametrize("suffix", PAIR_SUFFIXES)
def test_nothing_half_written_is_left(suffix, tmp_path):
    class Failing(AllPairs):
        def chunks(self, most):
            yield next(super().chunks(1))
            raise KeyboardInterrupt

    path = tmp_path / f"pairs{suffix}"
    path.write_bytes(b"what was there before")
    with pytest.raises(KeyboardInterrupt):
        write_pairs(path, Failing(5))
    assert path.read_bytes() == b"what was there before"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_text_of_another_molecule(tmp_path):
    path = tmp_path / "pairs.txt"
    write_pairs(path, PairList(9, [0, 1], [1, 2]))
    with pytest.raises(FormatError, match=r"pairs.txt: was written for 9 atoms, not for these 12; write the list aga"):
        read_pairs(path, 12)
    assert len(read_pairs(path, 9)) == 2
    path.write_text("# 1 pairs\n0 1\n")
    assert len(read_pairs(path, 12)) == 1


@pytest.mark.parametrize("suffix", PAIR_SUFFIXES)
def test_atoms_are_found_by_name(suffix, tmp_path):
    """A list serves the same atoms in another order, or is refused; it never names other atoms."""
    atoms = pele_ocl.read(ROOT / "data" / "structures" / "hexapeptide.pdb")
    listed, path = pele_ocl.pairs_within(atoms, 6.0), tmp_path / f"pairs{suffix}"
    write_pairs(path, listed, atoms.labels)
    same = read_pairs(path, len(atoms), labels=atoms.labels, notes=(notes := []))
    assert (same.first.tolist(), same.second.tolist(), notes) == (listed.first.tolist(), listed.second.tolist(), [])
    order = np.arange(len(atoms))
    order[[2, 3]] = 3, 2  # C and O of the first residue
    other = atoms[order].labels
    if suffix in (".h5", ".npz"):
        found = read_pairs(path, len(atoms), labels=other, notes=notes)
        assert order[found.first].tolist() == listed.first.tolist()
        assert order[found.second].tolist() == listed.second.tolist()
        assert "2 atoms are in another order" in notes[0]
    else:
        with pytest.raises(FormatError, match="written for atoms with other names or in another order"):
            read_pairs(path, len(atoms), labels=other)
    if suffix in (".h5", ".npz"):
        names = atoms.labels.names.copy()
        names[0] = "XX"
        with pytest.raises(FormatError, match=f"pairs{suffix}: "):
            read_pairs(path, len(atoms), labels=replace(atoms.labels, names=names))


def test_a_text_that_may_count_from_one_is_told(write):
    notes = []
    read_pairs(write("1 2\n2 3\n"), 4, notes=notes)
    assert "has no pair of the first atom, whose index is 0 here" in notes[0]
    read_pairs(write("0 2\n2 3\n"), 4, notes=(quiet := []))
    assert quiet == []
