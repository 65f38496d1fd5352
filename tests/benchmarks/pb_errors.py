"""Comparison of estimated and true errors of Poisson-Boltzmann energies for proteins and nucleic acids.

python tests/benchmarks/pb_errors.py [FILE ...]     rows of a Markdown table; by default the twelve below

The true error of an energy is its difference from the limit of fine grids of `edges`: E(h) = E + c h^2 through 1/4 and
1/6 A, in the same box. The error of the limit is its difference from the one through 1/2 and 1/4 A. The estimated error
is that of `errors.grid`. Salt of 0.15 mol/L. Each structure is solved on six grids, the finest of 9 to 42 million
nodes; ten of the twelve are examples of APBS, which must be installed.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np

import pele_ocl
from pele_ocl import Atoms, Grid, PBIon, PBModel, PoissonBoltzmann
from pele_ocl.bench.systems import SYSTEMS, load

APBS = shutil.which("apbs")
EXAMPLES = Path(APBS).parent.parent / "share" / "apbs" / "examples" if APBS else Path("none")
TWELVE = {
    "hexapeptide": "hexapeptide", "piece of a protein (491)": "ion-protein/small491.pqr",
    "helix": "helix/Membrane-helix-0.pqr", "N peptide": "protein-rna/model_outNpep.pqr",
    "LDL receptor module (1ajj)": "bem/test_proteins/1ajj.pqr", "binding domain (1bbl)": "bem/test_proteins/1bbl.pqr",
    "boxB RNA": "protein-rna/model_outBoxB19.pqr", "B-DNA (1d30)": "bem-binding-energy/test_proteins/1d30_monomer1.pqr",
    "fasciculin 2": "misc/fas2.pqr", "N peptide with boxB RNA": "protein-rna/model_outNB.pqr",
    "cytochrome c551 (451c)": "bem/test_proteins/451c.pqr", "ubiquitin": "ubiquitin",
}  # fmt: skip
MARGIN, STEP = 8.0, 8.0  # A: between the molecule and the border at least, and edges of boxes are multiples


def box_of(atoms: Atoms) -> tuple[np.ndarray, np.ndarray]:
    """Return corner and lengths, A, of a box around the spheres that is a multiple of all spacings."""
    low = (atoms.positions - atoms.gb_radii[:, None]).min(axis=0)
    high = (atoms.positions + atoms.gb_radii[:, None]).max(axis=0)
    lengths = np.ceil((high - low + 2 * MARGIN) / STEP) * STEP
    return (low + high - lengths) / 2, lengths


# Surface and inverse spacing of rows, and of all grids that are solved on.
ROWS = (("edges", 1), ("edges", 2), ("edges", 4), ("mol", 2), ("smol", 2))
SOLVED = (*(("edges", inverse) for inverse in (1, 2, 4, 6)), ("mol", 2), ("smol", 2))


def energies_of(atoms: Atoms, device: str | None) -> tuple[dict[str, float], dict[str, float]]:
    """Return reaction energies, kcal/mol, by surface and inverse spacing, and estimated errors for those in ROWS."""
    corner, lengths = box_of(atoms)
    found, stated = dict[str, float](), dict[str, float]()
    for surface, inverse in SOLVED:
        model = PBModel(ions=(PBIon(1, 0.15), PBIon(-1, 0.15)), surface=surface)
        grid = Grid(corner, 1 / inverse, np.round(lengths * inverse).astype(int) + 1)
        run = PoissonBoltzmann(atoms, model, grids=grid, device=device)
        key, is_row = f"{surface} {inverse:g}", (surface, inverse) in ROWS
        result = run.solve(keep_map=False, grid_error=is_row)
        found[key] = result.energy
        if result.errors.grid is not None:
            stated[key] = result.errors.grid
    return found, stated


def print_row(name: str, n_atoms: int, energies: dict[str, float], stated: dict[str, float]) -> None:
    """Print the limit of a structure, and the true and estimated errors of each of ROWS."""

    def limit(fine: int, coarse: int) -> float:
        share = 1 / ((fine / coarse) ** 2 - 1)
        return energies[f"edges {fine}"] + share * (energies[f"edges {fine}"] - energies[f"edges {coarse}"])

    best, cells = limit(6, 4), []
    for surface, inverse in ROWS:
        key = f"{surface} {inverse}"
        cells.append(f"{abs(energies[key] - best):.2f} ({stated[key]:.1f})")
    print(f"| {name} | {n_atoms:,} | {best:.2f} ± {abs(best - limit(4, 2)):.2f} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("structures", nargs="*")
    parser.add_argument("--device")
    options = parser.parse_args()
    columns = (
        "structure",
        "atoms",
        "limit, kcal/mol",
        *(f"`{surface}`, {1 / inverse:g} Å" for surface, inverse in ROWS),
    )
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for name in options.structures or TWELVE:
        path = TWELVE.get(name, name)
        atoms = load(path) if path in SYSTEMS else pele_ocl.read(EXAMPLES / path if name in TWELVE else path)
        print_row(name, len(atoms), *energies_of(atoms, options.device))


if __name__ == "__main__":
    main()
