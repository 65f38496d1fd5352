"""Time of binding energies, compared with OpenMM and with the published time of MMPBSA.py.

    python tests/benchmarks/binding.py [--device D] [--frames 200] [--openmm CPU|CUDA|none] [--openmm-frames 5]
        [--systems]

The system is a complex of two proteins (chains D and G of data/structures/ruvab.pdb.gz, 5,658 atoms) in 200 frames,
igb 5 (OBC II) without cutoff. pele-ocl also computes LCPO surfaces, unlike the OpenMM script, which uses a Context for
each of complex, receptor and ligand, and sets positions and computes the energy frame by frame. The time of MMPBSA.py
is taken from its paper (Miller et al., J. Chem. Theory Comput. 8, 3314 (2012)): 25.4 minutes for 200 frames of 5,910
atoms, on one core of another machine. Times are total wall times, without compilation of kernels.

--systems also times the three systems separately, and the complex without surface and without solvent.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import pele_ocl
from pele_ocl import Atoms, Binding, SolventModel

STRUCTURE = Path(__file__).parents[2] / "data" / "structures" / "ruvab.pdb.gz"
MMPBSA_SECONDS = 25.4 * 60 / 200  # a frame
A_PER_NM, KCAL = 10.0, 4.184


def trembling(atoms: Atoms, m: int) -> np.ndarray:
    """Return m frames with random displacements of a few hundredths of an Angstrom."""
    rng = np.random.default_rng(0)
    return (atoms.positions + rng.normal(0, 0.02, (m, *atoms.positions.shape))).astype(np.float32)


def openmm_seconds(plan: Binding, frames: np.ndarray, platform: str) -> tuple[float, np.ndarray]:
    """Return OpenMM's time per frame in seconds, and its binding energies without a surface term, kcal/mol."""
    import openmm

    parts = {"complex": slice(None), "receptor": plan.parts.receptor, "ligand": plan.parts.ligand}
    contexts = {name: context_of(plan.plans[name].atoms, openmm, platform) for name in parts}

    def energy(name: str, x: np.ndarray) -> float:
        contexts[name].setPositions(x[parts[name]] / A_PER_NM)
        return contexts[name].getState(getEnergy=True).getPotentialEnergy()._value / KCAL

    def delta(x: np.ndarray) -> float:
        return energy("complex", x) - energy("receptor", x) - energy("ligand", x)

    delta(frames[0])
    start = time.perf_counter()
    found = np.array([delta(x.astype(float)) for x in frames])
    return (time.perf_counter() - start) / len(frames), found


def context_of(atoms: Atoms, openmm, platform: str):
    """Return a Context with Lennard-Jones, Coulomb and GB energies; bonded terms cancel."""
    system, nonbonded, gb = openmm.System(), openmm.NonbondedForce(), openmm.GBSAOBCForce()
    gb.setSolventDielectric(78.5), gb.setSurfaceAreaEnergy(0.0)
    sigma, epsilon = atoms.lj_sigma / A_PER_NM, atoms.lj_epsilon * KCAL
    for k in range(len(atoms)):
        system.addParticle(12.0)
        nonbonded.addParticle(atoms.charges[k], sigma[k], epsilon[k])
        gb.addParticle(atoms.charges[k], atoms.gb_radii[k] / A_PER_NM, atoms.gb_scales[k])
    seen = set()
    for pair in map(tuple, np.sort(pele_ocl.pairs.nonbonded_pairs(atoms).excluded, axis=1).tolist()):
        if pair not in seen:
            seen.add(pair)
            nonbonded.addException(*pair, 0.0, 1.0, 0.0)
    system.addForce(nonbonded), system.addForce(gb)
    integrator = openmm.VerletIntegrator(0.001)
    return openmm.Context(system, integrator, openmm.Platform.getPlatformByName(platform))


def rate(of, frames: np.ndarray) -> float:
    """Return milliseconds per frame of a plan, the best of three, with compiled kernels."""
    of.evaluate_batch(frames[:2])
    times = []
    for _ in range(3):
        start = time.perf_counter()
        of.evaluate_batch(frames)
        times.append(time.perf_counter() - start)
    return 1e3 * min(times) / len(frames)


def print_systems(plan: Binding, frames: np.ndarray) -> None:
    """Print the time of each of the three systems, and of the terms of the complex."""
    parts = {"complex": slice(None), "receptor": plan.parts.receptor, "ligand": plan.parts.ligand}
    times = {name: rate(plan.plans[name], frames[:, own]) for name, own in parts.items()}
    print("; ".join(f"{name} {ms:.1f}" for name, ms in times.items()) + f": {sum(times.values()):.1f} ms per frame")
    for what, changes in (
        ("without a surface", {"surface": "none"}),
        ("and without rgbmax", {"surface": "none", "born_cutoff": None}),
        ("without solvent", {"surface": "none", "gb": "none"}),
    ):
        model = SolventModel.like("gmx", **changes)
        other = pele_ocl.Energy(plan.atoms, gradient=False, model=model, device=plan.device)
        print(f"complex {what}: {rate(other, frames):.1f} ms per frame")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--openmm", default="CPU")
    parser.add_argument("--openmm-frames", type=int, default=5)
    parser.add_argument("--systems", action="store_true")
    given = parser.parse_args()
    atoms = pele_ocl.read(STRUCTURE).select("chain D or chain G").with_radii("mbondi2")
    frames = trembling(atoms, given.frames)
    model = SolventModel.like("gmx")
    plan = Binding(atoms, "chain G", model=model, device=given.device)
    plan.evaluate_batch(frames[:8])
    times = []
    for _ in range(3):
        start = time.perf_counter()
        found = plan.evaluate_batch(frames)
        times.append((time.perf_counter() - start) / len(frames))
    ours = float(np.median(times))
    print(f"{plan}\n{len(atoms):,} atoms, {len(frames)} frames: {1e3 * ours:.2f} ms per frame, median of 3")
    print(f"MMPBSA.py's paper {MMPBSA_SECONDS:.2f} s per frame: {MMPBSA_SECONDS / ours:,.0f} times as long")
    if given.systems:
        print_systems(plan, frames[:16])
    few = frames[:3]
    if plan.device.has_float64:
        exact = Binding(atoms, "chain G", model=model, device=given.device, precision="float64").evaluate_batch(few)
        away = {term: np.abs(v[:3] - exact.delta.columns()[term]).max() for term, v in found.delta.columns().items()}
        worst = max(away, key=away.get)
        print(f"float32 from float64: total {away['total']:.1e}, at most {away[worst]:.1e} ({worst}) kcal/mol")
    if given.openmm != "none":
        seconds, energies = openmm_seconds(plan, frames[: given.openmm_frames], given.openmm)
        like = Binding(atoms, "chain G", model=SolventModel.like("openmm", surface="none"), device=given.device)
        away = float(np.abs(energies - like.evaluate_batch(frames[: len(energies)]).total).max())
        print(f"OpenMM's {given.openmm} {1e3 * seconds:.2f} ms per frame: {seconds / ours:,.1f} times as long")
        print(f"binding energies with OpenMM's constants differ by {away:.2g} kcal/mol from OpenMM's")


if __name__ == "__main__":
    main()
