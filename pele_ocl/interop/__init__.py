"""Molecules of OpenMM, GROMACS, CHARMM, MDAnalysis, ParmEd, PDBFixer and RDKit, each where it is installed."""

from __future__ import annotations

from ..forcefield.openmm.system import from_openmm
from .mdanalysis import from_mdanalysis
from .parmed import from_parmed
from .rdkit import from_rdkit

__all__ = ["from_mdanalysis", "from_openmm", "from_parmed", "from_rdkit"]
