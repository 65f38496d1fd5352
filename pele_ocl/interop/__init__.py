"""Molecules of other programs: OpenMM, GROMACS, CHARMM, MDAnalysis, ParmEd and PDBFixer, each where it is installed."""
