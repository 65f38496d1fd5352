"""Remove side chains around the ligands of structures, rebuild them, and compare them with the original ones.

    python tests/benchmarks/side_chains.py FILES... [--prepared FOLDER] [--radius 6] [--device D] [--solvent obc2]

FILES are PDB or mmCIF files of complexes as they are published. Hydrogens are added (`pele_ocl.prepare`) and cached in
FOLDER. The ligand is the largest hetero group with at least seven heavy atoms. It and all other hetero groups are
uncharged spheres, since their parameters are unknown. Side chains of residues within the radius, A, are absent until
they are built. Bond lengths and angles are those of the file, so the results are somewhat better than those of programs
with ideal ones.

Prints a line per structure, and finally the fraction of residues with chi1 within 40 degrees of the file, and with both
chi1 and chi2. Residues with missing side chain atoms in the file are excluded, as are those with a B factor that is not
known to be good or bad.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import pele_ocl
from pele_ocl.atoms.chemistry import is_polymer, is_water
from pele_ocl.atoms.labels import Labels
from pele_ocl.explore.rotations import side_chains_of
from pele_ocl.formats.structures import read_structure

SPHERES = {  # sigma A and epsilon kcal/mol of united atoms, by element
    "C": (3.6, 0.10), "N": (3.25, 0.17), "O": (3.0, 0.2), "S": (3.56, 0.25), "P": (3.74, 0.2), "F": (3.1, 0.06),
    "Cl": (3.5, 0.26), "Br": (3.7, 0.32), "I": (4.0, 0.4),
}  # fmt: skip
ADDED = {  # that crystals are grown with, or sugars on asparagine
    "GOL", "EDO", "PEG", "PG4", "PGE", "MPD", "SO4", "PO4", "ACT", "CIT", "TRS", "EPE", "MES", "DMS", "NAG", "BMA",
    "MAN", "FUC", "BOG", "TAR", "MLI", "FLC", "1PE", "P6G",
}  # fmt: skip
WITHIN = np.deg2rad(40)
SYMMETRIC = {"ASP", "PHE", "TYR"}  # whose chi2 repeats after half a turn


def hetero_groups(structure) -> list[np.ndarray]:
    """Return the heavy atoms of groups that are neither polymer nor water."""
    labels, found = structure.labels, []
    for k, first in enumerate(labels.residue_starts.tolist()):
        name = str(labels.residue_names[first])
        if not structure.hetero[k] or is_water(name) or is_polymer(name):
            continue
        own = np.flatnonzero((labels.residue_index == k) & (labels.elements != "H"))
        found.append(own)
    return found


def with_spheres(atoms: pele_ocl.Atoms, structure, spheres: np.ndarray) -> pele_ocl.Atoms:
    """Add uncharged atoms to a structure."""
    labels, n = structure.labels, len(spheres)
    sigma, epsilon = np.array([SPHERES.get(str(labels.elements[i]), (2.5, 0.05)) for i in spheres]).T
    columns = {
        name: np.concatenate([getattr(atoms.labels, name), getattr(labels, name)[spheres]])
        for name in Labels.__dataclass_fields__
    }
    last = atoms.labels.residue_index[-1] + 1
    columns["residue_index"] = np.concatenate(
        [atoms.labels.residue_index, last + np.unique(labels.residue_index[spheres], return_inverse=True)[1]]
    )
    return replace(
        atoms, positions=np.concatenate([atoms.positions, structure.positions[spheres]]),
        charges=np.append(atoms.charges, np.zeros(n)), lj_sigma=np.append(atoms.lj_sigma, sigma),
        lj_epsilon=np.append(atoms.lj_epsilon, epsilon), gb_radii=np.append(atoms.gb_radii, np.full(n, 1.7)),
        gb_scales=np.append(atoms.gb_scales, np.full(n, 0.8)), labels=Labels(**columns), types=None, sgb=None,
    )  # fmt: skip


def heavy_names(structure) -> set[tuple[str, int, str, str]]:
    """Return chain, number, insertion code and name of all atoms of the file."""
    labels = structure.labels
    columns = labels.chains, labels.residue_numbers, labels.insertion_codes, labels.names
    return set(zip(*(column.tolist() for column in columns), strict=True))


def rebuilt(path: Path, folder: Path, radius: float, options: dict) -> tuple[np.ndarray, np.ndarray, list[str]] | None:
    """Return differences of chi1 and chi2 (n,) rad of residues near the ligand, NaN for none, and their names."""
    structure = read_structure(path)
    groups = hetero_groups(structure)
    ligands = [g for g in groups if str(structure.labels.residue_names[g[0]]) not in ADDED and len(g) >= 7]
    if not ligands:
        print(f"{path.name}: there is no ligand")
        return None
    prepared = folder / f"{path.name.split('.')[0]}_prepared.pdb"
    if not prepared.exists():
        pele_ocl.prepare(path, prepared, loops=False)
    protein = pele_ocl.read(prepared)
    atoms = with_spheres(protein, structure, np.concatenate(groups))
    ligand = structure.positions[max(ligands, key=len)]
    near = np.zeros(len(atoms), bool)
    for atom in ligand:
        near[: len(protein)] |= ((protein.positions - atom) ** 2).sum(axis=1) <= radius**2
    there, labels = heavy_names(structure), atoms.labels
    residues = set(labels.residue_index[near].tolist())
    chains = [
        of for of in side_chains_of(atoms)
        if of.residue in residues and all(
            labels.elements[i] == "H"
            or (labels.chains[i], labels.residue_numbers[i], labels.insertion_codes[i], labels.names[i]) in there
            for i in of.moved.tolist()
        )
    ]  # fmt: skip
    if not chains:
        print(f"{path.name}: no side chain is near the ligand")
        return None
    # Where side chains were must not count: they all begin elsewhere.
    start = atoms.positions.copy()
    rng = np.random.default_rng(0)
    for of in chains:
        start[of.moved] = of.placed(atoms.positions, rng.uniform(-np.pi, np.pi, len(of.torsions)))
    chosen = np.concatenate([of.moved for of in chains])
    begin = time.perf_counter()
    found = pele_ocl.explore.predict_side_chains(atoms.moved(start), chosen, rebuild=True, **options)
    seconds = time.perf_counter() - begin
    first, second, names = [], [], []
    for of in chains:
        away = of.angles(found) - of.angles(atoms.positions)
        away = np.abs(np.remainder(away + np.pi, 2 * np.pi) - np.pi)
        if of.n_chi > 1 and of.name in SYMMETRIC:
            away[1] = min(away[1], np.pi - away[1])
        first.append(away[0])
        second.append(away[1] if of.n_chi > 1 else np.nan)
        names.append(of.name)
    good = np.array(first) <= WITHIN
    name = structure.labels.residue_names[max(ligands, key=len)[0]]
    print(
        f"{path.name}: {len(atoms):,} atoms, {name}, chi1 of {good.sum()} of {len(good)} within 40 degrees, "
        f"{seconds:.1f} s", flush=True,
    )  # fmt: skip
    return np.array(first), np.array(second), names


def main() -> None:
    """Rebuild all files and print the fractions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--prepared", type=Path, default=Path("."))
    parser.add_argument("--radius", type=float, default=6.0)
    parser.add_argument("--device")
    parser.add_argument("--solvent", default="obc2")
    given = parser.parse_args()
    options = {"model": pele_ocl.SolventModel(gb=given.solvent), "device": given.device}
    results = []
    for path in given.files:
        try:
            results.append(rebuilt(path, given.prepared, given.radius, options))
        except pele_ocl.PeleError as error:
            print(f"{path.name}: left out: {error}", flush=True)
    found = [of for of in results if of is not None]
    first, second = (np.concatenate([of[k] for of in found]) for k in range(2))
    names = np.array([name for of in found for name in of[2]])
    two = ~np.isnan(second)
    both = (first[two] <= WITHIN) & (second[two] <= WITHIN)
    print(
        f"{len(found)} structures: chi1 within 40 degrees {100 * (first <= WITHIN).mean():.1f} % of {len(first)} "
        f"residues; chi1 and chi2 {100 * both.mean():.1f} % of {two.sum()}"
    )
    for name in sorted(set(names.tolist())):
        own = first[names == name] <= WITHIN
        print(f"  {name} {100 * own.mean():5.1f} % of {len(own)}")


if __name__ == "__main__":
    main()
