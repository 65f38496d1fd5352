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
from .formats import read_conformations
from .nonbond import Nonbond, NonbondResult, nonbond
from .pairs import (
    AllPairs,
    PairList,
    all_pairs,
    internal_dielectrics,
    pairs_split,
    pairs_within,
    read_pairs,
    write_pairs,
)
from .reading import read
from .solvent import SolventResult, solvent
from .solvent_model import SolventModel

__all__ = [
    "AllPairs", "Atoms", "DeviceError", "Energy", "EnergyBatch", "EnergyResult", "ForceField", "FormatError",
    "InputError", "KernelBuildError", "Labels", "Nonbond", "NonbondResult", "PairList", "ParameterError", "PeleError",
    "SolventModel", "SolventResult", "Structure", "all_pairs", "energy", "internal_dielectrics", "list_devices",
    "nonbond", "pairs_split", "pairs_within", "read", "read_conformations", "read_pairs", "solvent", "write_pairs",
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
