"""LCPO parameters of each atom type in AMBER programs: python lcpo_types.py [--sander] [-o TABLE.csv].

For every type of GAFF, GAFF2, ff14SB with OL3 and ions, for names in CGenFF's style, and for every number of bonds, a
small molecule is written: an atom of that type with carbons and hydrogens around it. Its area is computed by
`cpptraj surf` and, with --sander, by sander with gbsa = 1. Areas, and warnings or notes, are compared with those of
pele_ocl. The programs and AMBERHOME are taken from the environment; the exit code is 1 if an area differs.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pele_ocl import Atoms, SolventModel
from pele_ocl.atoms import Labels
from pele_ocl.atoms.lcpo import lcpo_notes
from pele_ocl.reference.surface import surface_areas

ELEMENTS = {"H": 1, "C": 6, "N": 7, "O": 8, "F": 9, "NA": 11, "MG": 12, "P": 15, "S": 16, "CL": 17, "K": 19, "CA": 20,
            "MN": 25, "FE": 26, "CO": 27, "NI": 28, "CU": 29, "ZN": 30, "BR": 35, "I": 53}  # fmt: skip
FILES = ("gaff.dat", "gaff2.dat", "parm10.dat", "frcmod.ff14SB", "frcmod.ions1lm_126_tip3p", "atomic_ions.cmd")
# Of CGenFF and CHARMM36 by their first letters, with the letters behind that change what a rule by two letters sees.
CHARMM = {"C": "CG2R61 CG331 C CT1 CT3 CC CE1 CA CL", "N": "NG2S1 NG3P3 NH1 NH3 N NC2 N3",
          "O": "OG2D1 O OB OC OH1 OG2D2 O2",
          "S": "SG311 SG3O2 S SM SH", "P": "PG1 P", "CL": "CLGR1 CLGA1 CLA", "BR": "BRGR1", "I": "IGR1",
          "F": "FGA3 FGR1",
          "ZN": "ZN", "MG": "MG"}  # fmt: skip


@dataclass(frozen=True)
class Center:
    """An atom to test: its type, element, and number of heavy neighbours and hydrogens."""

    type: str
    element: int
    heavy: int
    hydrogens: int


def types(parm: Path) -> dict[str, int]:
    """Return the element of each atom type, from the masses in parameter files."""
    by_mass = {12.01: 6, 14.01: 7, 16.00: 8, 19.00: 9, 32.06: 16, 32.065: 16, 30.97: 15, 35.45: 17, 79.90: 35,
               126.9: 53,
               1.008: 1, 22.99: 11, 24.305: 12, 65.4: 30, 39.10: 19, 40.08: 20, 35.453: 17}  # fmt: skip
    found: dict[str, int] = {}
    for name in FILES:
        if not (parm / name).is_file():
            continue
        for line in (parm / name).read_text(errors="replace").splitlines():
            row = re.match(r"^(\S{1,4}) +(\d+\.\d+)\b", line)
            if (
                row
                and (near := min(by_mass, key=lambda mass: abs(mass - float(row[2]))))
                and abs(near - float(row[2])) < 0.05
            ):
                found.setdefault(row[1], by_mass[near])
    for symbol, names in CHARMM.items():
        found |= {name: ELEMENTS[symbol] for name in names.split() if name not in found}
    return found


def centers(of: dict[str, int]) -> Iterator[Center]:
    """Yield each type with every number of bonds."""
    for name, element in sorted(of.items()):
        most = {6: 4, 7: 4, 8: 2, 16: 4, 15: 4}.get(element, 1)
        for heavy in range(most + 1):
            if element != 1:
                for hydrogens in {0, 4 - heavy, 3 - heavy} if element == 6 else {0}:
                    if hydrogens >= 0:
                        yield Center(name, element, heavy, hydrogens)


def prmtop(center: Center) -> str:
    """Return the topology of a centre with bonded carbons and hydrogens, without charges or energies."""
    elements = [center.element, *[6] * center.heavy, *[1] * center.hydrogens]
    names = [center.type, *["CT"] * center.heavy, *["HC"] * center.hydrogens]
    n, bonds = len(elements), [(0, k) for k in range(1, len(elements))]
    with_h = [x for i, j in bonds if 1 in (elements[i], elements[j]) for x in (3 * i, 3 * j, 1)]
    rest = [x for i, j in bonds if 1 not in (elements[i], elements[j]) for x in (3 * i, 3 * j, 1)]
    excluded = [*range(2, n + 1), *[0] * (n - 1)] if n > 1 else [0]
    pointers = [
        n,
        1,
        len(with_h) // 3,
        len(rest) // 3,
        0,
        0,
        0,
        0,
        0,
        0,
        len(excluded),
        1,
        len(rest) // 3,
        0,
        0,
        1,
        0,
        0,
        1,
    ]
    pointers += [0] * (31 - len(pointers))
    pointers[28] = n
    sections: list[tuple[str, str, list[object]]] = [
        ("TITLE", "20a4", ["x"]), ("POINTERS", "10I8", [*pointers]),
        ("ATOM_NAME", "20a4", [f"X{k}" for k in range(n)]), ("CHARGE", "5E16.8", [0.0] * n),
        ("ATOMIC_NUMBER", "10I8", [*elements]), ("MASS", "5E16.8", [12.0] * n), ("ATOM_TYPE_INDEX", "10I8", [1] * n),
        ("NUMBER_EXCLUDED_ATOMS", "10I8", [max(1, n - 1), *[1] * (n - 1)]), ("NONBONDED_PARM_INDEX", "10I8", [1]),
        ("RESIDUE_LABEL", "20a4", ["LIG"]), ("RESIDUE_POINTER", "10I8", [1]),
        ("BOND_FORCE_CONSTANT", "5E16.8", [0.0]), ("BOND_EQUIL_VALUE", "5E16.8", [1.5]),
        ("ANGLE_FORCE_CONSTANT", "5E16.8", []), ("ANGLE_EQUIL_VALUE", "5E16.8", []),
        ("DIHEDRAL_FORCE_CONSTANT", "5E16.8", []), ("DIHEDRAL_PERIODICITY", "5E16.8", []),
        ("DIHEDRAL_PHASE", "5E16.8", []), ("SOLTY", "5E16.8", [0.0]), ("LENNARD_JONES_ACOEF", "5E16.8", [0.0]),
        ("LENNARD_JONES_BCOEF", "5E16.8", [0.0]), ("BONDS_INC_HYDROGEN", "10I8", [*with_h]),
        ("BONDS_WITHOUT_HYDROGEN", "10I8", [*rest]), ("ANGLES_INC_HYDROGEN", "10I8", []),
        ("ANGLES_WITHOUT_HYDROGEN", "10I8", []), ("DIHEDRALS_INC_HYDROGEN", "10I8", []),
        ("DIHEDRALS_WITHOUT_HYDROGEN", "10I8", []), ("EXCLUDED_ATOMS_LIST", "10I8", [*excluded]),
        ("HBOND_ACOEF", "5E16.8", []), ("HBOND_BCOEF", "5E16.8", []), ("HBCUT", "5E16.8", []),
        ("AMBER_ATOM_TYPE", "20a4", [*names]), ("TREE_CHAIN_CLASSIFICATION", "20a4", ["M"] * n),
        ("JOIN_ARRAY", "10I8", [0] * n), ("IROTAT", "10I8", [0] * n), ("RADIUS_SET", "1a80", ["(mbondi)"]),
        ("RADII", "5E16.8", [1.5] * n), ("SCREEN", "5E16.8", [0.8] * n),
    ]  # fmt: skip
    lines = ["%VERSION  VERSION_STAMP = V0001.000  DATE = 01/01/00  00:00:00"]
    for name, form, values in sections:
        per, kind, width = re.fullmatch(r"(\d+)([aIE])(\d+)(?:\.\d+)?", form).groups()  # type: ignore[union-attr]
        texts = [
            f"{value!s:<{width}}" if kind == "a" else f"{value:{width}d}" if kind == "I" else f"{value:{width}.8E}"
            for value in values
        ]
        rows = ["".join(texts[k : k + int(per)]) for k in range(0, len(texts), int(per))] or [""]
        lines += [f"%FLAG {name}", f"%FORMAT({form})", *rows]
    return "\n".join(lines) + "\n"


def places(center: Center) -> list[tuple[float, float, float]]:
    """Return the positions of the atoms, A: neighbours at the corners of an octahedron."""
    corners = [(1.5, 0, 0), (-1.5, 0, 0), (0, 1.5, 0), (0, -1.5, 0), (0, 0, 1.5), (0, 0, -1.5)]
    return [(0.0, 0.0, 0.0), *corners[: center.heavy + center.hydrogens]]


def coordinates(center: Center) -> str:
    """Return the text of an AMBER restart."""
    rows = places(center)
    values = [f"{x:12.7f}" for row in rows for x in row]
    return "\n".join(["x", f"{len(rows):5d}", *("".join(values[k : k + 6]) for k in range(0, len(values), 6))]) + "\n"


def cpptraj(folder: Path, many: list[Center]) -> list[tuple[float, bool]]:
    """Return the area of all atoms of each, and whether cpptraj warned about the centre."""
    found: list[tuple[float, bool]] = []
    for k in range(len(many)):
        lines = f"parm {k}.parm7\ntrajin {k}.rst7\nsurf out {k}.dat\nrun\nquit\n"
        run = subprocess.run(["cpptraj"], input=lines, cwd=folder, capture_output=True, text=True)
        area = float((folder / f"{k}.dat").read_text().split()[-1])
        found.append((area, re.search(r"atom 1\b.*type|type.*atom 1\b", run.stdout + run.stderr) is not None))
    return found


def sander(folder: Path, many: list[Center]) -> list[tuple[float, bool]]:
    """Return ESURF of each as an area, NaN if sander fails, and whether it used carbon for an unknown type."""
    (folder / "in").write_text(
        "x\n&cntrl imin=1, maxcyc=0, ntb=0, cut=999., igb=5, gbsa=1, surften=1.0, rgbmax=25., ntmin=1 /\n"
    )
    found = []
    for k in range(len(many)):
        command = ["sander", "-O", "-i", "in", "-p", f"{k}.parm7", "-c", f"{k}.rst7", "-o", "out", "-r", "r"]
        subprocess.run(command, cwd=folder, capture_output=True)
        text = (folder / "out").read_text(errors="replace")
        row = re.findall(r"ESURF *= *(-?[\d.]+)", text)
        found.append((float(row[-1]) if row else float("nan"), "Using carbon" in text))
    return found


def ours(center: Center) -> tuple[float, bool]:
    """Return the area of all atoms by the rules of AMBER programs, and whether a note names the centre."""
    n = 1 + center.heavy + center.hydrogens
    symbols = {number: symbol.capitalize() for symbol, number in ELEMENTS.items()}
    elements = [symbols[center.element], *["C"] * center.heavy, *["H"] * center.hydrogens]
    labels = Labels(
        np.array([f"X{k}" for k in range(n)]), np.array(elements), np.full(n, "LIG"), np.ones(n, np.int32),
        np.full(n, ""),
        np.full(n, ""), np.zeros(n, np.int32),
    )  # fmt: skip
    atoms = Atoms(
        np.array(places(center)), np.zeros(n), labels=labels,
        bonds=np.array([(0, k) for k in range(1, n)]).reshape(-1, 2),
        types=np.array([center.type, *["CT"] * center.heavy, *["HC"] * center.hydrogens]), type_family="amber",
    )  # fmt: skip
    note = " ".join(lcpo_notes(atoms, "amber"))
    return float(surface_areas(atoms, SolventModel.like("sander"))[0].sum()), ":X0 " in note


def main() -> None:
    """Write and compare the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--sander", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("-o", type=Path)
    options = parser.parse_args()
    home = Path(os.environ["AMBERHOME"])
    parm = next(p for p in (home / "dat/leap/parm", home / "../../dat/leap/parm") if p.is_dir())
    many = [c for c in centers(types(parm)) if not options.only or c.type in options.only.split(",")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for k, center in enumerate(many):
            (folder / f"{k}.parm7").write_text(prmtop(center))
            (folder / f"{k}.rst7").write_text(coordinates(center))
        theirs = cpptraj(folder, many)
        totals = sander(folder, many) if options.sander else [(float("nan"), False)] * len(many)
    table = [
        (c.type, c.element, c.heavy, c.hydrogens, area, int(warned), total, int(unknown), *ours(c))
        for c, (area, warned), (total, unknown) in zip(many, theirs, totals, strict=True)
    ]
    writer = csv.writer(options.o.open("w", newline="") if options.o else sys.stdout)
    writer.writerow("type element heavy hydrogens cpptraj warned sander unknown ours noted".split())
    writer.writerows(table)
    # sander gives a heavy atom without others no area.
    wrong = [
        row
        for row in table
        if abs(row[4] - row[8]) > 1e-3 or (row[2] and abs(row[6] - row[8]) > 1e-3) or row[5] != row[9]
    ]
    print(f"{len(table):,} atoms, {len({row[0] for row in table})} types: {len(wrong)} areas differ", file=sys.stderr)
    for row in wrong:
        print(*row, file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
