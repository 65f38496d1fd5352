"""Training data for machine-learning potentials: positions, energies and forces in an HDF5 file."""

from __future__ import annotations

from os import PathLike
from typing import Any
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms
from ..atoms.radii import elements_of
from ..common.arguments import described, file_path, flag
from ..common.errors import FormatError, InputError
from ..common.hashing import sha256_of
from ..ensemble import Ensemble
from ..ensemble.state import State
from ..gb_models.solvent_model import SolventModel
from .simulation import Simulation

_UNITS = {"pos": "angstrom", "energy": "kcal/mol", "forces": "kcal/mol/angstrom", "vel": "angstrom/ps"}
_BYTES = 1 << 18  # approximate chunk size; small chunks would be slow to write
_OF_ENERGIES = "cutoff", "one_four", "only_terms"  # options that change energies, besides the solvent
Values = dict[str, NDArray[Any]]


class DatasetFile:
    """Write positions, energies and forces of replicas as training data; pass it as `call` to `Simulation.run`.

    The HDF5 file has a group for each molecule, `molecule-1` etc., in the layout of TorchMD-NET's `HDF5` data set:
    `types` (m, n), atomic numbers; `pos` (m, n, 3) A; `energy` (m, 1) kcal/mol; `forces` (m, n, 3) kcal/mol/A. All but
    `types` have their unit as an attribute. Energies and forces are those of the molecule in its solvent. They do not
    include restraints, biases and scales of the simulation. Stopped replicas are skipped.

    Existing files are extended; other molecules are added as new groups. A file written with a different solvent,
    cutoff or choice of energy terms is rejected.

        >>> import pele_ocl, tempfile, pathlib, h5py
        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "samples.h5"
        >>> _ = pele_ocl.Simulation(atoms, 3).run(20, every=10, call=pele_ocl.DatasetFile(path))
        >>> with h5py.File(path) as file:
        ...     file["molecule-1/pos"].shape, file["molecule-1/forces"].shape, file["molecule-1/energy"].shape
        ((6, 33, 3), (6, 33, 3), (6, 1))

    path : file ending in .h5 or .hdf5, in an existing folder
    velocities : whether to add velocities, `vel` (m, n, 3) A/ps
    """

    def __init__(self, path: str | PathLike[str], *, velocities: bool = False) -> None:
        self.path, self.velocities = file_path(path), flag("velocities", velocities)
        if self.path.suffix.lower() not in (".h5", ".hdf5"):
            raise FormatError(f"{self.path}: the suffix of a data set must be .h5 or .hdf5")
        if not self.path.parent.is_dir():
            raise FormatError(f"{self.path}: {self.path.parent} is not a folder; create it first")
        self._bare: Ensemble | None = None
        self._of: ReferenceType[Simulation] | None = None  # simulation of the latest call
        self._hashes: dict[int, tuple[Atoms, str]] = {}  # of molecules by id; the reference keeps the id valid

    def __repr__(self) -> str:
        return f"DatasetFile({str(self.path)!r})"

    def __call__(self, simulation: Simulation) -> None:
        """Append all running replicas. Raises FormatError if the file cannot be written or has other settings."""
        import h5py

        if not isinstance(simulation, Simulation):
            raise InputError(f"the simulation is {described(simulation)}; expected a Simulation")
        values = self._values(simulation)
        if not values:
            return
        if self.path.exists() and not h5py.is_hdf5(self.path):
            raise FormatError(f"{self.path}: is not an HDF5 file; choose another file")
        try:
            with h5py.File(self.path, "a") as file:
                self._require_same(file, simulation.ensemble.state)
                groups = {of.attrs.get("molecule"): of for of in file.values()}
                for key, (_, arrays) in values.items():  # check all before writing any
                    if key in groups and ("vel" in groups[key]) != ("vel" in arrays):
                        has = "no velocities" if self.velocities else "velocities"
                        raise FormatError(f"{self.path}: has {has}; use the same `velocities`")
                for key, (atoms, arrays) in values.items():
                    if key not in groups:
                        groups[key] = file.create_group(f"molecule-{len(groups) + 1}")
                        groups[key].attrs["molecule"] = key
                    types = np.tile(_atomic_numbers(atoms), (len(arrays["pos"]), 1))
                    self._append(groups[key], {"types": types, **arrays})
        except (OSError, ValueError, TypeError) as error:
            raise FormatError(f"{self.path}: cannot be appended to: {error}") from error

    def _values(self, simulation: Simulation) -> dict[str, tuple[Atoms, Values]]:
        """Return each molecule and the values of its running replicas, by the hash of the molecule."""
        ensemble = self._ensemble(simulation)
        by_molecule: dict[str, list[int]] = {}
        for k in np.flatnonzero(np.isfinite(simulation.potential_energies)).tolist():
            by_molecule.setdefault(self._hash(simulation.ensemble.atoms[k]), []).append(k)
        found: dict[str, tuple[Atoms, Values]] = {}
        for key, rows in by_molecule.items():
            values = {
                "pos": np.asarray(simulation.positions[rows]), "energy": ensemble.energies_of(rows)[:, None],
                "forces": -np.asarray(ensemble.gradients[rows]),
            }  # fmt: skip
            if self.velocities:
                values["vel"] = np.stack(simulation.velocities[rows])
            found[key] = simulation.ensemble.atoms[rows[0]], values
        return found

    def _hash(self, atoms: Atoms) -> str:
        """Return a hash of everything except positions that determines the energy of a molecule."""
        if id(atoms) not in self._hashes:
            self._hashes[id(atoms)] = atoms, sha256_of(atoms.moved(np.zeros_like(atoms.positions)))
        return self._hashes[id(atoms)][1]

    def _ensemble(self, simulation: Simulation) -> Ensemble:
        """Return an ensemble at the current positions, without the terms and scales of the simulation."""
        state = simulation.ensemble.state
        _ = simulation.potential_energies  # applies pending changes
        if not state.terms and not state.scales:
            return simulation.ensemble
        if self._bare is None or self._of is None or self._of() is not simulation:
            options: dict[str, Any] = {**state.options, "terms": (), "device": state.device}
            self._bare = Ensemble(list(simulation.ensemble.atoms), errors="record", **options)
            self._of = ref(simulation)
        self._bare.positions[:] = simulation.positions[:]
        return self._bare.evaluate()

    def _require_same(self, file: Any, state: State) -> None:
        """Raise FormatError if the energies in the file have other settings; write the settings to a new file."""
        options = {name: state.options[name] for name in _OF_ENERGIES}
        settings = sha256_of([SolventModel.or_default(state.options["model"]), options])
        if not len(file):
            file.attrs["settings"] = settings
        elif "settings" not in file.attrs:
            raise FormatError(f"{self.path}: was not written by this version of DatasetFile; choose another file")
        elif file.attrs["settings"] != settings:
            raise FormatError(
                f"{self.path}: has energies for another solvent, cutoff or choice of terms; choose another file"
            )

    def _append(self, group: Any, values: Values) -> None:
        """Append values to the arrays of a group. An interrupted write may have left them with different lengths."""
        begin = min((len(group[name]) for name in values if name in group), default=0)
        for name, of in values.items():
            if name not in group:
                rows = max(1, _BYTES // of[0].nbytes)
                shape = of.shape[1:]
                group.create_dataset(
                    name, shape=(0, *shape), maxshape=(None, *shape), chunks=(rows, *shape), dtype=of.dtype
                )
                if name in _UNITS:
                    group[name].attrs["units"] = _UNITS[name]
            group[name].resize(begin + len(of), axis=0)
            group[name][begin:] = of


def _atomic_numbers(atoms: Atoms) -> NDArray[np.int32]:
    """Return atomic numbers, (n,). Raises InputError if elements are unknown."""
    import gemmi

    if atoms.labels is None:
        raise InputError("atomic numbers need elements, which these atoms do not have")
    return np.array([gemmi.Element(str(symbol)).atomic_number for symbol in elements_of(atoms.labels)], np.int32)
