"""Every option of every command with odd values: one sentence or a result, never a traceback."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from conftest import DEVICES

from pele_ocl.cli import commands as all_commands
from pele_ocl.cli import main
from pele_ocl.cli.command import Input, Output
from pele_ocl.common.installation import shipped

CASES, SEED = 200, 12
LEFT_OUT = ("bench", "tune")  # they measure for minutes whatever the values
STRUCTURES = shipped("data") / "structures"
# Texts that stand where a number should, or a number that no molecule has.
NUMBERS = [
    *("0", "-1", "1", "2.5", "1e308", "-1e308", "1e-320", "1e30", "1e5", "nan", "inf", "-inf", "1e400", "0x10", "1_0"),
    *("9" * 5000, "", " ", "\x1b[31m", "a", "1,2", "--", "0.0000001", "\N{ARABIC-INDIC DIGIT THREE}"),
]
TEXTS = [
    *("", " ", "\x1b[31mred", "a\nb", "\udcff", "../..", "%s", "{}", "$HOME", "-", "=1", "x" * 5000, "0", "-1"),
    *("amber99sb", "NA:3", "NA:auto", "CL:999999999", "NA:1:2", "ZZ:1", ":", "nan"),
]
PATHS = [
    *(".", "/", "", "missing/file.pdb", "in.pdb", "map.dx", "empty.pdb", "bytes.npy", "/dev/null", "/proc/self/mem"),
    *("out.h5", "out.csv", "out.json", "out.dx", "out.png", "out.pdb", "out.npz", "out.txt"),
    *("a\x1b[31m.h5", "a\nb.csv", "\udcff.json", "$a\\b$.png", "x" * 300 + ".h5", "nul\0.h5"),
]


# Words of a command's files, by default those of a structure.
FILES = {
    "convert": ["map.dx", "out.h5"],
    "sample": ["map.dx", "in.pdb"],
    "devices": [],
    "mmpbsa": ["-i", "mmpbsa.in", "-cp", "in.pdb", "-y", "in.pdb"],
}


def commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(main)
    for name in all_commands():
        if name not in LEFT_OUT:
            command = main.get_command(context, name)
            assert command is not None
            yield name, command


def values(parameter: click.Parameter, rng: random.Random) -> list[str]:
    """An odd value of a parameter, or one that may be right."""
    kind = parameter.type
    if isinstance(kind, Input | Output):
        pool = PATHS
    elif isinstance(kind, click.Choice):
        pool = [*map(str, kind.choices), *map(str, kind.choices), *TEXTS]
    elif kind is click.STRING:
        pool = [*TEXTS, *NUMBERS]
    else:
        pool = NUMBERS
    return [rng.choice(pool) for _ in range(parameter.nargs)]


def command_line(rng: random.Random) -> list[str]:
    """A command with its files and one to three of its options."""
    name, command = rng.choice(list(commands()))
    files = FILES.get(name, ["in.pdb"])
    words = [name, *files]
    if files and rng.random() < 0.1:
        words[rng.choice([k for k, word in enumerate(words) if k > 0 and word[0] != "-"])] = rng.choice(PATHS)
    if name == "ions":
        words += ["-o", "out.pdb", *rng.choice([["--neutralize"], ["--ion", "NA:2"], []])]
    if name == "view" and rng.random() < 0.3:
        words += ["-o", "out.html"]
    if name in ("binding", "refine"):
        words += ["--ligand", "resid 5:6"]
    if name == "check":
        words += ["--as", "sum"]
    if name in ("ions", "potmap"):
        words += ["--spacing", "3"]
    options = [o for o in command.params if isinstance(o, click.Option) and o.name not in ("help", "debug", "device")]
    for option in rng.sample(options, min(len(options), rng.randint(1, 3))):
        if option.opts[-1] not in words and option.opts[0] not in words:
            words += [option.opts[-1], *([] if option.is_flag else values(option, rng))]
    return words


def outputs_of(words: list[str]) -> set[str]:
    """Return the values of the options that name a file to write."""
    command = main.get_command(click.Context(main), words[0])
    names = {name for option in command.params if isinstance(option.type, Output) for name in option.opts}
    return {value for name, value in itertools.pairwise(words) if name in names}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fuzz")
    shutil.copy(STRUCTURES / "hexapeptide.pdb", path / "in.pdb")
    (path / "mmpbsa.in").write_text("&general\n/\n&gb\n/\n")
    (path / "empty.pdb").write_text("")
    (path / "bytes.npy").write_bytes(bytes(range(256)))
    return path


def fault_of(words: list[str]) -> str:
    """Return the fault in how the command ends, "" if there is none."""
    done = CliRunner().invoke(main, words)
    if not isinstance(done.exception, SystemExit | None) or done.exit_code not in (0, 1, 2):
        return f"raised {done.exception!r}"
    errors = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    if "unexpected" in done.stderr or (done.exit_code != 0 and errors != done.stderr.splitlines()[-1:]):
        return f"no sentence: {done.stderr}"
    if not (done.stdout + done.stderr).replace("\n", "").isprintable():
        return "control characters"
    if done.exit_code == 0 and any(word in done.stdout for word in (" nan", "NaN", "Infinity", " inf")):
        return f"no number: {done.stdout}"
    return ""


def test_options_with_odd_values(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PELE_OCL_DEVICE", str(DEVICES[0].index))
    assert fault_of(["potmap", "in.pdb", "--spacing", "3", "-o", "map.dx"]) == ""
    kept = {name: (folder / name).read_bytes() for name in ("in.pdb", "empty.pdb", "bytes.npy")}
    rng = random.Random(SEED)
    for words in [command_line(rng) for _ in range(CASES)]:
        assert fault_of(words) == "", words
        for name in kept.keys() & outputs_of(words):  # which may be written over
            (folder / name).write_bytes(kept[name])
        assert {name: (folder / name).read_bytes() for name in kept} == kept, words
        assert not [path for path in folder.iterdir() if path.name.startswith(".")], words
