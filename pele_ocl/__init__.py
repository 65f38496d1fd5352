"""pele-ocl: implicit-solvent Born radii and energy of real molecules on any OpenCL device.

    import pele_ocl

    atoms = pele_ocl.read("protein.pdb")
    result = pele_ocl.solvent(atoms)
    print(result.born_radii, result.total)

Units: angstrom, elementary charge, kcal/mol (pele_ocl.units).
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .atoms import Atoms, Labels, Structure
from .energy import Energy, EnergyBatch, EnergyResult, energy
from .errors import DeviceError, FormatError, InputError, KernelBuildError, ParameterError, PeleError
from .forcefield import ForceField
from .formats import read_conformations, read_map, write_map
from .grid import Grid, Map
from .ions import IonsResult, place_ions
from .nonbond import Nonbond, NonbondResult, nonbond
from .pairs import (
    AllPairs,
    PairList,
    all_pairs,
    internal_dielectrics,
    pairs_split,
    pairs_within,
    read_pairs,
    without_bonded,
    write_pairs,
)
from .pictures import draw_slices
from .potmap import PotmapResult, potmap
from .reading import read
from .sampling import sample
from .solvent import Solvent, SolventResult, solvent
from .solvent_model import SolventModel

__all__ = [
    "AllPairs", "Atoms", "DeviceError", "Energy", "EnergyBatch", "EnergyResult", "ForceField", "FormatError", "Grid",
    "InputError", "IonsResult", "KernelBuildError", "Labels", "Map", "Nonbond", "NonbondResult", "PairList",
    "ParameterError", "PeleError", "PotmapResult", "Solvent", "SolventModel", "SolventResult", "Structure", "all_pairs",
    "draw_slices", "energy", "internal_dielectrics", "list_devices", "nonbond", "pairs_split", "pairs_within",
    "place_ions", "potmap", "read", "read_conformations", "read_map", "read_pairs", "sample", "solvent",
    "without_bonded", "write_map", "write_pairs",
]  # fmt: skip

try:
    __version__ = version("pele-ocl")
except PackageNotFoundError:  # a checkout that is not installed
    __version__ = "unknown"


def __getattr__(name: str) -> Any:
    """Load OpenCL only when a device is asked for, so that reading files works without it."""
    if name == "list_devices":
        from .opencl.device import list_devices

        return list_devices
    raise AttributeError(f"module 'pele_ocl' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, whether loaded already or not."""
    return sorted([*__all__, "__version__", "units"])
