"""Thumbnails of the gallery's index: python docs/gallery/thumbnails.py [PAGE ...]

Runs the cells of each page and draws its last figure, small.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

HERE = Path(__file__).parent
THUMBNAILS = HERE / "thumbnails"
CELL = re.compile(r"^```\{code-cell\}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DPI = 45


def main(names: list[str]) -> None:
    """Draw the thumbnails of the named pages, or of all; their cells run in an empty folder."""
    THUMBNAILS.mkdir(exist_ok=True)
    for name in names or sorted(page.stem for page in HERE.glob("*.md") if page.stem != "README"):
        cells = CELL.findall((HERE / f"{name}.md").read_text())
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            found: dict[str, object] = {}
            for cell in cells:
                exec(compile(cell, name, "exec"), found)
            os.chdir(HERE)
        pyplot.gcf().savefig(THUMBNAILS / f"{name}.png", dpi=DPI, bbox_inches="tight")
        pyplot.close("all")


if __name__ == "__main__":
    main(sys.argv[1:])
