"""Time and memory against the number of atoms: python tests/benchmarks/scaling.py --help."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from harness.outputs import check_outputs, origin, output_options, write_outputs
from harness.program import Program

from pele_ocl.cli.bench.options import as_json_line
from pele_ocl.cli.options import debug_option
from pele_ocl.common.variant import PRECISIONS

if TYPE_CHECKING:
    from harness.scaling import Point

NAMES = ("radii", "tree", "solvent", "energy", "nonbond", "potmap")


@click.command(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--quantity", "names", type=click.Choice(NAMES), multiple=True, help="Default: all.")
@click.option(
    "--most-atoms", type=click.IntRange(1000), default=1_000_000, show_default=True, help="The largest molecule."
)
@click.option(
    "--most-seconds", type=click.FloatRange(min=0, min_open=True), default=20.0, show_default=True,
    help="A curve ends before a molecule that would take longer, preparation included.",
)  # fmt: skip
@click.option("--precision", type=click.Choice(PRECISIONS), default="float32", show_default=True)
@click.option("--device", metavar="D", help="Index of `pele-ocl devices`, or part of a name; also PELE_OCL_DEVICE.")
@click.option("--runs", type=click.IntRange(min=3), default=3, show_default=True, help="The middle ones count.")
@output_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line instead of the tables.")
@debug_option
def scaling(
    names: tuple[str, ...], most_atoms: int, most_seconds: float, precision: str, device: str | None, runs: int,
    outputs: tuple[Path, ...], machine: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Time and device memory for 1,000 to 5,000,000 atoms in a ball as dense as a protein.

    "kernels" is device time; "in all" is wall time including pair lists, sorting and the first transfer. Memory is the
    peak size of all buffers.
    """
    from harness.scaling import SIZES, Point, curve
    from harness.scaling_table import draw, section

    from pele_ocl.opencl import get_device

    check_outputs(outputs)
    chosen = get_device(device)
    title = f"Scaling on {chosen}, {precision}" if machine is None else f"Scaling: {machine}, {chosen}, {precision}"
    points: list[Point] = []
    page = [f"## {title}", "", origin()]
    for name in names or NAMES:
        sizes = [n for n in SIZES if n <= most_atoms]
        found = list(curve(name, sizes, precision, chosen, most_seconds, lambda line: click.echo(line, err=True), runs))
        points += [point for point in found if isinstance(point, Point)]
        page.append(section(name, found))
        if not as_json:
            click.echo(page[-1])
        for point in found if as_json else ():
            click.echo(as_json_line(point))
    write_outputs(
        outputs, machine, "\n".join(page), [asdict(point) for point in points], lambda path: draw(path, points, title)
    )


if __name__ == "__main__":
    scaling()
