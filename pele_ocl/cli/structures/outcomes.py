"""The outcomes of several structures, as text, JSON and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from ...errors import PeleError
from ...formats import write_table
from ..clock import elapsed
from ..energies import UNIT
from ..report import call_facts, counted, duration
from ..tables import table
from ..terminal import one_line

Report: TypeAlias = dict[str, object]  # what a command prints with --json
Terms: TypeAlias = dict[str, float]


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
    def rows(self) -> list[tuple[Outcome, int | None, Terms]]:
        """A row for each model, with its number, which is None where one model was asked for, and its energies."""
        return [(self, number, terms) for number, terms in self.energies or [(None, {})]]

    @property
    def energies(self) -> list[tuple[int | None, Terms]]:
        """The energies of each model, with its number, which is None where one model was asked for."""
        report = self.report or {}
        if "models" not in report:
            return [(None, cast(Terms, report["energy"]))] if "energy" in report else []
        models = cast(Sequence[Mapping[str, float]], report["models"])
        return [(int(model["model"]), {k: v for k, v in model.items() if _is_energy(k, v)}) for model in models]


def _is_energy(name: str, value: object) -> bool:
    return name not in ("model", "n_pairs") and isinstance(value, float)


def _terms(outcomes: Sequence[Outcome]) -> list[str]:
    """The terms of all structures, each once, the total last."""
    names = dict.fromkeys(name for of in outcomes for _, terms in of.energies for name in terms)
    return [name for name in names if name != "total"] + ["total"]


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
    rows = [row for of in outcomes for row in of.rows]
    has_models = any(number is not None for _, number, _ in rows)
    heads = ["structure", *(["model"] if has_models else []), "atoms", *(name.replace("_", " ") for name in names)]
    cells = [_cells(*row, names, has_models) for row in rows]
    lines = table(heads, cells, "<" + ">" * (len(heads) - 1)).split("\n")
    width = max(len(cell[0]) for cell in [heads, *cells])
    for k, (of, _, _) in enumerate(rows, 1):
        lines[k] = lines[k] if of.error is None else f"{cells[k - 1][0]:{width}}  {of.sentence}"
    n_failed = sum(of.error is not None for of in outcomes)
    counts = counted(len(outcomes), "structure") + (f", of which {n_failed:,} failed" if n_failed else "")
    if n_failed == len(outcomes):
        return "\n".join([counts, "", *lines[1:]])
    variants, precisions, devices = map(" and ".join, _facts(outcomes).values())
    ending = f"{variants}, {precisions}, on {devices}: in all {duration(elapsed())}"
    return "\n".join([counts, "", f"Energy of structures, {UNIT}", *lines, "", ending])


def _cells(of: Outcome, number: int | None, terms: Terms, names: Sequence[str], has_models: bool) -> list[str]:
    if of.report is None:
        return [one_line(str(of.path))] + [""] * (len(names) + 1 + has_models)
    model = ["" if number is None else str(number)] if has_models else []
    values = [f"{terms[name]:,.3f}" if name in terms else "" for name in names]
    return [one_line(str(of.path)), *model, f"{of.report['n_atoms']:,}", *values]


def _facts(outcomes: Sequence[Outcome]) -> dict[str, list[str]]:
    """The variants, precisions and devices with which structures were computed, each once."""
    return {
        name: list(dict.fromkeys(str(of.report[name]) for of in outcomes if of.report is not None))
        for name in ("variant", "precision", "device")
    }


def _settings(outcomes: Sequence[Outcome]) -> Terms | dict[str, str]:
    """The constants of the solvent, which all structures share, and the set of the GB radii of each, once."""
    there = [cast(dict[str, float], of.report.get("settings", {})) for of in outcomes if of.report is not None]
    sets = dict.fromkeys(str(of["gb_radii_set"]) for of in there if of.get("gb_radii_set"))
    return cast(dict[str, str], {**there[0], "gb_radii_set": ", ".join(sets)}) if there else {}


def save(output: Path, outcomes: Sequence[Outcome]) -> None:
    """A row for every structure, or every model of each: its energies, or why there are none."""
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
        **call_facts(),
        **{name: ", ".join(values) for name, values in _facts(outcomes).items()},
        **_settings(outcomes),
    }
    write_table(output, columns, dict.fromkeys(names, UNIT), attributes)
