"""Comparison of all energy terms of ligands with sander for the same topology and positions.

python tests/benchmarks/ligands_sander.py [-o TABLE.md]

Drugs, charged molecules, S, P and halogens, a macrocycle and peptides, from SMILES, with Gasteiger charges; igb 1, 2,
5, 7 and 8. sander prints four decimals. Positions are the embedded ones, without and with noise of 0.05 A.

Two known differences of sander are excluded: angles beyond 177.4 degrees (cos = -0.999), as in alkynes and nitriles,
are set to 177.4; and igb 8 uses the parameters of phosphorus in nucleic acids also in other molecules
(docs/theory/gb-models.md).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import pele_ocl
from pele_ocl import Atoms, Energy, Ligand, SolventModel, read
from pele_ocl.formats.amber.writing import rst7_text
from pele_ocl.ligand import antechamber

LIGANDS = {
    "aspirin": "CC(=O)Oc1ccccc1C(=O)[O-]",
    "ibuprofen": "CC(C)Cc1ccc(cc1)[C@@H](C)C(=O)[O-]",
    "paracetamol": "CC(=O)Nc1ccc(O)cc1",
    "benzamidine": "NC(=[NH2+])c1ccccc1",
    "imatinib": "Cc1ccc(NC(=O)c2ccc(C[NH+]3CCN(C)CC3)cc2)cc1Nc1nccc(n1)-c1cccnc1",
    "erlotinib": "COCCOc1cc2ncnc(Nc3cccc(c3)C#C)c2cc1OCCOC",
    "celecoxib": "Cc1ccc(cc1)-c1cc(nn1-c1ccc(cc1)S(N)(=O)=O)C(F)(F)F",
    "acetazolamide": "CC(=O)Nc1nnc(s1)S(N)(=O)=O",
    "penicillin G": "CC1(C)S[C@@H]2[C@H](NC(=O)Cc3ccccc3)C(=O)N2[C@H]1C(=O)[O-]",
    "warfarin": "CC(=O)CC(c1ccccc1)c1c([O-])c2ccccc2oc1=O",
    "caffeine": "Cn1cnc2c1c(=O)n(C)c(=O)n2C",
    "nicotine": "C[NH+]1CCC[C@H]1c1cccnc1",
    "morphine": "C[NH+]1CC[C@]23c4c5ccc(O)c4O[C@H]2[C@@H](O)C=C[C@H]3[C@H]1C5",
    "fluoxetine": "C[NH2+]CCC(Oc1ccc(cc1)C(F)(F)F)c1ccccc1",
    "haloperidol": "OC1(CC[NH+](CCCC(=O)c2ccc(F)cc2)CC1)c1ccc(Cl)cc1",
    "bromhexine": "C[NH+](Cc1cc(Br)cc(Br)c1N)C1CCCCC1",
    "amiodarone core": "CCCCc1oc2ccccc2c1C(=O)c1cc(I)c(OCC[NH+](CC)CC)c(I)c1",
    "methotrexate": "CN(Cc1cnc2nc(N)nc(N)c2n1)c1ccc(cc1)C(=O)N[C@@H](CCC(=O)[O-])C(=O)[O-]",
    "oseltamivir acid": "CCC(CC)O[C@@H]1C=C(C[C@@H]([C@H]1NC(C)=O)[NH3+])C(=O)[O-]",
    "AMP": "Nc1ncnc2c1ncn2[C@@H]1O[C@H](COP(=O)([O-])[O-])[C@@H](O)[C@H]1O",
    "phosphonate": "C[C@@H](N)P(=O)([O-])OCC",
    "cyclophosphamide": "ClCCN(CCCl)P1(=O)NCCCO1",
    "dimethyl sulfoxide": "CS(C)=O",
    "sulfonium": "C[S+](C)CC[C@H]([NH3+])C(=O)[O-]",
    "thiophene": "Clc1ccc(s1)C(=O)NCCc1c[nH]c2ccccc12",
    "nitrile": "N#CC1(CC1)c1ccc(cc1)-c1ccc(nc1)N1CCOCC1",
    "nitro": "O=[N+]([O-])c1ccc(cc1)OCC#C",
    "macrocycle": "O=C1CCCCCNC(=O)c2cccc(c2)CCCCN1",
    "peptide": "CC(=O)N[C@@H](Cc1ccccc1)C(=O)N[C@@H](CCC[NH+]=C(N)N)C(=O)N[C@@H](CO)C(N)=O",
    "boceprevir-like": "CC(C)(C)NC(=O)N[C@H](C(=O)N1C[C@H]2[C@@H]([C@H]1C(=O)NC(CC1CCC1)C(=O)C(N)=O)C2(C)C)C(C)(C)C",
    "quaternary": "C[N+](C)(C)CCOC(C)=O",
    "sugar": "OC[C@H]1O[C@@H](O)[C@H](O)[C@@H](O)[C@@H]1O",
}
TERMS = {
    "BOND": ("bond",), "ANGLE": ("angle",), "DIHED": ("torsion", "improper"), "VDWAALS": ("lennard_jones",),
    "EEL": ("coulomb",), "EGB": ("gb_pair", "gb_self"), "1-4 VDW": ("lennard_jones_14",), "1-4 EEL": ("coulomb_14",),
}  # fmt: skip
MODELS = {1: "hct", 2: "obc1", 5: "obc2", 7: "gbn", 8: "gbn2"}
SETS = {1: "mbondi", 2: "mbondi2", 5: "mbondi2", 7: "bondi", 8: "mbondi3"}


def clamped(atoms: Atoms) -> float:
    """Return the energy that sander's limit of cosines adds to angles, kcal/mol."""
    assert atoms.bonded is not None
    table = atoms.bonded.angles
    i, j, k = (atoms.positions[of] for of in table.atoms.T)
    cosine = ((i - j) * (k - j)).sum(axis=1) / np.linalg.norm(i - j, axis=1) / np.linalg.norm(k - j, axis=1)
    constant, angle = table.parameters.T
    energy = [constant * (np.arccos(np.clip(cosine, -most, most)) - angle) ** 2 for most in (0.999, 1.0)]
    return float((energy[0] - energy[1]).sum())


def theirs(folder: Path, igb: int) -> dict[str, float]:
    """Return sander's energies of l.prmtop and l.rst7 in a folder, under sander's names."""
    (folder / "in").write_text(f"one\n &cntrl imin=1, maxcyc=1, ntb=0, cut=999., igb={igb}, ntpr=1, gbsa=0 /\n")
    words = ["-O", "-i", "in", "-p", "l.prmtop", "-c", "l.rst7", "-o", "out", "-r", "r", "-inf", "inf"]
    subprocess.run([antechamber.program("sander"), *words], cwd=folder, check=True, env=antechamber.environment())
    text = (folder / "out").read_text().partition("NSTEP")[2].partition("NSTEP")[0]
    return {name.strip(): float(value) for name, value in re.findall(r"([A-Z0-9][A-Z0-9 -]*?)\s+=\s+(-?[\d.]+)", text)}


def main() -> None:
    """Print the largest difference of each ligand and of all, kcal/mol."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    from pele_ocl.formats.amber.writing import prmtop_text

    lines = ["| ligand | atoms | charge | largest difference of a term, kcal/mol |", "|---|---|---|---|"]
    worst = 0.0
    for name, smiles in LIGANDS.items():
        ligand = Ligand.from_smiles(smiles, name)
        atoms = ligand.parametrize()
        shaken = atoms.positions + np.random.default_rng(1).normal(0, 0.05, atoms.positions.shape)
        largest = 0.0
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            for igb, gb in MODELS.items():
                (folder / "l.prmtop").write_text(prmtop_text(atoms.with_radii(SETS[igb])))
                for positions in (atoms.positions, shaken):
                    (folder / "l.rst7").write_text(rst7_text(positions))
                    own = read(folder / "l.prmtop", coordinates=folder / "l.rst7")
                    model = SolventModel.like("amber", gb=gb)
                    ours = Energy(own, model=model, precision="float64").evaluate(own.positions).energy
                    found = theirs(folder, igb)
                    found["ANGLE"] -= clamped(own)
                    skipped = ("EGB",) if igb == 8 and "P" in ligand.elements else ()
                    gaps = {
                        at: abs(sum(ours.get(of, 0.0) for of in terms) - found[at])
                        for at, terms in TERMS.items()
                        if at not in skipped
                    }
                    largest = max(largest, *gaps.values())
        worst = max(worst, largest)
        lines.append(f"| {name} | {len(atoms)} | {ligand.charge:+d} | {largest:.1e} |")
        print(lines[-1], flush=True)
    lines.append(f"\n{len(LIGANDS)} ligands, {len(MODELS)} models, two conformations: at most {worst:.1e} kcal/mol.")
    print(lines[-1], f"pele-ocl {pele_ocl.__version__}")
    if options.output is not None:
        options.output.write_text("\n".join(lines) + "\n")
    sys.exit(worst > 1.1e-4)


if __name__ == "__main__":
    main()
