"""The outcomes of several structures, as text, JSON and a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

import click
import numpy as np
from numpy.typing import ArrayLike

from ...energy.contents import GROUPS
from ...errors import PeleError
from ...formats import write_table
from ..clock import elapsed
from ..energies import UNIT
from ..report import counted, duration, radii_text
from ..tables import table
from ..terminal import one_line, say, say_json

Report: TypeAlias = dict[str, object]  # what a command prints with --json
Terms: TypeAlias = dict[str, float]
_MOST_TERMS = 8  # columns that fit a line; those of more terms are added up
_GROUP_OF = {
    **dict.fromkeys(GROUPS["bonded"], "bonded"), "lennard_jones_14": "lennard_jones", "coulomb_14": "coulomb",
    **dict.fromkeys(GROUPS["gb"], "gb"),
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """The result of one structure: the report that --json prints, or the error.

    sha256 : of the file, "" where it could not be read
    """

    path: Path
    sha256: str = ""
    report: Report | None = None
    error: PeleError | None = None

    @property
    def sentence(self) -> str:
        """The reason why it failed, on one line."""
        return one_line(str(self.error))

    @property
    def reason(self) -> str:
        """The sentence without the file's name."""
        told, path = self.sentence, one_line(str(self.path))
        if not told.startswith(f"{path}:"):
            return told
        rest = told[len(path) + 1 :].lstrip()
        return f"line {rest}" if rest[:1].isdigit() else rest

    @property
    def rows(self) -> list[tuple[Outcome, int | None, Terms]]:
        """A row for each model, with its number, which is None where one model was asked for, and its energies."""
        return [(self, number, terms) for number, terms in self.energies or [(None, {})]]

    @property
    def energies(self) -> list[tuple[int | None, Terms]]:
        """The energies of each model, with its number, which is None where one model was asked for.

        Of Born radii alone the least, the largest and the mean one, A.
        """
        report = self.report or {}
        if "models" not in report:
            found = report.get("energy") or _radii(report)
            return [(None, cast(Terms, found))] if found else []
        models = cast(Sequence[Report], report["models"])
        return [(cast(int, model["model"]), _terms_of_model(model)) for model in models]


def died_of(path: Path, error: PeleError) -> Outcome:
    """The outcome of a structure of which the processes that computed it died."""
    return Outcome(path, error=error)


def _terms_of_model(model: Report) -> Terms:
    terms = {name: value for name, value in model.items() if isinstance(value, float)}
    return terms or _radii(model)


def _radii(report: Report) -> Terms:
    """The least, the largest and the mean Born radius of a report, A."""
    return {f"born_radius_{name}": value for name, value in cast(Terms, report.get("born_radius", {})).items()}


def _terms(outcomes: Sequence[Outcome]) -> list[str]:
    """The terms of all structures, each once, the total last."""
    names = dict.fromkeys(name for of in outcomes for _, terms in of.energies for name in terms)
    return [name for name in names if name != "total"] + ["total"] * ("total" in names or not names)


def report(outcomes: Sequence[Outcome], as_json: bool) -> None:
    """Print the outcomes, and end the command with exit code 1 where one failed."""
    if as_json:
        say_json(as_json_of(outcomes))
    else:
        say(as_text_of(outcomes))
    if any(of.error is not None for of in outcomes):
        click.get_current_context().exit(1)


def as_json_of(outcomes: Sequence[Outcome]) -> Report:
    """The reports of all structures, with the reason in place of that of one that failed."""
    return {
        "structures": [
            {"structure": str(of.path), **({"error": of.sentence} if of.report is None else of.report)}
            for of in outcomes
        ],
        "n_failed": sum(of.error is not None for of in outcomes),
        "seconds": {"total": elapsed()},
    }


def as_text_of(outcomes: Sequence[Outcome]) -> str:
    """A table of all energies, and the reasons of those that failed in their rows."""
    names = _terms(outcomes)
    are_grouped = len(names) > _MOST_TERMS
    rows = [(of, k, _grouped(terms) if are_grouped else terms) for each in outcomes for of, k, terms in each.rows]
    names = list(dict.fromkeys(map(_group, names))) if are_grouped else names
    has_models = any(number is not None for _, number, _ in rows)
    heads = ["structure", *(["model"] if has_models else []), "atoms", *(name.replace("_", " ") for name in names)]
    shown = _short_names(outcomes)
    cells = [[shown[row[0].path], *_cells(*row, names, has_models)] for row in rows]
    lines = table(heads, cells, "<" + ">" * (len(heads) - 1)).split("\n")
    width = max(len(cell[0]) for cell in [heads, *cells])
    for k, (of, _, _) in enumerate(rows, 1):
        lines[k] = lines[k] if of.error is None else f"{cells[k - 1][0]:{width}}  {of.reason}"
    n_failed = sum(of.error is not None for of in outcomes)
    counts = counted(len(outcomes), "structure") + (f", of which {n_failed:,} failed" if n_failed else "")
    if n_failed == len(outcomes):
        return "\n".join([counts, "", *lines[1:]])
    variants, precisions, devices = map(" and ".join, _facts(outcomes).values())
    ending = f"{variants}, {precisions}, on {devices}: in all {duration(elapsed())}"
    single = ["", "Terms are added up here; -o FILE and --json give each by itself"] if are_grouped else []
    gb = _gb_lines(outcomes)
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


def _short_names(outcomes: Sequence[Outcome]) -> dict[Path, str]:
    """The names of files, with their folders where files of several folders have one name."""
    paths = {of.path for of in outcomes}
    names = Counter(path.name for path in paths)
    return {path: one_line(path.name if names[path.name] == 1 else str(path)) for path in paths}


def _gb_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """The GB model and the sets of radii, where there are GB energies or Born radii."""
    facts = _settings(outcomes)
    of_gb = {"gb_pair", "gb_self", "born_radius_mean"}
    if not any(of_gb & terms.keys() for of in outcomes for _, terms in of.energies):
        return []
    return [radii_text(str(facts["gb"]), str(facts["gb_radii_set"]))]


def _cells(of: Outcome, number: int | None, terms: Terms, names: Sequence[str], has_models: bool) -> list[str]:
    if of.report is None:
        return [""] * (len(names) + 1 + has_models)
    model = ["" if number is None else str(number)] if has_models else []
    values = [f"{terms[name]:,.3f}" if name in terms else "" for name in names]
    return [*model, f"{of.report['n_atoms']:,}", *values]


def _facts(outcomes: Sequence[Outcome]) -> dict[str, list[str]]:
    """The variants, precisions and devices with which structures were computed, each once."""
    return {
        name: list(dict.fromkeys(str(of.report[name]) for of in outcomes if of.report is not None))
        for name in ("variant", "precision", "device")
    }


def _settings(outcomes: Sequence[Outcome]) -> dict[str, object]:
    """The constants of the solvent, which all structures share, and the set of the GB radii of each, once."""
    there = [cast(Mapping[str, object], of.report.get("settings", {})) for of in outcomes if of.report is not None]
    sets = dict.fromkeys(str(of["gb_radii_set"]) for of in there if of.get("gb_radii_set"))
    return {**there[0], "gb_radii_set": ", ".join(sets)} if there else {}


def save(output: Path, outcomes: Sequence[Outcome], call: Mapping[str, object]) -> None:
    """A row for every structure, or every model of each: its energies, or why there are none; call : facts of it."""
    rows = [row for of in outcomes for row in of.rows]
    names = _terms(outcomes)
    columns: dict[str, ArrayLike] = {"structure": np.array([str(of.path) for of, _, _ in rows])}
    if any(number is not None for _, number, _ in rows):
        columns["model"] = np.array([-1 if number is None else number for _, number, _ in rows])
    columns["n_atoms"] = np.array([0 if of.report is None else cast(int, of.report["n_atoms"]) for of, _, _ in rows])
    columns |= {name: np.array([terms.get(name, np.nan) for _, _, terms in rows]) for name in names}
    columns["error"] = np.array(["" if of.error is None else of.sentence for of, _, _ in rows])
    attributes = {
        "inputs": [str(of.path) for of in outcomes],
        "inputs_sha256": [of.sha256 for of in outcomes],
        **call,
        **{name: ", ".join(values) for name, values in _facts(outcomes).items()},
        **_settings(outcomes),
    }
    write_table(output, columns, dict.fromkeys(names, UNIT if "total" in names else "angstrom"), attributes)
