"""Ways to rank the series of protein-ligand-benchmark, of which a default is chosen by five of the fifteen targets.

    python tests/benchmarks/ranking.py charges FOLDER SOURCE TARGET...             # MMFF94, needs RDKit
    python tests/benchmarks/ranking.py terms FOLDER OUT TARGET... [--frames 8]     # needs a GPU: a minute a target

FOLDER is what `screen_ranking.py prepare` wrote. `terms` writes OUT/TARGET.json with the terms of the binding energy of
each ligand with two solvent models, in structures refined in several ways.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from screen_ranking import _n_torsions, _read, _source

from pele_ocl import Screener, Simulation, SolventModel
from pele_ocl.energy.terms import PositionalRestraint
from pele_ocl.ensemble import Ensemble
from pele_ocl.screen.molecules import graph_of
from pele_ocl.screen.screener import REFINING, Scored, _Complex

Floats = Any
MODELS = {
    "gbn2": SolventModel(gb="gbn2", surface="lcpo", solute_dielectric=1.0),
    "obc2": SolventModel(gb="obc2", surface="lcpo", solute_dielectric=1.0),
}
_BEGIN, _BETWEEN = 400, 200  # steps of 2 fs before the first frame, and between frames


def charges(folder: Path, source: Path, targets: list[str]) -> None:
    """Write mmff94.json of each target: MMFF94 charges by ligand name."""
    from rdkit import Chem
    from rdkit.Chem.rdForceFieldHelpers import MMFFGetMoleculeProperties

    for target in targets:
        _, names, ligands, _ = _read(folder, target)
        path = str(_source(source, target, "ligands.sdf"))
        found = {of.GetProp("_Name"): of for of in Chem.SDMolSupplier(path, removeHs=False)}
        made = {}
        for name, atoms in zip(names, ligands, strict=True):
            molecule = found[name]
            elements = [of.GetSymbol() for of in molecule.GetAtoms()]
            properties = MMFFGetMoleculeProperties(molecule)
            if properties is None or elements != list(atoms.labels.elements):
                raise SystemExit(f"{target}: {name} has no MMFF94 charges")
            made[name] = [round(properties.GetMMFFPartialCharge(k), 6) for k in range(len(elements))]
        (folder / target / "mmff94.json").write_text(json.dumps(made))
        print(f"{target}: {len(made)} ligands")


# Terms


def _terms(scored: list[Any], n: int, good: list[int]) -> dict[str, list[float | None]]:
    names = [name for name in scored[0].terms if any(abs(of.terms[name]) > 1e-6 for of in scored)]
    found = {name: [None] * n for name in (*names, "strain")}
    for k, one in zip(good, scored, strict=True):
        for name in names:
            found[name][k] = round(float(one.terms[name]), 4)
        found["strain"][k] = round(float(one.strain), 4)
    return found


def _scores(receptor: Any, complexes: list[tuple[Any, int]], n: int, good: list[int]) -> dict[str, Any]:
    found = {}
    for name, model in MODELS.items():
        scored = Screener(receptor, model=model).score(complexes)
        kept = [(k, of) for k, of in zip(good, scored, strict=True) if isinstance(of, Scored)]
        found[name] = _terms([of for _, of in kept], n, [k for k, _ in kept])
    return found


def _adaptation(screener: Screener, complexes: list[_Complex], n: int, good: list[int]) -> list[float | None]:
    """Return the energy of each bound receptor minus that of its nearest minimum, for the atoms that moved."""
    receptors = [one.atoms[one.receptor] for one in complexes]
    term = PositionalRestraint(1.0, flat=1.0, name="hold")
    rows = Ensemble(receptors, terms=[term], model=REFINING, errors="record")
    for k, one in enumerate(complexes):
        rows.references("hold")[k] = one.start[one.receptor]
        rows.force_constants("hold")[k] = np.where(screener._backbone, 1.0, 0.0)
        rows.frozen[k] = ~screener._moving(one)[one.receptor]
    batch = rows.minimize(tolerance=0.1, max_iterations=500)
    found: list[float | None] = [None] * n
    for k, result in zip(good, batch.results, strict=True):
        if result is not None:
            found[k] = round(float(result.energy_before.total) - result.total, 4)
    return found


def _frames(screener: Screener, complexes: list[_Complex], count: int) -> list[Floats]:
    """Return frames of dynamics of each complex, in which the movable atoms move; all complexes together."""
    rows = Ensemble([one.atoms for one in complexes], model=REFINING, errors="record")
    for k, one in enumerate(complexes):
        rows.frozen[k] = ~screener._moving(one)
    run = Simulation(rows, temperature=300.0, timestep=2.0, constraints="hbonds", seed=1)
    run.run(_BEGIN)
    found = []
    for _ in range(count):
        run.run(_BETWEEN)
        found.append([np.asarray(run.positions[k]) for k in range(len(complexes))])
    return found


def terms(folder: Path, out: Path, targets: list[str], n_frames: int, limit: int | None) -> None:
    """Write the terms of each target's ligands in structures refined in several ways."""
    out.mkdir(parents=True, exist_ok=True)
    for target in targets:
        receptor, names, ligands, values = _read(folder, target)
        if limit:
            names, ligands, values = names[:limit], ligands[:limit], values[:limit]
        other = json.loads((folder / target / "mmff94.json").read_text())
        sets = {
            "gas": ligands,
            "mmff": [replace(atoms, charges=np.array(other[name])) for name, atoms in zip(names, ligands, strict=True)],
        }
        n = len(ligands)
        facts: dict[str, Any] = {
            "names": names, "values": [None if np.isnan(of) else of for of in values.tolist()],
            "heavy": [len(graph_of(atoms).heavy) for atoms in ligands],
            "torsions": [_n_torsions(atoms) for atoms in ligands],
            "charge": [round(float(atoms.charges.sum())) for atoms in ligands],
            "receptor_charge": round(float(receptor.charges.sum())), "sets": {},
        }  # fmt: skip
        for charge, molecules in sets.items():
            for radius in (6.0, 9.0) if charge == "gas" else (6.0,):
                start = time.perf_counter()
                screener = Screener(receptor, moving_radius=radius)
                refined = screener.screen(molecules)
                good = [k for k, of in enumerate(refined) if isinstance(of, Scored)]
                kept = [refined[k] for k in good]
                made = _scores(receptor, [(of.atoms, of.n_ligand) for of in kept], n, good)
                own = []
                for k, of in zip(good, kept, strict=True):
                    own.append(_Complex(of.atoms, of.n_ligand))
                    own[-1].start = np.concatenate([receptor.positions, molecules[k].positions])
                made["adaptation"] = _adaptation(screener, own, n, good)
                facts["sets"][f"{charge} {radius:g}"] = made
                if radius == 6.0 and n_frames:
                    frames = _frames(screener, own, n_frames)
                    for number, positions in enumerate(frames):
                        moved = [(of.atoms.moved(where), of.n_ligand) for of, where in zip(own, positions, strict=True)]
                        facts["sets"][f"{charge} frame {number}"] = _scores(receptor, moved, n, good)
                    for number in range(0, n_frames, 3):  # minimized frames
                        again = []
                        for of, where in zip(own, frames[number], strict=True):
                            again.append(_Complex(of.atoms.moved(where), of.n_ligand))
                            again[-1].start = of.start
                        screener._minimize(again, range(len(again)), 1.0, lambda atoms: atoms)
                        there = [place for place, of in enumerate(again) if isinstance(of, _Complex)]
                        facts["sets"][f"{charge} quenched {number}"] = _scores(
                            receptor, [(again[place].atoms, again[place].n_ligand) for place in there], n,
                            [good[place] for place in there],
                        )  # fmt: skip
                print(f"{target}: {charge}, {radius:g} A, {len(good)} of {n} ligands, "
                      f"{time.perf_counter() - start:.0f} s", flush=True)  # fmt: skip
                (out / f"{target}.json").write_text(json.dumps(facts))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    for name in ("charges", "terms"):
        command = commands.add_parser(name)
        command.add_argument("folder", type=Path)
        command.add_argument("source" if name == "charges" else "out", type=Path)
        command.add_argument("targets", nargs="+")
        if name == "terms":
            command.add_argument("--frames", type=int, default=8)
            command.add_argument("--limit", type=int, help="of ligands of a target")
    given = parser.parse_args()
    if given.what == "charges":
        charges(given.folder, given.source, given.targets)
    else:
        terms(given.folder, given.out, given.targets, given.frames, given.limit)


if __name__ == "__main__":
    main()
