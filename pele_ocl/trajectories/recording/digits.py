"""Numbers as the shortest texts that read back as the same ones, thousands at once: what `repr` writes of each.

The digits of x, 10^e <= x < 10^(e+1), are those of X = x 10^(16 - e), which has 17 before its point. Powers of ten up
to 10^22 are exact in float64, and so two of them hold X exactly (Dekker's product). Of 15, 16 and 17 digits the fewest
are taken that are within half a step of float64 from X.

A text is 24 letters, handled together as three whole numbers of 64 bits: a sign, the digits, and a point between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Letters = NDArray[np.uint8]  # (m, width), a text a row; 0 where a text has no letter

_EXPONENTS = range(-4, 16)  # e of numbers that `repr` writes without one
_BOUNDS = np.array([float(f"1e{e}") for e in (*_EXPONENTS, _EXPONENTS.stop)])
_FACTORS = np.array([float(10 ** (16 - e)) for e in _EXPONENTS])
_SPLIT = 2.0**27 + 1
_FOURS = np.array([b"%04d" % k for k in range(10_000)]).view("<u4").astype(np.uint64)  # the letters of four digits
_WIDTH = 24
_ZERO, _MINUS = np.uint64(ord("0")), np.uint64(ord("-"))
_8, _16, _48, _64 = (np.uint64(bits) for bits in (8, 16, 48, 64))


def _words(texts: list[bytes]) -> NDArray[np.uint64]:
    """Texts (m,) as words (3, m)."""
    return np.ascontiguousarray(np.array(texts, f"S{_WIDTH}").view("<u8").reshape(-1, 3).T)


# By exponent: the digits before the point, what stands there besides digits, and by how many bits others move for it.
_WHOLE = _words([b"\0" + b"\xff" * (e + 1) for e in _EXPONENTS])
_ADDED = _words([b"\0" + (b"0" * (e + 1) + b".0" if e >= 0 else b"0." + b"0" * (-e - 1)) for e in _EXPONENTS])
_KEPT = _words([b"\xff" * (18 - zeros) for zeros in range(18)])  # by the number of zeros behind
_MOVED = np.array([8 if e >= 0 else 8 * (1 - e) for e in _EXPONENTS], np.uint64)


def column_texts(columns: Sequence[NDArray[np.generic]]) -> list[Letters]:
    """The texts of columns of numbers (m,), those of real numbers made all at once."""
    real = [column.astype(np.float64) for column in columns if column.dtype.kind == "f"]
    found = iter(number_texts(np.concatenate(real)).reshape(len(real), -1, _WIDTH) if real else ())
    return [next(found) if column.dtype.kind == "f" else number_texts(column) for column in columns]


def number_texts(values: NDArray[np.generic]) -> Letters:
    """The texts of numbers (m,)."""
    if values.dtype.kind != "f":
        return letters(values.astype("S"))
    x = values.astype(np.float64)
    sizes = np.abs(x)
    with np.errstate(invalid="ignore"):
        is_usual = (sizes >= _BOUNDS[0]) & (sizes < _BOUNDS[-1]) & (np.frexp(sizes)[0] != 0.5)  # see _digits
    sizes[~is_usual] = 1.5
    places = np.searchsorted(_BOUNDS, sizes, "right") - 1
    words = _with_points(_letters_of(_digits(sizes, places)), places)
    words[0] |= _MINUS * (x < 0)
    found = letters(words.T)
    others = np.flatnonzero(~is_usual)
    if len(others):
        found[others] = letters(np.array([repr(value).encode() for value in x[others].tolist()], f"S{_WIDTH}"))
    return found


def letters(texts: NDArray[np.generic]) -> Letters:
    """Texts (m,), or words (m, 3), letter by letter."""
    return np.ascontiguousarray(texts).view(np.uint8).reshape(len(texts), -1)


def joined_rows(n: int, parts: Iterable[Letters | bytes]) -> bytes:
    """Texts side by side, n rows of them one below the other; bytes stand in each row."""
    columns = [np.frombuffer(part, np.uint8) if isinstance(part, bytes) else part for part in parts]
    table: Letters = np.concatenate([np.broadcast_to(column, (n, column.shape[-1])) for column in columns], axis=1)
    return table.tobytes().translate(None, b"\0")


def _digits(x: NDArray[np.float64], places: NDArray[np.intp]) -> NDArray[np.int64]:
    """The digits of numbers, 17 with zeros behind where fewer do; places : of their exponents, from the lowest.

    No number may be a power of 2: the step below it is half of the one above.
    """
    factors = _FACTORS[places]
    high = x * factors  # 10^16 <= high < 10^17 is a whole number, as all above 2^53 are
    (a, b), (c, d) = _halves(x), _halves(factors)
    low = ((a * c - high) + a * d + b * c) + b * d
    whole = high.astype(np.int64) + np.floor(low).astype(np.int64)
    rest = low - np.floor(low)
    found: NDArray[np.int64] = whole + _is_up(rest, whole, 1)
    half_step = np.spacing(x) * factors / 2
    for unit in (10, 100):
        quotients = whole // unit
        behind = (whole - unit * quotients) + rest
        is_up = _is_up(behind, quotients, unit)
        is_near = np.abs(behind - unit * is_up) < half_step
        found = np.where(is_near, unit * (quotients + is_up), found)
    return found


def _is_up(behind: NDArray[np.float64], whole: NDArray[np.int64], unit: int) -> NDArray[np.bool_]:
    """Whether whole + behind / unit, 0 <= behind < unit, is rounded upwards; a half to even."""
    is_up: NDArray[np.bool_] = (behind > unit / 2) | ((behind == unit / 2) & (whole & 1 == 1))
    return is_up


def _halves(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two numbers of half as many bits whose sum is x."""
    high = _SPLIT * x - (_SPLIT * x - x)
    return high, x - high


def _letters_of(digits: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Whole numbers of 17 digits as words (3, m): room for a sign, and the digits without zeros behind."""
    left, fours = digits, []
    for _ in range(4):
        above = left // 10_000
        fours.append(_FOURS.take(left - 10_000 * above))
        left = above
    d, c, b, a = fours
    first = (left.astype(np.uint64) + _ZERO) << _8
    found = np.stack([first | a << _16 | b << _48, b >> _16 | c << _16 | d << _48, d >> _16])
    left, ends, zeros = digits, np.arange(len(digits)), np.zeros(len(digits), np.intp)
    while len(ends):
        above = left // 10
        is_zero = left == 10 * above
        left, ends = above[is_zero], ends[is_zero]
        zeros[ends] += 1
    found &= _KEPT.take(zeros, axis=1)
    return found


def _with_points(digits: NDArray[np.uint64], places: NDArray[np.intp]) -> NDArray[np.uint64]:
    """Words of letters with all that stands between digits."""
    whole, moved = _WHOLE.take(places, axis=1), _MOVED.take(places)
    behind = digits & ~whole
    found: NDArray[np.uint64] = digits & whole | behind << moved | _ADDED.take(places, axis=1)
    found[1:] |= behind[:2] >> (_64 - moved)
    return found
