"""docs/extend/kernel.md, followed word for word in a copy of the checkout; then the tests that it names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from checkout_helpers import copy_folder
from conftest import DEVICES

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "extend" / "kernel.md"


def block(step: int, language: str) -> str:
    """Return the code of a step of the page."""
    section = re.search(rf"^## {step}\. .*?(?=^## \d|\Z)", PAGE.read_text(), re.DOTALL | re.MULTILINE)[0]
    (code,) = re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)
    return code


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy with the steps of the page done."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("pele_ocl", "cl", "docs", "tests"):
        copy_folder(name, copy, "data")
    (copy / "tests" / "data").symlink_to(ROOT / "tests" / "data")
    for name in ("data", "pyproject.toml", "README.md"):
        (copy / name).symlink_to(ROOT / name)
    (copy / "cl/solvent/ladder/halves.cl").write_text(block(1, "c"))
    module = copy / "pele_ocl/ladder/solvent.py"
    text = module.read_text()
    start = re.search(r"^SOLVENT\b.*= \{$", text, re.MULTILINE).start()
    end = text.index("\n}", start) + 1
    module.write_text(f"{text[:start]}{block(2, 'python')}\n\n{text[start:end]}{block(3, 'python')}{text[end:]}")
    with open(copy / "docs/variants.md", "a") as page:
        page.write(f"\n{block(4, 'markdown')}")
    return copy


PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5")


def python(checkout: Path, *arguments: object) -> str:
    """Return the output of a Python process in the checkout, which must end with exit code 0."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PELE_OCL_DEVICE": str(DEVICES[0].index)}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=checkout, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_names_the_two_files_of_code():
    text = PAGE.read_text()
    assert "a new file `cl/solvent/ladder/halves.cl`" in text
    assert "above the table in `pele_ocl/ladder/solvent.py`" in text


def test_the_worked_example_passes_the_tests_that_read_the_table(checkout):
    python(checkout, "docs/cli/make.py")
    assert "halves" in (checkout / "docs/cli/pele-ocl-solvent.txt").read_text()
    files = [f"tests/test_{name}.py" for name in ("solvent", "docs", "architecture")]
    found = python(checkout, *PYTEST, *files, "-k", "halves or variants_page or help_pages")
    assert int(re.search(r"(\d+) passed", found)[1]) >= 12


def test_the_worked_example_is_timed_and_right(checkout):
    command = "bench", "solvent", "--variant", "pair", "--variant", "halves", "--system", "ubiquitin", "--runs", 3
    table = python(checkout, "-m", "pele_ocl", *command, "--precision", "float32")
    assert re.search(r"^ubiquitin .* halves .*\d$", table, re.MULTILINE)
