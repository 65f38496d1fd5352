"""Tables of the thesis and the lecture: the C program and the kernels agree; the page names all sources and tests."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "thesis.md"


@pytest.fixture
def thesis(monkeypatch):
    """The benchmark, with small maps alone."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "tests" / "benchmarks")])
    import thesis

    monkeypatch.setattr(thesis, "SIZES", (8, 12, 16))
    yield thesis
    for name in ("thesis", "course", "exercises", "charts"):
        sys.modules.pop(name, None)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("| ").split("|")]


def anchor(heading: str) -> str:
    """The place of a heading, as GitHub names it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_maps_of_a_c_program_and_of_kernels_agree(thesis, device, tmp_path):
    pytest.importorskip("matplotlib")
    built = list(thesis.builds(tmp_path))
    chart = tmp_path / "sizes.png"
    rows = [cells(line) for line in thesis.maps(device, built, 1, 1.0, chart) if line.startswith("| 8^3")]
    assert [row[2] for row in rows] == [
        "C, -O0", "C, -O3", "C, -O3 -fopenmp", "OpenCL, gather", "OpenCL, coalesced", "OpenCL, cutoff_bins",
    ]  # fmt: skip
    assert all(float(row[3]) > 0 for row in rows)
    assert all(float(row[5]) < 1e-5 for row in rows[3:5])
    assert chart.stat().st_size > 10_000


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_born_radii_and_pairs_of_a_c_program_and_of_kernels_agree(thesis, device, tmp_path):
    """Every program of the tables is a row, and all but `naive`, which loses additions, are right."""
    built = list(thesis.builds(tmp_path))
    rows = [cells(line) for line in thesis.born(device, ["hexapeptide"], built, 1, 1.0) if line.startswith("| hexa")]
    assert {row[2] for row in rows} > {"C, -O0", "C, -O3", "C, -O3 -fopenmp"}
    assert all(float(row[-1]) < 1e-4 for row in rows)
    rows = [cells(line) for line in thesis.pairs(device, "hexapeptide", built, 1)]
    errors = {row[2]: float(row[-1]) for row in rows if len(row) == 8 and row[-1][:1].isdigit()}
    assert len(errors) > 6
    assert all(error < 1e-4 for name, error in errors.items() if "naive" not in name)


def test_a_long_map_is_timed_on_a_sample(thesis, device, monkeypatch):
    monkeypatch.setattr(thesis, "SIZES", (32, 32))
    rows = [cells(line) for line in thesis.maps(device, [], 1, 1e-2, None)][3:]
    assert rows[0][3].endswith("*")


def test_every_source_has_a_page_and_a_test():
    """Rows of the table: an algorithm, its source, where it is here, and tests, all of which exist."""
    table = PAGE.read_text().partition("## Where to find each algorithm")[2]
    headings = re.findall(r"^## (.+)$", PAGE.read_text(), re.MULTILINE)
    rows = [cells(line) for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 20
    for algorithm, source, here, tests in rows:
        assert algorithm
        assert source
        links = re.findall(r"\]\(([^)#]+)", here)
        sections = re.findall(r"\]\(#([^)]+)\)", here)
        assert links or sections, f"{algorithm}: no page"
        assert set(sections) <= {anchor(heading) for heading in headings}, here
        assert all((ROOT / "docs" / link).is_file() for link in links), here
        assert all((ROOT / path).is_file() for path in re.findall(r"`((?:cl|docs)/[^`]+)`", here)), here
        files = re.findall(r"`(tests/[^`]+)`", tests)
        assert files, algorithm
        assert all((ROOT / path).is_file() for path in files), tests
        for name in re.findall(r"`(test_\w+)`", tests):
            assert any(f"def {name}(" in (ROOT / path).read_text() for path in files), name
