"""docs/extend/command.md, followed word for word: the function and the command that it prints work and agree."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from test_cli import HEXAPEPTIDE, run

import pele_ocl
from pele_ocl import InputError, cli

PAGE = Path(__file__).parent.parent / "docs" / "extend" / "command.md"


@pytest.fixture
def added(tmp_path, monkeypatch):
    """Add the two files of the page to packages that look for modules in a folder of the test's, too."""
    library, command = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    folder = tmp_path / "cli"
    shutil.copytree(Path(cli.__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "dipole.py").write_text(library)
    (folder / "dipole.py").write_text(command)
    monkeypatch.setattr(pele_ocl, "__path__", [*pele_ocl.__path__, str(tmp_path)])
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(folder)])
    monkeypatch.setattr(cli, "_FOLDER", folder)


@pytest.mark.usefixtures("added")
def test_the_worked_example_is_a_command_and_a_function(tmp_path):
    result = pele_ocl.dipole(HEXAPEPTIDE, center="geometry", radii="mbondi2")
    atoms = pele_ocl.read(HEXAPEPTIDE)
    expected = atoms.charges @ (atoms.positions - atoms.positions.mean(axis=0))
    np.testing.assert_allclose(result.moment, expected, rtol=1e-12)
    words = ("dipole", HEXAPEPTIDE, "--center", "geometry", "--gb-radii", "mbondi2", "-o", tmp_path / "c.csv", "--json")
    told = json.loads(run(*words).stdout)
    assert {name: of for name, of in told.items() if name != "seconds"} == result.to_json()
    result.save(tmp_path / "p.csv")
    assert (tmp_path / "c.csv").read_text() == (tmp_path / "p.csv").read_text()
    assert "origin [angstrom]" in (tmp_path / "c.csv").read_text()
    assert "Compute the dipole moment of the molecule in IN." in run("--help").stdout
    assert "moment [e angstrom]" in run("dipole", HEXAPEPTIDE).stdout
    with pytest.raises(TypeError, match="did you mean 'center'"):
        pele_ocl.dipole(HEXAPEPTIDE, centre="mass")
    with pytest.raises(InputError, match="center is 'charge'; choose 'mass' or 'geometry'"):
        pele_ocl.dipole(HEXAPEPTIDE, center="charge")
    assert "no such file" in run("dipole", tmp_path / "gone.pdb", code=1).stderr
