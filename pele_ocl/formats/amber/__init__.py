"""AMBER files: topologies (prmtop, parm7) and coordinates (inpcrd, rst7, NetCDF)."""

from __future__ import annotations

from ..registry import StructureFormat
from .coordinates import is_netcdf, place, restart_positions
from .sites import read_sites
from .topology import CHARGE_UNIT, read_prmtop, refuse_models, refuse_reading_alone

__all__ = ["CHARGE_UNIT", "FORMAT", "is_netcdf", "place", "read_prmtop", "read_sites", "restart_positions"]

FORMAT = StructureFormat(
    refuse_reading_alone, refuse_models, brings_parameters=True, kind="an AMBER topology", topology=read_prmtop
)
