"""Poses of a ligand refined in a complex, a record and a file each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..atoms import Atoms, Floats
from ..binding.poses import is_sdf, read_poses, require_order
from ..common.errors import InputError, PeleError
from ..common.inputfile import InputFile, read_file
from ..contract import of_energy, of_structure, require
from ..explore import Refined, Refiner
from ..formats import read_conformations
from ..formats.conformation_files import Content, write_conformation
from ..gb_models.solvent_model import SolventModel
from ..opencl.device import get_device
from ..trajectories.fingerprints import sha256_of
from .facts import composition_as_json, settings
from .journal import make_folder
from .minimize import WRITTEN
from .reading import Reading, Reads
from .records import Record
from .spec import Spec

REFINED = "refined poses"  # the kind of a journal
TOGETHER = 32  # poses that share launches and are written together


@dataclass(frozen=True, eq=False)
class RefineSpec(Spec[int]):
    """Refine poses of a ligand, an item each by its number from 0, and write each complex to a folder.

    path : of the complex; ligand : a selection; reading : how the complex is read
    poses : files of the ligand's poses, SDF, .pdb or .cif, or of whole complexes; empty for the pose of the complex
    options : of pele_ocl.Refiner; native : file of the ligand's pose that rmsd is measured to
    """

    path: Path
    ligand: str
    output: str
    poses: tuple[Path, ...] = ()
    reading: Reads = field(default_factory=Reading)
    options: Mapping[str, Any] = field(default_factory=dict)
    native: Path | None = None
    strict: bool = False

    @cached_property
    def source(self) -> InputFile:
        """File of the complex."""
        return read_file(self.path)

    @cached_property
    def given(self) -> Atoms:
        """Atoms of the complex. Raises InputError for a structure that is refused."""
        atoms = self.reading.chosen(self.source)[0]
        require(of_structure(atoms, "noted"), self.strict)
        return atoms

    @cached_property
    def refiner(self) -> Refiner:
        """Refiner of this process."""
        return Refiner(self.given, self.ligand, **self.options)

    @cached_property
    def starts(self) -> tuple[list[str], Floats]:
        """Names and complexes (m, n, 3) A of all poses. Raises FormatError for a file that is not of these atoms."""
        atoms = self.refiner.atoms
        if not self.poses:
            return [Path(self.path.name.removesuffix(".gz")).stem], atoms.positions[np.newaxis]
        names, found = list[str](), list[Floats]()
        for path in self.poses:
            own = self._complexes(path)
            stem = Path(path.name.removesuffix(".gz")).stem
            names += [f"{stem}_{k}" for k in range(1, len(own) + 1)] if len(own) > 1 else [stem]
            found.append(own)
        if twice := next((name for k, name in enumerate(names) if name in names[:k]), None):
            raise InputError(f"two poses have the name {twice}; give the files of poses different names")
        return names, np.concatenate(found)

    @cached_property
    def native_ligand(self) -> Floats | None:
        """Positions (n_ligand, 3) A of the native pose."""
        if self.native is None:
            return None
        positions: Floats = self._complexes(self.native)[0][self.refiner.ligand]
        return positions

    def _complexes(self, path: Path) -> Floats:
        """Read the poses of a file as complexes (m, n, 3) A."""
        refiner = self.refiner
        if not is_sdf(path):
            positions = read_conformations(path)[1]
            if positions.shape[1] == len(self.given) != len(refiner.ligand):
                require_order(path, self.given)
                return refiner.complexes(positions[:, refiner.binding.parts.complex])
        return refiner.complexes(read_poses(path, refiner.atoms[refiner.ligand]))

    def items(self) -> list[int]:
        """Number all poses from 0."""
        return list(range(len(self.starts[0])))

    def name(self, item: int) -> str:
        """Name a pose: by its file, and its number there if that has several."""
        return self.starts[0][item]

    def sha256(self, item: int) -> str:
        """Compute the mark of a pose: of its complex as it was read."""
        return sha256_of({"complex": self.source.sha256, "positions": self.starts[1][item].tolist()})

    def settings(self) -> dict[str, str]:
        """Write the fields as texts, less what changes no result."""
        found = {name: text for name, text in super().settings().items() if name not in ("output", "poses")}
        return found | {"options": sha256_of(self.options)}

    def facts(self) -> dict[str, object]:
        """Name the device."""
        return {"device": str(get_device(self.options.get("device")))}

    def target(self, item: int) -> Path:
        """Name the file of a refined complex."""
        return Path(self.output) / f"{self.name(item)}.pdb"

    def still_counts(self, record: Record, item: int) -> bool:
        """True if its file is still there as it was written."""
        try:
            written = read_file(self.target(item)).sha256
        except PeleError:
            return False
        return super().still_counts(record, item) and record.more.get(WRITTEN) == written

    def compute(self, item: int) -> dict[str, Any]:
        """Refine one pose and write its file."""
        (record,) = self.records([item], lambda: None)
        if record.failed:
            raise InputError(record.error)
        return dict(record.result)

    def groups(self, items: Sequence[int]) -> Iterator[Sequence[int]]:
        """Group poses that share launches."""
        return (items[first : first + TOGETHER] for first in range(0, len(items), TOGETHER))

    def records(self, items: Iterable[int], begin: Callable[[], None]) -> Iterator[Record]:
        """Refine poses, a group after another, and write each; begin : called before a file is written"""
        for group in self.groups(list(items)):
            starts = self.starts[1][list(group)]
            refined = self.refiner.refine(starts, errors="record")
            for place, item in enumerate(group):
                if place in refined.errors:
                    yield Record.failed_by(InputError(refined.errors[place]), self.name(item), self.sha256(item))
                    continue
                positions = refined.positions[place]
                begin()
                written = self._write(item, positions)
                result = self._result(refined, place, starts[place])
                yield Record(self.name(item), self.sha256(item), result, more={WRITTEN: written})

    def _write(self, item: int, positions: Floats) -> str:
        """Write a complex, and give the SHA-256 of its file."""
        target = self.target(item)
        make_folder(target.parent)
        write_conformation(target, Content(self.refiner.atoms.moved(positions), source=str(self.path)))
        return read_file(target).sha256

    def _result(self, refined: Refined, k: int, start: Floats) -> dict[str, Any]:
        """Give the result of a record."""
        positions = refined.positions[k]
        found = of_energy(self.refiner.atoms, {"total": refined.after.total[k]}, positions)
        rmsds = {} if self.native_ligand is None else {
            "rmsd_before": self.rmsd(start), "rmsd_after": self.rmsd(positions),
        }  # fmt: skip
        return {
            "before": finite(refined.before.row(k)),
            "after": finite(refined.after.row(k)),
            "moved": float(refined.moved[k]),
            **rmsds,
            "side_chains": int(refined.side_chains[k]),
            "iterations": int(refined.iterations[k]),
            "converged": bool(refined.converged[k]),
            "findings": [finding.as_json() for finding in found],
        }

    def rmsd(self, positions: Floats) -> float:
        """Rms distance of the ligand's heavy atoms from the native pose, without superposition or symmetry, A."""
        refiner, native = self.refiner, self.native_ligand
        assert native is not None
        assert refiner.atoms.labels is not None
        own = refiner.atoms.labels.elements[refiner.ligand] != "H"
        return math.sqrt(((positions[refiner.ligand] - native)[own] ** 2).sum(axis=1).mean())

    def facts_of_complex(self) -> dict[str, Any]:
        """Facts that a record has once, as all poses share them."""
        model = self.options.get("model") or SolventModel()
        return {
            "n_atoms": len(self.refiner.atoms),
            "composition": composition_as_json(self.refiner.atoms),
            "device": str(self.refiner.binding.device),
            "variant": self.refiner.binding.variant,
            "precision": self.refiner.binding.precision,
            "settings": {
                **settings(model, self.refiner.atoms), "ligand": self.ligand,
                **{name: value for name, value in self.options.items() if name not in ("model", "device", "precision")},
            },
            "notes": list(self.refiner.notes),
        }  # fmt: skip


def finite(values: Mapping[str, float]) -> dict[str, float | None]:
    """Put None in place of what is no number."""
    return {name: value if math.isfinite(value) else None for name, value in values.items()}
