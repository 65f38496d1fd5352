"""The origin of parameters, and the notes about it that a careful user wants to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .obc import Key, ObcTable, lookup
from .template import Kind, Template


@dataclass(frozen=True, eq=False)
class Origin:
    """The files that a user gave, as far as notes tell of them.

    tables : OBC tables by the file that a user named
    rows : rows of all tables of the user, those of PELE's folders too
    completed_with : built-in radii that complete a user's force field unasked, "" if none
    undecided : templates whose figures and folders do not tell their kind
    without_protein : name of a force field of PELE's folders that has ligands alone there, "" if none
    given : names of the user's templates
    """

    tables: Mapping[str, ObcTable] = field(default_factory=dict)
    rows: ObcTable = field(default_factory=dict)
    completed_with: str = ""
    undecided: frozenset[str] = frozenset()
    without_protein: str = ""
    given: frozenset[str] = frozenset()

    def notes(self, used: Sequence[Template], kind: Kind, radii: Mapping[Key, tuple[float, float]]) -> tuple[str, ...]:
        """Sentences about the parameters of the templates that a structure needs."""
        return tuple(self._notes(used, kind, radii))

    def _notes(self, used: Sequence[Template], kind: Kind, radii: Mapping[Key, tuple[float, float]]) -> Iterator[str]:
        keys = [(template.name, atom) for template in used for atom in template.names]
        for file, table in self.tables.items():
            if not any(lookup(table, *key) for key in keys):
                yield f"no row of {file} was used: none names an atom of the structure"
        if self.completed_with and any(lookup(self.rows, *key) is None for key in keys if lookup(radii, *key)):
            yield (
                "the force field came without a whole OBC table, so built-in radii "
                f"({self.completed_with}) were taken; give its table with --obc, or choose with --radii"
            )
        if self.without_protein and not all(template.name in self.given for template in used):
            yield (
                f"the folder of {self.without_protein} has no proteins, so templates of the built-in Amber99SB were "
                "taken for what it lacks; give PELE's Data folder, too, with --pele-data"
            )
        undecided = sorted(template.name for template in used if template.name in self.undecided)
        if undecided:
            length = "R*" if kind == "amber" else "sigma"
            named = ", ".join(undecided)
            yield f"nothing tells whether the lengths of {named} are R* or sigma; they were taken for {length}"
