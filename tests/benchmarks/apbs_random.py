"""Comparison of energies from `apbs` and `pele-ocl pb` for random inputs of small molecules.

python tests/benchmarks/apbs_random.py [COUNT] [--seed N]     by default 100 inputs, the first of seed 0

Molecules are parts of APBS examples, or up to twelve spheres. Inputs have one or two ELEC sections with any of the
supported keywords. Inputs with differences above the limits are printed. The last lines contain the number of inputs,
and of those for which `apbs` did not converge, according to io.mc or its warning about the nonlinear equation. The
examples of the installed APBS package are used.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
from click.testing import CliRunner

import pele_ocl
from pele_ocl.cli import main as command

MOLECULES = (
    "bem/test_proteins/1bbl.pqr", "protein-rna/model_outBoxB19.pqr", "misc/fas2.pqr",
    "bem-binding-energy/test_proteins/1d30_monomer1.pqr", "solv/methanol.pqr", "hca-bind/acet.pqr",
)  # fmt: skip
POINTS = (17, 25, 33, 33, 41)
SALTS = (
    "", "", "ion charge 1 conc 0.15 radius 2.0\nion charge -1 conc 0.15 radius 1.8\n",
    "ion charge 2 conc 0.1 radius 2.0\nion charge -1 conc 0.2 radius 1.5\n", "ion 1 0.3 1.0\nion -1 0.3 0\n",
    "ion charge 1 conc 0.1 radius 2.0\nion charge 1 conc 0.05 radius 1.5\nion charge -1 conc 0.15 radius 1.8\n",
)  # fmt: skip
BAR, BAR_OF_ATOMS = 1e-10, 1e-12  # of an energy; of an atom's, in units of the largest number printed
CONVERGED = 1e-10  # residual of APBS
WARNINGS = ("Convergence not guaranteed", "trapped exp overflows", "ASSERTION FAILURE")
NUMBER = re.compile(r"[-+]?\d+\.\d+E[-+]\d+")


def molecule(random: Random, examples: Path) -> np.ndarray:
    """Return the position, charge and radius of each atom, (n, 5)."""
    if random.random() < 0.4:
        rows = [
            [*(random.uniform(-4, 4) for _ in range(3)), random.uniform(-1, 1), random.choice([0, 1, 1.5, 1.7, 2])]
            for _ in range(random.randint(1, 12))
        ]
        atoms = np.array(rows)
        if random.random() < 0.5:  # on the nodes of grids, where spheres may touch points exactly
            atoms[:, :3] = atoms[:, :3].round()
        atoms[0, 3:] = 0.5, 1.7
        return atoms
    whole = pele_ocl.read(examples / random.choice(MOLECULES))
    size = random.randint(5, 300)
    first = random.randint(0, max(0, len(whole) - size))
    taken = whole[np.arange(first, min(first + size, len(whole)))]
    assert taken.gb_radii is not None
    return np.column_stack([taken.positions, taken.charges, taken.gb_radii])


def section(random: Random, name: str, atoms: np.ndarray) -> str:
    """Return the text of an ELEC section."""
    points = [random.choice(POINTS) for _ in range(3)]
    size, middle = np.ptp(atoms[:, :3], axis=0) + 8, (atoms[:, :3].min(axis=0) + atoms[:, :3].max(axis=0)) / 2
    centre = "mol 1" if random.random() < 0.6 else " ".join(f"{x + random.uniform(-1, 1):.3f}" for x in middle)

    def lengths(*factors: float) -> str:
        return " ".join(f"{x * random.choice(factors):.2f}" for x in size)

    if random.random() < 0.5:
        grid = f"mg-manual\nglen {lengths(1.1, 1.5, 2)}\ngcent {centre}"
    else:
        grid = f"mg-auto\ncglen {lengths(2)}\nfglen {lengths(0.3, 1, 1.2)}\ncgcent {centre}\nfgcent {centre}"
    solute, solvent = random.choice([(1, 78.54), (2, 80), (4, 60), (2, 2), (20, 78.5)])
    words = {
        "dime": " ".join(map(str, points)), "bcfl": random.choice(["zero", "sdh", "mdh"]), "pdie": solute,
        "sdie": solvent, "srfm": random.choice(["mol", "smol", "spl2", "spl4"]),
        "chgm": random.choice(["spl0", "spl2", "spl4"]), "srad": random.choice([0, 1.4, 1.4, 0.5]),
        "swin": random.choice([0.2, 0.3, 0.5]), "sdens": random.choice([3.3, 10, 20]),
        "temp": random.choice([273.15, 298.15, 310]), "calcenergy": random.choice(["total", "comps"]),
        "calcforce": "no", "etol": 1e-12, "mol": 1,
    }  # fmt: skip
    equation = random.choice(["lpbe", "lpbe", "npbe"])
    rest = "\n".join(f"{key} {value}" for key, value in words.items())
    return f"elec name {name}\n{grid}\n{equation}\n{random.choice(SALTS)}{rest}\nend\n"


def numbers(text: str) -> list[tuple[str, list[float]]]:
    """Return the lines with energies: their words, and their numbers with twelve digits."""
    found = [line.strip() for line in text.splitlines() if "kJ/mol" in line]
    return [(NUMBER.sub("#", line), [float(number) for number in NUMBER.findall(line)]) for line in found]


def compared(folder: Path) -> tuple[str, bool]:
    """Return the differences for an input as text, "" if there are none, and whether apbs converged."""
    (folder / "io.mc").unlink(missing_ok=True)
    theirs = subprocess.run(["apbs", "in.in"], cwd=folder, capture_output=True, text=True)
    log = (folder / "io.mc").read_text() if (folder / "io.mc").exists() else ""
    residuals = re.findall(r"iteration = 200\n\S+ relative residual = (\S+)", log)
    said = theirs.stdout + theirs.stderr
    has_converged = not any(warning in said for warning in WARNINGS) and all(float(r) < CONVERGED for r in residuals)
    ours = CliRunner().invoke(command, ["pb", "in.in"], catch_exceptions=False)
    if theirs.returncode or ours.exit_code:
        return (
            f"apbs ends with {theirs.returncode}, pele-ocl with {ours.exit_code}: {ours.stderr.strip()}",
            has_converged,
        )
    expected, found = numbers(theirs.stdout), numbers(ours.stdout)
    if [words for words, _ in expected] != [words for words, _ in found]:
        return "other lines", has_converged
    largest = max((abs(x) for _, values in expected for x in values), default=0.0)
    for (words, of_apbs), (_, own) in zip(expected, found, strict=True):
        for e, f in zip(of_apbs, own, strict=True):
            if abs(f - e) > (BAR_OF_ATOMS * largest if "Atom" in words else BAR * abs(e)):
                return f"{words}: {e:.12e} and {f:.12e}", has_converged
    return "", has_converged


def main() -> None:
    """Print the inputs with differences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    apbs = shutil.which("apbs")
    if apbs is None:
        sys.exit("apbs is not installed")
    examples, counts = Path(apbs).parent.parent / "share" / "apbs" / "examples", {True: 0, False: 0}
    n_other = {True: 0, False: 0}
    for seed in range(options.seed, options.seed + options.count):
        random = Random(seed)
        with TemporaryDirectory() as temporary:
            folder, atoms = Path(temporary), molecule(random, examples)
            rows = (
                f"ATOM {k + 1:6d}  C   RES {k + 1:5d}    {x:9.3f} {y:9.3f} {z:9.3f} {q:8.4f} {r:7.4f}\n"
                for k, (x, y, z, q, r) in enumerate(atoms)
            )
            (folder / "m.pqr").write_text("".join(rows))
            blocks = "".join(section(random, name, atoms) for name in ("one", "two")[: random.randint(1, 2)])
            last = "print elecEnergy one - two end\n" if "two" in blocks else ""
            (folder / "in.in").write_text(f"read\nmol pqr m.pqr\nend\n{blocks}{last}quit\n")
            with chdir(folder):
                other, has_converged = compared(folder)
        counts[has_converged] += 1
        if other:
            n_other[has_converged] += 1
            print(f"seed {seed}{'' if has_converged else ' (apbs did not converge)'}: {other}", flush=True)
    for has_converged, what in ((True, "converged"), (False, "did not converge")):
        print(f"{counts[has_converged]} inputs in which apbs {what}, {n_other[has_converged]} with a different energy")


if __name__ == "__main__":
    main()
