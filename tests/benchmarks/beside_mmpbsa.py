"""Comparison of MM/GBSA by MMPBSA.py and `pele-ocl mmpbsa`: processor times and results.

python beside_mmpbsa.py FOLDER [--frames 20] [--runs 3] [--peers FILE]
python beside_mmpbsa.py FOLDER FOLDER ... [--runs 3] [--peers FILE]     # one minimized structure of each

FOLDER contains com.parm7, rec.parm7, lig.parm7 and com.rst7, as created by parity_build.py. The frames are the
coordinates with noise of 0.02 A. Both programs use the same input, igb 5 with LCPO surfaces and use_sander = 1, and
write a table; each run uses a separate folder.

Times are user and system processor times of the complete command and its child processes, which do not depend on other
programs. MMPBSA.py uses one core, pele-ocl all cores of the device. Byte code of both is cached, as for installed
packages, and pele-ocl runs once before it is timed. FILE is a shell script that adds AmberTools to the PATH.

With several folders, each complex is first minimized, which is not timed. MMPBSA.py needs one command per complex,
because topologies differ; `pele-ocl binding` computes all of them in one command.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

import numpy as np

import pele_ocl

INPUT = "beside\n&general\n use_sander=1, netcdf=1, keep_files=0\n/\n&gb\n igb=5, saltcon=0.1\n/\n"
FILES = "-O -i mmpbsa.in -cp com.parm7 -rp rec.parm7 -lp lig.parm7 -y com.nc"
DELTA = re.compile(r"^DELTA TOTAL\s+(-?[\d.]+)", re.MULTILINE)


def used(command: str, folder: Path, byte_code: Path | None = None) -> float:
    """Run a shell command, and return its processor time in seconds, including child processes.

    byte_code : folder for cached byte code; by default next to the sources
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if byte_code is not None:
        environment["PYTHONPYCACHEPREFIX"] = str(byte_code)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["bash", "-c", command], cwd=folder, check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print medians, and the mean binding energy of each program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--frames", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peers", type=Path)
    given = parser.parse_args()
    if len(given.folders) == 1:
        frames_of_one(given.folders[0], given)
    else:
        one_of_each(given.folders, given)


def one_of_each(folders: list[Path], given: argparse.Namespace) -> None:
    """Time one minimized structure of each complex."""
    source = f"source {given.peers.resolve()}; " if given.peers else ""
    solvent = "--gb obc2 --like mmpbsa.py --surface lcpo --ionic-strength 0.1"
    with tempfile.TemporaryDirectory() as temporary:
        places = [Path(temporary) / str(k) for k in range(len(folders))]
        for place, folder in zip(places, folders, strict=True):
            place.mkdir()
            for file in ("com.parm7", "rec.parm7", "lig.parm7"):
                shutil.copy(folder / file, place)
            atoms = pele_ocl.read(folder / "com.parm7", coordinates=folder / "com.rst7")
            found = pele_ocl.minimize(atoms, tolerance=1.0, max_iterations=200)
            pele_ocl.write_conformations(place / "com.nc", atoms, found.positions[np.newaxis])
            (place / "mmpbsa.in").write_text(INPUT)
        topologies = " ".join(f"{k}/com.parm7" for k in range(len(places)))
        ours = (
            f"{sys.executable} -m pele_ocl binding {topologies} "
            + " ".join(f"-c {k}/com.nc" for k in range(len(places)))
            + f" --ligand 'resname LIG' {solvent} -o ours.csv"
        )
        seconds: dict[str, list[float]] = {"MMPBSA.py": [], "pele-ocl": []}
        kept = Path(temporary) / "kept"
        used(ours, Path(temporary), kept)
        for _ in range(given.runs):
            seconds["MMPBSA.py"].append(sum(used(f"{source}MMPBSA {FILES} -o out.dat", place) for place in places))
            seconds["pele-ocl"].append(used(ours, Path(temporary), kept))
        theirs = [float(DELTA.findall((place / "out.dat").read_text())[0]) for place in places]
        with (Path(temporary) / "ours.csv").open() as stream:
            totals = [
                float(row["total [kcal/mol]"])
                for row in csv.DictReader(line for line in stream if not line.startswith("#"))
            ]
    for folder, one, other in zip(folders, theirs, totals, strict=True):
        print(f"{folder.name:16} MMPBSA.py {one:10.4f}, pele-ocl {other:10.4f} kcal/mol")
    report(seconds, f"{len(folders)} complexes, one minimized structure each, {given.runs} runs in turn")


def report(seconds: dict[str, list[float]], title: str) -> None:
    """Print the medians and their ratio."""
    print(title)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    for name, each in seconds.items():
        print(f"{name:10} {medians[name]:8.2f} s of the processor ({min(each):.2f} to {max(each):.2f})")
    print(f"ratio {medians['MMPBSA.py'] / medians['pele-ocl']:.1f}")


def frames_of_one(own: Path, given: argparse.Namespace) -> None:
    """Time several frames of one complex."""
    atoms = pele_ocl.read(own / "com.parm7", coordinates=own / "com.rst7")
    noise = np.random.default_rng(0).normal(0, 0.02, (given.frames, *atoms.positions.shape))
    source = f"source {given.peers.resolve()}; " if given.peers else ""
    commands = {
        "MMPBSA.py": f"{source}MMPBSA {FILES} -o out.dat",
        "pele-ocl": f"{sys.executable} -m pele_ocl mmpbsa {FILES} -o out.dat",
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    deltas = {}
    with tempfile.TemporaryDirectory() as temporary:
        for run, (name, command) in product(range(given.runs + 1), commands.items()):
            if run or name == "pele-ocl":  # which runs once before it is timed
                folder = Path(temporary) / f"{name}-{run}"
                folder.mkdir()
                for file in ("com.parm7", "rec.parm7", "lig.parm7"):
                    shutil.copy(own / file, folder)
                (folder / "mmpbsa.in").write_text(INPUT)
                pele_ocl.write_conformations(folder / "com.nc", atoms, atoms.positions + noise)
                taken = used(command, folder, Path(temporary) / "kept" if name == "pele-ocl" else None)
                seconds[name] += [taken] if run else []
                (deltas[name],) = DELTA.findall((folder / "out.dat").read_text())
    report(seconds, f"{own.name}: {len(atoms):,} atoms, {given.frames} frames, {given.runs} runs in turn; "
                    f"mean binding energies {deltas}")  # fmt: skip


if __name__ == "__main__":
    main()
