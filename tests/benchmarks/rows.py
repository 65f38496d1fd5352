"""Rows per second written to text files with results of frames, by one core, without disk access.

python tests/benchmarks/rows.py [ROWS] makes CSV and JSON lines of ten terms a row.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from pele_ocl.trajectories.recording import RECORDERS
from pele_ocl.trajectories.streaming import FrameResults

ROUNDS, TERMS = 5, 10


def main(n_rows: int) -> None:
    """Print one line per format."""
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.integers(-2, 3, TERMS)
    results = FrameResults({f"term{k}": rng.normal(0, 100, n_rows) * size for k, size in enumerate(sizes)}, {})
    for suffix in (".csv", ".jsonl"):
        times = []
        for _ in range(ROUNDS):
            with (
                tempfile.TemporaryDirectory() as folder,
                RECORDERS[suffix](Path(folder) / f"out{suffix}", {}, range(n_rows)) as recorder,
            ):
                start = time.process_time()
                recorder.append(results)
                times.append(time.process_time() - start)
        print(f"{suffix:7s} {n_rows / min(times):9,.0f} rows/s, {1e9 * min(times) / n_rows / TERMS:4.0f} ns a number")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30_000)
