"""PELE's control file on the command line: it gives the options that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ..common.errors import InputError
from .terminal import note

if TYPE_CHECKING:
    from ..forcefield import ControlFile

OPTION = "--pele-conf"
HELP = frozenset(("-h", "--help", "--help-all"))  # after which nothing is read
_SUFFIX = ".conf"


def with_control_file(command: click.Command, context: click.Context, args: Sequence[str]) -> list[str]:
    """Take a control file out of the arguments, and add the structure that it names if they name none.

    Its other settings become the defaults of the options. Raises FormatError for a file that cannot be read. Raises
    InputError if neither it nor the arguments name one structure.
    """
    left = list(args)
    known = any(OPTION in parameter.opts for parameter in command.params)
    if not known or HELP & set(left) or left.count(OPTION) > 1:
        return left
    given, _, _ = command.make_parser(context).parse_args(list(left))
    structures = [str(path) for path in _several(given.get("path"))]
    files = [path for path in structures if path.endswith(_SUFFIX)]
    if len(files) == 1 and not given.get("pele_conf"):
        structures.remove(files[0])
        left.remove(files[0])
        left += [OPTION, files[0]]
    path = given.get("pele_conf") or next(iter(files), None)
    if path is None:
        return left
    from ..forcefield import read_control

    control = read_control(str(path))
    for sentence in control.notes:
        note(f"Note: {sentence}")
    context.default_map = {**(context.default_map or {}), **_defaults(control)}
    return left if structures else [*left, _structure(control)]


def _several(value: object) -> Sequence[object]:
    """An argument of one value, or of any number of them, as a sequence."""
    return value if isinstance(value, list | tuple) else [value] if isinstance(value, str) else []


def _defaults(control: ControlFile) -> dict[str, object]:
    """Values of options by their names."""
    from ..gb_models import GB_MODELS

    return {
        "forcefield": control.forcefield,
        "pele_data": [str(folder) for folder in control.data],
        "allow_missing_terminals": control.allow_missing_terminals,
        "like": "pele",
        "gb": control.gb,
        "guess_radii": "sgb" in GB_MODELS[control.gb].parameters,  # which needs no rows of OBC tables
        "ionic_strength": control.ionic_strength,
    }


def _structure(control: ControlFile) -> str:
    """Give the structure of a control file that names one."""
    instead = f"IN {OPTION} {control.path}"
    if len(control.structures) != 1:
        names = f"{len(control.structures)} files of one complex" if control.structures else "no structure"
        raise InputError(f"{control.path}: names {names}; give one file that holds it: {instead}")
    (path,) = control.structures
    if not path.exists():
        raise InputError(f"{control.path}: its structure {path} is not there; give one: {instead}")
    return str(path)
