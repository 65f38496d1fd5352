"""AMBER's NetCDF trajectories (convention 1.0), in Unidata's classic format with offsets of 64 bits."""

from __future__ import annotations

import io

import numpy as np

from ...atoms import Floats
from .content import Content
from .layout import Layout

_DIMENSION, _VARIABLE, _ATTRIBUTE = 10, 11, 12
_CHAR, _FLOAT = 2, 5


class NetcdfLayout(Layout):
    """Frames of float32 coordinates in A, one record each; names stand in no such file."""

    has_gaps = True

    def __init__(self, content: Content) -> None:
        self._n_atoms = len(content.atoms)
        self._head = self._made(0)
        self._head = self._made(len(self._head))

    def head(self) -> bytes:
        return self._head

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        values = np.full((self._n_atoms, 3), np.nan) if positions is None else positions
        return values.astype(">f4").tobytes()

    def grown(self, stream: io.FileIO, size: int) -> None:
        stream.seek(4)
        stream.write(_number((size - len(self._head)) // (12 * self._n_atoms)))

    def _made(self, begin: int) -> bytes:
        """The head; begin : bytes before the first frame, which are its own length"""
        dimensions = [("frame", 0), ("spatial", 3), ("atom", self._n_atoms)]
        attributes = {"Conventions": "AMBER", "ConventionVersion": "1.0", "program": "pele-ocl", "programVersion": "1"}
        spatial_bytes = 4
        variables = [
            _variable("spatial", (1,), {}, _CHAR, spatial_bytes, begin - spatial_bytes),
            _variable("coordinates", (0, 2, 1), {"units": "angstrom"}, _FLOAT, 12 * self._n_atoms, begin),
        ]
        return b"".join(
            (
                b"CDF\x02", _number(0),
                _number(_DIMENSION), _number(len(dimensions)), *(_name(name) + _number(n) for name, n in dimensions),
                _attributes(attributes),
                _number(_VARIABLE), _number(len(variables)), *variables, b"xyz\0",
            )
        )  # fmt: skip


def _number(value: int, n_bytes: int = 4) -> bytes:
    return max(0, value).to_bytes(n_bytes, "big")


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _name(text: str) -> bytes:
    return _number(len(text)) + _padded(text.encode())


def _attributes(of: dict[str, str]) -> bytes:
    if not of:
        return bytes(8)
    texts = (_name(name) + _number(_CHAR) + _name(value) for name, value in of.items())
    return _number(_ATTRIBUTE) + _number(len(of)) + b"".join(texts)


def _variable(
    name: str, dimensions: tuple[int, ...], attributes: dict[str, str], kind: int, n_bytes: int, begin: int
) -> bytes:
    indices = b"".join(map(_number, dimensions))
    size = min(-(-n_bytes // 4) * 4, 2**32 - 1)
    return b"".join(
        (
            _name(name), _number(len(dimensions)), indices, _attributes(attributes), _number(kind), _number(size),
            _number(begin, 8),
        )
    )  # fmt: skip
