"""Copies of parts of the checkout, which tests change and then run in processes of their own."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def copy_folder(name: str, checkout: Path, *left_out: str) -> None:
    """Copy a folder of the checkout with its bytecode, so that processes of the copy do not compile it again.

    They compile what the test changes: bytecode has the time and size of its source.
    """
    ignore = shutil.ignore_patterns(*left_out, "*.pyc.*")  # files that another process is writing
    shutil.copytree(ROOT / name, checkout / name, ignore=ignore)
    if sys.pycache_prefix:
        kept, copied = (Path(sys.pycache_prefix, *(of / name).parts[1:]) for of in (ROOT, checkout))
        if kept.exists():
            shutil.copytree(kept, copied, ignore=ignore)
