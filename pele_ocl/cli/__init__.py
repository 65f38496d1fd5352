"""Command `pele-ocl`: a thin customer of the library, with one place where errors become sentences."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from ..common.errors import INTERRUPTED, KernelBuildError, PeleError, printable, shortened, worded
from ..common.installation import installed_version
from ..common.paths import why_unreadable
from .command import DEBUG, spelling
from .terminal import (
    begin,
    compiling_said_once,
    note,
    notes_on_stderr,
    one_line,
    open_standard_streams,
    process_start,
    warnings_as_notes,
)

# Each command is loaded when it is called; its module and the command have one name.
COMMANDS = {
    "bench": "Time the variants beside each other.",
    "binding": "Compute the binding energy of the complex in IN: its energy less the energies of receptor and ligand.",
    "check": "Check the kernel in KERNEL.cl against the reference, and say what is wrong with it.",
    "convert": "Write the map in IN as OUT, in the format that OUT's suffix says.",
    "devices": "List the OpenCL devices that can be used; 0 is the default.",
    "energy": "Compute the energy of the molecule in IN, term by term, and its full gradient.",
    "explore": "Explore how a ligand binds as PELE's CONTROL file says: perturb, move, minimise, Metropolis.",
    "ions": "Put ions around the molecule in IN.",
    "kernel": "Print the kernel NAME of a ladder, such as potmap/gather, or list them all.",
    "ligand": "Give small molecules parameters, and write them for OpenMM, AMBER's programs and PELE.",
    "mapmath": "Add and subtract maps, point by point: A - B, A + B + C.",
    "merge": "Put the results of all shards together.",
    "minimize": "Relax the structures in IN: move their atoms to a minimum of their energy.",
    "mmpbsa": "Run an mmpbsa.in of MMPBSA.py or gmx_MMPBSA with the options of these programs.",
    "nonbond": "Compute Lennard-Jones, Coulomb and GB energy of the molecule in IN over a pair list, and the gradient.",
    "pb": "Compute the Poisson-Boltzmann energy of solvation and potential of the molecule in IN.",
    "potmap": "Compute the electrostatic potential of the molecule in IN at the points of a grid.",
    "prepare": "Write the structure in IN with all its atoms as OUT, ready for the other commands.",
    "refine": "Relax poses of a ligand, and the receptor near them, and rank them.",
    "relax": "Relax predicted models as AlphaFold does, and report what was wrong before and after.",
    "rescore": "Compute total and binding energies of all poses of a PELE run, beside PELE's own, and their ranks.",
    "sample": "Interpolate values of MAP at POINTS, linearly.",
    "screen": "Refine molecules in a receptor, score each by MM/GBSA, and rank them.",
    "simulate": "Simulate many replicas of the structures in IN at once, in implicit solvent.",
    "solvent": "Compute Born radii and implicit-solvent energy of the molecule in IN.",
    "tune": "Measure which variants and tile sizes are best on a device, and remember them for `auto`.",
    "view": "Show the molecule in IN as a page or a picture: its surface coloured by a potential or by residues.",
}


class Commands(click.Group):
    """Turns what the library raises into one line on stderr and exit code 1; --debug shows the traceback instead."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        if args is None:  # called as a program, not from one
            open_standard_streams()
        begin(process_start() if args is None else time.perf_counter())
        return super().main(args, *more, **extra)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f".{cmd_name}", __name__), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the ones with names like the one that is given."""
        name = args[0]
        if name in COMMANDS or name.startswith("-"):
            return super().resolve_command(ctx, args)
        like = get_close_matches(name, COMMANDS, n=3)
        meant = f" (Did you mean {' or '.join(like)}?)" if like else ""
        raise click.UsageError(f"No such command {name!r}.{meant}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        with errors_as_sentences(ctx):
            return super().invoke(ctx)


@contextmanager
def errors_as_sentences(ctx: click.Context) -> Iterator[None]:
    """Turn what a command raises into one line on stderr and exit code 1, and warnings into notes."""
    try:
        with notes_on_stderr(spelling(ctx)), warnings_as_notes(), compiling_said_once():
            yield
    except click.ClickException as error:
        vars(error)["message"] = shortened(printable(error.message))
        raise
    except (click.Abort, click.exceptions.Exit):
        raise
    except Exception as error:
        if ctx.meta.get(DEBUG) or getattr(error, "errno", None) == errno.EPIPE:  # the reader, `head` say, has gone
            raise
        raise click.ClickException(worded(_sentence(error), spelling(ctx))) from error
    except KeyboardInterrupt:
        with notes_on_stderr(spelling(ctx)):
            note("Interrupted")
        ctx.exit(INTERRUPTED)


def _sentence(error: Exception) -> str:
    """One line for whatever went wrong."""
    if isinstance(error, KernelBuildError):
        return str(error)  # with the compiler's lines
    if isinstance(error, PeleError):
        return one_line(str(error))
    if isinstance(error, OSError):
        return one_line(f"{error.filename or 'output'}: {why_unreadable(error)}")
    if isinstance(error, MemoryError):
        return "this machine has not enough memory for this molecule, or this map; a larger spacing needs less"
    return one_line(f"unexpected {type(error).__name__}: {error}; run again with --debug and report it")


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"pele-ocl, version {installed_version()}")
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version,
    help="Show the version and exit.",
)  # fmt: skip
def main() -> None:
    """Energies, minima, binding energies, potential maps and ions of real molecules on any OpenCL device."""
