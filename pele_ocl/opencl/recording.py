"""Recorded buffers and launches of a molecule, for placement with other molecules in device memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol
from weakref import WeakSet

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..common.errors import InputError
from .binding import Array, Binder, Launch
from .building import get_kernel
from .interface import ROW_BLOCK
from .kernel import Argument, Arguments, Kernel


@dataclass(eq=False)
class BufferPiece:
    """Array of a molecule or of each of its structures, stored in a region instead of a separate buffer.

    dtype : of its values
    values : initial values; None if undefined
    are_zero : whether the initial values are 0
    is_shared : whether all structures of the molecule share it, read-only
    store : 0, or 1 for arrays stored separately from the rows
    first : byte offset in its region, once the region is laid out
    """

    size: int
    dtype: np.dtype[Any]
    values: NDArray[Any] | None = None
    are_zero: bool = False
    is_shared: bool = False
    store: int = 0
    first: int = -1

    @property
    def is_read_only(self) -> bool:
        """True if kernels may only read it."""
        return self.values is not None

    @property
    def region(self) -> int:
        """Index of its region: 0 and 1 are the shared and per-structure arrays of store 0, 2 and 3 those of store 1."""
        return 2 * self.store + (not self.is_shared)


@dataclass(frozen=True, eq=False)
class ArgumentRow:
    """Packed arguments of a launch for one structure; arrays are given by offsets in their regions.

    values : bytes
    places : indices of the 8-byte words with array offsets, for shared and per-structure arrays of store 0, then store
        1
    shape : work-items of the launch
    """

    values: NDArray[np.uint8]
    places: tuple[NDArray[np.intp], ...]
    shape: tuple[int, int]


@dataclass(frozen=True, eq=False)
class RecordedLaunch:
    """Launch of a kernel for rows with the arguments of one molecule; shape and group as in BoundLaunch."""

    cost: ClassVar[float] = 0.0  # its run time does not depend on pairs

    kernel: Kernel
    shape: tuple[int, int]
    group: tuple[int, int, int]
    args: tuple[Argument, ...]

    @property
    def key(self) -> Hashable:
        """Key that is equal for launches that can be merged."""
        return self.kernel, self.group

    @property
    def pieces(self) -> list[BufferPiece]:
        """Array arguments in order."""
        return [arg for arg in self.args if isinstance(arg, BufferPiece)]

    def row(self, slot: int) -> ArgumentRow:
        """Return the table row of the launch. slot : bytes; each argument is padded to a multiple of it"""
        n_groups = np.array([whole // own for whole, own in zip(self.shape, self.group, strict=False)], np.int32)
        fields, at = [n_groups.tobytes()], slot
        places: tuple[list[int], ...] = ([], [], [], [])
        for arg in self.args:
            piece = arg if isinstance(arg, BufferPiece) else None
            fields.append(np.asarray(arg).tobytes() if piece is None else np.uint64(piece.first).tobytes())
            if piece is not None:
                places[piece.region].append(at // 8)
            at += -(-len(fields[-1]) // slot) * slot
        padded = b"".join(of.ljust(-(-len(of) // slot) * slot, b"\0") for of in fields)
        numbers = tuple(np.array(of, np.intp) for of in places)
        return ArgumentRow(np.frombuffer(padded, np.uint8), numbers, self.shape)


class Home(Protocol):
    """Device memory that contains regions of molecules."""

    def rewrite(self, recorder: Recorder, is_shared: bool, first: int, data: NDArray[np.uint8]) -> None:
        """Write bytes to the shared region of a molecule, or to those of its structures, starting at byte `first`."""


@dataclass(eq=False)
class Recorder(Binder):
    """Records the arrays and launches of one molecule as regions of a large buffer and rows of argument tables.

    homes : device memory that contains the regions
    is_shared : whether launches process several structures; otherwise kernels are built unchanged
    owns_parameters : whether each structure has a copy of charges, well depths and torsion barriers
    store : as in BufferPiece
    """

    is_shared: bool = True
    owns_parameters: bool = False
    store: int = 0
    pieces: list[BufferPiece] = field(default_factory=list)
    homes: WeakSet[Home] = field(default_factory=WeakSet)
    # By the id of the array, which its piece keeps alive.
    _uploaded: dict[int, BufferPiece] = field(default_factory=dict)

    def upload(self, values: ArrayLike, dtype: DTypeLike | None = None) -> BufferPiece:
        array = np.ascontiguousarray(values, dtype or self.dtype)
        if id(array) not in self._uploaded:  # an array used by several launches is stored once
            self._uploaded[id(array)] = self._piece(
                BufferPiece(max(array.itemsize, array.nbytes), array.dtype, array, is_shared=True)
            )
        return self._uploaded[id(array)]

    def upload_each(self, values: ArrayLike, dtype: DTypeLike | None = None) -> BufferPiece:
        array = np.ascontiguousarray(values, dtype or self.dtype)
        return self._piece(BufferPiece(max(array.itemsize, array.nbytes), array.dtype, array))

    def upload_parameters(self, values: ArrayLike, dtype: DTypeLike | None = None) -> BufferPiece:
        return self.upload_each(values, dtype) if self.owns_parameters else self.upload(values, dtype)

    def cached(self, key: Hashable, make: Callable[[], ArrayLike]) -> BufferPiece:
        return self.upload(make())

    def empty(self, n: int, dtype: DTypeLike | None = None) -> BufferPiece:
        kind = np.dtype(dtype or self.dtype)
        return self._piece(BufferPiece(max(1, n) * kind.itemsize, kind))

    def zeros(self, n: int, dtype: DTypeLike | None = None) -> BufferPiece:
        piece = self.empty(n, dtype)
        piece.are_zero = True
        return piece

    def host_array(self, shape: tuple[int, ...], dtype: DTypeLike | None = None) -> NDArray[Any]:
        return np.zeros(shape, dtype or self.dtype)

    def finish(self) -> None:
        """Do nothing: a recorder has no pending commands."""

    def write(self, piece: BufferPiece, values: NDArray[Any], first: int = 0) -> None:
        """Write an array to a piece in all existing and future regions. first : index of the first value"""
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        begin = first * values.itemsize
        if piece.values is None:
            raise InputError("the buffer is scratch memory of each structure; upload values that will be overwritten")
        if begin + data.nbytes > piece.size or values.dtype != piece.dtype:
            raise InputError(
                f"{values.size:,} values of {values.dtype} from index {first:,} on do not fit a buffer of "
                f"{piece.size // piece.dtype.itemsize:,} of {piece.dtype}"
            )
        region = self.shared if piece.is_shared else self.own
        region.image[piece.first + begin : piece.first + begin + data.nbytes] = data
        for home in list(self.homes):
            home.rewrite(self, piece.is_shared, piece.first + begin, data)

    def kernel(self, file: str, name: str, width: int = 1, **defines: int) -> Kernel:
        return get_kernel(self.device, file, name, self.precision, width, self.portable, self.is_shared, **defines)

    def bind_kernel(
        self, kernel: Kernel, shape: tuple[int, int], group: tuple[int, int], arguments: Arguments, *,
        cost: float = 0.0, divisible: int = 1,
    ) -> RecordedLaunch:  # fmt: skip
        args = kernel.signature.arguments(arguments)
        return RecordedLaunch(kernel, *self._fitted(kernel, shape, group), args)

    @staticmethod
    def piece(array: Array) -> BufferPiece:
        """Return an array as the BufferPiece that it is."""
        assert isinstance(array, BufferPiece)
        return array

    @staticmethod
    def named(arrays: Mapping[str, Array]) -> dict[str, BufferPiece]:
        """Return the arrays that are BufferPieces, by name."""
        return {name: array for name, array in arrays.items() if isinstance(array, BufferPiece)}

    @staticmethod
    def recorded(launches: Iterable[Launch]) -> list[RecordedLaunch]:
        """Return the RecordedLaunches without duplicates, in order."""
        return [launch for launch in dict.fromkeys(launches) if isinstance(launch, RecordedLaunch)]

    @property
    def slot(self) -> int:
        """Bytes of an argument slot: four reals."""
        return 4 * self.dtype.itemsize

    @cached_property
    def shared(self) -> Region:
        """Region of the arrays that all structures of the molecule share."""
        return Region.of([piece for piece in self.pieces if piece.is_shared], self.block)

    @cached_property
    def own(self) -> Region:
        """Region of the arrays of one structure."""
        return Region.of([piece for piece in self.pieces if not piece.is_shared], self.block)

    @property
    def block(self) -> int:
        """Alignment of arrays, bytes; without sharing, large enough for each array to be a sub-buffer."""
        return ROW_BLOCK if self.is_shared else max(ROW_BLOCK, self.device.handle.mem_base_addr_align // 8)

    def _piece(self, piece: BufferPiece) -> BufferPiece:
        region = "shared" if piece.is_shared else "own"
        assert region not in self.__dict__, "an array was created after the layout of its region was fixed"
        piece.store = self.store
        self.pieces.append(piece)
        return piece


@dataclass(frozen=True, eq=False)
class Region:
    """Layout of a region: `image` first, then `n_zeros` bytes of zeros, then uninitialized bytes."""

    image: NDArray[np.uint8]
    n_zeros: int
    size: int

    @classmethod
    def of(cls, pieces: Sequence[BufferPiece], block: int) -> Region:
        """Lay out pieces at multiples of `block` bytes."""
        ranks = [0 if piece.values is not None else 1 if piece.are_zero else 2 for piece in pieces]
        ends, end = [0, 0, 0], 0
        for rank in range(3):
            for piece in (piece for piece, of in zip(pieces, ranks, strict=True) if of == rank):
                piece.first = end
                end += -(-piece.size // block) * block
            ends[rank] = end
        image = np.zeros(ends[0], np.uint8)
        for piece in pieces:
            if piece.values is not None:
                image[piece.first : piece.first + piece.values.nbytes] = piece.values.reshape(-1).view(np.uint8)
        return cls(image, ends[1] - ends[0], ends[2])
