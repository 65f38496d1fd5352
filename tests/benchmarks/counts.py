"""Count the operations per evaluation of each rung of the ladders, in a simulator.

oclgrind must be installed:

    python tests/benchmarks/counts.py > pele_ocl/bench/counts.json
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

COUNTED = {
    "roots": re.compile(r"(\d+) - (?:fdiv|call _Z\d+(?:log|exp|exp2|rsqrt|native_\w+)[fd]?\w*\(\))"),
    "multiply_adds": re.compile(r"(\d+) - (?:fadd|fsub|fmul|call llvm\.fmuladd\S*|call _Z3fma\w+\(\))"),
    "bytes": re.compile(r"(?:load|store) (?:global|constant) \((\d+) bytes\)"),
}
APART = ("correct",)  # kernels that are no part of a rung
APPROXIMATE = ("cutoff", "msm", "mesh", "tree", "native")  # whose work depends on more than the evaluations


def evaluations(name: str) -> int:
    """Return the number of evaluations in a rung's small run."""
    from pele_ocl.kernels.listing import evaluations_of

    return evaluations_of(name)


def counts(name: str) -> dict[str, float]:
    """Run a rung in the simulator, and return its counts per evaluation."""
    program = (
        "from pele_ocl.kernels import KERNELS; from pele_ocl.opencl import get_device; "
        f"KERNELS[{name!r}].run(get_device('oclgrind'))"
    )
    done = subprocess.run(
        ["oclgrind", "--inst-counts", sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    total = dict.fromkeys(COUNTED, 0)
    for block in (done.stdout + done.stderr).split("Instructions executed for kernel ")[1:]:
        if block.split("'")[1] not in APART:
            for kind, pattern in COUNTED.items():
                total[kind] += sum(map(int, pattern.findall(block)))
    return {kind: round(value / evaluations(name), 2) for kind, value in total.items()}


def main() -> None:
    """Write the counts of all rungs as JSON."""
    from pele_ocl.kernels import KERNELS

    wanted, found = sys.argv[1:] or ["potmap/", "solvent/", "nonbond/"], {}
    for name in KERNELS:
        if name.startswith(tuple(wanted)) and not name.endswith(APPROXIMATE):
            found[name] = counts(name)
            print(name, found[name], file=sys.stderr)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
