"""Comparison of command lines between two checkouts: exit codes, text, JSON and output files.

    python tests/benchmarks/command_lines.py BEFORE AFTER [--only WORD] [--list]

BEFORE and AFTER are folders of checkouts. Each line runs with both, each time in a new folder with the same inputs.
Times, speeds and versions are excluded from the comparison; everything else must be equal byte by byte. Every changed
number, word or column is reported; it is either a mistake or belongs in the changelog.
The exit code is the number of lines that differ, at most 100.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
STRUCTURES = ROOT / "data" / "structures"

# Words of `pele-ocl`, in the folder of the inputs: the included structures, and what earlier lines of a group wrote.
# Lines joined by " && " share a folder.
LINES = """
devices
energy hexapeptide.pdb
energy hexapeptide.pdb --json
energy hexapeptide.pdb trialanine.pdb --json
energy hexapeptide.pdb -o e.csv --per-residue
energy hexapeptide.pdb -o e.h5 -v
energy hexapeptide.pdb --gb gbn2
energy hexapeptide.pdb --gb gbn2 --json
energy hexapeptide.pdb --gb gbn --radii bondi --no-gradient
energy hexapeptide.pdb --like amber --ionic-strength 0.15
energy hexapeptide.pdb --like sander --surface lcpo --json
energy hexapeptide.pdb --gb none --cutoff 8
energy hexapeptide.pdb --terms bonded --precision float64
energy hexapeptide.pdb --select "resid 1 2 3"
energy hexapeptide.pdb -t hexapeptide.pdb --json
energy ubiquitin.pdb --forcefield amber99sb --born tree
energy missing.pdb
energy hexapeptide.pdb --gb bad
energy hexapeptide.pdb --select "resname XYZ"
energy bad.pdb
solvent ubiquitin.pdb
solvent ubiquitin.pdb --json --per-residue
solvent ubiquitin.pdb -o s.h5
solvent hexapeptide.pdb --gb hct --variant tiled -v
solvent hexapeptide.pdb --gb obc1 --like openmm --json
nonbond hexapeptide.pdb
nonbond hexapeptide.pdb --json --cutoff 12
nonbond hexapeptide.pdb --write-pairs p.h5 && nonbond hexapeptide.pdb --pairs p.h5 -o n.csv
nonbond ubiquitin.pdb --split-cutoffs --solvent vacuum
potmap trialanine.pdb --spacing 1.5 -o m.dx
potmap trialanine.pdb --spacing 1.5 --method direct --json -o m.mrc
potmap trialanine.pdb --spacing 1 --method cutoff --cutoff 8 -o m.cube
potmap trialanine.pdb --spacing 2 --field -o f.h5
potmap trialanine.pdb --spacing 1 --method pb -o m.dx --json
potmap trialanine.pdb --spacing 1.5 -o m.dx && sample m.dx trialanine.pdb -o v.csv && convert m.dx m.mrc
potmap trialanine.pdb --spacing 1.5 -o m.dx && mapmath m.dx + m.dx -o n.dx --json
pb trialanine.pdb --spacing 1
pb trialanine.pdb --spacing 1 --json --ionic-strength 0.15 -o m.dx
pb trialanine.pdb --spacing 1 --nonlinear --ionic-strength 0.15
pb trialanine.pdb --spacing 1 --like apbs
minimize hexapeptide.pdb -o m.pdb --max-iterations 50
minimize hexapeptide.pdb -o m.pdb --max-iterations 50 --json --restrain backbone:1
minimize hexapeptide.pdb -o m.cif --freeze "name CA" --max-iterations 20
minimize hexapeptide.pdb trialanine.pdb -o out --max-iterations 20 --table t.csv
relax trialanine.pdb -o r.pdb
binding hexapeptide.pdb --ligand "resid 1"
binding hexapeptide.pdb --ligand "resid 1" --json --gb gbn2
binding hexapeptide.pdb --ligand "resid 1 2" --idecomp 2 -o b.csv
binding hexapeptide.pdb --ligand "resid 1" --alanine "resid 3"
binding hexapeptide.pdb --ligand "resid 1" -t hexapeptide.pdb --like mmpbsa.py
binding trialanine.pdb --ligand "resid 1" --pb --spacing 1
refine hexapeptide.pdb --ligand "resid 1" --max-iterations 3 -o out --json
simulate trialanine.pdb --steps 20 -o out --seed 3 --json
simulate trialanine.pdb --steps 20 -o out --seed 3 --replicas 3 --temperatures 300,350,400
ions hexapeptide.pdb --concentration 0.3 -o i.pdb --json
prepare hexapeptide.pdb -o p.pdb --json
view trialanine.pdb -o v.html --json
kernel potmap/gather --plain
kernel
explore missing.conf
minimize hexapeptide.pdb -o hexapeptide.pdb
merge nothing.h5 -o x.h5
""".strip().splitlines()

# What differs from run to run. Keys of JSON with such a word in them are left out.
NOISY_KEYS = re.compile(r"second|version|speed|per_day|date|written|wall")
NOISE = [
    (re.compile(r"^Compiling kernels for .*\n", re.M), ""),
    (re.compile(r"\d[\d,.]*(e[-+]?\d+)? (ns|us|ms|s|min|h)\b(?!/)"), "TIME"),
    (re.compile(r"[\d,.]+ (?=(ns/day|frames/s|steps/s|structures/s|GB/s|points/s|pairs/s))"), "SPEED "),
    (re.compile(r" +\d+\.\d\d$", re.M), " TIME"),  # last column of tables
    (re.compile(r"[\d,.]+ per replica"), "SPEED per replica"),
    (re.compile(r"(\w*seconds\w*)[,=: ]+[-\d.e+]+"), r"\1 TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?"), "DATE"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--only", default="", help="lines that contain this")
    parser.add_argument("--list", action="store_true", help="print the lines and end")
    args = parser.parse_args()
    chosen = [line for line in LINES if args.only in line]
    if args.list:
        print("\n".join(chosen))
        return
    count = 0
    for line in chosen:
        before, after = (results(line, checkout.resolve()) for checkout in (args.before, args.after))
        found = list(differences(before, after))
        count += bool(found)
        print(f"{'DIFFERS' if found else 'same   '}  {line}", *found[:40], sep="\n", flush=True)
    print(f"{len(chosen) - count} of {len(chosen)} lines are the same")
    sys.exit(min(count, 100))


def results(line: str, checkout: Path) -> dict[str, str]:
    """Run a command line; return the exit code, the output and the files it wrote, as text."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PELE_OCL_TUNING": "off", "COLUMNS": "100"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for structure in STRUCTURES.iterdir():
            (folder / structure.name).symlink_to(structure)
        (folder / "bad.pdb").write_text("ATOM      1  N   ALA A   1       x.000   0.000   0.000  1.00  0.00\nEND\n")
        given = set(folder.rglob("*"))
        found: dict[str, str] = {}
        for k, words in enumerate(line.split(" && ")):
            done = subprocess.run(
                f"{sys.executable} -m pele_ocl {words}", shell=True, cwd=folder, env=environment, capture_output=True,
                text=True, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            found |= {
                f"exit code {k}": str(done.returncode),
                f"stdout {k}": quiet(done.stdout, folder),
                f"stderr {k}": quiet(done.stderr, folder),
            }
        for path in sorted(set(folder.rglob("*")) - given):
            if path.is_file():
                found[f"file {path.relative_to(folder)}"] = quiet(content(path), folder)
        return found


def content(path: Path) -> str:
    """Return the content of a file: arrays and attributes of HDF5, text, or bytes."""
    if path.suffix == ".h5":
        lines: list[str] = []
        with h5py.File(path) as file:
            file.visititems(lambda name, each: lines.extend(described(name, each)))
            lines.extend(f"@{name} = {value}" for name, value in sorted(file.attrs.items()))
        return "\n".join(lines)
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return path.read_bytes().hex()


def described(name: str, each: h5py.Dataset | h5py.Group) -> Iterator[str]:
    if isinstance(each, h5py.Dataset):
        with np.printoptions(threshold=sys.maxsize, linewidth=100):
            yield f"{name} {each.dtype} {each.shape}\n{each[()]}"
    yield from (f"{name}@{key} = {value}" for key, value in sorted(each.attrs.items()))


def without_noise(found: object) -> object:
    if isinstance(found, dict):
        return {key: without_noise(value) for key, value in found.items() if not NOISY_KEYS.search(key)}
    return [without_noise(each) for each in found] if isinstance(found, list) else found


def quiet(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "FOLDER")
    if text.startswith("{"):
        records = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        text = "\n".join(json.dumps(without_noise(record), indent=1) for record in records)
    for pattern, word in NOISE:
        text = pattern.sub(word, text)
    return text


def differences(before: dict[str, str], after: dict[str, str]) -> Iterator[str]:
    for key in {**before, **after}:
        one, other = before.get(key, "(absent)"), after.get(key, "(absent)")
        if one != other:
            yield f"    {key}"
            lines = difflib.unified_diff(one.splitlines(), other.splitlines(), lineterm="", n=0)
            yield from (f"        {each[:240]}" for each in list(lines)[2:14])


if __name__ == "__main__":
    main()
