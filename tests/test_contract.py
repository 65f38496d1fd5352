"""Contract of inputs: frames across periodic images, torn molecules, terms beyond reason."""

from __future__ import annotations

import json
from dataclasses import replace

import gemmi
import h5py
import numpy as np
import pytest
from amber_helpers import hexapeptide, restart
from binding_helpers import LIGAND, complex_atoms, frames, positions, write_complex
from conftest import DEVICES
from test_cli import HEXAPEPTIDE, error_of, on_the_chosen_device, run
from trajectory_helpers import pdb_model, write_trajectory

from pele_ocl import Atoms, Binding, Energy, InputError, energy_over, prepare, read, write_conformations
from pele_ocl.atoms import Bonded, Bonds, Labels
from pele_ocl.contract import Imager, cells_of, dimensions_of, of_energy, of_structure, usable_cells, whole_structure
from pele_ocl.formats import read_cell, read_structure
from pele_ocl.formats.pdb_writing import atom_lines
from pele_ocl.trajectories import Trajectory
from pele_ocl.trajectories.files import open_frames

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

M = 6
OCTAHEDRON = [109.4712206344907] * 3
CELLS = {
    "orthorhombic": ([[45.0, 36.0, 40.0]] * M, [[90.0] * 3] * M),
    "octahedron": ([[46.0] * 3] * M, [OCTAHEDRON] * M),
    "flat": ([[46.0, 44.0, 120.0]] * M, [[40.0, 50.0, 60.0]] * M),
    "changing": ([[45.0 + k, 38.0 - k / 3, 41.0 + k / 7] for k in range(M)], [[80.0 + k, 95, 100] for k in range(M)]),
}  # fmt: skip


def wrapped(x: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Every atom (m, n, 3) in the cell of its frame."""
    inside = x @ np.linalg.inv(cells)
    return (inside - np.floor(inside)) @ cells


def ligand_moved(x: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Move the second half of the atoms by lattice vectors in every second frame."""
    moved = x.copy()
    for k, numbers in enumerate(((1, 0, 0), (0, -1, 1), (2, 1, -1))):
        moved[2 * k, x.shape[1] // 2 :] += np.array(numbers) @ cells[2 * k]
    return moved


CHANGES = {"ligand": ligand_moved, "atoms": wrapped}


def write(path, x, lengths=None, angles=None):
    """An HDF5 trajectory in float64."""
    with h5py.File(path, "w") as file:
        file["positions"] = x
        if lengths is not None:
            file["cell_lengths"], file["cell_angles"] = np.array(lengths), np.array(angles)
    return path


@pytest.fixture(scope="module")
def whole():
    return frames(M).astype(np.float64)


@pytest.fixture(scope="module")
def plans():
    options = {"precision": "float64", "device": DEVICES[0]}
    return Energy(complex_atoms(), gradient=False, **options), Binding(complex_atoms(), LIGAND, **options)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("cell", CELLS)
def test_energies_of_frames_across_images_are_those_of_whole_ones(cell, change, whole, plans, tmp_path):
    energy, binding = plans
    lengths, angles = CELLS[cell]
    x = CHANGES[change](whole, cells_of(lengths, angles))
    path = write(tmp_path / "frames.h5", x, lengths, angles)
    found, bound = energy_over(energy, path), binding.over(path)
    assert not found.errors
    assert not bound.errors
    assert found.terms.values == pytest.approx(energy.evaluate_batch(whole).terms.values, rel=1e-9, abs=1e-6)
    assert bound.total == pytest.approx(binding.evaluate_batch(whole).total, abs=1e-6)
    assert found.n_imaged == bound.n_imaged == int((np.abs(x - whole).max(axis=(1, 2)) > 1).sum()) > 0
    assert energy_over(energy, write(tmp_path / "as_they_are.h5", whole, lengths, angles)).n_imaged == 0
    alone = energy_over(energy, path, image="none")
    assert alone.n_imaged == 0
    if change == "ligand":
        assert np.abs(alone.total - found.total)[::2].min() > 1e-3
    else:
        assert alone.errors
        assert "use `image='auto'`" in next(iter(alone.errors.values()))


def test_the_receptor_stays_and_the_ligand_comes(whole, plans, tmp_path):
    lengths, angles = CELLS["orthorhombic"]
    cells = cells_of(lengths, angles)
    path = write(tmp_path / "frames.h5", ligand_moved(whole, cells), lengths, angles)
    binding = Binding(complex_atoms(), "index 0:95", LIGAND, device=DEVICES[0])
    from pele_ocl.binding.plan import binding_trajectory

    (x,) = list(binding_trajectory(binding, path))
    assert x[:, 96:] == pytest.approx(ligand_moved(whole, cells)[:, 96:])
    assert x - x[:, 96:97] == pytest.approx(whole - whole[:, 96:97])


def test_chains_in_a_row_water_and_ions_come_to_their_neighbours():
    """Long chains come to their neighbours: the third of three to the second, not to the first.

    A lone ion comes to its nearest.
    """
    rod = np.stack([np.arange(10) * 1.5, np.zeros(10), np.zeros(10)], axis=1)
    small = np.array([[5.0, 4.0, 0.0], [30.0, 3.0, 0.0], [30.5, 3.0, 0.0]])
    x = np.concatenate([rod, rod[:9] + np.array([16, 0, 0]), rod[:8] + np.array([31, 0, 0]), small])
    runs = [range(10), range(10, 19), range(19, 27), range(28, 30)]
    bonds = np.array([(k, k + 1) for of in runs for k in of[:-1]])
    cell = np.diag([48.0, 30.0, 30.0])[np.newaxis]
    moved = x.copy()
    moved[10:19] -= [48, 0, 0]
    moved[19:27] += [48, 0, -30]
    moved[27] += [0, 30, 0]
    moved[28:] -= [96, 0, 0]
    found, imaged = Imager(len(x), bonds)(moved[np.newaxis], cell)
    assert imaged.all()
    assert found[0] == pytest.approx(x)
    some, imaged = Imager(len(x), bonds, np.arange(10, 27))(moved[np.newaxis], cell)
    assert (some[0, 27:] == moved[27:]).all()  # not among those that may be moved


@pytest.mark.parametrize("suffix", ["nc", "dcd", "xtc", "trr", "mdcrd", "h5", "pdb"])
def test_cells_of_every_format(suffix, tmp_path, whole):
    formats = pytest.importorskip("mdtraj.formats")
    right = suffix in ("mdcrd", "pdb")
    lengths, angles = (np.array(of) for of in CELLS["orthorhombic" if right else "changing"])
    path, nm = tmp_path / f"t.{suffix}", whole.astype(np.float32) / np.float32(10)
    if suffix == "pdb":
        models = [pdb_model(k + 1, of[:9].tolist()) for k, of in enumerate(whole)]
        rest = f"{36:9.3f}{40:9.3f}{90:7.2f}{90:7.2f}{90:7.2f} P 1           1\n"
        heads = [f"CRYST1{45 + k:9.3f}{rest}" for k in range(M)]
        heads[2] = ""  # a model without a record has that of the one before
        path.write_text("".join(head + model for head, model in zip(heads, models, strict=True)) + "END\n")
        lengths = lengths + [[k if k != 2 else 1, 0, 0] for k in range(M)]
    elif suffix in ("xtc", "trr"):
        kind = formats.XTCTrajectoryFile if suffix == "xtc" else formats.TRRTrajectoryFile
        with kind(str(path), "w") as file:
            file.write(nm, box=(cells_of(lengths, angles) / 10).astype(np.float32))
    elif suffix == "h5":
        with h5py.File(path, "w") as file:  # as MDTraj has it
            file["coordinates"], file["cell_lengths"], file["cell_angles"] = nm, lengths / 10, angles
            file["coordinates"].attrs["units"] = file["cell_lengths"].attrs["units"] = "nanometers"
    elif suffix == "mdcrd":
        write_trajectory(path, whole)
        lines = path.read_text().splitlines()
        n = -(-3 * whole.shape[1] // 10)
        box = "".join(f"{value:8.3f}" for value in lengths[0])
        boxed = [line for k in range(M) for line in (*lines[1 + k * n : 1 + (k + 1) * n], box)]
        path.write_text("\n".join([lines[0], *boxed]) + "\n")
    else:
        kind = formats.NetCDFTrajectoryFile if suffix == "nc" else formats.DCDTrajectoryFile
        with kind(str(path), "w") as file:
            file.write(whole.astype(np.float32), cell_lengths=lengths, cell_angles=angles)
    with open_frames(path, whole.shape[1]) as file:
        file.read(range(1, M, 2), slice(None))
        found = dimensions_of(file.cells)
    assert found[0] == pytest.approx(lengths[1::2], abs=2e-4)
    assert found[1] == pytest.approx(angles[1::2], abs=2e-4)


def test_angles_of_text_trajectories_are_those_of_the_topology(tmp_path, whole):
    pytest.importorskip("mdtraj.formats")
    topology, _, _ = write_complex(tmp_path, 1)
    text = topology.read_text().splitlines()
    at = next(k for k, line in enumerate(text) if line.startswith("%FLAG POINTERS")) + 2
    pointers = [int(text[k // 10 + at][8 * (k % 10) : 8 * (k % 10) + 8]) for k in range(30)]
    pointers[27] = 2
    rows = ["".join(f"{value:8d}" for value in pointers[k : k + 10]) for k in (0, 10, 20)]
    lengths, angles = CELLS["octahedron"]
    moved = ligand_moved(whole, cells_of(lengths, angles))
    path = write_trajectory(tmp_path / "t.mdcrd", moved)
    lines, n = path.read_text().splitlines(), -(-3 * whole.shape[1] // 10)
    boxed = [line for k in range(M) for line in (*lines[1 + k * n : 1 + (k + 1) * n], f"{46:8.3f}" * 3)]
    path.write_text("\n".join([lines[0], *boxed]) + "\n")
    for beta, imaged in ((OCTAHEDRON[0], 3), (75.0, 0)):  # the other angles of any other box are not known
        box = f"%FLAG BOX_DIMENSIONS\n%FORMAT(5E16.8)\n{beta:16.8E}" + f"{46:16.8E}" * 3
        topology.write_text("\n".join([*text[:at], *rows, *text[at + 3 :], box]) + "\n")
        atoms = read(topology, coordinates=positions())
        trajectory = Trajectory(path, atoms)
        (piece,) = trajectory.pieces()
        assert piece.n_imaged == imaged
        expected = whole if imaged else moved
        assert piece.positions == pytest.approx(expected, abs=2e-3)


def test_cosines_of_charmm_are_angles(tmp_path, whole):
    formats = pytest.importorskip("mdtraj.formats")
    path = tmp_path / "t.dcd"
    lengths, angles = (np.array(of) for of in CELLS["changing"])
    with formats.DCDTrajectoryFile(str(path), "w") as file:
        file.write(whole.astype(np.float32), cell_lengths=lengths, cell_angles=angles)
    data = bytearray(path.read_bytes())
    at = 0
    for _ in range(M):  # A gamma B beta alpha C behind the mark of 48 bytes
        at = data.index(np.array(48, "<i4").tobytes(), at) + 4
        six = np.frombuffer(data[at : at + 48], "<f8").copy()
        six[[1, 3, 4]] = np.cos(np.radians([100.0, 95.0, 85.0]))
        data[at : at + 48] = six.tobytes()
        at += 52
    path.write_bytes(data)
    with open_frames(path) as file:
        file.read(range(M), slice(None))
        assert dimensions_of(file.cells)[1] == pytest.approx(np.tile([85.0, 95.0, 100.0], (M, 1)), abs=1e-6)


def test_cells_of_structures(tmp_path):
    box = tmp_path / "x.rst7"
    box.write_text(restart(positions(), box=True))
    assert read_cell(box) == pytest.approx(np.eye(3) * 50)
    gro = tmp_path / "x.gro"
    gro.write_text("title\n 1\n    1SOL     OW    1   0.000   0.000   0.000\n   3.0 3.0 2.0 0 0 1.0 0 0.5 0.5\n")
    assert read_cell(gro) == pytest.approx(np.array([[30, 0, 0], [10, 30, 0], [5, 5, 20.0]]))
    cif = tmp_path / "x.cif"
    names = [*("length_a", "length_b", "length_c"), *("angle_alpha", "angle_beta", "angle_gamma")]
    values = dict(zip(names, (30, 31, 32, 90, 90, 90), strict=True))
    cif.write_text("data_x\n" + "".join(f"_cell.{name} {value}\n" for name, value in values.items()))
    assert read_cell(cif) == pytest.approx(np.diag([30.0, 31, 32]))
    assert np.isnan(usable_cells(np.eye(3))).all()  # 1 x 1 x 1 of models that have no cell


def test_torn_frames_without_a_cell_fail_by_their_atoms(whole, plans, tmp_path):
    x = whole.copy()
    x[2, 5] += 30
    x[4] = wrapped(whole, cells_of(*CELLS["orthorhombic"]))[4]
    found, bound = (of(write(tmp_path / "torn.h5", x)) for of in (plans[1].over, lambda p: energy_over(plans[0], p)))
    for result in (found, bound):
        assert set(result.errors) == {2, 4}
        assert "atom 5 (MET1:" in result.errors[2]
        assert "A long; the frame has no unit" in result.errors[2]
        assert np.isfinite(result.total[[0, 1, 3, 5]]).all()
    with h5py.File(tmp_path / "torn.h5", "a") as file:
        file["cell_lengths"], file["cell_angles"] = np.ones((M, 3)), np.full((M, 3), 90.0)
    assert set(energy_over(plans[0], tmp_path / "torn.h5").errors) == {2, 4}


def test_atoms_without_bonds_stay(whole, tmp_path):
    lengths, angles = CELLS["orthorhombic"]
    loose = replace(complex_atoms(), bonds=np.empty((0, 2)), bonded=None)
    x = wrapped(whole, cells_of(lengths, angles))
    (found,) = list(Trajectory(write(tmp_path / "f.h5", x, lengths, angles), loose))
    assert (found == x).all()


def test_commands_say_how_many_frames_were_imaged(whole, tmp_path):
    topology, _, _ = write_complex(tmp_path, 1)
    lengths, angles = CELLS["octahedron"]
    path = write(tmp_path / "frames.h5", ligand_moved(whole, cells_of(lengths, angles)), lengths, angles)
    plain = write(tmp_path / "whole.h5", whole)
    words = "3 of 6 frames were imaged"
    for command in (("energy", topology), ("binding", topology, "--ligand", LIGAND), ("solvent", topology)):
        options = ("--precision", "float64")
        assert words in run(*command, "-t", path, *options).stdout
        report, expected = (json.loads(run(*command, "-t", p, "--json", *options).stdout) for p in (path, plain))
        repaired = [finding["text"] for finding in report["findings"] if finding["action"] == "repaired"]
        assert [text[: len(words)] for text in repaired] == [words]
        key = "statistics" if "statistics" in report else "delta"
        assert report[key]["total"]["mean"] == pytest.approx(expected[key]["total"]["mean"], abs=1e-6)
        assert "imaged" not in run(*command, "-t", path, *options, "--image", "none").stdout
    assert "--image applies to a trajectory" in run("energy", HEXAPEPTIDE, "--image", "none", code=2).stderr
    torn = write(tmp_path / "torn.h5", wrapped(whole, cells_of(lengths, angles)), lengths, angles)
    run("energy", topology, "-t", torn)
    failed = run("energy", topology, "-t", torn, "--image", "none", code=1)
    assert "A long; use --image auto" in failed.stderr


def test_workers_image_as_one_process_does(whole, tmp_path):
    topology, _, _ = write_complex(tmp_path, 1)
    lengths, angles = CELLS["changing"]
    path = write(tmp_path / "frames.h5", ligand_moved(whole, cells_of(lengths, angles)), lengths, angles)
    outputs = [tmp_path / "one.csv", tmp_path / "two.csv"]
    run("energy", topology, "-t", path, "-o", outputs[0])
    done = run("energy", topology, "-t", path, "-o", outputs[1], "--workers", 2)
    assert "3 of 6 frames were imaged" in done.stdout
    rows = [[line for line in of.read_text().splitlines() if line[0].isdigit()] for of in outputs]
    assert rows[0] == rows[1]


def test_frames_that_are_minimized_are_whole(whole, tmp_path):
    topology, _, _ = write_complex(tmp_path, 1)
    lengths, angles = CELLS["orthorhombic"]
    x = whole[:2].copy()
    x[0] = wrapped(whole, cells_of(lengths, angles))[0]
    path = write(tmp_path / "frames.h5", x, lengths[:2], angles[:2])
    options = ("-o", tmp_path / "out.nc", "--max-iterations", 0, "--json", "--precision", "float64")
    rows = json.loads(run("minimize", topology, "-t", path, *options).stdout)["frames"]
    expected = Energy(complex_atoms(), gradient=False, precision="float64").evaluate_batch(whole[:2])
    assert [row["energy_after"]["total"] for row in rows] == pytest.approx(expected.total, rel=1e-6)
    torn = run("minimize", topology, "-t", path, *options, "--image", "none", code=1)
    assert "A long; use --image auto" in torn.stderr


def test_a_restart_that_is_cut_by_its_box_is_made_whole(tmp_path):
    topology, _, _ = write_complex(tmp_path, 1)
    x, cell = positions(), np.eye(3)[np.newaxis] * 50
    cut = tmp_path / "cut.rst7"
    cut.write_text(restart(wrapped(x[np.newaxis] + 48, cell)[0], box=True))
    found = read(topology, coordinates=cut)
    assert found.positions - found.positions[0] == pytest.approx(x - x[0], abs=1e-5)
    assert any("cut by the faces of the cell" in note for note in found.notes)
    assert "cut by the faces of the cell" in run("energy", topology, "-c", cut).stderr
    cut.write_text(restart(wrapped(x[np.newaxis] + 48, cell)[0]))
    assert "A long" in error_of("energy", topology, "-c", cut)
    apart = x.copy()
    apart[96:] += [50, 0, 0]
    cut.write_text(restart(apart, box=True))
    assert read(topology, coordinates=cut).positions == pytest.approx(apart, abs=1e-6)  # whole, so it stays


def test_one_torn_model_fails_alone(tmp_path):
    """One torn model of a complex fails alone in binding energies of all models; with --strict, too."""
    lines = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith("ATOM")]
    torn = [f"{line[:30]}{float(line[30:38]) + 60 * (k > 50):8.3f}{line[38:]}" for k, line in enumerate(lines)]
    together = [*lines[:5], f"{lines[5][:30]}{lines[9][30:54]}{lines[5][54:]}", *lines[6:]]
    path = tmp_path / "models.pdb"
    path.write_text(
        "".join(
            f"MODEL {k}\n" + "\n".join(model) + "\nENDMDL\n" for k, model in enumerate((lines, torn, together, lines))
        )
    )
    words = ("binding", path, "--models", "all", "--ligand", "resid 1")
    report = json.loads(run(*words, "--json", code=1).stdout)
    reasons = [row.get("error", "") for row in report["models"]]
    assert ["" if not reason else reason[:30] for reason in reasons] == [
        "", "the bond of atom 50 (A:GLU3:CG", "atom 5 (A:MET1:HA) and atom 9 ", ""
    ]  # fmt: skip
    alone = json.loads(run("binding", HEXAPEPTIDE, "--ligand", "resid 1", "--json").stdout)
    assert report["delta"]["total"]["mean"] == pytest.approx(alone["delta"]["total"]["mean"], abs=1e-3)
    strict = json.loads(run(*words, "--json", "--strict", code=1).stdout)
    assert [row.get("error", "") for row in strict["models"]] == reasons


def test_notes_about_structures_stand_in_json(tmp_path):
    """Each structure has its own notes, by one process or by workers."""
    lines = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith("ATOM")]
    paths = tmp_path / "first.pdb", tmp_path / "second.pdb", HEXAPEPTIDE
    paths[0].write_text("\n".join(line for line in lines if int(line[22:26]) < 6))
    paths[1].write_text("\n".join(line for line in lines if int(line[22:26]) < 5))
    options = {
        "energy": (), "solvent": (), "nonbond": (), "binding": ("--ligand", "resid 1"),
        "ions": ("-o", tmp_path / "x.pdb", "--ion", "NA:1"), "view": ("-o", tmp_path / "x.html"),
        "potmap": ("-o", tmp_path / "x.dx", "--spacing", 3),
    }  # fmt: skip
    for command, words in options.items():
        done = run(command, paths[0], *words, "--json")
        (note,) = (of for of in json.loads(done.stdout)["notes"] if "a chain ends without" in of)
        assert note.startswith(f"{paths[0]}:")
        assert f"Note: {note}\n" in done.stderr
    for words in ((), ("--workers", 2)):
        reports = list(map(json.loads, run("energy", *paths, "--json", *words).stdout.splitlines()))
        assert [len(of["notes"]) for of in reports] == [1, 1, 0]
        assert reports[1]["notes"][0].startswith(f"{paths[1]}:")


def test_a_crystal_structure_is_not_moved(tmp_path):
    text = HEXAPEPTIDE.read_text()
    path = tmp_path / "crystal.pdb"
    path.write_text(f"CRYST1{30:9.3f}{30:9.3f}{30:9.3f}{90:7.2f}{90:7.2f}{90:7.2f} P 1           1\n" + text)
    assert (read(path).positions == read(HEXAPEPTIDE).positions).all()
    assert json.loads(run("energy", path, "--json").stdout)["findings"] == []


@pytest.fixture(scope="module")
def short_hydrogens(tmp_path_factory):
    """Write the hexapeptide with its hydrogens at 0.84 A, as X-ray refinement has them."""
    atoms = hexapeptide()
    x = atoms.positions.copy()
    for i, j in atoms.bonds.tolist():
        light, heavy = (i, j) if atoms.labels.elements[i] == "H" else (j, i)
        if atoms.labels.elements[light] == "H":
            x[light] = x[heavy] + 0.84 * (x[light] - x[heavy]) / np.linalg.norm(x[light] - x[heavy])
    path = tmp_path_factory.mktemp("short") / "short.pdb"
    lines = HEXAPEPTIDE.read_text().splitlines()
    places = iter(x.tolist())
    moved = [
        line[:30] + "".join(f"{value:8.3f}" for value in next(places)) + line[54:] if line.startswith("ATOM") else line
        for line in lines
    ]
    path.write_text("\n".join(moved) + "\n")
    return path


def test_terms_beyond_reason_are_told_by_the_same_words(short_hydrogens, tmp_path):
    cause, advice = "kcal/mol per residue, from hydrogens at 0.84 A", ": run pele-ocl minimize"
    commands = [
        (("energy", short_hydrogens), advice),
        (("binding", short_hydrogens, "--ligand", "resnum 1"), advice),
        (("minimize", short_hydrogens, "-o", tmp_path / "out.pdb"), " at the start of the minimization"),
    ]
    for command, end in commands:
        words = f"{cause}{end}"
        found = run(*command, "--json")
        (text,) = {finding["text"] for finding in json.loads(found.stdout)["findings"]}
        assert text.startswith("bond energy of ")
        assert text.endswith(words)
        assert f"{text}\n" in found.stderr
        (tmp_path / "out.pdb").unlink(missing_ok=True)
        refused = run(*command, "--strict", code=1)
        assert words in refused.stderr
        assert not (tmp_path / "out.pdb").exists()
    for command in ("energy", "solvent", "nonbond"):
        assert json.loads(run(command, HEXAPEPTIDE, "--json", "--strict").stdout)["findings"] == []


def test_clashes_and_means(short_hydrogens):
    atoms = read(HEXAPEPTIDE)
    plan = Energy(atoms, gradient=False, device=DEVICES[0])
    assert of_energy(atoms, plan.evaluate().energy, atoms.positions) == []
    x = atoms.positions.copy()
    x[50:] += x[10] - x[60] + [0.0, 0.0, 1.2]
    (found,) = [of for of in of_energy(atoms, plan.evaluate(x).energy, x) if "Lennard-Jones" in of.text]
    assert found.action == "noted"
    i, j = found.atoms
    assert f"{np.linalg.norm(x[i] - x[j]):.2f} A apart: run pele-ocl minimize" in found.text
    short = read(short_hydrogens)
    (mean,) = of_energy(short, Energy(short, gradient=False, device=DEVICES[0]).evaluate().energy)
    assert "hydrogens" not in mean.text  # the mean of many frames names no atoms


def test_findings_about_structures():
    atoms = read(HEXAPEPTIDE)
    assert of_structure(atoms) == []
    x = atoms.positions.copy()
    x[3] += 20
    (torn,) = of_structure(atoms.moved(x))
    assert torn.action == "refused"
    assert "atom 3 " in torn.text
    assert of_structure(atoms.moved(x), "noted")[0].action == "noted"
    x = atoms.positions.copy()
    x[40] = x[3] + 0.2 / np.sqrt(3)
    on_top = next(of for of in of_structure(atoms.moved(x), "noted") if "overlap" in of.text)
    assert on_top.atoms == (3, 40)


def sulphurs(distance: float, residue: str, bonded: bool = False) -> Atoms:
    names = ["CB", "SG", "CB", "SG"], ["C", "S", "C", "S"], [residue] * 4, [1, 1, 2, 2], [""] * 4, ["A"] * 4
    labels = Labels(*map(np.array, names), np.array([0, 0, 1, 1]))
    x = [[0, 0, 0], [1.8, 0, 0], [3.6 + distance, 0, 0], [1.8 + distance, 0, 0]]
    return Atoms(x, np.zeros(4), labels=labels, bonds=[(0, 1), (2, 3), *([(1, 3)] if bonded else [])])


def test_disulphides_are_found_by_their_bond():
    assert of_structure(sulphurs(2.05, "CYX", bonded=True)) == []
    (found,) = of_structure(sulphurs(2.05, "CYS"))
    assert "2.05 A apart and not bonded" in found.text
    assert found.atoms == (1, 3)
    assert [of.atoms for of in of_structure(sulphurs(6.0, "CYX"))] == [(1,), (3,)]
    assert of_structure(sulphurs(6.0, "CYS")) == []


def test_lengths_are_those_of_the_force_field():
    bonded = Bonded(bonds=Bonds([[0, 1]], [[100.0, 4.0]]))
    for length, count in ((6.9, 0), (7.1, 1)):
        atoms = Atoms([[0, 0, 0], [length, 0, 0]], np.zeros(2), bonds=[(0, 1)])
        assert len(of_structure(replace(atoms, bonded=bonded))) == count
        assert len(of_structure(atoms)) == 1


def test_image_is_one_of_two_words(tmp_path, whole):
    path = write(tmp_path / "f.h5", whole)
    with pytest.raises(InputError, match="image"):
        Trajectory(path, image="some")
    with pytest.raises(InputError, match="can only be given with paths"):
        energy_over(complex_atoms(), Trajectory(path), image="none")


def test_clashes_are_named_beside_bonds_of_that_length():
    """Hydrogens 1.2 A apart, which bonds to hydrogen are, too."""
    atoms = read(HEXAPEPTIDE)
    plan = Energy(atoms, gradient=False, device=DEVICES[0])
    hydrogens = np.flatnonzero(atoms.labels.elements == "H")
    one, other = hydrogens[0], hydrogens[-1]
    x = atoms.positions.copy()
    outward = x[one] - x.mean(axis=0)
    x[other] = x[one] + 1.2 * outward / np.linalg.norm(outward)
    energy = {**plan.evaluate().energy, "lennard_jones": 1e4}
    (found,) = [each for each in of_energy(atoms, energy, x) if "1.20 A apart" in each.text]
    assert found.atoms == (one, other)


CUT = np.array([14.0, 13.0, 16.0])  # A, a cell smaller than the hexapeptide


def cut_structure(path, by_residues, models=1, cell=CUT):
    """The hexapeptide wrapped into a cell, atom by atom or residue by residue, as PDB or mmCIF or GROMACS file."""
    structure = read_structure(HEXAPEPTIDE)
    x = structure.positions.copy()
    first = structure.labels.residue_starts[structure.labels.residue_index] if by_residues else np.arange(len(x))
    x -= np.floor(x[first] / cell) * cell
    atoms, lines = replace(structure, positions=x), []
    if path.suffix == ".gro":
        names = zip(atoms.labels.residue_numbers, atoms.labels.residue_names, atoms.labels.names, x / 10, strict=True)
        lines = [
            f"{number:5d}{residue:<5}{name:>5}    1{of[0]:12.6f}{of[1]:12.6f}{of[2]:12.6f}"
            for number, residue, name, of in names
        ]
        path.write_text("\n".join(["cut", f"{len(x)}", *lines, " ".join(f"{of / 10:.5f}" for of in cell), ""]))
        return path
    lines = [line.rstrip() for line in atom_lines(atoms.labels, x, str(path))]
    if path.suffix == ".cif":
        cif = gemmi.read_pdb_string("\n".join(lines))
        cif.cell = gemmi.UnitCell(*cell, 90, 90, 90)
        cif.setup_entities()
        cif.make_mmcif_document().write_file(str(path))
        return path
    record = f"CRYST1{cell[0]:9.3f}{cell[1]:9.3f}{cell[2]:9.3f}  90.00  90.00  90.00 P 1           1"
    numbered = [[f"MODEL     {k + 1:4d}", *lines, "ENDMDL"] for k in range(models)]
    path.write_text("\n".join([record, *(line for of in numbered for line in of), "END", ""]))
    return path


@pytest.mark.parametrize("by_residues", [False, True])
@pytest.mark.parametrize("suffix", [".pdb", ".cif", ".gro"])
def test_a_structure_that_is_cut_by_its_own_cell_is_made_whole(suffix, by_residues, tmp_path):
    path = cut_structure(tmp_path / f"cut{suffix}", by_residues)
    expected = Energy(read(HEXAPEPTIDE), gradient=False, precision="float64").evaluate().total
    atoms = read(path)
    (note,) = [of for of in atoms.notes if "were cut by the faces of the cell" in of]
    close = 2e-2 if suffix == ".gro" else 1e-6  # whose decimals are others
    assert Energy(atoms, gradient=False, precision="float64").evaluate().total == pytest.approx(expected, abs=close)
    found = run("energy", path, "--json", "--precision", "float64")
    assert note in json.loads(found.stdout)["notes"]
    assert f"Note: {note}" in found.stderr


def test_models_that_are_cut_by_their_cell_are_made_whole(tmp_path):
    path = cut_structure(tmp_path / "cut.pdb", False, models=2)
    report = json.loads(run("energy", path, "--models", "all", "--json", "--precision", "float64").stdout)
    expected = Energy(read(HEXAPEPTIDE), gradient=False, precision="float64").evaluate().total
    assert [of["energy"]["total"] for of in report["models"]] == pytest.approx([expected] * 2, abs=1e-6)
    trajectory = json.loads(run("energy", HEXAPEPTIDE, "-t", path, "--json").stdout)
    assert trajectory["n_imaged"] == 2


def test_what_is_written_of_a_cut_structure_is_whole(tmp_path):
    pytest.importorskip("pdbfixer")
    path, ready = cut_structure(tmp_path / "cut.pdb", False), tmp_path / "ready.pdb"
    whole = read(HEXAPEPTIDE).positions
    prepare(path, ready)
    run("ions", path, "--ion", "NA:1", "-o", tmp_path / "salted.pdb")
    for written in (ready, tmp_path / "salted.pdb"):
        x = read_structure(written).positions[: len(whole)]
        shift = (x - whole)[:1]
        assert np.abs(shift / CUT - np.rint(shift / CUT)).max() < 1e-3
        assert x - whole == pytest.approx(np.repeat(shift, len(whole), axis=0), abs=2e-2)


def test_whole_structures_stay_where_they_are(tmp_path):
    """Two chains in different images, and a gap between two residues that no image closes."""
    structure = read_structure(HEXAPEPTIDE)
    cell = np.diag([40.0, 40.0, 40.0])
    assert whole_structure(structure, cell) is structure
    third = structure.labels.residue_index >= 2
    apart = replace(structure, positions=structure.positions + 5.0 * third[:, np.newaxis])
    assert whole_structure(apart, cell) is apart
    small = np.diag([9.0, 40.0, 40.0])  # less than twice a residue's extent
    assert whole_structure(structure, small) is structure


def test_one_unreasonable_bond_among_many_is_told():
    atoms = read(HEXAPEPTIDE)
    table = atoms.bonded.bonds
    i, j = table.atoms[0].tolist()
    x = atoms.positions.copy()
    x[j] = x[i] + 2.4 * (x[j] - x[i])
    energy = Energy(atoms, gradient=False, device=DEVICES[0]).evaluate(x).energy
    found = of_energy(atoms, {**energy, "bond": 100.0}, x)
    assert "bond energy of 100" not in found[0].text
    assert found[0].text.startswith("bond energy of ")
    assert "run pele-ocl minimize" in found[0].text
    (start,) = of_energy(atoms, {**energy, "bond": 100.0}, x, is_minimized=True)[:1]
    assert start.text.endswith(" A at the start of the minimization")
    assert set(found[0].atoms) <= set(range(len(atoms)))
    assert of_energy(atoms, {**energy, "bond": 100.0, "angle": 0.0, "lennard_jones": 0.0}) == []


@pytest.mark.parametrize("words", [
    ("potmap", "--spacing", "3", "-o", "map.dx"), ("ions", "--ion", "NA:1", "-o", "ions.pdb"),
    ("minimize", "--max-iterations", "1", "-o", "minimum.pdb"),
], ids=lambda words: words[0])  # fmt: skip
def test_a_torn_structure_is_told_by_commands_that_refuse_none(words, tmp_path, monkeypatch):
    """In the text and in JSON."""
    monkeypatch.chdir(tmp_path)
    atoms = read(HEXAPEPTIDE)
    (oxygen,) = np.flatnonzero((atoms.labels.residue_numbers == 2) & (atoms.labels.names == "O"))
    x = atoms.positions.copy()
    x[oxygen] += [0.0, 0.0, 30.0]
    write_conformations(tmp_path / "torn.pdb", atoms, x)
    done = run(words[0], "torn.pdb", *words[1:], "--json")
    text = f"the bond of {atoms.describe(int(np.flatnonzero(atoms.labels.names == 'C')[1]))} and"
    assert done.stderr.count(text) == 1
    assert text in done.stdout
