"""`pele-ocl prepare`: a bare PDB file made ready for the other commands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from ...interop.preparation import Preparation
from ...interop.preparing import prepare as prepared
from ..command import INPUT, OUTPUT, EachOnce
from ..options import debug_option
from ..report import counted
from ..terminal import one_line, say, say_json

_SHOWN = 12  # residues with built atoms, on screen


@click.command(cls=EachOnce)
@click.argument("path", metavar="IN", type=INPUT)
@click.option("-o", "--output", type=OUTPUT, metavar="OUT", required=True, help="Write the structure: .pdb.")
@click.option("--ph", type=float, default=7.0, show_default=True, help="Decides which residues are protonated.")
@click.option("--keep-water", is_flag=True, help="Keep waters; they get their hydrogens.")
@click.option("--keep-hetero", is_flag=True, help="Keep ligands and ions, as they are.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@debug_option
def prepare(path: Path, output: Path, ph: float, keep_water: bool, keep_hetero: bool, as_json: bool) -> None:
    """Write the structure in IN with all its atoms as OUT, ready for the other commands.

    IN is a .pdb or .cif file as the Protein Data Bank has it, also with .gz. One alternate location is kept, missing
    atoms and residues within chains are built, disulphides bonded, and hydrogens added by the usual pKa of residues.
    Atoms that are there stay where they are. Through PDBFixer: pip install 'pele-ocl[openmm]'.
    """
    changes = prepared(path, output, ph, keep_water, keep_hetero)
    if as_json:
        say_json({"input": str(path), "output": str(output), "ph": ph, **asdict(changes)})
        return
    head = f"{one_line(str(path))} -> {one_line(str(output))}: {counted(changes.n_atoms, 'atom')}, pH {ph:g}"
    say("\n".join([head, "", *(f"{what:<14}{text}" for what, text in _lines(changes))]))


def _lines(changes: Preparation) -> Iterator[tuple[str, str]]:
    """Each change with its heading, which stands at the first of several lines only."""
    yield from _under("Chosen", changes.alternates)
    yield from _under("Removed", [", ".join(f"{n:,} {name}" for name, n in changes.removed.items())])
    yield from _under("Replaced", [f"{name} by {other}" for name, other in changes.replaced.items()])
    built = [f"{', '.join(names)} behind {place}" for place, names in changes.residues_added.items()]
    atoms = [f"{', '.join(names)} of {residue}" for residue, names in changes.atoms_added.items()]
    more = [f"atoms of {len(atoms) - _SHOWN:,} residues more; --json has them all"] if len(atoms) > _SHOWN else []
    yield from _under("Built", [*built, *atoms[:_SHOWN], *more])
    ends = [f"{counted(len(names), 'residue')} beyond {end}" for end, names in changes.residues_missing.items()]
    yield from _under("Not built", ends)
    yield from _under("Disulphides", [", ".join(f"{a} - {b}" for a, b in changes.disulphides)])
    yield from _under("Protonation", [", ".join(f"{name} is {form}" for name, form in changes.protonation.items())])
    renamed = changes.hydrogens_removed
    yield (
        "Hydrogens",
        f"{changes.hydrogens_added:,} added" + (f", {renamed:,} of other names removed" if renamed else ""),
    )
    if not changes.relaxed:
        yield "", "built atoms are not relaxed, since there are residues without parameters"
    yield from _under(
        "Left alone", [f"{name}: add its hydrogens and give its parameters" for name in changes.left_alone]
    )


def _under(heading: str, texts: list[str] | tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for k, text in enumerate(text for text in texts if text):
        yield "" if k else heading, text
