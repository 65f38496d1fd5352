"""Internal dielectric constants of VDGBNP, residue by residue as PELE's manual lists them."""

from __future__ import annotations

import numpy as np
import pytest
from forcefield_helpers import arrays_of, chain, structure_from

from pele_ocl import Atoms, InputError
from pele_ocl.pairs import internal_dielectrics

BACKBONE = "N H CA HA C O "
ARGININE = BACKBONE + "CB HB2 HB3 CG HG2 HG3 CD HD2 HD3 NE HE CZ NH1 HH11 HH12 NH2 HH21 HH22"
LYSINE = BACKBONE + "CB HB2 HB3 CG HG2 HG3 CD HD2 HD3 CE HE2 HE3 NZ HZ1 HZ2"
RING = BACKBONE + "CB HB2 HB3 CG ND1 CD2 HD2 CE1 HE1 NE2"
ASPARTATE = BACKBONE + "CB HB2 HB3 CG OD1 OD2"
GLUTAMATE = BACKBONE + "CB HB2 HB3 CG HG2 HG3 CD OE1 OE2"


def not_one(residue, names) -> dict[str, float]:
    """Find the atoms of a residue within a chain that have another constant than 1."""
    structure = chain([(residue, names)])
    atoms = Atoms(structure.positions, np.zeros(len(structure.labels)), labels=structure.labels)
    values = internal_dielectrics(atoms)
    return {name: float(v) for name, v in zip(names.split(), values, strict=True) if v != 1}


def all_of(names, value) -> dict[str, float]:
    return dict.fromkeys(names.split(), value)


@pytest.mark.parametrize(
    ("residue", "names", "expected"),
    [
        ("ALA", BACKBONE + "CB HB1 HB2 HB3", {}),
        ("LYS", LYSINE + " HZ3", all_of("NZ HZ1 HZ2 HZ3", 4)),
        ("LYN", LYSINE, {}),
        ("LYS", LYSINE, {}),
        ("ARG", ARGININE, all_of("NE HE CZ NH1 HH11 HH12 NH2 HH21 HH22", 2)),
        ("ARG", ARGININE.replace(" HH22", ""), {}),
        ("HID", RING + " HD1", all_of("CG ND1 HD1 CD2 HD2 CE1 HE1 NE2", 2)),
        ("HIE", RING + " HE2", all_of("CG ND1 CD2 HD2 CE1 HE1 NE2 HE2", 2)),
        ("HIS", RING + " HE2", all_of("CG ND1 CD2 HD2 CE1 HE1 NE2 HE2", 2)),
        ("HIS", RING + " HD1 HE2", all_of("CG ND1 HD1 CD2 HD2 CE1 HE1 NE2 HE2", 3)),
        ("HSP", RING + " HD1 HE2", all_of("CG ND1 HD1 CD2 HD2 CE1 HE1 NE2 HE2", 3)),
        ("ASP", ASPARTATE, all_of("CG OD1 OD2", 4)),
        ("ASP", ASPARTATE + " HD2", {}),
        ("ASH", ASPARTATE + " HD2", {}),
        ("GLU", GLUTAMATE, all_of("CD OE1 OE2", 3)),
        ("GLH", GLUTAMATE + " HE2", {}),
        ("HOH", "O H1 H2", {}),
        ("LIG", "N C1 C2 OD1 OD2 CG NZ", {}),
        ("NHE", "N HN1 HN2", {}),
        ("CA", "CA", {}),
    ],
)
def test_residues_within_a_chain(residue, names, expected):
    assert not_one(residue, names) == expected


@pytest.mark.parametrize("names", ["N H1 H2 H3 CA HA C O", "N 1H 2H 3H CA HA C O", "N HT1 HT2 HT3 CA HA C O"])
def test_first_residues(names):
    assert not_one("ALA", names) == all_of(" ".join(names.split()[:4]), 4)


def test_first_residue_proline():
    assert not_one("PRO", "N H2 H3 CD HD2 HD3 CG CB CA HA C O") == all_of("N H2 H3", 4)


def test_last_residues():
    assert not_one("ASP", ASPARTATE + " OXT") == all_of("CG OD1 OD2", 4)


def test_old_names_of_hydrogens():
    old = LYSINE.replace("HZ1 HZ2", "1HZ 2HZ 3HZ")
    assert not_one("LYS", old) == all_of("NZ 1HZ 2HZ 3HZ", 4)


def test_the_hexapeptide():
    """MKEFGD with charged ends: N and 3 H; NZ and 3 H; GLU CD OE1 OE2; ASP CG OD1 OD2."""
    arrays = arrays_of("hexapeptide")
    labels = structure_from(arrays).labels
    values = internal_dielectrics(Atoms(arrays["coordinates"], arrays["charge"], labels=labels))
    assert {v: int(np.count_nonzero(values == v)) for v in np.unique(values)} == {1.0: 82, 3.0: 3, 4.0: 11}


def test_labels_are_needed():
    with pytest.raises(InputError, match="VDGBNP need residue and atom names, which these atoms do not have"):
        internal_dielectrics(Atoms(np.zeros((1, 3)), [0.0]))
