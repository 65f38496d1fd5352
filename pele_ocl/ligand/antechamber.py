"""Parameters of GAFF and GAFF2 by AmberTools' programs, called in a folder of their own, and kept on disk.

antechamber gives types and charges, parmchk2 what the force field lacks, and tleap a topology, which our reader of
AMBER's topologies knows whole. Nothing of AmberTools is imported.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms import Atoms, Floats
from ..common.errors import InputError, ParameterError
from ..common.extras import extra
from .settings import ATOM_TYPES
from .settings import CHARGES as METHODS

if TYPE_CHECKING:
    from rdkit.Chem import Mol

    from .parametrisers import Molecule

KEEPS = True
CHARGES: Mapping[str, str] = METHODS

PROGRAMS = ("antechamber", "parmchk2", "tleap")
_DATE = re.compile(rb"DATE = \d\d/\d\d/\d\d +\d\d:\d\d:\d\d")  # of a topology, which equal ones should not have
# Numbers by which parmchk2 knows the force fields. By the name gaff2, that of AmberTools 26 takes GAFF's
# parameters in a third of its runs, at random.
_SETS = {"gaff": "1", "gaff2": "2"}
LOST = 0.01  # e that the charges of a program may lack of the formal charge
_INSTALL = (
    "AmberTools' {program} is needed for the parameters of a small molecule, and is not on the PATH: "
    "conda install -c conda-forge ambertools; on Linux (x86-64) also pip install 'pele-ocl[ligands]'"
)


def knows(forcefield: str) -> bool:
    """Return whether this is GAFF or GAFF2."""
    return forcefield in ATOM_TYPES


def check(forcefield: str, charges: str) -> None:
    """Raise InputError for ABCG2 charges with GAFF."""
    if charges == "abcg2" and forcefield != "gaff2":
        raise InputError("ABCG2 charges were made for GAFF2; choose forcefield='gaff2', or other charges")


def atoms_of(ligand: Molecule, forcefield: str) -> Atoms:
    """Raise NotImplementedError: what the programs compute is kept as a topology."""
    raise NotImplementedError


def told(forcefield: str, charges: str, topology: bytes) -> tuple[str, str]:
    """Words for people."""
    return forcefield.upper(), "Gasteiger's charges by RDKit" if is_by_rdkit(topology) else CHARGES[charges]


def topology_of(ligand: Molecule, forcefield: str, charges: str, limit: float | None = None) -> bytes:
    """Topology (prmtop) of a ligand, its atoms in its order; parameters as in Ligand.parametrize.

    Raises InputError if a program is not installed, ParameterError if one finds no parameters.
    """
    molecule: Mol = ligand.molecule
    charge, source = ligand.charge, ligand.source
    for name in PROGRAMS:
        program(name)
    chem: Any = extra("rdkit.Chem", "a small molecule")
    until = None if limit is None else time.monotonic() + limit
    copied = chem.Mol(molecule)
    for each in list(copied.GetPropNames(True, True)):
        copied.ClearProp(each)
    copied.SetProp("_Name", "LIG")
    with tempfile.TemporaryDirectory(prefix="pele-ocl-") as name:
        folder = Path(name)
        (folder / "in.sdf").write_text(chem.MolToMolBlock(copied, kekulize=True) + "\n$$$$\n")
        common = ["-fi", "sdf", "-i", "in.sdf", "-fo", "mol2", "-o", "out.mol2", "-at", forcefield, "-rn", "LIG"]
        common += ["-nc", str(charge), "-pf", "y", "-dr", "n", "-s", "0"]
        run("antechamber", [*common, "-c", charges], folder, source, until)
        lost = charge - float(_charges_of(folder / "out.mol2").sum())
        note = b""
        if abs(lost) > LOST and charges == "gas":
            values = _gasteiger(copied, charge, source)
            (folder / "charges").write_text("\n".join(f"{q:.6f}" for q in values) + "\n")
            run("antechamber", [*common, "-c", "rc", "-cf", "charges"], folder, source, until)
            note = _BY_RDKIT
        run(
            "parmchk2",
            ["-i", "out.mol2", "-f", "mol2", "-o", "out.frcmod", "-s", _SETS[forcefield]],
            folder,
            source,
            until,
        )
        _refuse_guesses(folder / "out.frcmod", source)
        (folder / "leap.in").write_text(
            f"source leaprc.{forcefield}\nloadamberparams out.frcmod\nm = loadmol2 out.mol2\n"
            "set default PBRadii mbondi2\nsaveamberparm m out.prmtop out.rst7\nquit\n"
        )
        run("tleap", ["-f", "leap.in"], folder, source, until)
        return _DATE.sub(rb"DATE = 01/01/00 00:00:00", (folder / "out.prmtop").read_bytes(), count=1) + note


def is_by_rdkit(topology: bytes) -> bool:
    """Return whether the charges of a topology are RDKit's."""
    return topology.endswith(_BY_RDKIT)


def program(name: str) -> str:
    """Find one of AmberTools' programs: on the PATH, or next to this Python. Raises InputError if there is none."""
    found = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
    if found is None:
        raise InputError(_INSTALL.format(program=name))
    return found


@cache
def version() -> str:
    """Version of the programs: size and time of antechamber's executable, which every release changes."""
    path = Path(program("antechamber")).resolve()
    return f"{path.stat().st_size}"


# Section of a topology whose charges are by RDKit, as antechamber's lack the formal charge.
_BY_RDKIT = b"%FLAG PELE_OCL_CHARGES\n%FORMAT(20a4)\nGASTEIGER BY RDKIT\n"


def _gasteiger(molecule: Any, charge: int, source: str) -> Floats:
    partial: Any = extra("rdkit.Chem.rdPartialCharges", "Gasteiger's charges")
    partial.ComputeGasteigerCharges(molecule, nIter=12, throwOnParamFailure=False)
    found = np.array([atom.GetDoubleProp("_GasteigerCharge") for atom in molecule.GetAtoms()])
    if not np.isfinite(found).all():
        raise ParameterError(f"{source}: Gasteiger's charges do not know all its atoms; choose charges='bcc'")
    found = np.round(found, 6)
    found[np.argmax(np.abs(found))] += charge - found.sum()
    return found


def _charges_of(path: Path) -> Floats:
    """Charges of the atoms of a mol2 file, (n,) e."""
    lines = path.read_text().splitlines()
    first = lines.index("@<TRIPOS>ATOM") + 1
    last = next(k for k in range(first, len(lines) + 1) if k == len(lines) or lines[k].startswith("@"))
    return np.array([float(line.split()[8]) for line in lines[first:last]])


def _refuse_guesses(path: Path, source: str) -> None:
    """Raise ParameterError if parmchk2 found no parameters and wrote zeros, which ATTN marks."""
    bad = [line for line in path.read_text().splitlines() if "ATTN" in line]
    if bad:
        raise ParameterError(
            f"{source}: the force field has no parameters for {' '.join(bad[0].split()[0].split())}, "
            f"nor like ones ({len(bad)} such terms); another force field or parameters of your own are needed"
        )


def run(name: str, words: list[str], folder: Path, source: str, until: float | None) -> None:
    """Run a program in a folder. Raises ParameterError with what it said where it fails, or takes too long."""
    left = None if until is None else max(until - time.monotonic(), 0.01)
    path = Path(program(name))
    with subprocess.Popen(
        [str(path), *words], cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
    ) as process:  # fmt: skip
        try:
            said, _ = process.communicate(timeout=left)
        except subprocess.TimeoutExpired:
            _kill(process)
            raise ParameterError(f"{source}: {name} was given up at the limit of time") from None
        except BaseException:
            _kill(process)
            raise
    expected = {"antechamber": "out.mol2", "parmchk2": "out.frcmod", "tleap": "out.prmtop"}[name]
    if process.returncode or not (folder / expected).is_file():
        raise ParameterError(f"{source}: {name} gives no parameters: {_reason(said, folder)}")


def environment() -> dict[str, str]:
    """Environment that AmberTools' programs run in: those of the wheel are told where its data and libraries are."""
    found = {**os.environ, "OMP_NUM_THREADS": "1"}
    libraries = Path(program(PROGRAMS[0])).resolve().parent.parent / "lib" / "ambertools"
    if libraries.is_dir():  # of the wheel, which tells its programs nothing
        found.setdefault("AMBERHOME", str(libraries))
        own = str(libraries / "lib")
        found["LD_LIBRARY_PATH"] = ":".join(filter(None, (own, os.environ.get("LD_LIBRARY_PATH"))))
    return found


def _kill(process: subprocess.Popen[str]) -> None:
    """End a program and those that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, AttributeError):
        process.kill()


def _reason(said: str, folder: Path) -> str:
    """The line that says what went wrong, without the folder."""
    lines = [" ".join(line.split()).replace(str(folder), "") for line in said.splitlines()]
    words = ("error", "fatal", "cannot", "could not", "fail", "odd")
    fatal = [after for line, after in pairwise(lines) if line.endswith("Fatal Error!") and after]
    told = fatal or [line for line in lines if any(word in line.lower() for word in words) and line.strip(" -!.")]
    return (told or [line for line in lines if line] or ["it says nothing"])[0][:200]
