"""Moves of a ligand: laws of translations and rotations, torsions, boxes, and the steric screen."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from explore_helpers import small_complex
from test_minimize import PEPTIDE

from pele_ocl import FormatError, InputError
from pele_ocl.atoms import exclusions
from pele_ocl.atoms.torsions import SideChain, Torsion
from pele_ocl.explore import (
    Cylinder,
    Perturbation,
    Prism,
    Settings,
    Shell,
    Sphere,
    Spheres,
    Walk,
    flexible_ligand,
    flexible_residues,
    perturbation,
    read_rot_assign,
    screen,
)
from pele_ocl.explore.philox import philox, uniform
from pele_ocl.explore.regions import is_close
from pele_ocl.explore.rigid import (
    SMALL,
    directions_about,
    drawn_moves,
    euler_angles,
    lengths,
    random_directions,
    random_frames,
    rotations_of,
)
from pele_ocl.opencl import Device

N = 20_000
WORDS = [philox((7, 11 + k), (np.arange(N), 0, 0, 0)) for k in range(3)]


def is_flat(values: np.ndarray, low: float, high: float) -> bool:
    """Tell if values are uniform between bounds, to five standard deviations in each of ten bins."""
    counts = np.histogram(values, 10, (low, high))[0]
    return counts.sum() == len(values) and bool(np.abs(counts - len(values) / 10).max() < 5 * np.sqrt(len(values) / 10))


def test_lengths_of_translations():
    drawn = uniform(WORDS[0][:, 3])
    assert is_flat(lengths(drawn, 2.0, "centered")[:, 0], 1.5, 2.5)
    assert is_flat(lengths(drawn, 2.0, "spherical")[:, 0], 0.0, 2.0)


def test_directions_are_uniform_on_the_sphere():
    directions = random_directions(WORDS[0])
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1)
    for axis in np.eye(3):  # the share of each height is the same, along any axis (Archimedes)
        assert is_flat(directions @ axis, -1, 1)


def test_steered_directions_lie_about_the_vector():
    steering = np.array([2.0, -1.0, 0.5]) / np.linalg.norm([2.0, -1.0, 0.5])
    directions = directions_about(steering, WORDS[0])
    angles = np.degrees(np.arccos(np.clip(directions @ steering, -1, 1)))
    assert np.sqrt((angles**2).mean()) == pytest.approx(20, rel=0.03)
    across = np.linalg.qr(np.column_stack([steering, np.eye(3)[:, :2]]))[0][:, 1:]
    assert is_flat(np.arctan2(*(directions @ across).T), -np.pi, np.pi)


def test_angles_are_not_coupled():
    """One, two or three angles as often have the factor; the others have 0.02. Sizes are uniform about the mean one."""
    scaling, spread = 0.1, 0.25
    angles = euler_angles(WORDS[0], WORDS[1], scaling, spread)
    shares = angles / (scaling * np.array([2 * np.pi, 2 * np.pi, np.pi]))
    large = np.abs(shares) > 0.5
    counts = large.sum(axis=1)
    assert [(counts == k).mean() for k in (1, 2, 3)] == pytest.approx([1 / 3] * 3, abs=0.02)
    assert large.mean(axis=0) == pytest.approx([2 / 3] * 3, abs=0.02)
    assert is_flat(np.abs(shares[large]), 1 - spread, 1 + spread)
    assert is_flat(np.abs(shares[~large]) * scaling / SMALL, 1 - spread, 1 + spread)
    assert (shares > 0).mean(axis=0) == pytest.approx([0.5] * 3, abs=0.02)


def test_rotations_turn_by_their_angles_and_in_no_direction():
    found = rotations_of(np.array([[0.3, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.1], [0.3, 0.2, 0.0]]))
    turned = np.arccos((np.trace(found, axis1=1, axis2=2) - 1) / 2)
    np.testing.assert_allclose(turned, [0.3, 0.2, 0.1, 0.5])
    frames = random_frames(WORDS[2])
    np.testing.assert_allclose(frames @ np.swapaxes(frames, 1, 2), np.broadcast_to(np.eye(3), frames.shape), atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(frames), 1)
    for row in range(3):
        assert is_flat(frames[:, row, 0], -1, 1)


def test_boxes():
    points = np.random.default_rng(0).uniform(-4, 4, (500, 3))
    r = np.linalg.norm(points - (1, 0, 0), axis=1)
    np.testing.assert_array_equal(Sphere((1, 0, 0), 2).contains(points), r <= 2)
    np.testing.assert_array_equal(Shell((1, 0, 0), 2, 3).contains(points), (r >= 2) & (r <= 3))
    both = Spheres((Sphere((1, 0, 0), 2), Sphere((-3, 0, 0), 1)))
    np.testing.assert_array_equal(both.contains(points), (r <= 2) | (np.linalg.norm(points - (-3, 0, 0), axis=1) <= 1))
    inside = np.abs(points - (1, 0, 0)) <= (1, 2, 3)
    np.testing.assert_array_equal(Prism((1, 0, 0), (2, 4, 6)).contains(points), inside.all(axis=1))
    across = (np.hypot(points[:, 0], points[:, 1]) <= 2) & (points[:, 2] >= -1) & (points[:, 2] <= 3)
    np.testing.assert_array_equal(Cylinder((0, 0, -1), (0, 0, 3), 2).contains(points), across)


def test_wrong_boxes_are_refused():
    for make in (
        lambda: Sphere((0, 0), 1),
        lambda: Sphere((0, 0, 0), 0),
        lambda: Shell((0, 0, 0), 3, 2),
        lambda: Prism((0, 0, 0), (1, 1, -1)),
        lambda: Cylinder((0, 0, 0), (0, 0, 0), 1),
        lambda: Spheres(()),
    ):
        with pytest.raises(InputError):
            make()


def names_of(atoms, flexible):
    return [["-".join(atoms.labels.names[list(of.axis)]) for of in chain.torsions] for chain in flexible.side_chains]


def test_torsions_of_residues_are_their_chi_angles():
    found = flexible_residues(PEPTIDE, np.arange(len(PEPTIDE), dtype=np.int32))
    named = {str(PEPTIDE.labels.residue_names[of.atoms[0]]): names_of(PEPTIDE, of)[0] for of in found}
    assert named == {
        "MET": ["CA-CB", "CB-CG", "CG-SD"],
        "LYS": ["CA-CB", "CB-CG", "CG-CD", "CD-CE"],
        "GLU": ["CA-CB", "CB-CG", "CG-CD"],
        "PHE": ["CA-CB", "CB-CG"],
        "ASP": ["CA-CB", "CB-CG"],
    }
    for of in found:
        assert {"N", "CA", "C", "O", "CB"} <= set(PEPTIDE.labels.names[of.core])


def test_torsions_of_a_ligand_lead_away_from_its_core():
    atoms, ligand = small_complex()
    found = flexible_ligand(atoms, ligand)
    axes = {of.axis for chain in found.side_chains for of in chain.torsions}
    names = atoms.labels.names
    assert {frozenset(names[list(axis)]) for axis in axes} == {frozenset(("N", "CA")), frozenset(("CA", "C"))}
    assert len(axes) == 4 + ("OXT" in names[ligand])  # phi and psi; amides stay as they are
    for chain in found.side_chains:
        sizes = [len(of.moved) for of in chain.torsions]
        assert sizes == sorted(sizes, reverse=True)
        for of in chain.torsions:
            assert not set(found.core) & set(of.moved)


@pytest.mark.parametrize(("n", "resolution", "most"), [(2, 10, 2), (4, 10, 3), (4, 30, 4), (6, 30, 5)])
def test_torsions_that_turn_at_once(n, resolution, most):
    torsion = Torsion((0, 1), np.array([2]), resolution)
    assert SideChain((torsion,) * n).most == most


def test_rot_assign_of_peleffy(tmp_path: Path):
    atoms, ligand = small_complex()
    lone, own = atoms[ligand], np.arange(len(ligand), dtype=np.int32)
    first = lone.labels.residue_index == 0
    single = lone[first]  # names of atoms occur once
    own = own[first]
    file = tmp_path / "LIG.rot.assign"
    file.write_text("rot assign res LIG &\n sidelib FREE30 _CA_ _C__ &\n newgrp &\n sidelib FREE25 _CA_ _CB_ &\n")
    found = read_rot_assign(file, single, own)
    assert names_of(single, found) == [["CA-C"], ["CA-CB"]]
    assert [chain.torsions[0].n_values for chain in found.side_chains] == [12, 16]  # 25 stands for 22.5 degrees
    assert [chain.most for chain in found.side_chains] == [1, 1]
    for words, fault in (
        ("sidelib FREE30 _CA_ _XX_ &", "no atom XX"),
        ("sidelib FREE30 _N__ _CB_ &", "not bonded"),
        ("sidelib FREE_1 _CA_ _CB_ &", "not a library"),
        ("sidelab FREE30 _CA_ _CB_ &", "line 2"),
    ):
        file.write_text(f"rot assign res LIG &\n{words}\n")
        with pytest.raises(FormatError, match=fault):
            read_rot_assign(file, single, own)


def walk_of(device, explorers=2, **settings):
    atoms, ligand = small_complex()
    own = Settings(**{"trials": 6, "steric_trials": 40, "translation_range": 3.0, "overlap_factor": 0.7, **settings})
    walk = Walk.of(
        atoms, ligand, explorers, seed=1, settings=own, terms=Perturbation().terms(atoms, ligand), device=device,
        fixed_radii=True,
    )  # fmt: skip
    walk.steps[:] = 1
    return walk


def put_inside(walk, row=0) -> np.ndarray:
    """Put the ligand of a row into the receptor's middle, so that most tries clash; give the positions."""
    x = walk.atoms.positions.copy()
    x[walk.ligand] += x[walk.receptor].mean(axis=0) - walk.center(x)
    walk.ensemble.positions[row] = x
    return x


def screened(walk, row=0, side_chains=True):
    """Give the poses of a row, (n_trials, n, 3) and NaN for none, and their tries."""
    move = Perturbation(side_chains=side_chains)
    move.prepare(walk)
    x = walk.ensemble.positions[[row]]
    move._screen.begin([row], x, move._reach(walk, [row], x))
    tries = move._poses(walk, [row], {row: walk.center(x[0])}, {row: None})[row]
    poses = np.full((len(tries), *x[0].shape), np.nan)
    for trial in np.flatnonzero(tries >= 0).tolist():
        move._screen.take({row: trial})
        poses[trial] = walk.ensemble.positions[row]
    move._screen.take({row: -1})
    np.testing.assert_array_equal(walk.ensemble.positions[row], x[0])
    return poses, tries


def clashes(walk, x: np.ndarray) -> np.ndarray:
    """Tell of receptor atoms (k,) if they clash with the ligand, by NumPy."""
    radii = walk.atoms.lj_sigma / 2
    r = np.linalg.norm(x[walk.receptor][:, None] - x[walk.ligand][None], axis=2)
    least = walk.settings[0].overlap_factor * (radii[walk.receptor][:, None] + radii[walk.ligand])
    return (r < least).any(axis=1)


@pytest.mark.parametrize("most", [100, 1_000_000])
def test_atoms_near_points_are_numpys(monkeypatch, most):
    """Points are asked some at a time if they are many."""
    monkeypatch.setattr("pele_ocl.explore.walk._MOST_PAIRS", most)
    rng = np.random.default_rng(3)
    x, points = 20 * rng.random((400, 3)), 5 + 8 * rng.random((12, 3))
    r = np.linalg.norm(x[:, None] - points, axis=2).min(axis=1)
    for radius in (0.0, 3.0, 6.0, 1000.0):
        np.testing.assert_array_equal(is_close(x, points, radius), r <= radius)
    assert 0 < is_close(x, points, 3.0).sum() < is_close(x, points, 6.0).sum() < 400


@pytest.mark.parametrize("most", [100, 1_000_000])
def test_the_nearest_receptor_atom_is_numpys(device, monkeypatch, most):
    monkeypatch.setattr("pele_ocl.explore.walk._MOST_PAIRS", most)
    walk = walk_of(device)
    for x in (walk.atoms.positions, put_inside(walk), walk.atoms.positions * (1, 1, 3)):
        r = np.linalg.norm(x[walk.receptor][:, None] - x[walk.ligand], axis=2).min()
        assert walk.nearest(x) == pytest.approx(r, abs=1e-12)


def test_moves_are_drawn_for_each_row_alone(device):
    """Rows with settings of their own: the same draws together and alone."""
    walk = walk_of(device, 3, trials=4)
    walk.settings[1].translation_range, walk.settings[1].rotation_scaling, walk.settings[2].trials = 3.0, 0.3, 6
    steering = {0: None, 1: np.array([0.0, 0.0, 1.0]), 2: None}
    together = drawn_moves(walk, [0, 1, 2], np.arange(5), steering, "centered")
    for row in (0, 1, 2):
        alone = drawn_moves(walk, [row], np.arange(5), steering, "centered")[row]
        np.testing.assert_array_equal(together[row].rotations, alone.rotations)
        np.testing.assert_array_equal(together[row].translations, alone.translations)
        assert len(alone.translations) == walk.settings[row].trials
    assert np.linalg.norm(together[1].translations, axis=2).min() > 2.2


def test_the_screen_is_numpys(device):
    """Without turns the first try of each trial without clashes is taken, whatever a launch has of them."""
    walk = walk_of(device, translation_range=8.0)
    flexible = flexible_ligand(walk.atoms, walk.ligand)
    rigid = type(flexible)(walk.ligand, ())
    move = Perturbation(rigid, side_chains=False)
    move.prepare(walk)
    x = put_inside(walk)[None]
    move._screen.begin([0], x, move._reach(walk, [0], x))
    found = move._poses(walk, [0], {0: walk.center(x[0])}, {0: None})[0]
    center, drawn = walk.center(x[0]), drawn_moves(walk, [0], np.arange(40), {0: None}, "centered")[0]
    for trial, tried in enumerate(found.tolist()):
        expected = -1
        for k in range(40):
            y = x[0].copy()
            y[walk.ligand] = (x[0][walk.ligand] - center) @ drawn.rotations[trial, k].T + center
            y[walk.ligand] += drawn.translations[trial, k]
            if not clashes(walk, y).any():
                expected = k
                break
        assert tried == expected
        if tried >= 0:
            move._screen.take({0: trial})
            np.testing.assert_allclose(walk.ensemble.positions[0], y, atol=2e-5)
    assert len(set(found.tolist())) > 2


def test_relief_turns_side_chains_until_nothing_clashes(device):
    walk = walk_of(device, translation_range=6.0)
    start = put_inside(walk)
    poses, tries = screened(walk)
    _, by_itself = screened(walk, side_chains=False)
    good = tries >= 0
    assert good.sum() >= (by_itself >= 0).sum()
    assert (tries[good] <= np.where(by_itself[good] < 0, 99, by_itself[good])).all()
    bonds = walk.atoms.bond_pairs
    angles = exclusions(bonds, len(walk.atoms))[0]
    turned = set()
    for x in poses[good]:
        assert not clashes(walk, x).any()
        for pairs in (bonds, angles):  # turns about bonds change neither lengths nor angles
            now, before = (np.linalg.norm(y[pairs[:, 0]] - y[pairs[:, 1]], axis=1) for y in (x, start))
            np.testing.assert_allclose(now, before, atol=1e-4)
        moved = np.flatnonzero(np.abs(x - start).max(axis=1) > 1e-3)
        turned |= set(walk.atoms.labels.residue_index[np.setdiff1d(moved, walk.ligand)].tolist())
        backbone = np.isin(walk.atoms.labels.names, ["N", "CA", "C", "O", "CB"])
        assert not set(moved) & set(np.flatnonzero(backbone)) - set(walk.ligand.tolist())
    assert turned


def test_poses_do_not_depend_on_launches_or_on_company(device, monkeypatch):
    walk = walk_of(device, 2, translation_range=6.0)
    put_inside(walk, 1)
    poses, tries = screened(walk, row=1)
    monkeypatch.setattr(perturbation, "TRIES", (8, 5))
    walk = walk_of(device, [1], translation_range=6.0)
    put_inside(walk)
    alone, of_alone = screened(walk)
    np.testing.assert_array_equal(of_alone, tries)
    np.testing.assert_array_equal(alone, poses)
    assert len(np.unique(poses[tries >= 0].round(3), axis=0)) == (tries >= 0).sum() > 2


class SharedScreen(screen.Screen):
    """Groups of work-items share the tries of a trial, as on a GPU."""

    def __init__(self, *given):
        super().__init__(*given)
        self._items, self._sides = screen.GROUP, 3

    def find(self, *given):
        with patch.object(Device, "kind", "GPU"):
            return super().find(*given)


def test_groups_of_a_gpu_find_the_same_poses(device, monkeypatch):
    found = []
    for kind in (screen.Screen, SharedScreen):
        monkeypatch.setattr(perturbation, "Screen", kind)
        walk = walk_of(device, translation_range=6.0)
        put_inside(walk)
        found.append(screened(walk))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_steering_lasts_its_steps_and_ends_outside_the_box(device):
    walk = walk_of(device, 1, steering_update_frequency=3, near_only=False)
    move, x, vectors = Perturbation(direction="steered"), walk.atoms.positions, []
    for step in range(1, 8):
        walk.steps[:] = step
        vectors.append(move._steering(walk, 0, x))
    assert [bool((a == b).all()) for a, b in pairwise(vectors)] == [True, True, False] * 2
    walk.settings[0].box = Sphere(walk.center(x) + 50, 1)
    move.prepare(walk)
    move.apply(walk, [0])
    assert "steering" not in walk.memory[0]
    assert walk.memory[0]["without_pose"] == 1
    np.testing.assert_array_equal(walk.ensemble.positions[0], x)


def test_a_ligand_that_is_bonded_to_the_receptor_is_refused(device):
    atoms, _ = small_complex()
    walk = Walk.of(atoms, atoms.labels.residue_index == 0, device=device)
    with pytest.raises(InputError, match=r"the ligand is bonded to the receptor, .*MET1:C to .*LYS2:N"):
        Perturbation().prepare(walk)


def test_a_row_stays_if_no_pose_has_an_energy(device, monkeypatch):
    walk, move = walk_of(device, 1), Perturbation()
    move.prepare(walk)
    walk.ensemble.evaluate()
    walk.made[0].add("perturbation")
    monkeypatch.setattr(type(walk.ensemble), "energies_of", lambda self, rows: np.full(len(rows), np.nan))
    move.apply(walk, [0])
    assert not walk.made[0]
    np.testing.assert_array_equal(walk.ensemble.positions[0], walk.atoms.positions)
