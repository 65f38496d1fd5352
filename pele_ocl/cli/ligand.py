"""`pele-ocl ligand`: parameters of small molecules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from .. import parametrize as library
from ..jobs.texts import counted, duration
from ..ligand import ATOM_TYPES, CHARGES, HYDROGENS
from ..parametrize import FORMATS
from ..report import text_table
from .call import Call
from .command import EachOnce
from .groups import keywords, option, options
from .options import cluster_options, debug_option, json_option, resume_option, words_of
from .progress import ProgressLine
from .structures import TARGET, Row, add_reasons, exit_for_rows, rows_of, show
from .terminal import elapsed, one_line

_SHOWN = 60  # molecules in the table


@dataclass(frozen=True)
class Making:
    """Options for the assignment of parameters."""

    forcefield: str = option(
        f"Force field: {' or '.join(ATOM_TYPES)} by AmberTools' antechamber, one of OpenFF by its toolkit, or a file "
        "with the molecule's parameters: .xml of OpenMM, .prmtop, a PELE template.",
        like=library, metavar="NAME",
    )  # fmt: skip
    charges: str = option(
        "Charges: MMFF94's, Gasteiger's, AM1-BCC, ABCG2, or those of the molecule's file.",
        like=library,
        choices=list(CHARGES),
    )
    hydrogens: str = option(
        "given: the file contains all hydrogens; add: complete the valences; formal charges are not changed.",
        like=library, choices=HYDROGENS,
    )  # fmt: skip
    ph: float | None = option(
        "Protonate at this pH by the typical pKa of functional groups, and add hydrogens.", metavar="PH"
    )
    template: str | None = option(
        "SMILES, or code of the PDB's components (ccd:BEN), of molecules in files without bond orders: .pdb, .cif, "
        ".pdbqt.",
        metavar="SMILES",
    )  # fmt: skip
    receptor: Path | None = option(
        "Receptor of the molecules; complexes are also written, as PDB and AMBER files.", metavar="FILE"
    )
    limit: float | None = option("Stop a molecule after this time, seconds.", metavar="S")
    formats: tuple[str, ...] = option(
        f"Formats to write to a folder, separated by commas: {', '.join(FORMATS)}; by default all.",
        default=(),
        metavar="NAMES",
    )


@click.command(cls=EachOnce)
@click.argument("what", metavar="IN...", nargs=-1, required=True)
@click.option(
    "-o", "--output", type=TARGET, metavar="OUT", required=True,
    help="Write the files to this folder, with a folder for each molecule; or write one molecule to a file: .xml, "
    ".prmtop, .rst7, .sdf, .pdb.",
)  # fmt: skip
@options(Making)
@click.option("--table", type=TARGET, metavar="FILE", help="Write a row for each molecule: .csv, .h5, .json.")
@resume_option("molecules")
@cluster_options
@json_option(" per molecule")
@debug_option
@words_of
def ligand(
    what: tuple[str, ...], output: Path, making: Making, as_json: bool, words: dict[str, Any], call: Call, **more: Any
) -> None:
    """Assign parameters to small molecules, and write them for OpenMM, AMBER's programs and PELE.

    IN is a file of molecules with all their hydrogens (.sdf, .mol2, .smi), of poses of Vina or AutoDock-GPU (.pdbqt,
    .dlg), a structure with --template, or a SMILES. A molecule that fails does not stop the run: it is reported,
    and the exit code is 1. Parameters are cached, so that each molecule is computed only once. Requires AmberTools and
    RDKit: pip install 'pele-ocl[ligands]' on Linux, conda install -c conda-forge ambertools rdkit elsewhere.
    """
    with ProgressLine("Molecules") as progress:
        found = library(
            what, **keywords(making), **more, **words, output=output, errors="record", progress=progress,
            call=call.facts(),
        )  # fmt: skip
    rows = rows_of(found.records)
    show(rows, found.records, as_json, lambda: _as_text(rows, output))
    exit_for_rows(rows, "molecule")


def _as_text(rows: Sequence[Row], output: Path) -> str:
    shown = rows[:_SHOWN]
    lines = text_table(("molecule", "formula", "atoms", "charge", "s"), list(map(_cells, shown)), "<<>>>").split("\n")
    add_reasons(lines, shown)
    rest = len(rows) - len(shown)
    more = [f"and {counted(rest, 'molecule')} more; --table FILE and --json list all"] if rest else []
    done = [row for row in rows if "error" not in row]
    fields = ", ".join(dict.fromkeys(str(row["forcefield"]) for row in done)) or "nothing was done"
    ending = f"{counted(len(done), 'molecule')} -> {one_line(str(output))}: {fields}, total {duration(elapsed())}"
    return "\n".join([*lines, *more, "", ending])


def _cells(row: Row) -> list[str]:
    name = one_line(row["structure"])
    if "error" in row:
        return [name, *[""] * 4]
    return [name, row["formula"], f"{row['n_atoms']:,}", f"{row['charge']:+d}", f"{row['seconds']['total']:.2f}"]
