"""Interfaces to OpenMM, GROMACS, CHARMM, MDAnalysis, ParmEd, PDBFixer and RDKit, all optional."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names
from ..forcefield.openmm.system import from_openmm

if TYPE_CHECKING:  # the names below, for type checkers and editors
    from .mdanalysis import from_mdanalysis
    from .parmed import from_parmed
    from .rdkit import from_rdkit

__all__ = ["from_mdanalysis", "from_openmm", "from_parmed", "from_rdkit"]

if not TYPE_CHECKING:  # names of each module
    __getattr__ = lazy_names(
        __name__,
        {
            "mdanalysis": "from_mdanalysis",
            "parmed": "from_parmed",
            "rdkit": "from_rdkit",
        },
    )
