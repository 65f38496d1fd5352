"""Assembly of a Structure from the atoms listed in a file: choice of conformers, residues and segments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Ints, Labels, Strings, Structure
from ..atoms.chemistry import is_polymer, is_water
from ..common.errors import FormatError
from ..common.notes import Note
from ..common.textfiles import quoted

Bools = NDArray[np.bool_]
Model = TypeVar("Model")

ANOTHER_MODEL = "; `model` selects another"  # end of a note, for commands with the option
_NAMED = 4  # maximum number of residues in a note


@dataclass(frozen=True)
class ListedAtoms:
    """All atoms of a model in the order of the file; positions (n, 3) A, all other arrays (n,).

    altlocs : alternate location indicator, "" if there is none
    hetero : True for HETATM
    pieces : counter that increases when a chain ends (TER, END, another label_asym_id)
    copies : atoms with the same name are duplicates only if this number is also equal
    lines : line number in the file, from 1; 0 for formats without lines

    The other fields are those of Labels.
    """

    positions: Floats
    names: Strings
    elements: Strings
    residue_names: Strings
    residue_numbers: Ints
    insertion_codes: Strings
    chains: Strings
    altlocs: Strings
    occupancies: Floats
    hetero: Bools
    pieces: Ints
    copies: Ints
    lines: Ints

    def __getitem__(self, chosen: Any) -> ListedAtoms:
        return replace(self, **{f.name: getattr(self, f.name)[chosen] for f in fields(self)})

    def __len__(self) -> int:
        return len(self.names)


def structure(
    records: ListedAtoms, source: str, notes: tuple[str, ...] = (), *, names_matter: bool = True
) -> Structure:
    """Assemble the Structure of a model, with the notes of the reader and one about alternate locations.

    For a residue with alternate locations, the one with the largest sum of occupancies is kept, together with all atoms
    without an indicator; the first in the file has priority among equals. Locations are chosen per residue, not per
    atom, so that conformers are never mixed.

    A residue is a sequence of atoms with the same chain, number, insertion code and name. If they occur again later in
    the file, they form another residue; the order of atoms is kept.

    names_matter : True if the atoms of a residue must have different names, False if names or positions must differ

    Raises FormatError for duplicate atoms and for names with non-printable characters.
    """
    keep, contested = _one_conformer(records)
    atoms = records[keep]
    labels = labels_of_records(atoms)
    residues = atoms[labels.residue_starts]
    _refuse_control_characters(atoms, source)
    _refuse_duplicates(atoms, residues, labels, source, names_matter)
    return Structure(
        positions=atoms.positions,
        labels=labels,
        segments=_segments(residues, np.bincount(labels.residue_index)),
        hetero=residues.hetero,
        lines=atoms.lines,
        source=source,
        notes=notes + _location_notes(atoms.altlocs, contested[keep], labels, source),
    )


def labels_of_records(atoms: ListedAtoms) -> Labels:
    """Create the Labels of listed atoms. A residue is a sequence with equal chain, number, insertion code and name."""
    return Labels(
        names=atoms.names,
        elements=atoms.elements,
        residue_names=atoms.residue_names,
        residue_numbers=atoms.residue_numbers,
        insertion_codes=atoms.insertion_codes,
        chains=atoms.chains,
        residue_index=np.cumsum(_residue_starts(atoms), dtype=np.int32) - 1,
    )


def of_float32(positions: NDArray[Any], scale: float = 1.0) -> Floats:
    """Restore the decimals of positions (n, 3) that another library stores as float32, in A.

    A PDB file has three decimals and a mol2 file four; in float32, 38.198 becomes 38.19800186. Positions that are not
    rounded decimals, such as those of a DCD file, are not changed.

    scale : conversion factor to A
    """
    found: Floats = scale * np.asarray(positions, np.float64)
    if positions.dtype == np.float32:
        most = 1.5 * scale * np.spacing(np.abs(positions)).astype(np.float64)  # the conversion to nm rounds, too
        for decimals in (3, 4):
            rounded = np.round(found, decimals)
            if (np.abs(rounded - found) <= most).all():
                return rounded
    return found


def model_note(source: str, model: str | int) -> str:
    """Return the note that the first of several models was read by default."""
    return Note(
        f"{source} contains several models; model {model}, the first, was read{ANOTHER_MODEL}", code="first_model"
    )


def shown_models(numbers: Iterable[int]) -> str:
    """List model numbers for messages: the first ten and the last."""
    have = list(numbers)
    return ", ".join(map(str, have[:10])) + (f" ... {have[-1]}" if len(have) > 10 else "")


def first_readable(
    models: Sequence[Model], read: Callable[[Model], Structure], failed: dict[int, str] | None
) -> tuple[Model, Structure]:
    """Find the first model that can be read. Raises the FormatError of the first model if there is none.

    failed : dictionary for the errors of unreadable models; None to raise the first error
    """
    reasons = {} if failed is None else failed
    for place, model in enumerate(models):
        try:
            return model, read(model)
        except FormatError as error:
            reasons[place] = str(error)
            if failed is None:
                raise
    raise FormatError(reasons[0])


def fill_readable(
    conformations: Floats, models: Iterable[Model], read: Callable[[Model], Floats], failed: dict[int, str] | None
) -> None:
    """Fill conformations (m, n, 3) A with the positions of models; failed : errors by index, with NaN; None to raise"""
    for place, model in enumerate(models):
        try:
            conformations[place] = read(model)
        except FormatError as error:
            if failed is None:
                raise
            conformations[place] = np.nan
            failed[place] = str(error)


def _location_notes(marks: Strings, contested: Bools, labels: Labels, source: str) -> tuple[str, ...]:
    """Return a note about the chosen alternate locations, if there are several."""
    chosen: dict[str, dict[str, None]] = defaultdict(dict)
    for i in np.flatnonzero(contested).tolist():
        chosen[str(marks[i])][labels.residue(i)] = None
    if not chosen:
        return ()
    where = "; ".join(f"{mark} in {_some(list(residues))}" for mark, residues in sorted(chosen.items()))
    return (
        Note(
            f"{source}: the alternate locations with the highest occupancy were read: {where}",
            code="alternate_locations",
        ),
    )


def _some(names: list[str]) -> str:
    """List the first names and the number of the others."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _changes(*columns: NDArray[Any]) -> Bools:
    """Return a mask of the rows that differ from the previous row in any column; True for the first row."""
    changed = np.ones(len(columns[0]), np.bool_)
    changed[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return changed


def _residue_starts(atoms: ListedAtoms) -> Bools:
    return _changes(atoms.pieces, atoms.residue_numbers, atoms.chains, atoms.insertion_codes, atoms.residue_names)


def _one_conformer(records: ListedAtoms) -> tuple[Bools, Bools]:
    """Return a mask (n,) of the atoms to keep, and a mask (n,) of the atoms with a choice of alternate locations.

    All atoms without an indicator are kept, and the location with the highest occupancy in each residue.
    """
    marked = np.flatnonzero(records.altlocs != "")
    some = records[marked]
    # The residue name is not compared, because alternate locations may be different side chains.
    residues = list(
        zip(
            some.copies.tolist(),
            some.hetero.tolist(),
            some.chains.tolist(),
            some.residue_numbers.tolist(),
            some.insertion_codes.tolist(),
            strict=True,
        )
    )
    sums: dict[tuple[Any, ...], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for residue, mark, occupancy in zip(residues, some.altlocs.tolist(), some.occupancies.tolist(), strict=True):
        sums[residue][mark] += occupancy
    best = {residue: max(marks, key=lambda mark: round(marks[mark], 6)) for residue, marks in sums.items()}
    keep = np.ones(len(records), np.bool_)
    keep[marked] = [best[residue] == mark for residue, mark in zip(residues, some.altlocs.tolist(), strict=True)]
    contested = np.zeros(len(records), np.bool_)
    contested[marked] = [len(sums[residue]) > 1 for residue in residues]
    return keep, contested


def _segments(residues: ListedAtoms, sizes: NDArray[np.int_]) -> Ints:
    """Return the segment index of each residue."""
    known = {name: (is_polymer(name), is_water(name)) for name in set(residues.residue_names.tolist())}
    polymer, water = np.array([known[name] for name in residues.residue_names.tolist()], np.bool_).T
    ion = (sizes == 1) & (residues.names == residues.residue_names)
    chain = polymer | ~(residues.hetero | water | ion)
    return np.cumsum(_changes(residues.pieces, residues.chains, chain), dtype=np.int32) - 1


def _laps(numbers: Ints) -> Ints:
    """Return how many times the residue numbers have wrapped around at the limit of their columns, (n,)."""
    over = np.isin(numbers[:-1], (9999, 99999)) & np.isin(numbers[1:], (0, 1))
    return np.concatenate([[0], np.cumsum(over)]).astype(np.int32)


def _codes(*columns: NDArray[Any]) -> NDArray[np.int64]:
    """Return an integer for each row, equal for rows that agree in all columns."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        distinct, inverse = np.unique(column, return_inverse=True)
        codes = np.unique(codes * len(distinct) + inverse, return_inverse=True)[1].astype(np.int64)
    return codes


def _refuse_control_characters(atoms: ListedAtoms, source: str) -> None:
    """Raise FormatError for names with control characters, which could affect a terminal."""
    for what in ("names", "residue_names", "chains", "insertion_codes"):
        distinct, first = np.unique(getattr(atoms, what), return_index=True)
        for name, i in zip(distinct.tolist(), first.tolist(), strict=True):
            if not name.isprintable():
                line = f":{atoms.lines[i]}" if atoms.lines[i] else ""
                raise FormatError(
                    f"{source}{line}: the name {quoted(name)} contains characters that are not text; rename it"
                )


def _refuse_duplicates(
    atoms: ListedAtoms, residues: ListedAtoms, labels: Labels, source: str, names_matter: bool
) -> None:
    residue = _codes(
        residues.copies,
        _laps(residues.residue_numbers),
        residues.residue_numbers,
        residues.chains,
        residues.insertion_codes,
        residues.residue_names,
    )
    places = () if names_matter else tuple(atoms.positions.T)
    atom = _codes(residue[labels.residue_index], atoms.names, *places)
    order = np.argsort(atom, kind="stable")
    twice = np.flatnonzero(atom[order[1:]] == atom[order[:-1]])
    if len(twice) == 0:
        return
    pair = twice[np.argmin(order[1:][twice])]
    first, second = order[pair], order[pair + 1]
    advice = "delete one, give copies different chain identifiers, or put models between MODEL and ENDMDL"
    if not atoms.lines[second]:
        raise FormatError(f"{source}: atom {labels.atom(second)} occurs twice; {advice}")
    raise FormatError(
        f"{source}:{atoms.lines[second]}: atom {labels.atom(second)} is already on line {atoms.lines[first]}; {advice}"
    )
