"""MDTraj, which the extra `trajectories` brings."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from ..errors import InputError


def mdtraj_module(name: str = "mdtraj") -> ModuleType:
    """MDTraj, or one of its modules; raises InputError, with the extra's name, where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        raise InputError(
            "MDTraj, which reads .xtc and .trr files, is not installed: pip install 'pele-ocl[trajectories]'"
        ) from None
