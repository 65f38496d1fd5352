"""What minimizing rows takes: classes and files that a call enters, commands of the device, and memory that it keeps.

python tests/benchmarks/rows_minimized.py [--device D] [--rows 32] minimizes the hexapeptide alone, as one of eight rows
and as eight rows, each warm, and then rows of ubiquitin. Commands are launches, copies and fills that the host starts.
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


def entered(call: Callable[[], object]) -> tuple[int, int]:
    """Count the classes and files of the package that a call enters."""
    classes, files = set[type](), set[str]()

    def seen(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT):
            files.add(code.co_filename)
            if code.co_varnames[:1] == ("self",):
                classes.add(type(frame.f_locals["self"]))

    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(classes), len(files)


def commands(call: Callable[[], object]) -> Counter[str]:
    """Count the commands that a call starts."""
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
    """Print a line for each call, and the memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--rows", default=32, type=int)
    options = parser.parse_args()
    device = get_device(options.device)
    atoms = pele_ocl.read(STRUCTURES / "hexapeptide.pdb")
    starts = atoms.positions + np.random.default_rng(0).normal(0, 0.05, (8, len(atoms), 3))
    alone = pele_ocl.Minimizer(atoms, tolerance=0.5, device=device)
    rows = pele_ocl.Ensemble(atoms, 8, device=device)

    def of_rows(chosen: Any) -> object:
        rows.positions[:] = starts
        return rows.minimize(chosen, tolerance=0.5)

    calls = {"alone": lambda: alone.minimize(starts[0]), "a row": lambda: of_rows([0]), "8 rows": lambda: of_rows(None)}
    for name, call in calls.items():
        for _ in range(3):
            call()
        (classes, files), counts = entered(call), commands(call)
        numbers = ", ".join(f"{counts[command]} {command}" for command in COMMANDS)
        print(f"{name}: {classes} classes, {files} files; {numbers}", flush=True)
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
