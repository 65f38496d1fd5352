"""Wall time of evaluations by all pairs and by the tree.

python tests/benchmarks/tree_wall.py DEVICE SYSTEM[,SYSTEM...] [WHAT[,WHAT...] [RUNS]]

A system is a name of tests/data (src3, ruvab, cct12) or ball:N, atoms as dense as in a protein. What: `radii`,
Solvent(energy=False); `solvent`, with the GB energy; `energy` and `gradient`, Energy without and with it. Best of the
runs, with given positions, in float32 to 1e-5; times of the tree include the measurement of the error.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import tree_energy

from pele_ocl import Atoms, Energy, Solvent
from pele_ocl.bench.systems import ball_of_atoms

Plan = Solvent | Energy
PLANS: dict[str, tuple[Callable[..., Plan], str]] = {  # and the argument that chooses between pairs and tree
    "radii": (partial(Solvent, energy=False), "variant"),
    "solvent": (Solvent, "variant"),
    "energy": (partial(Energy, gradient=False), "born"),
    "gradient": (Energy, "born"),
}
ALL_PAIRS = {"variant": "tiled", "born": "pairs"}


def atoms_of(system: str) -> Atoms:
    """Load the atoms of a system with all parameters."""
    _, _, size = system.partition(":")
    return ball_of_atoms(int(size)) if size else tree_energy.atoms_of(system)


def milliseconds(plan: Plan, runs: int) -> tuple[float, float]:
    """Return the lowest wall time of the runs, and the part for measuring the error."""
    positions, each = plan.atoms.positions.copy(), []
    plan.evaluate(positions)
    for _ in range(runs):
        start = time.perf_counter()
        result = plan.evaluate(positions)
        each.append((1e3 * (time.perf_counter() - start), 1e3 * result.seconds.get("error", 0.0)))
    return min(each)


def main() -> None:
    device, systems, *rest = sys.argv[1:]
    whats, runs = [*rest, *["radii,solvent", "5"][len(rest) :]]
    print("| system | atoms | what | tiled, ms | tree, ms | of it error | ratio |\n|---|---|---|---|---|---|---|")
    for system in systems.split(","):
        atoms = atoms_of(system)
        for what in whats.split(","):
            plan_of, argument = PLANS[what]
            pairs, _ = milliseconds(plan_of(atoms, device=device, **{argument: ALL_PAIRS[argument]}), int(runs))
            tree, error = milliseconds(plan_of(atoms, device=device, **{argument: "tree"}), int(runs))
            print(
                f"| {system} | {len(atoms):,} | {what} | {pairs:.2f} | {tree:.2f} | {error:.2f} | {pairs / tree:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
