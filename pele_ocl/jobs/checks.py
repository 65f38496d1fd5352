"""Findings of a job about its inputs, which are reported as notes or, if the job is strict, as errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..atoms import Atoms
from ..common.errors import InputError
from ..common.notes import note
from ..contract import Finding, of_energy, of_structure, require
from ..reading import MoleculeRead


class Checks:
    """Collect and report findings about an input.

    name : name of the file, which begins each note; strict : True to reject findings that otherwise only cause notes
    heard : False to omit findings from the notes in JSON, which also contains a list of findings
    """

    def __init__(self, name: object, strict: bool = False, heard: bool = True) -> None:
        self.name, self.strict, self.findings, self._heard = str(name) or "the atoms", strict, list[Finding](), heard

    def add(self, *findings: Finding) -> None:
        """Add findings and report them on stderr. Raises InputError for a refused finding; if strict, for any."""
        named = [replace(finding, text=f"{self.name}: {finding.text}") for finding in findings]
        require(named, self.strict)
        for finding in named:
            note(f"Note: {finding.text}", self._heard)
        self.findings += findings

    def structure(self, molecule: MoleculeRead) -> MoleculeRead:
        """Check a structure before its energy is computed, and return it without refused models.

        Raises InputError if the structure, or each of its models, is refused.
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
        """Report all findings about a structure without refusing it, as for a potential map."""
        self.add(*(replace(finding, action="noted") for finding in of_structure(atoms, "noted")))

    def told(self, findings: Sequence[Finding]) -> None:
        """Add findings that were already reported. Raises InputError for any finding if the job is strict."""
        require(findings, self.strict)
        self.findings += findings

    def of_model(self, number: int, findings: Sequence[Finding]) -> str | None:
        """Report the findings about one of several models, or return the reason if it is refused."""
        try:
            require(findings, self.strict)
        except InputError as error:
            return str(error)
        self.add(*(replace(finding, text=f"model {number}: {finding.text}") for finding in findings))
        return None

    def of_model_energy(self, number: int, atoms: Atoms, energy: Mapping[str, float]) -> str | None:
        """Check the energy of one of several models. Returns the reason if it is refused, else None."""
        return self.of_model(number, of_energy(atoms, energy, atoms.positions))

    def energy(self, atoms: Atoms, energy: Mapping[str, float], is_mean: bool = False) -> None:
        """Check energy terms at the positions of the atoms. is_mean : whether they are a mean over frames"""
        self.add(*of_energy(atoms, energy, None if is_mean else atoms.positions))

    def as_json(self) -> list[dict[str, object]]:
        """Return all findings in JSON form."""
        return [finding.as_json() for finding in self.findings]
