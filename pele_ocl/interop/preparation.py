"""List of all that `prepare` changed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Preparation:
    """All that `prepare` changed; residues are written as `A:LYS12`.

    alternates : sentences about alternate locations and models that were chosen
    removed : number of residues that were taken out, by name
    renamed : names of ligands that do not fit into a PDB file, with the names that they got
    replaced : nonstandard residues, with the standard ones in their place
    charge_changes : change of the charge at pH 7 of residues that were replaced, e, where there is one
    phosphates_removed : residues that begin a strand and whose phosphate was taken out, as force fields have none there
    residues_added, residues_missing : runs of residues of the sequence that the file lacks, by the residue they follow.
        The former were built; the latter were not, as they are at ends of chains or in `not_built`
    not_built : why a run within a chain was not built, by the residue it would follow
    atoms_added : heavy atoms that were built, by residue; OXT is the end of a chain
    disulphides : pairs of bonded cysteines
    protonation : the form that was chosen, by residue, where there is a choice: HID, HIE, HIP, ASH, GLH, LYN, CYX
    pka : where the pKa that decided it are from: "usual", or PROPKA with its version
    pkas : pKa of side chains from PROPKA, by residue; empty with usual ones
    hydrogens_removed, hydrogens_added, hydrogens_moved : their numbers. Moved hydrogens had bonds off their usual
        length by more than a twentieth in the file, and have it now
    left_alone : residues that nothing is known of, which got no hydrogens
    not_relaxed : residues that AMBER's ff14SB does not know. Atoms built elsewhere were moved to a minimum of their
        energy, in which these residues are uncharged spheres
    relaxed : whether `not_relaxed` is empty
    without_parameters : residues that the built-in Amber99SB has no template for, so that `energy` refuses them
    warnings : sentences about what may be wrong in the output
    n_atoms : number of atoms in the output
    """

    alternates: tuple[str, ...]
    removed: dict[str, int]
    renamed: dict[str, str]
    replaced: dict[str, str]
    charge_changes: dict[str, int]
    phosphates_removed: list[str]
    residues_added: dict[str, list[str]]
    residues_missing: dict[str, list[str]]
    not_built: dict[str, str]
    atoms_added: dict[str, list[str]]
    disulphides: list[tuple[str, str]]
    protonation: dict[str, str]
    pka: str
    pkas: dict[str, float]
    hydrogens_removed: int
    hydrogens_added: int
    hydrogens_moved: int
    left_alone: list[str]
    not_relaxed: list[str]
    relaxed: bool
    without_parameters: list[str]
    warnings: list[str]
    n_atoms: int
