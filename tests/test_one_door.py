"""The law of the house: one public function per command, and nothing is decided in the command line."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DEVICES
from explore_run_helpers import write_run
from mmpbsa_helpers import write_files
from test_architecture import parsed
from test_cli import run

import pele_ocl
from pele_ocl.cli import commands

PACKAGE = Path(__file__).parent.parent / "pele_ocl"
CLI = sorted((PACKAGE / "cli").rglob("*.py"))
LIBRARY = sorted(path for path in PACKAGE.rglob("*.py") if not {"cli", "bench"} & set(path.relative_to(PACKAGE).parts))
OWN_COMMANDS = {"__main__.py", "checking/simulator.py"}  # how pele-ocl itself is started; the options of oclgrind
FRONT_DOOR = {"__init__.py", "command.py", "terminal.py"}  # which alone ask click what runs

# Public functions of commands, where the name is not the command's own.
FUNCTIONS = {
    "ligand": "parametrize", "convert": "write_map", "mapmath": "combine_maps", "check": "check_kernel",
    "devices": "list_devices",
}  # fmt: skip
# Commands about the program itself, the kernels of the ladders, and files of runs that were divided.
OF_THE_PROGRAM = {"bench", "kernel", "merge", "tune"}
# Errors of other libraries have their texts alone.
OF_OTHERS_ERRORS = {
    "'null' in str(error)", "'unknown target CPU' in str(error)",
    "'unexpected extra argument' not in error.message",  # click's, which has no class for it
}  # fmt: skip
# Options of other programs, which sentences name.
OF_OTHERS = re.compile(r"pip install|gmx |dask |--quiet|--plain`")


def where(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Give the line and the text of each string of a module that is no docstring, f-strings in parts."""
    tree = parsed(path)
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


@pytest.mark.parametrize("command", sorted(commands().keys() - OF_THE_PROGRAM))
def test_each_command_has_a_public_function(command):
    function = getattr(pele_ocl, FUNCTIONS.get(command, command))
    assert callable(function)
    hidden = [of.name for of in signature(function).parameters.values() if of.kind is of.VAR_KEYWORD]
    assert not hidden, f"`help` and completion do not show what **{hidden[0]} takes: jobs/words.py"


def test_the_command_line_knows_no_spec_and_no_numpy():
    faults = []
    for path in CLI:
        for node in ast.walk(parsed(path)):
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
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
                text = ast.unparse(node)
                if (
                    re.search(r"in (str\((error|reason|why)\)|(note|sentence|error)\b(?!\.))", text)
                    and "'" in text
                    and text not in OF_OTHERS_ERRORS
                ):
                    faults.append(f"{where(path)}:{node.lineno}: {text}")
    assert not faults, "\n".join(faults)


# Modules of ours that a call of the command loads, and libraries that it does without.
LOADED = [
    (["energy", "--help"], 80, {"gemmi", "h5py", "orjson", "platformdirs", "pyopencl"}),
    (
        ["energy", str(PACKAGE.parent / "data" / "structures" / "hexapeptide.pdb")],
        160,
        {"h5py", "numpy.ma", "orjson", "vesin"},
    ),
]


@pytest.mark.parametrize(("words", "most", "without"), LOADED)
def test_a_call_loads_what_it_needs(words, most, without):
    """Whoever raises a number says why; `python -X importtime -m pele_ocl` tells who loads a module."""
    code = """
import json, sys
from pele_ocl.cli import main
try:
    main(json.loads(sys.argv[1]), prog_name="pele-ocl")
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code, json.dumps(words)], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stderr.splitlines()[-1])
    own = [name for name in loaded if name.startswith("pele_ocl")]
    assert "pele_ocl.cli.energy" in own
    assert len(own) <= most, "\n".join(own)
    assert not without & set(loaded)


PEPTIDE = PACKAGE.parent / "data" / "structures" / "trialanine.pdb"
KERNEL = Path(__file__).parent / "data" / "kernels" / "right" / "sum.cl"
COARSE, FEW, QUICK = {"spacing": 2.0, "padding": 3.0}, {"max_iterations": 2}, ["--max-iterations", 2]
WIDE = ["--spacing", 2, "--padding", 3]
RUN = {"steps": 2, "report_every": 1, "minimize": 0}
STEPS = ["--steps", 2, "--report-every", 1, "--minimize", 0]
MMPBSA = {"complex_topology": "complex.parm7", "trajectory": "frames.nc", "output": "a.dat"}
# Calls of all public functions and of their commands, in a folder that has the files of `folder`.
CALLS: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    **{
        f"{name}-{kind}": (partial(getattr(pele_ocl, name), given, **words), [name, *files, *more])
        for name in ("energy", "solvent", "nonbond")
        for kind, given, words, files, more in (
            ("one", PEPTIDE, {}, [PEPTIDE], []),
            ("models", "models.pdb", {"models": "all"}, ["models.pdb"], ["--models", "all"]),
            ("frames", PEPTIDE, {"trajectory": "models.pdb"}, [PEPTIDE], ["-t", "models.pdb"]),
            ("several", [PEPTIDE, "b.pdb"], {}, [PEPTIDE, "b.pdb"], []),
        )
    },
    "potmap": (partial(pele_ocl.potmap, PEPTIDE, **COARSE), ["potmap", PEPTIDE, *WIDE]),
    "potmap-models": (
        partial(pele_ocl.potmap, "models.pdb", models="all", **COARSE),
        ["potmap", "models.pdb", "--models", "all", *WIDE],
    ),
    "potmap-at": (
        partial(pele_ocl.potmap, PEPTIDE, trajectory="models.pdb", at_atoms="name CA"),
        ["potmap", PEPTIDE, "-t", "models.pdb", "--at-atoms", "name CA"],
    ),
    "potmap-several": (
        partial(pele_ocl.potmap, [PEPTIDE, "b.pdb"], output="{name}.dx", **COARSE),
        ["potmap", PEPTIDE, "b.pdb", "-o", "{name}.mrc", *WIDE],
    ),
    "pb": (partial(pele_ocl.pb, PEPTIDE, spacing=2.0), ["pb", PEPTIDE, "--spacing", 2]),
    "pb-apbs": (partial(pele_ocl.pb, "apbs.in"), ["pb", "apbs.in"]),
    "minimize": (
        partial(pele_ocl.minimize, PEPTIDE, output="a.pdb", **FEW), ["minimize", PEPTIDE, "-o", "c.pdb", *QUICK],
    ),
    "minimize-several": (
        partial(pele_ocl.minimize, [PEPTIDE, "b.pdb"], output="a/", **FEW),
        ["minimize", PEPTIDE, "b.pdb", "-o", "c/", *QUICK],
    ),
    "minimize-frames": (
        partial(pele_ocl.minimize, PEPTIDE, trajectory="models.pdb", output="a.pdb", **FEW),
        ["minimize", PEPTIDE, "-t", "models.pdb", "-o", "c.pdb", *QUICK],
    ),
    "relax": (partial(pele_ocl.relax, PEPTIDE, output="a.pdb", **FEW), ["relax", PEPTIDE, "-o", "c.pdb", *QUICK]),
    "relax-several": (
        partial(pele_ocl.relax, [PEPTIDE, "b.pdb"], output="a/", **FEW),
        ["relax", PEPTIDE, "b.pdb", "-o", "c/", *QUICK],
    ),
    "binding": (partial(pele_ocl.binding, PEPTIDE, "resid 1"), ["binding", PEPTIDE, "--ligand", "resid 1"]),
    "binding-frames": (
        partial(pele_ocl.binding, PEPTIDE, "resid 1", trajectory="models.pdb"),
        ["binding", PEPTIDE, "--ligand", "resid 1", "-t", "models.pdb"],
    ),
    "binding-ligands": (
        partial(pele_ocl.binding, PEPTIDE, ["resid 1", "resid 3"]),
        ["binding", PEPTIDE, "--ligand", "resid 1", "--ligand", "resid 3"],
    ),
    "binding-several": (
        partial(pele_ocl.binding, [PEPTIDE, "b.pdb"], "resid 1"), ["binding", PEPTIDE, "b.pdb", "--ligand", "resid 1"],
    ),
    "refine": (
        partial(pele_ocl.refine, PEPTIDE, ligand="resid 1", output="a", **FEW),
        ["refine", PEPTIDE, "--ligand", "resid 1", "-o", "c", *QUICK],
    ),
    "simulate": (partial(pele_ocl.simulate, PEPTIDE, "a", **RUN), ["simulate", PEPTIDE, "-o", "a", *STEPS]),
    "simulate-several": (
        partial(pele_ocl.simulate, [PEPTIDE, "b.pdb"], "a", **RUN), ["simulate", PEPTIDE, "b.pdb", "-o", "a", *STEPS],
    ),
    "explore": (partial(pele_ocl.explore, "pele.conf", steps=1), ["explore", "pele.conf", "--steps", 1]),
    "rescore": (partial(pele_ocl.rescore, "run"), ["rescore", "run"]),
    "screen": (
        partial(pele_ocl.screen, PEPTIDE.with_name("hexapeptide.pdb"), PEPTIDE, output="a", **FEW),
        ["screen", PEPTIDE.with_name("hexapeptide.pdb"), PEPTIDE, "-o", "c", *QUICK],
    ),
    "ligand": (partial(pele_ocl.parametrize, "CCO", output="a"), ["ligand", "CCO", "-o", "c"]),
    "mmpbsa": (
        partial(pele_ocl.mmpbsa, "mmpbsa.in", **MMPBSA),
        ["mmpbsa", "-i", "mmpbsa.in", "-cp", "complex.parm7", "-y", "frames.nc", "-o", "c.dat"],
    ),
    "view": (partial(pele_ocl.view, PEPTIDE, method="screened"),
             ["view", PEPTIDE, "--method", "screened", "-o", "page.html"]),
    "ions": (partial(pele_ocl.ions, PEPTIDE, add={"NA": 1}, **COARSE),
             ["ions", PEPTIDE, "--add", "NA:1", "-o", "ions.pdb", *WIDE]),
    "prepare": (partial(pele_ocl.prepare, PEPTIDE), ["prepare", PEPTIDE, "-o", "prepared.pdb"]),
    "convert": (partial(pele_ocl.convert, "map.dx", "a.cube"), ["convert", "map.dx", "c.cube"]),
    "mapmath": (partial(pele_ocl.mapmath, "map.dx", "-", "map.dx"), ["mapmath", "map.dx", "-", "map.dx"]),
    "sample": (partial(pele_ocl.sample_map, "map.dx", PEPTIDE), ["sample", "map.dx", PEPTIDE]),
    "check": (
        lambda: pele_ocl.check_kernel(KERNEL.read_text(), "sum", timing=False),
        ["check", KERNEL, "--as", "sum", "--no-timing"],
    ),
}  # fmt: skip
SUFFIX = {"minimize": ".pdb", "relax": ".pdb", "ions": ".pdb", "prepare": ".pdb", "convert": ".dx", "mapmath": ".dx",
          "potmap": ".dx", "pb": ".dx", "view": ".html", "simulate": "", "explore": "", "refine": "",
          "potmap-at": ".csv", "potmap-several": ".csv", "pb-apbs": ".csv", "minimize-several": "",
          "relax-several": "", "screen": "", "ligand": ""}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of the calls: two models, a copy, a control file, an input file of APBS, files of MMPBSA.py, a map."""
    made = tmp_path_factory.mktemp("calls")
    lines = [line for line in PEPTIDE.read_text().splitlines() if line.startswith("ATOM")]
    models = [f"MODEL        {k}\n" + "\n".join(lines) + "\nENDMDL\n" for k in (1, 2)]
    (made / "models.pdb").write_text("".join([*models, "END\n"]))
    (made / "b.pdb").write_text(PEPTIDE.read_text())
    write_run(made)
    write_files(made)
    (made / "mmpbsa.in").write_text("&general\n/\n&gb\n/\n")
    (made / "ion.pqr").write_text("ATOM  1  I  ION  1  0.0 0.0 0.0  1.00 3.00\n")
    (made / "apbs.in").write_text(
        "read mol pqr ion.pqr end\nelec mg-manual dime 17 17 17 glen 12 12 12 gcent mol 1 mol 1 lpbe bcfl sdh pdie 2.0 "
        "sdie 78.54 chgm spl2 srfm smol srad 1.4 swin 0.3 sdens 10.0 temp 298.15 calcenergy total end\nquit\n"
    )
    pele_ocl.potmap(pele_ocl.read(PEPTIDE), output=made / "map.dx", **COARSE)
    (made / "run").mkdir()
    pele_ocl.explore(made / "pele.conf", output=made / "run", steps=1, complexes=made / "complex.pdb")
    (made / "run" / "pele.conf").write_text((made / "pele.conf").read_text())
    return made


def untimed(found: Any) -> Any:
    """The same object without times, paths of files that differ, and numbers that depend on times."""
    if isinstance(found, dict):
        noisy = ("second", "output", "files", "per_s", "ns_per_day", "rounding_gradient")
        return {name: untimed(of) for name, of in found.items() if not any(word in name for word in noisy)}
    return [untimed(of) for of in found] if isinstance(found, list) else found


@pytest.mark.parametrize("name", CALLS)
def test_results_have_one_form(folder, tmp_path, monkeypatch, name):
    """Each prints on a screen, has a table, HTML for notebooks and `save`; its JSON is what its command prints."""
    if name == "prepare":
        pytest.importorskip("pdbfixer")
    call, words = CALLS[name]
    monkeypatch.setenv("PELE_OCL_DEVICE", str(DEVICES[0].index))
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    result = call()
    assert repr(result).count("\n") < 40
    assert str(result.table())
    assert "<" in result._repr_html_()
    result.save(tmp_path / f"saved{SUFFIX.get(name, SUFFIX.get(words[0], '.csv'))}")
    assert next(tmp_path.glob("saved*"))
    for left in [*tmp_path.glob("a"), *tmp_path.glob("out")]:
        shutil.rmtree(left)
    told = run(*words, "--json").stdout.splitlines()
    lines = result.to_json()
    found = json.loads(json.dumps(lines, allow_nan=False))
    assert untimed(found if isinstance(lines, list) else [found]) == untimed([json.loads(line) for line in told])
    errors, total = getattr(result, "errors", {}), getattr(result, "total", None)
    assert not isinstance(errors, Mapping) or not errors
    if total is not None:
        assert isinstance(total, float) or (total.ndim == 1 and total.dtype == np.float64)


def test_every_public_function_of_a_command_is_called():
    """A new command has a call above; those that write nothing but text have none."""
    called = {words[0] for _, words in CALLS.values()}
    assert called == commands().keys() - OF_THE_PROGRAM - {"devices"}
