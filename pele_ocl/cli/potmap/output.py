"""The report of `potmap`: its summary, its JSON object and map files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...formats import require_map_suffix, write_map
from ...inputfile import InputFile
from ...potmap import VARIANTS
from ..clock import elapsed
from ..progress import ProgressLine
from ..report import choice_line, composition_as_json, ending, error_lines, headline, map_facts, map_lines
from ..report import origin as how_made
from .computing import Computed
from .pictures import is_given


def require_targets(outputs: tuple[Path, ...], field: bool) -> None:
    """Raise for outputs that cannot be written, before any work is done."""
    for output in outputs:
        require_map_suffix(output)
    if field and not any(output.suffix.lower() == ".h5" for output in outputs):
        raise click.UsageError("the field needs a file that holds several maps: give an -o that ends in .h5")


def write(source: InputFile, outputs: tuple[Path, ...], computed: Computed) -> None:
    """Write the map to its files."""
    attributes = how_made(source, computed.atoms, computed.result)
    if computed.result.error is not None:
        attributes |= {f"error_{name}": value for name, value in computed.result.error.as_json().items()}
    # A cube file is in hartree/e, as its readers take it to be, unless the user names a unit.
    unit = computed.map.unit if is_given("units") else None
    for output in outputs:
        extra = computed.extra if output.suffix.lower() == ".h5" else {}
        with ProgressLine(f"Writing {output}") as progress:
            write_map(
                output, computed.map, atoms=computed.atoms, attributes=attributes, unit=unit, extra=extra,
                progress=progress,
            )  # fmt: skip


def json_of(computed: Computed) -> dict[str, Any]:
    """The object of --json."""
    facts, result = map_facts(computed.map), computed.result
    return {
        "shape": facts["shape"],
        "origin": facts["origin"],
        "spacing": facts["spacing"],
        "n_atoms": len(computed.atoms),
        "composition": composition_as_json(computed.atoms),
        "device": result.device,
        "method": result.method,
        "variant": result.variant,
        "precision": result.precision,
        "unit": facts["unit"],
        "min": facts["min"],
        "max": facts["max"],
        "mean": facts["mean"],
        **({} if result.error is None else {"error": result.error.as_json()}),
        "seconds": {**computed.seconds, "total": elapsed()},
        "evals_per_second": computed.evals_per_second,
    }


def text_of(source: InputFile, computed: Computed, verbose: bool) -> str:
    """The summary for people."""
    result, seconds = computed.result, computed.seconds
    lines = [
        headline(source, computed.atoms),
        *([f"{computed.n_models} models"] if computed.n_models > 1 else []),
        "",
        *map_lines(computed.map),
        *error_lines(result),
        "",
        ending(result, seconds["kernel"]),
    ]
    if verbose:
        variant = VARIANTS[result.variant]
        lines += [
            "",
            f"Rate: {computed.evals_per_second / 1e9:,.2f} billion atom evaluations a second",
            f"Kernel: cl/{variant.file}, {variant.summary}",
            choice_line(result.device),
        ]
    return "\n".join(lines)
