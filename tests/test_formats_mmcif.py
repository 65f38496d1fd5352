"""mmCIF files."""

from __future__ import annotations

from pathlib import Path

import gemmi
import numpy as np
import pytest

from pele_ocl.atoms import Structure
from pele_ocl.common.errors import FormatError
from pele_ocl.common.installation import shipped
from pele_ocl.formats import read_structure

ITEMS = (
    "group_PDB id type_symbol label_atom_id label_alt_id label_comp_id label_asym_id label_seq_id pdbx_PDB_ins_code "
    "Cartn_x Cartn_y Cartn_z occupancy auth_seq_id auth_comp_id auth_asym_id auth_atom_id pdbx_PDB_model_num"
).split()
ROWS = """\
ATOM   1 N N     . ALA A 1 ? 1.0 2.0 3.0 1.0 10 ALA X N     1
ATOM   2 C CA    A ALA A 1 ? 1.1 2.1 3.1 0.4 10 ALA X CA    1
ATOM   3 C CA    B ALA A 1 ? 1.2 2.2 3.2 0.6 10 ALA X CA    1
ATOM   4 N N     . GLY A 2 B 1.3 2.3 3.3 1.0 10 GLY X N     1
HETATM 5 O "O5'" . LIG B . ? 1.4 2.4 3.4 1.0 1  LIG X "O5'" 1
HETATM 6 O O     . HOH C . ? 1.5 2.5 3.5 1.0 1  HOH X O     1
ATOM   7 N N     . ALA A 1 ? 7.0 2.0 3.0 1.0 10 ALA X N     2
"""


def cif(rows: str = ROWS, without: str = "", name: str = "test") -> str:
    """A data block of atoms, less the items whose name contains `without`."""
    kept = [k for k, item in enumerate(ITEMS) if not without or without not in item]
    header = "".join(f"_atom_site.{ITEMS[k]}\n" for k in kept)
    lines = [" ".join(row.split()[k] for k in kept) for row in rows.splitlines()]
    return f"data_{name}\nloop_\n{header}" + "\n".join(lines) + "\n"


def read(tmp_path: Path, content: str, model: int | None = None) -> Structure:
    file = tmp_path / "p.cif"
    file.write_text(content)
    return read_structure(file, model)


def message(tmp_path: Path, content: str, model: int | None = None) -> str:
    with pytest.raises(FormatError) as caught:
        read(tmp_path, content, model)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{tmp_path}/")


def test_author_names_conformers_and_segments(tmp_path: Path) -> None:
    structure = read(tmp_path, cif())
    labels = structure.labels
    atoms = ["X:ALA10:N", "X:ALA10:CA", "X:GLY10B:N", "X:LIG1:O5'", "X:HOH1:O"]
    assert [labels.atom(i) for i in range(5)] == atoms
    assert structure.positions[1].tolist() == [1.2, 2.2, 3.2]
    assert labels.elements.tolist() == ["N", "C", "N", "O", "O"]
    assert labels.residue_index.tolist() == [0, 0, 1, 2, 3]
    assert structure.segments.tolist() == [0, 0, 1, 2]
    assert structure.hetero.tolist() == [False, False, True, True]
    assert structure.lines.tolist() == [0] * 5
    assert structure.where(0) == f"{tmp_path}/p.cif (X:ALA10:N)"


def test_label_names_where_the_author_gave_none(tmp_path: Path) -> None:
    labels = read(tmp_path, cif(ROWS.replace(" . ?", " 7 ?"), without="auth_")).labels
    assert labels.atom(0) == "A:ALA1:N"
    assert labels.chains.tolist() == ["A", "A", "A", "B", "C"]
    assert labels.residue_numbers.tolist() == [1, 1, 2, 7, 7]


def test_choices_are_told(tmp_path: Path) -> None:
    model, location = read(tmp_path, cif()).notes
    assert model.endswith("p.cif contains several models; model 1, the first, was read; `model` selects another")
    assert location.endswith("p.cif: the alternate locations with the highest occupancy were read: B in X:ALA10")
    assert read(tmp_path, cif(), 2).notes == ()


def test_models(tmp_path: Path) -> None:
    assert read(tmp_path, cif(), 2).positions.tolist() == [[7, 2, 3]]
    assert message(tmp_path, cif(), 3) == "p.cif: has no model 3; it has 1, 2"
    assert len(read(tmp_path, cif(ROWS[: ROWS.index("ATOM   7")], without="model")).labels) == 5


def test_first_block_with_atoms(tmp_path: Path) -> None:
    structure = read(tmp_path, "data_empty\n_cell.length_a 1\n" + cif() + cif(name="other").replace("1.0 2.0", "9 9"))
    assert structure.positions[0].tolist() == [1, 2, 3]


def test_items_that_may_be_missing(tmp_path: Path) -> None:
    for item in ("ins_code", "occupancy", "alt_id", "type_symbol", "group", "asym"):
        rows = (
            ROWS
            if item != "alt_id"
            else ROWS.replace("ATOM   3 C CA    B", "ATOM   3 C CB    B").replace(
                "X CA    1\nATOM   4", "X CB 1\nATOM   4"
            )
        )
        assert read(tmp_path, cif(rows, without=item)).labels.elements[0] == "N"


@pytest.mark.parametrize("axis", ["Cartn_x", "Cartn_y", "Cartn_z"])
def test_coordinate_column_that_is_missing(tmp_path: Path, axis: str) -> None:
    expected = f"p.cif: the category atom_site has no column {axis}; all atoms need x, y and z"
    assert message(tmp_path, cif(without=axis)) == expected


@pytest.mark.parametrize("value", ["?", ".", "nan", "abc", "inf"])
def test_coordinate_that_is_missing(tmp_path: Path, value: str) -> None:
    expected = "p.cif: atom X:GLY10B:N has a coordinate that is not a finite number; correct or delete it"
    assert message(tmp_path, cif(ROWS.replace("2.3", value))) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "p.cif: the file is empty"),
        ("<html>", "p.cif: contains HTML, not a mmCIF file; was the download an error page?"),
        ("ATOM      1  N   ALA", "p.cif: contains PDB records, not mmCIF; give it the suffix .pdb"),
        ("hello", "p.cif:1: not valid mmCIF: expected block header (data_)"),
        (cif() + "ATOM 9\n", "p.cif:2: not valid mmCIF: Wrong number of values in loop _atom_site.*"),
        ("data_x\n_cell.length_a 1\n", "p.cif: contains no atoms (no _atom_site category); is it a structure file?"),
        ("data_x\n_a 1\n_a 2\n", "p.cif:3: not valid mmCIF: in data_x: duplicate tag _a"),
    ],
)
def test_damage_is_a_sentence(tmp_path: Path, content: str, expected: str) -> None:
    assert message(tmp_path, content) == expected


def test_residue_number_and_duplicate(tmp_path: Path) -> None:
    expected = "p.cif: residue number '1x' in auth_seq_id is not a number"
    assert message(tmp_path, cif(ROWS.replace(" 1  LIG", " 1x LIG"))) == expected
    assert message(tmp_path, cif(ROWS + ROWS)).startswith("p.cif: atom X:ALA10:N occurs twice; ")


def test_one_atom_without_a_loop(tmp_path: Path) -> None:
    row = dict(zip(ITEMS, ROWS.splitlines()[0].split(), strict=True))
    content = "data_x\n" + "".join(f"_atom_site.{item} {value}\n" for item, value in row.items())
    assert read(tmp_path, content).labels.atom(0) == "X:ALA10:N"


def test_same_structure_as_from_pdb(tmp_path: Path) -> None:
    pdb = shipped("data") / "structures" / "hexapeptide.pdb"
    written = gemmi.read_structure(str(pdb))
    written.setup_entities()
    from_pdb, from_cif = read_structure(pdb), read(tmp_path, written.make_mmcif_document().as_string())
    np.testing.assert_allclose(from_cif.positions, from_pdb.positions, atol=1e-9)
    for name in ("names", "elements", "residue_names", "residue_numbers", "chains", "residue_index"):
        np.testing.assert_array_equal(getattr(from_cif.labels, name), getattr(from_pdb.labels, name))


def test_a_file_may_have_the_suffix_pdbx(tmp_path):
    (tmp_path / "p.pdbx").write_text(cif())
    assert np.array_equal(read_structure(tmp_path / "p.pdbx").positions, read(tmp_path, cif()).positions)
