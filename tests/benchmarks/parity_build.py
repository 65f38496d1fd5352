"""Complexes for parity.py, parametrised by AmberTools: python parity_build.py BENCHMARK FOLDER [NAME ...].

BENCHMARK is a clone of github.com/openforcefield/protein-ligand-benchmark, bare or not. Each complex gets a folder with
com.parm7, rec.parm7, lig.parm7 and com.rst7. Proteins are ff14SB (phosphorylated residues: phosaa14SB), ligands GAFF2
with Gasteiger charges, ions the set for TIP3P; hydrogens are added by tleap. Nothing is minimized: energies of clashes
are large, which tests more digits. `antechamber`, `parmchk2`, `tleap` and `cpptraj` are taken from the PATH.
"""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RADII = {1: "mbondi", 2: "mbondi2", 5: "mbondi2", 7: "bondi", 8: "mbondi3"}  # of igb
LIGAND = "LIG"


@dataclass(frozen=True)
class Case:
    """A complex of the benchmark: its target, the number of its ligand in ligands.sdf, and the GB model.

    phosphonate : whether to convert the first carboxylate to a phosphonate, since no ligand contains phosphorus
    """

    target: str
    ligand: int
    igb: int
    family: str = "gaff2"
    phosphonate: bool = False


CASES = {
    "tyk2_cl": Case("tyk2", 0, 1, "gaff"),
    "tyk2_clf": Case("tyk2", 1, 8),
    "thrombin_i": Case("thrombin", 7, 5),
    "thrombin_br": Case("thrombin", 8, 7),
    "mcl1_cls": Case("mcl1", 4, 2),
    "ptp1b_brs": Case("ptp1b", 0, 5, "gaff"),
    "ptp1b_p": Case("ptp1b", 0, 5, phosphonate=True),
    "hif2a_fs": Case("hif2a", 0, 8),
    "cdk2_s_tpo": Case("cdk2", 3, 1),
    "tnks2_f_zn": Case("tnks2", 0, 5),
    "pde2_cl_mg_zn": Case("pde2", 0, 2),
    "eg5_fs": Case("eg5", 0, 8),
    "shp2_cl": Case("shp2", 0, 7),
}


def build(case: Case, source: Path, folder: Path) -> None:
    """Write the topologies and coordinates of a complex."""
    folder.mkdir(parents=True, exist_ok=True)
    sdf = _file(source, f"data/{case.target}/02_ligands/ligands.sdf").split("$$$$\n")[case.ligand].lstrip("\n")
    sdf = _with_phosphonate(sdf) if case.phosphonate else sdf
    pdb = _file(source, f"data/{case.target}/01_protein/crd/protein.pdb")
    (folder / "ligand.sdf").write_text(f"{sdf}$$$$\n")
    bonds = _protein(pdb, folder / "protein.pdb")
    charge = sum(int(word) for line in sdf.splitlines() if line.startswith("M  CHG") for word in line.split()[4::2])
    _run(folder, "antechamber", "-i", "ligand.sdf", "-fi", "sdf", "-o", "ligand.mol2", "-fo", "mol2", "-c", "gas",
         "-nc", str(charge), "-at", case.family, "-rn", LIGAND, "-dr", "no", "-pf", "y")  # fmt: skip
    _run(folder, "parmchk2", "-i", "ligand.mol2", "-f", "mol2", "-o", "ligand.frcmod", "-s", case.family)
    (folder / "leap.in").write_text(
        "source leaprc.protein.ff14SB\nsource leaprc.phosaa14SB\nsource leaprc.water.tip3p\n"
        f"source leaprc.{case.family}\nset default PBRadii {RADII[case.igb]}\nloadamberparams ligand.frcmod\n"
        f"{LIGAND} = loadmol2 ligand.mol2\nrec = loadpdb protein.pdb\n"
        + "".join(f"bond rec.{i}.SG rec.{j}.SG\n" for i, j in bonds)
        + f"com = combine {{rec {LIGAND}}}\nsaveamberparm com com.parm7 com.rst7\n"
        f"saveamberparm rec rec.parm7 rec.rst7\nsaveamberparm {LIGAND} lig.parm7 lig.rst7\nquit\n"
    )
    _run(folder, "tleap", "-f", "leap.in")


def _with_phosphonate(sdf: str) -> str:
    """Convert the first carboxylate of a molecule to a phosphonate: C(=O)[O-] becomes P(=O)([O-])[O-]."""
    lines = sdf.splitlines()
    n_atoms, n_bonds = int(lines[3][:3]), int(lines[3][3:6])
    atoms, bonds = lines[4 : 4 + n_atoms], lines[4 + n_atoms : 4 + n_atoms + n_bonds]
    rest = lines[4 + n_atoms + n_bonds :]
    elements = [line[31:34].strip() for line in atoms]
    places = np.array([[float(line[k : k + 10]) for k in (0, 10, 20)] for line in atoms])
    beside = {a: list[int]() for a in range(n_atoms)}
    for line in bonds:
        i, j = int(line[:3]) - 1, int(line[3:6]) - 1
        beside[i].append(j)
        beside[j].append(i)
    carbon, oxygens = next(
        (a, own) for a in beside
        if elements[a] == "C" and len(own := [b for b in beside[a] if elements[b] == "O" and len(beside[b]) == 1]) == 2
    )  # fmt: skip
    (root,) = (b for b in beside[carbon] if b not in oxygens)
    along = (places[carbon] - places[root]) / np.linalg.norm(places[carbon] - places[root])
    across = places[oxygens[0]] - places[carbon]
    across -= along * (across @ along)
    across /= np.linalg.norm(across)
    middle = places[root] + 1.80 * along
    around = [
        middle + 1.52 * (along / 3 + 8**0.5 / 3 * (np.cos(turn) * across + np.sin(turn) * np.cross(along, across)))
        for turn in np.radians((0, 120, 240))
    ]

    def moved(line: str, place: Floats, element: str) -> str:
        return "".join(f"{x:10.4f}" for x in place) + f" {element:<3}" + line[34:]

    atoms[carbon] = moved(atoms[carbon], middle, "P")
    for atom, place in zip(oxygens, around, strict=False):
        atoms[atom] = moved(atoms[atom], place, "O")
    atoms.append(moved(atoms[oxygens[0]], around[2], "O"))
    bonds.append(f"{carbon + 1:3d}{n_atoms + 1:3d}  1  0  0  0")
    head = [*lines[:3], f"{n_atoms + 1:3d}{n_bonds + 1:3d}{lines[3][6:]}"]
    return "\n".join([*head, *atoms, *bonds, f"M  CHG  1 {n_atoms + 1:3d}  -1", *rest]) + "\n"


def _protein(pdb: str, path: Path) -> list[tuple[int, int]]:
    """Write the heavy atoms of the protein and its ions; return pairs of residues with a disulphide, from 1."""
    lines, sulphurs, number, last = list[str](), list[tuple[int, tuple[float, ...]]](), 0, ""
    names = {"ZN": "ZN", "MG": "MG"}
    for line in pdb.splitlines():
        if line.startswith("TER"):
            lines.append("TER")
        if not line.startswith(("ATOM", "HETATM")) or line[16] not in " A":
            continue
        atom, residue, here = line[12:16].strip(), line[17:20].strip(), line[17:27]
        if residue == "HOH" or line[76:78].strip() == "H" or (residue == "NME" and atom != "N"):
            continue
        if here != last:
            number, last = number + 1, here
        if residue == "CYS" and atom == "SG":
            sulphurs.append((number, tuple(float(line[k : k + 8]) for k in (30, 38, 46))))
        line = f"{line[:22]}{number:4d} {line[27:]}"
        lines += ["TER", line] if residue in names else [line]
    pairs = [(i, j) for k, (i, a) in enumerate(sulphurs) for j, b in sulphurs[k + 1 :] if math.dist(a, b) < 2.5]
    bridged = {f"{i:4d}" for pair in pairs for i in pair}
    path.write_text("\n".join(f"{x[:17]}CYX{x[20:]}" if x[22:26] in bridged else x for x in lines) + "\nEND\n")
    return pairs


def _file(source: Path, name: str) -> str:
    return subprocess.run(
        ["git", "-C", str(source), "show", f"HEAD:{name}"], capture_output=True, text=True, check=True
    ).stdout


def _run(folder: Path, *command: str) -> None:
    with (folder / f"{command[0]}.log").open("w") as log:
        subprocess.run(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, check=True)


def main() -> None:
    """Build the named complexes, or all."""
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    for name in sys.argv[3:] or CASES:
        try:
            build(CASES[name], source, folder / name)
            print(name, "built", flush=True)
        except (subprocess.CalledProcessError, OSError, IndexError) as error:
            print(name, "failed:", error, flush=True)


if __name__ == "__main__":
    main()
