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


class ReadOnlyArrays:
    """Base class of objects with read-only arrays: they are read-only after copying and unpickling, too."""

    def __setstate__(self, state: Mapping[str, object]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False  # NumPy's pickles do not keep it
        self.__dict__.update(state)
