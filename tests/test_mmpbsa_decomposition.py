"""Decompositions of runs of MMPBSA.py: sidechains and backbones of pairs, and shares of each frame."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from mmpbsa_helpers import DECOMP, M, call, parts, rows_of, shares_of, terms_of, write_files

SPLITS = ("Total", "Sidechain", "Backbone")
SIZES = {"Complex": 12, "Receptor": 6, "Ligand": 6, "DELTAS": 12}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("mmpbsa"))


def frame_shares(text: str) -> dict[tuple[str, str, int, str], list[float]]:
    """The rows of -deo by system, split, frame and residue."""
    found, system, split = {}, "", ""
    for row in csv.reader(text.splitlines()):
        if len(row) == 1 and row[0].rstrip(":") in SIZES:
            system = row[0].rstrip(":")
        elif len(row) == 1 and row[0].endswith("Energy Decomposition:"):
            split = row[0].removeprefix("DELTA ").split()[0]
        elif row and row[0].isdigit():
            n_names = len(row) - 7
            name = " ".join(" ".join(row[1 : 1 + n_names]).split())
            found[system, split, int(row[0]), name] = [float(word) for word in row[-6:]]
    return found


@pytest.mark.parametrize(("of_residues", "of_pairs"), [(1, 3), (2, 4)])
def test_pairs_of_sidechains_and_backbones_add_up_to_those_of_residues(
    folder: Path, of_residues: int, of_pairs: int
) -> None:
    """The pairs of a residue's sidechain with all residues are the share of its sidechain, which is computed apart."""
    assert call(folder, DECOMP.format(of_residues, 3, 1), *parts(folder)).exit_code == 0
    residues = shares_of((folder / "d.dat").read_text())
    assert call(folder, DECOMP.format(of_pairs, 3, 1), *parts(folder)).exit_code == 0
    pairs = shares_of((folder / "d.dat").read_text())
    assert len(pairs) == 3 * sum(n * n for n in SIZES.values())
    for (system, split, name), row in residues.items():
        first = " ".join(name.split()[:2])
        rows = [of for (s, p, both), of in pairs.items() if (s, p) == (system, split) and both.startswith(f"{first} ")]
        assert len(rows) == SIZES[system]
        assert np.sum(rows, axis=0) == pytest.approx(row, abs=2e-5)
    for (system, split, name), row in pairs.items():
        if split == "Total":
            halves = np.array([pairs[system, half, name] for half in SPLITS[1:]])
            assert halves.sum(axis=0) == pytest.approx(row, abs=1e-6)


@pytest.mark.parametrize(("idecomp", "verbose"), [(1, 3), (2, 0), (3, 1), (4, 0)])
def test_shares_of_each_frame_are_those_of_the_means(folder: Path, idecomp: int, verbose: int) -> None:
    done = call(folder, DECOMP.format(idecomp, verbose, 1), *parts(folder), "-deo", str(folder / "deo.csv"))
    assert done.exit_code == 0, done.output
    found, means = frame_shares((folder / "deo.csv").read_text()), shares_of((folder / "d.dat").read_text())
    splits = SPLITS if verbose else SPLITS[:1]
    n_rows = sum(n ** (1 if idecomp < 3 else 2) for n in SIZES.values())
    assert len(found) == M * len(splits) * n_rows
    for (system, split, name), row in means.items():
        of = [found[system, split, frame, name] for frame in range(1, M + 1)]
        assert np.mean(of, axis=0) == pytest.approx(row, abs=1e-6)
    wanted = terms_of(folder, "sander")
    for frame, (system, name) in product(range(1, M + 1), (("Ligand", "ligand"), ("DELTAS", "delta"))):
        total = sum(row[-1] for (s, split, k, _), row in found.items() if (s, split, k) == (system, "Total", frame))
        assert total == pytest.approx(wanted[name, "TOTAL"][frame - 1], abs=2e-3)


def test_frames_have_the_numbers_of_the_trajectory(folder: Path) -> None:
    given = DECOMP.format(1, 0, 1).replace("startframe=1, endframe=4, interval=1", "startframe=2, interval=2")
    assert call(folder, given, *parts(folder), "-deo", str(folder / "deo.csv")).exit_code == 0
    assert {frame for _, _, frame, _ in frame_shares((folder / "deo.csv").read_text())} == {2, 4}


def test_separate_trajectories_have_pairs_and_no_difference_by_frame(folder: Path) -> None:
    own = ["-yr", str(folder / "first.nc"), "-yl", str(folder / "part.nc"), "-deo", str(folder / "deo.csv")]
    assert call(folder, DECOMP.format(3, 3, 1), *parts(folder), *own).exit_code == 0
    found = frame_shares((folder / "deo.csv").read_text())
    assert {system for system, *_ in found} == {"Complex", "Receptor", "Ligand"}
    together = shares_of((folder / "d.dat").read_text())
    assert call(folder, DECOMP.format(3, 3, 1), *parts(folder)).exit_code == 0
    for key, row in shares_of((folder / "d.dat").read_text()).items():
        assert together[key] == pytest.approx(row, abs=1e-4)
    results = rows_of((folder / "o.dat").read_text())
    assert results["delta", "TOTAL"]


def test_residues_within_a_distance_are_those_of_the_first_frame(folder: Path) -> None:
    given = DECOMP.format(1, 0, 1).replace('"all"', '"within 4"')
    assert call(folder, given, *parts(folder)).exit_code == 0
    single = shares_of((folder / "d.dat").read_text())
    own = ["-yr", str(folder / "first.nc"), "-yl", str(folder / "part.nc")]
    assert call(folder, given, *parts(folder), *own).exit_code == 0
    assert 0 < len(single) < 12
    assert set(shares_of((folder / "d.dat").read_text())) == set(single)


def test_what_has_no_decomposition_or_too_large_a_one_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*parts(folder), "-deo", str(folder / "never.csv")]
    plain = call(folder, DECOMP.format(1, 0, 1).split("&decomp")[0], *words)
    assert plain.exit_code != 0
    assert "-deo needs a decomposition, but mmpbsa.in has no &decomp" in plain.output
    monkeypatch.setattr("pele_ocl.binding.mmpbsa.work._MOST_BYTES", 1 << 10)
    large = call(folder, DECOMP.format(3, 0, 1), *words)
    assert large.exit_code == 1
    assert "for 4 frames of 12 residues; give fewer in print_res" in large.output
    assert not (folder / "never.csv").exists()
