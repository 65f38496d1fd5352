"""AMBER topologies: every table as OpenMM reads it, notes, and one sentence for whatever is wrong."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import numpy as np
import pytest
from amber_helpers import (
    Content,
    bonded_energies,
    content,
    hexapeptide,
    map_values,
    rendered,
    restart,
    with_charmm,
    with_cmap,
)

import pele_ocl
from pele_ocl import Energy, FormatError, InputError, SolventModel
from pele_ocl.formats import is_topology, read_structure, read_topology
from pele_ocl.units import JOULE_PER_CALORIE

OPENMM_COULOMB = 138.93545764438198 * 10 / JOULE_PER_CALORIE  # kcal A / (mol e^2)


def written(folder: Path, made: Content | str, name: str = "x.parm7") -> Path:
    path = folder / name
    path.write_text(made if isinstance(made, str) else rendered(made))
    return path


def changed(name: str, values: list, made: Content | None = None) -> Content:
    made = content() if made is None else made
    return {**made, name: (made[name][0], values)}


def without(*names: str) -> Content:
    return {name: section for name, section in content().items() if name not in names}


def openmm_energies(path: Path, positions: np.ndarray) -> dict[str, float]:
    """Energies by the kind of force, kcal/mol, of OpenMM's own reader on its Reference platform."""
    openmm = pytest.importorskip("openmm")
    from openmm import app, unit

    system = app.AmberPrmtopFile(str(path)).createSystem(removeCMMotion=False)
    names = {}
    for k, force in enumerate(system.getForces()):
        force.setForceGroup(k)
        names[k] = force.getName()
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(positions * unit.angstrom)
    found = {}
    for k, name in names.items():
        energy = context.getState(getEnergy=True, groups={k}).getPotentialEnergy()
        found[name] = energy.value_in_unit(unit.kilocalorie_per_mole)
    return found


def pair_energies(atoms: pele_ocl.Atoms, x: np.ndarray) -> float:
    """Lennard-Jones and Coulomb energy of the pairs that are not excluded, kcal/mol."""
    i, j = np.triu_indices(len(x), 1)
    excluded = np.zeros((len(x), len(x)), np.bool_)
    excluded[tuple(atoms.bonded.excluded.T)] = True
    i, j = (of[~(excluded | excluded.T)[i, j]] for of in (i, j))
    r = np.linalg.norm(x[i] - x[j], axis=1)
    sigma = (atoms.lj_sigma[i] + atoms.lj_sigma[j]) / 2
    epsilon = np.sqrt(atoms.lj_epsilon[i] * atoms.lj_epsilon[j])
    lennard_jones = 4 * epsilon * ((sigma / r) ** 12 - (sigma / r) ** 6)
    return float((lennard_jones + OPENMM_COULOMB * atoms.charges[i] * atoms.charges[j] / r).sum())


@pytest.mark.parametrize("change", [dict, with_charmm], ids=["amber", "charmm"])
def test_energies_are_those_of_openmms_reader(tmp_path, change):
    x = hexapeptide().positions
    path = written(tmp_path, change(content()))
    atoms = read_topology(path).with_positions(x)
    assert atoms.type_family == ("" if change is with_charmm else "amber")
    ours, theirs = bonded_energies(atoms.bonded, x, OPENMM_COULOMB), openmm_energies(path, x)
    pairs = {
        "HarmonicBondForce": ours["bond"],
        "HarmonicAngleForce": ours["angle"],
        "PeriodicTorsionForce": ours["torsion"],
        "NonbondedForce": pair_energies(atoms, x) + ours["lennard_jones_14"] + ours["coulomb_14"],
    }
    if change is with_charmm:
        pairs |= {"UreyBradleyForce": ours["urey_bradley"], "ImproperTorsionForce": ours["harmonic_improper"]}
    assert set(theirs) == set(pairs)
    for name, energy in pairs.items():
        assert theirs[name] == pytest.approx(energy, rel=1e-7), name


@pytest.mark.parametrize("prefix", ["", "CHARMM_"])
def test_cmap_terms_and_their_maps(tmp_path, prefix):
    atoms = read_topology(written(tmp_path, with_cmap(content(), prefix))).with_positions(hexapeptide().positions)
    cmaps, labels = atoms.bonded.cmaps, atoms.labels
    names = [[str(labels.names[i]) for i in row] for row in cmaps.atoms]
    assert names == [["C", "N", "CA", "C", "N", "CA", "C", "N"]] * 4
    assert cmaps.parameters.tolist() == [[0.0], [1.0], [0.0], [1.0]]
    for k, found in enumerate(atoms.bonded.maps, 1):
        # 0 degrees stand in the middle of the file's map, and first in ours
        np.testing.assert_array_equal(found[0, 0], map_values(k)[12, 12])
        np.testing.assert_array_equal(found[1, 23], map_values(k)[13, 11])
        np.testing.assert_array_equal(found[12], np.roll(map_values(k)[0], -12))


def test_cmap_energies_are_openmms(tmp_path):
    """At the points of the map, where no interpolation matters, of one term's own two torsions."""
    openmm = pytest.importorskip("openmm")
    atoms = read_topology(written(tmp_path, with_cmap(content()))).with_positions(hexapeptide().positions)
    from openmm import app

    system = app.AmberPrmtopFile(str(tmp_path / "x.parm7")).createSystem()
    (force,) = [f for f in system.getForces() if isinstance(f, openmm.CMAPTorsionForce)]
    for k, ours in enumerate(atoms.bonded.maps):
        size, values = force.getMapParameters(k)
        theirs = np.array(values._value).reshape(size, size).T / JOULE_PER_CALORIE  # the first angle runs fastest
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    for k, row in enumerate(atoms.bonded.cmaps.atoms.tolist()):
        assert force.getTorsionParameters(k)[1:] == row


def test_parameters_and_labels(tmp_path):
    known = hexapeptide()
    topology = read_topology(written(tmp_path, content()))
    atoms = topology.with_positions(known.positions)
    assert len(topology) == len(known)
    np.testing.assert_array_equal(atoms.positions, known.positions)
    np.testing.assert_allclose(atoms.charges, known.charges, atol=1e-9)
    used = known.lj_epsilon > 0
    np.testing.assert_allclose(atoms.lj_sigma[used], known.lj_sigma[used], rtol=1e-8)
    np.testing.assert_allclose(atoms.lj_epsilon, known.lj_epsilon, rtol=1e-7)
    np.testing.assert_allclose(atoms.gb_radii, known.gb_radii, rtol=1e-8)
    np.testing.assert_allclose(atoms.gb_scales, known.gb_scales, rtol=1e-8)
    assert (atoms.gb_radii_set, atoms.type_family) == ("mbondi2", "amber")
    assert {*map(frozenset, atoms.bonds.tolist())} == {*map(frozenset, known.bonds.tolist())}
    for name in ("names", "elements", "residue_names", "residue_numbers", "residue_index"):
        np.testing.assert_array_equal(getattr(atoms.labels, name), getattr(known.labels, name))
    assert atoms.types[0].startswith("T")
    assert (atoms.combining, atoms.notes) == ("arithmetic", ())


def test_each_one_four_pair_stands_once_with_the_factors_of_its_torsion(tmp_path):
    made = content()
    form, rows = made["DIHEDRALS_INC_HYDROGEN"]
    again = [abs(value) if k % 5 == 2 and rows[k + 1] > 0 else value for k, value in enumerate(rows)]
    once, twice = (
        read_topology(written(tmp_path, {**made, "DIHEDRALS_INC_HYDROGEN": (form, of)})).parameters
        for of in (rows, again)
    )
    pairs = once.bonded.one_four
    assert len({*map(frozenset, pairs.atoms.tolist())}) == len(pairs)
    assert {*map(frozenset, twice.bonded.one_four.atoms.tolist())} == {*map(frozenset, pairs.atoms.tolist())}
    assert twice.notes[0].endswith("torsions repeat the 1-4 pair of another torsion; each pair is used once")
    products = once.charges[pairs.atoms].prod(axis=1)
    scales = np.round(products / pairs.parameters[:, 0], 6)
    assert {*scales.tolist()} == {1.0, 1.2}
    default = read_topology(written(tmp_path, without("SCEE_SCALE_FACTOR", "SCNB_SCALE_FACTOR"))).parameters
    np.testing.assert_allclose(default.bonded.one_four.parameters[:, 0] * 1.2, products, rtol=1e-12)
    zero = read_topology(written(tmp_path, changed("SCEE_SCALE_FACTOR", [0.0, 1.2, 1.0, 1.2]))).parameters
    assert (zero.bonded.one_four.parameters[:, 0] == 0).any()


def test_phases_near_pi_are_pi_as_sander_takes_them(tmp_path):
    topology = read_topology(written(tmp_path, changed("DIHEDRAL_PHASE", [3.141594, 6.2831, 1.25, -3.14159])))
    phases = topology.parameters.bonded.torsions.parameters[:, 2]
    assert {*phases.tolist()} == {np.pi, 0.0, 1.25}


def test_elements_without_atomic_numbers(tmp_path):
    heavy = [3.024 if mass < 2 else mass for mass in content()["MASS"][1]]  # repartitioned
    path = written(tmp_path, {k: v for k, v in changed("MASS", heavy).items() if k != "ATOMIC_NUMBER"})
    parameters = read_topology(path).parameters
    np.testing.assert_array_equal(parameters.labels.elements, hexapeptide().labels.elements)
    assert any("its hydrogens have masses of up to 3.024 Da" in note for note in parameters.notes)


def test_numbers_and_chains_of_residues(tmp_path):
    more = {
        "RESIDUE_NUMBER": ("20I4", [9998, 9999, -3, 4, 5, 6]),
        "RESIDUE_CHAINID": ("20a4", ["A", "A", "B", "B", "B", ""]),
        "RESIDUE_ICODE": ("20a4", ["", "", "A", "", "", ""]),
    }
    labels = read_topology(written(tmp_path, {**content(), **more})).parameters.labels
    assert [*map(str, labels.residues)] == ["A:MET9998", "A:LYS9999", "B:GLU-3A", "B:PHE4", "B:GLY5", "ASP6"]


def test_a_geometric_rule(tmp_path):
    made = content()
    a, b = (np.array(made[f"LENNARD_JONES_{of}COEF"][1]) for of in "AB")
    t = made["POINTERS"][1][1]
    i, j = np.tril_indices(t)
    with np.errstate(all="ignore"):
        sigma, epsilon = np.nan_to_num((a / b) ** (1 / 6)), np.nan_to_num(b**2 / a / 4)
    diagonal = np.flatnonzero(i == j)
    s, e = sigma[diagonal], epsilon[diagonal]
    sigma, epsilon = np.sqrt(s[i] * s[j]), np.sqrt(e[i] * e[j])
    both = {"LENNARD_JONES_ACOEF": 4 * epsilon * sigma**12, "LENNARD_JONES_BCOEF": 4 * epsilon * sigma**6}
    geometric = {**made, **{name: ("5E16.8", values.tolist()) for name, values in both.items()}}
    assert read_topology(written(tmp_path, geometric)).parameters.combining == "geometric"


def test_sections_in_any_order_line_ends_and_gzip(tmp_path):
    made = content()
    text = rendered(made)
    known = read_topology(written(tmp_path, text)).parameters
    for other in (
        rendered(dict(reversed(made.items()))),
        text.replace("\n", "\r\n"),
        "".join(f"{line.rstrip()}\n" for line in text.splitlines()),
        text.rstrip("\n"),
    ):
        path = tmp_path / "y.prmtop"
        path.write_text(other, newline="")
        found = read_topology(path).parameters
        np.testing.assert_array_equal(found.charges, known.charges)
        np.testing.assert_array_equal(found.bonded.one_four.parameters, known.bonded.one_four.parameters)
        np.testing.assert_array_equal(found.labels.names, known.labels.names)
    (tmp_path / "z.top.gz").write_bytes(gzip.compress(text.encode()))
    np.testing.assert_array_equal(read_topology(tmp_path / "z.top.gz").parameters.charges, known.charges)


def test_notes_of_boxes_and_extra_points(tmp_path):
    pointers = list(content()["POINTERS"][1])
    pointers[27], pointers[29] = 1, 1
    masses = list(content()["MASS"][1])
    masses[:2] = 0.0, 0.0
    found = read_topology(written(tmp_path, {**changed("POINTERS", pointers), "MASS": changed("MASS", masses)["MASS"]}))
    notes = found.parameters.notes
    assert found.parameters.is_site.nonzero()[0].tolist() == [0, 1]
    assert "periodic box is ignored" in notes[0]
    assert "water cap" in notes[1]
    assert "2 extra points are virtual sites" in notes[2]


def pointers(**of: int) -> Content:
    order = {"NATOM": 0, "NBONH": 2, "NPARM": 9, "NNB": 10, "IFPERT": 20}
    values = list(content()["POINTERS"][1])
    for name, value in of.items():
        values[order[name]] = value
    return changed("POINTERS", values)


def one(name: str, index: int, value: object) -> Content:
    values = list(content()[name][1])
    values[index] = value
    return changed(name, values)


TEXT = rendered(content())
WRONG: dict[str, tuple[Content | str, str]] = {
    "truncated in a line": (TEXT[: TEXT.index("%FLAG MASS") - 43], r"\d+: ends with section ATOMIC_NUMBER, without a "),
    "truncated in a section": (TEXT[:-800], r"\d+: section SCREEN contains \d+ values; according .* 96"),
    "truncated between": (TEXT[: TEXT.index("%FLAG MASS")], r"\d+: ends with section ATOMIC_NUMBER, without"),
    "without a section": (without("EXCLUDED_ATOMS_LIST"), r"\d+: ends .*, without a section EXCLUDED_ATOMS_LIST"),
    "twice": (TEXT + TEXT[TEXT.index("%FLAG SCREEN") :], r"\d+: a second section 'SCREEN'; the first is on line \d+"),
    "counts": (pointers(NATOM=95), r"\d+: section CHARGE contains 96 values; according to POINTERS there are 95"),
    "counts of bonds": (pointers(NBONH=3), r"\d+: section BONDS_INC_HYDROGEN contains \d+ values; according to "),
    "negative count": (pointers(NBONH=-3), r"7: section POINTERS: NBONH is -3, which is impossible"),
    "few pointers": (changed("POINTERS", [96] * 12), r"8: section POINTERS contains 12 values; expected 30 or more"),
    "perturbation": (pointers(IFPERT=1), r"9: section POINTERS: IFPERT is 1: perturbation, which is not supported"),
    "enhanced sampling": (pointers(NPARM=1), r"7: section POINTERS: NPARM is 1: locally enhanced sampling"),
    "wrong width": (TEXT.replace("%FORMAT(5E16.8)", "%FORMAT(5E15.8)", 1), r"\d+: section CHARGE: the line has 80 cha"),
    "shifted": (TEXT.replace("\n       1       6", "\n      1       6", 1), r"\d+: section ATOMIC_NUMBER: field \d+, "),
    "no number": (TEXT.replace("\n       1       6", "\n       x       6", 1), r".* field 1, '       x', is not a who"),
    "stars": (TEXT.replace("\n       1       6", "\n********       6", 1), r".* field 1 is '\*+': its number was too "),
    "blank": (TEXT.replace("\n       1       6", "\n               6", 1), r".* field 1 is blank; expected a whole "
    "number in 8"),
    "nan": (one("CHARGE", 3, float("nan")), r"\d+: section CHARGE: field 4, '             NAN', is not a number in 16"),
    "huge": (TEXT.replace(".00000000E+01", ".0000000E+999", 1), r"\d+: section \w+: field \d, '.*E\+999', is not a fi"),
    "another kind": ({**content(), "CHARGE": content()["ATOM_NAME"]}, r"\d+: section CHARGE: its %FORMAT is missing o"),
    "type of an atom": (one("ATOM_TYPE_INDEX", 11, 99), r"\d+: section ATOM_TYPE_INDEX: type 99; the types are 1 to 1"),
    "stray atom": (one("BONDS_INC_HYDROGEN", 1, 300), r"\d+: section BONDS_INC_HYDROGEN: term 1 names an atom that "
    "does"),
    "no multiple of 3": (one("ANGLES_INC_HYDROGEN", 0, 4), r"\d+: section ANGLES_INC_HYDROGEN: term 1 names an atom t"),
    "stray parameters": (one("BONDS_INC_HYDROGEN", 5, 9), r"\d+: section BONDS_INC_HYDROGEN: term 2 names parameters "),
    "negative atom": (one("BONDS_INC_HYDROGEN", 1, -6), r"\d+: section BONDS_INC_HYDROGEN: term 1 names an atom that "),
    "excluded": (one("NUMBER_EXCLUDED_ATOMS", 0, 1), r"\d+: section NUMBER_EXCLUDED_ATOMS: the sum is \d+; by POINTER"),
    "excludes itself": (one("EXCLUDED_ATOMS_LIST", 0, 1), r"\d+: section EXCLUDED_ATOMS_LIST: atom 1 excludes atom 1;"),
    "residues": (one("RESIDUE_POINTER", 2, 1), r"\d+: section RESIDUE_POINTER: residue 3 begins with atom 1; the firs"),
    "pair of types": (one("NONBONDED_PARM_INDEX", 2, 999), r"\d+: section NONBONDED_PARM_INDEX: 999 is not a number "
    "of a"),
    "only A": (one("LENNARD_JONES_BCOEF", 2, 0.0), r"\d+: section LENNARD_JONES_BCOEF: A \S+ and B 0; expected both "
    "0, or both"),
    "half a period": (one("DIHEDRAL_PERIODICITY", 1, 2.5), r"\d+: section DIHEDRAL_PERIODICITY: torsion type 2 has 2."),
    "polarizable": (changed("IPOL", [1]), r"\d+: section IPOL: polarizabilities are not supported"),
    "AMOEBA": ({**content(), "AMOEBA_FORCEFIELD": ("1I8", [1])}, r"\d+: section AMOEBA_FORCEFIELD: the AMOEBA force f"),
    "unprintable": (one("ATOM_NAME", 3, "\x1b[3"), r"\d+: section ATOM_NAME: field 4, '\\x1b\[3 ', is not a text in A"),
    "GROMACS": ('; a molecule\n#include "amber99sb.ff/forcefield.itp"\n', r" a GROMACS topology; load it with OpenMM'"),
    "old": ("title\n    25     9\n", r" contains no %FLAG; expected an AMBER topology of version 7 or later"),
    "HTML": ("<!DOCTYPE html>", r" contains HTML, not an AMBER topology"),
    "empty": ("", r" the file is empty"),
}  # fmt: skip


def test_12_6_4_terms_are_refused_where_two_atoms_have_one(tmp_path):
    """Parts without such a pair are computed, and so is all that needs no Lennard-Jones energy."""
    n_types = content()["POINTERS"][1][1]
    index = np.array(content()["NONBONDED_PARM_INDEX"][1]).reshape(n_types, n_types)
    last = content()["ATOM_TYPE_INDEX"][1][-1] - 1
    values = np.zeros(n_types * (n_types + 1) // 2)
    values[index[last] - 1] = 1.5
    path = written(tmp_path, {**content(), "LENNARD_JONES_CCOEF": ("5E16.8", values.tolist())})
    found = read_topology(path).parameters
    atoms = found.moved(np.random.default_rng(0).normal(0, 9, (len(found), 3)))
    with pytest.raises(InputError, match=r"atom \d+ .* have a 12-6-4 term \(.*:\d+\), which is not computed"):
        Energy(atoms, model=SolventModel(gb="none"))
    types = np.array(content()["ATOM_TYPE_INDEX"][1]) - 1
    rest = atoms[types != last]
    assert rest.undone_pairs is None
    assert np.isfinite(Energy(rest, model=SolventModel(gb="none")).evaluate(rest.positions).total)


@pytest.mark.parametrize("name", WRONG)
def test_one_sentence(tmp_path, name):
    made, sentence = WRONG[name]
    path = written(tmp_path, made)
    with pytest.raises(FormatError, match=f"x.parm7:{sentence}") as found:
        read_topology(path)
    assert len(str(found.value).removeprefix(str(path))) < 200


def test_hydrogen_bonds_of_old_force_fields_are_refused(tmp_path):
    made = pointers()
    values = list(made["POINTERS"][1])
    values[19] = 1
    index = list(made["NONBONDED_PARM_INDEX"][1])
    index[1] = index[10] = -1
    made = {**made, "POINTERS": ("10I8", values), "NONBONDED_PARM_INDEX": ("10I8", index)}
    tables = [
        {name: ("5E16.8", [coefficient]) for name in ("HBOND_ACOEF", "HBOND_BCOEF")} for coefficient in (7557.0, 0.0)
    ]
    with pytest.raises(FormatError, match="section HBOND_ACOEF: types 1 and 2 have a 10-12 term"):
        read_topology(written(tmp_path, {**made, **tables[0]}))
    nothing = read_topology(written(tmp_path, {**made, **tables[1]})).parameters.bonded.lj_pairs
    assert len(nothing)
    assert not nothing.parameters.any()  # such pairs have no energy at all


def test_reading_needs_coordinates(tmp_path):
    path = written(tmp_path, content(), "x.prmtop")
    with pytest.raises(
        FormatError, match=r"x\.prmtop: contains its own parameters, .* so it does not need to be prepared"
    ):
        read_structure(path)  # as prepare and relax do, which take no coordinates
    assert is_topology(path)
    with pytest.raises(
        FormatError, match=r"x.prmtop: a topology has no coordinates; give a coordinate file as `coordinates`"
    ):
        pele_ocl.read(path)
    with pytest.raises(
        InputError, match=r"x.prmtop: an AMBER topology contains charges and radii; do not give a force"
    ):
        pele_ocl.read(path, "amber99sb")
    with pytest.raises(InputError, match=r"95 positions for the 96 atoms of .*x.prmtop"):
        read_topology(path).with_positions(np.zeros((95, 3)))
    with pytest.raises(FormatError, match=r"contains coordinates; separate coordinate files are for topologies, .prm"):
        pele_ocl.read(tmp_path / "x.pdb", coordinates=path)


def test_46_000_atoms_take_seconds_at_most(tmp_path):
    path = written(tmp_path, content(480))
    seconds = []
    for _ in range(3):
        start = time.process_time()
        topology = read_topology(path)
        seconds.append(time.process_time() - start)
    assert len(topology) == 46_080
    assert min(seconds) < 4  # 0.5 on a quiet machine; a search that takes the square of atoms takes minutes
    assert len(topology.parameters.bonded.torsions) == 480 * len(
        read_topology(written(tmp_path, content())).parameters.bonded.torsions
    )


def test_a_restart_of_the_same_atoms(tmp_path):
    x = np.round(hexapeptide().positions, 7)
    path = written(tmp_path, content())
    for name, text in (
        ("a.rst7", restart(x)),
        ("b.inpcrd", restart(x, velocities=True, box=True)),
        ("c.crd", restart(x, box=True)),
    ):
        np.testing.assert_array_equal(pele_ocl.read(path, coordinates=written(tmp_path, text, name)).positions, x)


@pytest.mark.parametrize(
    ("sections", "name"),
    [
        ({"RADIUS_SET": ("1a80", ["modified Bondi radii (mbondi)"])}, "mbondi"),
        ({"RADIUS_SET": ("1a80", ["ArgH and AspGluO modified Bondi2 radii (mbondi3)"])}, "mbondi3"),
        ({"RADIUS_SET": ("1a80", ["0"])}, "file"),
        ({"RADIUS_SET": ("1a80", [""])}, "file"),
        ({"RADIUS_SET": None}, "file"),
        ({"RADII": None, "SCREEN": None}, ""),
        ({"RADII": ("5E16.8", [0.0] * 96)}, ""),
    ],
)
def test_the_name_of_the_radii(tmp_path, sections, name):
    made = {key: value for key, value in {**content(), **sections}.items() if value is not None}
    atoms = read_topology(written(tmp_path, made)).parameters
    assert atoms.gb_radii_set == name
    assert (atoms.gb_radii is None) == ("RADII" in sections)


def test_a_negative_number_of_periods_is_taken_without_its_sign(tmp_path):
    """Files of other programs keep the sign that says in a force field that more cosines follow."""
    made = content()
    periods = list(made["DIHEDRAL_PERIODICITY"][1])
    first = int(np.flatnonzero(np.array(periods) > 0)[0])
    plain = read_topology(written(tmp_path, made)).parameters
    periods[first] = -periods[first]
    atoms = read_topology(written(tmp_path, changed("DIHEDRAL_PERIODICITY", periods))).parameters
    for name in ("torsions", "impropers"):
        np.testing.assert_array_equal(getattr(atoms.bonded, name).parameters, getattr(plain.bonded, name).parameters)
    assert any("torsions have a negative periodicity; the sign is ignored" in note for note in atoms.notes)
