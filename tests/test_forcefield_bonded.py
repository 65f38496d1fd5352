"""Bonded terms of the built-in Amber99SB and of PELE's templates against OpenMM and PELE's own figures."""

from __future__ import annotations

import gzip
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from forcefield_energies import dihedrals, energies
from forcefield_helpers import ROOT, SAMPLES, chain, needs_samples

import pele_ocl
from pele_ocl import SolventModel
from pele_ocl.atoms import Labels
from pele_ocl.common.errors import FormatError
from pele_ocl.forcefield import ForceField, embedded_templates, read_links, read_template
from pele_ocl.formats import read_structure
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
    one_chain, residue, added = topology.addChain(), None, []
    for i in range(len(atoms)):
        if i == 0 or labels.residue_index[i] != labels.residue_index[i - 1]:
            residue = topology.addResidue(str(labels.residue_names[i]), one_chain)
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
        inner = [n for n in names if n not in {*ends["B"], *ends["E"], *ends["Z"], "ACE", "NME", "NHE"}]
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


METHANE = """\
MET       5     4     6       0       0
    1     0 M  CT    _C1_     0    0.000000    0.000000    0.000000
    2     1 M  HC    _H1_     0    0.000000    0.000000    0.000000
    3     1 M  HC    _H2_     0    0.000000    0.000000    0.000000
    4     1 M  HC    _H3_     0    0.000000    0.000000    0.000000
    5     1 M  HC    _H4_     0    0.000000    0.000000    0.000000
NBON
    1   3.5000   0.0660  -0.240000   1.9750   1.7500   0.005000000  -0.741685710
    2   2.5000   0.0300   0.060000   1.4250   1.2500   0.005000000   0.000000000
    3   2.5000   0.0300   0.060000   1.4250   1.2500   0.005000000   0.000000000
    4   2.5000   0.0300   0.060000   1.4250   1.2500   0.005000000   0.000000000
    5   2.5000   0.0300   0.060000   1.4250   1.2500   0.005000000   0.000000000
BOND
    1     2   340.000  1.090
    1     3   340.000  1.090
    1     4   340.000  1.090
    1     5   340.000  1.090
THET
    2     1     3    33.00000  107.80000
    2     1     4    33.00000  107.80000
    2     1     5    33.00000  107.80000
    3     1     4    33.00000  107.80000
    3     1     5    33.00000  107.80000
    4     1     5    33.00000  107.80000
PHI
IPHI
END
"""


def ligand(tmp_path, text, name="metz"):
    path = tmp_path / name
    path.write_text(text)
    return path


def assigned(tmp_path, text, positions, name="metz"):
    field = ForceField.load(templates=[ligand(tmp_path, text, name)], guess_radii=True)
    (template,) = (t for key, t in field.templates.items() if key == name.upper())
    bare = chain([(name[:-1].upper(), " ".join(template.names))])
    return field.assign(replace(bare, positions=np.asarray(positions, float)))


def test_angles_of_tetrahedral_methane(tmp_path):
    """PELE's energy of the angles of minimized methane is 6 K (109.471 degrees - theta0)^2 with its template's K."""
    corners = np.array([[0, 0, 0], [1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * 1.09 / np.sqrt(3)
    found = energies(assigned(tmp_path, METHANE, corners))
    theta0 = np.radians(107.8)
    assert found["angles"] == pytest.approx(6 * 33 * (np.arccos(-1 / 3) - theta0) ** 2, rel=1e-12)
    assert found["bonds"] == pytest.approx(0, abs=1e-12)
    assert found["torsions"] == found["impropers"] == 0


CHAIN = """\
BUT 5 4 3 0 0
    1 0 M CT _C1_ 0 0. 0. 0.
    2 1 M CT _C2_ 0 0. 0. 0.
    3 2 M CT _C3_ 0 0. 0. 0.
    4 3 M CT _C4_ 0 0. 0. 0.
    5 3 S OH _O1_ 0 0. 0. 0.
NBON
    1 3.5 0.066 0.1 0. 0. 0. 0.
    2 3.6 0.070 -0.1 0. 0. 0. 0.
    3 3.5 0.066 0.2 0. 0. 0. 0.
    4 3.4 0.080 -0.3 0. 0. 0. 0.
    5 3.1 0.170 0.1 0. 0. 0. 0.
BOND
    1 2 268. 1.529
    2 3 268. 1.529
    3 4 268. 1.529
    3 5 320. 1.410
THET
    1 2 3 58.35 112.7
    2 3 4 58.35 112.7
    2 3 5 50.0 109.5
PHI
    1 2 3 4 0.65 1.0 1.0
    1 2 -3 4 -0.25 -1.0 2.0
    1 -2 3 5 0.0 1.0 3.0
    1 2 3 5 0.40 1.0 2.0 60.0
IPHI
    4 5 3 2 1.1 -1.0 2.0
END
"""
ZIGZAG = [[0, 0, 0], [1.5, 0.2, 0], [2.1, 1.6, 0.1], [3.6, 1.7, 0.9], [1.6, 2.4, -1.0]]


def test_torsions_of_pele_s_form(tmp_path):
    """K (1 + s cos(n phi)): K may be negative, s is a sign, rows with K = 0 are no terms; newer files have a phase."""
    atoms = assigned(tmp_path, CHAIN, ZIGZAG, "butz")
    torsions, impropers = atoms.bonded.torsions, atoms.bonded.impropers
    np.testing.assert_array_equal(torsions.atoms, [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 4]])
    np.testing.assert_allclose(torsions.parameters, [[0.65, 1, 0], [-0.25, 2, np.pi], [0.40, 2, np.pi / 3]])
    np.testing.assert_array_equal(impropers.atoms, [[3, 4, 2, 1]])
    phi = dihedrals(atoms.positions, np.array([[0, 1, 2, 3], [3, 4, 2, 1]]))
    other = dihedrals(atoms.positions, np.array([[0, 1, 2, 4]]))[0]
    expected = 0.65 * (1 + np.cos(phi[0])) - 0.25 * (1 - np.cos(2 * phi[0])) + 0.4 * (1 + np.cos(2 * other - np.pi / 3))
    found = energies(atoms)
    assert found["torsions"] == pytest.approx(expected, rel=1e-12)
    assert found["impropers"] == pytest.approx(1.1 * (1 - np.cos(2 * phi[1])), rel=1e-12)


def test_pairs_follow_from_bonds(tmp_path):
    """1-4 pairs are three bonds apart, whatever the signs in PHI say, and scaled as OPLS has it."""
    bonded = assigned(tmp_path, CHAIN, ZIGZAG, "butz").bonded
    np.testing.assert_array_equal(bonded.one_four.atoms, [[0, 3], [0, 4]])
    charge, sigma, epsilon = bonded.one_four.parameters[0]
    assert charge == pytest.approx(0.5 * 0.1 * -0.3)
    assert (sigma, epsilon) == (pytest.approx(np.sqrt(3.5 * 3.4)), pytest.approx(0.5 * np.sqrt(0.066 * 0.08)))
    assert len(bonded.excluded) == 4 + 4


@pytest.mark.parametrize(
    "text",
    [
        CHAIN.split("THET")[0] + "END\n",
        CHAIN.split("THET")[0] + "THET\nPHI\nIPHI\nEND\n",
        CHAIN.replace("268. 1.529", "0.0 0.0"),
        CHAIN.split("PHI")[0] + "END\n",
    ],
)
def test_templates_without_bonded_parameters_are_named(tmp_path, text):
    atoms = assigned(tmp_path, text, ZIGZAG, "butz")
    assert atoms.bonded is None
    assert len(atoms.bonds) == 4
    assert atoms.notes[-1] == (
        "no bonded terms: the template BUTZ lacks their parameters (the energy is then nonbonded + solvent)"
    )


@pytest.mark.parametrize(
    ("row", "to", "message"),
    [
        ("    1 2 3 58.35 112.7", "    1 2 3 58.35", "butz:19: an angle needs three atom numbers, two figures"),
        ("    1 2 3 58.35 112.7", "    1 2 9 58.35 112.7", "butz:19: '9' is not an atom number; the atoms are 1 to 5"),
        ("    1 2 3 58.35 112.7", "    1 2 x 58.35 112.7", "butz:19: 'x' is not a number"),
        (
            "    1 2 3 58.35 112.7",
            "    1 2 1.5 58.35 112.7",
            "butz:19: '1.5' is not an atom number; the atoms are 1 to 5",
        ),
        ("    1 2 3 58.35 112.7", "    1 2 1 58.35 112.7", "butz:19: the row contains an atom twice"),
        ("    1 2 3 58.35 112.7", "    1 -2 3 58.35 112.7", "butz:19: '-2' is not an atom number"),
        ("    1 2 3 4 0.65 1.0 1.0", "    1 2 3 4 0.65 1.0", "butz:23: a torsion needs four atom numbers, K, sign and"),
        ("    1 2 3 4 0.65 1.0 1.0", "    1 2 3 4 inf 1.0 1.0", "butz:23: 'inf' is not a number"),
        ("    1 2 3 4 0.65 1.0 1.0", "    1 2 3 4 0.65 2.0 1.0", "butz:23: the sign of a torsion is 1 or -1, not 2"),
        ("    1 2 3 4 0.65 1.0 1.0", "    1 2 3 4 0.65 1.0 1.5", "butz:23: the periodicity of a torsion is a whole"),
        ("    4 5 3 2 1.1 -1.0 2.0", "    -4 5 3 2 1.1 -1.0 2.0", "butz:28: '-4' is not an atom number"),
        ("    1 2 268. 1.529", "    1 2 268. long", "butz:14: 'long' is not a number"),
    ],
)
def test_broken_rows_are_named_with_their_line(tmp_path, row, to, message):
    assert row in CHAIN
    with pytest.raises(FormatError) as caught:
        read_template(ligand(tmp_path, CHAIN.replace(row, to, 1), "butz"))
    assert message in str(caught.value)


LINK = """\
# a peptide bond
NAME PEPTIDE_BOND
ATOID  1 _C___
BOND   C     N  * 490.000   1.335
ANGL   CA    C     N  *  70.000 116.600
TORS   CA    C     N  *  H  *  2.4500 -1.0 2   # comment
ITOR   CA    N  *  C     O     10.500 -1.0 2
TORS   C     N  *  CA *  HB2*  0.0000  1.0 1
"""


def test_links_between_residues(tmp_path):
    ((key, link),) = read_links(ligand(tmp_path, LINK, "inter_residue_bonds")).items()
    assert key == ("C", "N")
    assert link.bond.parameters == (490.0, 1.335)
    assert [(atom.name, atom.second) for atom in link.torsions[0].atoms] == [
        ("CA", False), ("C", False), ("N", True), ("H", True)
    ]  # fmt: skip
    assert link.torsions[0].parameters == pytest.approx((2.45, 2, np.pi))
    assert (len(link.angles), len(link.torsions), len(link.impropers)) == (1, 1, 1)


@pytest.mark.parametrize(
    ("row", "to", "message"),
    [
        (
            "ANGL   CA    C     N  *  70.000 116.600",
            "ANGL   CA    C     N  *  70.000",
            ":5: ANGL needs 3 atoms and 2",
        ),
        ("ANGL   CA    C     N  *  70.000 116.600", "ANGL CA C N * 70.000 wide", ":5: 'wide' is not a number"),
        ("ANGL   CA    C     N  *  70.000", "ANGL   CA    C     N     70.000", ":5: ANGL needs atoms of both residues"),
        ("ANGL ", "ANGLE ", ":5: 'ANGLE' is not a label; BOND, ANGL, TORS, ITOR, NAME and ATOID are"),
        ("2.4500 -1.0 2", "2.4500 -1.0 2.5", ":6: the periodicity of a torsion is a whole number"),
        ("BOND   C     N  * 490.000   1.335\n", "", ": contains 0 lines BOND; expected one bond between two residues"),
    ],
)
def test_broken_links_are_named_with_their_line(tmp_path, row, to, message):
    assert row in LINK
    with pytest.raises(FormatError) as caught:
        read_links(ligand(tmp_path, LINK.replace(row, to, 1), "inter_residue_bonds"))
    assert f"inter_residue_bonds{message}" in str(caught.value)


def test_a_bond_without_a_link_is_named(tmp_path):
    """Templates of a user's own protein without PELE's file of bonds between residues."""
    for name in ("ala", "ace", "nme"):
        ligand(tmp_path, (ROOT / "data" / "amber99sb" / "Protein" / name).read_text(), name)
    (tmp_path / "Protein").mkdir()
    for name in ("ala", "ace", "nme"):
        (tmp_path / name).rename(tmp_path / "Protein" / name)
    residues = [(name.upper(), " ".join(embedded_templates()[name.upper()].names)) for name in ("ace", "ala", "nme")]
    field = ForceField.load(templates=[tmp_path])
    assert field.assign(chain(residues)).notes[0] == (
        "no bonded terms: the force field has no file inter_residue_bonds for the bond of A:ACE1:C and A:ALA2:N "
        "(the energy is then nonbonded + solvent)"
    )
    ligand(tmp_path / "Protein", LINK, "inter_residue_bonds")
    bonded = ForceField.load(templates=[tmp_path]).assign(chain(residues)).bonded
    # C-N of ACE-ALA and ALA-NME; the angle CA-C-N* and the improper about C where there is a CA: ALA-NME alone
    whole = ForceField.load().assign(chain(residues)).bonded
    assert len(bonded.bonds) == len(whole.bonds)
    assert len(bonded.angles) == len(whole.angles) - 2 * 4 + 1


def opls(**options):
    tables = [SAMPLES / "peleffy" / "solventParamsHCTOBC.txt", SAMPLES / "3ptb" / "aenz_obc_rows.txt"]
    return ForceField.load(templates=[SAMPLES / "OPLS2005", SAMPLES / "3ptb" / "aenz"], obc=tables, **options)


def pele_model():
    like = getattr(SolventModel, "like", None)
    return SolventModel(ionic_strength=0.25) if like is None else like("pele", ionic_strength=0.25)


def whole_energy(atoms, model, device):
    """All terms by the public API, with the bonded ones in NumPy as long as it has none."""
    found = pele_ocl.Energy(atoms, model=model, precision="float64", gradient=False, device=device).evaluate().energy
    bonded = 0 if "bond" in found else sum(value for name, value in energies(atoms).items() if name != "one_four")
    return found["total"] + bonded


@needs_samples
@pytest.mark.parametrize(("allow", "pele", "without_cutoff"), [(True, -528.630, -528.623), (False, -541.572, -541.552)])
def test_the_energy_that_pele_prints(device, allow, pele, without_cutoff):
    """PELE's first rows with `allowMissingTerminals` and without; it leaves out pairs beyond its long cutoffs."""
    device.require_precision("float64")
    structure = read_structure(SAMPLES / "3ptb" / "trajectory_1.pdb", 1)
    atoms = opls(allow_missing_terminals=allow).assign(structure)
    total = whole_energy(atoms, pele_model(), device)
    assert total == pytest.approx(without_cutoff, abs=1e-3)
    assert total == pytest.approx(pele, abs=0.01 if allow else 0.025)


@needs_samples
def test_lines_about_proline_apply_to_proline_alone():
    """Names alone would let the lines with CD* hit every LYS, ARG, GLN and GLU: +1,300 kcal/mol on 3,239 atoms."""
    atoms = opls().assign(read_structure(SAMPLES / "PR_1A28_protein.pdb"))
    names, index = atoms.labels.names, atoms.labels.residue_index
    across = [term for term in atoms.bonded.torsions.atoms if len(set(index[term])) > 1 and "CD" in names[term[2:]]]
    assert len(across) > 10
    assert {str(name) for term in across for name in atoms.labels.residue_names[term[names[term] == "CD"]]} == {"PRO"}
    found = energies(atoms)
    assert found["impropers"] < 20
    assert 0 < found["bonds"] + found["angles"] + found["torsions"] < 1.5 * len(atoms)


@needs_samples
@pytest.mark.parametrize("name", ["malz", "OPLS_malz", "metz", "metz_amber", "OPLS_metz"])
def test_ligands_of_peleffy_join_the_built_in_protein(tmp_path, name):
    path = ligand(tmp_path, (SAMPLES / "peleffy" / name).read_text(), name.split("_")[-1 if "OPLS" in name else 0])
    template = read_template(path)
    field = ForceField.load(templates=[path], guess_radii=True)
    protein = read_structure(STRUCTURES / "hexapeptide.pdb")
    alone = ForceField.load().assign(protein).bonded
    lone = chain([(template.name[:-1], " ".join(template.names))])
    joined = field.assign(joined_structures(protein, lone)).bonded
    assert template.terms is not None
    for table in ("bonds", "angles", "torsions", "impropers"):
        assert len(getattr(joined, table)) == len(getattr(alone, table)) + len(getattr(template.terms, table))


def joined_structures(first, second):
    """Two structures as one, the second 100 A away in a segment of its own."""
    labels = {
        f.name: np.concatenate([getattr(first.labels, f.name), getattr(second.labels, f.name)])
        for f in fields(first.labels)
    }
    labels["residue_index"][len(first.labels) :] += first.labels.residue_index[-1] + 1
    return replace(
        first,
        positions=np.concatenate([first.positions, second.positions + 100]),
        labels=Labels(**labels),
        segments=np.concatenate([first.segments, second.segments + first.segments[-1] + 1]),
        hetero=np.concatenate([first.hetero, second.hetero]),
        lines=np.concatenate([first.lines, second.lines]),
    )


@needs_samples
def test_the_binding_energy_of_a_ligand_beyond_all_cutoffs(device):
    """PELE's 0.00883269: nothing acts between the parts but that each takes solvent from the other's atoms."""
    device.require_precision("float64")
    structure = read_structure(SAMPLES / "3ptb" / "trajectory_1.pdb", 1)
    atoms, model = opls().assign(structure), pele_model()
    is_ligand = atoms.labels.chains == "L"

    def evaluated(of):
        return pele_ocl.Energy(of, model=model, precision="float64", gradient=False, device=device).evaluate()

    whole, receptor, ligand_ = map(evaluated, (atoms, atoms[~is_ligand], atoms[is_ligand]))
    i, j = np.ix_(~is_ligand, is_ligand)
    r = np.linalg.norm(atoms.positions[i] - atoms.positions[j], axis=-1)
    born = whole.born_radii[i] * whole.born_radii[j]
    f = np.sqrt(r**2 + born * np.exp(-(r**2) / (4 * born)))
    coulomb = COULOMB_KCAL_A * atoms.charges[i] * atoms.charges[j]
    sixth = (atoms.lj_sigma[i] * atoms.lj_sigma[j] / r**2) ** 3
    wells = 4 * np.sqrt(atoms.lj_epsilon[i] * atoms.lj_epsilon[j])
    between = coulomb / r - coulomb / f * (1 - np.exp(-model.kappa * f) / 80) + wells * (sixth**2 - sixth)
    binding = whole.total - receptor.total - ligand_.total - between.sum()
    assert binding == pytest.approx(0.00883269, abs=5e-9)
