"""Redocking: do refined poses of Vina, ranked by `screen`, have a near-native one first as often as by Vina's score?

    python redocking.py posebusters SET FOLDER N [SKIP]  # needs RDKit and PDBFixer: N cases of PoseBusters' set
    python redocking.py prepare FOLDER CASE...           # needs RDKit, AmberTools and meeko: CASE/inputs.pkl.gz
    python redocking.py run FOLDER OUT CASE...           # needs vina 1.2.7 and a GPU: OUT/CASE.json
    python redocking.py check FOLDER OUT CASE...         # needs RDKit and posebusters, and prints the table

FOLDER/CASE has protein.pdb with hydrogens, ligands.sdf with known poses, cofactor.sdf if the protein file contains
small molecules without a template, and forcefield.xml if amber14 lacks a residue. A case is CASE:N, the known pose N
of ligands.sdf, starting at 0. Docking starts from an RDKit conformer, with exhaustiveness 8, nine poses, and a box 5 A
larger than the known pose. Near-native means a symmetry-corrected RMSD of heavy atoms within 2 A, without
superposition, of the pose that is returned: docked for Vina, refined for `screen`.

Scores. First 40 cases: the default score of `screen`, with MMFF94 charges, was chosen beforehand, since it ranked a
near-native pose first in 8 of 10 other cases (ligands 3 and 4 of tyk2, mcl1, cdk2, ptp1b and p38; Vina: 6). It had 28
of 40, Vina 30, and the score with strain 31. So the score with strain was chosen for 40 further cases before they were
run (31, Vina 33). Also printed: the score with the energy of the isolated bound ligand in the same solvent model.

These 80 cases chose a sum of binding energy, strain and 8 times Vina's score for 40 complexes of PoseBusters' set,
which were docked after this choice: near-native first in 71 of the 80 for weights of 7, 8 and 9, in 70 for 4, 5
and 6 and in 68 for 10 to 14 (Vina 63, any of the poses 71). It was not confirmed: 22 of 39, Vina 24. Ligands of this
set differ in charge and size, and therefore in the spread of energies over the poses of a case.

All 119 cases chose `consensus`, documented here before 40 further complexes of the set were docked: binding energy plus
strain, and Vina's score with weight 1.5, both standardized over the poses of a case (mean subtracted, divided by the
standard deviation). It had 93 of the 119 (34, 34 and 25; Vina 30, 33 and 24), and 91 with a weight of 1 or 2. It was
confirmed: 22 of 40, Vina 20.

Cases of PoseBusters' set: SET has a folder PDB_CCD of each complex with PDB_CCD_protein.pdb and PDB_CCD_ligand.sdf.
Excluded are complexes with a molecule other than water, a metal or a non-standard residue within 4 A of the ligand, and
receptors of more than 4,000 heavy atoms. A receptor consists of the chains with an atom within 10 A of the ligand, with
heavy atoms completed by `prepare` at pH 7. Of the others, sorted by name, every fifth is used starting at the first,
then every fifth starting at the third, until N of them could be prepared, without the first SKIP. Each one that cannot
be prepared is printed with the reason.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pickle
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

NEAR = 2.0  # A
WEIGHT = 1.5  # of Vina's score in the consensus
_SEED, _POSES, _ROOM = 44, 9, 5.0
_SHARED, _AROUND, _LARGEST = 4.0, 10.0, 4000  # A, A, heavy atoms
_AMINO = frozenset("ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL".split())


def _folder(folder: Path, case: str) -> tuple[Path, int]:
    name, _, number = case.partition(":")
    return folder / name, int(number or 0)


def _inputs(folder: Path, case: str) -> Path:
    own, number = _folder(folder, case)
    return own / f"inputs_{number}.pkl.gz"


def _reading(own: Path) -> dict[str, Any]:
    """Return how a receptor is read: Amber14 with the case's XML file, if there is one, and its cofactors."""
    field = own / "forcefield.xml"
    cofactors = [path for path in (own / "cofactor.sdf",) if path.is_file()]
    return {"forcefield": f"amber14,{field}" if field.is_file() else "amber14", "ligands": cofactors}


def _receptor(own: Path) -> Any:
    import pele_ocl

    kept = own / "receptor.pkl.gz"
    if kept.is_file():
        with gzip.open(kept) as stream:
            return pickle.load(stream)  # of this script
    return pele_ocl.read(own / "protein.pdb", without="water", **_reading(own))


def posebusters(source: Path, folder: Path, n: int, skip: int) -> None:
    """Write protein.pdb and ligands.sdf of N complexes of the PoseBusters set to FOLDER, and the cases to cases.txt."""
    from rdkit import Chem

    import pele_ocl

    chosen = [found for own in sorted(source.iterdir()) if own.is_dir() and (found := _eligible(own)) is not None]
    print(f"{len(chosen)} complexes with only amino acids in the site", flush=True)
    cases = list[str]()
    for name, lines in [*chosen[::5], *chosen[2::5]][skip:]:
        if len(cases) == n:
            break
        own = folder / name
        own.mkdir(parents=True, exist_ok=True)
        (own / "heavy.pdb").write_text("".join(lines))
        try:
            ligand = pele_ocl.Ligand.read(source / name / f"{name}_ligand.sdf", hydrogens="add", ph=7.0)
            ligand.parametrize(charges="mmff")
            pele_ocl.prepare(own / "heavy.pdb", own / "protein.pdb", pka="usual")
            _receptor(own)
        except pele_ocl.PeleError as error:
            print(f"{name}: {error}", flush=True)
            continue
        with Chem.SDWriter(str(own / "ligands.sdf")) as writer:
            writer.write(ligand.molecule)
        cases.append(name)
        print(f"{name}: {len(lines)} heavy atoms, {ligand!r}", flush=True)
    (folder / "cases.txt").write_text("\n".join([*cases, ""]))


def _eligible(own: Path) -> tuple[str, list[str]] | None:
    """Return the lines of the heavy atoms of a complex's receptor, or None if the complex is excluded."""
    import numpy as np
    from rdkit import Chem

    protein = own / f"{own.name}_protein.pdb"
    molecule = next(iter(Chem.SDMolSupplier(str(own / f"{own.name}_ligand.sdf"))))
    if molecule is None or not protein.is_file():
        return None
    ligand = molecule.GetConformer().GetPositions()
    nearest, lines = dict[str, float](), list[str]()
    for line in protein.read_text().splitlines(keepends=True):
        if not line.startswith(("ATOM", "HETATM")) or line[76:78].strip() in ("H", "D") or line[17:20] == "HOH":
            continue
        there = [float(line[30:38]), float(line[38:46]), float(line[46:54])]
        apart = float(np.linalg.norm(ligand - there, axis=1).min())
        if line[17:20].strip() not in _AMINO:
            if apart < _SHARED:
                return None
            continue
        nearest[line[21]] = min(nearest.get(line[21], np.inf), apart)
        lines.append(line)
    kept = [line for line in lines if nearest[line[21]] < _AROUND]
    return (own.name, kept) if 0 < len(kept) <= _LARGEST else None


def prepare(folder: Path, cases: list[str]) -> None:
    """Write the inputs of each ligand: Atoms, PDBQT with all hydrogens, the box; and the PDBQT of the receptor.

    A receptor with cofactors is also pickled. Bonds to methyl groups are not rotatable in docking, as in docking
    programs that omit their hydrogens.
    """
    import numpy as np
    from meeko import MoleculePreparation, PDBQTWriterLegacy
    from rdkit import Chem
    from rdkit.Chem import AllChem
    from screen_ranking import _pdbqt

    import pele_ocl

    for case in cases:
        own, number = _folder(folder, case)
        if (own / "cofactor.sdf").is_file() and not (own / "receptor.pkl.gz").is_file():
            receptor = _receptor(own)  # the machine that docks may have no AmberTools
            with gzip.open(own / "receptor.pkl.gz", "wb") as stream:
                pickle.dump(receptor, stream)
        if not (own / "receptor.pdbqt").is_file():
            (own / "receptor.pdbqt").write_text(_pdbqt(_receptor(own), False))
        known = Chem.SDMolSupplier(str(own / "ligands.sdf"), removeHs=False)[number]
        atoms = pele_ocl.read_ligands(own / "ligands.sdf")[number].parametrize(charges="mmff")
        start = Chem.Mol(known)
        AllChem.EmbedMolecule(start, randomSeed=_SEED)
        AllChem.MMFFOptimizeMolecule(start)
        setup = MoleculePreparation(
            merge_these_atom_types=(), rigidify_bonds_smarts=["[CX4H3]-[#6,#7,#8,#16]"], rigidify_bonds_indices=[(0, 1)]
        ).prepare(start)[0]
        text = PDBQTWriterLegacy.write_string(setup)[0]
        written = _positions(text)
        apart = np.linalg.norm(written[:, None] - start.GetConformer().GetPositions(), axis=2)
        order = apart.argmin(axis=1)  # atom of the PDBQT -> of the molecule
        if len(set(order.tolist())) != len(atoms) or apart.min(axis=1).max() > 0.01:
            raise SystemExit(f"{case}: atoms of the PDBQT and the molecule do not match")
        there = known.GetConformer().GetPositions()
        given = {"atoms": atoms, "pdbqt": text, "order": order, "low": there.min(axis=0), "high": there.max(axis=0)}
        with gzip.open(_inputs(folder, case), "wb") as stream:
            pickle.dump(given, stream)
        print(f"{case}: {len(atoms)} atoms", flush=True)


def _positions(text: str) -> Any:
    import numpy as np

    atoms = [line for line in text.splitlines() if line.startswith(("ATOM", "HETATM"))]
    rows = [line for line in atoms if not line[77:].startswith("G")]  # Meeko's ends of rings that it opens
    return np.array([[float(line[30:38]), float(line[38:46]), float(line[46:54])] for line in rows])


def _dock(folder: Path, case: str) -> dict[str, Any]:
    """Dock a case: return positions of poses in the atom order of the molecule, and Vina's scores."""
    import numpy as np
    from vina import Vina

    with gzip.open(_inputs(folder, case)) as stream:
        given = pickle.load(stream)  # of this script
    low, high = given["low"] - _ROOM, given["high"] + _ROOM
    start = time.process_time()
    vina = Vina(sf_name="vina", cpu=1, seed=_SEED, verbosity=0)
    vina.set_receptor(str(_folder(folder, case)[0] / "receptor.pdbqt"))
    vina.set_ligand_from_string(given["pdbqt"])
    vina.compute_vina_maps(center=((low + high) / 2).tolist(), box_size=(high - low).tolist())
    vina.dock(exhaustiveness=8, n_poses=_POSES)
    scores = vina.energies(n_poses=_POSES)[:, 0].tolist()
    poses = []
    for text in vina.poses(n_poses=_POSES).split("ENDMDL")[: len(scores)]:
        where = np.empty((len(given["order"]), 3))
        where[given["order"]] = _positions(text)
        poses.append(where)
    return {"poses": poses, "scores": scores, "seconds": time.process_time() - start, "atoms": given["atoms"]}


def run(folder: Path, out: Path, cases: list[str], cores: int) -> None:
    """Dock all cases, refine and score their poses, and write OUT/CASE.json for each."""
    out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        under_way = {pool.submit(_dock, folder, case): case for case in sorted(cases, key=partial(_work, folder))}
        docked = dict[str, dict[str, Any]]()
        left = Counter(_folder(folder, case)[0].name for case in cases)
        for of in as_completed(under_way):
            case = under_way[of]
            name = _folder(folder, case)[0].name
            left[name] -= 1
            try:
                docked[case] = of.result()
            except Exception as error:
                print(f"{case}: {error}", flush=True)
            if not left[name]:  # the device is at work while other cases are docked
                own_cases = [each for each in docked if _folder(folder, each)[0].name == name]
                _score(_receptor(_folder(folder, case)[0]), {each: docked[each] for each in own_cases}, out)
                print(f"{name}: {len(own_cases)} cases, after {time.perf_counter() - start:.0f} s", flush=True)
    total = sum(of["seconds"] for of in docked.values())
    print(f"{len(docked)} docked, {total:.0f} s of processor, in all {time.perf_counter() - start:.0f} s", flush=True)


def _work(folder: Path, case: str) -> float:
    """Return an estimate of the docking time, to run the longest first."""
    with gzip.open(_inputs(folder, case)) as stream:
        given = pickle.load(stream)  # of this script
    n = len(given["order"])
    return -float(n * (50 + n + 10 * given["pdbqt"].count("\nBRANCH")))


def _score(receptor: Any, docked: dict[str, dict[str, Any]], out: Path) -> None:
    """Refine and score the poses of the cases of one receptor, and write OUT/CASE.json for each."""
    import pele_ocl

    screener = pele_ocl.Screener(receptor)
    ligands = [of["atoms"].moved(where) for of in docked.values() for where in of["poses"]]
    found = screener.screen(ligands)
    made = zip(found, _ligands(screener, found), strict=True)
    for case, of in docked.items():
        rows = [
            _row(*next(made), receptor, where, score) for where, score in zip(of["poses"], of["scores"], strict=True)
        ]
        (out / f"{case.replace(':', '_')}.json").write_text(json.dumps(rows))


def _ligands(screener: Any, found: Sequence[Any]) -> list[float | None]:
    """Return the energies of the isolated bound ligands in the solvent model of the score, kcal/mol."""
    from pele_ocl import Ensemble
    from pele_ocl.screen.screener import Scored

    good = {k: one for k, one in enumerate(found) if isinstance(one, Scored)}
    ligands = [one.atoms[list(range(len(one.atoms) - one.n_ligand, len(one.atoms)))] for one in good.values()]
    rows = Ensemble(ligands, model=screener.model, gradient=False)
    rows.evaluate()
    energies: list[float | None] = [None] * len(found)
    for k, values in zip(good, rows.terms().values, strict=True):
        energies[k] = float(values.sum())
    return energies


def _row(one: Any, ligand: float | None, receptor: Any, where: Any, score: float) -> dict[str, Any]:
    import numpy as np

    from pele_ocl.screen.screener import Scored

    row = {"vina": score, "docked": where.round(4).tolist()}
    if not isinstance(one, Scored):
        return row | {"failed": str(one)}
    refined = one.atoms.positions[: len(receptor)]
    moved = np.flatnonzero((refined != receptor.positions).any(axis=1))
    return row | {
        "score": one.binding, "strain": one.strain, "ligand": ligand, "clashes": one.clashes,
        "refined": one.ligand.round(4).tolist(), "moved": moved.tolist(), "receptor": refined[moved].round(3).tolist(),
    }  # fmt: skip


def check(folder: Path, out: Path, cases: list[str], target: Path | None) -> None:
    """Compare the top poses by both scores, and PoseBusters' checks before and after refinement."""
    import numpy as np
    from posebusters import PoseBusters
    from rdkit import Chem, RDLogger
    from rdkit.Chem.rdMolAlign import CalcRMS
    from rdkit.Geometry import Point3D

    RDLogger.DisableLog("rdApp.*")  # type: ignore[attr-defined]
    rows: dict[str, Any] = json.loads(target.read_text()) if target is not None and target.is_file() else {}
    for case in cases:
        path = out / f"{case.replace(':', '_')}.json"
        if case in rows or not path.is_file():
            continue
        own, number = _folder(folder, case)
        known = Chem.SDMolSupplier(str(own / "ligands.sdf"), removeHs=False)[number]

        def placed(where: Any, known: Any = known) -> Any:
            molecule = Chem.Mol(known)
            for k, (x, y, z) in enumerate(where):
                molecule.GetConformer().SetAtomPosition(k, Point3D(x, y, z))
            return molecule

        receptor_atoms = _receptor(own)
        poses = []
        for row in json.loads(path.read_text()):
            if "failed" in row:
                poses.append({"vina": row["vina"], "failed": row["failed"]})
                continue
            pose = {name: row[name] for name in ("vina", "score", "strain", "ligand")}
            around = {"before": receptor_atoms.positions, "after": receptor_atoms.positions.copy()}
            around["after"][row["moved"]] = row["receptor"]
            for when, where in (("before", row["docked"]), ("after", row["refined"])):
                receptor = around[when]
                molecule = placed(where)
                near = np.linalg.norm(receptor[:, None] - np.array(where), axis=2).min(axis=1) < 12
                protein = _molecule(receptor_atoms, receptor, np.flatnonzero(near))
                busted = PoseBusters("dock").bust([molecule], None, protein)
                pose[f"failed_{when}"] = sorted(busted.columns[~busted.to_numpy(dtype=bool)[0]].tolist())
                pose[f"rmsd_{when}"] = CalcRMS(Chem.RemoveHs(molecule), Chem.RemoveHs(known))
            poses.append(pose)
        rows[case] = poses
        print(f"{case}: {len(poses)} poses", flush=True)
        if target is not None:
            target.write_text(json.dumps(rows, indent=1))
    _print(rows)


def _molecule(atoms: Any, positions: Any, chosen: Sequence[int]) -> Any:
    """Return an RDKit molecule of some atoms without bonds, from which PoseBusters uses distances and volumes."""
    from rdkit import Chem
    from rdkit.Geometry import Point3D

    molecule, labels = Chem.RWMol(), atoms.labels
    conformer = Chem.Conformer(len(chosen))
    for k, of in enumerate(chosen):
        atom = Chem.Atom(str(labels.elements[of]))
        atom.SetNoImplicit(True)
        residue, name = int(labels.residue_index[of]), str(labels.names[of])
        atom.SetMonomerInfo(Chem.AtomPDBResidueInfo(f" {name:<3}", k, "", str(labels.residue_names[of]), residue, "A"))
        molecule.AddAtom(atom)
        conformer.SetAtomPosition(k, Point3D(*positions[of].tolist()))
    molecule.AddConformer(conformer)
    return molecule.GetMol()


_SCORES: dict[str, Callable[..., Any]] = {  # of binding energies, strains, energies of the ligand and Vina's scores
    "score": lambda score, strain, ligand, vina: score,
    "score + ligand": lambda score, strain, ligand, vina: score + ligand,
    "score + strain": lambda score, strain, ligand, vina: score + strain,
    "score + strain + 8 Vina": lambda score, strain, ligand, vina: score + strain + 8 * vina,
    "consensus": lambda score, strain, ligand, vina: _standard(score + strain) + WEIGHT * _standard(vina),
}


def _standard(values: Any) -> Any:
    spread = values.std()
    return (values - values.mean()) / spread if spread else 0 * values


def _print(rows: dict[str, Any]) -> None:
    import numpy as np

    near: dict[str, list[bool]] = {name: [] for name in ("vina", *_SCORES, "any")}
    n = before = after = lost = failed = 0
    for case, poses in rows.items():
        good = [of for of in poses if "score" in of]
        failed += len(poses) - len(good)
        if not good:
            print(f"{case:12} no pose was scored")
            continue
        first = min(good, key=lambda of: of["vina"])["rmsd_before"]
        known = [np.array([of[name] for of in good]) for name in ("score", "strain", "ligand", "vina")]
        own = {name: good[int(np.argmin(score(*known)))]["rmsd_after"] for name, score in _SCORES.items()}
        nearest = min(of["rmsd_before"] for of in good)
        for name, rmsd in {"vina": first, **own, "any": nearest}.items():
            near[name].append(rmsd <= NEAR)
        for of in good:
            n, before, after = n + 1, before + (not of["failed_before"]), after + (not of["failed_after"])
            if of["failed_after"] and not of["failed_before"]:
                lost += 1
                print(f"  {case}: lost by {of['failed_after']}")
        print(f"{case:12} first by Vina {first:5.2f} A, " + "".join(f"{name} {own[name]:5.2f} A, " for name in own)
              + f"nearest of {len(good)} {nearest:5.2f} A")  # fmt: skip
    print(f"{len(near['any'])} cases, near-native first, errors by bootstrap over cases:")
    rng = np.random.default_rng(_SEED)
    drawn = rng.integers(0, len(near["any"]), (10_000, len(near["any"])))
    for name, of in near.items():
        right, less = np.array(of, int), np.array(of, int) - np.array(near["vina"], int)
        print(f"  {name:24} {right.sum():3} +- {right[drawn].sum(axis=1).std():.1f}, less Vina's {less.sum():+d} +- "
              f"{less[drawn].sum(axis=1).std():.1f} (only this correct in {(less > 0).sum()}, only this wrong in "
              f"{(less < 0).sum()})")  # fmt: skip
    print(f"{n} poses, {failed} failed: PoseBusters passed {before} before, {after} after refinement, {lost} lost")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    command = commands.add_parser("posebusters")
    command.add_argument("source", type=Path)
    command.add_argument("folder", type=Path)
    command.add_argument("n", type=int)
    command.add_argument("skip", type=int, nargs="?", default=0)
    for name in ("prepare", "run", "check"):
        command = commands.add_parser(name)
        command.add_argument("folder", type=Path)
        if name != "prepare":
            command.add_argument("out", type=Path)
        command.add_argument("cases", nargs="+")
        if name == "run":
            command.add_argument("--cores", type=int, default=16)
        if name == "check":
            command.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.what == "posebusters":
        posebusters(given.source, given.folder, given.n, given.skip)
    elif given.what == "prepare":
        prepare(given.folder, given.cases)
    elif given.what == "run":
        run(given.folder, given.out, given.cases, given.cores)
    else:
        check(given.folder, given.out, given.cases, given.json)


if __name__ == "__main__":
    main()
