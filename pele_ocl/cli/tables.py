"""Tables for people, and tables of energies by residue and by model for files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..atoms import Floats
from ..jobs.facts import Energies as Energies
from ..jobs.facts import names_of_residues as names_of_residues
from ..jobs.facts import residues_as_json as residues_as_json
from .report import counted
from .terminal import one_line


def table(head: Sequence[str], rows: Iterable[Sequence[str]], align: str) -> str:
    """Columns under a head; `align` has < or > for each."""
    lines = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(line, align, widths, strict=True)).rstrip()
        for line in lines
    )


UNIT = "kcal/mol"
Model = tuple[int, Energies | str]  # a model's number, with its terms or the reason of its failure


def residue_table(
    names: Sequence[str], models: Iterable[tuple[int | None, Mapping[str, Floats]]], what: str = ""
) -> str:
    """Make a table of the energies of residues.

    models : number of each, or None if there is one only, and its terms
    what : they are, with a comma and a blank after it
    """
    lines: list[tuple[str, ...]] = []
    heads: tuple[str, ...] = ()
    for number, terms in models:
        first = ("model", "residue") if number is not None else ("residue",)
        heads = *first, *(term.replace("_", " ") for term in terms)
        columns = [values.tolist() for values in terms.values()]
        for name, *row in zip(names, *columns, strict=True):
            lines.append((*([str(number)] if number is not None else []), name, *(f"{value:.3f}" for value in row)))
    align = (">" if heads[0] == "model" else "") + "<" + ">" * (len(heads) - heads.index("residue") - 1)
    return f"Energy of residues, {what}{UNIT}\n" + table(heads, lines, align)


def model_lines(models: Sequence[Model], about: str = f"Energy of models, {UNIT}") -> list[str]:
    """Count the models, and make a table of their energies or of why they failed; about : the table's head"""
    names = _terms(models)
    heads = "model", *(term.replace("_", " ") for term in names)
    cells = [(str(number), *("" if isinstance(of, str) else f"{of[name]:.3f}" for name in names))
             for number, of in models]  # fmt: skip
    lines = table(heads, cells, ">" * len(heads)).split("\n")
    for k, (_, of) in enumerate(models, 1):
        lines[k] += f"  {one_line(of)}" if isinstance(of, str) else ""
    return [counted(len(models), "model"), "", about, *lines]


def model_columns(models: Sequence[Model], unit: str = UNIT) -> tuple[dict[str, Any], dict[str, str]]:
    """Make a table with a row for each model, NaN and a reason for one that failed, and its units."""
    terms = {
        name: np.array([np.nan if isinstance(of, str) else of[name] for _, of in models]) for name in _terms(models)
    }
    columns = {"model": np.array([number for number, _ in models]), **terms, "error": reasons(models)}
    return columns, dict.fromkeys(terms, unit)


def reasons(models: Sequence[tuple[int, object]]) -> np.ndarray[Any, np.dtype[np.str_]]:
    """List why models failed, (m,), "" for others."""
    return np.array([one_line(of) if isinstance(of, str) else "" for _, of in models])


def _terms(models: Sequence[Model]) -> list[str]:
    """List the terms, of the first model that did not fail."""
    return list(next((of for _, of in models if not isinstance(of, str)), ()))
