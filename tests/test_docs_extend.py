"""docs/extend/gb-model.md and energy-term.md, followed word for word in a copy, with the tests that they print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkout_helpers import copy_folder
from conftest import DEVICES

ROOT = Path(__file__).parent.parent
PAGES = {"gb-model.md": (3, 2), "energy-term.md": (4, 0)}  # steps, and files of the package that are touched
FILE = r"`((?:(?:cl|pele_ocl|tests)/)?[\w/]+\.(?:cl|clh|py|md|csv))`"


def steps(page: str) -> list[tuple[str, str]]:
    """Yield the words and the code of each step of a page."""
    text = (ROOT / "docs" / "extend" / page).read_text()
    sections = re.findall(r"^## \d\. .*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert len(sections) == PAGES[page][0]
    code = [re.findall(r"^```(?:c|python)\n(.*?)^```", section, re.DOTALL | re.MULTILINE) for section in sections]
    return [(section.partition("```")[0], block) for section, (block,) in zip(sections, code, strict=True)]


def follow(copy: Path, words: str, code: str) -> None:
    """Do a step of a page: write the new file that it names, or put its code where it says."""
    (file,) = re.findall(FILE, words)
    path = copy / ("tests/mine" if "/" not in file else "") / file  # a folder of the user's own
    if "new file" in words:
        assert not path.exists()
        path.write_text(code)
    elif "last one of the table `GB_MODELS`" in words:
        before, end, rest = path.read_text().rpartition("    )\n}")
        path.write_text(f"{before}{code}{end}{rest}")
    else:
        raise AssertionError(words)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout in which both pages were followed."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("pele_ocl", "cl"):
        copy_folder(name, copy)
    (copy / "tests" / "mine").mkdir(parents=True)
    shutil.copy(ROOT / "data" / "structures" / "hexapeptide.pdb", copy / "tests" / "mine" / "protein.pdb")
    for name in ("conftest.py", "tolerance.py"):
        shutil.copy(ROOT / "tests" / name, copy / "tests")
    for name in ("data", "pyproject.toml"):
        (copy / name).symlink_to(ROOT / name)
    for page in PAGES:
        for words, code in steps(page):
            follow(copy, words, code)
    return copy


@pytest.mark.parametrize("page", PAGES)
def test_files_of_the_package_are_touched_where_it_says_so(page):
    files = [re.search(FILE, words)[1] for words, _ in steps(page)]
    assert len({file for file in files if file.startswith(("cl/", "pele_ocl/"))}) == PAGES[page][1]


def test_the_term_is_used_from_a_folder_of_its_own(checkout):
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PELE_OCL_DEVICE": str(DEVICES[0].index)}
    command = [sys.executable, "use_morse.py"]
    done = subprocess.run(command, cwd=checkout / "tests/mine", env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 0


def test_the_worked_examples_pass_their_tests(checkout):
    """Tests of the examples hold kernels to the page's definition and gradients to central differences."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PELE_OCL_DEVICE": str(DEVICES[0].index)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= 13
