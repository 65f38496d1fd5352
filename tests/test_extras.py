"""`pip install pele-ocl` brings no peers and no charts: modules load without them, and sentences name the extra."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
from harness import charts
from test_architecture import parsed
from test_cli import run_table
from timing_tables import installed
from timing_tables.installed import AbsentError

from pele_ocl import PeleError
from pele_ocl.common.extras import LIBRARIES, extra
from pele_ocl.jobs.workers import connected

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "pele_ocl").rglob("*.py"))


def dependencies() -> set[str]:
    """Find the modules that installing the package without extras brings."""
    (block,) = re.findall(
        r"^dependencies = \[\n(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL | re.MULTILINE
    )
    return {re.match(r"[\w-]+", name)[0].replace("-", "_") for name in re.findall(r'^    "(.*?)"', block, re.MULTILINE)}


def imported_at_once(tree: ast.Module) -> set[str]:
    """Find modules imported together with a file, by their first name, but for type checkers' ones."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module.split(".")[0])
    return found


def test_modules_load_with_what_the_package_brings():
    known = set(sys.stdlib_module_names) | dependencies()
    strangers = {path: imported_at_once(parsed(path)) - known for path in MODULES}
    assert not {str(path.relative_to(ROOT)): names for path, names in strangers.items() if names}


def test_every_library_that_is_asked_for_has_a_sentence():
    asked = {
        node.args[0].value.split(".")[0]
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("extra", "missing")
        if isinstance(node.args[0], ast.Constant)
    }
    assert {"openmm", "yaml"} <= asked <= LIBRARIES.keys()


def test_a_missing_peer_names_what_to_install(monkeypatch):
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    for module, package in (("openmm", "'pele-ocl[bench]'"), ("numba", "'pele-ocl[bench]'"), ("torch", "torch")):
        with pytest.raises(AbsentError, match=re.escape(f"not installed: pip install {package}")):
            installed.load(module)
    text = run_table("energy", "--system", "hexapeptide", "--runs", 3, "--precision", "float32").stdout
    assert "OpenMM's CPU platform is not installed (pip install 'pele-ocl[bench]'): no speed-up against it" in text


@pytest.mark.parametrize(
    "library", ["openmm", "pdbfixer", "MDAnalysis", "parmed", "mdtraj", "ase", "rdkit", "torch", "jax"]
)
def test_a_missing_library_names_its_extra(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(PeleError, match=r"^this needs \w+, which is not installed: pip install 'pele-ocl\[\w+\]'$"):
        extra(library, "this")


def test_workers_without_dask_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setitem(sys.modules, "distributed.diagnostics.plugin", None)
    monkeypatch.delitem(sys.modules, "pele_ocl.jobs.worker_start", raising=False)
    with pytest.raises(PeleError, match=r"needs Dask, which is not installed: pip install 'pele-ocl\[cluster\]'"):
        connected(2, None, None).__enter__()


def test_a_missing_chart_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(PeleError, match=r"pip install 'pele-ocl\[plot\]'"):
        charts.new_figure(1, 1)


def test_extras_that_sentences_name_exist():
    extras = re.search(
        r"^\[project.optional-dependencies\]\n(.*?)^\[", (ROOT / "pyproject.toml").read_text(), re.DOTALL | re.MULTILINE
    )[1]
    paths = [*MODULES, *(ROOT / "tests" / "benchmarks").rglob("*.py")]
    named = {name for path in paths for name in re.findall(r"pele-ocl\[(\w+)\]", path.read_text())}
    assert named <= set(re.findall(r"^(\w+) = ", extras, re.MULTILINE))
    assert {"bench", "plot", "openmm", "mdanalysis", "parmed", "trajectories", "ase", "ligands", "torch"} <= named
