"""pele-ocl: implicit-solvent Born radii and energy of real molecules on any OpenCL device.

    import pele_ocl

    atoms = pele_ocl.read("protein.pdb")
    result = pele_ocl.solvent(atoms)
    print(result.born_radii, result.total)

Units: angstrom, elementary charge, kcal/mol (pele_ocl.units).

Names are imported on first use, so that importing the package is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .common.installation import installed_version as _installed_version
from .common.modules import convert_objects_by as _convert_objects_by
from .common.modules import find_public_names_by as _find_public_names_by
from .common.modules import settle_calls_by as _settle_calls_by
from .common.modules import sign_functions_by as _sign_functions_by

if TYPE_CHECKING:  # made from the tables below by `make docs`
    from .atoms import Atoms as Atoms
    from .atoms import Labels as Labels
    from .atoms import Structure as Structure
    from .atoms.atoms import selection as selection
    from .binding import Binding as Binding
    from .binding import BindingEnergies as BindingEnergies
    from .binding import BindingResult as BindingResult
    from .binding import BindingSpec as BindingSpec
    from .binding import PBSolvent as PBSolvent
    from .binding import binding as binding
    from .binding.mmpbsa import MmpbsaResult as MmpbsaResult
    from .binding.mmpbsa import mmpbsa as mmpbsa
    from .checking import CheckResult as CheckResult
    from .checking import check_kernel as check_kernel
    from .common.errors import DeviceError as DeviceError
    from .common.errors import FormatError as FormatError
    from .common.errors import InputError as InputError
    from .common.errors import KernelBuildError as KernelBuildError
    from .common.errors import ParameterError as ParameterError
    from .common.errors import PeleError as PeleError
    from .dynamics import Simulation as Simulation
    from .dynamics.bias_samples import BiasSamples as BiasSamples
    from .dynamics.bias_words import ColvarFiles as ColvarFiles
    from .dynamics.dataset import DatasetFile as DatasetFile
    from .dynamics.mbar import MBAR as MBAR
    from .dynamics.mbar import FreeEnergyResult as FreeEnergyResult
    from .dynamics.mbar import free_energy as free_energy
    from .dynamics.result import SimulateResult as SimulateResult
    from .dynamics.run import simulate as simulate
    from .dynamics.spec import SimulateSpec as SimulateSpec
    from .dynamics.tempering import SimulatedTempering as SimulatedTempering
    from .dynamics.tempering import StateSamples as StateSamples
    from .dynamics.tempering import rest2 as rest2
    from .dynamics.umbrella import UmbrellaResult as UmbrellaResult
    from .dynamics.umbrella import umbrella as umbrella
    from .energy import Energy as Energy
    from .energy import EnergyBatch as EnergyBatch
    from .energy import EnergyResult as EnergyResult
    from .energy import energy as energy
    from .energy.over import energy_over as energy_over
    from .energy.spec import EnergySpec as EnergySpec
    from .energy.terms.grid_bias import GridBias as GridBias
    from .energy.terms.grid_bias import Metadynamics as Metadynamics
    from .energy.terms.internal import DistanceRestraint as DistanceRestraint
    from .energy.terms.internal import TorsionRestraint as TorsionRestraint
    from .energy.terms.opes import OPES as OPES
    from .energy.terms.restraint import CenterRestraint as CenterRestraint
    from .energy.terms.restraint import PositionalRestraint as PositionalRestraint
    from .energy.terms.variables import DistanceVariable as DistanceVariable
    from .energy.terms.variables import GyrationVariable as GyrationVariable
    from .energy.terms.variables import RMSDVariable as RMSDVariable
    from .energy.terms.variables import TorsionVariable as TorsionVariable
    from .ensemble import Ensemble as Ensemble
    from .explore import Explorer as Explorer
    from .explore import ExploreResult as ExploreResult
    from .explore import RefineBatch as RefineBatch
    from .explore import Refined as Refined
    from .explore import Refiner as Refiner
    from .explore import explore as explore
    from .explore import refine as refine
    from .explore.refine_spec import RefineSpec as RefineSpec
    from .forcefield import ForceField as ForceField
    from .formats import draw_slices as draw_slices
    from .formats import read_map as read_map
    from .formats import write_conformations as write_conformations
    from .formats import write_map as write_map
    from .gb_models.solvent_model import SolventModel as SolventModel
    from .grid import Grid as Grid
    from .grid import Map as Map
    from .interop import from_mdanalysis as from_mdanalysis
    from .interop import from_openmm as from_openmm
    from .interop import from_parmed as from_parmed
    from .interop import from_rdkit as from_rdkit
    from .interop.preparation import Preparation as Preparation
    from .interop.preparing import prepare as prepare
    from .ions import IonsResult as IonsResult
    from .ions import ions as ions
    from .ions import place_ions as place_ions
    from .ligand import Ligand as Ligand
    from .ligand import read_ligands as read_ligands
    from .mapmath import MapResult as MapResult
    from .mapmath import Samples as Samples
    from .mapmath import combine_maps as combine_maps
    from .mapmath import convert as convert
    from .mapmath import mapmath as mapmath
    from .mapmath import sample_map as sample_map
    from .minimize import MinimizeBatch as MinimizeBatch
    from .minimize import Minimizer as Minimizer
    from .minimize import MinimizeResult as MinimizeResult
    from .minimize import minimize as minimize
    from .minimize import minimize_many as minimize_many
    from .minimize.spec import MinimizeSpec as MinimizeSpec
    from .nonbond import Nonbond as Nonbond
    from .nonbond import NonbondBatch as NonbondBatch
    from .nonbond import NonbondResult as NonbondResult
    from .nonbond import nonbond as nonbond
    from .nonbond.spec import NonbondSpec as NonbondSpec
    from .opencl.device import list_devices as list_devices
    from .painting import draw_surface as draw_surface
    from .painting import write_page as write_page
    from .pairs import AllPairs as AllPairs
    from .pairs import PairList as PairList
    from .pairs import all_pairs as all_pairs
    from .pairs import internal_dielectrics as internal_dielectrics
    from .pairs import pairs_split as pairs_split
    from .pairs import pairs_within as pairs_within
    from .pairs import read_pairs as read_pairs
    from .pairs import without_bonded as without_bonded
    from .pairs import write_pairs as write_pairs
    from .parametrize import ParametrizeResult as ParametrizeResult
    from .parametrize import parametrize as parametrize
    from .pb import PBIon as PBIon
    from .pb import PBLevelResult as PBLevelResult
    from .pb import PBModel as PBModel
    from .pb import PBResult as PBResult
    from .pb import PoissonBoltzmann as PoissonBoltzmann
    from .pb import pb as pb
    from .potmap import Potmap as Potmap
    from .potmap import PotmapResult as PotmapResult
    from .potmap import potentials_over as potentials_over
    from .potmap import potmap as potmap
    from .potmap import potmap_over as potmap_over
    from .reading import read as read
    from .relax import RelaxBatch as RelaxBatch
    from .relax import Relaxer as Relaxer
    from .relax import RelaxResult as RelaxResult
    from .relax import relax as relax
    from .relax.spec import RelaxSpec as RelaxSpec
    from .rescore import RescoreResult as RescoreResult
    from .rescore import rescore as rescore
    from .sampling import sample as sample
    from .screen import Scored as Scored
    from .screen import Screener as Screener
    from .screen import ScreenResult as ScreenResult
    from .screen import screen as screen
    from .screen.spec import ScreenSpec as ScreenSpec
    from .solvent import Solvent as Solvent
    from .solvent import SolventBatch as SolventBatch
    from .solvent import SolventResult as SolventResult
    from .solvent import solvent as solvent
    from .solvent.spec import SolventSpec as SolventSpec
    from .trajectories import batches_over as batches_over
    from .trajectories import read_conformations as read_conformations
    from .trajectories import trajectory as trajectory
    from .view import View as View
    from .view import view as view

    __version__: str

# Public names by module. Add new names also to docs/api; `make docs` adds their imports above.
_HOMES = {
    "atoms": ("Atoms", "Labels", "Structure"),
    "atoms.atoms": ("selection",),
    "binding": ("Binding", "BindingEnergies", "BindingResult", "BindingSpec", "PBSolvent"),
    "binding.mmpbsa": ("MmpbsaResult", "mmpbsa"),
    "rescore": ("RescoreResult",),
    "checking": ("CheckResult", "check_kernel"),
    "dynamics": ("Simulation",),
    "dynamics.bias_samples": ("BiasSamples",),
    "dynamics.bias_words": ("ColvarFiles",),
    "dynamics.dataset": ("DatasetFile",),
    "dynamics.mbar": ("FreeEnergyResult", "MBAR", "free_energy"),
    "dynamics.tempering": ("SimulatedTempering", "StateSamples", "rest2"),
    "dynamics.umbrella": ("UmbrellaResult", "umbrella"),
    "dynamics.result": ("SimulateResult",),
    "dynamics.run": ("simulate",),
    "energy": ("Energy", "EnergyBatch", "EnergyResult"),
    "energy.over": ("energy_over",),
    "energy.terms.grid_bias": ("GridBias", "Metadynamics"),
    "energy.terms.opes": ("OPES",),
    "energy.terms.internal": ("DistanceRestraint", "TorsionRestraint"),
    "energy.terms.restraint": ("CenterRestraint", "PositionalRestraint"),
    "energy.terms.variables": ("DistanceVariable", "GyrationVariable", "RMSDVariable", "TorsionVariable"),
    "energy.spec": ("EnergySpec",),
    "nonbond.spec": ("NonbondSpec",),
    "solvent.spec": ("SolventSpec",),
    "minimize.spec": ("MinimizeSpec",),
    "relax.spec": ("RelaxSpec",),
    "dynamics.spec": ("SimulateSpec",),
    "explore.refine_spec": ("RefineSpec",),
    "ensemble": ("Ensemble",),
    "common.errors": ("DeviceError", "FormatError", "InputError", "KernelBuildError", "ParameterError", "PeleError"),
    "explore": ("ExploreResult", "Explorer", "RefineBatch", "Refined", "Refiner", "refine"),
    "forcefield": ("ForceField",),
    "formats": ("draw_slices", "read_map", "write_conformations", "write_map"),
    "gb_models.solvent_model": ("SolventModel",),
    "grid": ("Grid", "Map"),
    "interop": ("from_mdanalysis", "from_openmm", "from_parmed", "from_rdkit"),
    "interop.preparation": ("Preparation",),
    "interop.preparing": ("prepare",),
    "ions": ("IonsResult", "place_ions"),
    "ligand": ("Ligand", "read_ligands"),
    "mapmath": ("MapResult", "Samples", "combine_maps", "convert", "sample_map"),
    "minimize": ("MinimizeBatch", "MinimizeResult", "Minimizer", "minimize_many"),
    "nonbond": ("Nonbond", "NonbondBatch", "NonbondResult"),
    "opencl.device": ("list_devices",),
    "pairs": (
        "AllPairs", "PairList", "all_pairs", "internal_dielectrics", "pairs_split", "pairs_within", "read_pairs",
        "without_bonded", "write_pairs",
    ),
    "parametrize": ("ParametrizeResult",),
    "pb": ("PBIon", "PBLevelResult", "PBModel", "PBResult", "PoissonBoltzmann"),
    "potmap": ("Potmap", "PotmapResult", "potentials_over", "potmap_over"),
    "reading": ("read",),
    "relax": ("RelaxBatch", "RelaxResult", "Relaxer"),
    "sampling": ("sample",),
    "screen": ("Scored", "Screener", "ScreenResult"),
    "screen.spec": ("ScreenSpec",),
    "solvent": ("Solvent", "SolventBatch", "SolventResult"),
    "painting": ("draw_surface", "write_page"),
    "trajectories": ("batches_over", "read_conformations", "trajectory"),
    "view": ("View",),
}  # fmt: skip
_MODULES = {name: module for module, names in _HOMES.items() for name in names}
_CALLED = (
    "binding",
    "energy",
    "explore",
    "ions",
    "mapmath",
    "minimize",
    "nonbond",
    "parametrize",
    "pb",
    "potmap",
    "relax",
    "rescore",
    "screen",
    "solvent",
    "view",
)  # packages that can be called as functions

__all__ = sorted([*_MODULES, *_CALLED])


def __getattr__(name: str) -> Any:
    """Import a public name or a submodule on first use."""
    if name == "__version__":
        value: Any = _installed_version()
    elif name in _MODULES:
        value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    else:
        value = _submodule(name)
    globals()[name] = value
    return value


def _submodule(name: str) -> Any:
    full = f"{__name__}.{name}"
    try:
        return import_module(full)
    except ModuleNotFoundError as error:
        if error.name != full:
            raise
        from .common.errors import no_attribute

        raise no_attribute(f"module {__name__!r}", name, __all__) from None


def __dir__() -> list[str]:
    """Return the public names, including those not yet imported."""
    return sorted([*__all__, "__version__", "units"])


def _signature(function: Any, groups: tuple[str, ...]) -> Any:
    from .jobs.words import signature_of

    return signature_of(function, groups)


def _settled(function: Any, what: Any, keywords: Any, behind: Any) -> Any:
    from .doors import by_given_files

    return by_given_files(function, what, keywords, behind)


def _converted(function: Any, what: Any, by_place: Any, keywords: Any) -> Any:
    from .objects import converted

    return converted(function, what, by_place, keywords)


_find_public_names_by(__getattr__)
_convert_objects_by(_converted)
_settle_calls_by(_settled)
_sign_functions_by(_signature)
