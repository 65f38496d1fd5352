"""Find the files of a PELE run: control file, reports and trajectories."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from ..common.errors import FormatError, InputError
from ..forcefield import ControlFile, read_control
from ..forcefield.control import CONTROL, DATA_FOLDERS

_REPORT = re.compile(r"(.*)report_(\d+)")
_SUFFIXES = (".pdb", ".xtc")
OWN_JOURNAL = "explore"  # prefix of journals of `explore`: explore.jsonl, explore.1of2.jsonl
_OWN_CONTROL = "originalControlFile_{}.conf"  # copy that PELE writes next to a report
_SETTINGS = ("forcefield", "gb", "ionic_strength", "allow_missing_terminals", "ligand")  # settings that affect energies


@dataclass(frozen=True)
class Walker:
    """Files of one PELE process.

    report, trajectory : paths of its files; name : path of the report relative to the run's folder
    control : control file that PELE wrote next to the report, None without one
    """

    report: Path
    trajectory: Path
    name: str
    control: Path | None = None


@dataclass(frozen=True)
class PeleRun:
    """A folder with results of PELE.

    control : path of its control file; walkers : sorted by folder and number
    own : True if all reports were written by `pele-ocl explore`, as shown by the journals next to them
    """

    folder: Path
    control: Path
    walkers: tuple[Walker, ...]
    own: bool = False

    @property
    def data(self) -> tuple[Path, ...]:
        """Folders Data and DataLocal next to the control file, otherwise those in the run's folder."""
        beside = {folder.name: folder for folder in read_control(self.control).data}
        above = {name: self.folder / name for name in DATA_FOLDERS if (self.folder / name).is_dir()}
        found = above | beside
        return tuple(found[name] for name in DATA_FOLDERS if name in found)

    @property
    def structure(self) -> Path:
        """First trajectory with atom names. Raises InputError if there is none."""
        for walker in self.walkers:
            if walker.trajectory.suffix == ".pdb":
                return walker.trajectory
        raise InputError(f"{self.folder}: its trajectories contain no atom names; give a `structure` of the complex")

    @property
    def ligand(self) -> str:
        """Selection of the ligand in the control file. Raises InputError if it has no chains."""
        ligand = read_control(self.control).ligand
        if ligand is None:
            raise InputError(f"{self.control}: has no chains in selectionToPerturb; give the ligand as `ligand`")
        return ligand


def find_run(folder: str | PathLike[str], control: str | PathLike[str] | None = None) -> PeleRun:
    """Find the run in a folder, or in its subfolders of epochs.

    control : control file, by default the one that PELE wrote next to the reports, or pele.conf in the folder

    Raises FormatError if there is no control file, no report, or a report without a trajectory, and if control files of
    reports differ in a setting that affects energies.
    """
    place = Path(folder)
    if not place.is_dir():
        raise FormatError(f"{place}: no such folder")
    walkers = [_walker(place, path) for path in place.rglob("*report_*") if _REPORT.fullmatch(path.name)]
    if not walkers:
        raise FormatError(f"{place}: contains no report of PELE (report_1, ...), nor do the folders in it")
    walkers.sort(key=_order)
    found = _control(place, walkers) if control is None else Path(control)
    return PeleRun(place, found, tuple(walkers), all(_is_own(walker.report) for walker in walkers))


def _is_own(report: Path) -> bool:
    """Return whether a report was written by `pele-ocl explore`: the journal next to it contains its name."""
    match = _REPORT.fullmatch(report.name)
    assert match is not None
    return any(_named_in(journal) == f"{match[1]}report" for journal in report.parent.glob(f"{OWN_JOURNAL}*.jsonl"))


def _named_in(journal: Path) -> str:
    """Read the name of the reports from a journal of explorers; "" for another file."""
    try:
        with open(journal, encoding="utf-8") as file:
            head = json.loads(file.readline())
        return str(head["settings"]["report"]) if head["journal"] == "explore" else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _control(place: Path, walkers: Sequence[Walker]) -> Path:
    """Find the control file: PELE's copy next to the first report, else pele.conf, else the only .conf file."""
    own = [walker.control for walker in walkers if walker.control is not None]
    if own:
        first = read_control(own[0])
        for path in own[1:]:
            _require_alike(first, read_control(path))
        return own[0]
    files = [place / CONTROL] if (place / CONTROL).is_file() else sorted(place.glob("*.conf"))
    if len(files) != 1:
        names = f"{len(files)} files .conf" if files else "no control file"
        raise FormatError(f"{place}: contains {names}; expected one with the name {CONTROL}")
    return files[0]


def _require_alike(first: ControlFile, other: ControlFile) -> None:
    """Raise FormatError if two control files differ in a setting that affects energies."""
    for name in _SETTINGS:
        if getattr(first, name) != getattr(other, name):
            raise FormatError(
                f"{other.path}: its {name.replace('_', ' ')} differs from that of {first.path}; compute the folders "
                "one by one, or give one control file as `control`"
            )


def _walker(place: Path, report: Path) -> Walker:
    match = _REPORT.fullmatch(report.name)
    assert match is not None
    trajectories = [report.with_name(f"{match[1]}trajectory_{match[2]}{suffix}") for suffix in _SUFFIXES]
    found = [path for path in trajectories if path.is_file()]
    if not found:
        raise FormatError(f"{report}: has no {trajectories[0].name} or {_SUFFIXES[1]} next to it; put it there")
    control = report.with_name(_OWN_CONTROL.format(match[2]))
    return Walker(report, found[0], str(report.relative_to(place)), control if control.is_file() else None)


def _order(walker: Walker) -> list[tuple[int, int, str]]:
    """Return a key for natural sorting, in which 10 follows 9."""
    words = re.split(r"(\d+)", walker.name)
    return [(1, int(word), "") if word.isdigit() else (0, 0, word) for word in words]
