"""docs/architecture.md and docs/words.md, held to the code: the picture, the files they name, the words."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "architecture.md").read_text()
HEAD = "| To add or change | edit these files |"
TABLE = [line.strip("| ").split(" | ") for line in TEXT.splitlines() if line.startswith("| ") and line != HEAD]
FILE = re.compile(r"`((?:cl|pele_ocl|docs|tests)/[\w./-]+)`(?: \((new)?)?")


@pytest.fixture(scope="module")
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_architecture", ROOT / "docs" / "architecture" / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_that_of_the_imports(make):
    assert make.FIGURE.read_text() == make.drawing(), "docs/figures/architecture.svg is stale: run `make docs`"
    drawn = ElementTree.parse(make.FIGURE)
    found = {(path.get("data-from"), path.get("data-to")) for path in drawn.iter() if path.get("class") == "import"}
    graph = make.imports()
    assert found <= {(box, below) for box, all_below in graph.items() for below in all_below}
    level = make.levels(graph)
    assert all(level[box] > level[below] for box, below in found)


def test_no_box_hides_another(make):
    level = make.levels(make.imports())
    sides = {box: (x - wide / 2, x + wide / 2) for box, (x, wide, _, _) in make.BOXES.items()}
    for one, (left, right) in sides.items():
        for other, (start, end) in sides.items():
            assert one == other or level[one] != level[other] or right <= start or end <= left, f"{one}, {other}"


def test_arrows_that_are_left_out_are_implied(make):
    graph, drawn = make.imports(), make.arrows(make.imports())

    def reached(box: str) -> set[str]:
        return {below for above, below in drawn if above == box for below in (below, *reached(below))}

    assert all(below <= reached(box) for box, below in graph.items())


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_files_of_the_table_exist(row):
    _, files = row
    named = FILE.findall(files)
    assert named
    for name, new in named:
        assert (ROOT / name).exists() != bool(new), name


# What the place to change is called in a file of the table.
HELD = {
    "cl/energy/chain.clh": "near_slope(",
    "cl/solvent/hct_rows.clh": "near_term(",
    "pele_ocl/binding/naming.py": "_NAMES = {",
    "pele_ocl/binding/plan.py": "def evaluate_binding_with(",
    "pele_ocl/cli/__init__.py": "commands",
    "pele_ocl/binding/result.py": "def _conformations(",
    "pele_ocl/cli/command.py": "class Option(",
    "pele_ocl/cli/energy.py": "@words_of",
    "pele_ocl/cli/options.py": "def device_option(",
    "pele_ocl/potmap/options.py": "def medium_facts(",
    "pele_ocl/dynamics/integrators.py": "INTEGRATORS = {",
    "pele_ocl/energy/bonded/kernels.py": "ATOMS_GPU, ITEMS_GPU",
    "pele_ocl/energy/bonded/tasks.py": "TABLES_OF_TERMS = {",
    "pele_ocl/forcefield/openmm/gb_forces.py": "READ = (",
    "pele_ocl/ligand/parametrisers.py": "_MODULES = (",
    "pele_ocl/minimize/driver.py": "BUILD_EVERY = ",
    "pele_ocl/energy/layout.py": "class SquaresLayout",
    "pele_ocl/energy/plan.py": "def _described(",
    "pele_ocl/energy/variants.py": "VARIANTS",
    "pele_ocl/explore/control/explorers.py": "def moves_of(",
    "pele_ocl/explore/control/simulation.py": "class SimulationTask",
    "pele_ocl/explore/walk.py": "class Stage(",
    "pele_ocl/forcefield/matching.py": "def _explain(",
    "pele_ocl/forcefield/openmm/xml.py": "def _sentence(",
    "pele_ocl/formats/conformation_files.py": "class ConformationFormat(",
    "pele_ocl/formats/pqr.py": "_QUANTITIES",
    "pele_ocl/formats/registry.py": '".pqr": "pele_ocl.formats.pqr:FORMAT"',
    "pele_ocl/gb_models/__init__.py": "GB_MODELS",
    "pele_ocl/explore/spec.py": "STATE_SECONDS",
    "pele_ocl/energy/spec.py": "def text_of(",
    "pele_ocl/jobs/worker_start.py": "WORKER_ENVIRONMENT = {",
    "pele_ocl/minimize/options.py": "MOST_STEP = ",
    "pele_ocl/nonbond/tiled.py": "TILE = ",
    "pele_ocl/nonbond/variants.py": "VARIANTS",
    "pele_ocl/opencl/interface.py": "PAIR_MODEL",
    "pele_ocl/pb_model.py": "SURFACES = {",
    "pele_ocl/potmap/methods.py": "MAP_METHODS = {",
    "pele_ocl/potmap/variants.py": "VARIANTS: ",
    "pele_ocl/reference/energy.py": "RADIUS_SLOPES",
    "pele_ocl/reference/solvent.py": "RADIUS_FUNCTIONS",
    "pele_ocl/relax/hydrogens.py": "def refuse_ends(",
    "pele_ocl/solvent/layout.py": "def of(",
    "pele_ocl/solvent/variants.py": "VARIANTS",
    "pele_ocl/tiles/tables.py": "class SphereTables",
    "pele_ocl/trajectories/energies.py": "def frame_results(",
    "pele_ocl/trajectories/streaming.py": "_PIECE_SECONDS",
}


@pytest.mark.parametrize(("file", "held"), HELD.items(), ids=list(HELD))
def test_files_of_the_table_hold_the_place_to_change(file, held):
    assert f"`{file}`" in "".join(files for _, files in TABLE)
    assert held in (ROOT / file).read_text()


def test_few_changes_touch_four_files():
    """A change that touches more is a fault of the layout: mend that, or see if the row is several changes."""
    long = [row for row, files in TABLE if len({name for name, _ in FILE.findall(files)}) >= 4]
    assert len(long) <= 8, "\n".join(long)


def test_other_files_named_exist():
    for page in ("architecture.md", "words.md"):
        text = (ROOT / "docs" / page).read_text()
        for name in re.findall(r"`((?:cl|pele_ocl|docs|tests)/[\w./-]+)`(?! \(new)", text):
            assert (ROOT / name).exists(), name


@pytest.mark.parametrize(
    ("row", "page"),
    [
        ("a GB model over the HCT integral: a new radius function", "gb-model.md"),
        ("a rung of the ladder of `solvent`", "kernel.md"),
    ],
)
def test_worked_examples_touch_the_files_of_their_row(row, page):
    (files,) = (files for name, files in TABLE if name == row)
    headings = "\n".join(re.findall(r"^## .*$", (ROOT / "docs" / "extend" / page).read_text(), re.MULTILINE))
    touched = set(re.findall(r"`((?:cl|pele_ocl)/[\w./]+)`", headings))
    assert touched
    assert touched == {name for name, _ in FILE.findall(files) if not name.startswith("docs/") and ".md" not in name}


def test_the_rows_that_a_newcomer_asks_for_are_there():
    asked = ("a GB model", "GBn2", "an energy term", "a driver", "a variant", "the rule of tile sizes", "a map method",
             "a `.pqr` field", "a structure format", "a map format", "an option", "a word of the help",
             "a column of records", "a column of results", "how a worker starts", "the length of a minimization step",
             "a public name")  # fmt: skip
    for start in asked:
        assert any(name.startswith(start) for name, _ in TABLE), start


@pytest.mark.parametrize("page", ["glossary.md", "words.md"])
def test_the_glossary_is_in_order(page):
    """Alphabetical, no word twice."""
    text = (ROOT / "docs" / page).read_text()
    words = [line.split(" | ")[0].lstrip("| ").lower() for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(words) >= 30
    assert words == sorted(set(words), key=lambda word: re.sub(r"\W", "", word))
