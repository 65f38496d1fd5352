"""Molecular surface: the places of its vertices, how triangles join, and which atom is nearest."""

from __future__ import annotations

import numpy as np
import pytest

from pele_ocl import Atoms, Grid, InputError, read
from pele_ocl.common.installation import shipped
from pele_ocl.painting import molecular_surface
from pele_ocl.painting.surface import PROBE, element_radii, nearest_ball, surface_at, surface_net

HEXAPEPTIDE = shipped("data") / "structures" / "hexapeptide.pdb"


@pytest.fixture(scope="module")
def atoms():
    return read(HEXAPEPTIDE)


@pytest.fixture(scope="module")
def surface(atoms):
    return molecular_surface(atoms)


def edges(faces):
    return np.concatenate([faces[:, [k, (k + 1) % 3]] for k in range(3)])


def assert_closed(faces):
    """Each edge has two triangles, which pass it in opposite directions."""
    there = np.unique(edges(faces), axis=0, return_counts=True)
    assert (there[1] == 1).all()
    assert {tuple(edge) for edge in there[0].tolist()} == {(b, a) for a, b in there[0].tolist()}


def test_a_net_is_closed_and_looks_outward():
    z, y, x = np.ogrid[:20, :22, :24]
    vertices, faces = surface_net(np.sqrt((x - 11.3) ** 2 + (y - 10.1) ** 2 + (z - 9.6) ** 2) - 6)
    assert_closed(faces)
    from_middle = vertices - (11.3, 10.1, 9.6)
    np.testing.assert_allclose(np.linalg.norm(from_middle, axis=1), 6, atol=0.1)
    a, b, c = (from_middle[faces[:, k]] for k in range(3))
    volume = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6
    assert volume.min() > 0
    assert volume.sum() == pytest.approx(4 / 3 * np.pi * 6**3, rel=0.04)


def test_a_net_ends_where_the_grid_does():
    values = np.broadcast_to(np.arange(5.0)[:, None, None] - 1.5, (5, 4, 3))
    vertices, faces = surface_net(values)
    np.testing.assert_allclose(vertices[:, 2], 1.5)
    assert (len(vertices), len(faces)) == (6, 4)
    normal = np.cross(vertices[faces[:, 1]] - vertices[faces[:, 0]], vertices[faces[:, 2]] - vertices[faces[:, 0]])
    np.testing.assert_allclose(normal, [[0, 0, 1]] * 4)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 5, 5), (4, 4, 4)])
def test_a_net_of_nothing(shape):
    vertices, faces = surface_net(np.ones(shape))
    assert (vertices.shape, faces.shape) == ((0, 3), (0, 3))


def test_the_nearest_ball_is_the_nearest():
    rng = np.random.default_rng(1)
    centres, radii = rng.uniform(5, 9, (40, 3)), rng.uniform(0.5, 1.5, 40)
    grid = Grid((0, 0, 0), (0.6, 0.7, 0.8), (24, 21, 18))
    distances, owners = nearest_ball(grid, centres, radii, 0.9)
    z, y, x = np.meshgrid(*grid.axes()[::-1], indexing="ij")
    every = np.linalg.norm(np.stack([x, y, z], -1)[..., None, :] - centres, axis=-1) - radii
    near = every.min(axis=-1) < 0.9
    np.testing.assert_allclose(distances, np.minimum(every.min(axis=-1), 0.9), atol=1e-5)
    assert (owners[near] == every.argmin(axis=-1)[near]).all()
    assert (owners[~near] == -1).all()


def test_a_lone_atom_is_a_sphere():
    found = molecular_surface(Atoms(positions=[(3, 4, 5)], charges=[1]))
    np.testing.assert_allclose(np.linalg.norm(found.vertices - (3, 4, 5), axis=1), 1.7, atol=0.06)
    assert found.area == pytest.approx(4 * np.pi * 1.7**2, rel=0.05)
    assert_closed(found.faces)
    np.testing.assert_allclose(found.normals, (found.vertices - (3, 4, 5)) / 1.7, atol=0.35)


def test_the_probe_closes_the_gap_between_two_atoms():
    """Midway between two spheres 4 A apart the probe leaves a neck of sqrt((r + p)^2 - 2^2) - p."""
    found = surface_at(np.array([[-2.0, 0, 0], [2.0, 0, 0]]), np.array([1.7, 1.7]), 0.4)
    middle = np.abs(found.vertices[:, 0]) < 0.2
    neck = np.sqrt((1.7 + PROBE) ** 2 - 4) - PROBE
    np.testing.assert_allclose(np.linalg.norm(found.vertices[middle, 1:], axis=1), neck, atol=0.15)
    assert set(found.nearest.tolist()) == {0, 1}


def test_no_atom_reaches_through_the_surface(atoms, surface):
    radii = element_radii(atoms)
    depth = np.linalg.norm(surface.vertices[:, None] - atoms.positions, axis=2) - radii
    assert depth.min() > -0.15
    nearest = depth.min(axis=1)
    np.testing.assert_allclose(np.take_along_axis(depth, surface.nearest[:, None], 1)[:, 0], nearest, atol=0.06)
    assert nearest.max() < PROBE  # the probe touches two atoms or more


def test_the_same_bits_every_time_and_wherever_the_molecule_is(atoms, surface):
    again = molecular_surface(atoms)
    assert (again.vertices == surface.vertices).all()
    moved = molecular_surface(atoms.moved(atoms.positions + np.array([100.0, -50, 25])))
    assert moved.area == pytest.approx(surface.area, rel=1e-3)


def test_what_is_large_gets_a_coarser_surface(atoms, surface):
    coarse = molecular_surface(atoms, most=1500)
    assert len(coarse.vertices) <= 1500 < len(surface.vertices)
    assert coarse.probe == max(PROBE, 1.5 * coarse.spacing)
    assert coarse.area == pytest.approx(surface.area, rel=0.1)
    assert surface_at(np.array([(0.0, 0, 0), (900, 900, 900)]), np.array([1.7, 1.7]), 0.5) is None


def test_radii_are_bondis():
    labels = read(HEXAPEPTIDE).labels
    by_element = dict(zip(labels.elements.tolist(), element_radii(read(HEXAPEPTIDE)).round(3).tolist(), strict=True))
    assert by_element == {"N": 1.55, "C": 1.7, "O": 1.52, "H": 1.2, **({"S": 1.8} if "S" in by_element else {})}


def test_no_atom_has_no_surface(atoms):
    with pytest.raises(InputError, match="there are no atoms, so there is no surface"):
        molecular_surface(atoms[:0])
