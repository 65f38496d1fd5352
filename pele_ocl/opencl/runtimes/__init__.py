"""OpenCL runtimes and their peculiarities: where they are, what they write, compile for and need of the system."""

from __future__ import annotations

from .platforms import find_platforms
from .processor import name_processors

__all__ = ["find_platforms", "name_processors"]
