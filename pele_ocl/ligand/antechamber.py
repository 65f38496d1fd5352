"""Assign GAFF and GAFF2 parameters by AmberTools' programs, run in a temporary folder and cached on disk.

antechamber assigns types and charges, parmchk2 estimates missing parameters, and tleap writes a topology, which is read
like any AMBER topology. AmberTools' Python modules are not imported.
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
_DATE = re.compile(rb"DATE = \d\d/\d\d/\d\d +\d\d:\d\d:\d\d")  # removed, so that equal topologies have equal bytes
# Numbers of the force fields in parmchk2. With the name gaff2, parmchk2 of AmberTools 26 randomly uses GAFF parameters
# in a third of its runs.
_SETS = {"gaff": "1", "gaff2": "2"}
LOST = 0.01  # e, tolerance for the sum of charges to differ from the formal charge
_INSTALL = (
    "AmberTools' {program} is needed for parameters of small molecules, but is not on the PATH: "
    "conda install -c conda-forge ambertools; on Linux (x86-64) also pip install 'pele-ocl[ligands]'"
)


def knows(forcefield: str) -> bool:
    """Return whether a force field is GAFF or GAFF2."""
    return forcefield in ATOM_TYPES


def check(forcefield: str, charges: str) -> None:
    """Raise InputError for ABCG2 charges with GAFF."""
    if charges == "abcg2" and forcefield != "gaff2":
        raise InputError("ABCG2 charges were developed for GAFF2; choose forcefield='gaff2', or other charges")


def atoms_of(ligand: Molecule, forcefield: str) -> Atoms:
    """Raise NotImplementedError, since results are cached as topologies."""
    raise NotImplementedError


def told(forcefield: str, charges: str, topology: bytes) -> tuple[str, str]:
    """Return display names of force field and charges."""
    return forcefield.upper(), "Gasteiger's charges by RDKit" if is_by_rdkit(topology) else CHARGES[charges]


def topology_of(ligand: Molecule, forcefield: str, charges: str, limit: float | None = None) -> bytes:
    """Compute the topology (prmtop) of a ligand, in its order of atoms; parameters as in Ligand.parametrize.

    Raises InputError if a program is not installed, ParameterError if parameters cannot be assigned.
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
    """Return whether the charges of a topology were computed by RDKit."""
    return topology.endswith(_BY_RDKIT)


def program(name: str) -> str:
    """Find an AmberTools program on the PATH or next to Python. Raises InputError if it is not installed."""
    found = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
    if found is None:
        raise InputError(_INSTALL.format(program=name))
    return found


@cache
def version() -> str:
    """Return an identifier of AmberTools' version: the size of antechamber's executable."""
    path = Path(program("antechamber")).resolve()
    return f"{path.stat().st_size}"


# Section appended to topologies with RDKit's charges, used if the sum of antechamber's is not the formal charge.
_BY_RDKIT = b"%FLAG PELE_OCL_CHARGES\n%FORMAT(20a4)\nGASTEIGER BY RDKIT\n"


def _gasteiger(molecule: Any, charge: int, source: str) -> Floats:
    partial: Any = extra("rdkit.Chem.rdPartialCharges", "Gasteiger's charges")
    partial.ComputeGasteigerCharges(molecule, nIter=12, throwOnParamFailure=False)
    found = np.array([atom.GetDoubleProp("_GasteigerCharge") for atom in molecule.GetAtoms()])
    if not np.isfinite(found).all():
        raise ParameterError(f"{source}: Gasteiger charges are not available for all its atoms; choose charges='bcc'")
    found = np.round(found, 6)
    found[np.argmax(np.abs(found))] += charge - found.sum()
    return found


def _charges_of(path: Path) -> Floats:
    """Read the atomic charges of a mol2 file, (n,) e."""
    lines = path.read_text().splitlines()
    first = lines.index("@<TRIPOS>ATOM") + 1
    last = next(k for k in range(first, len(lines) + 1) if k == len(lines) or lines[k].startswith("@"))
    return np.array([float(line.split()[8]) for line in lines[first:last]])


def _refuse_guesses(path: Path, source: str) -> None:
    """Raise ParameterError if parmchk2 found no parameters; it then writes zeros marked by ATTN."""
    bad = [line for line in path.read_text().splitlines() if "ATTN" in line]
    if bad:
        raise ParameterError(
            f"{source}: the force field has no parameters for {' '.join(bad[0].split()[0].split())} "
            f"or similar terms ({len(bad)} terms); use another force field, or your own parameters"
        )


def run(name: str, words: list[str], folder: Path, source: str, until: float | None) -> None:
    """Run a program in a folder. Raises ParameterError with its message if it fails, and if it takes too long."""
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
            raise ParameterError(f"{source}: {name} was stopped at the time limit") from None
        except BaseException:
            _kill(process)
            raise
    expected = {"antechamber": "out.mol2", "parmchk2": "out.frcmod", "tleap": "out.prmtop"}[name]
    if process.returncode or not (folder / expected).is_file():
        raise ParameterError(f"{source}: {name} failed: {_reason(said, folder)}")


def environment() -> dict[str, str]:
    """Return the environment for AmberTools' programs; those of the wheel need the paths of its data and libraries."""
    found = {**os.environ, "OMP_NUM_THREADS": "1"}
    libraries = Path(program(PROGRAMS[0])).resolve().parent.parent / "lib" / "ambertools"
    if libraries.is_dir():  # the wheel does not set these variables
        found.setdefault("AMBERHOME", str(libraries))
        own = str(libraries / "lib")
        found["LD_LIBRARY_PATH"] = ":".join(filter(None, (own, os.environ.get("LD_LIBRARY_PATH"))))
    return found


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a program and its child processes."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, AttributeError):
        process.kill()


def _reason(said: str, folder: Path) -> str:
    """Return the line of the output that describes the error, without the folder."""
    lines = [" ".join(line.split()).replace(str(folder), "") for line in said.splitlines()]
    words = ("error", "fatal", "cannot", "could not", "fail", "odd")
    fatal = [after for line, after in pairwise(lines) if line.endswith("Fatal Error!") and after]
    told = fatal or [line for line in lines if any(word in line.lower() for word in words) and line.strip(" -!.")]
    return (told or [line for line in lines if line] or ["without a message"])[0][:200]
