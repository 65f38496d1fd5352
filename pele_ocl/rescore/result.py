"""Result of rescoring a PELE run: a table of poses with computed energies, those of PELE, and ranks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..binding.energies import LARGEST_LJ
from ..common.errors import FormatError, PeleError
from ..common.inputfile import InputFile
from ..common.notes import with_notes
from ..common.writing import replacing
from ..explore.reports import read_report
from ..formats import JsonText, write_table
from ..gb_models.solvent_model import SolventModel
from ..jobs import Journal, Record, Shard
from ..jobs.facts import settings
from ..jobs.texts import UNIT, counted, duration, headline, model_line, physics_lines
from ..report import Column, Report, Reported, text_table
from .files import PeleRun, Walker
from .spec import ENERGIES, WalkerPoses

_SHOWN = 10  # number of best poses to show
TOTAL, BINDING = "oclTotalEnergy", "oclBindingEnergy"  # column names in reports, without blanks for PELE's tools


@dataclass(frozen=True)
class Agreement:
    """Agreement of computed energies with those of PELE, for poses that have both.

    n : number of poses; correlation : Pearson correlation, NaN if a column is constant
    offset : mean of pele-ocl's values minus PELE's, kcal/mol; sd : standard deviation of the differences, kcal/mol
    """

    n: int
    correlation: float
    offset: float
    sd: float

    @classmethod
    def of(cls, theirs: Floats, ours: Floats) -> Agreement:
        """Compare columns (m,), ignoring NaN."""
        good = np.isfinite(theirs) & np.isfinite(ours)
        a, b = theirs[good], ours[good]
        if not len(a):
            return cls(0, np.nan, np.nan, np.nan)
        spread = a.std() * b.std()
        correlation = float(((a - a.mean()) * (b - b.mean())).mean() / spread) if spread > 0 else np.nan
        return cls(len(a), correlation, float((b - a).mean()), float((b - a).std()))

    @property
    def text(self) -> str:
        """Text such as `correlation 0.998, offset +0.004`."""
        return f"correlation {self.correlation:.4f}, offset {self.offset:+.4g}"


@dataclass(frozen=True, eq=False)
class Poses:
    """Poses in the order of the reports; missing values are NaN.

    reports : (m,) names of the report files; rows : (m,) rows in these, from 0
    total, binding : computed energies, (m,) kcal/mol; pele_total, pele_binding : energies of PELE, (m,) kcal/mol
    rank : (m,) rank by computed binding energy, from 1; 0 for failed poses
    errors : (m,) error messages of failed poses, "" for others
    """

    reports: list[str]
    rows: NDArray[np.int64]
    total: Floats
    binding: Floats
    pele_total: Floats
    pele_binding: Floats
    rank: NDArray[np.int64]
    errors: list[str]

    @classmethod
    def of(cls, walkers: Sequence[WalkerPoses]) -> Poses:
        """Collect the poses of all walkers; a failed walker is one row."""
        absent = {name: np.full(1, np.nan) for name in ENERGIES}
        reports, rows, errors = list[str](), list[int](), list[str]()
        for of in walkers:
            n = len(of) or 1
            reports += [of.name] * n
            rows += range(n)
            errors += [of.error or of.errors.get(k, "") for k in range(n)]
        values = {name: np.concatenate([(of.columns or absent)[name] for of in walkers]) for name in ENERGIES}
        return cls(reports, np.array(rows), **values, rank=_ranks(values["binding"]), errors=errors)

    @property
    def n_failed(self) -> int:
        """Number of failed poses."""
        return sum(map(bool, self.errors))

    @property
    def notes(self) -> list[str]:
        """Messages about the poses."""
        n = int(np.count_nonzero(self.total > LARGEST_LJ))
        return [f"atoms overlap in {counted(n, 'pose')}, with very large energies"] if n else []

    def pairs(self) -> dict[str, tuple[Floats, Floats]]:
        """Return PELE's and pele-ocl's energies by name, for those that PELE's reports contain."""
        both = {"total energy": (self.pele_total, self.total), "binding energy": (self.pele_binding, self.binding)}
        return {name: pair for name, pair in both.items() if np.isfinite(pair[0]).any()}

    def best(self, n: int) -> list[int]:
        """Return the indices of at most n poses with the lowest computed binding energies."""
        order = np.argsort(np.where(self.rank, self.rank, len(self.rank) + 1), kind="stable")[:n]
        return [int(k) for k in order if self.rank[k]]

    def lines(self, whose: str = "PELE") -> list[str]:
        """Return lines with the agreement and the best poses. whose : heading of the columns to compare with"""
        heads = ("rank", "report", "row", "binding", whose, "total", whose)
        rows = [
            (
                str(self.rank[k]), self.reports[k], str(self.rows[k]),
                *(f"{of[k]:,.4f}" for of in (self.binding, self.pele_binding, self.total, self.pele_total)),
            )
            for k in self.best(_SHOWN)
        ]  # fmt: skip
        return [*self.agreement(), "", "Best poses by binding energy, kcal/mol", text_table(heads, rows, "><>>>>>")]

    def agreement(self) -> list[str]:
        """Return lines with the agreement of each energy."""
        return [f"{name.capitalize():15s} {Agreement.of(*pair).text} kcal/mol" for name, pair in self.pairs().items()]

    def columns(self) -> dict[str, NDArray[np.generic]]:
        """Return the columns of a table with a row for each pose."""
        return {
            "report": np.array(self.reports), "row": self.rows, "rank": self.rank, "total": self.total,
            "binding": self.binding, "pele_total": self.pele_total, "pele_binding": self.pele_binding,
            "error": np.array(self.errors),
        }  # fmt: skip

    def to_json(self) -> dict[str, object]:
        """Return all poses and their agreement with PELE as JSON data."""
        columns = {name: values.tolist() for name, values in self.columns().items()}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return {
            "n_poses": len(rows),
            "n_failed": self.n_failed,
            "notes": self.notes,
            "agreement": {name: _finite(asdict(Agreement.of(*pair))) for name, pair in self.pairs().items()},
            "poses": [_finite({name: value for name, value in row.items() if value != ""}) for row in rows],
        }

    @property
    def failure(self) -> str:
        """Message with the number of failed poses and the first error; "" if none failed."""
        if not self.n_failed:
            return ""
        k = next(k for k, error in enumerate(self.errors) if error)
        what = "pose" if self.n_failed == 1 else "poses"
        first = f"{self.reports[k]}, row {self.rows[k]}: {self.errors[k]}"
        return f"{self.n_failed:,} {what} of {len(self.rows):,} failed: {first}"


def _ranks(binding: Floats) -> NDArray[np.int64]:
    ranks = np.zeros(len(binding), np.int64)
    order = np.argsort(binding, kind="stable")  # NaN comes last
    n = int(np.isfinite(binding).sum())
    ranks[order[:n]] = np.arange(1, n + 1)
    return ranks


def _finite(row: dict[str, object]) -> dict[str, object]:
    """Replace NaN by None, for JSON."""
    return {name: None if isinstance(value, float) and value != value else value for name, value in row.items()}


POSES = "poses"  # kind of the journal
_ATTRIBUTES = "attributes"  # key of the table's attributes, as JSON
_PARAMETERS = "parameters"  # attribute that is itself JSON


@dataclass(frozen=True, eq=False, repr=False)
class RescoreResult(Reported):
    """Energies of all poses of a PELE run.

    poses : Poses; run : files of the run; source : structure file; atoms : its atoms; model : SolventModel
    ligand : selection of the ligand; group_cutoffs : True with PELE's long nonbonded cutoffs
    walkers : poses by report; device, variant, precision : used for the computation
    notes : messages about the complex and the poses; heard : all reported notes; attributes : attributes of the table

    >>> result = pele_ocl.rescore("explored")
    >>> result.save("poses.csv")
    >>> result.poses.total.shape == result.poses.pele_total.shape
    True
    """

    poses: Poses
    run: PeleRun
    source: InputFile
    atoms: Atoms
    model: SolventModel
    ligand: str
    group_cutoffs: bool
    walkers: Sequence[tuple[Walker, WalkerPoses]]
    device: str
    variant: str
    precision: str
    attributes: Mapping[str, object]
    notes: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """Settings: force field, constants, ligand and cutoffs."""
        of_run = {"ligand": self.ligand, "group_cutoffs": self.group_cutoffs, "own_reports": self.run.own}
        return {**settings(self.model, self.atoms), **of_run}

    def save(self, path: str | PathLike[str]) -> None:
        """Write a table with a row for each pose, as .h5, .csv or .json."""
        save_poses(Path(path), self.poses, self.attributes)

    def write_reports(self, folder: str | PathLike[str]) -> None:
        """Write the run's reports to a folder, with additional columns oclTotalEnergy and oclBindingEnergy."""
        for walker, of in self.walkers:
            if len(of):
                report = read_report(walker.report)
                target = Path(folder) / walker.name
                target.parent.mkdir(parents=True, exist_ok=True)
                own = replace(report, rows=report.rows[: len(of)])
                own.write(target, {TOTAL: of.columns["total"], BINDING: of.columns["binding"]})

    def draw(self, path: str | PathLike[str]) -> None:
        """Plot computed energies against PELE's, as .png or .svg; needs Matplotlib."""
        draw_against(path, self.poses.pairs(), [self.source.path])

    def table(self) -> Report:
        """Return a table with a row for each pose, best binding energy first, failed ones last."""
        poses = self.poses
        order = [*poses.best(len(poses.rows)), *np.flatnonzero(poses.rank == 0).tolist()]
        columns = {
            name: Column(values[order], UNIT, ",.4f") if name in ENERGIES else values[order]
            for name, values in poses.columns().items()
        }
        return Report("Poses by binding energy", columns, self.attributes)

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return a text summary. verbose : whether to include all constants; total : total time to report, s"""
        poses, took = self.poses, "" if total is None else f": total {duration(total)}"
        lines = [
            headline(self.source.path.name, self.atoms), *physics_lines(self.model, self.atoms),
            f"{counted(len(self.walkers), 'report')}, {counted(len(poses.rows), 'pose')}", "",
            *poses.lines("in report" if self.run.own else "PELE"), "",
            *([model_line(settings(self.model, self.atoms))] if verbose else []),
            f"{self.variant}, {self.precision}, on {self.device}{took}",
        ]  # fmt: skip
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the record of the run as JSON data, without times."""
        computed = {"device": self.device, "variant": self.variant, "precision": self.precision}
        result = {"n_atoms": len(self.atoms), **computed, "settings": self.settings, **self.poses.to_json()}
        return Record(str(self.source), self.source.sha256, with_notes(result, self.heard)).to_dict()

    def __repr__(self) -> str:
        return "\n".join(
            [f"RescoreResult of {self.run.folder}: {len(self.poses.rows):,} poses", *self.poses.agreement()]
        )


def save_poses(output: Path, poses: Poses, attributes: Mapping[str, object]) -> None:
    """Write a table with a row for each pose."""
    write_table(output, poses.columns(), dict.fromkeys(ENERGIES, UNIT), attributes)


def journal_of_poses(
    path: Path | None, attributes: Mapping[str, object], shard: Shard | None, everyone: Sequence[Walker]
) -> Journal:
    """Open the journal of a run. attributes : attributes of the table; everyone : walkers of all shards"""
    settings = {_ATTRIBUTES: json.dumps(attributes, default=str)}
    return Journal(path, settings, kind=POSES, shard=shard, items=[of.name for of in everyone])


def attributes_in(head: Mapping[str, str]) -> dict[str, object]:
    """Read the attributes of the table from the settings of a journal."""
    found: dict[str, object] = json.loads(head[_ATTRIBUTES])
    return {**found, _PARAMETERS: JsonText(found[_PARAMETERS])} if _PARAMETERS in found else found


def require_picture(path: str | PathLike[str]) -> None:
    """Check before the computation that draw_against can write a plot.

    Raises PeleError if Matplotlib is not installed, FormatError for a suffix other than .png or .svg.
    """
    if not str(path).lower().endswith((".png", ".svg")):
        raise FormatError(f"{path}: pictures end in .png or .svg")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise PeleError("pictures need matplotlib, which is not installed: pip install 'pele-ocl[plot]'") from None


def draw_against(
    path: str | PathLike[str], energies: Mapping[str, tuple[Floats, Floats]], inputs: Iterable[str | PathLike[str]] = ()
) -> None:
    """Plot pele-ocl's energies against PELE's, with a panel for each energy showing correlation and offset.

    path : file, .png or .svg; energies : name -> PELE's and pele-ocl's values, (m,) kcal/mol; inputs : files that must
        not be overwritten

    Raises as require_picture does.
    """
    require_picture(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(energies), 4.2), layout="constrained")
    for axes, (name, (theirs, ours)) in zip(
        np.atleast_1d(figure.subplots(1, len(energies))), energies.items(), strict=True
    ):
        good = np.isfinite(theirs) & np.isfinite(ours)
        axes.plot(theirs[good], ours[good], ".", markersize=4)
        found = Agreement.of(theirs, ours)
        if good.any():
            axes.axline((float(theirs[good][0]), float(theirs[good][0]) + found.offset), slope=1, color="0.6", zorder=0)
        axes.set(title=f"{name}: {found.text}", xlabel="PELE [kcal/mol]", ylabel="pele-ocl [kcal/mol]")
    with replacing(path, inputs) as temporary:
        figure.savefig(temporary, dpi=150)
