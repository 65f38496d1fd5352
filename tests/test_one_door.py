"""The law of the house: one public function per command, and nothing is decided in the command line."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pele_ocl
from pele_ocl.cli import COMMANDS

PACKAGE = Path(__file__).parent.parent / "pele_ocl"
CLI = sorted((PACKAGE / "cli").rglob("*.py"))
LIBRARY = sorted(path for path in PACKAGE.rglob("*.py") if not {"cli", "bench"} & set(path.relative_to(PACKAGE).parts))
OWN_COMMANDS = {"__main__.py", "checking/simulator.py"}  # how pele-ocl itself is started; the options of oclgrind
FRONT_DOOR = {"__init__.py", "command.py", "terminal.py"}  # which alone ask click what runs

# Public functions of commands, where the name is not the command's own.
FUNCTIONS = {"convert": "write_map", "mapmath": "combine_maps", "check": "check_kernel", "devices": "list_devices"}
# Commands about the program itself, the kernels of the ladders, and files of runs that were divided.
OF_THE_PROGRAM = {"bench", "kernel", "merge", "tune"}
# Errors of other libraries have their texts alone.
OF_OTHERS_ERRORS = {"'null' in str(error)", "'unknown target CPU' in str(error)"}
# Options of other programs, which sentences name.
OF_OTHERS = re.compile(r"pip install|gmx |dask |--quiet|--plain`")


def where(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Give the line and the text of each string of a module that is no docstring, f-strings in parts."""
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - OF_THE_PROGRAM))
def test_each_command_has_a_public_function(command):
    assert callable(getattr(pele_ocl, FUNCTIONS.get(command, command)))


def test_the_command_line_knows_no_spec_and_no_numpy():
    faults = []
    for path in CLI:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            faults += [f"{where(path)}: {name}" for name in names if name == "numpy" or name.endswith("Spec")]
    assert not faults, "\n".join(faults)


def test_the_front_door_alone_asks_for_the_context():
    users = [where(path) for path in CLI if "get_current_context" in path.read_text() and path.name not in FRONT_DOOR]
    assert not users, "\n".join(users)


def test_the_library_names_no_option():
    """Sentences name keywords in backquotes, which the command line spells as its options."""
    faults = [
        f"{where(path)}:{line}: {text[:100]}"
        for path in LIBRARY
        if where(path) not in OWN_COMMANDS
        for line, text in texts(path)
        if re.search(r"(?<![\w-])--[a-z][a-z-]+", text) and not OF_OTHERS.search(text)
    ]
    assert not faults, "\n".join(faults)


def test_no_code_reads_a_sentence():
    """Errors are told apart by class, code and fields."""
    faults = []
    for path in (*LIBRARY, *CLI):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
                text = ast.unparse(node)
                if (
                    re.search(r"in (str\((error|reason|why)\)|(note|sentence|error)\b)", text)
                    and "'" in text
                    and text not in OF_OTHERS_ERRORS
                ):
                    faults.append(f"{where(path)}:{node.lineno}: {text}")
    assert not faults, "\n".join(faults)


PEPTIDE = PACKAGE.parent / "data" / "structures" / "hexapeptide.pdb"
COARSE, FEW = {"spacing": 2.0}, {"max_iterations": 3}
# Keywords of each function that make a small call.
SMALL: dict[str, dict[str, Any]] = {
    "energy": {}, "solvent": {}, "nonbond": {}, "potmap": COARSE, "pb": COARSE, "minimize": FEW, "relax": FEW,
    "binding": {"ligand": "resid 1"}, "refine": {"ligand": "resid 1", **FEW}, "simulate": {"steps": 4},
    "screen": {"ligands": PEPTIDE.with_name("trialanine.pdb"), **FEW},
    "view": {}, "ions": {"add": {"NA": 1}, **COARSE}, "prepare": {},
}  # fmt: skip


@pytest.mark.parametrize("command", SMALL)
def test_results_have_one_form(tmp_path, command):
    """Every result prints on a screen, and has a table, a JSON object, HTML for notebooks and `save`."""
    if command == "prepare":
        pytest.importorskip("pdbfixer")
    more = {"output": tmp_path / "run"} if command == "simulate" else {}
    result = getattr(pele_ocl, command)(PEPTIDE, **SMALL[command], **more)
    assert repr(result).count("\n") < 40
    assert str(result.table()) or command == "prepare"
    assert "<" in result._repr_html_()
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert callable(result.save)
