"""Alanine dipeptide at 300 K: populations of phi and psi basins from plain dynamics, replica exchange, and OpenMM.

python tests/benchmarks/dipeptide.py shares [--device D] [--platform CPU] [--nanoseconds 4] [--replicas 16]
    [--discard 100] [--plain] [--openmm 1]
python tests/benchmarks/dipeptide.py passages [--device D] [--replicas 256] [--seconds 60] [--discard 100]
    [--right 0.5]
python tests/benchmarks/dipeptide.py passages --processes 8 [--platform Reference] [--seconds 60] [--discard 100]
python tests/benchmarks/dipeptide.py rungs [--device D] [--replicas 256] [--seconds 60] [--discard 100]
    [--right 0.5]
python tests/benchmarks/dipeptide.py map [--device D] [--replicas 4096] [--seconds 60]
    [--figure docs/figures/dipeptide-map]

All use Amber99SB with OBC2, steps of 2 fs except in `map`, friction 1/ps, and constrained bonds to hydrogen. The first
picoseconds of each replica are discarded.

`shares` prints the populations in pele-ocl and OpenMM, starting extended, with errors from replicas, ladders and 20
blocks in OpenMM. There are as many ladders as replicas, and --nanoseconds are at 300 K; 0 skips a program.

`passages` starts a fraction --right of the replicas at phi > 0, the others at phi < 0. It counts the transitions
between these. Their rates k determine the population of phi > 0, k_in / (k_in + k_out), independent of the starting
points. With --processes, it uses OpenMM, with one replica per process.

`rungs` prints the mean energy and the populations at each temperature of a ladder, from replica exchange and from plain
replicas at this temperature. There are as many plain replicas as ladders, and a fraction starts at phi > 0.

`map` draws the map of phi and psi at 300 K from replica exchange with --replicas in total, steps of 4 fs and hydrogens
of 3 Da: after the first second of wall time, including all steps, and from the second half of --seconds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from dynamics import OpenMM, read
from harness.torsion_chart import draw_torsions

import pele_ocl

# Acetyl-alanine-N-methylamide, extended; names as force fields have them.
DIPEPTIDE = """\
ACE HH31 2.000 1.000 0.000|ACE CH3 2.000 2.090 0.000|ACE HH32 1.486 2.454 0.890|ACE HH33 1.486 2.454 -0.890
ACE C 3.427 2.641 0.000|ACE O 4.391 1.877 0.000|ALA N 3.555 3.970 0.000|ALA H 2.733 4.556 0.000
ALA CA 4.853 4.614 0.000|ALA HA 5.408 4.316 0.890|ALA CB 5.661 4.221 -1.232|ALA HB1 5.123 4.521 -2.131
ALA HB2 6.630 4.719 -1.206|ALA HB3 5.809 3.141 -1.241|ALA C 4.713 6.129 0.000|ALA O 3.601 6.653 0.000
NME N 5.846 6.835 0.000|NME H 6.737 6.359 0.000|NME CH3 5.846 8.284 0.000|NME HH31 4.819 8.648 0.000
NME HH32 6.360 8.648 0.890|NME HH33 6.360 8.648 -0.890"""
TORSIONS = ((4, 6, 8, 14), (6, 8, 14, 16))  # phi, psi
TURNED = slice(9, 22)  # atoms that rotate with phi, beyond the bond of N and CA
LADDER = (300.0, 358.0, 427.0, 510.0)  # K
EXCHANGE_EVERY = 100  # steps
EVERY = 250  # steps between samples
REPORTS = 6  # of `passages`
BLOCKS = 20  # of the run of OpenMM, each taken as one number
# Passages end well inside a basin of phi, degrees, so that a turn at the barrier is none.
INSIDE_RIGHT, INSIDE_LEFT = (30.0, 100.0), (-150.0, -40.0)
BASINS = {
    "alpha": lambda phi, psi: (phi < 0) & (psi > -120) & (psi < 60),
    "beta, PII": lambda phi, psi: (phi < 0) & ((psi <= -120) | (psi >= 60)),
    "phi > 0": lambda phi, _: phi >= 0,
    "phi from 0 to 130": lambda phi, _: (phi >= 0) & (phi < 130),
}


def pdb_of_dipeptide() -> str:
    """Return the dipeptide as the text of a PDB file."""
    numbers, lines = {"ACE": 1, "ALA": 2, "NME": 3}, []
    for k, words in enumerate(text.split() for line in DIPEPTIDE.splitlines() for text in line.split("|")):
        residue, name, x, y, z = words
        written = name if len(name) == 4 else f" {name:3s}"
        lines.append(
            f"ATOM  {k + 1:5d} {written} {residue} A{numbers[residue]:4d}    {float(x):8.3f}{float(y):8.3f}"
            f"{float(z):8.3f}  1.00  0.00          {name[0]:>2s}"
        )
    return "\n".join([*lines, "END"]) + "\n"


def torsions(positions: np.ndarray) -> np.ndarray:
    """Return the torsions phi and psi (..., 2) in degrees from positions (..., 22, 3)."""
    found = []
    for torsion in TORSIONS:
        a, b, c, d = (positions[..., k, :] for k in torsion)
        first, second, third = b - a, c - b, d - c
        one, two = np.cross(first, second), np.cross(second, third)
        sine = np.linalg.norm(second, axis=-1) * (first * two).sum(axis=-1)
        found.append(np.degrees(np.arctan2(sine, (one * two).sum(axis=-1))))
    return np.stack(found, axis=-1)


def minimized(atoms: pele_ocl.Atoms, device: str | None) -> pele_ocl.Atoms:
    """Return the dipeptide at the minimum near its positions."""
    return pele_ocl.minimize(atoms, max_iterations=200, device=device).atoms


def in_each_basin(atoms: pele_ocl.Atoms, device: str | None) -> list[pele_ocl.Atoms]:
    """Return minima with phi < 0 and with phi > 0."""
    from scipy.spatial.transform import Rotation

    first, second = (atoms.positions[k] for k in TORSIONS[0][1:3])
    by = np.radians(60.0 - torsions(atoms.positions)[0])
    turn = Rotation.from_rotvec(by * (second - first) / np.linalg.norm(second - first))
    turned = atoms.positions.copy()
    turned[TURNED] = second + turn.apply(turned[TURNED] - second)
    found = [minimized(atoms, device), minimized(atoms.moved(turned), device)]
    phi = [torsions(each.positions)[0] for each in found]
    assert phi[0] < 0 < phi[1] < 130, phi
    return found


def all_positions(simulation: pele_ocl.Simulation) -> np.ndarray:
    """Return the positions of all rows, (n_rows, n, 3) A."""
    return np.asarray(simulation.positions[:])


def begun(starts: list[pele_ocl.Atoms], options: argparse.Namespace, each: int) -> pele_ocl.Ensemble:
    """Return the rows that start at phi < 0, then those at phi > 0. each : rows per replica or ladder"""
    n_right = round(options.right * options.replicas)
    counts = {start: each * n for start, n in zip(starts, (options.replicas - n_right, n_right), strict=True) if n}
    return pele_ocl.Ensemble(list(counts), list(counts.values()), device=options.device)


def told(who: str, angles: np.ndarray, seconds: float) -> None:
    """Print the populations of basins; angles : (n_blocks, n, 2) of independent blocks"""
    shares = {name: inside(angles[..., 0], angles[..., 1]).mean(axis=1) for name, inside in BASINS.items()}
    with np.errstate(invalid="ignore"):
        shares["alpha of phi < 0"] = shares["alpha"] / (1 - shares["phi > 0"])
    parts = []
    for name, values in shares.items():
        there = values[np.isfinite(values)]
        parts.append(f"{name} {there.mean():.4f} +- {error_of(there):.4f}")
    print(f"{who}: {', '.join(parts)}; {seconds:.0f} s", flush=True)


def error_of(values: np.ndarray) -> float:
    """Return the standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def shares(options: argparse.Namespace) -> None:
    """Print populations of phi and psi basins: pele-ocl with and without exchange, and OpenMM."""
    text, n = pdb_of_dipeptide(), options.replicas
    atoms = minimized(read(text), options.device)
    steps = round(options.nanoseconds * 1e6 / 2 / n)
    ways = {"300 K": {}, "exchange 300 to 510 K": {"temperature": LADDER, "exchange_every": EXCHANGE_EVERY}}
    if options.plain:
        del ways["exchange 300 to 510 K"]
    for who, more in ways.items() if steps else ():
        begin = time.perf_counter()
        replicas = n * (len(LADDER) if more else 1)
        simulation = pele_ocl.Simulation(
            atoms, replicas, constraints="hbonds", seed=options.seed, device=options.device, **more
        )
        simulation.run(round(500 * options.discard))
        frames = []
        for _ in range(steps // EVERY):
            simulation.run(EVERY)
            angles = torsions(all_positions(simulation))
            frames.append(angles[in_ladder(simulation)[:, 0]] if more else angles)
        told(
            f"ours, {who}, {replicas} replicas, {n * steps * 2e-6:.2f} ns at 300 K", np.swapaxes(frames, 0, 1),
            time.perf_counter() - begin,
        )  # fmt: skip
    if options.openmm:
        shares_of_openmm(options, text, atoms)


def in_ladder(simulation: pele_ocl.Simulation) -> np.ndarray:
    """Return the rows by ladder and rung, (n_ladders, n_rungs)."""
    rungs = simulation.rungs.reshape(-1, len(LADDER))
    return np.argsort(rungs, axis=1) + len(LADDER) * np.arange(len(rungs))[:, None]


def shares_of_openmm(options: argparse.Namespace, text: str, atoms: pele_ocl.Atoms) -> None:
    """Print the populations of one OpenMM run."""
    begin = time.perf_counter()
    theirs = OpenMM(
        text, options.platform, True, lambda openmm: openmm.LangevinMiddleIntegrator(300, 1, 0.002),
        seed=options.seed + 1,
    )  # fmt: skip
    theirs.context.setPositions(atoms.positions / 10)
    theirs.context.setVelocitiesToTemperature(300, options.seed + 1)
    theirs.integrator.step(round(500 * options.discard))
    n_frames = round(options.openmm * 1e6 / 2 / EVERY) // (10 * BLOCKS) * 10 * BLOCKS
    frames: list[np.ndarray] = []
    for _ in range(10):  # a long run tells what it has so far
        for _ in range(n_frames // 10):
            theirs.integrator.step(EVERY)
            frames.append(torsions(theirs.positions()))
        sampled = len(frames) * EVERY * 2e-6
        told(
            f"OpenMM's {options.platform}, {sampled:g} ns", np.reshape(frames, (BLOCKS, -1, 2)),
            time.perf_counter() - begin,
        )  # fmt: skip


class Passages:
    """Transitions of replicas between phi < 0 and phi > 0, and the time in each, from samples of phi.

    counts, dwelt : (2, n) for phi < 0 and phi > 0 of each replica; dwelt : number of samples
    """

    def __init__(self, phi: np.ndarray) -> None:
        self.is_right = (phi >= 0) & (phi < 130)
        self.counts, self.dwelt = np.zeros((2, len(phi))), np.zeros((2, len(phi)))

    def add(self, phi: np.ndarray) -> None:
        """Add a sample of all replicas."""
        self.dwelt += [~self.is_right, self.is_right]
        goes_in = ~self.is_right & (phi > INSIDE_RIGHT[0]) & (phi < INSIDE_RIGHT[1])
        goes_out = self.is_right & (phi > INSIDE_LEFT[0]) & (phi < INSIDE_LEFT[1])
        self.counts += [goes_in, goes_out]
        self.is_right ^= goes_in | goes_out


def passages(options: argparse.Namespace) -> None:
    """Print the transitions between phi < 0 and phi > 0, and the population of phi > 0 by time, for both starts."""
    starts = in_each_basin(read(pdb_of_dipeptide()), options.device)
    if options.processes:
        passages_of_openmm(options, [start.positions for start in starts])
        return
    n_left = options.replicas - round(options.right * options.replicas)
    simulation = pele_ocl.Simulation(begun(starts, options, 1), constraints="hbonds", seed=options.seed)
    simulation.run(round(500 * options.discard))
    begin, reports, n, recent = time.perf_counter(), 0, 0, []
    found = Passages(torsions(all_positions(simulation))[:, 0])
    while (now := time.perf_counter() - begin) < options.seconds:
        simulation.run(EVERY)
        phi = torsions(all_positions(simulation))[:, 0]
        found.add(phi)
        is_right = (phi >= 0) & (phi < 130)
        recent.append([part.mean() if len(part) else 0 for part in (is_right[:n_left], is_right[n_left:])])
        n += 1
        if now > (reports + 1) * options.seconds / REPORTS:
            told_passages(f"{n * EVERY * 2e-6:.2f} ns of {options.replicas:,} replicas", found.counts, found.dwelt)
            told_lately(np.mean(recent, axis=0))
            reports, recent = reports + 1, []
    told_passages(f"{n * EVERY * 2e-6:.2f} ns of {options.replicas:,} replicas", found.counts, found.dwelt)


def passages_of_openmm(options: argparse.Namespace, starts: list[np.ndarray]) -> None:
    """Print the transitions of OpenMM runs, one per process, starting alternately in each basin."""
    from multiprocessing import get_context

    common = options.platform, options.seconds, options.discard
    tasks = [(starts[k % 2], *common, options.seed + k + 1) for k in range(options.processes)]
    with get_context("spawn").Pool(options.processes) as pool:
        found = pool.map(run_of_openmm, tasks, chunksize=1)
    counts, dwelt = (np.concatenate([getattr(of, name) for of in found], axis=1) for name in ("counts", "dwelt"))
    told_passages(f"OpenMM's {options.platform}, {options.processes} runs", counts, dwelt)


def run_of_openmm(task: tuple[np.ndarray, str, float, float, int]) -> Passages:
    """Count the transitions of an OpenMM run of this many seconds."""
    start, platform, seconds, discard, seed = task
    theirs = OpenMM(
        pdb_of_dipeptide(), platform, True, lambda openmm: openmm.LangevinMiddleIntegrator(300, 1, 0.002), seed=seed
    )
    theirs.context.setPositions(start / 10)
    theirs.context.setVelocitiesToTemperature(300, seed)
    theirs.integrator.step(round(500 * discard))
    begin, found = time.perf_counter(), Passages(torsions(theirs.positions())[:1])
    while time.perf_counter() < begin + seconds:
        theirs.integrator.step(EVERY)
        found.add(torsions(theirs.positions())[:1])
    return found


def told_passages(who: str, counts: np.ndarray, dwelt: np.ndarray) -> None:
    """Print transition rates, and the resulting population."""
    times = dwelt.sum(axis=1) * EVERY * 2e-6  # ns
    n = counts.sum(axis=1)
    k_in, k_out = n / np.maximum(times, 1e-9)
    share = k_in / max(k_in + k_out, 1e-9)
    error = share * (1 - share) * np.sqrt((1 / np.maximum(n, 1)).sum())
    print(
        f"{who}: {n[0]:.0f} in of {times[0]:.0f} ns, {n[1]:.0f} out of {times[1]:.0f} ns; k_in {k_in:.4f}, k_out "
        f"{k_out:.4f} 1/ns; phi from 0 to 130 by rates {share:.4f} +- {error:.4f}",
        flush=True,
    )


def told_lately(shares: np.ndarray) -> None:
    """Print the populations of phi from 0 to 130 degrees since the last report."""
    print(f"  lately {shares[0]:.4f} of replicas begun at phi < 0, {shares[1]:.4f} of the others", flush=True)


def rungs(options: argparse.Namespace) -> None:
    """Print energies and populations at each temperature from exchange and from plain replicas."""
    n = options.replicas
    starts = in_each_basin(read(pdb_of_dipeptide()), options.device)
    common = {"constraints": "hbonds", "temperature": LADDER}
    rows = [begun(starts, options, len(LADDER)) for _ in range(2)]
    runs = {
        "exchange": pele_ocl.Simulation(rows[0], exchange_every=EXCHANGE_EVERY, seed=options.seed, **common),
        "plain": pele_ocl.Simulation(rows[1], seed=options.seed + 1, **common),
    }
    found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {who: [] for who in runs}
    for simulation in runs.values():
        simulation.run(round(500 * options.discard))
    begin = time.perf_counter()
    while time.perf_counter() < begin + options.seconds:
        for who, simulation in runs.items():
            simulation.run(EVERY)
            rows = in_ladder(simulation)
            found[who].append((simulation.potential_energies[rows], torsions(all_positions(simulation))[rows]))
    tried, accepted = runs["exchange"].exchanges
    sampled = len(found["plain"]) * EVERY * 2e-6
    print(f"{sampled:.2f} ns of {n} ladders, exchanges accepted {np.round(accepted / tried, 3)}", flush=True)
    for k, kelvin in enumerate(LADDER):
        for who, samples in found.items():
            energies = np.stack([of[0][:, k] for of in samples], axis=1)  # (n_ladders, n_samples)
            angles = np.stack([of[1][:, k] for of in samples], axis=1)
            told_energies(f"{kelvin:g} K, {who}", energies, angles[..., 0] < 0)
            told(f"  {kelvin:g} K, {who}", angles, time.perf_counter() - begin)


def told_energies(who: str, energies: np.ndarray, is_left: np.ndarray) -> None:
    """Print mean energies at phi < 0 and phi > 0, with errors from groups of ladders; (n_ladders, n_samples) each"""
    parts = []
    for name, there in (("phi < 0", is_left), ("phi > 0", ~is_left)):
        groups = np.array_split(np.arange(len(energies)), BLOCKS)
        means = np.array([energies[group][there[group]].mean() for group in groups if there[group].any()])
        mean = energies[there].mean() if there.any() else np.nan
        parts.append(f"{name} {mean:.4f} +- {error_of(means) if len(means) > 1 else np.nan:.4f}")
    print(f"{who}: {', '.join(parts)} kcal/mol", flush=True)


def torsion_map(options: argparse.Namespace) -> None:
    """Draw maps of phi and psi at 300 K from exchange: after the first second, and from the second half of all."""
    atoms = minimized(read(pdb_of_dipeptide()), options.device)
    simulation = pele_ocl.Simulation(
        atoms, options.replicas, constraints="hbonds", seed=options.seed, device=options.device, temperature=LADDER,
        exchange_every=EXCHANGE_EVERY, timestep=4.0, hydrogen_mass=3.0,
    )  # fmt: skip
    simulation.run(2 * EVERY).draw_velocities()  # kernels are compiled
    begin, pictures = time.perf_counter(), {}
    for first, last in ((0.0, 1.0), (options.seconds / 2, options.seconds)):
        frames = []
        while time.perf_counter() < begin + last or not frames:
            simulation.run(EVERY)
            if time.perf_counter() > begin + first:
                frames.append(torsions(all_positions(simulation)[in_ladder(simulation)[:, 0]]))
        sampled = simulation.time * options.replicas / 1e6
        title = f"second {first:.0f} to {last:.0f}, {sampled:.2f} µs of {options.replicas:,} replicas made"
        pictures[title] = np.concatenate(frames)
        told(title, np.swapaxes(frames, 0, 1), time.perf_counter() - begin)
    if options.figure is not None:
        draw_torsions(pictures, options.figure)


def main() -> None:
    """Run the requested measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("shares", "passages", "rungs", "map"))
    parser.add_argument("--device")
    parser.add_argument("--platform", default="CPU")
    parser.add_argument("--nanoseconds", type=float, default=4.0)
    parser.add_argument("--seconds", type=float, default=60.0, help="of `passages` and `rungs`")
    parser.add_argument("--right", type=float, default=0.5, help="share started at phi > 0, of `passages` and `rungs`")
    parser.add_argument("--processes", type=int, default=0, help="with OpenMM's runs, of `passages`")
    parser.add_argument("--plain", action="store_true", help="no exchange, of `shares`")
    parser.add_argument("--discard", type=float, default=100.0, help="ps of each replica's begin")
    parser.add_argument("--figure", help="where the map's pictures go: STEM-light.png, STEM-dark.png")
    parser.add_argument("--openmm", type=float, default=1.0, help="nanoseconds of OpenMM's, of `shares`")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replicas", type=int, default=16)
    options = parser.parse_args()
    {"shares": shares, "passages": passages, "rungs": rungs, "map": torsion_map}[options.what](options)


if __name__ == "__main__":
    main()
