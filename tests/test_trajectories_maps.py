"""Maps, and values at atoms, over the frames of a trajectory."""

from __future__ import annotations

import json
from dataclasses import replace

import h5py
import numpy as np
import pytest
from conftest import random_atoms
from maps_helpers import relative
from test_cli import HEXAPEPTIDE, on_the_chosen_device, run
from tolerance import MAP
from trajectory_helpers import moving

from pele_ocl import Atoms, Grid, InputError, potentials_over, potmap_over, read, read_map
from pele_ocl.opencl import get_device
from pele_ocl.potential_model import PotentialModel
from pele_ocl.potmap import MapOptions, variants
from pele_ocl.potmap.frames import AtomPotentials, MapFrames
from pele_ocl.potmap.mesh import FarMesh
from pele_ocl.reference import potmap as reference
from pele_ocl.trajectories.superposing import Superposition
from pele_ocl.units import COULOMB_KCAL_A

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

M = 5


def turned(positions: np.ndarray, seed: int) -> np.ndarray:
    """Positions (n, 3) turned about the origin and moved, at random."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return positions @ (turn * np.sign(np.linalg.det(turn))) + rng.normal(0, 20, 3)


@pytest.fixture(scope="module")
def atoms():
    return read(HEXAPEPTIDE)


@pytest.fixture(scope="module")
def grid(atoms):
    return Grid.around(atoms, 3, 1.9)


@pytest.fixture(scope="module")
def frames(atoms):
    return moving(atoms.positions, M)


@pytest.fixture(scope="module")
def each(atoms, grid, frames):
    """Compute the map of each frame by the definition."""
    return np.stack([reference.potmap(atoms.moved(there), grid) for there in frames])


def written(path, positions):
    with h5py.File(path, "w") as file:
        file["positions"] = positions
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory, frames):
    return written(tmp_path_factory.mktemp("maps") / "frames.h5", frames)


def assert_statistics(found, each, bound):
    for map_, expected in (
        (found.mean, each.mean(axis=0)), (found.min, each.min(axis=0)), (found.max, each.max(axis=0)),
    ):  # fmt: skip
        assert relative(map_.values, expected) < bound
    assert np.linalg.norm(found.sd.values - each.std(axis=0)) / np.linalg.norm(each.mean(axis=0)) < bound


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_statistics_are_those_of_the_frames_maps(atoms, grid, file, each, precision):
    told = []
    found = potmap_over(atoms, file, grid, precision=precision, progress=told.append)
    assert_statistics(found, each, MAP[precision])
    assert (len(found), found.errors, found.rmsd, found.result.error) == (M, {}, None, None)
    assert (found.result.n_models, found.result.maps) == (M, found.maps)  # rates count all frames
    assert told == pytest.approx(np.arange(1, M + 1) / M)
    again = potmap_over(atoms, file, grid, precision=precision)
    for name, map_ in found.maps.items():
        assert map_.values.tobytes() == again.maps[name].values.tobytes()


def test_a_mesh_keeps_its_accuracy_and_is_made_ready_once(atoms, grid, file, each, monkeypatch):
    made = []
    monkeypatch.setattr(variants, "FarMesh", lambda *given: made.append(1) or FarMesh(*given))
    found = potmap_over(atoms, file, grid, method="mesh", accuracy=1e-3)
    assert_statistics(found, each, 1e-3)
    error = found.result.error
    true = np.linalg.norm(found.mean.values - each.mean(axis=0)) / np.linalg.norm(each)
    assert true < error.norm < 1e-3
    assert error.points == 1000 + 16 * (M - 1)
    assert len(made) == 1
    # Atoms that leave the mesh get one with room for them.
    away = written(file.parent / "away.h5", np.stack([atoms.positions, atoms.positions + 30, atoms.positions + 30.1]))
    found = potmap_over(atoms, away, grid, method="mesh", accuracy=1e-3)
    far = np.stack([reference.potmap(atoms.moved(atoms.positions + x), grid) for x in (0, 30, 30.1)])
    assert relative(found.mean.values, far.mean(axis=0)) < 1e-3
    assert len(made) == 3


def test_a_long_cutoff_reaches_atoms_that_move_away(atoms, grid):
    """Bins that reach through the box of the first frame do not reach atoms that have left it."""
    frames = MapFrames(atoms, grid, MapOptions("cutoff", cutoff=150.0))
    there = [atoms.moved(atoms.positions + away) for away in (0.0, 30.0, 0.1)]
    for each in there:
        frames.add(each)
    expected = np.mean([reference.potmap(each, grid) for each in there], axis=0)
    assert relative(frames.result().maps["avg"].values, expected) < MAP["float32"]


def test_the_cutoff_method(atoms, grid, file, frames):
    model = PotentialModel(cutoff=6.0)
    each = np.stack([reference.potmap(atoms.moved(there), grid, model) for there in frames])
    found = potmap_over(atoms, file, grid, method="cutoff", cutoff=6.0, precision="float64")
    assert_statistics(found, each, MAP["float64"] * 10)
    assert found.result.error.norm > 1e-3


def test_devices_share_a_map_and_change_no_bit(atoms, grid, frames):
    device = get_device(None)
    for method in ("direct", "mesh"):
        maps = []
        for devices in ([device], [device, device, device]):
            options = MapOptions(method, accuracy=1e-3 if method == "mesh" else None, device=devices)
            over = MapFrames(atoms, grid, options)
            for there in frames:
                over.add(atoms.moved(there))
            maps.append(over.result().maps)
        for name in maps[0]:
            assert (maps[0][name].values == maps[1][name].values).all()


def test_frames_are_superposed(atoms, grid, frames, each, tmp_path):
    many = np.stack([turned(there.astype(np.float64), k) for k, there in enumerate(frames)])
    heavy = np.flatnonzero(atoms.selected("heavy"))
    found, rmsd = Superposition(atoms, "heavy")(many)
    again, _ = Superposition(atoms, "heavy")(frames)
    np.testing.assert_allclose(found, again, atol=1e-4)
    away = np.linalg.norm(found[:, heavy] - atoms.positions[heavy], axis=2)
    np.testing.assert_allclose(rmsd, np.sqrt((away**2).mean(axis=1)), rtol=1e-4)
    mirrored = atoms.positions * (1, 1, -1)  # which no turn undoes
    back, off = Superposition(atoms, "all")(mirrored[None])
    assert off > 1
    assert off == pytest.approx(np.sqrt(((back[0] - atoms.positions) ** 2).sum(axis=1).mean()))
    result = potmap_over(atoms, written(tmp_path / "turned.h5", many), grid, align=True, precision="float64")
    assert_statistics(result, each, 0.1)  # the frames tremble about the reference; unsuperposed it would be above 1
    assert (result.rmsd < 0.2).all()
    with pytest.raises(InputError, match="are collinear or fewer than three"):
        Superposition(atoms, "index 0:1")


def test_frames_that_fail_are_named_and_left_out(atoms, grid, frames, each, tmp_path):
    some = frames.astype(np.float64)
    some[1, 7, 2] = np.nan
    some[3] += grid.position((2, 1, 3)) - some[3, 0]
    path = written(tmp_path / "some.h5", some)
    for align in (False, "index 5 20 30 40"):
        found = potmap_over(atoms, path, grid, align=align, precision="float64")
        if not align:
            assert_statistics(found, each[[0, 2, 4]], MAP["float64"])
            assert found.frames.tolist() == [0, 2, 4]
            assert "is at the position of" in found.errors[3]
        assert "expected a finite number" in found.errors[1]
    with pytest.raises(InputError, match="all frames failed: frame 1: "):
        potmap_over(atoms, path, grid, frames=1)
    with pytest.raises(InputError, match="field cannot be averaged"):
        potmap_over(atoms, path, grid, field=True)


def test_a_frame_too_far_for_a_mesh_is_left_out(atoms, grid, frames, tmp_path):
    some = frames.astype(np.float64)
    some[0, 7] += 20_000
    some[3, 0] += 20_000
    options = {"method": "mesh", "accuracy": 1e-3}
    atoms = replace(atoms, bonds=np.empty((0, 2)))  # with bonds the frames would be torn
    found = potmap_over(atoms, written(tmp_path / "some.h5", some), grid, **options)
    assert found.frames.tolist() == [1, 2, 4]
    assert all("not enough nodes for all atoms" in found.errors[k] for k in (0, 3))
    alone = potmap_over(atoms, written(tmp_path / "alone.h5", some[[1, 2, 4]]), grid, **options)
    for name, map_ in found.maps.items():
        assert map_.values.tobytes() == alone.maps[name].values.tobytes()


@pytest.mark.parametrize("method", ["direct", "cutoff", "mesh"])
def test_frames_without_charges(grid, precision, method):
    none = Atoms(positions=np.eye(3) + 0.3, charges=np.zeros(3))
    maps = MapFrames(none, grid, MapOptions(method, precision=precision))
    for _ in range(2):
        maps.add(none)
    for map_ in maps.result().maps.values():
        assert not map_.values.any()


def test_values_at_atoms_leave_out_their_own_charge(atoms, file, frames):
    chosen = np.flatnonzero(atoms.selected("name CA"))
    for precision, bound in (("float32", 1e-5), ("float64", 1e-12)):
        found = potentials_over(atoms, file, "name CA", dielectric=4.0, precision=precision)
        for values, there in zip(found.values, frames.astype(np.float64), strict=True):
            away = np.linalg.norm(there[chosen, None] - there, axis=2)
            away[np.arange(len(chosen)), chosen] = np.inf
            assert relative(values, COULOMB_KCAL_A / 4 * (atoms.charges / away).sum(axis=1)) < bound
    assert (found.atoms == chosen).all()
    assert found.unit == "kcal/mol/e"
    some = frames.copy()
    some[2, 3] = np.inf
    some[4, chosen[1]] = some[4, 0]
    loose = replace(atoms, bonds=np.empty((0, 2)))  # with bonds the last frame would be torn
    found = potentials_over(loose, written(file.parent / "bad.h5", some), chosen)
    assert np.isnan(found.values[[2, 4]]).all()
    assert np.isfinite(found.values[[0, 1, 3]]).all()
    assert "expected a finite number" in found.errors[2]
    assert "another atom is at the position of" in found.errors[4]
    with pytest.raises(InputError, match="choose direct"):
        potentials_over(atoms, file, method="mesh")


def test_values_at_more_atoms_than_a_run():
    atoms = random_atoms(300)
    plan = AtomPotentials(atoms, np.array([299]), MapOptions(precision="float64"))
    away = np.linalg.norm(atoms.positions[299] - atoms.positions[:299], axis=1)
    expected = COULOMB_KCAL_A * (atoms.charges[:299] / away).sum()
    assert plan.evaluate(atoms.positions[None])[0][0, 0] == pytest.approx(expected, rel=1e-11)


def test_launches_of_values_at_atoms_are_short(monkeypatch):
    atoms, positions = random_atoms(30), np.stack([random_atoms(30, seed).positions for seed in range(3)])
    plan = AtomPotentials(atoms, np.arange(7), MapOptions())
    whole, errors = plan.evaluate(positions)
    assert not errors
    for evals in (500, 100, 1):  # two frames, three atoms of one, one atom
        monkeypatch.setattr("pele_ocl.potmap.frames.first_evals", lambda _, evals=evals: evals)
        assert plan.evaluate(positions)[0].tobytes() == whole.tobytes()


def test_a_site_without_charge_may_stand_on_a_chosen_atom():
    atoms = Atoms(positions=[(0, 0, 0), (0, 0, 0), (2, 0, 0)], charges=[1, 0, -1])
    values, errors = AtomPotentials(atoms, np.array([0]), MapOptions()).evaluate(atoms.positions[None])
    assert not errors
    assert values[0, 0] == pytest.approx(-COULOMB_KCAL_A / 2, rel=1e-6)


SMALL = ("--spacing", 1.9, "--padding", 3, "--precision", "float64")


def test_command_writes_a_file_of_each_statistic(atoms, grid, file, each, tmp_path):
    output, all_of = tmp_path / "map_{statistic}.mrc", tmp_path / "all.h5"
    found = json.loads(
        run("potmap", HEXAPEPTIDE, "-t", file, *SMALL, "--align", "--json", "-o", output, "-o", all_of).stdout
    )
    assert found["n_frames"] == len(found["frames"]) == M
    assert found["rmsd_max"] < 0.1
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "all.h5", "map_avg.mrc", "map_max.mrc", "map_min.mrc", "map_stdev.mrc",
    ]  # fmt: skip
    with h5py.File(all_of) as maps:
        for name in ("avg", "min", "max", "stdev"):
            values = read_map(tmp_path / f"map_{name}.mrc").values
            np.testing.assert_allclose(values, maps[name][()], rtol=1e-5, atol=1e-5)
        assert maps["potential"].shape == grid.shape[::-1]
        assert maps.attrs["frames_n"] == M
    told = run("potmap", HEXAPEPTIDE, "-t", file, *SMALL, "--align", "name CA", "-v").stdout
    assert "5 frames, " in told
    assert " frames/s" in told
    assert "Superposed: 0.0" in told


def test_command_goes_on_without_frames_that_fail(atoms, frames, tmp_path):
    some = frames.copy()
    some[1, 7, 2] = np.nan
    path, output = written(tmp_path / "some.h5", some), tmp_path / "map.dx"
    result = run("potmap", HEXAPEPTIDE, "-t", path, "--align", *SMALL, "-o", output, code=1)
    assert "Error: 1 frame of 5 failed: frame 1: " in result.stderr
    assert "4 frames" in result.stdout
    assert output.exists()


def test_command_writes_values_at_atoms(atoms, file, tmp_path):
    chosen = ("potmap", HEXAPEPTIDE, "-t", file, "--at-atoms", "name CA", "--unit", "kT/e")
    told = run(*chosen, "-o", tmp_path / "a.csv", "-o", tmp_path / "a.h5").stdout
    assert "Potential at atoms, excluding their own charges, kT/e" in told
    lines = [line for line in (tmp_path / "a.csv").read_text().splitlines() if not line.startswith("#")]
    with h5py.File(tmp_path / "a.h5") as table:
        n = table["potential"].shape[1]
        assert table["potential"].shape[0] == M == len(lines) - 1
        np.testing.assert_allclose([float(x) for x in lines[1].split(",")[1 : 1 + n]], table["potential"][0], rtol=1e-6)
    assert lines[0].startswith("frame,A:")
    assert lines[0].endswith(":CA [kT/e],error")
    found = json.loads(run(*chosen, "--json").stdout)
    assert len(found["atoms"]) == n
    assert set(found["atoms"][0]) == {"atom", "mean", "sd", "min", "max"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--align",), "--align applies to a trajectory; give one as --trajectory"),
        (("--at-atoms", "all"), "--at-atoms applies to a trajectory; give one as --trajectory"),
        (("-t", "a.nc", "--at-atoms", "all", "--padding", 3), "--at-atoms computes no map; leave out --padding"),
        (("-o", "{statistic}.dx"), "{statistic} can only be used with --models all or a trajectory"),
    ],
)
def test_wrong_usage(arguments, message):
    assert message in run("potmap", HEXAPEPTIDE, *arguments, code=2).stderr
