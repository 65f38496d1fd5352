"""OpenCL runtimes and what is peculiar to them: where they are found, what they write, what they compile for."""

from __future__ import annotations

from .platforms import find_platforms
from .processor import name_processors

__all__ = ["find_platforms", "name_processors"]
