"""Contribution of each optimization in the fast kernels for Born radii and potential maps, by removing one at a time.

python tests/benchmarks/parts.py DEVICE... prints a Markdown table with one column per device, in float32.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np
from harness.markdown import table

from pele_ocl import Solvent, potmap
from pele_ocl.bench.potmap import random_system
from pele_ocl.bench.systems import load
from pele_ocl.bench.timing import profiled
from pele_ocl.opencl import Device, get_device, queue
from pele_ocl.potmap import variants as map_variants
from pele_ocl.tiles import tables, tiles

ROUNDS = 7
NEVER = 10**6  # scaled radii
NO_SERIES = {"CLOSED": (NEVER, 1), "FAR": (NEVER, 5), "FAR_A": (NEVER, 4), "FAR_B": (NEVER, 3), "FAR_C": (NEVER, 2)}


@contextmanager
def unsorted() -> Iterator[None]:
    """Use tiles of randomly chosen atoms."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(tiles, "LONGEST_STEP", np.inf))
        random = np.random.default_rng(1)
        stack.enter_context(patch.object(tiles, "hilbert_keys", lambda positions: random.permutation(len(positions))))
        yield


def scalar_vectors() -> AbstractContextManager[object]:
    """Use vectors of one real."""
    return patch.object(Device, "vector_width", lambda device, precision: 1)


def plain_roots() -> AbstractContextManager[object]:
    """Use 1/x and 1/sqrt(x) of the language."""
    return patch.object(queue, "Queue", partial(queue.Queue, portable=True))


def no_soft_roots() -> AbstractContextManager[object]:
    """Compute all roots in the special-function unit."""
    blocking = map_variants._blocking
    return patch.object(map_variants, "_blocking", lambda queue, problem: replace(blocking(queue, problem), soft=0))


Parts = dict[str, Callable[[], AbstractContextManager[object]]]
SOLVENT_PARTS: Parts = {
    "unchanged": nullcontext,
    "without the far series": lambda: patch.dict(tables.SERIES, float32=NO_SERIES),
    "without sorting": unsorted,
    "without vectors": scalar_vectors,
    "with plain roots and divisions": plain_roots,
}
MAP_PARTS: Parts = {
    "unchanged": nullcontext,
    "without vectors": scalar_vectors,
    "with plain roots": plain_roots,
    "with all roots by the special-function unit": no_soft_roots,
}
CPU_PARTS, GPU_PARTS = ("without vectors",), ("with all roots by the special-function unit",)


def born_radii(name: str, device: Device) -> Callable[[], float]:
    """Return the time of the kernels for the Born radii of an included structure, in seconds."""
    evaluate = profiled(Solvent(load(name), variant="tiled", device=device).evaluate)
    return lambda: evaluate().seconds["born"]


def map_of(points: int, n_atoms: int, device: Device) -> Callable[[], float]:
    """Return the time of the kernels for a map of random charges, in seconds."""
    atoms, grid = random_system(points, n_atoms)
    return lambda: potmap(atoms, grid, device=device).seconds["kernel"]


def times(parts: Parts, ready: Callable[[Device], Callable[[], float]], device: Device) -> list[float]:
    """Return the median time of each variant; they are timed alternately."""
    once = []
    for without in parts.values():
        with without():
            once.append(ready(device))
            once[-1]()  # builds the kernels
    seconds = np.empty((ROUNDS, len(parts)))
    for round_ in seconds:
        for k, without in enumerate(parts.values()):
            with without():
                round_[k] = once[k]()
    return list(np.median(seconds, axis=0))


def columns(parts: Parts, ready: Callable[[Device], Callable[[], float]], devices: list[Device]) -> list[list[str]]:
    """Return the names of the parts and, for each device, ms and the ratio to the full version."""
    found = [list(parts)]
    for device in devices:
        measured = times(parts, ready, device)
        found.append([f"{1e3 * time:,.3g} ({time / measured[0]:.2g}x)" for time in measured])
    return found


if __name__ == "__main__":
    chosen = [get_device(name) for name in sys.argv[1:] or [None]]
    gpu = any(device.kind == "GPU" for device in chosen)
    structure, size = ("ruvab", (256, 16384)) if gpu else ("src3", (64, 2048))
    for about, parts, ready in (
        (f"Born radii, {structure}, ms", SOLVENT_PARTS, partial(born_radii, structure)),
        (f"map, {size[0]}^3 points x {size[1]:,} atoms, ms", MAP_PARTS, partial(map_of, *size)),
    ):
        of_kind = {name: without for name, without in parts.items() if name not in (CPU_PARTS if gpu else GPU_PARTS)}
        cells = columns(of_kind, ready, chosen)
        print("\n".join(table([[about, *map(str, chosen)], *zip(*cells, strict=True)])), end="\n\n")
