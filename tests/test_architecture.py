"""Structure: imports run downwards, every kernel belongs to something."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

import pele_ocl
from pele_ocl.energy import VARIANTS as ENERGY
from pele_ocl.ladder import NONBOND, POTMAP, SOLVENT
from pele_ocl.opencl import building
from pele_ocl.opencl.interface import HEADERS as HEADERS_MADE

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pele_ocl"
MODULES = sorted(PACKAGE.rglob("*.py"))
CL = ROOT / "cl"
KERNELS = sorted(CL.rglob("*.cl"))
HEADERS = sorted(CL.rglob("*.clh"))

# The rooms of the package, floor by floor from the ground up. A room imports from lower floors alone.
FLOORS = [
    "common",
    "atoms opencl potential_model units",
    "contract forcefield gb_models grid plan",
    "formats pb_model sampling tiles",
    "report",
    "ligand painting pairs results",
    "reading",
    "jobs",
    "trajectories",
    "doors",
    "interop mapmath parametrize pb solvent",
    "energy nonbond reference",
    "potmap",
    "ladder",
    "ase checking ions kernels view",
    "minimize objects",
    "bench binding ensemble relax",
    "dynamics explore jax torch",
    "rescore screen",
    "__init__",
    "cli",
    "__main__",
]
FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS) for room in rooms.split()}
IMPORTS_BY_STRING = 5  # of modules that are loaded when they are first used; each hides an arrow from the tests below


def assert_none(faults: Iterable[str]) -> None:
    """No fault, or all of them, a line each."""
    lines = list(faults)
    assert not lines, "\n".join(lines)


def where(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def layer(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_layers(path: Path) -> set[str]:
    """Find the first-level names of pele_ocl that a module imports, relative imports resolved."""
    found = set()
    depth = len(path.relative_to(PACKAGE).parts)
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level == depth:  # from . or .. of the package itself
            names = [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
            found |= {
                name if (PACKAGE / name).exists() or (PACKAGE / f"{name}.py").exists() else "__init__" for name in names
            }
        elif node.level == 0 and (node.module or "").startswith("pele_ocl"):
            raise AssertionError(f"{path}: import from the package by its name; use a relative import")
    return found


def test_imports_run_downwards():
    """Rooms import lower ones; public names (`__init__`) are taken from them, and no room asks for these."""
    unknown = {layer(path) for path in MODULES} - FLOOR_OF.keys()
    assert not unknown, f"{unknown} are on no floor: put them in FLOORS"
    faults = []
    for path in MODULES:
        own = layer(path)
        above = {room for room in imported_layers(path) - {own} if FLOOR_OF[room] >= FLOOR_OF[own]}
        faults += [f"{where(path)} imports {', '.join(sorted(above))}"] if above else []
    assert_none(faults)


def test_imports_by_string_are_counted():
    """Whoever needs one more thinks of a better way, or raises the number and says why."""
    calls = [f"{where(path)}:{number}" for path in MODULES for number in strings_imported(path)]
    assert len(calls) <= IMPORTS_BY_STRING, "\n".join(calls)


# Methods of objects of lower rooms that hand over to what stands above them: saving, the record of a result, rungs.
ASKED = {
    "pele_ocl/atoms/atoms.py": {"public('formats')", "public('write_conformations')"},
    "pele_ocl/grid.py": {"public('write_map')"},
    "pele_ocl/results.py": {"public(f'{self._room}.spec')"},
    "pele_ocl/plan/selection.py": {"public('ladder')"},
}


def test_lower_rooms_ask_for_what_is_above_in_a_few_methods():
    """Such a call hides an arrow upwards; functions are passed in, or moved down, instead."""
    found: dict[str, set[str]] = {}
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "public":
                found.setdefault(where(path), set()).add(ast.unparse(node))
    assert found == ASKED


def strings_imported(path: Path) -> list[int]:
    """List the lines of a module that import a module of the package by a string."""
    calls = (node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call) and node.args)
    named = (call for call in calls if ast.unparse(call.func).rpartition(".")[2] == "import_module")
    return [call.lineno for call in named if ast.unparse(call.args[0]).lstrip("f").startswith(("'.", '".'))]


def test_names_that_rooms_load_lazily_are_there_and_wanted():
    """A name that is loaded when it is asked for would be missed then alone; one that no test takes is left over."""
    words = set(re.findall(r"\w+", "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))))
    for path in PACKAGE.rglob("__init__.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "lazy_names":
                room = import_module(".".join(("pele_ocl", *path.parent.relative_to(PACKAGE).parts)))
                names = " ".join(ast.literal_eval(node.args[1]).values()).split()
                missing = [name for name in names if not hasattr(room, name)]
                public = getattr(room, "__all__", ()) or getattr(room, "_public_names", ())
                left_over = [name for name in names if name not in {*words, *public}]
                assert not missing + left_over, where(path)


def test_no_modules_import_each_other():
    """Imports at the top of modules, within functions and for annotations: none leads back to where it began."""
    TopologicalSorter({path: imported_modules(path) - {path} for path in MODULES}).prepare()


def imported_modules(path: Path) -> set[Path]:
    """Find the modules of pele_ocl that have what a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            found |= {module_of(folder / alias.name) or module_of(folder) for alias in node.names} - {None}
    return found


def module_of(path: Path) -> Path | None:
    """Find the file of a module, or of a room by its folder."""
    file, room = path.with_suffix(".py"), path / "__init__.py"
    return file if file.exists() else room if room.exists() else None


def test_production_does_without_the_reference():
    """Tests' oracle stays independent of what it checks; the bench and the check of others' kernels compare with it."""
    users = {layer(path) for path in MODULES if "reference" in imported_layers(path)}
    assert users <= {"reference", "bench", "checking"}


def test_names_of_variants_are_not_compared():
    """A variant says of itself what it can do; tables of them and the word auto are all that names one."""
    assert_none(found for path in MODULES for found in compared_names(path))


def test_tuning_names_no_variant():
    """Variants bring the choices that `tune` tries."""
    paths = sorted((PACKAGE / "plan" / "tuning").glob("*.py"))
    assert paths
    for path in paths:
        texts = {node.value for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant)}
        assert not texts & {*SOLVENT, *NONBOND, *ENERGY, *POTMAP}, path


def compared_names(path: Path) -> list[str]:
    """List the comparisons of a module with the name of a variant."""
    names = {*SOLVENT, *NONBOND, *ENERGY, *POTMAP}
    found = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            about = any(re.search(r"variant|\bname\b", ast.unparse(side)) for side in sides)
            texts = {each.value for side in sides for each in ast.walk(side) if isinstance(each, ast.Constant)}
            if about and names & texts:
                found.append(f"{path.relative_to(PACKAGE)}:{node.lineno}: {ast.unparse(node)}")
    return found


def test_docstrings_name_a_thing():
    """No docstring and no comment of a kernel begins with "What ...", which names nothing."""
    faults = []
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node) or ""
                faults += [f"{path.relative_to(PACKAGE)}: {text.splitlines()[0]}"] if text.startswith("What ") else []
    for path in KERNELS + HEADERS:
        lines = re.findall(r"^ *// *What .*$", path.read_text(), re.MULTILINE)
        faults += [f"{path.relative_to(CL)}: {line.strip()}" for line in lines]
    assert_none(faults)


def test_pyopencl_is_imported_in_one_place():
    outside = [path for path in MODULES if layer(path) != "opencl"]
    assert_none(where(p) for p in outside if re.search(r"^\s*(import|from) pyopencl", p.read_text(), re.MULTILINE))


def test_public_names_have_docstrings():
    public = (
        (path, node)
        for path in MODULES
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
        and "overload" not in map(ast.unparse, node.decorator_list)
    )  # fmt: skip
    assert_none(f"{where(path)}: {node.name}" for path, node in public if not ast.get_docstring(node))


def test_every_kernel_file_is_used():
    used = {variant.file for variant in (*SOLVENT.values(), *NONBOND.values(), *ENERGY.values(), *POTMAP.values())}
    hosts = "".join(path.read_text() for path in MODULES)
    for path in KERNELS:
        name = str(path.relative_to(CL))
        assert name in used or f'"{name}"' in hosts, name


def test_includes_are_named_from_the_folder_of_all_kernels():
    named = ((p, name) for p in KERNELS + HEADERS for name in re.findall(r'#include "([^"]+)"', p.read_text()))
    unknown = ((p, n) for p, n in named if not (CL / n).is_file() and n.removeprefix("shared/") not in HEADERS_MADE)
    assert_none(f"{where(path)}: {name}" for path, name in unknown)


def test_places_in_arrays_of_parts_are_counted_with_64_bits():
    """A part of millions of atoms times a number of parts passes 2^31."""
    parts = re.compile(r"(?<!\(size_t\))\b(part|chunk|conformation|layer) \* n_\w+")
    assert_none(where(path) for path in KERNELS + HEADERS if parts.search(path.read_text()))


@pytest.mark.parametrize(
    "variant",
    [*SOLVENT.values(), *NONBOND.values(), *ENERGY.values(), *POTMAP.values()],
    ids=[*SOLVENT, *NONBOND, *ENERGY, *POTMAP],
)
def test_variants_name_a_kernel_of_their_file(variant):
    source = (ROOT / "cl" / variant.file).read_text()
    assert re.search(rf"\b{variant.kernel}\(", source)


def test_missing_macros_are_sentences():
    sources = {path: path.read_text() for path in KERNELS + HEADERS}
    needed = ((path, macro) for path, text in sources.items() for macro in re.findall(r"#ifndef (\w+)", text))
    mute = ((path, macro) for path, macro in needed if not re.search(rf'#error "{macro}: \w', sources[path]))
    assert_none(f"{where(path)}: {macro} has no sentence" for path, macro in mute)


def test_kernel_files_open_with_what_a_work_item_does():
    sources = {path: path.read_text() for path in KERNELS}
    assert_none(where(path) for path, text in sources.items() if not text.startswith("// "))
    first = re.compile(r'#include "common/(real|scalar)\.clh"')
    assert_none(where(path) for path, text in sources.items() if not first.search(text))


def test_the_engine_has_no_kernel_in_a_folder_of_the_ladder():
    texts = {path: path.read_text() for path in [*KERNELS, *HEADERS, *MODULES]}
    own = [path for path in texts if "ladder" not in path.parts]
    assert_none(f"{where(path)}: {name}" for path in own for name in re.findall(r"\w+/ladder/\w+\.clh?", texts[path]))


# Lines of a rung with all that it includes, blank ones aside: a student reads them all.
MOST_LINES = {"gather": 120, "sequential": 120, "constant": 120, "coarsened": 140, "coalesced": 140, "shared": 140}


@pytest.mark.parametrize("rung", MOST_LINES)
def test_rungs_include_no_more_than_a_reader_needs(rung):
    text = building.expanded_source(f"potmap/ladder/{rung}.cl", building.source_of)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#line")]
    assert f"potmap_{rung}(" in text
    assert len(lines) <= MOST_LINES[rung]
    assert sum(bool(re.match(r"\s*#(el)?if", line)) for line in lines) <= 10


def test_the_names_a_user_sees_are_the_public_ones():
    names = dir(pele_ocl)
    assert {"list_devices", "read", "units"} <= set(names)
    assert not {"Any", "version", "PackageNotFoundError"} & set(names)
    assert all(hasattr(pele_ocl, name) for name in names)
