"""`pele-ocl prepare`: a bare PDB file made ready for the other commands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from ..common.errors import InputError
from ..common.inputfile import read_file
from ..interop.pka import SOURCES, USUAL
from ..interop.preparation import Preparation
from ..interop.preparing import prepare as prepared
from .command import INPUT, OUTPUT, EachOnce
from .json_lines import failing_as_record, say_record
from .options import debug_option, json_option
from .progress import ProgressLine
from .report import counted
from .terminal import one_line, say

_SHOWN = 12  # residues in a list, on screen


@click.command(cls=EachOnce)
@click.argument("path", metavar="IN", type=INPUT)
@click.option("-o", "--output", type=OUTPUT, metavar="OUT", required=True, help="Write the structure: .pdb.")
@click.option("--ph", type=float, default=7.0, show_default=True, help="pH that decides which residues are protonated.")
@click.option(
    "--pka", type=click.Choice(SOURCES), default=SOURCES[0], show_default=True,
    help="pKa of residues: usual ones, of a residue in water, or PROPKA's, of each in its surroundings; auto takes "
    "PROPKA if it is installed.",
)  # fmt: skip
@click.option("--keep-water", is_flag=True, help="Keep waters and add their hydrogens.")
@click.option("--keep-hetero", is_flag=True, help="Keep ligands and ions, as they are.")
@click.option(
    "--replace", "replacements", multiple=True, metavar="NAME=STANDARD",
    help="Replace residues by a standard one: BP5=TYR. Can be given several times.",
)  # fmt: skip
@click.option("--no-loops", is_flag=True, help="Leave residues that are missing within chains as gaps.")
@click.option(
    "--loop-seconds", type=float, default=60.0, show_default=True, metavar="S",
    help="Give up a run of missing residues if building it takes longer, seconds.",
)  # fmt: skip
@json_option()
@debug_option
def prepare(
    path: Path,
    output: Path,
    ph: float,
    pka: str,
    keep_water: bool,
    keep_hetero: bool,
    replacements: tuple[str, ...],
    no_loops: bool,
    loop_seconds: float,
    as_json: bool,
) -> None:
    """Write the structure in IN with all its atoms as OUT, ready for the other commands.

    IN is a .pdb or .cif file as the Protein Data Bank has it, also with .gz. One alternate location is kept. Missing
    atoms and residues within chains are built, disulphides bonded, and hydrogens added by the pKa of residues.
    Heavy atoms that are there stay. Through PDBFixer: pip install 'pele-ocl[openmm]', and PROPKA: pip
    install 'pele-ocl[ph]'.
    """
    replace = _pairs(replacements)
    with failing_as_record(path, as_json), ProgressLine("Preparing") as line:

        def tell(step: str, share: float) -> None:
            line.what = f"Preparing, {one_line(step)}"
            line(share)

        changes = prepared(path, output, ph, keep_water, keep_hetero, not no_loops, loop_seconds, replace, tell, pka)
    if as_json:
        say_record(read_file(path), {"output": str(output), "ph": ph, **asdict(changes)})
        return
    head = f"{one_line(str(path))} -> {one_line(str(output))}: {counted(changes.n_atoms, 'atom')}, pH {ph:g}"
    say("\n".join([head, "", *(f"{what:<14}{text}" for what, text in _lines(changes))]))


def _pairs(texts: tuple[str, ...]) -> dict[str, str]:
    """NAME=STANDARD of each option."""
    pairs = [text.partition("=") for text in texts]
    for text, (name, _, standard) in zip(texts, pairs, strict=True):
        if not name.strip() or not standard.strip():
            raise InputError(f"--replace {text} is not NAME=STANDARD, such as BP5=TYR")
    return {name.strip(): standard.strip().upper() for name, _, standard in pairs}


def _lines(changes: Preparation) -> Iterator[tuple[str, str]]:
    """Each change with its heading, which the first of several lines has alone."""
    yield from _under("Chosen", changes.alternates)
    yield from _under("Removed", [", ".join(f"{n:,} {name}" for name, n in changes.removed.items())])
    if changes.phosphates_removed:
        yield "" if changes.removed else "Removed", f"5' phosphate of {_some(changes.phosphates_removed)}"
    yield from _under("Renamed", [", ".join(f"{name} is {new}" for name, new in changes.renamed.items())])
    replaced = defaultdict[str, list[str]](list)
    for name, standard in changes.replaced.items():
        replaced[standard].append(name)
    yield from _under("Replaced", [f"{_some(names)} by {standard}" for standard, names in replaced.items()])
    built = [f"{', '.join(names)} behind {place}" for place, names in changes.residues_added.items()]
    atoms = [f"{', '.join(names)} of {residue}" for residue, names in changes.atoms_added.items()]
    more = [f"atoms of {len(atoms) - _SHOWN:,} residues more; --json has them all"] if len(atoms) > _SHOWN else []
    yield from _under("Built", [*built, *atoms[:_SHOWN], *more])
    yield from _under("Not built", [_not_built(changes, end) for end in changes.residues_missing])
    yield from _under("Disulphides", [_some([f"{a} - {b}" for a, b in changes.disulphides])])
    forms = defaultdict[str, list[str]](list)
    for name, form in changes.protonation.items():
        forms[form].append(name)
    yield "pKa", "the usual ones of residues in water" if changes.pka == USUAL else f"by {changes.pka}"
    named = {name: f"{name} ({pka:.1f})" for name, pka in changes.pkas.items()}
    chosen = [f"{form}: {_some([named.get(name, name) for name in forms[form]])}" for form in sorted(forms)]
    yield from _under("Protonation", chosen)
    removed, moved = changes.hydrogens_removed, changes.hydrogens_moved
    told = [f"{changes.hydrogens_added:,} added"]
    told += [f"{removed:,} of other names removed"] if removed else []
    told += [f"{moved:,} of the file given their usual bond length"] if moved else []
    yield "Hydrogens", ", ".join(told)
    if not changes.relaxed:
        yield "Not relaxed", f"{_some(changes.not_relaxed)}: ff14SB does not know them; all else is relaxed around them"
    if changes.left_alone:
        yield "Left alone", f"{_some(changes.left_alone)}: no hydrogens were added"
    yield from _under("Warnings", changes.warnings)


def _not_built(changes: Preparation, end: str) -> str:
    reason = changes.not_built.get(end)
    number = counted(len(changes.residues_missing[end]), "residue")
    return f"{number} behind {end}: {reason}" if reason else f"{number} beyond {end}"


def _some(names: list[str]) -> str:
    """List the first names, and how many there are more."""
    more = f" and {len(names) - _SHOWN:,} more; --json has them all" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _under(heading: str, texts: list[str] | tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for k, text in enumerate(text for text in texts if text):
        yield "" if k else heading, text
