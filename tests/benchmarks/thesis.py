"""Tables of the thesis and the lecture: a C program compared with OpenCL kernels, for molecules of similar sizes.

python tests/benchmarks/thesis.py [--device D] [--systems NAME,...] [--runs 3] [--only born,pairs,maps] [-o FILE]
    [--list src3,ruvab] [--chart FILE.png] [--sizes-chart FILE.png] [--seconds 20]

thesis.c in this folder is built three times by `cc`: with -O0, with -O3, and with -O3 -fopenmp; without `cc` these rows
are omitted. The kernels are those of pele-ocl's ladders, with work-group sizes of 64, 128 and 256. "device" is device
time from the start of the first kernel to the end of the last one; "host" is the wall time of the call, with positions
in and results out. Each is the median of the runs after a warm-up. A C loop that would take longer than --seconds is
timed on a sample of rows, or of the atoms of a map, and scaled, marked *. With --busy, for a CPU shared with other
programs, "host" is processor time per computing thread. If nvidia-smi is available, power is measured while kernels run
for two seconds.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

from pele_ocl import Atoms
from pele_ocl.bench.groups import with_groups
from pele_ocl.bench.systems import SYSTEMS, load
from pele_ocl.ladder import NonbondLadder, SolventLadder
from pele_ocl.nonbond import Nonbond
from pele_ocl.opencl.device import Device, get_device
from pele_ocl.pairs import PairList, pairs_within
from pele_ocl.solvent import Solvent
from pele_ocl.units import COULOMB_KCAL_A

HERE = Path(__file__).resolve().parent
KERNELS = HERE.parents[1] / "docs" / "course"
sys.path.append(str(KERNELS))
from charts import Measured, errors  # noqa: E402

BUILDS = {"-O0": ["-O0"], "-O3": ["-O3"], "-O3 -fopenmp": ["-O3", "-fopenmp"]}
GROUPS = 64, 128, 256
CUTOFF = 12.0  # A
POINTS_PER_ATOM = 20
SIZES = 16, 32, 64, 128, 256  # points per edge of a map
REACH = 15  # spacings of a map; 12 A at the density of water, of which an atom has 10 A^3
FLOPS = {"constant": 187 / 18.6, "image": 187 / 18.6, "coarsened": 259 / 33.4, "coalesced": 291 / 39.5,
         "padded": 291 / 39.5}  # operations of an evaluation, as the lecture counts them  # fmt: skip
LECTURE = {"constant": 18.6, "coarsened": 33.4, "shared": 36.4, "coalesced": 39.5}  # G evaluations/s, GeForce 8800

Build = tuple[str, ctypes.CDLL]
COLOURS = "#888888", "#b06a00", "#c0392b", "#1f6fb4", "#5b2c8f", "#1e8449"
BUSY = False  # whether --busy is given


def builds(folder: Path) -> Iterator[Build]:
    """Build thesis.c in each way, and load it."""
    compiler = shutil.which("cc")
    for number, (name, flags) in enumerate(BUILDS.items() if compiler else ()):
        library = folder / f"thesis{number}.so"
        command = [str(compiler), *flags, "-shared", "-fPIC", str(HERE / "thesis.c"), "-lm", "-o", str(library)]
        subprocess.run(command, check=True)
        yield f"C, {name}", ctypes.CDLL(str(library))


def pointer(array: np.ndarray) -> Any:
    """Return the C pointer of an array."""
    return array.ctypes.data_as(ctypes.c_void_p)


def median(work: Callable[[], object], runs: int, threads: int = 1) -> Measured:
    """Return the median wall time, or processor time per thread, after a warm-up run.

    The result includes the slowest run.
    """
    work()
    seconds = []
    clock = time.process_time if BUSY else time.perf_counter
    for _ in range(runs):
        start = clock()
        work()
        seconds.append((clock() - start) / (threads if BUSY else 1))
    return Measured(statistics.median(seconds), max(seconds))


def threads_of(program: str) -> int:
    """Return the number of threads of a C program."""
    return len(os.sched_getaffinity(0)) if "openmp" in program else 1


def threads_on(device: Device, variant: str) -> int:
    """Return the number of threads of a kernel: all cores of a CPU, except for kernels with one work-item."""
    return 1 if variant == "sequential" or device.kind != "CPU" else device.compute_units


def born_in_c(
    library: ctypes.CDLL, atoms: Atoms, runs: int, most: float, threads: int = 1
) -> tuple[float, bool, np.ndarray]:
    """Return the time of all Born radii in C, whether it is scaled from a sample of rows, and the radii."""
    n = len(atoms)
    x = np.ascontiguousarray(atoms.positions, np.float32)
    radii = np.asarray(atoms.gb_radii, np.float32)
    rho = radii - np.float32(0.09)
    scaled = np.asarray(atoms.gb_scales, np.float32) * rho
    found = np.zeros(n, np.float32)

    def rows(first: int, last: int) -> None:
        library.born(n, first, last, pointer(x), pointer(rho), pointer(scaled), pointer(radii), pointer(found))

    few = min(n, 64)
    start = time.process_time()
    rows(0, few)
    whole = (time.process_time() - start) * n / few
    counted = n if whole < most else max(few, int(n * most / whole / 2))
    seconds = median(lambda: rows(0, counted), runs if whole < most else 1, threads)
    return seconds * n / counted, counted < n, found[:counted]


def opencl_rows(device: Device) -> Iterator[tuple[str, str, int | None]]:
    """Yield the kernels of Born radii: a name, the variant and the work-group size."""
    yield "OpenCL, one work-item", "sequential", None
    yield "inner", "inner", None
    yield "outer", "outer", None
    for group in GROUPS:
        yield f"pair, groups of {group}", "pair", group
    yield "ours, tiled", "tiled", None


def born(device: Device, systems: list[str], built: list[Build], runs: int, most: float) -> Iterator[str]:
    """Yield the lines of tables 3.2 and 3.3: Born radii."""
    yield "## Born radii, all pairs, float32\n"
    yield "| structure | atoms | program | device, ms | host, ms | times C -O3 | times C -O0 | largest error |"
    yield "|---|---:|---|---:|---:|---:|---:|---:|"
    for name in systems:
        atoms = load(name)
        exact = Solvent(atoms, energy=False, precision="float64", variant="tiled", device=device)
        wanted = exact.evaluate().born_radii
        base: dict[str, float] = {}
        for program, library in built:
            seconds, sampled, radii = born_in_c(library, atoms, runs, most, threads_of(program))
            base[program] = seconds
            error = float(np.abs(radii / wanted[: len(radii)] - 1).max())
            yield row(name, len(atoms), program, None, seconds, base, error, "*" if sampled else "")
        for program, variant, group in opencl_rows(device):
            if variant == "sequential" and len(atoms) > 5000:
                continue  # tables of `bench solvent` have it, on a sample
            if variant == "inner" and len(atoms) > 5000 and device.kind == "CPU":
                continue
            plan = SolventLadder(atoms, energy=False, variant=variant, device=with_groups(device, group))
            plan.evaluate()
            kernels = statistics.median([plan.evaluate(profile=True).seconds["born"] for _ in range(runs)])
            host = median(lambda: plan.evaluate(atoms.positions), runs, threads_on(device, variant))  # noqa: B023
            error = float(np.abs(plan.evaluate().born_radii / wanted - 1).max())
            yield row(name, len(atoms), program, kernels, host, base, error, "")


def row(
    name: str, n: int, program: str, device: float | None, host: float, base: dict[str, float], error: float, mark: str
) -> str:
    """Return a row of the table of Born radii."""
    ratios = [f"{base[key] / host:.3g}" if key in base else "" for key in ("C, -O3", "C, -O0")]
    shown = "" if device is None else f"{1e3 * device:.4g}"
    return f"| {name} | {n:,} | {program} | {shown} | {1e3 * host:.4g}{mark} | {' | '.join(ratios)} | {error:.1e} |"


def pairs_in_c(
    library: ctypes.CDLL, atoms: Atoms, listed: PairList, alpha: np.ndarray, gradient: bool, runs: int, threads: int = 1
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the time of the energies of a list in C, the three energies, and the gradient."""
    pair = np.ascontiguousarray(np.column_stack([listed.first, listed.second]), np.int32)
    a, b = pair.T
    sigma = 0.5 * (atoms.lj_sigma[a] + atoms.lj_sigma[b])
    qq = np.asarray(atoms.charges[a] * atoms.charges[b], np.float32)
    x, eps = np.ascontiguousarray(atoms.positions, np.float32), np.sqrt(4 * atoms.lj_epsilon).astype(np.float32)
    sigma2, born_radii = (sigma * sigma).astype(np.float32), alpha.astype(np.float32)
    energy, found = np.zeros(3), np.zeros((len(atoms), 3), np.float32)
    k = ctypes.c_float(COULOMB_KCAL_A)

    def once() -> None:
        found[:] = 0
        library.pairs(len(atoms), len(pair), pointer(pair), pointer(sigma2), pointer(qq), pointer(x), pointer(eps),
                      pointer(born_radii), k, pointer(energy), pointer(found) if gradient else None)  # fmt: skip

    return median(once, runs, threads), energy, found


def pairs(device: Device, name: str, built: list[Build], runs: int) -> Iterator[str]:
    """Yield the lines of tables 4.2 to 4.9: energies and gradients over a list of pairs."""
    atoms = load(name)
    alpha = Solvent(atoms, energy=False, device=device).evaluate().born_radii
    in_order = pairs_within(atoms, CUTOFF)
    lists = {"in order": in_order, "shuffled": in_order.shuffled(1)}
    yield f"\n## Energies over {len(in_order):,} pairs of {name} within {CUTOFF:g} A, float32\n"
    yield "| list | gradient | program | once, ms | device, ms | host, ms | times C -O3 | error of the gradient |"
    yield "|---|---|---|---:|---:|---:|---:|---:|"
    variants = [("OpenCL, one work-item", "sequential", None), ("naive (wrong)", "naive", None),
                ("atomic", "atomic", None), ("bitonic", "bitonic", None), ("offsets", "offsets", None),
                *((f"offsets-group, {group}", "offsets-group", group) for group in GROUPS),
                ("ours, rows", "rows", None), ("ours, tiled", "tiled", None)]  # fmt: skip
    for order, listed in lists.items():
        for gradient in (False, True):
            base, exact = 0.0, None
            says = "yes" if gradient else "no"
            if gradient:
                plan = Nonbond(atoms, listed, variant="tiled", precision="float64", device=device)
                exact = plan.evaluate(born_radii=alpha).gradient
            for program, library in built:
                seconds, _, found = pairs_in_c(library, atoms, listed, alpha, gradient, runs, threads_of(program))
                base = seconds if program == "C, -O3" else base
                error = f"{norm_error(found, exact):.1e}" if exact is not None else ""
                ratio = f"{base / seconds:.3g}" if base else ""
                yield f"| {order} | {says} | {program} | | | {1e3 * seconds:.4g} | {ratio} | {error} |"
            for program, variant, group in variants:
                if not gradient and variant not in ("sequential", "offsets", "rows", "tiled"):
                    continue
                made = NonbondLadder(
                    atoms, listed, gradient=gradient, variant=variant, device=with_groups(device, group)
                )
                prepared = made.evaluate(born_radii=alpha).seconds["prepare"]
                plan = NonbondLadder(
                    atoms, listed, gradient=gradient, variant=variant, device=with_groups(device, group)
                )
                result = plan.evaluate(born_radii=alpha)
                kernels = statistics.median(
                    [plan.evaluate(born_radii=alpha, profile=True).seconds["kernel"] for _ in range(runs)]
                )
                once = partial(plan.evaluate, atoms.positions, born_radii=alpha)
                host = median(once, runs, threads_on(device, variant))
                error = f"{norm_error(result.gradient, exact):.1e}" if exact is not None else ""
                ratio = f"{base / host:.3g}" if base else ""
                yield (
                    f"| {order} | {says} | {program} | {1e3 * prepared:.4g} | {1e3 * kernels:.4g} | {1e3 * host:.4g} "
                    f"| {ratio} | {error} |"
                )
    yield from item0(device, atoms)


def norm_error(found: np.ndarray, exact: np.ndarray) -> float:
    """Return the relative error by norm."""
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def built_kernel(device: Device, *files: str) -> cl.Kernel:
    """Build a kernel of the course."""
    text = "\n".join((KERNELS / f"{file}.cl").read_text() for file in files)
    return cl.Program(device.context, text).build("-cl-mad-enable -w").all_kernels()[0]


def milliseconds(device: Device, launch: Callable[[], cl.Event], runs: int = 5) -> Measured:
    """Return the median device time of a kernel in milliseconds, and the slowest run."""
    launch().wait()
    times = []
    for _ in range(runs):
        event = launch()
        event.wait()
        times.append(1e-6 * (event.profile.end - event.profile.start))
    return Measured(statistics.median(times), max(times))


def item0(device: Device, atoms: Atoms) -> Iterator[str]:
    """Test an open question of the thesis: a group loads an atom's pairs into local memory, and only item 0 adds them.

    The cutoff is the longest of 12, 10 and 8 A whose list has at most 500 pairs per atom, the thesis' local array.
    """
    queue, flags = device.queue, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    n = len(atoms)
    for cutoff in (CUTOFF, 10.0, 8.0):
        first = np.asarray(pairs_within(atoms, cutoff).first)
        counts = np.bincount(first, minlength=n)
        if counts.max() <= 500:
            break
    index = np.argsort(first, kind="stable").astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    stored = np.random.default_rng(0).normal(size=(len(first), 4)).astype(np.float32)
    buffers = [cl.Buffer(device.context, flags, hostbuf=array) for array in (stored, index, offsets)]
    out = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 16 * n)
    said = f"within {cutoff:g} A: {counts.mean():.0f} pairs per atom, {counts.max()} at most"
    yield f"\n## Sums of {len(first):,} stored gradients {said}\n"
    yield "| adds up | groups of | device, ms |"
    yield "|---|---:|---:|"
    kernels = [("an item an atom (`segments`)", "solutions/segments", (64,))]
    kernels += [("item 0 of one group per atom (`item0`)", "kernels/item0", GROUPS)] if counts.max() <= 500 else []
    kernels += [("a tree in one group per atom (`tree_segments`)", "kernels/tree_segments", (64,))]
    for says, file, sizes in kernels:
        kernel = built_kernel(device, file)
        for group in sizes:
            items = -(-n // group) * group if file.endswith("/segments") else n * group
            kernel.set_args(np.int32(n), *buffers, np.float32(1), out)

            def launch(kernel: cl.Kernel = kernel, items: int = items, group: int = group) -> cl.Event:
                return cl.enqueue_nd_range_kernel(queue, kernel, (items,), (group,))

            yield f"| {says} | {group} | {milliseconds(device, launch):.4g} |"


def charges_in(n_points: int) -> np.ndarray:
    """Return random charges in a cube of n points per edge, POINTS_PER_ATOM points each; coordinates in spacings."""
    n = max(1, n_points**3 // POINTS_PER_ATOM)
    numbers = np.random.default_rng(2)
    atoms = numbers.uniform(0, n_points, (n, 4)) + 0.25
    atoms[:, 3] = numbers.choice([-1.0, 1.0], n)
    return atoms.astype(np.float32)


def maps(device: Device, built: list[Build], runs: int, most: float, chart: Path | None) -> Iterator[str]:
    """Yield the lines of figure 15.10: seconds by size of the map, a C program and kernels; 20 points per atom.

    Runs that would take longer than `most` seconds are timed with the first atoms only and scaled, marked *.
    """
    said = f"{POINTS_PER_ATOM} points per atom, a cutoff of {REACH} spacings"
    yield f"\n## Potential maps by size, {said}, float32\n"
    yield "| points | atoms | program | ms | G evaluations/s | error | slowest run, ms |"
    yield "|---|---:|---|---:|---:|---:|---:|"
    curves: dict[str, list[tuple[int, Measured]]] = {}

    def shown(n: int, atoms: int, program: str, seconds: Measured, sampled: bool, error: str) -> str:
        curves.setdefault(program, []).append((n**3, seconds))
        rate = "" if "cutoff" in program else f"{1e-9 * n**3 * atoms / seconds:.4g}"
        ms, slowest = f"{1e3 * seconds:.4g}{'*' if sampled else ''}", f"{1e3 * seconds.slowest:.4g}"
        return f"| {n}^3 | {atoms:,} | {program} | {ms} | {rate} | {error} | {slowest} |"

    for n in SIZES[:-1] if device.kind == "CPU" else SIZES:
        atoms = charges_in(n)
        exact = None

        def sample(evaluations: float, n: int = n, atoms: np.ndarray = atoms) -> np.ndarray:
            """Return the number of atoms for which a program at this rate takes `most` seconds in all runs."""
            return atoms[: max(1, int(most / (runs + 1) * evaluations / n**3))]

        for program, library in built:
            phi = np.zeros((n, n, n), np.float32)
            some = sample((1e8 if "O0" in program else 4e8) * threads_of(program))

            def once(
                library: ctypes.CDLL = library, phi: np.ndarray = phi, some: np.ndarray = some, n: int = n
            ) -> None:
                library.map(len(some), pointer(some), n, n, n, ctypes.c_float(1), pointer(phi))

            seconds = median(once, runs, threads_of(program)) * len(atoms) / len(some)
            sampled = len(some) < len(atoms)
            exact = phi.copy() if program == "C, -O3" and not sampled else exact
            yield shown(n, len(atoms), program, seconds, sampled, "")
        for name in ("gather", "coalesced"):
            some = sample(5e8 * device.compute_units if device.kind == "CPU" else 1e12)
            seconds, found = map_on(device, name, some, n, runs)
            sampled = len(some) < len(atoms)
            error = f"{norm_error(found, exact):.1e}" if exact is not None and not sampled else ""
            yield shown(n, len(atoms), f"OpenCL, {name}", seconds * len(atoms) / len(some), sampled, error)
        yield shown(n, len(atoms), "OpenCL, cutoff_bins", cutoff_map(device, atoms, n, runs), False, "")
    if chart is not None:
        draw_sizes(curves, str(device), chart)


def cutoff_map(device: Device, atoms: np.ndarray, n: int, runs: int) -> Measured:
    """Return the time of the kernel of chapter 9, which reads the atoms within REACH spacings from bins."""
    from course import Map, bins_of

    bins = bins_of(Map(atoms, (n, n, n), np.array([0, 0, 0, 1], np.float32)), 4.0)
    near = bins.near(REACH)
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    stored, begins, listed = (cl.Buffer(device.context, flags, hostbuf=of) for of in (bins.atoms, bins.begins, near))
    map_ = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * n**3)
    kernel = built_kernel(device, "solutions/cutoff_bins")
    corner, shape = cl.cltypes.make_float4(0, 0, 0, 1), cl.cltypes.make_int4(*bins.shape, 0)
    numbers = np.int32(n), np.int32(n), np.int32(n)
    kernel.set_args(stored, begins, shape, np.float32(bins.edge), listed, np.int32(len(near)), np.float32(REACH),
                    *numbers, corner, map_)  # fmt: skip
    return 1e-3 * milliseconds(
        device, lambda: cl.enqueue_nd_range_kernel(device.queue, kernel, (n, n, n), (min(n, 64), 1, 1)), runs
    )


def map_on(device: Device, name: str, atoms: np.ndarray, n: int, runs: int) -> tuple[Measured, np.ndarray]:
    """Return the time of a kernel of the course over all chunks of atoms, and its map (n, n, n)."""
    queue = device.queue
    file = {"gather": "solutions/gather", "coalesced": "solutions/coalesced"}.get(name, f"kernels/{name}")
    kernel = built_kernel(device, file)
    points = 4 if name in ("coarsened", "coalesced", "padded") else 1
    width = min(max(n // points, 1), 64 if name == "padded" or points == 1 else 32)
    chunk = len(atoms) if name in ("gather", "image") else 4000
    map_ = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * n**3)
    corner = cl.cltypes.make_float4(0, 0, 0, 1)
    group = width, max(1, 64 // width), 1
    size = -(-(n // points) // width) * width, -(-n // group[1]) * group[1], n
    total, found = Measured(0.0, 0.0), np.zeros((n, n, n), np.float32)
    for begin in range(0, len(atoms), chunk):
        some = atoms[begin : begin + chunk]
        if name == "image":
            source: Any = as_image(device, some)
        else:
            flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
            source = cl.Buffer(device.context, flags, hostbuf=np.ascontiguousarray(some))
        kernel.set_args(np.int32(len(some)), source, *(np.int32(n),) * 3, corner, map_)

        def launch() -> cl.Event:
            return cl.enqueue_nd_range_kernel(queue, kernel, size, group)

        total = total + 1e-3 * milliseconds(device, launch, runs)
        part = np.empty_like(found)
        cl.enqueue_copy(queue, part, map_)
        found += part
    return total, found


def as_image(device: Device, atoms: np.ndarray) -> cl.Image:
    """Return the atoms as pixels of an image, 1,024 per row."""
    rows = -(-len(atoms) // 1024)
    pixels = np.zeros((rows, 1024, 4), np.float32)
    pixels.reshape(-1, 4)[: len(atoms)] = atoms
    return cl.image_from_array(device.context, pixels, num_channels=4, mode="r")


def rungs(device: Device, runs: int, chart: Path | None) -> Iterator[str]:
    """Yield the versions of the lecture, and those with texture memory and padding."""
    n = 64 if device.kind == "CPU" else 256
    atoms = charges_in(n)[: 1000 if device.kind == "CPU" else 4000]
    yield f"\n## Rungs of the lecture, {n}^3 points, {len(atoms):,} atoms, float32\n"
    yield "| kernel | G evaluations/s | slowest run | GFLOPS as the lecture counts | the lecture, G evaluations/s |"
    yield "|---|---:|---:|---:|---:|"
    rates = {}
    for name in ("gather", "constant", "image", "coarsened", "coalesced", "padded"):
        if name == "image" and not device.handle.image_support:
            continue
        rates[name] = 1e-9 * len(atoms) * n**3 / map_on(device, name, atoms, n, runs)[0]
        flops = f"{rates[name] * FLOPS[name]:,.0f}" if name in FLOPS else ""
        yield f"| {name} | {rates[name]:,.4g} | {rates[name].slowest:,.4g} | {flops} | {LECTURE.get(name, '')} |"
    if chart is not None:
        draw(rates, str(device), chart)


def draw_sizes(curves: dict[str, list[tuple[int, Measured]]], title: str, path: Path) -> None:
    """Draw seconds by points of a map, one line per program; thin lines end at the slowest run."""
    from harness.charts import logarithmic, new_figure, save

    figure = new_figure(7, 4.2)
    axes = figure.subplots()
    for (program, line), colour in zip(curves.items(), COLOURS, strict=False):
        points, seconds = zip(*line, strict=True)
        axes.errorbar(points, seconds, errors(seconds), label=program, color=colour, marker="o", markersize=4,
                      capsize=3, linestyle="--" if program.startswith("C,") else "-")  # fmt: skip
    logarithmic(axes.xaxis)
    logarithmic(axes.yaxis)
    axes.set_xlabel("points of the map")
    axes.set_ylabel("seconds")
    axes.set_title(title, fontsize=10, loc="left")
    axes.grid(color="#dddddd", linewidth=0.8)
    axes.legend(fontsize=9, frameon=False)
    save(figure, path)


def draw(rates: dict[str, Measured], title: str, path: Path) -> None:
    """Draw the rates as bars; thin lines end at the slowest run."""
    from harness.charts import new_figure, save

    figure = new_figure(7, 2.8)
    axes = figure.subplots()
    axes.barh(list(rates), list(rates.values()), color="#1f6fb4")
    rows = range(len(rates))
    axes.errorbar(list(rates.values()), rows, xerr=errors(list(rates.values())), fmt="none", color="#333333", capsize=3)
    axes.invert_yaxis()
    axes.set_xlabel("billion evaluations per second")
    axes.set_title(title, fontsize=10, loc="left")
    save(figure, path)


def power(device: Device) -> Iterator[str]:
    """Yield the power in W while a map and Born radii are computed, if the device reports it."""
    yield "\n## Power\n"
    smi = shutil.which("nvidia-smi")
    if device.kind == "CPU" or smi is None:
        yield "No meter of power is read on this device."
        return
    atoms = load("ruvab")
    plan = Solvent(atoms, energy=False, variant="pair", device=with_groups(device, 256))
    plan.evaluate()
    asked = [smi, "--query-gpu=power.draw", "--format=csv,noheader,nounits", "--id=0"]
    idle = float(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
    watts, evaluations, end = [], 0, time.perf_counter() + 3
    reader = subprocess.Popen([*asked, "--loop-ms=200"], stdout=subprocess.PIPE, text=True)
    while time.perf_counter() < end:
        plan.evaluate(atoms.positions)
        evaluations += 1
    reader.terminate()
    watts = [float(line) for line in (reader.communicate()[0] or "").split() if line.replace(".", "").isdigit()]
    mean = statistics.mean(watts[len(watts) // 3 :] or [float("nan")])
    joules = mean * 3 / evaluations
    yield f"Born radii of ruvab by `pair`: {mean:.0f} W (idle {idle:.0f} W), {joules:.3g} J per evaluation."


def main() -> None:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--list", default="src3", help="the structures of the lists of pairs")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--only", default="born,pairs,maps,power")
    parser.add_argument("--chart", type=Path)
    parser.add_argument("--sizes-chart", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore", cl.CompilerWarning)
    globals()["BUSY"] = given.busy
    device, only = get_device(given.device), given.only.split(",")
    lines = [f"On {device}; {time.strftime('%Y-%m-%d', time.gmtime())}:\n", f"    python {' '.join(sys.argv)}\n"]
    with tempfile.TemporaryDirectory() as folder:
        built = list(builds(Path(folder)))
        parts: list[Iterator[str]] = []
        if "born" in only:
            parts.append(born(device, given.systems.split(","), built, given.runs, given.seconds))
        if "pairs" in only:
            parts += [pairs(device, name, built, given.runs) for name in given.list.split(",")]
        if "maps" in only:
            parts.append(maps(device, built, given.runs, given.seconds, given.sizes_chart))
            parts.append(rungs(device, given.runs, given.chart))
        if "power" in only:
            parts.append(power(device))
        for part in parts:
            for line in part:
                print(line, flush=True)
                lines.append(line)
    if given.output:
        given.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
