"""Molecules as items of a job: their sources, and the names of their files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ..common import arguments
from ..common.errors import FormatError, InputError
from ..jobs.outputs import UniqueNames, expanded
from ..ligand import Hydrogens, Ligand, is_mol, is_molecule_file, ligand_makers

if TYPE_CHECKING:
    from rdkit.Chem import Mol


@dataclass(frozen=True)
class MoleculeItem:
    """A molecule to parametrize.

    name : unique name of its files; path, number : its file, and its number there, from 1; smiles : SMILES without a
        file
    mol : RDKit Mol; `number` is then its position in the input, from 1
    """

    name: str
    path: str = ""
    number: int = 1
    smiles: str = ""
    ligand: Ligand | None = None
    mol: Mol | None = None

    def __str__(self) -> str:
        return self.name


def items_of(
    what: object, hydrogens: Hydrogens, ph: float | None, template: str | None
) -> list[MoleculeItem]:  # fmt: skip
    """List the molecules of the input. Raises InputError or FormatError for input without molecules."""
    several = [what] if isinstance(what, str | PathLike | Ligand) or is_mol(what) else what
    if not isinstance(several, Iterable):
        raise InputError(f"the molecules are {arguments.described(what)}; expected files of molecules, or a SMILES")
    found = list[MoleculeItem]()
    for number, each in enumerate(several, 1):
        if isinstance(each, Ligand):
            found.append(MoleculeItem(each.name, ligand=each))
        elif is_mol(each):
            title = each.GetProp("_Name").strip() if each.HasProp("_Name") else ""
            found.append(MoleculeItem(title, number=number, mol=each))
        elif isinstance(each, str) and is_smiles(each):
            found.append(MoleculeItem("", smiles=each))
        elif isinstance(each, str | PathLike):
            for path in expanded([Path(each)]):
                found += _of_file(str(path), hydrogens, ph, template)
        else:
            raise InputError(
                f"a molecule is {arguments.described(each)}; expected a file, a SMILES, a Ligand or a Mol of RDKit"
            )
    names = UniqueNames()
    return [replace(item, name=names.of(item.name, f"ligand_{number}")) for number, item in enumerate(found, 1)]


def is_smiles(text: str) -> bool:
    """Return whether a text may be a SMILES: it is no existing file and has no suffix of molecule files."""
    return not is_molecule_file(text) and not Path(text).exists() and "\n" not in text and bool(text.strip())


def _of_file(path: str, hydrogens: Hydrogens, ph: float | None, template: str | None) -> list[MoleculeItem]:
    stem = Path(path.removesuffix(".gz").removesuffix(".bz2")).stem
    titles = [make.title for make in ligand_makers(path, hydrogens=hydrogens, ph=ph, template=template)]
    if not titles:
        raise FormatError(f"{path}: contains no molecule")
    return [
        MoleculeItem(title or (stem if len(titles) == 1 else f"{stem}_{number}"), path, number)
        for number, title in enumerate(titles, 1)
    ]
