"""Energy terms by name: attributes, indices, sums by atom and residue, and pickles."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from conftest import labels_of_elements, random_atoms

import pele_ocl
from pele_ocl import Atoms, InputError
from pele_ocl.atoms import Floats
from pele_ocl.binding.result import BindingResult
from pele_ocl.common.errors import Suggests, meant
from pele_ocl.interop.preparation import Preparation
from pele_ocl.potmap.result import PotmapResult
from pele_ocl.report import Framed
from pele_ocl.results import Residue, TermBatch, TermResult, Terms

NAMES = ("coulomb", "gb_pair", "nonpolar")
ATOMS = pele_ocl.read(pele_ocl.common.installation.shipped("data") / "structures" / "hexapeptide.pdb")
HOW = {"device": "a device", "variant": "rows", "precision": "float64", "seconds": {"total": 1.0}}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OneResult(TermResult):
    radii: Floats


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ManyResults(TermBatch[OneResult]):
    radii: Floats

    def _member(self, i: int) -> OneResult:
        return OneResult(atoms=self.atoms, terms=self.terms[i], radii=self.radii[i], **HOW)


def values(*shape: int) -> Floats:
    return np.random.default_rng(1).normal(size=(*shape, len(NAMES)))


def result(atoms: Atoms = ATOMS, per_atom: bool = True) -> OneResult:
    by_atom = Terms(NAMES, values(len(atoms)))
    return OneResult(
        atoms=atoms,
        terms=Terms(NAMES, by_atom.values.sum(axis=0)),
        per_atom=by_atom if per_atom else None,
        radii=np.ones(len(atoms)),
        **HOW,
    )


def batch(m: int = 4) -> ManyResults:
    positions = np.zeros((m, len(ATOMS), 3))
    return ManyResults(atoms=ATOMS, terms=Terms(NAMES, values(m)), radii=np.arange(m), positions=positions, **HOW)


def test_terms_by_name_and_index():
    given = values(5, 7)
    terms = Terms(NAMES, given)
    for k, name in enumerate(NAMES):
        np.testing.assert_array_equal(getattr(terms, name), given[..., k])
    np.testing.assert_array_equal(terms.total, given.sum(axis=-1))
    np.testing.assert_array_equal(terms[2].coulomb, given[2, :, 0])
    np.testing.assert_array_equal(terms[2, 3].values, given[2, 3])
    np.testing.assert_array_equal(terms[1:3], given[1:3])
    np.testing.assert_array_equal(np.array(terms, np.float32), given.astype(np.float32))
    assert len(terms) == 5
    assert set(NAMES) <= set(dir(terms))
    assert list(terms.columns()) == [*NAMES, "total"]
    assert repr(terms) == "Terms(coulomb, gb_pair, nonpolar; shape (5, 7), kcal/mol)"
    assert repr(Terms(NAMES, np.array([1.0, -2000.5, 0.25]))) == (
        "Terms(total -1,999.250 kcal/mol: coulomb 1.000, gb_pair -2,000.500, nonpolar 0.250)"
    )
    with pytest.raises(AttributeError, match="no attribute 'columb'; its terms are coulomb, gb_pair, nonpolar"):
        _ = terms.columb
    with pytest.raises(IndexError):
        terms[0, 0, 0]
    with pytest.raises(ValueError, match="read-only"):
        terms.coulomb[0] = 1
    given[0] = 0  # a caller's own array stays his


def test_terms_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=r"energies have shape \(5, 2\); expected \(\.\.\., 3\), one per term"):
        Terms(NAMES, np.zeros((5, 2)))


def test_residues_have_names_and_sums():
    found = result().per_residue()
    assert len(found.residues) == len(found) == 6
    first = found.residues[0]
    assert (str(first), first) == (ATOMS.labels.residue(0), Residue("A", "MET", 1))
    assert isinstance(first.number, int)
    for name in NAMES:
        assert getattr(found, name).sum() == pytest.approx(getattr(result(), name), rel=1e-12)
    index = ATOMS.labels.residue_index
    np.testing.assert_allclose(found.coulomb, np.bincount(index, result().per_atom.coulomb), rtol=1e-12)
    many = Terms(NAMES, values(3, len(ATOMS))).by_residue(ATOMS.labels)
    assert many.values.shape == (3, 6, 3)


def test_energies_per_residue_need_labels_and_atoms():
    with pytest.raises(InputError, match="need atoms with labels; these have none"):
        result(random_atoms(3), per_atom=False).per_residue()
    with pytest.raises(InputError, match="atom; request them with per_atom=True"):
        result(per_atom=False).per_residue()


def test_results_have_their_terms_as_numbers():
    found = result()
    assert found.coulomb == found.energy["coulomb"] == found.terms.coulomb
    assert all(type(value) is float for value in (found.coulomb, found.total, *found.energy.values()))
    assert list(found.energy) == [*NAMES, "total"]
    assert repr(found) == f"OneResult(96 atoms, total {found.total:.3f} kcal/mol, rows, float64)"
    with pytest.raises(AttributeError, match="'OneResult' object has no attribute 'radius'"):
        _ = found.radius


def test_an_attribute_of_a_part_is_suggested():
    atoms = Atoms([[0.0, 0.0, 0.0]], [0.0], labels=labels_of_elements(["C"]))
    with pytest.raises(AttributeError, match=r"'Atoms' object has no attribute 'names'; did you mean 'labels\.names'"):
        _ = atoms.names


def kinds_of(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield each
        yield from kinds_of(each)


def test_every_public_result_is_read_by_the_same_methods():
    results = {of for name in pele_ocl.__all__ if isinstance(of := getattr(pele_ocl, name), type)} | {*kinds_of(Framed)}
    results = {of for of in results if Framed in of.__mro__ and not getattr(of, "_is_protocol", False)}
    assert len(results) > 25
    for of in results:
        for method in ("text", "table", "to_dataframe", "_repr_html_"):
            assert callable(getattr(of, method, None)), f"{of.__name__}.{method}"
        assert "text" not in getattr(of, "__dataclass_fields__", {}), of.__name__


def test_the_text_of_a_result_without_its_own_is_its_table():
    found = batch()
    assert found.text() == found.table().text()
    assert found._repr_html_() == found.table()._repr_html_()


def test_batches_are_taken_apart():
    found = batch()
    assert len(found) == 4
    np.testing.assert_array_equal(found.coulomb, found.energies[:, 0])
    assert found[-1].radii == 3
    assert [one.total for one in found] == found.total.tolist()
    assert found[np.int64(2)].coulomb == found.coulomb[2]
    assert repr(found).startswith("ManyResults(4 conformations of 96 atoms, total ")
    with pytest.raises(IndexError):
        found[4]


@pytest.mark.parametrize("made", [result, batch, lambda: result().per_residue()], ids=["result", "batch", "residues"])
@pytest.mark.parametrize("again", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy, replace])
def test_results_come_back_from_pickles_and_copies(made, again):
    before = made()
    after = again(before)
    assert (repr(after), np.array(after.coulomb).tolist()) == (repr(before), np.array(before.coulomb).tolist())
    terms = getattr(after, "terms", after)
    assert not terms.values.flags.writeable
    assert getattr(after, "residues", None) == getattr(before, "residues", None)


@pytest.mark.parametrize("index", [slice(0, 2), 1.0, "0", None])
def test_a_batch_gives_one_conformation_at_a_time(index):
    with pytest.raises(TypeError):
        _ = batch()[index]
    assert batch()[np.int64(-1)].radii == 3


def test_results_made_ready_have_all_their_fields():
    """`ready` sets fields without the constructor, which would name one that is missing."""
    few = pele_ocl.pairs_within(ATOMS, 6.0)
    for result in (
        pele_ocl.energy(ATOMS), pele_ocl.solvent(ATOMS), pele_ocl.nonbond(ATOMS, few, solvent="vacuum"),
    ):  # fmt: skip
        assert vars(result).keys() == {field.name for field in fields(result)}


def test_terms_are_a_mapping_of_names():
    one = Terms(("bond", "angle"), np.array([1.0, 2.0]))
    assert {name: float(value) for name, value in dict(one).items()} == {"bond": 1.0, "angle": 2.0}
    assert list(one) == ["bond", "angle"]
    several = Terms(("bond", "angle"), np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert [float(row.angle) for row in several] == [2.0, 4.0]
    assert dict(several)["bond"].tolist() == [1.0, 3.0]
    with pytest.raises(KeyError, match="unknown term 'bonds'"):
        one["bonds"]


def test_attributes_of_other_programs_are_named():
    with pytest.raises(AttributeError, match=r"no attribute 'n_atoms'; len\(\) of it gives their number"):
        _ = ATOMS.n_atoms
    batch = pele_ocl.minimize(ATOMS, max_iterations=1)
    with pytest.raises(AttributeError, match="no attribute 'steps'; did you mean 'iterations'"):
        _ = batch.steps
    for of, word, ours in (
        (BindingResult, "delta", "energies"), (BindingResult, "mean", "total"), (PotmapResult, "values", "map"),
        (Preparation, "molecule", "read"),
    ):  # fmt: skip
        assert issubclass(of, Suggests)
        assert f"did you mean '{ours}'" in meant(word, [*dir(of), *of.__dataclass_fields__])
