"""Linker of the system, with which PoCL 3.0 ends the compilation of each kernel.

The wheel of PoCL has a compiler but neither `ld` nor GCC's library, and aborts the process if they are missing.
"""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path

# Where clang 14 looks for the files of GCC.
LIBRARIES = tuple(f"{top}/{folder}/*/*/libgcc.a" for top in ("usr", "usr/local") for folder in ("lib/gcc", "lib64/gcc"))
LIBRARIES += ("usr/lib/gcc-cross/*/*/libgcc.a", "usr/lib/*/gcc/*/*/libgcc.a", "opt/rh/*/root/usr/lib/gcc/*/*/libgcc.a")


@cache
def missing_parts() -> list[str]:
    """List what PoCL 3.0 needs for linking and this system lacks."""
    return missing_below(Path("/"), os.environ.get("PATH", ""))


def missing_below(root: Path, path: str) -> list[str]:
    """List what is missing. root : of the file system; path : folders of programs, as in PATH"""
    found = {"ld": shutil.which("ld", path=path), "libgcc": any(any(root.glob(pattern)) for pattern in LIBRARIES)}
    return [name for name, place in found.items() if not place]
