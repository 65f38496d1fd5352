"""PELE control files on the command line, as defaults of options."""

from __future__ import annotations

from collections.abc import Sequence

import click

from .terminal import note

OPTION = "--pele-conf"
HELP = frozenset(("-h", "--help", "--help-all"))  # the control file is not read with these
_SUFFIX = ".conf"


def with_control_file(command: click.Command, context: click.Context, args: Sequence[str]) -> list[str]:
    """Convert a control file among the arguments to an option, and add its structure if no other is given.

    Its other settings become defaults of options. Raises FormatError for a file that cannot be read, and InputError if
    neither the file nor the arguments contain a structure.
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
    from ..doors import control_settings, structure_of
    from ..forcefield import read_control

    control = read_control(str(path))
    for sentence in control.notes:
        note(f"Note: {sentence}")
    settings = control_settings(control)
    settings["pele_data"] = [str(folder) for folder in settings["pele_data"]]
    context.default_map = {**(context.default_map or {}), **settings}
    return left if structures else [*left, str(structure_of(control, f"IN {OPTION} {control.path}"))]


def _several(value: object) -> Sequence[object]:
    """Return the value or values of an argument as a sequence."""
    return value if isinstance(value, list | tuple) else [value] if isinstance(value, str) else []
