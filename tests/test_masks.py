"""AMBER's masks as selections, and AMBER's files under names without a suffix or compressed."""

from __future__ import annotations

import bz2
from pathlib import Path

import numpy as np
import pytest
from amber_helpers import restart
from binding_helpers import frames, positions, write_complex
from click.testing import CliRunner
from test_selection import ROWS, labels_of

import pele_ocl
from pele_ocl import Atoms, FormatError, InputError, selection
from pele_ocl.cli import main


@pytest.fixture(scope="module")
def atoms() -> Atoms:
    n = len(ROWS)
    positions = np.arange(3 * n).reshape(n, 3) * [1.0, 0, 0]  # 3 A apart on a line
    return Atoms(positions, np.zeros(n), labels=labels_of(ROWS), types=np.array([f"t{k % 3}" for k in range(n)]))


@pytest.mark.parametrize(
    ("mask", "taken"),
    [
        (":1", range(6)),  # residues count from 1 in the order of the file, whatever their numbers
        (":1-2@CA", (2, 7)),
        (":2,NAP", (*range(6, 11), *range(19, 23))),
        ("@1-3,5", (0, 1, 2, 4)),
        ("@CA", (2, 7, 12, 28)),
        ("@C=", (2, 3, 4, 7, 8, 12, 13, 17, 19, 20, 27, 28)),
        (":Cl-", (27,)),
        ("!:1-7", (27, 28)),
        (":1&!@N,CA,C,O", (1, 3)),
        ("(:1|:3)&@CA", (2, 12)),
        ("@/Na,Ca", (26, 28)),
        ("@%t1", range(1, 29, 3)),
        ("*", range(29)),
        ("!@H=&:1", (0, 2, 3, 4, 5)),
        (":1@N<@3.5", (0, 1)),
        (":1@N<:3.5", range(6)),
        (":NAP>@3.5", [k for k in range(29) if k < 18 or k > 23]),
        ("@O | @N & :1", (0, 5, 9, 14, 23)),
        ("(:1-2@CA) and (not resname ALA)", (7,)),
        ("protein and (@CA|@CB)", (2, 3, 7, 12)),
        ("not (:1-7)", (27, 28)),
        ("within 3.5 of (:1@N)", (0, 1)),
    ],
)  # fmt: skip
def test_a_mask_takes_the_atoms_that_ambers_programs_take(atoms: Atoms, mask: str, taken: tuple[int, ...]) -> None:
    assert np.flatnonzero(selection(atoms, mask)).tolist() == list(taken)


@pytest.mark.parametrize(
    ("mask", "sentence"),
    [
        (":", "':' ends too early; expected a number, a range such as 1-50 or a name"),
        (":1@", "ends too early"),
        (":1 :2", "has ':' at character 4; expected & or | before it"),
        (":5-1", "a range begins with its lower number"),
        ("(:1", "a parenthesis is not closed"),
        (":1<3", "<: is for residues and <@ for atoms"),
        (":XYZ", "selects no atoms; no residue is named XYZ"),
        (":99", "selects no atoms; nothing has a number of :99; masks count residues 1 to "),
        ("@99999", "nothing has a number of @99999; masks count atoms 1 to "),
        (":1 and name CA", "an AMBER mask must be in parentheses"),
    ],
)
def test_what_is_wrong_with_a_mask_is_said(atoms: Atoms, mask: str, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        selection(atoms, mask)
    assert sentence in str(error.value)


def test_masks_and_other_options_choose_together(tmp_path: Path) -> None:
    structure = Path(__file__).parent.parent / "data" / "structures" / "ubiquitin.pdb"
    found = CliRunner().invoke(main, ["energy", str(structure), "--select", ":1-3|:5", "--only", "protein", "--json"])
    assert found.exit_code == 0
    whole = pele_ocl.read(structure)
    assert f'"n_atoms": {int(selection(whole, ":1-3,5").sum())},' in found.output


# AMBER's default names, and compressed files


def mdcrd(conformations: np.ndarray) -> bytes:
    lines = ["a title"]
    for frame in conformations:
        numbers = [f"{x:8.3f}" for x in frame.ravel()]
        lines += ["".join(numbers[k : k + 10]) for k in range(0, len(numbers), 10)]
    return ("\n".join(lines) + "\n").encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bare")
    topology, _, trajectory = write_complex(folder, 3)
    (folder / "prmtop").write_bytes(topology.read_bytes())
    (folder / "prmtop.bz2").write_bytes(bz2.compress(topology.read_bytes()))
    (folder / "restrt").write_text(restart(positions()))
    (folder / "inpcrd.bz2").write_bytes(bz2.compress(restart(positions()).encode()))
    (folder / "run.trj").write_bytes(trajectory.read_bytes())
    (folder / "mdcrd").write_bytes(mdcrd(frames(3)))
    (folder / "mdcrd.bz2").write_bytes(bz2.compress(mdcrd(frames(3))))
    (folder / "run.nc.bz2").write_bytes(bz2.compress(trajectory.read_bytes()))
    return folder


@pytest.mark.parametrize(("topology", "coordinates"), [("prmtop", "restrt"), ("prmtop.bz2", "inpcrd.bz2")])
def test_topologies_are_known_by_their_first_bytes(folder: Path, topology: str, coordinates: str) -> None:
    atoms = pele_ocl.read(folder / topology, coordinates=folder / coordinates)
    wanted = pele_ocl.read(folder / "complex.parm7", coordinates=folder / "complex.rst7")
    assert np.array_equal(atoms.positions, wanted.positions)
    assert np.array_equal(atoms.charges, wanted.charges)


@pytest.mark.parametrize(("name", "off"), [("run.trj", 1e-6), ("mdcrd", 6e-4), ("mdcrd.bz2", 6e-4), ("run.nc.bz2", 0)])
def test_trajectories_are_known_by_their_first_bytes(folder: Path, name: str, off: float) -> None:
    atoms = pele_ocl.read(folder / "prmtop", coordinates=folder / "restrt")
    read = np.concatenate(list(pele_ocl.trajectory(folder / name, atoms)))
    wanted = np.concatenate(list(pele_ocl.trajectory(folder / "frames.nc", atoms)))
    assert np.abs(read - wanted).max() <= off


def test_damaged_bzip2_is_one_sentence(tmp_path: Path) -> None:
    packed = bz2.compress(b"ATOM" * 1000)
    (tmp_path / "a.pdb.bz2").write_bytes(packed[:-20])
    (tmp_path / "b.pdb.bz2").write_bytes(packed[:4] + b"xxxx" + packed[8:])
    (tmp_path / "c.pdb.bz2").write_bytes(b"ATOM")
    with pytest.raises(FormatError, match="the bzip2 data ends too early"):
        pele_ocl.read(tmp_path / "a.pdb.bz2")
    with pytest.raises(FormatError, match="the bzip2 data is damaged"):
        pele_ocl.read(tmp_path / "b.pdb.bz2")
    with pytest.raises(FormatError, match=r"not bzip2 data, although its name ends in \.bz2"):
        pele_ocl.read(tmp_path / "c.pdb.bz2")


def test_a_file_of_no_format_is_refused_by_its_suffix(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("nothing\nof use\n")
    with pytest.raises(FormatError, match="unknown suffix ''"):
        pele_ocl.read(tmp_path / "notes")
