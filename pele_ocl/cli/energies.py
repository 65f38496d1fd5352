"""Energies by residue and by model, as text, JSON and columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..atoms import Floats
from ..jobs.facts import Energies as Energies
from ..jobs.facts import models_as_json as models_as_json
from ..jobs.facts import residue_names as residue_names
from ..jobs.facts import residues_as_json as residues_as_json
from .report import counted
from .tables import table

UNIT = "kcal/mol"


def residue_table(
    names: Sequence[str], models: Iterable[tuple[int | None, Mapping[str, Floats]]], what: str = ""
) -> str:
    """The energies of residues; models : number of each, or None where there is one only, and its terms

    what : they are, with a comma and a blank behind it
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


def model_lines(
    numbers: Sequence[int], energies: Sequence[Energies], about: str = f"Energy of models, {UNIT}"
) -> list[str]:
    """How many models there are, and a table of their energies; about : its head, where they are something else."""
    heads = "model", *(term.replace("_", " ") for term in energies[0])
    rows = [
        (str(number), *(f"{value:.3f}" for value in of.values())) for number, of in zip(numbers, energies, strict=True)
    ]
    return [counted(len(numbers), "model"), "", about, table(heads, rows, ">" * len(heads))]


def model_columns(
    numbers: Sequence[int], energies: Sequence[Energies], unit: str = UNIT
) -> tuple[dict[str, Any], dict[str, str]]:
    """A table with a row for each model, and its units."""
    terms = {name: np.array([of[name] for of in energies]) for name in energies[0]}
    return {"model": np.array(numbers), **terms}, dict.fromkeys(terms, unit)
