"""Notebooks of the documentation run unchanged, and are kept with their outputs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from runpy import run_path

import pytest
from amber_helpers import ROOT
from binding_helpers import write_complex

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def code_of(notebook: Path) -> list[str]:
    """Return the sources of the cells of code."""
    cells = json.loads(notebook.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_of_this_code(notebook):
    """The site shows what is kept: `python docs/notebooks/run.py` runs them again after a change."""
    key_of = run_path(str(ROOT / "docs" / "notebooks" / "run.py"))["key_of"]
    found = json.loads(notebook.read_text())
    cells = [cell for cell in found["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert any(cell["outputs"] for cell in cells)
    assert not any(output["output_type"] == "error" for cell in cells for output in cell["outputs"])
    assert found["metadata"]["pele_ocl"] == {"code": key_of(found)}
    assert len(notebook.read_bytes()) < 250_000


def test_a_picture_in_ten_lines(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    write_complex(tmp_path)
    first, *others = code_of(ROOT / "docs" / "notebooks" / "binding.ipynb")
    assert len([line for line in first.splitlines() if line.strip()]) <= 11  # an import is one of them
    names: dict[str, object] = {}
    for source in (first, *others):
        exec(compile(source, "binding.ipynb", "exec"), names)
    shown = capsys.readouterr().out.splitlines()
    assert "kcal/mol over 6 frames" in shown[0]
    assert len(shown) == 8
    assert (tmp_path / "residues.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["generator", "force-matching"])
def test_models_are_trained(name, tmp_path, monkeypatch, capsys):
    """A torch notebook runs on a molecule of 22 atoms; torch is no dependency of the tests."""
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib").use("agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "tests" / "benchmarks")
    from dipeptide import pdb_of_dipeptide

    (tmp_path / "dipeptide.pdb").write_text(pdb_of_dipeptide())
    names: dict[str, object] = {}
    for source in code_of(ROOT / "docs" / "notebooks" / f"{name}.ipynb"):
        exec(compile(source, f"{name}.ipynb", "exec"), names)
    shown = capsys.readouterr().out
    if name == "force-matching":
        assert float(re.search(r"([\d.]+) of the forces", shown)[1]) < 0.3
    else:
        counts = [int(n) for n in re.findall(r"(\d+) effective samples of 8,192", shown)]
        assert len(counts) == 2
        assert max(counts) > 300
