"""How `screen` ranks the series of openforcefield/protein-ligand-benchmark (data CC BY 4.0), and how fast it is.

    python tests/benchmarks/screen_ranking.py prepare FOLDER SOURCE tyk2 mcl1    # SOURCE has TARGET/protein.pdb, ...
    python tests/benchmarks/screen_ranking.py run FOLDER tyk2 mcl1 --json ranks.json
    python tests/benchmarks/screen_ranking.py speed FOLDER tyk2 -n 1000
    python tests/benchmarks/screen_ranking.py vina FOLDER tyk2 --python VENV/bin/python    # which has vina

`prepare` needs OpenMM, RDKit and AmberTools, and writes receptors and ligands with their parameters; `run` and `speed`
need none of them. SOURCE is a folder with protein.pdb, ligands.sdf and ligands.yml of each target, or the repository.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pickle
import subprocess
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import pele_ocl
from pele_ocl import Screener, SolventModel
from pele_ocl.screen.correlations import correlations
from pele_ocl.screen.molecules import graph_of

Floats = Any
_FILES = {
    "protein.pdb": "01_protein/crd/protein.pdb", "ligands.sdf": "02_ligands/ligands.sdf",
    "ligands.yml": "00_data/ligands.yml", "cofactor.sdf": "01_protein/crd/cofactor.sdf",
}  # fmt: skip


def _source(folder: Path, target: str, name: str) -> Path:
    for path in (folder / target / name, folder / "data" / target / _FILES[name], folder / target / _FILES[name]):
        if path.is_file():
            return path
    raise SystemExit(f"{folder}: has no {name} of {target}")


def prepare(folder: Path, source: Path, targets: list[str], forcefield: str, charges: str) -> None:
    """Write receptor.pkl.gz, ligands.pkl.gz and values.json of each target."""
    from pele_ocl.screen.reference import Reference

    for target in targets:
        start, own = time.perf_counter(), folder / target
        own.mkdir(parents=True, exist_ok=True)
        protein = _source(source, target, "protein.pdb")
        cofactors = [path for path in (protein.with_name("cofactor.sdf"),) if path.is_file()]
        receptor = pele_ocl.read(protein, forcefield, without="water", ligands=cofactors)
        with gzip.open(own / "receptor.pkl.gz", "wb") as stream:
            pickle.dump(receptor, stream)
        reference = Reference.read(_source(source, target, "ligands.yml"))
        failed: dict[int, str] = {}
        ligands = pele_ocl.read_ligands(_source(source, target, "ligands.sdf"), failed=failed)
        made = []
        for ligand in ligands:
            try:
                made.append((ligand.name, ligand.parametrize(charges=charges)))
            except pele_ocl.PeleError as error:
                failed[len(failed)] = f"{ligand.name}: {error}"
        with gzip.open(own / "ligands.pkl.gz", "wb") as stream:
            pickle.dump(made, stream)
        (own / "values.json").write_text(json.dumps({"values": dict(reference.values), "failed": failed}))
        n = len(ligands)
        print(f"{target}: {len(receptor):,} atoms, {n} ligands, {len(failed)} failed {failed or ''}, "
              f"{time.perf_counter() - start:.0f} s")  # fmt: skip


def _read(folder: Path, target: str) -> tuple[Any, list[str], list[Any], Floats]:
    with gzip.open(folder / target / "receptor.pkl.gz", "rb") as stream:
        receptor = pickle.load(stream)  # of this script
    values = json.loads((folder / target / "values.json").read_text())["values"]
    with gzip.open(folder / target / "ligands.pkl.gz", "rb") as stream:
        made = pickle.load(stream)
    names, atoms = [name for name, _ in made], [of for _, of in made]
    return receptor, names, atoms, np.array([values.get(name, np.nan) for name in names])


def _rho(score: Floats, values: Floats) -> dict[str, float]:
    found = correlations(np.asarray(score), values).get("spearman")
    return {"value": np.nan, "error": np.nan} if found is None else {"value": found.value, "error": found.error}


def run(folder: Path, targets: list[str], models: list[str], insides: list[float], radii: list[float], pb: bool,
        target_json: Path | None) -> None:  # fmt: skip
    """Rank each target by the default score, and by other scores of the same refined structures."""
    table: dict[str, dict[str, dict[str, float]]] = {}
    scores: dict[str, Any] = {}
    for target in targets:
        receptor, names, ligands, values = _read(folder, target)
        found: dict[str, Floats] = {"size": [-len(graph_of(atoms).heavy) for atoms in ligands]}
        for radius in radii:
            screener = Screener(receptor, moving_radius=radius)
            start = time.perf_counter()
            refined = screener.screen(ligands)
            seconds = (time.perf_counter() - start) / len(ligands)
            errors = [str(one) for one in refined if isinstance(one, pele_ocl.PeleError)]
            print(f"{target}: {len(ligands)} ligands, residues within {radius:g} A, {seconds * 1e3:,.0f} ms each; "
                  f"{len(errors)} failed {errors[:2] or ''}", flush=True)  # fmt: skip
            complexes = [one for one in refined if not isinstance(one, pele_ocl.PeleError)]
            good = [k for k, one in enumerate(refined) if not isinstance(one, pele_ocl.PeleError)]
            at = "" if len(radii) == 1 else f" {radius:g}"
            _add(found, f"default{at}", good, complexes, len(ligands))
            given = [(one.atoms, one.n_ligand) for one in complexes]
            for gb, inside, surface in product(models, insides, ("ace", "lcpo")):
                model = SolventModel(gb=gb, surface=surface, solute_dielectric=inside)
                again = Screener(receptor, model=model).score(given)
                _add(found, f"{gb} {surface} {inside:g}{at}", good, again, len(ligands))
            for inside in insides if pb else ():
                model = SolventModel(solute_dielectric=inside)
                again = Screener(receptor, model=model, pb=pele_ocl.PBSolvent()).score(given)
                _add(found, f"pb {inside:g}{at}", good, again, len(ligands))
        scores[target] = {
            "names": names,
            "values": values.tolist(),
            **{k: np.asarray(v).tolist() for k, v in found.items()},
        }
        for name, score in found.items():
            table.setdefault(name, {})[target] = _rho(np.asarray(score, float), values)
        if target_json is not None:
            target_json.write_text(json.dumps(scores))
    print(f"\n{'Spearman':34}" + "".join(f"{target:>9}" for target in targets) + f"{'mean':>9}")
    for name, row in sorted(table.items(), key=lambda of: -np.nanmean([v["value"] for v in of[1].values()])):
        mean = np.nanmean([of["value"] for of in row.values()])
        print(f"{name:34}" + "".join(f"{row[target]['value']:9.2f}" for target in targets) + f"{mean:9.3f}")


def _add(found: dict[str, Floats], name: str, good: list[int], scored: list[Any], n: int) -> None:
    """Add scores by name, also with strain; NaN for failures."""
    parts = {
        "": lambda one: one.binding, " +strain": lambda one: one.binding + one.strain,
        " coulomb": lambda one: one.terms["coulomb"], " lj": lambda one: one.terms["lennard_jones"],
    }  # fmt: skip
    for part, of in parts.items():
        values = np.full(n, np.nan)
        for k, one in zip(good, scored, strict=True):
            if not isinstance(one, pele_ocl.PeleError):
                values[k] = of(one)
        found[name + part] = values


def speed(folder: Path, target: str, n: int, profile: bool) -> None:
    """Time n complexes of a target, repeating its ligands with small displacements."""
    receptor, _, ligands, _ = _read(folder, target)
    rng = np.random.default_rng(0)
    many = [ligands[k % len(ligands)] for k in range(n)]
    many = [atoms.moved(atoms.positions + rng.normal(scale=0.2, size=3)) for atoms in many]
    screener = Screener(receptor)
    screener.screen(many[: min(n, 32)])  # kernels
    if profile:
        import cProfile
        import pstats

        with cProfile.Profile() as taken:
            screener.screen(many)
        pstats.Stats(taken).sort_stats("cumtime").print_stats(50)
    start = time.perf_counter()
    found = screener.screen(many)
    seconds = time.perf_counter() - start
    failed = sum(isinstance(one, pele_ocl.PeleError) for one in found)
    print(f"{target}: {n:,} complexes of {len(receptor) + len(ligands[0]):,} atoms, {failed} failed, on "
          f"{screener.device}: {seconds / n * 1e3:,.1f} ms each, {3600 * n / seconds:,.0f} per hour")  # fmt: skip


_VINA = """
import json, sys
import numpy as np
from vina import Vina
given = json.load(sys.stdin)
vina = Vina(sf_name="vina", cpu=1, verbosity=0)
vina.set_receptor(given["receptor"])
vina.compute_vina_maps(center=given["center"], box_size=given["size"])
found = []
for ligand, n in given["ligands"]:
    vina.set_ligand_from_string(ligand)
    vina.optimize()
    found.append(float(vina.score()[1]) / (1 + 0.05846 * n))
print(json.dumps(found))
"""


def _types(atoms: Any) -> list[str]:
    """Return the AutoDock atom types used by Vina; "" for hydrogens of carbon."""
    graph = graph_of(atoms)
    found = []
    for k, element in enumerate(graph.elements):
        near = [graph.elements[j] for j in graph.neighbours[k]]
        if element == "H":
            found.append("HD" if any(of in ("N", "O", "S") for of in near) else "")
        elif element == "N":  # an acceptor has a lone pair: two neighbours, or none of its three is H or planar C
            found.append("NA" if len(near) == 2 else "N")
        elif element in ("O", "S"):
            found.append(f"{element}A")
        else:
            found.append(element)
    return found


def _pdbqt(atoms: Any, is_ligand: bool) -> str:
    lines = []
    for k, (kind, (x, y, z)) in enumerate(zip(_types(atoms), atoms.positions.tolist(), strict=True), 1):
        if kind:
            name = f"{kind[:2]:<4}" if is_ligand else f"{atoms.labels.names[k - 1]:<4}"[:4]
            lines.append(
                f"ATOM  {k % 100000:5d} {name} {'LIG' if is_ligand else 'REC'} A   1    "
                f"{x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00    {0:6.3f} {kind:<2}"
            )
    return "\n".join(["ROOT", *lines, "ENDROOT", "TORSDOF 0", ""] if is_ligand else [*lines, ""])


def _n_torsions(atoms: Any) -> int:
    """Return the number of rotatable bonds: single, between heavy atoms, not in rings, terminal or amide."""
    graph = graph_of(atoms)
    heavy = [[j for j in near if graph.elements[j] != "H"] for near in graph.neighbours]

    def is_planar(i: int, j: int) -> bool:
        kinds = {graph.elements[i], graph.elements[j]}
        carbon = i if graph.elements[i] == "C" else j
        oxo = any(graph.elements[k] in ("O", "S") and len(graph.neighbours[k]) == 1 for k in graph.neighbours[carbon])
        return kinds == {"C", "N"} and oxo

    def in_ring(i: int, j: int) -> bool:
        seen, left = {i}, [k for k in heavy[i] if k != j]
        while left:
            k = left.pop()
            if k == j:
                return True
            if k not in seen:
                seen.add(k)
                left += heavy[k]
        return False

    count = 0
    for i, j in graph.bonds.tolist():
        both = graph.elements[i] != "H" and graph.elements[j] != "H" and len(heavy[i]) > 1 and len(heavy[j]) > 1
        double = len(graph.neighbours[i]) < 3 and graph.elements[i] == "C"  # an alkyne or nitrile
        double |= len(graph.neighbours[j]) < 3 and graph.elements[j] == "C"
        count += both and not double and not is_planar(i, j) and not in_ring(i, j)
    return count


def vina(folder: Path, targets: list[str], python: str, target_json: Path | None) -> None:
    """Rank by Vina's score of the given poses, each minimized locally in the rigid receptor."""
    row, written = {}, {}
    for target in targets:
        receptor, _, ligands, values = _read(folder, target)
        there = np.concatenate([atoms.positions for atoms in ligands])
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "receptor.pdbqt"
            path.write_text(_pdbqt(receptor, False))
            given = {
                "receptor": str(path), "center": there.mean(axis=0).tolist(),
                "size": (2 * np.abs(there - there.mean(axis=0)).max(axis=0) + 8).tolist(),
                "ligands": [(_pdbqt(atoms, True), _n_torsions(atoms)) for atoms in ligands],
            }  # fmt: skip
            done = subprocess.run(
                [python, "-c", _VINA], input=json.dumps(given), capture_output=True, text=True, check=False
            )
        if done.returncode:
            raise SystemExit(f"{target}: {done.stderr[-500:]}")
        scores = np.array(json.loads(done.stdout.splitlines()[-1]))
        row[target], written[target] = _rho(scores, values), scores.tolist()
        if target_json is not None:
            target_json.write_text(json.dumps(written))
        print(f"{target}: Vina {scores.min():.1f} to {scores.max():.1f} kcal/mol, Spearman {row[target]['value']:.2f} "
              f"+- {row[target]['error']:.2f}", flush=True)  # fmt: skip
    print(f"mean {np.mean([of['value'] for of in row.values()]):.3f}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    for name in ("prepare", "run", "speed", "vina"):
        command = commands.add_parser(name)
        command.add_argument("folder", type=Path)
        if name == "prepare":
            command.add_argument("source", type=Path)
            command.add_argument("--forcefield", default="amber14")
            command.add_argument("--charges", default="mmff", help="of ligands")
        command.add_argument("targets", nargs="+")
        if name == "run":
            command.add_argument("--models", default="obc2,gbn2", help="of further scores, or none")
            command.add_argument("--inside", default="1,2,4")
            command.add_argument("--radii", default="6")
            command.add_argument("--pb", action="store_true")
            command.add_argument("--json", type=Path)
        if name == "vina":
            command.add_argument("--python", required=True)
            command.add_argument("--json", type=Path)
        if name == "speed":
            command.add_argument("-n", type=int, default=512)
            command.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    if given.what == "prepare":
        prepare(given.folder, given.source, given.targets, given.forcefield, given.charges)
    elif given.what == "run":
        numbers = [[float(of) for of in text.split(",")] for text in (given.inside, given.radii)]
        models = [] if given.models == "none" else given.models.split(",")
        run(given.folder, given.targets, models, *numbers, given.pb, given.json)
    elif given.what == "vina":
        vina(given.folder, given.targets, given.python, given.json)
    else:
        for target in given.targets:
            speed(given.folder, target, given.n, given.profile)


if __name__ == "__main__":
    main()
