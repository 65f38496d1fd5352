"""Options of commands that evaluate energies: which terms, which pairs, which variant, how accurate."""

from __future__ import annotations

from collections.abc import Callable

import click

from ..energy.born import BORN
from ..energy.variants import VARIANTS
from .command import OUTPUT
from .options import Command

VARIANT_HELP = "How pairs are summed: " + "; ".join(f"{name}, {v.summary}" for name, v in VARIANTS.items())

variant_option = click.option(
    "--variant", type=click.Choice(["auto", *VARIANTS]), default="auto", show_default=True, help=VARIANT_HELP + "."
)

born_option = click.option(
    "--born", type=click.Choice(["auto", *BORN]), default="auto", show_default=True,
    help="Sums that give Born radii: " + "; ".join(f"{name}, {of.summary}" for name, of in BORN.items()) + ".",
)  # fmt: skip

no_gradient_option = click.option("--no-gradient", is_flag=True, help="Compute energies only.")


def cutoff_option(default: str) -> Callable[[Command], Command]:
    """Add --cutoff; default : what the help says of it"""
    text = f"Leave out pairs beyond this distance, Angstrom; {default}."
    return click.option("--cutoff", type=float, help=text)


def results_option(what: str) -> Callable[[Command], Command]:
    """Add --output, for `what` of one structure, or energies of models or frames."""
    text = (
        f"Write {what}: .h5, .csv or .json; or energies of every frame of a trajectory, as they come: .h5, .csv or "
        ".jsonl."
    )
    return click.option("-o", "--output", type=OUTPUT, metavar="OUT", help=text)


def per_residue_option(more: str = "") -> Callable[[Command], Command]:
    """Add --per-residue; more : of this command"""
    return click.option("--per-residue", is_flag=True, help=f"Also report each residue's energies{more}.")


one_four_option = click.option(
    "--one-four", type=click.Choice(["scale", "exclude"]), default="scale", show_default=True,
    help="Scale 1-4 pairs as the force field says, or leave them out.",
)  # fmt: skip


def pair_options(command: Command) -> Command:
    """Options `fixed_radii`, `cutoff`, `one_four` and `terms`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option("--fixed-radii", is_flag=True, help="Keep Born radii fixed in the gradient, as PELE does."),
    cutoff_option("by default none"),
    one_four_option,
    click.option(
        "--terms", metavar="NAMES",
        help="Terms to compute, with commas: bond,angle,torsion. bonded, nonbonded and gb name groups. "
        "Default: all.",
    ),
)  # fmt: skip


accuracy_option = click.option(
    "--accuracy", type=float, metavar="A",
    help="Largest relative error of a Born radius with a tree, 1e-6 to 1e-4; by default 1e-5.",
)  # fmt: skip
