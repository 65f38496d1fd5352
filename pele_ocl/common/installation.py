"""Version of pele-ocl, and locations of the folders with kernels (`cl`) and data (`data`).

The folders are inside the package in an installed wheel, and next to it in a checkout.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=2)
def shipped(folder: str) -> Path:
    """Return the path of the folder `cl` or `data` of this installation."""
    package = Path(__file__).resolve().parents[1]
    for root in (package, package.parent):
        if (root / folder).is_dir():
            return root / folder
    raise FileNotFoundError(f"pele-ocl is installed without its folder {folder}/; install it again")


def copy_installed(checkout: Path) -> str:
    """Return a warning if a copy of the package is installed, so that this checkout is not used; otherwise ""."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        copy = Path(str(distribution("pele-ocl").locate_file("pele_ocl")))
    except PackageNotFoundError:
        return ""
    # An editable install also has a folder of this name, with only kernels and data.
    if not (copy / "__init__.py").is_file() or copy.resolve() == (checkout / "pele_ocl").resolve():
        return ""
    return (
        f"{copy} is a copy of this checkout, so changes to the checkout have no effect: pip install "
        f"--editable '{checkout}'"
    )


@lru_cache(maxsize=1)
def installed_version() -> str:
    """Return the installed version, or "unknown" for a checkout that is not installed."""
    from importlib.metadata import PackageNotFoundError, version  # lazy import

    try:
        return version("pele-ocl")
    except PackageNotFoundError:
        return "unknown"
