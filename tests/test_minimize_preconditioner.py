"""Preconditioner of minimization: its blocks by their definition, and its savings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bonded_helpers import of_every_kind
from numpy.typing import NDArray

import pele_ocl
from pele_ocl import Atoms, Minimizer, PositionalRestraint, SolventModel
from pele_ocl.atoms import HarmonicImpropers, UreyBradley, elements_of
from pele_ocl.common.installation import shipped
from pele_ocl.energy.bonded import TABLES_OF_TERMS
from pele_ocl.energy.bonded.tasks import Tasks
from pele_ocl.minimize.preconditioner import BLOCK, FIRST_STIFFNESS, HALF, REACH, REST, SIDE, block_order
from pele_ocl.opencl import Queue
from pele_ocl.opencl.interface import BondedKind, StepState
from pele_ocl.reference.bonded import angle, distance, torsion
from pele_ocl.units import KJ_PER_MOL_NM

PEPTIDE = pele_ocl.read(shipped("data") / "structures" / "hexapeptide.pdb")
START = PEPTIDE.positions + np.random.default_rng(1).normal(0, 0.1, PEPTIDE.positions.shape)
VACUUM = SolventModel(gb="none")


def with_all_springs() -> Atoms:
    """Add Urey-Bradley terms and harmonic impropers to the peptide's force field."""
    angles, impropers = PEPTIDE.bonded.angles.atoms, PEPTIDE.bonded.impropers.atoms
    bonded = replace(
        PEPTIDE.bonded,
        urey_bradley=UreyBradley(angles[::7, [0, 2]], np.tile([30.0, 2.2], (len(angles[::7]), 1))),
        harmonic_impropers=HarmonicImpropers(impropers[::2], np.tile([15.0, 0.1], (len(impropers[::2]), 1))),
    )
    return replace(PEPTIDE, bonded=bonded)


def stiffness_of(
    atoms: Atoms, x: NDArray[np.float64], free: NDArray[np.bool_], rest: float = REST
) -> NDArray[np.float64]:
    """Section 2 of docs/theory/minimize.md: the matrix (3 n, 3 n) of all atoms that move."""
    found, bonded = rest * np.eye(3 * len(atoms)), atoms.bonded
    parts = [
        (table, *distance(x[table.atoms]), 2 * table.parameters[:, 0]) for table in (bonded.bonds, bonded.urey_bradley)
    ]
    parts.append((bonded.angles, *angle(x[bonded.angles.atoms]), 2 * bonded.angles.parameters[:, 0]))
    held = bonded.harmonic_impropers
    parts.append((held, *torsion(x[held.atoms]), 2 * held.parameters[:, 0]))
    for table in (bonded.torsions, bonded.impropers):
        phi, slopes = torsion(x[table.atoms])
        k, n, phase = table.parameters.T
        parts.append((table, phi, slopes, np.maximum(-(n**2) * k * np.cos(n * phi - phase), 0)))
    for table, _, slopes, stiffness in parts:
        for of, slope, k in zip(table.atoms, slopes, stiffness, strict=True):
            places = (3 * of[:, None] + np.arange(3)).ravel()
            found[np.ix_(places, places)] += k * np.outer(slope, slope)
    moves = np.repeat(free, 3)
    return np.where(np.outer(moves, moves), found, rest * np.eye(3 * len(atoms)))


def built_blocks(plan: Minimizer, x: NDArray[np.float64], gradient: float | None = 0.0) -> NDArray[np.float64]:
    """Build the blocks (n_blocks, SIDE, SIDE) of a structure at positions (n, 3) A.

    gradient : root mean square, None before there is one
    """
    (recipe, driver), queue = plan._prepared(plan.energy, True), Queue(plan.energy.device, plan.energy.precision)
    (job,), _ = recipe.jobs([0], plan.atoms.positions[np.newaxis])
    job.start = job.origin = recipe.system.passes.encoded(x[np.newaxis])[0][0]
    driver.make_room([job])
    assert driver._bring([job]) == 1
    seats = driver._seats_for(job)
    driver._seat(seats, [job])
    if gradient is not None:
        state = recipe.method.first_state(int(plan.free.sum()))
        state[StepState.EVALUATIONS], state[StepState.GRADIENT2] = 1, plan.free.sum() * gradient**2
        queue.write(driver.scratch.buffer, state, job.place(recipe.pieces["state"]) // state.itemsize)
    seats.iterate(1)
    piece = recipe.pieces["inverses"]
    blocks = np.empty(piece.size // queue.dtype.itemsize, queue.dtype)
    driver.stop()
    queue.read(blocks, driver.scratch.buffer, job.place(piece) // queue.dtype.itemsize)
    return blocks.reshape(-1, SIDE, SIDE)


def places_of(order: NDArray[np.int64], first: int, end: int) -> NDArray[np.int64]:
    """Find the places in a matrix of the coordinates of atoms in these places of the order."""
    return (3 * order[first:end, None] + np.arange(3)).ravel()


def added_up(blocks: NDArray[np.float64], order: NDArray[np.int64]) -> NDArray[np.float64]:
    """Add up the whole preconditioner (3 n, 3 n)."""
    found = np.zeros((3 * len(order), 3 * len(order)))
    for k, block in enumerate(blocks):
        places = places_of(order, HALF * k, HALF * k + BLOCK)
        found[np.ix_(places, places)] += block[: len(places), : len(places)]
    return found


@pytest.mark.parametrize(("gradient", "rest"), [(0.0, REST), (60.0, REST + 60 / REACH), (None, REST + FIRST_STIFFNESS)])
def test_blocks_are_inverses_of_bonded_stiffness(device, precision, gradient, rest):
    """Blocks hold neighbouring atoms without the block before; frozen atoms have their own entries alone."""
    atoms, free = with_all_springs(), np.ones(len(PEPTIDE), bool)
    free[20:25] = False
    start = np.where(free[:, None], START, PEPTIDE.positions)
    plan = Minimizer(atoms, frozen=~free, model=VACUUM, precision=precision, device=device)
    blocks = built_blocks(plan, start, gradient)
    matrix, order = stiffness_of(atoms, start, free, rest), block_order(atoms)
    digits = 1e-12 if precision == "float64" else 1e-5
    assert len(blocks) == len(PEPTIDE) // HALF - 1
    for k, block in enumerate(blocks):
        places = places_of(order, HALF * k, HALF * k + BLOCK)
        expected = np.linalg.inv(matrix[np.ix_(places, places)])
        m, largest = len(expected), expected.max()
        if k > 0:
            shared = places[: 3 * HALF]
            expected[: 3 * HALF, : 3 * HALF] -= np.linalg.inv(matrix[np.ix_(shared, shared)])
        np.testing.assert_allclose(block[:m, :m], expected, rtol=1e-7, atol=digits * largest)
        np.testing.assert_array_equal(block, block.T)


def test_its_inverse_is_the_stiffness_within_blocks(device):
    """And it is positive definite: docs/theory/minimize.md, section 2."""
    atoms = with_all_springs()
    blocks, order = (
        built_blocks(Minimizer(atoms, model=VACUUM, precision="float64", device=device), START),
        block_order(atoms),
    )
    whole = added_up(blocks, order)
    assert np.linalg.eigvalsh(whole).min() > 0
    found, expected = np.linalg.inv(whole), stiffness_of(atoms, START, np.ones(len(atoms), bool))
    for k in range(len(blocks)):
        at = np.ix_(*[places_of(order, HALF * k, HALF * k + BLOCK)] * 2)
        np.testing.assert_allclose(found[at], expected[at], atol=1e-9 * expected.max())


def test_blocks_stay_positive_definite(device):
    """Blocks stay positive definite if atoms coincide, lie in a line, or are 0.001 A apart."""
    start = START.copy()
    start[1] = start[0]
    start[10] = start[11] + [0.001, 0, 0]
    i, j, k = PEPTIDE.bonded.angles.atoms[50]
    start[k] = 2 * start[j] - start[i]
    blocks = built_blocks(Minimizer(PEPTIDE, model=VACUUM, device=device), start).astype(np.float64)
    assert np.isfinite(blocks).all()
    found = np.linalg.eigvalsh(added_up(blocks, block_order(PEPTIDE)))
    assert found.min() > 0
    assert found.max() < 2 / REST


def test_hydrogens_stand_beside_their_atoms():
    """Also where a file has them at its end."""
    is_hydrogen = elements_of(PEPTIDE.labels) == "H"
    shuffled = PEPTIDE[np.argsort(is_hydrogen, kind="stable")]
    order = block_order(shuffled)
    assert sorted(order) == list(range(len(PEPTIDE)))
    place = np.argsort(order)
    bonds = shuffled.bonded.bonds.atoms
    ends = (elements_of(shuffled.labels) == "H")[bonds].any(axis=1)
    assert np.abs(place[bonds[ends, 0]] - place[bonds[ends, 1]]).max() <= 3


def test_restraints_count(device):
    """Restraints hold atoms in space, unless their bottom is flat."""
    held = [PositionalRestraint(50.0, atoms=[3, 4]), PositionalRestraint(7.0, atoms=[4], name="also")]
    flat = PositionalRestraint(1e3, atoms=[5], flat=0.5, name="flat")
    plan = Minimizer(PEPTIDE, terms=[*held, flat], model=VACUUM, device=device)
    blocks = plan._prepared(plan.energy, True)[0].method._preconditioner
    assert blocks is not None
    rest = np.empty(len(PEPTIDE))
    rest[blocks.order[blocks.order >= 0]] = blocks.rest[blocks.order >= 0]
    np.testing.assert_array_equal(rest[2:7], REST + np.array([0, 100, 114, 0, 0]))


def test_iterations_saved(device):
    """Without it about 1,100 iterations."""
    plan = Minimizer(PEPTIDE, tolerance=KJ_PER_MOL_NM, device=device)
    found = plan.minimize(START)
    assert found.stopped_by == "gradient"
    assert found.iterations < 400
    assert found.evaluations < 1.25 * found.iterations


def test_without_bonded_terms_there_is_none(device):
    bare = Minimizer(PEPTIDE, only_terms=["lennard_jones"], model=VACUUM, max_iterations=3, device=device)
    assert bare._prepared(bare.energy, True)[0].method._preconditioner is None
    assert bare.minimize().iterations == 3


@pytest.mark.slow
def test_groups_of_gpus(device, monkeypatch):
    """Several work-items per group, scalars in place of vectors: the same blocks, and as low a minimum."""
    options = dict(model=VACUUM, tolerance=0.05, device=device)
    expected = Minimizer(PEPTIDE, **options).minimize(START)
    exact = built_blocks(Minimizer(PEPTIDE, **options), START)
    shape = pele_ocl.minimize.method.Shape(128, 32, 64, 64, 2)
    monkeypatch.setattr("pele_ocl.minimize.method.Shape.of", lambda *_: shape)
    monkeypatch.setattr("pele_ocl.minimize.preconditioner._fits", lambda queue: True)
    plan = Minimizer(PEPTIDE, **options)
    blocks = built_blocks(plan, START)
    np.testing.assert_allclose(blocks, exact, rtol=0, atol=1e-5 * np.abs(exact).max())
    found = plan.minimize_batch(np.stack([START, PEPTIDE.positions]))
    assert found[0].energy_after.total == pytest.approx(expected.energy_after.total, abs=2)
    np.testing.assert_array_equal(found[0].positions, plan.minimize(START).positions)


def test_kinds_that_springs_know_are_springs_alone():
    """Refuse kinds without a branch in cl/minimize/springs.clh, also ones that are not made yet."""
    later = max(BondedKind) + 1
    parts = [Tasks.plain(kind, np.array([[0, 1, 2, 3]]), 0, np.ones((1, 4))) for kind in (*BondedKind, later)]
    assert set(Tasks.joined(parts).springs.kinds.tolist()) == {
        BondedKind.STRETCH, BondedKind.BEND, BondedKind.TWIST, BondedKind.HOLD
    }  # fmt: skip


def test_terms_say_if_they_have_springs():
    atoms = of_every_kind(12)
    springs = {term: len(Tasks.of(atoms, None, VACUUM, (term,)).springs) for term in TABLES_OF_TERMS}
    assert {term for term, n in springs.items() if n} == {t for t, of in TABLES_OF_TERMS.items() if of.has_springs}
