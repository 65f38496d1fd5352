"""Input files of MMPBSA.py for tests, and readers of its tables."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from amber_helpers import content, netcdf, rendered
from binding_helpers import LIGAND, N, frames, write_complex
from click.testing import CliRunner, Result

import pele_ocl
from pele_ocl import Binding, SolventModel
from pele_ocl.binding.naming import amber_terms
from pele_ocl.cli import main

M = 4  # frames
GB = "a run\n&general\n  startframe=1, endframe=4, interval=1, keep_files=0,\n/\n&gb\n  igb=5, saltcon=0.1,\n/\n"
DECOMP = GB + '&decomp\n  idecomp={}, dec_verbose={}, print_res="all", csv_format={},\n/\n'
SYSTEMS = {"Complex:": "complex", "Receptor:": "receptor", "Ligand:": "ligand"}


def write_files(folder: Path) -> Path:
    """Write topologies of a complex and its parts, and frames: dry, solvated and of the parts."""
    write_complex(folder, M)
    part = rendered(content(copies=1))
    (folder / "part.top").write_text(part)
    x = frames(M)
    (folder / "part.nc").write_bytes(netcdf(x[:, N:]))
    (folder / "first.nc").write_bytes(netcdf(x[:, :N]))
    whole = content(copies=2)
    residues = len(whole["RESIDUE_LABEL"][1])
    whole["POINTERS"][1][0], whole["POINTERS"][1][11] = 2 * N + 7, residues + 3
    for name, values in {
        "ATOM_NAME": ["O", "H1", "H2"] * 2 + ["Na+"],
        "ATOMIC_NUMBER": [8, 1, 1] * 2 + [11],
        "RESIDUE_LABEL": ["WAT", "WAT", "Na+"],
        "RESIDUE_POINTER": [2 * N + 1, 2 * N + 4, 2 * N + 7],
    }.items():
        whole[name] = (whole[name][0], [*whole[name][1], *values])
    names = ("POINTERS", "ATOM_NAME", "ATOMIC_NUMBER", "RESIDUE_LABEL", "RESIDUE_POINTER")
    (folder / "solvated").write_text(rendered({name: whole[name] for name in names}))
    water = np.full((M, 7, 3), 90.0) + np.arange(7)[:, np.newaxis]
    (folder / "wet.nc").write_bytes(netcdf(np.concatenate([x, water], axis=1)))
    return folder


def call(folder: Path, given: str, *words: str, out: str = "o.dat", decomp: str = "d.dat") -> Result:
    (folder / "mmpbsa.in").write_text(given)
    options = ["-cp", folder / "complex.parm7", "-o", folder / out, "-do", folder / decomp, "--precision", "float64"]
    every = ["mmpbsa", "-O", "-i", folder / "mmpbsa.in", *options, *words]
    return CliRunner().invoke(main, [str(word) for word in every])


def parts(folder: Path, trajectory: str = "frames.nc") -> list[str]:
    part = str(folder / "part.top")
    return ["-rp", part, "-lp", part, "-y", str(folder / trajectory)]


def rows_of(text: str) -> dict[tuple[str, str], list[float]]:
    """Return the rows of all tables by system and term."""
    found, system = {}, ""
    for line in text.splitlines():
        system = SYSTEMS.get(line, "delta" if line.startswith(("Differences", "Delta (")) else system)
        row = re.fullmatch(r"(?:DELTA |Δ)?(\S[\w -]*?)\s{2,}(-?\d+\.\d+(?:\s+-?\d+\.\d+)+)", line)
        if row:
            found[system, row[1]] = [float(word) for word in row[2].split()]
    return found


def terms_of(folder: Path, like: str) -> dict[tuple[str, str], np.ndarray]:
    atoms = pele_ocl.read(folder / "complex.parm7", coordinates=folder / "complex.rst7")
    model = SolventModel.like(like, gb="obc2", ionic_strength=0.1)
    energies = Binding(atoms, LIGAND, model=model, precision="float64").evaluate_batch(frames(M))
    return {
        (name, term): values
        for name, terms in energies.systems().items()
        for term, values in amber_terms(terms).items()
    }


def shares_of(text: str) -> dict[tuple[str, str, str], list[float]]:
    """Return the rows of a decomposition, text or CSV."""
    found, system, split = {}, "", ""
    for line in text.splitlines():
        if line in ("Complex:", "Receptor:", "Ligand:", "DELTAS:"):
            system = line[:-1]
        elif line.endswith("Energy Decomposition:"):
            split = line.split()[0]
        words = re.sub(r"[|,]|\+/-", " ", line).split()
        numbers = [word for word in words if re.fullmatch(r"-?\d+\.\d+(e-?\d+)?", word)]
        if len(numbers) in (12, 18):
            n = len(numbers)
            found[system, split, " ".join(words[:-n])] = [float(word) for word in words[-n :: n // 6]]
    return found
