"""The report of `nonbond`: its table, its JSON object, its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...formats import write_table
from ...nonbond import VARIANTS, NonbondResult
from ...solvent_model import SolventModel
from ..clock import elapsed
from ..energies import UNIT, model_columns, model_lines, models_as_json
from ..molecule import Molecule
from ..report import (
    choice_line,
    composition_as_json,
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
from .computing import Computed


def json_of(molecule: Molecule, computed: Computed, constants: SolventModel) -> dict[str, Any]:
    """The object of --json."""
    result = computed.results[0]
    facts = {
        "n_atoms": len(result.atoms),
        "composition": composition_as_json(result.atoms),
        "n_pairs": result.n_pairs,
        "device": result.device,
        "variant": result.variant,
        "precision": result.precision,
        "settings": settings(constants, molecule.atoms),
    }
    seconds = {**computed.seconds, "total": elapsed()}
    if molecule.numbers:
        models = models_as_json(molecule.numbers, computed.energies)
        for model, of in zip(models, computed.results, strict=True):
            model |= {"n_pairs": of.n_pairs, "gradient": _gradient_facts(of)}
        del facts["n_pairs"]
        return {**facts, "models": models, "seconds": seconds}
    return {**facts, "energy": result.energy, "gradient": _gradient_facts(result), "seconds": seconds}


def text_of(molecule: Molecule, computed: Computed, constants: SolventModel, verbose: bool) -> str:
    """The table for people."""
    result, seconds = computed.results[0], computed.seconds
    lines = [headline(molecule.source, molecule.atoms)]
    model = radii_line(constants, molecule.atoms)
    lines += (
        [model, *model_lines(molecule.numbers, computed.energies)]
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


def save(output: Path, molecule: Molecule, computed: Computed, constants: SolventModel) -> None:
    """The gradient of every atom, or the energies of every model, and how they were made."""
    result = computed.results[0]
    attributes: dict[str, object] = {
        **origin(molecule.source, molecule.atoms, result),
        "exact": result.exact,
        **{f"seconds_{name}": value for name, value in computed.seconds.items()},
        **settings(constants, molecule.atoms),
    }
    if molecule.numbers:
        columns, units = model_columns(molecule.numbers, computed.energies)
        columns["n_pairs"] = np.array([of.n_pairs for of in computed.results])
    else:
        columns, units = label_columns(result.atoms), {"gradient": f"{UNIT}/angstrom"}
        if result.gradient is not None:
            columns["gradient"] = result.gradient
        attributes["n_pairs"] = result.n_pairs
        attributes |= {f"energy_{name}": value for name, value in result.energy.items()}
    write_table(output, columns, units, attributes)


def _energy_lines(result: NonbondResult) -> Iterator[str]:
    """The energies, and the gradient in figures if there is one."""
    yield from energy_lines(result.energy)
    facts = _gradient_facts(result)
    if facts is not None:
        longest = f"at most {facts['max']:,.3f} an atom, net {facts['net']:.2g} {UNIT}/A"
        yield f"Gradient      norm {facts['norm']:,.3f}, {longest}"


def _gradient_facts(result: NonbondResult) -> dict[str, float] | None:
    if result.gradient is None:
        return None
    lengths = np.linalg.norm(result.gradient, axis=1)
    return {
        "norm": float(np.linalg.norm(result.gradient)),
        "max": float(lengths.max(initial=0.0)),
        "net": result.net_force,
    }
