"""Coordinates of AMBER topologies: restarts as text and NetCDF, trajectories, structures; and the command's -c."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from amber_helpers import content, hexapeptide, netcdf, rendered, restart
from click.testing import CliRunner

import pele_ocl
from pele_ocl import FormatError, InputError
from pele_ocl.cli import main
from pele_ocl.common.errors import KeywordError
from pele_ocl.common.installation import shipped

POSITIONS = np.round(hexapeptide().positions, 3)
FRAMES = POSITIONS + np.arange(3)[:, None, None]
TEXT = rendered(content())


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    path = tmp_path / "x.parm7"
    path.write_text(TEXT)
    return path


def placed(topology: Path, made: str | bytes, name: str = "x.rst7", model: int | None = None) -> pele_ocl.Atoms:
    path = topology.with_name(name)
    path.write_bytes(made.encode() if isinstance(made, str) else made)
    return pele_ocl.read(topology, coordinates=path, model=model)


@pytest.mark.parametrize("velocities", [False, True])
@pytest.mark.parametrize("box", [False, True])
def test_text(topology, velocities, box):
    text = restart(POSITIONS, velocities, box)
    for made, name in (
        (text, "x.rst7"),
        (text.replace("\n", "\r\n"), "x.inpcrd"),
        (gzip.compress(text.encode()), "x.crd.gz"),
    ):
        atoms = placed(topology, made, name)
        np.testing.assert_array_equal(atoms.positions, POSITIONS)
        assert atoms.notes == ()


@pytest.mark.parametrize("version", [1, 2, 5])
def test_netcdf(topology, version):
    atoms = placed(topology, netcdf(FRAMES, version, trajectory=False), "x.ncrst")
    np.testing.assert_array_equal(atoms.positions, POSITIONS)
    assert atoms.notes == ()
    whole = netcdf(FRAMES, version)
    first = placed(topology, whole, "x.nc")
    np.testing.assert_allclose(first.positions, FRAMES[0], rtol=1e-7)
    assert first.notes == (
        f"{topology.with_name('x.nc')} contains 3 frames; the first was read; `model` selects another",
    )
    last = placed(topology, whole, "x.rst7", model=3)
    np.testing.assert_allclose(last.positions, FRAMES[2], rtol=1e-7)
    assert last.notes == ()


def test_netcdf_is_that_of_others(tmp_path):
    """SciPy reads what the tests write, so both sides mean the same format."""
    io = pytest.importorskip("scipy.io")
    path = tmp_path / "x.nc"
    path.write_bytes(netcdf(FRAMES))
    with io.netcdf_file(path, mmap=False) as file:
        np.testing.assert_array_equal(file.variables["coordinates"][:], FRAMES.astype(np.float32))
        np.testing.assert_array_equal(file.variables["time"][:], [0, 1, 2])


def test_a_trajectory_that_is_still_written(topology):
    """A trajectory that is still written lacks its number of frames; all whole ones count."""
    data = netcdf(FRAMES)
    streaming = data[:4] + b"\xff" * 4 + data[8:-10]
    np.testing.assert_allclose(placed(topology, streaming, model=2).positions, FRAMES[1], rtol=1e-7)
    with pytest.raises(FormatError, match=r"x.rst7: contains no frame 3; the frames are 1 to 2"):
        placed(topology, streaming, model=3)


@pytest.mark.parametrize("version", [2, 5])
def test_both_readers_of_netcdf_agree(topology, version):
    """On a file that is still written and has a factor, and on one of another unit."""
    data = netcdf(FRAMES, version, scale=0.5)
    places = slice(4, 12 if version == 5 else 8)
    streaming = data[: places.start] + b"\xff" * (places.stop - 4) + data[places.stop : -10]
    path = topology.with_name("x.nc")
    path.write_bytes(streaming)
    frames = np.concatenate(list(pele_ocl.trajectory(path, frames=":2")))
    np.testing.assert_allclose(frames, FRAMES[:2] / 2, rtol=1e-7)
    np.testing.assert_allclose(pele_ocl.read(topology, coordinates=path, model=2).positions, frames[1], rtol=1e-7)
    path.write_bytes(netcdf(FRAMES, version, units="nanometer"))
    for read in (pele_ocl.trajectory, lambda path: pele_ocl.read(topology, coordinates=path)):
        with pytest.raises(FormatError, match="the coordinates are in 'nanometer'; expected angstrom"):
            read(path)


def test_one_frame_of_a_long_trajectory_is_read_alone(topology):
    path = topology.with_name("x.nc")
    path.write_bytes(netcdf(FRAMES))
    with open(path, "r+b") as stream:
        stream.truncate(1 << 38)  # takes no room on disk
    peptide = pele_ocl.read(topology, coordinates=path, model=2)
    np.testing.assert_allclose(peptide.positions, FRAMES[1], rtol=1e-7)
    report = json.loads(output_of("energy", topology, "-c", path, "--model", 2, "--json"))
    assert report["energy"]["total"] == pytest.approx(pele_ocl.energy(peptide).total, rel=1e-5)


def test_structures_have_coordinates_too(topology):
    structure = Path(__file__).parent.parent / "data" / "structures" / "hexapeptide.pdb"
    atoms = pele_ocl.read(topology, coordinates=structure)
    np.testing.assert_array_equal(atoms.positions, hexapeptide().positions)
    shorter = topology.with_name("y.pdb")
    shorter.write_text("".join(line for line in structure.read_text().splitlines(True) if " HA " not in line))
    with pytest.raises(
        FormatError, match=r"y.pdb: has \d\d atoms where .*x.parm7 has 96, and lacks its atom 5 \(MET1:HA\)"
    ):
        pele_ocl.read(topology, coordinates=shorter)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.coor", (96).to_bytes(4, "little") + bytes(24 * 96), "is a binary coordinate file of NAMD, which is not"),
        ("x.crd", b"* a title\n*\n   96  EXT\n", "is a coordinate file of CHARMM, which is not supported"),
        ("x.bcif", b"\x83\xa7version", "BinaryCIF is not supported; give the same entry as mmCIF"),
    ],
)  # fmt: skip
def test_coordinates_of_other_programs_are_named(topology, name, content, sentence):
    path = topology.with_name(name)
    path.write_bytes(content)
    with pytest.raises(FormatError, match=sentence):
        pele_ocl.read(topology, coordinates=path)
    with pytest.raises(FormatError, match=r"not supported|rename|need a topology"):
        pele_ocl.read(path)


LINES = restart(POSITIONS).splitlines(keepends=True)
WRONG = {
    "another number": (restart(POSITIONS[:90]), r":2: 90 atoms; .*x.parm7 has 96"),
    "truncated": ("".join(LINES[:40]), r":40: 228 coordinates of 96 atoms, which have 288; is the file complete\?"),
    "cut in a line": ("".join(LINES)[:-20], r":50: 287 coordinates of 96 atoms, which have 288; is the file com"),
    "more": ("".join([*LINES, *LINES[2:10]]), r":51: 8 lines after the coordinates; velocities take 48, a box 1"),
    "stars": ("".join(LINES).replace(LINES[9][:12], "*" * 12), r":10: coordinates: field 1 is '\*+': its number was t"),
    "nan": ("".join(LINES).replace(LINES[9][:12], f"{'NaN':>12}"), r":10: coordinates: field 1, '         NaN', is no"),
    "letters": ("".join(LINES).replace(LINES[9][:12], f"{'abc':>12}"), r":10: coordinates: field 1, ' +abc', is not a"),
    "a trajectory": ("title\n" + "".join(LINES[2:]), r":2: .*; a restart \(inpcrd, rst7\) has the number of atoms her"),
    "short": ("title\n", r": ends before the number of atoms, which is on the second line"),
    "empty": ("", r": ends before the number of atoms"),
    "a cut header": (netcdf(FRAMES)[:90], r": the header ends too early, at byte 90; is it complete\?"),
    "a cut frame": (netcdf(FRAMES[:1])[:-9], r": variable coordinates ends beyond the [\d,]+ bytes of the file; is it"),
    "other atoms": (netcdf(FRAMES[:, :95]), r": 95 atoms; .*x.parm7 has 96"),
    "no coordinates": (netcdf(FRAMES).replace(b"coordinates", b"coordination"[:11]), r": contains no variable "
    "'coordinat"),
    "nanometers": (netcdf(FRAMES, units="nanometer"), r": the coordinates are in 'nanometer'; expected angstrom"),
    "infinite": (netcdf(FRAMES * np.where(np.arange(96) == 4, np.inf, 1)[:, None]), r": frame 1: a coordinate of atom"),
    "damaged": (netcdf(FRAMES).replace(b"\0\0\0\x0a\0", b"\0\0\0\x0d\0", 1), r": byte [\d,]+: no NetCDF header; the f"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_one_sentence(topology, name):
    made, sentence = WRONG[name]
    with pytest.raises(FormatError, match=f"x.rst7{sentence}") as found:
        placed(topology, made)
    assert "\n" not in str(found.value)


def test_frames_and_kinds_that_are_not_there(topology, tmp_path):
    with pytest.raises(FormatError, match=r"x.rst7: contains no frame 2; a restart has one"):
        placed(topology, restart(POSITIONS), model=2)
    with pytest.raises(FormatError, match=r"x.rst7: contains no frame 0; the frames are 1 to 3"):
        placed(topology, netcdf(FRAMES), model=0)
    with h5py.File(tmp_path / "x.nc", "w") as file:
        file["coordinates"] = FRAMES
    for number in (None, 3):
        found = pele_ocl.read(topology, coordinates=tmp_path / "x.nc", model=number)
        np.testing.assert_array_equal(found.positions, FRAMES[(number or 1) - 1])
    with pytest.raises(FormatError, match=r"x.nc: contains no frame 4; the frames are 1 to 3"):
        pele_ocl.read(topology, coordinates=tmp_path / "x.nc", model=4)
    with pytest.raises(FormatError, match=r"none.rst7: no such file"):
        pele_ocl.read(topology, coordinates=tmp_path / "none.rst7")
    with pytest.raises(InputError, match="coordinates is 3; expected the path of a file"):
        pele_ocl.read(topology, coordinates=3)


def output_of(*args: object) -> str:
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == 0, result.output
    return result.stdout


def error_of(*args: object) -> str:
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code in (1, 2)
    return result.stderr.strip().splitlines()[-1].removeprefix("Error: ")


def test_commands(topology, tmp_path):
    coordinates = topology.with_name("x.rst7")
    coordinates.write_text(restart(POSITIONS))
    both = (topology, "-c", coordinates)
    atoms = pele_ocl.read(topology, coordinates=coordinates)
    found = json.loads(output_of("solvent", *both, "--json"))["energy"]["total"]
    assert found == pytest.approx(pele_ocl.solvent(atoms).total, rel=1e-6)
    assert json.loads(output_of("energy", *both, "--json"))["n_atoms"] == 96
    output_of("nonbond", *both, "--json")
    output_of("potmap", *both, "--spacing", "3", "-o", tmp_path / "m.dx")
    written = tmp_path / "salted.pdb"
    output_of("ions", *both, "--ion", "NA:1", "--spacing", "2", "-o", written)
    assert sum(line.startswith(("ATOM", "HETATM")) for line in written.read_text().splitlines()) == 97
    table = tmp_path / "energy.json"
    output_of("energy", topology, "--coordinates", coordinates, "-o", table)
    attributes = json.loads(table.read_text())
    assert attributes["coordinates"] == str(coordinates)
    assert len(attributes["coordinates_sha256"]) == 64


def test_a_topology_takes_the_coordinates_behind_it(topology, tmp_path):
    (restart_file := tmp_path / "x.rst7").write_text(restart(POSITIONS))
    total = pele_ocl.energy(topology, coordinates=restart_file).total
    words = (topology, restart_file, "--json")
    assert json.loads(output_of("energy", *words))["energy"]["total"] == total
    assert pele_ocl.energy([topology, restart_file]).total == total
    pdb = shipped("data") / "structures" / "hexapeptide.pdb"  # of the same atoms
    assert pele_ocl.energy([topology, pdb]).total == pele_ocl.energy(topology, coordinates=pdb).total
    other = tmp_path / "other.parm7"
    shutil.copy(topology, other)
    for paths in ([topology, other, restart_file], [topology, restart_file, other, restart_file]):
        assert pele_ocl.energy(paths).total.tolist() == [total, total]
    minimum = tmp_path / "min.rst7"
    found = pele_ocl.minimize([topology, restart_file], output=minimum, max_iterations=2)
    assert [of["text"].partition(" A ")[2] for of in found.records[0]["findings"]] == [
        "at the start of the minimization"
    ]
    assert pele_ocl.minimize(topology, minimum, coordinates=restart_file, max_iterations=2).total == found.total
    found.save(again := tmp_path / "again.rst7")
    assert again.read_text().splitlines()[1:] == minimum.read_text().splitlines()[1:]
    assert pele_ocl.energy(topology, coordinates=minimum).total == pytest.approx(found.total, abs=1e-3)


def test_coordinates_and_trajectories_in_the_place_of_a_structure_are_explained(topology, tmp_path):
    (restart_file := tmp_path / "x.rst7").write_text(restart(POSITIONS))
    with pytest.raises(KeywordError, match=r"run\.nc: is a trajectory of .*; pass it as `trajectory='run\.nc'`"):
        pele_ocl.energy([topology, "run.nc"])
    with pytest.raises(KeywordError, match=r"x\.rst7: contains only coordinates; give the topology before it"):
        pele_ocl.energy([restart_file, "x.pdb"])
    with pytest.raises(FormatError, match=r"x\.rst7: coordinates need a topology \(.psf, .prmtop\); give"):
        pele_ocl.energy(restart_file)
    pdb = Path(__file__).parent.parent / "data" / "structures" / "hexapeptide.pdb"
    said = error_of("pb", pdb, restart_file)
    assert said.endswith(f"extra argument ({restart_file}); give it as --coordinates {restart_file}")
    with pytest.raises(KeywordError, match=r"run\.nc: is a trajectory of .*hexapeptide\.pdb; pass it as"):
        pele_ocl.binding([pdb, "run.nc"], ligand="resid 6")


def test_python_of_the_page_runs(topology, tmp_path, monkeypatch):
    topology.rename(tmp_path / "protein.parm7")
    (tmp_path / "protein.rst7").write_text(restart(POSITIONS))
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parent.parent / "docs" / "formats" / "amber.md"
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    exec(compile(block, "amber.md", "exec"), {})


def test_errors_of_commands(topology, tmp_path):
    sentence = f"{topology}: a topology has no coordinates; give a coordinate file as --coordinates"
    assert error_of("energy", topology).startswith(sentence)
    pdb = Path(__file__).parent.parent / "data" / "structures" / "hexapeptide.pdb"
    assert "coordinates; separate coordinate files are for topologies, .prmtop, .parm7, .top" in error_of(
        "solvent", pdb, "-c", pdb
    )
    radii = error_of("solvent", topology, "-c", pdb, "--fallback")
    assert radii == f"{topology}: an AMBER topology contains charges and radii; leave out --guess-radii"
    assert "models" in error_of("energy", topology, "-c", pdb, "--models", "all")
    same = tmp_path / "same.json"
    same.write_text("x")
    assert "same file" in error_of("energy", topology, "-c", same, "-o", same)
