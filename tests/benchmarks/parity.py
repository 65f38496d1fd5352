"""Comparison of all energy terms with MMPBSA.py, sander and pbsa.

python parity.py FOLDER [-o docs/parity.md] [--peers FILE] [--kept] [--pbsa]

FOLDER contains a folder for each complex, as created by parity_build.py: com.parm7, rec.parm7, lig.parm7, com.rst7 and
leap.in, whose radii determine the GB model. MMPBSA.py uses sander (use_sander = 1) and NetCDF frames (netcdf = 1), so
that no digits are lost in text, and a &gb section with saltcon 0.1. sander computes the complex with gbsa = 1. pbsa
solves the complexes of OF_PB and their parts as in &pb of MMPBSA.py, at two spacings. FILE is a shell script that adds
AmberTools to the PATH, if necessary. With --kept, outputs of AmberTools, and of pele-ocl for &pb, from an earlier run
are reused. --pbsa only updates the section about pbsa in an existing page.
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

import numpy as np
from parity_build import CASES
from scipy.spatial import cKDTree

from pele_ocl import read
from pele_ocl.atoms import Floats
from pele_ocl.atoms.tan_luo import tan_luo_radii

MODELS = {1: "hct", 2: "obc1", 5: "obc2", 7: "gbn", 8: "gbn2"}
SYSTEMS = {"Complex:": "complex", "Receptor:": "receptor", "Ligand:": "ligand",
           "Differences (Complex - Receptor - Ligand):": "delta"}  # fmt: skip
NAMES = {"BOND": "bond", "ANGLE": "angle", "DIHED": ("torsion", "improper"), "VDWAALS": "lennard_jones",
         "EEL": "coulomb",
         "1-4 VDW": "lennard_jones_14", "1-4 EEL": "coulomb_14", "EGB": ("gb_self", "gb_pair"),
         "ESURF": "nonpolar"}  # fmt: skip
TABLE = Path(__file__).parent / "measured" / "parity.md"
DIFFERING = (
    "All numbers that differ, with the cause of each, and the tables of EPB and ENPOLAR are in "
    "`tests/benchmarks/measured/parity.md`."
)
HALF = 0.51e-4  # kcal/mol, half of the last digit that they print
DEFAULT_IGB = 5
TENSION = 0.005  # kcal/mol/A^2
CAUSES = {  # of differences that were looked into, by complex and term
    ("pde2_cl_mg_zn", "ESURF"): "sander's own LCPO counts an ion of the type MG without bonds, cpptraj's, which "
    "MMPBSA.py takes, does not; with it, ours is its number",
    (
        "hif2a_fs",
        "ANGLE",
    ): "the nitrile of the ligand: sander takes angles beyond 177.4 degrees (cosine beyond 0.999) for "
    "177.4; with that, ours is its number",
}


OF_PB = ("tyk2_cl", "ptp1b_p", "znf_dna")
CAUSES_OF = ("ptp1b_p", "znf_dna")  # charged ones, whose differences are followed through pbsa's settings
SPACINGS = (0.5, 0.25)  # A, of pbsa and of ours
PARTS = {"complex": "com", "receptor": "rec", "ligand": "lig"}
SHIFTS = ((0, 0, 0), (0.13, 0.31, 0.42), (0.4, 0.05, 0.33))  # A, of complexes
# What MMPBSA.py writes for pbsa from `&pb` with inp = 1 and istrng = 0.1.
PBSA = """pb
 &cntrl
  imin=1, ntx=1, ipb=2, inp=1
 /
 &pb
  npbverb=1, smoothopt=1, radiopt={radiopt}, npbopt=0, solvopt=1, maxitn=1000, nfocus=2, bcopt=5, eneopt=2, fscale=8,
  epsin=1.0, epsout=80.0, istrng={istrng}, dprob=1.4, iprob=2.0, accept={accept}, fillratio=4.0, space={space}, cutnb=0,
  sprob=1.4, cavity_surften=0.005, cavity_offset=0.0
 /
"""


PB = "parity\n&general\n netcdf=1\n/\n&pb\n radiopt={radiopt}, inp=1, istrng={istrng}, scale={scale}\n/\n"
SALT, ACCEPT, TIGHT = 100.0, 0.001, 1e-7  # of pbsa: mmol/L and residuals
FILES = "-O -cp com.parm7 -rp rec.parm7 -lp lig.parm7 -y com.nc"


class Row(NamedTuple):
    """A number printed by another program, and that of pele-ocl."""

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


class PBRow(NamedTuple):
    """EPB at both spacings and ENPOLAR of a system, from pbsa and pele-ocl, kcal/mol.

    areas : ENPOLAR from the numerical area of pbsa's spheres, with the probe of PBModel
    n_radii : atoms whose radius differs from pbsa's by more than its last digit
    istrng, accept : of pbsa, mmol/L and its residual; charge : net, e
    """

    case: str
    radiopt: int
    system: str
    theirs: tuple[float, ...]
    ours: tuple[float, ...]
    their_surface: float
    our_surface: float
    areas: float
    n_radii: int
    istrng: float = SALT
    accept: float = ACCEPT
    charge: float = 0.0


class Refused(NamedTuple):
    """Messages of pbsa and pele-ocl for atoms without Tan and Luo radii."""

    case: str
    theirs: str
    ours: str


def run(command: str, folder: Path, peers: str | None) -> str:
    """Run a command of AmberTools in a folder; return its output."""
    text = f". {peers}; {command}" if peers else command
    done = subprocess.run(["bash", "-c", text], cwd=folder, capture_output=True, text=True)
    return done.stdout + done.stderr


def ours(folder: Path, *arguments: object) -> str:
    """Run a command of pele-ocl; raise an error if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "pele_ocl", *map(str, arguments)], cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout


def table(text: str) -> dict[tuple[str, str], float]:
    """Return the means by system and term of FINAL_RESULTS_MMPBSA.dat."""
    found: dict[tuple[str, str], float] = {}
    system = ""
    for line in text.splitlines():
        system = SYSTEMS.get(line.strip(), system)
        row = re.fullmatch(r"(\S[\w -]*?)\s{2,}(-?\d+\.\d+)\s+(-?\d+\.\d+)\s+(-?\d+\.\d+)\s*", line)
        if row:
            found[system, row[1].removeprefix("DELTA ")] = float(row[2])
    return found


def igb_of(name: str, folder: Path) -> int:
    """Return the GB model of a case, from its file igb if there is one."""
    if name in CASES:
        return CASES[name].igb
    return int((folder / "igb").read_text()) if (folder / "igb").is_file() else DEFAULT_IGB


def mmpbsa(name: str, folder: Path, peers: str | None, kept: bool) -> Iterator[Row]:
    """Compare all terms of complex, receptor, ligand and difference."""
    igb = igb_of(name, folder)
    (folder / "mmpbsa.in").write_text(
        f"parity\n&general\n use_sander=1, netcdf=1, keep_files=0\n/\n&gb\n igb={igb}, saltcon=0.1\n/\n"
    )
    files = "-i mmpbsa.in -cp com.parm7 -rp rec.parm7 -lp lig.parm7 -y com.nc"
    for file in ("theirs.dat", "ours.dat", "exact.dat")[kept:]:
        (folder / file).unlink(missing_ok=True)
    said = ""
    if not (folder / "theirs.dat").is_file():
        run("cpptraj -p com.parm7 -y com.rst7 -x com.nc", folder, peers)
        said = run(f"MMPBSA -O {files} -o theirs.dat", folder, peers)
    if not (folder / "theirs.dat").is_file():
        raise RuntimeError(f"MMPBSA.py: {said.strip().splitlines()[-1] if said.strip() else 'no output'}")
    ours(folder, "mmpbsa", "-O", *files.split(), "-o", "ours.dat")
    ours(folder, "mmpbsa", "-O", *files.split(), "-o", "exact.dat", "--precision", "float64")
    theirs, own, exact = (table((folder / file).read_text()) for file in ("theirs.dat", "ours.dat", "exact.dat"))
    for (system, term), value in theirs.items():
        yield Row(name, "MMPBSA.py", system, term, value, own[system, term], exact[system, term])


def sander(name: str, folder: Path, peers: str | None, kept: bool) -> Iterator[Row]:
    """Compare all terms of the complex, with gbsa = 1."""
    igb = igb_of(name, folder)
    (folder / "sander.in").write_text(
        f"parity\n&cntrl imin=1, maxcyc=0, ntmin=1, ntb=0, cut=999., igb={igb}, saltcon=0.1, gbsa=1 /\n"
    )
    if not (kept and (folder / "sander.out").is_file()):
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


def pbsa(name: str, folder: Path, peers: str | None, kept: bool) -> Iterator[PBRow | Refused]:
    """Compare EPB and ENPOLAR of complex, receptor, ligand and difference, with the radii of radiopt 0 and 1."""
    for radiopt in (0, 1):
        said = re.search("PB Bomb in (.*)", _of_pbsa(folder, "com", "com", radiopt, SPACINGS[0], peers, kept))
        if said:
            try:
                _ours_of_pb(folder, radiopt, SPACINGS[0], SALT, kept=False)
            except RuntimeError as error:
                yield Refused(name, " ".join(said[1].split()), str(error).removeprefix("Error: "))
                continue
            raise RuntimeError(f"pbsa refuses what ours computes: {said[0]}")
        yield from _with_settings(name, folder, radiopt, SALT, ACCEPT, peers, kept)
    if name in CAUSES_OF:
        for istrng in (SALT, 0.0):
            yield from _with_settings(name, folder, 0, istrng, TIGHT, peers, kept)


def _with_settings(
    name: str, folder: Path, radiopt: int, istrng: float, accept: float, peers: str | None, kept: bool
) -> Iterator[PBRow]:
    theirs, surfaces, ours_, radii = [], {}, [], {}
    for space in SPACINGS:
        energies = {}
        for system, file in PARTS.items():
            text = _of_pbsa(folder, file, file, radiopt, space, peers, kept, istrng, accept)
            energies[system] = float(_found(r"Reaction field energy\s+(\S+)", text))
            surfaces[system] = float(_found(r"Cavity solvation energy\s+(\S+)", text))
            radii[system] = _radii_of(text)
        theirs.append(_with_delta(energies))
        ours_.append(_ours_of_pb(folder, radiopt, space, istrng, kept))
    areas, differing, charges = {}, {}, {}
    for system, file in PARTS.items():
        atoms = read(folder / f"{file}.parm7", coordinates=folder / f"{file}.rst7")
        spheres = tan_luo_radii(atoms) if radiopt else np.asarray(atoms.gb_radii)
        differing[system] = int((np.abs(spheres - radii[system]) > 1e-3).sum())
        areas[system], charges[system] = TENSION * area(atoms.positions, spheres), float(atoms.charges.sum())
    surfaces, areas = _with_delta(surfaces), _with_delta(areas)
    for system in (*PARTS, "delta"):
        yield PBRow(
            name, radiopt, system, tuple(of[system] for of in theirs), tuple(of[system, "EPB"] for of in ours_),
            surfaces[system], ours_[0][system, "ENPOLAR"], areas[system], differing.get(system, 0), istrng, accept,
            charges.get(system, 0.0),
        )  # fmt: skip


def _ours_of_pb(folder: Path, radiopt: int, space: float, istrng: float, kept: bool) -> dict[tuple[str, str], float]:
    own = folder / f"pb_{radiopt}_{space}{'' if istrng else '_0'}.dat"
    if not (kept and own.is_file()):
        (folder / "pb.in").write_text(PB.format(radiopt=radiopt, scale=1 / space, istrng=istrng / 1000))
        ours(folder, "mmpbsa", "-i", "pb.in", *FILES.split(), "-o", own.name)
    return table(own.read_text())


def shifted(folder: Path, peers: str | None, kept: bool) -> list[float]:
    """Return EPB of the difference from pbsa at the first spacing, radiopt 0, with the complex shifted on the grid."""
    found = []
    for k, shift in enumerate(SHIFTS):
        energies = {}
        for system, file in PARTS.items():
            moved = f"{file}_{k}"
            commands = (
                f"parm {file}.parm7\ntrajin {file}.rst7\ntranslate x {shift[0]} y {shift[1]} z {shift[2]}\n"
                f"trajout {moved}.rst7\nrun\n"
            )
            (folder / "move.in").write_text(commands)
            if not (kept and (folder / f"{moved}.rst7").is_file()):
                run("cpptraj -i move.in", folder, peers)
            text = _of_pbsa(folder, file, moved, 0, SPACINGS[0], peers, kept)
            energies[system] = float(_found(r"Reaction field energy\s+(\S+)", text))
        found.append(_with_delta(energies)["delta"])
    return found


def _of_pbsa(
    folder: Path, topology: str, places: str, radiopt: int, space: float, peers: str | None, kept: bool,
    istrng: float = SALT, accept: float = ACCEPT,
) -> str:  # fmt: skip
    settings = "" if (istrng, accept) == (SALT, ACCEPT) else f"_{istrng:g}_{accept:g}"
    output = folder / f"pbsa_{places}_{radiopt}_{space}{settings}.out"
    if not (kept and output.is_file()):
        (folder / "pbsa.in").write_text(PBSA.format(radiopt=radiopt, space=space, istrng=istrng, accept=accept))
        run(f"pbsa -O -i pbsa.in -p {topology}.parm7 -c {places}.rst7 -o {output.name}", folder, peers)
    return output.read_text(errors="replace")


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise RuntimeError(f"pbsa printed nothing like {pattern}")
    return found[1]


def _with_delta(energies: dict[str, float]) -> dict[str, float]:
    return {**energies, "delta": energies["complex"] - energies["receptor"] - energies["ligand"]}


def _radii_of(text: str) -> Floats:
    """Return the radii in the output of pbsa, A."""
    rows = re.findall(r"^ *\d+ +\S+ +\S+ +\S+((?: +-?\d+\.\d{6}){5})$", text.split("PB RADI")[1], re.MULTILINE)
    return np.array([float(row.split()[3]) for row in rows])


def area(positions: Floats, radii: Floats, probe: float = 1.4, points: int = 250) -> float:
    """Return the solvent-accessible area, A^2, by the Shrake-Rupley method; radii of 0 are ignored."""
    positions, reach = positions[radii > 0], radii[radii > 0] + probe
    k = np.arange(points) + 0.5
    polar, turn = np.arccos(1 - 2 * k / points), np.pi * (1 + 5**0.5) * k
    sphere = np.stack([np.cos(turn) * np.sin(polar), np.sin(turn) * np.sin(polar), np.cos(polar)], axis=1)
    tree, total = cKDTree(positions), 0.0
    for a, near in enumerate(tree.query_ball_point(positions, reach + reach.max())):
        others = np.array([b for b in near if b != a], np.int64)
        apart = ((positions[a] + reach[a] * sphere)[:, None] - positions[others]) ** 2
        total += 4 * np.pi * reach[a] ** 2 * float((apart.sum(axis=-1) >= reach[others] ** 2).all(axis=1).mean())
    return total


def limit(energies: tuple[float, ...]) -> float:
    """Extrapolate energies at both spacings to the limit of fine grids."""
    return energies[1] + (energies[1] - energies[0]) / 3


def _energies(row: PBRow) -> str:
    pairs = [f"{a:,.2f} and {b:,.2f}" for a, b in zip(row.theirs, row.ours, strict=True)]
    limits = limit(row.theirs), limit(row.ours)
    return f"{' | '.join(pairs)} | {limits[0]:,.2f} and {limits[1]:,.2f} | {limits[1] - limits[0]:+.2f}"


def pb_section(found: list[PBRow | Refused], shifts: dict[str, list[float]]) -> list[str]:
    """Return the lines about `&pb`."""
    refused = [row for row in found if isinstance(row, Refused)]
    every = [row for row in found if isinstance(row, PBRow)]
    rows = [row for row in every if (row.istrng, row.accept) == (SALT, ACCEPT)]
    lines = [
        "", "## Poisson-Boltzmann: `&pb`", "",
        "In this section, pbsa is run with the input that MMPBSA.py writes for `&pb` with `inp = 1` and "
        "`istrng = 0.1`, and compared with `binding --mmpbsa`. Energies are in kcal/mol and are computed with grid "
        "spacings of 0.5 A (`scale = 2`, the default) and 0.25 A; their limit is extrapolated assuming an error of "
        "second order in the spacing.",
        "",
        "| complex | radiopt | system | EPB at 0.5 A, pbsa and ours | at 0.25 A | limit | difference of limits |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in rows:
        lines.append(f"| {row.case} | {row.radiopt} | {row.system} | {_energies(row)} |")
    whole = [row for row in rows if row.system != "delta"]
    wrong = sum(row.n_radii for row in whole)
    apart = max(abs(limit(row.ours) / limit(row.theirs) - 1) for row in whole)
    steps = [max(abs(of(row)[0] / limit(of(row)) - 1) for row in whole)
             for of in (lambda row: row.theirs, lambda row: row.ours)]  # fmt: skip
    lines += [
        "",
        f"- **Radii**: with either `radiopt`, {wrong or 'no'} atoms have a radius that differs from the one listed by "
        "pbsa. Atoms with GAFF types keep the radii from the topology in both programs.",
        f"- **Spacing**: both programs converge to the same limit to within {100 * apart:.2f} %. At 0.5 A, pbsa is up "
        f"to {100 * steps[0]:.2f} % above the limit and pele-ocl up to {100 * steps[1]:.2f} % below it. pbsa uses "
        "weighted harmonic means for edges cut by the surface (`smoothopt = 1`), whereas pele-ocl uses the exact "
        "fractions of the edges and solves for the reaction field alone.",
    ]
    lines += [
        f'- **{row.case}, radiopt 1**: pbsa stops with "{row.theirs}", pele-ocl with "{row.ours}".' for row in refused
    ]
    lines += _causes(every)
    for name, energies in shifts.items():
        lines.append(
            "- **Position of the grid**: pbsa uses separate grids for the complex, the receptor and the ligand, so "
            f"their errors do not cancel. If {name} is moved by less than one grid step, its difference at 0.5 A "
            f"with `radiopt = 0` is {', '.join(f'{energy:.2f}' for energy in energies[:-1])} or {energies[-1]:.2f}, "
            "depending on the shift. pele-ocl uses one grid, placed around the complex, for all three."
        )
    lines += [
        "", "| complex | radiopt | system | ENPOLAR, pbsa and ours | of the area of pbsa's spheres |",
        "|---|---|---|---|---|",
    ]  # fmt: skip
    for row in rows:
        lines.append(
            f"| {row.case} | {row.radiopt} | {row.system} | {row.their_surface:,.3f} and {row.our_surface:,.3f} | "
            f"{row.areas:,.3f} |"
        )
    lines += [
        "",
        "- **ENPOLAR**: in pbsa this is 0.005 times the area accessible to the centre of a probe of 1.4 A around the "
        "spheres used for EPB. Like MMPBSA.py for `&gb`, pele-ocl uses LCPO, an approximation with its own radii.",
    ]
    return lines


def _causes(rows: list[PBRow]) -> list[str]:
    """Return the lines about remaining differences in the limit of fine grids: residual and salt of pbsa."""
    rows = [row for row in rows if row.case in CAUSES_OF and row.radiopt == 0]
    if not rows:
        return []

    left = max(
        abs(limit(row.ours) - limit(row.theirs)) for row in rows
        if (row.accept, row.istrng, row.system) == (TIGHT, 0.0, "delta")
    )  # fmt: skip
    ordered = sorted(rows, key=lambda row: (row.case, -row.accept, -row.istrng))
    return [
        "- **Remaining differences with radiopt 0** are due to the residual and the treatment of ions in pbsa. "
        "`accept = 0.001` stops its solver early. `eneopt = 2`, which MMPBSA.py sets, computes the energy in the "
        "potential of the induced surface charges and omits that of the ions, which is important for large net "
        f"charges. With a residual of {TIGHT:g} and without salt, the limits of the differences agree to within "
        f"{left:.2f}.",
        "",
        "| complex | system | accept | istrng, mmol/L | EPB at 0.5 A, pbsa and ours | at 0.25 A | limit | difference "
        "of limits |",
        "|---|---|---|---|---|---|---|---|",
        *(f"| {row.case} | {row.system} | {row.accept:g} | {row.istrng:g} | {_energies(row)} |" for row in ordered),
        "",
    ]


def digits(row: Row) -> str:
    """Return the digits of both from the first different one."""
    return f"{row.theirs:,.4f} and {row.ours:,.4f}"


def cause(row: Row) -> str:
    """Return why a number may differ by more than its last digit."""
    if abs(row.exact - row.theirs) <= 2 * HALF:
        return "float32: float64 gives the same number"
    if (row.case, row.term) in CAUSES:
        return CAUSES[row.case, row.term]
    size = max(abs(row.theirs), 1.0)
    if abs(row.exact - row.theirs) <= 5e-8 * size + HALF and row.term in ("EGB", "G solv", "TOTAL"):
        return f"float64 gives {row.exact:,.4f}: EGB differs by 3e-8 in all complexes: a rounded constant"
    if row.program == "MMPBSA.py" and abs(row.exact - row.theirs) <= 10 * HALF:
        return f"float64 gives {row.exact:,.4f}: MMPBSA.py adds up numbers that sander rounded to four decimals"
    return f"not explained: float64 gives {row.exact:,.4f}"


def page(
    rows: list[Row], of_pb: list[PBRow | Refused], shifts: dict[str, list[float]], failed: dict[str, str], command: str
) -> str:
    """Return the page."""
    cases = list(dict.fromkeys(row.case for row in rows))
    equal = sum(abs(row.difference) <= 2 * HALF for row in rows)
    in_float64 = sum(abs(row.exact - row.theirs) <= 2 * HALF for row in rows)
    lines = [
        "# Parity with AmberTools",
        "",
        f"Written by `{command}` on {datetime.date.today().isoformat()}, with AmberTools 26.",
        "",
        f"This page compares {len(cases)} complexes: those built by `tests/benchmarks/parity_build.py` from the public "
        "[protein-ligand-benchmark](https://github.com/openforcefield/protein-ligand-benchmark), and a zinc finger "
        "with DNA. `ptp1b_p` has a phosphonate instead of a carboxylate. They use ff14SB and GAFF or GAFF2 with "
        "Gasteiger charges, and are not minimized, so that clashes test more digits. MMPBSA.py runs sander on NetCDF "
        f"frames; sander is also run directly with `gbsa = 1`. Of the {len(rows):,} numbers that they print with four "
        f"decimals, {equal:,} agree to within one unit in the last digit in float32, which is the default, "
        f"and {in_float64:,} with `--precision float64`.",
        "",
        "| complex | igb | numbers | equal | equal in float64 | largest difference, kcal/mol | quantity |",
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
    lines += without_tables(pb_section(of_pb, shifts)) if of_pb else []
    lines += ["", DIFFERING]
    if failed:
        lines += ["", "## Not compared", ""] + [f"- {name}: {why}" for name, why in failed.items()]
    return "\n".join(lines) + "\n"


def without_tables(lines: list[str]) -> list[str]:
    """Return the sentences of a section without tables, separated by single empty lines."""
    kept = [line for line in lines if not line.startswith("|")]
    return [line for line, before in zip(kept, ["-", *kept], strict=False) if line or before]


def differing(rows: list[Row], of_pb: list[PBRow | Refused], shifts: dict[str, list[float]]) -> str:
    """Return the table of all numbers that differ, and those of Poisson-Boltzmann."""
    lines = ["## Numbers that differ", "",
             "| complex | program | system | term | theirs and ours | difference | cause |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    for row in rows:
        if abs(row.difference) > 2 * HALF:
            lines.append(
                f"| {row.case} | {row.program} | {row.system} | {row.term} | {digits(row)} | {row.difference:+.4f} | "
                f"{cause(row)} |"
            )
    lines += pb_section(of_pb, shifts) if of_pb else []
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compare all complexes, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", type=Path, default=Path("docs/parity.md"))
    parser.add_argument("--peers")
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("--pbsa", action="store_true")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path.cwd()), os.environ.get("PYTHONPATH"))))
    rows, of_pb, shifts, failed = list[Row](), list[PBRow | Refused](), dict[str, list[float]](), dict[str, str]()
    for folder in sorted(options.folder.resolve().iterdir()):
        if not (folder / "com.rst7").is_file():
            continue
        for compare in (pbsa,) if options.pbsa else (mmpbsa, sander, pbsa):
            if compare is pbsa and folder.name not in OF_PB:
                continue
            try:
                found = compare(folder.name, folder, options.peers, options.kept)
                (of_pb if compare is pbsa else rows).extend(found)  # type: ignore[arg-type]
                if compare is pbsa and folder.name == OF_PB[0]:
                    shifts[folder.name] = shifted(folder, options.peers, options.kept)
                print(folder.name, compare.__name__, flush=True)
            except (RuntimeError, KeyError, ValueError, OSError) as error:
                failed[f"{folder.name}, {compare.__name__}"] = str(error)
                print(folder.name, compare.__name__, "failed:", error, flush=True)
    if options.pbsa:
        before, _, after = options.o.read_text().partition(DIFFERING)
        before = before.partition("\n## Poisson-Boltzmann")[0].rstrip() + "\n"
        section = pb_section(of_pb, shifts)
        options.o.write_text(before + "\n".join(without_tables(section)) + f"\n\n{DIFFERING}{after}")
        TABLE.write_text(TABLE.read_text().partition("\n## Poisson-Boltzmann")[0] + "\n".join(section) + "\n")
        for name, why in failed.items():
            print(f"{name}: {why}")
        return
    options.o.write_text(
        page(rows, of_pb, shifts, failed, "python tests/benchmarks/parity.py FOLDER -o docs/parity.md")
    )
    TABLE.write_text(differing(rows, of_pb, shifts))


if __name__ == "__main__":
    main()
