"""`pele-ocl prepare`: preparation of PDB files for the other commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..common.errors import InputError
from ..common.notes import collected_notes
from ..interop.pka import SOURCES
from ..interop.preparing import prepare as compute
from ..jobs.texts import counted
from .command import INPUT, OUTPUT, EachOnce
from .options import debug_option, json_option
from .progress import ProgressLine
from .showing import failing_as_record, say_result
from .terminal import note, one_line, say


def _pairs(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """Parse NAME=STANDARD of every option."""
    pairs = [text.partition("=") for text in texts]
    for text, (name, _sign, standard) in zip(texts, pairs, strict=True):
        if not name.strip() or not standard.strip():
            raise InputError(f"--replace {text} is not NAME=STANDARD, such as BP5=TYR")
    return {name.strip(): standard.strip().upper() for name, _sign, standard in pairs}


@click.command(cls=EachOnce, followed_by="energy")
@click.argument("path", metavar="IN", type=INPUT)
@click.option("-o", "--output", type=OUTPUT, metavar="OUT", required=True, help="Write the structure: .pdb.")
@click.option(
    "--ph", type=float, default=7.0, show_default=True, help="pH that determines which residues are protonated."
)
@click.option(
    "--pka", type=click.Choice(SOURCES), default=SOURCES[0], show_default=True,
    help="pKa of residues: usual, those of residues in water, or propka, those that PROPKA predicts for each residue; "
    "auto uses PROPKA if it is installed.",
)  # fmt: skip
@click.option("--keep-water", is_flag=True, help="Keep waters and add their hydrogens.")
@click.option("--keep-hetero", is_flag=True, help="Keep ligands and ions unchanged.")
@click.option(
    "--replace", multiple=True, callback=_pairs, metavar="NAME=STANDARD",
    help="Replace residues by a standard residue: BP5=TYR. Can be given several times.",
)  # fmt: skip
@click.option(
    "--no-loops",
    "loops",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Do not build residues that are missing within chains.",
)
@click.option(
    "--loop-seconds", type=float, default=60.0, show_default=True, metavar="S",
    help="Skip a loop of missing residues if building it takes longer, seconds.",
)  # fmt: skip
@json_option()
@debug_option
def prepare(path: Path, output: Path, as_json: bool, **options: Any) -> None:
    """Write the structure in IN with all its atoms as OUT, ready for the other commands.

    IN is a .pdb or .cif file of the Protein Data Bank, also with .gz. One alternate location is kept. Missing
    atoms and residues within chains are built, disulphides bonded, and hydrogens added by the pKa of residues.
    Existing heavy atoms are not moved. Requires PDBFixer (pip install 'pele-ocl[openmm]'), and PROPKA for its
    pKa (pip install 'pele-ocl[ph]').
    """
    with failing_as_record(path, as_json), ProgressLine("Preparing") as line:

        def tell(step: str, share: float) -> None:
            line.what = f"Preparing, {one_line(step)}"
            line(share)

        with collected_notes() as told:
            changes = compute(path, output, **options, progress=tell)
    for each in told:
        if each.kind != "warning":  # the text and the record list warnings
            note(each, heard=False)
    if as_json:
        say_result(changes.to_json())
        return
    head = f"{one_line(str(path))} -> {one_line(str(output))}: {counted(changes.n_atoms, 'atom')}, pH {changes.ph:g}"
    say("\n".join([head, "", *(f"{what:<14}{text}" for what, text in changes.lines("--json lists all"))]))
