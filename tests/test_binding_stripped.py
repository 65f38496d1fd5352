"""Binding energies of frames without water beside topologies with it, and the reverse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from amber_helpers import content, netcdf, rendered, restart
from binding_helpers import N, complex_atoms, frames, positions
from test_cli import error_of, on_the_chosen_device, run
from trajectory_helpers import write_trajectory

from pele_ocl import Binding

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

DOUBLE = ("--precision", "float64", "--like", "mmpbsa.py")
LIGAND = ("--ligand", "resid 7:12")
M = 3


def with_water(whole: dict[str, tuple[str, list[object]]], n_waters: int) -> str:
    """A topology with waters behind its atoms, without their bonds."""
    n, residues = whole["POINTERS"][1][0], len(whole["RESIDUE_LABEL"][1])
    types = max(whole["ATOM_TYPE_INDEX"][1])
    whole["POINTERS"][1][0], whole["POINTERS"][1][11] = n + 3 * n_waters, residues + n_waters
    further: dict[str, list[object]] = {
        "ATOM_NAME": ["O", "H1", "H2"] * n_waters, "CHARGE": [-15.2, 7.6, 7.6] * n_waters,
        "ATOMIC_NUMBER": [8, 1, 1] * n_waters, "MASS": [16.0, 1.0, 1.0] * n_waters,
        "ATOM_TYPE_INDEX": [types] * 3 * n_waters, "NUMBER_EXCLUDED_ATOMS": [1] * 3 * n_waters,
        "EXCLUDED_ATOMS_LIST": [0] * 3 * n_waters, "RESIDUE_LABEL": ["WAT"] * n_waters,
        "RESIDUE_POINTER": [n + 1 + 3 * k for k in range(n_waters)], "AMBER_ATOM_TYPE": ["OW", "HW", "HW"] * n_waters,
        "RADII": [1.5, 0.8, 0.8] * n_waters, "SCREEN": [0.85, 0.85, 0.85] * n_waters,
    }  # fmt: skip
    for name, values in further.items():
        if name in whole:
            whole[name] = (whole[name][0], [*whole[name][1], *values])
    whole["POINTERS"][1][10] = len(whole["EXCLUDED_ATOMS_LIST"][1])
    return rendered(whole)


def wet(x: np.ndarray, n_waters: int) -> np.ndarray:
    water = np.full((len(x), 3 * n_waters, 3), 60.0) + 3.0 * np.arange(3 * n_waters)[:, np.newaxis]
    return np.concatenate([x, water], axis=1)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stripped")
    (folder / "dry.parm7").write_text(rendered(content(copies=2)))
    (folder / "wet.parm7").write_text(with_water(content(copies=2), 4))
    (folder / "part.parm7").write_text(rendered(content(copies=1)))
    (folder / "wetpart.parm7").write_text(with_water(content(copies=1), 5))
    (folder / "wet.rst7").write_text(restart(wet(positions()[np.newaxis], 4)[0]))
    x = frames(M)
    for name, positions_of in {
        "dry": x, "wet": wet(x, 4), "first": x[:, :N], "second": x[:, N:], "wetfirst": wet(x[:, :N], 5),
        "wetsecond": wet(x[:, N:], 5), "other": wet(x, 1),
    }.items():  # fmt: skip
        (folder / f"{name}.nc").write_bytes(netcdf(positions_of))
        write_trajectory(folder / f"{name}.mdcrd", positions_of)
    return folder


@pytest.fixture(scope="module")
def wanted() -> float:
    plan = Binding(complex_atoms(), "index 96:191", like="mmpbsa.py", precision="float64")
    return float(plan.evaluate_batch(frames(M)).total.mean())


@pytest.mark.parametrize("suffix", [".nc", ".mdcrd"])
@pytest.mark.parametrize("structure", ["dry", "wet"])
@pytest.mark.parametrize("whole", ["dry", "wet"])
@pytest.mark.parametrize(
    ("first", "first_structure", "second", "second_structure"),
    [
        ("first", None, "second", None),
        ("wetfirst", "wetpart", "second", "part"),
        ("first", "wetpart", None, None),
        (None, None, "wetsecond", "wetpart"),
    ],
)
def test_three_trajectories(
    files: Path, wanted: float, suffix: str, structure: str, whole: str, first: str | None,
    first_structure: str | None, second: str | None, second_structure: str | None,
) -> None:  # fmt: skip
    """Of a complex and parts each with water or without, against topologies of either kind."""
    words = ["binding", files / f"{structure}.parm7", "-t", files / f"{whole}{suffix}", *LIGAND, *DOUBLE]
    given = {"receptor": (first, first_structure), "ligand": (second, second_structure)}
    for name, (frames_of, own) in given.items():
        words += [f"--{name}-trajectory", files / f"{frames_of}{suffix}"] if frames_of else []
        words += [f"--{name}-structure", files / f"{own}.parm7"] if own else []
    if structure == "dry" and whole == "wet":
        assert "its frames" in error_of(*words)
        return
    report = json.loads(run(*words, "--json").stdout)
    assert report["delta"]["total"]["mean"] == pytest.approx(wanted, abs=2e-3 if suffix == ".nc" else 2.0)
    assert [of["n_frames"] for of in report["trajectories"].values()] == [M, M, M]


@pytest.mark.parametrize("options", [(), ("--workers", "2"), ("--idecomp", "2"), ("--alanine", "resid 8:9")])
def test_stripped_frames_of_a_topology_with_water(files: Path, wanted: float, options: tuple[str, ...]) -> None:
    if "--workers" in options:
        pytest.importorskip("distributed")
    words = ["binding", files / "wet.parm7", "-t", files / "dry.nc", *LIGAND, *DOUBLE, "--json", *options]
    report = json.loads(run(*words).stdout)
    assert report["delta"]["total"]["mean"] == pytest.approx(wanted, abs=1e-4)
    assert report["left_out"] == {"WAT": 4}
    assert "the frames contain only the atoms of receptor and ligand" in report["notes"]


def test_frames_of_other_atoms_are_refused(files: Path) -> None:
    words = ["binding", files / "wet.parm7", *LIGAND, *DOUBLE, "-t"]
    assert "its frames have 195 atoms" in error_of(*words, files / "other.nc")
    own = [files / "dry.nc", "--receptor-trajectory", files / "wetfirst.nc"]
    told = run(*words, *own, code=1).stderr
    assert "the structure 96; frames with further atoms need --receptor-structure, a topology of all of them" in told
    whole = ["--receptor-trajectory", files / "dry.nc", "--receptor-structure", files / "dry.parm7"]
    assert "in the complex 96; they are to be the same" in run(*words, files / "dry.nc", *whole, code=1).stderr
