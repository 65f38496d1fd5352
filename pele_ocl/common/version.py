"""Version of pele-ocl."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1)
def installed_version() -> str:
    """Return the version that is installed, "unknown" for a checkout that is not."""
    from importlib.metadata import PackageNotFoundError, version  # not loaded unless it is asked for

    try:
        return version("pele-ocl")
    except PackageNotFoundError:
        return "unknown"
