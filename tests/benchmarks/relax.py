"""Comparison of `pele-ocl relax` with AlphaFold's protocol in OpenMM for each model, including preparation.

python tests/benchmarks/relax.py MODEL.pdb... [--platform CPU] [--rounds 3] [--like alphafold] [--no-peer] [--heavy]

OpenMM's side prepares each model by PDBFixer, as AlphaFold does, and minimizes it by LocalEnergyMinimizer: Amber99SB
in vacuum, bonds to hydrogen constrained, heavy atoms restrained by 1/2 10 kcal/mol/A^2, to 2.39 kcal/mol/nm, in rounds
that release the residues with violations. Violations of both are determined by the same rules. --heavy first removes
hydrogens from the files, which included structures contain.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pele_ocl.formats import read_structure
from pele_ocl.relax import Relaxer, Violation, Violations, counts

STIFFNESS, TOLERANCE = 10.0, 2.39  # kcal/mol/A^2, kcal/mol/nm
JOULE = 4.184


def by_openmm(path: Path, platform: str, rounds: int, most: int) -> tuple[dict[str, int], int, float, float]:
    """Return the remaining violations, rounds, and seconds of preparation and in total."""
    from openmm import app
    from pdbfixer import PDBFixer

    begin = time.perf_counter()
    fixer = PDBFixer(filename=str(path))
    fixer.findMissingResidues()
    fixer.missingResidues = {}
    fixer.findNonstandardResidues()
    fixer.replaceNonstandardResidues()
    fixer.removeHeterogens(keepWater=False)
    fixer.findMissingAtoms()
    fixer.addMissingAtoms(seed=0)
    fixer.addMissingHydrogens()
    prepared = time.perf_counter() - begin
    text = io.StringIO()
    app.PDBFile.writeFile(fixer.topology, fixer.positions, text, keepIds=True)
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.pdb"
        ready.write_text(text.getvalue())
        labels = read_structure(ready).labels
    rule, positions, freed, count = Violations(labels), fixer.positions, set[int](), 0
    left: list[Violation] | None = None
    while left is None or (count < rounds and any(violation.counts for violation in left)):
        count += 1
        positions = _minimized(fixer.topology, positions, freed, platform, most)
        left = rule.find(10 * np.array(positions.value_in_unit(positions.unit)))
        freed |= set(rule.residues([v for v in left if v.counts]).tolist())
    return _counted(left), count, prepared, time.perf_counter() - begin


def _counted(violations: Sequence[Violation]) -> dict[str, int]:
    """Count the violations by AlphaFold's rules, by kind."""
    return counts([violation for violation in violations if violation.counts])


def _minimized(topology: Any, positions: Any, freed: set[int], platform: str, most: int) -> Any:
    """Return the positions after one round."""
    import openmm
    from openmm import app, unit

    system = app.ForceField("amber99sb.xml").createSystem(topology, constraints=app.HBonds)
    force = openmm.CustomExternalForce("0.5 * k * ((x-x0)^2 + (y-y0)^2 + (z-z0)^2)")
    force.addGlobalParameter("k", STIFFNESS * 100 * JOULE)
    for name in ("x0", "y0", "z0"):
        force.addPerParticleParameter(name)
    for atom in topology.atoms():
        if atom.element.symbol != "H" and atom.residue.index not in freed:
            force.addParticle(atom.index, positions[atom.index])
    system.addForce(force)
    integrator = openmm.LangevinIntegrator(0, 0.01, 0.0)
    simulation = app.Simulation(topology, system, integrator, openmm.Platform.getPlatformByName(platform))
    simulation.context.setPositions(positions)
    tolerance = TOLERANCE * JOULE * unit.kilojoule_per_mole / unit.nanometer
    simulation.minimizeEnergy(tolerance=tolerance, maxIterations=most)
    return simulation.context.getState(getPositions=True).getPositions().in_units_of(unit.nanometer)


def main() -> None:
    """Read the options and print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--platform", default="CPU")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--like", default="alphafold")
    parser.add_argument("--device")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--heavy", action="store_true")
    options = parser.parse_args()
    relaxer, sums, folder = Relaxer(options.like, device=options.device), np.zeros(4), tempfile.TemporaryDirectory()
    for model in options.models:
        path = _heavy(model, Path(folder.name)) if options.heavy else model
        result = relaxer.relax(path)
        ours = result.seconds
        row = [ours["preparation"], ours["total"], 0.0, 0.0]
        line = (
            f"{model.name}: {len(result.atoms):,} atoms, {_counted(result.before) or 'clean'}; ours "
            f"{row[0]:.2f} + {row[1] - row[0]:.2f} s, {len(result.rounds)} rounds, left "
            f"{_counted(result.after) or 'nothing'}"
        )
        if not options.no_peer:
            most = 2000 if options.like == "colabfold" else 0
            left, rounds, *row[2:] = by_openmm(path, options.platform, options.rounds, most)
            line += f"; OpenMM {row[2]:.2f} + {row[3] - row[2]:.2f} s, {rounds} rounds, left {left or 'nothing'}"
        sums += row
        print(line, flush=True)
    folder.cleanup()
    ours_all, theirs = sums[1], sums[3]
    print(f"{len(options.models)} models: ours {ours_all:.1f} s, of which {sums[0]:.1f} s preparing", end="")
    print(f"; OpenMM {theirs:.1f} s, of which {sums[2]:.1f} s preparing: {theirs / ours_all:.1f}x" if theirs else "")


def _heavy(model: Path, folder: Path) -> Path:
    """Write the file without hydrogens."""
    lines = [line for line in model.read_text().splitlines() if line[:4] != "ATOM" or line[76:78].strip() != "H"]
    (folder / model.name).write_text("\n".join([*lines, ""]))
    return folder / model.name


if __name__ == "__main__":
    main()
