"""Findings of a job about its inputs: told when they come, and refused if the job is strict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..atoms import Atoms
from ..common.errors import InputError
from ..common.notes import note
from ..contract import Finding, of_energy, of_structure, require
from ..reading import MoleculeRead


class Checks:
    """Findings about what is computed, in their order.

    name : of the file, which is told with each; strict : True to refuse what otherwise only causes a note
    heard : False to leave them out of the notes in JSON, which has them as findings, too
    """

    def __init__(self, name: object, strict: bool = False, heard: bool = True) -> None:
        self.name, self.strict, self.findings, self._heard = str(name) or "the atoms", strict, list[Finding](), heard

    def add(self, *findings: Finding) -> None:
        """Tell further findings on stderr. Raises InputError for one that is refused; if strict, or noted."""
        named = [replace(finding, text=f"{self.name}: {finding.text}") for finding in findings]
        require(named, self.strict)
        for finding in named:
            note(f"Note: {finding.text}", self._heard)
        self.findings += findings

    def structure(self, molecule: MoleculeRead) -> MoleculeRead:
        """Look at a structure before its energy is computed, and give it, less models that are refused.

        Raises InputError for a structure that is refused, or if all its models are.
        """
        if molecule.conformations is None:
            self.add(*of_structure(molecule.atoms))
            return molecule
        failed = dict[int, str]()
        for place, atoms in molecule.models():
            reason = self.of_model(molecule.numbers[place], of_structure(atoms))
            failed |= {} if reason is None else {place: reason}
        return molecule.without(failed)

    def noted(self, atoms: Atoms) -> None:
        """Tell all findings about a structure that has no energy to be refused for: a map of it, say."""
        self.add(*(replace(finding, action="noted") for finding in of_structure(atoms, "noted")))

    def told(self, findings: Sequence[Finding]) -> None:
        """Add findings that were reported before. Raises InputError for one that is noted if the job is strict."""
        require(findings, self.strict)
        self.findings += findings

    def of_model(self, number: int, findings: Sequence[Finding]) -> str | None:
        """Tell the findings about one of several models, or give why it is refused."""
        try:
            require(findings, self.strict)
        except InputError as error:
            return str(error)
        self.add(*(replace(finding, text=f"model {number}: {finding.text}") for finding in findings))
        return None

    def of_model_energy(self, number: int, atoms: Atoms, energy: Mapping[str, float]) -> str | None:
        """Tell the findings about the energy of one of several models, or give why it is refused."""
        return self.of_model(number, of_energy(atoms, energy, atoms.positions))

    def energy(self, atoms: Atoms, energy: Mapping[str, float], is_mean: bool = False) -> None:
        """Look at the terms of an energy at the atoms' own positions; is_mean : if it is the mean of many frames"""
        self.add(*of_energy(atoms, energy, None if is_mean else atoms.positions))

    def as_json(self) -> list[dict[str, object]]:
        """All findings for a report in JSON."""
        return [finding.as_json() for finding in self.findings]
