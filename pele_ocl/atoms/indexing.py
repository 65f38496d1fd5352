"""Choice of the atoms that `atoms[...]` takes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..common import arguments
from ..common.errors import InputError


def chosen_indices(n: int, which: slice | ArrayLike) -> NDArray[np.intp]:
    """Return indices (k,) of n atoms, from 0, for a slice, a mask or a list of indices.

    Raises InputError for what is none of these, indices of no atom and atoms that are named twice.
    """
    everyone = np.arange(n, dtype=np.intp)
    if isinstance(which, slice):
        ends = [end for end in (which.start, which.stop, which.step) if end is not None]
        if any(not isinstance(end, int | np.integer) for end in ends) or which.step == 0:
            raise InputError(f"{which} is no slice of atoms; whole numbers, and a step other than 0, are needed")
        found: NDArray[np.intp] = everyone[which]
        return found
    chosen = arguments.atoms_chosen("the atoms to take", which)
    is_mask = chosen.dtype.kind == "b"
    if chosen.ndim != 1 or (is_mask and len(chosen) != n):
        raise InputError(f"the atoms to take have shape {chosen.shape}; ({n},) booleans or (k,) indices")
    if is_mask:
        return np.flatnonzero(chosen)
    stray = (chosen < -n) | (chosen >= n)
    if stray.any():
        raise InputError(f"atom {chosen[stray][0]} was asked for; the atoms are 0 to {n - 1}")
    indices = everyone[chosen.astype(np.intp)]
    if len(np.unique(indices)) < len(indices):
        raise InputError("an atom was asked for twice; name each once")
    return indices
