"""Minimisation beside OpenMM's LocalEnergyMinimizer: wall time, iterations, and the energies in which both end.

python docs/performance/minimize.py [--platform CUDA] [--systems ubiquitin,src3] [--noise 0.1] [--tolerance 1,10]
    [--starts 5] [--batch 1000] [--device NAME] [--field gbsaobc] [--limit SECONDS]

builds Amber99SB with OBC II, no cutoff, in OpenMM, takes the same system over by Atoms.from_openmm, and minimises both
from the same positions, noise of so many A on the structure. Energies and root mean square gradients are computed
in float64 by us at the ends of both. --batch minimises so many starts of each system together. --limit ends OpenMM
after so many seconds, as CPUs need it: the ratio is then the least that it can be.
"""

from __future__ import annotations

import argparse
import time
from statistics import mean
from typing import Any

import numpy as np
from forcefield import openmm_system

from pele_ocl import Atoms, Energy, Minimizer
from pele_ocl.bench.minimize import MODEL, Run, by_openmm, by_us, end_of, minimizer_of, starts_of
from pele_ocl.bench.peers.openmm import NM_PER_A, STEP_PS, OpenMM

# OpenMM's two ways to OBC II: of CustomGBForce, as its manual has it, and of the older and faster GBSAOBCForce.
FIELDS = {"implicit": ("amber99sb.xml", "implicit/obc2.xml"), "gbsaobc": ("amber99sb.xml", "amber99_obc.xml")}


def context_of(system: Any, platform: str, precision: str) -> OpenMM:
    """A system on a platform, in a precision that only this script asks for: OpenMM's "mixed"."""
    from openmm import Context, Platform, VerletIntegrator

    properties = {"Precision": precision} if platform in ("CUDA", "OpenCL") else {}
    integrator = VerletIntegrator(STEP_PS)
    return OpenMM(Context(system, integrator, Platform.getPlatformByName(platform), properties), platform)


def counted(peer: OpenMM, begin: Any, tolerance: float, limit: float | None = None) -> Run:
    """One start by OpenMM, ended after `limit` seconds, with its iterations; counting makes it slower on GPUs."""
    from openmm import LocalEnergyMinimizer, MinimizationReporter, unit

    class Counter(MinimizationReporter):
        count = 0

        def report(self, iteration: int, x: Any, gradient: Any, numbers: Any) -> bool:
            self.count += 1
            return limit is not None and time.perf_counter() - start > limit

    counter = Counter()
    peer.context.setPositions(NM_PER_A * begin)
    peer.context.getState(getEnergy=True, getForces=True)
    start = time.perf_counter()
    LocalEnergyMinimizer.minimize(peer.context, tolerance, 0, counter)
    seconds = time.perf_counter() - start
    end = peer.context.getState(getPositions=True).getPositions(asNumpy=True)
    return Run(np.asarray(end.value_in_unit(unit.angstrom)), seconds, iterations=counter.count)


def compare(name: str, options: argparse.Namespace) -> None:
    """Print the lines of a system."""
    topology, system, positions = openmm_system(name, *FIELDS[options.field])
    atoms = Atoms.from_openmm(topology, system, positions)
    peer = context_of(system, options.platform, options.peer_precision) if options.platform != "none" else None
    exact = Energy(atoms, model=MODEL, precision="float64", device=options.device)
    for noise in options.noise:
        starts = starts_of(atoms, noise, options.starts)
        for tolerance in options.tolerance:
            plan = minimizer_of(atoms, options.method, tolerance, options.precision, options.device)
            plan.energy.evaluate(starts[0])
            rows = [one(plan, peer, exact, start, tolerance, options) for start in starts]
            plan.energy.repeat(10)
            count = max(10, int(0.3 / timed(plan, 10) * 10))
            evaluation = timed(plan, count) / count
            report(name, noise, tolerance, rows, evaluation, plan)
            if options.batch:
                together(plan, atoms, noise, options.batch)


def timed(plan: Minimizer, count: int) -> float:
    """Seconds of so many evaluations whose positions and results stay on the device."""
    start = time.perf_counter()
    plan.energy.repeat(count)
    return time.perf_counter() - start


def one(
    plan: Minimizer, peer: OpenMM | None, exact: Energy, start: Any, tolerance: float, options: argparse.Namespace
) -> list[float]:
    """Seconds, iterations, evaluations, energy and rms of ours; seconds, iterations, energy and rms of OpenMM's."""
    plan.minimize(start)
    run = by_us(plan, start)
    row = [run.seconds, run.iterations or 0, run.evaluations or 0, *end_of(exact, run.positions)]
    if peer is not None:
        limited = options.limit is not None
        run = counted(peer, start, tolerance, options.limit) if limited else by_openmm(peer, start, tolerance)
        steps = counted(peer, start, tolerance) if options.count and not limited else run
        row += [run.seconds, steps.iterations or 0, *end_of(exact, run.positions)]
    return row


def report(
    name: str, noise: float, tolerance: float, rows: list[list[float]], evaluation: float, plan: Minimizer
) -> None:
    """Print what was measured of some starts: means."""
    seconds, steps, evaluations, energy, rms, *theirs = map(mean, zip(*rows, strict=True))
    line = (
        f"{name:12s} noise {noise:3.1f} A, tol {tolerance:5.2f} kJ/mol/nm: "
        f"ours {seconds:8.4f} s, {steps:7.1f} iterations, "
        f"{evaluations / max(1, steps):.3f} evaluations each, {seconds / evaluations / evaluation:.2f} x "
        f"{1e3 * evaluation:.4f} ms, {energy:.2f} kcal/mol, rms {rms:.3f}"
    )
    if theirs:
        their_seconds, their_steps, their_energy, their_rms = theirs
        line += (
            f"; OpenMM {their_seconds:8.4f} s = {their_seconds / seconds:.2f}x, {their_steps:.1f} iterations, "
            f"{their_energy:.2f} kcal/mol, rms {their_rms:.3f}; ours less theirs "
            f"{100 * (energy - their_energy) / abs(their_energy):+.4f} %"
        )
        worst = max((row[3] - row[7]) / abs(row[7]) for row in rows)
        line += f", worst {100 * worst:+.4f} %"
    print(f"{line}; {plan.energy.precision}, {plan.energy.variant} on {plan.energy.device}", flush=True)


def together(plan: Minimizer, atoms: Atoms, noise: float, count: int) -> None:
    """Print the time of many starts minimised together."""
    rng = np.random.default_rng(2)
    starts = atoms.positions + noise * rng.normal(size=(count, *atoms.positions.shape))
    begin = time.perf_counter()
    batch = plan.minimize_batch(starts)
    seconds = time.perf_counter() - begin
    print(
        f"{count} starts together: {seconds:.3f} s = {1e3 * seconds / count:.3f} ms each, "
        f"{mean(r.iterations for r in batch):.0f} iterations, {sum(r.converged for r in batch)} converged",
        flush=True,
    )


def main() -> None:
    """Read the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)

    def floats(text: str) -> list[float]:
        return [float(word) for word in text.split(",")]

    parser.add_argument("--platform", default="CUDA", help="of OpenMM, or none")
    parser.add_argument("--device")
    parser.add_argument("--systems", default="ubiquitin,src3,ruvab", type=lambda text: text.split(","))
    parser.add_argument("--field", default="implicit", choices=FIELDS)
    parser.add_argument("--noise", default=[0.1], type=floats)
    parser.add_argument("--tolerance", default=[10.0, 1.0], type=floats)
    parser.add_argument("--starts", default=1, type=int)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--peer-precision", default="mixed", choices=("single", "mixed", "double"), help="of OpenMM")
    parser.add_argument("--limit", type=float, help="seconds after which OpenMM is ended")
    parser.add_argument("--method", default="lbfgs")
    parser.add_argument("--batch", default=0, type=int)
    parser.add_argument("--count", action="store_true", help="count OpenMM's iterations")
    options = parser.parse_args()
    for name in options.systems:
        compare(name, options)


if __name__ == "__main__":
    main()
