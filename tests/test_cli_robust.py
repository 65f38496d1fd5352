"""Command beside its results: imports, streams, names of files, inputs that are outputs, notes and times."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import click
import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result
from conftest import DEVICES

import pele_ocl
from pele_ocl import Grid, Map, write_map
from pele_ocl.cli import commands, main
from pele_ocl.common.installation import shipped
from pele_ocl.opencl import notices

ROOT = Path(__file__).parent.parent
HEXAPEPTIDE = shipped("data") / "structures" / "hexapeptide.pdb"
HEAVY = ("numpy", "gemmi", "h5py", "orjson", "pyopencl", "vesin", "platformdirs", "matplotlib", "importlib.metadata")


@pytest.fixture(autouse=True)
def on_the_chosen_device(monkeypatch):
    monkeypatch.setenv("PELE_OCL_DEVICE", str(DEVICES[0].index))


def run(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def process(command: str, *, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(["sh", "-c", f"{sys.executable} {command}"], capture_output=True, env=env, cwd=cwd)


def two_models(path: Path) -> Path:
    """Write the hexapeptide, and a copy 1 A further along x, whose energies are equal."""
    atoms = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith("ATOM")]
    moved = [f"{line[:30]}{float(line[30:38]) + 1:8.3f}{line[38:]}" for line in atoms]
    models = [["MODEL        1", *atoms, "ENDMDL"], ["MODEL        7", *moved, "ENDMDL"]]
    path.write_text("\n".join(line for model in models for line in model) + "\n")
    return path


# Imports


@pytest.mark.parametrize("words", ["-c 'import pele_ocl; dir(pele_ocl)'", "-m pele_ocl --help"])
def test_what_is_not_used_is_not_loaded(words):
    loaded = process(f"-X importtime {words}").stderr.decode()
    names = set(re.findall(r"\| +([\w.]+)$", loaded, re.MULTILINE))
    assert "pele_ocl" in names
    assert not names & set(HEAVY)


def test_public_names_are_told_to_checkers_and_loaded_alike():
    spec = importlib.util.spec_from_file_location("make_api", ROOT / "docs" / "api" / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    text = make.PACKAGE.read_text()
    assert text == make.filled(), "pele_ocl/__init__.py is stale: run `make docs`"
    assert sorted(re.findall(r"^    from \.[\w.]+ import \w+ as (\w+)$", text, re.M)) == pele_ocl.__all__
    with pytest.raises(AttributeError, match="module 'pele_ocl' has no attribute 'nothing'"):
        _ = pele_ocl.nothing


@pytest.mark.parametrize("first", ["import pele_ocl", "import pele_ocl.energy.plan, pele_ocl.nonbond.plan"])
def test_packages_are_called_as_their_functions(first):
    names = ("energy", "nonbond", "potmap", "solvent")
    check = "; ".join(f"f = pele_ocl.{name}; print(f.variants.VARIANTS is f.VARIANTS, signature(f))" for name in names)
    modules = ", ".join(f"pele_ocl.{name}.variants" for name in names)
    told = process(f'-c "{first}; import {modules}; from inspect import signature; {check}"').stdout.decode()
    assert len(re.findall(r"^True \((?:atoms|what): 'Atoms\b", told, re.MULTILINE)) == len(names)


def test_a_called_package_is_its_function():
    atoms = pele_ocl.read(HEXAPEPTIDE)
    assert pele_ocl.solvent(atoms).total == pele_ocl.solvent.solvent(atoms).total


def test_the_list_of_commands_says_what_they_say():
    context = click.Context(main)
    for name, summary in commands().items():
        first = (main.get_command(context, name).help or "").partition("\n\n")[0].replace("\n", " ")
        assert re.sub(r"\W", "", first).startswith(re.sub(r"\W", "", summary)), name
    assert all(f"  {name} " in run("--help").stdout for name in commands())


# Streams and names


@pytest.mark.parametrize("closed", ["2>&-", ">&-", ">&- 2>&- <&-"])
def test_closed_streams(tmp_path, closed):
    done = process(f"-m pele_ocl sample m.dx p.txt -o out.csv {closed}", cwd=maps(tmp_path))
    assert done.returncode == 0
    assert (tmp_path / "out.csv").read_text().splitlines()[-1] == "1.0,1.0,1.0,1.0"


def maps(folder: Path) -> Path:
    write_map(folder / "m.dx", Map(Grid((0, 0, 0), 1, (3, 3, 3)), np.ones((3, 3, 3)), "V"))
    (folder / "p.txt").write_text("1 1 1\n")
    return folder


def test_names_that_are_not_utf_8_or_obeyed_by_terminals(tmp_path):
    for name in (os.fsdecode(b"a\xff.pdb"), "b\x1b[31m.pdb", "c\nd.pdb"):
        path = tmp_path / name
        shutil.copy(HEXAPEPTIDE, path)
        for out in (".h5", ".csv", ".json"):
            result = run("solvent", path, "-o", tmp_path / f"{name}{out}", "--json")
            assert json.loads(result.stdout)["n_atoms"] == 96
        shown = run("solvent", path).stdout
        assert shown.replace("\n", "").isprintable()
        assert ascii(name)[1:-1] in shown.splitlines()[0]
        missing = run("solvent", f"{path}.pdb", code=1).stderr
        assert len(missing.splitlines()) == 1
        assert missing.strip().isprintable()


# Characters that terminals, spreadsheets and browsers obey.
OBEYED = "=1+1\x1b]0;owned\x07\n<img src=x>"


def test_tables_and_pages_hold_names_that_nothing_obeys(tmp_path, monkeypatch):
    """A table read on a terminal, in a spreadsheet or by lines shows the names of its files escaped."""
    import csv

    monkeypatch.chdir(tmp_path)
    one, other, map_ = f"{OBEYED}.pdb", f"@{OBEYED}.pdb", f"{OBEYED}.dx"
    for name in (one, other):
        shutil.copy(HEXAPEPTIDE, name)
    run("solvent", one, other, "-o", "solvent.csv")
    run("solvent", one, "-o", "one.csv")
    run("solvent", one, "-t", other, "-o", "frames.csv")
    run("potmap", one, "--spacing", 3, "-o", map_)
    run("sample", map_, one, "-o", "sample.csv")
    tables = sorted(tmp_path.glob("[a-z]*.csv"))
    assert len(tables) == 4
    for path in (*tables, tmp_path / map_):
        text = path.read_text()
        assert text.replace("\n", "").isprintable(), path.name
        assert not [line for line in text.splitlines() if line.startswith("<img")], path.name
    cells = [cell for path in tables for row in csv.reader(path.read_text().splitlines()) for cell in row]
    assert any(ascii(one)[1:-1] in cell for cell in cells)
    assert not [cell for cell in cells if cell[:1] in ("=", "@") or (cell[:1] in "+-" and not is_number(cell))]


def test_reports_structures_and_pages_hold_no_names_that_are_obeyed(tmp_path, monkeypatch):
    """What commands write of a file whose name a terminal, a shell, a spreadsheet or a browser would obey."""
    monkeypatch.chdir(tmp_path)
    name = f"{OBEYED}</script>'\"`;touch owned`$(touch owned)%s.pdb".replace("/", "_")
    shutil.copy(HEXAPEPTIDE, name)
    few = ("--max-iterations", 2)
    run("view", name, "-o", "page.html")
    run("minimize", name, "-o", "out.pdb", "--table", "minimize.csv", *few)
    run("minimize", name, "-o", "out.cif", "--table", "minimize.json", *few)
    run("relax", name, "-o", "relaxed.pdb", "--table", "relax.csv")
    run("energy", name, "--per-residue", "-o", "energy.csv")
    run("binding", name, "--ligand", "resnum 6", "-o", "binding.json")
    run("nonbond", name, "-o", "nonbond.csv")
    run("potmap", name, "--spacing", 4, "-o", "map.cube")
    run("ions", name, "--ion", "NA:1", "--spacing", 3, "-o", "salted.pdb")
    assert not (tmp_path / "owned").exists()
    written = sorted(path for path in tmp_path.glob("[a-z]*.*"))
    assert len(written) == 12
    for path in written:
        text = path.read_text()
        obeyed = (
            "[\\x07\\x1b]" if path.suffix == ".html" else "[\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f]"
        )  # 3Dmol.js has others
        assert not re.search(obeyed, text), path.name
        rows = text.splitlines()
        assert not [row for row in rows if row.startswith(("=", "@", "<img"))], path.name
        assert "<img src=x>" not in text or path.suffix in (".csv", ".json"), path.name


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return not text
    return True


def test_titles_of_pictures_are_no_formulas(tmp_path):
    path = tmp_path / r"a$\foo$b_{.pdb"
    shutil.copy(HEXAPEPTIDE, path)
    run("potmap", path, "--spacing", 3, "--png", tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    "words",
    [
        "potmap --min-distance 1e30", "potmap --min-distance 1e308", "potmap --spacing 1e308",
        "potmap --spacing 1e-320", "potmap --padding 1e308", "potmap --unit kT/e --temperature 1e308",
        "potmap --unit kT/e --temperature 1e-320", "potmap --ionic-strength 1e308", "potmap --dielectric 1e-320",
        "potmap --method cutoff --cutoff 1e308", "energy --cutoff 1e308",
        "solvent --temperature 1e-320 --ionic-strength 1", "solvent --solvent-dielectric 1e308",
        "ions -o o.pdb --neutralize --ion-distance 1e308", "ions -o o.pdb --concentration 1e308",
        "ions -o o.pdb --neutralize --solute-distance 1e308",
    ],
)  # fmt: skip
def test_numbers_beyond_all_bounds_are_a_sentence(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    command, *options = words.split()
    spacing = ["--spacing", 4] if command in ("potmap", "ions") and "--spacing" not in options else []
    result = run(command, HEXAPEPTIDE, *spacing, *options, code=1)
    assert result.stdout == ""
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert "unexpected" not in result.stderr
    assert "Warning" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_control_character_in_an_option():
    told = run("solvent", "in.pdb", "--\x1b[31m", code=2).stderr
    assert "\x1b" not in told


# Inputs and outputs


@pytest.mark.parametrize("option", ["--obc", "--templates"])
def test_an_output_is_no_input(tmp_path, option):
    table = tmp_path / "ligand.json"
    table.write_text('{"SolventParameters": {}}')
    for command in ("solvent", "energy", "nonbond"):
        told = run(command, HEXAPEPTIDE, option, table, "-o", table, code=1).stderr
        assert told == f"Error: {table}: the same file as the input {table}; give the output a different name\n"
    assert table.read_text() == '{"SolventParameters": {}}'


def test_no_file_of_a_folder_that_is_read_is_an_output(tmp_path):
    (tmp_path / "OBC").mkdir()
    table = tmp_path / "OBC" / "solventParams.txt"
    shutil.copy(shipped("data") / "obc" / "pele.txt", table)
    before = table.read_bytes()
    told = run("nonbond", HEXAPEPTIDE, "--pele-data", tmp_path, "--write-pairs", table, code=1).stderr
    assert told == f"Error: {table}: belongs to the input {tmp_path}; give the output a different name\n"
    assert table.read_bytes() == before
    (tmp_path / "out.csv").write_text("an earlier result\n")  # which is none of the parameters
    run("solvent", HEXAPEPTIDE, "--pele-data", tmp_path, "-o", tmp_path / "out.csv")


def test_two_outputs_of_one_name(tmp_path):
    out = tmp_path / "out.h5"
    told = run("potmap", HEXAPEPTIDE, "-o", out, "-o", tmp_path / "." / "out.h5", code=2).stderr
    assert "-o names one file twice" in told


def test_a_result_is_of_the_bytes_that_were_read(tmp_path, monkeypatch):
    """An input is replaced while the command runs: sum and lines belong to the molecule that was computed."""
    path = tmp_path / "in.pdb"
    shutil.copy(HEXAPEPTIDE, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    from pele_ocl.solvent import spec as solvent

    for module, name in ((solvent.Solvent, "evaluate"), (pele_ocl.ions, "place_ions")):
        compute = getattr(module, name)

        def replaced(*arguments, compute=compute, **options):
            path.write_text("REMARK another file\n")
            return compute(*arguments, **options)

        monkeypatch.setattr(module, name, replaced)
    run("solvent", path, "-o", tmp_path / "out.h5")
    with h5py.File(tmp_path / "out.h5") as file:
        assert file.attrs["input_sha256"] == digest
    shutil.copy(HEXAPEPTIDE, path)
    run("ions", path, "--ion", "NA:1", "--spacing", 2, "-o", tmp_path / "out.pdb")
    assert (tmp_path / "out.pdb").read_text().count("\nATOM") == 96


# What is told


def test_models_of_every_energy(tmp_path):
    path = two_models(tmp_path / "two.pdb")
    one_list = ("--no-cutoff",)  # for all models; else each has its own
    for command, options in (("solvent", ()), ("nonbond", ()), ("nonbond", one_list), ("energy", ())):
        one = json.loads(run(command, path, *options, "--model", 1, "--json").stdout)
        both = json.loads(run(command, path, *options, "--models", "all", "--json").stdout)
        assert [model["model"] for model in both["models"]] == [1, 7]
        for model in both["models"]:
            for term, value in one["energy"].items():
                assert model["energy"][term] == pytest.approx(value, rel=1e-4, abs=1e-3)
        text = run(command, path, "--models", "all").stdout
        assert "2 models\n\nEnergy of models, kcal/mol\nmodel  " in text
        run(command, path, "--models", "all", "-o", tmp_path / "out.csv")
        rows = [line for line in (tmp_path / "out.csv").read_text().splitlines() if not line.startswith("#")]
        assert [row.split(",")[0] for row in rows] == ["model", "1", "7"]
    told = run("nonbond", path, "--models", "all", "--write-pairs", tmp_path / "p.txt", code=2).stderr
    assert "--write-pairs is for one model" in told


@pytest.mark.parametrize("command", ["solvent", "energy"])
def test_residues_of_models(tmp_path, command):
    path = two_models(tmp_path / "two.pdb")
    report = json.loads(run(command, path, "--models", "all", "--per-residue", "--json").stdout)
    for model in report["models"]:
        assert [residue["residue"] for residue in model["residues"]][:2] == ["A:MET1", "A:LYS2"]
        assert sum(residue["total"] for residue in model["residues"]) == pytest.approx(
            model["energy"]["total"], rel=1e-5
        )
    lines = run(command, path, "--models", "all", "--per-residue").stdout.splitlines()
    assert lines[lines.index("Energy of residues, kcal/mol") + 1].startswith("model  residue  ")
    assert lines[-1].split()[:2] == ["7", "A:ASP6"]


def test_notes_stay_apart(tmp_path):
    path = two_models(tmp_path / "two.pdb")
    path.write_text(path.read_text().replace("ATOM      1  N  ", "ATOM      1  N  ", 1))
    run("solvent", path, "-o", tmp_path / "out.csv")
    (notes,) = re.findall(r"^# notes: (.*)$", (tmp_path / "out.csv").read_text(), re.MULTILINE)
    assert json.loads(notes) == list(pele_ocl.read(path).notes)


def test_waters_are_told(tmp_path):
    water = "HETATM  900  O   HOH B 301      30.000  30.000  30.000  1.00  0.00           O\n" \
            "HETATM  901  H1  HOH B 301      30.957  30.000  30.000  1.00  0.00           H\n" \
            "HETATM  902  H2  HOH B 301      29.760  30.927  30.000  1.00  0.00           H\n"  # fmt: skip
    path = tmp_path / "wet.pdb"
    path.write_text("".join(f"{line}\n" for line in HEXAPEPTIDE.read_text().splitlines() if line != "END") + water)
    for command in ("solvent", "energy", "nonbond"):
        assert run(command, path).stderr == f"Note: {path}: 1 water is part of the solute\n"


def test_compiling_is_said_once(monkeypatch):
    from pele_ocl.solvent import spec as solvent

    evaluate = solvent.Solvent.evaluate

    def compiled(*arguments, **options):
        for seconds in (math.inf, 0, 0):
            monkeypatch.setattr(notices, "COMPILED_SECONDS", seconds)
            with notices.building("Voodoo 2"):
                pass
        monkeypatch.setattr(notices, "COMPILED_SECONDS", math.inf)
        return evaluate(*arguments, **options)

    monkeypatch.setattr(solvent.Solvent, "evaluate", compiled)
    told = run("solvent", HEXAPEPTIDE).stderr
    assert told == "Compiling kernels for Voodoo 2; they are cached for later runs\n"
    notices.compiling("nobody listens any more")


def test_waiting_is_not_compiling(monkeypatch):
    """Where other programs use the processor, a program from the cache loads slowly, too."""
    heard = []
    monkeypatch.setattr(notices, "compiling", heard.append)
    monkeypatch.setattr(notices, "COMPILED_SECONDS", 0.1)
    with notices.building("Voodoo 2"):
        time.sleep(0.3)
    assert heard == []


def test_the_time_is_that_of_the_process():
    start = time.perf_counter()
    told = process(f"-m pele_ocl solvent {HEXAPEPTIDE} --json").stdout
    took = time.perf_counter() - start
    assert took / 3 < json.loads(told)["seconds"]["total"] < took


def test_writing_a_large_map_is_told(tmp_path, monkeypatch):
    from pele_ocl.cli import progress

    clock = iter(np.arange(0.0, 1e6, 11.0))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(progress.ProgressLine, "is_known", lambda line, share: True)  # of a map written in one part
    maps(tmp_path)
    told = run("convert", tmp_path / "m.dx", tmp_path / "m.h5").stderr
    assert f"Writing {tmp_path / 'm.h5'}: 100 %, " in told


# The checkout


def test_a_copy_in_place_of_the_checkout_is_told(tmp_path, monkeypatch):
    from pele_ocl.common import installation

    assert installation.copy_installed(ROOT) == ""
    (tmp_path / "pele_ocl").mkdir()
    (tmp_path / "pele_ocl" / "__init__.py").write_text("")
    info = tmp_path / "pele_ocl-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pele-ocl\nVersion: 0.1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    told = installation.copy_installed(ROOT)
    copy = tmp_path / "pele_ocl"
    assert (
        told == f"{copy} is a copy of this checkout, so changes to the checkout have no effect: pip install "
        f"--editable '{ROOT}'"
    )


# Names that no file can have


@pytest.mark.parametrize("words", [["energy"], ["explore"], ["pb"], ["view", "-o", "x.html"], ["binding", "--pele"]])
def test_names_that_are_too_long(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    for suffix in (".conf", ".pdb", ".in"):
        said = run(*words, "x" * 300 + suffix, code=1).stderr
        assert said == f"Error: {'x' * 300}{suffix}: the name is too long for the file system; give a shorter one\n"
    assert not list(tmp_path.iterdir())
