"""Objects whose attributes stay as they were made, for what was computed with them would not follow."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

import numpy as np

from .errors import InputError


class _Settling(ABCMeta):
    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        made = super().__call__(*args, **keywords)
        made.__dict__["_is_settled"] = True
        return made


class Settled(metaclass=_Settling):
    """Base of plans, ensembles and simulations: to write a public attribute once it is made raises InputError.

    Properties that can be written take what is written, and columns of rows their items.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name[0] != "_" and "_is_settled" in self.__dict__:
            own = getattr(type(self), name, None)
            if not isinstance(own, property) or own.fset is None:
                kind, there = type(self).__name__, getattr(self, name, None)
                is_column = hasattr(there, "__setitem__") and not isinstance(there, np.ndarray)
                how = f"write its rows, {name}[...]" if is_column else f"make another {kind}"
                raise InputError(f"{kind}.{name} cannot be written, as nothing would follow it; {how}")
        super().__setattr__(name, value)


def rewrite(settled: Settled, **attributes: object) -> None:
    """Write attributes that the library itself changes."""
    settled.__dict__.update(attributes)
