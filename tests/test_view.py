"""Pages and pictures of molecules: their values and colours, and what a browser makes of a page."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import pele_ocl
from pele_ocl import Atoms, FormatError, Grid, InputError, Map, PeleError, draw_surface, read, sample, write_page
from pele_ocl.common.installation import shipped
from pele_ocl.painting import about_file, about_model, by_residues, painted, picture_of, read_residue_values
from pele_ocl.painting.colouring import RED_TO_BLUE
from pele_ocl.painting.orientation import principal_axes
from pele_ocl.painting.rendering import Frame
from pele_ocl.potential_model import PotentialModel

pytest.importorskip("plotly")

HEXAPEPTIDE = shipped("data") / "structures" / "hexapeptide.pdb"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-headless-shell", "google-chrome"))), None)
KINDS = {"f4": "<f4", "u4": "<u4", "u2": "<u2", "i2": "<i2"}


@pytest.fixture(scope="module")
def atoms():
    return read(HEXAPEPTIDE)


@pytest.fixture(scope="module")
def map_(atoms):
    """A potential that grows along the molecule, 0 in its middle."""
    grid = Grid.around(atoms, 6, 1.0)
    points = np.stack(np.meshgrid(*grid.axes()[::-1], indexing="ij")[::-1], axis=-1)
    values = (points - atoms.positions.mean(axis=0)) @ principal_axes(atoms.positions)[0]
    return Map(grid, values, "kT/e", "a slope", 298.15)


@pytest.fixture(scope="module")
def shown(atoms, map_):
    return painted(atoms, map_, title="<b>peptide</b>", about="A slope.")


def data_of(page: str) -> dict:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


def numbers(packed) -> np.ndarray:
    values = np.frombuffer(base64.b64decode(packed["data"]), KINDS[packed["type"]])
    return packed["first"] + packed["step"] * values if "step" in packed else values


def test_the_values_are_those_of_the_map(shown, map_):
    """1.4 A outside the surface: where a probe's middle touches it, as far from its atoms as a probe is."""
    surface = shown.surface
    outside = surface.vertices + 1.4 * surface.normals
    np.testing.assert_array_equal(shown.colouring.values, sample(map_, outside))
    assert not np.allclose(shown.colouring.values, sample(map_, surface.vertices), atol=0.5)
    assert shown.colouring.label == ["potential", "1.4 Å outside the surface", "kT/e at 298.15 K"]
    beyond = (np.abs(shown.colouring.values) > shown.colouring.end).mean()
    assert 0 < beyond < 0.1


def test_red_is_negative_and_blue_positive(shown):
    rgb, values = shown.colouring.rgb(), shown.colouring.values
    assert (rgb[values < -2, 0] > rgb[values < -2, 2]).all()
    assert (rgb[values > 2, 2] > rgb[values > 2, 0]).all()
    np.testing.assert_allclose(rgb[values.argmin()] * 255, [int(RED_TO_BLUE[0][k : k + 2], 16) for k in (1, 3, 5)])


def test_a_screened_coulomb_potential_says_so_beside_its_colours(tmp_path, atoms):
    """Page and picture say so, for a map at hand and for one that a file keeps; another map is a potential."""
    from conftest import DEVICES

    grid = Grid.around(atoms, 4, 2.1)
    screened = pele_ocl.potmap(atoms, grid, dielectric=78.54, ionic_strength=0.15, unit="kT/e", device=DEVICES[0]).map
    bare = pele_ocl.potmap(atoms, grid, device=DEVICES[0]).map
    pele_ocl.write_map(tmp_path / "map.dx", screened)
    for map_, quantity in (
        (screened, "screened Coulomb potential"),
        (pele_ocl.read_map(tmp_path / "map.dx"), "screened Coulomb potential"),
        (bare, "Coulomb potential"), (replace(screened, title="POTENTIAL (kT/e)"), "potential"),
    ):  # fmt: skip
        shown = painted(atoms, map_)
        assert shown.colouring.quantity == quantity
        assert " ".join(data_of(shown.page())["colouring"]["label"]).startswith(f"{quantity} 1.4 Å outside the surface")
        figure = picture_of(shown.atoms, shown.surface, shown.colouring, "", "")
        assert figure.axes[-1].get_ylabel().startswith(f"{quantity}\n1.4 Å outside the surface")


def test_where_the_map_ends_the_surface_is_grey(atoms, map_):
    half = Grid(map_.grid.origin, 1.0, (map_.grid.shape[0] // 2, *map_.grid.shape[1:]))
    found = painted(atoms, Map(half, map_.values[..., : half.shape[0]], "kT/e"))
    assert 0.2 < found.colouring.missing < 0.8
    assert (found.colouring.rgb()[np.isnan(found.colouring.values)] == 0.65).all()
    assert f"grey: {found.colouring.missing:.0%} of the surface has no value" in found.page()
    far = Map(Grid((500, 500, 500), 1, (2, 2, 2)), np.zeros((2, 2, 2)))
    with pytest.raises(InputError, match="the map does not reach the molecule's surface"):
        painted(atoms, far)


def test_a_page_holds_what_it_shows(shown, atoms, map_):
    page = shown.page()
    data = data_of(page)
    positions = np.stack([numbers(each) for each in data["surface"]["positions"]], axis=1)
    np.testing.assert_allclose(positions, shown.surface.vertices, atol=1e-3)
    np.testing.assert_array_equal(numbers(data["surface"]["faces"]).reshape(-1, 3), shown.surface.faces)
    np.testing.assert_allclose(numbers(data["colouring"]["values"]), shown.colouring.values, rtol=1e-6)
    names = np.array(data["surface"]["names"])[numbers(data["surface"]["nearest"])]
    assert names.tolist() == [atoms.labels.atom(i) for i in shown.surface.nearest.tolist()]
    values = numbers(data["map"]["values"]).reshape(map_.values.shape)
    np.testing.assert_allclose(values, map_.values, atol=20 * shown.colouring.end / 32767)
    assert data["map"]["origin"] == map_.grid.origin.tolist()
    assert (len(data["atoms"]["names"]), data["colouring"]["unit"]) == (len(atoms), "kT/e at 298.15 K")
    assert "<h1>&lt;b&gt;peptide&lt;/b&gt;</h1>" in page
    assert "default-src 'none'" in page  # the browser itself refuses every request
    assert len(page) < 6_000_000


@pytest.mark.slow
def test_large_structures_and_maps_stay_small():
    """A lattice of 40,000 atoms with a map of 8 million points: below 20 MB."""
    rng = np.random.default_rng(1)
    lattice = np.stack(np.meshgrid(*[np.arange(34)] * 3), -1).reshape(-1, 3) * 2.9
    many = Atoms(positions=lattice + rng.uniform(0, 0.3, lattice.shape), charges=np.zeros(len(lattice)))
    grid = Grid.around(many, 5, 0.6)
    page = painted(many, Map(grid, np.zeros(grid.shape[::-1], np.float32), "V")).page()
    assert 5_000_000 < len(page) < 20_000_000
    assert "of which the page contains one in 2 along each axis" in page
    data = data_of(page)
    assert data["atoms"] is None
    assert np.prod(data["map"]["shape"]) < 1_500_000


def test_a_page_without_a_map_has_no_slices(atoms):
    name = str(atoms.labels.residues[0])
    page = painted(atoms, residue_values={name: -2.0}, unit="kcal/mol").page()
    assert data_of(page)["map"] is None
    assert data_of(page)["colouring"]["label"] == ["residue value", "kcal/mol"]


def test_a_value_of_two_residues_of_one_name_is_refused(atoms):
    labels = atoms.labels
    twice = replace(atoms, labels=replace(labels, residue_names=np.full(len(labels), "ALA"),
                                          residue_numbers=np.ones(len(labels), int)))  # fmt: skip
    name = str(twice.labels.residues[0])
    with pytest.raises(InputError, match=f"residues of the molecule are called {name}, which has a value"):
        painted(twice, residue_values={name: -2.0})


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_chromium_draws_the_page_without_a_network(tmp_path, atoms, map_):
    write_page(tmp_path / "page.html", atoms, map_, end=6.0, title="peptide")
    arguments = (
        "--headless --no-sandbox --enable-unsafe-swiftshader --use-angle=swiftshader --enable-logging=stderr "
        "--window-size=1000,500 --virtual-time-budget=6000 --proxy-server=127.0.0.1:9 --screenshot="
        f"{tmp_path / 'page.png'}"
    )
    page = (tmp_path / "page.html").as_uri()
    ran = subprocess.run(
        [CHROMIUM, *arguments.split(), page], cwd=tmp_path, capture_output=True, text=True, timeout=200
    )
    said = [line for line in ran.stderr.splitlines() if "CONSOLE" in line]
    assert not [line for line in said if re.search("error|refused|violates|failed|webgl is not", line, re.IGNORECASE)]
    assert (tmp_path / "page.png").exists(), ran.stderr
    from matplotlib.image import imread

    pixels = imread(tmp_path / "page.png")[150:, :500, :3]  # where the molecule is
    red, blue = (np.count_nonzero(pixels[..., one] > pixels[..., other] + 0.25) for one, other in ((0, 2), (2, 0)))
    assert red > 1000
    assert blue > 1000


def test_a_picture_shows_the_surface_from_both_sides(tmp_path, atoms, map_):
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    draw_surface(tmp_path / "surface.png", atoms, map_, end=6.0, title="peptide", about="A slope.")
    pixels = imread(tmp_path / "surface.png")[..., :3]
    assert pixels.shape[1] == 1680
    red, blue = (pixels[:, :1480, one] > pixels[:, :1480, other] + 0.3 for one, other in ((0, 2), (2, 0)))
    for part, grows_to_the_right in ((slice(0, 740), True), (slice(760, 1480), False)):
        columns = [side[:, part].sum(axis=0) for side in (red, blue)]
        left, right = (np.average(np.arange(len(column)), weights=column) for column in columns)
        assert (left < right) == grows_to_the_right
    assert os.listdir(tmp_path) == ["surface.png"]


def test_axes_are_right_handed_and_longest_first(atoms):
    axes = principal_axes(atoms.positions)
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1)
    spread = (atoms.positions @ axes.T).std(axis=0)
    assert spread[0] > spread[1] > spread[2]


# Values of residues


def decomposition(tmp_path, atoms, totals):
    from pele_ocl.binding.decomposition import GROUPS, Decomposition, Shares, write_decomposition

    n = len(atoms.labels.residues)
    mean = np.zeros((n, len(GROUPS)))
    mean[:, 2] = totals
    shares = Shares(mean, np.zeros_like(mean), np.zeros(n))
    of = Decomposition(
        atoms.labels.residues, np.arange(n) > 3, dict.fromkeys(("complex", "parts", "delta"), shares), None, 1, 2
    )
    write_decomposition(tmp_path / "shares.csv", of)
    return tmp_path / "shares.csv"


def test_a_decomposition_colours_its_residues(tmp_path, atoms):
    totals = np.linspace(-3, 2, len(atoms.labels.residues))
    found = read_residue_values(decomposition(tmp_path, atoms, totals))
    assert (found.unit, found.title) == ("kcal/mol", "contribution to the binding energy")
    shown = painted(atoms, residue_values=found.values, unit=found.unit)
    expected = totals[atoms.labels.residue_index][shown.surface.nearest]
    np.testing.assert_allclose(shown.colouring.values, expected, atol=1e-6)
    assert shown.colouring.colours[0] == RED_TO_BLUE[-1]  # what lowers the energy is blue


def test_two_columns(tmp_path, atoms):
    first, second = map(str, atoms.labels.residues[:2])
    path = tmp_path / "values.csv"
    path.write_text(f"# mine\nresidue,conservation [bits]\n{first},1.5\n{second},-2\n")
    found = read_residue_values(path)
    assert found.values == {first: 1.5, second: -2}
    assert (found.unit, found.title) == ("bits", "conservation")
    assert 0 < painted(atoms, residue_values=found.values).colouring.missing < 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b,c\n", "1: neither a decomposition of `binding` nor a header residue,value"),
        ("residue,value\nALA1,x\n", "2: the value 'x' of ALA1 is not a finite number"),
        ("residue,value\nALA1,1\nALA1,2\n", "3: ALA1 already has a value"),
        ("residue,value\nALA1\n", "2: has 1 columns; expected a residue and its value"),
        ("residue,value\n", ": contains no values of residues"),
        ("idecomp\nEnergy Decomposition Analysis\n\nComplex:\n", ": has no section DELTAS"),
        (
            "idecomp\nEnergy Decomposition Analysis\nDELTAS:\nResid 1,Resid 2\n",
            "4: a decomposition by pairs; write it by",
        ),
        (f"residue,value\nALA1,1\n{200_000 * 'A'},1\n", "3: field larger than field limit"),
        ('residue,value\n"ALA1\n",1\nALA2,x\n', "4: the value 'x' of ALA2 is not a finite number"),
        ("idecomp\nEnergy Decomposition Analysis\nDELTAS:\nR:A:LEU:4,1\n", "4: has 2 columns; expected 17 or more"),
    ],
)
def test_files_that_hold_no_values(tmp_path, text, sentence):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(
        FormatError, match=re.escape(f"bad.csv:{sentence.lstrip(':')}" if sentence[0] != ":" else sentence)
    ):
        read_residue_values(tmp_path / "bad.csv")


def test_wrong_residues(atoms):
    with pytest.raises(InputError, match="the molecule has no residue Z:ALA99, which has a value"):
        painted(atoms, residue_values={"Z:ALA99": 1.0})
    with pytest.raises(InputError, match="no residue has a value"):
        painted(atoms, residue_values={})
    with pytest.raises(InputError, match="residue values need atoms with labels"):
        painted(Atoms(positions=[(0, 0, 0)], charges=[0]), residue_values={"A:ALA1": 1.0})


def test_no_residue_with_a_value_at_the_surface(atoms):
    shown = painted(atoms, residue_values={str(atoms.labels.residues[0]): 1.0})
    inside = np.zeros_like(shown.surface.nearest) + len(atoms) - 1
    with pytest.raises(
        InputError, match="no residue with a value is at the surface; also give values for other residues"
    ):
        by_residues(replace(shown.surface, nearest=inside), atoms, {str(atoms.labels.residues[0]): 1.0}, "")


def test_all_places_lie_within_their_frame():
    for end in ((900.0, 703.5), (1e4, 1e3), (30.0, 20.0)):
        frame = Frame.around(np.array([(0.0, 0.0), end]), 700)
        assert (end[0] - frame.left) * frame.scale < frame.width
        assert (end[1] - frame.low) * frame.scale < frame.height


# Sentences


def test_what_a_map_is_and_is_not():
    screened = about_model(PotentialModel(78.54, kappa=0.125))
    assert "uniform medium of relative permittivity 78.54" in screened
    assert "Debye length of 8.0 Å" in screened
    for text in (screened, about_model(PotentialModel()), about_model(PotentialModel(4, distance_dependent=True))):
        assert "It is not a solution of the Poisson-Boltzmann equation" in text
    assert "in vacuum" in about_model(PotentialModel())
    assert "APBS solves the Poisson-Boltzmann equation" in about_file("apbs.dx", "")


def test_a_notebook_shows_the_page(atoms, monkeypatch):
    from conftest import DEVICES

    result = pele_ocl.potmap(atoms, Grid.around(atoms, 3, 2.1), dielectric=80, device=DEVICES[0])
    frame = result._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert "relative permittivity 80" in frame
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    assert "pip install &#x27;pele-ocl[view]&#x27;" in result._repr_html_()


def test_what_is_wrong(tmp_path, atoms, map_, monkeypatch):
    with pytest.raises(FormatError, match=r"page\.txt: unknown suffix; pages end in \.html"):
        write_page(tmp_path / "page.txt", atoms, map_)
    with pytest.raises(FormatError, match=r"\.jpg: unknown suffix; pictures end in \.png"):
        draw_surface(tmp_path / "surface.jpg", atoms, map_)
    with pytest.raises(FormatError, match="does not exist; create it first"):
        write_page(tmp_path / "none" / "page.html", atoms, map_)
    with pytest.raises(InputError, match="give one of them"):
        write_page(tmp_path / "page.html", atoms)
    with pytest.raises(InputError, match="end is 0"):
        write_page(tmp_path / "page.html", atoms, map_, end=0)
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(PeleError, match=r"a page needs plotly, which is not installed: pip install 'pele-ocl\[view\]'"):
        write_page(tmp_path / "page.html", atoms, map_)
    assert os.listdir(tmp_path) == []
