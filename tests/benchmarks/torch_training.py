"""Training steps of a normalizing flow for alanine dipeptide in torch, compared with a host loop over OpenMM.

python tests/benchmarks/torch_training.py [--steps 10000] [--openmm-steps 3] [--platform CPU] [--device D]

A step draws samples of a flow of two layers around a structure, half of them ten times as wide, so that atoms clash,
and evaluates them with gradients. Needs torch, and OpenMM unless --openmm-steps is 0.
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


class Flow(torch.nn.Module):
    """A normalizing flow around a structure: normal numbers with two affine coupling layers, each for one half."""

    def __init__(self, middle: torch.Tensor) -> None:
        super().__init__()
        n = middle.numel()
        self.middle = torch.nn.Parameter(middle)
        self.width = torch.nn.Parameter(torch.full((n,), -3.0))  # logarithms, A
        self.register_buffer("mask", torch.arange(n) % 2 == 0)
        self.nets = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(n, 64), torch.nn.SiLU(), torch.nn.Linear(64, 2 * n)) for _ in range(2)
        )

    def forward(self, wide: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return samples (m, n, 3), with widths scaled by `wide` (m, 1, 1), and log-volumes, (m,)."""
        z = torch.randn(len(wide), self.width.numel())
        log = self.width.sum().expand(len(wide))
        for k, net in enumerate(self.nets):
            half = self.mask if k else ~self.mask
            shift, scale = net(torch.where(half, z, 0.0)).chunk(2, 1)
            scale = torch.where(half, 0.0, 0.1 * torch.tanh(scale))
            z, log = z * scale.exp() + torch.where(half, 0.0, 0.1 * shift), log + scale.sum(1)
        return self.middle + wide * (self.width.exp() * z).reshape(-1, *self.middle.shape), log


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
    flow = Flow(torch.tensor(atoms.positions, dtype=torch.float32))
    steps, lost, raised = torch.optim.Adam(flow.parameters(), lr=1e-4), 0, 0
    first: list[float] = []
    wide = torch.ones(SAMPLES, 1, 1)
    wide[::2] = 10.0
    inside = 0.0
    begin = time.perf_counter()
    for _ in range(options.steps):
        steps.zero_grad()
        x, log = flow(wide)
        called = time.perf_counter()
        try:
            energies = pele_ocl.torch.energies(rows, x, failed="inf")
        except pele_ocl.PeleError:
            raised += 1
            continue
        inside += time.perf_counter() - called
        good = torch.isfinite(energies) & (energies < 1e6)
        lost += int((~good).sum())
        loss = (energies[good].clamp(max=1e4) / 0.6 - log[good]).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(flow.parameters(), 1.0)
        steps.step()
        first.append(float(energies.detach()[1::2].median()))
    seconds = time.perf_counter() - begin
    device = rows.device
    print(f"{options.steps:,} steps of {SAMPLES} samples on {device}: {1e3 * seconds / options.steps:.2f} ms per step,")
    print(f"{1e3 * inside / options.steps:.2f} ms of it energies and gradients; {lost:,} samples left out of the loss;")
    n = max(1, len(first) // 10)
    print(f"{raised} batches raised; median energy of narrow samples {np.mean(first[:n]):.0f} kcal/mol in the first "
          f"tenth, {np.mean(first[-n:]):.0f} in the last")  # fmt: skip
    if not options.openmm_steps:
        return
    x = flow(wide)[0].detach().numpy()
    beside = 1e3 * openmm_seconds(path, x, options)
    print(f"OpenMM {options.platform}: {beside:.2f} ms for energies and forces of a step")


def openmm_seconds(path: Path, positions: np.ndarray, options: argparse.Namespace) -> float:
    """Return the time of energies and forces of all samples in one context, one by one, in seconds."""
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
