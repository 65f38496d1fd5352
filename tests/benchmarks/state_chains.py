"""Random chains of calls on a Simulation and its Ensemble, compared with a model in NumPy, in several processes.

python tests/benchmarks/state_chains.py [--chains 5000] [--methods 500] [--first 0] [--processes N] [--seconds 180]
    [--device D]

The chains are those of tests/test_fuzz_state.py: 40 random writes, runs, reads, saves and restores each, in float64,
after each of which a random choice of all readable state is compared with the model. Chains of methods check that
hills, exchanges and noise continue bit for bit after a checkpoint and after a pickle. Seeds start at --first. No chain
starts after --seconds. Prints each failure with the calls that led to it, and finally the numbers of chains; the exit
code is 1 if a chain failed or none was run. Processes on CPUs have one thread each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

LAST = 15.0  # s that the chains under way may take


def work(given: argparse.Namespace, begin: float) -> None:
    """Run every n-th chain of each kind; print failures, and write counts to a file."""
    from test_fuzz_state import OPERATIONS, make_chain, make_chain_of_methods

    from pele_ocl.opencl import get_device

    device = get_device(given.device)
    made: dict[str, Any] = {"chains": 0, "calls": 0, "methods": 0, "failed": 0, "device": str(device)}
    for kind, make, count in (("methods", make_chain_of_methods, given.methods), ("chains", make_chain, given.chains)):
        for seed in range(given.first + given.process, given.first + count, given.processes):
            if time.monotonic() > begin + given.seconds:
                break
            try:
                with tempfile.TemporaryDirectory(dir=given.folder) as folder:
                    make(seed, device, Path(folder))
            except Exception:
                made["failed"] += 1
                print(f"{kind} of seed {seed} failed\n{traceback.format_exc()}", flush=True)
            made[kind] += 1
            made["calls"] += OPERATIONS if kind == "chains" else 0
            (given.folder / f"{given.process}.json").write_text(json.dumps(made))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=5000)
    parser.add_argument("--methods", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--device", default=os.environ.get("PELE_OCL_DEVICE") or None)
    parser.add_argument("--process", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    begin = time.monotonic()
    if given.process is not None:
        work(given, begin)
        return
    environment = os.environ | {"POCL_MAX_PTHREAD_COUNT": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, *sys.argv[1:], "--processes", str(given.processes), "--folder", folder]
        running = [subprocess.Popen([*command, "--process", str(k)], env=environment) for k in range(given.processes)]
        hung = 0
        for process in running:
            try:
                process.wait(max(1.0, begin + given.seconds + LAST - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                hung += 1
        parts = [json.loads(path.read_text()) for path in Path(folder).glob("*.json")]
    chains, calls, methods, failed = (
        sum(of[name] for of in parts) for name in ("chains", "calls", "methods", "failed")
    )
    devices, seconds = ", ".join({of["device"] for of in parts}), time.monotonic() - begin
    print(f"{devices}; {given.processes} processes, {seconds:.0f} s, seeds from {given.first}")
    print(f"{chains:,} chains of {calls:,} calls and {methods:,} chains of methods; {failed} failed")
    ended = sum(process.returncode != 0 for process in running)
    if ended:
        print(f"{ended} processes ended before their last chain, {hung} of them as they took too long")
    sys.exit(1 if failed or ended or not chains else 0)


if __name__ == "__main__":
    main()
