"""Shares of residues and pairs add up; alanine scans against mutants made by hand; files and pictures of both."""

from __future__ import annotations

import csv
from dataclasses import replace

import h5py
import numpy as np
import pytest
from binding_helpers import LIGAND, N, complex_atoms, frames, mutable_residues

from pele_ocl import Binding, FormatError, InputError, SolventModel, read
from pele_ocl.binding.alanine import CH, alanine_scan, alanines_of, interface_residues, to_alanine
from pele_ocl.binding.decomposition import write_decomposition
from pele_ocl.binding.pictures import draw_pairs, draw_residues, draw_running_mean, write_coloured
from pele_ocl.forcefield import ForceField
from pele_ocl.formats import read_structure

MODELS = {
    "gmx": SolventModel.like("gmx"), "inside": SolventModel(solute_dielectric=2.0, ionic_strength=0.1),
    "vacuum": SolventModel(gb="none"),
}  # fmt: skip


def made(idecomp=3, model=None, **options):
    plan = Binding(complex_atoms(), LIGAND, model=model, idecomp=idecomp, **options)
    return plan, plan.evaluate_batch(frames(3))


@pytest.mark.parametrize(("name", "idecomp"), [("gmx", 3), ("inside", 4), ("vacuum", 3)])
def test_shares_add_up(device, name, idecomp):
    _, found = made(idecomp, MODELS[name], precision="float64", device=device)
    of = found.decomposition
    for kind, terms in (("complex", found.complex), ("delta", found.delta)):
        total = terms.total.mean()
        assert of.per_residue[kind].total.sum() == pytest.approx(total, abs=1e-9)
        assert of.pairs[kind].total.sum() == pytest.approx(total, abs=1e-9)
        assert of.pairs[kind].mean.sum(axis=1) == pytest.approx(of.per_residue[kind].mean, abs=1e-9)
    parts = found.receptor.total.mean(), found.ligand.total.mean()
    shares = of.per_residue["parts"].total
    assert (shares[~of.is_ligand].sum(), shares[of.is_ligand].sum()) == pytest.approx(parts, abs=1e-9)
    assert (of.pairs["delta"].mean == of.pairs["delta"].mean.transpose(1, 0, 2)).all()
    assert not of.pairs["parts"].mean[~of.is_ligand][:, of.is_ligand].any()  # none between the parts
    assert of.pairs["delta"].mean[~of.is_ligand][:, of.is_ligand].any()


def test_one_conformation_has_its_decomposition(device):
    plan, _ = made(2, device=device)
    one = plan.evaluate(frames(1)[0])
    assert one.decomposition.n_frames == 1
    assert one.decomposition.per_residue["delta"].total.sum() == pytest.approx(float(one.total), abs=1e-3)


def test_a_pair_of_residues_is_that_of_their_atoms(device):
    """Lennard-Jones, Coulomb and GB energy of two residues of two parts, written out in NumPy."""
    plan, found = made(4, SolventModel.like("gmx", solute_dielectric=3.0), precision="float64", device=device)
    atoms, of = plan.atoms, found.decomposition
    a, b = (np.flatnonzero(atoms.labels.residue_index == k) for k in (2, 8))
    lj = coulomb = gb = 0.0
    born = plan.plans["complex"].evaluate_batch(frames(3)).born_radii
    for x, radii in zip(frames(3).astype(float), born, strict=True):
        r = np.linalg.norm(x[a][:, None] - x[b], axis=2)
        s6 = ((atoms.lj_sigma[a][:, None] + atoms.lj_sigma[b]) / 2 / r) ** 6
        lj += (4 * np.sqrt(atoms.lj_epsilon[a][:, None] * atoms.lj_epsilon[b]) * (s6**2 - s6)).sum() / 3
        charges = plan.model.coulomb_constant * atoms.charges[a][:, None] * atoms.charges[b]
        coulomb += (charges / 3 / r).sum() / 3
        product = radii[a][:, None] * radii[b]
        f = np.sqrt(r**2 + product * np.exp(-(r**2) / (4 * product)))
        gb -= ((1 / 3 - 1 / plan.model.solvent_dielectric) * charges / f).sum() / 3
    shares = 2 * of.pairs["delta"].mean[2, 8]
    assert shares[1:4] == pytest.approx((lj, coulomb, gb), rel=1e-9)


def test_one_four_pairs_are_internal_or_not(device):
    schemes = [made(k, precision="float64", device=device)[1].decomposition.per_residue["complex"] for k in (1, 2)]
    assert schemes[0].total == pytest.approx(schemes[1].total, abs=1e-9)
    assert np.abs(schemes[0].mean[:, 0] - schemes[1].mean[:, 0]).max() > 1


def test_float32_is_close(device):
    precise, single = (made(3, precision=p, device=device)[1].decomposition for p in ("float64", "float32"))
    for kind in ("complex", "delta"):
        assert np.abs(single.pairs[kind].mean - precise.pairs[kind].mean).max() < 1e-3


def test_a_residue_in_both_parts_is_refused():
    with pytest.raises(InputError, match="in both parts"):
        Binding(complex_atoms(), np.arange(N + 3, 2 * N), idecomp=1)


def test_files_of_a_decomposition(device, tmp_path):
    _, found = made(4, device=device)
    of = found.decomposition
    write_decomposition(tmp_path / "d.h5", of)
    with h5py.File(tmp_path / "d.h5") as file:
        assert (file["pairs_delta/mean"][()] == of.pairs["delta"].mean).all()
        assert file["residues"].asstr()[0] == of.names[0]
        assert file.attrs["idecomp"] == 4
    write_decomposition(tmp_path / "d.csv", made(2, device=device)[1].decomposition)
    rows = list(csv.reader((tmp_path / "d.csv").read_text().splitlines()))
    heads = [row[0] for row in rows if len(row) == 1]
    assert [head for head in heads if head[-1] == ":" and "Total" not in head] == [
        "Complex:", "Receptor:", "Ligand:", "DELTAS:",
    ]  # fmt: skip
    deltas = rows[rows.index(["DELTAS:"]) + 4 :]
    assert sum(float(row[-3]) for row in deltas) == pytest.approx(found.total.mean(), abs=1e-3)
    assert deltas[0][0].startswith("R:")
    assert deltas[-1][0].startswith("L:")
    with pytest.raises(FormatError, match="decompositions end in"):
        write_decomposition(tmp_path / "d.txt", of)


def test_pictures(device, tmp_path):
    pytest.importorskip("matplotlib")
    plan, found = made(3, device=device)
    of = found.decomposition
    draw_residues(tmp_path / "bars.png", of)
    draw_pairs(tmp_path / "pairs.png", of)
    draw_running_mean(tmp_path / "mean.png", found.total)
    for name in ("bars", "pairs", "mean"):
        assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    write_coloured(tmp_path / "c.pdb", plan.atoms, of)
    lines = [line for line in (tmp_path / "c.pdb").read_text().splitlines() if line.startswith("ATOM")]
    values = [float(line[60:66]) for line in lines]
    expected = of.per_residue["delta"].total[plan.atoms.labels.residue_index]
    assert values == pytest.approx(expected.tolist(), abs=0.0051)
    with pytest.raises(InputError, match="idecomp 3 or 4"):
        draw_pairs(tmp_path / "no.png", made(1, device=device)[1].decomposition)


# Alanine


def test_a_mutant_has_alanines_atoms_and_parameters():
    atoms = complex_atoms()
    labels = atoms.labels
    lysine = 1  # MKEFGD
    assert labels.residues[lysine].name == "LYS"
    mutant = to_alanine(atoms, lysine)
    own = np.flatnonzero(mutant.atoms.labels.residue_index == lysine)
    assert set(mutant.atoms.labels.residue_names[own]) == {"ALA"}
    assert len(own) == 10
    assert mutant.atoms.charges[own].sum() == pytest.approx(0, abs=1e-4)
    assert (mutant.atoms.labels.elements[own] == "H").sum() == 5
    (placed,) = mutant.placed
    bond = mutant.atoms.positions[placed] - mutant.atoms.positions[mutant.beta]
    assert np.linalg.norm(bond) == pytest.approx(CH)
    before = atoms.positions[mutant.kept]
    others = np.delete(np.arange(len(before)), placed)
    assert (mutant.atoms.positions[others] == before[others]).all()
    along = before[placed] - before[mutant.beta]
    assert bond @ along == pytest.approx(CH * np.linalg.norm(along))


def test_a_scan_is_that_of_mutants_by_hand(device):
    """A site's change is the difference of two binding energies, here of atoms that were cut by hand."""
    atoms = complex_atoms()
    plan = Binding(atoms, LIGAND, like="gmx", precision="float64", device=device)
    near = interface_residues(plan)
    sites = [k for k in near if k in mutable_residues(atoms)]
    scan = alanine_scan(plan)
    assert [str(r) for r in scan.residues] == [str(atoms.labels.residues[k]) for k in sites]
    assert not {"GLY", "ALA", "PRO"} & {r.name for r in scan.residues}
    mutant = to_alanine(atoms, sites[0])
    ligand = np.flatnonzero(mutant.kept >= N)
    by_hand = Binding(mutant.atoms, ligand, like="gmx", precision="float64", device=device).evaluate()
    assert scan.changes[0, 0] == pytest.approx(float(by_hand.total - plan.evaluate().total), abs=1e-9)
    assert np.abs(scan.changes).max() < 60


def test_far_residues_hardly_matter(device):
    """Residues far from the other part change the binding energy little, where they have no net charge."""
    atoms = complex_atoms()
    moved = replace(atoms, positions=atoms.positions + np.where(np.arange(2 * N) < N, 0, 60.0)[:, None])
    plan = Binding(moved, LIGAND, like="gmx", precision="float64", device=device)
    phenylalanine = next(k for k, r in enumerate(atoms.labels.residues) if r.name == "PHE")
    assert np.abs(alanine_scan(plan, sites=[phenylalanine]).changes).max() < 0.01
    with pytest.raises(InputError, match="no selected residue can be"):
        alanine_scan(plan, sites="resname GLY")


def test_alanine_of_the_topology_itself_is_preferred():
    atoms = read(complex_source())
    mutable = mutable_residues(atoms)
    changed = to_alanine(atoms, mutable[5]).atoms
    k = mutable[5]
    own = np.flatnonzero(changed.labels.residue_index == k)
    ala = next(
        np.flatnonzero(atoms.labels.residue_index == i)
        for i, r in enumerate(atoms.labels.residues)
        if r.name == "ALA" and 0 < i < len(atoms.labels.residues) - 1
    )
    own_charge = changed.charges[own][changed.labels.names[own] == "CA"]
    assert own_charge == atoms.charges[ala][atoms.labels.names[ala] == "CA"]


def complex_source():
    from amber_helpers import ROOT

    return ROOT / "data" / "structures" / "ubiquitin.pdb"


@pytest.mark.parametrize("charge", [-0.47, -0.3])
def test_a_force_field_that_is_not_ambers_is_refused(charge):
    """CHARMM36 has other charges of the backbone, amber03 one of each residue; Amber99SB's alanine would not fit."""
    atoms = complex_atoms()
    assert "ALA" not in atoms.labels.residue_names
    to_alanine(atoms, 1)
    charges = atoms.charges.copy()
    charges[(atoms.labels.residue_index == 1) & (atoms.labels.names == "N")] = charge
    with pytest.raises(InputError, match="has not the backbone of Amber99SB, whose alanine is built in"):
        to_alanine(replace(atoms, charges=charges), 1)
    digits = np.round(atoms.charges, 3)  # as in files of few decimals
    assert len(to_alanine(replace(atoms, charges=digits), 1).atoms) < len(atoms)


@pytest.mark.parametrize("name", ["amber99sb", "amber03", pytest.param("charmm36", marks=pytest.mark.slow)])
def test_a_force_fields_own_alanine_is_taken(name):
    """At both ends of a chain and within it: the parameters are those that the force field gives the mutant."""
    if name != "amber99sb":
        pytest.importorskip("openmm")
    field, source = ForceField.load(name), complex_source().with_name("hexapeptide.pdb")
    structure, alanines = read_structure(source), alanines_of(field)
    wild = field.assign(structure)
    for residue in (0, 1, 5):
        cut = to_alanine(wild, residue, alanines)
        labels, names = cut.atoms.labels, cut.atoms.labels.names.copy()
        own = np.flatnonzero(labels.residue_index == residue)
        hydrogens = [i for i in own if labels.elements[i] == "H" and names[i] not in ("H", "H1", "H2", "H3", "HA")]
        names[hydrogens] = ["HB1", "HB2", "HB3"]
        renamed, lines = replace(labels, names=names), structure.lines[cut.kept]
        expected = field.assign(replace(structure, positions=cut.atoms.positions, labels=renamed, lines=lines))
        for parameter in ("charges", "lj_sigma", "lj_epsilon"):
            np.testing.assert_allclose(getattr(cut.atoms, parameter), getattr(expected, parameter), atol=1e-12)


def test_a_force_field_without_alanine_has_none():
    assert alanines_of(ForceField("none", "amber", {}, {})) is None


def test_half_cystines_are_known_by_their_bond():
    """CHARMM calls them CYS, like the ones with a hydrogen."""
    atoms = complex_atoms()
    labels, near = atoms.labels, np.flatnonzero(atoms.labels.names == "CG")
    first, second = near[0], near[-1]
    sites = [int(labels.residue_index[k]) for k in (first, second)]
    assert set(sites) <= set(mutable_residues(atoms))
    bridged = replace(atoms, bonds=np.concatenate([atoms.bond_pairs, [[first, second]]]), bonded=None)
    assert not set(sites) & set(mutable_residues(bridged))
    with pytest.raises(InputError, match="is bonded to another residue"):
        to_alanine(bridged, sites[0])
