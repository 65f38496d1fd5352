"""`pele-ocl solvent`: Born radii and implicit-solvent energies of structures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..ladder import SOLVENT as VARIANTS
from ..solvent import solvent as compute
from .call import Call
from .command import EachOnce, command_option
from .options import (
    accuracy_option,
    cluster_options,
    device_list,
    models_option,
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
    variant_option,
    words_of,
)
from .showing import computed, refuse_residues, show


@click.command(cls=EachOnce)
@structures_argument
@results_option("radii and energies of every atom, or energies of every model")
@command_option(
    "--no-energy", is_flag=True, help="Compute Born radii only; with a tree this takes far less time.",
    heading="Computation",
)  # fmt: skip
@models_option
@trajectory_flags
@cluster_options
@variant_option("How the Born radii are computed", VARIANTS)
@accuracy_option
@run_options
@structure_flags
@solvent_flags
@surface_options
@strict_option
@per_residue_option()
@report_options
@words_of
def solvent(
    path: Path | tuple[Path, ...], no_energy: bool, device: str | None, per_residue: bool, as_json: bool,
    verbose: bool, words: dict[str, Any], call: Call, **options: Any,
) -> None:  # fmt: skip
    """Compute Born radii and implicit-solvent energy of the molecule in IN.

    IN is a .pdb, .cif or .pqr file or an AMBER topology with -c, also with .gz. A PDB file with all hydrogens gets
    Amber99SB parameters by default; --templates, --obc and --pele-data add PELE's. Radii in Angstrom, energies in
    kcal/mol. Several devices, --device 0,1, share the work of the variant tree.
    """
    refuse_residues(path, per_residue, as_json)
    result = computed(
        compute, path, "Solvent", call, as_json, energy=not no_energy, device=device_list(device),
        per_residue=per_residue, **options, **words,
    )  # fmt: skip
    show(result, as_json, verbose, call)
