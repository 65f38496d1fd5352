"""Steps an hour of explorers, and where a step's time goes.

python tests/benchmarks/explore_steps.py [COMPLEX.pdb --ligand SELECTION [--templates PATH]... [--obc FILE]...]
    [--device D] [--explorers 8] [--steps 3] [--tolerance 0.2]

prints seconds by stage, by the clock and of all processor cores, and steps an hour. Without a file it takes ubiquitin
with trialanine at its surface. The structure is minimised first, which is not counted.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

import pele_ocl
from pele_ocl import Atoms, ForceField, SolventModel
from pele_ocl.explore import Explorer, Minimization, Perturbation, Settings
from pele_ocl.formats import read_structure
from pele_ocl.paths import shipped


class Clock:
    """Seconds by stage, by the clock and of all cores."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self.restart()

    def restart(self) -> None:
        """Begin a stage."""
        self._begin = time.perf_counter(), time.process_time()

    def stop(self, name: str) -> None:
        """End a stage and begin the next one."""
        now = time.perf_counter(), time.process_time()
        for k in (0, 1):
            self.seconds[name][k] += now[k] - self._begin[k]
        self._begin = now


def built_in() -> tuple[Atoms, np.ndarray]:
    """Give ubiquitin with trialanine 3 A from its surface, and the atoms of the ligand."""
    from test_forcefield_bonded import joined_structures

    parts = [read_structure(shipped("data") / "structures" / f"{name}.pdb") for name in ("ubiquitin", "trialanine")]
    atoms, n = ForceField.load().assign(joined_structures(*parts)), len(parts[0].positions)
    x = atoms.positions.copy()
    x[n:] += x[:n].mean(axis=0) - x[n:].mean(axis=0)
    while np.linalg.norm(x[:n, None] - x[None, n:], axis=2).min() < 3:
        x[n:] += (0.5, 0, 0)
    return atoms.moved(x), np.arange(n, len(atoms))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("complex", nargs="?")
    parser.add_argument("--ligand")
    parser.add_argument("--templates", action="append", default=[])
    parser.add_argument("--obc", action="append", default=[])
    parser.add_argument("--device")
    parser.add_argument("--explorers", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--tolerance", type=float, default=0.2)
    options = parser.parse_args()
    model = SolventModel.like("pele")
    if options.complex:
        field = ForceField.load(templates=options.templates, obc=options.obc, allow_missing_terminals=True)
        atoms = field.assign(read_structure(options.complex))
        ligand = pele_ocl.selection(atoms, options.ligand)
    else:
        atoms, ligand = built_in()
    newton = dict(method="newton", tolerance=options.tolerance, max_iterations=65)
    start = pele_ocl.minimize(atoms, fixed_radii=True, rounds=3, model=model, device=options.device, **newton)
    clock, counts = Clock(), defaultdict(int)

    def watch(_: object, name: str, rows: list[int]) -> None:
        clock.stop(name)
        counts[name] += len(rows)

    explorer = Explorer(
        start.atoms, ligand, [Perturbation(), Minimization(**newton, rounds=1)], explorers=options.explorers,
        settings=Settings(translation_range=0.5, rotation_scaling=0.05, overlap_factor=0.65, temperature=1500.0,
            near_only=False),
        seed=1, model=model, device=options.device, watch=watch,
    )  # fmt: skip
    list(explorer.run(1))  # which builds kernels
    clock.seconds.clear()
    counts.clear()
    clock.restart()
    accepted = 0
    for _ in range(options.steps):
        accepted += sum(step.accepted for step in explorer.step())
        clock.stop("rest")
    made = options.steps * options.explorers
    print(f"{explorer} on {explorer.walk.ensemble.device}: {made} steps, {accepted} accepted")
    for name, (seconds, cores) in clock.seconds.items():
        print(f"{name:14} {counts[name]:4} rows  {seconds / made:8.2f} s a step  {cores / made:8.2f} s of cores")
    seconds, cores = np.sum(list(clock.seconds.values()), axis=0) / made
    print(f"{'all':14} {3600 / seconds:9.0f} steps an hour  {seconds:8.2f} s a step  {cores:8.2f} s of cores")


if __name__ == "__main__":
    main()
