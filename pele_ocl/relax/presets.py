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
    """Way in which models are relaxed: in vacuum with Amber99SB, bonds to hydrogen held, heavy atoms restrained.

    stiffness : kcal/mol/A^2, of 1/2 k x^2, as these programs write their restraints
    tolerance : rms gradient at which a round ends, kcal/mol/nm
    max_iterations : of a round
    rounds : at most; each but the first frees the residues that had violations
    iterations_in_all : of a model, in all its rounds; most models need some tens
    name : for records
    """

    stiffness: float = 10.0
    tolerance: float = 2.39
    max_iterations: int = 10_000
    rounds: int = 3
    iterations_in_all: int = 2_000
    name: str = "own"

    @property
    def force_constant(self) -> float:
        """Whole factor of x^2, as PositionalRestraint takes it, kcal/mol/A^2."""
        return self.stiffness / 2

    @property
    def rms_gradient(self) -> float:
        """Tolerance, kcal/mol/A."""
        return self.tolerance * NM_PER_A


# AlphaFold sets no limit of iterations, and so may never end: iterations_in_all ends what is no structure.
PROTOCOLS: Mapping[str, Protocol] = {
    "alphafold": Protocol(name="alphafold"), "colabfold": Protocol(max_iterations=2_000, name="colabfold"),
}  # fmt: skip


def protocol_of(protocol: object) -> Protocol:
    """Return the protocol of a name, or the one that is given. Raises InputError for other values."""
    if isinstance(protocol, Protocol):
        return protocol
    if not isinstance(protocol, str) or protocol not in PROTOCOLS:
        raise InputError(f"there is no protocol {protocol!r}; choose {' or '.join(PROTOCOLS)}")
    return PROTOCOLS[protocol]
