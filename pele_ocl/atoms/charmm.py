"""Radii for Poisson-Boltzmann calculations with CHARMM force fields, by residue and atom, as in gmx_MMPBSA.

Proteins: Nina, Beglov and Roux, J. Phys. Chem. B 101, 5239 (1997), with the later values for GLU, ASP and HSP. Nucleic
acids: Banavali and Roux, J. Phys. Chem. B 106, 11026 (2002). All others: Fortuna and Costa (doi
10.1021/acs.jcim.1c00177), by the first four letters of the CGenFF types, because AMBER topologies truncate types.
Hydrogens have a radius of 0.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from ..common.errors import ParameterError
from .atoms import Atoms
from .labels import Floats

# Residues, atoms, radius in A. Later rows override earlier ones.
_PROTEINS = """
ALA ARG ASN ASP ASPP CYS GLN GLU GLUP GLY HSD HSE HSP ILE LEU LYS LSN MET PHE PRO SER SERD THR TRP TYR VAL ALAD CYM CYSD
"""
_OF_PROTEINS = """
* | CAY CAT | 2.06
* | CY C | 2.04
* | OY O | 1.52
* | NT N | 2.23
* | OT* | 1.40
* | CA | 2.86
GLY | CA | 2.38
* | CB2 | 2.38
* | CB | 2.67
ARG GLN ILE LYS MET PHE THR TRP VAL HSP HSD HSE LEU | CG* | 2.46
GLU | CG | 2.77
ARG ILE LEU LYS | CD* | 2.44
GLU GLN | CD | 1.98
ASP ASN | CG | 1.98
PRO | CB CG CD | 1.98
TYR PHE | CE* CD* CG* CZ | 2.00
TRP | CE* CD* CZ* CH2 | 1.78
MET | CE | 2.10
ARG LYS | CE CZ | 2.80
HSD HSE HSP | CE1 CD2 | 1.98
GLU ASP | OE* OD* | 1.40
ASN GLN | OE* OD* | 1.42
SER THR | OG* | 1.64
TYR | OH | 1.85
HSD HSE | NE2 ND1 | 1.80
HSP | NE2 ND1 | 2.30
ARG LYS | NH* NE NZ | 2.13
GLN ASN | NE2 ND2 | 2.15
TRP | NE1 | 2.40
MET CYS | S* | 2.00
"""
_NUCLEIC = "ADE GUA CYT THY URA ATP ADP"
_OF_NUCLEIC = """
ADE | N1 | 1.75
ADE | N6 | 2.17
GUA | N1 | 2.15
GUA | O6 | 1.55
GUA | N2 | 2.12
GUA ADE | C2 | 2.15
GUA ADE | N3 N7 | 1.69
GUA ADE | C4 C5 C6 C8 | 2.12
GUA ADE | N9 | 2.13
GUA ADE | C9 | 2.30
CYT THY URA | N1 | 2.20
CYT THY URA | C2 | 2.04
CYT THY URA | C4 | 2.12
CYT THY URA | C5 C6 | 2.25
CYT THY URA | O2 | 1.60
CYT THY URA | C1 | 2.30
CYT | N3 | 1.68
CYT | N4 | 2.08
THY URA | N3 | 2.20
THY URA | O4 | 1.60
THY | C5M | 2.30
* | C1' C5' | 2.57
* | C2' | 2.70
* | C3' | 2.73
* | C4' | 2.50
* | O4' | 1.55
* | O2' | 1.75
* | O3' O5' | 1.65
ADE GUA CYT THY URA | O5T O3T | 1.65
ADE GUA CYT THY URA | C5T C3T | 2.30
ADE GUA CYT THY URA | P3 P | 2.35
ADE GUA CYT THY URA | O1P3 O2P3 O1P O2P | 1.49
* | PA PB PG | 2.35
ATP | O3A O3B | 1.65
ADP | O3A | 1.65
ADP | O3B | 1.49
* | O1A O2A O1B O2B O1G O2G O3G | 1.49
"""
_AT_AN_END = 1.72  # radius of O3' and O5' with a terminal hydrogen, A
_LAST_HYDROGENS = ("H3T", "H5T", "HO3'", "HO5'")
_NAMES = {"OXT": "OT2", "OP1": "O1P", "OP2": "O2P", "C7": "C5M"}  # PDB names that readers may use
# First letters of the names of other atoms, their types, radius in A. The first matching row is used. Chlorine gets the
# radius of carbon because its name begins with C, as in gmx_MMPBSA.
_OF_OTHERS = """
H | * | 0
C | CG1N CG2D CG2O CG2R CG30 CG31 CG32 CG33 CG3C CG3R | 2.46
C | * | 2.30
O | OG2D OG2N OG30 OG31 OG3R | 1.64
O | OG2P | 1.49
O | * | 1.80
N | NG2S | 2.23
N | * | 2.30
S | * | 2.30
P | * | 2.35
BR | * | 1.98
I | * | 2.24
* | * | 2.00
"""


def charmm_radii(atoms: Atoms) -> Floats:
    """Return the radii (n,) A of atoms with CHARMM names. Raises ParameterError for atoms without a radius."""
    labels = atoms.labels
    if labels is None or atoms.types is None:
        raise ParameterError("the radii of CHARMM's force fields need names and types, which these atoms do not have")
    types = [name[:4] for name in atoms.types.tolist()]
    names = np.array([_NAMES.get(name, name) for name in labels.names.tolist()])
    at_an_end = np.isin(labels.residue_index, labels.residue_index[names == "OT2"])
    names[at_an_end & (names == "O")] = "OT1"
    keys = list(zip(labels.residue_names.tolist(), names.tolist(), types, strict=True))
    known = {key: _radius(*key) for key in set(keys)}
    found = np.array([known[key] for key in keys])
    if np.isnan(found).any():
        k = int(np.isnan(found).argmax())
        raise ParameterError(f"{labels.atom(k)} has no radius in CHARMM's force fields; use another set")
    found[_ends(atoms)] = _AT_AN_END
    return found


def _radius(residue: str, name: str, type_: str) -> float:
    """Look up the radius of an atom, A; NaN if there is none for this atom of the residue."""
    for residues, table in ((_PROTEINS, _OF_PROTEINS), (_NUCLEIC, _OF_NUCLEIC)):
        if residue in residues.split():
            if name.startswith("H"):
                return 0.0
            fitting = [radius for whose, which, radius in _rows(table) if _fits(residue, whose) and _fits(name, which)]
            return fitting[-1] if fitting else np.nan
    rows = ((begin, of, radius) for begin, of, radius in _rows(_OF_OTHERS) if _fits(type_, of))
    return next(radius for begin, _, radius in rows if begin == "*" or name.startswith(begin))


def _rows(table: str) -> list[tuple[str, str, float]]:
    rows = [line.split(" | ") for line in table.strip().splitlines()]
    return [(first, second, float(radius)) for first, second, radius in rows]


def _fits(name: str, patterns: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns.split())


def _ends(atoms: Atoms) -> NDArray[np.bool_]:
    """Return a mask (n,) of O3' and O5' in nucleic acids that are bonded to a terminal hydrogen."""
    labels, found = atoms.labels, np.zeros(len(atoms), np.bool_)
    assert labels is not None
    oxygen = np.isin(labels.names, ("O3'", "O5'")) & np.isin(labels.residue_names, _NUCLEIC.split())
    hydrogen = np.isin(labels.names, _LAST_HYDROGENS)
    for i, j in (atoms.bond_pairs.T, atoms.bond_pairs.T[::-1]):
        found[i[oxygen[i] & hydrogen[j]]] = True
    return found
