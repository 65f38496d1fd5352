"""The wheel, built from the sdist and installed in a new environment elsewhere, works without the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def call(*command: object, **options: object) -> str:
    """Standard output of a command that must succeed; the environment is this one's without Python's own variables."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, env=env, **options)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`python -m build` makes the sdist from the checkout and the wheel from the sdist.

    Without an environment of its own for either: that [build-system] names all it needs, `make test` shows, which
    installs the checkout in such a one.
    """
    folder = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    assert list(folder.glob("*.tar.gz"))
    return next(folder.glob("*.whl"))


def test_wheel_holds_kernels_and_data(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("cl/common/real.clh", "cl/solvent/tiled.cl", "data/structures/ubiquitin.pdb", "data/obc/amber99.txt"):
        assert f"pele_ocl/{name}" in names
    assert not [name for name in names if name.startswith(("tests", "docs"))]


def test_wheel_holds_all_data_and_no_scripts(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for file in (ROOT / "data").rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            assert (f"pele_ocl/{file.relative_to(ROOT)}" in names) == (file.suffix != ".py"), file


def test_wheel_works_in_a_new_environment(wheel, tmp_path):
    call(sys.executable, "-m", "venv", tmp_path / "env")
    binaries = tmp_path / "env" / "bin"
    call(binaries / "python", "-m", "pip", "install", "--quiet", "--no-compile", wheel)
    code = "import pele_ocl.paths as p; print(p.shipped('data'))"
    where = call(binaries / "python", "-c", code, cwd=tmp_path).strip()
    assert where.startswith(str(tmp_path))
    assert "Default: " in call(binaries / "pele-ocl", "devices", cwd=tmp_path)
    structure = Path(where) / "structures" / "hexapeptide.pdb"
    report = json.loads(call(binaries / "pele-ocl", "solvent", structure, "--json", cwd=tmp_path))
    assert report["energy"]["total"] == pytest.approx(-352.5335, abs=1e-3)
