"""The atoms of a trajectory's frames that are wanted: by index, or in MDTraj's language of selections."""

from __future__ import annotations

from os import PathLike
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import array, described
from ..atoms import Labels
from ..errors import FormatError, InputError
from ..extras import extra

if TYPE_CHECKING:
    import mdtraj

Selection = str | slice | ArrayLike


def selected_atoms(select: Selection, n_atoms: int, topology: mdtraj.Topology | None) -> NDArray[np.intp]:
    """Indices (k,) of the atoms that a selection names, rising where it is a text.

    select : a text in MDTraj's language, a slice, (n_atoms,) booleans or (k,) indices
    topology : the names of the atoms; without them a text may name indices alone

    Raises InputError for what names no atoms, and for a text that cannot be understood.
    """
    everyone = np.arange(n_atoms, dtype=np.intp)
    if isinstance(select, str):
        chosen = _by_words(select, n_atoms, topology)
    elif isinstance(select, slice):
        chosen = everyone[select]
    else:
        given = array("the selected atoms", select, "iub", "indices or booleans")
        try:
            chosen = everyone[given]
        except IndexError:
            raise InputError(f"the selected atoms are not among the {n_atoms:,} of a frame") from None
    if chosen.ndim != 1 or not len(chosen):
        raise InputError(f"the selection {described(select)} names no atoms")
    return chosen


def _by_words(words: str, n_atoms: int, topology: mdtraj.Topology | None) -> NDArray[np.intp]:
    md = extra("mdtraj", "a selection of atoms in words of MDTraj")
    names = _nameless(md, n_atoms) if topology is None else topology
    try:
        found = np.asarray(names.select(words), np.intp)
    except Exception as error:  # the parser raises errors of many kinds
        reason = " ".join(str(error).split())[:100]
        raise InputError(f"the selection {words[:60]!r} is not in MDTraj's language: {reason}") from None
    if not len(found) and topology is None:
        raise InputError(
            f"the selection {words[:60]!r} names no atoms; the trajectory has no names, so give a structure of all its "
            "atoms by --topology, or indices, such as 'index < 332'"
        )
    return found


def topology_file(path: str | PathLike[str]) -> mdtraj.Topology:
    """The names of atoms in a structure file, as MDTraj reads it; raises FormatError where it does not."""
    md = extra("mdtraj", "a selection of atoms in words of MDTraj")
    try:
        return md.load_topology(str(path))
    except Exception as error:
        raise FormatError(
            f"{path}: MDTraj cannot read names of atoms from it ({' '.join(str(error).split())})"
        ) from None


def topology_of(labels: Labels) -> mdtraj.Topology:
    """The names of atoms that are known already."""
    md = extra("mdtraj", "a selection of atoms in words of MDTraj")
    topology = md.Topology()
    chains = {name: topology.add_chain() for name in dict.fromkeys(residue.chain for residue in labels.residues)}
    residues = [topology.add_residue(each.name, chains[each.chain], each.number) for each in labels.residues]
    which = np.searchsorted(labels.residue_starts, np.arange(len(labels)), side="right") - 1
    for name, symbol, k in zip(labels.names.tolist(), labels.elements.tolist(), which.tolist(), strict=True):
        topology.add_atom(name, _element(md, symbol), residues[k])
    return topology


def _element(md: ModuleType, symbol: str) -> mdtraj.core.element.Element:
    try:
        return md.element.get_by_symbol(symbol)
    except KeyError:
        return md.element.virtual


def _nameless(md: ModuleType, n_atoms: int) -> mdtraj.Topology:
    """n atoms without names, of which a selection can name indices."""
    topology = md.Topology()
    residue = topology.add_residue("", topology.add_chain())
    for _ in range(n_atoms):
        topology.add_atom("", md.element.virtual, residue)
    return topology
