"""Comparison of all ladders with the peak rates of a device, and the limiting factor of each rung."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from ..ladder import NONBOND, POTMAP, SOLVENT
from ..opencl.device import Device
from . import nonbond, potmap, solvent
from .ceilings import Ceilings
from .systems import load

CUTOFF = 8.0  # A, of the pair list
POINTS, ATOMS = 48, 1024  # of the map
SYSTEM = "ubiquitin"
CLOSE = 0.5  # fraction of a peak rate from which it counts as the limit of a rung
KINDS = {"roots": "reciprocal roots", "multiply_adds": "multiply-adds", "bytes": "bytes"}


@dataclass(frozen=True)
class KernelWork:
    """Operations of a kernel per evaluation, in float32. bytes : read and written, including from caches"""

    roots: float
    multiply_adds: float
    bytes: float


@dataclass(frozen=True)
class RungTime:
    """Time of a rung.

    ladder : "potmap", "solvent" or "nonbond"; evaluations : atoms times points, atoms squared, or pairs
    """

    ladder: str
    rung: str
    seconds: float
    evaluations: float
    counts: KernelWork | None

    @property
    def rate(self) -> float:
        """Evaluations per second."""
        return self.evaluations / self.seconds

    def shares(self, ceilings: Ceilings) -> dict[str, float]:
        """Return the fraction of each peak rate reached by the rung; above 1, it skips some of the counted work."""
        assert self.counts is not None
        return {kind: getattr(self.counts, kind) * self.rate / getattr(ceilings, kind) for kind in KINDS}


@cache
def counts() -> dict[str, KernelWork]:
    """Read the operation counts of rungs, measured by tests/benchmarks/counts.py in a simulator."""
    text = (Path(__file__).parent / "counts.json").read_text()
    return {name: KernelWork(**values) for name, values in json.loads(text).items()}


def counts_of(ladder: str, rung: str) -> KernelWork | None:
    """Return the operation counts of a rung, None if unknown."""
    return counts().get(f"{ladder}/{rung}")


def measure_ladders(device: Device, runs: int = 3) -> Iterator[RungTime]:
    """Time all rungs in float32, without checking errors: maps of random charges, radii and pairs of ubiquitin."""
    atoms, grid = potmap.random_system(POINTS, ATOMS)
    names = [name for name, variant in POTMAP.items() if counts_of("potmap", name) and variant.method == "direct"]
    for timing in potmap.measure(atoms, grid, "float32", [device], names, runs):
        yield _rung("potmap", timing.variant, timing.seconds, len(atoms) * len(grid))
    protein = load(SYSTEM)
    for row in solvent.measure(SYSTEM, protein, "float32", device, tuple(SOLVENT), runs):
        yield _rung("solvent", row.variant, row.seconds, len(protein) ** 2)
    case = nonbond.Case.of(SYSTEM, protein, CUTOFF, device)
    for line in nonbond.measure(case, "sorted", "float32", True, device, tuple(NONBOND), runs):
        yield _rung("nonbond", line.variant, line.seconds, line.n_pairs)


def _rung(ladder: str, name: str, seconds: float, evaluations: float) -> RungTime:
    return RungTime(ladder, name, seconds, evaluations, counts_of(ladder, name))


def why(rung: RungTime, ceilings: Ceilings) -> str:
    """Return a sentence about what limits a rung."""
    if rung.counts is None:
        return f"{rung.rung}: not counted"
    shares = rung.shares(ceilings)
    others = ", ".join(f"{KINDS[kind]} {100 * share:.0f} %" for kind, share in shares.items())
    computing = max("roots", "multiply_adds", key=lambda kind: shares[kind])
    most = max((kind for kind in shares if shares[kind] <= 1), key=lambda kind: shares[kind], default=computing)
    if shares[computing] > 1:
        reason = f"faster than the counted {KINDS[computing]} allow: it performs fewer operations"
    elif shares[most] >= CLOSE:
        reason = f"limited by {KINDS[most]}"
    elif shares["bytes"] > 1:
        reason = f"served by caches; it reads {shares['bytes']:.1f} times the bandwidth of memory"
    elif shares[most] >= CLOSE / 5:
        reason = f"no single limit; {KINDS[most]} are the largest share"
    else:
        reason = "limited by latency; most vector lanes are idle"
    return f"{rung.rung}: {reason} ({others} of the device's maximum)"


def what_was_seen(rungs: list[RungTime], ceilings: Ceilings) -> str:
    """Return a sentence that summarizes the rungs of a ladder."""
    slowest, fastest = min(rungs, key=lambda rung: rung.rate), max(rungs, key=lambda rung: rung.rate)
    gain = fastest.rate / slowest.rate
    steps = [(after.rate / before.rate, before, after) for before, after in pairwise(rungs)]
    largest, before, after = max(steps, key=lambda step: step[0])
    reason = why(fastest, ceilings).partition(": ")[2]
    return (
        f"In short: {fastest.rung} is {gain:,.0f} times as fast as {slowest.rung}; the largest step, {largest:,.1f} "
        f"times, is from {before.rung} to {after.rung}; of {fastest.rung}, {reason}."
    )
