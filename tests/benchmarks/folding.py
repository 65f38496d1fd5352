"""Folding of CLN025, a hairpin of ten residues (YYDPETGTWY), from an extended chain by solute tempering.

python tests/benchmarks/folding.py prepare FOLDER
python tests/benchmarks/folding.py run FOLDER [--device D] [--seeds 10] [--ladders 8] [--seconds 200] [--json FILE]
    [--pdb FILE]
python tests/benchmarks/folding.py witness FOLDER [--device D] [--replicas 256] [--seconds 200] [--seed 1]
    [--json FILE] [--pdb FILE] [--checkpoint FILE]
python tests/benchmarks/folding.py again FILE ... [--figure STEM] [--data FOLDER] [--pdb FILE]

ff14SBonlysc with GBn2 and mbondi3 radii, for which folding of this peptide was published by Nguyen, Maier, Huang,
Perrone and Simmerling (J. Am. Chem. Soc. 2014, 136, 13959). `prepare` creates it with tleap of AmberTools:
extended.prmtop and .rst7, and native.rst7 with the heavy atoms of 5AWL if the folder contains 5awl.pdb.

Each seed of `run` has --ladders ladders of 8 rungs, 300 to 600 K, REST2 on all atoms, in steps of 4 fs with hydrogens
of 3 Da, friction 1/ps, exchanges every 1 ps; ladders are independent. A seed has folded when a replica at its lowest
rung has an RMSD of CA below 2 A from 5AWL. Prints for each seed the device's seconds and the simulated time until it
folds, and the folded fraction at the lowest rung in the last quarter.

`witness` is plain dynamics at 300 K, half of the replicas from the extended chain, half from the native structure; once
a minute it prints the folded fractions and writes the files. If the checkpoint exists, its run is continued, with
the RMSDs of --json. `again` adds the transitions of runs with different seeds: a chain is folded from below 2 A until
it is above 4 A. With --data it writes the files of data/folding: the curves of the ladders, the CA of 5AWL, and
the structure of --pdb, superposed on these.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from collections.abc import Sequence
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
UNFOLDED = 4.0  # A
REPORT = 60.0  # s between reports of `witness`
LEAP = """source leaprc.protein.ff14SBonlysc
set default PBRadii mbondi3
x = sequence {{ {sequence} }}
saveamberparm x extended.prmtop extended.rst7
{native}quit
"""


def prepare(folder: Path) -> None:
    """Create the topology and both starting structures with tleap."""
    folder.mkdir(parents=True, exist_ok=True)
    crystal, native = folder / "5awl.pdb", ""
    if crystal.exists():
        atoms = [line for line in crystal.read_text().splitlines() if line.startswith("ATOM")]
        (folder / "native.pdb").write_text("\n".join([*atoms, "END", ""]))
        native = "y = loadpdb native.pdb\nsaveamberparm y native.prmtop native.rst7\n"
    (folder / "leap.in").write_text(LEAP.format(sequence=SEQUENCE, native=native))
    subprocess.run(["tleap", "-f", "leap.in"], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def distances(positions: np.ndarray) -> np.ndarray:
    """Return the RMSD of CA from the native structure after superposition, (n,) A. positions : (n, 10, 3)"""
    x = positions - positions.mean(axis=1, keepdims=True)
    y = NATIVE - NATIVE.mean(axis=0)
    sizes = (x**2).sum(axis=(1, 2)) + (y**2).sum()
    covariance = np.einsum("nia,ib->nab", x, y)
    _, values, _ = np.linalg.svd(covariance)
    values[:, 2] *= np.sign(np.linalg.det(covariance))
    return np.asarray(np.sqrt(np.maximum(sizes - 2 * values.sum(axis=1), 0) / len(y)))


def ladders(atoms: pele_ocl.Atoms, given: argparse.Namespace, options: dict[str, Any]) -> dict[str, Any]:
    """Fold by solute tempering. Returns RMSDs of the lowest rungs over time, and the cost of a seed."""
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


def witness(starts: list[pele_ocl.Atoms], given: argparse.Namespace, options: dict[str, Any]) -> None:
    """Run plain dynamics at the lowest temperature from each start, and write RMSDs over time."""
    each = given.replicas // len(starts)
    simulation = pele_ocl.Simulation(starts[0], each * len(starts), temperature=float(RUNGS[0]), **options)
    ca = pele_ocl.selection(starts[0], "name CA")
    found: list[Any] = []
    times: list[float] = []
    if given.checkpoint and given.checkpoint.exists():
        simulation.restore(given.checkpoint)
        before = json.loads(given.json.read_text())["witness"]
        n = sum(time < simulation.time / 1e3 + 1e-6 for time in before["ns"])
        found, times = [np.array(of) for of in before["rmsd"][:n]], before["ns"][:n]
    else:
        for k, start in enumerate(starts):
            simulation.positions[k * each : (k + 1) * each] = np.broadcast_to(start.positions, (each, len(start), 3))
        simulation.draw_velocities()
        simulation.run(EXCHANGE)
    begin, best, reported = time.perf_counter(), np.inf, 0.0
    while (now := time.perf_counter() - begin) < given.seconds or not found:
        simulation.run(EVERY)
        positions = np.asarray(simulation.positions[:])
        found.append(distances(positions[:, ca]).reshape(len(starts), each))
        times.append(simulation.time / 1e3)
        if found[-1][0].min() < best and given.pdb:
            best = found[-1][0].min()
            starts[0].moved(positions[found[-1][0].argmin()]).save(given.pdb)
        if now > reported + REPORT:
            reported = now
            keep_witness(found, times, simulation, given)
    if simulation.errors:
        print(f"{len(simulation.errors)} replicas stopped: {next(iter(simulation.errors.values()))}")
    keep_witness(found, times, simulation, given)


def keep_witness(
    rmsd: list[np.ndarray], times: list[float], simulation: pele_ocl.Simulation, given: argparse.Namespace
) -> None:  # fmt: skip
    """Write and print the results so far, and write the checkpoint."""
    found = {"ns": times, "rmsd": np.round(rmsd, 2).tolist(), "starts": ["extended", "native"][: rmsd[0].shape[0]]}
    if given.json:
        given.json.write_text(json.dumps({"witness": found}))
    if given.checkpoint:
        simulation.save(given.checkpoint)
    print_witnesses([found])


def print_witnesses(witnesses: list[dict[str, Any]]) -> None:
    """Print the folded fraction in each tenth of the time of each run, and the fraction from the transitions of all."""
    of_all, total = np.zeros(4), 0.0  # us
    for found in witnesses:
        rmsd, ns = np.array(found["rmsd"]), found["ns"]
        n = rmsd.shape[1] * rmsd.shape[2]
        us = n * ns[-1] / 1e3
        print(f"plain, {n:,} replicas of {ns[-1]:.2f} ns, {us:.3f} us; share below {FOLDED:g} A by tenths")
        for k, start in enumerate(found["starts"]):
            shares = [(of[:, k] < FOLDED).mean() for of in np.array_split(rmsd, min(10, len(rmsd)))]
            print(f"    from the {start} structure {' '.join(f'{of:.3f}' for of in shares)}; median of the last tenth "
                  f"{np.median(rmsd[-max(1, len(rmsd) // 10) :, k]):.2f} A")  # fmt: skip
        of_times = passages(rmsd) * [1, 1, ns[-1] / len(rmsd) / 1e3, ns[-1] / len(rmsd) / 1e3]
        shares = [share_by_rates(of.sum(axis=0)) for of in np.array_split(of_times, 3)]
        print(f"    share folded by passages in thirds of the time {', '.join(shares)}", flush=True)
        of_all, total = of_all + of_times.sum(axis=0), total + us
    print(f"    in all {total:.2f} us: folded {of_all[0]:.0f} times in {of_all[2]:.2f} us, unfolded {of_all[1]:.0f} "
          f"times in {of_all[3]:.2f} us: share folded {share_by_rates(of_all)}", flush=True)  # fmt: skip


def passages(rmsd: np.ndarray) -> np.ndarray:
    """Count chains that fold, unfold, are unfolded and are folded, (n_times, 4). rmsd : (n_times, n_starts, n) A"""
    found, is_folded = [], rmsd[0] < FOLDED
    for now in rmsd:
        folds, unfolds = ~is_folded & (now < FOLDED), is_folded & (now > UNFOLDED)
        found.append([folds.sum(), unfolds.sum(), (~is_folded).sum(), is_folded.sum()])
        is_folded = (is_folded | folds) & ~unfolds
    return np.array(found, float)


def share_by_rates(of: np.ndarray) -> str:
    """Return the folded fraction at equal rates. of : foldings, unfoldings, time unfolded, time folded"""
    if not of.all():
        return "unknown"
    rates = of[:2] / of[2:]
    share = rates[0] / rates.sum()
    return f"{share:.3f} +- {share * (1 - share) * np.sqrt((1 / of[:2]).sum()):.3f}"


def together(paths: list[Path]) -> dict[str, Any]:
    """Read files: the ladders of the last file that has some, and all witnesses, the longest first.

    A .csv, such as data/folding/cln025.csv, contains curves of ladders: time, fraction, lowest RMSD of each seed.
    """
    found: dict[str, Any] = {"witnesses": []}
    for path in paths:
        if path.suffix == ".csv":
            found["curves"] = np.loadtxt(path, delimiter=",", skiprows=1, unpack=True)
            continue
        of = json.loads(path.read_text())
        found["witnesses"] += [of["witness"]] if "witness" in of else []
        found |= {name: value for name, value in of.items() if name != "witness"}
    found["witnesses"].sort(key=lambda of: -of["ns"][-1])
    return found


def save_data(curves: Sequence[np.ndarray], folder: Path, structure: Path | None) -> None:
    """Write data/folding: cln025.csv, 5awl.csv and, given a structure of `run`, cln025.pdb.

    curves : of ladders, time in ns, folded fraction, and lowest RMSD of each seed
    """
    ns, share, *least = curves
    seeds = (f"least RMSD of seed {k} in A" for k in range(1, len(least) + 1))
    heads = ["time of a replica in ns", f"share of structures at 300 K below {FOLDED:g} A", *seeds]
    rows = [
        ",".join([f"{time:.2f}", f"{part:.4f}", *(f"{rmsd:.2f}" for rmsd in of)])
        for time, part, of in zip(ns, share, np.transpose(least), strict=True)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cln025.csv").write_text("\n".join([",".join(heads), *rows, ""]))
    crystal = NATIVE - NATIVE.mean(axis=0).round(1)
    lines = [",".join(f"{x:.3f}" for x in place) for place in crystal]
    (folder / "5awl.csv").write_text("\n".join(["CA of 5AWL, x,y,z in A", *lines, ""]))
    if structure is not None:
        atoms = pele_ocl.read(structure)
        ca = atoms.positions[pele_ocl.selection(atoms, "name CA")]
        atoms.moved(laid_over(atoms.positions, ca, crystal)).save(folder / "cln025.pdb")


def laid_over(positions: np.ndarray, some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Superpose positions (n, 3): the rigid motion that best fits some of them (m, 3) to others (m, 3)."""
    left, _, right = np.linalg.svd((some - some.mean(axis=0)).T @ (others - others.mean(axis=0)))
    left[:, 2] *= np.sign(np.linalg.det(left @ right))
    return np.asarray((positions - some.mean(axis=0)) @ left @ right + others.mean(axis=0))


def show(found: dict[str, Any], given: argparse.Namespace) -> None:
    """Print the results, draw them with the first of the witnesses, and write the data of the ladders."""
    plain = found.get("witnesses", [])
    if "ladders" in found:
        rmsd = np.array(found["ladders"]["rmsd"])
        found["curves"] = [found["ladders"]["ns"], (rmsd < FOLDED).mean(axis=(1, 2)), *rmsd.min(axis=2).T]
        print_ladders(found["ladders"])
    if plain:
        print_witnesses(plain)
    if given.data:
        save_data(found["curves"], given.data, given.pdb)
    if given.figure:
        for theme, (background, text, grid, *_) in THEMES.items():
            draw(
                found.get("curves"),
                next(iter(plain), None),
                Path(f"{given.figure}-{theme}.png"),
                background,
                text,
                grid,
            )


def print_ladders(of: dict[str, Any]) -> None:
    rmsd, ns = np.array(of["rmsd"]), of["ns"]
    print(
        f"{of['rows']:,} replicas, {ns[-1]:.2f} ns each, {of['rows'] * ns[-1] / 1e3:.3f} us in all, in "
        f"{of['seconds']:.0f} s; exchanges accepted {min(of['accepted']):.2f} to {max(of['accepted']):.2f}"
    )
    print("seed  lowest RMSD, A  first below 2 A: s of the device, ns of a replica   share folded in the last quarter")
    for k in range(rmsd.shape[1]):
        first = f"{of['first_seconds'][k]:8.0f} {of['first_ns'][k]:8.2f}"
        print(f"{k:4d} {rmsd[:, k].min():14.2f} {first:>40} {of['folded_share'][k]:30.2f}")
    n = int(np.isfinite(np.array(of["first_seconds"], float)).sum())
    print(f"{n} of {rmsd.shape[1]} seeds came below {FOLDED:g} A at the lowest rung")


def draw(
    curves: Sequence[np.ndarray] | None, plain: dict[str, Any] | None, path: Path, background: str, text: str, grid: str
) -> None:  # fmt: skip
    """Draw the lowest RMSD at the lowest rung of each seed, and the folded fraction, also of plain replicas.

    curves : of ladders, time in ns, folded fraction, and lowest RMSD of each seed
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.4), dpi=110, facecolor=background, layout="constrained")
    left, right = figure.subplots(1, 2)
    if curves is not None:
        ns, share, *least = curves
        left.plot(ns, np.transpose(least), linewidth=0.8)
        right.plot(ns, share, color=text, label="REST2, at 300 K")
    if plain:
        values = np.array(plain["rmsd"])
        for k, start in enumerate(plain["starts"]):
            right.plot(plain["ns"], (values[:, k] < FOLDED).mean(axis=1), linewidth=1.2,
                       label=f"plain, from the {start} structure")  # fmt: skip
    left.axhline(FOLDED, color=text, linewidth=0.8, linestyle="--")
    left.set_ylabel("least CA RMSD of a seed, Å", color=text)
    right.set_ylabel("share below 2 Å", color=text)
    right.set_ylim(0, 1)
    right.legend(
        loc="upper left", bbox_to_anchor=(0.02, 0.88), fontsize=8, labelcolor=text, facecolor=background, framealpha=0.6
    )
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
    parser.add_argument("what", choices=("prepare", "run", "witness", "again"))
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--device", default=os.environ.get("PELE_OCL_DEVICE") or None)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--ladders", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--replicas", type=int, default=256)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure")
    parser.add_argument("--pdb", type=Path)
    parser.add_argument("--data", type=Path, help="folder of the files of data/folding")
    parser.add_argument("--checkpoint", type=Path, help=".npz; with --json")
    given = parser.parse_args()
    folder = given.paths[0]
    if given.what == "prepare":
        prepare(folder)
        return
    if given.what == "again":
        show(together(given.paths), given)
        return
    model = pele_ocl.SolventModel(gb="gbn2")
    starts = [pele_ocl.read(folder / "extended.prmtop", coordinates=folder / "extended.rst7")]
    if (folder / "native.rst7").exists():
        starts.append(pele_ocl.read(folder / "extended.prmtop", coordinates=folder / "native.rst7"))
    starts = [pele_ocl.minimize(of, max_iterations=300, model=model, device=given.device).atoms for of in starts]
    options: dict[str, Any] = dict(
        timestep=TIMESTEP, hydrogen_mass=3.0, constraints="hbonds", device=given.device, model=model, seed=given.seed
    )
    if given.what == "witness":
        witness(starts, given, options)
        return
    found: dict[str, Any] = {"ladders": ladders(starts[0], given, options)}
    if given.json:
        given.json.write_text(json.dumps(found))
    show(found, given)


if __name__ == "__main__":
    main()
