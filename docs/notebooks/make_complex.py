"""Write the complex of binding.ipynb, two peptides side by side in 50 frames.

    python docs/notebooks/make_complex.py FOLDER

The topology is of our own making, by the helpers of the tests. docs/figures/binding-residues.png is what the cells of
the notebook draw of these files.
"""

from __future__ import annotations

import sys
from pathlib import Path

N_FRAMES = 50


def main() -> None:
    """Write complex.parm7, complex.rst7 and frames.nc into a folder."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
    from binding_helpers import write_complex

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    print("\n".join(map(str, write_complex(folder, N_FRAMES))))


if __name__ == "__main__":
    main()
