"""The accuracy of Born radii in options and reports: the one that was asked for, and the error that was measured."""

from __future__ import annotations

import click

from ...energy import EnergyBatch, EnergyResult
from ...jobs.facts import accuracy_facts as accuracy_facts
from ...solvent import SolventResult

Approximate = SolventResult | EnergyResult | EnergyBatch

accuracy_option = click.option(
    "--accuracy", type=float, metavar="A",
    help="Largest relative error of a Born radius with a tree, 1e-6 to 1e-4; by default 1e-5.",
)  # fmt: skip


def accuracy_lines(result: Approximate, way: str) -> list[str]:
    """The same for reading, behind an empty line; way : in which the Born radii were computed."""
    if result.accuracy is None:
        return []
    error, asked = result.error, accuracy_text(way, result.accuracy)
    if error is None:
        return ["", f"{asked}; their error could not be measured, for which a device needs float64"]
    missed = ", more than asked for: --precision float64 rounds less" if error.largest > result.accuracy else ""
    return ["", f"{asked}; measured {error.largest:.1e} at most{missed}, {error.rms:.1e} rms", f"  ({error.about})"]


def accuracy_text(way: str, accuracy: float) -> str:
    """The accuracy that was asked for."""
    return f"Born radii by {way} to {accuracy:.0e}"


def accuracy_attributes(result: Approximate) -> dict[str, float]:
    """The same for a file."""
    if result.accuracy is None:
        return {}
    measured = {} if result.error is None else {"error_largest": result.error.largest, "error_rms": result.error.rms}
    return {"accuracy": result.accuracy, **measured}
