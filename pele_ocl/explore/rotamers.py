"""Rotamers of side chains: the built-in library, and PELE's `.side` files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..common.arguments import file_path, number
from ..common.errors import FormatError
from ..common.installation import shipped
from ..common.textfiles import lines
from .rotations import CHI_ATOMS

BINS = 36  # number of bins for phi and for psi, each 10 degrees wide, centred on -180, -170, ...


@dataclass(frozen=True, eq=False)
class Rotamers:
    """Rotamers of an amino acid in one bin of phi and psi.

    chi : (k, n_chi) rad; probabilities : (k,); sigmas : (k, 2) standard deviations of chi1 and chi2, rad, 0 if unknown
    """

    chi: Floats
    probabilities: Floats
    sigmas: Floats

    def __len__(self) -> int:
        return len(self.chi)

    def spread(self) -> Rotamers:
        """Replace each rotamer by copies with chi1 and chi2 shifted by -sigma, 0 and sigma.

        Each copy gets an equal share of the probability.
        """
        shifts = np.array([-1.0, 0.0, 1.0])
        two = self.chi.shape[1] > 1
        grid = np.array([[a, b] for a in shifts for b in (shifts if two else shifts[1:2])])
        if not self.sigmas.any():
            return self
        chi = np.repeat(self.chi, len(grid), axis=0)
        by = np.repeat(self.sigmas, len(grid), axis=0) * np.tile(grid, (len(self), 1))
        chi[:, : min(2, chi.shape[1])] += by[:, : chi.shape[1]]
        shares = np.repeat(self.probabilities / len(grid), len(grid))
        return Rotamers(chi, shares, np.repeat(self.sigmas, len(grid), axis=0))


class RotamerLibrary:
    """Backbone-dependent rotamer library.

    tables : rotamers by three-letter residue name; starts : (1297,) first row of each bin in a table
    """

    def __init__(self, tables: Mapping[str, Rotamers], starts: Mapping[str, NDArray[np.int64]]) -> None:
        self._tables, self._starts = dict(tables), dict(starts)
        self._spread: dict[tuple[str, int], Floats] = {}  # cache of spread_chi

    def __repr__(self) -> str:
        return f"RotamerLibrary({', '.join(sorted(self._tables))})"

    def __contains__(self, name: str) -> bool:
        return name in self._tables

    def rotamers(self, name: str, phi: float, psi: float) -> Rotamers:
        """Return the rotamers of an amino acid, empty if it has none.

        phi, psi : rad; NaN, at chain ends, is replaced by -60 and 60 degrees, as in SCWRL4
        """
        if name not in self._tables:
            return Rotamers(np.zeros((0, 0)), np.zeros(0), np.zeros((0, 2)))
        table, starts, k = self._tables[name], self._starts[name], _bin(phi, psi)
        rows = slice(*starts[k : k + 2].tolist())
        return Rotamers(table.chi[rows], table.probabilities[rows], table.sigmas[rows])

    def spread_chi(self, name: str, phi: float, psi: float) -> Floats:
        """Return the chi angles after `Rotamers.spread`, (k, n_chi) rad; they are cached.

        name, phi, psi : as in `rotamers`
        """
        key = name, _bin(phi, psi)
        if key not in self._spread:
            self._spread[key] = self.rotamers(name, phi, psi).spread().chi
        return self._spread[key]

    @staticmethod
    @lru_cache(maxsize=1)
    def dunbrack() -> RotamerLibrary:
        """Read the built-in library: Shapovalov and Dunbrack, Structure 19, 844 (2011); CC BY 4.0.

        Rotamers with probabilities up to 0.5 % are omitted (data/README.md).
        """
        tables, starts = {}, {}
        with np.load(shipped("data") / "rotamers" / "dunbrack2010.npz") as file:
            data = {name: file[name] for name in file.files}
        first = 0
        for name, count, n_chi in zip(data["residues"].tolist(), data["counts"].tolist(), data["n_chi"], strict=True):
            rows = slice(first, first + count)
            first += count
            order = np.lexsort((-data["probabilities"][rows].astype(np.int64), data["bins"][rows]))
            tables[name] = Rotamers(
                np.deg2rad(data["chi"][:n_chi, rows].T[order].astype(np.float64)),
                data["probabilities"][rows][order] / 1000,
                np.deg2rad(data["sigmas"][:, rows].T[order].astype(np.float64)),
            )
            starts[name] = np.searchsorted(data["bins"][rows][order], np.arange(BINS * BINS + 1))
        return RotamerLibrary(tables, starts)

    @classmethod
    def from_folder(cls, folder: str | Path) -> RotamerLibrary:
        """Read a library from a folder of `.side` files, such as PELE's Data/RotamerLibs.

        The rotamers do not depend on phi and psi. Files of residues other than amino acids are ignored.

        Raises FormatError for a file that cannot be read, and for a folder without rotamers of amino acids.
        """
        files = sorted(file_path(folder, "folder").glob("*.side"))
        tables = {path.stem.upper(): read_side_file(path) for path in files if path.stem.upper() in CHI_ATOMS}
        if not tables:
            raise FormatError(f"{folder}: contains no rotamers of amino acids, such as ASP.side")
        everywhere = {
            name: Rotamers(table, np.full(len(table), 1 / len(table)), np.zeros((len(table), 2)))
            for name, table in tables.items()
        }
        repeated = {name: _repeated(table) for name, table in everywhere.items()}
        return cls({name: table for name, (table, _) in repeated.items()}, {k: v for k, (_, v) in repeated.items()})


def _repeated(table: Rotamers) -> tuple[Rotamers, NDArray[np.int64]]:
    """Repeat the table for every bin; return it with the first row of each bin."""
    count = len(table)
    chi, shares, sigmas = (
        np.tile(a, (BINS * BINS, *[1] * (a.ndim - 1))) for a in (table.chi, table.probabilities, table.sigmas)
    )
    return Rotamers(chi, shares.ravel(), sigmas), np.arange(BINS * BINS + 1) * count


def _bin(phi: float, psi: float) -> int:
    """Return the bin of phi and psi, rad; NaN is replaced by -60 and 60 degrees."""
    angles = -60.0 if math.isnan(phi) else math.degrees(phi), 60.0 if math.isnan(psi) else math.degrees(psi)
    row, column = (math.floor((angle + 185) / 10) % BINS for angle in angles)
    return BINS * row + column


def read_side_file(path: str | Path) -> Floats:
    """Read rotamers from a file in PELE's `.side` format, (k, n_chi) rad.

    The header contains the residue, the numbers of chi angles and rotamers, and the resolution in degrees. It is
    followed by the atoms of each chi, and a line POLARH if a polar hydrogen is scanned. Then each rotamer has a line
    with its angles as multiples of the resolution.

    Raises FormatError for a file that cannot be read.
    """
    given = file_path(path)
    text = list(lines(given, "rotamer"))
    head = next((k for k, line in enumerate(text) if line.strip()), None)
    words = [] if head is None else text[head].split()
    if head is None or len(words) < 5 or words[0] != "*":
        raise FormatError(f"{given}: line 1 is not a head like `* ASP 2 233 10.0 0`")
    n_chi, count = (_whole(given, head, word) for word in words[2:4])
    try:
        resolution = number("resolution", float(words[4]), "a number in degrees", above=0)
    except ValueError:
        raise FormatError(f"{given}: line {head + 1} has no resolution in degrees") from None
    rows = [k for k in range(head + 1 + n_chi, len(text)) if text[k].strip() and not text[k].startswith("POLARH")]
    if len(rows) != count:
        raise FormatError(f"{given}: there are {len(rows)} rotamers, but {count} are announced; complete the file")
    found = [[_whole(given, k, word) for word in text[k].split()] for k in rows]
    for k, row in zip(rows, found, strict=True):
        if len(row) != n_chi:
            raise FormatError(f"{given}: line {k + 1} has {len(row)} angles; expected {n_chi}")
    return np.deg2rad(resolution * np.array(found, np.float64).reshape(-1, n_chi))


def _whole(path: Path, line: int, word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise FormatError(f"{path}: line {line + 1} has {word!r} instead of a whole number") from None
