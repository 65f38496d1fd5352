"""Groups of options, defined as dataclasses whose fields are options and keywords of library functions.

    @dataclass(frozen=True)
    class Run:
        precision: str = option("Working precision.", like=energy, choices=PRECISIONS)
        device: str | None = option("Device by its number.", metavar="D")

    @click.command()
    @options(Run)
    def command(run: Run) -> None:
        pele_ocl.energy(..., **keywords(run))

Each field defines an option, its default, its help and its keyword. The class attribute `heading` is the heading of the
group in help texts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import click

from .command import HEADINGS, INPUT, command_option

_NONE = object()


@dataclass(frozen=True)
class _Option:
    """Settings of an option for click, in addition to the name, type and default of the field."""

    help: str
    flags: tuple[str, ...]
    former: tuple[str, ...]
    settings: dict[str, Any]


def option(
    help: str,
    *flags: str,
    default: Any = _NONE,
    like: Callable[..., Any] | None = None,
    former: Sequence[str] = (),
    show_default: bool | str | None = None,
    **settings: Any,
) -> Any:
    """Define a field of a group.

    help : one or two sentences
    flags : by default the field name with dashes, `--max-iterations`; "-o" adds a short flag, "--a/--no-a" replaces it
    default : by default that of the keyword or field of this name in `like`, a function or a dataclass, or None
    former : deprecated names of the option, which still work and are not listed
    settings : further arguments of command_option, such as metavar, type, multiple, heading, essential
    """
    value: Any = default
    if value is _NONE and like is None:
        value = None
    show = (value not in (None, (), False)) if show_default is None else show_default
    made = _Option(help, flags, tuple(former), {"show_default": show, **settings})
    held: dict[str, Any] = {"option": made}
    if value is _NONE:
        held |= {"like": like, "show": show_default}
        return field(default=None, metadata=held)
    return field(default=value, metadata=held)


def options(*groups: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options of groups to a command, which receives each group under its class name in snake case."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def filled(**given: Any) -> Any:
            for group in groups:
                own = {of.name: given.pop(of.name) for of in fields(group)}
                given[_name_of(group)] = group(**own)
            return command(**given)

        decorated: Callable[..., Any] = filled
        for group in reversed(groups):
            for click_option in reversed(click_options(group)):
                decorated = click_option(decorated)
        return decorated

    return add


def keywords(group: Any) -> dict[str, Any]:
    """Return the fields of a group instance by name, as keywords of a library function."""
    return {of.name: getattr(group, of.name) for of in fields(group)}


def click_options(group: type) -> list[Callable[..., Any]]:
    """Return click options for the fields of a group."""
    assert is_dataclass(group)
    hints = get_type_hints(group)
    return [_click_option(group, of, hints[of.name]) for of in fields(group) if "option" in of.metadata]


def option_of(group: type, name: str, **changed: Any) -> Callable[..., Any]:
    """Return the click option for a single field of a group. changed : settings to replace"""
    hints = get_type_hints(group)
    return next(_click_option(group, of, hints[name], **changed) for of in fields(group) if of.name == name)


def help_of(group: type, name: str) -> str:
    """Return the help text of a field of a group, to be used in another option."""
    made: _Option = next(of.metadata["option"] for of in fields(group) if of.name == name)
    return made.help


def _click_option(group: type, of: Field[Any], hint: Any, **changed: Any) -> Callable[..., Any]:
    made: _Option = of.metadata["option"]
    heading = getattr(group, "heading", HEADINGS[0])
    settings = {"help": made.help, "heading": heading, **made.settings, **changed}
    default = of.default
    if "like" in of.metadata:
        default = default_of(of.metadata["like"], of.name)
        shown = of.metadata["show"]
        settings["show_default"] = default not in (None, (), False) if shown is None else shown
    kind = _plain(hint)
    if kind is bool and not any("/" in flag for flag in made.flags):
        settings |= {"is_flag": True, "default": default or False}
    elif get_origin(kind) is tuple and settings.get("nargs") is None:
        settings |= {"multiple": True, "type": settings.get("type", _type_of(get_args(kind)[0]))}
    else:
        settings |= {"default": default, "type": settings.get("type", _type_of(kind))}
    if choices := settings.pop("choices", None):
        settings["type"] = click.Choice(list(choices))
    long = [flag for flag in made.flags if flag.startswith("--")]
    flags = made.flags if long else (*made.flags, f"--{of.name.replace('_', '-')}")
    return command_option(*flags, of.name, former=made.former, **settings)


def default_of(library: Callable[..., Any], name: str) -> Any:
    """Return the default of a function keyword, or of a dataclass field."""
    if is_dataclass(library):
        found = next(of for of in fields(library) if of.name == name)
        return found.default if found.default_factory is MISSING else found.default_factory()
    return inspect.signature(library).parameters[name].default


def _name_of(group: type) -> str:
    """Return the class name in snake case: `PositionalRestraints` as `positional_restraints`."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in group.__name__).lstrip("_")


def _plain(hint: Any) -> Any:
    """Return a type without None."""
    if get_origin(hint) in (Union, UnionType):
        kinds = [of for of in get_args(hint) if of is not NoneType]
        return kinds[0] if len(kinds) == 1 else str
    return hint


def _type_of(kind: Any) -> Any:
    if get_origin(kind) is not None and get_args(kind):  # Literal
        return click.Choice([str(of) for of in get_args(kind)])
    return INPUT if kind is Path else kind if kind in (int, float, str) else None
