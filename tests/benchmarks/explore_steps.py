"""Steps per hour of explorers, and time of the stages of a step.

python tests/benchmarks/explore_steps.py [COMPLEX.pdb --ligand SELECTION [--templates PATH]... [--obc FILE]...]
    [--gb obc2] [--device D] [--explorers 8] [--steps 4] [--tolerance 0.2] [--functions 0]

prints wall time, processor time of all cores, and processor time of the main thread for each stage, and steps per hour.
The main thread runs Python; with OpenCL on CPUs, it waits while other threads compute. Moves are those of induced fit
in pele_platform: modes every fourth step, side chains every second step. The default system is ubiquitin with
trialanine at its surface. The structure is first minimized, which is not timed. --functions prints this number of
functions, sorted by time.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

import pele_ocl
from pele_ocl import Atoms, ForceField, SolventModel
from pele_ocl.common.installation import shipped
from pele_ocl.explore import ANM, Explorer, Minimization, Perturbation, Settings, SideChains
from pele_ocl.formats import read_structure


class Clock:
    """Seconds by stage: wall time, processor time of all cores, and of this thread."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        self.restart()

    def restart(self) -> None:
        """Start a stage."""
        self._begin = time.perf_counter(), time.process_time(), time.thread_time()

    def stop(self, name: str) -> None:
        """End a stage and start the next one."""
        now = time.perf_counter(), time.process_time(), time.thread_time()
        for k in range(3):
            self.seconds[name][k] += now[k] - self._begin[k]
        self._begin = now


def built_in() -> tuple[Atoms, np.ndarray]:
    """Return ubiquitin with trialanine 3 A from its surface, and the atoms of the ligand."""
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
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--gb", default="obc2")
    parser.add_argument("--functions", type=int, default=0)
    parser.add_argument("--tolerance", type=float, default=0.2)
    options = parser.parse_args()
    model = SolventModel.like("pele", gb=options.gb)
    if options.complex:
        field = ForceField.load(radii=model.radii_set, templates=options.templates, obc=options.obc, guess_radii=True)
        atoms = field.assign(read_structure(options.complex))
        ligand = pele_ocl.selection(atoms, options.ligand)
    else:
        atoms, ligand = built_in()
    newton = dict(method="newton", tolerance=options.tolerance, max_iterations=65)
    backbone = ANM(main_weight=0.75, change_frequency=4, relaxation=0.5, tolerance=options.tolerance, max_iterations=25)
    moves = [Perturbation(), backbone, SideChains(), Minimization(**newton, rounds=3)]
    start = pele_ocl.minimize(atoms, fixed_radii=True, rounds=3, model=model, device=options.device, **newton)
    clock, counts = Clock(), defaultdict(int)

    def watch(_: object, name: str, rows: list[int]) -> None:
        clock.stop(name)
        counts[name] += len(rows)

    explorer = Explorer(
        start.atoms, ligand, moves, explorers=options.explorers,
        settings=Settings(translation_range=0.5, rotation_scaling=0.05, overlap_factor=0.65, temperature=1500.0,
            anm_frequency=1, side_chain_frequency=1, displacement=0.75, com_constant=1.0, near_only=False),
        seed=1, model=model, device=options.device, watch=watch,
    )  # fmt: skip
    list(explorer.run(1))  # which builds kernels
    explorer.walk.steps[:] = 0
    for own in explorer.walk.settings:
        own.anm_frequency, own.side_chain_frequency = 4, 2
    clock.seconds.clear()
    counts.clear()
    clock.restart()
    accepted, profiler = 0, cProfile.Profile(time.thread_time)
    if options.functions:
        profiler.enable()
    for _ in range(options.steps):
        accepted += sum(step.accepted for step in explorer.step())
        clock.stop("rest")
    profiler.disable()
    made = options.steps * options.explorers
    ensemble = explorer.walk.ensemble
    row = ensemble.state.bytes_on_device.size / len(ensemble) / 2**20
    print(f"{explorer} on {ensemble.device}: {made} steps, {accepted} accepted; {row:.1f} MiB a row of {len(ensemble)}")
    for name, (seconds, cores, thread) in clock.seconds.items():
        times = f"{seconds / made:8.4f} s per step  {cores / made:8.4f} s of cores  {thread / made:8.4f} s of Python"
        print(f"{name:14} {counts[name]:4} rows  {times}")
    seconds, cores, thread = np.sum(list(clock.seconds.values()), axis=0) / made
    times = f"{seconds:8.4f} s per step  {cores:8.4f} s of cores  {thread:8.4f} s of Python"
    print(f"{'all':14} {3600 / seconds:9.0f} steps per hour  {times}")
    if options.functions:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(options.functions)


if __name__ == "__main__":
    main()
