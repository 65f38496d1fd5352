"""Energy terms, and base classes of results for one or many conformations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from operator import index
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .atoms import Atoms, Floats, Labels, Residue
from .common.errors import InputError, no_attribute
from .common.modules import public
from .common.readonly import ReadOnlyArrays
from .report import Column, Framed, Report

if TYPE_CHECKING:
    import pandas

__all__ = ["Residue", "ResidueTerms", "TermBatch", "TermResult", "Terms"]


C = TypeVar("C", bound="_Computed")


@dataclass(frozen=True, eq=False, repr=False)
class Terms(ReadOnlyArrays):
    """Energies by term.

    names : names of the n_terms terms, which are also attributes: `terms.coulomb` has shape (...,)
    values : (..., n_terms) kcal/mol; the leading axes are conformations, atoms or residues

    `terms[index]` indexes the leading axes as in NumPy and returns Terms. `terms["coulomb"]` is a single term, and
    `dict(terms)` contains all by name. `numpy.asarray(terms)` returns `terms.values`, which is read-only, without
    copying. Raises InputError if names and values do not match.

    >>> terms = pele_ocl.energy("data/structures/trialanine.pdb").terms
    >>> terms.names[:3], round(float(terms.bond), 2)
    (('bond', 'angle', 'torsion'), 1.27)
    """

    names: tuple[str, ...]
    values: Floats

    def __post_init__(self) -> None:
        values = np.asarray(self.values, np.float64).view()
        values.flags.writeable = False
        if values.ndim == 0 or values.shape[-1] != len(self.names):
            raise InputError(f"energies have shape {values.shape}; expected (..., {len(self.names)}), one per term")
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "values", values)

    @classmethod
    def of(cls, terms: Mapping[str, ArrayLike]) -> Terms:
        """Create Terms from arrays by name, all of the same shape (...,)."""
        return Terms(tuple(terms), np.stack([np.asarray(values, np.float64) for values in terms.values()], axis=-1))

    @classmethod
    def _unchecked(cls, names: tuple[str, ...], values: Floats) -> Terms:
        """Create Terms without checks. The values must match the names, and must not be modified afterwards."""
        values.flags.writeable = False
        terms = object.__new__(Terms)
        terms.__dict__.update(names=names, values=values)
        return terms

    def __getattr__(self, name: str) -> Floats:
        names = self.__dict__.get("names", ())  # missing during unpickling
        if name not in names:
            raise no_attribute("'Terms' object", name, hint=f"; its terms are {', '.join(names)}")
        term: Floats = self.values[..., names.index(name)]
        return term

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.names})

    def __len__(self) -> int:
        """Return the length of the first axis: the number of conformations, atoms or residues, or of single terms."""
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the names of a single set of terms, like a mapping, or over Terms along the first axis."""
        return iter(self.names) if self.values.ndim == 1 else (self[k] for k in range(len(self)))

    def keys(self) -> tuple[str, ...]:
        """Return the names, for `dict(terms)`."""
        return self.names

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            if index not in self.names:
                raise KeyError(f"unknown term {index!r}; these are {', '.join(self.names)}")
            return getattr(self, index)
        leading = index if isinstance(index, tuple) else (index,)
        return Terms(self.names, self.values[(*leading, slice(None))])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype) if copy else np.asarray(self.values, dtype)

    def __repr__(self) -> str:
        if self.names and self.values.ndim == 1:
            energies = ", ".join(f"{name} {value:,.3f}" for name, value in zip(self.names, self.values, strict=True))
            return f"Terms(total {self.total:,.3f} kcal/mol: {energies})"
        return f"{type(self).__name__}({', '.join(self.names)}; shape {self.values.shape[:-1]}, kcal/mol)"

    def require(self) -> None:
        """Raise InputError if there are no terms."""
        if not self.names:
            raise InputError("energies were not requested")

    @property
    def total(self) -> Floats:
        """Sum of all terms, (...,) kcal/mol. Raises InputError if there are no terms."""
        self.require()
        total: Floats = self.values.sum(axis=-1)
        return total

    def columns(self) -> dict[str, Floats]:
        """Return the terms by name, followed by their "total"; (...,) kcal/mol each.

        Raises InputError if there are no terms.

        >>> columns = pele_ocl.energy("data/structures/trialanine.pdb").terms.columns()
        >>> list(columns)[-1], round(float(columns["total"]), 1)
        ('total', -135.5)
        """
        return {**{name: getattr(self, name) for name in self.names}, "total": self.total}

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the terms and their total as a pandas DataFrame, with a row per conformation, atom or residue.

        Raises InputError for terms with more than two axes, and if pandas is not installed.
        """
        if self.values.ndim > 2:
            raise InputError(f"energies of shape {self.values.shape} are not a table; use those of one conformation")
        columns = {name: Column(np.atleast_1d(of), "kcal/mol") for name, of in self.columns().items()}
        return Report("Energies", {**self._heads(), **columns}).to_dataframe()

    def _heads(self) -> dict[str, Any]:
        """Return columns with the names of rows."""
        return {}

    def by_residue(self, labels: Labels) -> ResidueTerms:
        """Sum over the atoms of each residue: (..., n, n_terms) to (..., n_residues, n_terms)."""
        starts = labels.residue_starts
        sums = [np.add.reduceat(getattr(self, name), starts, axis=-1) for name in self.names]
        return ResidueTerms(self.names, np.stack(sums, axis=-1), labels.residues)


@dataclass(frozen=True, eq=False, repr=False)
class ResidueTerms(Terms):
    """Energies by term and residue: `terms.residues[terms.total.argmin()]` has the lowest energy.

    values : (..., n_residues, n_terms) kcal/mol
    residues : the n_residues residues, in the order of the atoms
    """

    residues: tuple[Residue, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values.shape[-2:-1] != (len(self.residues),):
            raise InputError(f"energies have shape {self.values.shape}; there are {len(self.residues)} residues")

    def _heads(self) -> dict[str, Any]:
        return {"residue": np.array([str(of) for of in self.residues])}


class Made(Protocol):
    """Origin of a result: the file, if any, the job, and findings."""

    def to_json(self) -> dict[str, Any]: ...

    def save(self, path: str | PathLike[str]) -> None: ...

    def text(self, verbose: bool = False, total: float | None = None) -> str: ...

    def physics_lines(self) -> list[str]: ...


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Computed(Framed):
    """Common base of results for one and for many conformations.

    atoms : the molecule
    per_atom : Terms of each atom, with pair energies divided equally; None if not requested
    device, variant, precision : used for the computation
    seconds : time of each step; "total" includes overhead
    made : origin of a result computed from a file; None for Atoms
    how : options of the plan, by name
    """

    atoms: Atoms
    terms: Terms
    per_atom: Terms | None = None
    device: str
    variant: str
    precision: str
    seconds: Mapping[str, float]
    made: Made | None = None
    how: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def _unchecked(cls: type[C], **fields: object) -> C:
        """Create an object from its fields without checks; `made` is None by default.

        This takes half the time of the constructor, which calls a function for each field of a frozen dataclass.
        """
        computed = object.__new__(cls)
        computed.__dict__.update({"made": None, "how": {}, **fields})
        return computed

    _room: ClassVar[str] = ""  # package whose `spec` creates records and files

    @property
    def _origin(self) -> Made:
        found: Made = public(f"{self._room}.spec").recorded(self) if self.made is None else self.made
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the JSON record, without a file name for Atoms (docs/records.md)."""
        return self._origin.to_json()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the result as .h5, .csv or .json, with a row per atom, or per conformation.

        Raises FormatError for another suffix, or a file that cannot be written.
        """
        self._origin.save(path)

    @property
    def energies(self) -> Floats:
        """Energies in the order of `terms.names`, (n_terms,) or, for a batch, (m, n_terms), kcal/mol."""
        return self.terms.values

    def per_residue(self) -> ResidueTerms:
        """Return the terms summed by residue, with residue names.

        Raises InputError if the atoms have no labels, or per-atom energies were not requested.

        >>> result = pele_ocl.energy(pele_ocl.read("data/structures/trialanine.pdb"), per_atom=True)
        >>> shares = result.per_residue()
        >>> len(shares.residues), round(float(shares.total.sum() - result.total), 3)
        (3, 0.0)
        """
        if self.atoms.labels is None:
            raise InputError("energies per residue need atoms with labels; these have none")
        self.terms.require()
        if self.per_atom is None:
            raise InputError("energies per residue need energies per atom; request them with per_atom=True")
        return self.per_atom.by_residue(self.atoms.labels)

    def _facts(self) -> dict[str, Any]:
        """Return size, device, variant and precision, in JSON form."""
        return {
            "n_atoms": len(self.atoms),
            "device": self.device,
            "variant": self.variant,
            "precision": self.precision,
            "forcefield": self.atoms.forcefield,
        }

    def _physics(self) -> list[str]:
        """Return lines with the force field and the solvent; none for results that are not from this package."""
        return self._origin.physics_lines() if self._room else []

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.terms.names})

    def _about(self, size: str, energy: str) -> str:
        return f"{type(self).__name__}({size}, {energy}, {self.variant}, {self.precision})"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TermResult(_Computed):
    """Base class of results: energy of one conformation of n atoms, and how it was computed.

    terms : Terms of shape (n_terms,); `result.coulomb` is the term of that name, kcal/mol
    per_atom : Terms of shape (n, n_terms)
    """

    def __getattr__(self, name: str) -> float:
        return float(_term(self, name))

    def __repr__(self) -> str:
        energy = f"total {self.total:.3f} kcal/mol" if self.terms.names else "no energies"
        return self._about(f"{len(self.atoms):,} atoms", energy)

    def table(self) -> Report:
        """Return a table of the energies by term, kcal/mol."""
        from .report import Column, Report

        energy = self.energy if self.terms.names else {}
        columns = {
            "term": Column(np.array(list(energy), str), names=True),
            "energy": Column(list(energy.values()), "kcal/mol"),
        }
        return Report(f"Energy of {len(self.atoms):,} atoms", columns, self._facts(), about=self._physics())

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return a text report. verbose : include constants and steps; total : total time to report, s"""
        is_timed = self.made is not None or "kernel" in self.seconds
        return self._origin.text(verbose, total) if is_timed else self.table().text()

    @property
    def positions(self) -> Floats:
        """Positions of the atoms, (n, 3) A."""
        return self.atoms.positions

    @property
    def total(self) -> float:
        """Sum of all terms, kcal/mol."""
        return float(self.terms.total)

    @property
    def energy(self) -> dict[str, float]:
        """Terms by name, followed by their "total", kcal/mol."""
        return {name: float(value) for name, value in self.terms.columns().items()}


Result = TypeVar("Result", bound=TermResult)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TermBatch(_Computed, Generic[Result]):
    """Base class of batches: energies of m conformations of n atoms; `batch[i]` is the result of one conformation.

    terms : Terms of shape (m, n_terms); `batch.coulomb` is the term of that name, (m,) kcal/mol
    per_atom : Terms of shape (m, n, n_terms)
    positions : (m, n, 3) A, not copied; errors : error messages of failed conformations, by index from 0
    """

    _of_one: ClassVar[type[TermResult]]  # class for the result of one conformation
    _each: ClassVar[Mapping[str, str]]  # its fields that depend on the conformation, and those of the batch

    positions: Floats
    errors: Mapping[int, str] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Floats:
        return _term(self, name)

    def __len__(self) -> int:
        return len(self.terms)

    def __getitem__(self, i: int) -> Result:
        """Return the result of conformation i, counted from the end if negative."""
        return self._member(range(len(self))[index(i)])

    def __iter__(self) -> Iterator[Result]:
        return map(self._member, range(len(self)))

    def __repr__(self) -> str:
        size = f"{len(self):,} conformations of {len(self.atoms):,} atoms"
        if not self.terms.names:
            return self._about(size, "no energies")
        good = self.total[~np.isnan(self.total)]  # failed conformations are NaN
        if len(good) < len(self):
            size += f", {len(self) - len(good):,} failed"
        energies = f"{good.min():.3f} to {good.max():.3f}" if len(good) else "nan"
        return self._about(size, f"total {energies} kcal/mol")

    def table(self) -> Report:
        """Return a table with the energies, kcal/mol, of each conformation."""
        from .report import Column, Report

        columns: dict[str, Any] = {"conformation": np.arange(len(self))}
        if self.terms.names:
            columns |= {name: Column(of, "kcal/mol") for name, of in self.terms.columns().items()}
        if self.errors:
            columns["error"] = np.array([self.errors.get(k, "") for k in range(len(self))])
        return Report(f"Energy of {len(self):,} conformations", columns, self._facts(), about=self._physics())

    @property
    def total(self) -> Floats:
        """Sum of all terms of each conformation, (m,) kcal/mol."""
        return self.terms.total

    def _member(self, i: int) -> Result:
        """Return the result of conformation i, 0 <= i < m."""
        own: dict[str, Any] = {of.name: getattr(self, self._each.get(of.name, of.name)) for of in fields(self._of_one)}
        for name in ("terms", "per_atom", *self._each):
            own[name] = None if own[name] is None else own[name][i]
        own |= {"atoms": self.atoms if i in self.errors else self.atoms.moved(self.positions[i]), "made": None}
        return cast(Result, self._of_one(**own))


def _term(result: object, name: str) -> Floats:
    """Return a term by name, or raise AttributeError, also during unpickling, when no attributes are set."""
    terms = vars(result).get("terms")
    if terms is None or name not in terms.names:
        raise no_attribute(f"{type(result).__name__!r} object", name, {*dir(type(result)), *vars(result)})
    term: Floats = getattr(terms, name)
    return term
