"""Modes of elastic networks against ProDy's, their files, and moves along them."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from test_side_chains import structure

from pele_ocl import FormatError, InputError
from pele_ocl.atoms import labels_of
from pele_ocl.explore import ANM, Explorer, Modes, Settings, Walk, network_modes, read_nmd, write_nmd
from pele_ocl.explore.anm import MODES, RESTRAINT

DATA = Path(__file__).parent / "data"
LIGAND = 5  # residue of the hexapeptide that stands for one


def prody() -> dict[str, np.ndarray]:
    with np.load(DATA / "prody_3ptb.npz") as file:
        return {name: file[name].astype(np.float64) for name in file.files}


@pytest.mark.parametrize("sparse", [False, True])
def test_modes_are_those_of_prody(sparse, monkeypatch):
    """Six modes of trypsin's 223 alpha carbons; tests/data/README.md has the command."""
    if sparse:
        pytest.importorskip("scipy")
        monkeypatch.setattr("pele_ocl.explore.modes._SPARSE", 100)
    there = prody()
    modes = network_modes(there["nodes"], 6, cutoff=12.0, constant=1.667)
    np.testing.assert_allclose(modes.values, there["values"], rtol=1e-5)
    overlaps = np.abs(np.einsum("kni,kni->k", modes.vectors, there["vectors"].reshape(6, -1, 3)))
    assert overlaps.min() > 0.9999


def test_networks_with_other_springs():
    atoms = structure("ubiquitin")
    x = atoms.positions[atoms.selected("name CA")]
    plain, bonded = network_modes(x), network_modes(x, bonded_constant=16.67)
    assert (bonded.values > plain.values).all()
    weak = network_modes(x, model="exponential", decay=5.0)
    assert (weak.values < plain.values).all()
    np.testing.assert_allclose(network_modes(x, model="exponential", decay=1e9).values, plain.values, rtol=1e-6)
    np.testing.assert_allclose(network_modes(x, constant=3.334).values, 2 * plain.values, rtol=1e-9)
    with pytest.raises(InputError, match="leave parts of the network disconnected"):
        network_modes(x, cutoff=4.0)
    with pytest.raises(InputError, match="three nodes"):
        network_modes(x[:2])


def test_files_of_modes(tmp_path):
    atoms = structure("ubiquitin")
    nodes = np.flatnonzero(atoms.selected("name CA"))
    modes = network_modes(atoms.positions[nodes])
    write_nmd(tmp_path / "ubiquitin.nmd", modes, atoms, nodes)
    again, names, numbers = read_nmd(tmp_path / "ubiquitin.nmd")
    np.testing.assert_allclose(again.values, modes.values, rtol=1e-6)
    np.testing.assert_allclose(again.vectors, modes.vectors, atol=2e-6)
    assert set(names.tolist()) == {"CA"}
    np.testing.assert_array_equal(numbers, atoms.labels.residue_numbers[nodes])
    # ProDy writes one over the root of each eigenvalue.
    text = (tmp_path / "ubiquitin.nmd").read_text()
    for root in np.sqrt(modes.values):
        text = text.replace(f" {root:.8g} ", f" {1 / root:.8g} ")
    (tmp_path / "prody.nmd").write_text(text)
    np.testing.assert_allclose(read_nmd(tmp_path / "prody.nmd")[0].values, modes.values, rtol=1e-6)
    np.testing.assert_allclose(read_nmd(tmp_path / "prody.nmd", "pele")[0].values, 1 / modes.values, rtol=1e-6)


def test_modes_of_a_file_are_laid_over_nodes_by_name(tmp_path):
    atoms = structure("hexapeptide")
    nodes = np.flatnonzero(atoms.selected("name CA"))
    write_nmd(tmp_path / "modes.nmd", network_modes(atoms.positions[nodes], 2, cutoff=30), atoms, nodes)
    own, file = labels_of(atoms.labels, nodes), tmp_path / "modes.nmd"
    straight, notes = read_nmd(file)[0].of_nodes(own)
    np.testing.assert_array_equal(straight.vectors, read_nmd(file)[0].vectors)
    assert notes == ()
    lines = [line.split() for line in file.read_text().splitlines()]
    for k, words in enumerate(lines):
        if words[0] in ("atomnames", "resnames", "chainids", "resids"):
            lines[k] = [words[0], *words[:0:-1]]
        elif words[0] in ("coordinates", "mode"):
            at = len(words) - 3 * len(nodes)
            lines[k] = [*words[:at], *np.array(words[at:]).reshape(-1, 3)[::-1].ravel()]
    file.write_text("\n".join(" ".join(words) for words in lines))
    turned, notes = read_nmd(file)[0].of_nodes(own)
    np.testing.assert_array_equal(turned.vectors, straight.vectors)
    assert "6 atoms are in another order than in the network" in notes[0]
    file.write_text(file.read_text().replace("resnames ASP", "resnames TRP"))
    with pytest.raises(InputError, match=r"modes.nmd: has .*TRP.* where the network has .*ASP"):
        read_nmd(file)[0].of_nodes(own)
    file.write_text(file.read_text().replace("resnames TRP", "resnames TRP TRP"))
    with pytest.raises(FormatError, match="the line resnames has 7 names for 6 nodes"):
        read_nmd(file)


def test_an_explorer_brings_modes_into_the_order_of_its_nodes(device):
    atoms = structure("hexapeptide")
    nodes = np.flatnonzero(atoms.selected("name CA"))
    modes = network_modes(atoms.positions[nodes], 2, cutoff=30)
    backwards = Modes(modes.values, modes.vectors[:, ::-1], labels_of(atoms.labels, nodes[::-1]))
    move = ANM(nodes, backwards)
    walk = walk_of(move, 1, device)
    np.testing.assert_array_equal(walk.memory[0][MODES].vectors, modes.vectors)
    assert len(move.notes) == 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: text.replace("atomnames", "names"), "the line atomnames is missing"),
        (lambda text: text.replace("mode 1 ", "mode 1 x "), "line 8 has a word"),
        (lambda text: text.replace("mode 2 ", "mode 2 0.5 0.5 "), "line 9 has"),
        (
            lambda text: "\n".join(line for line in text.splitlines() if "mode " not in line),
            "the lines of modes are missing",
        ),
        (lambda text: text.replace("resids 1", "resids"), "same number of nodes"),
    ],
)
def test_wrong_files_of_modes(change, sentence, tmp_path):
    atoms = structure("hexapeptide")
    nodes = np.flatnonzero(atoms.selected("name CA"))
    write_nmd(tmp_path / "modes.nmd", network_modes(atoms.positions[nodes], 2, cutoff=30), atoms, nodes)
    (tmp_path / "modes.nmd").write_text(change((tmp_path / "modes.nmd").read_text()))
    with pytest.raises(FormatError, match=sentence):
        read_nmd(tmp_path / "modes.nmd")


def walk_of(move: ANM, explorers: int, device, **settings) -> Walk:
    """Walks of the hexapeptide with a move that is prepared."""
    atoms = structure("hexapeptide")
    ligand = np.flatnonzero(atoms.labels.residue_index == LIGAND)
    walk = Walk.of(
        atoms, ligand, explorers, settings=Settings(**settings), terms=move.terms(atoms, ligand), fixed_radii=True,
        device=device,
    )  # fmt: skip
    walk.ensemble.evaluate(range(explorers))
    walk.keep(range(explorers))
    move.prepare(walk)
    walk.steps[:] = 1
    return walk


NETWORK = {"cutoff": 30.0, "count": 4}


def lengths_of(moves: np.ndarray) -> np.ndarray:
    """Length of the largest displacement of each move, A."""
    return np.linalg.norm(moves, axis=2).max(axis=1)


@pytest.mark.parametrize("magnitude", ["fixed", "biased", "scaled", "random"])
def test_lengths_of_moves(magnitude, device):
    move = ANM(magnitude=magnitude, mixing="none", change_frequency=1, **NETWORK)
    walk = walk_of(move, 400, device, displacement=0.75)
    lengths = lengths_of(move.displacements(walk, range(400)))
    modes = np.array([memory["anm"]["mode"] for memory in walk.memory])
    if magnitude == "scaled":
        values = walk.memory[0][MODES].values
        lengths = lengths * (0.6 * values[modes] / values[0] + 0.4)
    low, high = {"fixed": (0.75, 0.75), "random": (0, 0.75)}.get(magnitude, (0.75 * 0.625, 0.75))
    assert lengths.min() >= low - 1e-9
    assert lengths.max() <= high + 1e-9
    assert lengths.mean() == pytest.approx((low + high) / 2, abs=4 * (high - low) / np.sqrt(12 * 400) + 1e-9)
    assert np.bincount(modes, minlength=4) == pytest.approx(100, abs=40)  # 4.6 standard deviations


def test_modes_are_of_where_each_explorer_begins(device):
    """Two complexes among four explorers: two sets of modes, the same alone; a pickle keeps them."""
    atoms = structure("hexapeptide")
    ligand = np.flatnonzero(atoms.labels.residue_index == LIGAND)
    bent = atoms.positions.copy()
    bent[: len(bent) // 2, 2] *= 1.2
    settings = Settings(anm_frequency=1, near_only=False)
    options = {"settings": settings, "removes_bulk": False, "device": device}

    def modes_of(starts: list[np.ndarray]) -> tuple[Explorer, list[Modes]]:
        move = ANM(max_iterations=2, **NETWORK)
        explorer = Explorer(atoms, ligand, [move], explorers=len(starts), positions=np.stack(starts), **options)
        return explorer, [memory[MODES] for memory in explorer.walk.memory]

    explorer, found = modes_of([atoms.positions, bent, atoms.positions, bent])
    assert found[0] is found[2]
    assert found[1] is found[3]
    assert np.abs(found[0].values - found[1].values).max() > 1e-3
    np.testing.assert_array_equal(modes_of([bent])[1][0].vectors, found[1].vectors)
    list(explorer.run(1))
    again = pickle.loads(pickle.dumps(explorer))
    np.testing.assert_array_equal(again.walk.memory[1][MODES].vectors, found[1].vectors)


def test_norm_of_moves(device):
    move = ANM(norm="rms", **NETWORK)
    moves = move.displacements(walk_of(move, 20, device, displacement=0.5), range(20))
    np.testing.assert_allclose(np.sqrt((moves**2).sum(axis=2).mean(axis=1)), 0.5)


def test_modes_and_directions_of_moves(device):
    move = ANM(mixing="none", change_frequency=3, direction="oscillate", **NETWORK)
    walk = walk_of(move, 30, device)
    picked, signs = [], []
    for step in range(1, 7):
        walk.steps[:] = step
        moves = move.displacements(walk, range(30))
        picked.append([memory["anm"]["mode"] for memory in walk.memory])
        along = np.einsum("kni,kni->k", moves, walk.memory[0][MODES].vectors[picked[-1]])
        signs.append(np.sign(along))
    assert (np.array(picked[:3]) == picked[0]).all()
    assert (np.array(picked[3:]) == picked[3]).all()
    assert picked[0] != picked[3]
    assert (np.array(signs) == np.array([1, -1, 1, -1, 1, -1])[:, None]).all()
    for options, modes in ((dict(picking="lowest"), {0}), (dict(picking="defined", defined=3), {2})):
        other = ANM(**options, **NETWORK)
        walk = walk_of(other, 200, device)
        moves = other.displacements(walk, range(200))
        assert {memory["anm"]["mode"] for memory in walk.memory} == modes
        directions = [memory["anm"]["direction"] for memory in walk.memory]
        assert abs(sum(directions)) < 60  # 4.2 standard deviations
        assert len(moves) == 200


def test_mixing_of_modes(device):
    move = ANM(main_weight=0.8, **NETWORK)
    walk = walk_of(move, 200, device)
    modes = walk.memory[0][MODES]
    moves = move.displacements(walk, range(200))
    moves /= np.linalg.norm(moves.reshape(200, -1), axis=1)[:, None, None]
    shares = np.einsum("kni,mni->km", moves, modes.vectors)
    mains = np.array([memory["anm"]["mode"] for memory in walk.memory])
    own = np.abs(shares[np.arange(200), mains])
    np.testing.assert_allclose(own, 0.8 / np.hypot(0.8, 0.2), rtol=1e-9)
    np.testing.assert_allclose((shares**2).sum(axis=1), 1)
    equal, scaled = (ANM(mixing="all", thermal=thermal, **NETWORK) for thermal in (False, True))
    spread = []
    for other in (equal, scaled):
        drawn = 2 * np.random.default_rng(0).random((2000, 4)) - 1
        mixed = np.stack([other._mixed(modes, 0, of) for of in drawn])
        spread.append(np.einsum("kni,mni->km", mixed, modes.vectors).std(axis=0))
    np.testing.assert_allclose(spread[0], 1 / np.sqrt(3), rtol=0.05)
    np.testing.assert_allclose(spread[1], 1 / np.sqrt(3 * modes.values), rtol=0.05)


def test_nodes_are_drawn_to_their_targets(device):
    move = ANM(relaxation=0.5, max_iterations=60, **NETWORK)
    walk = walk_of(move, 3, device, displacement=1.0)
    rows, nodes = [0, 2], np.flatnonzero(walk.atoms.selected("name CA and not resid 6"))
    start = walk.ensemble.positions[:3]
    wanted = move.displacements(walk, rows)
    for memory in walk.memory:
        memory.pop("anm", None)
    move.apply(walk, rows)
    walk.made[0].add("anm"), walk.made[2].add("anm")
    moved = walk.ensemble.positions[:3] - start
    assert not walk.failures
    np.testing.assert_array_equal(moved[1], 0)
    for place, row in enumerate(rows):
        along = (moved[row][nodes] * wanted[place]).sum() / (wanted[place] ** 2).sum()
        assert 0.5 < along < 1.3
        held = walk.ensemble.force_constants(RESTRAINT)[row]
        assert set(np.flatnonzero(held).tolist()) == set(nodes.tolist())
        np.testing.assert_allclose(held[nodes], 0.5)
        np.testing.assert_allclose(
            walk.ensemble.references(RESTRAINT)[row][nodes], (start[row] + moved[row])[nodes], atol=1e-5
        )
    move.release(walk, rows)
    assert not np.any(walk.ensemble.force_constants(RESTRAINT)[:3])


def test_explorers_do_not_see_each_other(device):
    found = {}
    for explorers in (3, 1):
        move = ANM(max_iterations=5, **NETWORK)
        walk = walk_of(move, explorers, device)
        move.apply(walk, range(explorers))
        found[explorers] = walk.ensemble.positions[0]
    np.testing.assert_array_equal(found[3], found[1])


def test_wrong_moves(device):
    with pytest.raises(InputError, match="picking is 'any'"):
        ANM(picking="any")
    with pytest.raises(InputError, match="the modes have 3 nodes; there are 5"):
        walk_of(ANM(modes=Modes(np.ones(1), np.ones((1, 3, 3)))), 1, device)
    with pytest.raises(InputError, match="mode 5 is defined; there are 4"):
        walk_of(ANM(picking="defined", defined=5, **NETWORK), 1, device)
