"""Writer of PDB files (wwPDB format 3.3), also for a structure followed by ions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from os import PathLike
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase, digits

import numpy as np

from ..atoms import Atoms, Floats, Labels
from ..atoms.chemistry import aligned_name, is_polymer
from ..common.errors import FormatError, InputError
from ..common.inputfile import InputFile, read_file
from ..common.textfiles import plain_bytes
from .pdb import is_atom_line, read_pdb
from .registry import structure_format

_CHAINS = ascii_uppercase + digits + ascii_lowercase
_BEHIND_ATOMS = ("ATOM", "HETATM", "ANISOU", "SIGATM", "SIGUIJ", "TER")
# MASTER counts the records, which have changed; END is written last.
_LEFT_OUT = ("MODEL", "ENDMDL", "MASTER", "END", *_BEHIND_ATOMS)
_ALPHABET = digits + ascii_uppercase


@dataclass(frozen=True)
class Ion:
    """A monatomic residue; position (3,) A, charge e."""

    residue: str
    atom: str
    element: str
    charge: int
    position: Floats


def write_pdb_with_ions(
    target: Path, source: str | PathLike[str] | None, atoms: Atoms, ions: Sequence[Ion], model: int | None
) -> None:
    """Write a structure and ions to a PDB file.

    Ions get a new chain, or continue the last one if no letter is unused. If the source is a PDB file with the same
    atoms and positions, the lines of the chosen model and all lines outside of models are kept unchanged; otherwise the
    structure is rewritten, without charges.

    target : path to write; see writing.replacing
    source : file the atoms were read from, preferably an InputFile, which cannot change; None if there is none
    model : number of the model that was read, None for the first

    Raises FormatError for data that a PDB file cannot represent, and InputError for atoms without labels.
    """
    if atoms.labels is None:
        raise InputError("a PDB file needs names of atoms and residues; these atoms have no labels")
    file = None if source is None else read_file(source)
    if file is not None and _is_unchanged(file, atoms, model):
        before, after, serial = _own_lines(file, model)
    else:
        before, after, serial = list(atom_lines(atoms.labels, atoms.positions, str(file or target))), [], len(atoms)
    end = "\r\n" if before[-1].endswith("\r\n") else "\n"
    chain, number = _place(atoms.labels)
    records = [
        _record("HETATM", serial + k, ion.atom, ion.element, ion.residue, chain, number + k - 1, "", ion.position)
        + f"{abs(ion.charge)}{'+' if ion.charge > 0 else '-'}{end}"
        for k, ion in enumerate(ions, 1)
    ]
    with open(target, "w", encoding="latin-1", newline="") as written:
        written.writelines([*before, *records, *after, f"END{end}"])


def _is_unchanged(source: InputFile, atoms: Atoms, model: int | None) -> bool:
    """Return whether a PDB file contains these atoms at these positions."""
    return structure_format(source).has_pdb_records and np.array_equal(
        read_pdb(source, model).positions, atoms.positions
    )


def hybrid36(value: int, width: int) -> str:
    """Format a number in `width` columns, if necessary as hybrid-36 (Grosse-Kunstleve 2007).

    It continues after 99999 with A0000, and after ZZZZZ with a0000. Raises FormatError for numbers that do not fit."""
    if -(10 ** (width - 1)) < value < 10**width:
        return f"{value:{width}d}"
    beyond, block = value - 10**width, 26 * 36 ** (width - 1)
    if not 0 <= beyond < 2 * block:
        raise FormatError(f"the number {value} does not fit into {width} columns of a PDB file")
    rest, letters = beyond % block + 10 * 36 ** (width - 1), ""
    while rest:
        rest, digit = divmod(rest, 36)
        letters = _ALPHABET[digit] + letters
    return letters if beyond < block else letters.lower()


def _own_lines(source: InputFile, model: int | None) -> tuple[list[str], list[str], int]:
    """Split a PDB file into the lines before and after additional atoms, and return the highest serial number."""
    lines = _text_lines(source)
    numbers = read_pdb(source, model).lines
    first, last = int(numbers.min()) - 1, int(numbers.max())
    while last < len(lines) and _name(lines[last]) in _BEHIND_ATOMS:
        last += 1
    start = next((i for i in range(first - 1, -1, -1) if _name(lines[i]) in _LEFT_OUT), None)
    opened = [lines[start]] if start is not None and _name(lines[start]) == "MODEL" else []
    closed = [line for line in lines[last : last + 1] if opened and _name(line) == "ENDMDL"]
    body = [_ended(line) for line in lines[first:last] if _name(line) != "END"]
    head = [_ended(line) for line in lines[:first] if _is_kept(line)]
    tail = [_ended(line) for line in lines[last:] if _is_kept(line)]
    serials = [_serial(line[6:11]) for line in body]
    return head + opened + body, closed + tail, max([len(numbers), *serials])


def _is_kept(line: str) -> bool:
    return _name(line) not in _LEFT_OUT and not is_atom_line(line) and line.strip() != ""


def _name(line: str) -> str:
    return line[:6].strip().upper()


def _ended(line: str) -> str:
    return line if line.endswith(("\n", "\r")) else line + "\n"


def _text_lines(source: InputFile) -> list[str]:
    """Split a file into lines with their original line ends, decoded as Latin-1 to keep all bytes."""
    text = plain_bytes(source).decode("latin-1")
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


def _serial(columns: str) -> int:
    """Parse a serial number, decimal or hybrid-36; 0 for anything else."""
    text = columns.strip()
    if text.isascii() and text.isdecimal():
        return int(text)
    found = re.fullmatch(r"([A-Z][0-9A-Z]{4})|[a-z][0-9a-z]{4}", text)
    if found is None:
        return 0
    return int(text, 36) + 100_000 + (-10 if found[1] else 16) * 36**4


def _place(labels: Labels) -> tuple[str, int]:
    """Return the chain and the first residue number for additional residues."""
    used = set(labels.chains.tolist())
    free = next((letter for letter in _CHAINS if letter not in used), None)
    if free is not None:
        return free, 1
    last = str(labels.chains[-1])
    return last, int(labels.residue_numbers[labels.chains == last].max()) + 1


def atom_lines(
    labels: Labels, positions: Floats, source: str, b_factors: Floats | None = None
) -> Iterator[str]:  # fmt: skip
    """Yield ATOM and HETATM records of all atoms, with TER after the last residue of each polymer chain.

    Chain names of three or four letters, such as CHARMM's segments, are replaced by an unused letter and written to
    columns 73 to 76.

    source : name of the file, for messages; b_factors : (n, 2) occupancies and B-factors, by default 1 and 0

    Raises FormatError for names and positions that a PDB file cannot represent.
    """
    residues, chains = labels.residue_names.tolist(), labels.chains.tolist()
    polymer = [is_polymer(residue) for residue in residues]
    runs = accumulate((chain != before for before, chain in pairwise(chains)), initial=0)
    ends = set({run: i for i, (run, is_in) in enumerate(zip(runs, polymer, strict=True)) if is_in}.values())
    letters = _letters_of_segments(chains)
    further = (labels.names, labels.residue_numbers, labels.insertion_codes, labels.elements, positions)
    known = [(1.0, 0.0)] * len(labels) if b_factors is None else b_factors.tolist()
    columns = zip(residues, chains, *(of.tolist() for of in further), known, strict=True)
    for i, (residue, chain, name, number, code, element, position, own) in enumerate(columns):
        segment, chain = (chain, letters[chain]) if chain in letters else ("", chain)
        if len(name) > 4 or len(chain) > 2 or len(residue) + max(len(chain), 1) > 5:
            raise FormatError(f"{source}: atom {labels.atom(i)} has names too long for a PDB file; shorten them")
        record = "ATOM" if polymer[i] else "HETATM"
        line = _record(record, i + 1, name, element, residue, chain, number, code, position, own)
        yield (f"{line[:72]}{segment:<4}{line[76:]}" if segment else line).rstrip() + "\n"
        if i in ends:
            yield "TER\n"


def _letters_of_segments(chains: list[str]) -> dict[str, str]:
    """Choose an unused letter for each chain name of three or four letters, preferably its last one."""
    letters: dict[str, str] = {}
    names = dict.fromkeys(chains)
    for name in names:
        if len(name) in (3, 4):
            free = [of for of in (name[-1], *_CHAINS) if of in _CHAINS and of not in names.keys() | letters.values()]
            letters |= {name: free[0]} if free else {}
    return letters


def _record(
    record: str, serial: int, name: str, element: str, residue: str, chain: str, number: int, code: str,
    position: Iterable[float], b_factor: Sequence[float] = (1.0, 0.0),
) -> str:  # fmt: skip
    """Return columns 1 to 78 of an atom. b_factor : occupancy and B-factor"""
    x, y, z = position
    if not all(-999.9995 < of < 9999.9995 for of in (x, y, z)):
        raise FormatError(f"{residue}{number}: a position of {max(x, y, z):g} A does not fit into a PDB file")
    names = f"{residue:>3}".ljust(5 - max(len(chain), 1)) + (chain or " ")
    return (
        f"{record:<6}{hybrid36(serial, 5)} {aligned_name(name, element)} {names}{hybrid36(number, 4)}{code or ' '}   "
        f"{x:8.3f}{y:8.3f}{z:8.3f}{b_factor[0]:6.2f}{min(b_factor[1], 999.99):6.2f}".ljust(76)
        + f"{'' if element == 'X' else element.upper():>2}"
    )
