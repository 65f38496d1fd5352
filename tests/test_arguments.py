"""Arguments of another kind than they should be get a sentence that names what is wanted. Objects have a short repr."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Mapping
from dataclasses import is_dataclass

import numpy as np
import pytest
from conftest import DEVICES, load_system, random_atoms, random_pairs

import pele_ocl
from pele_ocl import (
    Atoms,
    ForceField,
    FormatError,
    Grid,
    InputError,
    Map,
    PairList,
    SolventModel,
    all_pairs,
    draw_slices,
    energy,
    ions,
    nonbond,
    pairs_within,
    place_ions,
    potmap,
    read,
    sample,
    solvent,
    write_map,
)
from pele_ocl.common.readonly import ReadOnlyArrays
from pele_ocl.energy import Energy
from pele_ocl.formats import read_structure
from pele_ocl.pairs import internal_dielectrics, pairs_split, read_pairs, without_bonded, write_pairs

ATOMS, PAIRS = random_atoms(5), random_pairs(5, 4)
NO_ATOMS = r"expected Atoms: read\('protein.pdb'\), or Atoms\(positions=..., charges=...\)"
NO_PAIRS = (
    r"expected a list: pairs_within\(atoms, 12\), all_pairs\(atoms\), read_pairs\('pairs.h5', len\(atoms\)\) or P"
)
NO_MODEL = r"expected a SolventModel: SolventModel\(ionic_strength=0.15\)"


@pytest.mark.parametrize(
    "call",
    [
        all_pairs,
        pairs_split,
        internal_dielectrics,
        lambda atoms: pairs_within(atoms, 5),
        lambda atoms: without_bonded(PAIRS, atoms),
    ],
)
@pytest.mark.parametrize(
    ("given", "said"), [("in.pdb", "'in.pdb'"), (np.zeros((5, 3)), "of type ndarray"), (None, "None")]
)
def test_atoms_of_another_kind(call, given, said):
    with pytest.raises(InputError, match=f"atoms are {said}; {NO_ATOMS}"):
        call(given)


@pytest.mark.parametrize("call", [energy, solvent, nonbond, lambda atoms: nonbond(atoms, PAIRS)])
@pytest.mark.parametrize(("given", "said"), [(np.zeros((5, 3)), "of type ndarray"), (None, "None"), (5, "5")])
def test_structures_of_another_kind(call, given, said):
    with pytest.raises(
        InputError, match=f"the structure is {said}; expected Atoms, the path of a file or several paths"
    ):
        call(given)


@pytest.mark.parametrize(
    "call",
    [
        energy,
        solvent,
        nonbond,
        lambda path: potmap(path, MAP.grid),
        lambda path: ions(path, add={"NA": 1}),
    ],
)
def test_a_path_is_read(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FormatError, match=r"^in.pdb: no such file"):
        call("in.pdb")


def test_a_path_of_pairs_is_read(tmp_path):
    with pytest.raises(FormatError, match=r"pairs.h5: no such file"):
        nonbond(ATOMS, tmp_path / "pairs.h5")


def test_a_list_of_pairs_is_of_atoms():
    with pytest.raises(InputError, match="a pair list needs Atoms; give Atoms, or the path of a list"):
        nonbond("in.pdb", PAIRS)


@pytest.mark.parametrize("given", [np.zeros((4, 2)), [(0, 1)], 5])
def test_pairs_of_another_kind_of_nonbond(given):
    with pytest.raises(InputError, match=f"pairs are .*; {NO_PAIRS}"):
        nonbond(ATOMS, given)


@pytest.mark.parametrize(
    "call",
    [
        lambda pairs: without_bonded(pairs, ATOMS),
        lambda pairs: write_pairs("pairs.h5", pairs),
    ],
)
@pytest.mark.parametrize(
    ("given", "said"), [("pairs.h5", "'pairs.h5'"), (np.zeros((4, 2)), "of type ndarray"), ([(0, 1)], "of type list")]
)
def test_pairs_of_another_kind(call, given, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"pairs are {said}; {NO_PAIRS}"):
        call(given)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: solvent(ATOMS, model="water"), f"model is 'water'; {NO_MODEL}"),
        (lambda: nonbond(ATOMS, PAIRS, model={}), f"model is of type dict; {NO_MODEL}"),
        (lambda: SolventModel(solute_dielectric="4"), "solute_dielectric is '4'; expected a finite number"),
        (lambda: nonbond(ATOMS, PAIRS, "pele"), "born_radii must be 5 positive numbers, one per atom"),
        (
            lambda: nonbond(ATOMS, PAIRS, internal_dielectrics="vdgbnp"),
            "internal_dielectrics must be 5 positive numbers",
        ),
        (lambda: pairs_within(ATOMS, "12"), "cutoff is '12'; expected a positive, finite distance in A"),
        (lambda: pairs_within(ATOMS, None), "cutoff is None; expected a positive, finite distance in A"),
        (lambda: PairList("5", [0], [1]), "n_atoms is '5'; expected a whole number, 0 or more"),
        (lambda: PairList(-1, [0], [1]), "n_atoms is -1; expected a whole number, 0 or more"),
        (lambda: read_pairs("pairs.h5", ATOMS), "n_atoms is of type Atoms; expected a whole number, 0 or more"),
        (lambda: read(ATOMS), "path is of type Atoms; expected the path of a file"),
        (lambda: read("in.pdb", 99), "forcefield is 99; expected a ForceField or the name of one"),
    ],
)
def test_other_arguments_of_another_kind(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()


@pytest.mark.parametrize("cutoff", [12, 12.0, np.float32(12), np.int64(12)])
def test_numbers_of_every_kind_are_numbers(cutoff):
    assert len(pairs_within(ATOMS, cutoff)) == 10


def test_reprs_are_short():
    atoms = read(pele_ocl.common.installation.shipped("data") / "structures" / "hexapeptide.pdb")
    assert repr(atoms) == "Atoms(96 atoms, 6 residues, 96 bonds, net charge -1.000 e)"
    assert repr(atoms.labels) == "Labels(96 atoms, 6 residues)"
    bare = Atoms([[0, 0, 0]], [0.5], gb_radii=[1.5], gb_scales=[0.8])
    assert repr(bare) == "Atoms(1 atoms, 0 bonds, net charge +0.500 e, without lj_sigma and lj_epsilon)"
    assert repr(pairs_within(atoms, 1e3)) == "PairList(4,053 pairs of 96 atoms)"
    marked = np.count_nonzero(PAIRS.one_four)
    assert repr(PAIRS) == f"PairList(4 pairs of 5 atoms, {marked} of them 1-4, with sigma2 and charge_products)"
    assert repr(all_pairs(atoms)) == "AllPairs(4,053 pairs of 96 atoms)"
    assert repr(all_pairs(atoms, "scale")).endswith(" of 96 atoms, 239 of them 1-4)")


def test_reprs_of_results_are_short():
    atoms = load_system("hexapeptide").atoms
    found = solvent(atoms, device=DEVICES[0])
    assert repr(found) == f"SolventResult(96 atoms, total {found.total:.3f} kcal/mol, {found.variant}, float32)"
    found = nonbond(atoms, all_pairs(atoms), device=DEVICES[0])
    assert repr(found) == (
        f"NonbondResult(96 atoms, 4,053 pairs, total {found.total:.3f} kcal/mol, {found.variant}, float32)"
    )
    plan = Energy(atoms, device=DEVICES[0], variant="rows")
    assert repr(plan) == f"Energy(96 atoms, rows, float32, on {DEVICES[0]})"
    total = f"total {plan.evaluate().total:.3f}"
    assert repr(plan.evaluate()) == f"EnergyResult(96 atoms, {total} kcal/mol, rows, float32)"
    batch = plan.evaluate_batch(np.stack(3 * [atoms.positions]))
    spread = f"{total} to {total[6:]} kcal/mol"
    assert repr(batch) == f"EnergyBatch(3 conformations of 96 atoms, {spread}, rows, float32)"
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    map_ = Map(Grid((0, 0, 0), 1, (4, 3, 2)), values, "kcal/mol/e")
    assert repr(map_) == "Map(4 x 3 x 2 points, 0 to 23 kcal/mol/e, float32)"


def pickled(made):
    return pickle.loads(pickle.dumps(made))


@pytest.mark.parametrize("again", [pickled, copy.copy, copy.deepcopy])
@pytest.mark.parametrize(
    "made",
    [
        read(pele_ocl.common.installation.shipped("data") / "structures" / "hexapeptide.pdb"),
        read_structure(pele_ocl.common.installation.shipped("data") / "structures" / "hexapeptide.pdb"),
        random_pairs(5, 4),
        all_pairs(random_atoms(5)),
        Grid((0, 0, 0), 0.5, (3, 4, 5)),
        Map(Grid((0, 0, 0), 1, (4, 3, 2)), np.arange(24, dtype=np.float32).reshape(2, 3, 4), "kT/e", "a map", 300.0),
        SolventModel(ionic_strength=0.15),
    ],
    ids=lambda made: type(made).__name__,
)
def test_objects_come_back_from_pickles_and_copies(made, again):
    require_same(again(made), made)


def require_same(after, before):
    """Fields equal, down to the last; the arrays of molecules, pairs and grids read-only."""
    assert type(after) is type(before)
    for name, value in vars(before).items():
        found = vars(after)[name]
        if name.startswith("_"):  # found again when it is asked for
            continue
        if isinstance(value, Mapping):
            for key, each in value.items():
                np.testing.assert_equal(found[key], each)
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(found, value)
            assert found.dtype == value.dtype
            assert found.flags.writeable == value.flags.writeable or not isinstance(before, ReadOnlyArrays)
        elif is_dataclass(value):
            require_same(found, value)
        else:
            assert found == value


@pytest.mark.parametrize("flags", [[0.5], [np.nan], [2], [-1], ["yes"], [None]])
def test_flags_of_pairs_are_true_or_false(flags):
    with pytest.raises(InputError, match=r"one_four (of|are)"):
        PairList(5, [0], [1], one_four=flags)
    assert PairList(5, [0, 1], [1, 2], one_four=[0, 1.0]).one_four.tolist() == [False, True]


def test_results_come_back_from_pickles():
    atoms = load_system("hexapeptide").atoms
    grid = Grid.around(atoms, 3, 2)
    plan = Energy(atoms, device=DEVICES[0], variant="rows", per_atom=True)
    for found in (
        potmap(atoms, grid, field=True, device=DEVICES[0]),
        place_ions(atoms, {"NA": 1, "CL": 1}, grid=Grid.around(atoms, 10, 2), keep_map=True, device=DEVICES[0]),
        solvent(atoms, device=DEVICES[0]),
        nonbond(atoms, all_pairs(atoms), device=DEVICES[0]),
        plan.evaluate(),
        plan.evaluate_batch(atoms.positions[None]),
    ):
        require_same(pickled(found), found)


MAP = Map(Grid((0, 0, 0), 1, (4, 3, 2)), np.zeros((2, 3, 4), np.float32), "kcal/mol/e")
NO_MAP = r"; expected a Map: read_map\('map.dx'\), or potmap\(atoms, grid\).map"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: potmap(ATOMS, 0.5), r"grid is 0.5; expected a Grid: Grid.around\(atoms, padding=10, spacing=0.5\)"),
        (lambda: potmap(5, MAP.grid), "the structure is 5; expected Atoms, the path of a file or several paths"),
        (lambda: potmap(ATOMS, MAP.grid, smooth=True), '`cutoff` and `smooth` need `method="cutoff"`'),
        (lambda: potmap(ATOMS, MAP.grid, cutoff=5.0), '`cutoff` and `smooth` need `method="cutoff"`'),
        (lambda: potmap(ATOMS, MAP.grid, dielectric="80"), "the dielectric is '80'; it must be positive"),
        (lambda: potmap(ATOMS, MAP.grid, kappa=1e308), "kappa is 1e.308; expected a number of at most 1,000,000"),
        (
            lambda: potmap(ATOMS, MAP.grid, method="cutoff", cutoff=1e308),
            "the cutoff is 1e.308 A; expected a finite number",
        ),
        (lambda: place_ions("in.pdb", {"NA": 1}), f"atoms are 'in.pdb'; {NO_ATOMS}"),
        (lambda: place_ions(ATOMS, "NA"), "ions are 'NA'; expected a dictionary of numbers by name"),
        (lambda: place_ions(ATOMS, {5: 1}), "the name of an ion is 5; choose one of LI, NA"),
        (lambda: place_ions(ATOMS, {"NA": 1}, map="map.dx"), "map is 'map.dx'" + NO_MAP),
        (lambda: write_map("map.dx", "map"), "map is 'map'" + NO_MAP),
        (lambda: draw_slices(MAP, "map.png"), "map is 'map.png'" + NO_MAP),
        (lambda: draw_slices("map.png", MAP, "in.dx"), "inputs are 'in.dx'; expected a list of paths"),
        (lambda: sample("map.dx", [[0, 0, 0]]), "map is 'map.dx'" + NO_MAP),
        (lambda: Grid((0, 0, 0), 1e-320, (1, 1, 1)), "a grid's spacing must be positive"),
        (lambda: SolventModel(ionic_strength=1e308), "ionic_strength is 1e.308; expected a finite number, at most 1,"),
        (lambda: PairList(10**30, [0], [1]), "n_atoms is 1e.30; at most 2,147,483,647 is possible"),
        (lambda: PairList(10**400, [0], [1]), "n_atoms is a very large number; at most 2,147,483,647"),
    ],
)
def test_arguments_of_maps_and_ions(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()


def test_results_are_no_maps_and_say_where_theirs_is(tmp_path):
    found = potmap(ATOMS, Grid((50, 50, 50), 1, (2, 2, 2)), device=DEVICES[0])
    for call in (lambda: write_map(tmp_path / "map.dx", found), lambda: sample(found, [[50, 50, 50]])):
        with pytest.raises(InputError, match="expected a Map, not a PotmapResult; its attribute `map` is a Map"):
            call()
    assert not list(tmp_path.iterdir())


def test_the_repr_of_a_force_field_is_short():
    assert re.fullmatch(r"ForceField\(amber99sb, amber, \d+ templates, [\d,]+ radii\)", repr(ForceField.load()))
