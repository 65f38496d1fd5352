"""Every public function, constructor and method with values of every wrong kind: a PeleError, or it works.

The calls are made from the signatures: each parameter in turn gets each value of WRONG, the others what is right.
"""

from __future__ import annotations

import inspect
import random
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np
import pytest
from conftest import DEVICES

import pele_ocl
from pele_ocl import PeleError
from pele_ocl.formats import read_structure
from pele_ocl.units import debye_kappa, potential_factor

FILE = pele_ocl.common.installation.shipped("data") / "structures" / "hexapeptide.pdb"
STRUCTURE = read_structure(FILE)
ATOMS = pele_ocl.read(FILE)[:12]
PAIR = pele_ocl.read(FILE)[[*range(12), *range(60, 66)]]  # the last six are not bonded to the others
GRID = pele_ocl.Grid.around(ATOMS, 3, 2)
MAP = pele_ocl.Map(GRID, np.ones(GRID.shape[::-1], np.float32), "kcal/mol/e")
PAIRS = pele_ocl.pairs_within(ATOMS, 5)
DEVICE = DEVICES[0]

KERNEL = '#include "common/real.clh"\n#include "engine/rows.clh"\nkernel void nothing(ENSEMBLE) {}'

WRONG: dict[str, Any] = {
    "None": None,
    "text": "x",
    "empty text": "",
    "null": "a\0b",
    "bytes": b"x",
    "five": 5,
    "minus one": -1,
    "half": 0.5,
    "NaN": np.nan,
    "infinity": np.inf,
    "tiny": 1e-320,
    "large": 1e308,
    "huge integer": 10**30,
    "beyond float": 10**400,
    "True": True,
    "complex": 1j,
    "list": [],
    "tuple": (1, 2),
    "ragged": [[1], [1, 2]],
    "dict": {},
    "names": {"x": 1},
    "object": object(),
    "type": int,
    "zeros": np.zeros((2, 2, 2)),
    "texts": np.array(["a", "b"]),
    "complex array": np.ones(3, np.complex128),
    "NaNs": np.full((12, 3), np.nan),
    "large array": np.full((12, 3), 1e308),
}

DISTANCE = pele_ocl.DistanceVariable(0, 5)
METADYNAMICS = pele_ocl.Metadynamics(DISTANCE, 0.5, 0.1, 10, bounds=[(0.0, 9.0)])
SIMULATION = pele_ocl.Simulation(ATOMS, terms=[METADYNAMICS], device=DEVICE)

# What is right, by the parameter's name, or by the call's and the parameter's.
RIGHT: dict[str, Any] = {
    "atoms": ATOMS,
    "pairs": PAIRS,
    "grid": GRID,
    "map_": MAP,
    "device": DEVICE,
    "positions": ATOMS.positions,
    "conformations": ATOMS.positions[None],
    "molecules": [ATOMS],
    "max_iterations": 1,
    "steps": 1,
    "cutoff": 5.0,
    "n_atoms": len(ATOMS),
    "ions": {"NA": 1},
    "Atoms.with_radii.name": "bondi",
    "SolventModel.like.program": "amber",
    "structure": STRUCTURE,
    "values": MAP.values,
    "unit": "mV",
    "origin": (0, 0, 0),
    "spacing": 2.0,
    "shape": (2, 3, 4),
    "index": (0, 1, 2),
    "i": 0,
    "most": 5,
    "names": ("charges",),
    "purpose": "a test",
    "charges": ATOMS.charges,
    "what": ATOMS,
    "minimize.what": PAIR,
    "refine.what": PAIR,
    "refine.ligand": "index 12:17",
    "relax.what": FILE,
    "screen.receptor": PAIR[:12],
    "screen.ligands": [PAIR[12:]],
    "Screener.receptor": PAIR[:12],
    "Screener.screen.ligands": [PAIR[12:]],
    "screen.reference": None,
    "Screener.score.complexes": [(PAIR, 6)],
    "Screener.binding_of.atoms": PAIR,
    "Screener.binding_of.n_ligand": 6,
    "binding.complex": PAIR,
    "binding.ligand": "index 12:17",
    "view.output": (),
    "view.method": "screened",
    "ions.add": {"NA": 1},
    "ions.grid": GRID,
    "potmap.grid": None,
    "potmap.origin": None,
    "potmap.shape": None,
    "binding.spacing": None,
    "binding.padding": None,
    "pb.charges": None,
    "minimize.reference": None,
    "simulate.reference": None,
    "convert.path": "map.dx",
    "convert.unit": "kT/e",
    "Samples.save.path": "out.csv",
    "View.save.path": "out.png",
    "Atoms.save.path": "out.pdb",
    "Map.save.path": "out.dx",
    "nonbond.cutoff": None,
    "mmpbsa.index": None,
    "mmpbsa.structure": None,
    "mmpbsa.reference": None,
    "mmpbsa.input_file": "absent.in",
    "mmpbsa.complex_topology": "absent.top",
    "mmpbsa.trajectory": "absent.nc",
    "rescore.folder": "absent",
    "points": [[0.0, 0.0, 0.0]],
    "count": 1,
    "ionic_strength": 0.1,
    "dielectric": 80.0,
    "temperature": 298.15,
    "first": [0, 1],
    "second": [1, 2],
    "model": None,
    "indices": np.arange(3),
    "which": slice(3),
    "text": "protein",
    "mask": np.ones(len(STRUCTURE.labels), bool),
    "path": FILE,
    "force_constant": 10.0,
    "PositionalRestraint.atoms": [0, 1],
    "CenterRestraint.atoms": [0, 1],
    "CenterRestraint.target": [0.0, 0.0, 0.0],
    "CenterRestraint.weights": [1.0, 1.0],
    "DistanceRestraint.atoms": [[0, 1]],
    "TorsionRestraint.atoms": [[0, 1, 2, 3]],
    "TorsionVariable.atoms": [0, 1, 2, 3],
    "GyrationVariable.atoms": [0, 1, 2],
    "RMSDVariable.atoms": [0, 1, 2],
    "variables": DISTANCE,
    "widths": 0.5,
    "height": 0.1,
    "pace": 10,
    "Metadynamics.bounds": [(0.0, 9.0)],
    "OPES.bounds": [(0.0, 9.0)],
    "OPES.barrier": 5.0,
    "OPES.spacing": 0.2,
    "Metadynamics.heights.energies": np.zeros(2),
    "Metadynamics.heights.temperatures": np.full(2, 300.0),
    "GridBias.bounds": [(0.0, 9.0)],
    "GridBias.grid": np.zeros((5, 2)),
    "u_kn": np.zeros((2, 12)),
    "states": np.arange(12) % 2,
    "free_energy.values": np.linspace(0, 1, 12),
    "MBAR.free_energy.values": np.linspace(0, 1, 12),
    "MBAR.mean.values": np.linspace(0, 1, 12),
    "MBAR.error.values": np.linspace(0, 1, 12),
    "BiasSamples.simulation": SIMULATION,
    "bins": 1,
    "temperatures": [300.0, 400.0],
    "SimulatedTempering.rungs_of.simulation": SIMULATION,
    "StateSamples.simulation": SIMULATION,
    "ColvarFiles.folder": ".",
    "DatasetFile.path": "samples.h5",
    "simulate.bias": None,
    "Simulation.change_temperatures.temperatures": 300.0,
    "Simulation.variables.name": "metadynamics",
    "Simulation.bias_energies.name": "metadynamics",
    "Simulation.bias_term.name": "metadynamics",
    "Simulation.hills.name": "metadynamics",
    "Simulation.metadynamics_surface.name": "metadynamics",
    "Ensemble.values.term": "restraint",
    "Ensemble.values.name": "constants",
    "umbrella.centers": [3.0, 4.0],
    "umbrella.force_constants": 1.0,
    "umbrella.sample_every": 1,
    "umbrella.positions": None,
    "Metadynamics.spacing": 0.2,
    "umbrella.temperature": 300.0,
    "simulate.temperatures": None,
    "target": 1.0,
    "reference": ATOMS.positions,
    "padding": 3.0,
    "read_conformations.path": FILE,
    "read_conformations.atoms": pele_ocl.read(FILE),
    "trajectory.paths": FILE,
    "trajectory.select": slice(len(ATOMS)),
    "energy_over.trajectory": FILE,
    "energy_over.select": slice(len(ATOMS)),
    "potmap_over.trajectory": FILE,
    "potmap_over.select": slice(len(ATOMS)),
    "potentials_over.trajectory": FILE,
    "potentials_over.select": slice(len(ATOMS)),
    "combine_maps.maps": [MAP, MAP],
    "combine_maps.factors": (1, -1),
    "ligand": "index 6:11",
    "Binding.over.trajectory": FILE,
    "Binding.over.select": slice(len(ATOMS)),
    "batches_over.trajectory": pele_ocl.trajectory(FILE, select=slice(len(ATOMS))),
    "batches_over.plan": pele_ocl.Energy(ATOMS, device=DEVICE),
    "sources": 0,
    "targets": 1,
    "Ensemble.array.per": "row",
    "Explorer.atoms": PAIR,
    "Explorer.ligand": range(12, 18),
    "Explorer.positions": PAIR.positions[None],
    "Explorer.run.steps": 1,
    "Ensemble.references.name": "restraint",
    "Ensemble.force_constants.name": "restraint",
    "Ensemble.targets.name": "center_restraint",
    "Ensemble.kernel.source": KERNEL,
    "Ensemble.kernel.name": "nothing",
    "PBIon.charge": 1.0,
    "PBIon.concentration": 0.1,
    "PBModel.charges": "spl0",
    "PBModel.ions": (),
    "PoissonBoltzmann.solve_frames.conformations": [ATOMS.positions],
    "PoissonBoltzmann.solve_states.charges": [ATOMS.charges],
    "pb.padding": 10.0,
    "potmap.method": "cutoff",
    "pb.max_iterations": 1000,
    "Refiner.complexes.poses": ATOMS.positions[None],
    "Refiner.refine.poses": ATOMS.positions[None],
    "PBSolvent.with_constants.model": pele_ocl.SolventModel(),
    "simulate.what": ATOMS,
    "simulate.output": "simulated",
    "Simulation.write.output": "written",
    "explore.control": "absent.conf",  # no steps are made for wrong arguments
    "Simulation.restore.path": "checkpoint.npz",
    "Simulation.save.path": "out.npz",
    "read_map.path": "map.dx",
    "write_map.path": "out.dx",
    "write_conformations.path": "out.pdb",
    "read_pairs.path": "pairs.txt",
    "write_pairs.path": "out.txt",
    "draw_slices.path": "out.png",
    "draw_surface.path": "out.png",
    "write_page.path": "out.html",
    **{f"Labels.{field.name}": getattr(ATOMS.labels, field.name) for field in fields(pele_ocl.Labels)},
    **{f"Structure.{field.name}": getattr(STRUCTURE, field.name) for field in fields(pele_ocl.Structure)},
}


FORMER_KEYWORDS = ("fallback",)  # which warn
POSITIONAL = {"mapmath": (MAP, "-", MAP)}
ABSENT = ("explore", "mmpbsa", "rescore")  # which need a folder of files: they are right but for these


@dataclass(frozen=True)
class Call:
    """Public function, class, or method of an example; owner : class of the method"""

    name: str
    called: Callable[..., Any]
    owner: type | None = None

    @property
    def function(self) -> Callable[..., Any]:
        """Function to call; examples are made by then, as their kernels take long to compile."""
        return self.called if self.owner is None else getattr(example(self.owner), self.name.split(".")[1])

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        left_out = FORMER_KEYWORDS if self.owner is None else (*FORMER_KEYWORDS, "self")
        kinds = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
        found = inspect.signature(self.called).parameters
        return {
            name: p
            for name, p in found.items()
            if p.kind not in kinds and not name.startswith("_") and name not in left_out
        }

    def right(self) -> dict[str, Any]:
        """Return right values for the parameters, except defaults that RIGHT does not have."""
        given = {}
        for name, parameter in self.parameters.items():
            value = RIGHT.get(f"{self.name}.{name}", RIGHT.get(name, parameter.default))
            assert value is not inspect.Parameter.empty, f"RIGHT has nothing for {name} of {self.name}"
            if value is not parameter.default:
                given[name] = value
        return given

    def make(self, **changes: Any) -> None:
        made = self.function(*POSITIONAL.get(self.name, ()), **{**self.right(), **changes})
        if inspect.isgenerator(made):
            next(made, None)
        repr(made)


EXAMPLES: dict[type, Callable[[], Any]] = {
    pele_ocl.Atoms: lambda: ATOMS,
    pele_ocl.Labels: lambda: ATOMS.labels,
    pele_ocl.Structure: lambda: STRUCTURE,
    pele_ocl.Grid: lambda: GRID,
    pele_ocl.Map: lambda: MAP,
    pele_ocl.PairList: lambda: PAIRS,
    pele_ocl.AllPairs: lambda: pele_ocl.all_pairs(ATOMS),
    pele_ocl.ForceField: pele_ocl.ForceField.load,
    pele_ocl.SolventModel: pele_ocl.SolventModel,
    pele_ocl.Samples: lambda: pele_ocl.sample_map(MAP, ATOMS),
    pele_ocl.View: lambda: pele_ocl.view(ATOMS, method="screened", device=DEVICE),
    pele_ocl.Solvent: lambda: pele_ocl.Solvent(ATOMS, device=DEVICE),
    pele_ocl.Nonbond: lambda: pele_ocl.Nonbond(ATOMS, PAIRS, device=DEVICE),
    pele_ocl.Energy: lambda: pele_ocl.Energy(ATOMS, device=DEVICE, variant="rows"),
    pele_ocl.Potmap: lambda: pele_ocl.Potmap(ATOMS, GRID, device=DEVICE),
    pele_ocl.Ensemble: lambda: pele_ocl.Ensemble(
        ATOMS, 2, terms=[pele_ocl.PositionalRestraint(1.0), pele_ocl.CenterRestraint([0, 1], 1.0)], device=DEVICE
    ).evaluate(),
    pele_ocl.Simulation: lambda: pele_ocl.Simulation(ATOMS, terms=[METADYNAMICS], device=DEVICE),
    pele_ocl.PositionalRestraint: lambda: pele_ocl.PositionalRestraint(1.0),
    pele_ocl.CenterRestraint: lambda: pele_ocl.CenterRestraint([0, 1], 1.0),
    pele_ocl.DistanceRestraint: lambda: pele_ocl.DistanceRestraint([[0, 1]], 1.0, 1.0),
    pele_ocl.TorsionRestraint: lambda: pele_ocl.TorsionRestraint([[0, 1, 2, 3]], 1.0, 1.0),
    pele_ocl.GridBias: lambda: pele_ocl.GridBias(DISTANCE, np.zeros((5, 2)), [(0.0, 9.0)]),
    pele_ocl.Metadynamics: lambda: METADYNAMICS,
    pele_ocl.OPES: lambda: pele_ocl.OPES(DISTANCE, 0.5, 5.0, 10, bounds=[(0.0, 9.0)]),
    pele_ocl.TorsionVariable: lambda: pele_ocl.TorsionVariable([0, 1, 2, 3]),
    pele_ocl.DistanceVariable: lambda: DISTANCE,
    pele_ocl.GyrationVariable: lambda: pele_ocl.GyrationVariable([0, 1, 2]),
    pele_ocl.RMSDVariable: lambda: pele_ocl.RMSDVariable([0, 1, 2]),
    pele_ocl.MBAR: lambda: pele_ocl.MBAR(np.zeros((2, 12)), np.arange(12) % 2),
    pele_ocl.StateSamples: lambda: samples(),
    pele_ocl.BiasSamples: lambda: samples(pele_ocl.BiasSamples()),
    pele_ocl.DatasetFile: lambda: pele_ocl.DatasetFile("samples.h5"),
    pele_ocl.ColvarFiles: lambda: pele_ocl.ColvarFiles(tempfile.gettempdir()),
    pele_ocl.SimulatedTempering: lambda: pele_ocl.SimulatedTempering([300.0, 400.0]),
    pele_ocl.Minimizer: lambda: pele_ocl.Minimizer(ATOMS, device=DEVICE, variant="rows", max_iterations=1),
    pele_ocl.PBIon: lambda: pele_ocl.PBIon(1, 0.1),
    pele_ocl.PBModel: pele_ocl.PBModel,
    pele_ocl.PBSolvent: pele_ocl.PBSolvent,
    pele_ocl.PoissonBoltzmann: lambda: pele_ocl.PoissonBoltzmann(ATOMS, spacing=2.0, device=DEVICE),
    pele_ocl.Relaxer: lambda: pele_ocl.Relaxer(device=DEVICE),
    pele_ocl.Explorer: lambda: pele_ocl.Explorer(ATOMS, [0, 1, 2], [], device=DEVICE),
    pele_ocl.Binding: lambda: pele_ocl.Binding(ATOMS, "index 6:11", device=DEVICE),
    pele_ocl.Screener: lambda: pele_ocl.Screener(PAIR[:12], max_iterations=1, device=DEVICE),
    pele_ocl.Refiner: lambda: pele_ocl.Refiner(ATOMS, "index 6:11", max_iterations=1, device=DEVICE),
}


def samples(found: Any = None) -> Any:
    found = found or pele_ocl.StateSamples()
    for _ in range(6):
        found(SIMULATION)
    return found


@cache
def example(owner: type) -> Any:
    return EXAMPLES[owner]()


# Made by the program alone.
RESULTS = ("Result", "Batch", "Energies", "Preparation", "Refined", "Scored", "Poses", "Spec")
MADE = pele_ocl.ForceField, pele_ocl.Samples, pele_ocl.View  # by functions
# Called by the program alone.
OF_THE_PROGRAM = (
    "check_targets", "groups", "launches", "part", "put_targets", "runs_first", "sizes", "targets_of", "traits",
    "value",
)  # fmt: skip
# Take objects of other libraries, or seconds.
APART = (
    pele_ocl.from_openmm, pele_ocl.from_parmed, pele_ocl.from_mdanalysis, pele_ocl.from_rdkit, pele_ocl.prepare,
    pele_ocl.check_kernel, pele_ocl.read_ligands, pele_ocl.parametrize,
)  # fmt: skip
# Warn, and call the present names.
FORMER = (pele_ocl.Atoms.from_openmm, pele_ocl.Atoms.from_parmed, pele_ocl.Atoms.from_mdanalysis)


def calls() -> Iterator[Call]:
    for name in pele_ocl.__all__:
        public = getattr(pele_ocl, name)
        if inspect.isclass(public):
            if issubclass(public, Exception) or name.endswith(RESULTS) or public is pele_ocl.Ligand:  # RDKit's
                continue
            if public not in MADE:
                yield Call(name, public)
            assert public in EXAMPLES
            for method, called in inspect.getmembers(public, callable):
                apart = called in (*APART, *FORMER)
                if (
                    method not in OF_THE_PROGRAM
                    and not apart
                    and (not method.startswith("_") or method == "__getitem__")
                ):
                    yield Call(f"{name}.{method}", called, public)
        elif public not in APART:
            yield Call(name, public)
    for function in (debye_kappa, potential_factor):
        yield Call(function.__name__, function)


CALLS = {call.name: call for call in calls()}
CASES = [(name, parameter) for name, call in CALLS.items() for parameter in call.parameters]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    pele_ocl.write_map(folder / "map.dx", MAP)
    SIMULATION.save(folder / "checkpoint.npz")
    pele_ocl.write_pairs(folder / "pairs.txt", PAIRS)
    return folder


@pytest.fixture(autouse=True)
def _folder(files, tmp_path, monkeypatch):
    """A folder to read from and write to."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)


CALLED = {("watch", "type"), ("call", "type"), ("tell", "type")}  # with three numbers, which is its own mistake


def faults(name: str, parameter: str, kinds: list[str]) -> list[str]:
    """List the errors raised that are no PeleErrors."""
    found = []
    for kind in kinds:
        if (parameter, kind) in CALLED:
            continue
        try:
            CALLS[name].make(**{parameter: WRONG[kind]})
        except PeleError:
            pass
        except Exception as error:
            found.append(f"{name}({parameter}={kind}): {type(error).__name__}: {str(error)[:100]}")
    return found


@pytest.mark.parametrize("name", CALLS)
def test_right_arguments_are_right(name):
    if name.endswith(".to_dataframe"):
        pytest.importorskip("pandas")
    with pytest.raises(pele_ocl.FormatError, match=r"^absent") if name in ABSENT else nullcontext():
        CALLS[name].make()


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_some_wrong_arguments(name, parameter):
    seed = zlib.crc32(f"{name} {parameter}".encode())
    kinds = random.Random(seed).sample(list(WRONG), 2)
    assert not faults(name, parameter, kinds)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_every_wrong_argument(name, parameter):
    assert not faults(name, parameter, list(WRONG))


@pytest.mark.parametrize("function", APART, ids=lambda function: function.__name__)
def test_wrong_objects_of_other_libraries(function):
    needed = [p for p in inspect.signature(function).parameters.values() if p.default is inspect.Parameter.empty]
    for kind in sorted(WRONG):
        with pytest.raises(pele_ocl.PeleError):
            function(*[WRONG[kind]] * len(needed))
