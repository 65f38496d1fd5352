"""POINTERS of an AMBER topology: how many of everything there are; and the kinds of files that are not read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...errors import FormatError
from .sections import Sections

# Names of the values in their order; the ones that nothing here needs have a short line.
_ORDER = (
    "NATOM NTYPES NBONH MBONA NTHETH MTHETA NPHIH MPHIA NHPARM NPARM NNB NRES NBONA NTHETA NPHIA NUMBND NUMANG NPTRA "
    "NATYP NPHB IFPERT NBPER NGPER NDPER MBPER MGPER MDPER IFBOX NMXRS IFCAP NUMEXTRA"
).split()
_LEAST = 30  # NUMEXTRA is younger than the rest


class Counts(NamedTuple):
    """Numbers of things; `bonds`, `angles` and `torsions` are pairs: with hydrogen, and without."""

    atoms: int
    residues: int
    types: int
    excluded: int
    bonds: tuple[int, int]
    angles: tuple[int, int]
    torsions: tuple[int, int]
    bond_types: int
    angle_types: int
    torsion_types: int
    hbond_types: int


def read_counts(sections: Sections) -> tuple[Counts, tuple[str, ...]]:
    """The numbers, and notes about the box, the cap and extra points.

    Raises FormatError where a number is impossible, and for files of perturbation, locally enhanced sampling, AMOEBA,
    polarizabilities and 12-6-4 terms.
    """
    values = sections.whole_numbers("POINTERS")
    if len(values) < _LEAST:
        where = sections.at("POINTERS", len(values))
        raise FormatError(f"{where} holds {len(values)} values; {_LEAST} or more are needed")
    pointers = dict(zip(_ORDER, values.tolist(), strict=False))
    for k, (name, value) in enumerate(pointers.items()):
        if value < (name in ("NATOM", "NRES", "NTYPES")) or value >= 2**31:
            raise FormatError(f"{sections.at('POINTERS', k)}: {name} is {value:,}, which no topology has")
    _refuse_kinds(sections, pointers)
    counts = Counts(
        atoms=pointers["NATOM"],
        residues=pointers["NRES"],
        types=pointers["NTYPES"],
        excluded=pointers["NNB"],
        bonds=(pointers["NBONH"], pointers["NBONA"]),
        angles=(pointers["NTHETH"], pointers["NTHETA"]),
        torsions=(pointers["NPHIH"], pointers["NPHIA"]),
        bond_types=pointers["NUMBND"],
        angle_types=pointers["NUMANG"],
        torsion_types=pointers["NPTRA"],
        hbond_types=pointers["NPHB"],
    )
    return counts, tuple(_notes(sections.file, pointers))


def _refuse_kinds(sections: Sections, pointers: dict[str, int]) -> None:
    """Raise FormatError for energies that are not computed."""
    for name, what in (("IFPERT", "perturbation"), ("NPARM", "locally enhanced sampling")):
        if pointers[name]:
            where = sections.at("POINTERS", _ORDER.index(name))
            raise FormatError(f"{where}: {name} is {pointers[name]}: {what}, which is not done; make a plain topology")
    if "AMOEBA_FORCEFIELD" in sections:
        line = sections.section("AMOEBA_FORCEFIELD").line
        raise FormatError(f"{sections.file}:{line}: section AMOEBA_FORCEFIELD: the AMOEBA force field is not done")
    for name in ("IPOL", "LENNARD_JONES_CCOEF", "LENNARD_JONES_DCOEF"):
        if name in sections:
            section = sections.section(name)
            values = sections.whole_numbers(name) if section.kind == "i" else sections.numbers(name)
            if values.any():
                what = "polarizabilities are" if name == "IPOL" else "12-6-4 Lennard-Jones terms are"
                raise FormatError(f"{sections.at(name, int(np.argmax(values != 0)))}: {what} not done")


def _notes(file: str, pointers: dict[str, int]) -> list[str]:
    notes = []
    if pointers["IFBOX"]:
        notes.append(f"{file}: its periodic box is left out: the molecule stands alone, without images")
    if pointers["IFCAP"]:
        notes.append(f"{file}: its cap of water has no force that holds it")
    if extra := pointers.get("NUMEXTRA", 0):
        notes.append(f"{file}: {extra:,} extra points are taken as atoms")
    return notes
