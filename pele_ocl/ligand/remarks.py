"""REMARK records of PDB files that define the molecule of a residue, so that no other file is needed to read it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..common.inputfile import InputFile
from ..common.textfiles import plain_bytes

_HEAD = "REMARK   6 LIGAND"
_LONGEST = 80  # characters of a line
_LINE = re.compile(rf"{_HEAD} (\w{{1,5}}) (\w+) (\w+) (\S+)\s*")


@dataclass(frozen=True)
class LigandRemark:
    """Molecule of a residue. residue : residue name; forcefield, charges : as in Ligand.parametrize; smiles : SMILES"""

    residue: str
    forcefield: str
    charges: str
    smiles: str

    def lines(self) -> list[str]:
        """Return the lines for a PDB file; empty if they could not be read back, e.g. for parameters from a file."""
        head = f"{_HEAD} {self.residue} {self.forcefield} {self.charges} "
        width = max(1, _LONGEST - len(head))
        found = [f"{head}{self.smiles[k : k + width]}" for k in range(0, len(self.smiles), width)]
        return found if all(_LINE.fullmatch(line) and len(line) <= _LONGEST for line in found) else []


def remarks_in(file: InputFile) -> list[LigandRemark]:
    """Read the remarks of a PDB file, one per molecule."""
    found = dict[tuple[str, str, str], str]()
    data = plain_bytes(file)
    for line in data.decode("latin-1").splitlines() if _HEAD.encode() in data else ():
        if match := _LINE.fullmatch(line):
            key = match[1], match[2], match[3]
            found[key] = found.get(key, "") + match[4]
    return [LigandRemark(*key, smiles) for key, smiles in found.items()]
