"""Constants of the solvent model: other programs', and that every energy takes them."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import load_system, random_atoms
from test_energy import EVERY_VARIANT, options
from tolerance import ENERGY

import pele_ocl
from pele_ocl import Energy, InputError, Solvent, SolventModel
from pele_ocl.gb_models import GB_MODELS
from pele_ocl.pairs import all_pairs
from pele_ocl.units import COULOMB_KCAL_A

AMBER = 18.2223**2


def test_defaults_are_those_there_were():
    assert SolventModel().coulomb_constant == COULOMB_KCAL_A
    assert SolventModel().surface_tension == 0.0054
    assert SolventModel(surface="lcpo").surface_tension == 0.0072
    assert SolventModel(surface="lcpo", surface_tension=0.005).surface_tension == 0.005
    assert SolventModel().born_cutoff is None


@pytest.mark.parametrize("before", GB_MODELS)
@pytest.mark.parametrize("after", GB_MODELS)
def test_values_that_nobody_gave_are_chosen_again(before, after):
    """Of a model that `replace` makes of another one: constants of the GB model and the nonpolar term follow it."""
    assert repr(replace(SolventModel(gb=before), gb=after)) == repr(SolventModel(gb=after))
    again = pickle.loads(pickle.dumps(replace(SolventModel(gb=before), temperature=300.0)))
    assert repr(replace(again, gb=after, temperature=298.15)) == repr(SolventModel(gb=after))


@pytest.mark.parametrize("before", ["ace", "lcpo", "none"])
@pytest.mark.parametrize("after", ["ace", "lcpo", "none"])
def test_the_surface_tension_follows_the_nonpolar_term(before, after):
    assert replace(SolventModel(surface=before), surface=after) == SolventModel(surface=after)
    assert replace(SolventModel(), surface=after).surface_tension == {"ace": 0.0054, "lcpo": 0.0072, "none": 0.0}[after]
    given = replace(SolventModel(surface=before, surface_tension=0.01), surface=after)
    assert given.surface_tension == 0.01


def test_values_that_were_given_stay():
    found = replace(SolventModel(alpha=0.8, offset=0.1), gb="gbn")
    assert (found.alpha, found.offset) == (0.8, 0.1)
    assert (found.beta, found.gamma) == (SolventModel(gb="gbn").beta, SolventModel(gb="gbn").gamma)
    atoms = pele_ocl.read(Path(__file__).parent.parent / "data" / "structures" / "trialanine.pdb")
    plain, changed = SolventModel(gb="gbn"), replace(SolventModel(), gb="gbn")
    totals = [pele_ocl.solvent(atoms, model=model).total for model in (plain, changed, SolventModel())]
    assert totals[0] == totals[1] != totals[2]


def test_kappa_as_programs_have_it():
    amber = SolventModel.like("amber", ionic_strength=0.15)
    assert amber.kappa == pytest.approx(0.73 * np.sqrt(0.10806 * 0.15), rel=1e-15)
    assert replace(amber, temperature=400.0, solvent_dielectric=10.0).kappa == amber.kappa
    openmm = SolventModel.like("openmm", ionic_strength=0.15, temperature=300.0)
    assert openmm.kappa == pytest.approx(7.3 * 50.33355 * np.sqrt(0.15 / 78.5 / 300) / 10, rel=1e-15)
    pele = SolventModel.like("pele", ionic_strength=0.25)
    assert pele.kappa == SolventModel(ionic_strength=0.25).kappa
    # Three programs, the same theory: they differ by tenths of a per cent.
    for model in (amber, openmm, SolventModel(ionic_strength=0.15, solvent_dielectric=78.5)):
        assert model.kappa == pytest.approx(0.0929, rel=3e-3)


def test_presets():
    assert SolventModel.like("amber").coulomb_constant == AMBER
    assert (SolventModel.like("amber").surface, SolventModel.like("amber").born_cutoff) == ("none", 25.0)
    assert SolventModel.like("openmm") == SolventModel(solvent_dielectric=78.5, kappa_convention="openmm")
    assert SolventModel.like("openmm", gb="gbn").beta == 1.907992938
    assert SolventModel.like("openmm", gb="gbn", beta=1.9).beta == 1.9
    assert SolventModel.like("openmm", gb="gbn2").beta is None
    assert SolventModel.like("pele") == SolventModel(coulomb_constant=332.0637, default_radii="pele")
    changed = SolventModel.like("amber", gb="obc1", born_cutoff=None, surface="lcpo")
    assert (changed.gb, changed.born_cutoff, changed.surface_tension) == ("obc1", None, 0.0072)
    settings = changed.settings
    assert settings["kappa"] == 0
    assert settings["coulomb_constant"] == AMBER


@pytest.mark.parametrize(("number", "name"), [(1, "hct"), (2, "obc1"), (5, "obc2"), (7, "gbn"), (8, "gbn2")])
def test_numbers_of_amber_name_models(number, name):
    for gb in (number, str(number), f"igb={number}", f"IGB={number}"):
        assert SolventModel(gb=gb) == SolventModel(gb=name)
        assert SolventModel.like("openmm", gb=gb) == SolventModel.like("openmm", gb=name)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SolventModel(gb=True), "gb is True; choose"),
        (lambda: SolventModel(coulomb_constant=0), "coulomb_constant is 0; it must be positive"),
        (lambda: SolventModel(gb=9), r"gb is 9; choose none \(igb=6\), hct \(igb=1\), .*, gbn2 \(igb=8\)"),
        (lambda: SolventModel.like("amber", gb="igb8"), r"gb is 'igb8'; choose .*, gbn2 \(igb=8\)"),
        (lambda: SolventModel(kappa_convention="sander"), "kappa_convention is 'sander'; choose 'debye' or 'amber'"),
        (lambda: SolventModel(surface="sasa"), "surface is 'sasa'; choose 'ace' or 'lcpo' or 'sgb' or 'none'"),
        (lambda: SolventModel(born_cutoff=0), "born_cutoff is 0; it must be positive"),
        (lambda: SolventModel.like("charmm"), "program is 'charmm'; choose 'amber' or 'mmpbsa.py' or 'sander' or"),
        (lambda: SolventModel.like("amber", epsilon=80), "a SolventModel has no epsilon"),
    ],
)
def test_values_that_cannot_be(make, message):
    with pytest.raises(InputError, match=message):
        make()


@EVERY_VARIANT
def test_coulombs_constant_is_in_every_energy(device, precision, variant):
    atoms = random_atoms(90, seed=3)
    there = options(device, precision, variant)
    usual, doubled = (
        Energy(atoms, model=SolventModel(coulomb_constant=factor * COULOMB_KCAL_A), **there).evaluate()
        for factor in (1, 2)
    )
    for term in ("coulomb", "gb_pair", "gb_self"):
        assert getattr(doubled, term) == pytest.approx(2 * getattr(usual, term), rel=ENERGY[precision])
    for term in ("lennard_jones", "nonpolar"):
        assert getattr(doubled, term) == getattr(usual, term)


def test_coulombs_constant_in_solvent_and_nonbond(device, precision):
    atoms, model = load_system("hexapeptide").atoms, SolventModel(coulomb_constant=AMBER)
    pairs = all_pairs(atoms)
    for compute in (
        lambda model: Solvent(atoms, model=model, device=device, precision=precision).evaluate(),
        lambda model: pele_ocl.nonbond(atoms, pairs, model=model, device=device, precision=precision),
    ):
        usual, amber = compute(None), compute(model)
        for term in {"coulomb", "gb_pair", "gb_self"} & set(usual.energy):
            expected = usual.energy[term] * AMBER / COULOMB_KCAL_A
            assert amber.energy[term] == pytest.approx(expected, rel=ENERGY[precision])


def test_no_surface_is_no_nonpolar_energy(device, precision):
    atoms, model = random_atoms(60), SolventModel(surface="none")
    for plan in (Energy, Solvent):
        bare, usual = (
            plan(atoms, model=of, device=device, precision=precision).evaluate() for of in (model, SolventModel())
        )
        assert bare.terms.names == tuple(name for name in usual.terms.names if name != "nonpolar")
        assert bare.total == pytest.approx(usual.total - usual.nonpolar, rel=ENERGY[precision])
        with pytest.raises(InputError, match=r"surface area (is only|without)"):
            _ = bare.surface_area


def test_programs_of_mmgbsa_differ_in_one_constant():
    """NAB and sander inside MMPBSA.py, and gmx_MMPBSA: else they agree."""
    models = {name: SolventModel.like(name) for name in ("mmpbsa.py", "sander", "gmx")}
    assert [model.solvent_dielectric for model in models.values()] == [78.3, 80.0, 78.5]
    assert {replace(model, solvent_dielectric=1.0) for model in models.values()} == {
        SolventModel.like("amber", surface="lcpo", surface_tension=0.0072, solvent_dielectric=1.0)
    }
    assert SolventModel.like("exact") == SolventModel()
