"""Write molecules with parameters for OpenMM, AMBER and PELE, and as molecule files."""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from ..atoms import Atoms
from ..atoms.torsions import Flexible, flexible_ligand
from ..common import arguments
from ..common.arguments import file_path
from ..common.errors import FormatError, InputError
from ..common.writing import replacing
from ..forcefield.openmm.writing import xml_text
from ..forcefield.template_writing import obc_rows, padded, template_text
from ..formats import write_conformations
from ..formats.amber.writing import prmtop_text, rst7_text
from ..ligand import Ligand
from ..ligand.remarks import LigandRemark

# Formats of the files in a molecule's folder.
FORMATS = ("xml", "amber", "pele", "sdf", "pdb")
SUFFIXES = (".xml", ".prmtop", ".parm7", ".rst7", ".sdf", ".pdb", ".cif")
_RESOLUTION = 30.0  # degrees, angle step of the ligand's rotamers
_PELE_FIELD = "AMBER99sb"  # folder of PELE's Templates for GAFF parameters


@dataclass(frozen=True)
class Target:
    """Output files.

    path : file or folder, "" for none; is_file : whether it is the file of a single molecule
    formats : formats to write to a folder, from FORMATS
    """

    path: str = ""
    is_file: bool = False
    formats: tuple[str, ...] = FORMATS

    @classmethod
    def of(cls, output: str | PathLike[str] | None, formats: Iterable[str]) -> Target:
        """Determine the output files. formats : by default all

        Raises InputError for unknown formats and suffixes.
        """
        chosen = tuple(name.strip() for each in arguments.texts("formats", formats) for name in each.split(","))
        for each in chosen:
            arguments.choice("formats", each, FORMATS)
        if output is None:
            return cls()
        path = file_path(output, "output")
        is_file = path.suffix.lower() in SUFFIXES and not path.is_dir() and not str(output).endswith("/")
        if path.suffix and not is_file and not path.is_dir() and not str(output).endswith("/"):
            raise FormatError(
                f"{output}: files of a molecule with parameters end in {', '.join(SUFFIXES)}; or give a folder"
            )
        if is_file and chosen:
            raise InputError("`formats` apply to a folder; leave them out, or give a folder as `output`")
        return cls(str(output), is_file, chosen or FORMATS)

    def files(self, name: str, residue: str) -> tuple[Path, ...]:
        """Return the paths of a molecule's files. name : name of its folder; residue : residue name"""
        if not self.path:
            return ()
        if self.is_file:
            return (Path(self.path),)
        folder = Path(self.path) / name
        by_format = {
            "xml": (folder / f"{name}.xml",),
            "amber": (folder / f"{name}.prmtop", folder / f"{name}.rst7"),
            "pele": _pele_paths(folder / "DataLocal", residue),
            "sdf": (folder / f"{name}.sdf",),
            "pdb": (folder / f"{name}.pdb",),
        }
        return tuple(path for form in self.formats for path in by_format[form])


def _pele_paths(data: Path, residue: str) -> tuple[Path, Path, Path]:
    """Return the paths of a ligand's PELE files in a folder DataLocal: template, OBC parameters and rotamers."""
    return (
        data / "Templates" / _PELE_FIELD / "HeteroAtoms" / f"{residue.lower()}z",
        data / "OBC" / f"solventParamsHCTOBC_{residue}.txt",
        data / "LigandRotamerLibs" / f"{residue}.rot.assign",
    )


def pele_texts(atoms: Atoms, data: Path) -> dict[Path, str]:
    """Return the PELE files of a ligand, by path in the folder DataLocal. atoms : atoms of a single residue"""
    assert atoms.labels is not None
    texts = (_template(atoms), obc_rows(atoms), rotamers_text(atoms))
    return dict(zip(_pele_paths(data, str(atoms.labels.residue_names[0])), texts, strict=True))


def write_ligand(
    paths: Iterable[Path], ligand: Ligand, atoms: Atoms, inputs: Iterable[Path] = (), remark: LigandRemark | None = None
) -> None:
    """Write files of a molecule, each atomically, with formats given by their names.

    remark : remark for PDB files
    """
    texts: Mapping[str, Callable[[], str]] = {
        ".xml": lambda: xml_text(atoms, _note(atoms)),
        ".prmtop": lambda: prmtop_text(atoms.with_radii("mbondi2"), _note(atoms)),
        ".rst7": lambda: rst7_text(atoms.positions, ligand.name),
        ".sdf": lambda: sdf_text(ligand, atoms),
        ".assign": lambda: rotamers_text(atoms),
        ".txt": lambda: obc_rows(atoms),
        "": lambda: _template(atoms),
    }
    texts = {**texts, ".parm7": texts[".prmtop"]}
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix.lower() in (".pdb", ".cif"):
            write_structure(path, atoms, len(atoms), inputs, remark)
            continue
        text = texts[path.suffix.lower()]()
        with replacing(path, inputs) as temporary:
            temporary.write_text(text, encoding="utf-8")


def write_complex(stem: Path, atoms: Atoms, n_bonded: int, remark: LigandRemark | None) -> Path:
    """Write a complex to NAME.pdb and return the path; parameters as in `write_structure`."""
    path = stem.with_name(f"{stem.name}.pdb")
    write_structure(path, atoms, n_bonded, remark=remark)
    return path


def write_amber(stem: Path, atoms: Atoms, title: str) -> tuple[Path, Path]:
    """Write an AMBER topology and coordinates, NAME.prmtop and NAME.rst7, and return both paths.

    Raises InputError, without writing, for atoms with terms that the format does not support.
    """
    texts = {
        ".prmtop": prmtop_text(atoms.with_radii("mbondi2"), _note(atoms)), ".rst7": rst7_text(atoms.positions, title),
    }  # fmt: skip
    stem.parent.mkdir(parents=True, exist_ok=True)
    for suffix, text in texts.items():
        with replacing(stem.with_name(stem.name + suffix)) as temporary:
            temporary.write_text(text, encoding="utf-8")
    topology, restart = (stem.with_name(stem.name + suffix) for suffix in texts)
    return topology, restart


def write_structure(
    path: Path, atoms: Atoms, n_bonded: int, inputs: Iterable[Path] = (), remark: LigandRemark | None = None
) -> None:
    """Write atoms as a PDB or mmCIF file; PDB files have CONECT records for the last `n_bonded` atoms.

    remark : remark that defines the molecule
    """
    with replacing(path, inputs) as temporary:
        write_conformations(temporary, atoms)
        if path.suffix.lower() == ".pdb":
            lines = temporary.read_text(encoding="latin-1").splitlines()
            serials = [line[6:11] for line in lines if line.startswith(("ATOM", "HETATM"))]
            near = defaultdict[int, list[int]](list)
            for i, j in atoms.bond_pairs[(atoms.bond_pairs >= len(atoms) - n_bonded).all(axis=1)].tolist():
                near[i].append(j)
                near[j].append(i)
            records = [
                f"CONECT{serials[i]}" + "".join(serials[j] for j in sorted(near[i])[k : k + 4])
                for i in sorted(near)
                for k in range(0, len(near[i]), 4)
            ]
            head = [] if remark is None else remark.lines()
            place = next((k for k, line in enumerate(lines) if line.startswith("END") and line != "ENDMDL"), len(lines))
            temporary.write_text("\n".join([*head, *lines[:place], *records, *lines[place:], ""]), encoding="latin-1")


def _template(atoms: Atoms) -> str:
    return template_text(atoms, _flexible(atoms).core.tolist(), _note(atoms))


def _note(atoms: Atoms) -> str:
    return " ".join(atoms.forcefield.split())[:80]


def sdf_text(ligand: Ligand, atoms: Atoms) -> str:
    """Return a molecule as SDF, with partial charges in the property used by RDKit and OpenFF."""
    from rdkit import Chem

    copied = Chem.Mol(ligand.molecule)
    for name in list(copied.GetPropNames(True, True)):
        copied.ClearProp(name)
    title = " ".join(ligand.name.split())[:80]
    copied.SetProp("_Name", title)
    charges = " ".join(f"{charge:.6f}" for charge in atoms.charges)
    head = str(Chem.MolToMolBlock(copied, kekulize=True))
    return f"{head}> <atom.dprop.PartialCharge>\n{charges}\n\n$$$$\n"


def rotamers_text(atoms: Atoms) -> str:
    """Return the rotatable bonds of a ligand in the format of PELE's LIG.rot.assign."""
    labels = atoms.labels
    assert labels is not None
    lines = [f"rot assign res {labels.residue_names[0]} &"]
    for k, chain in enumerate(_flexible(atoms).side_chains):
        lines += ["     newgrp &"] if k else []
        for torsion in chain.torsions:
            b, c = (padded(str(labels.names[i]), str(labels.elements[i])) for i in torsion.axis)
            lines.append(f"   sidelib FREE{_RESOLUTION:.0f} {b} {c} &")
    return "\n".join(lines) + "\n"


def _flexible(atoms: Atoms) -> Flexible:
    import numpy as np

    return flexible_ligand(atoms, np.arange(len(atoms), dtype=np.int32), _RESOLUTION)


def require_folder(path: str) -> None:
    """Create the output folder. Raises FormatError if it is not writable."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise FormatError(f"{path}: cannot be written to: {os.strerror(error.errno or 0)}") from None
