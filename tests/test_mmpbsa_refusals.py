"""Files and options of MMPBSA.py that do not fit: one sentence, and no file is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from amber_helpers import netcdf
from binding_helpers import frames
from click.testing import CliRunner, Result
from mmpbsa_helpers import GB, call, parts, rows_of, write_files

import pele_ocl
from pele_ocl.cli import main
from pele_ocl.common.errors import KeywordError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_files(tmp_path_factory.mktemp("mmpbsa"))
    (folder / "few.nc").write_bytes(netcdf(frames(2)[:, :100]))
    (folder / "few.mdcrd").write_text(mdcrd(frames(2)[:, :100]))
    (folder / "cut.nc").write_bytes((folder / "frames.nc").read_bytes()[:-2000])
    return folder


def mdcrd(x: np.ndarray) -> str:
    """Frames (m, n, 3) as AMBER's text."""
    lines = ["title"]
    for frame in x:
        values = frame.ravel()
        lines += ["".join(f"{v:8.3f}" for v in values[k : k + 10]) for k in range(0, len(values), 10)]
    return "\n".join(lines) + "\n"


def refused(folder: Path, given: str, *words: str) -> Result:
    """The result of a call that fails and writes nothing, with one line of error."""
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.name != "mmpbsa.in"}
    done = call(folder, given, *words)
    assert done.exit_code in (1, 2)
    assert isinstance(done.exception, SystemExit)
    assert sum(line.startswith("Error:") for line in done.output.splitlines()) == 1
    assert before == {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.name != "mmpbsa.in"}
    return done


def test_frames_of_more_atoms_that_start_too_late(folder: Path) -> None:
    words = refused(folder, GB.replace("startframe=1, endframe=4", "startframe=9"), *parts(folder, "wet.nc")).output
    assert "its frames have 199 atoms, the structure 192; give the topology of all their atoms (-sp," in words
    assert "--select" not in words


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["-rp", "complex.parm7", "-lp", "part.top", "-y", "frames.nc"],
            "receptor and ligand 192 and 96;",
        ),
        (
            ["-rp", "part.top", "-lp", "part.top", "-y", "few.nc"],
            "its frames have 100 atoms, the structure 192; give the topology of all their atoms (-sp,",
        ),
        (["-rp", "part.top", "-lp", "part.top", "-y", "few.mdcrd"], "give the topology of all their atoms (-sp,"),
        (["-rp", "part.top", "-lp", "part.top", "-y", "wet.nc"], "its frames have 199 atoms, the topology 192; give"),
        (["-rp", "part.top", "-lp", "part.top", "-y", "frames.nc", "-sp", "solvated"], "192 atoms, the structure 199"),
        (["-rp", "part.top", "-lp", "part.top", "-y", "frames.nc", "-sp", "part.top"], "has 96 atoms without"),
        (["-rp", "part.top", "-lp", "part.top", "-y", "cut.nc"], "or use the complete ones with endframe=3"),
        (["-rp", "part.top", "-lp", "part.top", "-y", "complex.parm7"], "expected frames"),
        (["-rp", "frames.nc", "-lp", "part.top", "-y", "frames.nc"], "unknown suffix '.nc'"),
        (["-rp", "part.top", "-lp", "part.top", "-y"], "Option '-y' requires an argument"),
        (["-rp", "part.top", "-lp", "none.top", "-y", "frames.nc"], "none.top: no such file"),
        (["-yr", "first.nc", "-yl", "part.nc", "-y", "frames.nc"], "frames of a part need topologies of both"),
        (["-rp", "part.top", "-lp", "part.top", "-y", "frames.nc", "-i", "mmpbsa.in"], "-i is given twice"),
        (["-rp", "part.top", "-lp", "part.top", "-y", "frames.nc", "-make-mdins"], "-make-mdins is not supported"),
        (["-rp", "part.top", "-lp", "part.top", "-y", "frames.nc", "-eo", "part.top"], "the same file as the input"),
        (["-cg", "0", "1", "-y", "frames.nc"], "-ci and -cg must be given together"),
        (["-rt", "first.nc", "-y", "frames.nc"], "-rt and -lt require -cg"),
    ],
)
def test_files_that_do_not_fit(folder: Path, words: list[str], sentence: str) -> None:
    names = {path.name for path in folder.iterdir()} | {"none.top"}
    assert sentence in refused(folder, GB, *(str(folder / word) if word in names else word for word in words)).output


def test_a_run_without_a_topology_or_with_a_missing_file_ends_before_any_work(folder: Path) -> None:
    """As gmx_MMPBSA's own command lines without -cp do, which it makes a topology for."""
    cut = [str(folder / name) for name in ("none.ndx", "frames.nc")]
    for words, sentence in (
        (["-cs", "com.tpr", "-ci", "index.ndx", "-cg", "0", "1", "-ct", "run.xtc", "-lm", "lig.mol2"], "give -cp"),
        (["-cp", str(folder / "frames.nc"), "-ci", cut[0], "-cg", "0", "1", "-ct", cut[1]], "none.ndx: no such file"),
        (["-cp", str(folder / "complex.parm7"), "-y", str(folder / "none.nc")], "none.nc: no such file"),
    ):
        (folder / "mmpbsa.in").write_text(GB)
        done = CliRunner().invoke(main, ["mmpbsa", "-O", "-i", str(folder / "mmpbsa.in"), *words])
        assert done.exit_code in (1, 2)
        assert sentence in done.output
        assert not (folder / "FINAL_RESULTS_MMPBSA.dat").exists()


def masks(receptor: str, ligand: str) -> str:
    return GB.replace("&general\n", f"&general\n receptor_mask='{receptor}', ligand_mask='{ligand}',\n")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (masks(":ZZZ", ":7-12"), "the mask ':ZZZ' selects no atoms of"),
        (masks(":1-6", ":6-12"), "do not divide the atoms"),
        (GB.replace("startframe=1, endframe=4", "startframe=99"), "startframe=99 is after the last frame, 4,"),
        (GB.replace("startframe=1", "startframe=0"), "startframe=0, endframe=4, interval=1 choose no frame"),
        (GB.replace("interval=1", "interval=0"), "interval=0 choose no frame"),
        (GB.replace("interval=1", "interval=-1"), "interval=-1 choose no frame"),
        (GB.replace("startframe=1", "startframe=nan"), "startframe is 'nan'; expected a number"),
        (GB.replace("startframe=1", "startframe="), "startframe is ''; expected a number"),
        (GB.replace("igb=5", "igb=5, igb=8"), "igb of &gb is given twice"),
        (GB.replace("igb=5", "igb 5"), "'igb 5' in &gb is not a variable with a value"),
        (GB.replace("saltcon=0.1", "saltcon=-1"), "saltcon=-1; it cannot be negative"),
        (GB.replace("saltcon=0.1", "extdiel=0"), "extdiel=0; it cannot be negative, nor"),
        (GB + GB[GB.index("&gb") :], "&gb occurs twice"),
        (GB.replace("/\n&gb", "&gb"), "&gb begins before &general ends"),
        (GB.replace("&general\n", "&general\n c2_entropy=1, temperature=0,\n"), "a temperature above 0 K and 1 to"),
        (GB + "&decomp\n idecomp=1\n/\n&alanine_scanning\n mutant_only=1\n/\n", "mutant_only=1 omits"),
    ],
)  # fmt: skip
def test_input_that_means_nothing(folder: Path, given: str, sentence: str) -> None:
    assert sentence in refused(folder, given, *parts(folder)).output


@pytest.mark.parametrize(
    "given",
    [
        GB.replace("\n", "\r\n"),
        GB.replace("igb=5,", "igb=5, # five\n ! saltcon=9, wheel=1\n # igb=1\n"),
        GB.replace("igb=5,", "igb=5, ! five\n"),
        GB.replace("saltcon=0.1,\n/", "saltcon=0.1 &end"),
        GB.replace("&gb", "&GB").replace("saltcon=0.1,\n/", "saltcon=1.D-1\n&END"),
        "\ufeff" + GB,
        GB.replace("&general\n", "&general\n strip_mask=':WAT,!@CA#', # masks have both letters\n"),
    ],
)
def test_input_as_other_editors_and_people_write_it(folder: Path, given: str) -> None:
    assert call(folder, GB, *parts(folder)).exit_code == 0
    wanted = rows_of((folder / "o.dat").read_text())
    done = call(folder, given, *parts(folder))
    assert done.exit_code == 0, done.output
    assert rows_of((folder / "o.dat").read_text()) == wanted


def test_a_ligand_larger_than_its_receptor_is_told(folder: Path) -> None:
    done = call(folder, masks(":1-2", ":3-12"), "-y", str(folder / "frames.nc"))
    assert done.exit_code == 0
    assert "Note: the ligand has" in done.output
    assert "more than the" in done.output


def test_files_and_keywords_in_the_place_of_others_are_explained() -> None:
    with pytest.raises(TypeError, match="keyword argument 'complex'; did you mean 'complex_topology'"):
        pele_ocl.mmpbsa(complex="com.prmtop")
    with pytest.raises(KeywordError, match=r"'lig\.prmtop', a file; .*\"resname LIG\"; topologies of the parts are"):
        pele_ocl.binding("com.prmtop", receptor=":1-9", ligand="lig.prmtop", trajectory="run.nc")
    with pytest.raises(KeywordError, match=r"`receptor` is 'rec\.pdb', a file; choose its atoms of the complex"):
        pele_ocl.binding("com.prmtop", receptor="rec.pdb", ligand=":LIG")
    with pytest.raises(
        TypeError, match=r"expects the ligand at this position, .*; pass the file as trajectory='run\.nc'"
    ):
        pele_ocl.binding("com.prmtop", "run.nc", ":LIG")
