"""Job that refines poses of a ligand in a complex, with a record and a file per pose."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..atoms import Atoms, Floats
from ..atoms.graphs import Graph, SymmetricRmsd
from ..binding.poses import PoseReader, Poses, holds_molecules, read_complexes
from ..common.errors import FormatError, InputError, PeleError
from ..common.hashing import sha256_of
from ..common.inputfile import read_file
from ..contract import of_energy
from ..formats import read_conformations, structure_suffix
from ..formats.conformation_files import Content, write_conformation
from ..formats.molecules import Molecule
from ..gb_models.solvent_model import SolventModel
from ..jobs.facts import composition_as_json, settings
from ..jobs.journal import make_folder
from ..jobs.outputs import UniqueNames
from ..jobs.records import WRITTEN, Record
from ..ligand import Ligand, Maker, ligand_makers
from ..reading import Reading
from ..trajectories import trajectory
from ..trajectories.files import SUFFIXES
from .poses import Refined
from .refinement_spec import RefinementSpec
from .refiner import Refiner


class Starts(NamedTuple):
    """Poses to refine: names, complexes, and their molecules, None for poses that are not molecules."""

    names: list[str]
    poses: Poses
    molecules: list[Maker | None]


REFINED = "refined poses"  # kind of the journal
TOGETHER = 32  # number of poses that are refined and written together


@dataclass(frozen=True, eq=False)
class RefineSpec(RefinementSpec):
    """Refine poses of a ligand and write each complex to a folder. Items are the indices of the poses, from 0.

    path : path of the complex, or Atoms; ligand : selection; reading : how the complex is read
    output : folder, "" to write no files
    poses : files of ligand poses (SDF, mol2, .pdb or .cif), or of complexes, including trajectories; or positions
        (m, n_ligand, 3) or (m, n, 3) A; empty for the pose in the complex
    options : options of pele_ocl.Refiner; native : file of the ligand's reference pose for the rmsd
    strict : True to refuse complexes with findings that otherwise only cause notes
    keep : called with the index of each pose and its complex (n, 3) A, in this process only

    `source`, `given`, `refiner`, `starts`, `reader` and `native_ligand` are computed on first use.
    """

    path: Path | Atoms
    ligand: str
    output: str
    poses: tuple[Path, ...] | Floats = ()
    reading: Reading = field(default_factory=Reading)
    options: Mapping[str, Any] = field(default_factory=dict)
    native: Path | None = None
    strict: bool = False
    keep: Callable[[int, Floats], None] | None = None

    _unnamed = "the complex"

    @property
    def structure(self) -> Path | Atoms:
        """The complex, as a path or Atoms."""
        return self.path

    @cached_property
    def given(self) -> Atoms:
        """Atoms of the complex. Raises InputError for a structure that is refused."""
        if isinstance(self.path, Atoms):
            atoms = self.path
        else:
            source = read_file(self.path)
            molecules = () if isinstance(self.poses, np.ndarray) else filter(holds_molecules, self.poses)
            atoms, _ = self.reading.with_molecules(molecules, lambda reading: reading.chosen(source))
        self.check(atoms)
        return atoms

    @cached_property
    def refiner(self) -> Refiner:
        """Refiner of this process."""
        return Refiner(self.given, self.ligand, **self.options)

    @cached_property
    def starts(self) -> Starts:
        """Names and complexes (m, n, 3) A of all poses; unreadable poses have NaN and an error message.

        Poses are named after their molecules' titles, otherwise after their files.

        Raises FormatError if no pose can be read, InputError if two poses have the same name.
        """
        atoms = self.refiner.atoms
        if isinstance(self.poses, np.ndarray):
            complexes = self.refiner.complexes(self.poses)
            return Starts([f"pose_{k + 1}" for k in range(len(complexes))], Poses(complexes), [None] * len(complexes))
        if not self.poses:
            name = "complex" if isinstance(self.path, Atoms) else Path(self.path.name.removesuffix(".gz")).stem
            return Starts([name], Poses(atoms.positions[np.newaxis]), [None])
        names, found, errors, notes = list[str](), list[Floats](), dict[int, str](), list[str]()
        molecules, unique = list[Maker | None](), UniqueNames()
        for path in self.poses:
            try:
                own = self._complexes(path)
            except PeleError as error:
                own = Poses(np.full((1, len(atoms), 3), np.nan), {0: str(error)})
            stem = Path(path.name.removesuffix(".gz")).stem
            errors |= {
                len(names) + k: why if why.startswith(str(path)) else f"{path}: {why}" for k, why in own.errors.items()
            }
            stems = [f"{stem}_{k}" for k in range(1, len(own) + 1)] if len(own) > 1 else [stem]
            makers = _makers_of(path, len(own))
            molecules += makers
            names += [
                unique.of(maker.title, name) if maker is not None and maker.title else name
                for maker, name in zip(makers, stems, strict=True)
            ]
            found.append(own.positions)
            notes += own.notes
        if len(errors) == len(names):
            more = f" ({len(names) - 1:,} more poses also fail)" if len(names) > 1 else ""
            raise FormatError(f"{errors[0]}{more}")
        if twice := next((name for k, name in enumerate(names) if name in names[:k]), None):
            raise InputError(f"two poses have the name {twice}; give the files of poses different names")
        return Starts(names, Poses(np.concatenate(found), errors, tuple(notes)), molecules)

    @cached_property
    def reader(self) -> PoseReader:
        """Reader of the ligand's poses."""
        return PoseReader(self.refiner.atoms[self.refiner.ligand])

    @cached_property
    def native_ligand(self) -> Floats | None:
        """Positions of the native pose, (n_ligand, 3) A; NaN for hydrogens that its file lacks."""
        if self.native is None:
            return None
        whole = self._native_complex
        if whole is None:
            return self.reader.read_native(self.native)
        if whole.errors:
            raise FormatError(whole.errors[min(whole.errors)])
        positions: Floats = whole.positions[0][self.refiner.ligand]
        return positions

    @cached_property
    def _native_complex(self) -> Poses | None:
        """The native complex, None if its file contains only the ligand."""
        return None if self.native is None else self._whole(self.native)

    def _complexes(self, path: Path) -> Poses:
        """Read the poses of a file as complexes (m, n, 3) A."""
        whole = self._whole(path)
        if whole is not None:
            return whole
        found = self.reader.read(path)
        return Poses(self.refiner.complexes(found.positions), found.errors)

    def _whole(self, path: Path) -> Poses | None:
        """Read complexes (m, n, 3) A; None if the file's number of atoms is not that of the complex."""
        if holds_molecules(path):
            return None
        if structure_suffix(path) in SUFFIXES:
            with closing(trajectory(path, self.given)) as frames:
                positions = frames.positions(range(len(frames))).astype(np.float64)
                return self._chosen(Poses(positions, {}, frames.notes))
        n_atoms = read_conformations(path, {})[1].shape[1]
        if not n_atoms == len(self.given) != len(self.refiner.ligand):
            return None
        return self._chosen(read_complexes(path, self.given))

    def _chosen(self, found: Poses) -> Poses:
        """Extract the atoms of the complex from whole structures (m, n, 3) A."""
        chosen = found.positions[:, self.refiner.binding.parts.complex]
        return Poses(self.refiner.complexes(chosen), found.errors, found.notes)

    def molecule(self, item: int, positions: Floats) -> Ligand | None:
        """Return the molecule of a pose at its positions in a complex (n, 3) A; None if the pose is not a molecule.

        Raises PeleError if the molecule cannot be built.
        """
        maker = self.starts.molecules[item]
        if maker is None:
            return None
        ligand = maker()
        order = self.reader.order(Molecule(Graph.of(list(ligand.elements), ligand.bonds), ligand.positions))
        placed = np.empty((len(ligand), 3))
        placed[order] = positions[self.refiner.ligand]
        return ligand.moved(placed)

    def items(self) -> list[int]:
        """Return the indices of all poses. Raises FormatError if the poses or the native pose cannot be read."""
        _ = self.native_ligand  # fail before the first pose is refined
        return list(range(len(self.starts[0])))

    def name(self, item: int) -> str:
        """Return the name of a pose."""
        return self.starts[0][item]

    def sha256(self, item: int) -> str:
        """Compute the hash of a pose from its complex."""
        return sha256_of({"complex": self._mark, "positions": self.starts[1].positions[item].tolist()})

    def settings(self) -> dict[str, str]:
        """Return as texts all fields that affect results."""
        passed_over = ("output", "poses", "keep")
        found = {name: text for name, text in super().settings().items() if name not in passed_over}
        return found | {"path": self._mark, "options": sha256_of(self.options)}

    def target(self, item: int) -> Path | None:
        """Return the path of the refined complex; None if no files are written."""
        return Path(self.output) / f"{self.name(item)}.pdb" if self.output else None

    def still_counts(self, record: Record, item: int) -> bool:
        """Return whether the record is still valid: its file exists unchanged."""
        has_score = "score" in record.result.get("after", {})  # missing from records of earlier versions
        return super().still_counts(record, item) and has_score

    def groups(self, items: Sequence[int]) -> Iterator[Sequence[int]]:
        """Split poses into groups that are refined together."""
        return (items[first : first + TOGETHER] for first in range(0, len(items), TOGETHER))

    def records(self, items: Iterable[int], begin: Callable[[], None]) -> Iterator[Record]:
        """Refine poses, group by group, and write each. begin : called before a file is written"""
        poses = self.starts[1]
        wanted = list(items)
        for item in wanted:
            if item in poses.errors:
                yield Record.failed_by(InputError(poses.errors[item]), self.name(item), self.sha256(item))
        for group in self.groups([item for item in wanted if item not in poses.errors]):
            starts = poses.positions[list(group)]
            refined = self.refiner.refine(starts, errors="record")
            for place, item in enumerate(group):
                if place in refined.errors:
                    yield Record.failed_by(InputError(refined.errors[place]), self.name(item), self.sha256(item))
                    continue
                positions = refined.positions[place]
                target, more = self.target(item), {}
                if target is not None:
                    begin()
                    more = {WRITTEN: self.write(target, positions)}
                if self.keep is not None:
                    self.keep(item, positions)
                result = self._result(refined, place, starts[place])
                yield Record(self.name(item), self.sha256(item), result, more=more)

    def write(self, target: Path, positions: Floats) -> str:
        """Write a complex and return the SHA-256 of its file."""
        make_folder(target.parent)
        write_conformation(target, Content(self.refiner.atoms.moved(positions), source=self.title))
        return read_file(target).sha256

    def _result(self, refined: Refined, k: int, start: Floats) -> dict[str, Any]:
        """Return the result of a record."""
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
        """Compute the rmsd of the ligand's heavy atoms from the native pose, without superposition, A.

        Equivalent atoms, such as those of a flipped ring, are assigned optimally.
        """
        native = self.native_ligand
        assert native is not None
        return float(self._symmetric(positions[np.newaxis, self.refiner.ligand], native)[0])

    @cached_property
    def _symmetric(self) -> SymmetricRmsd:
        return SymmetricRmsd(self.reader.graph)

    def facts_of_complex(self) -> dict[str, Any]:
        """Return the facts of a record that are common to all poses."""
        model = self.options.get("model") or SolventModel()
        native_notes = () if self._native_complex is None else self._native_complex.notes
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
            "notes": [*self.refiner.notes, *self.starts[1].notes, *native_notes],
        }  # fmt: skip


def _makers_of(path: Path, n: int) -> list[Maker | None]:
    """Return a function per pose that builds its molecule, or None if the file has no n molecules."""
    if holds_molecules(path):
        with suppress(PeleError):  # reported when the poses are read
            makers: list[Maker | None] = [*ligand_makers(path)]
            if len(makers) == n:
                return makers
    return [None] * n


def finite(values: Mapping[str, float]) -> dict[str, float | int | None]:
    """Replace values that are not finite by None, and convert clashes to an integer."""
    known = {name: value if math.isfinite(value) else None for name, value in values.items()}
    clashes = known.get("clashes")
    return known if clashes is None else {**known, "clashes": int(clashes)}
