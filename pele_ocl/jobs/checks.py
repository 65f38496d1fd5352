"""The contract of inputs in a job: findings are told as they come, and refused where the job is strict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..atoms import Atoms
from ..contract import Action, Finding, of_energy, of_structure, require
from .notes import note
from .reading import Molecule


class Checks:
    """The findings about what is computed, in their order.

    name : of the file, which is told with each; strict : whether what is noted otherwise is refused
    """

    def __init__(self, name: object, strict: bool = False) -> None:
        self.name, self.strict, self.findings = str(name), strict, list[Finding]()

    def add(self, *findings: Finding) -> None:
        """Tell further findings on stderr. Raises InputError for one that is refused; with --strict, or noted."""
        named = [replace(finding, text=f"{self.name}: {finding.text}") for finding in findings]
        require(named, self.strict)
        for finding in named:
            note(f"Note: {finding.text}")
        self.findings += findings

    def structure(self, molecule: Molecule, torn: Action = "refused") -> None:
        """Look at a structure, or at all its models, before energies are computed."""
        if molecule.conformations is None:
            self.add(*of_structure(molecule.atoms, torn))
            return
        for number, atoms in zip(molecule.numbers, molecule.models(), strict=True):
            self.add(*(_of_model(finding, number) for finding in of_structure(atoms, torn)))

    def models(self, molecule: Molecule) -> dict[int, str]:
        """Look at each model before energies of all are computed; give why models fail, by their place from 0.

        Raises InputError for the first of them with --strict.
        """
        failed = dict[int, str]()
        for place, (number, atoms) in enumerate(zip(molecule.numbers, molecule.models(), strict=True)):
            found = of_structure(atoms)
            refused = [] if self.strict else [finding.text for finding in found if finding.action == "refused"]
            if refused:
                failed[place] = refused[0]
            else:
                self.add(*(_of_model(finding, number) for finding in found))
        return failed

    def energy(
        self, atoms: Atoms, energy: Mapping[str, float], model: int | None = None, is_mean: bool = False
    ) -> None:  # fmt: skip
        """Look at the terms of an energy at the atoms' own positions.

        model : the number of one of several; is_mean : whether it is the mean of many frames
        """
        found = of_energy(atoms, energy, None if is_mean else atoms.positions)
        self.add(*(found if model is None else (_of_model(finding, model) for finding in found)))

    def as_json(self) -> list[dict[str, object]]:
        """All findings for a report in JSON."""
        return [finding.as_json() for finding in self.findings]


def _of_model(finding: Finding, number: int) -> Finding:
    return replace(finding, text=f"model {number}: {finding.text}")
