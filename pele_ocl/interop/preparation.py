"""Result of `prepare`: a list of all changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import Any

from ..atoms import Atoms
from ..atoms.chemistry import is_water
from ..common.arguments import file_path
from ..common.errors import FormatError, Suggests
from ..common.inputfile import InputFile
from ..common.notes import Note
from ..common.writing import replacing
from ..formats import is_pdb
from ..jobs.provenance import record_head
from ..jobs.texts import counted
from ..reading import read
from ..report import Framed, Report
from .pka import USUAL

_SHOWN = 12  # maximum number of residues in a list
_OF_CALL = ("source", "output", "ph", "pdb")


@dataclass(frozen=True)
class Preparation(Framed, Suggests):
    """All changes made by `prepare`. Residues are named as `A:LYS12`.

    alternates : messages about chosen alternate locations and models
    removed : number of removed residues by name
    renamed : new names of ligands whose names are too long for a PDB file
    replaced : standard residue that replaces each nonstandard one
    charge_changes : charge changes of replaced residues at pH 7, e, if any
    phosphates_removed : residues at the 5' end of a strand whose phosphate was removed
    residues_added, residues_missing : missing residues that were built, and others, which are at chain ends or in
        `not_built`, by the preceding residue
    not_built : reasons why missing residues within chains were not built, by the preceding residue
    atoms_added : added heavy atoms by residue
    disulphides : pairs of bonded cysteines
    protonation : form of histidines, and of other residues in nonstandard forms: HID, HIE, HIP, ASH, GLH, LYN, CYX
    pka : source of the pKa values: "usual", or PROPKA with its version
    pkas : pKa of side chains from PROPKA by residue; empty with "usual"
    hydrogens_removed, hydrogens_added, hydrogens_moved : numbers of hydrogens; those moved had bond lengths with an
        error above 5 %
    left_alone : unknown residues, to which no hydrogens were added
    not_relaxed : residues without parameters in AMBER's ff14SB, which were treated as uncharged spheres in the
        minimization of added atoms
    relaxed : True if `not_relaxed` is empty
    without_parameters : residues without a template in the built-in Amber99SB, for which `energy` raises an error
    warnings : possible problems in the output
    n_atoms : number of atoms in the output
    source : the input file; output : the file written, or None; ph : pH for the protonation
    pdb : the complete structure as PDB text

    >>> made = pele_ocl.prepare("1abc.pdb")  # needs pdbfixer
    >>> made.save("ready.pdb")
    >>> made.removed
    {}
    """

    alternates: tuple[str, ...]
    removed: dict[str, int]
    renamed: dict[str, str]
    replaced: dict[str, str]
    charge_changes: dict[str, int]
    phosphates_removed: list[str]
    residues_added: dict[str, list[str]]
    residues_missing: dict[str, list[str]]
    not_built: dict[str, str]
    atoms_added: dict[str, list[str]]
    disulphides: list[tuple[str, str]]
    protonation: dict[str, str]
    pka: str
    pkas: dict[str, float]
    hydrogens_removed: int
    hydrogens_added: int
    hydrogens_moved: int
    left_alone: list[str]
    not_relaxed: list[str]
    relaxed: bool
    without_parameters: list[str]
    warnings: list[str]
    n_atoms: int
    source: InputFile | None = field(default=None, repr=False)
    output: str | None = None
    ph: float = 7.0
    pdb: str = field(default="", repr=False)

    def __repr__(self) -> str:
        built = sum(map(len, self.atoms_added.values()))
        removed = ", ".join(f"{n:,} {name}" for name, n in self.removed.items())
        warnings = f", {counted(len(self.warnings), 'warning')}" if self.warnings else ""
        return (
            f"Preparation({self.n_atoms:,} atoms at pH {self.ph:g}: {counted(built, 'heavy atom')} and "
            f"{counted(self.hydrogens_added, 'hydrogen')} added{f'; {removed} removed' if removed else ''}{warnings})"
        )

    def save(self, path: str | PathLike[str], *, inputs: Iterable[str | PathLike[str]] = ()) -> None:
        """Write the structure to a .pdb file. inputs : files that must not be overwritten. Raises FormatError."""
        require_pdb(path)
        with replacing(path, [*([] if self.source is None else [self.source]), *inputs]) as temporary:
            temporary.write_text(self.pdb, encoding="latin-1")

    def read(self, **options: Any) -> Atoms:
        """Return the structure as Atoms with parameters; options and errors as in `pele_ocl.read`."""
        return read(self.as_structure(), **options)

    def as_structure(self) -> InputFile:
        """Return the structure as a file in memory, which functions accept like a path."""
        name = "prepared.pdb" if self.source is None else f"{self.source.path.name.split('.')[0]}.pdb"
        return InputFile(file_path(name), self.pdb.encode("latin-1"))

    def to_json(self) -> dict[str, Any]:
        """Return all changes as a JSON-compatible dictionary."""
        changes = {of.name: getattr(self, of.name) for of in fields(self) if of.name not in _OF_CALL}
        return {**record_head(self.source), "output": self.output, "ph": self.ph, **changes}

    @property
    def notes(self) -> tuple[Note, ...]:
        """Sentences about what was taken out and built, and the warnings; `prepare` logs them."""
        taken = [f"{n:,} {name}" for name, n in self.removed.items() if not is_water(name)]
        found = [Note(f"{', '.join(taken)} removed; `keep_hetero=True` keeps ligands and ions")] if taken else []
        residues = sum(map(len, self.residues_added.values()))
        atoms = sum(map(len, self.atoms_added.values()))
        built = [counted(residues, "missing residue")] if residues else []
        in_residues = f"{counted(atoms, 'missing heavy atom')} of {counted(len(self.atoms_added), 'residue')}"
        built += [in_residues] if atoms else []
        if built:
            found.append(Note(f"{' and '.join(built)} {'was' if residues + atoms == 1 else 'were'} built"))
        return (*found, *(Note(sentence, "warning") for sentence in self.warnings))

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return all changes as text for people."""
        return "\n".join([self._title(), "", *(f"{what:<14}{text}" for what, text in self.lines())])

    def _title(self) -> str:
        return f"{counted(self.n_atoms, 'atom')}, pH {self.ph:g}"

    def table(self) -> Report:
        """Table of the changes, one row per kind."""
        rows = list(self.lines())
        return Report(self._title(), {"what": [what for what, _ in rows], "changes": [text for _, text in rows]})

    def lines(self, rest: str = "`to_json` lists all") -> Iterator[tuple[str, str]]:
        """Yield the changes as lines with headings. rest : where to find the complete lists"""
        yield from _under("Chosen", self.alternates)
        yield from _under("Removed", [", ".join(f"{n:,} {name}" for name, n in self.removed.items())])
        if self.phosphates_removed:
            yield "" if self.removed else "Removed", f"5' phosphate of {_some(self.phosphates_removed, rest)}"
        yield from _under("Renamed", [", ".join(f"{name} is {new}" for name, new in self.renamed.items())])
        replaced = defaultdict[str, list[str]](list)
        for name, standard in self.replaced.items():
            replaced[standard].append(name)
        yield from _under("Replaced", [f"{_some(names, rest)} by {standard}" for standard, names in replaced.items()])
        built = [f"{', '.join(names)} after {place}" for place, names in self.residues_added.items()]
        atoms = [f"{', '.join(names)} of {residue}" for residue, names in self.atoms_added.items()]
        more = [f"atoms of {len(atoms) - _SHOWN:,} more residues; {rest}"] if len(atoms) > _SHOWN else []
        yield from _under("Built", [*built, *atoms[:_SHOWN], *more])
        yield from _under("Not built", [self._not_built(end) for end in self.residues_missing])
        yield from _under("Disulphides", [_some([f"{a} - {b}" for a, b in self.disulphides], rest)])
        forms = defaultdict[str, list[str]](list)
        for name, form in self.protonation.items():
            forms[form].append(name)
        yield "pKa", "the standard values of residues in water" if self.pka == USUAL else f"by {self.pka}"
        named = {name: f"{name} ({pka:.1f})" for name, pka in self.pkas.items()}
        chosen = [f"{form}: {_some([named.get(name, name) for name in forms[form]], rest)}" for form in sorted(forms)]
        yield from _under("Protonation", chosen)
        removed, moved = self.hydrogens_removed, self.hydrogens_moved
        told = [f"{self.hydrogens_added:,} added"]
        told += [f"{removed:,} with other names removed"] if removed else []
        told += [f"{moved:,} of the file moved to their usual bond length"] if moved else []
        yield "Hydrogens", ", ".join(told)
        if not self.relaxed:
            yield (
                "Not relaxed",
                f"{_some(self.not_relaxed, rest)}: ff14SB has no parameters for them; everything else is "
                "relaxed around them",
            )
        if self.left_alone:
            yield "Left alone", f"{_some(self.left_alone, rest)}: no hydrogens were added"
        yield from _under("Warnings", self.warnings)

    def _not_built(self, end: str) -> str:
        reason, n = self.not_built.get(end), len(self.residues_missing[end])
        number = f"{n:,} residue{'' if n == 1 else 's'}"
        return f"{number} after {end}: {reason}" if reason else f"{number} beyond {end}"


def require_pdb(path: str | PathLike[str]) -> None:
    """Raise FormatError unless a path has the suffix of a PDB file."""
    if not is_pdb(file_path(path, "output")):
        raise FormatError(f"{path}: prepared structures are written as PDB files; use the suffix .pdb")


def _some(names: list[str], rest: str) -> str:
    """List the first names and the number of the others."""
    more = f" and {len(names) - _SHOWN:,} more; {rest}" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _under(heading: str, texts: list[str] | tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for k, text in enumerate(text for text in texts if text):
        yield "" if k else heading, text
