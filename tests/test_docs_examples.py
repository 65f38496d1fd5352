"""Examples of docstrings, run: those of all public names, of their methods, and of the rooms that people import."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from conftest import DEVICES
from mmpbsa_helpers import write_files
from test_docs import _ten_tasks

import pele_ocl

ROOT = Path(__file__).parent.parent
# Modules whose names are not among the public ones.
ROOMS = "common.errors common.notes jobs report results units trajectories.tally binding.texts rescore.result".split()


def objects() -> Iterator[tuple[str, object]]:
    """Give the public objects, and those of further rooms."""
    for name in pele_ocl.__all__:
        found = getattr(pele_ocl, name)
        yield name, getattr(found, "_function", found)
    for room in ROOMS:
        module = import_module(f"pele_ocl.{room}")
        for name in getattr(module, "__all__", vars(module)):
            found = getattr(module, name)
            if getattr(found, "__module__", None) == module.__name__:
                yield f"{room}.{name}", found


def examples() -> Iterator[doctest.DocTest]:
    """Give the examples of an object and of its methods, with the names of its module, pele_ocl and np."""
    for name, found in objects():
        names = {**vars(import_module(str(found.__module__))), "pele_ocl": pele_ocl, "np": np}
        found_here = doctest.DocTestFinder().find(found, name, module=False, globs=names)
        yield from (of for of in found_here if of.examples)


EXAMPLES = {of.name: of for of in examples()}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files that examples name: a peptide without hydrogens, a complex, its control file and run, poses, mmpbsa.in."""
    made = tmp_path_factory.mktemp("files")
    (made / "data").symlink_to(ROOT / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        _ten_tasks()
        write_files(made)
        Path("mmpbsa.in").write_text("&general\n/\n&gb\n/\n")
        pele_ocl.explore("pele.conf", output="explored", steps=1)
        Path("explored/pele.conf").write_text(Path("pele.conf").read_text())
    return made


@pytest.fixture(autouse=True)
def in_a_folder_with_files(files, tmp_path, monkeypatch):
    for path in files.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PELE_OCL_DEVICE", str(DEVICES[0].index))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_gives_what_it_shows(name):
    for library in ("plotly", "rdkit", "pdbfixer", "MDAnalysis", "openmm"):
        if any(library in line.source for line in EXAMPLES[name].examples):
            pytest.importorskip(library)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=flags)
    told: list[str] = []
    runner.run(EXAMPLES[name], out=told.append)
    assert not runner.failures, "".join(told)


def test_there_are_many_examples():
    assert sum(len(of.examples) for of in EXAMPLES.values()) >= 300
