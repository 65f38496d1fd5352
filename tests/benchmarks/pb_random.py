"""Comparison of energies with `apbs` for random APBS input files.

python tests/benchmarks/pb_random.py [--count 400] [--first 0] [--seed 1] [--folder FOLDER] [--seconds S]

Molecules are 1 to 80 random spheres: overlapping, at positions with few digits, some without radius or charge. Inputs
have all kinds of grids, equations, surfaces, charges, boundaries and salts supported by both programs; most are
nonlinear. --first skips the inputs before it, so that several processes can divide them. Needs `apbs` on the PATH.
Prints a line for each input that differs by more than 1e-6, is rejected by only one program, or has a NaN energy, and
then the counts. Inputs for which `apbs` does not converge, or takes more than S seconds of processor time, are
ignored; the latter are printed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from pele_ocl import PeleError, PoissonBoltzmann, read
from pele_ocl.common.inputfile import read_file
from pele_ocl.pb.apbs import read_apbs

NEAR = 1e-6  # of an energy
CONVERGED = 1e-7  # residual that apbs tells for its last iteration
NUMBER = r"(\S+)"


def molecule_of(rng: np.random.Generator) -> str:
    """Return the lines of a PQR file."""
    count, reach = int(rng.choice([1, 2, 5, 20, 80])), rng.choice([2.0, 6.0])
    digits = rng.choice([0, 1, 3], size=count, p=[0.1, 0.1, 0.8])
    lines = []
    for number, places in enumerate(digits, 1):
        x, y, z = np.round(rng.uniform(-reach, reach, 3), places)
        charge = rng.choice([1.0, -1.0, 0.0, np.round(rng.uniform(-1, 1), 4)])
        radius = rng.choice([0.0, 0.5, 1.0, 1.5, 2.0, np.round(rng.uniform(0.4, 2.7), 4)])
        radius = max(radius, 0.5) if number == 1 else radius
        lines.append(f"ATOM {number:6d}  C   MOL {number:5d}    {x:8.3f}{y:8.3f}{z:8.3f} {charge:8.4f} {radius:7.4f}")
    return "\n".join(lines) + "\n"


def input_of(rng: np.random.Generator, name: str) -> str:
    """Return the text of an input file for the molecule `name`."""
    points, spacing = int(rng.choice([33, 65])), rng.choice([0.5, 0.5625, 0.75, 1.0])
    salt = rng.choice(["none", "one", "two"], p=[0.1, 0.6, 0.3])
    strength = rng.choice([0.01, 0.15, 1.0])
    ions = {
        "none": [], "one": [(1, strength, 2.0), (-1, strength, 2.0)],
        "two": [(2, strength, 2.0), (-1, 2 * strength, 1.8)],
    }[salt]  # fmt: skip
    words = {
        "bcfl": rng.choice(["mdh", "sdh", "zero"]), "pdie": rng.choice([1, 2, 4]), "sdie": rng.choice([4, 10, 78.54]),
        "chgm": rng.choice(["spl0", "spl2", "spl4"]), "srfm": rng.choice(["mol", "smol", "spl2", "spl4"]),
        "srad": rng.choice([0.0, 1.4]), "swin": 0.3, "sdens": rng.choice([10, 20]), "temp": rng.choice([298.15, 310]),
    }  # fmt: skip
    equation = rng.choice(["npbe", "lpbe"], p=[0.8, 0.2])
    return "\n".join([
        "read", f" mol pqr {name}", "end", "elec name a", " mg-manual", f" dime {points} {points} {points}",
        f" grid {spacing} {spacing} {spacing}", " gcent mol 1", f" {equation}", " mol 1",
        *(f" ion charge {charge} conc {conc} radius {radius}" for charge, conc, radius in ions),
        *(f" {word} {value}" for word, value in words.items()),
        " etol 1e-9", " calcenergy total", " calcforce no", "end", "print elecEnergy a end", "quit", "",
    ])  # fmt: skip


def energy_here(path: Path) -> tuple[float, str]:
    """Return the energy, kJ/mol, or NaN and the reason."""
    try:
        wanted, molecules = read_apbs(read_file(path), lambda name: read(path.parent / name))
        (own,) = wanted.calculations
        plan = PoissonBoltzmann(
            molecules[own.molecule], own.model, grids=own.grids, reaction=False, tolerance=own.tolerance
        )  # fmt: skip
        return plan.solve(keep_map=False, grid_error=False).energy_kj, ""
    except PeleError as error:
        return np.nan, str(error)


def energy_there(path: Path, seconds: int | None) -> tuple[float, bool]:
    """Return the energy of `apbs`, kJ/mol, and whether its solver converged."""
    limit = "" if seconds is None else f"ulimit -t {seconds}; "
    done = subprocess.run(
        ["bash", "-c", f"{limit}exec apbs {path.name}"], cwd=path.parent, capture_output=True, text=True, check=False
    )
    found = re.search(rf"Global net ELEC energy = {NUMBER} kJ", done.stdout)
    log = path.parent / "io.mc"
    residuals = re.findall(rf"relative residual = {NUMBER}", log.read_text()) if log.exists() else []
    log.unlink(missing_ok=True)
    if done.returncode < 0 or done.returncode > 128:
        print(f"{path}: apbs was ended after {seconds} s", flush=True)
    energy = float(found[1]) if found else np.nan
    last = float(residuals[-1]) if residuals else 0.0
    return energy, bool(np.isfinite(energy) and last <= CONVERGED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--seconds", type=int)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    rng, counts = np.random.default_rng(options.seed), {"alike": 0, "differ": 0, "not here": 0, "not there": 0}
    worst = 0.0
    for number in range(options.count):
        path = folder / f"{number}.in"
        molecule, text = molecule_of(rng), input_of(rng, f"{number}.pqr")
        if number < options.first:
            continue
        path.with_suffix(".pqr").write_text(molecule)
        path.write_text(text)
        there, converged = energy_there(path, options.seconds)
        here, why = energy_here(path)
        if not converged:
            counts["not there"] += 1
            continue
        error = abs(here - there) / max(abs(there), 1e-3)
        kind = "not here" if np.isnan(here) else "alike" if error <= NEAR else "differ"
        counts[kind] += 1
        worst = max(worst, error) if kind == "alike" else worst
        if kind != "alike":
            print(f"{path}: {here:.12g} here {why}, {there:.12g} there", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()), f"; the ones alike within {worst:.1e}")


if __name__ == "__main__":
    main()
