"""Force fields: charges, Lennard-Jones parameters, bonds and OBC radii for the atoms of a structure.

Amber99SB is built in; PELE's templates and OBC tables are read from files.
"""

from __future__ import annotations

from .control import ControlFile, read_control
from .field import ForceField
from .obc import read_obc
from .sources import is_parameter_file
from .template import Template
from .templates import read_template

__all__ = [
    "ControlFile",
    "ForceField",
    "Template",
    "is_parameter_file",
    "read_control",
    "read_obc",
    "read_template",
]
