"""Minimization compared with OpenMM's LocalEnergyMinimizer, for one system, the same starts and the same tolerance."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pele_ocl.atoms import Atoms, Floats
from pele_ocl.bench.systems import SYSTEMS
from pele_ocl.common.installation import shipped
from pele_ocl.common.textfiles import plain_bytes
from pele_ocl.energy import Energy
from pele_ocl.gb_models.solvent_model import SolventModel
from pele_ocl.interop import from_openmm
from pele_ocl.minimize import Minimizer
from pele_ocl.opencl.device import Device, get_cpu_device
from pele_ocl.reading import read
from pele_ocl.units import KJ_PER_MOL_NM
from timing_tables.installed import AbsentError, load
from timing_tables.openmm import NM_PER_A, PLATFORMS, OpenMM

SEED = 1
FIELDS = ("amber99sb.xml", "amber99_obc.xml")  # of OpenMM; its GBSAOBCForce, the faster of its two ways
MODEL = SolventModel.like("openmm", gb="obc2")
MOST_ITERATIONS = 100_000
# The baseline of speed-ups first; the Reference platform takes minutes.
_OPENMM = ("CPU", *(name for name in PLATFORMS if name not in ("CPU", "Reference")))


@dataclass(frozen=True)
class Timing:
    """One row of the table: means over starts that are minimized one by one.

    code : method of pele-ocl, or `OpenMM` with its platform
    tolerance : target rms gradient, kJ/mol/nm
    seconds : without set-up; speedup : over OpenMM's CPU platform in the same run, None if it is not available
    iterations, evaluations : None for OpenMM
    energy, rms_gradient : final values in float64 on the CPU, kcal/mol and kJ/mol/nm
    above : relative difference of the energy from OpenMM's CPU platform, mean over starts; None without it
    """

    system: str
    n_atoms: int
    precision: str
    tolerance: float
    code: str
    device: str
    seconds: float
    speedup: float | None
    iterations: float | None
    evaluations: float | None
    energy: float
    rms_gradient: float
    above: float | None


@dataclass(frozen=True)
class Minimized:
    """Result of one start: positions (n, 3) A, seconds, iterations and evaluations, None for OpenMM."""

    positions: Floats
    seconds: float
    iterations: float | None = None
    evaluations: float | None = None


def measure(
    name: str, tolerance: float, noise: float, starts: int, device: Device, precision: str = "float32",
    methods: Sequence[str] = ("lbfgs",), peers: bool = True,
) -> Iterator[Timing]:  # fmt: skip
    """Time the available OpenMM platforms, and then pele-ocl, on one structure with its complete force field.

    tolerance : kJ/mol/nm; noise : A, of the starts
    """
    atoms, system = _system(name, peers)
    exact = Energy(atoms, model=MODEL, precision="float64", device=get_cpu_device(device))
    begins = starts_of(atoms, noise, starts)
    baseline: tuple[float, Floats] | None = None

    def timing(code: str, where: str, runs: Sequence[Minimized]) -> tuple[Timing, Floats]:
        ends = np.array([end_of(exact, run.positions) for run in runs])
        energies, seconds = ends[:, 0], float(np.mean([run.seconds for run in runs]))
        above = None if baseline is None else float(np.mean((energies - baseline[1]) / np.abs(baseline[1])))
        row = Timing(
            name, len(atoms), precision, tolerance, code, where, seconds,
            None if baseline is None else baseline[0] / seconds, _mean([run.iterations for run in runs]),
            _mean([run.evaluations for run in runs]), float(energies.mean()),
            float(ends[:, 1].mean()), above,
        )  # fmt: skip
        return row, energies

    for platform in _OPENMM if system is not None else ():
        try:
            peer = OpenMM.of(system, atoms.positions, platform, precision)
        except AbsentError:
            continue
        row, energies = timing(f"OpenMM {platform}", peer.where, [by_openmm(peer, one, tolerance) for one in begins])
        if platform == "CPU":
            baseline = row.seconds, energies
        yield row
    for method in methods:
        minimizer = minimizer_of(atoms, method, tolerance, precision, device)
        minimizer.minimize(begins[0])  # also builds the kernels
        yield timing(method, str(minimizer.energy.device), [by_us(minimizer, one) for one in begins])[0]


def starts_of(atoms: Atoms, noise: float, count: int) -> list[Floats]:
    """Return `count` starts (n, 3) A, equal in all runs; noise : A"""
    rng = np.random.default_rng(SEED)
    return [atoms.positions + noise * rng.normal(size=atoms.positions.shape) for _ in range(count)]


def minimizer_of(atoms: Atoms, method: str, tolerance: float, precision: str, device: Device | str | None) -> Minimizer:
    """Return a minimizer whose iteration limit is not reached before OpenMM ends. tolerance : kJ/mol/nm"""
    return Minimizer(
        atoms, model=MODEL, method=method, tolerance=tolerance * KJ_PER_MOL_NM, max_iterations=MOST_ITERATIONS,
        precision=precision, device=device,
    )  # fmt: skip


def _mean(counts: Sequence[float | None]) -> float | None:
    known = [count for count in counts if count is not None]
    return float(np.mean(known)) if known else None


def _system(name: str, peers: bool) -> tuple[Atoms, object | None]:
    """Return the atoms of an included structure with all parameters, and OpenMM's System, None without OpenMM."""
    path = shipped("data") / "structures" / SYSTEMS[name]
    atoms = read(path)
    try:
        app = load("openmm.app") if peers else None
    except AbsentError:
        app = None
    if app is None:
        return atoms, None
    pdb = app.PDBFile(io.StringIO(plain_bytes(path).decode()))
    system = app.ForceField(*FIELDS).createSystem(pdb.topology, nonbondedMethod=app.NoCutoff, constraints=None)
    return from_openmm(pdb.topology, system, pdb.positions), system


def by_us(minimizer: Minimizer, begin: Floats) -> Minimized:
    """Minimize one start (n, 3) A with pele-ocl."""
    start = time.perf_counter()
    result = minimizer.minimize(begin)
    return Minimized(result.positions, time.perf_counter() - start, result.iterations, result.evaluations)


def by_openmm(peer: OpenMM, begin: Floats, tolerance: float) -> Minimized:
    """Minimize one start (n, 3) A with OpenMM. tolerance : kJ/mol/nm"""
    from openmm import LocalEnergyMinimizer, unit

    peer.context.setPositions(begin * NM_PER_A)
    peer.context.getState(getEnergy=True, getForces=True)
    start = time.perf_counter()
    LocalEnergyMinimizer.minimize(peer.context, tolerance)
    state = peer.context.getState(getPositions=True)
    seconds = time.perf_counter() - start
    return Minimized(np.asarray(state.getPositions(asNumpy=True).value_in_unit(unit.angstrom)), seconds)


def end_of(exact: Energy, positions: Floats) -> tuple[float, float]:
    """Return energy, kcal/mol, and rms gradient, kJ/mol/nm, in float64."""
    result = exact.evaluate(positions)
    assert result.gradient is not None
    return result.total, float(np.sqrt((result.gradient**2).sum(axis=1).mean())) / KJ_PER_MOL_NM
