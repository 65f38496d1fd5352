"""Structures moved to their minima, a record and a file each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ..atoms import Atoms
from ..common.errors import InputError, PeleError
from ..common.hashing import sha256_of
from ..common.inputfile import InputFile, read_file
from ..common.notes import with_notes
from ..common.writing import replacing
from ..contract import of_energy, of_structure, require
from ..formats.b_factors import read_b_factors
from ..formats.conformation_files import (
    CONFORMATION_FORMATS,
    ConformationFile,
    Content,
    layout_of,
    require_suffix,
)
from ..gb_models.solvent_model import SolventModel
from ..jobs.facts import composition_as_json, notes_of, settings
from ..jobs.journal import make_folder
from ..jobs.outputs import OutputNames
from ..jobs.reading import Reading, Reads
from ..jobs.records import Record
from ..jobs.spec import Spec, StructurePath
from ..opencl.device import get_device
from . import MinimizeResult
from .many import as_done
from .rounding import rounding_gradient

ATOMS_TOGETHER = {"GPU": 1 << 21}  # of the structures that are minimised together: many times what it has at once
WRITTEN = "written"  # of a record, for the journal: the SHA-256 of its file
_LEAST_GROUPS, _MOST_FILES = 64, 64  # of files that a worker takes at a time
_NOT_SETTINGS = ("output", "held", "content", "watch", "tell")
_Waiting = tuple[StructurePath, InputFile, Atoms, Callable[[Atoms], Content]]


@dataclass(frozen=True, eq=False)
class MinimizeSpec(Spec[StructurePath]):
    """Minimise structures, and write each: to a folder, or to a name such as 'relaxed/{name}.cif'.

    reading : how files are read
    options : of pele_ocl.Minimizer, the same for all; strict : True to refuse what is noted otherwise
    held : gives further options for the atoms of one structure, its restraints say
    content : gives, for a file and its target, a function that makes the content of the file from atoms
    watch, tell : of this process alone; watch is called with progress, as pele_ocl.minimize_many does; tell is called
        with the number of structures that were begun before
    """

    output: str
    reading: Reads = field(default_factory=Reading)
    options: Mapping[str, Any] = field(default_factory=dict)
    strict: bool = False
    held: Callable[[Atoms], Mapping[str, Any]] | None = None
    content: Callable[[InputFile, Path], Callable[[Atoms], Content]] | None = None
    watch: Callable[[int, int, float], None] | None = None
    tell: Callable[[int], None] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"watch": None, "tell": None}

    def settings(self) -> dict[str, str]:
        """Write the fields as texts, less what changes no result."""
        found = {name: text for name, text in super().settings().items() if name not in _NOT_SETTINGS}
        return found | {"options": sha256_of(self.options), "held": getattr(self.held, "__qualname__", "")}

    def facts(self) -> dict[str, object]:
        """Name the device."""
        return {"device": str(get_device(self.options.get("device")))}

    def target(self, item: StructurePath) -> Path:
        """Name the file of a minimised structure."""
        return OutputNames.of(self.output).name(Path(item))

    def still_counts(self, record: Record, item: StructurePath) -> bool:
        """True if an earlier record holds: the structure and the file that it left have the same bytes.

        Workers replace files before the journal knows. After a kill a file may be of a run that noted nothing down.
        """
        try:
            found = [read_file(path).sha256 for path in (item, self.target(item))]
        except PeleError:
            return False
        return not record.failed and found == [record.sha256, record.more.get(WRITTEN)]

    def compute(self, item: StructurePath) -> dict[str, Any]:
        """Minimise one structure and write its file."""
        (record,) = self.records([item], lambda: None)
        if record.failed:
            raise InputError(record.error)
        return dict(record.result)

    def groups(self, items: Sequence[StructurePath]) -> Iterator[Sequence[StructurePath]]:
        """Group neighbouring files; the number of all decides on the size."""
        size = max(1, min(-(-len(items) // _LEAST_GROUPS), _MOST_FILES))
        return (items[first : first + size] for first in range(0, len(items), size))

    @property
    def atoms_together(self) -> int:
        """Count the atoms of files that are minimised together; 1 for each file by itself.

        A GPU needs many structures at a time; a CPU gains nothing by them. Each result depends on its structure alone.
        """
        return ATOMS_TOGETHER.get(get_device(self.options.get("device")).kind, 1)

    def records(self, items: Iterable[StructurePath], begin: Callable[[], None]) -> Iterator[Record]:
        """Files read until they are enough for the device, then minimised together.

        begin : begins the journal, before a structure is written
        """
        waiting: list[_Waiting] = []
        enough, every = self.atoms_together, list(items)
        for k, item in enumerate(every):
            try:
                source = read_file(item)
                atoms = self.reading.chosen(source)[0]
                require(of_structure(atoms, "noted"), self.strict)
                made = self._content if self.content is None else self.content
                waiting.append((item, source, atoms, made(source, self.target(item))))
            except PeleError as error:
                yield Record.failed_by(error, item)
            is_last = k + 1 == len(every)
            if waiting and (is_last or sum(len(atoms) for _, _, atoms, _ in waiting) >= enough):
                if self.tell is not None:
                    self.tell(k + 1 - len(waiting))
                yield from self._together(waiting, begin)
                waiting.clear()

    def _together(self, read: Sequence[_Waiting], begin: Callable[[], None]) -> Iterator[Record]:
        """Structures that were read, minimised, and each written once it is done."""
        molecules = [atoms for _, _, atoms, _ in read]
        for k, result in as_done(molecules, self.held, None, self.watch, self.options):
            item, source, atoms, content = read[k]
            if isinstance(result, str):
                yield Record.failed_by(result, item, source.sha256)
                continue
            try:
                values = facts_of_molecule(result.atoms, self.options)
                values |= {
                    **facts_of_model(result, atoms, self.strict, self.target(item)),
                    **notes_of(result.atoms),
                }
                values = with_notes(values, [f"{item}: {finding['text']}" for finding in values["findings"]])
                written = _write(self.target(item), content(result.atoms), result.atoms, begin)
            except PeleError as error:
                yield Record.failed_by(error, item, source.sha256)
            else:
                yield Record(str(item), source.sha256, values, more={WRITTEN: written})

    @staticmethod
    def _content(source: InputFile, _: Path) -> Callable[[Atoms], Content]:
        """Make the content of a file, with the occupancies and B-factors of the source."""

        def content(atoms: Atoms) -> Content:
            b_factors = None if atoms.labels is None else read_b_factors(source, atoms.labels)
            return Content(atoms, source=str(source), b_factors=b_factors)

        return content


def facts_of_molecule(atoms: Atoms, options: Mapping[str, Any]) -> dict[str, Any]:
    """Facts that a record has once, as all conformations of a molecule share them; options : of pele_ocl.Minimizer"""
    return {
        "n_atoms": len(atoms),
        "composition": composition_as_json(atoms),
        "device": str(get_device(options.get("device"))),
        "method": options.get("method", "lbfgs"),
        "precision": options.get("precision", "float32"),
        "settings": {
            **settings(options.get("model") or SolventModel(), atoms),
            "cutoff": options.get("cutoff"), "one_four": options.get("one_four", "scale"),
            "terms": options.get("only_terms"),
        },
    }  # fmt: skip


def facts_of_model(result: MinimizeResult, start: Atoms, strict: bool, target: Path) -> dict[str, Any]:
    """Facts that each conformation has, with the findings about its start.

    `rounding_gradient` is the rms gradient, kcal/mol/A, that the decimals of the file `target` add to the minimum's.

    Raises InputError if strict refuses them.
    """
    values = result.to_dict()
    del values["name"]
    before = cast(Mapping[str, float | None], values["energy_before"])
    energies = {term: value for term, value in before.items() if value is not None}
    found = [*of_structure(start, "noted"), *of_energy(start, energies, start.positions)]
    require(found, strict)
    findings = [finding.as_json() for finding in found]
    decimals = CONFORMATION_FORMATS[require_suffix(target)].decimals
    rounding = 0.0 if decimals is None else rounding_gradient(result.atoms, decimals)
    return {
        **values, "rounding_gradient": rounding, "seconds": {"total": values["seconds"]}, "findings": findings
    }  # fmt: skip


def _write(target: Path, content: Content, atoms: Atoms, begin: Callable[[], None]) -> str:
    """Write a structure, and give the SHA-256 of its file; begin : called just before it takes its place"""
    layout = layout_of(target, content)
    make_folder(target.parent)
    with replacing(target) as temporary:
        with ConformationFile(temporary, layout, None) as file:
            file.append(1, atoms.positions)
            file.finish()
        begin()
    return read_file(target).sha256
