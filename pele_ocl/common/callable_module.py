"""Packages that are called as their function of the same name: `pele_ocl.energy(atoms)` beside `pele_ocl.energy.plan`.

Importing a sub-package makes it an attribute of its package, in place of a function with its name. So the sub-package
itself takes the call.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class CallableModule(ModuleType):
    """A module with a function of its own name, which a call of the module calls."""

    @property
    def _function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = vars(self)[self.__name__.rpartition(".")[2]]
        return function

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._function)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._function(*arguments, **options)


def make_callable(name: str) -> None:
    """Let a loaded module, given by its full name, be called as its function and described by its text."""
    module = sys.modules[name]
    module.__class__ = CallableModule
    module.__doc__ = vars(module)[name.rpartition(".")[2]].__doc__  # with which help(module) opens
