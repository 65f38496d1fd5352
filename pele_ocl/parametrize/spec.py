"""Job that parametrizes molecules and writes their files, with a record per molecule."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..atoms import Atoms
from ..common.arguments import number
from ..common.errors import InputError, PeleError
from ..common.hashing import sha256_of
from ..common.inputfile import read_file
from ..common.notes import as_json, note
from ..jobs.records import Record
from ..jobs.spec import Spec, setting_of
from ..ligand import Hydrogens, Ligand, Maker, check_choice, ligand_makers, ligand_of_mol, parametriser_of
from ..ligand.remarks import LigandRemark
from ..reading import read
from .items import MoleculeItem
from .writing import Target, require_folder, write_amber, write_complex, write_ligand

JOURNAL = "molecules.jsonl"  # in the output folder


@dataclass(frozen=True, eq=False)
class ParametrizeSpec(Spec[MoleculeItem]):
    """Assign parameters to molecules, and write their files.

    target : files to write; other parameters as in `pele_ocl.parametrize`
    """

    target: Target
    forcefield: str = "gaff2"
    charges: str = "mmff"
    hydrogens: Hydrogens = "given"
    ph: float | None = None
    template: str | None = None
    limit: float | None = None
    receptor: Path | Atoms | None = None

    def require(self) -> None:
        """Check the settings before the first molecule.

        Raises InputError or FormatError for unknown names, missing programs, and an invalid target.
        """
        check_choice(self.forcefield, self.charges)
        if self.limit is not None:
            number("limit", self.limit, "seconds", above=0)
        parametriser_of(self.forcefield).version()
        is_folder = self.target.path and not self.target.is_file
        if self._receptor is not None and not (is_folder and {"pdb", "amber"} & set(self.target.formats)):
            raise InputError(
                "`receptor` is written in complexes to a folder; give it as `output`, with 'pdb' or 'amber' in "
                "`formats`"
            )
        if self.target.path and not self.target.is_file:
            require_folder(self.target.path)

    def name(self, item: MoleculeItem) -> str:
        """Return the name of the molecule."""
        return item.name

    def sha256(self, item: MoleculeItem) -> str:
        """Compute the hash of the molecule's source."""
        if item.ligand is not None:
            return sha256_of((item.ligand.smiles, item.ligand.positions))
        if item.mol is not None:
            return sha256_of(item.mol.ToBinary().hex())
        if item.smiles:
            return sha256_of(item.smiles)
        try:
            return sha256_of((self._sha256_of(item.path), item.number))
        except PeleError:
            return ""

    def still_counts(self, record: Record, item: MoleculeItem) -> bool:
        """Return whether the record is still valid: its files exist."""
        there = all(Path(str(path)).is_file() for path in record.result.get("files", ()))
        return super().still_counts(record, item) and there

    def settings(self) -> dict[str, str]:
        """Return the fields as texts, except the time limit and the name of the folder."""
        own = {of.name: setting_of(getattr(self, of.name)) for of in fields(self)}
        own |= {"limit": "", "target": ",".join(self.target.formats)}
        return own if not isinstance(self.receptor, Atoms) else {**own, "receptor": sha256_of(self.receptor)}

    def ligand(self, item: MoleculeItem) -> Ligand:
        """Read a molecule. Raises FormatError or InputError."""
        if item.ligand is not None:
            return item.ligand
        if item.mol is not None:
            made = ligand_of_mol(
                item.mol, f"Mol {item.number:,}", hydrogens=self.hydrogens, ph=self.ph, word="hydrogens"
            )
            return made if made.name else replace(made, name=item.name)
        if item.smiles:
            return Ligand.from_smiles(item.smiles, ph=self.ph)
        return self._makers_of(item.path)[item.number - 1]()

    def atoms(self, item: MoleculeItem) -> Atoms:
        """Return a molecule's atoms with parameters, using the cache."""
        return self.ligand(item).parametrize(self.forcefield, self.charges, limit=self.limit)

    def compute(self, item: MoleculeItem) -> Mapping[str, Any]:
        """Parametrize a molecule and write its files."""
        start = time.perf_counter()
        ligand = self.ligand(item)
        atoms = ligand.parametrize(self.forcefield, self.charges, limit=self.limit)
        files = self.target.files(item.name, ligand.residue_name)
        inputs = [Path(item.path)] if item.path else []
        remark = self.remark(ligand)
        write_ligand(files, ligand, atoms, inputs, remark)
        if self._receptor is not None:
            files = (*files, *self._write_complex(item, atoms, remark))
        return {
            "name": ligand.name, "source": ligand.source, "formula": ligand.formula, "n_atoms": len(ligand),
            "charge": ligand.charge, "residue_name": ligand.residue_name, "forcefield": atoms.forcefield,
            "smiles": ligand.smiles, "files": [str(path) for path in files], **as_json(atoms.notes),
            "seconds": {"total": time.perf_counter() - start},
        }  # fmt: skip

    def remark(self, ligand: Ligand) -> LigandRemark | None:
        """Return the remark that defines the molecule in PDB files; None if charges are from its file."""
        if self.charges == "file":
            return None
        return LigandRemark(ligand.residue_name, self.forcefield, self.charges, ligand.short_smiles)

    def _write_complex(self, item: MoleculeItem, atoms: Atoms, remark: LigandRemark | None) -> list[Path]:
        """Write the complex with the receptor; as AMBER topology only if the format supports the receptor's terms."""
        assert self._receptor is not None
        together, written = self._receptor + atoms, list[Path]()
        stem = Path(self.target.path) / item.name / f"{item.name}_complex"
        if "pdb" in self.target.formats:
            written.append(write_complex(stem, together, len(atoms), remark))
        if "amber" in self.target.formats:
            try:
                written += write_amber(stem, together, item.name)
            except InputError as error:
                note(f"Note: {stem.name}.prmtop was not written: {error}")
        return written

    @cached_property
    def _receptor(self) -> Atoms | None:
        return read(self.receptor) if isinstance(self.receptor, Path) else self.receptor

    @cached_property
    def _files(self) -> dict[str, tuple[str, list[Maker]]]:
        return {}

    def _sha256_of(self, path: str) -> str:
        return self._read(path)[0]

    def _makers_of(self, path: str) -> list[Maker]:
        return self._read(path)[1]

    def _read(self, path: str) -> tuple[str, list[Maker]]:
        """Read a file; the result is cached."""
        if path not in self._files:
            file = read_file(path)
            makers = ligand_makers(file, hydrogens=self.hydrogens, ph=self.ph, template=self.template)
            self._files[path] = file.sha256, list(makers)
        return self._files[path]
