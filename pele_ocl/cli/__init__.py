"""The command `pele-ocl`: a thin customer of the library, with one place where errors become sentences."""

from __future__ import annotations

import errno
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from ..errors import KernelBuildError, PeleError, printable
from .clock import process_start
from .command import DEBUG
from .terminal import note, one_line, open_standard_streams

# Each command is loaded when it is called; its module and the command have one name.
COMMANDS = {
    "bench": "Time the variants beside each other.",
    "convert": "Write the map in IN as OUT, in the format that OUT's suffix says.",
    "devices": "List the OpenCL devices that can be used; 0 is the default.",
    "energy": "Bonded, Lennard-Jones, Coulomb, GB and nonpolar energy of the molecule in IN, and the full gradient.",
    "ions": "Put ions around the molecule in IN.",
    "nonbond": "Lennard-Jones, Coulomb and GB energy of the pairs of a list for the molecule in IN, and the gradient.",
    "potmap": "Electrostatic potential of the molecule in IN at the points of a grid.",
    "prepare": "Write the structure in IN with all its atoms as OUT, ready for the other commands.",
    "sample": "Values of MAP at POINTS, linear between the points of MAP.",
    "solvent": "Born radii and implicit-solvent energy of the molecule in IN.",
    "tune": "Measure which variants and tile sizes are best on a device, and remember them for `auto`.",
}


class Commands(click.Group):
    """Turns what the library raises into one line on stderr and exit code 1; --debug shows the traceback instead."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        if args is None:  # called as a program, not from one
            open_standard_streams()
        extra.setdefault("obj", process_start() if args is None else time.perf_counter())
        return super().main(args, *more, **extra)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f".{cmd_name}", __name__), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _warnings_as_notes(), _compiling_said_once():
                return super().invoke(ctx)
        except click.ClickException as error:
            vars(error)["message"] = printable(error.message)
            raise
        except (click.Abort, click.exceptions.Exit):
            raise
        except Exception as error:
            if ctx.meta.get(DEBUG) or getattr(error, "errno", None) == errno.EPIPE:  # the reader, `head` say, has gone
                raise
            raise click.ClickException(_sentence(error)) from error


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Show warnings of the library's own classes as one line on stderr, and other warnings as Python does."""
    with warnings.catch_warnings():
        shown_by_python = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if category.__module__.startswith("pele_ocl."):
                note(f"Note: {message}")
            else:
                shown_by_python(message, category, *where, **more)

        warnings.showwarning = show
        yield


@contextmanager
def _compiling_said_once() -> Iterator[None]:
    """Within the block the first program that is compiled is told on stderr: it may take many seconds."""
    from ..opencl import notices

    before, told = notices.compiling, set[str]()

    def tell(device: str) -> None:
        if device not in told:
            told.add(device)
            note(f"Compiling kernels for {device}; they are kept for the next time")

    notices.compiling = tell
    try:
        yield
    finally:
        notices.compiling = before


def _sentence(error: Exception) -> str:
    """One line for whatever went wrong."""
    if isinstance(error, KernelBuildError):
        return str(error)  # with the compiler's lines
    if isinstance(error, PeleError):
        return one_line(str(error))
    if isinstance(error, OSError):
        return one_line(f"{error.filename or 'output'}: {error.strerror or error}")
    if isinstance(error, MemoryError):
        return "this machine has not enough memory for this molecule, or this map; a larger spacing needs less"
    return one_line(f"unexpected {type(error).__name__}: {error}; run again with --debug and report it")


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from .. import __version__

        click.echo(f"pele-ocl, version {__version__}")
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version,
    help="Show the version and exit.",
)  # fmt: skip
def main() -> None:
    """Implicit-solvent and nonbonded energy, potential maps and ions of real molecules on any OpenCL device."""
