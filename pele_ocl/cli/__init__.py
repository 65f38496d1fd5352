"""The command `pele-ocl`, a thin layer over the library that also formats its errors."""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ..common.errors import INTERRUPTED, KernelBuildError, PeleError, printable, shortened, worded
from ..common.extras import LIBRARIES, missing
from ..common.installation import installed_version
from ..common.paths import why_unreadable
from .command import DEBUG, debug_option, spelling
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

_FOLDER = Path(__file__).parent
_COMMAND = r'^@click\.(?:command|group)\(.*?^def {}\(.*?"""(.*?)(?:"""|\n\n)'  # first sentence of the help text


def commands() -> dict[str, str]:
    """Return the commands with their summaries. Each is a function in the module of the same name."""
    names = sorted(path.stem for path in _FOLDER.iterdir() if path.suffix == ".py" or path.is_dir())
    return {name: summary for name in names if (summary := _summary_of(name))}


def _summary_of(name: str) -> str:
    """Read the summary of a command from its source file, without importing it; "" for an unknown command."""
    file = _FOLDER / f"{name}.py"
    file = file if file.exists() else _FOLDER / name / "__init__.py"
    if not name.isidentifier() or not file.exists():
        return ""
    found = re.search(_COMMAND.format(name), file.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return "" if found is None else " ".join(found[1].split())


class Commands(click.Group):
    """Group of all commands. Errors are printed as one line to stderr, or with --debug as a traceback."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        if args is None:  # run as a program
            open_standard_streams()
        begin(process_start() if args is None else time.perf_counter())
        return super().main(args, *more, **extra)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if not _summary_of(cmd_name):
            return None
        command: click.Command = getattr(import_module(f".{cmd_name}", __name__), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, or raise UsageError with similar names."""
        name = args[0]
        if name.startswith("-") or _summary_of(name):
            return super().resolve_command(ctx, args)
        like = get_close_matches(name, commands(), n=3)
        meant = f" (Did you mean {' or '.join(like)}?)" if like else ""
        raise click.UsageError(f"No such command {name!r}.{meant}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(commands().items()))

    def invoke(self, ctx: click.Context) -> Any:
        with errors_as_sentences(ctx):
            return super().invoke(ctx)


@contextmanager
def errors_as_sentences(ctx: click.Context) -> Iterator[None]:
    """Convert errors to one line on stderr and exit code 1, and warnings to notes, within the block."""
    try:
        with notes_on_stderr(spelling(ctx)), warnings_as_notes(), compiling_said_once():
            yield
    except click.ClickException as error:
        vars(error)["message"] = shortened(printable(error.message))
        raise
    except (click.Abort, click.exceptions.Exit):
        raise
    except Exception as error:
        if ctx.meta.get(DEBUG) or getattr(error, "errno", None) == errno.EPIPE:  # a closed pipe, as with `head`
            raise
        raise click.ClickException(worded(_sentence(error), spelling(ctx))) from error
    except KeyboardInterrupt:
        with notes_on_stderr(spelling(ctx)):
            note("Interrupted")
        ctx.exit(INTERRUPTED)


def _sentence(error: Exception) -> str:
    """Return a one-line message for an error."""
    if isinstance(error, KernelBuildError):
        return str(error)  # including the compiler output
    if isinstance(error, PeleError):
        return one_line(str(error))
    if isinstance(error, OSError):
        return one_line(f"{error.filename or 'output'}: {why_unreadable(error)}")
    if isinstance(error, MemoryError):
        return "this machine does not have enough memory for this molecule or map; a larger spacing needs less"
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] in LIBRARIES:
        return str(missing(error.name or "", "this"))
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
@debug_option
def main() -> None:
    """Energies, minima, binding energies, potential maps and ions of real molecules on any OpenCL device."""
