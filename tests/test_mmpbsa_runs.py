"""Runs of MMPBSA.py and gmx_MMPBSA: gone on with, shared out, with entropies, mutants and frames of the parts."""

from __future__ import annotations

import json
import math
from pathlib import Path

import h5py
import numpy as np
import pytest
from amber_helpers import netcdf
from binding_helpers import N, frames, mutable_residues
from click.testing import CliRunner
from mmpbsa_helpers import DECOMP, GB, M, call, parts, rows_of, shares_of, terms_of, write_files
from test_interop_files import ETHANE, PLACES

import pele_ocl
from pele_ocl import SolventModel
from pele_ocl.binding.alanine import to_alanine
from pele_ocl.cli import main

KEPT = GB.replace("keep_files=0", "keep_files=1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_files(tmp_path)


def table(folder: Path) -> str:
    """The tables, without the lines of the heading, which have the time."""
    return "\n".join(line for line in (folder / "o.dat").read_text().splitlines() if not line.startswith("|"))


def test_an_interrupted_run_goes_on_with_what_is_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert call(folder, KEPT, *parts(folder)).exit_code == 0
    wanted = table(folder)
    assert call(folder, KEPT, *parts(folder), "--resume").exit_code == 0
    with h5py.File("_MMPBSA_complex.h5", "r+") as file:  # as if it had ended after two frames
        file["complete"][()] = 2
        for dataset in file.values():
            if dataset.shape == (M,) and dataset.dtype.kind == "f":
                dataset[2:] = np.nan
        first = float(file["ligand_coulomb"][0])
        file["ligand_coulomb"][0] = first + 4.0  # which the second run takes as it stands
    assert call(folder, KEPT, *parts(folder), "--resume").exit_code == 0
    changed = rows_of((folder / "o.dat").read_text())["ligand", "EEL"][0]
    assert call(folder, KEPT, *parts(folder)).exit_code == 0
    assert table(folder) == wanted
    assert changed == pytest.approx(rows_of(wanted)["ligand", "EEL"][0] + 1.0, abs=2e-4)
    other = call(folder, KEPT.replace("saltcon=0.1", "saltcon=0.2"), *parts(folder), "--resume")
    assert other.exit_code == 1
    assert "_MMPBSA_complex.h5" in other.output


def test_intermediate_files_go_where_keep_files_is_0(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    own = ["-yr", str(folder / "first.nc"), "-yl", str(folder / "part.nc"), "-prefix", "p_", "--resume"]
    assert call(folder, GB, *parts(folder), *own).exit_code == 0
    assert not list(folder.glob("p_*"))
    assert call(folder, KEPT, *parts(folder), *own).exit_code == 0
    assert {path.name for path in folder.glob("p_*")} == {"p_complex.h5", "p_receptor.h5", "p_ligand.h5"}


def test_workers_give_the_same_tables(folder: Path) -> None:
    pytest.importorskip("distributed")
    given = DECOMP.format(2, 3, 1)
    assert call(folder, given, *parts(folder)).exit_code == 0
    wanted, shares = table(folder), shares_of((folder / "d.dat").read_text())
    done = call(folder, given, *parts(folder), "--workers", "2")
    assert done.exit_code == 0, done.output
    assert table(folder) == wanted
    assert shares_of((folder / "d.dat").read_text()) == shares


@pytest.mark.parametrize(
    ("given", "words", "sentence"),
    [
        (DECOMP.format(3, 0, 1), ["--workers", "2"], "pairs of residues are summed in one process"),
        (DECOMP.format(1, 0, 1), ["--resume"], "a decomposition needs all frames in one run; leave out --resume"),
        (GB, ["--shard", "1/2"], "No such option"),
    ],
)
def test_ways_that_are_not_there_are_refused(folder: Path, given: str, words: list[str], sentence: str) -> None:
    done = call(folder, given, *parts(folder), *words)
    assert done.exit_code != 0
    assert sentence in done.output
    assert not (folder / "o.dat").exists()


def test_entropies_are_those_of_gmx_mmpbsa(folder: Path) -> None:
    """Its interaction entropy takes the mean up to each frame, and kT and percentages of its own."""
    given = GB.replace(
        "&general\n", "&general\n interaction_entropy=1, c2_entropy=1, ie_segment=50, temperature=310,\n"
    )
    done = call(folder, given, *parts(folder), "--json")
    assert done.exit_code == 0, done.output
    energies = terms_of(folder, "mmpbsa.py")["delta", "GGAS"]
    kt, running = 0.001985875 * 310, []
    exponents: list[float] = []
    for k in range(M):
        exponents.append(math.exp((energies[k] - np.mean(energies[: k + 1])) / kt))
        running.append(kt * math.log(np.mean(exponents)))
    found = json.loads(done.stdout)["runs"][0]
    assert found["entropy"]["interaction_entropy"]["mean"] == pytest.approx(np.mean(running[-2:]), abs=1e-4)
    c2 = energies.var() / (2 * 0.001987 * 310)
    assert found["entropy"]["c2_entropy"]["mean"] == pytest.approx(c2, abs=1e-4)
    text = (folder / "o.dat").read_text()
    total = found["energy"]["TOTAL"]["mean"]
    assert f"Using C2 Entropy Approximation:\nΔG binding = {total + c2:9.2f} +/-" in text
    assert f"ΔG binding = {total + np.mean(running[-2:]):9.2f} +/-" in text
    assert ("WARNING: the standard deviation of the interaction energy" in text) == (energies.std() > 3.6)


def test_entropies_need_parts_from_frames_of_the_complex(folder: Path) -> None:
    given = GB.replace("&general\n", "&general\n c2_entropy=1,\n")
    own = ["-yr", str(folder / "first.nc"), "-yl", str(folder / "part.nc")]
    apart = call(folder, given, *parts(folder), *own)
    assert apart.exit_code != 0
    assert "interaction_entropy and c2_entropy need receptor and ligand from frames of the complex" in apart.output
    alone = call(folder, given, "-y", str(folder / "frames.nc"))
    assert alone.exit_code == 0
    assert "Note: entropies of binding are omitted" in alone.output


@pytest.mark.parametrize("of_gromacs", [False, True])
def test_several_mutants_in_one_run(folder: Path, of_gromacs: bool) -> None:
    """Each has the change that the mutant's own plan gives; gmx_MMPBSA's sign is the other one."""
    atoms = pele_ocl.read(folder / "complex.parm7", coordinates=frames(M)[0])
    able = [k for k in mutable_residues(atoms) if k > 5][:2]
    numbers = [atoms.labels.residues[k].number for k in able]
    words = ", ".join(f"/{number}" for number in numbers)
    given = GB + f"&alanine_scanning\n mutant_res='{words}'\n/\n"
    options = ["-cm", ":1-6", ":7-12", "-ct", str(folder / "frames.nc")] if of_gromacs else parts(folder)
    done = call(folder, given, *options, "--json")
    assert done.exit_code == 0, done.output
    runs = json.loads(done.stdout)["runs"]
    assert [run["mutant"] is None for run in runs] == [True, False, False]
    model = SolventModel.like("gmx" if of_gromacs else "mmpbsa.py", gb="obc2", ionic_strength=0.1)
    for k, run in zip(able, runs[1:], strict=True):
        mutant = to_alanine(atoms, k)
        side = np.arange(len(atoms)) >= N
        plan = pele_ocl.Binding(mutant.atoms, side[mutant.kept], ~side[mutant.kept], model=model, precision="float64")
        own = plan.evaluate_batch(mutant.positions(frames(M))).total.mean()
        assert run["energy"]["TOTAL"]["mean"] == pytest.approx(own, abs=1e-4)
        wild = runs[0]["energy"]["TOTAL"]["mean"]
        assert run["change"]["mean"] == pytest.approx(wild - own, abs=1e-4)
        line = f"({run['mutant']}):\nΔΔH binding = {own - wild:9.2f}" if of_gromacs else (
            f"({run['mutant']}) DELTA DELTA G binding = {wild - own:9.4f}"
        )  # fmt: skip
        assert line in (folder / "o.dat").read_text()


def test_a_mutant_is_named_once_and_exists(folder: Path) -> None:
    for words, sentence in (
        ("/8 /8", "names a residue twice"),
        ("/99", "there is no residue 99"),
        ("Z/8", "there is no residue 8 in a chain Z"),
        ("eight", "expected CHAIN:NUMBER"),
    ):
        done = call(folder, GB + f"&alanine_scanning\n mutant_res='{words}'\n/\n", *parts(folder))
        assert done.exit_code == 1
        assert sentence in done.output
    plain = call(folder, GB, *parts(folder), "-mc", str(folder / "complex.parm7"))
    assert plain.exit_code == 1
    assert "mmpbsa.in has no &alanine_scanning" in plain.output


@pytest.fixture
def ethanes(tmp_path: Path) -> tuple[Path, np.ndarray]:
    """Two molecules as GROMACS has them, an index file, and their frames together, in threes and alone."""
    pytest.importorskip("openmm")
    for name, n in (("topol.top", 2), ("three.top", 3), ("one.top", 1)):
        text = ETHANE.format(rule=2, more="")
        (tmp_path / name).write_text(text[: text.rindex("2")] + str(n) + text[text.rindex("2") + 1 :])
    groups = [" ".join(str(k) for k in range(8 * m + 1, 8 * m + 9)) for m in range(3)]
    (tmp_path / "index.ndx").write_text("".join(f"[ m{m} ]\n{text}\n" for m, text in enumerate(groups)))
    (tmp_path / "two.ndx").write_text("".join(f"[ m{m} ]\n{text}\n" for m, text in enumerate(groups[:2])))
    x = np.stack([np.concatenate([PLACES, PLACES + np.array([shift, 4.0, 0.5])]) for shift in (0.0, 0.4)])
    (tmp_path / "run.nc").write_bytes(netcdf(x))
    (tmp_path / "ligand.nc").write_bytes(netcdf(1.02 * x[:, 8:]))
    (tmp_path / "three.nc").write_bytes(netcdf(np.concatenate([x[:, :8] + 30, 1.02 * x[:, 8:], x[:, :8] + 60], axis=1)))
    (tmp_path / "mmpbsa.in").write_text(GB)
    return tmp_path, x


@pytest.mark.parametrize(
    "own",
    [
        ["-lt", "ligand.nc"],
        ["-lt", "ligand.nc", "-lp", "one.top"],
        ["-lt", "three.nc", "-lp", "three.top", "-li", "index.ndx", "-lg", "1", "-ls", "one.top"],
    ],
)
def test_parts_of_gromacs_with_frames_of_their_own(ethanes: tuple[Path, np.ndarray], own: list[str]) -> None:
    folder, x = ethanes
    words = ["-cp", "topol.top", "-ci", "two.ndx", "-cg", "0", "1", "-ct", "run.nc", *own]
    words = [str(folder / word) if "." in word else word for word in words]
    every = ["binding", "--mmpbsa", str(folder / "mmpbsa.in"), *words, "-o", str(folder / "o.dat")]
    done = CliRunner().invoke(main, [*every, "--precision", "float64", "--json"])
    assert done.exit_code == 0, done.output
    atoms = pele_ocl.read(folder / "topol.top", coordinates=x[0]).with_radii("mbondi2")
    model = SolventModel.like("gmx", gb="obc2", ionic_strength=0.1)

    def energies(chosen: object, positions: np.ndarray) -> np.ndarray:
        plan = pele_ocl.Energy(atoms[chosen], gradient=False, model=model, precision="float64", born="pairs")
        return plan.evaluate_batch(positions).total

    wanted = energies(slice(None), x).mean() - energies(slice(8), x[:, :8]).mean()
    wanted -= energies(slice(8, None), 1.02 * x[:, 8:]).mean()
    assert json.loads(done.stdout)["runs"][0]["energy"]["TOTAL"]["mean"] == pytest.approx(
        wanted, abs=2e-4
    )  # frames are of float32


def test_parts_of_gromacs_that_are_others_are_refused(ethanes: tuple[Path, np.ndarray]) -> None:
    folder, _ = ethanes
    start = ["-cp", "topol.top", "-ci", "two.ndx", "-cg", "0", "1", "-ct", "run.nc"]
    for own, sentence in (
        (["-lt", "three.nc", "-lp", "three.top"], "choose its group by -li and -lg"),
        (["-lt", "three.nc", "-lp", "three.top", "-lg", "1"], "-li and -lg must be given together"),
        (["-yl", "ligand.nc"], "with -cg use -rt and -lt"),
    ):
        words = [str(folder / word) if "." in word else word for word in (*start, *own)]
        every = ["binding", "--mmpbsa", str(folder / "mmpbsa.in"), *words, "-o", str(folder / "o.dat")]
        done = CliRunner().invoke(main, every)
        assert done.exit_code != 0
        assert sentence in done.output
        assert not (folder / "o.dat").exists()


SODIUM = "[ moleculetype ]\nNA 1\n[ atoms ]\n1 opls_140 1 NA NA 1 1.0 22.99\n[ system ]"


@pytest.mark.parametrize(
    ("molecules", "first"),
    [
        ("ETH 2\nNA 3", 1),  # ions at the end: numbers of the topology are those of the frames
        ("NA 3\nETH 2", 1),  # ions first: numbers are those of the frames
        ("NA 3\nETH 2", 4),  # or those of the topology
    ],
)
def test_frames_without_ions_beside_a_topology_with_them(
    ethanes: tuple[Path, np.ndarray], molecules: str, first: int
) -> None:
    """They have the energies of the topology without ions, and what is left out is named."""
    folder, _ = ethanes
    text = ETHANE.format(rule=2, more="").replace("[ system ]", SODIUM).replace("ETH 2", molecules)
    (folder / "salt.top").write_text(text)
    groups = [" ".join(str(k) for k in range(first + 8 * m, first + 8 * m + 8)) for m in range(2)]
    (folder / "salt.ndx").write_text("".join(f"[ m{m} ]\n{text}\n" for m, text in enumerate(groups)))
    found = []
    for topology, index in (("topol.top", "two.ndx"), ("salt.top", "salt.ndx")):
        words = ["-cp", folder / topology, "-ci", folder / index, "-cg", "0", "1", "-ct", folder / "run.nc"]
        every = ["binding", "--mmpbsa", folder / "mmpbsa.in", "-O", "--json", *words, "-o", folder / "o.dat"]
        done = CliRunner().invoke(main, [str(word) for word in every])
        assert done.exit_code == 0, done.output
        found.append(json.loads(done.stdout))
    plain, salted = found
    assert plain["runs"] == salted["runs"]
    assert (plain["left_out"], salted["left_out"]) == ({}, {"NA": 3})
    assert "3 atoms (3 NA) are in neither receptor nor ligand, and left out" in salted["notes"]
    assert any("its frames do not contain 3 NA of" in note for note in salted["notes"])
