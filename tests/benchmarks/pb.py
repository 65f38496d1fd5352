"""Poisson-Boltzmann: ladder of solvers, iterations by size, errors, and comparison with APBS.

python tests/benchmarks/pb.py ladder [--points N] [--picture PNG]   iterations and seconds to each residual, by solver
python tests/benchmarks/pb.py sizes [N ...]                          iterations of mgcg by points along an edge
python tests/benchmarks/pb.py fasciculin [SPACING ...]               fasciculin 2 against its limit of fine grids
python tests/benchmarks/pb.py errors                                 against closed forms, by spacing
python tests/benchmarks/pb.py limits [STRUCTURE ...]                 estimated errors against limits of fine grids
python tests/benchmarks/pb.py states [STRUCTURE]                     two charge states together and one by one
python tests/benchmarks/pb.py frames [STRUCTURE] [--frames N]        a complex, its receptor and its ligand in N frames,
                                                                     with what the host does for each
python tests/benchmarks/pb.py part [PADDING ...]                     a ligand on the complex's grid, and on part of it
python tests/benchmarks/pb.py peer [STRUCTURE] [--points N]          `apbs`, if it is installed, on the same problem

Each prints a Markdown table. --device D selects the device. Times on CPUs are processor times of this process over all
cores, which hardly depend on other programs; on GPUs they are wall times.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
from harness.charts import new_figure, save
from harness.commands import counted_calls
from timing_tables.pb import grid_for, write_input

import pele_ocl
from pele_ocl import Atoms, Binding, PBIon, PBModel, PBSolvent, PoissonBoltzmann, SolventModel
from pele_ocl.bench.systems import SYSTEMS, load
from pele_ocl.binding.poisson_boltzmann import PBEnergy
from pele_ocl.common.inputfile import read_file
from pele_ocl.opencl.device import Device, get_device
from pele_ocl.pb import SOLVERS, PBResult, centre_of, grid_at, levels
from pele_ocl.pb.apbs import read_apbs
from pele_ocl.pb.systems import solve_systems
from pele_ocl.pb_model import PBSolute, grid_around, grid_within

SALT = (PBIon(1, 0.15), PBIon(-1, 0.15))
SALTY = SolventModel(surface="lcpo", ionic_strength=0.15)
RESIDUES_OF_LIGAND, NOISE = 4, 0.05  # NOISE : A, of every coordinate
CALLS = 5  # for binding energies on a GPU
RESIDUALS = tuple(10.0**-k for k in range(1, 7))
COMMAND = [sys.executable, "-c", "from pele_ocl.cli import main; main()", "pb"]


def structure(name: str) -> Atoms:
    """Return an included structure by name, or a file."""
    return load(name) if name in SYSTEMS else pele_ocl.read(name)


def seconds_of(device: Device) -> float:
    """Return the current time in seconds: processor time of the process on a CPU, else wall time."""
    return time.process_time() if device.kind == "CPU" else time.perf_counter()


@contextmanager
def solver_seconds(device: Device) -> Iterator[list[float]]:
    """Collect the time of the solver on each grid within the context."""
    spent, own = list[float](), levels.Level.solve

    def timed(self: levels.Level, *arguments: object) -> None:
        begun = seconds_of(device)
        own(self, *arguments)  # type: ignore[arg-type]
        spent.append(seconds_of(device) - begun)

    with patch.object(levels.Level, "solve", timed):
        yield spent


def row(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def head(*cells: str) -> None:
    row(*cells)
    print("|" + "---|" * len(cells))


def ladder(device: Device, points: int, picture: Path | None) -> None:
    """Print iterations and seconds of every solver to each residual, for ubiquitin in 64 A."""
    atoms = load("ubiquitin")
    grid = grid_at(centre_of(atoms), 64 / (points - 1), [points] * 3)
    head("solver", *(f"{residual:.0e}" for residual in RESIDUALS))
    curves = {}
    for solver in SOLVERS:
        found = []
        for residual in RESIDUALS:
            run = PoissonBoltzmann(atoms, grids=grid, solver=solver, tolerance=residual, device=device)
            if not found:
                run.solve(keep_map=False, grid_error=False)  # builds the kernels
            with solver_seconds(device) as spent_of_solver:
                result = run.solve(keep_map=False, grid_error=False)
            spent = spent_of_solver[-1]
            found.append((result.iterations, spent, result.levels[-1].residual))
        curves[solver] = found
        row(f"`{solver}`", *(f"{n:,} ({spent:.2g} s)" for n, spent, _ in found))
    if picture is not None:
        _draw(curves, points, device, picture)


def _draw(curves: dict[str, list[tuple[int, float, float]]], points: int, device: Device, path: Path) -> None:
    """Draw residuals against seconds, one curve per solver."""
    figure = new_figure(6, 4)
    axes = figure.subplots()
    for solver, found in curves.items():
        axes.plot([spent for _, spent, _ in found], [reached for *_, reached in found], marker="o", label=solver)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(f"seconds of the solver, ubiquitin, {points}³ nodes")
    axes.set_ylabel("relative residual")
    axes.legend()
    axes.set_title(str(device), fontsize=8)
    save(figure, path)


def sizes(device: Device, points: list[int]) -> None:
    """Print iterations of mgcg to 1e-6 by number of points along an edge, for ubiquitin in 64 A."""
    atoms = load("ubiquitin")
    head("points", "spacing, A", "iterations", "residual", "bytes per node", "surface, s", "solver, s")
    for n in points:
        grid = grid_at(centre_of(atoms), 64 / (n - 1), [n] * 3)
        run = PoissonBoltzmann(atoms, PBModel(ions=SALT), grids=grid, device=device)
        result, most = solved_in_bytes(run, device)
        level, seconds = result.levels[-1], result.seconds
        row(
            f"{n}^3", f"{grid.spacing[0]:.3g}", result.iterations, f"{level.residual:.1e}", f"{most / n**3:.1f}",
            f"{seconds['surface']:.2g}", f"{seconds['solver']:.2g}",
        )  # fmt: skip


def solved_in_bytes(run: PoissonBoltzmann, device: Device) -> tuple[PBResult, int]:
    """Solve without map and grid error; return the result, and the peak device memory in bytes."""
    before = device.buffers.now
    device.buffers.start()
    result = run.solve(keep_map=False, grid_error=False)
    return result, device.buffers.most - before


def fasciculin(device: Device, spacings: list[float]) -> None:
    """Print the reaction energy of fasciculin 2 in 48 x 40 x 48 A; its limit at spacing 0 is -461.5 +- 0.2 kcal/mol."""
    apbs = shutil.which("apbs")
    if apbs is None:
        sys.exit("apbs is not installed, whose examples have fasciculin 2")
    atoms = pele_ocl.read(Path(apbs).parent.parent / "share" / "apbs" / "examples" / "misc" / "fas2.pqr")
    head("spacing, A", "points", "energy, kcal/mol", "error", "iterations", "bytes per node")
    for spacing in sorted(spacings, reverse=True):
        shape = [round(length / spacing) + 1 for length in (48, 40, 48)]
        run = PoissonBoltzmann(atoms, grids=grid_at(centre_of(atoms), spacing, shape), device=device)
        result, most = solved_in_bytes(run, device)
        row(
            f"{spacing:g}", " x ".join(map(str, shape)), f"{result.energy:.2f}",
            f"{abs(result.energy + 461.5):.2f} ({100 * abs(result.energy / 461.5 + 1):.2f} %)",
            result.iterations, f"{most / np.prod(shape):.1f}",
        )  # fmt: skip


def kirkwood(radius: float, at: float, inner: float, outer: float) -> float:
    """Return the reaction energy of a charge off-centre in a sphere, times 4 pi eps_0 / e^2: Kirkwood's series."""
    n = np.arange(400)
    factors = (n + 1) * (inner - outer) / (inner * ((n + 1) * outer + n * inner)) * (at / radius) ** (2 * n)
    return float(0.5 / radius * factors.sum())


def errors(device: Device) -> None:
    """Print relative errors of ions by spacing, means over positions between nodes, and the order of convergence."""
    places = np.random.default_rng(1).uniform(-0.5, 0.5, (4, 3))
    spacings = (1.0, 2 / 3, 1 / 2, 1 / 3, 1 / 4)
    head("problem", "surface", *(f"h = {h:.2g}" for h in spacings), "order, last pair")
    for name, at, radius, inner in (
        ("Born ion of 2 A", 0.0, 2.0, 1.0),
        ("charge 2 A off the middle of 4 A", 2.0, 4.0, 2.0),
    ):
        model = PBModel(inner, 78.54, probe=0)
        expected = kirkwood(radius, at, inner, 78.54) * model.charge_factor / (4 * np.pi)
        for surface in ("edges", "mol"):
            found = []
            for h in spacings:
                n = round(24 / h)
                off = [
                    PoissonBoltzmann(
                        Atoms([place * h, place * h + [at * 0.6, 0, at * 0.8]], [0.0, 1.0], gb_radii=[radius, 0.0]),
                        PBModel(inner, 78.54, probe=0, surface=surface), grids=grid_at([0, 0, 0], h, [n + 1] * 3),
                        device=device,
                    ).solve(keep_map=False, grid_error=False).energy_kt / expected - 1
                    for place in places
                ]  # fmt: skip
                found.append(float(np.abs(off).mean()))
            order = np.log(found[-2] / found[-1]) / np.log(spacings[-2] / spacings[-1])
            row(name, f"`{surface}`", *(f"{100 * error:.2f} %" for error in found), f"{order:.1f}")


def limits(device: Device, names: list[str]) -> None:
    """Print energies at 0.5 A, the estimated error, and the difference from the limit of three finer grids."""
    head("molecule", "atoms", "limit, kcal/mol", "its error", "at 0.5 A", "true error", "told error")
    for name in names:
        atoms = structure(name)
        model = PBModel(ions=(PBIon(1, 0.15), PBIon(-1, 0.15)))
        coarse = PoissonBoltzmann(atoms, model, spacing=0.5, device=device)
        shape = [2 * (n - 1) + 1 for n in coarse.grids[0].shape]
        grid = pele_ocl.Grid(coarse.grids[0].origin, 0.25, shape)
        fine = PoissonBoltzmann(atoms, model, grids=grid, device=device).solve(keep_map=False, extrapolate=True).errors
        found = coarse.solve(keep_map=False)
        assert fine.extrapolated is not None
        row(
            Path(name).stem, f"{len(atoms):,}", f"{fine.extrapolated:.2f}", f"{fine.extrapolation:.2f}",
            f"{found.energy:.2f}", f"{abs(found.energy - fine.extrapolated):.2f}", f"{found.errors.grid:.2f}",
        )  # fmt: skip


def states(device: Device, name: str) -> None:
    """Print the time of two charge states of one geometry, with surface and coarse grids computed once or twice."""
    atoms = structure(name)
    run = PoissonBoltzmann(atoms, device=device)
    both = np.array([atoms.charges, atoms.charges])
    both[1, 0] += 1
    run.solve_states(both[:1])  # builds the kernels
    begun = seconds_of(device)
    run.solve_states(both)
    together = seconds_of(device) - begun
    begun = seconds_of(device)
    for charges in both:
        run.solve_states(charges[None])
    apart = seconds_of(device) - begun
    head("molecule", "atoms", "points", "together, s", "one by one, s")
    points = " x ".join(map(str, run.grids[0].shape))
    row(Path(name).stem, f"{len(atoms):,}", points, f"{together:.2f}", f"{apart:.2f}")


def frames(
    device: Device, name: str, count: int, most: int | None, equation: str, rows: int | None, spacing: float
) -> None:
    """Print milliseconds per frame of MM/PBSA, three systems each: the last residues are the ligand; frames have noise.

    On CPUs the host time is the processor time of the main thread, since the kernels of PoCL run in other threads. On
    GPUs threads solve some systems concurrently: stages overlap, and the host time is that of all threads. Binding
    energies are computed in several calls there, of which the fastest and the median are printed.
    """
    atoms = structure(name)
    assert atoms.labels is not None
    if most is not None:
        starts = np.append(atoms.labels.residue_starts, len(atoms))
        atoms = atoms[np.arange(starts[starts <= most][-1])]
        assert atoms.labels is not None
    first = atoms.labels.residue_starts[-RESIDUES_OF_LIGAND]
    binding = Binding(
        atoms, np.arange(first, len(atoms)), model=SALTY, pb=PBSolvent(equation, spacing=spacing), device=device
    )
    noise = np.random.default_rng(1).normal(0, NOISE, (count, len(atoms), 3))
    moved = atoms.positions + noise
    binding.evaluate_batch(moved[:2])  # builds the kernels
    calls_of_all = list[float]()
    for _ in range(1 if device.kind == "CPU" else CALLS):
        begun = seconds_of(device)
        found = binding.evaluate_batch(moved)
        calls_of_all.append(1e3 * (seconds_of(device) - begun) / count)
    positions = binding.systems.positions(moved)
    grids = binding.systems.grids(positions)
    conformations = [
        plan.conformation(positions[name][k], grids[name][k])
        for k in range(count)
        for name, plan in binding.plans.items()
        if isinstance(plan, PBEnergy)
    ]
    solve_systems(conformations[: 3 * (rows or 1)], rows=rows)
    host_seconds = time.thread_time if device.kind == "CPU" else time.process_time
    seconds, begun, of_host = Counter[str](), seconds_of(device), host_seconds()
    with counted_calls() as calls:
        results = solve_systems(conformations, rows=rows)
    alone, of_host = seconds_of(device) - begun, host_seconds() - of_host
    for result in results.values():
        seconds.update(result.seconds)
    points, of_ligand = (" x ".join(map(str, grids[name][0].shape)) for name in ("complex", "ligand"))
    print(
        f"{len(atoms):,} atoms on {points} points, {len(atoms) - first} of them the ligand on {of_ligand}, "
        f"{count} frames, {device}\n"
    )
    head("stage", "ms per frame")
    for stage, spent in seconds.items():
        if stage != "total":
            row(f"of the equation: {stage}", f"{1e3 * spent / count:.2f}")
    row("equation", f"{1e3 * alone / count:.2f}")
    row("of it the host's processor time", f"{1e3 * of_host / count:.2f}")
    row("binding energies, all terms", f"{min(calls_of_all):.2f}")
    if len(calls_of_all) > 1:
        row(f"the same, median of {len(calls_of_all)} calls", f"{np.median(calls_of_all):.2f}")
    row("mean of the reaction field's part, kcal/mol", f"{found.delta.pb.mean():.4f}")
    print()
    head("calls of the runtime", "per system")
    for what, times in sorted(calls.items()):
        row(what, f"{times / len(conformations):.1f}")


def part(device: Device, paddings: list[float]) -> None:
    """Print energies of a ligand of charge 2 on the grid of a complex, and on the part of it that it needs."""
    rng = np.random.default_rng(0)
    x, charges = rng.normal(size=(25, 3)) * [4, 2, 2], rng.uniform(-0.3, 0.3, 25)
    ligand = Atoms(x, charges + (2 - charges.sum()) / 25, gb_radii=np.full(25, 1.6))
    receptor = [[-40, 0, 0], [-20, 20, 0], [-20, -20, 10], [-20, 0, -20]]
    whole = PBSolute(np.vstack([x, receptor]), np.zeros(29), np.full(29, 1.6))
    solute = PBSolute(x, ligand.charges, whole.radii[:25])
    head("padding, A", "salt, M", "points", "of the part", "energy, kcal/mol", "on the part", "difference")
    for padding in paddings:
        grid = grid_around(whole, 1.0, padding)
        for salt in ((), SALT):
            model = PBModel(ions=salt)
            both = (grid, grid_within(grid, solute, padding, model.probe))
            runs = [PoissonBoltzmann(ligand, model, grids=each, device=device) for each in both]
            on_whole, on_part = (run.solve(keep_map=False, grid_error=False).energy for run in runs)
            row(
                f"{padding:g}", f"{salt[0].concentration if salt else 0:g}",
                *(" x ".join(map(str, each.shape)) for each in both), f"{on_whole:.4f}", f"{on_part:.4f}",
                f"{on_part - on_whole:.4f}",
            )  # fmt: skip


def peer(name: str, points: int, device: Device) -> None:
    """Print the times of `apbs` and pele-ocl for one input file: of the solver, and of the whole command."""
    if shutil.which("apbs") is None:
        sys.exit("apbs is not installed")
    atoms = structure(name)
    with TemporaryDirectory() as folder:
        write_input(Path(folder), atoms, grid_for(atoms, points), 1e-6)
        head("program", "energy, kJ/mol", "solver, CPU s", "command, CPU s", "command, s")
        wall, cpu, printed = _timed(["apbs", "molecule.in"], folder)
        timers = (Path(folder) / "io.mc").read_text()
        solver = float(re.findall(r"Solver timer\)\.\s+CPU TIME = (\S+)", timers)[-1])
        row("apbs", _energy(printed), f"{solver:.2f}", f"{cpu:.2f}", f"{wall:.2f}")
        # The first run builds kernels, which are kept for later ones, as a compiler's are.
        _timed([*COMMAND, "molecule.in"], folder)
        wall, cpu, printed = _timed([*COMMAND, "molecule.in"], folder)
        own = _own_solver(Path(folder), device)
        row("pele-ocl pb", _energy(printed), f"{own:.2f}", f"{cpu:.2f}", f"{wall:.2f}")


def _own_solver(folder: Path, device: Device) -> float:
    """Return the time of pele-ocl's solver on the same problem, to the residual of APBS, with compiled kernels."""
    wanted, molecules = read_apbs(read_file(folder / "molecule.in"), lambda path: pele_ocl.read(folder / path.name))
    calculation = wanted.calculations[0]
    run = PoissonBoltzmann(
        molecules[calculation.molecule], calculation.model, grids=calculation.grids, reaction=False, tolerance=1e-6,
        device=device,
    )  # fmt: skip
    with solver_seconds(device) as spent:
        for _ in range(2):
            run.solve(keep_map=False)
    return spent[-1]


def _timed(command: list[str], folder: str) -> tuple[float, float, str]:
    """Return wall and processor time of a command in seconds, and its output."""
    before, begun = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    printed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    wall, after = time.perf_counter() - begun, getrusage(RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, printed


def _energy(printed: str) -> str:
    return re.findall(r"Total electrostatic energy = (\S+) kJ", printed)[-1]


def main() -> None:
    """Print the requested table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "table", choices=["ladder", "sizes", "fasciculin", "errors", "limits", "states", "frames", "part", "peer"]
    )
    parser.add_argument(
        "what",
        nargs="*",
        help="points of sizes, spacings of fasciculin, paddings of part, structures of limits, states, frames, peer",
    )
    parser.add_argument("--points", type=int, help="along an edge of the grid; by default 65 of ladder, 161 of peer")
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--atoms", type=int, help="of frames: the first residues with so many at most")
    parser.add_argument("--nonlinear", action="store_true", help="of frames: the nonlinear equation")
    parser.add_argument(
        "--rows", type=int, help="of frames: problems in one set of launches, by default as many as fit the device"
    )
    parser.add_argument("--spacing", type=float, default=0.5, help="of frames, A")
    parser.add_argument("--picture", type=Path, help="of ladder: draw the residual against the seconds")
    parser.add_argument("--device")
    options = parser.parse_args()
    device = get_device(options.device)
    if options.table == "ladder":
        ladder(device, options.points or 65, options.picture)
    elif options.table == "sizes":
        sizes(device, [int(word) for word in options.what] or [33, 65, 97, 129])
    elif options.table == "fasciculin":
        fasciculin(device, [float(word) for word in options.what] or [1.0, 0.5, 0.25])
    elif options.table == "errors":
        errors(device)
    elif options.table == "limits":
        limits(device, options.what or ["hexapeptide"])
    elif options.table == "states":
        states(device, (options.what or ["ubiquitin"])[0])
    elif options.table == "frames":
        frames(
            device, (options.what or ["src3"])[0], options.frames, options.atoms,
            "nonlinear" if options.nonlinear else "linear", options.rows, options.spacing,
        )  # fmt: skip
    elif options.table == "part":
        part(device, [float(word) for word in options.what] or [5.0, 10.0])
    else:
        peer((options.what or ["src3"])[0], options.points or 161, device)


if __name__ == "__main__":
    main()
