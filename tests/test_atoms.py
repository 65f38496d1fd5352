from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import pele_ocl
from pele_ocl import Atoms, InputError, Labels
from pele_ocl.atoms.close_pairs import close_pair


def labels(names):
    n = len(names)
    return Labels(names, ["C"] * n, ["ALA"] * n, np.arange(n) - 1, [""] * n, ["A"] * n, np.arange(n))


def make(**changes):
    values = {"positions": np.eye(3), "charges": [1, 2, 3], "gb_radii": [1.5] * 3, "gb_scales": [0.8] * 3}
    return Atoms(**(values | changes))


def test_arrays_are_copied_and_read_only():
    positions = np.eye(3)
    atoms = make(positions=positions)
    positions[0] = 9
    assert atoms.positions[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        atoms.positions[0] = 0
    assert atoms.charges.dtype == np.float64


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positions": np.zeros((3, 2))}, r"positions have shape \(3, 2\); expected \(n, 3\)"),
        ({"charges": [1, 2]}, r"charges has shape \(2,\); expected \(3,\), one value per atom"),
        ({"charges": [1, np.nan, 2]}, r"charges of atom 1 is nan; expected a finite number"),
        ({"positions": [[0, 0, 0], [1, np.inf, 0], [2, 0, 0]]}, r"positions of atom 1 is \[ 1. inf  0.\]"),
        ({"gb_radii": [1, -1, 1]}, r"gb_radii of atom 1 is -1; it cannot be negative"),
        ({"bonds": [[0, 3]]}, r"a bond names atom 3; the atoms are 0 to 2"),
        ({"bonds": [[-1, 0]]}, r"a bond names atom -1; the atoms are 0 to 2"),
        ({"bonds": [[0.5, 1]]}, r"bonds are not whole numbers"),
        ({"positions": [["a", 0, 0]]}, r"positions are not an array of numbers"),
        ({"positions": [[0, 0, 0], [1, 1]]}, r"positions are not an array of numbers"),
        ({"bonds": [[1, 1]]}, r"a bond joins atom 1 to itself"),
        ({"labels": labels(["CA"])}, r"1 labels for 3 atoms"),
        ({"combining": "harmonic"}, r"combining is 'harmonic'; choose"),
    ],
)
def test_bad_values_name_the_atom(changes, message):
    with pytest.raises(InputError, match=message):
        make(**changes)


def test_moved_atoms_keep_all_else():
    atoms = make(bonds=[[0, 1]], labels=labels(["N", "CA", "C"]), notes=["read"])
    there = np.eye(3) + 5
    moved = atoms.moved(there)
    there[0] = 9
    assert moved.positions[0, 0] == 6
    assert atoms.positions[0, 0] == 1
    assert not moved.positions.flags.writeable
    for name in (field.name for field in fields(Atoms) if field.name != "positions"):
        assert getattr(moved, name) is getattr(atoms, name)


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        (np.eye(2), r"positions have shape \(2, 2\); expected \(3, 3\)"),
        (np.zeros((4, 3)), r"positions have shape \(4, 3\); expected \(3, 3\)"),
        (np.diag([1, np.nan, 1]), "positions of atom 1"),
        ("here", "positions are not an array of numbers"),
    ],
)
def test_atoms_are_not_moved_to_bad_positions(positions, message):
    with pytest.raises(InputError, match=message):
        make().moved(positions)


def test_atoms_are_described_by_their_labels():
    assert make().describe(1) == "atom 1"
    assert make(labels=labels(["CA", "CB", "N"])).describe(1) == "atom 1 (A:ALA0:CB)"


def test_labels_of_unequal_length():
    with pytest.raises(InputError, match="different lengths"):
        Labels(["CA"], [], ["ALA"], [1], [""], ["A"], [0])


def test_missing_parameters_are_named():
    with pytest.raises(InputError, match="the sum needs gb_radii and lj_sigma, which these atoms do not have"):
        make(gb_radii=None).require(["gb_radii", "lj_sigma"], "the sum")


@pytest.mark.parametrize("gap", [0.0, 1e-6, 9e-5])
def test_coincident_atoms_are_named(gap):
    rng = np.random.default_rng(0)
    positions = rng.uniform(0, 50, (500, 3))
    positions[317] = positions[41] + np.array([0, 0, gap])
    atoms = Atoms(positions=positions, charges=np.zeros(500))
    with pytest.raises(InputError, match="atom 41 and atom 317 are at the same position"):
        atoms.require_apart()


def test_close_atoms_are_allowed():
    positions = np.array([[0, 0, 0], [0, 0, 2e-4], [1, -1, 0], [-1, 1, 0], [0, 1, -1.0]])
    Atoms(positions=positions, charges=np.zeros(5)).require_apart()


def test_many_atoms_in_one_plane_are_checked_quickly():
    across = np.linalg.svd(np.array([[2, 3, 6]]))[2][1:]  # a plane aslant to the axes
    grid = np.stack(np.meshgrid(np.arange(200.0), np.arange(200.0)), -1).reshape(-1, 2) @ across
    assert close_pair(grid, 1e-4) is None
    grid[777] = grid[33_333] + 5e-5
    assert sorted(close_pair(grid, 1e-4)) == [777, 33_333]


def test_a_close_pair_is_found_wherever_it_lies():
    rng = np.random.default_rng(7)
    for reach in (0.5, 3.0, 300.0, 1e6):
        for _ in range(50):
            points = rng.uniform(-reach, reach, (30, 3))
            apart = np.linalg.norm(points[:, None] - points, axis=-1) + 10 * np.eye(30)
            pair = close_pair(points, 0.5)
            assert (pair is not None) == (apart.min() < 0.5)
            assert pair is None or apart[pair] < 0.5
    assert sorted(close_pair(np.array([[1e308, 0, 0], [0, 0, 0], [1e308, 0, 0]]), 0.1)) == [0, 2]


@pytest.mark.parametrize(
    ("which", "indices"),
    [
        (slice(1, 4), [1, 2, 3]),
        (slice(None, None, -2), [4, 2, 0]),
        (np.array([True, False, True, True, False]), [0, 2, 3]),
        ([3, 0, -1], [3, 0, 4]),
        ([], []),
    ],
)
def test_some_of_the_atoms(which, indices):
    atoms = Atoms(
        positions=np.arange(15.0).reshape(5, 3),
        charges=np.arange(5.0),
        gb_radii=np.arange(5.0) + 1,
        labels=labels(["N", "CA", "C", "O", "CB"]),
        bonds=[[0, 1], [1, 2], [2, 3], [3, 0]],
        one_four=(0.5, 0.25),
        notes=["read"],
    )
    some = atoms[which]
    np.testing.assert_array_equal(some.positions, atoms.positions[indices])
    np.testing.assert_array_equal(some.gb_radii, atoms.gb_radii[indices])
    assert (some.gb_scales, some.one_four) == (None, (0.5, 0.25))
    assert some.labels.names.tolist() == atoms.labels.names[indices].tolist()
    assert some.labels.residue_index.tolist() == np.argsort(np.argsort(indices)).tolist()
    named = {tuple(sorted(some.charges[pair])) for pair in some.bonds}
    assert named == {tuple(sorted(pair)) for pair in atoms.bonds.tolist() if set(pair) <= set(some.charges)}
    assert some.notes == ("read", f"{len(indices)} of 5 atoms were selected")


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ([0, 3], "atom 3 does not exist; the atoms are 0 to 2"),
        ([0, 2, -1], "an atom is selected twice"),
        ([True, False], r"the atoms to take have shape \(2,\); \(3,\) booleans or \(k,\) indices"),
        (1, r"the atoms to take have shape \(\)"),
        ([0.5], "the atoms to take are not an array of indices or booleans: could not convert float64 values"),
        ("CA", "the atoms to take are 'CA'; expected indices or booleans: pele_ocl.selection"),
        (slice("CA"), "is not a slice of atoms"),
    ],
)
def test_what_chooses_no_atoms(which, message):
    with pytest.raises(InputError, match=message):
        make()[which]


@pytest.mark.parametrize("one_four", [(-1, 5), (0.5,), (0.5, np.nan), "no", None, 0.5, (0.5, 1.5), [[0.5, 0.5]]])
def test_scales_of_one_four_pairs_are_two_shares(one_four):
    with pytest.raises(InputError, match=r"one_four (is|are)"):
        make(one_four=one_four)


def test_residues_by_name():
    found = labels(["N", "CA"])
    assert found.residues == (("A", "ALA", -1, ""), ("A", "ALA", 0, ""))
    assert [str(residue) for residue in found.residues] == ["A:ALA-1", "A:ALA0"] == [found.residue(0), found.residue(1)]


def test_masses_follow_from_elements():
    atoms = pele_ocl.read(Path(__file__).parent.parent / "data" / "structures" / "hexapeptide.pdb")
    assert atoms.masses[atoms.labels.elements == "C"][0] == pytest.approx(12.011, abs=1e-3)
    assert atoms.masses[atoms.labels.elements == "H"].max() == pytest.approx(1.008, abs=1e-3)
    unknown = replace(atoms, labels=replace(atoms.labels, elements=np.where(np.arange(len(atoms)) == 3, "Qq", "C")))
    with pytest.raises(InputError, match=r"atom 3 .* has no element"):
        _ = unknown.masses
