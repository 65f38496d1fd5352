"""Facts about where they come from that files name: the input, the program, the call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..common.inputfile import InputFile
from ..common.installation import installed_version


@dataclass(frozen=True)
class Provenance:
    """Facts that the files of a job name; a front end adds its own. It pickles, for workers."""

    def of_file(self, source: InputFile, target: Path | None) -> dict[str, object]:
        """Give the facts of a file that is made of one structure, which was just read; target : its path"""
        return {"input": str(source), "input_sha256": source.sha256, **self.of_call()}

    def of_call(self) -> dict[str, object]:
        """Give the facts of a file that is made of all structures."""
        return {"software": f"pele-ocl {installed_version()}"}
