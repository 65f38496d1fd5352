"""Documentation, executed: help texts are the command's own, README's Python runs, links lead somewhere."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest
from binding_helpers import write_complex
from conftest import DEVICES
from explore_run_helpers import write_run
from test_cli import run
from trajectory_helpers import moving, write_trajectory

import pele_ocl
from pele_ocl import Grid, Map, read, write_map
from pele_ocl.atoms.selection.parser import KNOWN
from pele_ocl.cli import commands
from pele_ocl.common.installation import shipped
from pele_ocl.energy import VARIANTS as ENERGY_VARIANTS
from pele_ocl.ladder import NONBOND as NONBOND_VARIANTS
from pele_ocl.ladder import SOLVENT as VARIANTS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
KERNEL_PAGES = sorted((ROOT / "cl").rglob("README.md"))


def _script(*path: str) -> ModuleType:
    """Load a script that writes pages."""
    spec = importlib.util.spec_from_file_location("make", ROOT.joinpath(*path))
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    return make


def test_the_page_of_kernels_is_made_of_their_comments():
    make = _script("docs", "kernels", "make.py")
    assert make.PAGE.read_text() == make.page(), "docs/kernels.md is stale: run `make docs`"


def test_help_pages_are_the_commands_own():
    make = _script("docs", "cli", "make.py")
    texts = {**make.help_texts(), "README.md": make.contents()}
    assert {page.name for page in (ROOT / "docs" / "cli").iterdir() if page.is_file()} == {*texts, "make.py"}
    for name, text in texts.items():
        assert (ROOT / "docs" / "cli" / name).read_text() == text, f"{name} is stale: run `make docs`"


def test_the_performance_page_names_the_tables_that_are_there():
    text = (ROOT / "docs" / "performance.md").read_text()
    named = set(re.findall(r"`([\w-]+\.md)`", text))
    assert len(named) > 8
    assert not [name for name in named if not (ROOT / "tests" / "benchmarks" / "measured" / name).exists()]
    assert len(text.split()) < 1500


PICTURES = _script("docs", "figures", "make.py")


@pytest.mark.parametrize("name", PICTURES.PICTURES)
def test_pictures_are_of_the_code_as_it_is(name):
    """Command, day and figures stand in each; where the code behind one changed them, it is drawn again."""
    pytest.importorskip("matplotlib")
    texts = PICTURES.texts(PICTURES.HERE / name)
    picture = PICTURES.PICTURES[name]
    assert texts["Command"] == picture.command
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", texts["Date"])
    made = json.loads(texts["Made"])
    assert made == pytest.approx(picture.made(), rel=5e-3), f"docs/figures/{name} is stale: run `make pictures`"


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_command_beside_a_surface_gives_its_colours(page):
    """The picture has the command's range of colours, which its alternative text names."""
    text = (ROOT / page).read_text()
    command = re.search(r"^(pele-ocl view .*-o) page\.html +# the surface below", text, re.MULTILINE)
    assert command is not None
    assert command[1] == PICTURES.VIEW
    end = command[1].split("--color-max ")[1].split()[0]
    assert f"coloured by the Poisson-Boltzmann potential from -{end} to {end} kT/e" in text


def _protein(name: str) -> Callable[[], None]:
    return lambda: shutil.copy(shipped("data") / "structures" / f"{name}.pdb", "protein.pdb")


def _frames() -> None:
    _protein("hexapeptide")()
    write_trajectory(Path("frames.nc"), moving(read("protein.pdb").positions, 12))


def _map() -> None:
    write_map("map.dx", Map(Grid((25, 20, 0), 1.0, (5, 6, 7)), np.ones((7, 6, 5)), "V"))


def _two() -> None:
    for name in ("a", "b"):
        shutil.copy(shipped("data") / "structures" / "hexapeptide.pdb", f"{name}.pdb")


def _ten_tasks() -> None:
    """Bring the files of the ten tasks: a peptide with hydrogens and without, a complex, its control file, a pose."""
    _protein("hexapeptide")()
    heavy = [line for line in Path("protein.pdb").read_text().splitlines() if line[76:78].strip() != "H"]
    Path("1abc.pdb").write_text("\n".join([*heavy, ""]))
    write_run(Path())
    pose = [line for line in Path("complex.pdb").read_text().splitlines() if line[21:22] == "L"]
    Path("poses.pdb").write_text("\n".join([*pose, "END", ""]))


# Pages, and what brings the files that their Python reads.
RUNNING = {
    "docs/api/README.md": _protein("hexapeptide"),
    "docs/api/maps.md": _protein("hexapeptide"),
    "docs/api/minimization.md": _protein("hexapeptide"),
    "docs/api/molecules.md": _protein("hexapeptide"),
    "docs/api/torch.md": _protein("hexapeptide"),
    "docs/api/trajectories.md": _protein("hexapeptide"),
    "docs/ensembles.md": _protein("hexapeptide"),
    "docs/explore.md": lambda: write_run(Path()),
    "docs/many.md": _two,
    "docs/libraries.md": _protein("hexapeptide"),
    "docs/maps.md": _map,
    "docs/pictures.md": _protein("hexapeptide"),
    "docs/sampling.md": _protein("hexapeptide"),
    "docs/selection.md": _protein("ubiquitin"),
    "docs/simulating.md": _protein("hexapeptide"),
    "docs/start.md": _protein("ubiquitin"),
    "docs/trajectories.md": _frames,
}


def test_the_readme_shows_the_numbers_that_it_prints(tmp_path, monkeypatch, capsys):
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    assert block in (ROOT / "docs" / "index.md").read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PELE_OCL_DEVICE", str(DEVICES[0].index))
    Path("data").symlink_to(shipped("data"))
    exec(compile(block, "README.md", "exec"), {})
    shown = [float(number) for number in re.findall(r"# (\S+) kcal/mol$", block, re.MULTILINE)]
    printed = [float(line) for line in capsys.readouterr().out.splitlines()]
    assert shown == pytest.approx(printed, rel=2e-3)  # minima differ a little between devices
    assert Path("relaxed.pdb").exists()


HEAVY = ("jax", "rdkit", "torch")  # libraries that the extra `test` leaves out; what needs them runs where they are


def _can_run(block: str) -> bool:
    """Tell if all of the heavy libraries that a block imports are installed."""
    return not any(re.search(rf"^(import|from) {name}\b", block, re.M) and not find_spec(name) for name in HEAVY)


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:MDAnalysis", "ignore::UserWarning:MDAnalysis")
@pytest.mark.parametrize("page", RUNNING)
def test_python_of_a_page_runs(page, tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    blocks = [block for block in blocks if _can_run(block)]
    if DEVICES[0].kind != "CPU":  # which has separate memory
        blocks = [block for block in blocks if ".mapped(" not in block]
    if not blocks:
        pytest.skip(f"needs one of {', '.join(HEAVY)}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PELE_OCL_DEVICE", str(DEVICES[0].index))
    RUNNING[page]()
    for block in blocks:
        exec(compile(block, page, "exec"), {})


def test_the_ten_tasks_are_the_same_in_both_doors(tmp_path, monkeypatch):
    """Each row's command and Python run, in folders of their own, and write the same numbers."""
    monkeypatch.setenv("PELE_OCL_DEVICE", str(DEVICES[0].index))
    text = (ROOT / "docs" / "start.md").read_text().split("## Ten tasks")[1].split("\n## ")[0]
    rows = re.findall(r"\| `pele-ocl (.*?)` \| `(.*?)` \|", text)
    assert len(rows) == 10
    doors = tmp_path / "command", tmp_path / "python"
    for folder in doors:
        folder.mkdir()
        monkeypatch.chdir(folder)
        _ten_tasks()
    for command, python in rows:
        monkeypatch.chdir(doors[0])
        run(*shlex.split(command))
        monkeypatch.chdir(doors[1])
        exec(python, {"pele_ocl": pele_ocl})
    written, same = ({path.relative_to(door) for path in door.rglob("*.*") if path.is_file()} for door in doors)
    assert written == same
    assert {"relaxed.pdb", "potential.dx", "page.html", "map.dx", "binding.csv"} <= {path.name for path in written}
    for path in sorted(written):
        if path.suffix in (".pdb", ".nc", ".csv", ".dx"):
            both = ((door / path).read_bytes().splitlines() for door in doors)
            commands, pythons = ([line for line in lines if not line.startswith(b"#")] for lines in both)
            assert commands == pythons, path


def test_python_of_the_minimizing_page_runs(tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "minimizing.md").read_text(), re.DOTALL)
    assert len(blocks) == 3
    shutil.copy(shipped("data") / "structures" / "hexapeptide.pdb", tmp_path / "protein.pdb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PELE_OCL_DEVICE", str(DEVICES[0].index))
    for block in blocks:
        exec(compile(block, "minimizing.md", "exec"), {})


def test_python_of_the_binding_page_runs(tmp_path, monkeypatch):
    """Blocks go from a topology and a trajectory to a picture of ranked residues."""
    pytest.importorskip("matplotlib")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "binding.md").read_text(), re.DOTALL)
    write_complex(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PELE_OCL_DEVICE", str(DEVICES[0].index))
    exec(compile("".join(blocks), "binding.md", "exec"), {})
    assert (tmp_path / "residues.png").stat().st_size > 1000


def test_selection_page_names_every_word():
    text = (ROOT / "docs" / "selection.md").read_text()
    assert not [word for word in KNOWN if not re.search(rf"`{word}\b", text)]


@pytest.mark.skipif("prepare" not in commands(), reason="not all commands of these pages are there")
@pytest.mark.parametrize("program", ["coming-from-openmm", "coming-from-amber", "pele"])
def test_pages_for_other_programs_name_options_that_are_there(program):
    """Every option, and every command that a line or a cell begins with."""
    text = (ROOT / "docs" / f"{program}.md").read_text()
    helps = "".join(page.read_text() for page in (ROOT / "docs" / "cli").glob("*.txt"))
    assert set(re.findall(r"(?:`|^)pele-ocl (\w+)", text, re.MULTILINE)) <= set(commands())
    assert set(re.findall(r"--[a-z][a-z-]+", text)) <= set(re.findall(r"--[a-z][a-z-]+", helps))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_and_files_named_exist(page):
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text) + re.findall(r'<img src="([^"]+)"', text):
        assert (page.parent / target).exists(), target
    made = set(re.findall(r"new file `([\w./-]+)`|`([\w./-]+)` \(new", text))
    for name in re.findall(r"`((?:cl|pele_ocl|tests|docs|data)/[\w./-]+)`", text):
        assert (ROOT / name).exists() or any(name in both for both in made), name


@pytest.mark.parametrize("page", KERNEL_PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_of_a_kernel_folder_are_the_ones_its_page_names(page):
    """Each kernel file named is there, from the folder or from `cl`; docs/kernels.md names every file."""
    named = re.findall(r"`([\w./-]+\.clh?)`", page.read_text())
    missing = [name for name in named if not any((of / name).is_file() for of in (page.parent, ROOT / "cl", ROOT))]
    assert not missing


@pytest.mark.parametrize(
    ("page", "table"),
    [("variants.md", VARIANTS), ("variants-nonbond.md", NONBOND_VARIANTS), ("variants-energy.md", ENERGY_VARIANTS)],
)
def test_variants_page_names_every_variant_and_kernel_file(page, table):
    text = (ROOT / "docs" / page).read_text()
    headings = "\n".join(re.findall(r"^## .*$", text, re.MULTILINE))
    for name, variant in table.items():
        assert f"`{name}`" in headings
        assert f"`cl/{variant.file}`" in text


def test_the_network_that_is_drawn_sorts():
    """A network that sorts all rows of zeros and ones sorts everything, by the 0-1 principle."""
    drawing = ElementTree.parse(ROOT / "docs" / "figures" / "bitonic-network.svg")
    lines = [line.attrib for line in drawing.iter() if line.get("class") == "comparator"]
    heights = sorted({float(line[end]) for line in lines for end in ("y1", "y2")})
    assert len(heights) == 16
    rows = np.arange(2**16)[:, None] >> np.arange(16) & 1
    for line in sorted(lines, key=lambda line: float(line["x1"])):
        low, high = (heights.index(float(line[end])) for end in ("y1", "y2"))
        rows[:, [low, high]] = np.sort(rows[:, [low, high]], axis=1)
    assert (np.diff(rows, axis=1) >= 0).all()
    assert len(lines) == 8 * 10
