"""Write the reference arrays of this folder from the original ones.

    python tests/data/make_references.py FOLDER

FOLDER holds NAME.npz, NAME_ref.npz and NAME.json of each system; README.md says how those came about.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
SYSTEMS = ("hexapeptide", "ubiquitin", "src3", "enolase_dimer", "ruvab", "cct12")
ARRAYS = (
    "coordinates charge sigma epsilon obc_radius obc_scale element atom_name residue_name ff_residue residue_id "
    "insertion_code residue_index chain segment bonds exclusions_12_13 pairs_14"
).split()
REFERENCES = "born_radius psi force_nb_with14 force_nb_no14 force_gb_78.5_nosa force_gb_78.5_sa".split()
SMALL = ("hexapeptide", "ubiquitin", "src3")
OF_SMALL = ("force_gb_78.5_nosa",)


def main(folder: Path) -> None:
    for name in SYSTEMS:
        with np.load(folder / f"{name}.npz") as file:
            arrays = {key: file[key] for key in ARRAYS}
        with np.load(folder / f"{name}_ref.npz") as file:
            wanted = [key for key in REFERENCES if key in file and (name in SMALL or key not in OF_SMALL)]
            arrays |= {key: file[key] for key in wanted}
        np.savez_compressed(HERE / f"{name}.npz", **arrays)
        shutil.copyfile(folder / f"{name}.json", HERE / f"{name}.json")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
