"""CLN025, a hairpin of ten residues (YYDPETGTWY), folded from an extended chain by solute tempering.

python tests/benchmarks/folding.py prepare FOLDER
python tests/benchmarks/folding.py run FOLDER [--device D] [--seeds 10] [--ladders 8] [--seconds 200] [--witness 60]
    [--json FILE] [--figure STEM] [--pdb FILE]
python tests/benchmarks/folding.py again FILE [--figure STEM]

ff14SBonlysc with GBn2 and mbondi3 radii, for which Nguyen, Maier, Huang, Perrone and Simmerling published folding of
this peptide (J. Am. Chem. Soc. 2014, 136, 13959). `prepare` makes it with tleap of AmberTools: extended.prmtop and
.rst7, and native.rst7 with the heavy atoms of 5AWL where the folder has 5awl.pdb.

Each seed has its ladders of 8 rungs, 300 to 600 K, REST2 on all atoms, in steps of 4 fs with hydrogens of 3 Da,
friction 1/ps, exchanges every 1 ps; random numbers of ladders are independent. A seed has folded when a replica at its
lowest rung has an RMSD of CA below 2 A from 5AWL. `--witness` seconds of plain dynamics at 300 K follow, half of 256
replicas from the extended chain, half from the native structure. Prints for each seed the device's seconds and the
simulated time until it folds, and the share of folded replicas at the lowest rung in the last quarter.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness.drift_chart import THEMES

import pele_ocl

SEQUENCE = "NTYR TYR ASP PRO GLU THR GLY THR TRP CTYR"
NATIVE = np.array(  # CA of 5AWL, A (Honda et al. 2008)
    [[24.935, 20.652, 10.774], [21.801, 19.381, 9.017], [18.477, 20.539, 10.432], [16.223, 17.660, 11.537],
     [13.040, 19.289, 10.212], [14.200, 20.806, 6.941], [17.256, 18.676, 6.039], [19.242, 21.760, 5.125],
     [22.762, 22.680, 6.241], [23.135, 25.467, 8.794]]
)  # fmt: skip
RUNGS = np.geomspace(300.0, 600.0, 8)
FOLDED = 2.0  # A
TIMESTEP, EXCHANGE, EVERY = 4.0, 250, 2500  # fs, steps, steps between looks
WITNESSES = 256
LEAP = """source leaprc.protein.ff14SBonlysc
set default PBRadii mbondi3
x = sequence {{ {sequence} }}
saveamberparm x extended.prmtop extended.rst7
{native}quit
"""


def prepare(folder: Path) -> None:
    """Make the topology and the two starts by tleap."""
    folder.mkdir(parents=True, exist_ok=True)
    crystal, native = folder / "5awl.pdb", ""
    if crystal.exists():
        atoms = [line for line in crystal.read_text().splitlines() if line.startswith("ATOM")]
        (folder / "native.pdb").write_text("\n".join([*atoms, "END", ""]))
        native = "y = loadpdb native.pdb\nsaveamberparm y native.prmtop native.rst7\n"
    (folder / "leap.in").write_text(LEAP.format(sequence=SEQUENCE, native=native))
    subprocess.run(["tleap", "-f", "leap.in"], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def distances(positions: np.ndarray) -> np.ndarray:
    """RMSD of CA from the native structure after superposition, (n,) A. positions : (n, 10, 3)"""
    x = positions - positions.mean(axis=1, keepdims=True)
    y = NATIVE - NATIVE.mean(axis=0)
    sizes = (x**2).sum(axis=(1, 2)) + (y**2).sum()
    covariance = np.einsum("nia,ib->nab", x, y)
    _, values, _ = np.linalg.svd(covariance)
    values[:, 2] *= np.sign(np.linalg.det(covariance))
    return np.asarray(np.sqrt(np.maximum(sizes - 2 * values.sum(axis=1), 0) / len(y)))


def ladders(atoms: pele_ocl.Atoms, given: argparse.Namespace, options: dict[str, Any]) -> dict[str, Any]:
    """Fold by solute tempering. Returns RMSDs of the lowest rungs by time, and what a seed took."""
    simulation = pele_ocl.rest2(
        atoms, RUNGS.tolist(), ladders=given.seeds * given.ladders, exchange_every=EXCHANGE, **options
    )  # fmt: skip
    ca = pele_ocl.selection(atoms, "name CA")
    simulation.run(EXCHANGE)
    begin, best, found, times = time.perf_counter(), np.inf, [], []
    first = np.full((given.seeds, 2), np.nan)  # seconds, ns
    while (now := time.perf_counter() - begin) < given.seconds or not found:
        simulation.run(EVERY)
        cold = np.flatnonzero(simulation.rungs == 0)
        positions = np.asarray(simulation.positions[cold])
        values = distances(positions[:, ca]).reshape(given.seeds, given.ladders)
        found.append(values)
        times.append(simulation.time / 1e3)
        new = np.isnan(first[:, 0]) & (values.min(axis=1) < FOLDED)
        first[new] = now, times[-1]
        if values.min() < best and given.pdb:
            best = values.min()
            atoms.moved(positions[values.ravel().argmin()]).save(given.pdb)
    if simulation.errors:
        print(f"{len(simulation.errors)} replicas stopped: {next(iter(simulation.errors.values()))}")
    tried, accepted = simulation.exchanges
    rmsd = np.array(found)
    late = rmsd[-max(1, len(rmsd) // 4) :]
    return {
        "rows": len(simulation), "seconds": time.perf_counter() - begin, "ns": times, "rmsd": rmsd.tolist(),
        "first_seconds": first[:, 0].tolist(), "first_ns": first[:, 1].tolist(),
        "folded_share": (late < FOLDED).mean(axis=(0, 2)).tolist(), "accepted": (accepted / tried).tolist(),
    }  # fmt: skip


def witness(starts: list[pele_ocl.Atoms], given: argparse.Namespace, options: dict[str, Any]) -> dict[str, Any]:
    """Run plain dynamics at the lowest temperature from each start. Returns RMSDs by time and start."""
    each = WITNESSES // len(starts)
    simulation = pele_ocl.Simulation(starts[0], WITNESSES, temperature=float(RUNGS[0]), **options)
    for k, start in enumerate(starts):
        simulation.positions[k * each : (k + 1) * each] = np.broadcast_to(start.positions, (each, len(start), 3))
    simulation.draw_velocities()
    ca = pele_ocl.selection(starts[0], "name CA")
    simulation.run(EXCHANGE)
    begin, found, times = time.perf_counter(), [], []
    while time.perf_counter() - begin < given.witness or not found:
        simulation.run(EVERY)
        found.append(distances(np.asarray(simulation.positions[:])[:, ca]).reshape(len(starts), each))
        times.append(simulation.time / 1e3)
    return {"ns": times, "rmsd": np.array(found).tolist(), "starts": ["extended", "native"][: len(starts)]}


def show(found: dict[str, Any], figure: str | None) -> None:
    """Print what was found, and draw it."""
    of = found["ladders"]
    rmsd, ns = np.array(of["rmsd"]), of["ns"]
    print(
        f"{of['rows']:,} replicas, {ns[-1]:.2f} ns each, {of['rows'] * ns[-1] / 1e3:.3f} us in all, in "
        f"{of['seconds']:.0f} s; exchanges accepted {min(of['accepted']):.2f} to {max(of['accepted']):.2f}"
    )
    print("seed  least RMSD, A   first below 2 A: s of the device, ns of a replica   share folded in the last quarter")
    for k in range(rmsd.shape[1]):
        first = f"{of['first_seconds'][k]:8.0f} {of['first_ns'][k]:8.2f}"
        print(f"{k:4d} {rmsd[:, k].min():14.2f} {first:>40} {of['folded_share'][k]:30.2f}")
    n = int(np.isfinite(np.array(of["first_seconds"], float)).sum())
    print(f"{n} of {rmsd.shape[1]} seeds came below {FOLDED:g} A at the lowest rung")
    if plain := found.get("witness"):
        values = np.array(plain["rmsd"])
        late = values[-max(1, len(values) // 4) :]
        for k, start in enumerate(plain["starts"]):
            print(
                f"plain, {values.shape[2]} replicas of {plain['ns'][-1]:.2f} ns from the {start} structure: share "
                f"below {FOLDED:g} A in the last quarter {(late[:, k] < FOLDED).mean():.3f}, median RMSD "
                f"{np.median(late[:, k]):.2f} A"
            )
    if figure:
        for theme, (background, text, grid, *_) in THEMES.items():
            draw(rmsd, ns, Path(f"{figure}-{theme}.png"), background, text, grid)


def draw(rmsd: np.ndarray, ns: list[float], path: Path, background: str, text: str, grid: str) -> None:
    """Draw the least RMSD at the lowest rung of each seed, and the share of replicas that are folded."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.4), dpi=110, facecolor=background, layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(ns, rmsd.min(axis=2), linewidth=0.8)
    left.axhline(FOLDED, color=text, linewidth=0.8, linestyle="--")
    left.set_ylabel("least CA RMSD of a seed, Å", color=text)
    right.plot(ns, (rmsd < FOLDED).mean(axis=(1, 2)), color=text)
    right.set_ylabel("share below 2 Å at 300 K", color=text)
    for axes in (left, right):
        axes.set(facecolor=background)
        axes.set_xlabel("time of a replica, ns", color=text)
        axes.tick_params(colors=text)
        axes.grid(color=grid, linewidth=0.5)
        for spine in axes.spines.values():
            spine.set_color(text)
    figure.savefig(path, facecolor=background)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("prepare", "run", "again"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--device", default=os.environ.get("PELE_OCL_DEVICE") or None)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--ladders", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--witness", type=float, default=60)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure")
    parser.add_argument("--pdb", type=Path)
    given = parser.parse_args()
    if given.what == "prepare":
        prepare(given.path)
        return
    if given.what == "again":
        show(json.loads(given.path.read_text()), given.figure)
        return
    model = pele_ocl.SolventModel(gb="gbn2")
    extended = pele_ocl.read(given.path / "extended.prmtop", coordinates=given.path / "extended.rst7")
    starts = [extended]
    if (given.path / "native.rst7").exists():
        starts.append(pele_ocl.read(given.path / "extended.prmtop", coordinates=given.path / "native.rst7"))
    starts = [pele_ocl.minimize(of, max_iterations=300, model=model, device=given.device).atoms for of in starts]
    options: dict[str, Any] = dict(
        timestep=TIMESTEP, hydrogen_mass=3.0, constraints="hbonds", device=given.device, model=model, seed=1
    )
    found: dict[str, Any] = {"ladders": ladders(starts[0], given, options)}
    if given.witness:
        found["witness"] = witness(starts, given, options)
    if given.json:
        given.json.write_text(json.dumps(found))
    show(found, given.figure)


if __name__ == "__main__":
    main()
