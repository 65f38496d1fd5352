"""Force fields: assignment of charges, Lennard-Jones parameters, bonds and OBC radii to structures.

Amber99SB is built in; PELE's templates and OBC tables are read from files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..atoms.names import canonical, residue_names
from ..common.modules import lazy_names

if TYPE_CHECKING:  # the names below, for type checkers and editors
    from .control import ControlFile, read_control
    from .field import ForceField
    from .links import read_links
    from .matching import match_residues
    from .obc import lookup, read_obc
    from .sources import embedded_radii, embedded_templates, is_parameter_file
    from .templates import Template, element_of, is_template, read_template

__all__ = [
    "ControlFile",
    "ForceField",
    "Template",
    "canonical",
    "element_of",
    "embedded_radii",
    "embedded_templates",
    "is_parameter_file",
    "is_template",
    "lookup",
    "match_residues",
    "read_control",
    "read_links",
    "read_obc",
    "read_template",
    "residue_names",
]

if not TYPE_CHECKING:  # names of each module
    __getattr__ = lazy_names(
        __name__,
        {
            "control": "ControlFile read_control",
            "field": "ForceField",
            "links": "read_links",
            "matching": "match_residues",
            "obc": "lookup read_obc",
            "sources": "embedded_radii embedded_templates is_parameter_file",
            "templates": "Template element_of is_template read_template",
        },
    )
