"""Files of pairs: HDF5, NumPy's .npz and text, optionally with sigma^2 and charge product of each pair, as in PELE."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..atoms import Labels, correspondence
from ..common import arguments
from ..common.errors import FormatError, InputError
from ..common.inputfile import LARGE_BYTES, InputFile, read_file, require_unpacked
from ..common.textfiles import lines, number, quoted
from ..common.writing import replacing
from ..formats.hdf5 import attribute_of, first_line, npy_array, opened_hdf5, values_of, writing_hdf5
from .pairlist import PairList, Pairs, find_fault, require_pairs, whole_numbers

_BETWEEN = "\t"  # chain, residue name and number, insertion code, atom name


def names_to_store(labels: Labels) -> NDArray[np.bytes_]:
    """Names of atoms as stored in files, (n,)."""
    columns = (labels.chains, labels.residue_names, labels.residue_numbers, labels.insertion_codes, labels.names)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return np.array([_BETWEEN.join(map(str, row)).encode() for row in rows] or [b""], np.bytes_)[: len(labels)]


def labels_from(stored: NDArray[Any], file: InputFile) -> Labels:
    """Create labels from names stored in a file. Raises FormatError if they are invalid."""
    try:
        rows = [bytes(text).decode().split(_BETWEEN) for text in np.asarray(stored).ravel().tolist()]
        chains, residues, numbers, codes, names = (list(column) for column in zip(*rows, strict=True))
        keys = list(zip(chains, residues, numbers, codes, strict=True))
        return Labels(
            names=np.array(names), elements=np.full(len(rows), "X"), residue_names=np.array(residues),
            residue_numbers=np.array([int(number) for number in numbers]), insertion_codes=np.array(codes),
            chains=np.array(chains),
            residue_index=np.cumsum([k > 0 and key != keys[k - 1] for k, key in enumerate(keys)]),
        )  # fmt: skip
    except (ValueError, TypeError, UnicodeDecodeError):
        raise FormatError(f"{file}: its names of atoms cannot be read; write the list again") from None


def digest_of(labels: Labels) -> str:
    """Hash of the names and the order of atoms."""
    return hashlib.sha256(b"\n".join(names_to_store(labels).tolist())).hexdigest()[:16]


Columns = dict[str, NDArray[Any]]

_BLOCK = 65_536
# Names of the columns without a header, by their number.
_UNNAMED = {
    2: ("first", "second"),
    3: ("first", "second", "one_four"),
    4: ("first", "second", "sigma2", "charge_products"),
    5: ("first", "second", "sigma2", "charge_products", "one_four"),
}
_NAMES = frozenset(_UNNAMED[5])
_HEAD = re.compile(
    r"# (\d{1,18}) pairs of (\d{1,18}) atoms;(?:.*; names ([0-9a-f]{16})$)?", re.ASCII | re.MULTILINE
)  # header of texts written by write_pairs

_PARSERS: dict[str, tuple[Callable[[str], Any], Any, str]] = {
    "first": (int, np.int64, "the index of an atom"),
    "second": (int, np.int64, "the index of an atom"),
    "one_four": ({"0": False, "1": True}.__getitem__, np.bool_, "0 or 1"),
    "sigma2": (float, np.float64, "a finite number"),
    "charge_products": (float, np.float64, "a finite number"),
}


def read_columns(path: InputFile) -> tuple[Columns, NDArray[np.int64]]:
    """Read the columns of a text, n_pairs and n_atoms from its header if present, and the line number of each pair.

    Raises FormatError with file and line for rows of different lengths and for words that are not numbers.
    """
    names: Sequence[str] = ()
    stored: Columns = {}
    blocks: list[list[NDArray[Any]]] = []
    numbers: list[NDArray[np.int64]] = []
    text = lines(path, "pair list")
    start = 1
    while block := list(islice(text, _BLOCK)):
        if start == 1 and (head := _HEAD.match(block[0])):
            stored = {"n_pairs": np.array(int(head[1])), "n_atoms": np.array(int(head[2]))}
            stored |= {} if head[3] is None else {"atoms_sha256": np.array(head[3])}
        rows, where = _rows(block, start)
        start += len(block)
        for words in rows[:1]:
            names = names or _column_names(words) or _UNNAMED.get(len(words), _UNNAMED[2])
            if _column_names(words):
                rows, where = rows[1:], where[1:]
        if rows:
            strict = any("_" in line or not line.isascii() for line in block)  # int and float accept `1_0`
            blocks.append(_parsed(path, names, rows, where, strict))
            numbers.append(where)
    names = names or _UNNAMED[2]
    if not blocks:
        blocks, numbers = [[np.empty(0, _PARSERS[name][1]) for name in names]], [np.empty(0, np.int64)]
    columns = {name: np.concatenate([block[k] for block in blocks]) for k, name in enumerate(names)}
    return columns | stored, np.concatenate(numbers)


def _rows(block: list[str], start: int) -> tuple[list[list[str]], NDArray[np.int64]]:
    """Split non-empty lines into words, and return their line numbers; a comment with column names is kept."""
    text = "".join(block)
    if "," in text:
        block = [line.replace(",", " ") for line in block]
    if "#" in text:
        block = [line if "#" not in line else _uncommented(line) for line in block]
    rows = [line.split() for line in block]
    held = [k for k, words in enumerate(rows) if words]
    if len(held) < len(rows):
        rows = [rows[k] for k in held]
    return rows, np.array(held, np.int64) + start


def _uncommented(line: str) -> str:
    data, _, comment = line.partition("#")
    return comment if not data.strip() and _column_names(comment.split()) else data


def _column_names(words: list[str]) -> list[str] | None:
    """Return words if they are names of columns, otherwise None."""
    return words if words and words[0] in _NAMES and set(words) <= _NAMES else None


def _parsed(
    path: InputFile, names: Sequence[str], rows: list[list[str]], where: NDArray[np.int64], strict: bool
) -> list[NDArray[Any]]:
    """Parse rows to one array per column. strict : whether to check each word before parsing"""
    try:
        if strict and any(number(word) is None for words in rows for word in words):
            raise ValueError
        if set(map(len, rows)) != {len(names)}:
            raise ValueError
        return [_array(name, column) for name, column in zip(names, zip(*rows, strict=True), strict=True)]
    except (ValueError, KeyError, OverflowError):
        raise FormatError(_complaint(path, names, rows, where)) from None


def _array(name: str, words: Sequence[str]) -> NDArray[Any]:
    """Parse a column. Raises ValueError, KeyError or OverflowError for invalid words."""
    parse, dtype, _ = _PARSERS[name]
    values = np.array(list(map(parse, words)), dtype)
    if not np.isfinite(values).all():
        raise ValueError
    return values


def _complaint(path: InputFile, names: Sequence[str], rows: list[list[str]], where: NDArray[np.int64]) -> str:
    """Error message for the first invalid row."""
    for at, words in zip(where.tolist(), rows, strict=True):
        if len(words) != len(names):
            has = "1 column" if len(words) == 1 else f"{len(words)} columns"
            return f"{path}:{at}: has {has}; expected {len(names)}: {', '.join(names)}"
        for name, word in zip(names, words, strict=True):
            try:
                _array(name, [word if number(word) is not None else "?"])
            except (ValueError, KeyError, OverflowError):
                return f"{path}:{at}: {name} is {quoted(word)}; expected {_PARSERS[name][2]}"
    raise AssertionError("no row is wrong")


_CHUNK = 1_000_000
_DTYPES: dict[str, Any] = {
    "first": np.int32,
    "second": np.int32,
    "one_four": np.bool_,
    "sigma2": np.float64,
    "charge_products": np.float64,
}
_NOTE = "indices of atoms count from 0; sigma2 in A^2, charge_products in e^2"


def read_pairs(
    path: str | PathLike[str], n_atoms: int, *, base: Literal[0, 1] = 0, labels: Labels | None = None,
    notes: list[str] | None = None,
) -> PairList:  # fmt: skip
    """Read a list of pairs.

    path : .h5 or .npz with the arrays `first` and `second` and optionally `one_four`, `sigma2` (A^2) and
        `charge_products` (e^2). Text (.txt, .dat, .csv) has one pair per line, with columns separated by blanks or
        commas. Without a header, two columns are first and second, a third one is one_four (0 or 1), and four or five
        are first, second, sigma2, charge_products and one_four. `#` starts a comment
    n_atoms : number of atoms
    base : index of the first atom in the file; write_pairs uses 0
    labels : names of the atoms, for messages. If the file has names, atoms are matched by name
    notes : list to which messages about the order of atoms are appended

    The list is not filtered; use without_bonded to remove excluded pairs.

    Raises FormatError for invalid files, with the line, or the number of the pair in binary files.

    >>> pele_ocl.write_pairs("few.txt", pele_ocl.PairList(8, [0, 1], [5, 7]))
    >>> pele_ocl.read_pairs("few.txt", n_atoms=8).second.tolist()
    [5, 7]
    """
    arguments.whole_number("n_atoms", n_atoms)
    if labels is not None:
        arguments.instance("labels", labels, Labels, "Labels")
    if not isinstance(base, int | np.integer) or base not in (0, 1):
        raise InputError(f"base is {arguments.described(base)}; the first atom of a file has the index 0 or 1")
    read = _READERS[require_pairs_suffix(path)]
    file = read_file(path, LARGE_BYTES)
    columns, lines = read(file)
    for name in ("first", "second"):
        if name not in columns:
            raise FormatError(f"{file}: has no '{name}'; a list of pairs needs the indices first and second")
    announced = columns.pop("n_pairs", None)
    if announced is not None and announced != len(columns["first"]):
        raise FormatError(
            f"{file}: contains {len(columns['first']):,} pairs where its first line says {announced:,}; "
            "fetch or copy the file again"
        )
    if (
        notes is not None
        and labels is not None
        and "n_atoms" in columns
        and not {"atoms", "atoms_sha256"} & set(columns)
    ):
        notes.append(f"{file}: has no atom names, so its order is used; lists written by this version contain names")
    stored = columns.pop("n_atoms", np.array(n_atoms))
    if not np.array_equal(stored, n_atoms):
        raise FormatError(f"{file}: was written for {stored} atoms, not for these {n_atoms}; write the list again")
    named, digest = columns.pop("atoms", None), columns.pop("atoms_sha256", None)
    try:
        first, second = (whole_numbers(name, columns.pop(name)) - base for name in ("first", "second"))
        if labels is not None and named is not None:
            first, second = _in_order(first, second, labels, labels_from(named, file), str(file), notes)
    except InputError as error:
        raise FormatError(f"{file}: {error}".replace(f"{file}: {file}: ", f"{file}: ")) from None
    if labels is not None and digest is not None and str(digest) != digest_of(labels):
        raise FormatError(
            f"{file}: was written for atoms with other names or in another order; write the list again, or use .h5 "
            "or .npz, whose atoms are matched by name"
        )
    if notes is not None and lines is not None and announced is None and len(first) and min(first.min(), second.min()):
        notes.append(f"{file}: has no pair of the first atom, whose index is {base} here")
    extra: dict[str, Any] = dict(columns)
    try:
        return PairList(n_atoms, first, second, **extra)
    except (InputError, TypeError, ValueError) as error:
        fault = find_fault(n_atoms, first, second, base=base, labels=labels) if len(first) == len(second) else None
        if fault is None:
            raise FormatError(f"{file}: {error}") from None
    where = f"{file}:{lines[fault.position]}" if lines is not None else f"{file}: pair number {fault.position + 1}"
    raise FormatError(f"{where}: {fault.sentence}")


def _in_order(
    first: NDArray[Any], second: NDArray[Any], labels: Labels, named: Labels, source: str, notes: list[str] | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return pairs of a file with indices of atoms with other labels. named : labels of the atoms in the file"""
    found = correspondence(labels, named, source)
    if notes is not None:
        notes += found.notes
    if found.is_identity or not len(first) or not 0 <= min(first.min(), second.min()):
        return first, second
    if max(first.max(), second.max()) >= len(labels):
        return first, second  # PairList raises the error
    places = np.argsort(found.order)
    return places[first], places[second]


def write_pairs(path: str | PathLike[str], pairs: Pairs, labels: Labels | None = None) -> None:
    """Write pairs in the format of read_pairs, in pieces to save memory.

    path : .h5, .npz, .txt, .dat or .csv; indices start at 0
    labels : names of the atoms, stored in .h5 and .npz; texts store a hash of them

    Raises FormatError for an unknown suffix or a read-only folder.

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> pele_ocl.write_pairs("pairs.txt", pele_ocl.pairs_within(atoms, 8.0))
    >>> len(pele_ocl.read_pairs("pairs.txt", len(atoms)))
    297
    """
    with writing_pairs(path, pairs, labels):
        pass


@contextmanager
def writing_pairs(path: str | PathLike[str], pairs: Pairs, labels: Labels | None = None) -> Iterator[None]:
    """Write as write_pairs does, but keep the file only if the block ends without an error."""
    suffix = require_pairs_suffix(path)
    require_pairs(pairs)
    if labels is not None and len(arguments.instance("labels", labels, Labels, "Labels")) != pairs.n_atoms:
        raise InputError(f"there are {len(labels):,} labels for pairs of {pairs.n_atoms:,} atoms")
    piece = next(pairs.chunks(1), None)
    names = [name for name in _DTYPES if name in ("first", "second") or getattr(piece, name, None) is not None]
    with replacing(path) as temporary:
        _WRITERS[suffix](temporary, pairs, names, labels)
        yield


def require_pairs_suffix(path: str | PathLike[str]) -> str:
    """Return the suffix of a file of pairs, in lower case. Raises FormatError unless it is one of PAIR_SUFFIXES."""
    suffix = arguments.file_path(path).suffix.lower()
    if suffix not in PAIR_SUFFIXES:
        raise FormatError(
            f"{path}: unknown suffix {Path(path).suffix!r}; lists of pairs end in {', '.join(PAIR_SUFFIXES)}"
        )
    return suffix


def _read_hdf5(file: InputFile) -> tuple[Columns, None]:
    with opened_hdf5(file) as opened:
        columns = {name: values_of(opened[name], file) for name in _DTYPES if hasattr(opened.get(name), "dtype")}
        if hasattr(opened.get("atoms"), "dtype"):
            columns["atoms"] = values_of(opened["atoms"], file)
        n_atoms = attribute_of(opened, "n_atoms", file)
        return columns if n_atoms is None else {**columns, "n_atoms": np.asarray(n_atoms)}, None


def _read_npz(file: InputFile) -> tuple[Columns, None]:
    columns: Columns = {}
    try:
        with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
            for name in (*_DTYPES, "n_atoms", "atoms"):
                if f"{name}.npy" in archive.namelist():
                    info = archive.getinfo(f"{name}.npy")
                    with archive.open(info) as entry:
                        require_unpacked(info.file_size, len(file.data), file, ".npz")
                        columns[name] = npy_array(entry, info.file_size, file)
    except FormatError as error:
        raise FormatError(str(error).replace("as .npy", "as .npz", 1)) from None
    except Exception as error:  # damaged archives cause errors of many types
        raise FormatError(f"{file}: cannot be read as .npz ({first_line(error)})") from None
    return columns, None


def _write_hdf5(path: Path, pairs: Pairs, names: list[str], labels: Labels | None) -> None:
    with writing_hdf5(path) as file:
        file.attrs["n_atoms"] = pairs.n_atoms
        file.attrs["note"] = _NOTE
        if labels is not None:
            file.create_dataset("atoms", data=names_to_store(labels))
        datasets = {name: file.create_dataset(name, (len(pairs),), _DTYPES[name]) for name in names}
        start = 0
        for piece in pairs.chunks(_CHUNK):
            for name, dataset in datasets.items():
                dataset[start : start + len(piece)] = getattr(piece, name)
            start += len(piece)


def _write_npz(path: Path, pairs: Pairs, names: list[str], labels: Labels | None) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open("n_atoms.npy", "w") as entry:
            np.lib.format.write_array(entry, np.array(pairs.n_atoms), allow_pickle=False)
        if labels is not None:
            with archive.open("atoms.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, names_to_store(labels), allow_pickle=False)
        for name in names:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                _write_array(entry, name, pairs)


def _write_array(entry: IO[bytes], name: str, pairs: Pairs) -> None:
    dtype = np.dtype(_DTYPES[name])
    header = {"shape": (len(pairs),), "fortran_order": False, "descr": np.lib.format.dtype_to_descr(dtype)}
    np.lib.format.write_array_header_1_0(entry, header)
    for piece in pairs.chunks(_CHUNK):
        entry.write(getattr(piece, name).astype(dtype, copy=False).tobytes())


def _write_text(path: Path, pairs: Pairs, names: list[str], labels: Labels | None) -> None:
    mark = "" if labels is None else f"; names {digest_of(labels)}"
    blank = "," if path.suffix.lower() == ".csv" else " "
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(f"# {len(pairs)} pairs of {pairs.n_atoms} atoms; {_NOTE}{mark}\n")
        file.write(f"{blank.join(names) if blank == ',' else '# ' + blank.join(names)}\n")
        for piece in pairs.chunks(_CHUNK // 10):
            columns = [_texts(getattr(piece, name)) for name in names]
            file.writelines(f"{blank.join(row)}\n" for row in zip(*columns, strict=True))


def _texts(values: NDArray[Any]) -> Iterator[str]:
    """Format numbers with full precision, and flags as 0 and 1."""
    return map(repr, (values.astype(np.int8) if values.dtype == np.bool_ else values).tolist())


_READERS: dict[str, Callable[[InputFile], tuple[Columns, NDArray[np.int64] | None]]] = {
    ".h5": _read_hdf5,
    ".npz": _read_npz,
    ".txt": read_columns,
    ".dat": read_columns,
    ".csv": read_columns,
}
_WRITERS: dict[str, Callable[[Path, Pairs, list[str], Labels | None], None]] = {
    ".h5": _write_hdf5,
    ".npz": _write_npz,
    ".txt": _write_text,
    ".dat": _write_text,
    ".csv": _write_text,
}
PAIR_SUFFIXES = tuple(_READERS)
