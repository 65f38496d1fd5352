"""`pele-ocl pb` as a user meets it: structures, and input files of APBS with its lines and files."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_cli import HEXAPEPTIDE, error_of, on_the_chosen_device, run

import pele_ocl
from pele_ocl import PBIon, PBModel, PoissonBoltzmann, Potmap, pb, read, read_map, write_map

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

COARSE = ("--spacing", 1)
PQR = """\
ATOM      1  I   ION     1       0.000   0.000   0.000  1.00 3.00
ATOM      2  C   ION     1       1.000   0.500   0.300  -0.4 1.50
"""
# Energies that APBS 3.4.1 prints for it, at etol 1e-12: of the two grids of `solv`, and the atoms' shares.
INPUT = """\
# comment
read
    mol pqr "two ions.pqr"   # with a blank
end
elec name solv
    mg-auto
    dime 33 33 33
    cglen 24 24 24
    cgcent mol 1
    fglen 16 16 16
    fgcent mol 1
    mol 1
    lpbe
    bcfl sdh
    ion charge 1 conc 0.15 radius 2.0
    ion charge -1 conc 0.15 radius 1.8
    pdie 2.0
    sdie 78.54
    chgm spl2
    srfm smol
    srad 1.4
    swin 0.3
    sdens 10.0
    temp 298.15
    etol 1e-12
    calcenergy comps
    calcforce no
    write pot dx pot
    write kappa dx kappa
    write charge gz charge
    write atompot flat atoms
end
elec name ref
    mg-manual
    dime 33 33 33
    glen 24 24 24
    gcent mol 1
    mol 1
    lpbe
    bcfl zero
    pdie 2.0
    sdie 2.0
    chgm spl0
    srfm mol
    srad 1.4
    swin 0.3
    sdens 10.0
    temp 298.15
    etol 1e-12
    calcenergy total
    calcforce no
end
print elecEnergy solv - ref end
quit
"""
REF = "gcent mol 1\n    mol 1\n    lpbe\n    bcfl zero"  # of the second calculation
LEVELS = (3.614655363551e02, 6.967346170785e02)
ATOMS = ((4.003817478379e02, 7.683122314115e02), (-6.785348224144, 5.898511950516e01))  # on both grids
PARTS = ("361.466", "0.0689235", "361.375"), ("696.735", "0.0665943", "696.63")  # as apbs prints them
POTENTIALS = (6.198637e02, -1.189709e02)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Current folder with the input file and its molecule."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two ions.pqr").write_text(PQR)
    (tmp_path / "apbs.in").write_text(INPUT)
    return tmp_path


def numbers_after(text: str, begin: str) -> list[float]:
    return [float(line.split(begin)[1].split()[0]) for line in text.splitlines() if begin in line]


def test_a_structure_has_an_energy_and_its_error():
    lines = run("pb", HEXAPEPTIDE, *COARSE).stdout.splitlines()
    assert lines[0].startswith("hexapeptide.pdb: 96 atoms")
    assert lines[1] == "Force field   amber99sb"
    assert "surface edges, radii openmm-obc, dielectrics 2 and 78.54, no salt, linear equation" in lines[2]
    ends = [
        re.match(f"{head} +-?[\\d.]+(?= {unit})", line).end()
        for line, head, unit in zip(
            lines[4:7], ("Solvation energy", "  solver", "  grid"), ("kcal/mol$", "change of", "an upper"), strict=True
        )
    ]
    assert len(set(ends)) == 1, lines[4:7]


def test_json_holds_what_the_class_gives():
    found = json.loads(run("pb", HEXAPEPTIDE, *COARSE, "--ionic-strength", 0.1, "--per-residue", "--json").stdout)
    ions = [PBIon(1, 0.1), PBIon(-1, 0.1)]
    expected = PoissonBoltzmann(read(HEXAPEPTIDE), PBModel(ions=ions), spacing=1).solve()
    assert found["energy"]["solvation"] == pytest.approx(expected.energy, rel=1e-6)
    assert found["errors"]["grid"] == pytest.approx(expected.errors.grid, rel=1e-4)
    assert sum(row["total"] for row in found["residues"]) == pytest.approx(expected.energy, rel=1e-5)
    assert found["shape"] == list(expected.levels[-1].grid.shape)
    assert (found["settings"]["forcefield"], found["settings"]["radii_set"]) == ("amber99sb", "openmm-obc")
    assert found["settings"]["ions"][0] == {"charge": 1, "concentration": 0.1, "radius": 2.0}


def test_a_coarse_grid_and_a_map_without_salt_are_noted(tmp_path):
    """Both doors recommend a smaller spacing, and say that `view` has salt, unless the salt is given."""
    coarse = run("pb", HEXAPEPTIDE, *COARSE)
    assert re.search(r"^Note: the error of the grid may be up to \d+\.\d% of the energy; --spacing 0.5 reduces it$",
                     coarse.stderr, re.M)  # fmt: skip
    assert "salt" not in coarse.stderr
    found = pele_ocl.pb(HEXAPEPTIDE, spacing=1, output=tmp_path / "map.dx")
    record = json.loads(run("pb", HEXAPEPTIDE, *COARSE, "-o", tmp_path / "map.mrc", "--json").stdout)
    assert record["note_codes"] == found.to_json()["note_codes"] == ["grid_error", "no_salt"]
    assert record["notes"][1].endswith("without salt; `view` shows potentials with `ionic_strength=0.15`")
    ion = pele_ocl.Atoms(positions=[[0, 0, 0]], charges=[1.0], gb_radii=[2.0])
    fine = pele_ocl.pb(ion, spacing=0.25, padding=4, output=tmp_path / "fine.dx", ionic_strength=0)
    assert fine.errors.grid < 0.02 * abs(fine.energy)
    assert not fine.heard
    assert not pele_ocl.pb(ion, spacing=0.25, padding=4, output=tmp_path / "ions.dx", ion=[(1, 0.1), (-1, 0.1)]).heard


def test_like_apbs_is_the_difference_of_two_solutions():
    found = json.loads(run("pb", HEXAPEPTIDE, *COARSE, "--like", "apbs", "--json").stdout)
    shown = run("pb", HEXAPEPTIDE, *COARSE, "--like", "apbs").stdout
    assert "unknown not estimated as APBS computes; compare with a smaller --spacing, or leave out --like apbs" in shown
    ours = json.loads(run("pb", HEXAPEPTIDE, *COARSE, "--surface", "smol", "--json").stdout)
    assert found["settings"]["surface"] == "smol"
    assert found["settings"]["charges"] == "spl2"
    assert found["energy"]["solvation"] == pytest.approx(ours["energy"]["solvation"], rel=0.05)


def test_the_potential_is_written(tmp_path):
    out = tmp_path / "map.dx"
    run("pb", HEXAPEPTIDE, *COARSE, "-o", out)
    map_ = read_map(out)
    assert map_.unit == "kT/e"
    assert np.isfinite(map_.values).all()


def test_a_written_map_is_of_a_wide_grid(tmp_path):
    """Energies are of the grid alone, with a map as without one, in both doors."""
    out, saved = tmp_path / "map.dx", tmp_path / "saved.dx"
    energy = json.loads(run("pb", HEXAPEPTIDE, *COARSE, "-o", out, "--json").stdout)["energy"]["total"]
    wide = PoissonBoltzmann(read(HEXAPEPTIDE), spacing=1, wide=True).solve()
    assert read_map(out).values == pytest.approx(wide.map.values, rel=1e-5, abs=1e-5)
    alone = PoissonBoltzmann(read(HEXAPEPTIDE), spacing=1).solve()
    assert wide.energy != alone.energy
    edge = np.s_[3, :, :]
    assert np.abs(wide.map.values - alone.map.values)[edge].max() > 0.05 * np.abs(wide.map.values[edge]).max()
    result = pb(HEXAPEPTIDE, spacing=1)
    result.save(saved)
    assert energy == result.energy == alone.energy == pb(HEXAPEPTIDE, spacing=1, keep_map=False).energy
    assert read_map(saved).values.tobytes() == read_map(out).values.tobytes()


def test_input_of_apbs_gives_its_digits_and_files(folder):
    text = run("pb", "apbs.in").stdout
    assert numbers_after(text, "Total electrostatic energy = ")[:2] == pytest.approx(LEVELS, rel=1e-10)
    for k, of_grids in enumerate(ATOMS):
        assert numbers_after(text, f"Atom {k}:") == pytest.approx(of_grids, rel=1e-10)
    for number, parts in enumerate(PARTS):
        for name, value in zip(("Fixed charge", "Mobile charge", "Dielectric"), parts, strict=True):
            assert text.split(f"{name} energy = ")[number + 1].split()[0] == value
    ref = numbers_after(text, "Total electrostatic energy = ")[2]
    assert numbers_after(text, "Global net ELEC energy = ")[0] == pytest.approx(LEVELS[1] - ref, rel=1e-12)
    assert "print energy 1 (solv) - 2 (ref) end" in text
    potentials = [float(line) for line in (folder / "atoms.txt").read_text().splitlines() if not line.startswith("#")]
    assert potentials == pytest.approx(POTENTIALS, rel=1e-6)
    assert set(np.unique(read_map(folder / "kappa.dx").values)) == {0, 1}
    charge = read_map(folder / "charge.dx.gz")
    assert charge.values.sum() * 0.5**3 == pytest.approx(0.6, abs=1e-5)
    assert read_map(folder / "pot.dx").unit == "kT/e"


def test_numbers_of_older_files_stand_for_words(folder):
    words = INPUT.split("elec name ref")[0] + "quit\n"
    (folder / "words.in").write_text(words)
    numbers = words.replace("bcfl sdh", "bcfl 1").replace("srfm smol", "srfm 1").replace("chgm spl2", "chgm 1")
    (folder / "numbers.in").write_text(
        numbers.replace("calcenergy comps", "calcenergy 2").replace("swin 0.3", "swin 0")
    )
    assert run("pb", "numbers.in").stdout == run("pb", "words.in").stdout


def test_what_a_molecule_leaves_out_is_told(folder):
    models = "".join(f"MODEL {n}\n{PQR}ENDMDL\n" for n in (1, 2))
    (folder / "two ions.pqr").write_text(models)
    found = run("pb", "apbs.in", "--json")
    assert json.loads(found.stdout)["notes"][0].startswith("two ions.pqr contains several models; model 1, the first")


@pytest.mark.skipif(shutil.which("apbs") is None, reason="apbs is not installed")
def test_maps_are_those_of_apbs(folder):
    run("pb", "apbs.in")
    subprocess.run(["apbs", "apbs.in"], check=True, capture_output=True)
    theirs = next(path for path in folder.glob("pot*.dx") if path.name != "pot.dx")
    ours, peer = read_map(folder / "pot.dx").values, read_map(theirs).values
    assert np.abs(ours - peer).max() < 1e-5 * np.abs(peer).max()


MAPPED = """
read
 mol pqr "two ions.pqr"
 {read}
end
elec name mapped
 mg-manual
 dime 33 33 33
 grid 0.5 0.55 0.6
 gcent mol 1
 mol 1
 {equation}
 bcfl zero
 ion charge 1 conc 0.2 radius 2.0
 ion charge -1 conc 0.2 radius 2.0
 pdie 2.0
 sdie 78.54
 srfm smol
 chgm spl2
 srad 1.4
 swin 0.3
 sdens 10.0
 temp 298.15
 etol 1e-12
 calcenergy total
 {more}
end
quit
"""
READ = "diel dx dx.dx dy.dx dz.dx kappa dx k.dx charge dx c.dx"
USED = "usemap diel 1 usemap kappa 1 usemap charge 1"


def mapped(folder: Path, equation: str = "lpbe", read: str = "", more: str = "", program: str = "") -> float:
    """Energy of a calculation that reads or writes maps, kJ/mol, by ours or by another program."""
    (folder / "mapped.in").write_text(MAPPED.format(equation=equation, read=read, more=more))
    if program:
        ended = subprocess.run([program, "mapped.in"], capture_output=True, text=True)
        if ended.returncode < 0:
            pytest.skip(f"{program} crashed by itself")  # 3.4.1 does so now and then
        ended.check_returncode()
        done = ended.stdout
    else:
        done = run("pb", "mapped.in").stdout
    return numbers_after(done, "Total electrostatic energy = ")[0]


@pytest.fixture
def with_maps(folder) -> float:
    """The energy without maps, after the maps were written."""
    names = {"dielx": "dx", "diely": "dy", "dielz": "dz", "kappa": "k", "charge": "c"}
    return mapped(folder, more=" ".join(f"write {what} dx {stem}" for what, stem in names.items()))


def test_maps_are_read(folder, with_maps):
    """Maps that were written give their calculation's energy, to the digits of the files; others do not."""
    assert mapped(folder, read=READ, more=USED) == pytest.approx(with_maps, rel=1e-6)
    charge = read_map("c.dx")
    write_map("c.dx", replace(charge, values=2 * charge.values))
    assert mapped(folder, read=READ, more=USED) == pytest.approx(4 * with_maps, rel=1e-6)
    found = json.loads(run("pb", "mapped.in", "--json").stdout)
    assert found["calculations"][0]["maps"] == ["dx.dx", "dy.dx", "dz.dx", "k.dx", "c.dx"]
    dielectric = read_map("dx.dx")
    write_map("dx.dx", replace(dielectric, values=2 * dielectric.values))
    assert mapped(folder, read=READ, more=USED) < 3.9 * with_maps


@pytest.mark.skipif(shutil.which("apbs") is None, reason="apbs is not installed")
def test_maps_are_read_as_apbs_reads_them(folder, with_maps):
    """On a grid between the map's nodes, in the nonlinear equation."""
    ours, theirs = (mapped(folder, "npbe", READ, f"{USED} grid 0.41 0.43 0.45", program) for program in ("", "apbs"))
    assert ours == pytest.approx(theirs, rel=1e-10)


def values_of(path: Path) -> np.ndarray:
    """Values of a map of 33 points along each axis, no numbers among them."""
    words = path.read_text().partition("data follows\n")[2].split()
    return np.array(words[: 33**3], float).reshape(33, 33, 33)


WRITTEN = ("pot", "smol", "sspl", "vdw", "ivdw", "lap", "edens", "ndens", "qdens")


@pytest.mark.skipif(shutil.which("apbs") is None, reason="apbs is not installed")
@pytest.mark.parametrize(("equation", "surface"), [("npbe", "mol"), ("lpbe", "spl2")])
def test_written_quantities_are_those_of_apbs(folder, equation, surface):
    wanted = [name for name in WRITTEN if (name, surface) != ("edens", "spl2")]
    more = f"srfm {surface} " + " ".join(f"write {name} dx ours_{name}" for name in wanted)
    mapped(folder, equation, more=more)
    mapped(folder, equation, more=more.replace("ours", "theirs"), program="apbs")
    for name in wanted:
        theirs = next(folder.glob(f"theirs_{name}*.dx"))
        inner = (slice(1, -1),) * 3  # at the border APBS 3.4.1 leaves numbers of edens as memory had them
        ours, peer = (values_of(path)[inner] for path in (folder / f"ours_{name}.dx", theirs))
        assert np.abs(ours - peer).max() < 1e-6 * np.abs(peer).max(), name
        title = theirs.read_text().splitlines()[2]
        assert (folder / f"ours_{name}.dx").read_text().splitlines()[0] == title, name


def test_written_quantities_are_what_they_say(folder):
    """Access from distances, densities by their formulas, of the nonlinear equation."""
    mapped(folder, "npbe", more=" ".join(f"write {name} dx {name}" for name in WRITTEN))
    found = {name: read_map(folder / f"{name}.dx") for name in WRITTEN}
    grid, values = found["pot"].grid, {name: np.asarray(map_.values, float) for name, map_ in found.items()}
    z, y, x = np.meshgrid(*grid.axes()[::-1], indexing="ij")
    far = [np.sqrt((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2) for a, b, c in ((0, 0, 0), (1, 0.5, 0.3))]
    vdw, ivdw = ((far[0] >= 3 + more) & (far[1] >= 1.5 + more) for more in (0, 2))
    assert np.array_equal(values["vdw"], vdw)
    assert np.array_equal(values["ivdw"], ivdw)
    assert (values["smol"] <= vdw).all()
    assert (values["smol"][(far[0] > 5.8) & (far[1] > 4.3)] == 1).all()
    u = values["pot"]
    expected = ivdw * 0.2 * (np.exp(-u) - np.exp(u))
    assert np.abs(values["qdens"] - expected).max() < 1e-5 * np.abs(expected).max()
    squares = sum(np.gradient(u, h, axis=2 - axis) ** 2 for axis, h in enumerate(grid.spacing))
    expected = (2 + 76.54 * values["smol"]) * squares
    assert np.abs(values["edens"] - expected).max() < 1e-5 * expected.max()


@pytest.mark.parametrize(
    ("read", "more", "sentence"),
    [
        (READ, "srfm spl2 write edens dx e", "line 6: write edens is supported with srfm mol and smol, not with spl2"),
        (READ, "usemap pot 1", "line 26: usemap pot is not supported; choose diel, kappa, charge"),
        (READ, "usemap kappa 2", "line 26: usemap kappa 2: READ has 1 of `kappa`"),
        ("kappa uhbd k.dx", "usemap kappa 1", "line 4: maps are not read as uhbd; choose dx or gz"),
        ("kappa dx none.dx", "usemap kappa 1", "none.dx: no such file"),
        (READ, f"{USED} grid 0.6 0.6 0.7", "line 6: the map of dielectric constants along x does not cover the grid"),
    ],
)  # fmt: skip
def test_maps_that_do_not_fit_are_named(folder, with_maps, read, more, sentence):
    (folder / "mapped.in").write_text(MAPPED.format(equation="lpbe", read=read, more=more))
    assert sentence in error_of("pb", "mapped.in")


def test_json_of_an_input_file(folder):
    """All that the text and its notes say is in it."""
    first, second = INPUT.replace("print elec", "apolar\nend\nprint elec").split("elec name ref")
    (folder / "apbs.in").write_text(first + "elec name ref" + second.replace("etol 1e-12", "etol 1e-3"))
    found = json.loads(run("pb", "apbs.in", "--json").stdout)
    assert [each["name"] for each in found["calculations"]] == ["solv", "ref"]
    assert [level["energy_kj"] for level in found["calculations"][0]["levels"]] == pytest.approx(LEVELS, rel=1e-10)
    assert found["prints"][0] == pytest.approx(
        found["calculations"][0]["energy_kj"] - found["calculations"][1]["energy_kj"]
    )
    assert found["calculations"][0]["per_atom_kj"] == pytest.approx([last for _, last in ATOMS], rel=1e-10)
    assert [each["notes"] for each in found["calculations"]] == [[], ["etol 0.001 was changed to 1e-06"]]
    assert "per_atom_kj" not in found["calculations"][1]
    assert found["notes"] == [
        "line 53: APOLAR is left out: apolar terms of APBS are not supported",
        "apbs.in: ELEC ref: etol 0.001 was changed to 1e-06",
    ]


CONTINUED = """\
read
    mol pqr "two ions.pqr"
end
elec name coarse
    mg-manual  dime 33 33 33  glen 24 24 24  gcent mol 1  mol 1  lpbe  bcfl sdh
    ion charge 1 conc 0.15 radius 2.0  ion charge -1 conc 0.15 radius 1.8
    pdie 2.0  sdie 78.54  chgm spl2  srfm smol  srad 1.4  swin 0.3  sdens 10.0  temp 298.15
    etol 1e-12  calcenergy total  calcforce no
end
elec name fine
    mg-manual  dime 33 33 33  glen 16 16 16  gcent mol 1  mol 1  lpbe  bcfl focus
    ion charge 1 conc 0.15 radius 2.0  ion charge -1 conc 0.15 radius 1.8
    pdie 2.0  sdie 78.54  chgm spl2  srfm smol  srad 1.4  swin 0.3  sdens 10.0  temp 298.15
    etol 1e-12  calcenergy total  calcforce no
end
"""


def test_a_calculation_may_continue_the_one_before_it(folder):
    """By `bcfl focus` of mg-manual the levels of mg-auto become calculations; energies of each are printed once."""
    (folder / "apbs.in").write_text(CONTINUED)
    text = run("pb", "apbs.in").stdout
    assert numbers_after(text, "Total electrostatic energy = ") == pytest.approx(LEVELS, rel=1e-10)
    found = json.loads(run("pb", "apbs.in", "--json").stdout)
    assert [len(each["levels"]) for each in found["calculations"]] == [1, 1]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("bcfl sdh", "bcfl focus", "line 5: bcfl focus needs a previous calculation"),
        ("mg-manual", "mg-dummy", "line 11: bcfl focus needs a previous calculation"),
        ("srfm smol", "srfm mol", "line 11: bcfl focus continues ELEC coarse, whose molecule, equation or constants"),
        ("glen 24 24 24", "glen 12 24 24", "line 10: a grid is not inside the previous one"),
        ("mg-manual  dime 33 33 33  glen 16 16 16  gcent mol 1",
         "mg-auto dime 33 33 33 cglen 9 9 9 fglen 8 8 8 cgcent mol 1 fgcent mol 1", "line 11: bcfl focus can only"),
    ],
)  # fmt: skip
def test_what_cannot_be_continued_is_named_with_its_line(folder, old, new, sentence):
    (folder / "apbs.in").write_text(CONTINUED.replace(old, new, 1))
    assert sentence in error_of("pb", "apbs.in")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("mg-auto", "tabi", "line 6: tabi (TABI-PB) is another solver of APBS"),
        ("mg-auto", "geoflow", "line 6: geoflow (geometric flow) is another solver of APBS"),
        ("lpbe", "smpbe", "line 13: smpbe (the size-modified equation) is not supported"),
        ("srfm smol", "srfm 3", "line 20: srfm 3 is not supported; choose mol, smol, spl2"),
        ("srfm smol", "srfm spl3", "line 20: srfm spl3 is not supported; choose mol, smol, spl2"),
        ("chgm spl2", "chgm spl3", "line 19: chgm spl3 is not supported"),
        ("bcfl sdh", "bcfl mem", "line 14: bcfl mem is not supported"),
        ("calcforce no", "calcforce total", "line 27: calcforce total is not supported; forces are not supported"),
        ("write kappa dx kappa", "write force dx x", "line 29: `write force` is not supported; choose pot, charge"),
        (REF, REF.replace("gcent mol 1", "gcent 90 0 0"), "line 33: no atom is inside"),
        ("write kappa dx kappa", "write kappa uhbd x", "line 29: maps are not written as uhbd"),
        ("write kappa dx kappa", "write kappa dx ./pot", "line 29: pot.dx: the same file as the output pot.dx"),
        ("write kappa dx kappa", "write kappa dx none/kappa", "line 29: none/kappa.dx: the folder "),
        ("gcent mol 1", "gcent mol \u00b2", "line 9: unknown molecule \u00b2; READ names 1"),
        ("pdie 2.0", "pdie two", "line 17: 'two' is not a number, which pdie needs"),
        ("pdie 2.0", "", "line 5: pdie is missing in ELEC solv"),
        ("conc 0.15 radius 2.0", "conc 0.25 radius 2.0", "line 5: the salt is not neutral"),
        ("fgcent mol 1", "fgcent mol 2", "line 11: unknown molecule 2; READ names 1"),
        ("fgcent mol 1", "fgcent mol \N{SUPERSCRIPT TWO}", "line 11: unknown molecule \N{SUPERSCRIPT TWO}; READ"),
        ("dime 33 33 33", "dime 33 33 \N{SUPERSCRIPT THREE}", "line 7: dime is 33 33 \N{SUPERSCRIPT THREE}; expected "
        "three"),
        ("solv - ref end", "solv - \N{SUPERSCRIPT TWO} end", "line 53: unknown calculation"),
        ("fglen 16 16 16", "fglen 16 16 60", "line 5: the finest grid is not inside"),
        ("dime 33 33 33", "dime 33 33 3", "line 7: dime is 33 33 3; expected three numbers of points"),
        ("mol pqr", "mol pdb", "line 3: molecules are read as `mol pqr`, not `mol pdb`"),
        ("solv - ref end", "solv - other end", "line 53: unknown calculation 'other'"),
        ("solv - ref end", "solv - end", "line 53: PRINT needs calculations separated by + or -"),
        ("name ref\n    mg-manual", "name ref\n    mg-dummy", "line 53: PRINT refers to ELEC ref, which is mg-dummy"),
        ("etol 1e-12", "etol -1", "line 25: etol is -1"),
        ("temp 298.15", "temperature 298.15", "line 24: unknown keyword 'temperature' in ELEC"),
        ('"two ions.pqr"', '"two ions.pqr', "line 3: a quote is not closed"),
        ('"two ions.pqr"', "none.pqr", "none.pqr: no such file"),
        ("quit", "stop", "line 54: unknown section 'stop'"),
    ],
)  # fmt: skip
def test_what_is_wrong_or_not_done_is_named_with_its_line(folder, old, new, sentence):
    (folder / "apbs.in").write_text(INPUT.replace(old, new, 1))
    assert sentence in error_of("pb", "apbs.in")
    assert not list(folder.glob("*.dx*"))


@pytest.mark.parametrize("is_link", [False, True])
def test_no_output_of_an_input_file_is_a_file_that_it_reads(folder, is_link):
    """Maps that are read count whether they are used or not, and by whichever name."""
    (folder / "own.dx").write_text("a map")
    name = "own"
    if is_link:
        (folder / "link.dx").symlink_to(folder / "own.dx")
        name = "link"
    text = INPUT.replace("read\n", "read\n    charge dx own.dx\n", 1).replace(
        "write kappa dx kappa", f"write kappa dx {name}"
    )
    (folder / "apbs.in").write_text(text)
    assert f"line 30: {name}.dx: the same file as the input own.dx; give the output" in error_of("pb", "apbs.in")
    assert (folder / "own.dx").read_text() == "a map"
    assert not (folder / "pot.dx").exists()


def test_a_file_that_ends_in_the_middle(folder):
    for count in range(1, len(INPUT.split()) - 1, 7):
        (folder / "apbs.in").write_text(
            " ".join(INPUT.replace("# comment\n", "").replace("# with a blank", "").split()[:count])
        )
        assert "apbs.in: line 1: " in error_of("pb", "apbs.in")


def test_options_stand_in_the_input_file_alone(folder):
    for words in (("--dielectric-surface", "mol"), ("--surface", "mol")):  # the latter is its former name
        assert "leave out --dielectric-surface" in run("pb", "apbs.in", *words, code=2).stderr
    assert "leave out --select" in run("pb", "apbs.in", "--select", "protein", code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--ionic-strength", "0.1", "--ion", "1:0.1"), "choose one of --ionic-strength and --ion"),
        (("--like", "apbs", "--extrapolate"), "apply only without --like apbs"),
    ],
)
def test_options_that_do_not_fit(arguments, sentence):
    assert sentence in run("pb", HEXAPEPTIDE, *arguments, code=2).stderr


def test_an_ion_that_cannot_be_read():
    assert "'1:x' is not CHARGE:CONC or CHARGE:CONC:RADIUS" in run("pb", HEXAPEPTIDE, "--ion", "1:x", code=2).stderr


def test_a_salt_that_is_not_neutral():
    assert "the salt is not neutral" in error_of("pb", HEXAPEPTIDE, "--ion", "1:0.1")


def test_sections_that_must_be_there(folder):
    (folder / "apbs.in").write_text("elec end quit")
    assert "no molecule is read" in error_of("pb", "apbs.in")
    (folder / "apbs.in").write_text("read mol pqr 'two ions.pqr' end quit")
    assert "the file has no ELEC section" in error_of("pb", "apbs.in")


def test_a_structure_becomes_a_pqr_file_that_has_its_energy(tmp_path):
    target = tmp_path / "x.pqr"
    words = ("pb", HEXAPEPTIDE, "--spacing", 2, "--json")
    first = json.loads(run(*words, "--pqr", target).stdout)
    second = json.loads(run("pb", target, "--spacing", 2, "--json").stdout)
    assert second["energy"]["solvation"] == pytest.approx(first["energy"]["solvation"], rel=1e-5)
    atoms, again = read(HEXAPEPTIDE), read(target)
    assert np.abs(again.positions - atoms.positions).max() < 6e-5
    assert np.abs(again.charges - atoms.charges).max() < 6e-7
    assert np.array_equal(again.labels.names, atoms.labels.names)
    assert [str(residue) for residue in again.labels.residues] == [str(residue) for residue in atoms.labels.residues]
    assert "the suffix of --pqr must be .pqr" in error_of("pb", HEXAPEPTIDE, "--pqr", tmp_path / "x.pdb")
    assert not (tmp_path / "x.pdb").exists()


def test_radii_of_pdb2pqr_by_names_of_atoms(tmp_path):
    """Also for a PQR file without radii, which is told what to do."""
    report = json.loads(
        run("pb", HEXAPEPTIDE, *COARSE, "--radii", "pdb2pqr-parse", "--pqr", tmp_path / "x.pqr", "--json").stdout
    )
    assert report["settings"]["radii_set"] == "pdb2pqr-parse"
    written = read(tmp_path / "x.pqr")
    plan = PoissonBoltzmann(read(HEXAPEPTIDE), spacing=1.0, radii="pdb2pqr-parse")
    assert np.allclose(plan.solute.radii, written.gb_radii)
    assert plan.solve(keep_map=False).energy == pytest.approx(report["energy"]["total"], rel=1e-6)
    first = {str(name): float(radius) for name, radius in zip(written.labels.names, written.gb_radii, strict=True)}
    assert (first["CA"], first["C"], first["O"], first["HA"]) == (2.0, 1.7, 1.4, 0.0)
    lines = (line.split() for line in (tmp_path / "x.pqr").read_text().splitlines() if line.startswith("ATOM"))
    (tmp_path / "none.pqr").write_text("".join(" ".join([*words[:-1], "0.0"]) + "\n" for words in lines))
    assert "all radii are 0; choose a set of radii, such as pdb2pqr-amber" in error_of("pb", tmp_path / "none.pqr")
    again = json.loads(run("pb", tmp_path / "none.pqr", *COARSE, "--radii", "pdb2pqr-parse", "--json").stdout)
    assert again["energy"]["total"] == pytest.approx(report["energy"]["total"], rel=1e-6)


def test_maps_of_other_commands_take_radii_of_pdb2pqr_and_name_them(tmp_path):
    """`potmap` solves with the radii that pb has, and each map says which they are."""
    out = tmp_path / "x.dx"
    for words in (("pb", HEXAPEPTIDE, *COARSE), ("potmap", HEXAPEPTIDE, "--method", "pb", "--spacing", 2)):
        run(*words, "--radii", "pdb2pqr-parse", "-o", out)
        assert '"radii": "pdb2pqr-parse"' in " ".join(line[2:] for line in out.read_text().splitlines()[:30])
    atoms = read(HEXAPEPTIDE, radii="pdb2pqr-parse")
    grid = read_map(out).grid
    own = Potmap(atoms, grid, method="pb", unit=read_map(out).unit).evaluate().map
    assert read_map(out).values == pytest.approx(own.values, rel=1e-4, abs=1e-4)
    assert "named pdb2pqr-parse now" in run("pb", HEXAPEPTIDE, *COARSE, "--radii", "parse").stderr


def test_a_residue_without_named_radii_is_named(tmp_path):
    (tmp_path / "x.pqr").write_text(PQR)
    assert "ION1: the radii pdb2pqr-charmm do not include this residue" in error_of(
        "pb", tmp_path / "x.pqr", "--radii", "pdb2pqr-charmm"
    )
