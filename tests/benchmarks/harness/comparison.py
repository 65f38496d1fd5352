"""Compare pele-ocl with all available peers on the same atoms in one run, and check the results."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from timing_tables.openmm import PLATFORMS, OpenMM, gb_alone, pairs_within_cutoff, whole_energy

from pele_ocl import SolventModel
from pele_ocl.atoms import Atoms, Floats
from pele_ocl.bench.potmap import Once, time_map
from pele_ocl.bench.timing import call_seconds, kernel_seconds, mean_of_middle, wall_seconds_of_many
from pele_ocl.energy import Energy, energy
from pele_ocl.grid import Grid
from pele_ocl.nonbond import Nonbond
from pele_ocl.opencl import Device, get_cpu_device
from pele_ocl.pairs import PairList, pairs_within
from pele_ocl.potmap import choose_variant, potmap
from pele_ocl.reference.nonbond import nonbond as nonbond_definition
from pele_ocl.solvent import Solvent, solvent
from pele_ocl.units import COULOMB_KCAL_A

from .peers import MAP_PEERS, AbsentError, Array, apart, talk_to_stderr, version_of

if TYPE_CHECKING:
    from openmm import System

# Relative errors against float64 beyond which results do not agree: satisfied by current peers with some margin. At a
# cutoff float32 has pairs on the wrong side of it, which affects the gradient of a large molecule. Minima differ
# because of rounding: a protein has very many.
MESH_ACCURACY = 1e-4  # of maps by a mesh and its peers
TOLERANCES = {
    "float32": {"map": 2e-5, "energy": 1e-4, "gradient": 2e-3, "minimum": 5e-4, "potential": MESH_ACCURACY},
    "float64": {"map": 1e-10, "energy": 1e-6, "gradient": 1e-5, "minimum": 5e-4, "potential": MESH_ACCURACY},
}
MOST_REFERENCE_ATOMS = 6000  # beyond, OpenMM's Reference platform takes minutes


@dataclass(frozen=True)
class Row:
    """Times of one code for one work.

    seconds : with all data in place; call_seconds : of a call with positions in and arrays out,
        everything else prepared before; None if unknown
    sampled : whether `seconds` is scaled from a part of the work
    errors : relative errors by quantity; the result disagrees if any exceeds its tolerance
    reason : why there are no numbers; absent : whether the code is not installed, or does not support the work
    """

    work: str
    system: str
    n_atoms: int
    evaluations: int
    precision: str
    code: str
    ours: bool
    where: str
    seconds: float | None = None
    call_seconds: float | None = None
    sampled: bool = False
    errors: dict[str, float] = field(default_factory=dict)
    reason: str | None = None
    absent: bool = False

    @property
    def agrees(self) -> bool:
        """Return whether all errors are within their tolerances, and not NaN."""
        return all(error <= TOLERANCES[self.precision][name] for name, error in self.errors.items())


@dataclass(frozen=True, eq=False)
class Measured:
    """Measured part of a row."""

    code: str
    where: str
    seconds: float
    errors: dict[str, float]
    call_seconds: float | None = None
    sampled: bool = False


@dataclass(frozen=True, eq=False)
class Contender:
    """A code that can be measured; `measure` raises AbsentError if it is not available."""

    code: str
    measure: Callable[[], Measured]
    ours: bool = False


@dataclass(frozen=True, eq=False)
class Work:
    """Equal inputs for all contenders; evaluations : atoms times points, or atoms times atoms, or pairs"""

    name: str
    system: str
    n_atoms: int
    evaluations: int
    precision: str
    contenders: Sequence[Contender]

    @property
    def about(self) -> str:
        return f"{self.name}, {self.system}, {self.precision}"

    def rows(self, wanted: Callable[[str], bool], tell: Callable[[str], None]) -> Iterator[Row]:
        """Measure pele-ocl and then the peers named in `wanted`, one after the other.

        tell : called with progress messages, and with a time, or the traceback of a failed peer
        """
        for contender in self.contenders:
            if not (contender.ours or wanted(contender.code)):
                continue
            tell(f"{self.about}: {contender.code}")
            row = partial(Row, self.name, self.system, self.n_atoms, self.evaluations, self.precision)
            try:
                with talk_to_stderr(contender.code):
                    m = contender.measure()
            except Exception as error:
                if contender.ours:
                    raise
                # Whatever goes wrong inside a peer is its own row, not the end of the table.
                absent = isinstance(error, AbsentError)
                tell(f"  {error}" if absent else "".join(traceback.format_exception(error)))
                yield row(contender.code, False, "", absent=absent, reason=_reason(error))
                continue
            tell(f"  {1e3 * m.seconds:,.4g} ms on {m.where}")
            yield row(m.code, contender.ours, m.where, m.seconds, m.call_seconds, m.sampled, m.errors)


def _reason(error: Exception) -> str:
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return first if isinstance(error, AbsentError) else f"{type(error).__name__}: {first}"[:160]


def potmap_work(
    atoms: Atoms, grid: Grid, precision: str, devices: Sequence[Device], runs: int, most_seconds: float
) -> Work:  # fmt: skip
    """Return the work of a potential map by direct sums; data stay on the device.

    most_seconds : time limit of a peer
    """
    gpu = any(device.kind == "GPU" for device in devices)

    def ours(device: Device) -> Measured:
        def once(part: Grid) -> tuple[float, Array]:
            result = potmap(atoms, part, precision=precision, device=device)
            return result.seconds["kernel"], result.map.values

        return _measured_map(f"pele-ocl {choose_variant('direct')}", str(device), once, atoms, grid, runs)

    def of_peer(name: str) -> Measured:
        return apart(most_seconds, _map_by_peer, name, atoms, grid, precision, gpu, runs)

    system = f"{' x '.join(map(str, grid.shape))} points, {len(atoms):,} atoms"
    contenders = [Contender("pele-ocl", partial(ours, device), ours=True) for device in devices]
    contenders += [Contender(name, partial(of_peer, name)) for name in MAP_PEERS]
    return Work("potmap", system, len(atoms), len(atoms) * len(grid), precision, contenders)


def _map_by_peer(name: str, atoms: Atoms, grid: Grid, precision: str, gpu: bool, runs: int) -> Measured:
    peer = MAP_PEERS[name](atoms, precision, gpu)
    return _measured_map(f"{name} {peer.version}", peer.where, peer.once, atoms, grid, runs)


def _measured_map(code: str, where: str, once: Once, atoms: Atoms, grid: Grid, runs: int) -> Measured:
    rate, sampled, error = time_map(atoms, grid, once, runs)
    return Measured(code, where, len(atoms) * len(grid) / rate, {"map": error}, sampled=sampled)


def energy_work(name: str, atoms: Atoms, precision: str, devices: Sequence[Device], runs: int) -> Work:
    """Return the work of Lennard-Jones, Coulomb, GB and surface terms with the full gradient, for all pairs."""
    model = SolventModel()
    exact = energy(atoms, precision="float64", device=get_cpu_device(devices[0]))

    def ours(device: Device) -> Measured:
        plan = Energy(atoms, precision=precision, device=device, born="pairs")
        result = plan.evaluate()
        in_place = wall_seconds_of_many(plan.repeat, runs)
        errors = _errors(result.total, result.gradient, exact.total, exact.gradient)
        call = call_seconds(plan.evaluate, atoms, runs)
        return Measured(f"pele-ocl {plan.variant}", str(device), in_place, errors, call)

    def system() -> System:
        return whole_energy(atoms, model)

    against = partial(_errors, exact_energy=exact.total, exact_gradient=exact.gradient)
    contenders = [Contender("pele-ocl", partial(ours, device), ours=True) for device in devices]
    contenders += _openmm(atoms, system, precision, runs, against)
    return Work("energy", name, len(atoms), len(atoms) ** 2, precision, contenders)


def nonbond_work(
    name: str, atoms: Atoms, cutoff: float, precision: str, devices: Sequence[Device], runs: int
) -> Work:  # fmt: skip
    """Return the work of Lennard-Jones and Coulomb with gradient for the pairs within a cutoff."""
    pairs = pairs_within(atoms, cutoff)
    exact = nonbond_definition(atoms, pairs.first, pairs.second)
    total = exact.lennard_jones + exact.coulomb
    against = partial(_errors, exact_energy=total, exact_gradient=exact.gradient)

    def ours(device: Device) -> Measured:
        plan = Nonbond(atoms, pairs, solvent="vacuum", precision=precision, device=device)
        result = plan.evaluate()
        kernels = mean_of_middle(lambda: kernel_seconds(plan.evaluate), runs)
        errors = against(result.lennard_jones + result.coulomb, result.gradient)
        call = call_seconds(plan.evaluate, atoms, runs)
        return Measured(f"pele-ocl {plan.variant}", str(device), kernels, errors, call)

    def unshifted(value: float, gradient: Floats | None) -> dict[str, float]:
        return against(value + _shift(atoms, pairs, cutoff), gradient)

    def system() -> System:
        return pairs_within_cutoff(atoms, cutoff)

    contenders = [Contender("pele-ocl", partial(ours, device), ours=True) for device in devices]
    contenders += _openmm(atoms, system, precision, runs, unshifted)
    described = f"{name}, {len(pairs):,} pairs within {cutoff:g} A"
    return Work("nonbond", described, len(atoms), len(pairs), precision, contenders)


def solvent_work(name: str, atoms: Atoms, precision: str, devices: Sequence[Device], runs: int) -> Work:
    """Return the work of Born radii with GB and surface energies; OpenMM also computes forces, which it cannot skip."""
    exact = solvent(atoms, variant="tiled", precision="float64", device=get_cpu_device(devices[0])).total

    def ours(device: Device) -> Measured:
        plan = Solvent(atoms, precision=precision, device=device)
        result = plan.evaluate()
        kernels = mean_of_middle(lambda: kernel_seconds(plan.evaluate), runs)
        errors = _errors(result.total, None, exact, None)
        call = call_seconds(plan.evaluate, atoms, runs)
        return Measured(f"pele-ocl {plan.variant}", str(device), kernels, errors, call)

    def energy_alone(value: float, gradient: Floats | None) -> dict[str, float]:
        return _errors(value, None, exact, None)

    def system() -> System:
        return gb_alone(atoms, SolventModel())

    contenders = [Contender("pele-ocl", partial(ours, device), ours=True) for device in devices]
    contenders += _openmm(atoms, system, precision, runs, energy_alone)
    return Work("solvent", name, len(atoms), len(atoms) ** 2, precision, contenders)


def _openmm(
    atoms: Atoms, system: Callable[[], System], precision: str, runs: int,
    errors: Callable[[float, Floats | None], dict[str, float]],
) -> list[Contender]:  # fmt: skip
    """Return OpenMM platforms with this precision; with data in place, steps are timed, which need forces."""

    def measure(platform: str) -> Measured:
        if platform == "Reference" and len(atoms) > MOST_REFERENCE_ATOMS:
            raise AbsentError("takes minutes")
        peer = OpenMM.of(system(), atoms.positions, platform, precision)
        found = errors(*peer.evaluate())
        call = call_seconds(peer.evaluate, atoms, runs)
        peer.step(2)
        step = wall_seconds_of_many(peer.step, runs)
        return Measured(f"OpenMM {version_of('openmm')} {platform}", peer.where, step, found, call)

    able = [platform for platform, precisions in PLATFORMS.items() if precision in precisions]
    return [Contender(f"OpenMM {platform}", partial(measure, platform)) for platform in able]


def _errors(
    value: float, gradient: Floats | None, exact_energy: float, exact_gradient: Floats | None
) -> dict[str, float]:  # fmt: skip
    """Return the relative errors of an energy and, if there is one, of the gradient by norm."""
    errors = {"energy": abs(value - exact_energy) / abs(exact_energy)}
    if gradient is not None and exact_gradient is not None:
        errors["gradient"] = float(np.linalg.norm(gradient - exact_gradient) / np.linalg.norm(exact_gradient))
    return errors


def _shift(atoms: Atoms, pairs: PairList, cutoff: float) -> float:
    """Return the Coulomb energy that OpenMM subtracts to make that of each pair 0 at the cutoff, kcal/mol."""
    return COULOMB_KCAL_A / cutoff * float(atoms.charges[pairs.first] @ atoms.charges[pairs.second])
