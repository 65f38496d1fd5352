"""Comparison of potentials at surface vertices, as used by `view` for colours, with those from `apbs`.

python tests/benchmarks/pb_picture.py [STRUCTURE ...]     by default ubiquitin, and APBS's lysozyme and B-DNA

`apbs` gets the same charges and radii in an input as pdb2pqr's --apbs-input writes it: mg-auto, a fine grid 20 A longer
than the molecule, a coarse one of 1.7 times its lengths, smol, spl2, sdh, and `view`'s salt. Each row contains the
correlation of both, and the slope of pele-ocl as a function of `apbs`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import pele_ocl
from pele_ocl import PBIon, PBModel
from pele_ocl.bench.systems import SYSTEMS, load
from pele_ocl.formats import read_map, write_pqr
from pele_ocl.painting.colouring import by_map
from pele_ocl.painting.surface import molecular_surface
from pele_ocl.pb_model import LIKE_APBS

EXAMPLES = "bem-pKa/test_proteins/2LZT-ASP66.pqr", "bem-binding-energy/test_proteins/1d30_monomer1.pqr"
MODEL = PBModel(ions=(PBIon(1, 0.15), PBIon(-1, 0.15)), **LIKE_APBS)  # of view
INPUT = """read mol pqr m.pqr end
elec mg-auto dime {points} cglen {coarse} fglen {fine} cgcent mol 1 fgcent mol 1 mol 1 lpbe bcfl sdh
 pdie 2 sdie 78.54 srfm smol chgm spl2 sdens 10 srad 1.4 swin 0.3 temp 298.15 calcenergy no calcforce no
 ion charge 1 conc 0.15 radius 2.0 ion charge -1 conc 0.15 radius 2.0 write pot dx pot end
quit
"""


def points_for(lengths: np.ndarray) -> list[int]:
    """Return numbers of points that APBS can halve four times, for spacings of at most about 0.5 A."""
    return [int(np.ceil(length / 0.5 / 32)) * 32 + 1 for length in lengths]


def main() -> None:
    """Print one row per structure."""
    apbs = shutil.which("apbs")
    if apbs is None:
        sys.exit("apbs is not installed")
    examples = Path(apbs).parent.parent / "share" / "apbs" / "examples"
    names = sys.argv[1:] or ["ubiquitin", *(str(examples / name) for name in EXAMPLES)]
    print("| molecule | atoms | points of apbs | vertices | correlation | slope |\n|---|---|---|---|---|---|")
    for name in names:
        atoms = load(name) if name in SYSTEMS else pele_ocl.read(name)
        surface = molecular_surface(atoms)
        extent = np.ptp(atoms.positions, axis=0) + 2 * 2.0
        points = points_for(extent + 20)
        words = {"points": points, "coarse": np.maximum(1.7 * extent, extent + 20), "fine": extent + 20}
        with TemporaryDirectory() as temporary:
            folder = Path(temporary)
            write_pqr(folder / "m.pqr", atoms)
            text = INPUT.format(**{key: " ".join(f"{value:g}" for value in of) for key, of in words.items()})
            (folder / "m.in").write_text(text)
            subprocess.run(["apbs", "m.in"], cwd=folder, check=True, capture_output=True)
            theirs = by_map(surface, read_map(next(folder.glob("pot*.dx")))).values
        grid = pele_ocl.Grid.around(atoms, padding=5, spacing=0.5)
        ours = by_map(surface, pele_ocl.potmap(atoms, grid, method="pb", unit="kT/e", pb=MODEL).map).values
        slope, correlation = np.polyfit(theirs, ours, 1)[0], np.corrcoef(theirs, ours)[0, 1]
        shown = " x ".join(map(str, points))
        row = Path(name).stem, f"{len(atoms):,}", shown, f"{len(ours):,}", f"{correlation:.5f}", f"{slope:.4f}"
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
