"""Virtual sites against OpenMM: places, energies, forces, minima and dynamics; and rigid water, which is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pele_ocl import Ensemble, InputError, Minimizer, Simulation, SolventModel, from_openmm, minimize
from pele_ocl.atoms import Bonds, Labels, VirtualSites
from pele_ocl.atoms.sites import SiteRule
from pele_ocl.contract import of_structure
from pele_ocl.energy import Energy
from pele_ocl.formats.amber import read_sites

openmm = pytest.importorskip("openmm")
app = pytest.importorskip("openmm.app")

VACUUM = SolventModel(gb="none")
KINDS = ("two", "three", "out of plane", "local", "collinear")


def site(kind: str, first: int):
    """A virtual site of OpenMM over the atoms first, first + 1 and first + 2."""
    a, b, c = first, first + 1, first + 2
    return {
        "two": lambda: openmm.TwoParticleAverageSite(a, b, 0.7, 0.3),
        "three": lambda: openmm.ThreeParticleAverageSite(a, b, c, 0.6, 0.3, 0.1),
        "out of plane": lambda: openmm.OutOfPlaneSite(a, b, c, -0.3, -0.4, 5.0),
        "local": lambda: openmm.LocalCoordinatesSite(
            a,
            b,
            c,
            openmm.Vec3(0.5, 0.3, 0.2),
            openmm.Vec3(-1, 0.4, 0.6),
            openmm.Vec3(-1, 1, 0),
            openmm.Vec3(0.03, 0.02, -0.05),
        ),
        # As openmm.app places the lone pairs of halogens in CGenFF.
        "collinear": lambda: openmm.LocalCoordinatesSite(
            a, b, c, openmm.Vec3(1, 0, 0), openmm.Vec3(1, -1, 0), openmm.Vec3(0, -1, 1), openmm.Vec3(0.16, 0, 0)
        ),
    }[kind]()


def made(kinds=KINDS, constrained=False, own=False):
    """System, Topology and positions (nm): a molecule of three atoms and a site for each kind.

    own : whether each molecule has a second site, which shares the parents
    """
    system, topology, nonbonded = openmm.System(), app.Topology(), openmm.NonbondedForce()
    nonbonded.setNonbondedMethod(nonbonded.NoCutoff)
    bonds, chain, rng, positions = openmm.HarmonicBondForce(), topology.addChain(), np.random.default_rng(3), []
    element = app.element.carbon
    for k, kind in enumerate(kinds):
        first, residue = system.getNumParticles(), topology.addResidue("MOL", chain)
        of = [system.addParticle(12.0) for _ in range(3)]
        corners = np.array([[0, 0, 0], [0.14, 0.01, 0], [0.04, 0.13, 0.02]])
        corners += np.array([0.55 * (k % 3), 0.55 * (k // 3), 0.02 * k])
        atoms = [topology.addAtom(f"C{j}", element, residue) for j in range(3)]
        sites = [kind, "two" if kind == "out of plane" else "out of plane"] if own else [kind]
        for j, each in enumerate(sites):
            system.setVirtualSite(system.addParticle(0.0), site(each, first))
            topology.addAtom(f"M{j}", None, residue)
        for i, j, length in ((0, 1, 0.14), (0, 2, 0.14), (1, 2, 0.16)):
            if constrained:
                system.addConstraint(of[i], of[j], length)
            else:
                bonds.addBond(of[i], of[j], length, 2e5)
        for i, j in ((0, 1), (0, 2)):
            topology.addBond(atoms[i], atoms[j])
        charges = rng.normal(0, 0.15, 3 + len(sites))
        for charge in charges:
            nonbonded.addParticle(charge, 0.3, 0.4)
        n = 3 + len(sites)
        for i in range(n):
            for j in range(i):
                nonbonded.addException(first + i, first + j, 0, 0.1, 0)
        positions += [*corners, *(corners[0] + [0.01, 0.01, 0.02] * np.array(j + 1) for j in range(len(sites)))]
    for force in (bonds, nonbonded):
        system.addForce(force)
    return system, topology, np.array(positions)


class Theirs:
    """Reference energy (kcal/mol), gradient (kcal/mol/A) and positions (A) by OpenMM, which places the sites itself."""

    def __init__(self, system) -> None:
        self.context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatform("Reference"))

    def at(self, positions):
        self.context.setPositions(np.asarray(positions) / 10)
        self.context.computeVirtualSites()
        state = self.context.getState(getEnergy=True, getForces=True, getPositions=True)
        return (
            state.getPotentialEnergy()._value / 4.184,
            -state.getForces(asNumpy=True)._value / 41.84,
            10 * state.getPositions(asNumpy=True)._value,
        )


@pytest.mark.parametrize("kinds", [(kind,) for kind in KINDS], ids=KINDS)
def test_sites_are_placed_and_pass_on_their_forces_as_openmm_has_it(kinds):
    system, topology, positions = made(kinds, own=True)
    atoms = from_openmm(topology, system, positions)
    energy, gradient, places = Theirs(system).at(atoms.positions)
    np.testing.assert_allclose(atoms.virtual_sites.placed(atoms.positions), places, atol=1e-10)
    found = Energy(atoms, model=VACUUM, rebuild_sites=True).evaluate(atoms.positions)
    assert found.total == pytest.approx(energy, abs=1e-3)
    np.testing.assert_allclose(found.gradient, np.where(atoms.is_site[:, None], 0, gradient), atol=1e-3)
    assert (found.gradient[atoms.is_site] == 0).all()


def test_sites_off_their_rules_are_told():
    """Of files with few decimals they are not; energies are of the positions given, minima place the sites first."""
    system, topology, positions = made()
    atoms = from_openmm(topology, system, positions)
    placed = atoms.moved(atoms.virtual_sites.placed(atoms.positions))
    rounded = placed.moved(np.round(placed.positions, 2))
    assert not [finding for finding in of_structure(rounded) if "virtual site" in finding.text]
    moved = placed.positions.copy()
    own = placed.virtual_sites.atoms
    moved[own[1]] += [0.3, 0.4, 0.0]
    moved[own[3]] += [0.0, 0.0, 0.1]
    off = placed.moved(moved)
    text = f"2 virtual sites were up to 0.50 A from the positions defined by their rules ({off.describe(int(own[1]))})"
    given, repaired = of_structure(off)[-1], of_structure(off, places_sites=True)[-1]
    assert (given.action, given.text) == ("noted", f"{text}; the energy is that of the given positions")
    assert (repaired.action, repaired.text) == ("repaired", f"{text}; their positions were recomputed")
    assert given.atoms == repaired.atoms == (int(own[1]), int(own[3]))
    assert given in Energy(off, model=VACUUM).evaluate().findings
    assert given.text in Energy(off, model=VACUUM).evaluate().notes


def test_energies_are_of_the_positions_given_unless_sites_are_rebuilt():
    system, topology, positions = made()
    atoms = from_openmm(topology, system, positions)
    given = Energy(atoms, model=VACUUM).evaluate(atoms.positions)
    placed = Energy(atoms, model=VACUUM).evaluate(atoms.virtual_sites.placed(atoms.positions))
    rebuilt = Energy(atoms, model=VACUUM, rebuild_sites=True).evaluate(atoms.positions)
    assert abs(given.total - placed.total) > 1e-3
    assert rebuilt.total == pytest.approx(placed.total, abs=1e-4)


@pytest.fixture(scope="module")
def molecule():
    system, topology, positions = made(own=True)
    return system, from_openmm(topology, system, positions)


def test_minima_keep_sites_in_their_places(molecule):
    system, atoms = molecule
    theirs = Theirs(system)
    alone = minimize(atoms, model=VACUUM, tolerance=0.05)
    energy, gradient, places = theirs.at(alone.positions)
    assert alone.energy_after.total < alone.energy_before.total - 0.1
    assert alone.energy_after.total == pytest.approx(energy, abs=1e-3)
    np.testing.assert_allclose(alone.positions, places, atol=1e-6)
    np.testing.assert_allclose(alone.gradient, np.where(atoms.is_site[:, None], 0, gradient), atol=1e-2)
    ensemble = Ensemble([atoms, atoms], model=VACUUM)
    (first, second) = ensemble.minimize(tolerance=0.05)
    np.testing.assert_array_equal(first.positions, second.positions)
    assert first.energy_after.total == pytest.approx(alone.energy_after.total, abs=1e-3)
    ensemble.evaluate()
    np.testing.assert_allclose(ensemble.energies, first.energy_after.total, atol=1e-3)


def test_a_frozen_molecule_keeps_its_sites_and_a_frozen_site_follows_its_parents(molecule):
    system, atoms = molecule
    frozen = np.arange(len(atoms)) < 5  # a molecule and its sites
    frozen[9] = True  # a site alone
    found = Minimizer(atoms, model=VACUUM, frozen=frozen, tolerance=0.05).minimize()
    np.testing.assert_array_equal(found.positions[:5], atoms.positions[:5])
    np.testing.assert_allclose(found.positions[5:], Theirs(system).at(found.positions)[2][5:], atol=1e-6)


def test_dynamics_conserve_energy_and_keep_sites_in_their_places(molecule):
    _, atoms = molecule
    simulation = Simulation([atoms], 2, model=VACUUM, integrator="verlet", timestep=0.5, temperature=50.0)
    totals = []
    for _ in range(3):
        simulation.run(100)
        totals.append(simulation.potential_energies + simulation.kinetic_energies)
    assert np.ptp(totals, axis=0).max() < 0.05
    for positions in simulation.ensemble.positions[:]:
        np.testing.assert_allclose(atoms.virtual_sites.placed(positions), positions, atol=1e-6)


def test_rigid_molecules_are_refused_where_they_would_fall_apart():
    system, topology, positions = made(("two",), constrained=True)
    atoms = from_openmm(topology, system, positions)
    assert len(atoms.rigid_pairs) == 3
    reason = "constrained in the input and have no bond energy"
    for move in (lambda: minimize(atoms, model=VACUUM), lambda: Simulation([atoms], model=VACUUM)):
        with pytest.raises(InputError, match=reason):
            move()
    assert reason in Ensemble([atoms], model=VACUUM).minimize().errors[0]
    assert np.isfinite(Energy(atoms, model=VACUUM).evaluate(atoms.positions).total)


def test_sites_whose_rule_is_unknown_are_refused_by_all_that_moves_them(molecule):
    _, atoms = molecule
    part = atoms[np.arange(len(atoms)) > 0]  # whose first site lost a parent
    assert part.virtual_sites.unknown.tolist() == [2, 3]
    assert np.isfinite(Energy(part, model=VACUUM).evaluate(part.positions).total)
    for move in (lambda: minimize(part, model=VACUUM), lambda: Simulation([part], model=VACUUM)):
        with pytest.raises(InputError, match=r"atom 2 .* is a virtual site with an unknown rule or"):
            move()


def test_other_virtual_sites_are_refused_by_their_name():
    with pytest.raises(InputError, match="placed by another virtual site"):
        VirtualSites.of([SiteRule(0, [1, 2], [0.5, 0.5]), SiteRule(1, [2, 3], [0.5, 0.5])])
    with pytest.raises(InputError, match="virtual site 0 has weights"):
        VirtualSites.of([SiteRule(0, [1, 2], [0.5, 0.6])])


def water(n_points: int) -> tuple[Labels, Bonds]:
    n = 3 + n_points
    names, elements = ["O", "H1", "H2", "EP1", "EP2"][:n], ["O", "H", "H", "X", "X"][:n]
    labels = Labels(
        np.array(names), np.array(elements), np.full(n, "WAT"), np.ones(n, np.int32), np.full(n, ""), np.full(n, ""),
        np.zeros(n, np.int32),
    )  # fmt: skip
    to_point = 0.15 if n_points == 1 else 0.7
    lengths = {(0, 1): 0.9572, (0, 2): 0.9572, (1, 2): 1.5136} | {(0, k): to_point for k in range(3, n)}
    return labels, Bonds(np.array([*lengths]), np.array([[553.0, r0] for r0 in lengths.values()]))


@pytest.mark.parametrize("n_points", [1, 2])
def test_extra_points_of_ambers_water_are_those_of_the_water_model(n_points):
    """OpenMM's own reader of prmtop puts the lone pairs of five-site water on the side of the hydrogens."""
    labels, bonds = water(n_points)
    sites = read_sites(labels.elements == "X", labels, bonds)
    middle = np.sqrt(0.9572**2 - 0.7568**2)
    places = np.zeros((3 + n_points, 3))
    places[1:3] = [[0.7568, middle, 0], [-0.7568, middle, 0]]
    found = sites.placed(places)[3:]
    if n_points == 1:
        np.testing.assert_allclose(found, [[0, 0.15, 0]], atol=1e-6)
        return
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 0.7, atol=1e-4)
    cosine = found[0] @ found[1] / 0.49
    assert np.degrees(np.arccos(cosine)) == pytest.approx(109.47, abs=0.05)
    assert (found[:, 1] < 0).all()  # away from the hydrogens


def test_extra_points_of_other_residues_have_no_rule():
    labels, bonds = water(1)
    other = replace(labels, elements=np.array(["S", "H", "H", "X"]))
    assert read_sites(other.elements == "X", other, bonds).unknown.tolist() == [3]


def test_a_site_in_its_parent_is_no_clash(molecule):
    _, atoms = molecule
    placed = atoms.moved(atoms.virtual_sites.placed(atoms.positions))
    assert not [finding for finding in of_structure(placed) if "overlap" in finding.text]
    plain = replace(placed, virtual_sites=None)
    near = plain.positions[0] + 0.3
    clash = plain.moved(np.where(np.arange(len(plain))[:, None] == 3, near - 0.1, plain.positions))
    assert [finding for finding in of_structure(clash) if "overlap" in finding.text]


def test_sites_follow_atoms_that_are_taken_and_have_no_mass(molecule):
    _, atoms = molecule
    part = atoms[np.arange(len(atoms)) >= 5]
    np.testing.assert_allclose(
        part.virtual_sites.placed(part.positions), atoms.virtual_sites.placed(atoms.positions)[5:]
    )
    assert (atoms.masses[atoms.is_site] == 0).all()
