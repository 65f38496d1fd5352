"""Make data/rotamers/dunbrack2010.npz of the backbone-dependent rotamer library of 2010, which is CC BY 4.0.

    python data/rotamers/make.py ALL.bbdep.rotamers.lib

The table is the one that the Dunbrack laboratory publishes. The sdist of chilife 1.2.5 on PyPI has it, with its
licence:

    pip download --no-deps --no-build-isolation --no-binary :all: chilife==1.2.5

Of each residue and 10-degree bin of phi and psi it keeps rotamers with a probability above LEAST. Rows are sorted by
residue, rotamer and bin, so that neighbours are alike and the file is small.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

LEAST = 0.005  # probability
RESIDUES = {  # of ours, by the names of the table: CYH is cysteine without a disulphide
    "ARG": "ARG", "ASN": "ASN", "ASP": "ASP", "CYH": "CYS", "GLN": "GLN", "GLU": "GLU", "HIS": "HIS", "ILE": "ILE",
    "LEU": "LEU", "LYS": "LYS", "MET": "MET", "PHE": "PHE", "SER": "SER", "THR": "THR", "TRP": "TRP", "TYR": "TYR",
    "VAL": "VAL",
}  # fmt: skip


def rows_of(table: Path) -> dict[str, list[tuple[float, ...]]]:
    """Read rotamers of each residue: (r1, r2, r3, r4), bins of phi and psi, probability, four chi, two sigmas."""
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in sorted(RESIDUES.values())}
    with table.open(encoding="ascii") as lines:
        for line in lines:
            words = line.split()
            if not words or words[0] not in RESIDUES or float(words[8]) <= LEAST:
                continue
            phi, psi = int(words[1]), int(words[2])
            if phi == 180 or psi == 180:  # the same as -180
                continue
            bins = (phi + 180) // 10, (psi + 180) // 10
            chi, sigma = (float(word) for word in words[9:13]), (float(word) for word in words[13:15])
            row = (*(int(word) for word in words[4:8]), *bins, float(words[8]), *chi, *sigma)
            found[RESIDUES[words[0]]].append(row)
    return found


def main() -> None:
    """Write the table beside this script."""
    found = rows_of(Path(sys.argv[1]))
    arrays = {name: np.array(sorted(rows)) for name, rows in found.items()}
    together = np.concatenate(list(arrays.values()))
    np.savez_compressed(
        Path(__file__).with_name("dunbrack2010.npz"),
        residues=np.array(list(arrays)),
        counts=np.array([len(rows) for rows in arrays.values()], np.int32),
        n_chi=np.array([(rows[0, :4] > 0).sum() for rows in arrays.values()], np.int8),
        bins=(36 * together[:, 4] + together[:, 5]).astype(np.int16),  # 36 of phi by 36 of psi, centres from -180 on
        probabilities=np.rint(together[:, 6] * 1000).astype(np.uint16),  # thousandths
        chi=np.rint(together[:, 7:11].T).astype(np.int16),  # degrees
        sigmas=np.minimum(np.rint(together[:, 11:13].T), 255).astype(np.uint8),  # degrees, of chi1 and chi2
    )


if __name__ == "__main__":
    main()
