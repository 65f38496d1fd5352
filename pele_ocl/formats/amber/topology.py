"""Reader of AMBER topologies (prmtop, parm7, top)."""

from __future__ import annotations

import re
from dataclasses import replace
from os import PathLike

import gemmi
import numpy as np

from ...atoms import Atoms, Floats, Labels, Strings, Topology
from ...atoms.chemistry import element
from ...atoms.combining import pairs_note, pairs_of_types
from ...common.errors import FormatError, InputError
from ...common.inputfile import InputFile, read_file
from ...common.notes import Note
from .sections import SectionCounts, Sections, read_counts, read_sections
from .sites import is_extra_point, read_sites
from .terms import combining_rule, read_bonded, read_pair_types, read_types, read_undone

_HEAVIEST = 118
_HEAVY_HYDROGEN = 1.5  # u
_SAME_MASS = 0.1  # u; tolerance of masses, so that repartitioned hydrogens do not match another element


def read_labels(sections: Sections, counts: SectionCounts) -> Labels:
    """Read the labels.

    Residue numbers, chains and insertion codes are optional; residues are numbered from 1 by default. Raises
    FormatError, with section and line, if residues are not consecutive.
    """
    starts = sections.whole_numbers("RESIDUE_POINTER", counts.residues)
    wrong = np.diff(starts, prepend=0) < 1
    wrong[0] = starts[0] != 1
    wrong |= starts > counts.atoms
    if wrong.any():
        k = int(np.argmax(wrong))
        raise FormatError(
            f"{sections.at('RESIDUE_POINTER', k)}: residue {k + 1} begins with atom {starts[k]}; the first begins with "
            f"1, and each after the one before, up to {counts.atoms:,}"
        )
    index = np.repeat(np.arange(counts.residues, dtype=np.int32), np.diff(starts, append=counts.atoms + 1))
    names = sections.texts("ATOM_NAME", counts.atoms)
    residue_names = sections.texts("RESIDUE_LABEL", counts.residues)
    numbers = np.arange(1, counts.residues + 1, dtype=np.int32)
    if "RESIDUE_NUMBER" in sections:
        given = sections.whole_numbers("RESIDUE_NUMBER", counts.residues)
        if np.abs(given).max() >= 2**31:
            k = int(np.abs(given).argmax())
            raise FormatError(f"{sections.at('RESIDUE_NUMBER', k)}: residue number {given[k]:,} is too large")
        numbers = given.astype(np.int32)
    return Labels(
        names=names,
        elements=_elements(sections, counts, names, residue_names[index]),
        residue_names=residue_names[index],
        residue_numbers=numbers[index],
        insertion_codes=_residue_texts(sections, counts, "RESIDUE_ICODE")[index],
        chains=_residue_texts(sections, counts, "RESIDUE_CHAINID")[index],
        residue_index=index,
    )


def _residue_texts(sections: Sections, counts: SectionCounts, name: str) -> Strings:
    """Read a text for each residue; "" if the section is missing."""
    found = sections.optional_texts(name, counts.residues)
    return np.full(counts.residues, "") if found is None else found


def _elements(sections: Sections, counts: SectionCounts, names: Strings, residue_names: Strings) -> Strings:
    """Return element symbols by ATOMIC_NUMBER; in older files by name in standard residues, otherwise by mass."""
    if "ATOMIC_NUMBER" in sections:
        numbers = sections.whole_numbers("ATOMIC_NUMBER", counts.atoms)
        symbols = np.array(["X", *(gemmi.Element(k).name for k in range(1, _HEAVIEST + 1))])
        found: Strings = symbols[np.where((numbers >= 1) & (numbers <= _HEAVIEST), numbers, 0)]
        return found
    masses = sections.numbers("MASS", counts.atoms).tolist()
    by_mass = {mass: _by_mass(mass) for mass in set(masses)}
    rows = [*zip(names.tolist(), residue_names.tolist(), (by_mass[mass] for mass in masses), strict=True)]
    by_row = {row: element(*row) for row in set(rows)}
    return np.array([by_row[row] for row in rows])


def _by_mass(mass: float) -> str:
    """Return the element with a mass (u); "" if there is none."""
    symbols = [gemmi.Element(k) for k in range(1, _HEAVIEST + 1)]
    nearest = min(symbols, key=lambda symbol: abs(symbol.weight - mass))
    return str(nearest.name) if abs(nearest.weight - mass) < _SAME_MASS else ""


# Unit of charges in AMBER topologies, in which Coulomb's constant is 1: sqrt(kcal A / mol).
CHARGE_UNIT = 18.2223
_SET = re.compile(r".*\((\w+)\)\s*", re.DOTALL)  # "H(N)-modified Bondi radii (mbondi2)"


_IFBOX = 27  # index in POINTERS
_OCTAHEDRON = 109.4712206344907  # degrees


def read_prmtop(path: str | PathLike[str]) -> Topology:
    """Read a topology file with %FLAG sections, from AMBER 7 or later, plain or gzip.

    All energy terms are read: bonds, angles, torsions, impropers, 1-4 pairs with their scale factors, exclusions, CMAP,
    pairs with specific Lennard-Jones parameters (NBFIX), and in CHARMM topologies Urey-Bradley terms, harmonic
    impropers and Lennard-Jones parameters of 1-4 pairs. GB radii and scale factors come from the sections RADII and
    SCREEN, if present. Sections may be in any order.

    Raises FormatError, with section and line, for damaged or inconsistent files, and for unsupported energy terms:
    10-12 terms, polarizabilities, AMOEBA, perturbation. Pairs with 12-6-4 terms are recorded in Atoms.undone_pairs.
    """
    file = read_file(path)
    sections = read_sections(file)
    counts, notes = read_counts(sections)
    try:
        return Topology(_atoms(sections, counts, notes), str(file))
    except InputError as error:
        raise FormatError(f"{file}: {error}") from None


def read_names(path: str | PathLike[str]) -> Atoms:
    """Read only the labels of a topology. The atoms are at the origin, without charges or other parameters.

    This suffices to select atoms in trajectory frames. Raises FormatError if the sections cannot be read.
    """
    sections = read_sections(read_file(path))
    counts, _ = read_counts(sections)
    n = counts.atoms
    return Atoms(
        np.zeros((n, 3)), np.zeros(n), labels=read_labels(sections, counts), cell_angles=_cell_angles(sections)
    )


def _atoms(sections: Sections, counts: SectionCounts, notes: tuple[str, ...]) -> Atoms:
    """Create the atoms, with all positions at the origin."""
    charges = sections.numbers("CHARGE", counts.atoms) / CHARGE_UNIT
    types = read_types(sections, counts)
    pairs = read_pair_types(sections, counts, types)
    has_own = "LENNARD_JONES_14_ACOEF" in sections
    bonded, more = read_bonded(
        sections, counts, charges, read_pair_types(sections, counts, types, "14_") if has_own else pairs
    )
    combining, astray = combining_rule(pairs)
    left_out = np.concatenate([bonded.excluded, bonded.one_four.atoms])
    bonded = replace(bonded, lj_pairs=pairs_of_types(types, astray, pairs.sigma, pairs.epsilon, left_out))
    radii, scales, radii_set = _radii(sections, counts)
    labels, is_site = read_labels(sections, counts), is_extra_point(sections, counts)
    if is_site.any():
        more = (
            *more,
            f"{sections.file}: {is_site.sum():,} extra points are virtual sites; energies use the given positions; "
            "functions that move atoms recompute them",
        )
    return Atoms(
        positions=np.zeros((counts.atoms, 3)),
        charges=charges,
        lj_sigma=pairs.sigma.diagonal()[types],
        lj_epsilon=pairs.epsilon.diagonal()[types],
        gb_radii=radii,
        gb_scales=scales,
        labels=labels,
        bonds=bonded.bonds.atoms,
        combining=combining,
        notes=(*notes, *more, *pairs_note(bonded.lj_pairs), *_mass_notes(sections, counts, labels.elements)),
        bonded=bonded,
        undone_pairs=read_undone(sections, counts, types),
        virtual_sites=read_sites(is_site, labels, bonded.bonds),
        types=sections.optional_texts("AMBER_ATOM_TYPE", counts.atoms),
        gb_radii_set=radii_set,
        cell_angles=_cell_angles(sections),
        type_family="" if "FORCE_FIELD_TYPE" in sections else "amber",  # the section exists only in CHARMM topologies
    )


def _mass_notes(sections: Sections, counts: SectionCounts, elements: Strings) -> tuple[str, ...]:
    """Return a note if hydrogen masses were repartitioned, because Atoms.masses are those of the elements."""
    if "MASS" not in sections:
        return ()
    heaviest = float(sections.numbers("MASS", counts.atoms)[elements == "H"].max(initial=0.0))
    if heaviest < _HEAVY_HYDROGEN:
        return ()
    return (
        Note(
            f"{sections.file}: its hydrogens have masses of up to {heaviest:.4g} Da; masses of the elements are used; "
            "for heavy hydrogens use `hydrogen_mass`",
            code="masses",
        ),
    )


def _cell_angles(sections: Sections) -> tuple[float, float, float] | None:
    """Return the angles of the box: 90 degrees, those of a truncated octahedron, or NaN for other boxes.

    The file contains only the angle beta.
    """
    if not sections.whole_numbers("POINTERS")[_IFBOX] or "BOX_DIMENSIONS" not in sections:
        return None
    beta = float(sections.numbers("BOX_DIMENSIONS")[0])
    known = next((angle for angle in (90.0, _OCTAHEDRON) if abs(beta - angle) < 0.01), np.nan)
    return known, known, known


def _radii(sections: Sections, counts: SectionCounts) -> tuple[Floats | None, Floats | None, str]:
    """Read RADII, SCREEN and the name of the set.

    Radii are None if they are missing or 0, as in files for vacuum. The name is the word in parentheses in RADIUS_SET,
    such as bondi, mbondi, mbondi2 or mbondi3; otherwise "file".
    """
    radii, scales = (sections.numbers(name, counts.atoms) if name in sections else None for name in ("RADII", "SCREEN"))
    if radii is None or not radii.any():
        return None, scales, ""
    text = " ".join(sections.texts("RADIUS_SET").tolist()) if "RADIUS_SET" in sections else ""
    found = _SET.fullmatch(text)
    return radii, scales, found[1] if found else "file"


def refuse_reading_alone(file: InputFile, model: int | None) -> Atoms:
    """Raise FormatError, because a topology has no positions."""
    raise FormatError(f"{file}: a topology has no coordinates; give a coordinate file as `coordinates`")


def refuse_models(file: InputFile) -> list[int]:
    """Raise FormatError, because a topology has no models."""
    raise FormatError(f"{file}: a topology has no models; those of its coordinates are used")
