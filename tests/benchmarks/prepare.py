"""Prepare all structures of a folder, and check which of them `energy` accepts.

python tests/benchmarks/prepare.py FOLDER [--limit 600] [--options "--keep-hetero"] [--ready FOLDER]

FOLDER contains .pdb and .cif files, also with .gz. Each is prepared in a separate process, and `energy` reads the
result. A row of a Markdown table is printed for each: number of residues and atoms, mean length of bonds to hydrogen,
time of `prepare`, and errors or warnings.

--limit : time limit per structure in seconds
--options : options of `prepare`
--ready : folder for the prepared files
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from pele_ocl.formats import read_structure

HEAD = ("structure", "residues", "atoms", "accepted", "X-H, A", "energy, kcal/mol", "s", "what stopped it, or warnings")


def main() -> None:
    """Print the table, and how many structures were prepared and accepted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--options", default="")
    parser.add_argument("--ready", type=Path)
    options = parser.parse_args()
    paths = sorted(
        (p for p in options.folder.iterdir() if p.name.lower().removesuffix(".gz").endswith((".pdb", ".cif"))),
        key=lambda path: path.name.lower(),
    )
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    n_accepted = n_ready = 0
    with tempfile.TemporaryDirectory() as folder:
        ready_folder = options.ready or Path(folder)
        ready_folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            name = path.name.split(".")[0]
            cells = row(path, ready_folder / f"{name}.pdb", options.options.split(), options.limit)
            n_ready += cells[0] != "-"
            n_accepted += cells[2] == "yes"
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(f"\n{len(paths)} structures, {n_ready} prepared, {n_accepted} accepted by `energy`")


def row(path: Path, ready: Path, options: list[str], limit: float) -> list[str]:
    """Return the cells of a structure after its name; the first one is - if there is no prepared file."""
    begun = time.perf_counter()
    try:
        done = call("prepare", path, "-o", ready, "--json", *options, limit=limit)
    except subprocess.TimeoutExpired:
        return ["-", "-", "no", "-", "-", f"> {limit:g}", "the limit of time"]
    seconds = f"{time.perf_counter() - begun:.0f}"
    if done.returncode:
        return ["-", "-", "no", "-", "-", seconds, sentence(done.stderr, path, ready)]
    report = json.loads(done.stdout)
    warnings = [str(text) for text in report.get("warnings", [])]
    for place, reason in report.get("not_built", {}).items():
        warnings.append(f"{len(report['residues_missing'][place])} residues behind {place} not built: {reason}")
    structure = read_structure(ready)
    cells = [f"{len(structure.labels.residue_starts):,}", f"{len(structure.labels):,}"]
    length = f"{np.mean(lengths(ready)):.3f}"
    found = call("energy", ready, "--json", limit=limit)
    if found.returncode:
        stopped = sentence(found.stderr, path, ready)
        return [*cells, "no", length, "-", seconds, "; ".join([stopped, *warnings])]
    energy = json.loads(found.stdout)["energy"]["total"]
    return [*cells, "yes", length, f"{energy:,.0f}", seconds, "; ".join(warnings)]


def call(*words: object, limit: float) -> subprocess.CompletedProcess[str]:
    """Run the command pele-ocl in a separate process."""
    start = [sys.executable, "-c", "from pele_ocl.cli import main; main()"]
    return subprocess.run([*start, *map(str, words)], capture_output=True, text=True, timeout=limit)


def sentence(stderr: str, *paths: Path) -> str:
    """Return the last line of an error, without paths."""
    line = (stderr.strip().splitlines() or [""])[-1]
    for path in paths:
        line = line.replace(str(path), path.name)
    return line.removeprefix("Error: ").replace("|", "/")


def lengths(ready: Path) -> np.ndarray:
    """Return the distance of each hydrogen to the nearest heavy atom of its residue, in A."""
    return np.concatenate([*_lengths(ready), np.zeros(0)])


def _lengths(ready: Path) -> Iterator[np.ndarray]:
    structure = read_structure(ready)
    hydrogen = structure.labels.elements == "H"
    bounds = [*structure.labels.residue_starts.tolist(), len(hydrogen)]
    for start, end in pairwise(bounds):
        positions, light = structure.positions[start:end], hydrogen[start:end]
        if light.any() and not light.all():
            yield np.linalg.norm(positions[light][:, None] - positions[~light], axis=2).min(axis=1)


if __name__ == "__main__":
    main()
