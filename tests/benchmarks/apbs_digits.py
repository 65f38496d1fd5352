"""Comparison of energies from `apbs` and `pele-ocl pb` for the same input files.

python tests/benchmarks/apbs_digits.py [FILE.in ...]     without files: examples of APBS, and inputs made of them

Both read a copy with `etol 1e-12` in every ELEC section and without output files. The table has one row per input, with
the number of energies and their largest relative difference. The examples of the installed APBS package are used.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pele_ocl
from pele_ocl.formats import write_pqr

STRUCTURES = Path(__file__).parents[2] / "data" / "structures"
COMMAND = [sys.executable, "-c", "from pele_ocl.cli import main; main()", "pb"]
EXAMPLES = ("FKBP/1d7i-dss-mol.in", "point-pmf/complex-0_1.in")
# Inputs made here of the examples' molecules: file, options of ELEC.
MADE = {
    "B-DNA, npbe, smol, spl2, sdh, three ions, focusing": (
        "bem-binding-energy/test_proteins/1d30_monomer1.pqr",
        "mg-auto dime 33 33 65 cglen 70 75 100 fglen 40 45 60 cgcent mol 1 fgcent mol 1 npbe bcfl sdh pdie 4 sdie 80"
        " srfm smol chgm spl2 srad 1.4 ion charge 2 conc 0.05 radius 1.5 ion charge 1 conc 0.1 radius 2.0"
        " ion charge -1 conc 0.2 radius 1.8",
    ),
    "LDL receptor module, lpbe, spl2, spl2, zero": (
        "bem/test_proteins/1ajj.pqr",
        "mg-manual dime 65 33 49 glen 60 58 55 gcent mol 1 lpbe bcfl zero pdie 1 sdie 78.54 srfm spl2 chgm spl2"
        " srad 1.4 ion charge 1 conc 0.3 radius 1.9 ion charge -1 conc 0.3 radius 1.9",
    ),
    "binding domain, lpbe, spl4, spl4, mdh, focusing": (
        "bem/test_proteins/1bbl.pqr",
        "mg-auto dime 33 33 49 cglen 80 80 80 fglen 40 42 44 cgcent mol 1 fgcent mol 1 lpbe bcfl mdh pdie 2 sdie 78.54"
        " srfm spl4 chgm spl4 srad 1.4 ion charge 1 conc 0.15 radius 2.0 ion charge -1 conc 0.15 radius 1.8",
    ),
    "binding domain, npbe, mol, spl0, mdh, three ions, 310 K": (
        "bem/test_proteins/1bbl.pqr",
        "mg-manual dime 49 49 49 grid 1.1 1.0 0.9 gcent mol 1 npbe bcfl mdh pdie 2 sdie 78.54 srfm mol chgm spl0"
        " srad 1.2 ion charge 1 conc 0.1 radius 2.0 ion charge 2 conc 0.02 radius 1.4"
        " ion charge -1 conc 0.14 radius 1.8",
    ),
    "boxB RNA, lpbe, smol, spl0, mdh, part of the molecule": (
        "protein-rna/model_outBoxB19.pqr",
        "mg-auto dime 33 49 33 cglen 80 80 90 fglen 30 30 30 cgcent mol 1 fgcent mol 1 lpbe bcfl mdh pdie 3 sdie 60"
        " srfm smol chgm spl0 srad 0 ion charge 1 conc 1.0 radius 0 ion charge -1 conc 1.0 radius 0",
    ),
    "hexapeptide, npbe, spl2, spl0, sdh, four levels": (
        "hexapeptide.pdb",
        "mg-auto dime 33 33 33 cglen 90 90 90 fglen 4 5 6 cgcent mol 1 fgcent mol 1 npbe bcfl sdh pdie 2 sdie 78.54"
        " srfm spl2 chgm spl0 srad 1.4 ion charge 1 conc 0.15 radius 2.0 ion charge -1 conc 0.15 radius 2.0",
    ),
}  # fmt: skip
REST = " swin 0.3 sdens 10 temp 298.15 calcenergy total calcforce no"


def inputs(examples: Path) -> Iterator[tuple[str, str, list[Path]]]:
    """Yield the name, text and molecule files of each input that is not given by the user."""
    for name in EXAMPLES:
        path = examples / name
        yield name, path.read_text(), list(path.parent.glob("*.pqr"))
    for name, (molecule, options) in MADE.items():
        rest = REST.replace("298.15", "310") if "310 K" in name else REST
        path = STRUCTURES / molecule if molecule.endswith(".pdb") else examples / molecule
        text = f"read\nmol pqr {path.stem}.pqr\nend\nelec\n{options}\nmol 1\n{rest}\nend\nquit\n"
        yield name, text, [path]


def tightened(text: str) -> str:
    """Return the input with `etol 1e-12` in every ELEC section, and without output maps."""
    text = re.sub(r"(?im)^\s*(write|etol)\b.*$", "", text)
    return re.sub(r"(?im)^(\s*(?:mg-manual|mg-auto)\b)", r"\1\netol 1e-12", text)


def energies(command: list[str], folder: Path) -> tuple[list[float], float]:
    """Return the energies that a program prints, kJ/mol, and its run time in seconds."""
    begun = time.perf_counter()
    done = subprocess.run([*command, "input.in"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    pattern = r"(?:Total|Global net) (?:electrostatic|ELEC) energy = (\S+) kJ"
    return [float(number) for number in re.findall(pattern, done.stdout)], time.perf_counter() - begun


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE.in")
    options = parser.parse_args()
    apbs = shutil.which("apbs")
    if apbs is None:
        sys.exit("apbs is not installed")
    examples = Path(apbs).parent.parent / "share" / "apbs" / "examples"
    files = [(path.name, path.read_text(), list(path.parent.glob("*.pqr"))) for path in options.files]
    print("| input | energies | largest relative difference |\n|---|---|---|")
    for name, text, molecules in files or inputs(examples):
        with TemporaryDirectory() as temporary:
            own = Path(temporary)
            for path in molecules:
                if path.suffix == ".pqr":
                    (own / path.name).symlink_to(path.resolve())
                else:
                    write_pqr(own / f"{path.stem}.pqr", pele_ocl.read(path))
            (own / "input.in").write_text(tightened(text))
            expected, _ = energies(["apbs"], own)
            found, _ = energies(COMMAND, own)
        if len(expected) != len(found) or not expected:
            sys.exit(f"{name}: apbs prints {len(expected)} energies and pele-ocl {len(found)}")
        worst = max(abs(f / e - 1) for f, e in zip(found, expected, strict=True))
        print(f"| {name} | {len(expected)} | {worst:.1e} |", flush=True)


if __name__ == "__main__":
    main()
