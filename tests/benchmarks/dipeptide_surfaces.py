"""Free energy of phi and psi of alanine dipeptide in GBn2 by several methods, each from two starts, beside each other.

python tests/benchmarks/dipeptide_surfaces.py [--device D] [--replicas 4096] [--picoseconds 500] [--discard 50]
    [--methods plain,temperature,rest2,umbrella,metadynamics] [--gb gbn2] [--save surfaces.npz]

Amber99SB, 300 K, 2 fs, bonds to hydrogen held, friction 1/ps. Starts are minima with phi < 0 and phi > 0. So many
replicas make so many picoseconds each; `umbrella` has windows 30 degrees apart, as many replicas of all as there is
room for; `metadynamics` has 64 walkers and as many steps in all. Prints for each pair of surfaces the greatest and the
root mean square difference over bins of 15 degrees that are below 5 kcal/mol in both, less the mean difference, and the
seconds that each took.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from dipeptide import LADDER, TORSIONS, in_each_basin, pdb_of_dipeptide

import pele_ocl

EDGES = [np.radians(np.arange(-180, 181, 15))] * 2
VARIABLES = [pele_ocl.TorsionVariable(of) for of in TORSIONS]
SEEN = pele_ocl.GridBias(VARIABLES, np.zeros((4, 4, 4)), name="seen")  # no energy: it shows phi and psi
TEMPERATURE, MOST, EVERY, WALKERS = 300.0, 5.0, 250, 64


def surface(samples: list[np.ndarray]) -> np.ndarray:
    """Free energy (24, 24) of samples (n, 2)."""
    return pele_ocl.free_energy(np.concatenate(samples), EDGES, TEMPERATURE).energies


def seen(simulation: pele_ocl.Simulation, steps: int, discard: int, *, cold: bool) -> np.ndarray:
    """Run, and take samples of replicas that are at the lowest rung, or of all."""
    simulation.run(discard)
    found: list[np.ndarray] = []

    def look(of: pele_ocl.Simulation) -> None:
        values = of.variables("seen")
        found.append(values[of.rungs == 0] if cold else values)

    simulation.run(steps, every=EVERY, call=look)
    return surface(found)


def plain(atoms: pele_ocl.Atoms, n: int, steps: int, discard: int, options: dict[str, Any]) -> np.ndarray:
    return seen(pele_ocl.Simulation(atoms, n, terms=[SEEN], **options), steps, discard, cold=False)


def temperature(atoms: pele_ocl.Atoms, n: int, steps: int, discard: int, options: dict[str, Any]) -> np.ndarray:
    n = n // len(LADDER) * len(LADDER)
    given = {**options, "temperature": list(LADDER), "exchange_every": 500}
    return seen(pele_ocl.Simulation(atoms, n, terms=[SEEN], **given), steps, discard, cold=True)


def rest2(atoms: pele_ocl.Atoms, n: int, steps: int, discard: int, options: dict[str, Any]) -> np.ndarray:
    given = {name: value for name, value in options.items() if name != "temperature"}
    simulation = pele_ocl.rest2(
        atoms, list(LADDER), ladders=n // len(LADDER), exchange_every=500, terms=[SEEN], **given
    )  # fmt: skip
    return seen(simulation, steps, discard, cold=True)


def umbrella(atoms: pele_ocl.Atoms, n: int, steps: int, discard: int, options: dict[str, Any]) -> np.ndarray:
    places = np.radians(np.arange(-180, 180, 30))
    centers = np.stack(np.meshgrid(places, places), axis=-1).reshape(-1, 2)
    centers = np.tile(centers, (max(1, n // len(centers)), 1))
    run = pele_ocl.umbrella(
        atoms, VARIABLES, centers, 5.0, steps=steps, sample_every=10 * EVERY, equilibrate=discard, minimize=50,
        **options,
    )  # fmt: skip
    return run.free_energy(EDGES, blocks=2).energies


def metadynamics(atoms: pele_ocl.Atoms, n: int, steps: int, discard: int, options: dict[str, Any]) -> np.ndarray:
    bias = pele_ocl.Metadynamics(VARIABLES, [0.35, 0.35], 0.05, 500, bias_factor=10, shared=True)
    simulation = pele_ocl.Simulation(atoms, WALKERS, terms=[bias], **options)
    simulation.run(max(1, n // WALKERS) * steps)
    nodes, energies = simulation.metadynamics_surface("metadynamics")
    kt = pele_ocl.units.BOLTZMANN_KCAL * TEMPERATURE
    sums, counts = np.zeros((24, 24)), np.zeros((24, 24))
    places = [np.clip(np.digitize(of, edges) - 1, 0, 23) for of, edges in zip(nodes, EDGES, strict=True)]
    np.add.at(sums, np.ix_(*places), np.exp(-energies / kt))
    np.add.at(counts, np.ix_(*places), 1.0)
    found = -kt * np.log(sums / counts)
    return np.asarray(found - found.min())


METHODS: dict[str, Callable[..., np.ndarray]] = {
    "plain": plain, "temperature": temperature, "rest2": rest2, "umbrella": umbrella, "metadynamics": metadynamics,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--replicas", type=int, default=4096)
    parser.add_argument("--picoseconds", type=float, default=500)
    parser.add_argument("--discard", type=float, default=50)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--gb", default="gbn2")
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    steps, discard = (round(ps / 0.002) for ps in (given.picoseconds, given.discard))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "dipeptide.pdb"
        path.write_text(pdb_of_dipeptide())
        atoms = pele_ocl.read(path)
    model = pele_ocl.SolventModel(gb=given.gb)
    options = dict(
        temperature=TEMPERATURE, timestep=2.0, constraints="hbonds", device=given.device, model=model, seed=1
    )  # fmt: skip
    found: dict[str, np.ndarray] = {}
    for start, molecule in zip(("left", "right"), in_each_basin(atoms, given.device), strict=True):
        for method in given.methods.split(","):
            begin = time.perf_counter()
            found[f"{method} {start}"] = METHODS[method](molecule, given.replicas, steps, discard, options)
            print(f"{method:13} from the {start:5}: {time.perf_counter() - begin:8.1f} s", flush=True)
    names = list(found)
    print(f"{'difference, kcal/mol':44} greatest      rms   bins")
    for k, one in enumerate(names):
        for other in names[k + 1 :]:
            low = (found[one] < MOST) & (found[other] < MOST)
            away = found[one][low] - found[other][low]
            away = away - away.mean() if len(away) else np.array([np.nan])
            rms = np.sqrt((away**2).mean())
            print(f"{one:20} {other:22} {np.abs(away).max():8.3f} {rms:8.3f} {low.sum():6d}")
    if given.save:
        np.savez(given.save, **{name.replace(" ", "_"): of for name, of in found.items()})


if __name__ == "__main__":
    main()
