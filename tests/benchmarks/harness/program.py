"""Command for separate programs, with the error handling of `pele-ocl`."""

from __future__ import annotations

from typing import Any

import click

from pele_ocl.cli import errors_as_sentences
from pele_ocl.cli.command import EachOnce


class Program(EachOnce):
    """A command that prints errors as one line on stderr with exit code 1; --debug shows the traceback instead."""

    def invoke(self, ctx: click.Context) -> Any:
        with errors_as_sentences(ctx):
            return super().invoke(ctx)
