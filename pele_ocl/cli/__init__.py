"""The command `pele-ocl`: a thin customer of the library, with one place where errors become sentences."""

from __future__ import annotations

import errno
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from .. import __version__
from ..errors import PeleError
from ..tuning import TuningWarning
from .bench import bench
from .convert import convert
from .devices import devices
from .energy import energy
from .ions import ions
from .nonbond import nonbond
from .options import DEBUG
from .potmap import potmap
from .sample import sample
from .solvent import solvent
from .tune import tune


class Commands(click.Group):
    """Turns what the library raises into one line on stderr and exit code 1; --debug shows the traceback instead."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _warnings_as_notes():
                return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except Exception as error:
            if ctx.meta.get(DEBUG) or getattr(error, "errno", None) == errno.EPIPE:  # the reader, `head` say, has gone
                raise
            raise click.ClickException(_sentence(error)) from error


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """What the library warns of on purpose as one line on stderr; other warnings as Python has them."""
    with warnings.catch_warnings():
        shown_by_python = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, TuningWarning):
                click.echo(f"Note: {message}", err=True)
            else:
                shown_by_python(message, category, *where, **more)

        warnings.showwarning = show
        yield


def _sentence(error: Exception) -> str:
    """One line for whatever went wrong."""
    if isinstance(error, PeleError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'file'}: {error.strerror or error}"
    if isinstance(error, MemoryError):
        return "this machine has not enough memory for this molecule, or this map; a larger spacing needs less"
    return f"unexpected {type(error).__name__}: {error}; run again with --debug and report it"


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="pele-ocl")
def main() -> None:
    """Implicit-solvent and nonbonded energy, potential maps and ions of real molecules on any OpenCL device."""


for command in (solvent, nonbond, energy, potmap, ions, sample, convert, devices, tune, bench):
    main.add_command(command)
