"""GBn and GBn2 with necks, rgb_max, no solvent: definitions against OpenMM and AMBER, kernels against definitions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import random_atoms, require
from gb_helpers import amber_solvent, labels_of, openmm_energy, read_parm, with_mbondi3
from tolerance import BORN_RADIUS, DIFFERENCES, ENERGY, GRADIENT

from pele_ocl import Energy, InputError, Solvent, SolventModel, nonbond, read
from pele_ocl.common.errors import ParameterError
from pele_ocl.energy import VARIANTS as ENERGY_VARIANTS
from pele_ocl.gb_models import GB_MODELS, Necks
from pele_ocl.gb_models.necks import tables
from pele_ocl.ladder import SOLVENT as VARIANTS
from pele_ocl.ladder import SolventLadder
from pele_ocl.pairs import all_pairs
from pele_ocl.reference import energy as definition
from pele_ocl.reference import solvent as radii_definition
from pele_ocl.reference.energy import hct_slope as definition_of_slope

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT.parent / "shared" / "amber_samples"
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="AMBER's samples are not beside this checkout")
GB_TERMS = ("gb_pair", "gb_self", "nonpolar")
DNA = ("DC5", "DG", "A", "DT3")


def molecule(n: int = 150, seed: int = 3, names: tuple[str, ...] = ("ALA", "MET", *DNA)):
    """Random atoms of all elements in residues of proteins and of DNA, with radii on the steps and between them."""
    rng = np.random.default_rng(seed)
    radii = rng.choice([1.0, 1.17, 1.2, 1.3, 1.5, 1.55, 1.7, 1.8, 1.85, 2.0, 1.333], n)
    elements = rng.choice(["H", "C", "N", "O", "S", "P", "Cl"], n)
    return replace(random_atoms(n, seed), gb_radii=radii, gb_scales=None, labels=labels_of(elements, names))


MODELS = {
    "gbn2": SolventModel(gb="gbn2", solvent_dielectric=78.5, ionic_strength=0.1),
    "gbn2-rgb": SolventModel(gb="gbn2", born_cutoff=9.0),
    "gbn2-amber-rgb": SolventModel(gb="gbn2", gbn_convention="amber", born_cutoff=9.0),
    "obc2-rgb": SolventModel(gb="obc2", born_cutoff=11.0),
}
ATOMS = molecule()


def atoms_for(name: str):
    return replace(ATOMS, gb_scales=np.full(len(ATOMS), 0.8)) if name.startswith("obc") else ATOMS


RUNS = [
    ("gbn2", "float32"), ("gbn2-rgb", "float64"), ("gbn2-amber-rgb", "float64"), ("obc2-rgb", "float32"),
]  # fmt: skip
RUNS_OF = {"blocks": RUNS[:2], "squares": RUNS[:3:2]}
EXPECTED = {name: definition.energy(atoms_for(name), model) for name, model in MODELS.items()}


@pytest.mark.parametrize(("name", "precision"), RUNS)
@pytest.mark.parametrize("variant", [name for name, own in VARIANTS.items() if not own.approximates])
def test_solvent_is_as_defined(variant, name, precision, device):
    require(device, precision)
    expected = EXPECTED[name]
    plan = SolventLadder(atoms_for(name), variant=variant, precision=precision, device=device, model=MODELS[name])
    result = plan.evaluate()
    np.testing.assert_allclose(result.born_radii, expected.born_radii, rtol=BORN_RADIUS[precision])
    total = sum(expected.per_atom[term].sum() for term in GB_TERMS)
    assert result.total == pytest.approx(total, rel=ENERGY[precision])


@pytest.mark.parametrize(
    ("variant", "name", "precision"),
    # Limits with either convention in `rows`, with one of them in the others, whose functions are the same.
    [(variant, *run) for variant in ENERGY_VARIANTS for run in RUNS_OF.get(variant, RUNS[:3])],
)
def test_energy_and_gradient_are_as_defined(variant, name, precision, device):
    """Two conformations at once are computed; the first is the definition's."""
    require(device, precision)
    atoms, expected = atoms_for(name), EXPECTED[name]
    plan = Energy(atoms, variant=variant, precision=precision, device=device, model=MODELS[name])
    batch = plan.evaluate_batch(np.stack([atoms.positions, 1.01 * atoms.positions]))
    for term, values in expected.per_atom.items():
        scale = abs(values).sum() if precision == "float32" else abs(values.sum())
        assert batch[0].energy[term] == pytest.approx(values.sum(), abs=ENERGY[precision] * scale)
    apart = np.linalg.norm(batch.gradients[0] - expected.gradient) / np.linalg.norm(expected.gradient)
    assert apart < GRADIENT[precision]
    np.testing.assert_allclose(batch.born_radii[0], expected.born_radii, rtol=BORN_RADIUS[precision])
    np.testing.assert_array_equal(batch.gradients[1], plan.evaluate(1.01 * atoms.positions).gradient)


@pytest.mark.parametrize("gb", ["gbn", "gbn2"])
@pytest.mark.parametrize("system", ["hexapeptide", "ubiquitin", "dna"])
def test_openmm_has_the_same(system, gb):
    """Definition and OpenMM's Reference platform agree, for bondi radii in GBn and mbondi3 in GBn2."""
    pytest.importorskip("openmm")
    if system == "dna":  # of atoms none of which is within another's sphere, which OpenMM's formula leaves out
        atoms = molecule(60, 5, DNA)
        atoms = with_mbondi3(replace(atoms, positions=1.5 * atoms.positions))
    else:
        atoms = with_mbondi3(read(ROOT / "data" / "structures" / f"{system}.pdb"))
    energy, gradient, model = openmm_energy(atoms, gb, SolventModel(ionic_strength=0.1).kappa)
    found = definition.energy(atoms, model)
    assert sum(found.per_atom[term].sum() for term in GB_TERMS) == pytest.approx(energy, rel=ENERGY["float64"])
    ours = sum(found.gradients[term] for term in GB_TERMS)
    assert np.linalg.norm(ours - gradient) < GRADIENT["float64"] * np.linalg.norm(gradient)


@pytest.mark.parametrize(("name", "residue"), [("gbn", "LIG"), ("gbn2", "LIG"), ("gbn2", "DA")])
def test_parameters_by_element_are_openmms(name, residue):
    """All elements that models name, and others, have OpenMM's parameters."""
    forces, app = (pytest.importorskip(f"openmm.app{part}") for part in (".internal.customgbforces", ""))
    symbols = ["H", "C", "N", "O", "S", "P", "F", "Cl", "Br", "Mg", "Zn"]
    topology = app.Topology()
    placed = topology.addResidue(residue, topology.addChain())
    for symbol in symbols:
        topology.addAtom(symbol, app.Element.getBySymbol(symbol), placed)
    topology.addBond(*list(topology.atoms())[:2])
    force = {"gbn": forces.GBSAGBnForce, "gbn2": forces.GBSAGBn2Force}[name]
    expected = np.asarray(force.getStandardParameters(topology))
    atoms = replace(random_atoms(len(symbols)), labels=labels_of(np.array(symbols), (residue,), len(symbols)))
    np.testing.assert_allclose(GB_MODELS[name].scales(atoms), expected[:, 1], rtol=2e-11)  # of which C has 11 figures
    if name == "gbn2":
        np.testing.assert_array_equal(GB_MODELS[name].coefficients(atoms), expected[:, 2:])


@needs_samples
@pytest.mark.parametrize(
    ("gb", "salt", "printed"),
    [("gbn", 0, -21.1012), ("gbn", 1, -21.1194), ("gbn2", 0, -23.4639), ("gbn2", 1, -23.4832)],
)
def test_amber_prints_the_same(gb, salt, printed, device, precision):
    atoms = with_mbondi3(read_parm(SAMPLES / "ash.parm7", SAMPLES / "ash.rst7"))
    atoms, model = amber_solvent(atoms, gb, salt)
    result = Solvent(atoms, model=model, device=device, precision=precision).evaluate()
    assert result.gb_pair + result.gb_self == pytest.approx(printed, abs=5.1e-5 + ENERGY[precision] * abs(printed))


def few(positions, radii, elements):
    n = len(radii)
    return replace(
        random_atoms(n), positions=positions, charges=np.linspace(-0.5, 0.6, n), gb_radii=radii,
        gb_scales=np.full(n, 0.9), labels=labels_of(np.array(elements), ("MET",)),
    )  # fmt: skip


# Two atoms beside a third: at the ends of the tables, within and beyond the necks' reach (10.8 and 8.8 A), near GBn2's
# sulphur, whose sphere takes away, and across a limit of 9 A.
PAIRS = {
    "ends of the tables": (3.1, (1.0, 2.0), "CO"),
    "within the reach": (10.79, (2.0, 2.0), "CO"),
    "beyond the reach": (10.81, (2.0, 2.0), "CO"),
    "short reach": (8.79, (1.0, 1.0), "CO"),
    "sulphur near": (2.7, (1.2, 1.8), "HS"),
    "sulphur apart": (5.0, (1.2, 1.8), "HS"),
    "sphere cut": (9.3, (1.5, 1.8), "OC"),
    "sphere just whole": (7.2, (1.5, 1.8), "OC"),
    "sphere just out": (10.8, (1.5, 1.8), "OC"),
    "engulfed": (0.4, (1.0, 2.0), "HN"),
}


@pytest.mark.parametrize(("gb", "convention"), [*((gb, "openmm") for gb in ("obc2", "gbn", "gbn2")), ("gbn2", "amber")])
@pytest.mark.parametrize("pair", PAIRS)
def test_central_differences(pair, gb, convention, device):
    device.require_precision("float64")
    r, radii, elements = PAIRS[pair]
    atoms = few([[0, 0, 0], [0.6 * r, 0, 0.8 * r], [1.5, 2.5, -3.0]], [*radii, 1.4], [*elements, "N"])
    model = SolventModel(gb=gb, born_cutoff=9.0, gbn_convention=convention)
    plan = Energy(atoms, precision="float64", device=device, model=model)
    result, step = plan.evaluate(), 1e-4
    moves = step * np.eye(9).reshape(9, 3, 3)
    up, down, up2, down2 = (
        plan.evaluate_batch(atoms.positions + k * moves).total for k in (1, -1, 2, -2)
    )  # fmt: skip
    differences = (8 * (up - down) - (up2 - down2)) / (12 * step)
    apart = np.linalg.norm(differences.reshape(3, 3) - result.gradient) / np.linalg.norm(result.gradient)
    assert apart < DIFFERENCES


def test_spheres_count_as_in_sander():
    """Spheres that straddle rgbmax follow sander's formula; on either side all or nothing counts."""
    rho, s, limit = np.array(1.3), np.array([1.1, 1.6, -1.1]), 9.0
    r = np.linspace(5.01, 12.0, 141)[:, None]
    part = (1 + 2 * r / (r - s) + (r**2 - 4 * limit * r - s**2) / limit**2 + 2 * np.log((r - s) / limit)) / (8 * r)
    whole = radii_definition.hct_term(r, rho, s) / 2
    expected = np.where(r > limit + s, 0, np.where(r > limit - s, part, whole))
    np.testing.assert_allclose(radii_definition.hct_term(r, rho, s, limit) / 2, expected, rtol=1e-9, atol=1e-16)


def sander_term(r: float, ri: float, sj: float, rgbmax: float) -> float:
    """Return what sander takes for another atom from an inverse Born radius, test by test in its order."""
    if r > rgbmax + sj:
        return 0.0
    if r > rgbmax - sj:
        part = 1 + 2 * r / (r - sj) + (r**2 - 4 * rgbmax * r - sj**2) / rgbmax**2 + 2 * np.log((r - sj) / rgbmax)
        return 0.125 / r * part
    if r > 4 * sj:  # all negative spheres, and small ones that overlap
        x = (sj / r) ** 2
        return sj * x / r**2 * (1 / 3 + x * (2 / 5 + x * (3 / 7 + x * (4 / 9 + x * 5 / 11))))
    if r > ri + sj:
        return 0.5 * (sj / (r**2 - sj**2) + 0.5 / r * np.log((r - sj) / (r + sj)))
    if r > abs(ri - sj):
        theta = 0.5 / ri / r * (r**2 + ri**2 - sj**2)
        return 0.25 * (1 / ri * (2 - theta) - 1 / (r + sj) + 1 / r * np.log(ri / (r + sj)))
    if ri < sj:
        return 0.5 * (sj / (r**2 - sj**2) + 2 / ri + 0.5 / r * np.log((sj - r) / (r + sj)))
    return 0.0


@pytest.mark.parametrize(("s", "apart"), [(-1.13, 1e-13), (-0.4, 1e-13), (0.24, 3e-6), (1.1, 2e-6), (2.2, 2e-6)])
def test_spheres_are_sanders(s, apart):
    """sander cuts its series short beyond 4 s, which tells in the sixth digit there; negative spheres have no other.

    0.24 A is the radius of nucleic oxygen, whose sphere overlaps with atoms that are farther than 4 s.
    """
    rho, limit = 1.3, 9.0
    around = [4 * abs(s) + 1e-3, limit - abs(s) - 1e-9, limit - abs(s) + 1e-9]
    r = np.concatenate([np.linspace(0.303, 11.0, 108), around])
    options = {"rgb_max": limit, "series_first": True}
    found = radii_definition.hct_term(r, np.array(rho), np.array(s), **options) / 2
    np.testing.assert_allclose(found, [sander_term(x, rho, s, limit) for x in r], rtol=apart, atol=1e-16)
    inside, step = r[(r > 0.5) & (abs(abs(r - limit) - abs(s)) > 0.01)], 1e-4
    up, down = ([sander_term(x + sign * step, rho, s, limit) for x in inside] for sign in (1, -1))
    slopes = definition_of_slope(inside, np.array(rho), np.array(s), **options) / 2
    np.testing.assert_allclose(slopes, (np.array(up) - down) / (2 * step), rtol=2e-5, atol=1e-7)


def test_tables_are_the_papers():
    """Their corners, and straight lines between their steps."""
    distances, sizes = tables()
    assert distances.shape == sizes.shape == (21, 21)
    assert (distances[0, 0], distances[-1, -1], sizes[0, 0], sizes[-1, -1]) == (2.26685, 4.3084, 0.0381511, 0.0111863)
    necks = Necks.of(few(np.eye(3), [1.0, 1.025, 1.15], ["C"] * 3), 2.0, "gbn")
    assert necks.distances[2, 1] == pytest.approx((distances[3, 0] + distances[3, 1]) / 2, rel=1e-14)
    nearest = Necks.of(few(np.eye(3), [1.17, 1.18, 1.15], ["C"] * 3), 1.0, "gbn", nearest=True)
    assert nearest.distances.tolist() == [[distances[i, j] for j in (3, 3, 4)] for i in (3, 3, 4)]
    assert necks.sizes[1, 2] == pytest.approx(sizes[0, 3] + sizes[1, 3], rel=1e-14)


def test_without_solvent(device, precision):
    """Lennard-Jones and Coulomb energy alone, with no radii at all."""
    atoms = replace(ATOMS, gb_radii=None, labels=None)
    model = SolventModel(gb="none", solute_dielectric=2.0)
    expected = definition.energy(atoms, model)
    for variant in ENERGY_VARIANTS:
        result = Energy(atoms, variant=variant, precision=precision, device=device, model=model).evaluate()
        assert not set(result.terms.names) & set(GB_TERMS)
        scale = sum(abs(values).sum() for values in expected.per_atom.values())
        assert result.total == pytest.approx(expected.total, abs=ENERGY[precision] * scale)
        apart = np.linalg.norm(result.gradient - expected.gradient) / np.linalg.norm(expected.gradient)
        assert apart < GRADIENT[precision]
        assert np.isnan(result.born_radii).all()
    with pytest.raises(InputError, match="so there is no solvent energy"):
        Solvent(atoms, device=device, model=model)
    listed = nonbond(atoms, all_pairs(atoms), device=device, model=model)
    assert listed.terms.names == ("lennard_jones", "coulomb")
    assert listed.total == pytest.approx(expected.total, rel=1e-4)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"labels": None}, InputError, "gbn2 has parameters by element and residue, but these atoms have no labels"),
        ({"gb_radii": None}, InputError, "needs gb_radii"),
        ({"gb_radii": np.full(150, 2.01)}, ParameterError, "2.01 A, but gbn2 has necks only for radii from 1 to 2 A"),
        ({"gb_radii": np.linspace(1.3, 1.9, 150)}, None, ""),
        ({"labels": labels_of(np.full(150, "X"), ("ALA",))}, ParameterError, "the element of .* is not known"),
    ],
)
def test_what_gbn2_needs(changes, error, words, device):
    atoms, model = replace(ATOMS, **changes), SolventModel(gb="gbn2")
    if error is None:
        assert Solvent(atoms, device=device, model=model).evaluate().total < 0
        return
    for plan in (Solvent, Energy):
        with pytest.raises(error, match=words):
            plan(atoms, device=device, model=model)


def test_models_say_what_they_cannot_take():
    with pytest.raises(InputError, match="alpha is 1, but gbn2 defines it by element; leave it out"):
        SolventModel(gb="gbn2", alpha=1.0)
    with pytest.raises(InputError, match="born_cutoff is 0; it must be positive"):
        SolventModel(born_cutoff=0)
    many = replace(ATOMS, positions=np.arange(3000.0).reshape(-1, 3)[:150], gb_radii=np.linspace(1, 2, 150))
    assert Necks.of(many, 1.0, "gbn").reach == pytest.approx(10.8)
