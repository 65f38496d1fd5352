"""Shipped structures, read from their files, equal the arrays they were written from (tests/data/README.md)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pele_ocl.atoms import Structure
from pele_ocl.common.installation import shipped
from pele_ocl.formats import read_structure

ARRAYS = Path(__file__).parent / "data"
NAMES = ("hexapeptide", "ubiquitin", "src3", "enolase_dimer", "ruvab")


def find(name: str) -> Path:
    """Find the file of a shipped structure, plain or gzip."""
    folder = shipped("data") / "structures"
    plain = folder / f"{name}.pdb"
    return plain if plain.exists() else folder / f"{name}.pdb.gz"


@pytest.mark.parametrize("name", NAMES)
def test_structure_equals_its_arrays(name: str) -> None:
    structure = read_structure(find(name))
    labels = structure.labels
    with np.load(ARRAYS / f"{name}.npz") as arrays:
        np.testing.assert_array_equal(structure.positions, arrays["coordinates"])
        np.testing.assert_array_equal(labels.names, arrays["atom_name"])
        np.testing.assert_array_equal(labels.elements, arrays["element"])
        np.testing.assert_array_equal(labels.residue_names, arrays["residue_name"])
        np.testing.assert_array_equal(labels.residue_numbers, arrays["residue_id"].astype(int))
        np.testing.assert_array_equal(labels.insertion_codes, np.char.strip(arrays["insertion_code"]))
        np.testing.assert_array_equal(labels.chains, arrays["chain"])
        np.testing.assert_array_equal(labels.residue_index, arrays["residue_index"])
        np.testing.assert_array_equal(structure.segments[labels.residue_index], arrays["segment"])
    assert not structure.hetero.any()


def test_lines_point_at_the_atoms() -> None:
    structure = read_structure(find("ubiquitin"))
    text = find("ubiquitin").read_text().splitlines()
    for i, line in enumerate(structure.lines):
        assert text[line - 1][12:16].strip() == structure.labels.names[i]
        assert float(text[line - 1][30:38]) == structure.positions[i, 0]


def calls_of(work: Callable[[], Structure]) -> tuple[int, Structure]:
    """Count the functions that are called meanwhile, which no load of the machine changes; return the result, too."""
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        found = work()
    finally:
        sys.setprofile(before)
    return calls, found


def test_the_work_of_hundred_thousand_atoms_is_that_of_twice_half_as_many(tmp_path: Path) -> None:
    """Their serial numbers are stars."""
    with np.load(ARRAYS / "cct12.npz") as arrays:
        columns = [
            arrays[key] for key in ("atom_name", "residue_name", "chain", "residue_id", "coordinates", "segment")
        ]
    lines, last = list[str](), 0
    for name, residue, chain, number, (x, y, z), segment in zip(*(c.tolist() for c in columns), strict=True):
        lines += ["TER"] * (segment - last)
        full = name if len(name) == 4 else f" {name}"
        lines.append(f"ATOM  ***** {full:<4} {residue} {chain}{number:>4}    {x:8.3f}{y:8.3f}{z:8.3f}")
        last = segment
    (tmp_path / "large.pdb").write_text("\n".join(lines))
    (tmp_path / "half.pdb").write_text("\n".join(lines[: len(lines) // 2]))
    half, _ = calls_of(lambda: read_structure(tmp_path / "half.pdb"))
    calls, structure = calls_of(lambda: read_structure(tmp_path / "large.pdb"))
    assert calls < 2.1 * half
    assert calls < 60 * len(structure.positions)
    np.testing.assert_array_equal(structure.positions, columns[4])
    np.testing.assert_array_equal(structure.labels.names, columns[0])
    np.testing.assert_array_equal(structure.segments[structure.labels.residue_index], columns[5])
