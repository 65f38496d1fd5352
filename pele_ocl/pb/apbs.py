"""Reader for APBS input files, which are converted to calculations of PoissonBoltzmann.

Keywords follow the manual of APBS 3.4.1 and its output; unsupported ones raise an error before any computation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, TypeVar

import numpy as np

from ..atoms import Atoms, Floats
from ..common.errors import FormatError, PeleError
from ..common.inputfile import InputFile
from ..common.textfiles import lines, whole
from ..common.writing import refuse_targets
from ..formats import read_map
from ..grid import Grid, Map
from ..pb_model import (
    PBIon,
    PBMaps,
    PBModel,
    PBProblem,
    PBSolute,
    centre_of,
    focusing_grids,
    grid_at,
    lowered_shape,
)
from .apbs_maps import OF_POTENTIAL

T = TypeVar("T")

ETOL = 1e-10  # default residual; APBS stops at 1e-6
LOOSEST, TIGHTEST = 1e-6, 1e-14
FORMATS = {"dx": ".dx", "gz": ".dx.gz", "flat": ".txt"}
WRITTEN = {
    "pot": "POTENTIAL (kT/e)", "charge": "CHARGE DISTRIBUTION (e/A^3)", "kappa": "KAPPA MAP",
    "dielx": "X-SHIFTED DIELECTRIC MAP",
    "diely": "Y-SHIFTED DIELECTRIC MAP", "dielz": "Z-SHIFTED DIELECTRIC MAP", "atompot": "ATOM POTENTIALS",
    "smol": "SOLVENT ACCESSIBILITY -- MOLECULAR ({probe:.3f} PROBE)",
    "sspl": "SOLVENT ACCESSIBILITY -- SPLINE ({window:.3f} WINDOW)", "vdw": "SOLVENT ACCESSIBILITY -- VAN DER WAALS",
    "ivdw": "ION ACCESSIBILITY -- SPLINE ({ion_radius:.3f} RADIUS)", "lap": "POTENTIAL LAPLACIAN (kT/e/A^2)",
    "edens": "ENERGY DENSITY (kT/e/A)^2", "ndens": "ION NUMBER DENSITY (M)", "qdens": "ION CHARGE DENSITY (e_c * M)",
}  # fmt: skip
NEED_POTENTIAL = {"pot", "atompot", *OF_POTENTIAL}
MAPS = {"diel": 3, "kappa": 1, "charge": 1}  # maps that can be read, with the number of their files
_SOLVERS = {"mg-manual", "mg-auto", "mg-dummy", "mg-para"}
_OTHER_SOLVERS = {
    "fe-manual": "finite elements", "tabi": "TABI-PB", "bem-manual": "TABI-PB", "geoflow-auto": "geometric flow",
    "pbam-auto": "PB-AM", "pbsam-auto": "PB-SAM", "pygbe": "PyGBe",
    "geoflow": "geometric flow", "pbam": "PB-AM", "pbsam": "PB-SAM", "bem": "TABI-PB", "bem-auto": "TABI-PB",
}  # fmt: skip
_OTHER_EQUATIONS = {
    "lrpbe": "the regularized equation", "nrpbe": "the regularized equation", "smpbe": "the size-modified equation",
}  # fmt: skip
_SURFACES, _SPREADINGS = ("mol", "smol", "spl2", "spl4"), ("spl0", "spl2", "spl4")
_BOUNDARIES = ("zero", "sdh", "mdh", "focus")
# Numeric values of keywords in older files.
_NUMBERED = {
    "bcfl": {"0": "zero", "1": "sdh", "2": "mdh", "4": "focus"}, "chgm": {"0": "spl0", "1": "spl2", "2": "spl4"},
    "srfm": {"0": "mol", "1": "smol", "2": "spl2", "4": "spl4"},
}  # fmt: skip
_NEEDED = ("dime", "srfm", "chgm", "pdie", "sdie", "temp", "mol", "bcfl")
# Ignored keywords with the number of their values.
_IGNORED = {"nlev": 1, "gamma": 1, "pdime": 3, "ofrac": 1, "async": 1, "cmem": 1, "usemesh": 1, "ekey": 1}


@dataclass(frozen=True)
class ApbsWrite:
    """File to write. quantity : key of WRITTEN; path : with its suffix"""

    quantity: str
    path: Path


@dataclass(frozen=True)
class ApbsCalculation:
    """An ELEC block.

    name : given in the block, or its number; molecule : index in the molecules of the file, from 0
    grids : from coarse to fine; the first `n_before` belong to the previous calculation, which bcfl focus continues
    tolerance : relative residual
    given, map_files : maps used, and their files
    solves : False for mg-dummy; prints_energy, prints_parts : set by calcenergy; writes : files to write
    notes : differences from APBS
    """

    name: str
    molecule: int
    model: PBModel
    grids: tuple[Grid, ...]
    tolerance: float
    solves: bool
    prints_energy: bool
    prints_parts: bool
    writes: tuple[ApbsWrite, ...]
    notes: tuple[str, ...]
    given: PBMaps = field(default_factory=PBMaps)
    map_files: tuple[Path, ...] = ()
    n_before: int = 0


@dataclass(frozen=True)
class ApbsPrint:
    """A PRINT statement: signs, +1 or -1, and indices, from 0, of the calculations whose energies are added."""

    terms: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ApbsInput:
    """Content of an input file. molecules : paths of PQR files; notes : ignored parts, with reasons"""

    molecules: tuple[Path, ...]
    calculations: tuple[ApbsCalculation, ...]
    prints: tuple[ApbsPrint, ...]
    notes: tuple[str, ...]


def read_apbs(
    source: InputFile, read_molecule: Callable[[Path], Atoms], read_values: Callable[[Path], Map] = read_map
) -> tuple[ApbsInput, list[Atoms]]:
    """Read an APBS input file, with its molecules and maps.

    read_molecule : reads a PQR file; paths are relative to the current folder, as in APBS
    read_values : reads a map

    Raises FormatError with file and line for invalid, unknown or unsupported input.
    """
    return _Reader(source, read_molecule, read_values).read()


def _words(source: InputFile) -> Iterator[tuple[int, str]]:
    """Yield the words of a file with their line numbers; # begins a comment, and quoted words may contain blanks."""
    for number, line in enumerate(lines(source, "APBS input"), 1):
        rest = line
        while rest := rest.lstrip():
            if rest[0] == "#":
                break
            if rest[0] in "\"'":
                word, quote, rest = rest[1:].partition(rest[0])
                if not quote:
                    raise FormatError(f"{source}: line {number}: a quote is not closed")
            else:
                word = rest.split("#", 1)[0].split(None, 1)[0]
                rest = rest[len(word) :]
            yield number, word


@dataclass
class _Block:
    """Content of an ELEC block: line number and values of each keyword."""

    name: str
    line: int
    solver: str = ""
    equation: str = ""
    values: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
    ions: list[PBIon] = field(default_factory=list)
    writes: list[ApbsWrite] = field(default_factory=list)
    maps: dict[str, tuple[int, int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class _Reader:
    """Parser that reads the words of a file in order."""

    def __init__(
        self, source: InputFile, read_molecule: Callable[[Path], Atoms], read_values: Callable[[Path], Map]
    ) -> None:
        self._source, self._read_molecule, self._read_values = source, read_molecule, read_values
        self._words = list(_words(source))
        self._place = 0
        self._paths: list[Path] = []
        self._maps: dict[str, list[list[Path]]] = {kind: [] for kind in MAPS}
        self._molecules: list[Atoms] = []
        self._blocks: list[_Block] = []
        self._printed: list[tuple[int, list[str]]] = []
        self._notes: list[str] = []
        self._outputs: list[tuple[int, Path]] = []

    def read(self) -> tuple[ApbsInput, list[Atoms]]:
        """Read all sections and the molecules, and create the calculations."""
        sections = {"read": self._read, "elec": self._elec, "apolar": self._apolar, "print": self._print}
        while self._place < len(self._words):
            line, word = self._next("a section")
            if word.lower() == "quit":
                break
            if word.lower() not in sections:
                self._fail(line, f"unknown section {word!r}; sections are READ, ELEC, PRINT and QUIT")
            sections[word.lower()](line)
        if not self._paths:
            self._fail(1, "no molecule is read; expected a READ section with `mol pqr FILE`")
        if not self._blocks:
            self._fail(1, "the file has no ELEC section, so there is nothing to compute")
        self._refuse_outputs()
        self._molecules = [self._read_molecule(path) for path in self._paths]
        calculations: list[ApbsCalculation] = []
        for block in self._blocks:
            calculations.append(self._calculation(block, calculations[-1] if calculations else None))
        prints = tuple(self._statement(line, words) for line, words in self._printed)
        return ApbsInput(tuple(self._paths), tuple(calculations), prints, tuple(self._notes)), self._molecules

    def _refuse_outputs(self) -> None:
        """Raise FormatError for output files that are also read, are written twice, or cannot be written."""
        read = [
            self._source.path,
            *self._paths,
            *(path for maps in self._maps.values() for each in maps for path in each),
        ]
        targets = list[Path]()
        for line, path in self._outputs:
            targets.append(path)
            self._checked(line, lambda: refuse_targets(targets, read))  # earlier targets are valid

    def _fail(self, line: int, why: str) -> NoReturn:
        raise FormatError(f"{self._source}: line {line}: {why}", line=line)

    def _next(self, what: str) -> tuple[int, str]:
        """Return the next word with its line number."""
        if self._place >= len(self._words):
            line = self._words[-1][0] if self._words else 1
            self._fail(line, f"the file ends before {what}")
        self._place += 1
        return self._words[self._place - 1]

    def _values(self, keyword: str, count: int) -> list[str]:
        return [self._next(f"a value of {keyword}")[1] for _ in range(count)]

    def _read(self, line: int) -> None:
        """Read section READ."""
        while (found := self._next("END of READ"))[1].lower() != "end":
            line, word = found
            if word.lower() in MAPS:
                self._read_map_files(line, word.lower())
                continue
            if word.lower() != "mol":
                self._fail(line, f"`{word}` in READ is not supported; choose mol, {', '.join(MAPS)}")
            kind = self._next("the format of a molecule")[1].lower()
            path = self._next("the file of a molecule")[1]
            if kind != "pqr":
                self._fail(
                    line,
                    f"molecules are read as `mol pqr`, not `mol {kind}`; write a PQR file, for example with pdb2pqr",
                )
            self._paths.append(Path(path))

    def _read_map_files(self, line: int, kind: str) -> None:
        """Read `diel FORMAT X Y Z`, `kappa FORMAT FILE` or `charge FORMAT FILE`."""
        written = self._next("the format of a map")[1].lower()
        if written not in ("dx", "gz"):
            self._fail(line, f"maps are not read as {written}; choose dx or gz")
        self._maps[kind].append([Path(path) for path in self._values(kind, MAPS[kind])])

    def _given(self, block: _Block) -> tuple[PBMaps, tuple[Path, ...]]:
        """Read the maps used by a block; returns them with their paths."""
        found, files = dict[str, list[Map]](), list[Path]()
        for kind, (line, number) in block.maps.items():
            if not 1 <= number <= len(self._maps[kind]):
                self._fail(line, f"usemap {kind} {number}: READ has {len(self._maps[kind])} of `{kind}`")
            paths = self._maps[kind][number - 1]
            found[kind] = [self._checked(line, lambda: self._read_values(path)) for path in paths]  # noqa: B023
            files += paths
        dielectrics, access, charges = (found.get(kind) for kind in ("diel", "kappa", "charge"))
        maps = self._checked(
            block.line,
            lambda: PBMaps(
                (dielectrics[0], dielectrics[1], dielectrics[2]) if dielectrics else None,
                access[0] if access else None, charges[0] if charges else None,
            ),
        )  # fmt: skip
        return maps, tuple(files)

    def _apolar(self, line: int) -> None:
        """Skip section APOLAR."""
        while self._next("END of APOLAR")[1].lower() != "end":
            pass
        self._notes.append(f"line {line}: APOLAR is left out: apolar terms of APBS are not supported")

    def _print(self, line: int) -> None:
        """Read section PRINT."""
        words = []
        while (word := self._next("END of PRINT")[1]).lower() != "end":
            words.append(word)
        self._printed.append((line, words))

    def _elec(self, line: int) -> None:
        """Read section ELEC."""
        block = _Block(str(len(self._blocks) + 1), line)
        while (found := self._next("END of ELEC"))[1].lower() != "end":
            self._keyword(block, *found)
        self._blocks.append(block)

    def _keyword(self, block: _Block, line: int, word: str) -> None:
        """Read a keyword of ELEC and its values."""
        key = word.lower()
        counts = {
            "dime": 3, "grid": 3, "glen": 3, "cglen": 3, "fglen": 3, "etol": 1, "bcfl": 1, "pdie": 1, "sdie": 1,
            "srad": 1, "swin": 1, "sdens": 1, "temp": 1, "srfm": 1, "chgm": 1, "calcenergy": 1, "calcforce": 1,
            "mol": 1,
        }  # fmt: skip
        if key == "name":
            block.name = self._next("the name of a calculation")[1]
        elif key in _SOLVERS:
            block.solver = key
        elif key in _OTHER_SOLVERS:
            self._fail(line, f"{word} ({_OTHER_SOLVERS[key]}) is another solver of APBS; choose mg-auto or mg-manual")
        elif key in ("lpbe", "npbe"):
            block.equation = key
        elif key in _OTHER_EQUATIONS:
            self._fail(line, f"{word} ({_OTHER_EQUATIONS[key]}) is not supported; choose lpbe or npbe")
        elif key in ("gcent", "cgcent", "fgcent"):
            first = self._next(f"a value of {word}")[1]
            more = self._values(word, 1 if first.lower() == "mol" else 2)
            block.values[key] = line, [first, *more]
        elif key == "ion":
            block.ions.append(self._ion(line))
        elif key == "write":
            block.writes.append(self._written(line))
        elif key == "usemap":
            kind, number = (each.lower() for each in self._values("usemap", 2))
            if kind not in MAPS:
                self._fail(line, f"usemap {kind} is not supported; choose {', '.join(MAPS)}")
            block.maps[kind] = line, int(self._number(line, "usemap", number))
        elif key == "writemat":
            self._fail(line, f"{word} is not supported; leave it out")
        elif key in _IGNORED:
            self._values(word, _IGNORED[key])
        elif key in counts:
            block.values[key] = line, self._values(word, counts[key])
        else:
            self._fail(line, f"unknown keyword {word!r} in ELEC, or it is not supported")

    def _ion(self, line: int) -> PBIon:
        """Read `ion charge C conc M radius R`, or C M R without names as in older files."""
        found, names = {}, ("charge", "conc", "radius")
        for place in range(3):
            word = self._next("a value of ion")[1]
            if word.lower() in names:
                found[word.lower()] = self._number(line, "ion", self._next("a value of ion")[1])
            else:
                found[names[place]] = self._number(line, "ion", word)
        if len(found) < 3:
            self._fail(line, "an ion needs charge, conc and radius, each once")
        return self._checked(line, lambda: PBIon(found["charge"], found["conc"], found["radius"]))

    def _written(self, line: int) -> ApbsWrite:
        """Read `write QUANTITY FORMAT STEM`."""
        quantity, kind, stem = self._values("write", 3)
        if quantity.lower() not in WRITTEN:
            self._fail(line, f"`write {quantity}` is not supported; choose {', '.join(WRITTEN)}")
        if kind.lower() not in FORMATS:
            self._fail(line, f"maps are not written as {kind}; choose dx or gz, for atompot flat")
        if (quantity.lower() == "atompot") != (kind.lower() == "flat"):
            self._fail(line, f"{quantity} is written as {'flat' if quantity.lower() == 'atompot' else 'dx or gz'}")
        self._outputs.append((line, Path(stem + FORMATS[kind.lower()])))
        return ApbsWrite(quantity.lower(), self._outputs[-1][1])

    def _number(self, line: int, keyword: str, text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = np.nan
        if not np.isfinite(number):
            self._fail(line, f"{text!r} is not a number, which {keyword} needs")
        return number

    def _checked(self, line: int, make: Callable[[], T]) -> T:
        """Return the result of `make`; errors are raised with the line number."""
        try:
            return make()
        except PeleError as error:
            if "line" in error.fields:  # already in the message
                raise
            self._fail(line, str(error))

    def _calculation(self, block: _Block, before: ApbsCalculation | None) -> ApbsCalculation:
        """Create the calculation of a block. Raises FormatError for missing or inconsistent values.

        before : the previous calculation
        """
        values = block.values
        if not block.solver:
            self._fail(block.line, "the solver is missing: mg-auto or mg-manual")
        if not block.equation and block.solver != "mg-dummy":
            self._fail(block.line, "the equation is missing: lpbe or npbe")
        for key in _NEEDED:
            if key not in values:
                self._fail(block.line, f"{key} is missing in ELEC {block.name}")
        notes = list(block.notes)
        if block.solver == "mg-para":
            notes.append("mg-para is computed as mg-auto of the whole fine grid; digits differ from APBS's")
        self._choice(values, "calcforce", ("no", "0"), " forces are not supported;")
        energy = self._choice(values, "calcenergy", ("no", "total", "comps", "0", "1", "2"), "") or "no"
        surface = self._choice(values, "srfm", _SURFACES, "")
        boundary = self._choice(values, "bcfl", _BOUNDARIES, "")
        solves = block.solver != "mg-dummy"
        if boundary == "focus":
            boundary = self._boundary_before(block, before) if solves else "zero"
            before = before if solves else None
        else:
            before = None
        if block.solver == "mg-dummy" and any(each.quantity in NEED_POTENTIAL for each in block.writes):
            self._fail(block.line, f"ELEC {block.name} is mg-dummy, which has no potential to write")
        if surface.startswith("spl") and any(each.quantity == "edens" for each in block.writes):
            self._fail(block.line, f"write edens is supported with srfm mol and smol, not with {surface}; leave it out")
        molecule = self._molecule_of(*values["mol"])
        probe = self._one(values, "srad", 1.4)
        # Other surfaces do not use these values, which are 0 in some files.
        has_window = surface.startswith("spl") or any(each.quantity == "sspl" for each in block.writes)
        window = self._one(values, "swin", 0.3) if has_window else 0.3
        density = self._one(values, "sdens", 10.0) if surface.endswith("mol") and probe else 10.0
        model = self._checked(
            block.line,
            lambda: PBModel(
                self._one(values, "pdie"), self._one(values, "sdie"), tuple(block.ions), self._one(values, "temp"),
                "nonlinear" if block.equation == "npbe" else "linear", surface, probe,
                density, window, self._choice(values, "chgm", _SPREADINGS, ""), boundary,
            ),
        )  # fmt: skip
        outer = () if before is None else before.grids
        grids, given, map_files = (*outer, *self._grids(block, notes)), *self._given(block)
        self._checked(block.line, lambda: self._problem(molecule, model, grids))
        for grid in grids:
            self._checked(block.line, lambda: given.require_covering(grid))  # noqa: B023
        if before is not None and (before.molecule, before.model) != (molecule, model):
            self._fail(
                values["bcfl"][0], f"bcfl focus continues ELEC {before.name}, whose molecule, equation or constants "
                f"differ from those of ELEC {block.name}; use the same in both"
            )  # fmt: skip
        if before is not None and (before.map_files or map_files):
            self._fail(
                values["bcfl"][0], "usemap cannot be combined with bcfl focus; use mg-auto, which focuses automatically"
            )
        return ApbsCalculation(
            block.name, molecule, model, grids, self._tolerance(values, notes), solves,
            energy not in ("no", "0"), energy in ("comps", "2"), tuple(block.writes), tuple(notes), given, map_files,
            len(outer),
        )  # fmt: skip

    def _problem(self, molecule: int, model: PBModel, grids: tuple[Grid, ...]) -> PBProblem:
        """Create the problem of a calculation. Raises InputError for grids that do not fit."""
        solute = PBSolute.of(self._molecules[molecule], needs_spheres=model.has_border)
        problem = PBProblem(solute, model, grids)
        problem.require_atoms_on_grid()
        return problem

    def _boundary_before(self, block: _Block, before: ApbsCalculation | None) -> str:
        """Return the outermost boundary condition of the calculation that bcfl focus continues."""
        line = block.values["bcfl"][0]
        if block.solver != "mg-manual":
            self._fail(
                line,
                "bcfl focus can only be used with mg-manual; mg-auto focuses automatically, so use sdh, mdh or zero",
            )
        if before is None or not before.solves:
            self._fail(line, "bcfl focus needs a previous calculation with a potential whose grid encloses this one")
        return before.model.boundary

    def _choice(self, values: Mapping[str, tuple[int, list[str]]], key: str, able: Sequence[str], why: str) -> str:
        """Return the value of a keyword, "" if it is missing. Raises FormatError for values not in `able`."""
        if key not in values:
            return ""
        line, (given,) = values[key]
        word = _NUMBERED.get(key, {}).get(given, given.lower())
        if word not in able:
            self._fail(line, f"{key} {given} is not supported;{why} choose {', '.join(able)}")
        return word

    def _one(self, values: Mapping[str, tuple[int, list[str]]], key: str, default: float | None = None) -> float:
        """Return the number given by a keyword."""
        if key not in values:
            assert default is not None
            return default
        line, (text,) = values[key]
        return self._number(line, key, text)

    def _three(self, block: _Block, key: str) -> list[float]:
        if key not in block.values:
            self._fail(block.line, f"{key} is missing in ELEC {block.name}")
        line, texts = block.values[key]
        return [self._number(line, key, text) for text in texts]

    def _molecule_of(self, line: int, texts: Sequence[str]) -> int:
        """Convert the number of a molecule, from 1, to an index."""
        text = texts[-1]
        molecule = whole(text)
        if molecule is None or not 1 <= molecule <= len(self._paths):
            self._fail(line, f"unknown molecule {text}; READ names {len(self._paths)}")
        return molecule - 1

    def _centre(self, block: _Block, key: str) -> Floats:
        if key not in block.values:
            self._fail(block.line, f"{key} is missing in ELEC {block.name}")
        line, texts = block.values[key]
        if texts[0].lower() == "mol":
            return centre_of(self._molecules[self._molecule_of(line, texts)])
        return np.array([self._number(line, key, text) for text in texts])

    def _grids(self, block: _Block, notes: list[str]) -> tuple[Grid, ...]:
        """Create the grids of a block."""
        line, texts = block.values["dime"]
        if not all(5 <= (whole(text) or 0) <= 100_000 for text in texts):
            self._fail(line, f"dime is {' '.join(texts)}; expected three numbers of points, 5 or more")
        wanted = tuple(map(int, texts))
        shape = lowered_shape(wanted)
        if shape != wanted:
            was, now = (" ".join(map(str, each)) for each in (wanted, shape))
            notes.append(f"dime {was} was reduced to {now}, as in APBS for its multigrid")

        def placed() -> tuple[Grid, ...]:
            if block.solver in ("mg-auto", "mg-para"):
                return focusing_grids(
                    shape, self._three(block, "cglen"), self._three(block, "fglen"), self._centre(block, "cgcent"),
                    self._centre(block, "fgcent"),
                )  # fmt: skip
            if ("grid" in block.values) == ("glen" in block.values):
                self._fail(block.line, f"ELEC {block.name} needs one of grid and glen")
            if "grid" in block.values:
                spacing = self._three(block, "grid")
            else:
                lengths = self._three(block, "glen")
                spacing = [length / (n - 1) for length, n in zip(lengths, shape, strict=True)]
            return (grid_at(self._centre(block, "gcent"), spacing, shape),)

        return self._checked(block.line, placed)

    def _tolerance(self, values: Mapping[str, tuple[int, list[str]]], notes: list[str]) -> float:
        etol = self._one(values, "etol", ETOL)
        if not 0 < etol < 1:
            self._fail(values["etol"][0], f"etol is {etol:g}; expected a number between 0 and 1")
        if not TIGHTEST <= etol <= LOOSEST:
            taken = min(max(etol, TIGHTEST), LOOSEST)
            notes.append(f"etol {etol:g} was changed to {taken:g}")
            return taken
        return etol

    def _statement(self, line: int, words: Sequence[str]) -> ApbsPrint:
        """Parse a PRINT statement: `elecEnergy 1 - 2 + name`."""
        if not words or words[0].lower() not in ("elecenergy", "energy"):
            what = words[0] if words else "nothing"
            self._fail(line, f"`print {what}` is not supported; only elecEnergy is printed")
        names, terms, sign = [block.name for block in self._blocks], [], 1
        for place, word in enumerate(words[1:]):
            if place % 2:
                if word not in ("+", "-"):
                    self._fail(line, f"{word!r} instead of + or - in PRINT")
                sign = 1 if word == "+" else -1
                continue
            if word in names:
                index = names.index(word)
            elif 1 <= (whole(word) or 0) <= len(names):
                index = int(word) - 1
            else:
                self._fail(line, f"unknown calculation {word!r}")
            if self._blocks[index].solver == "mg-dummy":
                self._fail(line, f"PRINT refers to ELEC {names[index]}, which is mg-dummy and has no energy")
            terms.append((sign, index))
        if not terms or len(words) % 2:
            self._fail(line, "PRINT needs calculations separated by + or -")
        return ApbsPrint(tuple(terms))
