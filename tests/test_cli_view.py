"""`pele-ocl view`, and the pictures of `pele-ocl potmap`, as a user meets them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import DEVICES
from test_cli import HEXAPEPTIDE, error_of, on_the_chosen_device, run

import pele_ocl
from pele_ocl import Grid, InputError, Map, read, write_map
from pele_ocl.units import debye_kappa

pytest.importorskip("plotly")
pytest.importorskip("matplotlib")

__all__ = ["on_the_chosen_device"]

COARSE = ("--spacing", 2.1, "--padding", 3, "--device", DEVICES[0].index)


@pytest.fixture(scope="module")
def apbs(tmp_path_factory):
    """A map as APBS writes it: comments of its own, three values per line, z fastest, no unit."""
    atoms = read(HEXAPEPTIDE)
    grid = Grid.around(atoms, 4, 1.5)
    values = np.random.default_rng(1).normal(size=grid.shape[::-1])
    (nx, ny, nz), (x, y, z) = grid.shape, grid.origin
    numbers = [f"{value:.6e}" for value in values.transpose(2, 1, 0).ravel()]
    lines = [
        "# Data from 3.4.1", "# ", "# POTENTIAL (kT/e)", "# ",
        f"object 1 class gridpositions counts {nx} {ny} {nz}", f"origin {x:.6e} {y:.6e} {z:.6e}",
        "delta 1.500000e+00 0.000000e+00 0.000000e+00", "delta 0.000000e+00 1.500000e+00 0.000000e+00",
        "delta 0.000000e+00 0.000000e+00 1.500000e+00", f"object 2 class gridconnections counts {nx} {ny} {nz}",
        f"object 3 class array type double rank 0 items {len(numbers)} data follows",
        *(" ".join(numbers[k : k + 3]) + " " for k in range(0, len(numbers), 3)),
        'attribute "dep" string "positions"', 'object "regular positions regular connections" class field',
        'component "positions" value 1', 'component "connections" value 2', 'component "data" value 3', "",
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("apbs") / "apbs.dx"
    path.write_text("\n".join(lines))
    return path


def test_a_map_of_apbs_is_shown_for_what_it_is(tmp_path, apbs):
    """A structure needs no force field: here one without its hydrogens and with an atom of a stranger."""
    heavy = [line for line in HEXAPEPTIDE.read_text().splitlines() if line[76:78].strip() != "H"]
    (tmp_path / "in.pdb").write_text("\n".join(line.replace(" ALA ", " QQQ ") for line in heavy))
    page, picture = tmp_path / "page.html", tmp_path / "surface.png"
    said = run(
        "view", tmp_path / "in.pdb", "--map", apbs, "--from-unit", "kT/e", "--range", 5, "-o", page, "-o", picture
    ).stdout
    assert "Colours       -5 to 5" in said
    text = page.read_text()
    assert "The map was read from apbs.dx" in text
    assert "APBS solves the Poisson-Boltzmann equation" in text
    assert "<title>in.pdb: apbs.dx</title>" in text
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_without_a_map_the_potential_is_computed(tmp_path):
    found = json.loads(run("view", HEXAPEPTIDE, "-o", tmp_path / "page.html", "--json").stdout)
    assert (found["n_atoms"], found["unit"], found["range"]) == (96, "kT/e at 298.15 K", 5)
    assert (found["quantity"], found["outside"]) == ("Poisson-Boltzmann potential", 1.4)
    text = (tmp_path / "page.html").read_text()
    assert "by the linear Poisson-Boltzmann equation: permittivity 2 inside the molecule and 78.54 outside" in text
    assert "0.15 mol/L of salt, at 298.15 K, on a grid of 0.5 Å. The atoms have the radii openmm-obc" in text


@pytest.mark.parametrize("method", ["pb", "screened"])
def test_salt_of_the_potential_can_be_chosen(tmp_path, method):
    words = ("-o", tmp_path / "page.html", "--method", method)
    usual = json.loads(run("view", HEXAPEPTIDE, *words, "--json").stdout)
    same = pele_ocl.view(HEXAPEPTIDE, method=method, ionic_strength=0.15)
    bare = pele_ocl.view(HEXAPEPTIDE, method=method, ionic_strength=0)
    assert (usual["min"], usual["max"]) == (same.facts()["min"], same.facts()["max"])
    assert abs(bare.facts()["max"] - usual["max"]) > 0.01
    assert usual["settings"]["ionic_strength"] == 0.15
    assert bare.to_json()["settings"]["ionic_strength"] == 0
    assert "no salt" in bare.text()
    assert "no salt" in run("view", HEXAPEPTIDE, *words, "--ionic-strength", 0).stdout
    with pytest.raises(InputError, match="`ionic_strength` applies to computed potentials"):
        pele_ocl.view(HEXAPEPTIDE, residue_values={"A:MET1": 1.0}, ionic_strength=0.1)


def test_a_screened_potential_is_computed_by_name(tmp_path):
    words = ("-o", tmp_path / "page.html", "--method", "screened", "--json")
    found = json.loads(run("view", HEXAPEPTIDE, *words).stdout)
    assert (found["n_atoms"], found["unit"], found["range"]) == (96, "kT/e at 298.15 K", 2)
    assert (found["quantity"], found["outside"]) == ("screened Coulomb potential", 1.4)
    text = (tmp_path / "page.html").read_text()
    debye = 1 / debye_kappa(0.15, 78.54, 298.15)
    assert "uniform medium of relative permittivity 78.54" in text
    assert f"Debye length of {debye:.1f} Å. It is not a solution of the Poisson-Boltzmann equation" in text


def test_residue_values(tmp_path):
    residue = read(HEXAPEPTIDE).labels.residues[1]
    (tmp_path / "values.csv").write_text(f"residue,score\n{residue},-3\n")
    said = run("view", HEXAPEPTIDE, "--residue-values", tmp_path / "values.csv", "-o", tmp_path / "page.html").stdout
    assert "Values        -3 to -3" in said
    assert "of the surface has no value" in said
    assert "Each residue is coloured by its value in values.csv: score." in (tmp_path / "page.html").read_text()


def test_atoms_that_are_left_out_have_no_surface(tmp_path, apbs):
    words = ("--map", apbs, "-o", tmp_path / "page.html", "--json")
    whole = json.loads(run("view", HEXAPEPTIDE, *words).stdout)
    part = json.loads(run("view", HEXAPEPTIDE, *words, "--select", "index 0:40").stdout)
    assert part["n_atoms"] == 41
    assert part["area"] < whole["area"]


def test_sentences(tmp_path, apbs):
    page = tmp_path / "page.html"
    far = tmp_path / "far.dx"
    write_map(far, Map(Grid((500, 500, 500), 1, (2, 2, 2)), np.zeros((2, 2, 2)), "kT/e"))
    assert "far.dx: the map does not reach the molecule's surface" in error_of(
        "view", HEXAPEPTIDE, "--map", far, "-o", page
    )
    assert error_of("view", HEXAPEPTIDE, "-o", tmp_path / "page.pdf").endswith(
        "unknown suffix; pages end in .html, pictures in .png"
    )
    both = ("--map", apbs, "--residue-values", apbs)
    assert "choose one of --map and --residue-values" in run("view", HEXAPEPTIDE, *both, "-o", page, code=2).stderr
    method = ("--map", apbs, "--method", "pb")
    said = run("view", HEXAPEPTIDE, *method, "-o", page, code=2).stderr
    assert "--method applies to computed potentials" in said
    said = run("view", HEXAPEPTIDE, "--from-unit", "V", "-o", page, code=2).stderr
    assert "--from-unit applies to the file of --map" in said
    assert "Missing option '-o'" in run("view", HEXAPEPTIDE, code=2).stderr
    assert not page.exists()


@pytest.mark.parametrize("end", ["nan", "inf", "0", "-5", "1e13", "wide"])
def test_a_range_that_is_none_is_refused_before_any_work(tmp_path, end):
    for words in (("view", "-o", tmp_path / "page.html"), ("potmap", "-o", tmp_path / "map.dx")):
        wrong = "Invalid value for '--color-max'" if end == "wide" else "color_max"
        assert wrong in run(words[0], HEXAPEPTIDE, *words[1:], "--range", end, code=1 + (end == "wide")).stderr
    assert not list(tmp_path.iterdir())


# Pictures of potmap


def test_for_surface_gives_defaults_that_options_win_over(tmp_path):
    path = tmp_path / "map.h5"
    found = json.loads(run("potmap", HEXAPEPTIDE, *COARSE, "--for-surface", "-o", path, "--json").stdout)
    by_hand = ("--unit", "kT/e", "--dielectric", 78.54, "--ionic-strength", 0.15)
    assert found["max"] == json.loads(run("potmap", HEXAPEPTIDE, *COARSE, *by_hand, "--json").stdout)["max"]
    other = json.loads(run("potmap", HEXAPEPTIDE, *COARSE, "--dielectric", 4, "--for-surface", "--json").stdout)
    by_hand = ("--unit", "kT/e", "--dielectric", 4, "--ionic-strength", 0.15)
    assert other["max"] == json.loads(run("potmap", HEXAPEPTIDE, *COARSE, *by_hand, "--json").stdout)["max"]
    import h5py

    with h5py.File(path) as file:
        settings = json.loads(file.attrs["settings"])
        unit = file["potential"].attrs["unit"]
    assert (settings["dielectric"], settings["ionic_strength"], unit) == (78.54, 0.15, "kT/e")


def test_pictures_of_several_structures(tmp_path):
    other = tmp_path / "other.pdb"
    other.write_bytes(HEXAPEPTIDE.read_bytes())
    names = ("-o", tmp_path / "{name}.dx", "--surface-png", tmp_path / "{name}.png", "--scene", "vmd")
    run("potmap", HEXAPEPTIDE, other, *COARSE, "--for-surface", *names)
    for name in ("hexapeptide", "other"):
        assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        assert f"{name}.dx" in (tmp_path / f"{name}.vmd").read_text()
    said = run("potmap", HEXAPEPTIDE, other, *COARSE, "--surface-png", tmp_path / "one.png", code=2).stderr
    assert "maps of several structures need {name} in it" in said


def test_a_range_in_another_unit_is_not_that_of_kt(tmp_path):
    words = ("--for-surface", "--unit", "mV", "-o", tmp_path / "map.dx", "--scene", "vmd")
    run("potmap", HEXAPEPTIDE, *COARSE, *words)
    assert "-2 (red) to 2 (blue) mV" not in (tmp_path / "map.vmd").read_text()


def test_of_a_script_its_way_is_named(tmp_path):
    said = run("view", HEXAPEPTIDE, "-o", tmp_path / "x.pml", code=1).stderr
    assert "pictures in .png; potmap and pb write a scene for this program next to a map: `scene='pymol'`" in said
    said = run("potmap", HEXAPEPTIDE, "-o", tmp_path / "x.pml", code=1).stderr
    assert "potmap and pb write a scene for this program next to a map: --scene pymol" in said
