"""Elements from names and columns, kinds of residues."""

from __future__ import annotations

import numpy as np
import pytest

from pele_ocl.atoms import element_rule, hct_scale
from pele_ocl.atoms.chemistry import FAMILIES, aligned_name, element, is_polymer, is_water
from pele_ocl.forcefield import residue_names
from pele_ocl.formats import read_pqr


@pytest.mark.parametrize(
    ("name", "residue", "column", "expected"),
    [
        (" CA ", "ALA", "", "C"),
        ("CA  ", "CA", "", "Ca"),
        ("CA  ", "ALA", "", "C"),
        ("CA  ", "ALA", "CA", "C"),
        (" N  ", "ALA", "C", "N"),
        (" NZ ", "LYS", " N1+", "N"),
        (" OD1", "ASP", "O1-", "O"),
        ("HG11", "VAL", "", "H"),
        ("1HB ", "ALA", "", "H"),
        (" HG ", "SER", "HG", "H"),
        (" D  ", "ALA", "", "D"),
        ("SE  ", "MSE", "", "Se"),
        (" O5'", "DA", "", "O"),
        ("H5''", "DA5", "", "H"),
        (" OH2", "TIP3", "", "O"),
        (" MW ", "TIP4", "", "X"),
        ("NA  ", "NA+", "", "Na"),
        (" CL ", "CL-", "", "Cl"),
        (" SOD", "SOD", "", "Na"),
        ("CLA ", "CLA", "", "Cl"),
        (" K  ", "K", "", "K"),
        ("ZN  ", "ZN", "", "Zn"),
        ("CL1 ", "LIG", "", "Cl"),
        ("CL1 ", "LIG", " CL", "Cl"),
        ("BR12", "LIG", "", "Br"),
        (" C12", "LIG", "", "C"),
        ("C12A", "LIG", "", "C"),
        ("CA12", "LIG", "", "C"),
        ("CD1 ", "LIG", "", "Cd"),
        (" CD1", "LIG", "", "C"),
        ("HG  ", "LIG", "", "H"),
        ("FE  ", "HEM", "", "Fe"),
        (" NA ", "HEM", "", "N"),
        ("C1  ", "UNK", "cl", "Cl"),
        (" N1 ", "LIG", "n ", "N"),
        (" C1 ", "LIG", "Qq", "C"),
        ("CL1", "LIG", "", "Cl"),
        ("NA", "LIG", "", "N"),
        (" X1 ", "LIG", "", "X"),
        ("CA  ", "PTR", "", "C"),
    ],
)
def test_element(name: str, residue: str, column: str, expected: str) -> None:
    assert element(name, residue, column) == expected


def test_kinds() -> None:
    assert all(map(is_polymer, ("ALA", "HID", "HIP", "CYX", "NALA", "CGLN", "MSE", "ACE", "NMA", "DA", "U", "RA5")))
    assert not any(map(is_polymer, ("LIG", "UNK", "HOH", "CA", "HEM", "")))
    assert all(map(is_water, ("HOH", "WAT", "TIP3", "SOL")))
    assert not is_water("ALA")


def test_aligned_name() -> None:
    assert [aligned_name("CA", "C"), aligned_name("CA", "Ca"), aligned_name("HG11", "H")] == [" CA ", "CA  ", "HG11"]


@pytest.mark.parametrize(("symbol", "scale"), [("D", 0.85), ("Fe", 0.88), ("Zn", 0.80)])
def test_overlap_scales_are_the_same_for_pqr_files_and_the_element_rule(symbol, scale, tmp_path):
    file = tmp_path / "p.pqr"
    file.write_text(f"HETATM 1 {symbol.upper()} {symbol.upper()} 1 0.0 0.0 0.0 0.5 1.5 {symbol}\n")
    assert read_pqr(file).gb_scales.tolist() == [scale]
    assert element_rule([symbol], np.empty((0, 2), np.int32))[1].tolist() == [scale]
    assert hct_scale(symbol) == scale


def test_a_water_is_a_water_in_every_dialect():
    (waters,) = (family for family in FAMILIES if "HOH" in family)
    assert all(map(is_water, waters))
    assert set(waters) <= set(residue_names("HOH"))
