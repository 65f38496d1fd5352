"""Draw docs/figures/minimize.png: energy above the minimum against iteration, by how energies are summed and compared.

python docs/theory/minimize_figure.py

Hexapeptide, Amber99SB with OBC II, from 0.1 A of noise to a tolerance of 0. All curves are of Minimizer, their energies
computed anew in float64. "sums in float32" has the kernels of a device that knows no float64. So has "energies alone",
where a trial is taken if the sum is lower by Armijo's rule, never by slopes, as in minimizers that stagnate.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import matplotlib as mpl
import numpy as np

from pele_ocl import Atoms, Energy, Minimizer, read
from pele_ocl.atoms import Floats
from pele_ocl.common.installation import shipped
from pele_ocl.minimize.driver import places
from pele_ocl.opencl import building
from pele_ocl.opencl.device import Device, get_device
from pele_ocl.opencl.interface import StepState, Stop

mpl.use("Agg")
from matplotlib import pyplot as plt

FIGURE = Path(__file__).parents[1] / "figures" / "minimize.png"
ITERATIONS, EVERY = 4000, 16
BY_SLOPES = "change <= slack && slope <= (fine)-0.8 * slope0"  # of cl/minimize/decide.clh
Curve = list[tuple[int, float]]


def curve_of(
    atoms: Atoms, start: Floats, exact: Callable[[Floats], float], precision: str = "float32", doubles: bool = True,
    slopes: bool = True,
) -> Curve:  # fmt: skip
    """Energies of one run, each time when the host looks.

    doubles : whether the device knows float64; slopes : whether they decide where energies cannot
    """
    default = get_device()
    device = Device(default.index, default.handle)  # without the kernels of other curves
    shipped_source = building.source_of

    def source(file: str) -> str:
        text = shipped_source(file)
        if file == "minimize/decide.clh":
            assert BY_SLOPES in text
            text = text if slopes else text.replace(BY_SLOPES, "false")
        return text

    with ExitStack() as stack:
        stack.enter_context(patch.object(building, "source_of", source))
        stack.enter_context(patch.object(Device, "has_float64", doubles))
        plan = Minimizer(atoms, tolerance=0.0, max_iterations=ITERATIONS, precision=precision, device=device)
        (recipe, driver), found, state = plan._prepared(plan.energy, True), [], np.zeros(len(StepState))
        jobs, _ = recipe.jobs([0], start[None])
        driver.make_room(jobs)
        assert driver._bring(jobs)
        seats = driver._seats_for(jobs[0])
        driver._seat(seats, jobs)
        passes, base = recipe.system.passes, recipe.pieces["base"]
        while state[StepState.STOPPED] == Stop.RUNNING:
            seats.iterate(EVERY)
            seats.start_look()
            state = seats.look()[0]
            there = driver._own_queue.gather(driver.scratch.buffer, places(jobs, base), base.size, base.dtype)
            found.append((int(state[StepState.ITERATIONS]), passes.decode(there)[0]))
    return [(iterations, exact(positions)) for iterations, positions in found]


def main() -> None:
    """Compute the curves and draw them."""
    atoms = read(shipped("data") / "structures" / "hexapeptide.pdb")
    start = atoms.positions + 0.1 * np.random.default_rng(1).normal(size=atoms.positions.shape)
    plan = Energy(atoms, gradient=False, precision="float64")

    def exact(x: Floats) -> float:
        return plan.evaluate(x).total

    curves = {
        "float64": curve_of(atoms, start, exact, "float64"),
        "float32": curve_of(atoms, start, exact),
        "float32, sums in float32": curve_of(atoms, start, exact, doubles=False),
        "float32, sums in float32, energies alone": curve_of(atoms, start, exact, doubles=False, slopes=False),
    }
    figure, axes = plt.subplots(figsize=(7, 4))
    for (name, curve), style in zip(curves.items(), ("-", "--", ":", "-."), strict=True):
        iterations, energies = np.array(curve).T
        lowest = curves["float64"][-1][1]
        axes.plot(iterations, np.maximum(energies - lowest, 1e-10), style, label=name, marker="o", markevery=[-1])
        print(f"{name}: {curve[-1][0]} iterations, {energies[-1] - lowest:.6f} kcal/mol above float64's")
    axes.set(
        yscale="log", xlabel="iteration", ylabel="energy above the minimum, kcal/mol", xlim=(0, 400), ylim=(1e-9, 1e4)
    )
    axes.legend()
    figure.tight_layout()
    figure.savefig(FIGURE, dpi=110)


if __name__ == "__main__":
    main()
