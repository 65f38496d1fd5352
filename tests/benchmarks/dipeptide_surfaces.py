"""Free energy surface of alanine dipeptide in GBn2 by several methods, each from two starting points.

python tests/benchmarks/dipeptide_surfaces.py run FILE [--device D] [--replicas 8192] [--seconds 440] [--seed 1]
    [--methods plain,temperature,rest2,umbrella,metadynamics,opes] [--gb gbn2]
python tests/benchmarks/dipeptide_surfaces.py show FILE[:METHOD,...] ... [--bins 18] [--figure STEM]

Amber99SB, 300 K, steps of 4 fs with hydrogens of 3 Da, bonds to hydrogen constrained, friction 1/ps. Half of the
replicas of a method start at the minimum with phi < 0, half at that with phi > 0, and each half gives a separate
surface. The time is divided among the methods, and the first part of each is discarded:

temperature: ladders of 300 to 696 K, exchanges every 0.1 ps; MBAR combines all rungs.
rest2: ladders of 300 to 1000 K, exchanges every 0.2 ps; MBAR likewise.
umbrella: windows 24 degrees apart on both torsions, stiff enough that none has two minima; MBAR combines them.
metadynamics: the replicas of a half are walkers of 8 biases. After these have filled, samples have the weights
    exp((V - c)/kT) of the current bias V and its offset c (Tiwary and Parrinello 2015).
opes: likewise; after the bias has converged, samples have the weights exp(V/kT).
plain: unbiased dynamics, a single surface; an eighth of the replicas starts at phi > 0. Transitions between phi < 0 and
    phi > 0 take nanoseconds, so the populations of the two are computed from transition rates, within each from
    samples.

FILE, .npz, has weights in bins of 5 degrees, of 8 groups of replicas and 4 parts of the time, written after each
method. Groups are independent: each has its own MBAR, its own bias, its own rates. A surface is the mean of its groups,
with the error of this mean; several files (created with different seeds) are weighted by their inverse mean squared
error below 5 kcal/mol. FILE:METHOD,... uses only these methods.

`show` prints the populations of phi > 0 by parts of the time, which agree if they do not depend on the start. Then for
each pair of surfaces the largest and the root mean square difference over bins below 5 kcal/mol in both, minus the mean
difference; the values expected from normal errors (for the largest, its median and 95th percentile); and how many
bins differ by more than 0.15 kcal/mol, and how many by more than that and two standard errors.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import numpy as np
from dipeptide import TORSIONS, Passages, in_each_basin, pdb_of_dipeptide
from harness.drift_chart import THEMES

import pele_ocl

FINE = 72  # bins around a torsion, of files
BINS = 18  # of surfaces: of 20 degrees, as wide as the hills of metadynamics
EDGES = np.linspace(-np.pi, np.pi, FINE + 1)
VARIABLES = [pele_ocl.TorsionVariable(of) for of in TORSIONS]
SEEN = pele_ocl.GridBias(VARIABLES, np.zeros((4, 4, 4)), name="seen")  # no energy: it shows phi and psi
TEMPERATURE, TIMESTEP = 300.0, 4.0  # K, fs
KT = pele_ocl.units.BOLTZMANN_KCAL * TEMPERATURE
MOST, CLOSE = 5.0, 0.15  # kcal/mol: of surfaces compared, and of their differences
# Steps between samples: of plain dynamics and temperatures, of REST2, of the others. Replicas pass a bin of a high
# energy in some 0.1 ps; samples 0.2 ps apart make errors of such bins 1.8 times those of samples 0.04 ps apart.
OFTEN, LESS_OFTEN, SELDOM = 10, 20, 100
GROUPS, PARTS = 8, 4  # of replicas, for errors; of the time
HALVES = ("left", "right")
# K. Rungs above 497 K add no samples at 300 K, but without them the start shows for 0.3 ns.
HOT = (300.0, 355.0, 420.0, 497.0, 588.0, 696.0)
SOLUTE = (300.0, 405.0, 548.0, 740.0, 1000.0)
STIFF, APART = 10.0, 24  # kcal/mol/rad^2 of k (s - s0)^2: weaker windows have two wells at barriers; degrees
FACTOR, PACE, WIDTH = 10.0, 250, 0.35  # of metadynamics
NARROW, BARRIER = 0.15, 8.0  # of OPES
SUBSET = 60_000  # samples that free energies of states are solved from, of a group
CHUNK = 50_000  # samples weighed at a time
DRAWS = 1000  # of normal errors
# Replicas of each, as parts of those asked for: fewer take shorter steps, and forget their start in less time.
SIZES = {"plain": 1.0, "temperature": 0.5, "rest2": 0.375, "umbrella": 0.45, "metadynamics": 0.375, "opes": 0.375}
SHARES = {"plain": 0.25, "temperature": 0.19, "rest2": 0.34, "umbrella": 0.16, "metadynamics": 0.06, "opes": 0.08}
Look = Callable[[pele_ocl.Simulation], None]
Sums = np.ndarray  # (PARTS, GROUPS, FINE, FINE) weights in bins, those of a group times its weight


def weights_in_bins(values: np.ndarray, weights: np.ndarray) -> Sums:
    """Return histograms of weights (n_times, n_rows), by parts of the time and groups of consecutive rows.

    values : (n_times, n_rows, 2)
    """
    places = np.clip(np.digitize(values, EDGES) - 1, 0, FINE - 1)
    flat = places[..., 0] * FINE + places[..., 1]
    found = np.zeros((PARTS, GROUPS, FINE * FINE))
    for part, times in enumerate(np.array_split(np.arange(len(values)), PARTS)):
        for group, rows in enumerate(np.array_split(np.arange(values.shape[1]), GROUPS)):
            of = np.ix_(times, rows)
            found[part, group] = np.bincount(flat[of].ravel(), weights[of].ravel(), minlength=FINE * FINE)
    found /= np.maximum(found.sum(axis=(0, 2), keepdims=True), 1e-300)  # each group is a surface by itself
    return found.reshape(PARTS, GROUPS, FINE, FINE)


def mixed(energies: Callable[[slice | np.ndarray], np.ndarray], states: np.ndarray, n_states: int) -> np.ndarray:
    """Return the weights (n_samples,) of samples of several states in the target state, by MBAR, up to a factor.

    energies : reduced energies of samples, by a slice or indices, (n_states + 1, n): in all states, then in the target
    states : (n_samples,)
    """
    # Drawn at random, because a fixed stride may take the samples of some windows only.
    part = np.sort(np.random.default_rng(0).choice(len(states), min(SUBSET, len(states)), replace=False))
    f = pele_ocl.MBAR(np.asarray(energies(part)[:-1], np.float64), states[part]).f_k
    n = np.bincount(states, minlength=n_states)
    logs = []
    for first in range(0, len(states), CHUNK):
        u = energies(slice(first, first + CHUNK))
        away = (np.log(n) + f)[:, None] - u[:-1]
        most = away.max(axis=0)
        logs.append(-u[-1] - most - np.log(np.exp(away - most).sum(axis=0)))
    log = np.concatenate(logs)
    return np.asarray(np.exp(log - log.max()))


def by_groups(n_rows: int, weigh: Callable[[slice], np.ndarray]) -> np.ndarray:
    """Return weights (n_times, n_rows), computed separately for each group of rows."""
    ends = [0, *np.cumsum([len(of) for of in np.array_split(np.arange(n_rows), GROUPS)]).tolist()]
    with ThreadPoolExecutor(GROUPS) as pool:
        return np.concatenate(list(pool.map(weigh, [slice(*of) for of in pairwise(ends)])), axis=1)


def sampled(simulation: pele_ocl.Simulation, seconds: float, look: Look, discarded: float, every: int) -> float:
    """Run for this many seconds, and sample after the first part. Returns the sampled time in picoseconds."""
    simulation.run(10)  # kernels are compiled
    begin = time.perf_counter()
    while time.perf_counter() < begin + discarded * seconds:
        simulation.run(every)
    steps = simulation.steps
    while time.perf_counter() < begin + seconds or simulation.steps < steps + 20 * every:
        simulation.run(every)
        look(simulation)
    if simulation.errors:
        raise SystemExit(f"{len(simulation.errors)} replicas stopped: {next(iter(simulation.errors.values()))}")
    return (simulation.steps - steps) * TIMESTEP / 1e3


class Run:
    """Result of a method: for each half, a function that returns its histograms, and the amount of sampling."""

    def __init__(
        self, sums: dict[str, Callable[[], Sums]], simulation: pele_ocl.Simulation, ps: float, note: str = ""
    ) -> None:
        self.sums, self.microseconds = sums, ps * len(simulation) / 1e6
        self.note = f"{len(simulation):,} replicas, {ps:.0f} of {simulation.time:.0f} ps; {note}"


def begun(simulation: pele_ocl.Simulation, right: pele_ocl.Atoms, rows: np.ndarray) -> pele_ocl.Simulation:
    """Start some rows at phi > 0."""
    simulation.positions[rows] = np.broadcast_to(right.positions, (len(rows), len(right), 3))
    simulation.draw_velocities()
    return simulation


def second_half(n: int) -> np.ndarray:
    return np.arange(n // 2, n)


def in_halves(n: int) -> dict[str, slice]:
    return {"left": slice(0, n // 2), "right": slice(n // 2, n)}


def plain(starts: list[pele_ocl.Atoms], n: int, seconds: float, options: dict[str, Any]) -> Run:
    simulation = pele_ocl.Simulation(starts[0], n, terms=[SEEN], **options)
    begun(simulation, starts[1], np.arange(n - 1, -1, -8)[::-1])
    values: list[np.ndarray] = []
    is_right: list[np.ndarray] = []
    found: list[Passages] = []

    def look(of: pele_ocl.Simulation) -> None:
        values.append(of.variables("seen").astype(np.float32))
        phi = np.degrees(values[-1][:, 0])
        if not found:
            found.append(Passages(phi))
        found[0].add(phi)
        is_right.append(found[0].is_right.copy())

    picoseconds = sampled(simulation, seconds, look, 0.2, OFTEN)
    counts, dwelt = found[0].counts, found[0].dwelt
    share, (k_in, k_out) = share_of_right(counts, dwelt)
    error = share * (1 - share) * np.sqrt((1 / np.maximum((k_in, k_out), 1)).sum())
    note = f"{k_in:.0f} passages to phi > 0 and {k_out:.0f} back: share of phi > 0 {share:.4f} +- {error:.4f}"

    def sums() -> Sums:
        right = np.array(is_right)

        def weigh(of: slice) -> np.ndarray:
            share, _ = share_of_right(counts[:, of], dwelt[:, of])
            left_time, right_time = np.maximum(dwelt[:, of].sum(axis=1), 1)
            return np.where(right[:, of], share / right_time, (1 - share) / left_time)

        return weights_in_bins(np.array(values), by_groups(n, weigh))

    return Run({"": sums}, simulation, picoseconds, note)


def share_of_right(counts: np.ndarray, dwelt: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the population of phi > 0 from transition rates, and the transitions. counts, dwelt : see Passages"""
    of = counts.sum(axis=1)
    k_in, k_out = of / np.maximum(dwelt.sum(axis=1), 1)
    return float(k_in / max(k_in + k_out, 1e-300)), of


def of_ladders(simulation: pele_ocl.Simulation, betas: np.ndarray | None, seconds: float) -> Run:
    """Sample ladders and combine the rungs. betas : mol/kcal of rungs, or None for rungs with other Hamiltonians"""
    n, n_rungs = len(simulation), int(simulation.rungs.max()) + 1
    values, energies, rungs = [], [], []  # type: ignore[var-annotated]

    def look(of: pele_ocl.Simulation) -> None:
        values.append(of.variables("seen").astype(np.float32))
        rungs.append(of.rungs.astype(np.int8))
        energies.append((of.potential_energies if betas is not None else of.u_kn(by_rung=True)).astype(np.float32))

    of_run = (0.5, OFTEN) if betas is not None else (0.4, LESS_OFTEN)
    picoseconds = sampled(simulation, seconds, look, *of_run)
    tried, accepted = simulation.exchanges
    share = ", ".join(f"{of:.2f}" for of in accepted / tried)

    def of_half(half: slice) -> Sums:
        all_rungs, all_energies = np.array(rungs)[:, half], np.array(energies)[..., half]

        def weigh(of: slice) -> np.ndarray:
            states = all_rungs[:, of].astype(np.int64)
            if betas is not None:
                flat = all_energies[:, of].ravel().astype(np.float64)
                weights = mixed(lambda k: np.append(betas, betas[0])[:, None] * flat[k], states.ravel(), n_rungs)
            else:
                u = all_energies[..., of].swapaxes(0, 1).reshape(n_rungs, -1)
                weights = mixed(lambda k: np.concatenate([u[:, k], u[:1, k]]), states.ravel(), n_rungs)
            return weights.reshape(states.shape)

        return weights_in_bins(np.array(values)[:, half], by_groups(n // 2, weigh))

    sums = {name: lambda half=half: of_half(half) for name, half in in_halves(n).items()}
    return Run(sums, simulation, picoseconds, f"exchanges accepted {share}")


def ladders_of(n: int, n_rungs: int) -> int:
    """Return the number of ladders for about n replicas, equal in all groups of both halves."""
    return max(1, n // n_rungs // (2 * GROUPS)) * 2 * GROUPS


def temperature(starts: list[pele_ocl.Atoms], n: int, seconds: float, options: dict[str, Any]) -> Run:
    n = ladders_of(n, len(HOT)) * len(HOT)
    given = {**options, "temperature": list(HOT), "exchange_every": 25}
    simulation = begun(pele_ocl.Simulation(starts[0], n, terms=[SEEN], **given), starts[1], second_half(n))
    return of_ladders(simulation, 1 / (pele_ocl.units.BOLTZMANN_KCAL * np.array(HOT)), seconds)


def rest2(starts: list[pele_ocl.Atoms], n: int, seconds: float, options: dict[str, Any]) -> Run:
    given = {name: value for name, value in options.items() if name != "temperature"}
    simulation = pele_ocl.rest2(
        starts[0], list(SOLUTE), ladders=ladders_of(n, len(SOLUTE)), exchange_every=50, terms=[SEEN], **given
    )
    return of_ladders(begun(simulation, starts[1], second_half(len(simulation))), None, seconds)


def umbrella(starts: list[pele_ocl.Atoms], n: int, seconds: float, options: dict[str, Any]) -> Run:
    places = np.radians(np.arange(-180, 180, APART))
    windows = np.stack(np.meshgrid(places, places), axis=-1).reshape(-1, 2)
    copies = max(1, n // len(windows) // (2 * GROUPS)) * GROUPS  # of each start; all windows are in each group
    centers = np.tile(windows, (2 * copies, 1))
    positions = np.repeat([of.positions for of in starts], copies * len(windows), axis=0)
    run = pele_ocl.umbrella(
        starts[0], VARIABLES, centers, STIFF, steps=SELDOM, minimize=50, positions=positions, **options
    )
    values: list[np.ndarray] = []

    def look(of: pele_ocl.Simulation) -> None:
        values.append(of.variables("umbrella").astype(np.float32))

    picoseconds = sampled(run.simulation, seconds, look, 0.25, SELDOM)

    def of_half(half: slice) -> Sums:
        of_rows, of_states = np.array(values)[:, half], np.tile(np.arange(len(windows)), copies)

        def weigh(of: slice) -> np.ndarray:
            samples, states = of_rows[:, of].reshape(-1, 2), np.tile(of_states[of], len(of_rows))

            def energies(part: slice | np.ndarray) -> np.ndarray:
                away = np.remainder(samples[None, part] - windows[:, None] + np.pi, 2 * np.pi) - np.pi
                u = STIFF / KT * (away.astype(np.float32) ** 2).sum(axis=-1)
                return np.concatenate([u, np.zeros((1, u.shape[1]), np.float32)])

            return mixed(energies, states, len(windows)).reshape(len(of_rows), -1)

        return weights_in_bins(of_rows, by_groups(of_rows.shape[1], weigh))

    n_rows = len(centers)
    sums = {name: lambda half=half: of_half(half) for name, half in in_halves(n_rows).items()}
    return Run(sums, run.simulation, picoseconds, f"{len(windows)} windows")


def walkers_of(n: int) -> int:
    """Return the number of walkers per bias for about n replicas, equal in all groups of both halves."""
    return max(1, n // (2 * GROUPS))


def metadynamics(starts: list[pele_ocl.Atoms], n: int, seconds: float, options: dict[str, Any]) -> Run:
    height = 2.0 / walkers_of(n)
    bias = pele_ocl.Metadynamics(VARIABLES, [WIDTH] * 2, height, PACE, bias_factor=FACTOR, shared=True, name="bias")

    def offset(grid: np.ndarray) -> float:
        grid = grid / KT
        most = grid.max()
        above = np.log(np.exp(FACTOR / (FACTOR - 1) * (grid - most)).sum()) + most
        return float(above - np.log(np.exp((grid - most) / (FACTOR - 1)).sum()))

    return of_walkers(bias, offset, starts, n, seconds, options)


def opes(starts: list[pele_ocl.Atoms], n: int, seconds: float, options: dict[str, Any]) -> Run:
    bias = pele_ocl.OPES(VARIABLES, [NARROW] * 2, BARRIER, PACE, shared=True, name="bias")
    return of_walkers(bias, lambda grid: 0.0, starts, n, seconds, options)


def of_walkers(
    bias: pele_ocl.Metadynamics | pele_ocl.OPES, offset: Callable[[np.ndarray], float],
    starts: list[pele_ocl.Atoms], n: int, seconds: float, options: dict[str, Any],
) -> Run:  # fmt: skip
    """Sample walkers of separate biases. offset : c of the weights exp((V - c)/kT), from a grid and kT"""
    walkers = walkers_of(n)
    molecules = [of.moved(of.positions) for of in starts for _ in range(GROUPS)]  # each has a bias of its own
    rows = pele_ocl.Ensemble(
        molecules, [walkers] * len(molecules), terms=[bias], device=options["device"], model=options["model"]
    )  # fmt: skip
    given = {name: value for name, value in options.items() if name not in ("device", "model")}
    simulation = pele_ocl.Simulation(rows, **given)
    values, weights, offsets = [], [], np.zeros(len(molecules))  # type: ignore[var-annotated]

    def look(of: pele_ocl.Simulation) -> None:
        if len(values) % 10 == 0:
            for k in range(len(molecules)):
                offsets[k] = offset(np.asarray(rows.values("bias", "grid")[k * walkers], np.float64)[..., 0])
        values.append(of.variables("bias").astype(np.float32))
        energies = of.bias_energies("bias") / KT
        weights.append(np.exp(energies - np.repeat(offsets, walkers)))

    picoseconds = sampled(simulation, seconds, look, 0.4, SELDOM)
    sums = {
        name: lambda of=of: weights_in_bins(np.array(values)[:, of], np.array(weights)[:, of])
        for name, of in in_halves(len(rows)).items()
    }
    return Run(sums, simulation, picoseconds, f"{walkers:,} walkers of each bias")


METHODS: dict[str, Callable[..., Run]] = {
    "plain": plain, "temperature": temperature, "rest2": rest2, "umbrella": umbrella, "metadynamics": metadynamics,
    "opes": opes,
}  # fmt: skip


def coarse(sums: Sums, bins: int) -> np.ndarray:
    """Return the populations of groups in fewer bins, (PARTS, n_groups, bins, bins)."""
    n = FINE // bins
    return np.asarray(sums.reshape(*sums.shape[:2], bins, n, bins, n).sum(axis=(3, 5)))


def surface(sums: Sums, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the free energy of bins and its standard error from groups, (bins, bins) kcal/mol each."""
    mean, error = averaged(coarse(sums, bins).sum(axis=0))
    with np.errstate(all="ignore"):
        return -KT * np.log(mean / mean.max()), KT * error / mean


def averaged(groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return populations of bins over all groups, and their standard errors. groups : (n, ...) times their weights"""
    n, weights = len(groups), groups.reshape(len(groups), -1).sum(axis=1).reshape(-1, *[1] * (groups.ndim - 1))
    mean = groups.sum(axis=0) / weights.sum()
    error = np.sqrt(n / (n - 1) * ((groups - weights * mean) ** 2).sum(axis=0)) / weights.sum()
    return mean, error


def compared(found: dict[str, tuple[np.ndarray, np.ndarray]]) -> list[dict[str, Any]]:
    """Compare all pairs of surfaces."""
    rows, names, rng = [], list(found), np.random.default_rng(0)
    for k, one in enumerate(names):
        for other in names[k + 1 :]:
            low = (found[one][0] < MOST) & (found[other][0] < MOST)
            if not low.any():
                print(f"{one} and {other} have no bin in common below {MOST:g} kcal/mol")
                continue
            away = found[one][0][low] - found[other][0][low]
            away = away - away.mean()
            error = np.hypot(found[one][1][low], found[other][1][low])
            drawn = rng.normal(size=(DRAWS, len(error))) * error
            greatest = np.abs(drawn - drawn.mean(axis=1, keepdims=True)).max(axis=1)
            rows.append(
                {"surfaces": [one, other], "greatest": np.abs(away).max(), "rms": rms(away), "expected_rms": rms(error),
                 "expected": np.quantile(greatest, (0.5, 0.95)).tolist(), "bins": int(low.sum()),
                 "apart": int((np.abs(away) > CLOSE).sum()), "surely": int((np.abs(away) - 2 * error > CLOSE).sum())}
            )  # fmt: skip
    return rows


def show(sums: dict[str, Sums], methods: list[str], bins: int, figure: str | None) -> None:
    """Print the available surfaces, and draw them."""
    for line in methods:
        print(line)
    surfaces = {name: surface(of, bins) for name, of in sums.items()}
    right = (EDGES[:-1] >= -1e-9) & (EDGES[:-1] < np.radians(139))
    print(f"bins of {360 // bins} degrees; share of phi of 0 to 140, and in {PARTS} parts of the time")
    for name, (energy, error) in surfaces.items():
        groups = np.stack([sums[name][:, :, of].sum(axis=(2, 3)) for of in (right, ~right)], axis=2)
        (share, _), (error_of_share, _) = averaged(groups.sum(axis=0))
        low = energy < MOST
        of_parts = groups[: 0 if name == "plain" else PARTS]  # shares of plain dynamics follow from rates
        parts = " ".join(f"{averaged(of)[0][0]:.4f}" for of in of_parts) or "by rates"
        print(f"{name:20} {share:.4f} +- {error_of_share:.4f}; {parts}; {groups.shape[1]} "
              f"groups; error of bins rms {rms(error[low]):.3f}, most {error[low].max():.3f} kcal/mol")  # fmt: skip
    print(f"{'difference, kcal/mol':40} greatest  expected  1 of 20     rms  expected  bins  above {CLOSE}  surely")
    rows = compared(surfaces)
    for of in rows:
        one, other = of["surfaces"]
        print(f"{one:20} {other:19} {of['greatest']:8.3f} {of['expected'][0]:9.3f} {of['expected'][1]:8.3f} "
              f"{of['rms']:7.3f} {of['expected_rms']:9.3f} {of['bins']:5d} {of['apart']:11d} "
              f"{of['surely']:7d}")  # fmt: skip
    print(f"greatest of all pairs {max(of['greatest'] for of in rows):.3f}" if rows else "only one surface")
    if figure:
        for theme, (background, text, *_) in THEMES.items():
            draw(surfaces, bins, Path(f"{figure}-{theme}.png"), background, text)


def rms(values: np.ndarray) -> float:
    return float(np.sqrt((values**2).mean()))


def draw(
    surfaces: dict[str, tuple[np.ndarray, np.ndarray]], bins: int, path: Path, background: str, text: str
) -> None:  # fmt: skip
    """Draw a map of each surface."""
    from matplotlib.figure import Figure

    edges = np.linspace(-180, 180, bins + 1)

    n = len(surfaces)
    columns = min(n, 4)
    shape = -(-n // columns), columns
    figure = Figure(figsize=(2.6 * columns + 0.9, 2.8 * shape[0]), dpi=110, facecolor=background, layout="constrained")
    panels = figure.subplots(*shape, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in panels[n:]:
        axes.set_visible(False)
    for axes, (name, (energy, _)) in zip(panels, surfaces.items(), strict=False):
        drawn = axes.pcolormesh(*[edges] * 2, np.where(energy < 8, energy, np.nan).T, cmap="viridis_r",
                                vmin=0, vmax=8)  # fmt: skip
        axes.contour(*[(edges[1:] + edges[:-1]) / 2] * 2, np.minimum(energy, 9).T, [MOST], colors=text,
                     linewidths=0.8)  # fmt: skip
        axes.set_title(name, loc="left", color=text, fontsize=9)
        axes.set(facecolor=background, aspect="equal", xticks=range(-180, 181, 90), yticks=range(-180, 181, 90))
        axes.tick_params(colors=text, labelsize=8)
        for spine in axes.spines.values():
            spine.set_color(text)
    figure.supxlabel("φ, degrees", color=text, fontsize=9)
    figure.supylabel("ψ, degrees", color=text, fontsize=9)
    bar = figure.colorbar(drawn, ax=panels.tolist())
    bar.set_label("free energy, kcal/mol; line at 5", color=text)
    bar.ax.tick_params(colors=text)
    figure.savefig(path, facecolor=background)


def read(paths: list[Path]) -> tuple[dict[str, Sums], list[str]]:
    """Read surfaces, combining the groups of all files by their mean squared errors, and the methods' messages."""
    sums: dict[str, list[Sums]] = {}
    said = []
    for path in paths:
        stem, _, only = path.name.partition(":")
        with np.load(path.with_name(stem)) as file:
            for name in file.files:
                if name == "methods":
                    said += [f"{Path(stem).stem}: {line}" for line in json.loads(str(file[name]))]
                elif not only or name.split()[0] in only.split(","):
                    found = file[name].astype(np.float64)
                    energy, error = surface(found, BINS)
                    found /= found.sum() * (error[energy < MOST] ** 2).mean()
                    sums.setdefault(name, []).append(found)
    order = {f"{method} {half}".strip(): None for method in METHODS for half in (*HALVES, "")}
    return {name: np.concatenate(sums[name], axis=1) for name in order if name in sums}, said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "show"))
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--device")
    parser.add_argument("--replicas", type=int, default=8192)
    parser.add_argument("--seconds", type=float, default=440)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--gb", default="gbn2")
    parser.add_argument("--bins", type=int, default=BINS)
    parser.add_argument("--figure")
    given = parser.parse_args()
    if given.what == "show":
        show(*read(given.paths), given.bins, given.figure)
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "dipeptide.pdb"
        path.write_text(pdb_of_dipeptide())
        starts = in_each_basin(pele_ocl.read(path), given.device)
    options: dict[str, Any] = dict(
        temperature=TEMPERATURE, timestep=TIMESTEP, hydrogen_mass=3.0, constraints="hbonds", device=given.device,
        model=pele_ocl.SolventModel(gb=given.gb), seed=given.seed, remove_motion=True,
    )  # fmt: skip
    sums: dict[str, Sums] = {}
    said: list[str] = []
    lock, waiting = Lock(), []

    def keep(name: str, make: Callable[[], Sums], weight: float) -> None:
        made = (weight * make()).astype(np.float32)
        with lock:
            sums[name] = made
            np.savez_compressed(given.paths[0], methods=np.array(json.dumps(said)), **sums)

    methods = given.methods.split(",")
    whole = sum(SHARES[method] for method in methods)
    with ThreadPoolExecutor(6) as pool:  # surfaces are made while the device runs the next method
        for method in methods:
            begin = time.perf_counter()
            n, seconds = round(given.replicas * SIZES[method]), given.seconds * SHARES[method] / whole
            run = METHODS[method](starts, n, seconds, options)
            said.append(
                f"{method:13} {time.perf_counter() - begin:6.1f} s, {run.microseconds:8.3f} us sampled; {run.note}"
            )
            print(said[-1], flush=True)
            for half, of in run.sums.items():
                waiting.append(pool.submit(keep, f"{method} {half}".strip(), of, run.microseconds))
    for kept in waiting:
        kept.result()  # raises what it raised
    show(*read(given.paths), given.bins, given.figure)


if __name__ == "__main__":
    main()
