"""PoseBusters' checks of poses before and after `pele-ocl refine`, and how far they are from the native pose.

    python tests/benchmarks/refine.py FOLDER...

Each folder has complex.pdb with the ligand LIG, lig.xml with its parameters for OpenMM, lig.sdf with the native pose
and all hydrogens, and poses.sdf with poses of the same atoms in the same order. In addition, the native pose is rotated
by up to 40 degrees and shifted by up to 1.2 A in three ways, most of which clash. Needs posebusters and rdkit.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import gemmi
import numpy as np
import pandas as pd
from posebusters import PoseBusters
from rdkit import Chem, RDLogger
from rdkit.Chem import rdMolAlign
from rdkit.Geometry import Point3D
from scipy.spatial.transform import Rotation

SHAKEN = 3  # poses that are made of the native one


def moved(molecule: Chem.Mol, positions: np.ndarray) -> Chem.Mol:
    found = Chem.Mol(molecule)
    for k, place in enumerate(positions):
        found.GetConformer().SetAtomPosition(k, Point3D(*map(float, place)))
    return found


def shaken(native: Chem.Mol, seed: int) -> list[Chem.Mol]:
    """Rotate and shift the native pose."""
    rng = np.random.default_rng(seed)
    places = native.GetConformer().GetPositions()
    middle = places.mean(axis=0)
    poses = []
    for _ in range(SHAKEN):
        turn = Rotation.from_rotvec(np.deg2rad(rng.uniform(10, 40)) * unit(rng))
        poses.append(moved(native, turn.apply(places - middle) + middle + rng.uniform(0.3, 1.2) * unit(rng)))
    return poses


def unit(rng: np.random.Generator) -> np.ndarray:
    v = rng.normal(size=3)
    return v / np.linalg.norm(v)


def parts_of(path: Path, native: Chem.Mol) -> tuple[Chem.Mol, Path]:
    """Read the ligand of a refined complex, and write its receptor to a separate file."""
    structure = gemmi.read_structure(str(path))
    ligand = [
        atom.pos.tolist() for chain in structure[0] for residue in chain if residue.name == "LIG" for atom in residue
    ]
    for chain in structure[0]:
        for k in reversed(range(len(chain))):
            if chain[k].name == "LIG":
                del chain[k]
    receptor = path.with_name(f"{path.stem}.receptor.pdb")
    structure.write_pdb(str(receptor))
    return moved(native, np.array(ligand)), receptor


def checked(pose: Chem.Mol, native: Chem.Mol, receptor: Path) -> list[str]:
    """Return the names of the PoseBusters checks that a pose fails, without the RMSD."""
    table = PoseBusters("redock").bust([pose], native, str(receptor)).iloc[0]
    return [name for name, value in table.items() if (value is pd.NA or not value) and "rmsd" not in name.lower()]


def rmsd(pose: Chem.Mol, native: Chem.Mol) -> float:
    return rdMolAlign.CalcRMS(Chem.RemoveHs(pose), Chem.RemoveHs(native))


def main(folders: list[Path]) -> None:
    RDLogger.DisableLog("rdApp.*")
    before_good = after_good = total = near = left = 0
    for number, folder in enumerate(folders):
        native = Chem.MolFromMolFile(str(folder / "lig.sdf"), removeHs=False)
        poses = [*Chem.SDMolSupplier(str(folder / "poses.sdf"), removeHs=False), *shaken(native, number)]
        with Chem.SDWriter(str(folder / "all.sdf")) as writer:
            for pose in poses:
                writer.write(pose)
        words = ("refine", folder / "complex.pdb", folder / "all.sdf", "--forcefield", f"amber14,{folder / 'lig.xml'}",
                 "--ligand", "resname LIG", "-o", folder / "refined", "--resume", "--json")  # fmt: skip
        done = subprocess.run([sys.executable, "-m", "pele_ocl", *map(str, words)], stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout)
        _, receptor = parts_of(folder / "complex.pdb", native)
        for pose, row in zip(poses, found["poses"], strict=True):
            if "error" in row:
                print(f"{folder.name} {row['pose']}: {row['error']}", flush=True)
                total += 1
                continue
            after, own = parts_of(folder / "refined" / f"{row['pose']}.pdb", native)
            failed = checked(pose, native, receptor), checked(after, native, own)
            apart = rmsd(pose, native), rmsd(after, native)
            total += 1
            before_good += not failed[0]
            after_good += not failed[1]
            near += apart[0] < 2.0
            left += apart[0] < 2.0 and apart[1] > 2.5
            clashes, binding = ([row[when][name] for when in ("before", "after")] for name in ("clashes", "binding"))
            print(
                f"{folder.name} {row['pose']}: clashes {clashes[0]:.0f} -> {clashes[1]:.0f}, "
                f"binding {binding[0]:.1f} -> {binding[1]:.1f}, rmsd {apart[0]:.2f} -> {apart[1]:.2f}, "
                f"side chains {row['side_chains']}, failed {len(failed[0])} -> {', '.join(failed[1]) or 0}",
                flush=True,
            )
    print(f"{total} poses: PoseBusters passed by {before_good} before and {after_good} after; of {near} under 2 A "
          f"{left} left 2.5 A")  # fmt: skip


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]])
