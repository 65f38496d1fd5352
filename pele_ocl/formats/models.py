"""The records of files in PDB manner, each with the model that it stands in: PDB and PQR."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from ..errors import FormatError

_NUMBER = re.compile("[0-9]{1,9}")


class Record(NamedTuple):
    """A line of a file.

    kind : "ATOM" for ATOM and HETATM; "TER" and "END" as they are
    ordinal, model : index of the model in the file, from 0, and its number
    line_number, line : from 1; with its end
    """

    kind: Literal["ATOM", "TER", "END"]
    ordinal: int
    model: int
    line_number: int
    line: str


def records(stream: Iterable[str], source: object, is_atom: Callable[[str], bool]) -> Iterator[Record]:
    """The records of atoms and of ends in their order.

    Models are numbered by MODEL, and counted by ENDMDL where there is no MODEL; a MODEL without a number counts the
    models with atoms before it. These records may be in lower case.

    stream : lines
    source : the file, for messages
    is_atom : whether a line is of an atom

    Raises FormatError for atoms between ENDMDL and MODEL.
    """
    model, ordinal, filled = 1, 0, False
    explicit = closed = False
    for line_number, line in enumerate(stream, 1):
        if is_atom(line):
            if closed and explicit:
                raise FormatError(f"{source}:{line_number}: an atom between ENDMDL and MODEL; move it into a model")
            if closed:
                model, ordinal, closed = model + 1, ordinal + filled, False
            filled = True
            yield Record("ATOM", ordinal, model, line_number, line)
            continue
        name = line[:6].rstrip().upper()
        if name == "MODEL":
            ordinal, filled = ordinal + filled, False
            word = next(iter(line.split()[1:]), "")
            model = int(word) if _NUMBER.fullmatch(word) else ordinal + 1
            explicit, closed = True, False
        elif name == "ENDMDL":
            closed = True
        elif name.startswith("TER"):
            yield Record("TER", ordinal, model, line_number, line)
        elif name == "END":
            yield Record("END", ordinal, model, line_number, line)


def model_numbers_of(found: Iterable[Record], source: object) -> list[int]:
    """Numbers of the models with atoms; raises FormatError for two models of one number."""
    numbers = dict[int, tuple[int, int]]()
    for record in found:
        if record.kind == "ATOM":
            ordinal, line_number = numbers.setdefault(record.model, (record.ordinal, record.line_number))
            if ordinal != record.ordinal:
                raise FormatError(
                    f"{source}:{record.line_number}: a second model {record.model}; the first begins before line "
                    f"{line_number}: give each model a number of its own"
                )
    return list(numbers)
