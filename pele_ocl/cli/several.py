"""Several structures in one call: computed by a job, reported as records or as one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

import click
import numpy as np
from numpy.typing import ArrayLike

from ..common.errors import InputError
from ..energy.term_set import GROUPS
from ..formats import require_table_suffix, write_table
from ..jobs import Journal, Record
from ..jobs.facts import numbers_in
from ..jobs.running import run_with
from ..jobs.spec import StructurePath, StructureSpec
from ..trajectories.recording.recorder import AREA_UNIT
from ..trajectories.streaming import SURFACE_AREA
from .clock import elapsed
from .cluster import cluster_options_of
from .command import INPUT
from .frames.options import FrameOptions
from .json_lines import exit_for_records, say_records
from .physics import lines_of
from .progress import ProgressLine
from .report import call_facts, counted, duration
from .tables import UNIT, table
from .terminal import one_line, say

Report: TypeAlias = Mapping[str, object]  # the result of a record, or a part of one
Terms: TypeAlias = dict[str, float]
_MOST_TERMS = 8  # columns that fit a line; those of more terms are added up
_GROUP_OF = {
    **dict.fromkeys(GROUPS["bonded"], "bonded"), "lennard_jones_14": "lennard_jones", "coulomb_14": "coulomb",
    **dict.fromkeys(GROUPS["gb"], "gb"),
}  # fmt: skip


class Row(NamedTuple):
    """Row of a table: a structure, or a model of one by its number, with its energies or its error.

    numbers : what else is told of it by one number each, the number of its atoms first
    """

    record: Record
    number: int | None
    terms: Terms
    error: str = ""
    numbers: Mapping[str, float] = {}


def rows_of(of: Record) -> list[Row]:
    """Give a row for each model, with its number, energies and error; number None if one model was asked for."""
    if of.failed:
        return [Row(of, None, {}, of.error)]
    if "models" not in of:
        return [Row(of, None, _terms_of(of.result), numbers=numbers_in(of.result))]
    return [_row_of_model(of, model) for model in cast(Sequence[Report], of["models"])]


def _row_of_model(of: Record, model: Report) -> Row:
    numbers = {name: number for name, number in numbers_in({**of.result, **model}).items() if name != "model"}
    return Row(of, cast(int, model["model"]), _terms_of(model), str(model.get("error", "")), numbers)


def _terms_of(part: Report) -> Terms:
    """Give the energies of a structure or a model; of Born radii alone the least, the largest and the mean one, A."""
    radii = cast(Terms, part.get("born_radius", {}))
    return cast(Terms, part.get("energy")) or {f"born_radius_{name}": value for name, value in radii.items()}


def _terms(rows: Sequence[Row]) -> list[str]:
    """List the terms of all structures, each once, the total last."""
    names = dict.fromkeys(name for row in rows for name in row.terms)
    return [name for name in names if name != "total"] + ["total"] * ("total" in names or not names)


def report(records: Sequence[Record], as_json: bool) -> None:
    """Print the records, and end the command with exit code 1 if one failed."""
    if as_json:
        say_records(records)
    else:
        say(as_text_of(records))
    exit_for_records(records)


def as_text_of(records: Sequence[Record]) -> str:
    """Make a table of all energies, with the reasons of structures that failed in their rows."""
    rows = [row for of in records for row in rows_of(of)]
    names = _terms(rows)
    are_grouped = len(names) > _MOST_TERMS
    if are_grouped:
        rows = [row._replace(terms=_grouped(row.terms)) for row in rows]
        names = list(dict.fromkeys(map(_group, names)))
    has_models = any(row.number is not None for row in rows)
    heads = ["structure", *(["model"] if has_models else []), "atoms", *(name.replace("_", " ") for name in names)]
    shown = _short_names(records)
    cells = [[shown[row.record.path], *_cells(row, names, has_models)] for row in rows]
    lines = table(heads, cells, "<" + ">" * (len(heads) - 1)).split("\n")
    width = max(len(cell[0]) for cell in [heads, *cells])
    for k, row in enumerate(rows, 1):
        if row.record.failed:
            lines[k] = f"{cells[k - 1][0]:{width}}  {row.record.reason}"
        elif row.error:
            lines[k] += f"  {row.error}"
    n_failed = sum(of.failed for of in records)
    counts = counted(len(records), "structure") + (f", of which {n_failed:,} failed" if n_failed else "")
    if n_failed == len(records):
        return "\n".join([counts, "", *lines[1:]])
    variants, precisions, devices = map(" and ".join, _facts(records).values())
    ending = f"{variants}, {precisions}, on {devices}: in all {duration(elapsed())}"
    single = ["", "Terms are added up here; -o FILE and --json give each by itself"] if are_grouped else []
    physics = _physics_lines(records)
    what = f"Energy of structures, {UNIT}" if "total" in names else "Born radii of structures, A"
    return "\n".join([counts, "", what, *lines, *single, "", *physics, ending])


def _group(name: str) -> str:
    """Name the group of a term in a wide table."""
    return _GROUP_OF.get(name, name)


def _grouped(terms: Terms) -> Terms:
    """Terms added up by group."""
    found: Terms = {}
    for name, value in terms.items():
        found[_group(name)] = found.get(_group(name), 0.0) + value
    return found


def _short_names(records: Sequence[Record]) -> dict[Path, str]:
    """Name the files, with their folders if files of several folders have one name."""
    paths = {of.path for of in records}
    names = Counter(path.name for path in paths)
    return {path: one_line(path.name if names[path.name] == 1 else str(path)) for path in paths}


def _physics_lines(records: Sequence[Record]) -> list[str]:
    """Tell the force fields, the solvent and the sets of radii."""
    facts, terms = _settings(records), {name for of in records for row in rows_of(of) for name in row.terms}
    return lines_of(facts, None if "born_radius_mean" in terms else sorted(terms)) if "gb" in facts else []


def _cells(row: Row, names: Sequence[str], has_models: bool) -> list[str]:
    if row.record.failed:
        return [""] * (len(names) + 1 + has_models)
    model = ["" if row.number is None else str(row.number)] if has_models else []
    values = [f"{row.terms[name]:,.3f}" if name in row.terms else "" for name in names]
    return [*model, f"{row.record.result.get('n_atoms', 0):,}", *values]


def _facts(records: Sequence[Record]) -> dict[str, list[str]]:
    """List the variants, precisions and devices that computed structures, each once."""
    return {
        name: list(dict.fromkeys(str(of[name]) for of in records if not of.failed))
        for name in ("variant", "precision", "device")
    }


def _settings(records: Sequence[Record]) -> dict[str, object]:
    """Give the constants, which all structures share; force fields and sets of GB radii of all, each once."""
    there = [cast(Mapping[str, object], of.result.get("settings", {})) for of in records if not of.failed]
    names = ("forcefield", "gb_radii_set")
    sets = {name: dict.fromkeys(str(of[name]) for of in there if of.get(name)) for name in names}
    return {**there[0], **{name: ", ".join(found) for name, found in sets.items()}} if there else {}


def save(output: Path, records: Sequence[Record], call: Mapping[str, object]) -> None:
    """Write a row for every structure, or every model of each: its numbers, or why it has none; call : facts of it"""
    rows = [row for of in records for row in rows_of(of)]
    names = _terms(rows)
    columns: dict[str, ArrayLike] = {"structure": np.array([str(row.record.path) for row in rows])}
    if any(row.number is not None for row in rows):
        columns["model"] = np.array([-1 if row.number is None else row.number for row in rows])
    columns["n_atoms"] = np.array([row.numbers.get("n_atoms", 0) for row in rows])
    others = dict.fromkeys(name for row in rows for name in row.numbers if name != "n_atoms")
    for name in others:
        numbers, lacking = [row.numbers.get(name, 0) for row in rows], [name not in row.numbers for row in rows]
        columns[name] = np.ma.array(numbers, mask=lacking)
    columns |= {name: np.array([row.terms.get(name, np.nan) for row in rows]) for name in names}
    columns["error"] = np.array([row.error for row in rows])
    attributes = {
        "inputs": [str(of.path) for of in records],
        "inputs_sha256": [of.sha256 for of in records],
        **call,
        **{name: ", ".join(values) for name, values in _facts(records).items()},
        **_settings(records),
    }
    units = dict.fromkeys(names, UNIT if "total" in names else "angstrom") | {SURFACE_AREA: AREA_UNIT}
    write_table(output, columns, units, attributes)


JOURNAL_SUFFIX = ".part"  # behind the name of the table
STRUCTURES = "structures"  # the kind of such a journal


def _one_or_several(_: click.Context, __: click.Parameter, given: tuple[Path, ...]) -> Path | tuple[Path, ...]:
    return given[0] if len(given) == 1 else given


structures_argument = click.argument(
    "path", metavar="IN...", type=INPUT, nargs=-1, required=True, callback=_one_or_several
)


def journal_of(output: Path) -> Path:
    """Name the file that records are kept in until the table of this name has them all."""
    return output.with_name(f"{output.name}{JOURNAL_SUFFIX}")


@dataclass(frozen=True)
class Several:
    """Structures of a call that has more than one.

    paths : of the structures; output : the table of all
    """

    paths: tuple[Path, ...]
    output: Path | None
    resume: bool
    as_json: bool

    @classmethod
    def of(
        cls, path: Path | tuple[Path, ...], output: Path | None, trajectory: FrameOptions, as_json: bool,
        of_one: Mapping[str, object],
    ) -> Several | None:  # fmt: skip
        """Give the structures, None if there is one.

        of_one : values of options that several structures leave no room for, by the sentences that say so

        Raises UsageError for options that do not go together.
        """
        cluster = cluster_options_of(click.get_current_context())
        if isinstance(path, Path):
            if not trajectory.paths:
                cluster.refuse("one structure is computed at once")
            return None
        for reason, value in of_one.items():
            if value:
                raise click.UsageError(reason)
        if trajectory.paths:
            raise click.UsageError("a trajectory is of one structure; give one, or leave out -t")
        replace(trajectory, resume=False).require_alone()
        if output is None and (trajectory.resume or cluster.shard is not None):
            raise click.UsageError(
                f"{'--resume goes on with' if trajectory.resume else '--shard begins'} a file; name it by -o"
            )
        if output is not None:
            require_table_suffix(output)
        return cls(path, output, trajectory.resume, as_json)

    def report(self, spec: StructureSpec, what: str) -> None:
        """Compute all structures, write them down, and report; what : for the progress line"""
        context = click.get_current_context()
        cluster = cluster_options_of(context)
        facts, paths, output, shard = call_facts(), self.paths, self.output, cluster.shard
        if shard is not None and output is not None:
            paths, output = shard.part(paths, "structures"), shard.path(output)
        path = None if output is None else journal_of(output)
        journal = Journal(path, facts, kind=STRUCTURES, shard=shard, items=map(str, self.paths))
        items: Sequence[StructurePath] = paths
        with ProgressLine(what) as progress:
            found = run_with(spec, items, journal, self.resume, cluster.place(context.params.get("device")))
            records = list(progress.counting(found, items))
        _raise_common(records)
        if output is not None and path is not None and shard is None:
            save(output, records, facts)
            path.unlink()
        report(records, self.as_json)


def only_one(path: Path | tuple[Path, ...]) -> Path:
    """Give the structure of a call that has one."""
    assert isinstance(path, Path)
    return path


def _raise_common(records: Sequence[Record]) -> None:
    """Raise the error of all structures if all have the same: it is about an option, not about them."""
    if len({record.error for record in records}) == 1 and records[0].failed:
        raise InputError(records[0].error)
