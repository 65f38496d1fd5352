"""Files of conformations of one molecule: read again by us and by other programs, and gone on with."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import gemmi
import netCDF4
import numpy as np
import pytest
from openmm.app import AmberInpcrdFile
from openmm.unit import angstrom

import pele_ocl
from pele_ocl import Atoms, FormatError, InputError, trajectory
from pele_ocl.common.inputfile import read_file
from pele_ocl.common.installation import shipped
from pele_ocl.formats import (
    CONFORMATION_FORMATS,
    ConformationFile,
    Content,
    layout_of,
    read_b_factors,
    read_structure,
    write_conformation,
)
from pele_ocl.formats.amber.writing import prmtop_text

HEXAPEPTIDE = shipped("data") / "structures" / "hexapeptide.pdb"
MANY = [suffix for suffix, form in CONFORMATION_FORMATS.items() if not form.holds_one]
DIGITS = {".pdb": 5.1e-4, ".cif": 5.1e-5, ".h5": 4e-6, ".nc": 4e-6, ".dcd": 4e-6, ".xtc": 6e-3, ".xyz": 6e-6}


@pytest.fixture(scope="module")
def peptide():
    return pele_ocl.read(HEXAPEPTIDE)


@pytest.fixture(scope="module")
def frames(peptide):
    return peptide.positions + np.random.default_rng(0).normal(0, 0.1, (4, *peptide.positions.shape))


def written(path: Path, content: Content, frames, size=None, first=0):
    with ConformationFile(path, layout_of(path, content), size) as file:
        for number, positions in enumerate(frames, first + 1):
            file.append(number, positions)
        file.finish()
        return file.size


@pytest.mark.parametrize("suffix", MANY)
def test_frames_come_back_with_all_names(suffix, peptide, frames, tmp_path):
    path = tmp_path / f"out{suffix}"
    written(path, Content(peptide, 4), frames)
    found = np.concatenate(list(trajectory(path)))
    assert found.shape == frames.shape
    assert np.abs(found - frames).max() < DIGITS[suffix]
    if suffix in (".pdb", ".cif"):
        labels = read_structure(path, 3).labels
        for name in ("names", "elements", "residue_names", "residue_numbers", "insertion_codes", "chains"):
            assert (getattr(labels, name) == getattr(peptide.labels, name)).all()


@pytest.mark.parametrize("suffix", MANY)
def test_a_file_that_was_cut_is_gone_on_with(suffix, peptide, frames, tmp_path):
    whole, broken = tmp_path / f"whole{suffix}", tmp_path / f"broken{suffix}"
    content = Content(peptide, 4)
    written(whole, content, frames)
    with ConformationFile(broken, layout_of(broken, content), None) as file:
        file.append(1, frames[0])
        file.append(2, frames[1])
        size = file.size
        file.append(3, frames[0])  # what a journal did not hear of
    written(broken, content, frames[2:], size, 2)
    assert broken.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("suffix", MANY)
def test_a_conformation_that_failed_is_nan_or_left_out(suffix, peptide, frames, tmp_path):
    path = tmp_path / f"out{suffix}"
    written(path, Content(peptide, 3), [frames[0], None, frames[2]])
    found = np.concatenate(list(trajectory(path)))
    if suffix in (".pdb", ".cif", ".xtc", ".xyz"):
        assert len(found) == 2
        assert found[1] == pytest.approx(frames[2], abs=6e-3)
    else:
        assert len(found) == 3
        assert np.isnan(found[1]).all()


def test_netcdf_is_what_netcdf4_and_amber_read(peptide, frames, tmp_path):
    path = tmp_path / "out.nc"
    written(path, Content(peptide, 4), frames)
    with netCDF4.Dataset(path) as file:
        assert file.Conventions == "AMBER"
        assert file.variables["coordinates"].units == "angstrom"
        assert b"".join(file.variables["spatial"][:]) == b"xyz"
        assert np.abs(file.variables["coordinates"][:] - frames).max() < 4e-6


@pytest.mark.parametrize(("suffix", "digits"), [(".rst7", 5.1e-8), (".inpcrd", 5.1e-8), (".ncrst", 0)])
def test_a_restart_of_amber_holds_one_structure(suffix, digits, peptide, tmp_path):
    topology, path = tmp_path / "peptide.parm7", tmp_path / f"min{suffix}"
    topology.write_text(prmtop_text(peptide))
    peptide.save(path)
    assert np.abs(pele_ocl.read(topology, coordinates=path).positions - peptide.positions).max() <= digits
    numbers, found = pele_ocl.read_conformations(path, atoms=peptide)
    assert (numbers, found.shape) == ([1], (1, 96, 3))
    read = AmberInpcrdFile(str(path)).getPositions(asNumpy=True).value_in_unit(angstrom)
    assert np.abs(read - peptide.positions).max() <= max(digits, 1e-12)
    if suffix == ".ncrst":
        with netCDF4.Dataset(path) as file:
            assert b"".join(file["spatial"][:]) == b"xyz"
            assert (file["time"][...], file["time"].units) == (0, "picosecond")
    with pytest.raises(FormatError, match=r"a \.\w+ file contains one structure; write 2 structures as \.nc"):
        pele_ocl.write_conformations(tmp_path / f"two{suffix}", peptide, [peptide.positions] * 2)
    with pytest.raises(FormatError, match="beyond 9,999 A") if digits else nullcontext():
        pele_ocl.write_conformations(path, peptide, peptide.positions + 1e4)


def test_gemmi_reads_the_mmcif(peptide, frames, tmp_path):
    path = tmp_path / "out.cif"
    written(path, Content(peptide, 2), frames[:2])
    structure = gemmi.read_structure(str(path))
    assert len(structure) == 2
    assert [residue.name for residue in structure[1]["A"]] == [r.name for r in peptide.labels.residues]


def test_b_factors_and_occupancies_are_kept(tmp_path):
    lines = [
        f"{line[:54]}{0.5:6.2f}{10 + int(line[22:26]):6.2f}{line[66:]}"
        for line in HEXAPEPTIDE.read_text().splitlines()
        if line.startswith("ATOM")
    ]
    source = tmp_path / "in.pdb"
    source.write_text("\n".join([*lines, "END\n"]))
    atoms = pele_ocl.read(source)
    known = read_b_factors(read_file(source), atoms.labels)
    for suffix in (".pdb", ".cif"):
        path = tmp_path / f"out{suffix}"
        write_conformation(path, Content(atoms, b_factors=known))
        again = read_b_factors(read_file(path), atoms.labels)
        assert again == pytest.approx(np.stack([np.full(96, 0.5), 10 + atoms.labels.residue_numbers], axis=1))
    fewer = tmp_path / "heavy.pdb"
    fewer.write_text("\n".join([*(line for line in lines if line[76:78] != " H"), "END\n"]))
    assert read_b_factors(read_file(fewer), atoms.labels) == pytest.approx(known)  # hydrogens as their residue
    several = tmp_path / "several.cif"
    several.write_text("data_sequences\n_entry.id x\n" + (tmp_path / "out.cif").read_text())
    assert read_b_factors(read_file(several), atoms.labels) == pytest.approx(known)  # of the first block with atoms


def test_two_chains_of_one_letter_keep_their_own_b_factors(tmp_path):
    lines = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith("ATOM")]
    first = [f"{line[:60]}{30:6.2f}{line[66:]}" for line in lines]
    second = [f"{line[:30]}{float(line[30:38]) + 40:8.3f}{line[38:60]}{90:6.2f}{line[66:]}" for line in lines]
    source = tmp_path / "twice.pdb"
    source.write_text("\n".join([*first, "TER", *second, "TER", "END\n"]))
    atoms = pele_ocl.read(source)
    known = read_b_factors(read_file(source), atoms.labels)
    assert known[:, 1].tolist() == [30] * 96 + [90] * 96
    write_conformation(tmp_path / "out.pdb", Content(atoms, b_factors=known))
    assert read_b_factors(read_file(tmp_path / "out.pdb"), atoms.labels) == pytest.approx(known)


def test_of_alternate_locations_the_one_that_is_read_gives_the_b_factor(tmp_path):
    """Better occupied locations give the B-factor, even if they come second."""
    columns = "ATOM  {:5d}  {:3s}{:1s}GLY A   1    {:8.3f}{:8.3f}{:8.3f}{:6.2f}{:6.2f}           {}"
    atoms = [("N", " ", 0, 1.0, 10), ("CA", "A", 1.4, 0.4, 11), ("CA", "B", 1.5, 0.6, 22), ("C", " ", 2.9, 1.0, 12)]
    lines = [columns.format(k, name, mark, x, 0, 0, occ, b, name[0]) for k, (name, mark, x, occ, b) in enumerate(atoms)]
    (tmp_path / "two.pdb").write_text("\n".join([*lines, "END", ""]))
    source = read_file(tmp_path / "two.pdb")
    structure = read_structure(source)
    assert structure.positions[1, 0] == 1.5
    assert read_b_factors(source, structure.labels) == pytest.approx(np.array([[1, 10], [0.6, 22], [1, 12]]))


def test_from_python(peptide, frames, tmp_path):
    for suffix in MANY:
        pele_ocl.write_conformations(tmp_path / f"all{suffix}", peptide, frames)
        written(tmp_path / f"same{suffix}", Content(peptide, len(frames)), frames)
        assert (tmp_path / f"all{suffix}").read_bytes() == (tmp_path / f"same{suffix}").read_bytes()
        numbers, found = pele_ocl.read_conformations(tmp_path / f"all{suffix}", atoms=peptide)
        assert numbers == [1, 2, 3, 4]
        assert np.abs(found - frames).max() < DIGITS[suffix]
    pele_ocl.write_conformations(tmp_path / "one.pdb", peptide)
    np.testing.assert_allclose(pele_ocl.read(tmp_path / "one.pdb").positions, peptide.positions, atol=1e-3)
    with pytest.raises(InputError, match=r"have shape \(3,\); expected \(96, 3\), or \(m, 96, 3\)"):
        pele_ocl.write_conformations(tmp_path / "no.pdb", peptide, [1, 2, 3])


def test_refusals(peptide, frames, tmp_path):
    with pytest.raises(FormatError, match=r"\.h5, \.nc, \.dcd, \.xtc, \.xyz, \.rst7, \.inpcrd or \.ncrst"):
        write_conformation(tmp_path / "out.gro", Content(peptide))
    with pytest.raises(FormatError, match="does not fit into a PDB file"):
        write_conformation(tmp_path / "out.pdb", Content(peptide.moved(peptide.positions + 1e4)))
    assert not list(tmp_path.iterdir())
    nameless = Atoms(np.zeros((1, 3)), np.zeros(1))
    with pytest.raises(FormatError, match="its atoms have no names"):
        write_conformation(tmp_path / "out.cif", Content(nameless))
    write_conformation(tmp_path / "out.nc", Content(nameless))
    with pytest.raises(FormatError, match="was changed after the interrupted run"):
        ConformationFile(tmp_path / "other.pdb", layout_of("other.pdb", Content(peptide, 4)), 100)


def test_positions_stand_last_whatever_the_attributes(peptide):
    """HDF5 keeps texts in heaps of 4 KiB; none may come after the positions, wherever one ends."""
    heads = [
        CONFORMATION_FORMATS[".h5"](Content(peptide, attributes={"command": n * "x"})).head()
        for n in range(0, 4200, 16)
    ]
    assert len({len(head) for head in heads}) > 1  # a heap was full among them
