"""Steps of a model of alanine dipeptide that torch trains on its energy, 256 samples each, and OpenMM's host loop.

python tests/benchmarks/torch_training.py [--steps 10000] [--openmm-steps 3] [--platform CPU] [--device D]

A step draws samples from a model of independent normal numbers around a structure, half of them 0.5 A wide and more, so
that atoms clash, and evaluates them with gradients. Needs torch and OpenMM.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from dipeptide import pdb_of_dipeptide

import pele_ocl
import pele_ocl.torch

SAMPLES = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--openmm-steps", type=int, default=3)
    parser.add_argument("--platform", default="CPU")
    parser.add_argument("--device")
    options = parser.parse_args()
    path = Path(tempfile.mkdtemp()) / "dipeptide.pdb"
    path.write_text(pdb_of_dipeptide())
    atoms = pele_ocl.minimize(path, model=pele_ocl.SolventModel(gb="none"), device=options.device).atoms
    model = pele_ocl.SolventModel(gb="none")
    rows = pele_ocl.Ensemble(atoms, SAMPLES, model=model, device=options.device)
    torch.manual_seed(1)
    middle = torch.tensor(atoms.positions, dtype=torch.float32, requires_grad=True)
    width = torch.full_like(middle, -3.0).detach().requires_grad_()  # logarithms, A
    steps, lost, least = torch.optim.Adam([middle, width], lr=1e-3), 0, np.inf
    wide = torch.ones(SAMPLES, 1, 1)
    wide[::2] = 10.0
    inside = 0.0
    begin = time.perf_counter()
    for _ in range(options.steps):
        steps.zero_grad()
        x = middle + wide * width.exp() * torch.randn(SAMPLES, *middle.shape)
        called = time.perf_counter()
        energies = pele_ocl.torch.energies(rows, x, failed="inf")
        inside += time.perf_counter() - called
        good = torch.isfinite(energies) & (energies < 1e6)
        lost += int((~good).sum())
        loss = energies[good].clamp(max=1e4).mean() / 0.6 - width.sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([middle, width], 1.0)
        steps.step()
        least = min(least, float(energies.detach().min()))
    seconds = time.perf_counter() - begin
    device = rows.device
    print(f"{options.steps:,} steps of {SAMPLES} samples on {device}: {1e3 * seconds / options.steps:.2f} ms a step,")
    print(f"{1e3 * inside / options.steps:.2f} ms of it energies and gradients; {lost:,} samples left out of the loss")
    x = (middle + wide * width.exp() * torch.randn(SAMPLES, *middle.shape)).detach().numpy()
    beside = 1e3 * openmm_seconds(path, x, options)
    print(f"OpenMM {options.platform}: {beside:.2f} ms for energies and forces of a step")


def openmm_seconds(path: Path, positions: np.ndarray, options: argparse.Namespace) -> float:
    """Seconds for energies and forces of all samples in one context, one after the other."""
    import openmm
    from openmm import app, unit

    pdb = app.PDBFile(str(path))
    system = app.ForceField("amber99sb.xml").createSystem(pdb.topology, nonbondedMethod=app.NoCutoff)
    platform = openmm.Platform.getPlatformByName(options.platform)
    context = openmm.Context(system, openmm.VerletIntegrator(1 * unit.femtosecond), platform)
    times = []
    for _ in range(options.openmm_steps):
        begin = time.perf_counter()
        for x in positions:
            context.setPositions(0.1 * x)
            state = context.getState(getEnergy=True, getForces=True)
            state.getPotentialEnergy()
            state.getForces(asNumpy=True)
        times.append(time.perf_counter() - begin)
    return min(times)


if __name__ == "__main__":
    main()
