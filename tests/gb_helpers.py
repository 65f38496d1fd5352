"""Molecules for tests of GB models: labels, radii, a short prmtop, OpenMM forces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pele_ocl import Atoms, SolventModel
from pele_ocl.atoms import Labels
from pele_ocl.units import COULOMB_KCAL_A

SYMBOLS = {1: "H", 6: "C", 7: "N", 8: "O", 15: "P", 16: "S"}
RADII = {"H": 1.2, "C": 1.7, "N": 1.55, "O": 1.5, "S": 1.8, "P": 1.85, "Cl": 1.7}


def labels_of(elements: np.ndarray, names: Sequence[str], residue: int = 10) -> Labels:
    """Return labels of atoms of these elements, in residues of equal size with these atom names."""
    n = len(elements)
    number = np.arange(n) // residue
    empty = np.full(n, "")
    return Labels(elements, elements, np.array(names)[number % len(names)], number + 1, empty, empty, number)


def with_mbondi3(atoms: Atoms) -> Atoms:
    """Return the atoms with mbondi3 radii as in ParmEd, by bonds and names, except oxygens at the C-terminus."""
    symbols, names = atoms.labels.elements.tolist(), atoms.labels.names.tolist()
    oxygens = {"ASP": "OD", "AS4": "OD", "GLU": "OE", "GL4": "OE"}
    near: list[list[int]] = [[] for _ in symbols]
    for i, j in atoms.bonds.tolist():
        near[i].append(j)
        near[j].append(i)
    radii = np.array([RADII[symbol] for symbol in symbols])
    for i, symbol in enumerate(symbols):
        if symbol == "H" and near[i] and symbols[near[i][0]] == "N":
            radii[i] = 1.3
        residue = str(atoms.labels.residue_names[i])
        if residue in oxygens and names[i].startswith(oxygens[residue]):
            radii[i] = 1.4
        if residue == "ARG" and names[i].startswith(("HH", "HE")):
            radii[i] = 1.17
    return replace(atoms, gb_radii=radii)


def read_parm(topology: Path, coordinates: Path) -> Atoms:
    """Read the atoms of an AMBER topology, as far as GB models need them."""
    sections: dict[str, str] = {}
    for section in topology.read_text().split("%FLAG ")[1:]:
        name, _, rest = section.partition("\n")
        sections[name.strip()] = rest.partition("\n")[2]

    def numbers(name: str) -> np.ndarray:
        return np.array(sections[name].split(), np.float64)

    n = int(numbers("POINTERS")[0])
    elements = np.array([SYMBOLS[int(number)] for number in numbers("ATOMIC_NUMBER")])
    text = sections["ATOM_NAME"].replace("\n", "")
    names = np.array([text[4 * k : 4 * k + 4].strip() for k in range(n)])
    starts = numbers("RESIDUE_POINTER").astype(int) - 1
    index = np.searchsorted(starts, np.arange(n), side="right") - 1
    residues = np.array(sections["RESIDUE_LABEL"].split())[index]
    empty = np.full(n, "")
    bonds = np.concatenate([numbers(f"BONDS_{kind}_HYDROGEN").reshape(-1, 3) for kind in ("INC", "WITHOUT")])
    words = coordinates.read_text().splitlines()[2:]
    values = [float(line[12 * k : 12 * k + 12]) for line in words for k in range(len(line.rstrip()) // 12)]
    return Atoms(
        np.array(values[: 3 * n]).reshape(n, 3), numbers("CHARGE") / 18.2223, gb_radii=numbers("RADII"),
        labels=Labels(names, elements, residues, index + 1, empty, empty, index),
        bonds=(bonds[:, :2] / 3).astype(np.int32),
    )  # fmt: skip


def amber_solvent(atoms: Atoms, gb: str, salt: float) -> tuple[Atoms, SolventModel]:
    """Return atoms and model with the constants of sander: Coulomb's constant in the charges, kappa by temperature."""
    atoms = replace(atoms, charges=atoms.charges * 18.2223 / np.sqrt(COULOMB_KCAL_A))
    model = SolventModel(gb=gb, ionic_strength=salt, solvent_dielectric=78.5, surface_tension=0)
    if salt:
        kappa = 0.73 * np.sqrt(0.10806 * salt)
        model = replace(model, temperature=model.temperature * (model.kappa / kappa) ** 2)
    return atoms, model


OPENMM_COULOMB = 1389.35485 / 4.184  # kcal A/(mol e^2), of its CustomGBForces


def openmm_energy(atoms: Atoms, gb: str, kappa: float) -> tuple[float, np.ndarray, SolventModel]:
    """Return energy and gradient of OpenMM's force for labelled atoms, kcal/mol and A, and the model in pele-ocl."""
    import openmm
    from openmm.app import Element
    from openmm.app.internal import customgbforces

    force_type = {"gbn": customgbforces.GBSAGBnForce, "gbn2": customgbforces.GBSAGBn2Force}[gb]
    force = force_type(solventDielectric=80.0, soluteDielectric=1.0, SA="ACE", kappa=10 * kappa)
    scale = np.sqrt(COULOMB_KCAL_A / OPENMM_COULOMB)
    nucleic = [name in ("A", "C", "G", "U", "DA", "DC", "DG", "DT") or name[:2] in ("DC", "DT")
               for name in atoms.labels.residue_names]  # fmt: skip
    rows = zip(atoms.labels.elements, atoms.charges, atoms.gb_radii, nucleic, strict=True)
    for symbol, charge, radius, in_dna in rows:
        element = Element.getBySymbol(symbol)
        screens = customgbforces._SCREEN_PARAMETERS.get(element, customgbforces._SCREEN_PARAMETERS[None])
        if gb == "gbn":
            force.addParticle([scale * charge, radius / 10, screens[1]])
            continue
        table = force_type._atom_params_nucleic if in_dna else force_type._atom_params
        values = table.get(element, force_type._default_atom_params)
        force.addParticle([scale * charge, radius / 10, screens[3 if in_dna else 2], *values])
    force.finalize()
    system = openmm.System()
    for _ in range(len(atoms)):
        system.addParticle(1.0)
    system.addForce(force)
    platform = openmm.Platform.getPlatformByName("Reference")
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), platform)
    context.setPositions(atoms.positions / 10)
    state = context.getState(getEnergy=True, getForces=True)
    energy = state.getPotentialEnergy()._value / 4.184
    gradient = -state.getForces(asNumpy=True)._value / 41.84
    model = SolventModel(
        gb=gb, surface_tension=28.3919551 / 4.184 / (4 * np.pi) / 100, ionic_strength=0.1,
        # OpenMM's beta of GBn is another than the paper's and AMBER's, a figure too many.
        **({"beta": 1.907992938} if gb == "gbn" else {}),
    )  # fmt: skip
    return energy, gradient, model
