"""GROMACS and CHARMM files through OpenMM, GRO and mol2 files by our own readers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from interop_helpers import assert_same_energies
from test_cli import error_of, run

import pele_ocl
from pele_ocl import FormatError, InputError, read
from pele_ocl.formats import read_structure

ETHANE = """\
; a molecule with the terms of OPLS, and impropers of both kinds
[ defaults ]
1 {rule} yes 0.5 0.5
[ atomtypes ]
opls_135 CT 6 12.011 -0.18 A 0.35 0.276144
opls_140 HC 1 1.008 0.06 A 0.25 0.12552
[ moleculetype ]
ETH 3
[ atoms ]
1 opls_135 1 ETH C1 1 -0.18 12.011
2 opls_140 1 ETH H11 1 0.06 1.008
3 opls_140 1 ETH H12 1 0.06 1.008
4 opls_140 1 ETH H13 1 0.06 1.008
5 opls_135 1 ETH C2 1 -0.18 12.011
6 opls_140 1 ETH H21 1 0.06 1.008
7 opls_140 1 ETH H22 1 0.06 1.008
8 opls_140 1 ETH H23 1 0.06 1.008
[ bonds ]
1 2 1 0.109 284512
1 3 1 0.109 284512
1 4 1 0.109 284512
1 5 1 0.1529 224262.4
5 6 1 0.109 284512
5 7 1 0.109 284512
5 8 1 0.109 284512
[ pairs ]
2 6 1
3 7 1
4 8 1
[ angles ]
2 1 3 1 107.8 276.144
3 1 5 5 110.7 313.8 0.22 5000
[ dihedrals ]
2 1 5 6 3 0.6276 1.8828 0.1 -2.5104 0.05 0.02
3 1 5 7 5 1.0 0.5 -0.7 0.2
1 2 3 4 2 35.0 40.0
1 2 3 4 4 180.0 4.6 2
4 1 5 8 9 60.0 0.65 3
{more}
[ system ]
two molecules
[ molecules ]
ETH 2
"""
NAMES = ("C1", "H11", "H12", "H13", "C2", "H21", "H22", "H23")
PLACES = np.array(
    [
        [0.0, 0.0, 0.0], [-0.5, 0.9, 0.1], [-0.5, -0.6, 0.8], [-0.5, -0.4, -0.9],
        [1.53, 0.1, 0.0], [2.0, 0.9, 0.3], [2.0, -0.7, 0.7], [2.0, -0.3, -1.0],
    ]
)  # fmt: skip


def gro(*shifts, title="ethane"):
    """A frame of molecules, each shifted by (3,) A."""
    rows = [
        f"{m + 1:5d}{'ETH':5}{name:>5}{8 * m + k + 1:5d}" + "".join(f"{x / 10:8.3f}" for x in PLACES[k] + shift)
        for m, shift in enumerate(shifts)
        for k, name in enumerate(NAMES)
    ]
    return "\n".join([title, f"{len(rows):5d}", *rows, "   0.0 0.0 0.0\n"])


@pytest.fixture
def gromacs(tmp_path):
    """Writes topol.top and conf.gro of two molecules and gives their paths."""

    def written(rule=3, more=""):
        (tmp_path / "topol.top").write_text(ETHANE.format(rule=rule, more=more))
        (tmp_path / "conf.gro").write_text(gro([0, 0, 0], [0.3, 4, 1]))
        return tmp_path / "topol.top", tmp_path / "conf.gro"

    return written


@pytest.mark.filterwarnings("ignore")  # openmm.app leaves files open
@pytest.mark.parametrize(("rule", "combining"), [(2, "arithmetic"), (3, "geometric")])
def test_gromacs_topologies(gromacs, rule, combining):
    app = pytest.importorskip("openmm.app")
    top, conf = gromacs(rule)
    atoms = read(top, coordinates=conf)
    system = app.GromacsTopFile(str(top)).createSystem(nonbondedMethod=app.NoCutoff, constraints=None, rigidWater=False)
    assert_same_energies(atoms, system)
    assert atoms.combining == combining
    assert {name: len(table) for name, table in atoms.bonded.tables()} == {
        "bonds": 14, "angles": 4, "torsions": 24, "impropers": 2, "harmonic_impropers": 2,
        "urey_bradley": 2, "cmaps": 0, "one_four": 18, "lj_pairs": 0,
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore")  # openmm.app leaves files open
def test_coordinates_of_gromacs_are_matched_by_name(gromacs):
    """Atoms of one molecule exchanged, all reversed, another residue's name, an atom less."""
    pytest.importorskip("openmm")
    top, conf = gromacs()
    wanted = read(top, coordinates=conf)
    title, n, *rows, box = conf.read_text().splitlines()
    # Nothing tells which of two equal molecules is which: reversed, the last is the first.
    for order, first in (([4, *range(1, 4), 0, *range(5, 16)], 0), (range(16)[::-1], 8)):
        conf.write_text("\n".join([title, n, *(rows[k] for k in order), box, ""]))
        atoms = read(top, coordinates=conf)
        np.testing.assert_array_equal(atoms.positions, np.roll(wanted.positions, -first, axis=0))
        assert any("conf.gro: " in sentence and "matched by name" in sentence for sentence in atoms.notes)
    conf.write_text("\n".join([title, "   15", *rows[:4], *rows[5:], box, ""]))
    with pytest.raises(FormatError, match=r"conf.gro: has 15 atoms where .*topol.top has 16, and lacks its atom 4 "):
        read(top, coordinates=conf)


@pytest.mark.filterwarnings("ignore")  # openmm.app leaves files open
def test_a_topology_of_gromacs_takes_the_coordinates_behind_it(gromacs):
    pytest.importorskip("openmm")
    top, conf = gromacs()
    expected = pele_ocl.nonbond(top, coordinates=conf, gb="none")
    assert pele_ocl.nonbond([top, conf], gb="none").total == expected.total
    assert pele_ocl.nonbond(str(top), str(conf), gb="none").total == expected.total
    said = run("nonbond", top, conf, "--gb", "none", "--json").stdout
    assert json.loads(said)["energy"]["total"] == expected.total


@pytest.mark.filterwarnings("ignore")  # openmm.app leaves the file open where it fails
def test_gromacs_faults_are_sentences(gromacs, tmp_path):
    pytest.importorskip("openmm")
    top, conf = gromacs(more='#include "missing.itp"')
    with pytest.raises(
        FormatError, match=r"topol.top: includes 'missing.itp', which is neither next to it nor in a folder of GMXLIB"
    ):
        read(top, coordinates=conf)
    with pytest.raises(FormatError, match="a topology has no coordinates"):
        read(top)
    top, _ = gromacs()
    (tmp_path / "one.gro").write_text(gro([0, 0, 0]))
    with pytest.raises(FormatError, match=r"has 8 atoms where .*topol.top has 16, and lacks its atom 8 \(2:ETH1:C1\)"):
        read(top, coordinates=tmp_path / "one.gro")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("variable", ["GMXLIB", "GMXDATA"])
def test_force_fields_of_gromacs_are_included_by_its_variables(gromacs, tmp_path, monkeypatch, variable):
    """As pdb2gmx writes them: `#include "amber99sb.ff/forcefield.itp"`, from a folder that the environment names."""
    pytest.importorskip("openmm")
    top, conf = gromacs(more='#include "some.ff/more.itp"')
    folder = tmp_path / "share" / ("top" if variable == "GMXDATA" else "") / "some.ff"
    folder.mkdir(parents=True)
    (folder / "more.itp").write_text("; nothing more\n")
    with pytest.raises(FormatError, match="set GMXDATA to the folder share/gromacs of GROMACS"):
        read(top, coordinates=conf)
    monkeypatch.setenv(variable, f"/nowhere:{tmp_path / 'share'}" if variable == "GMXLIB" else str(tmp_path / "share"))
    assert len(read(top, coordinates=conf)) == 16


@pytest.mark.filterwarnings("ignore")
def test_types_of_gromacs_are_those_of_the_file(gromacs):
    pytest.importorskip("openmm")
    top, conf = gromacs()
    atoms = read(top, coordinates=conf)
    assert set(atoms.types.tolist()) <= {line.split()[0] for line in top.read_text().splitlines() if line.strip()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("line", "message"), [("8 1 2 3 4 0.1 0.1", "too few numbers"), ("8 1 2 99 1 0.1 0.1", "no such atoms")]
)
def test_damaged_virtual_sites_of_gromacs(gromacs, line, message):
    pytest.importorskip("openmm")
    top, conf = gromacs()
    text = top.read_text().replace("[ system ]", f"[ virtual_sites3 ]\n{line}\n\n[ system ]")
    top.write_text(text)
    with pytest.raises(FormatError, match=rf"virtual_sites3 \] of .*: {message}"):
        read(top, coordinates=conf)


def test_gromacs_on_the_command_line(gromacs):
    pytest.importorskip("openmm")
    top, conf = gromacs()
    assert "topol.top: 16 atoms" in run("energy", top, "-c", conf).stdout
    assert "--parameters" in run("energy", "--help-all").stdout
    assert "parameter files need a .psf" in error_of("energy", top, "-c", conf, "--parameters", conf)


NUMBERED = """\
[ defaults ]
1 2 yes 0.5 0.8333
[ atomtypes ]
X 0 12.0 0.0 A 0.3 0.4
[ moleculetype ]
CHAIN 3
[ atoms ]
1 X 41 HID CA 1 0 12
2 X 41 HID CB 1 0 12
3 X 41A HID CA 1 0 12
4 X -3 SOL CA 1 0 12
5 X 7 NA NA 1 0 12
6 X 7 CL CL 1 0 12
[ bonds ]
1 2 1 0.15 1000
[ system ]
two copies
[ molecules ]
CHAIN 2
"""


def test_gromacs_residues_are_those_of_the_file(tmp_path):
    """Names, numbers and insertion codes come from [ atoms ]; copies of a molecule are chains of their own."""
    pytest.importorskip("openmm")
    top, conf = tmp_path / "topol.top", tmp_path / "conf.gro"
    top.write_text(NUMBERED)
    names = [("HID", "CA"), ("HID", "CB"), ("HID", "CA"), ("SOL", "CA"), ("NA", "NA"), ("CL", "CL")] * 2
    numbers = (1, 1, 2, 3, 4, 5, 6, 6, 7, 8, 9, 10)
    rows = [
        f"{number:5d}{residue:5}{name:>5}{k + 1:5d}{0.3 * k:8.3f}{0:8.3f}{0:8.3f}"
        for k, ((residue, name), number) in enumerate(zip(names, numbers, strict=True))
    ]
    conf.write_text("\n".join(["title", "12", *rows, "0 0 0\n"]))
    atoms = read(top, coordinates=conf)
    own = [("HID", 41, ""), ("HID", 41, "A"), ("SOL", -3, ""), ("NA", 7, ""), ("CL", 7, "")]
    assert list(atoms.labels.residues) == [(chain, *row) for chain in "12" for row in own]
    assert np.flatnonzero(atoms.selected("resid 41A")).tolist() == [2, 8]
    assert np.flatnonzero(atoms.selected("chain 2 and resid 41")).tolist() == [6, 7]


def test_gro_files(tmp_path):
    file = tmp_path / "two.gro"
    file.write_text(gro([0, 0, 0]) + gro([0, 0, 5.0]))
    first, second = read_structure(file), read_structure(file, 2)
    assert first.positions == pytest.approx(PLACES, abs=1e-9)
    assert second.positions == pytest.approx(PLACES + np.array([0, 0, 5]), abs=1e-9)
    assert first.labels.elements.tolist() == ["C", "H", "H", "H", "C", "H", "H", "H"]
    assert str(first.labels.residues[0]) == "ETH1"
    assert any("several models" in note for note in first.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (gro([0, 0, 0]).replace("  0.153", "  0.1x3", 1), ":7: .* contains no x, y and z"),
        ("title\n    9\n" + "\n".join(gro([0, 0, 0]).splitlines()[2:]), ":2: announces 9 atoms|truncated|no x, y"),
        ("title\nmany\n", ":2: 'many' is not a whole number"),
        (gro([0, 0, 0]).rsplit("\n", 2)[0] + "\n", "ends before the box line"),
    ],
)
def test_damaged_gro_files(tmp_path, text, message):
    file = tmp_path / "bad.gro"
    file.write_text(text)
    with pytest.raises(FormatError, match=message):
        read_structure(file)


PSF = """\
PSF CMAP

       1 !NTITLE
 REMARKS formamide by hand

       6 !NATOM
       1 FORM 1    FORM HA   HA     0.080000        1.0080           0
       2 FORM 1    FORM C    CC     0.420000       12.0110           0
       3 FORM 1    FORM N    NH2   -0.690000       14.0070           0
       4 FORM 1    FORM HC   H      0.350000        1.0080           0
       5 FORM 1    FORM HT   H      0.350000        1.0080           0
       6 FORM 1    FORM O    O     -0.510000       15.9990           0

       5 !NBOND: bonds
       1       2       2       6       2       3       3       4
       3       5

       6 !NTHETA: angles
       1       2       6       1       2       3       6       2       3
       2       3       4       2       3       5       4       3       5

       4 !NPHI: dihedrals
       1       2       3       4       1       2       3       5
       6       2       3       4       6       2       3       5

       1 !NIMPHI: impropers
       2       1       3       6

       0 !NDON: donors


       0 !NACC: acceptors


       0 !NNB

       0       0       0       0       0       0

       1       0 !NGRP
       0       0       0

       0 !NCRTERM: cross-terms

"""
PRM = """\
* parameters by hand
*

ATOMS
MASS     1 HA     1.00800
MASS     2 CC    12.01100
MASS     3 NH2   14.00700
MASS     4 H      1.00800
MASS     5 O     15.99900

BONDS
CC   HA    317.130     1.1000
O    CC    650.000     1.2300
NH2  CC    430.000     1.3600
H    NH2   480.000     1.0000

ANGLES
HA   CC   O      44.000   122.0000
HA   CC   NH2    44.000   111.0000   50.00   1.98000
O    CC   NH2    75.000   122.5000   50.00   2.37000
CC   NH2  H      50.000   120.0000
H    NH2  H      23.000   120.0000

DIHEDRALS
X    CC   NH2  X        1.4000  2   180.00
HA   CC   NH2  H        0.3000  1     0.00

IMPROPER
CC   HA   NH2  O       45.0000  0     0.00

NONBONDED nbxmod  5 atom cdiel shift vatom vdistance vswitch -
cutnb 14.0 ctofnb 12.0 ctonnb 10.0 eps 1.0 e14fac 1.0 wmin 1.5
HA     0.000000  -0.022000     1.320000
CC     0.000000  -0.070000     2.000000
NH2    0.000000  -0.200000     1.850000
H      0.000000  -0.046000     0.224500
O      0.000000  -0.120000     1.700000   0.000000  -0.120000     1.400000
{more}
END
"""
FORMAMIDE = [
    ("HA", "H", -0.95, 0.55, 0.25), ("C", "C", 0.0, 0.0, 0.0), ("N", "N", 1.15, 0.7, 0.1),
    ("HC", "H", 2.05, 0.25, -0.1), ("HT", "H", 1.13, 1.7, 0.15), ("O", "O", -0.05, -1.22, -0.15),
]  # fmt: skip


@pytest.fixture
def charmm(tmp_path):
    """Writes a PSF, its parameters and a PDB file, and gives their paths."""

    def written(more=""):
        (tmp_path / "f.psf").write_text(PSF)
        (tmp_path / "f.prm").write_text(PRM.format(more=more))
        rows = [
            f"ATOM  {k:5d}  {name:<3} FORM    1    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00          {symbol:>2}"
            for k, (name, symbol, x, y, z) in enumerate(FORMAMIDE, 1)
        ]
        (tmp_path / "f.pdb").write_text("\n".join([*rows, "END\n"]))
        return tmp_path / "f.psf", tmp_path / "f.prm", tmp_path / "f.pdb"

    return written


def test_charmm_topologies(charmm):
    app = pytest.importorskip("openmm.app")
    psf, prm, pdb = charmm()
    atoms = read(psf, coordinates=pdb, parameters=[prm])
    lines = pdb.read_text().splitlines(keepends=True)
    pdb.write_text("".join([*lines[:6][::-1], *lines[6:]]))
    np.testing.assert_array_equal(read(psf, coordinates=pdb, parameters=[prm]).positions, atoms.positions)
    pdb.write_text("".join([*lines[:5], lines[5].replace(" O ", " S "), *lines[6:]]))
    with pytest.raises(FormatError, match=r"f.pdb: has atom 5 \(FORM1:S\) where .*f.psf has atom 5 "):
        read(psf, coordinates=pdb, parameters=[prm])
    pdb.write_text("".join(lines))
    made = app.CharmmPsfFile(str(psf))
    system = made.createSystem(
        app.CharmmParameterSet(str(prm)), nonbondedMethod=app.NoCutoff, constraints=None, rigidWater=False
    )
    assert_same_energies(atoms, system)
    assert {name: len(table) for name, table in atoms.bonded.tables()} == {
        "bonds": 5, "angles": 6, "torsions": 4, "impropers": 0, "harmonic_impropers": 1, "urey_bradley": 2, "cmaps": 0,
        "one_four": 4, "lj_pairs": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("pair", "n_pairs"),
    [
        ("HA  O    -0.5 3.0", 0),  # the only such pair is excluded
        ("H   O    -0.5 3.0 -0.3 2.5", 0),  # 1-4 pairs, with parameters of their own
    ],
)
def test_charmm_pairs_with_parameters_of_their_own(charmm, pair, n_pairs):
    app = pytest.importorskip("openmm.app")
    psf, prm, pdb = charmm(more=f"\nNBFIX\n{pair}\n")
    atoms = read(psf, coordinates=pdb, parameters=[prm])
    system = app.CharmmPsfFile(str(psf)).createSystem(
        app.CharmmParameterSet(str(prm)), nonbondedMethod=app.NoCutoff, constraints=None, rigidWater=False
    )
    assert len(atoms.bonded.lj_pairs) == n_pairs
    assert_same_energies(atoms, system)


def test_charmm_faults_are_sentences(charmm):
    pytest.importorskip("openmm")
    psf, prm, pdb = charmm()
    whole = prm.read_text()
    prm.write_text("* a parameter file without its topology\nBONDS\nXX  XX  222.5  1.53\nEND\n")
    with pytest.raises(FormatError, match=r"f.psf: no parameter file defines the atom type 'C|H|N|O|F'.*\.rtf"):
        read(psf, coordinates=pdb, parameters=[prm])
    prm.write_text(whole)
    with pytest.raises(InputError, match="a PSF has no parameters; give CHARMM's parameter files as `parameters`"):
        read(psf, coordinates=pdb)
    with pytest.raises(InputError, match=r"parameter files need a .psf and a coordinate file"):
        read(psf, parameters=[prm])
    assert "no such file" in error_of("energy", psf, "-c", pdb, "--parameters", "none.prm")


MOL2 = """\
# made by hand
@<TRIPOS>MOLECULE
ETO
 9 8 1 0 0
SMALL
bcc

@<TRIPOS>ATOM
      1 C1   -0.90  0.10  0.00 {c}  1 ETO1 -0.136
      2 C2    0.50 -0.50  0.00 {c}  1 ETO1  0.126
      3 O1    1.45  0.55  0.00 {o}  1 ETO1 -0.600
      4 H1   -1.05  0.72  0.88 {h}  1 ETO1  0.042
      5 H2   -1.05  0.72 -0.88 {h}  1 ETO1  0.042
      6 H3   -1.65 -0.69  0.00 {h}  1 ETO1  0.042
      7 H4    0.65 -1.13  0.88 {h}  1 ETO1  0.044
      8 H5    0.65 -1.13 -0.88 {h}  1 ETO1  0.044
      9 H6    2.33  0.17  0.00 {h}  1 ETO1  0.396
@<TRIPOS>BOND
 1 1 2 1
 2 2 3 1
 3 1 4 1
 4 1 5 1
 5 1 6 1
 6 2 7 1
 7 2 8 1
 8 3 9 1
"""


@pytest.mark.parametrize("types", [{"c": "c3", "o": "oh", "h": "hc"}, {"c": "C.3", "o": "O.3", "h": "H"}])
def test_mol2_files(tmp_path, types):
    file = tmp_path / "l.mol2"
    file.write_text(MOL2.format(**types) * 2)
    atoms = read(file, model=2)
    assert atoms.labels.elements.tolist() == ["C", "C", "O"] + ["H"] * 6
    assert atoms.charges.sum() == pytest.approx(0)
    assert atoms.types[2] == types["o"]
    assert (len(atoms.bonds), atoms.gb_radii_set, atoms.labels.residue(0)) == (8, "mbondi2", "ETO1")
    assert atoms.gb_radii.tolist() == [1.7, 1.7, 1.5] + [1.2] * 6
    assert "several models" in read(file).notes[0]
    assert "gb self" in run("solvent", file).stdout
    assert "a .mol2 file has no Lennard-Jones parameters; give the molecule as an SDF file" in error_of("energy", file)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("bcc", "NO_CHARGES", "contains NO_CHARGES; write it with charges"),
        ("-0.136", "", ":9: an atom needs number, name"),
        ("-0.136", "much", ":9: 'much' is not a number"),
        (" 8 3 9 1", " 8 3 99 1", ":26: '8 3 99 1' is not a bond of two atoms"),
        ("@<TRIPOS>ATOM", "@<TRIPOS>CRYSIN", "contains no @<TRIPOS>ATOM section"),
    ],
)
def test_damaged_mol2_files(tmp_path, old, new, message):
    file = tmp_path / "l.mol2"
    file.write_text(MOL2.format(c="c3", o="oh", h="hc").replace(old, new))
    with pytest.raises(FormatError, match=message):
        read(file)
