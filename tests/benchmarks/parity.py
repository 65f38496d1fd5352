"""Every term that MMPBSA.py and sander print, beside ours: python parity.py FOLDER [-o docs/parity.md] [--peers FILE].

FOLDER has a folder for each complex, as parity_build.py makes them: com.parm7, rec.parm7, lig.parm7, com.rst7 and
leap.in, whose radii say which GB model is run. MMPBSA.py computes with sander (use_sander = 1) on NetCDF frames
(netcdf = 1), so that no digits are lost in text; its own &gb, with saltcon 0.1. sander computes the complex with
gbsa = 1. FILE is a shell file that puts AmberTools on the PATH, where it is not there already.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from parity_build import CASES

MODELS = {1: "hct", 2: "obc1", 5: "obc2", 7: "gbn", 8: "gbn2"}
SYSTEMS = {"Complex:": "complex", "Receptor:": "receptor", "Ligand:": "ligand",
           "Differences (Complex - Receptor - Ligand):": "delta"}  # fmt: skip
NAMES = {"BOND": "bond", "ANGLE": "angle", "DIHED": ("torsion", "improper"), "VDWAALS": "lennard_jones",
         "EEL": "coulomb",
         "1-4 VDW": "lennard_jones_14", "1-4 EEL": "coulomb_14", "EGB": ("gb_self", "gb_pair"),
         "ESURF": "nonpolar"}  # fmt: skip
HALF = 0.51e-4  # kcal/mol, half of the last digit that they print
DEFAULT_IGB = 5
CAUSES = {  # of differences that were looked into, by complex and term
    ("pde2_cl_mg_zn", "ESURF"): "sander's own LCPO counts an ion of the type MG without bonds, cpptraj's, which "
    "MMPBSA.py takes, does not; with it, ours is its number",
    (
        "hif2a_fs",
        "ANGLE",
    ): "the nitrile of the ligand: sander takes angles beyond 177.4 degrees (cosine beyond 0.999) for "
    "177.4; with that, ours is its number",
}


class Row(NamedTuple):
    """A number that another program prints, and ours."""

    case: str
    program: str
    system: str
    term: str
    theirs: float
    ours: float
    exact: float  # ours in float64

    @property
    def difference(self) -> float:
        return self.ours - self.theirs


def run(command: str, folder: Path, peers: str | None) -> str:
    """Run a command of AmberTools in a folder; give what it prints."""
    text = f". {peers}; {command}" if peers else command
    done = subprocess.run(["bash", "-c", text], cwd=folder, capture_output=True, text=True)
    return done.stdout + done.stderr


def ours(folder: Path, *arguments: object) -> str:
    """Run a command of pele-ocl; raise for one that fails."""
    done = subprocess.run(
        [sys.executable, "-m", "pele_ocl", *map(str, arguments)], cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout


def table(text: str) -> dict[tuple[str, str], float]:
    """Means by system and term of FINAL_RESULTS_MMPBSA.dat."""
    found: dict[tuple[str, str], float] = {}
    system = ""
    for line in text.splitlines():
        system = SYSTEMS.get(line.strip(), system)
        row = re.fullmatch(r"(\S[\w -]*?)\s{2,}(-?\d+\.\d+)\s+(-?\d+\.\d+)\s+(-?\d+\.\d+)\s*", line)
        if row:
            found[system, row[1].removeprefix("DELTA ")] = float(row[2])
    return found


def igb_of(name: str, folder: Path) -> int:
    """The GB model of a case, or that its file igb says."""
    if name in CASES:
        return CASES[name].igb
    return int((folder / "igb").read_text()) if (folder / "igb").is_file() else DEFAULT_IGB


def mmpbsa(name: str, folder: Path, peers: str | None) -> Iterator[Row]:
    """All terms of complex, receptor, ligand and difference."""
    igb = igb_of(name, folder)
    (folder / "mmpbsa.in").write_text(
        f"parity\n&general\n use_sander=1, netcdf=1, keep_files=0\n/\n&gb\n igb={igb}, saltcon=0.1\n/\n"
    )
    run("cpptraj -p com.parm7 -y com.rst7 -x com.nc", folder, peers)
    files = "-i mmpbsa.in -cp com.parm7 -rp rec.parm7 -lp lig.parm7 -y com.nc"
    for file in ("theirs.dat", "ours.dat", "exact.dat"):
        (folder / file).unlink(missing_ok=True)
    said = run(f"MMPBSA -O {files} -o theirs.dat", folder, peers)
    if not (folder / "theirs.dat").is_file():
        raise RuntimeError(f"MMPBSA.py: {said.strip().splitlines()[-1] if said.strip() else 'no output'}")
    command = files.replace("-i mmpbsa.in", "--mmpbsa mmpbsa.in").split()
    ours(folder, "binding", *command, "-o", "ours.dat")
    ours(folder, "binding", *command, "-o", "exact.dat", "--precision", "float64")
    theirs, own, exact = (table((folder / file).read_text()) for file in ("theirs.dat", "ours.dat", "exact.dat"))
    for (system, term), value in theirs.items():
        yield Row(name, "MMPBSA.py", system, term, value, own[system, term], exact[system, term])


def sander(name: str, folder: Path, peers: str | None) -> Iterator[Row]:
    """All terms of the complex, with gbsa = 1."""
    igb = igb_of(name, folder)
    (folder / "sander.in").write_text(
        f"parity\n&cntrl imin=1, maxcyc=0, ntmin=1, ntb=0, cut=999., igb={igb}, saltcon=0.1, gbsa=1 /\n"
    )
    run("sander -O -i sander.in -p com.parm7 -c com.rst7 -o sander.out", folder, peers)
    text = (folder / "sander.out").read_text(errors="replace").split("FINAL RESULTS")[-1]
    found = {
        term.strip(): float(value) for term, value in re.findall(r"(1-4 VDW|1-4 EEL|[A-Z]+) += +(-?\d+\.\d+)", text)
    }
    options = [
        "--like",
        "amber",
        "--gb",
        MODELS[igb],
        "--ionic-strength",
        0.1,
        "--surface",
        "lcpo",
        "--surface-tension",
        0.005,
    ]
    energies = [
        json.loads(ours(folder, "energy", "com.parm7", "-c", "com.rst7", *options, "--json", "--precision", precision))[
            "energy"
        ]
        for precision in ("float32", "float64")
    ]
    for term, value in found.items():
        if term in NAMES:
            names = NAMES[term] if isinstance(NAMES[term], tuple) else (NAMES[term],)
            yield Row(name, "sander", "complex", term, value, *(sum(energy[of] for of in names) for energy in energies))


def digits(row: Row) -> str:
    """The digits of both from the first that differs on."""
    return f"{row.theirs:,.4f} and {row.ours:,.4f}"


def cause(row: Row) -> str:
    """Why a number may differ by more than its last digit."""
    if abs(row.exact - row.theirs) <= 2 * HALF:
        return "float32: float64 gives their number"
    if (row.case, row.term) in CAUSES:
        return CAUSES[row.case, row.term]
    size = max(abs(row.theirs), 1.0)
    if abs(row.exact - row.theirs) <= 5e-8 * size + HALF and row.term in ("EGB", "G solv", "TOTAL"):
        return f"float64 gives {row.exact:,.4f}: EGB, 3e-8 of it in all complexes, a constant that is rounded somewhere"
    if row.program == "MMPBSA.py" and abs(row.exact - row.theirs) <= 10 * HALF:
        return f"float64 gives {row.exact:,.4f}: MMPBSA.py adds up numbers that sander rounded to four decimals"
    return f"not explained: float64 gives {row.exact:,.4f}"


def page(rows: list[Row], failed: dict[str, str], command: str) -> str:
    """Make the page."""
    cases = list(dict.fromkeys(row.case for row in rows))
    equal = sum(abs(row.difference) <= 2 * HALF for row in rows)
    in_float64 = sum(abs(row.exact - row.theirs) <= 2 * HALF for row in rows)
    lines = [
        "# Parity with AmberTools",
        "",
        f"Written by `{command}` on {datetime.date.today().isoformat()}, with AmberTools 26.",
        "",
        f"{len(cases)} complexes: those that `tests/benchmarks/parity_build.py` makes of the public "
        "[protein-ligand-benchmark](https://github.com/openforcefield/protein-ligand-benchmark), and a zinc finger "
        "with DNA. They have ff14SB, GAFF or GAFF2 and Gasteiger charges, and are not minimised, so that clashes try "
        "more "
        f"digits. MMPBSA.py runs sander on NetCDF frames; sander runs with `gbsa = 1`. Of {len(rows):,} numbers that "
        f"they print with four decimals, {equal:,} are the same within one unit of the last in float32, the default, "
        f"and {in_float64:,} with `--precision float64`.",
        "",
        "| complex | igb | numbers | same | same in float64 | largest difference, kcal/mol | of |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        own = [row for row in rows if row.case == case]
        worst = max(own, key=lambda row: abs(row.difference))
        same = sum(abs(row.difference) <= 2 * HALF for row in own)
        exact = sum(abs(row.exact - row.theirs) <= 2 * HALF for row in own)
        igb = CASES[case].igb if case in CASES else DEFAULT_IGB
        lines.append(
            f"| {case} | {igb} | {len(own)} | {same} | {exact} | {abs(worst.difference):.4f} | "
            f"{worst.program} {worst.system} {worst.term} |"
        )
    lines += ["", "## Numbers that differ", "",
              "| complex | program | system | term | theirs and ours | difference | cause |",
              "|---|---|---|---|---|---|---|"]  # fmt: skip
    for row in rows:
        if abs(row.difference) > 2 * HALF:
            lines.append(
                f"| {row.case} | {row.program} | {row.system} | {row.term} | {digits(row)} | {row.difference:+.4f} | "
                f"{cause(row)} |"
            )
    if failed:
        lines += ["", "## Not compared", ""] + [f"- {name}: {why}" for name, why in failed.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compare all complexes, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", type=Path, default=Path("docs/parity.md"))
    parser.add_argument("--peers")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path.cwd()), os.environ.get("PYTHONPATH"))))
    rows, failed = list[Row](), dict[str, str]()
    for folder in sorted(options.folder.resolve().iterdir()):
        if not (folder / "com.rst7").is_file():
            continue
        for compare in (mmpbsa, sander):
            try:
                rows += compare(folder.name, folder, options.peers)
                print(folder.name, compare.__name__, flush=True)
            except (RuntimeError, KeyError, ValueError, OSError) as error:
                failed[f"{folder.name}, {compare.__name__}"] = str(error)
                print(folder.name, compare.__name__, "failed:", error, flush=True)
    options.o.write_text(page(rows, failed, "python tests/benchmarks/parity.py FOLDER -o docs/parity.md"))


if __name__ == "__main__":
    main()
