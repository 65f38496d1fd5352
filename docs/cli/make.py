"""Write the help text of every command to this folder, and a page that lists them.

tests/test_docs.py holds the files against the commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from pele_ocl.cli import main
from pele_ocl.cli.command import show_all_options
from pele_ocl.common.installation import copy_installed

ROOT = Path(__file__).resolve().parents[2]


def help_texts() -> dict[str, str]:
    """File name to help text, for the command and all below it."""

    def walk(command: click.Command, path: str, parent: click.Context | None) -> dict[str, str]:
        context = command.make_context(
            path.split()[-1], [], parent=parent, resilient_parsing=True, max_content_width=110
        )
        show_all_options(context)
        text = command.get_help(context)
        option = "--help-all" if "--help-all" in text else "--help"
        texts = {path.replace(" ", "-") + ".txt": f"$ {path} {option}\n\n{text}\n"}
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                texts |= walk(child, f"{path} {name}", context)
        return texts

    return walk(main, "pele-ocl", None)


def context_of(group: click.Group) -> click.Context:
    """Make the context of the commands of a group."""
    return group.make_context("pele-ocl", [], resilient_parsing=True)


def contents() -> str:
    """Write the page that lists the commands with their first sentences."""
    rows = [f"| [{name}]({path}.txt) | {sentence} |" for name, path, sentence in _commands(main, "pele-ocl")]
    head = "# Commands\n\nThe help text of each with all its options; `make docs` writes them."
    return "\n".join([f"{head} [pele-ocl](pele-ocl.txt) lists them.\n", "| command | |", "|---|---|", *rows, ""])


def _commands(group: click.Group, path: str) -> Iterator[tuple[str, str, str]]:
    """Name, file without its suffix, and first sentence of the commands below a group."""
    context = context_of(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        below = f"{path}-{name}"
        yield below.removeprefix("pele-ocl-").replace("-", " "), below, command.get_short_help_str(limit=200)
        if isinstance(command, click.Group):
            yield from _commands(command, below)


if __name__ == "__main__":
    if sentence := copy_installed(ROOT):
        raise SystemExit(sentence)
    for name, text in {**help_texts(), "README.md": contents()}.items():
        (Path(__file__).parent / name).write_text(text)
