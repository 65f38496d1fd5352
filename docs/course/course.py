"""Helpers of the course: open a device, run a kernel and time it, molecules, errors, charts.

    python docs/course/course.py run 2                  runs the cells of chapter 2
    python docs/course/course.py run 2 --points 64      the same on a larger map; --molecule src3: on a larger protein
    python docs/course/course.py check gather           checks your kernel mine/gather.cl, in the folder of this file
    python docs/course/course.py check gather --json    the same as one JSON object
    python docs/course/course.py grade hand-ins         checks hand-ins/NAME/gather.cl and others: a row for each;
                                                        --exercises gather,atomic: only these
    python docs/course/course.py hand-out students      copies the course without solutions and answers
    python docs/course/course.py                        lists chapters and exercises

Charts are written to the folder `drawn` next to this file, or to the folder of --charts.
Chapter 1 shows the steps of `run`.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import csv
import difflib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TextIO

import charts
import numpy as np
import pyopencl as cl
from charts import Chart, Measured
from exercises import (
    CASES,
    CRASHED,
    DECLARED,
    EXERCISES,
    QUANTITIES,
    SIMULATED,
    Verdict,
    another,
    blanks,
    check,
    judge,
    seen,
    with_lines,
)
from numpy.typing import NDArray

import pele_ocl
from pele_ocl.checking.check import ENDED_FOR_TIME
from pele_ocl.checking.compiling import plain_source, read_source
from pele_ocl.checking.simulator import INSTALL, simulated, simulator
from pele_ocl.common.installation import shipped
from pele_ocl.opencl.building import require_linker
from pele_ocl.opencl.device import get_device
from pele_ocl.pairs import pairs_within
from pele_ocl.units import COULOMB_KCAL_A

warnings.filterwarnings("ignore", category=cl.CompilerWarning)  # NVIDIA's remarks on every kernel
HERE = Path(__file__).parent
MOST_SECONDS = 480  # of a check, on the clock, which others may slow down
SIMULATED_SECONDS = 120  # of them for the simulator
SECONDS_OF_A_CASE = 10  # that a process computes
CHAPTERS = sorted(HERE.glob("[0-9]-*.md"))
Shape = int | Sequence[int]  # work-items along one axis, or along each

__all__ = [
    "Bins", "Map", "as_image", "bars", "bins_of", "check", "curves", "kernel", "map_of", "molecule", "open_queue",
    "run", "set_points", "within",
]  # fmt: skip


def open_queue() -> cl.CommandQueue:
    """Open a profiling queue on the device set by PELE_OCL_DEVICE, otherwise on the first."""
    device = get_device()
    require_linker(device)  # without it PoCL would end this process
    return device.queue


def kernel(*names: str) -> str:
    """Read kernels of the course, solutions of its exercises, or your own, such as "mine/gather", into one text."""
    folders = HERE, HERE / "kernels", HERE / "solutions", HERE / "mine"  # the last where solutions are kept apart
    texts = []
    for name in names:
        files = [folder / f"{name}.cl" for folder in folders if (folder / f"{name}.cl").is_file()]
        if not files:
            there = [file.relative_to(HERE).with_suffix("").as_posix() for file in HERE.glob("mine/*.cl")]
            there += [file.stem for folder in folders[1:] for file in folder.glob("*.cl")]
            near = difflib.get_close_matches(name, there, 1)
            raise pele_ocl.InputError(
                f"the course has no kernel {name!r}" + (f"; is {near[0]!r} meant?" if near else "")
            )
        texts.append(read_source(files[0]))
    return "\n".join(texts)


def bars(title: str, values: Mapping[str, float], unit: str, *, log: bool = False) -> Chart | None:
    """Draw a bar for each value, with a title and the name of the device."""
    return charts.bars(f"{title}\n{get_device()}", values, unit, log=log)


def curves(title: str, x: str, y: str, series: Mapping[str, Any], **more: Any) -> Chart | None:
    """Draw curves over a logarithmic axis, with a title and the name of the device; more : of `charts.curves`."""
    return charts.curves(f"{title}\n{get_device()}", x, y, series, **more)


def run(
    source: str, size: Shape, *inputs: Any, out: Any, group: Shape | None = None, runs: int = 3, kernel: str = ""
) -> tuple[Measured, Any]:
    """Run the kernel of a source on copies of the inputs. Return the time of the fastest run, s, and the output.

    The time has an attribute `slowest`, the time of the slowest run, which charts draw as a thin line.

    size : work-items along each axis, rounded up here to whole groups
    inputs : arrays and numbers, in the kernel's order; ints go as int, floats as float
    out : one array, or a list of arrays: the last arguments of the kernel, copied anew for each run
    group : work-items of a group; the kernel's own, if it has `reqd_work_group_size`
    kernel : which one, where the source has several; by default the first
    """
    queue = open_queue()
    own = _built(queue.context, source, kernel)
    outs = list(out) if isinstance(out, list | tuple) else [out]
    buffers = [cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, max(array.nbytes, 4)) for array in outs]
    arguments = [_argument(queue, value) for value in inputs]
    size = (size,) if isinstance(size, int) else tuple(size)
    asked = own.get_work_group_info(cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE, queue.device)
    group = tuple(asked[: len(size)]) if any(asked) else group
    if group is not None:
        group = (group,) if isinstance(group, int) else tuple(group)
        size = tuple(-(-n // g) * g for n, g in zip(size, group, strict=True))
    seconds = []
    for _ in range(runs):
        for buffer, array in zip(buffers, outs, strict=True):
            cl.enqueue_copy(queue, buffer, array)
        event = own(queue, size, group, *arguments, *buffers)
        event.wait()
        seconds.append(1e-9 * (event.profile.end - event.profile.start))
    found = [np.empty_like(array) for array in outs]
    for buffer, array in zip(buffers, found, strict=True):
        cl.enqueue_copy(queue, array, buffer)
    return Measured(min(seconds), max(seconds)), found if isinstance(out, list | tuple) else found[0]


@cache
def _built(context: cl.Context, source: str, name: str) -> cl.Kernel:
    """Build a source once. `a * b + c` may become one instruction; messages of the compiler are not shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        kernels = cl.Program(context, source).build("-cl-mad-enable -w").all_kernels()
    return next((each for each in kernels if each.function_name == name), kernels[0])


def _argument(queue: cl.CommandQueue, value: Any) -> Any:
    """Convert a value to the type of a kernel argument."""
    if isinstance(value, np.ndarray) and value.ndim:
        copied = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(queue.context, copied, hostbuf=np.ascontiguousarray(value))
    if isinstance(value, int):
        return np.int32(value)
    return np.float32(value) if isinstance(value, float) else value


def molecule(name: str) -> pele_ocl.Atoms:
    """Read a structure included in pele-ocl: hexapeptide (96 atoms), ubiquitin (1,231), src3 (4,427)."""
    (path,) = _structures(name)
    return pele_ocl.read(path)


def _structures(name: str) -> list[Path]:
    return sorted((shipped("data") / "structures").glob(f"{name}.pdb*"))


@dataclass(frozen=True, eq=False)
class Map:
    """A molecule and the points around it, for the kernels of chapters 1 to 4.

    atoms : (n, 4) float32 x, y, z [A], charge times 332.06
    shape : points along x, y, z
    corner : first point [A] and the spacing
    """

    atoms: NDArray[np.float32]
    shape: tuple[int, int, int]
    corner: NDArray[np.float32]

    @property
    def arguments(self) -> tuple[Any, ...]:
        """All arguments of a kernel except the map."""
        return len(self.atoms), self.atoms, *self.shape, self.corner_vector

    @property
    def corner_vector(self) -> Any:
        """First point and spacing as a float4."""
        return cl.cltypes.make_float4(*map(float, self.corner))

    @property
    def work(self) -> int:
        """Pairs of a point and an atom."""
        return len(self.atoms) * int(np.prod(self.shape))

    def zeros(self) -> NDArray[np.float32]:
        """Map (nz, ny, nx) filled with zeros."""
        return np.zeros(self.shape[::-1], np.float32)

    def exact(self, points: NDArray[np.integer]) -> NDArray[np.float64]:
        """Potential at points (m,), numbered as in memory, as a plain sum in NumPy and float64."""
        nx, ny, _ = self.shape
        index = np.stack([points % nx, points // nx % ny, points // (nx * ny)], axis=1)
        at = self.corner[:3].astype(float) + float(self.corner[3]) * index
        difference = at[:, None, :] - self.atoms[None, :, :3].astype(float)
        return (self.atoms[:, 3] / np.sqrt((difference**2).sum(axis=2))).sum(axis=1)

    def error(self, found: NDArray[np.float32]) -> float:
        """Relative error by norm, at 200 random points of the map, compared with float64."""
        points = np.random.default_rng(1).integers(0, found.size, 200)
        exact = self.exact(points)
        return float(np.linalg.norm(found.ravel()[points] - exact) / np.linalg.norm(exact))


def map_of(name: str, points: int = 24) -> Map:
    """Create a cube of points^3 points around a structure."""
    atoms = molecule(name)
    centre = atoms.positions.mean(axis=0)
    half = np.abs(atoms.positions - centre).max() + 3
    placed = np.column_stack([atoms.positions - centre, COULOMB_KCAL_A * atoms.charges]).astype(np.float32)
    corner = np.array([-half, -half, -half, 2 * half / points], np.float32)
    return Map(placed, (points, points, points), corner)


@dataclass(frozen=True, eq=False)
class Bins:
    """A molecule in bins, for the kernels of chapter 9.

    atoms : (n, 4) float32 as in Map, sorted by bin; begins : (bins + 1,) int32 start of each bin
    shape : bins along x, y, z; edge [A]
    """

    atoms: NDArray[np.float32]
    begins: NDArray[np.int32]
    shape: tuple[int, int, int]
    edge: float

    def near(self, cutoff: float) -> NDArray[np.int32]:
        """List offsets (n, 4) of bins that can contain an atom within the cutoff of any point in a bin."""
        reach = int(np.ceil(cutoff / self.edge))
        steps = np.arange(-reach, reach + 1)
        offsets = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
        gap = np.maximum(np.abs(offsets) - 1, 0) * self.edge  # between the nearest faces of both bins
        return np.pad(offsets[(gap**2).sum(axis=1) < cutoff**2], ((0, 0), (0, 1))).astype(np.int32)

    def arguments(self, cutoff: float, of: Map) -> tuple[Any, ...]:
        """All arguments of a kernel except the map."""
        near, shape = self.near(cutoff), cl.cltypes.make_int4(*self.shape, 0)
        return (self.atoms, self.begins, shape, self.edge, near, len(near), cutoff, *of.shape, of.corner_vector)


def bins_of(of: Map, edge: float) -> Bins:
    """Sort the atoms of a map into cubic bins, from the map's first point to the last atom."""
    place = np.floor((of.atoms[:, :3] - of.corner[:3]) / edge).astype(int)
    counts = tuple(int(last) + 1 for last in place.max(axis=0))
    number = (place[:, 2] * counts[1] + place[:, 1]) * counts[0] + place[:, 0]
    begins = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=int(np.prod(counts))))])
    return Bins(of.atoms[np.argsort(number, kind="stable")], begins.astype(np.int32), counts, edge)


def within(of: Map, cutoff: float, points: NDArray[np.integer]) -> NDArray[np.float64]:
    """Potential at points (m,) due to atoms within the cutoff, times (1 - r^2/cutoff^2)^2, in NumPy and float64."""
    nx, ny, _ = of.shape
    index = np.stack([points % nx, points // nx % ny, points // (nx * ny)], axis=1)
    at = of.corner[:3].astype(float) + float(of.corner[3]) * index
    r2 = ((at[:, None, :] - of.atoms[None, :, :3].astype(float)) ** 2).sum(axis=2)
    smooth = np.where(r2 < cutoff**2, (1 - r2 / cutoff**2) ** 2, 0)
    return (of.atoms[:, 3] / np.sqrt(r2) * smooth).sum(axis=1)


def as_image(atoms: NDArray[np.float32]) -> cl.Image:
    """Copy atoms (n, 4) to an image with 1,024 pixels per row, for kernels that read texture memory."""
    pixels = np.zeros((-(-len(atoms) // 1024), 1024, 4), np.float32)
    pixels.reshape(-1, 4)[: len(atoms)] = atoms
    return cl.image_from_array(open_queue().context, pixels, num_channels=4, mode="r")


@dataclass(frozen=True, eq=False)
class Pairs:
    """A molecule and its pair list, for the kernels of chapters 4 and 5.

    atoms : (n, 4) float32 x, y, z [A], charge times 18.22, so a product of two includes Coulomb's constant
    pairs : (m, 2) int32, first and second atom
    """

    atoms: NDArray[np.float32]
    pairs: NDArray[np.int32]

    @property
    def arguments(self) -> tuple[Any, ...]:
        """All arguments of a kernel except the gradient."""
        return len(self.pairs), self.pairs, self.atoms

    def zeros(self) -> NDArray[np.float32]:
        """Gradient (n, 3) filled with zeros."""
        return np.zeros((len(self.atoms), 3), np.float32)

    def of_pairs(self) -> NDArray[np.float64]:
        """Gradient (m, 3) of the Coulomb energy of each pair with respect to its first atom, in NumPy and float64."""
        first, second = self.atoms[self.pairs[:, 0]].astype(float), self.atoms[self.pairs[:, 1]].astype(float)
        difference = first[:, :3] - second[:, :3]
        r = np.sqrt((difference**2).sum(axis=1))
        return -(first[:, 3] * second[:, 3] / r**3)[:, None] * difference

    def exact(self) -> NDArray[np.float64]:
        """Gradient of the Coulomb energy of all pairs (n, 3)."""
        gradient = np.zeros((len(self.atoms), 3))
        np.add.at(gradient, self.pairs[:, 0], self.of_pairs())
        np.subtract.at(gradient, self.pairs[:, 1], self.of_pairs())
        return gradient

    def error(self, found: NDArray[np.float32]) -> float:
        """Relative error by norm."""
        exact = self.exact()
        return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def pairs_of(name: str, cutoff: float = 8.0, shuffled: bool = False) -> Pairs:
    """List the pairs of a structure within a cutoff, without those one or two bonds apart, in order or shuffled."""
    atoms = molecule(name)
    listed = pairs_within(atoms, cutoff)
    listed = listed.shuffled(1) if shuffled else listed
    charged = np.column_stack([atoms.positions - atoms.positions.mean(axis=0), np.sqrt(COULOMB_KCAL_A) * atoms.charges])
    return Pairs(charged.astype(np.float32), np.column_stack([listed.first, listed.second]).astype(np.int32))


@dataclass(frozen=True, eq=False)
class Born:
    """A molecule for the kernels of chapter 7, padded to complete tiles of 32 with atoms of scaled radius 0.

    n_atoms : without padding
    atoms : (n, 4) float32 x, y, z, scaled radius s [A]
    rho : (n,) float32 radius minus 0.09 [A]
    """

    n_atoms: int
    atoms: NDArray[np.float32]
    rho: NDArray[np.float32]

    @property
    def columns(self) -> list[NDArray[np.float32]]:
        """Coordinates x, y, z, each (n,)."""
        return [np.ascontiguousarray(self.atoms[:, axis]) for axis in range(3)]

    @property
    def series(self) -> NDArray[np.float32]:
        """Coefficients of the series, k/(2k+1) s^(2k+1) for k = 1 to 4 (n, 4)."""
        s = self.atoms[:, 3].astype(float)
        return np.stack([k / (2 * k + 1) * s ** (2 * k + 1) for k in range(1, 5)], axis=1).astype(np.float32)

    @property
    def boxes(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Centre of each tile's box with its largest s, and half its edges with 0 (tiles, 4)."""
        tiles = self.atoms.reshape(-1, 32, 4)
        low, high = tiles.min(axis=1), tiles.max(axis=1)
        centre, half_edges = (low + high) / 2, (high - low) / 2 + 1e-4  # so that rounding leaves no atom outside
        centre[:, 3], half_edges[:, 3] = high[:, 3], 0
        return centre, half_edges

    def zeros(self) -> NDArray[np.float32]:
        """Integrals (n,) filled with zeros."""
        return np.zeros(len(self.rho), np.float32)

    @cached_property
    def exact(self) -> NDArray[np.float64]:
        """Born integrals of the atoms in NumPy and float64, by the closed form (n_atoms,)."""
        atoms, found = self.atoms[: self.n_atoms].astype(float), []
        for i, rho in enumerate(self.rho[: self.n_atoms].astype(float)):
            others = np.delete(atoms, i, axis=0)
            r, s = np.linalg.norm(others[:, :3] - atoms[i, :3], axis=1), others[:, 3]
            lower, upper = 1 / np.maximum(rho, np.abs(r - s)), 1 / (r + s)
            term = lower - upper + (r - s * s / r) / 4 * (upper**2 - lower**2) + np.log(upper / lower) / (2 * r)
            term += np.where(rho < s - r, 2 * (1 / rho - lower), 0)
            found.append(0.5 * term[rho < r + s].sum())
        return np.array(found)

    def error(self, found: NDArray[np.float32]) -> float:
        """Largest relative error of an integral."""
        return float(np.abs(found[: self.n_atoms] / self.exact - 1).max())


def born_of(name: str, in_order: bool = True) -> Born:
    """Prepare a structure, with atoms in the order of the file, or sorted so that groups of 32 are compact."""
    atoms = molecule(name)
    n = len(atoms)
    order = np.arange(n) if in_order else halved(atoms.positions, np.arange(n))
    positions = atoms.positions[order] - atoms.positions.mean(axis=0)
    rho = atoms.gb_radii[order] - 0.09
    spheres = np.column_stack([positions, atoms.gb_scales[order] * rho])
    padding = -n % 32
    padded = np.pad(spheres, ((0, padding), (0, 0)), mode="edge")
    padded[n:, 3] = 0
    return Born(n, padded.astype(np.float32), np.pad(rho, (0, padding), mode="edge").astype(np.float32))


def halved(positions: NDArray[np.float64], which: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sort atoms: halve their box across its longest edge, at a multiple of 32, until at most 32 are left."""
    if len(which) <= 32:
        return which
    axis = int(np.argmax(np.ptp(positions[which], axis=0)))
    which = which[np.argsort(positions[which, axis], kind="stable")]
    middle = 32 * ((len(which) // 32 + 1) // 2)
    return np.concatenate([halved(positions, which[:middle]), halved(positions, which[middle:])])


def repulsion(name: str, most: int) -> NDArray[np.float32]:
    """List Coulomb energies of up to `most` pairs of positive atoms, in the order of the atoms [kcal/mol]."""
    atoms = molecule(name)
    positive = atoms.charges > 0
    positions, charges = atoms.positions[positive], atoms.charges[positive]
    rows = range(1, min(len(charges), 2 + int(np.sqrt(2 * most))))
    terms = [
        COULOMB_KCAL_A * charges[i] * charges[:i] / np.linalg.norm(positions[:i] - positions[i], axis=1) for i in rows
    ]
    return np.concatenate(terms)[:most].astype(np.float32)


def races(name: str) -> str:
    """Run a kernel on 206 pairs in the simulator oclgrind; return its first report of a race, or a message.

    name : of the course, or "mine/atomic", your own
    """
    if simulator() is None:
        return f"oclgrind is not installed: {INSTALL}"
    return f"{name}: {race_in(kernel(name)) or 'no race'}"


def race_in(source: str) -> str:
    """Describe the first race that oclgrind finds in a kernel on 206 pairs; "" if there is none."""
    reports = report_on("atomic", source).split("data race at")[1:]
    if not reports:
        return ""
    items, lines = re.findall(r"Global\((\d+)", reports[0]), re.findall(r"At line (\d+)", reports[0])
    at = source.splitlines()
    return "\n".join(
        [
            f"{len(reports)} races, the first:",
            *(f"work-item {i}, line {n}: {at[int(n) - 1].strip()}" for i, n in zip(items, lines, strict=True)),
        ]
    )


def report_on(exercise: str, source: str) -> str:
    """Run a case of an exercise in oclgrind, and return its report; "" without findings.

    Raises InputError if it does not end or crashes, as oclgrind does for `any` of a vector of comparisons.
    """
    with tempfile.TemporaryDirectory() as folder:
        log, file = Path(folder) / "report", Path(folder) / "kernel.cl"
        file.write_text(source, encoding="utf-8")
        command, environment = simulated(
            [sys.executable, str(HERE / "course.py"), "once", exercise, str(file)], str(log)
        )
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=SIMULATED_SECONDS)
        except subprocess.TimeoutExpired:
            report = log.read_text() if log.exists() else ""
            if report.strip():  # of an access outside an array, after which loops may be very long
                return report
            raise pele_ocl.InputError(f"oclgrind did not end within {SIMULATED_SECONDS} s, without findings") from None
        if done.returncode < 0:
            raise pele_ocl.InputError("oclgrind crashed, so races and invalid accesses were not checked")
        if "ran once" not in done.stdout:
            raise RuntimeError(done.stdout + done.stderr)
        return log.read_text() if log.exists() else ""


def sort_pairs(atom_of: NDArray[np.int32]) -> tuple[float, NDArray[np.int32]]:
    """Sort the numbers of pairs by atom with `bitonic_step`. Return the time of all launches, s, and the numbers."""
    queue, n = open_queue(), len(atom_of)
    keys = np.full(1 << (n - 1).bit_length(), 2**64 - 1, np.uint64)  # padded with the largest key to a power of two
    keys[:n] = atom_of.astype(np.uint64) << np.uint64(32) | np.arange(n, dtype=np.uint64)
    step = cl.Program(queue.context, kernel("bitonic_step")).build().bitonic_step
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=keys)
    events, span = [], 2
    while span <= len(keys):
        distance = span // 2
        while distance:
            events.append(step(queue, (len(keys) // 2,), None, np.uint32(span), np.uint32(distance), buffer))
            distance //= 2
        span *= 2
    cl.enqueue_copy(queue, keys, buffer)
    seconds = 1e-9 * sum(event.profile.end - event.profile.start for event in events)
    return seconds, (keys[:n] & np.uint64(0xFFFFFFFF)).astype(np.int32)


def index_pairs(atom_of: NDArray[np.int32], n_atoms: int) -> tuple[float, NDArray[np.int32], NDArray[np.int32]]:
    """Count, scan and fill. Return the time of all launches, s, the index list and the offsets (n_atoms + 1)."""
    seconds, counts = run(kernel("count"), len(atom_of), len(atom_of), atom_of, out=np.zeros(n_atoms, np.int32), runs=1)
    ends, distance = counts, 1
    while distance < n_atoms:
        of_step, ends = run(kernel("scan_step"), n_atoms, n_atoms, distance, ends, out=ends, runs=1)
        seconds, distance = seconds + of_step, 2 * distance
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    outs = [offsets[:-1], np.zeros(len(atom_of), np.int32)]
    of_fill, (_, index) = run(kernel("fill"), len(atom_of), len(atom_of), atom_of, out=outs, runs=1)
    return seconds + of_fill, index, offsets


def set_points(source: str, points: int) -> str:
    """Change the number of points per work-item in a source with `enum { POINTS = 4 };`."""
    return re.sub(r"POINTS = \d+", f"POINTS = {points}", source)


def cells(chapter: Path) -> list[str]:
    """Return the cells of a chapter."""
    return re.findall(r"^```\{code-cell\}\n(.*?)^```$", chapter.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def resized(cell: str, molecule: str | None, points: int | None) -> str:
    """Change the molecule of a cell, or the number of points along each edge of maps."""
    if molecule is not None:
        cell = re.sub(r'\b(map_of|pairs_of|born_of)\("\w+"', rf'\1("{molecule}"', cell)
    return cell if points is None else re.sub(r"\bpoints=\d+", f"points={points}", cell)


def run_cells(chapter: Path, molecule: str | None = None, points: int | None = None) -> Iterator[object]:
    """Run the cells of a chapter as in a notebook, and yield the value of the last line of each, if it has one."""
    names: dict[str, object] = {}
    for number, cell in enumerate(cells(chapter), 1):
        cell = resized(cell, molecule, points)
        body = ast.parse(cell).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        name = f"{chapter.stem}, cell {number}"
        exec(compile(ast.Module(body, []), name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
            if value is not None:
                yield value


def main(words: list[str]) -> int:
    """Run the command line; return 1 if a check fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(
        dest="command", metavar="run | check | grade | hand-out"
    )  # the other two are for this file itself
    running = commands.add_parser("run")
    running.add_argument("chapter", type=int, choices=range(1, len(CHAPTERS) + 1))
    running.add_argument("--molecule", choices=[path.name.partition(".")[0] for path in _structures("*")])
    running.add_argument("--points", type=int, help="points along each edge of a map")
    running.add_argument("--charts", type=Path, default=HERE / "drawn", help="folder for the charts")
    for name in ("check", "check-here", "once"):  # a process that may crash, or never end; a case in oclgrind
        checking = commands.add_parser(name)
        checking.add_argument("exercise", choices=EXERCISES)
        checking.add_argument("file", type=Path, nargs="?", help="by default mine/EXERCISE.cl next to course.py")
        checking.add_argument("--json", action="store_true", help="print one JSON object")
    grading = commands.add_parser("grade")
    grading.add_argument("folder", type=Path, help="contains a folder for each student with files EXERCISE.cl")
    grading.add_argument("-o", "--output", type=Path, help="CSV file; by default the table is printed")
    grading.add_argument(
        "--exercises", type=_exercises, default=EXERCISES, help="to check, separated by commas; by default all"
    )
    handing = commands.add_parser("hand-out")
    handing.add_argument("folder", type=Path, help="new folder for the students' repository")
    asked = parser.parse_args(words)
    if asked.command == "hand-out":
        return _hand_out(asked.folder)
    if asked.command == "run":
        return _run(CHAPTERS[asked.chapter - 1], asked.molecule, asked.points, asked.charts)
    if asked.command is None:
        print(__doc__)
        print("chapters:", *(path.stem for path in CHAPTERS))
        print("exercises:", *EXERCISES)
        return 0
    if asked.command == "grade":
        return _grade(asked.folder, asked.output, asked.exercises)
    exercise, file = asked.exercise, asked.file or HERE / "mine" / f"{asked.exercise}.cl"
    if not file.is_file():
        copied = f"; cp {HERE / 'blanks' / file.name} {HERE / 'mine'} creates it, with blanks to fill"
        print(f"there is no file {file}{copied if asked.file is None else ''}")
        return 2
    if asked.command == "check" and asked.json:
        verdict = _verdict(exercise, file)
        print(json.dumps(asdict(verdict)))
        return 0 if verdict.is_right else 1
    if asked.command == "check":
        return _check_apart(exercise, file)
    if asked.command == "check-here":
        say = (lambda words: print(words, file=sys.stderr)) if asked.json else print
        verdict = judge(exercise, read_source(file), most_seconds=SECONDS_OF_A_CASE, say=say)
        if asked.json:
            print("", json.dumps(asdict(verdict)), sep="\n")  # kernels may have printed without ending the line
        return 0 if verdict.is_right else 1
    case = list(CASES[exercise]())[SIMULATED[exercise]]
    of = dict(out=case.before, group=case.group, kernel=case.kernel)
    run(case.whole(read_source(file)), case.size, *case.inputs, **of, runs=1)
    print("ran once")
    return 0


def _exercises(words: str) -> list[str]:
    """Parse names of exercises separated by commas."""
    names = [word.strip() for word in words.split(",")]
    if unknown := [name for name in names if name not in EXERCISES]:
        raise argparse.ArgumentTypeError(f"no exercise {unknown[0]!r}; there are {', '.join(EXERCISES)}")
    return names


def _run(chapter: Path, molecule: str | None, points: int | None, folder: Path) -> int:
    """Run a chapter, print the device, its tables, and save its charts."""
    print("on", get_device())
    for number, value in enumerate(run_cells(chapter, molecule, points), 1):
        if isinstance(value, Chart):
            folder.mkdir(parents=True, exist_ok=True)
            print(value.table, end="")
            print("chart:", *value.save(folder / f"{chapter.stem}-{number}"))
        else:
            print(value)
    return 0


def _grade(folder: Path, output: Path | None, exercises: Sequence[str]) -> int:
    """Check exercises: a row for each exercise of each student, with the errors or the time.

    With an output file, a line for each student is printed: how many exercises are correct, and which are not.
    """
    folders = sorted(path for path in folder.glob("*") if path.is_dir() and not path.name.startswith("."))
    if not any((student / f"{exercise}.cl").is_file() for student in folders for exercise in exercises):
        print(f"{folder} has no files STUDENT/EXERCISE.cl, such as {folder}/ada/{exercises[0]}.cl")
        return 2
    open_queue()  # no row is written where nothing can be computed
    right = dict.fromkeys(exercises, 0)
    with contextlib.nullcontext(sys.stdout) if output is None else _written(output) as into:
        table = csv.writer(into)
        table.writerow(["student", "exercise", "right", "findings", "ms", "ms of the solution"])
        for student in folders:
            wrong, missing, unchecked = [], [], []
            for exercise in exercises:
                file = student / f"{exercise}.cl"
                if not file.is_file():
                    missing.append(exercise)
                    continue
                verdict = _verdict(exercise, file)
                beside = verdict.solution_seconds
                if verdict.is_right and beside is None:
                    beside = _seconds_of_solution(exercise)
                times = ["" if each is None else f"{1e3 * each:.4g}" for each in (verdict.seconds, beside)]
                is_right = "yes" if verdict.is_right else "no" if verdict.is_checked else "?"
                table.writerow([student.name, exercise, is_right, "; ".join(verdict.findings), *times])
                into.flush()
                right[exercise] += verdict.is_right
                if not verdict.is_right:
                    (wrong if verdict.is_checked else unchecked).append(exercise)
            if output is not None:
                said = [f"wrong: {', '.join(wrong)}"] * bool(wrong)
                said += [f"could not be checked: {', '.join(unchecked)}"] * bool(unchecked)
                said += [f"not handed in: {', '.join(missing)}"] * bool(missing)
                n_right = len(exercises) - len(wrong) - len(unchecked) - len(missing)
                print("; ".join([f"{student.name:20} {n_right} of {len(exercises)} right", *said]), flush=True)
    if output is not None:
        print(
            "\ncorrect answers of all", len(folders), "students:", ", ".join(f"{name} {n}" for name, n in right.items())
        )
    return 0


def _written(output: Path) -> TextIO:
    """Open the table, in UTF-8 with the byte order mark that spreadsheets need."""
    return output.open("w", newline="", encoding="utf-8-sig")


def _hand_out(folder: Path) -> int:
    """Copy the course for students, without solutions, answers, charts and the contents of `mine`."""
    if folder.exists():
        print(f"{folder} already exists; choose a new folder")
        return 2
    apart = {"solutions", "answers.md", "slides", "drawn", "__pycache__"}
    shutil.copytree(HERE, folder, ignore=lambda _, names: apart & set(names))
    for file in (folder / "mine").glob("*.cl"):
        file.unlink()
    print(f"{folder}: the course without solutions and answers")
    return 0


def _verdict(exercise: str, file: Path) -> Verdict:
    """Check a kernel in a separate process, and return the findings."""
    try:
        source = read_source(file)
    except pele_ocl.PeleError as error:
        return Verdict(exercise, findings=[str(error)])
    verdict = Verdict(exercise, findings=[*blanks(source), *another(exercise, source)])
    if verdict.findings:
        return verdict
    if exercise in QUANTITIES:
        command = [sys.executable, "-m", "pele_ocl", "check", str(file), *_options(exercise, source), "--json"]
    else:
        command = [sys.executable, str(HERE / "course.py"), "check-here", exercise, str(file), "--json"]
    try:
        done = subprocess.run(command, timeout=MOST_SECONDS, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        return replace(verdict, findings=[f"it does not end within {MOST_SECONDS} s"])
    if done.returncode in ENDED_FOR_TIME:
        return replace(verdict, findings=[f"it does not end within {SECONDS_OF_A_CASE} s of CPU time"])
    if done.returncode < 0:
        return replace(verdict, findings=[CRASHED, *_seen_apart(exercise, source, lambda _: None)])
    if done.returncode > 1 or not done.stdout.strip():
        why = " ".join(done.stderr.split())[-300:]
        return replace(verdict, findings=[f"it could not be checked: {why}"], is_checked=False)
    found = json.loads(done.stdout.splitlines()[-1])
    if exercise not in QUANTITIES:
        return Verdict(**found)
    said = with_lines((each["line"], each["sentence"]) for each in found["findings"])
    seconds = found["rungs"][0]["seconds"] if found["rungs"] else None
    return replace(verdict, is_right=found["is_right"], findings=said, seconds=seconds)


def _seen_apart(exercise: str, source: str, say: Callable[[str], None]) -> list[str]:
    """List the simulator's findings for a kernel that crashed; it runs in a separate process."""
    return [] if exercise in QUANTITIES else seen(exercise, source, say)


def _options(exercise: str, source: str) -> list[str]:
    """Options of `pele-ocl check` for an exercise; if the file has several kernels, the one with its name is used."""
    kernels = DECLARED.findall(plain_source(source))
    return [*QUANTITIES[exercise], *(["--kernel", exercise] if len(kernels) > 1 and exercise in kernels else [])]


@cache
def _seconds_of_solution(exercise: str) -> float | None:
    """Time the solution of an exercise like a student's kernel; None if solutions are not included."""
    file = HERE / "solutions" / f"{exercise}.cl"
    return _verdict(exercise, file).seconds if file.is_file() else None


def _check_apart(exercise: str, file: Path) -> int:
    """Check a kernel in a separate process, because it may crash or never end."""
    open_queue()
    print("on", get_device(), flush=True)
    source = read_source(file)
    if exercise in QUANTITIES and (said := [*blanks(source), *another(exercise, source)]):
        print(*(f"{exercise}: {each}" for each in said), sep="\n")
        return 1
    if exercise in QUANTITIES:
        asked = ["check", str(file), *_options(exercise, source)]
        print("pele-ocl", *asked, flush=True)
        return subprocess.run([sys.executable, "-m", "pele_ocl", *asked]).returncode
    command = [sys.executable, str(HERE / "course.py"), "check-here", exercise, str(file)]
    try:  # runtimes write to the second stream, too
        done = subprocess.run(command, timeout=MOST_SECONDS, stderr=subprocess.PIPE, text=True)
        code, complaints = done.returncode, done.stderr
    except subprocess.TimeoutExpired:
        code, complaints = None, ""
    if code is None or code in ENDED_FOR_TIME:
        endless = "an infinite loop, or a barrier that not all work-items reach"
        if exercise == "atomic":
            endless = "an infinite loop, if `expected` is not the value that the last exchange returned"
        within = f"{MOST_SECONDS} s" if code is None else f"{SECONDS_OF_A_CASE} s of CPU time"
        print(f"{exercise}: it does not end within {within}; a correct kernel takes milliseconds: {endless}")
    elif code < 0:
        print(f"{exercise}: {CRASHED}")
        _seen_apart(exercise, source, print)
    elif code > 1 or "Traceback" in complaints:
        print(complaints, file=sys.stderr)
    return 0 if code == 0 else 1


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except pele_ocl.PeleError as error:
        print("Error:", error, file=sys.stderr)
        code = 2
    raise SystemExit(code)
