"""Write the help text of every command to this folder; tests/test_docs.py holds the files against the commands."""

from __future__ import annotations

from pathlib import Path

import click

from pele_ocl.cli import main
from pele_ocl.paths import copy_installed

ROOT = Path(__file__).resolve().parents[2]


def help_texts() -> dict[str, str]:
    """File name to help text, for the command and all below it."""

    def walk(command: click.Command, path: str, parent: click.Context | None) -> dict[str, str]:
        context = command.make_context(
            path.split()[-1], [], parent=parent, resilient_parsing=True, max_content_width=110
        )
        texts = {path.replace(" ", "-") + ".txt": f"$ {path} --help\n\n{command.get_help(context)}\n"}
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                texts |= walk(child, f"{path} {name}", context)
        return texts

    return walk(main, "pele-ocl", None)


if __name__ == "__main__":
    if sentence := copy_installed(ROOT):
        raise SystemExit(sentence)
    for name, text in help_texts().items():
        (Path(__file__).parent / name).write_text(text)
