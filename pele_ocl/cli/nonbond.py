"""`pele-ocl nonbond`: Lennard-Jones, Coulomb and GB energy and gradient over a pair list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..ladder import NONBOND as VARIANTS
from ..nonbond import nonbond as compute
from ..nonbond.spec import DEFAULT_CUTOFF
from .call import VACUUM, Call
from .command import INPUT, OUTPUT, EachOnce, command_option
from .options import (
    cluster_options,
    cutoff_option,
    models_option,
    no_gradient_option,
    report_options,
    results_option,
    run_options,
    solvent_flags,
    strict_option,
    structure_flags,
    structures_argument,
    trajectory_flags,
    variant_option,
    words_of,
)
from .showing import computed, show


@click.command(cls=EachOnce)
@structures_argument
@results_option("energies and gradient, or energies of every model")
@models_option
@trajectory_flags
@cluster_options
@cutoff_option(f"{DEFAULT_CUTOFF:g} by default")
@command_option("--no-cutoff", is_flag=True, help="Use all pairs.", heading="Computation")
@command_option(
    "--split-cutoffs", is_flag=True,
    help="Use the cutoffs of PELE's short list: 10 A, or 15 A between charged groups.", heading="Computation",
)  # fmt: skip
@command_option(
    "--pairs", "pairs_file", type=INPUT, metavar="FILE", help="Pair list to use: .h5, .npz or text.", essential=True
)
@click.option(
    "--write-pairs", type=OUTPUT, metavar="FILE", help="Write the pair list that was used: .h5, .npz or text."
)
@click.option(
    "--solvent",
    type=click.Choice(["gb", VACUUM]),
    default="gb",
    show_default=True,
    help="Compute the GB pair term, or omit it; vacuum is the same as --gb none.",
)
@command_option(
    "--one-four", type=click.Choice(["exclude", "scale"]), default="exclude", show_default=True,
    help="Omit 1-4 pairs, as PELE does, or scale them as in the force field.", heading="Computation",
)  # fmt: skip
@click.option(
    "--internal-dielectric", type=click.Choice(["uniform", "vdgbnp"]), default="uniform", show_default=True,
    help="Use one solute dielectric, or that of PELE, which depends on the residue.",
)  # fmt: skip
@no_gradient_option
@variant_option("How the gradient is summed", VARIANTS)
@run_options
@structure_flags
@solvent_flags
@strict_option
@report_options
@words_of
def nonbond(
    path: Path | tuple[Path, ...], cutoff: float | None, no_cutoff: bool, split_cutoffs: bool, pairs_file: Path | None,
    no_gradient: bool, as_json: bool, verbose: bool, words: dict[str, Any], call: Call, **options: Any,
) -> None:  # fmt: skip
    """Compute Lennard-Jones, Coulomb and GB energy of the molecule in IN over a pair list, and the gradient.

    IN is a .pdb or .cif file, or an AMBER topology with -c, also with .gz; a .pqr file has no Lennard-Jones parameters.
    Born radii are computed as by `pele-ocl solvent` and kept fixed, as in PELE. Energies in kcal/mol, gradient in
    kcal/mol/Angstrom. Atoms one or two bonds apart are omitted, also from a list in a file. 1-4 pairs of a file are
    atoms three bonds apart and pairs that it marks. Each of several models has its own pairs within the cutoff.
    """
    if sum([cutoff is not None, no_cutoff, split_cutoffs, pairs_file is not None]) > 1:
        raise click.UsageError("use only one of --cutoff, --no-cutoff, --split-cutoffs and --pairs")
    pairs = "all" if no_cutoff else "split" if split_cutoffs else pairs_file
    result = computed(
        compute, path, "Nonbonded", call, as_json, pairs=pairs, cutoff=cutoff, gradient=not no_gradient, **options,
        **words,
    )  # fmt: skip
    show(result, as_json, verbose, call)
