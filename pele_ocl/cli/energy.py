"""`pele-ocl energy`: implicit-solvent energy of a structure, with its gradient."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..energy import energy as compute
from .call import Call
from .command import EachOnce
from .options import (
    accuracy_option,
    born_option,
    cluster_options,
    models_option,
    no_gradient_option,
    pair_options,
    pair_variant_option,
    per_residue_option,
    report_options,
    results_option,
    run_options,
    solvent_flags,
    strict_option,
    structure_flags,
    structures_argument,
    surface_options,
    trajectory_flags,
    words_of,
)
from .showing import computed, refuse_residues, show


@click.command(cls=EachOnce)
@structures_argument
@results_option("energies and gradient of every atom, or of every model")
@no_gradient_option
@pair_options
@models_option
@trajectory_flags
@cluster_options
@pair_variant_option
@born_option
@accuracy_option
@run_options
@structure_flags
@solvent_flags
@surface_options
@strict_option
@per_residue_option(", for frames their means")
@report_options
@words_of
def energy(
    path: Path | tuple[Path, ...], no_gradient: bool, terms: str | None, per_residue: bool, as_json: bool,
    verbose: bool, words: dict[str, Any], call: Call, **options: Any,
) -> None:  # fmt: skip
    """Compute the energy of the molecule in IN, term by term, and its full gradient.

    IN is a .pdb or .cif file, or an AMBER topology with -c, also with .gz; a .pqr file has no Lennard-Jones
    parameters. Born radii follow the atoms in the gradient. Energies in kcal/mol, gradient in kcal/mol/Angstrom. Atoms
    one or two bonds apart have no Lennard-Jones and Coulomb energy; the GB energy takes all pairs.
    """
    refuse_residues(path, per_residue, as_json)
    result = computed(
        compute, path, "Energy", call, as_json, gradient=not no_gradient, only_terms=terms, per_residue=per_residue,
        **options, **words,
    )  # fmt: skip
    show(result, as_json, verbose, call)
