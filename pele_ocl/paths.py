"""Where kernels (`cl`) and shipped data (`data`) lie: inside an installed wheel, beside the package in a checkout."""

from __future__ import annotations

from pathlib import Path


def shipped(folder: str) -> Path:
    """The folder `cl` or `data` of this installation."""
    package = Path(__file__).resolve().parent
    for root in (package, package.parent):
        if (root / folder).is_dir():
            return root / folder
    raise FileNotFoundError(f"pele-ocl is installed without its folder {folder}/; install it again")
