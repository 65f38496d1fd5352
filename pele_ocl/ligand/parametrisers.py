"""Programs and files that give a molecule parameters: one table by name, so that the next one is one file."""

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

# Modules of this room with a Parametriser's functions, in the order in which they are asked.
_MODULES = ("given", "antechamber", "openff")


class Molecule(Protocol):
    """Part of a Ligand that parametrisers go by."""

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
    """A module that gives parameters by a program, kept on disk, or by a user's file.

    KEEPS : whether what it computes is kept; CHARGES : its methods of charges, with what they are for people
    """

    KEEPS: bool
    CHARGES: Mapping[str, str]

    def knows(self, forcefield: str) -> bool:
        """Return whether it has a force field of this name."""

    def check(self, forcefield: str, charges: str) -> None:
        """Raise InputError for charges that do not go with a force field."""

    def version(self) -> str:
        """Version of the program, on which what is kept depends. Raises InputError if it is not installed."""

    def topology_of(self, ligand: Molecule, forcefield: str, charges: str, limit: float | None = None) -> bytes:
        """Topology (prmtop) of a ligand in the order of its atoms. Raises InputError or ParameterError."""

    def atoms_of(self, ligand: Molecule, forcefield: str) -> Atoms:
        """Atoms with the parameters of a user's file, in the ligand's order, at its positions; if nothing is kept."""

    def told(self, forcefield: str, charges: str, topology: bytes) -> tuple[str, str]:
        """Words for the parameters and for the charges, for people."""


def parametriser_of(forcefield: str, what: str = "forcefield") -> Parametriser:
    """Find the parametriser of a force field; what : the keyword, for messages

    Raises InputError for a name that none knows.
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
    """Raise InputError for a force field that no parametriser knows, and for charges that it has not.

    prefix : of the keywords, for messages
    """
    found = parametriser_of(forcefield, f"{prefix}forcefield")
    arguments.choice(f"{prefix}charges", charges, CHARGES)
    found.check(forcefield, charges)
