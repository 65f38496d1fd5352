"""OpenMM's Systems as Atoms, term by term against its Reference platform."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from interop_helpers import assert_same_energies, openmm_energies

from pele_ocl import Atoms, InputError, SolventModel, from_openmm, solvent

openmm = pytest.importorskip("openmm")
app = pytest.importorskip("openmm.app")

STRUCTURES = Path(__file__).parent.parent / "data" / "structures"
CHOICES = {"nonbondedMethod": app.NoCutoff, "constraints": None, "rigidWater": False}


@cache
def structure(name):
    return app.PDBFile(str(STRUCTURES / f"{name}.pdb"))


def system_of(name, *files, **more):
    """A fresh System, which may be changed."""
    return app.ForceField(*files).createSystem(structure(name).topology, **{**CHOICES, **more})


def taken(name, system, **more):
    return from_openmm(structure(name).topology, system, structure(name).positions, **more)


@pytest.mark.parametrize(
    ("name", "files", "radii"),
    [
        ("ubiquitin", ("amber14-all.xml", "implicit/obc2.xml"), "file (mbondi2)"),
        ("hexapeptide", ("amber19-all.xml", "implicit/gbn2.xml"), "file (mbondi3)"),
        ("hexapeptide", ("amber14-all.xml", "implicit/gbn.xml"), "file (bondi)"),
        ("hexapeptide", ("amber99sb.xml", "amber99_obc.xml"), "file"),
        # OpenMM takes seven seconds to load this one.
        pytest.param("hexapeptide", ("charmm36.xml",), "mbondi2", marks=pytest.mark.slow),
    ],
)
def test_every_term_of_a_force_field(name, files, radii):
    system = system_of(name, *files)
    atoms = taken(name, system)
    assert_same_energies(atoms, system)
    assert atoms.gb_radii_set == radii
    assert atoms.labels.residues[0].name == "MET"
    assert len(atoms.bonds) == structure(name).topology.getNumBonds()


@pytest.mark.parametrize("gb", ["hct", "obc1", "obc2", "gbn", "gbn2"])
def test_radii_of_its_solvent_model_give_its_energy(gb):
    system = system_of("hexapeptide", "amber14-all.xml", f"implicit/{gb}.xml")
    atoms = taken("hexapeptide", system)
    # openmm.app's constant of Coulomb differs from OpenMM's by 2e-7, and its surface tension has nine figures.
    expected = openmm_energies(system, atoms.positions)["CustomGBForce"]
    model = SolventModel.like("openmm", gb=gb)
    assert solvent(atoms, precision="float64", model=model).total == pytest.approx(expected, rel=3e-7)
    own = replace(model, coulomb_constant=1389.35485 / 4.184, surface_tension=28.3919551 / 4.184 / (400 * np.pi))
    assert solvent(atoms, precision="float64", model=own).total == pytest.approx(expected, rel=1e-11)


def nucleoside():
    """Adenosine of DNA with both ends free, from the template of PDBFixer."""
    folder = Path(pytest.importorskip("pdbfixer").__file__).parent / "templates"
    pdb = app.PDBFile(str(folder / "DA.pdb"))
    modeller = app.Modeller(pdb.topology, pdb.positions)
    modeller.delete([atom for atom in modeller.topology.atoms() if atom.name in ("P", "OP1", "OP2", "OP3")])
    modeller.addHydrogens()
    return modeller


def test_a_nucleotide():
    made = nucleoside()
    system = app.ForceField("amber14-all.xml").createSystem(made.topology, **CHOICES)
    atoms = from_openmm(made.topology, system, made.positions)
    assert_same_energies(atoms, system)
    assert len(atoms.bonded.impropers) > 0


def test_ions():
    topology = app.Topology()
    chain = topology.addChain("A")
    for name in ("CA", "ZN", "NA"):
        topology.addAtom(name, app.element.get_by_symbol(name.capitalize()), topology.addResidue(name, chain))
    system = app.ForceField("amber14/tip3p.xml").createSystem(topology)
    atoms = from_openmm(topology, system, [[0, 0, 0], [0.4, 0, 0], [0, 0.5, 0]])
    assert_same_energies(atoms, system)
    assert atoms.charges.tolist() == [2.0, 2.0, 1.0]
    assert atoms.gb_radii is None
    assert any("need bonds" in note for note in atoms.notes)


def test_notes_say_what_is_not_taken():
    system = system_of("hexapeptide", "amber14-all.xml", constraints=app.HBonds, nonbondedMethod=app.CutoffNonPeriodic)
    notes = " ".join(taken("hexapeptide", system).notes)
    assert "46 bonds are constrained in the System and have no bond energy" in notes
    assert "cutoff is not used" in notes


def test_radii_that_are_asked_for():
    system = system_of("hexapeptide", "amber14-all.xml", "implicit/obc2.xml")
    atoms = taken("hexapeptide", system, radii="bondi")
    assert atoms.gb_radii_set == "bondi"
    assert set(atoms.gb_radii[atoms.labels.elements == "H"]) == {1.2}
    with pytest.raises(InputError, match="set of GB radii"):
        taken("hexapeptide", system, radii="great")


def angle_energy(system):
    system.addForce(openmm.CustomAngleForce("theta"))


def other_pairs(system):
    force = openmm.CustomNonbondedForce("r")
    for _ in range(system.getNumParticles()):
        force.addParticle([])
    system.addForce(force)


def second_nonbonded(system):
    system.addForce(openmm.NonbondedForce())


def odd_torsion(system):
    force = openmm.CustomTorsionForce("k*cos(theta)")
    force.addPerTorsionParameter("k")
    force.addTorsion(0, 1, 2, 3, [1.0])
    system.addForce(force)


def odd_bond(system):
    force = openmm.CustomBondForce("k*r^3")
    force.addPerBondParameter("k")
    force.addBond(0, 1, [1.0])
    system.addForce(force)


def own_gb(system):
    force = openmm.CustomGBForce()
    force.addPerParticleParameter("charge")
    system.addForce(force)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (angle_energy, "the System has a CustomAngleForce, which is not supported; remove that force"),
        (other_pairs, "CustomNonbondedForce .* in addition to other Lennard-Jones terms"),
        (second_nonbonded, "the System has 2 forces of the class NonbondedForce; expected exactly one"),
        (odd_torsion, "CustomTorsionForce .* only harmonic impropers are supported"),
        (odd_bond, "CustomBondForce .* 'k\\*r\\^3', which is not supported"),
        (own_gb, "CustomGBForce .* not one of openmm.app's"),
    ],
)
def test_forces_that_are_not_computed_are_named(change, message):
    system = system_of("hexapeptide", "amber14-all.xml")
    change(system)
    with pytest.raises(InputError, match=message):
        taken("hexapeptide", system)


def tables_of_types(change=1.0):
    """Two atoms of two types whose pair has `change` times the coefficients of the rule, and a third alone."""
    system, topology = openmm.System(), app.Topology()
    chain = topology.addChain("A")
    nonbonded = openmm.NonbondedForce()
    sigma, epsilon = np.array([0.3, 0.35]), np.array([0.5, 0.8])
    a = 4 * np.sqrt(np.outer(epsilon, epsilon)) * ((sigma[:, None] + sigma) / 2) ** 12
    b = 4 * np.sqrt(np.outer(epsilon, epsilon)) * ((sigma[:, None] + sigma) / 2) ** 6
    a[0, 1] = a[1, 0] = change * a[0, 1]
    custom = openmm.CustomNonbondedForce("acoef(type1, type2)/r^12 - bcoef(type1, type2)/r^6;")
    for name, table in (("acoef", a), ("bcoef", b)):
        custom.addTabulatedFunction(name, openmm.Discrete2DFunction(2, 2, table.ravel()))
    custom.addPerParticleParameter("type")
    for kind in (0, 1, 1):
        system.addParticle(40.0)
        nonbonded.addParticle(0.1, 1.0, 0.0)
        custom.addParticle([kind])
        topology.addAtom("AR", app.element.argon, topology.addResidue("AR", chain))
    system.addForce(nonbonded)
    system.addForce(custom)
    return topology, system


def test_tables_of_types_follow_a_rule_or_pairs_have_their_own():
    places = np.array([[0.0, 0, 0], [0.4, 0, 0], [0, 0.38, 0]])
    topology, system = tables_of_types()
    atoms = from_openmm(topology, system, places)
    assert_same_energies(atoms, system)
    assert atoms.lj_sigma == pytest.approx([3.0, 3.5, 3.5])
    topology, system = tables_of_types(change=1.1)
    atoms = from_openmm(topology, system, places)
    assert_same_energies(atoms, system)
    assert (len(atoms.bonded.lj_pairs), atoms.lj_sigma[0]) == (2, pytest.approx(3.0))


@pytest.mark.parametrize(("theta0", "there"), [(0.0, False), (np.pi, True)])
def test_impropers_that_openmm_does_not_wrap_are_told(theta0, there):
    system = system_of("hexapeptide", "amber14-all.xml")
    force = openmm.CustomTorsionForce("k*(theta-theta0)^2")
    for name in ("k", "theta0"):
        force.addPerTorsionParameter(name)
    force.addTorsion(0, 1, 2, 3, [15.9, theta0])
    system.addForce(force)
    atoms = taken("hexapeptide", system)
    assert len(atoms.bonded.harmonic_impropers) == 1
    assert any("1 impropers of 'k*(theta-theta0)^2'" in note for note in atoms.notes) == there
    if not there:
        assert_same_energies(atoms, system)


def test_positions_of_another_molecule():
    system = system_of("hexapeptide", "amber14-all.xml")
    with pytest.raises(InputError, match="positions of 5 atoms for a System of 96"):
        from_openmm(structure("hexapeptide").topology, system, np.zeros((5, 3)))
    with pytest.raises(InputError, match=r"topology has 1,231 atoms and the System 96"):
        from_openmm(structure("ubiquitin").topology, system, structure("ubiquitin").positions)


def test_a_missing_openmm_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "openmm", None)
    with pytest.raises(InputError, match=r"pip install 'pele-ocl\[openmm\]'"):
        from_openmm(None, None, None)


def test_former_names_warn_and_call_the_present_ones():
    made, system = structure("hexapeptide"), system_of("hexapeptide", "amber14-all.xml")
    with pytest.warns(DeprecationWarning, match=r"Atoms\.from_openmm is now pele_ocl\.from_openmm"):
        atoms = Atoms.from_openmm(made.topology, system, made.positions)
    assert np.array_equal(atoms.charges, from_openmm(made.topology, system, made.positions).charges)


@pytest.mark.parametrize("mass", [None, 3.0])
def test_a_topology_in_another_order_than_the_system_is_refused(mass):
    """Masses show it, also where hydrogens were made heavier; other masses of all atoms do not."""
    app = pytest.importorskip("openmm.app")
    pdb = app.PDBFile(str(STRUCTURES / "trialanine.pdb"))
    system = app.ForceField("amber99sb.xml").createSystem(pdb.topology, hydrogenMass=mass)
    from_openmm(pdb.topology, system, pdb.positions)
    for pair in (("C", "O"), ("N", "CA"), ("CA", "HA")):
        changed = app.PDBFile(str(STRUCTURES / "trialanine.pdb")).topology
        first, second = (next(of for of in changed.atoms() if of.name == name) for name in pair)
        first.name, second.name = second.name, first.name
        first.element, second.element = second.element, first.element
        with pytest.raises(InputError, match=r"atom \d+ .* Da; give the topology from which the System was created"):
            from_openmm(changed, system, pdb.positions)
    for k in range(system.getNumParticles()):
        system.setParticleMass(k, 0 if k % 2 else 50)
    from_openmm(pdb.topology, system, pdb.positions)
