"""Objects with read-only attributes, because data computed from them would not be updated."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from .errors import InputError


def _settling(init: Callable[..., None]) -> Callable[..., None]:
    """Wrap __init__ so that attributes are read-only after it returns."""

    @wraps(init)
    def made(self: Any, *args: Any, **keywords: Any) -> None:
        init(self, *args, **keywords)
        if type(self).__init__ is made:
            self.__dict__["_is_settled"] = True

    return made


class Settled:
    """Base class of plans, ensembles and simulations, whose public attributes are read-only after construction.

    Writing raises InputError, except for properties with a setter. Items of columns can also be written.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__init__" in cls.__dict__:
            cls.__init__ = _settling(cls.__init__)  # type: ignore[method-assign]

    def __setattr__(self, name: str, value: object) -> None:
        if name[0] != "_" and "_is_settled" in self.__dict__:
            own = getattr(type(self), name, None)
            if not isinstance(own, property) or own.fset is None:
                kind, there = type(self).__name__, getattr(self, name, None)
                is_column = hasattr(there, "__setitem__") and not isinstance(there, np.ndarray)
                how = f"write its rows, {name}[...]" if is_column else f"create another {kind}"
                raise InputError(f"{kind}.{name} cannot be written, because this would have no effect; {how}")
        object.__setattr__(self, name, value)


def rewrite(settled: Settled, **attributes: object) -> None:
    """Change attributes, for use by the library itself."""
    settled.__dict__.update(attributes)
