"""Write the complex of binding.ipynb, two peptides side by side in 50 frames.

    python docs/notebooks/make_complex.py FOLDER [STEM]

The topology is of our own making, by the helpers of the tests. With STEM, what the first cell of the notebook draws of
these files is written to STEM-light.png and STEM-dark.png: docs/figures/binding-residues.
"""

from __future__ import annotations

import json
import os
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
    if len(sys.argv) > 2:
        draw(folder, Path(sys.argv[2]).resolve())


def draw(folder: Path, stem: Path) -> None:
    """Run the notebook's first cell in a folder, for light and for dark pages."""
    import matplotlib

    cells = json.loads(Path(__file__).with_name("binding.ipynb").read_text())["cells"]
    first = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    ink = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#e6e6e6")
    dark = ink | {"figure.facecolor": "#131416", "axes.facecolor": "#131416"}
    os.chdir(folder)
    for theme, style in (("light", {}), ("dark", dark)):
        with matplotlib.rc_context(style):
            exec(compile(first, "binding.ipynb", "exec"), {})
            os.replace("residues.png", f"{stem}-{theme}.png")


if __name__ == "__main__":
    main()
