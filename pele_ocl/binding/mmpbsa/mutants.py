"""Mutants of an alanine scan, by topologies of their own or by names of residues."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from ...atoms import Atoms, Labels
from ...common.errors import InputError
from ..alanine import Mutant, cut_at
from .namelists import Alanine, MmpbsaInput
from .residues import chain_called, starts_of

_LETTERS = {
    "ALA": "A", "ARG": "R", "ASN": "N", "ASP": "D", "ASH": "D", "CYS": "C", "CYX": "C", "CYM": "C", "GLN": "Q",
    "GLU": "E", "GLH": "E", "GLY": "G", "HIS": "H", "HID": "H", "HIE": "H", "HIP": "H", "ILE": "I", "LEU": "L",
    "LYS": "K", "LYN": "K", "MET": "M", "PHE": "F", "PRO": "P", "SER": "S", "THR": "T", "TRP": "W", "TYR": "Y",
    "VAL": "V", "HSD": "H", "HSE": "H", "HSP": "H",
}  # fmt: skip
_KINDS = {
    "positive": ("ARG", "LYS", "HIP", "HSP"), "negative": ("ASP", "GLU"),
    "nonpolar": ("ALA", "GLY", "ILE", "LEU", "MET", "PHE", "PRO", "TRP", "VAL"),
}  # fmt: skip


def mutated_residue(wild: Atoms, mutant: Atoms) -> int | None:
    """Residue, from 0, that is alanine in another topology; None where all are the same.

    Raises InputError where more than one differs.
    """
    assert wild.labels is not None
    assert mutant.labels is not None
    before, after = (of.residue_names[of.residue_starts] for of in (wild.labels, mutant.labels))
    if len(before) != len(after):
        raise InputError(f"the mutant has {len(after):,} residues, the complex {len(before):,}")
    differ = np.flatnonzero(before != after)
    if not len(differ):
        return None
    if len(differ) > 1 or str(after[differ[0]])[-3:] != "ALA":
        raise InputError(
            f"{len(differ)} residues of the mutant differ from the complex, the first of them {before[differ[0]]} "
            f"{differ[0] + 1} to {after[differ[0]]}; one that becomes ALA is done here"
        )
    return int(differ[0])


def mutant_of(wild: Atoms, topology: Atoms, residue: int) -> Mutant:
    """Mutant of a topology of its own, at positions that follow from the wild type's.

    Raises InputError where the topology has other atoms than the wild type with this residue cut beyond CB.
    """
    site = cut_at(wild, residue)
    assert wild.labels is not None
    assert topology.labels is not None
    placed = np.sort(np.concatenate([site.hydrogens, site.gamma]))
    by_name = {str(wild.labels.names[i]): int(i) for i in np.intersect1d(site.own, site.kept) if i not in placed}
    free, order = [int(i) for i in placed], list[int]()
    starts = starts_of(topology)
    end = starts[residue + 1] if residue + 1 < len(starts) else len(topology)
    for name in topology.labels.names[starts[residue] : end].tolist():
        if name in by_name:
            order.append(by_name.pop(name))
        elif name.lstrip("123").startswith("HB") and free:
            order.append(free.pop(0))
        else:
            raise InputError(f"the mutant's residue {residue + 1} has the atom {name}, which the cut residue lacks")
    before = np.arange(site.own[0])
    kept = np.concatenate([before, np.array(order, np.intp), np.arange(site.own[-1] + 1, len(wild))])
    rest = np.concatenate([np.arange(starts[residue]), np.arange(end, len(topology))])
    of_rest = np.concatenate([before, np.arange(site.own[-1] + 1, len(wild))])
    same = by_name == {} and not free and len(rest) == len(of_rest)
    if not same or (topology.labels.names[rest] != wild.labels.names[of_rest]).any():
        raise InputError("the atoms of the mutant's topology are not those of the complex with one alanine")
    position = {int(i): k for k, i in enumerate(kept)}
    return Mutant(topology, kept, position[site.beta], np.array([position[int(i)] for i in site.gamma], np.intp))


def mutant_label(atoms: Atoms, residue: int) -> str:
    """`D231A` of a residue from 0 in files that count residues, `A:D231A` in those that name chains and numbers."""
    labels = atoms.labels
    assert labels is not None
    of = labels.residues[residue]
    letter = _LETTERS.get(of.name[-3:], _LETTERS.get(of.name[:3], of.name))
    return f"{of.chain}:{letter}{of.number}{of.insertion_code}A" if of.chain else f"{letter}{residue + 1}A"


def residue_named(word: str, labels: Labels) -> int:
    """Residue, from 0, of gmx_MMPBSA's CHAIN:NUMBER, CHAIN/NUMBER or CHAIN/NUMBER:INSERTION_CODE.

    Raises InputError where there is none.
    """
    found = re.fullmatch(r"(\w*)[:/](-?\d+)(?::(\w))?", word)
    if found is None:
        raise InputError(f"mutant_res={word}: CHAIN:NUMBER is needed there")
    first = labels.residue_starts
    chain, number, code = chain_called(found[1], labels), int(found[2]), found[3] or ""
    named = (labels.chains[first] == chain) & (labels.residue_numbers[first] == number)
    places = np.flatnonzero(named & (labels.insertion_codes[first] == code))
    if not len(places):
        chains = ", ".join(dict.fromkeys(of or "''" for of in labels.chains[first].tolist()))
        raise InputError(
            f"mutant_res={word}: there is no residue {found[2]}{code} in a chain {found[1]} (chains here: {chains}); a "
            "reference structure of receptor and ligand gives them other chains and numbers"
        )
    if len(places) > 1:
        names = " and ".join(labels.residue(int(first[k])) for k in places[:2])
        raise InputError(f"mutant_res={word}: {len(places)} residues have that number, such as {names}; give a "
                         "reference structure that has different chains")  # fmt: skip
    return int(places[0])


def with_dielectric(wanted: MmpbsaInput, alanine: Alanine, name: str) -> MmpbsaInput:
    """Input with the dielectric constant that cas_intdiel gives a residue of this name."""
    if alanine.dielectrics is None:
        return wanted
    kind = next((kind for kind, names in _KINDS.items() if name[-3:] in names), "polar")
    return replace(wanted, model=replace(wanted.model, solute_dielectric=alanine.dielectrics[kind]))
