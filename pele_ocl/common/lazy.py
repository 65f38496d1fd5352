"""Names that a package loads when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a package.

    package : its `__name__`; names : by file of the package, without suffix, the names that it has, "Tiles tiles_of"
    """
    homes = {name: home for home, own in names.items() for name in own.split()}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
