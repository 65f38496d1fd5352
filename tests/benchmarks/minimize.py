"""Comparison of minimization with OpenMM's LocalEnergyMinimizer: wall time, iterations, and final energies.

python tests/benchmarks/minimize.py [--platform CUDA] [--systems ubiquitin,src3] [--noise 0.1] [--tolerance 1,10]
    [--starts 5] [--skip 3] [--batch 1000] [--device NAME] [--field gbsaobc] [--limit SECONDS]

builds Amber99SB with OBC II, no cutoff, in OpenMM, converts the same system by from_openmm, and minimizes both from the
same positions, with --noise added in A. Final energies and rms gradients of both are computed by pele-ocl in float64.
There is a line for each start, and one with the means; --skip omits the first starts, if they were measured before.
--batch minimizes this number of starts of each system together. --limit stops OpenMM after this time, which may be
needed on CPUs; the ratio is then a lower bound.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
from forcefield import openmm_system
from timing_tables.minimize import MODEL, Minimized, by_openmm, by_us, end_of, minimizer_of, starts_of
from timing_tables.openmm import NM_PER_A, STEP_PS, OpenMM

from pele_ocl import Atoms, Energy, Minimizer, from_openmm

# OpenMM's two ways to OBC II: of CustomGBForce, as its manual has it, and of the older and faster GBSAOBCForce.
FIELDS = {"implicit": ("amber99sb.xml", "implicit/obc2.xml"), "gbsaobc": ("amber99sb.xml", "amber99_obc.xml")}


class End(NamedTuple):
    """End of one minimization: energy in kcal/mol, rms gradient in kJ/mol/nm; OpenMM does not report evaluations."""

    seconds: float
    iterations: float
    evaluations: float
    energy: float
    rms: float

    @staticmethod
    def mean(ends: Sequence[End]) -> End:
        """Return the mean of each number."""
        return End(*map(mean, zip(*ends, strict=True)))


Pair = tuple[End, End | None]  # ours and OpenMM's, None without OpenMM


def context_of(system: Any, platform: str, precision: str) -> OpenMM:
    """Return a Context of a system on a platform, in OpenMM's "mixed" precision, which only this script uses."""
    from openmm import Context, Platform, VerletIntegrator

    properties = {"Precision": precision} if platform in ("CUDA", "OpenCL") else {}
    integrator = VerletIntegrator(STEP_PS)
    return OpenMM(Context(system, integrator, Platform.getPlatformByName(platform), properties), platform)


def counted(peer: OpenMM, begin: Any, tolerance: float, limit: float | None = None) -> Minimized:
    """Minimize one start with OpenMM for at most `limit` seconds, counting iterations, which is slower on GPUs."""
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
    return Minimized(np.asarray(end.value_in_unit(unit.angstrom)), seconds, iterations=counter.count)


def compare(name: str, options: argparse.Namespace) -> None:
    """Print the lines of a system."""
    topology, system, positions = openmm_system(name, *FIELDS[options.field])
    atoms = from_openmm(topology, system, positions)
    peer = context_of(system, options.platform, options.peer_precision) if options.platform != "none" else None
    exact = Energy(atoms, model=MODEL, precision="float64", device=options.device)
    for noise in options.noise:
        starts = starts_of(atoms, noise, options.starts)[options.skip :]
        for tolerance in options.tolerance:
            plan = minimizer_of(atoms, options.method, tolerance, options.precision, options.device)
            plan.energy.evaluate(starts[0])
            pairs = []
            for number, start in enumerate(starts, options.skip + 1):
                pairs.append(one(plan, peer, exact, start, tolerance, options))
                if options.starts > 1:
                    print(f"start {number}: {described(*pairs[-1])}", flush=True)
            plan.energy.repeat(10)
            count = max(10, int(0.3 / timed(plan, 10) * 10))
            evaluation = timed(plan, count) / count
            report(name, noise, tolerance, pairs, evaluation, plan)
            if options.batch:
                together(plan, atoms, noise, options.batch)


def timed(plan: Minimizer, count: int) -> float:
    """Time evaluations whose positions and results stay on the device, in seconds."""
    start = time.perf_counter()
    plan.energy.repeat(count)
    return time.perf_counter() - start


def one(
    plan: Minimizer, peer: OpenMM | None, exact: Energy, start: Any, tolerance: float, options: argparse.Namespace
) -> Pair:
    """Minimize one start with pele-ocl and with OpenMM."""
    plan.minimize(start)
    run = by_us(plan, start)
    ours = End(run.seconds, run.iterations or 0, run.evaluations or 0, *end_of(exact, run.positions))
    if peer is None:
        return ours, None
    limited = options.limit is not None
    run = counted(peer, start, tolerance, options.limit) if limited else by_openmm(peer, start, tolerance)
    steps = counted(peer, start, tolerance) if options.count and not limited else run
    return ours, End(run.seconds, steps.iterations or 0, 0, *end_of(exact, run.positions))


def described(ours: End, theirs: End | None) -> str:
    """Describe both results."""
    text = (
        f"ours {ours.seconds:8.4f} s, {ours.iterations:7.1f} iterations, {ours.energy:.2f} kcal/mol, rms {ours.rms:.3f}"
    )
    if theirs is None:
        return text
    return (
        f"{text}; OpenMM {theirs.seconds:8.4f} s = {theirs.seconds / ours.seconds:.2f}x, {theirs.iterations:.1f} "
        f"iterations, {theirs.energy:.2f} kcal/mol, rms {theirs.rms:.3f}; ours less theirs {above(ours, theirs):+.4f} %"
    )


def above(ours: End, theirs: End) -> float:
    """Return how much higher pele-ocl's final energy is, in percent."""
    return 100 * (ours.energy - theirs.energy) / abs(theirs.energy)


def report(name: str, noise: float, tolerance: float, pairs: list[Pair], evaluation: float, plan: Minimizer) -> None:
    """Print the results of some starts: means, and the start with the highest energy relative to OpenMM."""
    ours = End.mean([pair[0] for pair in pairs])
    both = [(ours, theirs) for ours, theirs in pairs if theirs is not None]
    theirs = End.mean([pair[1] for pair in both]) if both else None
    line = (
        f"{name:12s} noise {noise:3.1f} A, tol {tolerance:5.2f} kJ/mol/nm: {described(ours, theirs)}; an iteration is "
        f"{ours.evaluations / max(1, ours.iterations):.3f} evaluations, each "
        f"{ours.seconds / ours.evaluations / evaluation:.2f} x {1e3 * evaluation:.4f} ms"
    )
    if both:
        line += f"; highest start {max(above(*pair) for pair in both):+.4f} %"
    print(f"{line}; {plan.energy.precision}, {plan.energy.variant} on {plan.energy.device}", flush=True)


def together(plan: Minimizer, atoms: Atoms, noise: float, count: int) -> None:
    """Print the time of many starts minimized together."""
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
    parser.add_argument("--skip", default=0, type=int, help="so many of the first starts")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--peer-precision", default="mixed", choices=("single", "mixed", "double"), help="of OpenMM")
    parser.add_argument("--limit", type=float, help="seconds after which OpenMM is ended")
    parser.add_argument("--method", default="lbfgs")
    parser.add_argument("--batch", default=0, type=int)
    parser.add_argument("--count", action="store_true", help="count OpenMM's iterations")
    options = parser.parse_args()
    if options.skip >= options.starts:
        parser.error("--skip leaves no start")
    for name in options.systems:
        compare(name, options)


if __name__ == "__main__":
    main()
