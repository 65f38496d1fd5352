"""PDB text of a structure file for PDBFixer: the atoms that our readers chose, and the sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..atoms import Structure
from ..formats.mmcif import sequence_records
from ..formats.pdb import is_atom_line
from ..formats.pdb_writing import atom_lines
from ..formats.registry import structure_format
from ..inputfile import InputFile
from ..textfiles import lines


def chosen_text(source: InputFile, structure: Structure) -> str:
    """Write the text for the structure that was read from a file: one model, one alternate location without its mark.

    From a PDB file the file's own lines are taken, less the atoms that were not chosen. The atoms of an mmCIF file are
    written anew, after SEQRES and MODRES records with the author's chains.

    Raises FormatError for names of an mmCIF file that do not fit into a PDB file.
    """
    if structure_format(source).has_pdb_records:
        return "".join(_chosen(lines(source, "PDB"), set(structure.lines.tolist())))
    atoms = atom_lines(structure.labels, structure.positions, str(source))
    return "".join([*sequence_records(source), *atoms, "END\n"])


def _chosen(text: Iterable[str], kept: set[int]) -> Iterator[str]:
    """Yield the lines of a PDB file without the atoms that were not chosen; alternate locations lose their mark."""
    for number, line in enumerate(text, 1):
        if is_atom_line(line) or line.startswith(("ATOM", "HETATM")):
            if number in kept:
                yield f"{line[:16]} {line[17:]}"
        elif not line.startswith(("ANISOU", "MODEL", "ENDMDL", "SIGATM", "SIGUIJ", "END\n", "END ")):
            yield line
