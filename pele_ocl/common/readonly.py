"""Read-only arrays, and objects that contain them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray


def read_only(values: ArrayLike, dtype: DTypeLike) -> NDArray[Any]:
    """Return a read-only, C-contiguous copy of an array."""
    array = np.array(values, dtype=dtype, order="C")
    array.flags.writeable = False
    return array


def own_array(values: NDArray[Any], given: object) -> NDArray[Any]:
    """Return `values`, converted from `given`, or a copy if they may share memory with it."""
    return values.copy() if values is given or values.base is not None else values


class ReadOnlyArrays:
    """Base class of objects with read-only arrays, which remain read-only after copying and unpickling."""

    def __setstate__(self, state: Mapping[str, object]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False  # not preserved by pickles of NumPy
        self.__dict__.update(state)
