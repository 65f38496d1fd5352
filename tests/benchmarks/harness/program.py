"""A command that is a program of its own, with the border of errors that `pele-ocl` has."""

from __future__ import annotations

from typing import Any

import click

from pele_ocl.cli import errors_as_sentences
from pele_ocl.cli.command import EachOnce


class Program(EachOnce):
    """A command whose errors are one line on stderr with exit code 1; --debug shows the traceback instead."""

    def invoke(self, ctx: click.Context) -> Any:
        with errors_as_sentences(ctx):
            return super().invoke(ctx)
