"""Libraries that come with an extra, loaded when they are first needed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from ..errors import InputError

# Library -> what brings it.
_BRINGS = {
    "openmm": "'pele-ocl[openmm]'",
    "pdbfixer": "'pele-ocl[openmm]'",
    "MDAnalysis": "MDAnalysis",
    "parmed": "parmed",
}


def extra(name: str, purpose: str) -> ModuleType:
    """The library of this name.

    purpose : what needs it, for the message

    Raises InputError, which names what to install, where it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        library = name.split(".")[0]
        raise InputError(f"{purpose} needs {library}: pip install {_BRINGS[library]}") from None
