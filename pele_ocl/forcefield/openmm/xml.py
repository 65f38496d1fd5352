"""Force fields from OpenMM XML files: `amber14`, `ff14SB`, `charmm36`, or any file."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from ...atoms import Atoms, Structure
from ...atoms.chemistry import PHOSPHORESIDUES, is_polymer, is_water
from ...atoms.names import residue_names
from ...atoms.radii import gb_set
from ...common.errors import InputError, ParameterError
from ...common.extras import extra
from ...common.textfiles import quoted
from ..matching import LIGAND_WAY, disulphides, has_hydrogens, without_hydrogens
from .names import files_of, names
from .system import atoms_of_system
from .topologies import gap_notes, open_ends, topology_of

if TYPE_CHECKING:
    from openmm import System
    from openmm.app import ForceField as OpenMMForceField
    from openmm.app import Topology
    from openmm.app.topology import Residue

_SCRIPTS = ("Script", "InitializationScript")


def load(name: str, radii: str | None = None, allow_scripts: bool = False) -> XmlFiles:
    """Load force fields by name or XML file, separated by commas: `amber14,ligand.xml`.

    radii : name of a set of GB radii; by default those of the Generalized Born force in the files, or mbondi2
    allow_scripts : True to run Python scripts in files that are not included in OpenMM

    Raises InputError if OpenMM is not installed, for unknown names and files, and for scripts that are not allowed.
    """
    if radii is not None:
        gb_set(radii)
    files = tuple(file for part in name.split(",") for file in _files(part.strip()))
    if not allow_scripts:
        _refuse_scripts(files)
    return XmlFiles(name, files, radii)


@dataclass(frozen=True, eq=False)
class XmlFiles:
    """OpenMM XML files, which assign parameters to structures.

    name : name of the force field, for messages
    files : names of files included in OpenMM, or paths
    set_of_radii : set of GB radii; None for those in the files
    """

    name: str
    files: tuple[str, ...]
    set_of_radii: str | None = None

    def assign(self, structure: Structure) -> Atoms:
        """Assign parameters to all atoms of a structure, which must have all hydrogens.

        Residues are matched by elements and bonds, which are found by distance. A note lists residues that match a
        template with another name. Raises ParameterError for residues without a template.
        """
        if len(structure.labels) == 0:
            raise InputError(f"{structure.source} has no atoms; give a structure with atoms")
        topology = topology_of(structure)
        system = self._system(structure, self._loaded, topology)
        atoms = atoms_of_system(topology, system, structure.positions / 10, self.set_of_radii)
        notes = (
            *structure.notes,
            *gap_notes(structure),
            *atoms.notes,
            *self._renamed(structure, self._loaded, topology),
        )
        return replace(atoms, labels=structure.labels, notes=notes, forcefield=self.name)

    def has(self, name: str) -> bool:
        """Return whether there is a template with this name."""
        return name in self._loaded._templates

    def unmatched(self, structure: Structure) -> list[int]:
        """Return the indices of the residues without a template."""
        return [residue.index for residue in self._loaded.getUnmatchedResidues(topology_of(structure))]

    @cached_property
    def _loaded(self) -> OpenMMForceField:
        try:
            return extra("openmm.app", f"the force field {self.name}").ForceField(*self.files)
        except Exception as error:  # OpenMM raises errors of its XML parser and plain Exceptions
            cause = str(error).rpartition('": ')[2]  # without OpenMM's prefix with the function and the file
            raise InputError(f"the force field {self.name} cannot be read: {quoted(cause)}") from error

    def _system(self, structure: Structure, field: OpenMMForceField, topology: Topology) -> System:
        app = extra("openmm.app", f"the force field {self.name}")
        options = dict(nonbondedMethod=app.NoCutoff, constraints=None, rigidWater=False)
        try:
            return field.createSystem(topology, **options)
        except ValueError as error:
            problem = error
            unmatched = [residue.index for residue in field.getUnmatchedResidues(topology)]
            if unmatched and set(unmatched) <= set(open_ends(structure)):
                # At a gap, use the template of a residue within a chain, although the neighbour is missing.
                halves = {
                    r for pair in disulphides(structure).tolist() for r in structure.labels.residue_index[pair].tolist()
                }
                cystines = {
                    residue: "CYX"
                    for residue in topology.residues()
                    if residue.index in halves and _is_within_chain(residue) and "CYX" in field._templates
                }
                try:
                    return field.createSystem(topology, **options, ignoreExternalBonds=True, residueTemplates=cystines)
                except ValueError as again:
                    problem = again
                    if named := re.search(r"residue (\d+) \(", str(again)):
                        unmatched = [int(named[1])]
            raise ParameterError(self._sentence(structure, unmatched, str(problem))) from error

    def _renamed(self, structure: Structure, field: OpenMMForceField, topology: Topology) -> list[str]:
        """Return a note for each residue name that matched a template with another name."""
        residues = list(topology.residues())
        try:
            taken = [template.name for template in field.getMatchingTemplates(topology)]
        except ValueError:  # OpenMM does not return the names of patched templates, as in CHARMM
            known = {other for name in field._templates for other in residue_names(name)}
            taken = [residue.name if known & set(residue_names(residue.name)) else "" for residue in residues]
        found: dict[tuple[str, str], list[int]] = {}
        for residue, name in zip(residues, taken, strict=True):
            is_plain = len(list(residue.atoms())) == 1 or is_water(residue.name)  # matched by elements
            if not is_plain and not set(residue_names(residue.name)) & set(residue_names(name)):
                found.setdefault((residue.name, name), []).append(residue.index)
        starts = structure.labels.residue_starts
        return [
            f"{structure.labels.residue(int(starts[places[0]]))} was identified as {template or 'another residue'} "
            "by its atoms and bonds, not by its "
            f"name{f' ({len(places) - 1:,} more of this name, too)' if places[1:] else ''}"
            for (_, template), places in found.items()
        ]

    def _sentence(self, structure: Structure, unmatched: list[int], problem: str) -> str:
        """Convert OpenMM's error to a message with the residue in the file."""
        if not unmatched:
            return f"{structure.source}: {self.name} cannot assign parameters: {' '.join(problem.split())}"
        if not has_hydrogens(structure):
            return without_hydrogens(structure.source)
        residue = structure.labels.residues[unmatched[0]].name
        way = "complete it with `pele-ocl prepare`, or give" if is_polymer(residue) else f"{LIGAND_WAY}; or give"
        if residue in PHOSPHORESIDUES:
            way = "use the built-in force field, which obtains AMBER's phosaa10 through tleap, or give"
        hint = re.search(r"\)\.\s*(The set .*?|This might .*?)\.?\s+(For more information|$)", problem, re.DOTALL)
        why = f" ({' '.join(hint[1].split())})" if hint else ""
        more = f" ({len(unmatched) - 1} more also {'fail' if len(unmatched) > 2 else 'fails'})" if unmatched[1:] else ""
        return (
            f"{structure.where(int(structure.labels.residue_starts[unmatched[0]]))}: {self.name} has no residue "
            f"{residue} with these atoms{why}{more}; {way} an XML file that contains it after a comma: "
            f"{self.name},residue.xml"
        )


def _is_within_chain(residue: Residue) -> bool:
    """Return whether a residue has no atoms of an N- or C-terminus."""
    return not {"OXT", "H2", "H3", "2H", "3H", "HN2"} & {atom.name for atom in residue.atoms()}


def _files(name: str) -> tuple[str, ...]:
    """Return the files for a name. Raises InputError for unknown names and missing files."""
    brought = files_of(name)
    if brought:
        return brought
    if not name.lower().endswith(".xml"):
        raise InputError(
            f"unknown force field {quoted(name)}; OpenMM provides {', '.join(names())}; or give an XML file"
        )
    if not Path(name).is_file() and not (_brought() / name).is_file():
        raise InputError(f"{name}: no such file; give the path of an XML file of OpenMM")
    return (name,)


def _brought() -> Path:
    """Return the directory of the files included in OpenMM."""
    return Path(str(extra("openmm.app", "a force field of OpenMM").__file__)).parent / "data"


def _refuse_scripts(files: tuple[str, ...]) -> None:
    """Raise InputError for files, or files they include, with Python code that OpenMM would run.

    Files included in OpenMM are trusted, but files with the same name in the working directory have priority, as in
    OpenMM.
    """
    left, seen = list(files), set[str]()
    while left:
        file = left.pop()
        if file in seen or not Path(file).is_file():
            continue
        seen.add(file)
        try:
            root = ElementTree.parse(file).getroot()
        except (ElementTree.ParseError, OSError, ValueError):
            continue  # OpenMM reports the error
        for kind in _SCRIPTS:
            if root.find(f".//{kind}") is not None:
                raise InputError(
                    f"{file}: contains Python code in <{kind}>, which OpenMM would run; if you trust the "
                    "file, allow it with `allow_scripts=True`"
                )
        included = [each.get("file", "") for each in root.iter("Include")]
        left += [str(folder / name) for name in included for folder in (Path(), Path(file).parent)]
