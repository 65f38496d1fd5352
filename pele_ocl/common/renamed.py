"""Former names of public functions: they warn, and call the present ones for one more release.

The package registers where its public names are found, so that a lower room imports no higher one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

_public: list[Callable[[str], Any]] = []


def find_public_names_by(find: Callable[[str], Any]) -> None:
    """Register the function that returns the object of a public name."""
    _public[:] = [find]


def present(former: str, name: str) -> Any:
    """Warn the caller of a former name, and return the object of the public one.

    former : the name as it was called; name : without "pele_ocl."
    """
    warnings.warn(
        f"{former} is now pele_ocl.{name}; the former name ends with the next release", DeprecationWarning, stacklevel=3
    )
    (find,) = _public
    return find(name)
