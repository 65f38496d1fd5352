"""Names that users see of the package: in completion, and in pages and help that describe them."""

from __future__ import annotations

import inspect
import pydoc
import re
import sys
from dataclasses import fields
from pathlib import Path
from types import FunctionType

import pytest

import pele_ocl
from pele_ocl.common.installation import shipped
from pele_ocl.jobs import Reading, words
from pele_ocl.jobs.structures import Run

ROOT = Path(__file__).parent.parent
HEXAPEPTIDE = shipped("data") / "structures" / "hexapeptide.pdb"
ATOMS = pele_ocl.read(HEXAPEPTIDE)
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


@pytest.mark.parametrize("name", pele_ocl._CALLED)
def test_help_of_a_callable_package_opens_with_its_function(name):
    package = getattr(pele_ocl, name)
    shown = pydoc.plain(pydoc.render_doc(package))
    function = getattr(package, name)
    assert package.__doc__ == function.__doc__
    assert inspect.signature(package) == inspect.signature(function)
    lines = [line.strip() for line in inspect.getdoc(function).splitlines() if line.strip()]
    assert shown.index(lines[0]) < shown.index(lines[-1]) < shown.index("PACKAGE CONTENTS")
    assert shown.count(lines[-1]) == 1
    assert shown.index(f"{name}(") < shown.index(lines[-1])
    assert not {"CLASSES", "FUNCTIONS", "DATA", "SUBMODULES"} & {*shown.split("\n")}
    assert shown.count("\n") < 2 * len(inspect.getdoc(function).splitlines()) + 120


@pytest.mark.parametrize(
    ("of", "names"),
    [
        ("Binding", "evaluate evaluate_batch over"),
        ("Energy", "evaluate evaluate_batch repeat"),
        ("Minimizer", "minimize minimize_batch"),
        ("Nonbond", "evaluate evaluate_batch repeat"),
        ("Potmap", "evaluate"),
        ("Solvent", "evaluate evaluate_batch radii_seconds repeat"),
        ("EnergyBatch", "per_residue save table text to_dataframe to_json"),
        ("EnergyResult", "per_residue save table text to_dataframe to_json"),
        ("MinimizeBatch", "count index save table text to_dataframe to_json"),
    ],
)
def test_plans_and_results_have_no_other_methods_than_these(of, names):
    found = getattr(pele_ocl, of)
    assert {name for name in dir(found) if not name.startswith("_") and callable(getattr(found, name))} == {
        *names.split()
    }


DOORS = "energy solvent nonbond potmap pb minimize binding refine screen simulate view ions rescore".split()


@pytest.mark.parametrize("name", DOORS)
def test_signatures_name_every_keyword(name):
    """Completion and help show them with their defaults; none hides in `**words`."""
    function = getattr(pele_ocl, name)
    parameters = inspect.signature(function).parameters
    assert not [of for of in parameters.values() if of.kind is of.VAR_KEYWORD]
    assert parameters["forcefield"].default is None
    if name not in ("potmap", "pb", "view", "ions"):
        assert parameters["gb"].default == pele_ocl.SolventModel.gb
    if name == "rescore":  # which reads a folder first
        return
    with pytest.raises(TypeError, match="did you mean 'forcefield'"):
        function(ATOMS, **{"forcefeld": "amber14"}, **NEEDED.get(name, {}))


WRONG = [
    (lambda: pele_ocl.enrgy, "energy"), (lambda: pele_ocl.energy.Enregy, "Energy"),
    (lambda: pele_ocl.explore.explor, "explore"), (lambda: pele_ocl.solvent.plan_, None),
    (lambda: pele_ocl.Energy(ATOMS).evalute, "evaluate"), (lambda: pele_ocl.Energy(ATOMS).prepare, "repeat"),
    (lambda: pele_ocl.energy(ATOMS).totl, "total"), (lambda: pele_ocl.energy(ATOMS).terms.columb, "coulomb"),
    (lambda: pele_ocl.minimize(ATOMS, max_iterations=1).positon, "positions"), (lambda: ATOMS.n_atoms, "len"),
    (lambda: pele_ocl.pb(ATOMS, spacing=3, padding=3, keep_map=False).solvaton, "solvation"),
]  # fmt: skip


@pytest.mark.parametrize(("get", "word"), WRONG, ids=[str(word) for _, word in WRONG])
def test_an_absent_attribute_gives_one_hint_of_public_names(get, word, capsys):
    """As Python prints it, which would append a hint of its own."""
    with pytest.raises(AttributeError) as caught:
        get()
    sys.__excepthook__(AttributeError, caught.value.with_traceback(None), None)
    shown = capsys.readouterr().err.strip()
    assert "has no attribute" in shown
    assert word is None or word in shown.partition("; ")[2]
    assert shown.lower().count("did you mean") == (word not in (None, "coulomb", "len"))
    assert "'_" not in shown


NEEDED = {
    "binding": {"ligand": "resid 1"}, "screen": {"ligands": "l.sdf"}, "refine": {"ligand": "resid 1"},
    "simulate": {"output": "o", "steps": 1}, "ions": {"add": {"NA": 1}},
}  # fmt: skip


def test_types_of_keywords_are_those_of_their_dataclasses():
    """Which they fill: a new field of Reading, SolventModel or Run is a keyword of all functions that take them."""
    internal = {"model", "solvent", "structures", "trajectory"}
    of_reading = {of.name for of in fields(Reading)} - internal
    assert words.ReadingWords.__annotations__.keys() == of_reading | {"pele_conf"}
    assert words.SolventWords.__annotations__.keys() == {"like", *(of.name for of in fields(pele_ocl.SolventModel))}
    of_run = {of.name for of in fields(Run)}
    assert words.RunWords.__annotations__.keys() == of_run - {"progress", "device"}
    required = [of.__name__ for of in vars(words).values() if getattr(of, "__required_keys__", None)]
    assert not required
