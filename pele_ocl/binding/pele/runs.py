"""The files of a PELE run: control file, reports and the trajectories beside them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from ...errors import FormatError

_REPORT = re.compile(r"(.*)report_(\d+)")
_SUFFIXES = (".pdb", ".xtc")
CONTROL = "pele.conf"


@dataclass(frozen=True)
class Walker:
    """The files of one process of PELE.

    report, trajectory : its files; name : of the report, from the run's folder
    """

    report: Path
    trajectory: Path
    name: str


@dataclass(frozen=True)
class PeleRun:
    """A folder of PELE's results.

    control : its control file; walkers : by folder and number
    """

    folder: Path
    control: Path
    walkers: tuple[Walker, ...]


def find_run(folder: str | PathLike[str]) -> PeleRun:
    """The run in a folder, or in the folders of its epochs.

    Raises FormatError where there is no control file, no report, or a report without a trajectory.
    """
    place = Path(folder)
    if not place.is_dir():
        raise FormatError(f"{place}: no such folder")
    walkers = [_walker(place, path) for path in place.rglob("*report_*") if _REPORT.fullmatch(path.name)]
    if not walkers:
        raise FormatError(f"{place}: holds no report of PELE (report_1, ...), nor do the folders in it")
    return PeleRun(place, _control(place), tuple(sorted(walkers, key=_order)))


def _control(place: Path) -> Path:
    """The control file: pele.conf, or the only one of another name."""
    files = [place / CONTROL] if (place / CONTROL).is_file() else sorted(place.glob("*.conf"))
    if len(files) != 1:
        names = f"{len(files)} files .conf" if files else "no control file"
        raise FormatError(f"{place}: holds {names}; one by the name {CONTROL} is needed")
    return files[0]


def _walker(place: Path, report: Path) -> Walker:
    match = _REPORT.fullmatch(report.name)
    assert match is not None
    trajectories = [report.with_name(f"{match[1]}trajectory_{match[2]}{suffix}") for suffix in _SUFFIXES]
    found = [path for path in trajectories if path.is_file()]
    if not found:
        raise FormatError(f"{report}: has no {trajectories[0].name} or {_SUFFIXES[1]} beside it; put it there")
    return Walker(report, found[0], str(report.relative_to(place)))


def _order(walker: Walker) -> list[tuple[int, int, str]]:
    """A key by which 10 follows 9."""
    words = re.split(r"(\d+)", walker.name)
    return [(1, int(word), "") if word.isdigit() else (0, 0, word) for word in words]
