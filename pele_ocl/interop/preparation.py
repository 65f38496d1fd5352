"""The list of all that `prepare` changed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Preparation:
    """All that `prepare` changed; residues are written as `A:LYS12`.

    alternates : sentences about alternate locations and models that were chosen
    removed : number of residues that were taken out, by name
    replaced : nonstandard residues, with the standard ones in their place
    residues_added, residues_missing : runs of residues of the sequence that the file lacks: within a chain, where they
        were built, and at its ends, where they were not
    atoms_added : heavy atoms that were built, by residue; OXT is the end of a chain
    disulphides : pairs of bonded cysteines
    protonation : the form that was chosen, by residue, where there is a choice: HID, HIE, HIP, ASH, GLH, LYN, CYX
    hydrogens_removed, hydrogens_added : their numbers
    left_alone : residues that nothing is known of, which got no hydrogens
    relaxed : whether the atoms that were built were moved to a minimum of their energy in AMBER's ff14SB; not where
        there are residues that it does not know
    n_atoms : number of atoms in the output
    """

    alternates: tuple[str, ...]
    removed: dict[str, int]
    replaced: dict[str, str]
    residues_added: dict[str, list[str]]
    residues_missing: dict[str, list[str]]
    atoms_added: dict[str, list[str]]
    disulphides: list[tuple[str, str]]
    protonation: dict[str, str]
    hydrogens_removed: int
    hydrogens_added: int
    left_alone: list[str]
    relaxed: bool
    n_atoms: int
