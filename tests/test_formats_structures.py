"""The shipped structures, read from their files, equal the arrays they were written from (tests/data/README.md)."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from pele_ocl.formats import read_structure
from pele_ocl.paths import shipped

ARRAYS = Path(__file__).parent / "data"
NAMES = ("hexapeptide", "ubiquitin", "src3", "enolase_dimer", "ruvab")


def find(name: str) -> Path:
    """The file of a shipped structure, plain or gzip."""
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


def test_hundred_thousand_atoms_take_less_than_two_seconds(tmp_path: Path) -> None:
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
    start = time.perf_counter()
    structure = read_structure(tmp_path / "large.pdb")
    assert time.perf_counter() - start < 2
    np.testing.assert_array_equal(structure.positions, columns[4])
    np.testing.assert_array_equal(structure.labels.names, columns[0])
    np.testing.assert_array_equal(structure.segments[structure.labels.residue_index], columns[5])
