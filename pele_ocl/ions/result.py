"""Result of `place_ions`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from ..atoms import Atoms, Floats
from ..common.arguments import file_path
from ..common.errors import FormatError, InputError
from ..common.inputfile import InputFile
from ..common.notes import with_notes
from ..common.variant import Progress
from ..common.writing import replacing
from ..formats import is_pdb, write_map
from ..formats.pdb_writing import Ion, write_pdb_with_ions
from ..formats.registry import map_suffix
from ..grid import Grid, Map
from ..jobs.facts import composition_as_json, notes_of
from ..jobs.provenance import Call, origin, record_head
from ..jobs.texts import counted, duration, headline, medium_lines
from ..report import Column, Framed, Report
from ..report import text_table as table
from .species import Species


@dataclass(frozen=True, eq=False)
class IonsResult(Framed):
    """Result of an ion placement: m ions in the order of placement.

    species : (m,) species of each ion
    positions : (m, 3) A
    potentials : (m,) kcal/mol/e, potential of the molecule and all previous ions at each ion
    free_volume : volume available to the first ion, A^3
    map : potential of the molecule and all ions, kcal/mol/e; at an ion's point, its own contribution is left out. None
        if not requested
    variant : algorithm used for the molecule's map; None if the map was given
    seconds : kernel times in seconds: "map" for the molecule's potential, "exclusion" for excluding points near atoms,
        "ions" for the placement; "total" is the elapsed time including overhead
    source : structure file, None if Atoms were given; model : number of the model in the file, None for the first
    settings : parameters of the potential by name
    heard : notes reported during the calculation; call : function that returns metadata about the call, for files

    >>> result = pele_ocl.ions("data/structures/hexapeptide.pdb", add={"NA": 1, "CL": 1}, spacing=2.0)
    >>> result.table()["ion"].tolist()
    ['NA', 'CL']
    >>> result.save("salted.pdb")
    """

    atoms: Atoms
    grid: Grid
    species: tuple[Species, ...]
    positions: Floats
    potentials: Floats
    free_volume: float
    map: Map | None
    device: str
    variant: str | None
    precision: str
    seconds: Mapping[str, float]
    source: InputFile | None = None
    model: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    heard: tuple[str, ...] = field(default=(), repr=False)
    call: Call | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        named = ", ".join(f"{count} {name}" for name, count in self.counts.items()) or "no ions"
        return f"IonsResult({named}, energy {self.energy:.3f} kcal/mol, {self.precision})"

    def __len__(self) -> int:
        return len(self.species)

    @property
    def charges(self) -> Floats:
        """Charges of the ions, (m,) e."""
        return np.array([species.charge for species in self.species], np.float64)

    @property
    def energies(self) -> Floats:
        """Energy of each ion in the potential before it was placed, q phi, (m,) kcal/mol."""
        energies: Floats = self.charges * self.potentials
        return energies

    @property
    def energy(self) -> float:
        """Total energy of the ions with the molecule and with each other, kcal/mol."""
        return float(self.energies.sum())

    @property
    def counts(self) -> dict[str, int]:
        """Number of ions of each species, in the order of first placement."""
        names = [species.name for species in self.species]
        return {name: names.count(name) for name in dict.fromkeys(names)}

    @property
    def net_charge(self) -> float:
        """Net charge of the molecule and the ions, e."""
        return float(self.atoms.charges.sum() + self.charges.sum())

    def table(self) -> Report:
        """Table of the position, potential and energy of each ion, in the order of placement."""
        x, y, z = self.positions.reshape(-1, 3).T
        columns: dict[str, Any] = {
            "ion": [species.name for species in self.species],
            "x": Column(x, "A"), "y": Column(y, "A"), "z": Column(z, "A"),
            "potential": Column(self.potentials, "kcal/mol/e"), "energy": Column(self.energies, "kcal/mol"),
        }  # fmt: skip
        facts = {"energy": self.energy, "net_charge": self.net_charge, "settings": dict(self.settings)}
        return Report(f"Ions, energy {self.energy:,.3f} kcal/mol, net charge {self.net_charge:+.3f} e", columns, facts)

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return the text that the command prints; verbose : with the grid; total : total seconds to report"""
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        placed = counted(len(self), "ion") + (f": {counts}" if counts else "")
        head = [headline(self.source, self.atoms), *(medium_lines(self.settings) if self.settings else [])]
        head += [f"{placed}; net charge including them {self.net_charge:+.3f} e"]
        if not len(self):
            return "\n".join(head)
        rows = [
            (str(k), species.name, *(f"{x:.3f}" for x in position), f"{potential:.3f}", f"{energy:.3f}")
            for k, (species, position, potential, energy) in enumerate(
                zip(self.species, self.positions, self.potentials, self.energies, strict=True), 1
            )
        ]
        seconds = self.seconds
        lines = [
            *head,
            "",
            table(("", "ion", "x", "y", "z A", "kcal/mol/e", "kcal/mol"), rows, "><>>>>>"),
            "",
            f"Energy of the ions {self.energy:,.3f} kcal/mol",
            f"{self.variant}, {self.precision}, on {self.device}: map {duration(seconds['map'])}, "
            f"ions {duration(seconds['exclusion'] + seconds['ions'])}, "
            f"total {duration(seconds['total'] if total is None else total)}",
        ]
        if verbose:
            shape, spacing = (" x ".join(f"{n:g}" for n in of) for of in (self.grid.shape, self.grid.spacing))
            lines += ["", f"Grid: {shape} points, {spacing} A apart; {self.free_volume:,.0f} A^3 free initially"]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the result as a JSON-compatible dictionary."""
        rows = zip(self.species, self.positions, self.potentials, self.energies, strict=True)
        record = {
            **record_head(self.source),
            "n_atoms": len(self.atoms),
            "composition": composition_as_json(self.atoms),
            "n_ions": len(self),
            "counts": self.counts,
            "net_charge": self.net_charge,
            "free_volume": self.free_volume,
            "shape": list(self.grid.shape),
            "origin": self.grid.origin.tolist(),
            "spacing": self.grid.spacing.tolist(),
            "device": self.device,
            "variant": self.variant,
            "precision": self.precision,
            "energy": {"total": self.energy},
            "ions": [
                {
                    "ion": species.name, "position": position.tolist(), "potential": float(potential),
                    "energy": float(energy),
                }
                for species, position, potential, energy in rows
            ],
            "seconds": dict(self.seconds),
            "settings": dict(self.settings),
            **notes_of(self.atoms),
        }  # fmt: skip
        return with_notes(record, self.heard)

    def save(
        self, path: str | PathLike[str], *, inputs: Iterable[str | PathLike[str]] = (), progress: Progress | None = None
    ) -> None:
        """Write the molecule and the ions to a .pdb file, or their potential to a map file such as .dx.

        inputs : files that must not be overwritten; progress : called with the written fraction of a map, 0 to 1

        Raises FormatError for other suffixes, InputError if the map was not kept.
        """
        own = [*([] if self.source is None else [self.source]), *inputs]
        if map_suffix(file_path(path)) is not None:
            if self.map is None:
                raise InputError("the map was not stored; request it with `keep_map=True`")
            attributes = origin(self.source, self.atoms, self, self.call)
            write_map(path, self.map, atoms=self.atoms, attributes=attributes, inputs=own, progress=progress)
            return
        require_pdb(path)
        ions = [
            Ion(species.name, species.atom, species.element, species.charge, position)
            for species, position in zip(self.species, self.positions, strict=True)
        ]
        with replacing(path, own) as temporary:
            write_pdb_with_ions(temporary, self.source, self.atoms, ions, self.model)


def require_pdb(path: str | PathLike[str]) -> None:
    """Raise FormatError unless a path has the suffix of a PDB file."""
    target = file_path(path)
    if not is_pdb(target):
        raise FormatError(f"{target}: unknown suffix {target.suffix!r}; molecules are written as .pdb")
