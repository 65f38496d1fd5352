"""Runs of MMPBSA.py and gmx_MMPBSA by their own input files, with results in their layouts."""
