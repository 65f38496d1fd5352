"""The records of structures, as text, JSON and a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, cast

import click
import numpy as np
from numpy.typing import ArrayLike

from ...energy.term_set import GROUPS
from ...formats import write_table
from ...inputfile import InputFile
from ...jobs import SCHEMA, Record
from ..clock import elapsed
from ..energies import UNIT
from ..report import counted, duration, radii_text
from ..tables import table
from ..terminal import one_line, say, say_json

Report: TypeAlias = Mapping[str, object]  # the result of a record, or a part of one
Terms: TypeAlias = dict[str, float]
_MOST_TERMS = 8  # columns that fit a line; those of more terms are added up
_GROUP_OF = {
    **dict.fromkeys(GROUPS["bonded"], "bonded"), "lennard_jones_14": "lennard_jones", "coulomb_14": "coulomb",
    **dict.fromkeys(GROUPS["gb"], "gb"),
}  # fmt: skip


def rows_of(of: Record) -> list[tuple[Record, int | None, Terms]]:
    """A row for each model, with its number, which is None where one model was asked for, and its energies."""
    return [(of, number, terms) for number, terms in energies_of(of) or [(None, {})]]


def energies_of(of: Record) -> list[tuple[int | None, Terms]]:
    """The energies of each model, with its number, which is None where one model was asked for.

    Of Born radii alone the least, the largest and the mean one, A.
    """
    if "models" not in of:
        found = of.result.get("energy") or _radii(of.result)
        return [(None, cast(Terms, found))] if found else []
    models = cast(Sequence[Report], of["models"])
    return [(cast(int, model["model"]), _terms_of_model(model)) for model in models]


def _terms_of_model(model: Report) -> Terms:
    terms = {name: value for name, value in model.items() if isinstance(value, float)}
    return terms or _radii(model)


def _radii(report: Report) -> Terms:
    """The least, the largest and the mean Born radius of a report, A."""
    return {f"born_radius_{name}": value for name, value in cast(Terms, report.get("born_radius", {})).items()}


def _terms(records: Sequence[Record]) -> list[str]:
    """The terms of all structures, each once, the total last."""
    names = dict.fromkeys(name for of in records for _, terms in energies_of(of) for name in terms)
    return [name for name in names if name != "total"] + ["total"] * ("total" in names or not names)


def report(records: Sequence[Record], as_json: bool) -> None:
    """Print the records, and end the command with exit code 1 where one failed."""
    if as_json:
        say_json(as_json_of(records))
    else:
        say(as_text_of(records))
    if any(of.failed or _has_failures(of.result) for of in records):
        click.get_current_context().exit(1)


def _has_failures(result: Report) -> bool:
    """Whether frames or models of a structure failed, of any of its ligands."""
    parts = cast(Sequence[Report], result.get("ligands", [result]))
    return any(part.get("n_failed") for part in parts)


def say_record(source: InputFile, result: Mapping[str, object]) -> None:
    """Print the record of the only structure as JSON."""
    seconds = {**cast(Mapping[str, float], result.get("seconds", {})), "total": elapsed()}
    say_json(Record(str(source), source.sha256, {**result, "seconds": seconds}).to_dict())


def as_json_of(records: Sequence[Record]) -> Report:
    """The records of all structures as one object."""
    return {
        "schema": SCHEMA,
        "structures": [of.to_dict() for of in records],
        "n_failed": sum(of.failed for of in records),
        "seconds": {"total": elapsed()},
    }


def as_text_of(records: Sequence[Record]) -> str:
    """A table of all energies, and the reasons of those that failed in their rows."""
    names = _terms(records)
    are_grouped = len(names) > _MOST_TERMS
    rows = [(of, k, _grouped(terms) if are_grouped else terms) for each in records for of, k, terms in rows_of(each)]
    names = list(dict.fromkeys(map(_group, names))) if are_grouped else names
    has_models = any(number is not None for _, number, _ in rows)
    heads = ["structure", *(["model"] if has_models else []), "atoms", *(name.replace("_", " ") for name in names)]
    shown = _short_names(records)
    cells = [[shown[row[0].path], *_cells(*row, names, has_models)] for row in rows]
    lines = table(heads, cells, "<" + ">" * (len(heads) - 1)).split("\n")
    width = max(len(cell[0]) for cell in [heads, *cells])
    for k, (of, _, _) in enumerate(rows, 1):
        lines[k] = f"{cells[k - 1][0]:{width}}  {of.reason}" if of.failed else lines[k]
    n_failed = sum(of.failed for of in records)
    counts = counted(len(records), "structure") + (f", of which {n_failed:,} failed" if n_failed else "")
    if n_failed == len(records):
        return "\n".join([counts, "", *lines[1:]])
    variants, precisions, devices = map(" and ".join, _facts(records).values())
    ending = f"{variants}, {precisions}, on {devices}: in all {duration(elapsed())}"
    single = ["", "Terms are added up here; -o FILE and --json give each by itself"] if are_grouped else []
    gb = _gb_lines(records)
    what = f"Energy of structures, {UNIT}" if "total" in names else "Born radii of structures, A"
    return "\n".join([counts, "", what, *lines, *single, "", *gb, ending])


def _group(name: str) -> str:
    """The name under which a term is added up in a wide table."""
    return _GROUP_OF.get(name, name)


def _grouped(terms: Terms) -> Terms:
    """Terms added up by group."""
    found: Terms = {}
    for name, value in terms.items():
        found[_group(name)] = found.get(_group(name), 0.0) + value
    return found


def _short_names(records: Sequence[Record]) -> dict[Path, str]:
    """The names of files, with their folders where files of several folders have one name."""
    paths = {of.path for of in records}
    names = Counter(path.name for path in paths)
    return {path: one_line(path.name if names[path.name] == 1 else str(path)) for path in paths}


def _gb_lines(records: Sequence[Record]) -> list[str]:
    """The GB model and the sets of radii, where there are GB energies or Born radii."""
    facts = _settings(records)
    of_gb = {"gb_pair", "gb_self", "born_radius_mean"}
    if not any(of_gb & terms.keys() for of in records for _, terms in energies_of(of)):
        return []
    return [radii_text(str(facts["gb"]), str(facts["gb_radii_set"]))]


def _cells(of: Record, number: int | None, terms: Terms, names: Sequence[str], has_models: bool) -> list[str]:
    if of.failed:
        return [""] * (len(names) + 1 + has_models)
    model = ["" if number is None else str(number)] if has_models else []
    values = [f"{terms[name]:,.3f}" if name in terms else "" for name in names]
    return [*model, f"{of.result.get('n_atoms', 0):,}", *values]


def _facts(records: Sequence[Record]) -> dict[str, list[str]]:
    """The variants, precisions and devices with which structures were computed, each once."""
    return {
        name: list(dict.fromkeys(str(of[name]) for of in records if not of.failed))
        for name in ("variant", "precision", "device")
    }


def _settings(records: Sequence[Record]) -> dict[str, object]:
    """The constants of the solvent, which all structures share, and the set of the GB radii of each, once."""
    there = [cast(Mapping[str, object], of.result.get("settings", {})) for of in records if not of.failed]
    sets = dict.fromkeys(str(of["gb_radii_set"]) for of in there if of.get("gb_radii_set"))
    return {**there[0], "gb_radii_set": ", ".join(sets)} if there else {}


def save(output: Path, records: Sequence[Record], call: Mapping[str, object]) -> None:
    """A row for every structure, or every model of each: its energies, or why there are none; call : facts of it."""
    rows = [row for of in records for row in rows_of(of)]
    names = _terms(records)
    columns: dict[str, ArrayLike] = {"structure": np.array([str(of.path) for of, _, _ in rows])}
    if any(number is not None for _, number, _ in rows):
        columns["model"] = np.array([-1 if number is None else number for _, number, _ in rows])
    columns["n_atoms"] = np.array([cast(int, of.result.get("n_atoms", 0)) for of, _, _ in rows])
    columns |= {name: np.array([terms.get(name, np.nan) for _, _, terms in rows]) for name in names}
    columns["error"] = np.array([of.error for of, _, _ in rows])
    attributes = {
        "inputs": [str(of.path) for of in records],
        "inputs_sha256": [of.sha256 for of in records],
        **call,
        **{name: ", ".join(values) for name, values in _facts(records).items()},
        **_settings(records),
    }
    write_table(output, columns, dict.fromkeys(names, UNIT if "total" in names else "angstrom"), attributes)
