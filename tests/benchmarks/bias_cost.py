"""Cost per step of biases, calls and exchanges for many peptides, compared with steps without them.

python tests/benchmarks/bias_cost.py [--device D] [--replicas 4096] [--structure hexapeptide.pdb] [--steps 2000]
    [--rounds 5] [--cases metadynamics,shared,opes,gyration,rmsd,calls,temperature,hamiltonian,restraint,scales]

Bonds to hydrogen are constrained, with steps of 2 fs. Prints for each case the time per step and its excess over plain
steps, from the best of alternating rounds. metadynamics: hills of each replica on two torsions every 500 steps; shared:
of all replicas on one bias; opes: as metadynamics, with Gaussians of 0.15 rad; gyration, rmsd: the same on one variable
of all atoms; calls: `every=100` with a function that does nothing; temperature, hamiltonian: exchanges every 100 steps,
the latter of REST2; scales: rows with individual parameters, the cost of which is included in `hamiltonian`; restraint:
one torsion.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import pele_ocl
from pele_ocl.common.installation import shipped

CASES = (
    "metadynamics", "shared", "opes", "gyration", "rmsd", "calls", "temperature", "hamiltonian", "scales", "restraint",
)  # fmt: skip
LADDER = [300.0, 330.0, 363.0, 400.0, 440.0, 484.0, 532.0, 585.0]
EVERY, PACE = 100, 500
Run = Callable[[int], object]


def made(case: str, atoms: pele_ocl.Atoms, n: int, device: str | None) -> Run:
    """Create a simulation, and return a function that runs steps."""
    four = [4, 6, 8, 14], [6, 8, 14, 16]  # phi and psi of a residue
    phi, psi = (pele_ocl.TorsionVariable(of) for of in four)
    size = len(atoms)
    own: dict[str, tuple[Any, Any, Any]] = {
        "metadynamics": ([phi, psi], [0.35, 0.35], None),
        "shared": ([phi, psi], [0.35, 0.35], None),
        "gyration": ([pele_ocl.GyrationVariable(range(size))], [0.2], [(2.0, 12.0)]),
        "rmsd": ([pele_ocl.RMSDVariable(range(size))], [0.2], [(0.0, 10.0)]),
    }
    options: dict[str, Any] = dict(constraints="hbonds", seed=1, device=device, remove_motion=False)
    if case in own:
        variables, widths, bounds = own[case]
        bias = pele_ocl.Metadynamics(
            variables, widths, 0.3 if case != "shared" else 0.3 / n, PACE, bounds=bounds, shared=case == "shared"
        )
        return pele_ocl.Simulation(atoms, n, terms=[bias], **options).run
    if case == "opes":
        return pele_ocl.Simulation(atoms, n, terms=[pele_ocl.OPES([phi, psi], 2 * [0.15], 10.0, PACE)], **options).run
    if case == "restraint":
        return pele_ocl.Simulation(atoms, n, terms=[pele_ocl.TorsionRestraint([four[0]], -1.0, 5.0)], **options).run
    if case == "hamiltonian":
        return pele_ocl.rest2(atoms, LADDER, ladders=n // len(LADDER), exchange_every=EVERY, **options).run
    if case == "temperature":
        return pele_ocl.Simulation(atoms, n, temperature=LADDER, exchange_every=EVERY, **options).run
    simulation = pele_ocl.Simulation(atoms, n, scales=case == "scales", **options)
    if case == "calls":
        return lambda steps: simulation.run(steps, every=EVERY, call=lambda _: None)
    return simulation.run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--replicas", type=int, default=4096)
    parser.add_argument("--structure", default="hexapeptide.pdb")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", default=",".join(CASES))
    given = parser.parse_args()
    cases = given.cases.split(",")
    if unknown := set(cases) - set(CASES):
        parser.error(f"unknown cases: {', '.join(unknown)}")
    n = given.replicas // len(LADDER) * len(LADDER) or len(LADDER)
    atoms = pele_ocl.read(shipped("data") / "structures" / given.structure)
    atoms = pele_ocl.minimize(atoms, max_iterations=100, device=given.device).atoms
    print(f"{n:,} replicas of {len(atoms)} atoms, {given.steps:,} steps a round, the best of {given.rounds}")
    for case in cases:  # two simulations at a time, for the device's memory
        runs = {"plain": made("plain", atoms, n, given.device), case: made(case, atoms, n, given.device)}
        best = dict.fromkeys(runs, float("inf"))
        for run in runs.values():
            run(given.steps)
        for _ in range(given.rounds):
            for name, run in runs.items():
                begin = time.perf_counter()
                run(given.steps)
                best[name] = min(best[name], (time.perf_counter() - begin) / given.steps)
        plain, own = best["plain"], best[case]
        rate = n / own / 1e6
        print(
            f"{case:13} {1e6 * own:10.2f} us per step, plain {1e6 * plain:10.2f}: {own / plain - 1:+7.2%}; "
            f"{rate:.3f} million replica steps per second"
        )


if __name__ == "__main__":
    main()
