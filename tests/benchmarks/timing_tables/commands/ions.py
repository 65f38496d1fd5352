"""`python tests/benchmarks/table.py ions`: the time of placing an ion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pele_ocl.bench.bounds import mark, refuse_wrong
from pele_ocl.bench.systems import SYSTEMS, load
from pele_ocl.cli.bench.options import as_json_line, exponent, milliseconds, times
from pele_ocl.cli.command import EachOnce
from pele_ocl.cli.options import debug_option, device_option, json_option, precisions_option
from pele_ocl.common.variant import PRECISIONS
from timing_tables.options import best_run_option

if TYPE_CHECKING:
    from timing_tables.ions import Timing


@click.command(cls=EachOnce)
@click.option(
    "--system",
    type=click.Choice(list(SYSTEMS)),
    default="ubiquitin",
    show_default=True,
    help="Structure to place ions around.",
)
@click.option("--points", type=click.IntRange(1), help="Points along an edge; by default 10 A around it.")
@click.option(
    "--ions",
    "n_ions",
    type=click.IntRange(2),
    default=100,
    show_default=True,
    help="Number of ions; half of them are NA.",
)
@precisions_option()
@device_option()
@best_run_option(default=3)
@json_option(" a line")
@debug_option
def ions(
    system: str, points: int | None, n_ions: int, precisions: tuple[str, ...], device: str | None, runs: int,
    as_json: bool,
) -> None:  # fmt: skip
    """Time the placement of an ion, compared with one more atom of the molecule's map, points 0.5 A apart.

    Times are kernel times. "exclusion" is the time of excluding points near the molecule, once. The map with the ions
    is computed only on request and is not included. Errors are against the float64 reference: of the molecule's map by
    norm, of potentials at ions relative to the largest. If one is ten times larger than the tests allow, the row says
    "wrong" and the exit code is 1.
    """
    from pele_ocl.opencl.device import get_device
    from timing_tables.ions import grid_for, measure

    chosen = get_device(device)
    atoms = load(system)
    grid = grid_for(atoms, points)
    wanted = [p for p in precisions or PRECISIONS if p == "float32" or chosen.has_float64]
    if not as_json:
        shape = " x ".join(map(str, grid.shape))
        click.echo(f"{system}: {len(atoms):,} atoms, {shape} points, {n_ions // 2 * 2} ions, on {chosen}")
        heads = ("map ms", "atom ms", "exclusion ms", "ions ms", "ion ms")
        click.echo(
            f"{'precision':10s}{''.join(f'{head:>14s}' for head in heads)}{'ion/atom':>10s}{'map':>9s}{'ions':>9s}"
        )
    timings: list[tuple[str, Timing]] = []
    for timing in measure(system, atoms, grid, n_ions // 2, wanted, chosen, runs):
        molecule = timing.map_seconds, timing.atom_seconds, timing.exclusion_seconds
        seconds = *molecule, timing.ions_seconds, timing.ion_seconds
        columns = "".join(f"{milliseconds(value):>14s}" for value in seconds)
        errors = f"{exponent(timing.map_error):>9s}{exponent(timing.ions_error):>9s}{mark(timing)}"
        line = f"{timing.precision:10s}{columns}{times(timing.ratio):>10s}{errors}"
        click.echo(as_json_line(timing) if as_json else line)
        timings.append((f"ions, {timing.precision}, {system}", timing))
    refuse_wrong(timings)
