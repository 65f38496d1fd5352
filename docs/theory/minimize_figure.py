"""Draw docs/figures/minimize.png: energy above the minimum against iteration, by how energies are summed and compared.

python docs/theory/minimize_figure.py

Hexapeptide, Amber99SB with OBC II, from 0.1 A of noise to a tolerance of 0. "float32" and "float64" are Minimizer, its
energies computed anew in float64. "energies alone in float32" is L-BFGS in NumPy that takes a step where
the sum of the terms in float32 is lower by Armijo's rule, and halves it otherwise, as minimisers do that stagnate.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import matplotlib as mpl
import numpy as np

from pele_ocl import Atoms, Energy, Minimizer, read
from pele_ocl.atoms import Floats
from pele_ocl.minimize import pool as pools
from pele_ocl.minimize.pool import LEAST_LOOK, Pool
from pele_ocl.opencl.shared import StepState
from pele_ocl.paths import shipped
from pele_ocl.plan.evaluator import Failures

mpl.use("Agg")
from matplotlib import pyplot as plt

FIGURE = Path(__file__).parents[1] / "figures" / "minimize.png"
ITERATIONS, EVERY, PAIRS = 4000, 16, 8
Curve = list[tuple[int, float]]


def ours(atoms: Atoms, start: Floats, precision: str, exact: Callable[[Floats], float]) -> Curve:
    """Energies of one run, each time when the host looks."""
    plan = Minimizer(atoms, tolerance=0.0, max_iterations=ITERATIONS, precision=precision)
    curve: Curve = []
    with plan.energy.lent(1) as pipeline, patch.object(pools, "MOST_LOOK", EVERY):
        run, steps = pipeline.passes.run.anew(False), plan.steps_of(pipeline.passes)
        pool = Pool(run, pipeline, steps, start[None], Failures(1))
        while pool:
            pool.start()
            iterations = int(pool.look()[0, StepState.ITERATIONS])
            curve.append((iterations, exact(pipeline.decode(steps.positions(run, 0)[None])[0])))
    return curve


def plain(atoms: Atoms, start: Floats, exact: Callable[[Floats], float]) -> Curve:
    """L-BFGS by energies in float32 alone, until no shorter step has a lower energy."""
    plan = Energy(atoms)

    def evaluate(x: Floats) -> tuple[np.float32, Floats]:
        result = plan.evaluate(x)
        assert result.gradient is not None
        return np.sum(result.energies.astype(np.float32), dtype=np.float32), result.gradient.ravel()

    x, pairs, curve = start, list[tuple[Floats, Floats]](), list[tuple[int, float]]()
    energy, gradient = evaluate(x)
    for iteration in range(ITERATIONS + 1):
        if iteration % LEAST_LOOK == 0:
            curve.append((iteration, exact(x)))
        direction = -two_loops(gradient, pairs).reshape(-1, 3)
        longest = np.linalg.norm(direction, axis=1, keepdims=True)
        direction *= np.minimum(1, 0.2 / np.maximum(longest, 1e-12))
        slope, share = direction.ravel() @ gradient, 1.0
        while share > 1e-6:
            trial, slopes = evaluate(x + share * direction)
            if trial < energy + np.float32(1e-4 * share * slope):
                break
            share /= 2
        else:
            return [*curve, (iteration, exact(x))]
        moved, change = share * direction.ravel(), slopes - gradient
        x, energy, gradient = x + share * direction, trial, slopes
        if moved @ change > 0:
            pairs = [*pairs, (moved, change)][-PAIRS:]
    return curve


def two_loops(gradient: Floats, pairs: list[tuple[Floats, Floats]]) -> Floats:
    """The inverse Hessian of L-BFGS times the gradient."""
    q, weights = gradient.copy(), []
    for s, y in reversed(pairs):
        weights.append((s @ q) / (s @ y))
        q -= weights[-1] * y
    q *= 5e-4 if not pairs else (pairs[-1][0] @ pairs[-1][1]) / (pairs[-1][1] @ pairs[-1][1])
    for (s, y), weight in zip(pairs, reversed(weights), strict=True):
        q += s * (weight - (y @ q) / (s @ y))
    return q


def main() -> None:
    """Compute the curves and draw them."""
    atoms = read(shipped("data") / "structures" / "hexapeptide.pdb")
    start = atoms.positions + 0.1 * np.random.default_rng(1).normal(size=atoms.positions.shape)
    plan = Energy(atoms, gradient=False, precision="float64")

    def exact(x: Floats) -> float:
        return plan.evaluate(x).total

    curves = {
        "float64": ours(atoms, start, "float64", exact),
        "float32": ours(atoms, start, "float32", exact),
        "energies alone in float32": plain(atoms, start, exact),
    }
    figure, axes = plt.subplots(figsize=(7, 4))
    for (name, curve), style in zip(curves.items(), ("-", "--", "-."), strict=True):
        iterations, energies = np.array(curve).T
        lowest = curves["float64"][-1][1]
        axes.plot(iterations, np.maximum(energies - lowest, 1e-10), style, label=name)
        print(f"{name}: {curve[-1][0]} iterations, {energies[-1] - lowest:.6f} kcal/mol above float64's")
    axes.set(yscale="log", xlabel="iteration", ylabel="energy above the minimum, kcal/mol", ylim=(1e-9, 1e4))
    axes.legend()
    figure.tight_layout()
    figure.savefig(FIGURE, dpi=110)


if __name__ == "__main__":
    main()
