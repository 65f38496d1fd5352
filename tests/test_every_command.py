"""Every command once on the chosen device: what `make test-intel` runs on Intel's runtime beside numeric tests."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from explore_run_helpers import write_run
from mmpbsa_helpers import GB, write_files
from test_cli import HEXAPEPTIDE, on_the_chosen_device, run

from pele_ocl.cli import main

for _library in ("plotly", "pdbfixer"):  # of `view` and `prepare`
    pytest.importorskip(_library)

__all__ = ["on_the_chosen_device"]

# Words of each command, in an order in which one has the files of those before; {} is the folder of the test.
COMMANDS = {
    "devices": [],
    "prepare": [HEXAPEPTIDE, "-o", "{}/prepared.pdb"],
    "energy": [HEXAPEPTIDE, "-t", HEXAPEPTIDE, "--shard", "1/1", "-o", "{}/shard.h5"],
    "merge": ["{}/shard.1of1.h5", "-o", "{}/merged.h5"],
    "solvent": [HEXAPEPTIDE, "--json"],
    "nonbond": [HEXAPEPTIDE, "--json"],
    "binding": [HEXAPEPTIDE, "--ligand", "resid 1", "--json"],
    "minimize": [HEXAPEPTIDE, "--max-iterations", 20, "-o", "{}/minimized.pdb", "--json"],
    "simulate": [HEXAPEPTIDE, "--steps", 5, "-o", "{}/simulated", "--json"],
    "relax": [HEXAPEPTIDE, "-o", "{}/relaxed.pdb"],
    "refine": [HEXAPEPTIDE, "--ligand", "resid 1", "--max-iterations", 2, "-o", "{}/refined", "--json"],
    "ligand": ["CCO", "-o", "{}/ligand", "--json"],
    "screen": [
        HEXAPEPTIDE,
        HEXAPEPTIDE.parent / "trialanine.pdb",
        "--max-iterations",
        2,
        "-o",
        "{}/screened",
        "--json",
    ],
    "potmap": [HEXAPEPTIDE, "--spacing", 1.5, "--method", "auto", "-o", "{}/map.dx", "--json"],
    "pb": [HEXAPEPTIDE, "--spacing", 1.5, "-o", "{}/pb.dx", "--json"],
    "convert": ["{}/map.dx", "{}/map.mrc"],
    "mapmath": ["{}/map.dx", "-", "{}/map.dx", "-o", "{}/none.dx"],
    "sample": ["{}/map.dx", HEXAPEPTIDE, "-o", "{}/sampled.csv"],
    "mmpbsa": [
        "-O",
        "-i",
        "{}/mmpbsa.in",
        "-cp",
        "{}/complex.parm7",
        "-y",
        "{}/frames.nc",
        "-o",
        "{}/results.dat",
        "--json",
    ],
    "explore": ["{}/run/pele.conf", "--complex", "{}/run/complex.pdb", "--steps", 1, "-o", "{}/explored", "--json"],
    "rescore": ["{}/explored", "{}/run/complex.pdb", "--pele-conf", "{}/run/pele.conf", "--json"],
    "ions": [HEXAPEPTIDE, "--spacing", 2, "--concentration", 0.3, "-o", "{}/ions.pdb"],
    "view": [HEXAPEPTIDE, "-o", "{}/page.html", "--json"],
    "bench": ["solvent", "--system", "hexapeptide", "--runs", 3, "--variant", "tiled"],
    "kernel": ["potmap/gather", "--plain"],
    "check": [Path(__file__).parent / "data" / "kernels" / "right" / "sum.cl", "--as", "sum", "--no-timing", "--json"],
    "tune": ["--quantity", "solvent", "--precision", "float32", "--system", "hexapeptide", "--dry-run"],
}


def numbers(content: object) -> Iterator[float]:
    """All numbers of a JSON object."""
    if isinstance(content, dict):
        content = list(content.values())
    if isinstance(content, list):
        for each in content:
            yield from numbers(each)
    elif isinstance(content, float):
        yield content


def test_every_command_once(tmp_path):
    """Each ends well, has written its file, and no number of its JSON is NaN or infinite."""
    assert set(COMMANDS) == set(main.list_commands(click.Context(main)))
    write_run(tmp_path / "run")
    write_files(tmp_path)
    (tmp_path / "mmpbsa.in").write_text(GB)
    for command, words in COMMANDS.items():
        said = run(command, *(str(word).replace("{}", str(tmp_path)) for word in words))
        if "--json" in words:
            found = json.loads(said.stdout)
            assert list(numbers(found)), command
            assert all(map(math.isfinite, numbers(found))), command
        for word in words:
            if str(word).startswith("{}") and "--shard" not in words:  # whose file has its number in its name
                assert (tmp_path / str(word)[3:]).stat().st_size > 0, command
