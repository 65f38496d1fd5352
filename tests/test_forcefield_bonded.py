"""Bonded terms of the built-in Amber99SB and of PELE's templates against OpenMM, PELE's own figures and hand-made files."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from forcefield_energies import energies
from forcefield_helpers import ROOT, SAMPLES, chain, needs_samples

from pele_ocl.errors import FormatError
from pele_ocl.forcefield import ForceField, read_template
from pele_ocl.forcefield.links import read_links
from pele_ocl.forcefield.sources import embedded_templates
from pele_ocl.formats import read_structure
from pele_ocl.solvent_model import SolventModel
from pele_ocl.units import COULOMB_KCAL_A

STRUCTURES = ROOT / "data" / "structures"
FORCES = {"HarmonicBondForce": ("bonds",), "HarmonicAngleForce": ("angles",)} | {
    "PeriodicTorsionForce": ("torsions", "impropers")
}


def openmm_system(topology):
    from openmm import app

    return app.ForceField("amber99sb.xml", "tip3p.xml").createSystem(topology, rigidWater=False)


def topology_of(atoms):
    """OpenMM's Topology with our names and bonds; OpenMM takes residues for what their bonds make them."""
    from openmm import app

    topology, labels = app.Topology(), atoms.labels
    residue, added = None, []
    for i in range(len(atoms)):
        if i == 0 or labels.residue_index[i] != labels.residue_index[i - 1]:
            new_chain = i == 0 or labels.chains[i] != labels.chains[i - 1]
            of = topology.addChain() if new_chain else of
            residue = topology.addResidue(str(labels.residue_names[i]), of)
        element = app.Element.getBySymbol(str(labels.elements[i]))
        added.append(topology.addAtom(str(labels.names[i]), element, residue))
    for i, j in atoms.bonds.tolist():
        topology.addBond(added[i], added[j])
    return topology


def openmm_energies(system, positions):
    """kcal/mol by the name of each force, in double precision."""
    import openmm
    from openmm import unit

    for group, force in enumerate(system.getForces()):
        force.setForceGroup(group)
    platform = openmm.Platform.getPlatformByName("Reference")
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), platform)
    context.setPositions(positions / 10)
    states = {f.getName(): context.getState(getEnergy=True, groups={f.getForceGroup()}) for f in system.getForces()}
    unit_ = unit.kilocalorie_per_mole
    return {name: state.getPotentialEnergy().value_in_unit(unit_) for name, state in states.items()}


def assert_terms_are_openmm_s(atoms, system):
    ours, theirs = energies(atoms), openmm_energies(system, atoms.positions)
    for force, tables in FORCES.items():
        assert sum(ours[table] for table in tables) == pytest.approx(theirs[force], rel=1e-11), force


def assert_pairs_are_openmm_s(atoms, system):
    """Exclusions and 1-4 pairs are the exceptions of OpenMM's NonbondedForce."""
    (force,) = (f for f in system.getForces() if f.getName() == "NonbondedForce")
    rows = [force.getExceptionParameters(k) for k in range(force.getNumExceptions())]
    figures = [[q._value, 10 * s._value, e._value / 4.184] for _, _, q, s, e in rows]
    scaled = {(min(r[:2]), max(r[:2])): f for r, f in zip(rows, figures, strict=True) if f[0] or f[2]}
    pairs = {(min(r[:2]), max(r[:2])) for r in rows}
    table = atoms.bonded.one_four
    ours = dict(zip(map(tuple, table.atoms.tolist()), table.parameters, strict=True))
    assert set(scaled) <= set(ours)
    assert {*ours, *map(tuple, atoms.bonded.excluded.tolist())} == pairs
    mine, scaled_ = np.array([ours[pair] for pair in scaled]), np.array(list(scaled.values()))
    np.testing.assert_allclose(mine[:, 1:], scaled_[:, 1:], rtol=1e-9)
    np.testing.assert_allclose(mine[:, 0], scaled_[:, 0], rtol=1e-6)  # OpenMM's file has 0.833333 for 1/1.2


@pytest.mark.parametrize("file", ["hexapeptide.pdb", "ubiquitin.pdb", "src3.pdb.gz"])
def test_shipped_structures_have_openmm_s_terms(file):
    app = pytest.importorskip("openmm.app")
    path = STRUCTURES / file
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as stream:
        system = openmm_system(app.PDBFile(stream).topology)
    atoms = ForceField.load().assign(read_structure(path))
    assert_terms_are_openmm_s(atoms, system)
    if file == "hexapeptide.pdb":
        assert_pairs_are_openmm_s(atoms, system)


def every_residue():
    """Each residue of Amber99SB, in a chain that it can stand in, with noise in place of a geometry."""
    templates = embedded_templates()
    folders = {name: Path(template.source).parent.name for name, template in templates.items()}
    chains = []
    for folder in ("Protein", "DNA", "RNA"):
        names = [name for name in templates if folders[name] == folder]
        ends = {end: [n for n in names if n.endswith(end) and n[:-1] in names] for end in "BEZ"}
        inner = [n for n in names if n not in {*sum(ends.values(), []), "ACE", "NME", "NHE"}]
        chains += [[first, inner[0], last] for first, last in zip(ends["B"], ends["E"], strict=True)]
        chains += [[ends["B"][0], *inner, ends["E"][0]], *([name] for name in ends["Z"])]
    chains += [["ACE", "PRO", "NME"], ["ACE", "ALA", "NHE"], ["ACE", "CYX", "NME"]]
    chains += [[name] for name in ("HOHZ", "NAZ", "MGZ", "CLZ")]
    named = [(name, " ".join(templates[name].names)) for residues in chains for name in residues]
    bases = [(n[:-1] if n[:-1] in templates or folders[n] == "HeteroAtoms" else n, atoms) for n, atoms in named]
    bare = chain(bases, np.repeat(np.arange(len(chains)), [len(residues) for residues in chains]))
    positions = bare.positions + np.random.default_rng(1).normal(scale=0.1, size=bare.positions.shape)
    labels = bare.labels
    sulphurs = np.flatnonzero((labels.names == "SG") & (labels.residue_names == "CYX"))
    for i, j in sulphurs.reshape(-1, 2):
        positions[j] = positions[i] + [0, 0, 2.05]
    elements = [templates[name].elements for name, _ in named]
    return replace(bare, positions=positions, labels=replace(labels, elements=np.concatenate(elements)))


def test_every_residue_has_openmm_s_terms():
    pytest.importorskip("openmm.app")
    atoms = ForceField.load().assign(every_residue())
    assert atoms.bonded is not None
    system = openmm_system(topology_of(atoms))
    assert_terms_are_openmm_s(atoms, system)
    assert_pairs_are_openmm_s(atoms, system)
