"""Key of the code that notebooks run, by which their outputs are kept."""

from __future__ import annotations

import hashlib
from pathlib import Path

CODE = ("pele_ocl", "cl", "data", "docs/course")  # folders
SUFFIXES = (".py", ".cl", ".clh", ".csv", ".txt", ".pdb", ".gz", ".npz")


def code_key(root: Path) -> str:
    """Make a key of all files of code and data of a checkout: outputs of other code are not taken."""
    digest = hashlib.sha256()
    for folder in CODE:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and "__pycache__" not in path.parts:
                digest.update(str(path.relative_to(root)).encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]
