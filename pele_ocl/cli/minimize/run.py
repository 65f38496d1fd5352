"""The way of a run through its structures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .of_conformations import outcomes_of_conformations
from .of_files import outcomes_of_files
from .work import Outcome, Work


def outcomes_of(work: Work, paths: Sequence[Path]) -> tuple[list[Outcome], str]:
    """The outcomes of all structures, in their order, and the device that computed them."""
    return outcomes_of_conformations(work, paths[0]) if work.are_many else outcomes_of_files(work, paths)
