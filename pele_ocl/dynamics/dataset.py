"""Data sets for models: positions, energies and forces of the rows of simulations in an HDF5 file."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms
from ..atoms.radii import elements_of
from ..common.arguments import described, file_path, flag
from ..common.errors import FormatError, InputError
from ..ensemble import Ensemble
from .simulation import Simulation

_UNITS = {"pos": "angstrom", "energy": "kcal/mol", "forces": "kcal/mol/angstrom", "vel": "angstrom/ps"}
_BYTES = 1 << 18  # of a chunk, about: many conformations of small molecules, so that files are written fast


class DatasetFile:
    """File of positions, energies and forces of replicas, for training: a call for `Simulation.run`.

    The HDF5 file has a group for each molecule, `molecule-1` etc., in the layout of TorchMD-NET's `HDF5` data set:
    `types` (n,), atomic numbers; `pos` (m, n, 3) A; `energy` (m,) kcal/mol; `forces` (m, n, 3) kcal/mol/A; all but the
    first with their unit as an attribute. Energies and forces are those of the molecule: terms of the simulation, such
    as restraints and biases, and scales are not included. Stopped replicas are left out. An existing file is appended
    to.

        >>> import pele_ocl, tempfile, pathlib, h5py
        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "samples.h5"
        >>> _ = pele_ocl.Simulation(atoms, 3).run(20, every=10, call=pele_ocl.DatasetFile(path))
        >>> with h5py.File(path) as file:
        ...     file["molecule-1/pos"].shape, file["molecule-1/forces"].shape, file["molecule-1/energy"].shape
        ((6, 33, 3), (6, 33, 3), (6,))

    path : ends in .h5 or .hdf5
    velocities : whether to add them, `vel` (m, n, 3) A/ps
    """

    def __init__(self, path: str | PathLike[str], *, velocities: bool = False) -> None:
        self.path, self.velocities = file_path(path), flag("velocities", velocities)
        if self.path.suffix not in (".h5", ".hdf5"):
            raise FormatError(f"{self.path}: data sets end in .h5 or .hdf5; name the file so")
        self._bare: Ensemble | None = None
        self._of: int | None = None  # simulation that it is for

    def __repr__(self) -> str:
        return f"DatasetFile({str(self.path)!r})"

    def __call__(self, simulation: Simulation) -> None:
        """Append all replicas that go on. Raises FormatError if the file cannot be written, or is of others."""
        import h5py

        if not isinstance(simulation, Simulation):
            raise InputError(f"the simulation is {described(simulation)}; a Simulation is needed")
        ensemble = self._ensemble(simulation)
        good = np.isfinite(simulation.potential_energies)
        by_molecule: dict[int, list[int]] = {}
        for k, atoms in enumerate(simulation.ensemble.atoms):
            by_molecule.setdefault(id(atoms), []).append(k)
        try:
            with h5py.File(self.path, "a") as file:
                for number, rows in enumerate(by_molecule.values(), 1):
                    there = [k for k in rows if good[k]]
                    if there:
                        values = {
                            "pos": np.asarray(simulation.positions[there]), "energy": ensemble.energies_of(there),
                            "forces": -np.asarray(ensemble.gradients[there]),
                        }  # fmt: skip
                        if self.velocities:
                            values["vel"] = np.stack(simulation.velocities[there])
                        group = file.require_group(f"molecule-{number}")
                        self._append(group, simulation.ensemble.atoms[there[0]], values)
        except (OSError, ValueError, TypeError) as error:
            raise FormatError(f"{self.path}: cannot be appended to: {error}") from error

    def _ensemble(self, simulation: Simulation) -> Ensemble:
        """Return rows at the positions of the simulation, evaluated without what it adds to their molecules."""
        state = simulation.ensemble.state
        _ = simulation.potential_energies  # which takes up what was written
        if not state.terms and not state.scales:
            return simulation.ensemble
        if self._bare is None or self._of != id(simulation):
            options: dict[str, Any] = {**state.options, "terms": (), "device": state.device}
            self._bare, self._of = Ensemble(list(simulation.ensemble.atoms), errors="record", **options), id(simulation)
        self._bare.positions[:] = simulation.positions[:]
        return self._bare.evaluate()

    def _append(self, group: Any, atoms: Atoms, values: dict[str, NDArray[np.float64]]) -> None:
        types = _atomic_numbers(atoms)
        if "types" not in group:
            group.create_dataset("types", data=types)
            for name, of in values.items():
                rows = max(1, _BYTES // of[0].nbytes)
                group.create_dataset(name, data=of, maxshape=(None, *of.shape[1:]), chunks=(rows, *of.shape[1:]))
                group[name].attrs["units"] = _UNITS[name]
            return
        if not np.array_equal(group["types"][()], types):
            raise FormatError(f"{self.path}: {group.name[1:]} has other atoms; name another file")
        if ("vel" in group) != ("vel" in values):
            raise FormatError(f"{self.path}: has {'no ' * ('vel' not in group)}velocities; choose `velocities` alike")
        for name, of in values.items():
            dataset = group[name]
            dataset.resize(len(dataset) + len(of), axis=0)
            dataset[-len(of) :] = of


def _atomic_numbers(atoms: Atoms) -> NDArray[np.int64]:
    """Atomic numbers (n,). Raises InputError if elements are not known."""
    import gemmi

    if atoms.labels is None:
        raise InputError("atomic numbers follow from elements, which these atoms lack")
    return np.array([gemmi.Element(str(symbol)).atomic_number for symbol in elements_of(atoms.labels)], np.int64)
