"""`python tests/benchmarks/table.py energy`: energy and full gradient, compared with OpenMM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pele_ocl.bench.bounds import mark, refuse_wrong
from pele_ocl.bench.systems import SYSTEMS, load
from pele_ocl.cli.bench.options import as_json_line, bench_options, exponent, milliseconds, times
from pele_ocl.cli.command import EachOnce
from pele_ocl.common.variant import PRECISIONS, made_for
from pele_ocl.energy import VARIANTS
from timing_tables.options import peers_option

if TYPE_CHECKING:
    from timing_tables.energy import Timing

HEAD = (
    f"{'structure':14s}{'atoms':>7s}  {'precision':10s}{'variant':16s}{'at once':>8s}{'ms':>12s}{'kernels ms':>12s}"
    f"{'speed-up':>10s}{'energy':>9s}{'gradient':>10s}"
)


@click.command(cls=EachOnce)
@bench_options(VARIANTS)
@click.option(
    "--conformations", type=click.IntRange(min=1), default=1, show_default=True,
    help="Also time this many conformations in one call.",
)  # fmt: skip
@peers_option
def energy(
    systems: tuple[str, ...], variants: tuple[str, ...], precisions: tuple[str, ...], device: str | None, runs: int,
    as_json: bool, conformations: int, peers: bool,
) -> None:  # fmt: skip
    """Energy and full gradient without cutoff, with the variants for the device and OpenMM on the same atoms.

    "ms" is the wall time of one evaluation. "kernels ms" is the time with positions and results on the device, or for a
    batch the kernel time per conformation. The fastest and the slowest run are dropped and the others averaged. The
    speed-up is over OpenMM's CPU platform in the same run, which computes in float32. The last columns are errors
    relative to float64 on the CPU, of the energy and of the gradient by norm. Errors ten times larger than the tests
    allow are marked "wrong", and the exit code is 1. Variants for another kind of device are timed if given by
    --variant.
    """
    from pele_ocl.opencl.device import get_device
    from timing_tables.energy import measure
    from timing_tables.installed import BENCH_EXTRA
    from timing_tables.openmm import platforms

    chosen = get_device(device)
    chosen_precisions = [p for p in precisions or PRECISIONS if p == "float32" or chosen.has_float64]
    variants = variants or made_for(VARIANTS, chosen.kind)
    if not as_json:
        why = f"is not installed (pip install {BENCH_EXTRA})" if peers else "was left out"
        alone = "" if peers and "CPU" in platforms() else f"OpenMM's CPU platform {why}: no speed-up against it\n"
        click.echo(f"Energy and full gradient on {chosen}\n{alone}\n{HEAD}")
    rows: list[tuple[str, Timing]] = []
    for name in systems or SYSTEMS:
        atoms = load(name)
        for precision in chosen_precisions:
            for timing in measure(name, atoms, precision, chosen, variants, conformations, runs, peers):
                click.echo(as_json_line(timing) if as_json else _line(timing))
                rows.append((f"{timing.code}, {precision}, {name}", timing))
    refuse_wrong(rows)


def _line(timing: Timing) -> str:
    kernel = "" if timing.kernel_seconds is None else milliseconds(timing.kernel_seconds)
    return (
        f"{timing.system:14s}{timing.n_atoms:7,d}  {timing.precision:10s}{timing.code:16s}{timing.conformations:8,d}"
        f"{milliseconds(timing.seconds):>12s}{kernel:>12s}{times(timing.speedup):>10s}"
        f"{exponent(timing.energy_error):>9s}{exponent(timing.gradient_error):>10s}{mark(timing)}"
    )
