"""Born radii by all pairs and by the tree: times, their ratio, and the error compared with float64.

python tests/benchmarks/tree.py DEVICE SYSTEM[,SYSTEM...] [PRECISION[,...] [ACCURACY[,...] [RUNS [SETTING=N...]]]]

A system is a name of tests/data (src3, ruvab, cct12) or ball:N, line:N, plane:N and clusters:N, atoms as dense as in a
protein in a ball, in a row, in a sheet, and in two balls 10,000 A apart. Times are those of the kernels for Born radii,
the best of the runs; "evaluate" is the wall time of a later, complete Solvent.evaluate(). Settings are fields of
SolventLayout for the tree only, such as own=2 or walks=8.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pele_ocl import Atoms, Solvent
from pele_ocl.atoms import Floats
from pele_ocl.bench.systems import ball_of_atoms
from pele_ocl.plan.tuning import Choice, trying

DATA = Path(__file__).parents[2] / "tests" / "data"
APART = 1e4  # A, the two clusters
SPACING = 2.0  # A, of rows and sheets


def atoms_of(system: str) -> Atoms:
    """Load the atoms of a system by name."""
    shape, _, size = system.partition(":")
    if not size:
        data = np.load(DATA / f"{system}.npz")
        return Atoms(
            positions=data["coordinates"], charges=data["charge"], gb_radii=data["obc_radius"],
            gb_scales=data["obc_scale"],
        )  # fmt: skip
    n = int(float(size))
    ball = ball_of_atoms(n)
    return Atoms(
        positions=placed(shape, ball.positions), charges=ball.charges, gb_radii=ball.gb_radii, gb_scales=ball.gb_scales
    )


def placed(shape: str, ball: Floats) -> Floats:
    """Map the positions of a ball to a shape, (n, 3) A."""
    n = len(ball)
    if shape == "clusters":
        half = ball_of_atoms(n // 2).positions
        return np.concatenate([half, half[:, ::-1] + np.array([APART, 0, 0]), ball[: n % 2] + APART])
    shaken, edge = ball - np.round(ball), int(np.ceil(np.sqrt(n)))
    along = {"line": (np.arange(n), np.zeros(n)), "plane": (np.arange(n) % edge, np.arange(n) // edge)}
    return ball if shape == "ball" else shaken + SPACING * np.column_stack([*along[shape], np.zeros(n)])


def measured(plan: Solvent, runs: int) -> tuple[float, float, Floats]:
    """Return kernel seconds of Born radii, the best of the runs, wall seconds of an evaluation, and the radii."""
    result, best = plan.evaluate(profile=True), np.inf
    for _ in range(runs):
        result = plan.evaluate(profile=True)
        best = min(best, result.seconds["born"])
    start = time.perf_counter()
    plan.evaluate()
    return best, time.perf_counter() - start, result.born_radii


def lines(
    device: str, system: str, precisions: list[str], accuracies: list[float], runs: int, choice: Choice
) -> Iterator[str]:  # fmt: skip
    """Yield the lines of the table of one system in Markdown."""
    atoms = atoms_of(system)
    exact = Solvent(atoms, variant="tiled", precision="float64", device=device).evaluate().born_radii
    yield f"\n{system}, {len(atoms):,} atoms, {Solvent(atoms[:9], device=device).device}\n"
    yield "| precision | accuracy | tiled, ms | tree, ms | ratio | worst | rms | sampled | evaluate, ms |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for precision in precisions:
        tiled, _, _ = measured(Solvent(atoms, variant="tiled", precision=precision, device=device), runs)
        for accuracy in accuracies:
            with trying("solvent", choice):
                plan = Solvent(atoms, variant="tree", precision=precision, device=device, accuracy=accuracy)
            tree, whole, born = measured(plan, runs)
            error, found = np.abs(born / exact - 1), plan.evaluate().error
            sampled = found.largest if found else np.nan
            yield (
                f"| {precision} | {accuracy:.0e} | {1e3 * tiled:.2f} | {1e3 * tree:.2f} | {tiled / tree:.2f} "
                f"| {error.max():.1e} | {np.sqrt((error**2).mean()):.1e} | {sampled:.1e} "
                f"| {1e3 * whole:.1f} |"
            )


def main() -> None:
    device, systems, *rest = sys.argv[1:]
    precisions, accuracies, runs, *settings = [*rest, *["float32", "1e-4,1e-5,1e-6", "3"][len(rest) :]]
    choice = Choice.of("tree", **{name: int(value) for name, value in (setting.split("=") for setting in settings)})
    asked = [float(accuracy) for accuracy in accuracies.split(",")]
    for system in systems.split(","):
        for line in lines(device, system, precisions.split(","), asked, int(runs), choice):
            print(line, flush=True)


if __name__ == "__main__":
    main()
