"""Arguments, options, progress lines and tables for commands that write a file per structure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import click

from ..common.errors import InputError
from ..jobs import Record
from ..jobs.outputs import expanded
from ..jobs.texts import counted
from .command import INPUT, Input, _File, command_option
from .groups import option
from .progress import ProgressLine, has_speed, time_left
from .showing import say_records
from .terminal import note, one_line, say

Row = Mapping[str, Any]  # a record as printed by --json
Command = Callable[..., Any]
_NAMED = 3  # failures listed in a message
RESTRAINT = "Force constant of the restraints on the ligand's heavy atoms and the backbone, kcal/mol/A^2."
FREE_RADIUS = "Distance that restrained atoms can move before the restraint acts, Angstrom."


class Target(_File):
    """Output path: a structure, a folder, a pattern of names, or a table."""

    input: Input = INPUT


TARGET = Target()


def files(_: click.Context, __: click.Parameter, given: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the paths without duplicates, with quoted patterns expanded."""
    return expanded(given)


@dataclass(frozen=True)
class Holding:
    """Options for restraints and frozen atoms."""

    heading: ClassVar[str] = "Restraints and constraints"

    restrain: tuple[str, ...] = option(
        "Restrain atoms to their initial positions with K |x - x0|^2, K in kcal/mol/A^2: 'backbone:10'. Within FLAT, a "
        "distance in Angstrom, they are free. Can be given several times, like --distance and --torsion.",
        default=(), metavar="SELECTION:K[,FLAT]", essential=True,
    )  # fmt: skip
    distance: tuple[str, ...] = option(
        "Restrain the distance of two atoms, each a selection, to R0 Angstrom with K (r - R0)^2: "
        "'resid 10 and name OG|resname LIG and name N1:20,2.9,0.2'.",
        default=(), metavar="ATOM|ATOM:K,R0[,FLAT]",
    )  # fmt: skip
    torsion: tuple[str, ...] = option(
        "Restrain the torsion of four atoms to an angle; DEGREES and FLAT in degrees, K in kcal/mol/rad^2.",
        default=(), metavar="A|B|C|D:K,DEGREES[,FLAT]",
    )  # fmt: skip
    reference: Path | None = option("Structure with the reference positions of --restrain.", metavar="FILE")
    freeze: str | None = option(
        "Atoms that do not move: 'not within 6 of resname LIG'.", metavar="SELECTION", essential=True
    )


_CONSTRAINTS = {"hbonds": "to the lengths of the force field", "hbonds-present": "to their present lengths"}


def constraints_option(known: Sequence[str]) -> Callable[[Command], Command]:
    """Add --constraints. known : possible values"""
    lengths = ", or ".join(_CONSTRAINTS[name] for name in known)
    return command_option(
        "--constraints", type=click.Choice(known, case_sensitive=False), help=f"Constrain bonds to hydrogen {lengths}.",
        heading="Restraints and constraints",
    )  # fmt: skip


class StructureLine(ProgressLine):
    """Progress line that counts structures, and shows the gradient of the slowest one."""

    def __init__(self, what: str = "Minimizing") -> None:
        super().__init__(what)
        self.n = 1
        self.slowest: float | None = None

    def __enter__(self) -> StructureLine:
        return self

    def watch(self, done: int, n: int, gradient: float) -> None:
        """Update the line. gradient : largest rms gradient of running structures, kcal/mol/A; 0 if there are none"""
        self.n, self.slowest = n, gradient or None
        self(done / n)

    def is_known(self, share: float) -> bool:
        return self.slowest is not None or (self.first is not None and share > self.first[1])

    def told(self, share: float, since: float, seconds: float) -> str:
        done = round(share * self.n)
        parts = [f"{done:,} of {counted(self.n, 'structure')}"]
        if self.slowest is not None:
            parts.append(f"the slowest at {self.slowest:.3g} kcal/mol/A")
        if has_speed(since, seconds) and done < self.n:
            parts.append(time_left(share, since, seconds))
        return ", ".join(parts)


def rows_of(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Convert records to rows."""
    return [record.to_dict() for record in records]


def show(rows: Sequence[Row], printed: Sequence[Record], as_json: bool, as_text: Callable[[], str]) -> None:
    """Print the records as JSON, or the rows as text.

    For text output, raises InputError instead if all structures failed with the same error.
    """
    reasons = {row.get("error") for row in rows}
    if not as_json and len(reasons) == 1 and (reason := reasons.pop()) is not None:
        raise InputError(_sentence(rows[0]) if len(rows) == 1 else reason)
    if as_json:
        say_records(printed)
    else:
        say(as_text())


def exit_for_rows(rows: Sequence[Row], what: str) -> None:
    """Report errors, and exit with code 1 if any row failed. what : name of an item, such as "structure" """
    failed = [row for row in rows if "error" in row]
    if failed:
        shown = "; ".join(map(_sentence, failed[:_NAMED]))
        rest = f"; and {len(failed) - _NAMED:,} more" if len(failed) > _NAMED else ""
        note(f"Error: {counted(len(failed), what)} of {len(rows):,} failed: {shown}{rest}")
        raise click.exceptions.Exit(1)


def _sentence(row: Row) -> str:
    """Return the error of a structure with its name."""
    name, reason = one_line(row["structure"]), row["error"]
    return str(reason) if reason.startswith(f"{name}:") else f"{name}: {reason}"


def add_reasons(lines: list[str], rows: Sequence[Row]) -> None:
    """Append the errors of failed rows to the lines of a table, whose first line is the header."""
    for k, row in enumerate(rows, 1):
        if "error" in row:
            reason = row["error"].removeprefix(f"{one_line(row['structure'])}: ")
            lines[k] = f"{lines[k].rstrip()}  {reason}"
