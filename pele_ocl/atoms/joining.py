"""Subsets of atoms, `atoms[:50]`, and joined molecules, `receptor + ligand`."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from string import ascii_uppercase
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..common import arguments
from ..common.errors import InputError
from .bonded import Bonded, CMaps, TermTable
from .default_radii import DefaultRadii
from .labels import Labels, labels_together
from .sites import VirtualSites


def chosen_indices(n: int, which: slice | ArrayLike) -> NDArray[np.intp]:
    """Convert a slice, a mask or a list of indices of n atoms to indices (k,) from 0.

    Raises InputError for anything else, indices out of range and duplicate indices.
    """
    everyone = np.arange(n, dtype=np.intp)
    if isinstance(which, slice):
        ends = [end for end in (which.start, which.stop, which.step) if end is not None]
        if any(not isinstance(end, int | np.integer) for end in ends) or which.step == 0:
            raise InputError(f"{which} is not a slice of atoms; expected whole numbers, and a step other than 0")
        found: NDArray[np.intp] = everyone[which]
        return found
    chosen = arguments.atoms_chosen("the atoms to take", which)
    is_mask = chosen.dtype.kind == "b"
    if chosen.ndim != 1 or (is_mask and len(chosen) != n):
        raise InputError(f"the atoms to take have shape {chosen.shape}; ({n},) booleans or (k,) indices")
    if is_mask:
        return np.flatnonzero(chosen)
    stray = (chosen < -n) | (chosen >= n)
    if stray.any():
        raise InputError(f"atom {chosen[stray][0]} does not exist; the atoms are 0 to {n - 1}")
    indices = everyone[chosen.astype(np.intp)]
    if len(np.unique(indices)) < len(indices):
        raise InputError("an atom is selected twice; give each once")
    return indices


def joined(first: Any, second: Any) -> dict[str, Any]:
    """Concatenate the fields of two Atoms, as described in `Atoms.__add__`."""
    for name, what in (("combining", "combining rule"), ("one_four", "scales of 1-4 pairs")):
        one, other = getattr(first, name), getattr(second, name)
        if not np.allclose(one, other, atol=1e-3) if name == "one_four" else one != other:
            raise InputError(
                f"the two molecules have different {what}s, {one} and {other}; expected parameters of one kind"
            )
    if (first.bonded is None) != (second.bonded is None):
        raise InputError("one of the two molecules has no bonded terms; give both a force field")
    for each in (first, second):
        if each.undone_pairs is not None:
            raise InputError(
                f"one of the two molecules has atoms that {each.undone_pairs.what}, so it cannot be joined"
            )
    labels = _labels(first, second)
    n = len(first)
    columns = {
        name: _together(getattr(first, name), getattr(second, name))
        for name in ("charges", "lj_sigma", "lj_epsilon", "gb_radii", "gb_scales", "types", "sgb")
    }
    missing = [name for name in columns if (getattr(first, name) is None) != (getattr(second, name) is None)]
    if lacking := [name for name in missing if name not in ("types", "sgb")]:
        raise InputError(f"one of the two molecules has no {' and '.join(lacking)}")
    bonds = np.concatenate([first.bond_pairs, second.bond_pairs + n])
    names = dict.fromkeys(filter(None, (first.forcefield, second.forcefield)))
    is_amber = first.type_family == second.type_family == "amber" and "types" not in missing
    sets = dict.fromkeys(filter(None, (first.gb_radii_set, second.gb_radii_set)))
    return dict(
        positions=np.concatenate([first.positions, second.positions]),
        labels=labels,
        bonds=bonds,
        bonded=None if first.bonded is None else _bonded(first.bonded, second.bonded, n),
        combining=first.combining,
        one_four=first.one_four,
        type_family="amber" if is_amber else "",
        gb_radii_set=" and ".join(sets),
        default_radii=_default_radii(first, second, labels, bonds),
        forcefield=" + ".join(names),
        virtual_sites=_sites(first.virtual_sites, second.virtual_sites, n),
        rigid_pairs=np.concatenate([first.rigid_pairs, second.rigid_pairs + n]),
        cell_angles=first.cell_angles,
        notes=(*first.notes, *second.notes),
        **columns,
    )


def _together(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    return None if one is None or other is None else np.concatenate([one, other])


def _sites(one: VirtualSites | None, other: VirtualSites | None, n: int) -> VirtualSites | None:
    """Concatenate virtual sites. n : number of atoms of the first molecule"""
    if other is None:
        return one
    parents = np.where(other.parents >= 0, other.parents + n, -1)
    moved = VirtualSites(other.atoms + n, parents, other.weights)
    if one is None:
        return moved
    return VirtualSites(
        np.concatenate([one.atoms, moved.atoms]),
        np.concatenate([one.parents, moved.parents]),
        np.concatenate([one.weights, moved.weights]),
    )


def _default_radii(first: Any, second: Any, labels: Labels | None, bonds: np.ndarray) -> DefaultRadii | None:
    """Return the default radii of the joined molecule, None unless both molecules have default radii."""
    one, other = first.default_radii, second.default_radii
    if one is None or other is None or labels is None:
        return None
    found: DefaultRadii = one.joined(other, labels, bonds)
    return found


def _labels(first: Any, second: Any) -> Labels | None:
    """Concatenate labels. Chain identifiers of the second that the first also has are replaced by unused ones."""
    one, other = first.labels, second.labels
    if one is None or other is None:
        if (one is None) != (other is None):
            raise InputError("one of the two molecules has no names of atoms")
        return None
    chains = other.chains
    taken = set(one.chains.tolist()) | set(chains.tolist())
    letters = ascii_uppercase[11:] + ascii_uppercase[:11]
    names = chain(letters, (first + second for first in letters for second in letters))
    free = (name for name in names if name not in taken)
    has_chains = bool((one.chains != "").any())
    for name in dict.fromkeys(chains.tolist()):
        if name in set(one.chains.tolist()) or (has_chains and not name):
            chains = np.where(chains == name, next(free, name), chains)
    return labels_together(one, replace(other, chains=chains))


def _bonded(one: Bonded, other: Bonded, n: int) -> Bonded:
    """Concatenate bonded terms. n : number of atoms of the first molecule"""
    tables: dict[str, TermTable] = {}
    others = dict(other.tables())
    for name, table in one.tables():
        more = others[name]
        parameters = more.parameters
        if isinstance(table, CMaps):
            parameters = parameters + len(one.maps)
        tables[name] = replace(
            table,
            atoms=np.concatenate([table.atoms, more.atoms + n]),
            parameters=np.concatenate([table.parameters, parameters]),
        )
    excluded = np.concatenate([one.excluded, other.excluded + n])
    return replace(one, maps=(*one.maps, *other.maps), excluded=excluded, **tables)  # type: ignore[arg-type]
