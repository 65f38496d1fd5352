"""Command as a user meets it: output, files, sentences, exit codes."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from conftest import DEVICES, load_system
from tolerance import BORN_RADIUS

import pele_ocl
from pele_ocl import SolventModel, read, solvent
from pele_ocl.cli import commands, main
from pele_ocl.cli.command import Option
from pele_ocl.common.installation import shipped
from pele_ocl.gb_models import GB_MODELS
from pele_ocl.ladder import SOLVENT as VARIANTS

STRUCTURES = shipped("data") / "structures"
HEXAPEPTIDE = STRUCTURES / "hexapeptide.pdb"


@pytest.fixture(autouse=True)
def on_the_chosen_device(monkeypatch):
    monkeypatch.setenv("PELE_OCL_DEVICE", str(DEVICES[0].index))


def run(*arguments: object, code: int = 0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def run_table(*arguments: object, code: int = 0):
    """Run tests/benchmarks/table.py."""
    from table import tables

    result = CliRunner().invoke(tables, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def error_of(*arguments: object) -> str:
    """Return the sentence of a failing command; nothing else may be printed, and no traceback."""
    result = run(*arguments, code=1)
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr[7:].strip()


def assert_numbers_stand_under_heads(text: str, first: str, row: str) -> None:
    """Check that the table headed by `first` names its unit above, and that numbers end below their heads."""
    lines = text.splitlines()
    head = next(k for k, line in enumerate(lines) if line.startswith(first))
    assert lines[head - 1].endswith(", kcal/mol")
    numbers = next(line for line in lines[head:] if line.startswith(row))
    ends = [[match.end() for match in re.finditer(r"\S+( \S+)*", line)][1:] for line in (lines[head], numbers)]
    assert ends[0] == ends[1]


# Output


def test_summary_is_for_reading():
    text = run("solvent", HEXAPEPTIDE).stdout
    assert "hexapeptide.pdb: 96 atoms, 6 residues, net charge -1.000 e" in text
    assert "Born radii    1.518 to 3.905 A, mean 2.349 A" in text
    for name, value in {"gb self": "-923.484", "gb pair": "563.552", "nonpolar": "7.398", "total": "-352.53"}.items():
        assert f"  {name}" in text
        assert value in text
    assert re.search(rf"^(tiled|pair), float32, on {re.escape(str(DEVICES[0]))}", text, re.MULTILINE)


def test_json_is_one_object():
    report = json.loads(run("solvent", HEXAPEPTIDE, "--json", "--precision", "float64").stdout)
    assert set(report) == set(
        "schema structure sha256 n_atoms composition device variant precision settings born_radius energy seconds "
        "findings notes note_codes".split()
    )
    assert report["n_atoms"] == 96
    assert report["precision"] == "float64"
    assert report["energy"]["total"] == pytest.approx(-352.5335429, abs=1e-6)
    assert set(report["born_radius"]) == {"min", "max", "mean"}
    assert set(report["seconds"]) == {"kernel", "total"}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_can_be_chosen(variant):
    report = json.loads(run("solvent", HEXAPEPTIDE, "--variant", variant, "--json").stdout)
    assert report["variant"] == variant
    assert report["energy"]["total"] == pytest.approx(-352.5335, abs=1e-3)


def test_energies_per_residue_add_up():
    report = json.loads(run("solvent", HEXAPEPTIDE, "--per-residue", "--json").stdout)
    assert [r["residue"] for r in report["residues"]] == ["A:MET1", "A:LYS2", "A:GLU3", "A:PHE4", "A:GLY5", "A:ASP6"]
    for name, total in report["energy"].items():
        assert sum(r[name] for r in report["residues"]) == pytest.approx(total, rel=1e-9)
    assert_numbers_stand_under_heads(run("solvent", HEXAPEPTIDE, "--per-residue").stdout, "residue", "A:ASP6")


def test_options_reach_the_model():
    arguments = ("--solute-dielectric", 2, "--solvent-dielectric", 40, "--ionic-strength", 0.2, "--temperature", 310)
    text = run("solvent", HEXAPEPTIDE, "-v", *arguments).stdout
    for part in ("solute_dielectric 2,", "solvent_dielectric 40,", "ionic_strength 0.2,", "temperature 310,"):
        assert part in text


@pytest.mark.parametrize("command", ["solvent", "energy", "nonbond"])
def test_the_model_of_born_radii_is_an_option(command, tmp_path):
    """GB models are printed with --verbose and kept in the file; obc2 is the default."""
    energies = {}
    for gb in GB_MODELS:
        if command == "solvent" and gb == "none":
            assert "so there is no solvent energy" in run(command, HEXAPEPTIDE, "--gb", gb, code=1).stderr
            continue
        if "sgb" in GB_MODELS[gb].parameters:  # which Amber's templates have no figures of
            refused = "needs the SGB parameters" if command == "energy" else "is only available for complete energies"
            assert refused in run(command, HEXAPEPTIDE, "--gb", gb, code=1).stderr
            continue
        out = tmp_path / f"{gb}.json"
        chosen = () if gb == "obc2" else ("--gb", gb)
        assert f", gb {gb}, " in run(command, HEXAPEPTIDE, *chosen, "--precision", "float64", "-v", "-o", out).stdout
        written = json.loads(out.read_text())
        assert written["gb"] == gb
        energies[gb] = written.get("energy_gb_pair", 0)
    assert min(abs(energies[gb] - energies["obc2"]) for gb in ("hct", "obc1")) > 1
    if command == "solvent":
        result = solvent(read(HEXAPEPTIDE), model=SolventModel(gb="hct"), precision="float64", device=DEVICES[0])
        assert energies["hct"] == pytest.approx(result.gb_pair)
    assert energies.get("none", 0) == 0
    for number in ("8", "igb=8"):
        assert ", gb gbn2, " in run(command, HEXAPEPTIDE, "--gb", number, "-v").stdout
    shown = " ".join(run(command, HEXAPEPTIDE, "--gb", "9", code=2).stderr.split())
    assert "'9' is not one of none (igb=6), hct (igb=1), obc1 (igb=2)" in shown
    assert "gbn2 (igb=8)" in shown


def test_rgb_max_is_an_option():
    def energy(*options):
        return json.loads(run("solvent", HEXAPEPTIDE, "--json", *options).stdout)["energy"]["gb_pair"]

    assert "born_cutoff 7," in run("solvent", HEXAPEPTIDE, "-v", "--born-cutoff", 7).stdout
    assert abs(energy("--born-cutoff", 7) - energy()) > 0.1
    assert energy("--born-cutoff", 100) == pytest.approx(energy(), rel=1e-6)


def test_devices_are_listed():
    text = run("devices").stdout
    assert DEVICES[0].name in text
    assert "Default: " in text


def test_bench_prints_a_row_for_each_variant():
    text = run("bench", "solvent", "--system", "hexapeptide", "--runs", 3).stdout
    for variant in VARIANTS:
        assert text.count(f" {variant} ") >= 1


def test_bench_json_has_honest_rows():
    command = "bench", "solvent", "--system", "ubiquitin", "--variant", "pair", "--variant", "tiled"
    rows = [json.loads(line) for line in run(*command, "--runs", 3, "--json").stdout.splitlines()]
    for row in rows:
        assert row["seconds"] > 0
        assert row["error"] < (1e-9 if row["precision"] == "float64" else 1e-4)


@pytest.mark.parametrize("command", [(), ("solvent",), ("devices",), ("bench",), ("bench", "solvent")])
def test_help(command):
    assert "Usage:" in run(*command, "--help").stdout


def test_version():
    assert pele_ocl.__version__ in run("--version").stdout


# Files


def test_hdf5_says_how_it_was_made(tmp_path):
    out = tmp_path / "out.h5"
    run("solvent", HEXAPEPTIDE, "-o", out, "--precision", "float64")
    system = load_system("hexapeptide")
    with h5py.File(out) as file:
        worst = np.abs(file["born_radii"][:] / system.arrays["born_radius"] - 1).max()
        assert worst < BORN_RADIUS["float64"]
        assert file["born_radii"].attrs["unit"] == "angstrom"
        assert file["total"].attrs["unit"] == "kcal/mol"
        assert file["total"][:].sum() == pytest.approx(file.attrs["energy_total"], rel=1e-12)
        assert [name.decode() for name in file["atom_name"][:2]] == ["N", "H"]
        assert file.attrs["input_sha256"] == hashlib.sha256(HEXAPEPTIDE.read_bytes()).hexdigest()
        assert file.attrs["variant"] in ("tiled", "pair")  # CPUs and GPUs
        assert file.attrs["solvent_dielectric"] == 80
        assert json.loads(file.attrs["parameters"])["precision"] == "float64"
        assert pele_ocl.__version__ in file.attrs["software"]
        assert {"psi", "gb_self", "gb_pair", "nonpolar", "chain", "residue_number"} <= set(file)


def test_csv_and_json_tables(tmp_path):
    run("solvent", HEXAPEPTIDE, "-o", tmp_path / "out.csv")
    lines = [line for line in (tmp_path / "out.csv").read_text().splitlines() if not line.startswith("#")]
    assert "born_radii [angstrom]" in lines[0]
    assert len(lines) == 97
    run("solvent", HEXAPEPTIDE, "-o", tmp_path / "out.json")
    content = json.loads((tmp_path / "out.json").read_text())
    assert len(content["columns"]["born_radii"]) == 96
    assert content["parameters"]["precision"] == "float32"


@pytest.mark.parametrize("name", ["out.xlsx", "missing/out.h5"])
def test_bad_output_is_refused_before_the_work(tmp_path, name, monkeypatch):
    monkeypatch.setattr(sys.modules["pele_ocl.solvent.spec"], "having", lambda *_: pytest.fail("computed"))
    assert str(tmp_path) in error_of("solvent", HEXAPEPTIDE, "-o", tmp_path / name)
    assert list(tmp_path.iterdir()) == []


# Errors

PDB = HEXAPEPTIDE.read_text()
ATOMS = [line for line in PDB.splitlines() if line.startswith("ATOM")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ("<!DOCTYPE html><html><body>404</body></html>\n", "HTML"),
        ("REMARK nothing here\nEND\n", "no ATOM"),
        (PDB.replace(ATOMS[5][30:38], "     nan"), r"in.pdb:10: a coordinate of atom HA MET A 1 is 'nan'"),
        (PDB[: PDB.index(ATOMS[9]) + 35], r"in.pdb:14: the line ends before the coordinates do"),
        (
            PDB.replace(" PHE ", " ZZZ "),
            r"no template for the residue ZZZ; for a small molecule give a file with all hydrogens \(--ligand-file\)",
        ),
        ("\n".join(line for line in PDB.splitlines() if line[76:78].strip() != "H"), "hydrogen"),
        (PDB.replace(ATOMS[7] + "\n", ""), "the residue lacks O"),
        (PDB.replace(ATOMS[7] + "\n", 2 * (ATOMS[7] + "\n")), "already on line"),
        (PDB.replace(ATOMS[7] + "\n", ATOMS[7] + "\n\0\0\0\n"), "NUL"),
    ],
)
def test_malformed_files_get_one_sentence(tmp_path, content, message):
    path, out = tmp_path / "in.pdb", tmp_path / "out.h5"
    path.write_text(content)
    assert re.search(message, error_of("solvent", path, "-o", out))
    assert not out.exists()
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_folder_is_no_molecule(tmp_path):
    assert error_of("solvent", tmp_path) == f"{tmp_path}: a folder; give a file in it"


def test_coincident_atoms_are_named(tmp_path):
    path = tmp_path / "in.pdb"
    path.write_text(PDB.replace(ATOMS[7][30:54], ATOMS[8][30:54]))
    assert "atom 7 (A:MET1:" in (sentence := error_of("solvent", path))
    assert "are at the same position" in sentence


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_line_endings_do_not_matter(tmp_path, ending):
    path = tmp_path / "in.pdb"
    path.write_bytes(b"\xef\xbb\xbf" + PDB.replace("\n", ending).encode())
    assert json.loads(run("solvent", path, "--json").stdout)["energy"]["total"] == pytest.approx(-352.5336, abs=1e-3)


def test_missing_file():
    assert error_of("solvent", "nowhere.pdb").startswith("nowhere.pdb: ")


def test_output_to_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m pele_ocl solvent {HEXAPEPTIDE} --per-residue | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if not line.startswith("Compiling kernels")]
    assert said == []


def test_unknown_device():
    sentence = error_of("solvent", HEXAPEPTIDE, "--device", "Voodoo")
    assert "no OpenCL device fits 'Voodoo'; the devices are 0: " in sentence


def test_bad_number_is_a_sentence():
    sentence = error_of("solvent", HEXAPEPTIDE, "--solvent-dielectric", -3)
    assert sentence == "solvent_dielectric is -3; it must be positive, 0.001 to 1,000,000"


def test_usage_errors_exit_with_2():
    run("solvent", code=2)
    run("solvent", HEXAPEPTIDE, "--variant", "fast", code=2)


def test_unexpected_errors_are_sentences_too(monkeypatch):
    # The command has taken its module's name in the package.
    monkeypatch.setattr(sys.modules["pele_ocl.solvent.spec"], "having", lambda *_: 1 / 0)
    assert "unexpected ZeroDivisionError" in error_of("solvent", HEXAPEPTIDE)


def test_debug_shows_the_traceback():
    for words in (["solvent", "nowhere.pdb", "--debug"], ["--debug", "solvent", "nowhere.pdb"]):
        assert isinstance(CliRunner().invoke(main, words).exception, pele_ocl.PeleError)
    assert isinstance(CliRunner().invoke(main, ["solvent", "nowhere.pdb"]).exception, SystemExit)


def test_progress_appears_on_long_work(monkeypatch, capsys):
    from pele_ocl.cli.progress import ProgressLine

    times = iter([0.0, 1.0, 3.0, 31.0])
    monkeypatch.setattr("pele_ocl.cli.progress.time.monotonic", lambda: next(times))
    with ProgressLine("Solvent") as line:
        line(0.1)
        line(0.3)
        line(0.5)
    assert capsys.readouterr().err == "Solvent:  50 %, 38 s left\n"  # 40 % took 30 s


def test_command_is_installed():
    folder = Path(sys.executable).parent
    assert shutil.which("pele-ocl", path=str(folder)), "install the package: pip install -e ."


def test_shipped_folders_exist():
    for folder in ("cl", "data"):
        assert Path(shipped(folder)).is_dir()


def test_choices_that_reading_made_are_noted(tmp_path):
    text = HEXAPEPTIDE.read_text()
    atoms = "".join(line for line in text.splitlines(keepends=True) if line.startswith("ATOM"))
    (tmp_path / "two.pdb").write_text(f"MODEL        1\n{atoms}ENDMDL\nMODEL        2\n{atoms}ENDMDL\n")
    note = "contains several models; model 1, the first, was read; --model selects another\n"
    assert run("solvent", tmp_path / "two.pdb").stderr.endswith(note)
    assert run("solvent", tmp_path / "two.pdb", "--model", 2).stderr == ""


def test_many_options_are_listed_in_groups():
    """By --help-all, each once, under a heading; a command with few has none."""
    for command in ("energy", "minimize", "binding", "potmap"):
        text = run(command, "--help-all").stdout
        headings = re.findall(r"^(\w[\w ]+):$", text, re.M)
        assert headings[0] == "Options"
        assert {"Computation", "Choosing atoms", "Structure and force field", "Reports"} <= set(headings), command
        listed = re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.M)
        assert len(listed) == len(set(listed)) > 40, command
        longest = max(len(re.findall(r"^  -", part, re.M)) for part in re.split(r"^\w[\w ]+:$", text, flags=re.M))
        assert longest <= 20, command
    assert re.findall(r"^(\w[\w ]+):$", run("convert", "--help").stdout, re.M) == ["Options"]


def test_help_shows_the_options_that_people_need():
    """Of a command with many, and says how many more there are; a command with few shows all of them."""
    for command in ("energy", "minimize", "binding", "potmap", "simulate", "pb"):
        short, full = run(command, "--help").stdout, run(command, "--help-all").stdout
        count = len(re.findall(r"^  -", short, re.M))
        assert 8 <= count <= 26, command
        more = len(re.findall(r"^  -", full, re.M)) - count
        assert short.rstrip().endswith(f"{more} more options: main {command} --help-all"), command
        assert {"--output", "--help", "--help-all"} <= set(re.findall(r"--[\w-]+", short)), command
    assert "--help-all" not in run("convert", "--help").stdout
    assert "--example" in run("explore", "--help").stdout
    assert {"-i", "-cp", "-y"} <= set(run("mmpbsa", "--help").stdout.split())


def test_a_command_that_is_nearly_right_is_suggested():
    run_error = run("minimise", HEXAPEPTIDE, code=2).stderr
    assert "No such command 'minimise'. (Did you mean minimize?)" in run_error
    assert "No such command 'zzz'.\n" in run("zzz", code=2).stderr


def test_resume_and_overwrite_are_under_one_heading():
    for name in commands():
        command = main.get_command(click.Context(main), name)
        for option in command.params:
            if option.name in ("resume", "overwrite") and isinstance(option, Option):
                assert option.heading == "Output" or "-O" in option.opts, name


def test_files_that_were_written_are_named(tmp_path):
    for name, option in (("energy", "e.h5"), ("solvent", "s.csv"), ("nonbond", "n.json")):
        text = run(name, HEXAPEPTIDE, "-o", tmp_path / option).stdout
        assert text.splitlines()[-1] == f"Written       {tmp_path / option}"
    assert "Written" not in run("energy", HEXAPEPTIDE).stdout
    of_shard = run(
        "energy", HEXAPEPTIDE, STRUCTURES / "trialanine.pdb", "-o", tmp_path / "e.h5", "--shard", "1/2"
    ).stdout
    assert (tmp_path / "e.1of2.h5.part").exists()
    assert "Written" not in of_shard  # e.h5 is of the run before


def test_mistakes_are_told_with_present_names_of_options():
    for words, hint in (
        (("pb", HEXAPEPTIDE, "--surface", "foo"), "'--dielectric-surface'"),
        (("ions", HEXAPEPTIDE, "-o", "a.pdb", "--add", "NA"), "'--add'"),
    ):
        assert f"Invalid value for {hint}: " in run(*words, code=2).stderr
