"""LCPO surfaces: parameters, areas against OpenMM and AMBER's cpptraj, kernels against the definition."""

import json
from dataclasses import replace
from pathlib import Path

import gemmi
import numpy as np
import pytest
from click.testing import CliRunner
from conftest import labels_of_elements, random_atoms
from test_energy import EVERY_VARIANT, options
from test_radii import topology_of
from test_reference_nonbond import relative
from tolerance import DIFFERENCES, ENERGY, GRADIENT

import pele_ocl
from pele_ocl import Atoms, Energy, InputError, Solvent, SolventModel
from pele_ocl.atoms import VirtualSites
from pele_ocl.atoms.lcpo import PARAMETERS, lcpo_notes, lcpo_parameters
from pele_ocl.atoms.sites import SiteRule
from pele_ocl.cli import main
from pele_ocl.ladder import SOLVENT as SOLVENT_VARIANTS
from pele_ocl.ladder import SolventLadder
from pele_ocl.reference.energy import energy as definition
from pele_ocl.reference.surface import surface_areas
from pele_ocl.tiles.surface import NEIGHBOURS

ROOT = Path(__file__).parent.parent
STRUCTURES, AMBER = ROOT / "data" / "structures", ROOT.parent / "shared" / "amber_samples"
DATA = Path(__file__).parent / "data"
LCPO = SolventModel(surface="lcpo")
NONE = SolventModel(surface="none")


@pytest.fixture(scope="module")
def peptide():
    """Without bonded terms, since with all forces of a relaxed structure little is left but rounding."""
    return replace(pele_ocl.read(STRUCTURES / "hexapeptide.pdb"), bonded=None)


@pytest.fixture(scope="module")
def ubiquitin():
    return pele_ocl.read(STRUCTURES / "ubiquitin.pdb")


def carbons(n, seed=0, density=0.1):
    """n atoms as `random_atoms` has them, rings of planar carbon to LCPO."""
    bonds = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    return replace(random_atoms(n, seed, density), labels=labels_of_elements(["C"] * n), bonds=bonds)


def openmm_surface(atoms, parameters, probe=1.4):
    """Area, A^2, and its gradient, (n, 3) A, by OpenMM's Reference platform."""
    openmm = pytest.importorskip("openmm")
    system, force = openmm.System(), openmm.LCPOForce()
    force.setSurfaceTension(1.0)
    for radius, p1, p2, p3, p4 in parameters.tolist():
        system.addParticle(1.0)
        force.addParticle((radius + probe) / 10 if radius else 0.0, p1, p2, p3, 100 * p4)
    system.addForce(force)
    platform = openmm.Platform.getPlatformByName("Reference")
    context = openmm.Context(system, openmm.VerletIntegrator(1e-9), platform)
    context.setPositions(atoms.positions / 10)
    state = context.getState(getEnergy=True, getForces=True)
    return 100 * state.getPotentialEnergy()._value, -10 * state.getForces(asNumpy=True)._value


@pytest.mark.parametrize("name", ["hexapeptide", "ubiquitin"])
def test_parameters_by_bonds_are_those_of_openmm(name):
    lcpo = pytest.importorskip("openmm.app.internal.lcpo")
    atoms = pele_ocl.read(STRUCTURES / f"{name}.pdb")
    expected = [[getattr(v, "_value", v) for v in row] for row in lcpo.getLCPOParamsTopology(topology_of(atoms))]
    np.testing.assert_array_equal(lcpo_parameters(atoms), expected)


def test_types_of_amber_decide_where_they_are_there(peptide):
    """An oxygen of type OH with one bond is no carbonyl, nor is nitrogen of type N3 planar."""
    n = len(peptide)
    types = np.where(peptide.labels.elements == "O", "OH", np.where(peptide.labels.elements == "N", "N3", "CT"))
    plain, typed = lcpo_parameters(peptide), lcpo_parameters(replace(peptide, types=types, type_family="amber"))
    oxygen = np.flatnonzero((peptide.labels.names == "O") & (peptide.labels.residue_index == 1))[0]
    nitrogen = np.flatnonzero((peptide.labels.names == "N") & (peptide.labels.residue_index == 1))[0]
    assert (plain[oxygen, 1], typed[oxygen, 1]) == (0.68563, 0.77914)
    assert (plain[nitrogen, 1], typed[nitrogen, 1]) == (0.41102, 0.22599)
    others = np.array(["opls_235"] * n)
    np.testing.assert_array_equal(lcpo_parameters(replace(peptide, types=others)), plain)


def test_types_of_gaff_are_ambers_in_small_letters(peptide):
    amber = np.array([{"O": "O", "N": "N3", "S": "SH", "C": "C"}.get(e, "H") for e in peptide.labels.elements])
    large, small = (replace(peptide, types=types, type_family="amber") for types in (amber, np.char.lower(amber)))
    np.testing.assert_array_equal(lcpo_parameters(large), lcpo_parameters(small))
    assert 0.77914 not in lcpo_parameters(small)[:, 1]  # of an oxygen that is no carbonyl's


def test_parameters_of_an_atom_do_not_follow_from_other_atoms_types(peptide):
    """An ion whose type has three letters, as in a topology of AMBER, is there, and in parts."""
    n = len(peptide)
    types = np.where(peptide.labels.elements == "O", "OH", np.where(peptide.labels.elements == "N", "N3", "CT"))
    typed = replace(peptide, types=types, type_family="amber")
    named = types.astype("U4")
    named[0] = "Zn2+"
    np.testing.assert_array_equal(lcpo_parameters(replace(typed, types=named))[1:], lcpo_parameters(typed)[1:])
    whole = replace(typed, types=named)
    starts = peptide.labels.residue_starts
    part = whole[starts[1] : starts[3]]
    cut = np.isin(np.arange(n), peptide.bonds[np.ptp(peptide.labels.residue_index[peptide.bonds], axis=1) > 0])
    inside = ~cut[starts[1] : starts[3]]
    np.testing.assert_array_equal(lcpo_parameters(part)[inside], lcpo_parameters(whole)[starts[1] : starts[3]][inside])
    assert part.type_family == "amber"
    with pytest.raises(InputError, match="type_family is 'opls'; choose '' or 'amber'"):
        replace(peptide, type_family="opls")


def small_molecule(type_: str, element: int, heavy: int, hydrogens: int) -> Atoms:
    """An atom of a type with carbons and hydrogens around it, as tests/benchmarks/lcpo_types.py makes them."""
    corners = [(1.5, 0, 0), (-1.5, 0, 0), (0, 1.5, 0), (0, -1.5, 0), (0, 0, 1.5), (0, 0, -1.5)]
    n = heavy + hydrogens
    elements = [gemmi.Element(element).name, *["C"] * heavy, *["H"] * hydrogens]
    types = np.array([type_, *["CT"] * heavy, *["HC"] * hydrogens])
    return Atoms(
        [(0, 0, 0), *corners[:n]], np.zeros(1 + n), labels=labels_of_elements(elements),
        bonds=[(0, k) for k in range(1, n + 1)], types=types, type_family="amber",
    )  # fmt: skip


def test_areas_by_ambers_types_are_cpptrajs():
    """The table was measured by lcpo_types.py with `cpptraj surf` of AmberTools 26."""
    model = SolventModel.like("mmpbsa.py")
    for line in (DATA / "lcpo_types.csv").read_text().splitlines()[1:]:
        type_, *numbers, area, warned = line.split(",")
        atoms = small_molecule(type_, *map(int, numbers))
        assert surface_areas(atoms, model)[0].sum() == pytest.approx(float(area), abs=1e-3), line
        first = atoms.labels.atom(0)
        assert any(f"{first} (type {type_}," in note for note in lcpo_notes(atoms, "amber")) == (warned == "1"), line


def test_programs_of_amber_have_their_rule_and_others_the_chemistry():
    rules = {
        name: SolventModel.like(name).lcpo_rule for name in ("amber", "sander", "mmpbsa.py", "gmx", "openmm", "pele")
    }
    assert rules == dict.fromkeys(("amber", "sander", "mmpbsa.py", "gmx"), "amber") | dict.fromkeys(
        ("openmm", "pele"), "chemistry"
    )
    chlorine = small_molecule("cl", 17, 1, 0)
    assert lcpo_parameters(chlorine)[0].tolist() == list(PARAMETERS["Cl"])
    assert lcpo_parameters(chlorine, rule="amber")[0].tolist() == list(PARAMETERS["C sp2 2"])
    untyped = replace(chlorine, types=None)
    np.testing.assert_array_equal(lcpo_parameters(untyped, rule="amber"), lcpo_parameters(untyped))


def test_virtual_sites_have_no_area_and_count_as_no_neighbours():
    atoms = small_molecule("br", 35, 1, 1)
    sites = VirtualSites.of([SiteRule(2, [0, 1], [1.5, -0.5])])
    for rule in ("chemistry", "amber"):
        with_site = lcpo_parameters(replace(atoms, virtual_sites=sites), rule=rule)
        np.testing.assert_array_equal(with_site[:2], lcpo_parameters(atoms[:2], rule=rule))
        assert not with_site[2].any()


def test_the_definition_is_openmms(ubiquitin):
    area, gradient = openmm_surface(ubiquitin, lcpo_parameters(ubiquitin))
    areas, slopes = surface_areas(ubiquitin, LCPO)
    assert areas.sum() == pytest.approx(area, rel=1e-12)
    assert relative(slopes, gradient) < 1e-12


def test_an_atom_alone_has_the_area_of_its_sphere():
    atoms = Atoms([[0, 0, 0], [9, 0, 0]], [0, 0], labels=labels_of_elements(["Cl", "H"]), bonds=[[0, 1]])
    heavy = replace(atoms, labels=labels_of_elements(["F", "H"]))
    areas, gradient = surface_areas(heavy, LCPO)
    assert areas.tolist() == [pytest.approx(4 * np.pi * 2.87**2 * 0.68563), 0]
    assert not gradient.any()
    with pytest.raises(InputError, match=r"LCPO has no parameters for atom 0.*: Br, 1 bonds, 0 of them to heavy atoms"):
        lcpo_parameters(replace(atoms, labels=labels_of_elements(["Br", "H"])), "refuse")


def test_atoms_without_parameters_take_those_of_carbon_and_a_note():
    """Unknown kinds get (1.7, 0.51245, ...), odd bonds the first of a kind, as in sander and NAB."""
    atoms = Atoms(9.0 * np.eye(4, 3), np.zeros(4), labels=labels_of_elements(["Zn", "Br", "I", "C"]), bonds=[[1, 2]])
    with_hydrogens = replace(
        atoms[np.r_[0:4]], labels=labels_of_elements(["C", "H", "H", "H"]), bonds=[[0, 1], [0, 2], [0, 3]]
    )
    assert (lcpo_parameters(atoms)[:3] == PARAMETERS["C sp2 2"]).all()
    assert (lcpo_parameters(with_hydrogens)[0] == PARAMETERS["C sp2 2"]).all()  # a methyl that stands alone
    (note,) = lcpo_notes(atoms)
    assert "LCPO has no parameters for" in note
    assert "(Zn, 0 bonds, 0 of them to heavy atoms)" in note
    assert lcpo_notes(replace(atoms, labels=None)) == ()
    model = replace(LCPO, lcpo_unknown="refuse")
    for plan in (Solvent, Energy):
        with pytest.raises(InputError, match=r"LCPO has no parameters for atom 0.*: Zn, .*lcpo_unknown='carbon'"):
            plan(replace(atoms, gb_radii=np.ones(4), gb_scales=np.ones(4), lj_sigma=np.ones(4), lj_epsilon=np.ones(4)),
                 model=model)  # fmt: skip


def test_the_command_says_which_atoms_take_carbons_parameters(tmp_path):
    path = tmp_path / "zinc.pqr"
    path.write_text("HETATM 1 ZN ZN A 1 0.0 0.0 0.0 2.0 1.4\nEND\n")
    found = CliRunner().invoke(main, ["solvent", str(path), "--surface", "lcpo", "--json"])
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["surface_area"] == pytest.approx(4 * np.pi * 3.1**2 * 0.51245, rel=1e-6)
    assert "Note: LCPO has no parameters for A:ZN1:ZN (Zn, 0 bonds" in found.stderr
    refused = CliRunner().invoke(main, ["solvent", str(path), "--surface", "lcpo", "--lcpo-unknown", "refuse"])
    assert refused.exit_code == 1
    assert "LCPO has no parameters for atom 0" in refused.stderr


@EVERY_VARIANT
def test_energy_and_gradient_are_the_definitions(device, precision, variant, peptide):
    there = dict(per_atom=variant != "squares", **options(device, precision, variant))
    bare, result = (Energy(peptide, model=model, **there).evaluate() for model in (NONE, LCPO))
    expected = definition(peptide, LCPO)
    areas = expected.per_atom["nonpolar"]
    assert result.nonpolar == pytest.approx(areas.sum(), rel=ENERGY[precision])
    assert result.total == pytest.approx(expected.total, rel=10 * ENERGY[precision])
    parts = np.sqrt(sum(np.sum(gradient**2) for gradient in expected.gradients.values()))  # which nearly cancel
    assert np.linalg.norm(result.gradient - expected.gradient) < GRADIENT[precision] * parts
    assert relative(result.gradient - bare.gradient, expected.gradients["nonpolar"]) < 10 * GRADIENT[precision]
    if result.per_atom is not None:
        scale = 50 * ENERGY[precision] * abs(areas).max()
        np.testing.assert_allclose(result.per_atom.nonpolar, areas, atol=scale)


def test_energies_alone_and_fixed_radii(device, precision, peptide):
    there = dict(device=device, precision=precision)
    expected, result = definition(peptide, LCPO), Energy(peptide, model=LCPO, **there).evaluate()
    alone = Energy(peptide, model=LCPO, gradient=False, **there).evaluate()
    assert alone.nonpolar == pytest.approx(result.nonpolar, rel=ENERGY[precision])
    fixed = Energy(peptide, model=LCPO, fixed_radii=True, **there).evaluate()
    bare = Energy(peptide, model=NONE, fixed_radii=True, **there).evaluate()
    assert relative(fixed.gradient - bare.gradient, expected.gradients["nonpolar"]) < 10 * GRADIENT[precision]


@pytest.mark.parametrize("variant", SOLVENT_VARIANTS)
def test_solvent_has_the_areas(device, precision, variant, peptide):
    areas = surface_areas(peptide, LCPO)[0]
    result = SolventLadder(peptide, model=LCPO, **options(device, precision, variant)).evaluate()
    np.testing.assert_allclose(result.per_atom.nonpolar / 0.0072, areas, atol=50 * ENERGY[precision] * areas.max())
    assert result.surface_area == pytest.approx(areas.sum(), rel=ENERGY[precision])
    assert result.nonpolar == pytest.approx(0.0072 * areas.sum(), rel=ENERGY[precision])
    assert not result.per_atom.nonpolar[peptide.labels.elements == "H"].any()


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("n", [3, 33, 500])
def test_all_sizes(device, precision, n):
    device.require_precision(precision)
    atoms = carbons(n, seed=n)
    areas, slopes = surface_areas(atoms, LCPO)
    there = dict(device=device, precision=precision)
    bare, result = (Energy(atoms, model=model, **there).evaluate() for model in (NONE, LCPO))
    # Dense as these are, areas of atoms cancel: parts are what the digits are of.
    parts = 4 * np.pi * 3.1**2 * 0.51245 * n * 0.0072
    assert abs(result.nonpolar - 0.0072 * areas.sum()) < 10 * ENERGY[precision] * parts
    error = np.linalg.norm(result.gradient - bare.gradient - 0.0072 * slopes)
    assert error < GRADIENT[precision] * (np.linalg.norm(bare.gradient) + 10 * np.linalg.norm(0.0072 * slopes))


def test_more_tiles_around_than_are_listed(device, monkeypatch, ubiquitin):
    from pele_ocl.tiles import surface

    plan = Solvent(ubiquitin, model=LCPO, device=device)
    listed = plan.evaluate().per_atom.nonpolar
    monkeypatch.setattr(surface, "TILES_AROUND", 5)
    np.testing.assert_array_equal(Solvent(ubiquitin, model=LCPO, device=device).evaluate().per_atom.nonpolar, listed)


def test_groups_of_gpus_list_the_same_neighbours(device, precision, monkeypatch):
    """Work-items of a group mark their neighbours together; CPUs have one."""
    from pele_ocl.tiles import surface

    if device.kind != "CPU":
        pytest.skip("groups are of many work-items here anyway")
    atoms = carbons(300)
    alone = Solvent(atoms, model=LCPO, device=device, precision=precision).evaluate().per_atom.nonpolar
    monkeypatch.setattr(surface, "shape_for", lambda queue: (64, 1))
    groups = Solvent(atoms, model=LCPO, device=device, precision=precision).evaluate().per_atom.nonpolar
    np.testing.assert_allclose(groups, alone, atol=20 * ENERGY[precision] * abs(alone).max())


def test_batches_and_runs_have_the_same_bits(device, precision, ubiquitin):
    plan = Energy(ubiquitin, model=LCPO, device=device, precision=precision)
    noise = np.random.default_rng(3).normal(0, 0.05, ubiquitin.positions.shape)
    batch = plan.evaluate_batch(np.stack([ubiquitin.positions, ubiquitin.positions + noise]))
    for k in (0, 1):
        again = plan.evaluate(batch.positions[k])
        np.testing.assert_array_equal(again.energies, batch[k].energies)
        np.testing.assert_array_equal(again.gradient, batch[k].gradient)
    assert batch.nonpolar[1] == pytest.approx(
        0.0072 * surface_areas(ubiquitin.moved(batch.positions[1]), LCPO)[0].sum(), rel=2 * ENERGY[precision]
    )


def test_central_differences(device, peptide):
    device.require_precision("float64")
    plan = Energy(peptide, model=replace(LCPO, surface_tension=1.0), device=device, precision="float64")
    gradient = plan.evaluate().gradient
    along = np.random.default_rng(2).normal(size=gradient.shape)
    up, down = (plan.evaluate(peptide.positions + step * along).total for step in (1e-5, -1e-5))
    assert (up - down) / 2e-5 == pytest.approx((gradient * along).sum(), rel=DIFFERENCES)


@pytest.mark.parametrize("plan", [Solvent, Energy])
def test_too_many_neighbours_are_an_error(plan, device, precision):
    atoms = carbons(NEIGHBOURS + 30, density=3.0)
    with pytest.raises(
        InputError, match="neighbours, too many for an LCPO surface, which supports up to 192; check for"
    ):
        plan(atoms, model=LCPO, device=device, precision=precision).evaluate()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(labels=None), "LCPO surfaces need elements, which these atoms do not have"),
        (
            dict(bonds=np.empty((0, 2), int), bonded=None),
            "LCPO surfaces need bonds, which these atoms do not have",
        ),
    ],
)
@pytest.mark.parametrize("plan", [Solvent, Energy])
def test_atoms_that_have_no_surface(plan, peptide, change, message):
    with pytest.raises(InputError, match=message):
        plan(replace(peptide, **change), model=LCPO)


def test_areas_are_those_of_lcpo_alone(peptide):
    with pytest.raises(InputError, match="a surface area is only computed with surface='lcpo'"):
        _ = Solvent(peptide).evaluate().surface_area


@pytest.mark.parametrize("command", ["solvent", "energy"])
def test_the_option(command, peptide):
    path = str(STRUCTURES / "hexapeptide.pdb")
    report = json.loads(CliRunner().invoke(main, [command, path, "--surface", "lcpo", "--json"]).stdout)
    area = surface_areas(peptide, LCPO)[0].sum()
    assert report["settings"]["surface_tension"] == 0.0072
    assert report["surface_area"] == pytest.approx(area, rel=1e-6)
    text = CliRunner().invoke(main, [command, path, "--surface", "lcpo", "--surface-tension", "0.005"]).stdout
    assert f"Surface area  {area:,.1f} A^2 (LCPO)" in text


def sections(path):
    """Read the sections of a prmtop file for this test, as blank-separated words or fields of four characters."""
    found = {}
    for part in path.read_text().split("%FLAG ")[1:]:
        head, form, *lines = part.splitlines()
        width = 4 if "a4" in form else None
        text = [line[i : i + 4].strip() for line in lines for i in range(0, len(line), 4)] if width else None
        found[head.strip()] = text if width else " ".join(lines).split()
    return found


@pytest.mark.skipif(not AMBER.exists(), reason="AMBER's samples are not here")
def test_areas_of_cpptraj(device):
    """100 frames of DPDP: cpptraj prints areas in A^2 with four digits."""
    netcdf = pytest.importorskip("netCDF4")
    parm = sections(AMBER / "DPDP.parm7")
    names = {1: "H", 12: "C", 14: "N", 16: "O", 32: "S"}
    elements = [names[round(float(mass))] for mass in parm["MASS"]]
    bonds = np.array(parm["BONDS_INC_HYDROGEN"] + parm["BONDS_WITHOUT_HYDROGEN"], int).reshape(-1, 3)[:, :2] // 3
    with netcdf.Dataset(AMBER / "DPDP.nc") as file:
        frames = np.array(file["coordinates"][:], float)
    n = len(elements)
    atoms = Atoms(
        frames[0], np.zeros(n), gb_radii=np.full(n, 1.5), gb_scales=np.full(n, 0.8), bonds=bonds,
        labels=labels_of_elements(elements), types=np.array(parm["AMBER_ATOM_TYPE"][:n]),
    )  # fmt: skip
    printed = np.loadtxt(AMBER / "surf.dat")[:, 1]
    areas = Solvent(atoms, model=LCPO, device=device).evaluate_batch(frames).nonpolar / 0.0072
    assert abs(areas - printed).max() < 6e-3  # of 2,700 A^2 in float32
    if device.has_float64:
        precise = Solvent(atoms, model=LCPO, device=device, precision="float64").evaluate_batch(frames).nonpolar
        assert abs(precise / 0.0072 - printed).max() < 6e-5
