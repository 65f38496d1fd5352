"""Side chains: rotamers, turns, energies of candidates, prediction, and the move."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest

import pele_ocl
from pele_ocl import Atoms, Ensemble, FormatError, InputError, SolventModel
from pele_ocl.common.installation import shipped
from pele_ocl.explore import (
    Explorer,
    RotamerLibrary,
    Settings,
    SideChainPredictor,
    SideChains,
    predict_side_chains,
    read_side_file,
    side_chain_tables,
)
from pele_ocl.explore.rotations import RotamerChain, side_chains_of, torsions_at
from pele_ocl.explore.side_chains import PredictionArrays
from pele_ocl.pairs.dielectric import inverse_dielectrics

VACUUM = SolventModel(gb="none")
SER = "* SER  1  3  10.0  1\n_OG_\nPOLARH  _HG_  1\n   6\n  -6\n  18\n"


@cache
def structure(name: str) -> Atoms:
    return pele_ocl.read(shipped("data") / "structures" / f"{name}.pdb")


def away(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Differences of angles, rad."""
    return np.abs(np.remainder(first - second + np.pi, 2 * np.pi) - np.pi)


def test_library_has_the_rotamers_of_its_table():
    """Rows of ALL.bbdep.rotamers.lib: VAL -60 -40, and ARG -180 -180, whose first two are 62.5 and 64.7 degrees."""
    library = RotamerLibrary.dunbrack()
    valine = library.rotamers("VAL", np.deg2rad(-60), np.deg2rad(-40))
    np.testing.assert_allclose(np.rad2deg(valine.chi[0]), [172], atol=1)
    assert valine.probabilities[0] == pytest.approx(0.939, abs=5e-4)
    for turn in (-180, 180):  # one bin on either side
        arginine = library.rotamers("ARG", np.deg2rad(turn), np.deg2rad(turn))
        np.testing.assert_allclose(np.rad2deg(arginine.chi[0]), [62.5, 176.9, 176.6, 85.7], atol=0.51)
        np.testing.assert_allclose(arginine.probabilities[:2], [0.24973, 0.154574], atol=5e-4)
        np.testing.assert_allclose(np.rad2deg(arginine.sigmas[0]), [6.9, 11.1], atol=0.51)
    assert library.rotamers("ALA", 0, 0).chi.size == 0


def test_rotamers_spread_by_sigma():
    for name, count in (("SER", 3), ("LEU", 9)):
        rotamers = RotamerLibrary.dunbrack().rotamers(name, -1, -0.8)
        spread = rotamers.spread()
        assert len(spread) == count * len(rotamers)
        assert spread.probabilities.sum() == pytest.approx(rotamers.probabilities.sum())
        first = np.rad2deg(spread.chi[:count, 0] - rotamers.chi[0, 0])
        sigma = np.rad2deg(rotamers.sigmas[0, 0])
        assert sorted(set(first.round(6).tolist())) == pytest.approx([-sigma, 0, sigma])


def test_side_files(tmp_path):
    (tmp_path / "SER.side").write_text(SER)
    (tmp_path / "FREE60.side").write_text("* FREE60  1  1  60.0  0\nATM1\n  -3\n")
    np.testing.assert_allclose(np.rad2deg(read_side_file(tmp_path / "SER.side")), [[60], [-60], [180]])
    library = RotamerLibrary.from_folder(tmp_path)
    assert "SER" in library
    assert len(library.rotamers("SER", 1.0, -2.0).spread()) == 3
    for text, sentence in (
        (SER.replace("* SER", "SER"), "not a head"),
        (SER.replace(" 3 ", " 4 "), "there are 3 rotamers, but 4 are announced"),
        (SER.replace("  -6", "  -6 2"), "line 5 has 2 angles"),
        (SER.replace("  -6", " six"), "line 5 has 'six'"),
    ):
        (tmp_path / "SER.side").write_text(text)
        with pytest.raises(FormatError, match=sentence):
            read_side_file(tmp_path / "SER.side")
    with pytest.raises(FormatError, match="no rotamers"):
        RotamerLibrary.from_folder(tmp_path / "none")


def test_turns_change_their_torsions_alone():
    atoms = structure("ubiquitin")
    chains, rng = side_chains_of(atoms), np.random.default_rng(1)
    names = [str(atoms.labels.residue_names[of.torsions[0, 0]]) for of in chains]
    assert len(chains) == sum(residue.name not in ("GLY", "ALA", "PRO") for residue in atoms.labels.residues)
    assert not {"GLY", "ALA", "PRO"} & set(names)
    i, j = atoms.bond_pairs.T
    for of in chains:
        by, x = rng.uniform(-3, 3, len(of.torsions)), atoms.positions.copy()
        x[of.moved] = of.placed(x, by)
        np.testing.assert_allclose(
            away(torsions_at(x, of.torsions), torsions_at(atoms.positions, of.torsions) + by), 0, atol=1e-9
        )
        lengths = (np.linalg.norm(y[i] - y[j], axis=1) for y in (x, atoms.positions))
        np.testing.assert_allclose(*lengths, atol=1e-9)
    steps = {of.name: of.polar_steps for of in chains}
    assert [steps[name] for name in ("SER", "THR", "TYR", "LYS", "ASP", "ARG")] == [36, 36, 36, 12, 1, 1]


def test_a_bridge_between_side_chains_holds_them():
    atoms = structure("hexapeptide")
    first, second, *_ = side_chains_of(atoms)
    bridged = replace(atoms, bonds=np.concatenate([atoms.bond_pairs, [[first.moved[-1], second.moved[-1]]]]))
    left = {of.residue for of in side_chains_of(bridged)}
    assert not {first.residue, second.residue} & left
    assert len(left) == len(side_chains_of(atoms)) - 2


def candidate_energies(ensemble: Ensemble, atoms: Atoms, chains: list[RotamerChain], number: int):
    """Energies of the candidates that are left, their numbers, and the places of polar hydrogens."""
    predictor = SideChainPredictor(ensemble, atoms, chains)
    others = [k for k in range(len(chains)) if k != number][:3]
    work = PredictionArrays(predictor, [0], [[number, *others]])
    work.begin(rebuild=False)
    work.meet(0, [0])
    queue = ensemble.state.queue
    count = int(queue.download(work.counts, 1, np.int32)[0])
    alive = queue.download(work.alive, count, np.int32)
    energies = queue.download(work.least, work.n_candidates, queue.dtype)[alive]
    return (
        predictor.candidates([number], atoms.positions)[0][alive],
        energies,
        queue.download(work.best, work.n_candidates, np.int32)[alive],
    )


def placed(atoms: Atoms, of: RotamerChain, by: np.ndarray, step: int) -> np.ndarray:
    x, turns = atoms.positions.copy(), np.zeros(len(of.torsions))
    turns[: of.n_chi] = by[: of.n_chi]
    if of.polar_steps > 1:
        turns[of.n_chi] = np.deg2rad(10) * step
    x[of.moved] = of.placed(atoms.positions, turns)
    return x


def gb_pairs(atoms: Atoms, x: np.ndarray, born: np.ndarray, model: SolventModel) -> float:
    """GB energy of pairs at radii that are held; eqs. 7 and 8 of docs/theory/solvent.md, 3 of docs/theory/sgb.md."""
    q, inverse = atoms.charges * np.sqrt(model.coulomb_factor), inverse_dielectrics(atoms, model)
    r2 = ((x[:, None] - x) ** 2).sum(axis=2)
    product, shield = np.outer(born, born), np.minimum.outer(inverse, inverse)
    f = np.sqrt(r2 + product * np.exp(-r2 / (4 * product)))
    energies = -np.outer(q, q) * shield / f * (1 - model.outside * np.exp(-model.kappa * f))
    return float(energies.sum() / 2)


MODELS = {
    "vacuum": VACUUM,
    "obc, ions": SolventModel(ionic_strength=0.1),
    "dielectrics of atoms": SolventModel(gb="vdgbnp", ionic_strength=0.1),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("name", ["LYS", "PHE", "ASP"])
def test_candidates_have_the_energies_of_the_force_field(name, model, device):
    check_candidates("hexapeptide", name, model, device)


def test_polar_candidates_have_the_energies_of_the_force_field(device):
    check_candidates("ubiquitin", "THR", VACUUM, device)


def check_candidates(file: str, name: str, model: SolventModel, device):
    """Differences of the energies of three candidates against those of whole molecules."""
    atoms = structure(file)
    surface = np.column_stack([atoms.gb_radii, np.full((len(atoms), 3), [1.7, 0.005, 0.0])])
    atoms = replace(atoms, sgb=surface)
    chains = side_chains_of(atoms)
    number = next(k for k, of in enumerate(chains) if of.name == name)
    options = dict(precision="float64", model=model, fixed_radii=True, device=device)
    ensemble = Ensemble(atoms, **options).evaluate()
    turns, energies, steps = candidate_energies(ensemble, atoms, chains, number)
    whole = pele_ocl.Energy(atoms, **options)
    chosen = [0, 1, len(turns) - 1]
    expected = []
    for k in chosen:
        x = placed(atoms, chains[number], turns[k], int(steps[k]))
        terms = whole.evaluate(x).terms
        of_radii = sum(getattr(terms, name) for name in ("gb_pair", "gb_self", "nonpolar") if name in terms.names)
        solvent = 0.0 if model is VACUUM else gb_pairs(atoms, x, ensemble.born_radii[0], model)
        expected.append(terms.values.sum() - of_radii + solvent)
    np.testing.assert_allclose(energies[chosen] - energies[0], np.array(expected) - expected[0], rtol=1e-9, atol=1e-8)


def test_vectors_give_the_energies_of_single_atoms(device):
    """GPUs take one atom after the other, CPUs vectors of them."""
    atoms, found = structure("hexapeptide"), []
    for width in (1, device.vector_width("float64")):
        with patch.object(side_chain_tables, "vector_width", lambda _: width):  # noqa: B023
            ensemble = Ensemble(atoms, precision="float64", gradient=False, device=device).evaluate()
            found.append(candidate_energies(ensemble, atoms, side_chains_of(atoms), 1)[1])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-10)


def test_polar_hydrogens_take_their_best_place(device):
    atoms = structure("ubiquitin")
    chains = side_chains_of(atoms)
    number = next(k for k, of in enumerate(chains) if of.name == "THR")
    ensemble = Ensemble(atoms, precision="float64", model=VACUUM, gradient=False, device=device).evaluate()
    turns, _, steps = candidate_energies(ensemble, atoms, chains, number)
    whole = pele_ocl.Energy(atoms, precision="float64", model=VACUUM, gradient=False, device=device)
    found = whole.evaluate_batch(np.stack([placed(atoms, chains[number], turns[0], step) for step in range(36)])).total
    assert int(np.argmin(found)) == steps[0]


def shaken(atoms: Atoms, chains: list[RotamerChain]) -> np.ndarray:
    """Positions with side chains turned at random."""
    x, rng = atoms.positions.copy(), np.random.default_rng(4)
    for of in chains:
        x[of.moved] = of.placed(atoms.positions, rng.uniform(-np.pi, np.pi, len(of.torsions)))
    return x


def chi1_share(atoms: Atoms, x: np.ndarray, chains: list[RotamerChain]) -> float:
    return float(np.mean([away(of.angles(x), of.angles(atoms.positions))[0] <= np.deg2rad(40) for of in chains]))


def test_side_chains_of_the_core_are_rebuilt(device):
    atoms = structure("ubiquitin")
    core = [of for of in side_chains_of(atoms) if of.name in ("ILE", "VAL", "LEU", "PHE")][:12]
    start = shaken(atoms, core)
    assert chi1_share(atoms, start, core) < 0.6
    moved = np.concatenate([of.moved for of in core])
    x = predict_side_chains(atoms.moved(start), moved, rebuild=True, device=device)
    assert chi1_share(atoms, x, core) >= 0.75
    still = np.setdiff1d(np.arange(len(atoms)), moved)
    np.testing.assert_allclose(x[still], atoms.positions[still], atol=1e-6)


@pytest.mark.slow
def test_all_side_chains_are_rebuilt(device):
    atoms = structure("ubiquitin")
    chains = side_chains_of(atoms)
    x = predict_side_chains(atoms.moved(shaken(atoms, chains)), rebuild=True, device=device)
    assert chi1_share(atoms, x, chains) >= 0.75


def test_side_chains_that_cannot_but_clash_are_told(device):
    """A carbon of the backbone lies beside the C-beta of one side chain, in the second of two rows."""
    atoms = structure("hexapeptide")
    chains = side_chains_of(atoms)
    rows = Ensemble(atoms, 2, device=device, gradient=False)
    crowded = atoms.positions.copy()
    far = next(i for i in range(len(atoms))[::-1] if atoms.labels.names[i] == "CA")
    crowded[far] = crowded[chains[0].torsions[0, 2]] + 0.3
    rows.positions[1] = crowded
    rows.evaluate()
    found = SideChainPredictor(rows, atoms, chains).predict([0, 1], [[1, 0], [1, 0]])
    assert (found[0].clashing, found[1].clashing) == ((), (0,))


def test_rows_do_not_see_each_other(device):
    atoms = structure("hexapeptide")
    chains = side_chains_of(atoms)
    starts = [atoms.positions, shaken(atoms, chains), shaken(atoms, chains[1:])]
    orders = [list(range(len(chains))), list(range(len(chains)))[::-1], [0]]
    together = Ensemble(atoms, 4, device=device, gradient=False)
    together.positions[[1, 2, 3]] = starts
    together.evaluate()
    found = SideChainPredictor(together, atoms, chains).predict([3, 1, 2], [orders[2], orders[0], orders[1]])
    assert max(of.sweeps for of in found.values()) >= 2
    assert not any(of.clashing for of in found.values())
    for k in range(3):
        alone = Ensemble(atoms, device=device, gradient=False)
        alone.positions[0] = starts[k]
        alone.evaluate()
        SideChainPredictor(alone, atoms, chains).predict([0], [orders[k]])
        np.testing.assert_array_equal(alone.positions[0], together.positions[1 + k])


def test_prediction_lowers_the_energy(device):
    atoms = structure("hexapeptide")
    start = atoms.moved(shaken(atoms, side_chains_of(atoms)))
    x = predict_side_chains(start, seed=3, device=device)
    before, after = pele_ocl.energy(start, device=device).total, pele_ocl.energy(start.moved(x), device=device).total
    assert after < before
    again = predict_side_chains(start, "resid 2", seed=3, device=device)
    moved = np.abs(again - start.positions).max(axis=1) > 1e-3
    assert set(start.labels.residue_numbers[moved].tolist()) == {2}


def test_the_move_takes_what_is_near(device):
    atoms = structure("hexapeptide")
    ligand = np.flatnonzero(atoms.labels.residue_index == 5)
    settings = Settings(side_chain_radius=7.0, side_chain_frequency=2, near_only=False)
    positions = {}
    for numbers in ([0, 1, 2], [2]):
        explorer = Explorer(atoms, ligand, [SideChains(omit="resid 1")], explorers=numbers, settings=settings,
                            removes_bulk=False, temperature=1e9, device=device)  # fmt: skip
        steps = list(explorer.run(2))
        assert [step.made for step in steps[-len(numbers) :]] == [("side_chains",)] * len(numbers)
        assert all(step.made == () for step in steps[: -len(numbers)])
        positions[len(numbers)] = explorer.walk.ensemble.positions[len(numbers) - 1]
    np.testing.assert_array_equal(positions[3], positions[1])
    moved = set(atoms.labels.residue_index[np.abs(positions[1] - atoms.positions).max(axis=1) > 1e-3].tolist())
    assert moved
    gaps = np.linalg.norm(atoms.positions[:, None] - atoms.positions[ligand], axis=2).min(axis=1)
    assert moved <= set(atoms.labels.residue_index[gaps <= 7.0].tolist()) - {0, 5}


def test_predicted_side_chains_are_minimized_alone(device):
    """PELE's sideChainMinimizer: the atoms that rotate, and no others."""
    atoms = structure("hexapeptide")
    ligand = np.flatnonzero(atoms.labels.residue_index == 5)
    settings = Settings(side_chain_radius=7.0, side_chain_frequency=1, near_only=False, temperature=1e9)
    found = {}
    for minimizer in (None, {"method": "newton", "tolerance": 0.1, "max_iterations": 60}):
        move = SideChains(minimizer=minimizer)
        options = {"removes_bulk": False, "device": device, "model": VACUUM}  # else Born radii are held meanwhile
        explorer = Explorer(atoms, ligand, [move], settings=settings, **options)
        (step,) = explorer.run(1)
        found[minimizer is not None] = step.proposed, step.positions
    assert found[True][0] < found[False][0] - 0.5
    turning = np.concatenate([of.moved for of in side_chains_of(atoms)])
    others = np.setdiff1d(np.arange(len(atoms)), turning)
    np.testing.assert_allclose(found[True][1][others], atoms.positions[others], atol=1e-5)


def test_a_minimizer_of_side_chains_that_ends_early_is_noted(device):
    atoms = structure("hexapeptide")
    ligand = np.flatnonzero(atoms.labels.residue_index == 5)
    settings = Settings(side_chain_frequency=1, near_only=False)
    minimizer = {"method": "newton", "tolerance": 1e-3, "max_iterations": 1}
    (step,) = Explorer(atoms, ligand, [SideChains(minimizer=minimizer)], settings=settings, device=device).run(1)
    assert "the minimization of side chains did not converge (iterations)" in step.notes


def test_what_cannot_be_predicted_is_refused():
    atoms = structure("trialanine")
    with pytest.raises(InputError, match="none of the residues has a rotatable side chain"):
        predict_side_chains(atoms)
    with pytest.raises(InputError, match="neither a selection, nor a mask"):
        predict_side_chains(structure("hexapeptide"), [1000])
    with pytest.raises(InputError, match="labels and bonds"):
        predict_side_chains(replace(atoms, labels=None))


def test_a_pickled_move_goes_on(device):
    atoms = structure("hexapeptide")
    ligand = np.flatnonzero(atoms.labels.residue_index == 5)
    settings = Settings(side_chain_frequency=1, near_only=False)
    first = Explorer(atoms, ligand, [SideChains(select="resid 1", temperature=400)], settings=settings, device=device)
    list(first.run(1))
    again = pickle.loads(pickle.dumps(first))
    assert again.moves[0].select == "resid 1"
    found = [next(explorer.run(1)) for explorer in (first, again)]
    assert found[0].proposed == found[1].proposed
