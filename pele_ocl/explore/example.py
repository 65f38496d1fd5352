"""A small, complete example run: a complex, its ligand with parameters, and a control file."""

from __future__ import annotations

import shutil
from os import PathLike
from pathlib import Path

from ..common.arguments import file_path
from ..common.errors import FormatError
from ..common.installation import shipped


def write_example(folder: str | PathLike[str] = "explore-example") -> Path:
    """Copy the example to a new folder and return the path of its control file.

    The folder also contains the complex (complex.pdb), its ligand (ligand.sdf) and the ligand's parameters.

    Raises FormatError if the folder exists or cannot be written.

    >>> pele_ocl.explore.write_example("example").name
    'pele.conf'
    """
    target = file_path(folder, "folder")
    if target.exists():
        raise FormatError(f"{target}: already exists; choose another folder")
    try:
        shutil.copytree(shipped("data") / "explore" / "example", target, copy_function=shutil.copyfile)
    except OSError as error:
        raise FormatError(f"{target}: cannot be written: {error.strerror or error}") from error
    return target / "pele.conf"
