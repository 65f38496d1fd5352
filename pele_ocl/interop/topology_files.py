"""Readers of GROMACS topologies (.top) and CHARMM topologies (.psf with parameter files), based on openmm.app."""

from __future__ import annotations

import contextlib
import io
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Residue, Strings, Topology
from ..common.errors import FormatError, InputError, PeleError
from ..common.extras import extra
from ..common.inputfile import InputFile, read_file
from ..common.textfiles import lines, quoted
from ..forcefield.openmm.system import Residues, atoms_of_system, numbered
from ..formats.amber import read_prmtop
from ..formats.amber.topology import refuse_models, refuse_reading_alone
from ..formats.registry import StructureFormat

if TYPE_CHECKING:
    from openmm.app import CharmmPsfFile, GromacsTopFile

_GROMACS = ("[", "#", ";")  # directive, preprocessor instruction, comment


def read_top(file: InputFile) -> Topology:
    """Read a .top file of AMBER or GROMACS, which are distinguished by the first line."""
    first = next((line for line in lines(file, "topology") if line.strip()), "")
    return read_gromacs(file) if first.lstrip().startswith(_GROMACS) else read_prmtop(file)


def read_gromacs(path: str | PathLike[str]) -> Topology:
    """Read a GROMACS .top file with its included files. Requires the extra `openmm`.

    Residue names and numbers are those in [ atoms ]. Each molecule is a separate chain, numbered from "1". Included
    files are searched in the directory of the file, in GMXLIB, and in the topology directory of GROMACS (GMXDATA).
    Raises FormatError if a file cannot be read, and InputError for unsupported terms.
    """
    app = extra("openmm.app", "a GROMACS topology")
    file = _plain(path, "a GROMACS topology")
    try:
        with _quietly():
            made = app.GromacsTopFile(str(file), includeDir=_folder_of_includes(file))
            _check_sites(made)
            found = _topology(made, file, residues=_gromacs_residues(made))
            return replace(found, parameters=replace(found.parameters, types=_types_of_gromacs(made)))
    except PeleError:
        raise
    except Exception as error:  # openmm.app raises many types of errors
        if missing := re.search(r"#include file: *(\S+)", str(error)):
            raise FormatError(
                f"{file}: includes {quoted(missing[1])}, which is neither next to it nor in a folder of GMXLIB or "
                "GMXDATA; set GMXDATA to the folder share/gromacs of GROMACS, or copy the folder of the force field "
                "next to the file"
            ) from error
        raise _unreadable(file, "GROMACS topology", error) from error


def read_charmm(path: str | PathLike[str], parameters: Sequence[str | PathLike[str]]) -> Topology:
    """Read a CHARMM .psf file. Requires the extra `openmm`.

    parameters : all required parameter, topology and stream files of CHARMM (.prm, .par, .rtf, .top, .str)

    Raises FormatError if a file cannot be read, and InputError without parameters and for unsupported terms.
    """
    if not parameters:
        raise InputError(f"{path}: a PSF has no parameters; give CHARMM's parameter files as `parameters`")
    app = extra("openmm.app", "a CHARMM topology")
    file = _plain(path, "a CHARMM PSF")
    files = [str(read_file(each).path) for each in parameters]
    try:
        with _quietly():
            return _topology(app.CharmmPsfFile(str(file)), file, app.CharmmParameterSet(*files))
    except PeleError:
        raise
    except Exception as error:
        if missing := re.search(r"Could not find atom type for (\S+)", str(error)):
            raise FormatError(
                f"{file}: no parameter file defines the atom type {quoted(missing[1])}; also give CHARMM's topology "
                "(.rtf, such as top_all22_prot.rtf), which defines the types"
            ) from error
        raise _unreadable(file, "CHARMM PSF", error) from error


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Context manager that suppresses output and warnings of openmm.app."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def _plain(path: str | PathLike[str], kind: str) -> Path:
    """Return the path of an uncompressed file that OpenMM can open."""
    file = read_file(path).path
    if file.suffix.lower() == ".gz":
        raise FormatError(f"{file}: {kind} is read together with the files next to it; unpack it with gunzip")
    return file


def _gromacs_residues(made: GromacsTopFile) -> Residues:
    """Return the residues as in [ atoms ], because openmm.app renumbers all residues and renames some.

    As in GROMACS, a new residue begins if the number or the name changes.
    """
    index, each = list[int](), list[Residue]()
    molecule = 0
    for kind, count in made._molecules:
        rows = [
            (fields[3], *numbered(fields[2], "", k + 1)) for k, fields in enumerate(made._moleculeTypes[kind].atoms)
        ]
        for _ in range(count):
            molecule += 1
            last = None
            for row in rows:
                if row != last:
                    each.append(Residue(str(molecule), *row))
                    last = row
                index.append(len(each) - 1)
    return Residues(index, each)


def _topology(
    made: GromacsTopFile | CharmmPsfFile, file: Path, *parameters: object, residues: Residues | None = None
) -> Topology:
    """Convert a topology of openmm.app."""
    app = extra("openmm.app", str(file))
    system = made.createSystem(*parameters, nonbondedMethod=app.NoCutoff, constraints=None, rigidWater=False)
    places = np.zeros((system.getNumParticles(), 3))
    try:
        atoms = atoms_of_system(made.topology, system, places, residues=residues)
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
    return Topology(atoms, str(file))


def _folder_of_includes(file: Path) -> str | None:
    """Find the directory of the included force field in GMXLIB or GMXDATA; None to let OpenMM choose."""
    folders = [folder for folder in os.environ.get("GMXLIB", "").split(os.pathsep) if folder]
    if data := os.environ.get("GMXDATA"):
        folders += [os.path.join(data, "top"), data]
    folders += ["/usr/share/gromacs/top", "/usr/local/gromacs/share/gromacs/top"]
    included = re.findall(r'^\s*#include\s+["<]([^">]+)[">]', file.read_text(errors="replace"), re.MULTILINE)
    wanted = [name for name in included if not (file.parent / name).is_file()]
    return next((folder for folder in folders if any((Path(folder) / name).is_file() for name in wanted)), None)


def _check_sites(made: GromacsTopFile) -> None:
    """Raise ValueError for incomplete lines of virtual sites, because OpenMM reports them without the line."""
    for name, molecule in made._moleculeTypes.items():
        for kind, rows in (("2", molecule.vsites2), ("3", molecule.vsites3)):
            for fields in rows:
                n = 5 if kind == "2" else 8 if fields[4] == "4" else 7
                if len(fields) < n:
                    raise ValueError(
                        f"[ virtual_sites{kind} ] of {name}: too few numbers in the line: {' '.join(fields)}"
                    )
                atoms = [int(field) for field in fields[: int(kind) + 1]]
                if not all(1 <= k <= len(molecule.atoms) for k in atoms) or len(set(atoms)) < len(atoms):
                    raise ValueError(
                        f"[ virtual_sites{kind} ] of {name}: no such atoms in the line: {' '.join(fields)}"
                    )


def _types_of_gromacs(made: GromacsTopFile) -> Strings:
    """Return the atom types of all molecules, (n,)."""
    return np.array([
        fields[1] for name, count in made._molecules for _ in range(count) for fields in made._moleculeTypes[name].atoms
    ])  # fmt: skip


def _unreadable(file: Path, kind: str, error: Exception) -> FormatError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return FormatError(f"{file}: OpenMM cannot read this {kind}: {quoted(reason)}")


TOP = StructureFormat(refuse_reading_alone, refuse_models, brings_parameters=True, kind="a topology", topology=read_top)
PSF = StructureFormat(
    refuse_reading_alone,
    refuse_models,
    brings_parameters=True,
    kind="a CHARMM topology",
    topology=lambda file: read_charmm(file, ()),
    with_parameters=read_charmm,
)
