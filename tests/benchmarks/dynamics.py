"""Comparison of dynamics with OpenMM: speed, energy drift, and temperature of each atom.

python tests/benchmarks/dynamics.py speed [--device D] [--platform CPU] [--cases ubiquitin:1,FILE.pdb:64]
python tests/benchmarks/dynamics.py drift [--device D] [--platform CPU] [--cases hexapeptide:8:5,ubiquitin:2:2]
    [--openmm-runs 4] [--settled 0] [--sampled 0.02] [--precisions float32,float64]
    [--figure docs/figures/dynamics-drift]
python tests/benchmarks/dynamics.py temperature [--device D] [--replicas 128] [--picoseconds 40] [--friction 1]
    [--timestep 4 --hydrogen-mass 3] [--openmm 0]

All use Amber99SB with OBC2, all pairs, and constrained bonds to hydrogen in `speed` and `temperature`. `speed` prints
steps per second of one replica in OpenMM and of all replicas in pele-ocl, by wall and by processor time, the best of
alternating runs, and the memory used by rows. If other programs run on the machine, compare processor times.
Populations of alanine dipeptide are in dipeptide.py.

`drift` prints the slopes of linear fits to the total energy of several runs, with the error of their mean, and the
deviations from the fits. Cases are structure:runs:picoseconds, after --settled ps of equilibration. --figure draws them
for light and dark pages. The CUDA platform of OpenMM uses mixed precision here, and single precision elsewhere.

`temperature` prints the kinetic temperature of a peptide of 96 atoms, over all atoms and for the atom with the largest
deviation, with errors from replicas. Velocities are taken after friction and noise, half a kick before the positions,
without the motion of the centre of mass.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness.drift_chart import draw_drift

import pele_ocl
from pele_ocl.common.installation import shipped
from pele_ocl.units import BOLTZMANN_KCAL

ROUNDS = 5
SECONDS = 2.0  # of a round
KCAL = 4.184
BOLTZMANN = BOLTZMANN_KCAL * 418.4  # Da A^2/ps^2/K
BLOCKS = 20  # of a run of OpenMM, each taken as one number
MOST_TURNED = 128  # replicas from whose bonds the degrees of freedom of atoms are found


class OpenMM:
    """An OpenMM context with the minimized molecule of a file."""

    def __init__(
        self, text: str, platform: str, constraints: bool, integrator: Callable[[Any], Any], precision: str = "single",
        hydrogen_mass: float | None = None, seed: int = 1,
    ) -> None:  # fmt: skip
        """seed : of the random numbers, for integrators that use them"""
        import openmm
        from openmm import app

        file = app.PDBFile(io.StringIO(text))
        field = app.ForceField("amber99sb.xml", "amber99_obc.xml")
        self.system = field.createSystem(
            file.topology, constraints=app.HBonds if constraints else None, hydrogenMass=hydrogen_mass
        )
        self.integrator = integrator(openmm)
        if hasattr(self.integrator, "setRandomNumberSeed"):
            self.integrator.setRandomNumberSeed(seed)
        properties = {"Precision": precision} if platform in ("CUDA", "OpenCL") else {}
        found = openmm.Platform.getPlatformByName(platform)
        self.context = openmm.Context(self.system, self.integrator, found, properties)
        self.topology = file.topology
        self.context.setPositions(file.positions)

    def total(self) -> float:
        """Return the total energy, kcal/mol."""
        state = self.context.getState(energy=True)
        return float((state.getKineticEnergy() + state.getPotentialEnergy())._value / KCAL)

    def positions(self) -> np.ndarray:
        """Return positions (n, 3) in A."""
        return 10 * self.context.getState(positions=True).getPositions(asNumpy=True)._value


def structure(name: str) -> str:
    """Return the text of a PDB file, or of an included structure."""
    return (Path(name) if name.endswith(".pdb") else shipped("data") / "structures" / f"{name}.pdb").read_text()


def read(text: str) -> pele_ocl.Atoms:
    """Read atoms from the text of a PDB file, with Amber99SB parameters."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "molecule.pdb"
        path.write_text(text)
        return pele_ocl.read(path)


def rate(step: Callable[[int], object]) -> np.ndarray:
    """Return steps per second of wall time and of processor time of all threads, (2,): the best of some rounds."""
    step(5)
    begin = time.perf_counter()
    step(5)
    n = max(5, int(5 * SECONDS / ROUNDS / (time.perf_counter() - begin)))
    best = np.zeros(2)
    for _ in range(ROUNDS):
        begin = np.array([time.perf_counter(), time.process_time()])
        step(n)
        best = np.maximum(best, n / (np.array([time.perf_counter(), time.process_time()]) - begin))
    return best


def speed(options: argparse.Namespace) -> None:
    """Print steps per second of one replica in OpenMM and of all replicas in pele-ocl."""
    for case in options.cases.split(","):
        name, count = case.split(":")
        text = structure(name)
        atoms = pele_ocl.minimize(read(text), max_iterations=100, device=options.device).atoms
        ours = pele_ocl.Simulation(atoms, int(count), constraints="hbonds", device=options.device)
        theirs = OpenMM(text, options.platform, True, lambda openmm: openmm.LangevinMiddleIntegrator(300, 1, 0.002))
        theirs.context.setPositions(atoms.positions / 10)
        theirs.context.setVelocitiesToTemperature(300)

        def waited(n: int, theirs: OpenMM = theirs) -> None:
            theirs.integrator.step(n)
            theirs.total()

        own, other = rate(ours.run) * int(count), rate(waited)
        own, other = np.maximum(own, rate(ours.run) * int(count)), np.maximum(other, rate(waited))
        taken = ours.ensemble.state.bytes_on_device.size / 2**20
        print(
            f"{name}, {len(atoms):,} atoms x {count}, {taken:,.1f} MiB of rows, on {ours.ensemble.device}, and "
            f"OpenMM's {options.platform}:"
        )
        for what, mine, its in zip(("second", "second of CPU time"), own, other, strict=True):
            print(f"  {mine:,.0f} steps a {what} in all, OpenMM {its:,.0f}: {mine / its:.1f} times", flush=True)


def drift(options: argparse.Namespace) -> None:
    """Print drift and deviations of the total energy with the Verlet integrator, starting at 300 K, and draw them."""
    curves: dict[str, dict[str, np.ndarray]] = {}
    for case in options.cases.split(","):
        name, count, picoseconds = case.split(":")
        sampled = options.sampled
        text, replicas, n = structure(name), int(count), round(float(picoseconds) / sampled)
        atoms = pele_ocl.minimize(read(text), tolerance=0.5, device=options.device).atoms
        start = pele_ocl.Simulation(atoms, replicas, timestep=1.0, friction=10.0, device=options.device)
        start.run(1000)
        for timestep in (0.5, 1.0):
            every, panel = round(1000 * sampled / timestep), f"{name}, {len(atoms):,} atoms, {timestep:g} fs"
            curves[panel] = {}
            for precision in options.precisions.split(","):
                ours = pele_ocl.Simulation(
                    atoms, replicas, integrator="verlet", timestep=timestep, device=options.device, precision=precision
                )
                begin_as(ours, start)
                ours.run(round(1000 * options.settled / timestep))
                energies = []
                for _ in range(n):
                    ours.run(every)
                    energies.append(ours.potential_energies + ours.kinetic_energies)
                curves[panel][f"pele-ocl, {precision}"] = np.array(energies)
                told_drift(f"{panel}, ours, {precision}", np.array(energies), sampled)
            runs = []
            for k in range(min(replicas, options.openmm_runs)):
                theirs = OpenMM(
                    text, options.platform, False, lambda openmm, dt=timestep: openmm.VerletIntegrator(dt / 1000),
                    precision="mixed",
                )  # fmt: skip
                theirs.context.setPositions(start.positions[k] / 10)
                theirs.context.setVelocities(start.velocities[k] / 10)
                theirs.integrator.step(round(1000 * options.settled / timestep))
                energies = []
                for _ in range(n):
                    theirs.integrator.step(every)
                    energies.append(theirs.total())
                runs.append(energies)
            if runs:
                curves[panel][f"OpenMM, {options.platform}"] = np.array(runs).T
                told_drift(f"{panel}, OpenMM, {options.platform}", np.array(runs).T, sampled)
    if options.figure is not None:
        draw_drift(curves, options.sampled, options.figure)


def begin_as(simulation: pele_ocl.Simulation, start: pele_ocl.Simulation) -> None:
    """Copy positions and velocities of another simulation."""
    simulation.positions[:] = list(start.positions[:])
    simulation.ensemble.evaluate()
    simulation.velocities[:] = list(start.velocities[:])


def told_drift(who: str, energies: np.ndarray, sampled: float) -> None:
    """Print slopes of linear fits to energies (n_times, n_runs), with the error of their mean, and deviations."""
    times = 1e-3 * sampled * np.arange(len(energies))
    (slopes, firsts), n = np.polyfit(times, energies, 1), energies.shape[1]
    deviations = energies - times[:, None] * slopes - firsts
    # Of one run the error is that of its line, from four blocks of deviations, each taken as one number.
    error = slopes.std(ddof=1) / np.sqrt(n) if n > 1 else slopes_of_blocks(times, energies[:, 0])
    print(
        f"{who}: slope {slopes.mean():+.2f} +- {error:.2f} kcal/mol/ns ({n} run{'s' * (n > 1)}); "
        f"rms deviation {deviations.std():.4f} kcal/mol",
        flush=True,
    )


def slopes_of_blocks(times: np.ndarray, energies: np.ndarray, n_blocks: int = 4) -> float:
    """Estimate the error of a slope from linear fits to blocks, kcal/mol/ns."""
    size = len(times) // n_blocks
    slopes = [np.polyfit(times[k * size :][:size], energies[k * size :][:size], 1)[0] for k in range(n_blocks)]
    # A line through all is steadier than one through a block by its length to the power of 3/2.
    return float(np.std(slopes, ddof=1) / n_blocks**1.5)


def temperature(options: argparse.Namespace) -> None:
    """Print the kinetic temperature of each atom of a peptide at 2 fs with constraints, or 4 fs with H of 3 Da.

    Velocities are those of the integrator, after friction and noise.
    """
    atoms = pele_ocl.minimize(read(structure("hexapeptide")), tolerance=0.5, device=options.device).atoms
    common = {"constraints": "hbonds", "device": options.device, "seed": options.seed}
    chosen = ((2.0, None), (4.0, 3.0)) if options.timestep is None else ((options.timestep, options.hydrogen_mass),)
    for timestep, mass in chosen:
        own = {**common, "timestep": timestep, "hydrogen_mass": mass}
        start = pele_ocl.Simulation(atoms, options.replicas, friction=20.0, **own)
        start.run(round(2000 / timestep))
        simulation = pele_ocl.Simulation(atoms, options.replicas, friction=options.friction, **own)
        begin_as(simulation, start)
        simulation.run(round(1000 / timestep))
        every, begin, n = round(40 / timestep), time.perf_counter(), round(25 * options.picoseconds)
        kinetic, freedom, turned = np.zeros((options.replicas, len(atoms))), [], range(options.replicas)[:MOST_TURNED]
        for k in range(n):
            simulation.run(every)
            v = simulation._motion.read("velocities").reshape(options.replicas, -1, 3)  # all at once
            kinetic += doubled_kinetic(v, simulation.masses[0]) / n
            if k % 10 == 0:
                freedom.append(freedom_of_atoms(simulation, np.stack(simulation.positions[list(turned)])).mean(axis=0))
        found = kinetic / np.mean(freedom, axis=0) / BOLTZMANN  # (n_replicas, n_atoms) K
        runs = {f"{options.replicas} replicas of {options.picoseconds:g} ps on {simulation.ensemble.device}": found}
        if options.openmm:
            theirs = kinetic_of_openmm(options, simulation, timestep, mass) / np.mean(freedom, axis=0) / BOLTZMANN
            runs[f"{options.openmm:g} ns of OpenMM's {options.platform}"] = theirs
        held = np.isin(np.arange(len(atoms)), simulation._bodies[0].constraints.heavy)
        worst = np.argsort(-np.abs(found.mean(axis=0) / 300 - 1))[:6]
        for who, kelvin in runs.items():
            print(f"{timestep:g} fs, hydrogens of {mass or 1.008:g} Da, friction {options.friction:g}/ps, {who}")
            told_temperatures(atoms, held, kelvin, worst)
        if options.openmm:
            apart = found.mean(axis=0) - theirs.mean(axis=0)
            errors = np.hypot(errors_of_means(found), errors_of_means(theirs))
            print(
                f"  ours less OpenMM's, single atoms: rms {np.sqrt(((apart / errors) ** 2).mean()):.2f} of the errors"
            )
        print(f"  {time.perf_counter() - begin:.0f} s", flush=True)


def kinetic_of_openmm(
    options: argparse.Namespace, begun: pele_ocl.Simulation, timestep: float, mass: float | None
) -> np.ndarray:
    """Run OpenMM from the positions of the first replica; return m v^2 of its atoms, (BLOCKS, n_atoms) Da A^2/ps^2."""
    theirs = OpenMM(
        structure("hexapeptide"), options.platform, True,
        lambda openmm: openmm.LangevinMiddleIntegrator(300, options.friction, timestep / 1000), hydrogen_mass=mass,
    )  # fmt: skip
    theirs.context.setPositions(begun.positions[0] / 10)
    theirs.context.setVelocitiesToTemperature(300)
    theirs.integrator.step(round(5000 / timestep))
    n = round(1000 * options.openmm / 0.04 / BLOCKS)
    found = np.zeros((BLOCKS, begun.masses[0].size))
    for block in found:
        for _ in range(n):
            theirs.integrator.step(round(40 / timestep))
            v = 10 * theirs.context.getState(velocities=True).getVelocities(asNumpy=True)._value
            block += doubled_kinetic(v[None], begun.masses[0])[0] / n
    return found


def doubled_kinetic(velocities: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Return m v^2 of atoms, (n_replicas, n), without the velocity of the centre of mass, which noise adds."""
    center = (masses[:, None] * velocities).sum(axis=1, keepdims=True) / masses.sum()
    return masses * ((velocities - center) ** 2).sum(axis=2)


def told_temperatures(atoms: pele_ocl.Atoms, held: np.ndarray, found: np.ndarray, named: np.ndarray) -> None:
    """Print temperatures (n_runs, n_atoms) K. held : (n_atoms,) atoms with hydrogens; named : atoms to print"""
    hydrogens = atoms.labels.elements == "H"
    told_temperature("all atoms", found.mean(axis=1))
    told_temperature("heavy atoms", found[:, ~hydrogens].mean(axis=1))
    told_temperature("heavy atoms without hydrogens", found[:, ~hydrogens & ~held].mean(axis=1))
    told_temperature("hydrogens", found[:, hydrogens].mean(axis=1))
    errors = errors_of_means(found)
    apart = found.mean(axis=0) / 300 - 1
    print(
        f"  single atoms: errors {100 * errors.mean() / 300:.3f} %; rms deviation "
        f"{np.sqrt((apart**2).mean()) * 100:.3f} %, {np.sqrt(((300 * apart / errors) ** 2).mean()):.2f} of the errors; "
        f"{np.count_nonzero(np.abs(apart) > 0.005)} atoms are more than 0.5 % off; "
        f"{', '.join(f'{100 * apart[k]:+.3f} % {atoms.describe(int(k))}' for k in named)}",
        flush=True,
    )


def errors_of_means(found: np.ndarray) -> np.ndarray:
    """Return standard errors of the means over runs (n_runs, n_atoms), (n_atoms,)."""
    return found.std(axis=0, ddof=1) / np.sqrt(len(found))


def told_temperature(who: str, of_replicas: np.ndarray) -> None:
    """Print a mean over replicas (n,) in K with its error."""
    error = of_replicas.std(ddof=1) / np.sqrt(len(of_replicas))
    mean = of_replicas.mean()
    print(f"  {who}: {mean:.2f} +- {error:.2f} K, {100 * (mean / 300 - 1):+.3f} %", flush=True)


def freedom_of_atoms(simulation: pele_ocl.Simulation, positions: np.ndarray) -> np.ndarray:
    """Return degrees of freedom of each atom (n_replicas, n), by which m v^2 is divided; fractional if constrained.

    Velocities that keep the bonds G v = 0 have the covariance kT (1/M - 1/M G' (G 1/M G')^-1 G 1/M).
    """
    body = simulation._bodies[0]
    masses, held = body.masses, body.constraints
    found = np.full(positions.shape[:2], 3.0) - 3 * masses / masses.sum()  # the centre of mass is at rest
    for heavy, first, last in zip(held.heavy, held.starts[:-1], held.starts[1:], strict=True):
        hydrogens = held.hydrogens[first:last]
        bonds = positions[:, hydrogens] - positions[:, [heavy]]
        bonds /= np.linalg.norm(bonds, axis=2, keepdims=True)
        cosines = bonds @ np.swapaxes(bonds, 1, 2)
        inverse = np.linalg.inv(cosines / masses[heavy] + np.diag(1 / masses[hydrogens]))
        found[:, heavy] -= (inverse * cosines).sum(axis=(1, 2)) / masses[heavy]
        found[:, hydrogens] -= np.diagonal(inverse, axis1=1, axis2=2) / masses[hydrogens]
    return found


def main() -> None:
    """Run the requested measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "drift", "temperature"))
    parser.add_argument("--device")
    parser.add_argument("--platform", default="CPU")
    parser.add_argument("--cases")
    parser.add_argument("--figure", help="files for the charts of the drift: STEM-light.png, STEM-dark.png")
    parser.add_argument("--picoseconds", type=float, default=40.0)
    parser.add_argument("--openmm-runs", type=int, default=4)
    parser.add_argument("--settled", type=float, default=0.0, help="ps that do not count, of `drift`")
    parser.add_argument("--sampled", type=float, default=0.02, help="ps between total energies, of `drift`")
    parser.add_argument("--precisions", default="float32,float64", help="ours, of `drift`")
    parser.add_argument(
        "--timestep", type=float, help="fs, of `temperature`; by default 2, then 4 with heavy hydrogens"
    )
    parser.add_argument("--hydrogen-mass", type=float, help="Da, with --timestep")
    parser.add_argument("--friction", type=float, default=1.0, help="1/ps, of `temperature`")
    parser.add_argument("--openmm", type=float, default=0.0, help="nanoseconds of OpenMM's, of `temperature`")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replicas", type=int, default=16)
    options = parser.parse_args()
    defaults = {"speed": "ubiquitin:1,hexapeptide:64", "drift": "hexapeptide:8:5,ubiquitin:2:2"}
    options.cases = options.cases or defaults.get(options.what)
    {"speed": speed, "drift": drift, "temperature": temperature}[options.what](options)


if __name__ == "__main__":
    main()
