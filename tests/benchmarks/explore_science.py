"""Adaptive search of ligand poses: number of seeds that reach the native pose, and epochs needed.

python tests/benchmarks/explore_science.py CONTROL COMPLEX.pdb NATIVE.pdb [--templates PATH]... [--obc FILE]...
    [--gb obc2] [--data DIR] [--device D] [--seeds 10] [--first-seed 1] [--explorers 50] [--epochs 25] [--steps 4]
    [--tolerance T] [--epsilon 0.1] [--density constant] [--until 2.0] [--after 3] [--processes 1] [--seconds S]
    [--out FILE.jsonl]
python tests/benchmarks/explore_science.py --draw STEM FILE.jsonl[=TITLE]...

CONTROL is PELE's control file, from which moves, box, constraints and parameter changes are used; its native structure
is not needed. --tolerance, in kcal/mol/A, replaces that of all minimizations. The structure is first minimized, which
does not count as a step. In each epoch the explorers of a seed make --steps steps; then their accepted states are
clustered, and the next epoch starts from the clusters as in AdaptivePELE: inversely proportional to their sizes, and
for a fraction epsilon by binding energy. Defaults are those of the second example, trypsin, of AdaptivePELE's manual. A
seed that has reached RMSD --until continues for --after epochs. NATIVE must contain the heavy atoms of the ligand with
the names of COMPLEX; their RMSD is computed without superposition, as the minimum over permutations of equivalent
atoms. Seeds are divided among --processes on one device; --seconds limits the wall time. --out contains a line for each
seed and epoch: accepted states as epoch, RMSD, binding energy and energy. --draw draws a panel for each FILE to
STEM-light.png and STEM-dark.png.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from explore_steps import Clock

from pele_ocl import ForceField, SolventModel, minimize
from pele_ocl.bench.roofline import INK, PAPER
from pele_ocl.explore import Clusters
from pele_ocl.explore.control import read_simulation
from pele_ocl.explore.control.building import MetricMaker, box_of, ligand_of
from pele_ocl.explore.control.explorers import explorer_of, minimizer_options, settings_of
from pele_ocl.explore.metrics import BindingEnergy, States
from pele_ocl.explore.sensors import Sensor, Sensors, changed, changing_blocks
from pele_ocl.explore.spawning import rmsd
from pele_ocl.formats import read_structure


@dataclass
class Seed:
    """A running seed.

    reached : first epoch with an RMSD below the limit, None if there is none
    least : lowest RMSD so far, A
    """

    seed: int
    clusters: Clusters
    reached: int | None = None
    least: float = np.inf


class Search:
    """Explorers of some seeds in one process, as a single batch."""

    def __init__(self, options: argparse.Namespace, seeds: list[int]) -> None:
        words = {"OUTPUT_PATH": ".", "SEED": "1", "PELE_STEPS": str(options.steps), "COMPLEXES": "{}"}
        self.simulation = read_simulation(options.control, words)
        self.simulation.require_done()
        task = self.simulation.tasks[0]
        if options.tolerance is not None:
            own = {name: getattr(task, name) for name in ("minimizer", "anm_minimizer")}
            own = {name: replace(block, minimum_rms=options.tolerance) for name, block in own.items()}
            task = replace(task, **own)
        self.task = task
        solvent = self.simulation.energies
        gb = options.gb or solvent.gb
        model = SolventModel.like("pele", gb=gb, ionic_strength=solvent.ionic_strength)
        forces = ForceField.load(
            solvent.forcefield, model.radii_set, options.templates, options.obc, guess_radii=True,
            allow_missing_terminals=solvent.allow_missing_terminals,
        )  # fmt: skip
        atoms = forces.assign(read_structure(options.complex))
        newton = minimizer_options(task.minimizer)
        atoms = minimize(atoms, fixed_radii=True, model=model, device=options.device, **newton).atoms
        mask = ligand_of(self.simulation, atoms)
        self.numbers = [number for seed in seeds for number in range(seed << 10, (seed << 10) + options.explorers)]
        n = len(self.numbers)
        self.box = box_of(self.simulation.path, self.task.box, atoms)
        self.explorer = explorer_of(
            self.simulation, self.task, atoms, mask, self.numbers, np.stack([atoms.positions] * n), seed=1,
            box=self.box, folders=options.data, model=model, device=options.device, watch=self.watch,
        )  # fmt: skip
        self.clock, self.counts = Clock(), dict[str, int]()
        maker = MetricMaker(self.simulation.path, atoms, model, device=options.device)
        asked = [Sensor(block, maker.make(block)) for block in self.task.metrics if block.kind not in OWN]
        self.sensors = Sensors(asked, self.explorer.energies)
        self.blocks = [changing_blocks(self.task) for _ in self.numbers]
        self.binding = BindingEnergy(atoms, mask, model, device=options.device)
        self.heavy = np.flatnonzero(mask & (atoms.labels.elements != "H"))
        self.orders = equivalent_orders(atoms, self.heavy)
        self.native = native_positions(options.native, atoms.labels.names[self.heavy])
        alpha = np.flatnonzero((atoms.labels.names == "CA") & (atoms.labels.elements == "C") & ~mask)
        self.seeds = [
            Seed(seed, Clusters(self.heavy, alpha, symmetric=self.orders, density=options.density)) for seed in seeds
        ]
        self.options = options
        self.rows = {seed: list(range(n))[k * options.explorers :][: options.explorers] for k, seed in enumerate(seeds)}
        self.sensors.measure(range(n), self.states(range(n)))
        start = self.kept(range(n))[:1]
        energy = float(self.binding.evaluate(self.states_at(start))[0])
        for seed in self.seeds:
            seed.clusters.add(start[0], energy)

    def watch(self, _: object, name: str, rows: list[int]) -> None:
        """Measure the time and number of rows of a stage."""
        self.clock.stop(name)
        self.counts[name] = self.counts.get(name, 0) + len(rows)

    def kept(self, rows: Any) -> np.ndarray:
        """Return the accepted positions of rows."""
        walk = self.explorer.walk
        return walk.ensemble.positions[walk.kept(list(rows))]

    def states_at(self, positions: np.ndarray) -> States:
        """Return unused states."""
        zeros = np.zeros(len(positions), np.int64)
        return States(positions, zeros, zeros, 1)

    def states(self, rows: Any) -> States:
        """Return the accepted states of rows before their next steps."""
        rows = list(rows)
        steps = (self.explorer.walk.steps + 1)[rows]
        return States(self.kept(rows), np.array(self.numbers, np.int64)[rows], steps, 1)

    def step(self, rows: list[int]) -> list[int]:
        """Make a step of rows with the settings of the control file; return the rows that accepted it."""
        walk = self.explorer.walk
        nowhere = np.zeros((len(self.numbers), 0, 3))
        self.sensors.draw(States(nowhere, np.array(self.numbers, np.int64), walk.steps + 1, 1))
        for k in rows:
            values = self.sensors.of(k, int(walk.steps[k]) + 1)
            self.blocks[k] = changed(self.blocks[k], self.task.changes, values)
            walk.settings[k] = settings_of(self.task, self.blocks[k], self.box)
        self.clock.stop("between steps")
        made = self.explorer.step(rows)
        self.clock.stop("rule")
        self.counts["rule"] = self.counts.get("rule", 0) + len(rows)
        self.counts["accepted"] = self.counts.get("accepted", 0) + sum(own.accepted for own in made)
        accepted = np.zeros(len(self.numbers), bool)
        accepted[[own.row for own in made]] = [own.accepted for own in made]
        self.sensors.count(rows, accepted, self.explorer.energies)
        new = np.flatnonzero(accepted).tolist()
        if new:
            self.sensors.measure(new, self.states(new))
        return new

    def epoch(self, number: int, active: list[Seed]) -> None:
        """Run the steps of an epoch of some seeds, and start the next one in their clusters."""
        rows = [k for seed in active for k in self.rows[seed.seed]]
        owner = {k: seed for seed in active for k in self.rows[seed.seed]}
        found: list[tuple[int, np.ndarray, float]] = []
        for _ in range(self.options.steps):
            new = self.step(rows)
            if new:
                energies = self.explorer.energies
                found += [(k, x, float(energies[k])) for k, x in zip(new, self.kept(new), strict=True)]
            if time.time() > self.options.deadline:
                break
        told: dict[int, list[list[float]]] = {seed.seed: [] for seed in active}
        binding = self.binding.evaluate(self.states_at(np.stack([x for _, x, _ in found]))) if found else []
        for (k, x, energy), bound in zip(found, binding, strict=True):
            seed, away = owner[k], rmsd(x[self.heavy], self.native, self.orders)
            told[seed.seed].append([number, round(away, 2), round(float(bound), 2), round(energy, 2)])
            seed.least = min(seed.least, away)
            seed.clusters.add(x, float(bound))
            if away < self.options.until and seed.reached is None:
                seed.reached = number
        for seed in active:
            self.spawn(seed)
            self.write(seed, number, told[seed.seed])

    def spawn(self, seed: Seed) -> None:
        """Place the explorers of a seed in its clusters."""
        rows = self.rows[seed.seed]
        chosen = seed.clusters.spawn(len(rows), self.options.epsilon)
        walk = self.explorer.walk
        walk.place(rows, [cluster.state for cluster in chosen])
        self.sensors.measure(rows, self.states(rows))
        for k in rows:
            walk.memory[k].pop("steering", None)

    def write(self, seed: Seed, number: int, points: list[list[float]]) -> None:
        """Write the epoch of a seed."""
        made, seconds = int(self.explorer.walk.steps[self.rows[seed.seed]].sum()), round(time.time() - self.begin, 1)
        line = {"seed": seed.seed, "epoch": number, "steps": made, "seconds": seconds, "points": points}
        with self.options.out.open("a") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def run(self) -> None:
        """Run all epochs."""
        options, self.begin = self.options, time.time()
        self.clock.restart()
        for number in range(1, options.epochs + 1):
            active = [s for s in self.seeds if s.reached is None or number <= s.reached + options.after]
            if not active or time.time() > options.deadline:
                break
            self.epoch(number, active)
            lowest = [min(cluster.metric for cluster in seed.clusters.found) for seed in active]
            told = ", ".join(
                f"{s.seed}: {s.least:.1f} A {low:.1f} ({len(s.clusters)})"
                for s, low in zip(active, lowest, strict=True)
            )
            print(f"{time.time() - self.begin:6.0f} s epoch {number}: {told}", flush=True)
            self.tell_stages()

    def tell_stages(self) -> None:
        """Print milliseconds per step by stage since the last call, and the number of rows in each."""
        made = max(1, self.counts.get("rule", 0))
        shares = [
            f"{name} {1000 * of[0] / made:.1f} ({self.counts.get(name, 0)})" for name, of in self.clock.seconds.items()
        ]
        print(f"       ms per step (rows): {', '.join(shares)}; {self.counts.get('accepted', 0)} accepted", flush=True)
        self.clock.seconds.clear()
        self.counts.clear()


OWN = ("rmsd", "bindingEnergy")  # metrics that the search computes itself


def native_positions(path: Path, names: np.ndarray) -> np.ndarray:
    """Read the ligand's heavy atoms (k, 3) in the order of names, from the only residue that contains all of them."""
    structure = read_structure(path)
    labels = structure.labels
    for residue in np.unique(labels.residue_index)[::-1]:
        of = np.flatnonzero(labels.residue_index == residue)
        place = {name: i for name, i in zip(labels.names[of].tolist(), of.tolist(), strict=True)}
        if all(name in place for name in names.tolist()):
            return structure.positions[[place[name] for name in names.tolist()]]
    sys.exit(f"{path}: no residue has the atoms {' '.join(names.tolist())}")


def equivalent_orders(atoms: Any, heavy: np.ndarray) -> np.ndarray:
    """Return the orders (s, k) of heavy atoms that preserve elements and bonds: automorphisms of a small graph."""
    place = {int(i): k for k, i in enumerate(heavy)}
    near: list[set[int]] = [set() for _ in heavy]
    for i, j in atoms.bond_pairs.tolist():
        if i in place and j in place:
            near[place[i]].add(place[j])
            near[place[j]].add(place[i])
    kinds = [(element, len(own)) for element, own in zip(atoms.labels.elements[heavy].tolist(), near, strict=True)]
    orders: list[list[int]] = [[]]
    for k in range(len(heavy)):
        orders = [
            [*order, c]
            for order, c in itertools.product(orders, range(len(heavy)))
            if c not in order
            and kinds[c] == kinds[k]
            and all((order[j] in near[c]) == (j in near[k]) for j in range(k))
        ]
    return np.array(orders)


def searched(options: argparse.Namespace, seeds: list[int]) -> None:
    """Run some seeds and return them."""
    Search(options, seeds).run()


def tell(results: Path, until: float) -> list[np.ndarray]:
    """Print the results of the seeds; return their points (n, 4): epoch, RMSD, binding energy, energy."""
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    lines = [line for line in lines if line["points"]]  # a seed may accept nothing
    if not lines:
        print("no accepted state")
        return []
    points, hits, there, made = list[np.ndarray](), 0, 0, 0
    print(f"{'seed':>4} {'epochs':>6} {'steps':>6} {'reached':>7} {'lowest RMSD':>11}  lowest binding energy, its RMSD")
    for seed in sorted({line["seed"] for line in lines}):
        own = [line for line in lines if line["seed"] == seed]
        points.append(np.array([point for line in own for point in line["points"]]))
        epochs, away, binding, _ = points[-1].T
        reached, lowest = epochs[away < until], binding.argmin()
        hits, there, made = hits + bool(len(reached)), there + (away[lowest] < until), made + own[-1]["steps"]
        when = f"{int(reached[0])}" if len(reached) else "-"
        least = f"{away.min():10.2f}   {binding[lowest]:.2f} at {away[lowest]:.2f}"
        print(f"{seed:4} {own[-1]['epoch']:6} {own[-1]['steps']:6} {when:>7} {least}")
    wall = max(line["seconds"] for line in lines)
    print(
        f"{hits} of {len(points)} reach {until:g} A, {there} have their lowest binding energy there; {made:,} steps in "
        f"{wall:.0f} s, {3600 * made / wall:,.0f} per hour"
    )
    return points


def picture(stem: str, panels: list[str]) -> None:
    """Draw binding energies against RMSD, one panel per file and one colour per seed."""
    from matplotlib.figure import Figure

    found = [(of.partition("=")[2], tell(Path(of.partition("=")[0]), 2.0)) for of in panels]
    for name, is_dark in (("light", False), ("dark", True)):
        ink, paper = INK[is_dark], PAPER[is_dark]
        figure = Figure(figsize=(4.5 * len(found), 3.8), facecolor=paper, layout="constrained")
        for axes, (title, seeds) in zip(figure.subplots(1, len(found), squeeze=False)[0], found, strict=True):
            for points in seeds:
                axes.plot(points[:, 1], points[:, 2], ".", markersize=2.5, markeredgewidth=0)
            lowest = min((points[:, 2].min() for points in seeds), default=0)
            axes.axvline(2, color=ink, linewidth=0.8, linestyle=":")
            axes.set(ylim=(lowest - 2, 5), xlim=(0, None), facecolor=paper)
            axes.set_xlabel("RMSD of the ligand (Å)", color=ink)
            axes.set_ylabel("binding energy (kcal/mol)", color=ink)
            axes.set_title(title, color=ink, fontsize=11)
            axes.tick_params(colors=ink)
            for spine in axes.spines.values():
                spine.set_color(ink)
        figure.savefig(f"{stem}-{name}.png", dpi=110, facecolor=paper)


def main() -> None:
    """Run all seeds and print their results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("control", "complex", "native"):
        parser.add_argument(name, type=Path)
    for name in ("templates", "obc", "data"):
        parser.add_argument(f"--{name}", action="append", default=[], type=Path)
    parser.add_argument("--gb")
    parser.add_argument("--device")
    for name, default in {"seeds": 10, "first-seed": 1, "explorers": 50, "epochs": 25, "steps": 4, "after": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--tolerance", type=float)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--density", default="constant")
    parser.add_argument("--until", type=float, default=2.0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--out", type=Path, default=Path("explore_science.jsonl"))
    if sys.argv[1:2] == ["--draw"]:
        picture(sys.argv[2], sys.argv[3:])
        return
    options = parser.parse_args()
    options.deadline = time.time() + options.seconds
    options.out.write_text("")
    numbers = range(options.first_seed, options.first_seed + options.seeds)
    n = min(options.processes, options.seeds)
    parts = [list(numbers[k::n]) for k in range(n)]
    try:
        if n == 1:
            searched(options, parts[0])
        else:
            with multiprocessing.get_context("spawn").Pool(n) as pool:
                pool.starmap(searched, [(options, part) for part in parts])
    finally:
        tell(options.out, options.until)


if __name__ == "__main__":
    main()
