"""Reference data for a screen: measured affinities by name, and known poses."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..atoms import Atoms, Floats
from ..atoms.graphs import Graph, Matching, SymmetricRmsd
from ..common.errors import FormatError, InputError
from ..common.extras import extra
from ..common.inputfile import read_file
from ..common.textfiles import plain_bytes
from ..formats.molecules import Molecule, molecules_of, sdf_records

KT = 0.0019872043 * 298.15  # kcal/mol, at 298.15 K
_NAMES = ("name", "ligand", "molecule", "compound", "id", "title", "ligand_id", "compound_id")
_PER_MOLAR = {"m": 1.0, "mm": 1e-3, "um": 1e-6, "\u00b5m": 1e-6, "\u03bcm": 1e-6, "nm": 1e-9, "pm": 1e-12}
_CONCENTRATIONS = ("ki", "kd", "ic50", "ec50", "k_i", "k_d")
_ENERGIES = {"kcal/mol": 1.0, "kcal mol^-1": 1.0, "kj/mol": 1 / 4.184, "kilocalories/mole": 1.0}
_LOGARITHMS = re.compile(r"^(p(ki|kd|ic50|ec50)|paffinity|pactivity|pchembl(_value)?)$")
_HEAD = re.compile(r"^\s*(?P<what>[^\s(\[]+)[\s_]*[(\[]?(?P<unit>[^)\]]*)[)\]]?\s*$")
_KNOWN = (*_CONCENTRATIONS, "dg", "deltag", "delta_g", "affinity", "energy", "value", "measurement", "experiment")


@dataclass(frozen=True)
class Reference:
    """Measured values by name of the molecule.

    values : lower values mean stronger binding; in kcal/mol if the file defines quantity or unit, otherwise as in the
        file
    unit : "kcal/mol" or ""; what : description of the column or quantity; left_out : entries that are not numbers
    """

    values: Mapping[str, float]
    unit: str
    what: str
    left_out: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path, column: str | None = None) -> Reference:
        """Read a CSV file, a JSON or YAML file of entries by name, or properties of an SDF file.

        column : column or property with the values; by default the first one that is named like an affinity

        Concentrations (Ki, Kd, IC50, EC50 in M to pM) and their logarithms (pIC50) are converted to RT ln c at
        298.15 K.

        Raises FormatError for a file without such values.
        """
        suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
        readers = {".csv": _of_csv, ".tsv": _of_csv, ".json": _of_json, ".yml": _of_yaml, ".yaml": _of_yaml,
                   ".sdf": _of_sdf}  # fmt: skip
        if suffix not in readers:
            raise FormatError(f"{path}: is not a file of measured values; these are {', '.join(readers)}")
        found = readers[suffix](path, column)
        if not found.values:
            raise FormatError(f"{path}: has no values in {found.what}")
        return found

    def without_molecule(self, names: Iterable[tuple[str, str]]) -> list[str]:
        """Return the names of values that match no molecule. names : titles and file names of the molecules"""
        known = {name for pair in names for name in pair}
        return [name for name in self.values if name not in known]

    def of(self, names: Iterable[tuple[str, str]]) -> Floats:
        """Return the values of molecules by title or file name, (m,); NaN for molecules without a value."""
        return np.array([self.values.get(title, self.values.get(name, np.nan)) for title, name in names], np.float64)


def _reference(rows: Iterable[tuple[str, Any, str, str]], what: str) -> Reference:
    """Build a reference from rows of name, value, kind ("ki") and unit ("nM")."""
    values, left, units = dict[str, float](), list[str](), set[str]()
    for name, value, kind, unit in rows:
        try:
            number, known = in_kcal(float(value), kind, unit)
            if not np.isfinite(number):
                raise ValueError
        except (TypeError, ValueError):
            left.append(name)
            continue
        units.add(known)
        values[name] = number
    if len(units) > 1:
        raise FormatError(f"{what}: some values have units and others have none")
    return Reference(values, units.pop() if units else "", what, tuple(left))


def in_kcal(value: float, kind: str, unit: str) -> tuple[float, str]:
    """Convert a value to kcal/mol by its kind and unit; unknown values are unchanged, with unit "".

    Raises ValueError for concentrations that are not positive.
    """
    kind, unit = kind.strip().lower(), unit.strip().lower()
    if _LOGARITHMS.match(kind):
        return -KT * np.log(10) * value, "kcal/mol"
    if unit in _ENERGIES:
        return value * _ENERGIES[unit], "kcal/mol"
    if unit in _PER_MOLAR:
        if value <= 0:
            raise ValueError(value)
        return float(KT * np.log(value * _PER_MOLAR[unit])), "kcal/mol"
    return value, ""


def _of_csv(path: Path, column: str | None) -> Reference:
    text = plain_bytes(read_file(path)).decode("utf-8-sig", "replace")
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ";" if ";" in text.partition("\n")[0] else ","
    rows = list(csv.DictReader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True))
    heads = [head for head in (rows[0].keys() if rows else ()) if head]
    if len(heads) < 2:
        raise FormatError(f"{path}: needs a header line, and columns with names and values")
    name = next((head for head in heads if head.strip().lower() in _NAMES), heads[0])
    value = _chosen(path, [head for head in heads if head != name], column)
    units = next((head for head in heads if head.strip().lower() in ("unit", "units")), "")
    kinds = next((head for head in heads if head.strip().lower() in ("type", "kind")), "")
    kind, unit = _kind_of(value)
    return _reference(
        (
            ((row[name] or "").strip(), row[value], (row[kinds] or "") if kinds else kind,
             (row[units] or "") if units else unit)
            for row in rows
        ),
        f"{path.name}: {value}",
    )  # fmt: skip


def _chosen(path: Path, heads: list[str], column: str | None) -> str:
    """Choose the column of the values."""
    if column is not None:
        if column not in heads:
            raise FormatError(f"{path}: has no {column!r}; it has {', '.join(heads)}")
        return column
    for head in heads:
        kind, unit = _kind_of(head)
        if _LOGARITHMS.match(kind) or kind in _KNOWN or unit.lower() in (*_ENERGIES, *_PER_MOLAR):
            return head
    return heads[0]


def _kind_of(head: str) -> tuple[str, str]:
    """Return kind and unit from a column name such as "IC50 (nM)", "Ki_nM" or "dG [kcal/mol]"."""
    match = _HEAD.match(head)
    what, unit = (match["what"], match["unit"]) if match else (head, "")
    last = what.rpartition("_")
    if not unit and last[0] and last[2].lower() in (*_PER_MOLAR, *_ENERGIES):
        what, unit = last[0], last[2]
    return what.lower(), unit


def _of_json(path: Path, column: str | None) -> Reference:
    try:
        return _of_entries(path, json.loads(plain_bytes(read_file(path))), column)
    except ValueError as error:
        raise FormatError(f"{path}: is not JSON: {error}") from None


def _of_yaml(path: Path, column: str | None) -> Reference:
    yaml: Any = extra("yaml", "a YAML file", "write the values as CSV")
    try:
        return _of_entries(path, yaml.safe_load(plain_bytes(read_file(path))), column)
    except yaml.YAMLError as error:
        raise FormatError(f"{path}: is not YAML: {' '.join(str(error).split())}") from None


def _of_entries(path: Path, found: Any, column: str | None) -> Reference:
    """Read entries by name: a number, or `measurement` with value, unit and type as in protein-ligand-benchmark."""
    if not isinstance(found, dict):
        raise FormatError(f"{path}: needs entries by the names of molecules")
    key = column or "measurement"
    rows = list[tuple[str, Any, str, str]]()
    for name, entry in found.items():
        of = entry.get(key) if isinstance(entry, dict) else entry
        if isinstance(of, dict):
            rows.append((str(name), of.get("value"), str(of.get("type", "")), str(of.get("unit", ""))))
        elif of is not None:
            rows.append((str(name), of, key, ""))
    return _reference(rows, f"{path.name}: {key}")


def _of_sdf(path: Path, column: str | None) -> Reference:
    entries = list[tuple[str, dict[str, str]]]()
    for record in sdf_records(read_file(path)):
        lines, own = record.lines, dict[str, str]()
        for k, line in enumerate(lines):
            if line.startswith(">") and (match := re.search(r"<([^>]*)>", line)):
                own[match[1]] = lines[k + 1].strip() if k + 1 < len(lines) else ""
        entries.append((lines[0].strip() if lines else "", own))
    heads = list(dict.fromkeys(name for _, own in entries for name in own))
    if not heads:
        raise FormatError(f"{path}: its molecules have no properties")
    value = _chosen(path, heads, column)
    kind, unit = _kind_of(value)
    return _reference(
        ((name, own[value], kind, unit) for name, own in entries if value in own), f"{path.name}: {value}"
    )


@dataclass(frozen=True, eq=False)
class Natives:
    """Known poses of molecules, in the frame of the receptor."""

    molecules: tuple[Molecule, ...]

    @classmethod
    def read(cls, path: Path) -> Natives:
        """Read the molecules of an SDF or mol2 file. Raises FormatError if it has none."""
        suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
        if suffix not in (".sdf", ".mol", ".mol2"):
            raise FormatError(f"{path}: expected poses with bonds, an .sdf or .mol2 file")
        read = list(molecules_of(read_file(path), suffix == ".mol2"))
        found = tuple(of for of in read if isinstance(of, Molecule))
        if not found:
            raise FormatError(f"{path}: {next(iter(read))}")
        return cls(found)

    def rmsd(self, atoms: Atoms, positions: Floats) -> float | None:
        """Compute the rmsd of heavy atoms from the known pose, A, with optimal assignment of equivalent atoms.

        atoms : atoms of the molecule; positions : (n, 3) A, which are not superposed

        Returns None for a molecule without a known pose.
        """
        labels = atoms.labels
        if labels is None:
            raise InputError("these atoms have no elements; read them from a structure file")
        graph = Graph.of(labels.elements.tolist(), atoms.bond_pairs)
        ours = graph.part(graph.heavy)
        for native in self.molecules:
            theirs = native.graph.part(native.graph.heavy)
            mapping = Matching(ours, theirs).best()
            if mapping is not None:
                there = native.positions[native.graph.heavy][mapping]
                return float(SymmetricRmsd(ours)(positions[np.newaxis, graph.heavy], there)[0])
        return None
