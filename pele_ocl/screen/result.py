"""Result of a screen: ranks, scores and comparison with measured values, as table, JSON, files and HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..binding.decomposition import GROUPS
from ..common.errors import InputError
from ..common.notes import one_line
from ..explore.poses import ranks_of
from ..explore.refinement_spec import listed
from ..formats.tables import folder_path
from ..jobs.journal import make_folder
from ..jobs.provenance import Provenance
from ..jobs.records import Record
from ..jobs.texts import UNIT, counted, duration, headline, lines_of
from ..ligand import Ligand
from ..ligand.sdf_writing import save_sdf
from ..report import Column, Report, Reported, masked
from ..view.poses import scene_of
from .correlations import LEAST, Correlation, as_json, correlations
from .molecules import Entry, best_of
from .page import save_page
from .reference import Reference
from .spec import LIGAND, ScreenSpec

TABLE, PAGE, LIGANDS, RESIDUES = "screen.csv", "index.html", "ligands.sdf", "residues.csv"
_COMPARED = ("score", "binding", "strain", "n_heavy")  # columns compared with the reference
_MOST_SHOWN = 50  # number of best complexes in the page
_OF_DOCKING = 1.5  # weight of the docking score in the consensus, optimized by redocking
_SIGN = {"n_heavy": -1.0}  # larger molecules are expected to bind more strongly


@dataclass(frozen=True, eq=False, repr=False)
class ScreenResult(Reported):
    """Screened molecules, in input order.

    records : record of each molecule, as JSON data; facts : facts common to all
    spec : the job; items : its items; kept : complexes that were not written to files, by item
    reference : measured values, or None; shares : contributions of residues for the best molecules, by index
    provenance : facts for the table; heard : reported notes
    consensus : consensus with docking for poses of a molecule, (m,); measured : measured values, (m,)
    correlations : correlations of columns with the measured values, by name

    `residues` returns a table of contributions; `complex` and `ligand` return the refined complex and ligand of one
    molecule. Arrays contain NaN or 0 for failed molecules.
    """

    records: Sequence[Record]
    facts: Mapping[str, Any]
    spec: ScreenSpec
    items: Sequence[int]
    kept: Mapping[int, Atoms] = field(default_factory=dict)
    reference: Reference | None = None
    shares: Mapping[int, Report] = field(default_factory=dict)
    provenance: Provenance = field(default_factory=Provenance)
    heard: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        order = np.argsort(np.where(self.ranks > 0, self.ranks, len(self) + 1), kind="stable")[:3].tolist()
        best = ", ".join(f"{self.names[k]} {self.score[k]:,.1f}" for k in order if self.ranks[k])
        failed = f", {len(self.errors):,} failed" if self.errors else ""
        known = self.correlations.get("score", {}).get("spearman")
        rank = f"; Spearman {known.value:.2f} +- {known.error:.2f}" if known else ""
        shown = f"; best {best} kcal/mol" if best else ""
        return f"ScreenResult({counted(len(self), 'molecule')} in {self.spec.title}{failed}{shown}{rank})"

    @property
    def names(self) -> list[str]:
        """Names of rows and files."""
        return [record.structure for record in self.records]

    @property
    def titles(self) -> list[str]:
        """Names of the molecules in the input, which poses may share; otherwise the names of the rows."""
        return [entry.title or entry.name for entry in self._entries]

    @cached_property
    def _entries(self) -> list[Entry]:
        return [self.spec.entries[item] for item in self.items]

    @property
    def errors(self) -> dict[int, str]:
        """Error messages of failed molecules, by index from 0."""
        return {k: record.error for k, record in enumerate(self.records) if record.failed}

    def column(self, name: str) -> Floats:
        """Return a quantity of all molecules, (m,), such as binding, strain, n_heavy, moved; energies in kcal/mol."""
        values = [None if record.failed else record.result.get(name) for record in self.records]
        return np.array([np.nan if value is None else value for value in values], np.float64)

    @property
    def score(self) -> Floats:
        """Scores used for ranking, lower is better, (m,) kcal/mol."""
        return self.column("score")

    @property
    def binding(self) -> Floats:
        """Binding energy, (m,) kcal/mol."""
        return self.column("binding")

    @property
    def strain(self) -> Floats:
        """Strain of the ligand, (m,) kcal/mol."""
        return self.column("strain")

    @property
    def ranks(self) -> NDArray[np.int64]:
        """Ranks by score, from 1, (m,); 0 for failed molecules."""
        return ranks_of(self.score)

    @cached_property
    def consensus(self) -> Floats:
        """Consensus score of docking and refinement for poses of a molecule, (m,), lower is better.

        It is the sum of binding energy and strain plus 1.5 times the docking score in the pose's file, where both are
        standardized over the poses of the molecule (docs/screen.md, redocking). It is NaN unless the molecule has at
        least two successful poses and all of these have a docking score.
        """
        found = np.full(len(self), np.nan)
        energies = self.binding + self.strain
        name = self.spec.docking_score
        docked = np.array([entry.numbers.get(name, np.nan) for entry in self._entries], np.float64)
        poses: dict[str, list[int]] = {}
        for k in np.flatnonzero(np.isfinite(energies)).tolist():
            poses.setdefault(self._entries[k].molecule, []).append(k)
        for own in poses.values():
            if len(own) > 1 and np.isfinite(docked[own]).all():
                found[own] = _standard(energies[own]) + _OF_DOCKING * _standard(docked[own])
        return found

    @cached_property
    def measured(self) -> Floats:
        """Measured values, (m,); NaN for molecules without one."""
        if self.reference is None:
            return np.full(len(self), np.nan)
        return self.reference.of(zip(self.titles, self.names, strict=True))

    @cached_property
    def correlations(self) -> dict[str, dict[str, Correlation]]:
        """Correlations of columns with the measured values, for the best pose of each molecule; size is negated."""
        if self.reference is None:
            return {}
        best = list(best_of(self.titles, self.score.tolist()).values())
        return {name: correlations(_SIGN.get(name, 1.0) * self.column(name)[best], self.measured[best])
                for name in _COMPARED}  # fmt: skip

    def complex(self, k: int) -> Atoms:
        """Return the refined complex of a molecule, with the ligand's atoms last. Raises InputError if it failed."""
        if k in self.errors:
            raise InputError(f"{self.names[k]}: {self.errors[k]}")
        item = self.items[k]
        return self.kept[item] if item in self.kept else self.spec.complex_of(item)

    def ligand(self, k: int) -> Floats:
        """Return the positions of a refined ligand, (n, 3) A, in the order of its input."""
        if k in self.errors:
            raise InputError(f"{self.names[k]}: {self.errors[k]}")
        return np.array(self.records[k].more[LIGAND], np.float64)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Records as JSON data, each with its rank, 0 for failed molecules, and the measured value."""
        found = []
        for k, (record, rank) in enumerate(zip(self.records, self.ranks.tolist(), strict=True)):
            known = {"measured": float(self.measured[k])} if np.isfinite(self.measured[k]) else {}
            title = {"title": self._entries[k].title} if record.failed else {}
            if np.isfinite(self.consensus[k]):
                known["consensus"] = float(self.consensus[k])
            found.append({**record.to_dict(), **title, "rank": rank, **known})
        return found

    def table(self) -> Report:
        """Return a table with a row for each molecule, best first; failed molecules have an error message.

        The binding energy is printed if it is not the score.
        """
        rows = sorted(self.rows, key=lambda row: row["rank"] or len(self) + 1)
        shown: dict[str, tuple[str, str]] = {
            "score": (UNIT, ",.2f"), "binding": (UNIT, ",.2f"), "binding_error": (UNIT, ",.2f"),
            "strain": (UNIT, ",.2f"), "consensus": ("", ",.2f"),
            "measured": ("" if self.reference is None else self.reference.unit, ",.2f"),
            "rmsd_before": ("angstrom", ",.2f"), "rmsd_after": ("angstrom", ",.2f"), "moved": ("angstrom", ",.2f"),
        }  # fmt: skip
        columns: dict[str, Any] = {"name": Column(np.array([row["structure"] for row in rows]), head="molecule")}
        columns["rank"] = masked([row["rank"] or None for row in rows])
        for name, (unit, form) in shown.items():
            if any(name in row for row in rows):
                is_shown = name != "binding" or self.spec.add_strain
                columns[name] = Column(masked([row.get(name) for row in rows]), unit, form, shown=is_shown)
        for name, head in (("n_heavy", "heavy atoms"), ("charge", "charge")):
            columns[name] = Column(masked([row.get(name) for row in rows]), head=head)
        for when in ("before", "after"):
            columns[f"clashes_{when}"] = Column(masked([row.get("clashes", {}).get(when) for row in rows]), shown=False)
        terms = list(dict.fromkeys(name for row in rows for name in row.get("terms", {})))
        for name in terms:
            columns[name] = Column(masked([row.get("terms", {}).get(name) for row in rows]), UNIT, ",.2f", shown=False)
        for name in dict.fromkeys(name for row in rows for name in row.get("properties", {})):
            known = masked([row.get("properties", {}).get(name) for row in rows])
            is_shown = name == self.spec.docking_score
            columns[f"input_{name}"] = Column(known, form=",.4g", head="docking score", shown=is_shown)
        for name in ("iterations", "converged"):
            columns[name] = Column(masked([row.get(name) for row in rows]), shown=False)
        columns["formula"] = Column(np.array([row.get("formula", "") for row in rows]), shown=False)
        columns["title"] = Column(np.array([row.get("title", "") for row in rows]), shown=False)
        reasons = np.array([row.get("error", "") for row in rows])
        columns["error"] = Column(reasons, head="reason", shown=bool(self.errors))
        return Report(f"Molecules screened in {self.spec.title}", columns, dict(self.facts["settings"]))

    def residues(self) -> Report:
        """Return a table of the contributions of residues to the binding energy of the best molecules, kcal/mol."""
        if not self.shares:
            raise InputError("no energies of residues were requested; give `residues`")
        parts = [(self.names[k], self.shares[k]) for k in sorted(self.shares, key=lambda k: self.ranks[k])]
        columns: dict[str, Any] = {
            "molecule": np.concatenate([np.repeat(name, len(of)) for name, of in parts]),
            "residue": np.concatenate([of["residue"] for _, of in parts]),
        }
        for name in ("total", *GROUPS):
            columns[name] = Column(np.concatenate([of[name] for _, of in parts]), UNIT, ",.2f")
        return Report(f"Shares of residues in {self.spec.title}", columns)

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return a text summary: settings, table and correlations.

        verbose : whether to include the contributions of residues; total : total time to report, s
        """
        facts, screener, spec = self.facts, self.spec.screener, self.spec
        lines = [
            headline(spec.title, screener.receptor), *lines_of(facts["settings"]),
            f"Score         {scored_by(facts['settings'])}", "", self.table().text(),
        ]  # fmt: skip
        lines += ["", *self.correlation_lines()] if self.reference is not None else []
        lines += ["", self.residues().text()] if self.shares and verbose else []
        n = len(self) - len(self.errors)
        where = f" -> {one_line(spec.output)}" if spec.output else ""
        took = "" if total is None else f": total {duration(total)}"
        how = f"{facts['variant']}, {facts['precision']}, on {facts['device']}"
        return "\n".join([*lines, "", f"{counted(n, 'molecule')} of {len(self):,} scored{where}", f"{how}{took}"])

    def correlation_lines(self) -> list[str]:
        """Return the correlations with the reference, one line per column."""
        if self.reference is None:
            return []
        n = int(np.isfinite(self.measured[list(best_of(self.titles, self.score.tolist()).values())]).sum())
        if n < LEAST:
            return [
                f"Correlations with {self.reference.what}, of {counted(n, 'molecule')}: at least {LEAST} are required"
            ]
        lines = [f"Correlations with {self.reference.what}, of {counted(n, 'molecule')}; errors by bootstrap"]
        for name, found in self.correlations.items():
            if name == "binding" and not self.spec.add_strain:
                continue  # it is the score
            values = "  ".join(f"{kind} {of.value:5.2f} +- {of.error:.2f}" for kind, of in found.items())
            lines.append(f"  {'size' if name == 'n_heavy' else name:8}  {values or 'all values are equal'}")
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return the record of the receptor, with an entry for each molecule (docs/records.md)."""
        return self.record.to_dict()

    @property
    def record(self) -> Record:
        """Record of the receptor, with an entry for each molecule."""
        values: dict[str, Any] = {**self.facts, "n_molecules": len(self), "n_failed": len(self.errors)}
        if self.reference is not None:
            values["reference"] = {
                "what": self.reference.what, "unit": self.reference.unit, "left_out": list(self.reference.left_out),
                "correlations": {name: as_json(found) for name, found in self.correlations.items()},
            }  # fmt: skip
        if self.shares:
            shares = self.residues()
            values["residues"] = [dict(zip(shares.keys(), row, strict=True)) for row in
                                  zip(*(shares[name].tolist() for name in shares.keys()), strict=True)]  # fmt: skip
        values["molecules"] = listed(self.rows, "molecule")
        return self.spec.record_of_all(values, self.heard)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a table, an HTML page, the refined ligands (SDF) and the complexes (PDB) to a folder."""
        folder = folder_path(path)
        make_folder(folder)
        for k in range(len(self)):
            if k not in self.errors:
                self.spec.write(self.complex(k), self.items[k], folder)
        self.provenance.save(self.table(), folder / TABLE)
        if self.shares:
            self.provenance.save(self.residues(), folder / RESIDUES)
        order = [k for k in np.argsort(self.ranks, kind="stable").tolist() if self.ranks[k]]
        entries = self._entries
        molecules = [(k, of) for k in order if isinstance(of := entries[k].given, Ligand)]
        if molecules:
            save_sdf(folder / LIGANDS, [(of.moved(self.ligand(k)), self._properties(k)) for k, of in molecules])
        self._draw(folder / PAGE)

    def _properties(self, k: int) -> dict[str, Any]:
        """Return the properties of a molecule for the SDF file."""
        row = self.records[k].result
        known = {} if not np.isfinite(self.measured[k]) else {"measured": float(self.measured[k])}
        names = ("score", "binding", "strain", "moved", "rmsd_after")
        return {"rank": int(self.ranks[k]), **{name: row[name] for name in names if name in row}, **known}

    def _scenes(self) -> dict[int, dict[str, object]]:
        """Return the scenes of the best molecules for the page, each with its best pose."""
        best = set(best_of(self.titles, self.score.tolist()).values())
        order = [k for k in np.argsort(self.ranks, kind="stable").tolist() if self.ranks[k] and k in best]
        found = dict[int, dict[str, object]]()
        for k in order[:_MOST_SHOWN]:
            atoms = self.complex(k)
            ligand = np.arange(len(atoms) - len(self.ligand(k)), len(atoms))
            found[k] = scene_of(atoms, ligand, atoms.positions[np.newaxis])
        return found

    def _draw(self, path: Path) -> None:
        """Write the HTML page."""
        rows = [{**row, "rank": row["rank"] or None} for row in self.rows]
        labels = {
            "rank": "rank", "score": f"score, {UNIT}",
            **({"binding": f"binding energy, {UNIT}"} if self.spec.add_strain else {}),
            "strain": f"strain of the ligand, {UNIT}", "consensus": "consensus with docking",
            "measured": "measured" + (f", {self.reference.unit}" if self.reference and self.reference.unit else ""),
            "rmsd_after": "rmsd to the known pose, \u00c5", "moved": "moved, \u00c5", "n_heavy": "heavy atoms",
            "charge": "charge, e",
        }  # fmt: skip
        columns = {
            name: (label, [row.get(name) for row in rows]) for name, label in labels.items()
            if name == "rank" or any(row.get(name) is not None for row in rows)
        }  # fmt: skip
        for name in dict.fromkeys(term for row in rows for term in row.get("terms", {})):
            values = [row.get("terms", {}).get(name) for row in rows]
            if any(value is not None and abs(value) > 1e-4 for value in values):
                columns[f"term {name}"] = (f"{name.replace('_', ' ')}, {UNIT}", values)
        for name in dict.fromkeys(of for row in rows for of in row.get("properties", {})):
            values = [row.get("properties", {}).get(name) for row in rows]
            if len(set(values) - {None}) > 1:  # skip constant properties
                columns[f"input {name}"] = (name, values)
        across = next(name for name in ("measured", "rmsd_after", "n_heavy", "rank") if name in columns)
        settings = lines_of(self.facts["settings"])
        failed = f", {len(self.errors):,} failed" if self.errors else ""
        save_page(
            path, self.names, self.titles, [row.get("error", "") for row in rows],
            [entry.given if isinstance(entry.given, Ligand) else None for entry in self._entries], columns,
            (across, "score" if "score" in columns else "rank"), title=f"Molecules screened in {self.spec.title}",
            facts=f"{counted(len(self), 'molecule')}{failed}; {scored_by(self.facts['settings'])}; "
            f"{settings[-1].split(maxsplit=1)[1]}",
            lines=self.correlation_lines(), scenes=self._scenes(),
        )  # fmt: skip


def _standard(values: Floats) -> Floats:
    """Standardize values to mean 0 and standard deviation 1; 0 if all are equal."""
    spread = float(values.std())
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)


def scored_by(settings: Mapping[str, Any]) -> str:
    """Describe the score from the settings of a screen."""
    method = "MM/PBSA" if settings["scored_by"] == "pb" else "MM/GBSA"
    of = f"mean of {counted(settings['frames'], 'frame')}" if settings["frames"] else "the minimized structure"
    strain = " plus the ligand's strain" if settings["add_strain"] else ""
    return f"binding energy by {method} of {of}{strain}"
