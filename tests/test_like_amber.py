"""Generalized Born energies with sander's constants, against its formulas written out in NumPy.

The topology is our own, of two hexapeptides so far apart that sander's rgbmax of 25 A cuts through the second. The GB
models are those of igb = 1, 2, 5, 7 and 8; numbers that AMBER's programs printed are in test_amber_samples.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from amber_helpers import content, hexapeptide, rendered, restart

from pele_ocl import Atoms, Energy, SolventModel, read

RGB_MAX, COULOMB, WATER, SALT = 25.0, 18.2223**2, 78.5, 0.5
APART = np.array([24.0, 9.0, -4.0])  # A
NECKS = np.loadtxt(Path(__file__).parent.parent / "data" / "gb_necks.csv", delimiter=",").reshape(2, 21, 21)
NECK_REACH = 6.8  # A
BETWEEN_STEPS = 1.17  # A, of mbondi3's arginine; sander takes the necks of 1.15
SERIES = (1 / 3, 2 / 5, 3 / 7, 4 / 9, 5 / 11)  # sander's, of spheres that are small and far, or negative


@dataclass(frozen=True)
class Model:
    """offset A; scales by element, None for SCREEN; alpha, beta, gamma for all or by element; factor of the necks."""

    radii: str
    offset: float = 0.09
    scales: dict[str, float] | None = None
    tanh: tuple[float, ...] | dict[str, tuple[float, ...]] | None = None
    neck: float = 0.0


MODELS = {
    "hct": Model("mbondi"),
    "obc1": Model("mbondi2", tanh=(0.8, 0.0, 2.909125)),
    "obc2": Model("mbondi2", tanh=(1.0, 0.8, 4.85)),
    "gbn": Model(
        "bondi",
        scales={"H": 1.09085413633, "C": 0.484353823306, "N": 0.700147318409, "O": 1.06557401132, "S": 0.602256336067},
        tanh=(1.09511284, 1.90792938, 2.50798245),
        neck=0.361825,
    ),
    "gbn2": Model(
        "mbondi3",
        offset=0.195141,
        scales={"H": 1.425952, "C": 1.058554, "N": 0.733599, "O": 1.061039, "S": -0.703469},
        tanh={
            "H": (0.788440, 0.798699, 0.437334), "C": (0.733756, 0.506378, 0.205844),
            "N": (0.503364, 0.316828, 0.192915), "O": (0.867814, 0.876635, 0.387882),
            "S": (0.867814, 0.876635, 0.387882),
        },
        neck=0.826836,
    ),
}  # fmt: skip


def sphere(r: float, rho: float, s: float) -> float:
    """Integrate 1/(4 pi x^4) over a sphere of radius s, at a distance r, from rho to rgbmax."""
    if r > RGB_MAX + s:
        return 0.0
    if s < 0:
        return s * s**2 / r**4 * sum(c * (s / r) ** (2 * k) for k, c in enumerate(SERIES))
    if r + s <= rho:
        return 0.0
    low, high = max(rho, abs(r - s)), min(r + s, RGB_MAX)
    whole = (
        1 / low - 1 / high + (r - s**2 / r) * (1 / high**2 - 1 / low**2) / 4 + np.log(low / high) / (2 * r)
    ) / 2  # fmt: skip
    return whole + max(0.0, 1 / rho - 1 / low) * (s - r > rho)


def neck(r: float, own: float, other: float) -> float:
    """Integrate the neck to an atom of another radius, before the factor."""
    if r >= own + other + NECK_REACH:
        return 0.0
    i, j = (round(20 * (radius - 1)) for radius in (own, other))
    beyond = (r - NECKS[0, j, i]) ** 2
    return float(NECKS[1, j, i] / (1 + beyond + 0.3 * beyond**3))


def born_radii(atoms: Atoms, model: Model) -> np.ndarray:
    x, elements = atoms.positions, atoms.labels.elements.tolist()
    rho = atoms.gb_radii - model.offset
    s = rho * (atoms.gb_scales if model.scales is None else [model.scales[e] for e in elements])
    found = np.empty(len(atoms))
    for i, own in enumerate(rho.tolist()):
        others = [j for j in range(len(atoms)) if j != i]
        r = np.linalg.norm(x - x[i], axis=1).tolist()
        lost = sum(sphere(r[j], own, s[j]) for j in others)
        if model.neck:
            lost += model.neck * sum(neck(r[j], atoms.gb_radii[i], atoms.gb_radii[j]) for j in others)
        if model.tanh is None:
            found[i] = 1 / (1 / own - lost)
            continue
        alpha, beta, gamma = model.tanh[elements[i]] if isinstance(model.tanh, dict) else model.tanh
        psi = own * lost
        found[i] = 1 / (1 / own - np.tanh(alpha * psi - beta * psi**2 + gamma * psi**3) / atoms.gb_radii[i])
    return found


def solvation(atoms: Atoms, born: np.ndarray) -> float:
    """Still's energy of all pairs and atoms, kcal/mol, with sander's kappa."""
    kappa = 0.73 * np.sqrt(0.10806 * SALT)
    x, q = atoms.positions, atoms.charges
    r2 = ((x[:, None] - x) ** 2).sum(axis=2)
    both = np.outer(born, born)
    f = np.sqrt(r2 + both * np.exp(-r2 / (4 * both)))
    return float(-COULOMB / 2 * (np.outer(q, q) / f * (1 - np.exp(-kappa * f) / WATER)).sum())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A topology and a restart of two hexapeptides."""
    folder = tmp_path_factory.mktemp("amber")
    x = hexapeptide().positions
    (folder / "two.parm7").write_text(rendered(content(copies=2)))
    (folder / "two.rst7").write_text(restart(np.concatenate([x, x + APART])))
    return folder / "two.parm7", folder / "two.rst7"


@pytest.mark.parametrize("gb", MODELS)
def test_igb(files: tuple[Path, Path], gb: str) -> None:
    topology, coordinates = files
    atoms = read(topology, coordinates=coordinates).with_radii(MODELS[gb].radii)
    some = (atoms.labels.residue_names == "LYS") & (atoms.labels.elements == "H")
    atoms = replace(atoms, gb_radii=np.where(some, BETWEEN_STEPS, atoms.gb_radii))
    distances = np.linalg.norm(atoms.positions[:, None] - atoms.positions, axis=2)
    assert (distances < RGB_MAX - 3).any(axis=1).all()
    assert (distances > RGB_MAX).any(axis=1).sum() > 50
    born = born_radii(atoms, MODELS[gb])
    model = SolventModel.like("amber", gb=gb, ionic_strength=SALT)
    result = Energy(atoms, model=model, gradient=False, precision="float64").evaluate()
    np.testing.assert_allclose(result.born_radii, born, rtol=1e-9)
    assert result.gb_pair + result.gb_self == pytest.approx(solvation(atoms, born), rel=1e-10)
