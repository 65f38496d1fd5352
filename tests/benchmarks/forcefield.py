"""Evaluation time of a complete force field with GBn2, compared with OpenMM, and the time of bonded terms.

python tests/benchmarks/forcefield.py [PLATFORM [SYSTEM,... [DEVICE ...]]] builds amber14-all with implicit/gbn2.xml, no
cutoff, in OpenMM, converts the same system by pele_ocl.from_openmm, and times both in turn: OpenMM in steps of
molecular dynamics, pele-ocl in evaluations with positions and results on the device. By default, PLATFORM is CUDA, and
all included systems are used. Several devices are measured in turn with OpenMM:

    python tests/benchmarks/forcefield.py CPU ubiquitin intel pocl
"""

from __future__ import annotations

import gzip
import io
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
from timing_tables.openmm import OpenMM

from pele_ocl import Energy, SolventModel, from_openmm
from pele_ocl.common.installation import shipped
from pele_ocl.energy.result import PASS_TERMS

SYSTEMS = ("ubiquitin", "src3", "ruvab")
ROUNDS, TURN_SECONDS = 5, 0.3


def openmm_system(name: str, *files: str) -> tuple[Any, Any, Any]:
    """Return OpenMM's Topology, System and positions of an included structure, without cutoff and constraints.

    files : of the force field, by default amber14 with GBn2
    """
    from openmm import app

    path = next((shipped("data") / "structures").glob(f"{name}.pdb*"))
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    pdb = app.PDBFile(io.StringIO(text))
    field = app.ForceField(*(files or ("amber14-all.xml", "implicit/gbn2.xml")))
    system = field.createSystem(pdb.topology, nonbondedMethod=app.NoCutoff, constraints=None)
    return pdb.topology, system, pdb.getPositions(asNumpy=True)


def in_turns(works: list[Callable[[int], None]]) -> list[float]:
    """Return the median seconds per item of some works, timed alternately; a work gets the number of items to run."""
    counts = []
    for work in works:
        work(3)
        start = time.perf_counter()
        work(3)
        counts.append(max(1, int(3 * TURN_SECONDS / (time.perf_counter() - start))))
    times: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, count, taken in zip(works, counts, times, strict=True):
            start = time.perf_counter()
            work(count)
            taken.append((time.perf_counter() - start) / count)
    return [median(taken) for taken in times]


def compare(name: str, platform: str, devices: Sequence[str | None]) -> None:
    """Print the line of a system and device."""
    topology, system, positions = openmm_system(name)
    atoms = from_openmm(topology, system, positions)
    model = SolventModel.like("openmm", gb="gbn2")
    whole = [Energy(atoms, model=model, device=device) for device in devices]
    passes = [Energy(atoms, model=model, device=device, only_terms=PASS_TERMS) for device in devices]
    peer = OpenMM.of(system, atoms.positions, platform, "float32")
    theirs, *times = in_turns([peer.step, *(plan.repeat for plan in (*whole, *passes))])
    energy, gradient = peer.evaluate()
    for plan, ours, without in zip(whole, times, times[len(whole) :], strict=False):
        result = plan.evaluate()
        error = np.linalg.norm(result.gradient - gradient) / np.linalg.norm(gradient)
        print(
            f"{name:9s} {len(atoms):6,d} atoms: ours {1e3 * ours:8.4f} ms, OpenMM {platform} {1e3 * theirs:9.4f} ms = "
            f"{theirs / ours:.2f}x; bonded terms and 1-4 pairs {100 * (ours - without) / ours:.1f} %; energies "
            f"{result.total:.3f} and {energy:.3f} kcal/mol, gradients differ by {error:.1e}; "
            f"{plan.variant} on {plan.device}",
            flush=True,
        )


if __name__ == "__main__":
    platform_name = sys.argv[1] if len(sys.argv) > 1 else "CUDA"
    for system_name in sys.argv[2].split(",") if len(sys.argv) > 2 else SYSTEMS:
        compare(system_name, platform_name, sys.argv[3:] or [None])
