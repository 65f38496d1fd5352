"""Frames of trajectory files: every format, choice of frames and atoms, sentences for what is wrong."""

from __future__ import annotations

import contextlib
import sys

import h5py
import numpy as np
import pytest
from conftest import DEVICES, random_atoms
from trajectory_helpers import DIGITS, NANOMETERS, SUFFIXES, moving, pdb_model, write_trajectory

import pele_ocl
from pele_ocl import Atoms, Energy, FormatError, InputError, Nonbond, Solvent, all_pairs, energy_over, trajectory
from pele_ocl.common.errors import PeleError
from pele_ocl.trajectories import Trajectory, batches_over
from pele_ocl.trajectories.files import open_frames
from pele_ocl.trajectories.files.decimals import decimals
from pele_ocl.trajectories.files.hdf5 import Hdf5File, PlainHdf5File
from pele_ocl.trajectories.statistics import Statistics
from pele_ocl.trajectories.streaming import FrameResults, results_over

M = 23


@pytest.fixture(scope="module")
def atoms():
    return random_atoms(40)


@pytest.fixture(scope="module")
def frames(atoms):
    return moving(atoms.positions, M)


@pytest.fixture(scope="module")
def files(tmp_path_factory, frames):
    folder = tmp_path_factory.mktemp("trajectories")
    return {suffix: write_trajectory(folder / f"t.{suffix}", frames) for suffix in SUFFIXES}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_the_positions_that_were_written(suffix, files, frames, atoms):
    opened = trajectory(files[suffix], atoms, chunk=7)
    pieces = list(opened)
    assert [len(piece) for piece in pieces] == [7, 7, 7, 2]
    assert np.abs(np.concatenate(pieces) - frames).max() <= DIGITS[suffix]
    some = trajectory(files[suffix], atoms, frames="2:-3:4", select=[5, 1, 30])
    assert list(some.frames) == list(range(M))[2:-3:4]
    assert np.abs(np.concatenate(list(some)) - frames[2:-3:4][:, [5, 1, 30]]).max() <= DIGITS[suffix]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_energies_are_those_of_the_same_positions_as_arrays(suffix, files, atoms):
    plan = Energy(atoms, gradient=False, device=DEVICES[0])
    given = np.concatenate(list(trajectory(files[suffix], atoms)))
    found = energy_over(plan, files[suffix])
    assert np.array_equal(found.terms.values, plan.evaluate_batch(given).terms.values)
    assert found.terms.names == plan.evaluate_batch(given[:1]).terms.names
    assert np.array_equal(found.frames, np.arange(M))


def test_every_plan_goes_through_frames(files, frames, atoms):
    for plan in (Solvent(atoms, device=DEVICES[0]), Nonbond(atoms, all_pairs(atoms), device=DEVICES[0])):
        expected = plan.evaluate_batch(frames)
        assert np.array_equal(energy_over(plan, files["nc"]).terms.values, expected.terms.values)
    batches = list(batches_over(plan, files["nc"]))
    assert np.array_equal(np.concatenate([batch.gradients for _, batch in batches]), expected.gradients)


def test_several_files_are_one_trajectory(files, frames, atoms):
    many = trajectory([files["nc"], files["dcd"], files["h5"]], atoms, frames="20:60:9", chunk=3)
    assert np.array_equal(np.concatenate(list(many)), np.concatenate([frames] * 3)[20:60:9])
    assert "5 frames of 40 atoms" in repr(many)


@pytest.mark.parametrize(
    ("words", "chosen"),
    [(None, slice(None)), (":", slice(None)), ("5", slice(5, 6)), (-1, slice(-1, None)), ("-4:", slice(-4, None)),
     (" 3 : 9 : 2 ", slice(3, 9, 2)), (slice(20, 100), slice(20, 100))],
)  # fmt: skip
def test_frames_are_those_of_python_slices(words, chosen, files):
    assert list(trajectory(files["nc"], frames=words).frames) == list(range(M))[chosen]


@pytest.mark.parametrize("words", ["a:b", "1:2:3:4", "", "1.5", "::-1", "::0", "100:", 1.5, slice("a", None), True])
def test_other_frames_are_refused(words, files):
    with pytest.raises(InputError, match="frames"):
        trajectory(files["nc"], frames=words)


def test_atoms_are_selected_by_name_and_by_index(tmp_path, atoms):
    from test_cli import HEXAPEPTIDE

    peptide = pele_ocl.read(HEXAPEPTIDE)
    wet = np.concatenate([moving(peptide.positions, 3), np.zeros((3, 60, 3), np.float32)], axis=1)
    path = write_trajectory(tmp_path / "wet.nc", wet)
    with pytest.raises(FormatError, match=r"wet.nc: its frames have 156 atoms, the structure 96; .* with `select`"):
        trajectory(path, peptide)
    for select in ("index < 96", "index 0:95", np.arange(156) < 96, slice(96)):
        assert np.array_equal(next(iter(trajectory(path, peptide, select=select))), wet[:, :96])
    with pytest.raises(InputError, match="contains 10 of 156 atoms; the structure has 96"):
        trajectory(path, peptide, select="index < 10")
    with pytest.raises(InputError, match="`topology`"):
        trajectory(path, peptide, select="protein")
    with pytest.raises(InputError, match="ends after '<'; expected a number"):
        trajectory(path, peptide, select="index <")
    dry = write_trajectory(tmp_path / "dry.dcd", wet[:, :96])
    carbons = np.flatnonzero(peptide.labels.names == "CA")
    assert np.array_equal(next(iter(trajectory(dry, peptide, select="name CA"))), wet[:, carbons])
    assert np.array_equal(next(iter(trajectory(dry, select="name CA", topology=HEXAPEPTIDE))), wet[:, carbons])
    text = write_trajectory(tmp_path / "wet.mdcrd", wet)
    with pytest.raises(FormatError, match=r"seem to have 156 atoms, the structure 96"):
        trajectory(text, peptide)


def test_selections_are_ours_with_and_without_a_topology(tmp_path, monkeypatch):
    import json

    from test_cli import HEXAPEPTIDE, error_of, run

    peptide = pele_ocl.read(HEXAPEPTIDE)
    dry = moving(peptide.positions, 2)
    wet = np.concatenate([dry, 50 + np.arange(90, dtype=np.float32).reshape(30, 3) + np.zeros((2, 30, 3))], axis=1)
    paths = [write_trajectory(tmp_path / f"{name}.dcd", frames) for name, frames in (("dry", dry), ("wet", wet))]
    water = [
        f"HETATM{k + 97:5d}  O   HOH W{k + 1:4d}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00           O\n"
        for k, (x, y, z) in enumerate(wet[0, 96:].tolist())
    ]
    whole = tmp_path / "whole.pdb"
    atom_lines = [line for line in HEXAPEPTIDE.read_text().splitlines(True) if line.startswith(("ATOM", "HETATM"))]
    whole.write_text("".join([*atom_lines, *water, "END\n"]))
    monkeypatch.setitem(sys.modules, "mdtraj", None)

    def energies(*options):
        report = json.loads(run("energy", HEXAPEPTIDE, *options, "--json").stdout)
        return [model["energy"]["total"] for model in report["frames"]]

    expected = energies("-t", paths[0])
    for words in ("index 0:95", "heavy or hydrogen"):
        assert energies("-t", paths[0], "--select", words) == expected
    for words in ("not water", "within 20 of protein"):
        assert energies("-t", paths[1], "--topology", whole, "--select", words) == expected
    some = energies("-t", paths[0], "--without", "ASP")
    assert energies("-t", paths[1], "--topology", whole, "--select", "not water", "--without", "ASP") == some
    few = error_of("energy", HEXAPEPTIDE, "-t", paths[0], "--topology", HEXAPEPTIDE, "--select", "index 0:19")
    assert "the frames have 20 atoms, the structure 96" in few
    plan = Energy(peptide, gradient=False, device=DEVICES[0])
    with pytest.raises(InputError, match="has 20 atoms where the structure has 96, and lacks its atom 20"):
        energy_over(plan, paths[0], select=np.arange(20))
    with pytest.raises(InputError, match="the frames have 20 atoms, the structure 96"):
        next(batches_over(plan, trajectory(paths[0], select=range(20))))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_that_were_cut_off(suffix, files, tmp_path, atoms, frames):
    if suffix == "h5":
        pytest.skip("HDF5 itself refuses such files")
    data = files[suffix].read_bytes()
    cut = tmp_path / f"cut.{suffix}"
    cut.write_bytes(data[: len(data) - 200])
    if suffix == "pdb":
        with pytest.raises(FormatError, match=r"model 23 has 3\d atoms, model 1 40"):
            list(trajectory(cut, atoms))
        return
    with pytest.raises(FormatError, match=r"in the middle of a frame, after 22 complete ones; .* with `frames=':22'`"):
        trajectory(cut, atoms)
    assert np.abs(np.concatenate(list(trajectory(cut, atoms, frames=":22"))) - frames[:22]).max() <= DIGITS[suffix]
    cut.write_bytes(data[:50])
    with pytest.raises(FormatError, match="cut"):
        trajectory(cut, atoms)


def test_wrong_files_are_sentences(files, tmp_path, atoms):
    def sentence(path, given=atoms):
        with pytest.raises(FormatError) as error:
            trajectory(path, given)
        return str(error.value)

    assert "no such file" in sentence(tmp_path / "absent.nc")
    assert "unknown suffix '.abc'" in sentence(tmp_path / "t.abc")
    assert "a folder" in sentence(tmp_path)
    assert "its frames have 40 atoms, the structure 41; give the structure to which" in sentence(
        files["nc"], random_atoms(41)
    )
    for suffix in ("nc", "dcd", "xtc", "trr", "mdcrd", "h5"):
        wrong = tmp_path / f"wrong.{suffix}"
        wrong.write_bytes(b"no such thing\n" * 50)
        assert "wrong" in sentence(wrong)
    with pytest.raises(FormatError, match="does not state the number of"):
        trajectory(files["mdcrd"])
    other = write_trajectory(tmp_path / "other.nc", np.zeros((2, 3, 3)))
    with pytest.raises(FormatError, match=r"has 3 atoms, .* 40; all files"):
        trajectory([files["nc"], other])
    with h5py.File(tmp_path / "none.h5", "w") as file:
        file["values"] = np.zeros(3)
    assert "no dataset" in sentence(tmp_path / "none.h5")


def test_marks_of_a_dcd_frame_are_checked(files, tmp_path, atoms):
    data = bytearray(files["dcd"].read_bytes())
    data[-4:] = b"\0\0\0\0"
    broken = tmp_path / "broken.dcd"
    broken.write_bytes(data)
    with pytest.raises(FormatError, match="frame 22 is damaged"):
        list(trajectory(broken, atoms))


@pytest.mark.parametrize("box", ["  10.000  11.000  12.000", "  10.000   11.000   12.000"])  # AMBER's and MDTraj's
def test_a_box_behind_each_frame_of_a_text_trajectory(tmp_path, atoms, frames, box):
    path = write_trajectory(tmp_path / "t.mdcrd", frames)
    lines = path.read_text().splitlines()
    n = 12  # lines of 120 numbers
    boxed = [lines[0]]
    for k in range(M):
        boxed += [*lines[1 + k * n : 1 + (k + 1) * n], box]
    path.write_text("\n".join(boxed) + "\n")
    assert np.abs(np.concatenate(list(trajectory(path, atoms))) - frames).max() <= DIGITS["mdcrd"]


@pytest.mark.parametrize("box", ["", "  10.000  11.000  12.000"])
def test_text_frames_of_other_atoms_are_refused_where_all_lines_of_theirs_are_full(tmp_path, atoms, box):
    """30 numbers fill whole lines, so that frames of 40 atoms once were 4 times as many of 10 atoms."""
    frames = np.random.default_rng(0).uniform(1, 9, (3, 12, 3))  # 36 numbers
    lines = ["title"]
    for frame in frames:
        values = [f"{value:8.3f}" for value in frame.ravel()]
        lines += ["".join(values[k : k + 10]) for k in range(0, len(values), 10)] + ([box] if box else [])
    path = tmp_path / "t.mdcrd"
    path.write_text("\n".join(lines) + "\n")
    ten = Atoms(np.random.default_rng(1).normal(0, 9, (10, 3)), np.zeros(10))
    with pytest.raises(FormatError, match="its frames seem to have 12 atoms, the structure 10"):
        trajectory(path, ten)


def test_numbers_in_columns():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.uniform(-999, 9999, 2000), [0, -0.0004, 9999.999, -999.999, 0.5, -0.5]])
    text = "".join(f"{value:8.3f}" for value in values)
    found, sound = decimals(np.frombuffer(text.encode(), np.uint8).reshape(-1, 8))
    assert sound
    assert np.array_equal(found, [float(text[k : k + 8]) for k in range(0, len(text), 8)])
    odd = ["********", " 1 2.345", "--12.345", "1-22.345", "        ", "-1000.00", "  1.2345", "   -.500"]
    found, sound = decimals(np.frombuffer("".join(odd).encode(), np.uint8).reshape(-1, 8))
    assert not sound
    assert np.array_equal(found, [*[np.nan] * 5, -1000, 1.2345, -0.5], equal_nan=True)


def test_models_that_stand_in_other_columns_are_read_as_structures_are(tmp_path, frames):
    path = tmp_path / "t.pdb"
    texts = [pdb_model(k + 1, frame.tolist()) for k, frame in enumerate(frames[:4])]
    texts[2] = texts[2].replace("  1.00  0.00", " 1.00 0.00")
    path.write_text("".join(texts))
    assert np.abs(np.concatenate(list(trajectory(path))) - frames[:4]).max() <= DIGITS["pdb"]
    path.write_text("".join(texts).replace("MODEL 4\nATOM      1  C00", "MODEL 4\nATOM      1  N00"))
    with pytest.raises(FormatError, match="'N00 LIG A   1' is in the position of model 1's"):
        list(trajectory(path))


def test_models_of_an_mmcif_file(tmp_path, frames):
    gemmi = pytest.importorskip("gemmi")
    (tmp_path / "t.pdb").write_text("".join(pdb_model(k + 1, frame.tolist()) for k, frame in enumerate(frames[:3])))
    gemmi.read_structure(str(tmp_path / "t.pdb")).make_mmcif_document().write_file(str(tmp_path / "t.cif"))
    assert np.abs(np.concatenate(list(trajectory(tmp_path / "t.cif"))) - frames[:3]).max() <= DIGITS["pdb"]


def test_double_precision_and_other_variables_of_netcdf(tmp_path, frames):
    netcdf = pytest.importorskip("netCDF4")
    for name, kind in (("classic", "NETCDF3_CLASSIC"), ("wide", "NETCDF3_64BIT_DATA"), ("four", "NETCDF4")):
        path = tmp_path / f"{name}.nc"
        with netcdf.Dataset(path, "w", format=kind) as file:
            for dimension, size in (("frame", None), ("spatial", 3), ("atom", 40), ("cell_spatial", 3), ("label", 5)):
                file.createDimension(dimension, size)
            file.createVariable("spatial", "S1", ("spatial",))[:] = np.array(list("xyz"), "S1")
            file.createVariable("time", "f4", ("frame",))[:M] = np.arange(M)
            file.createVariable("coordinates", "f8", ("frame", "atom", "spatial"))[:M] = frames
            file.createVariable("cell_lengths", "f8", ("frame", "cell_spatial"))[:M] = 1.0
        found = np.concatenate(list(trajectory(path)))
        assert found.dtype == np.float64
        assert np.array_equal(found, frames)


HDF5_KINDS = {
    "as they are": {},
    "other byte order": {"dtype": ">f8"},
    "whole numbers": {"dtype": "<i4"},
    "in chunks": {"chunks": (7, 40, 3)},
    "compressed": {"compression": "gzip", "shuffle": True},
    "after something else": {"userblock_size": 512},
    "elsewhere": {"external": True},
}


@pytest.mark.parametrize("kind", HDF5_KINDS)
def test_hdf5_frames_are_read_however_they_stand_in_the_file(kind, tmp_path, atoms, frames):
    options = dict(HDF5_KINDS[kind])
    of_file = {name: options.pop(name) for name in ("userblock_size",) if name in options}
    if options.pop("external", False):
        options["external"] = [(str(tmp_path / "t.raw"), 0, h5py.h5f.UNLIMITED)]
    values = np.round(frames * 8) if kind == "whole numbers" else frames
    path = tmp_path / "t.h5"
    with h5py.File(path, "w", **of_file) as file:
        dataset = file.create_dataset("positions", values.shape, options.pop("dtype", "<f4"), **options)
        dataset[:] = values
        dataset.attrs["scale_factor"] = 0.125 if kind == "whole numbers" else 1.0
    expected = values / 8 if kind == "whole numbers" else values
    assert np.array_equal(np.concatenate(list(trajectory(path, atoms, chunk=5))), expected)
    assert np.array_equal(
        np.concatenate(list(trajectory(path, frames="1::3", select="index 3:9"))), expected[1::3, 3:10]
    )
    with open_frames(path) as opened:
        assert isinstance(opened, Hdf5File if kind in ("in chunks", "compressed", "elsewhere") else PlainHdf5File)


def test_frames_that_fail_are_told_by_their_number(tmp_path, atoms, frames):
    broken = frames.copy()
    broken[3, 7] = np.nan
    broken[11, 2] = broken[11, 3]
    path = write_trajectory(tmp_path / "t.nc", broken)
    found = energy_over(Energy(atoms, gradient=False, device=DEVICES[0]), path, frames="1:")
    assert list(found.errors) == [3, 11]
    assert "atom 7" in found.errors[3]
    assert "same position" in found.errors[11]
    assert np.flatnonzero(np.isnan(found.total)).tolist() == [2, 10]


def test_arguments_of_energy_over_are_checked(files, atoms):
    opened = trajectory(files["nc"], atoms)
    with pytest.raises(InputError, match="Atoms, an Energy"):
        energy_over(3, opened)
    with pytest.raises(InputError, match="can only be given with paths"):
        energy_over(Energy(atoms, gradient=False), opened, frames="1:")
    with pytest.raises(InputError, match="the frames have 2 atoms, the structure 40"):
        energy_over(Energy(atoms, gradient=False), trajectory(files["nc"], select=slice(2)))
    with pytest.raises(InputError, match="no trajectory is given"):
        trajectory([])


def test_few_pieces_are_in_memory_at_a_time(tmp_path, atoms, monkeypatch):
    monkeypatch.setattr("pele_ocl.trajectories.streaming.CHUNK_ATOMS", 4000)
    monkeypatch.setattr("pele_ocl.trajectories.streaming._MOST_CHUNKS", 2)  # on a fast machine, too
    path = write_trajectory(tmp_path / "t.dcd", moving(atoms.positions, 5000))
    read, most, order = 0, 0, []
    original = Trajectory._read

    def counted(self, file, frames, atoms):
        nonlocal read
        read += 1
        return original(self, file, frames, atoms)

    def evaluate(positions, progress):
        return FrameResults({"total": positions.sum(axis=(1, 2))}, {})

    monkeypatch.setattr(Trajectory, "_read", counted)
    for taken, part in enumerate(results_over(trajectory(path, atoms), evaluate, workers=2)):
        order += part.frames
        most = max(most, read - taken)
    assert order == list(range(5000))
    assert read > 20
    assert most <= 6  # two computed, one ready, one read, one in use, one done


@pytest.mark.parametrize("suffix", ["nc", "dcd", "mdcrd", "pdb"])
def test_damaged_files_end_in_sentences(suffix, files, tmp_path, atoms):
    data = files[suffix].read_bytes()
    rng = np.random.default_rng(0)
    for k in range(150):
        bad = bytearray(data if k % 2 else data[: rng.integers(600)])
        for place in rng.integers(0, min(len(bad), 600), 3) if bad else ():
            bad[place] = rng.integers(256)
        (tmp_path / f"bad.{suffix}").write_bytes(bad)
        with contextlib.suppress(PeleError):
            list(trajectory(tmp_path / f"bad.{suffix}", atoms))


def test_statistics_are_those_of_all_frames():
    rng = np.random.default_rng(0)
    values = rng.normal(5, 2, 100)
    values[7] = np.nan
    statistics = Statistics()
    for part in np.split(values, [10, 11, 60]):
        statistics.add(FrameResults({"total": part, "n_pairs": np.arange(len(part))}, {}))
    good = values[np.isfinite(values)]
    expected = {"mean": good.mean(), "sd": good.std(), "min": good.min(), "max": good.max()}
    assert statistics.columns()["total"] == pytest.approx(expected, rel=1e-12)
    assert (statistics.n, statistics.n_failed, list(statistics.columns())) == (99, 1, ["total"])


@pytest.mark.parametrize("suffix", NANOMETERS)
def test_without_mdtraj_a_sentence_names_the_extra(suffix, files, monkeypatch):
    monkeypatch.setitem(sys.modules, "mdtraj", None)
    monkeypatch.setitem(sys.modules, "mdtraj.formats", None)
    with pytest.raises(InputError, match=r"pip install 'pele-ocl\[trajectories\]'"):
        trajectory(files[suffix])
    assert len(trajectory(files["nc"])) == M


def test_frames_of_the_selected_atoms_alone(tmp_path):
    """A stripped trajectory beside the topology of the whole system."""
    import json

    from binding_helpers import frames as moving_complex
    from binding_helpers import write_complex
    from test_cli import error_of, run

    topology, _, whole = write_complex(tmp_path, 3)
    dry = write_trajectory(tmp_path / "dry.nc", moving_complex(3)[:, :96])
    options = ("--select", "index 0:95", "--json", "--precision", "float64")
    found, expected = (json.loads(run("energy", topology, "-t", path, *options).stdout) for path in (dry, whole))
    assert found["settings"] == expected["settings"]
    assert found["frames"] == expected["frames"]
    assert "dry.nc: its frames contain only the 96 selected atoms, of 192" in error_text(topology, dry, *options)
    assert "its frames have 96 atoms, the structure 192" in error_of("energy", topology, "-t", dry)
    assert "its frames have 96 atoms" in error_of("energy", topology, "-t", dry, "--select", "index 0:90")


def error_text(topology, path, *options):
    from click.testing import CliRunner

    from pele_ocl.cli import main

    return CliRunner().invoke(main, ["energy", str(topology), "-t", str(path), *map(str, options)]).stderr


def in_memory(kind, positions, box=None):
    """Frames (m, n, 3) A as other libraries hold them. box : an edge of a cube, A"""
    if kind in ("float32", "float64"):
        return positions.astype(kind)
    if kind == "list":
        return list(positions)
    if kind == "mdtraj":
        library = pytest.importorskip("mdtraj")
        edges = None if box is None else np.full((len(positions), 3), box / 10)
        right = None if box is None else np.full((len(positions), 3), 90.0)
        return library.Trajectory(positions / 10, None, unitcell_lengths=edges, unitcell_angles=right)
    library = pytest.importorskip("MDAnalysis")
    universe = library.Universe.empty(positions.shape[1], trajectory=True)
    cells = None if box is None else np.tile([box, box, box, 90.0, 90.0, 90.0], (len(positions), 1))
    universe.load_new(positions.astype(np.float32), dimensions=cells)
    universe.trajectory[1]
    return universe.atoms if kind == "AtomGroup" else universe


MEMORY = ["float32", "float64", "list", "mdtraj", "Universe", "AtomGroup"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("kind", MEMORY)
def test_frames_in_memory_are_as_good_as_files(kind, atoms, tmp_path):
    positions = moving(atoms.positions, M)
    given = in_memory(kind, positions)
    plan = Energy(atoms, gradient=False, only_terms=["coulomb"], device=DEVICES[0])
    expected = plan.evaluate_batch(positions).total
    np.testing.assert_allclose(energy_over(plan, given).total, expected, rtol=1e-5)
    some = energy_over(plan, given, frames="3:20:4", output=tmp_path / "out.csv")
    np.testing.assert_allclose(some.total, expected[3:20:4], rtol=1e-5)
    assert some.frames.tolist() == [3, 7, 11, 15, 19]
    again = energy_over(plan, given, frames="3:20:4", output=tmp_path / "out.csv", resume=True)
    np.testing.assert_array_equal(again.total, some.total)
    first = Energy(atoms[:30], gradient=False, only_terms=["coulomb"], device=DEVICES[0])
    part = energy_over(first, given, select=slice(30))
    np.testing.assert_allclose(part.total, first.evaluate_batch(positions[:, :30]).total, rtol=1e-5)
    if kind in ("Universe", "AtomGroup"):
        assert given.universe.trajectory.frame == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("kind", ["mdtraj", "Universe"])
def test_cells_of_frames_in_memory_are_imaged(kind):
    """A molecule that the box cuts is made whole, as one of a file is."""
    peptide = pele_ocl.read(pele_ocl.common.installation.shipped("data") / "structures" / "hexapeptide.pdb")
    cut = np.stack([peptide.positions] * 2)
    cut[1, 50:] += [80.0, 0, 0]
    plan = Energy(peptide, gradient=False, device=DEVICES[0])
    found = energy_over(plan, in_memory(kind, cut, box=80.0))
    assert (found.errors, found.n_imaged) == ({}, 1)
    np.testing.assert_allclose(found.total[1], found.total[0], atol=0.02)
    assert list(energy_over(plan, in_memory(kind, cut)).errors) == [1]


def test_other_frames_in_memory_settle_another_run(atoms, tmp_path):
    positions = moving(atoms.positions, 5)
    plan = Energy(atoms, gradient=False, only_terms=["coulomb"], device=DEVICES[0])
    energy_over(plan, positions, output=tmp_path / "out.csv")
    with pytest.raises(FormatError, match="trajectory"):
        energy_over(plan, positions + 0.1, output=tmp_path / "out.csv", resume=True)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (np.zeros((40, 3)), r"the array has shape \(40, 3\); expected frames \(m, n, 3\)"),
        (np.zeros((0, 40, 3)), "the array contains no frame, or no atom"),
        (np.zeros((2, 7, 3)), "the array: its frames have 7 atoms, the structure 40"),
        (np.full((2, 40, 3), "x"), "the frames are not an array of numbers"),
        (3.5, "paths are 3.5; expected a list of paths"),
    ],
)
def test_what_is_no_trajectory_is_refused(given, sentence, atoms):
    with pytest.raises(PeleError, match=sentence):
        energy_over(atoms, given)


def test_of_a_folder_its_files_are_named(tmp_path):
    (tmp_path / "run-00000.nc").write_bytes(b"CDF")
    with pytest.raises(FormatError, match=r"a folder; give files in it: .*\*\.nc$"):
        pele_ocl.trajectory(tmp_path)
