"""The report of `nonbond`: its table and its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ...formats import write_table
from ...jobs.facts import gradient_facts
from ...jobs.nonbond import NonbondEvaluation
from ...nonbond import VARIANTS, NonbondResult
from ...solvent_model import SolventModel
from ..energies import UNIT, Model, model_columns, model_lines
from ..report import (
    choice_line,
    counted,
    duration,
    ending,
    energy_lines,
    headline,
    label_columns,
    model_line,
    origin,
    radii_line,
    settings,
)


def text_of(computed: NonbondEvaluation, constants: SolventModel, verbose: bool) -> str:
    """Make the table for people."""
    molecule, result, seconds = computed.molecule, computed.first, computed.seconds
    lines = [headline(molecule.source, molecule.atoms)]
    model = radii_line(constants, molecule.atoms)
    lines += (
        [model, *model_lines(_energies(computed))]
        if molecule.numbers
        else [counted(result.n_pairs, "pair"), model, "", *_energy_lines(result)]
    )
    lines += ["", ending(result, seconds["kernel"])]
    if verbose:
        steps = ", ".join(f"{name} {duration(value)}" for name, value in seconds.items())
        lines += [
            "",
            model_line(constants, molecule.atoms),
            f"Times: {steps}",
            f"Kernel: cl/{VARIANTS[result.variant].file}, {VARIANTS[result.variant].summary}",
            choice_line(result.device),
        ]
    return "\n".join(lines)


def save(output: Path, computed: NonbondEvaluation, constants: SolventModel) -> None:
    """Write the gradient of every atom, or the energies of every model, and how they were made."""
    molecule, result = computed.molecule, computed.first
    attributes: dict[str, object] = {
        **origin(molecule.source, molecule.atoms, result),
        "exact": result.exact,
        **{f"seconds_{name}": value for name, value in computed.seconds.items()},
        **settings(constants, molecule.atoms),
    }
    if molecule.numbers:
        columns, units = model_columns(_energies(computed))
        columns["n_pairs"] = np.array([0 if of is None else of.n_pairs for of in computed.results])
    else:
        columns, units = label_columns(result.atoms), {"gradient": f"{UNIT}/angstrom"}
        if result.gradient is not None:
            columns["gradient"] = result.gradient
        attributes["n_pairs"] = result.n_pairs
        attributes |= {f"energy_{name}": value for name, value in result.energy.items()}
    write_table(output, columns, units, attributes)


def _energies(computed: NonbondEvaluation) -> list[Model]:
    """Give the terms and the total of each model, or why it failed."""
    return [(number, of if isinstance(of, str) else of.energy) for number, of in computed.rows()]


def _energy_lines(result: NonbondResult) -> Iterator[str]:
    """Give the energies, and the gradient in figures if there is one."""
    yield from energy_lines(result.energy)
    facts = gradient_facts(result.gradient)
    if facts is not None:
        longest = f"at most {facts['max']:,.3f} an atom, net {facts['net']:.2g} {UNIT}/A"
        yield f"Gradient      norm {facts['norm']:,.3f}, {longest}"
