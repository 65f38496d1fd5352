"""Read poses of AutoDock Vina and AutoDock-GPU from PDBQT and DLG files with the SMILES in Meeko's remarks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms import Floats
from ..common.errors import FormatError, InputError
from ..common.extras import extra
from ..common.inputfile import InputFile
from ..common.textfiles import number, plain_bytes
from .completion import completed, graph_of, match, parents_of, parsed_smiles, without_hydrogens

if TYPE_CHECKING:
    from rdkit.Chem import Mol

SCORE = "docking_score"  # property of a pose, kcal/mol
# Elements of AutoDock atom types that are not element symbols; glue atoms (G0, ...) and water have no element.
_ELEMENTS = {
    "A": "C", "NA": "N", "NS": "N", "OA": "O", "OS": "O", "SA": "S", "HD": "H", "HS": "H", "CL": "Cl", "BR": "Br",
    "FE": "Fe", "MG": "Mg", "MN": "Mn", "ZN": "Zn", "CA": "Ca", "SI": "Si",
}  # fmt: skip
_CLOSURE = re.compile(r"CG\d+")  # a carbon of a broken ring
_NO_ATOM = re.compile(r"W|G\d*")
_PREFIX = "DOCKED: "
_SCORES = (
    re.compile(r"REMARK VINA RESULT:\s*(\S+)"),
    re.compile(r"USER\s+Estimated Free Energy of Binding\s*=\s*(\S+)"),
)


@dataclass
class Pose:
    """A pose while its lines are read.

    line : number of its first line, from 1; fault : error message, "" for none
    elements, positions : elements and positions (A) by serial number
    smiles : SMILES of the molecule, "" without a remark; serials : SMILES atom, from 0 -> serial number
    parents : serial number of a hydrogen -> its SMILES atom
    """

    line: int
    fault: str = ""
    name: str = ""
    score: str = ""
    smiles: str = ""
    serials: dict[int, int] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    elements: dict[int, str] = field(default_factory=dict)
    positions: dict[int, list[float]] = field(default_factory=dict)

    def molecule(self, template: Mol | None) -> Mol:
        """Build the molecule with bond orders and all hydrogens at the pose's positions.

        template : heavy atoms of the molecule, used instead of the SMILES in the remarks

        Raises FormatError if the remarks contradict the atoms, InputError if there is no SMILES.
        """
        if self.fault or not self.positions:
            raise FormatError(self.fault or "has no atoms")
        if template is None and not self.smiles:
            raise InputError(
                "has no bond orders, because its remarks contain no SMILES, as written by Meeko; give the "
                "SMILES as `template`"
            )
        return self._by_remarks() if template is None else self._by_template(template)

    def _by_remarks(self) -> Mol:
        chem: Any = extra("rdkit.Chem", "a docked pose")
        found = parsed_smiles(self.smiles)
        if found is None:
            raise FormatError(f"its remark's SMILES {self.smiles!r} cannot be read by RDKit")
        if not self.serials:
            return self._by_template(without_hydrogens(chem, found))
        heavy = [atom.GetIdx() for atom in found.GetAtoms()]
        lacking = [k for k in heavy if self.serials.get(k) not in self.positions]
        if lacking:
            raise FormatError(f"its remarks contain no atom for the atom {lacking[0] + 1} of the SMILES {self.smiles}")
        for k in heavy:
            symbol = found.GetAtomWithIdx(k).GetSymbol()
            if self.elements[self.serials[k]] != symbol:
                raise FormatError(
                    f"its remarks say that the atom {self.serials[k]} ({self.elements[self.serials[k]]}) is {symbol}"
                )
        hydrogens = [
            (parent, np.array(self.positions[serial]))
            for serial, parent in self.parents.items()
            if serial in self.positions
        ]
        return completed(found, np.array([self.positions[self.serials[k]] for k in heavy]), hydrogens)

    def _by_template(self, template: Mol) -> Mol:
        heavy = [serial for serial, symbol in self.elements.items() if symbol != "H"]
        light = [serial for serial, symbol in self.elements.items() if symbol == "H"]
        places = np.array([self.positions[serial] for serial in heavy]).reshape(-1, 3)
        order, why = match(graph_of(template), [self.elements[serial] for serial in heavy], places)
        if order is None:
            raise InputError(f"is not the molecule of the template: {why}")
        back = np.argsort(order)
        hydrogens: Floats = np.array([self.positions[serial] for serial in light]).reshape(-1, 3)
        known = [
            (int(back[parent]), place) for parent, place in zip(parents_of(places, hydrogens), hydrogens, strict=True)
        ]
        return completed(template, places[order], known)


def poses(file: InputFile, is_dlg: bool) -> Iterator[Pose]:
    """Read the poses of a PDBQT or DLG file; remarks before the first pose, or of the input ligand, apply to all."""
    pose, shared, is_open, skipping = Pose(1), Pose(1), False, False
    for k, line in enumerate(plain_bytes(file).decode("utf-8", "replace").splitlines(), 1):
        if is_dlg:
            if line.startswith("INPUT-LIGAND-PDBQT: REMARK"):
                _take_remark(shared, line.removeprefix("INPUT-LIGAND-PDBQT: "))
                continue
            if not line.startswith(_PREFIX):
                continue
            line = line.removeprefix(_PREFIX)
        word = line[:6].strip()
        if word == "MODEL":
            pose, is_open = Pose(k), True
        elif word == "BEGIN_" or line.startswith("BEGIN_RES"):
            skipping = True
        elif word == "END_RE" or line.startswith("END_RES"):
            skipping = False
        elif word == "ENDMDL":
            yield _completed(pose, shared)
            pose, is_open = Pose(k + 1), False
        elif word in ("ATOM", "HETATM") and not skipping:
            _take_atom(pose, line, k)
        elif word in ("REMARK", "USER"):
            _take_remark(pose, line)
    if pose.positions and not is_open:
        yield _completed(pose, shared)


def _completed(pose: Pose, shared: Pose) -> Pose:
    """Add the data of shared remarks to a pose."""
    if not pose.smiles:
        pose.smiles, pose.serials, pose.parents = shared.smiles, shared.serials, shared.parents
    pose.name = pose.name or shared.name
    return pose


def _take_remark(pose: Pose, line: str) -> None:
    text = line.strip()
    for pattern in _SCORES:
        if found := pattern.match(text):
            pose.score = pose.score or found[1]
    words = text.split()
    if words[:3] == ["REMARK", "SMILES", "IDX"]:
        for index, serial in _pairs(words[3:]):
            pose.serials[index - 1] = serial
    elif words[:2] == ["REMARK", "SMILES"] and len(words) == 3:
        pose.smiles = words[2]
    elif words[:3] == ["REMARK", "H", "PARENT"]:
        for index, serial in _pairs(words[3:]):
            pose.parents[serial] = index - 1
    elif words[:3] == ["REMARK", "Name", "="]:
        pose.name = " ".join(words[3:])


def _pairs(words: list[str]) -> list[tuple[int, int]]:
    """Parse pairs of integers; other words are ignored."""
    values = [int(word) for word in words if word.isdecimal()]
    return list(zip(values[::2], values[1::2], strict=False))


def _take_atom(pose: Pose, line: str, k: int) -> None:
    kind = line[76:].strip() or line.split()[-1]
    if _NO_ATOM.fullmatch(kind):
        return
    symbol = "C" if _CLOSURE.fullmatch(kind) else _ELEMENTS.get(kind.upper(), kind.capitalize())
    values = [number(line[c : c + 8]) for c in (30, 38, 46)]
    serial = line[6:11].strip()
    if None in values or not serial.isdecimal():
        pose.fault = pose.fault or f"its line {k} is not an atom of a PDBQT file"
        return
    pose.elements[int(serial)] = symbol
    pose.positions[int(serial)] = [float(value) for value in values if value is not None]
