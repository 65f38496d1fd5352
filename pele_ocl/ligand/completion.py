"""Add bond orders and hydrogens to molecules from a template: a SMILES, or a code of the PDB's CCD."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gemmi
import numpy as np

from ..atoms import Floats
from ..atoms.graphs import Graph, Indices, Matching, bonds_by_distance, difference
from ..common import arguments
from ..common.errors import FormatError, InputError
from ..common.extras import extra
from ..common.inputfile import InputFile
from ..common.textfiles import plain_bytes

if TYPE_CHECKING:
    from rdkit.Chem import Mol

COMPONENTS = "PELE_OCL_CCD"  # environment variable: path of components.cif, or of a folder of files such as BEN.cif
ADDED = "_pele_ocl_added"  # property of a molecule: number of added hydrogens
_PURPOSE = "a template of bond orders"
_CODE = re.compile(r"(?:ccd:)?([A-Za-z0-9]{1,5})", re.IGNORECASE)
_ORDERS = {"SING": "SINGLE", "DOUB": "DOUBLE", "TRIP": "TRIPLE", "AROM": "AROMATIC"}
_REACHES = (1.2, 1.3, 1.12)  # bond cutoffs to try in order, as factors of the sum of two covalent radii


def template_of(text: str, source: InputFile | None = None) -> Mol:
    """Return the molecule of a template: a SMILES, or a code of the PDB's chemical components, `ccd:BEN` or `BEN`.

    source : an mmCIF file that may describe the component

    Raises InputError for a text that is neither, and for an unknown component.
    """
    arguments.text("template", text)
    chem: Any = extra("rdkit.Chem", _PURPOSE)
    words = text.strip()
    code = _CODE.fullmatch(words)
    found = None
    if words and not words.lower().startswith("ccd:"):
        found = parsed_smiles(words)
    if found is None and code is not None:
        found = _component(code[1].upper(), source)
    if found is None:
        raise InputError(
            f"the template {text!r} is neither a SMILES nor a code of the PDB's components, such as `ccd:BEN`"
        )
    return without_hydrogens(chem, found)


def parsed_smiles(text: str) -> Mol | None:
    """Parse a SMILES; None if RDKit fails."""
    chem: Any = extra("rdkit.Chem", "a SMILES")
    block = extra("rdkit.rdBase", "a SMILES").BlockLogs()
    try:
        found: Mol | None = chem.MolFromSmiles(text)
    finally:
        del block
    return found


def without_hydrogens(chem: Any, molecule: Mol) -> Mol:
    """Remove all explicit hydrogens; their numbers remain as implicit hydrogens."""
    if not any(atom.GetAtomicNum() > 1 for atom in molecule.GetAtoms()):
        raise InputError("the template contains only hydrogens")
    found: Mol = chem.RemoveAllHs(molecule)
    return found


def graph_of(molecule: Mol) -> Graph:
    """Return the graph of an RDKit molecule: its elements and bonds."""
    elements = [atom.GetSymbol() for atom in molecule.GetAtoms()]
    return Graph.of(elements, [(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in molecule.GetBonds()])


def match(template: Graph, elements: Sequence[str], positions: Floats) -> tuple[Indices | None, str]:
    """Match the heavy atoms of a template to those of a residue; return the mapping, or the reason if this fails.

    elements, positions : (k,) and (k, 3) A of the residue's heavy atoms; bonds are determined by distance
    """
    names = {i: f"its atom {i + 1}" for i in range(len(template))}
    why = ""
    for reach in _REACHES:
        theirs = Graph.of(elements, bonds_by_distance(elements, positions, reach))
        found = Matching(template, theirs).best() if len(elements) == len(template) else None
        if found is not None:
            return found, ""
        why = why or difference(template, theirs, names)
    return None, why


def completed(template: Mol, positions: Floats, hydrogens: Sequence[tuple[int, Floats]] = ()) -> Mol:
    """Set the positions of a template's heavy atoms, and add its hydrogens by bond geometry.

    positions : positions of the heavy atoms, (k, 3) A
    hydrogens : known hydrogens, each as index of its heavy atom and position (3,) A
    """
    chem: Any = extra("rdkit.Chem", _PURPOSE)
    geometry: Any = extra("rdkit.Geometry", _PURPOSE)
    bare = chem.Mol(template)
    bare.RemoveAllConformers()
    conformer = chem.Conformer(bare.GetNumAtoms())
    for k, (x, y, z) in enumerate(np.asarray(positions, np.float64).tolist()):
        conformer.SetAtomPosition(k, geometry.Point3D(x, y, z))
    conformer.Set3D(True)
    bare.AddConformer(conformer)
    whole: Mol = chem.AddHs(bare, addCoords=True)
    there = whole.GetConformer()
    left = {
        atom.GetIdx(): [n.GetIdx() for n in atom.GetNeighbors() if n.GetAtomicNum() == 1] for atom in whole.GetAtoms()
    }
    for parent, place in hydrogens:
        free = left.get(parent, [])
        if free:
            near = min(free, key=lambda k: float(np.linalg.norm(np.array(there.GetAtomPosition(k)) - place)))
            free.remove(near)
            there.SetAtomPosition(near, geometry.Point3D(*map(float, place)))
    if n_added := sum(map(len, left.values())):
        whole.SetProp(ADDED, f"{n_added:,}")
    chem.AssignStereochemistryFrom3D(whole)
    return whole


def parents_of(positions: Floats, hydrogens: Floats) -> list[int]:
    """Return the nearest heavy atom of each hydrogen. positions, hydrogens : (k, 3), (m, 3) A"""
    if not len(hydrogens):
        return []
    return [int(k) for k in np.linalg.norm(hydrogens[:, None] - positions, axis=2).argmin(axis=1)]


# The PDB's chemical components


def _component(code: str, source: InputFile | None) -> Mol | None:
    """Return the molecule of a component. Raises InputError if it is not found."""
    for block in _blocks(code, source):
        found = _of_block(block, code)
        if found is not None:
            return found
    raise InputError(
        f"the component {code} was not found; give its SMILES, put the PDB's file {code}.cif into this folder, or "
        f"set the path of the PDB's components.cif in {COMPONENTS}"
    )


def _blocks(code: str, source: InputFile | None) -> list[gemmi.cif.Block]:
    """Return the CIF blocks that may describe a component.

    They are those of the structure's file, of CODE.cif in the working directory, and of the file or folder COMPONENTS.
    """
    found = list[gemmi.cif.Block]()
    if source is not None:
        try:
            found += gemmi.cif.read_string(plain_bytes(source).decode("utf-8", "replace"))
        except (ValueError, RuntimeError):
            pass  # not an mmCIF file
    named = os.environ.get(COMPONENTS, "")
    paths = [Path(f"{code}.cif")]
    paths += [Path(named) / f"{code}.cif"] if named and Path(named).is_dir() else [Path(named)] if named else []
    for path in paths:
        if path.is_file():
            try:
                blocks = gemmi.cif.read(str(path))
            except (ValueError, RuntimeError, OSError) as error:
                raise FormatError(f"{path}: cannot be read: {error}") from None
            found += [block for block in blocks if block.name.upper() in (code, f"COMP_{code}")]
    return found


def _of_block(block: gemmi.cif.Block, code: str) -> Mol | None:
    """Build the molecule of a component from a CIF block; None if the block does not describe it."""
    chem: Any = extra("rdkit.Chem", _PURPOSE)
    atoms = block.find("_chem_comp_atom.", ["comp_id", "atom_id", "type_symbol", "?charge"])
    bonds = block.find("_chem_comp_bond.", ["comp_id", "atom_id_1", "atom_id_2", "value_order"])
    rows = [row for row in atoms if row.str(0).upper() == code]
    if not rows:
        return None
    made, index = chem.RWMol(), dict[str, int]()
    for row in rows:
        atom = chem.Atom(row.str(2).capitalize())
        charge = row.str(3) if row.has(3) else "0"
        atom.SetFormalCharge(int(charge) if re.fullmatch(r"[+-]?\d+", charge) else 0)
        index[row.str(1)] = made.AddAtom(atom)
    for row in bonds:
        if row.str(0).upper() == code and {row.str(1), row.str(2)} <= index.keys():
            kind = getattr(chem.BondType, _ORDERS.get(row.str(3).upper()[:4], "SINGLE"))
            made.AddBond(index[row.str(1)], index[row.str(2)], kind)
    found: Mol = made.GetMol()
    try:
        chem.SanitizeMol(found)
    except ValueError:
        return None
    return found
