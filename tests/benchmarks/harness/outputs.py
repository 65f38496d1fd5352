"""Output files of timing commands: tables, figures and charts, by suffix."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click

from pele_ocl import __version__
from pele_ocl.cli.bench.options import without_nan
from pele_ocl.cli.options import PATH, Command
from pele_ocl.common.errors import FormatError
from pele_ocl.common.writing import refuse_target, replacing
from pele_ocl.formats import require_png

SUFFIXES = (".md", ".json", ".png")


def output_options(command: Command) -> Command:
    """Add the options `outputs` and `machine`."""
    options: list[Callable[[Command], Command]] = [
        click.option(
            "-o", "--output", "outputs", type=PATH, multiple=True, metavar="FILE",
            help="Write the result: .md (tables), .json (figures), .png (chart); may be given several times.",
        ),
        click.option("--machine", metavar="TEXT", help="The machine in words, for the files."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def check_outputs(outputs: Sequence[Path]) -> None:
    """Raise an error for files that cannot be written, before any measurement."""
    for path in outputs:
        if path.suffix.lower() not in SUFFIXES:
            raise FormatError(f"{path}: unknown suffix {path.suffix!r}; files end in {', '.join(SUFFIXES)}")
        if path.suffix.lower() == ".png":
            require_png(path)
        refuse_target(path)


def command_line() -> str:
    """Return the command line that reproduces the result, without folders of files."""
    words, given = ["python", f"tests/benchmarks/{Path(sys.argv[0]).name}"], iter(sys.argv[1:])
    for word in given:
        if word in ("-o", "--output", "--machine"):
            next(given, None)
        elif not word.startswith(("--output=", "--machine=")):
            words.append(word)
    return shlex.join(words)


def origin() -> str:
    """Return the Markdown text about how a page was created."""
    return f"pele-ocl {__version__}:\n\n    {command_line()}\n"


def write_outputs(
    outputs: Sequence[Path], machine: str | None, page: str, rows: Sequence[Mapping[str, object]],
    draw: Callable[[Path], None],
) -> None:  # fmt: skip
    """Write each file; page : of .md files; rows : of .json files; draw : creates a .png file"""
    for path in outputs:
        if path.suffix.lower() == ".png":
            draw(path)
            continue
        made_by = {"software": f"pele-ocl {__version__}", "command": command_line(), "machine": machine}
        content = {**made_by, "rows": without_nan(rows)}
        text = page if path.suffix.lower() == ".md" else json.dumps(content, indent=1, allow_nan=False) + "\n"
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
