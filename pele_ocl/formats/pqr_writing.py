"""PQR files out of atoms: positions, charges and radii, for APBS and programs that read its files."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike

from ..atoms import Atoms, require_atoms
from ..common.arguments import file_path
from ..common.errors import FormatError, ParameterError
from ..common.writing import replacing


def write_pqr(path: str | PathLike[str], atoms: Atoms) -> None:
    """Write a PQR file: charges, and gb_radii as radii; fields have blanks between them, whatever their width.

    Raises ParameterError for atoms without radii. Raises FormatError for atoms without names, for names with blanks,
    and for a file that cannot be written.
    """
    require_atoms(atoms)
    target = file_path(path)
    if atoms.gb_radii is None:
        raise ParameterError(f"{target}: the atoms have no radii, which a PQR file needs; choose a set of radii")
    if atoms.labels is None:
        raise FormatError(f"{target}: the atoms have no names, which a PQR file needs")
    lines = list(_lines(target, atoms))
    with replacing(target) as temporary:
        temporary.write_text("".join(lines), encoding="utf-8")


def _lines(path: PathLike[str], atoms: Atoms) -> Iterator[str]:
    labels, radii = atoms.labels, atoms.gb_radii
    assert labels is not None
    assert radii is not None
    columns = zip(
        labels.names.tolist(), labels.residue_names.tolist(), labels.chains.tolist(), labels.residue_numbers.tolist(),
        labels.insertion_codes.tolist(), atoms.positions.tolist(), atoms.charges.tolist(), radii.tolist(),
        strict=True,
    )  # fmt: skip
    for serial, (name, residue, chain, number, code, (x, y, z), charge, radius) in enumerate(columns, 1):
        if not name or not residue or any(len(word.split()) > 1 for word in (name, residue, chain)):
            raise FormatError(f"{path}: {atoms.describe(serial - 1)} has a name that is empty or has blanks in it")
        where = f"{chain} {number}{code}" if chain else f"{number}{code}"
        yield (
            f"ATOM  {serial:>5} {name:<4} {residue:<4} {where:>6} {x:10.4f} {y:10.4f} {z:10.4f} {charge:10.6f} "
            f"{radius:8.4f}\n"
        )
