"""Cost of minimizing rows: classes and files used by a call, device commands, and memory.

python tests/benchmarks/rows_minimized.py [--device D] [--rows 32] [--list] minimizes the hexapeptide alone, as one of
eight rows and as eight rows, each after a warm-up, and then rows of ubiquitin. It counts classes whose methods run,
files of the package and calls of its functions in `minimize`, without writing positions. Commands are launches, copies
and fills started by the host. --list names the classes and files used for a row.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyopencl as cl

import pele_ocl
from pele_ocl.common.installation import shipped
from pele_ocl.opencl import get_device

ROOT = str(Path(pele_ocl.__file__).parent)
STRUCTURES = shipped("data") / "structures"
COMMANDS = ("enqueue_nd_range_kernel", "enqueue_copy", "enqueue_fill_buffer")


def entered(call: Callable[[], object]) -> tuple[set[type], set[str], int]:
    """Return the classes and files of the package used by a call, and the number of function calls."""
    classes, files, n_calls = set[type](), set[str](), 0

    def seen(frame: FrameType, event: str, _: Any) -> None:
        nonlocal n_calls
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT):
            n_calls += 1
            files.add(code.co_filename)
            if code.co_varnames[:1] == ("self",):
                classes.add(type(frame.f_locals["self"]))

    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    return classes, files, n_calls


def commands(call: Callable[[], object]) -> Counter[str]:
    """Count the commands started by a call."""
    counts, own = Counter[str](), {name: getattr(cl, name) for name in COMMANDS}

    def counted(name: str) -> Callable[..., Any]:
        return lambda *args, **options: counts.update([name]) or own[name](*args, **options)

    for name in COMMANDS:
        setattr(cl, name, counted(name))
    try:
        call()
    finally:
        for name in COMMANDS:
            setattr(cl, name, own[name])
    return counts


def main() -> None:
    """Print one line per call, and the memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--rows", default=32, type=int)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    device = get_device(options.device)
    atoms = pele_ocl.read(STRUCTURES / "hexapeptide.pdb")
    starts = atoms.positions + np.random.default_rng(0).normal(0, 0.05, (8, len(atoms), 3))
    alone = pele_ocl.Minimizer(atoms, tolerance=0.5, device=device)
    rows = pele_ocl.Ensemble(atoms, 8, device=device)

    def prepared() -> None:
        rows.positions[:] = starts

    calls: dict[str, Callable[[], object]] = {
        "alone": lambda: alone.minimize(starts[0]),
        "a row": lambda: rows.minimize([0], tolerance=0.5),
        "8 rows": lambda: rows.minimize(tolerance=0.5),
    }
    for name, call in calls.items():
        for _ in range(3):
            prepared()
            call()
        prepared()
        classes, files, n_calls = entered(call)
        prepared()
        counts = commands(call)
        numbers = ", ".join(f"{counts[command]} {command}" for command in COMMANDS)
        print(f"{name}: {len(classes)} classes, {len(files)} files, {n_calls} calls; {numbers}", flush=True)
        if options.list and name == "a row":
            print("  " + " ".join(sorted(each.__name__ for each in classes)))
            print("  " + " ".join(sorted(file.removeprefix(f"{ROOT}/") for file in files)))
    ubiquitin = pele_ocl.read(STRUCTURES / "ubiquitin.pdb")
    gc.collect()
    held = [device.held_bytes]
    many = pele_ocl.Ensemble(ubiquitin, options.rows, device=device)
    held.append(device.held_bytes)
    begin = time.perf_counter()
    many.minimize(max_iterations=3)
    seconds = time.perf_counter() - begin
    gc.collect()
    held.append(device.held_bytes)
    before, after = (f"{(now - held[0]) / 2**20:.1f}" for now in held[1:])
    print(f"{options.rows} rows of ubiquitin: {before} MiB, {after} kept after minimizing ({seconds:.2f} s)")


if __name__ == "__main__":
    main()
