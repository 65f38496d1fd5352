"""Minimization of structures as a job, with one record and one file per structure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..atoms import Atoms
from ..atoms.selection import Selection
from ..common.errors import InputError, PeleError
from ..common.hashing import content_of
from ..common.inputfile import InputFile, read_file
from ..common.notes import with_notes
from ..common.writing import replacing
from ..contract import of_structure, require
from ..energy.restraints import Held
from ..formats.b_factors import read_b_factors
from ..formats.conformation_files import (
    ConformationFile,
    Content,
    layout_of,
)
from ..gb_models.solvent_model import SolventModel
from ..jobs.facts import notes_of
from ..jobs.journal import make_folder
from ..jobs.outputs import OutputNames
from ..jobs.provenance import Provenance
from ..jobs.records import WRITTEN, Record
from ..jobs.spec import Spec, StructurePath
from ..opencl.device import get_device
from ..reading import Reading
from .minimizer import as_done
from .options import tolerance_of
from .result import MinimizeResult, Origin, facts_of_model, facts_of_molecule

ATOMS_TOGETHER = {"GPU": 1 << 21}  # atoms of structures minimized together, many more than run at a time
_LEAST_GROUPS, _MOST_FILES = 64, 64  # groups of files for workers, and files per group
_Waiting = tuple[StructurePath, InputFile, Atoms, Content]


@dataclass(frozen=True, eq=False)
class MinimizeSpec(Spec[StructurePath]):
    """Minimize structures, and write each to a folder, or to a name such as 'relaxed/{name}.cif'.

    output : "" to write no files
    reading : how to read files
    options : of pele_ocl.Minimizer, for all structures
    strict : True to raise an error where otherwise only a note is given
    held : restraints and frozen atoms of each structure, or a function that returns them as options of Minimizer
    provenance : facts to write to files
    watch, tell, keep : callbacks, not pickled: watch is called with progress, as in pele_ocl.minimize_many; tell with
        the number of structures done before those that start; keep with each structure and its result

    >>> spec = pele_ocl.MinimizeSpec(output="{name}-min.pdb", options={"max_iterations": 2})
    >>> next(pele_ocl.jobs.run(spec, ["data/structures/trialanine.pdb"]))["iterations"]
    2
    """

    output: str
    reading: Reading = field(default_factory=Reading)
    options: Mapping[str, Any] = field(default_factory=dict)
    strict: bool = False
    held: Held | Callable[[Atoms], Mapping[str, Any]] | None = None
    provenance: Provenance = field(default_factory=Provenance)
    watch: Callable[[int, int, float], None] | None = None
    tell: Callable[[int], None] | None = None
    keep: Callable[[StructurePath, MinimizeResult], None] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"watch": None, "tell": None, "keep": None}

    def settings(self) -> dict[str, str]:
        """Return all settings that results depend on as text, by keyword; files are represented by their content."""
        options = {**self.options, "tolerance": tolerance_of(self.options.get("tolerance", 0.1))}
        model = options.pop("model", None) or SolventModel()
        given = {**model.settings, **options, "strict": self.strict, **_fields_of(self.reading)}
        texts = {name: setting_text(name, value) for name, value in given.items() if value}
        if isinstance(self.held, Held):
            return texts | self.held.settings()
        return texts | ({} if self.held is None else {"held": getattr(self.held, "__qualname__", "")})

    @property
    def each(self) -> Callable[[Atoms], Mapping[str, Any]] | None:
        """Function that returns further options for the atoms of a structure, or None."""
        return self.held.each if isinstance(self.held, Held) else self.held

    def facts(self) -> dict[str, object]:
        """Return the device as a fact of records."""
        return {"device": str(get_device(self.options.get("device")))}

    def target(self, item: StructurePath) -> Path | None:
        """Return the output file of a structure; None if no files are written."""
        return OutputNames.of(self.output).name(Path(item)) if self.output else None

    def still_counts(self, record: Record, item: StructurePath) -> bool:
        """Return whether an earlier record is valid: the structure and its output file are unchanged.

        Workers replace files before the journal is written, so that after a crash files may lack a record.
        """
        target = self.target(item)
        if target is None:
            return super().still_counts(record, item)
        try:
            found = [read_file(path).sha256 for path in (item, target)]
        except PeleError:
            return False
        return not record.failed and found == [record.sha256, record.more.get(WRITTEN)]

    def compute(self, item: StructurePath) -> dict[str, Any]:
        """Minimize one structure and write its file."""
        (record,) = self.records([item], lambda: None)
        if record.failed:
            raise InputError(record.error)
        return dict(record.result)

    def groups(self, items: Sequence[StructurePath]) -> Iterator[Sequence[StructurePath]]:
        """Divide files into groups for workers; the group size depends on their number."""
        size = max(1, min(-(-len(items) // _LEAST_GROUPS), _MOST_FILES))
        return (items[first : first + size] for first in range(0, len(items), size))

    @property
    def atoms_together(self) -> int:
        """Number of atoms for which files are minimized together; 1 to minimize files one by one.

        A GPU needs many structures at a time, a CPU does not. Results do not depend on it.
        """
        return ATOMS_TOGETHER.get(get_device(self.options.get("device")).kind, 1)

    def records(self, items: Iterable[StructurePath], begin: Callable[[], None]) -> Iterator[Record]:
        """Read enough files for the device, then minimize them together.

        begin : begins the journal, called before the first structure is written
        """
        waiting: list[_Waiting] = []
        enough, every = self.atoms_together, list(items)
        for k, item in enumerate(every):
            try:
                source = read_file(item)
                atoms = self.reading.chosen(source)[0]
                require(of_structure(atoms, "noted", places_sites=True), self.strict)
                target = self.target(item)
                content = self.content(source, atoms, 1, target)
                if target is not None:
                    layout_of(target, content)  # raises an error before the work
                waiting.append((item, source, atoms, content))
            except PeleError as error:
                yield Record.failed_by(error, item)
            is_last = k + 1 == len(every)
            if waiting and (is_last or sum(len(atoms) for _, _, atoms, _ in waiting) >= enough):
                if self.tell is not None:
                    self.tell(k + 1 - len(waiting))
                yield from self._together(waiting, begin)
                waiting.clear()

    def _together(self, read: Sequence[_Waiting], begin: Callable[[], None]) -> Iterator[Record]:
        """Minimize structures, and write each when it is done."""
        molecules = [atoms for _, _, atoms, _ in read]
        for k, result in as_done(molecules, self.each, None, self.watch, self.options):
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
                target, more = self.target(item), {}
                if target is not None:
                    more = {WRITTEN: _write(target, replace(content, atoms=result.atoms), begin)}
                record = Record(str(item), source.sha256, values, more=more)
                if self.keep is not None:
                    self.keep(item, replace(result, origin=Origin(content, record)))
            except PeleError as error:
                yield Record.failed_by(error, item, source.sha256)
            else:
                yield record

    def content(self, source: InputFile | None, atoms: Atoms, n: int, target: Path | None) -> Content:
        """Content of a file with n conformations, with the occupancies and B-factors of the source."""
        precision = self.options.get("precision", "float32")
        if source is None:
            return Content(atoms, n, precision=precision, attributes=self.provenance.of_call())
        b_factors = None if atoms.labels is None else read_b_factors(source, atoms.labels)
        facts = self.provenance.of_file(source, target, self.reading.coordinates_of(source.path))
        return Content(atoms, n, str(source), b_factors, precision, {**facts, "notes": list(atoms.notes) or ""})


def _fields_of(reading: Reading) -> dict[str, object]:
    """Non-default reading options, without the structures."""
    passed_over = ("structures", "trajectory", "solvent")  # the solvent is that of the minimization
    return {
        of.name: getattr(reading, of.name)
        for of in fields(reading)
        if of.init and of.name not in passed_over and getattr(reading, of.name) != of.default
    }


def setting_text(name: str, value: object) -> str:
    """Text of a setting for a journal; files and folders are represented by their content."""
    if name == "forcefield":  # names of force fields, and of files
        value = tuple(map(Path, str(value).split(",")))
    if isinstance(value, Selection):
        value = value.text
    values = value if isinstance(value, tuple) else (value,)
    return str([content_of(each) or str(each) if isinstance(each, Path) else str(each) for each in values])


def _write(target: Path, content: Content, begin: Callable[[], None]) -> str:
    """Write a structure and return the SHA-256 of its file. begin : called before the file is moved into place"""
    layout = layout_of(target, content)
    make_folder(target.parent)
    with replacing(target) as temporary:
        with ConformationFile(temporary, layout, None) as file:
            file.append(1, content.atoms.positions)
            file.finish()
        begin()
    return read_file(target).sha256
