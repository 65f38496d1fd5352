"""Minimization of models with many topologies and sizes in one call, compared with OpenMM's LocalEnergyMinimizer.

python tests/benchmarks/mixed.py [--count 1000] [--residues 100,400] [--noise 0.1] [--tolerance 1] [--sample 10]
    [--platform CUDA] [--field implicit] [--one-by-one] [--device NAME]

cuts --count different chains of --residues residues from the included structures, and adds noise to positions. All are
minimized in one call of minimize_many, whose time includes the preparation of every model; with --one-by-one, they do
not share the device. --sample of them, from the smallest to the largest, are minimized by OpenMM, whose time is printed
with and without the creation of its Context. Final energies of the sample are computed by pele-ocl in float64.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from statistics import mean
from typing import Any

import numpy as np
from minimize import context_of
from timing_tables.minimize import MODEL, MOST_ITERATIONS, by_openmm, end_of
from timing_tables.openmm import NM_PER_A, whole_energy

from pele_ocl import Atoms, Energy, minimize_many, read
from pele_ocl.bench.systems import SYSTEMS
from pele_ocl.common.installation import shipped
from pele_ocl.units import JOULE_PER_CALORIE, KJ_PER_MOL_NM

FOREVER = 1e6  # s; where seconds are limited, models are minimized one after the other
PARENTS = ("src3", "enolase_dimer", "ruvab")


def models_of(count: int, residues: tuple[int, int], noise: float) -> list[Atoms]:
    """Return pieces of chains, with numbers of residues in the given range; noise : A, added to all positions"""
    rng = np.random.default_rng(1)
    parents = [read(shipped("data") / "structures" / SYSTEMS[name]) for name in PARENTS]
    chains = [chain for atoms in parents for chain in _chains_of(atoms) if _length(chain) >= residues[0]]
    models = []
    for _ in range(count):
        chain = chains[rng.integers(len(chains))]
        length = rng.integers(residues[0], min(residues[1], _length(chain)) + 1)
        first = rng.integers(_length(chain) - length + 1)
        assert chain.labels is not None
        residue = chain.labels.residue_index
        model = chain[(residue >= first) & (residue < first + length)]
        models.append(model.moved(model.positions + noise * rng.normal(size=model.positions.shape)))
    return models


def _chains_of(atoms: Atoms) -> list[Atoms]:
    assert atoms.labels is not None
    return [atoms[atoms.labels.chains == chain] for chain in np.unique(atoms.labels.chains)]


def _length(chain: Atoms) -> int:
    assert chain.labels is not None
    return len(chain.labels.residue_starts)


def system_of(atoms: Atoms, field: str) -> Any:
    """Return OpenMM's System with all terms of the atoms; OBC II as in its application layer, or as GBSAOBCForce."""
    import openmm
    from openmm.app.internal.customgbforces import GBSAOBC2Force

    system, bonded = whole_energy(atoms, MODEL), atoms.bonded
    assert bonded is not None
    assert atoms.gb_radii is not None
    assert atoms.gb_scales is not None
    if field == "implicit":
        system.removeForce(system.getNumForces() - 1)
        gb = GBSAOBC2Force(MODEL.solvent_dielectric, MODEL.solute_dielectric, "ACE")
        gb.addParticles(np.column_stack([atoms.charges, atoms.gb_radii * NM_PER_A, atoms.gb_scales]))
        gb.finalize()
        system.addForce(gb)
    kj, bonds, angles = JOULE_PER_CALORIE, openmm.HarmonicBondForce(), openmm.HarmonicAngleForce()
    torsions = openmm.PeriodicTorsionForce()
    for of, (k, r0) in zip(bonded.bonds.atoms.tolist(), bonded.bonds.parameters.tolist(), strict=True):
        bonds.addBond(*of, r0 * NM_PER_A, 2 * k * kj / NM_PER_A**2)
    for of, (k, theta0) in zip(bonded.angles.atoms.tolist(), bonded.angles.parameters.tolist(), strict=True):
        angles.addAngle(*of, theta0, 2 * k * kj)
    for table in (bonded.torsions, bonded.impropers):
        for of, (k, n, phase) in zip(table.atoms.tolist(), table.parameters.tolist(), strict=True):
            torsions.addTorsion(*of, int(n), phase, k * kj)
    for force in (bonds, angles, torsions):
        system.addForce(force)
    return system


def ours(models: Sequence[Atoms], options: argparse.Namespace) -> tuple[float, Sequence[Any]]:
    """Return the time of the call in seconds, including preparation, and the results."""
    begin = time.perf_counter()
    batch = minimize_many(
        models, tolerance=options.tolerance * KJ_PER_MOL_NM, model=MODEL, max_iterations=MOST_ITERATIONS,
        max_seconds=FOREVER if options.one_by_one else None, device=options.device,
    )  # fmt: skip
    return time.perf_counter() - begin, batch


def theirs(atoms: Atoms, options: argparse.Namespace) -> tuple[float, float, Any]:
    """Time OpenMM's minimizer and the creation of its Context, and return the final positions, (n, 3) A."""
    system = system_of(atoms, options.field)
    begin = time.perf_counter()
    peer = context_of(system, options.platform, options.peer_precision)
    preparation = time.perf_counter() - begin
    run = by_openmm(peer, atoms.positions, options.tolerance)
    return run.seconds, preparation, run.positions


def main() -> None:
    """Read the options and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", default=1000, type=int)
    parser.add_argument("--residues", default=(100, 400), type=lambda text: tuple(map(int, text.split(","))))
    parser.add_argument("--noise", default=0.1, type=float)
    parser.add_argument("--tolerance", default=1.0, type=float)
    parser.add_argument("--sample", default=10, type=int)
    parser.add_argument("--platform", default="CUDA", help="of OpenMM, or none")
    parser.add_argument("--field", default="implicit", choices=("implicit", "gbsaobc"))
    parser.add_argument("--peer-precision", default="mixed", choices=("single", "mixed", "double"), help="of OpenMM")
    parser.add_argument("--one-by-one", action="store_true", help="no two of our models share the device")
    parser.add_argument("--device")
    options = parser.parse_args()
    models = models_of(options.count, options.residues, options.noise)
    by_size = np.argsort([len(model) for model in models])
    ours([models[k] for k in by_size[:: max(1, len(models) // 8)]], options)  # builds the kernels
    seconds, batch = ours(models, options)
    sizes = sorted(map(len, models))
    print(
        f"{len(models)} models of {sizes[0]} to {sizes[-1]} atoms, {mean(sizes):.0f} on average, to "
        f"{options.tolerance:g} kJ/mol/nm: {seconds:.2f} s, {1e3 * seconds / len(models):.2f} ms each, "
        f"{mean(result.evaluations for result in batch):.0f} evaluations, "
        f"{sum(result.converged for result in batch)} converged",
        flush=True,
    )
    if options.platform == "none" or not options.sample:
        return
    sample = by_size[np.linspace(0, len(models) - 1, 2 * options.sample + 1).astype(int)[1::2]]
    rows = []
    for k in sample.tolist():
        taken, preparation, positions = theirs(models[k], options)
        exact = Energy(models[k], model=MODEL, precision="float64", device=options.device)
        energies = [end_of(exact, end)[0] for end in (batch[k].positions, positions)]
        rows.append((len(models[k]), taken, preparation, *energies))
        print(
            f"{len(models[k]):6d} atoms: OpenMM {taken:.3f} s, its Context {preparation:.3f} s, "
            f"{energies[1]:.2f} kcal/mol; ours {energies[0]:.2f} kcal/mol",
            flush=True,
        )
    _, taken, preparation, *_ = map(mean, zip(*rows, strict=True))
    above = mean((own - other) / abs(other) for _, _, _, own, other in rows)
    print(
        f"OpenMM {options.platform}, {options.field}: {taken:.3f} s each = {len(models) * taken / seconds:.1f} x ours; "
        f"with Context {taken + preparation:.3f} s = {len(models) * (taken + preparation) / seconds:.1f} x; "
        f"our energies less theirs {100 * above:+.4f} %"
    )


if __name__ == "__main__":
    main()
