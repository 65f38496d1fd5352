"""Read molecules from SDF files with parameters, for all commands."""

from __future__ import annotations

from dataclasses import replace

from ..atoms import Atoms
from ..common.inputfile import InputFile
from ..formats.assembly import model_note
from ..formats.registry import StructureFormat
from .molecule import count_molecules, ligand_beside
from .settings import Hydrogens


def read_sdf(
    file: InputFile, model: int | None = None, forcefield: str = "gaff2", charges: str = "mmff",
    hydrogens: Hydrogens = "given", ph: float | None = None,
) -> Atoms:  # fmt: skip
    """Read a molecule and assign parameters.

    model : number of the molecule, from 1; the first if None
    forcefield, charges : as in Ligand.parametrize; hydrogens, ph : as in Ligand.read

    Raises as Ligand.read and Ligand.parametrize do.
    """
    atoms = ligand_beside(file, model or 1, hydrogens=hydrogens, ph=ph).parametrize(forcefield, charges)
    if model is None and count_molecules(file) > 1:
        return replace(atoms, notes=(*atoms.notes, model_note(str(file), 1)))
    return atoms


def sdf_models(file: InputFile) -> list[int]:
    """Return the numbers of all molecules, from 1, including unreadable ones."""
    return list(range(1, count_molecules(file) + 1))


FORMAT = StructureFormat(read_sdf, sdf_models, brings_parameters=True, is_of_ligands=True, kind="an SDF file")
