"""Convert AMBER's phosaa14SB for phosphorylated residues to an OpenMM XML file that extends ff14SB.

Library and parameters are read from the AmberTools installation; they are not part of this package.
"""

from __future__ import annotations

import re
from math import pi
from pathlib import Path

from ..common.errors import FormatError

_KCAL = 4.184  # kJ
_NAMES = ("SEP", "TPO", "PTR", "S1P", "T1P", "Y1P")
# Atom types that phosaa14SB adds, with their elements; all others are those of ff14SB.
_OWN = {"OP": "O", "OQ": "O", "OR": "O", "OT": "O", "OV": "O", "OX": "O", "OZ": "O", "CG": "C", "P": "P"}
_MASSES = {"O": 16.0, "C": 12.01, "P": 30.97}  # Da
_PHOSPHORUS = 2.1, 0.2  # radius (A) and well depth (kcal/mol) from parm10.dat


def xml_of(folder: Path) -> str:
    """Return the text of the XML file. folder : AmberTools' folder dat/leap

    Raises OSError if a file cannot be read, FormatError for an invalid line of parameters.
    """
    library = (folder / "lib" / "phosaa14SB.lib").read_text()
    of = _sections(folder / "parm" / "frcmod.phosaa14SB")
    lines = ["<ForceField>", "  <AtomTypes>"]
    lines += [
        f'    <Type class="{name}" element="{symbol}" mass="{_MASSES[symbol]}" name="{_typed(name)}"/>'
        for name, symbol in _OWN.items()
    ]
    lines += ["  </AtomTypes>", "  <Residues>"]
    for name in _NAMES:
        if f"!entry.{name}.unit.atoms table" in library:
            lines += _residue(library, name)
    lines += ["  </Residues>", "  <HarmonicBondForce>"]
    for line in of["BOND"]:
        types, (k, length, *_) = _split(line, 2)
        names = " ".join(f'type{n}="{_typed(each)}"' for n, each in enumerate(types, 1))
        lines.append(f'    <Bond k="{2 * float(k) * _KCAL * 100}" length="{float(length) / 10}" {names}/>')
    lines += ["  </HarmonicBondForce>", "  <HarmonicAngleForce>"]
    for line in of["ANGL"]:
        types, (k, angle, *_) = _split(line, 3)
        names = " ".join(f'type{n}="{_typed(each)}"' for n, each in enumerate(types, 1))
        lines.append(f'    <Angle k="{2 * float(k) * _KCAL}" angle="{float(angle) * pi / 180}" {names}/>')
    lines += ["  </HarmonicAngleForce>", '  <PeriodicTorsionForce ordering="amber">']
    torsions: dict[tuple[str, ...], list[tuple[float, float, int]]] = {}
    for line in of["DIHE"]:
        types, (divider, k, phase, period, *_) = _split(line, 4)
        torsions.setdefault(tuple(types), []).append(
            (float(k) / float(divider), float(phase) * pi / 180, abs(int(float(period))))
        )
    for key, parts in torsions.items():
        names = " ".join(f'type{n}="{_typed(each)}"' for n, each in enumerate(key, 1))
        values = " ".join(
            f'k{n}="{k * _KCAL}" phase{n}="{phase}" periodicity{n}="{period}"'
            for n, (k, phase, period) in enumerate(parts, 1)
        )
        lines.append(f"    <Proper {names} {values}/>")
    lines += [
        "  </PeriodicTorsionForce>", '  <NonbondedForce coulomb14scale="0.8333333333333334" lj14scale="0.5">',
        '    <UseAttributeFromResidue name="charge"/>',
    ]  # fmt: skip
    sizes = {words[0]: (float(words[1]), float(words[2])) for words in map(str.split, of["NONB"])} | {"P": _PHOSPHORUS}
    for name in _OWN:
        radius, depth = sizes[name]
        lines.append(
            f'    <Atom epsilon="{depth * _KCAL}" sigma="{2 * radius / 2 ** (1 / 6) / 10}" type="{_typed(name)}"/>'
        )
    return "\n".join([*lines, "  </NonbondedForce>", "</ForceField>", ""])


def _typed(name: str) -> str:
    """Return the name of an atom type in OpenMM's ff14SB file, or in this file."""
    return f"phosaa-{name}" if name in _OWN else f"protein-{name}"


def _sections(path: Path) -> dict[str, list[str]]:
    """Return the lines of a frcmod file by section, without the title."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in path.read_text().splitlines()[1:]:
        word = line.strip()
        if word in ("MASS", "BOND", "ANGL", "DIHE", "IMPR", "NONB"):
            name = word
        elif word and name:
            found.setdefault(name, []).append(line)
    return found


def _split(line: str, n: int) -> tuple[list[str], list[str]]:
    """Split a line of parameters into its n atom types and the words after them. Raises FormatError."""
    match = re.match(r"\s*" + r"\s*-\s*".join([r"([A-Z0-9*]{1,2})"] * n) + r"\s+(.*)", line)
    if match is None:
        raise FormatError(f"{line.strip()!r}: is not a line of parameters")
    return list(match.groups()[:n]), match.group(n + 1).split()


def _residue(library: str, name: str) -> list[str]:
    """Convert a residue of an OFF library to an XML template."""
    part = library[library.index(f"!entry.{name}.unit.atoms table") :]
    end = part.find("!entry.", 10)
    atoms = [line.split() for line in part[:end].splitlines()[1:]]
    atoms = [[word.strip('"') for word in words] for words in atoms]
    bonds = part[part.index(f"!entry.{name}.unit.connectivity") :]
    pairs = [line.split()[:2] for line in bonds[: bonds.find("!entry.", 10)].splitlines()[1:]]
    lines = [f'    <Residue name="{name}">']
    lines += [f'      <Atom charge="{of[-1]}" name="{of[0]}" type="{_typed(of[1])}"/>' for of in atoms]
    lines += [f'      <Bond atomName1="{atoms[int(i) - 1][0]}" atomName2="{atoms[int(j) - 1][0]}"/>' for i, j in pairs]
    return [*lines, '      <ExternalBond atomName="N"/>', '      <ExternalBond atomName="C"/>', "    </Residue>"]
