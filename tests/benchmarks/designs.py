"""Total time of `pele-ocl minimize` for a folder of designs: reading, minimizing, writing.

python tests/benchmarks/designs.py [--count 1000] [--system ubiquitin] [--noise 0.1] [--tolerance 1] [--device NAME]

writes copies of an included structure with noise added to positions, and runs the command in a separate process: first
on a few of them, to build kernels, and then on all.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pele_ocl.bench.systems import SYSTEMS
from pele_ocl.common.installation import shipped
from pele_ocl.common.textfiles import plain_bytes


def write_designs(folder: Path, lines: Sequence[str], count: int, noise: float) -> None:
    """Write `count` files with the atoms of the PDB lines, with noise added in A."""
    rng = np.random.default_rng(1)
    atoms = [k for k, line in enumerate(lines) if line.startswith(("ATOM", "HETATM"))]
    positions = np.array([[float(lines[k][first : first + 8]) for first in (30, 38, 46)] for k in atoms])
    for design in range(count):
        moved = list(lines)
        for k, (x, y, z) in zip(atoms, positions + noise * rng.normal(size=positions.shape), strict=True):
            moved[k] = f"{lines[k][:30]}{x:8.3f}{y:8.3f}{z:8.3f}{lines[k][54:]}"
        (folder / f"design{design:05d}.pdb").write_text("\n".join(moved) + "\n")


def command(pattern: str, output: Path, options: argparse.Namespace) -> float:
    """Return the time of the command on all files that match a pattern, in seconds."""
    device = ["--device", options.device] if options.device else []
    words = ["minimize", pattern, "-o", str(output), "--tolerance", f"{options.tolerance}kJ/mol/nm", *device]
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-m", "pele_ocl", *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    """Read the options and print the time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", default=1000, type=int)
    parser.add_argument("--system", default="ubiquitin", choices=list(SYSTEMS))
    parser.add_argument("--noise", default=0.1, type=float)
    parser.add_argument("--tolerance", default=1.0, type=float, help="kJ/mol/nm")
    parser.add_argument("--device")
    options = parser.parse_args()
    lines = plain_bytes(shipped("data") / "structures" / SYSTEMS[options.system]).decode().splitlines()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_designs(folder, lines, options.count, options.noise)
        command(str(folder / "design0000[0-3].pdb"), folder / "few", options)
        seconds = command(str(folder / "design*.pdb"), folder / "out", options)
        written = len(list((folder / "out").glob("*.pdb")))
    print(
        f"{written} files of {options.system}, {options.noise:g} A of noise, to {options.tolerance:g} kJ/mol/nm: "
        f"{seconds:.1f} s, {1e3 * seconds / options.count:.1f} ms each, reading and writing included"
    )


if __name__ == "__main__":
    main()
