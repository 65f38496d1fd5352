"""Terms of an energy, and the kernels of those outside the passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Ints
from ..common.arguments import described
from ..common.errors import InputError
from ..pairs import nonbonded_pairs
from .bonded import BondedTerms, bonded_names
from .options import Options
from .result import ALL_TERMS, GROUPS, PASS_TERMS, TERMS
from .terms import LennardJonesCorrections, Term

if TYPE_CHECKING:
    from ..gb_models.solvent_model import SolventModel
    from .terms import TermKernels

GB_TERMS = ("gb_pair", "gb_self", "nonpolar")  # those that depend on Born radii


@dataclass(frozen=True, eq=False)
class TermSet:
    """Terms of an energy.

    names : names of all terms, in the order of results
    excluded : (k, 2) pairs without Lennard-Jones and Coulomb energy in the passes
    further, grouped : kernels of terms, by the part of the results to which they write energies. They run after the
        passes; bonded terms, which are grouped, run first on GPUs and place the tiles
    """

    names: tuple[str, ...]
    excluded: Ints
    further: tuple[TermKernels, ...]
    grouped: tuple[TermKernels, ...]

    @classmethod
    def of(
        cls, atoms: Atoms, options: Options, model: SolventModel, only_terms: Sequence[str] | None,
        terms: Sequence[Term],
    ) -> TermSet:  # fmt: skip
        """Choose the terms of a molecule. only_terms : names of the force field's terms to compute, None for all

        Raises InputError for unknown names, for further terms that do not fit the atoms, and for missing parameters.
        """
        there = terms_there(atoms, model, options.one_four == "scale")
        names = there if only_terms is None else _chosen(only_terms, there)
        atoms.require(_parameters(names, model), "the energy")
        pairs = nonbonded_pairs(_without_wells(atoms) if atoms.lj_sigma is None else atoms)
        behind = tuple(name for name in names if name not in PASS_TERMS)
        one_four = pairs.one_four if set(behind) & set(TERMS) else None
        bonded = BondedTerms(atoms, one_four, model, behind)
        checked = _checked_terms(terms, atoms, ALL_TERMS)
        corrected = LennardJonesCorrections(atoms, options.cutoff) if "lennard_jones" in names else None
        own: TermKernels | None = None
        if model.gb_model.own_dielectrics:
            from .terms import DielectricCorrections

            own = DielectricCorrections(atoms, model, names, options.cutoff)
        term_kernels = (*(kernels for kernels in (bonded, corrected, own) if kernels), *checked)
        return cls(
            (*names, *(name for term in checked for name in term.names if name not in names)),
            pairs.excluded,
            tuple(kernels for kernels in term_kernels if not kernels.grouped),
            tuple(kernels for kernels in term_kernels if kernels.grouped),
        )

    @property
    def term_kernels(self) -> tuple[TermKernels, ...]:
        """All kernels outside the passes, in order."""
        return (*self.grouped, *self.further)

    @cached_property
    def has_gb(self) -> bool:
        return _has_gb(self.names)

    def columns(self, names: Sequence[str]) -> NDArray[np.intp]:
        """Columns of the named terms among all; terms that are not computed are skipped."""
        return np.array([self.names.index(name) for name in names if name in self.names], np.intp)

    def within(self, atoms: NDArray[np.bool_], inside: bool = True) -> TermSet:
        """Keep only bonded terms whose atoms are all in the mask (n,), or all others."""
        bonded = (kernels.within(atoms, inside) for kernels in self.grouped if isinstance(kernels, BondedTerms))
        other = (kernels for kernels in self.grouped if not isinstance(kernels, BondedTerms))
        further = self.further if not inside else ()
        return replace(self, grouped=(*filter(None, bonded), *(() if inside else other)), further=further)

    def for_passes(self, atoms: Atoms, model: SolventModel) -> tuple[Atoms, SolventModel]:
        """Return atoms and model for the passes, without parameters of terms that are not computed."""
        if "lennard_jones" not in self.names:
            atoms = _without_wells(atoms)
        if "nonpolar" not in self.names:
            model = replace(model, surface="none", surface_tension=0.0)
        return atoms, model if self.has_gb else model.in_vacuum()


def terms_there(atoms: Atoms, model: SolventModel, with_one_four: bool = True) -> tuple[str, ...]:
    """Names of the terms that atoms have in a model, in the order of results.

    There are no GB and nonpolar terms without solvent, and no nonpolar term with surface="none".
    """
    missing = set(GB_TERMS) if model.gb_model.vacuum else {"nonpolar"} if model.surface == "none" else set()
    of_pairs = (name for name in TERMS if with_one_four or not name.endswith("_14"))
    return (*bonded_names(atoms), *(name for name in of_pairs if name not in missing))


def has_radii(names: Sequence[str], model: SolventModel) -> bool:
    """Return whether any of these terms depends on GB radii; an LCPO surface does not."""
    return bool({"gb_pair", "gb_self", "gb_pair" if model.surface == "lcpo" else "nonpolar"} & set(names))


def summary(names: Sequence[str], atoms: Atoms, model: SolventModel) -> str:
    """Describe an energy of these terms: "all terms", "nonbonded + solvent", or the names of the terms."""
    if not set(terms_there(atoms, model, with_one_four=False)) <= set(names):
        return ", ".join(names)
    in_vacuum = model.gb_model.vacuum
    if atoms.bonded is None:
        whole = "nonbonded, in vacuum" if in_vacuum else "nonbonded + solvent"
    else:
        whole = "all terms, in vacuum" if in_vacuum else "all terms"
    return whole if set(terms_there(atoms, model)) <= set(names) else f"{whole}, without 1-4 pairs"


def _has_gb(names: Sequence[str]) -> bool:
    return any(name in names for name in GB_TERMS)


def _parameters(names: Sequence[str], model: SolventModel) -> tuple[str, ...]:
    """Parameters of atoms that the terms need, besides `bonded`."""
    lennard_jones = ("lj_sigma", "lj_epsilon") if {"lennard_jones", "lennard_jones_14"} & set(names) else ()
    return ("charges", *lennard_jones, *(model.gb_model.parameters if _has_gb(names) else ()))


def _without_wells(atoms: Atoms) -> Atoms:
    """Set the Lennard-Jones parameters, which may be missing, so that the energy is 0."""
    return replace(atoms, lj_sigma=np.ones(len(atoms)), lj_epsilon=np.zeros(len(atoms)))


def _chosen(names: Sequence[str], there: tuple[str, ...]) -> tuple[str, ...]:
    """Sort names in the order of results. Raises InputError for unknown names."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InputError(f"only_terms are {described(names)}; expected a list of names, such as ['bond', 'angle']")
    known = f"the terms of these atoms are {', '.join(there)}; {', '.join(GROUPS)} are groups of terms of them"
    chosen = set[str]()
    for name in names:
        of_name = set(GROUPS.get(name, (name,))) & set(there) if isinstance(name, str) else None
        if not of_name:
            raise InputError(f"unknown term {described(name)}; {known}")
        chosen |= of_name
    if not chosen:
        raise InputError(f"only_terms name no term; {known}")
    return tuple(name for name in there if name in chosen)


def _checked_terms(terms: Sequence[Term], atoms: Atoms, taken: Sequence[str]) -> tuple[Term, ...]:
    """Check terms. Raises InputError for other objects, terms that do not fit the atoms, and repeated names."""
    if isinstance(terms, Term):
        terms = (terms,)
    if isinstance(terms, str):
        terms = [terms]
    if not isinstance(terms, Sequence):
        raise InputError(f"terms are {described(terms)}; expected a list of them, such as [PositionalRestraint(10.0)]")
    names = list(taken)
    for term in terms:
        if not isinstance(term, Term):
            other = "; use only_terms for terms of the force field" if isinstance(term, str) else ""
            raise InputError(
                f"terms contain {type(term).__name__}; expected a Term, such as PositionalRestraint(10.0){other}"
            )
        twice = [name for name in term.names if name in names]
        if twice and not term.merges_names:
            raise InputError(f"there are two terms named {twice[0]}; give one of them a different name")
        if nameless := [name for name in term.names if not isinstance(name, str) or not name.strip()]:
            raise InputError(f"the name of a {type(term).__name__} is {described(nameless[0])}; expected a text")
        names += term.names
        term.check(atoms)
    return tuple(terms)
