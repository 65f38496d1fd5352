"""Columns of a fixed width, as Fortran writes them: fields that may touch, and that blanks do not separate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats, Strings
from ...errors import FormatError
from ...textfiles import quoted

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

_BLANK, _ZERO, _MINUS, _PLUS, _NEWLINE, _RETURN = np.frombuffer(b" 0-+\n\r", np.uint8)
_IN_NUMBERS = np.isin(np.arange(256), list(b"0123456789+-.eEdD "))
_IN_TEXTS = np.isin(np.arange(256), np.arange(32, 127))
_EXPONENT = np.arange(256, dtype=np.uint8)
_EXPONENT[list(b"dD")] = ord("E")  # Fortran's double precision: 1.0D+00


@dataclass(frozen=True, eq=False)
class Fields:
    """The fields of some lines.

    where : "x.parm7" and the like, for messages; what : the content, "section CHARGE"
    text : the lines, the first of which has the number `first_line`
    per_line, width : fields of a line, and characters of a field
    """

    where: str
    what: str
    text: bytes
    first_line: int
    per_line: int
    width: int

    @cached_property
    def cells(self) -> Bytes:
        """The characters of the fields, (m, width); lines that are short are filled with blanks.

        Raises FormatError for a line with more than its fields.
        """
        widest = self.per_line * self.width
        even, rest = self._even_lines(widest)
        lines = [line.rstrip() for line in rest.splitlines()]
        while lines and not lines[-1]:
            lines.pop()
        if lines and max(map(len, lines)) > widest:
            at = next(k for k, line in enumerate(lines) if len(line) > widest)
            raise FormatError(
                f"{self.where}:{self.first_line + len(even) + at}: {self.what}: the line has {len(lines[at])} "
                f"characters; {self.per_line} fields of {self.width} take {widest}"
            )
        n = max(len(lines) - 1, 0) * self.per_line + (-(-len(lines[-1]) // self.width) if lines else 0)
        filled = np.frombuffer(b"".join([line.ljust(widest) for line in lines]), np.uint8)[: n * self.width]
        return np.concatenate([even.reshape(-1, self.width), filled.reshape(n, self.width)])

    def _even_lines(self, widest: int) -> tuple[Bytes, bytes]:
        """The lines from the first on that are full and end in \\n, (m, widest), and the text behind them."""
        end = widest + 1
        whole = np.frombuffer(self.text, np.uint8)[: len(self.text) // end * end].reshape(-1, end)
        full = (whole[:, -1] == _NEWLINE) & (whole[:, -2] != _BLANK)
        n = len(full) if full.all() else int(np.argmin(full))
        even = whole[:n, :-1]
        if (even == _NEWLINE).any() or (even == _RETURN).any():  # shorter lines, which happen to fall in step
            return even[:0], self.text
        return even, self.text[n * end :]

    def __len__(self) -> int:
        return len(self.cells)

    def at(self, index: int) -> str:
        """Where a field stands, for messages: `x.parm7:41: section CHARGE`."""
        return f"{self.where}:{self.first_line + index // self.per_line}: {self.what}"

    def whole_numbers(self) -> Integers:
        """The fields as whole numbers; raises FormatError for a field that is none, or ends before its last column."""
        cells = self.cells
        columns = np.ascontiguousarray(cells.T)  # a column at a time is five times faster
        values: Integers = np.zeros(len(cells), "i8" if self.width > 9 else "i4")
        n_digits = np.zeros(len(cells), np.int16)
        minus, begun, bad, is_digit = (np.zeros(len(cells), np.bool_) for _ in range(4))
        # Blanks, a sign or none, digits to the end: whatever is no blank has a digit behind it.
        for column in columns:
            digits = column - _ZERO
            is_digit, is_minus = digits < 10, column == _MINUS
            is_sign = is_minus | (column == _PLUS)
            bad |= ~is_digit & (begun | ~(is_sign | (column == _BLANK)))
            begun |= is_digit | is_sign
            minus |= is_minus
            n_digits += is_digit
            values *= 10
            values += np.where(is_digit, digits, 0)
        bad |= ~is_digit
        self._refuse(bad, "a whole number", lambda text: text.lstrip(b"+-").isdigit())
        self._refuse(n_digits > 18, "a number of less than 19 digits", lambda text: False)
        return np.where(minus, -values, values).astype(np.int64)

    def numbers(self) -> Floats:
        """The fields as numbers, in Fortran's forms; raises FormatError as whole_numbers, and for NaN and infinity."""
        cells = self.cells
        self._refuse(~_IN_NUMBERS[cells].all(axis=1) | (cells[:, -1] == _BLANK), "a number", _is_number)
        texts = _as_bytes(_EXPONENT[cells])
        try:
            values = texts.astype(np.float64)
        except ValueError:
            self._refuse(~np.array([_is_number(text) for text in texts.tolist()], np.bool_), "a number", _is_number)
            raise
        self._refuse(~np.isfinite(values), "a finite number", lambda text: False)
        return values

    def texts(self) -> Strings:
        """The fields as texts without blanks around them; raises FormatError for characters other than ASCII's."""
        self._refuse(~_IN_TEXTS[self.cells].all(axis=1), "a text in ASCII", lambda text: False)
        found: Strings = np.char.strip(_as_bytes(self.cells)).astype(f"U{self.width}")
        return found

    def _refuse(self, bad: NDArray[np.bool_] | np.bool_, wanted: str, is_fine: Callable[[bytes], bool]) -> None:
        """Raise for the first bad field. is_fine : whether it would be good, did it but end where its columns end"""
        if not bad.any():
            return
        k = int(np.argmax(bad))
        text = self.cells[k].tobytes()
        place = f"{self.at(k)}: field {k % self.per_line + 1}"
        if set(text.strip()) == {ord("*")}:
            raise FormatError(f"{place} is {quoted(text.decode())}: its number was too large for the columns")
        if not text.strip():
            raise FormatError(f"{place} is blank; {wanted} in {self.width} columns is needed")
        if is_fine(text.strip()):
            raise FormatError(f"{place}, {quoted(text.decode())}, does not end in the last of its {self.width} columns")
        raise FormatError(f"{place}, {quoted(text.decode('latin-1'))}, is not {wanted} in {self.width} columns")


def _as_bytes(cells: Bytes) -> NDArray[np.bytes_]:
    return np.ascontiguousarray(cells).view(f"S{cells.shape[1]}").ravel()


def _is_number(text: bytes) -> bool:
    """Whether a field holds a finite number, in Python's eyes."""
    try:
        return bool(np.isfinite(float(text))) and b"_" not in text
    except ValueError:
        return False
