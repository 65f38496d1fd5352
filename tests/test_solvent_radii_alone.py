"""Born radii without energies: the same bits, no energies anywhere, and long arrays that go by several threads."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from conftest import random_atoms

from pele_ocl import InputError, Solvent, SolventModel, energy_over, read, solvent
from pele_ocl.cli import main
from pele_ocl.common import threads
from pele_ocl.common.installation import shipped
from pele_ocl.plan.passes import norm2
from pele_ocl.solvent.error import SAMPLE, SEED, sample_of
from pele_ocl.trajectories import batches_over

HEXAPEPTIDE = shipped("data") / "structures" / "hexapeptide.pdb"


@pytest.fixture(scope="module")
def atoms():
    return read(HEXAPEPTIDE)


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("variant", ["tiled", "tree", "pair"])
def test_radii_are_those_beside_energies(device, atoms, variant):
    whole, alone = (solvent(atoms, variant=variant, device=device, energy=energy) for energy in (True, False))
    np.testing.assert_array_equal(alone.born_radii, whole.born_radii)
    np.testing.assert_array_equal(alone.psi, whole.psi)
    assert alone.error == whole.error
    assert alone.terms.names == ()
    assert alone.per_atom is None
    assert repr(alone) == f"SolventResult(96 atoms, no energies, {variant}, float32)"


def test_results_say_that_there_are_no_energies(device, atoms):
    plan = Solvent(atoms, device=device, energy=False, model=SolventModel(surface="lcpo"))  # without a surface
    assert plan.names == ()
    result, batch = plan.evaluate(), plan.evaluate_batch(np.stack([atoms.positions, atoms.positions + 1]))
    for what in (
        lambda: result.total, lambda: result.energy, lambda: batch.total, lambda: batch[1].energy, result.per_residue,
        lambda: result.surface_area,
    ):  # fmt: skip
        with pytest.raises(InputError, match="energies were not requested"):
            what()
    with pytest.raises(AttributeError, match="no attribute 'gb_self'"):
        _ = result.gb_self
    assert repr(batch) == f"SolventBatch(2 conformations of 96 atoms, no energies, {plan.variant}, float32)"
    with pytest.raises(InputError, match="energy is 1; expected True or False"):
        Solvent(atoms, device=device, energy=1)


def test_batches_with_failures_and_frames(device, atoms):
    plan, positions = Solvent(atoms, device=device, energy=False), atoms.positions
    batch = plan.evaluate_batch(np.stack([positions, np.nan * positions, positions + 1]), errors="record")
    assert list(batch.errors) == [1]
    assert np.isnan(batch.born_radii[1]).all()
    np.testing.assert_array_equal(batch.born_radii[0], plan.evaluate().born_radii)
    with pytest.raises(InputError, match="computes no energies; create it with energy=True, or use batches_over"):
        energy_over(plan, [HEXAPEPTIDE])
    ((_, found),) = batches_over(plan, [HEXAPEPTIDE])
    np.testing.assert_array_equal(found.born_radii[0], batch.born_radii[0])


def test_several_devices_share_radii(device, atoms):
    one, two = (Solvent(atoms, variant="tree", device=each, energy=False) for each in (device, [device, device]))
    shares = []
    np.testing.assert_array_equal(two.evaluate(progress=shares.append).psi, one.evaluate().psi)
    assert shares[-1] == 1


def test_the_command(tmp_path, atoms):
    report = json.loads(run("solvent", HEXAPEPTIDE, "--no-energy", "--json", "-o", tmp_path / "radii.h5"))
    assert not {"energy", "surface_area"} & set(report)
    with h5py.File(tmp_path / "radii.h5") as file:
        assert {"born_radii", "psi"} <= set(file)
        assert not [name for name in (*file, *file.attrs) if "gb_self" in name]
        assert report["born_radius"]["max"] == file["born_radii"][:].max()
    text = run("solvent", HEXAPEPTIDE, "--no-energy")
    assert "Born radii  " in text
    assert "kcal" not in text
    table = run("solvent", HEXAPEPTIDE, HEXAPEPTIDE, "--no-energy")
    assert "Born radii of structures, A" in table
    assert "Solvent       obc2, radii " in table
    run("solvent", HEXAPEPTIDE, HEXAPEPTIDE, "--no-energy", "-o", tmp_path / "radii.csv")
    assert "born_radius_mean [angstrom]" in (tmp_path / "radii.csv").read_text()
    assert "kcal" not in table
    assert "total" not in table.rpartition("total ")[0]  # except for the time
    for words in (("--per-residue",), ("-t", "traj.nc")):
        assert {"--per-residue": "--per-residue applies to energies", "-t": "choose one of --no-energy and"}[
            words[0]
        ] in run("solvent", HEXAPEPTIDE, "--no-energy", *words, code=2)


def test_the_command_on_models(tmp_path):
    text = HEXAPEPTIDE.read_text()
    lines = [line for line in text.splitlines() if line.startswith(("ATOM", "HETATM"))]
    path = tmp_path / "models.pdb"
    path.write_text("\n".join(["MODEL        1", *lines, "ENDMDL", "MODEL        2", *lines, "ENDMDL", "END", ""]))
    call = "solvent", path, "--models", "all", "--no-energy"
    models = json.loads(run(*call, "--json", "-o", tmp_path / "radii.h5"))["models"]
    assert [set(model) for model in models] == 2 * [{"model", "born_radius"}]
    with h5py.File(tmp_path / "radii.h5") as file:
        assert file["born_radii"].shape == (2, 96)
        assert file["born_radius_mean"][1] == models[1]["born_radius"]["mean"]
    assert "Born radii of models, A" in run(*call)


def test_parts_of_long_arrays(device, monkeypatch):
    """Bits are equal with and without threads, and positions out of reach are found in any part."""
    atoms = random_atoms(300)
    expected = Solvent(atoms, device=device, variant="tiled").evaluate()
    monkeypatch.setattr(threads, "PART", 192)
    monkeypatch.setattr(threads, "LEAST", 193)
    plan = Solvent(atoms, device=device, variant="tiled")
    found = plan.evaluate(atoms.positions)
    np.testing.assert_array_equal(found.born_radii, expected.born_radii)
    np.testing.assert_array_equal(found.per_atom.values, expected.per_atom.values)
    np.testing.assert_allclose(plan.evaluate(atoms.positions + 4e6).born_radii, expected.born_radii, rtol=1e-5)
    broken = atoms.positions.copy()
    broken[200, 1] = np.nan
    with pytest.raises(InputError, match="atom 200"):
        plan.evaluate(broken)


@pytest.mark.parametrize("n", [100, 8192, 8193, 30_000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_squares(n, dtype):
    values = np.random.default_rng(1).normal(size=n).astype(dtype)
    assert norm2(values) == pytest.approx((values.astype(np.float64) ** 2).sum(), rel=1e-5)
    values[n // 2] = np.inf
    assert not np.isfinite(norm2(values))


@pytest.mark.parametrize("n", [513, 64 * SAMPLE // 2, 64 * SAMPLE // 2 + 1, 100_001])
def test_the_sample_is_as_defined(n, monkeypatch):
    radii = np.random.default_rng(n).random(n)
    largest = np.argsort(radii)[n - SAMPLE // 2 :]
    others = np.setdiff1d(np.arange(n), largest)
    drawn = np.random.default_rng(SEED).choice(others, SAMPLE // 2, replace=False)
    for least in (threads.LEAST, 193):
        monkeypatch.setattr(threads, "PART", 192)
        monkeypatch.setattr(threads, "LEAST", least)
        np.testing.assert_array_equal(sample_of(radii), np.sort([*largest, *drawn]))
