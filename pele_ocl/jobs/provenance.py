"""Facts about where they come from that files name: the input, the program, the call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..common.inputfile import InputFile
from ..common.installation import installed_version
from ..report import Report
from .journal import make_folder


@dataclass(frozen=True)
class Provenance:
    """Facts that the files of a job name; a front end adds its own. It pickles, for workers."""

    def of_file(
        self, source: InputFile, target: Path | None, coordinates: InputFile | Path | None = None
    ) -> dict[str, object]:
        """Give the facts of a file that is made of one structure.

        target : its path, None if it is all that the call writes; coordinates : file with the positions of a topology
        """
        return {
            "input": str(source),
            "input_sha256": source.sha256,
            **({} if coordinates is None else {"coordinates": str(coordinates)}),
            **({"coordinates_sha256": coordinates.sha256} if isinstance(coordinates, InputFile) else {}),
            **self.of_call(),
        }

    def of_call(self) -> dict[str, object]:
        """Give the facts of a file that is made of all structures."""
        return {"software": f"pele-ocl {installed_version()}"}

    def save(self, table: Report, path: Path) -> None:
        """Write a table with the facts of the call before its own."""
        make_folder(path.parent)
        Report(table.title, table.columns, {**self.of_call(), **table.facts}).save(path)
