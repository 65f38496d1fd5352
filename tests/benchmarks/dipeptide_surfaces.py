"""Free energy of phi and psi of alanine dipeptide in GBn2 by several methods, each from two starts, beside each other.

python tests/benchmarks/dipeptide_surfaces.py [--device D] [--replicas 8192] [--seconds 220]
    [--methods plain,temperature,rest2,umbrella,metadynamics] [--gb gbn2] [--json FILE] [--figure STEM]
python tests/benchmarks/dipeptide_surfaces.py --again FILE [--figure STEM]

Amber99SB, 300 K, steps of 4 fs with hydrogens of 3 Da, bonds to hydrogen held, friction 1/ps. Half of the replicas of a
method begin at the minimum with phi < 0, half at the one with phi > 0, and each half makes a surface of its own. The
seconds are shared by the methods, and a part of each is not counted:

temperature, rest2: ladders of 300 to 700 K; MBAR puts all rungs together.
umbrella: windows 30 degrees apart on both torsions, stiff enough that none has two wells; MBAR puts them together.
metadynamics: all replicas of a half are walkers of one bias. After it has filled, samples have the weights
    exp((V - c)/kT) of the bias V and its offset c at their time (Tiwary and Parrinello 2015).
plain: dynamics alone, one surface of all. Replicas pass between phi < 0 and phi > 0 in nanoseconds, so that shares of
    the two come from the rates of passages, whose error is printed, and within each from samples.

Bins of 20 degrees. Prints for each pair of surfaces the greatest and the root mean square difference over bins that are
below 5 kcal/mol in both, less the mean difference, what its statistical error would be, and how many bins differ by
more than 0.15 kcal/mol; then the seconds and microseconds of each. Errors are from 8 groups of replicas. `--again`
prints and draws what a file has.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from dipeptide import TORSIONS, Passages, in_each_basin, pdb_of_dipeptide
from harness.drift_chart import THEMES

import pele_ocl

EDGES = np.linspace(-np.pi, np.pi, 19)
VARIABLES = [pele_ocl.TorsionVariable(of) for of in TORSIONS]
SEEN = pele_ocl.GridBias(VARIABLES, np.zeros((4, 4, 4)), name="seen")  # no energy: it shows phi and psi
TEMPERATURE, TIMESTEP = 300.0, 4.0  # K, fs
KT = pele_ocl.units.BOLTZMANN_KCAL * TEMPERATURE
MOST, CLOSE = 5.0, 0.15  # kcal/mol: of surfaces compared, and of their differences
EVERY = 100  # steps between samples
GROUPS = 8  # of replicas, for errors
HALVES = ("left", "right")
HOT = (300.0, 355.0, 420.0, 497.0, 588.0, 696.0)  # K
SOLUTE = (300.0, 398.0, 528.0, 700.0)
STIFF = 10.0  # kcal/mol/rad^2 of k (s - s0)^2: weaker windows have two wells at the barriers of phi
FACTOR, PACE, WIDTH = 10.0, 250, 0.35  # of metadynamics
SUBSET = 200_000  # samples that free energies of states are solved from
SHARES = {"plain": 0.22, "temperature": 0.26, "rest2": 0.26, "umbrella": 0.1, "metadynamics": 0.16}
Look = Callable[[pele_ocl.Simulation], None]
Sums = np.ndarray  # (GROUPS, 18, 18) weights in bins


def weights_in_bins(values: np.ndarray, weights: np.ndarray) -> Sums:
    """Sum weights (n_times, n_rows) in bins, for groups of successive rows. values : (n_times, n_rows, 2)"""
    groups = np.array_split(np.arange(values.shape[1]), GROUPS)
    places = np.clip(np.digitize(values, EDGES) - 1, 0, len(EDGES) - 2)
    n = len(EDGES) - 1
    flat = places[..., 0] * n + places[..., 1]
    return np.stack(
        [np.bincount(flat[:, of].ravel(), weights[:, of].ravel(), minlength=n * n).reshape(n, n) for of in groups]
    )


def mixed(u: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Logarithms of weights (n_samples,) of samples of several states at energy 0, by MBAR from a part of them.

    u : (n_states, n_samples) reduced energies; states : (n_samples,)
    """
    part = slice(None, None, max(1, len(states) // SUBSET))
    f = pele_ocl.MBAR(np.asarray(u[:, part], np.float64), states[part]).f_k
    n = np.bincount(states, minlength=len(u))
    away = (np.log(n) + f)[:, None] - u
    most = away.max(axis=0)
    found: np.ndarray = -most - np.log(np.exp(away - most).sum(axis=0))
    return found


def sampled(simulation: pele_ocl.Simulation, seconds: float, look: Look, discarded: float) -> float:
    """Run for so many seconds, the first part of them without samples. Returns picoseconds that were sampled."""
    simulation.run(10)  # kernels are compiled
    begin = time.perf_counter()
    while time.perf_counter() < begin + discarded * seconds:
        simulation.run(EVERY)
    steps = simulation.steps
    while time.perf_counter() < begin + seconds or simulation.steps < steps + 20 * EVERY:
        simulation.run(EVERY)
        look(simulation)
    if simulation.errors:
        raise SystemExit(f"{len(simulation.errors)} replicas stopped: {next(iter(simulation.errors.values()))}")
    return (simulation.steps - steps) * TIMESTEP / 1e3


class Run:
    """What a method makes: by half, a function that gives the sums of its bins, and how much was sampled."""

    def __init__(self, sums: dict[str, Callable[[], Sums]], picoseconds: float, replicas: int, note: str = "") -> None:
        self.sums, self.microseconds, self.note = sums, picoseconds * replicas / 1e6, note


def begun(simulation: pele_ocl.Simulation, right: pele_ocl.Atoms) -> pele_ocl.Simulation:
    """Let the second half of the rows begin at phi > 0."""
    n = len(simulation)
    simulation.positions[n // 2 :] = np.broadcast_to(right.positions, (n - n // 2, len(right), 3))
    simulation.draw_velocities()
    return simulation


def in_halves(n: int) -> dict[str, slice]:
    return {"left": slice(0, n // 2), "right": slice(n // 2, n)}


def plain(starts: list[pele_ocl.Atoms], n: int, seconds: float, options: dict[str, Any]) -> Run:
    simulation = begun(pele_ocl.Simulation(starts[0], n, terms=[SEEN], **options), starts[1])
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

    picoseconds = sampled(simulation, seconds, look, 0.2)
    counts, dwelt = found[0].counts.sum(axis=1), found[0].dwelt.sum(axis=1)
    k_in, k_out = np.maximum(counts, 0.5) / dwelt
    share = k_in / (k_in + k_out)
    error = share * (1 - share) * np.sqrt((1 / np.maximum(counts, 0.5)).sum())
    note = f"{counts[0]:.0f} passages to phi > 0 and {counts[1]:.0f} back: share of phi > 0 {share:.4f} +- {error:.4f}"

    def sums() -> Sums:
        right = np.array(is_right)
        weights = np.where(right, share / dwelt[1], (1 - share) / dwelt[0])
        order = np.arange(n).reshape(2, -1).T.ravel()  # groups have both starts
        return weights_in_bins(np.array(values)[:, order], weights[:, order])

    return Run({"": sums}, picoseconds, n, note)


def of_ladders(simulation: pele_ocl.Simulation, betas: np.ndarray | None, seconds: float) -> Run:
    """Sample ladders and put rungs together. betas : mol/kcal of rungs, or None for rungs of other Hamiltonians"""
    n = len(simulation)
    values, energies, rungs = [], [], []  # type: ignore[var-annotated]

    def look(of: pele_ocl.Simulation) -> None:
        values.append(of.variables("seen").astype(np.float32))
        rungs.append(of.rungs.astype(np.int8))
        energies.append((of.potential_energies if betas is not None else of.u_kn(by_rung=True)).astype(np.float32))

    picoseconds = sampled(simulation, seconds, look, 0.4)
    tried, accepted = simulation.exchanges
    share = ", ".join(f"{of:.2f}" for of in accepted / tried)

    def of_half(half: slice) -> Sums:
        states = np.array(rungs)[:, half].astype(np.int64)
        if betas is not None:
            u = betas[:, None] * np.array(energies)[:, half].ravel()
        else:
            u = np.array(energies)[:, :, half].swapaxes(0, 1).reshape(simulation.rungs.max() + 1, -1)
        log = mixed(u, states.ravel()) - u[0]
        return weights_in_bins(np.array(values)[:, half], np.exp(log - log.max()).reshape(states.shape))

    sums = {name: lambda half=half: of_half(half) for name, half in in_halves(n).items()}
    return Run(sums, picoseconds, n, f"exchanges accepted {share}")


def temperature(starts: list[pele_ocl.Atoms], n: int, seconds: float, options: dict[str, Any]) -> Run:
    n = max(2 * GROUPS, n // len(HOT) // 2 * 2) * len(HOT)
    given = {**options, "temperature": list(HOT), "exchange_every": EVERY}
    simulation = begun(pele_ocl.Simulation(starts[0], n, terms=[SEEN], **given), starts[1])
    return of_ladders(simulation, 1 / (pele_ocl.units.BOLTZMANN_KCAL * np.array(HOT)), seconds)


def rest2(starts: list[pele_ocl.Atoms], n: int, seconds: float, options: dict[str, Any]) -> Run:
    given = {name: value for name, value in options.items() if name != "temperature"}
    ladders = max(2 * GROUPS, n // len(SOLUTE) // 2 * 2)
    simulation = pele_ocl.rest2(
        starts[0], list(SOLUTE), ladders=ladders, exchange_every=EVERY, terms=[SEEN], **given
    )  # fmt: skip
    return of_ladders(begun(simulation, starts[1]), None, seconds)


def umbrella(starts: list[pele_ocl.Atoms], n: int, seconds: float, options: dict[str, Any]) -> Run:
    places = np.radians(np.arange(-180, 180, 30))
    windows = np.stack(np.meshgrid(places, places), axis=-1).reshape(-1, 2)
    copies = min(2 * GROUPS, max(2, n // len(windows) // 2 * 2))  # each has a grid, of which the host makes one by one
    centers = np.repeat(windows, copies, axis=0)  # replicas of a window follow each other, by turns of both starts
    positions = np.stack([starts[k % 2].positions for k in range(len(centers))])
    given: dict[str, Any] = dict(minimize=50, positions=positions, **options)
    one = pele_ocl.umbrella(starts[0], VARIABLES, centers, STIFF, steps=EVERY, **given)  # kernels, and the speed
    begin = time.perf_counter()
    one.simulation.run(3 * EVERY)
    steps = max(10 * EVERY, int(seconds / (time.perf_counter() - begin) * 3 * EVERY))
    run = pele_ocl.umbrella(
        starts[0], VARIABLES, centers, STIFF, steps=3 * steps // 4 // EVERY * EVERY,
        sample_every=max(EVERY, steps // 400), equilibrate=steps // 4, **given,
    )  # fmt: skip

    def of_half(first: int) -> Sums:
        values = run.variables[:, first::2].astype(np.float32)
        states = np.tile(np.repeat(np.arange(len(windows)), copies // 2), len(values))
        samples = values.reshape(-1, 2)
        away = np.remainder(samples[None] - windows[:, None] + np.pi, 2 * np.pi) - np.pi
        u = (STIFF / KT * (away**2).sum(axis=-1)).astype(np.float32)
        log = mixed(u, states)
        order = np.arange(len(windows) * copies // 2).reshape(len(windows), -1).T.ravel()  # groups have all windows
        return weights_in_bins(values[:, order], np.exp(log - log.max()).reshape(values.shape[:2])[:, order])

    sums = {name: lambda first=first: of_half(first) for first, name in enumerate(HALVES)}
    return Run(sums, steps * 0.75 * TIMESTEP / 1e3, len(centers), f"{len(windows)} windows")


def metadynamics(starts: list[pele_ocl.Atoms], n: int, seconds: float, options: dict[str, Any]) -> Run:
    half = n // 2
    bias = pele_ocl.Metadynamics(VARIABLES, [WIDTH] * 2, 2.0 / half, PACE, bias_factor=FACTOR, shared=True)
    rows = pele_ocl.Ensemble(
        starts, [half, half], terms=[bias], device=options["device"], model=options["model"]
    )  # fmt: skip
    given = {name: value for name, value in options.items() if name not in ("device", "model")}
    simulation = pele_ocl.Simulation(rows, **given)
    values, weights = [], []  # type: ignore[var-annotated]

    def look(of: pele_ocl.Simulation) -> None:
        values.append(of.variables("metadynamics").astype(np.float32))
        energies = of.bias_energies("metadynamics") / KT
        for first in (0, half):  # less the offset of the bias of each half
            grid = np.asarray(rows.values("metadynamics", "grid")[first], np.float64)[..., 0] / KT
            most = grid.max()
            offset = np.log(np.exp(FACTOR / (FACTOR - 1) * (grid - most)).sum()) + most
            energies[first : first + half] -= offset - np.log(np.exp((grid - most) / (FACTOR - 1)).sum())
        weights.append(np.exp(energies))

    picoseconds = sampled(simulation, seconds, look, 0.4)
    sums = {
        name: lambda of=of: weights_in_bins(np.array(values)[:, of], np.array(weights)[:, of])
        for name, of in in_halves(n).items()
    }
    return Run(sums, picoseconds, n, f"{half:,} walkers of each bias")


METHODS: dict[str, Callable[..., Run]] = {
    "plain": plain, "temperature": temperature, "rest2": rest2, "umbrella": umbrella, "metadynamics": metadynamics,
}  # fmt: skip


def surface(sums: Sums) -> tuple[np.ndarray, np.ndarray]:
    """Free energy of bins and its standard error from groups, (18, 18) kcal/mol each."""
    whole = sums.sum(axis=0)
    with np.errstate(all="ignore"):
        energy = -KT * np.log(whole / whole.max())
        shares = sums / sums.sum(axis=(1, 2), keepdims=True)
        error = KT * shares.std(axis=0, ddof=1) / np.sqrt(len(sums)) / shares.mean(axis=0)
    return energy, error


def compared(found: dict[str, tuple[np.ndarray, np.ndarray]]) -> list[dict[str, Any]]:
    """Compare all pairs of surfaces."""
    rows, names = [], list(found)
    for k, one in enumerate(names):
        for other in names[k + 1 :]:
            low = (found[one][0] < MOST) & (found[other][0] < MOST)
            if not low.any():
                print(f"{one} and {other} have no bin in common below {MOST:g} kcal/mol")
                continue
            away = found[one][0][low] - found[other][0][low]
            away = away - away.mean()
            error = np.hypot(found[one][1][low], found[other][1][low])
            rows.append(
                {"surfaces": [one, other], "greatest": np.abs(away).max(), "rms": np.sqrt((away**2).mean()),
                 "expected_rms": np.sqrt((error**2).mean()), "bins": int(low.sum()),
                 "apart": int((np.abs(away) > CLOSE).sum())}
            )  # fmt: skip
    return rows


def show(found: dict[str, Any], figure: str | None) -> None:
    """Print what there is, and draw it."""
    surfaces = {
        name: (np.array(of["energies"], float), np.array(of["errors"], float)) for name, of in found["surfaces"].items()
    }
    phi_right = (EDGES[:-1] >= -1e-9) & (EDGES[:-1] < np.radians(130))
    for name, (energy, error) in surfaces.items():
        weight = np.exp(-energy / KT)
        share = weight[phi_right].sum() / weight.sum()
        low = energy < MOST
        print(f"{name:20} share of phi of 0 to 140 {share:.4f}; error of bins rms {rms(error[low]):.3f}, most "
              f"{error[low].max():.3f} kcal/mol")  # fmt: skip
    print(f"{'difference, kcal/mol':44} greatest     rms  expected  bins  above {CLOSE}")
    rows = compared(surfaces)
    for of in rows:
        one, other = of["surfaces"]
        print(f"{one:20} {other:23} {of['greatest']:8.3f} {of['rms']:7.3f} {of['expected_rms']:9.3f} {of['bins']:5d} "
              f"{of['apart']:6d}")  # fmt: skip
    print(f"greatest of all pairs {max(of['greatest'] for of in rows):.3f}" if rows else "one surface alone")
    if figure:
        for theme, (background, text, *_) in THEMES.items():
            draw(surfaces, Path(f"{figure}-{theme}.png"), background, text)


def rms(values: np.ndarray) -> float:
    return float(np.sqrt((values**2).mean()))


def draw(surfaces: dict[str, tuple[np.ndarray, np.ndarray]], path: Path, background: str, text: str) -> None:
    """Draw a map for each surface."""
    from matplotlib.figure import Figure

    n = len(surfaces)
    columns = min(n, 5)
    shape = -(-n // columns), columns
    figure = Figure(figsize=(2.6 * columns + 0.9, 2.8 * shape[0]), dpi=110, facecolor=background, layout="constrained")
    panels = figure.subplots(*shape, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in panels[n:]:
        axes.set_visible(False)
    for axes, (name, (energy, _)) in zip(panels, surfaces.items(), strict=False):
        drawn = axes.pcolormesh(*[np.degrees(EDGES)] * 2, np.where(energy < 8, energy, np.nan).T, cmap="viridis_r",
                                vmin=0, vmax=8)  # fmt: skip
        axes.contour(*[np.degrees(EDGES[1:] + EDGES[:-1]) / 2] * 2, np.minimum(energy, 9).T, [MOST], colors=text,
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--replicas", type=int, default=8192)
    parser.add_argument("--seconds", type=float, default=220)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--gb", default="gbn2")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure")
    parser.add_argument("--again", type=Path)
    given = parser.parse_args()
    if given.again:
        show(json.loads(given.again.read_text()), given.figure)
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "dipeptide.pdb"
        path.write_text(pdb_of_dipeptide())
        starts = in_each_basin(pele_ocl.read(path), given.device)
    options: dict[str, Any] = dict(
        temperature=TEMPERATURE, timestep=TIMESTEP, hydrogen_mass=3.0, constraints="hbonds", device=given.device,
        model=pele_ocl.SolventModel(gb=given.gb), seed=1, remove_motion=True,
    )  # fmt: skip
    waiting: dict[str, Future[Sums]] = {}
    found: dict[str, Any] = {"replicas": given.replicas, "methods": {}, "surfaces": {}}
    with ThreadPoolExecutor(3) as pool:  # surfaces are made while the device goes on
        for method in given.methods.split(","):
            begin = time.perf_counter()
            run = METHODS[method](starts, given.replicas, given.seconds * SHARES[method], options)
            seconds = time.perf_counter() - begin
            print(f"{method:13} {seconds:6.1f} s, {run.microseconds:8.3f} us sampled; {run.note}", flush=True)
            found["methods"][method] = {"seconds": seconds, "microseconds": run.microseconds, "note": run.note}
            waiting |= {f"{method} {half}".strip(): pool.submit(sums) for half, sums in run.sums.items()}
        begin = time.perf_counter()
        for name, future in waiting.items():
            energy, error = surface(future.result())
            found["surfaces"][name] = {"energies": energy.tolist(), "errors": error.tolist()}
    print(f"surfaces      {time.perf_counter() - begin:6.1f} s more")
    if given.json:
        given.json.write_text(json.dumps({**found, "pairs": compared({
            name: (np.array(of["energies"]), np.array(of["errors"])) for name, of in found["surfaces"].items()
        })}, indent=1))  # fmt: skip
    show(found, given.figure)


if __name__ == "__main__":
    main()
