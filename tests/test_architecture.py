"""The structure, held to what DESIGN says: imports run one way, files stay short, every kernel belongs to something."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterable
from functools import cache
from graphlib import TopologicalSorter
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
    "extras": ("errors",),
    "arguments": ("errors",),
    "units": ("arguments", "errors"),
    "paths": (),
    "chemistry": (),
    "inputfile": ("arguments", "errors"),
    "textfiles": ("errors", "inputfile"),
    "variant": (),
    "callable_module": (),
    "atoms": ("arguments", "chemistry", "errors", "frozen"),
    "frozen": (),
    "contract": ("atoms", "errors"),
    "results": ("atoms", "errors", "frozen"),
    "pairs": ("arguments", "atoms", "errors", "forcefield", "formats", "frozen", "inputfile", "paths", "textfiles"),
    "grid": ("arguments", "atoms", "errors", "frozen", "units"),
    "sampling": ("arguments", "atoms", "errors", "grid"),
    "mapmath": ("arguments", "atoms", "errors", "grid", "sampling", "units"),
    "tiles": ("atoms",),
    "gb_models": ("atoms", "chemistry", "errors", "paths"),
    "solvent_model": ("arguments", "atoms", "errors", "gb_models", "units"),
    "formats": ("arguments", "atoms", "chemistry", "contract", "errors", "grid", "inputfile", "textfiles", "units", "variant"),
    "forcefield": ("arguments", "atoms", "chemistry", "errors", "inputfile", "units", "paths", "textfiles"),
    "interop": (
        "arguments", "atoms", "chemistry", "errors", "extras", "forcefield", "formats", "inputfile",
        "textfiles", "units",
    ),
    "view": (
        "arguments", "atoms", "errors", "extras", "formats", "frozen", "grid", "inputfile", "potential_model",
        "sampling", "textfiles",
    ),
    "reading": ("arguments", "atoms", "errors", "formats", "forcefield"),
    "potential_model": ("arguments", "errors"),
    "reference": ("atoms", "errors", "gb_models", "grid", "pairs", "potential_model", "solvent_model", "units"),
    "opencl": ("errors", "paths", "variant"),
    "tuning": ("__init__", "errors", "formats", "opencl", "paths", "variant"),
    "plan": ("arguments", "atoms", "errors", "opencl", "solvent_model", "tiles", "tuning", "variant"),
    "tiled": ("atoms", "errors", "gb_models", "opencl", "plan", "solvent_model", "tiles", "variant"),
    "solvent": (
        "arguments", "atoms", "callable_module", "errors", "opencl", "plan", "results", "solvent_model", "tiled",
        "tiles", "variant",
    ),
    "nonbond": (
        "arguments", "atoms", "callable_module", "errors", "opencl", "pairs", "plan", "results", "solvent",
        "solvent_model", "tiles", "tuning", "units", "variant",
    ),
    "energy": (
        "arguments", "atoms", "callable_module", "errors", "frozen", "opencl", "pairs", "plan", "results", "solvent",
        "tiled", "solvent_model", "tiles", "tuning", "units", "variant",
    ),
    "minimize": (
        "arguments", "atoms", "callable_module", "energy", "errors", "opencl", "plan", "results", "solvent_model",
        "variant",
    ),
    "ase": ("atoms", "energy", "errors", "extras", "opencl", "solvent_model"),
    "ions": (
        "arguments", "atoms", "errors", "grid", "opencl", "potential_model", "potmap", "tiles", "units",
        "variant",
    ),
    "potmap": (
        "arguments", "atoms", "callable_module", "errors", "grid", "opencl", "potential_model", "tuning", "units",
        "variant", "view",
    ),
    "relax": (
        "arguments", "atoms", "callable_module", "chemistry", "energy", "errors", "forcefield", "formats", "inputfile",
        "interop", "minimize", "opencl", "pairs", "paths", "solvent_model",
    ),
    "trajectories": (
        "arguments", "atoms", "contract", "energy", "errors", "extras", "formats", "grid", "inputfile", "nonbond", "pairs", "plan",
        "potmap", "results", "solvent", "solvent_model", "textfiles", "variant",
    ),
    "cluster": ("errors", "extras", "opencl"),
    "bench": (
        "atoms", "energy", "errors", "formats", "grid", "ions", "minimize", "nonbond", "opencl", "pairs", "paths",
        "potmap", "reading", "reference", "solvent", "solvent_model", "textfiles", "tuning", "units", "variant",
    ),
    "cli": (
        "__init__", "atoms", "bench", "binding", "chemistry", "cluster", "contract", "energy", "errors", "forcefield", "formats",
        "gb_models", "grid", "inputfile", "interop", "ions", "mapmath", "opencl", "paths", "potmap", "reading",
        "sampling", "solvent", "nonbond", "minimize", "pairs", "potential_model", "relax", "solvent_model", "textfiles",
        "trajectories", "tuning", "units", "variant", "view",
    ),
    "binding": (
        "arguments", "atoms", "contract", "energy", "errors", "forcefield", "formats", "inputfile", "nonbond", "opencl", "pairs",
        "plan", "results", "solvent_model", "textfiles", "tiled", "trajectories", "units", "variant",
    ),
    "__init__": (
        "binding", "energy", "minimize", "nonbond", "pairs", "atoms", "errors", "forcefield", "formats", "grid",
        "interop", "ions", "mapmath", "opencl", "potmap", "reading", "relax", "sampling", "solvent", "solvent_model",
        "trajectories", "view",
    ),
    "__main__": ("cli",),
}  # fmt: skip


# How often each layer may say Any where a type should stand, and why it does. What PyOpenCL returns ends in `opencl`.
UNTYPED = {
    "opencl": 8,  # PyOpenCL's own annotations are wrong or missing
    "nonbond": 1,  # an index that its variant alone looks into
    "cli": 57,  # click passes options by name, and what becomes JSON is of any kind
    "callable_module": 5, "__init__": 3,  # forwarded to functions with types of their own
    "formats": 15, "forcefield": 3,  # h5py, gemmi, matplotlib and json have no types
    "binding": 1,  # matplotlib's axes
    "pairs": 9,  # columns of files, which are checked then
    "potmap": 2, "minimize": 1, "trajectories": 2,  # options, passed on
    "results": 2, "atoms": 1,
}  # fmt: skip

# Classes whose parameter is another's business: Variant[Any] is a variant of whatever quantity.
GENERIC = {"NDArray", "np.dtype", "Variant", "EnergyPasses", "ListPasses", "LadderPasses"}


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
    """The first-level names of pele_ocl that a module imports, relative imports resolved."""
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


def test_imports_run_one_way():
    strangers = {path: imported_layers(path) - {layer(path), *LAYERS[layer(path)]} for path in MODULES}
    assert_none(f"{where(path)} imports {names}" for path, names in strangers.items() if names)


def test_layers_run_one_way():
    """Layers that import each other would be one."""
    order = {name: set(behind) - {"__init__"} for name, behind in LAYERS.items() if name != "__init__"}
    TopologicalSorter(order).prepare()
    assert {layer(path) for path in MODULES} <= set(LAYERS)


def test_no_modules_import_each_other():
    """At the top of modules; what functions import when they are called is no circle."""
    TopologicalSorter({path: imported_modules(path) - {path} for path in MODULES}).prepare()


def imported_modules(path: Path) -> set[Path]:
    """The modules of pele_ocl that a module imports when it is imported itself."""
    found = set()
    for node in parsed(path).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            names = [folder, *(folder / alias.name for alias in node.names)] if node.module else []
            names = names or [folder / alias.name for alias in node.names]
            found |= {name.with_suffix(".py") for name in names if name.with_suffix(".py").exists()}
            found |= {name / "__init__.py" for name in names if (name / "__init__.py").exists()}
    return found


def test_production_does_without_the_reference():
    """The oracle of the tests stays independent of what it checks; the bench compares with it."""
    users = {layer(path) for path in MODULES if "reference" in imported_layers(path)}
    assert users <= {"reference", "bench"}


def test_modules_and_folders_are_small():
    assert statistics.median(len(path.read_text().splitlines()) for path in MODULES) <= 120
    for folder in {path.parent for path in MODULES}:
        assert len(list(folder.glob("*.py"))) <= 30, folder


def test_names_of_variants_are_not_compared():
    """A variant says of itself what it can do; tables of them and the word auto are all that names one."""
    assert_none(found for path in MODULES for found in compared_names(path))


def test_tuning_names_no_variant():
    """Variants bring the choices that `tune` tries."""
    for path in (PACKAGE / "tuning").glob("*.py"):
        texts = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
        assert not texts & {*SOLVENT, *NONBOND, *ENERGY, *POTMAP}, path


def compared_names(path: Path) -> list[str]:
    """The comparisons of a module with the name of a variant."""
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


def test_types_are_known():
    """Any stands at the border to libraries without types, and nowhere in what computes."""
    found = {name: [place for path in MODULES if layer(path) == name for place in untyped(path)] for name in LAYERS}
    assert_none(place for name, places in found.items() if len(places) > UNTYPED.get(name, 0) for place in places)


def untyped(path: Path) -> list[str]:
    """The places of a module that say Any, but for those that do so within a generic class."""
    tree = parsed(path)
    generic = (
        node.slice for node in ast.walk(tree) if isinstance(node, ast.Subscript) and ast.unparse(node.value) in GENERIC
    )
    within = {id(each) for part in generic for each in ast.walk(part)}
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "Any")
    return [f"{path.relative_to(PACKAGE)}:{name.lineno}" for name in names if id(name) not in within]


def test_files_are_short():
    lines = {path: len(path.read_text().splitlines()) for path in MODULES + KERNELS + HEADERS}
    assert_none(f"{where(p)}: {n} lines" for p, n in lines.items() if n > (300 if p in KERNELS + HEADERS else 400))


def test_public_names_have_docstrings():
    public = (
        (path, node)
        for path in MODULES
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    )
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


def test_missing_macros_are_sentences():
    sources = {path: path.read_text() for path in KERNELS + HEADERS}
    needed = ((path, macro) for path, text in sources.items() for macro in re.findall(r"#ifndef (\w+)", text))
    mute = ((path, macro) for path, macro in needed if not re.search(rf'#error "{macro}: \w', sources[path]))
    assert_none(f"{where(path)}: {macro} has no sentence" for path, macro in mute)


def test_kernel_files_open_with_what_a_work_item_does():
    sources = {path: path.read_text() for path in KERNELS}
    assert_none(where(path) for path, text in sources.items() if not text.startswith("// "))
    assert_none(where(path) for path, text in sources.items() if '#include "common/real.clh"' not in text)


def test_the_names_a_user_sees_are_the_public_ones():
    names = dir(pele_ocl)
    assert {"list_devices", "read", "units"} <= set(names)
    assert not {"Any", "version", "PackageNotFoundError"} & set(names)
    assert all(hasattr(pele_ocl, name) for name in names)
