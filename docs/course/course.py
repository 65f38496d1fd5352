"""Helpers of the course: open a device, run a kernel and time it, molecules, errors, charts.

    python docs/course/course.py run 2                  runs the cells of chapter 2, one after the other
    python docs/course/course.py check gather mine.cl   checks a kernel of your own against NumPy
    python docs/course/course.py                        lists chapters and exercises

Nothing here is hidden: chapter 1 does by hand what `run` does.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyopencl as cl
from charts import Chart, bars, curves
from exercises import EXERCISES, check
from numpy.typing import NDArray

import pele_ocl
from pele_ocl.opencl.device import get_device
from pele_ocl.paths import shipped
from pele_ocl.units import COULOMB_KCAL_A

HERE = Path(__file__).parent
CHAPTERS = sorted(HERE.glob("[0-9]-*.md"))

__all__ = ["Map", "bars", "check", "curves", "kernel", "map_of", "molecule", "open_queue", "run", "set_points"]


def open_queue() -> cl.CommandQueue:
    """Open a queue that takes times, on the device that PELE_OCL_DEVICE names, else on the first."""
    return get_device().queue


def kernel(*names: str) -> str:
    """Read kernels of the course, or solutions of its exercises: one text of them all."""
    found = (next(HERE.glob(f"[ks]*s/{name}.cl")) for name in names)
    return "\n".join(path.read_text() for path in found)


def run(source: str, size, *inputs, out, group=None, runs: int = 3):
    """Run the kernel of a source on copies of the inputs. Return the fastest run's seconds, and what it wrote.

    size : work-items along each axis, rounded up here to whole groups
    inputs : arrays and numbers, in the kernel's order; ints go as int, floats as float
    out : one array, or a list of arrays: the last arguments of the kernel, copied anew for each run
    """
    queue = open_queue()
    built = cl.Program(queue.context, source).build()
    own = built.all_kernels()[0]
    outs = list(out) if isinstance(out, list | tuple) else [out]
    buffers = [cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, max(array.nbytes, 4)) for array in outs]
    arguments = [_argument(queue, value) for value in inputs]
    size = (size,) if isinstance(size, int) else tuple(size)
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
    return min(seconds), found if isinstance(out, list | tuple) else found[0]


def _argument(queue: cl.CommandQueue, value):
    """Give a value as a kernel takes it."""
    if isinstance(value, np.ndarray) and value.ndim:
        copied = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(queue.context, copied, hostbuf=np.ascontiguousarray(value))
    if isinstance(value, int):
        return np.int32(value)
    return np.float32(value) if isinstance(value, float) else value


def molecule(name: str) -> pele_ocl.Atoms:
    """Read a structure that comes with pele-ocl: hexapeptide (96 atoms), ubiquitin (1,231), src3 (4,427)."""
    (path,) = (shipped("data") / "structures").glob(f"{name}.pdb*")
    return pele_ocl.read(path)


@dataclass(frozen=True, eq=False)
class Map:
    """A molecule and the points around it, ready for the kernels of chapters 1 to 4.

    atoms : (n, 4) float32 x, y, z [A], charge times 332.06
    shape : points along x, y, z
    corner : first point [A] and the spacing
    """

    atoms: NDArray[np.float32]
    shape: tuple[int, int, int]
    corner: NDArray[np.float32]

    @property
    def arguments(self) -> tuple:
        """All arguments of a kernel but the map."""
        return len(self.atoms), self.atoms, *self.shape, self.corner_vector

    @property
    def corner_vector(self):
        return cl.cltypes.make_float4(*map(float, self.corner))

    @property
    def work(self) -> int:
        """Pairs of a point and an atom."""
        return len(self.atoms) * int(np.prod(self.shape))

    def zeros(self) -> NDArray[np.float32]:
        """A map of zeros (nz, ny, nx)."""
        return np.zeros(self.shape[::-1], np.float32)

    def exact(self, points: NDArray[np.integer]) -> NDArray[np.float64]:
        """Potential at points (m,), numbered as in memory, in NumPy and float64: the sum as one writes it."""
        nx, ny, _ = self.shape
        index = np.stack([points % nx, points // nx % ny, points // (nx * ny)], axis=1)
        at = self.corner[:3].astype(float) + float(self.corner[3]) * index
        difference = at[:, None, :] - self.atoms[None, :, :3].astype(float)
        return (self.atoms[:, 3] / np.sqrt((difference**2).sum(axis=2))).sum(axis=1)

    def error(self, found: NDArray[np.float32]) -> float:
        """Relative error by norm, at 200 points anywhere in the map, against float64."""
        points = np.random.default_rng(1).integers(0, found.size, 200)
        exact = self.exact(points)
        return float(np.linalg.norm(found.ravel()[points] - exact) / np.linalg.norm(exact))


def map_of(name: str, points: int = 24) -> Map:
    """Lay points^3 points in a cube around a structure."""
    atoms = molecule(name)
    centre = atoms.positions.mean(axis=0)
    half = np.abs(atoms.positions - centre).max() + 3
    placed = np.column_stack([atoms.positions - centre, COULOMB_KCAL_A * atoms.charges]).astype(np.float32)
    corner = np.array([-half, -half, -half, 2 * half / points], np.float32)
    return Map(placed, (points, points, points), corner)


def set_points(source: str, points: int) -> str:
    """Change how many points a work-item owns, in a source that says `enum { POINTS = 4 };`."""
    return re.sub(r"POINTS = \d+", f"POINTS = {points}", source)


def cells(chapter: Path) -> list[str]:
    """Return the cells of a chapter."""
    return re.findall(r"^```\{code-cell\}\n(.*?)^```$", chapter.read_text(), re.DOTALL | re.MULTILINE)


def run_cells(chapter: Path) -> Iterator[object]:
    """Run the cells of a chapter as a notebook does, and yield what the last line of each is, if it is a value."""
    names: dict[str, object] = {}
    for number, cell in enumerate(cells(chapter), 1):
        body = ast.parse(cell).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        name = f"{chapter.stem}, cell {number}"
        exec(compile(ast.Module(body, []), name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
            if value is not None:
                yield value


def main(words: list[str]) -> int:
    """Do what the command line says; return 1 if a check fails."""
    if len(words) == 2 and words[0] == "run" and words[1] in [path.stem[0] for path in CHAPTERS]:
        chapter = CHAPTERS[int(words[1]) - 1]
        for number, value in enumerate(run_cells(chapter), 1):
            if isinstance(value, Chart):
                print("chart:", *value.save(f"{chapter.stem}-{number}"))
            else:
                print(value)
        return 0
    if len(words) == 3 and words[0] == "check" and words[1] in EXERCISES and Path(words[2]).is_file():
        return 0 if check(words[1], Path(words[2]).read_text()) else 1
    print(__doc__)
    print("chapters:", *(path.stem for path in CHAPTERS))
    print("exercises:", *EXERCISES)
    return 0 if not words else 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
