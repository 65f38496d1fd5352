"""GBn, GBn2 and LCPO on the device against OpenMM's Reference platform: proteins, DNA, a ligand, a metal."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from bonded_helpers import _dna, _relaxed
from gb_helpers import RADII, labels_of, openmm_energy, with_mbondi3
from test_surface import openmm_surface
from tolerance import ENERGY, GRADIENT

import pele_ocl
from pele_ocl import Atoms, Energy, SolventModel
from pele_ocl.atoms.lcpo import lcpo_parameters

STRUCTURES = Path(__file__).parent.parent / "data" / "structures"
SOLVENT = ("gb_pair", "gb_self", "nonpolar")
LARGE = [pytest.param(name, marks=pytest.mark.slow) for name in ("src3", "ruvab")]
SYSTEMS = ["hexapeptide", "dna", "ligand", "metal", *LARGE]


def atoms_of(positions, elements, residue: str, charges=None) -> Atoms:
    elements = np.array(elements)
    n = len(elements)
    charges = np.linspace(-0.4, 0.5, n) if charges is None else charges
    radii = [RADII.get(symbol, 1.2) for symbol in elements]
    return Atoms(positions, charges, gb_radii=radii, labels=labels_of(elements, (residue,), n))


def ligand() -> Atoms:
    """Chlorobenzene."""
    turns = np.arange(6) * np.pi / 3
    ring = np.stack([np.cos(turns), np.sin(turns), 0 * turns], axis=1)
    outer = np.where(np.arange(6) == 0, 3.13, 2.47)[:, None] * ring
    return atoms_of(np.concatenate([1.39 * ring, outer]), [*"CCCCCC", "Cl", *"HHHHH"], "LIG")


def metal() -> Atoms:
    """Zinc among four thiolates, whose sulphurs have negative spheres in GBn2."""
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3)
    aside = np.cross(corners, [1.0, 2.0, 3.0])
    aside /= np.linalg.norm(aside, axis=1)[:, None]
    sulphurs, carbons = 2.33 * corners, 2.80 * corners + 1.75 * aside
    hydrogens = [carbons + 1.09 * way for way in (corners, aside, np.cross(corners, aside))]
    positions = np.concatenate([np.zeros((1, 3)), sulphurs, carbons, *hydrogens])
    return atoms_of(positions, ["Zn", *4 * "S", *4 * "C", *12 * "H"], "CYM")


def dna() -> Atoms:
    """A strand of four nucleotides, relaxed in its force field."""
    openmm = pytest.importorskip("openmm")
    from openmm import app, unit

    field = app.ForceField("amber14/DNA.OL15.xml")
    topology, positions = _dna(field)
    system = field.createSystem(topology)
    context = openmm.Context(system, openmm.VerletIntegrator(1e-3), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(_relaxed(system, positions))
    openmm.LocalEnergyMinimizer.minimize(context, maxIterations=300)
    positions = context.getState(getPositions=True).getPositions(asNumpy=True).value_in_unit(unit.angstrom)
    return with_mbondi3(pele_ocl.from_openmm(topology, system, positions / 10))


@cache
def system(name: str) -> Atoms:
    made = {"ligand": ligand, "metal": metal, "dna": dna}
    if name in made:
        return made[name]()
    return with_mbondi3(pele_ocl.read(next(STRUCTURES.glob(f"{name}.pdb*"))))


@cache
def openmms(name: str, gb: str):
    pytest.importorskip("openmm")
    atoms = SolventModel(gb=gb).choose_radii(system(name))
    return openmm_energy(atoms, gb, SolventModel(ionic_strength=0.1).kappa)


@pytest.mark.parametrize("gb", ["gbn", "gbn2"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_necks_are_openmms(name, gb, device, precision):
    if precision == "float64" and not device.has_float64:
        pytest.skip(f"{device} has no float64")
    energy, gradient, model = openmms(name, gb)
    found = Energy(system(name), only_terms=SOLVENT, precision=precision, device=device, model=model).evaluate()
    parts = abs(found.terms.values).sum()
    assert found.total == pytest.approx(energy, abs=ENERGY[precision] * parts)
    assert np.linalg.norm(found.gradient - gradient) < GRADIENT[precision] * np.linalg.norm(gradient)


@pytest.mark.parametrize("name", ["hexapeptide", "dna", *LARGE])
def test_lcpo_is_openmms(name, device, precision):
    if precision == "float64" and not device.has_float64:
        pytest.skip(f"{device} has no float64")
    atoms = system(name)
    area, gradient = openmm_surface(atoms, lcpo_parameters(atoms))
    model = SolventModel(surface="lcpo", surface_tension=1.0, gb="gbn")
    found = Energy(atoms, only_terms=["nonpolar"], precision=precision, device=device, model=model).evaluate()
    assert found.surface_area == pytest.approx(area, rel=ENERGY[precision])
    assert np.linalg.norm(found.gradient - gradient) < 10 * GRADIENT[precision] * np.linalg.norm(gradient)
