"""Reader of AMBER restarts, text or NetCDF, as trajectories of one frame."""

from __future__ import annotations

from pathlib import Path

from ...formats.amber import is_netcdf, restart_positions
from .framefile import AtomChoice, FrameFile, Positions
from .netcdf import open_netcdf


class RestartFile(FrameFile):
    """A text restart. Velocities and unit cell are ignored."""

    def __init__(self, path: Path) -> None:
        self._positions = restart_positions(path)
        super().__init__(path, len(self._positions), 1)

    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        return self._positions[None, atoms][: len(frames)]

    def close(self) -> None:
        """Do nothing."""


def open_restart(path: Path) -> FrameFile:
    """Open a restart in either format. Raises FormatError if it is damaged."""
    return open_netcdf(path) if is_netcdf(path) else RestartFile(path)
