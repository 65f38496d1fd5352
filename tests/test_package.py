"""Wheel, built from the sdist and installed in a new environment elsewhere, works without the checkout.

And what stands beside it says the same: citation, conda recipe, workflows.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).parent.parent
RECIPE = ROOT / ".conda" / "recipe.yaml"
TEXTS = sorted((ROOT / "data" / "licenses").glob("*.txt"))


in_a_checkout = pytest.mark.skipif(not RECIPE.exists(), reason="an sdist has no conda recipe")


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


def test_sdist_holds_no_recipe(wheel):
    """Which has the hash of the sdist in a release."""
    with tarfile.open(next(wheel.parent.glob("*.tar.gz"))) as sdist:
        parts = {part for name in sdist.getnames() for part in Path(name).parts}
    assert {"docs", "tests", "cl", "data", "LICENSE"} <= parts
    assert not {".conda", "__pycache__", ".git", "build"} & parts


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


def test_wheel_states_its_licences(wheel):
    """Expression and texts, of the data that others made, too; each set of data has a line that says whose it is."""
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    text = archive.read(metadata).decode()
    assert "License-Expression: MIT AND CC-BY-4.0 AND BSD-3-Clause\n" in text
    assert [path.name for path in TEXTS] == ["CC-BY-4.0.txt", "NOTICES.txt", "PDB2PQR.txt"]
    for file in ("LICENSE", *(f"data/licenses/{path.name}" for path in TEXTS)):
        assert f"License-File: {file}\n" in text
        assert archive.read(f"{metadata.removesuffix('METADATA')}licenses/{file}") == (ROOT / file).read_bytes()
    notices = (ROOT / "data" / "licenses" / "NOTICES.txt").read_text()
    for owner in ("Stanford University", "University of Pittsburgh", "Chodera lab", "Dunbrack"):
        assert owner in notices
    for name in ("amber99sb/", "obc/", "gb_necks.csv", "structures/", "rotamers/", "stereochemistry.csv", "vdgbnp.csv"):
        assert name in notices


def test_twine_has_nothing_to_say(wheel):
    pytest.importorskip("twine", reason="the extra `dist` is not installed")
    call(sys.executable, "-m", "twine", "check", "--strict", *wheel.parent.iterdir())


def project(word: str) -> str:
    """Read the value after a word that begins a line of pyproject.toml; Python 3.10 has no reader of TOML."""
    text = (ROOT / "pyproject.toml").read_text()
    return re.search(rf"^{word} = (.+?)$(?=\n\S|\n\n)", text, re.DOTALL | re.MULTILINE)[1]


@pytest.fixture
def hook() -> ModuleType:
    """hatch_build.py, which hatchling runs."""
    pytest.importorskip("hatchling")
    specification = importlib.util.spec_from_file_location("hatch_build", ROOT / ".packaging" / "hatch_build.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@in_a_checkout
def test_versions_are_one(hook):
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == hook.NEXT
    assert yaml.safe_load(RECIPE.read_text())["context"]["version"] == hook.NEXT
    assert re.search(rf"^## ({re.escape(hook.NEXT)}|Unreleased)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_the_citation_is_whole():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    zenodo = json.loads((ROOT / ".zenodo.json").read_text())
    assert set(citation["license"]) == set(re.split(" AND ", project("license").partition('"  #')[0].strip('"')))
    assert zenodo["title"] == citation["title"]
    assert zenodo["creators"] == [{"name": author["name"]} for author in citation["authors"]]
    assert f'Source = "{citation["repository-code"]}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize(
    ("description", "version"),
    [
        ("v0.3.0-0-gabcdef0", "0.3.0"),
        ("v0.3.0", "0.3.0"),  # of an archive of the tag
        ("v0.3.1rc1-0-gabcdef0", "0.3.1rc1"),
        ("v0.2.0-12-gabcdef0", "0.3.0.dev12+gabcdef0"),
        ("v0.3.0-12-gabcdef0", "0.3.1.dev12+gabcdef0"),
        ("abcdef0", "0.3.0.dev0+gabcdef0"),  # of a repository without a tag
        ("", "0.3.0.dev0"),  # a copy without git
    ],
)
def test_the_version_is_that_of_the_tag(hook, monkeypatch, description, version):
    monkeypatch.setattr(hook, "NEXT", "0.3.0")
    monkeypatch.setattr(hook, "described", lambda: description)
    assert hook.version() == version


def test_the_version_is_found_with_git_and_without(hook, monkeypatch, tmp_path):
    """In a repository by its tag, in an archive that git made by what git wrote there, in a mere copy by neither."""
    monkeypatch.setattr(hook, "ROOT", tmp_path)
    assert hook.described() == ""
    for name in (".gitattributes", ".git_archival.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    assert hook.described() == ""
    git = ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"], ["tag", "v1.2.3"]):
        call(*git, *words)
    assert re.fullmatch(r"v1\.2\.3-0-g[0-9a-f]+", hook.described())
    archive = tmp_path / "archive"
    archive.mkdir()
    with tarfile.open(fileobj=io.BytesIO(subprocess.run([*git, "archive", "HEAD"], capture_output=True).stdout)) as tar:
        tar.extractall(archive, filter="data")
    monkeypatch.setattr(hook, "ROOT", archive)
    assert hook.version() == "1.2.3"


def test_the_long_description_needs_no_file_beside_it(wheel):
    """An index shows it alone: every link and picture has a whole address, of a file that is here."""
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    text = archive.read(metadata).decode()
    assert "Description-Content-Type: text/markdown" in text
    links = re.findall(r"(?:\]\(|<img src=\")([^)#\s\"]+)", text.partition("\n\n")[2])
    ours = [re.fullmatch(r"https://github\.com/pele-ocl/pele-ocl/(?:blob|raw)/[\w.]+/(.+)", link) for link in links]
    assert sum(found is not None for found in ours) > 10
    assert all((ROOT / found[1]).exists() for found in ours if found)
    assert all(link.startswith("https://") for link in links)


@in_a_checkout
def test_the_conda_recipe_asks_for_what_the_wheel_asks_for():
    recipe = yaml.safe_load(RECIPE.read_text())
    asked = re.findall(r'^    "([\w-]+)(>=[\d.]+)"', project("dependencies"), re.MULTILINE)
    named = {"vesin": "python-vesin"}  # as conda-forge calls its Python package
    wanted = {f"{named.get(name, name)} {bound}" for name, bound in asked}
    assert len(wanted) == 9
    python = f"python {project('requires-python').strip(chr(34))}"
    assert set(recipe["requirements"]["run"]) == {*wanted, python, "pocl"}
    assert python in recipe["requirements"]["host"]
    assert recipe["about"]["summary"] == project("description").strip('"')
    scripts = (ROOT / "pyproject.toml").read_text().partition("[project.scripts]\n")[2].partition("\n\n")[0]
    assert recipe["build"]["python"]["entry_points"] == scripts.replace('"', "").splitlines()
    assert recipe["about"]["license"] == project("license").partition('"  #')[0].strip('"')


@in_a_checkout
def test_the_conda_recipe_is_rendered():
    rattler = pytest.importorskip("rattler_build", reason="py-rattler-build is not installed")
    (rendered,) = rattler.Stage0Recipe.from_file(RECIPE).render()
    version = yaml.safe_load(RECIPE.read_text())["context"]["version"]
    assert rendered.recipe.to_dict()["package"] == {"name": "pele-ocl", "version": version}


@in_a_checkout
def test_a_release_has_a_recipe_of_its_sdist(tmp_path):
    """`make recipe` writes version, address and hash of the sdist, in which the recipe is not."""
    for name in ("Makefile", ".conda/recipe.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "pele_ocl-9.8.7.tar.gz").write_bytes(b"an sdist")
    call("make", "-C", tmp_path, "recipe")
    recipe = yaml.safe_load((tmp_path / "build" / "conda" / "recipe.yaml").read_text())
    ours = yaml.safe_load(RECIPE.read_text())
    assert recipe["context"]["version"] == "9.8.7"
    url = "https://pypi.org/packages/source/p/pele-ocl/pele_ocl-${{ version }}.tar.gz"
    assert recipe["source"] == {"url": url, "sha256": hashlib.sha256(b"an sdist").hexdigest()}
    assert ours["source"] == {"path": ".."}  # of a checkout, which has no hash
    assert {**recipe, "context": None, "source": None} == {**ours, "context": None, "source": None}
    assert set(recipe["about"]["license_file"]) == {"LICENSE", *(f"data/licenses/{path.name}" for path in TEXTS)}


def test_workflows_do_what_make_does():
    """Every target that a workflow makes is there, and it runs on the versions of Python that the classifiers name."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    flows = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github" / "workflows").glob("*.yml")}
    assert set(flows) == {"ci", "release"}
    for flow in flows.values():
        steps = [step for job in flow["jobs"].values() for step in job.get("steps", [])]
        made = {step["run"].split()[1] for step in steps if step.get("run", "").startswith("make ")}
        assert made
        assert made <= targets
    versions = re.findall(r"Python :: (3\.\d+)", project("classifiers"))
    assert flows["ci"]["jobs"]["test"]["strategy"]["matrix"]["python"] == versions
    assert flows["release"]["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert [job.get("needs") for job in flows["release"]["jobs"].values()] == [None, "ci", "dist"]


def test_wheel_works_in_a_new_environment(wheel, tmp_path):
    call(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env")
    binaries = tmp_path / "env" / "bin"
    call(sys.executable, "-m", "pip", "--python", binaries / "python", "install", "--quiet", "--no-compile", wheel)
    code = "import pele_ocl.common.installation as p; print(p.shipped('data'))"
    where = call(binaries / "python", "-c", code, cwd=tmp_path).strip()
    assert where.startswith(str(tmp_path))
    assert "Default: " in call(binaries / "pele-ocl", "devices", cwd=tmp_path)
    structure = Path(where) / "structures" / "hexapeptide.pdb"
    report = json.loads(call(binaries / "pele-ocl", "solvent", structure, "--json", cwd=tmp_path))
    assert report["energy"]["total"] == pytest.approx(-352.5335, abs=1e-3)
