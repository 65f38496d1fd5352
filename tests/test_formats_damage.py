"""Damaged files are read or refused with a sentence; no other exception, no number that is not finite."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pele_ocl.errors import FormatError
from pele_ocl.formats import is_pqr, read_pqr, read_structure

CASES = 300

PDB = "REMARK\nMODEL        1\n{}TER\nENDMDL\nEND\n"
PDB_ATOM = "ATOM      {n}  {name:<2}  ALA A   {n}    {x:8.3f}   2.500  -3.250  1.00  0.00           {name:.1}\n"
PQR_ATOM = "ATOM      {n}  {name:<2}  ALA A   {n}    {x:8.3f}   2.500  -3.250 -0.4157 1.8240\n"
CIF = """data_x
loop_
_atom_site.group_PDB
_atom_site.auth_atom_id
_atom_site.auth_comp_id
_atom_site.auth_asym_id
_atom_site.auth_seq_id
_atom_site.label_alt_id
_atom_site.Cartn_x
_atom_site.Cartn_y
_atom_site.Cartn_z
_atom_site.pdbx_PDB_model_num
{}"""
CIF_ATOM = "ATOM {name} ALA A {n} . {x} 2.5 -3.25 1\n"

WHOLE = {"p.pdb": (PDB, PDB_ATOM), "p.pqr": ("REMARK\n{}END\n", PQR_ATOM), "p.cif": (CIF, CIF_ATOM)}


def whole(name: str) -> bytes:
    frame, line = WHOLE[name]
    atoms = [line.format(n=n, name=atom, x=1.5 * n) for n in range(1, 9) for atom in ("N", "CA")]
    return frame.format("".join(atoms)).encode()


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with up to five bytes changed or inserted, stretches left out, or the end cut off."""
    damage = bytearray(content)
    for _ in range(rng.integers(1, 6)):
        at = int(rng.integers(len(damage) + 1))
        match rng.integers(4):
            case 0:
                damage[at : at + 1] = bytes([rng.integers(1, 256)])
            case 1:
                del damage[at : at + int(rng.integers(1, 60))]
            case 2:
                damage.insert(at, int(rng.choice(list(b" \t\n\r-.9A*'"))))
            case _:
                damage = damage[:at] if rng.integers(4) == 0 else damage
    return bytes(damage)


@pytest.mark.parametrize("name", WHOLE)
def test_any_damage_is_read_or_refused(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(36)
    file = tmp_path / name
    messages = list[str]()
    for _ in range(CASES):
        file.write_bytes(damaged(whole(name), rng))
        try:
            positions = (read_pqr(file) if is_pqr(file) else read_structure(file)).positions
        except FormatError as error:
            messages.append(str(error))
        else:
            assert np.isfinite(positions).all()
    assert all(message.startswith(str(file)) and "\n" not in message for message in messages)
    assert CASES / 10 < len(messages) < CASES


@pytest.mark.parametrize("name", WHOLE)
def test_without_damage_all_is_read(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(whole(name))
    assert len((read_pqr(file) if is_pqr(file) else read_structure(file)).positions) == 16
