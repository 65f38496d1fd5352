"""SDF files of ligands: GAFF's parameters, through the OpenFF toolkit and openmmforcefields, where both are installed.

They need openff-interchange, and GAFF's types and charges AmberTools. pip has no openff-interchange, so that no extra
of pip can bring what is needed; conda-forge has all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms
from ..common.errors import FormatError, InputError
from ..common.extras import extra
from ..common.inputfile import InputFile
from ..common.textfiles import quoted
from ..forcefield.openmm.forces import A_PER_NM
from ..forcefield.openmm.system import from_openmm
from ..formats.registry import StructureFormat

if TYPE_CHECKING:
    from openff.toolkit import Molecule

_PURPOSE = "an SDF file, which has no parameters,"
_WAYS = (
    "give the ligand's AMBER topology, its OpenMM XML file beside a .pdb file (force field amber14,ligand.xml) or "
    "peleffy's template; for `solvent` and `potmap`, which need no Lennard-Jones parameters, a mol2 file with charges"
)


def read_sdf(file: InputFile, model: int | None = None) -> Atoms:
    """Read the atoms of a ligand with GAFF's parameters; charges are the file's, or AM1-BCC.

    model : number of the molecule, from 1; the first if None

    Raises InputError, which names the other ways, if openff-toolkit or openmmforcefields is not installed. Raises
    FormatError for files that they cannot read.
    """
    molecules = _molecules(file)
    if model is not None and not 1 <= model <= len(molecules):
        raise FormatError(f"{file}: has no model {model}; it has {len(molecules):,}")
    molecule = molecules[(model or 1) - 1]
    app = extra("openmm.app", "an SDF file")
    generator = extra("openmmforcefields.generators", _PURPOSE, _WAYS).GAFFTemplateGenerator(molecules=molecule)
    field = app.ForceField()
    field.registerTemplateGenerator(generator.generator)
    topology = molecule.to_topology().to_openmm()
    try:
        system = field.createSystem(topology, nonbondedMethod=app.NoCutoff, constraints=None)
    except Exception as error:  # of the programs that make charges, too
        raise InputError(f"{file}: GAFF gives no parameters: {quoted(error)}; {_WAYS}") from error
    positions = np.asarray(molecule.conformers[0].m_as("angstrom"))
    return from_openmm(topology, system, positions / A_PER_NM)


def sdf_models(file: InputFile) -> list[int]:
    """Numbers of the molecules, from 1."""
    return list(range(1, len(_molecules(file)) + 1))


def _molecules(file: InputFile) -> list[Molecule]:
    toolkit = extra("openff.toolkit", _PURPOSE, _WAYS)
    try:
        found = toolkit.Molecule.from_file(str(file), file_format="SDF", allow_undefined_stereo=True)
    except Exception as error:  # the toolkit's wrappers raise whatever comes
        raise FormatError(f"{file}: the OpenFF toolkit cannot read it: {quoted(error)}") from error
    molecules = found if isinstance(found, list) else [found]
    if not molecules or not molecules[0].conformers:
        raise FormatError(f"{file}: holds no molecule with coordinates")
    return molecules


FORMAT = StructureFormat(read_sdf, sdf_models, brings_parameters=True, kind="an SDF file")
