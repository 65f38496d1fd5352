"""The pair list that the options of `nonbond` ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ...atoms import Atoms
from ...pairs import Pairs, all_pairs, exclusions, pairs_split, pairs_within, read_pairs, without_bonded
from ..report import counted
from ..terminal import note

DEFAULT_CUTOFF = 12.0


def pairs_of(
    atoms: Atoms, cutoff: float | None, no_cutoff: bool, split_cutoffs: bool, one_four: Literal["exclude", "scale"]
) -> Pairs:
    """The list that the options ask for."""
    if no_cutoff:
        return all_pairs(atoms, one_four)
    if split_cutoffs:
        return pairs_split(atoms, one_four=one_four)
    return pairs_within(atoms, DEFAULT_CUTOFF if cutoff is None else cutoff, one_four)


def pairs_listed(atoms: Atoms, pairs_file: Path, one_four: Literal["exclude", "scale"]) -> Pairs:
    """The list in a file, less what the bonds exclude, which a note tells."""
    listed = read_pairs(pairs_file, len(atoms), labels=atoms.labels)
    pairs = without_bonded(listed, atoms, one_four)
    left_out = len(listed) - len(pairs)
    if left_out:
        up_to = "two" if one_four == "scale" else "three"
        keep = "" if one_four == "scale" else "; --one-four scale keeps those three bonds apart"
        note(f"Note: {pairs_file}: left out {counted(left_out, 'pair')} of atoms up to {up_to} bonds apart{keep}")
    if pairs.one_four is not None and not pairs.one_four.any() and len(exclusions(atoms.bonds, len(atoms))[1]):
        note(
            f"Note: {pairs_file}: holds none of the molecule's 1-4 pairs, so that --one-four scale adds nothing; write "
            "the list with --one-four scale"
        )
    return pairs


def why_none(cutoff: float | None, pairs_file: Path | None) -> str:
    """The reason why there is no pair."""
    if pairs_file is not None:
        return f"{pairs_file} lists none that bonds do not exclude"
    within = "" if cutoff is None else f" within {cutoff:g} A of each other"
    return f"bonds exclude every pair of atoms{within}"
