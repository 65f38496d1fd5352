"""Screen valid molecules together with invalid ones, and check that each has a row and valid ones are not affected.

python tests/benchmarks/hostile_ligands.py [-n N] [--seed S] [--keep FOLDER]

Molecules are generated: radicals, boron and metals, salts, fragments, drawings, wrong valences, huge and coinciding
coordinates, damaged SDF, mol2, PDBQT and SMILES, names with shell characters, paths, newlines and other alphabets,
encodings, 200 and 450 atoms, duplicates. The receptor is a hexapeptide, and a minimization has three steps.

Asserted: a row for each molecule, with a score or a message of one line; molecules without parameters have a message;
complexes and rows of valid molecules are the same bytes as without the others; no file is written outside of the
output; the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pele_ocl import Ligand

ROOT = Path(__file__).parents[2]
RECEPTOR = ROOT / "data" / "structures" / "hexapeptide.pdb"
GOOD = ("CCO", "Oc1ccccc1", "CC(N)=O", "CC(=O)[O-]", "C[NH3+]", "CSC", "Clc1ccccc1", "c1ccncc1", "CS(C)(=O)=O", "CC#N")
AWAY = np.array([9.0, 3.0, -2.0])  # A, beside the receptor
NAMES = (
    "; rm -rf x", "../../up", "$(touch pwned)", "`touch pwned`", "a|tee pwned", "&& touch pwned", "/etc/passwd", "~",
    "a b", "con", "NUL.txt", "..", ".", "", " ", "'\"", "*", "?", "\\\\server\\share", "C:\\x", "-rf", "--output",
    "x" * 300, "\u00e9\u00df", "\u4e2d\u6587", "\u202egnp.exe", "\U0001f9ea", "a\tb", "<script>alert(1)</script>",
    "=1+1", "@SUM(A1)", "name,with,commas", 'quo"te', "%s%n", "{name}", "nan", "null", "0", "1e999", "$$$",
    "\x1b[31mred", "> <x>", "M  END", "_", "good", "#", "a/b/c", "\u0000", "\r", "LPT1",
)  # fmt: skip


SAYS_NOTHING = re.compile(r"Traceback|unexpected \w+Error|object at 0x")


@dataclass(frozen=True)
class Case:
    """A hostile molecule.

    kind : of NAMES_OF_KINDS; content : an SDF record without its $$$$, or a file; suffix : "" for a record
    fails : whether the molecule must have no score; None if both are allowed
    """

    kind: str
    content: bytes
    suffix: str = ""
    fails: bool | None = None


def cases(n: int, seed: int = 44) -> list[Case]:
    """Return n molecules, equally many of each kind, determined by the seed."""
    found = list[Case]()
    makers = {name: maker(random.Random(f"{seed} {name}")) for name, maker in KINDS.items()}
    while len(found) < n:
        for maker in makers.values():
            found.append(next(maker))
    return found[:n]


@cache
def good() -> tuple[str, ...]:
    """Return the SDF records of the valid molecules."""
    return tuple(block(_molecule(smiles), f"good_{k}") for k, smiles in enumerate(GOOD, 1))


@cache
def _molecule(smiles: str) -> Ligand:
    ligand = Ligand.from_smiles(smiles)
    return ligand.moved(ligand.positions + AWAY)


def block(ligand: Ligand, title: str) -> str:
    from rdkit import Chem

    return _titled(Chem.MolToMolBlock(ligand.molecule), title)


def _titled(text: str, title: str) -> str:
    return title + text[text.index("\n") :]


def _any(draw: random.Random) -> str:
    title = draw.choice(NAMES) if draw.random() < 0.5 else f"bad_{draw.randrange(10**6)}"
    return block(_molecule(draw.choice(GOOD)), title.encode("utf-8", "replace").decode())


def _raw(smiles: str, title: str, flat: bool = False, hydrogens: bool = True) -> bytes:
    """Return the record of a SMILES that may be invalid."""
    from rdkit import Chem, RDLogger
    from rdkit.Chem import AllChem

    RDLogger.DisableLog("rdApp.*")
    molecule = Chem.MolFromSmiles(smiles, sanitize=False)
    molecule.UpdatePropertyCache(strict=False)
    molecule = Chem.AddHs(molecule) if hydrogens else molecule
    if flat:
        AllChem.Compute2DCoords(molecule)
    elif not (hydrogens and _embedded(molecule)):
        conformer = Chem.Conformer(molecule.GetNumAtoms())
        for k in range(molecule.GetNumAtoms()):
            conformer.SetAtomPosition(k, [9 + 1.2 * k, 3 + (k % 2) * 0.8, -2 + (k % 3) * 0.7])
        molecule.AddConformer(conformer)
    return _titled(Chem.MolToMolBlock(molecule, kekulize=False), title).encode()


def _embedded(molecule: Any) -> bool:
    """Generate coordinates as far as the bonds allow; return whether it succeeded."""
    from rdkit import Chem
    from rdkit.Chem import AllChem

    try:
        Chem.SanitizeMol(molecule)
        if AllChem.EmbedMolecule(molecule, randomSeed=44) < 0:
            return False
    except (ValueError, RuntimeError):
        return False
    conformer = molecule.GetConformer()
    for k, place in enumerate(conformer.GetPositions() + AWAY):
        conformer.SetAtomPosition(k, place.tolist())
    return True


def _of_smiles(kind: str, smiles: tuple[str, ...], fails: bool | None = True, **how: bool) -> Maker:
    def made(draw: random.Random) -> Iterator[Case]:
        k = 0
        while True:
            grown = "C" * (k // len(smiles)) + smiles[k % len(smiles)]
            yield Case(kind, _raw(grown, f"{kind} {k}", **how), fails=fails)
            k += 1

    return made


def _lines(text: str) -> tuple[list[str], int]:
    """Return the lines of a record, and its number of atoms."""
    lines = text.split("\n")
    return lines, int(lines[3][:3])


def _radicals(draw: random.Random) -> Iterator[Case]:
    """Remove a hydrogen."""
    from rdkit import Chem

    while True:
        ligand = _molecule(draw.choice(GOOD))
        editable = Chem.RWMol(ligand.molecule)
        editable.RemoveAtom(draw.choice([a.GetIdx() for a in editable.GetAtoms() if a.GetAtomicNum() == 1] or [0]))
        yield Case("radical", _titled(Chem.MolToMolBlock(editable, kekulize=False), "radical").encode(), fails=None)


def _counts(draw: random.Random) -> Iterator[Case]:
    while True:
        lines, n = _lines(_any(draw))
        wrong = draw.choice([f"{n + 1:3d}", f"{n - 1:3d}", "999", "  0", " -1", "abc", "   ", "1e3", f"{n * 2:3d}"])
        lines[3] = wrong + lines[3][3:] if draw.random() < 0.5 else lines[3][:3] + wrong + lines[3][6:]
        yield Case("counts", "\n".join(lines).encode())


def _coordinates(draw: random.Random) -> Iterator[Case]:
    while True:
        lines, n = _lines(_any(draw))
        k = 4 + draw.randrange(n)
        word = draw.choice(["       nan", "       inf", "**********", " " * 10, "      1e99", " 99999.999"])
        lines[k] = word + lines[k][10:]
        yield Case("coordinates", "\n".join(lines).encode(), fails=True)


def _coinciding(draw: random.Random) -> Iterator[Case]:
    while True:
        lines, n = _lines(_any(draw))
        for k in range(5, 4 + n):
            lines[k] = lines[4][:30] + lines[k][30:]
        yield Case("coinciding", "\n".join(lines).encode(), fails=True)


def _truncated(draw: random.Random) -> Iterator[Case]:
    while True:
        text = _any(draw)
        yield Case("truncated", text[: draw.randrange(len(text))].rstrip("\n").encode() + b"\n")


def _mutated(draw: random.Random) -> Iterator[Case]:
    while True:
        data = bytearray(_any(draw).encode())
        for _ in range(draw.choice([1, 2, 5, 20])):
            data[draw.randrange(len(data))] = draw.randrange(256)
        yield Case("bytes", bytes(data).replace(b"$$$$", b"$$$"))


def _named(draw: random.Random) -> Iterator[Case]:
    for title in draw.sample(NAMES, len(NAMES)):
        yield Case("name", block(_molecule("CCO"), title.replace("\n", " ")).encode("utf-8", "surrogatepass"))
    while True:
        title = "".join(chr(draw.randrange(32, 0x2FFF)) for _ in range(draw.randrange(1, 40)))
        yield Case("name", block(_molecule("CCO"), title).encode())


def _duplicates(draw: random.Random) -> Iterator[Case]:
    while True:
        yield Case("duplicate", draw.choice(good()).encode(), fails=False)


def _sizes(draw: random.Random) -> Iterator[Case]:
    while True:
        for carbons, fails in ((66, None), (150, True)):
            ligand = _chain(carbons)
            yield Case("size", block(ligand, f"chain_{carbons}").encode(), fails=fails)


@cache
def _chain(carbons: int) -> Ligand:
    """All-trans alkanes; the longer one exceeds the maximum size of ligands, so it is written without a check."""
    from rdkit import Chem
    from rdkit.Geometry import Point3D

    molecule = Chem.MolFromSmiles("C" * carbons)
    conformer = Chem.Conformer(carbons)
    for k in range(carbons):
        conformer.SetAtomPosition(k, Point3D(9 + 1.26 * k, 3 + 0.43 * (-1) ** k, -2))
    conformer.Set3D(True)
    molecule.AddConformer(conformer)
    whole = Chem.AddHs(molecule, addCoords=True)
    made = object.__new__(Ligand)
    object.__setattr__(made, "molecule", whole)
    return made


def _encodings(draw: random.Random) -> Iterator[Case]:
    while True:
        text = _any(draw)
        data = {
            "utf-16": (text + "$$$$\n").encode("utf-16"), "bom": b"\xef\xbb\xbf" + text.encode() + b"$$$$\n",
            "crlf": (text + "$$$$\n").replace("\n", "\r\n").encode(),
            "cr": (text + "$$$$\n").replace("\n", "\r").encode(),
            "latin": ("caf\u00e9" + text + "$$$$\n").encode("latin-1", "replace"), "empty": b"", "zeros": bytes(2000),
            "gzip": b"\x1f\x8b\x08" + text.encode(), "no end": text.encode(), "blank": b"\n" * 50,
        }  # fmt: skip
        for content in data.values():
            yield Case("encoding", content, ".sdf")


def _smiles(draw: random.Random) -> Iterator[Case]:
    letters = "CNOSPFclnos[]()=#123@+-.%/\\B"
    while True:
        text = list(draw.choice(GOOD))
        for _ in range(draw.choice([1, 2, 4])):
            text.insert(draw.randrange(len(text) + 1), draw.choice(letters))
        yield Case("smiles", f"{''.join(text)} {draw.choice(NAMES)}\n".encode("utf-8", "surrogatepass"), ".smi")


def _mol2(draw: random.Random) -> Iterator[Case]:
    head = "@<TRIPOS>MOLECULE\nfive\n 2 1 0 0 0\nSMALL\nNO_CHARGES\n\n@<TRIPOS>ATOM\n"
    atoms = "1 C1 9.0 3.0 -2.0 C.3 1 LIG 0.0\n2 O1 10.4 3.0 -2.0 O.3 1 LIG 0.0\n@<TRIPOS>BOND\n1 1 2 1\n"
    while True:
        text = head + atoms
        k, m = sorted(draw.randrange(len(text)) for _ in range(2))
        yield Case("mol2", (text[:k] + text[m:]).encode(), ".mol2")


def _pdbqt(draw: random.Random) -> Iterator[Case]:
    text = (
        "MODEL 1\nREMARK SMILES CCO\nREMARK SMILES IDX 1 1 2 2 3 3\nROOT\n"
        "ATOM      1  C   UNL     1       9.000   3.000  -2.000  1.00  0.00     0.000 C \n"
        "ATOM      2  C   UNL     1      10.500   3.000  -2.000  1.00  0.00     0.000 C \n"
        "ATOM      3  O   UNL     1      11.000   4.300  -2.000  1.00  0.00     0.000 OA\nENDROOT\nTORSDOF 0\nENDMDL\n"
    )
    while True:
        k, m = sorted(draw.randrange(len(text)) for _ in range(2))
        yield Case("pdbqt", (text[:k] + text[m:]).encode(), ".pdbqt")


Maker = Callable[[random.Random], Iterator[Case]]
KINDS: dict[str, Maker] = {
    "radical": _radicals,
    "open shell": _of_smiles("open shell", ("C[CH2]", "CC[O]", "CN(C)[O]", "CC(C)[S]", "C[S]", "CO[O]")),
    "elements": _of_smiles("elements", ("OB(O)c1ccccc1", "C[Si](C)(C)C", "C[Se]C", "C[As](C)C", "CB(O)O", "C[Ge](C)C")),
    "metals": _of_smiles("metals", ("[Zn+2]", "C[Hg]C", "N[Pt](N)(Cl)Cl", "[Fe]", "C[Mg]Br", "O=[V](O)O", "[Na+]")),
    "salts": _of_smiles("salts", ("CC[NH3+].[Cl-]", "CC(=O)[O-].[K+]", "CCO.CCO", "CC.O", "C.C.C.C")),
    "fragments": _of_smiles("fragments", ("[H][H]", "[He]", "[H+]", "C", "O", "[Cl-]", "*C", "[2H]C", "[OH-]"), None),
    "drawings": _of_smiles("drawings", ("Oc1ccccc1", "CC(N)=O", "CCO", "c1ccncc1"), flat=True),
    "valences": _of_smiles("valences", ("CC(C)(C)(C)C", "CN(C)(C)C", "CO(C)C", "CF(C)C", "C=C(C)(C)C", "Cl(C)C")),
    "charges": _of_smiles("charges", ("[CH3+4]", "[NH4+]", "C[O-2]", "[CH2-][N+4]", "C[N-3]", "[C-]#[O+]"), None),
    "bare": _of_smiles("bare", ("CCO", "Oc1ccccc1", "CC(N)=O"), hydrogens=False),
    "counts": _counts,
    "coordinates": _coordinates,
    "coinciding": _coinciding,
    "truncated": _truncated,
    "bytes": _mutated,
    "name": _named,
    "name, too": _named,
    "duplicate": _duplicates,
    "size": _sizes,
    "encoding": _encodings,
    "smiles": _smiles,
    "mol2": _mol2,
    "pdbqt": _pdbqt,
}  # fmt: skip


def write(folder: Path, hostile: list[Case]) -> tuple[list[Path], list[Case | None]]:
    """Write an SDF file with the valid molecules among the records, and the others; return paths and row sources.

    The source is None for a valid molecule.
    """
    folder.mkdir()
    records = [case for case in hostile if not case.suffix]
    rows, parts = list[Case | None](), list[bytes]()
    every = math.ceil((len(records) + 1) / len(GOOD))
    groups = [records[k * every : (k + 1) * every] for k in range(len(GOOD))]
    for of, others in zip(good(), groups, strict=True):
        parts += [of.encode(), *(case.content for case in others)]
        rows += [None, *others]
    (folder / "all.sdf").write_bytes(
        b"".join(part + (b"" if part.endswith(b"\n") else b"\n") + b"$$$$\n" for part in parts)
    )
    paths = [folder / "all.sdf"]
    for k, case in enumerate(case for case in hostile if case.suffix):
        paths.append(folder / f"file {k}; touch pwned{case.suffix}")
        paths[-1].write_bytes(case.content)
        rows.append(case)
    return paths, rows


def run(folder: Path, hostile: list[Case]) -> tuple[int, list[dict[str, Any]], str]:
    """Screen in a folder; return the exit code, one row per molecule in input order, and the messages."""
    paths, _ = write(folder / "in", hostile)
    words = ["screen", RECEPTOR, *(path.relative_to(folder) for path in paths), "-o", "out", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "pele_ocl", *map(str, words), "--max-iterations", "3", "--inside", "1"], cwd=folder,
        capture_output=True, text=True, stdin=subprocess.DEVNULL, errors="replace",
    )  # fmt: skip
    rows = json.loads(done.stdout).get("molecules", []) if done.stdout.startswith("{") else []
    return done.returncode, rows, done.stdout + done.stderr


def check(folder: Path, hostile: list[Case]) -> Counter[str]:
    """Screen without and with the hostile molecules, and assert; return how many of each kind have a score."""
    folder = folder.resolve()
    alone, among = folder / "alone", folder / "among"
    for each in (alone, among):
        each.mkdir(parents=True)
    code, few, said = run(alone, [])
    assert code == 0, said
    code, rows, said = run(among, hostile)
    assert code == 1, said[-2000:]
    assert {path.name for path in folder.iterdir()} == {"alone", "among"}
    assert {path.name for path in among.iterdir()} == {"in", "out"}
    assert not [path for path in folder.rglob("pwned*") if path.parent.name != "in"]
    _, of_rows = write(folder / "again", hostile)
    assert len(rows) >= len(of_rows), (len(rows), len(of_rows))
    scores, faults, same = Counter[str](), list[str](), iter(few)
    for row, case in zip(rows, [*of_rows, *[None] * (len(rows) - len(of_rows))], strict=True):
        error = row.get("error", "")
        if bool(error) == (row.get("score") is not None) or not error.isprintable() or len(error) > 1000:
            faults.append(f"{row['title']!r}: {row}")
        if SAYS_NOTHING.search(error):
            faults.append(f"{row['title']!r}: {error}")
        if case is not None:
            scores[case.kind] += not error
            if case.fails is not None and case.fails != bool(error):
                faults.append(f"{case.kind}, {row['title']!r}: {row}")
        elif row["title"].startswith("good_") and (own := next(same, None)) is not None:
            theirs, ours = (
                (at / "out" / "complexes" / f"{of['molecule']}.pdb").read_bytes()
                for at, of in ((alone, own), (among, row))
            )
            if theirs != ours or any(own[name] != row[name] for name in own.keys() - {"molecule", "rank", "notes"}):
                faults.append(f"{own['title']}: differs among the others: {own} {row}")
    assert next(same, None) is None
    assert not faults, "\n".join(faults)
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=500, help="hostile molecules")
    parser.add_argument("--seed", type=int, default=44)
    parser.add_argument("--keep", type=Path, help="a new folder for the files")
    given = parser.parse_args()
    hostile = cases(given.n, given.seed)
    with tempfile.TemporaryDirectory() as name:
        scores = check(given.keep or Path(name), hostile)
    kinds = Counter(case.kind for case in hostile)
    print(json.dumps({kind: f"{scores[kind]} of {kinds[kind]} scored" for kind in kinds}, indent=1))


if __name__ == "__main__":
    main()
