"""Registry of the programs and file formats that assign parameters; each is implemented in one module."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from ..atoms import Atoms, Floats, Ints, Labels
from ..common import arguments
from ..common.errors import InputError
from .settings import ATOM_TYPES, CHARGES

if TYPE_CHECKING:
    from rdkit.Chem import Mol

# Modules of this package that implement Parametriser, in the order in which they are tried.
_MODULES = ("given", "antechamber", "openff")


class Molecule(Protocol):
    """Interface of Ligand that parametrisers use."""

    @property
    def molecule(self) -> Mol: ...
    @property
    def source(self) -> str: ...
    @property
    def residue_name(self) -> str: ...
    @property
    def charge(self) -> int: ...
    @property
    def elements(self) -> tuple[str, ...]: ...
    @property
    def bonds(self) -> Ints: ...
    @property
    def positions(self) -> Floats: ...
    @property
    def labels(self) -> Labels: ...


class Parametriser(Protocol):
    """Module that assigns parameters by a program, with results cached on disk, or from a user's file.

    KEEPS : whether results are cached; CHARGES : display names of its charge methods
    """

    KEEPS: bool
    CHARGES: Mapping[str, str]

    def knows(self, forcefield: str) -> bool:
        """Return whether the module supports this force field."""

    def check(self, forcefield: str, charges: str) -> None:
        """Raise InputError for charges that the force field does not support."""

    def version(self) -> str:
        """Return the version of the program, used as cache key. Raises InputError if it is not installed."""

    def topology_of(self, ligand: Molecule, forcefield: str, charges: str, limit: float | None = None) -> bytes:
        """Compute the topology (prmtop) of a ligand, in its order of atoms. Raises InputError or ParameterError."""

    def atoms_of(self, ligand: Molecule, forcefield: str) -> Atoms:
        """Return atoms with parameters, in the ligand's order and at its positions; only without caching."""

    def told(self, forcefield: str, charges: str, topology: bytes) -> tuple[str, str]:
        """Return display names of force field and charges."""


def parametriser_of(forcefield: str, what: str = "forcefield") -> Parametriser:
    """Return the parametriser of a force field. what : keyword, for messages

    Raises InputError for an unknown force field.
    """
    name = arguments.text(what, forcefield)
    for module in _MODULES:
        found = cast(Parametriser, import_module(f"{__package__}.{module}"))
        if found.knows(name):
            return found
    raise InputError(
        f"{what} is {name!r}; choose {' or '.join(map(repr, ATOM_TYPES))}, one of OpenFF such as 'openff-2.2.1', or "
        "a file with the molecule's parameters: .xml of OpenMM, .prmtop, or a PELE template"
    )


def check_choice(forcefield: str, charges: str, prefix: str = "") -> None:
    """Raise InputError for an unknown force field, and for charges that it does not support.

    prefix : prefix of the keywords, for messages
    """
    found = parametriser_of(forcefield, f"{prefix}forcefield")
    arguments.choice(f"{prefix}charges", charges, CHARGES)
    found.check(forcefield, charges)
