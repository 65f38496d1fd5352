"""Binding energies: against three single runs, sander's printed terms, and statistics of known answers."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from amber_helpers import ROOT, SAMPLES, netcdf
from binding_helpers import LIGAND, N, complex_atoms, frames, positions, write_complex

import pele_ocl
from pele_ocl import Atoms, Binding, Energy, InputError, SolventModel, read
from pele_ocl.atoms import Labels
from pele_ocl.binding import spread_of
from pele_ocl.binding.energies import is_close
from pele_ocl.binding.naming import amber_terms
from pele_ocl.binding.poses import evaluate_poses
from pele_ocl.binding.separate import separate_energies
from pele_ocl.binding.statistics import MOST_SIGMA, entropy_of, interaction_entropy
from pele_ocl.binding.texts import entropy_lines
from pele_ocl.opencl import Device
from pele_ocl.trajectories import Trajectory
from pele_ocl.units import BOLTZMANN_KCAL

MODELS = {
    "mmpbsa.py": SolventModel.like("mmpbsa.py"), "pele": SolventModel.like("pele", ionic_strength=0.15),
    "inside": SolventModel(solute_dielectric=4.0, gb="gbn2", surface="lcpo"), "vacuum": SolventModel(gb="none"),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_three_single_runs(device, name):
    atoms, conformations = complex_atoms(), frames(3)
    atoms = atoms.with_radii("mbondi3") if name == "inside" else atoms
    found = Binding(atoms, LIGAND, model=MODELS[name], precision="float64", device=device).evaluate_batch(conformations)
    options = {"model": MODELS[name], "precision": "float64", "gradient": False, "device": device}
    parts = {"complex": slice(None), "receptor": slice(N), "ligand": slice(N, None)}
    for k, x in enumerate(conformations):
        single = {part: Energy(atoms[chosen], **options).evaluate(x[chosen]).energy for part, chosen in parts.items()}
        for part, energy in single.items():
            computed = {term: values[k] for term, values in getattr(found, part).columns().items()}
            assert computed == pytest.approx(energy, abs=1e-11, rel=1e-13)
        delta = single["complex"]["total"] - single["receptor"]["total"] - single["ligand"]["total"]
        assert found.total[k] == pytest.approx(delta, abs=1e-9)
    assert np.abs(found.delta.bond).max() < 1e-9  # bonded terms cancel
    assert found.delta.lennard_jones.mean() < -1


def test_float32_keeps_the_difference(device):
    atoms, x = complex_atoms(), frames(3)
    both = [Binding(atoms, LIGAND, like="gmx", precision=p, device=device) for p in ("float32", "float64")]
    single, double = (plan.evaluate_batch(x) for plan in both)
    for term, values in double.delta.columns().items():
        assert single.delta.columns()[term] == pytest.approx(values, abs=2e-3), term


def test_a_small_ligand_takes_the_programs_of_the_complex(device):
    """On a CPU, where its own tiles would be smaller; numbers are those of the ligand alone."""
    own = Device(device.index, device.handle)  # without programs
    atoms = read(ROOT / "data" / "structures" / "ubiquitin.pdb")
    Energy(atoms, gradient=False, born="pairs", device=own).evaluate()
    of_complex = set(own.programs)
    found = Binding(atoms, "resid 76", device=own).evaluate()
    if device.kind == "CPU":
        assert set(own.programs) == of_complex
    alone = Energy(atoms[pele_ocl.selection(atoms, "resid 76")], gradient=False, device=own).evaluate()
    for term, value in found.ligand.columns().items():
        assert value == pytest.approx(alone.energy.get(term, 0.0), abs=1e-3), term


@pytest.mark.parametrize("name", ["complex", "ligand"])
def test_plans_of_the_parts_pickle_with_their_layout(device, name):
    atoms = read(ROOT / "data" / "structures" / "ubiquitin.pdb")
    plan = Binding(atoms, np.arange(1200, 1231), device=device).plans[name]
    again = pickle.loads(pickle.dumps(plan))
    assert again.layout == plan.layout
    one, other = plan.evaluate(), pickle.loads(pickle.dumps(again)).evaluate()
    np.testing.assert_array_equal(one.energies, other.energies)
    np.testing.assert_array_equal(one.born_radii, other.born_radii)


def test_other_atoms_may_be_there(device):
    """Water and what neither selection names is left out, and its positions are passed over."""
    atoms, labels = complex_atoms(), complex_atoms().labels
    residues = labels.residue_names.copy()
    residues[labels.residue_index == 5] = "WAT"
    watered = replace(atoms, labels=replace(labels, residue_names=residues))
    plan = Binding(watered, LIGAND, device=device)
    assert len(plan.atoms) == 2 * N - (labels.residue_index == 5).sum()
    assert "of water are left out" in plan.notes[0]
    chosen = np.flatnonzero(labels.residue_index != 5)
    alone = Binding(atoms[chosen], np.arange(len(chosen) - N, len(chosen)), device=device)
    assert plan.evaluate(frames(1)[0]).total == alone.evaluate(frames(1)[0][chosen]).total


def test_atoms_in_neither_part_are_named(device):
    """Whatever named the parts: selections, masks or indices."""
    atoms = complex_atoms()
    left = np.flatnonzero(atoms.labels.residue_index == 2)
    names = {str(atoms.labels.residue_names[left[0]]): 1}
    receptor = np.setdiff1d(np.arange(N), left)
    mask = np.isin(np.arange(2 * N), receptor)
    for chosen in (receptor, mask, "index " + " ".join(map(str, receptor))):
        plan = Binding(atoms, LIGAND, chosen, device=device)
        assert plan.parts.left_out == names
        told = f"{len(left)} atoms (1 {next(iter(names))}) are in neither receptor nor ligand, and left out"
        assert told in plan.notes
    assert Binding(atoms, LIGAND, np.arange(N), device=device).parts.left_out == {}


def test_a_ligand_of_several_molecules_is_told(device):
    atoms, labels = complex_atoms(), complex_atoms().labels
    residues, index = labels.residue_names.copy(), labels.residue_index
    last = np.unique(index)[-6:]  # the residues of the ligand
    residues[np.isin(index, last)] = "LIG"
    names = np.array([f"X{k}" for k in range(len(labels))])
    kinds = replace(labels, residue_names=residues, names=names)
    joined = Binding(replace(atoms, labels=kinds), "resname LIG", device=device)
    assert not any("molecules of one name" in note for note in joined.notes)
    across = (index[atoms.bonds[:, 0]] != index[atoms.bonds[:, 1]]) & np.isin(index[atoms.bonds[:, 0]], last)
    apart = replace(atoms, labels=kinds, bonds=atoms.bonds[~across], bonded=None)
    notes = Binding(apart, "resname LIG", device=device).notes
    assert any("the ligand contains 6 molecules of one name" in note for note in notes)


def test_what_is_no_complex():
    atoms = complex_atoms()
    for ligand, receptor, reason in (
        ("all", None, "no receptor"), (LIGAND, "index 90:100", "is in both the receptor and the ligand"),
        (np.zeros(2 * N, bool), None, "contains no atom"), ([500], None, "names no atom"),
        ("resname XXX", None, "no atom"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=reason):
            Binding(atoms, ligand, receptor)
    with pytest.raises(InputError, match="choose one of model and like"):
        Binding(atoms, LIGAND, model=SolventModel(), like="gmx")
    with pytest.raises(InputError, match="shape"):
        Binding(atoms, LIGAND).evaluate(np.zeros((5, 3)))


def test_a_frame_that_fails_costs_one_row(device):
    x = frames(3).astype(float)
    x[1, 0] = x[1, 100]
    found = Binding(complex_atoms(), LIGAND, device=device).evaluate_batch(x, errors="record")
    assert list(found.errors) == [1]
    assert "same position" in found.errors[1]
    assert np.isnan(found.total).tolist() == [False, True, False]
    assert found.statistics()["delta"]["total"].n == 2


def test_frames_of_a_trajectory_and_resumed(device, tmp_path):
    topology, coordinates, trajectory = write_complex(tmp_path)
    plan = Binding(read(topology, coordinates=coordinates), LIGAND, device=device)
    whole = plan.over(trajectory, output=tmp_path / "all.csv")
    assert (whole.total == plan.evaluate_batch(frames()).total).all()
    text = (tmp_path / "all.csv").read_bytes()
    rows = text.splitlines(keepends=True)
    (tmp_path / "all.csv").write_bytes(b"".join(rows[:-2]))
    again = plan.over(trajectory, output=tmp_path / "all.csv", resume=True)
    assert (again.total == whole.total).all()
    assert (tmp_path / "all.csv").read_bytes() == text


def test_three_trajectories(device, tmp_path):
    topology, coordinates, trajectory = write_complex(tmp_path)
    plan = Binding(read(topology, coordinates=coordinates), LIGAND, precision="float64", device=device)
    own = {"complex": None, "receptor": slice(N), "ligand": slice(N, 2 * N)}
    same = separate_energies(plan, {name: Trajectory(trajectory, None, select=s) for name, s in own.items()})
    one = plan.over(trajectory).statistics()["delta"]["total"]
    three = same.statistics()
    assert three["delta"]["total"].mean == pytest.approx(one.mean, abs=1e-9)
    errors = [three[name]["total"].sem for name in own]
    assert three["delta"]["total"].sem == pytest.approx(np.sqrt(np.square(errors).sum()))


def test_poses_compute_the_receptor_once(device):
    plan, x = Binding(complex_atoms(), LIGAND, device=device), frames(4)
    held = np.repeat(positions()[np.newaxis], 4, axis=0)
    held[:, N:] = x[:, N:]
    assert (evaluate_poses(plan, x[:, N:].astype(float)).total == plan.evaluate_batch(held).total).all()


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="AMBER's test files are not beside the checkout")
def test_terms_that_sander_printed(device):
    """DPDP's complex is cut in two, by AMBER's names; 8 of 100 frames are compared. sander left out bonds with
    hydrogen.
    """
    rows = np.loadtxt(SAMPLES / "DPDP_sander.dat")[:8]
    atoms = read(SAMPLES / "DPDP.parm7", coordinates=SAMPLES / "DPDP.nc")
    model = SolventModel.like("gmx", gb="hct", surface_tension=0.005)
    plan = Binding(atoms, "resid 15:22", model=model, precision="float64", device=device)
    energies = plan.over(SAMPLES / "DPDP.nc", frames=":8")
    found = amber_terms(energies.complex)
    columns = {"VDWAALS": 2, "EEL": 3, "EGB": 4, "ANGLE": 6, "DIHED": 7, "1-4 VDW": 8, "1-4 EEL": 9, "ESURF": 10}
    for name, column in columns.items():
        assert np.abs(found[name] - rows[:, column]).max() < 6e-5, name
    delta = amber_terms(energies.delta)
    assert delta["TOTAL"] == pytest.approx(energies.total, abs=1e-9)
    assert delta["GGAS"] + delta["GSOLV"] == pytest.approx(delta["TOTAL"])


# Statistics


trapezoid = getattr(np, "trapezoid", None) or np.__dict__["trapz"]  # its name before NumPy 2


def autoregressive(n: int, phi: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x, noise = np.empty(n), rng.normal(size=n)
    x[0] = noise[0] / np.sqrt(1 - phi**2)
    for k in range(1, n):
        x[k] = phi * x[k - 1] + noise[k]
    return x


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_blocks_know_an_autoregressive_series(phi):
    """x' = phi x + noise: the inefficiency is (1 + phi) / (1 - phi), the error of the mean 1 / (1 - phi) / sqrt(n)."""
    n = 1 << 13
    found = [spread_of(autoregressive(n, phi, seed)) for seed in range(24)]
    error = 1 / (1 - phi) / np.sqrt(n)
    assert np.mean([of.sem_blocked for of in found]) == pytest.approx(error, rel=0.08)
    assert np.mean([of.inefficiency for of in found]) == pytest.approx((1 + phi) / (1 - phi), rel=0.15)
    assert np.std([of.mean for of in found]) == pytest.approx(error, rel=0.45)


def test_spreads_of_few_values():
    one, two = spread_of([3.0]), spread_of([1.0, np.nan, 2.0])
    assert (one.mean, one.sd, one.sem, one.inefficiency) == (3.0, 0.0, 0.0, 1.0)
    assert one.as_json()["sd_sample"] is None
    assert (two.n, two.sd, two.sd_sample) == (2, 0.5, pytest.approx(np.sqrt(0.5)))
    assert two.sem == 0.5 / np.sqrt(2)
    assert spread_of(np.full(100, 2.5)).sem_blocked == 0
    with pytest.raises(InputError, match="no value"):
        spread_of([np.nan])


# Entropies


def test_entropies_against_direct_integration():
    """Values at the quantiles of a density make sums into integrals, which are taken here on a grid."""
    kt, width = BOLTZMANN_KCAL * 298.15, 3.0  # kcal/mol
    shares = (np.arange(200_000) + 0.5) / 200_000
    energies = -40 + width * np.sqrt(shares)  # density 2 x / width^2 on 0 to width
    grid = np.linspace(0, width, 200_001)
    density = 2 * grid / width**2
    mean = trapezoid(density * grid, grid)
    direct = kt * np.log(trapezoid(density * np.exp((grid - mean) / kt), grid))
    c2 = trapezoid(density * (grid - mean) ** 2, grid) / (2 * kt)
    assert interaction_entropy(energies, kt) == pytest.approx(direct, rel=1e-5)
    found = entropy_of(np.random.default_rng(0).permutation(energies)[:20_000], resamples=50)
    assert (found.interaction, found.c2) == pytest.approx((direct, c2), rel=0.02)
    assert found.last_quarter == pytest.approx(direct, rel=0.03)
    assert found.warning == ""


def test_entropies_of_a_normal_density_agree_and_scatter_as_told():
    kt, sigma, n = BOLTZMANN_KCAL * 300, 0.5, 400
    samples = [entropy_of(np.random.default_rng(k).normal(-20, sigma, n), 300, resamples=200) for k in range(30)]
    exact = sigma**2 / (2 * kt)
    assert np.mean([s.c2 for s in samples]) == pytest.approx(exact, rel=0.03)
    assert np.mean([s.interaction for s in samples]) == pytest.approx(exact, rel=0.05)
    assert np.mean([s.c2_error for s in samples]) == pytest.approx(np.std([s.c2 for s in samples]), rel=0.35)
    title, table, *note = entropy_lines(samples[0], -20.0)
    assert title.startswith("Entropy at 300 K, kcal/mol, of all frames; ")
    assert f"{samples[0].interaction:,.3f}" in table
    assert " ".join(note).startswith("For comparison with gmx_MMPBSA only, ")
    assert f"the frames: {samples[0].last_quarter:,.3f}; otherwise use the values in the table" in " ".join(note)
    assert entropy_of(samples[0].c2 + np.arange(3.0)) == entropy_of(samples[0].c2 + np.arange(3.0))


def test_a_scatter_that_is_too_large_is_told():
    series = np.random.default_rng(0).normal(0, 2 * MOST_SIGMA, 500)
    assert "kT; beyond 3.6 kcal/mol neither" in entropy_of(series).warning
    with pytest.raises(InputError, match="two frames"):
        entropy_of([1.0])


def test_labels_are_needed_where_residues_are(device):
    atoms = complex_atoms()
    assert isinstance(atoms.labels, Labels)
    with pytest.raises(InputError, match="needs residues"):
        Binding(replace(atoms, labels=None), np.arange(N), idecomp=2, device=device, like="openmm")


def test_float32_keeps_the_difference_of_five_thousand_atoms(device):
    """Two proteins of 4,937 and 721 atoms: every term of the difference within 0.01 kcal/mol of float64."""
    atoms = read(ROOT / "data" / "structures" / "ruvab.pdb.gz", select="chain D or chain G").with_radii("mbondi2")
    single, double = (
        Binding(atoms, "chain G", like="mmpbsa.py", precision=p, device=device).evaluate().delta.columns()
        for p in ("float32", "float64")
    )
    assert double["lennard_jones"] < -20
    for term, value in double.items():
        assert single[term] == pytest.approx(value, abs=0.01), term


def clashing() -> np.ndarray:
    """Four conformations: none, a ligand's atom on a receptor's, the ligand pushed in, a clash within the receptor."""
    x = np.repeat(positions()[np.newaxis], 4, axis=0)
    x[1, N + 3] = x[1, 7] + [0.3, 0.1, 0.0]
    x[2, N:] += x[2, 40] - x[2, N + 20] + [0.2, 0.2, 0.1]
    x[3, 4] = x[3, 40] + [0.2, -0.1, 0.1]
    return x


def test_clashes_in_float32_have_the_binding_energy_of_float64():
    """Energies of 1e9 kcal/mol have errors of thousands in float32, by which such a pose could rank first."""
    single, double = (
        Binding(complex_atoms(), LIGAND, like="mmpbsa.py", idecomp=2, precision=precision)
        for precision in ("float32", "float64")
    )
    found, exact = single.evaluate_batch(clashing()), double.evaluate_batch(clashing())
    assert np.abs(exact.complex.total[1:]).min() > 1e6
    assert found.total == pytest.approx(exact.total, abs=0.5)
    assert found.total[3] == pytest.approx(exact.total[3], abs=1e-6)  # which is that of no clash of the two
    assert np.abs(exact.total[3]) < 100
    shares = found.decomposition.per_residue["delta"].total
    assert shares.sum() == pytest.approx(float(found.total.mean()), rel=1e-9)
    assert float(single.evaluate(clashing()[3]).total) == pytest.approx(exact.total[3], abs=1e-6)


def with_hydroxyls(distance: float) -> tuple[Atoms, np.ndarray]:
    """Atoms on a grid and two hydroxyls whose hydrogens, of no Lennard-Jones energy, lie on each other; the ligand."""
    rng = np.random.default_rng(3)
    axis = 3.0 * np.arange(8) + 40  # A
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    hydroxyls = np.array([70.0, 50, 50]) + np.outer([0, 0.96, 0.96 + distance, 1.92 + distance], [0.8, 0.48, 0.36])
    n = len(grid)
    atoms = Atoms(
        np.concatenate([grid + rng.uniform(-0.3, 0.3, grid.shape), hydroxyls]),
        np.r_[rng.normal(0, 0.3, n), -0.65, 0.43, 0.43, -0.65], np.r_[np.full(n, 2.5), 3.07, 0, 0, 3.07],
        np.r_[np.full(n, 0.05), 0.21, 0, 0, 0.21], np.full(n + 4, 1.5), np.full(n + 4, 0.8),
        bonds=[[n, n + 1], [n + 2, n + 3]],
    )  # fmt: skip
    return atoms, np.arange(n + 4) >= n + 2


@pytest.mark.parametrize("distance", [0.05, 0.001])
def test_hydroxyl_hydrogens_on_each_other_have_the_binding_energy_of_float64(distance):
    """They have no Lennard-Jones energy, so that no term is large: the distance itself decides."""
    atoms, ligand = with_hydroxyls(distance)
    model = SolventModel(surface="none")
    found, expected = (
        Binding(atoms, ligand, model=model, precision=precision).evaluate(atoms.positions)
        for precision in ("float32", "float64")
    )
    assert found.total == pytest.approx(expected.total, abs=0.01)
    apart = np.stack([atoms.positions, atoms.positions])
    apart[1, -2:] += 1.0
    assert is_close(atoms, apart).tolist() == [True, False]


def test_hydroxyl_hydrogens_on_each_other_in_three_trajectories(tmp_path):
    """The rule of one trajectory holds for three: the complex is computed in float64 where it has close atoms."""
    atoms, ligand = with_hydroxyls(0.001)
    x = np.stack([atoms.positions, atoms.positions])
    x[1, -2:] += 1.0
    (tmp_path / "frames.nc").write_bytes(netcdf(x.astype(np.float32)))
    own = {"complex": None, "receptor": np.flatnonzero(~ligand), "ligand": np.flatnonzero(ligand)}

    def three(precision):
        plan = Binding(atoms, ligand, model=SolventModel(surface="none"), precision=precision)
        taken = {name: Trajectory(tmp_path / "frames.nc", None, select=s) for name, s in own.items()}
        return separate_energies(plan, taken).systems["complex"].total

    single, double = three("float32"), three("float64")
    assert single[0] == pytest.approx(double[0], abs=1e-6)
    assert single[1] != double[1]  # of which float32 is enough
    assert single[1] == pytest.approx(double[1], abs=0.05)


def test_poses_that_clash_are_computed_in_float64(tmp_path):
    single, double = (
        Binding(complex_atoms(), LIGAND, like="mmpbsa.py", precision=precision) for precision in ("float32", "float64")
    )
    poses = clashing()[[0, 2], N:]
    assert evaluate_poses(single, poses).total == pytest.approx(evaluate_poses(double, poses).total, abs=0.5)


def test_clashes_in_three_trajectories_are_computed_in_float64(tmp_path, monkeypatch):
    """Clashes are computed as in one trajectory; on a device without float64 these frames fail."""
    x = clashing()[[0, 2, 0]]  # the others would fail as torn
    (tmp_path / "frames.nc").write_bytes(netcdf(x.astype(np.float32)))
    own = {"complex": None, "receptor": slice(N), "ligand": slice(N, 2 * N)}

    def three(plan):
        taken = {name: Trajectory(tmp_path / "frames.nc", None, select=s) for name, s in own.items()}
        return separate_energies(plan, taken).systems["complex"]

    single, double = (
        Binding(complex_atoms(), LIGAND, like="mmpbsa.py", precision=precision) for precision in ("float32", "float64")
    )
    exact = three(double)
    assert exact.total.max() > 1e6
    found = three(single)
    assert found.total[1] == exact.total[1]
    assert found.total[[0, 2]] == pytest.approx(exact.total[[0, 2]], abs=0.01)
    monkeypatch.setattr(type(single.device), "has_float64", False)
    failed = three(single)
    assert list(failed.errors) == [1]
    assert np.isfinite(failed.total).tolist() == [True, False, True]


def test_clashes_are_refused_where_the_device_has_no_float64(monkeypatch):
    plan = Binding(complex_atoms(), LIGAND, like="mmpbsa.py")
    monkeypatch.setattr(type(plan.device), "has_float64", False)
    found = plan.evaluate_batch(clashing(), errors="record")
    assert list(found.errors) == [1, 2, 3]
    assert "too large for differences in float32, and the device has no float64" in found.errors[1]
    assert np.isfinite(found.total).tolist() == [True, False, False, False]
    with pytest.raises(InputError, match="conformation 2 of 4: atoms overlap"):
        plan.evaluate_batch(clashing())
