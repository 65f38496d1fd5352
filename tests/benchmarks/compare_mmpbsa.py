"""Comparison of tables with those in the tests of MMPBSA.py: python compare_mmpbsa.py FOLDER [--markdown].

FOLDER is AmberTools/test/mmpbsa_py, or a parent folder of it, as in public copies of AmberTools. Each test has a
script Run.* with its mmpbsa.in and options. These are run unchanged, with `pele-ocl binding --mmpbsa` instead of
MMPBSA.py. If sol.top is missing, it is replaced by a topology with only names, of the complex and water.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import floor, log10
from pathlib import Path

TESTS = ("01_Generalized_Born", "02_Poisson_Boltzmann", "03_Alanine_Scanning", "04_Per_Residue_Decomp",
         "05_Pairwise_Decomp", "07_Comprehensive", "08_Stability")  # fmt: skip
SYSTEMS = {"Complex:": "complex", "Receptor:": "receptor", "Ligand:": "ligand", "DELTAS:": "delta",
           "Differences (Complex - Receptor - Ligand):": "delta"}  # fmt: skip
HEADS = ("Internal", "van der Waals", "Electrostatic", "Polar Solvation", "Non-Polar Solv.", "TOTAL")
COMMAND = [sys.executable, "-c", "from pele_ocl.cli import main; main()", "binding"]
Rows = dict[tuple[str, ...], list[float]]  # where a row stands and its name -> its numbers


@dataclass
class Difference:
    """Largest differences for one kind of number."""

    n: int = 0
    largest: float = 0.0
    where: str = ""
    missing: list[str] = field(default_factory=list)

    def add(self, ours: float, theirs: float, where: str) -> None:
        self.n += 1
        if abs(ours - theirs) > self.largest:
            self.largest, self.where = abs(ours - theirs), where

    @property
    def decimals(self) -> int:
        """Return the number of decimals that agree."""
        return 9 if self.largest == 0 else max(0, floor(-log10(2 * self.largest) + 0.1))


def tables(text: str) -> Rows:
    """Return the mean, deviation and error of each term of GENERALIZED BORN in FINAL_RESULTS_MMPBSA.dat."""
    found: Rows = {}
    mutant = system = method = ""
    for line in text.splitlines():
        if line.endswith("MUTANT:"):
            mutant = line.split()[0]
        elif line.strip() in ("GENERALIZED BORN:", "POISSON BOLTZMANN:") or line.startswith("ENTROPY"):
            method = line.strip()
        elif line in SYSTEMS:
            system = SYSTEMS[line]
        row = re.fullmatch(r"(\S[\w -]*?)\s{2,}(-?\d+\.\d+)\s+(\d+\.\d+)\s+(\d+\.\d+)", line)
        if row and method == "GENERALIZED BORN:":
            found[mutant, system, row[1]] = [float(row[k]) for k in (2, 3, 4)]
        scan = re.match(r"RESULT OF ALANINE SCANNING: \((\w+)\) DELTA DELTA G .*?= *(-?[\d.]+) +\+/- *([\d.]+)", line)
        if scan and (scan[1], "delta", "scan") not in found:  # the first is of GB
            found[scan[1], "delta", "scan"] = [float(scan[2]), float(scan[3])]
    return found


def reaction_energies(text: str) -> dict[str, float]:
    """Return the mean EPB of each system of the wild type in FINAL_RESULTS_MMPBSA.dat."""
    found: dict[str, float] = {}
    system = method = ""
    for line in text.splitlines():
        if line.strip() in ("GENERALIZED BORN:", "POISSON BOLTZMANN:"):
            method = line.strip()
        elif line in SYSTEMS:
            system = SYSTEMS[line]
        row = re.fullmatch(r"EPB\s{2,}(-?\d+\.\d+)\s+.*", line)
        if row and method == "POISSON BOLTZMANN:":
            found.setdefault(system, float(row[1]))
    return found


def shares(text: str) -> Rows:
    """Return means, deviations and errors of FINAL_DECOMP_MMPBSA.dat, text or CSV: first solvent, wild type."""
    found: Rows = {}
    system, split = "complex", ""
    for line in text.split("Energy Decomposition Analysis")[1].splitlines():
        if line.strip() in SYSTEMS:
            system = SYSTEMS[line.strip()]
        elif line.strip().endswith("Energy Decomposition:"):
            split = line.split()[0]
        words = line.replace("|", " ").replace("+/-", " ").replace(",", " ").split()
        numbers = [word for word in words if re.fullmatch(r"-?\d+\.\d*(e-?\d+)?|-?\d+\.?\d*e[-+]\d+|0", word)]
        n = 18 if len(numbers) >= 18 else 12
        if len(numbers) not in (12, 18) or re.search("[a-z]{4}", words[0]):
            continue
        found[system, split, " ".join(words[: len(words) - n])] = [float(word) for word in words[-n:]]
    return found


def frames(text: str) -> Rows:
    """Read the energies of each frame from the CSV file of -eo."""
    found: Rows = {}
    system = ""
    for line in text.splitlines():
        if "Energy Terms" in line:
            system = line.split()[0]
        words = line.replace(",", " ").split()
        if len(words) > 4 and words[0].isdigit():
            found[system, words[0]] = [float(word) for word in words[1:]]
    return found


def frame_shares(text: str) -> Rows:
    """Return the rows of the CSV file of -deo by system, split, frame and residue (or its number)."""
    found: Rows = {}
    system, split = "", ""
    for line in text.splitlines():
        if line.strip() in SYSTEMS:
            system = SYSTEMS[line.strip()]
        elif line.strip().endswith("Energy Decomposition:"):
            split = line.replace("DELTA ", "").split()[0]
        words = line.replace(",", " ").split()
        if len(words) > 7 and words[0].isdigit() and words[-1][-1].isdigit():
            residue = next(word for word in words[1:] if word.isdigit())
            found[system, split, words[0], residue] = [float(word) for word in words[-6:]]
    return found


def run_test(folder: Path, precision: str) -> Iterator[tuple[str, Path, Path]]:
    """Run a test; yield its name, the written tables, and those of MMPBSA.py."""
    script = next(folder.glob("Run.*")).read_text()
    inputs = re.findall(r"cat > mmpbsa\.in << EOF\n(.*?)EOF\n", script, re.DOTALL)
    calls = [
        call.replace("\\\n", " ") for call in re.findall(r"^\$DO_PARALLEL \$EXE (-O.*?)(?:>)", script, re.M | re.S)
    ]
    for number, (given, call) in enumerate(zip(inputs, calls, strict=False), 1):
        (folder / "mmpbsa.in").write_text(given)
        words = shlex.split(call)
        words = [word for k, word in enumerate(words) if word != "-i" and (k == 0 or words[k - 1] != "-i")]
        done = subprocess.run([*COMMAND, "--mmpbsa", "mmpbsa.in", "--precision", precision, *words], cwd=folder,
                              capture_output=True, text=True, check=False)  # fmt: skip
        name = f"{folder.name[:2]}{'' if len(calls) == 1 else f', run {number}'}"
        if done.returncode:
            print(f"{name}: {done.stderr.strip().splitlines()[-1]}")
            continue
        print("\n".join(f"{name}: {line}" for line in done.stderr.splitlines() if line.startswith("Note")))
        named = {words[k]: words[k + 1] for k in range(len(words) - 1) if words[k] in ("-o", "-do", "-eo", "-deo")}
        written = {"-o": "FINAL_RESULTS_MMPBSA.dat", "-do": "FINAL_DECOMP_MMPBSA.dat", **named}
        for option, file in written.items():
            if (folder / f"{file}.save").is_file() and (folder / file).is_file():
                yield f"{name}{option}", folder / file, folder / f"{file}.save"


def run_mutant(root: Path, precision: str) -> Iterator[tuple[str, Path, Path]]:
    """Run the mutant of test 03 on the frames written by MMPBSA.py, to avoid rounding."""
    folder, estral = root / "03_Alanine_Scanning", "../EstRAL_Files"
    given = "its own frames\n&general\n/\n&gb\n  igb=5, saltcon=0.1\n/\n"
    (folder / "mmpbsa.in").write_text(given)
    tops = ["-cp", f"{estral}/com.mutant.top", "-rp", f"{estral}/rec.mutant.top", "-lp", f"{estral}/lig.top"]
    words = [
        "--mmpbsa",
        "mmpbsa.in",
        "--precision",
        precision,
        "-O",
        *tops,
        "-y",
        "orig_mutant.mdcrd",
        "-o",
        "mutant.dat",
    ]
    subprocess.run([*COMMAND, *words], cwd=folder, check=True, capture_output=True)
    label = "D231A MUTANT:\n"
    (folder / "mutant.dat").write_text(label + (folder / "mutant.dat").read_text())
    saved = (folder / "FINAL_RESULTS_MMPBSA.dat.save").read_text().split(label)[1]
    (folder / "mutant.dat.save").write_text(label + saved.split("RESULT OF")[0])
    yield "03, frames of MMPBSA.py-o", folder / "mutant.dat", folder / "mutant.dat.save"


def compared(kind: str, ours: Path, theirs: Path) -> dict[str, Difference]:
    """Return the differences by kind of number."""
    read = {"-o": tables, "-do": shares, "-eo": frames, "-deo": frame_shares}[kind]
    mine, other = read(ours.read_text()), read(theirs.read_text())
    found = dict[str, Difference]()
    for key, values in other.items():
        own = mine.get(key)
        of = key[2] if kind == "-o" else ""
        if own is None or len(own) != len(values):
            missing = key[1] if kind in ("-do", "-deo") else key[-1]
            found.setdefault(f"missing: {missing}", Difference()).add(0, 0, "")
            continue
        for k, (a, b) in enumerate(zip(own, values, strict=True)):
            if kind == "-o":
                group = (
                    "ESURF, sums with it"
                    if of in ("ESURF", "G solv", "TOTAL", "DELTA G solv", "DELTA TOTAL")
                    else ("scan" if of == "scan" else "other terms")
                )
                group += ", means" if k == 0 else ", deviations"
            elif kind == "-do":
                head = HEADS[k // 3 if len(values) == 18 else k // 2]
                group = head if head in ("Internal", "Non-Polar Solv.", "TOTAL") else "other columns"
                group = f"{key[1]}: {group}" + (", means" if k % (len(values) // 6) == 0 else ", deviations")
            elif kind == "-deo":
                head = HEADS[k]
                group = head if head in ("Internal", "Non-Polar Solv.", "TOTAL") else "other columns"
            else:
                group = "frames"
            found.setdefault(group, Difference()).add(a, b, " ".join(key))
    return found


def standing_in(estral: Path) -> None:
    """Write sol.top if it is missing: atom names of the complex, and water for all further atoms of sol.crd."""
    whole = estral / "sol.top"
    if whole.is_file() and whole.stat().st_size:
        return
    text = (estral / "com.top").read_text()

    def section(name: str, width: int) -> list[str]:
        lines = re.split(rf"%FLAG {name}\s*\n", text, maxsplit=1)[1].split("%FLAG", 1)[0].splitlines()[1:]
        return [line[k : k + width] for line in lines for k in range(0, len(line), width)]

    pointers = [int(value) for value in section("POINTERS", 8)]
    n, residues = pointers[0], pointers[11]
    waters = (int((estral / "sol.crd").read_text().splitlines()[1].split()[0]) - n) // 3
    starts = [int(value) for value in section("RESIDUE_POINTER", 8)[:residues]]
    masses = [float(value) for value in section("MASS", 16)[:n]]
    pointers[0], pointers[11] = n + 3 * waters, residues + waters
    contents = [
        ("POINTERS", "10I8", 8, pointers),
        ("ATOM_NAME", "20a4", 4, section("ATOM_NAME", 4)[:n] + ["O   ", "H1  ", "H2  "] * waters),
        ("MASS", "5E16.8", 16, masses + [16.0, 1.008, 1.008] * waters),
        ("RESIDUE_LABEL", "20a4", 4, section("RESIDUE_LABEL", 4)[:residues] + ["WAT "] * waters),
        ("RESIDUE_POINTER", "10I8", 8, starts + [n + 1 + 3 * k for k in range(waters)]),
    ]
    out = ["%VERSION  VERSION_STAMP = V0001.000\n"]
    for name, form, width, values in contents:
        out.append(f"{f'%FLAG {name}':<80}\n{f'%FORMAT({form})':<80}\n")
        cells = [
            v if isinstance(v, str) else f"{v:{width}.8E}" if isinstance(v, float) else f"{v:{width}d}" for v in values
        ]
        step = int(re.match(r"\d+", form)[0])
        out += ["".join(cells[k : k + step]) + "\n" for k in range(0, len(cells), step)]
    whole.write_text("".join(out))


def main() -> None:
    """Run the available tests, and print the largest differences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--precision", default="float64")
    parser.add_argument("--markdown", action="store_true", help="print rows of a Markdown table")
    options = parser.parse_args()
    root = next((p.parent for p in [*options.folder.glob("EstRAL_Files"), *options.folder.rglob("EstRAL_Files")]), None)
    if root is None:
        sys.exit(f"{options.folder}: holds no folder EstRAL_Files of MMPBSA.py's tests")
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "mmpbsa_py"
        shutil.copytree(root, copy)
        standing_in(copy / "EstRAL_Files")
        for name in TESTS:
            if not (copy / name).is_dir():
                print(f"{name}: is not there")
                continue
            tests = [*run_test(copy / name, options.precision)]
            if name.startswith("03") and (copy / name / "orig_mutant.mdcrd").is_file():
                tests += run_mutant(copy, options.precision)
            for title, ours, theirs in tests:
                title, _, kind = title.rpartition("-")
                both = [reaction_energies(path.read_text()) for path in (ours, theirs)] if kind == "o" else [{}, {}]
                for system in both[0].keys() & both[1].keys():
                    print(f"{title}: EPB of the {system} {both[0][system]:.2f}, MMPBSA.py {both[1][system]:.2f}")
                for group, found in sorted(compared(f"-{kind}", ours, theirs).items()):
                    cells = [
                        title,
                        ours.name,
                        group,
                        f"{found.n:,}",
                        f"{found.largest:.4g}",
                        str(found.decimals),
                        found.where,
                    ]
                    print(f"| {' | '.join(cells)} |" if options.markdown else "  ".join(cells))


if __name__ == "__main__":
    main()
