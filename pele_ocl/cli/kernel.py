"""`pele-ocl kernel`: source code of kernels, optionally as a single file of plain OpenCL C."""

from __future__ import annotations

import click

from .command import EachOnce
from .options import debug_option, device_option


@click.command(cls=EachOnce)
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--list", "is_list", is_flag=True, help="List the names, each with what it does.")
@click.option(
    "--plain", is_flag=True,
    help="Print one file for one case: headers in place, macros and conditions resolved, comments kept.",
)  # fmt: skip
@device_option(more=" --plain is formatted for it.")
@debug_option
def kernel(name: str | None, is_list: bool, plain: bool, device: str | None) -> None:
    """Print the kernel NAME of a ladder, such as potmap/gather, or list them all.

    With --plain it is one file that compiles by itself, as it is built for a few atoms in float32. Without, it is the
    file of cl/ with its includes.
    """
    from ..kernels import KERNELS, plain_kernel
    from ..opencl.building import source_of

    if is_list or name is None:
        if name is not None or not is_list:
            raise click.UsageError("give a NAME, or only --list")
        width = max(map(len, KERNELS))
        for each in KERNELS.values():
            click.echo(f"{each.name:{width}}  {each.summary}")
        return
    matching = [each for each in KERNELS if each == name or each.partition("/")[2] == name]
    if len(matching) != 1:
        which = f"it may be {' or '.join(matching)}" if matching else "pele-ocl kernel --list lists the names"
        raise click.UsageError(f"{name!r} names no kernel; {which}")
    text = plain_kernel(matching[0], device) if plain else source_of(KERNELS[matching[0]].file)
    click.echo(text.rstrip("\n"))
