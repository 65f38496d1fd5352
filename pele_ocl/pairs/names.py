"""Names of atoms as files of pairs keep them: as they are, or as a mark of them in texts."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Labels
from ..common.errors import FormatError
from ..common.inputfile import InputFile

_BETWEEN = "\t"  # chain, residue name and number, insertion code, atom name


def names_to_store(labels: Labels) -> NDArray[np.bytes_]:
    """(n,) names of atoms, one text each."""
    columns = (labels.chains, labels.residue_names, labels.residue_numbers, labels.insertion_codes, labels.names)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return np.array([_BETWEEN.join(map(str, row)).encode() for row in rows] or [b""], np.bytes_)[: len(labels)]


def labels_from(stored: NDArray[Any], file: InputFile) -> Labels:
    """Labels of the atoms that a file names. Raises FormatError if they cannot be read."""
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
    """Mark by which the names and the order of atoms are known again."""
    return hashlib.sha256(b"\n".join(names_to_store(labels).tolist())).hexdigest()[:16]
