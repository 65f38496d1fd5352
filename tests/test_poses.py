"""Poses of any order: molecular graphs, symmetric distances, files of docking programs, poses that fail."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from binding_helpers import LIGAND, N, complex_atoms, positions

from pele_ocl import Atoms, Binding, InputError
from pele_ocl.atoms import Labels
from pele_ocl.atoms.graphs import Graph, Hands, Matching, SymmetricRmsd, bonds_by_distance
from pele_ocl.binding.poses import Poses, evaluate_poses, pose_rmsd, read_poses
from pele_ocl.common.errors import FormatError

RING = [(k, (k + 1) % 6) for k in range(6)]


def ring(n_bonds=1.39) -> np.ndarray:
    angles = np.arange(6) * np.pi / 3
    return np.stack([n_bonds * np.cos(angles), n_bonds * np.sin(angles), 0.1 * np.arange(6) % 0.2], axis=1)


def benzene() -> tuple[list[str], list[tuple[int, int]], np.ndarray]:
    carbons = ring()
    return ["C"] * 6 + ["H"] * 6, RING + [(k, k + 6) for k in range(6)], np.concatenate([carbons, 1.78 * carbons])


def arms(generations: int) -> tuple[list[str], list[tuple[int, int]]]:
    """Make a dendrimer: each atom bears two phenyl groups or two more arms, so that 10^6 symmetries and more remain."""
    elements, bonds = ["N"], list[tuple[int, int]]()

    def grow(parent: int, left: int) -> None:
        own = len(elements)
        elements.append("C")
        bonds.append((parent, own))
        if left:
            grow(own, left - 1)
            grow(own, left - 1)
            return
        first = len(elements)
        elements.extend(["C"] * 6)
        bonds.append((own, first))
        bonds.extend((first + i, first + j) for i, j in RING)

    for _ in range(3):
        grow(0, generations)
    return elements, bonds


def shuffled(elements, bonds, order) -> Graph:
    places = np.argsort(order)
    return Graph.of([elements[k] for k in order], places[np.array(bonds)])


def molecule(elements, bonds, x, names=None) -> Atoms:
    n = len(elements)
    names = [f"{element}{k + 1}" for k, element in enumerate(elements)] if names is None else names
    ones = np.ones(n, np.int32)
    labels = Labels(
        np.array(names), np.array(elements), np.full(n, "LIG"), ones, np.full(n, ""), np.full(n, "L"), 0 * ones
    )
    return Atoms(np.asarray(x, float), np.zeros(n), labels=labels, bonds=np.array(bonds, np.int32))


def v2000(elements, bonds, x, orders=None, dimension="3D") -> str:
    orders = orders or [1] * len(bonds)
    rows = "".join(f"{a:10.4f}{b:10.4f}{c:10.4f} {e:<3} 0  0\n" for (a, b, c), e in zip(x, elements, strict=True))
    rows += "".join(f"{i + 1:3d}{j + 1:3d}{order:3d}  0\n" for (i, j), order in zip(bonds, orders, strict=True))
    head = f"pose\n  program 0101260000{dimension}\n\n{len(x):3d}{len(bonds):3d}  0  0  0  0  0  0  0  0999 V2000\n"
    return f"{head}{rows}M  END\n$$$$\n"


def v3000(elements, bonds, x) -> str:
    lines = ["", "  program 01012600003D", "", "  0  0  0     0  0            999 V3000", "M  V30 BEGIN CTAB"]
    lines += [f"M  V30 COUNTS {len(x)} {len(bonds)} 0 0 0", "M  V30 BEGIN ATOM"]
    for k, (e, (a, b, c)) in enumerate(zip(elements, x, strict=True)):
        lines += [f"M  V30 {k + 11} {e} {a:.4f} -", f"M  V30 {b:.4f} {c:.4f} 0 CHG=1"]
    lines += ["M  V30 END ATOM", "M  V30 BEGIN BOND"]
    lines += [f"M  V30 {k + 1} 1 {i + 11} {j + 11}" for k, (i, j) in enumerate(bonds)]
    return "\n".join([*lines, "M  V30 END BOND", "M  V30 END CTAB", "M  END", "$$$$", ""])


def mol2(elements, bonds, x) -> str:
    atoms = [
        f"{k + 1} A{k + 1} {a:.4f} {b:.4f} {c:.4f} {e} 1 LIG"
        for k, (e, (a, b, c)) in enumerate(zip(elements, x, strict=True))
    ]
    lines = [f"{k + 1} {i + 1} {j + 1} 1" for k, (i, j) in enumerate(bonds)]
    head = ["@<TRIPOS>MOLECULE", "pose", f"{len(x)} {len(bonds)}", "SMALL", "NO_CHARGES", "@<TRIPOS>ATOM"]
    return "\n".join([*head, *atoms, "@<TRIPOS>BOND", *lines, ""])


def pdb(names, elements, x) -> str:
    lines = [
        f"HETATM{k + 1:5d} {name:<4s} LIG L   1    {a:8.3f}{b:8.3f}{c:8.3f}  1.00  0.00          {e:>2s}"
        for k, (name, e, (a, b, c)) in enumerate(zip(names, elements, x, strict=True))
    ]
    return "\n".join([*lines, "END", ""])


# Graphs


@pytest.mark.parametrize("of", [benzene()[:2], arms(0), arms(1)], ids=["benzene", "three phenyls", "six phenyls"])
def test_a_shuffled_molecule_is_found_again(of):
    elements, bonds = of
    order = np.random.default_rng(1).permutation(len(elements))
    theirs = shuffled(elements, bonds, order)
    mapping = Matching(Graph.of(elements, bonds), theirs).best()
    there = {tuple(sorted(pair)) for pair in mapping[np.array(bonds)].tolist()}
    assert there == set(map(tuple, theirs.bonds.tolist()))
    assert [theirs.elements[j] for j in mapping] == elements


def test_graphs_that_differ_in_bonds_alone_do_not_match():
    """Two rings of three and one of six have equal colours: each atom has two neighbours of its kind."""
    six = Graph.of(["C"] * 6, RING)
    three = Graph.of(["C"] * 6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])
    assert Matching(six, three).best() is None
    assert Matching(three, three).best() is not None


def test_symmetric_rmsd_is_the_least_of_all_assignments():
    elements, bonds, x = benzene()
    moved = x + np.random.default_rng(2).normal(0, 1, x.shape)
    symmetries = [of for of in permutations(range(6)) if all(abs(of[i] - of[j]) in (1, 5) for i, j in RING)]
    assert len(symmetries) == 12
    least = min(np.sqrt(((moved[:6] - x[list(of)]) ** 2).sum(axis=1).mean()) for of in symmetries)
    rmsd = SymmetricRmsd(Graph.of(elements, bonds))
    assert rmsd(moved[None], x)[0] == pytest.approx(least, abs=1e-12)
    assert rmsd(x[None, [2, 3, 4, 5, 0, 1, *range(6, 12)]], x)[0] == 0


def test_the_search_does_not_grow_with_the_product_of_symmetries():
    """Twelve phenyl groups in nine arms have 2^12 * 6 * 2^9 symmetries; independent groups are solved by themselves."""
    elements, bonds = arms(2)
    graph = Graph.of(elements, bonds)
    x = np.random.default_rng(3).normal(0, 5, (len(elements), 3))
    rmsd = SymmetricRmsd(graph)
    order = Matching(graph, shuffled(elements, bonds, np.random.default_rng(4).permutation(len(elements)))).best()
    assert order is not None
    assert rmsd(x[None], x)[0] == 0
    assert rmsd._matching._trials < 2000


def test_bonds_by_distance():
    elements, bonds, x = benzene()
    assert {tuple(pair) for pair in bonds_by_distance(elements, x).tolist()} == {tuple(sorted(p)) for p in bonds}


# Files


@pytest.mark.parametrize("form", ["sdf", "v3000.sdf", "mol2", "names.pdb", "others.pdb", "bare.sdf"])
def test_poses_of_any_order_and_format(form, tmp_path):
    elements, bonds, x = benzene()
    elements = [*elements[:6], "F", "H", "Cl", "H", "H", "H"]
    x[6], x[8] = 1.98 * x[0], 2.25 * x[2]
    ligand = molecule(elements, bonds, x)
    pose = np.round(x @ np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0] + 5, 3)
    order = np.random.default_rng(5).permutation(12)
    graph = shuffled(elements, bonds, order)
    given = [elements[k] for k in order], graph.bonds.tolist(), pose[order]
    names = ligand.labels.names[order]
    text = {
        "sdf": v2000(*given).replace("\n", "\r\n"), "v3000.sdf": v3000(*given), "mol2": mol2(*given),
        "names.pdb": pdb(names, given[0], given[2]),
        "others.pdb": pdb([f"X{k}" for k in range(12)], given[0], given[2]),
        "bare.sdf": v2000(given[0], [], given[2]),
    }[form]  # fmt: skip
    path = tmp_path / f"pose.{form}"
    path.write_text(text)
    found = read_poses(path, ligand)
    assert found.titles == (() if form.endswith("pdb") else (text.split("\n")[form == "mol2"].strip(),))
    assert not found.errors
    assert found.positions[0] == pytest.approx(pose, abs=1e-9)


def test_a_pose_that_cannot_be_taken_leaves_the_others(tmp_path):
    elements, bonds, x = benzene()
    heavy = elements[:6], RING, x[:6]
    other = ["C"] * 5 + ["N"] + ["H"] * 6
    ended = v2000(elements, bonds, x).replace("$$$$\n", "").splitlines(keepends=True)[:9]
    texts = {
        "good": v2000(elements, bonds, x + 1),
        "hydrogens are missing": v2000(*heavy),
        "1 C too few, 1 N too many": v2000(other, bonds, x),
        "a two-dimensional drawing": v2000(elements, bonds, x * [1, 1, 0], dimension="2D"),
        "position that is not a number": v2000(elements, bonds, x).replace("1.3900", "   nan", 1),
        "would be": v2000(elements, bonds, x * 3),
        "ends early": "".join(ended) + "M  END\n$$$$\n",
        "no counts of atoms": "pose\n\n\nnothing\n$$$$\n",
        "has no atoms": v2000([], [], []),
        "of which there are 12": v2000(elements, [*bonds[:-1], (0, 30)], x),
    }
    path, ligand = tmp_path / "poses.sdf", molecule(elements, bonds, x)
    path.write_text("".join(texts.values()))
    found = read_poses(path, ligand)
    assert len(found) == len(texts)
    assert found.titles == tuple(text.partition("\n")[0] for text in texts.values())
    assert found.positions[0] == pytest.approx(x + 1, abs=1e-4)
    assert sorted(found.errors) == list(range(1, len(texts)))
    for k, reason in enumerate(texts):
        if k:
            assert f"molecule {k + 1}: " in found.errors[k]
            assert reason in found.errors[k]
            assert np.isnan(found.positions[k]).all()
    path.write_text("".join(list(texts.values())[1:]))
    with pytest.raises(FormatError, match=r"molecule 1: hydrogens are missing.*\(8 more also fail\)"):
        read_poses(path, ligand)


def test_an_atom_that_does_not_match_is_named(tmp_path):
    """Ethanol and dimethyl ether have the same atoms."""
    ethanol = (
        ["C", "C", "O", "H", "H", "H", "H", "H", "H"],
        [(0, 1), (1, 2), (0, 3), (0, 4), (0, 5), (1, 6), (1, 7), (2, 8)],
    )
    ether = [(0, 2), (1, 2), (0, 3), (0, 4), (0, 5), (1, 6), (1, 7), (1, 8)]
    x = np.random.default_rng(0).normal(size=(9, 3))
    (tmp_path / "ether.sdf").write_text(v2000(ethanol[0], ether, x))
    with pytest.raises(FormatError, match="no atom of it has the bonds of L:LIG1:C1, C with C, H, H, H around it"):
        read_poses(tmp_path / "ether.sdf", molecule(*ethanol, x))


# Handedness

TETRAHEDRON = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3)


def test_the_mirror_image_is_refused(tmp_path):
    elements, bonds = ["C", "H", "F", "Cl", "Br"], [(0, k) for k in range(1, 5)]
    x = np.concatenate([[[0, 0, 0]], TETRAHEDRON * 1.5])
    ligand, path = molecule(elements, bonds, x), tmp_path / "pose.sdf"
    order = np.array([3, 0, 4, 2, 1])
    graph = shuffled(elements, bonds, order)
    for mirrored in (1, -1):
        pose = (x * [1, 1, mirrored] + 3)[order]
        path.write_text(v2000([elements[k] for k in order], graph.bonds.tolist(), pose))
        if mirrored > 0:
            assert read_poses(path, ligand).positions[0] == pytest.approx(x + 3, abs=1e-4)
        else:
            with pytest.raises(FormatError, match="not the ligand but its mirror image: L:LIG1:C1 inverted"):
                read_poses(path, ligand)


def disubstituted(is_cis: bool) -> tuple[list[str], list[tuple[int, int]], np.ndarray]:
    """1,4-Difluorocyclohexane, whose two neighbours of a substituted carbon in the ring are alike."""
    elements, bonds, x = ["C"] * 6, list(RING), list(ring(1.5) + 0.25 * np.array([[0, 0, (-1) ** k] for k in range(6)]))
    for k in range(6):
        outwards, upwards = x[k] * [0.35, 0.35, 0], np.array([0, 0, 0.9])
        up, down = outwards + upwards, outwards - upwards
        kinds = {0: ("F", "H"), 3: ("F", "H") if is_cis else ("H", "F")}.get(k, ("H", "H"))
        for kind, away in zip(kinds, (up, down), strict=True):
            bonds.append((k, len(elements)))
            elements.append(kind)
            x.append(x[k] + away)
    return elements, bonds, np.array(x)


def test_cis_and_trans_of_a_symmetric_ring_are_told_apart(tmp_path):
    """Of the mappings of the graph the one is taken that keeps the configuration, and none for the other isomer."""
    elements, bonds, x = disubstituted(is_cis=True)
    ligand, path = molecule(elements, bonds, x), tmp_path / "pose.sdf"
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(elements))
        graph = shuffled(elements, bonds, order)
        path.write_text(v2000([elements[k] for k in order], graph.bonds.tolist(), (x + 1)[order]))
        found = read_poses(path, ligand).positions[0]
        assert np.linalg.norm(found[[0, 3]] - found[[6, 12]], axis=1).max() < 1.2
        ours = Graph.of(elements, bonds)
        one, two = Hands.of(ours, x), Hands.of(ours, found)
        assert one.signs == two.signs
        assert sorted(one.signs) == [0, 3]
    others, other_bonds, y = disubstituted(is_cis=False)
    path.write_text(v2000(others, other_bonds, y))
    with pytest.raises(FormatError, match="another stereoisomer of it"):
        read_poses(path, ligand)


def test_cis_and_trans_at_a_double_bond(tmp_path):
    elements, bonds, orders = ["C", "C", "F", "H", "F", "H"], [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5)], [2, 1, 1, 1, 1]
    cis = np.array([[0, 0, 0], [1.3, 0, 0], [-0.7, 1.1, 0.2], [-0.5, -0.9, -0.1], [2.0, 1.1, 0], [1.8, -0.9, 0]])
    trans = np.where(np.arange(6)[:, None] > 3, cis * [1, -1, 1], cis)
    path = tmp_path / "pose.sdf"
    path.write_text(v2000(elements, bonds, cis, orders) + v2000(elements, bonds, trans, orders))
    found = read_poses(path, molecule(elements, bonds, cis))
    assert list(found.errors) == [1]
    assert "cis and trans are exchanged at the double bond of L:LIG1:C1 and L:LIG1:C2" in found.errors[1]


def test_hydrogens_of_a_methylene_keep_their_sides(tmp_path):
    elements, bonds = ["C", "H", "H", "F", "Cl"], [(0, k) for k in range(1, 5)]
    x = np.concatenate([[[0, 0, 0]], TETRAHEDRON * 1.2])
    order = np.array([0, 2, 1, 4, 3])
    graph = shuffled(elements, bonds, order)
    (tmp_path / "pose.sdf").write_text(v2000([elements[k] for k in order], graph.bonds.tolist(), x[order]))
    found = read_poses(tmp_path / "pose.sdf", molecule(elements, bonds, x))
    assert found.positions[0] == pytest.approx(x, abs=1e-4)


# Energies


def test_rmsd_of_a_large_ligand_and_of_one_with_too_much_symmetry(monkeypatch):
    """A carboxylate's oxygens are exchanged; atoms of a large ligand stay; a search without an end has no number."""
    elements, x = ["C", "C", "O", "O"], np.array([[0, 0, 0], [1.5, 0, 0], [2.1, 1.1, 0], [2.1, -1.1, 0]])
    ligand = molecule(elements, [(0, 1), (1, 2), (1, 3)], x)
    turned = x[[0, 1, 3, 2]][None]
    assert pose_rmsd(ligand, turned) == pytest.approx([0])
    with monkeypatch.context() as patch:
        patch.setattr("pele_ocl.atoms.graphs.MOST_TRIALS", 0)
        assert np.isnan(pose_rmsd(ligand, turned)).tolist() == [True]
    monkeypatch.setattr("pele_ocl.binding.poses.MOST_MATCHED", 3)
    assert pose_rmsd(ligand, turned) == pytest.approx([np.sqrt(2 * 2.2**2 / 4)])


def test_a_pose_that_fails_or_clashes_keeps_the_others():
    """A clash is computed in float64, for which the receptor's results had the ligand's shape."""
    plan = Binding(complex_atoms(), LIGAND, like="mmpbsa.py")
    good = positions()[N:]
    same, clash, broken = good.copy(), good.copy(), np.full_like(good, np.nan)
    same[3] = same[4]
    clash += positions()[40] - good[20] + [0.2, 0.2, 0.1]
    found = evaluate_poses(plan, Poses(np.stack([broken, good, same, clash]), {0: "hydrogens are missing"}))
    assert found.errors[0] == "hydrogens are missing"
    assert sorted(found.errors) == [0, 2]
    assert np.isfinite(found.total).tolist() == [False, True, False, True]
    assert found.total[1] == evaluate_poses(plan, good[None]).total[0]
    assert found.rmsd[1] == pytest.approx(0, abs=1e-9)
    unnamed = evaluate_poses(plan, np.stack([good, broken]))
    assert unnamed.errors == {1: "a position is not a number"}
    with pytest.raises(InputError, match="a decomposition is a mean over frames"):
        evaluate_poses(Binding(complex_atoms(), LIGAND, like="mmpbsa.py", idecomp=2), good[None])
