"""Radii of Tan and Luo: pbsa's rules on fragments whose radii are read off by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pele_ocl import Atoms, InputError, Labels
from pele_ocl.atoms.tan_luo import tan_luo_notes, tan_luo_radii
from pele_ocl.binding import PBSolvent
from pele_ocl.binding.poisson_boltzmann import PBEnergy, default_model


def fragment(residue: str, atoms: str, bonds: list[tuple[int, int]], family: str = "amber") -> Atoms:
    """Atoms of a residue. atoms : "name type charge" of each, with commas between"""
    names, types, charges = zip(*(words.split() for words in atoms.split(",")), strict=True)
    n = len(names)
    labels = Labels(
        names=np.array(names), residue_names=np.array([residue] * n), residue_numbers=np.ones(n, int),
        insertion_codes=np.array([""] * n), chains=np.array(["A"] * n), elements=np.array([kind[0] for kind in types]),
        residue_index=np.zeros(n, int),
    )  # fmt: skip
    positions = np.random.default_rng(1).normal(size=(n, 3)) * 2
    return Atoms(
        positions, np.array(charges, float), gb_radii=np.full(n, 1.5), gb_scales=np.full(n, 0.8),
        lj_sigma=np.full(n, 3.0), lj_epsilon=np.full(n, 0.1), labels=labels, types=np.array(types),
        type_family=family, bonds=np.array(bonds).reshape(-1, 2),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("residue", "atoms", "bonds", "radii"),
    [
        # a peptide bond: C bears no charge, N one hydrogen
        (
            "ALA", "CA CT 0.1,HA H1 0.08,C C 0.6,O O -0.57,N N -0.42,H H 0.27",
            [(0, 1), (0, 2), (2, 3), (2, 4), (4, 5)], [2.25, 0, 2.00, 1.57, 1.95, 0],
        ),
        # the charged ends of lysine and aspartate
        ("LYS", "CE CT -0.01,HE HP 0.2,NZ N3 -0.1,HZ1 H 0.3,HZ2 H 0.3,HZ3 H 0.3",
         [(0, 1), (0, 2), (2, 3), (2, 4), (2, 5)], [2.50, 0, 2.50, 0, 0, 0]),
        ("ASP", "CB CT -0.2,HB HC 0.1,CG C 0.8,OD1 O2 -0.8,OD2 O2 -0.8",
         [(0, 1), (0, 2), (2, 3), (2, 4)], [2.25, 0, 1.65, 1.25, 1.25]),
        # hydroxyls of a chain and of a ring
        ("SER", "OG OH -0.6,HG HO 0.4", [(0, 1)], [1.79, 0]),
        ("TYR", "OH OH -0.6,HH HO 0.4,CZ C 0.2", [(0, 1), (0, 2)], [1.925, 0, 2.00]),
        # aromatic carbons with and without a hydrogen, and of a charged histidine
        ("PHE", "CG CA 0.0,CD1 CA -0.1,HD1 HA 0.1", [(0, 1), (1, 2)], [1.75, 2.15, 0]),
        ("HIP", "CE1 CR 0.0,HE1 H5 0.2,NE2 NA -0.1,HE2 H 0.4", [(0, 1), (0, 2), (2, 3)], [2.65, 0, 2.65, 0]),
        # a sugar's ring, a phosphate, a thiol and a disulphide
        ("DA5", "O4' OS -0.4,P P 1.2,O5' OH -0.6", [], [1.25, 1.95, 1.79]),
        ("CYS", "SG SH -0.3,HG HS 0.2,SG S -0.1", [(0, 1)], [2.30, 0, 2.00]),
        # a ligand keeps its own
        ("LIG", "C1 ca 0.0,H1 ha 0.1", [(0, 1)], [1.5, 1.5]),
    ],
)  # fmt: skip
def test_radii_of_fragments(residue: str, atoms: str, bonds: list[tuple[int, int]], radii: list[float]) -> None:
    assert_allclose(tan_luo_radii(fragment(residue, atoms, bonds)), radii)


def test_types_of_ff14sb_are_the_ones_they_were_split_from() -> None:
    chain = "CB {} 0.0,HB HC 0.1,CG {} 0.6,OD O2 -0.7"
    bonds = [(0, 1), (0, 2), (2, 3)]
    old, new = (fragment("ASP", chain.format(*types), bonds) for types in (("CT", "C"), ("2C", "CO")))
    assert_allclose(tan_luo_radii(new), tan_luo_radii(old))
    assert tan_luo_notes(old) == ()
    (sentence,) = tan_luo_notes(new)
    assert sentence.endswith("were split: 2C as CT, CO as C")
    assert_allclose(tan_luo_radii(fragment("LYS", "CD C8 0.0,HD HC 0.1", [(0, 1)])), [2.25, 0])


def test_what_has_no_radius_is_named() -> None:
    with pytest.raises(InputError, match=r"A:GLY1:N has the type N3, without a radius of Tan and Luo; .*radiopt=0"):
        tan_luo_radii(fragment("GLY", "N N3 0.1,C XX 0.5", []))
    with pytest.raises(InputError, match="need the atom types of an AMBER topology"):
        tan_luo_radii(fragment("GLY", "N N 0.1", [], family=""))


def test_energies_are_of_these_spheres() -> None:
    atoms = fragment("SER", "CB CT 0.2,HB HC 0.1,OG OH -0.7,HG HO 0.4", [(0, 1), (0, 2), (2, 3)])
    positions = np.array([[0, 0, 0], [-0.9, 0.6, 0], [1.4, 0, 0], [1.7, 0.9, 0]])
    atoms = atoms.moved(positions)
    energies = []
    for radii in ("own", "tan-luo"):
        plan = PBEnergy(atoms, PBSolvent(spacing=1.0, radii=radii), model=default_model(None), one_four="exclude")
        energies.append(plan.evaluate_batch(positions[None]).terms.pb[0])
    assert energies[1] > energies[0] + 0.1  # less, because these spheres are larger
