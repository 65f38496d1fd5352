"""Write refined ligands to an SDF file, with the atoms and bonds of their input, and results as properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..common.errors import printable
from ..common.extras import extra
from ..common.writing import replacing
from .molecule import Ligand


def save_sdf(path: Path, molecules: Sequence[tuple[Ligand, Mapping[str, Any]]]) -> None:
    """Write molecules with their properties. Raises FormatError if the file cannot be written."""
    chem: Any = extra("rdkit.Chem", "an SDF file")
    with replacing(path, ()) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as stream:
        for ligand, properties in molecules:
            molecule = chem.Mol(ligand.molecule)
            molecule.SetProp("_Name", " ".join(printable(ligand.name).split()))
            stream.write(chem.MolToMolBlock(molecule, kekulize=True))
            for name, value in properties.items():
                if value is not None:
                    stream.write(f">  <{name}>\n{value:.6g}\n\n")
            stream.write("$$$$\n")
