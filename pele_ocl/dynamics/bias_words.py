"""Biases defined by PLUMED keywords in a TOML file or a mapping, and COLVAR files."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..atoms import Atoms, Floats, Ints, selectable
from ..atoms.selection import Selection
from ..common.arguments import described, file_path, number, numbers, texts
from ..common.errors import FormatError, InputError
from ..common.inputfile import read_file
from ..common.writing import replacing
from ..energy.terms import (
    OPES,
    DistanceVariable,
    GridBias,
    GyrationVariable,
    Interpolated,
    Metadynamics,
    RMSDVariable,
    Term,
    TorsionVariable,
    Variable,
)
from ..energy.terms.grid_bias import Range
from .colvar import head_of, line_of
from .files import COLUMNS
from .simulation import Simulation
from .umbrella import harmonic_axes, harmonic_grid

VARIABLES = {"TORSION": 4, "DISTANCE": 2, "GYRATION": 1, "RMSD": 1}  # number of atoms or groups
GROWING = {"biasfactor", "grid_min", "grid_max", "grid_spacing", "shared"}
WORDS = {  # by kind: required and optional keywords
    **dict.fromkeys(VARIABLES, ({"atoms"}, set[str]())),
    "PRINT": ({"arg"}, set[str]()),
    "RESTRAINT": ({"arg", "at", "kappa"}, set[str]()),
    "OPES_METAD": ({"arg", "sigma", "barrier", "pace"}, GROWING),
    "METAD": ({"arg", "sigma", "height", "pace"}, GROWING),
}
Words = Mapping[str, Any]


@dataclass(frozen=True)
class BiasWords:
    """Collective variables and biases, defined by tables of keywords.

    tables : (name, keywords) of each; the keyword `kind` is one of WORDS
    """

    tables: tuple[tuple[str, dict[str, Any]], ...]

    @classmethod
    def of(cls, given: str | PathLike[str] | Words) -> BiasWords:
        """Read a TOML file, or a mapping with the same keywords.

        Raises FormatError for a file that is not TOML, InputError for invalid keywords.
        """
        tables = given if isinstance(given, Mapping) else _read(given)
        found = cls(tuple((name, _checked(name, words)) for name, words in tables.items()))
        kinds = {name: words["kind"] for name, words in found.tables}
        for name, words in found._biases:
            listed = words["arg"] if isinstance(words["arg"], list | tuple) else [words["arg"]]
            for arg in listed:
                if kinds.get(arg) not in VARIABLES:
                    there = ", ".join(of for of, kind in kinds.items() if kind in VARIABLES) or "none"
                    raise InputError(f"bias {name}: {described(arg)} is not a variable; there are: {there}")
            words["arg"] = list(listed)
        if not found._biases:
            raise InputError(
                "no bias is given; expected a table of the kind RESTRAINT, METAD, OPES_METAD, or PRINT for none"
            )
        return found

    @property
    def _biases(self) -> list[tuple[str, dict[str, Any]]]:
        return [(name, words) for name, words in self.tables if words["kind"] not in VARIABLES]

    @property
    def labels(self) -> dict[str, list[str]]:
        """Names of the variables of each bias."""
        return {name: words["arg"] for name, words in self._biases}

    def terms(self, atoms: Atoms) -> list[Term]:
        """Create the bias terms for a molecule. Raises InputError if its atoms do not match the definitions."""
        variables = {name: _variable(name, words, atoms) for name, words in self.tables if words["kind"] in VARIABLES}
        found: list[Term] = []
        for name, words in self._biases:
            members = [variables[arg] for arg in words["arg"]]
            try:
                found.append(_TERMS[words["kind"]](name, words, members))
            except InputError as error:
                raise InputError(f"bias {name}: {error}") from None
        return found

    def prepare(self, simulation: Simulation, replicas: Sequence[int]) -> None:
        """Assign the targets of restraints to replicas in turn. replicas : replica number of each row"""
        for name, words in self._biases:
            if words["kind"] == "RESTRAINT":
                term = simulation.bias_term(name)
                at, kappa = _targets(words, len(term.axes))
                grids = [harmonic_grid(term.axes, at[k % len(at)], kappa / 2) for k in range(len(at))]
                simulation.ensemble.values(name, "grid")[:] = [grids[k % len(at)] for k in replicas]


def _read(path: str | PathLike[str]) -> Words:
    if sys.version_info < (3, 11):
        raise InputError("biases in TOML files need Python 3.11 or newer; give a mapping with the same keywords")
    import tomllib

    source = file_path(path, "bias")
    try:
        return tomllib.loads(read_file(source).data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{source}: is not a TOML file: {error}") from None


def _checked(name: object, words: object) -> dict[str, Any]:
    """Check the keywords of a table, but not their values. Raises InputError with the table and the keyword."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w*", name) or name in (*COLUMNS, "time"):
        raise InputError(f"bias: {described(name)} is not a name of a variable or bias; expected letters, digits and _")
    if not isinstance(words, Mapping) or not all(isinstance(word, str) for word in words):
        raise InputError(f"bias: {name} is {described(words)}; expected a table of words")
    found = {word.lower(): value for word, value in words.items()}
    kind = found.get("kind")
    if not isinstance(kind, str) or kind.upper() not in WORDS:
        raise InputError(f"bias: {name} has the kind {described(kind)}; choose one of {', '.join(WORDS)}")
    needed, possible = WORDS[kind.upper()]
    if missing := needed - found.keys():
        raise InputError(f"bias: {name}, {kind.upper()}, has no `{min(missing)}`")
    if unknown := found.keys() - needed - possible - {"kind"}:
        raise InputError(
            f"bias: {name}, {kind.upper()}, has no word `{min(unknown)}`; there are: "
            f"{', '.join(sorted(needed | possible))}"
        )
    return {**found, "kind": kind.upper()}


def _variable(name: str, words: Words, atoms: Atoms) -> Variable:
    """Create a collective variable. Its atoms are numbers from 1, as in PLUMED, or selections."""
    kind, given = words["kind"], words["atoms"]
    n = VARIABLES[kind]
    listed = given if isinstance(given, list | tuple) and n > 1 else [given]
    if len(listed) != n:
        raise InputError(f"variable {name}: {kind} has {n} atoms or groups of them; {len(listed)} are given")
    groups = [_group(name, of, atoms) for of in listed]
    if kind == "TORSION":
        if any(len(of) != 1 for of in groups):
            raise InputError(f"variable {name}: each selection of a torsion must select one atom")
        return TorsionVariable([int(of[0]) for of in groups])
    if kind == "DISTANCE":
        return DistanceVariable(*groups)
    return (GyrationVariable if kind == "GYRATION" else RMSDVariable)(groups[0])


def _group(name: str, given: object, atoms: Atoms) -> Ints:
    if isinstance(given, str):
        try:
            return np.flatnonzero(Selection(given).mask(selectable(atoms))).astype(np.int32)
        except InputError as error:
            raise InputError(f"variable {name}: {error}", code=error.code) from None
    values = np.atleast_1d(np.asarray(given))
    if (
        values.dtype.kind not in "iu"
        or values.ndim != 1
        or not values.size
        or values.min() < 1
        or (values.max() > len(atoms))
    ):
        raise InputError(
            f"variable {name}: atoms are {described(given)}; expected numbers of 1 to {len(atoms)}, or selections"
        )
    return (values - 1).astype(np.int32)


def _targets(words: Words, d: int) -> tuple[Floats, Floats]:
    """Return the targets (n, d) of a restraint, assigned to replicas in turn, and its force constants (d,)."""
    at, kappa = np.atleast_1d(numbers("at", words["at"])), np.atleast_1d(numbers("kappa", words["kappa"]))
    at = at[None] if at.ndim == 1 else at
    if at.ndim != 2 or at.shape[1] != d or not len(at) or not np.isfinite(at).all():
        raise InputError(f"`at` has {np.shape(words['at'])} numbers; expected {d}, or lists of {d} for replicas")
    if kappa.shape != (d,) or not np.isfinite(kappa).all() or not 0 <= kappa.min() <= kappa.max() < 1e6:
        raise InputError(f"`kappa` is {described(words['kappa'])}; expected {d} numbers of 0 to 1e6")
    return at, kappa


def _growing(name: str, words: Words, members: Sequence[Variable]) -> Metadynamics | OPES:
    d = len(members)
    edges = [np.full(d, np.nan) if (of := words.get(word)) is None else np.atleast_1d(numbers(word, of))
             for word in ("grid_min", "grid_max")]  # fmt: skip
    if any(of.shape != (d,) for of in edges):
        raise InputError(f"`grid_min` and `grid_max` must have {d} numbers; those of torsions are ignored")
    bounds: list[Range | None] = []
    for variable, low, high in zip(members, *edges, strict=True):
        bounds.append(None if variable.period else (float(low), float(high)))
    spacing = number("grid_spacing", words.get("grid_spacing", 0.2), "a number of widths", above=0.0)
    last = words["pace"], words.get("biasfactor"), bounds, spacing, words.get("shared", False), name
    if words["kind"] == "METAD":
        return Metadynamics(members, words["sigma"], words["height"], *last)
    return OPES(members, words["sigma"], words["barrier"], *last)


def _restraint(name: str, words: Words, members: Sequence[Variable]) -> GridBias:
    at, kappa = _targets(words, len(members))
    axes, bounds = harmonic_axes(members, at)
    return GridBias(members, harmonic_grid(axes, at[0], kappa / 2), bounds, name)


def _print(name: str, words: Words, members: Sequence[Variable]) -> GridBias:
    return GridBias(members, name=name)


_TERMS: dict[str, Callable[[str, Words, Sequence[Variable]], Term]] = {
    "PRINT": _print, "RESTRAINT": _restraint, "METAD": _growing, "OPES_METAD": _growing,
}  # fmt: skip


def labels_of(simulation: Simulation, labels: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return names for the collective variables of each bias: the given labels, or numbered names."""
    biases = {term.name: term for term in simulation.ensemble.state.terms if isinstance(term, Interpolated)}
    for name, given in labels.items():
        simulation.bias_term(name)
        if len(texts("labels", given)) != len(biases[name].axes):
            raise InputError(f"labels of {name} are {list(given)}; expected {len(biases[name].axes)}")
    found = {
        name: list(labels.get(name, [f"{name}_{k + 1}" for k in range(len(of.axes))])) for name, of in biases.items()
    }
    fields = ["time", *(field for name, of in found.items() for field in (*of, f"{name}.bias"))]
    for field in fields:
        if fields.count(field) > 1 or field.split() != [field]:
            raise InputError(f"{field!r} names a column of COLVAR files; expected names without spaces, each once")
    return found


def _begin_colvar(path: Path, head: str, time: float) -> None:
    """Create a COLVAR file, or truncate an existing one at a time, in ps.

    Raises FormatError if the file has different fields.
    """
    kept = [head]
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        if lines[:1] != [head]:
            raise FormatError(f"{path}: has fields other than {head.strip()}; choose another folder")
        try:
            kept += [line for line in lines[1:] if line.endswith("\n") and float(line.split()[0]) < time]
        except (ValueError, IndexError):
            raise FormatError(f"{path}: has lines without a time; choose another folder") from None
    with replacing(path) as temporary:
        Path(temporary).write_text("".join(kept), encoding="utf-8")


class ColvarFiles:
    """Write one COLVAR file per replica, in PLUMED's format; pass it as `call` to `Simulation.run`.

    Each call appends a line to `COLVAR.0`, `COLVAR.1` and so on: the time in ps, the variables of each bias, and the
    bias energy in kcal/mol as `NAME.bias`. Stopped replicas are skipped. After a restart, existing lines at or after
    the current time are replaced. The files can be read with `numpy.loadtxt`, or in MDAnalysis with
    `auxiliary.auxreader(path, "XVG")`.

        >>> import pele_ocl, tempfile, pathlib
        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> bias = pele_ocl.Metadynamics(pele_ocl.TorsionVariable([4, 6, 8, 14]), 0.35, 0.3, 10, name="metad")
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> files = pele_ocl.ColvarFiles(folder, {"metad": ["phi"]})
        >>> _ = pele_ocl.Simulation(atoms, 2, terms=[bias], timestep=1.0).run(20, every=10, call=files)
        >>> (folder / "COLVAR.1").read_text().splitlines()[0]
        '#! FIELDS time phi metad.bias'

    folder : an existing folder
    labels : names of the variables of each bias, by the name of the bias; numbered by default
    """

    def __init__(self, folder: str | PathLike[str], labels: Mapping[str, Sequence[str]] | None = None) -> None:
        self.folder = file_path(folder, "folder")
        if not self.folder.is_dir():
            raise FormatError(f"{self.folder}: is not a folder")
        if labels is not None and not isinstance(labels, Mapping):
            raise InputError(f"labels are {described(labels)}; expected names of variables by the name of a bias")
        self._labels: Mapping[str, Sequence[str]] = labels or {}
        self._open: set[Path] = set()  # files that this object has opened

    def __call__(self, simulation: Simulation) -> None:
        """Append a line for each replica."""
        if not isinstance(simulation, Simulation):
            raise InputError(f"the simulation is {described(simulation)}; expected a Simulation")
        rows = np.full((len(simulation), 1), simulation.time)
        fields, of_biases = ["time"], labels_of(simulation, self._labels)
        if not of_biases:
            raise InputError(
                "no term acts on collective variables; GridBias(variable) computes a variable without a bias"
            )
        for name, labels in of_biases.items():
            rows = np.column_stack([rows, simulation.variables(name), simulation.bias_energies(name)])
            fields += [*labels, f"{name}.bias"]
        goes_on = np.isfinite(simulation.potential_energies)
        for k, row in zip(np.flatnonzero(goes_on).tolist(), rows[goes_on].tolist(), strict=True):
            path = self.folder / f"COLVAR.{k}"
            try:
                if path not in self._open:
                    _begin_colvar(path, head_of(fields), simulation.time - simulation.settings.dt / 2)
                    self._open.add(path)
                with open(path, "a", encoding="utf-8") as stream:
                    stream.write(line_of(row))
            except OSError as error:
                raise FormatError(f"{path}: cannot be written: {error.strerror or error}") from error

    def __repr__(self) -> str:
        return f"ColvarFiles({str(self.folder)!r})"
