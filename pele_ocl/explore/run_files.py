"""Files of explorers: reports, trajectories, and journals of the run."""

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

_LEFT = "// The control file of the run in this folder,"  # begins a control file that `leave_control` wrote
JOURNAL, STATE = "explore.jsonl", "explore.state"
REPORT, TRAJECTORY = "report", "trajectory.pdb"
OVER = "end"  # name of the record that ends a journal
WHOLE = Shard(1, 1)
_PART = re.compile(r"explore\.(\d+)of(\d+)\.jsonl")


@dataclass(frozen=True)
class Files:
    """Files of a run: paths without the explorers' numbers, None for a file that is not written.

    part : part of the explorers to which the journal and the state belong
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
        """Return the files of a run. folder : folder for all files, instead of the paths in the control file

        Raises FormatError if neither a folder nor a report path is given.
        """
        output = simulation.output
        if folder is None and not output.report_path:
            raise FormatError(f"{simulation.path}: PELE_Output has no reportPath; give a folder as `output`")

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
        """Path of the journal, next to the reports; for a part e.g. `explore.2of4.jsonl`."""
        return self.of_part(self.report.with_name(JOURNAL))

    @property
    def state(self) -> Path:
        """Path of the state of an interrupted run, next to the reports."""
        return self.of_part(self.report.with_name(STATE))

    def of_part(self, path: Path) -> Path:
        """Return the path of a file for this part, e.g. `explore.2of4.html`; unchanged if there is a single part."""
        return path if self.part.count == 1 else self.part.path(path)

    def page(self, molecule: int | None = None) -> Path:
        """Return the path of the HTML page, next to the reports. molecule : number from 1, None for a single one"""
        return self.of_part(self.report.with_name("explore.html" if molecule is None else f"explore_{molecule}.html"))

    def pages(self) -> list[Path]:
        """Return the existing pages of this part, for all molecules."""
        whole = re.compile(re.escape(self.page().name).replace("explore", r"explore(_\d+)?", 1))
        return [path for path in sorted(self.report.parent.glob("explore*.html")) if whole.fullmatch(path.name)]

    def parts(self, count: int) -> list[Files]:
        """Return the files of each of `count` parts."""
        return [replace(self, part=Shard(k, count)) for k in range(1, count + 1)]

    def journals(self) -> dict[Path, Shard]:
        """Return the existing journals of all parts, with the part of each."""
        found: dict[Path, Shard] = {}
        for path in sorted(self.report.parent.glob("explore*.jsonl")):
            if path.name == JOURNAL:
                found[path] = WHOLE
            elif match := _PART.fullmatch(path.name):
                found[path] = Shard(int(match[1]), int(match[2]))
        return found

    def of_explorer(self, number: int) -> list[Path]:
        """Return the paths of an explorer's files."""
        whole = (self.report, self.trajectory, self.log, self.control, self.initial, self.final)
        return [numbered(path, number) for path in whole if path is not None]

    def make_folders(self) -> None:
        """Create the folders of all files. Raises FormatError if this fails."""
        for path in (self.report, self.trajectory, self.log, self.control, self.initial, self.final):
            if path is not None:
                make_folder(path.parent)


def leave_control(folder: Path, control: Path, text: str, data: Sequence[Path]) -> None:
    """Write the control file next to the reports, where `rescore` looks for it, and link PELE's data folders.

    The user's own control file is never replaced.

    text : text of the control file, with $WORDS filled in; data : folders Data and DataLocal that were read
    """
    target = folder / CONTROL
    try:
        is_other = target.exists() and not target.read_text(encoding="utf-8", errors="replace").startswith(_LEFT)
    except OSError:
        is_other = True
    if is_other or control.absolute().parent == folder.absolute():
        return
    with replacing(target) as temporary:
        temporary.write_text(f"{_LEFT} written by pele-ocl explore: {control.name}\n{text}", encoding="utf-8")
    for path in data:
        link = folder / path.name
        with suppress(OSError):  # the file system may not support links
            if link.is_symlink():
                link.unlink()
            if path.name in DATA_FOLDERS and not link.exists():
                link.symlink_to(os.path.relpath(path, folder))


@dataclass
class Said:
    """Messages about an explorer, each with the steps that it refers to."""

    failures: dict[str, list[int]] = field(default_factory=dict)
    notes: dict[str, list[int]] = field(default_factory=dict)


def said_of(journals: Sequence[Path]) -> dict[int, Said]:
    """Read the messages about explorers from journals, by explorer number; explorers without any are omitted."""
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
    """Read the final results of all explorers from the journals of all parts, and the device of the first part."""
    ends = [read_journal(path).records[OVER] for path in journals]
    explorers = [own for end in ends for own in end["explorers"]]
    return sorted(explorers, key=lambda own: int(own["explorer"])), str(ends[0]["device"])


def earlier_seed(files: Files) -> int | None:
    """Read the seed of an earlier run from its journal, None without one.

    Raises FormatError for a file that is not a journal of explorers.
    """
    for path in files.journals():
        seed = read_journal(path).settings.get("seed", "")
        if not seed.isdecimal():
            raise FormatError(f"{path}: is not a journal of explorers; choose another folder, or leave out `resume`")
        return int(seed)
    return None


def refuse_inputs(files: Files, numbers: Sequence[int], inputs: Sequence[Path]) -> None:
    """Raise FormatError if a file of an explorer is also an input, since it would be overwritten or removed."""
    by_place = {path.resolve(): path for path in inputs}
    for path in (path for number in numbers for path in files.of_explorer(number)):
        source = by_place.get(path.resolve()) if path.exists() else None
        if source is not None:
            raise FormatError(f"{path}: the same file as the input {source}; choose another folder for the output")


def refuse_other_reports(files: Files) -> None:
    """Raise FormatError if the folder has a run with other report names, since its journal would be overwritten."""
    for path in files.journals():
        try:
            report = read_journal(path).settings.get("report", files.report.name)
        except (FormatError, FileNotFoundError):  # not a journal, or removed by another process
            continue
        if report != files.report.name:
            raise FormatError(f"{path}: belongs to a run with reports {report}_N; choose another folder, or remove it")


def require_no_run(files: Files, numbers: Sequence[int], resume: bool) -> None:
    """Raise FormatError if the folder contains a run, or files of explorers, that this run would overwrite.

    numbers : numbers of this part's explorers; resume : True to continue a run that has a journal
    """
    journals = files.journals()
    if resume and journals:
        return
    if any(path == files.journal or part.count != files.part.count for path, part in journals.items()):
        raise held_already(files.report.parent)
    for path in (path for number in numbers for path in files.of_explorer(number)):
        if path.exists():
            raise FormatError(
                f"{path}: already exists; replace it with `overwrite=True`, or choose another folder with `output`",
                code="exists",
            )


def remove_earlier(files: Files, numbers: Sequence[int], inputs: Sequence[Path]) -> str:
    """Remove the files of an earlier run; return a message if files of further explorers were removed.

    These are journal, state and pages of this part and of runs with another number of parts, and the files of further
    explorers.

    numbers : numbers of all explorers; inputs : files that are read

    Raises FormatError if an input would be removed.
    """
    n_earlier, parts = len(numbers), {files.journal: files.part}
    for path, part in files.journals().items():
        try:
            n_earlier = max(n_earlier, int(read_journal(path).settings["explorers"]))
        except (FormatError, FileNotFoundError, KeyError, ValueError):  # not a journal, or removed by another process
            continue
        if part.count != files.part.count:
            parts[path] = part
    others = range(len(numbers) + 1, n_earlier + 1)
    refuse_inputs(files, others, inputs)
    for own in (replace(files, part=part) for part in parts.values()):
        for path in (own.journal, own.state, *own.pages()):
            path.unlink(missing_ok=True)
    for path in replace(files, part=WHOLE).pages():  # runs by workers write these, too
        path.unlink(missing_ok=True)
    gone = [path for k in others for path in files.of_explorer(k) if path.exists()]
    for path in gone:
        path.unlink(missing_ok=True)
    first = f"{files.report.parent}: the files of explorers {len(numbers) + 1} to {n_earlier} of an earlier run there"
    return f"{first} were removed" if gone else ""
