"""Files of explorers: reports, trajectories, and the journals that say how a run went."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..common.errors import FormatError
from ..common.writing import replacing
from ..forcefield.control import CONTROL, DATA_FOLDERS
from ..jobs.journal import make_folder, read_journal
from ..jobs.outputs import held_already
from ..jobs.shards import Shard
from .control import Simulation
from .reports import numbered
from .trajectory import require_trajectory_suffix

_LEFT = "// The control file of the run in this folder, left by pele-ocl explore:"
JOURNAL, STATE = "explore.jsonl", "explore.state"
REPORT, TRAJECTORY = "report", "trajectory.pdb"
OVER = "end"  # name of the record that ends a journal
WHOLE = Shard(1, 1)
_PART = re.compile(r"explore\.(\d+)of(\d+)\.jsonl")


@dataclass(frozen=True)
class Files:
    """Files of a run: paths without the explorers' numbers, None for a file that is not written.

    part : of the explorers, whose journal and state these are
    """

    report: Path
    trajectory: Path
    log: Path | None
    control: Path | None
    initial: Path | None
    final: Path | None
    part: Shard = WHOLE

    @classmethod
    def of(cls, simulation: Simulation, folder: Path | None, part: Shard = WHOLE) -> Files:
        """Name the files. folder : in place of the control file's folders

        Raises FormatError if there is neither a folder nor a path of reports.
        """
        output = simulation.output
        if folder is None and not output.report_path:
            raise FormatError(f"{simulation.path}: PELE_Output names no reportPath; name a folder by `output`")

        def place(given: str) -> Path | None:
            if not given or given == os.devnull:
                return None
            return Path(given) if folder is None else folder / Path(given).name

        report, trajectory = place(output.report_path or REPORT), place(output.trajectory_path)
        assert report is not None
        trajectory = trajectory or report.with_name(TRAJECTORY)
        require_trajectory_suffix(trajectory)
        return cls(
            report, trajectory, place(simulation.log), place(simulation.saved_control),
            place(output.initial_pdb_path), place(output.final_pdb_path), part,
        )  # fmt: skip

    @property
    def journal(self) -> Path:
        """Journal of the run, next to the reports; of a part `explore.2of4.jsonl`."""
        return self.of_part(self.report.with_name(JOURNAL))

    @property
    def state(self) -> Path:
        """State of an interrupted run, next to the reports."""
        return self.of_part(self.report.with_name(STATE))

    def of_part(self, path: Path) -> Path:
        """Name a file of the part: `explore.2of4.html`; of the whole it keeps its name."""
        return path if self.part.count == 1 else self.part.path(path)

    def page(self, molecule: int | None = None) -> Path:
        """Page of the states, next to the reports. molecule : from 1, None if there is one only"""
        return self.of_part(self.report.with_name("explore.html" if molecule is None else f"explore_{molecule}.html"))

    def pages(self) -> list[Path]:
        """Find the pages that there are of the part, of any molecules."""
        whole = re.compile(re.escape(self.page().name).replace("explore", r"explore(_\d+)?", 1))
        return [path for path in sorted(self.report.parent.glob("explore*.html")) if whole.fullmatch(path.name)]

    def parts(self, count: int) -> list[Files]:
        """Return the files of each of so many parts."""
        return [replace(self, part=Shard(k, count)) for k in range(1, count + 1)]

    def journals(self) -> dict[Path, Shard]:
        """Find the journals that there are, of any parts, and the part of each."""
        found: dict[Path, Shard] = {}
        for path in sorted(self.report.parent.glob("explore*.jsonl")):
            if path.name == JOURNAL:
                found[path] = WHOLE
            elif match := _PART.fullmatch(path.name):
                found[path] = Shard(int(match[1]), int(match[2]))
        return found

    def of_explorer(self, number: int) -> list[Path]:
        """List the files of an explorer."""
        whole = (self.report, self.trajectory, self.log, self.control, self.initial, self.final)
        return [numbered(path, number) for path in whole if path is not None]

    def make_folders(self) -> None:
        """Make the folders of all files. Raises FormatError if that fails."""
        for path in (self.report, self.trajectory, self.log, self.control, self.initial, self.final):
            if path is not None:
                make_folder(path.parent)


def leave_control(folder: Path, control: Path, text: str, data: Sequence[Path]) -> None:
    """Write the control file of a run next to its reports, where `rescore` looks for it, and link PELE's data folders.

    A control file of the user's is never replaced.

    text : of the control file, with its words filled in; data : folders Data and DataLocal that were read
    """
    target = folder / CONTROL
    try:
        is_other = target.exists() and not target.read_text(encoding="utf-8", errors="replace").startswith(_LEFT)
    except OSError:
        is_other = True
    if is_other or control.absolute().parent == folder.absolute():
        return
    with replacing(target) as temporary:
        temporary.write_text(f"{_LEFT} {control.name}\n{text}", encoding="utf-8")
    for path in data:
        link = folder / path.name
        with suppress(OSError):  # of a file system without links
            if link.is_symlink():
                link.unlink()
            if path.name in DATA_FOLDERS and not link.exists():
                link.symlink_to(os.path.relpath(path, folder))


@dataclass
class Said:
    """Sentences about an explorer, each with the steps that it is about."""

    failures: dict[str, list[int]] = field(default_factory=dict)
    notes: dict[str, list[int]] = field(default_factory=dict)


def said_of(journals: Sequence[Path]) -> dict[int, Said]:
    """Read what journals say of each explorer, by number; explorers that nothing is said of are left out."""
    found: dict[int, Said] = {}
    for record in (record for path in journals for record in read_journal(path).records.values()):
        step = record.result.get("step", 0)
        for number, why in record.result.get("failures", {}).items():
            found.setdefault(int(number), Said()).failures.setdefault(why, []).append(step)
        for number, sentences in record.result.get("notes", {}).items():
            for sentence in sentences:
                found.setdefault(int(number), Said()).notes.setdefault(sentence, []).append(step)
    return found


def ends_of(journals: Sequence[Path]) -> tuple[list[dict[str, Any]], str]:
    """Read what became of explorers from the journals of all parts, and the device of the first."""
    ends = [read_journal(path).records[OVER] for path in journals]
    explorers = [own for end in ends for own in end["explorers"]]
    return sorted(explorers, key=lambda own: int(own["explorer"])), str(ends[0]["device"])


def earlier_seed(files: Files) -> int | None:
    """Read the seed of an earlier run from its journal, None if there is none. Raises FormatError for another file."""
    for path in files.journals():
        seed = read_journal(path).settings.get("seed", "")
        if not seed.isdecimal():
            raise FormatError(f"{path}: is no journal of explorers; name another folder, or leave out `resume`")
        return int(seed)
    return None


def refuse_inputs(files: Files, numbers: Sequence[int], inputs: Sequence[Path]) -> None:
    """Raise FormatError if a file of an explorer is an input, which would be written over or removed."""
    by_place = {path.resolve(): path for path in inputs}
    for path in (path for number in numbers for path in files.of_explorer(number)):
        source = by_place.get(path.resolve()) if path.exists() else None
        if source is not None:
            raise FormatError(f"{path}: the same file as the input {source}; name another folder for the output")


def refuse_other_reports(files: Files) -> None:
    """Raise FormatError if the folder has a run of reports of another name, whose journal would be written over."""
    for path in files.journals():
        try:
            report = read_journal(path).settings.get("report", files.report.name)
        except (FormatError, FileNotFoundError):  # not ours, or another process removed it
            continue
        if report != files.report.name:
            raise FormatError(f"{path}: is of a run whose reports are {report}_N; name another folder, or remove it")


def require_no_run(files: Files, numbers: Sequence[int], resume: bool) -> None:
    """Raise FormatError if the folder has a run, or files of explorers, that this run would overwrite.

    numbers : of the explorers of this part; resume : True to continue a run that left a journal
    """
    journals = files.journals()
    if resume and journals:
        return
    if any(path == files.journal or part.count != files.part.count for path, part in journals.items()):
        raise held_already(files.report.parent)
    for path in (path for number in numbers for path in files.of_explorer(number)):
        if path.exists():
            raise FormatError(
                f"{path}: already exists; replace it with `overwrite=True`, or name another folder by `output`",
                code="exists",
            )


def remove_earlier(files: Files, numbers: Sequence[int], inputs: Sequence[Path]) -> str:
    """Remove files of an earlier run, and tell of removed explorers.

    Its part loses journal, state and pages, and so do parts of another count. Files of further explorers go, too.

    numbers : of all explorers; inputs : files that are read

    Raises FormatError if one of them would be removed.
    """
    n_earlier, parts = len(numbers), {files.journal: files.part}
    for path, part in files.journals().items():
        try:
            n_earlier = max(n_earlier, int(read_journal(path).settings["explorers"]))
        except (FormatError, FileNotFoundError, KeyError, ValueError):  # not ours, or another process removed it
            continue
        if part.count != files.part.count:
            parts[path] = part
    others = range(len(numbers) + 1, n_earlier + 1)
    refuse_inputs(files, others, inputs)
    for own in (replace(files, part=part) for part in parts.values()):
        for path in (own.journal, own.state, *own.pages()):
            path.unlink(missing_ok=True)
    for path in replace(files, part=WHOLE).pages():  # which runs by workers have, too
        path.unlink(missing_ok=True)
    gone = [path for k in others for path in files.of_explorer(k) if path.exists()]
    for path in gone:
        path.unlink(missing_ok=True)
    first = f"{files.report.parent}: the files of explorers {len(numbers) + 1} to {n_earlier} of an earlier run there"
    return f"{first} were removed" if gone else ""
