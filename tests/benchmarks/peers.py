"""Comparison of pele-ocl with all installed peers: python tests/benchmarks/peers.py --help."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from harness.outputs import check_outputs, origin, output_options, write_outputs
from harness.peers import MAP_PEERS, MESH_PEERS
from harness.program import Program
from timing_tables.openmm import PLATFORMS

from pele_ocl.atoms import Atoms
from pele_ocl.bench.systems import SYSTEMS, load
from pele_ocl.cli.bench.options import as_json_line
from pele_ocl.cli.options import PATH, debug_option
from pele_ocl.common.errors import PeleError
from pele_ocl.common.variant import PRECISIONS
from pele_ocl.reading import read

if TYPE_CHECKING:
    from harness.comparison import Row, Work

    from pele_ocl.opencl import Device

WORKS = ("potmap", "mesh", "energy", "nonbond", "solvent", "minimize")
PEERS = (*MAP_PEERS, *MESH_PEERS, *(f"OpenMM {platform}" for platform in PLATFORMS))
DEFAULT_SYSTEMS = ("ubiquitin", "src3")


@click.command(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--work", "works", type=click.Choice(WORKS), multiple=True, help="What to compute; default: all.")
@click.option(
    "--system", "systems", type=click.Choice(list(SYSTEMS)), multiple=True,
    help=f"Included structure of energies; default: {' and '.join(DEFAULT_SYSTEMS)}.",
)  # fmt: skip
@click.option("--structure", "paths", type=PATH, multiple=True, metavar="IN", help="A structure of your own for them.")
@click.option("--points", type=click.IntRange(1), default=128, show_default=True, help="Along an edge of the maps.")
@click.option("--atoms", "n_atoms", type=click.IntRange(1), default=2048, show_default=True, help="Of the maps.")
@click.option("--cutoff", type=float, default=12.0, show_default=True, help="Of nonbond, Angstrom.")
@click.option("--precision", "precisions", type=click.Choice(PRECISIONS), multiple=True, help="Default: float32.")
@click.option(
    "--device", "choices", metavar="D", multiple=True,
    help="Index of `pele-ocl devices`, or part of a name; also PELE_OCL_DEVICE. May be given several times.",
)  # fmt: skip
@click.option("--peer", "peers", type=click.Choice(PEERS), multiple=True, help="Peer to time; default: all.")
@click.option("--runs", type=click.IntRange(min=3), default=5, show_default=True, help="The middle ones count.")
@click.option(
    "--most-seconds", type=click.FloatRange(min=0, min_open=True), default=120.0, show_default=True,
    help="A peer of the map is given up after so long, its compilation included.",
)  # fmt: skip
@output_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line instead of the tables.")
@debug_option
def peers(
    works: tuple[str, ...], systems: tuple[str, ...], paths: tuple[Path, ...], points: int, n_atoms: int,
    cutoff: float, precisions: tuple[str, ...], choices: tuple[str, ...], peers: tuple[str, ...], runs: int,
    most_seconds: float, outputs: tuple[Path, ...], machine: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Time pele-ocl and every installed peer on the same atoms, and check that the results agree.

    Works are a potential map of random charges (numba, torch eager and compiled, JAX, a CUDA kernel through CuPy,
    KeOps), the map of a ball of atoms to 1e-4 by a mesh (FMM3D), and for structures the complete energy with its
    gradient, Lennard-Jones and Coulomb within a cutoff, and Born radii with the GB energy (OpenMM's platforms); and
    minimization of included structures from a noisy start to 10 kJ/mol/nm (OpenMM's platforms). Peers use a GPU if one
    of the devices is a GPU.

    Every code runs once before it is timed, so times do not include compilation. "ms" is the time with all data in
    place: device time for kernels of pele-ocl, one of many consecutive evaluations for its energy, one step of
    molecular dynamics for OpenMM, and for others the wall time until the device has finished. "ms per call" is the wall
    time of an existing plan with new positions in and arrays out. The fastest and the slowest run are dropped and the
    others averaged. A map that would take longer than a second is timed on part of its central points and scaled,
    marked *. "best peer = 1" is the speed-up over the fastest peer in the same table. Errors are relative to float64;
    if one exceeds its tolerance, the table says "disagrees" and the exit code is 1. Progress, and the traceback of a
    peer that fails, are written to standard error.
    """
    from harness.panels import draw
    from harness.table import disagreements, groups, markdown

    from pele_ocl.opencl import get_device

    if "minimize" in works and paths and not systems:
        raise click.UsageError("only included structures are supported for minimization; choose one with --system")
    check_outputs(outputs)
    devices = [get_device(choice) for choice in choices or (None,)]
    names = systems or (() if paths else DEFAULT_SYSTEMS)
    structures = [(name, lambda name=name: load(name)) for name in names]
    structures += [(path.name, lambda path=path: read(path)) for path in paths]
    rows: list[Row] = []
    for work in _works(works or WORKS, structures, (points, n_atoms), cutoff, precisions, devices, runs, most_seconds):
        for absent in sorted(set(peers) - {contender.code for contender in work.contenders}):
            click.echo(f"{work.about}: {absent} does not compute this", err=True)
        found = list(work.rows(lambda code: not peers or code in peers, lambda line: click.echo(line, err=True)))
        rows += found
        for text in [as_json_line(row) for row in found] if as_json else [group.section() for group in groups(found)]:
            click.echo(text)
    title = "Compared with other codes" if machine is None else f"Compared with other codes: {machine}"
    page = markdown(rows, title, origin())
    write_outputs(outputs, machine, page, [asdict(row) for row in rows], lambda path: draw(path, page, title))
    if wrong := disagreements(rows):
        raise PeleError("; ".join(wrong))


def _works(
    names: Sequence[str], structures: Sequence[tuple[str, Callable[[], Atoms]]], size: tuple[int, int], cutoff: float,
    precisions: Sequence[str], devices: Sequence[Device], runs: int, most_seconds: float,
) -> Iterator[Work]:  # fmt: skip
    """Yield the works, each with its inputs and reference values."""
    from harness.comparison import energy_work, nonbond_work, potmap_work, solvent_work
    from harness.mesh import mesh_work
    from harness.minimize import minimize_work

    from pele_ocl.bench.potmap import random_system

    wanted = [p for p in precisions or ("float32",) if p == "float32" or all(d.has_float64 for d in devices)]
    if "potmap" in names:
        for precision in wanted:
            yield potmap_work(*random_system(*size), precision, devices, runs, most_seconds)
    if "mesh" in names:
        for precision in wanted:
            yield mesh_work(*size, precision, devices, runs, most_seconds)
    for name, read_atoms in structures:
        atoms = read_atoms()
        for precision in wanted:
            if "energy" in names:
                yield energy_work(name, atoms, precision, devices, runs)
            if "nonbond" in names:
                yield nonbond_work(name, atoms, cutoff, precision, devices, runs)
            if "solvent" in names:
                yield solvent_work(name, atoms, precision, devices, runs)
            if "minimize" in names and name in SYSTEMS:
                yield minimize_work(name, precision, devices)


if __name__ == "__main__":
    peers()
