"""The structure, held to what DESIGN says: imports run one way, files stay short, every kernel belongs to something."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import pele_ocl
from pele_ocl.energy import VARIANTS as ENERGY
from pele_ocl.nonbond import VARIANTS as NONBOND
from pele_ocl.opencl.shared import HEADERS as HEADERS_MADE
from pele_ocl.potmap import VARIANTS as POTMAP
from pele_ocl.solvent import VARIANTS as SOLVENT

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pele_ocl"
MODULES = sorted(PACKAGE.rglob("*.py"))
CL = ROOT / "cl"
KERNELS = sorted(CL.rglob("*.cl"))
HEADERS = sorted(CL.rglob("*.clh"))

# Who may import whom; a layer may import from the layers behind it and from itself.
LAYERS = {
    "errors": (),
    "arguments": ("errors",),
    "units": ("arguments", "errors"),
    "paths": (),
    "chemistry": ("atoms",),
    "inputfile": ("arguments", "errors"),
    "textfiles": ("errors", "inputfile"),
    "variant": (),
    "accuracy": (),
    "labels": ("arguments", "errors", "frozen"),
    "close_pairs": (),
    "atoms": ("arguments", "close_pairs", "errors", "frozen", "labels"),
    "frozen": (),
    "results": ("atoms", "errors", "frozen"),
    "pairs": ("arguments", "atoms", "errors", "forcefield", "formats", "frozen", "inputfile", "paths", "textfiles"),
    "grid": ("arguments", "atoms", "errors", "frozen", "units"),
    "sampling": ("arguments", "atoms", "errors", "grid"),
    "pictures": ("arguments", "atoms", "errors", "formats", "grid"),
    "tiles": ("atoms",),
    "gb_models": ("atoms",),
    "solvent_model": ("arguments", "errors", "gb_models", "units"),
    "formats": ("arguments", "atoms", "chemistry", "errors", "grid", "inputfile", "textfiles", "units"),
    "forcefield": ("arguments", "atoms", "chemistry", "errors", "inputfile", "units", "paths", "textfiles"),
    "reading": ("arguments", "atoms", "errors", "formats", "forcefield"),
    "charges": ("atoms",),
    "potential_model": ("arguments", "errors"),
    "reference": ("atoms", "errors", "grid", "pairs", "potential_model", "solvent_model", "units"),
    "opencl": ("errors", "paths", "variant"),
    "tuning": ("__init__", "errors", "formats", "opencl", "paths", "tiles", "variant"),
    "plan": ("atoms", "errors", "opencl", "solvent_model", "tiles", "tuning", "variant"),
    "tiled": ("atoms", "opencl", "plan", "solvent_model", "tiles", "variant"),
    "solvent": (
        "atoms", "errors", "opencl", "plan", "results", "tiled", "reference", "solvent_model", "tiles", "tuning",
        "units", "variant",
    ),
    "nonbond": (
        "atoms", "charges", "errors", "opencl", "pairs", "solvent", "solvent_model", "tiles", "tuning", "units",
        "variant",
    ),
    "energy": (
        "arguments", "atoms", "charges", "errors", "opencl", "pairs", "plan", "results", "solvent", "tiled",
        "solvent_model", "tiles", "tuning", "units", "variant",
    ),
    "ions": (
        "arguments", "atoms", "errors", "grid", "opencl", "potential_model", "potmap", "tiles", "units",
        "variant",
    ),
    "potmap": (
        "arguments", "atoms", "charges", "errors", "grid", "opencl", "potential_model", "tuning", "units",
        "variant",
    ),
    "bench": (
        "accuracy", "atoms", "energy", "errors", "formats", "grid", "ions", "nonbond", "opencl", "pairs", "paths",
        "potmap", "reading", "reference", "solvent", "solvent_model", "tuning", "units", "variant",
    ),
    "cli": (
        "__init__", "atoms", "bench", "chemistry", "energy", "errors", "forcefield", "formats", "grid", "inputfile",
        "ions", "opencl", "paths", "pictures", "potmap", "reading", "sampling", "solvent", "nonbond", "pairs",
        "potential_model", "solvent_model", "tuning", "units", "variant",
    ),
    "__init__": (
        "energy", "nonbond", "pairs", "atoms", "errors", "forcefield", "formats", "grid", "ions", "opencl", "pictures",
        "potmap", "reading", "sampling", "solvent", "solvent_model",
    ),
    "__main__": ("cli",),
}  # fmt: skip


def layer(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_layers(path: Path) -> set[str]:
    """The first-level names of pele_ocl that a module imports, relative imports resolved."""
    found = set()
    depth = len(path.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(path.read_text())):
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


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_run_one_way(path):
    own = layer(path)
    strangers = imported_layers(path) - {own} - set(LAYERS[own])
    assert not strangers, f"{own} imports {strangers}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_pyopencl_is_imported_in_one_place(path):
    if layer(path) != "opencl":
        assert not re.search(r"^\s*(import|from) pyopencl", path.read_text(), re.MULTILINE)


@pytest.mark.parametrize("path", MODULES + KERNELS + HEADERS, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_are_short(path):
    assert len(path.read_text().splitlines()) <= (300 if path.suffix in (".cl", ".clh") else 400)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_public_names_have_docstrings(path):
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{path.name}: {node.name}"


def test_every_kernel_file_is_used():
    used = {variant.file for variant in (*SOLVENT.values(), *NONBOND.values(), *ENERGY.values(), *POTMAP.values())}
    hosts = "".join(path.read_text() for path in MODULES)
    for path in KERNELS:
        name = str(path.relative_to(CL))
        assert name in used or f'"{name}"' in hosts, name


@pytest.mark.parametrize("path", KERNELS + HEADERS, ids=lambda p: str(p.relative_to(CL)))
def test_includes_are_named_from_the_folder_of_all_kernels(path):
    for name in re.findall(r'#include "([^"]+)"', path.read_text()):
        assert (CL / name).is_file() or name.removeprefix("shared/") in HEADERS_MADE, name


def test_folders_of_kernels_are_small():
    for folder in (CL, *(path for path in CL.rglob("*") if path.is_dir())):
        assert sum(path.is_file() for path in folder.iterdir()) <= 20, folder


@pytest.mark.parametrize(
    "variant",
    [*SOLVENT.values(), *NONBOND.values(), *ENERGY.values(), *POTMAP.values()],
    ids=[*SOLVENT, *NONBOND, *ENERGY, *POTMAP],
)
def test_variants_name_a_kernel_of_their_file(variant):
    source = (ROOT / "cl" / variant.file).read_text()
    assert re.search(rf"\b{variant.kernel}\(", source)


@pytest.mark.parametrize("path", KERNELS + HEADERS, ids=lambda p: str(p.relative_to(CL)))
def test_missing_macros_are_sentences(path):
    source = path.read_text()
    for macro in re.findall(r"#ifndef (\w+)", source):
        assert re.search(rf'#error "{macro}: \w', source), f"{path.name}: {macro} has no sentence"


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: str(p.relative_to(CL)))
def test_kernel_files_open_with_what_a_work_item_does(path):
    assert path.read_text().startswith("// ")
    assert '#include "common/real.clh"' in path.read_text()


def test_the_names_a_user_sees_are_the_public_ones():
    names = dir(pele_ocl)
    assert {"list_devices", "read", "units"} <= set(names)
    assert not {"Any", "version", "PackageNotFoundError"} & set(names)
    assert all(hasattr(pele_ocl, name) for name in names)
