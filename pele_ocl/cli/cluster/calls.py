"""A command with all it was given, as another process can call it again."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from secrets import token_hex
from typing import Any

import click
from click.core import ParameterSource

from ...errors import InputError
from ..report import COMMAND, command_line

_LINE = "pele_ocl.line"  # of click's context: the command line without the structures


@dataclass(frozen=True)
class Call:
    """A call of a command.

    module, name : where the command stands; params : values by name; sources : where each value comes from
    line : as it stood in the shell, without the structures where some of them are called; folder : the working one
    key : of this call alone, as files may have changed before the next
    """

    module: str
    name: str
    params: Mapping[str, Any]
    sources: Mapping[str, ParameterSource | None]
    line: str
    folder: str
    key: str = field(default_factory=lambda: token_hex(16))

    @classmethod
    def now(cls, **instead: object) -> Call:
        """The call that is under way; instead : values that take the place of its own."""
        context = click.get_current_context()
        sources = {name: context.get_parameter_source(name) for name in context.params}
        instead = {name: value for name, value in instead.items() if name in context.params}
        # The structures, of which there may be thousands, are left out where a call is of some of them.
        if _structures(instead) and _LINE not in context.meta:
            context.meta[_LINE] = command_line(without=set(_structures(context.params)))
        line = context.meta.get(_LINE) or command_line()
        function = context.command.callback
        assert function is not None
        params = {**context.params, **instead}
        return cls(function.__module__, function.__name__, params, sources, line, os.getcwd())

    @contextmanager
    def under_way(self) -> Iterator[click.Context]:
        """A block in which click takes this call to be the one that is under way."""
        command: click.Command = getattr(import_module(self.module), self.name)
        above = click.get_current_context(silent=True)
        started = time.perf_counter() if above is None else above.obj
        with click.Context(command, parent=above, info_name=self.name, obj=started) as context:
            context.params = dict(self.params)
            for name, source in self.sources.items():
                if source is not None:
                    context.set_parameter_source(name, source)
            above_command = context.meta.get(COMMAND)  # as click's contexts share their meta
            context.meta[_LINE] = self.line
            context.meta[COMMAND] = f"{self.line} {shlex.join(_structures(self.params))}"
            try:
                yield context
            finally:
                context.meta[COMMAND] = above_command

    def again(self) -> None:
        """Call the command. Raises InputError where its working directory is not there."""
        try:
            os.chdir(self.folder)
        except OSError as error:
            raise InputError(
                f"{self.folder}: not there on a worker ({error.strerror}); workers need the file system of the command"
            ) from None
        with self.under_way() as context:
            assert context.command.callback is not None
            context.invoke(context.command.callback, **self.params)


def _structures(params: Mapping[str, Any]) -> list[str]:
    """The paths of the structures among a command's values."""
    given = params.get("paths", params.get("path"))
    return [str(path) for path in (given if isinstance(given, tuple) else (given,)) if path is not None]
