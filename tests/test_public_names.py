"""Names that users see of the package: in completion, and in pages and help that describe them."""

from __future__ import annotations

import inspect
import pydoc
import re
from pathlib import Path
from types import FunctionType

import pytest

import pele_ocl
from pele_ocl.common.installation import shipped

ROOT = Path(__file__).parent.parent
ATOMS = pele_ocl.read(shipped("data") / "structures" / "hexapeptide.pdb")
CLASSES = [getattr(pele_ocl, name) for name in pele_ocl.__all__ if isinstance(getattr(pele_ocl, name), type)]
PLANS = {
    "Binding": lambda: pele_ocl.Binding(ATOMS, "resid 1"),
    "Energy": lambda: pele_ocl.Energy(ATOMS),
    "Ensemble": lambda: pele_ocl.Ensemble(ATOMS),
    "Explorer": lambda: pele_ocl.Explorer(ATOMS, [0, 1, 2], []),
    "Minimizer": lambda: pele_ocl.Minimizer(ATOMS),
    "Nonbond": lambda: pele_ocl.Nonbond(ATOMS, pele_ocl.all_pairs(ATOMS)),
    "Potmap": lambda: pele_ocl.Potmap(ATOMS, pele_ocl.Grid.around(ATOMS, padding=2, spacing=2.0)),
    "Solvent": lambda: pele_ocl.Solvent(ATOMS),
}


@pytest.mark.parametrize("of", [of for of in CLASSES if not issubclass(of, Exception)], ids=lambda of: of.__name__)
def test_completion_lists_documented_names_alone(of):
    """Each name has a text of its own or stands in its class's; what is internal begins with a line."""
    text = "\n".join(base.__doc__ or "" for base in of.__mro__[:-1])
    listed = dir(PLANS[of.__name__]()) if of.__name__ in PLANS else dir(of)
    for name in listed:
        member = inspect.getattr_static(of, name, None)
        has_text = isinstance(member, property | classmethod | staticmethod | FunctionType) and inspect.getdoc(
            getattr(of, name) if not isinstance(member, property) else member
        )
        assert name.startswith("_") or has_text or re.search(rf"\b{name}\b", text), f"{of.__name__}.{name}"


@pytest.mark.parametrize("of", CLASSES, ids=lambda of: of.__name__)
def test_every_public_class_has_its_place_in_the_api_pages(of):
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
    assert re.search(rf"auto(class|exception):: pele_ocl\.{of.__name__}$", pages, re.MULTILINE)


@pytest.mark.parametrize("name", ["energy", "minimize", "nonbond", "pb", "potmap", "relax", "solvent"])
def test_help_of_a_callable_package_opens_with_its_function(name):
    package = getattr(pele_ocl, name)
    shown = pydoc.plain(pydoc.render_doc(package))
    function = getattr(package, name)
    assert package.__doc__ == function.__doc__
    assert inspect.signature(package) == inspect.signature(function)
    lines = [line.strip() for line in inspect.getdoc(function).splitlines() if line.strip()]
    assert shown.index(lines[0]) < shown.index(lines[-1]) < shown.index("PACKAGE CONTENTS")


@pytest.mark.parametrize(
    ("of", "names"),
    [
        ("Binding", "evaluate evaluate_batch over"),
        ("Energy", "evaluate evaluate_batch repeat"),
        ("Minimizer", "minimize minimize_batch"),
        ("Nonbond", "evaluate evaluate_batch repeat"),
        ("Potmap", "evaluate"),
        ("Solvent", "evaluate evaluate_batch radii_seconds repeat"),
        ("EnergyBatch", "per_residue table"),
        ("EnergyResult", "per_residue save table text to_json"),
        ("MinimizeBatch", "count index save table to_json"),
    ],
)
def test_plans_and_results_have_no_other_methods_than_these(of, names):
    found = getattr(pele_ocl, of)
    assert {name for name in dir(found) if not name.startswith("_") and callable(getattr(found, name))} == {
        *names.split()
    }
