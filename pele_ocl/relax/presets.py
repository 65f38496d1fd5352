"""Protocols of other programs for relaxing predicted models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..common.errors import InputError
from ..gb_models.solvent_model import SolventModel

NM_PER_A = 0.1
VACUUM = SolventModel(gb="none")


@dataclass(frozen=True)
class Protocol:
    """Protocol of restrained minimization in vacuum with Amber99SB and constrained bonds to hydrogen.

    stiffness : force constant k of the restraints on heavy atoms, 1/2 k x^2, kcal/mol/A^2
    tolerance : rms gradient at convergence, kcal/mol/nm
    max_iterations : maximum number of iterations per round
    rounds : maximum number of rounds; each after the first releases residues that have violations
    iterations_in_all : maximum number of iterations per model in all rounds; most models need less than 100
    name : name in records
    """

    stiffness: float = 10.0
    tolerance: float = 2.39
    max_iterations: int = 10_000
    rounds: int = 3
    iterations_in_all: int = 2_000
    name: str = "own"

    @property
    def force_constant(self) -> float:
        """Force constant in the convention of PositionalRestraint, k x^2, kcal/mol/A^2."""
        return self.stiffness / 2

    @property
    def rms_gradient(self) -> float:
        """Tolerance in kcal/mol/A."""
        return self.tolerance * NM_PER_A


# AlphaFold does not limit iterations, so it may never end; iterations_in_all stops invalid models.
PROTOCOLS: Mapping[str, Protocol] = {
    "alphafold": Protocol(name="alphafold"), "colabfold": Protocol(max_iterations=2_000, name="colabfold"),
}  # fmt: skip


def protocol_of(protocol: object) -> Protocol:
    """Return a protocol by name; a Protocol is returned unchanged. Raises InputError for other values."""
    if isinstance(protocol, Protocol):
        return protocol
    if not isinstance(protocol, str) or protocol not in PROTOCOLS:
        raise InputError(f"unknown protocol {protocol!r}; choose {' or '.join(PROTOCOLS)}")
    return PROTOCOLS[protocol]
