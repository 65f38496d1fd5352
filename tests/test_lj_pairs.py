"""Pairs with Lennard-Jones parameters of their own (NBFIX): from files to energies, gradients and shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from amber_helpers import content, rendered
from binding_helpers import LIGAND, N, complex_atoms, frames
from bonded_helpers import of_every_kind
from conftest import require
from interop_helpers import assert_same_energies, openmm_energies

from pele_ocl import (
    Atoms,
    Binding,
    Energy,
    InputError,
    PositionalRestraint,
    SolventModel,
    all_pairs,
    energy,
    from_openmm,
    minimize,
    minimize_many,
    nonbond,
)
from pele_ocl.atoms import Bonded, LennardJonesPairs, OneFourPairs
from pele_ocl.atoms.combining import MOST_PAIRS, pairs_of_types, rule_of
from pele_ocl.binding.alanine import to_alanine, unbonded
from pele_ocl.formats import read_topology
from pele_ocl.pairs import nonbonded_pairs, own_lj_pairs
from pele_ocl.reference.energy import energy as reference

VACUUM = SolventModel(gb="none")
CHOSEN = np.array([[0, 40], [3, 60], [60, 10], [12, 90], [33, 77], [5, 41]])


def with_pairs(atoms: Atoms, pairs=CHOSEN, factor: float = 1.3) -> Atoms:
    """Give some pairs of atoms their own parameters, which differ much from the rule's."""
    i, j = pairs.T
    sigma = factor * (atoms.lj_sigma[i] + atoms.lj_sigma[j]) / 2
    table = LennardJonesPairs(pairs, np.column_stack([sigma, 5 * np.sqrt(atoms.lj_epsilon[i] * atoms.lj_epsilon[j])]))
    return replace(atoms, bonded=replace(atoms.bonded or Bonded(), lj_pairs=table))


@pytest.mark.parametrize("cutoff", [None, 9.0])
@pytest.mark.parametrize("variant", ["rows", "blocks", "squares"])
def test_energies_and_gradient_are_those_of_the_definition(device, precision, variant, cutoff):
    require(device, precision)
    atoms = with_pairs(of_every_kind(150))
    plan = Energy(
        atoms, variant=variant, precision=precision, cutoff=cutoff, per_atom=variant != "squares", device=device
    )
    found, expected = plan.evaluate(atoms.positions), reference(atoms, cutoff=cutoff)
    plain = reference(replace(atoms, bonded=replace(atoms.bonded, lj_pairs=LennardJonesPairs())), cutoff=cutoff)
    tolerance = 1e-11 if precision == "float64" else 3e-6
    of_pairs, scale = expected.per_atom["lennard_jones"], np.abs(expected.per_atom["lennard_jones"]).sum()
    assert abs(of_pairs.sum() - plain.per_atom["lennard_jones"].sum()) > 1e-3
    assert float(found.terms.lennard_jones) == pytest.approx(of_pairs.sum(), abs=tolerance * scale)
    if variant != "squares":
        assert found.per_atom.lennard_jones == pytest.approx(of_pairs, abs=tolerance * scale)
    assert found.gradient == pytest.approx(expected.gradient, abs=tolerance * np.abs(expected.gradient).max())


def test_the_gradient_is_that_of_the_energy():
    atoms = with_pairs(of_every_kind(150))
    i, step = CHOSEN[0, 0], 1e-5
    ends = [atoms.positions.copy() for _ in range(2)]
    ends[0][i, 0] -= step
    ends[1][i, 0] += step
    low, high = (float(energy(atoms.moved(x), precision="float64").total) for x in ends)
    slope = energy(atoms, precision="float64").gradient[i, 0]
    assert (high - low) / (2 * step) == pytest.approx(slope, rel=1e-5)


def test_batches_frozen_atoms_and_single_terms():
    atoms = with_pairs(of_every_kind(150))
    rng = np.random.default_rng(0)
    moved = atoms.positions + rng.normal(0, 0.05, (3, 150, 3))
    batch = Energy(atoms, precision="float64").evaluate_batch(moved)
    for k in range(3):
        assert batch.terms.lennard_jones[k] == pytest.approx(
            reference(atoms.moved(moved[k])).per_atom["lennard_jones"].sum(), rel=1e-11
        )
    whole = energy(atoms, precision="float64")
    frozen = np.arange(150) < 100
    part = Energy(atoms, precision="float64", frozen=frozen).evaluate(atoms.positions)
    assert float(part.total) == pytest.approx(float(whole.total), rel=1e-11)
    assert part.gradient[~frozen] == pytest.approx(whole.gradient[~frozen], rel=1e-9, abs=1e-9)
    alone = energy(atoms, only_terms=["lennard_jones"], terms=[PositionalRestraint(1.0)], precision="float64")
    assert float(alone.terms.lennard_jones) == pytest.approx(float(whole.terms.lennard_jones), rel=1e-12)
    assert float(alone.terms.restraint) == 0
    assert energy(atoms, only_terms=["coulomb"]).terms.names == ("coulomb",)


def test_some_of_the_atoms_keep_their_pairs():
    atoms = with_pairs(of_every_kind(150))
    some = atoms[np.r_[0:50, 60:70]]
    assert sorted(map(tuple, np.sort(some.bonded.lj_pairs.atoms).tolist())) == [(0, 40), (3, 50), (5, 41), (10, 50)]
    assert float(energy(some, precision="float64").total) == pytest.approx(reference(some).total, rel=1e-11)


def beside(separation: float, own: float) -> Atoms:
    """Two argons, whose well of their own is at another distance than that by the rule."""
    table = LennardJonesPairs([[0, 1]], [[own, 0.5]])
    return Atoms(
        [[0, 0, 0], [separation, 0, 0]], [0.0, 0.0], lj_sigma=[3.4, 3.4], lj_epsilon=[0.24, 0.24],
        bonded=Bonded(lj_pairs=table),
    )  # fmt: skip


def test_a_minimum_is_that_of_the_pair():
    found = minimize(beside(4.2, 3.0), model=VACUUM, tolerance=1e-4, precision="float64")
    assert float(found.energy_after.total) == pytest.approx(-0.5, abs=1e-6)
    assert np.linalg.norm(np.diff(found.atoms.positions, axis=0)) == pytest.approx(3.0 * 2 ** (1 / 6), abs=1e-3)


def test_many_molecules_with_and_without_such_pairs():
    plain = replace(beside(4.2, 3.0), bonded=Bonded())
    molecules = [beside(4.2, 3.0), plain, beside(4.5, 2.5), beside(4.0, 3.0)]
    distances = [
        np.linalg.norm(np.diff(each.atoms.positions, axis=0))
        for each in minimize_many(molecules, model=VACUUM, tolerance=1e-3)
    ]
    assert distances == pytest.approx(np.array([3.0, 3.4, 2.5, 3.0]) * 2 ** (1 / 6), abs=0.02)


def across() -> Atoms:
    """Make the complex with pairs between its parts, the nearest among them, and within one."""
    atoms = complex_atoms()
    apart = np.linalg.norm(atoms.positions[:N, None] - atoms.positions[N:], axis=2)
    i, j = np.unravel_index(np.argmin(apart), apart.shape)
    return with_pairs(atoms, np.array([[i, N + j], [30, N + 40], [10, 80], [N + 3, N + 70]]))


@pytest.mark.parametrize("idecomp", [3, 4])
def test_shares_of_binding_energies_add_up(device, idecomp):
    atoms = across()
    found = Binding(atoms, LIGAND, idecomp=idecomp, precision="float64", device=device).evaluate_batch(frames(3))
    plain = Binding(complex_atoms(), LIGAND, precision="float64", device=device).evaluate_batch(frames(3))
    expected = [reference(atoms.moved(x), VACUUM) for x in frames(3)]
    lj = np.array([of.per_atom["lennard_jones"].sum() for of in expected])
    assert np.asarray(found.complex.lennard_jones) == pytest.approx(lj, rel=1e-9)
    assert np.abs(np.asarray(found.delta.lennard_jones) - np.asarray(plain.delta.lennard_jones)).max() > 1e-3
    of = found.decomposition
    for kind, terms in (("complex", found.complex), ("delta", found.delta)):
        assert of.pairs[kind].total.sum() == pytest.approx(terms.total.mean(), abs=1e-9)
        assert of.pairs[kind].mean.sum(axis=1) == pytest.approx(of.per_residue[kind].mean, abs=1e-9)


def test_pairs_stay_where_bonded_terms_go():
    atoms = across()
    assert len(own_lj_pairs(unbonded(atoms))) == len(own_lj_pairs(atoms)) == 4
    residue = next(k for k in range(1, 5) if atoms.labels.residues[k].name not in ("ALA", "GLY", "PRO"))
    of = atoms.labels.residue_index == residue
    gamma, backbone = (int(np.flatnonzero(of & (atoms.labels.names == name))[0]) for name in ("CG", "O"))
    mutant = to_alanine(with_pairs(complex_atoms(), np.array([[gamma, N + 1], [backbone, N + 1]])), residue)
    kept = mutant.atoms.bonded.lj_pairs.atoms
    assert mutant.kept[kept].tolist() == [[backbone, N + 1]]


def test_what_cannot_hold_such_pairs_says_so():
    atoms = across()
    with pytest.raises(InputError, match=r"parameters \(NBFIX\), which pair lists cannot contain"):
        nonbond(atoms, all_pairs(atoms))
    with pytest.raises(InputError, match="the Lennard-Jones pairs name the atoms 1 and 2 more than once"):
        Bonded(lj_pairs=LennardJonesPairs([[1, 2], [2, 1]], [[1.0, 1.0]] * 2))
    with pytest.raises(InputError, match="the Lennard-Jones pairs name the atoms 2 and 1, which are excluded or a 1-4"):
        Bonded(lj_pairs=LennardJonesPairs([[2, 1]], [[1.0, 1.0]]), one_four=OneFourPairs([[1, 2]], [[0, 1, 1]]))
    with pytest.raises(InputError, match="sigma of number 0 of the Lennard-Jones pairs is -1"):
        Bonded(lj_pairs=LennardJonesPairs([[2, 1]], [[-1.0, 1.0]]))


def test_pairs_of_types_are_bounded():
    types = np.arange(4000) % 2
    with pytest.raises(InputError, match=f"4,000,000 pairs .* more than {MOST_PAIRS:,}; leave out solvent, ions"):
        pairs_of_types(types, np.array([[0, 1]]), np.ones((2, 2)), np.ones((2, 2)), np.empty((0, 2), np.int32))


def test_the_rule_is_that_of_most_pairs():
    own, wells = np.array([2.0, 3.0, 4.0, 2.5]), np.array([0.1, 0.2, 0.3, 0.4])
    epsilon = np.sqrt(np.outer(wells, wells))
    for rule, sigma in (("arithmetic", (own[:, None] + own) / 2), ("geometric", np.sqrt(np.outer(own, own)))):
        sigma[0, 3] = sigma[3, 0] = 3.3
        found, astray = rule_of(sigma, epsilon)
        assert (found, astray.tolist()) == (rule, [[0, 3]])
    types = np.array([3, 0, 3, 1, 0])
    table = pairs_of_types(types, np.array([[0, 3], [0, 0]]), sigma, epsilon, np.array([[2, 1]]))
    assert sorted(map(tuple, table.atoms.tolist())) == [(0, 1), (0, 4), (1, 4), (2, 4)]
    by_pair = dict(zip(map(tuple, table.atoms.tolist()), table.parameters[:, 0].tolist(), strict=True))
    assert by_pair == {(0, 1): 3.3, (0, 4): 3.3, (2, 4): 3.3, (1, 4): 2.0}


def parameters_of(folder, made) -> Atoms:
    (folder / "x.parm7").write_text(rendered(made))
    return read_topology(folder / "x.parm7").parameters


def test_amber_topologies_with_pairs_of_their_own(tmp_path):
    made = content()
    name, values = made["LENNARD_JONES_ACOEF"]
    index = np.array(made["NONBONDED_PARM_INDEX"][1])
    types = np.array(made["ATOM_TYPE_INDEX"][1])
    n = int(np.sqrt(len(index)))
    t, u = 0, n - 1
    changed = list(values)
    changed[int(index[t * n + u]) - 1] *= 1.5
    plain = parameters_of(tmp_path, made)
    atoms = parameters_of(tmp_path, {**made, "LENNARD_JONES_ACOEF": (name, changed)})
    left_out = nonbonded_pairs(atoms).excluded
    near = {tuple(sorted(pair)) for pair in left_out.tolist()}
    expected = {
        tuple(sorted((int(i), int(j)))) for i in np.flatnonzero(types == t + 1) for j in np.flatnonzero(types == u + 1)
    } - near
    assert {tuple(pair) for pair in atoms.bonded.lj_pairs.atoms.tolist()} == expected
    assert any(
        f"{len(expected):,} pairs of atoms have special Lennard-Jones parameters" in note for note in atoms.notes
    )
    assert (atoms.lj_sigma == plain.lj_sigma).all()
    # A of a pair is 4 epsilon sigma^12, B = 4 epsilon sigma^6.
    sigma, epsilon = atoms.bonded.lj_pairs.parameters[0]
    i, j = atoms.bonded.lj_pairs.atoms[0]
    mean = (plain.lj_sigma[i] + plain.lj_sigma[j]) / 2
    b = 4 * np.sqrt(plain.lj_epsilon[i] * plain.lj_epsilon[j]) * mean**6
    assert 4 * epsilon * sigma**12 == pytest.approx(1.5 * b * mean**6, rel=1e-5)
    assert 4 * epsilon * sigma**6 == pytest.approx(b, rel=1e-5)


@pytest.mark.slow  # OpenMM takes half a minute to set up this force field
def test_charmm36_with_arginine_and_acids():
    pytest.importorskip("openmm")
    from test_interop_openmm import CHOICES, structure

    app = pytest.importorskip("openmm.app")
    pdb = structure("ubiquitin")
    system = app.ForceField("charmm36_2024.xml").createSystem(pdb.topology, **CHOICES)
    atoms = from_openmm(pdb.topology, system, pdb.positions)
    assert len(atoms.bonded.lj_pairs) == 288  # 12 nitrogens of arginines, 24 oxygens of acids
    assert_same_energies(atoms, system)
    found = energy(atoms, model=SolventModel.like("openmm", gb="none"), precision="float64")
    total = sum(value for name, value in openmm_energies(system, atoms.positions).items())
    assert float(found.total) == pytest.approx(total, rel=1e-7)
