"""The shipped structures, smallest first, with their force field."""

from __future__ import annotations

from ..atoms import Atoms
from ..errors import InputError
from ..paths import shipped
from ..reading import read

# Twins of the thesis' systems: 96, 1,231, 4,358, 14,132 and 31,314 atoms.
SYSTEMS = {
    "hexapeptide": "hexapeptide.pdb",
    "ubiquitin": "ubiquitin.pdb",
    "src3": "src3.pdb.gz",
    "enolase_dimer": "enolase_dimer.pdb.gz",
    "ruvab": "ruvab.pdb.gz",
}


def load(name: str) -> Atoms:
    """The shipped structure `name` with Amber99SB parameters. Raises InputError for an unknown name."""
    if name not in SYSTEMS:
        raise InputError(f"there is no shipped structure {name!r}; choose {', '.join(SYSTEMS)}")
    return read(shipped("data") / "structures" / SYSTEMS[name])
