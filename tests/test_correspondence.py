"""One set of labels laid over another."""

from __future__ import annotations

import numpy as np
import pytest

from pele_ocl.atoms import Labels, correspondence
from pele_ocl.common.errors import InputError

ALA = ["N", "H", "CA", "HA", "CB", "HB1", "HB2", "HB3", "C", "O"]
SER = ["N", "H", "CA", "HA", "CB", "HB2", "HB3", "OG", "HG", "C", "O"]


def labels(*residues):
    """Labels of residues (chain, name, number, atom names); elements are unknown."""
    rows = [(chain, name, number, atom, k) for k, (chain, name, number, atoms) in enumerate(residues) for atom in atoms]
    chains, names, numbers, atoms, index = zip(*rows, strict=True)
    return Labels(atoms, ["X"] * len(rows), names, numbers, [""] * len(rows), chains, index)


def taken(of, order):
    """Labels in another order, as a reader would give them: each run of one residue is a residue."""
    columns = [getattr(of, name)[order] for name in ("chains", "residue_names", "residue_numbers")]
    changes = np.concatenate([[0], np.cumsum(np.any([c[1:] != c[:-1] for c in columns], axis=0))])
    return Labels(of.names[order], of.elements[order], columns[1], columns[2], of.insertion_codes[order], columns[0],
                  changes)  # fmt: skip


def elements(of, symbols):
    return Labels(of.names, symbols, of.residue_names, of.residue_numbers, of.insertion_codes, of.chains,
                  of.residue_index)  # fmt: skip


DIMER = labels(*((chain, name, number, atoms) for chain in "AB"
                 for number, (name, atoms) in enumerate((("ALA", ALA), ("SER", SER)), 1)))  # fmt: skip


def order_of(reference, given):
    return correspondence(reference, given, "b.pdb", "a.pdb").order.tolist()


def test_equal_labels_keep_their_order():
    found = correspondence(DIMER, DIMER, "b.pdb")
    assert found.is_identity
    assert found.notes == ()


@pytest.mark.parametrize("seed", range(5))
def test_any_order_is_found(seed):
    order = np.random.default_rng(seed).permutation(len(DIMER))
    found = correspondence(DIMER, taken(DIMER, order), "b.pdb", "a.pdb")
    assert (order[found.order] == np.arange(len(DIMER))).all()
    assert len(found.notes) == 1
    assert "b.pdb: " in found.notes[0]
    assert "(A:ALA1:N)" in found.notes[0]


def test_chains_in_another_order():
    n = len(DIMER) // 2
    assert order_of(DIMER, taken(DIMER, np.roll(np.arange(2 * n), n))) == [*range(n, 2 * n), *range(n)]


@pytest.mark.parametrize(
    ("name", "atoms", "other", "others", "places"),
    [
        ("HIE", ["ND1", "NE2"], "HSE", ["NE2", "ND1"], [1, 0]),
        ("ALA", ALA, "NALA", ["1HB", "2HB", "3HB", "N", "HN", "CA", "HA", "CB", "C", "O"],
         [3, 4, 5, 6, 7, 0, 1, 2, 8, 9]),
        ("SER", SER, "SER", ["N", "H", "CA", "HA", "CB", "HB1", "HB2", "OG", "HG", "C", "O"],
         [0, 1, 2, 3, 4, 6, 5, 7, 8, 9, 10]),
        ("ALA", [*ALA, "OXT"], "CALA", [*ALA[:-1], "OT2", "OT1"], [*range(9), 10, 9]),
        ("ILE", ["N", "CA", "C", "CB", "CG1", "CG2", "CD1"], "ILE", ["N", "CA", "C", "CB", "CG1", "CG2", "CD"],
         list(range(7))),
        ("WAT", ["O", "H1", "H2"], "SOL", ["OW", "HW1", "HW2"], [0, 1, 2]),
        ("WAT", ["O", "H1", "H2", "EPW"], "SOL", ["HW2", "HW1", "OW", "MW"], [2, 1, 0, 3]),
        ("DA5", ["C1'", "C4'", "O5'", "N9"], "A", ["C4*", "C1*", "O5*", "N9"], [1, 0, 2, 3]),
        ("Na+", ["Na+"], "SOD", ["SOD"], [0]),
        ("LIG", ["C1", "O1"], "MOL", ["O1", "C1"], [1, 0]),
        ("LIG", ["C1", "Cl1"], "UNL", ["CL1", "C1"], [1, 0]),
        ("LIG", ["H51", "O2*"], "LIG", ["O2'", "1H5"], [1, 0]),
        ("CHL1", ["C10A1", "C10B1"], "CHL", ["C10B", "C10A"], [1, 0]),
        ("LIG", ["C", "C", "H"], "LIG", ["C", "C", "H"], [0, 1, 2]),
    ],
)  # fmt: skip
def test_spellings_of_other_programs(name, atoms, other, others, places):
    assert order_of(labels(("A", name, 1, atoms)), labels(("A", other, 1, others))) == places


@pytest.mark.parametrize("chains", [("", ""), ("P", "Q")])
def test_topologies_number_residues_otherwise(chains):
    """Without chains, or with others, the order of residues decides; a file of renumbered residues may be shuffled."""
    reference = labels(("", "ALA", 1, ALA), ("", "SER", 2, SER), ("", "WAT", 3, ["O"]), ("", "WAT", 4, ["O"]))
    first, second = chains
    given = labels((first, "ALA", 16, ALA[::-1]), (first, "SER", 17, SER), (second, "HOH", 5, ["O"]),
                   (second, "HOH", 3, ["O"]))  # fmt: skip
    assert order_of(reference, given) == [*reversed(range(10)), *range(10, 23)]


def test_numbers_decide_where_chains_are_lacking():
    reference = labels(("A", "ALA", 1, ALA), ("B", "ALA", 11, ALA), ("B", "SER", 12, SER))
    given = labels(("", "ALA", 11, ALA), ("", "SER", 12, SER), ("", "ALA", 1, ALA))
    assert order_of(reference, given) == [*range(21, 31), *range(21)]


@pytest.mark.parametrize(("own", "other"), [("AAA", "ABA"), ("ABA", "AAA"), ("ABC", "ABW"), ("ABB", "ABW")])
def test_ligands_and_water_in_chains_of_their_own(own, other):
    parts = [("ALA", 1, ALA), ("LIG", 2, ["C1", "O1"]), ("HOH", 3, ["O"])]
    reference, given = (labels(*((chain, *part) for chain, part in zip(of, parts, strict=True))) for of in (own, other))
    assert order_of(reference, given) == list(range(13))


def test_insertion_codes_that_one_side_lacks():
    own = labels(("A", "ALA", 5, ALA), ("A", "SER", 5, SER), ("A", "ALA", 6, ALA))
    codes = np.repeat(["", "A", ""], [10, 11, 10])
    coded = Labels(own.names, own.elements, own.residue_names, own.residue_numbers, codes, own.chains,
                   own.residue_index)  # fmt: skip
    found = correspondence(coded, own, "b.h5", "a.pdb")
    assert found.is_identity
    assert found.notes == ()
    assert order_of(coded, taken(coded, np.arange(31)[::-1])) == list(range(31))[::-1]


def test_other_numbers_of_residues_are_a_note():
    found = correspondence(labels(("A", "ALA", 1, ALA)), labels(("Z", "ALA", 101, ALA)), "b.pdb", "a.pdb")
    assert found.is_identity
    assert "(Z:ALA101:N)" in found.notes[0]
    assert "(A:ALA1:N)" in found.notes[0]


@pytest.mark.parametrize(
    ("reference", "given", "message"),
    [
        (DIMER, taken(DIMER, np.delete(np.arange(42), 5)),
         r"b.pdb: has 41 atoms where a.pdb has 42, and lacks its atom 5 \(A:ALA1:HB1\);"),
        (DIMER, taken(DIMER, np.arange(10)), r"has 10 atoms where a.pdb has 42, and lacks its atom 10 \(A:SER2:N\);"),
        (taken(DIMER, np.arange(1, 42)), DIMER, r"has 42 atoms where a.pdb has 41 without atom 0 \(A:ALA1:N\);"),
        (taken(DIMER, np.arange(21)), DIMER, r"without atom 21 \(B:ALA1:N\);"),
        (labels(("A", "LIG", 1, ["C1", "C2"])), labels(("A", "LIG", 1, ["C1", "C3"])),
         r"b.pdb: has atom 1 \(A:LIG1:C3\) where a.pdb has atom 1 \(A:LIG1:C2\)"),
        (labels(("A", "ALA", 1, ALA[:5])), labels(("A", "SER", 1, ALA[:5])),
         r"has atom 0 \(A:SER1:N\) where a.pdb has atom 0 \(A:ALA1:N\)"),
        (labels(("", "HIE", 1, ["ND1", "HE2"])), labels(("", "HID", 1, ["ND1", "HD1"])),
         r"has atom 1 \(HID1:HD1\) where a.pdb has atom 1 \(HIE1:HE2\)"),
        (labels(("I", "NA", 1, ["NA"])), labels(("I", "CL", 1, ["CL"])), r"\(I:CL1:CL\) where a.pdb has atom 0"),
        (labels(("A", "ALA", 1, ["CA"])), labels(("A", "ALA", 1, ["N"])), r"\(A:ALA1:N\) where"),
        # A dimer whose chains are in another order, one of them under a name that the other side gives another chain.
        (DIMER, labels(*(("BC"[k > 1], name, number, atoms) for k, (name, number, atoms) in
                         enumerate([("ALA", 1, ALA), ("SER", 2, SER)] * 2))),
         r"\(B:ALA1:N\) where a.pdb has atom 0 \(A:ALA1:N\); give chains"),
        # By number one way, by order another.
        (labels(("", "ALA", 1, ALA), ("", "ALA", 2, ALA)), labels(("A", "ALA", 2, ALA), ("B", "ALA", 1, ALA)),
         "has the number of atom 0"),
        # Copies of one name and number in another order.
        (labels(("", "WAT", 1, ["O"]), ("", "WAT", 1, ["O"]), ("", "ALA", 1, ALA), ("", "ALA", 2, ALA)),
         labels(("", "ALA", 2, ALA), ("", "WAT", 1, ["O"]), ("", "WAT", 1, ["O"]), ("", "ALA", 1, ALA)),
         "several residues have the name and number"),
        (labels(("A", "LIG", 1, ["C", "C", "O"])), labels(("A", "LIG", 1, ["C", "O", "C"])), "need one order"),
    ],
)  # fmt: skip
def test_what_differs_is_named(reference, given, message):
    with pytest.raises(InputError, match=message):
        correspondence(reference, given, "b.pdb", "a.pdb")


def test_elements_agree():
    """Also of atoms that are matched by place; a guess from a name is no element."""
    pair = labels(("A", "LIG", 1, ["CL1", "O1"]))
    nameless = labels(("", "", 0, ["", ""]))
    with pytest.raises(InputError, match=r"atom 1 \(A:LIG1:O1\) is N, atom 1 \(A:LIG1:O1\) of a.pdb O"):
        correspondence(elements(pair, ["Cl", "O"]), elements(pair, ["Cl", "N"]), "b.pdb", "a.pdb")
    with pytest.raises(InputError, match="is O, atom 0"):
        correspondence(elements(pair, ["Cl", "O"]), elements(nameless, ["O", "Cl"]), "b.pdb", "a.pdb")
    assert correspondence(elements(pair, ["Cl", "O"]), elements(pair, ["C", "X"]), "b.pdb").is_identity
    assert correspondence(elements(pair, ["Cl", "O"]), elements(nameless, ["Cl", "O"]), "b.pdb").is_identity


def test_without_names_atoms_are_matched_by_place():
    assert order_of(DIMER, labels(("", "", 0, [""] * 42))) == list(range(42))
    symbols = ["O", "H", "H"]
    water = elements(labels(("", "WAT", 1, ["O", "H1", "H2"])), symbols)
    assert order_of(water, elements(labels(("", "", 1, symbols)), symbols)) == [0, 1, 2]
    assert correspondence(DIMER, None, "b.nc", n_atoms=(42, 42)).is_identity
    with pytest.raises(InputError, match=r"b.nc: has 41 atoms, the structure 42"):
        correspondence(DIMER, None, "b.nc", n_atoms=(42, 41))
