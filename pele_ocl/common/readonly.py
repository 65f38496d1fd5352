"""Arrays that nobody can write to, and objects that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray


def read_only(values: ArrayLike, dtype: DTypeLike) -> NDArray[Any]:
    """A read-only, C-contiguous copy of an array."""
    array = np.array(values, dtype=dtype, order="C")
    array.flags.writeable = False
    return array


def own_array(values: NDArray[Any], given: object) -> NDArray[Any]:
    """Return `values`, which were made of what a caller gave, or a copy where they may be the caller's own memory."""
    return values.copy() if values is given or values.base is not None else values


class ReadOnlyArrays:
    """Base class of objects with read-only arrays: they are read-only after copying and unpickling, too."""

    def __setstate__(self, state: Mapping[str, object]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False  # NumPy's pickles do not keep it
        self.__dict__.update(state)
