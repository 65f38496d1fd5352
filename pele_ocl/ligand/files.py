"""SDF files as molecules of every command: GAFF2's parameters for a molecule that has none."""

from __future__ import annotations

from ..atoms import Atoms
from ..common.inputfile import InputFile
from ..formats.registry import StructureFormat
from .molecule import Ligand, read_ligands


def read_sdf(file: InputFile, model: int | None = None) -> Atoms:
    """Read a molecule and give it GAFF2's parameters with Gasteiger's charges.

    model : number of the molecule, from 1; the first if None

    Raises as Ligand.read and Ligand.parametrize do.
    """
    return Ligand.read(file, model or 1).parametrize()


def sdf_models(file: InputFile) -> list[int]:
    """Numbers of the molecules, from 1."""
    return list(range(1, len(read_ligands(file, failed={})) + 1))


FORMAT = StructureFormat(read_sdf, sdf_models, brings_parameters=True, kind="an SDF file")
