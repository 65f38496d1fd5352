"""Assign parameters to small molecules, and write files for OpenMM, AMBER and PELE."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..atoms import Atoms
from ..common.arguments import checked, file_path
from ..common.errors import InputError, KeywordError
from ..common.modules import make_callable
from ..common.variant import Progress
from ..formats import require_table_suffix
from ..jobs.journal import Journal
from ..jobs.running import collected, run_with
from ..jobs.shards import Place, Shard
from ..ligand import Hydrogens, Ligand
from .items import MoleculeItem, items_of
from .result import ParametrizeResult
from .spec import JOURNAL, ParametrizeSpec
from .writing import FORMATS, Target

__all__ = ["FORMATS", "MoleculeItem", "ParametrizeResult", "ParametrizeSpec", "parametrize"]

if TYPE_CHECKING:
    from rdkit.Chem import Mol

Given: TypeAlias = "str | PathLike[str] | Ligand | Mol"


@checked
def parametrize(
    what: Given | Sequence[Given],
    forcefield: str = "gaff2",
    charges: str = "mmff",
    *,
    hydrogens: Hydrogens = "given",
    ph: float | None = None,
    template: str | None = None,
    receptor: str | PathLike[str] | Atoms | None = None,
    limit: float | None = None,
    output: str | PathLike[str] | None = None,
    formats: Iterable[str] = (),
    table: str | PathLike[str] | None = None,
    resume: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    shard: str | Shard | None = None,
    errors: Literal["raise", "record"] = "raise",
    progress: Progress | None = None,
    call: dict[str, Any] | None = None,
) -> ParametrizeResult:
    """Assign parameters to small molecules, and write files for OpenMM, AMBER and PELE.

    what : one or several molecules: files or a pattern such as "*.sdf", SMILES, Ligand or RDKit Mol objects. Files may
        be SDF, mol2, .smi, poses of Vina and AutoDock-GPU (.pdbqt, .dlg), or PDB and mmCIF with a `template`
    forcefield, charges, limit : as in Ligand.parametrize
    hydrogens, ph, template : as in Ligand.read
    receptor : a structure or Atoms, to also write its complexes with the molecules, as PDB files and AMBER topologies
    output : file for a single molecule, with the format given by the suffix; or folder, with a subfolder for each
        molecule. By default nothing is written
    formats : formats to write to a folder, by default all: "xml" (OpenMM), "amber" (.prmtop and .rst7), "pele"
        (DataLocal with template, OBC parameters and rotamers), "sdf", "pdb"
    table : file for a table with a row for each molecule: .csv, .h5 or .json
    resume : continue an interrupted run that wrote to a folder
    workers, scheduler, shard : processes to distribute the molecules among, as in `jobs.run`
    errors : if one of several molecules fails, "raise" an InputError, or "record" its message in the table
    progress : called with the fraction done, 0 to 1

    Parameters are cached: a molecule is computed only once, for any order and positions of its atoms.

    Raises InputError for invalid molecules and if AmberTools is not installed, FormatError for files that cannot be
    read or written, ParameterError if parameters cannot be assigned.

        result = pele_ocl.parametrize("ligands.sdf", output="parameters/")
        result.atoms(0)  # Atoms of the first
    """
    if isinstance(shard, str):
        shard = Shard.of(shard)
    target = Target.of(output, formats)
    items = items_of(what, hydrogens, ph, template)
    if not items:
        raise InputError("no molecule is given; give files of molecules, or a SMILES")
    if target.is_file and len(items) > 1:
        raise InputError(
            f"{output}: a single file contains one molecule, but there are {len(items):,}; give a folder"
        )  # fmt: skip
    if resume and (output is None or target.is_file):
        raise KeywordError("`resume` continues a run that writes to a folder; give it as `output`")
    if table is not None:
        require_table_suffix(file_path(table, "table"))
    spec = ParametrizeSpec(
        target, forcefield, charges, hydrogens, ph, template, limit,
        Path(receptor) if isinstance(receptor, str | PathLike) else receptor,
    )  # fmt: skip
    spec.require()
    journal = None if output is None or target.is_file else Path(output) / JOURNAL
    if shard is not None and journal is not None:
        journal = shard.path(journal)
    own = items if shard is None else shard.part(items, "molecules")
    opened = Journal(
        journal, spec.settings(), kind="molecules", shard=shard, items=[spec.name(item) for item in items]
    )  # fmt: skip
    records = collected(
        run_with(spec, own, opened, resume, Place(workers, scheduler, None)), len(own), errors, progress
    )
    found = ParametrizeResult(tuple(own), tuple(records), spec, dict(call or {}))
    if table is not None:
        found.table().save(table)
    return found


make_callable(__name__)
