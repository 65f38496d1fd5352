"""Wall time of the command `pele-ocl potmap` for a PQR file with the mesh method.

python tests/benchmarks/map_command.py [ATOMS[,...] [SUFFIX[,...] [RUNS]]]

A ball of atoms as dense as a protein, 10,000 and 100,000 by default; a map of 256^3 points, 0.5 A apart, to 1e-4, as
.mrc by default. The first run, which may compile kernels, is ignored; the median and the fastest of RUNS others, 5 by
default, are printed. The device is the default device of `pele-ocl`, or PELE_OCL_DEVICE.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pele_ocl.bench.systems import ball_of_atoms

POINTS, SPACING = 256, 0.5
NAMES = ("N", "CA", "C", "O", "CB", "H", "HA", "HB1", "HB2", "HB3")
LINE = "{:<6}{:5d}  {:<4}ALA {}{:4d}    {:8.3f}{:8.3f}{:8.3f} {:7.4f} {:6.4f}\n"


def write_pqr(path: Path, n_atoms: int) -> None:
    """Write a PQR file with residues of ten atoms, in PDB columns as by PDB2PQR, 9,999 residues per chain."""
    atoms = ball_of_atoms(n_atoms)
    assert atoms.gb_radii is not None
    with open(path, "w") as file:
        for i, (place, charge, radius) in enumerate(zip(atoms.positions, atoms.charges, atoms.gb_radii, strict=True)):
            residue = i // len(NAMES)
            chain, number = chr(ord("A") + residue // 9999 % 26), residue % 9999 + 1
            file.write(LINE.format("ATOM", (i + 1) % 100_000, NAMES[i % 10], chain, number, *place, charge, radius))


def seconds_of(command: list[str]) -> float:
    """Return the time of one process in seconds."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""})
    return time.perf_counter() - start


def main() -> None:
    given = dict(zip(("atoms", "suffixes", "runs"), sys.argv[1:], strict=False))
    runs = int(given.get("runs", 5))
    corner = str(-SPACING * (POINTS - 1) / 2)
    print("| atoms | file | median, s | fastest, s |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for n_atoms in map(int, given.get("atoms", "10000,100000").split(",")):
            molecule = Path(folder) / f"{n_atoms}.pqr"
            write_pqr(molecule, n_atoms)
            for suffix in given.get("suffixes", "mrc").split(","):
                command = [
                    sys.executable, "-m", "pele_ocl", "potmap", str(molecule), "-o", f"{folder}/map.{suffix}",
                    "--method", "mesh", "--accuracy", "1e-4", "--origin", corner, corner, corner,
                    "--shape", *[str(POINTS)] * 3, "--spacing", str(SPACING),
                ]  # fmt: skip
                times = [seconds_of(command) for _ in range(1 + runs)][1:]
                print(f"| {n_atoms:,} | .{suffix} | {statistics.median(times):.2f} | {min(times):.2f} |", flush=True)


if __name__ == "__main__":
    main()
